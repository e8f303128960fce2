//! Where bundles run: `--device`.

use crate::Room;
use crate::expect;
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
    for device in ["sim:h100_sxm", "sim"] {
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
    expect(&other, 3, "the code is for capability 9.0a, this host has");
    expect(
        &run_on(&room, "sim:gpu_of_dreams", &[]),
        2,
        "`gpu_of_dreams` is not the name of a GPU",
    );
    expect(&run_on(&room, "gpu", &[]), 2, "no such device `gpu`");
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
