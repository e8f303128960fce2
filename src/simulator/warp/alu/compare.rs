//! Comparisons: `setp`, `set` and `slct`.
#![allow(unsafe_code, reason = "rows come in a form with vector instructions")]

use crate::simulator::number::compare::Compare;
use crate::simulator::number::float16;
use crate::simulator::number::float16::BF16;
use crate::simulator::number::float16::F16;
use crate::simulator::number::float32;
use crate::simulator::warp::alu::Found;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::File;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::combine;
use crate::simulator::warp::lanes::forms;
use crate::simulator::warp::lanes::meet;
use crate::simulator::warp::lanes::row;
use crate::simulator::warp::lanes::test_row;

const FTZ: u64 = 1 << 8;

/// One row a comparison, so that each is a plain loop.
macro_rules! each {
    ($compare:expr, [$($name:ident),+], $make:ident, $rest:tt) => {
        match $compare {
            $(Compare::$name => $make!(Compare::$name, $rest),)+
            #[allow(unreachable_patterns, reason = "integers have fewer comparisons")]
            _ => return None,
        }
    };
}
macro_rules! integer {
    ($c:expr, ($t:ty)) => {
        test_row!([a: $t, b: $t], _x, $c.int(a, b))
    };
}
macro_rules! single {
    ($c:expr, ($ftz:expr)) => {
        if $ftz {
            test_row!([a: u32, b: u32], _x, $c.f32(float32::ftz(a), float32::ftz(b)))
        } else {
            test_row!([a: u32, b: u32], _x, $c.f32(a, b))
        }
    };
}
macro_rules! double {
    ($c:expr, ()) => {
        test_row!([a: u64, b: u64], _x, $c.f64(a, b))
    };
}
macro_rules! integers {
    ($c:expr, $t:ty) => {
        each!($c, [Eq, Ne, Lt, Le, Gt, Ge], integer, ($t))
    };
}
macro_rules! floats {
    ($c:expr, $make:ident, $rest:tt) => {
        each!(
            $c,
            [
                Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan
            ],
            $make,
            $rest
        )
    };
}

/// All comparisons, in an order that a number names.
const ALL: [Compare; 14] = [
    Compare::Eq,
    Compare::Ne,
    Compare::Lt,
    Compare::Le,
    Compare::Gt,
    Compare::Ge,
    Compare::Equ,
    Compare::Neu,
    Compare::Ltu,
    Compare::Leu,
    Compare::Gtu,
    Compare::Geu,
    Compare::Num,
    Compare::Nan,
];

fn number_of(compare: Compare) -> u64 {
    ALL.iter().position(|c| *c == compare).unwrap_or(0) as u64
}

#[inline(always)]
fn compare_of(x: u64) -> Compare {
    ALL[(x & 15).min(13) as usize]
}

#[inline(always)]
fn flush(x: u64, a: u16) -> u16 {
    if x & FTZ != 0 {
        float16::ftz::<F16>(a)
    } else {
        a
    }
}

/// A comparison of pairs: `p` gets the low one's result, `q` the high one's.
macro_rules! pair {
    ($h:ty) => {
        forms!(
            |f: &mut File, g: &Args, m: u32| {
                let compare = compare_of(g.x);
                let (mut low, mut high) = (0u32, 0u32);
                for lane in 0..32 {
                    let (a, b) = (f.read::<u32>(g.a)[lane], f.read::<u32>(g.b)[lane]);
                    let test = |shift: u32| {
                        let (a, b) = ((a >> shift) as u16, (b >> shift) as u16);
                        u32::from(compare.half::<$h>(flush(g.x, a), flush(g.x, b)))
                    };
                    low |= test(0) << lane;
                    high |= test(16) << lane;
                }
                let one = Args {
                    d2: crate::simulator::warp::lanes::Slot::NONE,
                    ..*g
                };
                let two = Args { d: g.d2, ..one };
                combine(f, &one, m, low);
                combine(f, &two, m, high);
            },
            &[Class::Pred, Class::W32, Class::W32]
        )
    };
}

/// The modifiers of a comparison.
struct Setp<'a> {
    compare: Compare,
    meet: u64,
    ftz: bool,
    types: Vec<&'a str>,
}

impl<'a> Setp<'a> {
    fn parse(modifiers: &[&'a str]) -> Option<Self> {
        let (first, rest) = modifiers.split_first()?;
        let mut found = Self {
            compare: Compare::parse(first)?,
            meet: 0,
            ftz: false,
            types: Vec::new(),
        };
        for &word in rest {
            match word {
                "and" => found.meet = meet::AND,
                "or" => found.meet = meet::OR,
                "xor" => found.meet = meet::XOR,
                "ftz" => found.ftz = true,
                _ => found.types.push(word),
            }
        }
        Some(found)
    }
    fn row(&self, ty: &str) -> Option<Row> {
        let c = self.compare;
        Some(match ty {
            "b16" | "u16" => integers!(c, u16),
            "s16" => integers!(c, i16),
            "b32" | "u32" => integers!(c, u32),
            "s32" => integers!(c, i32),
            "b64" | "u64" => integers!(c, u64),
            "s64" => integers!(c, i64),
            "f32" => floats!(c, single, (self.ftz)),
            "f64" => floats!(c, double, ()),
            "f16" => {
                test_row!([a: u16, b: u16], x, compare_of(x).half::<F16>(flush(x, a), flush(x, b)))
            }
            "bf16" => test_row!([a: u16, b: u16], x, compare_of(x).half::<BF16>(a, b)),
            "f16x2" => pair!(F16),
            "bf16x2" => pair!(BF16),
            _ => return None,
        })
    }
}

/// The row of `setp` or `slct`. `set` is `setp` and a selection; see [`set`].
pub fn find(opcode: &str, modifiers: &[&str]) -> Found {
    match opcode {
        "setp" => {
            let setp = Setp::parse(modifiers)?;
            let [ty] = setp.types[..] else { return None };
            let ftz = if setp.ftz { FTZ } else { 0 };
            Some((setp.row(ty)?, setp.meet | ftz | number_of(setp.compare)))
        }
        "slct" => slct(modifiers).map(|row| (row, 0)),
        _ => None,
    }
}

/// What `set` is made of.
pub struct Set {
    /// The comparison into a predicate.
    pub test: Row,
    /// What the comparison wants in `x`.
    pub x: u64,
    /// Whether pairs are compared.
    pub is_pair: bool,
    /// What a lane gets where it holds: all ones, or one as a float; 0 else.
    pub one: u64,
}

/// `set.CmpOp{.BoolOp}{.ftz}.dtype.stype`.
pub fn set(modifiers: &[&str]) -> Option<Set> {
    let setp = Setp::parse(modifiers)?;
    let [to, from] = setp.types[..] else {
        return None;
    };
    let is_pair = from.ends_with("x2");
    let one = match to {
        "u32" | "s32" if !is_pair => 0xffff_ffff,
        "u16" | "s16" => 0xffff,
        "f32" => 0x3f80_0000,
        "f16" | "f16x2" => 0x3c00,
        "bf16" | "bf16x2" => 0x3f80,
        "u32" | "s32" => 0xffff,
        _ => return None,
    };
    let ftz = if setp.ftz { FTZ } else { 0 };
    Some(Set {
        test: setp.row(from)?,
        x: setp.meet | ftz | number_of(setp.compare),
        is_pair,
        one,
    })
}

/// From predicates to values: `x` where the first source holds, else zero.
pub fn value_of() -> Row {
    forms!(
        |f: &mut File, g: &Args, m: u32| {
            let p = f.predicate(g.a);
            let out = std::array::from_fn(|lane| if p >> lane & 1 != 0 { g.x as u32 } else { 0 });
            f.write::<u32>(g.d, m, &out);
        },
        &[Class::W32, Class::Pred]
    )
}

/// The same for two predicates, one for each half.
pub fn pair_of() -> Row {
    forms!(
        |f: &mut File, g: &Args, m: u32| {
            let (p, q) = (f.predicate(g.a), f.predicate(g.b));
            let x = g.x as u32;
            let out = std::array::from_fn(|lane| {
                let low = if p >> lane & 1 != 0 { x } else { 0 };
                let high = if q >> lane & 1 != 0 { x << 16 } else { 0 };
                low | high
            });
            f.write::<u32>(g.d, m, &out);
        },
        &[Class::W32, Class::Pred, Class::Pred]
    )
}

/// `slct{.ftz}.dtype.{s32,f32}`: the first source where the third is not negative.
fn slct(modifiers: &[&str]) -> Option<Row> {
    // A NaN picks the second source; minus zero counts as zero.
    #[inline(always)]
    fn picks(c: u32) -> bool {
        f32::from_bits(c) >= 0.0
    }
    #[inline(always)]
    fn picks_ftz(c: u32) -> bool {
        f32::from_bits(float32::ftz(c)) >= 0.0
    }
    let wide = |ty: &str| matches!(ty, "b64" | "u64" | "s64" | "f64");
    let narrow = |ty: &str| matches!(ty, "b16" | "u16" | "s16" | "b32" | "u32" | "s32" | "f32");
    Some(match modifiers {
        [ty, "s32"] if narrow(ty) => {
            row!([a: u32, b: u32, c: i32] -> u32, _x, if c >= 0 { a } else { b })
        }
        [ty, "s32"] if wide(ty) => {
            row!([a: u64, b: u64, c: i32] -> u64, _x, if c >= 0 { a } else { b })
        }
        [ty, "f32"] if narrow(ty) => {
            row!([a: u32, b: u32, c: u32] -> u32, _x, if picks(c) { a } else { b })
        }
        [ty, "f32"] if wide(ty) => {
            row!([a: u64, b: u64, c: u32] -> u64, _x, if picks(c) { a } else { b })
        }
        ["ftz", ty, "f32"] if narrow(ty) => {
            row!([a: u32, b: u32, c: u32] -> u32, _x, if picks_ftz(c) { a } else { b })
        }
        ["ftz", ty, "f32"] if wide(ty) => {
            row!([a: u64, b: u64, c: u32] -> u64, _x, if picks_ftz(c) { a } else { b })
        }
        _ => return None,
    })
}
