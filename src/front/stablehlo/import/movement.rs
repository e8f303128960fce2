//! Ops that move elements: shapes, slices, gathers, scatters, tuples.

use smallvec::SmallVec;

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::hlo::GatherDims;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::ScatterDims;
use crate::hlo::SliceDim;
use crate::mlir::OpRef;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn movement(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        match name {
            "broadcast_in_dim" => {
                let [x] = self.exactly(op)?;
                let mapping = self.dims(op, "broadcast_dimensions")?;
                let shape = self.needed_shape(op, 0)?;
                self.broadcast_to(op, x, &mapping, &shape)?;
            }
            "broadcast" => {
                let [x] = self.exactly(op)?;
                let sizes = self.dims(op, "broadcast_sizes")?;
                let inner = self.b().dims(x)?;
                let mapping: Vec<usize> = (sizes.len()..sizes.len() + inner.len()).collect();
                let dims = [&sizes[..], &inner[..]].concat();
                let id = self.b().broadcast(x, &mapping, &dims)?;
                self.set_one(op, id)?;
            }
            "reshape" => {
                let [x] = self.exactly(op)?;
                let shape = self.needed_shape(op, 0)?;
                self.reshape_to(op, x, shape)?;
            }
            "bitcast" => {
                let [x] = self.exactly(op)?;
                let shape = self.needed_shape(op, 0)?;
                let id = self.b().bitcast(x, shape)?;
                self.set_one(op, id)?;
            }
            "transpose" => {
                let [x] = self.exactly(op)?;
                let dims = self.dims(op, "permutation")?;
                self.emit_one(op, Op::Transpose { dims }, &[x])?;
            }
            "reverse" => {
                let [x] = self.exactly(op)?;
                let dims = self.dims(op, "dimensions")?;
                self.emit_one(op, Op::Reverse { dims }, &[x])?;
            }
            "concatenate" => {
                let operands = self.operands(op)?;
                let dim = self.index(op, "dimension")?;
                self.emit_one(op, Op::Concatenate { dim }, &operands)?;
            }
            "iota" => {
                let dim = self.index(op, "iota_dimension")?;
                let shape = self.needed_shape(op, 0)?;
                self.iota_of(op, dim, &shape)?;
            }
            "slice" | "pad" | "dynamic_slice" | "dynamic_update_slice" => self.part(op, name)?,
            "gather" | "scatter" | "torch_index_select" => self.indexed(op, name)?,
            "tuple" => {
                let operands = self.operands(op)?;
                self.emit_one(op, Op::Tuple, &operands)?;
            }
            "get_tuple_element" => {
                let [tuple] = self.exactly(op)?;
                let index = self.index(op, "index")?;
                self.emit_one(op, Op::GetTupleElement { index }, &[tuple])?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn part(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        let operands = self.operands(op)?;
        let hlo = match name {
            "slice" => {
                let starts = self.dims(op, "start_indices")?;
                let limits = self.dims(op, "limit_indices")?;
                let strides = self.dims(op, "strides")?;
                Op::Slice {
                    dims: self.slice_dims(op, &starts, &limits, &strides)?,
                }
            }
            "pad" => {
                let low = op.attr_ints("edge_padding_low")?;
                let high = op.attr_ints("edge_padding_high")?;
                let interior = op.attr_ints("interior_padding")?;
                let dims = self.pad_dims(op, &low, &high, &interior)?;
                return self.pad_by(op, dims, &operands);
            }
            "dynamic_slice" => Op::DynamicSlice {
                sizes: self.dims(op, "slice_sizes")?,
            },
            _ => Op::DynamicUpdateSlice,
        };
        self.emit_one(op, hlo, &operands)
    }

    /// Starts, limits and strides as triples.
    pub(super) fn slice_dims(
        &self,
        op: OpRef<'m>,
        starts: &[usize],
        limits: &[usize],
        strides: &[usize],
    ) -> Result<SmallVec<[SliceDim; 4]>> {
        if starts.len() != limits.len() || starts.len() != strides.len() {
            return Err(op.wrong("starts, limits and strides of different lengths"));
        }
        let dims = (0..starts.len()).map(|d| SliceDim {
            start: starts[d],
            limit: limits[d],
            stride: strides[d],
        });
        Ok(dims.collect())
    }

    /// Paddings as triples.
    pub(super) fn pad_dims(
        &self,
        op: OpRef<'m>,
        low: &[i64],
        high: &[i64],
        interior: &[i64],
    ) -> Result<SmallVec<[PadDim; 4]>> {
        if low.len() != high.len() || low.len() != interior.len() {
            return Err(op.wrong("low, high and interior padding of different lengths"));
        }
        let dims = (0..low.len()).map(|d| PadDim {
            low: low[d],
            high: high[d],
            interior: interior[d],
        });
        Ok(dims.collect())
    }

    /// A pad, unless nothing changes.
    pub(super) fn pad_by(
        &mut self,
        op: OpRef<'m>,
        dims: SmallVec<[PadDim; 4]>,
        operands: &[InstrId],
    ) -> Result<()> {
        let nothing = dims.iter().all(|dim| *dim == PadDim::default());
        let hlo = Op::Pad { dims };
        match operands {
            &[x, _] if nothing => {
                self.inferred(&hlo, operands, self.out.shape(x))?;
                self.set_one(op, x)
            }
            _ => self.emit_one(op, hlo, operands),
        }
    }

    /// A reshape, unless nothing changes.
    pub(super) fn reshape_to(&mut self, op: OpRef<'m>, x: InstrId, shape: Shape) -> Result<()> {
        let id = if self.out.shape(x).same_ignoring_layout(&shape) {
            x
        } else {
            let hlo = Op::Reshape { inferred_dim: None };
            self.b().shaped(hlo, &[x], shape)?
        };
        self.set_one(op, id)
    }

    /// A broadcast to a shape that may have dimensions with bounds.
    pub(super) fn broadcast_to(
        &mut self,
        op: OpRef<'m>,
        x: InstrId,
        mapping: &[usize],
        shape: &Shape,
    ) -> Result<()> {
        let Some(array) = shape.as_array().cloned() else {
            return Err(op.wrong("a result that is no array"));
        };
        let source = self.b().array(x)?;
        if mapping.len() != source.rank() || mapping.iter().any(|&d| d >= array.rank()) {
            return Err(op.wrong("broadcast dimensions that do not fit the shapes"));
        }
        let id = if array.is_dynamic() {
            let dims = mapping.into();
            self.b()
                .shaped(Op::Broadcast { dims }, &[x], shape.clone())?
        } else {
            self.broadcast_in_dim(x, mapping, &array.dims)?
        };
        self.set_one(op, id)
    }

    /// A broadcast whose operand may have dimensions of size one that grow: XLA repeats the others
    /// first, then drops the ones, then repeats along them.
    pub(super) fn broadcast_in_dim(
        &mut self,
        x: InstrId,
        mapping: &[usize],
        dims: &[usize],
    ) -> Result<InstrId> {
        let source = self.b().dims(x)?;
        if source.as_slice() == dims && mapping.iter().copied().eq(0..dims.len()) {
            return Ok(x);
        }
        if !mapping.is_sorted() {
            let mut order: Vec<usize> = (0..mapping.len()).collect();
            order.sort_by_key(|&d| mapping[d]);
            let sorted: Vec<usize> = order.iter().map(|&d| mapping[d]).collect();
            let turned = self.b().transpose(x, &order)?;
            return self.broadcast_in_dim(turned, &sorted, dims);
        }
        let grows = |d: usize| source[d] == 1 && dims[mapping[d]] != 1;
        if !(0..source.len()).any(grows) {
            return self.b().broadcast(x, mapping, dims);
        }
        let mut first: Dims = dims.into();
        let mut kept: Vec<usize> = (0..dims.len()).collect();
        for d in (0..source.len()).filter(|&d| grows(d)) {
            first[mapping[d]] = 1;
            kept.retain(|&out| out != mapping[d]);
        }
        let wide = self.b().broadcast(x, mapping, &first)?;
        let sizes: Vec<usize> = kept.iter().map(|&out| dims[out]).collect();
        let flat = self.b().reshape(wide, &sizes)?;
        self.b().broadcast(flat, &kept, dims)
    }

    /// An iota of one dimension that is broadcast along the others, as XLA builds it.
    pub(super) fn iota_of(&mut self, op: OpRef<'m>, dim: usize, shape: &Shape) -> Result<()> {
        let Some(array) = shape.as_array() else {
            return Err(op.wrong("a result that is no array"));
        };
        let ranged = array.rank() > 1 && !array.is_dynamic();
        let id = match array.dims.get(dim) {
            Some(&size) if ranged => {
                let (ty, dims) = (array.ty, array.dims.clone());
                let line = self.b().iota(ty, &[size], 0)?;
                self.b().broadcast(line, &[dim], &dims)?
            }
            _ => self.b().shaped(Op::Iota { dim }, &[], shape.clone())?,
        };
        self.set_one(op, id)
    }

    fn indexed(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        match name {
            "gather" => {
                let operands = self.operands(op)?;
                let slice_sizes = self.dims(op, "slice_sizes")?;
                let hlo = self.gather_op(op, slice_sizes)?;
                self.emit_one(op, hlo, &operands)
            }
            "scatter" => {
                let operands = self.operands(op)?;
                let of = op.attr_struct("scatter_dimension_numbers", "scatter")?;
                let dims = ScatterDims {
                    update_window_dims: self.field(op, of, "update_window_dims")?,
                    inserted_window_dims: self.field(op, of, "inserted_window_dims")?,
                    scatter_dims_to_operand_dims: self.field(
                        op,
                        of,
                        "scatter_dims_to_operand_dims",
                    )?,
                    input_batching_dims: self.field(op, of, "input_batching_dims")?,
                    scatter_indices_batching_dims: self.field(
                        op,
                        of,
                        "scatter_indices_batching_dims",
                    )?,
                    index_vector_dim: self.field_index(op, of, "index_vector_dim")?,
                };
                let body = self.region_of(op, 0)?;
                let hlo = Op::Scatter {
                    dims,
                    body,
                    indices_are_sorted: op.bool_or("indices_are_sorted", false)?,
                    unique_indices: op.bool_or("unique_indices", false)?,
                };
                let id = self.b().op(hlo, &operands)?;
                self.set_results(op, id)
            }
            _ => self.torch_index_select(op),
        }
    }

    /// The gather that an op's attributes describe.
    pub(super) fn gather_op(&self, op: OpRef<'m>, slice_sizes: Dims) -> Result<Op> {
        let of = op.attr_struct("dimension_numbers", "gather")?;
        Ok(Op::Gather {
            dims: GatherDims {
                offset_dims: self.field(op, of, "offset_dims")?,
                collapsed_slice_dims: self.field(op, of, "collapsed_slice_dims")?,
                start_index_map: self.field(op, of, "start_index_map")?,
                operand_batching_dims: self.field(op, of, "operand_batching_dims")?,
                start_indices_batching_dims: self.field(op, of, "start_indices_batching_dims")?,
                index_vector_dim: self.field_index(op, of, "index_vector_dim")?,
            },
            slice_sizes,
            indices_are_sorted: op.bool_or("indices_are_sorted", false)?,
        })
    }

    /// Slices along `dim` by the indices, for each place of the first `batch_dims` dimensions: a
    /// gather whose indices have the place beside them.
    fn torch_index_select(&mut self, op: OpRef<'m>) -> Result<()> {
        let [x, indices] = self.exactly(op)?;
        let sizes = self.b().dims(x)?;
        let rank = sizes.len();
        let negative = |value: i64| {
            let value = if value < 0 {
                value + rank as i64
            } else {
                value
            };
            usize::try_from(value).map_err(|_| op.wrong("a dimension out of range"))
        };
        let dim = negative(op.attr_int("dim")?)?;
        let batch = negative(op.attr_int("batch_dims")?)?;
        let index = self.b().array(indices)?;
        if dim >= rank || batch > dim || batch > index.rank() {
            return Err(op.wrong("dimensions out of range"));
        }
        let index_rank = index.rank();
        let mut slice_sizes: Dims = sizes.clone();
        slice_sizes[dim] = 1;
        slice_sizes[..batch].fill(1);
        let vector = self.with_batch_places(indices, batch)?;
        let collapsed = (0..batch).chain([dim]).collect();
        let offset = (batch..dim).chain(dim + index_rank - batch..rank + index_rank - batch - 1);
        let hlo = Op::Gather {
            dims: GatherDims {
                offset_dims: offset.collect(),
                collapsed_slice_dims: collapsed,
                start_index_map: (0..batch).chain([dim]).collect(),
                index_vector_dim: index_rank,
                ..GatherDims::default()
            },
            slice_sizes,
            indices_are_sorted: false,
        };
        // Batch dimensions stand first in both forms, and offsets keep their order around the rest.
        self.emit_one(op, hlo, &[x, vector])
    }

    /// The indices with their place in the first `batch` dimensions before them, as a vector in a
    /// last dimension; the indices themselves when there is no batch.
    fn with_batch_places(&mut self, indices: InstrId, batch: usize) -> Result<InstrId> {
        if batch == 0 {
            return Ok(indices);
        }
        let array = self.b().array(indices)?;
        let ty: PrimitiveType = array.ty;
        let mut wide = array.dims.to_vec();
        wide.push(1);
        let mut parts = Vec::with_capacity(batch + 1);
        for d in 0..batch {
            parts.push(self.b().iota(ty, &wide, d)?);
        }
        parts.push(self.b().reshape(indices, &wide)?);
        self.b().concatenate(&parts, array.rank())
    }
}
