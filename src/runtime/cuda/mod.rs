//! NVIDIA devices. For now their presence is told; running programs on them comes with a loader of
//! their own.

pub mod host;
