//! Sizes of what reshapes give.

use std::ops::Range;

use crate::hlo::dynamic::MAX_BOUND;
use crate::hlo::dynamic::Question;
use crate::hlo::dynamic::Size;
use crate::hlo::dynamic::Sizes;
use crate::shape::ArrayShape;

/// Dimensions before and after a reshape that hold the same elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Dimensions of the operand.
    pub from: Range<usize>,
    /// Dimensions of the result.
    pub to: Range<usize>,
}

/// The finest groups of dimensions that a reshape keeps together.
pub fn groups(from: &[usize], to: &[usize]) -> Vec<Group> {
    let whole = Group {
        from: 0..from.len(),
        to: 0..to.len(),
    };
    if from.contains(&0) || to.contains(&0) {
        return vec![whole];
    }
    let mut groups: Vec<Group> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        let start = (i, j);
        let (mut before, mut after) = (from[i] as u128, to[j] as u128);
        (i, j) = (i + 1, j + 1);
        while before != after {
            if before < after && i < from.len() {
                before *= from[i] as u128;
                i += 1;
            } else if after < before && j < to.len() {
                after *= to[j] as u128;
                j += 1;
            } else {
                return vec![whole];
            }
        }
        groups.push(Group {
            from: start.0..i,
            to: start.1..j,
        });
    }
    // What is left over has size one.
    match groups.last_mut() {
        Some(last) => {
            last.from.end = from.len();
            last.to.end = to.len();
        }
        None => groups.push(whole),
    }
    groups
}

impl Question<'_> {
    /// In each group with a dynamic dimension, one dimension of the result takes what the others
    /// leave over.
    pub(super) fn reshape(&self, inferred_dim: Option<usize>) -> Result<Vec<Sizes>, String> {
        let (operand, result) = (self.operand(0)?, self.result()?);
        let mut sizes = Self::fixed(result);
        for group in groups(&operand.dims, &result.dims) {
            if group.to.is_empty() || !group.from.clone().any(|d| self.is_dynamic(0, d)) {
                continue;
            }
            let count: u128 = operand.dims[group.from.clone()]
                .iter()
                .map(|&n| n as u128)
                .product();
            if count > MAX_BOUND as u128 {
                return Err("counts more elements than s32 does".to_owned());
            }
            let chosen = self.dynamic_of(&group, result, inferred_dim)?;
            let others: i64 = group
                .to
                .clone()
                .filter(|&d| d != chosen)
                .map(|d| result.dims[d] as i64)
                .product();
            let parts: Vec<Size> = group.from.clone().map(|d| self.size(0, d)).collect();
            let total = match parts.len() {
                1 => parts[0].clone(),
                _ => Size::Product(parts),
            };
            sizes[chosen] = total.over(others.max(1));
        }
        Ok(vec![sizes])
    }

    /// The dimension of the result that is dynamic in a group.
    fn dynamic_of(
        &self,
        group: &Group,
        result: &ArrayShape,
        inferred_dim: Option<usize>,
    ) -> Result<usize, String> {
        let only = |mut dims: Vec<usize>| match dims.len() {
            1 => dims.pop(),
            _ => None,
        };
        let matching = |test: &dyn Fn(usize) -> bool| -> Vec<usize> {
            group.to.clone().filter(|&d| test(d)).collect()
        };
        if let Some(dim) = inferred_dim.filter(|d| group.to.contains(d)) {
            return Ok(dim);
        }
        let found = only(group.to.clone().collect())
            .or_else(|| only(matching(&|d| result.is_dynamic_dim(d))))
            .or_else(|| only(matching(&|d| result.dims[d] != 1)));
        found.ok_or_else(|| {
            let Range { start, end } = group.to;
            format!(
                "does not say which of the dimensions {start} to {} is dynamic",
                end - 1
            )
        })
    }

    /// Dimensions declared dynamic have the sizes that are given.
    pub(super) fn dynamic_reshape(&self) -> Result<Vec<Sizes>, String> {
        let result = self.result()?;
        let size = |d: usize| {
            let bound = result.dims[d] as i64;
            match result.is_dynamic_dim(d) && (self.constant)(1 + d) != Some(bound) {
                true => Size::Value {
                    operand: 1 + d,
                    bound,
                },
                false => Size::Fixed(bound),
            }
        };
        Ok(vec![(0..result.rank()).map(size).collect()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_the_same_elements_and_all_ones() {
        let found = |from: &[usize], to: &[usize]| -> Vec<(Range<usize>, Range<usize>)> {
            groups(from, to)
                .into_iter()
                .map(|g| (g.from, g.to))
                .collect()
        };
        assert_eq!(found(&[1, 2, 5, 1], &[10]), [(0..4, 0..1)]);
        assert_eq!(found(&[4, 2, 2], &[2, 2, 4]), [(0..1, 0..2), (1..3, 2..3)]);
        assert_eq!(found(&[2, 4, 4], &[16, 2]), [(0..3, 0..2)]);
        assert_eq!(found(&[3, 4], &[3, 2, 2]), [(0..1, 0..1), (1..2, 1..3)]);
        assert_eq!(found(&[4], &[1, 2, 2]), [(0..1, 0..3)]);
        assert_eq!(found(&[1, 4], &[1, 1, 4]), [(0..1, 0..1), (1..2, 1..3)]);
        assert_eq!(found(&[1], &[]), [(0..1, 0..0)]);
        assert_eq!(found(&[], &[1, 1]), [(0..0, 0..2)]);
        assert_eq!(found(&[0, 3], &[3, 0]), [(0..2, 0..2)]);
        assert_eq!(found(&[], &[]), [(0..0, 0..0)]);
    }
}
