//! How far apart two arrays of integers are, which may be known where they are not.

use crate::front::stablehlo::import::facts::Facts;
use crate::hlo::BinaryOp;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// How many steps one question may take, and how deep they may go.
const MAX_STEPS: usize = 1 << 12;
const MAX_DEPTH: usize = 64;

impl Facts {
    /// `a - b` in row-major order, when it is known: `b + 3` is 3 beyond `b`, whatever `b` is. Sums
    /// are taken not to overflow, as those of places in an array do not.
    pub fn difference(&mut self, module: &Module, a: InstrId, b: InstrId) -> Option<Vec<i128>> {
        let mut question = Question {
            facts: self,
            module,
            steps: MAX_STEPS,
        };
        question.difference(a, b, MAX_DEPTH)
    }
}

struct Question<'a> {
    facts: &'a mut Facts,
    module: &'a Module,
    steps: usize,
}

impl Question<'_> {
    fn difference(&mut self, a: InstrId, b: InstrId, depth: usize) -> Option<Vec<i128>> {
        self.steps = self.steps.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let (left, right) = (&self.module.instrs[a], &self.module.instrs[b]);
        let (shape, other) = (left.shape.as_array()?, right.shape.as_array()?);
        if shape.dims != other.dims || shape.ty != other.ty {
            return None;
        }
        if a == b {
            return Some(vec![0; shape.element_count()]);
        }
        let known = (
            self.facts.value(self.module, a),
            self.facts.value(self.module, b),
        );
        if let (Some(a), Some(b)) = known {
            return joined(&a.values, &b.values, |a, b| a - b);
        }
        match (&left.op, &right.op) {
            (Op::Concatenate { dim: 0 }, Op::Concatenate { dim: 0 })
                if left.operands.len() == right.operands.len() =>
            {
                let pairs = left.operands.iter().zip(&right.operands);
                let parts = pairs.map(|(&a, &b)| self.difference(a, b, depth));
                return Some(parts.collect::<Option<Vec<_>>>()?.concat());
            }
            (Op::Reshape { .. }, Op::Reshape { .. }) | (Op::Convert, Op::Convert) => {
                return self.difference(left.operands[0], right.operands[0], depth);
            }
            _ => {}
        }
        if let (Op::Binary(op), &[p, q]) = (&left.op, &*left.operands) {
            for (rest, term, sign) in terms(*op, p, q) {
                if let Some(known) = self.facts.value(self.module, term)
                    && let Some(apart) = self.difference(rest, b, depth)
                {
                    return joined(&apart, &known.values, |apart, v| apart + sign * v);
                }
            }
        }
        if let (Op::Binary(op), &[p, q]) = (&right.op, &*right.operands) {
            for (rest, term, sign) in terms(*op, p, q) {
                if let Some(known) = self.facts.value(self.module, term)
                    && let Some(apart) = self.difference(a, rest, depth)
                {
                    return joined(&apart, &known.values, |apart, v| apart - sign * v);
                }
            }
        }
        None
    }
}

/// The ways to take a sum or difference apart: the rest, the term, and its sign.
fn terms(op: BinaryOp, p: InstrId, q: InstrId) -> Vec<(InstrId, InstrId, i128)> {
    match op {
        BinaryOp::Add => vec![(p, q, 1), (q, p, 1)],
        BinaryOp::Subtract => vec![(p, q, -1)],
        _ => Vec::new(),
    }
}

/// Two lists of one length, element by element.
fn joined(a: &[i128], b: &[i128], of: impl Fn(i128, i128) -> i128) -> Option<Vec<i128>> {
    let pairs = a.iter().zip(b);
    (a.len() == b.len()).then(|| pairs.map(|(&a, &b)| of(a, b)).collect())
}
