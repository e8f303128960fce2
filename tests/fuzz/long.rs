//! What the suite does instead of its trials when `scripts/fuzz.sh` calls it.

use std::env;
use std::path::Path;

use super::caught;
use super::files::Files;
use super::programs;
use super::programs::Programs;
use super::watch;
use super::watch::number;

/// Fuzzes when the environment says so; then gives whether all went well.
pub fn run() -> Option<bool> {
    if let Some(path) = env::var_os("XLA_AOT_FUZZ_INPUT") {
        caught::keep_quiet();
        let path: &Path = path.as_ref();
        let Some(files) = Files::like(path) else {
            println!("{}: no form of files has such a name", path.display());
            return Some(false);
        };
        return Some(files.again(path));
    }
    if let Some(count) = number("XLA_AOT_FUZZ_PROGRAMS") {
        let first = number("XLA_AOT_FUZZ_SEED").unwrap_or(0);
        (first..first + count).for_each(programs::dump);
        return Some(true);
    }
    let what = env::var("XLA_AOT_FUZZ_WHAT").unwrap_or_else(|_| "programs".to_owned());
    if what == "programs" {
        return watch::run(&Programs::of_environment());
    }
    match Files::named(&what) {
        Some(files) => watch::run(&files),
        None => {
            println!("nothing is called `{what}` that can be fuzzed");
            Some(false)
        }
    }
}
