//! The corridor: a program's bytes to a bundle's bytes.
//!
//! The order of rooms is written here and nowhere else. Bytes in, bytes out: no file, no print, no
//! clock; who wants to see more looks on through an [`Observer`].

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::buffer;
use crate::buffer::BufferAssignment;
use crate::bundle;
pub use crate::bundle::Release;
pub use crate::bundle::WriteOptions;
use crate::collective::Topology;
use crate::driver::bundles;
pub use crate::driver::dump::DumpForm;
use crate::driver::dump::Dumper;
use crate::driver::dump::Passes;
use crate::driver::emitted;
use crate::driver::emitted::EmitKind;
use crate::driver::emitted::Emitted;
pub use crate::driver::input::InputOptions;
use crate::driver::input::platform_names;
use crate::driver::input::unknown;
use crate::driver::observe::Observer;
use crate::driver::observe::step;
use crate::emit;
use crate::emit::program::Program;
use crate::eval;
use crate::executable::Code;
use crate::executable::Executable;
use crate::executable::KernelEntry;
use crate::executable::KernelImage;
use crate::executable::TargetNeeds;
use crate::executable::ThunkSequence;
use crate::executable::check;
use crate::front;
use crate::hlo;
use crate::hlo::Module;
use crate::kernel;
use crate::kernel::Kernel;
use crate::kernel::TileDot;
use crate::llvm;
use crate::llvm::Assemble;
use crate::llvm::TextKind;
use crate::llvm::ptxas;
use crate::passes;
pub use crate::passes::PassOptions;
pub use crate::passes::Rewrite;
pub use crate::passes::RewriteReport;
use crate::schedule;
use crate::schedule::Scheduled;
use crate::shape::Shape;
use crate::target::Target;
use crate::wire;

/// The PTX assembler to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Assembler {
    /// None: PTX is shipped.
    #[default]
    None,
    /// The one that is found, if any.
    Search,
    /// This one.
    At(PathBuf),
}

/// Steps a compilation can stop after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Front,
    Passes,
    Schedule,
    Buffers,
    Emit,
    Llvm,
    Bundle,
}

impl Step {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("front", Self::Front),
        ("passes", Self::Passes),
        ("schedule", Self::Schedule),
        ("buffers", Self::Buffers),
        ("emit", Self::Emit),
        ("llvm", Self::Llvm),
        ("bundle", Self::Bundle),
    ];
    fn from_name(name: Option<&str>) -> Result<Self> {
        let Some(name) = name else {
            return Ok(Self::Bundle);
        };
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, step)| *step).ok_or_else(|| {
            let known: Vec<_> = Self::NAMES.iter().map(|(known, _)| *known).collect();
            let message = format!("`{name}` is no step of a compilation");
            unknown(&message, name, "steps", &known)
        })
    }
}

/// How to compile.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The machine to compile for.
    pub target: Target,
    /// What is said of the program beside its bytes.
    pub input: InputOptions,
    /// Replicas that run the program; as many as it says when there is no number.
    pub replicas: Option<u32>,
    /// Partitions of each replica, as above.
    pub partitions: Option<u32>,
    /// How the bundle is written.
    pub write: WriteOptions,
    /// A file whose bundle the new one takes the place of.
    pub into: Option<Vec<u8>>,
    /// Threads; the bundle does not depend on them.
    pub jobs: usize,
    /// The PTX assembler, for GPU targets.
    pub assembler: Assembler,
    /// By-products that are wanted.
    pub emit: Vec<EmitKind>,
    /// Forms that modules are dumped in.
    pub dump_forms: Vec<DumpForm>,
    /// Step to stop after; then there is no bundle.
    pub stop_after: Option<String>,
    /// Which optional rewrites are made.
    pub rewrites: PassOptions,
}

impl CompileOptions {
    /// Plain options for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            input: InputOptions::default(),
            replicas: None,
            partitions: None,
            write: WriteOptions::default(),
            into: None,
            jobs: default_jobs(),
            assembler: Assembler::None,
            emit: Vec::new(),
            dump_forms: vec![DumpForm::Text],
            stop_after: None,
            rewrites: PassOptions::default(),
        }
    }
    fn wants(&self, kind: EmitKind) -> bool {
        self.emit.contains(&kind)
    }
}

/// What a compilation gives.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// The program, unless the compilation was told to stop before.
    pub executable: Option<Executable>,
    /// The bundle, unless the compilation was told to stop before.
    pub bundle: Option<Vec<u8>>,
    /// By-products, in the order of their kinds.
    pub emitted: Vec<Emitted>,
    /// The optional rewrites that were made.
    pub rewrites: RewriteReport,
}

/// As many threads as this process may use.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Whether code for the target goes through a PTX assembler.
pub fn uses_assembler(target: &Target) -> bool {
    target.gpu().is_some()
}

/// Whether the name of a step is known.
///
/// # Errors
/// `XA1006` when it is not.
pub fn check_step(stop_after: Option<&str>) -> Result<()> {
    Step::from_name(stop_after).map(drop)
}

/// Whether the options name passes and rules that can be left out.
///
/// # Errors
/// `XA1006` for the first that cannot.
pub fn check_rewrites(options: &PassOptions) -> Result<()> {
    passes::registry::check_options(options)
}

/// The passes in the order they run, each once, with the names of their optional rewrites.
pub fn pass_list() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut list: Vec<(&str, Vec<&str>)> = Vec::new();
    for pass in passes::order::compile_order() {
        if list.iter().all(|(name, _)| *name != pass.name()) {
            list.push((pass.name(), pass.rules()));
        }
    }
    list
}

/// Compiles a program.
///
/// # Errors
/// The diagnostic of the room that refuses it.
pub fn compile(
    input: &[u8],
    options: &CompileOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    let mut reading = options.input.clone();
    reading.own_platform = Some(platform_names(options.target.platform()));
    let module = step(observer, "front", |observer| {
        let mut part = "front/read";
        observer.begin(part);
        let program = front::import_observed(input, &reading, &mut || {
            observer.end(part);
            part = "front/convert";
            observer.begin(part);
        });
        observer.end(part);
        let program = program.map_err(|error| match bundles::are(input) {
            true => bundles::compiled_already(),
            false => error,
        })?;
        program.notes.iter().for_each(|note| observer.note(note));
        step(observer, "front/check", |_| {
            hlo::verify::check(&program.module)
        })?;
        Ok::<_, Box<Diagnostic>>(program.module)
    })?;
    let mut compiled = build(module, options, observer)?;
    if let Some(executable) = &compiled.executable {
        let bytes = step(observer, "bundle", |_| match &options.into {
            Some(template) => bundle::write_into(executable, template, options.write),
            None => bundle::write(executable, options.write),
        })?;
        compiled.bundle = Some(bytes);
    }
    Ok(compiled)
}

/// Writes into the module how many devices run it, and checks that its collectives fit them.
///
/// # Errors
/// `XA2001` when a collective does not fit, `XA3001` when there are too many devices.
pub(super) fn settle_devices(module: &mut Module, options: &CompileOptions) -> Result<()> {
    let config = &mut module.config;
    let chosen = |asked: Option<u32>, own: i64| asked.map_or(own, i64::from);
    let replicas = chosen(options.replicas, config.replica_count);
    let partitions = chosen(options.partitions, config.num_partitions);
    let topology = Topology::new(replicas, partitions);
    let topology =
        topology.map_err(|why| Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, why))?;
    config.replica_count = i64::from(topology.replicas);
    config.num_partitions = i64::from(topology.partitions);
    hlo::verify::check_devices(module, topology)
}

/// Compiles a module that has been read and verified to a program that is not yet a bundle.
///
/// # Errors
/// The diagnostic of the room that refuses it.
pub fn build(
    mut module: Module,
    options: &CompileOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    settle_devices(&mut module, options)?;
    eval::check_calls(&module)?;
    let last = Step::from_name(options.stop_after.as_deref())?;
    let target = &options.target;
    let mut compiled = Compiled::default();
    let dumper = Dumper::new(&module, target, &options.dump_forms);
    dumper.before_optimizations(observer, &module);
    if last == Step::Front {
        compiled.text(options, EmitKind::Hlo, || hlo::print::module(&module));
        return Ok(compiled);
    }
    let (module, rewrites) = step(observer, "passes", |observer| {
        let mut passes = Passes::new(observer, &dumper);
        let run = passes::run(module, target, &options.rewrites, &mut passes);
        passes.flush("pipeline-end");
        run
    })?;
    compiled.rewrites = rewrites;
    if last == Step::Passes {
        compiled.text(options, EmitKind::Hlo, || hlo::print::module(&module));
        return Ok(compiled);
    }
    let scheduled = step(observer, "schedule", |_| schedule::run(module, target))?;
    compiled.text(options, EmitKind::Hlo, || {
        hlo::print::module(&scheduled.module)
    });
    dumper.after_optimizations(observer, &scheduled.module);
    if last == Step::Schedule {
        return Ok(compiled);
    }
    let assignment = step(observer, "buffers", |_| assign(&scheduled, target))?;
    let plan = || buffer::print(&scheduled.module, &assignment);
    compiled.text(options, EmitKind::Buffers, plan);
    dumper.buffers(observer, plan);
    if last == Step::Buffers {
        return Ok(compiled);
    }
    let program = step(observer, "emit", |_| {
        emit::program::program(&scheduled, &assignment, target)
    })?;
    check_nesting(&program)?;
    for kernel in &program.kernels {
        let suffix = format!("{}.kir", kernel.name);
        dumper.text(observer, &suffix, || kernel::print::kernel(kernel));
    }
    if last == Step::Emit {
        return Ok(compiled);
    }
    let code = step(observer, "llvm", |_| generate(&program, options))?;
    compiled.code(options, &code);
    dumper.images(observer, &code.images);
    if last == Step::Llvm {
        return Ok(compiled);
    }
    let executable = step(observer, "executable", |_| {
        assemble(&scheduled, program, code, options)
    })?;
    let thunks = || emitted::thunks(&executable);
    compiled.text(options, EmitKind::Thunks, thunks);
    dumper.text(observer, "thunk_sequence.txt", thunks);
    compiled.executable = Some(executable);
    compiled.emitted.sort_by_key(|part| part.kind);
    Ok(compiled)
}

impl Compiled {
    fn text(&mut self, options: &CompileOptions, kind: EmitKind, text: impl FnOnce() -> String) {
        if options.wants(kind) {
            let content = text().into_bytes();
            self.emitted.push(Emitted { kind, content });
        }
    }

    fn code(&mut self, options: &CompileOptions, code: &llvm::Compiled) {
        for text in &code.texts {
            let kind = match text.kind {
                TextKind::LlvmIr => EmitKind::LlvmIr,
                TextKind::Assembly => EmitKind::Asm,
                TextKind::Ptx => EmitKind::Ptx,
            };
            self.text(options, kind, || text.text.clone());
        }
        let has_ptx = self.emitted.iter().any(|part| part.kind == EmitKind::Ptx);
        for image in &code.images {
            let kind = match image.code {
                Code::Elf(_) => EmitKind::Obj,
                Code::Ptx(_) => EmitKind::Ptx,
                Code::Cubin(_) => EmitKind::Cubin,
            };
            if options.wants(kind) && !(kind == EmitKind::Ptx && has_ptx) {
                let content = image.code.bytes().to_vec();
                self.emitted.push(Emitted { kind, content });
            }
        }
    }
}

/// Deepest nesting of loops and branches that a bundle holds: readers of its format stop at a
/// hundred nested messages, and each level takes three.
const MAX_LOOP_NESTING: usize = 31;
/// Deepest nesting of tuples that a bundle holds, each level of which takes a message or two.
const MAX_TUPLE_NESTING: usize = 48;

/// Refuses a program whose bundle no reader would take.
fn check_nesting(program: &Program) -> Result<()> {
    let mut loops = 0;
    let mut level: Vec<&ThunkSequence> = vec![&program.thunks];
    loop {
        let thunks = level.iter().flat_map(|sequence| &sequence.0);
        let inside: Vec<&ThunkSequence> = thunks.flat_map(|t| t.kind.nested()).collect();
        if inside.is_empty() {
            break;
        }
        loops += 1;
        level = inside;
    }
    let signature = &program.signature.program;
    let shapes = signature.parameters.iter().chain([&signature.result]);
    let tuples = shapes
        .flat_map(Shape::leaves)
        .map(|(index, _)| index.len())
        .max()
        .unwrap_or(0);
    for (depth, most, what) in [
        (loops, MAX_LOOP_NESTING, "loops and branches"),
        (tuples, MAX_TUPLE_NESTING, "tuples"),
    ] {
        if depth > most {
            let message = format!("{what} nest {depth} deep; a bundle holds up to {most} levels");
            return Err(Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message));
        }
    }
    Ok(())
}

fn assign(scheduled: &Scheduled, target: &Target) -> Result<BufferAssignment> {
    let assignment = buffer::assign(scheduled, target)?;
    match buffer::check(scheduled, &assignment, target)
        .into_iter()
        .next()
    {
        Some(finding) => Err(Box::new(finding)),
        None => Ok(assignment),
    }
}

fn generate(program: &Program, options: &CompileOptions) -> Result<llvm::Compiled> {
    let assemble = match &options.assembler {
        Assembler::None => Assemble::No,
        Assembler::Search => ptxas::find(None)?.map_or(Assemble::No, Assemble::Ship),
        Assembler::At(path) => ptxas::find(Some(path))?.map_or(Assemble::No, Assemble::Ship),
    };
    let wants = llvm::Options {
        jobs: options.jobs,
        llvm_ir: options.wants(EmitKind::LlvmIr),
        assembly: options.wants(EmitKind::Asm) || options.wants(EmitKind::Ptx),
        assemble,
    };
    llvm::compile(&program.kernels, &options.target, &wants)
}

/// Takes back what is said of tiles that no kernel uses: machines have them less often than all else
/// that comes with them, and nothing but kernels made for them does use them.
fn leave_out_tiles(needs: &mut TargetNeeds, program: &Program) {
    let TargetNeeds::Cpu { features, .. } = needs else {
        return;
    };
    let dots = program.kernels.iter().flat_map(Kernel::tile_dots);
    let used: BTreeSet<&str> = dots
        .flat_map(|dot| match dot {
            TileDot::Bf16 => ["+amx-tile", "+amx-bf16"],
            TileDot::Bytes { .. } => ["+amx-tile", "+amx-int8"],
        })
        .collect();
    features.retain(|f| !f.starts_with("+amx-") || used.contains(f.as_str()));
}

/// Puts the parts together and checks the whole.
fn assemble(
    scheduled: &Scheduled,
    program: Program,
    code: llvm::Compiled,
    options: &CompileOptions,
) -> Result<Executable> {
    // The module travels with the names of its parameters, as the signature has them.
    let mut module = scheduled.module.clone();
    module.config.entry_layout = Some(program.signature.program.clone());
    let target = &options.target;
    let layout = match target.cpu() {
        Some(_) => llvm::data_layout(target)?,
        None => String::new(),
    };
    let kernels = program.kernels.iter().map(|kernel| KernelEntry {
        name: kernel.name.clone(),
        arity: Some(kernel.params().count()),
        is_comparator: false,
    });
    let mut needs = wire::target::needs(target, &layout)?;
    leave_out_tiles(&mut needs, &program);
    let mut executable = Executable {
        name: module.name.clone(),
        needs,
        signature: program.signature,
        allocs: program.allocs,
        constants: program.constants,
        thunks: program.thunks,
        kernels: kernels.collect(),
        images: code.images,
        logical: program.logical,
        hlo: match target.gpu() {
            Some(_) => wire::hlo::encode_module_for_caller(&module),
            None => wire::hlo::encode_module_with_config(&module),
        },
        replicas: u32::try_from(module.config.replica_count).unwrap_or(1),
        partitions: u32::try_from(module.config.num_partitions).unwrap_or(1),
    };
    if target.gpu().is_some() && !executable.constants.is_empty() {
        executable
            .images
            .push(constants_image(&executable, target)?);
    }
    match check::check(&executable).into_iter().next() {
        None => Ok(executable),
        Some(finding) => {
            let message = "the compiled program breaks a rule of programs";
            Err(Diagnostic::internal(codes::INTERNAL, message).note(finding.to_string()))
        }
    }
}

/// The image that gives a GPU program's constants their memory.
fn constants_image(executable: &Executable, target: &Target) -> Result<KernelImage> {
    let constants = executable.constants.values();
    let symbols: Vec<(String, u64)> = constants
        .map(|constant| {
            let symbol = crate::executable::constant_symbol(&constant.name);
            (symbol, constant.bytes.len() as u64)
        })
        .collect();
    llvm::constants_image(&symbols, target)
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::*;
    use crate::driver::observe::Unobserved;
    use crate::driver::targets;
    use crate::literal::ArrayLiteral;
    use crate::literal::Literal;
    use crate::runtime::LoadOptions;
    use crate::runtime::Loaded;
    use crate::shape::ArrayShape;
    use crate::shape::PrimitiveType;

    const PROGRAM: &str = "HloModule add_twice

ENTRY main {
  x = f32[5] parameter(0)
  y = f32[5] parameter(1)
  sum = f32[5] add(x, y)
  ROOT twice = f32[5] multiply(sum, y)
}
";

    fn options() -> CompileOptions {
        let target = targets::resolve(&targets::TargetRequest::default());
        CompileOptions::new(target.expect("the default target is known"))
    }

    #[test]
    fn custom_calls_are_imports_until_somebody_registers_them() {
        let program = "HloModule calls\n\nENTRY main {\n  x = f32[2,3]{1,0} parameter(0)\n  \
            ROOT y = f32[3]{0} custom-call(x), custom_call_target=\"my_sums\", \
            api_version=API_VERSION_TYPED_FFI, backend_config={scale = 2 : i32}\n}\n";
        let compiled = compile(program.as_bytes(), &options(), &mut Unobserved).unwrap();
        let executable = compiled.executable.unwrap();
        let mut load = LoadOptions::default();
        let refused = Loaded::new(&executable, &load).err().unwrap();
        assert!(refused.message.contains("`my_sums`"), "{refused:?}");
        load.custom_calls.register("my_sums", |call| {
            assert_eq!(call.backend_config, "{scale = 2 : i32}");
            let (shape, bytes) = call.operands[0];
            assert_eq!(shape.dims.as_slice(), [2, 3]);
            let number = |i: usize| f32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap());
            for i in 0..3 {
                let sum = 2.0 * (number(i) + number(i + 3));
                call.results[0].1[4 * i..4 * i + 4].copy_from_slice(&sum.to_le_bytes());
            }
            Ok(())
        });
        let loaded = Loaded::new(&executable, &load).unwrap();
        let numbers = [1f32, 2.0, 3.0, 10.0, 20.0, 30.0];
        let bytes = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        let shape = ArrayShape::new(PrimitiveType::F32, [2, 3]);
        let input = Literal::Array(ArrayLiteral::new(shape, bytes));
        let wanted: Vec<u8> = [22f32, 44.0, 66.0]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(loaded.run(&[input]).unwrap()[0].bytes(), wanted);
    }

    #[test]
    fn calls_of_lapack_have_what_it_takes() {
        let call = |operands: &str, ty: &str| {
            let program = format!(
                "HloModule m\n\nENTRY e {{\n  x = {ty}[3,3]{{1,0}} parameter(0)\n  n = s32[2]{{0}} constant({{3, 3}})\n  \
                ROOT y = ({ty}[3,3]{{0,1}}, s32[]) custom-call({operands}), \
                custom_call_target=\"lapack_spotrf_ffi\", api_version=API_VERSION_TYPED_FFI, \
                backend_config={{uplo = 76 : ui8}}\n}}\n"
            );
            compile(program.as_bytes(), &options(), &mut Unobserved)
        };
        assert!(call("x", "f32").is_ok());
        for (operands, ty, told) in [
            ("x, n", "f32", "`lapack_spotrf_ffi`: 2 operands, wanted 1"),
            (
                "x",
                "f64",
                "`lapack_spotrf_ffi`: operand 0 is `f64[3,3]{1,0}`, wanted 1 times 9 elements of f32",
            ),
        ] {
            let error = call(operands, ty).err().unwrap();
            assert_eq!(error.message, told);
            assert_eq!(error.code, codes::OP_CONSTRAINT);
        }
    }

    #[test]
    fn text_in_numbers_out() {
        let compiled = compile(PROGRAM.as_bytes(), &options(), &mut Unobserved).unwrap();
        let executable = compiled.executable.unwrap();
        let loaded = Loaded::new(&executable, &LoadOptions::default()).unwrap();
        let array = |values: [f32; 5]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let shape = ArrayShape::new(PrimitiveType::F32, [5]);
            Literal::Array(ArrayLiteral::new(shape, bytes))
        };
        let inputs = [
            array([1.0, 2.0, 3.0, 4.0, 5.0]),
            array([2.0, -1.0, 0.5, 0.0, 3.0]),
        ];
        let results = loaded.run(&inputs).unwrap();
        let wanted = array([6.0, -1.0, 1.75, 0.0, 24.0]);
        assert_eq!(results[0].bytes(), wanted.as_array().unwrap().bytes());
    }

    const MIXED: &str = "HloModule mixed

wide {
  a = f32[] parameter(0)
  b = bf16[] parameter(1)
  w = f32[] convert(b)
  ROOT s = f32[] add(a, w)
}

narrow {
  a = bf16[] parameter(0)
  b = f32[] parameter(1)
  n = bf16[] convert(b)
  ROOT s = bf16[] add(a, n)
}

ENTRY main {
  x = f32[2,4] parameter(0)
  zero = bf16[] constant(0)
  one = f32[] constant(1)
  sums = f32[2] reduce(x, zero), dimensions={1}, to_apply=wide
  lost = bf16[2] reduce(x, zero), dimensions={1}, to_apply=narrow
  pairs = f32[2,3] reduce-window(x, one), window={size=1x2}, to_apply=wide
  kept = bf16[2,4] reduce(x, one), dimensions={}, to_apply=narrow
  l = f32[2] convert(lost)
  k = f32[2,4] convert(kept)
  ROOT t = (f32[2], f32[2], f32[2,3], f32[2,4]) tuple(sums, l, pairs, k)
}
";

    /// Elements are rounded to what the body takes, sums to what it gives.
    #[test]
    fn reductions_may_mix_precisions() {
        let array = |dims: &[usize], values: &[f32]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let shape = ArrayShape::new(PrimitiveType::F32, dims.iter().copied());
            ArrayLiteral::new(shape, bytes)
        };
        // bf16 has 8 bits: 256 + 1 is 256, and 1 + 2^-8 is 1.
        let above_one = 1.0 + 0.003_906_25;
        let input = array(
            &[2, 4],
            &[256.0, 1.0, 0.0, 0.0, above_one, above_one, 0.0, 0.0],
        );
        let wanted = [
            array(&[2], &[257.0, 2.0]),
            array(&[2], &[256.0, 2.0]),
            array(&[2, 3], &[258.0, 2.0, 1.0, 3.0, 2.0, 1.0]),
            array(&[2, 4], &[256.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]),
        ];
        let module = front::read(MIXED.as_bytes(), None).unwrap();
        hlo::verify::check(&module).unwrap();
        let input = [Literal::Array(input)];
        let evaluated = crate::eval::evaluate(&module, &input).unwrap();
        let compiled = compile(MIXED.as_bytes(), &options(), &mut Unobserved).unwrap();
        let loaded = Loaded::new(&compiled.executable.unwrap(), &LoadOptions::default()).unwrap();
        let ran = loaded.run(&input).unwrap();
        let parts = evaluated
            .as_tuple()
            .unwrap()
            .iter()
            .map(|p| p.as_array().unwrap().bytes());
        let wanted: Vec<&[u8]> = wanted.iter().map(ArrayLiteral::bytes).collect();
        assert_eq!(parts.collect::<Vec<_>>(), wanted);
        let ran: Vec<&[u8]> = ran.iter().map(ArrayLiteral::bytes).collect();
        assert_eq!(ran, wanted);
    }

    #[test]
    fn a_compilation_stops_where_it_is_told_to() {
        let mut options = options();
        options.emit = vec![EmitKind::Hlo];
        for (step, _) in &Step::NAMES[..Step::NAMES.len() - 1] {
            options.stop_after = Some((*step).to_owned());
            let compiled = compile(PROGRAM.as_bytes(), &options, &mut Unobserved).unwrap();
            assert!(compiled.executable.is_none() && compiled.bundle.is_none());
            assert_eq!(compiled.emitted.len(), 1, "{step}");
        }
        options.stop_after = Some("lunch".to_owned());
        let refused = compile(PROGRAM.as_bytes(), &options, &mut Unobserved).unwrap_err();
        assert_eq!(refused.code, codes::UNKNOWN_WORD);
    }
}
