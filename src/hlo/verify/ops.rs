//! Rules O1 to O6: one instruction and its operands.

use crate::base::Diagnostic;
use crate::base::IdMap;
use crate::base::codes::OP_CONSTRAINT;
use crate::base::codes::SHAPE_MISMATCH;
use crate::hlo::CollectiveKind;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::infer::agree;
use crate::hlo::infer::infer;
use crate::hlo::infer::text;
use crate::hlo::verify::Report;
use crate::shape::ArrayShape;
use crate::shape::Shape;
use crate::shape::index::is_permutation;

pub(super) fn ops(report: &mut Report<'_>) {
    let module = report.module;
    let mut users: IdMap<InstrId, u32> = IdMap::new();
    for computation in module.comps.values() {
        for &id in &computation.instrs {
            for &operand in &module.instrs[id].operands {
                users[operand] += 1;
            }
        }
        users[computation.root] += 1;
    }
    for computation in module.comps.values() {
        for &id in &computation.instrs {
            let arrays = well_formed_arrays(&module.instrs[id].shape);
            match arrays {
                Ok(()) => shape(report, id),
                Err(message) => report.instr_error(OP_CONSTRAINT, id, message),
            }
            pairing(report, id, users[id]);
            leaf_replication(report, id);
        }
    }
    let Some(layout) = &module.config.entry_layout else {
        return;
    };
    for shape in layout.parameters.iter().chain([&layout.result]) {
        if let Err(message) = well_formed_arrays(shape) {
            report.module_error(OP_CONSTRAINT, format!("entry layout: {message}"));
        }
    }
}

/// O3 and O6, for every array in a shape.
fn well_formed_arrays(shape: &Shape) -> Result<(), String> {
    let check = |array: &ArrayShape| {
        if array.checked_element_count().is_none() {
            return Err(format!("{} has too many elements", text(shape)));
        }
        if !array.dynamic.is_empty() && array.dynamic.len() != array.rank() {
            return Err("as many dynamic flags as dimensions are needed".to_owned());
        }
        match &array.layout {
            Some(layout)
                if layout.minor_to_major.len() != array.rank()
                    || !is_permutation(&layout.minor_to_major) =>
            {
                Err(format!(
                    "layout {:?} does not order the dimensions of {}",
                    layout.minor_to_major,
                    text(shape)
                ))
            }
            _ => Ok(()),
        }
    };
    let leaves = shape.leaves();
    let arrays = leaves.iter().filter_map(|(_, leaf)| leaf.as_array());
    arrays.clone().try_for_each(check)?;
    let mut sizes = arrays.map(ArrayShape::byte_size);
    let total = sizes.try_fold(0usize, usize::checked_add);
    if total.is_none_or(|total| total > ArrayShape::MAX_BYTES) {
        return Err(format!("{} is larger than memory can be", text(shape)));
    }
    Ok(())
}

/// O1 and O2.
fn shape(report: &mut Report<'_>, id: InstrId) {
    let module = report.module;
    let instr = &module.instrs[id];
    let operands: Vec<&Shape> = instr
        .operands
        .iter()
        .map(|&o| &module.instrs[o].shape)
        .collect();
    match infer(module, &instr.op, &operands, Some(&instr.shape)) {
        Err(error) => report.instr_diagnostic(id, error),
        Ok(inferred) if !agree(&inferred, &instr.shape) => {
            let (declared, inferred) = (text(&instr.shape), text(&inferred));
            let name = instr.op.opcode();
            let message = format!("`{name}` is declared {declared}, its operands give {inferred}");
            report.instr_diagnostic(id, Diagnostic::error(SHAPE_MISMATCH, message));
        }
        Ok(_) => {}
    }
}

/// O4. Async ops that are split in two: what the second half takes.
fn pairing(report: &mut Report<'_>, id: InstrId, users: u32) {
    let module = report.module;
    let instr = &module.instrs[id];
    let name = instr.op.opcode();
    let starts = matches!(
        &instr.op,
        Op::CopyStart { .. }
            | Op::AsyncStart { .. }
            | Op::AsyncUpdate
            | Op::Collective {
                kind: CollectiveKind::AllGatherStart { .. }
                    | CollectiveKind::AllReduceStart { .. }
                    | CollectiveKind::CollectivePermuteStart { .. },
                ..
            }
    );
    if starts && users != 1 {
        let message = format!("`{name}`: has {users} users instead of one done op");
        report.instr_error(OP_CONSTRAINT, id, message);
        return;
    }
    let Some(&first) = instr.operands.first() else {
        return;
    };
    let before = &module.instrs[first].op;
    let fits = match (&instr.op, before) {
        (Op::CopyDone, Op::CopyStart { .. })
        | (Op::AsyncUpdate | Op::AsyncDone, Op::AsyncStart { .. } | Op::AsyncUpdate) => true,
        (Op::AllGatherDone, Op::Collective { kind, .. }) => {
            matches!(kind, CollectiveKind::AllGatherStart { .. })
        }
        (Op::AllReduceDone, Op::Collective { kind, .. }) => {
            matches!(kind, CollectiveKind::AllReduceStart { .. })
        }
        (Op::CollectivePermuteDone, Op::Collective { kind, .. }) => {
            matches!(kind, CollectiveKind::CollectivePermuteStart { .. })
        }
        (Op::SendDone { channel_id: a, .. }, Op::Send { channel_id: b, .. })
        | (Op::RecvDone { channel_id: a, .. }, Op::Recv { channel_id: b, .. }) => a == b,
        (
            Op::CopyDone
            | Op::AsyncUpdate
            | Op::AsyncDone
            | Op::AllGatherDone
            | Op::AllReduceDone
            | Op::CollectivePermuteDone,
            _,
        ) => false,
        // Sends and receives may be pipelined through loops, where a tuple element stands between.
        (Op::SendDone { .. }, other) => !matches!(other, Op::Recv { .. }),
        (Op::RecvDone { .. }, other) => !matches!(other, Op::Send { .. }),
        _ => true,
    };
    if !fits {
        let message = format!("`{name}`: its operand is no start op of its kind and channel");
        report.instr_error(OP_CONSTRAINT, id, message);
    }
}

/// O5.
fn leaf_replication(report: &mut Report<'_>, id: InstrId) {
    let instr = &report.module.instrs[id];
    let Op::Parameter {
        leaf_replication, ..
    } = &instr.op
    else {
        return;
    };
    let leaves = instr.shape.leaves().len();
    if !leaf_replication.is_empty() && leaf_replication.len() != leaves {
        let found = leaf_replication.len();
        let message = format!("`parameter`: has {found} replication flags for {leaves} leaves");
        report.instr_error(OP_CONSTRAINT, id, message);
    }
}
