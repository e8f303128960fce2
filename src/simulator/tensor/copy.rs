//! Tensor copies: the pieces of memory that a tensor map and coordinates name.

use crate::base::{Diagnostic, Result, codes};
use crate::simulator::tensor::map::TensorMap;

/// How a copy reads its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMode {
    /// The corner of a box.
    Tile,
    /// A column and four rows that are loaded.
    Gather4,
    /// A column and four rows that are stored.
    Scatter4,
    /// A pixel, and offsets from it.
    Im2col,
    /// A pixel without offsets, for stores.
    Im2colNoOffs,
}

impl CopyMode {
    /// The mode of a modifier.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "tile" => Self::Tile,
            "tile::gather4" => Self::Gather4,
            "tile::scatter4" => Self::Scatter4,
            "im2col" => Self::Im2col,
            "im2col_no_offs" => Self::Im2colNoOffs,
            _ => return None,
        })
    }
}

/// Where the bytes of a piece come from, or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This address of global memory.
    Global(u64),
    /// Nowhere: the bytes are these, again and again.
    Fill([u8; 8]),
}

/// Contiguous bytes of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The address in shared memory.
    pub shared: u32,
    /// How many bytes.
    pub bytes: u32,
    /// The other side.
    pub source: Source,
}

fn refuse(what: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::DEVICE_FAULT, format!("tensor copy: {}", what.into()))
}

/// Most bytes of a box: no block has more shared memory.
const MOST_BYTES: u64 = 256 << 10;

/// One copy on its way.
struct Walk<'a> {
    map: &'a TensorMap,
    tile: u32,
    /// Bytes of a row in shared memory.
    row_bytes: u32,
    /// Rows already handed out.
    rows: u32,
    fill: [u8; 8],
    emit: &'a mut dyn FnMut(Piece),
}

impl TensorMap {
    /// Bytes that a load writes to shared memory, which is what it counts at its barrier.
    pub fn box_bytes(&self, mode: CopyMode) -> u64 {
        let t = &self.tensor;
        let rows = match mode {
            CopyMode::Tile => (1..self.rank())
                .map(|i| u64::from(t.box_dims[i].div_ceil(t.steps[i])))
                .product(),
            CopyMode::Gather4 | CopyMode::Scatter4 => 4,
            CopyMode::Im2col | CopyMode::Im2colNoOffs => u64::from(t.box_dims[1]),
        };
        rows * u64::from(self.row_bytes())
    }
    fn row_bytes(&self) -> u32 {
        (u64::from(self.tensor.box_dims[0]) * self.tensor.element.shared_bits() / 8) as u32
    }
    /// The pieces of a load to the tile at `tile`, an address of shared memory.
    ///
    /// `offsets` is for im2col, one a spatial dimension.
    ///
    /// # Errors
    /// When the map, the mode, the coordinates or the tile's alignment are not allowed.
    pub fn load(
        &self,
        mode: CopyMode,
        tile: u32,
        coords: &[i32],
        offsets: &[u16],
        emit: &mut dyn FnMut(Piece),
    ) -> Result<()> {
        self.walk(mode, tile, coords, offsets, emit)
    }
    /// The pieces of a store or reduction from the tile at `tile`; places outside of the tensor
    /// are left out.
    ///
    /// # Errors
    /// When the map, the mode, the coordinates or the tile's alignment are not allowed.
    pub fn store(
        &self,
        mode: CopyMode,
        tile: u32,
        coords: &[i32],
        emit: &mut dyn FnMut(Piece),
    ) -> Result<()> {
        self.walk(mode, tile, coords, &[0; 3], &mut |piece| {
            if matches!(piece.source, Source::Global(_)) {
                emit(piece);
            }
        })
    }

    fn walk(
        &self,
        mode: CopyMode,
        tile: u32,
        coords: &[i32],
        offsets: &[u16],
        emit: &mut dyn FnMut(Piece),
    ) -> Result<()> {
        self.check()?;
        let bytes = self.box_bytes(mode);
        if bytes > MOST_BYTES {
            return Err(refuse(format!(
                "a box of {bytes} bytes, more than shared memory can have"
            )));
        }
        if !tile.is_multiple_of(128) {
            return Err(refuse(format!(
                "tile at {tile:#x} is not aligned to 128 bytes"
            )));
        }
        let pixels = matches!(mode, CopyMode::Im2col | CopyMode::Im2colNoOffs);
        if pixels != self.corners.is_some() {
            return Err(refuse("the map is of the other kind, tiled or im2col"));
        }
        let rank = self.rank();
        let four = matches!(mode, CopyMode::Gather4 | CopyMode::Scatter4);
        let wanted = if four { 5 } else { rank };
        if coords.len() != wanted || (four && rank != 2) {
            return Err(refuse(format!(
                "{} coordinates for a tensor of rank {rank}",
                coords.len()
            )));
        }
        if mode == CopyMode::Im2col && offsets.len() + 2 < rank {
            return Err(refuse(format!("{} offsets for rank {rank}", offsets.len())));
        }
        let sixteen = self.tensor.element.is_padded() || self.tensor.element.bits() == 4;
        if sixteen && coords[0] % 16 != 0 {
            return Err(refuse(format!(
                "first coordinate {} is no multiple of 16",
                coords[0]
            )));
        }
        let mut walk = Walk {
            map: self,
            tile,
            row_bytes: self.row_bytes(),
            rows: 0,
            fill: self.fill(),
            emit,
        };
        match mode {
            CopyMode::Tile => walk.tile(coords),
            CopyMode::Gather4 | CopyMode::Scatter4 => {
                for row in &coords[1..] {
                    walk.row(coords[0], &[i64::from(*row)]);
                }
            }
            CopyMode::Im2col => walk.pixels(coords, offsets),
            CopyMode::Im2colNoOffs => walk.pixels(coords, &[0; 3]),
        }
        Ok(())
    }
}

impl Walk<'_> {
    /// The rows of a box, the lowest dimension fastest.
    fn tile(&mut self, coords: &[i32]) {
        let t = &self.map.tensor;
        let rank = self.map.rank();
        let mut index = [0u32; 4];
        loop {
            let outer: [i64; 4] = std::array::from_fn(|i| match coords.get(i + 1) {
                Some(c) => i64::from(*c) + i64::from(index[i] * t.steps[i + 1]),
                None => 0,
            });
            self.row(coords[0], &outer[..rank - 1]);
            let mut dim = 0;
            loop {
                if dim == rank - 1 {
                    return;
                }
                index[dim] += 1;
                if index[dim] < t.box_dims[dim + 1].div_ceil(t.steps[dim + 1]) {
                    break;
                }
                index[dim] = 0;
                dim += 1;
            }
        }
    }
    /// The rows of a column of pixels, which goes through the box of pixels in order.
    fn pixels(&mut self, coords: &[i32], offsets: &[u16]) {
        let t = &self.map.tensor;
        let spatial = self.map.rank() - 2;
        let (lower, upper) = self.map.corners.unwrap_or_default();
        // Spatial dimensions, and the image last.
        let mut at: [i64; 4] =
            std::array::from_fn(|i| coords.get(i + 1).map_or(0, |c| (*c).into()));
        for _ in 0..t.box_dims[1] {
            let mut outer = at;
            for (outer, offset) in outer[..spatial].iter_mut().zip(offsets) {
                *outer += i64::from(*offset);
            }
            self.row(coords[0], &outer[..=spatial]);
            let mut dim = 0;
            while dim < spatial {
                at[dim] += i64::from(t.steps[dim + 1]);
                if at[dim] < t.dims[dim + 1] as i64 + i64::from(upper[dim]) {
                    break;
                }
                at[dim] = i64::from(lower[dim]);
                dim += 1;
            }
            if dim == spatial {
                at[dim] += 1;
            }
        }
    }
    /// One row of the tile: from `first` along dimension 0, at `outer` in the others.
    fn row(&mut self, first: i32, outer: &[i64]) {
        let t = &self.map.tensor;
        let start = self.rows * self.row_bytes;
        self.rows += 1;
        let inside = outer
            .iter()
            .enumerate()
            .all(|(i, c)| *c >= 0 && (*c as u64) < t.dims[i + 1]);
        if !inside {
            return self.put(start, self.row_bytes, None);
        }
        let base = outer.iter().enumerate().fold(t.address, |a, (i, c)| {
            a.wrapping_add((*c as u64).wrapping_mul(self.map.stride(i + 1)))
        });
        let (first, count) = (i64::from(first), i64::from(t.box_dims[0]));
        let low = (-first).clamp(0, count);
        let high = (t.dims[0] as i64 - first).clamp(low, count);
        let bits = t.element.shared_bits() as i64;
        let offset = |element: i64| (element * bits / 8) as u32;
        self.put(start, offset(low), None);
        let address = base.wrapping_add(((first + low) as u64).wrapping_mul(t.element.bits()) / 8);
        if t.element.is_padded() {
            self.padded(start, low, high, address);
        } else {
            let bytes = offset(high) - offset(low);
            self.put(start + offset(low), bytes, Some(address));
        }
        self.put(start + offset(high), offset(count) - offset(high), None);
    }
    /// Groups of sixteen elements, each of which takes sixteen bytes of shared memory.
    fn padded(&mut self, start: u32, low: i64, high: i64, address: u64) {
        let bits = self.map.tensor.element.bits();
        for group in 0..(high - low).div_euclid(16).max(0) {
            let at = start + (low + 16 * group) as u32;
            let from = address + 2 * bits * group as u64;
            self.put(at, (2 * bits) as u32, Some(from));
        }
    }
    /// Contiguous bytes of the tile, cut where the swizzle cuts them.
    fn put(&mut self, offset: u32, bytes: u32, global: Option<u64>) {
        let swizzle = self.map.tensor.swizzle;
        let mut done = 0;
        while done < bytes {
            let address = self.tile.wrapping_add(offset + done);
            let atom = swizzle.atom();
            let here = match swizzle.span() {
                16 => bytes,
                _ => (atom - address % atom).min(bytes - done),
            };
            (self.emit)(Piece {
                shared: swizzle.apply(address),
                bytes: here,
                source: match global {
                    Some(global) => Source::Global(global.wrapping_add(u64::from(done))),
                    None => Source::Fill(self.fill),
                },
            });
            done += here;
        }
    }
}
