//! Goldens: a text in, and beside it the text that comes out. `XLA_AOT_BLESS=1` rewrites the latter.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::front;
use xla_aot::hlo::print;
use xla_aot::hlo::rewrite;
use xla_aot::passes;
use xla_aot::passes::PassOptions;
use xla_aot::wire;

/// One trial a file `x.hlo`, against `x.out` beside it.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for folder in ["parse/ok", "parse/err"] {
        for file in inputs(&Path::new("tests/golden").join(folder)) {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("golden/{folder}/{stem}");
            trials.push(Trial::test(name, move || parse(&file)));
        }
    }
    for folder in folders(Path::new("tests/golden/passes")) {
        let pass = file_name(&folder);
        for file in inputs(&folder) {
            let pass = pass.clone();
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("golden/passes/{pass}/{stem}");
            trials.push(Trial::test(name, move || one_pass(&pass, &file)));
        }
    }
    for file in inputs(Path::new("tests/golden/verify")) {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("golden/verify/{stem}");
        trials.push(Trial::test(name, move || verify(&file)));
    }
    trials
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    folders
}

/// What stands between the text before a pass and the text after it.
const RULE: &str = "// ----\n";

/// One pass on the first half of the file gives the second half: a module, or a diagnostic.
/// A line `// target: name` says what it is compiled for.
fn one_pass(pass: &str, file: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(file)?;
    let before = text.split(RULE).next().unwrap_or_default();
    let named = before.lines().find_map(|l| l.strip_prefix("// target: "));
    let target = wire::target::by_name(named.unwrap_or("x86-64-v3"))?;
    let module = front::read(before.as_bytes(), None)?;
    let all = PassOptions::default();
    let after = match passes::run_single(pass, module, &target, &all) {
        Ok((mut module, _)) => {
            rewrite::compact(&mut module);
            print::module(&module)
        }
        Err(error) => error
            .to_string()
            .lines()
            .map(|line| format!("// {line}\n"))
            .collect(),
    };
    expect(file, &format!("{before}{RULE}{after}"))
}

/// That a module breaks one rule of the verifier, the one its first line tells:
/// `// error[XA2001]: part of the message`.
fn verify(file: &Path) -> Result<(), Failed> {
    let input = fs::read_to_string(file)?;
    let first = input.lines().next().unwrap_or_default();
    let wanted = first.strip_prefix("// ").unwrap_or_default();
    let (wanted_head, wanted_message) = wanted.split_once(": ").unwrap_or((wanted, ""));
    let module = front::read(input.as_bytes(), None)?;
    let found = xla_aot::hlo::verify::verify(&module);
    let [error] = found.as_slice() else {
        let all: Vec<String> = found.iter().map(ToString::to_string).collect();
        let count = all.len();
        return Err(format!("{count} errors instead of one\n{}", all.join("\n")).into());
    };
    let head = format!("{}[{}]", error.severity.word(), error.code);
    if head == wanted_head && error.message.contains(wanted_message) {
        return Ok(());
    }
    Err(format!("wanted {wanted}\nfound {error}").into())
}

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "hlo"));
    files.sort();
    files
}

/// The canonical text, which must read back to itself, or the diagnostic.
fn parse(file: &Path) -> Result<(), Failed> {
    let input = fs::read(file)?;
    let wants_error = file.parent().is_some_and(|folder| folder.ends_with("err"));
    let output = match front::read(&input, None) {
        Ok(_) if wants_error => return Err("the text is read without complaint".into()),
        Ok(module) => {
            let text = print::module(&module);
            let again = front::read(text.as_bytes(), None)?;
            if again != module {
                return Err(format!("reads back to another module:\n{text}").into());
            }
            text
        }
        Err(error) if wants_error => format!("{error}\n"),
        Err(error) => return Err(error.into()),
    };
    expect(&file.with_extension("out"), &output)
}

/// That a file holds this text; writes it when blessing.
fn expect(file: &Path, text: &str) -> Result<(), Failed> {
    if std::env::var_os("XLA_AOT_BLESS").is_some() {
        return Ok(fs::write(file, text)?);
    }
    let wanted = fs::read_to_string(file)?;
    if wanted == text {
        return Ok(());
    }
    let diff = similar::TextDiff::from_lines(wanted.as_str(), text);
    Err(format!("{}", diff.unified_diff().header("expected", "found")).into())
}
