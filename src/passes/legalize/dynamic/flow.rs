//! Which dimensions of which values are dynamic.

use crate::analysis::trip_count::scalar_integer;
use crate::base::IdMap;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::dynamic::Sizes;
use crate::hlo::dynamic::result_sizes;
use crate::passes::legalize::dynamic::door;
use crate::passes::legalize::dynamic::is_about_sizes;
use crate::passes::legalize::dynamic::is_dynamic;
use crate::passes::legalize::dynamic::static_shape;
use crate::passes::pass::unsupported;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::target::Target;

/// The shapes of all values.
pub(super) struct Flow {
    shapes: IdMap<InstrId, Option<Shape>>,
    /// Of each computation's parameters.
    params: IdMap<CompId, Vec<Shape>>,
    /// Of what each computation gives.
    results: IdMap<CompId, Option<Shape>>,
    /// Whether a shape of a computation has changed in this round.
    changed: bool,
}

impl Flow {
    /// Follows values through the computations, which are listed callees before callers.
    ///
    /// # Errors
    /// `COMPILE_UNSUPPORTED` for an op that has no meaning for an operand's dynamic dimensions.
    pub(super) fn of(module: &Module, comps: &[CompId], target: &Target) -> Result<Self> {
        let mut flow = Self {
            shapes: IdMap::new(),
            params: IdMap::new(),
            results: IdMap::new(),
            changed: true,
        };
        for &comp in comps {
            let params = module.comps[comp].params.iter();
            let params = params.map(|&p| static_shape(module.shape(p)));
            flow.params.set(comp, params.collect());
            let root = static_shape(&module.root(comp).shape);
            flow.results.set(comp, Some(root));
        }
        let door = door::shapes(module).0;
        for (param, shape) in flow.params[module.entry].iter_mut().zip(&door) {
            merge(param, shape);
        }
        // Shapes only ever become more dynamic, so this ends.
        while flow.changed {
            flow.changed = false;
            for &comp in comps.iter().rev() {
                for &id in &module.comps[comp].instrs {
                    let shape = flow.shape_of(module, id, target)?;
                    flow.shapes.set(id, Some(shape));
                }
                let root = flow.shape(module.comps[comp].root).clone();
                flow.gives(comp, &root);
            }
        }
        Ok(flow)
    }
    /// The shape of a value.
    pub(super) fn shape(&self, id: InstrId) -> &Shape {
        self.shapes[id].as_ref().unwrap_or(&Shape::Token)
    }
    /// The shapes of a computation's parameters.
    pub(super) fn params(&self, comp: CompId) -> &[Shape] {
        &self.params[comp]
    }
    /// The shape of what a computation gives.
    pub(super) fn result(&self, comp: CompId) -> &Shape {
        self.results[comp].as_ref().unwrap_or(&Shape::Token)
    }
    fn takes(&mut self, comp: CompId, number: usize, shape: &Shape) {
        if let Some(param) = self.params[comp].get_mut(number) {
            self.changed |= merge(param, shape);
        }
    }
    fn gives(&mut self, comp: CompId, shape: &Shape) {
        if let Some(result) = &mut self.results[comp] {
            self.changed |= merge(result, shape);
        }
    }
    fn part(&self, id: InstrId, index: usize) -> Shape {
        let parts = self.shape(id).as_tuple();
        parts
            .and_then(|p| p.get(index))
            .cloned()
            .unwrap_or(Shape::Token)
    }

    fn shape_of(&mut self, module: &Module, id: InstrId, target: &Target) -> Result<Shape> {
        let instr = module.instr(id);
        let operands = &instr.operands;
        Ok(match &instr.op {
            Op::Parameter { number, .. } => {
                let params = &self.params[instr.parent];
                params.get(*number).cloned().unwrap_or(Shape::Token)
            }
            Op::Tuple => Shape::Tuple(operands.iter().map(|&o| self.shape(o).clone()).collect()),
            Op::GetTupleElement { index } => self.part(operands[0], *index),
            Op::OptimizationBarrier | Op::AddDependency | Op::Domain(_) | Op::AsyncUpdate => {
                self.shape(operands[0]).clone()
            }
            Op::CopyStart { .. } => {
                let copy = self.shape(operands[0]).clone();
                let context = Shape::scalar(PrimitiveType::U32);
                Shape::Tuple(vec![copy.clone(), copy, context])
            }
            Op::CopyDone => self.part(operands[0], 0),
            Op::AsyncDone => self.part(operands[0], 1),
            Op::Call { body, .. } | Op::Fusion { body, .. } => self.called(*body, operands),
            Op::AsyncStart { body, .. } => {
                let result = self.called(*body, operands);
                let given = Shape::Tuple(self.params(*body).to_vec());
                let declared = instr.shape.as_tuple().unwrap_or_default();
                let contexts = declared.iter().skip(2).cloned();
                Shape::Tuple([given, result].into_iter().chain(contexts).collect())
            }
            Op::While { condition, body } => self.looped(*condition, *body, operands[0]),
            Op::Conditional { branches } => self.branched(branches, operands),
            _ => {
                let mut shape = static_shape(&instr.shape);
                if let Some(sizes) = self.formulas(module, id, target)? {
                    give(&mut shape, &sizes);
                }
                shape
            }
        })
    }

    fn called(&mut self, body: CompId, operands: &[InstrId]) -> Shape {
        for (number, &operand) in operands.iter().enumerate() {
            let shape = self.shape(operand).clone();
            self.takes(body, number, &shape);
        }
        self.result(body).clone()
    }

    /// What goes around is as dynamic as what enters and what the body gives.
    fn looped(&mut self, condition: CompId, body: CompId, operand: InstrId) -> Shape {
        let mut state = self.shape(operand).clone();
        merge(&mut state, self.result(body));
        for comp in [condition, body] {
            if let Some(param) = self.params[comp].first() {
                merge(&mut state, param);
            }
        }
        self.takes(condition, 0, &state);
        self.takes(body, 0, &state);
        self.gives(body, &state);
        state
    }

    fn branched(&mut self, branches: &[CompId], operands: &[InstrId]) -> Shape {
        let mut result = self.result(branches[0]).clone();
        for (i, &branch) in branches.iter().enumerate() {
            let shape = self.shape(operands[1 + i]).clone();
            self.takes(branch, 0, &shape);
            merge(&mut result, self.result(branch));
        }
        for &branch in branches {
            self.gives(branch, &result);
        }
        result
    }

    /// The sizes of an op's results, when an operand is dynamic or the op is about sizes.
    fn formulas(
        &self,
        module: &Module,
        id: InstrId,
        target: &Target,
    ) -> Result<Option<Vec<Sizes>>> {
        let instr = module.instr(id);
        let dynamic = instr.operands.iter().any(|&o| is_dynamic(self.shape(o)));
        if !dynamic && !is_about_sizes(&instr.op) {
            return Ok(None);
        }
        let refused = |why: &str| unsupported(module, id, target, why);
        let arrays = instr.operands.iter().map(|&o| self.shape(o).as_array());
        let arrays: Option<Vec<&ArrayShape>> = arrays.collect();
        let Some(arrays) = arrays else {
            return Err(refused("a dynamic array goes along with what is no array"));
        };
        let constant = |i: usize| constant_size(module, *instr.operands.get(i)?);
        let sizes = result_sizes(&instr.op, &arrays, &instr.shape, &constant);
        sizes.map(Some).map_err(|why| refused(&format!("it {why}")))
    }
}

/// The value of a constant integer scalar.
pub(super) fn constant_size(module: &Module, id: InstrId) -> Option<i64> {
    match &module.instr(id).op {
        Op::Constant(literal) => {
            let value = literal.as_array().and_then(scalar_integer)?;
            i64::try_from(value).ok()
        }
        _ => None,
    }
}

/// Makes the arrays of a shape dynamic where their sizes are not known.
pub(super) fn give(shape: &mut Shape, sizes: &[Sizes]) {
    let mut sizes = sizes.iter();
    shape.for_each_array_mut(&mut |array| {
        let Some(sizes) = sizes.next() else {
            return;
        };
        if sizes.iter().any(|size| !size.is_fixed()) {
            array.dynamic = sizes.iter().map(|size| !size.is_fixed()).collect();
        }
    });
}

/// Makes a shape dynamic wherever another is; says whether that changed it.
fn merge(shape: &mut Shape, other: &Shape) -> bool {
    match (shape, other) {
        (Shape::Array(a), Shape::Array(b)) => {
            let dynamic = (0..a.rank()).map(|d| a.is_dynamic_dim(d) || b.is_dynamic_dim(d));
            let dynamic: smallvec::SmallVec<[bool; 6]> = dynamic.collect();
            let changed = (0..a.rank()).any(|d| dynamic[d] != a.is_dynamic_dim(d));
            if changed {
                a.dynamic = dynamic;
            }
            changed
        }
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            let mut changed = false;
            for (a, b) in a.iter_mut().zip(b) {
                changed |= merge(a, b);
            }
            changed
        }
        _ => false,
    }
}
