//! `cvt`: scalar, in pairs, in fours, and `cvt.pack`.
#![allow(unsafe_code, reason = "rows come in a form with vector instructions")]

use crate::simulator::number::Round;
use crate::simulator::number::convert::Conversion;
use crate::simulator::number::convert::Scalar;
use crate::simulator::number::packed;
use crate::simulator::number::packed::Options;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::File;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::forms;
use crate::simulator::warp::lanes::row;

/// All types, in an order that a number names.
const SCALARS: [Scalar; 19] = [
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::S8,
    Scalar::S16,
    Scalar::S32,
    Scalar::S64,
    Scalar::F16,
    Scalar::BF16,
    Scalar::TF32,
    Scalar::F32,
    Scalar::F64,
    Scalar::E4M3,
    Scalar::E5M2,
    Scalar::E2M3,
    Scalar::E3M2,
    Scalar::E2M1,
    Scalar::UE8M0,
];
const ROUNDS: [Round; 5] = [
    Round::NearestEven,
    Round::Zero,
    Round::Down,
    Round::Up,
    Round::NearestAway,
];

fn scalar_number(scalar: Scalar) -> u64 {
    SCALARS.iter().position(|s| *s == scalar).unwrap_or(0) as u64
}
#[inline(always)]
fn scalar_at(x: u64) -> Scalar {
    SCALARS[(x & 31).min(18) as usize]
}
fn round_number(round: Option<Round>) -> u64 {
    let found = round.and_then(|round| ROUNDS.iter().position(|r| *r == round));
    found.map_or(0, |index| index as u64 + 1)
}
#[inline(always)]
fn round_at(x: u64) -> Option<Round> {
    ROUNDS.get((x & 7).wrapping_sub(1) as usize).copied()
}

/// A conversion as a number.
fn encode(c: &Conversion) -> u64 {
    let flags = [c.integral, c.ftz, c.sat, c.satfinite, c.relu];
    let mut x = scalar_number(c.to) | scalar_number(c.from) << 5 | round_number(c.round) << 10;
    for (bit, flag) in flags.into_iter().enumerate() {
        x |= u64::from(flag) << (13 + bit);
    }
    x
}

#[inline(always)]
fn decode(x: u64) -> Conversion {
    Conversion {
        to: scalar_at(x),
        from: scalar_at(x >> 5),
        round: round_at(x >> 10),
        integral: x >> 13 & 1 != 0,
        ftz: x >> 14 & 1 != 0,
        sat: x >> 15 & 1 != 0,
        satfinite: x >> 16 & 1 != 0,
        relu: x >> 17 & 1 != 0,
    }
}

/// Reads the modifiers of a scalar `cvt`; `None` when it is not one of the language's.
pub fn parse(modifiers: &[&str]) -> Option<Conversion> {
    let [options @ .., to, from] = modifiers else {
        return None;
    };
    let mut found = Conversion::new(Scalar::parse(to)?, Scalar::parse(from)?);
    for &word in options {
        match word {
            "ftz" => found.ftz = true,
            "sat" => found.sat = true,
            "satfinite" => found.satfinite = true,
            "relu" => found.relu = true,
            "rni" | "rzi" | "rmi" | "rpi" => {
                found.integral = true;
                found.round = super::float::rounding(&word[..2]);
            }
            "rna" => found.round = Some(Round::NearestAway),
            _ => found.round = Some(super::float::rounding(word)?),
        }
    }
    found.check().then_some(found)
}

macro_rules! general {
    ($s:ty, $d:ty, $from:ident, $to:ident) => {
        forms!(
            |f: &mut File, g: &Args, m: u32| {
                let conversion = decode(g.x);
                let out: [$d; 32] = if m.count_ones() > 16 {
                    conversion.lanes::<$s, $d, 32>(f.read::<$s>(g.a))
                } else {
                    let source = f.read::<$s>(g.a);
                    std::array::from_fn(|lane| {
                        if m >> lane & 1 != 0 {
                            conversion.apply(u64::from(source[lane])) as $d
                        } else {
                            0
                        }
                    })
                };
                f.write::<$d>(g.d, m, &out);
            },
            &[Class::$to, Class::$from]
        )
    };
}

/// The row of a scalar conversion between registers of those classes.
pub fn scalar(c: &Conversion, from: Class, to: Class) -> Option<(Row, u64)> {
    use Scalar::*;
    let plain = !(c.sat || c.satfinite || c.relu || c.ftz || c.integral);
    let row = match (c.to, c.from, from, to) {
        (U64 | S64, U32, Class::W32, Class::W64) if plain => {
            row!([a: u32] -> u64, _x, u64::from(a))
        }
        (U64 | S64, S32, Class::W32, Class::W64) if plain => {
            row!([a: i32] -> i64, _x, i64::from(a))
        }
        (U32 | S32, U64 | S64, Class::W64, Class::W32) if plain => {
            row!([a: u64] -> u32, _x, a as u32)
        }
        (U32 | S32, U16, Class::W32, Class::W32) if plain => {
            row!([a: u16] -> u32, _x, u32::from(a))
        }
        (U32 | S32, S16, Class::W32, Class::W32) if plain => {
            row!([a: i16] -> i32, _x, i32::from(a))
        }
        (U32 | S32, U8, Class::W32, Class::W32) if plain => row!([a: u8] -> u32, _x, u32::from(a)),
        (U32 | S32, S8, Class::W32, Class::W32) if plain => row!([a: i8] -> i32, _x, i32::from(a)),
        (U16, U32 | S32, Class::W32, Class::W32) if plain => {
            row!([a: u16] -> u32, _x, u32::from(a))
        }
        _ => match (from, to) {
            (Class::W32, Class::W32) => general!(u32, u32, W32, W32),
            (Class::W32, Class::W64) => general!(u32, u64, W32, W64),
            (Class::W64, Class::W32) => general!(u64, u32, W64, W32),
            (Class::W64, Class::W64) => general!(u64, u64, W64, W64),
            _ => return None,
        },
    };
    Some((row, encode(c)))
}

#[inline(always)]
fn options(x: u64) -> Options {
    Options {
        round: round_at(x >> 10).unwrap_or(Round::NearestEven),
        satfinite: x >> 16 & 1 != 0,
        relu: x >> 17 & 1 != 0,
    }
}

/// The scalar of a pair's or four's name.
fn element<'a>(word: &'a str, suffix: &str) -> Option<(Scalar, &'a str)> {
    let name = word.strip_suffix(suffix)?;
    Some((Scalar::parse(name)?, name))
}

/// The row of a conversion of two or four values, or of `cvt.pack`; scalar ones are in
/// [`scalar`]. A vector operand counts as its elements.
pub fn find(opcode: &str, modifiers: &[&str]) -> super::Found {
    if opcode != "cvt" {
        return None;
    }
    if let ["pack", rest @ ..] = modifiers {
        return pack(rest);
    }
    let [flags @ .., to, from] = modifiers else {
        return None;
    };
    let mut c = Conversion::new(Scalar::F32, Scalar::F32);
    let mut stochastic = false;
    for &word in flags {
        match word {
            "relu" => c.relu = true,
            "satfinite" => c.satfinite = true,
            "rs" => stochastic = true,
            _ => c.round = Some(super::float::rounding(word)?),
        }
    }
    let row = match (*to, *from) {
        (to, "f32") if element(to, "x4").is_some() && stochastic => {
            c.to = element(to, "x4")?.0;
            forms!(
                |f: &mut File, g: &Args, m: u32| {
                    // The fifth source stands in the second destination's place.
                    let out = std::array::from_fn(|lane| {
                        let values = [g.a, g.b, g.c, g.e].map(|s| f.read::<u32>(s)[lane]);
                        let random = f.read::<u32>(g.d2)[lane];
                        packed::stochastic4(scalar_at(g.x), values, random, &options(g.x))
                    });
                    f.write::<u32>(g.d, m, &out);
                },
                &[Class::W32; 6]
            )
        }
        (to, "f32") => {
            c.to = element(to, "x2")?.0;
            if stochastic {
                row!([a: u32, b: u32, r: u32] -> u32, x,
                    packed::stochastic2(scalar_at(x), a, b, r, &options(x)))
            } else {
                row!([a: u32, b: u32] -> u32, x, packed::pack2(scalar_at(x), a, b, &options(x)))
            }
        }
        _ if stochastic => return None,
        (to @ ("f16x2" | "bf16x2"), from) => {
            c.to = element(to, "x2")?.0;
            c.from = element(from, "x2")?.0;
            if matches!(c.from, Scalar::F16 | Scalar::BF16) {
                return None;
            }
            row!([a: u32] -> u32, x,
                packed::widen2(scalar_at(x), scalar_at(x >> 5), a, x >> 17 & 1 != 0))
        }
        (to, from @ ("f16x2" | "bf16x2")) => {
            c.to = element(to, "x2")?.0;
            c.from = element(from, "x2")?.0;
            row!([a: u32] -> u32, x,
                packed::narrow2(scalar_at(x), scalar_at(x >> 5), a, &options(x)))
        }
        _ => return None,
    };
    Some((row, encode(&c)))
}

/// `cvt.pack.sat.convertType.abType{.cType}`: two clamped integers, and a third word's low part
/// above them.
fn pack(modifiers: &[&str]) -> super::Found {
    #[inline(always)]
    fn clamp(a: u32, bits: u32, signed: bool) -> u32 {
        let a = i64::from(a as i32);
        let (least, most) = if signed {
            (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
        } else {
            (0, (1i64 << bits) - 1)
        };
        (a.clamp(least, most) as u32) & ((1 << bits) - 1)
    }
    let ["sat", to, "s32", third @ ..] = modifiers else {
        return None;
    };
    let (bits, signed): (u32, bool) = match *to {
        "u16" => (16, false),
        "s16" => (16, true),
        "u8" => (8, false),
        "s8" => (8, true),
        "u4" => (4, false),
        "s4" => (4, true),
        "u2" => (2, false),
        "s2" => (2, true),
        _ => return None,
    };
    let x = u64::from(bits) | u64::from(signed) << 8;
    let row = match (third, bits) {
        ([], 16) => row!([a: u32, b: u32] -> u32, x,
            clamp(b, x as u32 & 31, x & 256 != 0) | clamp(a, x as u32 & 31, x & 256 != 0) << 16),
        (["b32"], 2 | 4 | 8) => row!([a: u32, b: u32, c: u32] -> u32, x,
            clamp(b, x as u32 & 15, x & 256 != 0)
                | clamp(a, x as u32 & 15, x & 256 != 0) << (x & 15)
                | c << (2 * (x & 15))),
        _ => return None,
    };
    Some((row, x))
}
