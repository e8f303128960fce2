//! Ops that combine several arrays at once, each in its own way, and sorts by several keys.

use xla_aot::literal::number::Number;
use xla_aot::shape::PrimitiveType;

use super::combine::Combiner;
use super::combine::Window;
use super::combine::combinable;
use super::combine::combiner;
use super::combine::scalar;
use super::combine::window_text;
use super::combine::windows;
use super::elementwise::computes;
use super::make::Maker;
use super::movement;
use super::program::Accuracy;
use super::program::list;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(6) {
        0..2 => reduce(maker),
        2 => reduce_window(maker),
        3 => scatter(maker),
        4 => scatter_once(maker),
        _ => sort(maker),
    }
}

/// Arrays of one shape and how each is combined.
struct Columns {
    types: Vec<PrimitiveType>,
    by: Vec<Combiner>,
}

impl Columns {
    fn of(maker: &mut Maker) -> Self {
        let count = 2 + maker.random.below(2);
        let types: Vec<PrimitiveType> = (0..count).map(|_| maker.ty_where(computes)).collect();
        let by = types.iter().map(|&ty| combiner(maker, ty)).collect();
        Self { types, by }
    }

    fn arrays(&self, maker: &mut Maker, dims: &[usize], count: usize) -> Vec<usize> {
        let columns = self.types.iter().zip(&self.by);
        columns
            .map(|(&ty, by)| combinable(maker, by, ty, dims, count))
            .collect()
    }

    fn starts(&self, maker: &mut Maker) -> Vec<usize> {
        let columns = self.types.iter().zip(&self.by);
        columns
            .map(|(&ty, by)| scalar(maker, ty, &by.neutral))
            .collect()
    }

    /// The computation: parameters are all on the left, then all on the right.
    fn body(&self, maker: &mut Maker) -> String {
        let n = self.types.len();
        let mut lines = Vec::new();
        for (side, first) in [("a", 0), ("b", n)] {
            for (i, ty) in self.types.iter().enumerate() {
                lines.push(format!("  {side}{i} = {ty}[] parameter({})\n", first + i));
            }
        }
        for (i, (ty, by)) in self.types.iter().zip(&self.by).enumerate() {
            lines.push(format!("  c{i} = {ty}[] {}(a{i}, b{i})\n", by.op));
        }
        let shapes: Vec<String> = self.types.iter().map(|ty| format!("{ty}[]")).collect();
        let names: Vec<String> = (0..n).map(|i| format!("c{i}")).collect();
        let (shapes, names) = (shapes.join(", "), names.join(", "));
        maker.other(|name| {
            let lines = lines.concat();
            format!("{name} {{\n{lines}  ROOT r = ({shapes}) tuple({names})\n}}\n")
        })
    }

    fn parts(&self, dims: &[usize]) -> Vec<(PrimitiveType, Vec<usize>, Accuracy)> {
        let types = self.types.iter();
        types
            .map(|&ty| (ty, dims.to_vec(), Accuracy::Exact))
            .collect()
    }
}

fn names(values: &[usize]) -> String {
    let names: Vec<String> = values.iter().map(|v| format!("v{v}")).collect();
    names.join(", ")
}

fn reduce(maker: &mut Maker) -> usize {
    let mut dims = maker.dims();
    if dims.is_empty() {
        dims.push(maker.size());
    }
    let columns = Columns::of(maker);
    let reduced = maker.random.some(dims.len());
    let count: usize = reduced.iter().map(|&d| dims[d]).product();
    let mut operands = columns.arrays(maker, &dims, count);
    operands.extend(columns.starts(maker));
    let body = columns.body(maker);
    let kept: Vec<usize> = (0..dims.len())
        .filter(|d| !reduced.contains(d))
        .map(|d| dims[d])
        .collect();
    let text = format!(
        "reduce({}), dimensions={{{}}}, to_apply={body}",
        names(&operands),
        list(&reduced)
    );
    maker.tuple_op(&columns.parts(&kept), text, &operands)[0]
}

fn reduce_window(maker: &mut Maker) -> usize {
    let rank = 1 + maker.random.below(2);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(8)).collect();
    let (windows, to): (Vec<Window>, Vec<usize>) = windows(maker, &dims);
    let columns = Columns::of(maker);
    let count = windows.iter().map(|w| w.size).product();
    let mut operands = columns.arrays(maker, &dims, count);
    operands.extend(columns.starts(maker));
    let body = columns.body(maker);
    let text = format!(
        "reduce-window({}), window={}, to_apply={body}",
        names(&operands),
        window_text(&windows)
    );
    maker.tuple_op(&columns.parts(&to), text, &operands)[0]
}

fn scatter(maker: &mut Maker) -> usize {
    let rank = 1 + maker.random.below(3);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(5)).collect();
    let w = movement::windows(maker, &dims);
    let columns = Columns::of(maker);
    let total = w.dims.iter().product::<usize>();
    let mut operands = columns.arrays(maker, &dims, total + 1);
    operands.push(w.indices);
    operands.extend(columns.arrays(maker, &w.dims, total + 1));
    let body = columns.body(maker);
    let text = format!(
        "scatter({}), {}, to_apply={body}",
        names(&operands),
        w.scatter_text()
    );
    maker.tuple_op(&columns.parts(&dims), text, &operands)[0]
}

/// Places rows, each at most once: nothing is combined.
fn scatter_once(maker: &mut Maker) -> usize {
    let ty = maker.ty();
    let (rows, width) = (1 + maker.random.below(8), 1 + maker.random.below(5));
    // Two places lie outside.
    let count = 1 + maker.random.below(rows);
    let mut places = maker.random.order(rows + 2);
    places.truncate(count);
    let sorted = maker.random.one_in(2);
    if sorted {
        places.sort_unstable();
    }
    let places = places.into_iter().map(|at| Number::Int(at as i128));
    let index = movement::index_type(maker);
    let indices = maker.given(index, &[count, 1], places);
    let x = maker.exact_of(ty, &[rows, width]);
    let updates = maker.exact_of(ty, &[count, width]);
    let body = maker.other(|name| {
        format!("{name} {{\n  a = {ty}[] parameter(0)\n  ROOT b = {ty}[] parameter(1)\n}}\n")
    });
    let text = format!(
        "scatter(v{x}, v{indices}, v{updates}), update_window_dims={{1}}, inserted_window_dims={{0}}, \
         scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, indices_are_sorted={sorted}, \
         unique_indices={}, to_apply={body}",
        maker.random.one_in(2)
    );
    maker.op(
        ty,
        &[rows, width],
        text,
        &[x, indices, updates],
        Accuracy::Exact,
    )
}

/// By a first key, equal ones by a second, with a passenger.
fn sort(maker: &mut Maker) -> usize {
    let dims = {
        let rank = 1 + maker.random.below(3);
        maker.dims_of(rank)
    };
    let along = maker.random.below(dims.len());
    let key = |maker: &mut Maker| {
        let ty = maker.ty_where(|ty| ty.is_integer() && ty.bit_width() >= 2);
        (ty, maker.whole(ty, &dims, -1, 1))
    };
    let (first, second) = (key(maker), key(maker));
    let ty = maker.ty();
    let passenger = maker.parameter(ty, &dims);
    let types = [first.0, second.0, ty];
    let operands = [first.1, second.1, passenger];
    let by = maker.random.pick(&["LT", "GT"]);
    let parameters: String = types
        .iter()
        .enumerate()
        .map(|(i, ty)| {
            let (left, right) = (2 * i, 2 * i + 1);
            format!("  a{i} = {ty}[] parameter({left})\n  b{i} = {ty}[] parameter({right})\n")
        })
        .collect();
    let body = maker.other(|name| {
        format!(
            "{name} {{\n{parameters}  p = pred[] compare(a0, b0), direction={by}\n  e = pred[] compare(a0, b0), direction=EQ\n  q = pred[] compare(a1, b1), direction=GT\n  f = pred[] and(e, q)\n  ROOT r = pred[] or(p, f)\n}}\n"
        )
    });
    let text = format!(
        "sort({}), dimensions={{{along}}}, is_stable=true, to_apply={body}",
        names(&operands)
    );
    let parts: Vec<_> = types
        .iter()
        .map(|&ty| (ty, dims.clone(), Accuracy::Bits))
        .collect();
    maker.tuple_op(&parts, text, &operands)[0]
}
