//! Loaded programs as C sees them.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::capi::border::check_size;
use crate::capi::border::free;
use crate::capi::border::given;
use crate::capi::border::given_mut;
use crate::capi::border::guarded;
use crate::capi::border::list;
use crate::capi::border::misuse;
use crate::capi::border::quiet;
use crate::capi::bundle::Bundle;
use crate::capi::error::Error;
use crate::capi::error::Failure;
use crate::capi::memory;
use crate::capi::options::Options;
use crate::driver::calling::Argument;
use crate::driver::calling::Interface;
use crate::driver::calling::Leaf;
use crate::driver::run::LoadOptions;
use crate::driver::run::Session;

/// `xla_aot_program`
pub struct Program {
    session: Session,
    interface: Arc<Interface>,
}

/// `xla_aot_call`
#[repr(C)]
pub struct Call {
    pub(super) struct_size: usize,
    pub(super) argument_count: usize,
    pub(super) arguments: *const *const c_void,
    pub(super) argument_bytes: *const usize,
    pub(super) argument_dims: *const *const i64,
    pub(super) result_count: usize,
    pub(super) results: *mut *mut c_void,
    pub(super) result_bytes: *const usize,
    pub(super) result_dims: *const *mut i64,
}

/// Where the first version of `xla_aot_call` ends.
const FIRST_CALL: usize = std::mem::offset_of!(Call, result_dims) + size_of::<usize>();

/// Checks and loads a bundle.
///
/// # Safety
/// `bundle` and `options` are handles of this library, `program` takes a pointer; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_program_load(
    bundle: *const Bundle,
    options: *const Options,
    program: *mut *mut Program,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (bundle, out) = unsafe { (given("bundle", bundle)?, given_mut("program", program)?) };
        let default = LoadOptions::default();
        // SAFETY: the caller's promise.
        let options = unsafe { options.as_ref() }.map_or(&default, |options| &options.load);
        let session = Session::of(&bundle.bundle, options)?;
        *out = Box::into_raw(Box::new(Program {
            session,
            interface: Arc::clone(&bundle.interface),
        }));
        Ok(())
    })
}

/// Gives up a program.
///
/// # Safety
/// `program` is a program of this library, or null; it is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_program_free(program: *mut Program) {
    // SAFETY: the caller's promise; programs are boxes.
    unsafe { free(program) };
}

/// Threads that work on a run.
///
/// # Safety
/// `program` is a program of this library, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_program_threads(program: *const Program) -> usize {
    // SAFETY: the caller's promise.
    let program = unsafe { program.as_ref() };
    program.map_or(0, |program| quiet(0, || program.session.threads()))
}

/// Runs a program.
///
/// # Safety
/// `program` is a program of this library, `call` a structure of the header whose pointers are as that
/// says; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_program_run(
    program: *const Program,
    call: *mut Call,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let program = unsafe { given("program", program)? };
        // SAFETY: every structure begins with its size.
        let size = *unsafe { given("call", call.cast::<usize>())? };
        check_size("xla_aot_call", size, FIRST_CALL)?;
        // SAFETY: the structure has at least the fields of this one.
        let call = unsafe { given("call", call)? };
        // SAFETY: the caller's promise.
        unsafe { run(program, call) }
    })
}

/// # Safety
/// The call's pointers are as the header says.
unsafe fn run(program: &Program, call: &Call) -> Result<(), Failure> {
    let devices = program.session.topology().devices();
    let count = |what: &str, got: usize, leaves: &[Leaf]| {
        let wanted = leaves.len() * devices;
        (got == wanted)
            .then_some(())
            .ok_or_else(|| misuse(format!("{got} {what}, wanted {wanted}")))
    };
    let interface = &program.interface;
    count("arguments", call.argument_count, &interface.arguments)?;
    count("results", call.result_count, &interface.results)?;
    // SAFETY: the caller's promise.
    unsafe { check_apart(call, interface)? };
    // SAFETY: the caller's promise.
    let arguments = unsafe { arguments(call, interface)? };
    // SAFETY: the caller's promise, and they lie apart.
    let mut results = unsafe { Results::of(call, interface)? };
    let sizes = program
        .session
        .call(interface, &arguments.given(), &mut results.bytes)?;
    results.keep();
    let ours = match call.result_dims.is_null() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { list("result_dims", call.result_dims, call.result_count)? },
    };
    for (&to, sizes) in ours.iter().zip(&sizes) {
        for (d, &size) in sizes.iter().enumerate().filter(|_| !to.is_null()) {
            // SAFETY: the caller has room for as many sizes as the result has dimensions.
            unsafe { to.add(d).write(size as i64) };
        }
    }
    Ok(())
}

/// Refuses results that lie where an argument or another result is.
///
/// # Safety
/// The call's pointers are as the header says.
unsafe fn check_apart(call: &Call, interface: &Interface) -> Result<(), Failure> {
    let (n, m) = (call.argument_count, call.result_count);
    // SAFETY: the caller's promise.
    let arguments = unsafe { list("arguments", call.arguments, n)? };
    // SAFETY: the caller's promise.
    let bytes = unsafe { list("argument_bytes", call.argument_bytes, n)? };
    // SAFETY: the caller's promise.
    let results = unsafe { list("results", call.results.cast_const(), m)? };
    let arguments = arguments.iter().zip(bytes).enumerate();
    let arguments = arguments.map(|(i, (data, &bytes))| (data.addr(), bytes, false, i));
    let sizes = interface.results.iter().cycle();
    let results = results.iter().zip(sizes).enumerate();
    let results = results.map(|(i, (data, leaf))| match data.is_null() {
        true => (0, 0, true, i),
        false => (data.addr(), leaf.whole().byte_size(), true, i),
    });
    let places = arguments.chain(results).filter(|place| place.1 > 0);
    let mut places: Vec<(usize, usize, bool, usize)> = places.collect();
    places.sort_unstable();
    // Where what came before ends, and what that is: of all arrays, and of results alone.
    let (mut all, mut written) = ((0, true, 0), (0, true, 0));
    for (start, bytes, is_result, number) in places {
        let before = match is_result {
            true => all,
            false => written,
        };
        if before.0 > start {
            let name = |(is_result, number)| match is_result {
                true => format!("results[{number}]"),
                false => format!("arguments[{number}]"),
            };
            let [one, other] = [(is_result, number), (before.1, before.2)].map(name);
            return Err(misuse(format!("`{one}` and `{other}` overlap")));
        }
        let own = (start.saturating_add(bytes), is_result, number);
        all = all.max(own);
        if is_result {
            written = written.max(own);
        }
    }
    Ok(())
}

/// What the caller gives: bytes, and sizes where there are some.
struct Arguments<'a>(Vec<(&'a [u8], Option<Vec<usize>>)>);

impl Arguments<'_> {
    fn given(&self) -> Vec<Argument<'_>> {
        let each = self.0.iter();
        each.map(|(bytes, sizes)| Argument {
            bytes,
            sizes: sizes.as_deref(),
        })
        .collect()
    }
}

/// # Safety
/// The call's pointers are as the header says.
unsafe fn arguments<'a>(call: &'a Call, interface: &Interface) -> Result<Arguments<'a>, Failure> {
    let n = call.argument_count;
    // SAFETY: the caller's promise.
    let data = unsafe { list("arguments", call.arguments, n)? };
    // SAFETY: the caller's promise.
    let bytes = unsafe { list("argument_bytes", call.argument_bytes, n)? };
    let dims = match call.argument_dims.is_null() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { list("argument_dims", call.argument_dims, n)? },
    };
    let leaves = interface.arguments.iter().cycle().take(n).enumerate();
    let each = leaves.map(|(i, leaf)| {
        let what = format!("arguments[{i}]");
        // SAFETY: the caller's promise.
        let bytes = unsafe { list(&what, data[i].cast::<u8>(), bytes[i])? };
        let Some(&dims) = dims.get(i).filter(|dims| !dims.is_null()) else {
            return Ok((bytes, None));
        };
        // SAFETY: the caller gives as many sizes as the argument has dimensions.
        let dims = unsafe { list(&what, dims, leaf.shape.rank())? };
        let sizes = dims.iter().map(|&size| usize::try_from(size));
        let sizes = sizes.collect::<Result<Vec<_>, _>>();
        let sizes =
            sizes.map_err(|_| misuse(format!("`argument_dims[{i}]` has a negative size")))?;
        Ok((bytes, Some(sizes)))
    });
    Ok(Arguments(each.collect::<Result<_, Failure>>()?))
}

/// Where results go. Memory of the library's own is given back unless it is kept.
struct Results<'a> {
    bytes: Vec<&'a mut [u8]>,
    own: Vec<*mut *mut c_void>,
}

impl Results<'_> {
    /// # Safety
    /// The call's pointers are as the header says, and results overlap nothing else.
    unsafe fn of(call: &Call, interface: &Interface) -> Result<Self, Failure> {
        let n = call.result_count;
        let mut out = Self {
            bytes: Vec::with_capacity(n),
            own: Vec::new(),
        };
        // SAFETY: the caller's promise.
        let data = unsafe { list("results", call.results, n)? }.to_vec();
        for (i, leaf) in interface.results.iter().cycle().take(n).enumerate() {
            let wanted = leaf.whole().byte_size();
            let (data, room) = match data[i].is_null() {
                true => {
                    // SAFETY: there are `n` entries.
                    let entry = unsafe { call.results.add(i) };
                    let data = memory::zeroed(wanted, memory::ALIGNMENT);
                    if data.is_null() {
                        return Err(no_memory(&leaf.name, wanted));
                    }
                    // SAFETY: the caller's entry takes a pointer.
                    unsafe { entry.write(data) };
                    out.own.push(entry);
                    (data, wanted)
                }
                false => {
                    // SAFETY: the caller's promise.
                    let room = unsafe { list("result_bytes", call.result_bytes, n)? };
                    (data[i], room[i])
                }
            };
            // SAFETY: there is that much room, which the caller lends or the library just made.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), room.min(wanted)) };
            out.bytes.push(bytes);
        }
        Ok(out)
    }

    /// The caller has the library's memory from here on.
    fn keep(&mut self) {
        self.own.clear();
    }
}

impl Drop for Results<'_> {
    fn drop(&mut self) {
        self.bytes.clear();
        for entry in self.own.drain(..) {
            // SAFETY: the entry holds memory that `of` made and put there.
            unsafe { memory::xla_aot_memory_free(entry.replace(null_mut())) };
        }
    }
}

fn no_memory(name: &str, bytes: usize) -> Failure {
    let message = format!("there is no memory for the {bytes} bytes of `{name}`");
    crate::base::Diagnostic::error(crate::base::codes::RUN, message).into()
}
