//! The kernels and variables that a program carries, as its start-up code registers them.
//!
//! A kernel is known by the address of the host function that stands for it. Its fat binary is
//! loaded when one of its kernels is first asked for.

#![allow(
    unsafe_code,
    non_snake_case,
    reason = "entry points of a C interface have fixed names"
)]

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::Mutex;
use std::sync::OnceLock;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::enter;
use crate::simulator::driver::library::cuLibraryGetGlobal;
use crate::simulator::driver::library::cuLibraryGetKernel;
use crate::simulator::driver::library::cuLibraryLoadData;
use crate::simulator::driver::library::cuLibraryUnload;
use crate::simulator::driver::runtime_api::errors::INVALID_FUNCTION;
use crate::simulator::driver::runtime_api::errors::INVALID_SYMBOL;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;

/// A fat binary.
struct Binary {
    /// Where it lies in the program.
    image: usize,
    /// What loading it gave, once it was tried.
    library: OnceLock<Answer<Handle>>,
}

/// Something of a fat binary: its handle, the address of its name, and what looking it up gave.
struct Member {
    binary: usize,
    name: usize,
    found: OnceLock<Answer<Handle>>,
}

#[derive(Default)]
struct Registry {
    next: usize,
    binaries: BTreeMap<usize, Binary>,
    functions: BTreeMap<usize, Member>,
    variables: BTreeMap<usize, Member>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    next: 1,
    binaries: BTreeMap::new(),
    functions: BTreeMap::new(),
    variables: BTreeMap::new(),
});

impl Registry {
    fn library(&self, binary: usize) -> Answer<Handle> {
        let binary = self.binaries.get(&binary).ok_or(Status::INVALID_HANDLE)?;
        *binary.library.get_or_init(|| {
            let mut library = 0;
            let (image, out) = (In::new(binary.image as *const u8), Out::to(&mut library));
            let none = In::new(std::ptr::null());
            let no_values = In::new(std::ptr::null());
            // SAFETY: the program registered the image, and keeps it until it takes it back.
            unsafe { cuLibraryLoadData(out, image, none, Out::null(), 0, none, no_values, 0) }
                .answer()?;
            Ok(library)
        })
    }
}

/// The kernel that a host function stands for, which launches take.
pub(super) fn kernel(host: usize) -> Answer<Handle> {
    let registry = lock(&REGISTRY);
    let member = registry.functions.get(&host).ok_or(INVALID_FUNCTION)?;
    *member.found.get_or_init(|| {
        let library = registry.library(member.binary)?;
        let mut kernel = 0;
        let name = In::new(member.name as *const c_char);
        // SAFETY: the program registered the name together with its image.
        unsafe { cuLibraryGetKernel(Out::to(&mut kernel), library, name) }
            .answer()
            .map_err(|status| match status {
                Status::NOT_FOUND => INVALID_FUNCTION,
                other => other,
            })?;
        Ok(kernel)
    })
}

/// Address and bytes of the variable that a host variable stands for, in the current context.
pub(super) fn variable(host: usize) -> Answer<(Address, usize)> {
    let registry = lock(&REGISTRY);
    let member = registry.variables.get(&host).ok_or(INVALID_SYMBOL)?;
    let library = registry.library(member.binary)?;
    let (mut address, mut bytes) = (0, 0);
    let name = In::new(member.name as *const c_char);
    // SAFETY: the program registered the name together with its image.
    unsafe { cuLibraryGetGlobal(Out::to(&mut address), Out::to(&mut bytes), library, name) }
        .answer()
        .map_err(|status| match status {
            Status::NOT_FOUND => INVALID_SYMBOL,
            other => other,
        })?;
    Ok((address, bytes))
}

fn member(binary: usize, name: In<c_char>) -> Member {
    Member {
        binary,
        name: name.address() as usize,
        found: OnceLock::new(),
    }
}

/// Takes a fat binary of the program on; gives the handle that names it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinary(image: In<u8>) -> usize {
    let mut handle = 0;
    enter("__cudaRegisterFatBinary", || {
        let mut registry = lock(&REGISTRY);
        // Start-up code takes the handle for a pointer, though it never follows it.
        handle = registry.next * 16;
        registry.next += 1;
        let binary = Binary {
            image: image.address() as usize,
            library: OnceLock::new(),
        };
        registry.binaries.insert(handle, binary);
        Ok(())
    });
    handle
}

/// Says that everything of a fat binary is registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_binary: usize) {}

/// Gives a fat binary back, with all that came from it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaUnregisterFatBinary(handle: usize) {
    enter("__cudaUnregisterFatBinary", || {
        let mut registry = lock(&REGISTRY);
        registry
            .functions
            .retain(|_, member| member.binary != handle);
        registry
            .variables
            .retain(|_, member| member.binary != handle);
        let binary = registry.binaries.remove(&handle);
        let binary = binary.ok_or(Status::INVALID_HANDLE)?;
        match binary.library.into_inner() {
            // SAFETY: no pointers.
            Some(Ok(library)) => unsafe { cuLibraryUnload(library) }.answer(),
            _ => Ok(()),
        }
    });
}

/// Registers a kernel. What the caller says of threads and blocks is for emulation, which is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFunction(
    binary: usize,
    host: usize,
    _device_function: In<c_char>,
    name: In<c_char>,
    _threads: c_int,
    _thread: usize,
    _block: usize,
    _block_dims: usize,
    _grid_dims: usize,
    _warp: usize,
) {
    enter("__cudaRegisterFunction", || {
        lock(&REGISTRY).functions.insert(host, member(binary, name));
        Ok(())
    });
}

/// Registers a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterVar(
    binary: usize,
    host: usize,
    _device_address: usize,
    name: In<c_char>,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    enter("__cudaRegisterVar", || {
        lock(&REGISTRY).variables.insert(host, member(binary, name));
        Ok(())
    });
}

/// Loads what a fat binary holds, when the program wants that early: it is loaded at its first use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaInitModule(_binary: usize) -> c_uint {
    1
}
