//! Shape inference: the shape an op gives for operands of these shapes, or why it may not have them.
//!
//! One file an op family. Results have no layouts. Constraint numbers in comments (`C3`) are those of
//! the op's section in the StableHLO specification; what HLO adds or allows beyond it is said there.
//! Inference is total: any op over any operands of any module gives a shape or a diagnostic.
//!
//! Dynamic dimensions: a result dimension is dynamic where its size depends on a dynamic dimension of
//! an operand, as `hlo::dynamic` has it; sizes are then upper bounds.

mod collective;
mod contraction;
mod elementwise;
mod gather;
mod kernels;
mod movement;
mod reduce;
mod structure;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::CompId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::dynamic::result_sizes;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

pub use reduce::window_positions;

/// The layout-free shape of `op` over operands of these shapes.
///
/// `declared` is the shape the program states; ops whose shape their operands do not give
/// (`parameter`, `reshape`, `convert`, `custom-call`, ...) need it, others only look at its element
/// type where HLO lets the program choose one (`dot`, `convolution`).
///
/// # Errors
/// `XA2001` when operands or attributes break a rule of the op.
pub fn infer(
    module: &Module,
    op: &Op,
    operands: &[&Shape],
    declared: Option<&Shape>,
) -> Result<Shape> {
    let cx = Infer {
        module,
        name: op.opcode(),
        operands,
        declared,
    };
    let shape = cx.shape_of(op)?;
    let shape = cx.bounded(op, shape);
    cx.sized(shape)
}

/// One question: an op, its operands, and what the program says of the result.
struct Infer<'a> {
    module: &'a Module,
    name: &'static str,
    operands: &'a [&'a Shape],
    declared: Option<&'a Shape>,
}

impl<'a> Infer<'a> {
    fn shape_of(&self, op: &Op) -> Result<Shape> {
        match op {
            Op::Parameter { .. } => self.operand_free_declared(),
            Op::Constant(literal) => self.constant(literal),
            Op::Iota { dim } => self.iota(*dim),
            Op::PartitionId | Op::ReplicaId => self.device_id(),
            Op::Unary(op) => self.unary(*op),
            Op::Binary(op) => self.binary(*op),
            Op::Compare { ty, .. } => self.compare(*ty),
            Op::Select => self.select(),
            Op::Clamp => self.clamp(),
            Op::Convert => self.convert(),
            Op::BitcastConvert => self.bitcast_convert(),
            Op::ReducePrecision {
                exponent_bits,
                mantissa_bits,
            } => self.reduce_precision(*exponent_bits, *mantissa_bits),
            Op::StochasticConvert => self.stochastic_convert(),
            Op::Copy | Op::OptimizationBarrier => self.same_as_operand(),
            Op::Map { dims, body } => self.map(dims, *body),
            Op::Bitcast => self.bitcast(),
            Op::Reshape { inferred_dim } => self.reshape(*inferred_dim),
            Op::Broadcast { dims } => self.broadcast(dims),
            Op::Transpose { dims } => self.transpose(dims),
            Op::Reverse { dims } => self.reverse(dims),
            Op::Slice { dims } => self.slice(dims),
            Op::DynamicSlice { sizes } => self.dynamic_slice(sizes),
            Op::DynamicUpdateSlice => self.dynamic_update_slice(),
            Op::Pad { dims } => self.pad(dims),
            Op::Concatenate { dim } => self.concatenate(*dim),
            Op::Gather {
                dims, slice_sizes, ..
            } => self.gather(dims, slice_sizes),
            Op::Scatter { dims, body, .. } => self.scatter(dims, *body),
            Op::GetDimensionSize { dim } => self.get_dimension_size(*dim),
            Op::SetDimensionSize { dim } => self.set_dimension_size(*dim),
            Op::DynamicReshape => self.dynamic_reshape(),
            Op::Dot {
                dims,
                precision,
                sparsity,
            } => self.dot(dims, precision, sparsity),
            Op::RaggedDot {
                dims,
                lhs_ragged,
                rhs_group,
                ..
            } => self.ragged_dot(dims, lhs_ragged, rhs_group),
            Op::ScaledDot { dims, .. } => self.scaled_dot(dims),
            Op::Convolution {
                window,
                dims,
                feature_group_count,
                batch_group_count,
                ..
            } => self.convolution(window, dims, *feature_group_count, *batch_group_count),
            Op::Reduce { dims, body } => self.reduce(dims, *body),
            Op::ReduceWindow { window, body } => self.reduce_window(window, *body),
            Op::SelectAndScatter {
                window,
                select,
                scatter,
            } => self.select_and_scatter(window, *select, *scatter),
            Op::Scan {
                dim,
                body,
                num_carries,
                ..
            } => self.scan(*dim, *body, *num_carries),
            Op::BatchNormTraining { feature_index, .. } => self.batch_norm(*feature_index, 0),
            Op::BatchNormInference { feature_index, .. } => self.batch_norm(*feature_index, 1),
            Op::BatchNormGrad { feature_index, .. } => self.batch_norm(*feature_index, 2),
            other => self.shape_of_rest(other),
        }
    }

    fn shape_of_rest(&self, op: &Op) -> Result<Shape> {
        match op {
            Op::Sort { dim, body, .. } => self.sort(*dim, *body),
            Op::TopK { k, .. } => self.topk(*k),
            Op::Fft { kind, lengths } => self.fft(*kind, lengths),
            Op::Cholesky { .. } => self.cholesky(),
            Op::TriangularSolve { left_side, .. } => self.triangular_solve(*left_side),
            Op::Rng { distribution } => self.rng(*distribution),
            Op::RngBitGenerator { algorithm } => self.rng_bit_generator(*algorithm),
            Op::RngGetAndUpdateState { .. } => self.rng_get_and_update_state(),
            Op::Tuple => Ok(self.tuple()),
            Op::GetTupleElement { index } => self.get_tuple_element(*index),
            Op::AddDependency => self.add_dependency(),
            Op::AfterAll => self.after_all(),
            Op::Domain(_) => self.same_as_operand(),
            Op::CopyStart { .. } => self.copy_start(),
            Op::CopyDone => self.copy_done(),
            Op::Call { body, .. } => self.call(*body),
            Op::While { condition, body } => self.while_loop(*condition, *body),
            Op::Conditional { branches } => self.conditional(branches),
            Op::Fusion {
                body,
                output_to_operand_aliasing,
                ..
            } => {
                let result = self.call(*body)?;
                self.operand_aliasing(output_to_operand_aliasing, &result)?;
                Ok(result)
            }
            Op::AsyncStart { body, .. } => self.async_start(*body),
            Op::AsyncUpdate => self.async_update(),
            Op::AsyncDone => self.async_done(),
            Op::CustomCall(call) => self.custom_call(call),
            Op::Collective { kind, collective } => self.collective(kind, collective),
            Op::AllReduceDone => self.same_as_operand(),
            Op::AllGatherDone | Op::CollectivePermuteDone => self.second_of_start(),
            Op::Infeed { .. } => self.infeed(),
            Op::Outfeed { shape, .. } => self.outfeed(shape),
            Op::Send { .. } => self.send(),
            Op::SendDone { .. } => self.send_done(),
            Op::Recv { .. } => self.recv(),
            Op::RecvDone { .. } => self.recv_done(),
            // Every other op is in `shape_of`.
            _ => Err(Diagnostic::internal(
                codes::INTERNAL,
                format!("`{}` has no shape rule", self.name),
            )),
        }
    }

    /// The shape, dynamic where the sizes of operands make it so.
    fn bounded(&self, op: &Op, mut shape: Shape) -> Shape {
        let arrays: Option<Vec<&ArrayShape>> = self.operands.iter().map(|o| o.as_array()).collect();
        let Some(arrays) = arrays.filter(|arrays| arrays.iter().any(|a| a.is_dynamic())) else {
            return shape;
        };
        // The size that is set may be the bound, which only the program knows.
        if matches!(op, Op::SetDimensionSize { .. } | Op::CustomCall(_)) {
            return shape;
        }
        let declared = self.declared.unwrap_or(&shape);
        let Ok(sizes) = result_sizes(op, &arrays, declared, &|_| None) else {
            return shape;
        };
        let mut sizes = sizes.iter();
        shape.for_each_array_mut(&mut |array| {
            let open = sizes.next().filter(|sizes| sizes.len() == array.rank());
            let open = open.map(|sizes| sizes.iter().map(|size| !size.is_fixed()).collect());
            array.dynamic = open.unwrap_or_default();
            if !array.is_dynamic() {
                array.dynamic.clear();
            }
        });
        shape
    }

    /// The shape, unless an array in it has more elements than can be counted.
    fn sized(&self, shape: Shape) -> Result<Shape> {
        for (_, leaf) in shape.leaves() {
            if let Some(array) = leaf.as_array()
                && array.checked_element_count().is_none()
            {
                return Err(self.fail(format!("result {} has too many elements", text(leaf))));
            }
        }
        Ok(shape)
    }

    fn fail(&self, message: impl AsRef<str>) -> Box<Diagnostic> {
        let message = format!("`{}`: {}", self.name, message.as_ref());
        Diagnostic::error(codes::OP_CONSTRAINT, message)
    }
    fn ensure(&self, holds: bool, message: impl FnOnce() -> String) -> Result<()> {
        if holds {
            Ok(())
        } else {
            Err(self.fail(message()))
        }
    }
    fn arity(&self, wanted: usize) -> Result<()> {
        let found = self.operands.len();
        self.ensure(found == wanted, || {
            format!("has {found} operands instead of {wanted}")
        })
    }
    fn at_least(&self, wanted: usize) -> Result<()> {
        let found = self.operands.len();
        self.ensure(found >= wanted, || {
            format!("has {found} operands instead of at least {wanted}")
        })
    }
    fn operand(&self, i: usize) -> Result<&'a Shape> {
        match self.operands.get(i) {
            Some(shape) => Ok(shape),
            None => Err(self.fail(format!("lacks operand {i}"))),
        }
    }
    fn array(&self, i: usize) -> Result<&'a ArrayShape> {
        let shape = self.operand(i)?;
        shape.as_array().ok_or_else(|| {
            self.fail(format!(
                "operand {i} is {} instead of an array",
                text(shape)
            ))
        })
    }
    /// Operands `from..to`, all arrays.
    fn arrays(&self, from: usize, to: usize) -> Result<Vec<&'a ArrayShape>> {
        (from..to).map(|i| self.array(i)).collect()
    }
    fn declared(&self) -> Result<&'a Shape> {
        self.declared
            .ok_or_else(|| self.fail("its shape must be stated, operands do not give it"))
    }
    fn declared_array(&self) -> Result<&'a ArrayShape> {
        let shape = self.declared()?;
        shape
            .as_array()
            .ok_or_else(|| self.fail(format!("result is {} instead of an array", text(shape))))
    }
    /// The declared shape of an op without operands.
    fn operand_free_declared(&self) -> Result<Shape> {
        self.arity(0)?;
        Ok(self.declared()?.without_layout())
    }
    fn same_as_operand(&self) -> Result<Shape> {
        self.arity(1)?;
        Ok(self.operand(0)?.without_layout())
    }
    /// A dimension number in range.
    fn dim(&self, what: &str, dim: usize, array: &ArrayShape) -> Result<()> {
        self.ensure(dim < array.rank(), || {
            let rank = array.rank();
            format!("{what} names dimension {dim} of an array of rank {rank}")
        })
    }
    /// Dimension numbers in range, each at most once.
    fn unique_dims(&self, what: &str, dims: &[usize], rank: usize) -> Result<()> {
        let mut seen = vec![false; rank];
        for &dim in dims {
            self.ensure(dim < rank, || {
                format!("{what} names dimension {dim} of an array of rank {rank}")
            })?;
            self.ensure(!std::mem::replace(&mut seen[dim], true), || {
                format!("{what} names dimension {dim} twice")
            })?;
        }
        Ok(())
    }
    /// Dimension numbers in range and strictly rising.
    fn sorted_dims(&self, what: &str, dims: &[usize], rank: usize) -> Result<()> {
        self.unique_dims(what, dims, rank)?;
        self.ensure(dims.is_sorted(), || {
            format!("{what} is {} instead of rising", list(dims))
        })
    }
    fn same_type(&self, i: usize, a: PrimitiveType, j: usize, b: PrimitiveType) -> Result<()> {
        self.ensure(a == b, || {
            format!("operand {j} has element type {b} where operand {i} has {a}")
        })
    }
    /// Equal sizes, whichever dimensions are dynamic.
    fn same_sizes(&self, i: usize, a: &ArrayShape, j: usize, b: &ArrayShape) -> Result<()> {
        self.ensure(a.dims == b.dims, || {
            format!(
                "operand {j} has dimensions {} where operand {i} has {}",
                list(&b.dims),
                list(&a.dims)
            )
        })
    }
    fn scalar(&self, i: usize) -> Result<&'a ArrayShape> {
        let array = self.array(i)?;
        self.ensure(array.rank() == 0, || {
            format!(
                "operand {i} is {} instead of a scalar",
                text(&Shape::Array(array.clone()))
            )
        })?;
        Ok(array)
    }
    /// A called computation's parameter shapes and result.
    fn signature(&self, comp: CompId) -> Result<(Vec<&'a Shape>, &'a Shape)> {
        signature(self.module, comp)
            .ok_or_else(|| self.fail("calls a computation that is not there or not complete"))
    }
    /// A called computation takes these parameters.
    fn takes(&self, what: &str, comp: CompId, wanted: &[&Shape]) -> Result<&'a Shape> {
        let (params, result) = self.signature(comp)?;
        self.ensure(params.len() == wanted.len(), || {
            let (found, wanted) = (params.len(), wanted.len());
            format!("{what} takes {found} parameters instead of {wanted}")
        })?;
        for (i, (param, wanted)) in params.iter().zip(wanted).enumerate() {
            self.ensure(agree(param, wanted), || {
                let (found, wanted) = (text(param), text(wanted));
                format!("{what} takes {found} as parameter {i} instead of {wanted}")
            })?;
        }
        Ok(result)
    }
    /// A called computation takes and gives scalars of these types; one result is not a tuple.
    fn scalar_body(
        &self,
        what: &str,
        comp: CompId,
        params: &[PrimitiveType],
        results: &[PrimitiveType],
    ) -> Result<()> {
        let params: Vec<Shape> = params.iter().map(|&ty| Shape::scalar(ty)).collect();
        let result = self.takes(what, comp, &params.iter().collect::<Vec<_>>())?;
        let wanted = one_or_tuple(results.iter().map(|&ty| Shape::scalar(ty)).collect());
        self.ensure(result.same_ignoring_layout(&wanted), || {
            let (found, wanted) = (text(result), text(&wanted));
            format!("{what} gives {found} instead of {wanted}")
        })
    }
}

/// A computation's parameter shapes and result, when it is complete.
pub(crate) fn signature(module: &Module, comp: CompId) -> Option<(Vec<&Shape>, &Shape)> {
    let comp = module.comps.get(comp)?;
    let params: Option<Vec<&Shape>> = comp
        .params
        .iter()
        .map(|&p| module.instrs.get(p).map(|p| &p.shape))
        .collect();
    Some((params?, &module.instrs.get(comp.root)?.shape))
}

/// Equal structure, types and sizes, whatever the layouts and which dimensions are dynamic.
pub fn agree(a: &Shape, b: &Shape) -> bool {
    match (a, b) {
        (Shape::Array(a), Shape::Array(b)) => a.ty == b.ty && a.dims == b.dims,
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b))
        }
        (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
        (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque, _) => false,
    }
}

/// One shape alone, several as a tuple.
fn one_or_tuple(mut shapes: Vec<Shape>) -> Shape {
    if shapes.len() == 1 {
        shapes.remove(0)
    } else {
        Shape::Tuple(shapes)
    }
}

/// A copy of the array with these sizes and without layout; `from` names, for each dimension, the
/// dimension of `array` whose dynamism it takes over.
fn resized(array: &ArrayShape, dims: Dims, from: impl Fn(usize) -> Option<usize>) -> ArrayShape {
    let mut out = ArrayShape::new(array.ty, dims);
    if array.is_dynamic() {
        out.dynamic = (0..out.rank())
            .map(|d| from(d).is_some_and(|d| array.is_dynamic_dim(d)))
            .collect();
        if !out.is_dynamic() {
            out.dynamic.clear();
        }
    }
    out
}

/// The array without its layout.
fn bare(array: &ArrayShape) -> ArrayShape {
    ArrayShape {
        layout: None,
        ..array.clone()
    }
}

fn list(dims: &[usize]) -> String {
    let words: Vec<String> = dims.iter().map(usize::to_string).collect();
    format!("{{{}}}", words.join(","))
}

/// A shape in words, without layouts.
pub(crate) fn text(shape: &Shape) -> String {
    match shape {
        Shape::Array(array) => {
            let dims: Vec<String> = (0..array.rank())
                .map(|d| {
                    let bound = if array.is_dynamic_dim(d) { "<=" } else { "" };
                    format!("{bound}{}", array.dims[d])
                })
                .collect();
            format!("{}[{}]", array.ty, dims.join(","))
        }
        Shape::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(text).collect();
            format!("({})", elements.join(", "))
        }
        Shape::Token => "token[]".to_owned(),
        Shape::Opaque => "opaque[]".to_owned(),
    }
}
