//! Attributes of ops as HLO has them: dimension lists, windows, precisions.

use smallvec::SmallVec;

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::hlo::ConvDims;
use crate::hlo::DotAlgorithm;
use crate::hlo::Precision;
use crate::hlo::PrecisionConfig;
use crate::hlo::Window;
use crate::hlo::WindowDim;
use crate::mlir::Attr;
use crate::mlir::OpRef;
use crate::mlir::StructAttr;
use crate::shape::Dims;

/// The most dimensions a window is read with.
const MAX_RANK: usize = 1 << 10;

/// The lists that a window is made of; those that an op lacks are absent.
#[derive(Debug, Default)]
pub struct WindowLists {
    /// Size of the window.
    pub sizes: Option<Vec<i64>>,
    /// Steps between positions.
    pub strides: Option<Vec<i64>>,
    /// Low and high padding, two a dimension.
    pub padding: Option<Vec<i64>>,
    /// Distance between base elements.
    pub base_dilation: Option<Vec<i64>>,
    /// Distance between window elements.
    pub window_dilation: Option<Vec<i64>>,
    /// Whether a dimension is walked backwards.
    pub reversal: Option<Vec<bool>>,
}

impl<'m> Converter<'m> {
    /// Numbers that count or name something, none of them negative.
    pub(super) fn sizes(&self, op: OpRef<'m>, what: &str, values: &[i64]) -> Result<Dims> {
        let one = |&v: &i64| {
            usize::try_from(v).map_err(|_| op.wrong(format!("`{what}` has the number {v}")))
        };
        values.iter().map(one).collect()
    }
    /// The list of that name.
    pub(super) fn dims(&self, op: OpRef<'m>, name: &str) -> Result<Dims> {
        self.sizes(op, name, &op.attr_ints(name)?)
    }
    /// The number of that name.
    pub(super) fn index(&self, op: OpRef<'m>, name: &str) -> Result<usize> {
        let value = op.attr_int(name)?;
        usize::try_from(value).map_err(|_| op.wrong(format!("`{name}` is {value}")))
    }
    /// The list of that field of a structure; an absent one is empty.
    pub(super) fn field(&self, op: OpRef<'m>, of: &StructAttr, name: &str) -> Result<Dims> {
        let values = of
            .ints(name)
            .ok_or_else(|| op.wrong(format!("`{name}` is no list of integers")))?;
        self.sizes(op, name, &values)
    }
    /// The number of that field of a structure; an absent one is zero.
    pub(super) fn field_index(&self, op: OpRef<'m>, of: &StructAttr, name: &str) -> Result<usize> {
        let value = of.int(name).unwrap_or(-1);
        usize::try_from(value).map_err(|_| op.wrong(format!("`{name}` is no index")))
    }
    /// The float of that name.
    pub(super) fn float(&self, op: OpRef<'m>, name: &str) -> Result<f32> {
        match op.need(name)? {
            Attr::Float { bits, ty } => {
                let ty = ty
                    .primitive()
                    .ok_or_else(|| op.wrong(format!("`{name}` has the type {ty:?}")))?;
                Ok(crate::literal::number::float_to_f64(ty, *bits) as f32)
            }
            other => Err(op.wrong(format!("`{name}` is {}", other.what()))),
        }
    }

    /// A window of `rank` dimensions.
    pub(super) fn window(&self, op: OpRef<'m>, rank: usize, lists: &WindowLists) -> Result<Window> {
        let fits = |name: &str, list: Option<usize>, each: usize| match list {
            Some(n) if n != rank * each => Err(op.wrong(format!(
                "`{name}` has {n} numbers for a window of rank {rank}"
            ))),
            _ => Ok(()),
        };
        if rank > MAX_RANK {
            return Err(op.wrong(format!("a window of rank {rank}")));
        }
        fits("window_dimensions", lists.sizes.as_ref().map(Vec::len), 1)?;
        fits("window_strides", lists.strides.as_ref().map(Vec::len), 1)?;
        fits("padding", lists.padding.as_ref().map(Vec::len), 2)?;
        fits(
            "base_dilations",
            lists.base_dilation.as_ref().map(Vec::len),
            1,
        )?;
        fits(
            "window_dilations",
            lists.window_dilation.as_ref().map(Vec::len),
            1,
        )?;
        fits("window_reversal", lists.reversal.as_ref().map(Vec::len), 1)?;
        let at = |list: &Option<Vec<i64>>, i: usize, default: i64| {
            list.as_ref().map_or(default, |list| list[i])
        };
        let dims = (0..rank).map(|d| {
            let size = at(&lists.sizes, d, 1);
            Ok(WindowDim {
                size: usize::try_from(size)
                    .map_err(|_| op.wrong(format!("a window of size {size}")))?,
                stride: at(&lists.strides, d, 1),
                padding_low: at(&lists.padding, 2 * d, 0),
                padding_high: at(&lists.padding, 2 * d + 1, 0),
                window_dilation: at(&lists.window_dilation, d, 1),
                base_dilation: at(&lists.base_dilation, d, 1),
                reversal: lists.reversal.as_ref().is_some_and(|list| list[d]),
            })
        });
        dims.collect()
    }

    /// Precisions of the operands and the algorithm.
    pub(super) fn precision(&self, op: OpRef<'m>) -> Result<PrecisionConfig> {
        let items = op.attr_as("precision_config", "an array", Attr::as_array)?;
        let words = items.unwrap_or_default().iter();
        let words = words.map(|item| item.as_enum("precision").unwrap_or_default());
        let operand_precision = self.operand_precisions(op, words)?;
        let algorithm = match op.opt_struct("algorithm", "dot_algorithm")? {
            Some(algorithm) => self.algorithm(op, algorithm)?,
            None => DotAlgorithm::Unset,
        };
        Ok(PrecisionConfig {
            operand_precision,
            algorithm,
        })
    }

    /// Precisions by their words; all default ones are none.
    pub(super) fn operand_precisions<'a>(
        &self,
        op: OpRef<'m>,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<SmallVec<[Precision; 2]>> {
        let precisions = words.map(|word| {
            let precision = Precision::from_name(&word.to_lowercase());
            precision.ok_or_else(|| op.wrong(format!("`{word}` is no precision")))
        });
        let mut precisions: SmallVec<[Precision; 2]> = precisions.collect::<Result<_>>()?;
        if precisions.iter().all(|&p| p == Precision::Default) {
            precisions.clear();
        }
        Ok(precisions)
    }

    /// The one word that XLA has for a dot algorithm.
    fn algorithm(&self, op: OpRef<'m>, of: &StructAttr) -> Result<DotAlgorithm> {
        let ty = |name: &str| match of.field(name) {
            Some(Attr::Type(ty)) => Ok(format!("{:?}", ty.primitive())),
            _ => Err(op.wrong(format!("`{name}` of the algorithm is no type"))),
        };
        let (lhs, rhs) = (ty("lhs_precision_type")?, ty("rhs_precision_type")?);
        let sum = ty("accumulation_type")?;
        let count = |name: &str| of.field(name).and_then(Attr::as_int).unwrap_or(1);
        let parts = (count("lhs_component_count"), count("rhs_component_count"));
        let steps = count("num_primitive_operations");
        let imprecise = matches!(
            of.field("allow_imprecise_accumulation"),
            Some(Attr::Bool(true))
        );
        let narrow = |ty: &str| ty.starts_with("Some(F8");
        // A TF32 type has no element type of HLO.
        let found = match (&*lhs, &*rhs, &*sum, parts, steps) {
            (l, r, "Some(F32)", (1, 1), 1) if narrow(l) && narrow(r) => Some(if imprecise {
                DotAlgorithm::AnyF8AnyF8F32FastAccum
            } else {
                DotAlgorithm::AnyF8AnyF8F32
            }),
            (l, r, _, (1, 1), 1) if narrow(l) && narrow(r) => Some(if imprecise {
                DotAlgorithm::AnyF8AnyF8AnyFastAccum
            } else {
                DotAlgorithm::AnyF8AnyF8Any
            }),
            ("Some(F16)", "Some(F16)", "Some(F16)", (1, 1), 1) => Some(DotAlgorithm::F16F16F16),
            ("Some(F16)", "Some(F16)", "Some(F32)", (1, 1), 1) => Some(DotAlgorithm::F16F16F32),
            ("Some(BF16)", "Some(BF16)", "Some(BF16)", (1, 1), 1) => {
                Some(DotAlgorithm::Bf16Bf16Bf16)
            }
            ("Some(BF16)", "Some(BF16)", "Some(F32)", (1, 1), steps) => match steps {
                1 => Some(DotAlgorithm::Bf16Bf16F32),
                3 => Some(DotAlgorithm::Bf16Bf16F32X3),
                6 => Some(DotAlgorithm::Bf16Bf16F32X6),
                9 => Some(DotAlgorithm::Bf16Bf16F32X9),
                _ => None,
            },
            ("None", "None", "Some(F32)", (1, 1), 1) => Some(DotAlgorithm::Tf32Tf32F32),
            ("None", "None", "Some(F32)", (1, 1), 3) => Some(DotAlgorithm::Tf32Tf32F32X3),
            ("Some(F32)", "Some(F32)", "Some(F32)", (1, 1), 1) => Some(DotAlgorithm::F32F32F32),
            ("Some(F64)", "Some(F64)", "Some(F64)", (1, 1), 1) => Some(DotAlgorithm::F64F64F64),
            _ => None,
        };
        found.ok_or_else(|| op.unsupported("HLO has no such dot algorithm"))
    }

    /// The dimension numbers of a convolution.
    pub(super) fn conv_dims(&self, op: OpRef<'m>) -> Result<ConvDims> {
        let of = op.attr_struct("dimension_numbers", "conv")?;
        Ok(ConvDims {
            input_batch: self.field_index(op, of, "input_batch_dimension")?,
            input_feature: self.field_index(op, of, "input_feature_dimension")?,
            input_spatial: self.field(op, of, "input_spatial_dimensions")?,
            kernel_input_feature: self.field_index(op, of, "kernel_input_feature_dimension")?,
            kernel_output_feature: self.field_index(op, of, "kernel_output_feature_dimension")?,
            kernel_spatial: self.field(op, of, "kernel_spatial_dimensions")?,
            output_batch: self.field_index(op, of, "output_batch_dimension")?,
            output_feature: self.field_index(op, of, "output_feature_dimension")?,
            output_spatial: self.field(op, of, "output_spatial_dimensions")?,
        })
    }
}
