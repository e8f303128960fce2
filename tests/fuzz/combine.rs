//! Ops that combine elements by a computation, and sorts.

use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use super::elementwise::computes;
use super::make::Maker;
use super::make::whole_limit;
use super::movement;
use super::program::Accuracy;
use super::program::list;
use super::several;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(11) {
        0..3 => reduce(maker),
        3 => reduce_indexed(maker),
        4 => reduce_window(maker),
        5 => select_and_scatter(maker),
        6..8 => sort(maker),
        8 => scatter(maker),
        _ => several::any(maker),
    }
}

/// The text of a computation of two scalars.
pub fn body(maker: &mut Maker, op: &str, ty: PrimitiveType) -> String {
    maker.other(|name| {
        format!(
            "{name} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT c = {ty}[] {op}(a, b)\n}}\n"
        )
    })
}

/// An op whose result does not depend on the order, and its neutral value.
pub struct Combiner {
    /// Name.
    pub op: &'static str,
    /// What changes nothing.
    pub neutral: String,
    /// Whether its results grow.
    pub sums: bool,
}

/// One for that type.
pub fn combiner(maker: &mut Maker, ty: PrimitiveType) -> Combiner {
    let bits = ty.bit_width() as u32;
    let (low, high) = match ty.kind() {
        ElementKind::Signed => (
            (-(1i128 << (bits - 1))).to_string(),
            ((1i128 << (bits - 1)) - 1).to_string(),
        ),
        ElementKind::Unsigned => ("0".to_owned(), ((1i128 << bits) - 1).to_string()),
        ElementKind::Pred => ("false".to_owned(), "true".to_owned()),
        _ => ("-inf".to_owned(), "inf".to_owned()),
    };
    let ops: &[&str] = match ty.kind() {
        ElementKind::Pred => &["and", "or", "xor", "maximum", "minimum"],
        ElementKind::Signed | ElementKind::Unsigned => &[
            "add", "add", "multiply", "maximum", "minimum", "and", "or", "xor",
        ],
        ElementKind::Complex => &["add"],
        ElementKind::Float if ty.bit_width() < 16 => &["add"],
        ElementKind::Float => &["add", "add", "maximum", "minimum"],
    };
    let op = maker.random.pick(ops);
    let neutral = match op {
        "maximum" => low,
        "minimum" => high,
        "multiply" => "1".to_owned(),
        "and" if ty == PrimitiveType::Pred => "true".to_owned(),
        "and" if ty.kind() == ElementKind::Signed => "-1".to_owned(),
        "and" => high,
        "or" | "xor" if ty == PrimitiveType::Pred => "false".to_owned(),
        _ if ty.is_complex() => "(0, 0)".to_owned(),
        _ => "0".to_owned(),
    };
    Combiner {
        op,
        neutral,
        sums: op == "add" && !ty.is_integer(),
    }
}

/// A constant.
pub fn scalar(maker: &mut Maker, ty: PrimitiveType, text: &str) -> usize {
    maker.op(ty, &[], format!("constant({text})"), &[], Accuracy::Bits)
}

/// What a reduction starts from: mostly what changes nothing, else zero or one, which counts.
pub fn start(maker: &mut Maker, by: &Combiner, ty: PrimitiveType) -> usize {
    match maker.random.below(4) {
        0 => maker.whole(ty, &[], 0, 1),
        _ => scalar(maker, ty, &by.neutral),
    }
}

/// An array to combine `count` elements of at a time, each exactly.
pub fn combinable(
    maker: &mut Maker,
    by: &Combiner,
    ty: PrimitiveType,
    dims: &[usize],
    count: usize,
) -> usize {
    if by.sums {
        let most = whole_limit(ty) / count.max(1) as f64;
        maker.summable(ty, dims, most.min(4.0) as i64)
    } else {
        maker.exact_of(ty, dims)
    }
}

/// Whether sums of that type can be made of ones at least.
fn sums_exactly(ty: PrimitiveType) -> bool {
    computes(ty)
}

fn reduce(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(sums_exactly);
    let mut dims = maker.dims();
    if dims.is_empty() {
        dims.push(maker.size());
    }
    let by = combiner(maker, ty);
    let reduced = maker.random.some(dims.len());
    let count: usize = reduced.iter().map(|&d| dims[d]).product();
    let x = combinable(maker, &by, ty, &dims, count + 1);
    let init = start(maker, &by, ty);
    let name = body(maker, by.op, ty);
    let kept: Vec<usize> = (0..dims.len())
        .filter(|d| !reduced.contains(d))
        .map(|d| dims[d])
        .collect();
    let text = format!(
        "reduce(v{x}, v{init}), dimensions={{{}}}, to_apply={name}",
        list(&reduced)
    );
    maker.op(ty, &kept, text, &[x, init], Accuracy::Exact)
}

/// The largest or smallest element and the first place it has.
fn reduce_indexed(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| {
        (ty.is_integer() && ty.bit_width() >= 8) || (ty.is_float() && ty.bit_width() >= 16)
    });
    let rank = 1 + maker.random.below(3);
    let dims = maker.dims_of(rank);
    let along = maker.random.below(rank);
    let x = maker.whole(ty, &dims, -4, 4);
    let at = format!("iota(), iota_dimension={along}");
    let at = maker.op(PrimitiveType::S32, &dims, at, &[], Accuracy::Bits);
    let by = maker.random.pick(&["GT", "LT"]);
    let init = match (by, ty.kind()) {
        ("GT", ElementKind::Unsigned) => "0",
        ("GT", _) => "-100",
        _ => "100",
    };
    let init = scalar(maker, ty, init);
    let none = scalar(maker, PrimitiveType::S32, "2147483647");
    let name = maker.other(|name| {
        format!(
            "{name} {{\n  a = {ty}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {ty}[] parameter(2)\n  j = s32[] parameter(3)\n  p = pred[] compare(a, b), direction={by}\n  e = pred[] compare(a, b), direction=EQ\n  f = pred[] compare(i, j), direction=LT\n  g = pred[] and(e, f)\n  q = pred[] or(p, g)\n  v = {ty}[] select(q, a, b)\n  w = s32[] select(q, i, j)\n  ROOT r = ({ty}[], s32[]) tuple(v, w)\n}}\n"
        )
    });
    let mut kept = dims;
    kept.remove(along);
    let text =
        format!("reduce(v{x}, v{at}, v{init}, v{none}), dimensions={{{along}}}, to_apply={name}");
    let parts = [
        (ty, kept.clone(), Accuracy::Exact),
        (PrimitiveType::S32, kept, Accuracy::Exact),
    ];
    maker.tuple_op(&parts, text, &[x, at, init, none])[0]
}

/// A window along one dimension.
pub struct Window {
    /// Size.
    pub size: usize,
    /// Steps between windows.
    pub stride: usize,
    /// Padding before and behind.
    pub pad: (i64, i64),
    /// Distance of elements of the array.
    pub base: usize,
    /// Distance of elements of the window.
    pub dilation: usize,
}

impl Window {
    /// A window for a dimension of that size; `plain` without dilations.
    pub fn of(maker: &mut Maker, size: usize, plain: bool) -> Self {
        let window = 1 + maker.random.below(3.min(size.max(1)));
        let pad = if plain {
            (
                maker.random.between(0, window as i64 - 1),
                maker.random.between(0, window as i64 - 1),
            )
        } else {
            (maker.random.between(-1, 2), maker.random.between(-1, 2))
        };
        let dilation = |maker: &mut Maker| {
            if plain {
                1
            } else {
                maker.random.pick(&[1, 1, 1, 2])
            }
        };
        Self {
            size: window,
            stride: maker.random.pick(&[1, 1, 2, 3]),
            pad,
            base: dilation(maker),
            dilation: dilation(maker),
        }
    }
    /// How many windows there are along a dimension of that size; none when it makes no sense.
    pub fn count(&self, size: usize) -> Option<usize> {
        let spread = if size == 0 {
            0
        } else {
            (size - 1) * self.base + 1
        };
        let padded = usize::try_from(spread as i64 + self.pad.0 + self.pad.1).ok()?;
        let reach = (self.size - 1) * self.dilation + 1;
        if padded < reach {
            return Some(0);
        }
        Some((padded - reach) / self.stride + 1)
    }
}

/// `{size=3x3 stride=2x1 ...}`
pub fn window_text(windows: &[Window]) -> String {
    let joined =
        |part: &dyn Fn(&Window) -> String| windows.iter().map(part).collect::<Vec<_>>().join("x");
    format!(
        "{{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}",
        joined(&|w| w.size.to_string()),
        joined(&|w| w.stride.to_string()),
        joined(&|w| format!("{}_{}", w.pad.0, w.pad.1)),
        joined(&|w| w.base.to_string()),
        joined(&|w| w.dilation.to_string())
    )
}

/// Windows over an array of these dimensions, and how many there are.
pub fn windows(maker: &mut Maker, dims: &[usize]) -> (Vec<Window>, Vec<usize>) {
    loop {
        let windows: Vec<Window> = dims.iter().map(|&d| Window::of(maker, d, false)).collect();
        let counts = windows.iter().zip(dims).map(|(w, &d)| w.count(d));
        if let Some(to) = counts.collect() {
            return (windows, to);
        }
    }
}

fn reduce_window(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(sums_exactly);
    let rank = 1 + maker.random.below(3);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(9)).collect();
    let by = combiner(maker, ty);
    let (windows, to) = windows(maker, &dims);
    let count: usize = windows.iter().map(|w| w.size).product();
    let x = combinable(maker, &by, ty, &dims, count + 1);
    let init = start(maker, &by, ty);
    let name = body(maker, by.op, ty);
    let window = window_text(&windows);
    let text = format!("reduce-window(v{x}, v{init}), window={window}, to_apply={name}");
    maker.op(ty, &to, text, &[x, init], Accuracy::Exact)
}

fn select_and_scatter(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| ty.is_integer() || (ty.is_float() && ty.bit_width() >= 16));
    let rank = 1 + maker.random.below(2);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(8)).collect();
    let windows: Vec<Window> = dims.iter().map(|&d| Window::of(maker, d, true)).collect();
    let counts: Option<Vec<usize>> = windows
        .iter()
        .zip(&dims)
        .map(|(w, &d)| w.count(d))
        .collect();
    let Some(counts) = counts else {
        return reduce(maker);
    };
    let x = maker.whole(ty, &dims, -4, 4);
    let source = maker.whole(ty, &counts, -2, 2);
    let init = scalar(maker, ty, "0");
    let scatter = body(maker, "add", ty);
    let by = maker.random.pick(&["GE", "LE", "GT"]);
    let select = maker.other(|name| {
        format!(
            "{name} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction={by}\n}}\n"
        )
    });
    let joined =
        |part: &dyn Fn(&Window) -> String| windows.iter().map(part).collect::<Vec<_>>().join("x");
    let text = format!(
        "select-and-scatter(v{x}, v{source}, v{init}), window={{size={} stride={} pad={}}}, select={select}, scatter={scatter}",
        joined(&|w| w.size.to_string()),
        joined(&|w| w.stride.to_string()),
        joined(&|w| format!("{}_{}", w.pad.0, w.pad.1)),
    );
    maker.op(ty, &dims, text, &[x, source, init], Accuracy::Exact)
}

fn sort(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, dims| {
        !dims.is_empty()
            && (ty.is_integer()
                || ty == PrimitiveType::Pred
                || (ty.is_float() && ty.bit_width() >= 16))
    });
    let (ty, dims) = maker.array(x);
    // Where NaN have different bits, a total order would tell them apart.
    let x = if ty.is_float() && maker.moved(x) != Accuracy::Bits {
        maker.parameter(ty, &dims)
    } else {
        x
    };
    let along = maker.random.below(dims.len());
    let total = if ty.is_float() {
        ", type=TOTALORDER"
    } else {
        ""
    };
    let by = maker.random.pick(&["LT", "GT"]);
    let second = maker.random.one_in(2).then(|| {
        let ty = maker.ty();
        maker.parameter(ty, &dims)
    });
    let other = second.map(|s| maker.array(s).0);
    let name = maker.other(|name| {
        let more = other.map_or(String::new(), |ty| {
            format!("  c = {ty}[] parameter(2)\n  d = {ty}[] parameter(3)\n")
        });
        format!(
            "{name} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n{more}  ROOT e = pred[] compare(a, b), direction={by}{total}\n}}\n"
        )
    });
    let stable = if second.is_some() {
        ", is_stable=true"
    } else {
        ""
    };
    match (second, other) {
        (Some(second), Some(other)) => {
            let text =
                format!("sort(v{x}, v{second}), dimensions={{{along}}}{stable}, to_apply={name}");
            let parts = [
                (ty, dims.clone(), Accuracy::Bits),
                (other, dims, Accuracy::Bits),
            ];
            maker.tuple_op(&parts, text, &[x, second])[0]
        }
        _ => {
            let text = format!("sort(v{x}), dimensions={{{along}}}, to_apply={name}");
            maker.op(ty, &dims, text, &[x], Accuracy::Bits)
        }
    }
}

fn scatter(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(sums_exactly);
    let rank = 1 + maker.random.below(3);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(5)).collect();
    let by = combiner(maker, ty);
    let w = movement::windows(maker, &dims);
    let total = w.dims.iter().product::<usize>();
    let x = combinable(maker, &by, ty, &dims, total + 1);
    let updates = combinable(maker, &by, ty, &w.dims, total + 1);
    let name = body(maker, by.op, ty);
    let how = w.scatter_text();
    let text = format!(
        "scatter(v{x}, v{}, v{updates}), {how}, to_apply={name}",
        w.indices
    );
    maker.op(ty, &dims, text, &[x, w.indices, updates], Accuracy::Exact)
}
