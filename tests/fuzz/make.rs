//! Makes programs at random: what all families of ops need.
//!
//! Results of different engines are compared bit by bit wherever that makes sense. Arithmetic is
//! correctly rounded everywhere, so values stay exact through it; sums and products whose order is
//! free are made of whole numbers small enough that no order rounds; what is only near the true
//! value, such as an exponential, is moved but not computed with.

use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::number;
use xla_aot::literal::number::Number;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use super::calls;
use super::combine;
use super::contract;
use super::control;
use super::corners;
use super::devices;
use super::dynamic;
use super::elementwise;
use super::movement;
use super::program::Accuracy;
use super::program::Door;
use super::program::Line;
use super::program::Program;
use super::program::Source;
use super::program::shape_text;
use super::random::Random;
use super::special;

/// Element types, the usual ones more often.
const TYPES: &[PrimitiveType] = &[
    PrimitiveType::F32,
    PrimitiveType::F32,
    PrimitiveType::F32,
    PrimitiveType::S32,
    PrimitiveType::S32,
    PrimitiveType::F64,
    PrimitiveType::F16,
    PrimitiveType::BF16,
    PrimitiveType::BF16,
    PrimitiveType::Pred,
    PrimitiveType::Pred,
    PrimitiveType::S4,
    PrimitiveType::U4,
    PrimitiveType::S2,
    PrimitiveType::U2,
    PrimitiveType::S8,
    PrimitiveType::U8,
    PrimitiveType::S16,
    PrimitiveType::U16,
    PrimitiveType::U32,
    PrimitiveType::S64,
    PrimitiveType::U64,
    PrimitiveType::C64,
    PrimitiveType::C128,
    PrimitiveType::F8E5M2,
    PrimitiveType::F8E4M3,
    PrimitiveType::F8E4M3FN,
    PrimitiveType::F8E4M3B11FNUZ,
    PrimitiveType::F8E5M2FNUZ,
    PrimitiveType::F8E4M3FNUZ,
    PrimitiveType::F8E3M4,
    PrimitiveType::F8E8M0FNU,
    PrimitiveType::F4E2M1FN,
    PrimitiveType::F6E2M3FN,
    PrimitiveType::F6E3M2FN,
    PrimitiveType::S1,
    PrimitiveType::U1,
];

/// Elements an array has at most.
const MOST: usize = 3000;

/// A program in the making.
pub struct Maker {
    /// What chooses.
    pub random: Random,
    /// What there is already.
    pub program: Program,
}

/// A program from a seed.
pub fn program(seed: u64) -> Program {
    let mut maker = Maker {
        random: Random::new(seed),
        program: Program::default(),
    };
    if maker.random.one_in(16) {
        let several = [(2, 1), (1, 2), (2, 2), (3, 1), (1, 4), (4, 1), (2, 3)];
        maker.program.devices = maker.random.pick(&several);
        devices::any(&mut maker);
    }
    let steps = 1 + maker.random.below(7);
    let mut left = 40;
    while maker.program.lines.iter().filter(|l| is_result(l)).count() < steps && left > 0 {
        left -= 1;
        match maker.random.below(28) {
            0..7 => elementwise::any(&mut maker),
            7..12 => movement::any(&mut maker),
            12..16 => combine::any(&mut maker),
            16..18 => contract::any(&mut maker),
            18..20 => special::any(&mut maker),
            20..23 => control::any(&mut maker),
            23..26 => dynamic::any(&mut maker),
            26 => devices::any(&mut maker),
            _ => calls::any(&mut maker),
        };
    }
    maker.finish()
}

/// Whether a line can be a result of its own: an array that an op gives.
fn is_result(line: &Line) -> bool {
    line.array.is_some() && matches!(line.source, Source::Op(_))
}

/// Up to which magnitude all whole numbers are values of the type.
pub fn whole_limit(ty: PrimitiveType) -> f64 {
    match ty {
        PrimitiveType::F64 | PrimitiveType::C128 => 2f64.powi(53),
        PrimitiveType::F32 | PrimitiveType::C64 => 2f64.powi(24),
        PrimitiveType::F16 => 2f64.powi(11),
        PrimitiveType::BF16 => 2f64.powi(8),
        PrimitiveType::F8E4M3 | PrimitiveType::F8E4M3FN | PrimitiveType::F8E4M3FNUZ => 16.0,
        PrimitiveType::F8E5M2 | PrimitiveType::F8E5M2FNUZ | PrimitiveType::F8E4M3B11FNUZ => 8.0,
        PrimitiveType::F8E3M4 => 15.0,
        _ if ty.is_integer() || ty == PrimitiveType::Pred => f64::INFINITY,
        _ => 0.0,
    }
}

impl Maker {
    /// An element type.
    pub fn ty(&mut self) -> PrimitiveType {
        self.random.pick(TYPES)
    }

    /// An element type that passes.
    pub fn ty_where(&mut self, passes: impl Fn(PrimitiveType) -> bool) -> PrimitiveType {
        loop {
            let ty = self.ty();
            if passes(ty) {
                return ty;
            }
        }
    }

    /// The size of a dimension.
    pub fn size(&mut self) -> usize {
        match self.random.below(40) {
            0 => 0,
            1..10 => 1,
            10..30 => 2 + self.random.below(4),
            30..36 => 5 + self.random.below(12),
            _ => 17 + self.random.below(150),
        }
    }

    /// Dimensions of that rank.
    pub fn dims_of(&mut self, rank: usize) -> Vec<usize> {
        let mut dims = Vec::new();
        for _ in 0..rank {
            let mut size = self.size();
            while dims.iter().product::<usize>() * size > MOST {
                size /= 4;
            }
            dims.push(size);
        }
        dims
    }

    /// Dimensions.
    pub fn dims(&mut self) -> Vec<usize> {
        let rank = self.random.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 5]);
        self.dims_of(rank)
    }

    /// The line of that name.
    pub fn line(&self, name: usize) -> &Line {
        self.program.line(name)
    }

    /// Element type and dimensions of an array.
    pub fn array(&self, name: usize) -> (PrimitiveType, Vec<usize>) {
        let array = self.line(name).array.as_ref();
        let array = array.expect("operands are arrays");
        (array.ty, array.dims.to_vec())
    }

    fn push(&mut self, mut line: Line) -> usize {
        line.name = self.program.lines.len();
        self.program.lines.push(line);
        self.program.lines.len() - 1
    }

    /// Adds an op that gives an array.
    pub fn op(
        &mut self,
        ty: PrimitiveType,
        dims: &[usize],
        text: String,
        operands: &[usize],
        accuracy: Accuracy,
    ) -> usize {
        let shape = ArrayShape::new(ty, dims.iter().copied());
        self.array_op(shape, text, operands, accuracy)
    }

    /// Adds an op that gives an array, which may be dynamic.
    pub fn array_op(
        &mut self,
        shape: ArrayShape,
        text: String,
        operands: &[usize],
        accuracy: Accuracy,
    ) -> usize {
        self.push(Line {
            name: 0,
            shape: shape.to_string(),
            array: Some(shape),
            source: Source::Op(text),
            operands: operands.to_vec(),
            accuracy,
            whole: None,
            varies: false,
        })
    }

    /// Adds an op that gives a tuple of arrays, and the reading of each of them; their names.
    pub fn tuple_op(
        &mut self,
        parts: &[(PrimitiveType, Vec<usize>, Accuracy)],
        text: String,
        operands: &[usize],
    ) -> Vec<usize> {
        let shapes: Vec<String> = parts.iter().map(|(t, d, _)| shape_text(*t, d)).collect();
        let tuple = self.other_op(&format!("({})", shapes.join(", ")), text, operands);
        self.parts_of(tuple, parts)
    }

    /// Adds a computation under a new name; `text` is given the name.
    pub fn other(&mut self, text: impl FnOnce(&str) -> String) -> String {
        let name = format!("f{}", self.program.others.len());
        let text = text(&name);
        self.program.others.push((name.clone(), text));
        name
    }

    /// An argument with corner values.
    pub fn parameter(&mut self, ty: PrimitiveType, dims: &[usize]) -> usize {
        let shape = ArrayShape::new(ty, dims.iter().copied());
        let values = corners::tamed(ty);
        let mut data = Vec::new();
        for _ in 0..shape.element_count() {
            let at = self.random.below(values.len());
            data.extend_from_slice(&values[at]);
        }
        let name = self.argument(ArrayLiteral::new(shape, data), None);
        self.program.lines[name].varies = true;
        name
    }

    /// An argument of whole numbers from `low` to `high`.
    pub fn whole(&mut self, ty: PrimitiveType, dims: &[usize], low: i64, high: i64) -> usize {
        let low = match ty.kind() {
            ElementKind::Unsigned | ElementKind::Pred => 0,
            _ => low,
        };
        let shape = ArrayShape::new(ty, dims.iter().copied());
        let width = ty.byte_width();
        let mut data = vec![0; shape.element_count() * width];
        for out in data.chunks_exact_mut(width) {
            let value = self.random.between(low, high);
            let number = match ty.kind() {
                ElementKind::Pred => Number::Int(i128::from(value & 1)),
                ElementKind::Complex => {
                    Number::Complex(value as f64, self.random.between(low, high) as f64)
                }
                ElementKind::Float => Number::Float(value as f64),
                _ => Number::Int(i128::from(value)),
            };
            number::encode(ty, number, out);
        }
        let most = low.abs().max(high) as f64;
        let name = self.argument(ArrayLiteral::new(shape, data), Some(most));
        self.program.lines[name].varies = true;
        name
    }

    /// Says that an argument is an array of real sizes within that shape.
    pub fn bound(&mut self, name: usize, shape: ArrayShape) {
        let line = &mut self.program.lines[name];
        line.shape = shape.to_string();
        line.array = Some(shape);
    }

    /// An argument of these numbers, the same on every device.
    pub fn given(
        &mut self,
        ty: PrimitiveType,
        dims: &[usize],
        numbers: impl Iterator<Item = Number>,
    ) -> usize {
        let shape = ArrayShape::new(ty, dims.iter().copied());
        let width = ty.byte_width();
        let mut data = vec![0; shape.element_count() * width];
        for (out, number) in data.chunks_exact_mut(width).zip(numbers) {
            number::encode(ty, number, out);
        }
        self.argument(ArrayLiteral::new(shape, data), None)
    }

    /// Adds an op that gives something else than an array.
    pub fn other_op(&mut self, shape: &str, text: String, operands: &[usize]) -> usize {
        self.push(Line {
            name: 0,
            array: None,
            shape: shape.to_owned(),
            source: Source::Op(text),
            operands: operands.to_vec(),
            accuracy: Accuracy::Exact,
            whole: None,
            varies: false,
        })
    }

    /// Adds the reading of every part of a tuple; their names.
    pub fn parts_of(
        &mut self,
        tuple: usize,
        parts: &[(PrimitiveType, Vec<usize>, Accuracy)],
    ) -> Vec<usize> {
        let mut names = Vec::new();
        for (i, (ty, dims, accuracy)) in parts.iter().enumerate() {
            let text = format!("get-tuple-element(v{tuple}), index={i}");
            names.push(self.op(*ty, dims, text, &[tuple], *accuracy));
        }
        names
    }

    fn argument(&mut self, value: ArrayLiteral, whole: Option<f64>) -> usize {
        let shape = value.shape().clone();
        self.push(Line {
            name: 0,
            shape: shape_text(shape.ty, &shape.dims),
            array: Some(shape),
            source: Source::Parameter(value),
            operands: Vec::new(),
            accuracy: Accuracy::Bits,
            whole,
            varies: false,
        })
    }

    /// Numbers to compute exactly with: some that are there, or an argument.
    pub fn exact(&mut self, passes: impl Fn(PrimitiveType, &[usize]) -> bool) -> usize {
        self.found(|line, array| line.accuracy.is_exact() && passes(array.ty, &array.dims))
            .unwrap_or_else(|| {
                loop {
                    let (ty, dims) = (self.ty(), self.dims());
                    if passes(ty, &dims) {
                        break self.parameter(ty, &dims);
                    }
                }
            })
    }

    /// Exact numbers of exactly that shape.
    pub fn exact_of(&mut self, ty: PrimitiveType, dims: &[usize]) -> usize {
        self.found(|line, array| line.accuracy.is_exact() && array.ty == ty && *array.dims == *dims)
            .unwrap_or_else(|| match self.random.below(4) {
                0 => self.splat(ty, dims),
                _ => self.parameter(ty, dims),
            })
    }

    /// Anything that is there and passes, or an argument.
    pub fn value(&mut self, passes: impl Fn(PrimitiveType, &[usize]) -> bool) -> usize {
        self.found(|_, array| passes(array.ty, &array.dims))
            .unwrap_or_else(|| self.exact(passes))
    }

    /// Numbers of that shape whose sums are exact when `count` products are summed in type `sum`.
    pub fn summable(&mut self, ty: PrimitiveType, dims: &[usize], most: i64) -> usize {
        let any = ty.is_integer() || ty == PrimitiveType::Pred;
        let found = self.found(|line, array| {
            let small = line.whole.is_some_and(|whole| whole <= most as f64);
            array.ty == ty && *array.dims == *dims && (any || small)
        });
        match found {
            Some(name) if self.random.one_in(2) => name,
            _ if any && self.random.one_in(3) => self.parameter(ty, dims),
            _ => self.whole(ty, dims, -most, most),
        }
    }

    fn found(&mut self, passes: impl Fn(&Line, &ArrayShape) -> bool) -> Option<usize> {
        self.among(|line, array| !array.is_dynamic() && passes(line, array))
    }

    /// A dynamic array that is there and passes.
    pub fn found_dynamic(&mut self, passes: impl Fn(&Line, &ArrayShape) -> bool) -> Option<usize> {
        self.among(|line, array| array.is_dynamic() && passes(line, array))
    }

    fn among(&mut self, passes: impl Fn(&Line, &ArrayShape) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = self
            .program
            .lines
            .iter()
            .filter(|line| line.array.as_ref().is_some_and(|array| passes(line, array)))
            .map(|line| line.name)
            .collect();
        if fitting.is_empty() || self.random.one_in(4) {
            return None;
        }
        // What came last rather than what came first, so that ops follow one another.
        let at = self
            .random
            .below(fitting.len())
            .max(self.random.below(fitting.len()));
        Some(fitting[at])
    }

    /// An array of one small number.
    pub fn splat(&mut self, ty: PrimitiveType, dims: &[usize]) -> usize {
        let text = match ty.kind() {
            ElementKind::Pred => self.random.pick(&["true", "false"]),
            ElementKind::Complex => self.random.pick(&["(0, 0)", "(1, 0)", "(-0, 2)"]),
            ElementKind::Unsigned => self.random.pick(&["0", "1"]),
            ElementKind::Signed if ty == PrimitiveType::S1 => self.random.pick(&["0", "-1"]),
            ElementKind::Signed => self.random.pick(&["0", "1", "-1"]),
            ElementKind::Float if ty == PrimitiveType::F8E8M0FNU => "1",
            ElementKind::Float => self.random.pick(&["0", "1", "-1", "2", "0.5"]),
        };
        let scalar = self.op(ty, &[], format!("constant({text})"), &[], Accuracy::Bits);
        if dims.is_empty() {
            return scalar;
        }
        let text = format!("broadcast(v{scalar}), dimensions={{}}");
        self.op(ty, dims, text, &[scalar], Accuracy::Bits)
    }

    /// The accuracy of what moves that value.
    pub fn moved(&self, name: usize) -> Accuracy {
        self.line(name).accuracy
    }

    /// Says that a result holds whole numbers, where its operand does.
    pub fn stays_whole(&mut self, from: usize, to: usize) -> usize {
        self.program.lines[to].whole = self.program.lines[from].whole;
        to
    }

    /// Says of some ops that they come before others.
    fn order(&mut self) {
        let count = self.program.lines.len();
        for _ in 0..1 + self.random.below(3) {
            let (a, b) = (self.random.below(count), self.random.below(count));
            if a != b {
                self.program.edges.push((a.min(b), a.max(b)));
            }
        }
    }

    /// Lets results lie where arguments of their shapes were. Several devices run twice, and need
    /// their arguments again.
    fn reuse(&mut self) {
        let lines = &self.program.lines;
        let mut free: Vec<&Line> = lines
            .iter()
            .filter(|line| matches!(line.source, Source::Parameter(_)))
            .collect();
        if self.program.device_count() > 1 {
            return;
        }
        for &name in &self.program.outputs {
            let shape = &lines[name].shape;
            if let Some(at) = free.iter().position(|line| line.shape == *shape) {
                self.program.aliases.push((name, free.remove(at).name));
            }
        }
    }

    fn finish(mut self) -> Program {
        let results: Vec<usize> = self
            .program
            .lines
            .iter()
            .filter(|line| is_result(line))
            .map(|line| line.name)
            .collect();
        let all = self.random.one_in(2);
        let used: Vec<usize> = self
            .program
            .lines
            .iter()
            .flat_map(|line| line.operands.clone())
            .collect();
        self.program.outputs = results
            .into_iter()
            .filter(|name| all || !used.contains(name))
            .collect();
        if self.random.one_in(5) {
            let door = self.program.lines.iter().filter(|line| {
                self.program.outputs.contains(&line.name)
                    || matches!(line.source, Source::Parameter(_))
            });
            let ranks: Vec<(usize, usize)> = door
                .filter_map(|line| Some((line.name, line.array.as_ref()?.rank())))
                .filter(|(_, rank)| *rank > 1)
                .collect();
            for (name, rank) in ranks {
                let order = self.random.order(rank);
                self.program.layouts.push((name, order));
            }
        }
        if self.random.one_in(6) {
            self.order();
        }
        if self.random.one_in(6) {
            self.reuse();
        }
        self.program.door = match self.random.below(10) {
            0 if self.program.outputs.len() == 1 => Door::Bare,
            1 => Door::Nested,
            _ => Door::Tuple,
        };
        self.program.without_dead()
    }
}
