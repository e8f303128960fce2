//! What modules of HLO and of MLIR say of their parameters and results.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::json;

use crate::driver::arrays;
use crate::driver::describe::Description;
use crate::driver::describe::Head;
use crate::driver::describe::Row;
use crate::hlo;
use crate::hlo::AliasKind;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::visit;
use crate::mlir;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::OpRef;
use crate::mlir::Type;
use crate::shape::ArrayShape;
use crate::shape::Shape;

/// Of a module of HLO.
pub(super) fn of_hlo(module: &Module) -> Description {
    let program = module.entry_layout();
    let entry = module.entry_comp();
    let sharding = |id| {
        let extra = module.instr(id).extra.as_ref();
        let sharding = extra.and_then(|extra| extra.sharding.as_ref());
        sharding.map(hlo::print::sharding)
    };
    let donations = donations(module);
    let (mut inputs, mut outputs) = (0, 0);
    let parameters = program.parameters.iter().zip(&entry.params).enumerate();
    let parameters = parameters.map(|(number, (shape, &id))| {
        let name = program.parameter_names.get(number);
        Row {
            places: places("in", shape, &mut inputs),
            name: name.unwrap_or(&module.instr(id).name).clone(),
            ty: shown(shape),
            sharding: sharding(id),
            donated: donations.get(&number).map(|words| words.join(", ")),
            is_unused: false,
            parts: None,
        }
    });
    let parameters = parameters.collect();
    let result = Row {
        places: places("out", &program.result, &mut outputs),
        ty: shown(&program.result),
        sharding: sharding(entry.root),
        ..Row::default()
    };
    let comps = visit::reachable(module);
    let instrs = || comps.iter().flat_map(|&comp| &module.comps[comp].instrs);
    let calls = instrs().filter_map(|&id| match &module.instr(id).op {
        Op::CustomCall(call) => Some(call.target.as_str()),
        _ => None,
    });
    let lines = lines(
        &module.name,
        module.config.replica_count,
        module.config.num_partitions,
        &calls.collect(),
        instrs().count(),
    );
    Description {
        head: Head {
            title: String::new(),
            lines,
        },
        parameters,
        results: vec![result],
    }
}

/// What is said of a program as a whole, in either form.
fn lines(
    name: &str,
    replicas: i64,
    partitions: i64,
    custom_calls: &BTreeSet<&str>,
    instructions: usize,
) -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("name", json!(name)),
        ("replicas", json!(replicas.max(1))),
        ("partitions", json!(partitions.max(1))),
        ("custom_calls", json!(custom_calls)),
        ("instructions", json!(instructions)),
    ]
}

/// What becomes of the memory of each parameter that is given away.
fn donations(module: &Module) -> BTreeMap<usize, Vec<String>> {
    let mut out: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (result, target) in &module.input_output_alias {
        let word = match target.kind {
            AliasKind::May => "may be donated",
            AliasKind::Must => "must be donated",
        };
        let place = match result.as_slice() {
            [] => "the result".to_owned(),
            index => format!("result {index:?}"),
        };
        let words = out.entry(target.parameter).or_default();
        words.push(format!("{word} to {place}"));
    }
    for (parameter, _) in &module.buffer_donors {
        let words = out.entry(*parameter).or_default();
        let word = "may be donated".to_owned();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    out
}

/// Names of the arrays in a shape, counted on in `next`.
fn places(prefix: &str, shape: &Shape, next: &mut usize) -> Vec<String> {
    let leaves = arrays::array_leaves([shape]).into_iter();
    let places = leaves.map(|_| {
        *next += 1;
        format!("{prefix}{}", *next - 1)
    });
    places.collect()
}

/// A shape, with layouts where they are not row-major.
fn shown(shape: &Shape) -> String {
    let mut shape = shape.clone();
    shape.for_each_array_mut(&mut |array| {
        let plain = ArrayShape {
            layout: None,
            ..array.clone()
        };
        if array.layout_or_default() == plain.layout_or_default() {
            array.layout = None;
        }
    });
    shape.to_string()
}

/// Of a module of StableHLO.
pub(super) fn of_mlir(module: &mlir::Module) -> Description {
    let top = module.blocks[module.body()].ops.iter();
    let main = module.symbol("main").or_else(|| {
        let is_function = |id: &&mlir::OpId| module.ops[**id].name.as_str() == "func.func";
        top.clone().copied().find(|id| is_function(&id))
    });
    let calls = module.ops.values().filter_map(|op| {
        let target = op.attrs.get("call_target_name")?;
        target.as_str()
    });
    let root = module.op(module.root);
    let count = |name: &str| root.attr(name).and_then(Attr::as_int).unwrap_or(1);
    let lines = lines(
        root.attr("sym_name").and_then(Attr::as_str).unwrap_or(""),
        count("mhlo.num_replicas"),
        count("mhlo.num_partitions"),
        &calls.collect(),
        module.ops.len(),
    );
    let head = Head {
        title: String::new(),
        lines,
    };
    let Some(main) = main.map(|main| module.op(main)) else {
        return Description {
            head,
            ..Description::default()
        };
    };
    let ty = main.attr_type("function_type").ok();
    let ty = ty.and_then(Type::as_function);
    let (inputs, results) = match ty {
        Some(ty) => (&ty.inputs[..], &ty.results[..]),
        None => (&[][..], &[][..]),
    };
    Description {
        head,
        parameters: rows(main, "in", inputs, "arg_attrs"),
        results: rows(main, "out", results, "res_attrs"),
    }
}

fn rows(main: OpRef<'_>, prefix: &str, types: &[Type], attrs: &str) -> Vec<Row> {
    let attrs = main.attr(attrs).and_then(Attr::as_array).unwrap_or(&[]);
    let mut next = 0;
    let rows = types.iter().enumerate().map(|(i, ty)| {
        let attrs = attrs.get(i).and_then(Attr::as_dict);
        let text = |name: &str| Some(attrs?.get(name)?.as_str()?.to_owned());
        let places = match ty {
            Type::Tensor(_) => {
                next += 1;
                vec![format!("{prefix}{}", next - 1)]
            }
            _ => Vec::new(),
        };
        Row {
            places,
            name: text("jax.result_info")
                .or_else(|| text("jax.arg_info"))
                .unwrap_or_default(),
            ty: mlir::print::ty(ty),
            sharding: attrs.and_then(sharding),
            donated: attrs.and_then(donation),
            is_unused: false,
            parts: None,
        }
    });
    rows.collect()
}

/// The sharding that attributes say.
fn sharding(attrs: &AttrMap) -> Option<String> {
    let attr = attrs.get("sdy.sharding").or(attrs.get("mhlo.sharding"))?;
    match attr.as_str() {
        Some(text) => Some(text.to_owned()),
        None => Some(mlir::print::attr(attr)),
    }
}

/// What attributes say of the memory of a parameter.
fn donation(attrs: &AttrMap) -> Option<String> {
    if let Some(result) = attrs.get("tf.aliasing_output").and_then(Attr::as_int) {
        return Some(format!("may be donated to result {result}"));
    }
    let donor = attrs.get("jax.buffer_donor")?;
    matches!(donor, Attr::Bool(true) | Attr::Unit).then(|| "may be donated".to_owned())
}
