//! Host values of every element type: storage, conversions, comparison, text and array-file forms.

pub mod compare;
pub mod device_form;
pub mod dynamic;
#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod literal;
pub mod npy;
pub mod number;
pub mod text;

pub use literal::ArrayLiteral;
pub use literal::Literal;
pub use number::Number;
