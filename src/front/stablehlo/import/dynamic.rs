//! Ops whose result depends on sizes that are values; here the sizes must be known.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::attributes::WindowLists;
use crate::front::stablehlo::import::want_arrays;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir::OpRef;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl<'m> Converter<'m> {
    /// The numbers that an operand holds.
    pub(super) fn known_sizes(
        &mut self,
        op: OpRef<'m>,
        id: InstrId,
        what: &str,
    ) -> Result<Vec<i64>> {
        let known = self.facts.value(&self.out, id);
        let known = known.ok_or_else(|| {
            op.unsupported(format!(
                "its operand `{what}` is not known before the program runs"
            ))
            .help("compute it from constants and sizes of arrays alone")
        })?;
        let number = |&v: &i128| {
            i64::try_from(v).map_err(|_| op.wrong(format!("its operand `{what}` holds {v}")))
        };
        known.values.iter().map(number).collect()
    }
    /// The sizes that an operand holds.
    pub(super) fn known_dims(&mut self, op: OpRef<'m>, id: InstrId, what: &str) -> Result<Dims> {
        let sizes = self.known_sizes(op, id, what)?;
        self.sizes(op, what, &sizes)
    }
    /// The shape of a result: as declared, or of the sizes that an operand holds.
    fn shape_or(&mut self, op: OpRef<'m>, id: InstrId) -> Result<Shape> {
        match self.declared_shape(op, 0)? {
            Some(shape) => Ok(shape),
            None => {
                let dims = self.known_dims(op, id, "output_shape")?;
                Ok(Shape::array(self.element_type(op, 0)?, dims))
            }
        }
    }

    /// Converts the op when it is one of this file's.
    pub(super) fn dynamic_op(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        match name {
            "dynamic_reshape" => {
                let [x, sizes] = self.exactly(op)?;
                let shape = self.shape_or(op, sizes)?;
                match &shape {
                    Shape::Array(array) if array.is_dynamic() => {
                        self.bounded_reshape(op, x, sizes, &shape)?;
                    }
                    _ => self.reshape_to(op, x, shape)?,
                }
            }
            "dynamic_iota" => {
                let [sizes] = self.exactly(op)?;
                let shape = self.shape_or(op, sizes)?;
                let dim = self.index(op, "iota_dimension")?;
                self.iota_of(op, dim, &shape)?;
            }
            "dynamic_broadcast_in_dim" => {
                let [x, sizes] = self.exactly(op)?;
                let shape = self.shape_or(op, sizes)?;
                let mapping = self.dims(op, "broadcast_dimensions")?;
                self.broadcast_to(op, x, &mapping, &shape)?;
            }
            "dynamic_pad" => {
                let [x, value, low, high, interior] = self.exactly(op)?;
                let low = self.known_sizes(op, low, "edge_padding_low")?;
                let high = self.known_sizes(op, high, "edge_padding_high")?;
                let interior = self.known_sizes(op, interior, "interior_padding")?;
                let dims = self.pad_dims(op, &low, &high, &interior)?;
                self.pad_by(op, dims, &[x, value])?;
            }
            "real_dynamic_slice" => {
                let [x, starts, limits, strides] = self.exactly(op)?;
                let known = [starts, limits].map(|id| self.facts.value(&self.out, id));
                if known.contains(&None) {
                    let operands = [x, starts, limits, strides];
                    return self.moving_slice(op, operands).map(|()| true);
                }
                let starts = self.known_dims(op, starts, "start_indices")?;
                let limits = self.known_dims(op, limits, "limit_indices")?;
                let strides = self.known_dims(op, strides, "strides")?;
                let dims = self.slice_dims(op, &starts, &limits, &strides)?;
                self.emit_one(op, Op::Slice { dims }, &[x])?;
            }
            "dynamic_gather" => {
                let [x, indices, sizes] = self.exactly(op)?;
                let sizes = self.known_dims(op, sizes, "slice_sizes")?;
                let hlo = self.gather_op(op, sizes)?;
                self.emit_one(op, hlo, &[x, indices])?;
            }
            "get_dimension_size" => {
                let [x] = self.exactly(op)?;
                let dim = self.index(op, "dimension")?;
                self.dimension_size(op, x, dim)?;
            }
            "set_dimension_size" => {
                let [x, size] = self.exactly(op)?;
                let dim = self.index(op, "dimension")?;
                if self.declared_shape(op, 0)?.is_none() {
                    let size = self.known_dims(op, size, "size")?;
                    let size = size.first().copied().unwrap_or(0);
                    let id = self.b().slice_dim(x, dim, 0, size)?;
                    self.set_one(op, id)?;
                } else {
                    self.emit_one(op, Op::SetDimensionSize { dim }, &[x, size])?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A slice whose starts are values: of the sizes that its type says, or those by which its limits
    /// are beyond its starts. With strides it is a slice of a slice.
    fn moving_slice(
        &mut self,
        op: OpRef<'m>,
        [x, starts, limits, strides]: [InstrId; 4],
    ) -> Result<()> {
        let strides = self.known_dims(op, strides, "strides")?;
        if strides.contains(&0) {
            return Err(op.wrong("a stride of 0"));
        }
        let spans = match self.declared_shape(op, 0)? {
            Some(Shape::Array(array)) if !array.is_dynamic() => {
                let pairs = array.dims.iter().zip(&strides);
                let spans = pairs.map(|(&size, &stride)| match size {
                    0 => Some(0),
                    size => (size - 1).checked_mul(stride)?.checked_add(1),
                });
                spans.collect::<Option<Dims>>()
            }
            _ => {
                let apart = self.facts.difference(&self.out, limits, starts);
                let size = |apart: i128| usize::try_from(apart).ok();
                apart.and_then(|apart| apart.into_iter().map(size).collect())
            }
        };
        let Some(sizes) = spans else {
            return Err(op
                .unsupported("neither its starts nor its sizes are known before the program runs")
                .help("take its limits to be its starts plus what is known"));
        };
        let count = self.b().array(starts)?.element_count();
        if sizes.len() != count || strides.len() != count {
            let (sizes, strides) = (sizes.len(), strides.len());
            return Err(op.wrong(format!(
                "{count} starts and {strides} strides for {sizes} sizes"
            )));
        }
        let mut operands = vec![x];
        for d in 0..count {
            let one = self.b().slice_dim(starts, 0, d, d + 1)?;
            operands.push(self.b().reshape(one, &[])?);
        }
        let slice = Op::DynamicSlice {
            sizes: sizes.clone(),
        };
        if strides.iter().all(|&stride| stride == 1) {
            return self.emit_one(op, slice, &operands);
        }
        let whole = self.b().op(slice, &operands)?;
        let zeros: Dims = sizes.iter().map(|_| 0).collect();
        let dims = self.slice_dims(op, &zeros, &sizes, &strides)?;
        self.emit_one(op, Op::Slice { dims }, &[whole])
    }

    /// A known size is a constant.
    fn dimension_size(&mut self, op: OpRef<'m>, x: InstrId, dim: usize) -> Result<()> {
        let array = self.b().array(x)?;
        let Some(&size) = array.dims.get(dim) else {
            return Err(op.wrong(format!("dimension {dim} of {array}")));
        };
        if i32::try_from(size).is_err() {
            return Err(op.wrong(format!(
                "dimension {dim} is {size}, and a size as a value is at most {}",
                i32::MAX
            )));
        }
        let id = if array.is_dynamic_dim(dim) {
            self.b().op(Op::GetDimensionSize { dim }, &[x])?
        } else {
            self.b().constant_int(PrimitiveType::S32, size as i128)
        };
        self.set_one(op, id)
    }

    /// A reshape to a shape with bounds: the sizes are operands.
    fn bounded_reshape(
        &mut self,
        op: OpRef<'m>,
        x: InstrId,
        sizes: InstrId,
        shape: &Shape,
    ) -> Result<()> {
        let sizes = self.b().convert(sizes, PrimitiveType::S32)?;
        let rank = self.b().dims(sizes)?.first().copied().unwrap_or(0);
        let mut operands = vec![x];
        for d in 0..rank {
            let one = self.b().slice_dim(sizes, 0, d, d + 1)?;
            operands.push(self.b().reshape(one, &[])?);
        }
        let id = self
            .b()
            .shaped(Op::DynamicReshape, &operands, shape.clone())?;
        self.set_one(op, id)
    }

    /// A custom call that is an op of StableHLO whose attributes are operands.
    pub(super) fn dynamic_call(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        want_arrays(op)?;
        match name {
            "reduce_window" => self.dynamic_reduce_window(op),
            "rng_bit_generator" => {
                let [_, sizes] = self.exactly(op)?;
                let bits = match self.declared_shape(op, 1)? {
                    Some(shape) => shape,
                    None => {
                        let dims = self.known_dims(op, sizes, "output_shape")?;
                        Shape::array(self.element_type(op, 1)?, dims)
                    }
                };
                self.bit_generator(op, bits)
            }
            "top_k" => {
                let [x, k] = self.exactly(op)?;
                let k = self.known_dims(op, k, "k")?.first().copied().unwrap_or(0);
                let hlo = Op::TopK {
                    k,
                    largest: true,
                    is_stable: false,
                };
                let id = self.b().op(hlo, &[x])?;
                self.set_results(op, id)
            }
            "approx_top_k" => self.approximate_top_k(op),
            _ => Err(op.unsupported(format!("the dynamic op `{name}`"))),
        }
    }

    fn dynamic_reduce_window(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        let arrays = operands.len().checked_sub(5);
        let arrays = arrays.ok_or_else(|| op.wrong("fewer than five operands"))?;
        let &[sizes, strides, base, window, padding] = &operands[arrays..] else {
            return Err(op.wrong("fewer than five operands"));
        };
        let lists = WindowLists {
            sizes: Some(self.known_sizes(op, sizes, "window_dimensions")?),
            strides: Some(self.known_sizes(op, strides, "window_strides")?),
            padding: Some(self.known_sizes(op, padding, "padding")?),
            base_dilation: Some(self.known_sizes(op, base, "base_dilations")?),
            window_dilation: Some(self.known_sizes(op, window, "window_dilations")?),
            reversal: None,
        };
        let rank = lists.sizes.as_ref().map_or(0, Vec::len);
        let window = self.window(op, rank, &lists)?;
        let called = self.called(op)?;
        let &[body] = &called[..] else {
            return Err(op.wrong("not one called computation"));
        };
        let hlo = Op::ReduceWindow { window, body };
        let id = self.b().op(hlo, &operands[..arrays])?;
        self.set_results(op, id)
    }
}
