//! PTX text to a tree, with no meaning attached.
//!
//! The reader takes any text: what is not PTX is a diagnostic with its line and column. Nesting is
//! bounded, and the tree is at most a fixed multiple of the text. What a name stands for, and which
//! instructions there are, is not known here.

pub mod ast;
mod lexer;
mod parser;
mod expression;
mod operand;
mod declaration;
mod function;
#[cfg(test)]
mod tests;

pub use ast::*;
pub use parser::parse;
pub use parser::text;
