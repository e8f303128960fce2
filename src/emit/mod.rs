//! Room `emit`.
