//! Programs as StableHLO: what they convert to is what XLA converts them to, or computes the same;
//! and what HLO converts to converts back.
//!
//! Besides the cases of the corpus there are programs in `tests/stablehlo`: those beside which an
//! `.hlo` stands have to become what jaxlib made of them, and folders hold programs of dynamic
//! shapes with arguments and results of jaxlib.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::base::Id;
use xla_aot::eval;
use xla_aot::front;
use xla_aot::front::stablehlo::Argument;
use xla_aot::front::stablehlo::Options;
use xla_aot::front::stablehlo::from_hlo;
use xla_aot::front::stablehlo::to_hlo;
use xla_aot::hlo;
use xla_aot::hlo::CompId;
use xla_aot::hlo::InstrId;
use xla_aot::hlo::Module;
use xla_aot::hlo::Op;
use xla_aot::literal::Literal;
use xla_aot::mlir;
use xla_aot::shape::Shape;

use super::Case;
use super::sorted_entries;

/// Every trial of this file.
pub fn trials(cases: &[(String, Arc<Case>)]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, case) in cases {
        if case.dir.join("program.mlir").is_file() {
            let case = Arc::clone(case);
            let run = move || from_text(&case);
            trials.push(Trial::test(format!("stablehlo/text/{name}"), run));
        }
        if case.dir.join("program.mlirbc").is_file() {
            let case = Arc::clone(case);
            let run = move || from_bytecode(&case);
            trials.push(Trial::test(format!("stablehlo/bytecode/{name}"), run));
        }
        let case = Arc::clone(case);
        let run = move || there_and_back(&case);
        trials.push(Trial::test(format!("stablehlo/back/{name}"), run));
    }
    for path in sorted_entries(Path::new("tests/stablehlo")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let run = move || dynamic(&path);
            trials.push(Trial::test(format!("stablehlo/dynamic/{name}"), run));
        } else if path.extension().is_some_and(|e| e == "mlir") {
            let run = move || as_jaxlib(&path);
            trials.push(Trial::test(format!("stablehlo/jaxlib/{name}"), run));
        }
    }
    trials
}

fn said(error: impl std::fmt::Display) -> Failed {
    error.to_string().into()
}

fn read_text(path: &Path) -> Result<mlir::Module, Failed> {
    let text = fs::read_to_string(path)?;
    mlir::text::read(&text).map_err(said)
}

fn read_hlo(path: &Path) -> Result<Module, Failed> {
    front::read(&fs::read(path)?, None).map_err(said)
}

fn converted(module: &mlir::Module, options: &Options) -> Result<Module, Failed> {
    let module = to_hlo(module, options).map_err(said)?;
    hlo::verify::check(&module).map_err(said)?;
    Ok(module)
}

/// The text of a program gives the module of its proto, or one that computes the same.
fn from_text(case: &Case) -> Result<(), Failed> {
    let module = read_text(&case.dir.join("program.mlir"))?;
    let module = converted(&module, &Options::default())?;
    let proto = read_hlo(&case.dir.join("program.pb"))?;
    if module.name != proto.name || module.input_output_alias != proto.input_output_alias {
        return Err("another name or another aliasing".into());
    }
    same_or_equal(case, &module, &proto)
}

/// The bytecode of a program gives the module of its proto, or one that computes the same.
fn from_bytecode(case: &Case) -> Result<(), Failed> {
    let bytes = fs::read(case.dir.join("program.mlirbc"))?;
    let module = mlir::bytecode::read(&bytes).map_err(said)?;
    let module = converted(&module, &Options::default())?;
    let proto = read_hlo(&case.dir.join("program.pb"))?;
    same_or_equal(case, &module, &proto)
}

/// A module that goes to StableHLO, to text, and back is the same or computes the same.
fn there_and_back(case: &Case) -> Result<(), Failed> {
    let proto = read_hlo(&case.dir.join("program.pb"))?;
    let there = from_hlo(&proto).map_err(said)?;
    let text = mlir::print::print(&there);
    let read = mlir::text::read(&text).map_err(said)?;
    if !mlir::print::same(&there, &read) {
        return Err("its text reads back changed".into());
    }
    let module = converted(&read, &Options::default())?;
    same_or_equal(case, &module, &proto)
}

fn same_or_equal(case: &Case, module: &Module, proto: &Module) -> Result<(), Failed> {
    if structure(module) == structure(proto) || case.is_large() {
        return Ok(());
    }
    let inputs = case.inputs(module)?;
    let result = eval::evaluate(module, &inputs).map_err(said)?;
    Ok(case.check(&as_expected(case, result))?)
}

/// XLA gives the bits of a generator as unsigned numbers whatever the program says.
fn as_expected(case: &Case, result: Literal) -> Literal {
    let unsigned = case.name.starts_with("rng_bit_generator_") && case.name.contains("_s32_");
    let Literal::Tuple(mut parts) = result else {
        return result;
    };
    if unsigned && let Some(Literal::Array(bits)) = parts.get(1).cloned() {
        let shape = bits.shape().with_type(xla_aot::shape::PrimitiveType::U32);
        let bytes = bits.bytes().to_vec();
        parts[1] = Literal::Array(xla_aot::literal::ArrayLiteral::new(shape, bytes));
    }
    Literal::Tuple(parts)
}

/// A program becomes what jaxlib made of it.
fn as_jaxlib(path: &Path) -> Result<(), Failed> {
    let module = converted(&read_text(path)?, &Options::default())?;
    let theirs = read_hlo(&path.with_extension("hlo"))?;
    let heads = |m: &Module| {
        let mut pairs = m.frontend_attributes.clone();
        pairs.retain(|name, _| name != "xla.sdy.meshes");
        format!(
            "{} {:?} {:?} {pairs:?}",
            m.name, m.input_output_alias, m.buffer_donors
        )
    };
    let (a, b) = (
        heads(&module) + "\n" + &structure(&module),
        heads(&theirs) + "\n" + &structure(&theirs),
    );
    if a != b {
        return Err(format!("{a}\nwhere jaxlib has\n{b}").into());
    }
    let pairs = ordered(&module).into_iter().zip(ordered(&theirs));
    for (ours, wanted) in pairs.filter(|(_, wanted)| !place(&theirs, *wanted).0.is_empty()) {
        let (ours, wanted) = (place(&module, ours), place(&theirs, wanted));
        if ours != wanted {
            return Err(format!("{ours:?} where jaxlib has {wanted:?}").into());
        }
    }
    Ok(())
}

/// The instructions of a module, but for constants, in an order that follows from its structure.
fn ordered(module: &Module) -> Vec<InstrId> {
    let mut out = Vec::new();
    let mut todo = vec![(module.entry, module.comps[module.entry].root, false)];
    let mut seen: BTreeMap<InstrId, bool> = BTreeMap::new();
    while let Some((comp, id, ready)) = todo.pop() {
        if !ready && seen.insert(id, true).is_none() {
            let instr = &module.instrs[id];
            todo.push((comp, id, true));
            let called = instr.op.called();
            todo.extend(
                called
                    .iter()
                    .rev()
                    .map(|&c| (c, module.comps[c].root, false)),
            );
            todo.extend(instr.operands.iter().rev().map(|&o| (comp, o, false)));
        } else if ready && !matches!(module.instrs[id].op, Op::Constant(_)) {
            out.push(id);
        }
    }
    out
}

/// The name of an instruction's op, and the functions and lines that led to it.
fn place(module: &Module, id: InstrId) -> (String, Vec<String>) {
    let extra = module.instrs[id].extra.as_ref();
    let Some(metadata) = extra.and_then(|e| e.metadata.as_ref()) else {
        return Default::default();
    };
    let index = &module.stack_frames;
    let mut frames = Vec::new();
    let mut frame = metadata.stack_frame_id;
    while frame > 0 && frames.len() < 100 {
        let at = index.stack_frames[frame as usize - 1];
        let place = index.file_locations[at.file_location_id as usize - 1];
        let function = &index.function_names[place.function_name_id as usize - 1];
        let file = &index.file_names[place.file_name_id as usize - 1];
        frames.push(format!("{function} {file}:{}:{}", place.line, place.column));
        frame = at.parent_frame_id;
    }
    (metadata.op_name.clone(), frames)
}

/// A program of dynamic shapes, given the shapes of its arguments, computes what jaxlib computes.
fn dynamic(dir: &Path) -> Result<(), Failed> {
    let spec = fs::read_to_string(dir.join("case.json"))?;
    let case = Case {
        dir: dir.to_path_buf(),
        kind: "dynamic".to_owned(),
        name: String::new(),
        spec: serde_json::from_str(&spec)?,
    };
    let sizes = case.spec["inputs"].as_array().cloned().unwrap_or_default();
    let sizes = sizes.iter().map(|input| {
        let dims = input["shape"].as_array().cloned().unwrap_or_default();
        let dims = dims.iter().filter_map(serde_json::Value::as_u64);
        Argument::Sized(dims.map(|d| d as usize).collect())
    });
    let options = Options {
        arguments: sizes.collect(),
    };
    let module = converted(&read_text(&dir.join("program.mlir"))?, &options)?;
    let inputs = case.inputs(&module)?;
    let result = eval::evaluate(&module, &inputs).map_err(said)?;
    Ok(case.check(&result)?)
}

/// A module without names, metadata and layouts, instructions in the order in which the root needs
/// them: the same for modules that compute the same in the same way.
pub fn structure(module: &Module) -> String {
    let mut out = String::new();
    computation(module, module.entry, &mut out);
    out
}

fn computation(module: &Module, comp: CompId, out: &mut String) {
    let mut numbers: BTreeMap<InstrId, usize> = BTreeMap::new();
    let mut constants: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = 0;
    let mut todo = vec![(module.comps[comp].root, false)];
    let params: Vec<String> = module.comps[comp]
        .params
        .iter()
        .map(|&p| module.shape(p).without_layout().to_string())
        .collect();
    let _ = writeln!(out, "({})", params.join(", "));
    while let Some((id, ready)) = todo.pop() {
        if numbers.contains_key(&id) {
            continue;
        }
        let instr = &module.instrs[id];
        if !ready {
            todo.push((id, true));
            todo.extend(instr.operands.iter().rev().map(|&o| (o, false)));
            continue;
        }
        if let Op::Constant(literal) = &instr.op {
            // Equal constants are one to XLA.
            let text = constant_text(literal);
            if let Some(&known) = constants.get(&text) {
                numbers.insert(id, known);
                continue;
            }
            constants.insert(text, lines);
        }
        let number = lines;
        lines += 1;
        numbers.insert(id, number);
        let operands: Vec<usize> = instr.operands.iter().map(|o| numbers[o]).collect();
        let shape: Shape = instr.shape.without_layout();
        let mut op = instr.op.clone();
        op.for_each_called_mut(&mut |called| *called = CompId::from_index(0));
        let what = match &op {
            Op::Constant(literal) => constant_text(literal),
            Op::Reshape { .. } => "reshape".to_owned(),
            op => format!("{op:?}"),
        };
        let extra = instr.extra.as_ref().map(|extra| {
            let config = String::from_utf8_lossy(&extra.backend_config).into_owned();
            let sharding = extra.sharding.clone();
            format!(
                "{:?} {sharding:?} {config} {:?}",
                extra.frontend_attributes, extra.result_accuracy
            )
        });
        let extra = extra
            .filter(|text| text != "{} None  None")
            .unwrap_or_default();
        let what = without_layouts(&what);
        let _ = writeln!(out, "{number} {shape} {what} {operands:?} {extra}");
        for called in instr.op.called() {
            computation(module, called, out);
        }
    }
}

/// What a constant is, in short.
fn constant_text(literal: &Literal) -> String {
    match literal {
        Literal::Array(array) => {
            let fold =
                |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            let hash = array.bytes().iter().fold(0xcbf2_9ce4_8422_2325, fold);
            format!("constant {} {:?} {hash:x}", array.ty(), array.shape().dims)
        }
        other => without_layouts(&format!("{other:?}")),
    }
}

/// The debug form of an op with the layouts of its shapes left out.
fn without_layouts(what: &str) -> String {
    let mut out = String::new();
    let mut rest = what;
    while let Some(at) = rest.find("layout: Some(Layout {") {
        out.push_str(&rest[..at]);
        let end = rest[at..].find("})").map_or(rest.len(), |n| at + n + 2);
        rest = &rest[end..];
    }
    out + &rest.replace("layout: None", "")
}
