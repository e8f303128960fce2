//! Copies that go on by themselves, and the barriers that tell of their end.

use crate::base::Result;
use crate::simulator::code::decode::memory::atomic_fits;
use crate::simulator::code::decode::memory::atomic_op;
use crate::simulator::code::decode::memory::atomic_type;
use crate::simulator::code::decode::memory::space_of;
use crate::simulator::code::function::Builder;
use crate::simulator::code::inst::*;
use crate::simulator::ptx::Instr;
use crate::simulator::ptx::Operand;
use crate::simulator::tensor::CopyMode;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// `cp.async` and all that begins like it.
pub fn copy<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let operands = &instr.operands[..];
    match &instr.modifiers[..] {
        ["async", "commit_group"] if operands.is_empty() => {
            b.emit(Op::CopyCommit, Work::Async);
        }
        ["async", "wait_all"] if operands.is_empty() => {
            b.emit(Op::CopyCommit, Work::Async);
            b.emit(Op::CopyWait(0), Work::Async);
        }
        ["async", "wait_group"] => {
            let count = b.integer(operands.first())?.clamp(0, i64::from(u32::MAX)) as u32;
            b.emit(Op::CopyWait(count), Work::Async);
        }
        ["async", "mbarrier", "arrive", rest @ ..] => {
            let [address] = operands else {
                return Err(b.unsupported());
            };
            let known =
                |w: &&str| matches!(*w, "noinc" | "b64") || space_of(w) == Some(Space::Shared);
            if !rest.iter().all(known) {
                return Err(b.unsupported());
            }
            let mbarrier = Mbarrier {
                kind: MbarrierKind::ArriveAfterCopies(rest.contains(&"noinc")),
                address: b.address(address, space(rest))?,
                d: Slot::NONE,
                a: Slot::NONE,
            };
            b.emit(Op::Mbarrier(Box::new(mbarrier)), Work::Async);
        }
        ["async", "bulk", "commit_group"] if operands.is_empty() => {
            b.emit(Op::BulkCommit, Work::Async);
        }
        ["async", "bulk", "wait_group", ..] => {
            let count = b.integer(operands.first())?.clamp(0, i64::from(u32::MAX)) as u32;
            b.emit(Op::BulkWait(count), Work::Async);
        }
        ["async", "bulk", "tensor", rest @ ..] => tensor(b, rest, operands, None)?,
        ["async", "bulk", "prefetch", "tensor", ..] => {
            let Some(address) = operands.first() else {
                return Err(b.unsupported());
            };
            b.address(address, Space::Generic)?;
            b.emit(Op::Nop, Work::Async);
        }
        ["async", "bulk", "prefetch", "L2", ..] => {
            let Some(address) = operands.first() else {
                return Err(b.unsupported());
            };
            b.address(address, Space::Global)?;
            b.emit(Op::Nop, Work::Async);
        }
        ["async", "bulk", rest @ ..] => bulk(b, rest, operands, None)?,
        ["reduce", "async", "bulk", "tensor", rest @ ..] => {
            let Some(op) = rest.iter().find_map(|w| atomic_op(w)) else {
                return Err(b.unsupported());
            };
            let rest: Vec<&str> = rest
                .iter()
                .copied()
                .filter(|w| atomic_op(w).is_none())
                .collect();
            tensor(b, &rest, operands, Some(op))?;
        }
        ["reduce", "async", "bulk", rest @ ..] => {
            let op = rest.iter().find_map(|w| atomic_op(w));
            let ty = rest.iter().find_map(|w| atomic_type(w));
            let (Some(op), Some(ty)) = (op, ty) else {
                return Err(b.unsupported());
            };
            if !atomic_fits(op, ty) {
                return Err(b.unsupported());
            }
            let known =
                |w: &&str| atomic_op(w).is_none() && atomic_type(w).is_none() && *w != "noftz";
            let rest: Vec<&str> = rest.iter().copied().filter(|w| known(w)).collect();
            bulk(b, &rest, operands, Some((op, ty)))?;
        }
        ["async", "ca" | "cg", ..] => copy_async(b, instr)?,
        _ => return Err(b.unsupported()),
    }
    Ok(())
}

fn space(words: &[&str]) -> Space {
    words
        .iter()
        .find_map(|w| space_of(w))
        .unwrap_or(Space::Generic)
}

/// `cp.async.ca.shared.global [to], [from], bytes{, bytes read | ignore}{, policy}`
fn copy_async<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let hint = instr.modifiers.contains(&"L2::cache_hint");
    let mut operands = &instr.operands[..];
    if hint && operands.len() > 3 {
        operands = &operands[..operands.len() - 1];
    }
    let [to, from, bytes, rest @ ..] = operands else {
        return Err(b.unsupported());
    };
    let bytes = b.integer(Some(bytes))?;
    let around_l1 = instr.modifiers.contains(&"cg");
    if !matches!(bytes, 4 | 8 | 16) || around_l1 && bytes != 16 {
        return Err(b.bad("the size is not 4, 8 or 16; `.cg` takes 16 only"));
    }
    let mut copy = CopyAsync {
        to: b.address(to, Space::Shared)?,
        from: b.address(from, Space::Global)?,
        bytes: bytes as u32,
        source_bytes: Slot::NONE,
        ignore: Slot::NONE,
        negated: false,
    };
    if let Some(extra) = rest.first() {
        let is_predicate = match extra {
            Operand::Not(_) => true,
            Operand::Name(symbol) => b.register(symbol).is_ok_and(|reg| reg.class == Class::Pred),
            _ => false,
        };
        if is_predicate {
            (copy.ignore, copy.negated) = b.predicate(extra)?;
        } else {
            copy.source_bytes = b.source(extra, Class::W32)?;
        }
    }
    b.emit(Op::CopyAsync(Box::new(copy)), Work::Async);
    Ok(())
}

/// The spaces and the way of completion of a bulk copy.
struct Words {
    to: Space,
    from: Space,
    by_mbarrier: bool,
    multicast: bool,
    mask: bool,
}

fn words(b: &Builder<'_, '_>, list: &[&str]) -> Result<Words> {
    let mut spaces = list.iter().filter_map(|w| space_of(w));
    let (Some(to), Some(from)) = (spaces.next(), spaces.next()) else {
        return Err(b.unsupported());
    };
    let found = Words {
        to,
        from,
        by_mbarrier: list.contains(&"mbarrier::complete_tx::bytes"),
        multicast: list.contains(&"multicast::cluster"),
        mask: list.contains(&"cp_mask"),
    };
    let known = |w: &&str| {
        space_of(w).is_some()
            || matches!(
                *w,
                "mbarrier::complete_tx::bytes"
                    | "bulk_group"
                    | "multicast::cluster"
                    | "cp_mask"
                    | "L2::cache_hint"
                    | "noftz"
                    | "cta_group::1"
                    | "cta_group::2"
            )
    };
    if !list.iter().all(known) || found.by_mbarrier == list.contains(&"bulk_group") {
        return Err(b.unsupported());
    }
    Ok(found)
}

fn bulk<'a>(
    b: &mut Builder<'a, '_>,
    list: &[&str],
    operands: &[Operand<'a>],
    reduce: Option<(AtomicOp, AtomicType)>,
) -> Result<()> {
    let words = words(b, list)?;
    let [to, from, bytes, rest @ ..] = operands else {
        return Err(b.unsupported());
    };
    let mut rest = rest.iter();
    let mut bulk = Bulk {
        to: b.address(to, words.to)?,
        from: b.address(from, words.from)?,
        bytes: b.source(bytes, Class::W32)?,
        completion: Completion::Group,
        multicast: Slot::NONE,
        mask: Slot::NONE,
        reduce,
    };
    if words.by_mbarrier {
        let Some(bar) = rest.next() else {
            return Err(b.unsupported());
        };
        bulk.completion = Completion::Mbarrier(b.address(bar, Space::Shared)?);
    }
    if words.multicast {
        let Some(mask) = rest.next() else {
            return Err(b.unsupported());
        };
        bulk.multicast = b.source(mask, Class::W32)?;
    }
    if list.contains(&"L2::cache_hint") {
        rest.next();
    }
    if words.mask {
        let (Some(mask), Space::Global, None) = (rest.next(), words.to, reduce) else {
            return Err(b.unsupported());
        };
        bulk.mask = b.source(mask, Class::W32)?;
    }
    if rest.next().is_some() {
        return Err(b.unsupported());
    }
    b.emit(Op::Bulk(Box::new(bulk)), Work::Async);
    Ok(())
}

/// `cp.async.bulk.tensor` and its reducing form.
fn tensor<'a>(
    b: &mut Builder<'a, '_>,
    list: &[&str],
    operands: &[Operand<'a>],
    reduce: Option<AtomicOp>,
) -> Result<()> {
    let mut mode = CopyMode::Tile;
    let mut rest = Vec::new();
    let mut rank = 0;
    for &word in list {
        match word {
            "1d" => rank = 1,
            "2d" => rank = 2,
            "3d" => rank = 3,
            "4d" => rank = 4,
            "5d" => rank = 5,
            word => match CopyMode::parse(word) {
                Some(found) => mode = found,
                None => rest.push(word),
            },
        }
    }
    let words = words(b, &rest)?;
    if words.mask {
        return Err(b.unsupported());
    }
    let is_load = words.to == Space::Shared;
    let [x, y, more @ ..] = operands else {
        return Err(b.unsupported());
    };
    let (shared, map) = if is_load { (x, y) } else { (y, x) };
    let Operand::Address(inner) = map else {
        return Err(b.unsupported());
    };
    let mut coordinates = Vec::new();
    for extra in &inner.extra {
        for element in b.elements(extra) {
            coordinates.push(b.source(&element, Class::W32)?);
        }
    }
    let gathers = matches!(mode, CopyMode::Gather4 | CopyMode::Scatter4);
    if rank == 0 || coordinates.len() != if gathers { 5 } else { rank } {
        return Err(b.bad("the number of coordinates is not that of the tensor"));
    }
    let mut more = more.iter();
    let mut copy = BulkTensor {
        shared: b.address(shared, Space::Shared)?,
        map: b.address(map, Space::Generic)?,
        coordinates,
        offsets: Vec::new(),
        mode,
        is_load,
        completion: Completion::Group,
        multicast: Slot::NONE,
        pair: rest.contains(&"cta_group::2"),
        reduce,
    };
    if words.by_mbarrier {
        let Some(bar) = more.next() else {
            return Err(b.unsupported());
        };
        copy.completion = Completion::Mbarrier(b.address(bar, Space::Shared)?);
    }
    if let Some(Operand::Vector(list)) = more.clone().next() {
        more.next();
        for element in list {
            copy.offsets.push(b.source(element, Class::W32)?);
        }
    }
    if words.multicast {
        let Some(mask) = more.next() else {
            return Err(b.unsupported());
        };
        copy.multicast = b.source(mask, Class::W32)?;
    }
    if rest.contains(&"L2::cache_hint") {
        more.next();
    }
    if more.next().is_some() {
        return Err(b.unsupported());
    }
    b.emit(Op::BulkTensor(Box::new(copy)), Work::Async);
    Ok(())
}

/// `mbarrier`
pub fn mbarrier<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let [what, rest @ ..] = &instr.modifiers[..] else {
        return Err(b.unsupported());
    };
    let known = |w: &&str| {
        space_of(w) == Some(Space::Shared)
            || matches!(
                *w,
                "b64"
                    | "release"
                    | "acquire"
                    | "relaxed"
                    | "cta"
                    | "cluster"
                    | "parity"
                    | "expect_tx"
                    | "noComplete"
            )
    };
    if !rest.iter().all(known) {
        return Err(b.unsupported());
    }
    let space = space(rest);
    let operands = &instr.operands[..];
    let mut found = Mbarrier {
        kind: MbarrierKind::Init,
        address: Address {
            space,
            base: Slot::NONE,
            wide: false,
            offset: 0,
            frame: false,
        },
        d: Slot::NONE,
        a: Slot::NONE,
    };
    match (*what, operands) {
        ("init", [address, count]) => {
            found.address = b.address(address, space)?;
            found.a = b.source(count, Class::W32)?;
        }
        ("inval", [address]) => {
            found.kind = MbarrierKind::Invalidate;
            found.address = b.address(address, space)?;
        }
        ("expect_tx" | "complete_tx", [address, bytes]) => {
            found.kind = if *what == "expect_tx" {
                MbarrierKind::ExpectTx
            } else {
                MbarrierKind::CompleteTx
            };
            found.address = b.address(address, space)?;
            found.a = b.source(bytes, Class::W32)?;
        }
        ("arrive" | "arrive_drop", operands) => {
            let (state, address, count) = match operands {
                [state, address @ Operand::Address(_), count @ ..] => (Some(state), address, count),
                [address @ Operand::Address(_), count @ ..] => (None, address, count),
                _ => return Err(b.unsupported()),
            };
            let expect = rest.contains(&"expect_tx");
            found.kind = MbarrierKind::Arrive {
                expect,
                drop: *what == "arrive_drop",
            };
            found.address = b.address(address, space)?;
            if let Some(state) = state
                && !matches!(state, Operand::Sink)
            {
                found.d = b.dest(state, Class::W64)?;
            }
            found.a = match count {
                [count] => b.source(count, Class::W32)?,
                [] if !expect => b.pool.slot(Class::W32, 1),
                _ => return Err(b.unsupported()),
            };
        }
        ("test_wait" | "try_wait", [d, address, state, hint @ ..]) if hint.len() < 2 => {
            let parity = rest.contains(&"parity");
            found.kind = MbarrierKind::Wait { parity };
            found.address = b.address(address, space)?;
            found.a = b.source(state, if parity { Class::W32 } else { Class::W64 })?;
            found.d = b.dest(d, Class::Pred)?;
        }
        ("pending_count", [d, state]) => {
            found.kind = MbarrierKind::PendingCount;
            found.a = b.source(state, Class::W64)?;
            found.d = b.dest(d, Class::W32)?;
        }
        _ => return Err(b.unsupported()),
    }
    b.emit(Op::Mbarrier(Box::new(found)), Work::Barrier);
    Ok(())
}

/// `tensormap.replace` and `tensormap.cp_fenceproxy`
pub fn tensormap<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    match (&instr.modifiers[..], &instr.operands[..]) {
        (["replace", "tile", field, rest @ ..], [address, values @ ..]) => {
            let wide =
                rest.contains(&"b64") && matches!(*field, "global_address" | "global_stride");
            let class = if wide { Class::W64 } else { Class::W32 };
            let (ordinal, value) = match values {
                [ordinal, value] => (b.integer(Some(ordinal))? as u32, value),
                [value] => (0, value),
                _ => return Err(b.unsupported()),
            };
            let inst = MapReplace {
                address: b.address(address, space(rest))?,
                field: (*field).to_owned(),
                ordinal,
                value: Reg {
                    slot: b.source(value, class)?,
                    class,
                },
            };
            b.emit(Op::MapReplace(Box::new(inst)), Work::Async);
        }
        (["cp_fenceproxy", rest @ ..], [to, from, bytes]) => {
            if b.integer(Some(bytes))? != 128 {
                return Err(b.bad("the size is not 128"));
            }
            let mut spaces = rest.iter().filter_map(|w| space_of(w));
            let to_space = spaces.next().unwrap_or(Space::Generic);
            let from_space = spaces.next().unwrap_or(Space::Generic);
            let to = b.address(to, to_space)?;
            let from = b.address(from, from_space)?;
            b.emit(Op::MapCopy(Box::new((to, from))), Work::Async);
        }
        _ => return Err(b.unsupported()),
    }
    Ok(())
}
