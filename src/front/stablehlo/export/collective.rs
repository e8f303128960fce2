//! Ops between devices and with the host.

use crate::base::Result;
use crate::front::stablehlo::export::Exporter;
use crate::front::stablehlo::export::attributes;
use crate::front::stablehlo::export::attributes::int;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::ReplicaGroups;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::shape::Shape;
use crate::shape::index;

/// The types of channels, as StableHLO numbers them.
const DEVICE_TO_DEVICE: i64 = 1;
const DEVICE_TO_HOST: i64 = 2;
const HOST_TO_DEVICE: i64 = 3;

impl Exporter<'_> {
    /// The values of an instruction of this file; nothing for others.
    pub(super) fn collective(&mut self, id: InstrId) -> Result<Option<Vec<ValueId>>> {
        let module = self.module;
        let instr = &module.instrs[id];
        let attrs = self.plain(instr);
        let done = match &instr.op {
            Op::Collective { kind, collective } => self.between(id, kind, collective, attrs)?,
            Op::Infeed { config } => {
                let token = self.operands(id)?;
                let mut attrs = attrs;
                attrs.insert("infeed_config".into(), text(config));
                let results = self.types(&instr.shape);
                self.push_op("stablehlo.infeed", token, results, attrs)?
            }
            Op::Outfeed { config, .. } => {
                let operands = self.all_leaves(&instr.operands)?;
                let mut attrs = attrs;
                attrs.insert("outfeed_config".into(), text(config));
                self.push_op("stablehlo.outfeed", operands, vec![Type::Token], attrs)?
            }
            Op::Send {
                channel_id,
                is_host_transfer,
            } => {
                let operands = self.all_leaves(&instr.operands)?;
                let kind = match is_host_transfer {
                    true => DEVICE_TO_HOST,
                    false => DEVICE_TO_DEVICE,
                };
                let attrs = transfer(attrs, *channel_id, kind, *is_host_transfer);
                let done = self.push_op("stablehlo.send", operands, vec![Type::Token], attrs)?;
                self.started(id, done)?
            }
            Op::Recv {
                channel_id,
                is_host_transfer,
            } => {
                let operands = self.operands(id)?;
                let kind = match is_host_transfer {
                    true => HOST_TO_DEVICE,
                    false => DEVICE_TO_DEVICE,
                };
                let attrs = transfer(attrs, *channel_id, kind, *is_host_transfer);
                let data = instr.shape.at(&[0]).map(|data| self.types(data));
                let mut results = data.unwrap_or_default();
                results.push(Type::Token);
                let done = self.push_op("stablehlo.recv", operands, results, attrs)?;
                self.started(id, done)?
            }
            Op::SendDone { .. } | Op::RecvDone { .. } => {
                let start = instr.operands.first();
                let results = start.and_then(|start| self.pending.get(start)).cloned();
                results.ok_or_else(|| self.unsupported(id, "the end of a transfer"))?
            }
            _ => return Ok(None),
        };
        Ok(Some(done))
    }

    fn between(
        &mut self,
        id: InstrId,
        kind: &CollectiveKind,
        of: &Collective,
        mut attrs: AttrMap,
    ) -> Result<Vec<ValueId>> {
        let instr = &self.module.instrs[id];
        let operands = self.operands(id)?;
        let groups = self.groups(id, &of.replica_groups)?;
        let count = groups.first().map_or(1, Vec::len);
        let mut starts = false;
        let mut body: Option<CompId> = None;
        let name = match kind {
            CollectiveKind::AllGather { dim } | CollectiveKind::AllGatherStart { dim } => {
                starts = matches!(kind, CollectiveKind::AllGatherStart { .. });
                attrs.insert("all_gather_dim".into(), Attr::i64(int(*dim)));
                "all_gather"
            }
            CollectiveKind::AllReduce { body: of }
            | CollectiveKind::AllReduceStart { body: of } => {
                starts = matches!(kind, CollectiveKind::AllReduceStart { .. });
                body = Some(*of);
                "all_reduce"
            }
            CollectiveKind::ReduceScatter { dim, body: of } => {
                if operands.len() != 1 {
                    return Err(self.unsupported(id, "it with several operands"));
                }
                body = Some(*of);
                attrs.insert("scatter_dimension".into(), Attr::i64(int(*dim)));
                "reduce_scatter"
            }
            CollectiveKind::AllToAll { dim: Some(dim) } => {
                for name in ["split_dimension", "concat_dimension"] {
                    attrs.insert(name.into(), Attr::i64(int(*dim)));
                }
                attrs.insert("split_count".into(), Attr::i64(int(count)));
                "all_to_all"
            }
            CollectiveKind::CollectiveBroadcast if operands.len() == 1 => "collective_broadcast",
            CollectiveKind::CollectivePermute { pairs, slice_sizes }
            | CollectiveKind::CollectivePermuteStart { pairs, slice_sizes }
                if slice_sizes.is_empty() && operands.len() == 1 =>
            {
                starts = matches!(kind, CollectiveKind::CollectivePermuteStart { .. });
                attrs.insert("source_target_pairs".into(), attributes::pairs(pairs));
                "collective_permute"
            }
            _ => return Err(self.unsupported(id, "it with these operands")),
        };
        if name != "collective_permute" {
            attrs.insert("replica_groups".into(), group_table(&groups));
        }
        if let Some(channel) = of.channel_id {
            let handle = attributes::channel(channel, DEVICE_TO_DEVICE);
            attrs.insert("channel_handle".into(), handle);
        }
        let ids = matches!(name, "all_gather" | "all_reduce" | "reduce_scatter");
        if of.use_global_device_ids && ids {
            attrs.insert("use_global_device_ids".into(), Attr::Unit);
        }
        // The result of a start is a pair of operands and results, but that of an all-reduce is not.
        let shape: &Shape = match (starts, kind) {
            (true, CollectiveKind::AllReduceStart { .. }) | (false, _) => &instr.shape,
            (true, _) => instr.shape.at(&[1]).unwrap_or(&instr.shape),
        };
        let results = self.types(shape);
        let regions = match body {
            Some(body) => vec![self.region_of(body)?],
            None => Vec::new(),
        };
        let name = format!("stablehlo.{name}");
        let done = self.push_with(&name, operands, results, attrs, regions)?;
        if starts {
            return self.started(id, done);
        }
        Ok(done)
    }

    /// Groups one by one; none listed is all replicas in one.
    fn groups(&self, id: InstrId, groups: &ReplicaGroups) -> Result<Vec<Vec<i64>>> {
        let broken = || self.unsupported(id, "its replica groups");
        match groups {
            ReplicaGroups::List(groups) if groups.is_empty() => {
                let all = self.module.config.replica_count.max(1);
                Ok(vec![(0..all.min(1 << 20)).collect()])
            }
            ReplicaGroups::List(groups) => Ok(groups.clone()),
            ReplicaGroups::Iota {
                dims,
                reshape,
                transpose,
            } => {
                let sizes: Option<Vec<usize>> =
                    reshape.iter().map(|&d| usize::try_from(d).ok()).collect();
                let sizes = sizes.ok_or_else(broken)?;
                let order: Option<Vec<usize>> =
                    transpose.iter().map(|&d| usize::try_from(d).ok()).collect();
                let order = order.filter(|order| order.len() == sizes.len());
                let order = order.unwrap_or_else(|| (0..sizes.len()).collect());
                let count = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
                let small = count.is_some_and(|n| n <= 1 << 20);
                let &[rows, width] = &dims[..] else {
                    return Err(broken());
                };
                if !small || !index::is_permutation(&order) || width <= 0 || rows < 0 {
                    return Err(broken());
                }
                let turned: Vec<usize> = order.iter().map(|&d| sizes[d]).collect();
                let mut ids = Vec::new();
                let mut from = vec![0; sizes.len()];
                index::for_each_index(&turned, |at| {
                    for (out, &d) in order.iter().enumerate() {
                        from[d] = at[out];
                    }
                    ids.push(int(index::linear_index(&sizes, &from)));
                });
                let width = usize::try_from(width).map_err(|_| broken())?;
                Ok(ids.chunks(width.max(1)).map(<[i64]>::to_vec).collect())
            }
        }
    }
}

/// Groups as a table whose short rows end in -1.
fn group_table(groups: &[Vec<i64>]) -> Attr {
    let width = groups.iter().map(Vec::len).max().unwrap_or(0);
    let rows = groups.iter().flat_map(|group| {
        let padding = std::iter::repeat_n(-1, width - group.len());
        group.iter().copied().chain(padding)
    });
    let flat: Vec<i64> = rows.collect();
    attributes::table(&flat, groups.len() as u64, width as u64)
}

/// Bytes as a string.
fn text(bytes: &[u8]) -> Attr {
    Attr::String(bytes.into())
}

fn transfer(mut attrs: AttrMap, channel: Option<i64>, kind: i64, host: bool) -> AttrMap {
    let handle = attributes::channel(channel.unwrap_or(0), kind);
    attrs.insert("channel_handle".into(), handle);
    if host {
        attrs.insert("is_host_transfer".into(), Attr::Bool(true));
    }
    attrs
}
