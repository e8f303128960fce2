//! Room `front`.
