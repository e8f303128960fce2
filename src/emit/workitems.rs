//! Runs GPU kernels in tests, workitem by workitem, straight from the kernel IR: a thread for each
//! workitem of a group when they wait for one another, one after the other when they do not.
//!
//! Every value is a list of lanes, each lane its bits. Of the matrix products only those of 16-bit
//! floats are known here.

use std::sync::Barrier;
use std::sync::Mutex;

use crate::base::Arena;
use crate::base::Id;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::Block;
use crate::kernel::BufId;
use crate::kernel::Carried;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::Expr;
use crate::kernel::ExprId;
use crate::kernel::ExprKind;
use crate::kernel::Kernel;
use crate::kernel::MmaKind;
use crate::kernel::Scalar;
use crate::kernel::ShuffleKind;
use crate::kernel::Space;
use crate::kernel::Stmt;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::literal::number;
use crate::shape::PrimitiveType;

type Lanes = Vec<u64>;

/// What the workitems of a group share.
struct Group<'k> {
    kernel: &'k Kernel,
    number: u64,
    memory: &'k Mutex<Vec<Vec<u8>>>,
    barrier: Barrier,
    warps: Vec<Warp>,
}

/// Values that the workitems of a warp offer one another.
struct Warp {
    offered: Mutex<Vec<Lanes>>,
    barrier: Barrier,
}

struct Item<'g, 'k> {
    group: &'g Group<'k>,
    number: u64,
    values: Vec<Lanes>,
    private: Vec<Vec<u8>>,
}

/// Runs every workgroup of a launch on the parameters' bytes.
pub(crate) fn run(kernel: &Kernel, params: &mut [Vec<u8>]) {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut next = params.iter();
    for (_, buffer) in kernel.buffers.iter() {
        let size = (buffer.count * buffer.elem.bytes()) as usize;
        all.push(match buffer.space {
            Space::Global => next.next().expect("a parameter").clone(),
            Space::Shared | Space::Private => vec![0xee; size],
            Space::Kept => vec![0; size],
        });
    }
    let memory = Mutex::new(all);
    let items = u64::from(kernel.launch.workitems[0]);
    let waits = has_waits(&kernel.exprs, &kernel.body);
    for number in 0..kernel.launch.workgroups[0] {
        let size = if waits { items as usize } else { 1 };
        let group = Group {
            kernel,
            number,
            memory: &memory,
            barrier: Barrier::new(size),
            warps: (0..size.div_ceil(32))
                .map(|warp| {
                    let width = 32.min(size - warp * 32);
                    Warp {
                        offered: Mutex::new(vec![Lanes::new(); 32]),
                        barrier: Barrier::new(width),
                    }
                })
                .collect(),
        };
        if waits {
            std::thread::scope(|scope| {
                for item in 0..items {
                    let group = &group;
                    std::thread::Builder::new()
                        .stack_size(1 << 18)
                        .spawn_scoped(scope, move || Item::new(group, item).block(&kernel.body))
                        .expect("a thread");
                }
            });
        } else {
            for item in 0..items {
                Item::new(&group, item).block(&kernel.body);
            }
        }
    }
    let all = memory.into_inner().expect("no thread failed");
    let globals = kernel.buffers.iter().zip(all);
    let globals = globals.filter(|((_, b), _)| b.space == Space::Global);
    for (param, (_, bytes)) in params.iter_mut().zip(globals) {
        *param = bytes;
    }
}

fn has_waits(exprs: &Arena<ExprId, Expr>, block: &Block) -> bool {
    block.0.iter().any(|stmt| match stmt {
        Stmt::Barrier => true,
        Stmt::Let(id) => matches!(
            exprs[*id].kind,
            ExprKind::WarpShuffle { .. } | ExprKind::Mma { .. }
        ),
        Stmt::For { body, .. } => has_waits(exprs, body),
        Stmt::While { before, body, .. } => has_waits(exprs, before) || has_waits(exprs, body),
        Stmt::If {
            then, otherwise, ..
        } => has_waits(exprs, then) || has_waits(exprs, otherwise),
        _ => false,
    })
}

/// Little-endian bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn mask(bits: u32) -> u64 {
    if bits == 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

fn to_f64(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::F64 => f64::from_bits(bits),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F16 => half::f16::from_bits(bits as u16).to_f64(),
        _ => half::bf16::from_bits(bits as u16).to_f64(),
    }
}

fn from_f64(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::F64 => value.to_bits(),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        // Rounded once, which the same function of `half` does not do everywhere.
        Scalar::F16 => number::float_from_f64(PrimitiveType::F16, value),
        _ => number::float_from_f64(PrimitiveType::BF16, value),
    }
}

fn unary(op: UnaryOp, scalar: Scalar, x: u64) -> u64 {
    let bits = scalar.bits();
    let float = |f: fn(f64) -> f64| from_f64(scalar, f(to_f64(scalar, x)));
    match op {
        UnaryOp::Neg => x ^ (1 << (bits - 1)),
        UnaryOp::Abs => x & (mask(bits) >> 1),
        UnaryOp::Sqrt => float(f64::sqrt),
        UnaryOp::Floor => float(f64::floor),
        UnaryOp::Ceil => float(f64::ceil),
        UnaryOp::Trunc => float(f64::trunc),
        UnaryOp::RoundEven => float(f64::round_ties_even),
        UnaryOp::Not => !x & mask(bits),
        UnaryOp::Clz => u64::from(x.leading_zeros()) - u64::from(64 - bits),
        UnaryOp::Ctz => u64::from(x.trailing_zeros().min(bits)),
        UnaryOp::Popcnt => u64::from(x.count_ones()),
    }
}

fn binary(op: BinaryOp, scalar: Scalar, x: u64, y: u64) -> u64 {
    let bits = scalar.bits();
    if scalar.is_float() {
        let (a, b) = (to_f64(scalar, x), to_f64(scalar, y));
        let value = match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::FDiv => a / b,
            BinaryOp::FMin | BinaryOp::FMax if a.is_nan() || b.is_nan() => f64::NAN,
            BinaryOp::FMin => a.min(b),
            BinaryOp::FMax => a.max(b),
            BinaryOp::CopySign => a.copysign(b),
            other => panic!("{other:?} of floats"),
        };
        return from_f64(scalar, value);
    }
    let (a, b) = (signed(x, bits), signed(y, bits));
    let value = match op {
        BinaryOp::Add => x.wrapping_add(y),
        BinaryOp::Sub => x.wrapping_sub(y),
        BinaryOp::Mul => x.wrapping_mul(y),
        BinaryOp::SDiv => a.wrapping_div(b) as u64,
        BinaryOp::UDiv => x / y,
        BinaryOp::SRem => a.wrapping_rem(b) as u64,
        BinaryOp::URem => x % y,
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        BinaryOp::Shl => x << y,
        BinaryOp::LShr => x >> y,
        BinaryOp::AShr => (a >> y) as u64,
        BinaryOp::SMin => a.min(b) as u64,
        BinaryOp::SMax => a.max(b) as u64,
        BinaryOp::UMin => x.min(y),
        BinaryOp::UMax => x.max(y),
        BinaryOp::SMulHi => ((i128::from(a) * i128::from(b)) >> bits) as u64,
        BinaryOp::UMulHi => ((u128::from(x) * u128::from(y)) >> bits) as u64,
        other => panic!("{other:?} of integers"),
    };
    value & mask(bits)
}

fn relation(op: CmpOp, scalar: Scalar, x: u64, y: u64) -> bool {
    let bits = scalar.bits();
    let (a, b) = (signed(x, bits), signed(y, bits));
    let (f, g) = if scalar.is_float() {
        (to_f64(scalar, x), to_f64(scalar, y))
    } else {
        (0.0, 0.0)
    };
    match op {
        CmpOp::IEq => x == y,
        CmpOp::INe => x != y,
        CmpOp::SLt => a < b,
        CmpOp::SLe => a <= b,
        CmpOp::SGt => a > b,
        CmpOp::SGe => a >= b,
        CmpOp::ULt => x < y,
        CmpOp::ULe => x <= y,
        CmpOp::UGt => x > y,
        CmpOp::UGe => x >= y,
        CmpOp::FEq => f == g,
        CmpOp::FNe => f != g,
        CmpOp::FLt => f < g,
        CmpOp::FLe => f <= g,
        CmpOp::FGt => f > g,
        CmpOp::FGe => f >= g,
        CmpOp::FUno => f.is_nan() || g.is_nan(),
    }
}

fn cast(op: CastOp, from: Scalar, to: Scalar, x: u64) -> u64 {
    let number = signed(x, from.bits());
    let value = match op {
        CastOp::Trunc | CastOp::ZExt => x,
        CastOp::SExt => number as u64,
        CastOp::SIntToFp => return from_f64(to, number as f64),
        CastOp::UIntToFp => return from_f64(to, x as f64),
        CastOp::FpToSIntSat => {
            let limit = 2f64.powi(to.bits() as i32 - 1);
            let value = to_f64(from, x).clamp(-limit, limit);
            (value as i64).clamp(i64::MIN >> (64 - to.bits()), i64::MAX >> (64 - to.bits())) as u64
        }
        CastOp::FpToUIntSat => (to_f64(from, x) as u64).min(mask(to.bits())),
        CastOp::FpTrunc | CastOp::FpExt => return from_f64(to, to_f64(from, x)),
        CastOp::Bitcast => x,
    };
    value & mask(to.bits())
}

impl<'g, 'k> Item<'g, 'k> {
    fn new(group: &'g Group<'k>, number: u64) -> Self {
        let buffers = group.kernel.buffers.iter();
        Self {
            group,
            number,
            values: vec![Lanes::new(); group.kernel.exprs.len()],
            private: buffers
                .map(|(_, b)| match b.space {
                    Space::Private => vec![0xee; (b.count * b.elem.bytes()) as usize],
                    Space::Global | Space::Shared | Space::Kept => Vec::new(),
                })
                .collect(),
        }
    }
    fn ty(&self, id: ExprId) -> Ty {
        self.group.kernel.exprs[id].ty
    }
    fn get(&self, id: ExprId) -> Lanes {
        self.values[id.index()].clone()
    }
    fn one(&self, id: ExprId) -> u64 {
        self.values[id.index()][0]
    }
    fn set(&mut self, id: ExprId, lanes: Lanes) {
        self.values[id.index()] = lanes;
    }

    /// Reads or replaces one element.
    fn element<R>(&mut self, buf: BufId, at: u64, access: impl FnOnce(&mut [u8]) -> R) -> R {
        let buffer = &self.group.kernel.buffers[buf];
        assert!(
            at < buffer.count,
            "element {at} of {} ({})",
            buffer.name,
            buffer.count
        );
        let width = buffer.elem.bytes() as usize;
        let range = at as usize * width..(at as usize + 1) * width;
        if buffer.space == Space::Private {
            return access(&mut self.private[buf.index()][range]);
        }
        let mut memory = self.group.memory.lock().expect("no thread failed");
        access(&mut memory[buf.index()][range])
    }
    fn load(&mut self, buf: BufId, at: u64) -> u64 {
        self.element(buf, at, |bytes| word(bytes))
    }
    fn store(&mut self, buf: BufId, at: u64, value: u64) {
        self.element(buf, at, |bytes| {
            let width = bytes.len();
            bytes.copy_from_slice(&value.to_le_bytes()[..width]);
        });
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            self.stmt(stmt);
        }
    }

    /// Before the first step of a loop.
    fn enter(&mut self, carried: &[Carried]) {
        for c in carried {
            let init = self.get(c.init);
            self.set(c.phi, init);
        }
    }

    /// After a step.
    fn next(&mut self, carried: &[Carried]) {
        let values: Vec<Lanes> = carried.iter().map(|c| self.get(c.next)).collect();
        for (c, value) in carried.iter().zip(values) {
            self.set(c.phi, value);
        }
    }

    /// After the last step.
    fn leave(&mut self, carried: &[Carried]) {
        for c in carried {
            let last = self.get(c.phi);
            self.set(c.result, last);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(id) => {
                let lanes = self.expr(*id);
                self.set(*id, lanes);
            }
            Stmt::Store {
                buf,
                index,
                value,
                mask,
            } => {
                let at = self.one(*index);
                let mask = mask.map(|m| self.get(m));
                for (lane, value) in self.get(*value).into_iter().enumerate() {
                    if mask.as_ref().is_none_or(|m| m[lane] != 0) {
                        self.store(*buf, at + lane as u64, value);
                    }
                }
            }
            Stmt::Scatter {
                buf,
                indices,
                value,
                mask,
            } => {
                let (at, mask) = (self.get(*indices), mask.map(|m| self.get(m)));
                for (lane, value) in self.get(*value).into_iter().enumerate() {
                    if mask.as_ref().is_none_or(|m| m[lane] != 0) {
                        self.store(*buf, at[lane], value);
                    }
                }
            }
            Stmt::AtomicRmw {
                op,
                buf,
                index,
                value,
            } => {
                let (at, value) = (self.one(*index), self.one(*value));
                let scalar = self.group.kernel.buffers[*buf].elem;
                self.element(*buf, at, |bytes| {
                    let old = word(bytes);
                    let new = binary(*op, scalar, old, value);
                    let width = bytes.len();
                    bytes.copy_from_slice(&new.to_le_bytes()[..width]);
                });
            }
            Stmt::AtomicCas {
                buf,
                index,
                expected,
                desired,
                old,
            } => {
                let (at, expected, desired) =
                    (self.one(*index), self.one(*expected), self.one(*desired));
                let found = self.element(*buf, at, |bytes| {
                    let found = word(bytes);
                    if found == expected {
                        let width = bytes.len();
                        bytes.copy_from_slice(&desired.to_le_bytes()[..width]);
                    }
                    found
                });
                self.set(*old, vec![found]);
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                carried,
                body,
                ..
            } => {
                self.enter(carried);
                let (mut at, end, step) = (
                    self.one(*start) as i64,
                    self.one(*end) as i64,
                    self.one(*step) as i64,
                );
                while at < end {
                    self.set(*var, vec![at as u64]);
                    self.block(body);
                    self.next(carried);
                    at += step;
                }
                self.leave(carried);
            }
            Stmt::While {
                carried,
                before,
                cond,
                body,
            } => {
                self.enter(carried);
                loop {
                    self.block(before);
                    if self.one(*cond) == 0 {
                        break;
                    }
                    self.block(body);
                    self.next(carried);
                }
                self.leave(carried);
            }
            Stmt::If {
                cond,
                then,
                otherwise,
                merges,
            } => {
                let holds = self.one(*cond) != 0;
                self.block(if holds { then } else { otherwise });
                for m in merges {
                    let value = self.get(if holds { m.then } else { m.otherwise });
                    self.set(m.result, value);
                }
            }
            Stmt::Barrier => {
                self.group.barrier.wait();
            }
            Stmt::Prefetch { .. } => {}
            Stmt::Tile(op) => panic!("GPUs have no tiles: {op:?}"),
        }
    }

    fn expr(&mut self, id: ExprId) -> Lanes {
        let kernel = self.group.kernel;
        let ty = kernel.exprs[id].ty;
        let count = usize::from(ty.lanes);
        match kernel.exprs[id].kind.clone() {
            ExprKind::Const(bits) => vec![bits; count],
            ExprKind::ConstVector(lanes) => lanes.to_vec(),
            ExprKind::WorkgroupId(axis) => vec![if axis == Axis::X {
                self.group.number
            } else {
                0
            }],
            ExprKind::WorkitemId(axis) => vec![if axis == Axis::X { self.number } else { 0 }],
            ExprKind::Unary(op, a) => self
                .get(a)
                .into_iter()
                .map(|x| unary(op, ty.scalar, x))
                .collect(),
            ExprKind::Binary(op, a, b) => {
                let pairs = self.get(a).into_iter().zip(self.get(b));
                pairs.map(|(x, y)| binary(op, ty.scalar, x, y)).collect()
            }
            ExprKind::Fma(a, b, c) | ExprKind::FmaExact(a, b, c) => {
                let (a, b, c) = (self.get(a), self.get(b), self.get(c));
                let fma = |i: usize| match ty.scalar {
                    Scalar::F32 => {
                        let f = |x: u64| f32::from_bits(x as u32);
                        u64::from(f(a[i]).mul_add(f(b[i]), f(c[i])).to_bits())
                    }
                    _ => f64::from_bits(a[i])
                        .mul_add(f64::from_bits(b[i]), f64::from_bits(c[i]))
                        .to_bits(),
                };
                (0..count).map(fma).collect()
            }
            ExprKind::Cmp(op, a, b) => {
                let scalar = self.ty(a).scalar;
                let pairs = self.get(a).into_iter().zip(self.get(b));
                pairs
                    .map(|(x, y)| u64::from(relation(op, scalar, x, y)))
                    .collect()
            }
            ExprKind::Select(cond, a, b) => {
                let (cond, a, b) = (self.get(cond), self.get(a), self.get(b));
                let picks = (0..count).map(|i| {
                    if cond[i.min(cond.len() - 1)] != 0 {
                        a[i]
                    } else {
                        b[i]
                    }
                });
                picks.collect()
            }
            ExprKind::Cast(CastOp::Bitcast, a) if self.ty(a).lanes != ty.lanes => {
                panic!("lanes are regrouped")
            }
            ExprKind::Cast(op, a) => {
                let from = self.ty(a).scalar;
                self.get(a)
                    .into_iter()
                    .map(|x| cast(op, from, ty.scalar, x))
                    .collect()
            }
            ExprKind::Load { buf, index } => {
                let at = self.one(index);
                (0..count as u64)
                    .map(|lane| self.load(buf, at + lane))
                    .collect()
            }
            ExprKind::Gather { buf, indices, mask } => {
                let (at, mask) = (self.get(indices), mask.map(|m| self.get(m)));
                let mut out = Lanes::new();
                for lane in 0..count {
                    let reads = mask.as_ref().is_none_or(|m| m[lane] != 0);
                    out.push(if reads { self.load(buf, at[lane]) } else { 0 });
                }
                out
            }
            ExprKind::Splat(a) => vec![self.one(a); count],
            ExprKind::Extract(a, lane) => vec![self.get(a)[usize::from(lane)]],
            ExprKind::Insert(a, b, lane) => {
                let mut lanes = self.get(a);
                lanes[usize::from(lane)] = self.one(b);
                lanes
            }
            ExprKind::Shuffle(a, b, picks) => {
                let both = [self.get(a), self.get(b)].concat();
                picks.iter().map(|&p| both[usize::from(p)]).collect()
            }
            ExprKind::ReduceLanes(op, a) => {
                let lanes = self.get(a);
                let sum = lanes.into_iter().reduce(|x, y| binary(op, ty.scalar, x, y));
                vec![sum.expect("a lane")]
            }
            ExprKind::WarpShuffle { kind, value, lane } => {
                let (value, lane) = (self.get(value), self.one(lane));
                self.exchange(kind, value, lane)
            }
            ExprKind::Mma {
                kind: kind @ (MmaKind::F16 | MmaKind::BF16),
                a,
                b,
                c,
            } => {
                let scalar = if kind == MmaKind::F16 {
                    Scalar::F16
                } else {
                    Scalar::BF16
                };
                self.product(scalar, self.get(a), self.get(b), &self.get(c))
            }
            ExprKind::Stmt | ExprKind::Dot { .. } | ExprKind::Mma { .. } => {
                panic!("{:?} is not run here", kernel.exprs[id].kind)
            }
        }
    }

    /// What every workitem of the warp offers.
    fn offers(&self, value: Lanes) -> Vec<Lanes> {
        let own = (self.number % 32) as usize;
        let warp = &self.group.warps[(self.number / 32) as usize];
        warp.offered.lock().expect("no thread failed")[own] = value;
        warp.barrier.wait();
        let all = warp.offered.lock().expect("no thread failed").clone();
        warp.barrier.wait();
        all
    }

    fn exchange(&self, kind: ShuffleKind, value: Lanes, lane: u64) -> Lanes {
        let own = (self.number % 32) as usize;
        let from = match kind {
            ShuffleKind::Xor => own ^ lane as usize,
            ShuffleKind::Down => own + lane as usize,
            ShuffleKind::Up => own.wrapping_sub(lane as usize),
            ShuffleKind::Index => lane as usize,
        };
        let all = self.offers(value.clone());
        all.get(from).cloned().unwrap_or(value)
    }

    /// m16n8k16 of 16-bit floats: the fragments' places are those of the PTX manual.
    fn product(&self, scalar: Scalar, a: Lanes, b: Lanes, c: &Lanes) -> Lanes {
        let all = self.offers([a, b].concat());
        let (group, pair) = ((self.number % 32 / 4) as usize, (self.number % 4) as usize);
        let left = |row: usize, k: usize| {
            let slot = 4 * (k / 8) + 2 * (row / 8) + k % 2;
            to_f64(scalar, all[row % 8 * 4 + k % 8 / 2][slot]) as f32
        };
        let right = |k: usize, column: usize| {
            let slot = 8 + 2 * (k / 8) + k % 2;
            to_f64(scalar, all[column * 4 + k % 8 / 2][slot]) as f32
        };
        (0..4)
            .map(|slot| {
                let (row, column) = (group + slot / 2 * 8, pair * 2 + slot % 2);
                let start = f32::from_bits(c[slot] as u32);
                let sum = (0..16).fold(start, |sum, k| left(row, k).mul_add(right(k, column), sum));
                u64::from(sum.to_bits())
            })
            .collect()
    }
}
