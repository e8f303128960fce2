//! The calls about streams.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_int;
use std::ffi::c_uint;
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
use crate::simulator::driver::graph;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::stream::Role;
use crate::simulator::driver::stream::Stream;
use crate::simulator::driver::transfer;
use crate::simulator::driver::types::AttributeValue;
use crate::simulator::driver::types::EdgeData;
use crate::simulator::driver::types::HostParams;
use crate::simulator::driver::types::MemOp;
use crate::simulator::driver::work::MemOps;
use crate::simulator::driver::work::Work;

/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: u32 = 1;

fn create(out: Out<Handle>, flags: u32, priority: c_int) -> Answer {
    let context = context::current()?;
    out.check()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let role = if flags & NON_BLOCKING != 0 {
        Role::NonBlocking
    } else {
        Role::Blocking
    };
    let made = Stream::create(driver()?, &context, role, flags, priority);
    out.put(made.handle)
}

/// Status, id, graph and dependencies of a capture, as every version of the question wants them.
fn capture_info(
    stream: Handle,
    status: Out<c_uint>,
    id: Out<u64>,
    graph: Out<Handle>,
    nodes: Out<usize>,
    edges: Out<usize>,
    count: Out<usize>,
) -> Answer {
    let stream = stream::resolve(stream)?;
    status.check()?;
    if stream.is_legacy() {
        capture::refuse_implicit(driver()?, &stream.context)?;
    }
    let capture = lock(&stream.capture).clone();
    let Some(capture) = capture else {
        return status.put(0);
    };
    if capture.session.is_broken() {
        return status.put(2);
    }
    id.put_if(capture.session.id);
    graph.put_if(capture.session.graph.handle);
    count.put_if(capture.frontier.len());
    if !nodes.is_null() || !edges.is_null() {
        let kept = capture.session.graph.keep(&capture.frontier);
        nodes.put_if(kept.0);
        edges.put_if(kept.1);
    }
    status.put(1)
}

fn update_dependencies(
    stream: Handle,
    nodes: In<Handle>,
    edges: In<EdgeData>,
    count: usize,
    flags: u32,
) -> Answer {
    let stream = stream::resolve(stream)?;
    let nodes = nodes.array(count)?;
    let edges = if edges.is_null() {
        vec![EdgeData::default(); count]
    } else {
        edges.array(count)?
    };
    if flags > 1 {
        return Err(Status::INVALID_VALUE);
    }
    let mut capture = lock(&stream.capture);
    let capture = capture.as_mut().ok_or(Status::ILLEGAL_STATE)?;
    for &node in &nodes {
        if !capture.session.graph.has(node) {
            return Err(Status::INVALID_VALUE);
        }
    }
    let mut frontier = if flags == 1 {
        Vec::new()
    } else {
        std::mem::take(&mut capture.frontier)
    };
    for edge in nodes.into_iter().zip(edges) {
        if !frontier.iter().any(|mine| mine.0 == edge.0) {
            frontier.push(edge);
        }
    }
    capture.frontier = frontier;
    Ok(())
}

fn mem_ops(stream: Handle, list: Vec<MemOp>, flags: u32) -> Answer {
    let stream = stream::resolve(stream)?;
    check_mem_ops(&list, flags)?;
    stream::issue(&stream, Work::MemOps(MemOps::new(list, flags)))
}

/// Checks a list of writes and waits.
pub(super) fn check_mem_ops(list: &[MemOp], flags: u32) -> Answer {
    let driver = driver()?;
    if flags != 0 || list.len() > 256 {
        return Err(Status::INVALID_VALUE);
    }
    for operation in list {
        let known = |bytes| transfer::word_is_known(driver, operation.address, bytes);
        let fine = match operation.operation {
            1 => operation.flags & !0x4000_0003 == 0 && known(4),
            4 => operation.flags & !0x4000_0003 == 0 && known(8),
            2 => operation.flags & !1 == 0 && known(4),
            5 => operation.flags & !1 == 0 && known(8),
            3 | 6 => true,
            _ => false,
        };
        if !fine {
            return Err(Status::INVALID_VALUE);
        }
    }
    Ok(())
}

fn word(operation: u32, address: Address, value: u64, flags: u32) -> Vec<MemOp> {
    vec![MemOp {
        operation,
        address,
        value,
        flags,
        ..MemOp::default()
    }]
}

fn host_function(stream: Handle, function: usize, data: usize) -> Answer {
    let stream = stream::resolve(stream)?;
    if function == 0 {
        return Err(Status::INVALID_VALUE);
    }
    stream::issue(&stream, Work::Host(HostParams { function, data }))
}

fn known_attribute(attribute: u32) -> Answer {
    // Access policy, synchronization policy, priority, memory domains.
    if matches!(attribute, 1 | 3 | 8 | 9 | 10) {
        Ok(())
    } else {
        Err(Status::INVALID_VALUE)
    }
}

api! {
    fn cuStreamCreate(out: Out<Handle>, flags: c_uint) {
        create(out, flags, 0)
    }
    fn cuStreamCreateWithPriority(out: Out<Handle>, flags: c_uint, priority: c_int) {
        create(out, flags, priority)
    }
    fn cuStreamDestroy_v2(stream: Handle) {
        let driver = driver()?;
        if matches!(stream, 0..=2) {
            return Err(Status::INVALID_HANDLE);
        }
        let stream = driver.streams.get(stream)?;
        if matches!(stream.role, Role::Legacy | Role::PerThread) {
            return Err(Status::INVALID_HANDLE);
        }
        capture::abandon(driver, &stream);
        // What was submitted still runs; whoever runs it holds the stream.
        driver.streams.remove(stream.handle);
        Ok(())
    }
    fn cuStreamSynchronize(stream: Handle) {
        let stream = stream::resolve(stream)?;
        if capture::is_capturing(&stream) {
            capture::invalidate(&stream);
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        if stream.is_legacy() {
            let driver = driver()?;
            capture::refuse_implicit(driver, &stream.context)?;
            for other in stream.context.streams(driver) {
                if other.role != Role::NonBlocking {
                    other.wait();
                }
            }
        }
        stream.wait();
        stream.context.health()
    }
    fn cuStreamQuery(stream: Handle) {
        let stream = stream::resolve(stream)?;
        if capture::is_capturing(&stream) {
            capture::invalidate(&stream);
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        let mut busy = stream.is_busy();
        if stream.is_legacy() {
            let driver = driver()?;
            capture::refuse_implicit(driver, &stream.context)?;
            let others = stream.context.streams(driver);
            busy |= others.iter().any(|other| other.role != Role::NonBlocking && other.is_busy());
        }
        if busy {
            return Err(Status::NOT_READY);
        }
        stream.context.health()
    }
    fn cuStreamGetPriority(stream: Handle, priority: Out<c_int>) {
        let stream = stream::resolve(stream)?;
        priority.put(stream.priority)
    }
    fn cuStreamGetFlags(stream: Handle, flags: Out<c_uint>) {
        let stream = stream::resolve(stream)?;
        flags.put(stream.flags)
    }
    fn cuStreamGetId(stream: Handle, id: Out<c_ulonglong>) {
        let stream = stream::resolve(stream)?;
        id.put(stream.id)
    }
    fn cuStreamGetCtx(stream: Handle, out: Out<Handle>) {
        let stream = stream::resolve(stream)?;
        out.put(stream.context.handle)
    }
    fn cuStreamGetCtx_v2(stream: Handle, out: Out<Handle>, green: Out<Handle>) {
        let stream = stream::resolve(stream)?;
        green.put_if(0);
        out.put(stream.context.handle)
    }
    fn cuStreamGetGreenCtx(stream: Handle, green: Out<Handle>) {
        stream::resolve(stream)?;
        green.put(0)
    }
    fn cuStreamGetDevice(stream: Handle, device: Out<c_int>) {
        let stream = stream::resolve(stream)?;
        device.put(stream.context.device as c_int)
    }
    fn cuStreamAddCallback(stream: Handle, function: usize, data: usize, flags: c_uint) {
        let stream = stream::resolve(stream)?;
        if function == 0 || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if capture::is_capturing(&stream) {
            capture::invalidate(&stream);
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        let handle = stream.handle;
        stream::issue(&stream, Work::Callback { function, data, stream: handle })
    }
    fn cuLaunchHostFunc(stream: Handle, function: usize, data: usize) {
        host_function(stream, function, data)
    }
    fn cuLaunchHostFunc_v2(stream: Handle, function: usize, data: usize, mode: c_uint) {
        if mode > 1 {
            return Err(Status::INVALID_VALUE);
        }
        host_function(stream, function, data)
    }
    fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) {
        let stream = stream::resolve(stream)?;
        capture::begin(&stream, mode, None)
    }
    fn cuStreamBeginCapture(stream: Handle) {
        let stream = stream::resolve(stream)?;
        capture::begin(&stream, 0, None)
    }
    fn cuStreamBeginCaptureToGraph(
        stream: Handle, graph: Handle, nodes: In<Handle>, edges: In<EdgeData>, count: usize, mode: c_uint,
    ) {
        let stream = stream::resolve(stream)?;
        let graph = driver()?.graphs.find(graph).ok_or(Status::INVALID_VALUE)?;
        let frontier = graph::edges(&graph, nodes, edges, count)?;
        capture::begin(&stream, mode, Some((graph, frontier)))
    }
    fn cuStreamEndCapture(stream: Handle, graph: Out<Handle>) {
        let stream = stream::resolve(stream)?;
        let ended = capture::end(&stream).inspect_err(|_| graph.put_if(0))?;
        graph.put(ended)
    }
    fn cuStreamIsCapturing(stream: Handle, status: Out<c_uint>) {
        let none = Out::null();
        capture_info(stream, status, Out::null(), Out::null(), none, none, none)
    }
    fn cuStreamGetCaptureInfo(stream: Handle, status: Out<c_uint>, id: Out<u64>) {
        let none = Out::null();
        capture_info(stream, status, id, Out::null(), none, none, none)
    }
    fn cuStreamGetCaptureInfo_v2(
        stream: Handle, status: Out<c_uint>, id: Out<u64>, graph: Out<Handle>, nodes: Out<usize>,
        count: Out<usize>,
    ) {
        capture_info(stream, status, id, graph, nodes, Out::null(), count)
    }
    fn cuStreamGetCaptureInfo_v3(
        stream: Handle, status: Out<c_uint>, id: Out<u64>, graph: Out<Handle>, nodes: Out<usize>,
        edges: Out<usize>, count: Out<usize>,
    ) {
        capture_info(stream, status, id, graph, nodes, edges, count)
    }
    fn cuStreamUpdateCaptureDependencies(
        stream: Handle, nodes: In<Handle>, count: usize, flags: c_uint,
    ) {
        update_dependencies(stream, nodes, In::new(std::ptr::null()), count, flags)
    }
    fn cuStreamUpdateCaptureDependencies_v2(
        stream: Handle, nodes: In<Handle>, edges: In<EdgeData>, count: usize, flags: c_uint,
    ) {
        update_dependencies(stream, nodes, edges, count, flags)
    }
    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_uint>) {
        driver()?;
        let before = capture::exchange_mode(mode.get()?)?;
        mode.put(before)
    }
    fn cuStreamCopyAttributes(target: Handle, source: Handle) {
        let (target, source) = (stream::resolve(target)?, stream::resolve(source)?);
        let attributes = lock(&source.attributes).clone();
        *lock(&target.attributes) = attributes;
        Ok(())
    }
    fn cuStreamGetAttribute(stream: Handle, attribute: c_uint, value: Out<AttributeValue>) {
        let stream = stream::resolve(stream)?;
        known_attribute(attribute)?;
        let set = lock(&stream.attributes).get(&attribute).copied();
        let mut found = set.unwrap_or_default();
        if set.is_none() {
            match attribute {
                3 => found.words[0] = 1,
                8 => found.words[0] = stream.priority as u32,
                _ => {}
            }
        }
        value.put(found)
    }
    fn cuStreamSetAttribute(stream: Handle, attribute: c_uint, value: In<AttributeValue>) {
        let stream = stream::resolve(stream)?;
        known_attribute(attribute)?;
        lock(&stream.attributes).insert(attribute, value.get()?);
        Ok(())
    }
    fn cuStreamWaitValue32_v2(stream: Handle, address: Address, value: c_uint, flags: c_uint) {
        mem_ops(stream, word(1, address, u64::from(value), flags), 0)
    }
    fn cuStreamWaitValue64_v2(stream: Handle, address: Address, value: u64, flags: c_uint) {
        mem_ops(stream, word(4, address, value, flags), 0)
    }
    fn cuStreamWriteValue32_v2(stream: Handle, address: Address, value: c_uint, flags: c_uint) {
        mem_ops(stream, word(2, address, u64::from(value), flags), 0)
    }
    fn cuStreamWriteValue64_v2(stream: Handle, address: Address, value: u64, flags: c_uint) {
        mem_ops(stream, word(5, address, value, flags), 0)
    }
    fn cuStreamBatchMemOp_v2(stream: Handle, count: c_uint, list: In<MemOp>, flags: c_uint) {
        mem_ops(stream, list.array(count as usize)?, flags)
    }
}

alias! {
    cuStreamDestroy = cuStreamDestroy_v2(stream: Handle);
    cuStreamWaitValue32 = cuStreamWaitValue32_v2(stream: Handle, address: Address, value: c_uint, flags: c_uint);
    cuStreamWaitValue64 = cuStreamWaitValue64_v2(stream: Handle, address: Address, value: u64, flags: c_uint);
    cuStreamWriteValue32 = cuStreamWriteValue32_v2(stream: Handle, address: Address, value: c_uint, flags: c_uint);
    cuStreamWriteValue64 = cuStreamWriteValue64_v2(stream: Handle, address: Address, value: u64, flags: c_uint);
    cuStreamBatchMemOp = cuStreamBatchMemOp_v2(stream: Handle, count: c_uint, list: In<MemOp>, flags: c_uint);
}

per_thread! {
    cuStreamSynchronize_ptsz = cuStreamSynchronize(; stream);
    cuStreamQuery_ptsz = cuStreamQuery(; stream);
    cuStreamGetPriority_ptsz = cuStreamGetPriority(; stream; priority: Out<c_int>);
    cuStreamGetFlags_ptsz = cuStreamGetFlags(; stream; flags: Out<c_uint>);
    cuStreamGetId_ptsz = cuStreamGetId(; stream; id: Out<c_ulonglong>);
    cuStreamGetCtx_ptsz = cuStreamGetCtx(; stream; out: Out<Handle>);
    cuStreamGetCtx_v2_ptsz = cuStreamGetCtx_v2(; stream; out: Out<Handle>; green: Out<Handle>);
    cuStreamGetDevice_ptsz = cuStreamGetDevice(; stream; device: Out<c_int>);
    cuStreamAddCallback_ptsz = cuStreamAddCallback(; stream; function: usize; data: usize; flags: c_uint);
    cuLaunchHostFunc_ptsz = cuLaunchHostFunc(; stream; function: usize; data: usize);
    cuLaunchHostFunc_v2_ptsz = cuLaunchHostFunc_v2(; stream; function: usize; data: usize; mode: c_uint);
    cuStreamBeginCapture_ptsz = cuStreamBeginCapture(; stream);
    cuStreamBeginCapture_v2_ptsz = cuStreamBeginCapture_v2(; stream; mode: c_uint);
    cuStreamBeginCaptureToGraph_ptsz = cuStreamBeginCaptureToGraph(
        ; stream; graph: Handle; nodes: In<Handle>; edges: In<EdgeData>; count: usize; mode: c_uint);
    cuStreamEndCapture_ptsz = cuStreamEndCapture(; stream; graph: Out<Handle>);
    cuStreamIsCapturing_ptsz = cuStreamIsCapturing(; stream; status: Out<c_uint>);
    cuStreamGetCaptureInfo_ptsz = cuStreamGetCaptureInfo(; stream; status: Out<c_uint>; id: Out<u64>);
    cuStreamGetCaptureInfo_v2_ptsz = cuStreamGetCaptureInfo_v2(
        ; stream; status: Out<c_uint>; id: Out<u64>; graph: Out<Handle>; nodes: Out<usize>; count: Out<usize>);
    cuStreamGetCaptureInfo_v3_ptsz = cuStreamGetCaptureInfo_v3(
        ; stream; status: Out<c_uint>; id: Out<u64>; graph: Out<Handle>; nodes: Out<usize>;
        edges: Out<usize>; count: Out<usize>);
    cuStreamUpdateCaptureDependencies_ptsz = cuStreamUpdateCaptureDependencies(
        ; stream; nodes: In<Handle>; count: usize; flags: c_uint);
    cuStreamUpdateCaptureDependencies_v2_ptsz = cuStreamUpdateCaptureDependencies_v2(
        ; stream; nodes: In<Handle>; edges: In<EdgeData>; count: usize; flags: c_uint);
    cuStreamGetAttribute_ptsz = cuStreamGetAttribute(; stream; attribute: c_uint; value: Out<AttributeValue>);
    cuStreamSetAttribute_ptsz = cuStreamSetAttribute(; stream; attribute: c_uint; value: In<AttributeValue>);
    cuStreamCopyAttributes_ptsz = cuStreamCopyAttributes(target: Handle; stream);
    cuStreamWaitValue32_ptsz = cuStreamWaitValue32_v2(; stream; address: Address; value: c_uint; flags: c_uint);
    cuStreamWaitValue64_ptsz = cuStreamWaitValue64_v2(; stream; address: Address; value: u64; flags: c_uint);
    cuStreamWriteValue32_ptsz = cuStreamWriteValue32_v2(; stream; address: Address; value: c_uint; flags: c_uint);
    cuStreamWriteValue64_ptsz = cuStreamWriteValue64_v2(; stream; address: Address; value: u64; flags: c_uint);
    cuStreamWaitValue32_v2_ptsz = cuStreamWaitValue32_v2(; stream; address: Address; value: c_uint; flags: c_uint);
    cuStreamWaitValue64_v2_ptsz = cuStreamWaitValue64_v2(; stream; address: Address; value: u64; flags: c_uint);
    cuStreamWriteValue32_v2_ptsz = cuStreamWriteValue32_v2(; stream; address: Address; value: c_uint; flags: c_uint);
    cuStreamWriteValue64_v2_ptsz = cuStreamWriteValue64_v2(; stream; address: Address; value: u64; flags: c_uint);
    cuStreamBatchMemOp_ptsz = cuStreamBatchMemOp_v2(; stream; count: c_uint; list: In<MemOp>; flags: c_uint);
    cuStreamBatchMemOp_v2_ptsz = cuStreamBatchMemOp_v2(; stream; count: c_uint; list: In<MemOp>; flags: c_uint);
}
