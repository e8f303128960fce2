//! Integer arithmetic as PTX defines it, for every width and sign.
//!
//! What wraps is plain Rust (`wrapping_add` and so on) and not repeated here. Division by zero,
//! which PTX leaves to the machine, gives all ones, as its remainder does; the lowest signed number
//! over `-1` wraps.

/// An integer of a register: `u8` to `u64` and `i8` to `i64`.
pub trait Int: Copy + Ord {
    /// `a / b` towards zero.
    fn over(self, b: Self) -> Self;
    /// The remainder, with the sign of `a`.
    fn remainder(self, b: Self) -> Self;
    /// The lower half of the product.
    fn product_low(self, b: Self) -> Self;
    /// The upper half of the product.
    fn product_high(self, b: Self) -> Self;
    /// The sum, wrapping.
    fn sum(self, b: Self) -> Self;
    /// The sum, clamped to the type.
    fn sum_saturated(self, b: Self) -> Self;
    /// The difference, clamped to the type.
    fn difference_saturated(self, b: Self) -> Self;
    /// How far two numbers are apart, wrapping.
    fn distance(self, b: Self) -> Self;
    /// Shifted left; amounts beyond the width count as the width.
    fn left(self, amount: u32) -> Self;
    /// Shifted right, filled with the sign; amounts beyond the width count as the width.
    fn right(self, amount: u32) -> Self;
    /// `self + b + carry`, and the carry out of the unsigned sum.
    fn carrying(self, b: Self, carry: bool) -> (Self, bool);
    /// `self - b - borrow`, and the borrow of the unsigned difference.
    fn borrowing(self, b: Self, borrow: bool) -> (Self, bool);
}

/// An integer with a type of twice its width.
pub trait Wide: Int {
    /// The type of a full product.
    type Product;
    /// The full product.
    fn product(self, b: Self) -> Self::Product;
}

macro_rules! ints {
    ($($int:ty, $unsigned:ty, $double:ty, $ones:expr;)*) => {$(
        impl Int for $int {
            #[inline(always)]
            fn over(self, b: Self) -> Self {
                if b == 0 { $ones } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn remainder(self, b: Self) -> Self {
                if b == 0 { $ones } else { self.wrapping_rem(b) }
            }
            #[inline(always)]
            fn product_low(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn product_high(self, b: Self) -> Self {
                ((self as $double * b as $double) >> <$int>::BITS) as $int
            }
            #[inline(always)]
            fn sum(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sum_saturated(self, b: Self) -> Self {
                self.saturating_add(b)
            }
            #[inline(always)]
            fn difference_saturated(self, b: Self) -> Self {
                self.saturating_sub(b)
            }
            #[inline(always)]
            fn distance(self, b: Self) -> Self {
                if self < b { b.wrapping_sub(self) } else { self.wrapping_sub(b) }
            }
            #[inline(always)]
            fn left(self, amount: u32) -> Self {
                let moved = self.wrapping_shl(amount);
                if amount < <$int>::BITS { moved } else { 0 }
            }
            #[inline(always)]
            fn right(self, amount: u32) -> Self {
                let last = <$int>::BITS - 1;
                let moved = self >> amount.min(last);
                if amount > last { moved >> last } else { moved }
            }
            #[inline(always)]
            fn carrying(self, b: Self, carry: bool) -> (Self, bool) {
                let (sum, first) = (self as $unsigned).overflowing_add(b as $unsigned);
                let (sum, second) = sum.overflowing_add(<$unsigned>::from(carry));
                (sum as $int, first | second)
            }
            #[inline(always)]
            fn borrowing(self, b: Self, borrow: bool) -> (Self, bool) {
                let (rest, first) = (self as $unsigned).overflowing_sub(b as $unsigned);
                let (rest, second) = rest.overflowing_sub(<$unsigned>::from(borrow));
                (rest as $int, first | second)
            }
        }

        impl Wide for $int {
            type Product = $double;
            #[inline(always)]
            fn product(self, b: Self) -> $double {
                self as $double * b as $double
            }
        }
    )*};
}

ints! {
    u8, u8, u16, u8::MAX;
    u16, u16, u32, u16::MAX;
    u32, u32, u64, u32::MAX;
    u64, u64, u128, u64::MAX;
    i8, u8, i16, -1;
    i16, u16, i32, -1;
    i32, u32, i64, -1;
    i64, u64, i128, -1;
}

/// `div`.
#[inline(always)]
pub fn div<T: Int>(a: T, b: T) -> T {
    a.over(b)
}

/// `rem`.
#[inline(always)]
pub fn rem<T: Int>(a: T, b: T) -> T {
    a.remainder(b)
}

/// `mul.lo`.
#[inline(always)]
pub fn mul_lo<T: Int>(a: T, b: T) -> T {
    a.product_low(b)
}

/// `mul.hi`.
#[inline(always)]
pub fn mul_hi<T: Int>(a: T, b: T) -> T {
    a.product_high(b)
}

/// `mul.wide`.
#[inline(always)]
pub fn mul_wide<T: Wide>(a: T, b: T) -> T::Product {
    a.product(b)
}

/// `mad.lo`.
#[inline(always)]
pub fn mad_lo<T: Int>(a: T, b: T, c: T) -> T {
    a.product_low(b).sum(c)
}

/// `mad.hi`.
#[inline(always)]
pub fn mad_hi<T: Int>(a: T, b: T, c: T) -> T {
    a.product_high(b).sum(c)
}

/// `mad.wide`; the addend has the width of the product.
#[inline(always)]
pub fn mad_wide<T: Wide>(a: T, b: T, c: T::Product) -> T::Product
where
    T::Product: Int,
{
    a.product(b).sum(c)
}

/// `mad.hi.sat.s32`.
#[inline(always)]
pub fn mad_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    a.product_high(b).saturating_add(c)
}

/// `sad`: `c` plus how far `a` and `b` are apart.
#[inline(always)]
pub fn sad<T: Int>(a: T, b: T, c: T) -> T {
    a.distance(b).sum(c)
}

/// `add.sat`.
#[inline(always)]
pub fn add_sat<T: Int>(a: T, b: T) -> T {
    a.sum_saturated(b)
}

/// `sub.sat`.
#[inline(always)]
pub fn sub_sat<T: Int>(a: T, b: T) -> T {
    a.difference_saturated(b)
}

/// `shl`.
#[inline(always)]
pub fn shl<T: Int>(a: T, amount: u32) -> T {
    a.left(amount)
}

/// `shr`: filled with zeros or with the sign, by the type.
#[inline(always)]
pub fn shr<T: Int>(a: T, amount: u32) -> T {
    a.right(amount)
}

/// `add.cc`, `addc`, `addc.cc`: the sum and the carry out.
#[inline(always)]
pub fn add_carry<T: Int>(a: T, b: T, carry: bool) -> (T, bool) {
    a.carrying(b, carry)
}

/// `sub.cc`, `subc`, `subc.cc`: the difference and the borrow out.
#[inline(always)]
pub fn sub_borrow<T: Int>(a: T, b: T, borrow: bool) -> (T, bool) {
    a.borrowing(b, borrow)
}

/// `mad.lo.cc`, `madc.lo`, `madc.lo.cc`: the sum and the carry out.
#[inline(always)]
pub fn mad_lo_carry<T: Int>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    a.product_low(b).carrying(c, carry)
}

/// `mad.hi.cc`, `madc.hi`, `madc.hi.cc`: the sum and the carry out.
#[inline(always)]
pub fn mad_hi_carry<T: Int>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    a.product_high(b).carrying(c, carry)
}

#[inline(always)]
fn low24_u32(a: u32) -> u64 {
    u64::from(a & 0x00ff_ffff)
}

#[inline(always)]
fn low24_s32(a: i32) -> i64 {
    i64::from(a << 8 >> 8)
}

/// `mul24.lo.u32`: the lower 32 of the 48 bits of the product of the low 24 bits.
#[inline(always)]
pub fn mul24_lo_u32(a: u32, b: u32) -> u32 {
    (low24_u32(a) * low24_u32(b)) as u32
}

/// `mul24.hi.u32`: the upper 32 of the 48 bits.
#[inline(always)]
pub fn mul24_hi_u32(a: u32, b: u32) -> u32 {
    ((low24_u32(a) * low24_u32(b)) >> 16) as u32
}

/// `mul24.lo.s32`.
#[inline(always)]
pub fn mul24_lo_s32(a: i32, b: i32) -> i32 {
    (low24_s32(a) * low24_s32(b)) as i32
}

/// `mul24.hi.s32`.
#[inline(always)]
pub fn mul24_hi_s32(a: i32, b: i32) -> i32 {
    ((low24_s32(a) * low24_s32(b)) >> 16) as i32
}

/// `mad24.hi.sat.s32`.
#[inline(always)]
pub fn mad24_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi_s32(a, b).saturating_add(c)
}
