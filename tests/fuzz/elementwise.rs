//! Ops that compute element by element.

use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use super::make::Maker;
use super::program::Accuracy;

const SMALL_FLOAT: usize = 8;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(12) {
        0..2 => unary(maker),
        2 => function(maker),
        3..6 => binary(maker),
        6 => compare(maker),
        7 => select(maker),
        8 => clamp(maker),
        9..11 => convert(maker),
        _ => bits(maker),
    }
}

/// A scale holds powers of two only, and little is defined on it.
pub fn computes(ty: PrimitiveType) -> bool {
    ty != PrimitiveType::F8E8M0FNU && ty != PrimitiveType::F4E2M1FN
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

fn unary(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let (op, result) = match ty.kind() {
        ElementKind::Pred => ("not", ty),
        ElementKind::Signed => {
            let ops = [
                "negate",
                "abs",
                "not",
                "sign",
                "popcnt",
                "count-leading-zeros",
            ];
            (maker.random.pick(&ops), ty)
        }
        ElementKind::Unsigned => {
            let ops = ["negate", "not", "sign", "popcnt", "count-leading-zeros"];
            (maker.random.pick(&ops), ty)
        }
        ElementKind::Float => {
            let ops = [
                "negate",
                "abs",
                "floor",
                "ceil",
                "sign",
                "sqrt",
                "is-finite",
                "round-nearest-even",
                "round-nearest-afz",
            ];
            match maker.random.pick(&ops) {
                "is-finite" => ("is-finite", PrimitiveType::Pred),
                op => (op, ty),
            }
        }
        ElementKind::Complex => match maker.random.pick(&["negate", "real", "imag"]) {
            "negate" => ("negate", ty),
            part => (part, ty.real_part()),
        },
    };
    let text = format!("{op}(v{x})");
    let made = maker.op(result, &dims, text, &[x], Accuracy::Exact);
    if matches!(op, "negate" | "abs") && ty.is_float() {
        maker.stays_whole(x, made);
    }
    made
}

fn function(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| ty.is_float() && ty.bit_width() >= SMALL_FLOAT && computes(ty));
    let (ty, dims) = maker.array(x);
    let ops = [
        "exponential",
        "exponential-minus-one",
        "log",
        "log-plus-one",
        "logistic",
        "tanh",
        "sine",
        "cosine",
        "tan",
        "rsqrt",
        "cbrt",
        "erf",
        "asin",
        "acos",
        "asinh",
        "acosh",
        "atanh",
        "sinh",
        "cosh",
    ];
    let text = format!("{}(v{x})", maker.random.pick(&ops));
    maker.op(ty, &dims, text, &[x], near(ty))
}

fn binary(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let whole = ty.is_integer();
    let (op, accuracy) = match ty.kind() {
        ElementKind::Pred => (
            maker
                .random
                .pick(&["and", "or", "xor", "add", "multiply", "maximum", "minimum"]),
            Accuracy::Exact,
        ),
        ElementKind::Complex => (maker.random.pick(&["add", "subtract"]), Accuracy::Exact),
        _ if whole => {
            let ops = [
                "add",
                "subtract",
                "multiply",
                "divide",
                "remainder",
                "maximum",
                "minimum",
                "and",
                "or",
                "xor",
                "shift-left",
                "shift-right-arithmetic",
                "shift-right-logical",
                "power",
            ];
            (maker.random.pick(&ops), Accuracy::Exact)
        }
        _ => {
            let ops = [
                "add",
                "subtract",
                "multiply",
                "divide",
                "maximum",
                "minimum",
                "remainder",
                "add",
                "subtract",
                "multiply",
                "divide",
                "maximum",
                "minimum",
                "power",
                "atan2",
            ];
            match maker.random.pick(&ops) {
                op @ ("power" | "atan2") => (op, near(ty)),
                op => (op, Accuracy::Exact),
            }
        }
    };
    let text = format!("{op}(v{x}, v{y})");
    let made = maker.op(ty, &dims, text, &[x, y], accuracy);
    if !whole && matches!(op, "maximum" | "minimum") {
        let (a, b) = (maker.line(x).whole, maker.line(y).whole);
        maker.program.lines[made].whole = a.zip(b).map(|(a, b)| a.max(b));
    }
    made
}

fn compare(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let all = ["EQ", "NE", "GE", "GT", "LE", "LT"];
    let direction = match ty.kind() {
        ElementKind::Complex => maker.random.pick(&all[..2]),
        _ => maker.random.pick(&all),
    };
    let total = if ty.is_float() && ty.bit_width() >= 16 && maker.random.one_in(3) {
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
    if from == to && from.is_float() && from.bit_width() >= 16 {
        let (e, m) = (1 + maker.random.below(11), maker.random.below(53));
        let text = format!("reduce-precision(v{x}), exponent_bits={e}, mantissa_bits={m}");
        return maker.op(from, &dims, text, &[x], Accuracy::Exact);
    }
    let text = format!("convert(v{x})");
    maker.op(to, &dims, text, &[x], Accuracy::Exact)
}

/// The same bits under another type.
fn bits(maker: &mut Maker) -> usize {
    let fits = |ty: PrimitiveType| {
        ty != PrimitiveType::Pred
            && !ty.is_complex()
            && matches!(ty.bit_width(), 4 | 8 | 16 | 32 | 64)
    };
    let mut x = maker.exact(|ty, _| fits(ty));
    if maker.moved(x) != Accuracy::Bits && maker.array(x).0.is_float() {
        let (ty, dims) = (maker.ty_where(fits), maker.dims());
        x = maker.parameter(ty, &dims);
    }
    let (from, mut dims) = maker.array(x);
    let to = loop {
        let to = maker.ty_where(fits);
        let ratio = to.bit_width() / from.bit_width();
        if ratio <= 1 || dims.last() == Some(&ratio) || maker.random.one_in(50) {
            break if ratio > 1 && dims.last() != Some(&ratio) {
                from
            } else {
                to
            };
        }
    };
    if to.bit_width() > from.bit_width() {
        dims.pop();
    } else if to.bit_width() < from.bit_width() {
        dims.push(from.bit_width() / to.bit_width());
    }
    let text = format!("bitcast-convert(v{x})");
    maker.op(to, &dims, text, &[x], Accuracy::Bits)
}
