//! The names that the text gives instructions and computations: allowed by HLO, and unique where
//! the text needs them to be (instructions in their computation, computations in the module).

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::text::is_name_byte;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::shape::text::is_type_name;

/// Names of a module as they are printed.
pub(super) struct Names<'m> {
    module: &'m Module,
    /// Only the names that had to change.
    instrs: BTreeMap<InstrId, String>,
    comps: BTreeMap<CompId, String>,
}

impl<'m> Names<'m> {
    /// Names that are allowed and unique.
    pub(super) fn of(module: &'m Module) -> Self {
        let mut names = Self::plain(module);
        let mut taken = BTreeSet::new();
        for (id, comp) in module.comps.iter() {
            if let Some(name) = changed(&comp.name, "comp", &mut taken) {
                names.comps.insert(id, name);
            }
            let mut taken = BTreeSet::new();
            for &id in &comp.instrs {
                let instr = &module.instrs[id];
                if let Some(name) = changed(&instr.name, instr.op.opcode(), &mut taken) {
                    names.instrs.insert(id, name);
                }
            }
        }
        names
    }
    /// Names as they stand in the module.
    pub(super) fn plain(module: &'m Module) -> Self {
        Self {
            module,
            instrs: BTreeMap::new(),
            comps: BTreeMap::new(),
        }
    }
    pub(super) fn instr(&self, id: InstrId) -> &str {
        self.instrs.get(&id).unwrap_or(&self.module.instrs[id].name)
    }
    pub(super) fn comp(&self, id: CompId) -> &str {
        self.comps.get(&id).unwrap_or(&self.module.comps[id].name)
    }
}

/// The name to print when it is not the one given; takes it from those left.
fn changed(name: &str, stem: &str, taken: &mut BTreeSet<String>) -> Option<String> {
    let allowed = sanitized(name, stem);
    let mut unique = allowed.clone();
    let mut number = 0usize;
    while !taken.insert(unique.clone()) {
        number += 1;
        unique = format!("{allowed}.{number}");
    }
    (unique != name).then_some(unique)
}

/// The name as HLO allows it, by the rules of XLA; `stem` stands in for an empty one.
pub(super) fn sanitized(name: &str, stem: &str) -> String {
    let name = if name.is_empty() { stem } else { name };
    let mut out = String::with_capacity(name.len());
    for (i, byte) in name.bytes().enumerate() {
        let fits = if i == 0 {
            byte.is_ascii_alphabetic() || byte == b'_'
        } else {
            is_name_byte(byte)
        };
        out.push(if fits { char::from(byte) } else { '_' });
    }
    if is_type_name(&out) || out == "buffer" {
        out.push('_');
    }
    if out.starts_with("__") && !out.starts_with("__xla_") {
        out.replace_range(..1, "a");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_those_that_xla_allows() {
        for (name, printed) in [
            ("add.1", "add.1"),
            ("1x", "_x"),
            ("jit(f)/é", "jit_f____"),
            ("f32", "f32_"),
            ("token", "token_"),
            ("tuple", "tuple"),
            ("", "stem"),
            ("__x", "a_x"),
        ] {
            assert_eq!(sanitized(name, "stem"), printed);
        }
        let mut taken = BTreeSet::new();
        assert_eq!(changed("x", "s", &mut taken), None);
        assert_eq!(changed("x", "s", &mut taken).as_deref(), Some("x.1"));
        assert_eq!(changed("x.1", "s", &mut taken).as_deref(), Some("x.1.1"));
    }
}
