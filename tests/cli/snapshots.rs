//! Snapshots of XLA as programs, as inputs and as expected results.

use std::fs;

use crate::Room;
use crate::expect;
use crate::stderr;
use crate::stdout;

fn room() -> Room {
    let room = Room::new();
    for name in ["plain.pb", "large.pb", "optimized.pb"] {
        let from = format!("{}/tests/snapshots/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, room.path(name)).unwrap();
    }
    room
}

#[test]
fn a_snapshot_brings_its_arguments_and_its_result() {
    let room = room();
    let exact = ["--rtol", "0", "--atol", "0"];
    for name in ["plain.pb", "large.pb", "optimized.pb"] {
        let evaluated = room.run(&["eval", name]);
        expect(&evaluated, 0, "");
        let text = stdout(&evaluated);
        assert!(text.contains("out1: s32[3] {-7, 8, 4}"), "{text}");
        assert!(text.contains("out3: f32[0,2] {}"), "{text}");
        let compared = ["eval", name, "--expect", "optimized.pb"];
        expect(&room.run(&[&compared[..], &exact].concat()), 0, "");
        expect(&room.run(&["compile", name, "-o", "s.xla"]), 0, "");
        let compared = [
            "run",
            "s.xla",
            "--input",
            "large.pb",
            "--expect",
            "optimized.pb",
        ];
        expect(&room.run(&[&compared[..], &exact].concat()), 0, "");
        let compared = ["bisect", name];
        expect(&room.run(&compared), 0, "");
    }
    let bytes = fs::read(room.path("large.pb")).unwrap();
    expect(&room.run_with(&["eval", "-"], &bytes), 0, "");
}

#[test]
fn what_a_snapshot_lacks_is_told() {
    let room = room();
    let lacking = room.run(&["eval", "plain.pb", "--expect", "plain.pb"]);
    expect(&lacking, 1, "the snapshot holds arguments, and no result");
    expect(&room.run(&["compile", "plain.pb", "-o", "s.xla"]), 0, "");
    let none = room.run(&["run", "s.xla"]);
    expect(&none, 1, "`in0`, f32[2,5], is missing");
    let told = stderr(&none);
    assert!(
        told.contains("--input: an `.npz` with `in0` to `in4`"),
        "{told}"
    );
    let other = room.run(&["eval", "add.hlo", "--input", "plain.pb"]);
    expect(&other, 1, "`in2` has no place, `in0` to `in1` are wanted");
    let bytes = fs::read(room.path("large.pb")).unwrap();
    fs::write(room.path("cut.pb"), &bytes[..bytes.len() - 5]).unwrap();
    let cut = room.run(&["run", "s.xla", "--input", "cut.pb"]);
    expect(
        &cut,
        1,
        "argument 4 of the snapshot has 19 bytes by the header, the file has 14",
    );
    assert!(stderr(&cut).contains("cut.pb"), "{}", stderr(&cut));
}
