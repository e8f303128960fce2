//! The tables of attributes and types of a file that is being written.
//!
//! Each entry is made after those it refers to and kept once, so an index means the same from then
//! on and the same module gives the same bytes. Attributes and types within ops are VHLO's; those of
//! the module itself, and locations, are MLIR's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::Dense;
use crate::mlir::attrs::DenseArray;
use crate::mlir::attrs::DenseData;
use crate::mlir::attrs::StructAttr;
use crate::mlir::bytecode::emit::Emitter;
use crate::mlir::bytecode::upgrade::Wrong;
use crate::mlir::bytecode::vhlo;
use crate::mlir::bytecode::vhlo_ops::Version;
use crate::mlir::location::Loc;
use crate::mlir::types::QuantizedScheme;
use crate::mlir::types::QuantizedType;
use crate::mlir::types::TensorType;
use crate::mlir::types::Type;

/// How deep attributes, types and locations may nest.
const DEPTH: usize = 512;

/// Strings, each once, in the order in which they came.
#[derive(Default)]
pub(super) struct Strings {
    pub list: Vec<Arc<[u8]>>,
    index: BTreeMap<Arc<[u8]>, u32>,
}

impl Strings {
    /// The index of a string.
    pub(super) fn add(&mut self, text: &[u8]) -> u64 {
        if let Some(index) = self.index.get(text) {
            return (*index).into();
        }
        let text: Arc<[u8]> = text.into();
        let index = self.list.len() as u32;
        self.list.push(Arc::clone(&text));
        self.index.insert(text, index);
        index.into()
    }
}

/// An attribute or type: whose it is, whether it is binary and not text, and its bytes.
pub(super) type Entry = (&'static str, bool, Arc<[u8]>);

/// Attributes or types, each once.
#[derive(Default)]
pub(super) struct Entries {
    pub list: Vec<Entry>,
    index: BTreeMap<Entry, u32>,
}

impl Entries {
    /// The index of a binary entry.
    pub(super) fn add(&mut self, dialect: &'static str, entry: Emitter) -> u32 {
        self.add_entry((dialect, true, entry.bytes.into()))
    }
    /// An entry that is text, which a zero byte ends.
    pub(super) fn add_text(&mut self, dialect: &'static str, text: &str) -> u32 {
        let bytes = text.bytes().chain([0]).collect();
        self.add_entry((dialect, false, bytes))
    }
    fn add_entry(&mut self, entry: Entry) -> u32 {
        let next = self.list.len() as u32;
        *self.index.entry(entry).or_insert_with_key(|entry| {
            self.list.push(entry.clone());
            next
        })
    }
}

/// The tables.
pub(super) struct Encoder {
    /// The version of StableHLO that is written.
    pub version: Version,
    pub strings: Strings,
    pub attrs: Entries,
    pub types: Entries,
    /// Locations by where they are in memory, which is only used to find them again.
    pub locs: BTreeMap<usize, (Loc, u32)>,
    depth: usize,
}

pub(super) type Result<T> = std::result::Result<T, Wrong>;

impl Encoder {
    /// Tables for a version of StableHLO.
    pub(super) fn new(version: Version) -> Self {
        Self {
            version,
            strings: Strings::default(),
            attrs: Entries::default(),
            types: Entries::default(),
            locs: BTreeMap::new(),
            depth: 0,
        }
    }
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        let result = match self.depth > DEPTH {
            true => Err(format!(
                "an attribute, type or location nests more than {DEPTH} deep"
            )),
            false => inner(self),
        };
        self.depth -= 1;
        result
    }
    pub(super) fn since(&self, version: Version, what: &str) -> Result<()> {
        if self.version >= version {
            return Ok(());
        }
        let (major, minor) = version;
        Err(format!("{what} needs StableHLO {major}.{minor}"))
    }

    /// The index of a type, as VHLO has it.
    pub(super) fn ty(&mut self, ty: &Type) -> Result<u32> {
        self.nested(|this| this.type_entry(ty))
    }
    fn type_entry(&mut self, ty: &Type) -> Result<u32> {
        self.since(type_version(ty), "a type")?;
        let mut out = Emitter::default();
        let simple = vhlo::SIMPLE_TYPES.iter().find(|(_, simple)| simple == ty);
        match ty {
            _ if let Some((code, _)) = simple => out.varint(*code),
            Type::Complex(part) => {
                out.varint(1);
                out.varint(self.ty(part)?.into());
            }
            Type::Function(function) => {
                out.varint(8);
                out.indices(&self.types(&function.inputs)?);
                out.indices(&self.types(&function.results)?);
            }
            Type::Tensor(tensor) => {
                match &tensor.encoding {
                    None => out.varint(20),
                    Some(encoding) => {
                        out.varint(21);
                        out.varint(self.attr(encoding)?.into());
                    }
                }
                self.shape(tensor, &mut out)?;
            }
            Type::Tuple(parts) => {
                out.varint(23);
                out.indices(&self.types(parts)?);
            }
            Type::UnrankedTensor(element) => {
                out.varint(25);
                out.varint(self.ty(element)?.into());
            }
            Type::MemRef(buffer) if buffer.encoding.is_none() => {
                out.varint(41);
                self.shape(buffer, &mut out)?;
            }
            Type::Future(parts) => {
                out.varint(42);
                out.indices(&self.types(parts)?);
            }
            Type::Quantized(quantized) => self.quantized(quantized, &mut out)?,
            _ => return Err("a type that VHLO does not have".to_owned()),
        }
        Ok(self.types.add("vhlo", out))
    }
    fn types(&mut self, types: &[Type]) -> Result<Vec<u32>> {
        types.iter().map(|ty| self.ty(ty)).collect()
    }
    fn shape(&mut self, tensor: &TensorType, out: &mut Emitter) -> Result<()> {
        dims(tensor, out)?;
        out.varint(self.ty(&tensor.element)?.into());
        Ok(())
    }
    fn quantized(&mut self, quantized: &QuantizedType, out: &mut Emitter) -> Result<()> {
        let storage = self.ty(&Type::signless(quantized.storage_width))?;
        let expressed = self.ty(&Type::Float(quantized.expressed))?;
        let head = |out: &mut Emitter, code| {
            out.varint(code);
            out.varint(quantized.storage_signed.into());
            out.varint(storage.into());
            out.varint(expressed.into());
        };
        let bounds = [quantized.storage_min, quantized.storage_max];
        match &quantized.scheme {
            QuantizedScheme::PerTensor => {
                head(out, 24);
                for scale in &quantized.scales {
                    out.signed(*scale as i64);
                }
                for value in quantized.zero_points.iter().chain(&bounds) {
                    out.signed(*value);
                }
            }
            QuantizedScheme::PerAxis(axis) => {
                head(out, 30);
                out.varint(*axis);
                for bound in bounds {
                    out.signed(bound);
                }
                out.count(quantized.scales.len());
                for scale in &quantized.scales {
                    out.signed(*scale as i64);
                }
                out.signed_list(&quantized.zero_points);
            }
            QuantizedScheme::SubChannel { .. } => {
                return Err("a quantized type with blocks, which VHLO does not have".to_owned());
            }
        }
        Ok(())
    }

    /// The index of an attribute, as VHLO has it.
    pub(super) fn attr(&mut self, attr: &Attr) -> Result<u32> {
        self.nested(|this| this.attr_entry(attr))
    }
    /// The index of the API version of a custom call, which is a case of an enumeration in VHLO.
    pub(super) fn api_version(&mut self, attr: &Attr) -> Result<u32> {
        let version = match attr {
            Attr::Integer { value, ty } if *ty == Type::signless(32) => u64::try_from(*value).ok(),
            _ => None,
        };
        let version = version.ok_or("an API version that is no number of 32 bits")?;
        let mut out = Emitter::default();
        out.varint(5);
        out.varint(version);
        Ok(self.attrs.add("vhlo", out))
    }
    fn attr_entry(&mut self, attr: &Attr) -> Result<u32> {
        let mut out = Emitter::default();
        match attr {
            Attr::Array(items) => {
                out.varint(1);
                let items: Result<Vec<u32>> = items.iter().map(|item| self.attr(item)).collect();
                out.indices(&items?);
            }
            Attr::Bool(value) => {
                out.varint(2);
                out.varint((*value).into());
            }
            Attr::Dict(entries) => {
                out.varint(6);
                out.count(entries.len());
                for (name, attr) in entries.iter() {
                    out.varint(self.attr(&Attr::string(name))?.into());
                    out.varint(self.attr(attr)?.into());
                }
            }
            Attr::Float { bits, ty } => {
                out.varint(8);
                out.varint(self.ty(ty)?.into());
                float(*bits, ty, &mut out);
            }
            Attr::Integer { value, ty } => {
                out.varint(9);
                out.varint(self.ty(ty)?.into());
                integer(*value, ty, &mut out)?;
            }
            Attr::String(text) => {
                out.varint(14);
                out.varint(self.strings.add(text));
            }
            Attr::Symbol(symbol) if symbol.nested.is_empty() => {
                out.varint(14);
                out.varint(self.strings.add(symbol.root.as_bytes()));
            }
            Attr::Dense(dense) => {
                out.varint(15);
                out.varint(self.ty(&dense.ty)?.into());
                out.blob(&elements(dense)?);
            }
            Attr::DenseArray(array) => return self.attr(&as_tensor(array)),
            Attr::Type(ty) => {
                out.varint(17);
                out.varint(self.ty(ty)?.into());
            }
            Attr::Enum(case) => {
                let known = vhlo::ENUMERATIONS
                    .iter()
                    .find(|(_, known)| case.kind == known.kind);
                let number =
                    known.and_then(|(code, known)| Some((code, known.number(&case.case)?)));
                let (code, number) =
                    number
                        .filter(|_| case.dialect == "stablehlo")
                        .ok_or_else(|| {
                            format!(
                                "`{}` of `{}`, which VHLO does not have",
                                case.case, case.kind
                            )
                        })?;
                out.varint(*code);
                out.varint(number);
            }
            Attr::Struct(fields) if fields.dialect == "stablehlo" => {
                self.structure(fields, &mut out)?
            }
            _ => return self.foreign(attr),
        }
        Ok(self.attrs.add("vhlo", out))
    }
    fn structure(&mut self, fields: &StructAttr, out: &mut Emitter) -> Result<()> {
        let kind = &*fields.kind;
        let wrong =
            || format!("the attribute `#stablehlo.{kind}`, which VHLO does not have as it is");
        let int = |name| fields.int(name).ok_or_else(wrong);
        let ints = |name| fields.ints(name).ok_or_else(wrong);
        match kind {
            "output_operand_alias" => {
                out.varint(10);
                out.signed_list(&ints("output_tuple_indices")?);
                out.signed(int("operand_index")?);
                out.signed_list(&ints("operand_tuple_indices")?);
            }
            "bounds" => {
                out.varint(18);
                out.signed_list(&ints("bounds")?);
            }
            "result_accuracy" => {
                self.since((1, 9), "an accuracy")?;
                out.varint(20);
                for name in ["atol", "rtol"] {
                    match fields.field(name) {
                        None => out.signed(0),
                        Some(Attr::Float {
                            bits,
                            ty: Type::F64,
                        }) => out.signed(*bits as i64),
                        Some(_) => return Err(wrong()),
                    }
                }
                out.signed(int("ulps")?);
                let mode = fields.field("mode").ok_or_else(wrong)?;
                out.varint(self.attr(mode)?.into());
            }
            "sub_axis_info" => {
                out.varint(21);
                out.signed(int("pre_size")?);
                out.signed(int("size")?);
            }
            "axis_ref" => {
                out.varint(22);
                out.varint(self.attr(fields.field("name").ok_or_else(wrong)?)?.into());
                match fields.field("sub_axis_info") {
                    None => out.varint(0),
                    Some(part) => {
                        out.varint(1);
                        out.varint(self.attr(part)?.into());
                    }
                }
            }
            "replica_group_mesh_axes" => {
                self.since((1, 16), "a mesh")?;
                out.varint(23);
                out.varint(self.attr(fields.field("mesh").ok_or_else(wrong)?)?.into());
                let axes = fields.field("axes").cloned();
                let axes = axes.unwrap_or_else(|| Attr::array(Vec::new()));
                out.varint(self.attr(&axes)?.into());
            }
            "mesh_axis" => {
                out.varint(24);
                out.varint(self.attr(fields.field("name").ok_or_else(wrong)?)?.into());
                out.signed(int("size")?);
            }
            "mesh" => {
                out.varint(25);
                let axes = fields.field("axes").cloned();
                let axes = axes.unwrap_or_else(|| Attr::array(Vec::new()));
                out.varint(self.attr(&axes)?.into());
                match fields.field("device_ids") {
                    None => out.varint(0),
                    Some(devices) => out.flagged(self.attr(devices)?.into(), true),
                }
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }
    /// An attribute that VHLO does not have, as its own dialect has it.
    fn foreign(&mut self, attr: &Attr) -> Result<u32> {
        self.since((1, 11), attr.what())?;
        self.own_attr(attr)
    }
}

/// The version of StableHLO that has a type, not counting its parts.
fn type_version(ty: &Type) -> Version {
    match ty {
        Type::Integer { width: 2, .. } => (1, 2),
        Type::None => (1, 6),
        Type::MemRef(_) => (1, 13),
        Type::Future(_) => (1, 15),
        Type::Quantized(quantized) if quantized.scheme != QuantizedScheme::PerTensor => (0, 18),
        Type::Float(kind) => match kind.name() {
            "f8E4M3FNUZ" | "f8E5M2FNUZ" => (0, 10),
            "f8E4M3B11FNUZ" => (0, 11),
            "tf32" => (1, 6),
            "f8E4M3" | "f8E3M4" => (1, 7),
            "f4E2M1FN" | "f6E2M3FN" | "f6E3M2FN" | "f8E8M0FNU" => (1, 8),
            _ => (0, 9),
        },
        _ => (0, 9),
    }
}

pub(super) fn dims(tensor: &TensorType, out: &mut Emitter) -> Result<()> {
    out.count(tensor.dims.len());
    for dim in &tensor.dims {
        out.signed(match dim {
            None => Attr::DYNAMIC,
            Some(dim) => i64::try_from(*dim).map_err(|_| format!("the size {dim}"))?,
        });
    }
    Ok(())
}

/// An integer of `width` bits, zero above them, by its width.
fn bits(value: u128, width: u32, out: &mut Emitter) {
    match width {
        0..=8 => out.byte(value as u8),
        9..=64 => out.signed(value as u64 as i64),
        _ => {
            let words = [value as u64, (value >> 64) as u64];
            let active = 2 - usize::from(words[1] == 0) - usize::from(value == 0);
            out.count(active);
            for word in &words[..active] {
                out.signed(*word as i64);
            }
        }
    }
}

pub(super) fn integer(value: i128, ty: &Type, out: &mut Emitter) -> Result<()> {
    let width = match ty {
        Type::Integer { width, .. } if *width <= 128 => *width,
        Type::Index => 64,
        _ => return Err("an integer of a type that is not written".to_owned()),
    };
    let unused = 128 - width;
    let value = if width == 0 { 0 } else { value as u128 };
    bits(value << unused.min(127) >> unused.min(127), width, out);
    Ok(())
}

pub(super) fn float(value: u64, ty: &Type, out: &mut Emitter) {
    let width = match ty {
        Type::Float(kind) => kind.bit_width() as u32,
        _ => 64,
    };
    bits(value.into(), width, out);
}

/// A list of numbers as a dense tensor.
fn as_tensor(array: &DenseArray) -> Attr {
    let ty = Type::static_tensor(&[array.len() as u64], array.element.clone());
    Attr::Dense(Dense::new(ty, array.data.to_vec()))
}

/// The bytes of dense elements, as MLIR has them.
pub(super) fn elements(dense: &Dense) -> Result<Vec<u8>> {
    let DenseData::Bytes(bytes) = &dense.data else {
        return Err("strings in a tensor".to_owned());
    };
    Ok(match *dense.ty.element() {
        Type::I1 if dense.splat && dense.element_count() > 1 => {
            vec![if bytes.first() == Some(&0) { 0 } else { 0xFF }]
        }
        Type::I1 => {
            let pack = |bits: &[u8]| {
                let bits = bits.iter().enumerate();
                bits.fold(0, |byte, (i, bit)| byte | u8::from(*bit != 0) << i)
            };
            bytes.chunks(8).map(pack).collect()
        }
        Type::Integer { width, .. } => {
            let mut bytes = bytes.to_vec();
            // Bits beyond an element's own are zero.
            if width % 8 != 0 {
                let last = bytes.chunks_mut(width.div_ceil(8) as usize);
                let last = last.filter_map(<[u8]>::last_mut);
                last.for_each(|byte| *byte &= (1 << (width % 8)) - 1);
            }
            bytes
        }
        _ => bytes.to_vec(),
    })
}
