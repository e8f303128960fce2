//! Conditionals, loops, barriers and tokens.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::regions::OneParameter;
use crate::front::stablehlo::types::Known;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir::OpRef;
use crate::mlir::ValueId;
use crate::shape::Shape;

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn control_flow(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        match name {
            "if" | "case" => self.conditional(op)?,
            "while" => self.while_loop(op)?,
            "optimization_barrier" => self.barrier(op)?,
            "after_all" | "create_token" => {
                let tokens = self.operands(op)?;
                self.emit_one(op, Op::AfterAll, &tokens)?;
            }
            "add_dependency" => {
                let operands: [InstrId; 2] = self.exactly(op)?;
                self.emit_one(op, Op::AddDependency, &operands)?;
            }
            "composite" => self.composite(op)?,
            "custom_call" => self.custom_call(op)?,
            "async_start" => {
                let operands = self.operands(op)?;
                let results = self.region_values(op, &operands)?;
                let all = self.one_or_tuple(&results)?;
                self.set_one(op, all)?;
            }
            "async_done" => {
                let [all] = self.exactly(op)?;
                self.set_results(op, all)?;
            }
            "fusion" => self.fusion(op)?,
            "topk" => self.top_k(op)?,
            "scan" => self.scan(op)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The value itself when there is one, else a tuple.
    fn one_or_tuple(&mut self, values: &[InstrId]) -> Result<InstrId> {
        match values {
            [one] => Ok(*one),
            _ => self.b().tuple(values),
        }
    }

    fn values_of(&self, op: OpRef<'m>, values: &[ValueId]) -> Result<Vec<InstrId>> {
        values.iter().map(|&v| self.value(op, v)).collect()
    }

    fn conditional(&mut self, op: OpRef<'m>) -> Result<()> {
        let [index] = self.exactly(op)?;
        self.branches_as_declared(op)?;
        let mut branches = Vec::with_capacity(op.regions.len());
        let mut operands = vec![index];
        for branch in 0..op.regions.len() {
            let captures = self.passed(&[op.region(branch)?]);
            let passed = self.values_of(op, &captures)?;
            operands.push(self.one_or_tuple(&passed)?);
            let one = OneParameter {
                arguments: &[],
                captures: &captures,
                carried: false,
            };
            branches.push(self.region(op, branch, Some(&one))?);
        }
        let id = self.b().op(Op::Conditional { branches }, &operands)?;
        self.say_dynamic(op, id)?;
        self.set_results(op, id)
    }

    fn while_loop(&mut self, op: OpRef<'m>) -> Result<()> {
        let mut operands = self.operands(op)?;
        let mut arguments = Vec::with_capacity(operands.len());
        for (index, &operand) in operands.iter().enumerate() {
            // What goes around may be dynamic though it enters static.
            let mut shape = self.out.shape(operand).without_layout();
            let declared = self.declared(op, index)?;
            dynamic_as_declared(&mut shape, &declared);
            arguments.push(shape);
        }
        self.loop_as_declared(op)?;
        let captures = self.passed(&op.regions);
        operands.extend(self.values_of(op, &captures)?);
        if operands.is_empty() {
            // A loop without state computes nothing, and ends at once if it ends.
            return Ok(());
        }
        let mut one = OneParameter {
            arguments: &arguments,
            captures: &captures,
            carried: true,
        };
        let body = self.region(op, 1, Some(&one))?;
        one.carried = false;
        let condition = self.region(op, 0, Some(&one))?;
        let state = self.one_or_tuple(&operands)?;
        let id = self.b().while_loop(condition, body, state)?;
        self.say_dynamic(op, id)?;
        if operands.len() == 1 {
            return self.set_one(op, id);
        }
        self.set_elements(op, id)
    }

    /// The value of an op is dynamic where the types of the op's results say so.
    fn say_dynamic(&mut self, op: OpRef<'m>, id: InstrId) -> Result<()> {
        let mut shape = self.out.shape(id).clone();
        for index in 0..op.results.len() {
            let declared = self.declared(op, index)?;
            match &mut shape {
                Shape::Tuple(parts) if index < parts.len() => {
                    dynamic_as_declared(&mut parts[index], &declared);
                }
                shape => dynamic_as_declared(shape, &declared),
            }
        }
        self.out.instrs[id].shape = shape;
        Ok(())
    }

    fn barrier(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        if operands.is_empty() {
            return Ok(());
        }
        let state = self.one_or_tuple(&operands)?;
        let id = self.b().op(Op::OptimizationBarrier, &[state])?;
        if operands.len() == 1 {
            return self.set_one(op, id);
        }
        self.set_elements(op, id)
    }

    /// A fusion is its body.
    fn fusion(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        self.inlined(op, &operands)
    }

    /// Converts the one region of an op in place, with these values as its arguments; what it gives
    /// are the results of the op.
    pub(super) fn inlined(&mut self, op: OpRef<'m>, arguments: &[InstrId]) -> Result<()> {
        let results = self.region_values(op, arguments)?;
        if results.len() != op.results.len() {
            return Err(op.wrong("its region gives another number of values"));
        }
        for (index, &id) in results.iter().enumerate() {
            self.set(op, index, id)?;
        }
        Ok(())
    }

    /// What the one region of an op gives for these values of its arguments, computed in place.
    fn region_values(&mut self, op: OpRef<'m>, arguments: &[InstrId]) -> Result<Vec<InstrId>> {
        let block = op.block(0)?;
        let source = self.source;
        let params = &source.blocks[block].args;
        if params.len() != arguments.len() {
            let (given, wanted) = (arguments.len(), params.len());
            return Err(op.wrong(format!(
                "{given} operands for {wanted} arguments of its region"
            )));
        }
        for (&param, &argument) in params.iter().zip(arguments) {
            self.values[param] = Some(argument);
        }
        self.deeper(|c| c.block(block))
    }
}

/// Makes a shape dynamic where its declaration is.
fn dynamic_as_declared(shape: &mut Shape, declared: &Known) {
    if let (Shape::Array(array), Known::Whole(Shape::Array(declared))) = (shape, declared)
        && declared.is_dynamic()
        && array.dims == declared.dims
    {
        let dynamic =
            (0..array.rank()).map(|d| array.is_dynamic_dim(d) || declared.is_dynamic_dim(d));
        array.dynamic = dynamic.collect();
    }
}
