//! The pretty forms of ops, as lists of steps.

mod others;
mod stablehlo;

pub(in crate::mlir) use others::REDUCTIONS;

use std::sync::Arc;

use crate::mlir::types::TensorType;
use crate::mlir::types::Type;

/// One step of reading an op after its name.
#[derive(Clone, Copy)]
pub(in crate::mlir) enum Step {
    /// An operand.
    Value,
    /// Operands with commas between, possibly none.
    Values,
    /// Operands with a comma after each, possibly none.
    ValuesComma,
    /// Punctuation.
    Text(&'static str),
    /// A word and `=`.
    Key(&'static str),
    /// These steps, when the first one comes next.
    Optional(&'static [Step]),
    /// A word, when a unit attribute is there.
    Flag(&'static str, &'static str),
    /// A word and `<a, b>`, when an attribute of `arith` of that kind is there: word and kind, and
    /// the attribute's name.
    Flags(&'static str, &'static str),
    /// An integer attribute of that many bits.
    Int(&'static str, u32),
    /// `[0, 1]`, an attribute `array<i64: 0, 1>`.
    Ints(&'static str),
    /// `true` or `false`.
    Bool(&'static str),
    /// A string.
    String(&'static str),
    /// `@name` as a string.
    SymbolName(&'static str),
    /// `@name`.
    Symbol(&'static str),
    /// A case of an enumeration of the op's dialect: attribute, enumeration.
    Case(&'static str, &'static str),
    /// The dictionary of other attributes, which may be missing.
    Dict,
    /// `[0:4, 0:8:2]`.
    Slice,
    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
    DotDims,
    /// `, precision = [DEFAULT, HIGH]`, optional.
    Precision,
    /// `, precision = [...], algorithm = <...>`, both optional.
    PrecisionAlgorithm,
    /// `[b, 0, f]x[0, i, o]->[b, 0, f]`.
    ConvDims,
    /// `stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]`.
    Window,
    /// `e5m10`.
    ExponentMantissa,
    /// A word that stands for its number in the list, of that many bits.
    Choice(&'static str, &'static [&'static str], u32),
    /// `({...}, {...})`, optional.
    Regions,
    /// `(%a: t) {...}`, a region with its arguments before it.
    ArgsRegion,
    /// An attribute of Shardy without its `#sdy` and kind.
    Shardy(&'static str, Sdy),
    /// The types of operands and results, in one of several forms.
    Typed(Types),
}

/// Kinds of attributes of Shardy.
#[derive(Clone, Copy)]
pub(in crate::mlir) enum Sdy {
    Mesh,
    Sharding,
    Shardings,
    ManualAxes,
    AxisList,
    AxisLists,
    AllToAll,
}

impl Sdy {
    /// The kind of the attribute.
    pub(in crate::mlir) fn name(self) -> &'static str {
        match self {
            Self::Mesh => "mesh",
            Self::Sharding => "sharding",
            Self::Shardings => "sharding_per_value",
            Self::ManualAxes => "manual_axes",
            Self::AxisList => "axis_ref_list",
            Self::AxisLists => "list_of_axis_ref_lists",
            Self::AllToAll => "all_to_all_param_list",
        }
    }
}

/// How types are given, after `:`.
#[derive(Clone, Copy)]
pub(in crate::mlir) enum Types {
    /// `(a, b) -> c`.
    Function,
    /// One type that all operands and the result have, or a function type.
    Same,
    /// As [`Types::Same`] for a complex result of real operands.
    Complex,
    /// The types of the predicate and the result, or a function type.
    Select,
    /// A tuple of the types of the operands.
    Tuple,
    /// The types of the operands, which are those of the results too.
    Pairwise,
    /// `()`, or operands with their types after `:`.
    Barrier,
    /// The types of the results.
    Results,
    /// `a -> b`, `a, b -> c`.
    Arrow,
    /// `a to b`.
    Cast,
    /// The types of the operands; nothing at all when there is no operand.
    Returned,
    /// The types of the operands, and a result of this kind.
    Gives(Given),
    /// One type that all operands and all of so many results have.
    All(usize),
    /// The type of the aggregate whose element is taken; indices are of type `index`.
    Element,
    /// The type of the aggregate whose size is taken.
    Size,
    /// The type of the result, whose elements the operands are.
    FromElements,
}

/// Types of results that a form does not spell.
#[derive(Clone, Copy)]
pub(in crate::mlir) enum Given {
    /// No result.
    Nothing,
    /// `!shape.witness`.
    Witness,
    /// `i1`.
    Bool,
    /// `i1`, or a tensor of those with the sizes of the operands.
    Compared,
    /// `index`.
    Index,
}

pub(super) const UNARY: &[Step] = &[Step::Value, Step::Dict, Step::Typed(Types::Same)];
pub(super) const BINARY: &[Step] = &[
    Step::Value,
    Step::Text(","),
    Step::Value,
    Step::Dict,
    Step::Typed(Types::Same),
];
pub(super) const OPERANDS: &[Step] = &[Step::Values, Step::Dict, Step::Typed(Types::Function)];
pub(super) const RESULTS: &[Step] = &[Step::Dict, Step::Typed(Types::Results)];
pub(super) const ARROW1: &[Step] = &[Step::Value, Step::Dict, Step::Typed(Types::Arrow)];
pub(super) const ARROW2: &[Step] = &[
    Step::Value,
    Step::Text(","),
    Step::Value,
    Step::Dict,
    Step::Typed(Types::Arrow),
];
pub(super) const CAST: &[Step] = &[Step::Value, Step::Dict, Step::Typed(Types::Cast)];
pub(super) const RETURN: &[Step] = &[Step::Values, Step::Dict, Step::Typed(Types::Returned)];
pub(super) const DICT_RETURN: &[Step] = &[Step::Dict, Step::Values, Step::Typed(Types::Returned)];

/// The form of an op, when it has one made of steps.
pub(in crate::mlir) fn form(dialect: &str, op: &str) -> Option<&'static [Step]> {
    let table = match dialect {
        "stablehlo" | "mhlo" => stablehlo::OPS,
        "chlo" => others::CHLO,
        "sdy" => others::SDY,
        "func" => others::FUNC,
        "arith" => others::ARITH,
        "shape" => others::SHAPE,
        "tensor" => others::TENSOR,
        "builtin" if op == "unrealized_conversion_cast" => return Some(others::CONVERSION_CAST),
        _ => return None,
    };
    match table.binary_search_by(|row| row.0.cmp(op)) {
        Ok(at) => Some(table[at].1),
        Err(_) if dialect == "chlo" && op.starts_with("broadcast_") => Some(others::CHLO_BROADCAST),
        Err(_) if dialect == "chlo" && others::CHLO_UNARY.contains(&op) => Some(ARROW1),
        Err(_) if dialect == "mhlo" && others::CHLO_UNARY.contains(&op) => Some(UNARY),
        Err(_) => None,
    }
}

/// What stands between the flags of `arith` where MLIR prints them in the generic form.
pub(in crate::mlir) fn flag_separator(kind: &str) -> &'static str {
    if kind == "fastmath" { "," } else { ", " }
}

/// The type of the real part of a tensor of complex numbers.
pub(in crate::mlir) fn real_of(ty: &Type) -> Option<Type> {
    let Type::Tensor(tensor) = ty else {
        return None;
    };
    let Type::Complex(part) = &tensor.element else {
        return None;
    };
    Some(Type::Tensor(Arc::new(TensorType {
        dims: tensor.dims.clone(),
        element: (**part).clone(),
        encoding: tensor.encoding.clone(),
    })))
}

/// The type of a comparison of values of that type: `i1`, or as many of those.
pub(in crate::mlir) fn compared(ty: &Type) -> Type {
    let of = |tensor: &TensorType| {
        Arc::new(TensorType {
            element: Type::I1,
            ..tensor.clone()
        })
    };
    match ty {
        Type::Tensor(tensor) => Type::Tensor(of(tensor)),
        Type::Vector(vector) => Type::Vector(of(vector)),
        Type::UnrankedTensor(_) => Type::UnrankedTensor(Arc::new(Type::I1)),
        _ => Type::I1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        for table in [
            stablehlo::OPS,
            others::CHLO,
            others::SDY,
            others::FUNC,
            others::ARITH,
            others::SHAPE,
            others::TENSOR,
        ] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
        assert!(others::CHLO_UNARY.is_sorted());
    }
}
