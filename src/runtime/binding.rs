//! What every device does the same way when a program is bound and run.
#![allow(unsafe_code, reason = "asks the system for random bytes")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::Signature;
use crate::executable::Slice;
use crate::literal::ArrayLiteral;
use crate::literal::device_form;
use crate::literal::dynamic::bounds;
use crate::literal::dynamic::fits;
use crate::shape::ArrayShape;
use crate::shape::Shape;
use crate::shape::ShapeIndex;

/// Looks on while steps run; the time between two calls is that of the step named in the second.
pub trait Watch {
    /// A step that holds no other steps is done: the kernel's name, or the kind of thunk.
    fn done(&mut self, _name: &str) {}
}

/// Looks at nothing, and costs nothing.
pub struct Unwatched;

impl Watch for Unwatched {}

/// Parameter number, index within the parameter, and shape of one array leaf.
pub type ParameterLeaf<'a> = (usize, ShapeIndex, &'a ArrayShape);

/// The array leaves of all parameters, in order.
pub fn parameter_leaves(signature: &Signature) -> Vec<ParameterLeaf<'_>> {
    let parameters = signature.program.parameters.iter().enumerate();
    parameters
        .flat_map(|(number, shape)| {
            let leaves = shape.leaves().into_iter();
            leaves.filter_map(move |(index, leaf)| match leaf {
                Shape::Array(array) => Some((number, index, array)),
                Shape::Tuple(_) | Shape::Token | Shape::Opaque => None,
            })
        })
        .collect()
}

/// The input of each array leaf of the parameters, with the shape the program wants it in.
pub type Inputs<'a> = BTreeMap<(usize, ShapeIndex), (&'a ArrayShape, ArrayLiteral)>;

/// Pairs inputs with parameters.
///
/// # Errors
/// `XA8001` when there are more or fewer, or one has another type or other dimensions.
pub fn pair_inputs(signature: &Signature, inputs: Vec<ArrayLiteral>) -> Result<Inputs<'_>> {
    let leaves = parameter_leaves(signature);
    if leaves.len() != inputs.len() {
        let message = format!("{} inputs, wanted {}", inputs.len(), leaves.len());
        return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
    }
    let mut pairs = Inputs::new();
    for (i, ((number, index, shape), input)) in leaves.into_iter().zip(inputs).enumerate() {
        let given = input.shape();
        if given.ty != shape.ty || !fits(&given.dims, shape) {
            let message = format!(
                "input {i} is {}{:?}, wanted {}{}",
                given.ty,
                given.dims.as_slice(),
                shape.ty,
                bounds(shape)
            );
            return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
        }
        pairs.insert((number, index), (shape, input));
    }
    Ok(pairs)
}

/// Fills with random bytes that are not all zero.
pub fn random_seed(bytes: &mut [u8]) {
    // SAFETY: the call writes at most that many bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    let complete = usize::try_from(got) == Ok(bytes.len());
    if !complete || bytes.iter().all(|&b| b == 0) {
        bytes.fill(1);
    }
}

/// The array leaves of the result, from the bytes that `read` finds where each lies.
///
/// # Errors
/// What `read` gives; `XA9001` when the plan and the signature do not fit, which the check rules out.
pub fn outputs<'a>(
    signature: &Signature,
    mut read: impl FnMut(&Slice) -> Result<Cow<'a, [u8]>>,
) -> Result<Vec<ArrayLiteral>> {
    let leaves = signature.program.result.leaves().into_iter();
    let arrays = leaves.filter_map(|(_, leaf)| leaf.as_array());
    let pairs = signature.outputs.iter().zip(arrays);
    pairs
        .map(|(output, shape)| device_form::from_device(&read(&output.slice)?, shape))
        .collect()
}

/// For a result that no buffer holds.
pub fn outside_its_buffer() -> Box<Diagnostic> {
    Diagnostic::internal(codes::INTERNAL, "a result lies outside its buffer")
}

/// For a thunk that loading should have refused.
pub fn refused_too_late(kind: &str) -> Box<Diagnostic> {
    let message = format!("a `{kind}` thunk passed loading and cannot run");
    Diagnostic::internal(codes::INTERNAL, message)
}
