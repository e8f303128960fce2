//! The text form of kernels, for people and goldens. It is not read back.
//!
//! ```text
//! kernel add(b0 x: f32[8] align 64 noalias, b1 out: f32[8] align 64 noalias written) groups [1,1,1] items [1,1,1] {
//!   v0 = 0 : i64
//!   v1 = load b0[v0] : 8xf32
//!   store b1[v0] = v1
//! }
//! ```

use std::fmt::Write;

use crate::base::Id;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::Block;
use crate::kernel::BufId;
use crate::kernel::Carried;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::ExprKind;
use crate::kernel::Kernel;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Stmt;
use crate::kernel::TileOp;
use crate::kernel::TilePlace;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::kernel::Unroll;

/// The text of a kernel, ending in a newline.
pub fn kernel(kernel: &Kernel) -> String {
    let mut printer = Printer {
        kernel,
        out: String::new(),
        depth: 1,
    };
    printer.head();
    printer.block(&kernel.body);
    printer.out.push_str("}\n");
    printer.out
}

struct Printer<'a> {
    kernel: &'a Kernel,
    out: String,
    depth: usize,
}

/// Writing to a string does not fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        write!($out, $($arg)*).expect("a string takes any text")
    };
}

impl Printer<'_> {
    fn head(&mut self) {
        put!(self.out, "kernel {}(", self.kernel.name);
        let buffers: Vec<String> = self
            .kernel
            .buffers
            .iter()
            .map(|(id, buffer)| {
                let mut text = format!(
                    "{} {}: {}[{}] align {}",
                    name_of_buffer(id),
                    buffer.name,
                    buffer.elem.name(),
                    buffer.count,
                    buffer.align
                );
                match buffer.space {
                    Space::Global => {}
                    Space::Shared => text.push_str(" shared"),
                    Space::Private => text.push_str(" private"),
                    Space::Kept => text.push_str(" kept"),
                }
                if buffer.noalias {
                    text.push_str(" noalias");
                }
                if buffer.written {
                    text.push_str(" written");
                }
                text
            })
            .collect();
        self.out.push_str(&buffers.join(", "));
        let launch = &self.kernel.launch;
        put!(
            self.out,
            ") groups {} items {}",
            list(&launch.workgroups),
            list(&launch.workitems)
        );
        if let Some(cluster) = launch.cluster {
            put!(self.out, " cluster {}", list(&cluster));
        }
        if launch.shared_bytes > 0 {
            put!(self.out, " shared {}", launch.shared_bytes);
        }
        self.out.push_str(" {\n");
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn nested(&mut self, block: &Block) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(id) => {
                let expr = &self.kernel.exprs[*id];
                let text = format!("{id:?} = {} : {}", expression(&expr.kind, expr.ty), expr.ty);
                self.line(&text);
            }
            Stmt::Store {
                buf,
                index,
                value,
                mask,
            } => {
                let at = name_of_buffer(*buf);
                self.line(&format!(
                    "store {at}[{index:?}] = {value:?}{}",
                    masked(*mask)
                ));
            }
            Stmt::Scatter {
                buf,
                indices,
                value,
                mask,
            } => {
                let at = name_of_buffer(*buf);
                self.line(&format!(
                    "scatter {at}[{indices:?}] = {value:?}{}",
                    masked(*mask)
                ));
            }
            Stmt::AtomicRmw {
                op,
                buf,
                index,
                value,
            } => {
                let (at, op) = (name_of_buffer(*buf), binary_name(*op));
                self.line(&format!("atomic {op} {at}[{index:?}], {value:?}"));
            }
            Stmt::AtomicCas {
                buf,
                index,
                expected,
                desired,
                old,
            } => {
                let at = name_of_buffer(*buf);
                self.line(&format!(
                    "{old:?} = exchange {at}[{index:?}], {expected:?}, {desired:?}"
                ));
            }
            Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. } => self.control(stmt),
            Stmt::Barrier => self.line("barrier"),
            Stmt::Prefetch { buf, index } => {
                self.line(&format!("prefetch {}[{index:?}]", name_of_buffer(*buf)));
            }
            Stmt::Tile(op) => self.line(&tile(op)),
        }
    }

    fn control(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For {
                var,
                start,
                end,
                step,
                carried,
                body,
                unroll,
            } => {
                let hint = match unroll {
                    Unroll::Auto => "",
                    Unroll::Never => " rolled",
                    Unroll::Full => " unrolled",
                };
                self.line(&format!(
                    "for {var:?} = {start:?} to {end:?} step {step:?}{hint}{} {{",
                    entering(carried)
                ));
                self.nested(body);
                self.line(&format!("}}{}", leaving(carried)));
            }
            Stmt::While {
                carried,
                before,
                cond,
                body,
            } => {
                self.line(&format!("while{} {{", entering(carried)));
                self.nested(before);
                self.line(&format!("}} holds {cond:?} {{"));
                self.nested(body);
                self.line(&format!("}}{}", leaving(carried)));
            }
            Stmt::If {
                cond,
                then,
                otherwise,
                merges,
            } => {
                self.line(&format!("if {cond:?} {{"));
                self.nested(then);
                if !otherwise.0.is_empty() {
                    self.line("} else {");
                    self.nested(otherwise);
                }
                let merged: Vec<String> = merges
                    .iter()
                    .map(|m| format!(" {:?} = {:?} or {:?}", m.result, m.then, m.otherwise))
                    .collect();
                self.line(&format!("}}{}", merged.join(",")));
            }
            _ => {}
        }
    }
}

fn tile(op: &TileOp) -> String {
    let memory = |place: &TilePlace| {
        let (buf, index) = (name_of_buffer(place.buf), place.index);
        format!("{buf}[{index:?}] rows {} apart", place.stride)
    };
    match op {
        TileOp::Configure(shapes) => {
            let shapes: Vec<String> = shapes
                .iter()
                .map(|shape| format!("{}x{}", shape.rows, shape.bytes))
                .collect();
            format!("tiles {}", shapes.join(" "))
        }
        TileOp::Zero(tile) => format!("t{tile} = zero"),
        TileOp::Load(tile, place) => format!("t{tile} = load {}", memory(place)),
        TileOp::Dot {
            kind,
            sum,
            left,
            right,
        } => format!("t{sum} += dot.{} t{left}, t{right}", kind.name()),
        TileOp::Store(tile, place) => format!("store {} = t{tile}", memory(place)),
        TileOp::Release => "release tiles".to_owned(),
    }
}

fn entering(carried: &[Carried]) -> String {
    carried
        .iter()
        .map(|c| format!(" [{:?} = {:?}]", c.phi, c.init))
        .collect()
}

fn leaving(carried: &[Carried]) -> String {
    carried
        .iter()
        .map(|c| format!(" [next {:?}, last {:?}]", c.next, c.result))
        .collect()
}

fn masked(mask: Option<ExprId>) -> String {
    mask.map_or_else(String::new, |m| format!(" where {m:?}"))
}

fn name_of_buffer(id: BufId) -> String {
    format!("b{}", id.index())
}

fn list<T: std::fmt::Display>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("[{}]", values.join(","))
}

/// The value of a constant, as a person would write it.
fn constant(bits: u64, scalar: Scalar) -> String {
    match scalar {
        Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
        Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Scalar::F16 => format!("{:?}", half::f16::from_bits(bits as u16)),
        Scalar::BF16 => format!("{:?}", half::bf16::from_bits(bits as u16)),
        Scalar::I1 => (if bits & 1 == 1 { "true" } else { "false" }).to_owned(),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
            let shift = 64 - scalar.bits();
            (((bits << shift) as i64) >> shift).to_string()
        }
    }
}

fn expression(kind: &ExprKind, ty: Ty) -> String {
    match kind {
        ExprKind::Const(bits) => constant(*bits, ty.scalar),
        ExprKind::ConstVector(lanes) => {
            let lanes: Vec<String> = lanes.iter().map(|&l| constant(l, ty.scalar)).collect();
            list(&lanes)
        }
        ExprKind::WorkgroupId(axis) => format!("group.{}", axis_name(*axis)),
        ExprKind::WorkitemId(axis) => format!("item.{}", axis_name(*axis)),
        ExprKind::Stmt => "defined by a statement".to_owned(),
        ExprKind::Unary(op, a) => format!("{} {a:?}", unary_name(*op)),
        ExprKind::Binary(op, a, b) => format!("{} {a:?}, {b:?}", binary_name(*op)),
        ExprKind::Fma(a, b, c) => format!("fma {a:?}, {b:?}, {c:?}"),
        ExprKind::FmaExact(a, b, c) => format!("fma.exact {a:?}, {b:?}, {c:?}"),
        ExprKind::Cmp(op, a, b) => format!("{} {a:?}, {b:?}", cmp_name(*op)),
        ExprKind::Dot { kind, a, b, c } => {
            format!("dot.{} {a:?}, {b:?}, {c:?}", lower(&format!("{kind:?}")))
        }
        ExprKind::Select(c, a, b) => format!("select {c:?}, {a:?}, {b:?}"),
        ExprKind::Cast(op, a) => format!("{} {a:?}", cast_name(*op)),
        ExprKind::Load { buf, index } => format!("load {}[{index:?}]", name_of_buffer(*buf)),
        ExprKind::Gather { buf, indices, mask } => {
            let at = name_of_buffer(*buf);
            format!("gather {at}[{indices:?}]{}", masked(*mask))
        }
        ExprKind::Splat(a) => format!("splat {a:?}"),
        ExprKind::Extract(a, lane) => format!("extract {a:?}, {lane}"),
        ExprKind::Insert(a, b, lane) => format!("insert {a:?}, {b:?}, {lane}"),
        ExprKind::Shuffle(a, b, lanes) => format!("shuffle {a:?}, {b:?}, {}", list(lanes)),
        ExprKind::ReduceLanes(op, a) => format!("reduce.{} {a:?}", binary_name(*op)),
        ExprKind::WarpShuffle { kind, value, lane } => {
            format!("warp.{} {value:?}, {lane:?}", lower(&format!("{kind:?}")))
        }
        ExprKind::Mma { kind, a, b, c } => {
            format!("mma.{} {a:?}, {b:?}, {c:?}", lower(&format!("{kind:?}")))
        }
    }
}

fn lower(word: &str) -> String {
    word.to_ascii_lowercase()
}

fn axis_name(axis: Axis) -> String {
    lower(&format!("{axis:?}"))
}

fn unary_name(op: UnaryOp) -> String {
    lower(&format!("{op:?}"))
}

fn binary_name(op: BinaryOp) -> String {
    lower(&format!("{op:?}"))
}

fn cmp_name(op: CmpOp) -> String {
    format!("cmp.{}", lower(&format!("{op:?}")))
}

fn cast_name(op: CastOp) -> String {
    lower(&format!("{op:?}"))
}

#[cfg(test)]
mod tests {
    use crate::base::Id;
    use crate::executable::KernelId;
    use crate::executable::Launch;
    use crate::kernel::Buffer;
    use crate::kernel::KernelBuilder;
    use crate::kernel::Scalar;
    use crate::kernel::Space;

    #[test]
    fn a_loop_prints_with_its_bounds_and_body() {
        let mut b = KernelBuilder::new("twice");
        let buffer = |name: &str, written| Buffer {
            name: name.to_owned(),
            elem: Scalar::F32,
            count: 16,
            space: Space::Global,
            align: 64,
            written,
            noalias: true,
        };
        let x = b.buffer(buffer("x", false));
        let out = b.buffer(buffer("out", true));
        b.for_range(16, 8, |b, i| {
            let v = b.load(x, i, 8);
            let sum = b.add(v, v);
            b.store(out, i, sum);
        });
        let kernel = b.finish(KernelId::from_index(0), Launch::SINGLE);
        let text = super::kernel(&kernel);
        assert_eq!(
            text,
            "kernel twice(b0 x: f32[16] align 64 noalias, b1 out: f32[16] align 64 noalias \
             written) groups [1,1,1] items [1,1,1] {\n  \
             v0 = 0 : i64\n  v1 = 16 : i64\n  v2 = 8 : i64\n  \
             for v3 = v0 to v1 step v2 {\n    \
             v4 = load b0[v3] : 8xf32\n    v5 = add v4, v4 : 8xf32\n    \
             store b1[v3] = v5\n  }\n}\n"
        );
    }
}
