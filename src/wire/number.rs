//! Checked conversions between wire numbers (mostly `int64`) and the inside's unsigned ones.

use prost::Message;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;

/// A diagnostic about damaged wire data.
pub(crate) fn bad(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::PROTO_DECODE, message)
}

/// A diagnostic about wire data that this program has no value for.
pub(crate) fn unsupported(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::unsupported(codes::PROTO_DECODE, message)
}

/// Decodes a message, naming it when that fails.
pub(crate) fn message<M: Message + Default>(bytes: &[u8], name: &str) -> Result<M> {
    M::decode(bytes).map_err(|e| bad(format!("the bytes are not a `{name}`: {e}")))
}

/// A count, size or dimension number; negative ones are refused.
pub(crate) fn index(value: i64, what: &str) -> Result<usize> {
    usize::try_from(value).map_err(|_| bad(format!("{what} is {value}, wanted at least 0")))
}

/// A list of counts or dimension numbers.
pub(crate) fn indices<C: FromIterator<usize>>(values: &[i64], what: &str) -> Result<C> {
    values.iter().map(|&v| index(v, what)).collect()
}

/// A list of counts for the wire.
pub(crate) fn numbers(values: &[usize]) -> Vec<i64> {
    values.iter().map(|&v| number(v)).collect()
}

/// A count for the wire. Counts come from decoded or computed shapes and fit.
pub(crate) fn number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
