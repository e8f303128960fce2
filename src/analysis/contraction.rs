//! Dots and convolutions as matrix products: which dimensions are rows, columns and sums, and how
//! the product is cut into tiles for a CPU.
//!
//! One place, so that buffer assignment and the emitter agree on the memory a product works in.
//! Tile sizes follow K. Goto and R. van de Geijn, "Anatomy of high-performance matrix
//! multiplication" (2008), with the right side packed once and the left side read where it lies.

mod amx;

use smallvec::SmallVec;

pub use amx::TILE;

use crate::analysis::grouped_conv;
use crate::analysis::windows;
use crate::analysis::windows::Lines;
use crate::analysis::windows::Tiles;
use crate::hlo::ConvDims;
use crate::hlo::DotAlgorithm;
use crate::hlo::DotDims;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Window;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::target::CpuFamily;
use crate::target::Target;

/// Where a coordinate of the product is found in an operand or in the result.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "a product has two of these, and there is one product a kernel"
)]
pub enum Access {
    /// An array whose dimensions are batch, free and summed dimensions, each list read as one
    /// row-major number.
    Plain {
        /// Batch dimensions.
        batch: Dims,
        /// Row or column dimensions.
        free: Dims,
        /// Summed dimensions.
        summed: Dims,
    },
    /// The input of a convolution: rows are (batch, output positions), sums are (window positions,
    /// features of one group).
    Patches {
        /// The window.
        window: Window,
        /// Dimension numbers.
        dims: ConvDims,
        /// Sizes of the output's spatial dimensions.
        output: Dims,
    },
}

/// One operand of a product.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The instruction whose value it is.
    pub operand: InstrId,
    /// Whether that is read from memory, and not computed where it is needed.
    pub in_memory: bool,
    /// How coordinates map to its index.
    pub access: Access,
}

/// Which coordinate a dimension of the result belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The batch, or the group of a convolution.
    Batch,
    /// Rows: what is free in the left side.
    Row,
    /// Columns: what is free in the right side.
    Column,
}

/// `out[batch, m, n] = sum over k of lhs[batch, m, k] * rhs[batch, n, k]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// The dot or convolution.
    pub hero: InstrId,
    /// What the sums are the elements of: the hero, or the transpose in the fusion that alone uses
    /// it.
    pub value: InstrId,
    /// The left side, whose free coordinate is the row.
    pub lhs: Side,
    /// The right side, whose free coordinate is the column.
    pub rhs: Side,
    /// Products side by side.
    pub batch: usize,
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Summed length.
    pub k: usize,
    /// The value's dimensions in their row-major order: the coordinate each belongs to and, within
    /// that coordinate's number, its place from the most significant on.
    pub output: SmallVec<[(Axis, usize); 6]>,
    /// The type sums are kept in.
    pub accumulator: PrimitiveType,
    /// A type operands are rounded to first, when the algorithm asks for it.
    pub operand_type: Option<PrimitiveType>,
}

impl Product {
    /// The product of the transposes: the same sums with rows and columns exchanged.
    pub(super) fn exchanged(&self) -> Self {
        let exchange = |&(axis, part): &(Axis, usize)| {
            let axis = match axis {
                Axis::Batch => Axis::Batch,
                Axis::Row => Axis::Column,
                Axis::Column => Axis::Row,
            };
            (axis, part)
        };
        Self {
            lhs: self.rhs.clone(),
            rhs: self.lhs.clone(),
            m: self.n,
            n: self.m,
            output: self.output.iter().map(exchange).collect(),
            ..self.clone()
        }
    }

    /// Whether a task has room for a copy of all rows of one batch.
    pub fn rows_fit(&self) -> bool {
        self.m * self.k * self.accumulator.byte_width() <= ROWS_BYTES
    }
}

/// The dot or convolution that shapes an instruction: itself, or the only one in a fusion.
pub fn hero(module: &Module, instr: InstrId) -> Option<InstrId> {
    let is_hero =
        |id: InstrId| matches!(module.instr(id).op, Op::Dot { .. } | Op::Convolution { .. });
    match module.instr(instr).op {
        Op::Fusion { body, .. } => {
            let mut heroes = module
                .comp(body)
                .instrs
                .iter()
                .copied()
                .filter(|&id| is_hero(id));
            let hero = heroes.next()?;
            heroes.next().is_none().then_some(hero)
        }
        _ => is_hero(instr).then_some(instr),
    }
}

/// The transpose in a fusion's body that alone uses the hero, and its order of dimensions.
pub(super) fn turn(module: &Module, instr: InstrId, hero: InstrId) -> Option<(InstrId, &Dims)> {
    let Op::Fusion { body, .. } = module.instr(instr).op else {
        return None;
    };
    let body = module.comp(body);
    let uses = |id: &InstrId| module.instr(*id).operands.contains(&hero);
    let mut users = body.instrs.iter().copied().filter(uses);
    let (user, None) = (users.next()?, users.next()) else {
        return None;
    };
    match &module.instr(user).op {
        Op::Transpose { dims } if body.root != hero => Some((user, dims)),
        _ => None,
    }
}

/// The type that products of these operands are summed in; `None` for types without one here.
fn accumulator(result: PrimitiveType) -> Option<PrimitiveType> {
    match (result.kind(), result.bit_width()) {
        (ElementKind::Float, 0..=32) => Some(PrimitiveType::F32),
        (ElementKind::Float, _) => Some(PrimitiveType::F64),
        (ElementKind::Signed | ElementKind::Unsigned, 0..=32) => Some(PrimitiveType::S32),
        (ElementKind::Signed | ElementKind::Unsigned, _) => Some(PrimitiveType::S64),
        (ElementKind::Pred | ElementKind::Complex, _) => None,
    }
}

fn operand_type(algorithm: DotAlgorithm) -> Option<PrimitiveType> {
    match algorithm {
        DotAlgorithm::Bf16Bf16Bf16 | DotAlgorithm::Bf16Bf16F32 => Some(PrimitiveType::BF16),
        DotAlgorithm::F16F16F16 | DotAlgorithm::F16F16F32 => Some(PrimitiveType::F16),
        _ => None,
    }
}

/// An instruction as a matrix product; `None` when it is none that tiles can compute.
pub fn product(module: &Module, instr: InstrId) -> Option<Product> {
    let hero = hero(module, instr)?;
    product_of(module, hero, hero == instr, turn(module, instr, hero))
}

/// A dot or convolution as a matrix product, `alone` or in a fusion, whose sums go to a transpose of
/// that order of dimensions when there is one.
pub(super) fn product_of(
    module: &Module,
    hero: InstrId,
    alone: bool,
    turn: Option<(InstrId, &Dims)>,
) -> Option<Product> {
    let array = |id: InstrId| module.shape(id).as_array();
    let result = array(hero)?;
    let accumulator = accumulator(result.ty)?;
    let operands = &module.instr(hero).operands;
    let (lhs, rhs) = (array(*operands.first()?)?, array(*operands.get(1)?)?);
    let mixes = |ty: PrimitiveType| ty.is_complex() || ty.kind() == ElementKind::Pred;
    if mixes(lhs.ty) || mixes(rhs.ty) || result.element_count() == 0 {
        return None;
    }
    let floats = [lhs, rhs].iter().any(|s| s.ty.is_float());
    if floats != result.ty.is_float() {
        return None;
    }
    let mut product = match &module.instr(hero).op {
        Op::Dot {
            dims, precision, ..
        } => {
            let mut product = dot(hero, (operands[0], lhs), (operands[1], rhs), dims);
            product.operand_type = operand_type(precision.algorithm)
                .filter(|_| lhs.ty == PrimitiveType::F32 || rhs.ty == PrimitiveType::F32);
            product
        }
        Op::Convolution {
            window,
            dims,
            feature_group_count,
            batch_group_count,
            ..
        } => {
            if *batch_group_count != 1 {
                return None;
            }
            convolution(
                hero,
                (operands[0], lhs),
                (operands[1], rhs),
                (window, dims),
                *feature_group_count,
                result,
            )
        }
        _ => return None,
    };
    for side in [&mut product.lhs, &mut product.rhs] {
        let is_parameter = matches!(module.instr(side.operand).op, Op::Parameter { .. });
        side.in_memory = alone || is_parameter;
    }
    let (value, output) = match turn {
        Some((value, order)) => (value, order.iter().map(|&d| product.output[d]).collect()),
        None => (hero, product.output.clone()),
    };
    (product.k > 0).then_some(Product {
        accumulator,
        value,
        output,
        ..product
    })
}

fn volume(shape: &ArrayShape, dims: &[usize]) -> usize {
    dims.iter().map(|&d| shape.dims[d]).product()
}

fn dot(
    hero: InstrId,
    (lhs_id, lhs): (InstrId, &ArrayShape),
    (rhs_id, rhs): (InstrId, &ArrayShape),
    dims: &DotDims,
) -> Product {
    let free = |shape: &ArrayShape, batch: &Dims, summed: &Dims| -> Dims {
        (0..shape.rank())
            .filter(|d| !batch.contains(d) && !summed.contains(d))
            .collect()
    };
    let lhs_free = free(lhs, &dims.lhs_batch, &dims.lhs_contracting);
    let rhs_free = free(rhs, &dims.rhs_batch, &dims.rhs_contracting);
    let axes = |axis: Axis, count: usize| (0..count).map(move |i| (axis, i));
    let output = axes(Axis::Batch, dims.lhs_batch.len())
        .chain(axes(Axis::Row, lhs_free.len()))
        .chain(axes(Axis::Column, rhs_free.len()))
        .collect();
    let side = |operand, batch: &Dims, free: &Dims, summed: &Dims| Side {
        operand,
        in_memory: false,
        access: Access::Plain {
            batch: batch.clone(),
            free: free.clone(),
            summed: summed.clone(),
        },
    };
    Product {
        hero,
        value: hero,
        batch: volume(lhs, &dims.lhs_batch),
        m: volume(lhs, &lhs_free),
        n: volume(rhs, &rhs_free),
        k: volume(lhs, &dims.lhs_contracting),
        lhs: side(lhs_id, &dims.lhs_batch, &lhs_free, &dims.lhs_contracting),
        rhs: side(rhs_id, &dims.rhs_batch, &rhs_free, &dims.rhs_contracting),
        output,
        accumulator: PrimitiveType::F32,
        operand_type: None,
    }
}

/// A convolution as a product of patches and kernel. Columns are the output features when those are
/// innermost in the output, so that a vector of columns lies together; else columns are positions.
fn convolution(
    hero: InstrId,
    (input_id, input): (InstrId, &ArrayShape),
    (kernel_id, kernel): (InstrId, &ArrayShape),
    (window, dims): (&Window, &ConvDims),
    groups: usize,
    result: &ArrayShape,
) -> Product {
    let output: Dims = dims
        .output_spatial
        .iter()
        .map(|&d| result.dims[d])
        .collect();
    let positions = input.dims[dims.input_batch] * output.iter().product::<usize>();
    let features = kernel.dims[dims.kernel_output_feature] / groups;
    let summed: Dims = dims
        .kernel_spatial
        .iter()
        .copied()
        .chain([dims.kernel_input_feature])
        .collect();
    let k = volume(kernel, &summed);
    let patches = Side {
        operand: input_id,
        in_memory: false,
        access: Access::Patches {
            window: window.clone(),
            dims: dims.clone(),
            output,
        },
    };
    // The output feature holds the group in its upper part.
    let weights = Side {
        operand: kernel_id,
        in_memory: false,
        access: Access::Plain {
            batch: Dims::new(),
            free: Dims::from_slice(&[dims.kernel_output_feature]),
            summed,
        },
    };
    let columns_are_features = dims.output_feature + 1 == result.rank();
    let (position_axis, feature_axis) = if columns_are_features {
        (Axis::Row, Axis::Column)
    } else {
        (Axis::Column, Axis::Row)
    };
    let output = (0..result.rank())
        .map(|d| {
            if d == dims.output_batch {
                (position_axis, 0)
            } else if d == dims.output_feature {
                (feature_axis, 0)
            } else {
                let place = dims
                    .output_spatial
                    .iter()
                    .position(|&s| s == d)
                    .unwrap_or(0);
                (position_axis, place + 1)
            }
        })
        .collect();
    let (lhs, rhs, m, n) = if columns_are_features {
        (patches, weights, positions, features)
    } else {
        (weights, patches, features, positions)
    };
    Product {
        hero,
        value: hero,
        lhs,
        rhs,
        batch: groups,
        m,
        n,
        k,
        output,
        accumulator: PrimitiveType::F32,
        operand_type: None,
    }
}

/// How a product is computed on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Register tiles over rows and panels of columns.
    Tiled,
    /// Few rows, right side with its columns innermost: columns are updated in cache, row of the
    /// right side by row.
    Streamed,
    /// Few rows, right side with the summed dimension innermost: dot products along it.
    DotProducts,
}

/// Where register tiles find the panels of columns of the right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// In working memory, packed before, since several tasks need each of them.
    Packed,
    /// Packed by the only task that needs them, block by block.
    InBlocks,
    /// In the operand.
    InPlace,
}

/// What one instruction multiplies in each lane of sums: neighbours of the summed coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// One, in the accumulator's type.
    Single,
    /// Two 16-bit integers, or numbers of `bf16` in tiles.
    Pairs,
    /// Four signed bytes, or any in tiles.
    Quads,
    /// Four bytes, of which the left ones have 128 added to be unsigned.
    OffsetQuads,
}

impl Group {
    /// How many neighbours it takes.
    pub fn size(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Pairs => 2,
            Self::Quads | Self::OffsetQuads => 4,
        }
    }
}

/// Tile sizes of a product on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// How.
    pub strategy: Strategy,
    /// Where tiles find the right side.
    pub right: Right,
    /// What is multiplied at a time.
    pub group: Group,
    /// Whether it is multiplied by matrix tiles, not in lanes of vectors.
    pub tiles: bool,
    /// Lanes of a vector of accumulators.
    pub lanes: usize,
    /// Rows of a register tile.
    pub tile_rows: usize,
    /// Columns of a register tile, a multiple of the lanes.
    pub tile_columns: usize,
    /// Summed length worked on at a time.
    pub k_block: usize,
    /// Rows of a task, a multiple of the tile's unless there is one task.
    pub m_block: usize,
    /// Columns of a task, a multiple of the tile's.
    pub n_block: usize,
    /// Products of the batch that one task computes; more than one only when a product is one block.
    pub batch_block: usize,
    /// How the windows of the left side are walked, when its patches are not copied; a block has
    /// the rows of these lines then.
    pub lines: Option<Lines>,
}

impl Tiling {
    /// The type that operands are multiplied as.
    pub fn operand_type(&self, product: &Product) -> PrimitiveType {
        match self.group {
            Group::Single => product.accumulator,
            Group::Pairs if self.tiles => PrimitiveType::BF16,
            Group::Pairs => PrimitiveType::S16,
            Group::Quads | Group::OffsetQuads => PrimitiveType::S8,
        }
    }

    /// Blocks of rows.
    pub fn row_blocks(&self, product: &Product) -> usize {
        let lines = self.lines.map(|lines| lines.blocks(product));
        lines.unwrap_or_else(|| product.m.div_ceil(self.m_block))
    }

    /// Elements that a summed length takes in memory, of a row or a column.
    pub fn padded(&self, length: usize) -> usize {
        length.next_multiple_of(self.depth())
    }

    /// What a summed length in memory is a multiple of.
    pub fn depth(&self) -> usize {
        let size = self.group.size();
        if self.tiles { TILE * size } else { size }
    }

    /// Elements from one row of a copy of the left side to the next. Rows of tiles, of which 16 are
    /// read at once, begin in different lines of the cache.
    pub fn row_stride(&self) -> usize {
        let gap = if self.tiles { self.depth() } else { 0 };
        self.padded(self.k_block) + gap
    }

    /// Sums from one row of a block to the next, as above.
    pub fn sums_stride(&self) -> usize {
        let gap = if self.tiles { TILE } else { 0 };
        self.n_block + gap
    }

    /// Elements of a packed panel of that summed length.
    pub fn panel_elements(&self, length: usize) -> usize {
        self.padded(length) * self.tile_columns
    }
}

/// Most rows of a product whose right side is read once, unpacked.
const FEW_ROWS: usize = 8;

/// Most bytes of a copy of the rows of such a product.
const ROWS_BYTES: usize = 256 * 1024;

/// Most rows, in register tiles, of a product that reads panels of the right side where they lie:
/// each is read once for every tile of rows.
const IN_PLACE_TILES: usize = 2;

/// Most bytes between neighbours of the sum for that: a page. With more, every vector of a panel is
/// in a page of its own, and many fall into the same lines of the cache.
const IN_PLACE_STRIDE: usize = 4096;

/// A product as a CPU computes it, and how it is cut: few columns become few rows.
pub fn on_cpu(product: Product, module: &Module, target: &Target) -> (Product, Tiling) {
    let exchanged = product.exchanged();
    let has_few_columns = product.n <= FEW_ROWS && product.n <= product.m && exchanged.rows_fit();
    let gains = || match strategy(&exchanged, module) {
        Strategy::Tiled => false,
        Strategy::Streamed => product.n < product.m,
        Strategy::DotProducts => strategy(&product, module) != Strategy::DotProducts,
    };
    let product = if has_few_columns && gains() {
        exchanged
    } else {
        product
    };
    let tiling = tiling(&product, module, target);
    (product, tiling)
}

/// Chooses tile sizes.
fn tiling(product: &Product, module: &Module, target: &Target) -> Tiling {
    let width = product.accumulator.byte_width();
    let strategy = strategy(product, module);
    if strategy == Strategy::Tiled
        && let Some(tiling) = amx::tiling(product, module, target)
    {
        return tiling;
    }
    let vector_bytes = vector_bytes(product, strategy, target);
    let lanes = (vector_bytes / width).max(1);
    let registers = target.cpu().map_or(16, |cpu| cpu.vector_registers);
    // Accumulators take most registers; a vector of the right side and a broadcast take the rest.
    let (fewest, most, vectors) = match (registers, vector_bytes) {
        (32, 64) => (8, 12, 2),
        (32, _) => (6, 8, 3),
        _ => (5, 6, 2),
    };
    let mut vectors = vectors.min(product.n.div_ceil(lanes)).max(1);
    let group = match strategy {
        Strategy::Tiled => group(product, module, target, vector_bytes),
        Strategy::Streamed | Strategy::DotProducts => Group::Single,
    };
    // A panel of the right side stays in the first-level cache beside the rows that stream by.
    let operand_width = width / group.size();
    let k_most = |vectors: usize| (32 * 1024 / (lanes * vectors * operand_width) * 3 / 4).max(64);
    // Runs that are read at once begin at multiples of their length.
    let k_step = (lanes * group.size()).max(32);
    let tiles = Tiles {
        rows: (fewest, most),
        vectors,
        k_most: k_most(vectors),
        k_step,
        group: group.size(),
        width: operand_width,
    };
    let walk = match strategy {
        Strategy::Tiled => windows::walk(product, module, tiles),
        Strategy::Streamed | Strategy::DotProducts => None,
    };
    // Rows that no tile of its own has to be made for, where that leaves enough to do at a time.
    let tile_rows = walk.map_or_else(
        || {
            let mut rows = (fewest..=most).rev();
            rows.find(|&rows| product.m.is_multiple_of(rows))
                .unwrap_or(most)
        },
        |walk| walk.tile_rows,
    );
    let in_place = product.m <= IN_PLACE_TILES * tile_rows
        && product.n.is_multiple_of(lanes)
        && right_lies_well(product, module);
    if in_place && !product.n.is_multiple_of(lanes * vectors) {
        vectors = 1;
    }
    let tile_columns = lanes * vectors;
    let up = |count: usize, step: usize| count.div_ceil(step) * step;
    let k_block = walk.map_or_else(
        || {
            let blocks = product.k.div_ceil(k_most(vectors));
            up(product.k.div_ceil(blocks), k_step).min(product.k)
        },
        |walk| walk.k_block,
    );
    let cost = product.batch as u64 * (product.m * product.n) as u64 * product.k as u64;
    let wanted = (cost / (1 << 20)).clamp(1, u64::from(target.parallelism.max(1))) as usize;
    let mut m_block = up(product.m.min(144), tile_rows);
    let mut n_block = up(product.n.min(tile_columns * 16), tile_columns);
    let tasks = |m_block: usize, n_block: usize| {
        product.batch * product.m.div_ceil(m_block) * product.n.div_ceil(n_block)
    };
    // Cutting the columns leaves each panel to one task; cutting the only block of rows does not,
    // and has to be worth packing for.
    let is_one_row_block = product.m <= m_block;
    if is_one_row_block {
        while tasks(m_block, n_block) < wanted && n_block > 2 * tile_columns {
            n_block = up(n_block / 2, tile_columns);
        }
    }
    let enough = if is_one_row_block { wanted / 4 } else { wanted };
    while tasks(m_block, n_block) < enough && m_block > 4 * tile_rows {
        m_block = up(m_block / 2, tile_rows);
    }
    while tasks(m_block, n_block) < wanted && n_block > 2 * tile_columns {
        n_block = up(n_block / 2, tile_columns);
    }
    if wanted == 1 {
        (m_block, n_block) = (up(product.m, tile_rows), up(product.n, tile_columns));
        // The sums of a task that works on part of the summed length wait in a block of this size.
        m_block = m_block.min(up(144, tile_rows));
        n_block = n_block.min(tile_columns * 64);
    }
    let lines = walk.map(|walk| walk.lines(m_block));
    if let Some(lines) = lines {
        m_block = lines.width * lines.count;
    }
    let is_one_block = product.m <= m_block && product.n <= n_block;
    let batch_block = if is_one_block {
        product.batch.div_ceil(wanted.min(product.batch))
    } else {
        1
    };
    let right = if in_place {
        Right::InPlace
    } else if product.m <= m_block {
        Right::InBlocks
    } else {
        Right::Packed
    };
    Tiling {
        strategy,
        right,
        group,
        tiles: false,
        lanes,
        tile_rows,
        tile_columns,
        k_block,
        m_block,
        n_block,
        batch_block,
        lines,
    }
}

/// Bytes of a vector of accumulators: those of the widest registers, where what lies along them fills
/// them and arithmetic is what takes the time.
fn vector_bytes(product: &Product, strategy: Strategy, target: &Target) -> usize {
    let usual = target.vector_bytes() as usize;
    let widest = target
        .cpu()
        .map_or(usual, |cpu| cpu.register_bytes() as usize);
    let along = match strategy {
        Strategy::Tiled => product.n,
        Strategy::DotProducts if product.m > 1 => product.k,
        Strategy::DotProducts | Strategy::Streamed => return usual,
    };
    let width = product.accumulator.byte_width();
    let filled = |bytes: usize| along.next_multiple_of((bytes / width).max(1));
    if 3 * filled(widest) <= 4 * filled(usual) {
        widest
    } else {
        usual
    }
}

/// The most that the machine multiplies at a time for sums in vectors of that size, of integers that
/// fit.
fn group(product: &Product, module: &Module, target: &Target, vector_bytes: usize) -> Group {
    let (Some(cpu), PrimitiveType::S32) = (target.cpu(), product.accumulator) else {
        return Group::Single;
    };
    let both = |fits: &dyn Fn(PrimitiveType) -> bool| {
        [&product.lhs, &product.rhs].iter().all(|side| {
            let array = module.shape(side.operand).as_array();
            array.is_some_and(|array| fits(array.ty))
        })
    };
    let signed =
        |ty: PrimitiveType, bits| ty.kind() == ElementKind::Signed && ty.bit_width() <= bits;
    let unsigned = |ty: PrimitiveType| ty.kind() == ElementKind::Unsigned && ty.bit_width() <= 8;
    match cpu.byte_dots() {
        Some(dots) if vector_bytes <= dots.vector_bytes as usize && both(&|ty| signed(ty, 8)) => {
            if dots.signed {
                Group::Quads
            } else {
                Group::OffsetQuads
            }
        }
        _ if cpu.family == CpuFamily::X86_64 && both(&|ty| signed(ty, 16) || unsigned(ty)) => {
            Group::Pairs
        }
        _ => Group::Single,
    }
}

/// Whether vectors of columns of the right side lie in memory as they are summed, near each other.
fn right_lies_well(product: &Product, module: &Module) -> bool {
    let Access::Plain {
        batch,
        free,
        summed,
    } = &product.rhs.access
    else {
        return false;
    };
    let Some(array) = module.shape(product.rhs.operand).as_array() else {
        return false;
    };
    let is_grouped = batch.is_empty() && product.batch > 1;
    product.rhs.in_memory
        && array.ty == product.accumulator
        && product.operand_type.is_none()
        && !is_grouped
        && free.as_slice() == [array.rank() - 1]
        && summed.len() == 1
        && array.dims[summed[0] + 1..].iter().product::<usize>() * array.ty.byte_width()
            <= IN_PLACE_STRIDE
}

fn strategy(product: &Product, module: &Module) -> Strategy {
    let Access::Plain { free, summed, .. } = &product.rhs.access else {
        return Strategy::Tiled;
    };
    if product.m > FEW_ROWS || product.n < 8 && product.k < 8 {
        return Strategy::Tiled;
    }
    let Some(array) = module.shape(product.rhs.operand).as_array() else {
        return Strategy::Tiled;
    };
    let innermost = |dims: &Dims| {
        let ends = |&last: &usize| array.dims[last + 1..].iter().all(|&size| size == 1);
        dims.last().is_some_and(ends)
    };
    if innermost(summed) {
        Strategy::DotProducts
    } else if innermost(free) {
        Strategy::Streamed
    } else {
        Strategy::Tiled
    }
}

/// Bytes of the packed right side.
pub fn packed_bytes(product: &Product, tiling: &Tiling) -> u64 {
    if tiling.strategy != Strategy::Tiled || tiling.right != Right::Packed {
        return 0;
    }
    let panels = product.batch * product.n.div_ceil(tiling.tile_columns);
    let elements = panels * tiling.panel_elements(product.k);
    (elements * tiling.operand_type(product).byte_width()) as u64
}

/// Bytes a contraction's kernels work in; zero for anything else and on a GPU.
pub fn scratch_bytes(module: &Module, instr: InstrId, target: &Target) -> u64 {
    if target.cpu().is_none() {
        return 0;
    }
    product(module, instr).map_or(0, |product| {
        if grouped_conv::of(&product, module, target).is_some() {
            return 0;
        }
        let (product, tiling) = on_cpu(product, module, target);
        packed_bytes(&product, &tiling)
    })
}
