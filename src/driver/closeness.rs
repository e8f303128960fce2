//! How close results must be when nobody says: by their types, and by how they are made.
//!
//! What only moves values is equal. Rounded results may differ by some units in the last place of the
//! coarsest type that is rounded to on the way, relative to themselves and to 1, or to the largest of
//! them when that is less: an engine may approximate a function otherwise. Sums may differ relative to
//! the largest result beside them: their terms may come in another order and cancel, so that what is
//! lost is in proportion to the terms and not to the sum.
//!
//! The models of the conformance corpus differ from the evaluator by 3 such units at most, a
//! transformer with large scores by 26.

#[cfg(feature = "reference")]
use crate::base::IdSet;
#[cfg(feature = "reference")]
use crate::hlo::BinaryOp;
#[cfg(feature = "reference")]
use crate::hlo::CompId;
#[cfg(feature = "reference")]
use crate::hlo::InstrId;
#[cfg(feature = "reference")]
use crate::hlo::Module;
#[cfg(feature = "reference")]
use crate::hlo::Op;
#[cfg(feature = "reference")]
use crate::hlo::UnaryOp;
#[cfg(feature = "reference")]
use crate::hlo::visit::each_called;
use crate::literal::ArrayLiteral;
use crate::literal::compare;
use crate::literal::compare::Tolerance;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
#[cfg(feature = "reference")]
use crate::shape::Shape;

/// How close results must be; what is not said is judged by how they are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Closeness {
    /// Relative to the wanted value.
    pub rtol: Option<f64>,
    /// Absolute.
    pub atol: Option<f64>,
    /// Representable values apart.
    pub ulp: u64,
}

/// How the elements of a result are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Making {
    /// How far they may be off, relative to what they are compared with.
    relative: f64,
    /// Whether there are sums among what makes them.
    is_summed: bool,
}

/// Units in the last place that results may differ by. Types of 16 bits and less are computed in wider
/// ones and then rounded, so that neighbors are met, and more only where one result makes the next.
fn units(ty: PrimitiveType) -> f64 {
    match compare::precision(ty) {
        20.. => 64.0,
        5.. => 4.0,
        _ => 1.0,
    }
}

fn is_float(ty: PrimitiveType) -> bool {
    matches!(ty.kind(), ElementKind::Float | ElementKind::Complex)
}

/// The unit in the last place of 1; of a type of powers of 2, what is below it.
fn unit(ty: PrimitiveType) -> f64 {
    (-f64::from(compare::precision(ty).max(1))).exp2()
}

impl Making {
    /// Of sums, in the type of the result: what is assumed of a result that nothing else is known of.
    pub fn of_type(ty: PrimitiveType) -> Self {
        Self::new([ty], true)
    }

    fn new(rounded_to: impl IntoIterator<Item = PrimitiveType>, is_summed: bool) -> Self {
        let floats = rounded_to.into_iter().filter(|&ty| is_float(ty));
        let parts = floats.map(|ty| units(ty) * unit(ty));
        Self {
            relative: parts.fold(0.0, f64::max),
            is_summed,
        }
    }
}

impl Closeness {
    /// How far a result may be from what is wanted of it.
    pub fn tolerance(&self, wanted: &ArrayLiteral, making: Making) -> Tolerance {
        let ty = wanted.ty();
        let is_rounded = is_float(ty) && making.relative > 0.0;
        let (mut rtol, mut atol) = (0.0, 0.0);
        if is_rounded {
            let largest = compare::largest(wanted);
            rtol = making.relative;
            atol = match making.is_summed {
                true => rtol * largest,
                false => rtol * largest.min(1.0),
            };
            // Some engines flush what is less to zero.
            atol += match ty.real_part() {
                PrimitiveType::F64 => f64::MIN_POSITIVE,
                PrimitiveType::F32 | PrimitiveType::BF16 => f64::from(f32::MIN_POSITIVE),
                _ => 0.0,
            };
        }
        Tolerance {
            rtol: self.rtol.unwrap_or(rtol),
            atol: self.atol.unwrap_or(atol),
            ulp: self.ulp,
            ..Tolerance::EXACT
        }
    }
}

/// How each array leaf of a module's result is made.
#[cfg(feature = "reference")]
pub fn makings(module: &Module) -> Vec<Making> {
    let root = module.entry_comp().root;
    let leaves = |shape: &Shape| {
        let leaves = shape.leaves().into_iter();
        leaves.filter(|(_, leaf)| leaf.as_array().is_some()).count()
    };
    let sources = match &module.instrs[root].op {
        Op::Tuple => module.instrs[root].operands.to_vec(),
        _ => vec![root],
    };
    let makings = sources.into_iter().flat_map(|source| {
        let making = making(module, source);
        std::iter::repeat_n(making, leaves(&module.instrs[source].shape))
    });
    makings.collect()
}

/// How the value of an instruction is made, from all that it depends on.
#[cfg(feature = "reference")]
fn making(module: &Module, source: InstrId) -> Making {
    let mut seen = IdSet::new();
    let mut pending = vec![source];
    let (mut rounded_to, mut is_summed, mut is_repeated) = (Vec::new(), false, false);
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let instr = &module.instrs[id];
        pending.extend(&instr.operands);
        each_called(&instr.op, |comp| pending.extend(&module.comps[comp].instrs));
        if rounds(module, id) {
            let types = instr.shape.leaves().into_iter();
            let types = types.filter_map(|(_, leaf)| leaf.as_array().map(|array| array.ty));
            rounded_to.extend(types);
        }
        is_summed |= sums(module, id);
        is_repeated |= matches!(instr.op, Op::While { .. });
    }
    rounded_to.sort_unstable();
    rounded_to.dedup();
    let is_summed = is_summed || is_repeated && rounded_to.iter().any(|&ty| is_float(ty));
    Making::new(rounded_to, is_summed)
}

/// Whether an instruction itself rounds: not what it calls, and nothing that is exact.
#[cfg(feature = "reference")]
fn rounds(module: &Module, id: InstrId) -> bool {
    let instr = &module.instrs[id];
    let ty_of = |id: InstrId| module.instrs[id].shape.as_array().map(|array| array.ty);
    match &instr.op {
        // The size and the sign of a complex number are computed.
        Op::Unary(UnaryOp::Abs | UnaryOp::Sign) => {
            let operand = instr.operands.first().and_then(|&operand| ty_of(operand));
            operand.is_some_and(|ty| ty.kind() == ElementKind::Complex)
        }
        Op::Unary(
            UnaryOp::Ceil
            | UnaryOp::CountLeadingZeros
            | UnaryOp::Floor
            | UnaryOp::Imag
            | UnaryOp::IsFinite
            | UnaryOp::Negate
            | UnaryOp::Not
            | UnaryOp::PopulationCount
            | UnaryOp::Real
            | UnaryOp::RoundNearestAfz
            | UnaryOp::RoundNearestEven,
        ) => false,
        Op::Binary(
            BinaryOp::And
            | BinaryOp::Complex
            | BinaryOp::Maximum
            | BinaryOp::Minimum
            | BinaryOp::Or
            | BinaryOp::Xor,
        ) => false,
        Op::Convert => {
            let operand = instr.operands.first().and_then(|&operand| ty_of(operand));
            match (operand, ty_of(id)) {
                (Some(from), Some(to)) if is_float(from) && is_float(to) => {
                    compare::precision(from) > compare::precision(to)
                }
                _ => true,
            }
        }
        Op::Unary(_)
        | Op::Binary(_)
        | Op::ReducePrecision { .. }
        | Op::StochasticConvert
        | Op::Rng { .. } => true,
        _ => sums(module, id),
    }
}

/// Whether an instruction adds, or multiplies, terms in an order that is not told.
#[cfg(feature = "reference")]
fn sums(module: &Module, id: InstrId) -> bool {
    let by = |body: CompId| {
        let instrs = module.comps[body].instrs.iter();
        instrs.copied().any(|id| rounds(module, id))
    };
    match &module.instrs[id].op {
        Op::Dot { .. }
        | Op::RaggedDot { .. }
        | Op::ScaledDot { .. }
        | Op::Convolution { .. }
        | Op::BatchNormTraining { .. }
        | Op::BatchNormInference { .. }
        | Op::BatchNormGrad { .. }
        | Op::Fft { .. }
        | Op::Cholesky { .. }
        | Op::TriangularSolve { .. }
        | Op::CustomCall(_) => true,
        Op::Reduce { .. }
        | Op::ReduceWindow { .. }
        | Op::SelectAndScatter { .. }
        | Op::Scatter { .. }
        | Op::Scan { .. }
        | Op::Collective { .. } => {
            let mut found = false;
            each_called(&module.instrs[id].op, |body| found |= by(body));
            found
        }
        _ => false,
    }
}

#[cfg(all(test, feature = "reference"))]
mod tests {
    use super::*;
    use crate::front;
    use crate::shape::ArrayShape;

    const PROGRAM: &str = "HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}

ENTRY e {
  x = f32[4] parameter(0)
  half = bf16[4] parameter(1)
  zero = f32[] constant(0)
  moved = f32[4] reverse(x), dimensions={0}
  wide = f32[4] convert(half)
  largest = f32[] reduce(x, zero), dimensions={0}, to_apply=larger
  rounded = f32[4] tanh(moved)
  total = f32[] reduce(rounded, zero), dimensions={0}, to_apply=add
  narrow = bf16[4] convert(x)
  back = f32[4] convert(narrow)
  both = (f32[4], s32[4]) custom-call(x), custom_call_target=\"f\"
  ROOT all = (f32[4], f32[4], f32[], f32[4], f32[], f32[4], (f32[4], s32[4])) tuple(moved, wide, largest, rounded, total, back, both)
}
";

    /// 64 units of `f32`, 4 of `bf16`.
    const F32: f64 = 64.0 / 8_388_608.0;
    const BF16: f64 = 4.0 / 128.0;

    #[test]
    fn what_makes_a_result_decides() {
        let module = front::read(PROGRAM.as_bytes(), None).unwrap();
        let found: Vec<(f64, bool)> = makings(&module)
            .into_iter()
            .map(|making| (making.relative, making.is_summed))
            .collect();
        let wanted = [
            (0.0, false),
            (0.0, false),
            (0.0, false),
            (F32, false),
            (F32, true),
            (BF16, false),
            (F32, true),
            (F32, true),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_absolute_part_is_of_what_stands_beside() {
        let array = |values: [f32; 2]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            ArrayLiteral::new(ArrayShape::new(PrimitiveType::F32, [2]), bytes)
        };
        let wanted = array([0.5, -1000.0]);
        let making = |is_summed| Making::new([PrimitiveType::F32], is_summed);
        let judged = |making| Closeness::default().tolerance(&wanted, making);
        let least = f64::from(f32::MIN_POSITIVE);
        let summed = judged(making(true));
        assert_eq!((summed.rtol, summed.atol), (F32, F32 * 1000.0 + least));
        let rounded = judged(making(false));
        assert_eq!((rounded.rtol, rounded.atol), (F32, F32 + least));
        assert_eq!(judged(Making::default()), Tolerance::EXACT);
        let said = Closeness {
            atol: Some(0.25),
            ..Closeness::default()
        };
        assert_eq!(said.tolerance(&wanted, Making::default()).atol, 0.25);
        let integers = ArrayLiteral::zeros(ArrayShape::new(PrimitiveType::S32, [2]));
        let judged = Closeness::default().tolerance(&integers, making(true));
        assert_eq!(judged, Tolerance::EXACT);
        // A number that is not finite is no measure of others.
        assert_eq!(compare::largest(&array([f32::INFINITY, 2.0])), 2.0);
    }
}
