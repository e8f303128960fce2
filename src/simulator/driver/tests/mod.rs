//! The entry points, called as a C program would.
//!
//! The driver is one for the process, so the tests take turns.

#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "every call of a test passes pointers to its own variables"
)]

mod devices;
mod graphs;
mod kernels;
mod memory;
mod streams;
mod wild;

use std::ffi::CString;
use std::sync::Mutex;
use std::sync::MutexGuard;

use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::context::*;
use crate::simulator::driver::copy::*;
use crate::simulator::driver::fill::*;
use crate::simulator::driver::launch::*;
use crate::simulator::driver::memory::*;
use crate::simulator::driver::module::*;
use crate::simulator::driver::state::initialize_with;
use crate::simulator::driver::status::Status;

static TURN: Mutex<()> = Mutex::new(());

/// PTX of the kernels that the tests launch.
pub(super) const CODE: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry vadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
}
.visible .entry bump(.param .u64 a)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [a];
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
.visible .entry dec(.param .u64 handle, .param .u64 a)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [a];
  atom.global.add.u32 %r1, [%rd2], -1;
  setp.gt.u32 %p1, %r1, 1;
  selp.u32 %r2, 1, 0, %p1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry stop()
{
  trap;
}
.visible .global .align 4 .b8 table[64];
";

/// Calls an entry point that must succeed.
macro_rules! ok {
    ($call:expr) => {
        assert_eq!(
            unsafe { $call },
            crate::simulator::driver::status::Status::SUCCESS,
            stringify!($call)
        )
    };
}

/// Calls an entry point that must fail in that way.
macro_rules! fails {
    ($status:ident, $call:expr) => {
        assert_eq!(
            unsafe { $call },
            crate::simulator::driver::status::Status::$status,
            stringify!($call)
        )
    };
}

pub(super) use fails;
pub(super) use ok;

/// A place for a value to be written to.
fn out<T>(value: &mut T) -> Out<T> {
    Out::from_address(value as *mut T as usize)
}

/// A value to be read.
fn input<T>(value: &T) -> In<T> {
    In::new(value)
}

/// A list to be read.
fn list<T>(values: &[T]) -> In<T> {
    In::new(values.as_ptr())
}

fn none<T>() -> In<T> {
    In::new(std::ptr::null())
}

fn text(text: &str) -> CString {
    CString::new(text).expect("no zeros")
}

/// A test's turn, with the primary context of device 0 current.
pub(super) struct Turn {
    context: usize,
    _guard: MutexGuard<'static, ()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        unsafe {
            cuDevicePrimaryCtxReset_v2(0);
            cuDevicePrimaryCtxRelease_v2(0);
            cuCtxSetCurrent(0);
        }
    }
}

fn boot() -> MutexGuard<'static, ()> {
    let guard = TURN.lock().unwrap_or_else(|poison| poison.into_inner());
    let settings = |name: &str| {
        let text = match name {
            "XLA_AOT_SIM_DEVICES" => "2",
            "XLA_AOT_SIM_TARGET" => "h100_sxm",
            _ => return None,
        };
        Some(text.to_owned())
    };
    initialize_with(settings).expect("the target ships");
    guard
}

pub(super) fn turn() -> Turn {
    let guard = boot();
    let mut context = 0;
    ok!(cuDevicePrimaryCtxRetain(out(&mut context), 0));
    ok!(cuCtxSetCurrent(context));
    Turn {
        context,
        _guard: guard,
    }
}

fn alloc(bytes: usize) -> u64 {
    let mut address = 0;
    ok!(cuMemAlloc_v2(out(&mut address), bytes));
    address
}

/// Device memory with those values.
fn upload<T: Copy>(values: &[T]) -> u64 {
    let address = alloc(size_of_val(values));
    ok!(cuMemcpyHtoD_v2(
        address,
        values.as_ptr() as u64,
        size_of_val(values)
    ));
    address
}

fn download<T: Copy + Default>(address: u64, count: usize) -> Vec<T> {
    let mut values = vec![T::default(); count];
    ok!(cuMemcpyDtoH_v2(
        values.as_mut_ptr() as u64,
        address,
        count * size_of::<T>()
    ));
    values
}

fn module() -> usize {
    let code = text(CODE);
    let mut module = 0;
    ok!(cuModuleLoadData(
        out(&mut module),
        In::new(code.as_ptr().cast())
    ));
    module
}

fn function(module: usize, name: &str) -> usize {
    let name = text(name);
    let mut function = 0;
    ok!(cuModuleGetFunction(
        out(&mut function),
        module,
        In::new(name.as_ptr())
    ));
    function
}

/// The array of addresses of arguments that launches take.
fn params(values: &[*const u64]) -> usize {
    values.as_ptr() as usize
}

/// Launches `bump` on a word.
fn bump(function: usize, stream: usize, address: u64) -> Status {
    let arguments = [&raw const address];
    unsafe { cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params(&arguments), 0) }
}
