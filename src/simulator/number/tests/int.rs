//! Integers against wide arithmetic.

use super::super::dot;
use super::super::int;
use super::Random;

macro_rules! against_wide {
    ($name:ident, $int:ty) => {
        #[test]
        fn $name() {
            let mut random = Random::new(11);
            let ends = [0, 1, 2, <$int>::MAX, <$int>::MIN, <$int>::MAX - 1, !0];
            let bits = <$int>::BITS;
            for _ in 0..4000 {
                let mut one = || match random.below(3) {
                    0 => ends[random.below(7) as usize],
                    1 => random.runs() as $int,
                    _ => random.next() as $int,
                };
                let (a, b, c) = (one(), one(), one());
                let (x, y, z) = (a as i128, b as i128, c as i128);
                // 64-bit unsigned products need all 128 bits, unsigned.
                let high = if <$int>::MIN == 0 {
                    ((x as u128 * y as u128) >> bits) as $int
                } else {
                    ((x * y) >> bits) as $int
                };
                assert_eq!(int::mul_hi(a, b), high);
                assert_eq!(int::mul_lo(a, b), x.wrapping_mul(y) as $int);
                assert_eq!(
                    int::mad_lo(a, b, c),
                    x.wrapping_mul(y).wrapping_add(z) as $int
                );
                assert_eq!(int::mad_hi(a, b, c), (high as i128 + z) as $int);
                // As many bits as the product has; beyond them the cast only extends the sign.
                let product = u128::MAX >> (128 - bits * 2);
                let wide = int::mul_wide(a, b) as u128 & product;
                assert_eq!(wide, x.wrapping_mul(y) as u128 & product);
                assert_eq!(int::sad(a, b, c), (z + (x - y).abs()) as $int);
                let clamp = |v: i128| v.clamp(<$int>::MIN as i128, <$int>::MAX as i128) as $int;
                assert_eq!(int::add_sat(a, b), clamp(x + y));
                assert_eq!(int::sub_sat(a, b), clamp(x - y));
                if y == 0 {
                    assert_eq!(int::div(a, b), !0);
                    assert_eq!(int::rem(a, b), !0);
                } else {
                    assert_eq!(int::div(a, b), (x / y) as $int);
                    assert_eq!(int::rem(a, b), (x % y) as $int);
                }
                let amount = random.below(80) as u32;
                let zero: $int = 0;
                let left = if amount >= bits {
                    zero
                } else {
                    (x << amount) as $int
                };
                assert_eq!(int::shl(a, amount), left);
                assert_eq!(int::shr(a, amount), (x >> amount) as $int);
                assert_eq!(int::shr(a, u32::MAX), if x < 0 { !zero } else { zero });
                let mask = u128::MAX >> (128 - bits);
                let (ua, ub) = (x as u128 & mask, y as u128 & mask);
                for carry in [false, true] {
                    let sum = ua + ub + u128::from(carry);
                    assert_eq!(int::add_carry(a, b, carry), (sum as $int, sum > mask));
                    let rest = ua as i128 - ub as i128 - i128::from(carry);
                    assert_eq!(int::sub_borrow(a, b, carry), (rest as $int, rest < 0));
                    let low = x.wrapping_mul(y) as u128 & mask;
                    let sum = low + (z as u128 & mask) + u128::from(carry);
                    assert_eq!(int::mad_lo_carry(a, b, c, carry), (sum as $int, sum > mask));
                    let sum = (high as u128 & mask) + (z as u128 & mask) + u128::from(carry);
                    assert_eq!(int::mad_hi_carry(a, b, c, carry), (sum as $int, sum > mask));
                }
            }
        }
    };
}

against_wide!(u8_is_exact, u8);
against_wide!(u16_is_exact, u16);
against_wide!(u32_is_exact, u32);
against_wide!(u64_is_exact, u64);
against_wide!(s8_is_exact, i8);
against_wide!(s16_is_exact, i16);
against_wide!(s32_is_exact, i32);
against_wide!(s64_is_exact, i64);

#[test]
fn wide_products_and_24_bits() {
    assert_eq!(int::mul_wide(0xffff_u16, 0xffff_u16), 0xfffe_0001_u32);
    assert_eq!(int::mul_wide(-2_i16, 3_i16), -6_i32);
    assert_eq!(int::mul_wide(i32::MIN, i32::MIN), 1_i64 << 62);
    assert_eq!(
        int::mad_wide(u32::MAX, u32::MAX, 5_u64),
        0xffff_fffe_0000_0006
    );
    assert_eq!(int::mad_wide(-1_i32, 7_i32, 5_i64), -2);
    assert_eq!(int::mad_hi_sat(i32::MAX, i32::MAX, i32::MAX), i32::MAX);
    assert_eq!(int::mad_hi_sat(i32::MIN, i32::MAX, i32::MIN), i32::MIN);
    let mut random = Random::new(12);
    for _ in 0..4000 {
        let (a, b, c) = (
            random.next() as u32,
            random.runs() as u32,
            random.next() as i32,
        );
        let unsigned = u128::from(a % (1 << 24)) * u128::from(b % (1 << 24));
        assert_eq!(int::mul24_lo_u32(a, b), unsigned as u32);
        assert_eq!(int::mul24_hi_u32(a, b), (unsigned >> 16) as u32);
        let low = |v: u32| {
            let v = i128::from(v % (1 << 24));
            if v >= 1 << 23 { v - (1 << 24) } else { v }
        };
        let signed = low(a) * low(b);
        let (a, b) = (a as i32, b as i32);
        assert_eq!(int::mul24_lo_s32(a, b), signed as i32);
        assert_eq!(int::mul24_hi_s32(a, b), (signed >> 16) as i32);
        let sum = (signed >> 16) + i128::from(c);
        let clamped = sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        assert_eq!(int::mad24_hi_sat(a, b, c), clamped);
    }
}

#[test]
fn dot_products() {
    let mut random = Random::new(13);
    for _ in 0..2000 {
        let (a, b, c) = (
            random.next() as u32,
            random.runs() as u32,
            random.next() as u32,
        );
        let part = |word: u32, index: u32, width: u32, signed: bool| {
            let value = i64::from(word >> (index * width)) % (1 << width);
            if signed && value >= 1 << (width - 1) {
                value - (1 << width)
            } else {
                value
            }
        };
        for signs in 0..4 {
            let (x, y) = (signs & 1 == 1, signs & 2 == 2);
            let four: i64 = (0..4).map(|i| part(a, i, 8, x) * part(b, i, 8, y)).sum();
            assert_eq!(dot::dp4a(a, b, c, x, y), (i64::from(c) + four) as u32);
            for hi in [false, true] {
                let first = if hi { 2 } else { 0 };
                let two: i64 = (0..2)
                    .map(|i| part(a, i, 16, x) * part(b, first + i, 8, y))
                    .sum();
                assert_eq!(dot::dp2a(a, b, c, x, y, hi), (i64::from(c) + two) as u32);
            }
        }
        for half in 0..2 {
            let (s, t) = (part(a, half, 16, true), part(b, half, 16, true));
            let (u, v) = (part(a, half, 16, false), part(b, half, 16, false));
            let low = |word: u32| (word >> (16 * half)) & 0xffff;
            let cut = |value: i64| (value & 0xffff) as u32;
            assert_eq!(low(dot::add_16x2(a, b)), cut(u + v));
            assert_eq!(low(dot::min_u16x2(a, b)), cut(u.min(v)));
            assert_eq!(low(dot::max_u16x2(a, b)), cut(u.max(v)));
            assert_eq!(low(dot::min_s16x2(a, b)), cut(s.min(t)));
            assert_eq!(low(dot::max_s16x2(a, b)), cut(s.max(t)));
            assert_eq!(low(dot::min_relu_s16x2(a, b)), cut(s.min(t).max(0)));
            assert_eq!(low(dot::max_relu_s16x2(a, b)), cut(s.max(t).max(0)));
        }
    }
}
