//! Ops of CHLO as composites, each with a function of StableHLO that computes it.

use crate::base::Result;
use crate::front::stablehlo::chlo;
use crate::front::stablehlo::export::Exporter;
use crate::front::stablehlo::export::attributes;
use crate::front::stablehlo::export::unique;
use crate::hlo;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::expand::Expansion;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::shape::Shape;

impl Exporter<'_> {
    /// An op of CHLO, named without its dialect, as a composite.
    pub(super) fn as_composite(
        &mut self,
        id: InstrId,
        name: &str,
        operands: Vec<ValueId>,
        results: Vec<Type>,
        mut attrs: AttrMap,
    ) -> Result<Vec<ValueId>> {
        let instr = &self.module.instrs[id];
        let shapes = instr.operands.iter().map(|&o| self.module.shape(o));
        let shapes: Vec<Shape> = shapes.map(Shape::without_layout).collect();
        let mut said = AttrMap::new();
        if let Some(k) = attrs.remove("k") {
            said.insert("k".into(), k);
        }
        if let Op::RaggedDot { .. } = instr.op {
            attrs.remove("ragged_dot_dimension_numbers");
            attrs.remove("precision_config");
            said = ragged_dot(&instr.op);
        }
        let key = format!("{name} {shapes:?} {said:?}");
        let function = match self.composites.get(&key) {
            Some(known) => known.clone(),
            None => {
                let made = self.decomposition(id, name, &shapes)?;
                self.composites.insert(key, made.clone());
                made
            }
        };
        attrs.insert("name".into(), Attr::string(&format!("chlo.{name}")));
        attrs.insert("decomposition".into(), Attr::symbol(&function));
        attrs.insert("version".into(), Attr::i32(1));
        if !said.is_empty() {
            attrs.insert("composite_attributes".into(), Attr::dict(said));
        }
        self.push_op("stablehlo.composite", operands, results, attrs)
    }

    /// A function that computes the op; gives its name.
    fn decomposition(&mut self, id: InstrId, name: &str, shapes: &[Shape]) -> Result<String> {
        let mut module = hlo::Module::new("decomposition");
        let comp = module.new_comp(name);
        let mut b = module.builder(comp);
        let mut params = Vec::with_capacity(shapes.len());
        for (i, shape) in shapes.iter().enumerate() {
            params.push(b.parameter(format!("p{i}"), shape.clone()));
        }
        let op = &self.module.instrs[id].op;
        let expansion: Option<Expansion> = match op {
            Op::RaggedDot { .. } => Some(hlo::expand::ragged_dot),
            Op::TopK { .. } => Some(hlo::expand::topk),
            _ => None,
        };
        let root = match expansion {
            Some(expand) => {
                let shape = self.module.shape(id).without_layout();
                let whole = b.shaped(op.clone(), &params, shape)?;
                Some(expand(&mut b, whole)?)
            }
            None => chlo::build_plain(&mut b, name, &params)?,
        };
        let root = root.ok_or_else(|| self.unsupported(id, "it without CHLO"))?;
        b.set_root(root);
        module.entry = comp;
        hlo::rewrite::drop_dead_everywhere(&mut module);
        let function = unique(&mut self.taken, &format!("chlo.{name}.impl"));
        let mut inner = Exporter::new(&module, true);
        std::mem::swap(&mut inner.out, &mut self.out);
        inner.names.insert(comp, function.clone());
        let done = inner.private(comp);
        std::mem::swap(&mut inner.out, &mut self.out);
        done.map(|()| function)
    }
}

/// What a composite says of a ragged dot: dimensions of both sides that are batch, contracted, ragged
/// or for groups, and precisions.
fn ragged_dot(op: &Op) -> AttrMap {
    let Op::RaggedDot {
        dims,
        lhs_ragged,
        rhs_group,
        precision,
    } = op
    else {
        return AttrMap::new();
    };
    let lists = [
        &dims.lhs_batch,
        &dims.rhs_batch,
        &dims.lhs_contracting,
        &dims.rhs_contracting,
        lhs_ragged,
        rhs_group,
    ];
    let lists = lists.map(|list| {
        let list: Vec<i64> = list.iter().map(|&d| attributes::int(d)).collect();
        attributes::dense_ints(&list, &[list.len() as u64], Type::I64)
    });
    let words = precision.operand_precision.iter();
    let words = words.map(|p| Attr::string(&p.name().to_uppercase()));
    let mut said = attributes::map([(
        "ragged_dot_dimension_numbers",
        Attr::array(lists.into_iter().collect()),
    )]);
    if !precision.operand_precision.is_empty() {
        said.insert("precision_config".into(), Attr::array(words.collect()));
    }
    said
}
