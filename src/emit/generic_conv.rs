//! One element (or run along the output features) of a convolution of any geometry and type: the
//! plain sum over the window and the input features.
//!
//! The blocked kernels stand in `conv`; this is what small and unusual convolutions come down to.

use smallvec::SmallVec;

use crate::emit::convert;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::array;
use crate::emit::generic_dot::accumulator_type;
use crate::emit::generic_dot::multiply_add;
use crate::emit::index::Index;
use crate::emit::nested::window_position;
use crate::emit::share;
use crate::emit::value;
use crate::emit::value::Value;
use crate::hlo::ConvDims;
use crate::hlo::Instr;
use crate::hlo::Op;
use crate::hlo::Window;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::shape::Dims;

/// Whether runs of lanes along the minor dimension of an op's result stay together: of a convolution
/// or reduce-window; other ops do.
pub fn takes_lanes(op: &Op, rank: usize) -> bool {
    match op {
        Op::Convolution {
            dims,
            feature_group_count,
            batch_group_count,
            ..
        } => {
            dims.output_feature + 1 == rank && *feature_group_count == 1 && *batch_group_count == 1
        }
        Op::ReduceWindow { window, .. } => window.last().is_none_or(|w| {
            w.size == 1 && w.stride == 1 && w.padding_low == 0 && w.padding_high == 0
        }),
        _ => true,
    }
}

/// What one element of a convolution is computed from.
struct Element<'a> {
    instr: &'a Instr,
    window: &'a Window,
    dims: &'a ConvDims,
    /// Input dimensions.
    input: Dims,
    /// Index of the result.
    index: Index,
    /// Spatial index of the result.
    spatial: SmallVec<[ExprId; 6]>,
    /// Batch index into the input.
    batch: ExprId,
    /// First input feature of the group.
    first_feature: ExprId,
}

impl Elemental<'_> {
    /// One element (or run) of a convolution.
    pub fn conv_element(
        &self,
        b: &mut KernelBuilder,
        instr: &Instr,
        index: &Index,
    ) -> Option<Value> {
        let Op::Convolution {
            window,
            dims,
            feature_group_count,
            batch_group_count,
            ..
        } = &instr.op
        else {
            return None;
        };
        let shape = array(&instr.shape);
        let index = index.clone().narrowed(&shape.dims);
        let along = index.first == dims.output_feature && index.last == index.first;
        let plain = *feature_group_count == 1 && *batch_group_count == 1;
        if index.lanes > 1 && !(along && plain) {
            return None;
        }
        let input = self.dims(instr.operands[0]);
        let kernel = self.dims(instr.operands[1]);
        let features = shape.dims[dims.output_feature] as i64;
        let feature = index.at[dims.output_feature];
        let per_group = kernel[dims.kernel_input_feature];
        let group = b.div_const(feature, (features / *feature_group_count as i64).max(1));
        let first_feature = b.mul_const(group, per_group as i64);
        let batch_group = b.div_const(feature, (features / *batch_group_count as i64).max(1));
        let batches = input[dims.input_batch] / batch_group_count;
        let batch = b.mul_const(batch_group, batches as i64);
        let batch = b.add(batch, index.at[dims.output_batch]);
        let element = Element {
            instr,
            window,
            dims,
            spatial: dims.output_spatial.iter().map(|&d| index.at[d]).collect(),
            input,
            index,
            batch,
            first_feature,
        };
        let ty = accumulator_type(shape.ty);
        let start = value::zero(b, ty).splat(b, element.index.lanes);
        let mut sizes: Vec<i64> = window.iter().map(|w| w.size as i64).collect();
        sizes.push(per_group as i64);
        if sizes.contains(&0) || element.input.contains(&0) {
            return Some(convert::convert(b, ty, shape.ty, start));
        }
        let sum = self.conv_sum(b, &element, &sizes, start.registers().to_vec());
        let sum = Value::from_registers(&sum);
        Some(convert::convert(b, ty, shape.ty, sum))
    }

    /// The sum over window positions inside the input, and for each over the input features.
    fn conv_sum(
        &self,
        b: &mut KernelBuilder,
        element: &Element<'_>,
        sizes: &[i64],
        start: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let (features, window_sizes) = sizes.split_last().expect("a feature loop was pushed");
        let window_dims: Dims = window_sizes.iter().map(|&s| s as usize).collect();
        let input_spatial: Dims = element
            .dims
            .input_spatial
            .iter()
            .map(|&d| element.input[d])
            .collect();
        let zero = b.index(0);
        share::nest_carried(
            b,
            &self.splits,
            window_sizes,
            zero,
            start,
            &mut |b, number, registers| {
                let offset = self.splits.unravel(b, &window_dims, number);
                let (at, inside) =
                    window_position(b, element.window, &input_spatial, &element.spatial, &offset);
                let over_features = |b: &mut KernelBuilder| {
                    share::nest_carried(
                        b,
                        &self.splits,
                        &[*features],
                        zero,
                        registers.clone(),
                        &mut |b, feature, registers| {
                            self.scope(|| {
                                self.conv_step(b, element, &at, &offset, feature, registers)
                            })
                        },
                    )
                };
                match inside {
                    None => over_features(b),
                    Some(inside) => b.if_else(inside, over_features, |_| registers.clone()),
                }
            },
        )
    }

    fn conv_step(
        &self,
        b: &mut KernelBuilder,
        element: &Element<'_>,
        at: &[ExprId],
        offset: &[ExprId],
        feature: ExprId,
        registers: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let dims = element.dims;
        let (lhs, rhs) = (element.instr.operands[0], element.instr.operands[1]);
        let zero = b.index(0);
        let mut input: SmallVec<[ExprId; 6]> = SmallVec::from_elem(zero, element.input.len());
        input[dims.input_batch] = element.batch;
        input[dims.input_feature] = b.add(element.first_feature, feature);
        for (i, &d) in dims.input_spatial.iter().enumerate() {
            input[d] = at[i];
        }
        let mut kernel: SmallVec<[ExprId; 6]> = SmallVec::from_elem(zero, element.input.len());
        kernel[dims.kernel_input_feature] = feature;
        kernel[dims.kernel_output_feature] = element.index.at[dims.output_feature];
        for (i, &d) in dims.kernel_spatial.iter().enumerate() {
            kernel[d] = offset[i];
        }
        let shape = array(&element.instr.shape);
        let ty = accumulator_type(shape.ty);
        let x = self.value(b, lhs, &Index::scalar(input));
        let x = convert::convert(b, self.ty(lhs), ty, x);
        let run = Index::run(
            kernel,
            element.index.lanes,
            dims.kernel_output_feature,
            element.index.block,
        );
        let y = self.value(b, rhs, &run);
        let y = convert::convert(b, self.ty(rhs), ty, y);
        let acc = Value::from_registers(&registers);
        match multiply_add(b, ty, acc, x, y) {
            Some(sum) => sum.splat(b, element.index.lanes).registers().to_vec(),
            None => {
                self.unsupported(element.instr);
                registers
            }
        }
    }
}
