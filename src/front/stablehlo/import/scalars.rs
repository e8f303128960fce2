//! Ops of `arith`, `shape` and `tensor`, which stand in programs where sizes are computed.
//!
//! An `index` is an s64 scalar, a `!shape.shape` a vector of them; what is said of shapes without
//! being a value (witnesses) is nothing.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir::OpRef;
use crate::mlir::Type;
use crate::shape::PrimitiveType;

/// The HLO op of an op of `arith` with two operands.
fn binary_op(name: &str) -> Option<BinaryOp> {
    Some(match name {
        "arith.addi" | "arith.addf" | "shape.add" => BinaryOp::Add,
        "arith.subi" | "arith.subf" => BinaryOp::Subtract,
        "arith.muli" | "arith.mulf" | "shape.mul" => BinaryOp::Multiply,
        "arith.divsi" | "arith.divf" | "shape.div" => BinaryOp::Divide,
        "arith.remsi" | "arith.remf" => BinaryOp::Remainder,
        "arith.maxsi" | "arith.maximumf" | "shape.max" => BinaryOp::Maximum,
        "arith.minsi" | "arith.minimumf" | "shape.min" => BinaryOp::Minimum,
        "arith.andi" => BinaryOp::And,
        "arith.ori" => BinaryOp::Or,
        "arith.xori" => BinaryOp::Xor,
        "arith.shli" => BinaryOp::ShiftLeft,
        "arith.shrsi" => BinaryOp::ShiftRightArithmetic,
        "arith.shrui" => BinaryOp::ShiftRightLogical,
        _ => return None,
    })
}

impl<'m> Converter<'m> {
    /// An op of one of these dialects.
    pub(super) fn scalar_op(&mut self, op: OpRef<'m>) -> Result<()> {
        let name = op.kind();
        if let Some(binary) = binary_op(name) {
            let [x, y] = self.exactly(op)?;
            let id = self.b().binary(binary, x, y)?;
            return self.set_one(op, id);
        }
        match name {
            "arith.constant" => self.constant(op),
            "arith.cmpi" => self.cmpi(op),
            "arith.select" => {
                let operands: [InstrId; 3] = self.exactly(op)?;
                let id = self.b().op(Op::Select, &operands)?;
                self.set_one(op, id)
            }
            "arith.index_cast" | "arith.index_castui" | "arith.extsi" | "arith.extui"
            | "arith.trunci" | "arith.sitofp" | "arith.fptosi" | "arith.extf" | "arith.truncf" => {
                let [x] = self.exactly(op)?;
                let ty = self.element_type(op, 0)?;
                let id = self.b().convert(x, ty)?;
                self.set_one(op, id)
            }
            "shape.shape_of" => {
                let [x] = self.exactly(op)?;
                let id = self.shape_vector(op, x)?;
                self.set_one(op, id)
            }
            "shape.const_shape" => {
                let shape = op.attr_ints("shape")?;
                let sizes: Vec<i128> = shape.iter().map(|&d| d.into()).collect();
                let id = self.b().constant_ints(PrimitiveType::S64, &sizes);
                self.set_one(op, id)
            }
            "shape.num_elements" => {
                let [x] = self.exactly(op)?;
                let sizes = self.known_sizes(op, x, "shape")?;
                let count = sizes
                    .iter()
                    .try_fold(1i128, |n, &d| n.checked_mul(d.into()));
                let count = count.ok_or_else(|| op.wrong("more elements than can be counted"))?;
                let id = self.b().constant_int(PrimitiveType::S64, count);
                self.set_one(op, id)
            }
            "shape.broadcast" => self.shape_broadcast(op),
            "shape.concat" => {
                let operands = self.operands(op)?;
                let id = self.b().concatenate(&operands, 0)?;
                self.set_one(op, id)
            }
            "shape.dim" | "tensor.dim" | "shape.get_extent" | "tensor.extract" => self.extent(op),
            "tensor.from_elements" | "shape.from_extents" => self.array_of_scalars(op),
            "tensor.cast"
            | "shape.to_extent_tensor"
            | "shape.from_extent_tensor"
            | "shape.size_to_index"
            | "shape.index_to_size"
            | "shape.value_as_shape" => {
                let [x] = self.exactly(op)?;
                self.set_one(op, x)
            }
            "shape.cstr_broadcastable"
            | "shape.cstr_eq"
            | "shape.cstr_require"
            | "shape.const_witness"
            | "shape.assuming_all" => Ok(()),
            "shape.assuming" => self.inlined(op, &[]),
            "tensor.empty" => Err(op.unsupported("elements that are not defined")),
            _ => Err(op.unsupported("an op that HLO has no form of")),
        }
    }

    /// The sizes of an array as a vector.
    fn shape_vector(&mut self, op: OpRef<'m>, x: InstrId) -> Result<InstrId> {
        let array = self.b().array(x)?;
        if array.is_dynamic() {
            return Err(op.unsupported("the shape of an array with bounds"));
        }
        let ty = match op.result_type(0)? {
            Type::Tensor(tensor) => tensor.element.primitive().unwrap_or(PrimitiveType::S64),
            _ => PrimitiveType::S64,
        };
        let sizes: Vec<i128> = array.dims.iter().map(|&d| d as i128).collect();
        Ok(self.b().constant_ints(ty, &sizes))
    }

    fn cmpi(&mut self, op: OpRef<'m>) -> Result<()> {
        let [x, y] = self.exactly(op)?;
        use ComparisonDirection as D;
        let (direction, unsigned) = match op.attr_int("predicate")? {
            0 => (D::Eq, false),
            1 => (D::Ne, false),
            2 => (D::Lt, false),
            3 => (D::Le, false),
            4 => (D::Gt, false),
            5 => (D::Ge, false),
            6 => (D::Lt, true),
            7 => (D::Le, true),
            8 => (D::Gt, true),
            9 => (D::Ge, true),
            other => return Err(op.wrong(format!("the predicate {other}"))),
        };
        if unsigned {
            return Err(op.unsupported("an unsigned comparison of signed numbers"));
        }
        let ty = ComparisonType::default_of(Some(self.out.shape(x)));
        let id = self.b().op(Op::Compare { direction, ty }, &[x, y])?;
        self.set_one(op, id)
    }

    /// The shape that all these shapes broadcast to.
    fn shape_broadcast(&mut self, op: OpRef<'m>) -> Result<()> {
        let mut out: Vec<i64> = Vec::new();
        for id in self.operands(op)? {
            let sizes = self.known_sizes(op, id, "shape")?;
            if sizes.len() > out.len() {
                out.splice(0..0, vec![1; sizes.len() - out.len()]);
            }
            let offset = out.len() - sizes.len();
            for (d, &size) in sizes.iter().enumerate() {
                let known = &mut out[offset + d];
                if *known == 1 {
                    *known = size;
                } else if size != 1 && size != *known {
                    return Err(op.wrong(format!("sizes {known} and {size} of one dimension")));
                }
            }
        }
        let sizes: Vec<i128> = out.iter().map(|&d| d.into()).collect();
        let id = self.b().constant_ints(PrimitiveType::S64, &sizes);
        self.set_one(op, id)
    }

    /// One size of an array or shape, or one element at known indices.
    fn extent(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        let Some((&x, indices)) = operands.split_first() else {
            return Err(op.wrong("no operand"));
        };
        let mut at = Vec::with_capacity(indices.len());
        for &index in indices {
            let index = self.known_dims(op, index, "index")?;
            at.push(index.first().copied().unwrap_or(0));
        }
        let id = match (op.kind(), &*at) {
            ("tensor.dim" | "shape.dim", &[dim]) => {
                let array = self.b().array(x)?;
                match array.dims.get(dim) {
                    Some(&size) if !array.is_dynamic_dim(dim) => {
                        self.b().constant_int(PrimitiveType::S64, size as i128)
                    }
                    _ => return Err(op.wrong(format!("dimension {dim} of {array}"))),
                }
            }
            (_, []) => x,
            (_, at) => {
                let dims = at.iter().map(|&start| crate::hlo::SliceDim {
                    start,
                    limit: start + 1,
                    stride: 1,
                });
                let dims: Vec<crate::hlo::SliceDim> = dims.collect();
                let one = self.b().slice(x, &dims)?;
                self.b().reshape(one, &[])?
            }
        };
        self.set_one(op, id)
    }

    /// Scalars as an array.
    fn array_of_scalars(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        if operands.is_empty() {
            let id = self.b().constant_ints(PrimitiveType::S64, &[]);
            return self.set_one(op, id);
        }
        let mut parts = Vec::with_capacity(operands.len());
        for &x in &operands {
            parts.push(self.b().reshape(x, &[1])?);
        }
        let line = self.b().concatenate(&parts, 0)?;
        let id = match self.declared_shape(op, 0) {
            Ok(Some(shape)) => match shape.as_array() {
                Some(array) => {
                    let dims = array.dims.clone();
                    self.b().reshape(line, &dims)?
                }
                None => line,
            },
            _ => line,
        };
        self.set_one(op, id)
    }
}
