//! Room `buffer`.
