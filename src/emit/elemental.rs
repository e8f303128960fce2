//! One element (or a run of elements) of any pure op from its operands' elements.
//!
//! Values are remembered by instruction and index within the block that computed them, so a shared
//! subexpression is computed once. A value that is the same in every lane is kept in one lane.
//! Ops that cannot be walked in vectors are computed lane by lane.
//!
//! What cannot be emitted is kept as the first error and comes out of [`Elemental::finish`]; until
//! then zeros stand in for it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use smallvec::SmallVec;
use smallvec::smallvec;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::emit::bits;
use crate::emit::convert;
use crate::emit::elementwise;
use crate::emit::index::Index;
use crate::emit::index::Splits;
use crate::emit::index::volume;
use crate::emit::value;
use crate::emit::value::Access;
use crate::emit::value::Value;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::kernel::BufId;
use crate::kernel::CmpOp;
use crate::kernel::KernelBuilder;
use crate::literal::ArrayLiteral;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::target::Target;

/// The values of one instruction: one for an array, one an element for a tuple.
pub type Values = SmallVec<[Value; 1]>;

/// An array in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The buffer.
    pub buf: BufId,
    /// Its element type and dimensions, row-major.
    pub shape: ArrayShape,
}

/// What is known within one block of the kernel.
#[derive(Default)]
struct Frame {
    values: BTreeMap<(InstrId, Index), Values>,
    bound: BTreeMap<InstrId, Values>,
}

/// Gives elements of the instructions of one body.
pub struct Elemental<'m> {
    /// The module of the body.
    pub module: &'m Module,
    /// What is compiled for.
    pub target: &'m Target,
    /// Numbers taken apart and put together.
    pub splits: Splits,
    sources: BTreeMap<InstrId, Vec<Source>>,
    frames: RefCell<Vec<Frame>>,
    error: RefCell<Option<Box<Diagnostic>>>,
}

/// Constant tables of up to this many elements become a chain of selects.
const MAX_TABLE: usize = 16;

impl<'m> Elemental<'m> {
    /// A body whose leaves are these arrays in memory.
    pub fn new(
        module: &'m Module,
        target: &'m Target,
        sources: BTreeMap<InstrId, Vec<Source>>,
    ) -> Self {
        Self {
            module,
            target,
            splits: Splits::default(),
            sources,
            frames: RefCell::new(vec![Frame::default()]),
            error: RefCell::new(None),
        }
    }

    /// The first error, if there was one.
    pub fn finish(&self) -> Result<()> {
        match self.error.borrow_mut().take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Keeps an error unless there is one already.
    pub fn fail(&self, error: Box<Diagnostic>) {
        self.error.borrow_mut().get_or_insert(error);
    }

    /// Keeps the error that an op cannot be emitted for its type on this target.
    pub fn unsupported(&self, instr: &Instr) {
        self.fail(unsupported(instr, self.module, self.target));
    }

    /// Runs the closure, which builds a block of the kernel; what it computes is forgotten
    /// afterwards.
    pub fn scope<R>(&self, f: impl FnOnce() -> R) -> R {
        self.frames.borrow_mut().push(Frame::default());
        let result = f();
        self.frames.borrow_mut().pop();
        result
    }

    /// Says what an instruction's elements are within the current scope, whatever their index.
    pub fn bind(&self, id: InstrId, values: Values) {
        if let Some(frame) = self.frames.borrow_mut().last_mut() {
            frame.bound.insert(id, values);
        }
    }

    /// The array that an instruction is read from, when it is a leaf.
    pub fn source(&self, id: InstrId) -> Option<&Source> {
        self.sources.get(&id)?.first()
    }

    /// Whether the instruction is read from memory.
    pub fn is_leaf(&self, id: InstrId) -> bool {
        self.sources.contains_key(&id)
    }

    /// Whether a value is, or depends on, an instruction of the body that `is_wanted`.
    pub fn depends_on(&self, root: InstrId, is_wanted: impl Fn(&Instr) -> bool) -> bool {
        let mut seen = BTreeSet::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if self.is_leaf(id) || !seen.insert(id) {
                continue;
            }
            let instr = self.module.instr(id);
            if is_wanted(instr) {
                return true;
            }
            stack.extend(instr.operands.iter().copied());
        }
        false
    }

    /// Dimensions of an instruction's (first) array.
    pub fn dims(&self, id: InstrId) -> Dims {
        array(&self.module.instr(id).shape).dims
    }

    /// Element type of an instruction's (first) array.
    pub fn ty(&self, id: InstrId) -> PrimitiveType {
        array(&self.module.instr(id).shape).ty
    }

    /// The element of a scalar instruction.
    pub fn scalar(&self, b: &mut KernelBuilder, id: InstrId) -> Value {
        let zero = b.index(0);
        let mut index = Index::scalar(self.dims(id).iter().map(|_| zero));
        index.linear = Some(zero);
        self.value(b, id, &index)
    }

    /// The elements of an array-shaped instruction.
    pub fn value(&self, b: &mut KernelBuilder, id: InstrId, index: &Index) -> Value {
        self.values(b, id, index)[0]
    }

    /// The elements of an instruction, one value a tuple element.
    pub fn values(&self, b: &mut KernelBuilder, id: InstrId, index: &Index) -> Values {
        let key = (id, index.clone());
        let known = self.frames.borrow().iter().rev().find_map(|frame| {
            let bound = frame.bound.get(&id);
            bound.or_else(|| frame.values.get(&key)).cloned()
        });
        if let Some(known) = known {
            return known;
        }
        let values = self.compute(b, id, index);
        if let Some(frame) = self.frames.borrow_mut().last_mut() {
            frame.values.insert(key, values.clone());
        }
        values
    }

    fn compute(&self, b: &mut KernelBuilder, id: InstrId, index: &Index) -> Values {
        if let Some(sources) = self.sources.get(&id) {
            return sources.iter().map(|s| self.load(b, s, index)).collect();
        }
        let instr = self.module.instr(id);
        match &instr.op {
            Op::Tuple => instr
                .operands
                .iter()
                .map(|&operand| self.value(b, operand, index))
                .collect(),
            Op::GetTupleElement { index: i } => {
                let values = self.values(b, instr.operands[0], index);
                smallvec![values[*i]]
            }
            Op::Reduce { .. } => self.reduce_element(b, instr, index),
            Op::ReduceWindow { .. } => self.window_element(b, instr, index),
            _ if instr.shape.is_tuple() => {
                self.unsupported(instr);
                let leaves = instr.shape.leaves();
                let arrays = leaves.iter().filter_map(|(_, s)| s.as_array());
                arrays.map(|array| value::zero(b, array.ty)).collect()
            }
            _ => smallvec![self.array_value(b, id, instr, index)],
        }
    }

    fn array_value(
        &self,
        b: &mut KernelBuilder,
        id: InstrId,
        instr: &Instr,
        index: &Index,
    ) -> Value {
        let moved = match &instr.op {
            Op::Constant(literal) => match literal.as_array() {
                Some(array) => self.constant(b, instr, array, index),
                None => None,
            },
            Op::Iota { dim } => Some(self.iota(b, instr, *dim, index)),
            Op::Broadcast { .. }
            | Op::Transpose { .. }
            | Op::Reverse { .. }
            | Op::Slice { .. }
            | Op::DynamicSlice { .. }
            | Op::DynamicUpdateSlice
            | Op::Pad { .. }
            | Op::Concatenate { .. }
            | Op::Gather { .. }
            | Op::Reshape { .. }
            | Op::Bitcast => self.moved(b, instr, index),
            Op::Dot { dims, .. } => self.dot_element(b, instr, dims, index),
            Op::Convolution { .. } => self.conv_element(b, instr, index),
            Op::BitcastConvert if self.dims(instr.operands[0]) != self.dims(id) => {
                self.bitcast_convert(b, instr, index)
            }
            _ => return self.elementwise(b, instr, index),
        };
        match moved {
            Some(value) => value,
            None if index.lanes > 1 => self.lane_by_lane(b, id, index),
            None => {
                self.unsupported(instr);
                self.stand_in(b, instr)
            }
        }
    }

    /// A value for what cannot be computed; the error is kept already.
    fn stand_in(&self, b: &mut KernelBuilder, instr: &Instr) -> Value {
        value::zero(b, array(&instr.shape).ty)
    }

    /// Each lane by itself.
    pub fn lane_by_lane(&self, b: &mut KernelBuilder, id: InstrId, index: &Index) -> Value {
        let dims = self.dims(id);
        let lanes: Vec<Value> = (0..index.lanes)
            .map(|lane| {
                let one = self.splits.lane(b, &dims, index, lane);
                self.value(b, id, &one)
            })
            .collect();
        Value::gather(b, &lanes)
    }

    /// Reads the elements at an index of an array.
    pub fn load(&self, b: &mut KernelBuilder, source: &Source, index: &Index) -> Value {
        let dims = &source.shape.dims;
        let position = self.splits.linear(b, dims, index);
        if index.lanes == 1 {
            return value::load(b, source.buf, source.shape.ty, position, Access::ONE);
        }
        let stride = volume(&dims[index.last + 1..]);
        let lanes = i64::from(index.lanes);
        let whole = volume(&dims[..index.first]) == 1
            || volume(&dims[index.first..=index.last]) % lanes == 0;
        let access = Access {
            lanes: index.lanes,
            stride,
            aligned: index.is_aligned() && whole && stride == 1,
        };
        value::load(b, source.buf, source.shape.ty, position, access)
    }

    fn constant(
        &self,
        b: &mut KernelBuilder,
        instr: &Instr,
        literal: &ArrayLiteral,
        index: &Index,
    ) -> Option<Value> {
        if literal.is_empty() {
            return Some(value::zero(b, literal.ty()));
        }
        let first = literal.element(0);
        let count = literal.len();
        if (1..count).all(|i| literal.element(i) == first) {
            return Some(value::constant(b, literal.ty(), first));
        }
        if count > MAX_TABLE {
            self.unsupported(instr);
            return Some(self.stand_in(b, instr));
        }
        if index.lanes > 1 {
            return None;
        }
        let dims = array(&instr.shape).dims;
        let position = self.splits.linear(b, &dims, index);
        let mut result = value::constant(b, literal.ty(), first);
        for i in 1..count {
            let element = value::constant(b, literal.ty(), literal.element(i));
            let number = b.index(i as i64);
            let here = b.cmp(CmpOp::IEq, position, number);
            result = element.select(b, here, result);
        }
        Some(result)
    }

    fn iota(&self, b: &mut KernelBuilder, instr: &Instr, dim: usize, index: &Index) -> Value {
        let shape = array(&instr.shape);
        let number = self.splits.lane_values(b, &shape.dims, index, dim);
        if shape.dims[dim] <= i32::MAX as usize {
            let short = b.cast(
                crate::kernel::CastOp::Trunc,
                number,
                crate::kernel::Scalar::I32,
            );
            return convert::convert(b, PrimitiveType::S32, shape.ty, Value::One(short));
        }
        convert::convert(b, PrimitiveType::S64, shape.ty, Value::One(number))
    }

    fn elementwise(&self, b: &mut KernelBuilder, instr: &Instr, index: &Index) -> Value {
        let dims = array(&instr.shape).dims;
        let operands: SmallVec<[Value; 3]> = instr
            .operands
            .iter()
            .map(|&operand| {
                if self.dims(operand).len() == dims.len() {
                    self.value(b, operand, index)
                } else {
                    self.scalar(b, operand)
                }
            })
            .collect();
        match apply(b, self.module, instr, &operands, false) {
            Some(value) => value,
            None => {
                self.unsupported(instr);
                self.stand_in(b, instr)
            }
        }
    }
}

/// The array shape of an instruction; of a tuple, of its first leaf.
pub fn array(shape: &crate::shape::Shape) -> ArrayShape {
    let leaf = shape.leaves().into_iter().find_map(|(_, s)| s.as_array());
    leaf.cloned()
        .unwrap_or_else(|| ArrayShape::scalar(PrimitiveType::Pred))
}

/// The diagnostic for an op that has no emitter.
pub fn unsupported(instr: &Instr, module: &Module, target: &Target) -> Box<Diagnostic> {
    let operands: Vec<&str> = instr
        .operands
        .iter()
        .map(|&o| array(&module.instr(o).shape).ty.name())
        .collect();
    Diagnostic::unsupported(
        codes::EMIT_UNSUPPORTED,
        format!(
            "no code for `{}` of ({}) giving {} on {}",
            instr.op.opcode(),
            operands.join(", "),
            array(&instr.shape).ty.name(),
            target.name()
        ),
    )
    .note(format!("instruction `{}`", instr.name))
}

/// An elementwise op on its operands' values. With `wide`, narrow floats are f32 throughout and are
/// not rounded. `None` when the op is no elementwise op or not defined for its types.
pub fn apply(
    b: &mut KernelBuilder,
    module: &Module,
    instr: &Instr,
    operands: &[Value],
    wide: bool,
) -> Option<Value> {
    let seen = |ty: PrimitiveType| {
        if wide { convert::compute_type(ty) } else { ty }
    };
    let operand_ty = |i: usize| seen(array(&module.instr(instr.operands[i]).shape).ty);
    let ty = seen(array(&instr.shape).ty);
    match &instr.op {
        Op::Unary(op) => elementwise::unary(b, *op, operand_ty(0), operands[0]),
        Op::Binary(op) => elementwise::binary(b, *op, operand_ty(0), operands[0], operands[1]),
        Op::Compare {
            direction,
            ty: order,
        } => elementwise::compare(
            b,
            *direction,
            *order,
            operand_ty(0),
            operands[0],
            operands[1],
        )
        .map(Value::One),
        Op::Select => Some(operands[1].select(b, operands[0].one(), operands[2])),
        Op::Clamp => elementwise::clamp(b, ty, operands[0], operands[1], operands[2]),
        Op::Convert => Some(convert::convert(b, operand_ty(0), ty, operands[0])),
        Op::Copy => Some(operands[0]),
        Op::BitcastConvert => bits::reinterpret(b, operand_ty(0), ty, operands[0]),
        Op::ReducePrecision {
            exponent_bits,
            mantissa_bits,
        } => {
            let x = convert::widen(b, ty, operands[0].one());
            let rounded = convert::reduce_precision(b, ty, x, (*exponent_bits, *mantissa_bits));
            Some(Value::One(convert::narrow(b, ty, rounded)))
        }
        _ => None,
    }
}
