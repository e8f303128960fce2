//! The rules of the kernel IR: scopes, types, buffer use, launch, barriers.
//!
//! A kernel that passes can be lowered without further question, but for what a target lacks.
//! Gathers all findings. A barrier is refused where control visibly differs between workitems:
//! under a condition or bound computed from a workitem number.

use crate::base::Diagnostic;
use crate::base::IdSet;
use crate::base::Location;
use crate::base::codes;
use crate::kernel::BinaryOp;
use crate::kernel::Block;
use crate::kernel::BufId;
use crate::kernel::Carried;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::ExprKind;
use crate::kernel::INDEX;
use crate::kernel::Kernel;
use crate::kernel::Merge;
use crate::kernel::MmaKind;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Stmt;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;

mod tiles;

use tiles::Tiles;

/// Most workitems of a group on any GPU.
const MAX_WORKITEMS: u64 = 1024;

/// Everything that is wrong with a kernel.
pub fn check(kernel: &Kernel) -> Vec<Diagnostic> {
    let mut checker = Checker {
        kernel,
        defined: IdSet::new(),
        divergent: IdSet::new(),
        differs: false,
        tiles: Tiles::default(),
        found: Vec::new(),
    };
    checker.head();
    checker.block(&kernel.body);
    checker.tiles_are_released();
    checker.found
}

struct Checker<'a> {
    kernel: &'a Kernel,
    /// Values visible here.
    defined: IdSet<ExprId>,
    /// Values that may differ between the workitems of a group.
    divergent: IdSet<ExprId>,
    /// Whether control may differ between the workitems here.
    differs: bool,
    tiles: Tiles,
    found: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn report(&mut self, at: String, message: String) {
        let message = format!("kernel `{}`: {message}", self.kernel.name);
        let diagnostic = Diagnostic::internal(codes::KERNEL_CHECK, message);
        self.found.push(*diagnostic.at(Location::Path(at)));
    }

    fn ty(&self, id: ExprId) -> Ty {
        self.kernel.exprs[id].ty
    }

    fn head(&mut self) {
        let launch = self.kernel.launch;
        if launch.workgroups.contains(&0) || launch.workitems.contains(&0) {
            self.report("launch".to_owned(), "a launch size is zero".to_owned());
        }
        let items: u64 = launch.workitems.iter().map(|&n| u64::from(n)).product();
        if items > MAX_WORKITEMS {
            self.report(
                "launch".to_owned(),
                format!("{items} workitems, at most {MAX_WORKITEMS} fit a group"),
            );
        }
        let shared = self.kernel.shared_layout().1;
        if launch.shared_bytes > 0 && u64::from(launch.shared_bytes) < shared {
            self.report(
                "launch".to_owned(),
                format!(
                    "{} bytes of shared memory are launched, the buffers take {shared}",
                    launch.shared_bytes
                ),
            );
        }
        let mut scratch_seen = false;
        for (id, buffer) in self.kernel.buffers.iter() {
            scratch_seen |= buffer.space != Space::Global;
            if scratch_seen && buffer.space == Space::Global {
                self.report(
                    format!("{id:?}"),
                    "a parameter follows scratch memory".to_owned(),
                );
            }
            if !buffer.align.is_power_of_two() {
                self.report(
                    format!("{id:?}"),
                    format!("alignment {} is no power of two", buffer.align),
                );
            }
            if buffer.elem == Scalar::I1 {
                self.report(
                    format!("{id:?}"),
                    "elements of i1 are not stored".to_owned(),
                );
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.tiles.depth += 1;
        for stmt in &block.0 {
            self.stmt(stmt);
        }
        self.tiles.depth -= 1;
    }

    fn define(&mut self, id: ExprId) {
        self.defined.insert(id);
    }

    fn uses(&mut self, at: &str, ids: &[ExprId]) -> bool {
        let mut fine = true;
        for &id in ids {
            if !self.defined.contains(id) {
                self.report(
                    at.to_owned(),
                    format!("{id:?} is used where it is not defined"),
                );
                fine = false;
            }
        }
        fine
    }

    fn want(&mut self, at: &str, what: &str, id: ExprId, wanted: Ty) {
        let found = self.ty(id);
        if found != wanted {
            self.report(
                at.to_owned(),
                format!("{what} {id:?} is {found}, wanted {wanted}"),
            );
        }
    }

    fn any_divergent(&self, ids: &[ExprId]) -> bool {
        ids.iter().any(|&id| self.divergent.contains(id))
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(id) => self.expr(*id),
            Stmt::Store {
                buf,
                index,
                value,
                mask,
            } => {
                self.uses("store", &[*index, *value]);
                self.want("store", "index", *index, INDEX);
                self.write("store", *buf, *value);
                self.mask("store", *mask, self.ty(*value).lanes);
            }
            Stmt::Scatter {
                buf,
                indices,
                value,
                mask,
            } => {
                self.uses("scatter", &[*indices, *value]);
                let lanes = self.ty(*value).lanes;
                self.want(
                    "scatter",
                    "indices",
                    *indices,
                    Ty::vector(Scalar::I64, lanes),
                );
                self.write("scatter", *buf, *value);
                self.mask("scatter", *mask, lanes);
            }
            Stmt::AtomicRmw {
                op,
                buf,
                index,
                value,
            } => {
                self.uses("atomic", &[*index, *value]);
                self.want("atomic", "index", *index, INDEX);
                self.write("atomic", *buf, *value);
                self.atomic(*op, self.ty(*value));
            }
            Stmt::AtomicCas {
                buf,
                index,
                expected,
                desired,
                old,
            } => {
                self.uses("exchange", &[*index, *expected, *desired]);
                self.want("exchange", "index", *index, INDEX);
                let ty = self.ty(*expected);
                self.want("exchange", "desired value", *desired, ty);
                self.want("exchange", "old value", *old, ty);
                self.write("exchange", *buf, *desired);
                if ty.lanes != 1 || ty.scalar.is_float() {
                    self.report("exchange".to_owned(), format!("{ty} cannot be exchanged"));
                }
                self.divergent.insert(*old);
                self.define(*old);
            }
            Stmt::For { .. } => self.counted(stmt),
            Stmt::While {
                carried,
                before,
                cond,
                body,
            } => self.while_loop(carried, before, *cond, body),
            Stmt::If {
                cond,
                then,
                otherwise,
                merges,
            } => self.branch(*cond, [then, otherwise], merges),
            Stmt::Barrier => {
                if self.differs {
                    self.report(
                        "barrier".to_owned(),
                        "not every workitem of the group comes to the barrier".to_owned(),
                    );
                }
            }
            Stmt::Prefetch { buf, index } => {
                self.uses("prefetch", &[*index]);
                self.want("prefetch", "index", *index, INDEX);
                self.buffer("prefetch", *buf);
            }
            Stmt::Tile(op) => self.tile(op),
        }
    }

    fn buffer(&mut self, at: &str, buf: BufId) -> bool {
        let known = self.kernel.buffers.get(buf).is_some();
        if !known {
            self.report(at.to_owned(), format!("there is no buffer {buf:?}"));
        }
        known
    }

    fn write(&mut self, at: &str, buf: BufId, value: ExprId) {
        if !self.buffer(at, buf) {
            return;
        }
        let (elem, written) = (
            self.kernel.buffers[buf].elem,
            self.kernel.buffers[buf].written,
        );
        if !written {
            self.report(at.to_owned(), format!("{buf:?} is not said to be written"));
        }
        let scalar = self.ty(value).scalar;
        if scalar != elem {
            self.report(
                at.to_owned(),
                format!(
                    "{value:?} has lanes of {}, {buf:?} has elements of {}",
                    scalar.name(),
                    elem.name()
                ),
            );
        }
    }

    fn mask(&mut self, at: &str, mask: Option<ExprId>, lanes: u16) {
        if let Some(mask) = mask {
            self.uses(at, &[mask]);
            self.want(at, "mask", mask, Ty::vector(Scalar::I1, lanes));
        }
    }

    fn atomic(&mut self, op: BinaryOp, ty: Ty) {
        let float = ty.scalar.is_float();
        let fits = match op {
            BinaryOp::Add => true,
            BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::SMin
            | BinaryOp::SMax
            | BinaryOp::UMin
            | BinaryOp::UMax => !float,
            BinaryOp::FMin | BinaryOp::FMax | BinaryOp::Mul => float || op == BinaryOp::Mul,
            _ => false,
        };
        if ty.lanes != 1 || !fits {
            self.report("atomic".to_owned(), format!("no atomic {op:?} of {ty}"));
        }
    }

    fn counted(&mut self, stmt: &Stmt) {
        let Stmt::For {
            var,
            start,
            end,
            step,
            carried,
            body,
            ..
        } = stmt
        else {
            return;
        };
        let bounds = [*start, *end, *step];
        self.uses("for", &bounds);
        for id in bounds {
            self.want("for", "bound", id, INDEX);
        }
        self.want("for", "counter", *var, INDEX);
        let differs = self.any_divergent(&bounds);
        if differs {
            self.divergent.insert(*var);
        }
        let before = self.differs;
        self.differs |= differs;
        self.carried("for", carried, &[body], &[*var]);
        self.differs = before;
    }

    /// Checks a loop's carried values and blocks.
    fn carried(&mut self, at: &str, carried: &[Carried], blocks: &[&Block], also: &[ExprId]) {
        let mut inside = also.to_vec();
        for c in carried {
            self.uses(at, &[c.init]);
            let ty = self.ty(c.init);
            for (what, id) in [
                ("carried value", c.phi),
                ("next value", c.next),
                ("result", c.result),
            ] {
                self.want(at, what, id, ty);
            }
            if self.differs || self.divergent.contains(c.init) {
                self.divergent.insert(c.phi);
                self.divergent.insert(c.result);
            }
            inside.push(c.phi);
        }
        let outer = self.defined.clone();
        self.scope_open(blocks, &inside);
        for c in carried {
            self.uses(at, &[c.next]);
            if self.divergent.contains(c.next) {
                self.divergent.insert(c.result);
            }
        }
        self.defined = outer;
        for c in carried {
            self.define(c.result);
        }
    }

    /// Checks blocks one after the other; what they define stays visible.
    fn scope_open(&mut self, blocks: &[&Block], also: &[ExprId]) {
        for &id in also {
            self.define(id);
        }
        for block in blocks {
            self.block(block);
        }
    }

    fn while_loop(&mut self, carried: &[Carried], before: &Block, cond: ExprId, body: &Block) {
        self.want("while", "condition", cond, Ty::scalar(Scalar::I1));
        // A condition that hangs on divergent values is seen only after `before`; the carried
        // values are the usual way it does.
        let inits: Vec<ExprId> = carried.iter().map(|c| c.init).collect();
        let outer = self.differs;
        self.differs |= self.any_divergent(&inits);
        let defined = self.defined.clone();
        let phis: Vec<ExprId> = carried.iter().map(|c| c.phi).collect();
        self.scope_open(&[before], &phis);
        self.uses("while", &[cond]);
        self.differs |= self.divergent.contains(cond);
        self.defined = defined;
        self.carried("while", carried, &[before, body], &[]);
        self.differs = outer;
    }

    fn branch(&mut self, cond: ExprId, arms: [&Block; 2], merges: &[Merge]) {
        self.uses("if", &[cond]);
        self.want("if", "condition", cond, Ty::scalar(Scalar::I1));
        let outer = self.differs;
        let differs = self.divergent.contains(cond);
        self.differs |= differs;
        for (i, arm) in arms.into_iter().enumerate() {
            let defined = self.defined.clone();
            self.scope_open(&[arm], &[]);
            for m in merges {
                let value = if i == 0 { m.then } else { m.otherwise };
                self.uses("if", &[value]);
                let wanted = self.ty(m.result);
                self.want("if", "merged value", value, wanted);
                if differs || self.divergent.contains(value) {
                    self.divergent.insert(m.result);
                }
            }
            self.defined = defined;
        }
        self.differs = outer;
        for m in merges {
            self.define(m.result);
        }
    }

    fn expr(&mut self, id: ExprId) {
        let at = format!("{id:?}");
        let Some(expr) = self.kernel.exprs.get(id) else {
            self.report(at, "there is no such value".to_owned());
            return;
        };
        if self.defined.contains(id) {
            self.report(
                at.clone(),
                "is computed where it is already defined".to_owned(),
            );
        }
        let operands = expr.kind.operands();
        if self.uses(&at, &operands)
            && let Err(message) = self.type_rule(&expr.kind, expr.ty)
        {
            self.report(at.clone(), message);
        }
        if let ExprKind::Load { buf, .. } | ExprKind::Gather { buf, .. } = expr.kind {
            self.buffer(&at, buf);
        }
        let differs = matches!(
            expr.kind,
            ExprKind::WorkitemId(_) | ExprKind::WarpShuffle { .. } | ExprKind::Mma { .. }
        );
        if differs || self.any_divergent(&operands) {
            self.divergent.insert(id);
        }
        self.define(id);
    }
}

/// Says that a type is not the wanted one.
fn same(what: &str, found: Ty, wanted: Ty) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what} is {found}, wanted {wanted}"))
    }
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

impl Checker<'_> {
    /// The rule of an expression's operand and result types.
    fn type_rule(&self, kind: &ExprKind, ty: Ty) -> Result<(), String> {
        let of = |id: &ExprId| self.ty(*id);
        match kind {
            ExprKind::Const(_) => Ok(()),
            ExprKind::ConstVector(lanes) => ensure(lanes.len() == usize::from(ty.lanes), || {
                format!("{} constants for {ty}", lanes.len())
            }),
            ExprKind::WorkgroupId(_) | ExprKind::WorkitemId(_) => same("an id", ty, INDEX),
            ExprKind::Stmt => Err("a statement's value is computed by `Let`".to_owned()),
            ExprKind::Unary(op, a) => {
                same("operand", of(a), ty)?;
                let wants_float = !matches!(
                    op,
                    UnaryOp::Not | UnaryOp::Clz | UnaryOp::Ctz | UnaryOp::Popcnt
                );
                ensure(wants_float == ty.scalar.is_float(), || {
                    format!("no {op:?} of {ty}")
                })
            }
            ExprKind::Binary(op, a, b) => {
                same("left operand", of(a), ty)?;
                same("right operand", of(b), ty)?;
                ensure(binary_fits(*op, ty.scalar), || format!("no {op:?} of {ty}"))
            }
            ExprKind::Fma(a, b, c) | ExprKind::FmaExact(a, b, c) => {
                for id in [a, b, c] {
                    same("operand", of(id), ty)?;
                }
                ensure(matches!(ty.scalar, Scalar::F32 | Scalar::F64), || {
                    format!("no fma of {ty}")
                })
            }
            ExprKind::Dot { kind, a, b, c } => {
                same("left operand", of(a), kind.operand(ty))?;
                same("right operand", of(b), kind.operand(ty))?;
                same("start", of(c), ty)?;
                ensure(ty.scalar == Scalar::I32, || format!("no dot in {ty}"))
            }
            ExprKind::Cmp(op, a, b) => {
                same("right operand", of(b), of(a))?;
                same("result", ty, of(a).with_scalar(Scalar::I1))?;
                let float = matches!(
                    op,
                    CmpOp::FEq
                        | CmpOp::FNe
                        | CmpOp::FLt
                        | CmpOp::FLe
                        | CmpOp::FGt
                        | CmpOp::FGe
                        | CmpOp::FUno
                );
                ensure(float == of(a).scalar.is_float(), || {
                    format!("no {op:?} of {}", of(a))
                })
            }
            ExprKind::Select(cond, a, b) => {
                same("first choice", of(a), ty)?;
                same("second choice", of(b), ty)?;
                let lanes = of(cond).lanes;
                ensure(
                    of(cond).scalar == Scalar::I1 && (lanes == 1 || lanes == ty.lanes),
                    || format!("condition is {}, the choices are {ty}", of(cond)),
                )
            }
            ExprKind::Cast(op, a) => cast_rule(*op, of(a), ty),
            ExprKind::Load { .. } | ExprKind::Gather { .. } => self.load_rule(kind, ty),
            ExprKind::Splat(_)
            | ExprKind::Extract(..)
            | ExprKind::Insert(..)
            | ExprKind::Shuffle(..)
            | ExprKind::ReduceLanes(..) => self.lane_rule(kind, ty),
            ExprKind::WarpShuffle { value, lane, .. } => {
                same("offered value", of(value), ty)?;
                same("lane", of(lane), Ty::scalar(Scalar::I32))
            }
            ExprKind::Mma { kind, a, b, c } => mma_rule(*kind, [of(a), of(b), of(c)], ty),
        }
    }

    fn load_rule(&self, kind: &ExprKind, ty: Ty) -> Result<(), String> {
        let (buf, wanted, index, mask) = match kind {
            ExprKind::Load { buf, index } => (*buf, INDEX, *index, None),
            ExprKind::Gather { buf, indices, mask } => {
                (*buf, ty.with_scalar(Scalar::I64), *indices, *mask)
            }
            _ => return Ok(()),
        };
        same("index", self.ty(index), wanted)?;
        if let Some(mask) = mask {
            same("mask", self.ty(mask), ty.with_scalar(Scalar::I1))?;
        }
        match self.kernel.buffers.get(buf) {
            Some(buffer) => ensure(buffer.elem == ty.scalar, || {
                format!("reads {ty} from elements of {}", buffer.elem.name())
            }),
            None => Ok(()),
        }
    }

    fn lane_rule(&self, kind: &ExprKind, ty: Ty) -> Result<(), String> {
        let of = |id: &ExprId| self.ty(*id);
        match kind {
            ExprKind::Splat(a) => same("operand", of(a), Ty::scalar(ty.scalar)),
            ExprKind::Extract(a, lane) => {
                same("result", ty, Ty::scalar(of(a).scalar))?;
                ensure(of(a).is_vector() && *lane < of(a).lanes, || {
                    format!("lane {lane} of {}", of(a))
                })
            }
            ExprKind::Insert(a, b, lane) => {
                same("vector", of(a), ty)?;
                same("value", of(b), Ty::scalar(ty.scalar))?;
                ensure(ty.is_vector() && *lane < ty.lanes, || {
                    format!("lane {lane} of {ty}")
                })
            }
            ExprKind::Shuffle(a, b, lanes) => {
                same("second operand", of(b), of(a))?;
                same("result", ty, Ty::vector(of(a).scalar, lanes.len() as u16))?;
                ensure(lanes.iter().all(|&l| l < 2 * of(a).lanes), || {
                    format!("lanes {lanes:?} of twice {}", of(a))
                })
            }
            ExprKind::ReduceLanes(op, a) => {
                same("result", ty, Ty::scalar(of(a).scalar))?;
                ensure(binary_fits(*op, ty.scalar), || format!("no {op:?} of {ty}"))
            }
            _ => Ok(()),
        }
    }
}

fn binary_fits(op: BinaryOp, scalar: Scalar) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => true,
        BinaryOp::FDiv | BinaryOp::FMin | BinaryOp::FMax | BinaryOp::CopySign => scalar.is_float(),
        BinaryOp::SDiv
        | BinaryOp::UDiv
        | BinaryOp::SRem
        | BinaryOp::URem
        | BinaryOp::SMulHi
        | BinaryOp::UMulHi
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::LShr
        | BinaryOp::AShr
        | BinaryOp::SMin
        | BinaryOp::SMax
        | BinaryOp::UMin
        | BinaryOp::UMax => !scalar.is_float(),
    }
}

fn cast_rule(op: CastOp, from: Ty, to: Ty) -> Result<(), String> {
    if op == CastOp::Bitcast {
        return ensure(from.bits() == to.bits(), || {
            format!("{from} as the bits of {to}")
        });
    }
    let (a, b) = (from.scalar, to.scalar);
    let (narrower, wider) = (b.bits() < a.bits(), b.bits() > a.bits());
    let fits = match op {
        CastOp::Trunc => !a.is_float() && !b.is_float() && narrower,
        CastOp::SExt | CastOp::ZExt => !a.is_float() && !b.is_float() && wider,
        CastOp::SIntToFp | CastOp::UIntToFp => !a.is_float() && b.is_float(),
        CastOp::FpToSIntSat | CastOp::FpToUIntSat => a.is_float() && !b.is_float(),
        CastOp::FpTrunc => a.is_float() && b.is_float() && !wider,
        CastOp::FpExt => a.is_float() && b.is_float() && wider,
        CastOp::Bitcast => true,
    };
    ensure(fits && from.lanes == to.lanes, || {
        format!("{op:?} from {from} to {to}")
    })
}

fn mma_rule(kind: MmaKind, operands: [Ty; 3], ty: Ty) -> Result<(), String> {
    let (a, b, c) = match kind {
        MmaKind::F16 => (
            Ty::vector(Scalar::F16, 8),
            Ty::vector(Scalar::F16, 4),
            Ty::vector(Scalar::F32, 4),
        ),
        MmaKind::BF16 => (
            Ty::vector(Scalar::BF16, 8),
            Ty::vector(Scalar::BF16, 4),
            Ty::vector(Scalar::F32, 4),
        ),
        MmaKind::TF32 => (
            Ty::vector(Scalar::F32, 4),
            Ty::vector(Scalar::F32, 2),
            Ty::vector(Scalar::F32, 4),
        ),
        MmaKind::F64 => (
            Ty::scalar(Scalar::F64),
            Ty::scalar(Scalar::F64),
            Ty::vector(Scalar::F64, 2),
        ),
        MmaKind::S8 => (
            Ty::vector(Scalar::I32, 4),
            Ty::vector(Scalar::I32, 2),
            Ty::vector(Scalar::I32, 4),
        ),
    };
    same("left fragment", operands[0], a)?;
    same("right fragment", operands[1], b)?;
    same("accumulator", operands[2], c)?;
    same("result", ty, c)
}

#[cfg(test)]
mod tests {
    use crate::base::Id;
    use crate::executable::KernelId;
    use crate::executable::Launch;
    use crate::kernel::Axis;
    use crate::kernel::BinaryOp;
    use crate::kernel::BufId;
    use crate::kernel::Buffer;
    use crate::kernel::CmpOp;
    use crate::kernel::Expr;
    use crate::kernel::ExprId;
    use crate::kernel::ExprKind;
    use crate::kernel::INDEX;
    use crate::kernel::Kernel;
    use crate::kernel::KernelBuilder;
    use crate::kernel::Scalar;
    use crate::kernel::Space;
    use crate::kernel::Stmt;
    use crate::kernel::Ty;

    fn built(build: impl FnOnce(&mut KernelBuilder, BufId)) -> Kernel {
        let mut b = KernelBuilder::new("k");
        let out = b.buffer(Buffer {
            name: "out".to_owned(),
            elem: Scalar::F32,
            count: 64,
            space: Space::Global,
            align: 64,
            written: true,
            noalias: true,
        });
        build(&mut b, out);
        let launch = Launch {
            workitems: [64, 1, 1],
            ..Launch::SINGLE
        };
        b.finish(KernelId::from_index(0), launch)
    }

    fn found(kernel: &Kernel) -> Vec<String> {
        super::check(kernel)
            .into_iter()
            .map(|d| d.message)
            .collect()
    }

    #[track_caller]
    fn refused(kernel: &Kernel, words: &str) {
        let found = found(kernel);
        assert!(found.iter().any(|m| m.contains(words)), "{found:?}");
    }

    #[test]
    fn uniform_barriers_pass() {
        let kernel = built(|b, out| {
            let group = b.workgroup_id(Axis::X);
            let zero = b.index(0);
            let first = b.cmp(CmpOp::IEq, group, zero);
            b.if_then(first, |b| b.barrier());
            b.for_range(4, 1, |b, _| b.barrier());
            let one = b.float(Ty::scalar(Scalar::F32), 1.0);
            let item = b.workitem_id(Axis::X);
            b.store(out, item, one);
        });
        assert_eq!(found(&kernel), Vec::<String>::new());
    }

    #[test]
    fn a_barrier_that_not_all_reach_is_refused() {
        let words = "not every workitem of the group comes to the barrier";
        refused(
            &built(|b, _| {
                let item = b.workitem_id(Axis::X);
                let zero = b.index(0);
                let first = b.cmp(CmpOp::IEq, item, zero);
                b.if_then(first, |b| b.barrier());
            }),
            words,
        );
        refused(
            &built(|b, _| {
                let item = b.workitem_id(Axis::X);
                let (zero, one) = (b.index(0), b.index(1));
                b.for_loop((zero, item, one), |b, _| b.barrier());
            }),
            words,
        );
        refused(
            &built(|b, _| {
                let item = b.workitem_id(Axis::X);
                let (zero, one) = (b.index(0), b.index(1));
                b.while_carried(
                    &[item],
                    |b, c| b.cmp(CmpOp::SGt, c[0], zero),
                    |b, c| {
                        b.barrier();
                        vec![b.sub(c[0], one)]
                    },
                );
            }),
            words,
        );
    }

    #[test]
    fn values_stay_in_their_scope() {
        let mut inner = None;
        let kernel = built(|b, out| {
            b.for_range(4, 1, |b, i| {
                let ty = Ty::scalar(Scalar::F32);
                let one = b.float(ty, 1.0);
                inner = Some(b.cast(crate::kernel::CastOp::SIntToFp, i, Scalar::F32));
                b.store(out, i, one);
            });
            let at = b.index(0);
            b.store(out, at, inner.expect("set in the loop"));
        });
        refused(&kernel, "is used where it is not defined");
    }

    fn with_expr(kind: impl FnOnce(ExprId, ExprId) -> ExprKind, ty: Ty) -> Kernel {
        let mut ids = None;
        let mut kernel = built(|b, _| {
            let float = b.float(Ty::scalar(Scalar::F32), 2.0);
            ids = Some((float, b.index(3)));
        });
        let (float, index) = ids.expect("set above");
        let kind = kind(float, index);
        let id = kernel.exprs.push(Expr { kind, ty });
        kernel.body.0.push(Stmt::Let(id));
        kernel
    }

    #[test]
    fn types_must_fit() {
        let f32 = Ty::scalar(Scalar::F32);
        refused(
            &with_expr(|f, i| ExprKind::Binary(BinaryOp::Add, f, i), f32),
            "right operand is i64, wanted f32",
        );
        refused(
            &with_expr(|f, _| ExprKind::Binary(BinaryOp::And, f, f), f32),
            "no And of f32",
        );
        refused(
            &with_expr(
                |f, _| ExprKind::Load {
                    buf: BufId::from_index(0),
                    index: f,
                },
                f32,
            ),
            "index is f32, wanted i64",
        );
        refused(
            &with_expr(
                |_, i| ExprKind::Load {
                    buf: BufId::from_index(7),
                    index: i,
                },
                f32,
            ),
            "there is no buffer b7",
        );
        refused(
            &with_expr(
                |_, i| ExprKind::Cast(crate::kernel::CastOp::Trunc, i),
                INDEX,
            ),
            "Trunc from i64 to i64",
        );
    }

    #[test]
    fn launches_have_bounds() {
        let mut kernel = built(|_, _| {});
        kernel.launch.workitems = [32, 33, 1];
        refused(&kernel, "1056 workitems, at most 1024 fit a group");
        kernel.launch.workitems = [0, 1, 1];
        refused(&kernel, "a launch size is zero");
    }
}
