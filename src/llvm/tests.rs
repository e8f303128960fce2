//! Small kernels through LLVM: run on this machine, assembled for GPUs, refused where they should.

use crate::base::Id;
use crate::executable::Code;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::executable::Launch;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::Buffer;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::Kernel;
use crate::kernel::KernelBuilder;
use crate::kernel::MmaKind;
use crate::kernel::Scalar;
use crate::kernel::ShuffleKind;
use crate::kernel::Space;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::kernel::Unroll;
use crate::llvm::Assemble;
use crate::llvm::Options;
use crate::llvm::compile;
use crate::llvm::ptxas;
use crate::llvm::testing;
use crate::target::CapabilitySuffix;
use crate::target::Target;

fn param(
    b: &mut KernelBuilder,
    name: &str,
    elem: Scalar,
    count: u64,
    written: bool,
) -> crate::kernel::BufId {
    b.buffer(Buffer {
        name: name.to_owned(),
        elem,
        count,
        space: Space::Global,
        align: 64,
        written,
        noalias: true,
    })
}

/// Numbers that minimum and maximum treat specially, and some more.
const SPECIALS: [f32; 8] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    2.5,
];

/// The first kernel of a program, launched by itself.
fn single(b: KernelBuilder) -> Kernel {
    b.finish(KernelId::from_index(0), Launch::SINGLE)
}

/// The kernel as number `i` of a program.
fn numbered(i: usize, kernel: Kernel) -> Kernel {
    let (id, name) = (KernelId::from_index(i), format!("k{i}"));
    Kernel { id, name, ..kernel }
}

/// Numbers of the kernels of an image, in order.
fn numbers(image: &KernelImage) -> Vec<usize> {
    image.kernels.iter().map(|id| id.index()).collect()
}

/// A kernel that applies `f` to `n` elements, `lanes` at a time.
pub(crate) fn map_kernel(
    name: &str,
    (from, to): (Scalar, Scalar),
    n: u64,
    lanes: u16,
    f: impl FnOnce(&mut KernelBuilder, ExprId) -> ExprId,
) -> Kernel {
    let mut b = KernelBuilder::new(name);
    let x = param(&mut b, "x", from, n, false);
    let out = param(&mut b, "out", to, n, true);
    b.for_range(n as i64, i64::from(lanes), |b, i| {
        let v = b.load(x, i, lanes);
        let r = f(b, v);
        b.store(out, i, r);
    });
    single(b)
}

fn map_f32(
    target: &Target,
    lanes: u16,
    values: &[f32],
    f: impl FnOnce(&mut KernelBuilder, ExprId) -> ExprId,
) -> Vec<f32> {
    let kernel = map_kernel(
        "map",
        (Scalar::F32, Scalar::F32),
        values.len() as u64,
        lanes,
        f,
    );
    let mut buffers = [testing::bytes_f32(values), vec![0; values.len() * 4]];
    testing::run(&kernel, target, &mut buffers);
    testing::f32s(&buffers[1])
}

#[test]
fn elementwise_kernel_runs() {
    let values: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let out = map_f32(&testing::x86_v3(), 8, &values, |b, v| {
        let two = b.float(b.ty(v), 2.0);
        b.fma(v, two, v)
    });
    let wanted: Vec<f32> = values.iter().map(|v| v * 3.0).collect();
    assert_eq!(out, wanted);
}

#[test]
fn minimum_and_maximum_follow_ieee() {
    for target in [testing::x86_v3(), testing::x86_v1()] {
        for &other in &SPECIALS {
            for (op, larger) in [(BinaryOp::FMin, false), (BinaryOp::FMax, true)] {
                let out = map_f32(&target, 4, &SPECIALS, |b, v| {
                    let c = b.float(b.ty(v), f64::from(other));
                    b.binary(op, v, c)
                });
                for (&a, &got) in SPECIALS.iter().zip(&out) {
                    let wanted = if a.is_nan() || other.is_nan() {
                        f32::NAN
                    } else if (a == other && a.is_sign_negative() != larger)
                        || (a < other) != larger && a != other
                    {
                        a
                    } else {
                        other
                    };
                    assert!(
                        got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan(),
                        "{op:?}({a}, {other}) = {got}, wanted {wanted}"
                    );
                }
            }
        }
    }
}

#[test]
fn minimum_of_two_vectors_follows_ieee() {
    for (op, larger) in [(BinaryOp::FMin, false), (BinaryOp::FMax, true)] {
        for shift in 0..8u16 {
            let out = map_f32(&testing::x86_v3(), 8, &SPECIALS, |b, v| {
                let lanes: Vec<u16> = (0..8).map(|i| (i + shift) % 8).collect();
                let w = b.shuffle(v, v, &lanes);
                b.binary(op, v, w)
            });
            for (i, got) in out.into_iter().enumerate() {
                let (a, c) = (SPECIALS[i], SPECIALS[(i + usize::from(shift)) % 8]);
                let a_first = a < c || a == c && a.is_sign_negative();
                let wanted = if a_first == larger { c } else { a };
                let is_nan = a.is_nan() || c.is_nan();
                assert!(
                    is_nan && got.is_nan() || got.to_bits() == wanted.to_bits(),
                    "{op:?}({a}, {c}) = {got}"
                );
            }
        }
    }
}

#[test]
fn conversions_to_integers_saturate() {
    let values = [
        0.0f32,
        -0.5,
        1.9,
        -1.9,
        127.5,
        128.0,
        -129.0,
        255.9,
        256.0,
        32767.9,
        65536.0,
        2147483500.0,
        2147483648.0,
        -2147483648.0,
        -3e9,
        4294967000.0,
        4294967296.0,
        1e20,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        3e9,
        2147483647.0,
        -32769.0,
    ];
    for target in [testing::x86_v3(), testing::x86_v1(), testing::x86_v4()] {
        for scalar in [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64] {
            for op in [CastOp::FpToSIntSat, CastOp::FpToUIntSat] {
                let kernel = map_kernel("cast", (Scalar::F32, scalar), 24, 8, |b, v| {
                    b.cast(op, v, scalar)
                });
                let size = scalar.bytes() as usize;
                let mut buffers = [testing::bytes_f32(&values), vec![0; 24 * size]];
                if target.name() == "sapphirerapids" {
                    testing::object(&[kernel], &target);
                    continue;
                }
                testing::run(&kernel, &target, &mut buffers);
                for (&x, got) in values.iter().zip(buffers[1].chunks(size)) {
                    let wanted: i64 = match (scalar, op) {
                        (Scalar::I8, CastOp::FpToSIntSat) => i64::from(x as i8),
                        (Scalar::I8, _) => i64::from(x as u8),
                        (Scalar::I16, CastOp::FpToSIntSat) => i64::from(x as i16),
                        (Scalar::I16, _) => i64::from(x as u16),
                        (Scalar::I32, CastOp::FpToSIntSat) => i64::from(x as i32),
                        (Scalar::I32, _) => i64::from(x as u32),
                        (_, CastOp::FpToSIntSat) => x as i64,
                        _ => x as u64 as i64,
                    };
                    assert_eq!(
                        got,
                        &wanted.to_le_bytes()[..size],
                        "{op:?} {x} {scalar:?} {}",
                        target.name()
                    );
                }
            }
        }
    }
}

#[test]
fn rounding_is_the_same_with_and_without_instructions() {
    let values = [
        0.0f32,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.49999997,
        8388607.5,
        -8388608.0,
        1e30,
        f32::INFINITY,
        -0.3,
        0.7,
        3.99,
        -3.99,
    ];
    let cases: [(UnaryOp, fn(f32) -> f32); 4] = [
        (UnaryOp::Floor, f32::floor),
        (UnaryOp::Ceil, f32::ceil),
        (UnaryOp::Trunc, f32::trunc),
        (UnaryOp::RoundEven, f32::round_ties_even),
    ];
    for target in [testing::x86_v3(), testing::x86_v1()] {
        for (op, wanted) in cases {
            let out = map_f32(&target, 4, &values, |b, v| b.unary(op, v));
            for (&x, got) in values.iter().zip(out) {
                assert_eq!(
                    got.to_bits(),
                    wanted(x).to_bits(),
                    "{op:?}({x}) on {}",
                    target.name()
                );
            }
        }
    }
}

/// Every f16 to f32, and f32 near every f16 and between each two, back.
#[test]
fn half_conversions_are_exact_without_instructions() {
    for target in [testing::x86_v3(), testing::x86_v1()] {
        let kernel = map_kernel("widen", (Scalar::F16, Scalar::F32), 65536, 8, |b, v| {
            b.cast(CastOp::FpExt, v, Scalar::F32)
        });
        let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut buffers = [all, vec![0; 4 * 65536]];
        testing::run(&kernel, &target, &mut buffers);
        let wide = testing::f32s(&buffers[1]);
        for (bits, got) in (0..=u16::MAX).zip(&wide) {
            let wanted = half::f16::from_bits(bits).to_f32();
            assert!(
                got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan(),
                "{bits:#x}"
            );
        }
        let mut points = Vec::new();
        for pair in wide.windows(2) {
            let middle = (pair[0] + pair[1]) / 2.0;
            for near in [-1i32, 0, 1] {
                points.push(f32::from_bits(middle.to_bits().wrapping_add(near as u32)));
            }
        }
        points.extend([
            1e-10,
            -1e-10,
            65519.9,
            65520.0,
            1e30,
            f32::NAN,
            f32::INFINITY,
        ]);
        points.resize(points.len().next_multiple_of(8), 0.0);
        for (to, reference) in [
            (
                Scalar::F16,
                (|v| half::f16::from_f32(v).to_bits()) as fn(f32) -> u16,
            ),
            (Scalar::BF16, |v| half::bf16::from_f32(v).to_bits()),
        ] {
            let kernel = map_kernel(
                "narrow",
                (Scalar::F32, to),
                points.len() as u64,
                8,
                |b, v| b.cast(CastOp::FpTrunc, v, to),
            );
            let mut buffers = [testing::bytes_f32(&points), vec![0; 2 * points.len()]];
            testing::run(&kernel, &target, &mut buffers);
            for (&x, got) in points.iter().zip(buffers[1].chunks(2)) {
                let got = u16::from_le_bytes([got[0], got[1]]);
                assert!(
                    got == reference(x) || x.is_nan(),
                    "{to:?}({x:e}): {got:#x} {:#x}",
                    reference(x)
                );
            }
        }
    }
}

#[test]
fn f64_to_half_rounds_once() {
    // Just above the middle of two f16, by less than f32 can tell.
    let values = [
        1.0 + 2f64.powi(-11) + 2f64.powi(-40),
        1.0 + 2f64.powi(-11),
        65520.0 - 1e-9,
        1e300,
        -1e-300,
        0.1,
        3.0,
        -7.25,
    ];
    let kernel = map_kernel("narrow", (Scalar::F64, Scalar::F16), 8, 4, |b, v| {
        b.cast(CastOp::FpTrunc, v, Scalar::F16)
    });
    let mut buffers = [testing::bytes_f64(&values), vec![0; 16]];
    testing::run(&kernel, &testing::x86_v3(), &mut buffers);
    let wanted = [
        0x3c01u16, 0x3c00, 0x7bff, 0x7c00, 0x8000, 0x2e66, 0x4200, 0xc740,
    ];
    for (got, wanted) in buffers[1].chunks(2).zip(wanted) {
        assert_eq!(u16::from_le_bytes([got[0], got[1]]), wanted);
    }
}

#[test]
fn loops_carry_values_and_conditions_merge() {
    let mut b = KernelBuilder::new("control");
    let out = param(&mut b, "out", Scalar::I64, 4, true);
    let (zero, one, ten) = (b.index(0), b.index(1), b.index(10));
    // Sum of 0..10 whose bounds are constants, one written out, one empty.
    for (slot, (end, unroll)) in [
        (ten, Unroll::Auto),
        (ten, Unroll::Full),
        (zero, Unroll::Auto),
    ]
    .into_iter()
    .enumerate()
    {
        let sum = b.for_carried((zero, end, one), &[zero], unroll, |b, i, c| {
            let is_odd = b.rem_const(i, 2);
            let odd = b.cmp(CmpOp::IEq, is_odd, one);
            b.if_else(odd, |b| vec![b.add(c[0], i)], |_| vec![c[0]])
        });
        let at = b.index(slot as i64);
        b.store(out, at, sum[0]);
    }
    // Collatz steps from 27.
    let start = b.index(27);
    let steps = b.while_carried(
        &[start, zero],
        |b, c| b.cmp(CmpOp::INe, c[0], one),
        |b, c| {
            let low = b.binary(BinaryOp::And, c[0], one);
            let odd = b.cmp(CmpOp::IEq, low, one);
            let three = b.mul_const(c[0], 3);
            let up = b.add_const(three, 1);
            let down = b.div_const(c[0], 2);
            vec![b.select(odd, up, down), b.add_const(c[1], 1)]
        },
    );
    let at = b.index(3);
    b.store(out, at, steps[1]);
    let kernel = single(b);
    let mut buffers = [vec![0; 32]];
    testing::run(&kernel, &testing::x86_v3(), &mut buffers);
    let got: Vec<i64> = buffers[0]
        .chunks(8)
        .map(|c| i64::from_le_bytes(c.try_into().expect("8")))
        .collect();
    assert_eq!(got, [25, 25, 0, 111]);
}

#[test]
fn workgroups_masks_gathers_and_lanes() {
    for target in [testing::x86_v3(), testing::x86_v1()] {
        let mut b = KernelBuilder::new("mixed");
        let x = param(&mut b, "x", Scalar::F32, 16, false);
        let out = param(&mut b, "out", Scalar::F32, 16, true);
        let group = b.workgroup_id(Axis::X);
        let base = b.mul_const(group, 8);
        let lanes = b.lane_ids(Ty::vector(Scalar::I64, 8));
        let fifteen = b.int(Ty::vector(Scalar::I64, 8), 15);
        let from = b.add(lanes, base);
        let reversed = b.sub(fifteen, from);
        let five = b.int(Ty::vector(Scalar::I64, 8), 5);
        let mask = b.cmp(CmpOp::SLt, lanes, five);
        let v = b.gather(x, reversed, Some(mask));
        let sum = b.reduce_lanes(BinaryOp::Add, v);
        let v = b.add(v, sum);
        let three = b.int(Ty::vector(Scalar::I64, 8), 3);
        let upper = b.cmp(CmpOp::SGe, lanes, three);
        b.store_masked(out, base, v, upper);
        let launch = Launch {
            workgroups: [2, 1, 1],
            ..Launch::SINGLE
        };
        let kernel = b.finish(KernelId::from_index(0), launch);
        let values: Vec<f32> = (0..16).map(|i| (i * i) as f32).collect();
        let mut buffers = [testing::bytes_f32(&values), testing::bytes_f32(&[-1.0; 16])];
        testing::run(&kernel, &target, &mut buffers);
        let got = testing::f32s(&buffers[1]);
        for g in 0..2 {
            let picked: Vec<f32> = (0..8)
                .map(|i| if i < 5 { values[15 - 8 * g - i] } else { 0.0 })
                .collect();
            let sum: f32 = picked.iter().sum();
            for i in 0..8 {
                let wanted = if i < 3 { -1.0 } else { picked[i] + sum };
                assert_eq!(got[8 * g + i], wanted);
            }
        }
    }
}

/// A kernel with an integer division, half conversion, rounding and minimum in vectors.
fn everything(lanes: u16) -> Kernel {
    let mut b = KernelBuilder::new("everything");
    let x = param(&mut b, "x", Scalar::F32, 256, false);
    let h = param(&mut b, "h", Scalar::F16, 256, false);
    let out = param(&mut b, "out", Scalar::BF16, 256, true);
    let d = param(&mut b, "d", Scalar::F64, 256, true);
    let scratch = b.scratch("s", Scalar::F32, 256, Space::Private);
    b.for_range(256, i64::from(lanes), |b, i| {
        let v = b.load(x, i, lanes);
        let hv = b.load(h, i, lanes);
        let hv = b.cast(CastOp::FpExt, hv, Scalar::F32);
        let f = b.unary(UnaryOp::Floor, v);
        let m = b.binary(BinaryOp::FMax, f, hv);
        let c = b.cast(CastOp::FpToSIntSat, m, Scalar::I32);
        let hi = b.binary(BinaryOp::UMulHi, c, c);
        let back = b.cast(CastOp::SIntToFp, hi, Scalar::F32);
        b.store(scratch, i, back);
        let again = b.load(scratch, i, lanes);
        let r = b.unary(UnaryOp::RoundEven, again);
        let short = b.cast(CastOp::FpTrunc, r, Scalar::BF16);
        b.store(out, i, short);
        let wide = b.cast(CastOp::FpExt, r, Scalar::F64);
        let root = b.unary(UnaryOp::Sqrt, wide);
        b.store(d, i, root);
    });
    single(b)
}

#[test]
fn no_target_needs_a_library_call() {
    for target in [
        testing::x86_v1(),
        testing::x86_v3(),
        testing::x86_v4(),
        testing::aarch64(),
    ] {
        for lanes in [1, 4, 8] {
            testing::object(&[everything(lanes)], &target);
        }
    }
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let kernels: Vec<Kernel> = (0..40)
        .map(|i| {
            let mut kernel = everything(if i % 2 == 0 { 4 } else { 8 });
            kernel
                .buffers
                .values_mut()
                .for_each(|b| b.align = 64 << (i / 2));
            numbered(i, kernel)
        })
        .collect();
    let compiled = |jobs| {
        let options = Options {
            jobs,
            ..Options::default()
        };
        compile(&kernels, &testing::x86_v3(), &options).expect("compiles")
    };
    let (one, two) = (compiled(1), compiled(2));
    assert_eq!(one.images.len(), 4);
    assert!(one == two);
}

/// Sum of a block by shuffles, shared memory and an atomic, with vector loads.
fn block_sum(dynamic: bool) -> Kernel {
    let mut b = KernelBuilder::new("block_sum");
    let x = param(&mut b, "x", Scalar::F32, 1 << 20, false);
    let out = param(&mut b, "out", Scalar::F32, 1, true);
    let top = param(&mut b, "top", Scalar::F32, 1, true);
    let wide = param(&mut b, "wide", Scalar::F64, 4, true);
    let count = if dynamic { 16 << 10 } else { 8 };
    let shared = b.scratch("partial", Scalar::F32, count, Space::Shared);
    let item = b.workitem_id(Axis::X);
    let group = b.workgroup_id(Axis::X);
    let block = b.mul_const(group, 1024);
    let four = b.mul_const(item, 4);
    let at = b.add(block, four);
    let v = b.load(x, at, 4);
    let mut sum = b.reduce_lanes(BinaryOp::Add, v);
    for step in [16, 8, 4, 2, 1] {
        let step = b.int(Ty::scalar(Scalar::I32), step);
        let other = b.warp_shuffle(ShuffleKind::Xor, sum, step);
        sum = b.add(sum, other);
    }
    let warp = b.div_const(item, 32);
    let lane = b.rem_const(item, 32);
    let zero = b.index(0);
    let first = b.cmp(CmpOp::IEq, lane, zero);
    b.if_then(first, |b| b.store(shared, warp, sum));
    b.barrier();
    let is_zero = b.cmp(CmpOp::IEq, item, zero);
    b.if_then(is_zero, |b| {
        let mut total = b.load(shared, zero, 1);
        for i in 1..8 {
            let at = b.index(i);
            let part = b.load(shared, at, 1);
            total = b.add(total, part);
        }
        b.atomic_rmw(BinaryOp::Add, out, zero, total);
        b.atomic_rmw(BinaryOp::FMax, top, zero, total);
        let double = b.cast(CastOp::FpExt, total, Scalar::F64);
        let other = b.binary(BinaryOp::FMin, double, double);
        let step = b.int(Ty::scalar(Scalar::I32), 1);
        let moved = b.warp_shuffle(ShuffleKind::Down, other, step);
        b.store(wide, zero, moved);
    });
    let launch = Launch {
        workgroups: [1024, 1, 1],
        workitems: [256, 1, 1],
        cluster: None,
        shared_bytes: if dynamic { 64 << 10 } else { 0 },
    };
    b.finish(KernelId::from_index(0), launch)
}

fn matrix(kind: MmaKind, a: (Scalar, u16), bb: (Scalar, u16), c: (Scalar, u16)) -> Kernel {
    let mut b = KernelBuilder::new("matrix");
    let pa = param(&mut b, "a", a.0, 4096, false);
    let pb = param(&mut b, "b", bb.0, 4096, false);
    let out = param(&mut b, "out", c.0, 4096, true);
    let item = b.workitem_id(Axis::X);
    let at = |b: &mut KernelBuilder, lanes: u16| b.mul_const(item, i64::from(lanes));
    let ia = at(&mut b, a.1);
    let va = b.load(pa, ia, a.1);
    let ib = at(&mut b, bb.1);
    let vb = b.load(pb, ib, bb.1);
    let ic = at(&mut b, c.1);
    let vc = b.load(out, ic, c.1);
    let d = b.mma(kind, va, vb, vc);
    b.store(out, ic, d);
    let launch = Launch {
        workitems: [32, 1, 1],
        ..Launch::SINGLE
    };
    b.finish(KernelId::from_index(0), launch)
}

fn gpus() -> Vec<Target> {
    vec![
        testing::gpu(8, 0, CapabilitySuffix::None, 80),
        testing::gpu(9, 0, CapabilitySuffix::Accelerated, 86),
        testing::gpu(10, 0, CapabilitySuffix::Accelerated, 86),
        testing::gpu(12, 0, CapabilitySuffix::Accelerated, 87),
    ]
}

fn find_ptxas() -> Option<ptxas::Ptxas> {
    ptxas::find(None).expect("no broken assembler is named")
}

#[test]
fn gpu_kernels_are_ptx_that_the_assembler_takes() {
    use Scalar::BF16;
    use Scalar::F16;
    use Scalar::F32;
    use Scalar::F64;
    use Scalar::I32;
    let assemble = find_ptxas().map_or(Assemble::No, Assemble::Check);
    let kernels = [
        block_sum(false),
        block_sum(true),
        everything(4),
        matrix(MmaKind::F16, (F16, 8), (F16, 4), (F32, 4)),
        matrix(MmaKind::BF16, (BF16, 8), (BF16, 4), (F32, 4)),
        matrix(MmaKind::TF32, (F32, 4), (F32, 2), (F32, 4)),
        matrix(MmaKind::F64, (F64, 1), (F64, 1), (F64, 2)),
        matrix(MmaKind::S8, (I32, 4), (I32, 2), (I32, 4)),
    ];
    for target in gpus() {
        for kernel in &kernels {
            let options = Options {
                assemble: assemble.clone(),
                ..Options::default()
            };
            let compiled = compile(std::slice::from_ref(kernel), &target, &options)
                .unwrap_or_else(|e| panic!("{} for {:?}: {e}", kernel.name, target.gpu()));
            let Code::Ptx(text) = &compiled.images[0].code else {
                panic!("wanted PTX");
            };
            if kernel.name == "block_sum" {
                let wide = ["ld.global.nc.v4.b32", "ld.global.nc.v2.b64"];
                assert!(wide.iter().any(|w| text.contains(w)), "{text}");
            }
            for usage in &compiled.usage {
                assert_eq!((usage.spill_loads, usage.spill_stores), (0, 0));
            }
        }
    }
}

/// Reads three neighbours of a buffer of that many elements, one by one and two and one.
fn three_of(count: u64, pair: bool) -> Kernel {
    let mut b = KernelBuilder::new("three");
    let x = param(&mut b, "x", Scalar::I32, count, false);
    let out = param(&mut b, "out", Scalar::I32, 1, true);
    let (zero, one, two) = (b.index(0), b.index(1), b.index(2));
    let first = if pair {
        let both = b.load(x, zero, 2);
        b.reduce_lanes(BinaryOp::Add, both)
    } else {
        let (first, second) = (b.load(x, zero, 1), b.load(x, one, 1));
        b.add(first, second)
    };
    let third = b.load(x, two, 1);
    let product = b.binary(BinaryOp::Mul, first, third);
    b.store(out, zero, product);
    single(b)
}

#[test]
fn gpu_kernels_read_no_byte_behind_their_buffers() {
    // LLVM joins the reads and fills up to what is aligned, which may be 16 bytes.
    for target in gpus() {
        for (count, pair) in [(3, false), (3, true), (6, false), (4, false)] {
            let kernel = three_of(count, pair);
            let compiled = compile(&[kernel], &target, &Options::default()).expect("compiles");
            let Code::Ptx(text) = &compiled.images[0].code else {
                panic!("wanted PTX");
            };
            let fills = text.contains("v4.b32") || text.contains("v2.b64");
            assert!(!fills || count == 4, "{text}");
        }
    }
}

#[test]
fn constants_image_assembles() {
    let Some(ptxas) = find_ptxas() else { return };
    let constants = [
        ("buffer_for_constant_1".to_owned(), 12u64),
        ("buffer_for_c2".to_owned(), 0),
    ];
    for target in gpus() {
        let image = crate::llvm::constants_image(&constants, &target).expect("made");
        let Code::Ptx(text) = image.code else {
            panic!("wanted PTX")
        };
        let sm = target.gpu().expect("a GPU").capability.sm_name();
        ptxas.assemble(&text, &sm).expect("assembles");
    }
}

#[test]
fn a_wrong_kernel_is_refused_with_its_value() {
    let mut b = KernelBuilder::new("wrong");
    let x = param(&mut b, "x", Scalar::F32, 4, false);
    let zero = b.index(0);
    let v = b.load(x, zero, 4);
    b.store(x, zero, v);
    let kernel = single(b);
    let error = compile(&[kernel], &testing::x86_v3(), &Options::default()).expect_err("refused");
    assert!(
        error.message.contains("b0 is not said to be written"),
        "{error}"
    );
}

#[test]
fn a_fatal_error_of_llvm_is_reported_and_survived() {
    // PTX of that version does not know the architecture, which LLVM calls fatal.
    let old = testing::gpu(9, 0, CapabilitySuffix::None, 60);
    let error = compile(&[block_sum(false)], &old, &Options::default()).expect_err("refused");
    assert!(error.message.contains("PTX"), "{error}");
    for target in [testing::x86_v3(), gpus().remove(1)] {
        compile(&[everything(4)], &target, &Options::default()).expect("later compilations work");
    }
}

#[test]
fn kernels_keep_their_order_over_modules() {
    let kernels: Vec<Kernel> = (0..30)
        .map(|i| {
            let mut kernel = everything(1);
            kernel.buffers.values_mut().for_each(|b| b.align = 1 << i);
            numbered(i, kernel)
        })
        .collect();
    let options = Options {
        jobs: 3,
        ..Options::default()
    };
    let compiled = compile(&kernels, &testing::x86_v3(), &options).expect("compiles");
    let ids: Vec<usize> = compiled.images.iter().flat_map(numbers).collect();
    assert_eq!(ids, (0..30).collect::<Vec<_>>());
}

#[test]
fn equal_kernels_share_code_under_all_their_names() {
    let kernels: Vec<Kernel> = [4, 8, 4, 4]
        .into_iter()
        .enumerate()
        .map(|(i, lanes)| numbered(i, everything(lanes)))
        .collect();
    let options = Options {
        assembly: true,
        ..Options::default()
    };
    let compiled = compile(&kernels, &testing::x86_v3(), &options).expect("compiles");
    assert_eq!(numbers(&compiled.images[0]), [0, 2, 3, 1]);
    let text = &compiled.texts[0].text;
    assert!(
        text.contains("k2 = k0") || text.contains(".set k2, k0"),
        "{text}"
    );
    // A GPU's kernels travel alone.
    let compiled = compile(&kernels, &gpus()[0], &Options::default()).expect("compiles");
    assert_eq!(compiled.images.len(), 4);
}

/// A 6 x 16 tile of a matrix product: packed operands, four steps at a time.
fn product_tile() -> Kernel {
    let mut b = KernelBuilder::new("tile");
    let left = param(&mut b, "left", Scalar::F32, 384 * 6, false);
    let right = param(&mut b, "right", Scalar::F32, 384 * 16, false);
    let out = param(&mut b, "out", Scalar::F32, 96, true);
    let bounds = (b.index(0), b.index(384), b.index(4));
    let zero = b.float(Ty::vector(Scalar::F32, 8), 0.0);
    let sums = b.for_carried(bounds, &[zero; 12], Unroll::Never, |b, k, sums| {
        let mut sums = sums.to_vec();
        for step in 0..4 {
            let k = b.add_const(k, step);
            let (row, column) = (b.mul_const(k, 6), b.mul_const(k, 16));
            let next = b.add_const(column, 8);
            let vectors = [b.load(right, column, 8), b.load(right, next, 8)];
            for i in 0..6 {
                let at = b.add_const(row, i);
                let factor = b.load(left, at, 1);
                for (j, &vector) in vectors.iter().enumerate() {
                    let sum = &mut sums[i as usize * 2 + j];
                    *sum = b.fma(factor, vector, *sum);
                }
            }
        }
        sums
    });
    for (i, sum) in sums.into_iter().enumerate() {
        let at = b.index(8 * i as i64);
        b.store(out, at, sum);
    }
    single(b)
}

#[test]
fn a_product_tile_keeps_its_sums_in_registers() {
    let text = testing::assembly(&[product_tile()], &testing::x86_v3());
    assert_eq!(text.matches("vfmadd").count(), 48, "{text}");
    assert!(!text.contains("(%rsp)"), "{text}");
    // Operands of whole numbers: the sums are exact.
    let left: Vec<f32> = (0..384 * 6).map(|i| (i % 7) as f32 - 3.0).collect();
    let right: Vec<f32> = (0..384 * 16).map(|i| (i % 11) as f32 - 5.0).collect();
    let mut buffers = [
        testing::bytes_f32(&left),
        testing::bytes_f32(&right),
        vec![0; 96 * 4],
    ];
    testing::run(&product_tile(), &testing::x86_v3(), &mut buffers);
    let got = testing::f32s(&buffers[2]);
    for row in 0..6 {
        for column in 0..16 {
            let wanted: f32 = (0..384)
                .map(|k| left[k * 6 + row] * right[k * 16 + column])
                .sum();
            assert_eq!(got[row * 16 + column], wanted);
        }
    }
}

#[test]
fn kernels_that_no_launch_can_run_are_refused() {
    let refusal = |kernel: Kernel, target: &Target| {
        compile(&[kernel], target, &Options::default())
            .expect_err("refused")
            .message
    };
    let mut kernel = block_sum(true);
    kernel.launch.shared_bytes = 0;
    let message = refusal(kernel, &gpus()[0]);
    assert!(
        message.contains("65536 bytes in shared memory"),
        "{message}"
    );
    let mut kernel = block_sum(false);
    kernel.launch.workgroups = [1, 1 << 16, 1];
    let message = refusal(kernel, &gpus()[0]);
    assert!(message.contains("more than a grid holds"), "{message}");
    let mut kernel = everything(4);
    kernel.buffers.values_mut().for_each(|b| b.count = 4 << 20);
    let message = refusal(kernel, &testing::x86_v3());
    assert!(message.contains("on the stack"), "{message}");
    // Fragments are a GPU's.
    let (half, single) = ((Scalar::F16, 8), (Scalar::F32, 4));
    let kernel = matrix(MmaKind::F16, half, (Scalar::F16, 4), single);
    let message = refusal(kernel, &testing::x86_v3());
    assert!(message.contains("matrix fragments"), "{message}");
}
