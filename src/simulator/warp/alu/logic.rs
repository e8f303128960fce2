//! Bits, shifts, selections and plain moves.
#![allow(unsafe_code, reason = "rows come in a form with vector instructions")]

use crate::simulator::number::bits;
use crate::simulator::number::bits::Permute;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::File;
use crate::simulator::warp::lanes::Lane;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::forms;
use crate::simulator::warp::lanes::row;

/// Shifts left; by the width or more gives zero.
#[inline(always)]
fn left32(a: u32, n: u32) -> u32 {
    if n > 31 { 0 } else { a << (n & 31) }
}
#[inline(always)]
fn left64(a: u64, n: u32) -> u64 {
    if n > 63 { 0 } else { a << (n & 63) }
}
#[inline(always)]
fn right32(a: u32, n: u32) -> u32 {
    if n > 31 { 0 } else { a >> (n & 31) }
}
#[inline(always)]
fn right64(a: u64, n: u32) -> u64 {
    if n > 63 { 0 } else { a >> (n & 63) }
}

/// An operation on predicates: all lanes at once.
macro_rules! masks {
    ([$($v:ident),+], $e:expr) => {
        forms!(
            |f: &mut File, g: &Args, m: u32| {
                let mut sources = [g.a, g.b].into_iter();
                $(let $v = f.predicate(sources.next().unwrap_or(g.a));)+
                // A negated source is said by a bit of its own.
                let mut flips = 0u64..;
                $(let $v = if g.x >> flips.next().unwrap_or(0) & 1 != 0 { !$v } else { $v };)+
                f.set_predicate(g.d, m, $e);
            },
            &[Class::Pred; 1 + [$(stringify!($v)),+].len()]
        )
    };
}

/// A selection by a predicate, the third source.
macro_rules! select {
    ($t:ty) => {
        forms!(
            |f: &mut File, g: &Args, m: u32| {
                let p = f.predicate(g.c);
                let p = if g.x & 1 != 0 { !p } else { p };
                let mut out = [<$t as Lane>::Store::default(); 32];
                {
                    let (a, b) = (f.read::<$t>(g.a), f.read::<$t>(g.b));
                    for lane in 0..32 {
                        out[lane] = if p >> lane & 1 != 0 { a[lane] } else { b[lane] };
                    }
                }
                f.write::<$t>(g.d, m, &out);
            },
            &[
                <$t as Lane>::CLASS,
                <$t as Lane>::CLASS,
                <$t as Lane>::CLASS,
                Class::Pred
            ]
        )
    };
}

/// The row of a name such as `shl.b32`.
#[rustfmt::skip]
pub fn find(name: &str) -> Option<Row> {
    Some(match name {
        "and.pred" => masks!([a, b], a & b),
        "or.pred" => masks!([a, b], a | b),
        "xor.pred" => masks!([a, b], a ^ b),
        "not.pred" => masks!([a], !a),
        "mov.pred" => masks!([a], a),
        "and.b16" => row!([a: u16, b: u16] -> u16, _x, a & b),
        "and.b32" => row!([a: u32, b: u32] -> u32, _x, a & b),
        "and.b64" => row!([a: u64, b: u64] -> u64, _x, a & b),
        "or.b16" => row!([a: u16, b: u16] -> u16, _x, a | b),
        "or.b32" => row!([a: u32, b: u32] -> u32, _x, a | b),
        "or.b64" => row!([a: u64, b: u64] -> u64, _x, a | b),
        "xor.b16" => row!([a: u16, b: u16] -> u16, _x, a ^ b),
        "xor.b32" => row!([a: u32, b: u32] -> u32, _x, a ^ b),
        "xor.b64" => row!([a: u64, b: u64] -> u64, _x, a ^ b),
        "not.b16" => row!([a: u16] -> u16, _x, !a),
        "not.b32" => row!([a: u32] -> u32, _x, !a),
        "not.b64" => row!([a: u64] -> u64, _x, !a),
        "cnot.b16" => row!([a: u16] -> u16, _x, u16::from(a == 0)),
        "cnot.b32" => row!([a: u32] -> u32, _x, u32::from(a == 0)),
        "cnot.b64" => row!([a: u64] -> u64, _x, u64::from(a == 0)),
        "shl.b16" => row!([a: u16, b: u32] -> u16, _x, if b > 15 { 0 } else { a << (b & 15) }),
        "shl.b32" => row!([a: u32, b: u32] -> u32, _x, left32(a, b)),
        "shl.b64" => row!([a: u64, b: u32] -> u64, _x, left64(a, b)),
        "shr.u16" | "shr.b16" => row!([a: u16, b: u32] -> u16, _x, if b > 15 { 0 } else { a >> (b & 15) }),
        "shr.s16" => row!([a: i16, b: u32] -> i16, _x, a >> b.min(15)),
        "shr.u32" | "shr.b32" => row!([a: u32, b: u32] -> u32, _x, right32(a, b)),
        "shr.s32" => row!([a: i32, b: u32] -> i32, _x, a >> b.min(31)),
        "shr.u64" | "shr.b64" => row!([a: u64, b: u32] -> u64, _x, right64(a, b)),
        "shr.s64" => row!([a: i64, b: u32] -> i64, _x, a >> b.min(63)),
        "shf.l.wrap.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_l(a, b, c, true)),
        "shf.l.clamp.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_l(a, b, c, false)),
        "shf.r.wrap.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_r(a, b, c, true)),
        "shf.r.clamp.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_r(a, b, c, false)),
        "lop3.b32" => row!([a: u32, b: u32, c: u32] -> u32, x, lop3(a, b, c, x as u8)),
        "prmt.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::prmt(Permute::Index, a, b, c)),
        "prmt.b32.f4e" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::prmt(Permute::Forward4, a, b, c)),
        "prmt.b32.b4e" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::prmt(Permute::Backward4, a, b, c)),
        "prmt.b32.rc8" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::prmt(Permute::Replicate8, a, b, c)),
        "prmt.b32.ecl" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::prmt(Permute::EdgeLeft, a, b, c)),
        "prmt.b32.ecr" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::prmt(Permute::EdgeRight, a, b, c)),
        "prmt.b32.rc16" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::prmt(Permute::Replicate16, a, b, c)),
        "mov.b16" | "mov.u16" | "mov.s16" | "mov.f16" | "mov.bf16" => row!([a: u32] -> u32, _x, a),
        "mov.b32" | "mov.u32" | "mov.s32" | "mov.f32" | "mov.f16x2" | "mov.bf16x2" => row!([a: u32] -> u32, _x, a),
        "mov.b64" | "mov.u64" | "mov.s64" | "mov.f64" => row!([a: u64] -> u64, _x, a),
        "selp.b16" | "selp.u16" | "selp.s16" | "selp.f16" | "selp.bf16"
        | "selp.b32" | "selp.u32" | "selp.s32" | "selp.f32" => select!(u32),
        "selp.b64" | "selp.u64" | "selp.s64" | "selp.f64" => select!(u64),
        _ => return None,
    })
}

/// The table of three bits, by arithmetic that vectorizes.
#[inline(always)]
fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let pick = |bit: u32| if table >> bit & 1 != 0 { u32::MAX } else { 0 };
    let ab = [!a & !b, !a & b, a & !b, a & b];
    let mut out = 0;
    for (row, both) in ab.into_iter().enumerate() {
        let row = row as u32 * 2;
        out |= both & ((!c & pick(row)) | (c & pick(row + 1)));
    }
    out
}

/// Takes a part of a register, or puts parts together: what `mov` does between vectors and
/// scalars, and the splitting of wide registers.
pub mod parts {
    use super::*;

    /// Bits `16 * x` and up of a word.
    pub fn half_of_32() -> Row {
        row!([a: u32] -> u32, x, a >> (x & 31) & 0xffff)
    }
    /// Bits `8 * x` and up of a word.
    pub fn byte_of_32() -> Row {
        row!([a: u32] -> u32, x, a >> (x & 31) & 0xff)
    }
    /// Bits `x` and up of a double word.
    pub fn word_of_64() -> Row {
        row!([a: u64] -> u32, x, (a >> (x & 63)) as u32)
    }
    /// 16 bits at `x` of a double word.
    pub fn half_of_64() -> Row {
        row!([a: u64] -> u32, x, (a >> (x & 63)) as u32 & 0xffff)
    }
    /// Two halves make a word.
    pub fn two_halves() -> Row {
        row!([a: u16, b: u16] -> u32, _x, u32::from(a) | u32::from(b) << 16)
    }
    /// Four bytes make a word.
    pub fn four_bytes() -> Row {
        row!([a: u8, b: u8, c: u8, d: u8] -> u32, _x, u32::from_le_bytes([a, b, c, d]))
    }
    /// Two bytes make a half.
    pub fn two_bytes() -> Row {
        row!([a: u8, b: u8] -> u32, _x, u32::from(a) | u32::from(b) << 8)
    }
    /// Two words make a double word.
    pub fn two_words() -> Row {
        row!([a: u32, b: u32] -> u64, _x, u64::from(a) | u64::from(b) << 32)
    }
    /// Four halves make a double word.
    pub fn four_halves() -> Row {
        row!([a: u16, b: u16, c: u16, d: u16] -> u64, _x,
            u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48)
    }
    /// The number of a lane's bits above `x`, zero-extended: `u32` to `u64`.
    pub fn extend() -> Row {
        row!([a: u32] -> u64, _x, u64::from(a))
    }
    /// The low word of a double word.
    pub fn truncate() -> Row {
        row!([a: u64] -> u32, _x, a as u32)
    }
    /// A double word and a constant.
    pub fn add64() -> Row {
        row!([a: u64] -> u64, x, a.wrapping_add(x))
    }
    /// Both halves of a 128-bit register.
    pub fn move128() -> Row {
        forms!(
            |f: &mut File, g: &Args, m: u32| {
                let low = *f.read::<u64>(g.a);
                let high = *f.read::<u64>(Slot(g.a.0 + 256));
                f.write::<u64>(g.d, m, &low);
                f.write::<u64>(Slot(g.d.0 + 256), m, &high);
            },
            &[Class::W128, Class::W128]
        )
    }
    /// Two double words make a 128-bit register.
    pub fn two_doubles() -> Row {
        forms!(
            |f: &mut File, g: &Args, m: u32| {
                let low = *f.read::<u64>(g.a);
                let high = *f.read::<u64>(g.b);
                f.write::<u64>(g.d, m, &low);
                f.write::<u64>(Slot(g.d.0 + 256), m, &high);
            },
            &[Class::W128, Class::W64, Class::W64]
        )
    }
    /// The low half of a 128-bit register, or the high one where `x` is 64.
    pub fn double_of_128() -> Row {
        forms!(
            |f: &mut File, g: &Args, m: u32| {
                let half = *f.read::<u64>(Slot(g.a.0 + (g.x as u32 & 64) * 4));
                f.write::<u64>(g.d, m, &half);
            },
            &[Class::W64, Class::W128]
        )
    }
    use crate::simulator::warp::lanes::Slot;
}
