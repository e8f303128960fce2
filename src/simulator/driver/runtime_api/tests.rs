//! The runtime's entry points, called as a C program would.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "every call of a test passes pointers to its own variables"
)]

use std::ffi::CStr;

use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::runtime_api::device::*;
use crate::simulator::driver::runtime_api::errors::*;
use crate::simulator::driver::runtime_api::launch::*;
use crate::simulator::driver::runtime_api::memory::*;
use crate::simulator::driver::runtime_api::registry::*;
use crate::simulator::driver::runtime_api::stream::*;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::tests::CODE;
use crate::simulator::driver::tests::turn;

const OK: Status = Status::SUCCESS;

/// A wrapper around the tests' PTX, as a program carries it.
fn wrapper(image: &[u8]) -> [usize; 3] {
    [0x1_4662_43b1, image.as_ptr() as usize, 0]
}

/// A fat binary with one entry of PTX.
fn fat_binary() -> Vec<u8> {
    let mut payload = CODE.as_bytes().to_vec();
    payload.push(0);
    payload.resize(payload.len().next_multiple_of(8), 0);
    let mut image = 0xba55_ed50_u32.to_le_bytes().to_vec();
    image.extend(1_u16.to_le_bytes());
    image.extend(16_u16.to_le_bytes());
    image.extend((payload.len() as u64 + 0x40).to_le_bytes());
    let mut header = vec![0_u8; 0x40];
    header[0] = 1;
    header[4] = 0x40;
    header[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header[0x1c] = 80;
    image.extend(header);
    image.extend(payload);
    image
}

#[test]
fn registered_kernels_run_on_memory_of_the_runtime() {
    let _turn = turn();
    let image = fat_binary();
    let image = wrapper(&image);
    let (host, stranger) = (0x1000, 0x2000);
    let fine = unsafe {
        let binary = __cudaRegisterFatBinary(In::new(image.as_ptr().cast()));
        let name = In::new(c"bump".as_ptr());
        __cudaRegisterFunction(binary, host, name, name, -1, 0, 0, 0, 0, 0);
        __cudaRegisterFatBinaryEnd(binary);
        binary
    };
    let (mut address, mut stream, mut value) = (0_u64, 0, 0_u32);
    let one = Dim3 { x: 1, y: 1, z: 1 };
    let block = Dim3 { x: 64, y: 1, z: 1 };
    let wide = Dim3 {
        x: 4096,
        y: 1,
        z: 1,
    };
    unsafe {
        assert_eq!(cudaSetDevice(0), OK);
        assert_eq!(cudaSetDevice(64), Status::INVALID_DEVICE);
        assert_eq!(cudaMalloc(Out::to(&mut address), 4), OK);
        assert_eq!(cudaMemset(address, 0, 4), OK);
        assert_eq!(cudaStreamCreate(Out::to(&mut stream)), OK);
        let params = [&raw const address as usize];
        let params = params.as_ptr() as usize;
        assert_eq!(cudaLaunchKernel(host, one, block, params, 0, stream), OK);
        assert_eq!(
            cudaLaunchKernel(stranger, one, block, params, 0, stream),
            INVALID_FUNCTION
        );
        assert_eq!(
            cudaLaunchKernel(host, one, wide, params, 0, stream),
            INVALID_CONFIGURATION
        );
        let target = &raw mut value as u64;
        assert_eq!(cudaMemcpyAsync(target, address, 4, 2, stream), OK);
        assert_eq!(
            cudaMemcpyAsync(target, address, 4, 5, stream),
            INVALID_DIRECTION
        );
        assert_eq!(cudaStreamSynchronize(stream), OK);
        assert_eq!(value, 64);
        let mut attributes = FunctionAttributes::default();
        assert_eq!(cudaFuncGetAttributes(Out::to(&mut attributes), host), OK);
        assert_eq!((attributes.threads, attributes.ptx_version), (1024, 80));
        let mut known = PointerAttributes::default();
        assert_eq!(cudaPointerGetAttributes(Out::to(&mut known), address), OK);
        assert_eq!(
            (known.kind, known.on_device, known.on_host),
            (2, address, 0)
        );
        assert_eq!(cudaPointerGetAttributes(Out::to(&mut known), target), OK);
        assert_eq!((known.kind, known.on_host), (0, target));
        assert_eq!(cudaStreamDestroy(stream), OK);
        assert_eq!(cudaFree(address), OK);
        assert_eq!(cudaFree(0), OK);
        __cudaUnregisterFatBinary(fine);
        assert_eq!(
            cudaLaunchKernel(host, one, block, params, 0, 0),
            INVALID_FUNCTION
        );
    }
    assert_eq!(cudaPeekAtLastError(), INVALID_FUNCTION);
    assert_eq!(cudaGetLastError(), INVALID_FUNCTION);
    assert_eq!(cudaGetLastError(), OK);
    assert_eq!(unsafe { cudaDeviceReset() }, OK);
}

#[test]
fn machine_code_is_refused_when_it_is_used() {
    let _turn = turn();
    let mut image = fat_binary();
    // An entry of machine code instead of PTX.
    image[16] = 2;
    let image = wrapper(&image);
    unsafe {
        let binary = __cudaRegisterFatBinary(In::new(image.as_ptr().cast()));
        let name = In::new(c"bump".as_ptr());
        __cudaRegisterFunction(binary, 0x3000, name, name, -1, 0, 0, 0, 0, 0);
        let mut function = 0;
        let status = cudaGetFuncBySymbol(Out::to(&mut function), 0x3000);
        assert_eq!(status, Status::NO_BINARY_FOR_GPU);
        __cudaUnregisterFatBinary(binary);
    }
    cudaGetLastError();
}

#[test]
fn launches_take_what_was_pushed_last() {
    let grid = Dim3 { x: 2, y: 3, z: 4 };
    let mut got = Dim3::default();
    unsafe {
        assert_eq!(__cudaPushCallConfiguration(grid, grid, 8, 0), OK);
        let pop = |got: &mut Dim3| {
            __cudaPopCallConfiguration(Out::to(got), Out::null(), Out::null(), Out::null())
        };
        assert_eq!(pop(&mut got), OK);
        assert_eq!(got, grid);
        assert_eq!(pop(&mut got), MISSING_CONFIGURATION);
    }
    cudaGetLastError();
}

#[test]
fn codes_have_the_names_of_the_runtime() {
    let name = |code| unsafe { CStr::from_ptr(cudaGetErrorName(Status(code))) };
    assert_eq!(name(0), c"cudaSuccess");
    assert_eq!(name(1), c"cudaErrorInvalidValue");
    assert_eq!(name(2), c"cudaErrorMemoryAllocation");
    assert_eq!(name(9), c"cudaErrorInvalidConfiguration");
    assert_eq!(name(98), c"cudaErrorInvalidDeviceFunction");
    assert_eq!(name(218), c"cudaErrorInvalidPtx");
    assert_eq!(name(700), c"cudaErrorIllegalAddress");
    assert_eq!(name(719), c"cudaErrorLaunchFailure");
    assert_eq!(name(12345), c"unrecognized error code");
    let text = unsafe { CStr::from_ptr(cudaGetErrorString(Status(700))) };
    assert_eq!(text, c"an illegal memory access was encountered");
}
