//! Dot products of bytes, and pairs of 16-bit integers.

#[inline(always)]
fn byte(word: u32, place: u32, signed: bool) -> u32 {
    let byte = (word >> (8 * place)) as u8;
    if signed {
        byte as i8 as u32
    } else {
        u32::from(byte)
    }
}

#[inline(always)]
fn half(word: u32, place: u32, signed: bool) -> u32 {
    let half = (word >> (16 * place)) as u16;
    if signed {
        half as i16 as u32
    } else {
        u32::from(half)
    }
}

/// `dp4a`: `c` plus the four products of bytes, wrapping.
#[inline]
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let product = |i| byte(a, i, a_signed).wrapping_mul(byte(b, i, b_signed));
    c.wrapping_add(product(0))
        .wrapping_add(product(1))
        .wrapping_add(product(2))
        .wrapping_add(product(3))
}

/// `dp2a`: `c` plus the products of the halves of `a` with the two lower bytes of `b`, or with
/// `hi` the two upper ones; wrapping.
#[inline]
pub fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, hi: bool) -> u32 {
    let first = if hi { 2 } else { 0 };
    let product = |i| half(a, i, a_signed).wrapping_mul(byte(b, first + i, b_signed));
    c.wrapping_add(product(0)).wrapping_add(product(1))
}

macro_rules! pairs {
    ($($name:ident, $int:ty, $doc:literal, |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[doc = $doc]
        #[inline]
        pub fn $name(a: u32, b: u32) -> u32 {
            let one = |$a: $int, $b: $int| u32::from($body as u16);
            one(a as $int, b as $int) | one((a >> 16) as $int, (b >> 16) as $int) << 16
        }
    )*};
}

pairs! {
    add_16x2, u16, "`add.u16x2`, `add.s16x2`.", |a, b| a.wrapping_add(b);
    sub_16x2, u16, "`sub.u16x2`, `sub.s16x2`.", |a, b| a.wrapping_sub(b);
    min_u16x2, u16, "`min.u16x2`.", |a, b| a.min(b);
    max_u16x2, u16, "`max.u16x2`.", |a, b| a.max(b);
    min_s16x2, i16, "`min.s16x2`.", |a, b| a.min(b);
    max_s16x2, i16, "`max.s16x2`.", |a, b| a.max(b);
    min_relu_s16x2, i16, "`min.relu.s16x2`: what is negative becomes 0.", |a, b| a.min(b).max(0);
    max_relu_s16x2, i16, "`max.relu.s16x2`: what is negative becomes 0.", |a, b| a.max(b).max(0);
}
