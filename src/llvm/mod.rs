//! Room `llvm`.
