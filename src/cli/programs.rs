//! The verb that compiles, and the by-products that `compile` and `inspect` write.

use std::path::Path;
use std::path::PathBuf;

#[cfg(feature = "compiler")]
use crate::base::Diagnostic;
#[cfg(feature = "compiler")]
use crate::base::Location;
use crate::base::suggest::closest;
use crate::cli::Context;
#[cfg(feature = "compiler")]
use crate::cli::args::BundleFormat;
#[cfg(feature = "compiler")]
use crate::cli::args::Compile;
#[cfg(feature = "compiler")]
use crate::cli::args::DumpAs;
#[cfg(feature = "compiler")]
use crate::cli::args::TargetArgs;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
#[cfg(feature = "compiler")]
use crate::cli::exit::about;
use crate::cli::files;
#[cfg(feature = "compiler")]
use crate::cli::progress::Progress;
#[cfg(feature = "compiler")]
use crate::cli::report;
#[cfg(feature = "compiler")]
use crate::driver::HostMachine;
#[cfg(feature = "compiler")]
use crate::driver::Target;
#[cfg(feature = "compiler")]
use crate::driver::compile;
#[cfg(feature = "compiler")]
use crate::driver::compile::CompileOptions;
#[cfg(feature = "compiler")]
use crate::driver::compile::WriteOptions;
use crate::driver::emitted::EmitKind;
use crate::driver::emitted::Emitted;
#[cfg(feature = "compiler")]
use crate::driver::targets;
#[cfg(feature = "compiler")]
use crate::driver::targets::TargetRequest;

/// The suffix of bundles.
#[cfg(feature = "compiler")]
const SUFFIX: &str = "xla";

/// A by-product that is wanted.
pub struct EmitRequest {
    /// What.
    pub kind: EmitKind,
    path: Option<PathBuf>,
}

impl EmitRequest {
    /// Reads `KIND` and `KIND=PATH`.
    pub fn parse_all(words: &[String]) -> Outcome<Vec<Self>> {
        let requests = words.iter().map(|word| {
            let (kind, path) = match word.split_once('=') {
                Some((kind, path)) => (kind, Some(PathBuf::from(path))),
                None => (word.as_str(), None),
            };
            let kind = EmitKind::from_name(kind).ok_or_else(|| {
                let known: Vec<_> = EmitKind::ALL.iter().map(|k| k.name()).collect();
                let close = closest(kind, known.iter().copied());
                let help = close.map_or(String::new(), |c| format!("; did you mean `{c}`?"));
                let known = known.join(", ");
                Failure::Usage(format!("--emit {kind}: not one of {known}{help}"))
            })?;
            Ok(Self { kind, path })
        });
        requests.collect()
    }
}

/// Writes the parts of a by-product: one file, or numbered files when there are several; none of
/// them over a file that is `kept`. Gives the files.
pub fn write_emitted(
    request: &EmitRequest,
    parts: &[Emitted],
    beside: &Path,
    kept: &[&Path],
    context: &Context,
) -> Outcome<Vec<PathBuf>> {
    let mut written = Vec::new();
    let stem = if files::is_standard(beside) {
        PathBuf::from("stdin")
    } else {
        PathBuf::from(beside.file_name().unwrap_or_default()).with_extension("")
    };
    let folder = beside.parent().unwrap_or(Path::new(""));
    let binary = request.kind.is_binary();
    let suffix = request.kind.suffix();
    for (i, part) in parts.iter().enumerate() {
        let path = match (&request.path, parts.len()) {
            (Some(path), 0 | 1) => path.clone(),
            (Some(path), _) if files::is_standard(path) => path.clone(),
            (Some(path), _) => {
                let suffix = path
                    .extension()
                    .map_or(suffix.to_owned(), |e| e.display().to_string());
                path.with_extension(format!("{i}.{suffix}"))
            }
            (None, 0 | 1) => folder.join(&stem).with_extension(suffix),
            (None, _) => {
                let name = format!("{}.{i}.{suffix}", stem.display());
                folder.join(name)
            }
        };
        files::keep_apart(&path, kept)?;
        files::write(&path, &part.content, binary, &context.unfinished)?;
        context
            .reporter
            .log(1, &format!("wrote {}", path.display()));
        written.push(path);
    }
    Ok(written)
}

#[cfg(feature = "compiler")]
impl DumpAs {
    fn form(self) -> compile::DumpForm {
        match self {
            Self::Text => compile::DumpForm::Text,
            Self::Proto => compile::DumpForm::Proto,
        }
    }
}

/// `xla-aot compile`
#[cfg(feature = "compiler")]
pub fn compile(args: &Compile, context: &Context) -> Outcome {
    let emits = EmitRequest::parse_all(&args.emit)?;
    let input = args.what.options()?;
    compile::check_step(args.stop_after.as_deref()).map_err(Failure::Option)?;
    let rewrites = args.rewrites.options()?;
    let targets = resolve(&args.target)?;
    let outputs = outputs(args, &targets)?;
    for output in &outputs {
        files::keep_apart(output, &[&args.program])?;
    }
    let name = files::shown(&args.program);
    let program = files::read_program(&args.program)?;
    let into = match &args.into {
        Some(_) if targets.len() > 1 => {
            let message = "`--into` takes a bundle for one target".to_owned();
            return Err(Failure::Usage(message));
        }
        Some(file) => Some(files::read(file)?),
        None => None,
    };
    if let Some(folder) = &args.dump_to {
        files::make_folder(folder)?;
    }
    for (target, output) in targets.iter().zip(&outputs) {
        let options = CompileOptions {
            target: target.clone(),
            input: input.clone(),
            replicas: args.num_replicas,
            partitions: args.num_partitions,
            write: WriteOptions {
                envelope: args.jax_envelope || args.format == BundleFormat::Jax,
                jaxlib: args.jaxlib_compat.unwrap_or_default(),
            },
            into: into.clone(),
            jobs: args.jobs.unwrap_or_else(compile::default_jobs),
            assembler: assembler(args, target)?,
            emit: emits.iter().map(|e| e.kind).collect(),
            dump_forms: args.dump_hlo_as.iter().map(|form| form.form()).collect(),
            stop_after: args.stop_after.clone(),
            rewrites: rewrites.clone(),
        };
        let dumps = args
            .dump_to
            .as_ref()
            .map(|folder| dump_folder(folder, target, &targets));
        if let Some(folder) = &dumps {
            files::make_folder(folder)?;
        }
        let mut progress = Progress::new(context.reporter, dumps);
        let compiled = compile::compile(&program, &options, &mut progress);
        let failed_dump = progress.finish();
        let compiled = compiled.map_err(about(&name))?;
        if args.time_passes {
            if context.reporter.json {
                report::json_line("times", &progress.times(target.name()));
            } else {
                report::to_stderr(&progress.table());
            }
        }
        if let Some(message) = failed_dump {
            context.reporter.warn(&message);
        }
        for request in &emits {
            let parts: Vec<Emitted> = compiled
                .emitted
                .iter()
                .filter(|part| part.kind == request.kind)
                .cloned()
                .collect();
            let kept = [args.program.as_path(), output];
            write_emitted(
                request,
                &parts,
                beside(output, &args.program),
                &kept,
                context,
            )?;
        }
        if let Some(bundle) = &compiled.bundle {
            files::write(output, bundle, true, &context.unfinished)?;
            let message = format!("wrote {}, {} bytes", output.display(), bundle.len());
            context.reporter.log(1, &message);
        }
    }
    Ok(())
}

/// Where by-products go: beside the bundle, or in this folder when that goes to standard output.
#[cfg(feature = "compiler")]
fn beside<'a>(output: &'a Path, program: &'a Path) -> &'a Path {
    if !files::is_standard(output) {
        output
    } else if files::is_standard(program) {
        Path::new("stdin")
    } else {
        program.file_name().map_or(Path::new("program"), Path::new)
    }
}

#[cfg(feature = "compiler")]
fn dump_folder(folder: &Path, target: &Target, targets: &[Target]) -> PathBuf {
    if targets.len() == 1 {
        folder.to_owned()
    } else {
        folder.join(target.name())
    }
}

/// The targets that the flags mean.
#[cfg(feature = "compiler")]
pub fn resolve(args: &TargetArgs) -> Outcome<Vec<Target>> {
    let gpu_config = match &args.gpu_target_config {
        None => None,
        Some(path) => {
            let text = String::from_utf8(files::read(path)?);
            let text =
                text.map_err(|_| Failure::File(format!("`{}` is not text", files::shown(path))))?;
            Some((files::shown(path), text))
        }
    };
    let request = TargetRequest {
        name: None,
        platform_version: args.target_platform_version.clone(),
        gpu_config,
        host: HostMachine {
            triple: args.host_triple.clone(),
            cpu: args.host_cpu.clone(),
            features: args.host_features.clone(),
        },
        triple: args.target_triple.clone(),
        cpu: args.target_cpu.clone(),
        features: args.target_feature.clone(),
    };
    if args.target.is_empty() {
        return Ok(vec![
            targets::resolve(&request).map_err(|e| refused(e, args))?,
        ]);
    }
    let named = args.target.iter().map(|name| {
        let request = TargetRequest {
            name: Some(name.clone()),
            ..request.clone()
        };
        targets::resolve(&request).map_err(|e| refused(e, args))
    });
    named.collect()
}

/// What is wrong with a target has its place in a file, or else stands on the command line.
#[cfg(feature = "compiler")]
fn refused(diagnostic: Box<Diagnostic>, args: &TargetArgs) -> Failure {
    let file = args.gpu_target_config.as_deref().map(files::shown);
    match diagnostic.location {
        Some(Location::Path(_)) => Failure::Diagnostic(None, diagnostic),
        Some(_) => Failure::Diagnostic(file, diagnostic),
        None => Failure::Option(diagnostic),
    }
}

/// One path for each target.
#[cfg(feature = "compiler")]
fn outputs(args: &Compile, targets: &[Target]) -> Outcome<Vec<PathBuf>> {
    let stem = if files::is_standard(&args.program) {
        "stdin".to_owned()
    } else {
        let stem = args.program.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let folder = args
        .output
        .as_ref()
        .filter(|path| path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/"));
    if let Some(folder) = folder {
        files::make_folder(folder)?;
    }
    let single = targets.len() == 1;
    let to_standard = match &args.output {
        Some(path) => files::is_standard(path),
        None => files::is_standard(&args.program),
    };
    if to_standard && single {
        return Ok(vec![PathBuf::from("-")]);
    }
    if to_standard {
        let message = "several targets cannot go to standard output; name a folder with -o";
        return Err(Failure::Usage(message.to_owned()));
    }
    let paths = targets.iter().map(|target| match (&args.output, folder) {
        (_, Some(folder)) if single => folder.join(format!("{stem}.{SUFFIX}")),
        (_, Some(folder)) => folder.join(format!("{stem}.{}.{SUFFIX}", target.name())),
        (Some(path), None) if single => path.clone(),
        (Some(path), None) => {
            let suffix = path
                .extension()
                .map_or(SUFFIX.to_owned(), |e| e.display().to_string());
            let file = path.file_stem().unwrap_or_default().display();
            path.with_file_name(format!("{file}.{}.{suffix}", target.name()))
        }
        (None, None) if single => PathBuf::from(format!("{stem}.{SUFFIX}")),
        (None, None) => PathBuf::from(format!("{stem}.{}.{SUFFIX}", target.name())),
    });
    let paths: Vec<PathBuf> = paths.collect();
    let mut sorted = paths.clone();
    sorted.sort();
    sorted.dedup();
    if sorted.len() != paths.len() {
        return Err(Failure::Usage("the same target is named twice".to_owned()));
    }
    Ok(paths)
}

/// The PTX assembler the flags and the environment give.
#[cfg(feature = "compiler")]
fn assembler(args: &Compile, target: &Target) -> Outcome<compile::Assembler> {
    if args.no_ptxas || !compile::uses_assembler(target) {
        return Ok(compile::Assembler::None);
    }
    Ok(match &args.ptxas {
        Some(path) => compile::Assembler::At(path.clone()),
        None => compile::Assembler::Search,
    })
}
