//! Arithmetic of f16 and bf16, single and in pairs.
#![allow(unsafe_code, reason = "rows come in a form with vector instructions")]

use crate::simulator::number::float16;
use crate::simulator::number::float16::BF16;
use crate::simulator::number::float16::F16;
use crate::simulator::number::float16::Half;
use crate::simulator::number::special;
use crate::simulator::warp::alu::Found;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::row;

const FTZ: u64 = 1;
const SAT: u64 = 2;
const RELU: u64 = 4;
const NAN: u64 = 8;
const XORSIGN: u64 = 16;
const OOB: u64 = 32;

#[inline(always)]
fn pre<H: Half>(x: u64, a: u16) -> u16 {
    if x & FTZ != 0 {
        float16::ftz::<H>(a)
    } else {
        a
    }
}

#[inline(always)]
fn post<H: Half>(x: u64, a: u16) -> u16 {
    let a = pre::<H>(x, a);
    if x & SAT != 0 {
        float16::sat::<H>(a)
    } else {
        a
    }
}

#[inline(always)]
fn fma<H: Half>(x: u64, a: u16, b: u16, c: u16) -> u16 {
    let (a, b, c) = (pre::<H>(x, a), pre::<H>(x, b), pre::<H>(x, c));
    if x & OOB != 0 {
        float16::fma_oob::<H>(a, b, c, x & RELU != 0)
    } else if x & RELU != 0 {
        pre::<H>(x, float16::fma_relu::<H>(a, b, c))
    } else {
        post::<H>(x, float16::fma::<H>(a, b, c))
    }
}

#[inline(always)]
fn extreme<H: Half>(x: u64, is_max: bool, a: u16, b: u16) -> u16 {
    let (a, b) = (pre::<H>(x, a), pre::<H>(x, b));
    let f = match (is_max, x & NAN != 0) {
        (false, false) => float16::min::<H>,
        (true, false) => float16::max::<H>,
        (false, true) => float16::min_nan::<H>,
        (true, true) => float16::max_nan::<H>,
    };
    if x & XORSIGN != 0 {
        float16::xorsign_abs::<H>(f, a, b)
    } else {
        f(a, b)
    }
}

macro_rules! one {
    ($pair:expr, $f:expr) => {
        if $pair {
            row!([a: u32] -> u32, x, float16::x2_unary(|p| $f(x, p), a))
        } else {
            row!([a: u16] -> u16, x, $f(x, a))
        }
    };
}
macro_rules! two {
    ($pair:expr, $f:expr) => {
        if $pair {
            row!([a: u32, b: u32] -> u32, x, float16::x2(|p, q| $f(x, p, q), a, b))
        } else {
            row!([a: u16, b: u16] -> u16, x, $f(x, a, b))
        }
    };
}
macro_rules! three {
    ($pair:expr, $f:expr) => {
        if $pair {
            row!([a: u32, b: u32, c: u32] -> u32, x,
                float16::x2_ternary(|p, q, r| $f(x, p, q, r), a, b, c))
        } else {
            row!([a: u16, b: u16, c: u16] -> u16, x, $f(x, a, b, c))
        }
    };
}

macro_rules! table {
    ($name:ident, $h:ty) => {
        fn $name(opcode: &str, pair: bool) -> Option<Row> {
            Some(match opcode {
                "add" => two!(pair, |x, a, b| post::<$h>(
                    x,
                    float16::add::<$h>(pre::<$h>(x, a), pre::<$h>(x, b))
                )),
                "sub" => two!(pair, |x, a, b| post::<$h>(
                    x,
                    float16::sub::<$h>(pre::<$h>(x, a), pre::<$h>(x, b))
                )),
                "mul" => two!(pair, |x, a, b| post::<$h>(
                    x,
                    float16::mul::<$h>(pre::<$h>(x, a), pre::<$h>(x, b))
                )),
                "fma" => three!(pair, fma::<$h>),
                "min" => two!(pair, |x, a, b| extreme::<$h>(x, false, a, b)),
                "max" => two!(pair, |x, a, b| extreme::<$h>(x, true, a, b)),
                "neg" => one!(pair, |x, a| float16::neg(pre::<$h>(x, a))),
                "abs" => one!(pair, |x, a| float16::abs(pre::<$h>(x, a))),
                "ex2" => one!(pair, |x, a| pre::<$h>(
                    x,
                    special::ex2_half::<$h>(pre::<$h>(x, a))
                )),
                "tanh" => one!(pair, |x, a| {
                    let _: u64 = x;
                    special::tanh_half::<$h>(a)
                }),
                "copysign" => two!(pair, |x, a, b| {
                    let _: u64 = x;
                    float16::copysign(a, b)
                }),
                _ => return None,
            })
        }
    };
}
table!(f16, F16);
table!(bf16, BF16);

/// The row of an instruction on f16, bf16 and pairs of them.
pub fn find(opcode: &str, modifiers: &[&str]) -> Found {
    let mut x = 0;
    let mut ty = "";
    for &word in modifiers {
        match word {
            "ftz" => x |= FTZ,
            "sat" => x |= SAT,
            "relu" => x |= RELU,
            "NaN" => x |= NAN,
            "xorsign" => x |= XORSIGN,
            "oob" => x |= OOB,
            "abs" | "rn" | "approx" => {}
            "f16" | "f16x2" | "bf16" | "bf16x2" if ty.is_empty() => ty = word,
            _ => return None,
        }
    }
    let row = match ty {
        "f16" => f16(opcode, false)?,
        "f16x2" => f16(opcode, true)?,
        "bf16" => bf16(opcode, false)?,
        "bf16x2" => bf16(opcode, true)?,
        _ => return None,
    };
    Some((row, x))
}
