//! Which op takes which element type on which engine: one trial an op, over all types, each engine's
//! results against the evaluator's. `src/hlo/STATUS.md` is the table; `XLA_AOT_MEASURE=1` writes it.

use std::fmt::Write as _;
use std::fs;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::front;
use xla_aot::hlo;
use xla_aot::hlo::Module;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::Literal;
use xla_aot::literal::number::Number;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;
use xla_aot::shape::Shape;

use super::Engine;
use super::measure;
use crate::ops;

/// The table.
const TABLE: &str = "src/hlo/STATUS.md";

/// An op to try: `T` is the element type, `R` the type of its parts, `P` the precise type sums are
/// kept in; a `#` after a name makes it that type's own, and in `parameter(#)` it is the next number.
struct Op {
    name: &'static str,
    computations: &'static str,
    body: String,
    /// Shape of `r#`.
    result: &'static str,
}

const ADD: &str =
    "add# { x# = T[] parameter(0)\n y# = T[] parameter(1)\n ROOT s# = T[] add(x#, y#) }";
const LESS: &str = "less# { x# = T[] parameter(0)\n y# = T[] parameter(1)\n ROOT s# = pred[] compare(x#, y#), direction=LT }";
const GREATER: &str = "more# { x# = T[] parameter(0)\n y# = T[] parameter(1)\n ROOT s# = pred[] compare(x#, y#), direction=GE }\nadd# { u# = T[] parameter(0)\n v# = T[] parameter(1)\n ROOT w# = T[] add(u#, v#) }";
const STEP: &str = "more# { p# = (s32[], T[3]) parameter(0)\n i# = s32[] get-tuple-element(p#), index=0\n n# = s32[] constant(2)\n ROOT m# = pred[] compare(i#, n#), direction=LT }\nstep# { q# = (s32[], T[3]) parameter(0)\n j# = s32[] get-tuple-element(q#), index=0\n v# = T[3] get-tuple-element(q#), index=1\n o# = s32[] constant(1)\n k# = s32[] add(j#, o#)\n w# = T[3] copy(v#)\n ROOT t# = (s32[], T[3]) tuple(k#, w#) }";
const TWO: &str = "one# { x# = T[3] parameter(0)\n ROOT c# = T[3] copy(x#) }\ntwo# { y# = T[3] parameter(0)\n ROOT d# = T[3] reverse(y#), dimensions={0} }";
const MAPPED: &str = "mapped# { x# = T[] parameter(0)\n ROOT c# = T[] copy(x#) }";

/// Name, computations, body, shape of the result.
const OPS: &[(&str, &str, &str, &str)] = &[
    (
        "bitcast-convert",
        "",
        "r# = T[4] bitcast-convert(a4#)",
        "T[4]",
    ),
    (
        "broadcast",
        "",
        "r# = T[2,4] broadcast(a4#), dimensions={1}",
        "T[2,4]",
    ),
    (
        "call",
        MAPPED,
        "s# = T[] reshape(a1#)\n r# = T[] call(s#), to_apply=mapped#",
        "T[]",
    ),
    (
        "cholesky",
        "",
        "r# = T[2,2] cholesky(spd#), lower=true",
        "T[2,2]",
    ),
    ("clamp", "", "r# = T[4] clamp(b4#, a4#, c4#)", "T[4]"),
    (
        "compare",
        "",
        "r# = pred[4] compare(a4#, b4#), direction=NE",
        "pred[4]",
    ),
    ("complex", "", "r# = C[4] complex(a4#, b4#)", "C[4]"),
    (
        "concatenate",
        "",
        "r# = T[8] concatenate(a4#, b4#), dimensions={0}",
        "T[8]",
    ),
    (
        "conditional",
        TWO,
        "z# = s32[] constant(1)\n r# = T[3] conditional(z#, a3#, a3#), branch_computations={one#, two#}",
        "T[3]",
    ),
    (
        "convert",
        "",
        "h# = f32[4] convert(a4#)\n r# = T[4] convert(h#)",
        "T[4]",
    ),
    (
        "convolution",
        "",
        "r# = T[1,2,1] convolution(img#, ker#), window={size=2}, dim_labels=b0f_0io->b0f",
        "T[1,2,1]",
    ),
    ("copy", "", "r# = T[2,3] copy(m#)", "T[2,3]"),
    (
        "dot",
        "",
        "r# = T[2,2] dot(m#, n#), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "T[2,2]",
    ),
    (
        "dynamic-slice",
        "",
        "z# = s32[] constant(1)\n r# = T[2] dynamic-slice(a4#, z#), dynamic_slice_sizes={2}",
        "T[2]",
    ),
    (
        "dynamic-update-slice",
        "",
        "z# = s32[] constant(2)\n r# = T[4] dynamic-update-slice(a4#, a1#, z#)",
        "T[4]",
    ),
    (
        "gather",
        "",
        "i# = s32[2] constant({2, 0})\n r# = T[2] gather(a4#, i#), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
        "T[2]",
    ),
    ("iota", "", "r# = T[2] iota(), iota_dimension=0", "T[2]"),
    (
        "map",
        MAPPED,
        "r# = T[4] map(a4#), dimensions={0}, to_apply=mapped#",
        "T[4]",
    ),
    (
        "pad",
        "",
        "z# = T[] reshape(a1#)\n r# = T[8] pad(a4#, z#), padding=1_0_1",
        "T[8]",
    ),
    (
        "reduce",
        ADD,
        "z# = T[] reshape(a1#)\n r# = T[2] reduce(m#, z#), dimensions={1}, to_apply=add#",
        "T[2]",
    ),
    (
        "reduce-precision",
        "",
        "r# = T[4] reduce-precision(a4#), exponent_bits=5, mantissa_bits=2",
        "T[4]",
    ),
    (
        "reduce-window",
        ADD,
        "z# = T[] reshape(a1#)\n r# = T[3] reduce-window(a4#, z#), window={size=2}, to_apply=add#",
        "T[3]",
    ),
    ("reshape", "", "r# = T[3,2] reshape(m#)", "T[3,2]"),
    (
        "reverse",
        "",
        "r# = T[4] reverse(a4#), dimensions={0}",
        "T[4]",
    ),
    (
        "scatter",
        ADD,
        "i# = s32[2] constant({2, 0})\n u# = T[2] slice(b4#), slice={[0:2]}\n r# = T[4] scatter(a4#, i#, u#), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add#",
        "T[4]",
    ),
    (
        "select",
        "",
        "p# = pred[4] constant({1, 0, 0, 1})\n r# = T[4] select(p#, a4#, b4#)",
        "T[4]",
    ),
    (
        "select-and-scatter",
        GREATER,
        "z# = T[] reshape(a1#)\n u# = T[2] slice(b4#), slice={[0:2]}\n r# = T[4] select-and-scatter(a4#, u#, z#), window={size=2 stride=2}, select=more#, scatter=add#",
        "T[4]",
    ),
    ("slice", "", "r# = T[2] slice(a4#), slice={[0:4:2]}", "T[2]"),
    (
        "sort",
        LESS,
        "r# = T[4] sort(a4#), dimensions={0}, to_apply=less#",
        "T[4]",
    ),
    (
        "transpose",
        "",
        "r# = T[3,2] transpose(m#), dimensions={1,0}",
        "T[3,2]",
    ),
    (
        "triangular-solve",
        "",
        "r# = T[2,1] triangular-solve(spd#, rhs#), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE",
        "T[2,1]",
    ),
    (
        "tuple",
        "",
        "r# = (T[4], T[3]) tuple(a4#, a3#)",
        "(T[4], T[3])",
    ),
    (
        "while",
        STEP,
        "z# = s32[] constant(0)\n w0# = (s32[], T[3]) tuple(z#, a3#)\n r# = (s32[], T[3]) while(w0#), condition=more#, body=step#",
        "(s32[], T[3])",
    ),
    (
        "fft",
        "",
        "r# = T[4] fft(a4#), fft_type=FFT, fft_length={4}",
        "T[4]",
    ),
    (
        "batch-norm-inference",
        "",
        "f# = T[1] slice(a4#), slice={[2:3]}\n r# = T[1,3,1] batch-norm-inference(img#, f#, f#, f#, f#), epsilon=0.5, feature_index=2",
        "T[1,3,1]",
    ),
    (
        "topk",
        "",
        "r# = (T[2], s32[2]) topk(a4#), k=2, largest=true",
        "(T[2], s32[2])",
    ),
];

/// What bodies may use: name, shape.
const PARAMETERS: &[(&str, &str)] = &[
    ("a1", "T[1]"),
    ("a3", "T[3]"),
    ("a4", "T[4]"),
    ("b4", "T[4]"),
    ("c4", "T[4]"),
    ("m", "T[2,3]"),
    ("n", "T[3,2]"),
    ("img", "T[1,3,1]"),
    ("ker", "T[2,1,1]"),
    ("spd", "T[2,2]"),
    ("rhs", "T[2,1]"),
];

fn ops() -> Vec<Op> {
    let fixed = OPS.iter().map(|&(name, computations, body, result)| Op {
        name,
        computations,
        body: body.to_owned(),
        result,
    });
    let unary = ops::UNARY.iter().map(|op| {
        let result = match op.name {
            "is-finite" => "pred[4]",
            "real" | "imag" => "R[4]",
            _ => "T[4]",
        };
        let name = op.name;
        Op {
            name,
            computations: "",
            body: format!("r# = {result} {name}(a4#)"),
            result,
        }
    });
    let binary = ops::BINARY.iter().map(|op| Op {
        name: op.name,
        computations: "",
        body: format!("r# = T[4] {}(a4#, b4#)", op.name),
        result: "T[4]",
    });
    let mut all: Vec<Op> = fixed.chain(unary).chain(binary).collect();
    all.sort_by_key(|op| op.name);
    all
}

/// One trial an op, which holds its row of the table against what is seen.
pub fn trials(engines: &'static [(&'static str, Engine)]) -> Vec<Trial> {
    let table = fs::read_to_string(TABLE).unwrap_or_default();
    let trial = |op: Op| {
        let start = format!("| {} |", op.name);
        let want = table.lines().find(|line| line.starts_with(&start));
        let want = want.unwrap_or_default().to_owned();
        Trial::test(format!("status/{}", op.name), move || {
            let got = row(&op, engines)?;
            if got == want {
                Ok(())
            } else {
                Err(format!("{TABLE} says\n{want}\nseen\n{got}").into())
            }
        })
    };
    ops().into_iter().map(trial).collect()
}

/// Writes the table.
pub fn bless(engines: &[(&str, Engine)]) -> Result<(), Failed> {
    let text = fs::read_to_string(TABLE)?;
    let head = text.split("| op |").next().unwrap_or_default();
    let names: Vec<&str> = PrimitiveType::ALL.iter().map(|ty| ty.name()).collect();
    let rule = "---|".repeat(names.len() + 1);
    let mut out = format!("{head}| op | {} |\n|{rule}\n", names.join(" | "));
    for op in ops() {
        writeln!(out, "{}", row(&op, engines)?).unwrap();
    }
    fs::write(TABLE, out)?;
    Ok(())
}

/// `| op | yes | - | ...`: `yes` where every engine agrees with the evaluator, else those that do;
/// `-` where HLO has no such op.
fn row(op: &Op, engines: &[(&str, Engine)]) -> Result<String, Failed> {
    let engines: Vec<(&str, Engine)> = engines
        .iter()
        .copied()
        .filter(|(name, _)| *name != "qemu")
        .collect();
    let legal: Vec<bool> = PrimitiveType::ALL
        .iter()
        .map(|&ty| module(op, &[ty]).is_ok())
        .collect();
    let types: Vec<PrimitiveType> = PrimitiveType::ALL
        .iter()
        .zip(&legal)
        .filter(|(_, legal)| **legal)
        .map(|(ty, _)| *ty)
        .collect();
    // All types in one program; where that fails, each in its own.
    let together: Vec<bool> = engines
        .iter()
        .map(|(_, run)| !types.is_empty() && agrees(op, &types, *run))
        .collect();
    let mut cells = vec![op.name.to_owned()];
    for (&ty, legal) in PrimitiveType::ALL.iter().zip(&legal) {
        let works = |at: usize| together[at] || agrees(op, &[ty], engines[at].1);
        let working: Vec<&str> = match legal {
            true => (0..engines.len())
                .filter(|at| works(*at))
                .map(|at| engines[at].0)
                .collect(),
            false => Vec::new(),
        };
        cells.push(match working.len() {
            _ if !legal => "-".to_owned(),
            0 => "no".to_owned(),
            n if n == engines.len() => "yes".to_owned(),
            _ => working.join(" "),
        });
    }
    Ok(format!("| {} |", cells.join(" | ")))
}

/// A program that applies the op to each of the types.
fn module(op: &Op, types: &[PrimitiveType]) -> Result<Module, String> {
    let (mut computations, mut entry, mut shapes, mut results) =
        (String::new(), String::new(), Vec::new(), Vec::new());
    let mut number = 0;
    for &ty in types {
        let own = |text: &str| {
            let complex = if ty == PrimitiveType::F64 {
                "c128"
            } else {
                "c64"
            };
            let text = text.replace("T[", &format!("{ty}["));
            let text = text.replace("R[", &format!("{}[", ty.real_part()));
            let text = text.replace("C[", &format!("{complex}["));
            text.replace('#', &format!("_{ty}"))
        };
        writeln!(computations, "{}\n", own(op.computations)).unwrap();
        for (name, shape) in PARAMETERS.iter().filter(|(name, _)| uses(&op.body, name)) {
            let shape = own(shape);
            writeln!(entry, "  {name}_{ty} = {shape} parameter({number})").unwrap();
            number += 1;
        }
        writeln!(entry, "  {}", own(&op.body)).unwrap();
        shapes.push(own(op.result));
        results.push(format!("r_{ty}"));
    }
    let (shapes, results) = (shapes.join(", "), results.join(", "));
    let text = format!(
        "HloModule status\n\n{computations}ENTRY e {{\n{entry}  ROOT all = ({shapes}) tuple({results})\n}}\n"
    );
    let module = front::hlo_text::parse(&text).map_err(|d| d.to_string())?;
    hlo::verify::check(&module).map_err(|d| d.to_string())?;
    Ok(module)
}

fn uses(body: &str, name: &str) -> bool {
    let word = format!("{name}#");
    body.match_indices(&word)
        .any(|(at, _)| !body[..at].ends_with(|c: char| c.is_alphanumeric()))
}

/// Whether an engine gives what the evaluator gives.
fn agrees(op: &Op, types: &[PrimitiveType], run: Engine) -> bool {
    let Ok(module) = module(op, types) else {
        return false;
    };
    let inputs: Vec<Literal> = module.entry_layout().parameters.iter().map(input).collect();
    let Ok(want) = xla_aot::eval::evaluate(&module, &inputs) else {
        return false;
    };
    run(module, &inputs).is_ok_and(|got| near(&want, &got))
}

/// Small numbers that no sum or product of a few takes out of the type; square ones are definite.
fn input(shape: &Shape) -> Literal {
    let shape = shape.as_array().expect("parameters are arrays");
    let is_square = shape.dims.len() == 2 && shape.dims[0] == shape.dims[1];
    let values = (0..shape.element_count()).map(|i| {
        let x = if is_square {
            [2.0, 0.0, 1.0, 2.0][i % 4]
        } else {
            [1.0, 0.5, 2.0, 1.5, 0.0][(i * 3 + shape.dims.len()) % 5]
        };
        match shape.ty.kind() {
            ElementKind::Complex => Number::Complex(x, 0.0),
            ElementKind::Float => Number::Float(x),
            _ => Number::Int(x as i128 % (1 << shape.ty.bit_width().min(60))),
        }
    });
    let flat = measure::array(shape.ty, values);
    Literal::Array(ArrayLiteral::new(shape.clone(), flat.bytes().to_vec()))
}

fn near(want: &Literal, got: &Literal) -> bool {
    match (want, got) {
        (Literal::Array(want), Literal::Array(got)) => {
            let pairs = measure::decode_all(want)
                .into_iter()
                .zip(measure::decode_all(got));
            want.shape().dims == got.shape().dims
                && pairs.into_iter().all(|(a, b)| close(want.ty(), a, b))
        }
        (Literal::Tuple(want), Literal::Tuple(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(a, b)| near(a, b))
        }
        _ => false,
    }
}

/// Equal, or for floats within a few places.
fn close(ty: PrimitiveType, want: Number, got: Number) -> bool {
    let part = if ty.is_complex() { ty.real_part() } else { ty };
    let by = match part {
        PrimitiveType::F64 => 1e-13,
        PrimitiveType::F32 => 1e-5,
        PrimitiveType::F16 => 4e-3,
        PrimitiveType::BF16 => 3e-2,
        _ => 0.3,
    };
    let float = |a: f64, b: f64| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= by * a.abs().max(1.0)
    };
    match (want, got) {
        (Number::Float(a), Number::Float(b)) => float(a, b),
        (Number::Complex(a, b), Number::Complex(c, d)) => float(a, c) && float(b, d),
        (want, got) => want == got,
    }
}
