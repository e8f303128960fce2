//! Bytes at addresses. Every other part of the simulator checks first and then comes here.
#![allow(unsafe_code, reason = "device addresses are host addresses")]

use std::alloc::Layout;
use std::alloc::alloc_zeroed;
use std::alloc::dealloc;
use std::ptr;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

/// Memory of our own, zero at first; pages nobody touches cost nothing.
pub struct Zeroed {
    block: *mut u8,
    layout: Layout,
    start: u64,
    length: u64,
}

// SAFETY: it is plain memory; whoever reads or writes it goes through the functions below.
unsafe impl Send for Zeroed {}
// SAFETY: as above; concurrent access is as racy as the simulated program is.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    /// `length` bytes at a multiple of `align`, a power of two.
    pub fn new(length: u64, align: u64) -> Option<Self> {
        let align = align.max(16).checked_next_power_of_two()?;
        let total = usize::try_from(length.checked_add(align)?).ok()?;
        // A small alignment asked for keeps large blocks lazily zero, so the rest is done by hand.
        let layout = Layout::from_size_align(total.max(32), 16).ok()?;
        // SAFETY: the layout has at least 32 bytes.
        let block = unsafe { alloc_zeroed(layout) };
        if block.is_null() {
            return None;
        }
        let start = (block as u64).next_multiple_of(align);
        Some(Self {
            block,
            layout,
            start,
            length,
        })
    }
    /// Its first address.
    pub fn address(&self) -> u64 {
        self.start
    }
    /// The `index`-th 64-bit word. An index past the end gives the first word.
    #[inline]
    pub fn word(&self, index: u64) -> &AtomicU64 {
        let index = if (index + 1) * 8 <= self.length {
            index
        } else {
            0
        };
        // SAFETY: the block has at least 32 bytes, the word lies within it, and is aligned.
        unsafe { &*((self.start + index * 8) as *const AtomicU64) }
    }
    /// All of it.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block holds `length` bytes from `start`.
        unsafe { std::slice::from_raw_parts(self.start as *const u8, self.length as usize) }
    }
    /// All of it, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.length as usize) }
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        // SAFETY: the block was allocated with this layout.
        unsafe { dealloc(self.block, self.layout) };
    }
}

/// Copies `into.len()` bytes from `address`, which the caller has checked.
#[inline]
pub fn read(address: u64, into: &mut [u8]) {
    // SAFETY: the caller has found the bytes within an allocation.
    unsafe { ptr::copy(address as *const u8, into.as_mut_ptr(), into.len()) }
}

/// Copies `from` to `address`, which the caller has checked.
#[inline]
pub fn write(address: u64, from: &[u8]) {
    // SAFETY: the caller has found the bytes within an allocation that may be written.
    unsafe { ptr::copy(from.as_ptr(), address as *mut u8, from.len()) }
}

/// Copies `length` bytes between two checked addresses.
#[inline]
pub fn copy(from: u64, to: u64, length: u64) {
    // SAFETY: the caller has found both within allocations.
    unsafe { ptr::copy(from as *const u8, to as *mut u8, length as usize) }
}

/// Plain values that memory holds.
pub trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl<const N: usize> Plain for [u32; N] {}
impl<const N: usize> Plain for [[u32; N]; 32] {}
impl Plain for [u64; 32] {}

/// The value at a checked address.
#[inline(always)]
pub fn get<T: Plain>(address: u64) -> T {
    // SAFETY: the caller has found the bytes within an allocation; any bits are a value.
    unsafe { ptr::read_unaligned(address as *const T) }
}

/// Puts a value at a checked address.
#[inline(always)]
pub fn put<T: Plain>(address: u64, value: T) {
    // SAFETY: the caller has found the bytes within an allocation that may be written.
    unsafe { ptr::write_unaligned(address as *mut T, value) }
}

/// A host slice as the address of its first byte.
#[inline(always)]
pub fn address_of(bytes: &[u8]) -> u64 {
    bytes.as_ptr() as u64
}

/// A mutable host slice as the address of its first byte.
#[inline(always)]
pub fn address_of_mut(bytes: &mut [u8]) -> u64 {
    bytes.as_mut_ptr() as u64
}

macro_rules! update {
    ($name:ident, $atomic:ty, $value:ty) => {
        /// Replaces the value at a checked, aligned address in one step; gives the old one.
        #[inline]
        pub fn $name(address: u64, mut f: impl FnMut($value) -> $value) -> $value {
            // SAFETY: the caller has found the bytes within an allocation, and aligned.
            let cell = unsafe { &*(address as *const $atomic) };
            let mut old = cell.load(Ordering::SeqCst);
            loop {
                let new = f(old);
                match cell.compare_exchange_weak(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(old) => return old,
                    Err(now) => old = now,
                }
            }
        }
    };
}
update!(update8, AtomicU8, u8);
update!(update16, AtomicU16, u16);
update!(update32, AtomicU32, u32);
update!(update64, AtomicU64, u64);

/// Serializes 16-byte atomics, which the host may not have.
static WIDE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Replaces the 16 bytes at a checked, aligned address in one step; gives the old ones.
pub fn update128(address: u64, f: impl FnOnce(u128) -> u128) -> u128 {
    let _held = WIDE.lock().unwrap_or_else(|e| e.into_inner());
    // SAFETY: the caller has found the bytes within an allocation.
    let old = unsafe { ptr::read_unaligned(address as *const u128) };
    // SAFETY: as above.
    unsafe { ptr::write_unaligned(address as *mut u128, f(old)) };
    old
}
