//! Formulas over arrays of one size, written with the operators of Rust.
//!
//! A [`Formula`] holds the nodes; a [`Term`] is a handle to one. Nothing is built before
//! [`Formula::build`], which appends the nodes to a computation in the order they were written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Add;
use std::ops::Div;
use std::ops::Mul;
use std::ops::Neg;
use std::ops::Sub;

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::UnaryOp;
use crate::literal::Number;
use crate::literal::number;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// One step of a formula; operands are numbers of earlier nodes.
#[derive(Clone, Copy, Debug)]
enum Node {
    Given(InstrId),
    Constant(Number),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Compare(ComparisonDirection, usize, usize),
    Select(usize, usize, usize),
    Convert(usize),
    Bits(usize),
}

/// The nodes of a formula with the element type of each.
#[derive(Debug, Default)]
pub struct Formula {
    nodes: RefCell<Vec<(Node, PrimitiveType)>>,
}

/// The value of one node.
#[derive(Clone, Copy, Debug)]
pub struct Term<'f> {
    formula: &'f Formula,
    id: usize,
}

impl Formula {
    /// An array that is there.
    pub fn given(&self, b: &Builder<'_>, x: InstrId) -> Result<Term<'_>> {
        Ok(self.push(Node::Given(x), b.ty(x)?))
    }
    fn push(&self, node: Node, ty: PrimitiveType) -> Term<'_> {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push((node, ty));
        Term {
            formula: self,
            id: nodes.len() - 1,
        }
    }
    fn constant(&self, ty: PrimitiveType, number: Number) -> Term<'_> {
        self.push(Node::Constant(number), ty)
    }
    /// Appends all nodes to a computation, arrays of the sizes `dims`, and gives the instruction of
    /// `result`.
    pub fn build(&self, b: &mut Builder<'_>, dims: &Dims, result: Term<'_>) -> Result<InstrId> {
        let nodes = self.nodes.borrow();
        let mut needed = vec![false; nodes.len()];
        needed[result.id] = true;
        for (id, (node, _)) in nodes.iter().enumerate().rev() {
            if needed[id] {
                node.for_each_operand(|operand| needed[operand] = true);
            }
        }
        let mut built: Vec<Option<InstrId>> = vec![None; nodes.len()];
        let mut constants: BTreeMap<(PrimitiveType, Vec<u8>), InstrId> = BTreeMap::new();
        for (id, &(node, ty)) in nodes.iter().enumerate() {
            if !needed[id] {
                continue;
            }
            built[id] = Some(match node {
                Node::Constant(value) => {
                    let mut bytes = vec![0; ty.byte_width()];
                    number::encode(ty, value, &mut bytes);
                    match constants.get(&(ty, bytes.clone())) {
                        Some(&same) => same,
                        None => {
                            let scalar = b.constant_number(ty, value);
                            let full = b.broadcast_scalar(scalar, dims)?;
                            constants.insert((ty, bytes), full);
                            full
                        }
                    }
                }
                _ => append(b, node, ty, &built)?,
            });
        }
        operand(&built, result.id)
    }
}

impl Node {
    fn for_each_operand(self, mut visit: impl FnMut(usize)) {
        match self {
            Self::Given(_) | Self::Constant(_) => {}
            Self::Unary(_, a) | Self::Convert(a) | Self::Bits(a) => visit(a),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) => {
                visit(a);
                visit(b);
            }
            Self::Select(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
        }
    }
}

/// The instruction of a node that stands before the one that uses it.
fn operand(built: &[Option<InstrId>], id: usize) -> Result<InstrId> {
    built[id].ok_or_else(|| {
        let message = "a formula uses a node that is not built";
        crate::base::Diagnostic::internal(crate::base::codes::INTERNAL, message)
    })
}

fn append(
    b: &mut Builder<'_>,
    node: Node,
    ty: PrimitiveType,
    built: &[Option<InstrId>],
) -> Result<InstrId> {
    let of = |id: usize| operand(built, id);
    match node {
        Node::Given(id) => Ok(id),
        Node::Constant(value) => Ok(b.constant_number(ty, value)),
        Node::Unary(op, x) => b.unary(op, of(x)?),
        Node::Binary(op, x, y) => b.binary(op, of(x)?, of(y)?),
        Node::Compare(direction, x, y) => b.compare(direction, of(x)?, of(y)?),
        Node::Select(p, x, y) => b.select(of(p)?, of(x)?, of(y)?),
        Node::Convert(x) => b.convert(of(x)?, ty),
        Node::Bits(x) => b.bitcast_convert(of(x)?, ty),
    }
}

impl<'f> Term<'f> {
    /// Its element type.
    pub fn ty(self) -> PrimitiveType {
        self.formula.nodes.borrow()[self.id].1
    }
    /// The number at every element, in the type of this term.
    pub fn like(self, value: f64) -> Self {
        self.formula.constant(self.ty(), Number::Float(value))
    }
    /// The integer at every element, in the type of this term.
    pub fn like_int(self, value: i128) -> Self {
        self.formula.constant(self.ty(), Number::Int(value))
    }
    /// The largest finite number of its type.
    pub fn largest(self) -> Self {
        self.like(crate::front::stablehlo::chlo::float_limits(self.ty()).largest)
    }
    /// The smallest normal number of its type.
    pub fn smallest_normal(self) -> Self {
        self.like(crate::front::stablehlo::chlo::float_limits(self.ty()).smallest_normal)
    }
    /// The smallest positive number of its type.
    pub fn smallest(self) -> Self {
        self.like(crate::front::stablehlo::chlo::float_limits(self.ty()).smallest)
    }
    /// A unary op that keeps the type, or gives the part of a complex number.
    pub fn unary(self, op: UnaryOp) -> Self {
        let ty = match op {
            UnaryOp::Real | UnaryOp::Imag | UnaryOp::Abs => self.ty().real_part(),
            UnaryOp::IsFinite => PrimitiveType::Pred,
            _ => self.ty(),
        };
        self.formula.push(Node::Unary(op, self.id), ty)
    }
    /// A binary op.
    pub fn binary(self, op: BinaryOp, other: Self) -> Self {
        let ty = match op {
            BinaryOp::Complex => self.ty().complex_of().unwrap_or(self.ty()),
            _ => self.ty(),
        };
        self.formula.push(Node::Binary(op, self.id, other.id), ty)
    }
    fn compare(self, direction: ComparisonDirection, other: Self) -> Self {
        let node = Node::Compare(direction, self.id, other.id);
        self.formula.push(node, PrimitiveType::Pred)
    }
    /// `self == other`
    pub fn eq(self, other: Self) -> Self {
        self.compare(ComparisonDirection::Eq, other)
    }
    /// `self != other`
    pub fn ne(self, other: Self) -> Self {
        self.compare(ComparisonDirection::Ne, other)
    }
    /// `self < other`
    pub fn lt(self, other: Self) -> Self {
        self.compare(ComparisonDirection::Lt, other)
    }
    /// `self <= other`
    pub fn le(self, other: Self) -> Self {
        self.compare(ComparisonDirection::Le, other)
    }
    /// `self > other`
    pub fn gt(self, other: Self) -> Self {
        self.compare(ComparisonDirection::Gt, other)
    }
    /// `self >= other`
    pub fn ge(self, other: Self) -> Self {
        self.compare(ComparisonDirection::Ge, other)
    }
    /// `yes` where this predicate holds, else `no`.
    pub fn select(self, yes: Self, no: Self) -> Self {
        let node = Node::Select(self.id, yes.id, no.id);
        self.formula.push(node, yes.ty())
    }
    /// The values in another type.
    pub fn convert(self, ty: PrimitiveType) -> Self {
        if ty == self.ty() {
            return self;
        }
        self.formula.push(Node::Convert(self.id), ty)
    }
    /// The bits in another type of the same width.
    pub fn bits(self, ty: PrimitiveType) -> Self {
        self.formula.push(Node::Bits(self.id), ty)
    }
    /// Absolute value.
    pub fn abs(self) -> Self {
        self.unary(UnaryOp::Abs)
    }
    /// Square root.
    pub fn sqrt(self) -> Self {
        self.unary(UnaryOp::Sqrt)
    }
    /// Natural logarithm.
    pub fn log(self) -> Self {
        self.unary(UnaryOp::Log)
    }
    /// `log(1 + self)`
    pub fn log1p(self) -> Self {
        self.unary(UnaryOp::Log1p)
    }
    /// Exponential.
    pub fn exp(self) -> Self {
        self.unary(UnaryOp::Exp)
    }
    /// The integer at or below.
    pub fn floor(self) -> Self {
        self.unary(UnaryOp::Floor)
    }
    /// Real part.
    pub fn real(self) -> Self {
        self.unary(UnaryOp::Real)
    }
    /// Imaginary part.
    pub fn imag(self) -> Self {
        self.unary(UnaryOp::Imag)
    }
    /// The complex number with this real part.
    pub fn complex(self, imag: Self) -> Self {
        self.binary(BinaryOp::Complex, imag)
    }
    /// The angle of the point `(x, self)`.
    pub fn atan2(self, x: Self) -> Self {
        self.binary(BinaryOp::Atan2, x)
    }
    /// The greater one.
    pub fn max(self, other: Self) -> Self {
        self.binary(BinaryOp::Maximum, other)
    }
    /// The lesser one.
    pub fn min(self, other: Self) -> Self {
        self.binary(BinaryOp::Minimum, other)
    }
    /// Bitwise or logical and.
    pub fn and(self, other: Self) -> Self {
        self.binary(BinaryOp::And, other)
    }
    /// Bitwise or logical or.
    pub fn or(self, other: Self) -> Self {
        self.binary(BinaryOp::Or, other)
    }
    /// The polynomial with these coefficients, highest power first, by Horner's rule.
    pub fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut terms = coefficients.iter().map(|&c| self.like(c));
        let first = terms.next().unwrap_or_else(|| self.like(0.0));
        terms.fold(first, |sum, c| sum * self + c)
    }
}

impl Add for Term<'_> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.binary(BinaryOp::Add, other)
    }
}
impl Sub for Term<'_> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.binary(BinaryOp::Subtract, other)
    }
}
impl Mul for Term<'_> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        self.binary(BinaryOp::Multiply, other)
    }
}
impl Div for Term<'_> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        self.binary(BinaryOp::Divide, other)
    }
}
impl Neg for Term<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.unary(UnaryOp::Negate)
    }
}
