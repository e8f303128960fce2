//! Finds attention from the dot that ends it, upwards.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::analysis::attention::Attention;
use crate::analysis::attention::mask;
use crate::analysis::attention::views;
use crate::analysis::contraction;
use crate::analysis::contraction::Access;
use crate::analysis::contraction::Axis;
use crate::analysis::contraction::Product;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// Instructions looked at before the search gives up.
const MAX_LOOKS: usize = 64;

/// Attention that ends in `dot`, of a computation or of the body of `fusion`.
pub(super) fn find(module: &Module, dot: InstrId, fusion: Option<InstrId>) -> Option<Attention> {
    if !matches!(module.instr(dot).op, Op::Dot { .. }) {
        return None;
    }
    let turn = fusion.and_then(|fusion| contraction::turn(module, fusion, dot));
    let product = contraction::product_of(module, dot, false, turn)?;
    [product.clone(), product.exchanged()]
        .into_iter()
        .find_map(|values| {
            let finder = Finder::new(module, &values)?;
            finder.find(values)
        })
}

fn array(module: &Module, id: InstrId) -> Option<&ArrayShape> {
    module.shape(id).as_array()
}

fn count(module: &Module, id: InstrId) -> usize {
    array(module, id).map_or(0, ArrayShape::element_count)
}

/// Whether all elements are one.
pub(super) fn is_uniform(module: &Module, id: InstrId) -> bool {
    count(module, id) == 1
        || match &module.instr(id).op {
            Op::Broadcast { .. } => count(module, module.instr(id).operands[0]) == 1,
            _ => false,
        }
}

/// What the elements between the products are.
struct Finder<'m> {
    module: &'m Module,
    weights: InstrId,
    /// All rows of all batches.
    rows: usize,
    /// Keys of each.
    keys: usize,
}

/// What is computed from some instructions, element by element or row by row.
struct Walk<'a> {
    stops: &'a dyn Fn(InstrId) -> bool,
    known: BTreeMap<InstrId, bool>,
    looks: usize,
}

impl<'m> Finder<'m> {
    fn new(module: &'m Module, values: &Product) -> Option<Self> {
        let weights = values.lhs.operand;
        let finder = Self {
            module,
            weights,
            rows: values.batch * values.m,
            keys: values.k,
        };
        let shape = array(module, weights)?;
        let Access::Plain { summed, .. } = &values.lhs.access else {
            return None;
        };
        let is_last = summed.as_slice() == [shape.rank().checked_sub(1)?];
        // Rows and whole arrays are told apart by their sizes.
        (is_last && finder.keys > 1).then_some(finder)
    }

    fn find(&self, values: Product) -> Option<Attention> {
        let module = self.module;
        let sum = self.only(self.weights, &|id| self.is_reduce(id, BinaryOp::Add, 0.0))?;
        let summed = module.instr(sum).operands[0];
        let exp = self.unconverted(summed);
        let mut members = vec![sum];
        self.between(summed, &[exp], true, &mut members)?;
        self.between(self.weights, &[exp, sum], true, &mut members)?;
        let quotient = self.quotient(exp)?;
        let max = self.only(exp, &|id| {
            self.is_reduce(id, BinaryOp::Maximum, f64::NEG_INFINITY)
        })?;
        let compared = module.instr(max).operands[0];
        let masked = self.unconverted(compared);
        members.push(max);
        self.between(compared, &[masked], true, &mut members)?;
        self.between(exp, &[masked, max], true, &mut members)?;
        if !self.is_exponential(exp, masked) {
            return None;
        }
        let dot = self.only(masked, &|id| matches!(module.instr(id).op, Op::Dot { .. }))?;
        let turn = self.only(masked, &|id| {
            let instr = module.instr(id);
            matches!(instr.op, Op::Transpose { .. }) && self.viewed(instr.operands[0]) == dot
        });
        let (scores, rows) = views::seen_as(module, dot, turn.unwrap_or(dot))?;
        members.extend(views::chain(module, scores.value));
        self.between(masked, &[scores.value], false, &mut members)?;
        members.sort_unstable();
        members.dedup();
        self.is_closed(&members, values.hero).then_some(())?;
        let values = self.aligned(&scores, values)?;
        self.has_types(&scores, &values, [masked, exp, quotient, self.weights])
            .then_some(())?;
        let pure = self.is_plain_sum(module.instr(quotient).operands[1], sum);
        let mask = pure.then(|| mask::find(module, masked, &scores)).flatten();
        Some(Attention {
            scores,
            values,
            rows,
            masked,
            max,
            exp,
            sum,
            quotient,
            weights: self.weights,
            members,
            mask,
        })
    }

    /// The operands that may carry elements of the pattern to elements, or rows, of an instruction.
    fn carriers(&self, id: InstrId) -> Vec<InstrId> {
        let module = self.module;
        let instr = module.instr(id);
        let own = count(module, id);
        let same = |&o: &InstrId| count(module, o) == own;
        match &instr.op {
            op if op.is_elementwise() => instr.operands.iter().copied().filter(same).collect(),
            Op::Copy => instr.operands.to_vec(),
            Op::Reshape { .. } | Op::Bitcast => {
                let from = instr.operands[0];
                let (Some(a), Some(b)) = (array(module, from), array(module, id)) else {
                    return Vec::new();
                };
                let keeps = own == self.rows || a.dims.last() == b.dims.last();
                let is_view = same(&from) && a.ty.bit_width() == b.ty.bit_width() && keeps;
                if is_view { vec![from] } else { Vec::new() }
            }
            Op::Broadcast { dims } => {
                let from = instr.operands[0];
                let is_prefix = dims.iter().enumerate().all(|(i, &d)| i == d);
                let is_known = own == self.rows * self.keys || own == self.rows;
                if is_known && is_prefix && count(module, from) == self.rows {
                    vec![from]
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        }
    }

    /// The only wanted instruction that `from` is computed from by way of carriers, transposes and
    /// bodies of nothing else.
    fn only(&self, from: InstrId, is_wanted: &dyn Fn(InstrId) -> bool) -> Option<InstrId> {
        let mut seen = BTreeSet::new();
        let mut stack = vec![from];
        let mut found = None;
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > MAX_LOOKS {
                return None;
            }
            if is_wanted(id) {
                if found.is_some() {
                    return None;
                }
                found = Some(id);
                continue;
            }
            let instr = self.module.instr(id);
            let is_large = |id: InstrId| count(self.module, id) >= self.rows;
            match &instr.op {
                Op::Transpose { .. } => stack.push(instr.operands[0]),
                _ => stack.extend(self.carriers(id).into_iter().filter(|&o| is_large(o))),
            }
        }
        found
    }

    /// Adds what lies between `from` and the stops; with `uniform`, everything else that goes into it
    /// has to be one number.
    fn between(
        &self,
        from: InstrId,
        stops: &[InstrId],
        uniform: bool,
        members: &mut Vec<InstrId>,
    ) -> Option<()> {
        let stop = |id: InstrId| stops.contains(&id);
        let mut walk = Walk {
            stops: &stop,
            known: BTreeMap::new(),
            looks: 0,
        };
        if !self.depends(&mut walk, from)? {
            return None;
        }
        if stops.contains(&from) && stops.len() > 1 {
            return None;
        }
        for (&id, _) in walk.known.iter().filter(|(_, depends)| **depends) {
            members.push(id);
            let operands = &self.module.instr(id).operands;
            let is_inside =
                |o: &InstrId| stops.contains(o) || walk.known.get(o).copied().unwrap_or(false);
            let fits = |o: &InstrId| is_inside(o) || !uniform || is_uniform(self.module, *o);
            // The same value reaches an element by its carriers only.
            let carriers = self.carriers(id);
            let carried = |o: &InstrId| !is_inside(o) || carriers.contains(o);
            if !operands.iter().all(|o| fits(o) && carried(o)) {
                return None;
            }
        }
        members.extend(stops);
        Some(())
    }

    fn depends(&self, walk: &mut Walk<'_>, id: InstrId) -> Option<bool> {
        if (walk.stops)(id) {
            return Some(true);
        }
        if let Some(&known) = walk.known.get(&id) {
            return Some(known);
        }
        walk.looks += 1;
        if walk.looks > MAX_LOOKS {
            return None;
        }
        let mut depends = false;
        for operand in self.carriers(id) {
            depends |= self.depends(walk, operand)?;
        }
        walk.known.insert(id, depends);
        Some(depends)
    }

    /// A reduction of rows by that function from that number on.
    fn is_reduce(&self, id: InstrId, wanted: BinaryOp, start: f64) -> bool {
        let instr = self.module.instr(id);
        let Op::Reduce { dims, body, .. } = &instr.op else {
            return false;
        };
        let (&[of, init], Some(own)) = (instr.operands.as_slice(), array(self.module, id)) else {
            return false;
        };
        let Some(shape) = array(self.module, of) else {
            return false;
        };
        let in_type = |id: InstrId| array(self.module, id).is_some_and(|s| s.ty == own.ty);
        let comp = self.module.comp(*body);
        shape.element_count() == self.rows * self.keys
            && shape.dims.last() == Some(&self.keys)
            && dims.as_slice() == [shape.rank() - 1]
            && shape.ty == own.ty
            && comp.params.iter().copied().chain([comp.root]).all(in_type)
            && is_monoid(self.module, *body, wanted)
            && mask::number(self.module, init) == Some(start)
    }

    /// The division of `exp`, but for conversions the weights.
    fn quotient(&self, exp: InstrId) -> Option<InstrId> {
        let quotient = self.unconverted(self.weights);
        let instr = self.module.instr(quotient);
        let is_division = matches!(instr.op, Op::Binary(BinaryOp::Divide));
        (is_division && self.unconverted(instr.operands[0]) == exp).then_some(quotient)
    }

    /// What conversions, and views of all of it, are made of.
    fn unconverted(&self, mut id: InstrId) -> InstrId {
        loop {
            let instr = self.module.instr(id);
            match instr.op {
                Op::Convert | Op::Reshape { .. } | Op::Bitcast | Op::Copy
                    if self.carriers(id).len() == 1 =>
                {
                    id = instr.operands[0];
                }
                _ => return id,
            }
        }
    }

    /// What views are made of.
    fn viewed(&self, mut id: InstrId) -> InstrId {
        while matches!(self.module.instr(id).op, Op::Reshape { .. } | Op::Bitcast) {
            id = self.module.instr(id).operands[0];
        }
        id
    }

    /// Whether what is summed are exponentials of differences to what is masked, so that minus
    /// infinity adds nothing.
    fn is_exponential(&self, exp: InstrId, masked: InstrId) -> bool {
        let module = self.module;
        let exponential = module.instr(exp);
        if !matches!(exponential.op, Op::Unary(UnaryOp::Exp)) {
            return false;
        }
        let difference = module.instr(self.unconverted(exponential.operands[0]));
        matches!(difference.op, Op::Binary(BinaryOp::Subtract))
            && self.unconverted(difference.operands[0]) == masked
    }

    /// Whether the divisor is the sum and nothing else.
    fn is_plain_sum(&self, divisor: InstrId, sum: InstrId) -> bool {
        let mut id = divisor;
        while id != sum {
            let instr = self.module.instr(id);
            match instr.op {
                Op::Convert | Op::Reshape { .. } | Op::Bitcast | Op::Broadcast { .. } => {
                    id = instr.operands[0];
                }
                _ => return false,
            }
        }
        true
    }

    /// Whether nothing but the members and the last dot uses a member.
    fn is_closed(&self, members: &[InstrId], last: InstrId) -> bool {
        let is_member = |id: InstrId| members.binary_search(&id).is_ok();
        let comp = self.module.comp(self.module.instr(last).parent);
        let is_free = |&id: &InstrId| {
            let instr = self.module.instr(id);
            !is_member(id) || instr.control_predecessors.is_empty()
        };
        !is_member(comp.root)
            && !is_member(last)
            && comp.instrs.iter().all(is_free)
            && comp.instrs.iter().all(|&user| {
                let instr = self.module.instr(user);
                let reads = instr.operands.iter().any(|&o| is_member(o));
                let waits = instr.control_predecessors.iter().any(|&o| is_member(o));
                !waits && (!reads || is_member(user) || user == last)
            })
    }

    fn has_types(&self, scores: &Product, values: &Product, between: [InstrId; 4]) -> bool {
        let sums = scores.accumulator;
        let fits = |id: InstrId| {
            array(self.module, id)
                .is_some_and(|s| s.ty.is_float() && s.ty.bit_width() <= sums.bit_width())
        };
        matches!(sums, PrimitiveType::F32 | PrimitiveType::F64)
            && values.accumulator == sums
            && scores.operand_type.is_none()
            && values.operand_type.is_none()
            && between.into_iter().all(fits)
    }

    /// The second product with coordinates that mean the same as those of the first.
    fn aligned(&self, scores: &Product, values: Product) -> Option<Product> {
        let module = self.module;
        let Access::Plain {
            batch,
            free,
            summed,
        } = &values.lhs.access
        else {
            return None;
        };
        // Which coordinate each dimension of the weights belongs to.
        let rank = array(module, self.weights)?.rank();
        let axis = |d: usize| {
            let place = |list: &Dims| list.iter().position(|&x| x == d);
            let batch = place(batch).map(|p| (Axis::Batch, p));
            let row = place(free).map(|p| (Axis::Row, p));
            let column = place(summed).map(|p| (Axis::Column, p));
            batch.or(row).or(column)
        };
        let of_weights: Vec<(Axis, usize)> = (0..rank).map(axis).collect::<Option<_>>()?;
        let of_scores = &scores.output;
        let dims = |id: InstrId| array(module, id).map(|s| s.dims.clone());
        let (of_value, weights) = (dims(scores.value)?, dims(self.weights)?);
        let is_one_column = of_scores.iter().filter(|a| a.0 == Axis::Column).count() == 1
            && of_scores.last().is_some_and(|a| a.0 == Axis::Column);
        let axes = |list: &[(Axis, usize)]| list.iter().map(|a| a.0).collect::<Vec<_>>();
        let alike = of_value == weights && axes(of_scores) == axes(&of_weights)
            || in_order(of_scores) && in_order(&of_weights);
        let same = scores.batch == values.batch && scores.m == values.m && scores.n == values.k;
        if !(is_one_column && alike && same) {
            return None;
        }
        reordered(values, &of_weights)
    }
}

/// Whether batches come first, then rows, then columns.
pub(super) fn in_order(axes: &[(Axis, usize)]) -> bool {
    let rank = |axis: Axis| match axis {
        Axis::Batch => 0,
        Axis::Row => 1,
        Axis::Column => 2,
    };
    axes.windows(2).all(|w| rank(w[0].0) <= rank(w[1].0))
}

/// The parts of an axis in the order of the dimensions.
fn parts(axes: &[(Axis, usize)], axis: Axis) -> Vec<usize> {
    let own = axes.iter().filter(|a| a.0 == axis);
    own.map(|a| a.1).collect()
}

fn pick(list: &Dims, order: &[usize]) -> Dims {
    order.iter().map(|&i| list[i]).collect()
}

/// New numbers for parts that are put in that order.
fn renumber(product: &mut Product, axis: Axis, order: &[usize]) {
    for (own, part) in &mut product.output {
        if *own == axis
            && let Some(place) = order.iter().position(|o| o == part)
        {
            *part = place;
        }
    }
}

/// Numbers the batch and the rows as the dimensions of the left side stand, which belong to those axes.
fn reordered(mut product: Product, axes: &[(Axis, usize)]) -> Option<Product> {
    let (batches, rows) = (&parts(axes, Axis::Batch), &parts(axes, Axis::Row));
    for side in [&mut product.lhs, &mut product.rhs] {
        let Access::Plain { batch, .. } = &mut side.access else {
            return None;
        };
        *batch = pick(batch, batches);
    }
    let Access::Plain { free, .. } = &mut product.lhs.access else {
        return None;
    };
    *free = pick(free, rows);
    renumber(&mut product, Axis::Batch, batches);
    renumber(&mut product, Axis::Row, rows);
    Some(product)
}

/// Whether a computation combines its two parameters by that op.
fn is_monoid(module: &Module, comp: CompId, wanted: BinaryOp) -> bool {
    let computation = module.comp(comp);
    let root = module.root(comp);
    let mut operands = root.operands.to_vec();
    operands.sort_unstable();
    let mut params = computation.params.clone();
    params.sort_unstable();
    matches!(root.op, Op::Binary(op) if op == wanted) && params.len() == 2 && operands == params
}
