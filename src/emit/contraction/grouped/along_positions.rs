//! Vectors of output positions: the input of a group is copied with its padding, so that every vector
//! of it is read the same way; a tile is of vectors in neighbouring rows, so that an element of the
//! kernel is read once for all of them.

use smallvec::SmallVec;

use crate::analysis::contraction::Product;
use crate::analysis::grouped_conv::GroupedConv;
use crate::analysis::grouped_conv::Padded;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::emit::contraction::grouped::walk;
use crate::emit::contraction::grouped::walk::Operand;
use crate::emit::contraction::store::Store;
use crate::emit::contraction::tile;
use crate::emit::cost;
use crate::emit::loop_;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::value;
use crate::executable::Launch;
use crate::hlo::WindowDim;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Unroll;

/// How the positions are cut; see [`crate::analysis::grouped_conv::Lanes::Positions`].
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) along: usize,
    pub(super) vectors: usize,
    pub(super) rows: usize,
    pub(super) block: usize,
}

pub(super) fn emit(
    request: &KernelRequest<'_>,
    product: &Product,
    conv: &GroupedConv,
    sizes: Sizes,
) -> Result<Emitted> {
    let padded = Padded::of(conv, sizes.along).ok_or_else(|| {
        let what = format!("`{}` has no lanes along positions", request.name);
        Diagnostic::internal(codes::INTERNAL, what)
    })?;
    let Setup { mut b, body } = Setup::new(request);
    let launch = {
        let store = Store::new(&body, product);
        let heavy = cost::of_body(&body.el, &body.roots).heavy;
        let scalar = value::register(product.accumulator);
        let copy = b.scratch("padded", scalar, padded.elements() as u64, Space::Private);
        let staged = (!store.is_plain() && heavy).then(|| {
            let size = (sizes.vectors * sizes.rows * conv.lanes) as u64;
            b.scratch("tile", scalar, size, Space::Private)
        });
        let [input, kernel] = [0, 1].map(|i| {
            let operand = request.module.instr(product.hero).operands[i];
            Operand::new(&body.el, product, operand)
        });
        let emitter = Emitter {
            body: &body,
            product,
            conv,
            sizes,
            once: loop_::is_in_place(request),
            padded,
            copy,
            store,
            staged,
            input,
            kernel,
        };
        emitter.groups(&mut b)
    };
    body.finish(b, launch)
}

struct Emitter<'a, 'm> {
    body: &'a Body<'m>,
    product: &'a Product,
    conv: &'a GroupedConv,
    sizes: Sizes,
    /// Whether no element may be computed twice.
    once: bool,
    padded: Padded,
    /// The copy of the input.
    copy: BufId,
    store: Store<'a, 'm>,
    /// Sums of one tile on their way to the epilogue.
    staged: Option<BufId>,
    input: Operand<'a, 'm>,
    kernel: Operand<'a, 'm>,
}

/// What the copy is of.
#[derive(Clone, Copy)]
struct Block {
    batch: ExprId,
    group: ExprId,
    /// The first position in the first of the other dimensions.
    start: ExprId,
    /// How many.
    count: ExprId,
}

/// A tile of sums.
struct Tile {
    batch: ExprId,
    feature: ExprId,
    /// The first position in each spatial dimension.
    spatial: SmallVec<[ExprId; 6]>,
    /// Where the first element of its windows is in the copy.
    start: ExprId,
    rows: usize,
    /// For each vector of a row the distance of its first position from that of the tile, and how
    /// many of its lanes are positions.
    vectors: Vec<(usize, usize)>,
}

impl Emitter<'_, '_> {
    fn scalar(&self) -> Scalar {
        value::register(self.product.accumulator)
    }

    fn lanes_window(&self) -> &WindowDim {
        &self.conv.window[self.sizes.along]
    }

    /// Positions in the first of the other dimensions.
    fn outer(&self) -> usize {
        let first = self.padded.others.first();
        first.map_or(1, |&(d, _)| self.conv.positions(d))
    }

    /// All groups of all batches, block by block, shared out to tasks.
    fn groups(&self, b: &mut KernelBuilder) -> Launch {
        let (conv, el) = (self.conv, &self.body.el);
        let zeros = tile::zeros(b, self.scalar(), conv.lanes);
        b.for_range(self.padded.elements() as i64, conv.lanes as i64, |b, at| {
            b.store(self.copy, at, zeros);
        });
        let batches = conv.output[conv.dims.output_batch] as i64;
        let groups = (conv.features() / conv.outputs) as i64;
        let (outer, block) = (self.outer() as i64, self.sizes.block as i64);
        let blocks = cost::pieces(outer, block);
        let tasks = walk::tasks(el, conv, self.product);
        let extents = [batches, groups, blocks];
        share::for_box(b, &el.splits, &extents, tasks, &mut |b, number| {
            el.scope(|| {
                let (number, at) = el.splits.split(b, number, blocks);
                let (batch, group) = el.splits.split(b, number, groups);
                let start = b.mul_const(at, block);
                let left = b.index(outer);
                let left = b.sub(left, start);
                let count = b.index(block);
                let block = Block {
                    batch,
                    group,
                    start,
                    count: b.binary(BinaryOp::SMin, count, left),
                };
                self.fill(b, block);
                b.for_range(conv.outputs as i64, 1, |b, output| {
                    el.scope(|| {
                        let feature = el.splits.join(b, group, output, conv.outputs as i64);
                        self.feature(b, block, feature);
                    });
                });
            });
        })
    }

    // The copy

    fn fill(&self, b: &mut KernelBuilder, block: Block) {
        let conv = self.conv;
        b.for_range(conv.inputs as i64, 1, |b, input| {
            self.body.el.scope(|| {
                let zero = b.index(0);
                let mut index = SmallVec::from_elem(zero, conv.input.len());
                index[conv.dims.input_batch] = block.batch;
                let first = b.mul_const(block.group, conv.inputs as i64);
                index[conv.dims.input_feature] = b.add(first, input);
                let to = b.mul_const(input, self.padded.feature() as i64);
                self.fill_lines(b, block, 0, index, to, None);
            });
        });
    }

    /// Writes the lines over the other dimensions from that number on.
    fn fill_lines(
        &self,
        b: &mut KernelBuilder,
        block: Block,
        number: usize,
        index: SmallVec<[ExprId; 6]>,
        to: ExprId,
        inside: Option<ExprId>,
    ) {
        let el = &self.body.el;
        let Some(&(d, size)) = self.padded.others.get(number) else {
            self.fill_line(b, index, to, inside);
            return;
        };
        let w = &self.conv.window[d];
        b.for_range(size as i64, 1, |b, at| {
            el.scope(|| {
                let offset = b.mul_const(at, self.padded.stride(number) as i64);
                let to = b.add(to, offset);
                let mut from = b.add_const(at, -w.padding_low);
                if number == 0 {
                    let start = b.mul_const(block.start, w.stride);
                    from = b.add(from, start);
                }
                let end = (self.conv.size(d) as i64 - 1) * w.base_dilation + 1;
                let end = b.index(end);
                // One unsigned comparison tests both ends.
                let mut here = b.cmp(CmpOp::ULt, from, end);
                if w.base_dilation > 1 {
                    let (zero, rest) = (b.index(0), b.rem_const(from, w.base_dilation));
                    let is_element = b.cmp(CmpOp::IEq, rest, zero);
                    here = b.binary(BinaryOp::And, here, is_element);
                    from = b.div_const(from, w.base_dilation);
                }
                let inside = match inside {
                    Some(inside) => b.binary(BinaryOp::And, inside, here),
                    None => here,
                };
                let mut index = index.clone();
                index[self.conv.dims.input_spatial[d]] = from;
                self.fill_lines(b, block, number + 1, index, to, Some(inside));
            });
        });
    }

    fn fill_line(
        &self,
        b: &mut KernelBuilder,
        index: SmallVec<[ExprId; 6]>,
        to: ExprId,
        inside: Option<ExprId>,
    ) {
        let el = &self.body.el;
        let Some(inside) = inside else {
            self.copy_line(b, &index, to);
            return;
        };
        let lanes = self.conv.lanes;
        b.if_else(
            inside,
            |b| {
                el.scope(|| self.copy_line(b, &index, to));
                Vec::new()
            },
            |b| {
                let zeros = tile::zeros(b, self.scalar(), lanes);
                b.for_range(self.padded.line() as i64, lanes as i64, |b, at| {
                    let to = b.add(to, at);
                    b.store(self.copy, to, zeros);
                });
                Vec::new()
            },
        );
    }

    /// Copies what is needed of a line of the input to its places between the padding.
    fn copy_line(&self, b: &mut KernelBuilder, index: &[ExprId], to: ExprId) {
        let w = self.lanes_window();
        let along = self.sizes.along;
        let span = (self.conv.positions(along) as i64 - 1) * w.stride
            + (w.size as i64 - 1) * w.window_dilation
            + 1;
        let ceil =
            |x: i64| x.div_euclid(w.base_dilation) + i64::from(x.rem_euclid(w.base_dilation) != 0);
        let first = ceil(-w.padding_low).max(0);
        let end = ceil(span - w.padding_low).min(self.conv.size(along) as i64);
        let count = end - first;
        if count <= 0 {
            return;
        }
        let first_to = first * w.base_dilation + w.padding_low;
        match (w.stride, w.base_dilation) {
            (1, 1) => {
                let lanes = (self.conv.lanes as i64).min(1 << count.ilog2());
                b.for_range(count, lanes, |b, at| {
                    self.body.el.scope(|| {
                        let last = b.index(count - lanes);
                        let at = b.binary(BinaryOp::SMin, at, last);
                        let vector = self.line_elements(b, index, (first, at), lanes);
                        let at = b.add_const(at, first_to);
                        let to = b.add(to, at);
                        b.store(self.copy, to, vector);
                    });
                });
            }
            (2, 1) => {
                let (mut start, mut lanes) = (0, self.conv.lanes as i64);
                while lanes > 1 {
                    let end = start + (count - start) / (2 * lanes) * 2 * lanes;
                    if start < end {
                        let bounds = (b.index(start), b.index(end), b.index(2 * lanes));
                        b.for_loop(bounds, |b, at| {
                            self.copy_halves(b, index, (first, first_to), (at, lanes), to);
                        });
                    }
                    (start, lanes) = (end, lanes / 2);
                }
                self.copy_singly(b, index, (first, first_to), (start, count), to);
            }
            _ => self.copy_singly(b, index, (first, first_to), (0, count), to),
        }
    }

    /// Elements of a line from `first + at` on.
    fn line_elements(
        &self,
        b: &mut KernelBuilder,
        index: &[ExprId],
        (first, at): (i64, ExprId),
        lanes: i64,
    ) -> ExprId {
        let mut index = SmallVec::from_slice(index);
        let d = self.conv.dims.input_spatial[self.sizes.along];
        index[d] = b.add_const(at, first);
        let near = self.input.near(b, index);
        let block = self.conv.size(self.sizes.along) as i64;
        self.input.read(b, &near, &[], (lanes as usize, block))
    }

    /// Copies two vectors of neighbouring elements from an even number on to the two parts of a line.
    fn copy_halves(
        &self,
        b: &mut KernelBuilder,
        index: &[ExprId],
        (first, first_to): (i64, i64),
        (at, lanes): (ExprId, i64),
        to: ExprId,
    ) {
        self.body.el.scope(|| {
            let [low, high] = [0, lanes].map(|offset| {
                let at = b.add_const(at, offset);
                self.line_elements(b, index, (first, at), lanes)
            });
            let half = b.div_const(at, 2);
            for remainder in 0..2 {
                let picked: Vec<u16> = (0..lanes).map(|l| (2 * l + remainder) as u16).collect();
                let vector = b.shuffle(low, high, &picked);
                let place = first_to + remainder;
                let part = place % 2 * self.padded.part as i64 + place / 2;
                let offset = b.add_const(half, part);
                let to = b.add(to, offset);
                b.store(self.copy, to, vector);
            }
        });
    }

    /// Copies the elements of a line of those numbers one by one.
    fn copy_singly(
        &self,
        b: &mut KernelBuilder,
        index: &[ExprId],
        (first, first_to): (i64, i64),
        (start, end): (i64, i64),
        to: ExprId,
    ) {
        if start == end {
            return;
        }
        let w = self.lanes_window();
        let bounds = (b.index(start), b.index(end), b.index(1));
        b.for_loop(bounds, |b, at| {
            self.body.el.scope(|| {
                let element = self.line_elements(b, index, (first, at), 1);
                let place = b.mul_const(at, w.base_dilation);
                let place = b.add_const(place, first_to);
                let remainder = b.rem_const(place, w.stride);
                let part = b.mul_const(remainder, self.padded.part as i64);
                let quotient = b.div_const(place, w.stride);
                let place = b.add(part, quotient);
                let to = b.add(to, place);
                b.store(self.copy, to, element);
            });
        });
    }

    // The sums

    /// All positions of a block of one output feature.
    fn feature(&self, b: &mut KernelBuilder, block: Block, feature: ExprId) {
        let zero = b.index(0);
        let tile = Tile {
            batch: block.batch,
            feature,
            spatial: SmallVec::from_elem(zero, self.conv.window.len()),
            start: zero,
            rows: 1,
            vectors: Vec::new(),
        };
        self.positions(b, block, 0, &tile);
    }

    /// Walks the other dimensions from that number on, the last one in tiles of rows.
    fn positions(&self, b: &mut KernelBuilder, block: Block, number: usize, tile: &Tile) {
        let Some(&(d, _)) = self.padded.others.get(number) else {
            self.row(b, tile);
            return;
        };
        let is_last = number + 1 == self.padded.others.len();
        let total = self.conv.positions(d);
        let count = match number {
            0 => block.count,
            _ => b.index(total as i64),
        };
        let height = if is_last { self.sizes.rows } else { 1 };
        let whole = b.div_const(count, height as i64);
        let whole = b.mul_const(whole, height as i64);
        let next = |b: &mut KernelBuilder, at: ExprId, rows: usize| {
            self.body.el.scope(|| {
                let step = self.conv.window[d].stride * self.padded.stride(number) as i64;
                let offset = b.mul_const(at, step);
                let mut spatial = tile.spatial.clone();
                spatial[d] = match number {
                    0 => b.add(block.start, at),
                    _ => at,
                };
                let tile = Tile {
                    spatial,
                    start: b.add(tile.start, offset),
                    rows,
                    vectors: Vec::new(),
                    ..*tile
                };
                self.positions(b, block, number + 1, &tile);
            });
        };
        let (zero, step) = (b.index(0), b.index(height as i64));
        b.for_loop((zero, whole, step), |b, at| next(b, at, height));
        let rest = total % height;
        if rest > 0 {
            let is_left = b.cmp(CmpOp::SLt, whole, count);
            b.if_then(is_left, |b| next(b, whole, rest));
        }
    }

    /// The tiles of some rows, whole ones and what is left.
    fn row(&self, b: &mut KernelBuilder, tile: &Tile) {
        let (lanes, along) = (self.conv.lanes, self.sizes.along);
        let total = self.conv.positions(along);
        let width = self.sizes.vectors * lanes;
        let whole = total / width * width;
        let part = |b: &mut KernelBuilder, at: ExprId, vectors: Vec<(usize, usize)>| {
            self.body.el.scope(|| {
                let mut spatial = tile.spatial.clone();
                spatial[along] = at;
                let tile = Tile {
                    spatial,
                    start: b.add(tile.start, at),
                    vectors,
                    ..*tile
                };
                self.tile(b, &tile);
            });
        };
        b.for_range(whole as i64, width as i64, |b, at| {
            let vectors = (0..width).step_by(lanes).map(|v| (v, lanes));
            part(b, at, vectors.collect());
        });
        let rest = total - whole;
        if rest == 0 {
            return;
        }
        let mut vectors: Vec<(usize, usize)> = (0..rest)
            .step_by(lanes)
            .map(|v| (v, lanes.min(rest - v)))
            .collect();
        if let Some(last) = vectors.last_mut()
            && !self.once
            && rest > lanes
        {
            // What it computes twice is the same twice.
            *last = (rest - lanes, lanes);
        }
        let at = b.index(whole as i64);
        part(b, at, vectors);
    }

    fn tile(&self, b: &mut KernelBuilder, tile: &Tile) {
        let zero = tile::zeros(b, self.scalar(), self.conv.lanes);
        let sums = vec![zero; tile.rows * tile.vectors.len()];
        let zero = b.index(0);
        let mut kernel = SmallVec::from_elem(zero, self.conv.kernel.len());
        kernel[self.conv.dims.kernel_output_feature] = tile.feature;
        let sums = self.over_inputs(b, tile, kernel, sums);
        let lanes = self.conv.lanes as i64;
        let row_lanes = tile.vectors.len() as i64 * lanes;
        let Some(staged) = self.staged else {
            for (row, sums) in sums.chunks(tile.vectors.len()).enumerate() {
                let row = b.index(row as i64);
                self.write_row(b, tile, row, sums);
            }
            return;
        };
        for (i, &sum) in sums.iter().enumerate() {
            let at = b.index(i as i64 * lanes);
            b.store(staged, at, sum);
        }
        b.for_range(tile.rows as i64, 1, |b, row| {
            let at = b.mul_const(row, row_lanes);
            let mut sums = Vec::new();
            for v in 0..tile.vectors.len() as i64 {
                let at = b.add_const(at, v * lanes);
                sums.push(b.load(staged, at, lanes as u16));
            }
            self.write_row(b, tile, row, &sums);
        });
    }

    fn over_inputs(
        &self,
        b: &mut KernelBuilder,
        tile: &Tile,
        kernel: SmallVec<[ExprId; 6]>,
        sums: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let step = self.padded.feature();
        let d = self.conv.dims.kernel_input_feature;
        self.walk(b, self.conv.inputs, sums, |b, input, sums| {
            let mut kernel = kernel.clone();
            kernel[d] = input;
            let offset = b.mul_const(input, step as i64);
            let start = b.add(tile.start, offset);
            self.over_window(b, tile, 0, (start, kernel), sums)
        })
    }

    /// Carries sums through a loop of that many steps.
    fn walk(
        &self,
        b: &mut KernelBuilder,
        count: usize,
        sums: Vec<ExprId>,
        body: impl FnOnce(&mut KernelBuilder, ExprId, Vec<ExprId>) -> Vec<ExprId>,
    ) -> Vec<ExprId> {
        let (zero, end, one) = (b.index(0), b.index(count as i64), b.index(1));
        if count == 1 {
            return body(b, zero, sums);
        }
        b.for_carried((zero, end, one), &sums, Unroll::Never, |b, at, sums| {
            self.body.el.scope(|| body(b, at, sums.to_vec()))
        })
    }

    /// Adds the products over the window in the other dimensions from that number on.
    fn over_window(
        &self,
        b: &mut KernelBuilder,
        tile: &Tile,
        number: usize,
        (start, kernel): (ExprId, SmallVec<[ExprId; 6]>),
        sums: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let Some(&(d, _)) = self.padded.others.get(number) else {
            return self.products(b, tile, start, kernel, sums);
        };
        let w = &self.conv.window[d];
        let step = w.window_dilation * self.padded.stride(number) as i64;
        self.walk(b, w.size, sums, |b, element, sums| {
            let offset = b.mul_const(element, step);
            let start = b.add(start, offset);
            let mut kernel = kernel.clone();
            kernel[self.conv.dims.kernel_spatial[d]] = match w.reversal {
                true => {
                    let last = b.index(w.size as i64 - 1);
                    b.sub(last, element)
                }
                false => element,
            };
            self.over_window(b, tile, number + 1, (start, kernel), sums)
        })
    }

    /// Adds the products over the window along the lanes.
    fn products(
        &self,
        b: &mut KernelBuilder,
        tile: &Tile,
        start: ExprId,
        kernel: SmallVec<[ExprId; 6]>,
        mut sums: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let lanes = self.conv.lanes as u16;
        let w = self.lanes_window();
        let near = self.kernel.near(b, kernel);
        let d = self.conv.dims.kernel_spatial[self.sizes.along];
        let rows_apart = match self.padded.others.last() {
            Some(&(d, _)) => self.conv.window[d].stride * self.padded.line() as i64,
            None => 0,
        };
        for element in 0..w.size as i64 {
            let place = match w.reversal {
                true => w.size as i64 - 1 - element,
                false => element,
            };
            let weight = self.kernel.read(b, &near, &[(d, place)], (1, 1));
            let weight = b.splat(weight, lanes);
            let from = element * w.window_dilation;
            let from = from % w.stride * self.padded.part as i64 + from / w.stride;
            for row in 0..tile.rows {
                for (v, &(offset, _)) in tile.vectors.iter().enumerate() {
                    let at = from + row as i64 * rows_apart + offset as i64;
                    let at = b.add_const(start, at);
                    let x = b.load(self.copy, at, lanes);
                    let sum = &mut sums[row * tile.vectors.len() + v];
                    *sum = tile::multiply_add(b, x, weight, *sum);
                }
            }
        }
        sums
    }

    /// Writes the sums of a row of a tile.
    fn write_row(&self, b: &mut KernelBuilder, tile: &Tile, row: ExprId, sums: &[ExprId]) {
        let mut spatial = tile.spatial.clone();
        if let Some(&(d, _)) = self.padded.others.last() {
            spatial[d] = b.add(spatial[d], row);
        }
        let along = self.sizes.along;
        for (&sum, &(offset, count)) in sums.iter().zip(&tile.vectors) {
            let mut done = 0;
            while done < count {
                let width = 1 << (count - done).ilog2();
                let part = match width {
                    _ if width == self.conv.lanes => sum,
                    1 => b.extract(sum, done as u16),
                    _ => {
                        let picked: Vec<u16> = (done..done + width).map(|l| l as u16).collect();
                        b.shuffle(sum, sum, &picked)
                    }
                };
                spatial[along] = b.add_const(tile.spatial[along], (offset + done) as i64);
                let at = walk::position(
                    b,
                    &self.body.el,
                    (self.conv, self.product),
                    tile.batch,
                    &spatial,
                    tile.feature,
                );
                self.store
                    .at(b, at, part, self.conv.positions(along) as i64);
                done += width;
            }
        }
    }
}
