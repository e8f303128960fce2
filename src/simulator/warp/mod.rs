//! Executing decoded code: lanes, warps, blocks and clusters.
//!
//! A warp is a set of fragments, each a program counter and the lanes that are there. The lowest
//! one runs, so that fragments meet again after a branch; see [`state`]. A cluster of blocks is run
//! by one host thread, warp by warp; see [`exec`].

pub mod lanes;
pub mod alu;
pub mod state;
pub mod worker;
pub mod exec;
pub mod access;
pub mod resolve;
pub mod shadow;
pub mod atomic;
pub mod order;
pub mod engine;
pub mod collective;
pub mod special;
pub mod call;
pub mod barrier;
pub mod mbarrier;
pub mod transfer;
pub mod matrix;
pub mod tensor5;
pub mod print;

pub use state::Cluster;
pub use worker::Grid;
pub use worker::Worker;
