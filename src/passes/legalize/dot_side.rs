//! An operand of a dot seen through the transposes and reshapes that it is made by.
//!
//! The dimensions are cut so finely that every reshape on the way only joins or splits them; what a
//! dot does with each is kept as lists of their numbers. Dimensions of one are left out.

use std::ops::Range;

use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::passes::edit::Edit;
use crate::shape::Dims;
use crate::shape::Shape;
use crate::shape::index::inverse_permutation;

/// One operand: the sizes of its dimensions in memory order, and which of them are batch, free,
/// contracting, each list read as one row-major number.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) id: InstrId,
    pub(super) dims: Dims,
    pub(super) batch: Dims,
    pub(super) free: Dims,
    pub(super) contracting: Dims,
    /// Transposes that were seen through.
    pub(super) folded: usize,
}

/// A side as an operand of a dot in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) dims: Dims,
    pub(super) batch: Dims,
    pub(super) contracting: usize,
}

/// The coarsest sizes of which both lists are groupings, and how many of them each element of either
/// list takes; nothing when there are none. No size is zero or one.
fn refine(left: &[usize], right: &[usize]) -> Option<(Dims, Dims, Dims)> {
    let (mut sizes, mut of_left, mut of_right) = (Dims::new(), Dims::new(), Dims::new());
    let (mut left, mut right) = (left.iter().rev(), right.iter().rev());
    let (mut l, mut r) = (left.next().copied(), right.next().copied());
    let (mut taken_l, mut taken_r) = (0, 0);
    while let (Some(a), Some(b)) = (l, r) {
        let size = a.min(b);
        if size < 2 || !a.is_multiple_of(size) || !b.is_multiple_of(size) {
            return None;
        }
        sizes.push(size);
        (taken_l, taken_r) = (taken_l + 1, taken_r + 1);
        (l, r) = (Some(a / size), Some(b / size));
        if l == Some(1) {
            of_left.push(taken_l);
            (l, taken_l) = (left.next().copied(), 0);
        }
        if r == Some(1) {
            of_right.push(taken_r);
            (r, taken_r) = (right.next().copied(), 0);
        }
    }
    for list in [&mut sizes, &mut of_left, &mut of_right] {
        list.reverse();
    }
    (l.is_none() && r.is_none()).then_some((sizes, of_left, of_right))
}

/// The range of parts of each element, from the number of parts of each.
fn ranges(counts: &[usize]) -> Vec<Range<usize>> {
    let mut start = 0;
    counts
        .iter()
        .map(|&count| {
            start += count;
            start - count..start
        })
        .collect()
}

/// Whether the numbers go up one by one.
fn is_run(list: &[usize]) -> bool {
    list.windows(2).all(|w| w[1] == w[0] + 1)
}

/// The sizes that are not one.
fn without_ones(dims: &[usize]) -> Dims {
    dims.iter().copied().filter(|&d| d != 1).collect()
}

impl Side {
    pub(super) fn new(
        edit: &Edit<'_>,
        id: InstrId,
        batch: &[usize],
        contracting: &[usize],
    ) -> Option<Self> {
        let array = edit.array(id)?;
        let mut place = Vec::with_capacity(array.rank());
        let mut dims = Dims::new();
        for &size in &array.dims {
            place.push((size != 1).then_some(dims.len()));
            if size != 1 {
                dims.push(size);
            }
        }
        let keep = |list: &[usize]| -> Dims { list.iter().filter_map(|&d| place[d]).collect() };
        let (batch, contracting) = (keep(batch), keep(contracting));
        let free = (0..dims.len())
            .filter(|d| !batch.contains(d) && !contracting.contains(d))
            .collect();
        Some(Self {
            id,
            dims,
            batch,
            free,
            contracting,
            folded: 0,
        })
    }

    pub(super) fn size(&self, list: &[usize]) -> usize {
        list.iter().map(|&d| self.dims[d]).product()
    }

    pub(super) fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    pub(super) fn sizes(&self, list: &[usize]) -> Dims {
        list.iter().map(|&d| self.dims[d]).collect()
    }

    fn lists(&mut self) -> [&mut Dims; 3] {
        [&mut self.batch, &mut self.free, &mut self.contracting]
    }

    /// Every dimension becomes a range of new ones.
    fn renumber(&mut self, ranges: &[Range<usize>]) {
        for list in self.lists() {
            *list = list.iter().flat_map(|&d| ranges[d].clone()).collect();
        }
    }

    /// Cuts dimensions: dimension `d` into the sizes that `parts` gives for it, if any.
    fn split(&mut self, parts: impl Fn(usize) -> Option<Dims>) {
        let mut dims = Dims::new();
        let mut ranges = Vec::with_capacity(self.dims.len());
        for (d, &size) in self.dims.iter().enumerate() {
            let start = dims.len();
            match parts(d) {
                Some(sizes) => dims.extend(sizes),
                None => dims.push(size),
            }
            ranges.push(start..dims.len());
        }
        self.dims = dims;
        self.renumber(&ranges);
    }

    /// The side as a view of what its value is a reshape or transpose of; nothing when the value is
    /// neither, or its dimensions do not map.
    pub(super) fn peeled(&self, edit: &Edit<'_>) -> Option<Self> {
        let instr = edit.instr(self.id);
        let source = match &instr.op {
            Op::Reshape { .. } | Op::Transpose { .. } => edit.resolve(*instr.operands.first()?),
            _ => return None,
        };
        let from = &edit.array(source)?.dims;
        let mut side = Self {
            id: source,
            ..self.clone()
        };
        if let Op::Transpose { dims: order } = &instr.op {
            // The dimensions of the transposed array, and which of ours each one is cut into.
            let own = without_ones(&edit.array(self.id)?.dims);
            let (_, _, counts) = refine(&self.dims, &own)?;
            let groups = ranges(&counts);
            let order: Dims = order.iter().copied().filter(|&d| from[d] != 1).collect();
            // `order` with its numbers made consecutive.
            let mut sorted = order.clone();
            sorted.sort_unstable();
            let order: Dims = order
                .iter()
                .filter_map(|d| sorted.iter().position(|s| s == d))
                .collect();
            let mut moved = vec![0..0; self.dims.len()];
            side.dims.clear();
            for &group in &inverse_permutation(&order) {
                for d in groups[group].clone() {
                    moved[d] = side.dims.len()..side.dims.len() + 1;
                    side.dims.push(self.dims[d]);
                }
            }
            side.renumber(&moved);
            side.folded += 1;
        } else {
            let (dims, counts, _) = refine(&self.dims, &without_ones(from))?;
            side.dims = dims;
            side.renumber(&ranges(&counts));
        }
        Some(side)
    }

    /// Whether a product can read it where it lies: rows (or columns) and sums are each one run of
    /// neighbouring dimensions, and neighbours in memory differ in one of them.
    pub(super) fn reads_well(&self) -> bool {
        let last = self.dims.len().checked_sub(1);
        is_run(&self.free)
            && is_run(&self.contracting)
            && (last.is_none()
                || self.free.last().copied() == last
                || self.contracting.last().copied() == last
                || self.free.is_empty() && self.contracting.is_empty())
    }

    /// The order that brings batch, free and contracting dimensions together; the fastest-varying
    /// dimension stays that where it can.
    fn gathered(&self) -> Dims {
        let contracting_last = self.free.last() != Some(&(self.dims.len() - 1));
        let (first, last) = if contracting_last {
            (&self.free, &self.contracting)
        } else {
            (&self.contracting, &self.free)
        };
        let lists = [&self.batch, first, last];
        lists.into_iter().flatten().copied().collect()
    }

    /// The same side in that order, through a transpose.
    pub(super) fn gather(&self, edit: &mut Edit<'_>, comp: CompId) -> Result<Self> {
        self.in_order(edit, comp, self.gathered())
    }

    /// The same side with its dimensions in this order, through a transpose where one is needed.
    pub(super) fn in_order(&self, edit: &mut Edit<'_>, comp: CompId, order: Dims) -> Result<Self> {
        if order.iter().enumerate().all(|(i, &d)| i == d) {
            return Ok(self.clone());
        }
        let mut side = self.clone();
        let value = reshape(edit, comp, self.id, &self.dims)?;
        side.dims = self.sizes(&order);
        let inverse = inverse_permutation(&order);
        for list in side.lists() {
            for d in list.iter_mut() {
                *d = inverse[*d];
            }
        }
        side.id = edit.op(comp, Op::Transpose { dims: order }, &[value])?;
        Ok(side)
    }

    /// The operand's dimensions in a dot: one for the rows or columns, one for the sums, which may
    /// be of size one, and those of the batch. For a side that reads well.
    pub(super) fn placed(&self) -> Placed {
        let mut dims = Dims::new();
        let mut batch: Dims = Dims::from_elem(0, self.batch.len());
        let mut contracting = 0;
        let (free_size, summed) = (self.size(&self.free), self.size(&self.contracting));
        for d in 0..self.dims.len() {
            if let Some(at) = self.batch.iter().position(|&x| x == d) {
                batch[at] = dims.len();
                dims.push(self.dims[d]);
            } else if self.free.first() == Some(&d) {
                dims.push(free_size);
                if self.contracting.is_empty() {
                    contracting = dims.len();
                    dims.push(1);
                }
            } else if self.contracting.first() == Some(&d) {
                if self.free.is_empty() {
                    dims.push(1);
                }
                contracting = dims.len();
                dims.push(summed);
            }
        }
        if self.free.is_empty() && self.contracting.is_empty() {
            contracting = dims.len() + 1;
            dims.extend([1, 1]);
        }
        Placed {
            dims,
            batch,
            contracting,
        }
    }
}

/// A reshape, where one is needed.
pub(super) fn reshape(
    edit: &mut Edit<'_>,
    comp: CompId,
    id: InstrId,
    dims: &[usize],
) -> Result<InstrId> {
    match edit.array(id).map(|a| (a.ty, a.dims.as_slice() == dims)) {
        Some((ty, false)) => {
            let shape = Shape::array(ty, dims.iter().copied());
            edit.shaped(comp, Op::Reshape { inferred_dim: None }, &[id], shape)
        }
        _ => Ok(id),
    }
}

/// Cuts the dimensions of both sides so that batch and contracting dimensions pair up one to one;
/// false when they cannot.
pub(super) fn pair_up(lhs: &mut Side, rhs: &mut Side) -> bool {
    for pick in [|s: &Side| s.batch.clone(), |s: &Side| s.contracting.clone()] {
        let (left, right) = (pick(lhs), pick(rhs));
        let Some((sizes, of_left, of_right)) = refine(&lhs.sizes(&left), &rhs.sizes(&right)) else {
            return false;
        };
        for (side, list, counts) in [(&mut *lhs, left, of_left), (&mut *rhs, right, of_right)] {
            let parts = ranges(&counts);
            side.split(|d| {
                let at = list.iter().position(|&x| x == d)?;
                Some(Dims::from_slice(&sizes[parts[at].clone()]))
            });
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::refine;

    #[test]
    fn common_parts_of_two_lists() {
        let parts = |left: &[usize], right: &[usize]| {
            refine(left, right).map(|(s, l, r)| (s.to_vec(), l.to_vec(), r.to_vec()))
        };
        assert_eq!(
            parts(&[24, 64], &[2, 12, 8, 8]),
            Some((vec![2, 12, 8, 8], vec![2, 2], vec![1, 1, 1, 1]))
        );
        assert_eq!(
            parts(&[6, 4], &[2, 12]),
            Some((vec![2, 3, 4], vec![2, 1], vec![1, 2]))
        );
        assert_eq!(parts(&[2, 3], &[3, 2]), None);
        assert_eq!(parts(&[4], &[4, 2]), None);
        assert_eq!(parts(&[0], &[0]), None);
    }
}
