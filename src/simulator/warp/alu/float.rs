//! f32 and f64 arithmetic and the special functions.
#![allow(unsafe_code, reason = "rows come in a form with vector instructions")]

use crate::simulator::number::Round;
use crate::simulator::number::float32;
use crate::simulator::number::float64;
use crate::simulator::number::special;
use crate::simulator::warp::alu::Found;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::row;
use crate::simulator::warp::lanes::test_row;

/// The modifiers of a floating-point instruction.
#[derive(Clone, Copy, Default)]
struct Float<'a> {
    round: Option<Round>,
    ftz: bool,
    sat: bool,
    approx: bool,
    full: bool,
    nan: bool,
    xorsign: bool,
    abs: bool,
    ty: &'a str,
    extra: &'a str,
}

/// Bits of `x` in rows that take every form at once.
const FTZ: u64 = 8;
const SAT: u64 = 16;

fn round_of(x: u64) -> Round {
    match x & 7 {
        1 => Round::Zero,
        2 => Round::Down,
        3 => Round::Up,
        _ => Round::NearestEven,
    }
}

/// The rounding modes of arithmetic.
pub(super) fn rounding(word: &str) -> Option<Round> {
    Some(match word {
        "rn" => Round::NearestEven,
        "rz" => Round::Zero,
        "rm" => Round::Down,
        "rp" => Round::Up,
        _ => return None,
    })
}

impl<'a> Float<'a> {
    fn parse(modifiers: &[&'a str]) -> Option<Self> {
        let mut found = Self::default();
        for &word in modifiers {
            if let Some(round) = rounding(word) {
                found.round = Some(round);
                continue;
            }
            match word {
                "ftz" => found.ftz = true,
                "sat" => found.sat = true,
                "approx" => found.approx = true,
                "full" => found.full = true,
                "NaN" => found.nan = true,
                "xorsign" => found.xorsign = true,
                "abs" => found.abs = true,
                "f32" | "f64" | "f32x2" | "b32" | "b64" if found.ty.is_empty() => found.ty = word,
                "f16" | "bf16" if found.ty == "f32" => found.extra = word,
                _ if found.extra.is_empty() => found.extra = word,
                _ => return None,
            }
        }
        Some(found)
    }
    fn x(&self) -> u64 {
        let round = match self.round {
            Some(Round::Zero) => 1,
            Some(Round::Down) => 2,
            Some(Round::Up) => 3,
            _ => 0,
        };
        round | if self.ftz { FTZ } else { 0 } | if self.sat { SAT } else { 0 }
    }
    fn is_nearest(&self) -> bool {
        matches!(self.round, None | Some(Round::NearestEven))
    }
}

/// Flushes where the modifiers say so.
#[inline(always)]
fn pre(x: u64, a: u32) -> u32 {
    if x & FTZ != 0 { float32::ftz(a) } else { a }
}
/// Flushes and clamps where the modifiers say so.
#[inline(always)]
fn post(x: u64, a: u32) -> u32 {
    let a = pre(x, a);
    if x & SAT != 0 { float32::sat(a) } else { a }
}
/// Applies `f` to both f32 values of a pair.
#[inline(always)]
fn pairs(a: u64, b: u64, c: u64, f: impl Fn(u32, u32, u32) -> u32) -> u64 {
    let low = f(a as u32, b as u32, c as u32);
    let high = f((a >> 32) as u32, (b >> 32) as u32, (c >> 32) as u32);
    u64::from(low) | u64::from(high) << 32
}

/// Three forms of a function of f32: plain, with flushing, and with everything.
macro_rules! f32_forms {
    ($m:expr, [$($v:ident),+], $near:path, $round:path) => {
        if !$m.is_nearest() || $m.sat {
            row!([$($v: u32),+] -> u32, x, post(x, $round($(pre(x, $v)),+, round_of(x))))
        } else if $m.ftz {
            row!([$($v: u32),+] -> u32, _x, float32::ftz($near($(float32::ftz($v)),+)))
        } else {
            row!([$($v: u32),+] -> u32, _x, $near($($v),+))
        }
    };
}

/// Two forms of a function of f64.
macro_rules! f64_forms {
    ($m:expr, [$($v:ident),+], $near:path, $round:path) => {
        if $m.is_nearest() {
            row!([$($v: u64),+] -> u64, _x, $near($($v),+))
        } else {
            row!([$($v: u64),+] -> u64, x, $round($($v),+, round_of(x)))
        }
    };
}

/// A special function of one f32.
macro_rules! approx {
    ($m:expr, $f:path) => {
        if $m.ftz {
            row!([a: u32] -> u32, _x, float32::ftz($f(float32::ftz(a))))
        } else {
            row!([a: u32] -> u32, _x, $f(a))
        }
    };
}

/// The row of an f32 or f64 instruction.
pub fn find(opcode: &str, modifiers: &[&str]) -> Found {
    let m = Float::parse(modifiers)?;
    if opcode == "testp" {
        return testp(&m).map(|row| (row, 0));
    }
    let row = match m.ty {
        "f32" if m.extra.is_empty() => single(opcode, &m)?,
        "f32" => mixed(opcode, &m)?,
        "f64" if m.extra.is_empty() && !m.sat => double(opcode, &m)?,
        "f32x2" if m.extra.is_empty() => paired(opcode, &m)?,
        _ => return None,
    };
    Some((row, m.x()))
}

fn single(opcode: &str, m: &Float<'_>) -> Option<Row> {
    let exact = !(m.approx || m.full || m.nan || m.xorsign || m.abs);
    Some(match opcode {
        "add" if exact => f32_forms!(m, [a, b], float32::add, float32::add_round),
        "sub" if exact => f32_forms!(m, [a, b], float32::sub, float32::sub_round),
        "mul" if exact => f32_forms!(m, [a, b], float32::mul, float32::mul_round),
        "fma" | "mad" if exact => {
            f32_forms!(m, [a, b, c], float32::fma, float32::fma_round)
        }
        "div" if m.approx => match m.ftz {
            true => row!([a: u32, b: u32] -> u32, _x,
                float32::ftz(special::div_approx_f32(float32::ftz(a), float32::ftz(b)))),
            false => row!([a: u32, b: u32] -> u32, _x, special::div_approx_f32(a, b)),
        },
        "div" if m.full || m.round.is_none() => match m.ftz {
            true => row!([a: u32, b: u32] -> u32, _x,
                float32::ftz(special::div_full_f32(float32::ftz(a), float32::ftz(b)))),
            false => row!([a: u32, b: u32] -> u32, _x, special::div_full_f32(a, b)),
        },
        "div" => f32_forms!(m, [a, b], float32::div, float32::div_round),
        "rcp" if m.approx => approx!(m, special::rcp_f32),
        "rcp" => f32_forms!(m, [a], float32::rcp, float32::rcp_round),
        "sqrt" if m.approx => approx!(m, special::sqrt_f32),
        "sqrt" => f32_forms!(m, [a], float32::sqrt, float32::sqrt_round),
        "rsqrt" => approx!(m, special::rsqrt_f32),
        "sin" => approx!(m, special::sin_f32),
        "cos" => approx!(m, special::cos_f32),
        "lg2" => approx!(m, special::lg2_f32),
        "ex2" => approx!(m, special::ex2_f32),
        "tanh" => approx!(m, special::tanh_f32),
        "abs" => match m.ftz {
            true => row!([a: u32] -> u32, _x, float32::abs(float32::ftz(a))),
            false => row!([a: u32] -> u32, _x, float32::abs(a)),
        },
        "neg" => match m.ftz {
            true => row!([a: u32] -> u32, _x, float32::neg(float32::ftz(a))),
            false => row!([a: u32] -> u32, _x, float32::neg(a)),
        },
        "copysign" => row!([a: u32, b: u32] -> u32, _x, float32::copysign(a, b)),
        "min" | "max" => extreme(opcode == "max", m),
        _ => return None,
    })
}

/// `min` and `max` of f32, of two values; three are two steps.
fn extreme(is_max: bool, m: &Float<'_>) -> Row {
    use float32::max;
    use float32::max_nan;
    use float32::min;
    use float32::min_nan;
    use float32::xorsign_abs;
    match (is_max, m.nan, m.xorsign) {
        (false, false, false) if m.ftz => {
            row!([a: u32, b: u32] -> u32, x, min(pre(x, a), pre(x, b)))
        }
        (true, false, false) if m.ftz => {
            row!([a: u32, b: u32] -> u32, x, max(pre(x, a), pre(x, b)))
        }
        (false, false, false) => row!([a: u32, b: u32] -> u32, _x, min(a, b)),
        (true, false, false) => row!([a: u32, b: u32] -> u32, _x, max(a, b)),
        (false, true, false) => row!([a: u32, b: u32] -> u32, x, min_nan(pre(x, a), pre(x, b))),
        (true, true, false) => row!([a: u32, b: u32] -> u32, x, max_nan(pre(x, a), pre(x, b))),
        (false, false, true) => {
            row!([a: u32, b: u32] -> u32, x, xorsign_abs(min, pre(x, a), pre(x, b)))
        }
        (true, false, true) => {
            row!([a: u32, b: u32] -> u32, x, xorsign_abs(max, pre(x, a), pre(x, b)))
        }
        (false, true, true) => {
            row!([a: u32, b: u32] -> u32, x, xorsign_abs(min_nan, pre(x, a), pre(x, b)))
        }
        (true, true, true) => {
            row!([a: u32, b: u32] -> u32, x, xorsign_abs(max_nan, pre(x, a), pre(x, b)))
        }
    }
}

/// `min` and `max` of three f32 values.
pub fn extreme_of_three(opcode: &str, modifiers: &[&str]) -> Found {
    let m = Float::parse(modifiers)?;
    if m.ty != "f32" || m.xorsign || !m.extra.is_empty() {
        return None;
    }
    // `.abs` compares and gives absolute values.
    macro_rules! three {
        ($f:path) => {
            if m.abs {
                row!([a: u32, b: u32, c: u32] -> u32, x,
                    $f($f(float32::abs(pre(x, a)), float32::abs(pre(x, b))), float32::abs(pre(x, c))))
            } else {
                row!([a: u32, b: u32, c: u32] -> u32, x, $f($f(pre(x, a), pre(x, b)), pre(x, c)))
            }
        };
    }
    let row = match (opcode, m.nan) {
        ("min", false) => three!(float32::min),
        ("max", false) => three!(float32::max),
        ("min", true) => three!(float32::min_nan),
        ("max", true) => three!(float32::max_nan),
        _ => return None,
    };
    Some((row, m.x()))
}

fn double(opcode: &str, m: &Float<'_>) -> Option<Row> {
    Some(match opcode {
        "add" => f64_forms!(m, [a, b], float64::add, float64::add_round),
        "sub" => f64_forms!(m, [a, b], float64::sub, float64::sub_round),
        "mul" => f64_forms!(m, [a, b], float64::mul, float64::mul_round),
        "fma" | "mad" => f64_forms!(m, [a, b, c], float64::fma, float64::fma_round),
        "div" => f64_forms!(m, [a, b], float64::div, float64::div_round),
        "rcp" if m.approx => row!([a: u64] -> u64, _x, special::rcp_ftz_f64(a)),
        "rcp" => f64_forms!(m, [a], float64::rcp, float64::rcp_round),
        "sqrt" => f64_forms!(m, [a], float64::sqrt, float64::sqrt_round),
        "rsqrt" if m.ftz => row!([a: u64] -> u64, _x, special::rsqrt_ftz_f64(a)),
        "rsqrt" => row!([a: u64] -> u64, _x, special::rsqrt_f64(a)),
        "abs" => row!([a: u64] -> u64, _x, float64::abs(a)),
        "neg" => row!([a: u64] -> u64, _x, float64::neg(a)),
        "copysign" => row!([a: u64, b: u64] -> u64, _x, float64::copysign(a, b)),
        "min" if !m.nan => row!([a: u64, b: u64] -> u64, _x, float64::min(a, b)),
        "max" if !m.nan => row!([a: u64, b: u64] -> u64, _x, float64::max(a, b)),
        _ => return None,
    })
}

/// Instructions on two f32 values in one 64-bit register.
fn paired(opcode: &str, m: &Float<'_>) -> Option<Row> {
    macro_rules! pair {
        ([$($v:ident),+], $f:path) => {
            row!([$($v: u64),+] -> u64, x, pairs3!($($v),+; |p, q, r| $f, x))
        };
    }
    macro_rules! pairs3 {
        ($a:ident, $b:ident; |$p:ident, $q:ident, $r:ident| $f:path, $x:ident) => {
            pairs($a, $b, 0, |$p, $q, _| {
                post($x, $f(pre($x, $p), pre($x, $q), round_of($x)))
            })
        };
        ($a:ident, $b:ident, $c:ident; |$p:ident, $q:ident, $r:ident| $f:path, $x:ident) => {
            pairs($a, $b, $c, |$p, $q, $r| {
                post($x, $f(pre($x, $p), pre($x, $q), pre($x, $r), round_of($x)))
            })
        };
    }
    if m.sat {
        return None;
    }
    Some(match opcode {
        "add" => pair!([a, b], float32::add_round),
        "sub" => pair!([a, b], float32::sub_round),
        "mul" => pair!([a, b], float32::mul_round),
        "fma" => pair!([a, b, c], float32::fma_round),
        _ => return None,
    })
}

/// `add.f32.f16` and its like: narrow sources, a wide sum.
fn mixed(opcode: &str, m: &Float<'_>) -> Option<Row> {
    use crate::simulator::number::float16::BF16;
    use crate::simulator::number::float16::F16;
    use crate::simulator::number::float16::to_f32;
    Some(match (opcode, m.extra) {
        ("add", "f16") => row!([a: u16, c: u32] -> u32, x,
            post(x, float32::add_round(to_f32::<F16>(a), c, round_of(x)))),
        ("add", "bf16") => row!([a: u16, c: u32] -> u32, x,
            post(x, float32::add_round(to_f32::<BF16>(a), c, round_of(x)))),
        ("sub", "f16") => row!([a: u16, c: u32] -> u32, x,
            post(x, float32::sub_round(to_f32::<F16>(a), c, round_of(x)))),
        ("sub", "bf16") => row!([a: u16, c: u32] -> u32, x,
            post(x, float32::sub_round(to_f32::<BF16>(a), c, round_of(x)))),
        ("fma", "f16") => row!([a: u16, b: u16, c: u32] -> u32, x,
            post(x, float32::fma_round(to_f32::<F16>(a), to_f32::<F16>(b), c, round_of(x)))),
        ("fma", "bf16") => row!([a: u16, b: u16, c: u32] -> u32, x,
            post(x, float32::fma_round(to_f32::<BF16>(a), to_f32::<BF16>(b), c, round_of(x)))),
        _ => return None,
    })
}

fn testp(m: &Float<'_>) -> Option<Row> {
    use float32::Test;
    macro_rules! test {
        ($test:expr) => {
            match m.ty {
                "f32" => test_row!([a: u32], _x, float32::testp($test, a)),
                "f64" => test_row!([a: u64], _x, float64::testp($test, a)),
                _ => return None,
            }
        };
    }
    Some(match Test::parse(m.extra)? {
        Test::Finite => test!(Test::Finite),
        Test::Infinite => test!(Test::Infinite),
        Test::Number => test!(Test::Number),
        Test::NotANumber => test!(Test::NotANumber),
        Test::Normal => test!(Test::Normal),
        Test::Subnormal => test!(Test::Subnormal),
    })
}
