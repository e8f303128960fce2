//! Short words for the arithmetic of one floating-point type.
//!
//! Everything is lane by lane, without branches, so the same code serves scalars and vectors of any
//! width on every target. `Fma` is used freely where rounding twice only costs a little accuracy;
//! `exact` products where an error-free transformation needs one rounding.

use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;

/// A value.
pub(super) type V = ExprId;

/// The arithmetic of one type, writing into one kernel.
pub(super) struct Scope<'b> {
    /// The kernel.
    pub(super) b: &'b mut KernelBuilder,
    /// The float type.
    pub(super) ty: Ty,
}

/// A number as an unevaluated sum; the low part is small against the high one.
#[derive(Clone, Copy)]
pub(super) struct Double {
    /// The number, rounded.
    pub(super) high: V,
    /// What the rounding lost.
    pub(super) low: V,
}

impl<'b> Scope<'b> {
    /// The arithmetic of the type of `x`, when it is `f32` or `f64`.
    pub(super) fn of(b: &'b mut KernelBuilder, x: V) -> Option<Self> {
        let ty = b.ty(x);
        matches!(ty.scalar, Scalar::F32 | Scalar::F64).then_some(Self { b, ty })
    }

    /// Whether the type is `f64`.
    pub(super) fn is_double(&self) -> bool {
        self.ty.scalar == Scalar::F64
    }
    /// The integer type of the same width.
    pub(super) fn int_ty(&self) -> Ty {
        self.ty.with_scalar(self.ty.scalar.as_int())
    }
    /// Bits of the significand without the leading one.
    pub(super) fn fraction_bits(&self) -> u32 {
        if self.is_double() { 52 } else { 23 }
    }
    /// The exponent's bias.
    pub(super) fn bias(&self) -> i64 {
        if self.is_double() { 1023 } else { 127 }
    }

    // Constants

    /// A constant.
    pub(super) fn c(&mut self, value: f64) -> V {
        self.b.float(self.ty, value)
    }
    /// One constant for `f32`, another for `f64`.
    pub(super) fn pick(&mut self, single: f64, double: f64) -> V {
        let value = if self.is_double() { double } else { single };
        self.c(value)
    }
    /// A number as a sum of two constants.
    pub(super) fn c2(&mut self, high: f64, low: f64) -> Double {
        if self.is_double() {
            return Double {
                high: self.c(high),
                low: self.c(low),
            };
        }
        let single = f64::from(high as f32);
        Double {
            high: self.c(single),
            low: self.c(high - single + low),
        }
    }
    /// An integer constant.
    pub(super) fn i(&mut self, value: i64) -> V {
        let ty = self.int_ty();
        self.b.int(ty, value)
    }
    /// Not a number.
    pub(super) fn nan(&mut self) -> V {
        self.c(f64::NAN)
    }
    /// Infinity.
    pub(super) fn inf(&mut self) -> V {
        self.c(f64::INFINITY)
    }

    // Arithmetic

    /// Sum.
    pub(super) fn add(&mut self, x: V, y: V) -> V {
        self.b.add(x, y)
    }
    /// Difference.
    pub(super) fn sub(&mut self, x: V, y: V) -> V {
        self.b.sub(x, y)
    }
    /// Product.
    pub(super) fn mul(&mut self, x: V, y: V) -> V {
        self.b.mul(x, y)
    }
    /// Product with a constant.
    pub(super) fn scale(&mut self, x: V, by: f64) -> V {
        let by = self.c(by);
        self.b.mul(x, by)
    }
    /// Sum with a constant.
    pub(super) fn shift(&mut self, x: V, by: f64) -> V {
        let by = self.c(by);
        self.b.add(x, by)
    }
    /// Quotient.
    pub(super) fn div(&mut self, x: V, y: V) -> V {
        self.b.binary(BinaryOp::FDiv, x, y)
    }
    /// `x * y + z`.
    pub(super) fn fma(&mut self, x: V, y: V, z: V) -> V {
        self.b.fma(x, y, z)
    }
    /// `z - x * y`.
    pub(super) fn fnma(&mut self, x: V, y: V, z: V) -> V {
        let x = self.neg(x);
        self.b.fma(x, y, z)
    }
    /// Negation.
    pub(super) fn neg(&mut self, x: V) -> V {
        self.b.unary(UnaryOp::Neg, x)
    }
    /// Magnitude.
    pub(super) fn abs(&mut self, x: V) -> V {
        self.b.unary(UnaryOp::Abs, x)
    }
    /// Square root.
    pub(super) fn sqrt(&mut self, x: V) -> V {
        self.b.unary(UnaryOp::Sqrt, x)
    }
    /// Magnitude of the first, sign of the second.
    pub(super) fn copysign(&mut self, x: V, sign: V) -> V {
        self.b.binary(BinaryOp::CopySign, x, sign)
    }
    /// The smaller, NaN when `x` is; `y` is a number.
    pub(super) fn at_most(&mut self, x: V, y: V) -> V {
        let above = self.b.cmp(CmpOp::FGt, x, y);
        self.b.select(above, y, x)
    }
    /// The larger, NaN when `x` is; `y` is a number.
    pub(super) fn at_least(&mut self, x: V, y: V) -> V {
        let below = self.b.cmp(CmpOp::FLt, x, y);
        self.b.select(below, y, x)
    }
    /// The polynomial with these coefficients, constant first, by Horner's rule.
    pub(super) fn poly(&mut self, x: V, coefficients: &[f64]) -> V {
        let mut rest = coefficients.iter().rev();
        let first = *rest.next().unwrap_or(&0.0);
        let mut sum = self.c(first);
        for &coefficient in rest {
            let coefficient = self.c(coefficient);
            sum = self.fma(sum, x, coefficient);
        }
        sum
    }
    /// The same in two chains, for long polynomials.
    pub(super) fn poly2(&mut self, x: V, x2: V, coefficients: &[f64]) -> V {
        let even: Vec<f64> = coefficients.iter().step_by(2).copied().collect();
        let odd: Vec<f64> = coefficients.iter().skip(1).step_by(2).copied().collect();
        let (even, odd) = (self.poly(x2, &even), self.poly(x2, &odd));
        self.fma(odd, x, even)
    }
    /// One polynomial for `f32`, another for `f64`.
    pub(super) fn pick_poly(&mut self, x: V, single: &[f64], double: &[f64]) -> V {
        if self.is_double() {
            let x2 = self.mul(x, x);
            return self.poly2(x, x2, double);
        }
        self.poly(x, single)
    }

    // Conditions

    /// `x < y`
    pub(super) fn lt(&mut self, x: V, y: V) -> V {
        self.b.cmp(CmpOp::FLt, x, y)
    }
    /// `x > y`
    pub(super) fn gt(&mut self, x: V, y: V) -> V {
        self.b.cmp(CmpOp::FGt, x, y)
    }
    /// `x < c`
    pub(super) fn below(&mut self, x: V, limit: f64) -> V {
        let limit = self.c(limit);
        self.b.cmp(CmpOp::FLt, x, limit)
    }
    /// `x > c`
    pub(super) fn above(&mut self, x: V, limit: f64) -> V {
        let limit = self.c(limit);
        self.b.cmp(CmpOp::FGt, x, limit)
    }
    /// `x == c`
    pub(super) fn is(&mut self, x: V, value: f64) -> V {
        let value = self.c(value);
        self.b.cmp(CmpOp::FEq, x, value)
    }
    /// Whether the magnitude is infinite.
    pub(super) fn is_inf(&mut self, x: V) -> V {
        let size = self.abs(x);
        self.is(size, f64::INFINITY)
    }
    /// A choice.
    pub(super) fn select(&mut self, cond: V, x: V, y: V) -> V {
        self.b.select(cond, x, y)
    }
    /// Both conditions.
    pub(super) fn both(&mut self, x: V, y: V) -> V {
        self.b.binary(BinaryOp::And, x, y)
    }
    /// Either condition.
    pub(super) fn either(&mut self, x: V, y: V) -> V {
        self.b.binary(BinaryOp::Or, x, y)
    }
    /// The opposite.
    pub(super) fn not(&mut self, x: V) -> V {
        let yes = self.b.bool(self.ty.lanes, true);
        self.b.binary(BinaryOp::Xor, x, yes)
    }

    // Bits

    /// The bits of a float.
    pub(super) fn bits(&mut self, x: V) -> V {
        let ty = self.int_ty();
        self.b.bitcast(x, ty)
    }
    /// The float of these bits.
    pub(super) fn as_float(&mut self, x: V) -> V {
        let ty = self.ty;
        self.b.bitcast(x, ty)
    }
    /// An operation on integers.
    pub(super) fn int(&mut self, op: BinaryOp, x: V, y: V) -> V {
        self.b.binary(op, x, y)
    }
    /// An operation on an integer and a constant.
    pub(super) fn int_c(&mut self, op: BinaryOp, x: V, y: i64) -> V {
        let y = self.i(y);
        self.b.binary(op, x, y)
    }
    /// A relation of an integer and a constant.
    pub(super) fn icmp_c(&mut self, op: CmpOp, x: V, y: i64) -> V {
        let y = self.i(y);
        self.b.cmp(op, x, y)
    }
    /// Two to the power of an integer in the range of normal numbers.
    pub(super) fn exp2_int(&mut self, k: V) -> V {
        let (bias, bits) = (self.bias(), i64::from(self.fraction_bits()));
        let biased = self.int_c(BinaryOp::Add, k, bias);
        let bits = self.int_c(BinaryOp::Shl, biased, bits);
        self.as_float(bits)
    }
    /// `x * 2^k`, right also where the factor or the result is not normal.
    pub(super) fn ldexp(&mut self, x: V, k: V) -> V {
        let (half, rest) = self.exp2_halves(k);
        let x = self.mul(x, half);
        self.mul(x, rest)
    }
    /// `2^k` as a product of two factors of about the same size.
    pub(super) fn exp2_halves(&mut self, k: V) -> (V, V) {
        // A logical shift of a positive number: 64-bit vectors lack the arithmetic one.
        let offset = if self.is_double() { 4096 } else { 512 };
        let positive = self.int_c(BinaryOp::Add, k, offset);
        let half = self.int_c(BinaryOp::LShr, positive, 1);
        let half = self.int_c(BinaryOp::Sub, half, offset / 2);
        let rest = self.int(BinaryOp::Sub, k, half);
        (self.exp2_int(half), self.exp2_int(rest))
    }
    /// The nearest whole number of a float below 2^22 (2^51) in magnitude, as a float and as an
    /// integer. A sum with `1.5 * 2^23` has the whole number in its lowest bits.
    pub(super) fn round_magic(&mut self, x: V, times: f64) -> (V, V) {
        let magic = self.pick(12_582_912.0, 6_755_399_441_055_744.0);
        let times = self.c(times);
        let sum = self.fma(x, times, magic);
        let float = self.sub(sum, magic);
        let (sum, magic) = (self.bits(sum), self.bits(magic));
        (float, self.int(BinaryOp::Sub, sum, magic))
    }
    /// The float of an integer.
    pub(super) fn int_as_float(&mut self, k: V) -> V {
        self.b.cast(CastOp::SIntToFp, k, self.ty.scalar)
    }

    // Sums of two

    /// `x + y` without error, `x` being the larger (or zero).
    pub(super) fn fast_two_sum(&mut self, x: V, y: V) -> Double {
        let high = self.add(x, y);
        let rounded = self.sub(high, x);
        Double {
            high,
            low: self.sub(y, rounded),
        }
    }
    /// `x + y` without error.
    pub(super) fn two_sum(&mut self, x: V, y: V) -> Double {
        let high = self.add(x, y);
        let y_part = self.sub(high, x);
        let x_part = self.sub(high, y_part);
        let (dx, dy) = (self.sub(x, x_part), self.sub(y, y_part));
        Double {
            high,
            low: self.add(dx, dy),
        }
    }
    /// `x * y` without error.
    pub(super) fn two_product(&mut self, x: V, y: V) -> Double {
        let high = self.mul(x, y);
        let minus = self.neg(high);
        Double {
            high,
            low: self.b.fma_exact(x, y, minus),
        }
    }
    /// Product of sums, to twice the precision less a few bits.
    pub(super) fn double_mul(&mut self, x: Double, y: Double) -> Double {
        let p = self.two_product(x.high, y.high);
        let cross = self.mul(x.high, y.low);
        let cross = self.fma(x.low, y.high, cross);
        let low = self.add(p.low, cross);
        self.fast_two_sum(p.high, low)
    }
    /// Sum of sums; `x` is the larger.
    pub(super) fn double_add(&mut self, x: Double, y: Double) -> Double {
        let s = self.two_sum(x.high, y.high);
        let low = self.add(x.low, y.low);
        let low = self.add(s.low, low);
        self.fast_two_sum(s.high, low)
    }
}
