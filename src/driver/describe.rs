//! What a program is called with and gives, for people and for programs: of HLO, of StableHLO with
//! sizes left open or not, and of a file of `jax.export`.

mod export;
mod module;

use serde_json::Value;
use serde_json::json;

use crate::base::Result;
use crate::driver::bundles;
use crate::front;
use crate::front::InputFormat;
use crate::front::InputOptions;
use crate::front::detect::detect;
use crate::front::jax_export::Export;

/// The description of a program, as text or as JSON; nothing when the bytes are none.
///
/// # Errors
/// What reading a damaged one gives.
pub fn describe(bytes: &[u8], as_json: bool) -> Result<Option<String>> {
    if bundles::are(bytes) {
        return Ok(None);
    }
    let Ok(format) = detect(bytes) else {
        return Ok(None);
    };
    let options = InputOptions {
        format: Some(format),
        ..InputOptions::default()
    };
    let description = match format {
        InputFormat::JaxExport => export::describe(&Export::read(bytes)?)?,
        InputFormat::StablehloText | InputFormat::StablehloBytecode => {
            let module = front::import_mlir(bytes, &options)?;
            let head = Head::of(format.description());
            module.map_or_else(Description::default, |m| module::of_mlir(&m).below(head))
        }
        InputFormat::HloText => {
            let module = front::read(bytes, Some(format))?;
            module::of_hlo(&module).below(Head::of(format.description()))
        }
        InputFormat::HloProto => match front::read(bytes, Some(format)) {
            Ok(module) => {
                let what = match front::detect::is_snapshot(bytes) {
                    true => "a snapshot of XLA, with arguments",
                    false => format.description(),
                };
                module::of_hlo(&module).below(Head::of(what))
            }
            // Not even the beginning says that it is one.
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(match as_json {
        true => format!("{}\n", description.json(format)),
        false => description.text(),
    }))
}

/// A parameter or result.
#[derive(Clone, Debug, Default)]
struct Row {
    /// The inputs or outputs it stands for: `in0`, or one for each array of a tuple.
    places: Vec<String>,
    /// What the program calls it.
    name: String,
    /// Its type, as the program's format writes it.
    ty: String,
    /// Its element type and sizes apart, where sizes may be expressions.
    parts: Option<(&'static str, Vec<String>)>,
    /// How it is spread over devices.
    sharding: Option<String>,
    /// What becomes of its memory.
    donated: Option<String>,
    /// Whether the program has it at all.
    is_unused: bool,
}

/// What is said above parameters and results.
#[derive(Clone, Debug, Default)]
struct Head {
    /// The first line.
    title: String,
    /// Lines of a name and what there is of it, as text and in JSON.
    lines: Vec<(&'static str, Value)>,
}

impl Head {
    fn of(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            lines: Vec::new(),
        }
    }
}

/// All that is told of a program.
#[derive(Clone, Debug, Default)]
struct Description {
    head: Head,
    parameters: Vec<Row>,
    results: Vec<Row>,
}

impl Description {
    /// With other lines before its own.
    fn below(mut self, head: Head) -> Self {
        self.head = Head {
            title: head.title,
            lines: [head.lines, self.head.lines].concat(),
        };
        self
    }

    fn text(&self) -> String {
        let mut out = format!("{}\n", self.head.title);
        for (name, value) in &self.head.lines {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Array(items) => {
                    let items = items.iter().map(|item| match item {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    });
                    items.collect::<Vec<_>>().join(", ")
                }
                Value::Number(number) if number.as_u64() == Some(0) => String::new(),
                other => other.to_string(),
            };
            if !value.is_empty() {
                out.push_str(&format!("{}: {value}\n", name.replace('_', " ")));
            }
        }
        for (title, rows) in [("parameters", &self.parameters), ("results", &self.results)] {
            out.push_str(&format!("\n{title}:\n"));
            rows.iter().for_each(|row| out.push_str(&row.text()));
        }
        out
    }

    fn json(&self, format: InputFormat) -> Value {
        let mut json = json!({"schema": 1, "format": format.name()});
        for (name, value) in &self.head.lines {
            json[*name] = value.clone();
        }
        // An export's are arguments, which its module may or may not have.
        let parameters = match format {
            InputFormat::JaxExport => "arguments",
            _ => "parameters",
        };
        json[parameters] = self
            .parameters
            .iter()
            .map(|row| row.json("inputs"))
            .collect();
        json["results"] = self.results.iter().map(|row| row.json("outputs")).collect();
        json
    }
}

impl Row {
    fn text(&self) -> String {
        let places = match &*self.places {
            [] => String::new(),
            [one] => format!("{one} "),
            [first, .., last] => format!("{first} to {last} "),
        };
        let mut out = format!("  {places}{}: {}", self.name, self.ty).replace(" :", ":");
        if let Some(sharding) = &self.sharding {
            out.push_str(&format!(", sharding {sharding}"));
        }
        if let Some(donated) = &self.donated {
            out.push_str(&format!(", {donated}"));
        }
        if self.is_unused {
            out.push_str(", not used");
        }
        out.push('\n');
        out
    }

    fn json(&self, places: &str) -> Value {
        let mut json = json!({"name": self.name, "type": self.ty});
        json[places] = json!(self.places);
        json["sharding"] = json!(self.sharding);
        if let Some((element, dims)) = &self.parts {
            json["type"] = json!(element);
            json["dims"] = json!(dims);
        }
        if places == "inputs" {
            json["donated"] = json!(self.donated);
            json["used"] = json!(!self.is_unused);
        }
        json
    }
}
