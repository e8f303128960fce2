//! Bits, shifts, selections and plain moves.
#![allow(unsafe_code, reason = "rows come in a form with vector instructions")]

use crate::simulator::number::bits;
use crate::simulator::number::bits::Permute;
use crate::simulator::number::int;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::File;
use crate::simulator::warp::lanes::Lane;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::forms;
use crate::simulator::warp::lanes::row;

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
        "shl.b16" => row!([a: u16, b: u32] -> u16, _x, int::shl(a, b)),
        "shl.b32" => row!([a: u32, b: u32] -> u32, _x, int::shl(a, b)),
        "shl.b64" => row!([a: u64, b: u32] -> u64, _x, int::shl(a, b)),
        "shr.u16" | "shr.b16" => row!([a: u16, b: u32] -> u16, _x, int::shr(a, b)),
        "shr.s16" => row!([a: i16, b: u32] -> i16, _x, int::shr(a, b)),
        "shr.u32" | "shr.b32" => row!([a: u32, b: u32] -> u32, _x, int::shr(a, b)),
        "shr.s32" => row!([a: i32, b: u32] -> i32, _x, int::shr(a, b)),
        "shr.u64" | "shr.b64" => row!([a: u64, b: u32] -> u64, _x, int::shr(a, b)),
        "shr.s64" => row!([a: i64, b: u32] -> i64, _x, int::shr(a, b)),
        "shf.l.wrap.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_l(a, b, c, true)),
        "shf.l.clamp.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_l(a, b, c, false)),
        "shf.r.wrap.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_r(a, b, c, true)),
        "shf.r.clamp.b32" => row!([a: u32, b: u32, c: u32] -> u32, _x, bits::shf_r(a, b, c, false)),
        "lop3.b32" => row!([a: u32, b: u32, c: u32] -> u32, x, bits::lop3(a, b, c, x as u8)),
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

/// Takes a part of a register, or puts parts together: what `mov` does between vectors and
/// scalars, and the splitting of wide registers.
pub mod parts {
    use super::*;
    use crate::simulator::warp::lanes::Slot;

    /// 16 bits at `x` of a word.
    pub fn half_of_32() -> Row {
        row!([a: u32] -> u32, x, a >> (x & 31) & 0xffff)
    }
    /// Eight bits at `x` of a word.
    pub fn byte_of_32() -> Row {
        row!([a: u32] -> u32, x, a >> (x & 31) & 0xff)
    }
    /// 32 bits at `x` of a double word.
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
}
