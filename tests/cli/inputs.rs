//! Which array is which input, and how close results must be.

use std::fs;

use crate::Room;
use crate::expect;
use crate::npy;
use crate::stderr;
use crate::stdout;

/// An archive of arrays of these names.
fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    use std::io::Write;
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let options = options.compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in arrays {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn arrays_go_by_the_names_of_the_program_and_of_numpy() {
    let room = Room::compiled();
    let (x, y) = (npy(&[1.0, 2.0, 3.0, 4.0]), npy(&[10.0, 20.0, 30.0, 40.0]));
    let sum = npy(&[11.0, 22.0, 33.0, 44.0]);
    for (first, second) in [("in0", "in1"), ("x", "y"), ("arr_0", "arr_1")] {
        let both = npz(&[(second, y.clone()), (first, x.clone())]);
        fs::write(room.path("both.npz"), both).unwrap();
        for (verb, program) in [("run", "add.xla"), ("eval", "add.hlo")] {
            let ran = room.run(&[verb, program, "-i", "both.npz"]);
            expect(&ran, 0, "");
            assert_eq!(stdout(&ran), "out0: f32[4] {11.0, 22.0, 33.0, 44.0}\n");
        }
    }
    fs::write(room.path("want.npz"), npz(&[("arr_0", sum)])).unwrap();
    let compared = [
        "run", "add.xla", "-i", "both.npz", "--expect", "want.npz", "--rtol", "0",
    ];
    expect(&room.run(&compared), 0, "");
    let twice = room.run(&["run", "add.xla", "-i", "both.npz", "-i", "both.npz"]);
    expect(&twice, 1, "`arr_0` is `in0`, which was given before");
    fs::write(room.path("one.npz"), npz(&[("x", x)])).unwrap();
    let lacking = room.run(&["run", "add.xla", "-i", "one.npz"]);
    expect(&lacking, 1, "`in1`, f32[4], is missing");
    assert!(stderr(&lacking).contains("`in1` is y"));
    let seen = stdout(&room.run(&["inspect", "add.xla"]));
    assert!(seen.contains("  in1 y: f32[4]"), "{seen}");
}

#[test]
fn arguments_of_an_export_that_are_not_used_have_no_place() {
    let room = Room::new();
    let from = format!("{}/tests/exports/ordered.jax", env!("CARGO_MANIFEST_DIR"));
    fs::copy(from, room.path("ordered.jax")).unwrap();
    let seen = stdout(&room.run(&["inspect", "ordered.jax"]));
    assert!(seen.contains("  in0 args[0]: f32[4]\n"), "{seen}");
    assert!(seen.contains("  args[1]: f32[2], not used\n"), "{seen}");
    let two = ["eval", "ordered.jax", "-i", "x.npy", "-i", "y.npy"];
    let refused = room.run(&two);
    expect(
        &refused,
        1,
        "`the array` has no place, only `in0` is wanted",
    );
    assert!(stderr(&refused).contains("`in0` is args[0]"));
}

const SUMS: &str = "HloModule sums

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  total = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  twice = f32[4]{0} add(x, x)
  back = f32[4]{0} reverse(x), dimensions={0}
  ROOT all = (f32[], f32[4]{0}, f32[4]{0}) tuple(total, twice, back)
}
";

#[test]
fn results_are_as_close_as_how_they_are_made_lets_them_be() {
    let room = Room::new();
    fs::write(room.path("sums.hlo"), SUMS).unwrap();
    expect(&room.run(&["compile", "sums.hlo"]), 0, "");
    let verified = room.run(&["verify", "sums.xla", "-i", "x.npy", "--json"]);
    expect(&verified, 0, "");
    let json: serde_json::Value = serde_json::from_str(&stdout(&verified)).unwrap();
    let summary = "sound, runs on this host, results as the reference evaluator has them";
    assert_eq!(json["summary"], summary);
    // 64 units of 2^-23, relative to the sum of 10, to 1 where there is no sum of many, and none for
    // what is only moved.
    for (result, wanted) in [
        (0, "wanted within 7.63e-6 relative, 7.63e-5 absolute"),
        (1, "wanted within 7.63e-6 relative, 7.63e-6 absolute"),
        (2, "wanted equal ones"),
    ] {
        let text = json["results"][result]["text"].as_str().unwrap();
        assert!(text.ends_with(wanted), "{text}");
    }
    let said = [
        "verify", "sums.xla", "-i", "x.npy", "--rtol", "0", "--atol", "1",
    ];
    expect(&room.run(&said), 0, "");
}

#[test]
fn the_summary_says_what_happened() {
    let room = Room::compiled();
    let inputs = ["-i", "x.npy", "-i", "y.npy", "--expect", "other.npy"];
    let differs = room.run(&[&["verify", "add.xla", "--json"][..], &inputs].concat());
    expect(&differs, 4, "");
    let json: serde_json::Value = serde_json::from_str(&stdout(&differs)).unwrap();
    assert_eq!(json["passed"], false);
    let summary = "sound, runs on this host, but 1 of 1 results not as the file has them";
    assert_eq!(json["summary"], summary);
}
