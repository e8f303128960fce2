//! Room `runtime`.
