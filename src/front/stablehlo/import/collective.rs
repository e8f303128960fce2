//! Ops between devices.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::shardings;
use crate::front::stablehlo::types;
use crate::hlo::BinaryOp;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::ReplicaGroups;
use crate::mlir::Attr;
use crate::mlir::OpRef;
use crate::mlir::Type;
use crate::shape::Shape;

/// Device ids of a channel handle that say nothing.
const NO_CHANNEL: i64 = 0;

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn collective(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        let kind = match name {
            "partition_id" | "replica_id" => {
                let hlo = match name {
                    "partition_id" => Op::PartitionId,
                    _ => Op::ReplicaId,
                };
                self.emit_one(op, hlo, &[])?;
                return Ok(true);
            }
            "all_gather" => CollectiveKind::AllGather {
                dim: self.index(op, "all_gather_dim")?,
            },
            "all_reduce" => CollectiveKind::AllReduce {
                body: self.region_of(op, 0)?,
            },
            "cross-replica-sum" => {
                let x = self.operand(op, 0)?;
                let ty = self.b().ty(x)?;
                CollectiveKind::AllReduce {
                    body: self.b().monoid(BinaryOp::Add, ty)?,
                }
            }
            "reduce_scatter" => CollectiveKind::ReduceScatter {
                dim: self.index(op, "scatter_dimension")?,
                body: self.region_of(op, 0)?,
            },
            "all_to_all" => {
                self.all_to_all(op)?;
                return Ok(true);
            }
            "collective_broadcast" => {
                if op.bool_or("has_dynamic_root", false)? {
                    return Err(op.unsupported("HLO has no broadcast from a device it computes"));
                }
                CollectiveKind::CollectiveBroadcast
            }
            "collective_permute" => {
                let pairs = op.attr_ints("source_target_pairs")?;
                CollectiveKind::CollectivePermute {
                    pairs: pairs.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
                    slice_sizes: Vec::new(),
                }
            }
            _ => return Ok(false),
        };
        self.between(op, kind)?;
        Ok(true)
    }

    /// A collective whose results have the shapes that their types say, or those of the operands. A
    /// reduction may ask for another element type than its operands have, and is one of that type.
    fn between(&mut self, op: OpRef<'m>, kind: CollectiveKind) -> Result<()> {
        let mut operands = self.operands(op)?;
        let reduces = matches!(
            kind,
            CollectiveKind::AllReduce { .. } | CollectiveKind::ReduceScatter { .. }
        );
        if reduces && operands.len() == op.results.len() {
            for (index, operand) in operands.iter_mut().enumerate() {
                let ty = self.element_type(op, index)?;
                *operand = self.b().convert(*operand, ty)?;
            }
        }
        let hlo = Op::Collective {
            collective: Box::new(self.collective_of(op)?),
            kind,
        };
        let shapes: Result<Vec<Shape>> = (0..op.results.len())
            .map(|i| match (self.declared_shape(op, i)?, operands.get(i)) {
                (Some(shape), _) => Ok(shape),
                (None, Some(&operand)) => Ok(self.out.shape(operand).without_layout()),
                (None, None) => self.needed_shape(op, i),
            })
            .collect();
        let shape = types::one_or_tuple(shapes?);
        let id = self.b().shaped(hlo, &operands, shape)?;
        self.set_results(op, id)
    }

    fn collective_of(&self, op: OpRef<'m>) -> Result<Collective> {
        Ok(Collective {
            replica_groups: match op.attr("replica_groups") {
                Some(attr) => self.groups_of(op, attr)?,
                None => ReplicaGroups::List(Vec::new()),
            },
            channel_id: channel_id(op)?,
            use_global_device_ids: op.bool_or("use_global_device_ids", false)?,
            constrain_layout: false,
        })
    }

    /// Groups of devices: the rows of a table, -1 where a row is shorter, or those that differ along
    /// axes of a mesh.
    pub(super) fn groups_of(&self, op: OpRef<'m>, attr: &'m Attr) -> Result<ReplicaGroups> {
        if let Some(axes) = attr.as_struct("stablehlo", "replica_group_mesh_axes") {
            let groups = shardings::groups(axes, &self.meshes);
            let groups = groups.map_err(|what| op.wrong(format!("its replica groups: {what}")))?;
            return Ok(ReplicaGroups::List(groups));
        }
        let broken = || op.unsupported("replica groups that are no table of numbers");
        let Attr::Dense(dense) = attr else {
            return Err(broken());
        };
        let width = match &dense.ty {
            Type::Tensor(tensor) => match &*tensor.dims {
                [_, Some(width)] => *width,
                [Some(_)] | [] => 1,
                _ => return Err(broken()),
            },
            _ => return Err(broken()),
        };
        let width = usize::try_from(width).map_err(|_| broken())?;
        let ids = dense.ints().ok_or_else(broken)?;
        let groups: Vec<Vec<i64>> = match width {
            0 => Vec::new(),
            _ => ids
                .chunks(width)
                .map(|row| row.iter().copied().filter(|id| *id >= 0).collect())
                .collect(),
        };
        Ok(ReplicaGroups::List(groups))
    }

    /// Each array is cut along one dimension and put together along another; without dimensions,
    /// which only MHLO leaves out, the arrays are exchanged whole.
    fn all_to_all(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        if !op.has_attr("split_dimension") {
            return self.between(op, CollectiveKind::AllToAll { dim: None });
        }
        if operands.len() != op.results.len() {
            return Err(op.wrong("another number of results than of operands"));
        }
        for (index, &x) in operands.iter().enumerate() {
            let id = self.exchanged(op, x)?;
            self.set(op, index, id)?;
        }
        Ok(())
    }

    /// One array cut along one dimension and put together along another, which takes a reshape, a
    /// transposition and a reshape after the exchange.
    fn exchanged(&mut self, op: OpRef<'m>, x: InstrId) -> Result<InstrId> {
        let split = self.index(op, "split_dimension")?;
        let concat = self.index(op, "concat_dimension")?;
        let count = self.index(op, "split_count")?;
        let dims = self.b().dims(x)?;
        if split >= dims.len()
            || concat >= dims.len()
            || count == 0
            || !dims[split].is_multiple_of(count)
        {
            return Err(op.wrong("dimensions that cannot be split so"));
        }
        let hlo = Op::Collective {
            collective: Box::new(self.collective_of(op)?),
            kind: CollectiveKind::AllToAll { dim: Some(split) },
        };
        let exchanged = self.b().op(hlo, &[x])?;
        if split == concat {
            return Ok(exchanged);
        }
        let mut cut = dims.to_vec();
        cut[split] /= count;
        cut.insert(split, count);
        let parts = self.b().reshape(exchanged, &cut)?;
        // The counter of parts goes right before the dimension that grows.
        let concat_at = if concat > split { concat + 1 } else { concat };
        let mut order: Vec<usize> = (0..cut.len()).filter(|&d| d != split).collect();
        let place = order.iter().position(|&d| d == concat_at).unwrap_or(0);
        order.insert(place, split);
        let turned = self.b().transpose(parts, &order)?;
        let mut joined = dims.to_vec();
        joined[split] /= count;
        joined[concat] *= count;
        self.b().reshape(turned, &joined)
    }
}

/// The channel of an op between devices, when it has one: the specification counts them from one.
pub fn channel_id(op: OpRef<'_>) -> Result<Option<i64>> {
    let handle = op.opt_struct("channel_handle", "channel_handle")?;
    let id = handle.and_then(|h| h.int("handle")).unwrap_or(NO_CHANNEL);
    Ok((id > NO_CHANNEL).then_some(id))
}
