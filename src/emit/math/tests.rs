//! Errors in units in the last place, and special values, by running the functions on this machine.

use crate::base::Id;
use crate::emit::math;
use crate::executable::KernelId;
use crate::executable::Launch;
use crate::hlo::BinaryOp;
use crate::hlo::UnaryOp;
use crate::kernel::Buffer;
use crate::kernel::ExprId;
use crate::kernel::Kernel;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::llvm::testing;
use crate::target::Target;

/// A kernel of one output and `inputs` inputs, eight (four) lanes at a time.
pub(super) fn kernel(
    scalar: Scalar,
    inputs: usize,
    count: usize,
    f: impl FnOnce(&mut KernelBuilder, &[ExprId]) -> ExprId,
) -> Kernel {
    let lanes = if scalar == Scalar::F32 { 8 } else { 4 };
    kernel_of(scalar, lanes, inputs, count, f)
}

fn kernel_of(
    scalar: Scalar,
    lanes: u16,
    inputs: usize,
    count: usize,
    f: impl FnOnce(&mut KernelBuilder, &[ExprId]) -> ExprId,
) -> Kernel {
    let mut b = KernelBuilder::new("f");
    let buffer = |name: String, written| Buffer {
        name,
        elem: scalar,
        count: count as u64,
        space: Space::Global,
        align: 64,
        written,
        noalias: true,
    };
    let params: Vec<_> = (0..inputs)
        .map(|i| b.buffer(buffer(format!("x{i}"), false)))
        .collect();
    let out = b.buffer(buffer("out".to_owned(), true));
    b.for_range(count as i64, i64::from(lanes), |b, i| {
        let values: Vec<ExprId> = params.iter().map(|&p| b.load(p, i, lanes)).collect();
        let r = f(b, &values);
        b.store(out, i, r);
    });
    b.finish(KernelId::from_index(0), Launch::SINGLE)
}

/// Distance of a result from the reference in units in the last place of the reference.
fn ulps32(got: f32, wanted: f64) -> f64 {
    let near = wanted as f32;
    if got.is_nan() && near.is_nan() {
        return 0.0;
    }
    if got.to_bits() == near.to_bits() {
        return ((f64::from(got) - wanted) / ulp32(near)).abs().min(0.5);
    }
    if !got.is_finite() || !near.is_finite() {
        // The largest number instead of infinity is one unit off.
        let edge = got.abs().max(near.abs()) == f32::INFINITY
            && got.abs().min(near.abs()) == f32::MAX
            && got.signum() == near.signum();
        return if edge { 1.0 } else { f64::INFINITY };
    }
    ((f64::from(got) - wanted) / ulp32(near)).abs()
}

fn ulp32(x: f32) -> f64 {
    let exponent = ((x.to_bits() >> 23) & 0xff).max(1) as i32;
    2f64.powi(exponent - 150)
}

fn run32(
    target: &Target,
    inputs: &[Vec<f32>],
    f: impl FnOnce(&mut KernelBuilder, &[ExprId]) -> ExprId,
) -> Vec<f32> {
    let count = inputs[0].len();
    let kernel = kernel(Scalar::F32, inputs.len(), count, f);
    let mut buffers: Vec<Vec<u8>> = inputs.iter().map(|v| testing::bytes_f32(v)).collect();
    buffers.push(vec![0; 4 * count]);
    testing::run(&kernel, target, &mut buffers);
    testing::f32s(buffers.last().expect("the output"))
}

/// Bit patterns spread evenly over all of f32, and special values.
fn spread32(count: usize) -> Vec<f32> {
    let step = (u64::from(u32::MAX) / count as u64) | 1;
    let mut values: Vec<f32> = (0..count as u64 - 32)
        .map(|i| f32::from_bits((i * step) as u32))
        .collect();
    values.extend([
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        f32::MAX,
        f32::MIN,
        0.5,
        -0.5,
        2.0,
    ]);
    values.extend((0..16).map(|i| 1.0 + (i as f32 - 8.0) * f32::EPSILON));
    values
}

/// The error function by its series of positive terms.
fn series_erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..300 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
}

type Case32 = (UnaryOp, fn(f64) -> f64, f64);

const UNARY: &[Case32] = &[
    (UnaryOp::Exp, f64::exp, 1.1),
    (UnaryOp::Expm1, f64::exp_m1, 1.7),
    (UnaryOp::Log, f64::ln, 1.0),
    (UnaryOp::Log1p, f64::ln_1p, 1.5),
    (
        UnaryOp::Logistic,
        |x| {
            if x < 0.0 {
                x.exp() / (1.0 + x.exp())
            } else {
                1.0 / (1.0 + (-x).exp())
            }
        },
        2.0,
    ),
    (UnaryOp::Tanh, f64::tanh, 1.5),
    (UnaryOp::Sinh, f64::sinh, 2.0),
    (UnaryOp::Cosh, f64::cosh, 2.0),
    (UnaryOp::Asinh, f64::asinh, 2.5),
    (UnaryOp::Acosh, f64::acosh, 2.5),
    (UnaryOp::Atanh, f64::atanh, 2.5),
    (UnaryOp::Sin, f64::sin, 1.6),
    (UnaryOp::Cos, f64::cos, 1.6),
    (UnaryOp::Tan, f64::tan, 2.0),
    (UnaryOp::Asin, f64::asin, 1.5),
    (UnaryOp::Acos, f64::acos, 1.5),
    (UnaryOp::Cbrt, f64::cbrt, 1.0),
    (UnaryOp::Rsqrt, |x| 1.0 / x.sqrt(), 1.5),
    (UnaryOp::Erf, series_erf, 1.5),
];

fn worst32(got: &[f32], wanted: impl Fn(usize) -> f64) -> (f64, usize) {
    got.iter()
        .enumerate()
        .map(|(i, &g)| (ulps32(g, wanted(i)), i))
        .fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a })
}

#[test]
fn f32_functions_are_accurate_everywhere() {
    let values = spread32(1 << 19);
    let mut wrong = Vec::new();
    for &(op, reference, limit) in UNARY {
        let inputs = [values.clone()];
        let got = run32(&testing::x86_v3(), &inputs, |b, v| {
            math::unary(b, op, v[0]).expect("a function")
        });
        let (worst, at) = worst32(&got, |i| reference(f64::from(values[i])));
        println!("{op:?}: {worst:.2} ulp at {:e} ({:e})", values[at], got[at]);
        if worst > limit {
            let wanted = reference(f64::from(values[at]));
            wrong.push(format!(
                "{op:?}({:e}) = {:e}, wanted {wanted:e}: {worst} ulp",
                values[at], got[at]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn f32_zeros_keep_their_sign() {
    let odd = [
        UnaryOp::Expm1,
        UnaryOp::Log1p,
        UnaryOp::Tanh,
        UnaryOp::Sinh,
        UnaryOp::Asinh,
        UnaryOp::Atanh,
        UnaryOp::Sin,
        UnaryOp::Tan,
        UnaryOp::Asin,
        UnaryOp::Cbrt,
        UnaryOp::Erf,
    ];
    for op in odd {
        let inputs = [vec![0.0, -0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]];
        let got = run32(&testing::x86_v3(), &inputs, |b, v| {
            math::unary(b, op, v[0]).expect("a function")
        });
        assert_eq!(got[0].to_bits(), 0, "{op:?}(0)");
        assert_eq!(got[1].to_bits(), 1 << 31, "{op:?}(-0)");
    }
}

#[test]
fn f32_functions_of_two() {
    let base = spread32(1 << 10);
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for &x in base.iter().step_by(3).chain(&base[base.len() - 32..]) {
        for &y in base.iter().step_by(5).chain(&base[base.len() - 32..]) {
            xs.push(x);
            ys.push(y);
        }
    }
    // Powers whose result is in range, and bases near one.
    for i in 0..60000 {
        let x = (1.0 + (i % 257) as f32 * 0.037) * if i % 2 == 0 { 1.0 } else { 0.1 };
        xs.push(x);
        ys.push((i as f32 - 30000.0) * 0.001);
        xs.push(1.0 + (i as f32 - 30000.0) * 1e-6);
        ys.push(2000.0 + i as f32);
    }
    xs.resize(xs.len().next_multiple_of(8), 1.0);
    ys.resize(xs.len(), 1.0);
    let cases: [(BinaryOp, fn(f64, f64) -> f64, f64, bool); 4] = [
        (BinaryOp::Power, f64::powf, 1.0, false),
        (BinaryOp::Power, f64::powf, 1.5, true),
        (BinaryOp::Atan2, f64::atan2, 2.0, false),
        (BinaryOp::Remainder, |x, y| x % y, 0.0, false),
    ];
    for (op, reference, limit, slow_double) in cases {
        let got = run32(&testing::x86_v3(), &[xs.clone(), ys.clone()], |b, v| {
            b.set_slow_double(slow_double);
            math::binary(b, op, v[0], v[1]).expect("a function")
        });
        let (worst, i) = worst32(&got, |i| reference(f64::from(xs[i]), f64::from(ys[i])));
        println!(
            "{op:?}: {worst:.2} ulp at {:e}, {:e} ({:e})",
            xs[i], ys[i], got[i]
        );
        assert!(
            worst <= limit,
            "{op:?}({:e}, {:e}) = {:e}, wanted {:e}: {worst} ulp",
            xs[i],
            ys[i],
            got[i],
            reference(f64::from(xs[i]), f64::from(ys[i]))
        );
    }
}

/// One line of `reference.txt`: function, arguments, the correctly rounded result, and what the
/// rounding lost in thousandths of a unit in the last place. Computed with mpmath to 1200 digits.
struct Reference {
    name: &'static str,
    x: f64,
    y: f64,
    rounded: f64,
    lost: f64,
}

fn references() -> Vec<Reference> {
    let hex = |text: &str| f64::from_bits(u64::from_str_radix(text, 16).expect("hexadecimal"));
    include_str!("reference.txt")
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let mut next = || words.next().expect("five words");
            Reference {
                name: next(),
                x: hex(next()),
                y: hex(next()),
                rounded: hex(next()),
                lost: next().parse::<f64>().expect("a number") / 1000.0,
            }
        })
        .collect()
}

fn ulp64(x: f64) -> f64 {
    let exponent = ((x.to_bits() >> 52) & 0x7ff).max(1) as i32;
    if exponent > 52 {
        2f64.powi(exponent - 1075)
    } else {
        f64::from_bits(1 << (exponent - 1))
    }
}

fn ulps64(got: f64, wanted: &Reference) -> f64 {
    let rounded = wanted.rounded;
    if got.to_bits() == rounded.to_bits() || got.is_nan() && rounded.is_nan() {
        return wanted.lost.abs();
    }
    if !got.is_finite() || !rounded.is_finite() {
        let edge = got.abs().min(rounded.abs()) == f64::MAX;
        return if edge { 1.0 } else { f64::INFINITY };
    }
    ((got - rounded) / ulp64(rounded) - wanted.lost).abs()
}

fn run64(
    target: &Target,
    inputs: &[Vec<f64>],
    f: impl FnOnce(&mut KernelBuilder, &[ExprId]) -> ExprId,
) -> Vec<f64> {
    let count = inputs[0].len();
    let kernel = kernel(Scalar::F64, inputs.len(), count, f);
    let mut buffers: Vec<Vec<u8>> = inputs.iter().map(|v| testing::bytes_f64(v)).collect();
    buffers.push(vec![0; 8 * count]);
    testing::run(&kernel, target, &mut buffers);
    testing::f64s(buffers.last().expect("the output"))
}

#[test]
fn f64_functions_match_high_precision() {
    let all = references();
    let unary = [
        ("exp", UnaryOp::Exp, 1.0),
        ("expm1", UnaryOp::Expm1, 1.7),
        ("log", UnaryOp::Log, 1.0),
        ("log1p", UnaryOp::Log1p, 1.2),
        ("logistic", UnaryOp::Logistic, 2.0),
        ("tanh", UnaryOp::Tanh, 2.0),
        ("sinh", UnaryOp::Sinh, 1.7),
        ("cosh", UnaryOp::Cosh, 1.7),
        ("asinh", UnaryOp::Asinh, 2.0),
        ("acosh", UnaryOp::Acosh, 2.0),
        ("atanh", UnaryOp::Atanh, 2.0),
        ("sin", UnaryOp::Sin, 1.0),
        ("cos", UnaryOp::Cos, 1.0),
        ("tan", UnaryOp::Tan, 1.0),
        ("asin", UnaryOp::Asin, 1.0),
        ("acos", UnaryOp::Acos, 1.0),
        ("cbrt", UnaryOp::Cbrt, 1.0),
        ("rsqrt", UnaryOp::Rsqrt, 1.5),
        ("erf", UnaryOp::Erf, 1.2),
    ];
    let binary = [
        ("power", BinaryOp::Power, 1.2),
        ("atan2", BinaryOp::Atan2, 1.5),
    ];
    let mut wrong = Vec::new();
    let mut judge =
        |name: &str, limit: f64, f: &dyn Fn(&mut KernelBuilder, &[ExprId]) -> ExprId| {
            let lines: Vec<&Reference> = all.iter().filter(|r| r.name == name).collect();
            let padded = lines.len().next_multiple_of(4);
            let mut xs: Vec<f64> = lines.iter().map(|r| r.x).collect();
            let mut ys: Vec<f64> = lines.iter().map(|r| r.y).collect();
            xs.resize(padded, 1.0);
            ys.resize(padded, 1.0);
            let got = run64(&testing::x86_v3(), &[xs, ys], f);
            let (worst, at) = lines
                .iter()
                .zip(&got)
                .enumerate()
                .map(|(i, (line, &g))| (ulps64(g, line), i))
                .fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
            let line = lines[at];
            let text = format!(
                "{name}({:e}, {:e}) = {:e}, wanted {:e}: {worst:.3} ulp",
                line.x, line.y, got[at], line.rounded
            );
            println!("{text}");
            if worst > limit {
                wrong.push(text);
            }
        };
    for (name, op, limit) in unary {
        judge(name, limit, &|b, v| {
            math::unary(b, op, v[0]).expect("a function")
        });
    }
    for (name, op, limit) in binary {
        judge(name, limit, &|b, v| {
            math::binary(b, op, v[0], v[1]).expect("a function")
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn f64_special_values_are_those_of_the_c_library() {
    let specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e308,
        -1e308,
        5e-324,
        -5e-324,
        2.5,
        -2.5,
        1e-300,
        1e17,
        -1e17,
        9007199254740993.0,
        0.1,
    ];
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for x in specials {
        for y in specials {
            xs.push(x);
            ys.push(y);
        }
    }
    let cases: [(BinaryOp, fn(f64, f64) -> f64); 3] = [
        (BinaryOp::Power, f64::powf),
        (BinaryOp::Atan2, f64::atan2),
        (BinaryOp::Remainder, |x, y| x % y),
    ];
    for (op, reference) in cases {
        let got = run64(&testing::x86_v3(), &[xs.clone(), ys.clone()], |b, v| {
            math::binary(b, op, v[0], v[1]).expect("a function")
        });
        for ((&x, &y), &g) in xs.iter().zip(&ys).zip(&got) {
            let wanted = reference(x, y);
            let near = (g - wanted).abs() <= 4.0 * ulp64(wanted);
            let same = g.to_bits() == wanted.to_bits() || g.is_nan() && wanted.is_nan();
            let sign = g.is_sign_negative() == wanted.is_sign_negative();
            assert!(
                same || near && sign && op != BinaryOp::Remainder,
                "{op:?}({x:e}, {y:e}) = {g:e}, wanted {wanted:e}"
            );
        }
    }
}

/// Runs a complex function on `f64` parts.
fn run_complex(
    inputs: &[Vec<f64>],
    f: impl Fn(&mut KernelBuilder, &[ExprId]) -> (ExprId, ExprId),
) -> (Vec<f64>, Vec<f64>) {
    let target = testing::x86_v3();
    (
        run64(&target, inputs, |b, v| f(b, v).0),
        run64(&target, inputs, |b, v| f(b, v).1),
    )
}

/// One line of `complex_reference.txt`: function, two complex arguments, the result of mpmath.
#[test]
fn complex_functions_match_high_precision() {
    let lines: Vec<(&str, Vec<f64>)> = include_str!("complex_reference.txt")
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let name = words.next().expect("a name");
            let numbers = words
                .map(|w| f64::from_bits(u64::from_str_radix(w, 16).expect("hexadecimal")))
                .collect();
            (name, numbers)
        })
        .collect();
    let mut names: Vec<&str> = lines.iter().map(|l| l.0).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let mut wrong = Vec::new();
    for name in names {
        let own: Vec<&Vec<f64>> = lines.iter().filter(|l| l.0 == name).map(|l| &l.1).collect();
        let inputs: Vec<Vec<f64>> = (0..4)
            .map(|part| {
                let mut column: Vec<f64> = own.iter().map(|l| l[part]).collect();
                column.resize(own.len().next_multiple_of(4), 1.0);
                column
            })
            .collect();
        let (re, im) = run_complex(&inputs, |b, v| {
            let (x, y) = ((v[0], v[1]), (v[2], v[3]));
            if name == "abs" {
                let size = math::complex::abs(b, v[0], v[1]);
                let zero = b.float(b.ty(size), 0.0);
                return (size, zero);
            }
            if let Some(op) = UnaryOp::from_name(name) {
                return math::complex::unary(b, op, x).expect("a function");
            }
            let op = BinaryOp::from_name(name).expect("an opcode");
            math::complex::binary(b, op, x, y).expect("a function")
        });
        let mut worst = 0f64;
        for (i, line) in own.iter().enumerate() {
            let (wr, wi) = (line[4], line[5]);
            // Each part to a few units, where the parts do not come from cancelling.
            let size = wr.abs().max(wi.abs());
            let error = |got: f64, wanted: f64| {
                if got == wanted || got.is_nan() && wanted.is_nan() {
                    return 0.0;
                }
                (got - wanted).abs() / (4.0 * ulp64(wanted) + 2.0 * ulp64(size))
            };
            let bad = error(re[i], wr).max(error(im[i], wi));
            let bad = if bad.is_nan() { f64::INFINITY } else { bad };
            worst = worst.max(bad);
            let limit = if name == "power" { 16.0 } else { 1.0 };
            if bad > limit {
                wrong.push(format!(
                    "{name}({:e}, {:e}; {:e}, {:e}) = ({:e}, {:e}), wanted ({wr:e}, {wi:e}): {bad:.2}",
                    line[0], line[1], line[2], line[3], re[i], im[i]
                ));
            }
        }
        println!("{name}: {worst:.2} of the bound");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every function, at one and at several lanes, as PTX that the assembler takes and as AArch64 code
/// that calls nothing.
#[test]
fn every_function_compiles_for_every_target() {
    let ops = UNARY.iter().map(|c| c.0);
    let mut targets = vec![testing::aarch64(), testing::x86_v1(), testing::x86_v4()];
    targets.push(testing::gpu(
        8,
        0,
        crate::target::CapabilitySuffix::None,
        80,
    ));
    let ptxas = crate::llvm::ptxas::find(None).expect("no broken assembler");
    let options = crate::llvm::Options {
        assemble: ptxas.map_or_else(Default::default, crate::llvm::Assemble::Check),
        ..Default::default()
    };
    for target in targets {
        let lanes = if target.gpu().is_some() { 1 } else { 4 };
        let mut kernels = Vec::new();
        for scalar in [Scalar::F32, Scalar::F64] {
            for op in ops.clone() {
                kernels.push(kernel_of(scalar, lanes, 1, 64, |b, v| {
                    math::unary(b, op, v[0]).expect("a function")
                }));
            }
            for op in [BinaryOp::Power, BinaryOp::Atan2, BinaryOp::Remainder] {
                kernels.push(kernel_of(scalar, lanes, 2, 64, |b, v| {
                    math::binary(b, op, v[0], v[1]).expect("a function")
                }));
            }
        }
        for (i, kernel) in kernels.iter_mut().enumerate() {
            kernel.id = KernelId::from_index(i);
            kernel.name = format!("f{i}");
        }
        crate::llvm::compile(&kernels, &target, &options)
            .unwrap_or_else(|e| panic!("{}: {e}", target.name()));
    }
}
