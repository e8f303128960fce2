//! Copying.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_ulonglong;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::abi::per_thread;
use crate::simulator::driver::capture;
use crate::simulator::driver::context;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::transfer::DEVICE;
use crate::simulator::driver::transfer::HOST;
use crate::simulator::driver::transfer::Transfer;
use crate::simulator::driver::transfer::UNIFIED;
use crate::simulator::driver::transfer::linear;
use crate::simulator::driver::types::Copy2d;
use crate::simulator::driver::types::Copy3d;
use crate::simulator::driver::types::CopyAttributes;
use crate::simulator::driver::types::CopyBatch3d;
use crate::simulator::driver::types::CopyOperand;
use crate::simulator::driver::work::Work;

/// A copy that the call waits for.
fn copy_now(params: Copy3d) -> Answer {
    context::current()?;
    let Some(transfer) = Transfer::new(driver()?, params)? else {
        return Ok(());
    };
    let stream = stream::resolve(0)?;
    stream::issue_and_wait(&stream, Work::Copy(Box::new(transfer)))
}

/// A copy in the order of a stream.
pub(super) fn copy_in(params: Copy3d, stream: Handle) -> Answer {
    let stream = stream::resolve(stream)?;
    let Some(transfer) = Transfer::new(driver()?, params)? else {
        return Ok(());
    };
    if capture::is_capturing(&stream) {
        return stream::issue(&stream, Work::Copy(Box::new(transfer)));
    }
    let mut wait = transfer.must_wait();
    let driver = driver()?;
    // Memory that the program may change after the call is read now, or waited for.
    let transfer = if stream.is_busy() || !driver.settings.eager {
        transfer.stage()
    } else {
        wait |= transfer.is_fragile();
        transfer
    };
    stream::issue(&stream, Work::Copy(Box::new(transfer)))?;
    if wait {
        stream.wait();
    }
    Ok(())
}

fn flat(copy: &Copy2d) -> Copy3d {
    Copy3d {
        src_x: copy.src_x,
        src_y: copy.src_y,
        src_type: copy.src_type,
        src_host: copy.src_host,
        src_device: copy.src_device,
        src_array: copy.src_array,
        src_pitch: copy.src_pitch,
        dst_x: copy.dst_x,
        dst_y: copy.dst_y,
        dst_type: copy.dst_type,
        dst_host: copy.dst_host,
        dst_device: copy.dst_device,
        dst_array: copy.dst_array,
        dst_pitch: copy.dst_pitch,
        width: copy.width,
        height: copy.height,
        depth: 1,
        ..Copy3d::default()
    }
}

fn contexts(first: Handle, second: Handle) -> Answer {
    context::by_handle(first)?;
    context::by_handle(second).map(|_| ())
}

/// As [`contexts`], and waits for the work of both, which the calls without `Async` promise.
fn idle_contexts(first: Handle, second: Handle) -> Answer {
    let driver = driver()?;
    for handle in [first, second] {
        // What their kernels left is for their own callers to see.
        let _ = context::by_handle(handle)?.wait(driver);
    }
    Ok(())
}

fn operand(operand: &CopyOperand) -> Answer<(Address, usize, usize)> {
    match operand.kind {
        1 => Ok((operand.pointer, operand.row, operand.height)),
        2 => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// A copy of a batch as a copy of its own.
fn boxed(operation: &CopyBatch3d) -> Answer<Copy3d> {
    let (source, source_row, source_height) = operand(&operation.source)?;
    let (target, target_row, target_height) = operand(&operation.destination)?;
    let [width, height, depth] = operation.extent;
    Ok(Copy3d {
        src_type: UNIFIED,
        src_device: source,
        src_pitch: source_row,
        src_height: source_height,
        dst_type: UNIFIED,
        dst_device: target,
        dst_pitch: target_row,
        dst_height: target_height,
        width,
        height,
        depth,
        ..Copy3d::default()
    })
}

/// Copies one after the other; `failed` is told which one could not be made.
fn batch(
    count: usize,
    failed: Out<usize>,
    stream: Handle,
    copies: impl Iterator<Item = Answer<Copy3d>>,
) -> Answer {
    // No single copy is to blame at first.
    failed.put_if(usize::MAX);
    if count == 0 || matches!(stream, 0 | 1) {
        return Err(Status::INVALID_VALUE);
    }
    for (index, copy) in copies.enumerate() {
        let issued = copy.and_then(|copy| copy_in(copy, stream));
        issued.inspect_err(|_| failed.put_if(index))?;
    }
    Ok(())
}

fn batch_of_rows(
    [targets, sources]: [In<Address>; 2],
    sizes: In<usize>,
    count: usize,
    failed: Out<usize>,
    stream: Handle,
) -> Answer {
    let (targets, sources) = (targets.array(count)?, sources.array(count)?);
    let rows = targets.into_iter().zip(sources).zip(sizes.array(count)?);
    let copies =
        rows.map(|((target, source), size)| Ok(linear((UNIFIED, source), (UNIFIED, target), size)));
    batch(count, failed, stream, copies)
}

fn batch_of_boxes(
    count: usize,
    list: In<CopyBatch3d>,
    failed: Out<usize>,
    stream: Handle,
) -> Answer {
    let list = list.array(count)?;
    batch(count, failed, stream, list.iter().map(boxed))
}

api! {
    fn cuMemcpy(target: Address, source: Address, bytes: usize) {
        copy_now(linear((UNIFIED, source), (UNIFIED, target), bytes))
    }
    fn cuMemcpyAsync(target: Address, source: Address, bytes: usize, stream: Handle) {
        copy_in(linear((UNIFIED, source), (UNIFIED, target), bytes), stream)
    }
    fn cuMemcpyHtoD_v2(target: Address, source: Address, bytes: usize) {
        copy_now(linear((HOST, source), (DEVICE, target), bytes))
    }
    fn cuMemcpyHtoDAsync_v2(target: Address, source: Address, bytes: usize, stream: Handle) {
        copy_in(linear((HOST, source), (DEVICE, target), bytes), stream)
    }
    fn cuMemcpyDtoH_v2(target: Address, source: Address, bytes: usize) {
        copy_now(linear((DEVICE, source), (HOST, target), bytes))
    }
    fn cuMemcpyDtoHAsync_v2(target: Address, source: Address, bytes: usize, stream: Handle) {
        copy_in(linear((DEVICE, source), (HOST, target), bytes), stream)
    }
    fn cuMemcpyDtoD_v2(target: Address, source: Address, bytes: usize) {
        copy_now(linear((DEVICE, source), (DEVICE, target), bytes))
    }
    fn cuMemcpyDtoDAsync_v2(target: Address, source: Address, bytes: usize, stream: Handle) {
        copy_in(linear((DEVICE, source), (DEVICE, target), bytes), stream)
    }
    fn cuMemcpyPeer(target: Address, to: Handle, source: Address, from: Handle, bytes: usize) {
        idle_contexts(to, from)?;
        copy_now(linear((DEVICE, source), (DEVICE, target), bytes))
    }
    fn cuMemcpyPeerAsync(target: Address, to: Handle, source: Address, from: Handle, bytes: usize, stream: Handle) {
        contexts(to, from)?;
        copy_in(linear((DEVICE, source), (DEVICE, target), bytes), stream)
    }
    fn cuMemcpy2D_v2(copy: In<Copy2d>) {
        copy_now(flat(&copy.get()?))
    }
    fn cuMemcpy2DUnaligned_v2(copy: In<Copy2d>) {
        copy_now(flat(&copy.get()?))
    }
    fn cuMemcpy2DAsync_v2(copy: In<Copy2d>, stream: Handle) {
        copy_in(flat(&copy.get()?), stream)
    }
    fn cuMemcpy3D_v2(copy: In<Copy3d>) {
        copy_now(copy.get()?)
    }
    fn cuMemcpy3DAsync_v2(copy: In<Copy3d>, stream: Handle) {
        copy_in(copy.get()?, stream)
    }
    fn cuMemcpy3DPeer(copy: In<Copy3d>) {
        let copy = copy.get()?;
        idle_contexts(copy.dst_context, copy.src_context)?;
        copy_now(copy)
    }
    fn cuMemcpy3DPeerAsync(copy: In<Copy3d>, stream: Handle) {
        let copy = copy.get()?;
        contexts(copy.dst_context, copy.src_context)?;
        copy_in(copy, stream)
    }
    fn cuMemcpyBatchAsync(targets: In<Address>, sources: In<Address>, sizes: In<usize>, count: usize, _attributes: In<CopyAttributes>, _places: In<usize>, _number: usize, failed: Out<usize>, stream: Handle) {
        batch_of_rows([targets, sources], sizes, count, failed, stream)
    }
    fn cuMemcpyBatchAsync_v2(targets: In<Address>, sources: In<Address>, sizes: In<usize>, count: usize, _attributes: In<CopyAttributes>, _places: In<usize>, _number: usize, stream: Handle) {
        batch_of_rows([targets, sources], sizes, count, Out::null(), stream)
    }
    fn cuMemcpy3DBatchAsync(count: usize, list: In<CopyBatch3d>, failed: Out<usize>, _flags: c_ulonglong, stream: Handle) {
        batch_of_boxes(count, list, failed, stream)
    }
    fn cuMemcpy3DBatchAsync_v2(count: usize, list: In<CopyBatch3d>, _flags: c_ulonglong, stream: Handle) {
        batch_of_boxes(count, list, Out::null(), stream)
    }
    fn cuMemcpyWithAttributesAsync(target: Address, source: Address, bytes: usize, _attributes: In<CopyAttributes>, stream: Handle) {
        copy_in(linear((UNIFIED, source), (UNIFIED, target), bytes), stream)
    }
    fn cuMemcpy3DWithAttributesAsync(operation: In<CopyBatch3d>, _flags: c_ulonglong, stream: Handle) {
        copy_in(boxed(&operation.get()?)?, stream)
    }
}

alias! {
    cuMemcpy_ptds = cuMemcpy(target: Address, source: Address, bytes: usize);
    cuMemcpyHtoD_v2_ptds = cuMemcpyHtoD_v2(target: Address, source: Address, bytes: usize);
    cuMemcpyDtoH_v2_ptds = cuMemcpyDtoH_v2(target: Address, source: Address, bytes: usize);
    cuMemcpyDtoD_v2_ptds = cuMemcpyDtoD_v2(target: Address, source: Address, bytes: usize);
    cuMemcpyPeer_ptds = cuMemcpyPeer(target: Address, to: Handle, source: Address, from: Handle, bytes: usize);
    cuMemcpy2D_v2_ptds = cuMemcpy2D_v2(copy: In<Copy2d>);
    cuMemcpy2DUnaligned_v2_ptds = cuMemcpy2DUnaligned_v2(copy: In<Copy2d>);
    cuMemcpy3D_v2_ptds = cuMemcpy3D_v2(copy: In<Copy3d>);
    cuMemcpy3DPeer_ptds = cuMemcpy3DPeer(copy: In<Copy3d>);
}

per_thread! {
    cuMemcpyAsync_ptsz = cuMemcpyAsync(target: Address, source: Address, bytes: usize; stream);
    cuMemcpyHtoDAsync_v2_ptsz = cuMemcpyHtoDAsync_v2(target: Address, source: Address, bytes: usize; stream);
    cuMemcpyDtoHAsync_v2_ptsz = cuMemcpyDtoHAsync_v2(target: Address, source: Address, bytes: usize; stream);
    cuMemcpyDtoDAsync_v2_ptsz = cuMemcpyDtoDAsync_v2(target: Address, source: Address, bytes: usize; stream);
    cuMemcpyPeerAsync_ptsz = cuMemcpyPeerAsync(target: Address, to: Handle, source: Address, from: Handle, bytes: usize; stream);
    cuMemcpy2DAsync_v2_ptsz = cuMemcpy2DAsync_v2(copy: In<Copy2d>; stream);
    cuMemcpy3DAsync_v2_ptsz = cuMemcpy3DAsync_v2(copy: In<Copy3d>; stream);
    cuMemcpy3DPeerAsync_ptsz = cuMemcpy3DPeerAsync(copy: In<Copy3d>; stream);
    cuMemcpyBatchAsync_ptsz = cuMemcpyBatchAsync(targets: In<Address>, sources: In<Address>, sizes: In<usize>, count: usize, _attributes: In<CopyAttributes>, _places: In<usize>, _number: usize, failed: Out<usize>; stream);
    cuMemcpyBatchAsync_v2_ptsz = cuMemcpyBatchAsync_v2(targets: In<Address>, sources: In<Address>, sizes: In<usize>, count: usize, _attributes: In<CopyAttributes>, _places: In<usize>, _number: usize; stream);
    cuMemcpy3DBatchAsync_ptsz = cuMemcpy3DBatchAsync(count: usize, list: In<CopyBatch3d>, failed: Out<usize>, _flags: c_ulonglong; stream);
    cuMemcpy3DBatchAsync_v2_ptsz = cuMemcpy3DBatchAsync_v2(count: usize, list: In<CopyBatch3d>, _flags: c_ulonglong; stream);
    cuMemcpyWithAttributesAsync_ptsz = cuMemcpyWithAttributesAsync(target: Address, source: Address, bytes: usize, _attributes: In<CopyAttributes>; stream);
    cuMemcpy3DWithAttributesAsync_ptsz = cuMemcpy3DWithAttributesAsync(operation: In<CopyBatch3d>, _flags: c_ulonglong; stream);
}
