//! Integer arithmetic.
#![allow(unsafe_code, reason = "rows come in a form with vector instructions")]

use crate::simulator::number::bits;
use crate::simulator::number::dot;
use crate::simulator::number::int;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::row;

/// The row of a name such as `mad.lo.s32`.
#[rustfmt::skip]
pub fn find(name: &str) -> Option<Row> {
    Some(match name {
        "add.u16" | "add.s16" => row!([a: u16, b: u16] -> u16, _x, a.wrapping_add(b)),
        "add.u32" | "add.s32" => row!([a: u32, b: u32] -> u32, _x, a.wrapping_add(b)),
        "add.u64" | "add.s64" => row!([a: u64, b: u64] -> u64, _x, a.wrapping_add(b)),
        "add.sat.s32" => row!([a: i32, b: i32] -> i32, _x, int::add_sat(a, b)),
        "sub.u16" | "sub.s16" => row!([a: u16, b: u16] -> u16, _x, a.wrapping_sub(b)),
        "sub.u32" | "sub.s32" => row!([a: u32, b: u32] -> u32, _x, a.wrapping_sub(b)),
        "sub.u64" | "sub.s64" => row!([a: u64, b: u64] -> u64, _x, a.wrapping_sub(b)),
        "sub.sat.s32" => row!([a: i32, b: i32] -> i32, _x, int::sub_sat(a, b)),

        "mul.lo.u16" | "mul.lo.s16" => row!([a: u16, b: u16] -> u16, _x, int::mul_lo(a, b)),
        "mul.lo.u32" | "mul.lo.s32" => row!([a: u32, b: u32] -> u32, _x, int::mul_lo(a, b)),
        "mul.lo.u64" | "mul.lo.s64" => row!([a: u64, b: u64] -> u64, _x, int::mul_lo(a, b)),
        "mul.hi.u16" => row!([a: u16, b: u16] -> u16, _x, int::mul_hi(a, b)),
        "mul.hi.s16" => row!([a: i16, b: i16] -> i16, _x, int::mul_hi(a, b)),
        "mul.hi.u32" => row!([a: u32, b: u32] -> u32, _x, int::mul_hi(a, b)),
        "mul.hi.s32" => row!([a: i32, b: i32] -> i32, _x, int::mul_hi(a, b)),
        "mul.hi.u64" => row!([a: u64, b: u64] -> u64, _x, int::mul_hi(a, b)),
        "mul.hi.s64" => row!([a: i64, b: i64] -> i64, _x, int::mul_hi(a, b)),
        "mul.wide.u16" => row!([a: u16, b: u16] -> u32, _x, int::mul_wide(a, b)),
        "mul.wide.s16" => row!([a: i16, b: i16] -> i32, _x, int::mul_wide(a, b)),
        "mul.wide.u32" => row!([a: u32, b: u32] -> u64, _x, int::mul_wide(a, b)),
        "mul.wide.s32" => row!([a: i32, b: i32] -> i64, _x, int::mul_wide(a, b)),

        "mad.lo.u16" | "mad.lo.s16" => row!([a: u16, b: u16, c: u16] -> u16, _x, int::mad_lo(a, b, c)),
        "mad.lo.u32" | "mad.lo.s32" => row!([a: u32, b: u32, c: u32] -> u32, _x, int::mad_lo(a, b, c)),
        "mad.lo.u64" | "mad.lo.s64" => row!([a: u64, b: u64, c: u64] -> u64, _x, int::mad_lo(a, b, c)),
        "mad.hi.u16" => row!([a: u16, b: u16, c: u16] -> u16, _x, int::mad_hi(a, b, c)),
        "mad.hi.s16" => row!([a: i16, b: i16, c: i16] -> i16, _x, int::mad_hi(a, b, c)),
        "mad.hi.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, int::mad_hi(a, b, c)),
        "mad.hi.s32" => row!([a: i32, b: i32, c: i32] -> i32, _x, int::mad_hi(a, b, c)),
        "mad.hi.sat.s32" => row!([a: i32, b: i32, c: i32] -> i32, _x, int::mad_hi_sat(a, b, c)),
        "mad.hi.u64" => row!([a: u64, b: u64, c: u64] -> u64, _x, int::mad_hi(a, b, c)),
        "mad.hi.s64" => row!([a: i64, b: i64, c: i64] -> i64, _x, int::mad_hi(a, b, c)),
        "mad.wide.u16" => row!([a: u16, b: u16, c: u32] -> u32, _x, int::mad_wide(a, b, c)),
        "mad.wide.s16" => row!([a: i16, b: i16, c: i32] -> i32, _x, int::mad_wide(a, b, c)),
        "mad.wide.u32" => row!([a: u32, b: u32, c: u64] -> u64, _x, int::mad_wide(a, b, c)),
        "mad.wide.s32" => row!([a: i32, b: i32, c: i64] -> i64, _x, int::mad_wide(a, b, c)),

        "mul24.lo.u32" => row!([a: u32, b: u32] -> u32, _x, int::mul24_lo_u32(a, b)),
        "mul24.lo.s32" => row!([a: i32, b: i32] -> i32, _x, int::mul24_lo_s32(a, b)),
        "mul24.hi.u32" => row!([a: u32, b: u32] -> u32, _x, int::mul24_hi_u32(a, b)),
        "mul24.hi.s32" => row!([a: i32, b: i32] -> i32, _x, int::mul24_hi_s32(a, b)),
        "mad24.lo.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, int::mul24_lo_u32(a, b).wrapping_add(c)),
        "mad24.lo.s32" => row!([a: i32, b: i32, c: i32] -> i32, _x, int::mul24_lo_s32(a, b).wrapping_add(c)),
        "mad24.hi.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, int::mul24_hi_u32(a, b).wrapping_add(c)),
        "mad24.hi.s32" => row!([a: i32, b: i32, c: i32] -> i32, _x, int::mul24_hi_s32(a, b).wrapping_add(c)),
        "mad24.hi.sat.s32" => row!([a: i32, b: i32, c: i32] -> i32, _x, int::mad24_hi_sat(a, b, c)),

        "sad.u16" => row!([a: u16, b: u16, c: u16] -> u16, _x, int::sad(a, b, c)),
        "sad.s16" => row!([a: i16, b: i16, c: i16] -> i16, _x, int::sad(a, b, c)),
        "sad.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, int::sad(a, b, c)),
        "sad.s32" => row!([a: i32, b: i32, c: i32] -> i32, _x, int::sad(a, b, c)),
        "sad.u64" => row!([a: u64, b: u64, c: u64] -> u64, _x, int::sad(a, b, c)),
        "sad.s64" => row!([a: i64, b: i64, c: i64] -> i64, _x, int::sad(a, b, c)),

        "div.u16" => row!([a: u16, b: u16] -> u16, _x, int::div(a, b)),
        "div.s16" => row!([a: i16, b: i16] -> i16, _x, int::div(a, b)),
        "div.u32" => row!([a: u32, b: u32] -> u32, _x, int::div(a, b)),
        "div.s32" => row!([a: i32, b: i32] -> i32, _x, int::div(a, b)),
        "div.u64" => row!([a: u64, b: u64] -> u64, _x, int::div(a, b)),
        "div.s64" => row!([a: i64, b: i64] -> i64, _x, int::div(a, b)),
        "rem.u16" => row!([a: u16, b: u16] -> u16, _x, int::rem(a, b)),
        "rem.s16" => row!([a: i16, b: i16] -> i16, _x, int::rem(a, b)),
        "rem.u32" => row!([a: u32, b: u32] -> u32, _x, int::rem(a, b)),
        "rem.s32" => row!([a: i32, b: i32] -> i32, _x, int::rem(a, b)),
        "rem.u64" => row!([a: u64, b: u64] -> u64, _x, int::rem(a, b)),
        "rem.s64" => row!([a: i64, b: i64] -> i64, _x, int::rem(a, b)),

        "abs.s16" => row!([a: i16] -> i16, _x, a.wrapping_abs()),
        "abs.s32" => row!([a: i32] -> i32, _x, a.wrapping_abs()),
        "abs.s64" => row!([a: i64] -> i64, _x, a.wrapping_abs()),
        "neg.s16" => row!([a: i16] -> i16, _x, a.wrapping_neg()),
        "neg.s32" => row!([a: i32] -> i32, _x, a.wrapping_neg()),
        "neg.s64" => row!([a: i64] -> i64, _x, a.wrapping_neg()),

        "min.u16" => row!([a: u16, b: u16] -> u16, _x, a.min(b)),
        "min.s16" => row!([a: i16, b: i16] -> i16, _x, a.min(b)),
        "min.u32" => row!([a: u32, b: u32] -> u32, _x, a.min(b)),
        "min.s32" => row!([a: i32, b: i32] -> i32, _x, a.min(b)),
        "min.relu.s32" => row!([a: i32, b: i32] -> i32, _x, a.min(b).max(0)),
        "min.u64" => row!([a: u64, b: u64] -> u64, _x, a.min(b)),
        "min.s64" => row!([a: i64, b: i64] -> i64, _x, a.min(b)),
        "max.u16" => row!([a: u16, b: u16] -> u16, _x, a.max(b)),
        "max.s16" => row!([a: i16, b: i16] -> i16, _x, a.max(b)),
        "max.u32" => row!([a: u32, b: u32] -> u32, _x, a.max(b)),
        "max.s32" => row!([a: i32, b: i32] -> i32, _x, a.max(b)),
        "max.relu.s32" => row!([a: i32, b: i32] -> i32, _x, a.max(b).max(0)),
        "max.u64" => row!([a: u64, b: u64] -> u64, _x, a.max(b)),
        "max.s64" => row!([a: i64, b: i64] -> i64, _x, a.max(b)),

        "popc.b32" => row!([a: u32] -> u32, _x, a.count_ones()),
        "popc.b64" => row!([a: u64] -> u32, _x, a.count_ones()),
        "clz.b32" => row!([a: u32] -> u32, _x, a.leading_zeros()),
        "clz.b64" => row!([a: u64] -> u32, _x, a.leading_zeros()),
        "brev.b32" => row!([a: u32] -> u32, _x, a.reverse_bits()),
        "brev.b64" => row!([a: u64] -> u64, _x, a.reverse_bits()),
        "bfind.u32" => row!([a: u32] -> u32, _x, bits::bfind_u32(a, false)),
        "bfind.s32" => row!([a: i32] -> u32, _x, bits::bfind_s32(a, false)),
        "bfind.u64" => row!([a: u64] -> u32, _x, bits::bfind_u64(a, false)),
        "bfind.s64" => row!([a: i64] -> u32, _x, bits::bfind_s64(a, false)),
        "bfind.shiftamt.u32" => row!([a: u32] -> u32, _x, bits::bfind_u32(a, true)),
        "bfind.shiftamt.s32" => row!([a: i32] -> u32, _x, bits::bfind_s32(a, true)),
        "bfind.shiftamt.u64" => row!([a: u64] -> u32, _x, bits::bfind_u64(a, true)),
        "bfind.shiftamt.s64" => row!([a: i64] -> u32, _x, bits::bfind_s64(a, true)),
        "fns.b32" => row!([a: u32, b: u32, c: i32] -> u32, _x, bits::fns(a, b, c)),
        "bfe.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::bfe_u32(a, b, c)),
        "bfe.s32" => row!([a: i32, b: u32, c: u32] -> i32, _x, bits::bfe_s32(a, b, c)),
        "bfe.u64" => row!([a: u64, b: u32, c: u32] -> u64, _x, bits::bfe_u64(a, b, c)),
        "bfe.s64" => row!([a: i64, b: u32, c: u32] -> i64, _x, bits::bfe_s64(a, b, c)),
        "bfi.b32" => row!([a: u32, b: u32, c: u32, d: u32] -> u32, _x, bits::bfi32(a, b, c, d)),
        "bfi.b64" => row!([a: u64, b: u64, c: u32, d: u32] -> u64, _x, bits::bfi64(a, b, c, d)),
        "szext.clamp.u32" => row!([a: u32, b: u32] -> u32, _x, bits::szext_u32(a, b, false)),
        "szext.wrap.u32" => row!([a: u32, b: u32] -> u32, _x, bits::szext_u32(a, b, true)),
        "szext.clamp.s32" => row!([a: u32, b: u32] -> u32, _x, bits::szext_s32(a, b, false)),
        "szext.wrap.s32" => row!([a: u32, b: u32] -> u32, _x, bits::szext_s32(a, b, true)),
        "bmsk.clamp.b32" => row!([a: u32, b: u32] -> u32, _x, bits::bmsk(a, b, false)),
        "bmsk.wrap.b32" => row!([a: u32, b: u32] -> u32, _x, bits::bmsk(a, b, true)),
        "dp4a.u32.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp4a(a, b, c, false, false)),
        "dp4a.u32.s32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp4a(a, b, c, false, true)),
        "dp4a.s32.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp4a(a, b, c, true, false)),
        "dp4a.s32.s32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp4a(a, b, c, true, true)),
        "dp2a.lo.u32.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, false, false, false)),
        "dp2a.lo.u32.s32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, false, true, false)),
        "dp2a.lo.s32.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, true, false, false)),
        "dp2a.lo.s32.s32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, true, true, false)),
        "dp2a.hi.u32.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, false, false, true)),
        "dp2a.hi.u32.s32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, false, true, true)),
        "dp2a.hi.s32.u32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, true, false, true)),
        "dp2a.hi.s32.s32" => row!([a: u32, b: u32, c: u32] -> u32, _x, dot::dp2a(a, b, c, true, true, true)),
        _ => return None,
    })
}

/// The row of an instruction on pairs of 16-bit integers.
#[rustfmt::skip]
pub fn packed(name: &str) -> Option<Row> {
    Some(match name {
        "add.u16x2" | "add.s16x2" => row!([a: u32, b: u32] -> u32, _x, dot::add_16x2(a, b)),
        "sub.u16x2" | "sub.s16x2" => row!([a: u32, b: u32] -> u32, _x, dot::sub_16x2(a, b)),
        "neg.s16x2" => row!([a: u32] -> u32, _x, dot::sub_16x2(0, a)),
        "min.u16x2" => row!([a: u32, b: u32] -> u32, _x, dot::min_u16x2(a, b)),
        "max.u16x2" => row!([a: u32, b: u32] -> u32, _x, dot::max_u16x2(a, b)),
        "min.s16x2" => row!([a: u32, b: u32] -> u32, _x, dot::min_s16x2(a, b)),
        "max.s16x2" => row!([a: u32, b: u32] -> u32, _x, dot::max_s16x2(a, b)),
        "min.relu.s16x2" => row!([a: u32, b: u32] -> u32, _x, dot::min_relu_s16x2(a, b)),
        "max.relu.s16x2" => row!([a: u32, b: u32] -> u32, _x, dot::max_relu_s16x2(a, b)),
        _ => return None,
    })
}

/// Carry chains: the row takes the carry predicate in [`Args::c`](crate::simulator::warp::lanes::Args::c),
/// or in `e` after three sources, and gives it in `d2`. The second part says whether it reads the
/// carry, the third whether it sets it.
#[rustfmt::skip]
pub fn carry(name: &str) -> Option<(Row, bool, bool)> {
    macro_rules! two {
        ($t:ty, $reads:expr, $sets:expr, $a:ident, $b:ident, $carry:ident, $e:expr) => {
            (crate::simulator::warp::lanes::forms!(
                |f: &mut crate::simulator::warp::lanes::File, g: &crate::simulator::warp::lanes::Args, m: u32| {
                    let carried = if $reads { f.predicate(g.e) } else { 0 };
                    let mut out = [0; 32];
                    let mut next = 0u32;
                    for lane in 0..32 {
                        let ($a, $b) = (f.read::<$t>(g.a)[lane], f.read::<$t>(g.b)[lane]);
                        let $carry = carried >> lane & 1 != 0;
                        let (value, over): ($t, bool) = $e;
                        out[lane] = value;
                        next |= u32::from(over) << lane;
                    }
                    f.write::<$t>(g.d, m, &out);
                    if $sets { f.set_predicate(g.d2, m, next); }
                },
                &[<$t as crate::simulator::warp::lanes::Lane>::CLASS; 3]
            ), $reads, $sets)
        };
    }
    macro_rules! three {
        ($t:ty, $reads:expr, $sets:expr, $f:path) => {
            (crate::simulator::warp::lanes::forms!(
                |f: &mut crate::simulator::warp::lanes::File, g: &crate::simulator::warp::lanes::Args, m: u32| {
                    use crate::simulator::warp::lanes::Lane;
                    let carried = if $reads { f.predicate(g.e) } else { 0 };
                    let mut out = [0; 32];
                    let mut next = 0u32;
                    for lane in 0..32 {
                        let a = <$t>::get(f.read::<$t>(g.a)[lane]);
                        let b = <$t>::get(f.read::<$t>(g.b)[lane]);
                        let c = <$t>::get(f.read::<$t>(g.c)[lane]);
                        let (value, over) = $f(a, b, c, carried >> lane & 1 != 0);
                        out[lane] = value.put();
                        next |= u32::from(over) << lane;
                    }
                    f.write::<$t>(g.d, m, &out);
                    if $sets { f.set_predicate(g.d2, m, next); }
                },
                &[<$t as crate::simulator::warp::lanes::Lane>::CLASS; 4]
            ), $reads, $sets)
        };
    }
    Some(match name {
        "add.cc.u32" | "add.cc.s32" => two!(u32, false, true, a, b, _k, a.overflowing_add(b)),
        "add.cc.u64" | "add.cc.s64" => two!(u64, false, true, a, b, _k, a.overflowing_add(b)),
        "addc.u32" | "addc.s32" => two!(u32, true, false, a, b, k, int::add_carry(a, b, k)),
        "addc.u64" | "addc.s64" => two!(u64, true, false, a, b, k, int::add_carry(a, b, k)),
        "addc.cc.u32" | "addc.cc.s32" => two!(u32, true, true, a, b, k, int::add_carry(a, b, k)),
        "addc.cc.u64" | "addc.cc.s64" => two!(u64, true, true, a, b, k, int::add_carry(a, b, k)),
        "sub.cc.u32" | "sub.cc.s32" => two!(u32, false, true, a, b, _k, a.overflowing_sub(b)),
        "sub.cc.u64" | "sub.cc.s64" => two!(u64, false, true, a, b, _k, a.overflowing_sub(b)),
        "subc.u32" | "subc.s32" => two!(u32, true, false, a, b, k, int::sub_borrow(a, b, k)),
        "subc.u64" | "subc.s64" => two!(u64, true, false, a, b, k, int::sub_borrow(a, b, k)),
        "subc.cc.u32" | "subc.cc.s32" => two!(u32, true, true, a, b, k, int::sub_borrow(a, b, k)),
        "subc.cc.u64" | "subc.cc.s64" => two!(u64, true, true, a, b, k, int::sub_borrow(a, b, k)),
        "mad.lo.cc.u32" | "mad.lo.cc.s32" => three!(u32, false, true, int::mad_lo_carry),
        "mad.lo.cc.u64" | "mad.lo.cc.s64" => three!(u64, false, true, int::mad_lo_carry),
        "madc.lo.u32" | "madc.lo.s32" => three!(u32, true, false, int::mad_lo_carry),
        "madc.lo.u64" | "madc.lo.s64" => three!(u64, true, false, int::mad_lo_carry),
        "madc.lo.cc.u32" | "madc.lo.cc.s32" => three!(u32, true, true, int::mad_lo_carry),
        "madc.lo.cc.u64" | "madc.lo.cc.s64" => three!(u64, true, true, int::mad_lo_carry),
        "mad.hi.cc.u32" => three!(u32, false, true, int::mad_hi_carry),
        "mad.hi.cc.s32" => three!(i32, false, true, int::mad_hi_carry),
        "mad.hi.cc.u64" => three!(u64, false, true, int::mad_hi_carry),
        "mad.hi.cc.s64" => three!(i64, false, true, int::mad_hi_carry),
        "madc.hi.u32" => three!(u32, true, false, int::mad_hi_carry),
        "madc.hi.s32" => three!(i32, true, false, int::mad_hi_carry),
        "madc.hi.u64" => three!(u64, true, false, int::mad_hi_carry),
        "madc.hi.s64" => three!(i64, true, false, int::mad_hi_carry),
        "madc.hi.cc.u32" => three!(u32, true, true, int::mad_hi_carry),
        "madc.hi.cc.s32" => three!(i32, true, true, int::mad_hi_carry),
        "madc.hi.cc.u64" => three!(u64, true, true, int::mad_hi_carry),
        "madc.hi.cc.s64" => three!(i64, true, true, int::mad_hi_carry),
        _ => return None,
    })
}
