//! Rules A1 to A5: which results share memory with which parameters.

use std::collections::BTreeSet;

use crate::base::codes::ALIASING;
use crate::hlo::Module;
use crate::hlo::infer::text;
use crate::hlo::verify::Report;
use crate::shape::Shape;

pub(super) fn aliasing(report: &mut Report<'_>) {
    let module = report.module;
    let result = &module.root(module.entry).shape;
    let mut taken: BTreeSet<(usize, &[usize])> = BTreeSet::new();
    for (index, target) in &module.input_output_alias {
        let output = format!("output {:?}", index.as_slice());
        let Some(leaf) = result.at(index).filter(|s| !s.is_tuple()) else {
            let message = format!("{output} is aliased and is no leaf of {}", text(result));
            report.module_error(ALIASING, message);
            continue;
        };
        let input = format!(
            "parameter {} at {:?}",
            target.parameter,
            target.index.as_slice()
        );
        let Some(from) = parameter_leaf(module, target.parameter, &target.index) else {
            report.module_error(ALIASING, format!("{output} is aliased to {input}, no leaf"));
            continue;
        };
        if byte_size(leaf).is_none() || byte_size(leaf) != byte_size(from) {
            let (leaf, from) = (text(leaf), text(from));
            let message = format!("{output} of shape {leaf} is aliased to {input} of shape {from}");
            report.module_error(ALIASING, message);
        }
        if !taken.insert((target.parameter, &target.index)) {
            report.module_error(ALIASING, format!("{input} is aliased to two outputs"));
        }
    }
    for (number, index) in &module.buffer_donors {
        let input = format!("parameter {number} at {:?}", index.as_slice());
        if parameter_leaf(module, *number, index).is_none() {
            report.module_error(ALIASING, format!("buffer donor {input} is no leaf"));
        } else if taken.contains(&(*number, index.as_slice())) {
            report.module_error(ALIASING, format!("buffer donor {input} is aliased already"));
        }
    }
}

fn parameter_leaf<'m>(module: &'m Module, number: usize, index: &[usize]) -> Option<&'m Shape> {
    let id = *module.entry_comp().params.get(number)?;
    module.shape(id).at(index).filter(|s| !s.is_tuple())
}

/// Bytes of a leaf, unless they cannot be counted.
fn byte_size(leaf: &Shape) -> Option<usize> {
    match leaf.as_array() {
        Some(array) => array.checked_element_count().map(|_| array.byte_size()),
        None => Some(0),
    }
}
