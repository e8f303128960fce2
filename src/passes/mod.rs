//! Rewrites and their order.

pub mod finish;
