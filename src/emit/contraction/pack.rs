//! Packing the right side of a product into panels of columns: all of it by a kernel of its own, or a
//! block of a panel by the task that multiplies with it.
//!
//! A panel is `[k][column]`, columns past the end zero; with groups of s `[k / s][column][k % s]`.

use crate::analysis::contraction::Product;
use crate::analysis::contraction::Tiling;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::emit::contraction::amx;
use crate::emit::contraction::side::Along;
use crate::emit::contraction::side::Place;
use crate::emit::contraction::side::Reader;
use crate::emit::contraction::tile;
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
use crate::kernel::Ty;

pub(super) fn no_scratch(request: &KernelRequest<'_>) -> Box<Diagnostic> {
    let name = &request.name;
    Diagnostic::internal(
        codes::INTERNAL,
        format!("`{name}` was given no memory to pack into"),
    )
}

/// The panel count of one batch.
pub(super) fn panels(product: &Product, tiling: &Tiling) -> i64 {
    pieces(product.n as i64, tiling.tile_columns as i64)
}

/// The kernel that packs all of the right side, as `[batch][panel][k][column]`.
pub(super) fn emit(
    request: &KernelRequest<'_>,
    product: &Product,
    tiling: &Tiling,
) -> Result<Emitted> {
    let name = format!("{}_pack", request.name);
    let Setup { mut b, mut body } = Setup::part(request, &name, Part::FillsScratch);
    let per_batch = panels(product, tiling);
    let count = product.batch as i64 * per_batch;
    let size = tiling.panel_elements(product.k);
    let ty = tiling.operand_type(product);
    let scratch = body.scratch_array(&mut b, ty, count as u64 * size as u64, &mut 0);
    let buf = scratch.ok_or_else(|| no_scratch(request))?;
    let panel_bytes = (size * ty.byte_width()) as i64;
    let tasks =
        (count * panel_bytes / (256 * 1024)).clamp(1, i64::from(request.target.parallelism));
    let part = pieces(count, tasks);
    let tasks = pieces(count, part);
    {
        let packer = Packer {
            body: &body,
            product,
            tiling,
            buf,
        };
        let group = b.workgroup_id(Axis::X);
        let start = b.mul_const(group, part);
        let end = b.add_const(start, part);
        let bound = b.index(count);
        let end = b.binary(BinaryOp::SMin, end, bound);
        let (zero, one) = (b.index(0), b.index(1));
        b.for_loop((start, end, one), |b, number| {
            let (batch, panel) = body.el.splits.split(b, number, per_batch);
            let column = b.mul_const(panel, tiling.tile_columns as i64);
            let length = b.index(product.k as i64);
            let start = b.mul_const(number, size as i64);
            packer.panel(b, (batch, column), (zero, length), start);
        });
    }
    let launch = Launch {
        workgroups: [tasks.max(1) as u64, 1, 1],
        ..Launch::SINGLE
    };
    body.finish(b, launch)
}

/// Packs panels.
pub(super) struct Packer<'a, 'm> {
    pub(super) body: &'a Body<'m>,
    pub(super) product: &'a Product,
    pub(super) tiling: &'a Tiling,
    /// Where to.
    pub(super) buf: BufId,
}

/// A vector of a panel: the batch, first column of the panel and `k` it is read at, its first column
/// within the panel, and where it is written to.
#[derive(Clone, Copy)]
struct Step {
    place: (ExprId, ExprId, ExprId),
    v: usize,
    to: ExprId,
}

impl Packer<'_, '_> {
    /// Packs the panel that begins with a column, from a `k` on for a length, to `start` and on.
    pub(super) fn panel(
        &self,
        b: &mut KernelBuilder,
        (batch, column): (ExprId, ExprId),
        summed: (ExprId, ExprId),
        start: ExprId,
    ) {
        let shape = Summed {
            tiling: self.tiling,
            lengths: [self.product.k, self.tiling.k_block],
            length: summed.1,
        };
        amx::fill_panel(b, &shape, self.buf, start);
        let columns = self.tiling.tile_columns;
        let rest = self.product.n % columns;
        if rest == 0 || self.product.n < columns {
            let count = if rest == 0 { columns } else { rest };
            self.columns(b, (batch, column), summed, start, count);
            return;
        }
        let last = b.index((self.product.n - rest) as i64);
        let is_last = b.cmp(CmpOp::IEq, column, last);
        b.if_else(
            is_last,
            |b| {
                self.columns(b, (batch, column), summed, start, rest);
                Vec::new()
            },
            |b| {
                self.columns(b, (batch, column), summed, start, columns);
                Vec::new()
            },
        );
    }

    /// Packs the first `count` columns of a panel and zeros the others.
    fn columns(
        &self,
        b: &mut KernelBuilder,
        (batch, column): (ExprId, ExprId),
        (first, length): (ExprId, ExprId),
        start: ExprId,
        count: usize,
    ) {
        let columns = self.tiling.tile_columns as i64;
        let lanes = self.tiling.lanes;
        let ty = self.tiling.operand_type(self.product);
        let reader = Reader::rhs(&self.body.el, self.product).in_type(ty);
        let depth = self.tiling.group.size() as i64;
        // The summed length of a square.
        let squares = lanes as i64 * depth;
        let by_rows = reader.innermost() == Along::Summed
            && reader.vectorizes(Along::Summed, squares as usize)
            && lanes > 1
            && lanes.is_power_of_two();
        let zero = b.index(0);
        let walk = |b: &mut KernelBuilder, range, write: &dyn Fn(&mut KernelBuilder, Step)| {
            b.for_loop(range, |b, at| {
                self.body.el.scope(|| {
                    let k = b.add(first, at);
                    let to = b.mul_const(at, columns);
                    let to = b.add(start, to);
                    for v in (0..columns as usize).step_by(lanes) {
                        let place = (batch, column, k);
                        let to = b.add_const(to, v as i64 * depth);
                        write(b, Step { place, v, to });
                    }
                });
            });
        };
        let mut done = zero;
        if by_rows {
            let whole = b.div_const(length, squares);
            done = b.mul_const(whole, squares);
            let step = b.index(squares);
            walk(b, (zero, done, step), &|b, step| {
                self.square(b, &reader, step, count);
            });
        }
        let is_done = |b: &KernelBuilder, done| {
            b.as_const_index(done).is_some() && b.as_const(done) == b.as_const(length)
        };
        if is_done(b, done) {
            return;
        }
        let whole = b.div_const(length, depth);
        let whole = b.mul_const(whole, depth);
        let step = b.index(depth);
        walk(b, (done, whole, step), &|b, step| {
            self.group(b, &reader, step, (count, depth));
        });
        let rest = self.product.k as i64 % depth;
        if rest == 0 {
            return;
        }
        // The last group of the last block is filled up.
        walk(b, (whole, length, step), &|b, step| {
            self.group(b, &reader, step, (count, rest));
        });
    }

    /// Packs a group of a vector of columns, of which `length` are there and the others zeros.
    fn group(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        step: Step,
        (count, length): (usize, i64),
    ) {
        let (batch, column, k) = step.place;
        let mut vectors: Vec<ExprId> = (0..self.tiling.group.size() as i64)
            .map(|i| {
                if i >= length {
                    return tile::zeros(b, b.buffer_info(self.buf).elem, self.tiling.lanes);
                }
                let k = b.add_const(k, i);
                self.vector(b, reader, (batch, column, k), (step.v, count))
            })
            .collect();
        while vectors.len() > 1 {
            let (low, high) = vectors.split_at(vectors.len() / 2);
            vectors = low
                .iter()
                .zip(high)
                .map(|(&x, &y)| tile::interleave(b, x, y))
                .collect();
        }
        b.store(self.buf, step.to, vectors[0]);
    }

    /// One vector of columns at one `k`.
    fn vector(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        (batch, column, summed): (ExprId, ExprId, ExprId),
        (v, count): (usize, usize),
    ) -> ExprId {
        let lanes = self.tiling.lanes;
        let scalar = value::register(self.tiling.operand_type(self.product));
        if v + lanes <= count {
            let free = b.add_const(column, v as i64);
            return reader.read(
                b,
                Place {
                    batch,
                    free,
                    summed,
                },
                Along::Free,
                lanes as u16,
            );
        }
        let each: Vec<ExprId> = (v..v + lanes)
            .map(|c| {
                if c < count {
                    let free = b.add_const(column, c as i64);
                    reader.read(
                        b,
                        Place {
                            batch,
                            free,
                            summed,
                        },
                        Along::Free,
                        1,
                    )
                } else {
                    tile::zeros(b, scalar, 1)
                }
            })
            .collect();
        b.vector(&each)
    }

    /// A square of columns by `k` (or by pairs of them), read along `k` and transposed.
    fn square(&self, b: &mut KernelBuilder, reader: &Reader<'_, '_>, step: Step, count: usize) {
        let lanes = self.tiling.lanes;
        let depth = self.tiling.group.size();
        let (batch, column, summed) = step.place;
        let wide = Ty::vector(value::register(self.product.accumulator), lanes as u16);
        let rows: Vec<ExprId> = (step.v..step.v + lanes)
            .map(|c| {
                if c >= count {
                    return tile::zeros(b, wide.scalar, lanes);
                }
                let free = b.add_const(column, c as i64);
                let place = Place {
                    batch,
                    free,
                    summed,
                };
                let row = reader.read(b, place, Along::Summed, (lanes * depth) as u16);
                b.bitcast(row, wide)
            })
            .collect();
        let elem = b.buffer_info(self.buf).elem;
        let stored = Ty::vector(elem, (lanes * depth) as u16);
        for (i, vector) in tile::transpose(b, rows).into_iter().enumerate() {
            let at = i * depth * self.tiling.tile_columns;
            let to = b.add_const(step.to, at as i64);
            let vector = b.bitcast(vector, stored);
            b.store(self.buf, to, vector);
        }
    }
}
