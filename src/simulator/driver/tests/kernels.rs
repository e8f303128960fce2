//! Modules, libraries, launches, and what faults do.

use std::ffi::c_char;

use super::*;
use crate::simulator::driver::library::*;
use crate::simulator::driver::link::*;
use crate::simulator::driver::occupancy::*;
use crate::simulator::driver::stream_api::*;
use crate::simulator::driver::types::AttributeValue;
use crate::simulator::driver::types::LaunchAttribute;
use crate::simulator::driver::types::LaunchConfig;

#[test]
fn a_kernel_adds_vectors() {
    let _turn = turn();
    let module = module();
    let add = function(module, "vadd");
    let count = 1000_u32;
    let first: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let second: Vec<f32> = first.iter().map(|x| 2.0 * x).collect();
    let (a, b, c) = (upload(&first), upload(&second), alloc(4000));
    let arguments = [
        &raw const a,
        &raw const b,
        &raw const c,
        (&raw const count).cast(),
    ];
    ok!(cuLaunchKernel(
        add,
        4,
        1,
        1,
        256,
        1,
        1,
        0,
        0,
        params(&arguments),
        0
    ));
    ok!(cuCtxSynchronize());
    let sums = download::<f32>(c, 1000);
    assert!(sums.iter().zip(&first).all(|(sum, x)| *sum == 3.0 * x));
    // The same through a buffer of arguments.
    ok!(cuMemsetD8_v2(c, 0, 4000));
    let mut buffer = [0_u8; 28];
    for (place, value) in buffer.chunks_mut(8).zip([a, b, c, u64::from(count)]) {
        place.copy_from_slice(&value.to_le_bytes()[..place.len()]);
    }
    let size = buffer.len();
    let extra = [1, buffer.as_ptr() as usize, 2, &raw const size as usize, 0];
    ok!(cuLaunchKernel(
        add,
        4,
        1,
        1,
        256,
        1,
        1,
        0,
        0,
        0,
        extra.as_ptr() as usize
    ));
    assert_eq!(download::<f32>(c, 1000), sums);
    ok!(cuModuleUnload(module));
    fails!(INVALID_HANDLE, cuModuleUnload(module));
}

#[test]
fn launches_are_checked() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let address = upload(&[0_u32]);
    let arguments = [&raw const address];
    let given = params(&arguments);
    let launch = |grid: [u32; 3], block: [u32; 3], shared: u32, params: usize| unsafe {
        let ([x, y, z], [a, b, c]) = (grid, block);
        cuLaunchKernel(bump_it, x, y, z, a, b, c, shared, 0, params, 0)
    };
    assert_eq!(launch([0, 1, 1], [1; 3], 0, given), Status::INVALID_VALUE);
    assert_eq!(
        launch([1; 3], [2000, 1, 1], 0, given),
        Status::INVALID_VALUE
    );
    assert_eq!(launch([1; 3], [64, 32, 1], 0, given), Status::INVALID_VALUE);
    assert_eq!(
        launch([1, 70_000, 1], [1; 3], 0, given),
        Status::INVALID_VALUE
    );
    assert_eq!(launch([1; 3], [1; 3], 0, 0), Status::INVALID_VALUE);
    assert_eq!(launch([1; 3], [1; 3], 50_000, given), Status::INVALID_VALUE);
    ok!(cuFuncSetAttribute(bump_it, 8, 50_000));
    assert_eq!(launch([1; 3], [1; 3], 50_000, given), Status::SUCCESS);
    fails!(INVALID_VALUE, cuFuncSetAttribute(bump_it, 8, 300_000));
    assert_eq!(bump(77, 0, address), Status::INVALID_HANDLE);
    assert_eq!(download::<u32>(address, 1), [1]);
}

#[test]
fn launch_attributes_shape_the_launch() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let address = upload(&[0_u32]);
    let arguments = [&raw const address];
    let mut attribute = LaunchAttribute {
        id: 4,
        pad: 0,
        value: AttributeValue::default(),
    };
    attribute.value.words[..3].copy_from_slice(&[2, 1, 1]);
    let launch = |attribute: &LaunchAttribute, grid: u32| {
        let config = LaunchConfig {
            grid: [grid, 1, 1],
            block: [1; 3],
            shared: 0,
            stream: 0,
            attributes: attribute as *const LaunchAttribute as usize,
            count: 1,
        };
        unsafe { cuLaunchKernelEx(input(&config), bump_it, params(&arguments), 0) }
    };
    assert_eq!(launch(&attribute, 4), Status::SUCCESS);
    assert_eq!(launch(&attribute, 3), Status::INVALID_CLUSTER_SIZE);
    attribute.value.words[0] = 16;
    assert_eq!(launch(&attribute, 16), Status::INVALID_CLUSTER_SIZE);
    ok!(cuFuncSetAttribute(bump_it, 14, 1));
    assert_eq!(launch(&attribute, 16), Status::SUCCESS);
    // Programmatic serialization changes nothing here, a priority neither.
    for id in [6, 8] {
        let other = LaunchAttribute { id, ..attribute };
        assert_eq!(launch(&other, 1), Status::SUCCESS);
    }
    let cooperative = LaunchAttribute { id: 2, ..attribute };
    assert_eq!(
        launch(&cooperative, 1 << 20),
        Status::COOPERATIVE_LAUNCH_TOO_LARGE
    );
    ok!(cuCtxSynchronize());
    assert!(download::<u32>(address, 1)[0] > 0);
}

#[test]
fn faults_stay_in_their_context() {
    let turn = turn();
    let module = module();
    let bump_it = function(module, "bump");
    let address = upload(&[0_u32]);
    let mut other = 0;
    ok!(cuDevicePrimaryCtxRetain(out(&mut other), 1));
    // The launch itself is fine; what comes after it is not.
    assert_eq!(bump(bump_it, 0, 64), Status::SUCCESS);
    fails!(ILLEGAL_ADDRESS, cuCtxSynchronize());
    fails!(ILLEGAL_ADDRESS, cuMemAlloc_v2(Out::null(), 4));
    fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(0));
    assert_eq!(bump(bump_it, 0, address), Status::ILLEGAL_ADDRESS);
    ok!(cuCtxSetCurrent(other));
    ok!(cuCtxSynchronize());
    ok!(cuMemFree_v2(alloc(4)));
    ok!(cuCtxSetCurrent(turn.context));
    ok!(cuDevicePrimaryCtxReset_v2(0));
    ok!(cuCtxSynchronize());
    ok!(cuDevicePrimaryCtxRelease_v2(1));
}

#[test]
fn traps_are_launch_failures() {
    let _turn = turn();
    let stop = function(module(), "stop");
    ok!(cuLaunchKernel(stop, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
    let answer = unsafe { cuCtxSynchronize() };
    assert!(answer.is_sticky(), "{}", answer.name());
    assert_eq!(unsafe { cuCtxSynchronize() }, answer);
}

#[test]
fn images_that_cannot_run_say_why() {
    let _turn = turn();
    let mut module = 0;
    let machine_code = b"\x7fELF\x02\x01\x01\x00";
    let mut log = [1_u8; 4096];
    let options = [5_u32, 6];
    let mut values = [log.as_mut_ptr() as usize, log.len()];
    fails!(
        NO_BINARY_FOR_GPU,
        cuModuleLoadDataEx(
            out(&mut module),
            list(machine_code),
            2,
            list(&options),
            out(&mut values[0])
        )
    );
    let end = log.iter().position(|&byte| byte == 0).expect("an end");
    assert!(String::from_utf8_lossy(&log[..end]).contains("machine code"));
    assert_eq!(values[1], end);
    let foreign = text(&CODE.replace("sm_80", "sm_100a"));
    let image = In::new(foreign.as_ptr().cast());
    fails!(NO_BINARY_FOR_GPU, cuModuleLoadData(out(&mut module), image));
    let broken = text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry BROKEN(((\n");
    let image = In::new(broken.as_ptr().cast());
    fails!(INVALID_PTX, cuModuleLoadData(out(&mut module), image));
    let name = text("/no/such/file");
    fails!(
        FILE_NOT_FOUND,
        cuModuleLoad(out(&mut module), In::new(name.as_ptr()))
    );
}

#[test]
fn functions_and_globals_are_found_by_name() {
    let _turn = turn();
    let module = module();
    let mut place = 0;
    let name = text("nothing");
    fails!(
        NOT_FOUND,
        cuModuleGetFunction(out(&mut place), module, In::new(name.as_ptr()))
    );
    let (mut address, mut bytes) = (0, 0);
    let name = text("table");
    ok!(cuModuleGetGlobal_v2(
        out(&mut address),
        out(&mut bytes),
        module,
        In::new(name.as_ptr())
    ));
    assert_eq!(bytes, 64);
    ok!(cuMemsetD32_v2(address, 9, 16));
    assert_eq!(download::<u32>(address + 60, 1), [9]);
    let mut count = 0;
    ok!(cuModuleGetFunctionCount(out(&mut count), module));
    assert_eq!(count, 4);
    let add = function(module, "vadd");
    let (mut offset, mut size, mut value) = (0, 0, 0);
    ok!(cuFuncGetParamInfo(add, 3, out(&mut offset), out(&mut size)));
    assert_eq!((offset, size), (24, 4));
    fails!(
        INVALID_VALUE,
        cuFuncGetParamInfo(add, 4, out(&mut offset), out(&mut size))
    );
    for (attribute, wanted) in [(0, 1024), (5, 80), (6, 90), (8, 49_152), (9, -1)] {
        ok!(cuFuncGetAttribute(out(&mut value), attribute, add));
        assert_eq!(value, wanted, "attribute {attribute}");
    }
    ok!(cuFuncGetName(out(&mut place), add));
    let name = unsafe { std::ffi::CStr::from_ptr(place as *const c_char) };
    assert_eq!(name.to_str(), Ok("vadd"));
}

#[test]
fn libraries_load_everywhere() {
    let _turn = turn();
    let code = text(CODE);
    let (mut library, mut kernel, mut function, mut value) = (0, 0, 0, 0);
    ok!(cuLibraryLoadData(
        out(&mut library),
        In::new(code.as_ptr().cast()),
        none(),
        Out::null(),
        0,
        none(),
        none(),
        0
    ));
    let name = text("bump");
    ok!(cuLibraryGetKernel(
        out(&mut kernel),
        library,
        In::new(name.as_ptr())
    ));
    ok!(cuKernelGetFunction(out(&mut function), kernel));
    ok!(cuKernelGetAttribute(out(&mut value), 0, kernel, 0));
    assert_eq!(value, 1024);
    let address = upload(&[0_u32]);
    assert_eq!(bump(function, 0, address), Status::SUCCESS);
    // A kernel stands for its function of the context.
    assert_eq!(bump(kernel, 0, address), Status::SUCCESS);
    assert_eq!(download::<u32>(address, 1), [2]);
    ok!(cuLibraryUnload(library));
    assert_eq!(bump(kernel, 0, address), Status::INVALID_HANDLE);
}

#[test]
fn a_text_links_to_itself() {
    let _turn = turn();
    let (mut link, mut image, mut size) = (0, 0, 0);
    ok!(cuLinkCreate_v2(0, none(), Out::null(), out(&mut link)));
    let data = list(CODE.as_bytes());
    ok!(cuLinkAddData_v2(
        link,
        1,
        data,
        CODE.len(),
        none(),
        0,
        none(),
        Out::null()
    ));
    ok!(cuLinkComplete(link, out(&mut image), out(&mut size)));
    let mut module = 0;
    ok!(cuModuleLoadData(
        out(&mut module),
        In::new(image as *const u8)
    ));
    ok!(cuLinkDestroy(link));
    function(module, "vadd");
}

#[test]
fn occupancy_follows_from_the_block() {
    let _turn = turn();
    let add = function(module(), "vadd");
    let (mut count, mut grid, mut block) = (0, 0, 0);
    let place = out(&mut count);
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        place, add, 1024, 0
    ));
    assert_eq!(count, 2);
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        place, add, 256, 100_000
    ));
    assert_eq!(count, 2);
    fails!(
        INVALID_VALUE,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(place, add, 0, 0)
    );
    ok!(cuOccupancyMaxPotentialBlockSize(
        out(&mut grid),
        out(&mut block),
        add,
        0,
        0,
        0
    ));
    assert_eq!(grid * block, 132 * 2048);
}
