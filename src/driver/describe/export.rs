//! What a file of `jax.export` says of itself, and what its module says of the arguments that it has.

use serde_json::json;

use crate::base::Result;
use crate::driver::describe::Description;
use crate::driver::describe::Head;
use crate::driver::describe::Row;
use crate::driver::describe::module::of_mlir;
use crate::front::jax_export::Export;
use crate::mlir::bytecode;

/// Of an export.
///
/// # Errors
/// What reading its module gives.
pub(super) fn describe(export: &Export<'_>) -> Result<Description> {
    let module = of_mlir(&bytecode::read(export.module)?);
    // Before the arguments, the module takes the place of the platform and tokens.
    let before = module.parameters.len().saturating_sub(export.kept.len());
    let arguments = export.arguments.iter().enumerate();
    let arguments = arguments.map(|(i, argument)| {
        let place = export.kept.binary_search(&i).ok();
        let row = place.and_then(|place| module.parameters.get(before + place));
        Row {
            places: place
                .map(|place| format!("in{place}"))
                .into_iter()
                .collect(),
            name: argument.name.clone(),
            ty: argument.describe(),
            parts: Some((argument.dtype, argument.dims.clone())),
            is_unused: place.is_none(),
            ..row.cloned().unwrap_or_default()
        }
    });
    let arguments = arguments.collect();
    let before = module.results.len().saturating_sub(export.results.len());
    let results = export.results.iter().enumerate().map(|(i, result)| Row {
        places: vec![format!("out{i}")],
        name: result.name.clone(),
        ty: result.describe(),
        parts: Some((result.dtype, result.dims.clone())),
        ..module.results.get(before + i).cloned().unwrap_or_default()
    });
    let results = results.collect();
    let variables: Vec<String> = export.variables().into_keys().collect();
    let lines = vec![
        ("function", json!(export.function)),
        ("serialization_version", json!(export.serialization_version)),
        (
            "calling_convention_version",
            json!(export.calling_convention_version),
        ),
        ("jax_version", json!(export.jax_version)),
        ("platforms", json!(export.platforms)),
        ("devices", json!(export.devices)),
        ("dimension_variables", json!(variables)),
        ("ordered_effects", json!(export.ordered_effects)),
        ("unordered_effects", json!(export.unordered_effects)),
        ("disabled_checks", json!(export.disabled_checks)),
        ("derivatives", json!(export.derivatives)),
        ("module_bytes", json!(export.module.len())),
    ];
    let head = Head {
        title: "a jax.export artifact".to_owned(),
        lines,
    };
    let description = Description {
        head: module.head,
        parameters: arguments,
        results,
    };
    Ok(description.below(head))
}
