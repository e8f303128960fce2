//! What must hold of any bytes: they are a program, which is printed and written and reads back
//! equal, or there is a diagnostic, short and with its place.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Cursor;

use xla_aot::base::Diagnostic;
use xla_aot::base::Location;
use xla_aot::base::Result as Read;
use xla_aot::base::Severity;
use xla_aot::front;
use xla_aot::front::InputFormat;
use xla_aot::front::InputOptions;
use xla_aot::front::hlo_text;
use xla_aot::front::stablehlo;
use xla_aot::hlo;
use xla_aot::hlo::ModuleConfig;
use xla_aot::hlo::Op;
use xla_aot::mlir;
use xla_aot::mlir::bytecode;
use xla_aot::mlir::print;
use xla_aot::wire;

use super::Form;

/// Characters of a diagnostic at most.
const LONGEST_DIAGNOSTIC: usize = 4000;

/// A size for the dimension variables of exports.
const SIZE: u64 = 3;

/// Checks a file; gives whether it is read.
///
/// # Errors
/// What is wrong with how it is read.
pub fn check(form: Form, bytes: &[u8]) -> Result<bool, String> {
    if let Err(error) = front::detect::detect(bytes) {
        diagnostic("detect", &error)?;
    }
    match form {
        Form::HloText => {
            let read = front::read(bytes, Some(InputFormat::HloText));
            read_text("hlo text", bytes, read)?.map_or(Ok(false), |m| hlo_module(&m, true))
        }
        Form::HloProto => {
            let read = front::read(bytes, Some(InputFormat::HloProto));
            read_bytes("hlo proto", read)?.map_or(Ok(false), |m| hlo_module(&m, false))
        }
        Form::Snapshot => {
            read_bytes("values", wire::snapshot::read(&mut Cursor::new(bytes)))?;
            let read = front::read(bytes, Some(InputFormat::HloProto));
            read_bytes("snapshot", read)?.map_or(Ok(false), |m| hlo_module(&m, false))
        }
        Form::StablehloText => {
            let options = as_format(InputFormat::StablehloText);
            let read = front::import_mlir(bytes, &options);
            read_text("mlir text", bytes, read)?
                .flatten()
                .map_or(Ok(false), |m| mlir_module(&m))
        }
        Form::Bytecode => {
            let read = bytecode::read(bytes);
            read_bytes("bytecode", read)?.map_or(Ok(false), |m| mlir_module(&m))
        }
        Form::Export => export(bytes),
        Form::Bundle => Ok(false),
    }
}

fn as_format(format: InputFormat) -> InputOptions {
    InputOptions {
        format: Some(format),
        ..InputOptions::default()
    }
}

/// A diagnostic is short and blames the input.
pub fn diagnostic(stage: &str, error: &Diagnostic) -> Result<(), String> {
    let text = error.to_string();
    if error.severity == Severity::Internal {
        return Err(format!("{stage}: {text}"));
    }
    if text.chars().count() > LONGEST_DIAGNOSTIC {
        let start: String = text.chars().take(300).collect();
        return Err(format!("{stage}: a long diagnostic: {start}"));
    }
    if error.message.is_empty() || error.message.contains('\n') {
        return Err(format!(
            "{stage}: a message of no line or of several: {text}"
        ));
    }
    Ok(())
}

fn read_bytes<T>(stage: &str, read: Read<T>) -> Result<Option<T>, String> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) => diagnostic(stage, &error).map(|()| None),
    }
}

/// What is wrong with a text has its place in it.
fn read_text<T>(stage: &str, bytes: &[u8], read: Read<T>) -> Result<Option<T>, String> {
    if let Err(error) = &read {
        let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
        let has_place = match &error.location {
            Some(Location::Text { line, column, .. }) => (1..=lines).contains(line) && *column >= 1,
            Some(Location::Byte(at)) => {
                *at < bytes.len() as u64 && std::str::from_utf8(bytes).is_err()
            }
            _ => false,
        };
        if !has_place {
            return Err(format!("{stage}: no place in the text: {error}"));
        }
    }
    read_bytes(stage, read)
}

/// What is made of a module of this program's own making reads back.
fn back<T>(stage: &str, read: Read<T>) -> Result<T, String> {
    read.map_err(|error| format!("{stage}: does not read back: {error}"))
}

fn same(stage: &str, found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    let mut pairs = found.lines().zip(wanted.lines());
    let (found, wanted) = pairs.find(|(a, b)| a != b).unwrap_or_default();
    Err(format!(
        "{stage}: reads back as another module:\n{found}\nand was\n{wanted}"
    ))
}

/// The text of a module that says all layouts, as one does that was read from text.
fn whole_text(module: &hlo::Module) -> String {
    let mut module = module.clone();
    module.config.entry_layout = Some(module.entry_layout());
    for instr in module.instrs.values_mut() {
        instr.shape = instr.shape.with_default_layout();
        if let Op::Outfeed { shape, .. } = &mut instr.op {
            *shape = shape.with_default_layout();
        }
    }
    numbered(&hlo::print::module(&module))
}

/// The text with numbers instead of names, in the order in which each computation has them: names
/// are for people, and change where two are the same.
fn numbered(text: &str) -> String {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if !line.starts_with(' ') {
            names.clear();
        }
        let mut parts = line.split('%');
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            let end = part.find(|c| !is_name(c)).unwrap_or(part.len());
            let next = names.len();
            let number = *names.entry(&part[..end]).or_insert(next);
            let _ = write!(out, "%{number}{}", &part[end..]);
        }
    }
    out
}

/// Checks a module. One that breaks rules, and is not from a text, need not have one.
fn hlo_module(module: &hlo::Module, is_from_text: bool) -> Result<bool, String> {
    let verified = read_bytes("hlo verify", hlo::verify::check(module))?;
    if verified.is_none() && !is_from_text {
        hlo::print::module(module);
        return Ok(true);
    }
    let printed = whole_text(module);
    let again = back("hlo print", hlo_text::parse(&hlo::print::module(module)))?;
    same("hlo print", &whole_text(&again), &printed)?;
    if verified.is_none() {
        return Ok(true);
    }
    // What a module's proto has no place for.
    let mut module = module.clone();
    module.other_attributes.clear();
    for instr in module.instrs.values_mut() {
        if let Some(extra) = &mut instr.extra {
            extra.origin = None;
        }
        if matches!(&instr.op, Op::Dot { sparsity, .. } if !sparsity.is_empty()) {
            return Ok(true);
        }
    }
    let printed = whole_text(&module);
    let written = wire::hlo::encode_module(&module);
    let mut again = back("hlo proto", wire::hlo::decode_module(&written))?;
    again.config = ModuleConfig {
        entry_layout: again.config.entry_layout.take(),
        ..module.config.clone()
    };
    same("hlo proto", &whole_text(&again), &printed)?;
    if let Some(exported) = read_bytes("to stablehlo", stablehlo::from_hlo(&module))? {
        mlir_forms(&exported).map_err(|fault| format!("to stablehlo, {fault}"))?;
    }
    Ok(true)
}

fn mlir_module(module: &mlir::Module) -> Result<bool, String> {
    mlir_forms(module)?;
    let options = stablehlo::Options::default();
    if let Some(module) = read_bytes("to hlo", stablehlo::to_hlo(module, &options))? {
        hlo_module(&module, false)?;
    }
    Ok(true)
}

/// The forms of a module of MLIR are of the same module.
fn mlir_forms(module: &mlir::Module) -> Result<(), String> {
    let generic = print::print(module);
    let whole = print::print_with_locations(module);
    let again = back("mlir print", mlir::text::read(&whole))?;
    same("mlir print", &print::print_with_locations(&again), &whole)?;
    let again = back("generic print", mlir::text::read(&generic))?;
    same("generic print", &print::print(&again), &generic)?;
    let again = back(
        "pretty print",
        mlir::text::read(&print::print_pretty(module)),
    )?;
    same("pretty print", &print::print(&again), &generic)?;
    let placed = print::print_pretty_with_locations(module);
    let again = back("placed print", mlir::text::read(&placed))?;
    same("placed print", &print::print(&again), &generic)?;
    let written = bytecode::write(module, bytecode::DEFAULT_VERSION);
    if let Some(written) = read_bytes("write bytecode", written)? {
        let again = back("write bytecode", bytecode::read(&written))?;
        let again = in_vhlo(&print::print(&again));
        same("write bytecode", &again, &in_vhlo(&generic))?;
    }
    Ok(())
}

/// The text without what VHLO cannot tell apart: the type of a channel, the two ops that return,
/// layouts of a custom call that has half of them; and among attributes that no op declares symbols
/// and strings, and both kinds of lists of numbers.
fn in_vhlo(text: &str) -> String {
    let text = text.replace(", type = 1>", ", type = 0>");
    let text = text.replace("\"func.return\"", "\"stablehlo.return\"");
    let text = text.replace("operand_layouts = [], ", "");
    let text = text.replace(", result_layouts = []", "");
    let text = text.replace(['@', '"'], "");
    let mut parts = text.split("array<i");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (list, rest) = part.split_once('>').unwrap_or((part, ""));
        let (width, values) = list.split_once(": ").unwrap_or((list, ""));
        let items: Vec<&str> = values.split(", ").filter(|item| !item.is_empty()).collect();
        let count = items.len();
        let shown = match items.first() {
            Some(first) if items.iter().all(|item| item == first) => (*first).to_owned(),
            Some(_) => format!("[{values}]"),
            None => String::new(),
        };
        let _ = write!(out, "dense<{shown}> : tensor<{count}xi{width}>{rest}");
    }
    out
}

fn export(bytes: &[u8]) -> Result<bool, String> {
    let Some(export) = read_bytes("export", front::jax_export::Export::read(bytes))? else {
        return Ok(false);
    };
    let mut options = as_format(InputFormat::JaxExport);
    options.dims = export
        .variables()
        .into_keys()
        .map(|name| (name, SIZE))
        .collect();
    if let Some(Some(module)) = read_bytes("export's module", front::import_mlir(bytes, &options))?
    {
        mlir_forms(&module)?;
    }
    if let Some(program) = read_bytes("export to hlo", front::import(bytes, &options))? {
        hlo_module(&program.module, false)?;
    }
    Ok(true)
}
