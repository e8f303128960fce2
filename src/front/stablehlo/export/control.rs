//! Calls, loops, branches, reductions, and pairs of asynchronous ops.

use crate::base::Result;
use crate::front::stablehlo::export::Exporter;
use crate::front::stablehlo::export::attributes;
use crate::front::stablehlo::export::attributes::dims;
use crate::front::stablehlo::export::attributes::int;
use crate::front::stablehlo::export::movement::structure;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::RegionId;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::mlir::text;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl<'m> Exporter<'m> {
    /// The values of an instruction of this file; nothing for others.
    pub(super) fn control(&mut self, id: InstrId) -> Result<Option<Vec<ValueId>>> {
        let module = self.module;
        let instr = &module.instrs[id];
        let done = match &instr.op {
            Op::Call { body, is_composite } => self.call(instr, *body, *is_composite)?,
            Op::Fusion { body, .. } => {
                let operands = self.all_leaves(&instr.operands)?;
                self.bind(*body, &operands)?;
                self.inline(*body)?
            }
            Op::While { condition, body } => self.while_loop(id, *condition, *body)?,
            Op::Conditional { branches } => self.conditional(id, branches)?,
            Op::OptimizationBarrier => {
                let operands = self.all_leaves(&instr.operands)?;
                if operands.is_empty() {
                    return Ok(Some(operands));
                }
                let results = self.types(&instr.shape);
                let attrs = self.plain(instr);
                self.push_op("stablehlo.optimization_barrier", operands, results, attrs)?
            }
            Op::AddDependency => {
                let value = self.leaves(instr.operands[0])?;
                let mut operands = value.clone();
                operands.extend(self.leaves(instr.operands[1])?);
                let results = operands.iter().map(|&v| self.out.ty(v).clone()).collect();
                let name = "stablehlo.optimization_barrier";
                let mut all = self.push_op(name, operands, results, AttrMap::new())?;
                all.truncate(value.len());
                all
            }
            Op::AfterAll => {
                let operands = self.operands(id)?;
                let name = match operands.is_empty() {
                    true => "stablehlo.create_token",
                    false => "stablehlo.after_all",
                };
                let attrs = self.plain(instr);
                self.push_op(name, operands, vec![Type::Token], attrs)?
            }
            Op::CopyStart { .. } => {
                let copied = self.leaves(instr.operands[0])?;
                self.pending.insert(id, copied.clone());
                let mut all = copied.clone();
                all.extend(copied);
                all.push(self.context()?);
                all
            }
            Op::AsyncStart { body, .. } => {
                let operands = self.all_leaves(&instr.operands)?;
                self.bind(*body, &operands)?;
                let results = self.inline(*body)?;
                self.started(id, results)?
            }
            Op::AsyncUpdate => {
                let results = self.results_of(id)?;
                self.pending.insert(id, results);
                self.leaves(instr.operands[0])?
            }
            Op::CopyDone
            | Op::AsyncDone
            | Op::AllGatherDone
            | Op::AllReduceDone
            | Op::CollectivePermuteDone => self.results_of(id)?,
            Op::CustomCall(call) => self.custom_call(id, call)?,
            _ => return self.reduction(id),
        };
        Ok(Some(done))
    }

    /// Attributes that say nothing of what an op does.
    pub(super) fn plain(&self, instr: &Instr) -> AttrMap {
        let mut attrs = AttrMap::new();
        if let Some(extra) = &instr.extra {
            attributes::discardable(extra, &mut attrs);
        }
        attrs
    }

    /// An asynchronous op has run: its results wait for the op that is done, and the value of the
    /// start has something in each of its places.
    pub(super) fn started(&mut self, id: InstrId, results: Vec<ValueId>) -> Result<Vec<ValueId>> {
        let count = self.module.shape(id).leaves().len();
        self.pending.insert(id, results);
        let filler = self.context()?;
        Ok(vec![filler; count])
    }

    /// What the start of an asynchronous op gave.
    fn results_of(&self, id: InstrId) -> Result<Vec<ValueId>> {
        let start = self.module.instrs[id].operands.first();
        let results = start.and_then(|start| self.pending.get(start)).cloned();
        results.ok_or_else(|| self.unsupported(id, "the end of an op whose start it cannot see"))
    }

    fn call(&mut self, instr: &'m Instr, body: CompId, composite: bool) -> Result<Vec<ValueId>> {
        let operands = self.all_leaves(&instr.operands)?;
        let results = self.types(&instr.shape);
        let name = self.names.get(&body).cloned().unwrap_or_default();
        let mut attrs = self.plain(instr);
        let pairs = instr.extra.as_ref().map(|e| &e.frontend_attributes);
        let said = |key: &str| pairs.and_then(|p| p.get(key));
        if let (true, Some(composite)) = (composite, said("composite.name")) {
            let dict = said("composite.attributes").map(|text| text::read_attr(text));
            let dict = match dict {
                Some(Ok(dict @ Attr::Dict(_))) => Some(dict),
                _ => None,
            };
            let version = said("composite.version").and_then(|v| v.parse().ok());
            attrs.insert("name".into(), Attr::string(composite));
            attrs.insert("decomposition".into(), Attr::symbol(&name));
            if let Some(dict) = dict.filter(|d| d.as_dict().is_some_and(|d| !d.is_empty())) {
                attrs.insert("composite_attributes".into(), dict);
            }
            if let Some(version) = version.filter(|v| *v != 0) {
                attrs.insert("version".into(), Attr::i32(version));
            }
            return self.push_op("stablehlo.composite", operands, results, attrs);
        }
        attrs.insert("callee".into(), Attr::symbol(&name));
        self.push_op("func.call", operands, results, attrs)
    }

    fn while_loop(&mut self, id: InstrId, condition: CompId, body: CompId) -> Result<Vec<ValueId>> {
        let instr = &self.module.instrs[id];
        let operands = self.all_leaves(&instr.operands)?;
        let results = self.types(&instr.shape);
        let regions = vec![self.region_of(condition)?, self.region_of(body)?];
        let attrs = self.plain(instr);
        self.push_with("stablehlo.while", operands, results, attrs, regions)
    }

    /// Branches use the operands directly.
    fn conditional(&mut self, id: InstrId, branches: &[CompId]) -> Result<Vec<ValueId>> {
        let instr = &self.module.instrs[id];
        let index = self.one(instr.operands[0])?;
        let mut regions: Vec<RegionId> = Vec::with_capacity(branches.len());
        for (&branch, &operand) in branches.iter().zip(&instr.operands[1..]) {
            let values = self.leaves(operand)?;
            let region = self.region(&[], |e, _| {
                e.bind(branch, &values)?;
                e.body(branch, "stablehlo.return")
            })?;
            regions.push(region);
        }
        let index_shape = self.module.shape(instr.operands[0]).as_array();
        let name = match index_shape.map(|a| a.ty) {
            Some(PrimitiveType::Pred) => "stablehlo.if",
            _ => "stablehlo.case",
        };
        let results = self.types(&instr.shape);
        let attrs = self.plain(instr);
        self.push_with(name, vec![index], results, attrs, regions)
    }

    fn reduction(&mut self, id: InstrId) -> Result<Option<Vec<ValueId>>> {
        let instr = &self.module.instrs[id];
        let mut attrs = self.plain(instr);
        let (name, comps) = match &instr.op {
            Op::Reduce { dims: of, body } => {
                attrs.insert("dimensions".into(), dims(of));
                ("stablehlo.reduce", vec![*body])
            }
            Op::Map { dims: of, body } => {
                attrs.insert("dimensions".into(), dims(of));
                ("stablehlo.map", vec![*body])
            }
            Op::ReduceWindow { window, body } => {
                attributes::window(window, false, &mut attrs);
                ("stablehlo.reduce_window", vec![*body])
            }
            Op::SelectAndScatter {
                window,
                select,
                scatter,
            } => {
                if window
                    .iter()
                    .any(|d| d.base_dilation != 1 || d.window_dilation != 1)
                {
                    return Err(self.unsupported(id, "dilation in `select-and-scatter`"));
                }
                attributes::window(window, false, &mut attrs);
                attrs.remove("base_dilations");
                attrs.remove("window_dilations");
                ("stablehlo.select_and_scatter", vec![*select, *scatter])
            }
            Op::Sort {
                dim,
                body,
                is_stable,
            } => {
                attrs.insert("dimension".into(), Attr::i64(int(*dim)));
                if *is_stable {
                    attrs.insert("is_stable".into(), Attr::Bool(true));
                }
                ("stablehlo.sort", vec![*body])
            }
            Op::Scatter {
                dims: of,
                body,
                indices_are_sorted,
                unique_indices,
            } => {
                let entries = vec![
                    ("update_window_dims", dims(&of.update_window_dims)),
                    ("inserted_window_dims", dims(&of.inserted_window_dims)),
                    ("input_batching_dims", dims(&of.input_batching_dims)),
                    (
                        "scatter_indices_batching_dims",
                        dims(&of.scatter_indices_batching_dims),
                    ),
                    (
                        "scatter_dims_to_operand_dims",
                        dims(&of.scatter_dims_to_operand_dims),
                    ),
                    ("index_vector_dim", Attr::i64(int(of.index_vector_dim))),
                ];
                let of = structure("scatter", entries);
                attrs.insert("scatter_dimension_numbers".into(), of);
                if *indices_are_sorted {
                    attrs.insert("indices_are_sorted".into(), Attr::Bool(true));
                }
                if *unique_indices {
                    attrs.insert("unique_indices".into(), Attr::Bool(true));
                }
                ("stablehlo.scatter", vec![*body])
            }
            Op::Scan {
                dim,
                body,
                num_carries,
                is_reverse,
                is_associative,
            } => {
                self.scan_attributes(instr, *dim, *num_carries, &mut attrs);
                if *is_reverse {
                    attrs.insert("is_reverse".into(), Attr::Bool(true));
                }
                if let Some(associative) = is_associative {
                    attrs.insert("is_associative".into(), Attr::Bool(*associative));
                }
                ("chlo.scan", vec![*body])
            }
            _ => return Ok(None),
        };
        let operands = self.operands(id)?;
        let results = self.types(&instr.shape);
        let mut regions = Vec::with_capacity(comps.len());
        for comp in comps {
            regions.push(self.region_of(comp)?);
        }
        self.push_with(name, operands, results, attrs, regions)
            .map(Some)
    }

    fn scan_attributes(&self, instr: &Instr, dim: usize, carries: usize, attrs: &mut AttrMap) {
        let segments = |total: usize| {
            let split = [total.saturating_sub(carries), carries];
            let data = split.iter().flat_map(|&n| (int(n) as i32).to_le_bytes());
            Attr::DenseArray(crate::mlir::DenseArray {
                element: Type::I32,
                data: data.collect(),
            })
        };
        let results = instr.shape.as_tuple().map_or(1, <[Shape]>::len);
        attrs.insert("dimension".into(), Attr::i64(int(dim)));
        attrs.insert("operandSegmentSizes".into(), segments(instr.operands.len()));
        attrs.insert("resultSegmentSizes".into(), segments(results));
    }
}
