//! What may be fused with what, and why not.

use crate::analysis::cost;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::shape::ArrayShape;

/// Whether something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow,
    /// It may not, for this reason.
    Forbid(&'static str),
}

impl Decision {
    /// Whether it may.
    pub fn is_allowed(self) -> bool {
        self == Self::Allow
    }
}

/// Emitted elements a kernel may have, counted once for every place they are computed at, without
/// sources.
pub const MAX_NODES: usize = 120;
/// Values a kernel may read.
pub const MAX_INPUTS: usize = 40;
/// Places within one kernel that an element may be computed at.
pub const MAX_PLACES: usize = 6;
/// Work an element, in units of [`cost::element_cost`], that a kernel may do again for elements it
/// has computed before.
pub const MAX_RECOMPUTE: u32 = 24;
/// Arrays of fewer elements are too small to care about bytes.
pub const SMALL: usize = 1024;
/// Parts of a concatenation that may be computed where they are needed.
pub const MAX_PARTS: usize = 4;

/// What part an instruction can play in a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// None: it is not a computation, or it has a kernel of its own.
    #[default]
    Alone,
    /// A value that costs nothing to make again: a scalar constant, an iota, a filled array.
    Source,
    /// An element from elements of the operands.
    Element,
    /// Another view of the same bytes.
    View,
    /// An update in place; the root of its kernel.
    Update,
    /// A reduction, around which a kernel is shaped.
    Reduce,
    /// A dot or convolution, around which a kernel is shaped.
    Contract,
}

/// The part that `instr` can play.
pub fn role(module: &Module, instr: &Instr) -> Role {
    if !instr.control_predecessors.is_empty() {
        return Role::Alone;
    }
    match &instr.op {
        Op::Reduce { .. } => return Role::Reduce,
        Op::Dot { .. } | Op::Convolution { .. } => return Role::Contract,
        _ => {}
    }
    let Some(array) = instr.shape.as_array() else {
        return Role::Alone;
    };
    match &instr.op {
        Op::Constant(_) if array.element_count() == 1 => Role::Source,
        Op::Iota { .. } => Role::Source,
        Op::Broadcast { .. } => {
            let source = module.instr(instr.operands[0]);
            if matches!(source.op, Op::Constant(_)) && is_scalar(module, instr.operands[0]) {
                Role::Source
            } else {
                Role::Element
            }
        }
        op if op.is_elementwise() => Role::Element,
        Op::BitcastConvert
        | Op::Transpose { .. }
        | Op::Reverse { .. }
        | Op::Slice { .. }
        | Op::DynamicSlice { .. }
        | Op::Pad { .. }
        | Op::Concatenate { .. }
        | Op::Gather { .. } => Role::Element,
        Op::Reshape { .. } => Role::View,
        Op::DynamicUpdateSlice => Role::Update,
        _ => Role::Alone,
    }
}

/// Whether the value is one element.
pub fn is_scalar(module: &Module, id: InstrId) -> bool {
    module
        .shape(id)
        .as_array()
        .is_some_and(|a| a.element_count() == 1)
}

/// Number of elements of an array, or of the first array of a tuple.
pub fn elements(module: &Module, id: InstrId) -> usize {
    let leaves = module.shape(id).leaves();
    leaves
        .iter()
        .find_map(|(_, s)| s.as_array())
        .map_or(0, ArrayShape::element_count)
}

/// Whether element i of the user is made of element i of this operand.
pub fn keeps_index(module: &Module, user: &Instr, operand: InstrId) -> bool {
    let moves_nothing = matches!(
        user.op,
        Op::Copy | Op::Reshape { .. } | Op::Bitcast | Op::BitcastConvert
    );
    let count = user.shape.as_array().map(ArrayShape::element_count);
    (user.op.is_elementwise() || moves_nothing) && count == Some(elements(module, operand))
}

/// Whether a large transpose moves the fastest-varying dimension, so that neighbours in the result
/// are far apart in the operand.
pub fn is_scattering_transpose(module: &Module, instr: &Instr) -> bool {
    let Op::Transpose { dims } = &instr.op else {
        return false;
    };
    let Some(from) = module.shape(instr.operands[0]).as_array() else {
        return false;
    };
    let moving = dims.iter().rev().find(|&&d| from.dims[d] != 1);
    let minor = (0..from.rank()).rev().find(|&d| from.dims[d] != 1);
    moving.copied() != minor && from.element_count() > 4 * SMALL
}

/// Whether `producer` may be computed where `user` needs it as operand `at`.
pub fn may_feed(module: &Module, producer: InstrId, user: &Instr, at: usize) -> Decision {
    let made = module.instr(producer);
    match &user.op {
        Op::DynamicUpdateSlice if at == 0 => {
            Decision::Forbid("the updated array stays where it is")
        }
        Op::Reduce { .. } if at >= user.operands.len() / 2 && !is_scalar(module, producer) => {
            Decision::Forbid("a start value is a scalar")
        }
        Op::Dot { .. } => match made.op {
            Op::Convert if narrows(module, made) => Decision::Allow,
            _ => Decision::Forbid("operands of a dot are read more than once"),
        },
        Op::Convolution { .. } => {
            Decision::Forbid("operands of a convolution are read more than once")
        }
        Op::Concatenate { .. } if user.operands.len() > MAX_PARTS => {
            Decision::Forbid("a concatenation of many parts copies them")
        }
        Op::Concatenate { .. } | Op::Pad { .. } if cost::is_expensive(module, made) => {
            Decision::Forbid("it would be computed also where it is not needed")
        }
        Op::Transpose { .. }
            if is_scattering_transpose(module, user)
                && !matches!(made.op, Op::Slice { .. } | Op::Reshape { .. }) =>
        {
            Decision::Forbid("a large transpose has a kernel of its own")
        }
        _ if is_scattering_transpose(module, made) => {
            Decision::Forbid("a large transpose has a kernel of its own")
        }
        _ if matches!(&made.op, Op::Concatenate { .. } if made.operands.len() > MAX_PARTS) => {
            Decision::Forbid("a concatenation of many parts copies them")
        }
        _ => Decision::Allow,
    }
}

/// Whether a convert reads fewer bytes than it gives.
fn narrows(module: &Module, convert: &Instr) -> bool {
    module.shape(convert.operands[0]).byte_size() < convert.shape.byte_size()
}
