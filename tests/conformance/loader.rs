//! The loader of CUDA programs on simulated devices: several threads at once, memory that is used
//! again and given back, and what is told when a program and a device do not fit.

use std::thread;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::base::Diagnostic;
use xla_aot::base::codes;
use xla_aot::driver::compile;
use xla_aot::driver::compile::CompileOptions;
use xla_aot::driver::observe::Unobserved;
use xla_aot::driver::targets;
use xla_aot::driver::targets::TargetRequest;
use xla_aot::executable::Code;
use xla_aot::executable::Executable;
use xla_aot::front;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::device_form;
use xla_aot::runtime::cuda::Device;
use xla_aot::runtime::cuda::program::Program;
use xla_aot::runtime::custom_call::CustomCalls;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;
use xla_aot::simulator::driver;

use crate::conformance::simulated;
use crate::conformance::simulated::Lease;

/// A loop, a constant, and kernels of several kinds.
const PROGRAM: &str = "HloModule steps

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

body {
  p = (s32[], f32[8,32]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,32] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[32] constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31})
  wide = f32[8,32] broadcast(w), dimensions={1}
  y = f32[8,32] add(x, wide)
  ROOT r = (s32[], f32[8,32]) tuple(j, y)
}

cond {
  p = (s32[], f32[8,32]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8,32] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[8,32]) tuple(zero, x)
  w = (s32[], f32[8,32]) while(t), condition=cond, body=body
  y = f32[8,32] get-tuple-element(w), index=1
  none = f32[] constant(0)
  ROOT s = f32[8] reduce(y, none), dimensions={1}, to_apply=add
}
";

/// Threads that do the same at once.
const THREADS: usize = 6;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, check: fn() -> Result<(), Failed>| {
        Trial::test(format!("loader/{name}"), check)
    };
    vec![
        trial("threads_load_and_run_one_bundle", load_at_once),
        trial("threads_run_one_program", run_at_once),
        trial("memory_is_reused_and_given_back", account),
        trial("what_does_not_fit_is_told", misfits),
        trial("a_process_has_one_kind_of_device", one_kind),
        trial("devices_are_counted", numbers),
    ]
}

fn failed(diagnostic: Box<Diagnostic>) -> Failed {
    Failed::from(diagnostic.to_string())
}

fn build() -> Result<Executable, Failed> {
    let module = front::hlo_text::parse(PROGRAM).map_err(failed)?;
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
    Ok(compiled.executable.ok_or("no executable")?)
}

fn array(dims: &[usize], values: impl Fn(usize) -> f32) -> ArrayLiteral {
    let shape = ArrayShape::new(PrimitiveType::F32, dims.iter().copied());
    let count = dims.iter().product();
    let bytes: Vec<u8> = (0..count).flat_map(|i| values(i).to_le_bytes()).collect();
    device_form::from_device(&bytes, &shape).expect("the bytes of the shape")
}

/// Every element is `seed`: each row's sum is then 32 times that, and three times the constant's.
fn input(seed: usize) -> ArrayLiteral {
    array(&[8, 32], |_| seed as f32)
}

/// Whether these are the sums of the rows.
fn are_sums(results: &[ArrayLiteral], seed: usize) -> bool {
    let wanted = ((32 * seed + 3 * 496) as f32).to_le_bytes().repeat(8);
    let bytes = |array: &ArrayLiteral| device_form::to_device(array, array.shape());
    matches!(results, [sums] if bytes(sums) == wanted)
}

/// Loads and runs, each thread its own.
fn load_at_once() -> Result<(), Failed> {
    let executable = build()?;
    let lease = Lease::take();
    let api = simulated::api()?;
    let work = |seed: usize| -> Result<(), String> {
        let text = |e: Box<Diagnostic>| e.to_string();
        for round in 0..4 {
            let device = Device::open(api, lease.0).map_err(text)?;
            let program =
                Program::load(&executable, &device, &CustomCalls::default()).map_err(text)?;
            let mut bound = program.bind(0, vec![input(seed + round)]).map_err(text)?;
            simulated::execute(&mut bound).map_err(text)?;
            if !are_sums(&bound.outputs().map_err(text)?, seed + round) {
                return Err(format!("another sum in thread {seed}"));
            }
        }
        Ok(())
    };
    at_once(work)?;
    match driver::used_memory(lease.0) {
        0 => Ok(()),
        bytes => Err(format!("{bytes} bytes are left").into()),
    }
}

/// Runs what one thread has loaded, each thread on memory of its own.
fn run_at_once() -> Result<(), Failed> {
    let executable = build()?;
    let lease = Lease::take();
    let device = Device::open(simulated::api()?, lease.0).map_err(failed)?;
    let program = Program::load(&executable, &device, &CustomCalls::default()).map_err(failed)?;
    let work = |seed: usize| -> Result<(), String> {
        let text = |e: Box<Diagnostic>| e.to_string();
        let mut bound = program.bind(0, vec![input(seed)]).map_err(text)?;
        for _ in 0..8 {
            simulated::execute(&mut bound).map_err(text)?;
            if !are_sums(&bound.outputs().map_err(text)?, seed) {
                return Err(format!("another sum in thread {seed}"));
            }
        }
        Ok(())
    };
    at_once(work)
}

fn at_once(work: impl Fn(usize) -> Result<(), String> + Sync) -> Result<(), Failed> {
    let work = &work;
    let found: Vec<Result<(), String>> = thread::scope(|scope| {
        let threads = (0..THREADS).map(|seed| scope.spawn(move || work(seed)));
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|found| found.unwrap_or_else(|_| Err("a panic".to_owned())))
            .collect()
    });
    Ok(found.into_iter().collect::<Result<(), String>>()?)
}

fn account() -> Result<(), Failed> {
    let executable = build()?;
    let lease = Lease::take();
    let used = || driver::used_memory(lease.0);
    assert_eq!(used(), 0);
    let device = Device::open(simulated::api()?, lease.0).map_err(failed)?;
    let program = Program::load(&executable, &device, &CustomCalls::default()).map_err(failed)?;
    let loaded = used();
    // The constant of 128 bytes at least.
    assert!(loaded >= 128, "{loaded}");
    let mut bound = program.bind(0, vec![input(2)]).map_err(failed)?;
    let ready = used();
    // Parameter and result at least, and not much more than the plan.
    let planned: u64 = executable.allocs.values().map(|a| a.size.0).sum();
    let more = executable.allocs.len() as u64;
    assert!(ready - loaded >= 1024 + 32, "{loaded} to {ready}");
    assert!(ready <= planned + more, "{ready} of {planned}");
    for _ in 0..5 {
        simulated::execute(&mut bound).map_err(failed)?;
        assert_eq!(used(), ready);
    }
    assert!(are_sums(&bound.outputs().map_err(failed)?, 2));
    assert_eq!(used(), ready);
    // Inputs that do not fit take nothing.
    assert!(program.bind(0, vec![array(&[8], |_| 0.0)]).is_err());
    assert_eq!(used(), ready);
    drop(bound);
    assert_eq!(used(), loaded);
    drop(program);
    assert_eq!(used(), 0);
    Ok(())
}

fn misfits() -> Result<(), Failed> {
    let executable = build()?;
    let lease = Lease::take();
    let device = Device::open(simulated::api()?, lease.0).map_err(failed)?;
    let sm = target_line(&executable).ok_or("no PTX")?;
    for (from, to, told) in [
        (sm.as_str(), ".target sm_121a", "the PTX is for sm_121a"),
        (".version ", ".version 99.9 //", "99.9"),
        ("ret;", "retire;", "retire"),
        (
            ".visible .entry ",
            ".visible .entry no_",
            "CUDA_ERROR_NOT_FOUND",
        ),
    ] {
        let mut damaged = executable.clone();
        for image in &mut damaged.images {
            if let Code::Ptx(text) = &image.code {
                image.code = Code::Ptx(text.replace(from, to));
            }
        }
        let Err(error) = Program::load(&damaged, &device, &CustomCalls::default()) else {
            return Err(format!("`{to}` is loaded").into());
        };
        assert_eq!(error.code, codes::LOAD, "{error}");
        let text = error.to_string();
        assert!(text.contains(told), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let mut once = lines.clone();
        once.dedup();
        assert_eq!(lines, once, "told twice");
    }
    let mut many = executable.clone();
    many.replicas = 5000;
    let error = Program::load(&many, &device, &CustomCalls::default())
        .map(|_| ())
        .unwrap_err();
    assert!(error.message.contains("5000 devices"), "{error}");
    assert_eq!(driver::used_memory(lease.0), 0);
    Ok(())
}

/// The directive that names the target.
fn target_line(executable: &Executable) -> Option<String> {
    let mut codes = executable.images.iter().map(|image| &image.code);
    codes.find_map(|code| match code {
        Code::Ptx(text) => text
            .lines()
            .find(|line| line.starts_with(".target"))
            .map(str::to_owned),
        Code::Elf(_) | Code::Cubin(_) => None,
    })
}

fn one_kind() -> Result<(), Failed> {
    simulated::api()?;
    let other = driver::Request {
        target: Some("p100".to_owned()),
        ..driver::Request::default()
    };
    let error = xla_aot::runtime::cuda::Api::simulator(&other).map(|_| ());
    let error = error.unwrap_err();
    assert_eq!(error.code, codes::NO_DEVICE);
    assert!(error.message.contains("p100"), "{error}");
    assert!(error.message.contains(&simulated::target()), "{error}");
    Ok(())
}

fn numbers() -> Result<(), Failed> {
    let error = Device::open(simulated::api()?, 1000)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.code, codes::NO_DEVICE);
    assert!(error.message.contains("device 1000"), "{error}");
    Ok(())
}
