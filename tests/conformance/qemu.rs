//! Runs AArch64 code on another machine: an executable becomes a C program for `qemu-aarch64`.
//!
//! The C program is the thunk sequence written out, linked with the executable's objects. It owns
//! no more than that: what memory holds at the start comes from a file and what the results hold at
//! the end goes to one. Memory nobody has written is filled with a pattern, and so are some bytes
//! behind each allocation; that they still are is checked at the end. Kernels run with denormals
//! off, workgroups one after the other.
//!
//! The only library work that C programs do themselves are Fourier transforms. For a custom call the
//! program writes operands to its standard output and reads results from its standard input: this
//! process makes the call. A program with a thunk that is not played here is an error that names it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::io::Write as _;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use xla_aot::base::Id;
use xla_aot::executable::AllocKind;
use xla_aot::executable::CollectiveThunkKind;
use xla_aot::executable::CopyThunk;
use xla_aot::executable::CustomCallThunk;
use xla_aot::executable::Executable;
use xla_aot::executable::FftThunk;
use xla_aot::executable::KernelThunk;
use xla_aot::executable::ShapedSlice;
use xla_aot::executable::Slice;
use xla_aot::executable::Thunk;
use xla_aot::executable::ThunkKind;
use xla_aot::executable::ThunkSequence;
use xla_aot::linalg;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::device_form;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;

/// The CPU that is compiled for and emulated, so that code for a better one stops with a fault.
pub const CPU: &str = "neoverse-n1";

/// What XLA's generator starts from.
const INITIAL_RNG_STATE: u32 = 0x701_2395;

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

/// A program that runs longer has lost its way; the slowest take a second.
const SECONDS: &str = "120";

/// What the written part of the C program leans on.
const PRELUDE: &str = r#"
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define GUARD 64
#define PATTERN 0xa5
typedef struct { uint64_t x, y, z; } Dim3;
typedef struct { void *data; uint64_t size; } Arg;
typedef struct { const Dim3 *count, *id; uint64_t args; const Arg *arg; } Frame;
typedef void *Kernel(const Frame *);
static uint8_t *memory[ALLOCATIONS + 1];
static void stop(const char *what) { fprintf(stderr, "%s\n", what); exit(1); }
static void launch(const char *name, Kernel *kernel, Dim3 n, uint64_t args, const Arg *arg) {
  Dim3 id;
  for (id.z = 0; id.z < n.z; id.z++)
    for (id.y = 0; id.y < n.y; id.y++)
      for (id.x = 0; id.x < n.x; id.x++) {
        Frame frame = {&n, &id, args, arg};
        if (kernel(&frame)) { fprintf(stderr, "kernel %s: ", name); stop("reported a failure"); }
      }
}
static void set(uint8_t *to, uint32_t value, uint64_t size) {
  for (uint64_t i = 0; i + 4 <= size; i += 4) memcpy(to + i, &value, 4);
}
static int32_t branch(int32_t index, int32_t count) {
  return index < 0 || index >= count ? count - 1 : index;
}
static void host(uint64_t call, const Arg *operand, const Arg *result) {
  fwrite(&call, 8, 1, stdout);
  for (; operand->data; operand++) fwrite(operand->data, 1, operand->size, stdout);
  fflush(stdout);
  for (; result->data; result++)
    if (fread(result->data, 1, result->size, stdin) != result->size) stop("no answer to a call");
}
static int32_t word(const uint8_t *from) { int32_t value; memcpy(&value, from, 4); return value; }
"#;

/// Fourier transforms by their definition, in f64. `x` holds the array of `n` elements (the last
/// extent of a real side is that of the real array); kinds are 0 FFT, 1 IFFT, 2 RFFT, 3 IRFFT.
const FOURIER: &str = r#"
static void axis(double complex *x, uint64_t length, uint64_t stride, int inverse) {
  double complex turn[length], sum[length];
  for (uint64_t k = 0; k < length; k++)
    turn[k] = cexp((inverse ? 2 : -2) * M_PI * I * k / length);
  for (uint64_t k = 0; k < length; k++) {
    sum[k] = 0;
    for (uint64_t j = 0; j < length; j++) sum[k] += x[j * stride] * turn[j * k % length];
  }
  for (uint64_t k = 0; k < length; k++) x[k * stride] = inverse ? sum[k] / length : sum[k];
}
static void mirror(double complex *row, uint64_t length) {
  for (uint64_t k = length / 2 + 1; k < length; k++) row[k] = conj(row[length - k]);
}
static double load(const void *from, int wide, uint64_t i) {
  return wide ? ((const double *)from)[i] : ((const float *)from)[i];
}
static void store(void *to, int wide, uint64_t i, double value) {
  if (wide) ((double *)to)[i] = value; else ((float *)to)[i] = value;
}
static void fourier(int kind, int wide, int rank, const uint64_t *lengths, uint64_t rows,
                    const void *from, void *to) {
  uint64_t last = lengths[rank - 1], half = last / 2 + 1, block = 1;
  for (int i = 0; i < rank; i++) block *= lengths[i];
  double complex *x = calloc(block * rows + 1, sizeof *x);
  if (!x) stop("no memory");
  uint64_t lines = block * rows / last, in = kind == 3 ? half : last, out = kind == 2 ? half : last;
  for (uint64_t i = 0; i < lines; i++)
    for (uint64_t j = 0; j < in; j++) {
      uint64_t at = i * in + j;
      x[i * last + j] = kind == 2 ? load(from, wide, at)
                                  : load(from, wide, 2 * at) + I * load(from, wide, 2 * at + 1);
    }
  uint64_t stride = block;
  for (int d = 0; d < rank; d++) {
    stride /= lengths[d];
    for (uint64_t i = 0; i < block * rows; i++)
      if (i / stride % lengths[d] == 0) {
        if (kind == 3 && d == rank - 1) mirror(x + i, last);
        axis(x + i, lengths[d], stride, kind & 1);
      }
  }
  for (uint64_t i = 0; i < lines; i++)
    for (uint64_t j = 0; j < out; j++) {
      uint64_t at = i * out + j;
      double complex value = x[i * last + j];
      if (kind == 3) { store(to, wide, at, creal(value)); continue; }
      store(to, wide, 2 * at, creal(value));
      store(to, wide, 2 * at + 1, cimag(value));
    }
  free(x);
}
"#;

/// Allocates and fills, runs, checks the guards and writes the results.
const MAIN: &str = r#"
int main(int argc, char **argv) {
  if (argc != 3) stop("two files are wanted");
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  if (!in || !out) stop("a file cannot be opened");
  for (int i = 0; i < ALLOCATIONS; i++) {
    uint64_t room = (sizes[i] + GUARD + 63) / 64 * 64;
    if (!(memory[i] = aligned_alloc(64, room))) stop("no memory");
    memset(memory[i], PATTERN, room);
    if (fread(memory[i], 1, given[i], in) != given[i]) stop("the input is too short");
  }
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1 << 24));
  run();
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
  for (int i = 0; i < ALLOCATIONS; i++)
    for (int j = 0; j < GUARD; j++)
      if (memory[i][sizes[i] + j] != PATTERN) {
        fprintf(stderr, "allocation %d: ", i);
        stop("written behind its end");
      }
  for (int i = 0; i < RESULTS; i++)
    if (fwrite(memory[results[i][0]] + results[i][1], 1, results[i][2], out) != results[i][2])
      stop("the result cannot be written");
  return fclose(out) ? 1 : 0;
}
"#;

/// Runs the executable once on these parameter leaves; the results are its array leaves in order.
pub fn run(executable: &Executable, inputs: &[ArrayLiteral]) -> Result<Vec<ArrayLiteral>, String> {
    let player = Player {
        executable,
        calls: RefCell::default(),
    };
    let program = player.program()?;
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let at = |name: &str| dir.path().join(name);
    let write = |name: &str, bytes: &[u8]| {
        fs::write(at(name), bytes).map_err(|e| format!("{name} cannot be written: {e}"))
    };
    write("play.c", program.as_bytes())?;
    write("input", &memory_at_start(executable, inputs)?.concat())?;
    let mut compiler = Command::new(COMPILER);
    compiler.current_dir(dir.path());
    compiler.args(["-std=gnu11", "-O1", "-static", "-o", "play", "play.c"]);
    for (i, image) in executable.images.iter().enumerate() {
        let name = format!("image{i}.o");
        write(&name, image.code.bytes())?;
        compiler.arg(name);
    }
    finish(compiler.arg("-lm"))?;
    let mut emulator = Command::new("timeout");
    emulator
        .args([SECONDS, EMULATOR, "-cpu", CPU])
        .arg(at("play"));
    emulator.arg(at("input")).arg(at("output"));
    let streams = [Stdio::piped(), Stdio::piped(), Stdio::piped()];
    let [stdin, stdout, stderr] = streams;
    let child = emulator.stdin(stdin).stdout(stdout).stderr(stderr).spawn();
    let mut child = child.map_err(|e| cannot_run("timeout", &e))?;
    let answered = answer(&player.calls.into_inner(), &mut child);
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(failure(EMULATOR, output.status, &output.stderr));
    }
    answered?;
    results(executable, &at("output"))
}

/// Makes the calls that a program asks for, until it ends.
fn answer(calls: &[CustomCallThunk], child: &mut Child) -> Result<(), String> {
    let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the program has no streams".to_owned());
    };
    let mut number = [0; 8];
    while from.read_exact(&mut number).is_ok() {
        let place = usize::try_from(u64::from_le_bytes(number)).unwrap_or(usize::MAX);
        let thunk = calls.get(place).ok_or("a call without a thunk")?;
        let (operands, results): (Vec<_>, Vec<_>) = (
            thunk.operands.iter().flatten().collect(),
            thunk.results.iter().flatten().collect(),
        );
        let buffer = |s: &&ShapedSlice| vec![0; s.slice.size as usize];
        let mut given: Vec<Vec<u8>> = operands.iter().map(buffer).collect();
        for bytes in &mut given {
            from.read_exact(bytes)
                .map_err(|e| format!("no operand: {e}"))?;
        }
        let mut made: Vec<Vec<u8>> = results.iter().map(buffer).collect();
        let shapes = |all: &[&'_ ShapedSlice]| -> Vec<ArrayShape> {
            all.iter().map(|s| s.shape.clone()).collect()
        };
        let (operands, results) = (shapes(&operands), shapes(&results));
        let call = linalg::Call::new(
            &thunk.target,
            &thunk.backend_config,
            &operands.iter().collect::<Vec<_>>(),
            &results.iter().collect::<Vec<_>>(),
        );
        let call = call.ok_or_else(|| format!("nobody has `{}`", thunk.target))??;
        let given: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
        let items = call.items(&given, made.iter_mut().map(Vec::as_mut_slice).collect());
        items?.iter_mut().for_each(|item| call.run(item));
        let sent = to.write_all(&made.concat()).and_then(|()| to.flush());
        sent.map_err(|e| format!("no answer: {e}"))?;
    }
    Ok(())
}

fn cannot_run(name: &str, why: &std::io::Error) -> String {
    format!("`{name}` cannot be run ({why}); `scripts/toolchain.sh test` installs it")
}

fn failure(name: &str, status: std::process::ExitStatus, said: &[u8]) -> String {
    let said: String = String::from_utf8_lossy(said).chars().take(2000).collect();
    format!("`{name}`: {status}: {said}")
}

/// Runs a tool to its end; what it said is the error when it fails.
fn finish(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| cannot_run(&name, &e))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failure(&name, output.status, &output.stderr))
}

/// What is given of each allocation when the program starts: parameters and constants.
fn memory_at_start(
    executable: &Executable,
    inputs: &[ArrayLiteral],
) -> Result<Vec<Vec<u8>>, String> {
    let mut leaves = BTreeMap::new();
    let mut next = inputs.iter();
    for (number, parameter) in executable.signature.program.parameters.iter().enumerate() {
        for (index, leaf) in parameter.leaves() {
            if let Some(shape) = leaf.as_array() {
                let input = next.next().ok_or("too few inputs")?;
                leaves.insert((number, index), device_form::to_device(input, shape));
            }
        }
    }
    let given = executable.allocs.values().map(|alloc| match &alloc.kind {
        AllocKind::Parameter { number, index, .. } => leaves
            .get(&(*number, index.clone()))
            .cloned()
            .unwrap_or_default(),
        AllocKind::Constant(id) => executable.constants[*id].bytes.to_vec(),
        AllocKind::Tuple | AllocKind::ThreadLocal | AllocKind::Owned | AllocKind::Window => {
            Vec::new()
        }
    });
    Ok(given.collect())
}

fn results(executable: &Executable, file: &Path) -> Result<Vec<ArrayLiteral>, String> {
    let bytes = fs::read(file).map_err(|e| format!("no result: {e}"))?;
    let mut rest = bytes.as_slice();
    let leaves = executable.signature.program.result.leaves().into_iter();
    let shapes = leaves.filter_map(|(_, leaf)| leaf.as_array());
    let outputs = executable.signature.outputs.iter().zip(shapes);
    outputs
        .map(|(output, shape)| {
            let (leaf, after) = rest
                .split_at_checked(output.slice.size as usize)
                .ok_or("the result is too short")?;
            rest = after;
            device_form::from_device(leaf, shape).map_err(|d| d.to_string())
        })
        .collect()
}

/// Writes the C program.
struct Player<'a> {
    executable: &'a Executable,
    /// The custom calls, by the numbers they have in the program.
    calls: RefCell<Vec<CustomCallThunk>>,
}

impl Player<'_> {
    fn program(&self) -> Result<String, String> {
        let executable = self.executable;
        let (allocs, outputs) = (&executable.allocs, &executable.signature.outputs);
        let mut out = format!("#define ALLOCATIONS {}\n", allocs.len());
        let _ = writeln!(out, "#define RESULTS {}{PRELUDE}{FOURIER}", outputs.len());
        for (id, kernel) in executable.kernels.iter() {
            let (number, name) = (id.index(), &kernel.name);
            let _ = writeln!(out, "extern Kernel k{number} __asm__(\"{name}\");");
        }
        let sizes = allocs.values().map(|a| a.size.0);
        let given = allocs.values().map(|alloc| match &alloc.kind {
            AllocKind::Constant(_) => alloc.size.0,
            AllocKind::Parameter { number, index, .. } => {
                let parameter = &executable.signature.program.parameters[*number];
                let leaf = parameter.at(index).and_then(|leaf| leaf.as_array());
                leaf.map_or(0, |shape| shape.byte_size() as u64)
            }
            AllocKind::Tuple | AllocKind::ThreadLocal | AllocKind::Owned | AllocKind::Window => 0,
        });
        let results = outputs.iter().map(|output| {
            let Slice {
                alloc,
                offset,
                size,
            } = output.slice;
            format!("{{{}, {offset}, {size}}}", alloc.index())
        });
        let table = |name: &str, rows: Vec<String>| {
            format!(
                "static const uint64_t {name} = {{{}}};\n",
                rows.into_iter().map(|row| row + ", ").collect::<String>()
            )
        };
        let numbers = |n: u64| n.to_string();
        // One more entry than needed, as C has no empty arrays.
        out += &table("sizes[ALLOCATIONS + 1]", sizes.map(numbers).collect());
        out += &table("given[ALLOCATIONS + 1]", given.map(numbers).collect());
        out += &table("results[RESULTS + 1][3]", results.collect());
        out += "static void run(void) {\n";
        self.sequence(&executable.thunks, &mut out)?;
        out += "}\n";
        Ok(out + MAIN)
    }

    fn sequence(&self, sequence: &ThunkSequence, out: &mut String) -> Result<(), String> {
        sequence.0.iter().try_for_each(|t| self.thunk(t, out))
    }

    fn thunk(&self, thunk: &Thunk, out: &mut String) -> Result<(), String> {
        match &thunk.kind {
            ThunkKind::Kernel(kernel) => self.kernel(kernel, out),
            ThunkKind::Copy(copy) => copy_text(copy, out)?,
            ThunkKind::Memset { destination, value } => {
                let (to, size) = (address(destination), destination.size);
                let _ = writeln!(out, "set({to}, {value}u, {size});");
            }
            ThunkKind::Call(sequence) => self.sequence(sequence, out)?,
            ThunkKind::While(w) => {
                match w.trip_count {
                    Some(count) => {
                        let _ = writeln!(out, "for (uint64_t i = 0; i < {count}u; i++) {{");
                    }
                    None => {
                        *out += "for (;;) {\n";
                        self.sequence(&w.condition, out)?;
                        let _ = writeln!(out, "if (!*({})) break;", address(&w.predicate));
                    }
                }
                self.sequence(&w.body, out)?;
                *out += "}\n";
            }
            ThunkKind::Conditional(c) => {
                let (index, count) = (address(&c.branch_index), c.branches.len());
                let _ = if c.is_pred {
                    writeln!(out, "switch (!*({index})) {{")
                } else {
                    writeln!(out, "switch (branch(word({index}), {count})) {{")
                };
                for (i, branch) in c.branches.iter().enumerate() {
                    let _ = writeln!(out, "case {i}: {{");
                    self.sequence(branch, out)?;
                    *out += "} break;\n";
                }
                *out += "}\n";
            }
            ThunkKind::ReplicaId(to) | ThunkKind::PartitionId(to) => {
                let _ = writeln!(out, "set({}, 0, 4);", address(to));
            }
            ThunkKind::Collective(collective) => {
                let receives = match &collective.kind {
                    CollectiveThunkKind::CollectivePermute { pairs } => pairs.contains(&(0, 0)),
                    _ => true,
                };
                for (from, to) in collective.sources.iter().zip(&collective.destinations) {
                    let (source, size) = (address(&from.slice), to.slice.size);
                    let to = address(&to.slice);
                    let _ = if receives {
                        writeln!(out, "memmove({to}, {source}, {size});")
                    } else {
                        writeln!(out, "memset({to}, 0, {size});")
                    };
                }
            }
            ThunkKind::RngGetAndUpdateState { state, delta } => {
                let (to, first) = (address(state), INITIAL_RNG_STATE);
                let _ = writeln!(
                    out,
                    "{{ static __int128 state = {first}; memcpy({to}, &state, 16); state += {delta}; }}"
                );
            }
            ThunkKind::Fft(fft) => fourier_text(fft, out)?,
            ThunkKind::CustomCall(call) => {
                let table = |slices: &[Option<ShapedSlice>]| -> String {
                    let slices = slices.iter().flatten();
                    let rows =
                        slices.map(|s| format!("{{{}, {}}}, ", address(&s.slice), s.slice.size));
                    rows.collect()
                };
                let (operands, results) = (table(&call.operands), table(&call.results));
                let number = self.calls.borrow().len();
                let _ = writeln!(
                    out,
                    "host({number}, (Arg[]){{{operands}{{0, 0}}}}, (Arg[]){{{results}{{0, 0}}}});"
                );
                self.calls.borrow_mut().push((**call).clone());
            }
            other => return Err(format!("a `{}` thunk is not played in C", other.name())),
        }
        Ok(())
    }

    fn kernel(&self, thunk: &KernelThunk, out: &mut String) {
        let name = &self.executable.kernels[thunk.kernel].name;
        let [x, y, z] = thunk.launch.workgroups;
        let number = thunk.kernel.index();
        let slices: Vec<_> = thunk.args.iter().chain(&thunk.results).collect();
        let _ = write!(
            out,
            "launch(\"{name}\", k{number}, (Dim3){{{x}, {y}, {z}}}, {}, (Arg[]){{",
            slices.len()
        );
        for slice in &slices {
            let (data, size) = (address(&slice.slice), slice.slice.size);
            let _ = write!(out, "{{{data}, {size}}}, ");
        }
        *out += "{0, 0}});\n";
    }
}

fn address(slice: &Slice) -> String {
    format!("memory[{}] + {}", slice.alloc.index(), slice.offset)
}

fn fourier_text(fft: &FftThunk, out: &mut String) -> Result<(), String> {
    let is_real_input = !fft.input.shape.ty.is_complex();
    let real = if is_real_input {
        &fft.input
    } else {
        &fft.output
    };
    let (shape, rank) = (&real.shape, fft.lengths.len());
    let dense = |s: &ArrayShape| s.layout_or_default().is_row_major();
    if !dense(&fft.input.shape) || !dense(&fft.output.shape) {
        return Err("an `fft` of arrays that are not row-major is not played in C".to_owned());
    }
    let rows: usize = shape.dims[..shape.rank() - rank].iter().product();
    let lengths: Vec<String> = fft.lengths.iter().map(ToString::to_string).collect();
    let wide = matches!(shape.ty, PrimitiveType::F64 | PrimitiveType::C128);
    let _ = writeln!(
        out,
        "fourier({}, {}, {rank}, (uint64_t[]){{{}}}, {rows}, {}, {});",
        fft.kind,
        u8::from(wide),
        lengths.join(", "),
        address(&fft.input.slice),
        address(&fft.output.slice),
    );
    Ok(())
}

/// One loop a dimension when the layouts differ.
fn copy_text(copy: &CopyThunk, out: &mut String) -> Result<(), String> {
    let (source, destination) = (&copy.source.shape, &copy.destination.shape);
    let (from, to) = (
        address(&copy.source.slice),
        address(&copy.destination.slice),
    );
    let strides = [source, destination].map(byte_strides);
    if strides[0] == strides[1] {
        let _ = writeln!(out, "memmove({to}, {from}, {});", source.byte_size());
        return Ok(());
    }
    if source.ty.bit_width_in_memory() < 8 {
        return Err("a copy of packed elements between layouts is not played in C".to_owned());
    }
    for (i, size) in source.dims.iter().enumerate() {
        let _ = writeln!(out, "for (uint64_t i{i} = 0; i{i} < {size}u; i{i}++)");
    }
    let sum = |strides: &[usize]| {
        let terms = strides.iter().enumerate();
        terms
            .map(|(i, stride)| format!(" + i{i} * {stride}"))
            .collect::<String>()
    };
    let (from, to) = (from + &sum(&strides[0]), to + &sum(&strides[1]));
    let width = source.ty.byte_width();
    let _ = writeln!(out, "memcpy({to}, {from}, {width});");
    Ok(())
}

/// Distance in bytes between neighbours along each dimension; zero where there are none.
fn byte_strides(shape: &ArrayShape) -> Vec<usize> {
    let mut strides = vec![0; shape.rank()];
    let mut stride = shape.ty.byte_width();
    for &dim in &shape.layout_or_default().minor_to_major {
        if shape.dims[dim] != 1 {
            strides[dim] = stride;
        }
        stride *= shape.dims[dim];
    }
    strides
}
