//! Copies and fills as values: checked when they are made, run in the order of a stream.

use std::sync::Arc;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::Copy3d;
use crate::simulator::driver::types::SetParams;
use crate::simulator::launch::Report;
use crate::simulator::launch::ReportKind;
use crate::simulator::launch::Where;
use crate::simulator::memory::Kind;
use crate::simulator::memory::raw;

/// `CU_MEMORYTYPE_HOST`
pub(super) const HOST: u32 = 1;
/// `CU_MEMORYTYPE_DEVICE`
pub(super) const DEVICE: u32 = 2;
/// `CU_MEMORYTYPE_ARRAY`
pub(super) const ARRAY: u32 = 3;
/// `CU_MEMORYTYPE_UNIFIED`
pub(super) const UNIFIED: u32 = 4;

/// One side of a copy: where it starts, and how far rows and slices are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    address: Address,
    pitch: u64,
    slice: u64,
}

impl Side {
    fn row(&self, y: u64, z: u64) -> Address {
        self.address + y * self.pitch + z * self.slice
    }
}

/// A copy.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) params: Copy3d,
    source: Side,
    target: Side,
    /// The source's bytes, when they were taken over at the call.
    staged: Option<Arc<Vec<u8>>>,
    /// Whether the target is memory that the driver does not know.
    pageable_target: bool,
    /// Whether the source is memory that the driver does not know.
    pageable_source: bool,
}

/// A copy of bytes in a row, as a 3D copy.
pub(super) fn linear(source: (u32, Address), target: (u32, Address), bytes: usize) -> Copy3d {
    let mut params = Copy3d {
        src_type: source.0,
        dst_type: target.0,
        src_pitch: bytes,
        dst_pitch: bytes,
        src_height: 1,
        dst_height: 1,
        width: bytes,
        height: 1,
        depth: 1,
        ..Copy3d::default()
    };
    if source.0 == HOST {
        params.src_host = source.1;
    } else {
        params.src_device = source.1;
    }
    if target.0 == HOST {
        params.dst_host = target.1;
    } else {
        params.dst_device = target.1;
    }
    params
}

fn side(
    kind: u32,
    host: Address,
    device: Address,
    place: [usize; 3],
    pitch: usize,
    height: usize,
    extent: [usize; 3],
) -> Answer<Side> {
    let base = match kind {
        HOST => host,
        DEVICE | UNIFIED => device,
        ARRAY => return Err(Status::NOT_SUPPORTED),
        _ => return Err(Status::INVALID_VALUE),
    };
    let [x, y, z] = place;
    let end = x.checked_add(extent[0]).ok_or(Status::INVALID_VALUE)?;
    let pitch = if pitch == 0 { end } else { pitch };
    let rows = y.checked_add(extent[1]).ok_or(Status::INVALID_VALUE)?;
    let height = if height == 0 { rows } else { height };
    if (extent[1] > 1 || extent[2] > 1 || y > 0) && pitch < end {
        return Err(Status::INVALID_VALUE);
    }
    if extent[2] > 1 && height < rows {
        return Err(Status::INVALID_VALUE);
    }
    let slice = (pitch as u64)
        .checked_mul(height as u64)
        .ok_or(Status::INVALID_VALUE)?;
    let offset = (z as u64)
        .checked_mul(slice)
        .and_then(|bytes| bytes.checked_add((y as u64).checked_mul(pitch as u64)?))
        .and_then(|bytes| bytes.checked_add(x as u64))
        .and_then(|bytes| bytes.checked_add(base));
    Ok(Side {
        address: offset.ok_or(Status::INVALID_VALUE)?,
        pitch: pitch as u64,
        slice,
    })
}

impl Transfer {
    /// Checks a copy. Nothing comes of an empty one.
    pub(super) fn new(driver: &Driver, params: Copy3d) -> Answer<Option<Self>> {
        let extent = [params.width, params.height, params.depth];
        let source = side(
            params.src_type,
            params.src_host,
            params.src_device,
            [params.src_x, params.src_y, params.src_z],
            params.src_pitch,
            params.src_height,
            extent,
        )?;
        let target = side(
            params.dst_type,
            params.dst_host,
            params.dst_device,
            [params.dst_x, params.dst_y, params.dst_z],
            params.dst_pitch,
            params.dst_height,
            extent,
        )?;
        if params.src_lod != 0 || params.dst_lod != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if extent.contains(&0) {
            return Ok(None);
        }
        let pageable_source = plan(driver, params.src_type, source, extent)?;
        let pageable_target = plan(driver, params.dst_type, target, extent)?;
        Ok(Some(Self {
            params,
            source,
            target,
            staged: None,
            pageable_target,
            pageable_source,
        }))
    }
    /// Whether a call must wait for the copy, because the target can change hands after it.
    pub(super) fn must_wait(&self) -> bool {
        self.pageable_target
    }
    /// Whether the source can change hands after the call.
    pub(super) fn is_fragile(&self) -> bool {
        self.pageable_source
    }
    /// Takes the source's bytes over if the program may change them after the call.
    pub(super) fn stage(mut self) -> Self {
        if self.pageable_source {
            let mut bytes = Vec::new();
            self.rows(|from, _| {
                let start = bytes.len();
                bytes.resize(start + self.params.width, 0);
                raw::read(from, &mut bytes[start..]);
            });
            self.staged = Some(Arc::new(bytes));
        }
        self
    }
    fn rows(&self, mut each: impl FnMut(Address, Address)) {
        let Copy3d { height, depth, .. } = self.params;
        for z in 0..depth as u64 {
            for y in 0..height as u64 {
                each(self.source.row(y, z), self.target.row(y, z));
            }
        }
    }
    /// Copies, as work of a stream.
    pub(super) fn run(&self, driver: &Driver, stream: Handle) -> Answer {
        let width = self.params.width as u64;
        let mut row = 0_usize;
        // What was there when the copy was made may be gone.
        let extent = [self.params.width, self.params.height, self.params.depth];
        if !self.pageable_target {
            check(driver, DEVICE, self.target, extent)?;
        }
        if self.staged.is_none() && !self.pageable_source {
            check(driver, DEVICE, self.source, extent)?;
        }
        let mut watches = driver.settings.options.uninitialized;
        self.rows(|from, to| {
            if watches && self.staged.is_none() && !is_tracked(driver, to) {
                let found = unwritten(driver, from, width);
                watches = found.is_none();
                if let Some((device, report)) = found {
                    driver.journal.find(stream, device, &report);
                }
            }
            match &self.staged {
                Some(bytes) => {
                    let start = row * self.params.width;
                    raw::write(to, &bytes[start..start + self.params.width]);
                }
                None => raw::copy(from, to, width),
            }
            row += 1;
            if !self.pageable_target {
                let known = self.staged.is_none() && !self.pageable_source;
                track(driver, known.then_some(from), to, width);
            }
        });
        Ok(())
    }
}

/// Notes what a copy wrote, piece by piece where several allocations lie side by side.
fn track(driver: &Driver, from: Option<Address>, to: Address, bytes: u64) {
    let mut done = 0;
    while done < bytes {
        let Some(target) = driver.space.find(to + done) else {
            return;
        };
        let mut piece = (target.end() - (to + done)).min(bytes - done);
        match from {
            None => driver.space.mark_written(to + done, piece),
            Some(from) => {
                if let Some(source) = driver.space.find(from + done) {
                    piece = piece.min(source.end() - (from + done));
                }
                driver.space.copy_written(from + done, to + done, piece);
            }
        }
        done += piece;
    }
}

/// Whether it is known of an address who wrote there.
fn is_tracked(driver: &Driver, address: Address) -> bool {
    let allocation = driver.space.find(address);
    allocation.is_some_and(|allocation| allocation.kind().is_tracked())
}

/// The report, and its device, of bytes that go to the host though nobody wrote them.
pub(super) fn unwritten(driver: &Driver, from: Address, bytes: u64) -> Option<(u32, Report)> {
    let mut at = from;
    while let Some(source) = driver.space.find(at).filter(|_| at < from + bytes) {
        let length = (from + bytes).min(source.end()) - at;
        if let (Kind::Device(device), Some((start, missing))) =
            (source.kind(), source.gap(at, length))
        {
            let offset = start - source.base();
            let report = Report {
                message: format!(
                    "copy of {bytes} bytes to the host, of which {missing} from byte {offset} of {} on are such",
                    source.label()
                ),
                address: Some(start),
                allocation: Some(Where {
                    label: source.label().to_owned(),
                    offset,
                    length: source.length(),
                }),
                ..Report::new(ReportKind::Uninitialized)
            };
            return Some((device, report));
        }
        at = source.end();
    }
    None
}

/// Bytes from the first to the last one of a side; every row lies between them, and none beyond the
/// end of what can be addressed.
fn span(side: Side, extent: [usize; 3]) -> Answer<u64> {
    let [width, height, depth] = extent.map(|size| size as u64);
    let rows = (height - 1).checked_mul(side.pitch);
    let slices = (depth - 1).checked_mul(side.slice);
    let bytes = rows
        .zip(slices)
        .and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(width))
        .filter(|&bytes| side.address.checked_add(bytes).is_some());
    bytes.ok_or(Status::INVALID_VALUE)
}

/// As [`check`], when memory of a graph counts that is not allocated yet.
fn plan(driver: &Driver, kind: u32, side: Side, extent: [usize; 3]) -> Answer<bool> {
    if driver.heap.is_planned(side.address, span(side, extent)?) {
        return Ok(false);
    }
    check(driver, kind, side, extent)
}

/// Whether a side is memory that the driver does not know; an error if it should know it.
fn check(driver: &Driver, kind: u32, side: Side, extent: [usize; 3]) -> Answer<bool> {
    let bytes = span(side, extent)?;
    if driver.heap.covers(driver, side.address, bytes) {
        return Ok(false);
    }
    match kind {
        HOST if side.address != 0 => Ok(true),
        // Memory of the program's own, unless it begins in memory of ours.
        UNIFIED if side.address != 0 && driver.space.find(side.address).is_none() => Ok(true),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// A fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) params: SetParams,
}

impl Fill {
    /// Checks a fill. Nothing comes of an empty one.
    pub(super) fn new(driver: &Driver, params: SetParams) -> Answer<Option<Self>> {
        if !matches!(params.element, 1 | 2 | 4) {
            return Err(Status::INVALID_VALUE);
        }
        if params.width == 0 || params.height == 0 {
            return Ok(None);
        }
        let row = params.width.checked_mul(params.element as usize);
        let row = row.ok_or(Status::INVALID_VALUE)?;
        let aligned = params.address.is_multiple_of(u64::from(params.element));
        if !aligned || (params.height > 1 && params.pitch < row) {
            return Err(Status::INVALID_VALUE);
        }
        let fill = Self { params };
        if !driver.heap.is_planned(params.address, fill.bytes()?) {
            fill.check(driver)?;
        }
        Ok(Some(fill))
    }
    fn row_bytes(&self) -> u64 {
        self.params.width as u64 * u64::from(self.params.element)
    }
    fn bytes(&self) -> Answer<u64> {
        let rows = (self.params.height as u64 - 1).checked_mul(self.params.pitch as u64);
        let bytes = rows.and_then(|rows| rows.checked_add(self.row_bytes()));
        bytes.ok_or(Status::INVALID_VALUE)
    }
    fn check(&self, driver: &Driver) -> Answer {
        if !driver
            .heap
            .covers(driver, self.params.address, self.bytes()?)
        {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    /// Fills.
    pub(super) fn run(&self, driver: &Driver) -> Answer {
        self.check(driver)?;
        let value = self.params.value.to_le_bytes();
        let element = self.params.element as usize;
        let pattern: Vec<u8> = value[..element]
            .iter()
            .copied()
            .cycle()
            .take(1 << 16)
            .collect();
        let bytes = self.row_bytes();
        for y in 0..self.params.height as u64 {
            let start = self.params.address + y * self.params.pitch as u64;
            let mut done = 0;
            while done < bytes {
                let piece = (bytes - done).min(pattern.len() as u64);
                raw::write(start + done, &pattern[..piece as usize]);
                done += piece;
            }
            track(driver, None, start, bytes);
        }
        Ok(())
    }
}

/// Whether a word lies in memory that the driver knows.
pub(super) fn word_is_known(driver: &Driver, address: Address, bytes: u64) -> bool {
    address.is_multiple_of(bytes) && driver.heap.covers(driver, address, bytes)
}
