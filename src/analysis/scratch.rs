//! How much working memory an instruction's kernels need besides operands and results.
//!
//! Known before buffers are assigned, so that an emitter can be handed the memory. The table and the
//! emitters are changed together.

use crate::analysis::attention;
use crate::analysis::contraction;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::shape::ArrayShape;
use crate::target::Platform;
use crate::target::Target;

/// Elements worth a sorting task of their own.
const SORT_TASK: u64 = 32 * 1024;
/// Shared memory that a GPU sort may use without asking.
const SHARED: u64 = 40 * 1024;

/// Bytes of scratch memory that the kernels of `instr` need while they run; mostly zero.
pub fn bytes(module: &Module, instr: InstrId, target: &Target) -> u64 {
    let Some(sort) = sort_of(module, instr) else {
        return match attention::of(module, instr, target) {
            Some(attention) => attention::scratch(&attention, module, target),
            None => contraction::scratch_bytes(module, instr, target),
        };
    };
    let Some((rows, size)) = sort_shape(module, sort) else {
        return 0;
    };
    let widths: Vec<u64> = module
        .instr(sort)
        .operands
        .iter()
        .filter_map(|&o| module.instr(o).shape.as_array())
        .map(|array| array.ty.byte_width() as u64)
        .collect();
    match target.platform() {
        Platform::Cpu => {
            let count = 2 * size * sort_tasks(module, instr, target);
            widths.iter().map(|w| aligned(w * count)).sum()
        }
        Platform::Cuda => {
            let row = size.next_power_of_two();
            let each = widths.iter().sum::<u64>() + 4;
            if row * each <= SHARED {
                return 0;
            }
            let arrays = widths.iter().chain(&[4]);
            arrays.map(|w| aligned(w * row * rows)).sum()
        }
    }
}

/// Bytes that an array of scratch memory takes.
pub fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(256)
}

/// The number of tasks that a sort on a CPU is shared out to; each has scratch memory of its own.
pub fn sort_tasks(module: &Module, instr: InstrId, target: &Target) -> u64 {
    let shape = sort_of(module, instr).and_then(|sort| sort_shape(module, sort));
    let Some((rows, size)) = shape else { return 1 };
    let packed = sort_of(module, instr).is_some_and(|sort| {
        let mut operands = module.instr(sort).operands.iter();
        operands.any(|&o| {
            let array = module.instr(o).shape.as_array();
            array.is_some_and(|a| a.ty.is_sub_byte())
        })
    });
    if packed {
        return 1;
    }
    let wanted = rows * size / SORT_TASK;
    let tasks = wanted
        .clamp(1, u64::from(target.parallelism.max(1)))
        .min(rows.max(1));
    // As many tasks as there are parts when rows are cut into equal parts.
    rows.max(1).div_ceil(rows.max(1).div_ceil(tasks))
}

/// The sort that an instruction is, or that its fusion ends in.
fn sort_of(module: &Module, instr: InstrId) -> Option<InstrId> {
    let mut id = match module.instr(instr).op {
        Op::Fusion { body, .. } => module.comp(body).root,
        _ => instr,
    };
    loop {
        let instr = module.instr(id);
        match instr.op {
            Op::Sort { .. } => return Some(id),
            Op::Tuple | Op::GetTupleElement { .. } => id = *instr.operands.first()?,
            _ => return None,
        }
    }
}

/// Number of rows and elements of each.
fn sort_shape(module: &Module, sort: InstrId) -> Option<(u64, u64)> {
    let instr = module.instr(sort);
    let Op::Sort { dim, .. } = instr.op else {
        return None;
    };
    let first: &ArrayShape = module.instr(*instr.operands.first()?).shape.as_array()?;
    let size = first.dims[dim] as u64;
    let total = first.element_count() as u64;
    Some((total.checked_div(size).unwrap_or(0), size))
}
