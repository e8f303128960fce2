//! MLIR modules of StableHLO programs: the value, its text form and its bytecode form.
//!
//! Readers of the text and of the bytecode make the same [`Module`] of the same program, so what
//! comes after sees one form only:
//!
//! - Ops, attributes and enum cases have the names that the current StableHLO dialect prints in the
//!   generic form; words of VHLO, `mhlo` ops and older spellings are translated by the readers.
//! - Properties and discardable attributes stand together in one map sorted by name.
//! - An optional attribute that has its default value is absent; see [`dialect::drop_defaults`].
//! - Attributes of a dialect are structured where the reader knows them: [`Attr::Enum`] for
//!   `#stablehlo<precision HIGH>`, [`Attr::Struct`] for `#stablehlo.dot<...>`, with the fields that
//!   the generic form prints; a field with its default value (an empty list, zero) is absent.
//! - Lists of integers that the dialect declares as `DenseI64ArrayAttr` are [`Attr::DenseArray`];
//!   older spellings as dense tensors are translated. A list of integers inside a structured
//!   attribute is a `DenseArray` of `i64` too, a lone integer there an `i64` integer.
//! - Dense elements hold bytes as [`crate::literal`] packs them: one element in its own bytes,
//!   little-endian, `i1` as 0 or 1, sub-byte integers extended to a byte by their sign.
//! - Blobs in the resource section are put where they are used, as [`Attr::Dense`].
//! - Every value has its type; a use has the type of the definition.
//!
//! [`text::read`] and [`print::print()`] are the text form; two modules are the same program when
//! their prints are equal.

pub mod access;
pub mod attrs;
pub mod bytecode;
pub mod dialect;
pub mod location;
pub mod module;
pub mod print;
mod structure;
pub mod text;
pub mod types;

/// How deep regions may stand inside each other, in text and in bytecode: a computation of HLO as
/// deep as its conversion goes, in a function, in a module.
const MAX_REGIONS: usize = 130;

pub use access::OpRef;
pub use attrs::Attr;
pub use attrs::AttrMap;
pub use attrs::Dense;
pub use attrs::DenseArray;
pub use attrs::DenseData;
pub use attrs::EnumAttr;
pub use attrs::StructAttr;
pub use attrs::SymbolRef;
pub use location::Loc;
pub use location::SourceLoc;
pub use module::Block;
pub use module::BlockId;
pub use module::Module;
pub use module::NewOp;
pub use module::Op;
pub use module::OpId;
pub use module::Region;
pub use module::RegionId;
pub use module::Value;
pub use module::ValueDef;
pub use module::ValueId;
pub use types::FloatKind;
pub use types::FunctionType;
pub use types::Name;
pub use types::QuantizedScheme;
pub use types::QuantizedType;
pub use types::Signedness;
pub use types::TensorType;
pub use types::Type;
