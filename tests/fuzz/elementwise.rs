//! Ops that compute element by element.

use xla_aot::literal::number::Number;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use super::make::Maker;
use super::program::Accuracy;
use crate::ops;
use crate::ops::Op;

const SMALL_FLOAT: usize = 8;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(24) {
        0..4 => unary(maker),
        4..6 => function(maker),
        6..12 => binary(maker),
        12..14 => compare(maker),
        14 | 15 => select(maker),
        16 => clamp(maker),
        17..20 => convert(maker),
        20 => reduce_precision(maker),
        21 => small(maker),
        22 => match maker.random.below(3) {
            0 => halves(maker),
            1 => ordered_complex(maker),
            _ => parts(maker),
        },
        _ => bits(maker),
    }
}

/// A scale holds powers of two only and one bit too few numbers, and floats of less than a byte have
/// no infinity: little is defined on them.
pub fn computes(ty: PrimitiveType) -> bool {
    (ty.bit_width() >= 8 || ty.is_integer() || ty == PrimitiveType::Pred)
        && ty.bit_width() > 1
        && ty != PrimitiveType::F8E8M0FNU
}

/// Arithmetic on types on which little is defined: of one bit, and floats that lack a zero, an
/// infinity or a NaN. The sign of a zero that stands for a NaN is open.
fn small(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| !computes(ty));
    let dims = maker.dims();
    let x = maker.exact_of(ty, &dims);
    let accuracy = match ty.kind() {
        ElementKind::Float => Accuracy::Near(0.0),
        _ => Accuracy::Exact,
    };
    if maker.random.one_in(3) {
        let op = maker.random.pick(&names(ops::UNARY, |op| op.exact, ty));
        return maker.op(
            ops::result(op, ty),
            &dims,
            format!("{op}(v{x})"),
            &[x],
            accuracy,
        );
    }
    let y = maker.exact_of(ty, &dims);
    if maker.random.one_in(4) {
        let text = format!(
            "compare(v{x}, v{y}), direction={}",
            maker.random.pick(ops::DIRECTIONS)
        );
        return maker.op(PrimitiveType::Pred, &dims, text, &[x, y], Accuracy::Exact);
    }
    let op = maker.random.pick(&names(ops::BINARY, |op| op.exact, ty));
    maker.op(ty, &dims, format!("{op}(v{x}, v{y})"), &[x, y], accuracy)
}

/// The upper half of a product.
fn halves(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| ty.is_integer() && computes(ty));
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    maker.op(
        ty,
        &dims,
        format!("mulhi(v{x}, v{y})"),
        &[x, y],
        Accuracy::Exact,
    )
}

/// A complex number of its parts.
fn parts(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| ty.is_float() && ty.bit_width() >= 32);
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let to = ty.complex_of().expect("floats of this width are parts");
    maker.op(
        to,
        &dims,
        format!("complex(v{x}, v{y})"),
        &[x, y],
        Accuracy::Exact,
    )
}

/// What goes by the order of complex numbers: real parts first, then imaginary ones.
fn ordered_complex(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| ty.is_complex());
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    if maker.random.one_in(2) {
        let text = format!(
            "compare(v{x}, v{y}), direction={}",
            maker.random.pick(ops::DIRECTIONS)
        );
        return maker.op(PrimitiveType::Pred, &dims, text, &[x, y], Accuracy::Exact);
    }
    let op = maker.random.pick(&["maximum", "minimum"]);
    maker.op(
        ty,
        &dims,
        format!("{op}(v{x}, v{y})"),
        &[x, y],
        Accuracy::Exact,
    )
}

/// How near a function of that type must be.
pub fn near(ty: PrimitiveType) -> Accuracy {
    Accuracy::Near(match ty {
        PrimitiveType::F64 | PrimitiveType::C128 => 1e-11,
        PrimitiveType::F32 | PrimitiveType::C64 => 2e-5,
        PrimitiveType::F16 => 2e-3,
        PrimitiveType::BF16 => 2e-2,
        _ => 0.26,
    })
}

/// The names of the ops whose kinds, of those two lists, have that of the type.
fn names(from: &[Op], kinds: fn(&Op) -> &'static str, ty: PrimitiveType) -> Vec<&'static str> {
    let fitting = from.iter().filter(|op| ops::takes(kinds(op), ty));
    fitting.map(|op| op.name).collect()
}

fn unary(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let op = maker.random.pick(&names(ops::UNARY, |op| op.exact, ty));
    let text = format!("{op}(v{x})");
    let made = maker.op(ops::result(op, ty), &dims, text, &[x], Accuracy::Exact);
    if matches!(op, "negate" | "abs") && ty.is_float() {
        maker.stays_whole(x, made);
    }
    made
}

fn function(maker: &mut Maker) -> usize {
    let x = if maker.random.one_in(4) {
        complex(maker)
    } else {
        maker.exact(|ty, _| ty.is_float() && ty.bit_width() >= SMALL_FLOAT && computes(ty))
    };
    let (ty, dims) = maker.array(x);
    let op = maker.random.pick(&names(ops::UNARY, |op| op.near, ty));
    let text = format!("{op}(v{x})");
    maker.op(ops::result(op, ty), &dims, text, &[x], near(ty))
}

/// Complex numbers that functions neither overflow on nor lose themselves in, and infinite ones.
fn complex(maker: &mut Maker) -> usize {
    let ty = maker
        .random
        .pick(&[PrimitiveType::C64, PrimitiveType::C64, PrimitiveType::C128]);
    let dims = maker.dims();
    complex_of(maker, ty, &dims)
}

fn complex_of(maker: &mut Maker, ty: PrimitiveType, dims: &[usize]) -> usize {
    let parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 0.75, -0.125];
    let ends = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let count: usize = dims.iter().product();
    let mut part = || match maker.random.below(8) {
        0 => maker.random.pick(&ends),
        _ => maker.random.pick(&parts),
    };
    let numbers: Vec<Number> = (0..count)
        .map(|_| Number::Complex(part(), part()))
        .collect();
    maker.given(ty, dims, numbers.into_iter())
}

fn binary(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let by = names(ops::BINARY, |op| op.exact, ty);
    let functions = names(ops::BINARY, |op| op.near, ty);
    if !functions.is_empty() && maker.random.one_in(6) {
        let (x, y) = if ty.is_complex() {
            (complex_of(maker, ty, &dims), complex_of(maker, ty, &dims))
        } else {
            (x, maker.exact_of(ty, &dims))
        };
        let op = maker.random.pick(&functions);
        let text = format!("{op}(v{x}, v{y})");
        return maker.op(ty, &dims, text, &[x, y], near(ty));
    }
    let y = maker.exact_of(ty, &dims);
    let op = maker.random.pick(&by);
    let text = format!("{op}(v{x}, v{y})");
    let made = maker.op(ty, &dims, text, &[x, y], Accuracy::Exact);
    if !ty.is_integer() && matches!(op, "maximum" | "minimum") {
        let (a, b) = (maker.line(x).whole, maker.line(y).whole);
        maker.program.lines[made].whole = a.zip(b).map(|(a, b)| a.max(b));
    }
    made
}

fn compare(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    // Equality comes first; complex numbers have no other order that all agree on.
    let all = ops::DIRECTIONS;
    let direction = match ty.kind() {
        ElementKind::Complex => maker.random.pick(&all[..2]),
        _ => maker.random.pick(all),
    };
    // A total order tells NaN of different bits apart, and what bits an op makes is not specified.
    let bits = [x, y].iter().all(|&v| maker.moved(v) == Accuracy::Bits);
    let total = if ty.is_float() && ty.bit_width() >= 16 && bits && maker.random.one_in(3) {
        ", type=TOTALORDER"
    } else {
        ""
    };
    let text = format!("compare(v{x}, v{y}), direction={direction}{total}");
    maker.op(PrimitiveType::Pred, &dims, text, &[x, y], Accuracy::Exact)
}

fn select(maker: &mut Maker) -> usize {
    let x = maker.exact(|_, _| true);
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let p = maker.exact_of(PrimitiveType::Pred, &dims);
    let text = format!("select(v{p}, v{x}, v{y})");
    let accuracy = match (maker.moved(x), maker.moved(y)) {
        (Accuracy::Bits, Accuracy::Bits) => Accuracy::Bits,
        _ => Accuracy::Exact,
    };
    maker.op(ty, &dims, text, &[p, x, y], accuracy)
}

fn clamp(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty) && !ty.is_complex() && ty != PrimitiveType::Pred);
    let (ty, dims) = maker.array(x);
    let bounds = if maker.random.one_in(2) {
        &dims
    } else {
        &Vec::new()
    };
    let low = maker.exact_of(ty, bounds);
    let high = maker.exact_of(ty, bounds);
    let text = format!("clamp(v{low}, v{x}, v{high})");
    maker.op(ty, &dims, text, &[low, x, high], Accuracy::Exact)
}

fn convert(maker: &mut Maker) -> usize {
    let x = maker.exact(|_, _| true);
    let (from, dims) = maker.array(x);
    let to = maker.ty_where(|to| !from.is_complex() || to.is_complex());
    let text = format!("convert(v{x})");
    maker.op(to, &dims, text, &[x], Accuracy::Exact)
}

fn reduce_precision(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| ty.is_float() && ty.bit_width() >= 16);
    let (ty, dims) = maker.array(x);
    let (e, m) = (1 + maker.random.below(11), maker.random.below(53));
    let text = format!("reduce-precision(v{x}), exponent_bits={e}, mantissa_bits={m}");
    maker.op(ty, &dims, text, &[x], Accuracy::Exact)
}

/// The same bits under another type.
fn bits(maker: &mut Maker) -> usize {
    let fits = |ty: PrimitiveType| {
        ty != PrimitiveType::Pred && !ty.is_complex() && ty.bit_width().is_power_of_two()
    };
    let to = maker.ty_where(fits);
    let mut x = maker.exact(|ty, _| fits(ty));
    let (mut from, mut dims) = maker.array(x);
    let fresh = maker.moved(x) != Accuracy::Bits && from.is_float();
    let ratio = to.bit_width() / from.bit_width();
    if fresh || ratio > 1 && dims.last() != Some(&ratio) {
        from = maker.ty_where(fits);
        dims = maker.dims_of(1);
        let ratio = to.bit_width() / from.bit_width();
        if ratio > 1 {
            dims.push(ratio);
        }
        x = maker.parameter(from, &dims);
    }
    if to.bit_width() > from.bit_width() {
        dims.pop();
    } else if to.bit_width() < from.bit_width() {
        dims.push(from.bit_width() / to.bit_width());
    }
    let text = format!("bitcast-convert(v{x})");
    maker.op(to, &dims, text, &[x], Accuracy::Bits)
}
