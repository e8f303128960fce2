//! Elementwise ops on every value of the small types and dense samples of the others, on each engine,
//! against exact arithmetic. What a function may be off is what `src/hlo/ACCURACY.md` says;
//! `XLA_AOT_MEASURE=1` writes that file and the table of types anew from what is measured.

mod measure;
mod reference;
mod status;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::LazyLock;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use measure::Worst;
use measure::decode_all;
use reference::Tables;
use xla_aot::front;
use xla_aot::hlo;
use xla_aot::hlo::Module;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::Literal;
use xla_aot::literal::number::Number;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use crate::ops;

/// A way to run a program on its arguments.
pub type Engine = fn(Module, &[Literal]) -> Result<Literal, Failed>;

/// Where the bounds are.
const BOUNDS: &str = "src/hlo/ACCURACY.md";

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

/// What functions were off by, by op and type, and where.
pub type Accuracy = BTreeMap<(String, &'static str), (f64, String)>;

/// What they may be off by.
type Bounds = BTreeMap<(String, &'static str), f64>;

/// One trial for each engine, kind of op and element type.
pub fn trials(engines: &'static [(&'static str, Engine)]) -> Vec<Trial> {
    let bounds = Arc::new(read_bounds());
    let mut trials = Vec::new();
    for (engine, run) in engines.iter().filter(|(name, _)| *name != "qemu") {
        for (group, check) in GROUPS {
            for &ty in PrimitiveType::ALL {
                let bounds = Arc::clone(&bounds);
                let name = format!("exact/{engine}/{group}/{ty}");
                trials.push(Trial::test(name, move || {
                    within(&check(*run, ty)?, &bounds)
                }));
            }
        }
    }
    trials.extend(status::trials(engines));
    trials
}

/// A kind of op: measures it on an engine for a type. What admits no rounding fails by itself.
type Check = fn(Engine, PrimitiveType) -> Result<Accuracy, Failed>;

const GROUPS: &[(&str, Check)] = &[
    ("unary", unary),
    ("binary", binary),
    ("convert", convert),
    ("points", points),
];

fn within(measured: &Accuracy, bounds: &Bounds) -> Result<(), Failed> {
    let mut off = String::new();
    for (key, (worst, at)) in measured {
        let bound = bounds.get(key).copied().unwrap_or(0.0);
        if *worst > bound {
            let (op, ty) = key;
            writeln!(
                off,
                "{op} of {ty} is off by {worst} ulp, {BOUNDS} says {bound}: {at}"
            )
            .unwrap();
        }
    }
    if off.is_empty() {
        Ok(())
    } else {
        Err(off.into())
    }
}

/// Rows `| op | type | ulp |`.
fn read_bounds() -> Bounds {
    let text = fs::read_to_string(BOUNDS).unwrap_or_default();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, op, ty, ulp, _] = cells[..] else {
            return None;
        };
        let ty = PrimitiveType::ALL.iter().find(|t| t.name() == ty)?;
        Some(((op.to_owned(), ty.name()), ulp.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

/// Measures everything and writes the file of bounds, when that is asked for.
pub fn bless(engines: &[(&str, Engine)]) -> Result<(), Failed> {
    if std::env::var_os("XLA_AOT_MEASURE").is_none() {
        return Ok(());
    }
    let mut worst = Bounds::new();
    for (engine, run) in engines.iter().filter(|(name, _)| *name != "qemu") {
        for (group, check) in GROUPS {
            for &ty in PrimitiveType::ALL {
                let found = check(*run, ty);
                let found = found.map_err(|e| format!("{engine}/{group}/{ty}: {e:?}"))?;
                for (key, (ulp, _)) in found {
                    let entry = worst.entry(key).or_default();
                    *entry = entry.max(ulp);
                }
            }
        }
    }
    let text = fs::read_to_string(BOUNDS)?;
    let head = text.split("| op |").next().unwrap_or_default();
    let mut out = format!("{head}| op | type | worst ulp |\n|---|---|---|\n");
    for ((op, ty), ulp) in worst.iter().filter(|(_, ulp)| **ulp > 0.0) {
        writeln!(out, "| {op} | {ty} | {ulp} |").unwrap();
    }
    fs::write(BOUNDS, out)?;
    status::bless(engines)
}

/// A module of one entry that applies each op that HLO has for the type, and those ops.
fn program(
    parameters: &str,
    ops: impl Iterator<Item = (String, String)>,
) -> Result<Option<(Module, Vec<String>)>, Failed> {
    let whole = |bodies: &[String], results: &[String]| {
        let shapes: Vec<&str> = bodies
            .iter()
            .map(|b| b.split(' ').next().unwrap())
            .collect();
        let mut text = format!("HloModule exact\n\nENTRY e {{\n{parameters}");
        for (i, body) in bodies.iter().enumerate() {
            writeln!(text, "  r{i} = {body}").unwrap();
        }
        let operands: Vec<String> = (0..results.len()).map(|i| format!("r{i}")).collect();
        let (shapes, operands) = (shapes.join(", "), operands.join(", "));
        writeln!(text, "  ROOT t = ({shapes}) tuple({operands})\n}}").unwrap();
        text
    };
    let parse = |text: &str| {
        let module = front::hlo_text::parse(text)?;
        hlo::verify::check(&module)?;
        Ok::<_, Box<xla_aot::base::Diagnostic>>(module)
    };
    let legal: Vec<(String, String)> = ops
        .filter(|(op, body)| {
            parse(&whole(std::slice::from_ref(body), std::slice::from_ref(op))).is_ok()
        })
        .collect();
    if legal.is_empty() {
        return Ok(None);
    }
    let (names, bodies): (Vec<_>, Vec<_>) = legal.into_iter().unzip();
    let module = parse(&whole(&bodies, &names)).map_err(|d| Failed::from(d.to_string()))?;
    Ok(Some((module, names)))
}

/// Runs a program of several results.
fn results(
    engine: Engine,
    module: Module,
    inputs: &[ArrayLiteral],
) -> Result<Vec<ArrayLiteral>, Failed> {
    let inputs: Vec<Literal> = inputs.iter().cloned().map(Literal::Array).collect();
    let Literal::Tuple(results) = engine(module, &inputs)? else {
        return Err("the result is no tuple".into());
    };
    let arrays = results.into_iter().map(|literal| match literal {
        Literal::Array(array) => Ok(array),
        Literal::Tuple(_) | Literal::Token => Err("a result is no array".into()),
    });
    arrays.collect()
}

fn unary(engine: Engine, ty: PrimitiveType) -> Result<Accuracy, Failed> {
    let mut accuracy = Accuracy::new();
    if ty.kind() == ElementKind::Complex || ty == PrimitiveType::F64 {
        return Ok(accuracy);
    }
    let values = measure::sample(ty);
    let n = values.len();
    let ops = ops::UNARY.iter().map(|op| {
        let (op, result) = (op.name, ops::result(op.name, ty));
        (op.to_owned(), format!("{result}[{n}] {op}(p)"))
    });
    let parameters = format!("  p = {ty}[{n}] parameter(0)\n");
    let Some((module, names)) = program(&parameters, ops)? else {
        return Ok(accuracy);
    };
    let inputs = decode_all(&values);
    for (op, got) in names.iter().zip(results(engine, module, &[values])?) {
        let mut worst = Worst::new(got.ty());
        for (x, got) in inputs.iter().zip(decode_all(&got)) {
            let want = |x: Number| match x {
                Number::Int(x) => Some(Number::Int(reference::cut(
                    ty,
                    reference::unary_int(op, ty, x)?,
                ))),
                Number::Float(x) if op == "is-finite" => Some(Number::Int(x.is_finite().into())),
                Number::Float(x) => Some(Number::Float(reference::nearest(
                    &TABLES,
                    ty,
                    reference::unary(op, x)?,
                ))),
                Number::Complex(..) => None,
            };
            let wanted = want(*x).ok_or_else(|| format!("no reference for {op} of {ty}"))?;
            let flushed = measure::flushed(ty, *x).and_then(want);
            worst.add(&[*x], wanted, flushed, got);
        }
        worst.finish(op, ty, &mut accuracy)?;
    }
    Ok(accuracy)
}

fn binary(engine: Engine, ty: PrimitiveType) -> Result<Accuracy, Failed> {
    let mut accuracy = Accuracy::new();
    if ty.kind() == ElementKind::Complex {
        return Ok(accuracy);
    }
    let (left, right) = measure::grid(ty);
    let n = left.len();
    let arithmetic = ops::BINARY.iter().map(|op| {
        let op = op.name;
        (op.to_owned(), format!("{ty}[{n}] {op}(a, b)"))
    });
    let comparisons = ops::DIRECTIONS.iter().flat_map(|direction| {
        let compare = format!("pred[{n}] compare(a, b), direction={direction}");
        let total = format!("{compare}, type=TOTALORDER");
        let plain = (format!("compare {direction}"), compare);
        let total = (format!("compare {direction} total"), total);
        if ty.is_float() {
            vec![plain, total]
        } else {
            vec![plain]
        }
    });
    let parameters = format!("  a = {ty}[{n}] parameter(0)\n  b = {ty}[{n}] parameter(1)\n");
    let Some((module, names)) = program(&parameters, arithmetic.chain(comparisons))? else {
        return Ok(accuracy);
    };
    let pairs: Vec<(Number, Number)> = decode_all(&left)
        .into_iter()
        .zip(decode_all(&right))
        .collect();
    for (op, got) in names.iter().zip(results(engine, module, &[left, right])?) {
        let mut worst = Worst::new(got.ty());
        for ((a, b), got) in pairs.iter().zip(decode_all(&got)) {
            let want = |a: Number, b: Number| -> Option<Number> {
                if let Some(direction) = op.strip_prefix("compare ") {
                    return Some(Number::Int(measure::compare(direction, a, b).into()));
                }
                match (a, b) {
                    (Number::Int(a), Number::Int(b)) => {
                        let value = reference::binary_int(op, ty, a, b)?;
                        Some(Number::Int(reference::cut(ty, value)))
                    }
                    (Number::Float(a), Number::Float(b)) => {
                        let value = reference::binary(op, a, b)?;
                        Some(Number::Float(reference::nearest(&TABLES, ty, value)))
                    }
                    _ => None,
                }
            };
            let wanted = want(*a, *b).ok_or_else(|| format!("no reference for {op} of {ty}"))?;
            let small = |x| measure::flushed(ty, x).unwrap_or(x);
            let flushed = (ty.is_float())
                .then(|| want(small(*a), small(*b)))
                .flatten();
            worst.add(&[*a, *b], wanted, flushed, got);
        }
        worst.finish(op, ty, &mut accuracy)?;
    }
    Ok(accuracy)
}

fn convert(engine: Engine, from: PrimitiveType) -> Result<Accuracy, Failed> {
    let mut accuracy = Accuracy::new();
    let values = measure::sample(from);
    let n = values.len();
    let ops = PrimitiveType::ALL
        .iter()
        .map(|to| (to.name().to_owned(), format!("{to}[{n}] convert(p)")));
    let parameters = format!("  p = {from}[{n}] parameter(0)\n");
    let Some((module, names)) = program(&parameters, ops)? else {
        return Ok(accuracy);
    };
    let inputs = decode_all(&values);
    for (to, got) in names.iter().zip(results(engine, module, &[values])?) {
        let to = PrimitiveType::ALL
            .iter()
            .find(|ty| ty.name() == to)
            .unwrap();
        let mut worst = Worst::new(*to);
        for (x, got) in inputs.iter().zip(decode_all(&got)) {
            let want = |x| reference::convert(&TABLES, x, *to);
            let flushed = measure::flushed(from, *x).map(want);
            worst.add(&[*x], want(*x), flushed, got);
        }
        worst.finish(&format!("convert to {to}"), from, &mut accuracy)?;
    }
    Ok(accuracy)
}

/// Functions whose right values are stored: see `points.py`.
fn points(engine: Engine, ty: PrimitiveType) -> Result<Accuracy, Failed> {
    let mut accuracy = Accuracy::new();
    let stored = include_str!("points.txt");
    let mut by_op: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for line in stored.lines() {
        let mut words = line.split(' ');
        let (op, of) = (words.next().unwrap(), words.next().unwrap());
        if of == ty.name() {
            let bits = words.map(|word| f64::from_bits(u64::from_str_radix(word, 16).unwrap()));
            by_op.entry(op).or_default().push(bits.collect());
        }
    }
    let parts = if ty.kind() == ElementKind::Complex {
        2
    } else {
        1
    };
    for (op, points) in by_op {
        let n = points.len();
        let arguments = (points[0].len() - parts) / parts;
        let column = |at: usize| -> Vec<Number> {
            points
                .iter()
                .map(|row| measure::number(&row[at * parts..][..parts]))
                .collect()
        };
        let inputs: Vec<ArrayLiteral> = (0..arguments)
            .map(|at| measure::array(ty, column(at)))
            .collect();
        let result = ops::result(op, ty);
        let parameters: String = (0..arguments)
            .map(|at| format!("  p{at} = {ty}[{n}] parameter({at})\n"))
            .collect();
        let names = ["p0", "p0, p1"][arguments - 1];
        let body = (op.to_owned(), format!("{result}[{n}] {op}({names})"));
        let Some((module, _)) = program(&parameters, std::iter::once(body))? else {
            continue;
        };
        let got = results(engine, module, &inputs)?.remove(0);
        let mut worst = Worst::new(got.ty());
        let columns: Vec<Vec<Number>> = (0..arguments).map(column).collect();
        for (i, (row, got)) in points.iter().zip(decode_all(&got)).enumerate() {
            let want = measure::number(&row[arguments * parts..]);
            let want = match want {
                Number::Complex(re, 0.0) if op == "abs" => Number::Float(re),
                other => other,
            };
            let shown: Vec<Number> = columns.iter().map(|c| c[i]).collect();
            worst.add(&shown, want, None, got);
        }
        worst.finish(op, ty, &mut accuracy)?;
    }
    Ok(accuracy)
}
