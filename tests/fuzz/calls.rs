//! Custom calls: LAPACK's, the largest elements, and annotations, which change nothing.

use xla_aot::literal::number::Number;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;

use super::make::Maker;
use super::program::Accuracy;
use super::program::list;
use super::program::shape_text;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(8) {
        0 => annotation(maker),
        1 => largest(maker),
        _ => lapack(maker),
    }
}

fn annotation(maker: &mut Maker) -> usize {
    let x = maker.value(|_, _| true);
    let (ty, dims) = maker.array(x);
    let target = maker.random.pick(&[
        "Sharding",
        "LayoutConstraint",
        "annotate_device_placement",
        "MoveToHost",
        "MoveToDevice",
        "xla.sdy.FuncResultSharding",
        "SPMDFullToShardShape",
    ]);
    let accuracy = maker.moved(x);
    let text =
        format!("custom-call(v{x}), custom_call_target=\"{target}\", sharding={{replicated}}");
    let made = maker.op(ty, &dims, text, &[x], accuracy);
    maker.stays_whole(x, made)
}

/// The first of a falling order, and where they were.
fn largest(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| {
        (ty.is_integer() && ty.bit_width() >= 8) || (ty.is_float() && ty.bit_width() >= 16)
    });
    let rank = 1 + maker.random.below(3);
    let mut dims = maker.dims_of(rank);
    let x = maker.parameter(ty, &dims);
    let last = dims[rank - 1];
    dims[rank - 1] = maker.random.below(last + 1);
    let text = format!("custom-call(v{x}), custom_call_target=\"TopK\"");
    let parts = [
        (ty, dims.clone(), Accuracy::Bits),
        (PrimitiveType::S32, dims, Accuracy::Exact),
    ];
    maker.tuple_op(&parts, text, &[x])[0]
}

/// An array of a call: its element type, and its dimensions behind those of the batch.
type Part = (PrimitiveType, Vec<usize>);

/// A call in the making.
struct Call {
    /// `getrf`, or a pair of names: of real types and of complex ones.
    name: &'static str,
    attributes: String,
    operands: Vec<Part>,
    results: Vec<Part>,
    /// Results that hold nothing.
    unread: Vec<usize>,
}

/// A routine on matrices of whole numbers or corner values.
fn lapack(maker: &mut Maker) -> usize {
    use PrimitiveType::{C64, C128, F32, F64};
    let (ty, letter) = maker
        .random
        .pick(&[(F32, 's'), (F64, 'd'), (C64, 'c'), (C128, 'z')]);
    let call = routine(maker, ty);
    let batch: Vec<usize> = (0..maker.random.below(3))
        .map(|_| maker.random.pick(&[1, 2, 3, 0]))
        .collect();
    let whole = |part: &Part| -> Vec<usize> { batch.iter().chain(&part.1).copied().collect() };
    // Mostly as LAPACK has it, columns one after the other; else memory is read as it lies there.
    let by_columns = maker.random.below(6) > 0;
    let mut operands = Vec::new();
    for part in &call.operands {
        operands.push(operand(maker, part.0, &whole(part)));
    }
    let laid = |part: &Part| {
        let order = order(&whole(part), part.1.len() == 2 && by_columns);
        format!("{}{{{}}}", shape_text(part.0, &whole(part)), list(&order))
    };
    let target = match call.name {
        "perturbed" => "tridiagonal_solve_perturbed_ffi".to_owned(),
        name => format!("lapack_{letter}{name}_ffi"),
    };
    // As JAX says it: the first result takes the memory of an operand like it.
    let first = &call.results[0];
    let like = call.operands.iter().rposition(|part| part == first);
    let at = if call.results.len() == 1 { "" } else { "0" };
    let shared = match like.filter(|_| maker.random.one_in(2)) {
        Some(like) => format!(", output_to_operand_aliasing={{{{{at}}}: ({like}, {{}})}}"),
        None => String::new(),
    };
    let constraints: Vec<String> = call.operands.iter().map(laid).collect();
    let names: Vec<String> = operands.iter().map(|o| format!("v{o}")).collect();
    let text = format!(
        "custom-call({}), custom_call_target=\"{target}\", operand_layout_constraints={{{}}}, \
         api_version=API_VERSION_TYPED_FFI{shared}, backend_config={{{}}}",
        names.join(", "),
        constraints.join(", "),
        call.attributes
    );
    let result = |maker: &mut Maker, part: &Part, text: String, operands: &[usize]| {
        let dims = whole(part);
        let made = maker.op(part.0, &dims, text, operands, Accuracy::Exact);
        let order = order(&dims, part.1.len() == 2 && by_columns);
        maker.program.inside.push((made, order));
        made
    };
    if let [single] = &call.results[..] {
        return result(maker, single, text, &operands);
    }
    let shapes: Vec<String> = call.results.iter().map(laid).collect();
    let all = maker.other_op(&format!("({})", shapes.join(", ")), text, &operands);
    let mut first = None;
    for (i, part) in call.results.iter().enumerate() {
        if !call.unread.contains(&i) {
            let text = format!("get-tuple-element(v{all}), index={i}");
            let made = result(maker, part, text, &[all]);
            first = first.or(Some(made));
        }
    }
    first.expect("a call has results")
}

/// Dimensions from minor to major; of matrices by columns the last two change places.
fn order(dims: &[usize], by_columns: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..dims.len()).rev().collect();
    if by_columns {
        order.swap(0, 1);
    }
    order
}

/// Small whole numbers, sometimes corner values; matrices often with a diagonal that outweighs.
fn operand(maker: &mut Maker, ty: PrimitiveType, dims: &[usize]) -> usize {
    if ty.is_integer() {
        return maker.whole(ty, dims, 0, 1);
    }
    match maker.random.below(12) {
        0 => maker.parameter(ty, dims),
        1..5 => {
            let shape = ArrayShape::new(ty, dims.iter().copied());
            let columns = dims.last().copied().unwrap_or(1).max(1);
            let numbers: Vec<Number> = (0..shape.element_count())
                .map(|i| {
                    let on_diagonal = i % columns == (i / columns) % columns;
                    let x = maker.random.between(-2, 2) as f64;
                    let re = if on_diagonal { 9.0 } else { x };
                    match ty.is_complex() {
                        true if on_diagonal => Number::Complex(re, 0.0),
                        true => Number::Complex(re, maker.random.between(-2, 2) as f64),
                        false => Number::Float(re),
                    }
                })
                .collect();
            maker.given(ty, dims, numbers.into_iter())
        }
        5 => maker.whole(ty, dims, 0, 0),
        _ => maker.whole(ty, dims, -3, 3),
    }
}

/// One of the routines, for matrices of some sizes.
fn routine(maker: &mut Maker, ty: PrimitiveType) -> Call {
    let size = |maker: &mut Maker| match maker.random.below(10) {
        0 => 0,
        1 => 1,
        2..9 => 2 + maker.random.below(4),
        _ => 6 + maker.random.below(6),
    };
    let (m, n, k) = (size(maker), size(maker), size(maker));
    let (least, less) = (m.min(n), n.saturating_sub(1));
    let real = if ty.is_complex() { ty.real_part() } else { ty };
    let complex = if ty.is_complex() {
        ty
    } else {
        ty.complex_of().unwrap_or(ty)
    };
    let paired = |plain, of_complex| if ty.is_complex() { of_complex } else { plain };
    let array = |dims: &[usize]| (ty, dims.to_vec());
    let int = |dims: &[usize]| (PrimitiveType::S32, dims.to_vec());
    let info = || int(&[]);
    let letter = |maker: &mut Maker, name: &str, of: &str| {
        let at = maker.random.below(of.len());
        format!("{name} = {} : ui8", of.as_bytes()[at])
    };
    let mut call = Call {
        name: "getrf",
        attributes: String::new(),
        operands: vec![array(&[m, n])],
        results: Vec::new(),
        unread: Vec::new(),
    };
    // The eigenvalues of a matrix that need not be symmetric: in two parts, or complex.
    let values = || match ty.is_complex() {
        true => vec![array(&[n])],
        false => vec![array(&[n]), array(&[n])],
    };
    match maker.random.below(15) {
        0 => call.results = vec![array(&[m, n]), int(&[least]), info()],
        1 => {
            (call.name, call.results) = ("geqrf", vec![array(&[m, n]), array(&[least])]);
        }
        2 => {
            call.name = "geqp3";
            call.operands.push(int(&[n]));
            call.results = vec![array(&[m, n]), int(&[n]), array(&[least])];
        }
        3 => {
            let reflections = maker.random.below(least + 1);
            call.name = paired("orgqr", "ungqr");
            call.operands = vec![array(&[m.max(n), n]), array(&[reflections.min(n)])];
            call.results = vec![array(&[m.max(n), n])];
        }
        4 => {
            let left = maker.random.one_in(2);
            let side = if left { m } else { n };
            let reflections = maker.random.below(side + 1);
            call.name = paired("ormqr", "unmqr");
            call.attributes = format!("left = {left}, transpose = {}", maker.random.one_in(2));
            call.operands = vec![
                array(&[side, reflections]),
                array(&[reflections]),
                array(&[m, n]),
            ];
            call.results = vec![array(&[m, n])];
        }
        5 => {
            (call.name, call.attributes) = ("potrf", letter(maker, "uplo", "LU"));
            call.operands = vec![array(&[n, n])];
            call.results = vec![array(&[n, n]), info()];
        }
        6 => {
            let left = maker.random.one_in(2);
            let side = if left { m } else { n };
            let all = [
                format!("side = {} : ui8", if left { 76 } else { 82 }),
                letter(maker, "uplo", "LU"),
                letter(maker, "trans_x", "NTC"),
                letter(maker, "diag", "NU"),
            ];
            (call.name, call.attributes) = ("trsm", all.join(", "));
            call.operands = vec![array(&[side, side]), array(&[m, n])];
            call.results = vec![array(&[m, n])];
        }
        7 | 8 => {
            call.name = maker.random.pick(&["gesdd", "gesvd"]);
            let mode = maker.random.pick(&[65, 83, 78]);
            call.attributes = format!("mode = {mode} : ui8");
            let (u, vh) = match mode {
                83 => (array(&[m, least]), array(&[least, n])),
                _ => (array(&[m, m]), array(&[n, n])),
            };
            call.results = vec![array(&[m, n]), (real, vec![least]), u, vh, info()];
            call.unread = if mode == 78 { vec![0, 2, 3] } else { vec![0] };
        }
        9 => {
            let attributes = [letter(maker, "mode", "NV"), letter(maker, "uplo", "LU")];
            (call.name, call.attributes) = (paired("syevd", "heevd"), attributes.join(", "));
            call.operands = vec![array(&[n, n])];
            call.results = vec![array(&[n, n]), (real, vec![n]), info()];
            call.unread = match call.attributes.starts_with("mode = 78") {
                true => vec![0],
                false => Vec::new(),
            };
        }
        10 => {
            let sides = [
                letter(maker, "compute_left", "NV"),
                letter(maker, "compute_right", "NV"),
            ];
            let first = values().len();
            call.name = "geev";
            let none = |i: &usize| sides[*i].ends_with("= 78 : ui8");
            call.unread = (0..2).filter(none).map(|i| first + i).collect();
            call.attributes = sides.join(", ");
            call.operands = vec![array(&[n, n])];
            let vectors = (complex, vec![n, n]);
            call.results = [values(), vec![vectors.clone(), vectors, info()]].concat();
        }
        11 => {
            let mode = letter(maker, "mode", "NV");
            call.name = "gees";
            call.unread = if mode == "mode = 78 : ui8" {
                vec![1]
            } else {
                Vec::new()
            };
            call.attributes = format!("{mode}, sort = 78 : ui8");
            call.operands = vec![array(&[n, n])];
            let matrices = vec![array(&[n, n]), array(&[n, n])];
            call.results = [matrices, values(), vec![info(), info()]].concat();
        }
        12 => {
            let low = 1 + maker.random.below(n.max(1));
            let high = low + maker.random.below(n.saturating_sub(low) + 1);
            call.name = "gehrd";
            call.attributes = format!("low = {low} : i32, high = {high} : i32");
            call.operands = vec![array(&[n, n])];
            call.results = vec![array(&[n, n]), array(&[less]), info()];
        }
        13 => {
            let of_less = vec![less];
            (call.name, call.attributes) = (paired("sytrd", "hetrd"), letter(maker, "uplo", "LU"));
            call.operands = vec![array(&[n, n])];
            let ends = vec![
                (real, vec![n]),
                (real, of_less.clone()),
                (ty, of_less),
                info(),
            ];
            call.results = [vec![array(&[n, n])], ends].concat();
        }
        _ => {
            let all = vec![array(&[n]), array(&[n]), array(&[n]), array(&[n, k])];
            call.operands = all.clone();
            if maker.random.one_in(2) {
                call.name = "gtsv";
                call.results = [all, vec![info()]].concat();
            } else {
                call.name = "perturbed";
                call.results = vec![array(&[n, k])];
            }
        }
    }
    call
}
