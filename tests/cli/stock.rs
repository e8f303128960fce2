//! Bundles for stock runtimes: their forms, who runs them, and what JAX keeps them in.

use std::fs;

use xla_aot::wire::container::Codec;
use xla_aot::wire::container::Container;

use crate::Room;
use crate::expect;
use crate::stdout;

#[test]
fn a_bundle_says_who_runs_it() {
    let room = Room::new();
    for (options, wanted) in [
        (&["--format", "jax"][..], "and on jaxlib 0.9.1 to 0.12.0\n"),
        (&["--jax-envelope"], "and on jaxlib 0.9.1 to 0.12.0\n"),
        (
            &["--format", "pjrt"],
            "and on jaxlib 0.9.1 to 0.12.0, through PJRT",
        ),
        (
            &["--jaxlib-compat", "0.8.3"],
            "and on jaxlib 0.7.2 to 0.9.0\n",
        ),
        (
            &["--jaxlib-compat", "0.9.0", "--format", "jax"],
            "and on jaxlib 0.7.2 to 0.9.0\n",
        ),
        (
            &["--target", "h100_sxm", "--no-ptxas", "--format", "jax"],
            "and on jax-cuda12-plugin 0.10.2 to 0.12.0.1\n",
        ),
    ] {
        let compile = [&["compile", "add.hlo"], options].concat();
        expect(&room.run(&compile), 0, "");
        let inspect = room.run(&["inspect", "add.xla"]);
        expect(&inspect, 0, "");
        let text = stdout(&inspect);
        assert!(text.contains(wanted), "{options:?}: {text}");
        let verify = room.run(&["verify", "add.xla", "--any-host"]);
        expect(&verify, 0, "");
    }
    let run = [
        "run", "add.xla", "-i", "x.npy", "-i", "y.npy", "--expect", "sum.npy",
    ];
    expect(
        &room.run(&["compile", "add.hlo", "--jaxlib-compat", "0.8"]),
        0,
        "",
    );
    expect(&room.run(&run), 0, "");
    let old = room.run(&["compile", "add.hlo", "--jaxlib-compat", "0.6.2"]);
    expect(&old, 2, "0.7.2 and newer");
}

/// A custom call that jaxlib does not know must be registered there too.
#[test]
fn what_must_be_registered_is_told() {
    let room = Room::new();
    let program = "HloModule c\n\nENTRY e {\n  x = f32[2]{0} parameter(0)\n  ROOT y = f32[2]{0} \
        custom-call(x), custom_call_target=\"mine\", api_version=API_VERSION_TYPED_FFI\n}\n";
    fs::write(room.path("c.hlo"), program).unwrap();
    expect(&room.run(&["compile", "c.hlo", "--format", "jax"]), 0, "");
    let inspect = room.run(&["inspect", "c.xla", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&inspect)).unwrap();
    let runtimes = &json["runtimes"];
    assert_eq!(runtimes["conditions"][0], "with `mine` registered");
    assert_eq!(runtimes["obstacles"], serde_json::json!([]));
}

/// jaxlib ends its process when a parameter is a tuple of tuples, and has no dynamic sizes at its door.
#[test]
fn what_no_stock_runtime_runs_is_told() {
    let room = Room::new();
    for (shape, value, wanted) in [
        (
            "((f32[2]{0}))",
            "t = (f32[2]{0}) get-tuple-element(x), index=0\n  ROOT y = f32[2]{0} \
            get-tuple-element(t), index=0",
            "stock jaxlib: it ends its process: parameter 0 is a tuple",
        ),
        (
            "f32[<=2]{0}",
            "ROOT y = f32[<=2]{0} negate(x)",
            "stock jaxlib: it takes no array of dynamic",
        ),
    ] {
        let program =
            format!("HloModule n\n\nENTRY e {{\n  x = {shape} parameter(0)\n  {value}\n}}\n");
        fs::write(room.path("n.hlo"), program).unwrap();
        expect(&room.run(&["compile", "n.hlo", "--format", "jax"]), 0, "");
        let verify = room.run(&["verify", "n.xla"]);
        expect(&verify, 0, "");
        let text = stdout(&verify);
        assert!(text.contains(wanted), "{text}");
        let inspect = stdout(&room.run(&["inspect", "n.xla"]));
        assert!(inspect.contains("and on no jaxlib: it "), "{inspect}");
    }
}

/// A fusion that updates its parameter in place for jaxlib does so here too, also when it reads other
/// parts of it: jaxlib ends its process over others.
#[test]
fn updates_in_place_are_what_jaxlib_takes_for_such() {
    let room = Room::new();
    let shifted = "HloModule s\n\nENTRY e {\n  x = f32[64]{0} parameter(0)\n  \
        one = s32[] constant(1)\n  s = f32[63]{0} slice(x), slice={[0:63]}\n  \
        n = f32[63]{0} negate(s)\n  ROOT u = f32[64]{0} dynamic-update-slice(x, n, one)\n}\n";
    fs::write(room.path("s.hlo"), shifted).unwrap();
    expect(&room.run(&["compile", "s.hlo", "--format", "jax"]), 0, "");
    let inspect = stdout(&room.run(&["inspect", "s.xla"]));
    assert!(inspect.contains("and on jaxlib 0.9.1 to"), "{inspect}");
}

/// An entry of JAX's cache runs, and takes another program with the same parameters and results.
#[test]
fn entries_of_the_cache_are_read_and_written() {
    let room = Room::new();
    expect(&room.run(&["compile", "add.hlo", "--format", "jax"]), 0, "");
    let bundle = fs::read(room.path("add.xla")).unwrap();
    for compression in [Codec::Zlib, Codec::Zstd] {
        let entry = Container::CacheEntry {
            compression,
            seconds: [0, 0, 0, 3],
        };
        fs::write(room.path("jit_f-cache"), entry.around(&bundle).unwrap()).unwrap();
        let inputs = ["-i", "x.npy", "-i", "y.npy"];
        let run = [
            &["run", "jit_f-cache"],
            &inputs[..],
            &["--expect", "sum.npy"],
        ]
        .concat();
        expect(&room.run(&run), 0, "");
        let twice = "HloModule t\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  y = f32[4]{0} \
            parameter(1)\n  s = f32[4]{0} add(x, y)\n  ROOT t = f32[4]{0} add(s, s)\n}\n";
        fs::write(room.path("twice.hlo"), twice).unwrap();
        let into = [
            "compile",
            "twice.hlo",
            "--into",
            "jit_f-cache",
            "-o",
            "jit_f-cache",
        ];
        expect(&room.run(&into), 0, "");
        assert_eq!(room.run(&run).status.code(), Some(4));
        let inspect = stdout(&room.run(&["inspect", "jit_f-cache"]));
        assert!(
            inspect.contains("in a JAX compilation cache entry"),
            "{inspect}"
        );
        let other = twice.replace("f32[4]", "f32[5]");
        fs::write(room.path("twice.hlo"), other).unwrap();
        expect(&room.run(&into), 3, "in the place of");
    }
}
