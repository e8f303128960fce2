//! The values that are known where bytecode is being read, by their numbers.

use crate::mlir::ValueId;

/// The values of a region that is isolated from above, and of those in it.
#[derive(Default)]
pub(super) struct Scope {
    values: Vec<Option<ValueId>>,
    /// For each region, the number of the value that is defined next.
    next: Vec<usize>,
}

impl Scope {
    /// Makes places for the values of a region.
    pub(super) fn open(&mut self, count: usize) {
        self.next.push(self.values.len());
        self.values.resize(self.values.len() + count, None);
    }
    /// Forgets the places of the innermost region, of which there are so many.
    pub(super) fn close(&mut self, count: usize) {
        self.next.pop();
        self.values.truncate(self.values.len() - count);
    }
    /// Takes the next places of the innermost region; gives the first, if so many are left.
    pub(super) fn take(&mut self, count: usize) -> Option<usize> {
        let room = self.values.len();
        let next = self.next.last_mut()?;
        let first = *next;
        *next = first.checked_add(count).filter(|end| *end <= room)?;
        Some(first)
    }
    /// Defines values from a place on.
    pub(super) fn define(&mut self, first: usize, values: &[ValueId]) {
        for (slot, value) in self.values[first..].iter_mut().zip(values) {
            *slot = Some(*value);
        }
    }
    /// Takes back the definition of the last values, which the regions of their op may not use.
    pub(super) fn hide_last(&mut self, count: usize) {
        let end = self.next.last().copied().unwrap_or(0);
        self.values[end - count..end].fill(None);
    }
    /// Defines the last values again.
    pub(super) fn show_last(&mut self, values: &[ValueId]) {
        let end = self.next.last().copied().unwrap_or(0);
        self.define(end - values.len(), values);
    }
    /// The value of a number; nothing inside where it is yet to be defined.
    pub(super) fn get(&self, number: u64) -> Option<Option<ValueId>> {
        let index = usize::try_from(number).ok()?;
        self.values.get(index).copied()
    }
    /// How many places there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}
