//! Matrix instructions.

use crate::base::Result;
use crate::simulator::code::decode::memory::space_of;
use crate::simulator::code::function::Builder;
use crate::simulator::code::inst::*;
use crate::simulator::ptx::Instr;
use crate::simulator::ptx::Operand;
use crate::simulator::tensor;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// The registers of a fragment, which together must have `words` words.
pub fn fragment<'a>(
    b: &mut Builder<'a, '_>,
    operand: &Operand<'a>,
    words: usize,
    is_dest: bool,
) -> Result<Vec<Reg>> {
    let mut list = Vec::new();
    let mut count = 0;
    for element in b.elements(operand) {
        let reg = match (is_dest, &element) {
            (true, element) => b.any_dest(element)?,
            (false, Operand::F64(_)) => b.any_source(&element, Class::W64)?,
            (false, element) => b.any_source(element, Class::W32)?,
        };
        count += match reg.class {
            Class::W32 => 1,
            Class::W64 => 2,
            _ => return Err(b.bad("a fragment has a register of the wrong width")),
        };
        list.push(reg);
    }
    if count != words {
        let what = format!("a fragment has {count} words, wanted {words}");
        return Err(b.bad(&what));
    }
    Ok(list)
}

fn flops(b: &mut Builder<'_, '_>, at: usize, flops: u64) {
    b.code[at].flops = u32::try_from(flops).unwrap_or(u32::MAX);
}

/// `mma`, dense and sparse, with and without scales.
pub fn mma<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let mma = tensor::Mma::parse(&instr.modifiers)?;
    let words = mma.words();
    let [d, a, bb, c, rest @ ..] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let mut rest = rest;
    let (mut metadata, mut selector) = (Slot::NONE, 0);
    if mma.is_sparse() {
        let [meta, which, more @ ..] = rest else {
            return Err(b.unsupported());
        };
        metadata = b.source(meta, Class::W32)?;
        selector = b.integer(Some(which))? as u32;
        rest = more;
    }
    let mut scales = None;
    if mma.is_block_scaled() {
        let [a_data, a_pick, b_data, b_pick] = rest else {
            return Err(b.unsupported());
        };
        let one = scale(b, a_data, a_pick)?;
        let two = scale(b, b_data, b_pick)?;
        scales = Some([one, two]);
        rest = &[];
    }
    if !rest.is_empty() {
        return Err(b.unsupported());
    }
    let inst = MmaInst {
        a: fragment(b, a, words.a, false)?,
        b: fragment(b, bb, words.b, false)?,
        c: fragment(b, c, words.c, false)?,
        d: fragment(b, d, words.d, true)?,
        metadata,
        selector,
        scales,
        mma,
    };
    let count = inst.mma.flops();
    let at = b.emit(Op::Mma(Box::new(inst)), Work::Tensor);
    flops(b, at, count);
    Ok(())
}

/// The scale factors of one side and which of them count.
fn scale<'a>(
    b: &mut Builder<'a, '_>,
    data: &Operand<'a>,
    pick: &Operand<'a>,
) -> Result<(Slot, Slot, Slot)> {
    let Operand::Vector(pick) = pick else {
        return Err(b.unsupported());
    };
    let [byte, thread] = &pick[..] else {
        return Err(b.unsupported());
    };
    Ok((
        b.source(data, Class::W32)?,
        b.source(byte, Class::W32)?,
        b.source(thread, Class::W32)?,
    ))
}

/// `ldmatrix`, `stmatrix` and `movmatrix`
pub fn move_matrix<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    if instr.opcode == "movmatrix" {
        let (["sync", "aligned", "m8n8", "trans", "b16"], [d, a]) =
            (&instr.modifiers[..], &instr.operands[..])
        else {
            return Err(b.unsupported());
        };
        let a = b.source(a, Class::W32)?;
        let d = b.dest(d, Class::W32)?;
        b.emit(Op::MoveMatrix(d, a), Work::Shuffle);
        return Ok(());
    }
    let op = tensor::MatrixMove::parse(instr.opcode, &instr.modifiers)?;
    let [x, y] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let (data, address) = if op.is_load() { (x, y) } else { (y, x) };
    let address = b.address(address, space(instr))?;
    let inst = MatrixMoveInst {
        data: fragment(b, data, op.words(), op.is_load())?,
        address,
        op,
    };
    b.emit(Op::MatrixMove(Box::new(inst)), Work::Shared);
    Ok(())
}

fn space(instr: &Instr<'_>) -> Space {
    let found = instr.modifiers.iter().find_map(|word| space_of(word));
    found.unwrap_or(Space::Generic)
}

/// `wmma.load`, `wmma.store` and `wmma.mma`
pub fn wmma<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    let op = tensor::Wmma::parse(&instr.modifiers)?;
    let mut inst = WmmaInst {
        address: None,
        stride: Slot::NONE,
        d: Vec::new(),
        a: Vec::new(),
        b: Vec::new(),
        c: Vec::new(),
        op,
    };
    match (&op, &instr.operands[..]) {
        (tensor::Wmma::Load(m), [d, address, stride @ ..]) if stride.len() < 2 => {
            inst.d = fragment(b, d, m.words(), true)?;
            wmma_memory(b, instr, inst, address, stride, m.default_stride())?;
        }
        (tensor::Wmma::Store(m), [address, d, stride @ ..]) if stride.len() < 2 => {
            inst.a = fragment(b, d, m.words(), false)?;
            wmma_memory(b, instr, inst, address, stride, m.default_stride())?;
        }
        (tensor::Wmma::Mma(m), [d, a, bb, c]) => {
            let words = m.words();
            inst.a = fragment(b, a, words.a, false)?;
            inst.b = fragment(b, bb, words.b, false)?;
            inst.c = fragment(b, c, words.c, false)?;
            inst.d = fragment(b, d, words.d, true)?;
            let count = m.flops();
            let at = b.emit(Op::Wmma(Box::new(inst)), Work::Tensor);
            flops(b, at, count);
        }
        _ => return Err(b.unsupported()),
    }
    Ok(())
}

/// The memory side of `wmma.load` and `wmma.store`, and the instruction.
fn wmma_memory<'a>(
    b: &mut Builder<'a, '_>,
    instr: &Instr<'a>,
    mut inst: WmmaInst,
    address: &Operand<'a>,
    stride: &[Operand<'a>],
    default_stride: u32,
) -> Result<()> {
    let space = space(instr);
    inst.address = Some(b.address(address, space)?);
    inst.stride = match stride {
        [stride] => b.source(stride, Class::W32)?,
        _ => b.pool.slot(Class::W32, u64::from(default_stride)),
    };
    let work = if space == Space::Shared {
        Work::Shared
    } else {
        Work::Global
    };
    b.emit(Op::Wmma(Box::new(inst)), work);
    Ok(())
}

/// A constant 1 or -1, or 0 or 1.
fn flag<'a>(b: &Builder<'a, '_>, operand: Option<&Operand<'a>>, on: i64) -> Result<bool> {
    Ok(b.integer(operand)? == on)
}

/// `wgmma`
pub fn wgmma<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    match &instr.modifiers[..] {
        ["fence", "sync", "aligned"] if instr.operands.is_empty() => {
            b.emit(Op::WgmmaFence, Work::Async);
            return Ok(());
        }
        ["commit_group", "sync", "aligned"] if instr.operands.is_empty() => {
            b.emit(Op::WgmmaCommit, Work::Async);
            return Ok(());
        }
        ["wait_group", "sync", "aligned"] => {
            let count = b.integer(instr.operands.first())?;
            let count = count.clamp(0, i64::from(u32::MAX)) as u32;
            b.emit(Op::WgmmaWait(count), Work::Async);
            return Ok(());
        }
        _ => {}
    }
    let op = tensor::Wgmma::parse(&instr.modifiers)?;
    let words = op.words();
    let [d, a, descriptor, rest @ ..] = &instr.operands[..] else {
        return Err(b.unsupported());
    };
    let from_registers = matches!(a, Operand::Vector(_));
    let mut inst = WgmmaInst {
        d: fragment(b, d, words.d, true)?,
        a: Vec::new(),
        a_descriptor: Slot::NONE,
        b_descriptor: b.source(descriptor, Class::W64)?,
        scale_d: Slot::NONE,
        scale_d_negated: false,
        scale_d_constant: true,
        negate_a: false,
        negate_b: false,
        transpose_a: false,
        transpose_b: false,
        metadata: Slot::NONE,
        selector: 0,
        op,
    };
    if from_registers {
        inst.a = fragment(b, a, words.a, false)?;
    } else {
        inst.a_descriptor = b.source(a, Class::W64)?;
    }
    let mut rest = rest.iter();
    if inst.op.is_sparse() {
        let Some(metadata) = rest.next() else {
            return Err(b.unsupported());
        };
        inst.metadata = b.source(metadata, Class::W32)?;
        inst.selector = b.integer(rest.next())? as u32;
    }
    match rest.next() {
        Some(Operand::Int(value)) => inst.scale_d_constant = *value != 0,
        Some(operand) => (inst.scale_d, inst.scale_d_negated) = b.predicate(operand)?,
        None => return Err(b.unsupported()),
    }
    if inst.op.has_negate() {
        inst.negate_a = flag(b, rest.next(), -1)?;
        inst.negate_b = flag(b, rest.next(), -1)?;
    }
    if inst.op.has_transpose() {
        if !from_registers {
            inst.transpose_a = flag(b, rest.next(), 1)?;
        }
        inst.transpose_b = flag(b, rest.next(), 1)?;
    }
    if rest.next().is_some() {
        return Err(b.unsupported());
    }
    // Each of the four warps makes a quarter.
    let count = inst.op.flops() / 4;
    let at = b.emit(Op::Wgmma(Box::new(inst)), Work::Tensor);
    flops(b, at, count);
    Ok(())
}
