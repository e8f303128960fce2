//! Products with few rows, bound by the memory the right side is read from: read once, as it lies.
//! Here its columns are innermost; see [`super::dot_products`] for the other way round.

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

/// Bytes of the right side worth a task.
const TASK_BYTES: usize = 512 * 1024;

/// Rows of the right side added at a time when its columns are streamed.
const STREAMS: i64 = 8;

/// How the columns are shared out: columns of a task and tasks of one batch.
pub(super) fn share(
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
pub(super) fn columns_of_task(
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

pub(super) fn launch(product: &Product, tasks: usize) -> Launch {
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
