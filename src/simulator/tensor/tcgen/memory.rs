//! Tensor memory and its allocator.

use crate::base::{Diagnostic, Result, codes};

/// Lanes of tensor memory.
const TENSOR_LANES: usize = 128;
/// Columns of tensor memory, each of 32 bits a lane.
const TENSOR_COLUMNS: usize = 512;

pub(super) fn fault(what: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(
        codes::DEVICE_FAULT,
        format!("tensor memory: {}", what.into()),
    )
}

/// The tensor memory of one block, with its allocator.
///
/// An address has the lane in its upper 16 bits and the column in its lower.
#[derive(Clone, Debug)]
pub struct TensorMemory {
    words: Vec<u32>,
    /// The first column and the count of each allocation, in order.
    taken: Vec<(usize, usize)>,
}

impl Default for TensorMemory {
    fn default() -> Self {
        Self {
            words: vec![0; TENSOR_LANES * TENSOR_COLUMNS],
            taken: Vec::new(),
        }
    }
}

impl TensorMemory {
    /// Takes columns; nothing when there are not enough together, and the warp has to wait.
    ///
    /// # Errors
    /// When the count is not a power of two from 32 to 512.
    pub fn allocate(&mut self, columns: u32) -> Result<Option<u32>> {
        if !columns.is_power_of_two() || !(32..=512).contains(&columns) {
            return Err(fault(format!(
                "{columns} columns wanted, which is no power of two from 32 to 512"
            )));
        }
        let columns = columns as usize;
        let mut start = 0;
        let mut at = self.taken.len();
        for (i, (first, count)) in self.taken.iter().enumerate() {
            if start + columns <= *first {
                at = i;
                break;
            }
            start = first + count;
        }
        if start + columns > TENSOR_COLUMNS {
            return Ok(None);
        }
        self.taken.insert(at, (start, columns));
        Ok(Some(start as u32))
    }
    /// Gives columns back.
    ///
    /// # Errors
    /// When no allocation of this size begins at `address`.
    pub fn deallocate(&mut self, address: u32, columns: u32) -> Result<()> {
        let own = (address as usize & 0xffff, columns as usize);
        match self.taken.iter().position(|t| *t == own) {
            Some(at) => {
                self.taken.remove(at);
                Ok(())
            }
            None => Err(fault(format!(
                "{columns} columns at {address:#x} are given back but were not taken"
            ))),
        }
    }
    /// Whether columns are still taken, which they must not be when the block ends.
    pub fn is_taken(&self) -> bool {
        !self.taken.is_empty()
    }
    fn index(&self, lane: usize, column: usize) -> Result<usize> {
        let known = self
            .taken
            .iter()
            .any(|(first, count)| (*first..first + count).contains(&column));
        if lane >= TENSOR_LANES || !known {
            return Err(fault(format!(
                "lane {lane}, column {column} is not allocated"
            )));
        }
        Ok(lane * TENSOR_COLUMNS + column)
    }
    /// The word of a lane and column.
    ///
    /// # Errors
    /// When it is not allocated.
    pub fn get(&self, lane: usize, column: usize) -> Result<u32> {
        self.index(lane, column).map(|at| self.words[at])
    }
    /// Sets the word of a lane and column.
    ///
    /// # Errors
    /// When it is not allocated.
    pub fn set(&mut self, lane: usize, column: usize, word: u32) -> Result<()> {
        let at = self.index(lane, column)?;
        self.words[at] = word;
        Ok(())
    }
}
