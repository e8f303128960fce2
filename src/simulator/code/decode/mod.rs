//! One instruction of the text to decoded instructions, by family.

pub mod arith;
pub mod memory;
pub mod control;
pub mod collective;
pub mod matrix;
pub mod transfer;
pub mod tensor5;

use crate::base::Result;
use crate::simulator::code::function::Builder;
use crate::simulator::ptx::Instr;

/// Decodes `instr` and appends what it is made of.
///
/// # Errors
/// When it is not known or its operands do not fit.
pub fn instruction<'a>(b: &mut Builder<'a, '_>, instr: &Instr<'a>) -> Result<()> {
    match instr.opcode {
        "mov" => arith::mov(b, instr),
        "setp" => arith::setp(b, instr),
        "set" => arith::set(b, instr),
        "selp" => arith::selp(b, instr),
        "cvt" => arith::cvt(b, instr),
        "cvta" => memory::cvta(b, instr),
        "lop3" => arith::lop3(b, instr),
        "testp" => arith::testp(b, instr),
        "ld" | "ldu" => memory::load(b, instr),
        "st" => memory::store(b, instr),
        "atom" | "red" => memory::atomic(b, instr),
        "multimem" => memory::multimem(b, instr),
        "prefetch" | "prefetchu" | "applypriority" | "discard" => memory::hint(b, instr),
        "createpolicy" => memory::policy(b, instr),
        "isspacep" => memory::isspacep(b, instr),
        "mapa" | "getctarank" => memory::mapa(b, instr),
        "bra" | "brx" | "ret" | "exit" | "trap" | "brkpt" => control::branch(b, instr),
        "call" => control::call(b, instr),
        "alloca" | "stacksave" | "stackrestore" => control::stack(b, instr),
        "bar" | "barrier" => control::barrier(b, instr),
        "fence" | "membar" => control::fence(b, instr),
        "nanosleep" | "pmevent" | "setmaxnreg" | "griddepcontrol" => control::nothing(b, instr),
        "shfl" | "vote" | "match" | "redux" | "elect" | "activemask" => {
            collective::collective(b, instr)
        }
        "mma" => matrix::mma(b, instr),
        "ldmatrix" | "stmatrix" | "movmatrix" => matrix::move_matrix(b, instr),
        "wmma" => matrix::wmma(b, instr),
        "wgmma" => matrix::wgmma(b, instr),
        "cp" => transfer::copy(b, instr),
        "mbarrier" => transfer::mbarrier(b, instr),
        "tcgen05" => tensor5::tcgen05(b, instr),
        "tensormap" => transfer::tensormap(b, instr),
        _ => arith::plain(b, instr),
    }
}
