//! Functions that the host program gives to bundles by name.
//!
//! A bundle that calls a name nobody provides is refused when it is loaded.

use crate::base::Result;
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
pub type CustomCallFn = fn(&mut CustomCall<'_>) -> Result<()>;

/// Where functions are looked up.
pub trait CustomCalls {
    /// The function of that name.
    fn find(&self, target: &str) -> Option<CustomCallFn>;
}

/// Provides nothing.
pub struct NoCustomCalls;

impl CustomCalls for NoCustomCalls {
    fn find(&self, _target: &str) -> Option<CustomCallFn> {
        None
    }
}
