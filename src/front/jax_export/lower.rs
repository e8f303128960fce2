//! From an export to HLO: the platform, the sizes of dimension variables, the names.
//!
//! The function `main` of the module takes the place of the platform when there are several, a token
//! for each ordered effect, and the arguments that are kept, in this order.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::suggest::closest;
use crate::front::import::InputOptions;
use crate::front::import::Program;
use crate::front::import::convert;
use crate::front::jax_export::Export;
use crate::front::jax_export::Value;
use crate::front::jax_export::dims;
use crate::front::stablehlo::Argument;
use crate::hlo;
use crate::literal::ArrayLiteral;
use crate::mlir;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// The program that an export is for the platform and sizes that the options name.
///
/// # Errors
/// What the container, its module and the conversion give; `XA1006` for a platform or dimension
/// variable that it does not have, `XA8001` for sizes that are missing or cannot be.
pub(in crate::front) fn import(
    bytes: &[u8],
    options: &InputOptions,
    is_read: &mut dyn FnMut(),
) -> Result<Program> {
    let export = Export::read(bytes)?;
    if !options.shapes.is_empty() {
        let message = "an export's sizes are those of its dimension variables";
        return Err(Diagnostic::error(codes::UNKNOWN_WORD, message).help("give them with --dim"));
    }
    let platform = platform(&export, options)?;
    check_variables(&export, options)?;
    let module = mlir::bytecode::read(export.module)?;
    is_read();
    let mut arguments = Vec::new();
    if export.platforms.len() > 1 {
        arguments.push(Argument::Constant(platform_index(&module, platform)?));
    }
    arguments.extend(export.tokens().map(|_| Argument::Declared));
    for &kept in &export.kept {
        arguments.push(sized(&export.arguments[kept], options)?);
    }
    let inputs = inputs(&module)?.len();
    if arguments.len() != inputs {
        let message = format!(
            "the module of the export takes {inputs} arguments, by the export {}",
            arguments.len()
        );
        return Err(Diagnostic::error(codes::MODULE_STRUCTURE, message));
    }
    let mut module = convert(&module, arguments)?;
    name_parameters(&export, &mut module);
    Ok(Program {
        notes: notes(&export, options, platform),
        module,
    })
}

/// The place of the platform: the one asked for, else the one that the target has, else the first.
fn platform(export: &Export<'_>, options: &InputOptions) -> Result<usize> {
    let place = |name: &str| export.platforms.iter().position(|known| known == name);
    let known = export.platforms.join(", ");
    if let Some(name) = &options.platform {
        return place(name).ok_or_else(|| {
            let message = format!("the export is not for the platform `{name}`, only for {known}");
            let error = Diagnostic::error(codes::UNKNOWN_WORD, message);
            match closest(name, export.platforms.iter().map(String::as_str)) {
                Some(close) => error.help(format!("did you mean `{close}`?")),
                None => error,
            }
        });
    }
    let Some(own) = options.own_platform else {
        return Ok(place("cpu").unwrap_or(0));
    };
    let found = own.iter().find_map(|name| place(name));
    let may_differ = export
        .disabled_checks
        .iter()
        .any(|check| check == "platform");
    match found {
        Some(found) => Ok(found),
        None if may_differ => Ok(0),
        None => {
            let message = format!("the export is for {known}, the target for {}", own[0]);
            let help = "export it for that platform too, or name the one to take with --platform";
            Err(Diagnostic::error(codes::COMPILE_UNSUPPORTED, message).help(help))
        }
    }
}

/// The largest size that StableHLO has as a value.
const LARGEST: u64 = i32::MAX as u64;

/// Each dimension variable must have a size, and each size a variable.
fn check_variables(export: &Export<'_>, options: &InputOptions) -> Result<()> {
    let variables = export.variables();
    for (name, &size) in &options.dims {
        if !variables.contains_key(name) {
            let known: Vec<String> = variables.keys().map(|name| format!("`{name}`")).collect();
            let known = match known.is_empty() {
                true => "none".to_owned(),
                false => known.join(", "),
            };
            let message = format!("the export has no dimension variable `{name}`, it has {known}");
            return Err(Diagnostic::error(codes::UNKNOWN_WORD, message));
        }
        if size == 0 {
            let message = format!("the dimension variable `{name}` is 0, wanted at least 1");
            return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
        }
        if size > LARGEST {
            let message =
                format!("the dimension variable `{name}` is {size}, wanted at most {LARGEST}");
            return Err(Diagnostic::error(codes::INPUT_MISMATCH, message)
                .note("a size that is a value in a program is an i32"));
        }
    }
    let Some((name, users)) = variables
        .iter()
        .find(|(name, _)| !options.dims.contains_key(*name))
    else {
        return Ok(());
    };
    const MOST: usize = 5;
    let mut text: Vec<String> = users.iter().take(MOST).map(|user| shown(user)).collect();
    if users.len() > MOST {
        text.push(format!("{} more", users.len() - MOST));
    }
    let text = text.join(", ");
    let message = format!("the dimension variable `{name}` has no size; it is one of {text}");
    Err(Diagnostic::error(codes::INPUT_MISMATCH, message).help(format!("give it: --dim {name}=N")))
}

fn shown(value: &Value) -> String {
    format!("{} {}", value.name, value.describe())
}

/// The argument with its sizes.
fn sized(value: &Value, options: &InputOptions) -> Result<Argument> {
    let sizes = value
        .dims
        .iter()
        .map(|dim| dims::evaluate(dim, &options.dims));
    let sizes = sizes.collect::<Result<Dims>>();
    let mut sizes = sizes.map_err(|e| e.note(format!("in {}", shown(value))))?;
    sizes.extend_from_slice(value.inner);
    Ok(Argument::Sized(sizes))
}

/// The types that `main` takes.
fn inputs(module: &mlir::Module) -> Result<&[mlir::Type]> {
    let main = module.symbol("main").ok_or_else(|| {
        let message = "the module of the export has no function `main`";
        Diagnostic::error(codes::MODULE_STRUCTURE, message)
    })?;
    let main = module.op(main);
    match main.attr_type("function_type")?.as_function() {
        Some(function) => Ok(&function.inputs),
        None => Err(main.wrong("`function_type` is no type of a function")),
    }
}

/// The place of the platform as the value that `main` takes first.
fn platform_index(module: &mlir::Module, place: usize) -> Result<ArrayLiteral> {
    let ty = inputs(module)?
        .first()
        .and_then(|ty| ty.element().primitive());
    let bytes = match ty {
        Some(PrimitiveType::S32 | PrimitiveType::U32) => 4,
        Some(PrimitiveType::S64 | PrimitiveType::U64) => 8,
        _ => 0,
    };
    match ty.filter(|_| bytes > 0) {
        Some(ty) => {
            let place = u64::try_from(place).unwrap_or(u64::MAX).to_le_bytes();
            Ok(ArrayLiteral::new(
                ArrayShape::new(ty, []),
                place[..bytes].to_vec(),
            ))
        }
        None => {
            let message = "`main` of an export for several platforms takes no place of one";
            Err(Diagnostic::error(codes::MODULE_STRUCTURE, message))
        }
    }
}

/// Calls the parameters what the function's caller calls them.
fn name_parameters(export: &Export<'_>, module: &mut hlo::Module) {
    let mut layout = module.entry_layout();
    let tokens = export.tokens().map(|effect| format!("token of {effect}"));
    let kept = export
        .kept
        .iter()
        .map(|&kept| export.arguments[kept].name.clone());
    let names: Vec<String> = tokens.chain(kept).collect();
    if names.len() == layout.parameters.len() {
        layout.parameter_names = names;
        module.config.entry_layout = Some(layout);
    }
}

/// What a user should know of the export, of which that platform was taken.
fn notes(export: &Export<'_>, options: &InputOptions, platform: usize) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(platform_note(export, options, platform));
    for (order, effects) in [
        ("ordered", &export.ordered_effects),
        ("unordered", &export.unordered_effects),
    ] {
        let effects = effects.iter().map(|effect| effect_note(order, effect));
        notes.extend(effects);
    }
    for check in &export.disabled_checks {
        notes.push(format!(
            "a check was switched off when the export was made: {check}"
        ));
    }
    if export.devices > 1 {
        let count = export.devices;
        notes.push(format!(
            "the export is for {count} devices; nothing is partitioned, each computes the whole"
        ));
    }
    notes
}

/// Which platform was taken, unless somebody asked for it.
fn platform_note(export: &Export<'_>, options: &InputOptions, platform: usize) -> Option<String> {
    let known = export.platforms.join(", ");
    let taken = &export.platforms[platform];
    let own = options.own_platform.unwrap_or(&["cpu"]);
    match (&options.platform, export.platforms.len()) {
        (Some(_), _) => None,
        (None, _) if !own.contains(&taken.as_str()) => Some(format!(
            "the export is not for {}, only for {known}; `{taken}` is taken",
            own[0]
        )),
        (None, 2..) if options.own_platform.is_none() => Some(format!(
            "the export is for {known}; `{taken}` is taken, --platform names another"
        )),
        (None, _) => None,
    }
}

/// What an effect is, by the name of its type: `<class 'jax._src.debugging.DebugEffect'>`.
fn effect_note(order: &str, name: &str) -> String {
    let inside = name.strip_prefix("<class '");
    let name = inside.and_then(|n| n.strip_suffix("'>")).unwrap_or(name);
    let meaning = match name.rsplit('.').next() {
        Some("DebugEffect" | "OrderedDebugEffect") => ", a call of jax.debug into Python",
        Some("IOEffect" | "OrderedIOEffect") => ", a call of io_callback into Python",
        Some("FfiEffect") => ", a foreign function that does more than compute",
        _ => "",
    };
    format!("the export has an {order} effect: {name}{meaning}")
}
