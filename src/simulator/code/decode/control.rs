//! Branches, calls, barriers and fences.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::simulator::code::function::Builder;
use crate::simulator::code::function::bytes_of;
use crate::simulator::code::function::class_of;
use crate::simulator::code::function::frame_of;
use crate::simulator::code::inst::*;
use crate::simulator::code::operand::Meaning;
use crate::simulator::ptx;
use crate::simulator::ptx::Instr;
use crate::simulator::ptx::Operand;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// `bra`, `brx.idx`, `ret`, `exit`, `trap` and `brkpt`
pub fn branch<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let modifiers = &instr.modifiers[..];
    match (instr.opcode, modifiers, &instr.operands[..]) {
        ("bra", [] | ["uni"], [Operand::Name(label)]) => b.branch(label.name),
        ("brx", ["idx"] | ["idx", "uni"], [index, Operand::Name(list)]) => {
            let index = b.source(index, Class::W32)?;
            b.branch_index(index, list.name)?;
        }
        ("ret", [] | ["uni"], []) => b.leave(),
        ("exit", [], []) => {
            b.emit(Op::Exit, Work::Control);
        }
        ("trap", [], []) => {
            b.emit(Op::Trap, Work::Control);
        }
        ("brkpt", [], []) => {
            b.emit(Op::Nop, Work::Control);
        }
        _ => return Err(b.unsupported()),
    }
    Ok(())
}

/// `alloca`, `stacksave` and `stackrestore`
pub fn stack<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let class = match instr.modifiers[..] {
        ["u32"] => Class::W32,
        ["u64"] => Class::W64,
        _ => return Err(b.unsupported()),
    };
    let of = |slot: Slot| Reg { slot, class };
    let op = match (instr.opcode, &instr.operands[..]) {
        ("stacksave", [d]) => Stack::Save(of(b.dest(d, class)?)),
        ("stackrestore", [a]) => Stack::Restore(of(b.source(a, class)?)),
        ("alloca", [d, size, align @ ..]) if align.len() < 2 => {
            let wanted = match align.first() {
                Some(align) => b.integer(Some(align))?,
                None => 8,
            };
            let align = u32::try_from(wanted).unwrap_or(0);
            if !align.is_power_of_two() || align > 1 << 23 {
                return Err(b.bad("the alignment is not a power of two up to 2^23"));
            }
            Stack::Allocate {
                size: of(b.source(size, class)?),
                d: of(b.dest(d, class)?),
                align: align.max(8),
                frame: 0,
            }
        }
        _ => return Err(b.unsupported()),
    };
    b.emit(Op::Stack(op), Work::Move);
    Ok(())
}

/// Where a value passed stands on the caller's side.
fn caller_place<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    formal: &ptx::Variable<'a>,
    is_result: bool,
) -> Result<Place> {
    if let Operand::Name(symbol) = operand
        && let Some(Meaning::Frame(at)) = b.meaning(symbol.name)
    {
        return Ok(Place::Frame(at));
    }
    let Some(class) = class_of(formal.ty) else {
        return Err(b.bad("a parameter has a type that cannot be passed"));
    };
    let reg = match (operand, is_result) {
        (Operand::Sink, true) => Reg {
            slot: b.temporary(class),
            class,
        },
        (operand, true) => b.any_dest(operand)?,
        (operand, false) => b.any_source(operand, class)?,
    };
    if reg.class != class || class == Class::Pred {
        return Err(b.bad("a value passed does not fit its parameter"));
    }
    Ok(Place::Register(reg))
}

/// Pairs what the caller passes with what the callee declares.
fn passes<'a>(
    b: &mut Builder<'a, '_>,
    operands: &[Operand<'a>],
    signature: &ptx::Function<'a>,
    is_result: bool,
) -> Result<Vec<Pass>> {
    let frame = frame_of(signature);
    let (formals, offsets) = if is_result {
        (&signature.returns, &frame.returns)
    } else {
        (&signature.params, &frame.params)
    };
    if operands.len() != formals.len() {
        return Err(b.bad("the call passes another number of values than are declared"));
    }
    let before = if is_result {
        0
    } else {
        let registers = signature.returns.iter();
        registers.filter(|v| v.space == ptx::Space::Reg).count()
    };
    let mut number = before as u32;
    let mut list = Vec::new();
    for ((operand, formal), at) in operands.iter().zip(formals).zip(offsets) {
        let callee = if formal.space == ptx::Space::Reg {
            let Some(class) = class_of(formal.ty) else {
                return Err(b.bad("a parameter has a type that cannot be passed"));
            };
            number += 1;
            Place::Register(Reg {
                slot: Slot(number - 1),
                class,
            })
        } else {
            Place::Frame(*at)
        };
        list.push(Pass {
            caller: caller_place(b, operand, formal, is_result)?,
            callee,
            bytes: bytes_of(formal).unwrap_or(0).min(1 << 20) as u32,
        });
    }
    Ok(list)
}

/// `call`, direct and through a register.
pub fn call<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    if !matches!(&instr.modifiers[..], [] | ["uni"]) {
        return Err(b.unsupported());
    }
    let empty = Vec::new();
    let (results, rest) = match &instr.operands[..] {
        [Operand::List(results), rest @ ..] => (results, rest),
        rest => (&empty, rest),
    };
    let [Operand::Name(target), rest @ ..] = rest else {
        return Err(b.unsupported());
    };
    let (arguments, rest) = match rest {
        [Operand::List(arguments), rest @ ..] => (arguments, rest),
        rest => (&empty, rest),
    };
    let (callee, signature) = match b.meaning(target.name) {
        Some(Meaning::Function(number)) => {
            let Some(signature) = b.globals.signatures.get(number as usize).copied() else {
                return Err(b.unknown(target.name));
            };
            let callee = match (signature.body.is_some(), Builtin::parse(signature.name)) {
                (true, _) => Callee::Function(number),
                (false, Some(builtin)) => Callee::Builtin(builtin),
                (false, None) => {
                    let what = format!("function `{}` is declared but not defined", target.name);
                    return Err(Diagnostic::error(codes::PTX_NAME, what));
                }
            };
            if signature.is_entry {
                return Err(b.refuse(target.name, "is a kernel and cannot be called"));
            }
            (callee, signature)
        }
        Some(Meaning::Register { .. }) => {
            let reg = b.register(target)?;
            if reg.class != Class::W64 {
                return Err(b.refuse(target.name, "cannot hold a function's address"));
            }
            let signature = match rest {
                [Operand::Name(label)] => b.prototype(label.name),
                _ => None,
            };
            let Some(signature) = signature else {
                return Err(b.bad("an indirect call needs a prototype or a list of targets"));
            };
            b.calls_indirectly = true;
            (Callee::Register(reg.slot), signature)
        }
        _ => return Err(b.unknown(target.name)),
    };
    let arguments = passes(b, arguments, signature, false)?;
    let results = passes(b, results, signature, true)?;
    let formal_register = |p: &Pass| matches!(p.callee, Place::Register(_));
    if matches!(callee, Callee::Register(_))
        && arguments.iter().chain(&results).any(formal_register)
    {
        return Err(b.bad("an indirect call cannot pass registers"));
    }
    let call = Call {
        callee,
        arguments,
        results,
        frame: 0,
        save: None,
    };
    b.emit(Op::Call(Box::new(call)), Work::Control);
    Ok(())
}

/// `bar` and `barrier`, of warps, blocks and clusters.
pub fn barrier<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let mut words = &instr.modifiers[..];
    if let ["warp", "sync"] = words {
        let [members] = &instr.operands[..] else {
            return Err(b.unsupported());
        };
        let members = b.source(members, Class::W32)?;
        b.emit(
            Op::Collective(Box::new(Collective {
                kind: CollectiveKind::Sync,
                d: Slot::NONE,
                p: Slot::NONE,
                a: Slot::NONE,
                b: Slot::NONE,
                c: Slot::NONE,
                members,
            })),
            Work::Barrier,
        );
        return Ok(());
    }
    if let ["cluster", what, rest @ ..] = words {
        let known = ["release", "relaxed", "acquire", "aligned"];
        if !rest.iter().all(|w| known.contains(w)) || !instr.operands.is_empty() {
            return Err(b.unsupported());
        }
        let op = match *what {
            "arrive" => Op::ClusterArrive,
            "wait" => Op::ClusterWait,
            _ => return Err(b.unsupported()),
        };
        b.emit(op, Work::Barrier);
        return Ok(());
    }
    if let ["cta", rest @ ..] = words {
        words = rest;
    }
    let aligned = instr.opcode == "bar" || words.contains(&"aligned");
    let words: Vec<&str> = words.iter().copied().filter(|w| *w != "aligned").collect();
    let kind = match words[..] {
        ["sync"] => BarrierKind::Sync,
        ["arrive"] => BarrierKind::Arrive,
        ["red", "popc", "u32"] => BarrierKind::Popc,
        ["red", "and", "pred"] => BarrierKind::And,
        ["red", "or", "pred"] => BarrierKind::Or,
        _ => return Err(b.unsupported()),
    };
    let mut operands = &instr.operands[..];
    let (mut d, mut p, mut negated) = (Slot::NONE, Slot::NONE, false);
    if !matches!(kind, BarrierKind::Sync | BarrierKind::Arrive) {
        let [first, middle @ .., last] = operands else {
            return Err(b.unsupported());
        };
        let class = if kind == BarrierKind::Popc {
            Class::W32
        } else {
            Class::Pred
        };
        d = b.dest(first, class)?;
        (p, negated) = b.predicate(last)?;
        operands = middle;
    }
    let (id, count) = match operands {
        [id] if kind != BarrierKind::Arrive => (b.source(id, Class::W32)?, Slot::NONE),
        [id, count] => (b.source(id, Class::W32)?, b.source(count, Class::W32)?),
        _ => return Err(b.unsupported()),
    };
    let barrier = Barrier {
        kind,
        id,
        count,
        aligned,
        d,
        p,
        negated,
    };
    b.emit(Op::Barrier(Box::new(barrier)), Work::Barrier);
    Ok(())
}

/// `fence` and `membar`
pub fn fence<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let known = |word: &&str| {
        matches!(
            *word,
            "sc" | "acq_rel"
                | "acquire"
                | "release"
                | "cta"
                | "cluster"
                | "gpu"
                | "sys"
                | "gl"
                | "proxy"
                | "alias"
                | "tensormap"
                | "mbarrier_init"
                | "tensormap::generic"
                | "shared::cta"
                | "shared::cluster"
        ) || word.starts_with("sync_restrict::")
            || word.starts_with("async")
    };
    if instr.modifiers.is_empty() || !instr.modifiers.iter().all(known) {
        return Err(b.unsupported());
    }
    let proxy = matches!(&instr.modifiers[..], ["proxy", what, ..] if what.starts_with("async"));
    b.emit(Op::Fence(proxy), Work::Barrier);
    Ok(())
}

/// Instructions that change nothing a program can see.
pub fn nothing<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let fits = match (instr.opcode, &instr.modifiers[..], &instr.operands[..]) {
        ("nanosleep", ["u32"], [time]) => b.source(time, Class::W32).is_ok(),
        ("pmevent", [] | ["mask"], [Operand::Int(_)]) => true,
        ("setmaxnreg", ["inc" | "dec", "sync", "aligned", "u32"], [Operand::Int(_)]) => true,
        ("griddepcontrol", ["launch_dependents" | "wait"], []) => true,
        _ => false,
    };
    if !fits {
        return Err(b.unsupported());
    }
    b.emit(Op::Nop, Work::Control);
    Ok(())
}
