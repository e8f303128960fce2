//! Attributes and types of VHLO, StableHLO's versioned dialect, as those of StableHLO.
//!
//! Codes are never used again for something else, so one table reads every version. Source:
//! StableHLO's VhloBytecode.cpp and VhloTypes.td, for codes and fields.

use std::sync::Arc;

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::bytecode::builtin;
use crate::mlir::bytecode::elements;
use crate::mlir::bytecode::stablehlo;
use crate::mlir::bytecode::stablehlo::Enumeration;
use crate::mlir::bytecode::table::Decoder;
use crate::mlir::types::FloatKind;
use crate::mlir::types::FunctionType;
use crate::mlir::types::Signedness;
use crate::mlir::types::TensorType;
use crate::mlir::types::Type;

/// The names of the cases of a custom call's `api_version`, which StableHLO has as an integer.
const API_VERSIONS: u64 = 5;

/// An attribute.
pub(super) fn attr(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let code = decoder.cursor.varint("the code of an attribute")?;
    match ENUMERATIONS.iter().find(|known| known.0 == code) {
        Some((_, enumeration)) => stablehlo::case(decoder, "stablehlo", enumeration),
        None => other_attr(decoder, code),
    }
}

/// The codes of enumerations.
pub(super) const ENUMERATIONS: [(u64, &Enumeration); 8] = [
    (3, &stablehlo::COMPARISON_DIRECTION),
    (4, &stablehlo::COMPARISON_TYPE),
    (7, &stablehlo::FFT_TYPE),
    (11, &stablehlo::PRECISION),
    (12, &stablehlo::RNG_ALGORITHM),
    (13, &stablehlo::RNG_DISTRIBUTION),
    (16, &stablehlo::TRANSPOSE),
    (19, &stablehlo::ACCURACY_MODE),
];

fn other_attr(decoder: &mut Decoder<'_, '_>, code: u64) -> Result<Attr> {
    Ok(match code {
        1 => Attr::array(decoder.attrs()?),
        2 => match decoder.cursor.varint("a boolean")? {
            0 => Attr::Bool(false),
            1 => Attr::Bool(true),
            other => return Err(decoder.cursor.error(format!("a boolean is {other}"))),
        },
        5 => match decoder.cursor.varint("the API version of a custom call")? {
            version if version < API_VERSIONS => Attr::i32(version as i32),
            version => return Err(decoder.unsupported(format!("the API version {version}"))),
        },
        6 => builtin::dict(decoder)?,
        8 => {
            let ty = decoder.ty()?;
            builtin::float(decoder, ty)?
        }
        9 => {
            let ty = decoder.ty()?;
            builtin::integer(decoder, ty)?
        }
        10 => stablehlo::integers(decoder, "output_operand_alias")?,
        14 => Attr::String(decoder.string()?.into()),
        15 => {
            let ty = decoder.ty()?;
            elements::dense(decoder, ty)?
        }
        17 => Attr::Type(decoder.ty()?),
        18 => stablehlo::bounds(decoder)?,
        20 => stablehlo::result_accuracy(decoder)?,
        21 => stablehlo::integers(decoder, "sub_axis_info")?,
        22 => {
            let name = decoder.attr()?;
            let part = match decoder.cursor.varint("whether an axis is a part")? {
                0 => None,
                _ => Some(decoder.attr()?),
            };
            stablehlo::axis_ref(name, part)
        }
        23 => {
            let mesh = match decoder.attr()? {
                Attr::String(name) => Attr::symbol(&String::from_utf8_lossy(&name)),
                other => other,
            };
            stablehlo::mesh_axes(mesh, decoder.attr()?)
        }
        24 => {
            let name = decoder.attr()?;
            let size = decoder.cursor.signed("the size of an axis")?;
            stablehlo::mesh_axis(name, size)
        }
        25 => {
            let axes = decoder.attr()?;
            stablehlo::mesh(axes, decoder.optional_attr()?)
        }
        _ => return Err(decoder.unknown_code("an attribute", code)),
    })
}

const fn integer(width: u32, sign: Signedness) -> Type {
    Type::Integer { width, sign }
}

/// A type.
pub(super) fn ty(decoder: &mut Decoder<'_, '_>) -> Result<Type> {
    let code = decoder.cursor.varint("the code of a type")?;
    if let Some((_, ty)) = SIMPLE_TYPES.iter().find(|(number, _)| *number == code) {
        return Ok(ty.clone());
    }
    Ok(match code {
        1 => Type::Complex(Arc::new(decoder.ty()?)),
        8 => Type::Function(Arc::new(FunctionType {
            inputs: decoder.types()?,
            results: decoder.types()?,
        })),
        20 => Type::Tensor(Arc::new(builtin::tensor(decoder, None)?)),
        21 => {
            let encoding = decoder.attr()?;
            Type::Tensor(Arc::new(builtin::tensor(decoder, Some(encoding))?))
        }
        23 => Type::Tuple(decoder.types()?.into()),
        24 => builtin::per_tensor(decoder)?,
        25 => Type::UnrankedTensor(Arc::new(decoder.ty()?)),
        30 => builtin::per_axis(decoder)?,
        41 => {
            let TensorType { dims, element, .. } = builtin::tensor(decoder, None)?;
            let encoding = None;
            Type::MemRef(Arc::new(TensorType {
                dims,
                element,
                encoding,
            }))
        }
        42 => Type::Future(decoder.types()?.into()),
        _ => return Err(decoder.unknown_code("a type", code)),
    })
}

/// Types without parts, by their codes.
pub(super) const SIMPLE_TYPES: &[(u64, Type)] = &[
    (4, Type::F32),
    (0, Type::I1),
    (13, Type::I32),
    (14, Type::I64),
    (2, Type::Float(FloatKind::BF16)),
    (3, Type::Float(FloatKind::F16)),
    (5, Type::F64),
    (6, Type::Float(FloatKind::F8E4M3FN)),
    (7, Type::Float(FloatKind::F8E5M2)),
    (9, Type::Index),
    (10, Type::signless(4)),
    (11, Type::signless(8)),
    (12, Type::signless(16)),
    (15, integer(4, Signedness::Unsigned)),
    (16, integer(8, Signedness::Unsigned)),
    (17, integer(16, Signedness::Unsigned)),
    (18, integer(32, Signedness::Unsigned)),
    (19, integer(64, Signedness::Unsigned)),
    (22, Type::Token),
    (26, Type::Witness),
    (27, Type::Float(FloatKind::F8E4M3FNUZ)),
    (28, Type::Float(FloatKind::F8E5M2FNUZ)),
    (29, Type::Float(FloatKind::F8E4M3B11FNUZ)),
    (31, Type::signless(2)),
    (32, integer(2, Signedness::Unsigned)),
    (33, Type::None),
    (34, Type::Float(FloatKind::TF32)),
    (35, Type::Float(FloatKind::F8E4M3)),
    (36, Type::Float(FloatKind::F8E3M4)),
    (37, Type::Float(FloatKind::F4E2M1FN)),
    (38, Type::Float(FloatKind::F6E2M3FN)),
    (39, Type::Float(FloatKind::F6E3M2FN)),
    (40, Type::Float(FloatKind::F8E8M0FNU)),
];
