//! What XLA leaves to its library of whole fusions (YNNPACK, `xla/backends/cpu/ynn_support.cc`), as
//! plain data: a list of values, each of which is computed from ones before it.
//!
//! Every array in it is dense and row-major.

use std::sync::Arc;

use crate::executable::ConvWindowDim;
use crate::executable::ConvolutionThunk;
use crate::executable::DotThunk;
use crate::executable::ShapedSlice;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::index::is_permutation;

/// A fusion that another producer left to its own library.
#[derive(Clone, Debug, PartialEq)]
pub struct LibraryFusionThunk {
    /// Complete id of the instruction in the bundle's HLO.
    pub instruction: i64,
    /// Whether that instruction is a fusion, as in jaxlib from 0.10.1 on, or all there is.
    pub is_fusion: bool,
    /// Operands.
    pub args: Vec<ShapedSlice>,
    /// Results.
    pub results: Vec<ShapedSlice>,
    /// What it computes, or why this program cannot.
    pub body: Result<FusionBody, String>,
}

/// What a fusion computes; the last value is its result.
#[derive(Clone, Debug, PartialEq)]
pub struct FusionBody {
    /// The values.
    pub values: Vec<FusionValue>,
}

/// One value of a fusion.
#[derive(Clone, Debug, PartialEq)]
pub struct FusionValue {
    /// What it is.
    pub shape: ArrayShape,
    /// The values it is computed from.
    pub operands: Vec<usize>,
    /// How.
    pub op: FusionOp,
}

/// How a value of a fusion is computed.
#[derive(Clone, Debug, PartialEq)]
pub enum FusionOp {
    /// The operand of that number.
    Parameter(usize),
    /// These bytes.
    Constant(Arc<Vec<u8>>),
    /// The position along a dimension.
    Iota(usize),
    /// A function of each element.
    Unary(UnaryFn),
    /// A function of each pair of elements.
    Binary(BinaryFn),
    /// The same elements in the same order: reshape, bitcast, copy.
    Same,
    /// Operand dimension `i` is result dimension `dims[i]`.
    Broadcast(Dims),
    /// Result dimension `i` is operand dimension `order[i]`.
    Transpose(Dims),
    /// The elements from `starts` on, every `strides`-th.
    Slice {
        /// First position along each dimension.
        starts: Dims,
        /// Distance of elements along each dimension.
        strides: Dims,
    },
    /// The operands one after the other along a dimension.
    Concatenate(usize),
    /// The first operand with the second, a scalar, around it; `low` elements before the first along
    /// each dimension, which cuts elements off where it is negative.
    Pad {
        /// Elements before the first.
        low: Vec<i64>,
    },
    /// A product of matrices. Its slices name no memory.
    Dot(Box<DotThunk>),
    /// A convolution. Its slices name no memory.
    Convolution(Box<ConvolutionThunk>),
    /// The first operand combined along dimensions, beginning with the second, a scalar.
    Reduce(Reducer, Dims),
    /// As above, in windows. Base dilation is 1, and nothing is reversed.
    ReduceWindow(Reducer, Vec<ConvWindowDim>),
}

/// Functions of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the function it is named for")]
pub enum UnaryFn {
    Abs,
    Ceil,
    Convert,
    Cosine,
    Erf,
    Exp,
    ExpMinusOne,
    Floor,
    Log,
    LogPlusOne,
    Logistic,
    Negate,
    RoundEven,
    Rsqrt,
    Sign,
    Sine,
    Sqrt,
    Tan,
    Tanh,
}

impl UnaryFn {
    /// The function of an HLO opcode.
    pub fn from_opcode(opcode: &str) -> Option<Self> {
        Some(match opcode {
            "abs" => Self::Abs,
            "ceil" => Self::Ceil,
            "convert" => Self::Convert,
            "cosine" => Self::Cosine,
            "erf" => Self::Erf,
            "exponential" => Self::Exp,
            "exponential-minus-one" => Self::ExpMinusOne,
            "floor" => Self::Floor,
            "log" => Self::Log,
            "log-plus-one" => Self::LogPlusOne,
            "logistic" => Self::Logistic,
            "negate" => Self::Negate,
            "round-nearest-even" => Self::RoundEven,
            "rsqrt" => Self::Rsqrt,
            "sign" => Self::Sign,
            "sine" => Self::Sine,
            "sqrt" => Self::Sqrt,
            "tan" => Self::Tan,
            "tanh" => Self::Tanh,
            _ => return None,
        })
    }

    /// Whether it is defined on integers.
    fn takes_integers(self) -> bool {
        matches!(self, Self::Abs | Self::Convert | Self::Negate | Self::Sign)
    }
}

/// Functions of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the function it is named for")]
pub enum BinaryFn {
    Add,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Power,
    Subtract,
}

impl BinaryFn {
    /// The function of an HLO opcode.
    pub fn from_opcode(opcode: &str) -> Option<Self> {
        Some(match opcode {
            "add" => Self::Add,
            "divide" => Self::Divide,
            "maximum" => Self::Maximum,
            "minimum" => Self::Minimum,
            "multiply" => Self::Multiply,
            "power" => Self::Power,
            "subtract" => Self::Subtract,
            _ => return None,
        })
    }

    fn takes_integers(self) -> bool {
        !matches!(self, Self::Divide | Self::Power)
    }
}

/// How elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the function it is named for")]
pub enum Reducer {
    Sum,
    Maximum,
    Minimum,
}

impl Reducer {
    /// The reducer whose body is that HLO opcode.
    pub fn from_opcode(opcode: &str) -> Option<Self> {
        Some(match opcode {
            "add" => Self::Sum,
            "maximum" => Self::Maximum,
            "minimum" => Self::Minimum,
            _ => return None,
        })
    }
}

/// Largest size of a value, in bytes.
const MAX_BYTES: usize = 1 << 36;

/// Whether a fusion computes with elements of the type.
fn is_known(ty: PrimitiveType) -> bool {
    use PrimitiveType as P;
    matches!(
        ty,
        P::F64 | P::F32 | P::F16 | P::BF16 | P::S8 | P::U8 | P::S16 | P::U16 | P::S32 | P::U32
    )
}

impl LibraryFusionThunk {
    /// What is wrong with the body, or with how the thunk's slices fit it.
    pub(super) fn fault(
        &self,
        dot: impl Fn(&DotThunk) -> Option<String>,
        convolution: impl Fn(&ConvolutionThunk) -> Option<String>,
    ) -> Option<String> {
        let Ok(body) = &self.body else {
            return None;
        };
        let [result] = self.results.as_slice() else {
            return Some(format!("{} results, wanted one", self.results.len()));
        };
        for (i, value) in body.values.iter().enumerate() {
            let fault = value.fault(&body.values[..i], &self.args, &dot, &convolution);
            if let Some(fault) = fault {
                return Some(format!("value {i} of its body: {fault}"));
            }
        }
        match body.values.last() {
            Some(last) if is_same(&last.shape, &result.shape) => None,
            Some(_) => Some("its body computes another shape than its result".to_owned()),
            None => Some("its body is empty".to_owned()),
        }
    }
}

/// Equal types and sizes, the elements in row-major order.
fn is_same(a: &ArrayShape, b: &ArrayShape) -> bool {
    a.same_ignoring_layout(b)
        && a.layout_or_default().is_row_major()
        && b.layout_or_default().is_row_major()
}

impl FusionValue {
    fn fault(
        &self,
        before: &[Self],
        args: &[ShapedSlice],
        dot: &impl Fn(&DotThunk) -> Option<String>,
        convolution: &impl Fn(&ConvolutionThunk) -> Option<String>,
    ) -> Option<String> {
        let shape = &self.shape;
        if !is_known(shape.ty) || shape.is_dynamic() {
            return Some(format!("elements of type {}", shape.ty));
        }
        let bytes = shape.checked_element_count().map(|_| shape.byte_size());
        if bytes.is_none_or(|bytes| bytes > MAX_BYTES) || !shape.layout_or_default().is_row_major()
        {
            return Some("its array is too large, or not row-major".to_owned());
        }
        let operands = self.operands.iter().map(|&at| Some(&before.get(at)?.shape));
        let Some(operands) = operands.collect::<Option<Vec<_>>>() else {
            return Some("it is computed from a value that comes later".to_owned());
        };
        self.op_fault(&operands, args, dot, convolution)
    }

    fn op_fault(
        &self,
        operands: &[&ArrayShape],
        args: &[ShapedSlice],
        dot: &impl Fn(&DotThunk) -> Option<String>,
        convolution: &impl Fn(&ConvolutionThunk) -> Option<String>,
    ) -> Option<String> {
        let shape = &self.shape;
        let wrong = || Some("its shape does not follow from its operands".to_owned());
        let fits = match (&self.op, operands) {
            (FusionOp::Parameter(number), []) => args
                .get(*number)
                .is_some_and(|arg| is_same(&arg.shape, shape)),
            (FusionOp::Constant(bytes), []) => bytes.len() == shape.byte_size(),
            (FusionOp::Iota(dim), []) => *dim < shape.rank(),
            (FusionOp::Unary(function), [x]) => {
                let is_integer = x.ty.is_integer() || shape.ty.is_integer();
                x.dims == shape.dims
                    && (x.ty == shape.ty || *function == UnaryFn::Convert)
                    && (!is_integer || function.takes_integers())
            }
            (FusionOp::Binary(function), [x, y]) => {
                x.dims == shape.dims
                    && y.dims == shape.dims
                    && x.ty == y.ty
                    && (!x.ty.is_integer() || function.takes_integers())
                    && x.ty.is_integer() == shape.ty.is_integer()
            }
            (FusionOp::Same, [x]) => x.ty == shape.ty && x.element_count() == shape.element_count(),
            (FusionOp::Broadcast(dims), [x]) => {
                let mut pairs = x.dims.iter().zip(dims);
                x.ty == shape.ty
                    && dims.len() == x.rank()
                    && pairs.all(|(n, &d)| shape.dims.get(d) == Some(n))
            }
            (FusionOp::Transpose(order), [x]) => {
                x.ty == shape.ty
                    && order.len() == x.rank()
                    && shape.rank() == x.rank()
                    && is_permutation(order)
                    && order.iter().zip(&shape.dims).all(|(&d, n)| x.dims[d] == *n)
            }
            (FusionOp::Slice { starts, strides }, [x]) => {
                let rank = x.rank();
                x.ty == shape.ty
                    && [starts.len(), strides.len(), shape.rank()] == [rank; 3]
                    && (0..rank)
                        .all(|d| slice_fits(x.dims[d], starts[d], strides[d], shape.dims[d]))
            }
            (FusionOp::Concatenate(dim), [first, ..]) => {
                let alike = |x: &&ArrayShape| {
                    let rest = |s: &ArrayShape| {
                        let mut dims = s.dims.clone();
                        dims[*dim] = 0;
                        (s.ty, dims)
                    };
                    x.rank() == shape.rank() && rest(x) == rest(shape)
                };
                let mut sizes = operands.iter().map(|x| x.dims.get(*dim).copied());
                let sum = sizes.try_fold(0usize, |sum, n| sum.checked_add(n?));
                *dim < shape.rank()
                    && first.rank() == shape.rank()
                    && operands.iter().all(alike)
                    && sum == Some(shape.dims[*dim])
            }
            (FusionOp::Pad { low }, [x, value]) => {
                let mut low = low.iter().map(|n| n.unsigned_abs() < 1 << 40);
                x.ty == shape.ty
                    && value.ty == shape.ty
                    && value.rank() == 0
                    && [low.len(), shape.rank()] == [x.rank(); 2]
                    && low.all(|fits| fits)
            }
            (FusionOp::Dot(thunk), [x, y]) => {
                let given = [&thunk.lhs.shape, &thunk.rhs.shape, &thunk.out.shape];
                let found = [*x, *y, shape];
                if given.iter().zip(found).any(|(a, b)| !is_same(a, b)) {
                    return wrong();
                }
                return dot(thunk);
            }
            (FusionOp::Convolution(thunk), [x, y]) => {
                let given = [&thunk.input.shape, &thunk.kernel.shape, &thunk.output.shape];
                let found = [*x, *y, shape];
                if given.iter().zip(found).any(|(a, b)| !is_same(a, b)) {
                    return wrong();
                }
                return convolution(thunk);
            }
            (FusionOp::Reduce(_, dims), [x, init]) => {
                let all = 0..x.rank();
                let kept: Dims = all
                    .filter(|d| !dims.contains(d))
                    .map(|d| x.dims[d])
                    .collect();
                let is_inside = |d: &usize| *d < x.rank();
                can_reduce(x, init, shape) && dims.iter().all(is_inside) && kept == shape.dims
            }
            (FusionOp::ReduceWindow(_, window), [x, init]) => {
                let rank = x.rank();
                can_reduce(x, init, shape)
                    && [window.len(), shape.rank()] == [rank; 2]
                    && (0..rank).all(|d| window_fits(x.dims[d], &window[d], shape.dims[d]))
            }
            _ => return Some(format!("{} operands", operands.len())),
        };
        if fits { None } else { wrong() }
    }
}

/// Whether an array can be combined to another, beginning with a scalar.
fn can_reduce(x: &ArrayShape, init: &ArrayShape, result: &ArrayShape) -> bool {
    init.rank() == 0 && init.ty == result.ty && x.ty.is_integer() == result.ty.is_integer()
}

/// Whether `wanted` elements from `start` on, `stride` apart, are among `size`.
fn slice_fits(size: usize, start: usize, stride: usize, wanted: usize) -> bool {
    let last = wanted.checked_sub(1);
    let last = last.map(|n| n.checked_mul(stride).and_then(|n| n.checked_add(start)));
    stride > 0
        && match last {
            None => true,
            Some(last) => last.is_some_and(|last| last < size),
        }
}

/// Whether a window makes `wanted` results of `size` elements.
fn window_fits(size: usize, window: &ConvWindowDim, wanted: usize) -> bool {
    let small = |n: i64| n.unsigned_abs() < 1 << 40;
    if ![window.size, window.stride, window.window_dilation]
        .iter()
        .all(|&n| n > 0 && small(n))
        || !small(window.padding_low)
        || !small(window.padding_high)
        || window.base_dilation != 1
        || window.reversal
    {
        return false;
    }
    let padded = size as i128 + i128::from(window.padding_low) + i128::from(window.padding_high);
    let reach = i128::from(window.size - 1) * i128::from(window.window_dilation) + 1;
    let found = match padded < reach {
        true => 0,
        false => (padded - reach) / i128::from(window.stride) + 1,
    };
    found == wanted as i128
}
