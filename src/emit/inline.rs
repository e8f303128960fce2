//! Small computations (reducers, comparators, combiners) inlined on values.

use std::collections::BTreeMap;

use smallvec::smallvec;

use crate::emit::bits;
use crate::emit::convert;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::Values;
use crate::emit::elemental::apply;
use crate::emit::elemental::array;
use crate::emit::value;
use crate::emit::value::Value;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::kernel::KernelBuilder;
use crate::shape::PrimitiveType;

/// The op of a computation that combines its two parameters by one binary op.
pub fn monoid(module: &Module, comp: CompId) -> Option<BinaryOp> {
    let computation = module.comp(comp);
    let root = module.root(comp);
    let Op::Binary(op) = root.op else { return None };
    let mut operands = root.operands.clone();
    operands.sort();
    let mut params = computation.params.clone();
    params.sort();
    (computation.params.len() == 2
        && operands.as_slice() == params.as_slice()
        && matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Multiply
                | BinaryOp::Maximum
                | BinaryOp::Minimum
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
        ))
    .then_some(op)
}

impl Elemental<'_> {
    /// The results of a computation of scalars for these parameters. With `wide`, narrow floats
    /// are f32 throughout, parameters and results included.
    pub fn call(&self, b: &mut KernelBuilder, comp: CompId, args: &[Value], wide: bool) -> Values {
        let mut known = BTreeMap::new();
        let root = self.module.comp(comp).root;
        self.inline(b, root, args, wide, &mut known)
    }

    fn inline(
        &self,
        b: &mut KernelBuilder,
        id: InstrId,
        args: &[Value],
        wide: bool,
        known: &mut BTreeMap<InstrId, Values>,
    ) -> Values {
        if let Some(values) = known.get(&id) {
            return values.clone();
        }
        let instr = self.module.instr(id);
        let operands: Vec<Values> = instr
            .operands
            .iter()
            .map(|&operand| self.inline(b, operand, args, wide, known))
            .collect();
        let first: Vec<Value> = operands.iter().filter_map(|v| v.first().copied()).collect();
        let ty = |id: InstrId| {
            let ty = array(&self.module.instr(id).shape).ty;
            if wide { convert::compute_type(ty) } else { ty }
        };
        let values: Option<Values> = match &instr.op {
            Op::Parameter { number, .. } => args.get(*number).map(|&arg| smallvec![arg]),
            Op::Constant(literal) => literal.as_array().filter(|a| !a.is_empty()).map(|a| {
                let constant = value::constant(b, a.ty(), a.element(0));
                smallvec![convert::convert(b, a.ty(), ty(id), constant)]
            }),
            Op::Iota { .. } => Some(smallvec![value::zero(b, ty(id))]),
            Op::Tuple => Some(first.iter().copied().collect()),
            Op::GetTupleElement { index } => operands[0].get(*index).map(|&v| smallvec![v]),
            Op::Reshape { .. } | Op::Broadcast { .. } | Op::Transpose { .. } => {
                Some(smallvec![first[0]])
            }
            Op::Bitcast => {
                bits::reinterpret(b, ty(instr.operands[0]), ty(id), first[0]).map(|v| smallvec![v])
            }
            Op::Call { body, .. } | Op::Fusion { body, .. } | Op::Map { body, .. } => {
                Some(self.call(b, *body, &first, wide))
            }
            _ => apply(b, self.module, instr, &first, wide).map(|v| smallvec![v]),
        };
        let values = values.unwrap_or_else(|| {
            self.unsupported(instr);
            smallvec![value::zero(b, ty(id))]
        });
        known.insert(id, values.clone());
        values
    }
}

/// Whether a reduction of that type by that computation is kept in f32 between steps.
pub fn accumulates_wide(module: &Module, comp: CompId, ty: PrimitiveType) -> bool {
    convert::is_narrow_float(ty) && monoid(module, comp).is_some()
}
