//! The floating-point environment kernels run in: denormals are zero, on input and output.
//!
//! XLA's CPU client sets it on the caller and on every pool thread (cpu-bundle.md section 5).
#![allow(
    unsafe_code,
    reason = "reads and writes the floating-point control register"
)]

/// Denormals are zero while it lives; dropping it restores what was set before.
pub struct DenormalsAreZero {
    before: u64,
    // The register belongs to the thread, so the guard must not leave it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl DenormalsAreZero {
    /// Switches denormals off for this thread.
    pub fn set() -> Self {
        let before = read();
        write(before | FLUSH);
        Self {
            before,
            _thread: std::marker::PhantomData,
        }
    }
}

impl Drop for DenormalsAreZero {
    fn drop(&mut self) {
        write(self.before);
    }
}

/// Flush-to-zero and denormals-are-zero of MXCSR.
#[cfg(target_arch = "x86_64")]
const FLUSH: u64 = 1 << 15 | 1 << 6;

#[cfg(target_arch = "x86_64")]
fn read() -> u64 {
    let mut value = 0u32;
    // SAFETY: stores four bytes at the address of a local variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
    u64::from(value)
}

#[cfg(target_arch = "x86_64")]
fn write(value: u64) {
    let value = (value & 0xffff_ffff) as u32;
    // SAFETY: loads four bytes; every value written here was read before or has two valid bits set.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
}

/// FZ of FPCR.
#[cfg(target_arch = "aarch64")]
const FLUSH: u64 = 1 << 24;

#[cfg(target_arch = "aarch64")]
fn read() -> u64 {
    let value: u64;
    // SAFETY: FPCR may be read by every program.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack)) };
    value
}

#[cfg(target_arch = "aarch64")]
fn write(value: u64) {
    // SAFETY: FPCR may be written by every program; only a defined bit is added.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) value, options(nostack)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const FLUSH: u64 = 0;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read() -> u64 {
    0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write(_value: u64) {}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn denormals_vanish_only_inside() {
        let halve = |x: f32| std::hint::black_box(x) * std::hint::black_box(0.5);
        assert!(halve(f32::MIN_POSITIVE) > 0.0);
        {
            let _guard = DenormalsAreZero::set();
            assert_eq!(halve(f32::MIN_POSITIVE), 0.0);
        }
        assert!(halve(f32::MIN_POSITIVE) > 0.0);
    }
}
