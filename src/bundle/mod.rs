//! Bundles: the files a compiled program travels in. Telling forms apart, reading, writing,
//! checking against a host, describing.
//!
//! A CPU bundle is a serialized `xla.ExecutableAndOptionsProto`, a GPU bundle the same cut into
//! records; jaxlib puts an envelope around either, and JAX what it keeps into files of its own. This room knows the order of layers; `wire` knows
//! the bytes of each.

pub mod describe;
pub mod detect;
pub mod host_check;
pub mod read;
pub mod stock;
pub mod write;

pub use detect::Form;
pub use detect::begins_as_bundle;
pub use detect::is_bundle;
pub use host_check::host_check;
pub use read::Bundle;
pub use read::read;
pub use read::rejected;
pub use stock::Release;
pub use stock::Stock;
pub use stock::stock;
pub use write::WriteOptions;
pub use write::write;
pub use write::write_into;

#[cfg(test)]
mod tests;
