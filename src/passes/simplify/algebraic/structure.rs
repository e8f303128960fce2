//! Identities of select, tuples and conditionals.

use crate::analysis::trip_count::scalar_integer;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::passes::legalize::inline;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::splat;
use crate::shape::PrimitiveType;

pub(super) fn select(site: &mut Site<'_, '_>) -> Answer {
    let (p, a, b) = (site.arg(0), site.arg(1), site.arg(2));
    if a == b || site.is_number(p, 1) {
        return Ok(Some(a));
    }
    if site.is_number(p, 0) {
        return Ok(Some(b));
    }
    if site.ty() == Some(PrimitiveType::Pred) && site.is_number(a, 1) && site.is_number(b, 0) {
        return Ok(site.if_same(p));
    }
    let condition = site.def(0);
    if condition.op == Op::Unary(UnaryOp::Not) {
        let inner = condition.operands[0];
        return site.make(Op::Select, &[inner, b, a]).map(Some);
    }
    Ok(None)
}

pub(super) fn get_tuple_element(site: &Site<'_, '_>, index: usize) -> Option<InstrId> {
    let tuple = site.def(0);
    (tuple.op == Op::Tuple).then(|| tuple.operands[index])
}

/// A tuple of all elements of one tuple is that tuple.
pub(super) fn tuple(site: &Site<'_, '_>) -> Option<InstrId> {
    let first = site.instr().operands.first()?;
    let source = *site.edit.instr(*first).operands.first()?;
    let all = site.instr().operands.iter().enumerate().all(|(i, &o)| {
        let part = site.edit.instr(o);
        part.op == Op::GetTupleElement { index: i } && part.operands[0] == source
    });
    if all { site.if_same(source) } else { None }
}

/// A conditional whose branch is known, or that has only one, is that branch.
pub(super) fn conditional(site: &mut Site<'_, '_>) -> Answer {
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
