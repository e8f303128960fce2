//! Streams, events and captures.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use super::*;
use crate::simulator::driver::event::*;
use crate::simulator::driver::graph_exec::*;
use crate::simulator::driver::graph_query::*;
use crate::simulator::driver::pool::*;
use crate::simulator::driver::stream_api::*;

fn stream(flags: u32) -> usize {
    let mut stream = 0;
    ok!(cuStreamCreate(out(&mut stream), flags));
    stream
}

fn event(flags: u32) -> usize {
    let mut event = 0;
    ok!(cuEventCreate(out(&mut event), flags));
    event
}

/// A word of pinned memory, for streams to wait on.
fn gate() -> u64 {
    let mut gate = 0;
    ok!(cuMemHostAlloc(out(&mut gate), 64, 0));
    ok!(cuMemsetD32_v2(gate, 0, 16));
    gate
}

fn open(gate: u64) {
    ok!(cuMemcpy(gate, (&raw const ONE) as u64, 4));
}

static ONE: u32 = 1;

extern "C" fn count(data: usize) {
    unsafe { &*(data as *const AtomicU32) }.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn call_the_driver(data: usize) {
    let answer = unsafe { cuCtxSynchronize() };
    unsafe { &*(data as *const AtomicU32) }.store(answer.0, Ordering::SeqCst);
}

extern "C" fn told(_stream: usize, status: Status, data: usize) {
    unsafe { &*(data as *const AtomicU32) }.store(status.0 + 10, Ordering::SeqCst);
}

#[test]
fn a_stream_waits_for_a_value() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let (address, gate, stream) = (upload(&[0_u32]), gate(), stream(1));
    ok!(cuStreamWaitValue32_v2(stream, gate, 1, 1));
    assert_eq!(bump(bump_it, stream, address), Status::SUCCESS);
    let done = event(0);
    ok!(cuEventRecord(done, stream));
    fails!(NOT_READY, cuStreamQuery(stream));
    fails!(NOT_READY, cuEventQuery(done));
    let mut word = 7_u32;
    ok!(cuMemcpyDtoHAsync_v2(
        &raw mut word as u64,
        address,
        4,
        super::super::abi::STREAM_PER_THREAD
    ));
    assert_eq!(word, 0);
    open(gate);
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamQuery(stream));
    ok!(cuEventQuery(done));
    assert_eq!(download::<u32>(address, 1), [1]);
    ok!(cuStreamWriteValue64_v2(stream, gate, 5, 0));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(download::<u64>(gate, 1), [5]);
    fails!(
        INVALID_VALUE,
        cuStreamWaitValue32_v2(stream, gate + 2, 1, 1)
    );
    fails!(INVALID_VALUE, cuStreamWaitValue32_v2(stream, 64, 1, 1));
}

#[test]
fn events_order_streams() {
    let _turn = turn();
    let (gate, first, second) = (gate(), stream(1), stream(1));
    let address = upload(&[0_u32]);
    let between = event(2);
    // An event that was never recorded is no reason to wait.
    ok!(cuStreamWaitEvent(second, between, 0));
    ok!(cuStreamSynchronize(second));
    ok!(cuStreamWaitValue32_v2(first, gate, 1, 0));
    ok!(cuMemsetD32Async(address, 1, 1, first));
    ok!(cuEventRecord(between, first));
    ok!(cuStreamWaitEvent(second, between, 0));
    ok!(cuMemsetD32Async(address, 2, 1, second));
    fails!(NOT_READY, cuStreamQuery(second));
    open(gate);
    ok!(cuStreamSynchronize(second));
    assert_eq!(download::<u32>(address, 1), [2]);
    ok!(cuEventSynchronize(between));
    ok!(cuStreamDestroy_v2(first));
    fails!(INVALID_HANDLE, cuStreamSynchronize(first));
    fails!(INVALID_HANDLE, cuStreamDestroy_v2(0));
}

#[test]
fn the_default_stream_keeps_step() {
    let _turn = turn();
    let (gate, blocking, free) = (gate(), stream(0), stream(1));
    let address = upload(&[0_u32]);
    ok!(cuStreamWaitValue32_v2(blocking, gate, 1, 0));
    ok!(cuMemsetD32Async(address, 1, 1, blocking));
    ok!(cuMemsetD32Async(address, 2, 1, 0));
    fails!(NOT_READY, cuStreamQuery(0));
    // This one does not wait for anybody.
    ok!(cuMemsetD32Async(address, 3, 1, free));
    ok!(cuStreamSynchronize(free));
    let mut word = 0_u32;
    ok!(cuMemcpyDtoHAsync_v2(&raw mut word as u64, address, 4, free));
    assert_eq!(word, 3);
    unsafe { (gate as *mut u32).write_volatile(1) };
    ok!(cuStreamSynchronize(0));
    assert_eq!(download::<u32>(address, 1), [2]);
}

#[test]
fn host_functions_run_in_order_and_elsewhere() {
    let _turn = turn();
    let stream = stream(1);
    let counter = AtomicU32::new(0);
    let data = &raw const counter as usize;
    let place = count as *const () as usize;
    for _ in 0..3 {
        ok!(cuLaunchHostFunc(stream, place, data));
    }
    ok!(cuStreamSynchronize(stream));
    assert_eq!(counter.load(Ordering::SeqCst), 3);
    // They may not call the driver.
    ok!(cuLaunchHostFunc(
        stream,
        call_the_driver as *const () as usize,
        data
    ));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(counter.load(Ordering::SeqCst), Status::NOT_PERMITTED.0);
    ok!(cuStreamAddCallback(
        stream,
        told as *const () as usize,
        data,
        0
    ));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(counter.load(Ordering::SeqCst), 10);
    fails!(INVALID_VALUE, cuLaunchHostFunc(stream, 0, 0));
}

#[test]
fn events_measure_time() {
    let _turn = turn();
    let (gate, stream) = (gate(), stream(1));
    let (start, end) = (event(0), event(0));
    let mut time = 0.0;
    fails!(
        INVALID_HANDLE,
        cuEventElapsedTime(out(&mut time), start, end)
    );
    ok!(cuEventRecord(start, stream));
    ok!(cuStreamWaitValue32_v2(stream, gate, 1, 0));
    ok!(cuEventRecord(end, stream));
    fails!(NOT_READY, cuEventElapsedTime(out(&mut time), start, end));
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(20));
    open(gate);
    ok!(cuEventSynchronize(end));
    ok!(cuEventElapsedTime(out(&mut time), start, end));
    assert!(time >= 20.0 && f64::from(time) < begun.elapsed().as_secs_f64() * 1e3 + 1e3);
    let silent = event(2);
    ok!(cuEventRecord(silent, stream));
    fails!(
        INVALID_HANDLE,
        cuEventElapsedTime(out(&mut time), start, silent)
    );
    ok!(cuEventDestroy_v2(silent));
    fails!(INVALID_HANDLE, cuEventDestroy_v2(silent));
}

#[test]
fn priorities_are_kept_in_range() {
    let _turn = turn();
    let (mut least, mut greatest, mut made, mut priority) = (9, 9, 0, 9);
    ok!(cuCtxGetStreamPriorityRange(
        out(&mut least),
        out(&mut greatest)
    ));
    assert_eq!((least, greatest), (0, -5));
    ok!(cuStreamCreateWithPriority(out(&mut made), 1, -100));
    ok!(cuStreamGetPriority(made, out(&mut priority)));
    assert_eq!(priority, -5);
    let mut flags = 0;
    ok!(cuStreamGetFlags(made, out(&mut flags)));
    assert_eq!(flags, 1);
    fails!(INVALID_VALUE, cuStreamCreate(out(&mut made), 4));
}

#[test]
fn a_capture_becomes_a_graph() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let address = upload(&[0_u32]);
    let (main, side) = (stream(1), stream(1));
    let (fork, join) = (event(2), event(2));
    let (mut graph, mut exec, mut status, mut count) = (0, 0, 9, 0);
    ok!(cuStreamBeginCapture_v2(main, 1));
    assert_eq!(bump(bump_it, main, address), Status::SUCCESS);
    ok!(cuEventRecord(fork, main));
    ok!(cuStreamWaitEvent(side, fork, 0));
    ok!(cuStreamIsCapturing(side, out(&mut status)));
    assert_eq!(status, 1);
    assert_eq!(bump(bump_it, side, address), Status::SUCCESS);
    ok!(cuMemsetD32Async(address, 5, 1, main));
    ok!(cuEventRecord(join, side));
    ok!(cuStreamWaitEvent(main, join, 0));
    let mut room = 0;
    ok!(cuMemAllocAsync(out(&mut room), 4, main));
    ok!(cuMemcpyDtoDAsync_v2(room, address, 4, main));
    ok!(cuMemFreeAsync(room, main));
    ok!(cuStreamEndCapture(main, out(&mut graph)));
    ok!(cuStreamIsCapturing(side, out(&mut status)));
    assert_eq!(status, 0);
    // Nothing ran yet.
    assert_eq!(download::<u32>(address, 1), [0]);
    ok!(cuGraphGetNodes(graph, Out::null(), out(&mut count)));
    assert_eq!(count, 6);
    ok!(cuGraphGetEdges(
        graph,
        Out::null(),
        Out::null(),
        out(&mut count)
    ));
    assert_eq!(count, 6);
    ok!(cuGraphInstantiateWithFlags(out(&mut exec), graph, 0));
    for _ in 0..2 {
        ok!(cuGraphLaunch(exec, main));
    }
    ok!(cuStreamSynchronize(main));
    // Twice two kernels on the word and a fill beside them: the fill ran last.
    assert_eq!(download::<u32>(address, 1), [5]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn captures_refuse_what_they_cannot_hold() {
    let _turn = turn();
    let (main, side) = (stream(1), stream(1));
    let mut graph = 0;
    fails!(STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(0, 0));
    fails!(ILLEGAL_STATE, cuStreamEndCapture(main, out(&mut graph)));
    ok!(cuStreamBeginCapture_v2(main, 0));
    fails!(ILLEGAL_STATE, cuStreamBeginCapture_v2(main, 0));
    fails!(STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(main));
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuMemsetD32Async(upload_not(), 0, 1, main)
    );
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(main, out(&mut graph))
    );
    assert_eq!(graph, 0);
    // An allocation is refused in the modes that watch for it.
    ok!(cuStreamBeginCapture_v2(main, 0));
    let mut address = 0;
    fails!(
        STREAM_CAPTURE_UNSUPPORTED,
        cuMemAlloc_v2(out(&mut address), 4)
    );
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(main, out(&mut graph))
    );
    ok!(cuStreamBeginCapture_v2(main, 2));
    ok!(cuMemAlloc_v2(out(&mut address), 4));
    ok!(cuStreamEndCapture(main, out(&mut graph)));
    ok!(cuGraphDestroy(graph));
    // Work that does not come back to where the capture began.
    let fork = event(2);
    ok!(cuStreamBeginCapture_v2(main, 2));
    ok!(cuEventRecord(fork, main));
    fails!(CAPTURED_EVENT, cuEventQuery(fork));
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(main, out(&mut graph))
    );
    ok!(cuStreamBeginCapture_v2(main, 2));
    ok!(cuEventRecord(fork, main));
    ok!(cuStreamWaitEvent(side, fork, 0));
    ok!(cuMemsetD32Async(address, 5, 1, side));
    fails!(
        STREAM_CAPTURE_UNMATCHED,
        cuStreamEndCapture(side, out(&mut graph))
    );
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(main, out(&mut graph))
    );
    ok!(cuStreamBeginCapture_v2(main, 2));
    ok!(cuEventRecord(fork, main));
    ok!(cuStreamWaitEvent(side, fork, 0));
    ok!(cuMemsetD32Async(address, 5, 1, side));
    fails!(
        STREAM_CAPTURE_UNJOINED,
        cuStreamEndCapture(main, out(&mut graph))
    );
    // An event of work that is not captured cannot be waited for.
    let plain = event(2);
    ok!(cuEventRecord(plain, side));
    ok!(cuStreamBeginCapture_v2(main, 2));
    fails!(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(main, plain, 0));
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(main, out(&mut graph))
    );
    // The default stream cannot be used while a stream that keeps step with it captures.
    let blocking = stream(0);
    ok!(cuStreamBeginCapture_v2(blocking, 1));
    fails!(STREAM_CAPTURE_IMPLICIT, cuMemsetD32Async(address, 5, 1, 0));
    fails!(
        STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(blocking, out(&mut graph))
    );
}

/// Pinned memory would be refused while capturing, so some that is there already.
fn upload_not() -> u64 {
    static WORD: u32 = 0;
    let address = &raw const WORD as u64;
    unsafe { cuMemHostRegister_v2(address, 4, 0) };
    address
}

#[test]
fn a_stream_that_goes_away_ends_its_capture() {
    let _turn = turn();
    let (mut stream, mut address) = (0, 0);
    ok!(cuStreamCreate(out(&mut stream), 1));
    ok!(cuStreamBeginCapture_v2(stream, 0));
    // While somebody captures in that mode, nobody may allocate.
    fails!(
        STREAM_CAPTURE_UNSUPPORTED,
        cuMemAlloc_v2(out(&mut address), 64)
    );
    ok!(cuStreamDestroy_v2(stream));
    ok!(cuMemAlloc_v2(out(&mut address), 64));
    ok!(cuMemFree_v2(address));
}

#[test]
fn functions_of_the_program_may_not_take_the_context_down() {
    unsafe extern "C" fn reset(found: *mut Status) {
        unsafe { *found = cuDevicePrimaryCtxReset_v2(0) };
    }
    let _turn = turn();
    let mut found = Status::SUCCESS;
    let place = &raw mut found as usize;
    ok!(cuLaunchHostFunc(0, reset as *const () as usize, place));
    ok!(cuStreamSynchronize(0));
    assert_eq!(found, Status::NOT_PERMITTED);
}
