//! Functions of the host that bundles call by name: those that whoever loads a bundle registers,
//! and the LAPACK calls that come with the loader.
//!
//! A bundle that calls a name nobody provides is refused when it is loaded. On a GPU operands are
//! copied to the host for the call and results back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::CustomCallThunk;
use crate::executable::ShapedSlice;
use crate::linalg;
use crate::shape::ArrayShape;

/// An operand: its shape and its bytes in device form.
pub type Operand<'a> = (&'a ArrayShape, &'a [u8]);

/// A result: its shape and where its bytes go.
pub type CallResult<'a> = (&'a ArrayShape, &'a mut [u8]);

/// One call.
pub struct CustomCall<'a> {
    /// Name of the function.
    pub target: &'a str,
    /// Configuration the program carries for it.
    pub backend_config: &'a str,
    /// Operands, tokens left out.
    pub operands: Vec<Operand<'a>>,
    /// Results, tokens left out.
    pub results: Vec<CallResult<'a>>,
}

/// A function bundles may call.
pub type CustomCallFn = Arc<dyn Fn(&mut CustomCall<'_>) -> Result<()> + Send + Sync>;

/// Functions by name. They go before those that come with the loader.
#[derive(Clone, Default)]
pub struct CustomCalls {
    by_name: BTreeMap<String, CustomCallFn>,
}

impl CustomCalls {
    /// Provides a function under a name, in place of one that had it before.
    pub fn register(
        &mut self,
        target: impl Into<String>,
        function: impl Fn(&mut CustomCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) {
        self.by_name.insert(target.into(), Arc::new(function));
    }

    /// Finds what a thunk calls; none when nobody provides it.
    ///
    /// # Errors
    /// `XA8003` when it is a call of LAPACK with operands, results or attributes that do not fit.
    pub(super) fn find(&self, thunk: &CustomCallThunk) -> Result<Option<HostFunction>> {
        if let Some(function) = self.by_name.get(&thunk.target) {
            return Ok(Some(HostFunction::Registered(Arc::clone(function))));
        }
        let shapes = |slices: &[Option<ShapedSlice>]| -> Vec<ArrayShape> {
            slices.iter().flatten().map(|s| s.shape.clone()).collect()
        };
        let (operands, results) = (shapes(&thunk.operands), shapes(&thunk.results));
        let call = linalg::Call::new(
            &thunk.target,
            &thunk.backend_config,
            &operands.iter().collect::<Vec<_>>(),
            &results.iter().collect::<Vec<_>>(),
        );
        match call {
            None => Ok(None),
            Some(Ok(call)) => Ok(Some(HostFunction::Lapack(Arc::new(call)))),
            Some(Err(what)) => Err(Diagnostic::error(codes::LOAD, what)),
        }
    }
}

impl fmt::Debug for CustomCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// What a thunk calls.
#[derive(Clone)]
pub(super) enum HostFunction {
    /// A function that was registered.
    Registered(CustomCallFn),
    /// A LAPACK routine.
    Lapack(Arc<linalg::Call>),
}

/// Calls a task with each number below the first, in any order, on any thread.
pub(super) type Spread<'a> = &'a dyn Fn(u64, &(dyn Fn(u64) + Sync)) -> Result<()>;

impl HostFunction {
    /// Makes the call. Matrices of a batch are spread over threads.
    ///
    /// # Errors
    /// What the function says, or what spreading it does.
    pub(super) fn run(&self, call: &mut CustomCall<'_>, spread: Spread<'_>) -> Result<()> {
        let lapack = match self {
            Self::Registered(function) => return function(call),
            Self::Lapack(lapack) => lapack,
        };
        let operands: Vec<&[u8]> = call.operands.iter().map(|(_, bytes)| *bytes).collect();
        let results = call.results.iter_mut().map(|(_, bytes)| &mut **bytes);
        let items = lapack.items(&operands, results.collect());
        let items = items.map_err(|what| Diagnostic::internal(codes::INTERNAL, what))?;
        let items: Vec<_> = items.into_iter().map(Mutex::new).collect();
        spread(items.len() as u64, &|i| {
            let mut item = items[i as usize].lock().unwrap_or_else(|e| e.into_inner());
            lapack.run(&mut item);
        })
    }
}

/// Prefixes of what JAX calls on NVIDIA's GPUs: that company's libraries, and JAX's own kernels.
const OF_GPUS: &[&str] = &["cusolver", "cublas", "cusparse", "cudnn", "__cu", "cu_"];

/// Refuses a program when functions of some names are nowhere.
///
/// # Errors
/// `XA8003` that says the names.
pub(super) fn none_missing(mut targets: Vec<String>) -> Result<()> {
    targets.sort();
    targets.dedup();
    match targets.is_empty() {
        true => Ok(()),
        false => Err(missing(&targets)),
    }
}

fn missing(targets: &[String]) -> Box<Diagnostic> {
    let names: Vec<String> = targets.iter().map(|t| format!("`{t}`")).collect();
    let message = format!(
        "the program calls functions this loader does not have: {}",
        names.join(", ")
    );
    let diagnostic = Diagnostic::unsupported(codes::LOAD, message);
    let is_gpu = |target: &String| OF_GPUS.iter().any(|prefix| target.starts_with(prefix));
    if targets.iter().any(is_gpu) {
        return diagnostic.help(
            "it was lowered for NVIDIA's libraries; lower it for CPUs, whose calls of LAPACK this \
             loader has on every device",
        );
    }
    diagnostic.help("whoever loads the program must register them (`LoadOptions::custom_calls`)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_gpu_libraries_get_their_own_advice() {
        let text = |name: &str| format!("{:?}", missing(&[name.to_owned()]));
        assert!(text("cusolver_getrf_ffi").contains("lower it for CPUs"));
        assert!(text("my_function").contains("LoadOptions::custom_calls"));
        assert!(text("my_function").contains("`my_function`"));
    }
}
