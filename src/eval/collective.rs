//! Collectives: what each device of a group gets of what all of them bring.
//!
//! Reductions go in the order of ranks, with the accumulators of every other reduction.

use std::sync::Arc;

use crate::base::Result;
use crate::collective::Call;
use crate::collective::GroupMode;
use crate::collective::Key;
use crate::eval::bits;
use crate::eval::interpret::Evaluator;
use crate::eval::interpret::arrays;
use crate::eval::interpret::unsupported;
use crate::eval::movement;
use crate::eval::reduce::Reducer;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::Op;
use crate::hlo::SliceDim;
use crate::hlo::verify;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The arrays one device brings.
pub(super) type Brought = Vec<ArrayLiteral>;

/// Who meets, and which of them this device is.
struct Group {
    mode: GroupMode,
    devices: Vec<usize>,
    rank: usize,
}

/// Runs a collective with the other devices of the group.
pub(super) fn run(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    number: i64,
    kind: &CollectiveKind,
    collective: &Collective,
    operands: &[Literal],
) -> Result<Literal> {
    let given: Brought = arrays(instr, operands)?.into_iter().cloned().collect();
    let sentence = |why: String| unsupported(instr, &format!("these groups: {why}"));
    let mode = verify::group_mode(kind, collective).map_err(sentence)?;
    let zeros = || -> Brought {
        let shapes = given.iter().map(|a| a.shape().clone());
        shapes.map(ArrayLiteral::zeros).collect()
    };
    let groups = match kind {
        // Permutes have pairs instead of groups: all that could be in a pair meet.
        CollectiveKind::CollectivePermute { .. }
        | CollectiveKind::CollectivePermuteStart { .. } => match mode {
            GroupMode::FlattenedId => {
                vec![(0..evaluator.topology().devices() as i64).collect()]
            }
            GroupMode::CrossReplica
            | GroupMode::CrossPartition
            | GroupMode::CrossReplicaAndPartition => Vec::new(),
        },
        _ => verify::listed_groups(&collective.replica_groups).map_err(sentence)?,
    };
    let device = evaluator.device();
    let Some(devices) = mode.group(evaluator.topology(), &groups, device) else {
        if matches!(kind, CollectiveKind::CollectiveBroadcast) {
            return Ok(result(instr, &given, zeros()));
        }
        return Err(unsupported(instr, "groups that leave a device out"));
    };
    let rank = devices.iter().position(|&d| d == device).unwrap_or(0);
    let group = Group {
        mode,
        devices,
        rank,
    };
    let key = Key {
        is_channel: collective.channel_id.is_some(),
        number: collective.channel_id.unwrap_or(number),
    };
    let got = exchange(evaluator, instr, kind, key, &group, given.clone())?;
    let values = match kind {
        CollectiveKind::AllReduce { .. } | CollectiveKind::AllReduceStart { .. } => got[0].clone(),
        CollectiveKind::ReduceScatter { dim, .. } => {
            let parts = got[0].iter();
            let parts = parts.map(|whole| part(whole, *dim, group.rank, group.devices.len()));
            parts.collect()
        }
        CollectiveKind::AllGather { dim } | CollectiveKind::AllGatherStart { dim } => {
            gathered(&got, *dim)
        }
        CollectiveKind::AllToAll { dim: Some(dim) } => {
            let count = group.devices.len();
            let mine = got.iter();
            let mine: Vec<Brought> = mine
                .map(|brought| vec![part(&brought[0], *dim, group.rank, count)])
                .collect();
            gathered(&mine, *dim)
        }
        CollectiveKind::AllToAll { dim: None } => {
            let mine = got.iter().map(|brought| brought.get(group.rank).cloned());
            let mine: Option<Brought> = mine.collect();
            mine.ok_or_else(|| unsupported(instr, "fewer operands than devices"))?
        }
        CollectiveKind::CollectiveBroadcast => got[0].clone(),
        CollectiveKind::CollectivePermute { pairs, slice_sizes }
        | CollectiveKind::CollectivePermuteStart { pairs, slice_sizes } => {
            if !slice_sizes.is_empty() {
                return Err(unsupported(instr, "slices of its buffers"));
            }
            sent(evaluator, pairs, &group, &got).unwrap_or_else(zeros)
        }
        CollectiveKind::RaggedAllToAll => {
            vec![ragged(&got, group.rank).ok_or_else(|| unsupported(instr, "these offsets"))?]
        }
    };
    Ok(result(instr, &given, values))
}

/// Meets the group. Reductions are made once, by the last to come.
fn exchange(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    kind: &CollectiveKind,
    key: Key,
    group: &Group,
    given: Brought,
) -> Result<Arc<Vec<Brought>>> {
    let shapes: Vec<String> = given.iter().map(|a| a.shape().to_string()).collect();
    let form = format!("{} of {}", kind.opcode(), shapes.join(", "));
    let call = Call {
        key,
        place: &instr.name,
        form: &form,
        group: &group.devices,
    };
    let (communicator, device) = (evaluator.communicator, evaluator.device());
    communicator.meet(device, &call, given, |brought| match kind {
        CollectiveKind::AllReduce { body }
        | CollectiveKind::AllReduceStart { body }
        | CollectiveKind::ReduceScatter { body, .. } => {
            reduced(evaluator, *body, &brought).map(|whole| vec![whole])
        }
        _ => Ok(brought),
    })
}

/// The arrays of all devices, combined element by element in the order of ranks.
fn reduced(evaluator: &mut Evaluator<'_>, body: CompId, brought: &[Brought]) -> Result<Brought> {
    let reducer = Reducer::new(evaluator, body);
    let mut out = Vec::new();
    for (i, first) in brought[0].iter().enumerate() {
        let mut values = Vec::with_capacity(first.len());
        for at in 0..first.len() {
            let mut accumulators = reducer.start_at(&[first], at);
            for other in &brought[1..] {
                let elements = reducer.elements(&[&other[i]], at);
                reducer.combine(evaluator, &mut accumulators, &elements)?;
            }
            values.push(accumulators[0]);
        }
        out.push(bits::build(first.shape(), |at| values[at]));
    }
    Ok(out)
}

/// Part `number` of `count` equal parts along a dimension.
fn part(whole: &ArrayLiteral, dim: usize, number: usize, count: usize) -> ArrayLiteral {
    let sizes = &whole.shape().dims;
    let each = sizes[dim] / count;
    let cut = sizes.iter().enumerate().map(|(d, &size)| {
        let (start, limit) = match d == dim {
            true => (number * each, (number + 1) * each),
            false => (0, size),
        };
        SliceDim {
            start,
            limit,
            stride: 1,
        }
    });
    let mut dims = sizes.clone();
    dims[dim] = each;
    let shape = ArrayShape::new(whole.ty(), dims);
    movement::slice(&shape, whole, &cut.collect::<Vec<_>>())
}

/// The arrays of all devices side by side along a dimension.
fn gathered(brought: &[Brought], dim: usize) -> Brought {
    let firsts = brought[0].iter().enumerate();
    let whole = firsts.map(|(i, first)| {
        let parts: Vec<&ArrayLiteral> = brought.iter().map(|b| &b[i]).collect();
        let mut dims = first.shape().dims.clone();
        dims[dim] *= brought.len();
        movement::concatenate(&ArrayShape::new(first.ty(), dims), &parts, dim)
    });
    whole.collect()
}

/// What the device gets that the pairs send it; none when they send it nothing.
fn sent(
    evaluator: &Evaluator<'_>,
    pairs: &[(i64, i64)],
    group: &Group,
    brought: &[Brought],
) -> Option<Brought> {
    let id = |device| group.mode.id_of(evaluator.topology(), device);
    let own = id(evaluator.device());
    let (source, _) = pairs.iter().find(|(_, target)| *target == own)?;
    let rank = group.devices.iter().position(|&d| id(d) == *source)?;
    Some(brought[rank].clone())
}

/// Operands of a ragged all-to-all: input, output, and for each device in turn where in the input its
/// rows begin, how many there are, where in its output they go, and how many it gets from each.
fn ragged(brought: &[Brought], rank: usize) -> Option<ArrayLiteral> {
    let count = brought.len();
    let mut output = brought[rank].get(1)?.clone();
    let rows = |array: &ArrayLiteral| array.shape().dims.first().copied().unwrap_or(1);
    let row_bytes = |array: &ArrayLiteral| {
        let elements: usize = array.shape().dims.iter().skip(1).product();
        elements * array.ty().byte_width()
    };
    let number = |array: &ArrayLiteral, at: usize| match bits::get(array, at) {
        Number::Int(x) => usize::try_from(x).ok(),
        _ => None,
    };
    for sender in brought {
        let [input, _, input_offsets, send_sizes, output_offsets, _] = sender.as_slice() else {
            return None;
        };
        let each = send_sizes.len() / count;
        for at in rank * each..(rank + 1) * each {
            let from = number(input_offsets, at)?;
            let size = number(send_sizes, at)?;
            let to = number(output_offsets, at)?;
            let fits = |begin: usize, array: &ArrayLiteral| {
                begin
                    .checked_add(size)
                    .is_some_and(|end| end <= rows(array))
            };
            if !fits(from, input) || !fits(to, &output) {
                return None;
            }
            let width = row_bytes(input);
            let moved = &input.bytes()[from * width..(from + size) * width];
            output.bytes_mut()[to * width..(to + size) * width].copy_from_slice(moved);
        }
    }
    Some(output)
}

/// The value in the shape that the instruction states: alone, in a tuple, or beside the operands and
/// followed by contexts that nothing reads.
fn result(instr: &Instr, given: &[ArrayLiteral], values: Brought) -> Literal {
    let like = |shape: Option<&Shape>, arrays: Vec<ArrayLiteral>| {
        let mut literals: Vec<Literal> = arrays.into_iter().map(Literal::Array).collect();
        match (shape.is_some_and(Shape::is_tuple), literals.len()) {
            (false, 1) => literals.remove(0),
            _ => Literal::Tuple(literals),
        }
    };
    let is_start = match &instr.op {
        Op::Collective { kind, .. } => matches!(
            kind,
            CollectiveKind::AllGatherStart { .. } | CollectiveKind::CollectivePermuteStart { .. }
        ),
        _ => false,
    };
    if !is_start {
        return like(Some(&instr.shape), values);
    }
    let mut parts = vec![
        like(instr.shape.at(&[0]), given.to_vec()),
        like(instr.shape.at(&[1]), values),
    ];
    let count = instr.shape.as_tuple().map_or(2, <[Shape]>::len);
    let context = || Literal::Array(bits::scalar(PrimitiveType::U32, Number::Int(0)));
    parts.resize_with(count, context);
    Literal::Tuple(parts)
}
