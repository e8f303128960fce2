//! Room `passes`.
