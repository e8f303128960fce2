//! Which dimensions of which values are dynamic.

use crate::base::IdMap;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::custom_calls;
use crate::hlo::dynamic::Sizes;
use crate::hlo::dynamic::result_sizes;
use crate::hlo::visit;
use crate::literal::Literal;
use crate::literal::Number;
use crate::literal::number;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// What is asked when an op has no meaning for an operand's dynamic dimensions.
pub type Refuse<'r> = dyn Fn(InstrId, &str) -> Result<()> + 'r;

/// The shapes of all values.
pub struct Flow {
    shapes: IdMap<InstrId, Option<Shape>>,
    /// Of each computation's parameters.
    params: IdMap<CompId, Vec<Shape>>,
    /// Of what each computation gives.
    results: IdMap<CompId, Option<Shape>>,
    /// Whether a shape of a computation has changed in this round.
    changed: bool,
    /// Whether what is padded to be static counts as such.
    padded_is_static: bool,
}

impl Flow {
    fn new() -> Self {
        Self {
            shapes: IdMap::new(),
            params: IdMap::new(),
            results: IdMap::new(),
            changed: true,
            padded_is_static: false,
        }
    }
    /// Follows values through the computations, which are listed callees before callers, from entry
    /// parameters of the shapes `door`. An op that has no meaning for an operand's dynamic dimensions
    /// goes to `refuse`, with the reason; when that is no error, the op gives what it says it gives.
    ///
    /// # Errors
    /// Those of `refuse`.
    pub fn of(
        module: &Module,
        comps: &[CompId],
        door: &[Shape],
        refuse: &Refuse<'_>,
    ) -> Result<Self> {
        let mut flow = Self::new();
        flow.follow(module, comps, door, refuse)?;
        Ok(flow)
    }
    fn follow(
        &mut self,
        module: &Module,
        comps: &[CompId],
        door: &[Shape],
        refuse: &Refuse<'_>,
    ) -> Result<()> {
        for &comp in comps {
            let params = module.comps[comp].params.iter();
            let params = params.map(|&p| static_shape(module.shape(p)));
            self.params.set(comp, params.collect());
            let root = static_shape(&module.root(comp).shape);
            self.results.set(comp, Some(root));
        }
        for (param, shape) in self.params[module.entry].iter_mut().zip(door) {
            merge(param, shape);
        }
        // Shapes only ever become more dynamic, so this ends.
        while self.changed {
            self.changed = false;
            for &comp in comps.iter().rev() {
                for &id in &module.comps[comp].instrs {
                    let shape = self.shape_of(module, id, refuse)?;
                    self.shapes.set(id, Some(shape));
                }
                let root = self.shape(module.comps[comp].root).clone();
                self.gives(comp, &root);
            }
        }
        Ok(())
    }
    /// The shape of a value.
    pub fn shape(&self, id: InstrId) -> &Shape {
        self.shapes[id].as_ref().unwrap_or(&Shape::Token)
    }
    /// The shapes of a computation's parameters.
    pub fn params(&self, comp: CompId) -> &[Shape] {
        &self.params[comp]
    }
    /// The shape of what a computation gives.
    pub fn result(&self, comp: CompId) -> &Shape {
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

    fn shape_of(&mut self, module: &Module, id: InstrId, refuse: &Refuse<'_>) -> Result<Shape> {
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
                let is_padded = matches!(&instr.op, Op::CustomCall(call) if call.target == custom_calls::PAD_TO_STATIC);
                match self.formulas(module, id) {
                    Ok(Some(_)) if is_padded && self.padded_is_static => {}
                    Ok(Some(sizes)) => give(&mut shape, &sizes),
                    Ok(None) => {}
                    Err(why) => {
                        refuse(id, &why)?;
                        shape = instr.shape.without_layout();
                    }
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
    ///
    /// # Errors
    /// Why there are none.
    pub fn formulas(&self, module: &Module, id: InstrId) -> Result<Option<Vec<Sizes>>, String> {
        let instr = module.instr(id);
        let dynamic = instr.operands.iter().any(|&o| is_dynamic(self.shape(o)));
        if !dynamic && !is_about_sizes(&instr.op) {
            return Ok(None);
        }
        let arrays = instr.operands.iter().map(|&o| self.shape(o).as_array());
        let arrays: Option<Vec<&ArrayShape>> = arrays.collect();
        let Some(arrays) = arrays else {
            return Err("takes a dynamic array along with what is no array".to_owned());
        };
        let constant = |i: usize| constant_size(module, *instr.operands.get(i)?);
        result_sizes(&instr.op, &arrays, &instr.shape, &constant).map(Some)
    }
}

/// The value of a constant integer scalar.
fn constant_size(module: &Module, id: InstrId) -> Option<i64> {
    let Op::Constant(Literal::Array(array)) = &module.instr(id).op else {
        return None;
    };
    if array.len() != 1 {
        return None;
    }
    match number::decode(array.ty(), array.element(0)) {
        Number::Int(value) => i64::try_from(value).ok(),
        Number::Float(_) | Number::Complex(..) => None,
    }
}

/// Makes every shape of the module say which of its dimensions are dynamic, as follows from the ops.
/// The entry's result stays what the program says it is, and so does what is padded to be static.
///
/// # Errors
/// None: what an op has no meaning for stays as the program says it.
pub fn settle(module: &mut Module) -> Result<()> {
    let comps = visit::reachable(module);
    let concerns = comps.iter().any(|&comp| {
        let mut instrs = module.comps[comp].instrs.iter();
        instrs.any(|&id| is_about_sizes(&module.instr(id).op) || is_dynamic(module.shape(id)))
    });
    if !concerns {
        return Ok(());
    }
    let params = module.comps[module.entry].params.iter();
    let door: Vec<Shape> = params.map(|&p| module.shape(p).clone()).collect();
    let mut flow = Flow {
        padded_is_static: true,
        ..Flow::new()
    };
    flow.follow(module, &comps, &door, &|_, _| Ok(()))?;
    let root = module.comps[module.entry].root;
    for &comp in &comps {
        for i in 0..module.comps[comp].instrs.len() {
            let id = module.comps[comp].instrs[i];
            if id != root {
                dynamic_as(&mut module.instrs[id].shape, flow.shape(id));
            }
        }
    }
    Ok(())
}

/// Gives a shape the dynamic dimensions of another.
fn dynamic_as(shape: &mut Shape, other: &Shape) {
    match (shape, other) {
        (Shape::Array(a), Shape::Array(b)) => a.dynamic.clone_from(&b.dynamic),
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            a.iter_mut().zip(b).for_each(|(a, b)| dynamic_as(a, b));
        }
        _ => {}
    }
}

/// Whether the op itself is about sizes.
pub fn is_about_sizes(op: &Op) -> bool {
    match op {
        Op::GetDimensionSize { .. } | Op::SetDimensionSize { .. } | Op::DynamicReshape => true,
        Op::CustomCall(call) => [custom_calls::PAD_TO_STATIC, custom_calls::SLICE_TO_DYNAMIC]
            .contains(&call.target.as_str()),
        _ => false,
    }
}

/// Whether any array in the shape is dynamic.
pub fn is_dynamic(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => array.is_dynamic(),
        Shape::Tuple(parts) => parts.iter().any(is_dynamic),
        Shape::Token | Shape::Opaque => false,
    }
}

/// The shape with every array at its bounds.
pub fn static_shape(shape: &Shape) -> Shape {
    let mut plain = shape.clone();
    plain.for_each_array_mut(&mut |array| array.dynamic.clear());
    plain
}

/// Makes the arrays of a shape dynamic where their sizes are not known.
pub fn give(shape: &mut Shape, sizes: &[Sizes]) {
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
