//! Identities of select, tuples and conditionals.

use crate::analysis::trip_count::scalar_integer;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::passes::legalize::inline;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Rule;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::splat;
use crate::shape::PrimitiveType;

/// Rules of selects.
pub(super) const SELECT: &[Rule] = &[
    Rule("select-known", select_known),
    Rule("select-true-false", select_true_false),
    Rule("select-of-not", select_of_not),
];

/// Rules of tuples, of their elements, and of conditionals.
pub(super) const TUPLE: &[Rule] = &[Rule("tuple-of-its-elements", tuple_of_its_elements)];
/// See [`TUPLE`].
pub(super) const GET_TUPLE_ELEMENT: &[Rule] = &[Rule("element-of-tuple", element_of_tuple)];
/// See [`TUPLE`].
pub(super) const CONDITIONAL: &[Rule] = &[Rule("known-branch", known_branch)];

fn select_known(site: &mut Site<'_, '_>) -> Answer {
    let (p, a, b) = (site.arg(0), site.arg(1), site.arg(2));
    if a == b || site.is_number(p, 1) {
        return Ok(Some(a));
    }
    Ok(site.is_number(p, 0).then_some(b))
}

fn select_true_false(site: &mut Site<'_, '_>) -> Answer {
    let (p, a, b) = (site.arg(0), site.arg(1), site.arg(2));
    let plain =
        site.ty() == Some(PrimitiveType::Pred) && site.is_number(a, 1) && site.is_number(b, 0);
    Ok(site.if_same(p).filter(|_| plain))
}

fn select_of_not(site: &mut Site<'_, '_>) -> Answer {
    let (a, b) = (site.arg(1), site.arg(2));
    let condition = site.def(0);
    if condition.op != Op::Unary(UnaryOp::Not) {
        return Ok(None);
    }
    let inner = condition.operands[0];
    site.make(Op::Select, &[inner, b, a]).map(Some)
}

fn element_of_tuple(site: &mut Site<'_, '_>) -> Answer {
    let Op::GetTupleElement { index } = site.instr().op else {
        return Ok(None);
    };
    let tuple = site.def(0);
    Ok((tuple.op == Op::Tuple).then(|| tuple.operands[index]))
}

/// A tuple of all elements of one tuple is that tuple.
fn tuple_of_its_elements(site: &mut Site<'_, '_>) -> Answer {
    let first = site.instr().operands.first();
    let Some(&source) = first.and_then(|&f| site.edit.instr(f).operands.first()) else {
        return Ok(None);
    };
    let all = site.instr().operands.iter().enumerate().all(|(i, &o)| {
        let part = site.edit.instr(o);
        part.op == Op::GetTupleElement { index: i } && part.operands[0] == source
    });
    Ok(site.if_same(source).filter(|_| all))
}

/// A conditional whose branch is known, or that has only one, is that branch.
fn known_branch(site: &mut Site<'_, '_>) -> Answer {
    let Op::Conditional { branches } = &site.instr().op else {
        return Ok(None);
    };
    let selector = site.arg(0);
    let last = branches.len() - 1;
    let chosen = if last == 0 {
        0
    } else {
        let Some(value) = splat::splat(site.module(), selector) else {
            return Ok(None);
        };
        if value.ty() == PrimitiveType::Pred {
            usize::from(value.bytes() == [0])
        } else {
            match scalar_integer(&value) {
                Some(i) => usize::try_from(i)
                    .ok()
                    .filter(|&i| i <= last)
                    .unwrap_or(last),
                None => return Ok(None),
            }
        }
    };
    let body = branches[chosen];
    let arg = site.arg(chosen + 1);
    if !site.instr().control_predecessors.is_empty() {
        return Ok(None);
    }
    let comp = site.comp();
    let value: InstrId = inline::body_of(site.edit, comp, body, &[arg])?;
    Ok(Some(value))
}
