//! Masks that compare indices: which keys they can leave to a block of rows.

use crate::analysis::attention::pattern;
use crate::analysis::contraction::Product;
use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::literal::number;
use crate::literal::number::Number;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// Largest size of a constant or coefficient of a bound, so that 32-bit sums of a few do not wrap.
const MAX_NUMBER: i64 = 1 << 28;

/// What a mask leaves to each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Mask {
    /// All have to hold where scores are left.
    pub bounds: Vec<Bound>,
    /// What takes the place of the others, one number.
    pub fill: InstrId,
    /// Rows whose numbers count from zero: the remainder by this is a row's index in the mask.
    pub run: usize,
}

/// A linear inequality of a row's index `r` and a key's `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Whether it says `k <= limit`, else `k >= -limit`.
    pub is_upper: bool,
    /// `limit = row * r + constant + offset`.
    pub row: i64,
    /// The constant part.
    pub constant: i64,
    /// A 32-bit integer that is known when the program runs, and whether it is subtracted.
    pub offset: Option<(InstrId, bool)>,
}

/// The number that a scalar, or every element of a broadcast, is.
pub(super) fn number(module: &Module, id: InstrId) -> Option<f64> {
    match constant(module, id)? {
        Number::Int(x) => Some(x as f64),
        Number::Float(x) => Some(x),
        Number::Complex(..) => None,
    }
}

fn constant(module: &Module, id: InstrId) -> Option<Number> {
    let instr = module.instr(id);
    match &instr.op {
        Op::Constant(literal) => {
            let array = literal.as_array().filter(|a| a.len() == 1)?;
            Some(number::decode(array.ty(), array.element(0)))
        }
        Op::Broadcast { .. } | Op::Reshape { .. } | Op::Bitcast => {
            constant(module, instr.operands[0])
        }
        _ => None,
    }
}

/// The mask of what the maximum is taken of, when it is a choice between scores and one number by a
/// comparison of indices.
pub(super) fn find(module: &Module, masked: InstrId, scores: &Product) -> Option<Mask> {
    let instr = module.instr(masked);
    if instr.op != Op::Select {
        return None;
    }
    let &[cond, then, otherwise] = instr.operands.as_slice() else {
        return None;
    };
    let dims = &module.shape(masked).as_array()?.dims;
    let (&keys, above) = dims.split_last()?;
    let run = above.last().copied().unwrap_or(1);
    let (fill, negated) = match (constant(module, then), constant(module, otherwise)) {
        (None, Some(_)) => (otherwise, false),
        (Some(_), None) => (then, true),
        _ => return None,
    };
    let fits = keys == scores.n
        && scores.m.is_multiple_of(run)
        && pattern::in_order(&scores.output)
        && module.shape(cond).as_array()?.dims == *dims;
    if !fits {
        return None;
    }
    let places: Vec<usize> = (0..dims.len()).collect();
    let reader = Reader { module, dims };
    let mut bounds = Vec::new();
    reader.bounds(cond, &places, negated, &mut bounds);
    (!bounds.is_empty()).then_some(Mask { bounds, fill, run })
}

/// `row * r + key * k + constant + offset`.
#[derive(Clone, Copy, Default)]
struct Linear {
    row: i64,
    key: i64,
    constant: i64,
    offset: Option<(InstrId, bool)>,
}

impl Linear {
    fn negated(self) -> Self {
        Self {
            row: -self.row,
            key: -self.key,
            constant: -self.constant,
            offset: self.offset.map(|(id, minus)| (id, !minus)),
        }
    }

    fn plus(self, other: Self) -> Option<Self> {
        let offset = match (self.offset, other.offset) {
            (Some(_), Some(_)) => return None,
            (one, two) => one.or(two),
        };
        let sum = Self {
            row: self.row + other.row,
            key: self.key + other.key,
            constant: self.constant + other.constant,
            offset,
        };
        let small = |x: i64| x.abs() <= MAX_NUMBER;
        (small(sum.row) && small(sum.key) && small(sum.constant)).then_some(sum)
    }
}

/// Reads conditions over the dimensions of the scores, of which each dimension of an instruction is
/// given its place.
struct Reader<'m> {
    module: &'m Module,
    dims: &'m Dims,
}

impl Reader<'_> {
    /// The places of the dimensions of the only operand.
    fn inner(&self, id: InstrId, places: &[usize]) -> Option<Vec<usize>> {
        let instr = self.module.instr(id);
        let from = self.module.shape(instr.operands[0]).as_array()?;
        let to = self.module.shape(id).as_array()?;
        match &instr.op {
            Op::Broadcast { dims } => Some(dims.iter().map(|&d| places[d]).collect()),
            Op::Reshape { .. } | Op::Bitcast => {
                let long = |dims: &Dims| -> Vec<usize> {
                    (0..dims.len()).filter(|&d| dims[d] != 1).collect()
                };
                let (inside, outside) = (long(&from.dims), long(&to.dims));
                let sizes = |list: &[usize], dims: &Dims| -> Vec<usize> {
                    list.iter().map(|&d| dims[d]).collect()
                };
                if sizes(&inside, &from.dims) != sizes(&outside, &to.dims) {
                    return None;
                }
                // Dimensions of one element have no place that matters.
                let mut inner = vec![0; from.rank()];
                for (&own, &of) in inside.iter().zip(&outside) {
                    inner[own] = places[of];
                }
                Some(inner)
            }
            _ => None,
        }
    }

    /// Adds bounds that hold wherever the condition (or its negation) does.
    fn bounds(&self, id: InstrId, places: &[usize], negated: bool, bounds: &mut Vec<Bound>) {
        let instr = self.module.instr(id);
        match &instr.op {
            Op::Broadcast { .. } | Op::Reshape { .. } | Op::Bitcast => {
                if let Some(inner) = self.inner(id, places) {
                    self.bounds(instr.operands[0], &inner, negated, bounds);
                }
            }
            Op::Unary(UnaryOp::Not) => self.bounds(instr.operands[0], places, !negated, bounds),
            Op::Binary(op)
                if *op == BinaryOp::And && !negated || *op == BinaryOp::Or && negated =>
            {
                for &operand in &instr.operands {
                    self.bounds(operand, places, negated, bounds);
                }
            }
            Op::Compare { direction, .. } => {
                bounds.extend(self.bound(id, places, *direction, negated));
            }
            _ => {}
        }
    }

    fn bound(
        &self,
        id: InstrId,
        places: &[usize],
        direction: ComparisonDirection,
        negated: bool,
    ) -> Option<Bound> {
        use ComparisonDirection as Dir;
        let operands = &self.module.instr(id).operands;
        let x = self.linear(operands[0], places)?;
        let y = self.linear(operands[1], places)?;
        let difference = x.plus(y.negated())?;
        let direction = match (direction, negated) {
            (Dir::Eq | Dir::Ne, _) => return None,
            (other, false) => other,
            (Dir::Ge, true) => Dir::Lt,
            (Dir::Gt, true) => Dir::Le,
            (Dir::Le, true) => Dir::Gt,
            (Dir::Lt, true) => Dir::Ge,
        };
        let less = |constant| Linear {
            constant,
            ..Linear::default()
        };
        // What is not negative where the relation holds.
        let rest = match direction {
            Dir::Ge => difference,
            Dir::Gt => difference.plus(less(-1))?,
            Dir::Le => difference.negated(),
            _ => difference.negated().plus(less(-1))?,
        };
        matches!(rest.key, 1 | -1).then_some(Bound {
            is_upper: rest.key == -1,
            row: rest.row,
            constant: rest.constant,
            offset: rest.offset,
        })
    }

    fn linear(&self, id: InstrId, places: &[usize]) -> Option<Linear> {
        let instr = self.module.instr(id);
        let shape = self.module.shape(id).as_array()?;
        if shape.ty != PrimitiveType::S32 {
            return None;
        }
        if let Some(Number::Int(x)) = constant(self.module, id) {
            let constant = i64::try_from(x).ok()?;
            let is_small = constant.abs() <= MAX_NUMBER;
            return is_small.then_some(Linear {
                constant,
                ..Linear::default()
            });
        }
        if shape.element_count() == 1 {
            return Some(Linear {
                offset: Some((id, false)),
                ..Linear::default()
            });
        }
        match &instr.op {
            Op::Iota { dim } => self.index(places[*dim], shape.dims[*dim]),
            Op::Broadcast { .. } | Op::Reshape { .. } | Op::Bitcast => {
                let inner = self.inner(id, places)?;
                self.linear(instr.operands[0], &inner)
            }
            Op::Binary(BinaryOp::Add) => {
                let x = self.linear(instr.operands[0], places)?;
                x.plus(self.linear(instr.operands[1], places)?)
            }
            Op::Binary(BinaryOp::Subtract) => {
                let x = self.linear(instr.operands[0], places)?;
                x.plus(self.linear(instr.operands[1], places)?.negated())
            }
            _ => None,
        }
    }

    /// The index of a dimension of the scores.
    fn index(&self, place: usize, size: usize) -> Option<Linear> {
        let rank = self.dims.len();
        let is_small = self.dims.iter().all(|&d| d as i64 <= MAX_NUMBER);
        match place {
            _ if !is_small => None,
            _ if size == 1 => Some(Linear::default()),
            place if place + 1 == rank => Some(Linear {
                key: 1,
                ..Linear::default()
            }),
            place if place + 2 == rank => Some(Linear {
                row: 1,
                ..Linear::default()
            }),
            _ => None,
        }
    }
}
