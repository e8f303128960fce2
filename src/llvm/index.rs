//! What is known of the integers in a kernel: their range and the powers of two they are
//! multiples of.
//!
//! Ranges let 64-bit index divisions become 32-bit ones and mark sums as not wrapping; multiples
//! give the alignment of vector accesses. Both are upper bounds of knowledge: an absent fact is
//! never wrong. Values that statements carry from iteration to iteration are not tracked.

use crate::base::Id;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::Block;
use crate::kernel::CastOp;
use crate::kernel::ExprId;
use crate::kernel::ExprKind;
use crate::kernel::Kernel;
use crate::kernel::Stmt;
use crate::kernel::UnaryOp;

/// Facts about one integer (about every lane, for a vector).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// Smallest value, signed.
    pub(super) low: i128,
    /// Largest value, signed.
    pub(super) high: i128,
    /// Trailing zero bits that it has at least; 64 for zero.
    pub(super) zeros: u32,
}

/// Facts about all values of a kernel.
pub(super) struct Facts(Vec<Fact>);

impl Fact {
    fn unknown(bits: u32) -> Self {
        let half = 1i128 << (bits.max(1) - 1);
        Self {
            low: -half,
            high: half - 1,
            zeros: 0,
        }
    }
    fn exact(value: i128) -> Self {
        let zeros = (value as i64).trailing_zeros();
        Self {
            low: value,
            high: value,
            zeros,
        }
    }
    /// Whether it fits an unsigned number of that many bits.
    pub(super) fn fits_unsigned(self, bits: u32) -> bool {
        self.low >= 0 && self.high < 1i128 << bits
    }
    fn constant(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }
}

/// The facts of one axis of the launch.
fn axis_fact(size: u64) -> Fact {
    Fact {
        low: 0,
        high: i128::from(size.max(1)) - 1,
        zeros: if size <= 1 { 64 } else { 0 },
    }
}

fn axis_index(axis: Axis) -> usize {
    match axis {
        Axis::X => 0,
        Axis::Y => 1,
        Axis::Z => 2,
    }
}

impl Facts {
    /// Computes the facts of a kernel.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let facts = kernel
            .exprs
            .values()
            .map(|e| Fact::unknown(e.ty.scalar.bits()))
            .collect();
        let mut facts = Self(facts);
        facts.block(kernel, &kernel.body);
        facts
    }

    /// Whether the value's range is known to be less than its type's.
    pub(super) fn is_tracked(&self, id: ExprId) -> bool {
        let fact = self.of(id);
        fact.high < i128::from(i64::MAX) && fact.low > i128::from(i64::MIN)
    }
    /// What is known of a value.
    pub(super) fn of(&self, id: ExprId) -> Fact {
        self.0[id.index()]
    }

    fn block(&mut self, kernel: &Kernel, block: &Block) {
        for stmt in &block.0 {
            match stmt {
                Stmt::Let(id) => self.0[id.index()] = self.expr(kernel, *id),
                Stmt::For {
                    var,
                    start,
                    end,
                    step,
                    body,
                    ..
                } => {
                    let (start, end, step) = (self.of(*start), self.of(*end), self.of(*step));
                    self.0[var.index()] = Fact {
                        low: start.low,
                        high: (end.high - 1).max(start.low),
                        zeros: start.zeros.min(step.zeros),
                    };
                    self.block(kernel, body);
                }
                Stmt::While { before, body, .. } => {
                    self.block(kernel, before);
                    self.block(kernel, body);
                }
                Stmt::If {
                    then, otherwise, ..
                } => {
                    self.block(kernel, then);
                    self.block(kernel, otherwise);
                }
                Stmt::Store { .. }
                | Stmt::Scatter { .. }
                | Stmt::AtomicRmw { .. }
                | Stmt::AtomicCas { .. }
                | Stmt::Barrier
                | Stmt::Prefetch { .. }
                | Stmt::Tile(_) => {}
            }
        }
    }

    fn expr(&self, kernel: &Kernel, id: ExprId) -> Fact {
        let expr = &kernel.exprs[id];
        let bits = expr.ty.scalar.bits();
        let unknown = Fact::unknown(bits);
        if expr.ty.scalar.is_float() {
            return unknown;
        }
        let signed = |value: u64| i128::from(((value << (64 - bits)) as i64) >> (64 - bits));
        let fact = match &expr.kind {
            ExprKind::Const(value) => Fact::exact(signed(*value)),
            ExprKind::ConstVector(lanes) => lanes
                .iter()
                .map(|&l| Fact::exact(signed(l)))
                .reduce(union)
                .unwrap_or(unknown),
            ExprKind::WorkgroupId(axis) => axis_fact(kernel.launch.workgroups[axis_index(*axis)]),
            ExprKind::WorkitemId(axis) => {
                axis_fact(u64::from(kernel.launch.workitems[axis_index(*axis)]))
            }
            ExprKind::Unary(UnaryOp::Clz | UnaryOp::Ctz | UnaryOp::Popcnt, _) => Fact {
                low: 0,
                high: i128::from(bits),
                zeros: 0,
            },
            ExprKind::Binary(op, a, b) => binary(*op, self.of(*a), self.of(*b), bits),
            ExprKind::Select(_, a, b) => union(self.of(*a), self.of(*b)),
            ExprKind::Cast(op, a) if !kernel.exprs[*a].ty.scalar.is_float() => {
                let from = self.of(*a);
                match op {
                    CastOp::SExt | CastOp::Trunc => from,
                    CastOp::ZExt if from.low >= 0 => from,
                    CastOp::ZExt => Fact {
                        low: 0,
                        high: (1i128 << kernel.exprs[*a].ty.scalar.bits()) - 1,
                        zeros: 0,
                    },
                    _ => unknown,
                }
            }
            ExprKind::Splat(a) | ExprKind::Extract(a, _) => self.of(*a),
            ExprKind::Insert(a, b, _) => union(self.of(*a), self.of(*b)),
            ExprKind::Shuffle(a, b, _) => union(self.of(*a), self.of(*b)),
            _ => unknown,
        };
        if fact.low < unknown.low || fact.high > unknown.high {
            // The value may wrap; low bits survive wrapping.
            return Fact {
                zeros: fact.zeros.min(bits),
                ..unknown
            };
        }
        fact
    }
}

fn union(a: Fact, b: Fact) -> Fact {
    Fact {
        low: a.low.min(b.low),
        high: a.high.max(b.high),
        zeros: a.zeros.min(b.zeros),
    }
}

/// The range an operation would have without wrapping. The caller widens what does not fit.
fn binary(op: BinaryOp, a: Fact, b: Fact, bits: u32) -> Fact {
    let none = Fact {
        low: i128::MIN,
        high: i128::MAX,
        zeros: 0,
    };
    let non_negative = a.low >= 0 && b.low >= 0;
    match op {
        BinaryOp::Add => Fact {
            low: a.low + b.low,
            high: a.high + b.high,
            zeros: a.zeros.min(b.zeros),
        },
        BinaryOp::Sub => Fact {
            low: a.low - b.high,
            high: a.high - b.low,
            zeros: a.zeros.min(b.zeros),
        },
        BinaryOp::Mul => {
            let corners = [
                a.low * b.low,
                a.low * b.high,
                a.high * b.low,
                a.high * b.high,
            ];
            Fact {
                low: corners.iter().copied().fold(i128::MAX, i128::min),
                high: corners.iter().copied().fold(i128::MIN, i128::max),
                zeros: (a.zeros + b.zeros).min(64),
            }
        }
        BinaryOp::UDiv | BinaryOp::SDiv if non_negative && b.low > 0 => Fact {
            low: a.low / b.high,
            high: a.high / b.low,
            zeros: match b.constant() {
                Some(d) if d.count_ones() == 1 => a.zeros.saturating_sub(d.trailing_zeros()),
                _ => 0,
            },
        },
        BinaryOp::URem | BinaryOp::SRem if non_negative && b.low > 0 => Fact {
            low: 0,
            high: a.high.min(b.high - 1),
            zeros: a.zeros.min(b.zeros),
        },
        BinaryOp::And if b.low >= 0 => Fact {
            low: 0,
            high: b.high,
            zeros: a.zeros.max(b.zeros),
        },
        BinaryOp::And => Fact {
            zeros: a.zeros.max(b.zeros),
            ..none
        },
        BinaryOp::Or | BinaryOp::Xor => Fact {
            zeros: a.zeros.min(b.zeros),
            ..none
        },
        BinaryOp::Shl => match b.constant() {
            Some(by) if (0..64).contains(&by) => Fact {
                low: a.low << by,
                high: a.high << by,
                zeros: (a.zeros + by as u32).min(64),
            },
            _ => none,
        },
        BinaryOp::LShr | BinaryOp::AShr if a.low >= 0 => match b.constant() {
            Some(by) if (0..i128::from(bits)).contains(&by) => Fact {
                low: a.low >> by,
                high: a.high >> by,
                zeros: a.zeros.saturating_sub(by as u32),
            },
            _ => none,
        },
        BinaryOp::SMin => Fact {
            low: a.low.min(b.low),
            high: a.high.min(b.high),
            zeros: a.zeros.min(b.zeros),
        },
        BinaryOp::SMax => Fact {
            low: a.low.max(b.low),
            high: a.high.max(b.high),
            zeros: a.zeros.min(b.zeros),
        },
        _ => none,
    }
}
