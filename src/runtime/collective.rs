//! What one device does in a collective: who it meets, what it brings and what it is left with.
//!
//! Bytes are exchanged through the host's memory, on every kind of device. The last to come reduces
//! for all, in the order of ranks; floats are summed and multiplied in f64 and rounded once.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::collective::Call;
use crate::collective::Communicator;
use crate::collective::GroupMode;
use crate::collective::Key;
use crate::collective::Topology;
use crate::executable::CollectiveThunk;
use crate::executable::CollectiveThunkKind;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::literal::number;
use crate::literal::number::Number;
use crate::runtime::binding::refused_too_late;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// What a device brings: the bytes of each operand.
pub type Brought = Vec<Vec<u8>>;

/// Where the devices of a run meet, and which of them this one is.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// The meeting place.
    pub communicator: &'a Communicator<Brought>,
    /// The device.
    pub device: usize,
}

/// How elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    Sum,
    Product,
    Min,
    Max,
}

impl Reduction {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "sum" => Self::Sum,
            "prod" => Self::Product,
            "min" => Self::Min,
            "max" => Self::Max,
            _ => return None,
        })
    }
}

/// What a device is left with.
#[derive(Clone, Debug)]
enum Share {
    /// All that was brought, one after the other.
    All,
    /// All that was reduced.
    Reduced,
    /// Its part of what was reduced.
    Part,
    /// From each device the operand with its rank.
    Column,
    /// From each device the part with its rank, of the only operand.
    Parts,
    /// What this rank brought; zeros, when there is none.
    Of(Option<usize>),
}

/// A device's part in a collective, worked out once. `B` is memory of the device.
pub struct Meeting<B> {
    sources: Vec<B>,
    results: Vec<B>,
    key: Key,
    place: String,
    form: String,
    group: Vec<usize>,
    rank: usize,
    reduction: Option<(Reduction, Vec<PrimitiveType>)>,
    share: Share,
}

impl<B: Copy> Meeting<B> {
    /// Of a thunk that has passed the check; `place` is the instruction it came from, and `block` gives
    /// the memory of a slice.
    ///
    /// # Errors
    /// `XA8003` for a reduction of a type that this loader does not reduce, `XA9001` for a thunk that
    /// does not fit the devices.
    pub fn new(
        thunk: &CollectiveThunk,
        place: &str,
        topology: Topology,
        device: usize,
        block: impl Fn(&Slice) -> B,
    ) -> Result<Self> {
        let group = group(thunk, topology, device);
        let rank = group.iter().position(|&member| member == device);
        let rank = rank.ok_or_else(|| refused_too_late("collective"))?;
        let share = match &thunk.kind {
            CollectiveThunkKind::AllGather => Share::All,
            CollectiveThunkKind::AllReduce { .. } => Share::Reduced,
            CollectiveThunkKind::ReduceScatter { .. } => Share::Part,
            CollectiveThunkKind::AllToAll if thunk.sources.len() == group.len() => Share::Column,
            CollectiveThunkKind::AllToAll => Share::Parts,
            CollectiveThunkKind::CollectiveBroadcast => {
                let is_member = thunk.replica_groups.is_empty()
                    || thunk
                        .mode
                        .group(topology, &thunk.replica_groups, device)
                        .is_some();
                Share::Of(is_member.then_some(0))
            }
            CollectiveThunkKind::CollectivePermute { pairs } => {
                let id = |device| thunk.mode.id_of(topology, device);
                let source = pairs.iter().find(|(_, target)| *target == id(device));
                let rank =
                    source.and_then(|(source, _)| group.iter().position(|&d| id(d) == *source));
                Share::Of(rank)
            }
        };
        let types = thunk.sources.iter().map(|source| source.shape.ty);
        let reduction = match &thunk.kind {
            CollectiveThunkKind::AllReduce { reduction }
            | CollectiveThunkKind::ReduceScatter { reduction } => {
                let found = Reduction::from_name(reduction);
                Some((
                    found.ok_or_else(|| refused_too_late("collective"))?,
                    types.collect(),
                ))
            }
            _ => None,
        };
        let sizes: Vec<String> = thunk
            .sources
            .iter()
            .map(|s| s.slice.size.to_string())
            .collect();
        let blocks = |shaped: &[ShapedSlice]| shaped.iter().map(|s| block(&s.slice)).collect();
        Ok(Self {
            sources: blocks(&thunk.sources),
            results: blocks(&thunk.destinations),
            key: Key {
                is_channel: thunk.mode.has_channel(),
                number: thunk.op_id,
            },
            place: place.to_owned(),
            form: format!("{} of {} bytes", thunk.kind.name(), sizes.join(", ")),
            group,
            rank,
            reduction,
            share,
        })
    }

    /// Meets the group with what `read` finds in the memory of operands; `write` is given memory of
    /// results, and bytes for it from an offset on.
    ///
    /// # Errors
    /// `XA8004` when somebody failed or cannot come any more; those of `read` and `write`.
    pub fn run(
        &self,
        member: Member<'_>,
        read: impl FnMut(B) -> Result<Vec<u8>>,
        mut write: impl FnMut(B, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let given: Brought = self
            .sources
            .iter()
            .copied()
            .map(read)
            .collect::<Result<_>>()?;
        let mut write = |result: usize, offset, bytes: &[u8]| {
            let block = self.results.get(result).copied();
            write(
                block.ok_or_else(|| refused_too_late("collective"))?,
                offset,
                bytes,
            )
        };
        let sizes: Vec<usize> = given.iter().map(Vec::len).collect();
        let call = Call {
            key: self.key,
            place: &self.place,
            form: &self.form,
            group: &self.group,
        };
        let join = |brought: Vec<Brought>| match &self.reduction {
            Some((reduction, types)) => Ok(vec![reduced(*reduction, types, brought)]),
            None => Ok(brought),
        };
        let got = member
            .communicator
            .meet(member.device, &call, given, join)?;
        let count = self.group.len();
        let part = |bytes: &'_ [u8]| {
            let each = bytes.len() / count;
            self.rank * each..(self.rank + 1) * each
        };
        match &self.share {
            Share::Reduced => {
                for (i, bytes) in got[0].iter().enumerate() {
                    write(i, 0, bytes)?;
                }
            }
            Share::Part => {
                for (i, bytes) in got[0].iter().enumerate() {
                    write(i, 0, &bytes[part(bytes)])?;
                }
            }
            Share::All => {
                for (rank, brought) in got.iter().enumerate() {
                    for (i, bytes) in brought.iter().enumerate() {
                        write(i, rank * bytes.len(), bytes)?;
                    }
                }
            }
            Share::Column => {
                for (rank, brought) in got.iter().enumerate() {
                    write(rank, 0, &brought[self.rank])?;
                }
            }
            Share::Parts => {
                for (rank, brought) in got.iter().enumerate() {
                    let part = &brought[0][part(&brought[0])];
                    write(0, rank * part.len(), part)?;
                }
            }
            Share::Of(Some(rank)) => {
                for (i, bytes) in got[*rank].iter().enumerate() {
                    write(i, 0, bytes)?;
                }
            }
            Share::Of(None) => {
                for (i, &size) in sizes.iter().enumerate() {
                    write(i, 0, &vec![0; size])?;
                }
            }
        }
        Ok(())
    }
}

/// Who meets. Those that a broadcast leaves out meet nobody, and to a permute all come that could be
/// in a pair.
fn group(thunk: &CollectiveThunk, topology: Topology, device: usize) -> Vec<usize> {
    let found = match thunk.kind {
        CollectiveThunkKind::CollectivePermute { .. } if thunk.mode == GroupMode::FlattenedId => {
            Some((0..topology.devices()).collect())
        }
        CollectiveThunkKind::CollectivePermute { .. } => thunk.mode.group(topology, &[], device),
        _ => thunk.mode.group(topology, &thunk.replica_groups, device),
    };
    found.unwrap_or_else(|| vec![device])
}

/// Whether this loader combines elements of that type so.
///
/// # Errors
/// `XA8003`.
pub fn check_reduction(thunk: &CollectiveThunk) -> Result<()> {
    let (CollectiveThunkKind::AllReduce { reduction }
    | CollectiveThunkKind::ReduceScatter { reduction }) = &thunk.kind
    else {
        return Ok(());
    };
    let is_order = matches!(reduction.as_str(), "min" | "max");
    let bad = thunk
        .sources
        .iter()
        .map(|source| source.shape.ty)
        .find(|ty| ty.is_sub_byte() || is_order && ty.kind() == ElementKind::Complex);
    match bad {
        None => Ok(()),
        Some(ty) => {
            let message = format!("a reduction by `{reduction}` of {ty} across devices");
            Err(Diagnostic::unsupported(codes::LOAD, message))
        }
    }
}

/// The operands of all devices, combined element by element.
fn reduced(reduction: Reduction, types: &[PrimitiveType], mut brought: Vec<Brought>) -> Brought {
    if brought.len() == 1 {
        return brought.swap_remove(0);
    }
    let operands = types.iter().enumerate();
    let combined = operands.map(|(i, &ty)| {
        let parts: Vec<&[u8]> = brought.iter().map(|b| b[i].as_slice()).collect();
        combine(reduction, ty, &parts)
    });
    combined.collect()
}

/// Reduces arrays of one plain type.
macro_rules! plain {
    ($ty:ty, $parts:expr, $wide:ty, $combine:expr) => {{
        const WIDTH: usize = size_of::<$ty>();
        let mut out = $parts[0].to_vec();
        for (at, bytes) in out.chunks_exact_mut(WIDTH).enumerate() {
            let element = |part: &[u8]| -> $wide {
                let place = &part[at * WIDTH..(at + 1) * WIDTH];
                let mut bytes = [0; WIDTH];
                bytes.copy_from_slice(place);
                <$ty>::from_le_bytes(bytes) as $wide
            };
            let rest = $parts[1..].iter().map(|part| element(part));
            let value = rest.fold(element($parts[0]), $combine);
            bytes.copy_from_slice(&(value as $ty).to_le_bytes());
        }
        out
    }};
}

fn combine(reduction: Reduction, ty: PrimitiveType, parts: &[&[u8]]) -> Vec<u8> {
    match (ty, reduction) {
        (PrimitiveType::F32, Reduction::Sum) => plain!(f32, parts, f64, |a, b| a + b),
        (PrimitiveType::F32, Reduction::Product) => plain!(f32, parts, f64, |a, b| a * b),
        (PrimitiveType::F64, Reduction::Sum) => plain!(f64, parts, f64, |a, b| a + b),
        (PrimitiveType::F64, Reduction::Product) => plain!(f64, parts, f64, |a, b| a * b),
        (PrimitiveType::S32, Reduction::Sum) => plain!(i32, parts, i32, |a, b| a.wrapping_add(b)),
        (PrimitiveType::S64, Reduction::Sum) => plain!(i64, parts, i64, |a, b| a.wrapping_add(b)),
        _ => any(reduction, ty, parts),
    }
}

/// Reduces arrays of any type.
fn any(reduction: Reduction, ty: PrimitiveType, parts: &[&[u8]]) -> Vec<u8> {
    let width = ty.byte_width();
    let mut out = parts[0].to_vec();
    for (at, bytes) in out.chunks_exact_mut(width).enumerate() {
        let element = |part: &[u8]| number::decode(ty, &part[at * width..(at + 1) * width]);
        let rest = parts[1..].iter().map(|part| element(part));
        let value = rest.fold(element(parts[0]), |a, b| {
            combine_numbers(reduction, ty, a, b)
        });
        number::encode(ty, value, bytes);
    }
    out
}

fn combine_numbers(reduction: Reduction, ty: PrimitiveType, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(match reduction {
            // A pred is 0 or 1, and a sum of two of them is their disjunction.
            Reduction::Sum if ty == PrimitiveType::Pred => a | b,
            Reduction::Sum => number::wrap(ty, a + b),
            Reduction::Product => number::wrap(ty, a.wrapping_mul(b)),
            Reduction::Min => a.min(b),
            Reduction::Max => a.max(b),
        }),
        (Number::Float(a), Number::Float(b)) => Number::Float(match reduction {
            Reduction::Sum => a + b,
            Reduction::Product => a * b,
            Reduction::Min => least(a, b),
            Reduction::Max => -least(-a, -b),
        }),
        (Number::Complex(a, b), Number::Complex(c, d)) => match reduction {
            Reduction::Product => Number::Complex(a * c - b * d, a * d + b * c),
            _ => Number::Complex(a + c, b + d),
        },
        _ => Number::Float(f64::NAN),
    }
}

/// The smaller number; NaN when one is, and -0 before +0.
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    match a == b {
        true if a.is_sign_negative() => a,
        true => b,
        false => a.min(b),
    }
}
