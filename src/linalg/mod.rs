//! Dense linear algebra by LAPACK's conventions, and the custom calls of JAX that lead to it.
//!
//! A routine bears the name of the LAPACK routine whose results it gives, packed the same way:
//! reflections and taus of `geqrf`, `gehrd` and `sytrd`, pivots of `getrf` and `geqp3`, info codes.
//! The algorithms are LAPACK's unblocked ones, so that signs come out the same where an algorithm
//! decides them; numbers of f32 are computed in f64 and rounded at the end, with as many
//! steps of an iteration as f32 asks for. Where LAPACK turns to
//! another algorithm for larger matrices the results differ in what those leave open:
//! - `gesdd` and `syevd` above 25 rows divide and conquer there; here they are QR and QL steps
//!   throughout, so signs of singular and eigenvectors may differ;
//! - `geev` and `gees` above 75 rows use many shifts at once there; here eigenvalues may come in
//!   another order;
//! - how many steps `gesdd`, `gesvd`, `syevd`, `geev` and `gees` make with f32 depends on rounding,
//!   and with it the signs of vectors;
//! - phases of complex Schur vectors, which LAPACK leaves to rounding, are other ones at any size.

mod attributes;
pub mod call;
pub mod eigen;
pub mod hessenberg;
mod householder;
pub mod lu;
pub mod matrix;
mod memory;
pub mod qr;
mod rotation;
pub mod scalar;
pub mod schur;
pub mod svd;
pub mod symmetric;
#[cfg(test)]
mod tests;
pub mod tridiagonal;

pub use call::Call;
pub use call::Item;
pub use matrix::Matrix;
