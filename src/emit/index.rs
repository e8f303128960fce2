//! Element indices as kernel values, and how they map through reshapes.
//!
//! An index names one element, or a run of `lanes` elements: the dimensions `first..=last` form a
//! group (read as one row-major number), and lane l is l further along it. The run never crosses a
//! multiple of `block` in that number, nor the end of the group.
//!
//! Quotients and remainders are remembered, so that taking a number apart and putting it together
//! again (a reshape there and back, a collapsed loop) costs nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;

/// Where an element, or a run of elements, is in an array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// Index of the first element, one value a dimension.
    pub at: SmallVec<[ExprId; 6]>,
    /// Number of elements.
    pub lanes: u16,
    /// First dimension of the group along which the lanes lie.
    pub first: usize,
    /// Last dimension of that group.
    pub last: usize,
    /// The run does not cross a multiple of this; equal to `lanes` when the run starts at one.
    pub block: i64,
    /// The row-major position of the first element, when it is known without work.
    pub linear: Option<ExprId>,
}

impl Index {
    /// The index of a single element.
    pub fn scalar(at: impl IntoIterator<Item = ExprId>) -> Self {
        Self {
            at: at.into_iter().collect(),
            lanes: 1,
            first: 0,
            last: 0,
            block: 1,
            linear: None,
        }
    }
    /// A run along one dimension.
    pub fn run(at: impl IntoIterator<Item = ExprId>, lanes: u16, dim: usize, block: i64) -> Self {
        if lanes == 1 {
            return Self::scalar(at);
        }
        Self {
            at: at.into_iter().collect(),
            lanes,
            first: dim,
            last: dim,
            block,
            linear: None,
        }
    }
    /// Whether lane 0 is at a multiple of the number of lanes within the group.
    pub fn is_aligned(&self) -> bool {
        self.block == i64::from(self.lanes)
    }
    /// Whether dimension `d` changes from lane to lane.
    pub fn varies(&self, d: usize) -> bool {
        self.lanes > 1 && (self.first..=self.last).contains(&d)
    }
    /// The first lane alone.
    #[must_use]
    pub fn first_lane(&self) -> Self {
        let mut one = Self::scalar(self.at.iter().copied());
        one.linear = self.linear;
        one
    }
    /// The same lanes with the group made as small as the block and the dimensions allow.
    #[must_use]
    pub fn narrowed(mut self, dims: &[usize]) -> Self {
        if self.lanes == 1 {
            return self;
        }
        while self.first < self.last && dims[self.last] == 1 {
            self.last -= 1;
        }
        while self.first < self.last {
            let rest = volume(&dims[self.first + 1..=self.last]);
            if rest % self.block != 0 && dims[self.first] != 1 {
                break;
            }
            self.first += 1;
        }
        self
    }
}

/// The number of elements of an array of these dimensions.
pub fn volume(dims: &[usize]) -> i64 {
    dims.iter().map(|&d| d as i64).product()
}

/// The numbers taken apart and put together in one kernel.
///
/// Only facts that hold wherever their key is visible are kept: the parts of a sum are visible with
/// it, and so is a number with its quotient and remainder. A sum is not kept by its parts, which
/// may be visible where it is not.
#[derive(Default)]
pub struct Splits {
    parts: RefCell<BTreeMap<(ExprId, ExprId, i64), ExprId>>,
    whole: RefCell<BTreeMap<ExprId, (ExprId, ExprId, i64)>>,
}

impl Splits {
    /// Quotient and remainder of a non-negative number by `n`.
    pub fn split(&self, b: &mut KernelBuilder, v: ExprId, n: i64) -> (ExprId, ExprId) {
        let known = self.whole.borrow().get(&v).copied();
        match known {
            Some((q, r, m)) if m == n => (q, r),
            Some((q, r, m)) if m % n == 0 => {
                let times = b.mul_const(q, m / n);
                let (high, low) = self.split(b, r, n);
                (b.add(times, high), low)
            }
            Some((q, r, m)) if n % m == 0 => {
                let (high, low) = self.split(b, q, n / m);
                (high, self.join(b, low, r, m))
            }
            _ => {
                let (q, r) = (b.div_const(v, n), b.rem_const(v, n));
                // Parts that fold to constants may be visible where their number is not.
                if b.as_const(q).is_none() && b.as_const(r).is_none() {
                    self.parts.borrow_mut().insert((q, r, n), v);
                }
                (q, r)
            }
        }
    }

    /// `q * n + r`, where `r` is below `n`.
    pub fn join(&self, b: &mut KernelBuilder, q: ExprId, r: ExprId, n: i64) -> ExprId {
        let known = self.parts.borrow().get(&(q, r, n)).copied();
        if let Some(v) = known {
            return v;
        }
        let scaled = b.mul_const(q, n);
        let v = b.add(scaled, r);
        if b.as_const(v).is_none() && v != r && v != q {
            self.whole.borrow_mut().insert(v, (q, r, n));
        }
        v
    }

    /// The row-major position of `at` within dimensions `dims`.
    pub fn position(&self, b: &mut KernelBuilder, dims: &[usize], at: &[ExprId]) -> ExprId {
        let Some(&(mut position)) = at.first() else {
            return b.index(0);
        };
        for d in 1..dims.len() {
            position = self.join(b, position, at[d], dims[d] as i64);
        }
        position
    }

    /// The index at a row-major position.
    pub fn unravel(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        position: ExprId,
    ) -> SmallVec<[ExprId; 6]> {
        let zero = b.index(0);
        let mut at: SmallVec<[ExprId; 6]> = SmallVec::from_elem(zero, dims.len());
        let mut rest = position;
        for d in (0..dims.len()).rev() {
            if dims[d] == 1 {
                continue;
            }
            if volume(&dims[..d]) == 1 {
                at[d] = rest;
                break;
            }
            let (q, r) = self.split(b, rest, dims[d] as i64);
            at[d] = r;
            rest = q;
        }
        at
    }

    /// The index of a run of an array from a row-major position on; it crosses no multiple of
    /// `block`.
    pub fn run_at(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        position: ExprId,
        lanes: u16,
        block: i64,
    ) -> Index {
        let at = self.unravel(b, dims, position);
        let mut index = Index::scalar(at);
        index.linear = Some(position);
        if lanes > 1 && !dims.is_empty() {
            index.lanes = lanes;
            index.last = dims.len() - 1;
            index.block = block;
            return index.narrowed(dims);
        }
        index
    }

    /// The row-major position of lane 0.
    pub fn linear(&self, b: &mut KernelBuilder, dims: &[usize], index: &Index) -> ExprId {
        match index.linear {
            Some(linear) => linear,
            None => self.position(b, dims, &index.at),
        }
    }

    /// The group read as one number, for lane 0.
    pub fn group(&self, b: &mut KernelBuilder, dims: &[usize], index: &Index) -> ExprId {
        let range = index.first..=index.last;
        self.position(b, &dims[range.clone()], &index.at[range])
    }

    /// The index of one lane.
    pub fn lane(&self, b: &mut KernelBuilder, dims: &[usize], index: &Index, lane: u16) -> Index {
        let mut one = index.first_lane();
        if lane == 0 {
            return one;
        }
        let lane = i64::from(lane);
        one.linear = match index.linear {
            Some(linear) if volume(&dims[index.last + 1..]) == 1 => Some(b.add_const(linear, lane)),
            _ => None,
        };
        if index.first == index.last {
            one.at[index.first] = b.add_const(index.at[index.first], lane);
            return one;
        }
        let group = self.group(b, dims, index);
        let moved = b.add_const(group, lane);
        let parts = self.unravel(b, &dims[index.first..=index.last], moved);
        one.at[index.first..=index.last].copy_from_slice(&parts);
        one
    }

    /// The values of dimension `d`: one number when it does not vary, else one a lane.
    pub fn lane_values(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        index: &Index,
        d: usize,
    ) -> ExprId {
        if !index.varies(d) || dims[d] == 1 {
            return index.at[d];
        }
        let wide = crate::kernel::Ty::vector(crate::kernel::Scalar::I64, index.lanes);
        let lanes = b.lane_ids(wide);
        if index.first == index.last {
            return b.add(index.at[d], lanes);
        }
        let group = self.group(b, dims, index);
        let mut number = b.add(group, lanes);
        let below = volume(&dims[d + 1..=index.last]);
        number = b.div_const(number, below);
        if d == index.first {
            return number;
        }
        b.rem_const(number, dims[d] as i64)
    }

    /// The index into an array of dimensions `to` of the same elements in the same order; nothing
    /// when the run cannot be kept together.
    pub fn reshape(
        &self,
        b: &mut KernelBuilder,
        from: &[usize],
        to: &[usize],
        index: &Index,
    ) -> Option<Index> {
        if from == to {
            return Some(index.clone());
        }
        let linear = self.linear(b, from, index);
        let at = self.unravel(b, to, linear);
        let mut out = Index {
            at,
            lanes: 1,
            first: 0,
            last: 0,
            block: 1,
            linear: Some(linear),
        };
        if index.lanes == 1 {
            return Some(out);
        }
        // The group ends where an equal number of elements lies below it on both sides.
        let below = volume(&from[index.last + 1..]);
        let last = (0..to.len())
            .rev()
            .find(|&d| volume(&to[d + 1..]) == below && to[d] != 1)?;
        let size = volume(&from[index.first..=index.last]);
        let whole = index.first == 0 || volume(&from[..index.first]) == 1;
        // A multiple of the block in the old group is one in the new group only if the number of
        // elements in front of the old group is.
        let block = if whole || size % index.block == 0 {
            index.block
        } else {
            size
        };
        let first = (0..=last).rev().find(|&d| {
            let size = volume(&to[d..=last]);
            size % block == 0 || volume(&to[..d]) == 1
        })?;
        out.lanes = index.lanes;
        out.first = first;
        out.last = last;
        out.block = block;
        Some(out)
    }
}
