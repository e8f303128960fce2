//! The files that changes are made of.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use super::Form;
use super::bundles::Bundles;
use crate::fuzz::random::Random;

/// Where files are: those that ship, and of those of an outside corpus.
const SHIPPED: &[&str] = &[
    "tests/devices",
    "tests/exports",
    "tests/fuzz/found",
    "tests/golden",
    "tests/mlir",
    "tests/programs",
    "tests/snapshots",
    "tests/stablehlo",
];

/// Larger files than this say little that smaller ones don't, and take long.
const LARGEST: u64 = 64 << 10;

/// The files of a form.
pub enum Pool {
    /// Files where they lie.
    Paths(Vec<PathBuf>),
    /// Compiled bundles.
    Bundles(Bundles),
}

impl Pool {
    /// All files of the form that ship; and those of the outside corpus, when there is one and it is
    /// asked for. Bundles are compiled.
    pub fn of(form: Form, outside: bool) -> Self {
        if form == Form::Bundle {
            return Self::Bundles(Bundles::new(&more(form)));
        }
        let mut paths = Vec::new();
        for folder in SHIPPED {
            collect(Path::new(folder), form, &mut paths);
        }
        if outside {
            let corpus = std::env::var_os("XLA_AOT_CORPUS");
            let corpus = corpus.map_or_else(|| PathBuf::from("../shared/corpus"), PathBuf::from);
            collect(&corpus, form, &mut paths);
            paths.extend(more(form));
        }
        assert!(!paths.is_empty(), "there is no file of {form:?}");
        Self::Paths(paths)
    }

    /// One of them.
    pub fn pick(&self, random: &mut Random) -> Vec<u8> {
        let paths = match self {
            Self::Bundles(bundles) => return bundles.pick(random),
            Self::Paths(paths) => paths,
        };
        let path = &paths[random.below(paths.len())];
        fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// The files of the form in a folder that the environment names.
fn more(form: Form) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Some(folder) = std::env::var_os("XLA_AOT_FUZZ_WITH") {
        collect(Path::new(&folder), form, &mut paths);
    }
    paths
}

fn collect(folder: &Path, form: Form, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, form, out);
        } else if Form::of(&path) == Some(form)
            && path.metadata().is_ok_and(|file| file.len() <= LARGEST)
        {
            out.push(path);
        }
    }
}
