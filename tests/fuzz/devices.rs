//! What devices do together: on one device with groups of one, and on several.

use xla_aot::shape::PrimitiveType;

use super::combine::body;
use super::combine::combinable;
use super::combine::combiner;
use super::elementwise::computes;
use super::make::Maker;
use super::program::Accuracy;
use super::program::list;
use super::program::shape_text;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(14) {
        0..4 => all_reduce(maker),
        4 => in_order(maker),
        5 | 6 => all_gather(maker),
        7 => reduce_scatter(maker),
        8 => all_to_all(maker),
        9 => all_to_all_of_several(maker),
        10 => broadcast(maker),
        11 => ragged(maker),
        12 => own_number(maker),
        _ => permute(maker),
    }
}

/// Devices that a collective brings together.
struct Groups {
    /// The attributes that say who.
    text: String,
    /// Devices of a group.
    size: usize,
    /// What numbers in groups count.
    ids: usize,
}

/// Groups; where `global`, for an op that says whether its ids are global.
fn groups(maker: &mut Maker, global: bool) -> Groups {
    let (replicas, partitions) = maker.program.devices;
    let channel = 1 + maker.program.lines.len();
    let mode = maker.random.below(if global { 3 } else { 2 });
    // The ids a group holds, how many devices one of them stands for, and how that is said.
    let (ids, each, mut said) = match mode {
        0 => (replicas, 1, String::new()),
        1 if global => (replicas, partitions, format!(", channel_id={channel}")),
        1 => (partitions, 1, format!(", channel_id={channel}")),
        _ => {
            let said = format!(", channel_id={channel}, use_global_device_ids=true");
            (replicas * partitions, 1, said)
        }
    };
    let divisors: Vec<usize> = (1..=ids).filter(|n| ids.is_multiple_of(*n)).collect();
    let size = maker.random.pick(&divisors);
    let count = ids / size;
    let order = maker.random.order(ids);
    let listed: Vec<String> = order
        .chunks(size)
        .map(|group| format!("{{{}}}", list(group)))
        .collect();
    let text = match maker.random.below(4) {
        0 if size == ids && mode != 2 => "{}".to_owned(),
        1 => format!("[{count},{size}]<=[{ids}]"),
        2 => format!("[{count},{size}]<=[{size},{count}]T(1,0)"),
        _ => format!("{{{}}}", listed.join(",")),
    };
    said.insert_str(0, &format!(", replica_groups={text}"));
    Groups {
        text: said,
        size: size * each,
        ids,
    }
}

/// An operation on a value of that shape, by itself, or started and waited for, called, or in a loop.
fn wrapped(maker: &mut Maker, x: usize, to: &[usize], what: &str) -> usize {
    let (ty, dims) = maker.array(x);
    let (from, shape) = (shape_text(ty, &dims), shape_text(ty, to));
    let way = maker.random.below(8);
    if way > 3 || (way == 3 && dims != to) {
        return maker.op(
            ty,
            to,
            what.replace('@', &format!("v{x}")),
            &[x],
            Accuracy::Exact,
        );
    }
    let what = what.replace('@', "a");
    let name = maker.other(|name| {
        format!("{name} {{\n  a = {from} parameter(0)\n  ROOT b = {shape} {what}\n}}\n")
    });
    match way {
        0 | 1 => {
            let text = format!("call(v{x}), to_apply={name}");
            maker.op(ty, to, text, &[x], Accuracy::Exact)
        }
        2 => {
            let text = format!("async-start(v{x}), calls={name}");
            let start = maker.other_op(&format!("(({from}), {shape}, u32[])"), text, &[x]);
            maker.op(
                ty,
                to,
                format!("async-done(v{start})"),
                &[start],
                Accuracy::Exact,
            )
        }
        _ => {
            let state = format!("(s32[], {shape})");
            let condition = maker.other(|name| {
                format!(
                    "{name} {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(2)\n  ROOT c = pred[] compare(i, n), direction=LT\n}}\n"
                )
            });
            let next = maker.other(|name| {
                format!(
                    "{name} {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  a = {shape} get-tuple-element(s), index=1\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  b = {shape} {what}\n  ROOT t = {state} tuple(j, b)\n}}\n"
                )
            });
            let zero = maker.splat(PrimitiveType::S32, &[]);
            let start = maker.other_op(&state, format!("tuple(v{zero}, v{x})"), &[zero, x]);
            let text = format!("while(v{start}), condition={condition}, body={next}");
            let parts = [
                (PrimitiveType::S32, Vec::new(), Accuracy::Exact),
                (ty, to.to_vec(), Accuracy::Exact),
            ];
            maker.tuple_op(&parts, text, &[start])[1]
        }
    }
}

/// Groups of any sizes, which only a reduction of plain elements may have.
fn uneven(maker: &mut Maker) -> Groups {
    let (replicas, partitions) = maker.program.devices;
    let order = maker.random.order(replicas);
    let cut = maker.random.below(replicas + 1);
    let parts = [&order[..cut], &order[cut..]];
    let parts = parts.iter().filter(|part| !part.is_empty());
    let listed: Vec<String> = parts.map(|part| format!("{{{}}}", list(part))).collect();
    let (mut text, mut size) = (
        format!(", replica_groups={{{}}}", listed.join(",")),
        replicas,
    );
    if maker.random.one_in(2) {
        text.push_str(&format!(", channel_id={}", 1 + maker.program.lines.len()));
        size *= partitions;
    }
    Groups {
        text,
        size,
        ids: replicas,
    }
}

fn all_reduce(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(computes);
    let dims = maker.dims();
    let by = combiner(maker, ty);
    let plain = match ty {
        PrimitiveType::Pred => matches!(by.op, "and" | "or"),
        _ => matches!(by.op, "add" | "maximum" | "minimum"),
    };
    let groups = match plain && maker.random.one_in(3) {
        true => uneven(maker),
        false => groups(maker, true),
    };
    // In a loop sums are summed again.
    let x = combinable(maker, &by, ty, &dims, groups.size * groups.size);
    let name = body(maker, by.op, ty);
    let what = format!("{}, to_apply={name}", groups.text);
    match maker.random.below(4) {
        0 => {
            let shape = shape_text(ty, &dims);
            let start = maker.other_op(&shape, format!("all-reduce-start(v{x}){what}"), &[x]);
            let text = format!("all-reduce-done(v{start})");
            maker.op(ty, &dims, text, &[start], Accuracy::Exact)
        }
        1 => {
            let y = combinable(maker, &by, ty, &dims, groups.size);
            let part = (ty, dims, Accuracy::Exact);
            let text = format!("all-reduce(v{x}, v{y}){what}");
            maker.tuple_op(&[part.clone(), part], text, &[x, y])[0]
        }
        _ => wrapped(maker, x, &dims, &format!("all-reduce(@){what}")),
    }
}

/// A function that is neither commutative nor associative, in the order of ranks.
fn in_order(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| ty.is_integer() && ty.bit_width() >= 2);
    let dims = maker.dims();
    let x = maker.exact_of(ty, &dims);
    let name = maker.other(|name| {
        format!(
            "{name} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  c = {ty}[] subtract(a, b)\n  ROOT d = {ty}[] subtract(c, b)\n}}\n"
        )
    });
    let groups = groups(maker, true);
    let what = format!("all-reduce(@){}, to_apply={name}", groups.text);
    wrapped(maker, x, &dims, &what)
}

/// Dimensions of at least one, the one that is cut or joined of so many times as many elements.
fn cut(maker: &mut Maker, times: usize) -> (Vec<usize>, usize) {
    let rank = 1 + maker.random.below(3);
    let mut dims: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(4)).collect();
    let at = maker.random.below(rank);
    dims[at] *= times;
    (dims, at)
}

fn all_gather(maker: &mut Maker) -> usize {
    let ty = maker.ty();
    let (dims, at) = cut(maker, 1);
    let x = maker.exact_of(ty, &dims);
    let groups = groups(maker, true);
    let mut to = dims.clone();
    to[at] *= groups.size;
    let what = format!("{}, dimensions={{{at}}}", groups.text);
    if maker.random.one_in(4) {
        let shapes = format!("({}, {})", shape_text(ty, &dims), shape_text(ty, &to));
        let start = maker.other_op(&shapes, format!("all-gather-start(v{x}){what}"), &[x]);
        let text = format!("all-gather-done(v{start})");
        return maker.op(ty, &to, text, &[start], Accuracy::Exact);
    }
    if maker.random.one_in(4) {
        let other = maker.ty();
        let y = maker.exact_of(other, &dims);
        let text = format!("all-gather(v{x}, v{y}){what}");
        let parts = [
            (ty, to.clone(), Accuracy::Exact),
            (other, to, Accuracy::Exact),
        ];
        return maker.tuple_op(&parts, text, &[x, y])[0];
    }
    wrapped(maker, x, &to, &format!("all-gather(@){what}"))
}

fn reduce_scatter(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(computes);
    let by = combiner(maker, ty);
    let groups = groups(maker, true);
    let (dims, at) = cut(maker, groups.size);
    let x = combinable(maker, &by, ty, &dims, groups.size * groups.size);
    let mut to = dims;
    to[at] /= groups.size;
    let name = body(maker, by.op, ty);
    let what = format!(
        "reduce-scatter(@){}, dimensions={{{at}}}, to_apply={name}",
        groups.text
    );
    wrapped(maker, x, &to, &what)
}

fn all_to_all(maker: &mut Maker) -> usize {
    let ty = maker.ty();
    let groups = groups(maker, false);
    let (dims, at) = cut(maker, groups.size);
    let x = maker.exact_of(ty, &dims);
    let what = format!("all-to-all(@){}, dimensions={{{at}}}", groups.text);
    wrapped(maker, x, &dims, &what)
}

/// An operand for each device of the group.
fn all_to_all_of_several(maker: &mut Maker) -> usize {
    let (ty, dims) = (maker.ty(), maker.dims());
    let groups = groups(maker, false);
    let operands: Vec<usize> = (0..groups.size)
        .map(|_| maker.exact_of(ty, &dims))
        .collect();
    let names: Vec<String> = operands.iter().map(|o| format!("v{o}")).collect();
    let text = format!("all-to-all({}){}", names.join(", "), groups.text);
    let parts = vec![(ty, dims, Accuracy::Exact); groups.size];
    maker.tuple_op(&parts, text, &operands)[0]
}

fn broadcast(maker: &mut Maker) -> usize {
    let (ty, dims) = (maker.ty(), maker.dims());
    let x = maker.exact_of(ty, &dims);
    let groups = groups(maker, false);
    wrapped(
        maker,
        x,
        &dims,
        &format!("collective-broadcast(@){}", groups.text),
    )
}

/// From some devices to some, each at most once; who gets nothing gets zeros.
fn permute(maker: &mut Maker) -> usize {
    let (ty, dims) = (maker.ty(), maker.dims());
    let x = maker.exact_of(ty, &dims);
    let Groups { ids, text, .. } = groups(maker, false);
    let channel = text
        .find(", channel_id")
        .map_or("", |at| &text[at..])
        .to_owned();
    let (from, to) = (maker.random.order(ids), maker.random.order(ids));
    let count = maker.random.below(ids + 1);
    let pairs = from.into_iter().zip(to).take(count);
    let pairs: Vec<String> = pairs.map(|(from, to)| format!("{{{from},{to}}}")).collect();
    let what = format!("{channel}, source_target_pairs={{{}}}", pairs.join(","));
    if maker.random.one_in(4) {
        let shape = shape_text(ty, &dims);
        let shapes = format!("({shape}, {shape}, u32[], u32[])");
        let text = format!("collective-permute-start(v{x}){what}");
        let start = maker.other_op(&shapes, text, &[x]);
        let text = format!("collective-permute-done(v{start})");
        return maker.op(ty, &dims, text, &[start], Accuracy::Exact);
    }
    wrapped(maker, x, &dims, &format!("collective-permute(@){what}"))
}

/// Every replica sends rows to every other; where they go follows from the sender's number.
fn ragged(maker: &mut Maker) -> usize {
    let ty = maker.ty();
    let replicas = maker.program.devices.0;
    let (rows, width) = (maker.random.below(3), 1 + maker.random.below(3));
    let of = [replicas * rows + 2, width];
    let (x, y) = (maker.exact_of(ty, &of), maker.exact_of(ty, &of));
    let s32 = PrimitiveType::S32;
    let count = [replicas];
    let from = maker.whole(s32, &count, 0, 2);
    let sent = maker.whole(s32, &count, rows as i64, rows as i64);
    let own = maker.op(
        PrimitiveType::U32,
        &[],
        "replica-id()".to_owned(),
        &[],
        Accuracy::Bits,
    );
    let own = maker.op(
        s32,
        &[],
        format!("convert(v{own})"),
        &[own],
        Accuracy::Exact,
    );
    let text = format!("broadcast(v{own}), dimensions={{}}");
    let own = maker.op(s32, &count, text, &[own], Accuracy::Exact);
    let text = format!("multiply(v{own}, v{sent})");
    let to = maker.op(s32, &count, text, &[own, sent], Accuracy::Exact);
    let text = format!(
        "ragged-all-to-all(v{x}, v{y}, v{from}, v{sent}, v{to}, v{sent}), replica_groups={{}}"
    );
    maker.op(ty, &of, text, &[x, y, from, sent, to], Accuracy::Exact)
}

/// Which device it is.
fn own_number(maker: &mut Maker) -> usize {
    let op = maker.random.pick(&["replica-id()", "partition-id()"]);
    maker.op(PrimitiveType::U32, &[], op.to_owned(), &[], Accuracy::Exact)
}
