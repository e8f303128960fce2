//! The numbers of operands, which memory packs by the kind of the product.

use crate::simulator::tensor::element::{Element, Packing, quad};

/// How the sixteen bytes of a chunk hold numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Coding {
    /// One after the other.
    Plain(Packing),
    /// Sixteen of so many bits at the start, the rest is not looked at.
    Padded(Packing, usize),
    /// Sixteen integers of eight bits, with sign or without.
    Integers(bool),
}

impl Coding {
    /// The coding of `element` in shared memory.
    pub(super) fn in_shared(element: Element) -> Option<Self> {
        Some(match element {
            Element::S8 | Element::U8 => Self::Integers(element == Element::S8),
            Element::E2m1 => Self::Padded(Packing::in_bytes(element)?, 4),
            Element::E3m2 | Element::E2m3 => Self::Padded(Packing::in_bytes(element)?, 6),
            _ => Self::Plain(Packing::in_bytes(element)?),
        })
    }
    /// The same in tensor memory, where every small float has a byte.
    pub(super) fn in_tensor(self) -> Self {
        match self {
            Self::Padded(packing, _) => Self::Plain(packing),
            other => other,
        }
    }
    /// Numbers of a chunk.
    pub(super) fn count(self) -> usize {
        match self {
            Self::Plain(packing) => 4 * packing.per_word(),
            Self::Padded(..) | Self::Integers(_) => 16,
        }
    }
    /// Appends the numbers of a chunk.
    pub(super) fn read(self, words: &[u32; 4], out: &mut Vec<f32>) {
        match self {
            Self::Plain(Packing::F16) => out.extend(quad::f16(words)),
            Self::Plain(Packing::Bf16) => out.extend(quad::bf16(words)),
            Self::Plain(Packing::Tf32) => out.extend(quad::tf32(words)),
            Self::Plain(Packing::Byte(table)) => out.extend(quad::bytes(words, table)),
            Self::Plain(Packing::Nibble(table)) => out.extend(quad::nibbles(words, table)),
            Self::Padded(packing, bits) => Self::Plain(packing).read(&widened(words, bits), out),
            Self::Integers(signed) => {
                out.extend(quad::integers8(words, signed).map(|v| v as f32));
            }
        }
    }
}

/// Sixteen elements at the start of a chunk, each put into a byte: those of six bits into its low
/// ones, those of four into its middle ones.
pub(super) fn widened(words: &[u32; 4], bits: usize) -> [u32; 4] {
    let [a, b, c, d] = words.map(u128::from);
    let all = a | b << 32 | c << 64 | d << 96;
    let place = if bits == 4 { 2 } else { 0 };
    let wide = (0..16).fold(0u128, |wide, i| {
        wide | (all >> (bits * i) & ((1 << bits) - 1)) << (8 * i + place)
    });
    std::array::from_fn(|i| (wide >> (32 * i)) as u32)
}
