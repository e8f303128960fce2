//! Constructors of modules, computations and instructions; shapes are inferred.
//!
//! A [`Builder`] appends to one computation. New instructions stand at the end of its list; after
//! building into a computation that was complete before, [`crate::hlo::rewrite`] puts the list in
//! order again. Where the module's arrays have layouts already, new ones get the row-major layout.

use smallvec::SmallVec;
use smallvec::smallvec;

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::Computation;
use crate::hlo::DotDims;
use crate::hlo::Extra;
use crate::hlo::FusionKind;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::OpMetadata;
use crate::hlo::PadDim;
use crate::hlo::PrecisionConfig;
use crate::hlo::SliceDim;
use crate::hlo::Stage;
use crate::hlo::UnaryOp;
use crate::hlo::Window;
use crate::hlo::infer::agree;
use crate::hlo::infer::infer;
use crate::hlo::infer::text;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::Number;
use crate::literal::number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl Module {
    /// A module without computations. The first one added is the entry until another is chosen.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            stage: Stage::Imported,
            comps: Arena::new(),
            instrs: Arena::new(),
            entry: CompId::from_index(0),
            input_output_alias: std::collections::BTreeMap::new(),
            buffer_donors: Vec::new(),
            frontend_attributes: std::collections::BTreeMap::new(),
            is_scheduled: false,
            config: crate::hlo::ModuleConfig::default(),
            stack_frames: Default::default(),
            other_attributes: Vec::new(),
        }
    }
    /// Adds a computation without instructions. Its root is not there until
    /// [`Builder::set_root`] names one.
    pub fn new_comp(&mut self, name: impl Into<String>) -> CompId {
        self.comps.push(Computation {
            name: name.into(),
            instrs: Vec::new(),
            params: Vec::new(),
            root: InstrId::from_index(u32::MAX as usize - 2),
            execution_thread: String::new(),
        })
    }
    /// Appends to a computation.
    pub fn builder(&mut self, comp: CompId) -> Builder<'_> {
        Builder {
            module: self,
            comp,
            metadata: None,
        }
    }
    /// The array shape of an instruction that has one.
    ///
    /// # Panics
    /// When the value of `id` is a tuple or token.
    pub fn array(&self, id: InstrId) -> &ArrayShape {
        self.instrs[id]
            .shape
            .as_array()
            .expect("the instruction gives an array")
    }
}

/// Appends instructions to one computation.
#[derive(Debug)]
pub struct Builder<'m> {
    /// The module.
    pub module: &'m mut Module,
    /// The computation that grows.
    pub comp: CompId,
    /// Metadata that every new instruction gets.
    pub metadata: Option<OpMetadata>,
}

impl Builder<'_> {
    /// Gives new instructions the metadata of `id`.
    #[must_use]
    pub fn like(mut self, id: InstrId) -> Self {
        let extra = self.module.instrs[id].extra.as_ref();
        self.metadata = extra.and_then(|e| e.metadata.clone());
        self
    }
    /// The shape of the value of `id`.
    pub fn shape(&self, id: InstrId) -> &Shape {
        &self.module.instrs[id].shape
    }
    /// The array shape of `id`.
    ///
    /// # Errors
    /// When the value is not an array.
    pub fn array(&self, id: InstrId) -> Result<ArrayShape> {
        let shape = self.shape(id);
        let array = shape.as_array().cloned();
        array.ok_or_else(|| {
            let message = format!("a value is {} where an array is needed", text(shape));
            Diagnostic::internal(codes::INTERNAL, message)
        })
    }
    /// The element type of the array `id`.
    ///
    /// # Errors
    /// When the value is not an array.
    pub fn ty(&self, id: InstrId) -> Result<PrimitiveType> {
        Ok(self.array(id)?.ty)
    }
    /// The dimension sizes of the array `id`.
    ///
    /// # Errors
    /// When the value is not an array.
    pub fn dims(&self, id: InstrId) -> Result<Dims> {
        Ok(self.array(id)?.dims)
    }

    /// Appends an op whose operands give its shape.
    ///
    /// # Errors
    /// `XA2001` when the operands break a rule of the op.
    pub fn op(&mut self, op: Op, operands: &[InstrId]) -> Result<InstrId> {
        let shape = self.infer(&op, operands, None)?;
        Ok(self.push(op, operands, shape))
    }
    /// Appends an op of the stated shape, checked against what its operands give.
    ///
    /// # Errors
    /// `XA2001` when the operands break a rule of the op, `XA2002` when the shape is another.
    pub fn shaped(&mut self, op: Op, operands: &[InstrId], shape: Shape) -> Result<InstrId> {
        let inferred = self.infer(&op, operands, Some(&shape))?;
        if !agree(&inferred, &shape) {
            let (name, shape, inferred) = (op.opcode(), text(&shape), text(&inferred));
            return Err(Diagnostic::error(
                codes::SHAPE_MISMATCH,
                format!("`{name}` is declared {shape}, its operands give {inferred}"),
            ));
        }
        Ok(self.push(op, operands, shape))
    }
    fn infer(&self, op: &Op, operands: &[InstrId], declared: Option<&Shape>) -> Result<Shape> {
        let instrs = &self.module.instrs;
        let shapes: SmallVec<[&Shape; 4]> = operands.iter().map(|&o| &instrs[o].shape).collect();
        infer(self.module, op, &shapes, declared)
    }
    /// Appends an instruction as it is told.
    fn push(&mut self, op: Op, operands: &[InstrId], shape: Shape) -> InstrId {
        let shape = if self.module.stage >= Stage::LaidOut {
            shape.with_default_layout()
        } else {
            shape
        };
        let name = format!("{}.{}", op.opcode(), self.module.instrs.len());
        let extra = self.metadata.as_ref().map(|metadata| {
            Box::new(Extra {
                metadata: Some(metadata.clone()),
                ..Extra::default()
            })
        });
        self.push_instr(Instr {
            name,
            op,
            operands: operands.into(),
            shape,
            control_predecessors: SmallVec::new(),
            parent: self.comp,
            extra,
        })
    }
    /// Appends an instruction that was made by hand; a `parameter` joins the parameter list.
    pub fn push_instr(&mut self, mut instr: Instr) -> InstrId {
        instr.parent = self.comp;
        let is_parameter = matches!(instr.op, Op::Parameter { .. });
        let id = self.module.instrs.push(instr);
        let comp = &mut self.module.comps[self.comp];
        comp.instrs.push(id);
        if is_parameter {
            comp.params.push(id);
        }
        id
    }
    /// Appends the next parameter.
    pub fn parameter(&mut self, name: impl Into<String>, shape: Shape) -> InstrId {
        let number = self.module.comps[self.comp].params.len();
        let op = Op::Parameter {
            number,
            leaf_replication: Vec::new(),
        };
        let id = self.push(op, &[], shape);
        self.module.instrs[id].name = name.into();
        id
    }
    /// Makes `id` the result of the computation.
    pub fn set_root(&mut self, id: InstrId) {
        self.module.comps[self.comp].root = id;
    }
    /// A new computation with these parameters whose result is what `build` gives.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn computation(
        &mut self,
        name: impl Into<String>,
        params: &[Shape],
        build: impl FnOnce(&mut Builder<'_>, &[InstrId]) -> Result<InstrId>,
    ) -> Result<CompId> {
        let comp = self.module.new_comp(name);
        let mut inner = self.module.builder(comp);
        let params: Vec<InstrId> = params
            .iter()
            .map(|shape| {
                let name = format!(
                    "p{}.{}",
                    inner.module.comps[comp].params.len(),
                    inner.module.instrs.len()
                );
                inner.parameter(name, shape.clone())
            })
            .collect();
        let root = build(&mut inner, &params)?;
        inner.set_root(root);
        Ok(comp)
    }
    /// The computation `(a, b) -> op(a, b)` over scalars of `ty`; made once a module.
    ///
    /// # Errors
    /// When the op is not defined for the type.
    pub fn monoid(&mut self, op: BinaryOp, ty: PrimitiveType) -> Result<CompId> {
        let found = self
            .module
            .comps
            .ids()
            .find(|&c| is_monoid(self.module, c, op, ty));
        match found {
            Some(comp) => Ok(comp),
            None => {
                let name = format!("{}_{}.{}", op.name(), ty, self.module.comps.len());
                let scalar = Shape::scalar(ty);
                self.computation(name, &[scalar.clone(), scalar], |b, p| {
                    b.binary(op, p[0], p[1])
                })
            }
        }
    }
}

/// Whether the computation is `(a, b) -> op(a, b)` over scalars of `ty`.
fn is_monoid(module: &Module, comp: CompId, op: BinaryOp, ty: PrimitiveType) -> bool {
    let comp = &module.comps[comp];
    let Some(root) = module.instrs.get(comp.root) else {
        return false;
    };
    comp.instrs.len() == 3
        && comp.params.len() == 2
        && comp.execution_thread.is_empty()
        && root.op == Op::Binary(op)
        && root.operands.as_slice() == comp.params.as_slice()
        && root
            .shape
            .as_array()
            .is_some_and(|a| a.ty == ty && a.rank() == 0)
}

/// Constants.
impl Builder<'_> {
    /// A constant of any value.
    pub fn constant(&mut self, literal: Literal) -> InstrId {
        let shape = literal.shape().without_layout();
        self.push(Op::Constant(literal), &[], shape)
    }
    /// A scalar of any element type, converted from `number` as `convert` does.
    pub fn constant_number(&mut self, ty: PrimitiveType, number: Number) -> InstrId {
        let mut bytes = vec![0; ty.byte_width()];
        number::encode(ty, number, &mut bytes);
        self.constant(Literal::Array(ArrayLiteral::new(
            ArrayShape::scalar(ty),
            bytes,
        )))
    }
    /// A scalar of any element type.
    pub fn constant_scalar(&mut self, ty: PrimitiveType, value: f64) -> InstrId {
        self.constant_number(ty, Number::Float(value))
    }
    /// A scalar of any element type; integers wrap.
    pub fn constant_int(&mut self, ty: PrimitiveType, value: i128) -> InstrId {
        self.constant_number(ty, Number::Int(value))
    }
    /// A vector of integers of the element type.
    pub fn constant_ints(&mut self, ty: PrimitiveType, values: &[i128]) -> InstrId {
        let width = ty.byte_width();
        let mut bytes = vec![0; width * values.len()];
        for (chunk, &value) in bytes.chunks_exact_mut(width).zip(values) {
            number::encode(ty, Number::Int(value), chunk);
        }
        let shape = ArrayShape::new(ty, [values.len()]);
        self.constant(Literal::Array(ArrayLiteral::new(shape, bytes)))
    }
    /// The value below or equal to all others: minus infinity where the type has one.
    pub fn lowest(&mut self, ty: PrimitiveType) -> InstrId {
        self.extreme(ty, true)
    }
    /// The value above or equal to all others: infinity where the type has one.
    pub fn highest(&mut self, ty: PrimitiveType) -> InstrId {
        self.extreme(ty, false)
    }
    fn extreme(&mut self, ty: PrimitiveType, low: bool) -> InstrId {
        let number = match ty.kind() {
            ElementKind::Pred => Number::Int(i128::from(!low)),
            ElementKind::Signed | ElementKind::Unsigned => {
                let (min, max) = number::int_range(ty);
                Number::Int(if low { min } else { max })
            }
            ElementKind::Float | ElementKind::Complex => {
                let (min, max) = number::float_range(ty.real_part());
                Number::Float(if low { min } else { max })
            }
        };
        self.constant_number(ty, number)
    }
    /// An array of one value.
    ///
    /// # Errors
    /// Only when the array is too large.
    pub fn full(&mut self, ty: PrimitiveType, dims: &[usize], value: f64) -> Result<InstrId> {
        let scalar = self.constant_scalar(ty, value);
        self.broadcast_scalar(scalar, dims)
    }
    /// An array of one value with the type and sizes of `x`.
    ///
    /// # Errors
    /// When `x` is not an array.
    pub fn full_like(&mut self, x: InstrId, value: f64) -> Result<InstrId> {
        let array = self.array(x)?;
        self.full(array.ty, &array.dims, value)
    }
    /// The number of each element along `dim`.
    ///
    /// # Errors
    /// When there is no such dimension.
    pub fn iota(&mut self, ty: PrimitiveType, dims: &[usize], dim: usize) -> Result<InstrId> {
        let shape = Shape::array(ty, dims.iter().copied());
        self.shaped(Op::Iota { dim }, &[], shape)
    }
}

/// Elementwise ops. Errors are those of the op's rules.
#[allow(clippy::missing_errors_doc, reason = "said once above")]
impl Builder<'_> {
    /// A unary op.
    pub fn unary(&mut self, op: UnaryOp, x: InstrId) -> Result<InstrId> {
        self.op(Op::Unary(op), &[x])
    }
    /// A binary op.
    pub fn binary(&mut self, op: BinaryOp, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.op(Op::Binary(op), &[a, b])
    }
    /// A binary op with the same number at every element.
    pub fn binary_scalar(&mut self, op: BinaryOp, x: InstrId, value: f64) -> Result<InstrId> {
        let value = self.full_like(x, value)?;
        self.binary(op, x, value)
    }
    /// `a + b`.
    pub fn add(&mut self, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Add, a, b)
    }
    /// `a - b`.
    pub fn subtract(&mut self, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Subtract, a, b)
    }
    /// `a * b`.
    pub fn multiply(&mut self, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Multiply, a, b)
    }
    /// `a / b`.
    pub fn divide(&mut self, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Divide, a, b)
    }
    /// A comparison in the order that is natural to the element type.
    pub fn compare(
        &mut self,
        direction: ComparisonDirection,
        a: InstrId,
        b: InstrId,
    ) -> Result<InstrId> {
        let ty = ComparisonType::default_of(Some(self.shape(a)));
        self.op(Op::Compare { direction, ty }, &[a, b])
    }
    /// `on_true` where `pred` holds, else `on_false`.
    pub fn select(
        &mut self,
        pred: InstrId,
        on_true: InstrId,
        on_false: InstrId,
    ) -> Result<InstrId> {
        self.op(Op::Select, &[pred, on_true, on_false])
    }
    /// `x` brought between `low` and `high`.
    pub fn clamp(&mut self, low: InstrId, x: InstrId, high: InstrId) -> Result<InstrId> {
        self.op(Op::Clamp, &[low, x, high])
    }
    /// The values in another type; `x` itself when it has the type.
    pub fn convert(&mut self, x: InstrId, ty: PrimitiveType) -> Result<InstrId> {
        let array = self.array(x)?;
        if array.ty == ty {
            return Ok(x);
        }
        let shape = Shape::Array(ArrayShape {
            layout: None,
            ..array.with_type(ty)
        });
        self.shaped(Op::Convert, &[x], shape)
    }
    /// The bits as another type; the minor dimension appears or goes when widths differ.
    pub fn bitcast_convert(&mut self, x: InstrId, ty: PrimitiveType) -> Result<InstrId> {
        let wanted = Shape::scalar(ty);
        let shape = self.infer(&Op::BitcastConvert, &[x], Some(&wanted))?;
        self.shaped(Op::BitcastConvert, &[x], shape)
    }
    /// A copy.
    pub fn copy(&mut self, x: InstrId) -> Result<InstrId> {
        self.op(Op::Copy, &[x])
    }
}

/// Data movement. Errors are those of the op's rules.
#[allow(clippy::missing_errors_doc, reason = "said once above")]
impl Builder<'_> {
    /// The elements in row-major order under other dimensions; `x` itself when they are the same.
    pub fn reshape(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        let array = self.array(x)?;
        if array.dims.as_slice() == dims && !array.is_dynamic() {
            return Ok(x);
        }
        let shape = Shape::array(array.ty, dims.iter().copied());
        self.shaped(Op::Reshape { inferred_dim: None }, &[x], shape)
    }
    /// The same bytes as another shape.
    pub fn bitcast(&mut self, x: InstrId, shape: Shape) -> Result<InstrId> {
        self.shaped(Op::Bitcast, &[x], shape)
    }
    /// Operand dimension `i` becomes `mapping[i]` of `out_dims`; the others repeat.
    pub fn broadcast(
        &mut self,
        x: InstrId,
        mapping: &[usize],
        out_dims: &[usize],
    ) -> Result<InstrId> {
        let shape = Shape::array(self.ty(x)?, out_dims.iter().copied());
        let dims = mapping.into();
        self.shaped(Op::Broadcast { dims }, &[x], shape)
    }
    /// A scalar at every element; `x` itself when `dims` is empty.
    pub fn broadcast_scalar(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        if dims.is_empty() {
            return Ok(x);
        }
        self.broadcast(x, &[], dims)
    }
    /// Result dimension `i` is operand dimension `permutation[i]`; `x` itself when nothing moves.
    pub fn transpose(&mut self, x: InstrId, permutation: &[usize]) -> Result<InstrId> {
        if permutation.is_sorted() && permutation.len() == self.dims(x)?.len() {
            return Ok(x);
        }
        let dims = permutation.into();
        self.op(Op::Transpose { dims }, &[x])
    }
    /// Back to front along `dims`.
    pub fn reverse(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        let dims = dims.into();
        self.op(Op::Reverse { dims }, &[x])
    }
    /// `[start, limit)` in steps of `stride`, a triple a dimension.
    pub fn slice(&mut self, x: InstrId, dims: &[SliceDim]) -> Result<InstrId> {
        let dims = dims.into();
        self.op(Op::Slice { dims }, &[x])
    }
    /// `[start, limit)` of one dimension, all of the others.
    pub fn slice_dim(
        &mut self,
        x: InstrId,
        dim: usize,
        start: usize,
        limit: usize,
    ) -> Result<InstrId> {
        let sizes = self.dims(x)?;
        let all = sizes.iter().enumerate().map(|(d, &size)| SliceDim {
            start: if d == dim { start } else { 0 },
            limit: if d == dim { limit } else { size },
            stride: 1,
        });
        let dims: SmallVec<[SliceDim; 4]> = all.collect();
        self.slice(x, &dims)
    }
    /// `sizes` elements from the start indices, which are clamped.
    pub fn dynamic_slice(
        &mut self,
        x: InstrId,
        starts: &[InstrId],
        sizes: &[usize],
    ) -> Result<InstrId> {
        let mut operands = vec![x];
        operands.extend_from_slice(starts);
        let sizes = sizes.into();
        self.op(Op::DynamicSlice { sizes }, &operands)
    }
    /// `x` with `update` written at the start indices, which are clamped.
    pub fn dynamic_update_slice(
        &mut self,
        x: InstrId,
        update: InstrId,
        starts: &[InstrId],
    ) -> Result<InstrId> {
        let mut operands = vec![x, update];
        operands.extend_from_slice(starts);
        self.op(Op::DynamicUpdateSlice, &operands)
    }
    /// Padding with the scalar `value`.
    pub fn pad(&mut self, x: InstrId, value: InstrId, dims: &[PadDim]) -> Result<InstrId> {
        let dims = dims.into();
        self.op(Op::Pad { dims }, &[x, value])
    }
    /// Arrays one after the other along `dim`; the array itself when there is one.
    pub fn concatenate(&mut self, arrays: &[InstrId], dim: usize) -> Result<InstrId> {
        match arrays {
            [one] => Ok(*one),
            _ => self.op(Op::Concatenate { dim }, arrays),
        }
    }
}

/// Contractions and reductions. Errors are those of the op's rules.
#[allow(clippy::missing_errors_doc, reason = "said once above")]
impl Builder<'_> {
    /// A dot with the result type `ty`.
    pub fn dot(
        &mut self,
        lhs: InstrId,
        rhs: InstrId,
        dims: DotDims,
        precision: PrecisionConfig,
        ty: PrimitiveType,
    ) -> Result<InstrId> {
        let op = Op::Dot {
            dims,
            precision,
            sparsity: Vec::new(),
        };
        let wanted = Shape::scalar(ty);
        let shape = self.infer(&op, &[lhs, rhs], Some(&wanted))?;
        self.shaped(op, &[lhs, rhs], shape)
    }
    /// A reduction of one array by a monoid; the initial value is a scalar instruction.
    pub fn reduce(
        &mut self,
        x: InstrId,
        init: InstrId,
        dims: &[usize],
        op: BinaryOp,
    ) -> Result<InstrId> {
        let body = self.monoid(op, self.array(x)?.ty)?;
        self.reduce_by(&[x], &[init], dims, body)
    }
    /// A reduction of several arrays by a computation.
    pub fn reduce_by(
        &mut self,
        inputs: &[InstrId],
        inits: &[InstrId],
        dims: &[usize],
        body: CompId,
    ) -> Result<InstrId> {
        let dims = dims.into();
        self.op(Op::Reduce { dims, body }, &[inputs, inits].concat())
    }
    /// The sum along `dims`.
    pub fn sum(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        let ty = self.ty(x)?;
        let zero = self.constant_int(ty, 0);
        let op = if ty == PrimitiveType::Pred {
            BinaryOp::Or
        } else {
            BinaryOp::Add
        };
        self.reduce(x, zero, dims, op)
    }
    /// A windowed reduction of one array by a monoid.
    pub fn reduce_window(
        &mut self,
        x: InstrId,
        init: InstrId,
        window: Window,
        op: BinaryOp,
    ) -> Result<InstrId> {
        let body = self.monoid(op, self.array(x)?.ty)?;
        self.op(Op::ReduceWindow { window, body }, &[x, init])
    }
}

/// Tuples, control flow and calls. Errors are those of the op's rules.
#[allow(clippy::missing_errors_doc, reason = "said once above")]
impl Builder<'_> {
    /// A tuple.
    pub fn tuple(&mut self, elements: &[InstrId]) -> Result<InstrId> {
        self.op(Op::Tuple, elements)
    }
    /// An element of a tuple; the instruction behind it when the tuple was made here.
    pub fn gte(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        let instr = &self.module.instrs[tuple];
        if instr.op == Op::Tuple
            && let Some(&element) = instr.operands.get(index)
        {
            return Ok(element);
        }
        self.op(Op::GetTupleElement { index }, &[tuple])
    }
    /// Every element of a tuple.
    pub fn elements(&mut self, tuple: InstrId) -> Result<Vec<InstrId>> {
        let count = self.shape(tuple).as_tuple().map_or(0, <[Shape]>::len);
        (0..count).map(|i| self.gte(tuple, i)).collect()
    }
    /// A loop over `state` while `condition` holds.
    pub fn while_loop(
        &mut self,
        condition: CompId,
        body: CompId,
        state: InstrId,
    ) -> Result<InstrId> {
        self.op(Op::While { condition, body }, &[state])
    }
    /// One of the branches, each applied to its own operand.
    pub fn conditional(
        &mut self,
        index: InstrId,
        branches: &[CompId],
        operands: &[InstrId],
    ) -> Result<InstrId> {
        let op = Op::Conditional {
            branches: branches.to_vec(),
        };
        self.op(op, &[&[index], operands].concat())
    }
    /// A call.
    pub fn call(&mut self, body: CompId, operands: &[InstrId]) -> Result<InstrId> {
        let is_composite = false;
        self.op(Op::Call { body, is_composite }, operands)
    }
    /// A fusion.
    pub fn fusion(
        &mut self,
        kind: FusionKind,
        body: CompId,
        operands: &[InstrId],
    ) -> Result<InstrId> {
        let op = Op::Fusion {
            kind,
            body,
            output_to_operand_aliasing: Vec::new(),
        };
        self.op(op, operands)
    }
    /// A `while` that runs `body` for `index` = 0, 1, ... `count` - 1.
    ///
    /// The state is `(index s32[], values...)`; `body` gets the index and the values and gives the
    /// new values.
    pub fn counted_loop(
        &mut self,
        name: &str,
        count: usize,
        values: &[InstrId],
        body: impl FnOnce(&mut Builder<'_>, InstrId, &[InstrId]) -> Result<Vec<InstrId>>,
    ) -> Result<Vec<InstrId>> {
        let counter = Shape::scalar(PrimitiveType::S32);
        let mut parts = vec![counter];
        parts.extend(values.iter().map(|&v| self.shape(v).without_layout()));
        let state = [Shape::Tuple(parts)];
        let unique = self.module.comps.len();
        let condition =
            self.computation(format!("{name}_condition.{unique}"), &state, |b, p| {
                let index = b.gte(p[0], 0)?;
                let end = b.constant_int(PrimitiveType::S32, count as i128);
                b.compare(ComparisonDirection::Lt, index, end)
            })?;
        let body = self.computation(format!("{name}_body.{unique}"), &state, |b, p| {
            let elements = b.elements(p[0])?;
            let mut next = body(b, elements[0], &elements[1..])?;
            let one = b.constant_int(PrimitiveType::S32, 1);
            next.insert(0, b.add(elements[0], one)?);
            b.tuple(&next)
        })?;
        let zero = self.constant_int(PrimitiveType::S32, 0);
        let start = self.tuple(&[&[zero], values].concat())?;
        let end = self.while_loop(condition, body, start)?;
        (1..=values.len()).map(|i| self.gte(end, i)).collect()
    }
}

/// A dot of `[.., m, k]` by `[.., k, n]` with `batch` leading batch dimensions.
pub fn matmul_dims(batch: usize) -> DotDims {
    DotDims {
        lhs_contracting: smallvec![batch + 1],
        rhs_contracting: smallvec![batch],
        lhs_batch: (0..batch).collect(),
        rhs_batch: (0..batch).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry computation with these parameters whose root `build` makes.
    fn module(
        params: &[Shape],
        build: impl FnOnce(&mut Builder<'_>, &[InstrId]) -> Result<InstrId>,
    ) -> Result<Module> {
        let mut module = Module::new("m");
        let comp = module.new_comp("e");
        let mut b = module.builder(comp);
        let params: Vec<InstrId> = params
            .iter()
            .enumerate()
            .map(|(i, p)| b.parameter(format!("p{i}"), p.clone()))
            .collect();
        let root = build(&mut b, &params)?;
        b.set_root(root);
        module.entry = comp;
        Ok(module)
    }

    fn result(module: &Module) -> String {
        text(&module.root(module.entry).shape)
    }

    #[test]
    fn constructors_infer_shapes() {
        let f32_2x3 = Shape::array(PrimitiveType::F32, [2, 3]);
        let m = module(&[f32_2x3.clone(), f32_2x3], |b, p| {
            let t = b.transpose(p[1], &[1, 0])?;
            let dot = b.dot(
                p[0],
                t,
                matmul_dims(0),
                PrecisionConfig::default(),
                PrimitiveType::F32,
            )?;
            let sum = b.sum(dot, &[1])?;
            let wide = b.broadcast(sum, &[0], &[2, 5])?;
            let bits = b.bitcast_convert(wide, PrimitiveType::U8)?;
            let both = b.tuple(&[sum, bits])?;
            assert_eq!(b.gte(both, 1)?, bits);
            Ok(both)
        });
        let m = m.expect("the module is well typed");
        assert_eq!(result(&m), "(f32[2], u8[2,5,4])");
        assert!(crate::hlo::verify::check(&m).is_ok());
    }

    #[test]
    fn a_wrong_op_is_told_in_words() {
        let shapes = [
            Shape::array(PrimitiveType::F32, [2, 4]),
            Shape::array(PrimitiveType::F32, [3, 5]),
        ];
        let wrong = module(&shapes, |b, p| {
            let precision = PrecisionConfig::default();
            b.dot(p[0], p[1], matmul_dims(0), precision, PrimitiveType::F32)
        });
        let message = wrong.expect_err("sizes differ").message;
        assert_eq!(
            message,
            "`dot`: contracts dimension 1 of size 4 with dimension 0 of size 3"
        );
    }

    #[test]
    fn monoids_are_made_once() {
        let m = module(&[Shape::array(PrimitiveType::S32, [4])], |b, p| {
            let a = b.sum(p[0], &[0])?;
            let c = b.sum(p[0], &[0])?;
            let low = b.lowest(PrimitiveType::S32);
            let d = b.reduce(p[0], low, &[0], BinaryOp::Maximum)?;
            b.tuple(&[a, c, d])
        });
        assert_eq!(m.expect("the module is well typed").comps.len(), 3);
    }

    #[test]
    fn counted_loops_verify() {
        let m = module(&[Shape::array(PrimitiveType::F32, [4])], |b, p| {
            let values =
                b.counted_loop("twice", 2, &[p[0]], |b, _, v| Ok(vec![b.add(v[0], v[0])?]))?;
            Ok(values[0])
        });
        let m = m.expect("the module is well typed");
        assert_eq!(result(&m), "f32[4]");
        assert!(crate::hlo::verify::check(&m).is_ok());
    }
}
