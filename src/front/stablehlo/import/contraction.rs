//! Dots, convolutions, transforms, linear algebra and batch normalization.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::attributes::WindowLists;
use crate::hlo::DotDims;
use crate::hlo::FftType;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PrecisionConfig;
use crate::hlo::TriangularTranspose;
use crate::hlo::Window;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::OpRef;
use crate::shape::Dims;
use crate::shape::Shape;

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn contraction(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        match name {
            "dot_general" => {
                let dims = self.dot_dims(op)?;
                let precision = self.precision(op)?;
                let [lhs, rhs] = self.exactly(op)?;
                self.dot(op, lhs, rhs, dims, precision)?;
            }
            "dot" => {
                let [lhs, rhs] = self.exactly(op)?;
                let last = self.b().dims(lhs)?.len().checked_sub(1);
                let last = last.ok_or_else(|| op.wrong("a dot of a scalar"))?;
                let dims = DotDims {
                    lhs_contracting: Dims::from_slice(&[last]),
                    rhs_contracting: Dims::from_slice(&[0]),
                    ..DotDims::default()
                };
                let precision = self.precision(op)?;
                self.dot(op, lhs, rhs, dims, precision)?;
            }
            "einsum" | "unary_einsum" => self.einsum(op)?,
            "convolution" | "dynamic_conv" => self.convolution(op, name)?,
            "ragged_dot" => self.ragged_dot(op)?,
            "fft" => {
                let word = op.attr_enum("fft_type", "fft_type")?;
                let kind = FftType::from_name(word)
                    .ok_or_else(|| op.wrong(format!("`{word}` is no kind of transform")))?;
                let lengths = self.dims(op, "fft_length")?;
                let [x] = self.exactly(op)?;
                self.emit_one(op, Op::Fft { kind, lengths }, &[x])?;
            }
            "cholesky" => {
                let lower = op.bool_or("lower", false)?;
                let [x] = self.exactly(op)?;
                self.emit_one(op, Op::Cholesky { lower }, &[x])?;
            }
            "triangular_solve" => {
                let word = op.attr_enum("transpose_a", "transpose")?;
                let transpose = TriangularTranspose::from_name(word)
                    .ok_or_else(|| op.wrong(format!("`{word}` is no transposition")))?;
                let hlo = Op::TriangularSolve {
                    left_side: op.bool_or("left_side", false)?,
                    lower: op.bool_or("lower", false)?,
                    unit_diagonal: op.bool_or("unit_diagonal", false)?,
                    transpose,
                };
                let operands: [InstrId; 2] = self.exactly(op)?;
                self.emit_one(op, hlo, &operands)?;
            }
            "batch_norm_training" | "batch_norm_inference" | "batch_norm_grad" => {
                // Minus zero is zero: protos of HLO do not tell them apart.
                let epsilon = self.float(op, "epsilon")? + 0.0;
                let feature_index = self.index(op, "feature_index")?;
                let operands = self.operands(op)?;
                let hlo = match name {
                    "batch_norm_training" => Op::BatchNormTraining {
                        epsilon,
                        feature_index,
                    },
                    "batch_norm_inference" => Op::BatchNormInference {
                        epsilon,
                        feature_index,
                    },
                    _ => Op::BatchNormGrad {
                        epsilon,
                        feature_index,
                    },
                };
                let id = self.b().op(hlo, &operands)?;
                self.set_results(op, id)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn dot_dims(&self, op: OpRef<'m>) -> Result<DotDims> {
        let of = op.attr_struct("dot_dimension_numbers", "dot")?;
        Ok(DotDims {
            lhs_contracting: self.field(op, of, "lhs_contracting_dimensions")?,
            rhs_contracting: self.field(op, of, "rhs_contracting_dimensions")?,
            lhs_batch: self.field(op, of, "lhs_batching_dimensions")?,
            rhs_batch: self.field(op, of, "rhs_batching_dimensions")?,
        })
    }

    fn dot(
        &mut self,
        op: OpRef<'m>,
        lhs: InstrId,
        rhs: InstrId,
        dims: DotDims,
        precision: PrecisionConfig,
    ) -> Result<()> {
        let ty = self.element_type(op, 0)?;
        let id = match self.declared_shape(op, 0)? {
            Some(shape) => {
                let hlo = Op::Dot {
                    dims,
                    precision,
                    sparsity: Vec::new(),
                };
                self.b().shaped(hlo, &[lhs, rhs], shape)?
            }
            None => self.b().dot(lhs, rhs, dims, precision, ty)?,
        };
        self.set_one(op, id)
    }

    /// Batch and contracted letters as a dot, and a transposition where the result wants one.
    /// Letters of one operand alone that the result lacks are summed before.
    fn einsum(&mut self, op: OpRef<'m>) -> Result<()> {
        let config = op.attr_str("einsum_config")?;
        let parts = config.split_once("->");
        let (inputs, result) = parts.ok_or_else(|| op.wrong("an einsum without `->`"))?;
        let inputs: Vec<&str> = inputs.split(',').collect();
        let operands = self.operands(op)?;
        if inputs.len() != operands.len() || config.contains("...") || !config.is_ascii() {
            return Err(op.unsupported(format!("the einsum `{config}`")));
        }
        let repeats = |word: &str| {
            word.bytes()
                .enumerate()
                .any(|(i, c)| word.as_bytes()[..i].contains(&c))
        };
        if inputs.iter().any(|w| repeats(w)) || repeats(result) {
            return Err(op.unsupported(format!("the einsum `{config}`, which repeats a letter")));
        }
        let mut arrays = Vec::new();
        for (i, (&word, &x)) in inputs.iter().zip(&operands).enumerate() {
            if self.b().dims(x)?.len() != word.len() {
                return Err(op.wrong(format!("`{word}` for an array of another rank")));
            }
            let others = || inputs.iter().enumerate().filter(|(j, _)| *j != i);
            let alone = |c: char| !result.contains(c) && !others().any(|(_, w)| w.contains(c));
            let summed: Vec<usize> = word
                .chars()
                .enumerate()
                .filter(|(_, c)| alone(*c))
                .map(|(d, _)| d)
                .collect();
            let kept: String = word.chars().filter(|c| !alone(*c)).collect();
            let x = if summed.is_empty() {
                x
            } else {
                self.b().sum(x, &summed)?
            };
            arrays.push((kept, x));
        }
        let (word, id) = match &arrays[..] {
            [(word, x)] => (word.clone(), *x),
            [(lhs, x), (rhs, y)] => self.einsum_dot(op, (lhs, *x), (rhs, *y), result)?,
            _ => return Err(op.wrong("an einsum of more than two arrays")),
        };
        let place = |c: char| word.find(c);
        let order: Option<Vec<usize>> = result.chars().map(place).collect();
        let order = order.filter(|order| order.len() == word.len());
        let order = order.ok_or_else(|| op.wrong(format!("the einsum `{config}`")))?;
        let id = self.b().transpose(id, &order)?;
        self.set_one(op, id)
    }

    fn einsum_dot(
        &mut self,
        op: OpRef<'m>,
        (lhs, x): (&str, InstrId),
        (rhs, y): (&str, InstrId),
        result: &str,
    ) -> Result<(String, InstrId)> {
        let mut dims = DotDims::default();
        let mut word = String::new();
        for (l, c) in lhs.chars().enumerate() {
            let Some(r) = rhs.find(c) else { continue };
            if result.contains(c) {
                dims.lhs_batch.push(l);
                dims.rhs_batch.push(r);
                word.push(c);
            } else {
                dims.lhs_contracting.push(l);
                dims.rhs_contracting.push(r);
            }
        }
        word.extend(lhs.chars().filter(|c| !rhs.contains(*c)));
        word.extend(rhs.chars().filter(|c| !lhs.contains(*c)));
        let ty = self.element_type(op, 0)?;
        let precision = self.precision(op)?;
        let id = self.b().dot(x, y, dims, precision, ty)?;
        Ok((word, id))
    }

    fn convolution(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        let operands = self.operands(op)?;
        let (&lhs, &rhs) = match &operands[..] {
            [lhs, rhs] => (lhs, rhs),
            [lhs, rhs, _] if name == "dynamic_conv" => (lhs, rhs),
            _ => return Err(op.wrong(format!("{} operands", operands.len()))),
        };
        let padding = match operands.get(2) {
            Some(&padding) => Some(self.known_sizes(op, padding, "padding")?),
            None => op.opt_ints("padding")?,
        };
        let hlo = self.conv_op(op, rhs, padding)?;
        let shape = match self.declared_shape(op, 0)? {
            Some(shape) => shape,
            None => {
                let wanted = Shape::scalar(self.element_type(op, 0)?);
                self.inferred(&hlo, &[lhs, rhs], &wanted)?
            }
        };
        let id = self.b().shaped(hlo, &[lhs, rhs], shape)?;
        self.set_one(op, id)
    }

    /// The convolution that an op's attributes describe, with this padding.
    pub(super) fn conv_op(
        &mut self,
        op: OpRef<'m>,
        rhs: InstrId,
        padding: Option<Vec<i64>>,
    ) -> Result<Op> {
        let dims = self.conv_dims(op)?;
        let kernel = self.b().dims(rhs)?;
        let size = |&d: &usize| kernel.get(d).map(|&n| n as i64);
        let sizes: Option<Vec<i64>> = dims.kernel_spatial.iter().map(size).collect();
        let sizes = sizes.ok_or_else(|| op.wrong("spatial dimensions out of range"))?;
        let rank = sizes.len();
        let lists = WindowLists {
            sizes: Some(sizes),
            strides: op.opt_ints("window_strides")?,
            padding,
            base_dilation: op.opt_ints("lhs_dilation")?,
            window_dilation: op.opt_ints("rhs_dilation")?,
            reversal: op.opt_bools("window_reversal")?,
        };
        let window: Window = self.window(op, rank, &lists)?;
        Ok(Op::Convolution {
            window,
            dims,
            feature_group_count: self.index(op, "feature_group_count")?,
            batch_group_count: self.index(op, "batch_group_count")?,
            precision: self.precision(op)?,
        })
    }

    /// The shape that operands give an op whose element type is that of `wanted`.
    pub(super) fn inferred(&self, hlo: &Op, operands: &[InstrId], wanted: &Shape) -> Result<Shape> {
        let shapes: Vec<&Shape> = operands.iter().map(|&o| self.out.shape(o)).collect();
        crate::hlo::infer::infer(&self.out, hlo, &shapes, Some(wanted))
    }

    /// `chlo.ragged_dot`
    pub(super) fn ragged_dot(&mut self, op: OpRef<'m>) -> Result<()> {
        let attr = op.need("ragged_dot_dimension_numbers")?;
        let of = attr
            .as_struct("chlo", "ragged_dot")
            .or_else(|| attr.as_struct("mhlo", "ragged_dot"))
            .or_else(|| attr.as_struct("stablehlo", "ragged_dot"));
        let of = of.ok_or_else(|| op.wrong("`ragged_dot_dimension_numbers` is another thing"))?;
        let dot = of
            .field("dot_dimension_numbers")
            .and_then(|attr| match attr {
                Attr::Struct(dot) => Some(&**dot),
                _ => None,
            });
        let dot = dot.unwrap_or(of);
        let hlo = Op::RaggedDot {
            dims: DotDims {
                lhs_contracting: self.field(op, dot, "lhs_contracting_dimensions")?,
                rhs_contracting: self.field(op, dot, "rhs_contracting_dimensions")?,
                lhs_batch: self.field(op, dot, "lhs_batching_dimensions")?,
                rhs_batch: self.field(op, dot, "rhs_batching_dimensions")?,
            },
            lhs_ragged: self.field(op, of, "lhs_ragged_dimensions")?,
            rhs_group: self.field(op, of, "rhs_group_dimensions")?,
            precision: self.precision(op)?,
        };
        self.ragged_dot_of(op, hlo)
    }

    /// `chlo.ragged_dot` whose attributes stand beside it: lists of dimensions in one array,
    /// precisions as words.
    pub(super) fn ragged_dot_beside(
        &mut self,
        op: OpRef<'m>,
        attributes: Option<&'m AttrMap>,
    ) -> Result<()> {
        let get = |name: &str| {
            attributes
                .and_then(|a| a.get(name))
                .and_then(Attr::as_array)
        };
        let name = "ragged_dot_dimension_numbers";
        let lists = get(name).unwrap_or_default().iter().map(Attr::ints);
        let lists: Option<Vec<Vec<i64>>> = lists.collect();
        let lists = lists.and_then(|lists| <[Vec<i64>; 6]>::try_from(lists).ok());
        let lists = lists.ok_or_else(|| op.wrong(format!("`{name}` is not six lists")))?;
        let mut dims = Vec::with_capacity(lists.len());
        for list in &lists {
            dims.push(self.sizes(op, name, list)?);
        }
        let [
            lhs_batch,
            rhs_batch,
            lhs_contracting,
            rhs_contracting,
            lhs_ragged,
            rhs_group,
        ] = <[Dims; 6]>::try_from(dims).unwrap_or_default();
        let words = get("precision_config").unwrap_or_default().iter();
        let words = words.map(|word| word.as_str().unwrap_or_default());
        let operand_precision = self.operand_precisions(op, words)?;
        let hlo = Op::RaggedDot {
            dims: DotDims {
                lhs_contracting,
                rhs_contracting,
                lhs_batch,
                rhs_batch,
            },
            lhs_ragged,
            rhs_group,
            precision: PrecisionConfig {
                operand_precision,
                ..PrecisionConfig::default()
            },
        };
        self.ragged_dot_of(op, hlo)
    }

    /// A ragged dot; one whose groups divide a batch dimension is a dot, whatever the groups are.
    fn ragged_dot_of(&mut self, op: OpRef<'m>, hlo: Op) -> Result<()> {
        if let Op::RaggedDot {
            dims,
            lhs_ragged,
            precision,
            ..
        } = &hlo
            && lhs_ragged.iter().all(|d| dims.lhs_batch.contains(d))
        {
            let [lhs, rhs, _] = self.exactly(op)?;
            return self.dot(op, lhs, rhs, dims.clone(), precision.clone());
        }
        let operands: [InstrId; 3] = self.exactly(op)?;
        let shape = match self.declared_shape(op, 0)? {
            Some(shape) => shape,
            None => {
                let wanted = Shape::scalar(self.element_type(op, 0)?);
                self.inferred(&hlo, &operands, &wanted)?
            }
        };
        let id = self.b().shaped(hlo, &operands, shape)?;
        self.set_one(op, id)
    }
}
