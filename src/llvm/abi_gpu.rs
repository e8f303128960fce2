//! The GPU kernel ABI: a PTX entry point with one device address for each buffer parameter.
//!
//! Also what only GPU kernels have: special registers, warp shuffles and matrix fragments.

use inkwell::context::Context;
use inkwell::module::Module;
use llvm_sys::LLVMOpcode;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::kernel::Kernel;
use crate::kernel::MmaKind;
use crate::kernel::Scalar;
use crate::kernel::ShuffleKind;
use crate::kernel::Ty;
use crate::llvm::index::Facts;
use crate::llvm::ir::Ir;
use crate::llvm::ir::Val;
use crate::llvm::lower::Ids;
use crate::llvm::lower::Lower;
use crate::llvm::memory;
use crate::llvm::session::Isa;
use crate::llvm::session::Machine;

/// LLVM's number of the calling convention `ptx_kernel`.
const PTX_KERNEL: u32 = 71;
/// Shared memory that a kernel may have without asking at the launch.
const STATIC_SHARED_BYTES: u64 = 48 << 10;
/// Every workitem of a warp.
const WHOLE_WARP: u32 = 0xffff_ffff;

/// Whether a name can stand in PTX as it is.
pub(super) fn is_ptx_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

/// Refuses launches that the driver would refuse.
fn check_launch(kernel: &Kernel) -> Result<()> {
    let [x, y, z] = kernel.launch.workgroups;
    let shared = kernel.shared_layout().1;
    let problem = if x >= 1 << 31 || y >= 1 << 16 || z >= 1 << 16 {
        format!("launches {x} x {y} x {z} workgroups, more than a grid holds")
    } else if kernel.launch.shared_bytes == 0 && shared > STATIC_SHARED_BYTES {
        format!("keeps {shared} bytes in shared memory and does not launch with as many")
    } else {
        return Ok(());
    };
    Err(Diagnostic::internal(
        codes::KERNEL_CHECK,
        format!("kernel `{}` {problem}", kernel.name),
    ))
}

/// Lowers a kernel to a function of the module.
pub(super) fn lower<'a, 'ctx: 'a>(
    context: &'ctx Context,
    module: &'a Module<'ctx>,
    kernel: &'a Kernel,
    machine: &'a Machine,
) -> Result<()> {
    if !is_ptx_name(&kernel.name) {
        return Err(Diagnostic::internal(
            codes::KERNEL_CHECK,
            format!("kernel name `{}` is not a PTX identifier", kernel.name),
        ));
    }
    check_launch(kernel)?;
    let ir = Ir::function(
        context,
        module,
        &kernel.name,
        |ir| ir.void(),
        |ir| vec![ir.ptr(1); kernel.params().count()],
    );
    ir.set_call_convention(PTX_KERNEL);
    ir.function_attribute("nounwind", 0);
    let [x, y, z] = kernel.launch.workitems;
    ir.function_string("nvvm.reqntid", &format!("{x},{y},{z}"));
    if let Some([x, y, z]) = kernel.launch.cluster {
        ir.function_string("nvvm.cluster_dim", &format!("{x},{y},{z}"));
    }
    for (i, (_, buffer)) in kernel.params().enumerate() {
        if buffer.noalias {
            ir.param_attribute(i, "noalias", 0);
        }
        if !buffer.written {
            ir.param_attribute(i, "readonly", 0);
        }
        let align = buffer.align.max(1).min(memory::whole_pieces(buffer));
        ir.param_attribute(i, "align", align);
        let bytes = buffer.count * buffer.elem.bytes();
        if bytes > 0 {
            ir.param_attribute(i, "dereferenceable", bytes);
        }
    }
    let params: Vec<Val> = (0..kernel.params().count()).map(|i| ir.param(i)).collect();
    let mut lower = Lower {
        ir,
        kernel,
        machine,
        facts: Facts::new(kernel),
        values: vec![None; kernel.exprs.len()],
        places: Vec::new(),
        ids: Ids::Gpu,
    };
    lower.place_buffers(&params);
    lower.body()?;
    lower.ir.ret(None);
    Ok(())
}

impl Lower<'_> {
    /// Number of the workgroup on an axis of that size.
    pub(super) fn workgroup_number(&self, axis: usize, size: u64) -> Val {
        match &self.ids {
            Ids::Cpu(numbers) => {
                let at = self.ir.element(
                    self.ir.scalar(Scalar::I64),
                    *numbers,
                    self.ir.i64(axis as u64),
                );
                let value = self.ir.load(self.ir.scalar(Scalar::I64), at, 8);
                self.ir.annotate(value, "invariant.load", self.ir.node(&[]));
                let bounds = [
                    self.ir.md_value(self.ir.i64(0)),
                    self.ir.md_value(self.ir.i64(size)),
                ];
                self.ir.annotate(value, "range", self.ir.node(&bounds));
                value
            }
            Ids::Gpu => self.special_register(["ctaid.x", "ctaid.y", "ctaid.z"][axis], size),
        }
    }

    /// A special register below `size`, as an index. On a CPU it is zero.
    pub(super) fn special_register(&self, name: &str, size: u64) -> Val {
        if self.machine.isa != Isa::Ptx {
            return self.ir.i64(0);
        }
        let name = format!("llvm.nvvm.read.ptx.sreg.{name}");
        let value = self.ir.intrinsic(&name, &[], &[]);
        self.ir.range_result(value, 32, 0, size);
        self.ir
            .cast(LLVMOpcode::LLVMZExt, value, self.ir.scalar(Scalar::I64))
    }

    /// A value of another workitem of the warp.
    pub(super) fn warp_shuffle(
        &self,
        kind: ShuffleKind,
        value: Val,
        lane: Val,
        ty: Ty,
    ) -> Result<Val> {
        if self.machine.isa != Isa::Ptx {
            return Err(self.unsupported("a warp shuffle"));
        }
        let lanes = self.ir.lanes(value, ty.lanes);
        let moved: Vec<Val> = lanes
            .into_iter()
            .map(|v| self.shuffle_one(kind, v, lane, ty.scalar))
            .collect();
        Ok(self.ir.gather_lanes(&moved))
    }

    fn shuffle_one(&self, kind: ShuffleKind, value: Val, lane: Val, scalar: Scalar) -> Val {
        let (name, clamp) = match kind {
            ShuffleKind::Xor => ("llvm.nvvm.shfl.sync.bfly.i32", 31),
            ShuffleKind::Down => ("llvm.nvvm.shfl.sync.down.i32", 31),
            ShuffleKind::Up => ("llvm.nvvm.shfl.sync.up.i32", 0),
            ShuffleKind::Index => ("llvm.nvvm.shfl.sync.idx.i32", 31),
        };
        let word = self.ir.scalar(Scalar::I32);
        let send = |v: Val| {
            let args = [self.ir.i32(WHOLE_WARP), v, lane, self.ir.i32(clamp)];
            self.ir.intrinsic(name, &[], &args)
        };
        let int = self.ir.scalar(scalar.as_int());
        let bits = self.ir.bitcast(value, int);
        let moved = match scalar.bits() {
            64 => {
                let pair = self.ir.bitcast(bits, self.ir.vector(word, 2));
                let (low, high) = (self.ir.extract(pair, 0), self.ir.extract(pair, 1));
                let pair = self.ir.gather_lanes(&[send(low), send(high)]);
                self.ir.bitcast(pair, int)
            }
            32 => send(bits),
            _ => {
                let wide = self.ir.cast(LLVMOpcode::LLVMZExt, bits, word);
                self.ir.cast(LLVMOpcode::LLVMTrunc, send(wide), int)
            }
        };
        self.ir.bitcast(moved, self.ir.scalar(scalar))
    }

    /// A product of fragments, accumulated.
    pub(super) fn mma(&self, kind: MmaKind, a: Val, b: Val, c: Val) -> Result<Val> {
        if self.machine.isa != Isa::Ptx || self.machine.capability < (8, 0) {
            return Err(self.unsupported("matrix fragments"));
        }
        // Registers of a, b and c.
        let (name, a, b, c) = match kind {
            MmaKind::F16 => (
                "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
                self.pairs(a, 4, self.ir.half(2)),
                self.pairs(b, 2, self.ir.half(2)),
                self.ir.lanes(c, 4),
            ),
            MmaKind::BF16 => (
                "llvm.nvvm.mma.m16n8k16.row.col.bf16",
                self.pairs(a, 4, self.ir.scalar(Scalar::I32)),
                self.pairs(b, 2, self.ir.scalar(Scalar::I32)),
                self.ir.lanes(c, 4),
            ),
            MmaKind::TF32 => (
                "llvm.nvvm.mma.m16n8k8.row.col.tf32",
                self.tf32(a, 4),
                self.tf32(b, 2),
                self.ir.lanes(c, 4),
            ),
            MmaKind::F64 => (
                "llvm.nvvm.mma.m8n8k4.row.col.f64",
                vec![a],
                vec![b],
                self.ir.lanes(c, 2),
            ),
            MmaKind::S8 => (
                "llvm.nvvm.mma.m16n8k32.row.col.s8",
                self.ir.lanes(a, 4),
                self.ir.lanes(b, 2),
                self.ir.lanes(c, 4),
            ),
        };
        let results = c.len() as u32;
        let args: Vec<Val> = a.into_iter().chain(b).chain(c).collect();
        let product = self.ir.intrinsic(name, &[], &args);
        let lanes: Vec<Val> = (0..results).map(|i| self.ir.field(product, i)).collect();
        Ok(self.ir.gather_lanes(&lanes))
    }

    /// Pairs of 16-bit lanes as registers of type `to`.
    fn pairs(&self, a: Val, count: u16, to: crate::llvm::ir::Type) -> Vec<Val> {
        (0..count)
            .map(|i| {
                let pair = self.ir.shuffle(a, a, &[2 * i, 2 * i + 1]);
                self.ir.bitcast(pair, to)
            })
            .collect()
    }

    /// Lanes rounded to TF32, ties away from zero, as registers.
    fn tf32(&self, a: Val, count: u16) -> Vec<Val> {
        self.ir
            .lanes(a, count)
            .into_iter()
            .map(|v| self.ir.intrinsic("llvm.nvvm.f2tf32.rna", &[], &[v]))
            .collect()
    }
}
