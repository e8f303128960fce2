//! Expressions: pure functions of earlier values, and loads.
//!
//! Every expression is computed where a [`crate::kernel::Stmt::Let`] names it, so a load sees the
//! stores before it. A value may be used in its block after its `Let` and in blocks nested there.

use smallvec::SmallVec;

use crate::define_id;
use crate::kernel::BufId;
use crate::kernel::Scalar;
use crate::kernel::Ty;

define_id! {
    /// A value of a kernel.
    pub struct ExprId, "v";
}

/// A dimension of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names of the axes")]
pub enum Axis {
    X,
    Y,
    Z,
}

/// Functions of one value, lane by lane; the result has the operand's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnaryOp {
    /// Float negation: flips the sign bit.
    Neg,
    /// Float absolute value: clears the sign bit.
    Abs,
    /// Correctly rounded square root.
    Sqrt,
    /// Largest whole number not above.
    Floor,
    /// Smallest whole number not below.
    Ceil,
    /// Whole part.
    Trunc,
    /// Nearest whole number, ties to even.
    RoundEven,
    /// Bitwise complement.
    Not,
    /// Leading zero bits; the width for zero.
    Clz,
    /// Trailing zero bits; the width for zero.
    Ctz,
    /// Bits set.
    Popcnt,
}

/// Functions of two values of one type, lane by lane; the result has that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BinaryOp {
    /// Sum: wrapping, or IEEE.
    Add,
    /// Difference: wrapping, or IEEE.
    Sub,
    /// Product: wrapping, or IEEE.
    Mul,
    /// IEEE quotient. Floats only.
    FDiv,
    /// Signed quotient toward zero; division by zero and overflow are the emitter's to exclude.
    SDiv,
    /// Unsigned quotient; division by zero is the emitter's to exclude.
    UDiv,
    /// Signed remainder with the dividend's sign; same exclusions.
    SRem,
    /// Unsigned remainder; same exclusion.
    URem,
    /// Upper half of the signed double-width product.
    SMulHi,
    /// Upper half of the unsigned double-width product.
    UMulHi,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; the amount is below the width.
    Shl,
    /// Logical right shift; the amount is below the width.
    LShr,
    /// Arithmetic right shift; the amount is below the width.
    AShr,
    /// Signed minimum.
    SMin,
    /// Signed maximum.
    SMax,
    /// Unsigned minimum.
    UMin,
    /// Unsigned maximum.
    UMax,
    /// IEEE 754-2019 `minimum`: NaN if either is, -0 below +0.
    FMin,
    /// IEEE 754-2019 `maximum`: NaN if either is, -0 below +0.
    FMax,
    /// Magnitude of the first, sign of the second. Floats only.
    CopySign,
}

/// Relations; the result has lanes of `i1`. Float relations are false on NaN but for `FNe`, `FUno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "S signed, U unsigned, I either, F float")]
pub enum CmpOp {
    IEq,
    INe,
    SLt,
    SLe,
    SGt,
    SGe,
    ULt,
    ULe,
    UGt,
    UGe,
    FEq,
    /// True when unequal or either is NaN.
    FNe,
    FLt,
    FLe,
    FGt,
    FGe,
    /// True when either is NaN.
    FUno,
}

/// Conversions, lane by lane; the target type is the expression's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CastOp {
    /// Drops upper bits.
    Trunc,
    /// Copies the sign bit up.
    SExt,
    /// Fills with zeros.
    ZExt,
    /// Signed integer to float, nearest even.
    SIntToFp,
    /// Unsigned integer to float, nearest even.
    UIntToFp,
    /// Float to signed integer, toward zero, saturating, NaN to zero.
    FpToSIntSat,
    /// Float to unsigned integer, toward zero, saturating, NaN to zero.
    FpToUIntSat,
    /// To a narrower float, nearest even.
    FpTrunc,
    /// To a wider float, exact.
    FpExt,
    /// The same bits under another type of the same total width (lane counts may differ).
    Bitcast,
}

/// How a value travels between the workitems of a warp (32 of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShuffleKind {
    /// From the workitem whose number differs in the bits of `lane`.
    Xor,
    /// From the workitem `lane` above; past the end, its own value.
    Down,
    /// From the workitem `lane` below; before the start, its own value.
    Up,
    /// From workitem `lane`.
    Index,
}

/// A matrix product of warp-wide fragments (PTX `mma.sync`), named by its operand types.
///
/// Fragments are vectors whose lane order is that of the PTX registers of one workitem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MmaKind {
    /// m16n8k16: a 8 x f16, b 4 x f16, c and d 4 x f32.
    F16,
    /// m16n8k16: a 8 x bf16, b 4 x bf16, c and d 4 x f32.
    BF16,
    /// m16n8k8: a 4 x f32 (as tf32), b 2 x f32, c and d 4 x f32.
    TF32,
    /// m8n8k4: a 1 x f64, b 1 x f64, c and d 2 x f64.
    F64,
    /// m16n8k32: a 4 x i32 (four s8 each), b 2 x i32, c and d 4 x i32.
    S8,
}

/// What [`ExprKind::Dot`] multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DotKind {
    /// Signed bytes.
    Bytes,
    /// Unsigned bytes by signed ones.
    MixedBytes,
    /// Signed integers of 16 bits.
    Words,
}

impl DotKind {
    /// What is multiplied to get sums of that type: as many bits.
    pub fn operand(self, sums: Ty) -> Ty {
        match self {
            Self::Bytes | Self::MixedBytes => Ty::vector(Scalar::I8, 4 * sums.lanes),
            Self::Words => Ty::vector(Scalar::I16, 2 * sums.lanes),
        }
    }
}

/// What an expression computes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExprKind {
    /// The same bits in every lane (the low `scalar.bits()` of the number).
    Const(u64),
    /// Bits of each lane.
    ConstVector(SmallVec<[u64; 8]>),
    /// Number of the workgroup, `i64`.
    WorkgroupId(Axis),
    /// Number of the workitem in its group, `i64`.
    WorkitemId(Axis),
    /// A value that a statement defines: loop variable, carried value, result.
    Stmt,
    /// A function of one value.
    Unary(UnaryOp, ExprId),
    /// A function of two values.
    Binary(BinaryOp, ExprId, ExprId),
    /// `a * b + c`, `f32` or `f64`: rounded once where the target has the instruction (every target
    /// but x86-64 without FMA), else after each step. For accumulations and polynomials.
    Fma(ExprId, ExprId, ExprId),
    /// `a * b + c`, `f32` or `f64`, rounded once on every target, slowly where there is no
    /// instruction. For error-free transformations.
    FmaExact(ExprId, ExprId, ExprId),
    /// Products of small integers, those of neighbouring lanes added to one lane of 32 bits,
    /// wrapping.
    Dot {
        /// What is multiplied.
        kind: DotKind,
        /// The lanes of each sum side by side.
        a: ExprId,
        /// What they are multiplied by.
        b: ExprId,
        /// What the sums start from.
        c: ExprId,
    },
    /// A relation.
    Cmp(CmpOp, ExprId, ExprId),
    /// Lane by lane, the first where the condition holds, else the second. A scalar condition
    /// chooses for all lanes.
    Select(ExprId, ExprId, ExprId),
    /// A conversion.
    Cast(CastOp, ExprId),
    /// `lanes` neighbouring elements of a buffer, from the element of that (`i64`, scalar) index on.
    Load {
        /// Where from.
        buf: BufId,
        /// First element.
        index: ExprId,
    },
    /// One element a lane, each from its own index (`i64` vector), where the mask (`i1` vector)
    /// holds; zero elsewhere.
    Gather {
        /// Where from.
        buf: BufId,
        /// Element of each lane.
        indices: ExprId,
        /// Lanes that are read; all when absent.
        mask: Option<ExprId>,
    },
    /// A scalar in every lane.
    Splat(ExprId),
    /// One lane of a vector.
    Extract(ExprId, u16),
    /// A vector with one lane replaced by a scalar.
    Insert(ExprId, ExprId, u16),
    /// Lanes picked from the lanes of the first and, after them, of the second.
    Shuffle(ExprId, ExprId, SmallVec<[u16; 8]>),
    /// All lanes combined by an associative function, in an order of the machine's choice for
    /// integers and pairwise (lane i with lane i + half) for floats.
    ReduceLanes(BinaryOp, ExprId),
    /// A value of another workitem of the warp; every workitem of the warp takes part.
    WarpShuffle {
        /// How the other is named.
        kind: ShuffleKind,
        /// What each workitem offers.
        value: ExprId,
        /// Number or mask, `i32`.
        lane: ExprId,
    },
    /// `a * b + c` of fragments.
    Mma {
        /// Types and shape.
        kind: MmaKind,
        /// 16 x k fragment.
        a: ExprId,
        /// k x 8 fragment.
        b: ExprId,
        /// Accumulator fragment.
        c: ExprId,
    },
}

/// An expression with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Type of the result.
    pub ty: Ty,
}

impl ExprKind {
    /// The values it is computed from.
    pub fn operands(&self) -> SmallVec<[ExprId; 3]> {
        match self {
            Self::Const(_)
            | Self::ConstVector(_)
            | Self::WorkgroupId(_)
            | Self::WorkitemId(_)
            | Self::Stmt => SmallVec::new(),
            Self::Unary(_, a)
            | Self::Cast(_, a)
            | Self::Splat(a)
            | Self::Extract(a, _)
            | Self::ReduceLanes(_, a) => SmallVec::from_slice(&[*a]),
            Self::Load { index, .. } => SmallVec::from_slice(&[*index]),
            Self::Gather { indices, mask, .. } => {
                let mut out = SmallVec::from_slice(&[*indices]);
                out.extend(*mask);
                out
            }
            Self::Binary(_, a, b)
            | Self::Cmp(_, a, b)
            | Self::Insert(a, b, _)
            | Self::Shuffle(a, b, _) => SmallVec::from_slice(&[*a, *b]),
            Self::WarpShuffle { value, lane, .. } => SmallVec::from_slice(&[*value, *lane]),
            Self::Fma(a, b, c)
            | Self::FmaExact(a, b, c)
            | Self::Select(a, b, c)
            | Self::Dot { a, b, c, .. }
            | Self::Mma { a, b, c, .. } => SmallVec::from_slice(&[*a, *b, *c]),
        }
    }
    /// Whether it reads memory.
    pub fn is_load(&self) -> bool {
        matches!(self, Self::Load { .. } | Self::Gather { .. })
    }
}
