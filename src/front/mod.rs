//! From input bytes to [`crate::hlo::Module`]: what kind of input it is, and one reader a kind.

pub mod detect;
pub mod hlo_text;
pub mod import;
pub mod jax_export;
pub mod stablehlo;

pub use detect::InputFormat;
pub use import::InputOptions;
pub use import::Program;
pub use import::import;
pub use import::import_mlir;
pub use import::import_observed;
pub use import::read;
