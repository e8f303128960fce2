//! Broken texts: whatever is cut, put in or changed, there is a module or a diagnostic.

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

/// Pieces that are worth putting anywhere.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "->",
    "<=",
    "%",
    "\"",
    "\\",
    "'",
    "/*",
    "*/",
    "//",
    "\n",
    " ",
    "-",
    ".",
    "...",
    "{...}",
    "é",
    "\0",
    "\t",
    "nan",
    "-nan(0x1)",
    "inf",
    "1e999",
    "0x",
    "18446744073709551615",
    "-1",
    "99999999999999999999",
    "0",
    "T(",
    "f32[2]{0}",
    "f32[",
    "token[]",
    "pred[]",
    "c64[",
    "s4[4294967296,4294967296]",
    "ROOT ",
    "ENTRY ",
    "HloModule ",
    "to_apply={ROOT x = f32[] parameter(0)}",
    "parameter(0)",
    "constant(",
    "tuple(",
    "-start(",
    ", dimensions={0}",
    ", metadata={op_name=\"a\"}",
    ", sharding={",
    "size=1x1 ",
    "T",
    "_",
    "x",
];

/// A generator of numbers that is the same everywhere (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap()
    }
}

/// A seed with a few changes.
fn mutant(random: &mut Random) -> String {
    let seed = SEEDS[random.below(SEEDS.len())];
    let mut text: Vec<char> = seed.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(12)).min(text.len());
        match random.below(6) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].chars())),
            2 => drop(text.splice(at..end, PIECES[random.below(PIECES.len())].chars())),
            3 => {
                // A piece of the same or another text, such as an attribute that is foreign here.
                let other = SEEDS[random.below(SEEDS.len())];
                let words: Vec<&str> = other.split_inclusive([' ', ',', '(', ')', '\n']).collect();
                let word = words[random.below(words.len())];
                text.splice(at..end, word.chars());
            }
            4 => {
                let copy: Vec<char> = text[at..end].to_vec();
                let to = random.below(text.len() + 1);
                text.splice(to..to, copy);
            }
            _ => text.truncate(at.max(text.len() / 2)),
        }
    }
    text.into_iter().collect()
}

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
fn changed_texts_give_a_module_or_a_diagnostic() {
    let rounds = std::env::var("XLA_AOT_FUZZ_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut read = 0;
    let rounds = rounds.unwrap_or(1500);
    for _ in 0..rounds {
        read += usize::from(check(&mutant(&mut random)));
    }
    // Both outcomes must be common, or the changes are too wild or too tame.
    assert!(
        read * 50 > rounds && read * 2 < rounds,
        "{read} of {rounds} are read"
    );
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
