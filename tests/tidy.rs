//! Holds the sources against the rules of the house that no compiler checks.
//!
//! Reads text only: needs neither LLVM nor the library.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and may talk"
)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// Room, what it owns, the rooms it may import. The order is the import order.
const ROOMS: &[(&str, &str, &str)] = &[
    (
        "base",
        "ids, arenas, byte units, checksums, diagnostics and their codes",
        "",
    ),
    (
        "collective",
        "devices that run one program together: their groups, and how they meet",
        "base",
    ),
    (
        "shape",
        "element types, shapes, layouts, index arithmetic",
        "base",
    ),
    (
        "linalg",
        "dense linear algebra by LAPACK's conventions, and the custom calls that lead to it",
        "base shape",
    ),
    (
        "literal",
        "host values: storage, comparison, text and array-file forms",
        "base shape",
    ),
    (
        "mlir",
        "MLIR modules of StableHLO programs: the value, its text and bytecode forms",
        "base shape literal",
    ),
    (
        "target",
        "what a machine is and what a host has, as data; targets that ship",
        "base shape",
    ),
    (
        "hlo",
        "the IR: module, ops, shape inference, verifier, printer",
        "base collective shape literal",
    ),
    (
        "eval",
        "the reference evaluator",
        "base collective shape linalg literal hlo",
    ),
    (
        "analysis",
        "read-only facts about a module",
        "base shape literal target hlo",
    ),
    (
        "passes",
        "rewrites and their order",
        "base collective shape literal target hlo eval analysis",
    ),
    (
        "schedule",
        "one order of instructions per computation",
        "base shape target hlo analysis",
    ),
    (
        "executable",
        "the compiled program as plain data",
        "base collective shape",
    ),
    (
        "buffer",
        "buffer assignment",
        "base shape target hlo analysis schedule executable",
    ),
    (
        "kernel",
        "the kernel IR: types, builder, checker, printer",
        "base shape literal executable",
    ),
    (
        "emit",
        "scheduled HLO to thunks and kernels",
        "base collective shape literal target hlo analysis schedule buffer kernel executable",
    ),
    (
        "llvm",
        "kernels to object code or PTX",
        "base shape target kernel executable",
    ),
    ("proto", "generated wire structs", ""),
    (
        "wire",
        "inside types to and from bytes",
        "base collective shape literal target hlo executable proto",
    ),
    (
        "front",
        "input bytes to a module",
        "base collective shape literal mlir hlo wire",
    ),
    (
        "bundle",
        "the envelope: detect, read, write, host check, describe",
        "base shape linalg target executable wire",
    ),
    (
        "simulator",
        "a GPU on the host: PTX parsed, run, checked and counted; the CUDA driver's interface over it",
        "base target wire",
    ),
    (
        "runtime",
        "devices, loading, running thunks, probing the host",
        "base collective shape linalg literal target executable simulator",
    ),
    (
        "driver",
        "the order of rooms",
        "base collective shape literal mlir target hlo eval analysis passes schedule executable buffer kernel emit llvm wire front bundle runtime",
    ),
    (
        "capi",
        "the C library: handles, errors, the caller's memory and functions",
        "base shape wire driver",
    ),
    (
        "cli",
        "arguments, files, progress, exit codes",
        "base driver",
    ),
];

/// Outside crates that only some rooms may name.
const CRATES: &[(&str, &str)] = &[
    ("inkwell", "llvm"),
    ("llvm_sys", "llvm"),
    ("cudarc", "runtime"),
    ("prost", "proto wire"),
    ("object", "llvm runtime"),
    ("clap", "cli"),
    ("indicatif", "cli"),
    ("tempfile", "cli llvm"),
    ("anyhow", "driver cli"),
    ("target_lexicon", "target llvm"),
    ("riegeli", "wire"),
    ("rustfft", "runtime"),
    ("ruzstd", "simulator wire"),
    ("flate2", "wire"),
    ("zip", "literal"),
];

/// Rooms that hold `unsafe` code.
const UNSAFE_ROOMS: &[&str] = &["llvm", "simulator", "runtime", "capi"];

const MAX_LINES: usize = 800;
const FORBIDDEN_NAMES: &[&str] = &["utils", "util", "common", "helpers", "misc", "manager"];

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, out: &mut Vec<(PathBuf, String)>) {
        let mut entries: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                out.push((path, text));
            }
        }
    }
    let mut out = Vec::new();
    walk(Path::new("src"), &mut out);
    out
}

fn room_of(path: &Path) -> Option<String> {
    let relative = path.strip_prefix("src").ok()?;
    let first = relative.components().next()?.as_os_str().to_str()?;
    let room = first.strip_suffix(".rs").unwrap_or(first);
    (room != "lib" && room != "main").then(|| room.to_owned())
}

/// The text before the file's own unit tests, comments cut off.
fn code(text: &str) -> String {
    let code = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let strip = |line: &str| line.split("//").next().unwrap_or_default().to_owned() + "\n";
    code.lines().map(strip).collect()
}

fn report(findings: Vec<String>) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn every_source_file_is_in_a_room() {
    let rooms: BTreeSet<&str> = ROOMS.iter().map(|r| r.0).collect();
    let found: BTreeSet<String> = sources().iter().filter_map(|(p, _)| room_of(p)).collect();
    let missing = rooms
        .iter()
        .filter(|r| !found.contains(**r))
        .map(|r| format!("no room {r}"));
    let unknown = found
        .iter()
        .filter(|r| !rooms.contains(r.as_str()))
        .map(|r| format!("what is {r}?"));
    report(missing.chain(unknown).collect());
}

#[test]
fn rooms_import_only_what_they_may() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ROOMS
        .iter()
        .map(|r| (r.0, r.2.split_whitespace().collect()))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in sources() {
        let Some(room) = room_of(&path) else { continue };
        // A room's tests may run what it makes through the rooms behind it.
        if path.ends_with("tests.rs") {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate() {
            for (at, _) in line.match_indices("crate::") {
                if at > 0 && line.as_bytes()[at - 1] == b'$' {
                    continue;
                }
                let rest = &line[at + "crate::".len()..];
                let other: String = rest
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let known = allowed.contains_key(other.as_str());
                if known && other != room && !allowed[room.as_str()].contains(other.as_str()) {
                    findings.push(format!(
                        "{}:{}: {room} imports {other}",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    report(findings);
}

#[test]
fn rooms_name_only_the_outside_crates_they_may() {
    let mut findings = Vec::new();
    for (path, text) in sources() {
        let Some(room) = room_of(&path) else { continue };
        for (name, rooms) in CRATES {
            let used = code(&text).lines().any(|line| {
                line.contains(&format!("use {name}::")) || line.contains(&format!(" {name}::"))
            });
            if used && !rooms.split_whitespace().any(|r| r == room) {
                findings.push(format!("{}: {room} names {name}", path.display()));
            }
        }
    }
    report(findings);
}

#[test]
fn files_are_documented_short_and_clean() {
    let mut findings = Vec::new();
    for (path, text) in sources() {
        let name = path.display();
        if !text.starts_with("//!") && !text.starts_with("#![doc") {
            findings.push(format!("{name}: does not open with a //! comment"));
        }
        let lines = code(&text).lines().count();
        let is_tests = path.file_stem().is_some_and(|stem| stem == "tests");
        if lines > MAX_LINES && !is_tests {
            findings.push(format!("{name}: {lines} lines, more than {MAX_LINES}"));
        }
        if !text.ends_with('\n') || text.contains('\r') {
            findings.push(format!("{name}: needs a final newline and LF line ends"));
        }
        for (number, line) in text.lines().enumerate() {
            if line.ends_with(' ') || line.ends_with('\t') {
                findings.push(format!("{name}:{}: trailing space", number + 1));
            }
        }
        let stem = path
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        if FORBIDDEN_NAMES.contains(&stem) {
            findings.push(format!("{name}: a name that says nothing"));
        }
    }
    report(findings);
}

#[test]
fn unsafe_code_stays_in_its_rooms() {
    let mut findings = Vec::new();
    for (path, text) in sources() {
        let Some(room) = room_of(&path) else { continue };
        let has = code(&text)
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|w| w == "unsafe");
        if has && !UNSAFE_ROOMS.contains(&room.as_str()) {
            findings.push(format!("{}: unsafe code in room {room}", path.display()));
        }
    }
    report(findings);
}

#[test]
fn the_map_shows_the_room_table() {
    let map = fs::read_to_string("src/ARCHITECTURE.md").unwrap();
    let mut findings = Vec::new();
    for (number, (room, owns, imports)) in ROOMS.iter().enumerate() {
        let imports = if imports.is_empty() {
            "nothing"
        } else {
            imports
        };
        let row = format!("| {} | `{room}` | {owns} | {imports} |", number + 1);
        if !map.contains(&row) {
            findings.push(format!("src/ARCHITECTURE.md lacks the row\n{row}"));
        }
    }
    report(findings);
}

#[test]
fn lib_lists_the_rooms_in_order() {
    let lib = fs::read_to_string("src/lib.rs").unwrap();
    let listed: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    let rooms: Vec<&str> = ROOMS.iter().map(|r| r.0).collect();
    assert_eq!(listed, rooms);
}

#[test]
fn nothing_is_left_for_later() {
    let marks = [
        "todo!(",
        "unimplemented!(",
        "#[ignore",
        "FIXME",
        "XXX",
        "HACK",
    ];
    let mut findings = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                findings.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    report(findings);
}

#[test]
fn every_pass_has_goldens() {
    let registry = fs::read_to_string("src/passes/registry.rs").unwrap_or_default();
    let mut findings = Vec::new();
    for line in registry.lines() {
        let Some(name) = line
            .trim()
            .strip_prefix("(\"")
            .and_then(|l| l.split('"').next())
        else {
            continue;
        };
        let dir = Path::new("tests/golden/passes").join(name);
        if !dir.is_dir() || fs::read_dir(&dir).unwrap().next().is_none() {
            findings.push(format!("no golden in {}", dir.display()));
        }
    }
    report(findings);
}

/// The functions that the C library's header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string("src/capi/xla_aot.h").unwrap();
    let start = header.find("#define XLA_AOT_ABI").unwrap();
    let mut out = BTreeSet::new();
    for (at, _) in header[start..].match_indices("xla_aot_") {
        let rest = &header[start + at..];
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        // A type, not a function: of functions that programs call.
        if rest[name.len()..].starts_with('(') && name != "xla_aot_handler" {
            out.insert(name.to_owned());
        }
    }
    out
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let mut defined = BTreeSet::new();
    for (path, text) in sources() {
        if room_of(&path).as_deref() != Some("capi") {
            continue;
        }
        for part in text.split("#[unsafe(no_mangle)]").skip(1) {
            let (_, rest) = part.split_once("fn ").unwrap();
            let (name, _) = rest.split_once('(').unwrap();
            defined.insert(name.to_owned());
        }
    }
    assert!(!defined.is_empty());
    assert_eq!(declared(), defined);
    let number = |path: &str, before: &str| {
        let text = fs::read_to_string(path).unwrap();
        let (_, rest) = text.split_once(before).unwrap();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        rest[..end].parse::<u32>().unwrap()
    };
    assert_eq!(
        number("src/capi/xla_aot.h", "#define XLA_AOT_ABI "),
        number("src/capi/mod.rs", "const ABI: u32 = ")
    );
    assert_eq!(
        number("src/capi/xla_aot.h", "#define XLA_AOT_ALIGNMENT "),
        number("src/capi/memory.rs", "const ALIGNMENT: usize = ")
    );
}

#[test]
fn the_python_package_asks_for_what_the_header_declares() {
    let text = fs::read_to_string("src/python/xla_aot/_library.py").unwrap();
    let declared = declared();
    let mut asked = 0;
    for part in text.split("(\"xla_aot_").skip(1) {
        let (name, _) = part.split_once('"').unwrap();
        assert!(declared.contains(&format!("xla_aot_{name}")), "{name}");
        asked += 1;
    }
    assert!(asked > 0);
    let header = fs::read_to_string("src/capi/xla_aot.h").unwrap();
    for (ours, theirs) in [
        ("\nABI = ", "XLA_AOT_ABI "),
        ("\nALIGNMENT = ", "XLA_AOT_ALIGNMENT "),
    ] {
        let value = |text: &str, before: &str| {
            let (_, rest) = text.split_once(before).unwrap();
            rest.lines().next().unwrap().to_owned()
        };
        assert_eq!(
            value(&text, ours),
            value(&header, &format!("#define {theirs}"))
        );
    }
}

#[test]
fn the_header_lists_the_element_types() {
    let header = fs::read_to_string("src/capi/xla_aot.h").unwrap();
    let types = fs::read_to_string("src/shape/element_type.rs").unwrap();
    let (_, table) = types.split_once("element_types! {").unwrap();
    let mut wanted = BTreeSet::new();
    for line in table.lines().take_while(|line| *line != "}") {
        let fields: Vec<&str> = line.trim().split(", ").collect();
        if let [_, name, number, ..] = fields[..]
            && name.starts_with('"')
        {
            let name = name.trim_matches('"').to_uppercase();
            wanted.insert(format!("XLA_AOT_{name} = {number}"));
        }
    }
    let (_, rest) = header.split_once("/* Element types").unwrap();
    let (_, rest) = rest.split_once("enum {").unwrap();
    let (list, _) = rest.split_once('}').unwrap();
    let listed: BTreeSet<String> = list.split(',').map(|e| e.trim().to_owned()).collect();
    assert_eq!(listed, wanted);
}
