//! Calls of functions and composites.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::hlo::Op;
use crate::mlir::Attr;
use crate::mlir::OpRef;
use crate::mlir::print;

impl<'m> Converter<'m> {
    /// `func.call`
    pub(super) fn call(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        let callee = op.attr_symbol("callee")?;
        self.call_as_declared(op, callee)?;
        let body = self.function(op, callee, &operands)?;
        let is_composite = false;
        let id = self.b().op(Op::Call { body, is_composite }, &operands)?;
        self.set_results(op, id)
    }

    /// `stablehlo.composite`: a call of the decomposition, with the composite's name beside it. The
    /// composites that stand for ops of CHLO are these ops again. Regions say nothing that the
    /// decomposition does not.
    pub(super) fn composite(&mut self, op: OpRef<'m>) -> Result<()> {
        let name = op.attr_str("name")?;
        let operands = self.operands(op)?;
        let version = op.opt_int("version")?.unwrap_or(0);
        if let (Some(name), 1) = (name.strip_prefix("chlo."), version) {
            let attributes = op.attr("composite_attributes").and_then(Attr::as_dict);
            if self.chlo_beside(op, name, attributes)? {
                return Ok(());
            }
        }
        let decomposition = op.attr_symbol("decomposition")?;
        self.call_as_declared(op, decomposition)?;
        let body = self.function(op, decomposition, &operands)?;
        let is_composite = true;
        let id = self.b().op(Op::Call { body, is_composite }, &operands)?;
        let attributes = match op.attr("composite_attributes") {
            Some(attr) => print::attr(attr),
            None => "{}".to_owned(),
        };
        let extra = &mut self.extra(id).frontend_attributes;
        extra.insert("composite.name".to_owned(), name.to_owned());
        extra.insert("composite.attributes".to_owned(), attributes);
        extra.insert("composite.version".to_owned(), version.to_string());
        self.set_results(op, id)
    }

    /// The `k` greatest or least elements of each row, and where they stand.
    pub(super) fn top_k_of(&mut self, op: OpRef<'m>, k: usize, largest: bool) -> Result<()> {
        let [x] = self.exactly(op)?;
        let is_stable = false;
        let hlo = Op::TopK {
            k,
            largest,
            is_stable,
        };
        let id = self.b().op(hlo, &[x])?;
        self.set_results(op, id)
    }
}
