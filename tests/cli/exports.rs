//! Files of `jax.export`, and programs in every form.

use std::fs;

use crate::Room;
use crate::expect;
use crate::npy;
use crate::npy_of;
use crate::stderr;
use crate::stdout;

fn room(names: &[&str]) -> Room {
    let room = Room::new();
    for name in names {
        let from = format!("{}/tests/exports/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, room.path(name)).unwrap();
    }
    room
}

/// Compiles and runs a file, and evaluates it; both give these results.
fn gives(room: &Room, file: &str, more: &[&str], inputs: &[&str], wanted: &[&str]) {
    let inputs: Vec<&str> = inputs.iter().flat_map(|name| ["-i", name]).collect();
    let evaluated = room.run(&[&["eval", file][..], more, &inputs].concat());
    assert_eq!(evaluated.status.code(), Some(0), "{}", stderr(&evaluated));
    let compiled = room.run(&[&["compile", file, "-o", "it.xla"][..], more].concat());
    assert_eq!(compiled.status.code(), Some(0), "{}", stderr(&compiled));
    let ran = room.run(&[&["run", "it.xla"][..], &inputs].concat());
    for (i, want) in wanted.iter().enumerate() {
        let want = format!("out{i}: {want}\n");
        for told in [stdout(&evaluated), stdout(&ran)] {
            assert!(told.contains(&want), "{file}: wanted {want}in {told}");
        }
    }
}

#[test]
fn exports_are_programs() {
    let room = room(&[
        "affine.jax",
        "old.jax",
        "twice.jax",
        "convention9.jax",
        "ordered.jax",
    ]);
    fs::write(room.path("b.npy"), npy(&[1.0, 2.0])).unwrap();
    fs::write(
        room.path("w.npy"),
        npy_of("(3, 2)", &[1.0, 0.0, 0.0, 1.0, 2.0, 3.0]),
    )
    .unwrap();
    let x: Vec<f32> = (0u8..12).map(f32::from).collect();
    fs::write(room.path("m.npy"), npy_of("(4, 3)", &x)).unwrap();
    fs::write(room.path("s.npy"), npy_of("()", &[2.0])).unwrap();
    // Row i of x is (3i, 3i+1, 3i+2).
    let wanted = ["f32[4,2] {10.0, 18.0, 28.0, 42.0, 46.0, 66.0, 64.0, 90.0}"];
    let inputs = ["b.npy", "w.npy", "m.npy", "s.npy"];
    gives(&room, "affine.jax", &[], &inputs, &wanted);
    gives(&room, "old.jax", &[], &inputs, &wanted);
    let seen = stdout(&room.run(&["inspect", "it.xla"]));
    assert!(seen.contains("kwargs['scale']"), "{seen}");
    let eight: Vec<f32> = (0u8..8).map(f32::from).collect();
    fs::write(room.path("e.npy"), npy(&eight)).unwrap();
    let wanted = [
        "f32[8] {0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0}",
        "f32[8] {-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0}",
    ];
    for file in ["twice.jax", "convention9.jax"] {
        gives(&room, file, &[], &["e.npy", "e.npy"], &wanted);
    }
    let told = room.run(&["eval", "ordered.jax", "-i", "x.npy"]);
    expect(
        &told,
        0,
        "warning: the export has an ordered effect: program.Ordered\n",
    );
    assert_eq!(stdout(&told), "out0: f32[4] {2.0, 4.0, 6.0, 8.0}\n");
}

#[test]
fn sizes_and_platforms_are_chosen() {
    let room = room(&["ragged.jax", "picked.jax", "calls.jax"]);
    fs::write(room.path("one.npy"), npy_of("(1, 2)", &[1.0, 2.0])).unwrap();
    let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    fs::write(room.path("three.npy"), npy_of("(3, 2)", &six)).unwrap();
    let inputs = ["one.npy", "three.npy"];
    let wanted = ["f32[4] {3.0, 3.0, 7.0, 11.0}", "s32[3] {1, 1, 1}"];
    gives(&room, "ragged.jax", &["--dim", "b=1,c=2"], &inputs, &wanted);
    let lacking = room.run(&["compile", "ragged.jax", "--dim", "c=2"]);
    expect(&lacking, 1, "the dimension variable `b` has no size");
    let told = stderr(&lacking);
    assert!(
        told.contains("args[0] f32[b,c], args[1] f32[2*b + 1,c]"),
        "{told}"
    );
    assert!(told.contains("--dim b=N"), "{told}");
    let other = room.run(&["eval", "ragged.jax", "--dim", "b=1,c=2,d=3"]);
    expect(&other, 1, "no dimension variable `d`, it has `b`, `c`");
    let huge = room.run(&["eval", "ragged.jax", "--dim", "b=2147483648,c=2"]);
    let wanted = "the dimension variable `b` is 2147483648, wanted at most 2147483647";
    expect(&huge, 1, wanted);
    let none = room.run(&["eval", "ragged.jax", "--dim", "b=0,c=2"]);
    expect(&none, 1, "`b` is 0, wanted at least 1");
    expect(
        &room.run(&["eval", "add.hlo", "--dim", "b=1"]),
        1,
        "--dim is for files of jax.export",
    );
    expect(
        &room.run(&["eval", "add.hlo", "--dim", "b"]),
        2,
        "wanted NAME=SIZE",
    );

    gives(
        &room,
        "picked.jax",
        &[],
        &["x.npy"],
        &["f32[4] {2.0, 3.0, 4.0, 5.0}"],
    );
    let cuda = ["--platform", "cuda"];
    gives(
        &room,
        "picked.jax",
        &cuda,
        &["x.npy"],
        &["f32[4] {3.0, 4.0, 5.0, 6.0}"],
    );
    for (more, note) in [
        (
            &[][..],
            "warning: the export is for cpu, cuda; `cpu` is taken, --platform names another",
        ),
        (&cuda, ""),
    ] {
        let to = [
            "translate",
            "picked.jax",
            "--to",
            "hlo-text",
            "-o",
            "picked.hlo",
        ];
        expect(&room.run(&[&to[..], more].concat()), 0, note);
    }
    let tpu = room.run(&["eval", "picked.jax", "--platform", "tpu"]);
    expect(&tpu, 1, "not for the platform `tpu`, only for cpu, cuda");
    let calls = room.run(&["compile", "calls.jax"]);
    expect(&calls, 0, "custom_call:lapack_spotrf_ffi");
}

#[test]
fn an_export_tells_what_it_is() {
    let room = room(&["affine.jax", "ragged.jax"]);
    let text = stdout(&room.run(&["inspect", "ragged.jax"]));
    for line in [
        "function: ragged\nserialization version: 3\ncalling convention version: 10\n",
        "platforms: cpu",
        "dimension variables: b, c",
        "in1 args[1]: f32[2*b + 1,c]\n",
        "out0 result[0]: f32[3*b + 1]\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let json = stdout(&room.run(&["inspect", "affine.jax", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["arguments"][3]["name"], "kwargs['scale']");
    assert_eq!(json["arguments"][3]["inputs"], serde_json::json!(["in3"]));
    assert_eq!(json["arguments"][3]["dims"], serde_json::json!([]));
    let bytes = fs::read(room.path("affine.jax")).unwrap();
    fs::write(room.path("cut.jax"), &bytes[..bytes.len() - 30]).unwrap();
    assert_eq!(room.run(&["compile", "cut.jax"]).status.code(), Some(1));
}

#[test]
fn every_form_is_translated_to_every_other() {
    let room = room(&["twice.jax"]);
    let forms = [
        "hlo-text",
        "hlo-proto",
        "stablehlo-text",
        "stablehlo-bytecode",
    ];
    for from in ["add.hlo", "twice.jax"] {
        for first in forms {
            expect(
                &room.run(&["translate", from, "--to", first, "-o", "first"]),
                0,
                "",
            );
            for second in forms {
                let again = ["translate", "first", "--to", second, "-o", "second"];
                expect(&room.run(&again), 0, "");
                let inputs = match from {
                    "add.hlo" => ["-i", "x.npy", "-i", "y.npy"],
                    _ => ["-i", "e.npy", "-i", "e.npy"],
                };
                let eight: Vec<f32> = (0u8..8).map(f32::from).collect();
                fs::write(room.path("e.npy"), npy(&eight)).unwrap();
                let ran = room.run(&[&["eval", "second"][..], &inputs].concat());
                expect(&ran, 0, "");
                let wanted = match from {
                    "add.hlo" => "{11.0, 22.0, 33.0, 44.0}",
                    _ => "{0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0}",
                };
                assert!(stdout(&ran).contains(wanted), "{from} {first} {second}");
            }
        }
    }
    let text = stdout(&room.run(&["translate", "add.hlo", "--to", "stablehlo-text"]));
    assert!(text.contains("stablehlo.add"), "{text}");
    let old = [
        "translate",
        "add.hlo",
        "--to",
        "stablehlo-bytecode",
        "-o",
        "old",
    ];
    let old = [&old[..], &["--stablehlo-version", "0.9.0"]].concat();
    expect(&room.run(&old), 0, "");
    assert!(fs::read(room.path("old")).unwrap().starts_with(b"ML\xefR"));
}

#[test]
fn artifacts_hold_ops_of_chlo() {
    let room = room(&[]);
    let text = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n\
                %0 = chlo.sinh %a : tensor<2xf32> -> tensor<2xf32>\n\
                return %0 : tensor<2xf32>\n}\n";
    fs::write(room.path("sinh.mlir"), text).unwrap();
    fs::write(room.path("in.npy"), npy(&[0.0, 1.0])).unwrap();
    // Composites are as old as 1.0.0.
    for version in ["1.0.0", "1.11.0"] {
        let to = ["translate", "sinh.mlir", "--to", "stablehlo-bytecode"];
        let as_of = ["--stablehlo-version", version, "-o", "sinh"];
        expect(&room.run(&[to, as_of].concat()), 0, "");
        let ran = room.run(&["eval", "sinh", "-i", "in.npy"]);
        expect(&ran, 0, "");
        // sinh(1), from mpmath.
        assert!(
            stdout(&ran).contains("{0.0, 1.1752012}"),
            "{}",
            stdout(&ran)
        );
    }
}

#[test]
fn artifacts_hold_what_stablehlo_lacks() {
    let room = room(&[]);
    // Running sums, the least two of them, and each row times the number of its group.
    let text = "HloModule m\n\
        step {\n  x = f32[] parameter(0)\n  c = f32[] parameter(1)\n  y = f32[] add(x, c)\n  \
        ROOT t = (f32[], f32[]) tuple(y, y)\n}\n\
        ENTRY e {\n  x = f32[4] parameter(0)\n  z = f32[] constant(0)\n  \
        s = (f32[4], f32[]) scan(x, z), dimensions={0}, num_carries=1, to_apply=step\n  \
        y = f32[4] get-tuple-element(s), index=0\n  \
        t = (f32[2], s32[2]) topk(y), k=2, largest=false\n  \
        v = f32[2] get-tuple-element(t), index=0\n  l = f32[4,1] reshape(y)\n  \
        r = f32[2,1,1] constant({{{1}},{{10}}})\n  g = s32[2] constant({1,3})\n  \
        d = f32[4,1] ragged-dot(l, r, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
        lhs_ragged_dims={0}, rhs_group_dims={0}\n  ROOT o = (f32[2], f32[4,1]) tuple(v, d)\n}\n";
    fs::write(room.path("m.hlo"), text).unwrap();
    fs::write(room.path("in.npy"), npy(&[1.0, 2.0, 3.0, 4.0])).unwrap();
    for version in ["1.0.0", "1.17.0"] {
        let to = ["translate", "m.hlo", "--to", "stablehlo-bytecode"];
        let as_of = ["--stablehlo-version", version, "-o", "m"];
        expect(&room.run(&[to, as_of].concat()), 0, "");
        let ran = room.run(&["eval", "m", "-i", "in.npy"]);
        expect(&ran, 0, "");
        let told = stdout(&ran);
        assert!(told.contains("{1.0, 3.0}"), "{version}: {told}");
        assert!(told.contains("1.0, 30.0, 60.0, 100.0"), "{version}: {told}");
    }
    let text = stdout(&room.run(&["translate", "m", "--to", "hlo-text"]));
    assert!(text.contains(" ragged-dot("), "{text}");
}

#[test]
fn what_cannot_be_translated_is_told() {
    let room = room(&[]);
    expect(&room.run(&["translate", "add.hlo"]), 2, "--to");
    expect(
        &room.run(&["translate", "add.hlo", "--to", "hlo"]),
        2,
        "no form of programs",
    );
    let version = [
        "translate",
        "add.hlo",
        "--to",
        "hlo-text",
        "--stablehlo-version",
        "1.0.0",
    ];
    expect(&room.run(&version), 2, "is for stablehlo-bytecode");
    let over = ["translate", "add.hlo", "--to", "hlo-text", "-o", "add.hlo"];
    expect(&room.run(&over), 2, "would destroy `add.hlo`");
    fs::write(room.path("bad.mlir"), "module {\n  func.func @main( {\n}\n").unwrap();
    fs::write(room.path("kept"), "before").unwrap();
    let bad = room.run(&["translate", "bad.mlir", "--to", "hlo-text", "-o", "kept"]);
    expect(&bad, 1, "bad.mlir:2:");
    assert_eq!(fs::read(room.path("kept")).unwrap(), b"before");
}
