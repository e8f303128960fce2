//! How large the results of ops on dynamic arrays are.
//!
//! An array with dynamic dimensions has bounds, which its shape says, and real sizes, which are known
//! when the program runs. [`result_sizes`] gives the real sizes of an op's results as formulas over
//! those of its operands; a dimension whose formula is its bound is static. The evaluator computes
//! the formulas, the compiler turns them into instructions. `hlo/SEMANTICS.md` has the rules in words.

mod contraction;
pub mod flow;
mod movement;
mod reshape;

use crate::hlo::CollectiveKind;
use crate::hlo::CustomCall;
use crate::hlo::Op;
use crate::hlo::WindowDim;
use crate::hlo::custom_calls;
use crate::hlo::infer::agree;
use crate::hlo::infer::window_positions;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

pub use reshape::Group;
pub use reshape::groups;

/// The real size of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// Known.
    Fixed(i64),
    /// That of an operand's dimension.
    Of {
        /// Which operand.
        operand: usize,
        /// Which of its dimensions.
        dim: usize,
    },
    /// The value of an operand, an s32 scalar, moved into 0 to the bound.
    Value {
        /// Which operand.
        operand: usize,
        /// The bound of the dimension.
        bound: i64,
    },
    /// The sum of all.
    Sum(Vec<Size>),
    /// The product of all.
    Product(Vec<Size>),
    /// The quotient by a positive number, rounded toward zero.
    Quotient(Box<Size>, i64),
    /// The larger of the two.
    AtLeast(Box<Size>, i64),
    /// The smallest of all.
    Least(Vec<Size>),
    /// The size of arrays that meet element by element: see [`joined`].
    Joined(Vec<Size>),
}

/// What the sizes of two arrays that meet element by element come to: the smaller, but an array of
/// size one is repeated as often as the other needs.
pub fn joined(a: i64, b: i64) -> i64 {
    if a.min(b) == 1 { a.max(b) } else { a.min(b) }
}

impl Size {
    /// The number it comes to, given the sizes and values of operands.
    pub fn resolve(&self, of: &dyn Fn(usize, usize) -> i64, value: &dyn Fn(usize) -> i64) -> i64 {
        let all = |sizes: &[Self]| -> Vec<i64> {
            let each = sizes.iter().map(|size| size.resolve(of, value));
            each.collect()
        };
        match self {
            Self::Fixed(size) => *size,
            Self::Of { operand, dim } => of(*operand, *dim),
            Self::Value { operand, bound } => value(*operand).clamp(0, *bound),
            Self::Sum(sizes) => all(sizes).into_iter().sum(),
            Self::Product(sizes) => all(sizes).into_iter().product(),
            Self::Quotient(size, by) => size.resolve(of, value) / by,
            Self::AtLeast(size, least) => size.resolve(of, value).max(*least),
            Self::Least(sizes) => all(sizes).into_iter().min().unwrap_or(0),
            Self::Joined(sizes) => all(sizes).into_iter().reduce(joined).unwrap_or(0),
        }
    }
    /// Whether it is known before the program runs.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }
    /// The sum with a number.
    fn plus(self, number: i64) -> Self {
        match number {
            0 => self,
            _ => Self::Sum(vec![self, Self::Fixed(number)]),
        }
    }
    /// The product with a number.
    fn times(self, number: i64) -> Self {
        match number {
            1 => self,
            _ => Self::Product(vec![self, Self::Fixed(number)]),
        }
    }
    fn over(self, number: i64) -> Self {
        match number {
            1 => self,
            _ => Self::Quotient(Box::new(self), number),
        }
    }
    fn at_least(self, number: i64) -> Self {
        Self::AtLeast(Box::new(self), number)
    }
    /// The smallest of the sizes that are not fixed; they stand for dimensions of one bound.
    fn least(sizes: impl IntoIterator<Item = Self>, bound: usize) -> Self {
        Self::merged(sizes, bound, Self::Least)
    }
    fn merged(
        sizes: impl IntoIterator<Item = Self>,
        bound: usize,
        merge: fn(Vec<Self>) -> Self,
    ) -> Self {
        let mut open: Vec<Self> = Vec::new();
        for size in sizes {
            if !size.is_fixed() && !open.contains(&size) {
                open.push(size);
            }
        }
        match open.len() {
            0 => Self::Fixed(bound as i64),
            1 => open.remove(0),
            _ => merge(open),
        }
    }
}

/// The sizes of an array, one a dimension.
pub type Sizes = Vec<Size>;

/// What the rules look at.
struct Question<'a> {
    operands: &'a [&'a ArrayShape],
    declared: &'a Shape,
    constant: &'a dyn Fn(usize) -> Option<i64>,
}

/// The largest size of a dynamic dimension, since sizes are s32.
const MAX_BOUND: usize = i32::MAX as usize;

/// The real sizes of each array of the result of `op`, an op on arrays alone.
///
/// `operands` have a dynamic dimension wherever a size may be less than the bound, `declared` is the
/// result's shape as the program states it, and `constant` gives the values of operands that are
/// constant scalars.
///
/// # Errors
/// Why the op cannot have an operand of such a shape, in words that follow the op's name.
pub fn result_sizes(
    op: &Op,
    operands: &[&ArrayShape],
    declared: &Shape,
    constant: &dyn Fn(usize) -> Option<i64>,
) -> Result<Vec<Sizes>, String> {
    let question = Question {
        operands,
        declared,
        constant,
    };
    let sizes = question.sizes(op)?;
    let leaves = question.results();
    let open = sizes.iter().zip(&leaves).any(|(sizes, leaf)| {
        let pairs = sizes.iter().zip(&leaf.dims);
        let mut pairs = pairs.filter(|(size, _)| !size.is_fixed());
        pairs.any(|(_, &bound)| bound > MAX_BOUND)
    });
    if open {
        return Err("has a dynamic dimension whose bound is beyond s32".to_owned());
    }
    Ok(sizes)
}

/// How many positions a window has over dimension `dim` of an array, which is operand 0.
pub fn window_size(array: &ArrayShape, dim: usize, window: &WindowDim) -> Size {
    let whole = window_positions(window, array.dims[dim]);
    let question = Question {
        operands: &[array],
        declared: &Shape::Token,
        constant: &|_| None,
    };
    question.windowed(0, dim, window, whole.unwrap_or(0) as i64)
}

impl Question<'_> {
    /// The arrays of the result, as declared.
    fn results(&self) -> Vec<&ArrayShape> {
        let leaves = self.declared.leaves();
        let arrays = leaves.into_iter().filter_map(|(_, leaf)| leaf.as_array());
        arrays.collect()
    }
    /// The declared result, when it is one array; the first one otherwise.
    fn result(&self) -> Result<&ArrayShape, String> {
        let mut results = self.results().into_iter();
        results.next().ok_or_else(|| "gives no array".to_owned())
    }
    fn operand(&self, i: usize) -> Result<&ArrayShape, String> {
        let operand = self.operands.get(i).copied();
        operand.ok_or_else(|| format!("lacks operand {i}"))
    }
    fn size(&self, operand: usize, dim: usize) -> Size {
        match self.operands.get(operand) {
            Some(array) if array.is_dynamic_dim(dim) => Size::Of { operand, dim },
            Some(array) => Size::Fixed(array.dims.get(dim).map_or(0, |&n| n as i64)),
            None => Size::Fixed(0),
        }
    }
    fn bound(&self, operand: usize, dim: usize) -> usize {
        let array = self.operands.get(operand);
        array.and_then(|a| a.dims.get(dim)).map_or(0, |&n| n)
    }
    fn is_dynamic(&self, operand: usize, dim: usize) -> bool {
        !self.size(operand, dim).is_fixed()
    }
    /// All sizes of an operand.
    fn all(&self, operand: usize) -> Sizes {
        let rank = self.operands.get(operand).map_or(0, |a| a.rank());
        (0..rank).map(|d| self.size(operand, d)).collect()
    }
    /// Every size is the bound.
    fn fixed(shape: &ArrayShape) -> Sizes {
        shape.dims.iter().map(|&n| Size::Fixed(n as i64)).collect()
    }
    /// All results have these sizes.
    fn each(&self, sizes: Sizes) -> Vec<Sizes> {
        vec![sizes; self.results().len()]
    }
    /// No result is dynamic, and no operand may be.
    fn none(&self) -> Result<Vec<Sizes>, String> {
        if self.operands.iter().any(|operand| operand.is_dynamic()) {
            return Err("does not take arrays with dynamic dimensions".to_owned());
        }
        Ok(self.results().into_iter().map(Self::fixed).collect())
    }
    /// A dimension may not be dynamic.
    fn must_be_fixed(&self, operand: usize, dim: usize, what: &str) -> Result<(), String> {
        if self.is_dynamic(operand, dim) {
            return Err(format!(
                "has operand {operand} with dimension {dim}, {what}, dynamic, which has no meaning here"
            ));
        }
        Ok(())
    }

    fn sizes(&self, op: &Op) -> Result<Vec<Sizes>, String> {
        let one = |sizes: Sizes| Ok(vec![sizes]);
        match op {
            Op::Unary(_)
            | Op::Convert
            | Op::ReducePrecision { .. }
            | Op::Copy
            | Op::Reverse { .. }
            | Op::BatchNormInference { .. } => one(self.all(0)),
            Op::Binary(_)
            | Op::Compare { .. }
            | Op::Select
            | Op::Clamp
            | Op::StochasticConvert
            | Op::Map { .. } => self.elementwise(),
            Op::BitcastConvert => self.bitcast_convert(),
            Op::Broadcast { dims } => self.broadcast(dims),
            Op::Transpose { dims } => one(dims.iter().map(|&d| self.size(0, d)).collect()),
            Op::Slice { dims } => one(self.slice(dims)),
            Op::DynamicSlice { sizes } => one(self.dynamic_slice(sizes)),
            Op::DynamicUpdateSlice => one(self.dynamic_update_slice()),
            Op::Pad { dims } => one(self.pad(dims)),
            Op::Concatenate { dim } => one(self.concatenate(*dim)),
            Op::Gather {
                dims, slice_sizes, ..
            } => self.gather(dims, slice_sizes),
            Op::Scatter { dims, .. } => self.scatter(dims),
            Op::GetDimensionSize { .. } => one(Vec::new()),
            Op::SetDimensionSize { dim } => one(self.set_dimension_size(*dim)),
            Op::DynamicReshape => self.dynamic_reshape(),
            Op::Reshape { inferred_dim } => self.reshape(*inferred_dim),
            Op::Dot { dims, .. } => one(self.dot(dims)),
            Op::ScaledDot { dims, .. } => self.scaled_dot(dims),
            Op::RaggedDot {
                dims,
                lhs_ragged,
                rhs_group,
                ..
            } => self.ragged_dot(dims, lhs_ragged, rhs_group),
            Op::Convolution {
                window,
                dims,
                feature_group_count,
                batch_group_count,
                ..
            } => self.convolution(window, dims, *feature_group_count, *batch_group_count),
            Op::Reduce { dims, .. } => Ok(self.reduce(dims)),
            Op::ReduceWindow { window, .. } => Ok(self.reduce_window(window)),
            Op::SelectAndScatter { window, .. } => self.select_and_scatter(window),
            Op::BatchNormTraining { feature_index, .. }
            | Op::BatchNormGrad { feature_index, .. } => {
                let row = vec![self.size(0, *feature_index)];
                Ok(vec![self.all(0), row.clone(), row])
            }
            Op::Sort { .. } => Ok(self.sort()),
            Op::TopK { k, .. } => Ok(self.top_k(*k)),
            Op::Fft { lengths, .. } => self.fft(lengths.len()),
            Op::Cholesky { .. } => self.cholesky(),
            Op::TriangularSolve { left_side, .. } => self.triangular_solve(*left_side),
            Op::CustomCall(call) => self.custom_call(call),
            Op::Collective { kind, .. } => self.collective(kind),
            _ => self.none(),
        }
    }

    fn elementwise(&self) -> Result<Vec<Sizes>, String> {
        let result = self.result()?;
        let meets = |i: &usize| self.operands[*i].rank() == result.rank();
        let whole: Vec<usize> = (0..self.operands.len()).filter(meets).collect();
        let joined = |d: usize| {
            let sizes = whole.iter().map(|&i| self.size(i, d));
            Size::merged(sizes, result.dims[d], Size::Joined)
        };
        let sizes = (0..result.rank()).map(joined).collect();
        Ok(self.each(sizes))
    }

    fn sort(&self) -> Vec<Sizes> {
        let rank = self.operands.first().map_or(0, |a| a.rank());
        let least = |d: usize| {
            let sizes = (0..self.operands.len()).map(|i| self.size(i, d));
            Size::least(sizes, self.bound(0, d))
        };
        self.each((0..rank).map(least).collect())
    }

    fn top_k(&self, k: usize) -> Vec<Sizes> {
        let mut sizes = self.all(0);
        if let Some(last) = sizes.last_mut() {
            *last = match last.is_fixed() {
                true => Size::Fixed(k as i64),
                false => Size::Least(vec![last.clone(), Size::Fixed(k as i64)]),
            };
        }
        self.each(sizes)
    }

    fn fft(&self, transformed: usize) -> Result<Vec<Sizes>, String> {
        let result = self.result()?;
        let first = result.rank().saturating_sub(transformed);
        let mut sizes = Self::fixed(result);
        for (d, size) in sizes.iter_mut().enumerate() {
            if d < first {
                *size = self.size(0, d);
            } else {
                self.must_be_fixed(0, d, "which is transformed")?;
            }
        }
        Ok(vec![sizes])
    }

    fn cholesky(&self) -> Result<Vec<Sizes>, String> {
        let rank = self.operand(0)?.rank();
        for d in rank.saturating_sub(2)..rank {
            self.must_be_fixed(0, d, "one of the matrix")?;
        }
        Ok(vec![self.all(0)])
    }

    fn triangular_solve(&self, left_side: bool) -> Result<Vec<Sizes>, String> {
        let rank = self.operand(1)?.rank();
        for d in rank.saturating_sub(2)..rank {
            self.must_be_fixed(0, d, "one of the matrix")?;
        }
        let solved = rank.saturating_sub(if left_side { 2 } else { 1 });
        self.must_be_fixed(1, solved, "which is solved for")?;
        let sizes = (0..rank).map(|d| match d < rank.saturating_sub(2) {
            true => Size::least([self.size(0, d), self.size(1, d)], self.bound(1, d)),
            false => self.size(1, d),
        });
        Ok(vec![sizes.collect()])
    }

    fn custom_call(&self, call: &CustomCall) -> Result<Vec<Sizes>, String> {
        match call.target.as_str() {
            custom_calls::PAD_TO_STATIC => self.pad_to_static(),
            custom_calls::SLICE_TO_DYNAMIC => self.slice_to_dynamic(),
            "TopK" if self.operands.len() == 1 => {
                let k = self.result()?.dims.last().copied();
                Ok(self.top_k(k.unwrap_or(0)))
            }
            _ => {
                let results = self.results();
                let alike = self.operands.len() == 1
                    && matches!(self.declared, Shape::Array(a) if a.dims == self.operands[0].dims);
                match alike && custom_calls::is_annotation(&call.target) && results.len() == 1 {
                    true => Ok(vec![self.all(0)]),
                    false => self.none(),
                }
            }
        }
    }

    fn pad_to_static(&self) -> Result<Vec<Sizes>, String> {
        let operand = self.operand(0)?;
        let scalars = vec![Vec::new(); operand.rank()];
        let wanted = [&[Shape::Array(plain(operand))][..], &scalar_sizes(operand)].concat();
        let fits = self.operands.len() == 1 && agree(self.declared, &Shape::Tuple(wanted));
        if !fits {
            return Err("does not give the array at its bounds and one s32 a dimension".to_owned());
        }
        Ok([vec![self.all(0)], scalars].concat())
    }

    fn slice_to_dynamic(&self) -> Result<Vec<Sizes>, String> {
        let (operand, result) = (self.operand(0)?, self.result()?);
        let sizes = &self.operands[1..];
        let is_size = |a: &&ArrayShape| a.rank() == 0 && a.ty == PrimitiveType::S32;
        let fits = operand.ty == result.ty
            && operand.dims == result.dims
            && !self.declared.is_tuple()
            && sizes.len() == operand.rank()
            && sizes.iter().all(is_size);
        if !fits {
            return Err("does not take an array and one s32 a dimension of it".to_owned());
        }
        let size = |d: usize| match result.is_dynamic_dim(d) {
            true => Size::Value {
                operand: 1 + d,
                bound: result.dims[d] as i64,
            },
            false => Size::Fixed(result.dims[d] as i64),
        };
        Ok(vec![(0..result.rank()).map(size).collect()])
    }

    /// Collectives that leave the dimension alone keep its size.
    fn collective(&self, kind: &CollectiveKind) -> Result<Vec<Sizes>, String> {
        let changed = match kind {
            CollectiveKind::AllReduce { .. }
            | CollectiveKind::CollectiveBroadcast
            | CollectiveKind::CollectivePermute { .. } => None,
            CollectiveKind::AllGather { dim } | CollectiveKind::ReduceScatter { dim, .. } => {
                Some(*dim)
            }
            CollectiveKind::AllToAll { dim: Some(dim) } => Some(*dim),
            CollectiveKind::AllToAll { dim: None }
            | CollectiveKind::AllGatherStart { .. }
            | CollectiveKind::AllReduceStart { .. }
            | CollectiveKind::CollectivePermuteStart { .. }
            | CollectiveKind::RaggedAllToAll => return self.none(),
        };
        let results = self.results();
        if results.len() != self.operands.len() {
            return self.none();
        }
        let mut all = Vec::new();
        for (i, result) in results.into_iter().enumerate() {
            let mut sizes = self.all(i);
            if let Some(dim) = changed {
                self.must_be_fixed(i, dim, "which is exchanged")?;
                if let Some(size) = sizes.get_mut(dim) {
                    *size = Size::Fixed(result.dims.get(dim).map_or(0, |&n| n as i64));
                }
            }
            all.push(sizes);
        }
        Ok(all)
    }

    /// The positions of a window over a dimension: `hlo::infer::window_positions` as a formula.
    fn windowed(&self, operand: usize, dim: usize, window: &WindowDim, result: i64) -> Size {
        let size = self.size(operand, dim);
        if size.is_fixed() {
            return Size::Fixed(result);
        }
        if *window == WindowDim::default() {
            return size;
        }
        let dilated = |size: Size, by: i64| match by {
            1 => size,
            _ => size.plus(-1).times(by).plus(1).at_least(0),
        };
        let reach = match window.size {
            0 => 0,
            n => (n as i64 - 1).saturating_mul(window.window_dilation) + 1,
        };
        let padding = window.padding_low.saturating_add(window.padding_high);
        // A step over everything is as good as a longer one, and counts in s32.
        let bound = (self.bound(operand, dim) as i64).saturating_mul(window.base_dilation);
        let beyond = bound.saturating_add(padding).saturating_add(1).max(1);
        let stride = window.stride.min(beyond);
        let room = padding.saturating_sub(reach).saturating_add(stride);
        let base = dilated(size, window.base_dilation).plus(room);
        base.over(stride).at_least(0)
    }
}

/// The array at its bounds: no dimension is dynamic.
pub fn plain(array: &ArrayShape) -> ArrayShape {
    let mut plain = array.clone();
    plain.dynamic.clear();
    plain
}

fn scalar_sizes(array: &ArrayShape) -> Vec<Shape> {
    let scalar = Shape::scalar(PrimitiveType::S32);
    vec![scalar; array.rank()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes_of(size: &Size, n: i64) -> i64 {
        size.resolve(&|_, _| n, &|_| n)
    }

    #[test]
    fn arrays_that_meet_take_the_smaller_size_or_repeat_the_only_element() {
        for (a, b, wanted) in [
            (3, 2, 2),
            (1, 3, 3),
            (3, 1, 3),
            (1, 1, 1),
            (1, 0, 0),
            (0, 4, 0),
        ] {
            assert_eq!(joined(a, b), wanted, "{a} and {b}");
        }
    }

    #[test]
    fn windows_over_real_sizes_count_as_over_static_ones() {
        let mut array = ArrayShape::new(PrimitiveType::F32, [9]);
        array.dynamic.push(true);
        let declared = Shape::Array(array.clone());
        let question = Question {
            operands: &[&array],
            declared: &declared,
            constant: &|_| None,
        };
        for stride in [1, 2, 5, i64::from(i32::MAX), i64::MAX] {
            for (padding_low, padding_high) in [(0, 0), (1, 2), (-1, 0), (3, -2)] {
                for (window_dilation, base_dilation) in [(1, 1), (2, 1), (1, 3)] {
                    let window = WindowDim {
                        size: 3,
                        stride,
                        padding_low,
                        padding_high,
                        window_dilation,
                        base_dilation,
                        reversal: false,
                    };
                    let formula = question.windowed(0, 0, &window, 0);
                    for n in 0..10 {
                        let wanted = window_positions(&window, n as usize);
                        let wanted = wanted.map(|n| n as i64);
                        assert_eq!(Some(sizes_of(&formula, n)), wanted, "{window:?} over {n}");
                    }
                }
            }
        }
    }
}
