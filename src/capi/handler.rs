//! A call of a program as a call frame of XLA's typed FFI, and back.

use std::any::Any;
use std::ffi::c_int;
use std::ffi::c_void;
use std::ptr::null_mut;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::capi::frame;
use crate::capi::frame::AttributeList;
use crate::capi::frame::Buffer;
use crate::capi::frame::CallFrame;
use crate::capi::frame::Handler;
use crate::capi::frame::List;
use crate::capi::frame::Span;
use crate::capi::host_api;
use crate::capi::host_api::Context;
use crate::driver::run::CustomCall;
use crate::shape::ArrayShape;
use crate::wire::ffi_attributes;
use crate::wire::ffi_attributes::Attribute;
use crate::wire::ffi_attributes::Attributes;

/// Makes a call and waits for its end.
///
/// # Errors
/// `XA8004` when the function fails, or the call carries attributes that cannot be read.
///
/// # Safety
/// The function follows the convention.
pub(super) unsafe fn call(handler: Handler, call: &mut CustomCall<'_>) -> Result<()> {
    let target = call.target;
    let attributes = ffi_attributes::read(call.backend_config).ok_or_else(|| {
        let message = format!(
            "the configuration of `{target}` is no dictionary of attributes: `{}`",
            call.backend_config
        );
        Diagnostic::unsupported(codes::RUN, message)
            .help("numbers, truth values, text, arrays and dictionaries of them are read")
    })?;
    let mut kept = Kept::default();
    let operands = call.operands.iter();
    let operands = operands.map(|(shape, bytes)| kept.buffer(shape, bytes.as_ptr().cast_mut()));
    let operands = operands.collect();
    let results = call.results.iter_mut();
    let results = results.map(|(shape, bytes)| kept.buffer(shape, bytes.as_mut_ptr()));
    let results = results.collect();
    let context = Context::default();
    let mut frame = CallFrame {
        struct_size: CallFrame::SIZE,
        extension: null_mut(),
        api: host_api::table(),
        context: (&raw const context).cast_mut(),
        stage: frame::EXECUTE,
        arguments: kept.list(operands),
        results: kept.list(results),
        attributes: kept.attributes(&attributes),
        future: null_mut(),
    };
    // SAFETY: the frame and all it points to live until the function has ended, also when it goes on
    // in the background: `finish` waits for that.
    let error = unsafe { host_api::finish(handler(&raw mut frame), frame.future) };
    match error {
        None => Ok(()),
        Some(error) => {
            let message = format!("`{target}` failed: {error}");
            Err(Diagnostic::error(codes::RUN, message))
        }
    }
}

/// What a frame points to.
#[derive(Default)]
struct Kept(Vec<Box<dyn Any>>);

impl Kept {
    /// Keeps values and gives the address of the first.
    fn all<T: 'static>(&mut self, values: Vec<T>) -> *mut T {
        let mut values = values.into_boxed_slice();
        let first = values.as_mut_ptr();
        self.0.push(Box::new(values));
        first
    }

    fn one<T: 'static>(&mut self, value: T) -> *mut c_void {
        self.all(vec![value]).cast()
    }

    /// Keeps bytes where any number may stand.
    fn aligned(&mut self, bytes: &[u8]) -> *mut c_void {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        self.all(words.collect()).cast()
    }

    fn buffer(&mut self, shape: &ArrayShape, data: *mut u8) -> *mut c_void {
        let dims: Vec<i64> = shape.dims.iter().map(|&d| d as i64).collect();
        let buffer = Buffer {
            struct_size: size_of::<Buffer>(),
            extension: null_mut(),
            ty: shape.ty.number(),
            data: data.cast(),
            rank: dims.len() as i64,
            dims: self.all(dims),
        };
        self.one(buffer)
    }

    fn list(&mut self, buffers: Vec<*mut c_void>) -> List {
        let size = buffers.len();
        List {
            struct_size: size_of::<List>(),
            extension: null_mut(),
            size: size as i64,
            kinds: self.all(vec![frame::BUFFER; size]),
            items: self.all(buffers),
        }
    }

    fn span(&mut self, text: &[u8]) -> Span {
        Span {
            data: self.all(text.to_vec()).cast_const().cast(),
            size: text.len(),
        }
    }

    fn attributes(&mut self, attributes: &Attributes) -> AttributeList {
        let mut kinds: Vec<c_int> = Vec::new();
        let mut names = Vec::new();
        let mut values = Vec::new();
        for (name, attribute) in attributes {
            let span = self.span(name.as_bytes());
            names.push(self.all(vec![span]));
            let (kind, value) = self.attribute(attribute);
            kinds.push(kind);
            values.push(value);
        }
        AttributeList {
            struct_size: size_of::<AttributeList>(),
            extension: null_mut(),
            size: attributes.len() as i64,
            kinds: self.all(kinds),
            names: self.all(names),
            values: self.all(values),
        }
    }

    fn attribute(&mut self, attribute: &Attribute) -> (c_int, *mut c_void) {
        match attribute {
            Attribute::Scalar(ty, bytes) => {
                let value = self.aligned(bytes);
                let ty = ty.number();
                (frame::SCALAR, self.one(frame::Scalar { ty, value }))
            }
            Attribute::Text(text) => {
                let span = self.span(text);
                (frame::TEXT, self.one(span))
            }
            Attribute::Array(ty, bytes) => {
                let array = frame::Array {
                    ty: ty.number(),
                    size: bytes.len() / ty.byte_width(),
                    data: self.aligned(bytes),
                };
                (frame::ARRAY, self.one(array))
            }
            Attribute::Dictionary(attributes) => {
                let list = self.attributes(attributes);
                (frame::DICTIONARY, self.one(list))
            }
        }
    }
}
