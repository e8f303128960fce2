//! Filling: for each width of an element, in one row and in several, now and in a stream.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_uchar;
use std::ffi::c_uint;
use std::ffi::c_ushort;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::abi::per_thread;
use crate::simulator::driver::context;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::stream;
use crate::simulator::driver::transfer::Fill;
use crate::simulator::driver::types::SetParams;
use crate::simulator::driver::work::Work;

/// A fill that the call waits for.
fn fill_now(params: SetParams) -> Answer {
    context::current()?;
    let Some(fill) = Fill::new(driver()?, params)? else {
        return Ok(());
    };
    let stream = stream::resolve(0)?;
    stream::issue_and_wait(&stream, Work::Fill(fill))
}

/// A fill in the order of a stream.
fn fill_in(params: SetParams, stream: Handle) -> Answer {
    let stream = stream::resolve(stream)?;
    let Some(fill) = Fill::new(driver()?, params)? else {
        return Ok(());
    };
    stream::issue(&stream, Work::Fill(fill))
}

/// Elements of a type in rows that begin `pitch` bytes apart.
fn rows<T: Into<u32>>(
    address: Address,
    pitch: usize,
    value: T,
    width: usize,
    height: usize,
) -> SetParams {
    SetParams {
        address,
        pitch,
        value: value.into(),
        element: size_of::<T>() as u32,
        width,
        height,
    }
}

/// Declares the calls of each width: in a row, in rows, each now and in a stream; and their
/// names in the same order for programs in which each thread has a default stream.
macro_rules! fills {
    ($($ty:ty: $row:ident $row_in:ident $rows:ident $rows_in:ident,
        $row_own:ident $row_in_own:ident $rows_own:ident $rows_in_own:ident;)*) => {
        api! {$(
            fn $row(target: Address, value: $ty, count: usize) {
                fill_now(rows(target, 0, value, count, 1))
            }
            fn $row_in(target: Address, value: $ty, count: usize, stream: Handle) {
                fill_in(rows(target, 0, value, count, 1), stream)
            }
            fn $rows(target: Address, pitch: usize, value: $ty, width: usize, height: usize) {
                fill_now(rows(target, pitch, value, width, height))
            }
            fn $rows_in(
                target: Address, pitch: usize, value: $ty, width: usize, height: usize, stream: Handle,
            ) {
                fill_in(rows(target, pitch, value, width, height), stream)
            }
        )*}

        alias! {$(
            $row_own = $row(target: Address, value: $ty, count: usize);
            $rows_own = $rows(
                target: Address, pitch: usize, value: $ty, width: usize, height: usize);
        )*}

        per_thread! {$(
            $row_in_own = $row_in(target: Address, value: $ty, count: usize; stream);
            $rows_in_own = $rows_in(
                target: Address, pitch: usize, value: $ty, width: usize, height: usize; stream);
        )*}
    };
}

fills! {
    c_uchar: cuMemsetD8_v2 cuMemsetD8Async cuMemsetD2D8_v2 cuMemsetD2D8Async,
        cuMemsetD8_v2_ptds cuMemsetD8Async_ptsz cuMemsetD2D8_v2_ptds cuMemsetD2D8Async_ptsz;
    c_ushort: cuMemsetD16_v2 cuMemsetD16Async cuMemsetD2D16_v2 cuMemsetD2D16Async,
        cuMemsetD16_v2_ptds cuMemsetD16Async_ptsz cuMemsetD2D16_v2_ptds cuMemsetD2D16Async_ptsz;
    c_uint: cuMemsetD32_v2 cuMemsetD32Async cuMemsetD2D32_v2 cuMemsetD2D32Async,
        cuMemsetD32_v2_ptds cuMemsetD32Async_ptsz cuMemsetD2D32_v2_ptds cuMemsetD2D32Async_ptsz;
}
