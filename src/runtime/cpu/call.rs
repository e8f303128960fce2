//! The calling conventions of kernels and comparators, which are those of XLA's CPU runtime.
//!
//! The compiler's side is `llvm/abi_cpu.rs`; both follow cpu-bundle.md section 5.
#![allow(unsafe_code, reason = "calls machine code")]

use std::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::base::Result;
use crate::runtime::cpu::pool::Pool;

/// Numbers along x, y and z.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dim3 {
    x: u64,
    y: u64,
    z: u64,
}

/// One buffer of a kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelArg {
    /// First byte.
    pub data: *mut u8,
    /// Bytes.
    pub size: u64,
}

#[repr(C)]
struct CallFrame {
    workgroups: *const Dim3,
    workgroup: *const Dim3,
    count: u64,
    args: *const KernelArg,
}

/// A kernel: null on success, anything else is a failure.
pub type KernelFn = unsafe extern "C" fn(*const c_void) -> *const c_void;

/// A comparator: writes whether the left element goes before the right one.
pub type ComparatorFn = unsafe extern "C" fn(
    result: *mut bool,
    run_options: *const c_void,
    operands: *const *const u8,
    *const c_void,
    *const c_void,
    *const c_void,
);

/// Arguments that may be read by all threads; what the kernel does with the memory is its own.
struct Args<'a>(&'a [KernelArg]);

// SAFETY: only the addresses are shared; kernels of one launch are made not to race.
unsafe impl Sync for Args<'_> {}

/// Runs every workgroup of a launch; false when one of them reports a failure.
///
/// # Safety
/// `kernel` follows the convention, takes these arguments, and each argument is memory that the
/// kernel may use for as long as the call lasts.
pub unsafe fn launch(
    kernel: KernelFn,
    workgroups: [u64; 3],
    args: &[KernelArg],
    pool: &Pool,
) -> Result<bool> {
    let counts = Dim3 {
        x: workgroups[0],
        y: workgroups[1],
        z: workgroups[2],
    };
    let total = counts.x * counts.y * counts.z;
    if total == 1 {
        // SAFETY: the caller's promise.
        return Ok(unsafe { call(kernel, &counts, Dim3 { x: 0, y: 0, z: 0 }, args) });
    }
    let shared = Args(args);
    let failed = AtomicBool::new(false);
    pool.run(total, &|task| {
        let shared = &shared;
        if failed.load(Ordering::Relaxed) {
            return;
        }
        let workgroup = Dim3 {
            x: task % counts.x,
            y: task / counts.x % counts.y,
            z: task / counts.x / counts.y,
        };
        // SAFETY: the caller's promise; workgroups of a launch may run at the same time.
        if !unsafe { call(kernel, &counts, workgroup, shared.0) } {
            failed.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(!failed.into_inner())
}

/// # Safety
/// As for [`launch`].
unsafe fn call(kernel: KernelFn, counts: &Dim3, workgroup: Dim3, args: &[KernelArg]) -> bool {
    let frame = CallFrame {
        workgroups: counts,
        workgroup: &raw const workgroup,
        count: args.len() as u64,
        args: args.as_ptr(),
    };
    // SAFETY: the caller's promise; the frame lives until the kernel returns.
    unsafe { kernel((&raw const frame).cast()) }.is_null()
}

/// Whether the left elements go before the right ones; operands are left, right, left, right, ...
///
/// # Safety
/// `comparator` follows the convention and takes that many operands of the right types.
pub unsafe fn goes_before(comparator: ComparatorFn, operands: &[*const u8]) -> bool {
    let mut result = 0u8;
    let null = std::ptr::null();
    // SAFETY: the caller's promise; the result is one byte that the comparator sets to 0 or 1.
    unsafe {
        comparator(
            (&raw mut result).cast(),
            null,
            operands.as_ptr(),
            null,
            null,
            null,
        )
    };
    result != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_has_the_documented_layout() {
        assert_eq!(size_of::<Dim3>(), 24);
        assert_eq!(size_of::<KernelArg>(), 16);
        assert_eq!(size_of::<CallFrame>(), 32);
        assert_eq!(std::mem::offset_of!(CallFrame, workgroups), 0);
        assert_eq!(std::mem::offset_of!(CallFrame, workgroup), 8);
        assert_eq!(std::mem::offset_of!(CallFrame, count), 16);
        assert_eq!(std::mem::offset_of!(CallFrame, args), 24);
        assert_eq!(std::mem::offset_of!(KernelArg, size), 8);
    }

    #[test]
    fn every_workgroup_is_called_with_its_number() {
        unsafe extern "C" fn mark(frame: *const c_void) -> *const c_void {
            // SAFETY: `launch` passes a call frame with one argument of 24 bytes.
            unsafe {
                let frame = &*frame.cast::<CallFrame>();
                let (n, i) = (&*frame.workgroups, &*frame.workgroup);
                let at = i.x + n.x * (i.y + n.y * i.z);
                *(*frame.args).data.add(at as usize) += 1 + i.z as u8;
                if (*frame.args).size == 24 {
                    std::ptr::null()
                } else {
                    (frame as *const CallFrame).cast()
                }
            }
        }
        let pool = Pool::new(2).unwrap();
        let mut marks = [0u8; 24];
        let arg = KernelArg {
            data: marks.as_mut_ptr(),
            size: 24,
        };
        // SAFETY: `mark` writes one byte of the 24 for each workgroup.
        assert!(unsafe { launch(mark, [2, 3, 4], &[arg], &pool) }.unwrap());
        let wanted: Vec<u8> = (0..24).map(|i| 1 + i / 6).collect();
        assert_eq!(marks.as_slice(), wanted);
        let arg = KernelArg { size: 23, ..arg };
        // SAFETY: as above.
        assert!(!unsafe { launch(mark, [1, 1, 1], &[arg], &pool) }.unwrap());
    }
}
