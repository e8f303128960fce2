//! Bytes being written: integers of variable width, strings, sections.

/// Bytes being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Emitter {
    /// What has been written.
    pub bytes: Vec<u8>,
}

impl Emitter {
    /// A byte.
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }
    /// An unsigned integer, in as few bytes as it needs.
    pub(super) fn varint(&mut self, value: u64) {
        for length in 1..=8 {
            if value >> (7 * length) == 0 {
                let word = (value << 1 | 1) << (length - 1);
                self.bytes.extend(&word.to_le_bytes()[..length]);
                return;
            }
        }
        self.byte(0);
        self.bytes.extend(value.to_le_bytes());
    }
    /// A signed integer, its sign in the lowest bit.
    pub(super) fn signed(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }
    /// An integer with a flag below it.
    pub(super) fn flagged(&mut self, value: u64, flag: bool) {
        self.varint(value << 1 | u64::from(flag));
    }
    /// The length of a list.
    pub(super) fn count(&mut self, count: usize) {
        self.varint(count as u64);
    }
    /// Signed integers behind their number.
    pub(super) fn signed_list(&mut self, values: &[i64]) {
        self.count(values.len());
        for value in values {
            self.signed(*value);
        }
    }
    /// Indices behind their number.
    pub(super) fn indices(&mut self, indices: &[u32]) {
        self.count(indices.len());
        for index in indices {
            self.varint((*index).into());
        }
    }
    /// Bytes behind their number.
    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend(bytes);
    }
    /// A section.
    pub(super) fn section(&mut self, number: u8, content: &[u8]) {
        self.byte(number);
        self.blob(content);
    }
}
