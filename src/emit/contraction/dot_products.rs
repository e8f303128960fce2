//! Products with few rows whose right side has the summed coordinate innermost: dot products along
//! it, of several columns side by side.

use crate::analysis::contraction::Product;
use crate::analysis::contraction::Tiling;
use crate::base::Result;
use crate::emit::contraction::few_rows::columns_of_task;
use crate::emit::contraction::few_rows::launch;
use crate::emit::contraction::few_rows::share;
use crate::emit::contraction::side::Along;
use crate::emit::contraction::side::Place;
use crate::emit::contraction::side::Reader;
use crate::emit::contraction::store::Store;
use crate::emit::contraction::tile;
use crate::emit::contraction::tile::multiply_add;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Setup;
use crate::emit::value;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Space;
use crate::kernel::Unroll;

/// Most columns whose dot products run side by side.
const SIDE_BY_SIDE: usize = 8;

/// Fewest columns of a task for which the rows are copied.
const WORTH_COPYING: usize = 16;

/// A vector of partial sums for each row and column, several columns at a time.
pub(super) fn emit(
    request: &KernelRequest<'_>,
    product: &Product,
    tiling: &Tiling,
) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    // Sums take half of the registers.
    let registers = request.target.cpu().map_or(16, |cpu| cpu.vector_registers);
    let width = (registers as usize / 2 / product.m).clamp(1, SIDE_BY_SIDE);
    let width = 1 << width.ilog2();
    let (columns, tasks) = share(product, request, width, usize::MAX / 2);
    {
        let b = &mut b;
        let lhs = Reader::lhs(&body.el, product);
        let lies_well = lhs.direct().is_some_and(|direct| direct.summed_stride == 1);
        let copy = (!lies_well && product.rows_fit() && columns >= WORTH_COPYING).then(|| {
            let scalar = value::register(product.accumulator);
            let size = (product.m * product.k) as u64;
            b.scratch("rows", scalar, size, Space::Private)
        });
        let dots = DotProducts {
            lhs,
            copy,
            rhs: Reader::rhs(&body.el, product),
            store: Store::new(&body, product),
            product,
            lanes: tiling.lanes,
        };
        let (batch, start, end) = columns_of_task(b, product, (columns, tasks));
        if let Some(copy) = copy {
            dots.copy_rows(b, batch, copy);
        }
        let main = b.index((product.n / width * width) as i64);
        let main = b.binary(BinaryOp::SMin, main, end);
        let (step, one) = (b.index(width as i64), b.index(1));
        b.for_loop((start, main, step), |b, column| {
            body.el.scope(|| dots.columns(b, batch, column, width));
        });
        if !product.n.is_multiple_of(width) {
            b.for_loop((main, end, one), |b, column| {
                body.el.scope(|| dots.columns(b, batch, column, 1));
            });
        }
    }
    body.finish(b, launch(product, tasks))
}

struct DotProducts<'a, 'm> {
    lhs: Reader<'a, 'm>,
    /// The rows, one after the other, when they don't lie so already.
    copy: Option<BufId>,
    rhs: Reader<'a, 'm>,
    store: Store<'a, 'm>,
    product: &'a Product,
    lanes: usize,
}

impl DotProducts<'_, '_> {
    fn copy_rows(&self, b: &mut KernelBuilder, batch: ExprId, copy: BufId) {
        let k = self.product.k as i64;
        let lanes = self.lanes as i64;
        let is_contiguous = self.lhs.innermost() == Along::Summed;
        let main = if is_contiguous && self.lhs.vectorizes(Along::Summed, self.lanes) {
            k / lanes * lanes
        } else {
            0
        };
        let one = |b: &mut KernelBuilder, summed: ExprId, lanes: u16| {
            for row in 0..self.product.m as i64 {
                let free = b.index(row);
                let place = Place {
                    batch,
                    free,
                    summed,
                };
                let value = self.lhs.read(b, place, Along::Summed, lanes);
                let to = b.add_const(summed, row * k);
                b.store(copy, to, value);
            }
        };
        b.for_range(main, lanes, |b, summed| {
            self.store.scope(|| one(b, summed, lanes as u16));
        });
        let bounds = (b.index(main), b.index(k), b.index(1));
        b.for_loop(bounds, |b, summed| {
            self.store.scope(|| one(b, summed, 1));
        });
    }

    /// Neighbouring elements of a row.
    fn left(&self, b: &mut KernelBuilder, place: Place, row: i64, lanes: u16) -> ExprId {
        match self.copy {
            Some(copy) => {
                let at = b.add_const(place.summed, row * self.product.k as i64);
                b.load(copy, at, lanes)
            }
            None => {
                let free = b.index(row);
                self.lhs
                    .read(b, Place { free, ..place }, Along::Summed, lanes)
            }
        }
    }

    /// The sums of all rows for `width` columns.
    fn columns(&self, b: &mut KernelBuilder, batch: ExprId, column: ExprId, width: usize) {
        let scalar = value::register(self.product.accumulator);
        let left = self.copy.is_some() || self.lhs.vectorizes(Along::Summed, self.lanes);
        let both = left && self.rhs.vectorizes(Along::Summed, self.lanes);
        let lanes = if both { self.lanes } else { 1 };
        let k = self.product.k;
        let main = k / lanes * lanes;
        let count = self.product.m * width;
        let zero = tile::zeros(b, scalar, lanes);
        let bounds = (b.index(0), b.index(main as i64), b.index(lanes as i64));
        let partial = b.for_carried(bounds, &vec![zero; count], Unroll::Auto, |b, k, sums| {
            self.step(b, (batch, column, k), width, lanes, sums)
        });
        let sums: Vec<ExprId> = partial
            .into_iter()
            .map(|sum| b.reduce_lanes(BinaryOp::Add, sum))
            .collect();
        let bounds = (b.index(main as i64), b.index(k as i64), b.index(1));
        let sums = if main == k {
            sums
        } else {
            b.for_carried(bounds, &sums, Unroll::Never, |b, k, sums| {
                self.step(b, (batch, column, k), width, 1, sums)
            })
        };
        for (row, sums) in sums.chunks(width).enumerate() {
            let row = b.index(row as i64);
            let vector = b.vector(sums);
            self.store.sums(b, (batch, row, column), vector);
        }
    }

    fn step(
        &self,
        b: &mut KernelBuilder,
        (batch, column, summed): (ExprId, ExprId, ExprId),
        width: usize,
        lanes: usize,
        sums: &[ExprId],
    ) -> Vec<ExprId> {
        self.store.scope(|| {
            let place = Place {
                batch,
                free: column,
                summed,
            };
            let rows: Vec<ExprId> = (0..self.product.m as i64)
                .map(|row| self.left(b, place, row, lanes as u16))
                .collect();
            let mut next = sums.to_vec();
            for c in 0..width {
                let free = b.add_const(column, c as i64);
                let place = Place { free, ..place };
                let vector = self.rhs.read(b, place, Along::Summed, lanes as u16);
                for (row, &x) in rows.iter().enumerate() {
                    let sum = &mut next[row * width + c];
                    *sum = multiply_add(b, x, vector, *sum);
                }
            }
            next
        })
    }
}
