//! Encoding tensor maps.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_int;
use std::ffi::c_uint;

use crate::base::Diagnostic;
use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::say;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::TensorMapBytes;
use crate::simulator::tensor::Im2col;
use crate::simulator::tensor::MapElement;
use crate::simulator::tensor::Swizzle;
use crate::simulator::tensor::TensorMap;
use crate::simulator::tensor::Tiled;

/// Dimensions at most.
const MOST: usize = 5;

/// What every kind of map is told.
struct Common {
    map: Out<TensorMapBytes>,
    element: u32,
    rank: u32,
    address: Address,
    dims: In<u64>,
    strides: In<u64>,
    steps: In<u32>,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
}

fn padded<T: Copy, const N: usize>(values: &[T], rest: T) -> [T; N] {
    std::array::from_fn(|index| values.get(index).copied().unwrap_or(rest))
}

impl Common {
    fn tensor(&self, boxes: &[u32]) -> Answer<Tiled> {
        let driver = driver()?;
        if driver.spec.capability.major < 9 {
            return Err(Status::NOT_SUPPORTED);
        }
        self.map.check()?;
        let rank = self.rank as usize;
        let aligned = self.map.address().is_multiple_of(64);
        if rank == 0 || rank > MOST || !aligned || self.promotion > 3 || self.fill > 1 {
            return Err(Status::INVALID_VALUE);
        }
        match self.interleave {
            0 => {}
            // Channels apart from one another, which nothing here reads.
            1 | 2 => return Err(Status::NOT_SUPPORTED),
            _ => return Err(Status::INVALID_VALUE),
        }
        let element = MapElement::from_driver(self.element).ok_or(Status::INVALID_VALUE)?;
        let swizzle = match self.swizzle {
            5 => return Err(Status::NOT_SUPPORTED),
            number => Swizzle::from_driver(number).ok_or(Status::INVALID_VALUE)?,
        };
        let whole = matches!(self.element, 0..=5 | 13..=15);
        if whole && self.fill == 1 {
            return Err(Status::INVALID_VALUE);
        }
        let mut steps = padded(&self.steps.array(rank)?, 1);
        if steps[0] > 8 {
            return Err(Status::INVALID_VALUE);
        }
        // The contiguous dimension is never stepped through.
        steps[0] = 1;
        Ok(Tiled {
            element,
            rank: self.rank,
            address: self.address,
            dims: padded(&self.dims.array(rank)?, 1),
            strides: padded(&self.strides.array(rank - 1)?, 0),
            box_dims: padded(boxes, 1),
            steps,
            swizzle,
            fill_nan: self.fill == 1,
        })
    }
    fn put(&self, map: Result<TensorMap, Box<Diagnostic>>) -> Answer {
        let map = map.map_err(|diagnostic| {
            say(&diagnostic.to_string());
            Status::INVALID_VALUE
        })?;
        self.map.put(TensorMapBytes {
            bytes: map.to_bytes(),
        })
    }
}

api! {
    fn cuTensorMapEncodeTiled(
        map: Out<TensorMapBytes>, element: c_uint, rank: c_uint, address: Address, dims: In<u64>,
        strides: In<u64>, box_dims: In<c_uint>, steps: In<c_uint>, interleave: c_uint,
        swizzle: c_uint, promotion: c_uint, fill: c_uint,
    ) {
        let common = Common {
            map, element, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill,
        };
        let boxes = box_dims.array((rank as usize).min(MOST))?;
        common.put(TensorMap::tiled(common.tensor(&boxes)?))
    }
    fn cuTensorMapEncodeIm2col(
        map: Out<TensorMapBytes>, element: c_uint, rank: c_uint, address: Address, dims: In<u64>,
        strides: In<u64>, lower: In<c_int>, upper: In<c_int>, channels: c_uint, pixels: c_uint,
        steps: In<c_uint>, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint,
    ) {
        let common = Common {
            map, element, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill,
        };
        let tensor = common.tensor(&[])?;
        let corners = (rank as usize).checked_sub(2).filter(|&count| count > 0);
        let corners = corners.ok_or(Status::INVALID_VALUE)?;
        common.put(TensorMap::im2col(Im2col {
            tensor,
            lower: padded(&lower.array(corners)?, 0),
            upper: padded(&upper.array(corners)?, 0),
            channels,
            pixels,
        }))
    }
    fn cuTensorMapEncodeIm2colWide(
        map: Out<TensorMapBytes>, element: c_uint, rank: c_uint, address: Address, dims: In<u64>,
        strides: In<u64>, lower: c_int, upper: c_int, channels: c_uint, pixels: c_uint,
        steps: In<c_uint>, interleave: c_uint, mode: c_uint, swizzle: c_uint, promotion: c_uint,
        fill: c_uint,
    ) {
        let common = Common {
            map, element, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill,
        };
        let tensor = common.tensor(&[])?;
        if mode > 1 {
            return Err(Status::INVALID_VALUE);
        }
        common.put(TensorMap::im2col(Im2col {
            tensor,
            lower: [lower, 0, 0],
            upper: [upper, 0, 0],
            channels,
            pixels,
        }))
    }
    fn cuTensorMapReplaceAddress(map: Out<TensorMapBytes>, address: Address) {
        driver()?;
        let old = map.get()?;
        let decoded = TensorMap::from_bytes(&old.bytes).map_err(|_| Status::INVALID_VALUE)?;
        let mut changed = decoded;
        changed
            .replace("global_address", 0, address)
            .and_then(|()| changed.check())
            .map_err(|_| Status::INVALID_VALUE)?;
        map.put(TensorMapBytes { bytes: changed.to_bytes() })
    }
}
