//! Registers to registers.

use crate::base::Result;
use crate::simulator::code::function::Builder;
use crate::simulator::code::inst::*;
use crate::simulator::code::operand::Meaning;
use crate::simulator::code::operand::special;
use crate::simulator::ptx::Instr;
use crate::simulator::ptx::Operand;
use crate::simulator::warp::alu;
use crate::simulator::warp::alu::logic::parts;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::lanes::meet;

/// The kind of work, and the floating-point operations of a lane.
fn work_of(instr: &Instr<'_>) -> (Work, u32) {
    let has = |names: &[&str]| instr.modifiers.iter().any(|m| names.contains(m));
    let special = matches!(
        instr.opcode,
        "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh"
    ) || (matches!(instr.opcode, "rcp" | "sqrt" | "div") && has(&["f32", "f64"]));
    let flops = match instr.opcode {
        "fma" | "mad" => 2,
        "add" | "sub" | "mul" | "div" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2"
        | "ex2" | "tanh" | "min" | "max" => 1,
        _ => 0,
    };
    if has(&["f64"]) {
        (Work::Double, flops)
    } else if special {
        (Work::Special, flops)
    } else if has(&["f32x2"]) {
        (Work::Float, 2 * flops)
    } else if has(&["f32"]) {
        (Work::Float, flops)
    } else if has(&["f16x2", "bf16x2"]) {
        (Work::Half, 2 * flops)
    } else if has(&["f16", "bf16"]) {
        (Work::Half, flops)
    } else {
        (Work::Integer, 0)
    }
}

/// The floating-point type of 16-bit constants.
fn half_of<'a>(instr: &Instr<'a>) -> Option<&'a str> {
    let halves = ["f16", "bf16", "f16x2", "bf16x2"];
    instr.modifiers.iter().copied().find(|m| halves.contains(m))
}

/// Binds a row's operands: one destination, then the sources of its signature.
fn bind<'a>(
    b: &mut Builder<'a, '_>,
    instr: &Instr<'a>,
    row: &Row,
    x: u64,
    operands: &[Operand<'a>],
) -> Result<Args> {
    let [to, sources @ ..] = row.signature else {
        return Err(b.unsupported());
    };
    let [first, rest @ ..] = operands else {
        return Err(b.unsupported());
    };
    if rest.len() != sources.len() || rest.len() > 5 {
        return Err(b.unsupported());
    }
    let mut args = Args {
        x,
        ..Args::default()
    };
    let half = half_of(instr);
    for (index, (operand, class)) in rest.iter().zip(sources).enumerate() {
        let slot = if *class == Class::Pred {
            let (slot, negated) = b.predicate(operand)?;
            args.x |= u64::from(negated) << index;
            slot
        } else {
            b.source_of(operand, *class, half)?
        };
        match index {
            0 => args.a = slot,
            1 => args.b = slot,
            2 => args.c = slot,
            3 => args.e = slot,
            _ => args.d2 = slot,
        }
    }
    args.d = b.dest(first, *to)?;
    Ok(args)
}

/// An instruction that a table knows, with a destination and its sources in order.
pub fn plain<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let (work, flops) = work_of(instr);
    let mut name = instr.opcode.to_owned();
    for word in &instr.modifiers {
        name.push('.');
        name.push_str(word);
    }
    if let Some((row, reads, sets)) = alu::int::carry(&name) {
        let mut args = bind(b, instr, &row, 0, &instr.operands)?;
        let carry = b.carry();
        args.e = if reads { carry } else { Slot::NONE };
        args.d2 = if sets { carry } else { Slot::NONE };
        b.alu(row, args, work);
        return Ok(());
    }
    let three = matches!(instr.opcode, "min" | "max") && instr.operands.len() == 4;
    let found = if three {
        alu::float::extreme_of_three(instr.opcode, &instr.modifiers)
    } else {
        alu::find(instr.opcode, &instr.modifiers)
    };
    let Some((row, x)) = found else {
        return Err(b.unsupported());
    };
    let args = bind(b, instr, &row, x, &instr.operands)?;
    let at = b.alu(row, args, work);
    b.code[at].flops = flops;
    Ok(())
}

/// `lop3`, whose table is a constant; with a predicate it is one more step.
pub fn lop3<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let Some((row, _)) = alu::find("lop3", &["b32"]) else {
        return Err(b.unsupported());
    };
    match (&instr.modifiers[..], &instr.operands[..]) {
        (["b32"], [operands @ .., table]) => {
            let table = b.integer(Some(table))? as u64 & 0xff;
            let args = bind(b, instr, &row, table, operands)?;
            b.alu(row, args, Work::Integer);
            Ok(())
        }
        ([op @ ("and" | "or"), "b32"], [Operand::Pair(pair), operands @ .., table, q]) => {
            let table = b.integer(Some(table))? as u64 & 0xff;
            let mut all = vec![pair.0.clone()];
            all.extend_from_slice(operands);
            let args = bind(b, instr, &row, table, &all)?;
            let d = args.d;
            let (q, negated) = b.predicate(q)?;
            b.alu(row, args, Work::Integer);
            let Some((test, x)) = alu::find("setp", &["ne", op, "u32"]) else {
                return Err(b.unsupported());
            };
            let zero = b.pool.slot(Class::W32, 0);
            let args = Args {
                d: b.dest(&pair.1, Class::Pred)?,
                a: d,
                b: zero,
                c: q,
                x: x | if negated { meet::NOT } else { 0 },
                ..Args::default()
            };
            b.alu(test, args, Work::Integer);
            Ok(())
        }
        _ => Err(b.unsupported()),
    }
}

/// `setp`, with one destination or two, and a third predicate or none.
pub fn setp<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let Some((row, x)) = alu::find("setp", &instr.modifiers) else {
        return Err(b.unsupported());
    };
    let (work, _) = work_of(instr);
    let args = comparison(b, instr, &row, x, None)?;
    b.alu(row, args, work);
    Ok(())
}

/// The operands of a comparison; `into` takes the place of the text's destinations.
fn comparison<'a>(
    b: &mut Builder<'a, '_>,
    instr: &Instr<'a>,
    row: &Row,
    x: u64,
    into: Option<(Slot, Slot)>,
) -> Result<Args> {
    let meets = x & meet::MASK != 0;
    let [to, sources @ ..] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    if sources.len() != 2 + usize::from(meets) {
        return Err(b.unsupported());
    }
    let mut args = Args {
        x,
        ..Args::default()
    };
    let half = half_of(instr);
    args.a = b.source_of(&sources[0], row.signature[1], half)?;
    args.b = b.source_of(&sources[1], row.signature[2], half)?;
    if meets {
        let (slot, negated) = b.predicate(&sources[2])?;
        args.c = slot;
        args.x |= if negated { meet::NOT } else { 0 };
    }
    (args.d, args.d2) = match (into, to) {
        (Some(into), _) => into,
        (None, Operand::Pair(pair)) => {
            (b.dest(&pair.0, Class::Pred)?, b.dest(&pair.1, Class::Pred)?)
        }
        (None, to) => (b.dest(to, Class::Pred)?, Slot::NONE),
    };
    Ok(args)
}

/// `set`: a comparison, then a value.
pub fn set<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let Some(set) = alu::compare::set(&instr.modifiers) else {
        return Err(b.unsupported());
    };
    let (work, _) = work_of(instr);
    let p = b.temporary(Class::Pred);
    let q = if set.is_pair {
        b.temporary(Class::Pred)
    } else {
        Slot::NONE
    };
    let args = comparison(b, instr, &set.test, set.x, Some((p, q)))?;
    b.alu(set.test, args, work);
    let row = if set.is_pair {
        alu::compare::pair_of()
    } else {
        alu::compare::value_of()
    };
    let d = match instr.operands.first() {
        Some(operand) => b.dest(operand, Class::W32)?,
        None => return Err(b.unsupported()),
    };
    let args = Args {
        d,
        a: p,
        b: q,
        x: set.one,
        ..Args::default()
    };
    b.alu(row, args, work);
    Ok(())
}

/// `selp`
pub fn selp<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let Some((row, _)) = alu::find("selp", &instr.modifiers) else {
        return Err(b.unsupported());
    };
    let [d, x, y, p] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let half = half_of(instr);
    let (c, negated) = b.predicate(p)?;
    let args = Args {
        a: b.source_of(x, row.signature[1], half)?,
        b: b.source_of(y, row.signature[2], half)?,
        c,
        d: b.dest(d, row.signature[0])?,
        x: u64::from(negated),
        ..Args::default()
    };
    let (work, _) = work_of(instr);
    b.alu(row, args, work);
    Ok(())
}

/// `testp`
pub fn testp<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let Some((row, x)) = alu::find("testp", &instr.modifiers) else {
        return Err(b.unsupported());
    };
    let [d, a] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let args = Args {
        a: b.source(a, row.signature[1])?,
        d: b.dest(d, Class::Pred)?,
        x,
        ..Args::default()
    };
    let (work, _) = work_of(instr);
    b.alu(row, args, work);
    Ok(())
}

/// `cvt`
pub fn cvt<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    if let Some(conversion) = alu::convert::parse(&instr.modifiers) {
        let [d, a] = &instr.operands[..] else {
            return Err(b.unsupported());
        };
        let class = |bits: u32| if bits > 32 { Class::W64 } else { Class::W32 };
        let half = match conversion.from {
            crate::simulator::number::convert::Scalar::F16 => Some("f16"),
            crate::simulator::number::convert::Scalar::BF16 => Some("bf16"),
            _ => None,
        };
        let from = match a {
            Operand::Name(_) => b.any_source(a, class(conversion.from.bits()))?,
            _ => Reg {
                slot: b.source_of(a, class(conversion.from.bits()), half)?,
                class: class(conversion.from.bits()),
            },
        };
        let to = b.any_dest(d)?;
        let wide_enough = |class: Class, bits: u32| class == Class::W64 || bits <= 32;
        if !wide_enough(from.class, conversion.from.bits())
            || !wide_enough(to.class, conversion.to.bits())
        {
            return Err(b.bad("a register is narrower than its type"));
        }
        let Some((row, x)) = alu::convert::scalar(&conversion, from.class, to.class) else {
            return Err(b.unsupported());
        };
        let args = Args {
            d: to.slot,
            a: from.slot,
            x,
            ..Args::default()
        };
        b.alu(row, args, Work::Convert);
        return Ok(());
    }
    let Some((row, x)) = alu::convert::find("cvt", &instr.modifiers) else {
        return Err(b.unsupported());
    };
    let mut operands = Vec::new();
    for operand in &instr.operands {
        match operand {
            Operand::Vector(list) => operands.extend_from_slice(list),
            _ => operands.push(operand.clone()),
        }
    }
    let args = bind(b, instr, &row, x, &operands)?;
    b.alu(row, args, Work::Convert);
    Ok(())
}

/// `mov`: copies, the machine's state, addresses, and vectors to scalars and back.
pub fn mov<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let [d, a] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let [ty] = instr.modifiers[..] else {
        return Err(b.unsupported());
    };
    if let Operand::Vector(parts) = d {
        return unpack(b, ty, parts, a);
    }
    if let Operand::Vector(parts) = a {
        return pack(b, ty, d, parts);
    }
    if ty == "pred" {
        let (source, negated) = b.predicate(a)?;
        let to = b.dest(d, Class::Pred)?;
        let Some((row, _)) = alu::find("mov", &["pred"]) else {
            return Err(b.unsupported());
        };
        let args = Args {
            d: to,
            a: source,
            x: u64::from(negated),
            ..Args::default()
        };
        b.alu(row, args, Work::Move);
        return Ok(());
    }
    if ty == "b128" {
        let args = Args {
            a: b.source(a, Class::W128)?,
            d: b.dest(d, Class::W128)?,
            ..Args::default()
        };
        b.alu(parts::move128(), args, Work::Move);
        return Ok(());
    }
    let Some((row, _)) = alu::find("mov", &instr.modifiers) else {
        return Err(b.unsupported());
    };
    let class = row.signature[0];
    // The machine's state goes straight to where it is wanted.
    if let Operand::Name(symbol) = a
        && b.meaning(symbol.name).is_none()
        && let Some((which, _)) = special(symbol)
    {
        let d = b.dest(d, class)?;
        b.emit(Op::Special(which, d, class == Class::W64), Work::Move);
        return Ok(());
    }
    // So do whole vectors.
    let (to, from) = (b.elements(d), b.elements(a));
    if to.len() != from.len() {
        return Err(b.bad("the sides have different numbers of elements"));
    }
    for (to, from) in to.iter().zip(&from) {
        let args = Args {
            a: b.source_of(from, class, half_of(instr))?,
            d: b.dest(to, class)?,
            ..Args::default()
        };
        b.alu(row, args, Work::Move);
    }
    Ok(())
}

/// Bits of a `mov` type.
fn bits_of(ty: &str) -> Option<u32> {
    Some(match ty {
        "b16" | "u16" | "s16" | "f16" | "bf16" => 16,
        "b32" | "u32" | "s32" | "f32" => 32,
        "b64" | "u64" | "s64" | "f64" => 64,
        "b128" => 128,
        _ => return None,
    })
}

/// A scalar from its parts, the lowest first.
fn pack<'a>(
    b: &mut Builder<'a, '_>,
    ty: &str,
    d: &Operand<'a>,
    list: &[Operand<'a>],
) -> Result<()> {
    let row = match (bits_of(ty), list.len()) {
        (Some(16), 2) => parts::two_bytes(),
        (Some(32), 2) => parts::two_halves(),
        (Some(32), 4) => parts::four_bytes(),
        (Some(64), 2) => parts::two_words(),
        (Some(64), 4) => parts::four_halves(),
        (Some(128), 2) => parts::two_doubles(),
        (Some(128), 4) => return pack_four_words(b, d, list),
        _ => return Err(b.unsupported()),
    };
    let mut slots = [Slot::NONE; 4];
    for (index, (operand, class)) in list.iter().zip(&row.signature[1..]).enumerate() {
        slots[index] = b.source(operand, *class)?;
    }
    let args = Args {
        d: b.dest(d, row.signature[0])?,
        a: slots[0],
        b: slots[1],
        c: slots[2],
        e: slots[3],
        ..Args::default()
    };
    b.alu(row, args, Work::Move);
    Ok(())
}

fn pack_four_words<'a>(
    b: &mut Builder<'a, '_>,
    d: &Operand<'a>,
    list: &[Operand<'a>],
) -> Result<()> {
    let mut halves = [Slot::NONE; 2];
    for (half, pair) in halves.iter_mut().zip(list.chunks(2)) {
        let [low, high] = pair else {
            return Err(b.unsupported());
        };
        let args = Args {
            a: b.source(low, Class::W32)?,
            b: b.source(high, Class::W32)?,
            d: b.temporary(Class::W64),
            ..Args::default()
        };
        *half = args.d;
        b.alu(parts::two_words(), args, Work::Move);
    }
    let args = Args {
        d: b.dest(d, Class::W128)?,
        a: halves[0],
        b: halves[1],
        ..Args::default()
    };
    b.alu(parts::two_doubles(), args, Work::Move);
    Ok(())
}

/// The parts of a scalar, the lowest first; parts that nobody wants are `_`.
fn unpack<'a>(
    b: &mut Builder<'a, '_>,
    ty: &str,
    list: &[Operand<'a>],
    a: &Operand<'a>,
) -> Result<()> {
    let (row, step) = match (bits_of(ty), list.len()) {
        (Some(16), 2) => (parts::byte_of_32(), 8),
        (Some(32), 2) => (parts::half_of_32(), 16),
        (Some(32), 4) => (parts::byte_of_32(), 8),
        (Some(64), 2) => (parts::word_of_64(), 32),
        (Some(64), 4) => (parts::half_of_64(), 16),
        (Some(128), 2) => (parts::double_of_128(), 64),
        (Some(128), 4) => (parts::word_of_64(), 32),
        _ => return Err(b.unsupported()),
    };
    let source = if bits_of(ty) == Some(128) {
        b.source(a, Class::W128)?
    } else {
        b.source(a, row.signature[1])?
    };
    // A part may have the source's own register: read everything first.
    let mut copies = Vec::new();
    for (index, operand) in list.iter().enumerate() {
        if matches!(operand, Operand::Sink) {
            continue;
        }
        let mut args = Args {
            a: source,
            x: step * index as u64,
            d: b.temporary(row.signature[0]),
            ..Args::default()
        };
        if bits_of(ty) == Some(128) && list.len() == 4 {
            let half = b.temporary(Class::W64);
            let pick = Args {
                a: source,
                x: 64 * (index as u64 / 2),
                d: half,
                ..Args::default()
            };
            b.alu(parts::double_of_128(), pick, Work::Move);
            args.a = half;
            args.x = 32 * (index as u64 % 2);
        }
        copies.push((operand, args));
    }
    let single = match a {
        Operand::Name(symbol) => match b.meaning(symbol.name) {
            Some(Meaning::Register { first, .. }) => Slot(first),
            _ => Slot::NONE,
        },
        _ => Slot::NONE,
    };
    let mut later = Vec::new();
    for (operand, mut args) in copies {
        let to = b.dest(operand, row.signature[0])?;
        if to == single {
            later.push((args.d, to));
        } else {
            args.d = to;
        }
        b.alu(row, args, Work::Move);
    }
    let name = if row.signature[0] == Class::W64 {
        "b64"
    } else {
        "b32"
    };
    for (a, d) in later {
        let Some((row, _)) = alu::find("mov", &[name]) else {
            return Err(b.unsupported());
        };
        b.alu(
            row,
            Args {
                a,
                d,
                ..Args::default()
            },
            Work::Move,
        );
    }
    Ok(())
}
