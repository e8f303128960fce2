//! The state of a random number generator on a GPU: memory of the kernel's own, which lives as long
//! as the kernel is loaded.

use crate::base::Result;
use crate::emit::elemental::unsupported;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Setup;
use crate::executable::Launch;
use crate::hlo::Op;
use crate::kernel::BufId;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Ty;
use crate::shape::PrimitiveType;
use crate::target::Platform;

/// Where every generator starts, as on CPUs.
const START: i64 = 0x701_2395;

/// Emits a `rng-get-and-update-state`: the 128 bits of the state, low word first, before the
/// distance is added to it.
///
/// # Errors
/// `EMIT_UNSUPPORTED` on a CPU, whose runtime keeps the state.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let instr = request.module.instr(request.instr);
    let refused = || unsupported(instr, request.module, request.target);
    let Op::RngGetAndUpdateState { delta } = instr.op else {
        return Err(refused());
    };
    let is_pair = instr
        .shape
        .as_array()
        .is_some_and(|a| a.ty == PrimitiveType::U64 && a.element_count() == 2);
    if request.target.platform() != Platform::Cuda || !is_pair {
        return Err(refused());
    }
    let Setup { mut b, body } = Setup::new(request);
    // What has been added so far: memory starts as zeros.
    let sum = b.scratch("sum", Scalar::I64, 2, Space::Kept);
    let old = [word(&mut b, sum, 0), word(&mut b, sum, 1)];
    let out = body.outputs[0].buf;
    let state = add(&mut b, old, [START, 0]);
    write(&mut b, out, state);
    let new = add(&mut b, old, [delta, delta >> 63]);
    write(&mut b, sum, new);
    body.finish(b, Launch::SINGLE)
}

fn word(b: &mut KernelBuilder, buf: BufId, at: i64) -> ExprId {
    let at = b.index(at);
    b.load(buf, at, 1)
}

fn write(b: &mut KernelBuilder, buf: BufId, words: [ExprId; 2]) {
    for (at, word) in words.into_iter().enumerate() {
        let at = b.index(at as i64);
        b.store(buf, at, word);
    }
}

/// The sum of two numbers of 128 bits, low words first.
fn add(b: &mut KernelBuilder, [low, high]: [ExprId; 2], by: [i64; 2]) -> [ExprId; 2] {
    let [by_low, by_high] = by.map(|word| b.int(Ty::scalar(Scalar::I64), word));
    let sum = b.add(low, by_low);
    let carries = b.cmp(CmpOp::ULt, sum, by_low);
    let carry = b.cast(CastOp::ZExt, carries, Scalar::I64);
    let high = b.add(high, by_high);
    [sum, b.add(high, carry)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::emit::workitems;
    use crate::executable::KernelId;
    use crate::kernel::Buffer;

    #[test]
    fn sums_carry_into_the_high_word() {
        for (x, by) in [
            (0x701_2395, 5),
            (u128::from(u64::MAX), 1),
            (u128::from(u64::MAX) << 64 | 7, -8),
            (3, -4),
            (1 << 100, i64::MAX),
        ] {
            let mut b = KernelBuilder::new("add");
            let buf = b.buffer(Buffer {
                name: "x".to_owned(),
                elem: Scalar::I64,
                count: 2,
                space: Space::Global,
                align: 16,
                written: true,
                noalias: true,
            });
            let old = [word(&mut b, buf, 0), word(&mut b, buf, 1)];
            let new = add(&mut b, old, [by, by >> 63]);
            write(&mut b, buf, new);
            let kernel = b.finish(KernelId::from_index(0), Launch::SINGLE);
            let mut memory = [x.to_le_bytes().to_vec()];
            workitems::run(&kernel, &mut memory);
            let wanted: u128 = x.wrapping_add_signed(i128::from(by));
            assert_eq!(memory[0], wanted.to_le_bytes(), "{x:x} + {by}");
        }
    }
}
