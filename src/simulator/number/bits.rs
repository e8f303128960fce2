//! Bit fields, permutations, shifts over two words and the like, as PTX defines each.

/// The modes of `prmt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permute {
    /// Each selector nibble picks a byte, its highest bit asks for that byte's sign instead.
    Index,
    /// Four bytes forward from the selected one.
    Forward4,
    /// Four bytes backward from the selected one.
    Backward4,
    /// The selected byte four times.
    Replicate8,
    /// Bytes clamped to the selected one from the left.
    EdgeLeft,
    /// Bytes clamped to the selected one from the right.
    EdgeRight,
    /// The selected 16-bit half twice.
    Replicate16,
}

impl Permute {
    /// The mode of a modifier; no modifier means [`Permute::Index`].
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "f4e" => Self::Forward4,
            "b4e" => Self::Backward4,
            "rc8" => Self::Replicate8,
            "ecl" => Self::EdgeLeft,
            "ecr" => Self::EdgeRight,
            "rc16" => Self::Replicate16,
            _ => return None,
        })
    }
}

/// `prmt`: bytes 0 to 3 are `a`, 4 to 7 are `b`.
#[inline]
pub fn prmt(mode: Permute, a: u32, b: u32, selector: u32) -> u32 {
    let n = selector & 3;
    let nibbles = match mode {
        Permute::Index => selector & 0xffff,
        Permute::Forward4 => 0x3210 + 0x1111 * n,
        Permute::Backward4 => (0x5670 + 0x1111 * n) & 0x7777,
        Permute::Replicate8 => 0x1111 * n,
        Permute::EdgeLeft => edge(n, u32::max),
        Permute::EdgeRight => edge(n, u32::min),
        Permute::Replicate16 => 0x1010 + 0x2222 * (n & 1),
    };
    let source = u64::from(a) | u64::from(b) << 32;
    let mut result = 0;
    for place in 0..4 {
        let nibble = (nibbles >> (4 * place)) & 0xf;
        let byte = (source >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 != 0 {
            ((byte as i8) >> 7) as u8
        } else {
            byte
        };
        result |= u32::from(byte) << (8 * place);
    }
    result
}

fn edge(n: u32, clamp: impl Fn(u32, u32) -> u32) -> u32 {
    (0..4).fold(0, |nibbles, place| nibbles | clamp(place, n) << (4 * place))
}

/// `lop3`: `lut` gives the result for the bits of `a` (weight 4), `b` (2) and `c` (1).
#[inline]
pub fn lop3(a: u32, b: u32, c: u32, lut: u8) -> u32 {
    let minterm = |index: u32| {
        let a = if index & 4 != 0 { a } else { !a };
        let b = if index & 2 != 0 { b } else { !b };
        let c = if index & 1 != 0 { c } else { !c };
        let wanted = 0_u32.wrapping_sub(u32::from(lut) >> index & 1);
        a & b & c & wanted
    };
    minterm(0)
        | minterm(1)
        | minterm(2)
        | minterm(3)
        | minterm(4)
        | minterm(5)
        | minterm(6)
        | minterm(7)
}

/// `shf.l`: the upper word of `{b, a}` shifted left. With `wrap` the amount counts modulo 32, else
/// at most 32.
#[inline]
pub fn shf_l(a: u32, b: u32, amount: u32, wrap: bool) -> u32 {
    let amount = if wrap { amount & 31 } else { amount.min(32) };
    let both = u64::from(b) << 32 | u64::from(a);
    ((both << amount) >> 32) as u32
}

/// `shf.r`: the lower word of `{b, a}` shifted right. With `wrap` the amount counts modulo 32, else
/// at most 32.
#[inline]
pub fn shf_r(a: u32, b: u32, amount: u32, wrap: bool) -> u32 {
    let amount = if wrap { amount & 31 } else { amount.min(32) };
    let both = u64::from(b) << 32 | u64::from(a);
    (both >> amount) as u32
}

macro_rules! fields {
    ($word:ty, $signed:ty, $bfe_u:ident, $bfe_s:ident, $bfi:ident, $bfind_u:ident, $bfind_s:ident) => {
        /// `bfe` unsigned: the field of `length` bits from `position`; both count modulo 256.
        #[inline]
        pub fn $bfe_u(a: $word, position: u32, length: u32) -> $word {
            let (position, length) = (position & 0xff, length & 0xff);
            a.checked_shr(position).unwrap_or(0) & low_mask::<$word>(length)
        }

        /// `bfe` signed: as the unsigned one, the rest filled with the highest bit of the field, or
        /// of the word where the field goes beyond it.
        #[inline]
        pub fn $bfe_s(a: $signed, position: u32, length: u32) -> $signed {
            let (position, length) = (position & 0xff, length & 0xff);
            if length == 0 {
                return 0;
            }
            let top = (position + length - 1).min(<$word>::BITS - 1);
            let fill = (a << (<$word>::BITS - 1 - top)) >> (<$word>::BITS - 1);
            let kept = (a as $word).checked_shr(position).unwrap_or(0);
            let inside = low_mask::<$word>(length)
                & low_mask::<$word>(<$word>::BITS.saturating_sub(position));
            ((kept & inside) | (fill as $word & !inside)) as $signed
        }

        /// `bfi`: the low `length` bits of `a` put into `b` at `position`; both count modulo 256.
        #[inline]
        pub fn $bfi(a: $word, b: $word, position: u32, length: u32) -> $word {
            let (position, length) = (position & 0xff, length & 0xff);
            let mask = low_mask::<$word>(length).checked_shl(position).unwrap_or(0);
            (a.checked_shl(position).unwrap_or(0) & mask) | (b & !mask)
        }

        /// `bfind` unsigned: the place of the highest set bit, or with `shift` how far it is from
        /// the top; all ones when there is none.
        #[inline]
        pub fn $bfind_u(a: $word, shift: bool) -> u32 {
            if a == 0 {
                u32::MAX
            } else if shift {
                a.leading_zeros()
            } else {
                <$word>::BITS - 1 - a.leading_zeros()
            }
        }

        /// `bfind` signed: the same for the highest bit that differs from the sign.
        #[inline]
        pub fn $bfind_s(a: $signed, shift: bool) -> u32 {
            $bfind_u((a ^ (a >> (<$word>::BITS - 1))) as $word, shift)
        }
    };
}

trait Word {
    fn low_mask(length: u32) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn low_mask(length: u32) -> Self {
        !u32::MAX.checked_shl(length).unwrap_or(0)
    }
}

impl Word for u64 {
    #[inline(always)]
    fn low_mask(length: u32) -> Self {
        !u64::MAX.checked_shl(length).unwrap_or(0)
    }
}

#[inline(always)]
fn low_mask<W: Word>(length: u32) -> W {
    W::low_mask(length)
}

fields!(u32, i32, bfe_u32, bfe_s32, bfi32, bfind_u32, bfind_s32);
fields!(u64, i64, bfe_u64, bfe_s64, bfi64, bfind_u64, bfind_s64);

/// `fns`: the place of the `offset`-th set bit of `mask`, counted from `base` upwards, or downwards
/// when negative; offset 0 asks for `base` itself. All ones when there is none.
#[inline]
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    if offset == 0 {
        return if mask >> base & 1 == 1 {
            base
        } else {
            u32::MAX
        };
    }
    let step = if offset > 0 { 1 } else { -1 };
    let mut left = offset.unsigned_abs();
    let mut place = base as i32;
    while (0..32).contains(&place) {
        if mask >> place & 1 == 1 {
            left -= 1;
            if left == 0 {
                return place as u32;
            }
        }
        place += step;
    }
    u32::MAX
}

/// `szext` unsigned: the low `width` bits of `a`. With `wrap` the width counts modulo 32, else 32
/// and more keep all of `a`.
#[inline]
pub fn szext_u32(a: u32, width: u32, wrap: bool) -> u32 {
    if !wrap && width >= 32 {
        return a;
    }
    a & low_mask::<u32>(width & 31)
}

/// `szext` signed: the low `width` bits of `a`, their highest one filled upwards.
#[inline]
pub fn szext_s32(a: u32, width: u32, wrap: bool) -> u32 {
    if !wrap && width >= 32 {
        return a;
    }
    match width & 31 {
        0 => 0,
        width => (((a << (32 - width)) as i32) >> (32 - width)) as u32,
    }
}

/// `bmsk`: `width` ones from `start`. With `wrap` both count modulo 32, else a start of 32 and more
/// gives no ones, and a width of 32 and more reaches to the top.
#[inline]
pub fn bmsk(start: u32, width: u32, wrap: bool) -> u32 {
    if !wrap && start >= 32 {
        return 0;
    }
    let length = if !wrap && width >= 32 { 32 } else { width & 31 };
    low_mask::<u32>(length) << (start & 31)
}
