//! The scores of a dot as reshapes and a transpose show them.

use std::collections::VecDeque;

use crate::analysis::contraction;
use crate::analysis::contraction::Axis;
use crate::analysis::contraction::Product;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// A part of a coordinate: `number / step % size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// How many values it has.
    pub size: usize,
    /// By how much the coordinate grows with it.
    pub step: usize,
}

/// Whether digits, the most significant first, are those of a row-major number.
pub fn is_number(digits: &[Digit]) -> bool {
    let mut step = 1;
    digits.iter().rev().all(|digit| {
        let fits = digit.step == step || digit.size == 1;
        step *= digit.size;
        fits
    })
}

/// The dots and views that a value is made of, the value too.
pub(super) fn chain(module: &Module, value: InstrId) -> Vec<InstrId> {
    let mut out = vec![value];
    let mut id = value;
    while !matches!(module.instr(id).op, Op::Dot { .. }) {
        id = module.instr(id).operands[0];
        out.push(id);
    }
    out
}

/// The product of a dot, whose rows and batches are numbered as the dimensions of a value made of it
/// stand; with the digits of a row's number within the dot.
pub(super) fn seen_as(
    module: &Module,
    dot: InstrId,
    value: InstrId,
) -> Option<(Product, Vec<Digit>)> {
    let product = contraction::product_of(module, dot, false, None)?;
    [product.clone(), product.exchanged()]
        .into_iter()
        .find_map(|product| {
            let parts = parts(module, &product, value)?;
            let of = |axis: Axis| -> Vec<Digit> {
                let own = parts.iter().filter(|(own, _)| *own == axis);
                own.map(|(_, digit)| *digit).collect()
            };
            let ends_in_columns = parts.last().is_some_and(|(axis, _)| *axis == Axis::Column);
            (ends_in_columns && is_number(&of(Axis::Batch)) && is_number(&of(Axis::Column))).then(
                || {
                    let mut counts = [0; 3];
                    let output = parts.iter().map(|&(axis, _)| {
                        let count = &mut counts[axis as usize];
                        *count += 1;
                        (axis, *count - 1)
                    });
                    let output = output.collect();
                    let rows = of(Axis::Row);
                    let product = Product {
                        value,
                        output,
                        ..product
                    };
                    (product, rows)
                },
            )
        })
}

/// What each dimension of a value made of the product is of it.
fn parts(module: &Module, product: &Product, value: InstrId) -> Option<Vec<(Axis, Digit)>> {
    let instr = module.instr(value);
    let dims = &module.shape(value).as_array()?.dims;
    match &instr.op {
        _ if value == product.hero => Some(own_parts(product, dims)),
        Op::Transpose { dims } => {
            let inner = parts(module, product, instr.operands[0])?;
            Some(dims.iter().map(|&d| inner[d]).collect())
        }
        Op::Reshape { .. } | Op::Bitcast => {
            regrouped(parts(module, product, instr.operands[0])?, dims)
        }
        _ => None,
    }
}

/// The dimensions of the product itself.
fn own_parts(product: &Product, dims: &[usize]) -> Vec<(Axis, Digit)> {
    let part = |(d, &(axis, place)): (usize, &(Axis, usize))| {
        let below = product.output.iter().zip(dims);
        let below = below.filter(|((own, other), _)| *own == axis && *other > place);
        let step = below.map(|(_, &size)| size).product();
        let size = dims[d];
        (axis, Digit { size, step })
    };
    product.output.iter().enumerate().map(part).collect()
}

/// The same elements in other dimensions, each of which has to be one digit.
fn regrouped(from: Vec<(Axis, Digit)>, dims: &[usize]) -> Option<Vec<(Axis, Digit)>> {
    let mut rest: VecDeque<(Axis, Digit)> = from.into();
    rest.retain(|(_, digit)| digit.size != 1);
    let mut out = Vec::new();
    for &size in dims {
        if size == 1 {
            out.push((Axis::Batch, Digit { size, step: 1 }));
            continue;
        }
        let (axis, mut digit) = rest.pop_front()?;
        while digit.size < size {
            let (other, next) = rest.pop_front()?;
            if other != axis || digit.step != next.step * next.size {
                return None;
            }
            digit = Digit {
                size: digit.size * next.size,
                step: next.step,
            };
        }
        if !digit.size.is_multiple_of(size) {
            return None;
        }
        let below = digit.size / size;
        if below > 1 {
            let low = Digit {
                size: below,
                step: digit.step,
            };
            rest.push_front((axis, low));
        }
        let step = digit.step * below;
        out.push((axis, Digit { size, step }));
    }
    rest.is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_cut_and_put_together() {
        let digit = |size, step| (Axis::Row, Digit { size, step });
        // 150 rows as 50 times 3, and 3 times 50 of them as 10 times 15.
        let cut = regrouped(vec![digit(150, 1)], &[50, 1, 3]);
        let one = (Axis::Batch, Digit { size: 1, step: 1 });
        assert_eq!(cut, Some(vec![digit(50, 3), one, digit(3, 1)]));
        let whole = regrouped(vec![digit(50, 3), digit(3, 1)], &[10, 15]);
        assert_eq!(whole, Some(vec![digit(10, 15), digit(15, 1)]));
        let turned = vec![digit(3, 1), digit(50, 3)];
        assert_eq!(regrouped(turned, &[150]), None);
    }

    #[test]
    fn digits_of_a_number_stand_in_order() {
        let digit = |size, step| Digit { size, step };
        assert!(is_number(&[digit(3, 50), digit(50, 1)]));
        assert!(is_number(&[digit(1, 7), digit(50, 1)]));
        assert!(!is_number(&[digit(3, 1), digit(50, 3)]));
    }
}
