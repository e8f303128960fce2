//! Names and types. Both are cheap to clone and compare.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::mlir::attrs::Attr;
use crate::shape::PrimitiveType;

/// A shared piece of text: the name of an op, an attribute, a symbol.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

/// What the sign of an integer type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signedness {
    /// `i8`: ops decide. StableHLO takes it as signed, and `i1` as a boolean.
    Signless,
    /// `si8`.
    Signed,
    /// `ui8`.
    Unsigned,
}

macro_rules! float_kinds {
    ($($variant:ident, $name:literal, $bits:literal, $primitive:expr;)*) => {
        /// A float type, named by its format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FloatKind { $(#[doc = concat!("`", $name, "`.")] $variant,)* }

        impl FloatKind {
            /// Every float type.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// The name in MLIR text.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
            /// The width of one number in bits, without padding.
            pub fn bit_width(self) -> usize {
                match self { $(Self::$variant => $bits,)* }
            }
            /// The element type of HLO, when it has one.
            pub fn primitive(self) -> Option<PrimitiveType> {
                match self { $(Self::$variant => $primitive,)* }
            }
        }
    };
}

float_kinds! {
    F4E2M1FN, "f4E2M1FN", 4, Some(PrimitiveType::F4E2M1FN);
    F6E2M3FN, "f6E2M3FN", 6, Some(PrimitiveType::F6E2M3FN);
    F6E3M2FN, "f6E3M2FN", 6, Some(PrimitiveType::F6E3M2FN);
    F8E3M4, "f8E3M4", 8, Some(PrimitiveType::F8E3M4);
    F8E4M3, "f8E4M3", 8, Some(PrimitiveType::F8E4M3);
    F8E4M3FN, "f8E4M3FN", 8, Some(PrimitiveType::F8E4M3FN);
    F8E4M3FNUZ, "f8E4M3FNUZ", 8, Some(PrimitiveType::F8E4M3FNUZ);
    F8E4M3B11FNUZ, "f8E4M3B11FNUZ", 8, Some(PrimitiveType::F8E4M3B11FNUZ);
    F8E5M2, "f8E5M2", 8, Some(PrimitiveType::F8E5M2);
    F8E5M2FNUZ, "f8E5M2FNUZ", 8, Some(PrimitiveType::F8E5M2FNUZ);
    F8E8M0FNU, "f8E8M0FNU", 8, Some(PrimitiveType::F8E8M0FNU);
    BF16, "bf16", 16, Some(PrimitiveType::BF16);
    F16, "f16", 16, Some(PrimitiveType::F16);
    TF32, "tf32", 19, None;
    F32, "f32", 32, Some(PrimitiveType::F32);
    F64, "f64", 64, Some(PrimitiveType::F64);
    F80, "f80", 80, None;
    F128, "f128", 128, None;
}

impl FloatKind {
    /// The float type of that name in MLIR text.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
    /// The float type that HLO calls `ty`.
    pub fn from_primitive(ty: PrimitiveType) -> Option<Self> {
        let is = |kind: &Self| kind.primitive() == Some(ty);
        Self::ALL.iter().copied().find(is)
    }
}

/// The type of a value or an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `i32`, `si8`, `ui4`.
    Integer {
        /// Number of bits.
        width: u32,
        /// Signless, signed or unsigned.
        sign: Signedness,
    },
    /// `f32`, `bf16`, `f8E4M3FN`.
    Float(FloatKind),
    /// `index`.
    Index,
    /// `none`.
    None,
    /// `complex<f32>`.
    Complex(Arc<Type>),
    /// `tuple<a, b>`.
    Tuple(Arc<[Type]>),
    /// `(a, b) -> c`.
    Function(Arc<FunctionType>),
    /// `tensor<2x?xf32, encoding>`.
    Tensor(Arc<TensorType>),
    /// `tensor<*xf32>`: the element type.
    UnrankedTensor(Arc<Type>),
    /// `vector<4xf32>`; always without encoding.
    Vector(Arc<TensorType>),
    /// `memref<4xf32>`: layout and memory space as the encoding.
    MemRef(Arc<TensorType>),
    /// `!stablehlo.token` (and `!mhlo.token`).
    Token,
    /// `!stablehlo.future<a, b>`.
    Future(Arc<[Type]>),
    /// `!quant.uniform<...>`.
    Quantized(Arc<QuantizedType>),
    /// `!shape.shape`.
    Shape,
    /// `!shape.size`.
    Size,
    /// `!shape.witness`.
    Witness,
    /// Any other type of a dialect: the text after `!`, such as `tf_type.string`.
    Opaque(Name),
}

/// The type of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionType {
    /// Types of the arguments.
    pub inputs: Vec<Type>,
    /// Types of the results.
    pub results: Vec<Type>,
}

/// The type of a ranked tensor, and what vectors and memrefs have of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Sizes; `None` is `?`.
    pub dims: Vec<Option<u64>>,
    /// Type of one element.
    pub element: Type,
    /// What stands after the element type; `#stablehlo.bounds<4, ?>` is the struct
    /// `stablehlo.bounds` with the field `bounds`, an array of `i64` with [`Attr::DYNAMIC`] for `?`.
    pub encoding: Option<Attr>,
}

/// How integers stand for real numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantizedType {
    /// Number of bits of the stored integer.
    pub storage_width: u32,
    /// Whether the stored integer is signed.
    pub storage_signed: bool,
    /// Smallest stored integer that is used.
    pub storage_min: i64,
    /// Largest stored integer that is used.
    pub storage_max: i64,
    /// The float type that is stood for.
    pub expressed: FloatKind,
    /// One scale for all, or one a slice or block.
    pub scheme: QuantizedScheme,
    /// Scales as the bits of `f64`; one, or one a slice or block in row-major order.
    pub scales: Vec<u64>,
    /// The integer that stands for zero, one for each scale.
    pub zero_points: Vec<i64>,
}

/// What shares one scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantizedScheme {
    /// The whole tensor.
    PerTensor,
    /// A slice across this dimension.
    PerAxis(u64),
    /// A block.
    SubChannel {
        /// Dimensions that are cut into blocks, and the block's size along each.
        blocks: Vec<(u64, u64)>,
        /// Shape of the array of scales.
        shape: Vec<u64>,
    },
}

impl QuantizedType {
    /// The smallest and the largest integer that is stored in so many bits; nothing for numbers of
    /// bits that quantized types do not have.
    pub fn storage_range(width: u32, signed: bool) -> Option<(i64, i64)> {
        match (width, signed) {
            (1..=32, true) => Some((-(1 << (width - 1)), (1 << (width - 1)) - 1)),
            (1..=32, false) => Some((0, (1 << width) - 1)),
            _ => None,
        }
    }
    /// What MLIR requires of such types.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let (low, high) = Self::storage_range(self.storage_width, self.storage_signed)
            .ok_or_else(|| format!("a quantized type stores {} bits", self.storage_width))?;
        let (min, max) = (self.storage_min, self.storage_max);
        if low > min || min > max || max > high {
            return Err(format!(
                "a quantized type stores integers from {min} to {max} where {low} to {high} fit"
            ));
        }
        let is_finite = |scale: &u64| f64::from_bits(*scale).is_finite();
        if !self.scales.iter().all(is_finite) {
            return Err("a quantized type has a scale that is no number".to_owned());
        }
        let wanted = match &self.scheme {
            QuantizedScheme::PerTensor => Some(1),
            QuantizedScheme::PerAxis(_) => Some(self.scales.len() as u64),
            QuantizedScheme::SubChannel { shape, .. } => {
                let mut sizes = shape.iter();
                sizes.try_fold(1_u64, |count, size| count.checked_mul(*size))
            }
        };
        let count = self.scales.len();
        if wanted != Some(count as u64) || self.zero_points.len() != count || count == 0 {
            return Err(format!(
                "a quantized type has {count} scales and {} zero points, not one of each for each \
                 part",
                self.zero_points.len()
            ));
        }
        Ok(())
    }
}

impl Type {
    /// `i1`.
    pub const I1: Self = Self::signless(1);
    /// `i32`.
    pub const I32: Self = Self::signless(32);
    /// `i64`.
    pub const I64: Self = Self::signless(64);
    /// `f32`.
    pub const F32: Self = Self::Float(FloatKind::F32);
    /// `f64`.
    pub const F64: Self = Self::Float(FloatKind::F64);

    /// The integer type without sign of that width.
    pub const fn signless(width: u32) -> Self {
        let sign = Signedness::Signless;
        Self::Integer { width, sign }
    }
    /// A ranked tensor without encoding.
    pub fn tensor(dims: Vec<Option<u64>>, element: Self) -> Self {
        let encoding = None;
        Self::Tensor(Arc::new(TensorType {
            dims,
            element,
            encoding,
        }))
    }
    /// A ranked tensor of known sizes.
    pub fn static_tensor(dims: &[u64], element: Self) -> Self {
        Self::tensor(dims.iter().map(|d| Some(*d)).collect(), element)
    }
    /// The ranked tensor type, when it is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
    /// The function type, when it is one.
    pub fn as_function(&self) -> Option<&FunctionType> {
        match self {
            Self::Function(function) => Some(function),
            _ => None,
        }
    }
    /// The type of the elements of a tensor, vector or memref; any other type is itself.
    pub fn element(&self) -> &Self {
        match self {
            Self::Tensor(tensor) | Self::Vector(tensor) | Self::MemRef(tensor) => &tensor.element,
            Self::UnrankedTensor(element) => element,
            other => other,
        }
    }
    /// The element type of HLO that a scalar of this type has; `i1` is `pred`, and other signless
    /// integers are signed. `index` is `s64`, as in XLA's own conversion of `dense` attributes.
    pub fn primitive(&self) -> Option<PrimitiveType> {
        use PrimitiveType as P;
        match self {
            Self::Integer { width, sign } => Some(match (width, sign) {
                (1, Signedness::Signless) => P::Pred,
                (1, Signedness::Signed) => P::S1,
                (1, Signedness::Unsigned) => P::U1,
                (2, Signedness::Unsigned) => P::U2,
                (4, Signedness::Unsigned) => P::U4,
                (8, Signedness::Unsigned) => P::U8,
                (16, Signedness::Unsigned) => P::U16,
                (32, Signedness::Unsigned) => P::U32,
                (64, Signedness::Unsigned) => P::U64,
                (2, _) => P::S2,
                (4, _) => P::S4,
                (8, _) => P::S8,
                (16, _) => P::S16,
                (32, _) => P::S32,
                (64, _) => P::S64,
                _ => return None,
            }),
            Self::Float(kind) => kind.primitive(),
            Self::Index => Some(P::S64),
            Self::Complex(part) => part.primitive().and_then(P::complex_of),
            _ => None,
        }
    }
    /// The type that stands for an element type of HLO.
    pub fn from_primitive(ty: PrimitiveType) -> Self {
        use PrimitiveType as P;
        match ty {
            P::Pred => Self::I1,
            P::S1 => Self::Integer {
                width: 1,
                sign: Signedness::Signed,
            },
            P::C64 => Self::Complex(Arc::new(Self::F32)),
            P::C128 => Self::Complex(Arc::new(Self::F64)),
            _ => match FloatKind::from_primitive(ty) {
                Some(kind) => Self::Float(kind),
                None => Self::Integer {
                    width: ty.bit_width() as u32,
                    sign: if ty.is_unsigned() {
                        Signedness::Unsigned
                    } else {
                        Signedness::Signless
                    },
                },
            },
        }
    }
    /// The bytes that one element takes in [`crate::mlir::DenseData::Bytes`]; nothing for types
    /// that have no elements in bytes, such as strings.
    pub fn element_bytes(&self) -> Option<usize> {
        match self {
            Self::Integer { width, .. } => Some((*width as usize).div_ceil(8)),
            Self::Float(kind) => Some(kind.bit_width().div_ceil(8)),
            Self::Index => Some(8),
            Self::Complex(part) => part.element_bytes().map(|bytes| bytes * 2),
            _ => None,
        }
    }
}

impl TensorType {
    /// Number of elements, when all sizes are known and the number fits 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        if self.dims.contains(&Some(0)) {
            return self.is_static().then_some(0);
        }
        let grow = |count: u64, dim: &Option<u64>| count.checked_mul((*dim)?);
        self.dims.iter().try_fold(1, grow)
    }
    /// Whether all sizes are known.
    pub fn is_static(&self) -> bool {
        self.dims.iter().all(Option::is_some)
    }
    /// The bounds of the sizes, one a dimension, when the type has them.
    pub fn bounds(&self) -> Option<Vec<Option<u64>>> {
        let Some(Attr::Struct(s)) = &self.encoding else {
            return None;
        };
        let bounds = s.is("stablehlo", "bounds").then(|| s.field("bounds"))??;
        let bounds = bounds.ints()?.into_iter();
        Some(bounds.map(|b| u64::try_from(b).ok()).collect())
    }
}
