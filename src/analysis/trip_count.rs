//! How often a `while` runs, when that can be told from its text.
//!
//! Known is the counted loop: the condition compares one integer element of the state with a
//! constant, the body adds a constant to that element, and the loop starts from a constant. Each of
//! these may stand in a fusion.

use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::literal::ArrayLiteral;

/// The element of the state that counts a loop, and how it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Induction {
    /// Index of the element in the state tuple.
    pub index: usize,
    /// Value before the first run.
    pub init: i128,
    /// What each run adds.
    pub step: i128,
    /// Number of runs.
    pub trip_count: u64,
}

/// The number of runs of a `while` instruction, when it is a counted loop.
pub fn trip_count(module: &Module, id: InstrId) -> Option<u64> {
    induction(module, id).map(|i| i.trip_count)
}

/// The counting element of a `while` instruction, when it is a counted loop.
pub fn induction(module: &Module, id: InstrId) -> Option<Induction> {
    let instr = module.instr(id);
    let Op::While { condition, body } = instr.op else {
        return None;
    };
    let (index, direction, limit) = condition_of(module, condition)?;
    let step = step_of(module, body, index)?;
    let init_tuple = module.instr(*instr.operands.first()?);
    let init_id = match &init_tuple.op {
        Op::Tuple => *init_tuple.operands.get(index)?,
        _ => return None,
    };
    let init = constant(module, Place::outside(init_id))?;
    let ty = module.shape(init_id).as_array()?.ty;
    if !ty.is_integer() {
        return None;
    }
    let trip_count = runs(direction, init, limit, step)?;
    // The counter must not wrap on the way.
    let last = init.checked_add(step.checked_mul(i128::from(trip_count))?)?;
    let bits = u32::try_from(ty.bit_width()).ok()?;
    let (low, high) = if ty.is_signed() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    (low..=high).contains(&last).then_some(Induction {
        index,
        init,
        step,
        trip_count,
    })
}

fn runs(direction: ComparisonDirection, init: i128, limit: i128, step: i128) -> Option<u64> {
    let span = match direction {
        ComparisonDirection::Lt if step > 0 => limit - init,
        ComparisonDirection::Le if step > 0 => limit - init + 1,
        ComparisonDirection::Gt if step < 0 => init - limit,
        ComparisonDirection::Ge if step < 0 => init - limit + 1,
        ComparisonDirection::Ne if step != 0 && (limit - init) % step == 0 => {
            return u64::try_from((limit - init) / step).ok();
        }
        ComparisonDirection::Lt
        | ComparisonDirection::Le
        | ComparisonDirection::Gt
        | ComparisonDirection::Ge
        | ComparisonDirection::Ne
        | ComparisonDirection::Eq => return None,
    };
    if span <= 0 {
        return Some(0);
    }
    let step = step.abs();
    u64::try_from((span + step - 1) / step).ok()
}

/// `compare(state[i], constant)` or the other way round, as (i, direction, constant).
fn condition_of(module: &Module, comp: CompId) -> Option<(usize, ComparisonDirection, i128)> {
    let root = look_through(module, Place::outside(module.comp(comp).root));
    let compare = module.instr(root.id);
    let Op::Compare { direction, .. } = compare.op else {
        return None;
    };
    let (left, right) = (root.at(compare.operands[0]), root.at(compare.operands[1]));
    if let (Some(index), Some(limit)) = (element(module, comp, left), constant(module, right)) {
        return Some((index, direction, limit));
    }
    if let (Some(limit), Some(index)) = (constant(module, left), element(module, comp, right)) {
        return Some((index, swapped(direction), limit));
    }
    None
}

/// The relation that holds of the operands the other way round.
fn swapped(direction: ComparisonDirection) -> ComparisonDirection {
    match direction {
        ComparisonDirection::Lt => ComparisonDirection::Gt,
        ComparisonDirection::Le => ComparisonDirection::Ge,
        ComparisonDirection::Gt => ComparisonDirection::Lt,
        ComparisonDirection::Ge => ComparisonDirection::Le,
        ComparisonDirection::Eq | ComparisonDirection::Ne => direction,
    }
}

/// The constant that the body adds to element `index`.
fn step_of(module: &Module, body: CompId, index: usize) -> Option<i128> {
    let root = module.root(body);
    if root.op != Op::Tuple {
        return None;
    }
    let next = look_through(module, Place::outside(*root.operands.get(index)?));
    let sum = module.instr(next.id);
    let (left, right) = match sum.op {
        Op::Binary(BinaryOp::Add | BinaryOp::Subtract) => {
            (next.at(sum.operands[0]), next.at(sum.operands[1]))
        }
        _ => return None,
    };
    let negative = sum.op == Op::Binary(BinaryOp::Subtract);
    if element(module, body, left) == Some(index) {
        let step = constant(module, right)?;
        return Some(if negative { -step } else { step });
    }
    if !negative && element(module, body, right) == Some(index) {
        return constant(module, left);
    }
    None
}

/// An instruction, and the fusion in whose body it stands, if it does.
#[derive(Clone, Copy)]
struct Place {
    id: InstrId,
    fusion: Option<InstrId>,
}

impl Place {
    fn outside(id: InstrId) -> Self {
        Self { id, fusion: None }
    }
    /// An instruction of the same computation.
    fn at(self, id: InstrId) -> Self {
        Self { id, ..self }
    }
}

/// The state element that an instruction is, when it is one.
fn element(module: &Module, comp: CompId, place: Place) -> Option<usize> {
    let instr = module.instr(look_through(module, place).id);
    match instr.op {
        Op::GetTupleElement { index }
            if module.comp(comp).params.first() == instr.operands.first() =>
        {
            Some(index)
        }
        _ => None,
    }
}

/// The instruction behind copies, into fusions and out of them again.
fn look_through(module: &Module, mut place: Place) -> Place {
    loop {
        let instr = module.instr(place.id);
        let next = match (&instr.op, place.fusion) {
            (Op::Copy | Op::Bitcast | Op::Reshape { .. }, _)
                if instr
                    .shape
                    .same_ignoring_layout(module.shape(instr.operands[0])) =>
            {
                Some(place.at(instr.operands[0]))
            }
            (Op::Fusion { body, .. }, None) => Some(Place {
                id: module.comp(*body).root,
                fusion: Some(place.id),
            }),
            (Op::GetTupleElement { index }, None) => {
                let fusion = instr.operands[0];
                match module.instr(fusion).op {
                    Op::Fusion { body, .. } if module.root(body).op == Op::Tuple => Some(Place {
                        id: module.root(body).operands[*index],
                        fusion: Some(fusion),
                    }),
                    _ => None,
                }
            }
            (Op::Parameter { number, .. }, Some(fusion)) => {
                let operand = module.instr(fusion).operands.get(*number);
                operand.copied().map(Place::outside)
            }
            _ => None,
        };
        match next {
            Some(next) => place = next,
            None => return place,
        }
    }
}

fn constant(module: &Module, place: Place) -> Option<i128> {
    match &module.instr(look_through(module, place).id).op {
        Op::Constant(literal) => scalar_integer(literal.as_array()?),
        _ => None,
    }
}

/// The value of an integer array of one element.
pub fn scalar_integer(array: &ArrayLiteral) -> Option<i128> {
    if array.len() != 1 || !array.ty().is_integer() {
        return None;
    }
    let mut bytes = if array.ty().is_signed() && array.bytes().last().is_some_and(|b| b >> 7 == 1) {
        [0xff; 16]
    } else {
        [0; 16]
    };
    bytes[..array.bytes().len()].copy_from_slice(array.bytes());
    Some(i128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_as_the_loop_would() {
        let lt = ComparisonDirection::Lt;
        assert_eq!(runs(lt, 0, 10, 3), Some(4));
        assert_eq!(runs(lt, 10, 10, 1), Some(0));
        assert_eq!(runs(ComparisonDirection::Le, 0, 10, 5), Some(3));
        assert_eq!(runs(ComparisonDirection::Gt, 5, 0, -2), Some(3));
        assert_eq!(runs(ComparisonDirection::Ge, 5, 0, -1), Some(6));
        assert_eq!(runs(ComparisonDirection::Ne, 0, 6, 2), Some(3));
        assert_eq!(runs(ComparisonDirection::Ne, 0, 5, 2), None);
        assert_eq!(runs(lt, 0, 10, -1), None);
        assert_eq!(runs(ComparisonDirection::Eq, 0, 10, 1), None);
    }

    #[test]
    fn negative_steps_past_the_end_never_count() {
        assert_eq!(runs(ComparisonDirection::Ne, 0, -6, 2), None);
    }
}
