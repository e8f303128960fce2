//! The verifier: is a module what it claims to be?
//!
//! It gathers all errors, and is total: any module that a reader can make gives a list, in time
//! linear in its size. Later rules rest on earlier ones, so a group is skipped when one before it
//! found something.
//!
//! Structure, `XA2003` (`structure.rs`):
//! - S1: every instruction, parameter, root, operand, control predecessor and called computation that
//!   is named is there; so is the entry computation.
//! - S2: an instruction stands in one computation's list, once, and knows that computation.
//! - S3: the root stands in its computation's list.
//! - S4: operands stand in the same computation, before their users.
//! - S5: control predecessors stand in the same computation, before what they hold back.
//! - S6: parameters are numbered from zero without gaps, and the parameter list is in that order.
//! - S7: no computation calls itself, directly or through others.
//! - S8: a computation applied to elements (by reduce, map, sort, scatter, ...) has no side effects
//!   and no collectives.
//! - S9: nothing calls the entry computation.
//! - S10: the entry layout has the parameters and the result of the entry computation.
//!
//! Operations (`ops.rs`):
//! - O1, `XA2001`: operands and attributes keep the rules of the opcode ([`crate::hlo::infer`]).
//! - O2, `XA2002`: the declared shape is the inferred one, layouts and dynamism aside.
//! - O3, `XA2001`: a layout orders each dimension once.
//! - O4, `XA2001`: a done or update op takes what its start op gives, of the same channel, and a start
//!   op has one user.
//! - O5, `XA2001`: replication flags of a parameter are one a leaf.
//! - O6, `XA2001`: an array has no more elements than memory can have bytes.
//!
//! Aliasing, `XA2005` (`aliasing.rs`):
//! - A1: an aliased output is an array or token leaf of the result.
//! - A2: what it shares memory with is a leaf of a parameter.
//! - A3: the two have the same size in bytes.
//! - A4: no parameter leaf is shared by two outputs.
//! - A5: a buffer donor is a leaf of a parameter, and no aliased one.
//!
//! Devices, `XA2001` (`devices.rs`), once it is known how many there are ([`check_devices`]): groups
//! and pairs of collectives name devices that are there, each once and, where all must take part,
//! every one; shapes have the sizes that the groups give.
//!
//! Stages, `XA2004` (`stage.rs`); each stage keeps the promises of those before it:
//! - T1, Legal: no op that `emit` has no kernel or thunk for is left.
//! - T2, LaidOut: every array has the plain row-major layout, next to custom calls excepted.
//! - T3, Fused: a fusion body has one caller, calls only element functions, and has no side effects.
//! - T4, Final: names of instructions, and of computations, are unique in the module.

mod aliasing;
mod devices;
mod ops;
mod stage;
mod structure;

use crate::base::Code;
use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::infer::text;
pub use devices::check_devices;
pub use devices::group_mode;
pub use devices::listed_groups;

/// Everything that is wrong with a module; empty when nothing is.
pub fn verify(module: &Module) -> Vec<Diagnostic> {
    let mut report = Report {
        module,
        found: Vec::new(),
    };
    let groups: [fn(&mut Report<'_>); 6] = [
        structure::ids,
        structure::computations,
        structure::calls,
        ops::ops,
        aliasing::aliasing,
        stage::stage,
    ];
    for group in groups {
        group(&mut report);
        if !report.found.is_empty() {
            break;
        }
    }
    report.found
}

/// The first thing that is wrong with a module, with the number of others as a note.
///
/// # Errors
/// `XA2001` to `XA2005`.
pub fn check(module: &Module) -> Result<()> {
    let mut found = verify(module);
    if found.is_empty() {
        return Ok(());
    }
    let rest = found.len() - 1;
    let first = Box::new(found.swap_remove(0));
    if rest == 0 {
        Err(first)
    } else {
        Err(first.note(format!("{rest} more errors were found")))
    }
}

/// What has been found so far.
struct Report<'m> {
    module: &'m Module,
    found: Vec<Diagnostic>,
}

impl<'m> Report<'m> {
    /// Something is wrong with the module as a whole.
    fn module_error(&mut self, code: Code, message: impl Into<String>) {
        self.found.push(*Diagnostic::error(code, message));
    }
    /// Something is wrong with a computation.
    fn comp_error(&mut self, code: Code, comp: CompId, message: impl Into<String>) {
        let name = self.module.comps[comp].name.clone();
        let error = Diagnostic::error(code, message);
        self.found
            .push(*error.at(Location::Path(format!("computation `{name}`"))));
    }
    /// Something is wrong with an instruction.
    fn instr_error(&mut self, code: Code, id: InstrId, message: impl Into<String>) {
        self.instr_diagnostic(id, Diagnostic::error(code, message));
    }
    fn instr_diagnostic(&mut self, id: InstrId, error: Box<Diagnostic>) {
        let module: &'m Module = self.module;
        self.found.push(*error.or_at(|| location(module, id)));
    }
}

/// Where an instruction is, for diagnostics.
pub fn location(module: &Module, id: InstrId) -> Location {
    let instr = &module.instrs[id];
    let comp = module.comps.get(instr.parent);
    let operands: Vec<&str> = instr
        .operands
        .iter()
        .take(8)
        .map(|&o| module.instrs.get(o).map_or("?", |o| o.name.as_str()))
        .collect();
    let more = if instr.operands.len() > 8 {
        ", ..."
    } else {
        ""
    };
    let mut shape = text(&instr.shape);
    if shape.len() > 200 {
        let cut = (0..=200).rev().find(|&i| shape.is_char_boundary(i));
        shape.truncate(cut.unwrap_or(0));
        shape.push_str("...");
    }
    Location::Instruction {
        computation: comp.map_or_else(|| "?".to_owned(), |c| c.name.clone()),
        text: format!(
            "{} = {shape} {}({}{more})",
            instr.name,
            instr.op.opcode(),
            operands.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::path::PathBuf;

    use super::*;

    fn programs(folder: &Path, out: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                programs(&path, out);
            } else if path.extension().is_some_and(|e| e == "pb") {
                out.push(path);
            }
        }
    }

    #[test]
    fn corpus_modules_are_valid() {
        let mut paths = Vec::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        programs(&root.join("tests/programs"), &mut paths);
        programs(&root.join("../shared/corpus"), &mut paths);
        let mut bad = Vec::new();
        for path in &paths {
            let bytes = std::fs::read(path).expect("the file can be read");
            let module = match crate::wire::hlo::decode_any(&bytes) {
                Ok(module) => module,
                Err(error) => {
                    println!("{}: {error}", path.display());
                    continue;
                }
            };
            for error in verify(&module) {
                bad.push(format!("{}: {error}", path.display()));
            }
        }
        assert!(bad.is_empty(), "{} programs\n{}", bad.len(), bad.join("\n"));
    }

    #[test]
    fn damaged_modules_never_panic() {
        let mut paths = Vec::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        programs(&root.join("tests/programs"), &mut paths);
        paths.sort();
        // A linear congruential generator with a fixed seed; constants of Knuth's MMIX.
        let mut state = 2u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut read = 0;
        for path in &paths {
            let bytes = std::fs::read(path).expect("the file can be read");
            if bytes.len() > 8000 {
                continue;
            }
            for _ in 0..8 {
                let mut damaged = bytes.clone();
                for _ in 0..1 + next() % 4 {
                    let at = next() % damaged.len();
                    damaged[at] = match next() % 3 {
                        0 => next() as u8,
                        1 => damaged[at].wrapping_add(1),
                        _ => damaged[at] ^ 1 << (next() % 8),
                    };
                }
                if let Ok(module) = crate::wire::hlo::decode_any(&damaged) {
                    read += 1;
                    let _ = verify(&module);
                }
            }
        }
        assert!(
            paths.is_empty() || read > 0,
            "some damage is not noticed by the reader"
        );
    }
}
