//! Finding the rewrite that makes a program wrong.
//!
//! The program is compiled and run with ever fewer optional rewrites and compared with the
//! evaluator, by halving; the last rewrite of the smallest wrong compilation is the guilty one.
//! Where the program is wrong without any optional rewrite, the evaluator runs the module after
//! each pass, which tells a pass that breaks it from what comes after the passes.

use crate::base::Result;
use crate::bundle;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFile;
use crate::driver::arrays::Partition;
use crate::driver::arrays::array_leaves;
use crate::driver::closeness::Closeness;
use crate::driver::closeness::Making;
use crate::driver::compile;
use crate::driver::compile::CompileOptions;
use crate::driver::compile::Rewrite;
use crate::driver::evaluate::Evaluation;
use crate::driver::observe::Unobserved;
use crate::driver::run::LoadOptions;
use crate::driver::run::Session;
use crate::front;
use crate::hlo::Module;
use crate::literal::ArrayLiteral;
use crate::literal::number;
use crate::literal::number::Number;
use crate::passes;
use crate::passes::Changed;
use crate::passes::PassObserver;
use crate::passes::PassOptions;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;

/// What to look into.
#[derive(Debug)]
pub struct BisectRequest {
    /// How the program is compiled; its fuel is where the search begins.
    pub compile: CompileOptions,
    /// How it is loaded.
    pub load: LoadOptions,
    /// Arrays to run on; made up when there are none.
    pub inputs: Vec<ArrayFile>,
    /// How close results must be.
    pub closeness: Closeness,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The program gives what the evaluator gives.
    Agrees {
        /// Optional rewrites it was compiled with.
        rewrites: u64,
    },
    /// One rewrite makes it wrong.
    Rewrite {
        /// The rewrite.
        rewrite: Rewrite,
        /// How the results differ.
        difference: String,
    },
    /// It is wrong without any optional rewrite.
    Required {
        /// The pass after which the evaluator gives something else; none when the passes keep what
        /// the program means, and what comes after them does not.
        pass: Option<&'static str>,
        /// How the results differ.
        difference: String,
    },
}

/// Looks for what makes the program differ from the evaluator.
///
/// # Errors
/// What reading the program and its inputs, and evaluating it, give.
pub fn bisect(program: &[u8], request: &BisectRequest) -> Result<Finding> {
    let evaluation = Evaluation::open(program, &request.compile.input)?;
    let inputs = if request.inputs.is_empty() {
        made_up(&array_leaves(&evaluation.caller().parameters))
    } else {
        let wanted = arrays::inputs(evaluation.caller());
        arrays::read(&request.inputs, "in", &wanted, Partition::ONLY)?
    };
    let wanted = evaluation.run_alike(inputs.clone())?;
    let search = Search {
        program,
        request,
        inputs,
        wanted,
        makings: evaluation.makings(),
    };
    let all = search.attempt(request.compile.rewrites.fuel);
    let Some(difference) = all.difference else {
        return Ok(Finding::Agrees { rewrites: all.made });
    };
    let none = search.attempt(Some(0));
    if let Some(difference) = none.difference {
        let pass = search.guilty_pass(&evaluation)?;
        return Ok(Finding::Required { pass, difference });
    }
    let attempt = &mut |fuel| search.attempt(Some(fuel)).difference;
    let (number, difference) = first_wrong(all.made, difference, attempt);
    let rewrite = search.last_rewrite(number)?;
    Ok(Finding::Rewrite {
        rewrite,
        difference,
    })
}

/// The least number of rewrites with which the program is wrong, and how. It is right with none and
/// wrong with `all`, which is 0 where the compilation failed and told no count.
fn first_wrong(
    all: u64,
    mut difference: String,
    attempt: &mut dyn FnMut(u64) -> Option<String>,
) -> (u64, String) {
    let (mut good, mut bad) = (0, all.max(1));
    let mut is_wrong = all > 0;
    while !is_wrong {
        match attempt(bad) {
            Some(found) => (is_wrong, difference) = (true, found),
            None => (good, bad) = (bad, bad * 2),
        }
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match attempt(middle) {
            Some(found) => (bad, difference) = (middle, found),
            None => good = middle,
        }
    }
    (bad, difference)
}

/// How a compilation and its run went.
struct Attempt {
    made: u64,
    difference: Option<String>,
}

struct Search<'a> {
    program: &'a [u8],
    request: &'a BisectRequest,
    inputs: Vec<ArrayLiteral>,
    /// Of each device.
    wanted: Vec<Vec<ArrayLiteral>>,
    /// How results are made.
    makings: Vec<Making>,
}

impl Search<'_> {
    /// Compiles with that much fuel and runs. What is refused on the way is a difference too.
    fn attempt(&self, fuel: Option<u64>) -> Attempt {
        let mut options = self.request.compile.clone();
        options.rewrites.fuel = fuel;
        let mut made = 0;
        let mut run = || {
            let compiled = compile::compile(self.program, &options, &mut Unobserved)?;
            made = compiled.rewrites.made;
            let Some(bytes) = compiled.bundle else {
                return Ok(None);
            };
            let bundle = bundle::read(&bytes)?;
            let session = Session::of(&bundle, &self.request.load)?;
            self.difference(&session.run_alike(self.inputs.clone())?)
        };
        let difference = run().unwrap_or_else(|refused: Box<_>| Some(refused.to_string()));
        Attempt { made, difference }
    }

    /// How results differ from those wanted.
    fn difference(&self, got: &[Vec<ArrayLiteral>]) -> Result<Option<String>> {
        let verdicts =
            arrays::judge_each(got, &self.wanted, &self.request.closeness, &self.makings)?;
        let bad = verdicts.into_iter().find(|verdict| !verdict.passed);
        Ok(bad.map(|verdict| format!("{}: {}", verdict.name, verdict.text)))
    }

    /// The last rewrite of a compilation with that much fuel.
    fn last_rewrite(&self, fuel: u64) -> Result<Rewrite> {
        let options = PassOptions {
            fuel: Some(fuel),
            ..self.request.compile.rewrites.clone()
        };
        let target = &self.request.compile.target;
        let run = passes::run(self.module()?, target, &options, &mut passes::Unobserved);
        let (_, report) = run?;
        report.last.ok_or_else(|| {
            use crate::base::Diagnostic;
            use crate::base::codes;
            Diagnostic::internal(codes::STAGE, "the rewrites of two compilations differ")
        })
    }

    fn module(&self) -> Result<Module> {
        let mut module = front::import(self.program, &self.request.compile.input)?.module;
        compile::settle_devices(&mut module, &self.request.compile)?;
        Ok(module)
    }

    /// The first pass, without optional rewrites, after which the evaluator gives something else.
    fn guilty_pass(&self, evaluation: &Evaluation) -> Result<Option<&'static str>> {
        let options = PassOptions {
            fuel: Some(0),
            ..self.request.compile.rewrites.clone()
        };
        let mut watch = Watch {
            search: self,
            evaluation,
            is_physical: false,
            guilty: None,
        };
        let target = &self.request.compile.target;
        let run = passes::run(self.module()?, target, &options, &mut watch);
        let guilty = watch.guilty;
        run.map(|_| guilty)
    }
}

/// The pass from which on parameters and results have the dimensions they have in memory.
const MAKES_PHYSICAL: &str = "normalize-layouts";

/// Evaluates the module after each pass.
struct Watch<'a> {
    search: &'a Search<'a>,
    evaluation: &'a Evaluation,
    is_physical: bool,
    guilty: Option<&'static str>,
}

impl PassObserver for Watch<'_> {
    fn after(&mut self, name: &'static str, module: &Module, changed: Changed) {
        self.is_physical |= name == MAKES_PHYSICAL;
        if self.guilty.is_some() || changed == Changed::No {
            return;
        }
        let evaluation = self.evaluation.of_rewritten(module, self.is_physical);
        // What the evaluator lacks, such as calls of library functions, tells nothing.
        let Ok(got) = evaluation.run_alike(self.search.inputs.clone()) else {
            return;
        };
        if !matches!(self.search.difference(&got), Ok(None)) {
            self.guilty = Some(name);
        }
    }
}

/// Small values, the same for the same shapes.
fn made_up(shapes: &[&ArrayShape]) -> Vec<ArrayLiteral> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 40
    };
    let mut array = |shape: &&ArrayShape| {
        let width = shape.ty.byte_width();
        let mut data = vec![0; shape.element_count() * width];
        for out in data.chunks_exact_mut(width.max(1)) {
            let value = next();
            let number = match shape.ty.kind() {
                ElementKind::Pred => Number::Int(i128::from(value % 2)),
                ElementKind::Unsigned => Number::Int(i128::from(value % 4)),
                ElementKind::Signed => Number::Int(i128::from(value % 4) - 2),
                ElementKind::Float => Number::Float(value as f64 / f64::from(1 << 22) - 2.0),
                ElementKind::Complex => {
                    let part = |bits: u64| (bits % 4096) as f64 / 1024.0 - 2.0;
                    Number::Complex(part(value), part(value >> 12))
                }
            };
            number::encode(shape.ty, number, out);
        }
        ArrayLiteral::new((*shape).clone(), data)
    };
    shapes.iter().map(&mut array).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::targets;
    use crate::driver::targets::TargetRequest;

    const PROGRAM: &str = "HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[8] broadcast(zero), dimensions={}
  a = f32[8] subtract(x, zeros)
  b = f32[8] multiply(a, y)
  ROOT c = f32[8] exponential(b)
}
";

    const EXACT: Closeness = Closeness {
        rtol: Some(0.0),
        atol: Some(0.0),
        ulp: 0,
    };

    fn request(closeness: Closeness, fuel: Option<u64>) -> BisectRequest {
        let native = TargetRequest {
            cpu: Some("native".to_owned()),
            ..TargetRequest::default()
        };
        let mut compile = CompileOptions::new(targets::resolve(&native).unwrap());
        compile.rewrites.fuel = fuel;
        BisectRequest {
            compile,
            load: LoadOptions::default(),
            inputs: Vec::new(),
            closeness,
        }
    }

    #[test]
    fn a_sound_program_agrees_and_its_rewrites_are_counted() {
        let closeness = Closeness {
            rtol: Some(1e-5),
            ..Closeness::default()
        };
        let found = |fuel| bisect(PROGRAM.as_bytes(), &request(closeness, fuel)).unwrap();
        let Finding::Agrees { rewrites } = found(None) else {
            panic!("it does not agree");
        };
        assert!(rewrites > 2);
        assert_eq!(found(Some(2)), Finding::Agrees { rewrites: 2 });
    }

    /// Kernels on CPUs flush subnormal numbers, whatever the passes do.
    #[test]
    fn what_comes_after_the_passes_is_told_from_them() {
        let program = "HloModule m
ENTRY e {
  bits = u32[64] parameter(0)
  x = f32[64] bitcast-convert(bits)
  ROOT y = f32[64] add(x, x)
}
";
        let found = bisect(program.as_bytes(), &request(EXACT, None)).unwrap();
        let Finding::Required { pass, difference } = found else {
            panic!("{found:?}");
        };
        assert_eq!(pass, None);
        assert!(difference.starts_with("out0: "));
    }

    #[test]
    fn halving_finds_the_first_wrong_number() {
        for wrong in [1, 2, 37, 100] {
            for all in [0, 100] {
                let attempt = &mut |n: u64| (n >= wrong).then(|| n.to_string());
                let found = first_wrong(all, "100".to_owned(), attempt);
                assert_eq!(found, (wrong, wrong.to_string()));
            }
        }
    }

    #[test]
    fn the_last_rewrite_is_named() {
        let request = request(EXACT, None);
        let search = Search {
            program: PROGRAM.as_bytes(),
            request: &request,
            inputs: Vec::new(),
            wanted: Vec::new(),
            makings: Vec::new(),
        };
        // Unused instructions of two computations at most, then the subtraction of zero.
        let mut rules = (1..10).map_while(|n| search.last_rewrite(n).ok());
        let found = rules
            .find(|rewrite| rewrite.rule == "subtract-zero")
            .unwrap();
        assert_eq!(found.pass, "algebraic");
        assert!(found.instruction.contains("subtract("));
    }
}
