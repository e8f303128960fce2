//! Files of other kinds than a verb takes: what they are is said.

use std::fs;

use crate::Room;
use crate::expect;
use crate::npy;
use crate::stderr;
use crate::stdout;

/// What exporters write first: the version and the graph of an ONNX model, the version and the first
/// graph of a SavedModel, a node of a GraphDef.
const ONNX: &[u8] = b"\x08\x08\x12\x01p\x3a\x04\x0a\x02\x0a\x00\x42\x02\x10\x11";
const SAVED_MODEL: &[u8] = b"\x08\x01\x12\x04\x0a\x02\x22\x00";
const GRAPH: &[u8] = b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder";

#[test]
fn files_of_others_are_called_by_their_name() {
    let room = Room::new();
    for (bytes, what) in [
        (ONNX, "an ONNX model"),
        (SAVED_MODEL, "a SavedModel of TensorFlow"),
        (GRAPH, "a GraphDef of TensorFlow"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "a gzip file"),
        (b"PK\x03\x04........................", "a zip archive"),
        (
            b"\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00}\x94.",
            "a pickle of Python",
        ),
        (b"HloLiveRange (max 94):\n", "XLA's listing of live ranges"),
        (
            b"\nTotal bytes used: 2326 (2.3KiB)\n",
            "XLA's listing of buffers",
        ),
    ] {
        fs::write(room.path("other"), bytes).unwrap();
        for verb in ["compile", "eval", "inspect", "run", "verify"] {
            let told = room.run(&[verb, "other"]);
            let is_program = matches!(verb, "compile" | "eval");
            let (code, kind) = match is_program {
                true => (1, "a program"),
                false => (3, "a bundle"),
            };
            expect(&told, code, &format!("this is {what}, not {kind}"));
            assert!(!stderr(&told).contains("Protobuf"), "{}", stderr(&told));
        }
    }
}

#[test]
fn messages_without_a_module_and_cut_texts_are_told() {
    let room = Room::new();
    // Three fields of numbers.
    fs::write(room.path("numbers.pb"), b"\x08\x01\x10\x02\x18\x03").unwrap();
    expect(
        &room.run(&["eval", "numbers.pb"]),
        1,
        "error[XA1004]: the bytes hold no HLO module",
    );
    // Its bytes pass for a message too.
    fs::write(room.path("cut.mlir"), "module @ji").unwrap();
    expect(
        &room.run(&["eval", "cut.mlir"]),
        1,
        "cut.mlir:1:11: error[XA1002]",
    );
}

#[test]
fn programs_where_bundles_are_wanted_and_bundles_where_programs_are() {
    let room = Room::compiled();
    let form = |to: &str, name: &str| {
        let made = room.run(&["translate", "add.hlo", "--to", to, "-o", name]);
        expect(&made, 0, "");
    };
    form("hlo-proto", "add.pb");
    form("stablehlo-text", "add.mlir");
    form("stablehlo-bytecode", "add.mlirbc");
    for (from, to) in [
        ("exports/affine.jax", "f.jax"),
        ("snapshots/plain.pb", "snapshot.pb"),
    ] {
        let from = format!("{}/tests/{from}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, room.path(to)).unwrap();
    }
    for (name, what) in [
        ("add.hlo", "HLO text"),
        ("add.pb", "an HLO proto"),
        ("add.mlir", "StableHLO text"),
        ("add.mlirbc", "StableHLO bytecode"),
        ("f.jax", "a jax.export artifact"),
        ("snapshot.pb", "a snapshot of XLA"),
    ] {
        for verb in ["run", "verify", "bench"] {
            let told = room.run(&[verb, name]);
            expect(
                &told,
                3,
                &format!("error[XA7001]: this is {what}, not a bundle"),
            );
            assert!(stderr(&told).contains("compile it first: `xla-aot compile`"));
        }
    }
    let again = room.run(&["compile", "add.xla", "-o", "again.xla"]);
    expect(&again, 1, "this is a bundle, which is compiled already");
    let inside = room.run(&[
        "translate",
        "add.xla",
        "--to",
        "hlo-text",
        "-o",
        "inside.hlo",
    ]);
    expect(
        &inside,
        0,
        "a bundle; its module is as the compiler left it",
    );
    let ran = room.run(&["eval", "inside.hlo", "-i", "x.npy", "-i", "y.npy"]);
    assert_eq!(stdout(&ran), "out0: f32[4] {11.0, 22.0, 33.0, 44.0}\n");
}

const SPREAD: &str = "module @spread attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%a: tensor<?x2xf32> {mhlo.sharding = \"{devices=[2,1]<=[2]}\"}, \
%b: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %c: tensor<2xf32> {jax.buffer_donor = true}) \
-> (tensor<2xf32> {jax.result_info = \"result['y']\", mhlo.sharding = \"{replicated}\"}) {
    %0 = stablehlo.custom_call @mine(%b, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
";

#[test]
fn what_a_program_is_called_with_is_shown() {
    let room = Room::new();
    fs::write(room.path("spread.mlir"), SPREAD).unwrap();
    let text = stdout(&room.run(&["inspect", "spread.mlir"]));
    for line in [
        "StableHLO text\nname: spread\nreplicas: 1\npartitions: 2\ncustom calls: mine\n",
        "  in0: tensor<?x2xf32>, sharding {devices=[2,1]<=[2]}\n",
        "  in1: tensor<2xf32>, may be donated to result 0\n",
        "  in2: tensor<2xf32>, may be donated\n",
        "  out0 result['y']: tensor<2xf32>, sharding {replicated}\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let json = stdout(&room.run(&["inspect", "spread.mlir", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["format"], "stablehlo-text");
    assert_eq!(json["partitions"], 2);
    assert_eq!(
        json["parameters"][1]["donated"],
        "may be donated to result 0"
    );
    assert_eq!(json["results"][0]["sharding"], "{replicated}");

    let hlo = "HloModule m, input_output_alias={ {1}: (0, {}, must-alias) }, num_partitions=2

ENTRY e {
  x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}
  p = (f32[2,3]{0,1}, s32[]) parameter(1)
  n = s32[] get-tuple-element(p), index=1
  ROOT r = (s32[], f32[4]{0}) tuple(n, x)
}
";
    fs::write(room.path("m.hlo"), hlo).unwrap();
    let text = stdout(&room.run(&["inspect", "m.hlo"]));
    for line in [
        "HLO text\nname: m\nreplicas: 1\npartitions: 2\ninstructions: 4\n",
        "  in0 x: f32[4], sharding {devices=[2]<=[2]}, must be donated to result [1]\n",
        "  in1 to in2 p: (f32[2,3]{0,1}, s32[])\n",
        "  out0 to out1: (s32[], f32[4])\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }

    let from = format!("{}/tests/snapshots/plain.pb", env!("CARGO_MANIFEST_DIR"));
    fs::copy(from, room.path("snapshot.pb")).unwrap();
    let text = stdout(&room.run(&["inspect", "snapshot.pb"]));
    assert!(
        text.starts_with("a snapshot of XLA, with arguments\n"),
        "{text}"
    );
    fs::write(room.path("bad.mlir"), "module {\n  func.func @main( {\n}\n").unwrap();
    expect(&room.run(&["inspect", "bad.mlir"]), 1, "bad.mlir:2:");
    fs::write(room.path("x.bin"), npy(&[1.0])).unwrap();
    expect(
        &room.run(&["inspect", "x.bin"]),
        3,
        "this is an array of NumPy, not a bundle",
    );
}
