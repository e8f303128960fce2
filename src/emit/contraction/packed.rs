//! Products of register tiles: rows of the left side by panels of columns of the right one.
//!
//! Panels are packed by a kernel of their own, by the task that needs them, or are read where they
//! lie. The left side is read where it lies when it lies well, else copied block by block into memory
//! of the task; windows of a convolution are read out of lines of its input.

use crate::analysis::contraction::Group;
use crate::analysis::contraction::Product;
use crate::analysis::contraction::Right;
use crate::analysis::contraction::Tiling;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::emit::contraction::amx;
use crate::emit::contraction::pack;
use crate::emit::contraction::pack::Packer;
use crate::emit::contraction::side::Along;
use crate::emit::contraction::side::Direct;
use crate::emit::contraction::side::Place;
use crate::emit::contraction::side::Reader;
use crate::emit::contraction::store::Store;
use crate::emit::contraction::tile;
use crate::emit::contraction::tile::Panel;
use crate::emit::contraction::tile::Rows;
use crate::emit::contraction::tile::Summed;
use crate::emit::contraction::windows::Positions;
use crate::emit::contraction::windows::Windows;
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
use crate::kernel::TileOp;
use crate::kernel::TilePlace;

pub(super) fn emit(
    request: &KernelRequest<'_>,
    product: &Product,
    tiling: &Tiling,
) -> Result<Emitted> {
    if tiling.right != Right::Packed {
        return multiply(request, product, tiling);
    }
    let mut steps = pack::emit(request, product, tiling)?;
    steps
        .steps
        .extend(multiply(request, product, tiling)?.steps);
    Ok(steps)
}

fn not_in_memory(request: &KernelRequest<'_>, what: &str) -> Box<Diagnostic> {
    let name = &request.name;
    let what = format!("the {what} of `{name}` cannot be read where its tiling says");
    Diagnostic::internal(codes::INTERNAL, what)
}

fn launch(tasks: i64) -> Launch {
    Launch {
        workgroups: [tasks.max(1) as u64, 1, 1],
        ..Launch::SINGLE
    }
}

fn multiply(request: &KernelRequest<'_>, product: &Product, tiling: &Tiling) -> Result<Emitted> {
    let part = match tiling.right {
        Right::Packed => Part::ReadsScratch(tiling.operand_type(product)),
        Right::InBlocks | Right::InPlace => Part::Whole,
    };
    let Setup { mut b, body } = Setup::part(request, &request.name, part);
    let scalar = value::register(product.accumulator);
    let operand = value::register(tiling.operand_type(product));
    let right = match tiling.right {
        Right::Packed => Panels::Packed(body.filled.ok_or_else(|| pack::no_scratch(request))?),
        Right::InBlocks => {
            let size = tiling.panel_elements(tiling.k_block) as u64;
            Panels::Block(b.scratch("columns", operand, size, Space::Private))
        }
        Right::InPlace => {
            let direct = Reader::rhs(&body.el, product).direct();
            Panels::Direct(direct.ok_or_else(|| not_in_memory(request, "right side"))?)
        }
    };
    let row_blocks = tiling.row_blocks(product) as i64;
    let column_blocks = pieces(product.n as i64, tiling.n_block as i64);
    let batches = tiling.batch_block as i64;
    let tasks = pieces(product.batch as i64, batches) * row_blocks * column_blocks;
    {
        let reader = Reader::lhs(&body.el, product).in_type(tiling.operand_type(product));
        let lies_well = reader
            .direct()
            .filter(|d| d.summed_stride == 1)
            .filter(|_| tiling.group == Group::Single || amx::rows_lie_well(product, tiling));
        let rows = tiling
            .m_block
            .min(product.m.div_ceil(tiling.tile_rows) * tiling.tile_rows);
        let windows = match tiling.lines {
            Some(lines) => {
                let windows = Windows::new(&mut b, &body, product, tiling, lines);
                Some(windows.ok_or_else(|| not_in_memory(request, "windows"))?)
            }
            None => None,
        };
        let left = match (windows, lies_well) {
            (Some(windows), _) => Left::Windows(windows),
            (None, Some(direct)) => Left::Direct(direct),
            (None, None) => {
                let size = (rows * tiling.row_stride()) as u64;
                Left::Copied(b.scratch("rows", operand, size, Space::Private))
            }
        };
        let blocks = product.k.div_ceil(tiling.k_block);
        let sums = (blocks > 1).then(|| {
            let size = (rows * tiling.sums_stride()) as u64;
            b.scratch("sums", scalar, size, Space::Private)
        });
        let store = Store::new(&body, product);
        let staged = (blocks == 1 && (tiling.tiles || !store.is_plain())).then(|| {
            let size = (tiling.tile_rows * tiling.tile_columns) as u64;
            b.scratch("tile", scalar, size, Space::Private)
        });
        let task = Task {
            body: &body,
            product,
            tiling,
            reader,
            store,
            right,
            left,
            sums,
            staged,
        };
        if tiling.tiles {
            amx::configure(&mut b, product, tiling);
        }
        let group = b.workgroup_id(Axis::X);
        let (number, column_block) = body.el.splits.split(&mut b, group, column_blocks);
        let (batch_block, row_block) = body.el.splits.split(&mut b, number, row_blocks);
        if batches == 1 {
            task.run(&mut b, batch_block, row_block, column_block);
        } else {
            let start = b.mul_const(batch_block, batches);
            let end = b.add_const(start, batches);
            let bound = b.index(product.batch as i64);
            let end = b.binary(BinaryOp::SMin, end, bound);
            let one = b.index(1);
            b.for_loop((start, end, one), |b, batch| {
                body.el
                    .scope(|| task.run(b, batch, row_block, column_block));
            });
        }
        if tiling.tiles {
            b.tile(TileOp::Release);
        }
    }
    body.finish(b, launch(tasks))
}

/// Where the rows of the left side are.
#[allow(clippy::large_enum_variant, reason = "there is one of these a kernel")]
enum Left<'a, 'm> {
    /// In lines of a convolution's input.
    Windows(Windows<'a, 'm>),
    /// In the operand, the summed coordinate innermost.
    Direct(Direct),
    /// Copied block by block.
    Copied(BufId),
}

/// Where the panels of the right side are.
enum Panels {
    /// All of them, as [`pack::emit`] leaves them.
    Packed(BufId),
    /// A block of one, packed where it is needed.
    Block(BufId),
    /// In the operand.
    Direct(Direct),
}

/// One block of rows by one block of columns.
struct Task<'a, 'm> {
    body: &'a Body<'m>,
    product: &'a Product,
    tiling: &'a Tiling,
    reader: Reader<'a, 'm>,
    store: Store<'a, 'm>,
    right: Panels,
    left: Left<'a, 'm>,
    /// Sums of the block, when the summed length is cut.
    sums: Option<BufId>,
    /// Sums of one tile on their way to the epilogue.
    staged: Option<BufId>,
}

/// What a block covers.
#[derive(Clone, Copy)]
struct Block {
    batch: ExprId,
    /// First row, and the one after the last.
    rows: (ExprId, ExprId),
    /// Where the window of the first row begins, when windows are walked.
    start: ExprId,
    /// First column, and the one after the last.
    columns: (ExprId, ExprId),
    /// First `k`, and how many.
    summed: (ExprId, ExprId),
}

impl Task<'_, '_> {
    fn scalar(&self) -> Scalar {
        value::register(self.product.accumulator)
    }

    fn summed(&self, block: Block) -> Summed<'_> {
        Summed {
            tiling: self.tiling,
            lengths: [self.product.k, self.tiling.k_block],
            length: block.summed.1,
        }
    }

    fn range(b: &mut KernelBuilder, block: ExprId, size: usize, total: usize) -> (ExprId, ExprId) {
        let start = b.mul_const(block, size as i64);
        let end = b.add_const(start, size as i64);
        let bound = b.index(total as i64);
        (start, b.binary(BinaryOp::SMin, end, bound))
    }

    fn run(&self, b: &mut KernelBuilder, batch: ExprId, row_block: ExprId, column_block: ExprId) {
        let zero = b.index(0);
        let Positions { rows, start } = match &self.left {
            Left::Windows(windows) => windows.positions(b, &self.reader, batch, row_block),
            Left::Direct(_) | Left::Copied(_) => Positions {
                rows: Self::range(b, row_block, self.tiling.m_block, self.product.m),
                start: zero,
            },
        };
        let columns = Self::range(b, column_block, self.tiling.n_block, self.product.n);
        let whole = Block {
            batch,
            rows,
            start,
            columns,
            summed: (zero, zero),
        };
        let Some(sums) = self.sums else {
            let length = b.index(self.product.k as i64);
            self.part(
                b,
                Block {
                    summed: (zero, length),
                    ..whole
                },
            );
            return;
        };
        self.clear(b, sums);
        let (end, step) = (
            b.index(self.product.k as i64),
            b.index(self.tiling.k_block as i64),
        );
        b.for_loop((zero, end, step), |b, k| {
            let rest = b.sub(end, k);
            let length = b.binary(BinaryOp::SMin, rest, step);
            self.part(
                b,
                Block {
                    summed: (k, length),
                    ..whole
                },
            );
        });
        self.flush(b, whole, sums);
    }

    fn clear(&self, b: &mut KernelBuilder, sums: BufId) {
        let zero = tile::zeros(b, self.scalar(), self.tiling.lanes);
        let count = b.buffer_info(sums).count as i64;
        b.for_range(count, self.tiling.lanes as i64, |b, at| {
            b.store(sums, at, zero)
        });
    }

    /// All rows and columns of the task over a part of the summed length.
    fn part(&self, b: &mut KernelBuilder, block: Block) {
        let rows = self.left(b, block);
        let columns = self.tiling.tile_columns as i64;
        let step = b.index(columns);
        b.for_loop((block.columns.0, block.columns.1, step), |b, column| {
            let panel = self.panel(b, block, column);
            self.row_tiles(b, block, rows, panel, column);
        });
    }

    /// The left side's rows of a block, from its first row and `k` on.
    fn left(&self, b: &mut KernelBuilder, block: Block) -> Rows<'_> {
        let buf = match &self.left {
            Left::Windows(windows) => return windows.rows(b, block.start, block.summed.0),
            Left::Copied(buf) => *buf,
            Left::Direct(direct) => {
                let batch = direct.start(b, &self.body.el.splits, block.batch);
                let row = b.mul_const(block.rows.0, direct.free_stride);
                let start = b.add(batch, row);
                return Rows {
                    buf: direct.buf,
                    start: b.add(start, block.summed.0),
                    row_stride: direct.free_stride,
                    k_stride: direct.summed_stride,
                    runs: None,
                };
            }
        };
        let operand = b.buffer_info(buf).elem;
        let stride = self.tiling.row_stride() as i64;
        let zero = b.index(0);
        if self.tiling.group == Group::Single
            && self.reader.innermost() == Along::Free
            && self.reader.vectorizes(Along::Free, self.tiling.lanes)
        {
            // Rows are neighbours in memory: the copy keeps them so.
            let padded = b.buffer_info(buf).count as i64 / stride;
            self.copy_along_rows(b, block, buf, padded);
            return Rows {
                buf,
                start: zero,
                row_stride: 1,
                k_stride: padded,
                runs: None,
            };
        }
        let one = b.index(1);
        let count = b.sub(block.rows.1, block.rows.0);
        b.for_loop((zero, count, one), |b, row| {
            let free = b.add(block.rows.0, row);
            let to = b.mul_const(row, stride);
            let write = |b: &mut KernelBuilder, at: ExprId, mut vector: ExprId| {
                if self.tiling.group == Group::OffsetQuads {
                    vector = tile::offset(b, vector);
                }
                b.store(buf, at, vector);
            };
            self.copy_run(b, block.summed, Along::Summed, |b, this, at, lanes| {
                let summed = b.add(block.summed.0, at);
                let place = Place {
                    batch: block.batch,
                    free,
                    summed,
                };
                let vector = this.reader.read(b, place, Along::Summed, lanes);
                let to = b.add(to, at);
                write(b, to, vector);
            });
            let group = self.tiling.depth();
            if !self.product.k.is_multiple_of(group) {
                // The last group of the last block is filled up.
                let groups = b.add_const(block.summed.1, group as i64 - 1);
                let groups = b.div_const(groups, group as i64);
                let padded = b.mul_const(groups, group as i64);
                b.for_loop((block.summed.1, padded, one), |b, at| {
                    let to = b.add(to, at);
                    let nothing = tile::zeros(b, operand, 1);
                    b.store(buf, to, nothing);
                });
            }
        });
        amx::fill_rows(b, (self.product, self.tiling), buf, count);
        Rows {
            buf,
            start: zero,
            row_stride: stride,
            k_stride: 1,
            runs: None,
        }
    }

    fn copy_along_rows(&self, b: &mut KernelBuilder, block: Block, buf: BufId, padded: i64) {
        let (zero, one) = (b.index(0), b.index(1));
        let count = b.sub(block.rows.1, block.rows.0);
        b.for_loop((zero, block.summed.1, one), |b, k| {
            let summed = b.add(block.summed.0, k);
            let to = b.mul_const(k, padded);
            self.copy_run(
                b,
                (block.rows.0, count),
                Along::Free,
                |b, this, at, lanes| {
                    let free = b.add(block.rows.0, at);
                    let place = Place {
                        batch: block.batch,
                        free,
                        summed,
                    };
                    let vector = this.reader.read(b, place, Along::Free, lanes);
                    let to = b.add(to, at);
                    b.store(buf, to, vector);
                },
            );
        });
    }

    /// Walks a run in vectors and then one by one.
    fn copy_run(
        &self,
        b: &mut KernelBuilder,
        (_, count): (ExprId, ExprId),
        along: Along,
        copy: impl Fn(&mut KernelBuilder, &Self, ExprId, u16),
    ) {
        let zero = b.index(0);
        let lanes = self.tiling.lanes as i64;
        // Runs start at multiples of the blocks, which are multiples of the lanes or the whole.
        let step_size = match along {
            Along::Free => self.tiling.m_block,
            Along::Summed => self.tiling.k_block,
        };
        let total = if along == Along::Free {
            self.product.m
        } else {
            self.product.k
        };
        let is_aligned = step_size as i64 % lanes == 0 || step_size >= total;
        let vectorizes = lanes > 1 && is_aligned && self.reader.vectorizes(along, lanes as usize);
        let main = if vectorizes {
            let whole = b.div_const(count, lanes);
            let main = b.mul_const(whole, lanes);
            let step = b.index(lanes);
            b.for_loop((zero, main, step), |b, at| {
                self.body.el.scope(|| copy(b, self, at, lanes as u16));
            });
            main
        } else {
            zero
        };
        if b.as_const_index(main).is_some() && b.as_const(main) == b.as_const(count) {
            return;
        }
        let one = b.index(1);
        b.for_loop((main, count, one), |b, at| {
            self.body.el.scope(|| copy(b, self, at, 1));
        });
    }

    fn panel(&self, b: &mut KernelBuilder, block: Block, column: ExprId) -> Panel {
        let columns = self.tiling.tile_columns as i64;
        match &self.right {
            Panels::Packed(buf) => {
                let per_batch = pack::panels(self.product, self.tiling);
                let number = b.div_const(column, columns);
                let batch = b.mul_const(block.batch, per_batch);
                let number = b.add(batch, number);
                let size = self.tiling.panel_elements(self.product.k) as i64;
                let start = b.mul_const(number, size);
                let offset = b.mul_const(block.summed.0, columns);
                Panel {
                    buf: *buf,
                    start: b.add(start, offset),
                    stride: columns,
                }
            }
            Panels::Block(buf) => {
                let packer = Packer {
                    body: self.body,
                    product: self.product,
                    tiling: self.tiling,
                    buf: *buf,
                };
                let start = b.index(0);
                self.body
                    .el
                    .scope(|| packer.panel(b, (block.batch, column), block.summed, start));
                Panel {
                    buf: *buf,
                    start,
                    stride: columns,
                }
            }
            Panels::Direct(direct) => {
                let start = direct.start(b, &self.body.el.splits, block.batch);
                let offset = b.mul_const(block.summed.0, direct.summed_stride);
                let start = b.add(start, offset);
                Panel {
                    buf: direct.buf,
                    start: b.add(start, column),
                    stride: direct.summed_stride,
                }
            }
        }
    }

    /// All row tiles of a block against one panel.
    fn row_tiles(
        &self,
        b: &mut KernelBuilder,
        block: Block,
        rows: Rows<'_>,
        panel: Panel,
        column: ExprId,
    ) {
        let offsets = match self.tiling.group {
            Group::OffsetQuads => tile::offsets(b, &self.summed(block), panel),
            Group::Single | Group::Pairs | Group::Quads => Vec::new(),
        };
        let count = b.sub(block.rows.1, block.rows.0);
        let right = (panel, offsets.as_slice(), column);
        let Left::Windows(windows) = &self.left else {
            let first = b.index(0);
            self.line_tiles(b, block, (rows, first), (count, self.product.m), right);
            return;
        };
        let width = match windows.count() {
            1 => count,
            _ => b.index(windows.width()),
        };
        b.for_range(windows.count(), 1, |b, line| {
            let first = b.mul_const(line, windows.width());
            let rows = windows.line(b, rows, line);
            self.line_tiles(b, block, (rows, first), (width, windows.length()), right);
        });
    }

    /// The tiles of a line of rows, which begins with a row of the block. Lines are of that count, as
    /// parts of a length of which only the last may be no multiple of a tile's rows.
    fn line_tiles(
        &self,
        b: &mut KernelBuilder,
        block: Block,
        (rows, first): (Rows<'_>, ExprId),
        (count, length): (ExprId, usize),
        (panel, offsets, column): (Panel, &[ExprId], ExprId),
    ) {
        let height = self.tiling.tile_rows as i64;
        let zero = b.index(0);
        let whole = b.div_const(count, height);
        let whole = b.mul_const(whole, height);
        let step = b.index(height);
        let tile = |b: &mut KernelBuilder, (row, height): (ExprId, usize)| {
            let from = b.mul_const(row, rows.row_stride);
            let rows = Rows {
                start: b.add(rows.start, from),
                ..rows
            };
            let row = b.add(first, row);
            self.tile(b, block, rows, (panel, offsets), (row, height), column);
        };
        if length as i64 >= height {
            b.for_loop((zero, whole, step), |b, row| {
                tile(b, (row, self.tiling.tile_rows));
            });
        }
        let rest = length % self.tiling.tile_rows;
        if rest > 0 {
            let is_left = b.cmp(CmpOp::SLt, whole, count);
            b.if_then(is_left, |b| tile(b, (whole, rest)));
        }
    }

    /// One tile of rows, of which the first is a row of the block, by a panel.
    fn tile(
        &self,
        b: &mut KernelBuilder,
        block: Block,
        rows: Rows<'_>,
        (panel, offsets): (Panel, &[ExprId]),
        (row, height): (ExprId, usize),
        column: ExprId,
    ) {
        let vectors = self.tiling.tile_columns / self.tiling.lanes;
        let start = self.sums.map(|sums| {
            let local = b.sub(column, block.columns.0);
            let at = b.mul_const(row, self.tiling.sums_stride() as i64);
            (sums, b.add(at, local))
        });
        if self.tiling.tiles {
            return self.matrix_tile(b, block, (rows, panel), (row, height), (column, start));
        }
        let place = |b: &mut KernelBuilder, start: ExprId, i: usize| {
            let (r, v) = (i / vectors, i % vectors);
            b.add_const(
                start,
                (r * self.tiling.sums_stride() + v * self.tiling.lanes) as i64,
            )
        };
        let init: Vec<ExprId> = (0..height * vectors)
            .map(|i| {
                let sum = match start {
                    Some((sums, start)) => {
                        let at = place(b, start, i);
                        b.load(sums, at, self.tiling.lanes as u16)
                    }
                    None => tile::zeros(b, self.scalar(), self.tiling.lanes),
                };
                match offsets.get(i % vectors) {
                    Some(&offset) => b.sub(sum, offset),
                    None => sum,
                }
            })
            .collect();
        let result = tile::multiply(b, &self.summed(block), rows, panel, height, init);
        if let Some((sums, start)) = start {
            for (i, sum) in result.into_iter().enumerate() {
                let at = place(b, start, i);
                b.store(sums, at, sum);
            }
            return;
        }
        let row = b.add(block.rows.0, row);
        match self.staged {
            None => self.write_tile(b, block.batch, (row, column), &result),
            Some(staged) => {
                for (i, &sum) in result.iter().enumerate() {
                    let at = b.index((i * self.tiling.lanes) as i64);
                    b.store(staged, at, sum);
                }
                self.write_staged(b, block.batch, (row, height), column, staged);
            }
        }
    }

    /// A tile of sums by matrix tiles.
    fn matrix_tile(
        &self,
        b: &mut KernelBuilder,
        block: Block,
        operands: (Rows<'_>, Panel),
        (row, height): (ExprId, usize),
        (column, start): (ExprId, Option<(BufId, ExprId)>),
    ) {
        let kind = amx::dot_kind(self.body.el.module, self.product);
        let dot = (kind, &self.summed(block));
        if let Some((buf, index)) = start {
            let stride = self.tiling.sums_stride() as u64;
            let place = TilePlace { buf, index, stride };
            amx::multiply(b, dot, operands, height, (place, true));
        }
        if let Some(buf) = self.staged {
            let (index, stride) = (b.index(0), self.tiling.tile_columns as u64);
            let place = TilePlace { buf, index, stride };
            amx::multiply(b, dot, operands, height, (place, false));
            let row = b.add(block.rows.0, row);
            self.write_staged(b, block.batch, (row, height), column, buf);
        }
    }

    /// Writes a tile from memory.
    fn write_staged(
        &self,
        b: &mut KernelBuilder,
        batch: ExprId,
        (row, height): (ExprId, usize),
        column: ExprId,
        staged: BufId,
    ) {
        let columns = self.tiling.tile_columns;
        b.for_range(height as i64, 1, |b, r| {
            let row = b.add(row, r);
            let at = b.mul_const(r, columns as i64);
            self.write_row(b, (batch, row, column), staged, at, columns);
        });
    }

    /// Writes a tile from registers.
    fn write_tile(
        &self,
        b: &mut KernelBuilder,
        batch: ExprId,
        (row, column): (ExprId, ExprId),
        sums: &[ExprId],
    ) {
        let vectors = self.tiling.tile_columns / self.tiling.lanes;
        self.by_width(b, column, |b, count| {
            for (i, &sum) in sums.iter().enumerate() {
                let (r, v) = (i / vectors, i % vectors * self.tiling.lanes);
                if v < count {
                    let row = b.add_const(row, r as i64);
                    let column = b.add_const(column, v as i64);
                    self.store
                        .first_sums(b, (batch, row, column), sum, count - v);
                }
            }
        });
    }

    /// Builds for a full panel and, where there is one, for the last one with fewer columns.
    fn by_width(
        &self,
        b: &mut KernelBuilder,
        column: ExprId,
        write: impl Fn(&mut KernelBuilder, usize),
    ) {
        let columns = self.tiling.tile_columns;
        let rest = self.product.n % columns;
        if rest == 0 {
            write(b, columns);
            return;
        }
        if self.product.n < columns {
            write(b, rest);
            return;
        }
        let last = b.index((self.product.n - rest) as i64);
        let is_last = b.cmp(CmpOp::IEq, column, last);
        b.if_else(
            is_last,
            |b| {
                write(b, rest);
                Vec::new()
            },
            |b| {
                write(b, columns);
                Vec::new()
            },
        );
    }

    /// Writes one row of a panel from memory.
    fn write_row(
        &self,
        b: &mut KernelBuilder,
        (batch, row, column): (ExprId, ExprId, ExprId),
        from: BufId,
        at: ExprId,
        columns: usize,
    ) {
        debug_assert_eq!(columns, self.tiling.tile_columns, "a row of one panel");
        self.by_width(b, column, |b, count| {
            for v in (0..count).step_by(self.tiling.lanes) {
                let at = b.add_const(at, v as i64);
                let sum = b.load(from, at, self.tiling.lanes as u16);
                let column = b.add_const(column, v as i64);
                self.store
                    .first_sums(b, (batch, row, column), sum, count - v);
            }
        });
    }

    /// Writes all sums of a block.
    fn flush(&self, b: &mut KernelBuilder, block: Block, sums: BufId) {
        let (zero, one) = (b.index(0), b.index(1));
        let count = b.sub(block.rows.1, block.rows.0);
        let step = b.index(self.tiling.tile_columns as i64);
        b.for_loop((zero, count, one), |b, local| {
            let row = b.add(block.rows.0, local);
            let start = b.mul_const(local, self.tiling.sums_stride() as i64);
            b.for_loop((block.columns.0, block.columns.1, step), |b, column| {
                let offset = b.sub(column, block.columns.0);
                let at = b.add(start, offset);
                let columns = self.tiling.tile_columns;
                self.write_row(b, (block.batch, row, column), sums, at, columns);
            });
        });
    }
}
