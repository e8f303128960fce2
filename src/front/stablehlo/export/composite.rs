//! Ops of CHLO as composites, each with a function of StableHLO that computes it.

use crate::base::Result;
use crate::front::stablehlo::chlo;
use crate::front::stablehlo::export::Exporter;
use crate::front::stablehlo::export::unique;
use crate::hlo;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::shape::PrimitiveType;
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
        let key = format!("{name} {shapes:?} {:?}", said.get("k"));
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
        let root = match (&self.module.instrs[id].op, &*params) {
            (Op::TopK { k, .. }, &[x]) => Some(sorted_first(&mut b, x, *k)?),
            _ => chlo::build_plain(&mut b, name, &params)?,
        };
        let root = root.ok_or_else(|| self.unsupported(id, "it without CHLO"))?;
        b.set_root(root);
        module.entry = comp;
        let function = unique(&mut self.taken, &format!("chlo.{name}.impl"));
        let mut inner = Exporter::new(&module, true);
        std::mem::swap(&mut inner.out, &mut self.out);
        inner.names.insert(comp, function.clone());
        let done = inner.private(comp);
        std::mem::swap(&mut inner.out, &mut self.out);
        done.map(|()| function)
    }
}

/// The first `k` of each row sorted downward, and where they stood.
fn sorted_first(b: &mut Builder<'_>, x: InstrId, k: usize) -> Result<InstrId> {
    let array = b.array(x)?;
    let last = array.rank().saturating_sub(1);
    let numbers = b.iota(PrimitiveType::S32, &array.dims, last)?;
    let scalars = [
        Shape::scalar(array.ty),
        Shape::scalar(array.ty),
        Shape::scalar(PrimitiveType::S32),
        Shape::scalar(PrimitiveType::S32),
    ];
    let body = b.computation("greater", &scalars, |b, p| {
        let ty = match array.ty.is_float() {
            true => ComparisonType::TotalOrder,
            false => ComparisonType::default_of(Some(b.shape(p[0]))),
        };
        let direction = ComparisonDirection::Gt;
        b.op(Op::Compare { direction, ty }, &[p[0], p[1]])
    })?;
    let hlo = Op::Sort {
        dim: last,
        body,
        is_stable: true,
    };
    let sorted = b.op(hlo, &[x, numbers])?;
    let mut parts = Vec::with_capacity(2);
    for part in b.elements(sorted)? {
        parts.push(b.slice_dim(part, last, 0, k)?);
    }
    b.tuple(&parts)
}
