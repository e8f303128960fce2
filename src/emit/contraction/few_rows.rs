//! Products with few rows, bound by the memory the right side is read from: read once, as it lies.

use crate::analysis::contraction::Product;
use crate::analysis::contraction::Tiling;
use crate::base::Result;
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
use crate::executable::Launch;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Space;
use crate::kernel::Unroll;

/// Bytes of the right side worth a task.
const TASK_BYTES: usize = 512 * 1024;

/// Rows of the right side added at a time when its columns are streamed.
const STREAMS: i64 = 8;

/// Columns whose dot products run side by side.
const SIDE_BY_SIDE: usize = 4;

/// How the columns are shared out: columns of a task and tasks of one batch.
fn share(
    product: &Product,
    request: &KernelRequest<'_>,
    step: usize,
    most: usize,
) -> (usize, usize) {
    let bytes = product.n * product.k * product.accumulator.byte_width();
    let parallelism = request.target.parallelism.max(1) as usize;
    let tasks = (bytes / TASK_BYTES).clamp(1, parallelism);
    let columns = product.n.div_ceil(tasks).div_ceil(step) * step;
    let columns = columns.min(most.div_ceil(step) * step);
    (columns, product.n.div_ceil(columns))
}

/// The batch and the columns `[start, end)` of this task.
fn columns_of_task(
    b: &mut KernelBuilder,
    product: &Product,
    (columns, tasks): (usize, usize),
) -> (ExprId, ExprId, ExprId) {
    let group = b.workgroup_id(Axis::X);
    let batch = b.div_const(group, tasks as i64);
    let number = b.rem_const(group, tasks as i64);
    let start = b.mul_const(number, columns as i64);
    let end = b.add_const(start, columns as i64);
    let bound = b.index(product.n as i64);
    (batch, start, b.binary(BinaryOp::SMin, end, bound))
}

fn launch(product: &Product, tasks: usize) -> Launch {
    Launch {
        workgroups: [(product.batch * tasks) as u64, 1, 1],
        ..Launch::SINGLE
    }
}

/// Sums of a stretch of columns wait in cache while the rows of the right side stream by, several
/// at a time.
pub(super) fn emit_streamed(
    request: &KernelRequest<'_>,
    product: &Product,
    tiling: &Tiling,
) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let lanes = tiling.lanes;
    let (columns, tasks) = share(product, request, lanes, 2048);
    let sums = {
        let scalar = value::register(product.accumulator);
        b.scratch("sums", scalar, (columns * product.m) as u64, Space::Private)
    };
    {
        let b = &mut b;
        let streamed = Streamed {
            lhs: Reader::lhs(&body.el, product),
            rhs: Reader::rhs(&body.el, product),
            store: Store::new(&body, product),
            product,
            lanes: lanes as i64,
            columns: columns as i64,
            sums,
        };
        let (batch, start, end) = columns_of_task(b, product, (columns, tasks));
        let zero = tile::zeros(b, b.buffer_info(sums).elem, lanes);
        b.for_range((columns * product.m) as i64, lanes as i64, |b, at| {
            b.store(sums, at, zero)
        });
        let main = product.k as i64 / STREAMS * STREAMS;
        let scope = |f: &mut dyn FnMut()| body.el.scope(f);
        b.for_range(main, STREAMS, |b, k| {
            scope(&mut || streamed.add(b, (batch, start, end), k, STREAMS));
        });
        for k in main..product.k as i64 {
            let k = b.index(k);
            scope(&mut || streamed.add(b, (batch, start, end), k, 1));
        }
        for row in 0..product.m as i64 {
            streamed.write(b, (batch, start, end), row);
        }
    }
    body.finish(b, launch(product, tasks))
}

struct Streamed<'a, 'm> {
    lhs: Reader<'a, 'm>,
    rhs: Reader<'a, 'm>,
    store: Store<'a, 'm>,
    product: &'a Product,
    lanes: i64,
    /// Columns of a task.
    columns: i64,
    sums: BufId,
}

impl Streamed<'_, '_> {
    /// Walks the task's columns in vectors and then one by one.
    fn walk(
        &self,
        b: &mut KernelBuilder,
        (start, end): (ExprId, ExprId),
        mut visit: impl FnMut(&mut KernelBuilder, ExprId, u16),
    ) {
        let lanes = self.lanes;
        let can = self.rhs.vectorizes(Along::Free, lanes as usize) && lanes > 1;
        let one = b.index(1);
        if !can {
            b.for_loop((start, end, one), |b, column| {
                self.store.scope(|| visit(b, column, 1))
            });
            return;
        }
        let main = b.index(self.product.n as i64 / lanes * lanes);
        let main = b.binary(BinaryOp::SMin, main, end);
        let step = b.index(lanes);
        b.for_loop((start, main, step), |b, column| {
            self.store.scope(|| visit(b, column, lanes as u16));
        });
        if self.product.n as i64 % lanes != 0 {
            b.for_loop((main, end, one), |b, column| {
                self.store.scope(|| visit(b, column, 1))
            });
        }
    }

    fn place(&self, b: &mut KernelBuilder, start: ExprId, column: ExprId, row: i64) -> ExprId {
        let local = b.sub(column, start);
        b.add_const(local, row * self.columns)
    }

    /// Adds `count` rows of the right side from `k` on.
    fn add(
        &self,
        b: &mut KernelBuilder,
        (batch, start, end): (ExprId, ExprId, ExprId),
        k: ExprId,
        count: i64,
    ) {
        let rows = self.product.m as i64;
        let mut factors = Vec::new();
        for row in 0..rows {
            for i in 0..count {
                let (free, summed) = (b.index(row), b.add_const(k, i));
                factors.push(self.lhs.read(
                    b,
                    Place {
                        batch,
                        free,
                        summed,
                    },
                    Along::Summed,
                    1,
                ));
            }
        }
        self.walk(b, (start, end), |b, column, lanes| {
            let vectors: Vec<ExprId> = (0..count)
                .map(|i| {
                    let summed = b.add_const(k, i);
                    self.rhs.read(
                        b,
                        Place {
                            batch,
                            free: column,
                            summed,
                        },
                        Along::Free,
                        lanes,
                    )
                })
                .collect();
            for row in 0..rows {
                let at = self.place(b, start, column, row);
                let mut sum = b.load(self.sums, at, lanes);
                for (i, &vector) in vectors.iter().enumerate() {
                    let factor = b.splat(factors[row as usize * count as usize + i], lanes);
                    sum = multiply_add(b, factor, vector, sum);
                }
                b.store(self.sums, at, sum);
            }
        });
    }

    fn write(
        &self,
        b: &mut KernelBuilder,
        (batch, start, end): (ExprId, ExprId, ExprId),
        row: i64,
    ) {
        self.walk(b, (start, end), |b, column, lanes| {
            let at = self.place(b, start, column, row);
            let sum = b.load(self.sums, at, lanes);
            let row = b.index(row);
            self.store.sums(b, (batch, row, column), sum);
        });
    }
}

/// A vector of partial sums for each row and column, several columns at a time.
pub(super) fn emit_dot_products(
    request: &KernelRequest<'_>,
    product: &Product,
    tiling: &Tiling,
) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let width = if product.m > 2 {
        SIDE_BY_SIDE / 2
    } else {
        SIDE_BY_SIDE
    };
    let (columns, tasks) = share(product, request, width, usize::MAX / 2);
    {
        let b = &mut b;
        let dots = DotProducts {
            lhs: Reader::lhs(&body.el, product),
            rhs: Reader::rhs(&body.el, product),
            store: Store::new(&body, product),
            product,
            lanes: tiling.lanes,
        };
        let (batch, start, end) = columns_of_task(b, product, (columns, tasks));
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
    rhs: Reader<'a, 'm>,
    store: Store<'a, 'm>,
    product: &'a Product,
    lanes: usize,
}

impl DotProducts<'_, '_> {
    /// The sums of all rows for `width` columns.
    fn columns(&self, b: &mut KernelBuilder, batch: ExprId, column: ExprId, width: usize) {
        let scalar = value::register(self.product.accumulator);
        let both = self.lhs.vectorizes(Along::Summed, self.lanes)
            && self.rhs.vectorizes(Along::Summed, self.lanes);
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
            let rows: Vec<ExprId> = (0..self.product.m as i64)
                .map(|row| {
                    let free = b.index(row);
                    self.lhs.read(
                        b,
                        Place {
                            batch,
                            free,
                            summed,
                        },
                        Along::Summed,
                        lanes as u16,
                    )
                })
                .collect();
            let mut next = sums.to_vec();
            for c in 0..width {
                let free = b.add_const(column, c as i64);
                let place = Place {
                    batch,
                    free,
                    summed,
                };
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
