//! Devices, contexts and names.

use std::ffi::CStr;
use std::ffi::c_char;

use super::*;
use crate::simulator::driver::device::*;
use crate::simulator::driver::proc_address::*;
use crate::simulator::driver::types::Uuid;

fn attribute(attribute: u32) -> i32 {
    let mut value = -7;
    ok!(cuDeviceGetAttribute(out(&mut value), attribute, 0));
    value
}

#[test]
fn devices_are_what_the_target_says() {
    let _guard = boot();
    fails!(INVALID_VALUE, cuInit(1));
    ok!(cuInit(0));
    let (mut count, mut version, mut bytes) = (0, 0, 0);
    ok!(cuDeviceGetCount(out(&mut count)));
    ok!(cuDriverGetVersion(out(&mut version)));
    ok!(cuDeviceTotalMem_v2(out(&mut bytes), 0));
    assert_eq!((count, version, bytes), (2, 13_000, 84_942_979_072));
    assert_eq!([attribute(75), attribute(76)], [9, 0]);
    assert_eq!(attribute(16), 132);
    assert_eq!(attribute(81), 233_472);
    assert_eq!(attribute(97), 232_448);
    assert_eq!(attribute(102), 1);
    assert_eq!(attribute(13), 1_980_000);
    let mut value = 0;
    fails!(
        INVALID_VALUE,
        cuDeviceGetAttribute(out(&mut value), 9999, 0)
    );
    fails!(INVALID_DEVICE, cuDeviceGetAttribute(out(&mut value), 1, 2));
    fails!(INVALID_DEVICE, cuDeviceGet(out(&mut value), 2));
    for number in 1..=143 {
        attribute(number);
    }
}

#[test]
fn devices_have_names_that_lead_back() {
    let _guard = boot();
    let name = [1 as c_char; 8];
    let place = || Out::from_address(name.as_ptr() as usize);
    ok!(cuDeviceGetName(place(), 8, 0));
    let cut = unsafe { CStr::from_ptr(name.as_ptr()) };
    assert_eq!(cut.to_str(), Ok("NVIDIA "));
    let mut pci = [0 as c_char; 32];
    ok!(cuDeviceGetPCIBusId(out(&mut pci[0]), 32, 1));
    let mut device = -1;
    ok!(cuDeviceGetByPCIBusId(out(&mut device), list(&pci)));
    assert_eq!(device, 1);
    let (mut first, mut second) = (Uuid::default(), Uuid::default());
    ok!(cuDeviceGetUuid_v2(out(&mut first), 0));
    ok!(cuDeviceGetUuid_v2(out(&mut second), 1));
    assert_ne!(first, second);
}

#[test]
fn contexts_are_a_stack_of_the_thread() {
    let turn = turn();
    let (mut own, mut now) = (0, 0);
    ok!(cuCtxCreate_v2(out(&mut own), 0, 1));
    ok!(cuCtxGetCurrent(out(&mut now)));
    assert_eq!(now, own);
    let mut device = -1;
    ok!(cuCtxGetDevice(out(&mut device)));
    assert_eq!(device, 1);
    ok!(cuCtxPopCurrent_v2(out(&mut now)));
    assert_eq!(now, own);
    ok!(cuCtxGetCurrent(out(&mut now)));
    assert_eq!(now, turn.context);
    std::thread::spawn(move || {
        let mut elsewhere = 1;
        ok!(cuCtxGetCurrent(out(&mut elsewhere)));
        assert_eq!(elsewhere, 0);
        fails!(INVALID_CONTEXT, cuCtxSynchronize());
    })
    .join()
    .expect("no panic");
    ok!(cuCtxPushCurrent_v2(own));
    ok!(cuCtxDestroy_v2(own));
    fails!(INVALID_CONTEXT, cuCtxSetCurrent(own));
    fails!(INVALID_CONTEXT, cuCtxDestroy_v2(turn.context));
    ok!(cuCtxSynchronize());
}

#[test]
fn a_destroyed_context_is_told_on_other_threads() {
    let _turn = turn();
    let mut own = 0;
    ok!(cuCtxCreate_v2(out(&mut own), 0, 1));
    let (to, from) = std::sync::mpsc::channel();
    let (back, done) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        ok!(cuCtxSetCurrent(own));
        back.send(()).expect("heard");
        from.recv().expect("told");
        fails!(CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    });
    done.recv().expect("told");
    ok!(cuCtxDestroy_v2(own));
    to.send(()).expect("heard");
    thread.join().expect("no panic");
}

#[test]
fn primary_contexts_are_counted() {
    let _guard = boot();
    let (mut flags, mut active) = (9, 9);
    ok!(cuDevicePrimaryCtxGetState(
        1,
        out(&mut flags),
        out(&mut active)
    ));
    assert_eq!((flags, active), (0, 0));
    let (mut first, mut second) = (0, 0);
    ok!(cuDevicePrimaryCtxRetain(out(&mut first), 1));
    ok!(cuDevicePrimaryCtxRetain(out(&mut second), 1));
    assert_eq!(first, second);
    ok!(cuDevicePrimaryCtxRelease_v2(1));
    ok!(cuDevicePrimaryCtxGetState(
        1,
        out(&mut flags),
        out(&mut active)
    ));
    assert_eq!(active, 1);
    ok!(cuDevicePrimaryCtxRelease_v2(1));
    fails!(INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(1));
    ok!(cuCtxSetCurrent(first));
    fails!(CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    ok!(cuCtxSetCurrent(0));
}

#[test]
fn peers_are_enabled_once() {
    let turn = turn();
    let (mut can, mut other) = (0, 0);
    ok!(cuDeviceCanAccessPeer(out(&mut can), 0, 1));
    assert_eq!(can, 1);
    ok!(cuDeviceCanAccessPeer(out(&mut can), 0, 0));
    assert_eq!(can, 0);
    ok!(cuDevicePrimaryCtxRetain(out(&mut other), 1));
    ok!(cuCtxEnablePeerAccess(other, 0));
    fails!(PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(other, 0));
    fails!(INVALID_DEVICE, cuCtxEnablePeerAccess(turn.context, 0));
    ok!(cuCtxDisablePeerAccess(other));
    fails!(PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(other));
    ok!(cuDevicePrimaryCtxRelease_v2(1));
}

#[test]
fn limits_have_defaults_and_bounds() {
    let _turn = turn();
    let mut value = 0;
    ok!(cuCtxGetLimit(out(&mut value), 0));
    assert_eq!(value, 1024);
    ok!(cuCtxSetLimit(0, 4096));
    ok!(cuCtxGetLimit(out(&mut value), 0));
    assert_eq!(value, 4096);
    fails!(UNSUPPORTED_LIMIT, cuCtxGetLimit(out(&mut value), 77));
}

#[test]
fn names_of_errors_and_of_functions() {
    let _guard = boot();
    let mut place = 0;
    ok!(cuGetErrorName(Status::ILLEGAL_ADDRESS, out(&mut place)));
    let name = unsafe { CStr::from_ptr(place as *const c_char) };
    assert_eq!(name.to_str(), Ok("CUDA_ERROR_ILLEGAL_ADDRESS"));
    ok!(cuGetErrorString(Status::OUT_OF_MEMORY, out(&mut place)));
    let words = unsafe { CStr::from_ptr(place as *const c_char) };
    assert_eq!(words.to_str(), Ok("out of memory"));
    fails!(
        INVALID_VALUE,
        cuGetErrorName(Status(12345), out(&mut place))
    );
    let mut found = 7;
    let name = text("cuMemAlloc");
    let status = out(&mut found);
    ok!(cuGetProcAddress_v2(
        In::new(name.as_ptr()),
        out(&mut place),
        12_000,
        0,
        status
    ));
    assert_eq!((place, found), (cuMemAlloc_v2 as *const () as usize, 0));
    let name = text("cuNothing");
    ok!(cuGetProcAddress_v2(
        In::new(name.as_ptr()),
        out(&mut place),
        12_000,
        0,
        status
    ));
    assert_eq!((place, found), (0, 1));
    fails!(NOT_FOUND, cuGetExportTable(out(&mut place), none()));
}
