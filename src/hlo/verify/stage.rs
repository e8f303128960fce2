//! Rules T1 to T4: what a module's stage promises.

use std::collections::BTreeSet;

use crate::base::IdMap;
use crate::base::codes::STAGE;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::hlo::verify::Report;
use crate::hlo::visit;

pub(super) fn stage(report: &mut Report<'_>) {
    let stage = report.module.stage;
    let rules: [(Stage, fn(&mut Report<'_>)); 4] = [
        (Stage::Legal, legal),
        (Stage::LaidOut, laid_out),
        (Stage::Fused, fused),
        (Stage::Final, unique_names),
    ];
    for (from, rule) in rules {
        if stage >= from {
            rule(report);
        }
    }
}

/// Every instruction of every computation that the entry reaches.
fn reachable_instrs(report: &Report<'_>) -> Vec<InstrId> {
    let module = report.module;
    visit::reachable(module)
        .into_iter()
        .flat_map(|comp| module.comps[comp].instrs.iter().copied())
        .collect()
}

/// T1.
fn legal(report: &mut Report<'_>) {
    for id in reachable_instrs(report) {
        let op = &report.module.instrs[id].op;
        let gone = matches!(
            op,
            Op::Map { .. }
                | Op::BatchNormTraining { .. }
                | Op::BatchNormInference { .. }
                | Op::BatchNormGrad { .. }
                | Op::Domain(_)
                | Op::CopyStart { .. }
                | Op::CopyDone
                | Op::AsyncStart { .. }
                | Op::AsyncUpdate
                | Op::AsyncDone
                | Op::RaggedDot { .. }
                | Op::ScaledDot { .. }
                | Op::Scan { .. }
                | Op::StochasticConvert
                | Op::DynamicReshape
                | Op::GetDimensionSize { .. }
                | Op::SetDimensionSize { .. }
                | Op::AddDependency
        );
        if gone {
            let message = format!("a legal module has no `{}`", op.opcode());
            report.instr_error(STAGE, id, message);
        }
    }
}

/// T2.
fn laid_out(report: &mut Report<'_>) {
    for id in reachable_instrs(report) {
        let instr = &report.module.instrs[id];
        // A custom call keeps the layouts it was promised; bitcasts lead to it and from it.
        if matches!(
            instr.op,
            Op::CustomCall(_) | Op::Bitcast | Op::GetTupleElement { .. } | Op::Copy
        ) {
            continue;
        }
        let plain = instr.shape.leaves().iter().all(|(_, leaf)| {
            leaf.as_array().is_none_or(|array| {
                array
                    .layout
                    .as_ref()
                    .is_some_and(|l| l.is_row_major() && l.tiles.is_empty())
            })
        });
        if !plain {
            let message = format!(
                "`{}` has an array that is not laid out row-major",
                instr.name
            );
            report.instr_error(STAGE, id, message);
        }
    }
}

/// T3.
fn fused(report: &mut Report<'_>) {
    let module = report.module;
    let mut callers: IdMap<CompId, u32> = IdMap::new();
    let instrs = reachable_instrs(report);
    for &id in &instrs {
        visit::each_called(&module.instrs[id].op, |callee| callers[callee] += 1);
    }
    for id in instrs {
        let Op::Fusion { body, .. } = module.instrs[id].op else {
            continue;
        };
        if callers[body] != 1 {
            let name = &module.comps[body].name;
            let message = format!("fusion body `{name}` has {} callers", callers[body]);
            report.instr_error(STAGE, id, message);
        }
        for &inner in &module.comps[body].instrs {
            let op = &module.instrs[inner].op;
            let closed = !visit::op_has_side_effect(op)
                && !matches!(
                    op,
                    Op::Fusion { .. }
                        | Op::Call { .. }
                        | Op::While { .. }
                        | Op::Conditional { .. }
                        | Op::CustomCall(_)
                        | Op::Collective { .. }
                );
            if !closed {
                let message = format!("a fusion body has no `{}`", op.opcode());
                report.instr_error(STAGE, inner, message);
            }
        }
    }
}

/// T4.
fn unique_names(report: &mut Report<'_>) {
    let module = report.module;
    let mut seen = BTreeSet::new();
    for id in reachable_instrs(report) {
        let name = module.instrs[id].name.as_str();
        if !seen.insert(name) {
            report.instr_error(STAGE, id, format!("two instructions are named `{name}`"));
        }
    }
    let mut seen = BTreeSet::new();
    for comp in visit::reachable(module) {
        let name = module.comps[comp].name.as_str();
        if !seen.insert(name) {
            report.comp_error(STAGE, comp, format!("two computations are named `{name}`"));
        }
    }
}
