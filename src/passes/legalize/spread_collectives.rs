//! Collectives of several devices in the forms that the runtime's communicator has: synchronous,
//! joined and cut along the outermost dimension, of whole bytes, and reduced by plain functions.
//!
//! What it lacks is made of what it has: a reduction by any other function gathers the operands of
//! all and combines them in the order of ranks, and a ragged all-to-all selects rows.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::collective::GroupMode;
use crate::collective::Topology;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::GatherDims;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::ReplicaGroups;
use crate::hlo::Rewriter;
use crate::hlo::verify;
use crate::hlo::visit;
use crate::passes::pass::Changed;
use crate::passes::pass::PassCx;
use crate::passes::pass::unsupported;
use crate::shape::Dims;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The most operands that are combined one after the other by a function that is written out for
/// each.
const MOST_WRITTEN_OUT: usize = 64;

/// Brings every collective of the module into a form that is left, or of one device those that its
/// own rows are moved by.
pub(super) fn spread(module: &mut Module, topology: Topology, cx: &PassCx<'_>) -> Result<Changed> {
    let instrs = visit::reachable(module).into_iter();
    let instrs = instrs.flat_map(|comp| module.comps[comp].instrs.clone());
    let concerns = |op: &Op| match op {
        Op::Collective { kind, .. } => {
            topology != Topology::ONE || matches!(kind, CollectiveKind::RaggedAllToAll)
        }
        Op::AllReduceDone | Op::AllGatherDone | Op::CollectivePermuteDone => {
            topology != Topology::ONE
        }
        _ => false,
    };
    let found: Vec<InstrId> = instrs
        .filter(|&id| concerns(&module.instrs[id].op))
        .collect();
    for &id in &found {
        if let Some(why) = objection(module, id, topology) {
            return Err(unsupported(module, id, cx.target, why));
        }
    }
    let mut rewriter = Rewriter::new(module);
    for id in found {
        let instr = &rewriter.module.instrs[id];
        match &instr.op {
            Op::AllReduceDone => {
                let start = instr.operands[0];
                rewriter.replace(id, start)?;
            }
            Op::AllGatherDone | Op::CollectivePermuteDone => {
                let start = instr.operands[0];
                rewriter.replace_with(id, |b| b.op(Op::GetTupleElement { index: 1 }, &[start]))?;
            }
            Op::Collective { .. } if is_plain(rewriter.module, id) => {}
            _ => {
                rewriter.replace_with(id, |b| Spread::new(b, id, topology)?.whole(id))?;
            }
        }
    }
    Ok(Changed::when(rewriter.finish()))
}

/// Why a collective cannot be spread, when it cannot.
fn objection(module: &Module, id: InstrId, topology: Topology) -> Option<&'static str> {
    let instr = module.instr(id);
    let Op::Collective { kind, collective } = &instr.op else {
        return None;
    };
    let all_arrays = instr
        .operands
        .iter()
        .all(|&o| module.shape(o).as_array().is_some());
    if !all_arrays {
        return Some("an operand is no array");
    }
    let (Ok(mode), Ok(groups)) = (
        verify::group_mode(kind, collective),
        verify::listed_groups(&collective.replica_groups),
    ) else {
        return Some("its groups are not written out");
    };
    let size = mode.group_size(topology, &groups);
    match kind {
        CollectiveKind::CollectivePermute { slice_sizes, .. }
        | CollectiveKind::CollectivePermuteStart { slice_sizes, .. }
            if !slice_sizes.is_empty() || (instr.operands.len() == 4 && !has_four(module, id)) =>
        {
            Some("it permutes parts of its buffers")
        }
        CollectiveKind::AllReduce { body }
        | CollectiveKind::AllReduceStart { body }
        | CollectiveKind::ReduceScatter { body, .. }
            if monoid(module, *body).is_none() =>
        {
            match size {
                None => Some("its groups differ in size, and its reducer is no plain function"),
                Some(size) if size > MOST_WRITTEN_OUT => {
                    Some("its groups are large, and its reducer is no plain function")
                }
                Some(_) => None,
            }
        }
        CollectiveKind::RaggedAllToAll => {
            let offsets = module.shape(instr.operands[2]).as_array();
            let updates = offsets.map_or(0, |array| array.element_count());
            (updates > MOST_WRITTEN_OUT).then_some("it has more than 64 updates")
        }
        _ => None,
    }
}

/// Whether the result of a permute of four operands is as many arrays.
fn has_four(module: &Module, id: InstrId) -> bool {
    let shape = &module.instr(id).shape;
    let results = match module.instr(id).op {
        Op::Collective {
            kind: CollectiveKind::CollectivePermuteStart { .. },
            ..
        } => shape.at(&[1]),
        _ => Some(shape),
    };
    results
        .and_then(Shape::as_tuple)
        .is_some_and(|parts| parts.len() == 4)
}

/// The op of a reducer that the communicator has.
fn monoid(module: &Module, body: CompId) -> Option<BinaryOp> {
    let (comp, root) = (module.comp(body), module.root(body));
    let [a, b] = root.operands[..] else {
        return None;
    };
    let ty = root.shape.as_array()?.ty;
    if a == b || !comp.params.contains(&a) || !comp.params.contains(&b) {
        return None;
    }
    let Op::Binary(op) = root.op else {
        return None;
    };
    let known = match ty.kind() {
        ElementKind::Pred => matches!(op, BinaryOp::And | BinaryOp::Or),
        ElementKind::Complex => matches!(op, BinaryOp::Add | BinaryOp::Multiply),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float => matches!(
            op,
            BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Minimum | BinaryOp::Maximum
        ),
    };
    known.then_some(op)
}

/// Whether a collective is as the communicator has it.
fn is_plain(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let Op::Collective { kind, .. } = &instr.op else {
        return false;
    };
    let mut types = instr
        .operands
        .iter()
        .filter_map(|&o| module.shape(o).as_array());
    match kind {
        CollectiveKind::AllGather { dim: 0 }
        | CollectiveKind::AllToAll { dim: None }
        | CollectiveKind::CollectiveBroadcast
        | CollectiveKind::CollectivePermute { .. } => types.all(|a| moved_as(a.ty) == a.ty),
        CollectiveKind::AllReduce { body } | CollectiveKind::ReduceScatter { dim: 0, body } => {
            let reduced = module.root(*body).shape.as_array().map(|array| array.ty);
            monoid(module, *body).is_some()
                && types.all(|a| Some(a.ty) == reduced && reduced_as(a.ty) == a.ty)
        }
        _ => false,
    }
}

/// The type in which elements are exchanged: whole bytes.
fn moved_as(ty: PrimitiveType) -> PrimitiveType {
    match ty {
        PrimitiveType::S1 | PrimitiveType::S2 | PrimitiveType::S4 => PrimitiveType::S8,
        PrimitiveType::U1 | PrimitiveType::U2 | PrimitiveType::U4 => PrimitiveType::U8,
        PrimitiveType::F4E2M1FN => PrimitiveType::F8E4M3FN,
        _ => ty,
    }
}

/// The type in which elements are reduced: narrow floats in f32, as XLA's runtime wants it.
fn reduced_as(ty: PrimitiveType) -> PrimitiveType {
    match moved_as(ty) {
        _ if ty.is_float() && ty.bit_width() < 32 => PrimitiveType::F32,
        moved => moved,
    }
}

/// What stands for one collective is built with this.
struct Spread<'b, 'm> {
    b: &'b mut Builder<'m>,
    topology: Topology,
    kind: CollectiveKind,
    own: Collective,
    mode: GroupMode,
    groups: Vec<Vec<i64>>,
    /// Devices in a group; 0 when groups differ.
    size: usize,
}

impl<'b, 'm> Spread<'b, 'm> {
    fn new(b: &'b mut Builder<'m>, id: InstrId, topology: Topology) -> Result<Self> {
        let Op::Collective { kind, collective } = b.module.instrs[id].op.clone() else {
            return Err(broken());
        };
        let mode = verify::group_mode(&kind, &collective).map_err(|_| broken())?;
        let groups = verify::listed_groups(&collective.replica_groups).map_err(|_| broken())?;
        Ok(Self {
            b,
            topology,
            kind,
            own: *collective,
            mode,
            size: mode.group_size(topology, &groups).unwrap_or(0),
            groups,
        })
    }

    /// The value of the instruction.
    fn whole(mut self, id: InstrId) -> Result<InstrId> {
        let instr = self.b.module.instrs[id].clone();
        let operands = instr.operands.to_vec();
        let results = self.results(&operands)?;
        let is_start = matches!(
            self.kind,
            CollectiveKind::AllGatherStart { .. } | CollectiveKind::CollectivePermuteStart { .. }
        );
        if !is_start {
            return self.packed(Some(&instr.shape), &results);
        }
        let mut parts = vec![
            self.packed(instr.shape.at(&[0]), &operands)?,
            self.packed(instr.shape.at(&[1]), &results)?,
        ];
        // Contexts that nothing reads.
        for part in instr.shape.as_tuple().unwrap_or_default().iter().skip(2) {
            let array = part.as_array().ok_or_else(broken)?;
            let zero = self.b.constant_int(array.ty, 0);
            parts.push(self.b.broadcast_scalar(zero, &array.dims)?);
        }
        self.b.tuple(&parts)
    }

    /// One value, or a tuple where the shape is one.
    fn packed(&mut self, shape: Option<&Shape>, values: &[InstrId]) -> Result<InstrId> {
        match (shape.is_some_and(Shape::is_tuple), values) {
            (false, [one]) => Ok(*one),
            _ => self.b.tuple(values),
        }
    }

    /// The value for each operand.
    fn results(&mut self, operands: &[InstrId]) -> Result<Vec<InstrId>> {
        match self.kind.clone() {
            CollectiveKind::AllReduce { body } | CollectiveKind::AllReduceStart { body } => {
                self.all_reduce(operands, body)
            }
            CollectiveKind::ReduceScatter { dim, body } => self.reduce_scatter(operands, dim, body),
            CollectiveKind::AllGather { dim } | CollectiveKind::AllGatherStart { dim } => {
                self.all_gather(operands, dim)
            }
            CollectiveKind::AllToAll { dim: Some(dim) } => {
                let result = self.all_to_all(operands[0], dim)?;
                Ok(vec![result])
            }
            CollectiveKind::AllToAll { dim: None } => {
                self.moved(operands, CollectiveKind::AllToAll { dim: None })
            }
            CollectiveKind::CollectiveBroadcast => {
                self.moved(operands, CollectiveKind::CollectiveBroadcast)
            }
            CollectiveKind::CollectivePermute { pairs, slice_sizes }
            | CollectiveKind::CollectivePermuteStart { pairs, slice_sizes } => self.moved(
                operands,
                CollectiveKind::CollectivePermute { pairs, slice_sizes },
            ),
            CollectiveKind::RaggedAllToAll => {
                let result = self.ragged(operands)?;
                Ok(vec![result])
            }
        }
    }

    /// The groups for a collective of another kind: modes that only some kinds have become devices.
    fn elsewhere(&self) -> Collective {
        if self.mode == GroupMode::CrossReplica {
            return Collective {
                use_global_device_ids: false,
                ..self.own.clone()
            };
        }
        let mut groups: Vec<Vec<i64>> = Vec::new();
        for device in 0..self.topology.devices() {
            let group = self.mode.group(self.topology, &self.groups, device);
            let group: Vec<i64> = group.into_iter().flatten().map(|d| d as i64).collect();
            if !group.is_empty() && !groups.contains(&group) {
                groups.push(group);
            }
        }
        Collective {
            replica_groups: ReplicaGroups::List(groups),
            use_global_device_ids: true,
            ..self.own.clone()
        }
    }

    /// A collective, and its value for each operand.
    fn collective(
        &mut self,
        kind: CollectiveKind,
        of: Collective,
        operands: &[InstrId],
        results: Vec<Shape>,
    ) -> Result<Vec<InstrId>> {
        let op = Op::Collective {
            kind,
            collective: Box::new(of),
        };
        if let [result] = results.as_slice() {
            let only = self.b.shaped(op, operands, result.clone())?;
            return Ok(vec![only]);
        }
        let all = self.b.shaped(op, operands, Shape::Tuple(results))?;
        self.b.elements(all)
    }

    /// A collective that gives each operand's shape, on whole bytes.
    fn moved(&mut self, operands: &[InstrId], kind: CollectiveKind) -> Result<Vec<InstrId>> {
        let own = self.own.clone();
        self.moved_by(operands, kind, own)
    }

    fn moved_by(
        &mut self,
        operands: &[InstrId],
        kind: CollectiveKind,
        of: Collective,
    ) -> Result<Vec<InstrId>> {
        let given = self.converted(operands, moved_as)?;
        let shapes = given.iter().map(|&x| self.b.shape(x).without_layout());
        let shapes = shapes.collect();
        let got = self.collective(kind, of, &given, shapes)?;
        self.back(&got, operands)
    }

    fn converted(
        &mut self,
        operands: &[InstrId],
        to: fn(PrimitiveType) -> PrimitiveType,
    ) -> Result<Vec<InstrId>> {
        let converted = operands.iter().map(|&x| {
            let ty = to(self.b.ty(x)?);
            self.b.convert(x, ty)
        });
        converted.collect()
    }

    /// Values in the element types of others.
    fn back(&mut self, values: &[InstrId], like: &[InstrId]) -> Result<Vec<InstrId>> {
        let pairs = values.iter().zip(like);
        let converted = pairs.map(|(&x, &like)| {
            let ty = self.b.ty(like)?;
            self.b.convert(x, ty)
        });
        converted.collect()
    }

    /// The operands of all devices, each with a new outermost dimension of ranks.
    fn stacked(&mut self, operands: &[InstrId], of: Collective) -> Result<Vec<InstrId>> {
        let mut given = Vec::new();
        let mut shapes = Vec::new();
        for x in self.converted(operands, moved_as)? {
            let dims = self.b.dims(x)?;
            given.push(self.b.reshape(x, &[&[1], dims.as_slice()].concat())?);
            let dims = [&[self.size], dims.as_slice()].concat();
            shapes.push(Shape::array(self.b.ty(x)?, dims));
        }
        if self.size == 1 {
            return Ok(given);
        }
        let kind = CollectiveKind::AllGather { dim: 0 };
        self.collective(kind, of, &given, shapes)
    }

    fn all_gather(&mut self, operands: &[InstrId], dim: usize) -> Result<Vec<InstrId>> {
        let own = self.own.clone();
        let stacked = self.stacked(operands, own)?;
        let mut results = Vec::new();
        for (x, &operand) in stacked.into_iter().zip(operands) {
            let mut dims = self.b.dims(operand)?;
            let mut order: Dims = (1..=dims.len()).collect();
            order.insert(dim, 0);
            let moved = self.b.transpose(x, &order)?;
            dims[dim] *= self.size;
            results.push(self.b.reshape(moved, &dims)?);
        }
        self.back(&results, operands)
    }

    /// A dimension cut among the devices, its parts outermost.
    fn cut(&mut self, x: InstrId, dim: usize) -> Result<InstrId> {
        let mut dims = self.b.dims(x)?;
        dims[dim] /= self.size;
        dims.insert(dim, self.size);
        let cut = self.b.reshape(x, &dims)?;
        let mut order: Dims = (0..dims.len()).filter(|&d| d != dim).collect();
        order.insert(0, dim);
        self.b.transpose(cut, &order)
    }

    fn all_reduce(&mut self, operands: &[InstrId], body: CompId) -> Result<Vec<InstrId>> {
        if let Some(op) = monoid(self.b.module, body) {
            let (given, body) = self.reducible(operands, body, op)?;
            let shapes = given.iter().map(|&x| self.b.shape(x).without_layout());
            let shapes = shapes.collect();
            let own = self.own.clone();
            let kind = CollectiveKind::AllReduce { body };
            let got = self.collective(kind, own, &given, shapes)?;
            return self.back(&got, operands);
        }
        let own = self.own.clone();
        let stacked = self.stacked(operands, own)?;
        let mut results = Vec::new();
        for (x, &operand) in stacked.into_iter().zip(operands) {
            let mut parts = Vec::new();
            for rank in 0..self.size {
                let part = self.b.slice_dim(x, 0, rank, rank + 1)?;
                let dims = self.b.dims(operand)?;
                parts.push(self.b.reshape(part, &dims)?);
            }
            results.push(self.combined(&parts, operand, body)?);
        }
        Ok(results)
    }

    fn reduce_scatter(
        &mut self,
        operands: &[InstrId],
        dim: usize,
        body: CompId,
    ) -> Result<Vec<InstrId>> {
        let mut cut = Vec::new();
        for &x in operands {
            cut.push(self.cut(x, dim)?);
        }
        let part_dims = |b: &Builder<'_>, x: InstrId, size: usize| -> Result<Dims> {
            let mut dims = b.dims(x)?;
            dims[dim] /= size;
            Ok(dims)
        };
        let mut results = Vec::new();
        if let Some(op) = monoid(self.b.module, body) {
            let (given, body) = self.reducible(&cut, body, op)?;
            let mut shapes = Vec::new();
            for &x in &given {
                let mut dims = self.b.dims(x)?;
                dims[0] = 1;
                shapes.push(Shape::array(self.b.ty(x)?, dims));
            }
            let own = self.own.clone();
            let kind = CollectiveKind::ReduceScatter { dim: 0, body };
            let got = self.collective(kind, own, &given, shapes)?;
            for (x, &operand) in got.into_iter().zip(operands) {
                let dims = part_dims(self.b, operand, self.size)?;
                results.push(self.b.reshape(x, &dims)?);
            }
            return self.back(&results, operands);
        }
        for (x, &operand) in cut.into_iter().zip(operands) {
            let dims = part_dims(self.b, operand, self.size)?;
            let mut parts = Vec::new();
            for rank in 0..self.size {
                let part = self.b.slice_dim(x, 0, rank, rank + 1)?;
                parts.push(self.b.reshape(part, &dims)?);
            }
            let of = self.elsewhere();
            let got = self.moved_by(&parts, CollectiveKind::AllToAll { dim: None }, of)?;
            results.push(self.combined(&got, operand, body)?);
        }
        Ok(results)
    }

    /// Operands in the type they are reduced in, and the reducer of that type.
    fn reducible(
        &mut self,
        operands: &[InstrId],
        body: CompId,
        op: BinaryOp,
    ) -> Result<(Vec<InstrId>, CompId)> {
        let root = self.b.module.root(body).shape.clone();
        let ty = reduced_as(root.as_array().ok_or_else(broken)?.ty);
        let mut given = Vec::new();
        for &x in operands {
            given.push(self.b.convert(x, ty)?);
        }
        Ok((given, self.b.monoid(op, ty)?))
    }

    /// Arrays combined one after the other by any function, in the type of `like`.
    fn combined(&mut self, parts: &[InstrId], like: InstrId, body: CompId) -> Result<InstrId> {
        let params = self.b.module.comp(body).params.clone();
        let types = params.iter().map(|&p| self.b.ty(p));
        let types: Vec<PrimitiveType> = types.collect::<Result<_>>()?;
        let first = parts.first().copied().ok_or_else(broken)?;
        let mut value = self.b.convert(first, types[0])?;
        let dims: Dims = (0..self.b.dims(first)?.len()).collect();
        for &part in &parts[1..] {
            let part = self.b.convert(part, types[1])?;
            let dims = dims.clone();
            value = self.b.op(Op::Map { dims, body }, &[value, part])?;
        }
        let ty = self.b.ty(like)?;
        self.b.convert(value, ty)
    }

    fn all_to_all(&mut self, x: InstrId, dim: usize) -> Result<InstrId> {
        let own = self.own.clone();
        self.all_to_all_by(x, dim, own)
    }

    fn all_to_all_by(&mut self, x: InstrId, dim: usize, of: Collective) -> Result<InstrId> {
        if self.size == 1 {
            return Ok(x);
        }
        let each = self.b.dims(x)?[dim] / self.size;
        let mut parts = Vec::new();
        for rank in 0..self.size {
            parts.push(self.b.slice_dim(x, dim, rank * each, (rank + 1) * each)?);
        }
        let got = self.moved_by(&parts, CollectiveKind::AllToAll { dim: None }, of)?;
        self.b.concatenate(&got, dim)
    }

    /// Every row of the output is one that a device sends there, or stays.
    fn ragged(&mut self, operands: &[InstrId]) -> Result<InstrId> {
        let (input, mut output) = (operands[0], operands[1]);
        let input_dims = self.b.dims(input)?;
        let output_dims = self.b.dims(output)?;
        let of = self.elsewhere();
        let inputs = self.stacked(&[input], of.clone())?[0];
        let mut tables = Vec::new();
        for &table in &operands[2..5] {
            let table = self.all_to_all_by(table, 0, of.clone())?;
            let count = self.b.dims(table)?.iter().product();
            tables.push(self.b.reshape(table, &[count])?);
        }
        if input_dims.first() == Some(&0) || output_dims.first() == Some(&0) {
            return Ok(output);
        }
        let updates = self.b.dims(tables[0])?[0];
        let each = updates / self.size;
        let row = self.b.iota(PrimitiveType::S64, &output_dims[..1], 0)?;
        let ty = self.b.ty(output)?;
        for at in 0..updates {
            let mut number = |table: InstrId| -> Result<InstrId> {
                let one = self.b.slice_dim(table, 0, at, at + 1)?;
                let one = self.b.reshape(one, &[])?;
                let one = self.b.convert(one, PrimitiveType::S64)?;
                self.b.broadcast_scalar(one, &output_dims[..1])
            };
            let (from, count, to) = (number(tables[0])?, number(tables[1])?, number(tables[2])?);
            let sender = self
                .b
                .slice_dim(inputs, 0, at / each.max(1), at / each.max(1) + 1)?;
            let sender = self.b.reshape(sender, &input_dims)?;
            let sender = self.b.convert(sender, ty)?;
            let place = self.b.subtract(row, to)?;
            let end = self.b.add(to, count)?;
            let after = self.b.compare(ComparisonDirection::Ge, row, to)?;
            let before = self.b.compare(ComparisonDirection::Lt, row, end)?;
            let is_sent = self.b.binary(BinaryOp::And, after, before)?;
            let source = self.b.add(place, from)?;
            let rows = self.rows(sender, source)?;
            let is_sent = self.b.broadcast(is_sent, &[0], &output_dims)?;
            output = self.b.select(is_sent, rows, output)?;
        }
        Ok(output)
    }

    /// The rows of an array at these places, which are clamped.
    fn rows(&mut self, x: InstrId, places: InstrId) -> Result<InstrId> {
        let mut slice_sizes = self.b.dims(x)?;
        let dims = GatherDims {
            offset_dims: (1..slice_sizes.len()).collect(),
            collapsed_slice_dims: [0].into_iter().collect(),
            start_index_map: [0].into_iter().collect(),
            index_vector_dim: 1,
            ..GatherDims::default()
        };
        slice_sizes[0] = 1;
        let gather = Op::Gather {
            dims,
            slice_sizes,
            indices_are_sorted: false,
        };
        self.b.op(gather, &[x, places])
    }
}

fn broken() -> Box<Diagnostic> {
    let message = "a collective changed while it was looked at";
    Diagnostic::internal(codes::INTERNAL, message)
}
