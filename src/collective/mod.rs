//! Several devices that run one program: their numbers, the groups in which they talk, and how they
//! meet. Knows no IR and no arrays: what is handed over is the caller's.

mod groups;
mod meeting;
mod topology;

pub use groups::GroupMode;
pub use groups::MeshAxis;
pub use groups::expand_iota;
pub use groups::expand_mesh;
pub use meeting::Call;
pub use meeting::Communicator;
pub use meeting::Key;
pub use topology::MOST_DEVICES;
pub use topology::Topology;
