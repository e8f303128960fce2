//! What a file of `jax.export` says of itself, for people and for programs.

use serde_json::json;

use crate::base::Result;
use crate::front::jax_export;
use crate::front::jax_export::Export;
use crate::front::jax_export::Value;

/// The description of an export, as text or as JSON; nothing when the bytes are none.
///
/// # Errors
/// What reading a damaged one gives.
pub fn describe(bytes: &[u8], as_json: bool) -> Result<Option<String>> {
    if !jax_export::is_export(bytes) {
        return Ok(None);
    }
    let export = Export::read(bytes)?;
    Ok(Some(match as_json {
        true => json(&export),
        false => text(&export),
    }))
}

fn text(export: &Export<'_>) -> String {
    let mut out = format!(
        "jax.export of `{}`, serialization version {}, calling convention {}\n",
        export.function, export.serialization_version, export.calling_convention_version
    );
    let mut line = |name: &str, content: &str| {
        if !content.is_empty() {
            out.push_str(&format!("{name}: {content}\n"));
        }
    };
    line("written by jax", &export.jax_version);
    line("platforms", &export.platforms.join(", "));
    line("devices", &export.devices.to_string());
    let variables: Vec<String> = export.variables().into_keys().collect();
    line("dimension variables", &variables.join(", "));
    line("ordered effects", &export.ordered_effects.join(", "));
    line("unordered effects", &export.unordered_effects.join(", "));
    line("disabled checks", &export.disabled_checks.join(", "));
    if export.derivatives > 0 {
        line("derivatives", &export.derivatives.to_string());
    }
    let size = format!("{} bytes of MLIR bytecode", export.module.len());
    line("module", &size);
    let is_kept = |i: usize| export.kept.binary_search(&i).is_ok();
    for (i, value) in export.arguments.iter().enumerate() {
        let unused = if is_kept(i) { "" } else { ", not used" };
        out.push_str(&format!(
            "argument {}: {}{unused}\n",
            value.name,
            value.describe()
        ));
    }
    for value in &export.results {
        out.push_str(&format!("{}: {}\n", value.name, value.describe()));
    }
    out
}

fn json(export: &Export<'_>) -> String {
    let value =
        |value: &Value| json!({"name": value.name, "type": value.dtype, "dims": value.dims});
    let arguments = export.arguments.iter().enumerate().map(|(i, argument)| {
        let mut row = value(argument);
        row["used"] = json!(export.kept.binary_search(&i).is_ok());
        row
    });
    let arguments: Vec<_> = arguments.collect();
    let results: Vec<_> = export.results.iter().map(value).collect();
    let variables: Vec<String> = export.variables().into_keys().collect();
    let description = json!({
        "schema": 1,
        "format": "jax-export",
        "function": export.function,
        "serialization_version": export.serialization_version,
        "calling_convention_version": export.calling_convention_version,
        "jax_version": export.jax_version,
        "platforms": export.platforms,
        "devices": export.devices,
        "dimension_variables": variables,
        "ordered_effects": export.ordered_effects,
        "unordered_effects": export.unordered_effects,
        "disabled_checks": export.disabled_checks,
        "derivatives": export.derivatives,
        "module_bytes": export.module.len(),
        "arguments": arguments,
        "results": results,
    });
    format!("{description}\n")
}
