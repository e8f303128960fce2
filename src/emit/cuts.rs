//! Which dimensions of a loop nest may be walked as one.
//!
//! A cut at P says that runs of elements must not cross multiples of P in row-major order. Between
//! cuts everything that a fused body reads moves on in step with the result, so the dimensions
//! there collapse into one loop, and its vector loads stay contiguous.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::emit::index::volume;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::shape::Dims;

/// The cuts of the values of one fused body.
pub struct Cuts<'m> {
    module: &'m Module,
    leaves: &'m dyn Fn(InstrId) -> bool,
    known: RefCell<BTreeMap<InstrId, BTreeSet<i64>>>,
}

impl<'m> Cuts<'m> {
    /// Nothing known yet. `leaves` says which instructions are read from memory.
    pub fn new(module: &'m Module, leaves: &'m dyn Fn(InstrId) -> bool) -> Self {
        Self {
            module,
            leaves,
            known: RefCell::new(BTreeMap::new()),
        }
    }

    fn dims(&self, id: InstrId) -> Dims {
        self.module
            .shape(id)
            .as_array()
            .map(|a| a.dims.clone())
            .unwrap_or_default()
    }

    /// The extents of a loop nest for values of `total` elements each, outermost first; their
    /// product is `total`. The needed cuts, which divide one another, are all kept; a needed cut of one
    /// makes an innermost extent of one, so that elements go one by one.
    pub fn extents(&self, total: i64, needed: &BTreeSet<i64>, values: &[InstrId]) -> Vec<i64> {
        let mut chain: BTreeSet<i64> = needed.clone();
        chain.retain(|&cut| cut < total);
        for &value in values {
            for cut in self.of(value) {
                if cut > 1 && cut < total && fits(&chain, cut, total) {
                    chain.insert(cut);
                }
            }
        }
        let mut extents = Vec::new();
        let mut below = 1;
        for cut in chain.into_iter().chain([total]) {
            extents.insert(0, cut / below);
            below = cut;
        }
        extents
    }

    /// The cuts of one value.
    pub fn of(&self, id: InstrId) -> BTreeSet<i64> {
        if let Some(known) = self.known.borrow().get(&id) {
            return known.clone();
        }
        let cuts = self.compute(id);
        self.known.borrow_mut().insert(id, cuts.clone());
        cuts
    }

    fn compute(&self, id: InstrId) -> BTreeSet<i64> {
        if (self.leaves)(id) {
            return BTreeSet::new();
        }
        let instr = self.module.instr(id);
        let dims = self.dims(id);
        let operand = |i: usize| instr.operands[i];
        match &instr.op {
            Op::Parameter { .. } | Op::Constant(_) => BTreeSet::new(),
            Op::Iota { dim } => {
                let below = volume(&dims[dim + 1..]);
                [below, below * dims[*dim] as i64].into()
            }
            Op::Reshape { .. } | Op::Bitcast => self.of(operand(0)),
            Op::Broadcast { dims: to } => {
                let source: Vec<Option<usize>> = (0..dims.len())
                    .map(|d| to.iter().position(|&t| t == d))
                    .collect();
                self.mapped(&dims, operand(0), &source, |_| false)
            }
            Op::Transpose { dims: from } => {
                let source: Vec<Option<usize>> = from.iter().map(|&d| Some(d)).collect();
                self.mapped(&dims, operand(0), &source, |_| false)
            }
            Op::Reverse { dims: reversed } => {
                self.mapped(&dims, operand(0), &identity(dims.len()), |d| {
                    reversed.contains(&d) || reversed.contains(&(d + 1))
                })
            }
            Op::Slice { dims: slices } => {
                let full = self.dims(operand(0));
                self.mapped(&dims, operand(0), &identity(dims.len()), |d| {
                    dims[d + 1] != full[d + 1] || slices[d].stride != 1
                })
            }
            Op::DynamicSlice { .. } => {
                let full = self.dims(operand(0));
                self.mapped(&dims, operand(0), &identity(dims.len()), |d| {
                    dims[d + 1] != full[d + 1]
                })
            }
            Op::DynamicUpdateSlice => {
                let update = self.dims(operand(1));
                let part = identity(dims.len());
                let mut cuts =
                    self.mapped(&dims, operand(0), &part, |d| dims[d + 1] != update[d + 1]);
                cuts.extend(
                    self.mapped(&dims, operand(1), &part, |d| dims[d + 1] != update[d + 1]),
                );
                cuts
            }
            Op::Pad { dims: pads } => {
                let plain =
                    |d: usize| pads[d].low == 0 && pads[d].high == 0 && pads[d].interior == 0;
                self.mapped(&dims, operand(0), &identity(dims.len()), |d| {
                    !plain(d + 1) || pads[d].interior != 0
                })
            }
            Op::Concatenate { dim } => {
                let mut cuts = BTreeSet::new();
                for &piece in &instr.operands {
                    let part = identity(dims.len());
                    cuts.extend(self.mapped(&dims, piece, &part, |d| d + 1 == *dim));
                }
                cuts
            }
            op if op.is_elementwise() || matches!(op, Op::Copy) => {
                self.union(&dims, &instr.operands)
            }
            Op::BitcastConvert if self.dims(operand(0)) == dims => {
                self.union(&dims, &instr.operands)
            }
            Op::GetTupleElement { .. } if (self.leaves)(operand(0)) => BTreeSet::new(),
            _ => every_boundary(&dims),
        }
    }

    fn union(&self, dims: &[usize], operands: &[InstrId]) -> BTreeSet<i64> {
        let mut cuts = BTreeSet::new();
        for &operand in operands {
            if self.dims(operand).as_slice() == dims {
                cuts.extend(self.of(operand));
            }
        }
        cuts
    }

    /// Cuts of a value whose dimension d is dimension `source[d]` of its operand, or new. `breaks`
    /// says that dimensions d and d + 1 do not go on evenly.
    fn mapped(
        &self,
        dims: &[usize],
        operand: InstrId,
        source: &[Option<usize>],
        breaks: impl Fn(usize) -> bool,
    ) -> BTreeSet<i64> {
        let inner = self.dims(operand);
        let inner_cuts = self.of(operand);
        let mut cuts = BTreeSet::new();
        let wide: Vec<usize> = (0..dims.len()).filter(|&d| dims[d] != 1).collect();
        for pair in wide.windows(2) {
            let (d, e) = (pair[0], pair[1]);
            let even = (d..e).all(|d| !breaks(d))
                && match (source[d], source[e]) {
                    (None, None) => true,
                    (Some(s), Some(t)) => {
                        s < t
                            && inner[s + 1..t].iter().all(|&n| n == 1)
                            && !inner_cuts.contains(&volume(&inner[t..]))
                    }
                    _ => false,
                };
            if !even {
                cuts.insert(volume(&dims[e..]));
            }
        }
        // Cuts of the operand inside one dimension, as a reshape makes them.
        for cut in inner_cuts {
            for (d, s) in source.iter().enumerate() {
                let Some(s) = *s else { continue };
                let below = volume(&inner[s + 1..]);
                if cut > below
                    && cut < below * inner[s] as i64
                    && cut % below == 0
                    && !breaks_any(&breaks, d)
                {
                    cuts.insert(volume(&dims[d + 1..]) * (cut / below));
                }
            }
        }
        cuts
    }
}

/// Whether a cut divides the next one of a chain and is divided by the one before.
fn fits(chain: &BTreeSet<i64>, cut: i64, total: i64) -> bool {
    let below = chain.range(..cut).next_back().copied().unwrap_or(1);
    let above = chain.range(cut..).next().copied().unwrap_or(total);
    cut % below == 0 && above % cut == 0
}

fn breaks_any(breaks: &impl Fn(usize) -> bool, d: usize) -> bool {
    d > 0 && breaks(d - 1)
}

fn identity(rank: usize) -> Vec<Option<usize>> {
    (0..rank).map(Some).collect()
}

fn every_boundary(dims: &[usize]) -> BTreeSet<i64> {
    (1..dims.len()).map(|d| volume(&dims[d..])).collect()
}
