//! Rows of a convolution's product out of lines of its input; see [`crate::analysis::windows`].

use smallvec::SmallVec;

use crate::analysis::contraction::Access;
use crate::analysis::contraction::Group;
use crate::analysis::contraction::Product;
use crate::analysis::contraction::Tiling;
use crate::analysis::windows::Lines;
use crate::emit::contraction::side::Reader;
use crate::emit::contraction::side::both;
use crate::emit::contraction::side::window_offset;
use crate::emit::contraction::tile;
use crate::emit::contraction::tile::FirstRun;
use crate::emit::contraction::tile::Rows;
use crate::emit::contraction::tile::Runs;
use crate::emit::cost::pieces;
use crate::emit::index::Index;
use crate::emit::setup::Body;
use crate::emit::value;
use crate::hlo::ConvDims;
use crate::hlo::WindowDim;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Space;
use crate::shape::Dims;

/// Where the windows of a block's positions are read.
pub(super) struct Windows<'a, 'm> {
    body: &'a Body<'m>,
    product: &'a Product,
    tiling: &'a Tiling,
    lines: Lines,
    /// The window's dimensions before the last, and the last.
    outer: &'a [WindowDim],
    inner: &'a WindowDim,
    dims: &'a ConvDims,
    /// Sizes of the output's spatial dimensions.
    output: &'a [usize],
    /// Sizes of the input's dimensions.
    input: Dims,
    /// The operand, or the copy.
    buf: BufId,
    runs: Runs,
    /// From what one line of positions sees to what the next does.
    line_stride: i64,
    /// The same from one position to the next.
    row_stride: i64,
}

/// Output positions that a task computes.
pub(super) struct Positions {
    /// First row of the product, and the one after the last.
    pub(super) rows: (ExprId, ExprId),
    /// Where the window of the first one begins.
    pub(super) start: ExprId,
}

/// The lines that are copied for a block, for each element of the window's dimensions before the last
/// two.
#[derive(Clone, Copy)]
struct Copied {
    /// Lines, and elements of each.
    height: usize,
    pitch: i64,
}

fn copied(outer: &[WindowDim], inner: &WindowDim, lines: Lines, features: usize) -> Copied {
    Copied {
        height: outer.last().map_or(1, |h| h.seen(lines.count)),
        pitch: (inner.seen(lines.width) * features) as i64,
    }
}

impl<'a, 'm> Windows<'a, 'm> {
    /// The windows of a product whose tiling walks them by lines; nothing when the product has none,
    /// or when they are to be read out of an operand that is not in memory.
    pub(super) fn new(
        b: &mut KernelBuilder,
        body: &'a Body<'m>,
        product: &'a Product,
        tiling: &'a Tiling,
        lines: Lines,
    ) -> Option<Self> {
        let Access::Patches {
            window,
            dims,
            output,
        } = &product.lhs.access
        else {
            return None;
        };
        let (inner, outer) = window.split_last()?;
        let input = body.el.dims(product.lhs.operand);
        let features = input[dims.input_feature] / product.batch;
        let natural = |d: usize| input[d + 1..].iter().product::<usize>() as i64;
        let spatial: SmallVec<[i64; 3]> = dims.input_spatial.iter().map(|&d| natural(d)).collect();
        let copied = copied(outer, inner, lines, features);
        // Elements between neighbours along each dimension of the window's positions, where those
        // before the last two have copies of their own.
        let slabs = outer.len().saturating_sub(1);
        let (buf, pitches) = if lines.in_place {
            (body.el.source(product.lhs.operand)?.buf, spatial)
        } else {
            let slab = copied.height as i64 * copied.pitch;
            let slab_of = |d: usize| {
                let inner: usize = outer[d + 1..slabs].iter().map(|w| w.size).product();
                slab * inner as i64
            };
            let mut pitches: SmallVec<[i64; 3]> = (0..slabs).map(slab_of).collect();
            pitches.extend(outer.last().map(|_| copied.pitch));
            pitches.push(features as i64);
            let count: usize = outer[..slabs].iter().map(|w| w.size).product();
            let elem = value::register(tiling.operand_type(product));
            let size = count as u64 * slab as u64;
            (b.scratch("lines", elem, size, Space::Private), pitches)
        };
        let is_dense = lines.run == inner.size * features;
        let walked = window.len() - usize::from(is_dense);
        let mut runs = Runs::new(lines.run as i64);
        for (d, w) in window.iter().enumerate().take(walked) {
            if !lines.in_place && d < slabs {
                runs.add(w.size, pitches[d], false);
            } else {
                runs.add(w.size, w.window_dilation * pitches[d], w.reversal);
            }
        }
        Some(Self {
            body,
            product,
            tiling,
            lines,
            outer,
            inner,
            dims,
            output,
            line_stride: outer
                .last()
                .map_or(0, |h| h.stride * pitches[outer.len() - 1]),
            row_stride: inner.stride * pitches[outer.len()],
            input,
            buf,
            runs,
        })
    }

    /// Lines of a block.
    pub(super) fn count(&self) -> i64 {
        self.lines.count as i64
    }

    /// Positions of a whole line, which [`Self::line`] may have fewer of.
    pub(super) fn length(&self) -> usize {
        self.output[self.outer.len()]
    }

    /// Most positions of a line of a block.
    pub(super) fn width(&self) -> i64 {
        self.lines.width as i64
    }

    /// The block of a number, whose lines are copied when they have to be.
    pub(super) fn positions(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        batch: ExprId,
        number: ExprId,
    ) -> Positions {
        let (line, width) = (self.length() as i64, self.width());
        let splits = &self.body.el.splits;
        let pieces = pieces(line, width);
        let (above, piece) = splits.split(b, number, pieces);
        let column = b.mul_const(piece, width);
        let row = b.mul_const(above, line * self.count());
        let row = b.add(row, column);
        let count = if pieces == 1 {
            b.index(line * self.count())
        } else {
            let (end, width) = (b.index(line), b.index(width));
            let rest = b.sub(end, column);
            b.binary(BinaryOp::SMin, rest, width)
        };
        let mut sizes = Dims::from_slice(&[self.input[self.dims.input_batch]]);
        sizes.extend_from_slice(&self.output[..self.outer.len()]);
        if let [.., high] = &mut sizes[1..] {
            *high /= self.lines.count;
        }
        let mut at = splits.unravel(b, &sizes, above);
        if let [.., high] = &mut at[1..] {
            *high = b.mul_const(*high, self.count());
        }
        at.push(column);
        let first: SmallVec<[ExprId; 3]> = (self.outer.iter().chain([self.inner]))
            .zip(&at[1..])
            .map(|(w, &at)| {
                let at = b.mul_const(at, w.stride);
                b.add_const(at, -w.padding_low)
            })
            .collect();
        let start = if self.lines.in_place {
            self.start(b, batch, at[0], &first)
        } else {
            self.copy(b, reader, (batch, at[0]), &first);
            b.index(0)
        };
        Positions {
            rows: (row, b.add(row, count)),
            start,
        }
    }

    /// Where the window that begins at a position lies in the operand.
    fn start(
        &self,
        b: &mut KernelBuilder,
        group: ExprId,
        image: ExprId,
        first: &[ExprId],
    ) -> ExprId {
        let zero = b.index(0);
        let mut at: SmallVec<[ExprId; 6]> = SmallVec::from_elem(zero, self.input.len());
        at[self.dims.input_batch] = image;
        at[self.dims.input_feature] = b.mul_const(group, self.features());
        for (&d, &first) in self.dims.input_spatial.iter().zip(first) {
            at[d] = first;
        }
        let mut start = zero;
        for (d, &at) in at.iter().enumerate() {
            let stride = self.input[d + 1..].iter().product::<usize>() as i64;
            let part = b.mul_const(at, stride);
            start = b.add(start, part);
        }
        start
    }

    /// Features of a group.
    fn features(&self) -> i64 {
        (self.input[self.dims.input_feature] / self.product.batch) as i64
    }

    /// The rows of a block from a `k` on.
    pub(super) fn rows(&self, b: &mut KernelBuilder, start: ExprId, k: ExprId) -> Rows<'_> {
        let run = self.runs.length;
        let rows = |start: ExprId, runs| Rows {
            buf: self.buf,
            start,
            row_stride: self.row_stride,
            k_stride: 1,
            runs,
        };
        let splits = &self.body.el.splits;
        let (number, rest) = splits.split(b, k, run);
        if self.tiling.k_block as i64 > run {
            let runs = &self.runs;
            return rows(
                start,
                Some(FirstRun {
                    runs,
                    splits,
                    number,
                }),
            );
        }
        let offset = self.runs.offset(b, splits, number);
        let offset = b.add(offset, rest);
        rows(b.add(start, offset), None)
    }

    /// From the rows of a line to those of a later one.
    pub(super) fn line<'r>(&self, b: &mut KernelBuilder, rows: Rows<'r>, line: ExprId) -> Rows<'r> {
        let offset = b.mul_const(line, self.line_stride);
        Rows {
            start: b.add(rows.start, offset),
            ..rows
        }
    }

    /// Copies the lines that a block sees, with zeros where there is no input.
    fn copy(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        (group, image): (ExprId, ExprId),
        first: &[ExprId],
    ) {
        let lines = copied(self.outer, self.inner, self.lines, self.features() as usize);
        let slabs = self.outer.len().saturating_sub(1);
        let mut sizes: Dims = self.outer[..slabs].iter().map(|w| w.size).collect();
        sizes.push(lines.height);
        let count = sizes.iter().product::<usize>() as i64;
        b.for_range(count, 1, |b, number| {
            self.body.el.scope(|| {
                let parts = self.body.el.splits.unravel(b, &sizes, number);
                let zero = b.index(0);
                let mut index = Index::scalar(std::iter::repeat_n(zero, self.input.len()));
                index.at[self.dims.input_batch] = image;
                index.at[self.dims.input_feature] = b.mul_const(group, self.features());
                let mut inside = None;
                for (d, w) in self.outer.iter().enumerate() {
                    let along = if d < slabs {
                        window_offset(b, w, parts[d])
                    } else {
                        parts[d]
                    };
                    let at = b.add(first[d], along);
                    let of = self.dims.input_spatial[d];
                    if w.may_leave(self.output[d], self.input[of]) {
                        let size = b.index(self.input[of] as i64);
                        let valid = b.cmp(CmpOp::ULt, at, size);
                        inside = both(b, inside, Some(valid));
                    }
                    index.at[of] = at;
                }
                let to = b.mul_const(number, lines.pitch);
                let end = b.add_const(to, lines.pitch);
                let position = first[self.outer.len()];
                let Some(inside) = inside else {
                    self.copy_line(b, reader, &index, position, to);
                    return;
                };
                b.if_else(
                    inside,
                    |b| {
                        self.body
                            .el
                            .scope(|| self.copy_line(b, reader, &index, position, to));
                        Vec::new()
                    },
                    |b| {
                        self.clear(b, to, end);
                        Vec::new()
                    },
                );
            });
        });
    }

    /// Copies one line from a position of the last spatial dimension on, which may be outside.
    fn copy_line(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        index: &Index,
        position: ExprId,
        to: ExprId,
    ) {
        let along = self.dims.input_spatial[self.outer.len()];
        let (features, size) = (self.features(), self.input[along] as i64);
        let seen = self.inner.seen(self.lines.width) as i64;
        let clamp = |b: &mut KernelBuilder, value: ExprId| {
            let (zero, most) = (b.index(0), b.index(seen));
            let value = b.binary(BinaryOp::SMax, value, zero);
            b.binary(BinaryOp::SMin, value, most)
        };
        let (zero, size) = (b.index(0), b.index(size));
        let before = b.sub(zero, position);
        let before = clamp(b, before);
        let after = b.sub(size, position);
        let after = clamp(b, after);
        let place = |b: &mut KernelBuilder, at: ExprId| {
            let at = b.mul_const(at, features);
            b.add(to, at)
        };
        let (from, until) = (place(b, before), place(b, after));
        let end = b.add_const(to, seen * features);
        self.clear(b, to, from);
        self.clear(b, until, end);
        let first = b.add(position, before);
        let count = b.sub(after, before);
        let is_dense = self.product.batch == 1
            && along + 2 == self.input.len()
            && self.dims.input_feature == along + 1;
        if is_dense {
            let length = b.mul_const(count, features);
            let first = b.mul_const(first, features);
            self.copy_run(b, reader, from, length, |b, at| {
                let number = b.add(first, at);
                let mut index = index.clone();
                let (position, feature) = self.body.el.splits.split(b, number, features);
                index.at[along] = position;
                index.at[self.dims.input_feature] = feature;
                (index.first, index.last) = (along, self.dims.input_feature);
                index
            });
            return;
        }
        let one = b.index(1);
        b.for_loop((zero, count, one), |b, at| {
            self.body.el.scope(|| {
                let mut index = index.clone();
                index.at[along] = b.add(first, at);
                (index.first, index.last) = (self.dims.input_feature, self.dims.input_feature);
                let to = b.mul_const(at, features);
                let to = b.add(from, to);
                let length = b.index(features);
                self.copy_run(b, reader, to, length, |b, at| {
                    let mut index = index.clone();
                    let feature = &mut index.at[self.dims.input_feature];
                    *feature = b.add(*feature, at);
                    index
                });
            });
        });
    }

    /// Copies elements that are neighbours both here and there, vector by vector; the last vector may
    /// overlap the one before it.
    fn copy_run(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        to: ExprId,
        length: ExprId,
        index: impl Fn(&mut KernelBuilder, ExprId) -> Index,
    ) {
        let lanes = self.tiling.lanes as i64;
        let is_aligned = self.features() % lanes == 0;
        let copy = |b: &mut KernelBuilder, at: ExprId, lanes: i64, is_aligned: bool| {
            self.body.el.scope(|| {
                let mut index = index(b, at);
                index.lanes = lanes as u16;
                index.block = match is_aligned {
                    true => lanes,
                    false => {
                        (self.input[index.first..=index.last].iter()).product::<usize>() as i64
                    }
                };
                if lanes == 1 {
                    index = index.first_lane();
                } else if is_aligned {
                    index = index.narrowed(&self.input);
                }
                let vector = reader.at(b, &index);
                let to = b.add(to, at);
                self.store(b, to, vector);
            });
        };
        let (zero, one, step) = (b.index(0), b.index(1), b.index(lanes));
        let whole = b.div_const(length, lanes);
        let whole = b.mul_const(whole, lanes);
        b.for_loop((zero, whole, step), |b, at| copy(b, at, lanes, is_aligned));
        if is_aligned {
            return;
        }
        match b.as_const_index(length) {
            Some(known) if known % lanes == 0 => {}
            Some(known) if known > lanes => {
                let last = b.index(known - lanes);
                copy(b, last, lanes, false);
            }
            _ => b.for_loop((whole, length, one), |b, at| copy(b, at, 1, false)),
        }
    }

    /// Writes zeros.
    fn clear(&self, b: &mut KernelBuilder, from: ExprId, until: ExprId) {
        let elem = b.buffer_info(self.buf).elem;
        let lanes = self.tiling.lanes;
        let count = b.sub(until, from);
        let mut done = b.index(0);
        for lanes in [lanes, 1] {
            let zeros = tile::zeros(b, elem, lanes);
            let step = b.index(lanes as i64);
            let rest = b.div_const(count, lanes as i64);
            let whole = b.mul_const(rest, lanes as i64);
            b.for_loop((done, whole, step), |b, at| {
                let to = b.add(from, at);
                self.store(b, to, zeros);
            });
            if self.features() % lanes as i64 == 0 {
                break;
            }
            done = whole;
        }
    }

    /// Writes elements as they are multiplied.
    fn store(&self, b: &mut KernelBuilder, to: ExprId, mut vector: ExprId) {
        if self.tiling.group == Group::OffsetQuads {
            vector = tile::offset(b, vector);
        }
        b.store(self.buf, to, vector);
    }
}
