//! Shapes of collectives, and of infeed, outfeed, send and recv.

use crate::base::Result;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::ReplicaGroups;
use crate::hlo::infer::Infer;
use crate::hlo::infer::agree;
use crate::hlo::infer::bare;
use crate::hlo::infer::text;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl Infer<'_> {
    /// One operand's shape alone, or a tuple of all, where the program does not state a tuple of one.
    fn all_operands(&self) -> Result<Shape> {
        self.at_least(1)?;
        let stated_tuple = self.declared.is_some_and(Shape::is_tuple);
        if self.operands.len() == 1 && (self.operands[0].is_tuple() || !stated_tuple) {
            Ok(self.operands[0].without_layout())
        } else {
            Ok(self.tuple())
        }
    }

    pub(super) fn collective(&self, kind: &CollectiveKind, of: &Collective) -> Result<Shape> {
        self.replica_groups(&of.replica_groups)?;
        match kind {
            CollectiveKind::AllGather { dim } => self.all_gather(*dim),
            CollectiveKind::AllGatherStart { dim } => self.all_gather_start(*dim),
            CollectiveKind::AllReduce { body } | CollectiveKind::AllReduceStart { body } => {
                self.all_reduce_body(*body)?;
                self.all_operands()
            }
            CollectiveKind::ReduceScatter { dim, body } => {
                self.all_reduce_body(*body)?;
                self.scaled_along(*dim, false)
            }
            CollectiveKind::AllToAll { dim } => {
                if let Some(dim) = dim {
                    self.arity(1)?;
                    self.dim("dimensions", *dim, self.array(0)?)?;
                }
                for i in 0..self.operands.len() {
                    self.ensure(agree(self.operands[0], self.operands[i]), || {
                        let (a, b) = (text(self.operands[0]), text(self.operands[i]));
                        format!("operand {i} is {b} where operand 0 is {a}")
                    })?;
                }
                self.all_operands()
            }
            CollectiveKind::RaggedAllToAll => {
                self.arity(6)?;
                let (input, output) = (self.array(0)?, self.array(1)?);
                self.same_type(0, input.ty, 1, output.ty)?;
                let rows = input.dims.split_first().zip(output.dims.split_first());
                let fits = rows.is_some_and(|((_, input), (_, output))| input == output);
                self.ensure(fits, || {
                    let (from, to) = (text(self.operands[0]), text(self.operands[1]));
                    format!("rows of {from} are no rows of {to}")
                })?;
                let rank = self.array(2)?.rank();
                self.ensure((1..3).contains(&rank), || {
                    format!("offsets have rank {rank} instead of 1 or 2")
                })?;
                for i in 2..6 {
                    let array = self.array(i)?;
                    self.ensure(array.ty.is_integer(), || {
                        format!("operand {i} has element type {}", array.ty)
                    })?;
                    self.same_sizes(2, self.array(2)?, i, array)?;
                }
                Ok(Shape::Array(bare(output)))
            }
            CollectiveKind::CollectiveBroadcast => self.all_operands(),
            CollectiveKind::CollectivePermute { pairs, .. } => {
                self.permute_pairs(pairs)?;
                self.permuted()
            }
            CollectiveKind::CollectivePermuteStart { pairs, .. } => {
                self.permute_pairs(pairs)?;
                let stated = self.declared.and_then(|d| d.at(&[1]));
                let inner = Infer {
                    declared: stated,
                    ..*self
                };
                let result = inner.permuted()?;
                let mut parts = vec![self.operand(0)?.without_layout(), result];
                if let Some(stated) = self.declared.and_then(Shape::as_tuple) {
                    parts.extend(stated.iter().skip(2).map(Shape::without_layout));
                }
                Ok(Shape::Tuple(parts))
            }
        }
    }

    /// Groups that are listed hold no device twice and are not empty.
    fn replica_groups(&self, groups: &ReplicaGroups) -> Result<()> {
        match groups {
            ReplicaGroups::List(groups) => {
                let mut seen = std::collections::BTreeSet::new();
                for group in groups {
                    self.ensure(!group.is_empty() || groups.len() == 1, || {
                        "has an empty replica group".to_owned()
                    })?;
                    for &device in group {
                        self.ensure(seen.insert(device), || {
                            format!("replica groups name {device} twice")
                        })?;
                    }
                }
                Ok(())
            }
            ReplicaGroups::Iota { dims, reshape, .. } => {
                let count = |sizes: &[i64]| sizes.iter().try_fold(1i64, |n, &s| n.checked_mul(s));
                self.ensure(count(dims) == count(reshape), || {
                    "replica groups reshape an iota to another size".to_owned()
                })
            }
        }
    }

    fn permute_pairs(&self, pairs: &[(i64, i64)]) -> Result<()> {
        let mut sources = std::collections::BTreeSet::new();
        let mut targets = std::collections::BTreeSet::new();
        for &(source, target) in pairs {
            self.ensure(sources.insert(source), || {
                format!("source {source} appears twice")
            })?;
            self.ensure(targets.insert(target), || {
                format!("target {target} appears twice")
            })?;
        }
        Ok(())
    }

    /// One operand, or (input, output, input start, output start) for the in-place form.
    fn permuted(&self) -> Result<Shape> {
        if self.operands.len() == 4 && self.declared.is_none_or(|d| !d.is_tuple()) {
            return Ok(self.operand(1)?.without_layout());
        }
        self.all_operands()
    }

    /// all_reduce C5: the body reduces scalars of one type.
    fn all_reduce_body(&self, body: CompId) -> Result<()> {
        let (params, result) = self.signature(body)?;
        let scalar = |s: &Shape| s.as_array().is_some_and(|a| a.rank() == 0);
        let fits = params.len() == 2 && params.iter().all(|p| scalar(p) && agree(p, result));
        self.ensure(fits, || {
            "body does not reduce two scalars of a type to one".to_owned()
        })?;
        for i in 0..self.operands.len() {
            let array = self.array(i)?;
            let ty = params[0].as_array().map(|a| a.ty);
            // Programs may reduce in a wider or narrower float than the operands have.
            let loose = ty.is_some_and(|t| t.is_float() && array.ty.is_float());
            self.ensure(loose || ty == Some(array.ty), || {
                format!(
                    "body reduces {} where operand {i} is {}",
                    text(params[0]),
                    array.ty
                )
            })?;
        }
        Ok(())
    }

    /// all_gather and reduce_scatter: the stated shape, a whole multiple (or fraction) along `dim`.
    fn scaled_along(&self, dim: usize, grows: bool) -> Result<Shape> {
        self.at_least(1)?;
        let stated = self.declared()?;
        let single = [stated.clone()];
        let results = match stated.as_tuple() {
            Some(parts) => parts,
            None => &single,
        };
        self.ensure(results.len() == self.operands.len(), || {
            let (found, wanted) = (results.len(), self.operands.len());
            format!("gives {found} results for {wanted} operands")
        })?;
        for (i, result) in results.iter().enumerate() {
            let from = self.array(i)?;
            self.dim("dimensions", dim, from)?;
            let fits = result
                .as_array()
                .is_some_and(|to| fits_along(dim, grows, from, to));
            self.ensure(fits, || {
                let (from, to) = (text(self.operands[i]), text(result));
                format!("turns {from} into {to} along dimension {dim}")
            })?;
        }
        Ok(stated.without_layout())
    }

    fn all_gather(&self, dim: usize) -> Result<Shape> {
        self.scaled_along(dim, true)
    }

    /// (operands, results), each alone or a tuple.
    fn all_gather_start(&self, dim: usize) -> Result<Shape> {
        let stated = self.declared()?;
        let Some([inputs, results, ..]) = stated.as_tuple() else {
            return Err(self.fail(format!("result is {} instead of a pair", text(stated))));
        };
        let wanted = self.all_inputs_like(inputs);
        self.ensure(agree(inputs, &wanted), || {
            format!(
                "first result is {} instead of {}",
                text(inputs),
                text(&wanted)
            )
        })?;
        let inner = Infer {
            declared: Some(results),
            ..*self
        };
        inner.all_gather(dim)?;
        Ok(stated.without_layout())
    }

    fn all_inputs_like(&self, stated: &Shape) -> Shape {
        match self.operands {
            [one] if !stated.is_tuple() => one.without_layout(),
            _ => self.tuple(),
        }
    }

    /// The result part of what a start op gives.
    pub(super) fn second_of_start(&self) -> Result<Shape> {
        self.arity(1)?;
        match self.tuple_operand()? {
            [_, result, ..] => Ok(result.without_layout()),
            _ => Err(self.fail("operand is not what the start gives")),
        }
    }

    /// infeed C1 to C5: (data, token).
    pub(super) fn infeed(&self) -> Result<Shape> {
        self.arity(1)?;
        self.token(0)?;
        let stated = self.declared()?;
        let fits = stated
            .as_tuple()
            .is_some_and(|t| t.len() == 2 && t[1] == Shape::Token);
        self.ensure(fits, || {
            format!("result is {} instead of (data, token[])", text(stated))
        })?;
        Ok(stated.without_layout())
    }

    /// outfeed C1: data and token in, token out.
    pub(super) fn outfeed(&self, shape: &Shape) -> Result<Shape> {
        self.arity(2)?;
        self.token(1)?;
        let data = self.operand(0)?;
        self.ensure(agree(shape, data), || {
            format!(
                "outfeed_shape is {} where the data is {}",
                text(shape),
                text(data)
            )
        })?;
        Ok(Shape::Token)
    }

    /// (data, context, token).
    pub(super) fn send(&self) -> Result<Shape> {
        self.arity(2)?;
        self.token(1)?;
        let context = Shape::scalar(PrimitiveType::U32);
        Ok(Shape::Tuple(vec![
            self.operand(0)?.without_layout(),
            context,
            Shape::Token,
        ]))
    }

    pub(super) fn send_done(&self) -> Result<Shape> {
        self.transfer_operand()?;
        Ok(Shape::Token)
    }

    /// (data, context, token) with the stated data.
    pub(super) fn recv(&self) -> Result<Shape> {
        self.arity(1)?;
        self.token(0)?;
        let stated = self.declared()?;
        match stated.as_tuple() {
            Some([_, context, Shape::Token])
                if agree(context, &Shape::scalar(PrimitiveType::U32)) =>
            {
                Ok(stated.without_layout())
            }
            _ => Err(self.fail(format!(
                "result is {} instead of (data, u32[], token[])",
                text(stated)
            ))),
        }
    }

    pub(super) fn recv_done(&self) -> Result<Shape> {
        let data = self.transfer_operand()?[0].without_layout();
        Ok(Shape::Tuple(vec![data, Shape::Token]))
    }

    /// The operand of a done op: what send or recv gives.
    fn transfer_operand(&self) -> Result<&[Shape]> {
        self.arity(1)?;
        let tuple = self.tuple_operand()?;
        self.ensure(matches!(tuple, [_, _, Shape::Token]), || {
            "operand is not what the start gives".to_owned()
        })?;
        Ok(tuple)
    }
}

/// Whether `to` is `from` times (or over) a whole number along `dim`, and equal elsewhere.
fn fits_along(dim: usize, grows: bool, from: &ArrayShape, to: &ArrayShape) -> bool {
    let (small, large) = if grows { (from, to) } else { (to, from) };
    from.ty == to.ty
        && from.rank() == to.rank()
        && (0..from.rank()).all(|d| {
            if d == dim {
                small.dims[d] == large.dims[d]
                    || (small.dims[d] != 0 && large.dims[d].is_multiple_of(small.dims[d]))
            } else {
                from.dims[d] == to.dims[d]
            }
        })
}
