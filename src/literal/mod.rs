//! Host values of every element type: storage, conversions, comparison, text and array-file forms.

#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod literal;

pub use literal::ArrayLiteral;
pub use literal::Literal;
