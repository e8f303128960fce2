//! Texts broken on purpose: no panic, a place that exists, and a tree that is not larger than a
//! fixed multiple of the text.

use super::*;
use crate::base::Location;

/// The next number of a fixed sequence.
pub(super) struct Numbers(pub u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Texts with every part of the language.
fn seeds() -> Vec<String> {
    vec![
        wrap_body(
            "@%p1 bra $L__BB0_1; // x\n{ .reg .b32 %r<4>; mad.lo.s32 %r1, %tid.x, -3, 0x1F; }\n\
             call (r), f, (a, 1), proto;\nproto: .callprototype (.param .b32 _) _ (.param .b64 _);\n\
             t: .branchtargets a, b;\n.loc 1 2 3, function_name x, inlined_at 1 2 3\n\
             tex.2d.v4.f32.s32 {a, b, c, _}|p, [t+8, s, {x, y}], {o}, d;\n.pragma \"x\";\n",
        ),
        wrap(
            ".visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 q[128])\n\
             .reqntid 256, 1, 1 .maxnreg 64 .pragma \"a\";\n{ mov.b64 d, (1+2)*3<<4?5:-6; ret; }\n\
             .global .align 8 .b64 v[2][2] = {{1, 2}, {0xff(g), generic(h)+4}};\n\
             .global .samplerref s = { filter_mode = nearest };\n.alias a, b;\n\
             .section .debug_x { .b8 1 }\n/* c */ .extern .shared .b8 z[];\n",
        ),
        wrap_body(
            "setp.lt.and.f32 p|q, 1.5, 0f3F800000, !r; vadd.u32.u32.u32 a.b01, -b.h1, c, d;\n\
             ld.global.L1::evict_last.v2.f32 {a, b}, [%rd1+-4].unified, c; mov.b32 a, g[%r1+1];\n",
        ),
    ]
}

/// Pieces that are put in: bytes, and words of the language.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    ",",
    ";",
    ":",
    "::",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "~",
    "!",
    "=",
    "?",
    "@",
    "@@",
    "#",
    "\"",
    "\\",
    ".",
    "_",
    "$",
    "0",
    "0x",
    "0f",
    "1e+",
    "é",
    "\0",
    "\n",
    "\r",
    "/*",
    "*/",
    "//",
    ".reg .b32",
    ".func",
    ".entry",
    "WARP_SZ",
    "%r1",
    "18446744073709551616",
    ".v4",
    ".align",
    ".param",
    ".unified",
    "\u{10ffff}",
    "1?",
    "a|",
];

/// One change.
fn mutate(text: &mut String, numbers: &mut Numbers) {
    let mut at = |text: &str| {
        let mut at = numbers.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (a, b) = (at(text), at(text));
    let (a, b) = (a.min(b), a.max(b));
    match numbers.below(5) {
        0 => text.insert_str(a, PIECES[numbers.below(PIECES.len())]),
        1 => {
            let end = text[a..].char_indices().nth(1 + numbers.below(8));
            let end = end.map_or(text.len(), |(i, _)| a + i);
            text.replace_range(a..end, PIECES[numbers.below(PIECES.len())]);
        }
        2 => text.truncate(if numbers.below(4) == 0 { a } else { text.len() }),
        3 => {
            let end = text[a..b].char_indices().nth(40).map_or(b, |(i, _)| a + i);
            let piece = text[a..end].to_owned();
            text.insert_str(b, &piece);
        }
        _ => {
            let end = text[a..b].char_indices().nth(40).map_or(b, |(i, _)| a + i);
            text.replace_range(a..end, "");
        }
    }
}

/// Checks one text; whether it was read.
fn check(text: &str) -> bool {
    match parse(text) {
        Ok(module) => {
            let bytes = tree_bytes(&module);
            assert!(
                bytes <= 100 * text.len(),
                "{bytes} bytes for {}: {text}",
                text.len()
            );
            true
        }
        Err(error) => {
            let Some(Location::Text {
                line,
                column,
                excerpt,
                width,
            }) = error.location
            else {
                panic!("{}: no place", error.message)
            };
            // The texts end where their zeros begin.
            let shown = text.trim_end_matches('\0').split('\n').nth(line - 1);
            assert_eq!(
                shown.map(|l| l.trim_end_matches('\r')),
                Some(excerpt.as_str())
            );
            assert!(
                column >= 1 && column <= excerpt.chars().count() + 2,
                "{column} in {excerpt:?}"
            );
            assert!(width >= 1 && !error.message.is_empty());
            false
        }
    }
}

/// Bytes on the heap.
fn tree_bytes(module: &Module<'_>) -> usize {
    fn of<T>(list: &Vec<T>, each: impl Fn(&T) -> usize) -> usize {
        list.capacity() * size_of::<T>() + list.iter().map(each).sum::<usize>()
    }
    fn init(value: &Init<'_>) -> usize {
        match value {
            Init::Symbol(_) => size_of::<SymbolInit<'_>>(),
            Init::Integers(list) => of(list, |_| 0),
            Init::List(list) => of(list, init),
            Init::Fields(list) => of(list, |field| init(&field.1)),
            _ => 0,
        }
    }
    fn variable(v: &Variable<'_>) -> usize {
        of(&v.dims, |_| 0) + v.init.as_ref().map_or(0, init)
    }
    fn operand(value: &Operand<'_>) -> usize {
        match value {
            Operand::Vector(list) | Operand::List(list) => of(list, operand),
            Operand::Address(address) => of(&address.extra, operand),
            Operand::Element(_) => size_of::<Element<'_>>(),
            Operand::Pair(pair) => 2 * size_of::<Operand<'_>>() + operand(&pair.0),
            _ => 0,
        }
    }
    fn function(f: &Function<'_>) -> usize {
        of(&f.params, variable)
            + of(&f.returns, variable)
            + of(&f.directives.pragmas, |_| 0)
            + of(&f.directives.others, |other| of(&other.1, |_| 0))
            + f.body.as_ref().map_or(0, |body| of(body, statement))
    }
    fn statement(s: &Statement<'_>) -> usize {
        match s {
            Statement::Instr(i) => {
                let spilled = if i.modifiers.spilled() {
                    i.modifiers.capacity()
                } else {
                    0
                };
                spilled * size_of::<&str>() + of(&i.operands, operand)
            }
            Statement::Block(body) => of(body, statement),
            Statement::Variable(v) => size_of::<Variable<'_>>() + variable(v),
            Statement::Targets { names, .. } => of(names, |_| 0),
            Statement::Prototype { signature, .. } => {
                size_of::<Function<'_>>() + function(signature)
            }
            _ => 0,
        }
    }
    of(&module.variables, variable)
        + of(&module.functions, function)
        + of(&module.aliases, |_| 0)
        + of(&module.files, |_| 0)
        + of(&module.pragmas, |_| 0)
        + of(&module.target.options, |_| 0)
}

#[test]
fn mutated_texts() {
    let seeds = seeds();
    assert!(seeds.iter().all(|seed| check(seed)), "the seeds are good");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut read = 0;
    for round in 0..6000 {
        let mut text = seeds[round % seeds.len()].clone();
        for _ in 0..=numbers.below(4) {
            mutate(&mut text, &mut numbers);
        }
        read += usize::from(check(&text));
    }
    // Some changes keep the text good, most do not; all of one kind would test nothing.
    assert!((300..5000).contains(&read), "{read} of 6000 were read");
}

#[test]
fn random_bytes() {
    let mut numbers = Numbers(7);
    for _ in 0..3000 {
        let length = numbers.below(60);
        let text: String = (0..length)
            .map(|_| PIECES[numbers.below(PIECES.len())])
            .collect();
        check(&text);
        check(&wrap(&text));
        check(&wrap_body(&text));
    }
}

#[test]
fn every_prefix() {
    for seed in seeds() {
        for (end, _) in seed.char_indices() {
            check(&seed[..end]);
        }
    }
}

#[test]
fn trees_are_bounded() {
    let repeated = [
        "a;",
        "a:",
        "{}",
        "{a;}",
        "{{{{a;}}}}",
        "{ret;}",
        "a.a.a.a.a;",
        "a a;",
        "a {a};",
        "a {{},{}};",
        "a a|a;",
        "a a[1];",
        "a [a,a];",
        "a:.callprototype _;",
        "a:.branchtargets a;",
        ".reg .b8 a,a,a;",
        ".local .b8 a,a,a,a,a,a,a,a,a;",
        ".local .b8 a[]={1,1,1,1,1.,a,a,{},{}};",
        ".loc 1 1 1\n",
        "call (a),a,(a);",
        ".pragma \"\",\"\",\"\";",
    ];
    for piece in repeated {
        let text = wrap_body(&piece.repeat(3000));
        assert!(check(&text), "{piece}");
    }
    let repeated = [
        ".func a;",
        ".func a{}",
        ".func a .b .b .b .b .b;",
        ".func a .b 1,1,1,1 .b 1;",
        ".alias a,a;",
        ".file 1 \"\"\n",
        ".tex .b8 a,a,a,a;",
        ".func a(.reg .b8 a,.reg .b8 a);",
    ];
    for piece in repeated {
        let text = wrap(&piece.repeat(3000));
        assert!(check(&text), "{piece}");
    }
}
