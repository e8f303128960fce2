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
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;
use xla_aot::wire;

use crate::conformance::flatten;
use crate::fuzz::corners;

/// Sets of element types, by name: each is what passes of all types.
const SETS: &[(&str, fn(PrimitiveType) -> bool)] = &[
    ("UNSIGNED", |ty| ty.kind() == ElementKind::Unsigned),
    ("SIGNED", |ty| ty.kind() == ElementKind::Signed),
    ("INTS", is_int),
    ("BITS", is_bits),
    ("FLOATS", is_wide_float),
    ("REALS", is_number),
    ("REALS_AND_PRED", |ty| is_number(ty) || is_pred(ty)),
    ("NUMBERS", |ty| is_number(ty) || ty.is_complex()),
    ("ALL_REAL", |ty| {
        !ty.is_complex() && ty != PrimitiveType::F8E8M0FNU
    }),
    ("ALL", |_| true),
];

fn is_pred(ty: PrimitiveType) -> bool {
    ty.kind() == ElementKind::Pred
}

fn is_int(ty: PrimitiveType) -> bool {
    matches!(ty.kind(), ElementKind::Signed | ElementKind::Unsigned)
}

fn is_bits(ty: PrimitiveType) -> bool {
    is_int(ty) || is_pred(ty)
}

/// The float types that rules about numbers know.
fn is_wide_float(ty: PrimitiveType) -> bool {
    ty.is_float() && ty.bit_width() >= 16
}

/// A type of one bit has no one, or no minus one.
fn is_number(ty: PrimitiveType) -> bool {
    is_wide_float(ty) || (is_int(ty) && ty.bit_width() > 1)
}

/// A program in which a rule applies.
struct Case {
    /// The rule.
    rule: String,
    /// Element types that stand for `$T`.
    types: Vec<PrimitiveType>,
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
        let named = |ty: &PrimitiveType| match set {
            Some((_, passes)) => passes(*ty),
            None => ty.name() == word,
        };
        let types: Vec<PrimitiveType> = PrimitiveType::ALL.iter().copied().filter(named).collect();
        assert!(!types.is_empty(), "{word} names no element type");
        types
    });
    Case {
        rule: rule.expect("a program says for which rule it is"),
        types: types.collect(),
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
            trials.push(Trial::test(name, move || check(&rule, ty, &body, ulp)));
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

fn check(rule: &str, ty: PrimitiveType, body: &str, ulp: u64) -> Result<(), Failed> {
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
