//! Attributes: constants that ops carry. Clones share their data.

use std::sync::Arc;

use crate::mlir::location::Loc;
use crate::mlir::types::FloatKind;
use crate::mlir::types::Name;
use crate::mlir::types::Signedness;
use crate::mlir::types::Type;

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attr {
    /// `unit`: present is all it says.
    Unit,
    /// `true`, `false`.
    Bool(bool),
    /// `7 : i32`.
    Integer {
        /// The number, by the type's sign; numbers of signless types are signed. Wider ones than
        /// 128 bits are refused by the readers.
        value: i128,
        /// An integer type (not `i1` without sign, which is [`Attr::Bool`]) or `index`.
        ty: Type,
    },
    /// `1.5 : f32`.
    Float {
        /// The number in the format of its type.
        bits: u64,
        /// A float type of at most 64 bits.
        ty: Type,
    },
    /// `"text"`: bytes, mostly UTF-8.
    String(Arc<[u8]>),
    /// `"text" : type`.
    TypedString(Arc<[u8]>, Type),
    /// `@main`, `@module::@main`.
    Symbol(SymbolRef),
    /// `[a, b]`.
    Array(Arc<[Attr]>),
    /// `{a = 1, b = 2}`.
    Dict(Arc<AttrMap>),
    /// `tensor<2xf32>` where an attribute stands.
    Type(Type),
    /// `dense<...> : tensor<2xf32>`.
    Dense(Dense),
    /// `array<i64: 1, 2>`.
    DenseArray(DenseArray),
    /// `dense_resource<key> : tensor<2xf32>` whose bytes the input does not have, because a printer
    /// left them out. Those that it has become [`Attr::Dense`].
    MissingResource {
        /// Name of the blob.
        key: Name,
        /// Type of the tensor.
        ty: Type,
    },
    /// `#stablehlo<precision HIGH>`.
    Enum(EnumAttr),
    /// `#stablehlo.dot<lhs_contracting_dimensions = [1], ...>`.
    Struct(Arc<StructAttr>),
    /// `loc(...)`.
    Location(Loc),
    /// Any other attribute of a dialect, or an affine map: its text, with `#` where it has one.
    Opaque(Name),
}

/// The name of a symbol, with the names of the tables that hold it before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolRef {
    /// The first name.
    pub root: Name,
    /// Names after `::`.
    pub nested: Vec<Name>,
}

/// Dense elements of a tensor or vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dense {
    /// A tensor or vector type of known sizes.
    pub ty: Type,
    /// Whether `data` holds one element that stands for all: so it is exactly when all elements are
    /// equal, bit for bit, and there is one; see [`Dense::new`].
    pub splat: bool,
    /// The elements in row-major order.
    pub data: DenseData,
}

/// The elements of a [`Dense`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenseData {
    /// Numbers, packed as [`crate::literal::ArrayLiteral`] packs them; see
    /// [`Type::element_bytes`].
    Bytes(Arc<[u8]>),
    /// Strings, of a tensor whose elements have a type that is not a number's.
    Strings(Arc<[Arc<[u8]>]>),
}

/// A flat list of numbers of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenseArray {
    /// `i1`, `i8` to `i64`, `f32` or `f64`.
    pub element: Type,
    /// The numbers, little-endian, each in its own bytes.
    pub data: Arc<[u8]>,
}

/// A case of an enumeration of a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumAttr {
    /// `stablehlo`.
    pub dialect: Name,
    /// `precision`.
    pub kind: Name,
    /// `HIGH`.
    pub case: Name,
}

/// A structured attribute of a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructAttr {
    /// `stablehlo`.
    pub dialect: Name,
    /// `dot`.
    pub kind: Name,
    /// Fields in the order in which the dialect prints them; those with a default value are absent.
    pub fields: Vec<(Name, Attr)>,
}

/// Attributes by name, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttrMap {
    entries: Vec<(Name, Attr)>,
}

impl Attr {
    /// The number that stands for `?` in a list of sizes.
    pub const DYNAMIC: i64 = i64::MIN;

    /// An integer of type `i64`.
    pub fn i64(value: i64) -> Self {
        Self::Integer {
            value: value.into(),
            ty: Type::I64,
        }
    }
    /// An integer of type `i32`.
    pub fn i32(value: i32) -> Self {
        Self::Integer {
            value: value.into(),
            ty: Type::I32,
        }
    }
    /// A string.
    pub fn string(text: &str) -> Self {
        Self::String(text.as_bytes().into())
    }
    /// A symbol without path.
    pub fn symbol(name: &str) -> Self {
        Self::Symbol(SymbolRef {
            root: name.into(),
            nested: Vec::new(),
        })
    }
    /// `array<i64: ...>`.
    pub fn i64_array(values: &[i64]) -> Self {
        Self::DenseArray(DenseArray::i64(values))
    }
    /// `array<i1: ...>`.
    pub fn bool_array(values: &[bool]) -> Self {
        Self::DenseArray(DenseArray {
            element: Type::I1,
            data: values.iter().map(|v| u8::from(*v)).collect(),
        })
    }
    /// `[a, b]`.
    pub fn array(items: Vec<Self>) -> Self {
        Self::Array(items.into())
    }
    /// `{a = 1}`.
    pub fn dict(map: AttrMap) -> Self {
        Self::Dict(Arc::new(map))
    }
    /// A case of an enumeration of the dialect `stablehlo`.
    pub fn stablehlo_enum(kind: &str, case: &str) -> Self {
        Self::enumeration("stablehlo", kind, case)
    }
    /// A case of an enumeration.
    pub fn enumeration(dialect: &str, kind: &str, case: &str) -> Self {
        Self::Enum(EnumAttr {
            dialect: dialect.into(),
            kind: kind.into(),
            case: case.into(),
        })
    }
    /// Whether a field of a structured attribute has the value that it has when it is absent.
    pub fn is_default_field(&self) -> bool {
        match self {
            Self::DenseArray(array) => array.is_empty(),
            Self::Integer { value, .. } => *value == 0,
            Self::Float { bits, .. } => bits << 1 == 0,
            Self::Bool(value) => !value,
            Self::Array(items) => items.is_empty(),
            _ => false,
        }
    }
    /// A structured attribute.
    pub fn structure(dialect: &str, kind: &str, fields: Vec<(Name, Self)>) -> Self {
        Self::Struct(Arc::new(StructAttr {
            dialect: dialect.into(),
            kind: kind.into(),
            fields,
        }))
    }
    /// The number of an integer, when it is one that fits 64 bits; a boolean is none.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Integer { value, .. } => i64::try_from(*value).ok(),
            _ => None,
        }
    }
    /// The numbers of a list whose elements are of that type: `array<i64: ...>` or `dense<[1, 2]>`.
    pub fn ints_of(&self, element: &Type) -> Option<Vec<i64>> {
        let found = match self {
            Self::DenseArray(array) => &array.element,
            Self::Dense(dense) => dense.ty.element(),
            _ => return None,
        };
        (found == element).then(|| self.ints())?
    }
    /// The numbers of an array of integers: `array<i64: ...>`, `[1, 2]` or `dense<[1, 2]>`.
    pub fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Self::DenseArray(array) => array.ints(),
            Self::Array(items) => items.iter().map(Self::as_int).collect(),
            Self::Dense(dense) => dense.ints(),
            _ => None,
        }
    }
    /// The text of a string that is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(bytes) | Self::TypedString(bytes, _) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
    /// The items of an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }
    /// The entries of a dictionary.
    pub fn as_dict(&self) -> Option<&AttrMap> {
        match self {
            Self::Dict(map) => Some(map),
            _ => None,
        }
    }
    /// The structure, when it is one of that dialect and kind.
    pub fn as_struct(&self, dialect: &str, kind: &str) -> Option<&StructAttr> {
        match self {
            Self::Struct(s) if s.is(dialect, kind) => Some(s),
            _ => None,
        }
    }
    /// The case, when it is one of the enumeration of that name, of any dialect.
    pub fn as_enum(&self, kind: &str) -> Option<&str> {
        match self {
            Self::Enum(e) if e.kind == kind => Some(&e.case),
            _ => None,
        }
    }
    /// What it is, in a word or two, for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Unit => "a unit attribute",
            Self::Bool(_) => "a boolean",
            Self::Integer { .. } => "an integer",
            Self::Float { .. } => "a float",
            Self::String(_) | Self::TypedString(..) => "a string",
            Self::Symbol(_) => "a symbol",
            Self::Array(_) => "an array",
            Self::Dict(_) => "a dictionary",
            Self::Type(_) => "a type",
            Self::Dense(_) => "dense elements",
            Self::DenseArray(_) => "a dense array",
            Self::MissingResource { .. } => "a resource without bytes",
            Self::Enum(_) => "an enumeration's case",
            Self::Struct(_) => "a structured attribute",
            Self::Location(_) => "a location",
            Self::Opaque(_) => "an attribute that is not known",
        }
    }
}

impl SymbolRef {
    /// The name of the symbol itself, without the path before it.
    pub fn leaf(&self) -> &Name {
        self.nested.last().unwrap_or(&self.root)
    }
}

impl Dense {
    /// The elements in their one form. `data` holds all elements, or one that stands for all.
    pub fn new(ty: Type, data: Vec<u8>) -> Self {
        Self::of(ty, &data)
    }
    /// As [`Dense::new`], of bytes whose bits beyond an element's own may be anything.
    pub fn from_raw(ty: Type, data: &[u8]) -> Self {
        if !is_padded(ty.element()) {
            return Self::of(ty, data);
        }
        let mut data = data.to_vec();
        extend(ty.element(), &mut data);
        Self::of(ty, &data)
    }
    fn of(ty: Type, data: &[u8]) -> Self {
        let width = ty.element().element_bytes().unwrap_or(1).max(1);
        let equal = data.len() >= width && data[width..] == data[..data.len() - width];
        let empty = is_empty(&ty);
        let splat = equal && !empty;
        let length = match (empty, splat) {
            (true, _) => 0,
            (false, true) => width,
            (false, false) => data.len(),
        };
        Self {
            ty,
            splat,
            data: DenseData::Bytes(data[..length].into()),
        }
    }
    /// Strings in their one form: all of them, or one that stands for all.
    pub fn strings(ty: Type, mut strings: Vec<Arc<[u8]>>) -> Self {
        if is_empty(&ty) {
            strings.clear();
        }
        let splat = !strings.is_empty() && strings.iter().all(|text| *text == strings[0]);
        strings.truncate(if splat { 1 } else { strings.len() });
        let data = DenseData::Strings(strings.into());
        Self { ty, splat, data }
    }
    /// Number of elements that the type has.
    pub fn element_count(&self) -> u64 {
        match &self.ty {
            Type::Tensor(tensor) | Type::Vector(tensor) => tensor.element_count().unwrap_or(0),
            _ => 0,
        }
    }
    /// The bytes, one element for a splat; nothing when the elements are strings.
    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        match &self.data {
            DenseData::Bytes(bytes) => Some(bytes),
            DenseData::Strings(_) => None,
        }
    }
    /// The elements as integers, when they are integers of at most 64 bits and not more than a
    /// million; a splat is expanded. Unsigned numbers of 64 bits wrap.
    pub fn ints(&self) -> Option<Vec<i64>> {
        let element = self.ty.element();
        let signed = match element {
            Type::Integer { width, sign } => {
                *width <= 64 && (*sign != Signedness::Unsigned && *width > 1)
            }
            Type::Index => true,
            _ => return None,
        };
        let width = element.element_bytes().filter(|w| (1..=8).contains(w))?;
        let count = usize::try_from(self.element_count()).ok()?;
        if count > 1 << 20 {
            return None;
        }
        let one = |chunk: &[u8]| {
            let negative = signed && chunk.last().is_some_and(|b| *b >= 0x80);
            let mut bytes = [if negative { 0xff } else { 0 }; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            i64::from_le_bytes(bytes)
        };
        let values = self.bytes()?.chunks_exact(width).map(one);
        Some(match self.splat {
            true => values.cycle().take(count).collect(),
            false => values.collect(),
        })
    }
}

/// Whether a tensor has no elements.
fn is_empty(ty: &Type) -> bool {
    match ty {
        Type::Tensor(tensor) | Type::Vector(tensor) => tensor.element_count() == Some(0),
        _ => false,
    }
}

/// Whether the last byte of an element has bits that are not the element's.
fn is_padded(element: &Type) -> bool {
    match element {
        Type::Integer { width, .. } => width % 8 != 0,
        Type::Float(kind) => kind.bit_width() % 8 != 0,
        _ => false,
    }
}

/// Gives the bits beyond an element's own what [`crate::literal`] has there: the sign of signed
/// integers, else zero. Booleans become 0 or 1.
fn extend(element: &Type, data: &mut [u8]) {
    if *element == Type::I1 {
        data.iter_mut()
            .for_each(|byte| *byte = u8::from(*byte != 0));
        return;
    }
    let (width, signed) = match element {
        Type::Integer { width, sign } => (*width, *sign != Signedness::Unsigned),
        Type::Float(kind) => (kind.bit_width() as u32, false),
        _ => return,
    };
    let unused = width.next_multiple_of(8) - width;
    for element in data.chunks_mut(width.div_ceil(8).max(1) as usize) {
        if let Some(last) = element.last_mut() {
            *last = match signed {
                true => ((*last << unused) as i8 >> unused) as u8,
                false => *last << unused >> unused,
            };
        }
    }
}

impl DenseArray {
    /// Whether that can be the type of the elements.
    pub fn can_hold(element: &Type) -> bool {
        matches!(
            element,
            Type::Integer {
                width: 1 | 8 | 16 | 32 | 64,
                ..
            } | Type::Float(FloatKind::F32 | FloatKind::F64)
        )
    }
    /// A list of `i64`.
    pub fn i64(values: &[i64]) -> Self {
        Self {
            element: Type::I64,
            data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        }
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len() / self.element.element_bytes().unwrap_or(1)
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
    /// The numbers, when they are integers or booleans.
    pub fn ints(&self) -> Option<Vec<i64>> {
        let Type::Integer { width, .. } = self.element else {
            return None;
        };
        let bytes = (width as usize).div_ceil(8);
        let one = |chunk: &[u8]| {
            let negative = width > 1 && chunk.last().is_some_and(|b| *b >= 0x80);
            let mut value = [if negative { 0xff } else { 0 }; 8];
            value[..chunk.len()].copy_from_slice(chunk);
            i64::from_le_bytes(value)
        };
        (1..=8)
            .contains(&bytes)
            .then(|| self.data.chunks_exact(bytes).map(one).collect())
    }
    /// The booleans, when they are.
    pub fn bools(&self) -> Option<Vec<bool>> {
        (self.element == Type::I1).then(|| self.data.iter().map(|b| *b != 0).collect())
    }
}

impl StructAttr {
    /// Whether it is the structure of that name.
    pub fn is(&self, dialect: &str, kind: &str) -> bool {
        self.dialect == dialect && self.kind == kind
    }
    /// The field of that name, when it is present.
    pub fn field(&self, name: &str) -> Option<&Attr> {
        self.fields.iter().find(|f| f.0 == name).map(|f| &f.1)
    }
    /// The integer of that field; an absent one is zero.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.field(name).map_or(Some(0), Attr::as_int)
    }
    /// The integers of that field; an absent one is empty.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.field(name)
            .map_or_else(|| Some(Vec::new()), Attr::ints)
    }
}

impl AttrMap {
    /// No attribute.
    pub fn new() -> Self {
        Self::default()
    }
    /// The attribute of that name.
    pub fn get(&self, name: &str) -> Option<&Attr> {
        let found = self.entries.binary_search_by(|e| e.0.as_str().cmp(name));
        found.ok().map(|at| &self.entries[at].1)
    }
    /// Sets the attribute of that name; gives back the one that was there.
    pub fn insert(&mut self, name: Name, attr: Attr) -> Option<Attr> {
        match self.entries.binary_search_by(|e| e.0.cmp(&name)) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, attr)),
            Err(at) => {
                self.entries.insert(at, (name, attr));
                None
            }
        }
    }
    /// Adds attributes, of names that are not there yet and differ.
    pub fn extend(&mut self, entries: impl IntoIterator<Item = (Name, Attr)>) {
        self.entries.extend(entries);
        self.entries.sort_by(|a, b| a.0.cmp(&b.0));
    }
    /// Takes the attribute of that name out.
    pub fn remove(&mut self, name: &str) -> Option<Attr> {
        let found = self.entries.binary_search_by(|e| e.0.as_str().cmp(name));
        found.ok().map(|at| self.entries.remove(at).1)
    }
    /// All attributes, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Attr)> {
        self.entries.iter().map(|e| (&e.0, &e.1))
    }
    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Replaces the attributes for which `update` gives another one.
    pub fn update(&mut self, mut update: impl FnMut(&str, &Attr) -> Option<Attr>) {
        for (name, attr) in &mut self.entries {
            if let Some(new) = update(name, attr) {
                *attr = new;
            }
        }
    }
    /// Keeps the attributes for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&Name, &Attr) -> bool) {
        self.entries.retain(|e| keep(&e.0, &e.1));
    }
}

impl FromIterator<(Name, Attr)> for AttrMap {
    /// Of attributes with one name the last one stays.
    fn from_iter<I: IntoIterator<Item = (Name, Attr)>>(entries: I) -> Self {
        let mut entries: Vec<(Name, Attr)> = entries.into_iter().collect();
        // The sort is stable, so that the last of equal names is the one to stay.
        entries.reverse();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|a, b| a.0 == b.0);
        Self { entries }
    }
}
