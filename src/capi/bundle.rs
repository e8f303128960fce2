//! Bundles as C sees them: reading them, and what they say of themselves.

use std::ffi::CStr;
use std::ffi::CString;
use std::ffi::OsStr;
use std::ffi::c_char;
use std::ffi::c_void;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;
use std::sync::Arc;
use std::sync::OnceLock;

use crate::capi::border::c_string;
use crate::capi::border::check_size;
use crate::capi::border::free;
use crate::capi::border::given;
use crate::capi::border::given_mut;
use crate::capi::border::guarded;
use crate::capi::border::list;
use crate::capi::border::misuse;
use crate::capi::border::quiet;
use crate::capi::error::Error;
use crate::capi::error::Failure;
use crate::driver::calling;
use crate::driver::calling::Interface;
use crate::driver::calling::Leaf;

/// `xla_aot_bundle`
pub struct Bundle {
    pub(super) bundle: calling::Bundle,
    pub(super) interface: Arc<Interface>,
    name: CString,
    target: CString,
    description: CString,
    arguments: Vec<Told>,
    results: Vec<Told>,
    imports: Vec<(CString, bool)>,
    jax_prefix: OnceLock<Vec<u8>>,
}

/// An array with what C reads of it.
struct Told {
    name: CString,
    type_name: CString,
    dims: Vec<i64>,
    dynamic: Vec<u8>,
    minor_to_major: Vec<i64>,
    path: Vec<i64>,
    leaf: Leaf,
}

/// `xla_aot_array`
#[repr(C)]
pub struct Array {
    pub(super) struct_size: usize,
    pub(super) name: *const c_char,
    pub(super) type_name: *const c_char,
    pub(super) ty: i32,
    pub(super) element_bits: i32,
    pub(super) rank: usize,
    pub(super) dims: *const i64,
    pub(super) dynamic: *const u8,
    pub(super) minor_to_major: *const i64,
    pub(super) bytes: usize,
    pub(super) parameter: usize,
    pub(super) path_length: usize,
    pub(super) path: *const i64,
    pub(super) donated: i32,
}

/// Where the first version of `xla_aot_array` ends.
const FIRST_ARRAY: usize = std::mem::offset_of!(Array, donated) + size_of::<i32>();

fn signed(numbers: &[usize]) -> Vec<i64> {
    numbers.iter().map(|&n| n as i64).collect()
}

impl Told {
    fn new(leaf: &Leaf) -> Self {
        let shape = &leaf.shape;
        let rank = 0..shape.rank();
        Self {
            name: c_string(&leaf.name),
            type_name: c_string(shape.ty.name()),
            dims: signed(&shape.dims),
            dynamic: rank.map(|d| shape.is_dynamic_dim(d).into()).collect(),
            minor_to_major: signed(&shape.layout_or_default().minor_to_major),
            path: signed(&leaf.index),
            leaf: leaf.clone(),
        }
    }

    fn array(&self, struct_size: usize) -> Array {
        Array {
            struct_size,
            name: self.name.as_ptr(),
            type_name: self.type_name.as_ptr(),
            ty: self.leaf.shape.ty.number(),
            element_bits: self.leaf.shape.ty.bit_width_in_memory() as i32,
            rank: self.dims.len(),
            dims: self.dims.as_ptr(),
            dynamic: self.dynamic.as_ptr(),
            minor_to_major: self.minor_to_major.as_ptr(),
            bytes: self.leaf.whole().byte_size(),
            parameter: self.leaf.parameter,
            path_length: self.path.len(),
            path: self.path.as_ptr(),
            donated: self.leaf.donated.into(),
        }
    }
}

impl Bundle {
    fn read(bytes: &[u8]) -> Result<*mut Self, Failure> {
        let bundle = calling::read(bytes)?;
        let interface = Interface::of(&bundle);
        let imports = calling::imports(&bundle).into_iter();
        Ok(Box::into_raw(Box::new(Self {
            name: c_string(&bundle.executable.name),
            target: c_string(&calling::target(&bundle)),
            description: c_string(&calling::describe(&bundle, bytes)?),
            arguments: interface.arguments.iter().map(Told::new).collect(),
            results: interface.results.iter().map(Told::new).collect(),
            imports: imports
                .map(|(name, ours)| (c_string(&name), ours))
                .collect(),
            jax_prefix: OnceLock::new(),
            interface: Arc::new(interface),
            bundle,
        })))
    }
}

/// Reads a file.
///
/// # Safety
/// `path` is text that ends with a zero byte, `bundle` takes a pointer; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_open(
    path: *const c_char,
    bundle: *mut *mut Bundle,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (path, out) = unsafe { (given("path", path)?, given_mut("bundle", bundle)?) };
        // SAFETY: the caller's promise.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
        let bytes = std::fs::read(path).map_err(|error| {
            let path = path.to_string_lossy();
            Failure::File(format!("cannot read `{path}`: {error}"))
        })?;
        *out = Bundle::read(&bytes)?;
        Ok(())
    })
}

/// Reads bytes.
///
/// # Safety
/// `bytes` points to that many bytes, `bundle` takes a pointer; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_read(
    bytes: *const c_void,
    size: usize,
    bundle: *mut *mut Bundle,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { list("bytes", bytes.cast::<u8>(), size)? };
        // SAFETY: the caller's promise.
        let out = unsafe { given_mut("bundle", bundle)? };
        *out = Bundle::read(bytes)?;
        Ok(())
    })
}

/// Gives up a bundle.
///
/// # Safety
/// `bundle` is a bundle of this library, or null; it is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_free(bundle: *mut Bundle) {
    // SAFETY: the caller's promise; bundles are boxes.
    unsafe { free(bundle) };
}

/// Asks a bundle that may be null.
///
/// # Safety
/// The pointer is null or a bundle that lives.
unsafe fn ask<T>(bundle: *const Bundle, otherwise: T, ask: impl FnOnce(&Bundle) -> T) -> T
where
    T: Copy,
{
    // SAFETY: the caller's promise.
    match unsafe { bundle.as_ref() } {
        Some(bundle) => quiet(otherwise, || ask(bundle)),
        None => otherwise,
    }
}

/// The module's name.
///
/// # Safety
/// `bundle` is a bundle of this library, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_name(bundle: *const Bundle) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, c"".as_ptr(), |b| b.name.as_ptr()) }
}

/// `cpu` or `cuda`.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_platform(bundle: *const Bundle) -> *const c_char {
    let name = |b: &Bundle| match b.bundle.platform().name() {
        "cpu" => c"cpu".as_ptr(),
        _ => c"cuda".as_ptr(),
    };
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, c"".as_ptr(), name) }
}

/// A triple or a compute capability.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_target(bundle: *const Bundle) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, c"".as_ptr(), |b| b.target.as_ptr()) }
}

/// Everything, as JSON.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_describe(bundle: *const Bundle) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, c"".as_ptr(), |b| b.description.as_ptr()) }
}

/// Devices that run it together.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_devices(bundle: *const Bundle) -> usize {
    let devices = |b: &Bundle| {
        let topology = b.bundle.executable.topology();
        topology.map_or(0, |topology| topology.devices())
    };
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, 0, devices) }
}

/// Array leaves of the parameters.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_argument_count(bundle: *const Bundle) -> usize {
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, 0, |b| b.arguments.len()) }
}

/// Array leaves of the result.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_result_count(bundle: *const Bundle) -> usize {
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, 0, |b| b.results.len()) }
}

/// Fills in one of some arrays.
///
/// # Safety
/// `bundle` is a bundle or null; `array` has as many bytes as it says, or is null.
unsafe fn tell(
    bundle: *const Bundle,
    kind: &str,
    all: impl FnOnce(&Bundle) -> &[Told],
    number: usize,
    array: *mut Array,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let all = all(unsafe { given("bundle", bundle)? });
        if array.is_null() {
            return Err(misuse("`array` is null"));
        }
        // SAFETY: every structure begins with its size.
        let size = unsafe { array.cast::<usize>().read() };
        check_size("xla_aot_array", size, FIRST_ARRAY)?;
        let told = all.get(number).ok_or_else(|| {
            misuse(format!(
                "there is no {kind} {number}, the bundle has {}",
                all.len()
            ))
        })?;
        let told = told.array(size);
        let known = size.min(size_of::<Array>());
        // SAFETY: the caller's structure has at least `known` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const told).cast::<u8>(), array.cast(), known)
        };
        Ok(())
    })
}

/// What an argument is.
///
/// # Safety
/// `bundle` is a bundle of this library, `array` a structure of the header; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_argument(
    bundle: *const Bundle,
    number: usize,
    array: *mut Array,
) -> *mut Error {
    // SAFETY: the caller's promise.
    unsafe { tell(bundle, "argument", |b| &b.arguments, number, array) }
}

/// What a result is.
///
/// # Safety
/// As [`xla_aot_bundle_argument`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_result(
    bundle: *const Bundle,
    number: usize,
    array: *mut Array,
) -> *mut Error {
    // SAFETY: the caller's promise.
    unsafe { tell(bundle, "result", |b| &b.results, number, array) }
}

/// Functions that the program calls by name.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_import_count(bundle: *const Bundle) -> usize {
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, 0, |b| b.imports.len()) }
}

/// The name of one, or null.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_import(
    bundle: *const Bundle,
    number: usize,
) -> *const c_char {
    let name = |b: &Bundle| b.imports.get(number).map_or(null(), |i| i.0.as_ptr());
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, null(), name) }
}

/// Whether one comes with the library.
///
/// # Safety
/// As [`xla_aot_bundle_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_import_is_provided(
    bundle: *const Bundle,
    number: usize,
) -> i32 {
    let ours = |b: &Bundle| b.imports.get(number).is_some_and(|i| i.1).into();
    // SAFETY: the caller's promise.
    unsafe { ask(bundle, 0, ours) }
}

/// What goes before its bytes for jaxlib.
///
/// # Safety
/// `bundle` is a bundle of this library, `prefix` takes a pointer and `size` a number; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_bundle_jax_prefix(
    bundle: *const Bundle,
    prefix: *mut *const c_void,
    size: *mut usize,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let bundle = unsafe { given("bundle", bundle)? };
        // SAFETY: the caller's promise.
        let (prefix, size) = unsafe { (given_mut("prefix", prefix)?, given_mut("size", size)?) };
        let found = calling::jax_prefix(&bundle.bundle)?;
        let found = bundle.jax_prefix.get_or_init(|| found);
        (*prefix, *size) = (found.as_ptr().cast(), found.len());
        Ok(())
    })
}
