//! What is not PTX: the message, the place, the line.

use super::*;
use crate::base::Location;
use crate::base::codes;

/// Message, line, column, width and excerpt of the error in a text.
fn error(text: &str) -> (String, usize, usize, usize, String) {
    let error = parse(text).unwrap_err();
    assert!(matches!(error.code, codes::PTX_SYNTAX | codes::PTX_LIMIT));
    match error.location {
        Some(Location::Text {
            line,
            column,
            excerpt,
            width,
        }) => (error.message, line, column, width, excerpt),
        other => panic!("{}: {other:?}", error.message),
    }
}

#[test]
fn a_diagnostic_in_full() {
    let text = wrap_body("\tadd.s32 %r1, %r2, %r3\n\tret;");
    let shown = parse(&text).unwrap_err().to_string();
    let wanted = "error[XA8101]: found `ret` where `,` or `;` should stand\n \
                  --> line 7, column 2\n  |\n7 |  ret;\n  |  ^^^";
    assert_eq!(shown, wanted);
}

#[test]
fn errors_in_bodies_tell_what_and_where() {
    // Text, message, column, width: all in the sixth line.
    let cases: &[(&str, &str, usize, usize)] = &[
        (
            "add.s32 a, b,;",
            "found `;` where an operand should stand",
            14,
            1,
        ),
        (
            "add.s32 a b;",
            "found `b` where `,` or `;` should stand",
            11,
            1,
        ),
        (
            "add.s32 , b;",
            "found `,` where an operand should stand",
            9,
            1,
        ),
        ("ld.b32 a, [b;", "found `;` where `]` should stand", 13, 1),
        (
            "ld.b32 a, [];",
            "found `]` where a constant should stand",
            12,
            1,
        ),
        (
            "ld.b32 a, [b-4];",
            "found `-` where `]` should stand",
            13,
            1,
        ),
        (
            "ld.b32 a, [b+c];",
            "found `c` where a constant should stand",
            14,
            1,
        ),
        (
            "ld.b32 a, [b+1.5];",
            "found a floating-point number in an offset",
            14,
            3,
        ),
        (
            "ld.b32 a, [b][c];",
            "found `[` where `,` or `;` should stand",
            14,
            1,
        ),
        (
            "ld.b32 a, b[1.5];",
            "found a floating-point number where an integer should stand",
            13,
            3,
        ),
        (
            "mov.b32 a, {b, c;",
            "found `;` where `}` should stand",
            17,
            1,
        ),
        (
            "mov.b32 a, {b,};",
            "found `}` where an operand should stand",
            15,
            1,
        ),
        (
            "mov.b32 a, b.q;",
            "found `.q` where a part of a register such as `.x` should stand",
            13,
            2,
        ),
        (
            "mov.b32 a, b.b01234;",
            "found `.b01234` where a part of a register such as `.x` should stand",
            13,
            7,
        ),
        (
            "mov.b32 a, b.h4;",
            "found `.h4` where a part of a register such as `.x` should stand",
            13,
            3,
        ),
        (
            "mov.b32 a, b-4;",
            "found `-` where `,` or `;` should stand",
            13,
            1,
        ),
        (
            "mov.b32 a, \"b\";",
            "found a string where an operand should stand",
            12,
            3,
        ),
        (
            "setp.eq.s32 p|3, a, b;",
            "found `3` where a name should stand",
            15,
            1,
        ),
        (
            "bar.sync 0, 08;",
            "`08` is no number, or does not fit 64 bits",
            13,
            2,
        ),
        (
            "mov.b32 a, #1;",
            "found '#', which is no part of PTX",
            12,
            1,
        ),
        ("mov.b32 a, é;", "found 'é', which is no part of PTX", 12, 1),
        ("mov.b32 a, `;", "found '`', which is no part of PTX", 12, 1),
        (
            "mov.b32 a . b;",
            "found '.', which is no part of PTX",
            11,
            1,
        ),
        ("mov. b32 a;", "found '.', which is no part of PTX", 4, 1),
        (
            "ld.L1:: a, [b];",
            "found `:` where an operand should stand",
            6,
            1,
        ),
        ("é: ret;", "found 'é', which is no part of PTX", 1, 1),
        ("@;", "found `;` where a predicate should stand", 2, 1),
        (
            "@1 bra L;",
            "found `1` where a predicate should stand",
            2,
            1,
        ),
        (
            "@p { ret; }",
            "found `{` where an instruction should stand",
            4,
            1,
        ),
        (
            "@p L: ret;",
            "found `:` where an operand should stand",
            5,
            1,
        ),
        ("; ret;", "found `;` where a statement should stand", 1, 1),
        ("1 ret;", "found `1` where a statement should stand", 1, 1),
        (
            ".entry f {}",
            "found `.entry` where a directive that may stand in a body should stand",
            1,
            6,
        ),
        (
            ".extern .shared .b8 x[];",
            "found `.extern` where a directive that may stand in a body should stand",
            1,
            7,
        ),
        (".reg b32 x;", "found `b32` where a type should stand", 6, 3),
        (
            ".reg .v3 .b32 x;",
            "found `.v3` where a type should stand",
            6,
            3,
        ),
        (
            ".reg .b32 .b32 x;",
            "found `.b32` where a name should stand",
            11,
            4,
        ),
        (
            ".reg .b32 .v2 x;",
            "found `.v2` where a name should stand",
            11,
            3,
        ),
        (".reg .b32 x[4];", "an array of registers", 11, 1),
        (".reg .b32 x<4;", "found `;` where `>` should stand", 14, 1),
        (
            ".reg .b32 x<-1>;",
            "found `-` where an integer should stand",
            13,
            1,
        ),
        (
            ".reg .b32 x<2+3>;",
            "found `+` where `>` should stand",
            14,
            1,
        ),
        (
            ".reg .b32 x<4294967296>;",
            "a number that is no integer of 32 bits",
            13,
            10,
        ),
        (
            ".reg .b32 x<1.5>;",
            "a number that is no integer of 32 bits",
            13,
            3,
        ),
        (".reg .b32 x y;", "found `y` where `;` should stand", 13, 1),
        (
            ".shared .align 3 .b8 x;",
            "alignment 3 is no power of two",
            16,
            1,
        ),
        (
            ".shared .align 0 .b8 x;",
            "alignment 0 is no power of two",
            16,
            1,
        ),
        (
            ".shared .b8 .align 4 x;",
            "found `.align` where a name should stand",
            13,
            6,
        ),
        (".shared .b8 x[-1];", "an array of -1 elements", 15, 1),
        (
            ".shared .b8 x[1;",
            "found `;` where `]` should stand",
            16,
            1,
        ),
        (
            ".loc 1 2 ret;",
            "found `ret` where an integer should stand",
            10,
            3,
        ),
        (
            ".loc 1 2 3, x;",
            "found `;` where `function_name` or `inlined_at` before this should stand",
            14,
            1,
        ),
        (
            ".pragma nounroll;",
            "found `nounroll` where a string should stand",
            9,
            8,
        ),
        (".pragma \"a;", "a string that is not closed", 9, 1),
        (
            ".section { }",
            "found `{` where the name of a section should stand",
            10,
            1,
        ),
        (".section .x { ", "a section that is not closed", 13, 1),
        (
            "t: .branchtargets ;",
            "found `;` where a label or function should stand",
            19,
            1,
        ),
        (
            "t: .callprototype (.b32 _) _;",
            "found `.b32` where a state space should stand",
            20,
            4,
        ),
        ("call f, (a;", "found `;` where `)` should stand", 11, 1),
        ("{ ret; ", "a block that is not closed", 1, 1),
        ("/* ret;", "a comment that is not closed", 1, 2),
    ];
    for (text, message, column, width) in cases {
        let open = matches!(
            *message,
            "a section that is not closed" | "a block that is not closed"
        );
        let whole = if open {
            // Without the braces that would close it.
            wrap_body(text).trim_end_matches(['}', '\n']).to_owned()
        } else {
            wrap_body(text)
        };
        let wanted = (message.to_string(), 6, *column, *width);
        let (message, line, column, width, excerpt) = error(&whole);
        assert_eq!((message, line, column, width), wanted, "{text}");
        assert_eq!(excerpt.trim_end(), text.trim_end());
    }
}

#[test]
fn errors_in_modules_tell_what_and_where() {
    // Text, message, line, column.
    let cases: &[(&str, &str, usize, usize)] = &[
        (
            "",
            "found the end of the text where `.version` should stand",
            1,
            1,
        ),
        (
            "\n\n",
            "found the end of the text where `.version` should stand",
            3,
            1,
        ),
        (
            ".target sm_90",
            "found `.target` where `.version` should stand",
            1,
            1,
        ),
        (
            ".version 8",
            "found `8` where a version such as `8.7` should stand",
            1,
            10,
        ),
        (
            ".version 0.0",
            "found `0.0` where a version such as `8.7` should stand",
            1,
            10,
        ),
        (
            ".version 8.x",
            "found `8.x` where a version such as `8.7` should stand",
            1,
            10,
        ),
        (
            ".version 8.7",
            "found the end of the text where `.target` should stand",
            1,
            13,
        ),
        (
            ".version 8.7\n.entry k {}",
            "found `.entry` where `.target` should stand",
            2,
            1,
        ),
        (
            ".version 8.7\n.target sm_",
            "found `sm_` where a target such as `sm_90` should stand",
            2,
            9,
        ),
        (
            ".version 8.7\n.target sm_90b",
            "found `sm_90b` where a target such as `sm_90` should stand",
            2,
            9,
        ),
        (
            ".version 8.7\n.target sm_9999999999",
            "found `sm_9999999999` where a target such as `sm_90` should stand",
            2,
            9,
        ),
        (
            ".version 8.7\n.target debug\n.func f;",
            "found `.func` where a target such as `sm_90` should stand",
            3,
            1,
        ),
        (
            ".version 8.7\n.address_size 63",
            "found an address size that is neither 32 nor 64",
            2,
            15,
        ),
        ("text", "found `text` where a directive should stand", 1, 1),
        (
            &"x".repeat(100),
            "found `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...` where a directive should stand",
            1,
            1,
        ),
    ];
    for (text, message, line, column) in cases {
        let found = error(text);
        assert_eq!(
            (found.0.as_str(), found.1, found.2),
            (*message, *line, *column),
            "{text}"
        );
    }
    // As before, after a good header: all in the fourth line.
    let cases: &[(&str, &str, usize)] = &[
        (
            "add.s32 a, b, c;",
            "found `add` where a directive should stand",
            1,
        ),
        (";", "found `;` where a directive should stand", 1),
        ("@x", "found `@` where a directive should stand", 1),
        (
            ".visible .weak .global .b8 x;",
            "found `.weak` where a state space should stand",
            10,
        ),
        (
            ".nothing x;",
            "found `.nothing` where a state space should stand",
            1,
        ),
        (
            ".entry {}",
            "found `{` where the name of a function should stand",
            8,
        ),
        (
            ".entry (.param .b32 r) f () {}",
            "found `(` where the name of a function should stand",
            8,
        ),
        (
            ".func f (.param .b32 a .param .b32 b) {}",
            "found `.param` where `,` or `)` should stand",
            24,
        ),
        (
            ".func f (.param .b32) x",
            "found `x` where `{` or `;` should stand",
            23,
        ),
        (
            ".func f .maxntid {}",
            "found `{` where an integer should stand",
            18,
        ),
        (
            ".func f .attribute(.x) {}",
            "found `.x` where `.managed` or `.unified` should stand",
            20,
        ),
        (".alias a;", "found `;` where `,` should stand", 9),
        (
            ".global .b32 x = ;",
            "found `;` where a constant should stand",
            18,
        ),
        (
            ".global .b32 x = {1, };",
            "found `}` where a constant should stand",
            22,
        ),
        (
            ".global .b32 x = {1 2};",
            "found `2` where `}` should stand",
            21,
        ),
        (
            ".global .b32 x = {a = 1, 2};",
            "named fields and values in one list",
            26,
        ),
        (
            ".global .b32 x = {1 = 2};",
            "a field whose name is no name",
            19,
        ),
        (".global .b32 x = 1.5(a);", "a mask that is no integer", 18),
        (
            ".global .b32 x = g-4;",
            "found `-` where `;` should stand",
            19,
        ),
        (
            ".global .ptr .b32 x .align 4;",
            "found `.align` where `;` should stand",
            21,
        ),
        (
            "#define x 1",
            "a line of the C preprocessor; the text must be preprocessed already",
            1,
        ),
        (
            "# x",
            "a line of the C preprocessor; the text must be preprocessed already",
            1,
        ),
    ];
    for (text, message, column) in cases {
        let found = error(&wrap(text));
        assert_eq!(
            (found.0.as_str(), found.1, found.2),
            (*message, 4, *column),
            "{text}"
        );
    }
}

#[test]
fn columns_count_characters() {
    let (_, line, column, width, excerpt) = error(&wrap_body("/* éé\n é */ ret x y;"));
    assert_eq!(
        (line, column, width, excerpt.as_str()),
        (7, 13, 1, " é */ ret x y;")
    );
}

#[test]
fn nesting_is_bounded() {
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        wrap_body(&format!("{}{middle}{}", open.repeat(n), close.repeat(n)))
    };
    // The body itself is one level.
    assert!(parse(&deep("{", "ret;", "}", 63)).is_ok());
    let texts = [
        deep("{", "ret;", "}", 64),
        deep("{", "ret;", "}", 1_000_000),
        wrap_body(&format!("mov.b32 a, {}1;", "(".repeat(1_000_000))),
        wrap_body(&format!("mov.b32 a, {}1;", "1+(".repeat(1_000_000))),
        wrap_body(&format!("mov.b32 a, {}1;", "-".repeat(1_000_000))),
        wrap_body(&format!("mov.b32 a, {}1;", "(.u64)".repeat(1_000_000))),
        wrap_body(&format!("mov.b32 a, {}1;", "1?1:".repeat(1_000_000))),
        wrap_body(&format!(
            "mov.b32 a, {}1;",
            "1||1&&1|1^1&1==1<1<<1+1*(".repeat(1_000_000)
        )),
        wrap_body(&format!("mov.b32 a, {}a;", "{".repeat(1_000_000))),
        wrap_body(&format!("mov.b32 a, {}a;", "[a, ".repeat(1_000_000))),
        wrap(&format!(".global .b32 x = {}1;", "{".repeat(1_000_000))),
    ];
    for text in texts {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.code, codes::PTX_LIMIT);
        assert_eq!(error.message, "nesting deeper than 64 levels");
    }
    // Width is no depth.
    let wide = wrap_body(&format!("mov.b32 a, 0{};", "+1".repeat(100_000)));
    assert!(parse(&wide).is_ok());
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(text(b"a\nb").unwrap(), "a\nb");
    let error = text(b"a\nb\xff").unwrap_err();
    assert_eq!(error.message, "byte 0xff on line 2 is not UTF-8");
    assert_eq!(error.location, Some(Location::Byte(3)));
}
