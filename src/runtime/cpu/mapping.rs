//! Pages of memory: for code, with changing rights, and for large buffers.
#![allow(unsafe_code, reason = "maps memory and changes its rights")]

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;

/// Rights of finished pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read only.
    Read,
    /// Read and execute.
    Execute,
}

/// Anonymous zeroed pages of this process, unmapped when dropped.
pub struct Mapping {
    start: *mut u8,
    size: usize,
}

// SAFETY: the mapping is owned memory like a `Box<[u8]>`; nothing about it is tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: shared access only reads the address and the size.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Bytes of a page.
    pub fn page_size() -> usize {
        // SAFETY: sysconf has no preconditions.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096)
    }

    /// Maps at least `size` bytes, readable and writable.
    ///
    /// # Errors
    /// `XA8004` when the system has no memory to give.
    pub fn new(size: usize) -> Result<Self> {
        let size = size.next_multiple_of(Self::page_size());
        // SAFETY: a new private mapping at an address of the system's choice touches no other memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            let message = format!("cannot map {size} bytes of memory: {error}");
            return Err(Diagnostic::error(codes::RUN, message));
        }
        Ok(Self {
            start: start.cast(),
            size,
        })
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.start as usize
    }

    /// Bytes mapped.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes. Only before [`Mapping::protect`] takes the right to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `size` bytes of initialised memory, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.size) }
    }

    /// Asks for 2 MiB pages.
    pub fn advise_huge(&self) {
        // SAFETY: advice about our own pages; it cannot fail in a way that matters.
        unsafe { libc::madvise(self.start.cast(), self.size, libc::MADV_HUGEPAGE) };
    }

    /// Gives pages their final rights.
    ///
    /// # Errors
    /// `XA8003` when the system forbids it.
    pub fn protect(&mut self, offset: usize, size: usize, rights: Rights) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        let flags = match rights {
            Rights::Read => libc::PROT_READ,
            Rights::Execute => libc::PROT_READ | libc::PROT_EXEC,
        };
        let range = &mut self.bytes_mut()[offset..offset + size];
        let start = range.as_mut_ptr();
        if rights == Rights::Execute {
            make_code_visible(start, size);
        }
        // SAFETY: the range lies in our mapping, and nothing borrows it any more.
        let failed = unsafe { libc::mprotect(start.cast(), size, flags) } != 0;
        if failed {
            let error = std::io::Error::last_os_error();
            let message = format!("cannot make memory {rights:?}: {error}");
            return Err(Diagnostic::error(codes::LOAD, message)
                .note("some systems forbid running code made at run time"));
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours, and whoever holds an address of it holds the mapping too.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}

/// Cleans the data cache and empties the instruction cache over a range, where the two are not
/// kept equal by the processor.
#[cfg(target_arch = "aarch64")]
fn make_code_visible(start: *mut u8, size: usize) {
    let begin = start as usize;
    let end = begin + size;
    let types: u64;
    // SAFETY: CTR_EL0 may be read by every program on Linux.
    unsafe { std::arch::asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack)) };
    let data_line = 4usize << ((types >> 16) & 0xf);
    let code_line = 4usize << (types & 0xf);
    for line in (begin & !(data_line - 1)..end).step_by(data_line) {
        // SAFETY: cleaning a line of our own memory changes no value.
        unsafe { std::arch::asm!("dc cvau, {}", in(reg) line, options(nostack)) };
    }
    // SAFETY: a barrier.
    unsafe { std::arch::asm!("dsb ish", options(nostack)) };
    for line in (begin & !(code_line - 1)..end).step_by(code_line) {
        // SAFETY: dropping a line from the instruction cache changes no value.
        unsafe { std::arch::asm!("ic ivau, {}", in(reg) line, options(nostack)) };
    }
    // SAFETY: barriers.
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack)) };
}

/// Caches are kept equal by the processor.
#[cfg(not(target_arch = "aarch64"))]
fn make_code_visible(_start: *mut u8, _size: usize) {}
