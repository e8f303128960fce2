//! The edge to C: pointers that the caller vouches for, and the shape of every entry point.

#![allow(
    unsafe_code,
    reason = "the pointers of a C interface are read and written here"
)]

use std::ffi::CStr;
use std::ffi::c_char;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::simulator::driver::state;
use crate::simulator::driver::status::Status;

/// What a function inside the driver gives back.
pub(super) type Answer<T = ()> = Result<T, Status>;

/// A handle as C sees it: a pointer that is never followed.
pub(super) type Handle = usize;

/// A device address.
pub(super) type Address = u64;

/// A pointer to something the caller wants written.
///
/// The entry points are `unsafe`: whoever calls one vouches that each pointer is null or good for
/// what the interface says is written through it. That is what the methods rely on.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// A pointer that the caller gave as a number.
    pub(super) fn from_address(address: usize) -> Self {
        Self(address as *mut T)
    }
    /// A pointer to a variable of the caller's, who uses it while the variable is there.
    pub(super) fn to(place: &mut T) -> Self {
        Self(place)
    }
    /// No pointer.
    pub(super) fn null() -> Self {
        Self(std::ptr::null_mut())
    }
    /// The address.
    pub(super) fn address(self) -> u64 {
        self.0 as u64
    }
    /// Whether the caller gave none.
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }
    /// An error when the caller gave none.
    pub(super) fn check(self) -> Answer {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    /// Writes; null is an error.
    pub(super) fn put(self, value: T) -> Answer {
        self.check()?;
        self.put_if(value);
        Ok(())
    }
    /// Writes unless null.
    pub(super) fn put_if(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so good for one write, as the caller of the entry point vouches.
            unsafe { self.0.write_unaligned(value) };
        }
    }
    /// Writes element `index` of an array.
    pub(super) fn put_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller of the entry point vouches for the array's length.
            unsafe { self.0.add(index).write_unaligned(value) };
        }
    }
    /// The same place as another type.
    pub(super) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

impl<T: Copy> Out<T> {
    /// What stands there now; null is an error.
    pub(super) fn get(self) -> Answer<T> {
        self.check()?;
        // SAFETY: not null, and the interface has the caller fill it in.
        Ok(unsafe { self.0.read_unaligned() })
    }
    /// The same pointer, for reading.
    pub(super) fn input(self) -> In<T> {
        In(self.0)
    }
}

impl Out<c_char> {
    /// Writes a text with its end, cut to `length` bytes.
    pub(super) fn put_text(self, text: &str, length: usize) -> Answer {
        self.check()?;
        if length == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let kept = text.len().min(length - 1);
        for (index, byte) in text.bytes().take(kept).enumerate() {
            self.put_at(index, byte as c_char);
        }
        self.put_at(kept, 0);
        Ok(())
    }
}

/// A pointer to something the caller filled in. See [`Out`] for what the methods rely on.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> In<T> {
    /// The pointer that the caller gave.
    pub(super) fn new(pointer: *const T) -> Self {
        Self(pointer)
    }
    /// The address.
    pub(super) fn address(self) -> u64 {
        self.0 as u64
    }
    /// Whether the caller gave none.
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }
    /// The same place as another type.
    pub(super) fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }
    /// The place `bytes` further on.
    pub(super) fn byte_add(self, bytes: usize) -> Self {
        In(self.0.wrapping_byte_add(bytes))
    }
}

impl<T: Copy> In<T> {
    /// The value; null is an error.
    pub(super) fn get(self) -> Answer<T> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, so good for one read, as the caller of the entry point vouches.
        Ok(unsafe { self.0.read_unaligned() })
    }
    /// `count` values; null is an error unless there are none.
    pub(super) fn array(self, count: usize) -> Answer<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let mut values = Vec::new();
        // No list that is there has more elements than memory has room for.
        let room = values.try_reserve_exact(count);
        room.map_err(|_| Status::INVALID_VALUE)?;
        for index in 0..count {
            // SAFETY: the caller of the entry point vouches for `count` elements.
            values.push(unsafe { self.0.add(index).read_unaligned() });
        }
        Ok(values)
    }
}

impl In<u8> {
    /// `length` bytes as they lie there.
    pub(super) fn bytes<'a>(self, length: usize) -> &'a [u8] {
        if self.0.is_null() || length == 0 {
            return &[];
        }
        // SAFETY: the caller of the entry point vouches for `length` bytes that stay while it runs.
        unsafe { std::slice::from_raw_parts(self.0, length) }
    }
}

impl In<c_char> {
    /// The text up to its end; null or bytes that are no text are an error.
    pub(super) fn text<'a>(self) -> Answer<&'a str> {
        std::str::from_utf8(self.text_bytes()?).map_err(|_| Status::INVALID_VALUE)
    }
    /// The bytes up to the end of the text.
    pub(super) fn text_bytes<'a>(self) -> Answer<&'a [u8]> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not null, so a text with its end, as the caller of the entry point vouches.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// Name, address, and name and type of each argument of an entry point.
#[cfg(test)]
pub(super) type Signature = (&'static str, usize, Vec<(&'static str, &'static str)>);

/// Runs an entry point's body: no panic gets out, and every call can be traced.
pub(super) fn enter(name: &str, body: impl FnOnce() -> Answer) -> Status {
    let answer = catch_unwind(AssertUnwindSafe(body));
    let status = match answer {
        Ok(Ok(())) => Status::SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => Status::UNKNOWN,
    };
    trace(name, status.name());
    status
}

/// Tells of a call and its result, if every call is to be told.
pub(super) fn trace(name: &str, result: &str) {
    if state::tracing() {
        let thread = std::thread::current();
        let line = format!("sim: {:?} {name} -> {result}\n", thread.id());
        // Nothing can be done about a closed stderr.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Declares entry points of the driver, and a list of them for `cuGetProcAddress`.
///
/// The `stream` form adds the variant for the per-thread default stream: the last argument is the
/// stream, and null means the thread's own.
macro_rules! api {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::simulator::driver::status::Status {
                $crate::simulator::driver::abi::enter(
                    stringify!($name),
                    || -> $crate::simulator::driver::abi::Answer { $body },
                )
            }
        )*

        /// The entry points of this file.
        pub(super) fn names() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($name), $name as *const () as usize)),*]
        }

        /// The entry points of this file with what they are given.
        #[cfg(test)]
        pub(super) fn signatures() -> Vec<$crate::simulator::driver::abi::Signature> {
            vec![$((
                stringify!($name),
                $name as *const () as usize,
                vec![$((stringify!($arg), stringify!($ty))),*],
            )),*]
        }
    };
}

/// Declares further names of entry points that are called just like another one.
macro_rules! alias {
    ($($name:ident = $target:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::simulator::driver::status::Status {
                // SAFETY: the caller vouches for the same pointers.
                unsafe { $target($($arg),*) }
            }
        )*

        /// The further names of this file.
        pub(super) fn aliases() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($name), $name as *const () as usize)),*]
        }
    };
}

/// Declares the variants of entry points that take null as the thread's own default stream.
macro_rules! per_thread {
    ($($name:ident = $target:ident($($arg:ident: $ty:ty),* ; $stream:ident $(; $after:ident: $after_ty:ty)*);)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty,)* $stream: $crate::simulator::driver::abi::Handle $(, $after: $after_ty)*)
                -> $crate::simulator::driver::status::Status {
                // SAFETY: the caller vouches for the same pointers.
                unsafe { $target($($arg,)* $crate::simulator::driver::abi::own_default($stream) $(, $after)*) }
            }
        )*

        /// The per-thread variants of this file.
        pub(super) fn per_thread_names() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($name), $name as *const () as usize)),*]
        }
    };
}

pub(super) use alias;
pub(super) use api;
pub(super) use per_thread;

/// The default stream's handle that every program shares.
pub(super) const STREAM_LEGACY: Handle = 1;
/// The handle of a thread's own default stream.
pub(super) const STREAM_PER_THREAD: Handle = 2;

/// Null taken as the thread's own default stream.
pub(super) fn own_default(stream: Handle) -> Handle {
    if stream == 0 {
        STREAM_PER_THREAD
    } else {
        stream
    }
}
