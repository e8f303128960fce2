//! `tcgen05`: the fifth generation's tensor memory.

use crate::base::Result;
use crate::simulator::code::decode::matrix::fragment;
use crate::simulator::code::function::Builder;
use crate::simulator::code::inst::*;
use crate::simulator::ptx::Instr;
use crate::simulator::ptx::Operand;
use crate::simulator::tensor;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// `tcgen05`
pub fn tcgen05<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let words = &instr.modifiers[..];
    let operands = &instr.operands[..];
    let what = words.first().copied().unwrap_or("");
    // The blocks of a pair take and give back columns in step, each of its own tensor memory.
    let grouped = words.contains(&"cta_group::1") || words.contains(&"cta_group::2");
    let op = match (what, operands) {
        ("alloc", [address, columns]) if grouped => {
            let address = b.address(address, Space::Shared)?;
            Tensor5::Allocate(address, b.source(columns, Class::W32)?)
        }
        ("dealloc", [address, columns]) if grouped => {
            let address = b.source(address, Class::W32)?;
            Tensor5::Deallocate(address, b.source(columns, Class::W32)?)
        }
        ("relinquish_alloc_permit", []) if grouped => return nothing(b),
        ("wait::ld" | "wait::st", []) => return nothing(b),
        ("fence::before_thread_sync" | "fence::after_thread_sync", []) => return nothing(b),
        ("ld" | "st", operands) => moves(b, words, operands)?,
        ("cp", [address, descriptor]) => {
            let op = tensor::Tcgen05Copy::parse(words)?;
            let address = b.address(address, Space::Constant)?;
            Tensor5::Copy(op, address, b.source(descriptor, Class::W64)?)
        }
        ("mma", operands) => {
            let op = tensor::Tcgen05Mma::parse(words)?;
            Tensor5::Mma(mma(b, op, operands)?)
        }
        ("commit", [address, mask @ ..]) if grouped => {
            let address = b.address(address, Space::Shared)?;
            let multicast = match (words.contains(&"multicast::cluster"), mask) {
                (false, []) => Slot::NONE,
                (true, [mask]) => b.source(mask, Class::W32)?,
                _ => return Err(b.unsupported()),
            };
            Tensor5::Commit(address, multicast)
        }
        _ => return Err(b.unsupported()),
    };
    let work = if what == "mma" {
        Work::Tensor
    } else {
        Work::Async
    };
    b.emit(Op::Tensor5(Box::new(op)), work);
    Ok(())
}

/// What is done when it is issued needs no waiting.
fn nothing(b: &mut Builder<'_, '_>) -> Result<()> {
    b.emit(Op::Nop, Work::Async);
    Ok(())
}

fn moves<'a>(b: &mut Builder<'a, '_>, words: &[&str], operands: &[Operand<'a>]) -> Result<Tensor5> {
    let op = tensor::Tcgen05Move::parse(words)?;
    let (address, split, data) = match (op.is_load(), op.has_split(), operands) {
        (true, false, [data, address]) => (address, None, data),
        (true, true, [data, address, split]) => (address, Some(split), data),
        (false, false, [address, data]) => (address, None, data),
        (false, true, [address, split, data]) => (address, Some(split), data),
        _ => return Err(b.unsupported()),
    };
    let split = match split {
        Some(split) => b.integer(Some(split))? as u32,
        None => 0,
    };
    let address = b.address(address, Space::Constant)?;
    let data = fragment(b, data, op.words(), op.is_load())?;
    Ok(Tensor5::Move(op, address, split, data))
}

fn mma<'a>(
    b: &mut Builder<'a, '_>,
    op: tensor::Tcgen05Mma,
    operands: &[Operand<'a>],
) -> Result<Tensor5Mma> {
    let [d, a, descriptor, instruction, rest @ ..] = operands else {
        return Err(b.unsupported());
    };
    let (scales, rest) = match rest {
        [one, two, rest @ ..] if op.is_block_scaled() => (Some([one, two]), rest),
        rest => (None, rest),
    };
    let (disabled, rest) = match rest {
        [Operand::Vector(list), rest @ ..] if scales.is_none() => (&list[..], rest),
        rest => (&[][..], rest),
    };
    let lanes = if op.is_pair() { 8 } else { 4 };
    if op.is_block_scaled() != scales.is_some() || (!disabled.is_empty() && disabled.len() != lanes)
    {
        return Err(b.unsupported());
    }
    let (enable, scale) = match rest {
        [enable] => (enable, 0),
        [enable, scale] if op.has_scale_d() => (enable, b.integer(Some(scale))? as u32),
        _ => return Err(b.unsupported()),
    };
    let (enable, negated) = b.predicate(enable)?;
    let mut found = Tensor5Mma {
        op,
        d: b.address(d, Space::Constant)?,
        a_tensor: None,
        a: Slot::NONE,
        b: b.source(descriptor, Class::W64)?,
        instruction: b.source(instruction, Class::W32)?,
        scales: None,
        disabled: Vec::new(),
        enable,
        negated,
        scale,
    };
    if matches!(a, Operand::Address(_)) {
        found.a_tensor = Some(b.address(a, Space::Constant)?);
    } else {
        found.a = b.source(a, Class::W64)?;
    }
    if let Some([one, two]) = scales {
        let one = b.address(one, Space::Constant)?;
        found.scales = Some([one, b.address(two, Space::Constant)?]);
    }
    for element in disabled {
        found.disabled.push(b.source(element, Class::W32)?);
    }
    Ok(found)
}
