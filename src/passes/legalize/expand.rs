//! The table of expansions: ops that other ops say, each replaced where it stands.
//!
//! An expansion appends to the computation of the instruction and gives what takes its place, of the
//! same shape. It may use any op that `emit` has, and other expandable ops.

use crate::base::Result;
use crate::hlo;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::hlo::expand::Expansion;
use crate::passes::legalize::batch_norm;
use crate::passes::legalize::fft;
use crate::passes::legalize::rng;
use crate::passes::legalize::rng_bit_generator;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::target::Platform;
use crate::target::Target;

/// The pass that expands all of them.
pub struct ExpandOps;

impl Pass for ExpandOps {
    fn name(&self) -> &'static str {
        "expand-ops"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let target = cx.target;
        let wanted = |module: &Module, id: InstrId| !is_there(module, id, target);
        Ok(Changed::when(expand_where(module, &wanted)?))
    }
}

/// Results of up to this many elements a row are kept as a list by the top-k kernel.
const TOPK_LIST: usize = 128;

/// Whether an op that has an expansion is also there for the target, as a kernel or in its library.
fn is_there(module: &Module, id: InstrId, target: &Target) -> bool {
    let instr = module.instr(id);
    let k = match instr.op {
        Op::TopK { k, .. } => k,
        Op::Fft { .. } => return target.platform() == Platform::Cpu,
        _ => return false,
    };
    let array = module.operand(id, 0).shape.as_array();
    let ordered = array.is_some_and(|array| {
        let ty = array.ty;
        (ty.is_float() || ty.is_integer()) && ty.bit_width() >= 8
    });
    target.platform() == Platform::Cpu && k <= TOPK_LIST && ordered
}

/// The expansion of an op, when it has one.
pub fn expansion(op: &Op) -> Option<Expansion> {
    match op {
        Op::BatchNormTraining { .. } => Some(batch_norm::training),
        Op::BatchNormInference { .. } => Some(batch_norm::inference),
        Op::BatchNormGrad { .. } => Some(batch_norm::grad),
        Op::RngBitGenerator { .. } => Some(rng_bit_generator::expand),
        Op::Rng { .. } => Some(rng::expand),
        Op::StochasticConvert => Some(hlo::expand::stochastic_convert),
        Op::RaggedDot { .. } => Some(hlo::expand::ragged_dot),
        Op::ScaledDot { .. } => Some(hlo::expand::scaled_dot),
        Op::Scan { .. } => Some(hlo::expand::scan),
        Op::TopK { .. } => Some(hlo::expand::topk),
        Op::Fft { .. } => Some(fft::expand),
        _ => None,
    }
}

/// Expands every op that has an expansion, in every computation that the entry reaches, until none
/// is left. True when something was expanded.
///
/// # Errors
/// `XA3001` for a form of an op that its expansion does not cover.
pub fn expand_all(module: &mut Module) -> Result<bool> {
    expand_where(module, &|_, _| true)
}

/// The same for the instructions that are wanted.
fn expand_where(module: &mut Module, wanted: &dyn Fn(&Module, InstrId) -> bool) -> Result<bool> {
    hlo::expand::everywhere(module, &|module, id| {
        let op = &module.instrs[id].op;
        wanted(module, id).then(|| expansion(op)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval;
    use crate::hlo::verify;
    use crate::literal::ArrayLiteral;
    use crate::literal::Literal;
    use crate::literal::Number;
    use crate::literal::number;
    use crate::shape::ArrayShape;
    use crate::shape::PrimitiveType;

    /// Evaluates a program as it is and expanded; both results.
    fn both_ways(text: &str, inputs: &[Literal]) -> (Literal, Literal) {
        let mut module = crate::front::hlo_text::parse(text).expect("the text is a module");
        verify::check(&module).expect("the module is valid");
        let mut before = eval::evaluate(&module, inputs).expect("the program runs");
        drop_layouts(&mut before);
        assert!(expand_all(&mut module).expect("the forms are covered"));
        verify::check(&module).expect("the expanded module is valid");
        let mut after = eval::evaluate(&module, inputs).expect("the expanded program runs");
        drop_layouts(&mut after);
        (before, after)
    }

    fn drop_layouts(value: &mut Literal) {
        match value {
            Literal::Array(array) => {
                let shape = ArrayShape {
                    layout: None,
                    ..array.shape().clone()
                };
                *array = array.reshaped(shape);
            }
            Literal::Tuple(parts) => parts.iter_mut().for_each(drop_layouts),
            Literal::Token => {}
        }
    }

    /// The largest difference of the arrays in two values, as f64.
    fn distance(a: &Literal, b: &Literal) -> f64 {
        match (a, b) {
            (Literal::Tuple(a), Literal::Tuple(b)) => {
                assert_eq!(a.len(), b.len());
                a.iter()
                    .zip(b)
                    .map(|(a, b)| distance(a, b))
                    .fold(0.0, f64::max)
            }
            (Literal::Array(a), Literal::Array(b)) => {
                assert_eq!(a.shape().dims, b.shape().dims);
                let value = |a: &ArrayLiteral, i| match number::decode(a.ty(), a.element(i)) {
                    Number::Int(x) => x as f64,
                    Number::Float(x) | Number::Complex(x, _) => x,
                };
                (0..a.len())
                    .map(|i| (value(a, i) - value(b, i)).abs())
                    .fold(0.0, f64::max)
            }
            _ => f64::INFINITY,
        }
    }

    /// An array whose element `i` is `value(i)`.
    fn array(ty: PrimitiveType, dims: &[usize], value: impl Fn(usize) -> Number) -> Literal {
        let shape = ArrayShape::new(ty, dims.iter().copied());
        let width = ty.byte_width();
        let mut bytes = vec![0; shape.element_count() * width];
        for (i, out) in bytes.chunks_exact_mut(width).enumerate() {
            number::encode(ty, value(i), out);
        }
        Literal::Array(ArrayLiteral::new(shape, bytes))
    }

    fn floats(dims: &[usize]) -> Literal {
        array(PrimitiveType::F32, dims, |i| {
            Number::Float(((i * 37 + 11) % 101) as f64 / 16.0 - 3.0)
        })
    }

    #[test]
    fn random_bits_are_exact() {
        let states: [(&str, usize); 3] =
            [("rng_three_fry", 2), ("rng_philox", 2), ("rng_philox", 3)];
        let shapes = [
            "u32[5]", "u32[]", "u64[]", "u64[3,3]", "u8[7]", "u16[2,3]", "s32[3,4]", "u32[3,5]",
            "u64[4]", "s8[0]", "f32[6]", "bf16[3]", "u32[1,1]",
        ];
        for (algorithm, words) in states {
            for shape in shapes {
                let text = format!(
                    "HloModule m\nENTRY e {{\n  s = u64[{words}] parameter(0)\n  ROOT r = (u64[{words}], {shape}) rng-bit-generator(s), algorithm={algorithm}\n}}\n"
                );
                // The counter is about to overflow its low word.
                let state = array(PrimitiveType::U64, &[words], |i| {
                    Number::Int([0x1234_5678_9abc_def0, u64::MAX as i128 - 1, 7][i])
                });
                let (before, after) = both_ways(&text, &[state]);
                assert_eq!(before, after, "{algorithm} {words} {shape}");
            }
        }
    }

    #[test]
    fn batch_norms_agree() {
        for (op, operands, result) in [
            (
                "batch-norm-training",
                "x, a, b",
                "(f32[2,3,4], f32[3], f32[3])",
            ),
            ("batch-norm-inference", "x, a, b, m, v", "f32[2,3,4]"),
            (
                "batch-norm-grad",
                "x, a, m, v, g",
                "(f32[2,3,4], f32[3], f32[3])",
            ),
        ] {
            let text = format!(
                "HloModule m\nENTRY e {{\n  x = f32[2,3,4] parameter(0)\n  a = f32[3] parameter(1)\n  b = f32[3] parameter(2)\n  m = f32[3] parameter(3)\n  v = f32[3] parameter(4)\n  g = f32[2,3,4] parameter(5)\n  ROOT r = {result} {op}({operands}), epsilon=0.001, feature_index=1\n}}\n"
            );
            let row = |k: usize| {
                array(PrimitiveType::F32, &[3], move |i| {
                    Number::Float((i + k) as f64 / 2.0)
                })
            };
            let inputs = [
                floats(&[2, 3, 4]),
                row(1),
                row(2),
                row(0),
                row(3),
                floats(&[2, 3, 4]),
            ];
            let (before, after) = both_ways(&text, &inputs);
            assert!(
                distance(&before, &after) < 1e-4,
                "{op}: {}",
                distance(&before, &after)
            );
        }
    }

    #[test]
    fn scans_agree() {
        for (reverse, dim) in [("", 0), (", is_reverse=true", 0), ("", 1)] {
            let (slice, other) = if dim == 0 {
                ("f32[3]", 3)
            } else {
                ("f32[4]", 4)
            };
            let text = format!(
                "HloModule m\nstep {{\n  x = {slice} parameter(0)\n  c = {slice} parameter(1)\n  y = {slice} add(x, c)\n  n = {slice} negate(y)\n  ROOT t = ({slice}, {slice}) tuple(n, y)\n}}\nENTRY e {{\n  x = f32[4,3] parameter(0)\n  i = {slice} parameter(1)\n  ROOT r = (f32[4,3], {slice}) scan(x, i), dimensions={{{dim}}}, num_carries=1{reverse}, to_apply=step\n}}\n"
            );
            let (before, after) = both_ways(&text, &[floats(&[4, 3]), floats(&[other])]);
            assert_eq!(before, after, "{reverse} {dim}");
        }
    }

    #[test]
    fn ragged_and_scaled_dots_agree() {
        let ragged = "HloModule m\nENTRY e {\n  a = f32[6,4] parameter(0)\n  w = f32[3,4,5] parameter(1)\n  s = s32[3] parameter(2)\n  ROOT r = f32[6,5] ragged-dot(a, w, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}\n}\n";
        let sizes = array(PrimitiveType::S32, &[3], |i| Number::Int([2, 0, 3][i]));
        let inputs = [floats(&[6, 4]), floats(&[3, 4, 5]), sizes.clone()];
        let (before, after) = both_ways(ragged, &inputs);
        assert!(distance(&before, &after) < 1e-4);
        let contracting = "HloModule m\nENTRY e {\n  a = f32[2,6,4] parameter(0)\n  w = f32[2,6,5] parameter(1)\n  s = s32[3] parameter(2)\n  ROOT r = f32[3,2,4,5] ragged-dot(a, w, s), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={1}\n}\n";
        let inputs = [floats(&[2, 6, 4]), floats(&[2, 6, 5]), sizes];
        let (before, after) = both_ways(contracting, &inputs);
        assert!(distance(&before, &after) < 1e-4);
        let scaled = "HloModule m\nENTRY e {\n  a = f8e4m3fn[4,8] parameter(0)\n  b = f8e4m3fn[5,8] parameter(1)\n  sa = f8e8m0fnu[4,2] parameter(2)\n  sb = f8e8m0fnu[5,2] parameter(3)\n  ROOT r = f32[4,5] scaled-dot(a, b, sa, sb), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n";
        let small = |dims: &[usize]| {
            array(PrimitiveType::F8E4M3FN, dims, |i| {
                Number::Float(i as f64 / 4.0 - 2.0)
            })
        };
        let scale = |dims: &[usize]| {
            array(PrimitiveType::F8E8M0FNU, dims, |i| {
                Number::Float(2f64.powi(i as i32 % 5))
            })
        };
        let inputs = [
            small(&[4, 8]),
            small(&[5, 8]),
            scale(&[4, 2]),
            scale(&[5, 2]),
        ];
        let (before, after) = both_ways(scaled, &inputs);
        assert!(distance(&before, &after) < 1e-3);
    }

    #[test]
    fn topk_and_stochastic_convert_are_exact() {
        for largest in [true, false] {
            let text = format!(
                "HloModule m\nENTRY e {{\n  x = f32[3,7] parameter(0)\n  ROOT r = (f32[3,2], s32[3,2]) topk(x), k=2, largest={largest}\n}}\n"
            );
            let (before, after) = both_ways(&text, &[floats(&[3, 7])]);
            assert_eq!(before, after);
        }
        let text = "HloModule m\nENTRY e {\n  x = f32[40] parameter(0)\n  r = u32[40] parameter(1)\n  ROOT c = s8[40] stochastic-convert(x, r)\n}\n";
        let random = array(PrimitiveType::U32, &[40], |i| {
            Number::Int(i as i128 * 107_374_182)
        });
        let (before, after) = both_ways(text, &[floats(&[40]), random]);
        assert_eq!(before, after);
    }

    #[test]
    fn free_numbers_have_their_distribution() {
        for (kind, ty, mean, deviation) in [
            ("rng_uniform", "f32", 4.0, 2.0 / 12f64.sqrt()),
            ("rng_normal", "f32", 3.0, 5.0),
            ("rng_normal", "f64", 3.0, 5.0),
            ("rng_uniform", "bf16", 4.0, 2.0 / 12f64.sqrt()),
            ("rng_uniform", "s32", 3.5, 0.5),
        ] {
            let text = format!(
                "HloModule m\nENTRY e {{\n  a = {ty}[] constant(3)\n  b = {ty}[] constant(5)\n  ROOT r = {ty}[2000] rng(a, b), distribution={kind}\n}}\n"
            );
            let (_, after) = both_ways(&text, &[]);
            let after = after.as_array().expect("the result is an array");
            let values: Vec<f64> = (0..after.len())
                .map(|i| match number::decode(after.ty(), after.element(i)) {
                    Number::Int(x) => x as f64,
                    Number::Float(x) | Number::Complex(x, _) => x,
                })
                .collect();
            let n = values.len() as f64;
            let found = values.iter().sum::<f64>() / n;
            let spread = (values.iter().map(|v| (v - found).powi(2)).sum::<f64>() / n).sqrt();
            assert!(
                (found - mean).abs() < 0.1 * deviation,
                "{kind} {ty}: mean {found}"
            );
            assert!(
                (spread / deviation - 1.0).abs() < 0.1,
                "{kind} {ty}: {spread}"
            );
            if kind == "rng_uniform" {
                assert!(
                    values.iter().all(|&v| (3.0..5.0).contains(&v)),
                    "{kind} {ty}"
                );
            }
        }
    }
}
