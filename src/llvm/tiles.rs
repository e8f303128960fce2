//! Tiles by the instructions of AMX, with tile numbers as the kernel chose them.
//!
//! Linux lets a process use tiles after it has asked (Documentation/arch/x86/xstate.rst), and asking
//! again costs a tenth of a microsecond. Whoever runs the kernel need not know of it: it asks itself.

use llvm_sys::LLVMIntPredicate;

use crate::base::Result;
use crate::kernel::TILES;
use crate::kernel::TileDot;
use crate::kernel::TileOp;
use crate::kernel::TilePlace;
use crate::kernel::TileShape;
use crate::llvm::ir::Val;
use crate::llvm::lower::Lower;

/// Linux's number of `arch_prctl` on x86-64.
const ARCH_PRCTL: u64 = 158;
/// `ARCH_REQ_XCOMP_PERM`: asks for a part of the processor's state.
const REQUEST_PERMISSION: u64 = 0x1023;
/// `XFEATURE_XTILEDATA`: the tiles.
const TILE_DATA: u64 = 18;
/// Where the shapes begin in a configuration: bytes of rows (16 bits a tile), then rows.
const ROW_BYTES_AT: usize = 16;
const ROWS_AT: usize = 48;
/// Bytes of a configuration.
const CONFIGURATION: usize = 64;

/// The configuration that LDTILECFG reads: palette 1, and the shapes.
fn configuration(shapes: &[TileShape; TILES]) -> [u8; CONFIGURATION] {
    let mut bytes = [0; CONFIGURATION];
    bytes[0] = 1;
    for (tile, shape) in shapes.iter().enumerate() {
        bytes[ROW_BYTES_AT + 2 * tile] = shape.bytes;
        bytes[ROWS_AT + tile] = shape.rows;
    }
    bytes
}

impl Lower<'_> {
    /// A statement about tiles.
    pub(super) fn tile(&self, op: &TileOp) -> Result<()> {
        if !self.machine.tiles.any() {
            return Err(self.unsupported("tiles"));
        }
        let number = |tile: u8| self.ir.const_int(self.ir.int(8, 1), 1, u64::from(tile));
        match op {
            TileOp::Configure(shapes) => self.configure(shapes),
            TileOp::Zero(tile) => {
                self.ir
                    .intrinsic("llvm.x86.tilezero", &[], &[number(*tile)]);
            }
            TileOp::Load(tile, place) => {
                let (at, stride) = self.tile_place(place);
                let name = "llvm.x86.tileloadd64";
                self.ir.intrinsic(name, &[], &[number(*tile), at, stride]);
            }
            TileOp::Store(tile, place) => {
                let (at, stride) = self.tile_place(place);
                let name = "llvm.x86.tilestored64";
                self.ir.intrinsic(name, &[], &[number(*tile), at, stride]);
            }
            TileOp::Dot {
                kind,
                sum,
                left,
                right,
            } => {
                let name = tile_dot(*kind);
                let tiles = [*sum, *left, *right].map(number);
                self.ir.intrinsic(name, &[], &tiles);
            }
            TileOp::Release => {
                self.ir.intrinsic("llvm.x86.tilerelease", &[], &[]);
            }
        }
        Ok(())
    }

    /// Address of a tile in memory and bytes from row to row.
    fn tile_place(&self, place: &TilePlace) -> (Val, Val) {
        let bytes = self.kernel.buffers[place.buf].elem.bytes();
        let at = self.address(place.buf, self.value(place.index));
        (at, self.ir.i64(place.stride * bytes))
    }

    fn configure(&self, shapes: &[TileShape; TILES]) {
        let byte = self.ir.int(8, 1);
        let bytes = configuration(shapes).map(|b| self.ir.const_int(byte, 1, u64::from(b)));
        let bytes = self.ir.const_vector(&bytes);
        let align = CONFIGURATION as u64;
        let memory = self.ir.alloca(self.ir.type_of(bytes), align);
        let request = [ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA].map(|n| self.ir.i64(n));
        let refused = self.ir.system_call(request);
        let zero = self.ir.i64(0);
        let granted = self.ir.icmp(LLVMIntPredicate::LLVMIntEQ, refused, zero);
        let (go_on, fail) = (self.ir.block(), self.ir.block());
        self.ir.cond_br(granted, go_on, fail);
        self.ir.at(fail);
        // Anything but null says that the kernel failed.
        let frame = self.ir.param(0);
        self.ir.ret(Some(frame));
        self.ir.at(go_on);
        self.ir.store(bytes, memory, align);
        self.ir.intrinsic("llvm.x86.ldtilecfg", &[], &[memory]);
    }
}

/// LLVM's name of a product of tiles.
fn tile_dot(kind: TileDot) -> &'static str {
    match kind {
        TileDot::Bf16 => "llvm.x86.tdpbf16ps",
        TileDot::Bytes {
            left_signed,
            right_signed,
        } => match (left_signed, right_signed) {
            (true, true) => "llvm.x86.tdpbssd",
            (true, false) => "llvm.x86.tdpbsud",
            (false, true) => "llvm.x86.tdpbusd",
            (false, false) => "llvm.x86.tdpbuud",
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::base::Id;
    use crate::executable::KernelId;
    use crate::executable::Launch;
    use crate::kernel::KernelBuilder;
    use crate::kernel::Scalar;
    use crate::kernel::Space;
    use crate::kernel::TILES;
    use crate::kernel::TileDot;
    use crate::kernel::TileOp;
    use crate::kernel::TilePlace;
    use crate::kernel::TileShape;
    use crate::llvm;
    use crate::llvm::testing;

    fn assembly(kind: TileDot) -> String {
        let mut b = KernelBuilder::new("tiles");
        let sums = b.scratch("sums", kind.sum(), 256, Space::Private);
        let rows = b.scratch("rows", Scalar::I8, 1024, Space::Private);
        let place = |buf, stride, index| TilePlace { buf, index, stride };
        let zero = b.index(0);
        b.tile(TileOp::Configure(
            [TileShape {
                rows: 16,
                bytes: 64,
            }; TILES],
        ));
        b.tile(TileOp::Zero(0));
        b.tile(TileOp::Load(4, place(rows, 64, zero)));
        b.tile(TileOp::Dot {
            kind,
            sum: 0,
            left: 4,
            right: 6,
        });
        b.tile(TileOp::Store(0, place(sums, 16, zero)));
        b.tile(TileOp::Release);
        let kernel = b.finish(KernelId::from_index(0), Launch::SINGLE);
        testing::assembly(&[kernel], &testing::x86_amx())
    }

    #[test]
    fn tiles_are_instructions_after_asking_for_them() {
        let bytes = |left_signed, right_signed| TileDot::Bytes {
            left_signed,
            right_signed,
        };
        for (kind, name) in [
            (TileDot::Bf16, "tdpbf16ps"),
            (bytes(true, true), "tdpbssd"),
            (bytes(true, false), "tdpbsud"),
            (bytes(false, true), "tdpbusd"),
            (bytes(false, false), "tdpbuud"),
        ] {
            let text = assembly(kind);
            let at = |what: &str| {
                text.find(what)
                    .unwrap_or_else(|| panic!("{what} in {text}"))
            };
            let order = [
                "syscall",
                "ldtilecfg",
                "tilezero",
                "tileloadd",
                name,
                "tilestored",
            ];
            let places: Vec<usize> = order.into_iter().map(at).collect();
            assert!(
                places.is_sorted() && at("tilerelease") > places[5],
                "{text}"
            );
        }
    }

    #[test]
    fn other_machines_have_none() {
        let mut b = KernelBuilder::new("tiles");
        b.tile(TileOp::Configure(
            [TileShape {
                rows: 16,
                bytes: 64,
            }; TILES],
        ));
        b.tile(TileOp::Release);
        let kernel = b.finish(KernelId::from_index(0), Launch::SINGLE);
        let target = testing::x86_v4();
        let compiled = llvm::compile(&[kernel], &target, &llvm::Options::default());
        let error = compiled.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("uses tiles on X86"), "{error}");
    }
}
