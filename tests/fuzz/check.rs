//! Runs a program on the evaluator and on other engines, and compares.

use libtest_mimic::Failed;
use xla_aot::collective::Topology;
use xla_aot::eval;
use xla_aot::front;
use xla_aot::hlo;
use xla_aot::hlo::Module;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::Literal;
use xla_aot::literal::compare::element_text;
use xla_aot::literal::number;
use xla_aot::literal::number::Number;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;

use super::caught;
use super::program::Accuracy;
use super::program::Door;
use super::program::Line;
use super::program::Program;
use crate::Engine;
use crate::conformance::constants;
use crate::conformance::flatten;
use crate::devices;

/// What is wrong with a program on an engine.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The engine.
    pub engine: String,
    /// What is wrong.
    pub message: String,
}

/// An engine, and how a program comes to its inputs.
#[derive(Clone, Copy)]
pub struct Way {
    /// Name of the engine.
    pub name: &'static str,
    /// The engine.
    pub engine: Engine,
    /// Whether inputs are built in as constants.
    pub built_in: bool,
}

/// The values of all arrays of a program on one device, by name, as the evaluator has them.
pub struct Values(Vec<(usize, ArrayLiteral)>);

impl Values {
    /// The value of that name.
    pub fn get(&self, name: usize) -> &ArrayLiteral {
        let found = self.0.iter().find(|(n, _)| *n == name);
        &found.expect("every array has a value").1
    }

    /// Whether an engine that flushes subnormal numbers may give something else.
    fn has_subnormal(&self) -> bool {
        self.0.iter().any(|(_, value)| {
            let least = match value.ty() {
                PrimitiveType::F64 | PrimitiveType::C128 => f64::MIN_POSITIVE,
                PrimitiveType::F32
                | PrimitiveType::BF16
                | PrimitiveType::C64
                | PrimitiveType::F8E8M0FNU => f64::from(f32::MIN_POSITIVE),
                _ => return false,
            };
            let small = |x: f64| x != 0.0 && x.abs() < least;
            (0..value.len()).any(|i| match number::decode(value.ty(), value.element(i)) {
                Number::Float(x) => small(x),
                Number::Complex(re, im) => small(re) || small(im),
                Number::Int(_) => false,
            })
        })
    }
}

/// A refusal that says so is no fault.
fn is_refusal(message: &str) -> bool {
    message.starts_with("not supported[")
}

fn caught<T>(engine: &str, run: impl FnOnce() -> Result<T, String>) -> Result<T, Fault> {
    let fault = |message| Fault {
        engine: engine.to_owned(),
        message,
    };
    caught::caught(run).unwrap_or_else(Err).map_err(fault)
}

fn module(program: &Program, outputs: &[usize]) -> Result<Module, Fault> {
    let text = program.text(outputs);
    caught("front", || {
        let module = front::read(text.as_bytes(), None).map_err(|e| e.to_string())?;
        hlo::verify::check(&module).map_err(|e| e.to_string())?;
        Ok(module)
    })
}

/// The arguments of a device.
fn arguments(program: &Program, device: usize) -> Vec<Literal> {
    let arrays = program.inputs_of(device).into_iter().map(Literal::Array);
    match program.door {
        Door::Nested => vec![Literal::Tuple(arrays.collect())],
        Door::Tuple | Door::Bare => arrays.collect(),
    }
}

/// The program as one of several devices.
fn together(program: &Program, outputs: &[usize]) -> Result<devices::Program, String> {
    let (replicas, partitions) = program.devices;
    Ok(devices::Program {
        text: program.text(outputs),
        topology: Topology::new(replicas as i64, partitions as i64)?,
        inputs: (0..program.device_count())
            .map(|device| arguments(program, device))
            .collect(),
        expected: Vec::new(),
        error: None,
    })
}

/// Every array of the program, on each device.
///
/// # Errors
/// When the program is not well formed or the evaluator cannot run it.
pub fn evaluate(program: &Program) -> Result<Vec<Values>, Fault> {
    let arrays = program.lines.iter().filter(|line| line.array.is_some());
    let names: Vec<usize> = arrays.map(|line| line.name).collect();
    let module = module(program, &names)?;
    let results = caught("eval", || {
        if program.device_count() == 1 {
            let result = eval::evaluate(&module, &arguments(program, 0));
            return Ok(vec![vec![result.map_err(|e| e.to_string())?]]);
        }
        let results = devices::evaluate(&together(program, &names)?);
        results.map_err(|e| e.message().unwrap_or_default().to_owned())
    })?;
    let values = |result: Vec<Literal>| {
        let leaves = arrays_of(&result);
        Values(names.iter().copied().zip(leaves).collect())
    };
    Ok(results.into_iter().map(values).collect())
}

fn arrays_of(results: &[Literal]) -> Vec<ArrayLiteral> {
    let mut leaves = Vec::new();
    results
        .iter()
        .for_each(|result| flatten(result, &mut leaves));
    leaves.into_iter().cloned().collect()
}

/// How a program fares.
pub enum Outcome {
    /// All ways agree.
    Agrees,
    /// Somebody refuses it and says why.
    Refused(String),
}

/// Runs a program all ways.
///
/// # Errors
/// The first way that gives something else than the evaluator, and what.
pub fn check(program: &Program, ways: &[Way]) -> Result<Outcome, Fault> {
    let refused = |fault: Fault| {
        if is_refusal(&fault.message) {
            Ok(Outcome::Refused(format!(
                "{}: {}",
                fault.engine, fault.message
            )))
        } else {
            Err(fault)
        }
    };
    let values = match evaluate(program) {
        Ok(values) => values,
        Err(fault) => return refused(fault),
    };
    let flushed = values.iter().any(Values::has_subnormal);
    let mut outcome = Outcome::Agrees;
    for way in ways {
        if flushed && way.name != "sim" {
            continue;
        }
        match run(program, *way) {
            Ok(got) => {
                for (values, got) in values.iter().zip(&got) {
                    compare(program, values, got).map_err(|message| Fault {
                        engine: way_name(way),
                        message,
                    })?;
                }
            }
            Err(fault) => outcome = refused(fault)?,
        }
    }
    Ok(outcome)
}

fn way_name(way: &Way) -> String {
    let prefix = if way.built_in { "const-" } else { "" };
    format!("{prefix}{}", way.name)
}

/// The results on each device; of several devices none where the engine has one only.
fn run(program: &Program, way: Way) -> Result<Vec<Vec<ArrayLiteral>>, Fault> {
    let module = module(program, &program.outputs)?;
    let several: Option<devices::Engine> = match way.name {
        "native" => Some(devices::on_cpu),
        "sim" => Some(devices::on_gpus),
        _ => None,
    };
    let results = caught(&way_name(&way), || {
        let said = |e: Failed| e.message().unwrap_or_default().to_owned();
        if program.device_count() > 1 {
            return match several {
                Some(run) if !way.built_in => {
                    run(&together(program, &program.outputs)?).map_err(said)
                }
                _ => Ok(Vec::new()),
            };
        }
        // A constant size that is the bound makes a dimension static, and so is another program.
        let is_dynamic = |line: &Line| line.array.as_ref().is_some_and(ArrayShape::is_dynamic);
        if way.built_in && program.lines.iter().any(is_dynamic) {
            return Ok(Vec::new());
        }
        let inputs = arguments(program, 0);
        let run = if way.built_in {
            (way.engine)(constants::built_in(module, inputs), &[])
        } else {
            (way.engine)(module, &inputs)
        };
        Ok(vec![vec![run.map_err(said)?]])
    })?;
    Ok(results.iter().map(|result| arrays_of(result)).collect())
}

fn compare(program: &Program, values: &Values, got: &[ArrayLiteral]) -> Result<(), String> {
    let results = program.results();
    if results.len() != got.len() {
        return Err("another number of results".to_owned());
    }
    for (line, got) in results.into_iter().zip(got) {
        let wanted = values.get(line.name);
        if got.shape().dims != wanted.shape().dims {
            let (got, wanted) = (got.shape(), wanted.shape());
            return Err(format!("v{} is {got} and should be {wanted}", line.name));
        }
        if let Some(i) = first_difference(line, got, wanted) {
            let text = |value: &ArrayLiteral| element_text(value.ty(), value.element(i));
            return Err(format!(
                "v{}: element {i} is {} and should be {}",
                line.name,
                text(got),
                text(wanted)
            ));
        }
    }
    Ok(())
}

fn first_difference(line: &Line, got: &ArrayLiteral, wanted: &ArrayLiteral) -> Option<usize> {
    if got.ty() != wanted.ty() {
        return Some(0);
    }
    let ty = got.ty();
    let parts = |value: &ArrayLiteral, i: usize| match number::decode(ty, value.element(i)) {
        Number::Float(x) => vec![x],
        Number::Complex(re, im) => vec![re, im],
        Number::Int(_) => Vec::new(),
    };
    let largest = match line.accuracy {
        Accuracy::Spread(_) => (0..wanted.len())
            .flat_map(|i| parts(wanted, i))
            .filter(|x| x.is_finite())
            .fold(1.0f64, |m, x| m.max(x.abs())),
        _ => 0.0,
    };
    let agrees = |i: usize| {
        if got.element(i) == wanted.element(i) {
            return true;
        }
        let pairs: Vec<(f64, f64)> = parts(got, i).into_iter().zip(parts(wanted, i)).collect();
        let same = |(a, b): &(f64, f64)| {
            (a.is_nan() && b.is_nan()) || (a == b && a.is_sign_negative() == b.is_sign_negative())
        };
        let close =
            |(a, b): &(f64, f64), room: f64| same(&(*a, *b)) || a == b || (a - b).abs() <= room;
        // Of a complex number, a part is as near as the whole is large.
        let wanted = parts(wanted, i);
        let size = wanted.iter().fold(0.0f64, |size, x| size.hypot(*x));
        let size = |part: f64| {
            if size.is_finite() { size } else { part.abs() }
        };
        let least = match ty {
            PrimitiveType::F64 | PrimitiveType::C128 => 1e-307,
            PrimitiveType::F16 => 1e-7,
            _ => 2e-38,
        };
        !pairs.is_empty()
            && match line.accuracy {
                Accuracy::Bits => false,
                Accuracy::Exact => pairs.iter().all(same),
                Accuracy::Near(by) => pairs.iter().all(|p| close(p, by * size(p.1) + least)),
                Accuracy::Spread(by) => pairs.iter().all(|p| close(p, by * largest + least)),
            }
    };
    (0..got.len()).find(|&i| !agrees(i))
}
