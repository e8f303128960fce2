//! Matrix descriptors: where the elements of an operand lie in shared memory.
//!
//! Memory is seen in chunks of 16 bytes.  An operand's rows (of A, or columns of B) are called
//! outer here; the other direction is k.

/// How chunks are permuted: which bits of an address are changed by which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Bit 4 by bit 7.
    B32,
    /// Bits 4 and 5 by bits 7 and 8.
    B64,
    /// Bits 4 to 6 by bits 7 to 9.
    B128,
    /// Bits 5 and 6 by bits 7 and 8.
    B128Atom32,
    /// Bit 6 by bit 7.
    B128Atom64,
}

impl Swizzle {
    /// Bytes of a row of the pattern; a chunk when there is none.
    #[inline]
    pub fn span(self) -> u32 {
        match self {
            Self::None => 16,
            Self::B32 => 32,
            Self::B64 => 64,
            Self::B128 | Self::B128Atom32 | Self::B128Atom64 => 128,
        }
    }
    /// Bytes that stay together.
    #[inline]
    pub fn atom(self) -> u32 {
        match self {
            Self::B128Atom32 => 32,
            Self::B128Atom64 => 64,
            _ => 16,
        }
    }
    /// The permuted address.
    #[inline]
    pub fn apply(self, address: u32) -> u32 {
        address
            ^ match self {
                Self::None => 0,
                Self::B32 => (address >> 3) & 0x10,
                Self::B64 => (address >> 3) & 0x30,
                Self::B128 => (address >> 3) & 0x70,
                Self::B128Atom32 => (address >> 2) & 0x60,
                Self::B128Atom64 => (address >> 1) & 0x40,
            }
    }
}

/// A decoded descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixDescriptor {
    /// Address of the first chunk.
    pub start: u32,
    /// The leading-dimension byte offset.
    pub leading: u32,
    /// The stride-dimension byte offset.
    pub stride: u32,
    /// Where the swizzle pattern starts, in rows of 128 bytes.
    pub base: u32,
    /// The swizzle.
    pub swizzle: Swizzle,
}

impl MatrixDescriptor {
    /// The descriptor of `wgmma`.
    pub fn wgmma(bits: u64) -> Self {
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::B128,
            2 => Swizzle::B64,
            _ => Swizzle::B32,
        };
        Self::common(bits, swizzle)
    }
    /// The descriptor of `tcgen05`; nothing when its swizzle is not one.
    pub fn tcgen05(bits: u64) -> Option<Self> {
        let swizzle = match bits >> 61 {
            0 => Swizzle::None,
            1 => Swizzle::B128Atom32,
            2 => Swizzle::B128,
            4 => Swizzle::B64,
            6 => Swizzle::B32,
            _ => return None,
        };
        Some(Self::common(bits, swizzle))
    }
    fn common(bits: u64, swizzle: Swizzle) -> Self {
        let field = |at: u32| ((bits >> at) as u32 & 0x3fff) << 4;
        Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: (bits >> 49) as u32 & 7,
            swizzle,
        }
    }
    /// The address of the chunk at byte `16 * chunk` along k of an outer index, k being contiguous.
    #[inline]
    pub fn k_major(&self, outer: u32, chunk: u32) -> u32 {
        let span = self.swizzle.span();
        let wide = span / 16;
        let group = (outer / 8).wrapping_mul(self.stride);
        let along = (chunk / wide).wrapping_mul(self.leading) + chunk % wide * 16;
        self.place(group.wrapping_add(outer % 8 * span).wrapping_add(along))
    }
    /// The address of the `chunk`-th 16 bytes along the outer direction at `k`, the outer
    /// direction being contiguous.
    #[inline]
    pub fn outer_major(&self, chunk: u32, k: u32) -> u32 {
        let span = self.swizzle.span();
        let wide = span / 16;
        let (far, near) = match self.swizzle {
            Swizzle::None => (self.stride, self.leading),
            _ => (self.leading, self.stride),
        };
        let along = (chunk / wide).wrapping_mul(far) + chunk % wide * 16;
        let rows = (k / 8).wrapping_mul(near).wrapping_add(k % 8 * span);
        self.place(along.wrapping_add(rows))
    }
    #[inline]
    fn place(&self, offset: u32) -> u32 {
        let address = self.start.wrapping_add(offset);
        // The pattern is one of addresses, shifted by the base offset.
        let shift = self.base << 7;
        self.swizzle
            .apply(address.wrapping_sub(shift))
            .wrapping_add(shift)
    }
}

/// An operand reached beyond the shared memory that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfShared {
    /// The first byte that was wanted.
    pub address: u32,
}

/// Sixteen bytes as four words.
#[inline]
pub(super) fn chunk(shared: &[u8], address: u32) -> Result<[u32; 4], OutOfShared> {
    let bytes = shared
        .get(address as usize..)
        .and_then(|s| s.first_chunk::<16>())
        .ok_or(OutOfShared { address })?;
    Ok(std::array::from_fn(|i| {
        u32::from_le_bytes(std::array::from_fn(|j| bytes[4 * i + j]))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_tables_say() {
        let bits = 0x1234 | 0x0abc << 16 | 0x0321 << 32 | 5 << 49 | 1 << 62;
        let d = MatrixDescriptor::wgmma(bits);
        assert_eq!((d.start, d.leading, d.stride), (0x12340, 0xabc0, 0x3210));
        assert_eq!((d.base, d.swizzle), (5, Swizzle::B128));
        assert_eq!(MatrixDescriptor::wgmma(3 << 62).swizzle, Swizzle::B32);
        let d = MatrixDescriptor::tcgen05(2 << 61).expect("a swizzle");
        assert_eq!(d.swizzle, Swizzle::B128);
        assert_eq!(MatrixDescriptor::tcgen05(3 << 61), None);
    }

    #[test]
    fn a_swizzle_is_its_own_inverse_and_keeps_rows() {
        use Swizzle as S;
        for s in [
            S::None,
            S::B32,
            S::B64,
            S::B128,
            S::B128Atom32,
            S::B128Atom64,
        ] {
            for address in (0..4096).step_by(16) {
                let there = s.apply(address);
                assert_eq!(s.apply(there), address);
                assert_eq!(there / s.span().max(128), address / s.span().max(128));
            }
        }
        // Row 1 of a 128-byte pattern starts with chunk 1.
        assert_eq!(Swizzle::B128.apply(128), 128 + 16);
        assert_eq!(Swizzle::B128.apply(7 * 128 + 16), 7 * 128 + 6 * 16);
        assert_eq!(Swizzle::B64.apply(128), 128 + 16);
        assert_eq!(Swizzle::B32.apply(128), 128 + 16);
        assert_eq!(Swizzle::B32.apply(256), 256);
    }
}
