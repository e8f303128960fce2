//! Layouts: first dropped, at the end all row-major.

pub mod assign;
pub mod normalize;

use crate::literal::Literal;
use crate::shape::Shape;

/// The same value under a shape that differs in layouts only.
fn relaid(literal: &Literal, shape: &Shape) -> Literal {
    match (literal, shape) {
        (Literal::Array(array), Shape::Array(shape)) => {
            Literal::Array(array.reshaped(shape.clone()))
        }
        (Literal::Tuple(elements), Shape::Tuple(shapes)) => Literal::Tuple(
            elements
                .iter()
                .zip(shapes)
                .map(|(element, shape)| relaid(element, shape))
                .collect(),
        ),
        _ => literal.clone(),
    }
}
