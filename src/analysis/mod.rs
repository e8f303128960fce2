//! Room `analysis`.
