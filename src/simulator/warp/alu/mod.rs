//! Register instructions: tables from an instruction's name to its expression.
//!
//! Each table takes the opcode with its modifiers, as the text has them, and gives a [`Row`] and
//! what the row wants in [`Args::x`](crate::simulator::warp::lanes::Args::x).

pub mod compare;
pub mod convert;
pub mod float;
pub mod half;
pub mod int;
pub mod logic;

use crate::simulator::warp::lanes::Row;

/// What a table gives.
pub type Found = Option<(Row, u64)>;

/// The row of an instruction such as `mad.lo.s32`.
pub fn find(opcode: &str, modifiers: &[&str]) -> Found {
    let mut name = opcode.to_owned();
    for word in modifiers {
        name.push('.');
        name.push_str(word);
    }
    int::find(&name)
        .or_else(|| int::packed(&name))
        .or_else(|| logic::find(&name))
        .map(|row| (row, 0))
        .or_else(|| float::find(opcode, modifiers))
        .or_else(|| half::find(opcode, modifiers))
        .or_else(|| compare::find(opcode, modifiers))
        .or_else(|| convert::find(opcode, modifiers))
}
