//! Programs with their inputs built in, so that what is done to constants is judged too.

use xla_aot::hlo::CompId;
use xla_aot::hlo::Instr;
use xla_aot::hlo::InstrId;
use xla_aot::hlo::Module;
use xla_aot::hlo::Op;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::Literal;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;
use xla_aot::shape::Shape;

/// The program on exactly these inputs: every parameter of the entry is a constant of its value.
pub fn built_in(mut module: Module, inputs: Vec<Literal>) -> Module {
    let entry = module.entry;
    let params = std::mem::take(&mut module.comps[entry].params);
    let mut made = Vec::new();
    for (&param, value) in params.iter().zip(inputs) {
        let shape = module.instrs[param].shape.clone();
        let (op, parts) = value_op(&mut module, entry, &shape, value, &mut made);
        let instr = &mut module.instrs[param];
        instr.op = op;
        instr.operands = parts.into();
        made.push(param);
    }
    let rest = std::mem::take(&mut module.comps[entry].instrs);
    let rest = rest.into_iter().filter(|id| !params.contains(id));
    module.comps[entry].instrs = made.iter().copied().chain(rest).collect();
    module.input_output_alias.clear();
    module.buffer_donors.clear();
    let config = &mut module.config;
    config.propagate_sharding_to_parameters.clear();
    config.spmd_parameters_shardings.clear();
    if let Some(layout) = &mut config.entry_layout {
        layout.parameters.clear();
        layout.parameter_names.clear();
    }
    module
}

/// What gives a value of that shape: a constant, or a tuple of such, whose parts are made.
fn value_op(
    module: &mut Module,
    comp: CompId,
    shape: &Shape,
    value: Literal,
    made: &mut Vec<InstrId>,
) -> (Op, Vec<InstrId>) {
    match (shape, value) {
        (Shape::Tuple(shapes), Literal::Tuple(values)) => {
            let mut parts = Vec::new();
            for (shape, value) in shapes.iter().zip(values) {
                let (op, operands) = value_op(module, comp, shape, value, made);
                let id = module.instrs.push(Instr {
                    name: format!("built-in.{}", module.instrs.len()),
                    op,
                    shape: shape.clone(),
                    operands: operands.into(),
                    control_predecessors: Default::default(),
                    parent: comp,
                    extra: None,
                });
                made.push(id);
                parts.push(id);
            }
            (Op::Tuple, parts)
        }
        (Shape::Array(array), Literal::Array(value)) if array.is_dynamic() => {
            dynamic_value(module, comp, array, &value, made)
        }
        (Shape::Array(array), Literal::Array(value)) => {
            let value = ArrayLiteral::new(array.clone(), value.bytes().to_vec());
            (Op::Constant(Literal::Array(value)), Vec::new())
        }
        _ => (Op::AfterAll, Vec::new()),
    }
}

/// A constant of the bounds, whose dimensions are set to the value's sizes one after the other. The
/// sizes stand behind barriers: a constant one that is the bound would make the dimension static.
fn dynamic_value(
    module: &mut Module,
    comp: CompId,
    shape: &ArrayShape,
    value: &ArrayLiteral,
    made: &mut Vec<InstrId>,
) -> (Op, Vec<InstrId>) {
    let whole = Literal::Array(value.within(shape, None).whole());
    let mut reached = shape.clone();
    reached.dynamic.clear();
    let mut last = (Op::Constant(whole), Vec::new());
    for d in (0..shape.rank()).filter(|&d| shape.is_dynamic_dim(d)) {
        let size = i32::try_from(value.shape().dims[d]).expect("a small size");
        let scalar = ArrayShape::scalar(PrimitiveType::S32);
        let size = ArrayLiteral::new(scalar.clone(), size.to_le_bytes().to_vec());
        let mut push = |op, operands: Vec<InstrId>, shape| {
            let id = module.instrs.push(Instr {
                name: format!("built-in.{}", module.instrs.len()),
                op,
                shape,
                operands: operands.into(),
                control_predecessors: Default::default(),
                parent: comp,
                extra: None,
            });
            made.push(id);
            id
        };
        let scalar = Shape::Array(scalar);
        let array = push(last.0, last.1, Shape::Array(reached.clone()));
        let size = push(
            Op::Constant(Literal::Array(size)),
            Vec::new(),
            scalar.clone(),
        );
        let size = push(Op::OptimizationBarrier, vec![size], scalar);
        last = (Op::SetDimensionSize { dim: d }, vec![array, size]);
        reached.dynamic.resize(shape.rank(), false);
        reached.dynamic[d] = true;
    }
    last
}
