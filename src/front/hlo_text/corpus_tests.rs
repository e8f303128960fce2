//! The programs of the corpus, or those that ship where it is not at hand, in both of their forms.

use std::path::PathBuf;

use crate::front::InputFormat;
use crate::front::read;
use crate::hlo::Module;
use crate::hlo::StackFrameIndex;
use crate::hlo::print;
use crate::hlo::verify;

/// The files of that name in all cases of the corpus or, without it, in those that ship.
fn files(name: &str) -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let corpus = root
        .ancestors()
        .map(|dir| dir.join("shared/corpus"))
        .find(|dir| dir.is_dir());
    let folder = corpus.unwrap_or_else(|| root.join("tests/programs"));
    let subfolders = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let cases = subfolders(folder).flat_map(|kind| subfolders(kind.path()));
    let mut out: Vec<PathBuf> = cases.map(|case| case.path().join(name)).collect();
    out.retain(|file| file.is_file());
    out.sort();
    out
}

/// The text and the proto of each program print to one text, which reads back to the same module.
#[test]
fn both_forms_of_every_program_have_one_text() {
    let mut wrong = Vec::new();
    assert!(!files("program.hlo").is_empty(), "there are programs");
    for name in ["program.hlo", "optimized.hlo"] {
        for file in files(name) {
            let bytes = std::fs::read(&file).unwrap();
            let module = match read(&bytes, None) {
                Ok(module) => module,
                Err(error) => {
                    wrong.push(format!("{}: {error}", file.display()));
                    continue;
                }
            };
            if let Err(error) = verify::check(&module) {
                wrong.push(format!("{}: {error}", file.display()));
            }
            let text = print::module(&module);
            match read(text.as_bytes(), Some(InputFormat::HloText)) {
                Ok(again) if again == module => {}
                Ok(_) => wrong.push(format!("{}: reads back changed", file.display())),
                Err(error) => wrong.push(format!("{}: prints wrong: {error}", file.display())),
            }
            let proto = std::fs::read(file.with_extension("pb")).unwrap();
            match read(&proto, None) {
                // XLA reorders and renames what it reads from text that people wrote.
                Ok(proto) if !bytes.windows(24).any(|w| w == b"entry_computation_layout") => {
                    if opcodes(&module) != opcodes(&proto) {
                        wrong.push(format!("{}: other opcodes", file.display()));
                    }
                }
                Ok(proto) => {
                    let text = print::module(&without_metadata(module));
                    let proto = print::module(&without_metadata(proto));
                    if let Some(line) = difference(&text, &proto) {
                        wrong.push(format!("{}: {line}", file.display()));
                    }
                }
                Err(error) => wrong.push(format!("{}: proto: {error}", file.display())),
            }
        }
    }
    let shown: Vec<&String> = wrong.iter().take(20).collect();
    assert!(wrong.is_empty(), "{} wrong, first {shown:#?}", wrong.len());
}

fn opcodes(module: &Module) -> Vec<&'static str> {
    let mut opcodes: Vec<_> = module.instrs.values().map(|i| i.op.opcode()).collect();
    opcodes.sort_unstable();
    opcodes
}

/// The texts of the corpus were printed without metadata; some protos have it.
fn without_metadata(mut module: Module) -> Module {
    module.stack_frames = StackFrameIndex::default();
    for instr in module.instrs.values_mut() {
        if let Some(extra) = &mut instr.extra {
            extra.metadata = None;
        }
    }
    module
}

/// The first lines that differ, whatever the order of computations.
fn difference(a: &str, b: &str) -> Option<String> {
    let sorted = |text: &str| {
        let mut parts: Vec<&str> = text.split("\n\n").map(str::trim).collect();
        parts.sort_unstable();
        parts.join("\n\n")
    };
    let (a, b) = (&sorted(a), &sorted(b));
    if a == b {
        return None;
    }
    let pair = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    let (a, b) = pair.unwrap_or(("shorter", "longer"));
    let clip = |line: &str| line.chars().take(300).collect::<String>();
    Some(format!("\n  text  {}\n  proto {}", clip(a), clip(b)))
}
