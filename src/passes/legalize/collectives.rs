//! Collectives of one participant, and the ids of the only device; for several, the forms that the
//! runtime has.
//!
//! A module for one replica and one partition talks to nobody: reductions and gathers give their
//! operand back, a permute gives it back when the device sends to itself and zeros otherwise.

use crate::analysis::call_graph;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::collective::Topology;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::passes::edit;
use crate::passes::edit::Edit;
use crate::passes::legalize::spread_collectives;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The pass.
pub struct Collectives;

impl Pass for Collectives {
    fn name(&self) -> &'static str {
        "collectives"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let config = &module.config;
        let topology = Topology::new(config.replica_count, config.num_partitions);
        let topology =
            topology.map_err(|why| Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, why))?;
        let spread = spread_collectives::spread(module, topology, cx)?;
        if topology != Topology::ONE {
            return Ok(spread);
        }
        let comps = call_graph::post_order(module);
        let rewritten = edit::sweep(module, &comps, &mut rule)?;
        Ok(spread.or(rewritten))
    }
}

fn rule(edit: &mut Edit<'_>, id: InstrId) -> Result<Option<InstrId>> {
    let instr = edit.instr(id);
    let (parent, operands) = (instr.parent, instr.operands.clone());
    match &instr.op {
        Op::PartitionId | Op::ReplicaId => {
            let zero = ArrayLiteral::zeros(ArrayShape::scalar(PrimitiveType::U32));
            let op = Op::Constant(Literal::Array(zero));
            Ok(Some(edit.op(parent, op, &[])?))
        }
        Op::Collective { kind, .. } => match kind {
            CollectiveKind::AllReduce { .. }
            | CollectiveKind::AllGather { .. }
            | CollectiveKind::ReduceScatter { .. }
            | CollectiveKind::CollectiveBroadcast
            | CollectiveKind::AllToAll { .. } => same(edit, parent, id, &operands),
            CollectiveKind::CollectivePermute { pairs, .. } => {
                let own = pairs.contains(&(0, 0));
                permuted(edit, parent, id, &operands, own)
            }
            CollectiveKind::AllReduceStart { .. } => same(edit, parent, id, &operands),
            CollectiveKind::AllGatherStart { .. } => started(edit, parent, id, &operands, true),
            CollectiveKind::CollectivePermuteStart { pairs, .. } => {
                let own = pairs.contains(&(0, 0));
                started(edit, parent, id, &operands[..1], own)
            }
            CollectiveKind::RaggedAllToAll => Ok(None),
        },
        // What was started is known by now: the result, or a tuple of operand, result, contexts.
        Op::AllReduceDone => Ok(Some(operands[0]).filter(|&s| is_done(edit, s))),
        Op::AllGatherDone | Op::CollectivePermuteDone => {
            let start = edit.instr(operands[0]);
            Ok((start.op == Op::Tuple).then(|| start.operands[1]))
        }
        _ => Ok(None),
    }
}

/// The operands as the result, when the shapes say that there is one participant.
fn same(
    edit: &mut Edit<'_>,
    parent: CompId,
    id: InstrId,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let shape = edit.instr(id).shape.clone();
    if let [only] = operands
        && edit.instr(*only).shape.same_ignoring_layout(&shape)
    {
        return Ok(Some(*only));
    }
    let fits = shape.as_tuple().is_some_and(|elements| {
        elements.len() == operands.len()
            && elements
                .iter()
                .zip(operands)
                .all(|(e, &o)| e.same_ignoring_layout(&edit.instr(o).shape))
    });
    if fits {
        return Ok(Some(edit.op(parent, Op::Tuple, operands)?));
    }
    Ok(None)
}

fn is_done(edit: &Edit<'_>, start: InstrId) -> bool {
    !matches!(edit.instr(start).op, Op::Collective { .. })
}

/// The tuple that a start op gives: operand, result, and contexts that nothing reads.
fn started(
    edit: &mut Edit<'_>,
    parent: CompId,
    id: InstrId,
    operands: &[InstrId],
    own: bool,
) -> Result<Option<InstrId>> {
    let shape = edit.instr(id).shape.clone();
    let (Some(parts), [operand]) = (shape.as_tuple(), operands) else {
        return Ok(None);
    };
    let result = if own {
        Some(*operand)
    } else {
        zeros_like(edit, parent, *operand)?
    };
    let Some(result) = result else {
        return Ok(None);
    };
    let mut values = vec![*operand, result];
    for part in parts.iter().skip(2) {
        let Some(array) = part.as_array() else {
            return Ok(None);
        };
        let zero = ArrayLiteral::zeros(ArrayShape::new(array.ty, array.dims.iter().copied()));
        values.push(edit.op(parent, Op::Constant(Literal::Array(zero)), &[])?);
    }
    same(edit, parent, id, &values)
}

fn permuted(
    edit: &mut Edit<'_>,
    parent: CompId,
    id: InstrId,
    operands: &[InstrId],
    own: bool,
) -> Result<Option<InstrId>> {
    if own {
        return same(edit, parent, id, operands);
    }
    let zeros = operands
        .iter()
        .map(|&o| zeros_like(edit, parent, o))
        .collect::<Result<Option<Vec<_>>>>()?;
    match zeros {
        Some(zeros) => same(edit, parent, id, &zeros),
        None => Ok(None),
    }
}

fn zeros_like(edit: &mut Edit<'_>, parent: CompId, id: InstrId) -> Result<Option<InstrId>> {
    let Some(array) = edit.array(id).cloned() else {
        return Ok(None);
    };
    let zero = ArrayLiteral::zeros(ArrayShape::scalar(array.ty));
    let zero = edit.op(parent, Op::Constant(Literal::Array(zero)), &[])?;
    let shape = Shape::Array(ArrayShape::new(array.ty, array.dims));
    let broadcast = Op::Broadcast { dims: Dims::new() };
    Ok(Some(edit.shaped(parent, broadcast, &[zero], shape)?))
}
