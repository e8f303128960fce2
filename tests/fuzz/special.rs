//! Ops made for one purpose: normalization, factorization, the largest elements, scans, what is random.

use xla_aot::literal::number::Number;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use super::combine::scalar;
use super::control::exact_op;
use super::elementwise::computes;
use super::make::Maker;
use super::program::Accuracy;
use super::program::Source;
use super::program::shape_text;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(10) {
        0..2 => normalize(maker),
        2 => factorize(maker),
        3..5 => largest(maker),
        5..7 => scan(maker),
        7 => free(maker),
        8 => state(maker),
        _ => round(maker),
    }
}

/// Batch normalization, with small whole numbers in.
fn normalize(maker: &mut Maker) -> usize {
    let (ty, near) = maker.random.pick(&[
        (PrimitiveType::F32, Accuracy::Spread(1e-4)),
        (PrimitiveType::F32, Accuracy::Spread(1e-4)),
        (PrimitiveType::F64, Accuracy::Spread(1e-10)),
    ]);
    let rank = 2 + maker.random.below(3);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(6)).collect();
    let feature = maker.random.below(rank);
    let of = [dims[feature]];
    let x = maker.whole(ty, &dims, -4, 4);
    let (scale, offset) = (maker.whole(ty, &of, -2, 3), maker.whole(ty, &of, -2, 2));
    let attributes = format!("epsilon=0.25, feature_index={feature}");
    let (mean, variance) = (maker.whole(ty, &of, -2, 2), maker.whole(ty, &of, 0, 3));
    match maker.random.below(3) {
        0 => {
            let text = format!("batch-norm-training(v{x}, v{scale}, v{offset}), {attributes}");
            let parts = [
                (ty, dims, near),
                (ty, of.to_vec(), near),
                (ty, of.to_vec(), near),
            ];
            maker.tuple_op(&parts, text, &[x, scale, offset])[0]
        }
        1 => {
            let operands = [x, scale, offset, mean, variance];
            let text = format!(
                "batch-norm-inference(v{x}, v{scale}, v{offset}, v{mean}, v{variance}), {attributes}"
            );
            maker.op(ty, &dims, text, &operands, near)
        }
        _ => {
            let gradient = maker.whole(ty, &dims, -3, 3);
            let operands = [x, scale, mean, variance, gradient];
            let text = format!(
                "batch-norm-grad(v{x}, v{scale}, v{mean}, v{variance}, v{gradient}), {attributes}"
            );
            let parts = [
                (ty, dims, near),
                (ty, of.to_vec(), near),
                (ty, of.to_vec(), near),
            ];
            maker.tuple_op(&parts, text, &operands)[0]
        }
    }
}

/// The Cholesky factor of a matrix that has one.
fn factorize(maker: &mut Maker) -> usize {
    let (ty, near) = maker.random.pick(&[
        (PrimitiveType::F32, Accuracy::Spread(1e-4)),
        (PrimitiveType::F64, Accuracy::Spread(1e-10)),
        (PrimitiveType::C64, Accuracy::Spread(1e-4)),
        (PrimitiveType::C128, Accuracy::Spread(1e-10)),
    ]);
    let n = maker.random.below(7);
    let mut dims: Vec<usize> = (0..maker.random.below(2)).map(|_| 2).collect();
    dims.extend([n, n]);
    let batches = dims.iter().rev().skip(2).product::<usize>();
    let mut numbers = Vec::new();
    for _ in 0..batches {
        // A diagonal that outweighs the rest of its row.
        let mut matrix = vec![(0.0, 0.0); n * n];
        for i in 0..n {
            for j in 0..i {
                let re = maker.random.between(-2, 2) as f64;
                let im = if ty.is_complex() {
                    maker.random.between(-2, 2) as f64
                } else {
                    0.0
                };
                matrix[i * n + j] = (re, im);
                matrix[j * n + i] = (re, -im);
            }
            matrix[i * n + i] = (3.0 * n as f64 + maker.random.between(0, 3) as f64, 0.0);
        }
        numbers.extend(matrix);
    }
    let numbers = numbers.into_iter().map(|(re, im)| {
        if ty.is_complex() {
            Number::Complex(re, im)
        } else {
            Number::Float(re)
        }
    });
    let a = maker.given(ty, &dims, numbers);
    let lower = maker.random.one_in(2);
    let text = format!("cholesky(v{a}), lower={lower}");
    maker.op(ty, &dims, text, &[a], near)
}

/// The first of an order, and where they were.
fn largest(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| {
        (ty.is_integer() && ty.bit_width() >= 8) || (ty.is_float() && ty.bit_width() >= 16)
    });
    let rank = 1 + maker.random.below(3);
    let mut dims = maker.dims_of(rank);
    let x = if maker.random.one_in(2) {
        maker.whole(ty, &dims, -3, 3)
    } else {
        maker.parameter(ty, &dims)
    };
    let last = dims.pop().unwrap_or(1);
    let k = maker.random.below(last + 1);
    dims.push(k);
    let largest = maker.random.below(3) > 0;
    let text = format!("topk(v{x}), k={k}, largest={largest}");
    let parts = [
        (ty, dims.clone(), Accuracy::Bits),
        (PrimitiveType::S32, dims, Accuracy::Exact),
    ];
    maker.tuple_op(&parts, text, &[x])[0]
}

/// Rounding up or down as random bits say.
fn round(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| ty.is_float() && ty.bit_width() >= 16);
    let x = maker.exact(|t, _| t == ty);
    let dims = maker.array(x).1;
    let bits = match ty.bit_width() {
        64 => PrimitiveType::U64,
        32 => PrimitiveType::U32,
        _ => PrimitiveType::U16,
    };
    let random = maker.parameter(bits, &dims);
    let to = maker.ty_where(|to| {
        let width = to.bit_width();
        match to.kind() {
            ElementKind::Float => width < ty.bit_width() && computes(to),
            ElementKind::Signed | ElementKind::Unsigned => width >= 8 && width <= ty.bit_width(),
            _ => false,
        }
    });
    let text = format!("stochastic-convert(v{x}, v{random})");
    maker.op(to, &dims, text, &[x, random], Accuracy::Exact)
}

/// What is left so far, or an element, at each place along a dimension, from either end.
fn scan(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, dims| computes(ty) && !dims.is_empty());
    let (ty, dims) = maker.array(x);
    let along = maker.random.below(dims.len());
    let mut slice = dims.clone();
    slice.remove(along);
    let start = maker.exact_of(ty, &slice);
    let (op, shape) = (exact_op(maker, ty), shape_text(ty, &slice));
    let (out, carry) = (
        maker.random.pick(&["c", "r", "x"]),
        maker.random.pick(&["r", "r", "x"]),
    );
    let body = maker.other(|name| {
        format!(
            "{name} {{\n  x = {shape} parameter(0)\n  c = {shape} parameter(1)\n  r = {shape} {op}(c, x)\n  ROOT t = ({shape}, {shape}) tuple({out}, {carry})\n}}\n"
        )
    });
    let reversed = match maker.random.one_in(2) {
        true => ", is_reverse=true",
        false => "",
    };
    let text = format!(
        "scan(v{x}, v{start}), dimensions={{{along}}}, num_carries=1{reversed}, to_apply={body}"
    );
    let parts = [(ty, dims, Accuracy::Exact), (ty, slice, Accuracy::Exact)];
    maker.tuple_op(&parts, text, &[x, start])[0]
}

/// Numbers of which only the distribution is known: whether they lie where they must.
fn free(maker: &mut Maker) -> usize {
    let ty = maker.random.pick(&[
        PrimitiveType::F32,
        PrimitiveType::F64,
        PrimitiveType::F16,
        PrimitiveType::BF16,
        PrimitiveType::S32,
        PrimitiveType::U8,
        PrimitiveType::S64,
    ]);
    let dims = maker.dims();
    let pred = PrimitiveType::Pred;
    let (low, high) = maker
        .random
        .pick(&[("0", "1"), ("2", "9"), ("0", "100"), ("1", "1.5")]);
    let high = if ty.is_integer() && high == "1.5" {
        "2"
    } else {
        high
    };
    let (low, high) = (scalar(maker, ty, low), scalar(maker, ty, high));
    if ty.is_float() && maker.random.one_in(2) {
        let text = format!("rng(v{low}, v{high}), distribution=rng_normal");
        let x = maker.other_op(&shape_text(ty, &dims), text, &[low, high]);
        return maker.op(
            pred,
            &dims,
            format!("is-finite(v{x})"),
            &[x],
            Accuracy::Exact,
        );
    }
    let text = format!("rng(v{low}, v{high}), distribution=rng_uniform");
    let x = maker.other_op(&shape_text(ty, &dims), text, &[low, high]);
    let mut bound = |bound: usize, direction: &str| {
        let text = format!("broadcast(v{bound}), dimensions={{}}");
        let all = maker.op(ty, &dims, text, &[bound], Accuracy::Bits);
        let text = format!("compare(v{x}, v{all}), direction={direction}");
        maker.op(pred, &dims, text, &[x, all], Accuracy::Exact)
    };
    bound(low, "GE");
    bound(high, "LT")
}

/// The state of the generator that lives as long as the program; one of them, since nothing orders
/// several, and on one device, since several run twice.
fn state(maker: &mut Maker) -> usize {
    let is_there = |source: &Source| match source {
        Source::Op(text) => text.starts_with("rng-get-and-update-state"),
        Source::Parameter(_) => false,
    };
    let lines = &maker.program.lines;
    let several = maker.program.device_count() > 1;
    if several || lines.iter().any(|line| is_there(&line.source)) {
        return scan(maker);
    }
    let delta = maker.random.pick(&[0, 1, 4096]);
    let text = format!("rng-get-and-update-state(), delta={delta}");
    maker.op(PrimitiveType::U64, &[2], text, &[], Accuracy::Exact)
}
