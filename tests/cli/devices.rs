//! Where bundles run: `--device`.

use std::fs;
use std::process::Output;

use assert_cmd::Command;

use crate::Room;
use crate::expect;
use crate::objects;
use crate::stderr;
use crate::stdout;

/// A folder with `add.xla` for an H100, its code in a form that every device of that kind loads.
fn compiled() -> Room {
    let room = Room::new();
    let compile = room.run(&["compile", "add.hlo", "--target", "h100_sxm", "--no-ptxas"]);
    expect(&compile, 0, "");
    room
}

fn run_on(room: &Room, device: &str, more: &[&str]) -> std::process::Output {
    let mut args = vec!["run", "add.xla", "-i", "x.npy", "-i", "y.npy"];
    args.extend(["--device", device]);
    args.extend(more);
    room.run(&args)
}

#[test]
fn cuda_bundles_run_on_a_simulated_gpu() {
    let room = compiled();
    for device in ["sim:h100_sxm", "sim", "sim:sm_90", "sim:sm_90a", "sim:9.0"] {
        expect(&run_on(&room, device, &["--expect", "sum.npy"]), 0, "");
        let other = run_on(&room, device, &["--expect", "other.npy"]);
        assert_eq!(other.status.code(), Some(4), "{}", stderr(&other));
    }
    let verify = [
        "verify", "add.xla", "--device", "sim", "-i", "x.npy", "-i", "y.npy",
    ];
    let verify = room.run(&verify);
    expect(&verify, 0, "");
    assert!(stdout(&verify).contains("as the reference evaluator has them"));
}

#[test]
fn counts_are_told_as_a_table_and_as_json() {
    let room = compiled();
    let table = run_on(&room, "sim", &["--stats", "--expect", "sum.npy"]);
    assert_eq!(table.status.code(), Some(0));
    let told = stderr(&table);
    assert!(told.contains("bound by"), "{told}");
    assert!(told.contains("sum"), "{told}");
    let json = run_on(&room, "sim", &["--stats", "--json"]);
    let line: serde_json::Value = serde_json::from_str(stderr(&json).trim()).unwrap();
    let launch = &line["stats"]["launches"][0];
    // Two arrays of 16 bytes are read and one is written; each lies in a sector of its own.
    assert_eq!(launch["bytes_read"], 32);
    assert_eq!(launch["bytes_written"], 16);
    assert_eq!(launch["sectors_read"], 2);
    assert_eq!(launch["flops"], 4);
}

#[test]
fn devices_that_do_not_fit_are_refused() {
    let room = compiled();
    let other = run_on(&room, "sim:a100_sxm_80", &[]);
    expect(
        &other,
        3,
        "the code is for capability 9.0a, the simulated GPU is NVIDIA A100",
    );
    let mut named = Command::cargo_bin("xla-aot").unwrap();
    named.current_dir(room.path(""));
    named.args(["verify", "add.xla", "--device", "sim"]);
    let named = named.env("XLA_AOT_SIM_TARGET", "a100_sxm_80").output();
    expect(&named.unwrap(), 3, "the simulated GPU is NVIDIA A100");
    expect(
        &run_on(&room, "sim:gpu_of_dreams", &[]),
        2,
        "`gpu_of_dreams` is not the name of a GPU",
    );
    expect(
        &run_on(&room, "sim:sm_12", &[]),
        2,
        "no GPU of capability `sm_12` ships",
    );
    expect(&run_on(&room, "gpu", &[]), 2, "no such device `gpu`");
    // What is wrong with the command line is told before a file is looked for.
    for verb in ["run", "verify", "bench"] {
        let lost = room.run(&[verb, "lost.xla", "--device", "sim:nothing"]);
        expect(&lost, 2, "`nothing` is not the name of a GPU");
    }
    expect(
        &run_on(&room, "cuda:x", &[]),
        2,
        "`x` is not the number of a device",
    );
    let cpu = Room::compiled();
    let run = ["run", "add.xla", "-i", "x.npy", "-i", "y.npy", "--stats"];
    expect(&cpu.run(&run), 2, "only a simulated GPU counts");
    let wrong = run_on(&cpu, "sim", &[]);
    assert!(
        [1, 3].contains(&wrong.status.code().unwrap()),
        "{}",
        stderr(&wrong)
    );
    assert!(stderr(&wrong).contains("CPU"), "{}", stderr(&wrong));
}

/// Runs the program with a setting of the simulator.
fn run_set(room: &Room, set: (&str, &str), args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("xla-aot").unwrap();
    let folder = room.path("");
    command.current_dir(folder).args(args).env(set.0, set.1);
    command.output().unwrap()
}

const RUN: [&str; 6] = ["run", "add.xla", "-i", "x.npy", "-i", "y.npy"];

#[test]
fn verify_and_run_judge_alike() {
    let room = compiled();
    let sim = ["--device", "sim"];
    let (run, verify, bench) = (
        [&RUN[..], &sim].concat(),
        [&["verify", "add.xla"][..], &sim].concat(),
        [&["bench", "--iterations", "1"][..], &RUN[1..], &sim].concat(),
    );
    // More memory than the device has.
    let small = ("XLA_AOT_SIM_MEMORY", "40");
    for args in [&run, &verify, &bench] {
        let found = run_set(&room, small, args);
        expect(&found, 3, "XA7004");
        expect(&found, 3, "the program needs 48 B of device memory");
    }
    for args in [&run, &verify, &bench] {
        let found = run_set(&room, ("XLA_AOT_SIM_MEMORY", "4096"), args);
        assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
    }
    // Machine code, which is nothing for a simulated GPU.
    let script = "#!/bin/sh\ncase $1 in --version) echo 'Cuda release 12.9, V12.9.1';; \
                  *) { printf '\\177ELF\\002\\001'; head -c 58 /dev/zero; } > $6;; esac\n";
    fs::write(room.path("ptxas"), script).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(room.path("ptxas"), fs::Permissions::from_mode(0o755)).unwrap();
    let ptxas = room.path("ptxas").display().to_string();
    let compile = [
        "compile", "add.hlo", "--target", "h100_sxm", "--ptxas", &ptxas,
    ];
    expect(&room.run(&compile), 0, "");
    for args in [&run, &verify, &bench] {
        let found = room.run(args);
        expect(&found, 3, "XA7004");
        expect(&found, 3, "is machine code, and the simulated GPU runs PTX");
    }
    expect(&room.run(&["verify", "add.xla", "--any-host"]), 0, "");
}

#[test]
fn what_the_simulator_says_is_part_of_the_finding() {
    let room = compiled();
    let json = [&RUN[..], &["--device", "sim", "--json"]].concat();
    for (set, code, exit, told) in [
        (
            ("XLA_AOT_SIM_DEVICES", "0"),
            "XA8006",
            3,
            "XLA_AOT_SIM_DEVICES is 0",
        ),
        (
            ("XLA_AOT_SIM_DEVICES", "many"),
            "XA8006",
            3,
            "found `many`, wanted a number",
        ),
        (("XLA_AOT_SIM_CHECKS", "luck"), "XA8006", 3, "found `luck`"),
        (
            ("XLA_AOT_SIM_STATS", "/no/such/folder/f"),
            "XA8006",
            3,
            "cannot write",
        ),
    ] {
        let found = run_set(&room, set, &json);
        expect(&found, exit, told);
        let lines = objects(&stderr(&found));
        assert_eq!(lines.len(), 1, "{lines:?}");
        let error = &lines[0]["error"];
        assert_eq!(error["code"], code);
        assert_eq!(error["notes"].as_array().unwrap().len(), 1, "{error}");
        let text = run_set(&room, set, &json[..json.len() - 1]);
        expect(&text, exit, told);
        assert_eq!(stderr(&text).matches(told).count(), 1, "{}", stderr(&text));
    }
}
