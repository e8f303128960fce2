//! Memory: what is allocated, copied, filled and known of an address.

use super::*;
use crate::simulator::driver::pointer::*;
use crate::simulator::driver::pool::*;
use crate::simulator::driver::transfer::DEVICE;
use crate::simulator::driver::transfer::HOST;
use crate::simulator::driver::transfer::unwritten;
use crate::simulator::driver::types::AccessDesc;
use crate::simulator::driver::types::AllocationProp;
use crate::simulator::driver::types::Copy2d;
use crate::simulator::driver::types::Copy3d;
use crate::simulator::driver::types::Location;
use crate::simulator::driver::types::PoolProps;
use crate::simulator::driver::virtual_memory::*;

#[test]
fn copies_go_round() {
    let _turn = turn();
    let values: Vec<u32> = (0..1000).collect();
    let first = upload(&values);
    let second = alloc(4000);
    ok!(cuMemcpyDtoD_v2(second, first, 4000));
    assert_eq!(download::<u32>(second, 1000), values);
    ok!(cuMemcpy(second + 4, first, 400));
    assert_eq!(download::<u32>(second + 4, 100), values[..100]);
    // A plain copy takes the program's own memory too.
    let mut here = [0_u32; 4];
    ok!(cuMemcpy(here.as_mut_ptr() as u64, first + 40, 16));
    assert_eq!(here, [10, 11, 12, 13]);
    ok!(cuMemFree_v2(first));
    ok!(cuMemFree_v2(second));
    fails!(INVALID_VALUE, cuMemFree_v2(second));
    ok!(cuMemFree_v2(0));
}

#[test]
fn what_nobody_wrote_is_told_when_it_is_copied_out() {
    let _turn = turn();
    let driver = crate::simulator::driver::state::driver().expect("it is ready");
    let find = |address, bytes| {
        let (_, report) = unwritten(driver, address, bytes)?;
        let place = report.allocation.as_ref().expect("a place");
        assert!(report.to_string().contains(&place.label), "{report}");
        Some((place.offset, place.length))
    };
    let (first, second) = (upload(&[7_u32; 25]), alloc(400));
    assert_eq!(find(first, 100), None);
    assert_eq!(find(second, 400), Some((0, 400)));
    ok!(cuMemcpyDtoD_v2(second, first, 100));
    ok!(cuMemsetD8_v2(second + 200, 1, 200));
    assert_eq!(find(second, 400), Some((100, 400)));
    assert_eq!(find(second + 150, 250), Some((150, 400)));
    assert_eq!(find(second + 200, 200), None);
    // A copy takes over what nobody wrote.
    ok!(cuMemcpyDtoD_v2(first + 40, second + 80, 40));
    assert_eq!(find(first, 100), Some((60, 100)));
}

#[test]
fn copies_stay_within_memory() {
    let _turn = turn();
    let address = alloc(64);
    let here = [0_u8; 128];
    let place = here.as_ptr() as u64;
    fails!(INVALID_VALUE, cuMemcpyHtoD_v2(address, place, 65));
    fails!(INVALID_VALUE, cuMemcpyHtoD_v2(address + 1, place, 64));
    fails!(INVALID_VALUE, cuMemcpyHtoD_v2(0, place, 1));
    fails!(INVALID_VALUE, cuMemcpyDtoH_v2(0, address, 1));
    fails!(INVALID_VALUE, cuMemcpyDtoD_v2(place, address, 4));
    fails!(INVALID_VALUE, cuMemcpy(address + 60, place, 8));
    ok!(cuMemcpyHtoD_v2(address, 0, 0));
    fails!(INVALID_VALUE, cuMemsetD32_v2(address, 7, 17));
    fails!(INVALID_VALUE, cuMemsetD32_v2(address + 2, 7, 1));
    ok!(cuMemFree_v2(address));
}

#[test]
fn fills_have_widths_and_pitches() {
    let _turn = turn();
    let address = alloc(64);
    ok!(cuMemsetD8_v2(address, 1, 64));
    ok!(cuMemsetD16_v2(address, 0x0203, 2));
    ok!(cuMemsetD32_v2(address + 4, 0x0405_0607, 1));
    ok!(cuMemsetD2D8_v2(address + 16, 16, 9, 3, 3));
    let bytes = download::<u8>(address, 64);
    assert_eq!(bytes[..9], [3, 2, 3, 2, 7, 6, 5, 4, 1]);
    assert_eq!(bytes[16..20], [9, 9, 9, 1]);
    assert_eq!(bytes[48..52], [9, 9, 9, 1]);
    fails!(INVALID_VALUE, cuMemsetD2D8_v2(address, 2, 9, 3, 3));
    ok!(cuMemFree_v2(address));
}

#[test]
fn boxes_are_copied() {
    let _turn = turn();
    let (mut address, mut pitch) = (0, 0);
    ok!(cuMemAllocPitch_v2(
        out(&mut address),
        out(&mut pitch),
        12,
        4,
        4
    ));
    assert_eq!(pitch, 512);
    let here: Vec<u8> = (0..48).collect();
    let copy = Copy2d {
        src_type: HOST,
        src_host: here.as_ptr() as u64,
        src_pitch: 12,
        dst_type: DEVICE,
        dst_device: address,
        dst_pitch: pitch,
        width: 12,
        height: 4,
        ..Copy2d::default()
    };
    ok!(cuMemcpy2D_v2(input(&copy)));
    assert_eq!(download::<u8>(address + 2 * 512, 12), here[24..36]);
    let mut back = [0_u8; 8];
    let copy = Copy3d {
        src_type: DEVICE,
        src_device: address,
        src_pitch: pitch,
        src_height: 2,
        src_x: 4,
        src_y: 1,
        dst_type: HOST,
        dst_host: back.as_mut_ptr() as u64,
        dst_pitch: 4,
        dst_height: 1,
        width: 4,
        height: 1,
        depth: 2,
        ..Copy3d::default()
    };
    ok!(cuMemcpy3D_v2(input(&copy)));
    assert_eq!(back, [16, 17, 18, 19, 40, 41, 42, 43]);
    let bad = Copy3d {
        src_pitch: 3,
        height: 2,
        ..copy
    };
    fails!(INVALID_VALUE, cuMemcpy3D_v2(input(&bad)));
    ok!(cuMemFree_v2(address));
}

#[test]
fn addresses_tell_what_they_are() {
    let turn = turn();
    let address = alloc(100);
    let (mut number, mut wide, mut size) = (0_u32, 0_u64, 0_usize);
    let place = Out::from_address(&raw mut number as usize);
    ok!(cuPointerGetAttribute(place, 2, address + 5));
    assert_eq!(number, 2);
    ok!(cuPointerGetAttribute(out(&mut wide), 1, address));
    assert_eq!(wide, turn.context as u64);
    ok!(cuMemGetAddressRange_v2(
        out(&mut wide),
        out(&mut size),
        address + 99
    ));
    assert_eq!((wide, size), (address, 100));
    fails!(
        NOT_FOUND,
        cuMemGetAddressRange_v2(out(&mut wide), out(&mut size), address + 100)
    );
    let mut pinned = 0;
    ok!(cuMemHostAlloc(out(&mut pinned), 64, 1));
    ok!(cuPointerGetAttribute(place, 2, pinned));
    assert_eq!(number, 1);
    ok!(cuMemHostGetDevicePointer_v2(out(&mut wide), pinned, 0));
    assert_eq!(wide, pinned);
    fails!(INVALID_VALUE, cuMemFree_v2(pinned));
    ok!(cuMemFreeHost(pinned));
    // Memory of the program is no pointer of ours; asked for many things at once, it says so.
    let here = 5_u64;
    let unknown = &raw const here as u64;
    fails!(INVALID_VALUE, cuPointerGetAttribute(place, 2, unknown));
    let mut answers = [7_u64; 2];
    let places = [
        out(&mut answers[0]),
        Out::from_address(&raw mut answers[1] as usize),
    ];
    ok!(cuPointerGetAttributes(
        2,
        list(&[2_u32, 11]),
        list(&places),
        unknown
    ));
    assert_eq!((answers[0] as u32, answers[1]), (0, 0));
    ok!(cuMemFree_v2(address));
}

#[test]
fn host_memory_is_registered_once() {
    let _turn = turn();
    let here = [1_u32, 2, 3, 4];
    let place = here.as_ptr() as u64;
    ok!(cuMemHostRegister_v2(place, 16, 0));
    fails!(
        HOST_MEMORY_ALREADY_REGISTERED,
        cuMemHostRegister_v2(place + 8, 8, 0)
    );
    ok!(cuMemHostUnregister(place));
    fails!(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(place));
}

#[test]
fn memory_is_counted() {
    let _turn = turn();
    let (mut before, mut after, mut total) = (0, 0, 0);
    ok!(cuMemGetInfo_v2(out(&mut before), out(&mut total)));
    // More than this machine has, which costs nothing until it is touched.
    let address = alloc(48 << 30);
    ok!(cuMemGetInfo_v2(out(&mut after), out(&mut total)));
    assert_eq!(before - after, 48 << 30);
    let mut more = 0;
    fails!(OUT_OF_MEMORY, cuMemAlloc_v2(out(&mut more), 48 << 30));
    fails!(INVALID_VALUE, cuMemAlloc_v2(out(&mut more), 0));
    ok!(cuMemsetD8_v2(address + (40 << 30), 3, 100));
    ok!(cuMemFree_v2(address));
}

#[test]
fn pools_count_what_they_give() {
    let _turn = turn();
    let (mut pool, mut used, mut address) = (0, 0_u64, 0);
    ok!(cuDeviceGetDefaultMemPool(out(&mut pool), 0));
    ok!(cuMemAllocAsync(out(&mut address), 1000, 0));
    ok!(cuMemPoolGetAttribute(pool, 7, out(&mut used)));
    assert_eq!(used, 1000);
    ok!(cuMemFreeAsync(address, 0));
    ok!(cuMemPoolGetAttribute(pool, 7, out(&mut used)));
    assert_eq!(used, 0);
    ok!(cuMemPoolGetAttribute(pool, 8, out(&mut used)));
    assert!(used >= 1000);
    let mut threshold = 1_u64 << 33;
    ok!(cuMemPoolSetAttribute(pool, 4, out(&mut threshold)));
    ok!(cuMemPoolGetAttribute(pool, 4, out(&mut used)));
    assert_eq!(used, 1 << 33);
    fails!(INVALID_VALUE, cuMemFreeAsync(address, 0));
    fails!(INVALID_VALUE, cuMemPoolDestroy(pool));
}

#[test]
fn virtual_memory_is_one_piece_at_two_addresses() {
    let _turn = turn();
    let location = Location {
        kind: Location::DEVICE,
        id: 0,
    };
    let prop = AllocationProp {
        kind: 1,
        location,
        ..AllocationProp::default()
    };
    let access = AccessDesc { location, flags: 3 };
    let mut unit = 0;
    ok!(cuMemGetAllocationGranularity(
        out(&mut unit),
        input(&prop),
        0
    ));
    let (mut base, mut handle) = (0, 0);
    ok!(cuMemAddressReserve(out(&mut base), 4 * unit, 0, 0, 0));
    fails!(
        INVALID_VALUE,
        cuMemCreate(out(&mut handle), 100, input(&prop), 0)
    );
    ok!(cuMemCreate(out(&mut handle), 2 * unit, input(&prop), 0));
    ok!(cuMemMap(base, 2 * unit, 0, handle, 0));
    fails!(
        INVALID_VALUE,
        cuMemMap(base + unit as u64, unit, 0, handle, 0)
    );
    // Mapped, but nobody may look yet.
    fails!(INVALID_VALUE, cuMemsetD8_v2(base, 1, 4));
    ok!(cuMemSetAccess(base, 2 * unit, input(&access), 1));
    let other = base + 2 * unit as u64;
    ok!(cuMemMap(other, 2 * unit, 0, handle, 0));
    ok!(cuMemSetAccess(other, 2 * unit, input(&access), 1));
    // A fill across two mappings side by side, the second of which shows the first again.
    ok!(cuMemsetD8_v2(base, 5, 4 * unit));
    ok!(cuMemsetD8_v2(base + 3, 6, 1));
    assert_eq!(download::<u8>(other, 5), [5, 5, 5, 6, 5]);
    let mut flags = 0;
    ok!(cuMemGetAccess(out(&mut flags), input(&location), base + 10));
    assert_eq!(flags, 3);
    fails!(
        NOT_SUPPORTED,
        cuMemExportToShareableHandle(Out::null(), handle, 1, 0)
    );
    fails!(INVALID_VALUE, cuMemAddressFree(base, 4 * unit));
    ok!(cuMemUnmap(base, 2 * unit));
    ok!(cuMemUnmap(other, 2 * unit));
    ok!(cuMemRelease(handle));
    fails!(INVALID_VALUE, cuMemRelease(handle));
    ok!(cuMemAddressFree(base, 4 * unit));
}

#[test]
fn managed_memory_is_seen_from_both_sides() {
    let _turn = turn();
    let mut address = 0;
    fails!(INVALID_VALUE, cuMemAllocManaged(out(&mut address), 64, 0));
    ok!(cuMemAllocManaged(out(&mut address), 64, 1));
    unsafe { (address as *mut u32).write(77) };
    assert_eq!(download::<u32>(address, 1), [77]);
    ok!(cuMemPrefetchAsync(address, 64, 0, 0));
    ok!(cuMemAdvise(address, 64, 1, 0));
    fails!(INVALID_VALUE, cuMemPrefetchAsync(address, 65, 0, 0));
    ok!(cuMemFree_v2(address));
}

#[test]
fn copies_that_reach_round_the_end_of_memory_are_refused() {
    let _turn = turn();
    let address = alloc(4096);
    // Rows so far apart that the distance to the last one does not fit 64 bits.
    let copy = Copy2d {
        src_type: 2,
        src_device: address,
        src_pitch: 1 << 61,
        dst_type: 2,
        dst_device: address,
        dst_pitch: 16,
        width: 16,
        height: 9,
        ..Copy2d::default()
    };
    fails!(INVALID_VALUE, cuMemcpy2D_v2(input(&copy)));
    fails!(INVALID_VALUE, cuMemsetD2D8_v2(address, 1 << 61, 1, 16, 9));
    ok!(cuMemsetD2D8_v2(address, 64, 1, 16, 9));
}

#[test]
fn ranges_that_reach_round_the_end_are_refused() {
    let _turn = turn();
    let mut address = 0;
    ok!(cuMemAllocManaged(out(&mut address), 4096, 1));
    fails!(INVALID_VALUE, cuMemAdvise(address, usize::MAX, 1, 0));
    ok!(cuMemAdvise(address, 4096, 1, 0));
    fails!(INVALID_VALUE, cuMemAdvise(address, 4096, 7, 0));
    fails!(INVALID_VALUE, cuMemPrefetchAsync(address, usize::MAX, 0, 0));
    ok!(cuMemFree_v2(address));
}

#[test]
fn memory_that_is_not_there_cannot_be_registered() {
    let _turn = turn();
    fails!(INVALID_VALUE, cuMemHostRegister_v2(0xdead_beef_0000, 64, 0));
    let there = [0_u8; 100];
    ok!(cuMemHostRegister_v2(there.as_ptr() as u64, 100, 0));
    ok!(cuMemHostUnregister(there.as_ptr() as u64));
}

#[test]
fn a_pool_that_was_destroyed_is_no_pool() {
    let _turn = turn();
    let props = PoolProps {
        kind: 1,
        handle_types: 0,
        location: Location { kind: 1, id: 0 },
        security: 0,
        max_size: 0,
        usage: 0,
        reserved: [0; 54],
    };
    let (mut pool, mut address) = (0, 0);
    ok!(cuMemPoolCreate(out(&mut pool), input(&props)));
    ok!(cuMemAllocFromPoolAsync(out(&mut address), 64, pool, 0));
    ok!(cuMemPoolDestroy(pool));
    fails!(INVALID_VALUE, cuMemPoolDestroy(pool));
    fails!(INVALID_VALUE, cuDeviceSetMemPool(0, pool));
    // What it gave is still the program's.
    ok!(cuMemFreeAsync(address, 0));
}
