//! The built program, run as a user runs it: help, exit codes, words, files.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and may talk"
)]

#[path = "cli/bisect.rs"]
mod bisect;
#[path = "cli/damages.rs"]
mod damages;
#[path = "cli/devices.rs"]
mod devices;
#[path = "cli/exports.rs"]
mod exports;
#[path = "cli/inputs.rs"]
mod inputs;
#[path = "cli/kinds.rs"]
mod kinds;
#[path = "cli/several_devices.rs"]
mod several_devices;
#[path = "cli/snapshots.rs"]
mod snapshots;
#[path = "cli/stock.rs"]
mod stock;

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
    npy_of(&format!("({},)", values.len()), values)
}

/// A `.npy` file of this shape.
fn npy_of(shape: &str, values: &[f32]) -> Vec<u8> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
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
        "compile",
        "run",
        "eval",
        "translate",
        "inspect",
        "verify",
        "bench",
        "targets",
        "explain",
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
    expect(&absent, 2, "holds no ptx");
    assert!(stderr(&absent).contains("its code is obj"));
    let taken = room.run(&["inspect", "add.xla", "--emit", "obj=part.o"]);
    expect(&taken, 0, "");
    assert_eq!(stdout(&taken), "wrote part.o\n");
    let taken = room.run(&["inspect", "add.xla", "--emit", "obj=part.o", "--json"]);
    assert!(stdout(&taken).contains(r#""written":["part.o"]"#));
    let stopped = [
        "compile",
        "add.hlo",
        "-o",
        "no.xla",
        "--stop-after",
        "emit",
        "--dump-to",
        "d",
        "--dump-hlo-as",
        "text,proto",
    ];
    expect(&room.run(&stopped), 0, "");
    assert!(!room.path("no.xla").exists());
    for name in [
        "before_optimizations.txt",
        "before_optimizations.hlo.pb",
        "cpu_after_optimizations.txt",
        "cpu_after_optimizations.hlo.pb",
        "cpu_after_optimizations-buffer-assignment.txt",
    ] {
        let path = format!("d/module_0000.add.{name}");
        assert!(room.path(&path).is_file(), "{path}");
        if !name.ends_with("assignment.txt") {
            let ran = room.run(&["eval", &path, "-i", "x.npy", "-i", "y.npy"]);
            assert_eq!(stdout(&ran), "out0: f32[4] {11.0, 22.0, 33.0, 44.0}\n");
        }
    }
    let lonely = room.run(&["compile", "add.hlo", "--dump-hlo-as", "text"]);
    expect(&lonely, 2, "--dump-to");
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
        // What a program is called with is shown too.
        let skipped = usize::from(name == "text.xla");
        for verb in &["inspect", "verify", "run", "bench"][skipped..] {
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

#[test]
fn wrong_words_and_numbers_in_options_are_usage_errors() {
    let room = Room::compiled();
    let compile = ["compile", "add.hlo", "-o", "no.xla"];
    let run = ["run", "add.xla", "-i", "x.npy", "-i", "y.npy"];
    let bench = ["bench", "add.xla", "-i", "x.npy", "-i", "y.npy"];
    let cases: &[(&[&str], &str, &[&str], &str)] = &[
        (
            &compile,
            "--num-replicas",
            &["0", "-1", "two"],
            "a whole number from 1 to 4096",
        ),
        (
            &compile,
            "--num-partitions",
            &["0"],
            "a whole number from 1 to 4096",
        ),
        (
            &compile,
            "-j",
            &["0", "-2", "5000"],
            "a whole number from 1 to 4096",
        ),
        (
            &run,
            "--threads",
            &["0", "5000"],
            "a whole number from 1 to 4096",
        ),
        (
            &run,
            "--rtol",
            &["nan", "-1e-3", "inf"],
            "wanted a finite number, 0 or more",
        ),
        (
            &run,
            "--atol",
            &["-1", "-nan"],
            "wanted a finite number, 0 or more",
        ),
        (
            &bench,
            "--iterations",
            &["0", "-1"],
            "a whole number from 1 to 1000000000",
        ),
        (
            &bench,
            "--warm-up",
            &["-1"],
            "a whole number from 0 to 1000000000",
        ),
        (
            &bench,
            "--duration",
            &["-1", "nan", "1e9"],
            "from 0 to 86400",
        ),
        (&bench, "--threads", &["0"], "a whole number from 1 to 4096"),
        (&compile, "--target", &["h1000"], "did you mean `h100`"),
        (&compile, "--target", &["nosuch"], "known: p100, "),
        (&compile, "--target-cpu", &["znver9"], "did you mean `znver"),
        (
            &compile,
            "--target-platform-version",
            &["nvidia_h10"],
            "`nvidia_h100`",
        ),
        (
            &compile,
            "--input-format",
            &["hlo-txt"],
            "did you mean `hlo-text`",
        ),
        (
            &compile,
            "--stop-after",
            &["pases"],
            "did you mean `passes`",
        ),
        (&compile, "--emit", &["thunk"], "did you mean `thunks`"),
    ];
    for (verb, option, values, words) in cases {
        for value in *values {
            let args = [*verb, &[*option, *value]].concat();
            expect(&room.run(&args), 2, words);
        }
    }
    let format = ["eval", "add.hlo", "--input-format", "hlo-txt"];
    expect(&room.run(&format), 2, "did you mean `hlo-text`");
    assert!(!room.path("no.xla").exists());
    // A description in a file is an input, not a word of the command line.
    fs::write(room.path("gpu.txtpb"), "gpu_device_info { nonsense: 1 }").unwrap();
    let described = ["compile", "add.hlo", "--gpu-target-config", "gpu.txtpb"];
    expect(&room.run(&described), 1, "nonsense");
}

/// The lines of a text, each of which is a JSON object.
fn objects(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines();
    lines
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(value.is_object(), "{line}");
            value
        })
        .collect()
}

#[test]
fn with_json_all_that_is_told_is_json() {
    let room = Room::compiled();
    let inputs = ["-i", "x.npy", "-i", "y.npy", "--json"];
    let with = |first: &[&str], more: &[&str]| room.run(&[first, &inputs, more].concat());
    for (verb, file) in [("run", "add.xla"), ("eval", "add.hlo"), ("eval", "add.xla")] {
        let shown = with(&[verb, file], &[]);
        expect(&shown, 0, "");
        let result = objects(&stdout(&shown));
        assert_eq!(result.len(), 1);
        let wanted = serde_json::json!({"schema": 1, "results": [{
            "name": "out0", "type": "f32", "dims": [4],
            "first": ["11.0", "22.0", "33.0", "44.0"],
        }]});
        assert_eq!(result[0], wanted);
        let differs = with(&[verb, file], &["--expect", "other.npy"]);
        expect(&differs, 4, "");
        let result = objects(&stdout(&differs));
        assert_eq!(result[0]["passed"], false);
        assert_eq!(result[0]["results"][0]["name"], "out0");
        expect(&with(&[verb, file], &["-o", "-"]), 2, "standard output");
    }
    let verified = with(&["verify", "add.xla"], &["-v"]);
    let result = objects(&stdout(&verified));
    assert_eq!(
        (&result[0]["passed"], &result[0]["schema"]),
        (&true.into(), &1.into())
    );
    assert!(result[0]["summary"].as_str().unwrap().starts_with("sound"));
    for line in objects(&stderr(&verified)) {
        assert!(line["log"]["message"].is_string(), "{line}");
    }
    let explained = room.run(&["explain", "--json"]);
    let result = objects(&stdout(&explained));
    assert!(result[0]["codes"].as_array().unwrap().len() > 20);

    let timed = room.run(&["compile", "add.hlo", "--json", "-vv", "--time-passes"]);
    expect(&timed, 0, "times");
    let lines = objects(&stderr(&timed));
    let times = lines.iter().filter(|line| line["times"].is_object());
    let times: Vec<_> = times.collect();
    assert_eq!(times.len(), 1);
    assert!(times[0]["times"]["total_s"].as_f64().unwrap() > 0.0);
    let steps = times[0]["times"]["steps"].as_array().unwrap();
    assert!(
        steps
            .iter()
            .any(|step| step["name"] == "llvm" && step["depth"] == 0)
    );
    for part in ["front/read", "front/check"] {
        let is_part = |step: &serde_json::Value| step["name"] == part && step["depth"] == 1;
        assert!(steps.iter().any(is_part), "{part}");
    }
    let profile = [
        "bench",
        "add.xla",
        "-i",
        "x.npy",
        "-i",
        "y.npy",
        "--profile",
        "--json",
    ];
    let profiled = room.run(&[&profile[..], &["--iterations", "2"]].concat());
    let lines = objects(&stderr(&profiled));
    assert_eq!(lines[0]["profile"]["runs"], 2);
}

#[test]
fn with_json_every_error_is_one_object() {
    let room = Room::compiled();
    fs::write(room.path("bad.hlo"), ADD.replace("add(x, y)", "add(x, z)")).unwrap();
    for (args, exit, code) in [
        (&["compile"][..], 2, None),
        (&["complie"], 2, None),
        (&["run", "add.xla", "--threads", "0"], 2, None),
        (
            &["compile", "add.hlo", "--target", "nosuch"],
            2,
            Some("XA6004"),
        ),
        (&["compile", "add.hlo", "--emit", "poem"], 2, None),
        (&["explain", "XA0000"], 2, None),
        (&["compile", "bad.hlo"], 1, Some("XA1003")),
        (&["compile", "nothing.hlo"], 1, None),
        (&["run", "add.xla"], 1, Some("XA8001")),
        (&["run", "add.hlo"], 3, Some("XA7001")),
    ] {
        let output = room.run(&[args, &["--json"]].concat());
        expect(&output, exit, "{\"error\":{");
        assert_eq!(stdout(&output), "");
        let lines = objects(&stderr(&output));
        assert_eq!(lines.len(), 1, "{args:?}");
        let error = &lines[0]["error"];
        assert_eq!(error["exit"], exit, "{args:?}");
        assert_eq!(error["code"].as_str(), code, "{args:?}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{args:?}");
    }
    // What stands behind `--` is a name.
    let name = room.run(&["run", "--", "--json", "more"]);
    expect(&name, 2, "error: unexpected argument");
}

const TRANSPOSED: &str = "HloModule t, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}

ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  c = f32[2,3]{1,0} constant({{1, 2, 3}, {4, 5, 6}})
  ROOT sum = f32[2,3]{1,0} add(x, c)
}
";

#[test]
fn layouts_of_the_entry_are_the_callers_everywhere() {
    let room = Room::new();
    fs::write(room.path("t.hlo"), TRANSPOSED).unwrap();
    let square = TRANSPOSED
        .replace("2,3", "2,2")
        .replace("2, 3}, {4, 5, 6}", "2}, {4, 5}");
    fs::write(room.path("s.hlo"), square).unwrap();
    let array = |name: &str, shape: &str, values: &[f32]| {
        let bytes = npy_of(shape, values);
        fs::write(room.path(name), bytes).unwrap();
    };
    array("t.npy", "(2, 3)", &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    array("t_sum.npy", "(2, 3)", &[11.0, 22.0, 33.0, 44.0, 55.0, 66.0]);
    array("s.npy", "(2, 2)", &[10.0, 20.0, 30.0, 40.0]);
    array("s_sum.npy", "(2, 2)", &[11.0, 22.0, 34.0, 45.0]);
    for stem in ["t", "s"] {
        let (input, sum) = (format!("{stem}.npy"), format!("{stem}_sum.npy"));
        let (program, bundle) = (format!("{stem}.hlo"), format!("{stem}.xla"));
        expect(&room.run(&["compile", &program]), 0, "");
        for (verb, file) in [
            ("eval", &program),
            ("eval", &bundle),
            ("run", &bundle),
            ("verify", &bundle),
        ] {
            expect(
                &room.run(&[verb, file, "-i", &input, "--expect", &sum]),
                0,
                "",
            );
        }
        expect(&room.run(&["verify", &bundle, "-i", &input]), 0, "");
    }
}

#[test]
fn arrays_larger_than_memory_are_refused_at_the_door() {
    let room = Room::new();
    let huge = "9223372036854775807";
    for shape in [
        format!("f32[0,{huge}]"),
        format!("f32[{huge},{huge},0]"),
        format!("f32[{huge}]"),
        "u8[0,1152921504606846977]".to_owned(),
    ] {
        let text = format!(
            "HloModule h\n\nENTRY e {{\n  x = {shape} parameter(0)\n  ROOT y = {shape} negate(x)\n}}\n"
        );
        fs::write(room.path("huge.hlo"), text).unwrap();
        for verb in ["compile", "eval"] {
            expect(
                &room.run(&[verb, "huge.hlo"]),
                1,
                "is larger than memory can be",
            );
        }
    }
    let text = "HloModule h\n\nENTRY e {\n  x = f32[0,288230376151711744] parameter(0)\n  ROOT y = f32[0,288230376151711744] negate(x)\n}\n";
    fs::write(room.path("none.hlo"), text).unwrap();
    fs::write(
        room.path("none.npy"),
        npy_of("(0, 288230376151711744)", &[]),
    )
    .unwrap();
    expect(&room.run(&["compile", "none.hlo"]), 0, "");
    for args in [
        ["run", "none.xla"],
        ["eval", "none.hlo"],
        ["verify", "none.xla"],
    ] {
        expect(&room.run(&[&args[..], &["-i", "none.npy"]].concat()), 0, "");
    }
}

#[test]
fn a_flipped_bit_of_the_code_is_found() {
    let room = Room::compiled();
    let whole = fs::read(room.path("add.xla")).unwrap();
    expect(
        &room.run(&["inspect", "add.xla", "--emit", "obj=add.o"]),
        0,
        "",
    );
    let object = fs::read(room.path("add.o")).unwrap();
    let at = whole.windows(object.len()).position(|part| part == object);
    let mut damaged = whole;
    damaged[at.unwrap() + 0x45] ^= 4;
    fs::write(room.path("bad.xla"), damaged).unwrap();
    for verb in ["verify", "run", "inspect", "bench"] {
        expect(&room.run(&[verb, "bad.xla"]), 3, "XA7002");
    }
}

#[test]
fn errors_name_no_temporary_file() {
    let room = Room::new();
    let nowhere = room.run(&["compile", "add.hlo", "-o", "no/such/folder.xla"]);
    expect(
        &nowhere,
        1,
        "cannot write `no/such/folder.xla`: No such file",
    );
    assert!(
        !stderr(&nowhere).contains(".xla-aot-"),
        "{}",
        stderr(&nowhere)
    );
}
