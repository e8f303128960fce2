//! The CPU kernel ABI, XLA's own: `ptr kernel(ptr frame)`, null on success.
//!
//! The frame is four words: address of the three workgroup counts, address of the three workgroup
//! numbers (all `u64`), number of arguments, address of the arguments. An argument is two words:
//! address of the data and its size in bytes. A workgroup is one task; it has one workitem.

use inkwell::context::Context;
use inkwell::module::Module;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::kernel::Buffer;
use crate::kernel::Kernel;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::llvm::index::Facts;
use crate::llvm::ir::Ir;
use crate::llvm::ir::Val;
use crate::llvm::lower::Ids;
use crate::llvm::lower::Lower;
use crate::llvm::session::Machine;

/// Byte offset in the frame of the address of the workgroup numbers.
const WORKGROUP_NUMBERS: u64 = 8;
/// Byte offset in the frame of the address of the arguments.
const ARGUMENTS: u64 = 24;
/// Scratch memory of a kernel: half of the stack that XLA's pool threads have.
const STACK_BYTES: u64 = 4 << 20;
/// Size of one argument.
const ARGUMENT_BYTES: u64 = 16;

/// Lowers a kernel to a function of the module, which answers to further names too.
pub(super) fn lower<'a, 'ctx: 'a>(
    context: &'ctx Context,
    module: &'a Module<'ctx>,
    kernel: &'a Kernel,
    machine: &'a Machine,
    names: impl Iterator<Item = &'a str>,
) -> Result<()> {
    check_memory(kernel)?;
    let ir = Ir::function(
        context,
        module,
        &kernel.name,
        |ir| ir.ptr(0),
        |ir| vec![ir.ptr(0)],
    );
    ir.function_attribute("nounwind", 0);
    ir.function_string("denormal-fp-math", "dynamic,dynamic");
    ir.param_attribute(0, "noalias", 0);
    ir.param_attribute(0, "readonly", 0);
    ir.param_attribute(0, "dereferenceable", 32);
    let frame = ir.param(0);
    let numbers = word(&ir, frame, WORKGROUP_NUMBERS);
    let arguments = word(&ir, frame, ARGUMENTS);
    let params: Vec<Val> = kernel
        .params()
        .enumerate()
        .map(|(i, (_, buffer))| {
            let data = word(&ir, arguments, i as u64 * ARGUMENT_BYTES);
            describe(&ir, data, buffer);
            data
        })
        .collect();
    let mut lower = Lower {
        ir,
        kernel,
        machine,
        facts: Facts::new(kernel),
        values: vec![None; kernel.exprs.len()],
        places: Vec::new(),
        ids: Ids::Cpu(numbers),
    };
    lower.place_buffers(&params);
    lower.body()?;
    let null = lower.ir.zero(lower.ir.ptr(0));
    lower.ir.ret(Some(null));
    for name in names {
        lower.ir.alias(name);
    }
    Ok(())
}

/// Refuses memory that outlives a launch, and scratch memory that a thread's stack may not hold.
fn check_memory(kernel: &Kernel) -> Result<()> {
    if kernel.buffers.values().any(|b| b.space == Space::Kept) {
        return Err(Diagnostic::internal(
            codes::KERNEL_CHECK,
            format!(
                "kernel `{}` keeps memory, as only GPU kernels do",
                kernel.name
            ),
        ));
    }
    let scratch = kernel
        .buffers
        .values()
        .filter(|buffer| buffer.space != Space::Global);
    let bytes: u64 = scratch.map(|b| b.count * b.elem.bytes()).sum();
    if bytes <= STACK_BYTES {
        return Ok(());
    }
    Err(Diagnostic::internal(
        codes::KERNEL_CHECK,
        format!(
            "kernel `{}` keeps {bytes} bytes of scratch memory on the stack, at most {STACK_BYTES} \
             are safe",
            kernel.name
        ),
    ))
}

/// Loads the address at a byte offset of a block that does not change during the kernel.
fn word(ir: &Ir<'_>, base: Val, offset: u64) -> Val {
    let at = ir.element(ir.scalar(Scalar::I8), base, ir.i64(offset));
    let value = ir.load(ir.ptr(0), at, 8);
    ir.annotate(value, "invariant.load", ir.node(&[]));
    value
}

/// Tells LLVM what the runtime promises of an argument's address.
fn describe(ir: &Ir<'_>, data: Val, buffer: &Buffer) {
    let number = |value: u64| ir.node(&[ir.md_value(ir.i64(value))]);
    let bytes = buffer.count * buffer.elem.bytes();
    if bytes > 0 {
        ir.annotate(data, "dereferenceable", number(bytes));
    }
    ir.annotate(data, "align", number(buffer.align.max(1)));
}
