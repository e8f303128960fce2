//! What a library fusion computes, read from the HLO of its bundle.
//!
//! From jaxlib 0.10.1 on the instruction is a fusion with a body; before that it is a single
//! instruction, which is its own body.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::Id;
use crate::base::Result;
use crate::executable::AllocId;
use crate::executable::BinaryFn;
use crate::executable::ConvWindowDim;
use crate::executable::ConvolutionThunk;
use crate::executable::DotThunk;
use crate::executable::FusionBody;
use crate::executable::FusionOp;
use crate::executable::FusionValue;
use crate::executable::Reducer;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::UnaryFn;
use crate::proto::xla as pb;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::wire::hlo_view::HloView;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::number::unsupported;
use crate::wire::shape::decode_array;

/// Whether the instruction with this complete id is a fusion.
pub(super) fn is_fusion(hlo: &HloView<'_>, instruction: i64) -> bool {
    let found = hlo.instruction(instruction.cast_unsigned());
    found.is_ok_and(|instruction| instruction.opcode == "fusion")
}

/// The body of the instruction with this complete id.
///
/// # Errors
/// `XA1004` when the HLO has no such instruction, or one that fusions of the library do not hold.
pub(super) fn decode(hlo: &HloView<'_>, instruction: i64) -> Result<FusionBody> {
    let id = instruction.cast_unsigned();
    let fusion = hlo.instruction(id)?;
    let mut reader = BodyReader {
        hlo,
        places: BTreeMap::new(),
        values: Vec::new(),
    };
    if fusion.opcode == "fusion" {
        let body = fusion.called_computation_ids.first();
        let body = body.and_then(|&called| hlo.computation(called));
        let body = body.ok_or_else(|| bad("the fusion has no body"))?;
        // Operands come before their users, and the root last.
        for instruction in &body.instructions {
            reader.instruction(instruction)?;
        }
        let root = reader.place(body.root_id)?;
        reader.values.truncate(root + 1);
    } else {
        for (number, operand) in fusion.operand_ids.iter().enumerate() {
            let operand_id = HloView::beside(id, *operand);
            let shape = row_major(hlo.instruction(operand_id)?)?;
            reader.push(*operand, shape, Vec::new(), FusionOp::Parameter(number));
        }
        reader.instruction(fusion)?;
    }
    Ok(FusionBody {
        values: reader.values,
    })
}

struct BodyReader<'h, 'a> {
    hlo: &'h HloView<'a>,
    /// Where the value of an instruction is, by the lower half of its id.
    places: BTreeMap<u32, usize>,
    values: Vec<FusionValue>,
}

/// The lower half of an id, which is unique in its computation.
fn local(id: i64) -> u32 {
    (id & 0xffff_ffff) as u32
}

impl BodyReader<'_, '_> {
    fn place(&self, id: i64) -> Result<usize> {
        let place = self.places.get(&local(id)).copied();
        place.ok_or_else(|| {
            bad(format!(
                "the fusion has no instruction {id} before its user"
            ))
        })
    }

    fn push(&mut self, id: i64, shape: ArrayShape, operands: Vec<usize>, op: FusionOp) {
        self.places.insert(local(id), self.values.len());
        self.values.push(FusionValue {
            shape,
            operands,
            op,
        });
    }

    fn instruction(&mut self, instruction: &pb::HloInstructionProto) -> Result<()> {
        let shape = row_major(instruction)?;
        let operands = instruction.operand_ids.iter().map(|&id| self.place(id));
        let operands: Vec<usize> = operands.collect::<Result<_>>()?;
        let op = self.op(instruction, &shape, &operands)?;
        self.push(instruction.id, shape, operands, op);
        Ok(())
    }

    fn op(
        &self,
        instruction: &pb::HloInstructionProto,
        shape: &ArrayShape,
        operands: &[usize],
    ) -> Result<FusionOp> {
        let opcode = instruction.opcode.as_str();
        let dims = || indices::<Dims>(&instruction.dimensions, "a dimension");
        let one_dim = || match dims()?.as_slice() {
            [dim] => Ok(*dim),
            other => Err(bad(format!("`{opcode}` along {} dimensions", other.len()))),
        };
        if let Some(function) = UnaryFn::from_opcode(opcode) {
            return Ok(FusionOp::Unary(function));
        }
        if let Some(function) = BinaryFn::from_opcode(opcode) {
            return Ok(FusionOp::Binary(function));
        }
        Ok(match opcode {
            "parameter" => {
                FusionOp::Parameter(index(instruction.parameter_number, "a parameter number")?)
            }
            "constant" => {
                let bytes = super::hlo_view::constant_bytes(instruction)?;
                FusionOp::Constant(Arc::new(bytes))
            }
            "iota" => FusionOp::Iota(one_dim()?),
            "bitcast" | "reshape" | "copy" => FusionOp::Same,
            "broadcast" => FusionOp::Broadcast(dims()?),
            "transpose" => FusionOp::Transpose(dims()?),
            "concatenate" => FusionOp::Concatenate(one_dim()?),
            "slice" => {
                let dims = instruction.slice_dimensions.iter();
                let starts = dims.clone().map(|d| index(d.start, "a slice's start"));
                let strides = dims.map(|d| index(d.stride, "a slice's stride"));
                FusionOp::Slice {
                    starts: starts.collect::<Result<_>>()?,
                    strides: strides.collect::<Result<_>>()?,
                }
            }
            "pad" => self.pad(instruction, shape, operands)?,
            "dot" => FusionOp::Dot(Box::new(self.dot(instruction, shape, operands)?)),
            "convolution" => {
                let thunk = self.convolution(instruction, shape, operands)?;
                FusionOp::Convolution(Box::new(thunk))
            }
            "reduce" => FusionOp::Reduce(self.reducer(instruction)?, dims()?),
            "reduce-window" => {
                let window = instruction.window.as_ref();
                FusionOp::ReduceWindow(self.reducer(instruction)?, window_dims(window))
            }
            _ => return Err(unsupported(format!("`{opcode}` in a library fusion"))),
        })
    }

    fn pad(
        &self,
        instruction: &pb::HloInstructionProto,
        shape: &ArrayShape,
        operands: &[usize],
    ) -> Result<FusionOp> {
        let config = instruction.padding_config.clone().unwrap_or_default();
        let size = |d: usize| {
            let operand = operands.first().map(|&at| &self.values[at].shape);
            operand
                .and_then(|shape| shape.dims.get(d))
                .map(|&n| n as i128)
        };
        for (d, dim) in config.dimensions.iter().enumerate() {
            let padding = i128::from(dim.edge_padding_low) + i128::from(dim.edge_padding_high);
            let wanted = size(d).map(|n| n + padding);
            let found = shape.dims.get(d).map(|&n| n as i128);
            if dim.interior_padding != 0 || wanted != found {
                return Err(unsupported("`pad` between elements in a library fusion"));
            }
        }
        let low = config.dimensions.iter().map(|d| d.edge_padding_low);
        Ok(FusionOp::Pad { low: low.collect() })
    }

    /// Two operands and the result as slices that name no memory.
    fn slices(&self, shape: &ArrayShape, operands: &[usize]) -> Result<[ShapedSlice; 3]> {
        let [lhs, rhs] = operands else {
            return Err(bad(format!("{} operands, wanted two", operands.len())));
        };
        let shapes = [&self.values[*lhs].shape, &self.values[*rhs].shape, shape];
        Ok(shapes.map(|shape| ShapedSlice {
            slice: Slice {
                alloc: AllocId::from_index(0),
                offset: 0,
                size: 0,
            },
            shape: shape.clone(),
        }))
    }

    fn dot(
        &self,
        instruction: &pb::HloInstructionProto,
        shape: &ArrayShape,
        operands: &[usize],
    ) -> Result<DotThunk> {
        let dims = instruction
            .dot_dimension_numbers
            .clone()
            .unwrap_or_default();
        let [lhs, rhs, out] = self.slices(shape, operands)?;
        Ok(DotThunk {
            dims: [
                dims.lhs_contracting_dimensions,
                dims.rhs_contracting_dimensions,
                dims.lhs_batch_dimensions,
                dims.rhs_batch_dimensions,
            ],
            lhs,
            rhs,
            out,
        })
    }

    fn convolution(
        &self,
        instruction: &pb::HloInstructionProto,
        shape: &ArrayShape,
        operands: &[usize],
    ) -> Result<ConvolutionThunk> {
        if instruction.batch_group_count > 1 {
            return Err(unsupported("groups of batches in a library fusion"));
        }
        let dims = instruction.convolution_dimension_numbers.clone();
        let dims = dims.unwrap_or_default();
        let [input, kernel, output] = self.slices(shape, operands)?;
        Ok(ConvolutionThunk {
            input_batch: dims.input_batch_dimension,
            input_feature: dims.input_feature_dimension,
            input_spatial: dims.input_spatial_dimensions,
            kernel_input_feature: dims.kernel_input_feature_dimension,
            kernel_output_feature: dims.kernel_output_feature_dimension,
            kernel_spatial: dims.kernel_spatial_dimensions,
            output_batch: dims.output_batch_dimension,
            output_feature: dims.output_feature_dimension,
            output_spatial: dims.output_spatial_dimensions,
            window: window_dims(instruction.window.as_ref()),
            feature_group_count: instruction.feature_group_count.max(1),
            multi_threaded: true,
            input,
            kernel,
            output,
        })
    }

    /// A reducer is two parameters and a root that combines them.
    fn reducer(&self, instruction: &pb::HloInstructionProto) -> Result<Reducer> {
        let called = instruction.called_computation_ids.first();
        let called = called.and_then(|&called| self.hlo.computation(called));
        let called = called.ok_or_else(|| bad("the reduction has no body"))?;
        let mut all = called.instructions.iter();
        let root = all.find(|i| local(i.id) == local(called.root_id));
        let reducer = root.and_then(|root| Reducer::from_opcode(&root.opcode));
        match (reducer, called.instructions.len()) {
            (Some(reducer), 3) => Ok(reducer),
            _ => Err(unsupported(format!(
                "a reduction by `{}` in a library fusion",
                called.name
            ))),
        }
    }
}

/// The shape of an instruction, which must be a row-major array.
fn row_major(instruction: &pb::HloInstructionProto) -> Result<ArrayShape> {
    let shape = instruction.shape.as_ref();
    let mut shape = decode_array(shape.ok_or_else(|| bad("an instruction has no shape"))?)?;
    shape.layout = Some(shape.layout_or_default());
    Ok(shape)
}

/// The dimensions of a window.
pub(super) fn window_dims(window: Option<&pb::Window>) -> Vec<ConvWindowDim> {
    let dims = window.map(|window| window.dimensions.as_slice());
    let dim = |d: &pb::WindowDimension| ConvWindowDim {
        size: d.size,
        stride: d.stride,
        padding_low: d.padding_low,
        padding_high: d.padding_high,
        window_dilation: d.window_dilation,
        base_dilation: d.base_dilation,
        reversal: d.window_reversal,
    };
    dims.unwrap_or_default().iter().map(dim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::PrimitiveType;
    use crate::wire::shape::encode_array;

    fn instruction(
        id: i64,
        opcode: &str,
        dims: &[usize],
        operands: &[i64],
    ) -> pb::HloInstructionProto {
        let mut shape = ArrayShape::new(PrimitiveType::F32, dims.iter().copied());
        shape.layout = Some(shape.layout_or_default());
        pb::HloInstructionProto {
            name: format!("{opcode}.{id}"),
            opcode: opcode.to_owned(),
            shape: Some(encode_array(&shape)),
            id,
            operand_ids: operands.to_vec(),
            ..Default::default()
        }
    }

    fn parameter(id: i64, number: i64, dims: &[usize]) -> pb::HloInstructionProto {
        pb::HloInstructionProto {
            parameter_number: number,
            ..instruction(id, "parameter", dims, &[])
        }
    }

    fn dot(id: i64, operands: &[i64]) -> pb::HloInstructionProto {
        pb::HloInstructionProto {
            dot_dimension_numbers: Some(pb::DotDimensionNumbers {
                lhs_contracting_dimensions: vec![1],
                rhs_contracting_dimensions: vec![0],
                ..Default::default()
            }),
            ..instruction(id, "dot", &[2, 4], operands)
        }
    }

    fn computation(
        id: i64,
        root: i64,
        instructions: Vec<pb::HloInstructionProto>,
    ) -> pb::HloComputationProto {
        pb::HloComputationProto {
            id,
            root_id: root,
            instructions,
            ..Default::default()
        }
    }

    fn module(computations: Vec<pb::HloComputationProto>) -> pb::HloModuleProtoWithConfig {
        pb::HloModuleProtoWithConfig {
            hlo_module: Some(pb::HloModuleProto {
                computations,
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// Row sums of a product; ids as jaxlib writes them, the computation's in the upper half.
    #[test]
    fn the_body_of_a_fusion_is_read() {
        let up = |computation: i64, id: i64| (computation << 32) | id;
        let sum = pb::HloInstructionProto {
            dimensions: vec![1],
            called_computation_ids: vec![1],
            ..instruction(up(2, 4), "reduce", &[2], &[up(2, 2), up(2, 3)])
        };
        let mut zero = instruction(up(2, 3), "constant", &[], &[]);
        zero.literal = Some(pb::LiteralProto {
            shape: zero.shape.clone(),
            f32s: vec![0.0],
            ..Default::default()
        });
        let adding = vec![
            parameter(up(1, 0), 0, &[]),
            parameter(up(1, 1), 1, &[]),
            instruction(up(1, 2), "add", &[], &[up(1, 0), up(1, 1)]),
        ];
        let fused = vec![
            parameter(up(2, 0), 0, &[2, 3]),
            parameter(up(2, 1), 1, &[3, 4]),
            dot(up(2, 2), &[up(2, 0), up(2, 1)]),
            zero,
            sum,
        ];
        let mut fusion = instruction(up(3, 7), "fusion", &[2], &[]);
        fusion.called_computation_ids = vec![2];
        let module = module(vec![
            computation(1, up(1, 2), adding),
            computation(2, up(2, 4), fused),
            computation(3, up(3, 7), vec![fusion]),
        ]);
        let hlo = HloView::new(&module).unwrap();
        let body = decode(&hlo, up(3, 7)).unwrap();
        assert_eq!(body.values.len(), 5);
        assert!(matches!(body.values[2].op, FusionOp::Dot(_)));
        let last = &body.values[4];
        assert_eq!(
            last.op,
            FusionOp::Reduce(Reducer::Sum, Dims::from_slice(&[1]))
        );
        assert_eq!(last.operands, [2, 3]);
        assert!(decode(&hlo, up(3, 8)).is_err());
    }

    /// Before 0.10.1 the instruction of a thunk is the product itself.
    #[test]
    fn an_instruction_is_its_own_body() {
        let entry = vec![
            parameter(5, 0, &[3, 4]),
            parameter(6, 1, &[2, 3]),
            dot(7, &[6, 5]),
        ];
        let module = module(vec![computation(9, 7, entry)]);
        let hlo = HloView::new(&module).unwrap();
        let body = decode(&hlo, (9 << 32) | 7).unwrap();
        assert_eq!(body.values[0].shape.dims.as_slice(), [2, 3]);
        assert_eq!(body.values[2].operands, [0, 1]);
        let module = module_of(instruction(7, "sort", &[2], &[]));
        let hlo = HloView::new(&module).unwrap();
        let refused = decode(&hlo, (9 << 32) | 7).unwrap_err();
        assert!(refused.message.contains("`sort`"), "{refused}");
    }

    fn module_of(instruction: pb::HloInstructionProto) -> pb::HloModuleProtoWithConfig {
        module(vec![computation(9, instruction.id, vec![instruction])])
    }
}
