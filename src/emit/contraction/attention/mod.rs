//! Attention as one kernel: a task computes blocks of rows, whose scores stay in its memory between
//! the products.
//!
//! For each block: the first product panel by panel of keys, [`rows`] from scores to weights, the
//! second product panel by panel of values. Keys that a mask leaves to no row of the block are left
//! out where that changes nothing ([`range`]).

mod range;
mod rows;

use crate::analysis::attention::Attention;
use crate::analysis::attention::Plan;
use crate::analysis::attention::is_number;
use crate::analysis::contraction;
use crate::analysis::contraction::Product;
use crate::analysis::contraction::Right;
use crate::analysis::contraction::Tiling;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::emit::contraction::attention::range::Keys;
use crate::emit::contraction::pack;
use crate::emit::contraction::side::Along;
use crate::emit::contraction::side::Direct;
use crate::emit::contraction::side::Place;
use crate::emit::contraction::side::Reader;
use crate::emit::contraction::store::Store;
use crate::emit::contraction::tile;
use crate::emit::contraction::tile::Panel;
use crate::emit::contraction::tile::Rows;
use crate::emit::contraction::tile::Summed;
use crate::emit::cost::pieces;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Part;
use crate::emit::setup::Setup;
use crate::emit::value;
use crate::executable::Launch;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Space;

/// The kernels of a fusion that is attention.
pub(super) fn emit(
    request: &KernelRequest<'_>,
    attention: &Attention,
    plan: &Plan,
) -> Result<Emitted> {
    let mut steps = Emitted::default();
    let mut offset = 0;
    for (product, tiling, name) in [
        (&attention.scores, &plan.scores, "keys"),
        (&attention.values, &plan.values, "values"),
    ] {
        let bytes = contraction::packed_bytes(product, tiling);
        if bytes > 0 {
            let part = part(request, name, (offset, bytes));
            steps
                .steps
                .extend(pack::emit(&part, product, tiling)?.steps);
        }
        offset += bytes;
    }
    steps.steps.extend(attend(request, attention, plan)?.steps);
    Ok(steps)
}

/// The request with a part of the working memory, for a kernel of its own.
fn part<'a>(
    request: &KernelRequest<'a>,
    name: &str,
    (offset, size): (u64, u64),
) -> KernelRequest<'a> {
    let mut part = request.clone();
    part.name = format!("{}_{name}", request.name);
    if let Some(scratch) = &mut part.scratch {
        scratch.slice.offset += offset;
        scratch.slice.size = size;
    }
    part
}

fn attend(request: &KernelRequest<'_>, attention: &Attention, plan: &Plan) -> Result<Emitted> {
    let sums = attention.scores.accumulator;
    let part = Part::ReadsScratch(sums);
    let Setup { mut b, body } = Setup::part(request, &request.name, part);
    let packed = body.filled.ok_or_else(|| pack::no_scratch(request))?;
    let key_bytes = contraction::packed_bytes(&attention.scores, &plan.scores);
    let value_start = (key_bytes / sums.byte_width() as u64) as i64;
    let blocks = pieces(plan.run as i64, plan.rows as i64);
    let runs = (attention.scores.m / plan.run) as i64;
    let count = attention.scores.batch as i64 * runs * blocks;
    let tasks = pieces(count, plan.blocks as i64);
    {
        let b = &mut b;
        let scalar = value::register(sums);
        let memory = |b: &mut KernelBuilder, name: &str, size: usize| {
            b.scratch(name, scalar, size as u64, Space::Private)
        };
        let query = Reader::lhs(&body.el, &attention.scores);
        let direct = query.direct().filter(|direct| direct.summed_stride == 1);
        let left = match direct.filter(|_| is_number(&attention.rows)) {
            Some(direct) => Left::Direct(direct),
            None => Left::Copied(memory(b, "queries", plan.rows * attention.scores.k)),
        };
        let values = match plan.values.right {
            Right::InPlace => {
                let direct = Reader::rhs(&body.el, &attention.values).direct();
                Columns::Direct(direct.ok_or_else(|| no_place(request))?)
            }
            Right::InBlocks | Right::Packed => Columns::Packed(packed, value_start),
        };
        let block = Block {
            body: &body,
            attention,
            plan,
            query,
            left,
            keys: Columns::Packed(packed, 0),
            values,
            store: Store::new(&body, &attention.values),
            scalar,
            scores: memory(b, "scores", plan.rows * plan.stride),
            sums: memory(b, "sums", plan.rows * plan.values.n_block),
        };
        let group = b.workgroup_id(Axis::X);
        let start = b.mul_const(group, plan.blocks as i64);
        let end = b.add_const(start, plan.blocks as i64);
        let bound = b.index(count);
        let (end, one) = (b.binary(BinaryOp::SMin, end, bound), b.index(1));
        b.for_loop((start, end, one), |b, number| {
            body.el.scope(|| {
                let (number, in_run) = body.el.splits.split(b, number, blocks);
                let (batch, run) = body.el.splits.split(b, number, runs);
                block.run(b, batch, run, in_run);
            });
        });
    }
    let launch = Launch {
        workgroups: [tasks.max(1) as u64, 1, 1],
        ..Launch::SINGLE
    };
    body.finish(b, launch)
}

fn no_place(request: &KernelRequest<'_>) -> Box<Diagnostic> {
    let name = &request.name;
    let what = format!("the values of `{name}` do not lie where they can be read");
    Diagnostic::internal(codes::INTERNAL, what)
}

/// Where queries are.
enum Left {
    /// In the operand, the summed coordinate innermost.
    Direct(Direct),
    /// Copied, the rows of a block one after the other.
    Copied(BufId),
}

/// Where panels of keys or values are.
enum Columns {
    /// In working memory from an element on, as [`pack::emit`] leaves them.
    Packed(BufId, i64),
    /// In the operand.
    Direct(Direct),
}

/// What computes blocks of rows.
struct Block<'a, 'm> {
    body: &'a Body<'m>,
    attention: &'a Attention,
    plan: &'a Plan,
    query: Reader<'a, 'm>,
    left: Left,
    keys: Columns,
    values: Columns,
    store: Store<'a, 'm>,
    /// What sums are kept in.
    scalar: Scalar,
    /// Scores and what becomes of them.
    scores: BufId,
    /// Results of the second product.
    sums: BufId,
}

/// The rows of a block.
#[derive(Clone, Copy)]
struct Span {
    batch: ExprId,
    /// The first one.
    first: ExprId,
    /// Its place among the rows that are cut together.
    in_run: ExprId,
    count: ExprId,
}

impl Block<'_, '_> {
    fn lanes(&self) -> usize {
        self.plan.scores.lanes
    }

    /// Keys, filled up to whole panels.
    fn padded_keys(&self) -> i64 {
        self.plan.scores.n_block as i64
    }

    fn run(&self, b: &mut KernelBuilder, batch: ExprId, run: ExprId, block: ExprId) {
        let in_run = b.mul_const(block, self.plan.rows as i64);
        let length = b.index(self.plan.run as i64);
        let rest = b.sub(length, in_run);
        let most = b.index(self.plan.rows as i64);
        let start = b.mul_const(run, self.plan.run as i64);
        let span = Span {
            batch,
            first: b.add(start, in_run),
            in_run,
            count: b.binary(BinaryOp::SMin, rest, most),
        };
        let left = self.left(b, span);
        let whole = Keys::all(b, self.padded_keys());
        let Some(mask) = &self.attention.mask else {
            self.weigh(b, span, left, whole);
            self.finish(b, span, whole);
            return;
        };
        let keys = self.left_by(b, mask, span);
        let keys = self.where_finite(b, span.batch, keys);
        let again = b.index(1);
        b.while_carried(
            &[keys.first, keys.end, again],
            |b, state| {
                let zero = b.index(0);
                b.cmp(CmpOp::INe, state[2], zero)
            },
            |b, state| {
                self.body.el.scope(|| {
                    let keys = Keys {
                        first: state[0],
                        end: state[1],
                    };
                    let counted = self.weigh(b, span, left, keys);
                    let (zero, one) = (b.index(0), b.index(1));
                    let is_cut = keys.is_cut(b, whole);
                    let counted = b.cmp(CmpOp::INe, counted, zero);
                    let is_wrong = b.binary(BinaryOp::And, is_cut, counted);
                    let again = b.select(is_wrong, one, zero);
                    let is_right = b.cmp(CmpOp::IEq, again, zero);
                    b.if_then(is_right, |b| {
                        self.body.el.scope(|| self.finish(b, span, keys));
                    });
                    vec![whole.first, whole.end, again]
                })
            },
        );
    }

    /// The queries of a block.
    fn left(&self, b: &mut KernelBuilder, span: Span) -> Rows<'_> {
        let buf = match &self.left {
            Left::Direct(direct) => {
                let start = direct.start(b, &self.body.el.splits, span.batch);
                let row = b.mul_const(span.first, direct.free_stride);
                return Rows {
                    buf: direct.buf,
                    start: b.add(start, row),
                    row_stride: direct.free_stride,
                    k_stride: 1,
                    runs: None,
                };
            }
            Left::Copied(buf) => *buf,
        };
        let depth = self.attention.scores.k as i64;
        let lanes = self.lanes();
        let fits = self.query.innermost() == Along::Summed
            && self.query.vectorizes(Along::Summed, lanes)
            && depth % lanes as i64 == 0;
        let lanes = if fits { lanes } else { 1 };
        let (zero, one) = (b.index(0), b.index(1));
        b.for_loop((zero, span.count, one), |b, row| {
            let number = b.add(span.first, row);
            let free = self.query_row(b, number);
            let to = b.mul_const(row, depth);
            b.for_range(depth, lanes as i64, |b, summed| {
                self.body.el.scope(|| {
                    let place = Place {
                        batch: span.batch,
                        free,
                        summed,
                    };
                    let vector = self.query.read(b, place, Along::Summed, lanes as u16);
                    let to = b.add(to, summed);
                    b.store(buf, to, vector);
                });
            });
        });
        Rows {
            buf,
            start: zero,
            row_stride: depth,
            k_stride: 1,
            runs: None,
        }
    }

    /// The row of the queries that a row of the scores is made of.
    fn query_row(&self, b: &mut KernelBuilder, number: ExprId) -> ExprId {
        let digits = &self.attention.rows;
        if is_number(digits) {
            return number;
        }
        let sizes: Vec<usize> = digits.iter().map(|digit| digit.size).collect();
        let parts = self.body.el.splits.unravel(b, &sizes, number);
        let mut row = b.index(0);
        for (&part, digit) in parts.iter().zip(digits) {
            let part = b.mul_const(part, digit.step as i64);
            row = b.add(row, part);
        }
        row
    }

    /// Scores and weights of a block over some keys; not zero when a key that is masked counts.
    fn weigh(&self, b: &mut KernelBuilder, span: Span, left: Rows<'_>, keys: Keys) -> ExprId {
        let (product, tiling) = (&self.attention.scores, &self.plan.scores);
        let length = b.index(product.k as i64);
        let zero = b.index(0);
        let step = b.index(tiling.tile_columns as i64);
        b.for_loop((keys.first, keys.end, step), |b, column| {
            let place = (span.batch, column, zero);
            let panel = self.panel(b, (&self.keys, product, tiling), place);
            let to = (self.scores, column, self.plan.stride as i64);
            self.tiles(
                b,
                (product, tiling),
                (left, panel),
                (span.count, length),
                to,
            );
        });
        self.soften(b, span, keys)
    }

    /// The second product over some keys, and the results of the block.
    fn finish(&self, b: &mut KernelBuilder, span: Span, keys: Keys) {
        let (product, tiling) = (&self.attention.values, &self.plan.values);
        let width = tiling.n_block as i64;
        let bound = b.index(product.k as i64);
        let end = b.binary(BinaryOp::SMin, keys.end, bound);
        let length = b.sub(end, keys.first);
        let left = Rows {
            buf: self.scores,
            start: keys.first,
            row_stride: self.plan.stride as i64,
            k_stride: 1,
            runs: None,
        };
        b.for_range(width, tiling.tile_columns as i64, |b, column| {
            let place = (span.batch, column, keys.first);
            let panel = self.panel(b, (&self.values, product, tiling), place);
            let to = (self.sums, column, width);
            self.tiles(
                b,
                (product, tiling),
                (left, panel),
                (span.count, length),
                to,
            );
        });
        let (zero, one) = (b.index(0), b.index(1));
        let lanes = tiling.lanes;
        b.for_loop((zero, span.count, one), |b, row| {
            let from = b.mul_const(row, width);
            let row = b.add(span.first, row);
            let whole = (product.n / lanes * lanes) as i64;
            let write = |b: &mut KernelBuilder, column: ExprId, count: usize| {
                let at = b.add(from, column);
                let sums = b.load(self.sums, at, lanes as u16);
                self.store
                    .first_sums(b, (span.batch, row, column), sums, count);
            };
            b.for_range(whole, lanes as i64, |b, column| {
                self.body.el.scope(|| write(b, column, lanes));
            });
            if !product.n.is_multiple_of(lanes) {
                let column = b.index(whole);
                self.body.el.scope(|| write(b, column, product.n % lanes));
            }
        });
    }

    /// The panel of the columns from one on, from a summed coordinate on.
    fn panel(
        &self,
        b: &mut KernelBuilder,
        (columns, product, tiling): (&Columns, &Product, &Tiling),
        (batch, column, summed): (ExprId, ExprId, ExprId),
    ) -> Panel {
        let width = tiling.tile_columns as i64;
        match columns {
            Columns::Packed(buf, start) => {
                let number = b.div_const(column, width);
                let batch = b.mul_const(batch, pack::panels(product, tiling));
                let number = b.add(batch, number);
                let at = b.mul_const(number, tiling.panel_elements(product.k) as i64);
                let at = b.add_const(at, *start);
                let offset = b.mul_const(summed, width);
                Panel {
                    buf: *buf,
                    start: b.add(at, offset),
                    stride: width,
                }
            }
            Columns::Direct(direct) => {
                let start = direct.start(b, &self.body.el.splits, batch);
                let offset = b.mul_const(summed, direct.summed_stride);
                let start = b.add(start, offset);
                Panel {
                    buf: direct.buf,
                    start: b.add(start, column),
                    stride: direct.summed_stride,
                }
            }
        }
    }

    /// All rows of a block by one panel, to a place in memory from its first row on, and on by a number
    /// of elements from row to row.
    fn tiles(
        &self,
        b: &mut KernelBuilder,
        (product, tiling): (&Product, &Tiling),
        (rows, panel): (Rows<'_>, Panel),
        (count, length): (ExprId, ExprId),
        (buf, start, stride): (BufId, ExprId, i64),
    ) {
        let shape = Summed {
            tiling,
            lengths: [product.k, tiling.k_block],
            length,
        };
        let vectors = tiling.tile_columns / tiling.lanes;
        let tile = |b: &mut KernelBuilder, row: ExprId, height: usize| {
            let from = b.mul_const(row, rows.row_stride);
            let rows = Rows {
                start: b.add(rows.start, from),
                ..rows
            };
            let zero = tile::zeros(b, self.scalar, tiling.lanes);
            let sums = vec![zero; height * vectors];
            let sums = tile::multiply(b, &shape, rows, panel, height, sums);
            let to = b.mul_const(row, stride);
            let to = b.add(start, to);
            for (i, sum) in sums.into_iter().enumerate() {
                let at = (i / vectors) as i64 * stride + (i % vectors * tiling.lanes) as i64;
                let at = b.add_const(to, at);
                b.store(buf, at, sum);
            }
        };
        let height = tiling.tile_rows as i64;
        let whole = b.div_const(count, height);
        let whole = b.mul_const(whole, height);
        if self.plan.run as i64 >= height {
            let (zero, step) = (b.index(0), b.index(height));
            b.for_loop((zero, whole, step), |b, row| {
                tile(b, row, tiling.tile_rows);
            });
        }
        let rest = self.plan.run % tiling.tile_rows;
        if rest > 0 {
            let is_left = b.cmp(CmpOp::SLt, whole, count);
            b.if_then(is_left, |b| tile(b, whole, rest));
        }
    }
}
