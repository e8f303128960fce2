//! Element types, shapes, layouts and index arithmetic.

pub mod element_type;
pub mod index;
pub mod layout;
#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod shape;
pub mod text;

pub use element_type::ElementKind;
pub use element_type::PrimitiveType;
pub use layout::Layout;
pub use layout::Tile;
pub use shape::ArrayShape;
pub use shape::Dims;
pub use shape::ProgramShape;
pub use shape::Shape;
pub use shape::ShapeIndex;
