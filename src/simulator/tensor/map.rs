//! Tensor maps: what a tensor in global memory is, and which box of it a copy moves.
//!
//! Only this simulator makes and reads the 128 opaque bytes, so their form is its own.  Every
//! field is kept so that bytes of zero are a map of rank one: programs make maps from zeros, one
//! field after the other.

use crate::base::{Diagnostic, Result, codes};
use crate::simulator::tensor::descriptor::Swizzle;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapElement {
    /// Unsigned byte.
    U8,
    /// Unsigned 16 bits.
    U16,
    /// Unsigned 32 bits.
    U32,
    /// Signed 32 bits.
    S32,
    /// Unsigned 64 bits.
    U64,
    /// Signed 64 bits.
    S64,
    /// Half.
    F16,
    /// Single.
    F32,
    /// Single; denormals count as zero.
    F32Ftz,
    /// Double.
    F64,
    /// Bfloat.
    Bf16,
    /// Single of which 19 bits count.
    Tf32,
    /// The same; denormals count as zero.
    Tf32Ftz,
    /// Four bits, packed on both sides.
    B4x16,
    /// Four bits; sixteen take sixteen bytes of shared memory.
    B4x16P64,
    /// Six bits; sixteen take sixteen bytes of shared memory.
    B6x16P32,
}

/// In the order of the instruction set's numbers.
const ELEMENTS: [MapElement; 16] = {
    use MapElement as E;
    [
        E::U8,
        E::U16,
        E::U32,
        E::S32,
        E::U64,
        E::S64,
        E::F16,
        E::F32,
        E::F32Ftz,
        E::F64,
        E::Bf16,
        E::Tf32,
        E::Tf32Ftz,
        E::B4x16,
        E::B4x16P64,
        E::B6x16P32,
    ]
};

impl MapElement {
    /// The type of a number in `tensormap.replace`.
    pub fn from_instruction(number: u64) -> Option<Self> {
        ELEMENTS.get(usize::try_from(number).ok()?).copied()
    }
    /// The type of a number in the driver's interface.
    pub fn from_driver(number: u32) -> Option<Self> {
        // The driver counts f32.ftz after the plain floats.
        let order = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13, 14, 15];
        ELEMENTS.get(*order.get(number as usize)?).copied()
    }
    /// Bits of an element in global memory.
    pub fn bits(self) -> u64 {
        match self {
            Self::U8 => 8,
            Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::U64 | Self::S64 | Self::F64 => 64,
            Self::B4x16 | Self::B4x16P64 => 4,
            Self::B6x16P32 => 6,
            _ => 32,
        }
    }
    /// Bits of an element in shared memory.
    pub fn shared_bits(self) -> u64 {
        if self.is_padded() { 8 } else { self.bits() }
    }
    /// Whether sixteen elements take sixteen bytes of shared memory, whatever their size.
    pub fn is_padded(self) -> bool {
        matches!(self, Self::B4x16P64 | Self::B6x16P32)
    }
    /// The bytes that stand for a number that is none; nothing for types that have no such.
    fn not_a_number(self) -> Option<[u8; 8]> {
        let repeat = |bits: u32| {
            let [a, b, c, d] = bits.to_le_bytes();
            [a, b, c, d, a, b, c, d]
        };
        match self {
            Self::F16 => Some(repeat(0x7eff_7eff)),
            Self::Bf16 => Some(repeat(0x7fff_7fff)),
            Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => Some(repeat(0x7fff_ffff)),
            Self::F64 => Some(0x7fff_ffff_ffff_ffffu64.to_le_bytes()),
            _ => None,
        }
    }
}

/// What a tiled map is made from; of each list, the first `rank` count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiled {
    /// The type of the elements.
    pub element: MapElement,
    /// How many dimensions, 1 to 5.
    pub rank: u32,
    /// The address of the first element.
    pub address: u64,
    /// Elements of each dimension, the contiguous one first.
    pub dims: [u64; 5],
    /// Bytes between neighbours in dimension 1 and following.
    pub strides: [u64; 4],
    /// Elements of the box.
    pub box_dims: [u32; 5],
    /// Steps between elements of the box that are copied.
    pub steps: [u32; 5],
    /// How the tile is permuted in shared memory.
    pub swizzle: Swizzle,
    /// Whether what is outside of the tensor is filled with a NaN instead of zero.
    pub fill_nan: bool,
}

/// What an im2col map is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Im2col {
    /// The tensor; `box_dims` is not used.
    pub tensor: Tiled,
    /// The lower corner of the box of pixels, from the tensor's.
    pub lower: [i32; 3],
    /// The upper corner of the box of pixels, from the tensor's.
    pub upper: [i32; 3],
    /// Channels of a pixel that are copied.
    pub channels: u32,
    /// Pixels that are copied.
    pub pixels: u32,
}

/// A tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    pub(super) tensor: Tiled,
    /// Corners of the box of pixels, when it is an im2col map; the box has channels and pixels.
    pub(super) corners: Option<([i32; 3], [i32; 3])>,
}

const SWIZZLES: [Swizzle; 6] = [
    Swizzle::None,
    Swizzle::B32,
    Swizzle::B64,
    Swizzle::B128,
    Swizzle::B128Atom32,
    Swizzle::B128Atom64,
];

impl Swizzle {
    /// The swizzle of a number in the driver's interface.
    pub fn from_driver(number: u32) -> Option<Self> {
        match number {
            0..=4 => Some(SWIZZLES[number as usize]),
            6 => Some(Self::B128Atom64),
            _ => None,
        }
    }
}

/// The copy or map is not one that a device takes.
fn refuse(what: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::DEVICE_FAULT, format!("tensor map: {}", what.into()))
}

impl TensorMap {
    /// A map of which boxes are copied.
    ///
    /// # Errors
    /// When a value is not what the driver's interface allows.
    pub fn tiled(tensor: Tiled) -> Result<Self> {
        let map = Self {
            tensor,
            corners: None,
        };
        map.check()?;
        Ok(map)
    }
    /// A map of which columns of pixels are copied.
    ///
    /// # Errors
    /// When a value is not what the driver's interface allows.
    pub fn im2col(x: Im2col) -> Result<Self> {
        let mut tensor = x.tensor;
        tensor.box_dims = [x.channels, x.pixels, 1, 1, 1];
        let map = Self {
            tensor,
            corners: Some((x.lower, x.upper)),
        };
        map.check()?;
        Ok(map)
    }
    /// How many dimensions the tensor has.
    pub fn rank(&self) -> usize {
        self.tensor.rank as usize
    }
    /// The type of the elements.
    pub fn element(&self) -> MapElement {
        self.tensor.element
    }
    /// What the map says.
    pub fn tensor(&self) -> &Tiled {
        &self.tensor
    }
    /// Bytes between neighbours in a dimension.
    pub(super) fn stride(&self, dim: usize) -> u64 {
        self.tensor.strides[dim - 1]
    }
    /// Whether every value is allowed.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<()> {
        let t = &self.tensor;
        let rank = t.rank as usize;
        if !(1..=5).contains(&rank) {
            return Err(refuse(format!("rank {rank} is not 1 to 5")));
        }
        if !t
            .address
            .is_multiple_of(if t.element.is_padded() { 32 } else { 16 })
        {
            return Err(refuse(format!("address {:#x} is not aligned", t.address)));
        }
        for i in 0..rank {
            if t.dims[i] == 0 || t.dims[i] > 1 << 32 {
                return Err(refuse(format!("dimension {i} has {} elements", t.dims[i])));
            }
            if t.steps[i] == 0 || t.steps[i] > 8 {
                return Err(refuse(format!(
                    "element stride {i} is {}, not 1 to 8",
                    t.steps[i]
                )));
            }
            if i > 0 && (!self.stride(i).is_multiple_of(16) || self.stride(i) >= 1 << 40) {
                return Err(refuse(format!(
                    "stride {} of dimension {i} is no multiple of 16 below 2^40",
                    self.stride(i)
                )));
            }
        }
        let limit = |i: usize| {
            if self.corners.is_some() && i == 1 {
                1024
            } else {
                256
            }
        };
        let boxes = if self.corners.is_some() { 2 } else { rank };
        for i in 0..boxes {
            if t.box_dims[i] == 0 || t.box_dims[i] > limit(i) {
                return Err(refuse(format!("box dimension {i} is {}", t.box_dims[i])));
            }
        }
        if self.corners.is_some() && rank < 3 {
            return Err(refuse(format!(
                "rank {rank} of an im2col map is not 3 to 5"
            )));
        }
        let bits = u64::from(t.box_dims[0]) * t.element.shared_bits();
        if !bits.is_multiple_of(128) {
            return Err(refuse(format!(
                "a row of the box has {bits} bits, not whole 16 bytes"
            )));
        }
        if t.swizzle != Swizzle::None && bits / 8 > u64::from(t.swizzle.span()) {
            return Err(refuse(format!(
                "a row of the box has {} bytes, more than the swizzle's {}",
                bits / 8,
                t.swizzle.span()
            )));
        }
        Ok(())
    }
    /// What fills the places outside of the tensor.
    pub(super) fn fill(&self) -> [u8; 8] {
        let nan = self
            .tensor
            .fill_nan
            .then(|| self.tensor.element.not_a_number());
        nan.flatten().unwrap_or_default()
    }
    /// The opaque form.
    pub fn to_bytes(&self) -> [u8; 128] {
        let t = &self.tensor;
        let mut out = [0; 128];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &t.address.to_le_bytes());
        for i in 0..5 {
            // Counts of at least one are kept less one.
            put(8 + 4 * i, &(t.dims[i].wrapping_sub(1) as u32).to_le_bytes());
            put(
                50 + 2 * i,
                &(t.box_dims[i].wrapping_sub(1) as u16).to_le_bytes(),
            );
            put(60 + i, &[(t.steps[i].wrapping_sub(1)) as u8]);
        }
        for i in 0..4 {
            put(28 + 5 * i, &t.strides[i].to_le_bytes()[..5]);
        }
        let element = ELEMENTS.iter().position(|e| *e == t.element);
        let swizzle = SWIZZLES.iter().position(|s| *s == t.swizzle);
        put(65, &[t.rank.wrapping_sub(1) as u8]);
        put(
            66,
            &[element.unwrap_or(0) as u8, swizzle.unwrap_or(0) as u8],
        );
        put(
            68,
            &[u8::from(t.fill_nan), u8::from(self.corners.is_some())],
        );
        let (lower, upper) = self.corners.unwrap_or_default();
        for i in 0..3 {
            put(70 + 2 * i, &(lower[i] as i16).to_le_bytes());
            put(76 + 2 * i, &(upper[i] as i16).to_le_bytes());
        }
        out
    }
    /// Reads the opaque form; whether the values are allowed is only checked when it is used.
    ///
    /// # Errors
    /// When the bytes were never written by [`Self::to_bytes`] and are not zeros either.
    pub fn from_bytes(bytes: &[u8; 128]) -> Result<Self> {
        fn get<const N: usize>(bytes: &[u8; 128], at: usize) -> [u8; N] {
            std::array::from_fn(|i| bytes[at + i])
        }
        let element = ELEMENTS.get(usize::from(bytes[66]));
        let swizzle = SWIZZLES.get(usize::from(bytes[67]));
        let rest = bytes[82..].iter().all(|b| *b == 0);
        let (Some(element), Some(swizzle), true) = (element, swizzle, rest) else {
            return Err(refuse("the 128 bytes hold no map"));
        };
        let tensor = Tiled {
            element: *element,
            rank: u32::from(bytes[65]) + 1,
            address: u64::from_le_bytes(get(bytes, 0)),
            dims: std::array::from_fn(|i| u64::from(u32::from_le_bytes(get(bytes, 8 + 4 * i))) + 1),
            strides: std::array::from_fn(|i| {
                let [a, b, c, d, e] = get(bytes, 28 + 5 * i);
                u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
            }),
            box_dims: std::array::from_fn(|i| {
                u32::from(u16::from_le_bytes(get(bytes, 50 + 2 * i))) + 1
            }),
            steps: std::array::from_fn(|i| u32::from(bytes[60 + i]) + 1),
            swizzle: *swizzle,
            fill_nan: bytes[68] != 0,
        };
        let corner = |at: usize| {
            std::array::from_fn(|i| i32::from(i16::from_le_bytes(get(bytes, at + 2 * i))))
        };
        Ok(Self {
            tensor,
            corners: (bytes[69] != 0).then(|| (corner(70), corner(76))),
        })
    }
    /// Changes one field, as `tensormap.replace` does.
    ///
    /// # Errors
    /// When there is no such field, or it does not take the value.
    pub fn replace(&mut self, field: &str, ord: u32, value: u64) -> Result<()> {
        let t = &mut self.tensor;
        let ord = ord as usize;
        let wrong = || {
            refuse(format!(
                "field `{field}` number {ord} does not take {value}"
            ))
        };
        match field {
            "global_address" => t.address = value,
            "rank" if value < 5 => t.rank = value as u32 + 1,
            "box_dim" if value <= 256 => {
                *t.box_dims.get_mut(ord).ok_or_else(wrong)? = value as u32;
            }
            "global_dim" if value <= 1 << 32 => *t.dims.get_mut(ord).ok_or_else(wrong)? = value,
            "global_stride" if value < 1 << 40 => {
                *t.strides.get_mut(ord).ok_or_else(wrong)? = value;
            }
            "element_stride" if value <= 8 => {
                *t.steps.get_mut(ord).ok_or_else(wrong)? = value as u32;
            }
            "elemtype" => t.element = MapElement::from_instruction(value).ok_or_else(wrong)?,
            "interleave_layout" if value == 0 => {}
            "swizzle_mode" => {
                t.swizzle = *SWIZZLES[..4].get(value as usize).ok_or_else(wrong)?;
            }
            "swizzle_atomicity" => {
                t.swizzle = match (value, t.swizzle.span()) {
                    (0, 128) => Swizzle::B128,
                    (0, _) => t.swizzle,
                    (1, 128) => Swizzle::B128Atom32,
                    (3, 128) => Swizzle::B128Atom64,
                    _ => return Err(wrong()),
                };
            }
            "fill_mode" if value < 2 => t.fill_nan = value == 1,
            _ => return Err(wrong()),
        }
        Ok(())
    }
}
