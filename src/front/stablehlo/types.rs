//! Types of MLIR and shapes of HLO.

use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::mlir::Attr;
use crate::mlir::Dense;
use crate::mlir::Signedness;
use crate::mlir::TensorType;
use crate::mlir::Type;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// What an MLIR type is to HLO.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// A shape of known or bounded sizes.
    Whole(Shape),
    /// An array some of whose sizes are not known; the rank and element type are.
    Open {
        /// Element type.
        ty: PrimitiveType,
        /// Sizes; `None` is not known.
        dims: Vec<Option<usize>>,
    },
    /// An array of unknown rank.
    Unranked(PrimitiveType),
}

/// The shape of a type, or in words why it has none.
pub fn shape_of(ty: &Type) -> Result<Known, String> {
    match ty {
        Type::Tensor(tensor) => tensor_shape(tensor),
        Type::UnrankedTensor(element) => element_type(element).map(Known::Unranked),
        Type::Token => Ok(Known::Whole(Shape::Token)),
        Type::Tuple(elements) => {
            let elements: Result<Vec<Shape>, String> = elements
                .iter()
                .map(|element| match shape_of(element)? {
                    Known::Whole(shape) => Ok(shape),
                    _ => Err("a tuple of arrays whose sizes are not known".to_owned()),
                })
                .collect();
            Ok(Known::Whole(Shape::Tuple(elements?)))
        }
        Type::Integer { .. } | Type::Float(_) | Type::Index | Type::Complex(_) => {
            element_type(ty).map(|ty| Known::Whole(Shape::scalar(ty)))
        }
        other => Err(format!("a value of the type {other:?}")),
    }
}

/// The element type of HLO, or in words why there is none.
///
/// Quantized elements are the integers that are stored.
pub fn element_type(ty: &Type) -> Result<PrimitiveType, String> {
    let stored = match ty {
        Type::Quantized(of) => Type::Integer {
            width: of.storage_width,
            sign: match of.storage_signed {
                true => Signedness::Signed,
                false => Signedness::Unsigned,
            },
        },
        other => other.clone(),
    };
    let ty = stored.primitive();
    ty.ok_or_else(|| format!("elements of the type {stored:?}"))
}

/// Whether two types may be those of one value: they are the same but for sizes that one leaves open.
pub fn agree(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) => {
            let mut pairs = a.dims.iter().zip(&b.dims);
            a.element == b.element
                && a.dims.len() == b.dims.len()
                && pairs.all(|(a, b)| a == b || a.is_none() || b.is_none())
        }
        (Type::Tensor(of), Type::UnrankedTensor(element))
        | (Type::UnrankedTensor(element), Type::Tensor(of)) => of.element == **element,
        _ => a == b,
    }
}

/// The type with the floats that quantized elements stand for; any other type is itself.
pub fn expressed(ty: &Type) -> Type {
    match ty {
        Type::Quantized(of) => Type::Float(of.expressed),
        Type::Tensor(tensor) => match &tensor.element {
            Type::Quantized(of) => Type::Tensor(std::sync::Arc::new(TensorType {
                element: Type::Float(of.expressed),
                ..(**tensor).clone()
            })),
            _ => ty.clone(),
        },
        _ => ty.clone(),
    }
}

fn tensor_shape(tensor: &TensorType) -> Result<Known, String> {
    let ty = element_type(&tensor.element)?;
    let size = |d: u64| usize::try_from(d).map_err(|_| format!("a dimension of size {d}"));
    let dims: Result<Vec<Option<usize>>, String> = tensor
        .dims
        .iter()
        .map(|d| d.map(size).transpose())
        .collect();
    let dims = dims?;
    let bounds = tensor.bounds().unwrap_or_default();
    let bound = |d: usize| bounds.get(d).copied().flatten();
    if (0..dims.len()).any(|d| dims[d].is_none() && bound(d).is_none()) {
        return Ok(Known::Open { ty, dims });
    }
    let mut array = ArrayShape::new(ty, []);
    for (d, known) in dims.iter().enumerate() {
        array.dims.push(match known {
            Some(known) => *known,
            None => size(bound(d).unwrap_or_default())?,
        });
    }
    if dims.contains(&None) {
        array.dynamic = dims.iter().map(Option::is_none).collect();
    }
    if array.checked_element_count().is_none() {
        return Err(format!("`{array}`, which is larger than memory can be"));
    }
    Ok(Known::Whole(Shape::Array(array)))
}

/// The dense elements as a literal: one element for a splat, and the sizes of the whole.
pub fn dense_literal(dense: &Dense) -> Result<(ArrayLiteral, Dims), String> {
    let tensor = match &dense.ty {
        Type::Tensor(tensor) | Type::Vector(tensor) => tensor,
        other => return Err(format!("dense elements of the type {other:?}")),
    };
    let Known::Whole(Shape::Array(array)) = tensor_shape(tensor)? else {
        return Err("dense elements of unknown sizes".to_owned());
    };
    let bytes = dense.bytes().ok_or("dense elements that are strings")?;
    let dims = array.dims.clone();
    let stored = if dense.splat {
        ArrayShape::scalar(array.ty)
    } else {
        array
    };
    if bytes.len() != stored.element_count() * stored.ty.byte_width() {
        return Err(format!("{} bytes for {stored}", bytes.len()));
    }
    Ok((ArrayLiteral::new(stored, bytes.to_vec()), dims))
}

/// The MLIR type of a shape; tuples become tuples.
pub fn type_of(shape: &Shape) -> Type {
    match shape {
        Shape::Array(array) => array_type(array),
        Shape::Tuple(elements) => Type::Tuple(elements.iter().map(type_of).collect()),
        Shape::Token => Type::Token,
        Shape::Opaque => Type::Opaque("stablehlo.opaque".into()),
    }
}

fn array_type(array: &ArrayShape) -> Type {
    let element = Type::from_primitive(array.ty);
    let dims = array.dims.iter().enumerate().map(|(d, &size)| {
        let size = size as u64;
        (!array.is_dynamic_dim(d)).then_some(size)
    });
    let encoding = array.is_dynamic().then(|| {
        let bounds = array.dims.iter().enumerate().map(|(d, &size)| {
            if array.is_dynamic_dim(d) {
                i64::try_from(size).unwrap_or(i64::MAX)
            } else {
                Attr::DYNAMIC
            }
        });
        let bounds: Vec<i64> = bounds.collect();
        let fields = vec![("bounds".into(), Attr::i64_array(&bounds))];
        Attr::structure("stablehlo", "bounds", fields)
    });
    Type::Tensor(std::sync::Arc::new(TensorType {
        dims: dims.collect(),
        element,
        encoding,
    }))
}

/// An array literal as dense elements; one element where all are the same.
pub fn literal_dense(literal: &ArrayLiteral) -> Dense {
    let bytes = literal.bytes();
    let width = literal.ty().byte_width();
    let splat = match bytes.get(..width) {
        Some(first) if !literal.is_empty() => bytes.chunks_exact(width).all(|c| c == first),
        _ => false,
    };
    let data = if splat { &bytes[..width] } else { bytes };
    let shape = literal.shape();
    let mut plain = ArrayShape::new(shape.ty, shape.dims.iter().copied());
    plain.layout = None;
    Dense {
        ty: array_type(&plain),
        splat,
        data: crate::mlir::DenseData::Bytes(data.into()),
    }
}

/// The shape itself when there is one, else a tuple of all.
pub fn one_or_tuple(shapes: Vec<Shape>) -> Shape {
    match <[Shape; 1]>::try_from(shapes) {
        Ok([one]) => one,
        Err(shapes) => Shape::Tuple(shapes),
    }
}

/// A literal that is one array.
pub fn array_of(literal: Literal) -> Option<ArrayLiteral> {
    match literal {
        Literal::Array(array) => Some(array),
        Literal::Tuple(_) | Literal::Token => None,
    }
}
