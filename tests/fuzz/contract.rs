//! Dots, convolutions, transforms and solvers.

use xla_aot::literal::number::Number;
use xla_aot::shape::PrimitiveType;

use super::combine::Window;
use super::combine::window_text;
use super::make::Maker;
use super::make::whole_limit;
use super::program::Accuracy;
use super::program::list;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(14) {
        0..4 => dot(maker),
        4..6 => ragged(maker),
        6 => scaled(maker),
        7..10 => convolution(maker),
        10..12 => transform(maker),
        12 => solve(maker),
        _ => divide(maker),
    }
}

/// Element types of two factors, and the type their products are summed in: mostly one type twice.
fn pair(maker: &mut Maker) -> (PrimitiveType, PrimitiveType, PrimitiveType) {
    use PrimitiveType::*;
    match maker.random.below(8) {
        0 => {}
        1 | 2 => return any_pair(maker),
        _ => {
            let (ty, sum) = types(maker);
            return (ty, ty, sum);
        }
    }
    maker.random.pick(&[
        (BF16, F32, F32),
        (F32, F16, F32),
        (F8E4M3FN, F8E5M2, F32),
        (F8E5M2, BF16, F32),
        (F8E3M4, F8E4M3, F16),
        (S8, U8, S32),
        (S4, S8, S32),
        (S4, BF16, F32),
        (S8, F32, F32),
        (U16, S16, S64),
        (F32, F64, F64),
        (C64, C128, C128),
    ])
}

/// Any two types of a kind, and one of it that is as wide as both.
fn any_pair(maker: &mut Maker) -> (PrimitiveType, PrimitiveType, PrimitiveType) {
    use PrimitiveType::*;
    const SIGNED: &[PrimitiveType] = &[S2, S4, S8, S16, S32, S64];
    const UNSIGNED: &[PrimitiveType] = &[U2, U4, U8, U16, U32, U64];
    const FLOATS: &[PrimitiveType] = &[F8E4M3FN, F8E5M2, F8E3M4, F16, BF16, F32, F64];
    const COMPLEX: &[PrimitiveType] = &[C64, C128];
    let kind = maker
        .random
        .pick(&[SIGNED, UNSIGNED, FLOATS, FLOATS, FLOATS, COMPLEX]);
    let (a, b) = (maker.random.pick(kind), maker.random.pick(kind));
    let widest = a.bit_width().max(b.bit_width());
    let wide = |ty: &&PrimitiveType| ty.bit_width() >= widest && ty.bit_width() >= 8;
    let sums: Vec<PrimitiveType> = kind.iter().filter(wide).copied().collect();
    (a, b, maker.random.pick(&sums))
}

/// An element type whose sums of some products are exact, and the type they are summed in.
fn types(maker: &mut Maker) -> (PrimitiveType, PrimitiveType) {
    use PrimitiveType::*;
    let pairs = [
        (F32, F32),
        (F32, F32),
        (F64, F64),
        (F16, F16),
        (BF16, BF16),
        (BF16, F32),
        (F16, F32),
        (S32, S32),
        (S8, S32),
        (U8, U8),
        (S8, S8),
        (S64, S64),
        (U16, U16),
        (C64, C64),
        (C128, C128),
        (F8E4M3FN, F32),
        (F8E5M2, F32),
        (S4, S32),
        (U32, U32),
        (Pred, Pred),
        (U4, U4),
        (S2, S32),
        (F8E4M3, F16),
        (F8E4M3FNUZ, F32),
        (F64, F32),
    ];
    maker.random.pick(&pairs)
}

/// How near sums of products are: exact, but for the sign of a zero, which depends on the order.
fn summed(ty: PrimitiveType) -> Accuracy {
    if ty.is_integer() {
        Accuracy::Exact
    } else {
        Accuracy::Near(0.0)
    }
}

/// How large factors may be for `count` products to be summed exactly.
fn factor(ty: PrimitiveType, sum: PrimitiveType, count: usize) -> i64 {
    let room = whole_limit(sum) / (2 * count.max(1)) as f64;
    let most = room.sqrt().min(3.0).min(whole_limit(ty)).floor();
    let widest = match ty {
        PrimitiveType::S2 => 1.0,
        _ => most,
    };
    most.min(widest).max(1.0) as i64
}

fn dot(maker: &mut Maker) -> usize {
    let (ty, other, sum) = pair(maker);
    let (batch, contracted) = (maker.random.below(3), maker.random.pick(&[0, 1, 1, 1, 2]));
    let (rows, columns) = (maker.random.below(3), maker.random.below(3));
    let size = |maker: &mut Maker| match maker.random.below(12) {
        0 => 0,
        1..4 => 1,
        4..10 => 2 + maker.random.below(4),
        _ => 6 + maker.random.below(14),
    };
    let sizes =
        |maker: &mut Maker, n: usize| -> Vec<usize> { (0..n).map(|_| size(maker)).collect() };
    let (b, k) = (sizes(maker, batch), sizes(maker, contracted));
    let (m, n) = (sizes(maker, rows), sizes(maker, columns));
    let side = |maker: &mut Maker, free: &[usize]| {
        // The dimensions in some order: batch, contracted, free.
        let all: Vec<usize> = b.iter().chain(&k).chain(free).copied().collect();
        let order = maker.random.order(all.len());
        let dims: Vec<usize> = order.iter().map(|&i| all[i]).collect();
        let place = |i: usize| order.iter().position(|&o| o == i).unwrap_or(0);
        let batch: Vec<usize> = (0..b.len()).map(place).collect();
        let sums: Vec<usize> = (b.len()..b.len() + k.len()).map(place).collect();
        let free: Vec<usize> = (0..dims.len())
            .filter(|d| !batch.contains(d) && !sums.contains(d))
            .map(|d| dims[d])
            .collect();
        (dims, batch, sums, free)
    };
    let (left_dims, left_batch, left_sums, left_free) = side(maker, &m);
    let (right_dims, right_batch, right_sums, right_free) = side(maker, &n);
    let count = k.iter().product();
    let most = factor(ty, sum, count).min(factor(other, sum, count));
    let x = maker.summable(ty, &left_dims, most);
    let y = maker.summable(other, &right_dims, most);
    let to: Vec<usize> = b
        .iter()
        .chain(&left_free)
        .chain(&right_free)
        .copied()
        .collect();
    let how = if ty == other {
        precision(maker, ty, sum)
    } else {
        String::new()
    };
    let text = format!(
        "dot(v{x}, v{y}), lhs_batch_dims={{{}}}, rhs_batch_dims={{{}}}, lhs_contracting_dims={{{}}}, \
         rhs_contracting_dims={{{}}}{how}",
        list(&left_batch),
        list(&right_batch),
        list(&left_sums),
        list(&right_sums)
    );
    maker.op(sum, &to, text, &[x, y], summed(sum))
}

/// How precise a product is to be; whole numbers are exact in all of them.
fn precision(maker: &mut Maker, ty: PrimitiveType, sum: PrimitiveType) -> String {
    use PrimitiveType::{BF16, F8E4M3FN, F8E5M2, F16, F32, F64};
    let algorithms: &[&str] = match (ty, sum) {
        (F32, F32) => &[
            "dot_bf16_bf16_f32",
            "dot_bf16_bf16_f32_x3",
            "dot_bf16_bf16_f32_x6",
            "dot_bf16_bf16_f32_x9",
            "dot_tf32_tf32_f32",
            "dot_tf32_tf32_f32_x3",
            "dot_f32_f32_f32",
        ],
        (BF16, BF16) => &["dot_bf16_bf16_bf16", "dot_bf16_bf16_f32"],
        (BF16, F32) => &["dot_bf16_bf16_f32"],
        (F16, F16) => &["dot_f16_f16_f16", "dot_f16_f16_f32"],
        (F16, F32) => &["dot_f16_f16_f32"],
        (F64, F64) => &["dot_f64_f64_f64"],
        (F8E4M3FN | F8E5M2, F32) => &["dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum"],
        _ => &[],
    };
    if !algorithms.is_empty() && maker.random.one_in(4) {
        return format!(", algorithm={}", maker.random.pick(algorithms));
    }
    if maker.random.one_in(4) {
        let words = ["default", "high", "highest"];
        let (a, b) = (maker.random.pick(&words), maker.random.pick(&words));
        return format!(", operand_precision={{{a},{b}}}");
    }
    String::new()
}

/// Rows in groups, each with its own matrix, those behind the last group zero; or a contracted
/// dimension in groups, each with a result of its own; or a batch in groups.
fn ragged(maker: &mut Maker) -> usize {
    let (ty, sum) = maker.random.pick(&[
        (PrimitiveType::F32, PrimitiveType::F32),
        (PrimitiveType::BF16, PrimitiveType::F32),
        (PrimitiveType::S32, PrimitiveType::S32),
        (PrimitiveType::F64, PrimitiveType::F64),
    ]);
    let size = |maker: &mut Maker| 1 + maker.random.below(5);
    let (groups, k, n) = (size(maker), size(maker), size(maker));
    let sizes: Vec<usize> = (0..groups).map(|_| maker.random.below(4)).collect();
    let total = sizes.iter().sum::<usize>();
    // Fewer than the groups ask for, or some that no group has.
    let m = (total + maker.random.below(3))
        .saturating_sub(maker.random.below(2))
        .max(1);
    let index = maker.random.pick(&[PrimitiveType::S32, PrimitiveType::S64]);
    let sizes = sizes.into_iter().map(|size| Number::Int(size as i128));
    let sizes = maker.given(index, &[groups], sizes);
    let b: Vec<usize> = (0..maker.random.below(2)).map(|_| size(maker)).collect();
    let (first, batches) = (b.len(), if b.is_empty() { "" } else { "0" });
    let with = |dims: &[usize]| -> Vec<usize> { b.iter().chain(dims).copied().collect() };
    let contracts = maker.random.one_in(3);
    let (left, right, to) = match contracts {
        false => (with(&[m, k]), with(&[groups, k, n]), with(&[m, n])),
        true => (
            with(&[k, m]),
            with(&[m, n]),
            [vec![groups], with(&[k, n])].concat(),
        ),
    };
    let most = factor(ty, sum, if contracts { m } else { k });
    let (x, y) = (
        maker.summable(ty, &left, most),
        maker.summable(ty, &right, most),
    );
    let how = match contracts {
        false => format!(
            "rhs_contracting_dims={{{}}}, lhs_ragged_dims={{{first}}}, rhs_group_dims={{{first}}}",
            first + 1
        ),
        true => format!(
            "rhs_contracting_dims={{{first}}}, lhs_ragged_dims={{{}}}, rhs_group_dims={{}}",
            first + 1
        ),
    };
    let text = format!(
        "ragged-dot(v{x}, v{y}, v{sizes}), lhs_batch_dims={{{batches}}}, rhs_batch_dims={{{batches}}}, \
         lhs_contracting_dims={{{}}}, {how}",
        first + 1
    );
    maker.op(sum, &to, text, &[x, y, sizes], summed(sum))
}

/// Small floats times powers of two that stand for blocks of them.
fn scaled(maker: &mut Maker) -> usize {
    use PrimitiveType::{BF16, F4E2M1FN, F6E2M3FN, F8E4M3FN, F8E5M2, F8E8M0FNU, F32};
    let ty = maker
        .random
        .pick(&[F8E4M3FN, F8E5M2, F4E2M1FN, F6E2M3FN, BF16]);
    let other = if maker.random.one_in(3) { F8E4M3FN } else { ty };
    let sum = maker.random.pick(&[F32, F32, BF16]);
    let batch = maker.random.below(2);
    let sizes = |maker: &mut Maker| -> Vec<usize> {
        (0..batch + 2)
            .map(|_| maker.random.pick(&[1, 2, 4, 6]))
            .collect()
    };
    let (left, mut right) = (sizes(maker), sizes(maker));
    right[..=batch].copy_from_slice(&left[..=batch]);
    let one = |maker: &mut Maker, ty: PrimitiveType, dims: &[usize]| {
        let count: usize = dims.iter().product();
        let numbers: Vec<Number> = (0..count)
            .map(|_| Number::Float(maker.random.pick(&[0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5])))
            .collect();
        let x = maker.given(ty, dims, numbers.into_iter());
        // A scalar stands for no scale; else each dimension has as many scales as blocks.
        let blocks: Vec<usize> = match maker.random.below(6) {
            0 => Vec::new(),
            _ => dims
                .iter()
                .map(|&d| match maker.random.below(3) {
                    0 => 1,
                    1 if d.is_multiple_of(2) => d / 2,
                    _ => d,
                })
                .collect(),
        };
        let count: usize = blocks.iter().product();
        let scales: Vec<Number> = (0..count)
            .map(|_| Number::Float(maker.random.pick(&[1.0, 2.0, 4.0, 0.5])))
            .collect();
        let scale = maker.random.pick(&[F8E8M0FNU, F8E8M0FNU, F8E4M3FN, BF16]);
        (x, maker.given(scale, &blocks, scales.into_iter()))
    };
    let (x, x_scale) = one(maker, ty, &left);
    let (y, y_scale) = one(maker, other, &right);
    let batches = if batch == 1 { "0" } else { "" };
    let mut to: Vec<usize> = left[..batch].to_vec();
    to.extend([left[batch + 1], right[batch + 1]]);
    let text = format!(
        "scaled-dot(v{x}, v{y}, v{x_scale}, v{y_scale}), lhs_batch_dims={{{batches}}}, \
         rhs_batch_dims={{{batches}}}, lhs_contracting_dims={{{batch}}}, rhs_contracting_dims={{{batch}}}"
    );
    maker.op(sum, &to, text, &[x, y, x_scale, y_scale], summed(sum))
}

fn convolution(maker: &mut Maker) -> usize {
    let (ty, other, sum) = pair(maker);
    let spatial = maker.random.pick(&[0, 1, 1, 2, 2, 3]);
    let (groups, batches) = match maker.random.below(6) {
        0 => (2, 1),
        1 => (1, 2),
        // Enough for vectors of features.
        2 => (4 + maker.random.below(20), 1),
        _ => (1, 1),
    };
    let batch = batches * (1 + maker.random.below(2));
    let (per_group, out_per_group) = match groups {
        0..4 => (1 + maker.random.below(3), 1 + maker.random.below(3)),
        _ => maker.random.pick(&[(1, 1), (1, 1), (1, 2), (2, 2), (4, 4)]),
    };
    let features = groups * per_group;
    let out_features = groups * batches * out_per_group;
    let sizes: Vec<usize> = (0..spatial).map(|_| 1 + maker.random.below(6)).collect();
    let windows: Vec<Window> = sizes.iter().map(|&d| Window::of(maker, d, false)).collect();
    let counts: Option<Vec<usize>> = windows
        .iter()
        .zip(&sizes)
        .map(|(w, &d)| w.count(d))
        .collect();
    let Some(counts) = counts else {
        return dot(maker);
    };
    // What each dimension is, and its size; then in some order.
    let arrange =
        |maker: &mut Maker, first: (char, usize), second: (char, usize), rest: &[usize]| {
            let mut all = vec![first, second];
            let digits = rest.iter().zip('0'..='9');
            all.extend(digits.map(|(&size, digit)| (digit, size)));
            let order = maker.random.order(all.len());
            let label: String = order.iter().map(|&i| all[i].0).collect();
            let dims: Vec<usize> = order.iter().map(|&i| all[i].1).collect();
            (label, dims)
        };
    let (left, left_dims) = arrange(maker, ('b', batch), ('f', features), &sizes);
    let kernel: Vec<usize> = windows.iter().map(|w| w.size).collect();
    let (right, right_dims) = arrange(maker, ('i', per_group), ('o', out_features), &kernel);
    let (out, to) = arrange(maker, ('b', batch / batches), ('f', out_features), &counts);
    let count = per_group * kernel.iter().product::<usize>() * batch;
    let most = factor(ty, sum, count).min(factor(other, sum, count));
    let x = maker.summable(ty, &left_dims, most);
    let y = maker.summable(other, &right_dims, most);
    let mut window = window_text(&windows);
    if spatial > 0 && maker.random.one_in(4) {
        let flags: Vec<&str> = windows
            .iter()
            .map(|_| maker.random.pick(&["0", "1"]))
            .collect();
        window.pop();
        window.push_str(&format!(" rhs_reversal={}}}", flags.join("x")));
    }
    let window = if spatial == 0 {
        String::new()
    } else {
        format!(", window={window}")
    };
    let mut text = format!("convolution(v{x}, v{y}){window}, dim_labels={left}_{right}->{out}");
    if groups > 1 {
        text.push_str(&format!(", feature_group_count={groups}"));
    }
    if batches > 1 {
        text.push_str(&format!(", batch_group_count={batches}"));
    }
    if maker.random.one_in(4) {
        text.push_str(", operand_precision={highest,high}");
    }
    maker.op(sum, &to, text, &[x, y], summed(sum))
}

fn transform(maker: &mut Maker) -> usize {
    let wide = maker.random.one_in(2);
    let (real, complex, near) = if wide {
        (
            PrimitiveType::F64,
            PrimitiveType::C128,
            Accuracy::Spread(1e-10),
        )
    } else {
        (
            PrimitiveType::F32,
            PrimitiveType::C64,
            Accuracy::Spread(1e-4),
        )
    };
    let rank = maker.random.pick(&[1, 1, 1, 2, 3]);
    let lengths: Vec<usize> = (0..rank)
        .map(|_| match rank {
            1 => 1 + maker.random.below(24),
            _ => 1 + maker.random.below(6),
        })
        .collect();
    let mut dims = vec![1 + maker.random.below(3)];
    dims.extend(&lengths);
    // What a real signal needs of its last dimension.
    let mut half = dims.clone();
    half[rank] = half[rank] / 2 + 1;
    let (kind, from, to) = match maker.random.below(4) {
        0 => ("FFT", (complex, dims.clone()), (complex, dims)),
        1 => ("IFFT", (complex, dims.clone()), (complex, dims)),
        2 => ("RFFT", (real, dims), (complex, half)),
        _ => ("IRFFT", (complex, half), (real, dims)),
    };
    let x = maker.whole(from.0, &from.1, -5, 5);
    let text = format!(
        "fft(v{x}), fft_type={kind}, fft_length={{{}}}",
        list(&lengths)
    );
    maker.op(to.0, &to.1, text, &[x], near)
}

/// Substitution with ones on the diagonal keeps whole numbers whole.
fn solve(maker: &mut Maker) -> usize {
    let ty = maker
        .random
        .pick(&[PrimitiveType::F32, PrimitiveType::F64, PrimitiveType::C64]);
    let (n, k) = (1 + maker.random.below(4), 1 + maker.random.below(3));
    let batch: Vec<usize> = (0..maker.random.below(2)).map(|_| 2).collect();
    let left = maker.random.one_in(2);
    let with = |a: usize, b: usize| -> Vec<usize> { batch.iter().copied().chain([a, b]).collect() };
    let square = with(n, n);
    let dims = if left { with(n, k) } else { with(k, n) };
    let a = maker.whole(ty, &square, -2, 2);
    let b = maker.whole(ty, &dims, -3, 3);
    let lower = maker.random.one_in(2);
    let kinds = ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"];
    let turned = maker.random.pick(&kinds);
    let text = format!(
        "triangular-solve(v{a}, v{b}), left_side={left}, lower={lower}, unit_diagonal=true, transpose_a={turned}"
    );
    maker.op(ty, &dims, text, &[a, b], Accuracy::Exact)
}

/// Substitution with powers of two on the diagonal: quotients are exact.
fn divide(maker: &mut Maker) -> usize {
    let ty = maker
        .random
        .pick(&[PrimitiveType::F32, PrimitiveType::F64, PrimitiveType::C64]);
    let (n, k) = (maker.random.below(4), 1 + maker.random.below(3));
    let left = maker.random.one_in(2);
    let numbers: Vec<f64> = (0..n * n)
        .map(|i| match i % (n + 1) {
            0 => maker.random.pick(&[1.0, 2.0, -2.0, 4.0, 0.5]),
            _ => maker.random.between(-2, 2) as f64,
        })
        .collect();
    let numbers = numbers.into_iter().map(|x| match ty.is_complex() {
        true => Number::Complex(x, 0.0),
        false => Number::Float(x),
    });
    let a = maker.given(ty, &[n, n], numbers);
    let dims = if left { [n, k] } else { [k, n] };
    let b = maker.whole(ty, &dims, -3, 3);
    let lower = maker.random.one_in(2);
    let turned = maker.random.pick(&["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]);
    let text = format!(
        "triangular-solve(v{a}, v{b}), left_side={left}, lower={lower}, unit_diagonal=false, transpose_a={turned}"
    );
    maker.op(ty, &dims, text, &[a, b], Accuracy::Near(0.0))
}
