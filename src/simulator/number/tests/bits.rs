//! Bit operations against the definitions of the PTX ISA, one bit at a time.

use super::super::bits;
use super::super::bits::Permute;
use super::Random;

fn at(value: u64, place: u32) -> u64 {
    if place < 64 { value >> place & 1 } else { 0 }
}

fn bfe(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    let (top, position, length) = (width - 1, position & 0xff, length & 0xff);
    let sign = if !signed || length == 0 {
        0
    } else {
        at(a, (position + length - 1).min(top))
    };
    (0..width).fold(0, |d, i| {
        let bit = if i < length && position + i <= top {
            at(a, position + i)
        } else {
            sign
        };
        d | bit << i
    })
}

fn bfi(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let mut f = b;
    let mut i = 0;
    while i < length && position + i < width {
        f = f & !(1 << (position + i)) | at(a, i) << (position + i);
        i += 1;
    }
    f
}

fn bfind(a: u64, width: u32, signed: bool, shift: bool) -> u32 {
    let a = if signed && at(a, width - 1) == 1 {
        !a
    } else {
        a
    };
    match (0..width).rev().find(|&i| at(a, i) == 1) {
        None => u32::MAX,
        Some(i) if shift => width - 1 - i,
        Some(i) => i,
    }
}

#[test]
fn fields() {
    let mut random = Random::new(21);
    for _ in 0..20_000 {
        let (a, b) = (random.runs(), random.next());
        let wild = random.below(4) == 0;
        let mut small = || {
            if wild {
                random.next() as u32
            } else {
                random.below(70) as u32
            }
        };
        let (position, length) = (small(), small());
        let (a32, b32) = (a as u32, b as u32);
        let low = u64::from(a32);
        assert_eq!(
            u64::from(bits::bfe_u32(a32, position, length)),
            bfe(low, position, length, 32, false)
        );
        assert_eq!(
            u64::from(bits::bfe_s32(a32 as i32, position, length) as u32),
            bfe(low, position, length, 32, true)
        );
        assert_eq!(
            bits::bfe_u64(a, position, length),
            bfe(a, position, length, 64, false)
        );
        assert_eq!(
            bits::bfe_s64(a as i64, position, length) as u64,
            bfe(a, position, length, 64, true)
        );
        assert_eq!(
            u64::from(bits::bfi32(a32, b32, position, length)),
            bfi(low, b32.into(), position, length, 32)
        );
        assert_eq!(
            bits::bfi64(a, b, position, length),
            bfi(a, b, position, length, 64)
        );
        for shift in [false, true] {
            assert_eq!(bits::bfind_u32(a32, shift), bfind(low, 32, false, shift));
            assert_eq!(
                bits::bfind_s32(a32 as i32, shift),
                bfind(low, 32, true, shift)
            );
            assert_eq!(bits::bfind_u64(a, shift), bfind(a, 64, false, shift));
            assert_eq!(bits::bfind_s64(a as i64, shift), bfind(a, 64, true, shift));
        }
    }
    assert_eq!(bits::bfind_u32(0, true), u32::MAX);
    assert_eq!(bits::bfind_s64(-1, false), u32::MAX);
}

#[test]
fn logic_of_three() {
    let mut random = Random::new(22);
    let (a, b, c) = (
        random.next() as u32,
        random.next() as u32,
        random.next() as u32,
    );
    for lut in 0..=u8::MAX {
        let want = (0..32).fold(0_u32, |d, i| {
            let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
            d | (u32::from(lut) >> index & 1) << i
        });
        assert_eq!(bits::lop3(a, b, c, lut), want, "{lut:#x}");
    }
    // The examples of the ISA: the table of a, b, c itself is 0xf0, 0xcc, 0xaa.
    assert_eq!(bits::lop3(a, b, c, 0xf0 & 0xcc & 0xaa), a & b & c);
    assert_eq!(bits::lop3(a, b, c, 0xf0 & 0xcc ^ 0xaa), a & b ^ c);
}

#[test]
fn bytes_of_two_words() {
    let (a, b) = (0xb3b2_8110, 0xb7b6_a594);
    let bytes = [0x10_u8, 0x81, 0xb2, 0xb3, 0x94, 0xa5, 0xb6, 0xb7];
    let join = |picks: [usize; 4]| u32::from_be_bytes(picks.map(|p| bytes[p]));
    // Mode, selector, picks from the highest byte to the lowest.
    let rows = [
        ("f4e", 0, [3, 2, 1, 0]),
        ("f4e", 1, [4, 3, 2, 1]),
        ("f4e", 2, [5, 4, 3, 2]),
        ("f4e", 3, [6, 5, 4, 3]),
        ("b4e", 0, [5, 6, 7, 0]),
        ("b4e", 1, [6, 7, 0, 1]),
        ("b4e", 2, [7, 0, 1, 2]),
        ("b4e", 3, [0, 1, 2, 3]),
        ("rc8", 0, [0, 0, 0, 0]),
        ("rc8", 1, [1, 1, 1, 1]),
        ("rc8", 2, [2, 2, 2, 2]),
        ("rc8", 3, [3, 3, 3, 3]),
        ("ecl", 0, [3, 2, 1, 0]),
        ("ecl", 1, [3, 2, 1, 1]),
        ("ecl", 2, [3, 2, 2, 2]),
        ("ecl", 3, [3, 3, 3, 3]),
        ("ecr", 0, [0, 0, 0, 0]),
        ("ecr", 1, [1, 1, 1, 0]),
        ("ecr", 2, [2, 2, 1, 0]),
        ("ecr", 3, [3, 2, 1, 0]),
        ("rc16", 0, [1, 0, 1, 0]),
        ("rc16", 1, [3, 2, 3, 2]),
        ("rc16", 2, [1, 0, 1, 0]),
        ("rc16", 3, [3, 2, 3, 2]),
    ];
    for (word, selector, picks) in rows {
        let mode = Permute::parse(word).unwrap();
        assert_eq!(
            bits::prmt(mode, a, b, selector),
            join(picks),
            "{word} {selector}"
        );
        assert_eq!(
            bits::prmt(mode, a, b, selector | 0xfff0),
            join(picks),
            "{word}"
        );
    }
    for selector in 0..=0xffff_u32 {
        let want = (0..4).rev().fold(0, |d, i| {
            let nibble = selector >> (4 * i) & 0xf;
            let byte = bytes[(nibble & 7) as usize];
            let byte = match (nibble & 8 != 0, byte >= 0x80) {
                (false, _) => byte,
                (true, true) => 0xff,
                (true, false) => 0,
            };
            d << 8 | u32::from(byte)
        });
        assert_eq!(bits::prmt(Permute::Index, a, b, selector | 0x50000), want);
    }
}

#[test]
fn shifts_over_two_words() {
    let mut random = Random::new(23);
    for _ in 0..5000 {
        let (a, b) = (random.next() as u32, random.runs() as u32);
        let amount = if random.below(8) == 0 {
            random.next() as u32
        } else {
            random.below(40) as u32
        };
        let both = u128::from(b) << 32 | u128::from(a);
        for wrap in [false, true] {
            let n = if wrap { amount % 32 } else { amount.min(32) };
            assert_eq!(bits::shf_l(a, b, amount, wrap), (both << n >> 32) as u32);
            assert_eq!(bits::shf_r(a, b, amount, wrap), (both >> n) as u32);
        }
    }
}

fn szext(a: u32, b: u32, wrap: bool, signed: bool) -> u32 {
    let low = b & 31;
    let large = b >= 32 && !wrap;
    let mask = if large { 0 } else { u32::MAX << low };
    let sign = !(low == 0 || large || !signed) && a >> ((low.wrapping_sub(1)) & 31) & 1 == 1;
    a & !mask | if sign { mask } else { 0 }
}

fn bmsk(a: u32, b: u32, wrap: bool) -> u32 {
    let mut mask0 = u32::MAX << (a & 31);
    let sum = (a & 31) + (b & 31);
    let mut mask1 = if sum >= 32 { 0 } else { u32::MAX << sum };
    let position = !wrap && a >= 32;
    if position {
        mask0 = 0;
    }
    if position || !wrap && b >= 32 {
        mask1 = 0;
    }
    mask0 & !mask1
}

#[test]
fn extensions_and_masks() {
    let mut random = Random::new(24);
    for _ in 0..20_000 {
        let a = random.runs() as u32;
        let mut small = || {
            if random.below(9) == 0 {
                random.next() as u32
            } else {
                random.below(70) as u32
            }
        };
        let (s, b) = (small(), small());
        for wrap in [false, true] {
            assert_eq!(
                bits::szext_u32(a, b, wrap),
                szext(a, b, wrap, false),
                "{a:#x} {b} {wrap}"
            );
            assert_eq!(
                bits::szext_s32(a, b, wrap),
                szext(a, b, wrap, true),
                "{a:#x} {b} {wrap}"
            );
            assert_eq!(bits::bmsk(s, b, wrap), bmsk(s, b, wrap), "{s} {b} {wrap}");
        }
    }
}

#[test]
fn nth_set_bit() {
    let mut random = Random::new(25);
    for _ in 0..3000 {
        let mask = (random.next() & random.runs()) as u32;
        let base = random.below(32) as u32;
        let offset = random.below(20) as i32 - 10;
        let up: Vec<u32> = (base..32).filter(|&i| mask >> i & 1 == 1).collect();
        let down: Vec<u32> = (0..=base).rev().filter(|&i| mask >> i & 1 == 1).collect();
        let n = offset.unsigned_abs() as usize;
        let want = match offset {
            0 if mask >> base & 1 == 1 => Some(base),
            0 => None,
            1.. => up.get(n - 1).copied(),
            _ => down.get(n - 1).copied(),
        };
        assert_eq!(bits::fns(mask, base, offset), want.unwrap_or(u32::MAX));
    }
    assert_eq!(bits::fns(u32::MAX, 0, i32::MIN), u32::MAX);
}
