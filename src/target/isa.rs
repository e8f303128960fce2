//! Instruction set features by LLVM's names: which exist and what each implies.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::suggest::closest;
use crate::target::CpuFamily;

/// The features of one instruction set family.
#[derive(Clone, Debug)]
pub struct Isa {
    family: CpuFamily,
    /// Feature to the features it implies, and whether a compiler may come to use its instructions.
    features: BTreeMap<&'static str, (Vec<&'static str>, bool)>,
}

impl Isa {
    /// The features of a family, from the tables of `targets/isa/`.
    pub fn of(family: CpuFamily) -> Self {
        let text = match family {
            CpuFamily::X86_64 => include_str!("../../targets/isa/x86_64.txt"),
            CpuFamily::AArch64 => include_str!("../../targets/isa/aarch64.txt"),
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let row = |line: &'static str| {
            let mut words = line.split(' ');
            let name = words.next()?;
            let bare = name.strip_prefix('*');
            Some((bare.unwrap_or(name), (words.collect(), bare.is_some())))
        };
        Self {
            family,
            features: lines.filter_map(row).collect(),
        }
    }

    /// Whether LLVM knows a feature of that name.
    pub fn knows(&self, name: &str) -> bool {
        self.features.contains_key(name)
    }

    /// Whether code made with the feature may not run without it. The others only tune, or have
    /// instructions that nothing uses unasked (random numbers, cryptography, cache control), which
    /// virtual machines often hide.
    pub fn is_needed_at_run_time(&self, name: &str) -> bool {
        self.features.get(name).is_some_and(|(_, needed)| *needed)
    }

    /// The feature and all that it implies, directly or not.
    pub fn with_implied(&self, name: &str) -> BTreeSet<&'static str> {
        let mut all = BTreeSet::new();
        let known = self.features.get_key_value(name);
        let mut work: Vec<&'static str> = known.iter().map(|(name, _)| **name).collect();
        while let Some(next) = work.pop() {
            if all.insert(next)
                && let Some((implied, _)) = self.features.get(next)
            {
                work.extend(implied);
            }
        }
        all
    }

    /// Every feature that implies this one, directly or not, and the feature itself.
    fn with_dependents(&self, name: &str) -> BTreeSet<&'static str> {
        let names = self.features.keys().copied();
        names
            .filter(|other| self.with_implied(other).contains(name))
            .collect()
    }

    /// Applies `+a,-b` to a set of features, in order: `+` adds what the feature implies too, `-`
    /// takes away what implies the feature too. Returns the new set and what was taken away.
    ///
    /// # Errors
    /// `XA6004` for an item without a sign or a name LLVM does not know.
    pub fn apply(
        &self,
        base: &[String],
        changes: &str,
    ) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
        let mut on: BTreeSet<String> = base.iter().cloned().collect();
        let mut off = BTreeSet::new();
        for item in changes.split(',').map(str::trim).filter(|i| !i.is_empty()) {
            let (sign, name) = item.split_at(item.chars().next().map_or(0, char::len_utf8));
            if sign != "+" && sign != "-" {
                return Err(Diagnostic::error(
                    codes::UNKNOWN_TARGET,
                    format!("feature `{item}` has no sign"),
                )
                .help(format!("write `+{item}` or `-{item}`")));
            }
            if !self.knows(name) {
                return Err(self.unknown(name));
            }
            if sign == "+" {
                for feature in self.with_implied(name) {
                    off.remove(feature);
                    on.insert(feature.to_owned());
                }
            } else {
                off.insert(name.to_owned());
                for feature in self.with_dependents(name) {
                    if on.remove(feature) {
                        off.insert(feature.to_owned());
                    }
                }
            }
        }
        Ok((on, off))
    }

    fn unknown(&self, name: &str) -> Box<Diagnostic> {
        let family = self.family.name();
        let error = Diagnostic::error(
            codes::UNKNOWN_TARGET,
            format!("`{name}` is not a feature of {family}"),
        );
        match closest(name, self.features.keys().copied()) {
            Some(close) => error.help(format!("did you mean `{close}`?")),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_imply_and_are_taken_away() {
        let isa = Isa::of(CpuFamily::X86_64);
        let (on, off) = isa.apply(&["sse2".into(), "sse".into()], "+avx2").unwrap();
        let on: Vec<&str> = on.iter().map(String::as_str).collect();
        let wanted = "avx,avx2,sse,sse2,sse3,sse4.1,sse4.2,ssse3";
        assert!(wanted.split(',').all(|f| on.contains(&f)), "{on:?}");
        assert!(off.is_empty());
        let base: Vec<String> = on.iter().map(|&f| f.to_owned()).collect();
        let (on, off) = isa.apply(&base, "+fma, -avx").unwrap();
        assert!(!on.contains("avx2") && !on.contains("fma") && on.contains("sse4.2"));
        assert!(off.contains("avx") && off.contains("avx2") && off.contains("fma"));
    }

    #[test]
    fn wrong_features_are_told() {
        let isa = Isa::of(CpuFamily::AArch64);
        let error = isa.apply(&[], "+dotprd").unwrap_err().to_string();
        assert!(error.contains("did you mean `dotprod`?"), "{error}");
        assert!(isa.apply(&[], "neon").is_err());
        assert!(isa.apply(&[], "é").is_err());
        assert!(isa.is_needed_at_run_time("sve") && !isa.is_needed_at_run_time("fuse-aes"));
    }
}
