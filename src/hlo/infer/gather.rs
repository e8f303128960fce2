//! Shapes of gather and scatter.

use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::GatherDims;
use crate::hlo::ScatterDims;
use crate::hlo::infer::Infer;
use crate::hlo::infer::bare;
use crate::hlo::infer::list;
use crate::hlo::infer::one_or_tuple;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// What gather and scatter have in common, under one set of names.
struct IndexedWindow<'a> {
    indices_operand: usize,
    window_dims: (&'static str, &'a [usize]),
    dropped_dims: (&'static str, &'a [usize]),
    batching_dims: (&'static str, &'a [usize]),
    index_batching_dims: (&'static str, &'a [usize]),
    index_map: (&'static str, &'a [usize]),
    index_vector_dim: usize,
}

impl Infer<'_> {
    /// Checks of the dimension numbers; gives the sizes of the batch dimensions of `indices`.
    ///
    /// gather C1 to C18, scatter C2 to C17 where they say the same.
    fn indexed_window(&self, w: &IndexedWindow<'_>, operand: &ArrayShape) -> Result<Dims> {
        let indices = self.array(w.indices_operand)?;
        self.ensure(indices.ty.is_integer(), || {
            format!("indices have element type {}", indices.ty)
        })?;
        let (rank, vector_dim) = (indices.rank(), w.index_vector_dim);
        self.ensure(vector_dim <= rank, || {
            format!("index_vector_dim is {vector_dim} for indices of rank {rank}")
        })?;
        self.sorted_dims(w.dropped_dims.0, w.dropped_dims.1, operand.rank())?;
        self.sorted_dims(w.batching_dims.0, w.batching_dims.1, operand.rank())?;
        self.unique_dims(w.index_map.0, w.index_map.1, operand.rank())?;
        for &d in w.batching_dims.1 {
            for (name, dims) in [w.dropped_dims, w.index_map] {
                self.ensure(!dims.contains(&d), || {
                    format!("dimension {d} is in {} and in {name}", w.batching_dims.0)
                })?;
            }
        }
        let length = indices.dims.get(vector_dim).copied().unwrap_or(1);
        self.ensure(w.index_map.1.len() == length, || {
            let (name, found) = (w.index_map.0, w.index_map.1.len());
            format!("{name} has {found} entries where index vectors have {length}")
        })?;
        self.index_batching(w, operand, indices)?;
        let kept = w.dropped_dims.1.len() + w.batching_dims.1.len() + w.window_dims.1.len();
        self.ensure(kept == operand.rank(), || {
            format!(
                "{}, {} and {} cover {kept} of {} dimensions",
                w.window_dims.0,
                w.dropped_dims.0,
                w.batching_dims.0,
                operand.rank()
            )
        })?;
        let batch = (0..rank).filter(|&d| d != vector_dim);
        Ok(batch.map(|d| indices.dims[d]).collect())
    }

    fn index_batching(
        &self,
        w: &IndexedWindow<'_>,
        operand: &ArrayShape,
        indices: &ArrayShape,
    ) -> Result<()> {
        let (name, dims) = w.index_batching_dims;
        self.unique_dims(name, dims, indices.rank())?;
        self.ensure(!dims.contains(&w.index_vector_dim), || {
            format!(
                "{name} holds the index vector dimension {}",
                w.index_vector_dim
            )
        })?;
        let (found, wanted) = (dims.len(), w.batching_dims.1.len());
        self.ensure(found == wanted, || {
            format!(
                "{name} has {found} entries where {} has {wanted}",
                w.batching_dims.0
            )
        })?;
        for (&a, &b) in w.batching_dims.1.iter().zip(dims) {
            let (size, of) = (operand.dims[a], indices.dims[b]);
            self.ensure(size == of, || {
                format!("batching pairs operand dimension {a} of size {size} with indices dimension {b} of size {of}")
            })?;
        }
        Ok(())
    }

    /// gather C1 to C22.
    pub(super) fn gather(&self, dims: &GatherDims, slice_sizes: &[usize]) -> Result<Shape> {
        self.arity(2)?;
        let operand = self.array(0)?;
        let batch = self.indexed_window(
            &IndexedWindow {
                indices_operand: 1,
                window_dims: ("offset_dims", &dims.offset_dims),
                dropped_dims: ("collapsed_slice_dims", &dims.collapsed_slice_dims),
                batching_dims: ("operand_batching_dims", &dims.operand_batching_dims),
                index_batching_dims: (
                    "start_indices_batching_dims",
                    &dims.start_indices_batching_dims,
                ),
                index_map: ("start_index_map", &dims.start_index_map),
                index_vector_dim: dims.index_vector_dim,
            },
            operand,
        )?;
        self.ensure(slice_sizes.len() == operand.rank(), || {
            let (found, rank) = (slice_sizes.len(), operand.rank());
            format!("has {found} slice sizes for an operand of rank {rank}")
        })?;
        for (d, (&size, &of)) in slice_sizes.iter().zip(&operand.dims).enumerate() {
            self.ensure(size <= of, || {
                format!("takes {size} elements of dimension {d} of size {of}")
            })?;
            let dropped =
                dims.collapsed_slice_dims.contains(&d) || dims.operand_batching_dims.contains(&d);
            self.ensure(!dropped || size <= 1, || {
                format!("dimension {d} is dropped but its slice has size {size}")
            })?;
        }
        let rank = batch.len() + dims.offset_dims.len();
        self.sorted_dims("offset_dims", &dims.offset_dims, rank)?;
        let window: Dims = (0..operand.rank())
            .filter(|d| {
                !dims.collapsed_slice_dims.contains(d) && !dims.operand_batching_dims.contains(d)
            })
            .map(|d| slice_sizes[d])
            .collect();
        let sizes = interleave(rank, &dims.offset_dims, &window, &batch);
        Ok(Shape::Array(ArrayShape::new(operand.ty, sizes)))
    }

    /// scatter C1 to C24; several operands share the indices.
    pub(super) fn scatter(&self, dims: &ScatterDims, body: CompId) -> Result<Shape> {
        self.at_least(3)?;
        let found = self.operands.len();
        self.ensure(found % 2 == 1, || {
            format!("has {found} operands, not as many updates as inputs")
        })?;
        let n = found / 2;
        let inputs = self.arrays(0, n)?;
        let updates = self.arrays(n + 1, found)?;
        for i in 0..n {
            self.same_sizes(0, inputs[0], i, inputs[i])?;
            self.same_sizes(n + 1, updates[0], n + 1 + i, updates[i])?;
            self.same_type(i, inputs[i].ty, n + 1 + i, updates[i].ty)?;
        }
        let (operand, update) = (inputs[0], updates[0]);
        let batch = self.indexed_window(
            &IndexedWindow {
                indices_operand: n,
                window_dims: ("update_window_dims", &dims.update_window_dims),
                dropped_dims: ("inserted_window_dims", &dims.inserted_window_dims),
                batching_dims: ("input_batching_dims", &dims.input_batching_dims),
                index_batching_dims: (
                    "scatter_indices_batching_dims",
                    &dims.scatter_indices_batching_dims,
                ),
                index_map: (
                    "scatter_dims_to_operand_dims",
                    &dims.scatter_dims_to_operand_dims,
                ),
                index_vector_dim: dims.index_vector_dim,
            },
            operand,
        )?;
        let rank = batch.len() + dims.update_window_dims.len();
        self.ensure(update.rank() == rank, || {
            format!("updates have rank {} instead of {rank}", update.rank())
        })?;
        self.sorted_dims("update_window_dims", &dims.update_window_dims, rank)?;
        let bounds: Dims = (0..operand.rank())
            .filter(|d| {
                !dims.inserted_window_dims.contains(d) && !dims.input_batching_dims.contains(d)
            })
            .map(|d| operand.dims[d])
            .collect();
        for (&d, &bound) in dims.update_window_dims.iter().zip(&bounds) {
            let size = update.dims[d];
            self.ensure(size <= bound, || {
                format!("updates dimension {d} of size {size} exceeds the operand's {bound}")
            })?;
        }
        let window: Dims = dims
            .update_window_dims
            .iter()
            .map(|&d| update.dims[d])
            .collect();
        let wanted = interleave(rank, &dims.update_window_dims, &window, &batch);
        self.ensure(update.dims == wanted, || {
            let (found, wanted) = (list(&update.dims), list(&wanted));
            format!("updates have dimensions {found} instead of {wanted}")
        })?;
        let types: Vec<PrimitiveType> = inputs.iter().map(|a| a.ty).collect();
        self.scalar_body(
            "body",
            body,
            &[types.clone(), types.clone()].concat(),
            &types,
        )?;
        let shapes = inputs.iter().map(|a| Shape::Array(bare(a)));
        Ok(one_or_tuple(shapes.collect()))
    }
}

/// Sizes of `rank` dimensions: `window` at the places `at`, `batch` at the others, in order.
fn interleave(rank: usize, at: &[usize], window: &[usize], batch: &[usize]) -> Dims {
    let mut window = window.iter();
    let mut batch = batch.iter();
    (0..rank)
        .map(|d| {
            let next = if at.contains(&d) {
                window.next()
            } else {
                batch.next()
            };
            next.copied().unwrap_or(1)
        })
        .collect()
}
