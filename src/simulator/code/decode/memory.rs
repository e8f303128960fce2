//! Loads, stores, atomics, and what is done with addresses.

use crate::base::Result;
use crate::simulator::code::function::Builder;
use crate::simulator::code::inst::*;
use crate::simulator::code::operand::Meaning;
use crate::simulator::memory::window;
use crate::simulator::ptx::Instr;
use crate::simulator::ptx::Operand;
use crate::simulator::warp::alu;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// The space of a modifier.
pub fn space_of(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "local" => Space::Local,
        "const" => Space::Constant,
        "param" | "param::entry" | "param::func" => Space::Param,
        "generic" => Space::Generic,
        _ => return None,
    })
}

/// Modifiers that only steer caches.
fn is_hint(word: &str) -> bool {
    matches!(
        word,
        "ca" | "cg"
            | "cs"
            | "lu"
            | "cv"
            | "wb"
            | "wt"
            | "nc"
            | "mmio"
            | "unified"
            | "L2::cache_hint"
    ) || word.starts_with("L1::")
        || word.starts_with("L2::")
        || word.starts_with("level::")
}

fn is_scope(word: &str) -> bool {
    matches!(word, "cta" | "cluster" | "gpu" | "sys")
}

/// Bytes and sign of a memory type.
fn type_of(word: &str) -> Option<(u32, bool)> {
    Some(match word {
        "b8" | "u8" => (1, false),
        "s8" => (1, true),
        "b16" | "u16" | "f16" | "bf16" => (2, false),
        "s16" => (2, true),
        "b32" | "u32" | "f32" | "f16x2" | "bf16x2" => (4, false),
        "s32" => (4, true),
        "b64" | "u64" | "f64" => (8, false),
        "s64" => (8, true),
        "b128" => (16, false),
        _ => return None,
    })
}

/// What the modifiers of a load or store say.
struct Words {
    space: Space,
    order: Order,
    vector: usize,
    bytes: u32,
    signed: bool,
    is_async: bool,
    is_bulk: bool,
}

fn words(b: &Builder<'_, '_>, instr: &Instr<'_>) -> Result<Words> {
    let mut found = Words {
        space: Space::Generic,
        order: Order::Weak,
        vector: 1,
        bytes: 0,
        signed: false,
        is_async: false,
        is_bulk: false,
    };
    for &word in &instr.modifiers {
        if let Some(space) = space_of(word) {
            found.space = space;
        } else if let Some((bytes, signed)) = type_of(word) {
            (found.bytes, found.signed) = (bytes, signed);
        } else {
            match word {
                "weak" => {}
                "volatile" | "relaxed" => found.order = Order::Relaxed,
                "acquire" => found.order = Order::Acquire,
                "release" => found.order = Order::Release,
                "v2" => found.vector = 2,
                "v4" => found.vector = 4,
                "v8" => found.vector = 8,
                "async" => found.is_async = true,
                "bulk" => found.is_bulk = true,
                _ if is_hint(word) || is_scope(word) || word.starts_with("mbarrier") => {}
                _ => return Err(b.unsupported()),
            }
        }
    }
    if found.bytes == 0 && !found.is_bulk || found.bytes * found.vector as u32 > 32 {
        return Err(b.unsupported());
    }
    Ok(found)
}

fn work_of(space: Space) -> Work {
    match space {
        Space::Shared => Work::Shared,
        Space::Local => Work::Local,
        Space::Constant | Space::Param => Work::Constant,
        Space::Generic | Space::Global => Work::Global,
    }
}

/// The registers of a load or store; they may be wider than the type, not narrower.
fn data<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    words: &Words,
    is_load: bool,
) -> Result<Vec<Reg>> {
    let elements = b.elements(operand);
    if elements.len() != words.vector {
        return Err(b.bad("the number of registers is not that of the vector"));
    }
    let class = match words.bytes {
        8 => Class::W64,
        16 => Class::W128,
        _ => Class::W32,
    };
    let mut list = Vec::with_capacity(elements.len());
    for element in &elements {
        let reg = match (element, is_load) {
            (Operand::Sink, true) => Reg::NONE,
            // Of 32 bytes a store may leave elements out.
            (Operand::Sink, false) if words.vector as u32 * words.bytes == 32 => Reg::NONE,
            (element, true) => b.any_dest(element)?,
            (element, false) => b.any_source(element, class)?,
        };
        let narrow = match reg.class {
            Class::Pred => true,
            Class::W32 => words.bytes > 4 && reg.slot.is_some(),
            Class::W64 => words.bytes > 8,
            Class::W128 => words.bytes != 16,
        };
        if narrow {
            return Err(b.bad("a register does not fit the type"));
        }
        list.push(reg);
    }
    Ok(list)
}

/// `ld` and `ldu`
pub fn load<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let words = words(b, instr)?;
    let [d, address, ..] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    if words.is_async || words.is_bulk || words.bytes == 0 {
        return Err(b.unsupported());
    }
    let address = b.address(address, words.space)?;
    let access = Access {
        address,
        bytes: words.bytes,
        signed: words.signed,
        data: data(b, d, &words, true)?,
        order: words.order,
    };
    let work = work_of(address.space);
    b.emit(Op::Load(Box::new(access)), work);
    Ok(())
}

/// `st`, `st.async` and `st.bulk`
pub fn store<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let words = words(b, instr)?;
    if words.is_bulk {
        let [address, bytes, value] = &instr.operands[..] else {
            return Err(b.unsupported());
        };
        if b.integer(Some(value))? != 0 {
            return Err(b.bad("only zero can be stored in bulk"));
        }
        let address = b.address(address, Space::Shared)?;
        let bytes = b.any_source(bytes, Class::W64)?;
        if bytes.class != Class::W64 {
            return Err(b.bad("the size is not a 64-bit register"));
        }
        b.emit(Op::StoreBulk(Box::new(address), bytes.slot), Work::Shared);
        return Ok(());
    }
    let [address, value, rest @ ..] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let address = b.address(address, words.space)?;
    if matches!(address.space, Space::Constant | Space::Param) {
        return Err(b.bad("this space cannot be written"));
    }
    let access = Access {
        address,
        bytes: words.bytes,
        signed: words.signed,
        data: data(b, value, &words, false)?,
        order: words.order,
    };
    let work = work_of(address.space);
    if words.is_async {
        let [bar] = rest else {
            return Err(b.unsupported());
        };
        let bar = b.address(bar, Space::Shared)?;
        b.emit(
            Op::StoreAsync(Box::new(access), Box::new(bar), None),
            Work::Async,
        );
        return Ok(());
    }
    b.emit(Op::Store(Box::new(access)), work);
    Ok(())
}

/// The operation of a modifier.
pub fn atomic_op(word: &str) -> Option<AtomicOp> {
    Some(match word {
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exch,
        "cas" => AtomicOp::Cas,
        "add" => AtomicOp::Add,
        "inc" => AtomicOp::Inc,
        "dec" => AtomicOp::Dec,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        _ => return None,
    })
}

/// The type of a modifier.
pub fn atomic_type(word: &str) -> Option<AtomicType> {
    Some(match word {
        "b16" => AtomicType::B16,
        "b32" => AtomicType::B32,
        "b64" => AtomicType::B64,
        "b128" => AtomicType::B128,
        "u32" => AtomicType::U32,
        "u64" => AtomicType::U64,
        "s32" => AtomicType::S32,
        "s64" => AtomicType::S64,
        "f16" => AtomicType::F16,
        "f16x2" => AtomicType::F16x2,
        "bf16" => AtomicType::Bf16,
        "bf16x2" => AtomicType::Bf16x2,
        "f32" => AtomicType::F32,
        "f64" => AtomicType::F64,
        _ => return None,
    })
}

/// Whether the language has that operation on that type.
pub fn atomic_fits(op: AtomicOp, ty: AtomicType) -> bool {
    use AtomicOp::*;
    use AtomicType::*;
    match op {
        And | Or | Xor => matches!(ty, B32 | B64),
        Exch => matches!(ty, B32 | B64 | B128),
        Cas => matches!(ty, B16 | B32 | B64 | B128),
        Inc | Dec => ty == U32,
        Add => !matches!(ty, B16 | B32 | B64 | B128),
        Min | Max => matches!(ty, U32 | U64 | S32 | S64 | F16 | F16x2 | Bf16 | Bf16x2),
    }
}

/// `atom` and `red`
pub fn atomic<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let mut space = Space::Generic;
    let mut order = Order::Relaxed;
    let (mut op, mut ty) = (None, None);
    let mut vector = 1usize;
    let mut ftz = true;
    let mut is_async = false;
    for &word in &instr.modifiers {
        if let Some(found) = space_of(word) {
            space = found;
        } else if let Some(found) = atomic_op(word) {
            op = Some(found);
        } else if let Some(found) = atomic_type(word) {
            ty = Some(found);
        } else {
            match word {
                "relaxed" => order = Order::Relaxed,
                "acquire" => order = Order::Acquire,
                "release" => order = Order::Release,
                "acq_rel" => order = Order::Both,
                "noftz" => ftz = false,
                "v2" => vector = 2,
                "v4" => vector = 4,
                "v8" => vector = 8,
                "async" => is_async = true,
                _ if is_hint(word) || is_scope(word) || word.starts_with("mbarrier") => {}
                _ => return Err(b.unsupported()),
            }
        }
    }
    let (Some(op), Some(ty)) = (op, ty) else {
        return Err(b.unsupported());
    };
    if !atomic_fits(op, ty) || ty.bytes() * vector as u32 > 32 {
        return Err(b.unsupported());
    }
    // Flushing is for f32 in global memory only, and only for plain addition.
    let ftz = ftz && ty == AtomicType::F32 && matches!(space, Space::Global | Space::Generic);
    let class = match ty.bytes() {
        16 => Class::W128,
        8 => Class::W64,
        _ => Class::W32,
    };
    let returns = instr.opcode == "atom";
    let mut operands = &instr.operands[..];
    let mut d = Vec::new();
    if returns {
        let Some((first, rest)) = operands.split_first() else {
            return Err(b.unsupported());
        };
        for element in b.elements(first) {
            let slot = match element {
                Operand::Sink => Slot::NONE,
                element => b.dest(&element, class)?,
            };
            d.push(Reg { slot, class });
        }
        operands = rest;
    }
    let [address, value, rest @ ..] = operands else {
        return Err(b.unsupported());
    };
    let address = b.address(address, space)?;
    if matches!(address.space, Space::Constant | Space::Param | Space::Local) {
        return Err(b.bad("this space has no atomics"));
    }
    let half = match ty {
        AtomicType::F16 | AtomicType::F16x2 => Some("f16"),
        AtomicType::Bf16 | AtomicType::Bf16x2 => Some("bf16"),
        _ => None,
    };
    let mut values = Vec::new();
    for element in b.elements(value) {
        let slot = b.source_of(&element, class, half)?;
        values.push(Reg { slot, class });
    }
    if values.len() != vector || (returns && d.len() != vector) {
        return Err(b.bad("the number of registers is not that of the vector"));
    }
    let mut c = Reg::NONE;
    if op == AtomicOp::Cas {
        let Some(new) = rest.first() else {
            return Err(b.unsupported());
        };
        c = Reg {
            slot: b.source(new, class)?,
            class,
        };
    }
    if is_async {
        let Some(bar) = rest.first() else {
            return Err(b.unsupported());
        };
        let bar = b.address(bar, Space::Shared)?;
        let access = Access {
            address,
            bytes: ty.bytes(),
            signed: false,
            data: values,
            order: Order::Relaxed,
        };
        b.emit(
            Op::StoreAsync(Box::new(access), Box::new(bar), Some((op, ty))),
            Work::Async,
        );
        return Ok(());
    }
    let atomic = Atomic {
        address,
        op,
        ty,
        ftz,
        d,
        b: values,
        c,
        order,
    };
    b.emit(Op::Atomic(Box::new(atomic)), Work::Atomic);
    Ok(())
}

/// `multimem.ld_reduce`, `multimem.st` and `multimem.red`.
///
/// Devices here make no addresses that stand for several places, so each stands for one: what is
/// loaded is reduced by itself, stores and reductions go to that place.
pub fn multimem<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let [what, words @ ..] = &instr.modifiers[..] else {
        return Err(b.unsupported());
    };
    let is_op = |w: &&str| matches!(*w, "add" | "min" | "max" | "and" | "or" | "xor");
    let plain = |opcode, drops: bool| Instr {
        opcode,
        modifiers: words
            .iter()
            .copied()
            .filter(|w| !drops || !(is_op(w) || w.starts_with("acc::")))
            .map(|w| match w {
                "e4m3" | "e5m2" => "b8",
                "e4m3x2" | "e5m2x2" => "b16",
                "e4m3x4" | "e5m2x4" => "b32",
                w => w,
            })
            .collect(),
        ..instr.clone()
    };
    match *what {
        "ld_reduce" if words.iter().any(is_op) => load(b, &plain("ld", true)),
        "st" => store(b, &plain("st", false)),
        "red" if words.iter().any(is_op) => atomic(b, &plain("red", false)),
        _ => Err(b.unsupported()),
    }
}

/// `prefetch` and other hints about addresses: nothing to do, but the operands must be right.
pub fn hint<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    for &word in &instr.modifiers {
        let known = space_of(word).is_some()
            || matches!(word, "L1" | "L2" | "tensormap" | "uniform")
            || word.starts_with("L2::")
            || word.starts_with("L1::");
        if !known {
            return Err(b.unsupported());
        }
    }
    if let Some(operand) = instr.operands.first() {
        b.address(operand, Space::Generic)?;
    }
    b.emit(Op::Nop, Work::Move);
    Ok(())
}

/// `createpolicy`: an opaque number that nobody looks at.
pub fn policy<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    if !matches!(
        instr.modifiers.first(),
        Some(&("fractional" | "range" | "cvt"))
    ) {
        return Err(b.unsupported());
    }
    let Some(d) = instr.operands.first() else {
        return Err(b.unsupported());
    };
    let d = b.dest(d, Class::W64)?;
    b.emit(Op::Special(Special::Zero, d, true), Work::Move);
    Ok(())
}

/// `cvta` and `cvta.to`
pub fn cvta<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let (to, space, class) = match &instr.modifiers[..] {
        ["to", space, "u64"] => (true, space, Class::W64),
        ["to", space, "u32"] => (true, space, Class::W32),
        [space, "u64"] => (false, space, Class::W64),
        [space, "u32"] => (false, space, Class::W32),
        _ => return Err(b.unsupported()),
    };
    let [d, a] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let Some(space) = space_of(space) else {
        return Err(b.unsupported());
    };
    // A variable of function scope stands for its address within its own space.
    let own = match a {
        Operand::Name(s) | Operand::Sum(s, _) => b.meaning(s.name),
        _ => None,
    };
    let window = match (space, own) {
        (Space::Shared, _) => window::SHARED,
        (Space::Local, _) | (Space::Param, Some(Meaning::Frame(_))) => window::LOCAL,
        _ => 0,
    };
    if class == Class::W32 && window != 0 {
        return Err(b.bad("generic addresses have 64 bits"));
    }
    let d = b.dest(d, class)?;
    let a = b.source(a, class)?;
    let row = alu::find(
        if class == Class::W64 { "add" } else { "mov" },
        if class == Class::W64 {
            &["u64"]
        } else {
            &["u32"]
        },
    );
    let Some((row, _)) = row else {
        return Err(b.unsupported());
    };
    let amount = if to { window.wrapping_neg() } else { window };
    let other = b.pool.slot(class, amount);
    let args = Args {
        d,
        a,
        b: other,
        ..Args::default()
    };
    b.alu(row, args, Work::Integer);
    Ok(())
}

/// `isspacep`
pub fn isspacep<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let ([space], [p, a]) = (&instr.modifiers[..], &instr.operands[..]) else {
        return Err(b.unsupported());
    };
    let Some(space) = space_of(space) else {
        return Err(b.unsupported());
    };
    let p = b.dest(p, Class::Pred)?;
    let a = b.source(a, Class::W64)?;
    b.emit(Op::IsSpace(p, a, space), Work::Integer);
    Ok(())
}

/// `mapa` and `getctarank`
pub fn mapa<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let (generic, class) = match &instr.modifiers[..] {
        ["shared::cluster", "u32"] => (false, Class::W32),
        ["shared::cluster", "u64"] => (false, Class::W64),
        ["u64"] => (true, Class::W64),
        _ => return Err(b.unsupported()),
    };
    let wide = class == Class::W64;
    match (instr.opcode, &instr.operands[..]) {
        ("mapa", [d, a, rank]) => {
            let a = b.source(a, class)?;
            let rank = b.source(rank, Class::W32)?;
            let d = b.dest(d, class)?;
            b.emit(Op::MapAddress(d, a, rank, generic, wide), Work::Integer);
        }
        ("getctarank", [d, a]) => {
            let a = b.source(a, class)?;
            let d = b.dest(d, Class::W32)?;
            b.emit(Op::GetRank(d, a, generic, wide), Work::Integer);
        }
        _ => return Err(b.unsupported()),
    }
    Ok(())
}
