//! What must hold of bundles that cannot be run here, or whatever they compute: GPU code assembles,
//! bytes repeat.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::bundle;
use xla_aot::driver::compile;
use xla_aot::driver::compile::Assembler;
use xla_aot::driver::compile::CompileOptions;
use xla_aot::driver::observe::Unobserved;
use xla_aot::driver::targets;
use xla_aot::driver::targets::TargetRequest;
use xla_aot::executable::Code;
use xla_aot::executable::check;

use super::Case;

/// A GPU of each compute capability that ships.
const GPUS: &[&str] = &[
    "p100",
    "v100",
    "a100_sxm_80",
    "a6000",
    "h100_sxm",
    "b200",
    "b300",
    "rtx6000pro",
];

/// One of so many pairs of model and GPU is compiled, unless `XLA_AOT_ALL` is set.
const GPU_SHARE: usize = 5;

/// One of so many programs is compiled twice, unless `XLA_AOT_ALL` is set.
const REPEAT_SHARE: usize = 12;

fn failed(d: Box<xla_aot::base::Diagnostic>) -> Failed {
    Failed::from(d.to_string())
}

/// The trials over these programs.
pub fn trials(cases: &[(String, Arc<Case>)]) -> Vec<Trial> {
    let all = std::env::var_os("XLA_AOT_ALL").is_some();
    let mut trials = Vec::new();
    let models = cases.iter().filter(|(_, case)| case.kind == "model");
    for (m, (name, case)) in models.enumerate() {
        for (g, gpu) in GPUS.iter().enumerate() {
            if all || (m + g) % GPU_SHARE == 0 {
                let case = Arc::clone(case);
                trials.push(Trial::test(format!("gpu/{gpu}/{name}"), move || {
                    assembles(&case, gpu)
                }));
            }
        }
    }
    for (i, (name, case)) in cases.iter().enumerate() {
        let compiles =
            !case.is_large() && case.kind != "lapack" && case.name != "cholesky_logdet_gp";
        if compiles && (all || i % REPEAT_SHARE == 0) {
            let case = Arc::clone(case);
            trials.push(Trial::test(format!("repeat/{name}"), move || {
                repeats(&case)
            }));
        }
    }
    trials
}

/// The model compiles for the GPU, its PTX assembles, and the bundle keeps its rules.
fn assembles(case: &Case, gpu: &str) -> Result<(), Failed> {
    let input = fs::read(case.dir.join("program.pb"))?;
    let request = TargetRequest {
        name: Some(gpu.to_owned()),
        ..TargetRequest::default()
    };
    let assembler = std::env::var_os("XLA_AOT_PTXAS")
        .map_or(Assembler::Search, |path| Assembler::At(PathBuf::from(path)));
    let options = CompileOptions {
        jobs: 1,
        assembler,
        ..CompileOptions::new(targets::resolve(&request).map_err(failed)?)
    };
    let compiled = compile::compile(&input, &options, &mut Unobserved).map_err(failed)?;
    let bytes = compiled.bundle.ok_or("no bundle")?;
    let bundle = bundle::read(&bytes).map_err(failed)?;
    let is_cubin = |code: &Code| matches!(code, Code::Cubin(_));
    let kernels = bundle
        .executable
        .images
        .iter()
        .filter(|image| !image.kernels.is_empty());
    if !kernels.clone().all(|image| is_cubin(&image.code)) {
        return Err("a kernel was not assembled: set XLA_AOT_PTXAS to NVIDIA's ptxas".into());
    }
    match check::check(&bundle.executable).first() {
        Some(finding) => Err(finding.to_string().into()),
        None => Ok(()),
    }
}

/// The bundle's bytes do not depend on the number of threads, nor on what was compiled before.
fn repeats(case: &Case) -> Result<(), Failed> {
    let input = fs::read(case.dir.join("program.pb"))?;
    let request = TargetRequest {
        cpu: Some("x86-64-v3".to_owned()),
        ..TargetRequest::default()
    };
    let mut bundles = Vec::new();
    for jobs in [1, 2] {
        let target = targets::resolve(&request).map_err(failed)?;
        let options = CompileOptions {
            jobs,
            ..CompileOptions::new(target)
        };
        let compiled = compile::compile(&input, &options, &mut Unobserved).map_err(failed)?;
        bundles.push(compiled.bundle.ok_or("no bundle")?);
    }
    if bundles[0] == bundles[1] {
        Ok(())
    } else {
        Err("two compilations gave different bytes".into())
    }
}
