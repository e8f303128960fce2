//! Decoded programs: every instruction of a module with its operands placed.
//!
//! Decoding knows every instruction, modifier and type, and refuses by name what it does not know;
//! what it lets through can be executed without further looks at the text.

pub mod work;
pub mod inst;
pub mod module;
pub mod function;
pub mod operand;
pub mod slots;
pub mod place;
pub mod decode;

pub use inst::*;
pub use module::Function;
pub use module::Module;
pub use module::Parameter;
