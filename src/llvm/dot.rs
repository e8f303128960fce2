//! Sums of products of small integers: one instruction where the machine has it for these types and
//! that many lanes, else products in 32 bits.

use llvm_sys::LLVMOpcode;

use crate::kernel::DotKind;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::llvm::ir::Val;
use crate::llvm::lower::Lower;
use crate::llvm::session::Isa;

impl Lower<'_> {
    /// The products of `a` and `b`, those of neighbours added to each lane of `c`.
    pub(super) fn dot(&self, kind: DotKind, [a, b, c]: [Val; 3], lanes: u16) -> Val {
        let name = match kind {
            DotKind::Words => self.word_dot(lanes),
            DotKind::Bytes | DotKind::MixedBytes => self.byte_dot(kind, lanes),
        };
        match (name, kind) {
            (Some(name), DotKind::Words) => {
                let products = self.ir.intrinsic(name, &[], &[a, b]);
                self.ir.add(products, c)
            }
            (Some(name), _) if self.machine.isa == Isa::AArch64 => {
                let types = [self.ir.type_of(c), self.ir.type_of(a)];
                self.ir.intrinsic(name, &types, &[c, a, b])
            }
            (Some(name), _) => self.ir.intrinsic(name, &[], &[c, a, b]),
            (None, _) => self.dot_in_32_bits(kind, [a, b, c], lanes),
        }
    }

    /// LLVM's name of the instruction that adds products of words in pairs.
    fn word_dot(&self, lanes: u16) -> Option<&'static str> {
        match lanes {
            4 if self.machine.word_dots >= 16 => Some("llvm.x86.sse2.pmadd.wd"),
            8 if self.machine.word_dots >= 32 => Some("llvm.x86.avx2.pmadd.wd"),
            16 if self.machine.word_dots >= 64 => Some("llvm.x86.avx512.pmaddw.d.512"),
            _ => None,
        }
    }

    /// LLVM's name of the instruction that adds products of bytes to sums.
    fn byte_dot(&self, kind: DotKind, lanes: u16) -> Option<&'static str> {
        let has = self.machine.byte_dots?;
        if u32::from(lanes) * 4 > has.vector_bytes || has.signed != (kind == DotKind::Bytes) {
            return None;
        }
        match (self.machine.isa, has.signed, lanes) {
            (Isa::X86, false, 4) => Some("llvm.x86.avx512.vpdpbusd.128"),
            (Isa::X86, false, 8) => Some("llvm.x86.avx512.vpdpbusd.256"),
            (Isa::X86, false, 16) => Some("llvm.x86.avx512.vpdpbusd.512"),
            (Isa::X86, true, 4) => Some("llvm.x86.avx2.vpdpbssd.128"),
            (Isa::X86, true, 8) => Some("llvm.x86.avx2.vpdpbssd.256"),
            (Isa::AArch64, true, 4) => Some("llvm.aarch64.neon.sdot"),
            _ => None,
        }
    }

    fn dot_in_32_bits(&self, kind: DotKind, [a, b, c]: [Val; 3], lanes: u16) -> Val {
        let narrow = kind.operand(Ty::vector(Scalar::I32, lanes));
        let wide = self.ir.int(32, narrow.lanes);
        let extend_a = match kind {
            DotKind::Bytes | DotKind::Words => LLVMOpcode::LLVMSExt,
            DotKind::MixedBytes => LLVMOpcode::LLVMZExt,
        };
        let a = self.ir.cast(extend_a, a, wide);
        let b = self.ir.cast(LLVMOpcode::LLVMSExt, b, wide);
        let products = self.ir.bin(LLVMOpcode::LLVMMul, a, b);
        let group = narrow.lanes / lanes;
        (0..group).fold(c, |sum, first| {
            let picked: Vec<u16> = (0..lanes).map(|lane| group * lane + first).collect();
            let part = match picked.as_slice() {
                [lane] => self.ir.extract(products, *lane),
                picked => self.ir.shuffle(products, products, picked),
            };
            self.ir.add(sum, part)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::base::Id;
    use crate::executable::KernelId;
    use crate::executable::Launch;
    use crate::kernel::Buffer;
    use crate::kernel::DotKind;
    use crate::kernel::Kernel;
    use crate::kernel::KernelBuilder;
    use crate::kernel::Scalar;
    use crate::kernel::Space;
    use crate::kernel::Ty;
    use crate::llvm::testing;
    use crate::target::DeviceSpec;
    use crate::target::Target;

    /// Adds one dot of that many lanes to what the result holds.
    fn kernel(kind: DotKind, lanes: u16) -> Kernel {
        let mut b = KernelBuilder::new("dot");
        let mut buffer = |name: &str, elem: Scalar, count: u16| {
            b.buffer(Buffer {
                name: name.to_owned(),
                elem,
                count: u64::from(count),
                space: Space::Global,
                align: 64,
                written: name == "sums",
                noalias: true,
            })
        };
        let operand = kind.operand(Ty::vector(Scalar::I32, lanes));
        let left = buffer("left", operand.scalar, operand.lanes);
        let right = buffer("right", operand.scalar, operand.lanes);
        let sums = buffer("sums", Scalar::I32, lanes);
        let zero = b.index(0);
        let x = b.load(left, zero, operand.lanes);
        let y = b.load(right, zero, operand.lanes);
        let start = b.load(sums, zero, lanes);
        let sum = b.dot(kind, x, y, start);
        b.store(sums, zero, sum);
        b.finish(KernelId::from_index(0), Launch::SINGLE)
    }

    fn with(mut target: Target, feature: &str) -> Target {
        if let DeviceSpec::Cpu(cpu) = &mut target.device {
            cpu.features.push(feature.to_owned());
        }
        target
    }

    #[test]
    fn machines_with_the_instruction_use_it() {
        let text = |kind, lanes, target: &Target| testing::assembly(&[kernel(kind, lanes)], target);
        let wide = with(testing::x86_v4(), "avx512vnni");
        assert!(text(DotKind::MixedBytes, 16, &wide).contains("vpdpbusd"));
        let narrow = with(testing::x86_v3(), "avxvnni");
        assert!(text(DotKind::MixedBytes, 8, &narrow).contains("vpdpbusd"));
        assert!(!text(DotKind::MixedBytes, 16, &narrow).contains("vpdpbusd"));
        let signed = with(testing::x86_v3(), "avxvnniint8");
        assert!(text(DotKind::Bytes, 8, &signed).contains("vpdpbssd"));
        let arm = with(testing::aarch64(), "dotprod");
        assert!(text(DotKind::Bytes, 4, &arm).contains("sdot"));
        assert!(!text(DotKind::Bytes, 4, &testing::aarch64()).contains("sdot"));
        assert!(text(DotKind::Words, 8, &testing::x86_v3()).contains("vpmaddwd"));
    }

    /// The operand's numbers from its bytes.
    fn numbers(bytes: &[u8], kind: DotKind, is_left: bool) -> Vec<i32> {
        let number = |bytes: &[u8]| match (kind, bytes) {
            (DotKind::MixedBytes, &[byte]) if is_left => i32::from(byte),
            (_, &[byte]) => i32::from(byte as i8),
            (_, bytes) => i32::from(i16::from_le_bytes([bytes[0], bytes[1]])),
        };
        let size = if kind == DotKind::Words { 2 } else { 1 };
        bytes.chunks(size).map(number).collect()
    }

    #[test]
    fn sums_are_those_of_the_numbers() {
        let bytes = |step: usize| (0..32).map(|i| (i * step) as u8).collect::<Vec<u8>>();
        let (left, right) = (bytes(73), bytes(59));
        for target in [testing::x86_v1(), testing::x86_v3()] {
            for kind in [DotKind::Bytes, DotKind::MixedBytes, DotKind::Words] {
                let mut buffers = [left.clone(), right.clone(), 5_i32.to_le_bytes().repeat(8)];
                testing::run(&kernel(kind, 8), &target, &mut buffers);
                let x = numbers(&left, kind, true);
                let y = numbers(&right, kind, false);
                let group = x.len() / 8;
                for (lane, got) in buffers[2].chunks(4).enumerate() {
                    let lanes = lane * group..(lane + 1) * group;
                    let sum: i32 = lanes.map(|i| x[i] * y[i]).sum();
                    assert_eq!(got, (5 + sum).to_le_bytes(), "{kind:?}");
                }
            }
        }
    }
}
