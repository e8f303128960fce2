//! The built program, run as a user runs it: help, exit codes, words, files.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and may talk"
)]

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;

const ADD: &str = "HloModule add, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

ENTRY main {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  ROOT sum = f32[4]{0} add(x, y)
}
";

/// A folder with a program and its inputs, gone when dropped.
struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("add.hlo"), ADD).unwrap();
        let room = Self { folder };
        fs::write(room.path("x.npy"), npy(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        fs::write(room.path("y.npy"), npy(&[10.0, 20.0, 30.0, 40.0])).unwrap();
        fs::write(room.path("sum.npy"), npy(&[11.0, 22.0, 33.0, 44.0])).unwrap();
        fs::write(room.path("other.npy"), npy(&[11.0, 22.0, 33.5, 44.0])).unwrap();
        room
    }
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    /// Runs the program in the folder.
    fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, b"")
    }
    fn run_with(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::cargo_bin("xla-aot").unwrap();
        command
            .current_dir(self.folder.path())
            .args(args)
            .write_stdin(input);
        command.output().unwrap()
    }
    /// Compiles `add.hlo` to `add.xla`.
    fn compiled() -> Self {
        let room = Self::new();
        expect(&room.run(&["compile", "add.hlo"]), 0, "");
        room
    }
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// A `.npy` file of one dimension.
fn npy(values: &[f32]) -> Vec<u8> {
    let text = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
        values.len()
    );
    let mut header = text.into_bytes();
    header.resize(117, b' ');
    header.push(b'\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header);
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The exit code is this, and standard error holds these words.
fn expect(output: &Output, code: i32, words: &str) {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(told.contains(words), "wanted `{words}` in: {told}");
    if words.is_empty() {
        assert_eq!(told, "");
    }
}

#[test]
fn help_fits_a_screen_and_names_every_verb() {
    let room = Room::new();
    let help = room.run(&["-h"]);
    expect(&help, 0, "");
    let text = stdout(&help);
    assert!(text.lines().count() < 40, "{text}");
    for verb in [
        "compile", "run", "eval", "inspect", "verify", "bench", "targets", "explain",
    ] {
        assert!(text.contains(&format!("  {verb}")), "{verb}");
        expect(&room.run(&["help", verb]), 0, "");
    }
    assert!(!text.contains('\u{1b}'));
    let version = stdout(&room.run(&["--version"]));
    assert_eq!(version.lines().count(), 1);
}

#[test]
fn usage_errors_end_with_two() {
    let room = Room::new();
    expect(&room.run(&[]), 2, "Usage");
    expect(&room.run(&["complie"]), 2, "compile");
    expect(&room.run(&["compile"]), 2, "<PROGRAM>");
    expect(
        &room.run(&["compile", "add.hlo", "--emit", "poem"]),
        2,
        "not one of hlo",
    );
    expect(&room.run(&["explain", "XA0000"]), 2, "XA0000");
    let twice = ["compile", "add.hlo", "--target", "x86-64-v3,x86-64-v3"];
    expect(&room.run(&twice), 2, "named twice");
}

#[test]
fn compile_run_and_compare() {
    let room = Room::compiled();
    let inputs = ["--input", "x.npy", "--input", "y.npy"];
    let run = |more: &[&str]| {
        let mut args = vec!["run", "add.xla"];
        args.extend(inputs);
        args.extend(more);
        room.run(&args)
    };
    let shown = run(&[]);
    expect(&shown, 0, "");
    assert_eq!(stdout(&shown), "out0: f32[4] {11.0, 22.0, 33.0, 44.0}\n");
    let written = run(&["--output", "got.npy", "--expect", "sum.npy"]);
    expect(&written, 0, "");
    assert_eq!(stdout(&written), "");
    let (got, sum) = (
        fs::read(room.path("got.npy")),
        fs::read(room.path("sum.npy")),
    );
    assert_eq!(got.unwrap(), sum.unwrap());
    let differs = run(&["--expect", "other.npy"]);
    expect(
        &differs,
        4,
        "out0: 1 of 4 elements differ; first at [2]: got 33.0, wanted 33.5",
    );
    expect(&run(&["--expect", "other.npy", "--atol", "0.6"]), 0, "");
    expect(&run(&["--expect", "other.npy", "--rtol", "0.1"]), 0, "");
}

#[test]
fn archives_go_in_and_out() {
    let room = Room::compiled();
    let args = [
        "run", "add.xla", "-i", "x.npy", "-i", "y.npy", "-o", "out.npz",
    ];
    expect(&room.run(&args), 0, "");
    let archive = fs::read(room.path("out.npz")).unwrap();
    assert!(archive.starts_with(b"PK"));
    let names = String::from_utf8_lossy(&archive).into_owned();
    assert!(names.contains("out0.npy"));
    let standard = room.run(&["run", "add.xla", "-i", "x.npy", "-i", "y.npy", "-o", "-"]);
    assert_eq!(standard.stdout, archive);
}

#[test]
fn the_evaluator_agrees() {
    let room = Room::compiled();
    for program in ["add.hlo", "add.xla"] {
        let args = [
            "eval", program, "-i", "x.npy", "-i", "y.npy", "--expect", "sum.npy",
        ];
        expect(&room.run(&args), 0, "");
    }
    let verified = room.run(&["verify", "add.xla", "-i", "x.npy", "-i", "y.npy"]);
    expect(&verified, 0, "");
    let text = stdout(&verified);
    assert!(text.contains("sound, runs on this host, results as the reference evaluator"));
    let against = [
        "verify",
        "add.xla",
        "-i",
        "x.npy",
        "-i",
        "y.npy",
        "--expect",
        "other.npy",
    ];
    expect(&room.run(&against), 4, "first at [2]");
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let room = Room::compiled();
    expect(
        &room.run(&["run", "add.xla"]),
        1,
        "`in0`, f32[4], is missing",
    );
    let three = [
        "run", "add.xla", "-i", "x.npy", "-i", "y.npy", "-i", "x.npy",
    ];
    expect(&room.run(&three), 1, "`in0` to `in1` are wanted");
    fs::write(room.path("short.npy"), npy(&[1.0])).unwrap();
    let short = ["run", "add.xla", "-i", "x.npy", "-i", "short.npy"];
    expect(
        &room.run(&short),
        1,
        "`in1` is `<f4` of [1], wanted f32 of [4]",
    );
    let missing = ["run", "add.xla", "-i", "nothing.npy"];
    expect(&room.run(&missing), 1, "cannot read `nothing.npy`");
}

#[test]
fn programs_that_are_wrong_are_shown_with_their_place() {
    let room = Room::new();
    fs::write(room.path("bad.hlo"), ADD.replace("add(x, y)", "add(x, z)")).unwrap();
    let refused = room.run(&["compile", "bad.hlo", "-o", "bad.xla"]);
    expect(&refused, 1, "bad.hlo:6:");
    assert!(stderr(&refused).contains("ROOT sum = f32[4]{0} add(x, z)"));
    assert!(!stderr(&refused).contains('\u{1b}'));
    let json = room.run(&["compile", "bad.hlo", "--json"]);
    expect(&json, 1, "\"line\":6");
    let colored = room.run(&["compile", "bad.hlo", "--color", "always"]);
    expect(&colored, 1, "\u{1b}[1;31m");
    expect(&room.run(&["compile", "x.npy"]), 1, "x.npy: error[XA1");
    expect(
        &room.run(&["compile", "add.hlo", "--target", "h1000"]),
        1,
        "h100",
    );
}

#[test]
fn outputs_are_there_in_full_or_not_at_all() {
    let room = Room::new();
    let before = room.files();
    fs::write(room.path("bad.hlo"), "HloModule bad\n").unwrap();
    fs::write(room.path("kept.xla"), "old").unwrap();
    expect(
        &room.run(&["compile", "bad.hlo", "-o", "kept.xla"]),
        1,
        "bad.hlo",
    );
    assert_eq!(fs::read(room.path("kept.xla")).unwrap(), b"old");
    fs::remove_file(room.path("kept.xla")).unwrap();
    fs::remove_file(room.path("bad.hlo")).unwrap();
    assert_eq!(room.files(), before);
    let nowhere = room.run(&["compile", "add.hlo", "-o", "no/such/folder.xla"]);
    expect(&nowhere, 1, "cannot write `no/such/folder.xla`");
    assert_eq!(room.files(), before);
}

#[test]
fn standard_input_and_output() {
    let room = Room::compiled();
    let piped = room.run_with(&["compile", "-"], ADD.as_bytes());
    expect(&piped, 0, "");
    assert_eq!(piped.stdout, fs::read(room.path("add.xla")).unwrap());
    let inspected = room.run_with(&["inspect", "-"], &piped.stdout);
    expect(&inspected, 0, "");
    assert!(stdout(&inspected).contains("f32[4]"));
    let two = ["compile", "-", "--target", "x86-64-v2,x86-64-v3"];
    expect(&room.run_with(&two, ADD.as_bytes()), 2, "-o");
}

#[test]
fn several_targets_give_several_bundles() {
    let room = Room::new();
    let targets = ["--target", "x86-64-v2", "--target", "x86-64-v3"];
    let compile = |output: &[&str]| {
        let mut args = vec!["compile", "add.hlo"];
        args.extend(targets);
        args.extend(output);
        expect(&room.run(&args), 0, "");
    };
    compile(&[]);
    compile(&["-o", "out/"]);
    compile(&["-o", "some.bundle"]);
    for name in [
        "add.x86-64-v2.xla",
        "add.x86-64-v3.xla",
        "out/add.x86-64-v3.xla",
        "some.x86-64-v2.bundle",
    ] {
        assert!(room.path(name).is_file(), "{name} in {:?}", room.files());
    }
}

#[test]
fn by_products_and_dumps_are_written() {
    let room = Room::new();
    let emit = [
        "compile",
        "add.hlo",
        "--emit",
        "hlo=final.hlo,thunks=t.txt,llvm-ir,asm,obj,buffers",
    ];
    expect(&room.run(&emit), 0, "");
    let over_the_source = room.run(&["compile", "add.hlo", "--emit", "hlo"]);
    expect(&over_the_source, 2, "would destroy `add.hlo`");
    for name in [
        "final.hlo",
        "t.txt",
        "add.ll",
        "add.s",
        "add.o",
        "add.buffers.txt",
    ] {
        assert!(room.path(name).is_file(), "{name} in {:?}", room.files());
    }
    let hlo = room.run(&["inspect", "add.xla", "--emit", "hlo=-"]);
    expect(&hlo, 0, "");
    assert!(stdout(&hlo).starts_with("HloModule add"));
    let absent = room.run(&["inspect", "add.xla", "--emit", "ptx"]);
    expect(&absent, 3, "holds no ptx");
    let stopped = [
        "compile",
        "add.hlo",
        "-o",
        "no.xla",
        "--stop-after",
        "emit",
        "--dump-to",
        "d",
    ];
    expect(&room.run(&stopped), 0, "");
    assert!(!room.path("no.xla").exists());
    let dumps = fs::read_dir(room.path("d")).unwrap().count();
    assert!(dumps > 2, "{dumps}");
    let timed = room.run(&["compile", "add.hlo", "--time-passes"]);
    expect(&timed, 0, "total");
}

#[test]
fn damaged_bundles_are_rejected() {
    let room = Room::compiled();
    let whole = fs::read(room.path("add.xla")).unwrap();
    for (name, bytes) in [
        ("half.xla", &whole[..whole.len() / 2]),
        ("empty.xla", &[][..]),
        ("text.xla", ADD.as_bytes()),
    ] {
        fs::write(room.path(name), bytes).unwrap();
        for verb in ["inspect", "verify", "run", "bench"] {
            let output = room.run(&[verb, name]);
            assert!(matches!(output.status.code(), Some(1 | 3)), "{verb} {name}");
            expect(&output, output.status.code().unwrap(), name);
        }
    }
    expect(&room.run(&["verify", "empty.xla"]), 3, "XA7001");
}

#[test]
fn a_bundle_for_another_machine_is_told_apart() {
    let room = Room::new();
    let other = if cfg!(target_arch = "x86_64") {
        "neoverse-v1"
    } else {
        "x86-64"
    };
    expect(
        &room.run(&["compile", "add.hlo", "--target", other, "-o", "far.xla"]),
        0,
        "",
    );
    expect(&room.run(&["verify", "far.xla"]), 3, "this host is");
    let anywhere = room.run(&["verify", "far.xla", "--any-host"]);
    expect(&anywhere, 0, "");
    expect(
        &room.run(&["run", "far.xla", "-i", "x.npy", "-i", "y.npy"]),
        3,
        "XA7004",
    );
}

#[test]
fn bench_ends_with_one_line_of_json() {
    let room = Room::compiled();
    let args = [
        "bench",
        "add.xla",
        "-i",
        "x.npy",
        "-i",
        "y.npy",
        "--iterations",
        "3",
        "--json",
    ];
    let output = room.run(&args);
    expect(&output, 0, "");
    let text = stdout(&output);
    let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for key in ["median_s", "min_s", "iterations", "threads", "load_s"] {
        assert!(line[key].is_number(), "{key} in {text}");
    }
    assert_eq!(line["iterations"], 3);
}

#[test]
fn lists_are_for_people_and_for_programs() {
    let room = Room::new();
    let targets = stdout(&room.run(&["targets"]));
    assert!(targets.contains("x86-64-v3") && targets.contains("h100_sxm"));
    let json = stdout(&room.run(&["targets", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["targets"].as_array().unwrap().len() > 50);
    let explained = stdout(&room.run(&["explain", "XA7004"]));
    assert!(explained.contains("cannot run on this host"));
}

#[test]
fn equal_inputs_give_equal_bytes() {
    let room = Room::new();
    for (name, jobs) in [("a.xla", "1"), ("b.xla", "2"), ("c.xla", "2")] {
        expect(
            &room.run(&["compile", "add.hlo", "-o", name, "-j", jobs]),
            0,
            "",
        );
    }
    let read = |name: &str| fs::read(room.path(name)).unwrap();
    assert!(read("a.xla") == read("b.xla") && read("b.xla") == read("c.xla"));
}

#[test]
fn nothing_of_the_environment_is_needed() {
    let room = Room::new();
    let mut command = Command::cargo_bin("xla-aot").unwrap();
    let output = command
        .env_clear()
        .current_dir(room.folder.path())
        .args(["compile", "add.hlo"])
        .output()
        .unwrap();
    expect(&output, 0, "");
    assert!(Path::new(&room.path("add.xla")).is_file());
}
