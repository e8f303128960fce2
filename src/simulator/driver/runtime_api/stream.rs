//! Streams and events.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_int;
use std::ffi::c_uint;

use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::event::cuEventCreate;
use crate::simulator::driver::event::cuEventDestroy_v2;
use crate::simulator::driver::event::cuEventElapsedTime;
use crate::simulator::driver::event::cuEventQuery;
use crate::simulator::driver::event::cuEventRecord;
use crate::simulator::driver::event::cuEventRecordWithFlags;
use crate::simulator::driver::event::cuEventSynchronize;
use crate::simulator::driver::event::cuStreamWaitEvent;
use crate::simulator::driver::runtime_api::forward;
use crate::simulator::driver::runtime_api::runtime;
use crate::simulator::driver::stream_api::cuLaunchHostFunc;
use crate::simulator::driver::stream_api::cuStreamAddCallback;
use crate::simulator::driver::stream_api::cuStreamBeginCapture_v2;
use crate::simulator::driver::stream_api::cuStreamCreate;
use crate::simulator::driver::stream_api::cuStreamCreateWithPriority;
use crate::simulator::driver::stream_api::cuStreamDestroy_v2;
use crate::simulator::driver::stream_api::cuStreamEndCapture;
use crate::simulator::driver::stream_api::cuStreamGetFlags;
use crate::simulator::driver::stream_api::cuStreamGetPriority;
use crate::simulator::driver::stream_api::cuStreamIsCapturing;
use crate::simulator::driver::stream_api::cuStreamQuery;
use crate::simulator::driver::stream_api::cuStreamSynchronize;
use crate::simulator::driver::stream_api::cuThreadExchangeStreamCaptureMode;

runtime! {
    bound fn cudaStreamCreate(stream: Out<Handle>) {
        // SAFETY: the caller vouches for the same pointer.
        unsafe { cuStreamCreate(stream, 0) }.answer()
    }
    bound fn cudaEventCreate(event: Out<Handle>) {
        // SAFETY: the caller vouches for the same pointer.
        unsafe { cuEventCreate(event, 0) }.answer()
    }
}

forward! {
    cudaStreamCreateWithFlags = cuStreamCreate(stream: Out<Handle>, flags: c_uint);
    cudaStreamCreateWithPriority = cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int);
    cudaStreamDestroy = cuStreamDestroy_v2(stream: Handle);
    cudaStreamSynchronize = cuStreamSynchronize(stream: Handle);
    cudaStreamQuery = cuStreamQuery(stream: Handle);
    cudaStreamWaitEvent = cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    cudaStreamGetFlags = cuStreamGetFlags(stream: Handle, flags: Out<c_uint>);
    cudaStreamGetPriority = cuStreamGetPriority(stream: Handle, priority: Out<c_int>);
    cudaStreamAddCallback = cuStreamAddCallback(stream: Handle, function: usize, data: usize, flags: c_uint);
    cudaLaunchHostFunc = cuLaunchHostFunc(stream: Handle, function: usize, data: usize);
    cudaStreamBeginCapture = cuStreamBeginCapture_v2(stream: Handle, mode: c_uint);
    cudaStreamEndCapture = cuStreamEndCapture(stream: Handle, graph: Out<Handle>);
    cudaStreamIsCapturing = cuStreamIsCapturing(stream: Handle, status: Out<c_uint>);
    cudaThreadExchangeStreamCaptureMode = cuThreadExchangeStreamCaptureMode(mode: Out<c_uint>);
    cudaEventCreateWithFlags = cuEventCreate(event: Out<Handle>, flags: c_uint);
    cudaEventDestroy = cuEventDestroy_v2(event: Handle);
    cudaEventRecord = cuEventRecord(event: Handle, stream: Handle);
    cudaEventRecordWithFlags = cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint);
    cudaEventQuery = cuEventQuery(event: Handle);
    cudaEventSynchronize = cuEventSynchronize(event: Handle);
    cudaEventElapsedTime = cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle);
}
