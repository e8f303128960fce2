//! Every optional rewrite by itself, on against off: a small program in which the rule applies, in
//! every element type that it claims, on corner values. The evaluator must give the same bits
//! before and after (which bits a NaN carries aside), but for the rules that say how near they are.

use std::collections::BTreeSet;
use std::fs;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::eval;
use xla_aot::front;
use xla_aot::hlo;
use xla_aot::hlo::Module;
use xla_aot::literal::Literal;
use xla_aot::literal::compare::Tolerance;
use xla_aot::literal::compare::compare;
use xla_aot::passes;
use xla_aot::passes::PassOptions;
use xla_aot::passes::registry::PASSES;
use xla_aot::shape::PrimitiveType;
use xla_aot::wire;

use crate::conformance::flatten;
use crate::fuzz::corners;

/// Sets of element types, by name.
const SETS: &[(&str, &[&str])] = &[
    ("UNSIGNED", UNSIGNED),
    ("SIGNED", SIGNED),
    ("INTS", INTS),
    ("BITS", BITS),
    ("FLOATS", FLOATS),
    ("REALS", REALS),
    ("REALS_AND_PRED", REALS_AND_PRED),
    ("NUMBERS", NUMBERS),
    ("WIDE", WIDE),
    ("ALL_REAL", ALL_REAL),
    ("ALL", ALL),
];

const UNSIGNED: &[&str] = &["u1", "u2", "u4", "u8", "u16", "u32", "u64"];
const SIGNED: &[&str] = &["s1", "s2", "s4", "s8", "s16", "s32", "s64"];
const INTS: &[&str] = &[
    "s1", "s2", "s4", "s8", "s16", "s32", "s64", "u1", "u2", "u4", "u8", "u16", "u32", "u64",
];
const BITS: &[&str] = &[
    "pred", "s1", "s2", "s4", "s8", "s16", "s32", "s64", "u1", "u2", "u4", "u8", "u16", "u32",
    "u64",
];
/// The float types that rules about numbers know.
const FLOATS: &[&str] = &["f16", "bf16", "f32", "f64"];
const REALS: &[&str] = &[
    "s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64", "f16", "bf16",
    "f32", "f64",
];
const REALS_AND_PRED: &[&str] = &[
    "pred", "s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64", "f16",
    "bf16", "f32", "f64",
];
const NUMBERS: &[&str] = &[
    "s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64", "f16", "bf16",
    "f32", "f64", "c64", "c128",
];
const WIDE: &[&str] = &["f16", "bf16", "f32", "f64"];
const ALL_REAL: &[&str] = &[
    "pred",
    "s1",
    "s2",
    "s4",
    "s8",
    "s16",
    "s32",
    "s64",
    "u1",
    "u2",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f8e5m2",
    "f8e4m3",
    "f8e4m3fn",
    "f8e4m3b11fnuz",
    "f8e5m2fnuz",
    "f8e4m3fnuz",
    "f8e3m4",
    "f4e2m1fn",
];
const ALL: &[&str] = &[
    "pred",
    "s1",
    "s2",
    "s4",
    "s8",
    "s16",
    "s32",
    "s64",
    "u1",
    "u2",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f8e5m2",
    "f8e4m3",
    "f8e4m3fn",
    "f8e4m3b11fnuz",
    "f8e5m2fnuz",
    "f8e4m3fnuz",
    "f8e3m4",
    "f8e8m0fnu",
    "f4e2m1fn",
    "c64",
    "c128",
];

/// A program in which a rule applies.
struct Case {
    /// The rule.
    rule: String,
    /// Element types that stand for `$T`.
    types: Vec<String>,
    /// Lines of the entry, after those of other computations and `ENTRY`.
    body: String,
    /// Representable values that results may be apart.
    ulp: u64,
}

/// Every program of the file.
fn cases() -> Vec<Case> {
    let text = fs::read_to_string("tests/rules/programs.txt").expect("the programs can be read");
    text.split("\n\n").skip(1).map(case).collect()
}

fn case(section: &str) -> Case {
    let mut lines = section.lines().peekable();
    let mut take = |key: &str| {
        let line = lines.next_if(|line| line.starts_with(key))?;
        Some(line[key.len()..].trim().to_owned())
    };
    let (rule, types, ulp) = (take("rule:"), take("types:"), take("ulp:"));
    let types = types.expect("a program says for which types it is");
    let types = types.split(' ').flat_map(|word| {
        let set = SETS.iter().find(|(name, _)| *name == word);
        set.map_or(vec![word], |(_, types)| types.to_vec())
    });
    Case {
        rule: rule.expect("a program says for which rule it is"),
        types: types.map(str::to_owned).collect(),
        body: lines.collect::<Vec<_>>().join("\n"),
        ulp: ulp.map_or(0, |text| text.parse().expect("a number")),
    }
}

/// One trial a program and type, and one that every rule has a program.
pub fn trials() -> Vec<Trial> {
    let cases = cases();
    let tested: BTreeSet<String> = cases.iter().map(|case| case.rule.clone()).collect();
    let mut trials = vec![Trial::test("rules/each-has-a-program", move || {
        let without: Vec<&str> = rules().filter(|rule| !tested.contains(*rule)).collect();
        match without.as_slice() {
            [] => Ok(()),
            some => Err(format!("no program for {}", some.join(", ")).into()),
        }
    })];
    for (number, case) in cases.into_iter().enumerate() {
        for ty in case.types {
            let name = format!("rules/{}/{number}/{ty}", case.rule);
            let (rule, body, ulp) = (case.rule.clone(), case.body.clone(), case.ulp);
            trials.push(Trial::test(name, move || check(&rule, &ty, &body, ulp)));
        }
    }
    trials
}

fn rules() -> impl Iterator<Item = &'static str> {
    PASSES.iter().flat_map(|(_, make)| make().rules())
}

/// The whole program for an element type.
fn program(ty: PrimitiveType, body: &str) -> String {
    let count = corners::values(ty).len();
    let body = body.replace("$T", &ty.to_string());
    let body = body.replace("$N", &count.to_string());
    let (zero, one) = match ty {
        _ if ty.is_complex() => ("(0, 0)", "(1, 0)"),
        PrimitiveType::S1 => ("0", "-1"),
        _ => ("0", "1"),
    };
    let body = body.replace("$0", zero).replace("$1", one);
    let mut text = "HloModule m\n".to_owned();
    for op in ["add", "multiply", "maximum", "or"] {
        if body.contains(&format!("to_apply={op}")) {
            text.push_str(&format!(
                "{op} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  ROOT c = {ty}[] {op}(a, b)\n}}\n"
            ));
        }
    }
    let (others, entry) = body.split_once("ENTRY\n").unwrap_or(("", &body));
    text.push_str(others);
    text.push_str(&format!("ENTRY e {{\n{entry}\n}}\n"));
    text
}

fn check(rule: &str, ty: &str, body: &str, ulp: u64) -> Result<(), Failed> {
    let ty = PrimitiveType::from_name(ty).ok_or("no such type")?;
    let text = program(ty, body);
    let module = front::read(text.as_bytes(), None).map_err(|e| format!("{e}\n{text}"))?;
    hlo::verify::check(&module).map_err(|e| format!("{e}\n{text}"))?;
    let pass = PASSES
        .iter()
        .find(|(_, make)| make().rules().contains(&rule))
        .map(|(name, _)| *name);
    let options = PassOptions {
        disabled_rules: rules()
            .filter(|other| *other != rule)
            .map(str::to_owned)
            .collect(),
        ..PassOptions::default()
    };
    let target = wire::target::by_name("x86-64-v3")?;
    let pass = pass.ok_or("no pass has the rule")?;
    let (after, report) = passes::run_single(pass, module.clone(), &target, &options)?;
    if report.by_rule.keys().copied().collect::<Vec<_>>() != [rule] {
        return Err(format!("the rule does not apply\n{text}").into());
    }
    hlo::verify::check(&after)?;
    let inputs = inputs(&module);
    let (off, on) = (
        eval::evaluate(&module, &inputs)?,
        eval::evaluate(&after, &inputs)?,
    );
    let tolerance = Tolerance {
        ulp,
        signed_zero: true,
        ..Tolerance::EXACT
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    flatten(&on, &mut left);
    flatten(&off, &mut right);
    if left.len() != right.len() || left.is_empty() {
        return Err("other numbers of results".into());
    }
    for (on, off) in left.into_iter().zip(right) {
        let found = compare(on, off, &tolerance)?;
        if !found.passed {
            let after = hlo::print::module(&after);
            return Err(format!("{}\n{text}----\n{after}", found.describe()).into());
        }
    }
    Ok(())
}

/// Corner values, each parameter beginning with another one.
fn inputs(module: &Module) -> Vec<Literal> {
    let shapes = module.entry_layout().parameters;
    let arrays = shapes.iter().enumerate().filter_map(|(i, shape)| {
        let array = shape.as_array()?;
        let first = i * (1 + corners::values(array.ty).len() / 3);
        Some(Literal::Array(corners::fill(array, first)))
    });
    arrays.collect()
}
