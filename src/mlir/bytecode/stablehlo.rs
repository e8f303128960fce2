//! Attributes and types of the `stablehlo` and `chlo` dialects in their own binary form.
//!
//! That form has no promise of stability: it is what the current dialects write. Source: StableHLO's
//! StablehloBytecode.cpp and ChloBytecode.cpp, for codes and fields.

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::DenseArray;
use crate::mlir::bytecode::table::Decoder;
use crate::mlir::structure::integer_fields;
use crate::mlir::structure::is_single;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

/// An enumeration: its name in StableHLO, and its cases by number.
pub(super) struct Enumeration {
    /// `precision`.
    pub kind: &'static str,
    /// The number of the first case.
    first: usize,
    /// `DEFAULT`, `HIGH`, `HIGHEST`.
    pub cases: &'static [&'static str],
}

impl Enumeration {
    const fn new(kind: &'static str, cases: &'static [&'static str]) -> Self {
        let first = 0;
        Self { kind, first, cases }
    }
    /// The number of a case.
    pub(super) fn number(&self, case: &str) -> Option<u64> {
        let at = self.cases.iter().position(|known| *known == case)?;
        Some((at + self.first) as u64)
    }
}

pub(super) const COMPARISON_DIRECTION: Enumeration = Enumeration::new(
    "comparison_direction",
    &["EQ", "NE", "GE", "GT", "LE", "LT"],
);
pub(super) const COMPARISON_TYPE: Enumeration = Enumeration::new(
    "comparison_type",
    &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"],
);
pub(super) const FFT_TYPE: Enumeration =
    Enumeration::new("fft_type", &["FFT", "IFFT", "RFFT", "IRFFT"]);
pub(super) const PRECISION: Enumeration =
    Enumeration::new("precision", &["DEFAULT", "HIGH", "HIGHEST"]);
pub(super) const RNG_ALGORITHM: Enumeration =
    Enumeration::new("rng_algorithm", &["DEFAULT", "THREE_FRY", "PHILOX"]);
pub(super) const RNG_DISTRIBUTION: Enumeration = Enumeration {
    kind: "rng_distribution",
    first: 1,
    cases: &["UNIFORM", "NORMAL"],
};
pub(super) const TRANSPOSE: Enumeration = Enumeration::new(
    "transpose",
    &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
);
pub(super) const ACCURACY_MODE: Enumeration =
    Enumeration::new("result_accuracy_mode", &["DEFAULT", "HIGHEST", "TOLERANCE"]);

/// Collects the fields of a structure and leaves out those with their default value.
#[derive(Default)]
pub(super) struct Fields(Vec<(Name, Attr)>);

impl Fields {
    /// A field.
    #[must_use]
    pub(super) fn with(self, name: &str, attr: Attr) -> Self {
        match attr.is_default_field() {
            true => self,
            false => self.always(name, attr),
        }
    }
    /// A field that is there even when its value is the default.
    #[must_use]
    pub(super) fn always(mut self, name: &str, attr: Attr) -> Self {
        self.0.push((name.into(), attr));
        self
    }
    /// A field, when there is a value.
    #[must_use]
    pub(super) fn maybe(self, name: &str, attr: Option<Attr>) -> Self {
        match attr {
            Some(attr) => self.with(name, attr),
            None => self,
        }
    }
    /// A field with the list of attributes that comes next.
    pub(super) fn list(self, name: &str, decoder: &mut Decoder<'_, '_>) -> Result<Self> {
        let items = decoder.attrs()?;
        Ok(self.with(name, Attr::array(items)))
    }
    /// A field with an integer.
    #[must_use]
    pub(super) fn int(self, name: &str, value: i64) -> Self {
        self.with(name, Attr::i64(value))
    }
    /// A field with a list of integers.
    #[must_use]
    pub(super) fn ints(self, name: &str, values: &[i64]) -> Self {
        self.with(name, Attr::DenseArray(DenseArray::i64(values)))
    }
    /// The structure, of StableHLO.
    pub(super) fn structure(self, kind: &str) -> Attr {
        self.of("stablehlo", kind)
    }
    /// The structure.
    pub(super) fn of(self, dialect: &str, kind: &str) -> Attr {
        Attr::structure(dialect, kind, self.0)
    }
}

/// A structure of integers only.
pub(super) fn integers(decoder: &mut Decoder<'_, '_>, kind: &str) -> Result<Attr> {
    let mut fields = Fields::default();
    for &field in integer_fields(kind).unwrap_or_default() {
        fields = if is_single(field) {
            fields.int(field, decoder.cursor.signed("an integer of an attribute")?)
        } else {
            fields.ints(
                field,
                &decoder.cursor.signed_list("integers of an attribute")?,
            )
        };
    }
    Ok(fields.structure(kind))
}

/// A case of an enumeration.
pub(super) fn case(
    decoder: &mut Decoder<'_, '_>,
    dialect: &str,
    enumeration: &Enumeration,
) -> Result<Attr> {
    let number = decoder.cursor.varint("the case of an enumeration")?;
    let index = usize::try_from(number).ok();
    let index = index.and_then(|index| index.checked_sub(enumeration.first));
    match index.and_then(|index| enumeration.cases.get(index)) {
        Some(case) => Ok(Attr::enumeration(dialect, enumeration.kind, case)),
        None => Err(decoder.unsupported(format!("case {number} of `{}`", enumeration.kind))),
    }
}

/// What accuracy an op shall have.
pub(super) fn result_accuracy(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let (atol, rtol) = (decoder.f64()?, decoder.f64()?);
    let ulps = decoder.cursor.signed("a number of ULPs")?;
    let mode = decoder.attr()?;
    Ok(accuracy_fields(atol, rtol, ulps)
        .with("mode", mode)
        .structure("result_accuracy"))
}

/// What accuracy an op shall have, from the bits of its tolerances and the name of its mode.
pub(super) fn accuracy(atol: u64, rtol: u64, ulps: i64, mode: &str) -> Attr {
    let mode = Attr::stablehlo_enum(ACCURACY_MODE.kind, mode);
    accuracy_fields(atol, rtol, ulps)
        .with("mode", mode)
        .structure("result_accuracy")
}

fn accuracy_fields(atol: u64, rtol: u64, ulps: i64) -> Fields {
    let ty = Type::F64;
    let float = |bits| Attr::Float {
        bits,
        ty: ty.clone(),
    };
    let fields = Fields::default().with("atol", float(atol));
    fields.with("rtol", float(rtol)).int("ulps", ulps)
}

/// The sizes that dynamic dimensions do not exceed.
pub(super) fn bounds(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let bounds = decoder.cursor.signed_list("bounds")?;
    Ok(Fields::default()
        .ints("bounds", &bounds)
        .structure("bounds"))
}

/// The axes of a mesh that form the groups of a collective op.
pub(super) fn mesh_axes(mesh: Attr, axes: Attr) -> Attr {
    let fields = Fields::default().with("mesh", mesh).with("axes", axes);
    fields.structure("replica_group_mesh_axes")
}

/// An axis of a mesh, or a part of it.
pub(super) fn axis_ref(name: Attr, part: Option<Attr>) -> Attr {
    let fields = Fields::default().with("name", name);
    fields.maybe("sub_axis_info", part).structure("axis_ref")
}

/// A mesh of devices.
pub(super) fn mesh(axes: Attr, devices: Option<Attr>) -> Attr {
    let fields = Fields::default().with("axes", axes);
    fields.maybe("device_ids", devices).structure("mesh")
}

/// An axis of a mesh: its name and its size.
pub(super) fn mesh_axis(name: Attr, size: i64) -> Attr {
    let fields = Fields::default().with("name", name).int("size", size);
    fields.structure("mesh_axis")
}

/// An attribute of `stablehlo`.
pub(super) fn attr(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let code = decoder.cursor.varint("the code of an attribute")?;
    let enumeration = match code {
        1 => return integers(decoder, "channel_handle"),
        2 => &COMPARISON_DIRECTION,
        3 => &COMPARISON_TYPE,
        4 => return integers(decoder, "conv"),
        5 => return integers(decoder, "dot"),
        6 => &FFT_TYPE,
        7 => return integers(decoder, "gather"),
        8 => &PRECISION,
        9 => &RNG_ALGORITHM,
        10 => &RNG_DISTRIBUTION,
        11 => return integers(decoder, "scatter"),
        12 => &TRANSPOSE,
        13 => return bounds(decoder),
        14 => return integers(decoder, "output_operand_alias"),
        15 => return dot_algorithm(decoder),
        16 => &ACCURACY_MODE,
        17 => return result_accuracy(decoder),
        18 => {
            let mesh = decoder.attr()?;
            return Ok(mesh_axes(mesh, Attr::array(decoder.attrs()?)));
        }
        19 => return integers(decoder, "sub_axis_info"),
        20 => {
            let name = Attr::String(decoder.string()?.into());
            let part = match decoder.cursor.byte("whether an axis is a part")? {
                0 => None,
                _ => Some(decoder.attr()?),
            };
            return Ok(axis_ref(name, part));
        }
        21 => {
            let name = Attr::String(decoder.string()?.into());
            let size = decoder.cursor.signed("the size of an axis")?;
            return Ok(mesh_axis(name, size));
        }
        22 => {
            let axes = decoder.attr()?;
            let devices = match decoder.cursor.byte("whether a mesh lists devices")? {
                0 => None,
                _ => Some(decoder.attr()?),
            };
            return Ok(mesh(axes, devices));
        }
        _ => return Err(decoder.unknown_code("an attribute", code)),
    };
    case(decoder, "stablehlo", enumeration)
}

fn dot_algorithm(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let mut fields = Fields::default();
    for name in [
        "lhs_precision_type",
        "rhs_precision_type",
        "accumulation_type",
    ] {
        fields = fields.with(name, Attr::Type(decoder.ty()?));
    }
    for name in [
        "lhs_component_count",
        "rhs_component_count",
        "num_primitive_operations",
    ] {
        fields = fields.int(name, decoder.cursor.signed("a count of an algorithm")?);
    }
    let imprecise = decoder
        .cursor
        .byte("whether accumulation may be imprecise")?
        != 0;
    let fields = fields.with("allow_imprecise_accumulation", Attr::Bool(imprecise));
    Ok(fields.structure("dot_algorithm"))
}

/// An attribute of `chlo`.
pub(super) fn chlo_attr(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let code = decoder.cursor.varint("the code of an attribute")?;
    match code {
        0 => case(decoder, "chlo", &COMPARISON_DIRECTION),
        1 => case(decoder, "chlo", &COMPARISON_TYPE),
        _ => Err(decoder.unknown_code("an attribute", code)),
    }
}

/// A type of `stablehlo`.
pub(super) fn ty(decoder: &mut Decoder<'_, '_>) -> Result<Type> {
    let code = decoder.cursor.varint("the code of a type")?;
    match code {
        0 => Ok(Type::Token),
        1 => Ok(Type::Future(decoder.types()?.into())),
        _ => Err(decoder.unknown_code("a type", code)),
    }
}
