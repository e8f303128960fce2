//! Loops, branches, calls and what else has bodies or order.

use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use super::combine::body;
use super::elementwise::computes;
use super::make::Maker;
use super::program::Accuracy;
use super::program::shape_text;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(16) {
        0..2 => repeat(maker),
        2..4 => branch(maker),
        4..6 => call(maker),
        6 => map(maker),
        7 => barrier(maker),
        8 => generator(maker),
        9 => nested(maker),
        10 => ordered(maker),
        11..13 => started(maker),
        13 => domain(maker),
        _ => fusion(maker),
    }
}

/// A binary op that is exact for the type.
pub fn exact_op(maker: &mut Maker, ty: PrimitiveType) -> &'static str {
    match ty.kind() {
        ElementKind::Pred => maker.random.pick(&["and", "or", "xor"]),
        ElementKind::Complex => maker.random.pick(&["add", "subtract"]),
        ElementKind::Float => maker
            .random
            .pick(&["add", "subtract", "multiply", "maximum", "minimum"]),
        _ => maker
            .random
            .pick(&["add", "subtract", "multiply", "maximum", "minimum", "xor"]),
    }
}

/// Computes on two arrays of one shape a number of times.
fn repeat(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, dims| computes(ty) && dims.iter().product::<usize>() < 500);
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let (op, times) = (exact_op(maker, ty), maker.random.below(5));
    let shape = shape_text(ty, &dims);
    let counter = maker.random.pick(&["s32", "s64", "u32", "u8"]);
    let state = format!("({counter}[], {shape}, {shape})");
    let condition = maker.other(|name| {
        format!(
            "{name} {{\n  s = {state} parameter(0)\n  i = {counter}[] get-tuple-element(s), index=0\n  n = {counter}[] constant({times})\n  ROOT c = pred[] compare(i, n), direction=LT\n}}\n"
        )
    });
    let next = maker.random.pick(&["r, b", "b, a", "r, a", "a, r", "b, r"]);
    let looped = maker.other(|name| {
        format!(
            "{name} {{\n  s = {state} parameter(0)\n  i = {counter}[] get-tuple-element(s), index=0\n  a = {shape} get-tuple-element(s), index=1\n  b = {shape} get-tuple-element(s), index=2\n  one = {counter}[] constant(1)\n  j = {counter}[] add(i, one)\n  r = {shape} {op}(a, b)\n  ROOT t = {state} tuple(j, {next})\n}}\n"
        )
    });
    let ty_of = PrimitiveType::from_name(counter).unwrap_or(PrimitiveType::S32);
    let zero = maker.op(ty_of, &[], "constant(0)".to_owned(), &[], Accuracy::Bits);
    let parts = [
        (ty_of, Vec::new(), Accuracy::Exact),
        (ty, dims.clone(), Accuracy::Exact),
        (ty, dims, Accuracy::Exact),
    ];
    let start = tuple(maker, &state, &[zero, x, y]);
    let text = format!("while(v{start}), condition={condition}, body={looped}");
    maker.tuple_op(&parts, text, &[start])[1]
}

/// Adds a tuple.
fn tuple(maker: &mut Maker, shape: &str, parts: &[usize]) -> usize {
    let names: Vec<String> = parts.iter().map(|p| format!("v{p}")).collect();
    let text = format!("tuple({})", names.join(", "));
    maker.other_op(shape, text, parts)
}

/// Branches that give a tuple within a tuple.
fn nested(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let p = maker.exact_of(PrimitiveType::Pred, &[]);
    let shape = shape_text(ty, &dims);
    let (inner, op) = (format!("({shape}, {shape})"), exact_op(maker, ty));
    let outer = format!("({inner}, pred[], ())");
    let mut names = Vec::new();
    for swapped in [false, true] {
        let (a, b) = if swapped { ("b", "c") } else { ("c", "a") };
        names.push(maker.other(|name| {
            format!(
                "{name} {{\n  t = {outer} parameter(0)\n  i = {inner} get-tuple-element(t), index=0\n  p = pred[] get-tuple-element(t), index=1\n  a = {shape} get-tuple-element(i), index=0\n  b = {shape} get-tuple-element(i), index=1\n  c = {shape} {op}(a, b)\n  j = {inner} tuple({a}, {b})\n  q = pred[] not(p)\n  n = () get-tuple-element(t), index=2\n  ROOT r = {outer} tuple(j, q, n)\n}}\n"
            )
        }));
    }
    let both = tuple(maker, &inner, &[x, y]);
    let nothing = tuple(maker, "()", &[]);
    let all = tuple(maker, &outer, &[both, p, nothing]);
    let text = format!(
        "conditional(v{p}, v{all}, v{all}), true_computation={}, false_computation={}",
        names[0], names[1]
    );
    let chosen = maker.other_op(&outer, text, &[p, all]);
    let text = format!("get-tuple-element(v{chosen}), index=0");
    let pair = maker.other_op(&inner, text, &[chosen]);
    let part = (ty, dims, Accuracy::Exact);
    maker.parts_of(pair, &[part.clone(), part])[0]
}

/// A value that waits for another.
fn ordered(maker: &mut Maker) -> usize {
    let x = maker.value(|_, _| true);
    let first = maker.value(|_, _| true);
    let token = maker.other_op("token[]", "after-all()".to_owned(), &[]);
    let token = if maker.random.one_in(2) {
        maker.other_op("token[]", format!("after-all(v{token})"), &[token])
    } else {
        token
    };
    let late = if maker.random.one_in(2) { x } else { first };
    let (ty, dims) = maker.array(late);
    let accuracy = maker.moved(late);
    let text = format!("add-dependency(v{late}, v{token})");
    let made = maker.op(ty, &dims, text, &[late, token], accuracy);
    maker.stays_whole(late, made)
}

/// What is started and waited for.
fn started(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let shape = shape_text(ty, &dims);
    if maker.random.one_in(2) {
        let text = format!("copy-start(v{x})");
        let start = maker.other_op(&format!("({shape}, {shape}, u32[])"), text, &[x]);
        let accuracy = maker.moved(x);
        let text = format!("copy-done(v{start})");
        let made = maker.op(ty, &dims, text, &[start], accuracy);
        return maker.stays_whole(x, made);
    }
    let (op, y) = (exact_op(maker, ty), maker.exact_of(ty, &dims));
    let pair = maker.random.one_in(2);
    let (b, root) = if pair {
        (
            format!("{shape} parameter(1)"),
            format!("({shape}, {shape}) tuple(c, a)"),
        )
    } else {
        (format!("{shape} copy(a)"), format!("{shape} copy(c)"))
    };
    let body = maker.other(|name| {
        format!(
            "{name} {{\n  a = {shape} parameter(0)\n  b = {b}\n  c = {shape} {op}(a, b)\n  ROOT d = {root}\n}}\n"
        )
    });
    let operands = if pair { vec![x, y] } else { vec![x] };
    let names: Vec<String> = operands.iter().map(|o| format!("v{o}")).collect();
    let given = vec![shape.clone(); operands.len()].join(", ");
    let result = if pair {
        format!("({shape}, {shape})")
    } else {
        shape
    };
    let flight = format!("(({given}), {result}, s32[])");
    let thread = maker
        .random
        .pick(&["", ", async_execution_thread=\"side\""]);
    let text = format!("async-start({}){thread}, calls={body}", names.join(", "));
    let mut start = maker.other_op(&flight, text, &operands);
    for _ in 0..maker.random.below(3) {
        start = maker.other_op(&flight, format!("async-update(v{start})"), &[start]);
    }
    let text = format!("async-done(v{start})");
    let part = (ty, dims.clone(), Accuracy::Exact);
    if pair {
        return maker.tuple_op(&[part.clone(), part], text, &[start])[0];
    }
    maker.op(ty, &dims, text, &[start], Accuracy::Exact)
}

/// A border that nothing crosses here.
fn domain(maker: &mut Maker) -> usize {
    let x = maker.value(|_, _| true);
    let (ty, dims) = maker.array(x);
    let accuracy = maker.moved(x);
    let text = format!(
        "domain(v{x}), domain={{kind=\"sharding\", entry={{maximal device=0}}, exit={{replicated}}}}"
    );
    let made = maker.op(ty, &dims, text, &[x], accuracy);
    maker.stays_whole(x, made)
}

/// Ops that a program brings fused, with one result or two.
fn fusion(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let (shape, first, second) = (
        shape_text(ty, &dims),
        exact_op(maker, ty),
        exact_op(maker, ty),
    );
    let pair = maker.random.one_in(2);
    let kind = maker.random.pick(&["kLoop", "kLoop", "kInput", "kOutput"]);
    let root = if pair {
        format!("({shape}, {shape}) tuple(d, c)")
    } else {
        format!("{shape} {first}(d, d)")
    };
    let name = maker.other(|name| {
        format!(
            "{name} {{\n  a = {shape} parameter(0)\n  b = {shape} parameter(1)\n  c = {shape} {first}(a, b)\n  d = {shape} {second}(c, a)\n  ROOT e = {root}\n}}\n"
        )
    });
    let shared = match (maker.random.below(4), pair) {
        (0, true) => ", output_to_operand_aliasing={{0}: (0, {})}",
        (0, false) => ", output_to_operand_aliasing={{}: (1, {})}",
        _ => "",
    };
    let text = format!("fusion(v{x}, v{y}), kind={kind}, calls={name}{shared}");
    if pair {
        let part = (ty, dims, Accuracy::Exact);
        return maker.tuple_op(&[part.clone(), part], text, &[x, y])[0];
    }
    maker.op(ty, &dims, text, &[x, y], Accuracy::Exact)
}

fn branch(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let shape = shape_text(ty, &dims);
    let count = 1 + maker.random.below(3);
    let by_pred = count == 2 && maker.random.one_in(2);
    let mut names = Vec::new();
    for _ in 0..count {
        let op = exact_op(maker, ty);
        names.push(maker.other(|name| {
            format!("{name} {{\n  a = {shape} parameter(0)\n  ROOT b = {shape} {op}(a, a)\n}}\n")
        }));
    }
    let (selector, branches) = if by_pred {
        let selector = maker.exact_of(PrimitiveType::Pred, &[]);
        let text = format!(
            "true_computation={}, false_computation={}",
            names[0], names[1]
        );
        (selector, text)
    } else {
        let selector = if maker.random.one_in(2) {
            maker.whole(PrimitiveType::S32, &[], -1, 3)
        } else {
            maker.exact_of(PrimitiveType::S32, &[])
        };
        (
            selector,
            format!("branch_computations={{{}}}", names.join(", ")),
        )
    };
    let mut operands = vec![selector];
    for _ in 0..count {
        operands.push(maker.exact_of(ty, &dims));
    }
    let arguments: Vec<String> = operands.iter().map(|o| format!("v{o}")).collect();
    let text = format!("conditional({}), {branches}", arguments.join(", "));
    maker.op(ty, &dims, text, &operands, Accuracy::Exact)
}

fn call(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let (shape, op) = (shape_text(ty, &dims), exact_op(maker, ty));
    let y = maker.exact_of(ty, &dims);
    let name = maker.other(|name| {
        format!(
            "{name} {{\n  a = {shape} parameter(0)\n  b = {shape} parameter(1)\n  c = {shape} {op}(a, b)\n  ROOT d = {shape} {op}(c, a)\n}}\n"
        )
    });
    let composite = match maker.random.one_in(3) {
        true => {
            ", is_composite=true, frontend_attributes={composite.attributes={n = 2 : i64},\
             composite.name=\"own.op\",composite.version=\"1\"}"
        }
        false => "",
    };
    let text = format!("call(v{x}, v{y}), to_apply={name}{composite}");
    maker.op(ty, &dims, text, &[x, y], Accuracy::Exact)
}

fn map(maker: &mut Maker) -> usize {
    let x = maker.exact(|ty, _| computes(ty));
    let (ty, dims) = maker.array(x);
    let y = maker.exact_of(ty, &dims);
    let op = exact_op(maker, ty);
    let name = body(maker, op, ty);
    let all: Vec<String> = (0..dims.len()).map(|d| d.to_string()).collect();
    let text = format!(
        "map(v{x}, v{y}), dimensions={{{}}}, to_apply={name}",
        all.join(",")
    );
    maker.op(ty, &dims, text, &[x, y], Accuracy::Exact)
}

fn barrier(maker: &mut Maker) -> usize {
    let x = maker.value(|_, _| true);
    let y = maker.value(|_, _| true);
    let shapes = format!("({}, {})", maker.line(x).shape, maker.line(y).shape);
    let both = tuple(maker, &shapes, &[x, y]);
    let parts: Vec<_> = [x, y]
        .iter()
        .map(|&v| {
            let (ty, dims) = maker.array(v);
            (ty, dims, maker.moved(v))
        })
        .collect();
    let names = maker.tuple_op(&parts, format!("opt-barrier(v{both})"), &[both]);
    maker.stays_whole(x, names[0]);
    maker.stays_whole(y, names[1]);
    names[0]
}

fn generator(maker: &mut Maker) -> usize {
    use PrimitiveType::{S32, U8, U16, U32, U64};
    let (algorithm, length) = maker.random.pick(&[
        ("rng_three_fry", 2),
        ("rng_philox", 2),
        ("rng_philox", 3),
        ("rng_default", 2),
    ]);
    let state = maker.parameter(U64, &[length]);
    let ty = maker.random.pick(&[U32, U64, S32, U8, U16, U32]);
    let dims = maker.dims();
    let parts = [
        (U64, vec![length], Accuracy::Exact),
        (ty, dims, Accuracy::Exact),
    ];
    let text = format!("rng-bit-generator(v{state}), algorithm={algorithm}");
    maker.tuple_op(&parts, text, &[state])[1]
}
