//! What buffer assignment gives: allocations, and the slice of every value.

use std::collections::BTreeMap;

use crate::analysis::Dataflow;
use crate::analysis::Live;
use crate::analysis::ValueId;
use crate::base::Arena;
use crate::base::IdMap;
use crate::executable::AllocId;
use crate::executable::Allocation;
use crate::executable::ConstantId;
use crate::executable::Slice;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::shape::ShapeIndex;

/// Where every value of a scheduled module lives.
#[derive(Clone, Debug)]
pub struct BufferAssignment {
    /// Blocks of memory.
    pub allocs: Arena<AllocId, Allocation>,
    /// The `constant` instruction of each constant that has an allocation.
    pub constants: Arena<ConstantId, InstrId>,
    /// The slice of each value that has memory.
    pub slices: IdMap<ValueId, Option<Slice>>,
    /// The scratch memory of instructions that need some.
    pub scratch: IdMap<InstrId, Option<Slice>>,
    /// The pointer tables of the result: one for each tuple in its shape.
    pub tables: BTreeMap<ShapeIndex, Slice>,
    /// The values.
    pub flow: Dataflow,
    /// Their lives.
    pub live: Live,
}

impl BufferAssignment {
    /// The slice of a leaf of an instruction's result; none for tokens.
    pub fn slice(&self, instr: InstrId, leaf: usize) -> Option<Slice> {
        let value = *self.flow.at(instr).get(leaf)?;
        self.slices[value]
    }
    /// The slices of the leaves of the entry's result that are arrays, with their indices.
    pub fn outputs(&self, module: &Module) -> Vec<(ShapeIndex, Slice)> {
        let root = module.entry_comp().root;
        let leaves = module.instrs[root].shape.leaves().into_iter().enumerate();
        leaves
            .filter_map(|(leaf, (index, _))| Some((index, self.slice(root, leaf)?)))
            .collect()
    }
}
