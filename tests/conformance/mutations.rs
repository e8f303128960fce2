//! Damaged CUDA programs: a simulated device must find what is wrong, or the results must differ.

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::driver::compile;
use xla_aot::driver::compile::CompileOptions;
use xla_aot::driver::observe::Unobserved;
use xla_aot::driver::targets;
use xla_aot::driver::targets::TargetRequest;
use xla_aot::executable::Code;
use xla_aot::executable::Executable;
use xla_aot::executable::KernelThunk;
use xla_aot::executable::ThunkKind;
use xla_aot::front;
use xla_aot::literal::ArrayLiteral;
use xla_aot::shape::Shape;

use crate::conformance::recipe;
use crate::conformance::simulated;

/// Programs whose kernels share tiles, guard their edges and split their work.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "transpose",
        "HloModule m\nENTRY e { a = f32[200,130] parameter(0)\n \
         ROOT t = f32[130,200] transpose(a), dimensions={1,0} }",
    ),
    (
        "dot",
        "HloModule m\nENTRY e { a = bf16[96,160] parameter(0)\n b = bf16[160,72] parameter(1)\n \
         ROOT d = f32[96,72] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    ),
    (
        "reduce",
        "HloModule m\nadd { x = f32[] parameter(0)\n y = f32[] parameter(1)\n \
         ROOT s = f32[] add(x, y) }\nENTRY e { a = f32[5,3000] parameter(0)\n \
         z = f32[] constant(0)\n ROOT r = f32[5] reduce(a, z), dimensions={1}, to_apply=add }",
    ),
    (
        "elementwise",
        "HloModule m\nENTRY e { a = f32[1001] parameter(0)\n b = f32[1001] parameter(1)\n \
         ROOT s = f32[1001] subtract(a, b) }",
    ),
];

/// Indices that a tile has at least.
const TILE: u64 = 64;

/// One trial for each program and kind of damage.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(name, text) in PROGRAMS {
        for (damage, make) in [
            ("barrier", drop_barriers as fn(&Executable) -> Vec<Damaged>),
            ("bound", widen_bounds),
            ("slice", swap_slices),
            ("grid", shrink_grids),
        ] {
            trials.push(Trial::test(
                format!("mutations/{name}/{damage}"),
                move || check(text, make),
            ));
        }
    }
    trials
}

/// A program with one thing wrong, and what that is.
struct Damaged {
    what: String,
    executable: Executable,
}

fn check(text: &str, damage: fn(&Executable) -> Vec<Damaged>) -> Result<(), Failed> {
    let failed = |diagnostic: Box<xla_aot::base::Diagnostic>| Failed::from(diagnostic.to_string());
    let module = front::hlo_text::parse(text).map_err(failed)?;
    let target = TargetRequest {
        name: Some(simulated::target()),
        ..TargetRequest::default()
    };
    let options = CompileOptions {
        jobs: 1,
        assembler: compile::Assembler::None,
        ..CompileOptions::new(targets::resolve(&target).map_err(failed)?)
    };
    let compiled = compile::build(module, &options, &mut Unobserved).map_err(failed)?;
    let executable = compiled.executable.ok_or("no executable")?;
    let inputs = inputs(&executable)?;
    let wanted = simulated::run(&executable, &inputs)?;
    for damaged in damage(&executable) {
        let same = simulated::run(&damaged.executable, &inputs).is_ok_and(|got| got == wanted);
        if same {
            return Err(format!("nobody noticed: {}", damaged.what).into());
        }
    }
    Ok(())
}

/// Numbers of both signs, no two alike nearby.
fn inputs(executable: &Executable) -> Result<Vec<ArrayLiteral>, Failed> {
    let parameters = executable.signature.program.parameters.iter().enumerate();
    let arrays = parameters.map(|(i, shape)| match shape {
        Shape::Array(array) => {
            let recipe = serde_json::json!({ "dist": "uniform", "lo": -2.0, "hi": 2.0, "seed": i });
            Ok(recipe::make(&recipe, array)?)
        }
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => Err("a parameter is no array".into()),
    });
    arrays.collect()
}

/// A program for each line of PTX that `change` has something else for.
fn edit_lines(executable: &Executable, change: impl Fn(&str) -> Option<String>) -> Vec<Damaged> {
    let mut all = Vec::new();
    for (i, image) in executable.images.iter().enumerate() {
        let Code::Ptx(text) = &image.code else {
            continue;
        };
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let Some(changed) = change(line) else {
                continue;
            };
            let mut edited = lines.clone();
            edited[number] = &changed;
            let mut executable = executable.clone();
            executable.images[i].code = Code::Ptx(edited.join("\n") + "\n");
            all.push(Damaged {
                what: format!("{}, line {}: {}", image.name, number + 1, line.trim()),
                executable,
            });
        }
    }
    all
}

/// Threads no longer wait for each other: tiles are read too early, or overwritten too early.
fn drop_barriers(executable: &Executable) -> Vec<Damaged> {
    edit_lines(executable, |line| {
        let is_barrier = line.trim().starts_with("bar.") || line.trim().starts_with("barrier.");
        is_barrier.then(String::new)
    })
}

/// What lies within a tile behind the last index is taken to be inside. One more index alone need not
/// be seen: of the copies of an unrolled loop only one comes to it.
fn widen_bounds(executable: &Executable) -> Vec<Damaged> {
    edit_lines(executable, |line| {
        let (start, bound) = line.trim().strip_suffix(';')?.rsplit_once(", ")?;
        let is_guard = ["setp.gt.u", "setp.lt.u"]
            .iter()
            .any(|op| start.starts_with(op));
        // A comparison with a small number splits lanes or work, it guards no edge.
        let bound: u64 = bound.parse().ok().filter(|&n| is_guard && n >= 64)?;
        Some(format!("{start}, {};", bound + TILE))
    })
}

fn edit_kernels(
    executable: &Executable,
    change: impl Fn(&mut KernelThunk) -> Option<String>,
) -> Vec<Damaged> {
    let mut all = Vec::new();
    for i in 0..executable.thunks.0.len() {
        let mut executable = executable.clone();
        let thunk = &mut executable.thunks.0[i];
        let origin = thunk.origin.clone();
        let ThunkKind::Kernel(kernel) = &mut thunk.kind else {
            continue;
        };
        if let Some(what) = change(kernel) {
            let what = format!("{origin}: {what}");
            all.push(Damaged { what, executable });
        }
    }
    all
}

/// Two operands change places, or operand and result do.
fn swap_slices(executable: &Executable) -> Vec<Damaged> {
    edit_kernels(executable, |kernel| {
        match (&mut kernel.args[..], &mut kernel.results[..]) {
            ([first, second, ..], _) => std::mem::swap(first, second),
            ([only], [result, ..]) => std::mem::swap(only, result),
            _ => return None,
        }
        Some("slices swapped".to_owned())
    })
}

/// A block less than there is work for.
fn shrink_grids(executable: &Executable) -> Vec<Damaged> {
    edit_kernels(executable, |kernel| {
        let count = &mut kernel.launch.workgroups[0];
        *count = count.checked_sub(1).filter(|&n| n > 0)?;
        Some("a workgroup less".to_owned())
    })
}
