//! Broken texts: whatever is cut or nested, there is a module or a diagnostic. Texts with random
//! changes: see `tests/fuzz/files`.

use crate::base::Location;
use crate::base::codes;
use crate::front::hlo_text::parse;
use crate::hlo::print;

/// Texts with most of the grammar in them.
const SEEDS: &[&str] = &[
    include_str!("../../../tests/golden/parse/ok/async.hlo"),
    include_str!("../../../tests/golden/parse/ok/attributes.hlo"),
    include_str!("../../../tests/golden/parse/ok/collectives.hlo"),
    include_str!("../../../tests/golden/parse/ok/control.hlo"),
    include_str!("../../../tests/golden/parse/ok/custom_call.hlo"),
    include_str!("../../../tests/golden/parse/ok/header.hlo"),
    include_str!("../../../tests/golden/parse/ok/host.hlo"),
    include_str!("../../../tests/golden/parse/ok/indices.hlo"),
    include_str!("../../../tests/golden/parse/ok/inline.hlo"),
    include_str!("../../../tests/golden/parse/ok/layouts.hlo"),
    include_str!("../../../tests/golden/parse/ok/literals_float.hlo"),
    include_str!("../../../tests/golden/parse/ok/literals_int.hlo"),
    include_str!("../../../tests/golden/parse/ok/no_shapes.hlo"),
    include_str!("../../../tests/golden/parse/ok/odd_ops.hlo"),
    include_str!("../../../tests/golden/parse/ok/sharding.hlo"),
    include_str!("../../../tests/golden/parse/ok/signatures.hlo"),
    include_str!("../../../tests/golden/parse/ok/stack_frames.hlo"),
    include_str!("../../../tests/golden/parse/ok/windows.hlo"),
];

/// Reads a text; what can be read must print to a text that reads and prints the same again.
fn check(text: &str) -> bool {
    match parse(text) {
        Ok(module) => {
            let printed = print::module(&module);
            let again =
                parse(&printed).unwrap_or_else(|e| panic!("{e}\nof\n{printed}\nof\n{text}"));
            assert_eq!(print::module(&again), printed, "of\n{text}");
            true
        }
        Err(error) => {
            assert!(
                matches!(error.location, Some(Location::Text { .. })),
                "{error}\nof\n{text}"
            );
            assert!(
                error.to_string().len() < 4000,
                "a short diagnostic for\n{text}"
            );
            false
        }
    }
}

#[test]
fn every_prefix_gives_a_diagnostic_or_a_module() {
    for seed in SEEDS {
        for (at, _) in seed.char_indices().step_by(7) {
            check(&seed[..at]);
        }
    }
}

#[test]
fn deep_and_long_texts_are_bounded() {
    let wide = format!(
        "ENTRY e {{ p = ({}) parameter(0) }}",
        vec!["f32[]"; 10_000].join(", ")
    );
    assert!(check(&wide));
    for open in [
        "(",
        "{",
        "[",
        "\"",
        "add(",
        "f32[",
        "to_apply={x = ",
        "/*",
        "sharding={{",
    ] {
        let deep = open.repeat(100_000);
        assert!(!check(&format!("ENTRY e {{ p = {deep}")));
        assert!(!check(&format!(
            "ENTRY e {{ p = f32[] parameter(0), {deep}"
        )));
        assert!(!check(&format!(
            "ENTRY e {{ p = f32[] parameter(0), sharding={deep}"
        )));
        assert!(!check(&format!("ENTRY e {{ p = f32[2] constant({deep}")));
        assert!(!check(&format!(
            "ENTRY e {{ p = f32[] parameter(0), backend_config={deep}"
        )));
        assert!(!check(&format!("HloModule m, {deep}")));
    }
}

#[test]
fn tuples_that_double_are_bounded() {
    let chain = |count: usize, next: &dyn Fn(usize) -> String| {
        let lines: Vec<String> = (0..count).map(next).collect();
        format!("ENTRY e {{ t0 = f32[] parameter(0) {} }}", lines.join(" "))
    };
    let double = |i: usize| format!("t{} = tuple(t{i}, t{i})", i + 1);
    let nest = |i: usize| format!("t{} = tuple(t{i})", i + 1);
    assert!(check(&chain(12, &double)));
    assert!(check(&chain(100, &nest)));
    for text in [chain(64, &double), chain(4000, &nest)] {
        assert_eq!(parse(&text).unwrap_err().code, codes::INPUT_LIMIT);
        assert!(!check(&text));
    }
    // One line with many operands is as much as many lines.
    let wide = |i: usize| match i {
        12 => format!("w = tuple({})", ["t12"; 2000].join(", ")),
        i => double(i),
    };
    assert_eq!(
        parse(&chain(13, &wide)).unwrap_err().code,
        codes::INPUT_LIMIT
    );
}

#[test]
fn computations_without_names_get_them_soon() {
    let call = |i: usize| format!("c{i} = call(), to_apply={{ r = f32[] constant({i}) }}");
    let lines: Vec<String> = (0..3000).map(call).collect();
    let text = format!(
        "inline.1 {{ r = f32[] constant(0) }} ENTRY e {{ {} }}",
        lines.join("\n")
    );
    let module = parse(&text).unwrap();
    let names: Vec<&str> = module.comps.values().map(|c| c.name.as_str()).collect();
    assert_eq!(names[..4], ["inline.1", "inline", "inline.2", "inline.3"]);
    assert_eq!(names[3000], "inline.3000");
}
