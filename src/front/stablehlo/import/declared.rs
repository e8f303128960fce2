//! What types say of values, held against what the values are.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::types;
use crate::front::stablehlo::types::Known;
use crate::hlo::InstrId;
use crate::mlir::BlockId;
use crate::mlir::FunctionType;
use crate::mlir::OpRef;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::mlir::dialect::is_return;
use crate::mlir::print;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl<'m> Converter<'m> {
    /// The value must be one that the type of a result allows. Only ops on arrays are looked at:
    /// what others compute sizes of may have another width.
    pub(super) fn allowed(&self, op: OpRef<'m>, index: usize, id: InstrId) -> Result<()> {
        let ty = op.result_type(index)?;
        if matches!(
            op.kind().split('.').next(),
            Some("arith" | "shape" | "tensor")
        ) {
            return Ok(());
        }
        let ty = match self.expressed {
            true => &types::expressed(ty),
            false => ty,
        };
        let shape = self.out.shape(id);
        match types::shape_of(ty) {
            Ok(known) if !holds(&known, shape) => {
                let declared = print::ty(ty);
                let shape = shape.without_layout();
                Err(op.wrong(format!(
                    "result {index} is {shape}, its type says {declared}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The type of a function.
    pub(super) fn function_type(&self, op: OpRef<'m>) -> Result<&'m FunctionType> {
        let ty = op.attr_type("function_type")?.as_function();
        ty.ok_or_else(|| op.wrong("`function_type` is no type of a function"))
    }

    /// A function must take and give what its type says.
    pub(super) fn function_as_declared(&self, op: OpRef<'m>, block: BlockId) -> Result<()> {
        let declared = self.function_type(op)?;
        let arguments = &self.source.blocks[block].args;
        self.fit(op, "argument", arguments, &declared.inputs)?;
        self.gives(op, block, &declared.results)
    }

    /// A call must have the operands and results of what it calls.
    pub(super) fn call_as_declared(&self, op: OpRef<'m>, callee: &str) -> Result<()> {
        let callee = self.source.op(self.functions.get(op, callee)?.op);
        let declared = self.function_type(callee)?;
        self.fit(op, "operand", &op.operands, &declared.inputs)?;
        self.fit(op, "result", &op.results, &declared.results)
    }

    /// The branches of an op must give its results.
    pub(super) fn branches_as_declared(&self, op: OpRef<'m>) -> Result<()> {
        let results = op.results.iter().map(|&v| self.source.ty(v).clone());
        let results: Vec<Type> = results.collect();
        (0..op.regions.len()).try_for_each(|branch| self.gives(op, op.block(branch)?, &results))
    }

    /// What goes into a loop, around it and out of it must be of the same types.
    pub(super) fn loop_as_declared(&self, op: OpRef<'m>) -> Result<()> {
        let results = op.results.iter().map(|&v| self.source.ty(v).clone());
        let results: Vec<Type> = results.collect();
        self.fit(op, "operand", &op.operands, &results)?;
        let truth = Type::from_primitive(PrimitiveType::Pred);
        self.gives(op, op.block(0)?, &[Type::tensor(Vec::new(), truth)])?;
        self.gives(op, op.block(1)?, &results)?;
        for region in 0..2 {
            let arguments = &self.source.blocks[op.block(region)?].args;
            self.fit(op, "argument", arguments, &results)?;
        }
        Ok(())
    }

    /// What a block returns must be of these types.
    pub(super) fn gives(&self, op: OpRef<'m>, block: BlockId, wanted: &[Type]) -> Result<()> {
        let last = self.source.block_ops(block).next_back();
        match last.filter(|last| is_return(last.kind())) {
            Some(last) => self.fit(op, "returned value", &last.operands, wanted),
            None => Ok(()),
        }
    }

    fn fit(&self, op: OpRef<'m>, what: &str, given: &[ValueId], wanted: &[Type]) -> Result<()> {
        if given.len() != wanted.len() {
            let (given, wanted) = (given.len(), wanted.len());
            return Err(op.wrong(format!("{given} {what}s, wanted {wanted}")));
        }
        for (i, (&value, wanted)) in given.iter().zip(wanted).enumerate() {
            let ty = self.source.ty(value);
            if !types::agree(ty, wanted) {
                let (ty, wanted) = (print::ty(ty), print::ty(wanted));
                return Err(op.wrong(format!("{what} {i} is {ty}, wanted {wanted}")));
            }
        }
        Ok(())
    }
}

/// Whether a shape is among those that a type stands for: a size may be less than its bound.
fn holds(known: &Known, shape: &Shape) -> bool {
    match (known, shape) {
        (Known::Whole(Shape::Array(declared)), Shape::Array(array)) => {
            let size = |d: usize| match declared.is_dynamic_dim(d) {
                true => array.dims[d] <= declared.dims[d],
                false => array.dims[d] == declared.dims[d],
            };
            array.ty == declared.ty
                && array.rank() == declared.rank()
                && (0..array.rank()).all(size)
        }
        (Known::Whole(Shape::Tuple(declared)), Shape::Tuple(elements)) => {
            let mut pairs = declared.iter().zip(elements);
            declared.len() == elements.len()
                && pairs.all(|(declared, shape)| holds(&Known::Whole(declared.clone()), shape))
        }
        (Known::Whole(declared), shape) => declared.same_ignoring_layout(shape),
        (Known::Open { ty, dims }, Shape::Array(array)) => {
            let mut pairs = dims.iter().zip(&array.dims);
            array.ty == *ty
                && array.rank() == dims.len()
                && pairs.all(|(declared, size)| declared.is_none_or(|d| d == *size))
        }
        (Known::Unranked(ty), Shape::Array(array)) => array.ty == *ty,
        (Known::Open { .. } | Known::Unranked(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::front::stablehlo::Argument;
    use crate::front::stablehlo::Options;
    use crate::front::stablehlo::to_hlo;
    use crate::mlir;
    use crate::shape::Dims;

    fn refused(text: &str, arguments: Vec<Argument>) -> String {
        let module = mlir::text::read(text).expect("the text is a module");
        let error = to_hlo(&module, &Options { arguments }).expect_err("it is refused");
        let help = error.help.iter().map(|help| format!(" {help}"));
        error.message.clone() + &help.collect::<String>()
    }

    #[test]
    fn values_are_what_types_say() {
        for (text, told) in [
            (
                "func.func @main(%a: tensor<4xf32>) -> tensor<5xf32> { return %a : tensor<4xf32> }",
                "`func.func`: returned value 0 is tensor<4xf32>, wanted tensor<5xf32>",
            ),
            (
                "func.func @main(%a: tensor<4xf32>) -> () { return %a : tensor<4xf32> }",
                "`func.func`: 1 returned values, wanted 0",
            ),
            (
                "\"func.func\"() ({\n^bb0(%a: tensor<4xf32>):\n \"func.return\"(%a) : (tensor<4xf32>) -> ()\n}) \
                 {function_type = (tensor<7xf32>) -> tensor<4xf32>, sym_name = \"main\"} : () -> ()",
                "`func.func`: argument 0 is tensor<4xf32>, wanted tensor<7xf32>",
            ),
            (
                "func.func @main(%a: tensor<4xf32>) -> tensor<5xf32> { \
                 %0 = call @f(%a) : (tensor<4xf32>) -> tensor<5xf32> return %0 : tensor<5xf32> } \
                 func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }",
                "`func.call`: result 0 is tensor<5xf32>, wanted tensor<4xf32>",
            ),
            (
                "func.func @main(%p: tensor<i1>, %a: tensor<4xf32>) -> tensor<5xf32> { \
                 %0 = \"stablehlo.if\"(%p) ({ stablehlo.return %a : tensor<4xf32> }, \
                 { stablehlo.return %a : tensor<4xf32> }) : (tensor<i1>) -> tensor<5xf32> \
                 return %0 : tensor<5xf32> }",
                "`stablehlo.if`: returned value 0 is tensor<4xf32>, wanted tensor<5xf32>",
            ),
            (
                "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { \
                 %0 = \"stablehlo.while\"(%a) ({ ^bb0(%b: tensor<4xf32>): \
                 stablehlo.return %b : tensor<4xf32> }, { ^bb0(%b: tensor<4xf32>): \
                 stablehlo.return %b : tensor<4xf32> }) : (tensor<4xf32>) -> tensor<4xf32> \
                 return %0 : tensor<4xf32> }",
                "`stablehlo.while`: returned value 0 is tensor<4xf32>, wanted tensor<i1>",
            ),
        ] {
            assert_eq!(refused(text, Vec::new()), told);
        }
    }

    #[test]
    fn tuples_and_tokens_are_no_arrays() {
        let program = |ty: &str, op: &str| {
            format!(
                "func.func @main(%a: {ty}) -> tensor<4xf32> {{ \
                 %0 = \"{op}\"(%a) {{broadcast_dimensions = array<i64>}} : ({ty}) -> tensor<4xf32> \
                 return %0 : tensor<4xf32> }}"
            )
        };
        for op in [
            "stablehlo.broadcast_in_dim",
            "stablehlo.reshape",
            "chlo.bessel_i1e",
            "chlo.constant_like",
        ] {
            for ty in ["!stablehlo.token", "tuple<tensor<4xf32>>"] {
                assert_eq!(
                    refused(&program(ty, op), Vec::new()),
                    format!("`{op}`: operand 0 is {ty}, wanted an array")
                );
            }
        }
    }

    #[test]
    fn open_sizes_come_out_as_types_say() {
        let text = "func.func @main(%a: tensor<?xf32>) -> tensor<5xf32> { \
                    %0 = stablehlo.abs %a : tensor<?xf32> \
                    %1 = call @f(%0) : (tensor<?xf32>) -> tensor<5xf32> return %1 : tensor<5xf32> } \
                    func.func private @f(%a: tensor<?xf32>) -> tensor<?xf32> { \
                    return %a : tensor<?xf32> }";
        let sized = |size: usize| vec![Argument::Sized(Dims::from_slice(&[size]))];
        let module = mlir::text::read(text).expect("the text is a module");
        let arguments = sized(5);
        assert!(to_hlo(&module, &Options { arguments }).is_ok());
        assert_eq!(
            refused(text, sized(4)),
            "`func.call`: result 0 is f32[4], its type says tensor<5xf32>"
        );
    }

    #[test]
    fn sizes_are_asked_for_by_argument() {
        let text = "func.func @main(%a: tensor<?x3xf32>, %b: tensor<2xf32>) -> tensor<2xf32> { \
                    return %b : tensor<2xf32> }";
        assert_eq!(
            refused(text, Vec::new()),
            "`func.func`: dimension 0 of argument 0 has no size give its sizes, such as: --shape 0=4x3"
        );
        let sized = || Argument::Sized(Dims::from_slice(&[4, 4]));
        assert_eq!(
            refused(text, vec![sized(), Argument::Declared, sized()]),
            "`func.func`: sizes are given for argument 2, it has arguments 0 to 1"
        );
        assert_eq!(
            refused(text, vec![sized()]),
            "`func.func`: argument 0: sizes [4, 4] do not fit f32[?,3]"
        );
    }

    #[test]
    fn sizes_that_are_values_fit_in_32_bits() {
        let text = "func.func @main(%a: tensor<?xi1>) -> tensor<i32> { \
                    %0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xi1>) -> tensor<i32> \
                    return %0 : tensor<i32> }";
        let sizes = Dims::from_slice(&[1 << 31]);
        assert_eq!(
            refused(text, vec![Argument::Sized(sizes)]),
            "`stablehlo.get_dimension_size`: dimension 0 is 2147483648, and a size as a value is at \
             most 2147483647"
        );
    }
}
