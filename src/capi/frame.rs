//! The structures of XLA's typed FFI, version 0.3, as `xla_aot_ffi.h` declares them.
//!
//! Each begins with its size, up to the last field that its version counts, and a list of extensions,
//! of which this library knows none.

use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_void;

use crate::capi::host_api::Api;
use crate::capi::host_api::Context;
use crate::capi::host_api::FfiError;

/// A function that programs call: null for success, else an error that it made.
pub(super) type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut FfiError;

/// Number of the stage in which a program runs.
pub(super) const EXECUTE: c_int = 3;

/// Kinds of arguments, results and attributes.
pub(super) const BUFFER: c_int = 1;
pub(super) const ARRAY: c_int = 1;
pub(super) const DICTIONARY: c_int = 2;
pub(super) const SCALAR: c_int = 3;
pub(super) const TEXT: c_int = 4;

/// An array.
#[repr(C)]
pub(super) struct Buffer {
    pub struct_size: usize,
    pub extension: *mut c_void,
    pub ty: c_int,
    pub data: *mut c_void,
    pub rank: i64,
    pub dims: *mut i64,
}

/// Arguments, or results.
#[repr(C)]
pub(super) struct List {
    pub struct_size: usize,
    pub extension: *mut c_void,
    pub size: i64,
    pub kinds: *mut c_int,
    pub items: *mut *mut c_void,
}

/// Attributes, sorted by name.
#[repr(C)]
pub(super) struct AttributeList {
    pub struct_size: usize,
    pub extension: *mut c_void,
    pub size: i64,
    pub kinds: *mut c_int,
    pub names: *mut *mut Span,
    pub values: *mut *mut c_void,
}

/// Text, which need not end with a zero byte.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub data: *const c_char,
    pub size: usize,
}

/// A number.
#[repr(C)]
pub(super) struct Scalar {
    pub ty: c_int,
    pub value: *mut c_void,
}

/// Numbers.
#[repr(C)]
pub(super) struct Array {
    pub ty: c_int,
    pub size: usize,
    pub data: *mut c_void,
}

/// A call.
#[repr(C)]
pub(super) struct CallFrame {
    pub struct_size: usize,
    pub extension: *mut c_void,
    pub api: *const Api,
    pub context: *mut Context,
    pub stage: c_int,
    pub arguments: List,
    pub results: List,
    pub attributes: AttributeList,
    /// Set by a function that goes on after it has returned.
    pub future: *mut c_void,
}

impl CallFrame {
    /// The size that its version counts: up to the attributes.
    pub(super) const SIZE: usize = std::mem::offset_of!(Self, future);
}
