//! Lanes of a warp together: shuffles, votes, matches, reductions.

use crate::base::Result;
use crate::simulator::code::function::Builder;
use crate::simulator::code::inst::*;
use crate::simulator::ptx::Instr;
use crate::simulator::ptx::Operand;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

const EMPTY: Collective = Collective {
    kind: CollectiveKind::Sync,
    d: Slot::NONE,
    p: Slot::NONE,
    a: Slot::NONE,
    b: Slot::NONE,
    c: Slot::NONE,
    members: Slot::NONE,
};

/// A destination and the predicate beside it, if there is one.
fn pair<'a>(b: &mut Builder<'a, '_>, operand: &Operand<'a>, class: Class) -> Result<(Slot, Slot)> {
    match operand {
        Operand::Pair(pair) => Ok((b.dest(&pair.0, class)?, b.dest(&pair.1, Class::Pred)?)),
        operand => Ok((b.dest(operand, class)?, Slot::NONE)),
    }
}

/// `shfl`, `vote`, `match`, `redux`, `elect` and `activemask`
pub fn collective<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let words = &instr.modifiers[..];
    let operands = &instr.operands[..];
    let found = match instr.opcode {
        "shfl" => shuffle(b, words, operands)?,
        "vote" => vote(b, words, operands)?,
        "match" => same(b, words, operands)?,
        "redux" => redux(b, words, operands)?,
        "elect" => {
            let (["sync"], [d, members]) = (words, operands) else {
                return Err(b.unsupported());
            };
            let (d, p) = pair(b, d, Class::W32)?;
            Collective {
                kind: CollectiveKind::Elect,
                d,
                p,
                members: b.source(members, Class::W32)?,
                ..EMPTY
            }
        }
        _ => {
            let (["b32"], [d]) = (words, operands) else {
                return Err(b.unsupported());
            };
            let d = b.dest(d, Class::W32)?;
            b.emit(Op::Special(Special::ActiveMask, d, false), Work::Shuffle);
            return Ok(());
        }
    };
    b.emit(Op::Collective(Box::new(found)), Work::Shuffle);
    Ok(())
}

fn shuffle<'a>(
    b: &mut Builder<'a, '_>,
    words: &[&str],
    operands: &[Operand<'a>],
) -> Result<Collective> {
    let (sync, mode) = match words {
        ["sync", mode, "b32"] => (true, *mode),
        [mode, "b32"] => (false, *mode),
        _ => return Err(b.unsupported()),
    };
    let mode = match mode {
        "up" => ShuffleMode::Up,
        "down" => ShuffleMode::Down,
        "bfly" => ShuffleMode::Bfly,
        "idx" => ShuffleMode::Idx,
        _ => return Err(b.unsupported()),
    };
    let (d, source, lane, clamp, members) = match operands {
        [d, a, lane, clamp, members] if sync => (d, a, lane, clamp, Some(members)),
        [d, a, lane, clamp] if !sync => (d, a, lane, clamp, None),
        _ => return Err(b.unsupported()),
    };
    let (d, p) = pair(b, d, Class::W32)?;
    Ok(Collective {
        kind: CollectiveKind::Shuffle(mode),
        d,
        p,
        a: b.source(source, Class::W32)?,
        b: b.source(lane, Class::W32)?,
        c: b.source(clamp, Class::W32)?,
        members: match members {
            Some(members) => b.source(members, Class::W32)?,
            None => Slot::NONE,
        },
    })
}

fn vote<'a>(
    b: &mut Builder<'a, '_>,
    words: &[&str],
    operands: &[Operand<'a>],
) -> Result<Collective> {
    let (sync, mode, ty) = match words {
        ["sync", mode, ty] => (true, *mode, *ty),
        [mode, ty] => (false, *mode, *ty),
        _ => return Err(b.unsupported()),
    };
    let (mode, class) = match (mode, ty) {
        ("all", "pred") => (VoteMode::All, Class::Pred),
        ("any", "pred") => (VoteMode::Any, Class::Pred),
        ("uni", "pred") => (VoteMode::Uni, Class::Pred),
        ("ballot", "b32") => (VoteMode::Ballot, Class::W32),
        _ => return Err(b.unsupported()),
    };
    let (d, a, members) = match operands {
        [d, a, members] if sync => (d, a, Some(members)),
        [d, a] if !sync => (d, a, None),
        _ => return Err(b.unsupported()),
    };
    let (a, negated) = b.predicate(a)?;
    let d = b.dest(d, class)?;
    Ok(Collective {
        kind: CollectiveKind::Vote(mode, negated),
        d: if class == Class::W32 { d } else { Slot::NONE },
        p: if class == Class::Pred { d } else { Slot::NONE },
        a,
        members: match members {
            Some(members) => b.source(members, Class::W32)?,
            None => Slot::NONE,
        },
        ..EMPTY
    })
}

fn same<'a>(
    b: &mut Builder<'a, '_>,
    words: &[&str],
    operands: &[Operand<'a>],
) -> Result<Collective> {
    let ([mode, "sync", ty], [d, a, members]) = (words, operands) else {
        return Err(b.unsupported());
    };
    let wide = match *ty {
        "b32" => false,
        "b64" => true,
        _ => return Err(b.unsupported()),
    };
    let kind = match *mode {
        "any" => CollectiveKind::MatchAny(wide),
        "all" => CollectiveKind::MatchAll(wide),
        _ => return Err(b.unsupported()),
    };
    let (d, p) = pair(b, d, Class::W32)?;
    Ok(Collective {
        kind,
        d,
        p,
        a: b.source(a, if wide { Class::W64 } else { Class::W32 })?,
        members: b.source(members, Class::W32)?,
        ..EMPTY
    })
}

fn redux<'a>(
    b: &mut Builder<'a, '_>,
    words: &[&str],
    operands: &[Operand<'a>],
) -> Result<Collective> {
    let ["sync", op, flags @ .., ty] = words else {
        return Err(b.unsupported());
    };
    let (mut abs, mut nan) = (false, false);
    for flag in flags {
        match *flag {
            "abs" => abs = true,
            "NaN" => nan = true,
            _ => return Err(b.unsupported()),
        }
    }
    let op = match (*op, *ty) {
        ("min", "f32") => ReduxOp::MinF { abs, nan },
        ("max", "f32") => ReduxOp::MaxF { abs, nan },
        _ if abs || nan => return Err(b.unsupported()),
        ("add", "u32" | "s32") => ReduxOp::Add,
        ("min", "u32") => ReduxOp::MinU,
        ("max", "u32") => ReduxOp::MaxU,
        ("min", "s32") => ReduxOp::MinS,
        ("max", "s32") => ReduxOp::MaxS,
        ("and", "b32") => ReduxOp::And,
        ("or", "b32") => ReduxOp::Or,
        ("xor", "b32") => ReduxOp::Xor,
        _ => return Err(b.unsupported()),
    };
    let [d, a, members] = operands else {
        return Err(b.unsupported());
    };
    Ok(Collective {
        kind: CollectiveKind::Redux(op),
        d: b.dest(d, Class::W32)?,
        a: b.source(a, Class::W32)?,
        members: b.source(members, Class::W32)?,
        ..EMPTY
    })
}
