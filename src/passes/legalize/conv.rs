//! Convolutions whose window is a single point are dots.
//!
//! With strides, the points that count are sliced out first. The dot puts features where the
//! result wants them: last, or first when they come before the spatial dimensions.

use smallvec::SmallVec;

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::ConvDims;
use crate::hlo::DotDims;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::SliceDim;
use crate::hlo::Stage;
use crate::hlo::Window;
use crate::passes::edit;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::Dims;
use crate::shape::Shape;
use crate::shape::index::inverse_permutation;

/// The pass.
pub struct PointwiseConvolution;

impl Pass for PointwiseConvolution {
    fn name(&self) -> &'static str {
        "pointwise-convolution"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Legal, Stage::Legal)
    }
    fn rules(&self) -> Vec<&'static str> {
        vec!["convolution-as-dot"]
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::control(module);
        let name = "convolution-as-dot";
        edit::sweep(module, &comps, &mut |edit, id| {
            if !cx.rewrites.is_on(name) {
                return Ok(None);
            }
            let new = rule(edit, id)?;
            Ok(new.filter(|_| cx.rewrites.take(name, edit.module, id)))
        })
    }
}

fn is_pointwise(window: &Window) -> bool {
    window
        .iter()
        .all(|w| w.size == 1 && w.padding_low == 0 && w.padding_high == 0 && w.base_dilation == 1)
}

fn rule(edit: &mut Edit<'_>, id: InstrId) -> Result<Option<InstrId>> {
    let instr = edit.instr(id);
    let Op::Convolution {
        window,
        dims,
        feature_group_count: 1,
        batch_group_count: 1,
        precision,
    } = &instr.op
    else {
        return Ok(None);
    };
    if !is_pointwise(window) {
        return Ok(None);
    }
    let (window, dims, precision) = (window.clone(), dims.clone(), precision.clone());
    let (comp, operands) = (instr.parent, instr.operands.clone());
    let (Some(result), Some(input)) = (edit.array(id).cloned(), edit.array(operands[0]).cloned())
    else {
        return Ok(None);
    };
    let mut value = operands[0];
    if window.iter().any(|w| w.stride != 1) {
        let mut cut: SmallVec<[SliceDim; 4]> = input
            .dims
            .iter()
            .map(|&size| SliceDim {
                start: 0,
                limit: size,
                stride: 1,
            })
            .collect();
        for (w, &d) in window.iter().zip(&dims.input_spatial) {
            cut[d].stride = usize::try_from(w.stride).unwrap_or(1);
        }
        value = edit.op(comp, Op::Slice { dims: cut }, &[value])?;
    }
    let Some(points) = edit.array(value).map(|a| a.dims.clone()) else {
        return Ok(None);
    };
    // What each dimension of the dot's result is, as a dimension of the convolution's.
    let features_first = dims.output_spatial.iter().any(|&s| s > dims.output_feature);
    let free: Dims = (0..points.len())
        .filter(|&d| d != dims.input_feature)
        .collect();
    let placed: Dims = free.iter().map(|&d| output_dim(&dims, d)).collect();
    let kernel_free: Dims = (0..points.len())
        .filter(|&d| d != dims.kernel_input_feature)
        .collect();
    let kernel = edit.array(operands[1]).map(|a| a.dims.clone());
    let Some(kernel) = kernel else {
        return Ok(None);
    };
    // The kernel's spatial dimensions are of size one and go.
    let flat: Dims = (0..kernel.len())
        .filter(|d| !dims.kernel_spatial.contains(d))
        .map(|d| kernel[d])
        .collect();
    let ty = edit.array(operands[1]).map_or(result.ty, |a| a.ty);
    let shape = Shape::array(ty, flat.iter().copied());
    let weights = edit.shaped(
        comp,
        Op::Reshape { inferred_dim: None },
        &[operands[1]],
        shape,
    )?;
    let own = usize::from(dims.kernel_input_feature > dims.kernel_output_feature);
    debug_assert!(kernel_free.contains(&dims.kernel_output_feature));
    let (left, right, order) = if features_first {
        let mut order: Dims = Dims::from_elem(dims.output_feature, 1);
        order.extend(placed);
        ((weights, own), (value, dims.input_feature), order)
    } else {
        let mut order = placed;
        order.push(dims.output_feature);
        ((value, dims.input_feature), (weights, own), order)
    };
    let op = Op::Dot {
        dims: DotDims {
            lhs_contracting: Dims::from_elem(left.1, 1),
            rhs_contracting: Dims::from_elem(right.1, 1),
            ..DotDims::default()
        },
        precision,
        sparsity: Vec::new(),
    };
    let shape = Shape::array(result.ty, order.iter().map(|&d| result.dims[d]));
    let dot = edit.shaped(comp, op, &[left.0, right.0], shape)?;
    let turn = inverse_permutation(&order);
    edit.op(comp, Op::Transpose { dims: turn }, &[dot])
        .map(Some)
}

/// The result's dimension that the input's dimension `d` becomes.
fn output_dim(dims: &ConvDims, d: usize) -> usize {
    if d == dims.input_batch {
        return dims.output_batch;
    }
    dims.input_spatial
        .iter()
        .position(|&s| s == d)
        .map_or(dims.output_batch, |i| dims.output_spatial[i])
}
