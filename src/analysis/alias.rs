//! Which result leaves of an instruction may live in the memory of which operand leaves.
//!
//! Emitters rely on these rules as much as buffer assignment does: a pair listed here may be given
//! one slice, and the kernel must then work in place; any other result never overlaps an operand.
//! Loops, conditionals and calls are not listed; their sharing follows from the values' live ranges.

use crate::base::IdMap;
use crate::hlo::FusionKind;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::shape::ArrayShape;
use crate::shape::Shape;

/// One result leaf that may take over the memory of an operand leaf that nobody needs any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// Operand number.
    pub operand: usize,
    /// Leaf of the operand.
    pub operand_leaf: usize,
    /// Leaf of the result.
    pub result_leaf: usize,
    /// Whether a copy of the operand has to be made when they do not share.
    pub saves_copy: bool,
}

/// The pairs of an instruction, those of one operand together.
pub fn shares(module: &Module, id: InstrId) -> Vec<Share> {
    let instr = &module.instrs[id];
    match &instr.op {
        Op::Fusion { kind, body, .. } => fusion_shares(module, *kind, *body, instr),
        Op::DynamicUpdateSlice => vec![in_place(0, 0)],
        Op::Scatter { .. } => {
            let arrays = instr.operands.len() / 2;
            (0..arrays).map(|i| in_place(i, i)).collect()
        }
        Op::Sort { .. } => (0..instr.operands.len()).map(|i| in_place(i, i)).collect(),
        Op::Copy => copy_share(module, instr),
        Op::CustomCall(call) => {
            let aliasing = call.output_to_operand_aliasing.iter();
            let shares = aliasing.map(|(output, operand, index)| {
                let operand = usize::try_from(*operand).ok()?;
                let operand_shape = &module.instrs[*instr.operands.get(operand)?].shape;
                Some(Share {
                    operand,
                    operand_leaf: leaf_number(operand_shape, index)?,
                    result_leaf: leaf_number(&instr.shape, output)?,
                    saves_copy: true,
                })
            });
            shares.flatten().collect()
        }
        op if is_pointwise(op) => {
            let Some(result) = instr.shape.as_array() else {
                return Vec::new();
            };
            let operands = instr.operands.iter().enumerate();
            let fitting = operands.filter(|(_, o)| fits(&module.instrs[**o].shape, result));
            fitting.map(|(i, _)| may(i, 0)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the op updates its first operand, so that XLA's own analysis puts both in one buffer.
pub fn is_in_place(op: &Op) -> bool {
    matches!(op, Op::DynamicUpdateSlice | Op::Scatter { .. })
}

fn in_place(operand: usize, result_leaf: usize) -> Share {
    Share {
        operand,
        operand_leaf: 0,
        result_leaf,
        saves_copy: true,
    }
}

fn may(operand: usize, result_leaf: usize) -> Share {
    Share {
        operand,
        operand_leaf: 0,
        result_leaf,
        saves_copy: false,
    }
}

fn copy_share(module: &Module, instr: &Instr) -> Vec<Share> {
    let source = module.instrs[instr.operands[0]].shape.as_array();
    let (Some(source), Some(result)) = (source, instr.shape.as_array()) else {
        return Vec::new();
    };
    let same = source.layout_or_default() == result.layout_or_default();
    if same {
        vec![in_place(0, 0)]
    } else {
        Vec::new()
    }
}

fn leaf_number(shape: &Shape, index: &[i64]) -> Option<usize> {
    let leaves = shape.leaves();
    leaves.iter().position(|(leaf, _)| {
        leaf.len() == index.len()
            && leaf
                .iter()
                .zip(index)
                .all(|(&a, &b)| i64::try_from(a) == Ok(b))
    })
}

/// Whether an array of this shape can become `result` element by element.
fn fits(shape: &Shape, result: &ArrayShape) -> bool {
    shape.as_array().is_some_and(|array| {
        let width = array.ty.bit_width_in_memory();
        width >= 8
            && width == result.ty.bit_width_in_memory()
            && array.element_count() == result.element_count()
    })
}

/// Whether element `i` of the result needs only the elements `i` of the operands.
fn is_pointwise(op: &Op) -> bool {
    op.is_elementwise() || matches!(op, Op::BitcastConvert | Op::StochasticConvert)
}

/// How a fusion reads its parameters, by parameter number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Reads {
    /// Not at all.
    #[default]
    None,
    /// Only the element that is written.
    Same,
    /// Anything.
    Any,
}

fn fusion_shares(
    module: &Module,
    kind: FusionKind,
    body: crate::hlo::CompId,
    instr: &Instr,
) -> Vec<Share> {
    let root = module.comps[body].root;
    let roots: Vec<InstrId> = match &module.instrs[root].op {
        Op::Tuple => module.instrs[root].operands.to_vec(),
        _ => vec![root],
    };
    let mut out = Vec::new();
    let updates: Vec<usize> = (0..roots.len())
        .filter(|&leaf| is_in_place(&module.instrs[skip_views(module, roots[leaf])].op))
        .collect();
    if updates.is_empty() {
        if kind == FusionKind::Loop {
            out = loop_shares(module, body, &roots, instr);
        }
        return out;
    }
    for leaf in updates {
        if let Some(operand) = updated_parameter(module, body, &roots, leaf) {
            out.push(in_place(operand, leaf));
        }
    }
    out
}

/// A loop fusion's result leaf may overwrite a parameter that is read only at the written element.
fn loop_shares(
    module: &Module,
    body: crate::hlo::CompId,
    roots: &[InstrId],
    instr: &Instr,
) -> Vec<Share> {
    let count = |id: InstrId| {
        module.instrs[id]
            .shape
            .as_array()
            .map(ArrayShape::element_count)
    };
    if roots.iter().any(|&r| count(r) != count(roots[0])) {
        return Vec::new();
    }
    let reads = fusion_reads(module, body, roots, &Cuts::default());
    let mut out = Vec::new();
    for (number, &param) in module.comps[body].params.iter().enumerate() {
        if reads[param] != Reads::Same || number >= instr.operands.len() {
            continue;
        }
        for (leaf, &root) in roots.iter().enumerate() {
            let Some(result) = module.instrs[root].shape.as_array() else {
                continue;
            };
            if fits(&module.instrs[param].shape, result) {
                out.push(may(number, leaf));
            }
        }
    }
    out
}

/// Edges of a fusion body, as instruction and operand number, that are special.
#[derive(Default)]
struct Cuts {
    /// Not followed.
    away: Vec<(InstrId, usize)>,
    /// Followed as if they kept the element.
    same: Vec<(InstrId, usize)>,
}

/// How every instruction of a fusion body is read on the way from the roots.
fn fusion_reads(
    module: &Module,
    body: crate::hlo::CompId,
    roots: &[InstrId],
    cuts: &Cuts,
) -> IdMap<InstrId, Reads> {
    let mut reads = IdMap::new();
    for &root in roots {
        reads.set(root, Reads::Same);
    }
    for &id in module.comps[body].instrs.iter().rev() {
        let here = reads[id];
        if here == Reads::None || matches!(module.instrs[id].op, Op::Tuple) {
            continue;
        }
        let instr = &module.instrs[id];
        for (i, &operand) in instr.operands.iter().enumerate() {
            if cuts.away.contains(&(id, i)) {
                continue;
            }
            let edge = if cuts.same.contains(&(id, i)) {
                Reads::Same
            } else if keeps_element(module, instr, operand) {
                here
            } else {
                Reads::Any
            };
            reads.set(operand, reads[operand].max(edge));
        }
    }
    reads
}

/// Whether element `i` (in memory order) of the instruction needs just element `i` of the operand.
fn keeps_element(module: &Module, instr: &Instr, operand: InstrId) -> bool {
    let source = module.instrs[operand].shape.as_array();
    let (Some(source), Some(result)) = (source, instr.shape.as_array()) else {
        return false;
    };
    if source.element_count() != result.element_count() {
        return false;
    }
    match &instr.op {
        Op::Bitcast | Op::BitcastConvert => {
            source.ty.bit_width_in_memory() == result.ty.bit_width_in_memory()
        }
        Op::Reshape { .. } | Op::Copy => true,
        op => is_pointwise(op),
    }
}

/// The instruction behind bitcasts, reshapes and copies.
fn skip_views(module: &Module, id: InstrId) -> InstrId {
    let mut id = id;
    while matches!(
        module.instrs[id].op,
        Op::Bitcast | Op::Reshape { .. } | Op::Copy
    ) {
        id = module.instrs[id].operands[0];
    }
    id
}

/// The parameter that the in-place root at `leaf` may update: its memory holds nothing else that
/// the fusion still needs.
fn updated_parameter(
    module: &Module,
    body: crate::hlo::CompId,
    roots: &[InstrId],
    leaf: usize,
) -> Option<usize> {
    let update = skip_views(module, roots[leaf]);
    if leaf > 0
        && roots[..leaf]
            .iter()
            .any(|&r| skip_views(module, r) == update)
    {
        return None;
    }
    let param = skip_views(module, module.instrs[update].operands[0]);
    let Op::Parameter { number, .. } = module.instrs[param].op else {
        return None;
    };
    let bytes = |id: InstrId| module.instrs[id].shape.byte_size();
    if bytes(param) != bytes(roots[leaf]) {
        return None;
    }
    let mut cuts = Cuts {
        away: vec![(update, 0)],
        same: Vec::new(),
    };
    if roots.len() == 1 && matches!(module.instrs[update].op, Op::DynamicUpdateSlice) {
        cuts.same = reads_of_updated_part(module, body, update);
    }
    let reads = fusion_reads(module, body, roots, &cuts);
    // What is read besides the updated part is read as anything: an update keeps no element.
    let wanted = if cuts.same.is_empty() {
        Reads::None
    } else {
        Reads::Same
    };
    (reads[param] <= wanted).then_some(number)
}

/// The edges from dynamic slices that read just the part that `update` then writes, element by
/// element.
fn reads_of_updated_part(
    module: &Module,
    body: crate::hlo::CompId,
    update: InstrId,
) -> Vec<(InstrId, usize)> {
    let written = &module.instrs[update];
    let reads = fusion_reads(module, body, &[written.operands[1]], &Cuts::default());
    let mut out = Vec::new();
    for &id in &module.comps[body].instrs {
        let instr = &module.instrs[id];
        let Op::DynamicSlice { sizes } = &instr.op else {
            continue;
        };
        let updated = module.instrs[written.operands[1]].shape.as_array();
        let same_part = updated.is_some_and(|u| u.dims == *sizes)
            && instr.operands[1..] == written.operands[2..]
            && module.instrs[instr.operands[0]]
                .shape
                .same_ignoring_layout(&written.shape);
        if same_part && reads[id] == Reads::Same {
            out.push((id, 0));
        }
    }
    out
}
