//! Gives every instruction and computation a name that is unique and made of plain characters.
//!
//! A name that is already so is kept; the second of a name gets the next free number: `add`,
//! `add.1`, `add.2`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::IdSet;
use crate::hlo::Module;

/// Renames what has to be renamed; whether anything was.
pub fn canonicalize_names(module: &mut Module) -> bool {
    let mut changed = false;
    let mut names = Names::default();
    for computation in module.comps.values_mut() {
        let name = names.unique(&computation.name, "computation");
        changed |= name != computation.name;
        computation.name = name;
    }
    let mut names = Names::default();
    let mut seen = IdSet::new();
    // The entry's names are the ones that callers see, so they are the first to be kept.
    let comps = std::iter::once(module.entry_comp()).chain(module.comps.values());
    let listed: Vec<_> = comps.flat_map(|c| c.instrs.clone()).collect();
    for id in listed {
        if !seen.insert(id) {
            continue;
        }
        let instr = &mut module.instrs[id];
        let name = names.unique(&instr.name, instr.op.opcode());
        changed |= name != instr.name;
        instr.name = name;
    }
    changed
}

/// The names given so far.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    /// The next number to try for a stem.
    next: BTreeMap<String, u64>,
}

impl Names {
    fn unique(&mut self, name: &str, otherwise: &str) -> String {
        let plain = plain(if name.is_empty() { otherwise } else { name });
        if self.taken.insert(plain.clone()) {
            return plain;
        }
        let stem = stem(&plain).to_owned();
        let next = self.next.entry(stem.clone()).or_insert(1);
        loop {
            let numbered = format!("{stem}.{next}");
            *next += 1;
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// The name without a number at the end.
fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, number)) if !stem.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            stem
        }
        _ => name,
    }
}

/// Letters, digits, `_`, `-` and `.`, not starting with a digit, `-` or `.`.
fn plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut out: String = name
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_a_name_gets_the_next_free_number() {
        let mut names = Names::default();
        let given = ["add", "add.1", "add", "add.1", "a b", "", "7up", "x.y"];
        let got: Vec<String> = given.iter().map(|n| names.unique(n, "copy")).collect();
        assert_eq!(
            got,
            [
                "add", "add.1", "add.2", "add.3", "a_b", "copy", "_7up", "x.y"
            ]
        );
    }
}
