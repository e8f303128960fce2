//! Shapes of tuples, control flow, calls and asynchronous wrappers.

use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::CustomCall;
use crate::hlo::infer::Infer;
use crate::hlo::infer::agree;
use crate::hlo::infer::text;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl Infer<'_> {
    /// tuple C1.
    pub(super) fn tuple(&self) -> Shape {
        Shape::Tuple(self.operands.iter().map(|s| s.without_layout()).collect())
    }

    /// get_tuple_element C1, C2.
    pub(super) fn get_tuple_element(&self, index: usize) -> Result<Shape> {
        self.arity(1)?;
        let tuple = self.tuple_operand()?;
        match tuple.get(index) {
            Some(element) => Ok(element.without_layout()),
            None => {
                let count = tuple.len();
                Err(self.fail(format!("takes element {index} of a tuple of {count}")))
            }
        }
    }

    pub(super) fn tuple_operand(&self) -> Result<&[Shape]> {
        let shape = self.operand(0)?;
        let tuple = shape.as_tuple();
        tuple.ok_or_else(|| self.fail(format!("operand is {} instead of a tuple", text(shape))))
    }

    pub(super) fn token(&self, i: usize) -> Result<()> {
        let shape = self.operand(i)?;
        self.ensure(*shape == Shape::Token, || {
            format!("operand {i} is {} instead of a token", text(shape))
        })
    }

    /// The first operand, ordered after the token.
    pub(super) fn add_dependency(&self) -> Result<Shape> {
        self.arity(2)?;
        self.token(1)?;
        Ok(self.operand(0)?.without_layout())
    }

    /// after_all: tokens in, a token out.
    pub(super) fn after_all(&self) -> Result<Shape> {
        for i in 0..self.operands.len() {
            self.token(i)?;
        }
        Ok(Shape::Token)
    }

    /// (destination, source, context).
    pub(super) fn copy_start(&self) -> Result<Shape> {
        self.arity(1)?;
        let shape = self.operand(0)?.without_layout();
        let context = Shape::scalar(PrimitiveType::U32);
        Ok(Shape::Tuple(vec![shape.clone(), shape, context]))
    }

    /// The destination of the `copy-start`.
    pub(super) fn copy_done(&self) -> Result<Shape> {
        self.arity(1)?;
        match self.tuple_operand()? {
            [destination, source, _] if agree(destination, source) => {
                Ok(destination.without_layout())
            }
            _ => Err(self.fail("operand is not what copy-start gives")),
        }
    }

    /// call, and fusion but for its aliasing: operands are the parameters.
    pub(super) fn call(&self, body: CompId) -> Result<Shape> {
        Ok(self.takes("body", body, self.operands)?.without_layout())
    }

    /// while C1 to C3.
    pub(super) fn while_loop(&self, condition: CompId, body: CompId) -> Result<Shape> {
        self.arity(1)?;
        let state = self.operand(0)?;
        let test = self.takes("condition", condition, &[state])?;
        self.ensure(agree(test, &Shape::scalar(PrimitiveType::Pred)), || {
            format!("condition gives {} instead of pred[]", text(test))
        })?;
        let next = self.takes("body", body, &[state])?;
        self.ensure(agree(next, state), || {
            format!("body turns {} into {}", text(state), text(next))
        })?;
        Ok(state.without_layout())
    }

    /// if and case C1 to C4: a pred picks between true and false, an s32 among any number.
    pub(super) fn conditional(&self, branches: &[CompId]) -> Result<Shape> {
        self.ensure(!branches.is_empty(), || "has no branches".to_owned())?;
        self.arity(1 + branches.len())?;
        let index = self.scalar(0)?;
        match index.ty {
            PrimitiveType::S32 => {}
            PrimitiveType::Pred => self.ensure(branches.len() == 2, || {
                format!("picks one of {} branches by a pred", branches.len())
            })?,
            other => {
                return Err(self.fail(format!("picks a branch by {other} instead of pred or s32")));
            }
        }
        let mut result: Option<&Shape> = None;
        for (i, &branch) in branches.iter().enumerate() {
            let what = format!("branch {i}");
            let found = self.takes(&what, branch, &[self.operand(1 + i)?])?;
            let wanted = *result.get_or_insert(found);
            self.ensure(agree(found, wanted), || {
                format!(
                    "{what} gives {} where branch 0 gives {}",
                    text(found),
                    text(wanted)
                )
            })?;
        }
        let result = result.ok_or_else(|| self.fail("has no branches"))?;
        Ok(result.without_layout())
    }

    /// ((operands), result, contexts...); the contexts are the program's choice.
    pub(super) fn async_start(&self, body: CompId) -> Result<Shape> {
        let result = self.takes("body", body, self.operands)?;
        let mut parts = vec![self.tuple(), result.without_layout()];
        if let Some(stated) = self.declared.and_then(Shape::as_tuple) {
            parts.extend(stated.iter().skip(2).map(Shape::without_layout));
        }
        Ok(Shape::Tuple(parts))
    }

    fn async_operand(&self) -> Result<&[Shape]> {
        self.arity(1)?;
        let tuple = self.tuple_operand()?;
        self.ensure(tuple.len() >= 2 && tuple[0].is_tuple(), || {
            "operand is not what async-start gives".to_owned()
        })?;
        Ok(tuple)
    }

    pub(super) fn async_update(&self) -> Result<Shape> {
        self.async_operand()?;
        Ok(self.operand(0)?.without_layout())
    }

    pub(super) fn async_done(&self) -> Result<Shape> {
        Ok(self.async_operand()?[1].without_layout())
    }

    /// The declared shape; layout constraints and aliasing must fit the operands.
    pub(super) fn custom_call(&self, call: &CustomCall) -> Result<Shape> {
        let result = self.declared()?;
        if let Some(constraints) = &call.operand_layout_constraints {
            let (found, wanted) = (constraints.len(), self.operands.len());
            self.ensure(found == wanted, || {
                format!("constrains the layouts of {found} operands and has {wanted}")
            })?;
            for (i, constraint) in constraints.iter().enumerate() {
                let operand = self.operand(i)?;
                self.ensure(agree(constraint, operand), || {
                    let (found, wanted) = (text(constraint), text(operand));
                    format!("constrains operand {i} to {found} where it is {wanted}")
                })?;
            }
        }
        self.operand_aliasing(&call.output_to_operand_aliasing, result)?;
        Ok(result.without_layout())
    }

    /// Each pair names a part of the result and a part of an operand of equal shape.
    pub(super) fn operand_aliasing(
        &self,
        pairs: &[(Vec<i64>, i64, Vec<i64>)],
        result: &Shape,
    ) -> Result<()> {
        for (output, number, input) in pairs {
            let path = |index: &[i64]| -> Option<Vec<usize>> {
                index.iter().map(|&i| usize::try_from(i).ok()).collect()
            };
            let out = path(output).and_then(|p| result.at(&p));
            let operand = usize::try_from(*number)
                .ok()
                .and_then(|n| self.operands.get(n));
            let from = operand.and_then(|o| path(input).and_then(|p| o.at(&p)));
            let fits = out.zip(from).is_some_and(|(a, b)| agree(a, b));
            self.ensure(fits, || {
                format!(
                    "aliases output {output:?} to operand {number} at {input:?}, which do not fit"
                )
            })?;
        }
        Ok(())
    }
}
