//! Calls of functions and composites.

use crate::base::Result;
use crate::front::stablehlo::chlo;
use crate::front::stablehlo::import::Converter;
use crate::hlo::Op;
use crate::mlir::Attr;
use crate::mlir::OpRef;
use crate::mlir::print;

impl<'m> Converter<'m> {
    /// `func.call`
    pub(super) fn call(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        let body = self.function(op, op.attr_symbol("callee")?, &operands)?;
        let is_composite = false;
        let id = self.b().op(Op::Call { body, is_composite }, &operands)?;
        self.set_results(op, id)
    }

    /// `stablehlo.composite`: a call of the decomposition, with the composite's name beside it. The
    /// composites that stand for ops of CHLO are these ops again.
    pub(super) fn composite(&mut self, op: OpRef<'m>) -> Result<()> {
        let name = op.attr_str("name")?;
        let operands = self.operands(op)?;
        if let Some(chlo_name) = name.strip_prefix("chlo.") {
            if chlo::is_formula(chlo_name) {
                return self.chlo_formula(op, chlo_name, &operands);
            }
            if chlo_name == "top_k" {
                return self.top_k_composite(op);
            }
        }
        if !op.regions.is_empty() {
            return Err(op.unsupported("a composite with regions"));
        }
        let body = self.function(op, op.attr_symbol("decomposition")?, &operands)?;
        let is_composite = true;
        let id = self.b().op(Op::Call { body, is_composite }, &operands)?;
        let attributes = match op.attr("composite_attributes") {
            Some(attr) => print::attr(attr),
            None => "{}".to_owned(),
        };
        let version = op.opt_int("version")?.unwrap_or(0);
        let extra = &mut self.extra(id).frontend_attributes;
        extra.insert("composite.name".to_owned(), name.to_owned());
        extra.insert("composite.attributes".to_owned(), attributes);
        extra.insert("composite.version".to_owned(), version.to_string());
        self.set_results(op, id)
    }

    /// `chlo.top_k` with its attributes among those of a composite.
    fn top_k_composite(&mut self, op: OpRef<'m>) -> Result<()> {
        let attributes = op.attr("composite_attributes").and_then(Attr::as_dict);
        let k = attributes.and_then(|a| a.get("k")).and_then(Attr::as_int);
        let k = k.and_then(|k| usize::try_from(k).ok());
        let k = k.ok_or_else(|| op.wrong("`k` is missing"))?;
        self.top_k_of(op, k, true)
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
