//! Scalar arithmetic on bits, as PTX defines it. Knows no register, lane or instruction.
//!
//! Values travel as bits: `u16` for f16 and bf16, `u32` for f32 and tf32, `u64` for f64, `u8` or
//! the low bits of `u32` for the small formats; integers as Rust integers of their own width and
//! sign. Every function is plain and total. What has no `Round` argument has no branch either, so a
//! `for` loop over the lanes of a warp vectorizes (`array::from_fn` often does not).
//!
//! | module | holds |
//! |---|---|
//! | [`float32`], [`float64`] | `add sub mul fma div sqrt rcp` to nearest even, `add_round` and so on for every direction, `ftz sat neg abs min max copysign testp` |
//! | [`float16`] | the same for f16 and bf16 by a type parameter, `fma_relu`, `fma_oob`, pairs through [`float16::x2`] |
//! | [`compare`] | the comparisons of `set` and `setp` |
//! | [`format`](mod@format) | every binary float format as data, exact decoding, encoding with one rounding |
//! | [`convert`] | `cvt` of one value between any two types, and of all lanes of a warp |
//! | [`packed`] | `cvt` of pairs and fours, stochastic rounding |
//! | [`special`] | what a device approximates: `ex2 lg2 sin cos tanh rcp rsqrt sqrt div` |
//! | [`int`] | division, high, wide and 24-bit products, saturation, carries, `sad`, shifts |
//! | [`bits`] | `bfe bfi bfind fns prmt lop3 shf szext bmsk` |
//! | [`dot`] | `dp2a dp4a`, pairs of 16-bit integers |
//!
//! `.ftz`, `.sat` and `.relu` are functions of their own: `sat(ftz(add(ftz(a), ftz(b))))`. `min` and
//! `max` of three are those of two, twice.
//!
//! NaN: f32 instructions make `0x7fff_ffff`, f16 and bf16 ones `0x7fff`; f64 keeps payloads, and so
//! does a conversion between f64 and f32.

pub mod bits;
pub mod compare;
pub mod convert;
pub mod dot;
pub mod float16;
pub mod float32;
pub mod float64;
pub mod format;
pub mod int;
pub mod packed;
mod soft;
pub mod special;

#[cfg(test)]
mod tests;

/// The direction in which a result that does not fit its format is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// `.rn`, `.rni`: to nearest, ties to even.
    NearestEven,
    /// `.rz`, `.rzi`: towards zero.
    Zero,
    /// `.rm`, `.rmi`: towards negative infinity.
    Down,
    /// `.rp`, `.rpi`: towards positive infinity.
    Up,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
}
