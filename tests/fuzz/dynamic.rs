//! Arrays whose sizes are known only when the program runs.
//!
//! Only what is specified is made: of an array the real elements, and beyond them what elementwise
//! ops carry along. A value's line has a dynamic shape wherever the value may be dynamic.

use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;

use super::combine::Combiner;
use super::combine::body;
use super::combine::combinable;
use super::combine::combiner;
use super::combine::scalar;
use super::combine::start;
use super::combine::window_text;
use super::combine::windows;
use super::control::exact_op;
use super::elementwise::computes;
use super::make::Maker;
use super::make::whole_limit;
use super::movement::index_type;
use super::program::Accuracy;
use super::program::list;
use crate::ops;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(32) {
        0 => source(maker),
        1 => size_of(maker),
        2..5 => unary(maker),
        5..8 => binary(maker),
        8 => select(maker),
        9 => transpose(maker),
        10 => broadcast(maker),
        11 => slice(maker),
        12 => pad(maker),
        13 => concatenate(maker),
        14 => reshape(maker),
        15..18 => reduce(maker),
        18 => reduce_window(maker),
        19 => sort(maker),
        20 => dot(maker),
        21 => update(maker),
        22 => gather(maker),
        23 => scatter(maker),
        24 => largest(maker),
        25 => pad_to_static(maker),
        26 => select_and_scatter(maker),
        27 => convolution(maker),
        28 => carried(maker),
        29 => batched(maker),
        30 => normalize(maker),
        _ => looped(maker),
    }
}

/// Element type, bounds, and which dimensions are dynamic.
#[derive(Clone)]
struct Bounds {
    ty: PrimitiveType,
    dims: Vec<usize>,
    open: Vec<bool>,
}

impl Bounds {
    fn new(ty: PrimitiveType, dims: Vec<usize>, open: Vec<bool>) -> Self {
        Self { ty, dims, open }
    }
    fn shape(&self) -> ArrayShape {
        let mut shape = ArrayShape::new(self.ty, self.dims.iter().copied());
        if self.open.contains(&true) {
            shape.dynamic = self.open.iter().copied().collect();
        }
        shape
    }
    fn text(&self) -> String {
        self.shape().to_string()
    }
    fn of_type(&self, ty: PrimitiveType) -> Self {
        Self { ty, ..self.clone() }
    }
    fn rank(&self) -> usize {
        self.dims.len()
    }
}

/// What a value may be.
fn bounds(maker: &Maker, name: usize) -> Bounds {
    let array = maker.line(name).array.as_ref().expect("an array");
    let open = (0..array.rank()).map(|d| array.is_dynamic_dim(d)).collect();
    Bounds::new(array.ty, array.dims.to_vec(), open)
}

/// Adds an op that gives such an array.
fn gives(
    maker: &mut Maker,
    to: &Bounds,
    text: String,
    operands: &[usize],
    accuracy: Accuracy,
) -> usize {
    // Where ops alone decide what is dynamic, a shape need not say it.
    let decides = ["dynamic-reshape", "custom-call", "reshape"];
    let silent = maker.random.one_in(10) && !decides.iter().any(|op| text.starts_with(op));
    let made = maker.array_op(to.shape(), text, operands, accuracy);
    if silent {
        maker.program.undeclared.push(made);
    }
    made
}

/// Adds an op that moves what its first operand holds.
fn moves(maker: &mut Maker, to: &Bounds, text: String, operands: &[usize]) -> usize {
    let accuracy = maker.moved(operands[0]);
    let made = gives(maker, to, text, operands, accuracy);
    maker.stays_whole(operands[0], made)
}

/// Bounds of that rank, some dimension of them dynamic.
fn fresh(maker: &mut Maker, ty: PrimitiveType, rank: usize) -> Bounds {
    let dims: Vec<usize> = (0..rank)
        .map(|_| match maker.random.below(8) {
            0 => 1,
            _ => 2 + maker.random.below(4),
        })
        .collect();
    let open = opened(maker, rank);
    Bounds::new(ty, dims, open)
}

fn opened(maker: &mut Maker, rank: usize) -> Vec<bool> {
    let mut open: Vec<bool> = (0..rank).map(|_| maker.random.one_in(3)).collect();
    let sure = maker.random.below(rank);
    open[sure] = true;
    open
}

/// A size for a dimension of that bound: an argument, mostly within the bound, or a constant.
fn size(maker: &mut Maker, bound: usize) -> usize {
    let ty = PrimitiveType::S32;
    if maker.random.one_in(4) {
        // The bound itself would make the dimension static.
        let size = maker.random.below(bound.max(1));
        return scalar(maker, ty, &size.to_string());
    }
    let (low, high) = match maker.random.below(4) {
        0 => (-1, bound as i64 + 1),
        _ => (1.min(bound as i64), bound as i64),
    };
    maker.whole(ty, &[], low, high)
}

/// An array of corner values, or of whole numbers of at most that magnitude.
fn filled(maker: &mut Maker, ty: PrimitiveType, dims: &[usize], most: Option<i64>) -> usize {
    match most {
        Some(most) => maker.summable(ty, dims, most),
        None => maker.exact_of(ty, dims),
    }
}

/// A dynamic array of those bounds.
fn made(maker: &mut Maker, of: &Bounds, most: Option<i64>) -> usize {
    match maker.random.below(5) {
        0 | 1 => parameter(maker, of, most),
        2 => {
            let x = filled(maker, of.ty, &of.dims, most);
            let sizes: Vec<usize> = of.dims.iter().map(|&d| size(maker, d)).collect();
            let names: Vec<String> = sizes.iter().map(|s| format!(", v{s}")).collect();
            let text = format!(
                "custom-call(v{x}{}), custom_call_target=\"SliceToDynamic\"",
                names.concat()
            );
            let operands: Vec<usize> = [x].into_iter().chain(sizes).collect();
            moves(maker, of, text, &operands)
        }
        _ => {
            let mut x = filled(maker, of.ty, &of.dims, most);
            let mut reached = Bounds {
                open: vec![false; of.rank()],
                ..of.clone()
            };
            for d in (0..of.rank()).filter(|&d| of.open[d]) {
                // Of two sizes set one after the other the second is the one.
                for _ in 0..1 + usize::from(maker.random.one_in(4)) {
                    let n = size(maker, of.dims[d]);
                    reached.open[d] = true;
                    let text = format!("set-dimension-size(v{x}, v{n}), dimensions={{{d}}}");
                    x = moves(maker, &reached, text, &[x, n]);
                }
            }
            x
        }
    }
}

/// An argument of real sizes.
fn parameter(maker: &mut Maker, of: &Bounds, most: Option<i64>) -> usize {
    let pairs = of.dims.iter().zip(&of.open);
    let real: Vec<usize> = pairs
        .map(|(&bound, &open)| match open {
            true => maker.random.below(bound + 1),
            false => bound,
        })
        .collect();
    let name = match most {
        Some(most) => maker.whole(of.ty, &real, -most, most),
        None => maker.parameter(of.ty, &real),
    };
    maker.bound(name, of.shape());
    name
}

/// A dynamic array that is there, or a new one.
fn value(maker: &mut Maker, passes: impl Fn(&Bounds) -> bool) -> usize {
    let exact = maker.found_dynamic(|line, array| {
        let open = (0..array.rank()).map(|d| array.is_dynamic_dim(d)).collect();
        let of = Bounds::new(array.ty, array.dims.to_vec(), open);
        line.accuracy.is_exact() && !of.dims.contains(&0) && passes(&of)
    });
    exact.unwrap_or_else(|| {
        loop {
            let ty = maker.ty_where(computes);
            let rank = 1 + maker.random.below(3);
            let of = fresh(maker, ty, rank);
            if passes(&of) {
                break made(maker, &of, None);
            }
        }
    })
}

/// An array of the same bounds, dynamic or not.
fn partner(maker: &mut Maker, of: &Bounds) -> usize {
    if maker.random.one_in(2) {
        return maker.exact_of(of.ty, &of.dims);
    }
    let open = opened(maker, of.rank());
    let of = Bounds { open, ..of.clone() };
    made(maker, &of, None)
}

/// Dynamic where one of two arrays of the same bounds is.
fn joined(maker: &Maker, a: usize, b: usize) -> Bounds {
    let (a, b) = (bounds(maker, a), bounds(maker, b));
    let open = a.open.iter().zip(&b.open).map(|(a, b)| *a || *b).collect();
    Bounds { open, ..a }
}

/// An array that becomes dynamic.
fn source(maker: &mut Maker) -> usize {
    if maker.random.one_in(3) {
        return dynamic_reshape(maker);
    }
    let ty = maker.ty();
    let rank = 1 + maker.random.below(3);
    let of = fresh(maker, ty, rank);
    made(maker, &of, None)
}

fn size_of(maker: &mut Maker) -> usize {
    let x = value(maker, |_| true);
    let at = maker.random.below(bounds(maker, x).rank());
    let text = format!("get-dimension-size(v{x}), dimensions={{{at}}}");
    maker.op(PrimitiveType::S32, &[], text, &[x], Accuracy::Exact)
}

/// The real elements of two dimensions along one, or the two exchanged.
fn dynamic_reshape(maker: &mut Maker) -> usize {
    let x = value(maker, |of| of.rank() == 2);
    let of = bounds(maker, x);
    let size_of = |maker: &mut Maker, d: usize| {
        let text = format!("get-dimension-size(v{x}), dimensions={{{d}}}");
        maker.op(PrimitiveType::S32, &[], text, &[x], Accuracy::Exact)
    };
    let (rows, columns) = (size_of(maker, 0), size_of(maker, 1));
    if maker.random.one_in(2) {
        let to = Bounds::new(
            of.ty,
            vec![of.dims[1], of.dims[0]],
            vec![of.open[1], of.open[0]],
        );
        let text = format!("dynamic-reshape(v{x}, v{columns}, v{rows})");
        return moves(maker, &to, text, &[x, columns, rows]);
    }
    let text = format!("multiply(v{rows}, v{columns})");
    let all = maker.op(
        PrimitiveType::S32,
        &[],
        text,
        &[rows, columns],
        Accuracy::Exact,
    );
    let to = Bounds::new(of.ty, vec![of.dims[0] * of.dims[1]], vec![true]);
    moves(
        maker,
        &to,
        format!("dynamic-reshape(v{x}, v{all})"),
        &[x, all],
    )
}

/// Elementwise ops of one operand, and what else keeps the shape.
fn unary(maker: &mut Maker) -> usize {
    let x = value(maker, |of| computes(of.ty));
    let of = bounds(maker, x);
    match maker.random.below(6) {
        0 => {
            let to = maker.ty_where(|to| !of.ty.is_complex() || to.is_complex());
            let text = format!("convert(v{x})");
            gives(maker, &of.of_type(to), text, &[x], Accuracy::Exact)
        }
        1 => {
            let (copied, inside) = (format!("copy(v{x})"), maker.random.order(of.rank()));
            let made = moves(maker, &of, copied, &[x]);
            maker.program.inside.push((made, inside));
            made
        }
        2 => {
            let some = maker.random.some(of.rank());
            let text = format!("reverse(v{x}), dimensions={{{}}}", list(&some));
            moves(maker, &of, text, &[x])
        }
        _ => {
            let fitting = ops::UNARY.iter().filter(|op| ops::takes(op.exact, of.ty));
            let names: Vec<&str> = fitting.map(|op| op.name).collect();
            if names.is_empty() {
                return moves(maker, &of, format!("copy(v{x})"), &[x]);
            }
            let op = maker.random.pick(&names);
            let to = of.of_type(ops::result(op, of.ty));
            gives(maker, &to, format!("{op}(v{x})"), &[x], Accuracy::Exact)
        }
    }
}

fn binary(maker: &mut Maker) -> usize {
    let x = value(maker, |of| computes(of.ty));
    let of = bounds(maker, x);
    let y = partner(maker, &of);
    let (x, y) = if maker.random.one_in(2) {
        (x, y)
    } else {
        (y, x)
    };
    let to = joined(maker, x, y);
    match maker.random.below(5) {
        0 => {
            let by = maker.random.pick(&["EQ", "NE"]);
            let text = format!("compare(v{x}, v{y}), direction={by}");
            gives(
                maker,
                &to.of_type(PrimitiveType::Pred),
                text,
                &[x, y],
                Accuracy::Exact,
            )
        }
        1 => {
            let op = exact_op(maker, of.ty);
            let name = body(maker, op, of.ty);
            let all: Vec<usize> = (0..of.rank()).collect();
            let text = format!(
                "map(v{x}, v{y}), dimensions={{{}}}, to_apply={name}",
                list(&all)
            );
            gives(maker, &to, text, &[x, y], Accuracy::Exact)
        }
        _ => {
            let op = exact_op(maker, of.ty);
            gives(
                maker,
                &to,
                format!("{op}(v{x}, v{y})"),
                &[x, y],
                Accuracy::Exact,
            )
        }
    }
}

/// Selects by a predicate of the bounds, or clamps between scalars.
fn select(maker: &mut Maker) -> usize {
    let x = value(maker, |of| computes(of.ty));
    let of = bounds(maker, x);
    let ordered = !of.ty.is_complex() && of.ty != PrimitiveType::Pred;
    if ordered && maker.random.one_in(2) {
        let (low, high) = (maker.exact_of(of.ty, &[]), maker.exact_of(of.ty, &[]));
        let text = format!("clamp(v{low}, v{x}, v{high})");
        return gives(maker, &of, text, &[low, x, high], Accuracy::Exact);
    }
    let y = partner(maker, &of);
    let p = partner(maker, &of.of_type(PrimitiveType::Pred));
    let mut to = joined(maker, x, y);
    let by = bounds(maker, p);
    for (open, also) in to.open.iter_mut().zip(by.open) {
        *open |= also;
    }
    gives(
        maker,
        &to,
        format!("select(v{p}, v{x}, v{y})"),
        &[p, x, y],
        Accuracy::Exact,
    )
}

fn transpose(maker: &mut Maker) -> usize {
    let x = value(maker, |of| of.rank() > 1);
    let of = bounds(maker, x);
    let order = maker.random.order(of.rank());
    let to = Bounds::new(
        of.ty,
        order.iter().map(|&d| of.dims[d]).collect(),
        order.iter().map(|&d| of.open[d]).collect(),
    );
    let text = format!("transpose(v{x}), dimensions={{{}}}", list(&order));
    moves(maker, &to, text, &[x])
}

fn broadcast(maker: &mut Maker) -> usize {
    let x = value(maker, |of| of.dims.iter().product::<usize>() < 200);
    let of = bounds(maker, x);
    let rank = of.rank() + maker.random.below(3);
    let at = maker.random.choose(of.rank(), rank);
    let dims = (0..rank).map(|_| 1 + maker.random.below(3)).collect();
    let mut to = Bounds::new(of.ty, dims, vec![false; rank]);
    for (from, &d) in at.iter().enumerate() {
        (to.dims[d], to.open[d]) = (of.dims[from], of.open[from]);
    }
    let text = format!("broadcast(v{x}), dimensions={{{}}}", list(&at));
    moves(maker, &to, text, &[x])
}

/// Of dynamic dimensions every so many elements.
fn slice(maker: &mut Maker) -> usize {
    let x = value(maker, |_| true);
    let of = bounds(maker, x);
    let (mut to, mut cuts) = (of.clone(), Vec::new());
    for d in 0..of.rank() {
        let stride = maker.random.pick(&[1, 1, 2, 3]);
        let start = match of.open[d] {
            true => 0,
            false => maker.random.below(of.dims[d]),
        };
        to.dims[d] = (of.dims[d] - start).div_ceil(stride);
        cuts.push(format!("[{start}:{}:{stride}]", of.dims[d]));
    }
    let text = format!("slice(v{x}), slice={{{}}}", cuts.join(", "));
    moves(maker, &to, text, &[x])
}

fn pad(maker: &mut Maker) -> usize {
    let x = value(maker, |of| of.dims.iter().product::<usize>() < 200);
    let of = bounds(maker, x);
    let value = maker.exact_of(of.ty, &[]);
    let (mut to, mut texts) = (of.clone(), Vec::new());
    for d in 0..of.rank() {
        let interior = maker.random.pick(&[0, 0, 1, 2]);
        let spread = (of.dims[d] + of.dims[d].saturating_sub(1) * interior) as i64;
        let (low, high) = loop {
            let (low, high) = (maker.random.between(-2, 3), maker.random.between(-2, 3));
            if spread + low + high > 0 {
                break (low, high);
            }
        };
        to.dims[d] = (spread + low + high) as usize;
        texts.push(format!("{low}_{high}_{interior}"));
    }
    let text = format!("pad(v{x}, v{value}), padding={}", texts.join("x"));
    gives(maker, &to, text, &[x, value], Accuracy::Exact)
}

fn concatenate(maker: &mut Maker) -> usize {
    let x = value(maker, |of| of.dims.iter().product::<usize>() < 200);
    let of = bounds(maker, x);
    let at = maker.random.below(of.rank());
    let mut to = of.clone();
    let mut parts = vec![x];
    for _ in 0..1 + maker.random.below(2) {
        let mut other = of.clone();
        other.dims[at] = 1 + maker.random.below(4);
        let part = partner(maker, &other);
        let other = bounds(maker, part);
        to.dims[at] += other.dims[at];
        for (open, also) in to.open.iter_mut().zip(other.open) {
            *open |= also;
        }
        parts.push(part);
    }
    let order = maker.random.order(parts.len());
    let parts: Vec<usize> = order.into_iter().map(|i| parts[i]).collect();
    let names: Vec<String> = parts.iter().map(|p| format!("v{p}")).collect();
    let text = format!("concatenate({}), dimensions={{{at}}}", names.join(", "));
    gives(maker, &to, text, &parts, Accuracy::Exact)
}

/// Joins two dimensions, splits one, or adds one of size one.
fn reshape(maker: &mut Maker) -> usize {
    // A dimension of size one would be the one that is dynamic where it comes first.
    let x = value(maker, |of| !of.dims.contains(&1));
    let of = bounds(maker, x);
    let d = maker.random.below(of.rank());
    let mut to = of.clone();
    // A size that is known only when the program runs need not be a multiple.
    let divisor = (2..4).find(|n| of.dims[d].is_multiple_of(*n) && of.dims[d] > *n && !of.open[d]);
    match divisor {
        Some(n) if maker.random.one_in(2) => {
            to.dims.splice(d..=d, [of.dims[d] / n, n]);
            to.open.insert(d, false);
        }
        _ if d + 1 < of.rank() => {
            to.dims[d] *= to.dims.remove(d + 1);
            to.open[d] |= to.open.remove(d + 1);
        }
        _ => {
            to.dims.insert(d, 1);
            to.open.insert(d, false);
        }
    }
    moves(maker, &to, format!("reshape(v{x})"), &[x])
}

/// An array to combine the elements of, and how: at most all of them, and an initial value.
fn combined(maker: &mut Maker, rank: usize) -> (usize, Bounds, Combiner) {
    let ty = maker.ty_where(computes);
    let by = combiner(maker, ty);
    let room = |dims: &[usize]| whole_limit(ty) / (dims.iter().product::<usize>() + 1) as f64;
    let there = maker.found_dynamic(|line, array| {
        let small = line.whole.is_some_and(|whole| whole <= room(&array.dims));
        line.accuracy.is_exact() && array.ty == ty && array.rank() == rank && (!by.sums || small)
    });
    if let Some(x) = there {
        return (x, bounds(maker, x), by);
    }
    let of = fresh(maker, ty, rank);
    let most = by.sums.then(|| room(&of.dims).min(4.0) as i64);
    (made(maker, &of, most), of, by)
}

/// By a reducer whose initial value may count, or by several at once.
fn reduce(maker: &mut Maker) -> usize {
    let rank = 1 + maker.random.below(3);
    let (x, of, by) = combined(maker, rank);
    let reduced = maker.random.some(rank);
    let init = start(maker, &by, of.ty);
    let name = body(maker, by.op, of.ty);
    let kept = (0..rank).filter(|d| !reduced.contains(d));
    let (dims, open) = kept.map(|d| (of.dims[d], of.open[d])).unzip();
    let to = Bounds::new(of.ty, dims, open);
    let text = format!(
        "reduce(v{x}, v{init}), dimensions={{{}}}, to_apply={name}",
        list(&reduced)
    );
    gives(maker, &to, text, &[x, init], Accuracy::Exact)
}

fn reduce_window(maker: &mut Maker) -> usize {
    let rank = 1 + maker.random.below(2);
    let (x, of, by) = combined(maker, rank);
    let (windows, dims) = windows(maker, &of.dims);
    let init = start(maker, &by, of.ty);
    let name = body(maker, by.op, of.ty);
    let to = Bounds { dims, ..of };
    let window = window_text(&windows);
    let text = format!("reduce-window(v{x}, v{init}), window={window}, to_apply={name}");
    gives(maker, &to, text, &[x, init], Accuracy::Exact)
}

/// What lies beyond the real sizes comes last, whatever it is.
fn sort(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| ty.is_integer() && ty.bit_width() >= 2);
    let rank = 1 + maker.random.below(2);
    let of = fresh(maker, ty, rank);
    let keys = made(maker, &of, None);
    let carried_type = maker.ty();
    let with = partner(maker, &of.of_type(carried_type));
    let to = joined(maker, keys, with);
    let along = maker.random.below(rank);
    let by = maker.random.pick(&["LT", "GT"]);
    let name = maker.other(|name| {
        format!(
            "{name} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  c = {carried_type}[] parameter(2)\n  d = {carried_type}[] parameter(3)\n  ROOT e = pred[] compare(a, b), direction={by}\n}}\n"
        )
    });
    let text =
        format!("sort(v{keys}, v{with}), dimensions={{{along}}}, is_stable=true, to_apply={name}");
    let parts = [to.of_type(ty), to.of_type(carried_type)];
    tuple(maker, &parts, text, &[keys, with], Accuracy::Bits)[0]
}

/// Adds an op that gives a tuple of arrays, and the reading of each.
fn tuple(
    maker: &mut Maker,
    parts: &[Bounds],
    text: String,
    operands: &[usize],
    accuracy: Accuracy,
) -> Vec<usize> {
    let shapes: Vec<String> = parts.iter().map(Bounds::text).collect();
    let all = maker.other_op(&format!("({})", shapes.join(", ")), text, operands);
    let part = |(i, part): (usize, &Bounds)| {
        let text = format!("get-tuple-element(v{all}), index={i}");
        gives(maker, part, text, &[all], accuracy)
    };
    parts.iter().enumerate().map(part).collect()
}

/// A product over real elements, with a batch dimension or without.
fn dot(maker: &mut Maker) -> usize {
    use PrimitiveType::{BF16, C64, F32, F64, S8, S32, U16};
    let (ty, sum) = maker.random.pick(&[
        (F32, F32),
        (F32, F32),
        (S32, S32),
        (BF16, F32),
        (F64, F64),
        (C64, C64),
        (S8, S32),
        (U16, U16),
    ]);
    let batch = maker.random.below(2);
    let side = |maker: &mut Maker| {
        let dims = (0..batch + 2).map(|_| 1 + maker.random.below(4)).collect();
        let open = opened(maker, batch + 2);
        Bounds::new(ty, dims, open)
    };
    let (left, mut right) = (side(maker), side(maker));
    right.dims[..=batch].copy_from_slice(&left.dims[..=batch]);
    let (mut x, y) = (made(maker, &left, Some(3)), made(maker, &right, Some(3)));
    let mut left = left;
    if maker.random.one_in(2) {
        x = maker.summable(ty, &left.dims, 3);
        left.open.fill(false);
    }
    let mut to = Bounds::new(sum, Vec::new(), Vec::new());
    if batch == 1 {
        to.dims.push(left.dims[0]);
        to.open.push(left.open[0] || right.open[0]);
    }
    for side in [&left, &right] {
        to.dims.push(side.dims[batch + 1]);
        to.open.push(side.open[batch + 1]);
    }
    let batches = if batch == 1 { "0" } else { "" };
    let text = format!(
        "dot(v{x}, v{y}), lhs_batch_dims={{{batches}}}, rhs_batch_dims={{{batches}}}, \
         lhs_contracting_dims={{{batch}}}, rhs_contracting_dims={{{batch}}}"
    );
    let accuracy = if sum.is_integer() {
        Accuracy::Exact
    } else {
        Accuracy::Near(0.0)
    };
    gives(maker, &to, text, &[x, y], accuracy)
}

/// An update that may be dynamic, of an array that may be.
fn update(maker: &mut Maker) -> usize {
    let x = value(maker, |_| true);
    let of = bounds(maker, x);
    let dims: Vec<usize> = of
        .dims
        .iter()
        .map(|&d| match maker.random.below(3) {
            0 => d,
            _ => 1 + maker.random.below(d),
        })
        .collect();
    let part = Bounds {
        dims,
        open: vec![false; of.rank()],
        ty: of.ty,
    };
    let update = partner(maker, &part);
    let part = bounds(maker, update);
    let decides = |d: usize| part.dims[d] == of.dims[d] && part.open[d];
    if (0..of.rank()).any(|d| of.open[d] && decides(d)) {
        // The size may grow, over elements that are unspecified.
        return x;
    }
    let mut to = of.clone();
    for d in (0..of.rank()).filter(|&d| decides(d)) {
        to.open[d] = true;
    }
    let index = index_type(maker);
    let starts: Vec<usize> = (0..of.rank())
        .map(|_| maker.whole(index, &[], 0, 4))
        .collect();
    let names: Vec<String> = starts.iter().map(|s| format!(", v{s}")).collect();
    let text = format!("dynamic-update-slice(v{x}, v{update}{})", names.concat());
    let operands: Vec<usize> = [x, update].into_iter().chain(starts).collect();
    gives(maker, &to, text, &operands, Accuracy::Exact)
}

/// Rows by indices of which only some are real.
fn gather(maker: &mut Maker) -> usize {
    let ty = maker.ty();
    let (rows, width) = (1 + maker.random.below(5), 1 + maker.random.below(4));
    let open = maker.random.one_in(2);
    let x = if open {
        made(
            maker,
            &Bounds::new(ty, vec![rows, width], vec![false, true]),
            None,
        )
    } else {
        maker.exact_of(ty, &[rows, width])
    };
    let count = 1 + maker.random.below(5);
    let places = Bounds::new(index_type(maker), vec![count, 1], vec![true, false]);
    let indices = made(maker, &places, Some(6));
    let to = Bounds::new(ty, vec![count, width], vec![true, open]);
    let text = format!(
        "gather(v{x}, v{indices}), offset_dims={{1}}, collapsed_slice_dims={{0}}, \
         start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{width}}}"
    );
    gives(maker, &to, text, &[x, indices], Accuracy::Exact)
}

/// Updates of which only some are real, combined in any order.
fn scatter(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(computes);
    let by = combiner(maker, ty);
    let (rows, width, count) = (
        1 + maker.random.below(5),
        1 + maker.random.below(3),
        1 + maker.random.below(5),
    );
    let most = by
        .sums
        .then(|| (whole_limit(ty) / (count + 1) as f64).min(3.0) as i64);
    let x = combinable(maker, &by, ty, &[rows, width], count + 1);
    let places = Bounds::new(index_type(maker), vec![count, 1], vec![true, false]);
    let indices = made(maker, &places, Some(6));
    let rest = Bounds::new(ty, vec![count, width], vec![true, false]);
    let updates = made(maker, &rest, most);
    let name = body(maker, by.op, ty);
    if maker.random.one_in(5) {
        // All updates go to the beginning, since there is nothing that says where.
        let nowhere = Bounds::new(places.ty, vec![count, 0], vec![true, false]);
        let indices = parameter(maker, &nowhere, None);
        let x = combinable(maker, &by, ty, &[width], count + 1);
        let text = format!(
            "scatter(v{x}, v{indices}, v{updates}), update_window_dims={{1}}, inserted_window_dims={{}}, \
             scatter_dims_to_operand_dims={{}}, index_vector_dim=1, to_apply={name}"
        );
        let operands = [x, indices, updates];
        return maker.op(ty, &[width], text, &operands, Accuracy::Exact);
    }
    let text = format!(
        "scatter(v{x}, v{indices}, v{updates}), update_window_dims={{1}}, inserted_window_dims={{0}}, \
         scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={name}"
    );
    maker.op(
        ty,
        &[rows, width],
        text,
        &[x, indices, updates],
        Accuracy::Exact,
    )
}

/// At most as many as are real.
fn largest(maker: &mut Maker) -> usize {
    let orders = |ty: PrimitiveType| {
        (ty.is_integer() && ty.bit_width() >= 8) || (ty.is_float() && ty.bit_width() >= 16)
    };
    let ty = maker.ty_where(orders);
    let rank = 1 + maker.random.below(2);
    let of = fresh(maker, ty, rank);
    let x = parameter(maker, &of, None);
    let last = of.dims[of.rank() - 1];
    let k = 1 + maker.random.below(last);
    let mut to = of.clone();
    to.dims[rank - 1] = k;
    let text = match maker.random.one_in(2) {
        true => format!("topk(v{x}), k={k}, largest={}", maker.random.one_in(2)),
        false => format!("custom-call(v{x}), custom_call_target=\"TopK\""),
    };
    let parts = [to.clone(), to.of_type(PrimitiveType::S32)];
    tuple(maker, &parts, text, &[x], Accuracy::Bits)[0]
}

/// All elements up to the bounds, zeros where they are not real, and the sizes.
fn pad_to_static(maker: &mut Maker) -> usize {
    let x = value(maker, |_| true);
    let of = bounds(maker, x);
    let whole = Bounds {
        open: vec![false; of.rank()],
        ..of.clone()
    };
    let scalars = vec![", s32[]"; of.rank()].concat();
    let shape = format!("({}{scalars})", whole.text());
    let text = format!("custom-call(v{x}), custom_call_target=\"PadToStatic\"");
    let all = maker.other_op(&shape, text, &[x]);
    for d in 0..of.rank() {
        let text = format!("get-tuple-element(v{all}), index={}", d + 1);
        maker.op(PrimitiveType::S32, &[], text, &[all], Accuracy::Exact);
    }
    let text = format!("get-tuple-element(v{all}), index=0");
    let made = moves(maker, &of, text, &[all]);
    // Ops that use it still see its sizes, so that its line stays dynamic.
    maker.program.lines[made].shape = whole.text();
    maker.program.lines[made].accuracy = maker.moved(x);
    made
}

/// The element that each window chooses takes an element of the source, which has as many as there are
/// windows.
fn select_and_scatter(maker: &mut Maker) -> usize {
    let ty = maker
        .random
        .pick(&[PrimitiveType::F32, PrimitiveType::S32, PrimitiveType::BF16]);
    let rank = 1 + maker.random.below(2);
    let of = fresh(maker, ty, rank);
    let x = made(maker, &of, Some(4));
    let size: Vec<usize> = of
        .dims
        .iter()
        .map(|&d| 1 + maker.random.below(d.min(2)))
        .collect();
    let stride = 1 + maker.random.below(2);
    let pads: Vec<(usize, usize)> = size
        .iter()
        .map(|&s| (maker.random.below(s), maker.random.below(s)))
        .collect();
    let to = |d: usize| (pads[d].0 + of.dims[d] + pads[d].1 - size[d]) / stride + 1;
    let windows = Bounds {
        dims: (0..rank).map(to).collect(),
        ..of.clone()
    };
    let text = |numbers: Vec<usize>| {
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        texts.join("x")
    };
    let pads: Vec<String> = pads.iter().map(|(l, h)| format!("{l}_{h}")).collect();
    let window = format!(
        "{{size={} stride={} pad={}}}",
        text(size.clone()),
        text(vec![stride; rank]),
        pads.join("x")
    );
    // As many elements as windows have positions over what is real.
    let least = maker.whole(ty, &[], -4, -4);
    let most = body(maker, "maximum", ty);
    let source = format!("reduce-window(v{x}, v{least}), window={window}, to_apply={most}");
    let source = gives(maker, &windows, source, &[x, least], Accuracy::Exact);
    let init = scalar(maker, ty, "0");
    let combiner = maker.random.pick(&["add", "maximum", "minimum"]);
    let scatter = body(maker, combiner, ty);
    let direction = maker.random.pick(&["GE", "GT", "LE", "LT"]);
    let select = maker.other(|name| {
        format!(
            "{name} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction={direction}\n}}\n"
        )
    });
    let text = format!(
        "select-and-scatter(v{x}, v{source}, v{init}), window={window}, select={select}, scatter={scatter}"
    );
    gives(maker, &of, text, &[x, source, init], Accuracy::Exact)
}

/// A convolution over a dynamic batch, a dynamic line of points, or both.
fn convolution(maker: &mut Maker) -> usize {
    let ty = maker
        .random
        .pick(&[PrimitiveType::F32, PrimitiveType::F64, PrimitiveType::S32]);
    let sizes: Vec<usize> = (0..3).map(|_| 1 + maker.random.below(5)).collect();
    let open = opened(maker, 3);
    let of = Bounds::new(ty, sizes, open);
    let x = made(maker, &of, Some(3));
    let (windows, points) = windows(maker, &of.dims[2..]);
    let features = 1 + maker.random.below(3);
    let kernel = maker.summable(ty, &[of.dims[1], features, windows[0].size], 3);
    let to = Bounds::new(
        ty,
        vec![of.dims[0], features, points[0]],
        vec![of.open[0], false, of.open[2]],
    );
    let text = format!(
        "convolution(v{x}, v{kernel}), window={}, dim_labels=bf0_io0->bf0",
        window_text(&windows)
    );
    let accuracy = if ty.is_integer() {
        Accuracy::Exact
    } else {
        Accuracy::Near(0.0)
    };
    gives(maker, &to, text, &[x, kernel], accuracy)
}

/// Through calls, branches, copies, barriers, annotations and a collective of one.
fn carried(maker: &mut Maker) -> usize {
    let x = value(maker, |of| computes(of.ty) && of.ty.bit_width() >= 8);
    let of = bounds(maker, x);
    let (shape, op) = (of.text(), exact_op(maker, of.ty));
    let doubled = |maker: &mut Maker, shape: &str| {
        maker.other(|name| {
            format!("{name} {{\n  a = {shape} parameter(0)\n  ROOT b = {shape} {op}(a, a)\n}}\n")
        })
    };
    match maker.random.below(7) {
        0 => {
            let name = doubled(maker, &shape);
            gives(
                maker,
                &of,
                format!("call(v{x}), to_apply={name}"),
                &[x],
                Accuracy::Exact,
            )
        }
        1 => {
            let name = doubled(maker, &shape);
            let text = format!("async-start(v{x}), calls={name}");
            let start = maker.other_op(&format!("(({shape}), {shape}, u32[])"), text, &[x]);
            gives(
                maker,
                &of,
                format!("async-done(v{start})"),
                &[start],
                Accuracy::Exact,
            )
        }
        2 => {
            let text = format!("copy-start(v{x})");
            let start = maker.other_op(&format!("({shape}, {shape}, u32[])"), text, &[x]);
            gives(
                maker,
                &of,
                format!("copy-done(v{start})"),
                &[start],
                Accuracy::Exact,
            )
        }
        3 => moves(maker, &of, format!("opt-barrier(v{x})"), &[x]),
        4 => {
            let text = format!(
                "custom-call(v{x}), custom_call_target=\"Sharding\", sharding={{replicated}}"
            );
            moves(maker, &of, text, &[x])
        }
        5 => {
            let text = format!("collective-broadcast(v{x}), replica_groups={{}}");
            moves(maker, &of, text, &[x])
        }
        _ => {
            let y = partner(maker, &of);
            let to = joined(maker, x, y);
            let other = bounds(maker, y).text();
            let names = [doubled(maker, &shape), doubled(maker, &other)];
            let p = maker.exact_of(PrimitiveType::Pred, &[]);
            let text = format!(
                "conditional(v{p}, v{x}, v{y}), true_computation={}, false_computation={}",
                names[0], names[1]
            );
            gives(maker, &to, text, &[p, x, y], Accuracy::Exact)
        }
    }
}

/// A loop in which an array becomes shorter.
fn looped(maker: &mut Maker) -> usize {
    let x = value(maker, |of| computes(of.ty));
    let of = bounds(maker, x);
    let at = (0..of.rank()).find(|&d| of.open[d]).unwrap_or(0);
    let (state, op) = (format!("(s32[], {})", of.text()), exact_op(maker, of.ty));
    let times = maker.random.below(4);
    let condition = maker.other(|name| {
        format!(
            "{name} {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant({times})\n  ROOT c = pred[] compare(i, n), direction=LT\n}}\n"
        )
    });
    let shape = of.text();
    let next = maker.other(|name| {
        format!(
            "{name} {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  a = {shape} get-tuple-element(s), index=1\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  n = s32[] get-dimension-size(a), dimensions={{{at}}}\n  m = s32[] subtract(n, one)\n  b = {shape} {op}(a, a)\n  c = {shape} set-dimension-size(b, m), dimensions={{{at}}}\n  ROOT t = {state} tuple(j, c)\n}}\n"
        )
    });
    let zero = scalar(maker, PrimitiveType::S32, "0");
    let start = maker.other_op(&state, format!("tuple(v{zero}, v{x})"), &[zero, x]);
    let text = format!("while(v{start}), condition={condition}, body={next}");
    let counter = Bounds::new(PrimitiveType::S32, Vec::new(), Vec::new());
    tuple(maker, &[counter, of], text, &[start], Accuracy::Exact)[1]
}

/// An op on the last dimensions, over a dynamic batch.
fn batched(maker: &mut Maker) -> usize {
    let (batch, n) = (1 + maker.random.below(4), 1 + maker.random.below(4));
    let of = |ty, dims: Vec<usize>| {
        let open = (0..dims.len()).map(|d| d == 0).collect();
        Bounds::new(ty, dims, open)
    };
    match maker.random.below(3) {
        0 => {
            let ty = PrimitiveType::C64;
            let of = of(ty, vec![batch, n]);
            let x = made(maker, &of, Some(3));
            let text = format!("fft(v{x}), fft_type=FFT, fft_length={{{n}}}");
            gives(maker, &of, text, &[x], Accuracy::Spread(1e-4))
        }
        1 => {
            let ty = PrimitiveType::F32;
            let to = of(ty, vec![batch, n, 2]);
            let matrices = made(maker, &of(ty, vec![batch, n, n]), Some(2));
            let sides = made(maker, &to, Some(2));
            let text = format!(
                "triangular-solve(v{matrices}, v{sides}), left_side=true, lower=true, \
                 unit_diagonal=true, transpose_a=NO_TRANSPOSE"
            );
            gives(maker, &to, text, &[matrices, sides], Accuracy::Exact)
        }
        _ => {
            let ty =
                maker
                    .random
                    .pick(&[PrimitiveType::F32, PrimitiveType::S8, PrimitiveType::U16]);
            let wide = ty.bit_width() / 8;
            let x = made(maker, &of(PrimitiveType::U8, vec![batch, n, wide]), None);
            let dims = if wide == 1 {
                vec![batch, n, 1]
            } else {
                vec![batch, n]
            };
            let text = format!("bitcast-convert(v{x})");
            gives(maker, &of(ty, dims), text, &[x], Accuracy::Bits)
        }
    }
}

/// Batch normalization over the real elements.
fn normalize(maker: &mut Maker) -> usize {
    let ty = PrimitiveType::F32;
    let near = Accuracy::Spread(1e-4);
    let rank = 2 + maker.random.below(2);
    let mut of = fresh(maker, ty, rank);
    let feature = maker.random.below(rank);
    of.open[feature] = false;
    of.open[(feature + 1) % rank] = true;
    let x = made(maker, &of, Some(4));
    let row = [of.dims[feature]];
    let (scale, offset) = (maker.whole(ty, &row, -2, 3), maker.whole(ty, &row, -2, 2));
    let attributes = format!("epsilon=0.25, feature_index={feature}");
    if maker.random.one_in(2) {
        let text = format!("batch-norm-training(v{x}, v{scale}, v{offset}), {attributes}");
        let row = Bounds::new(ty, row.to_vec(), vec![false]);
        let parts = [of, row.clone(), row];
        return tuple(maker, &parts, text, &[x, scale, offset], near)[0];
    }
    let (mean, variance) = (maker.whole(ty, &row, -2, 2), maker.whole(ty, &row, 0, 3));
    let text = format!(
        "batch-norm-inference(v{x}, v{scale}, v{offset}, v{mean}, v{variance}), {attributes}"
    );
    gives(maker, &of, text, &[x, scale, offset, mean, variance], near)
}
