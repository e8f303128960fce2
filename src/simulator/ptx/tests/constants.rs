//! Constant expressions: their values, by the rules of C on 64 bits.

use super::*;

/// The operand that this constant becomes.
fn value(text: &str) -> Operand<'static> {
    with_body(&format!("mov.b64 d, {text};"), |body| {
        let Statement::Instr(instr) = &body[0] else {
            panic!()
        };
        match &instr.operands[..] {
            [_, Operand::Int(v)] => Operand::Int(*v),
            [_, Operand::F32(v)] => Operand::F32(*v),
            [_, Operand::F64(v)] => Operand::F64(*v),
            other => panic!("{text}: {other:?}"),
        }
    })
}

#[test]
fn integers() {
    let cases: &[(&str, i64)] = &[
        ("0", 0),
        ("0U", 0),
        ("017", 15),
        ("017U", 15),
        ("0x1F", 31),
        ("0XfFU", 255),
        ("0b101", 5),
        ("0B11U", 3),
        ("9223372036854775807", i64::MAX),
        ("9223372036854775808", i64::MIN),
        ("18446744073709551615", -1),
        ("0xFFFFFFFFFFFFFFFF", -1),
        ("-1", -1),
        ("--1", 1),
        ("- 1", -1),
        ("+1", 1),
        ("~5", -6),
        ("!5", 0),
        ("!0", 1),
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("7-2-1", 4),
        ("7/2", 3),
        ("-7/2", -3),
        ("-7%3", -1),
        ("7 % 3", 1),
        ("7%3", 1),
        ("7%WARP_SZ", 7),
        ("-1/2U", i64::MAX),
        ("1<<4", 16),
        ("1<<64", 0),
        ("-16>>2", -4),
        ("-16>>99", -1),
        ("0xFFFFFFFFFFFFFFFF>>60", 15),
        ("1<<2+1", 8),
        ("6&3", 2),
        ("6|3", 7),
        ("6^3", 5),
        ("1|2^3&4", 3),
        ("1<2", 1),
        ("2<=2", 1),
        ("1>2", 0),
        ("2>=3", 0),
        ("-1<1", 1),
        ("-1<1U", 0),
        ("1==1", 1),
        ("1!=1", 0),
        ("1==1==1", 1),
        ("0&&1||1", 1),
        ("2&&3", 1),
        ("0||0", 0),
        ("1?2:3", 2),
        ("0?2:3", 3),
        ("0?1:0?2:3", 3),
        ("1 ? (2) : 3", 2),
        ("(.u64)-1 > 1", 1),
        ("(.s64)0xFFFFFFFFFFFFFFFF < 1", 1),
        ("(.s64)-2.75", -2),
        ("(.u64)2.75", 2),
        ("WARP_SZ*2-1", 63),
        ("9223372036854775807+1", i64::MIN),
        ("1.5<2", 1),
        ("1.5==1.5&&2.0!=2.0", 0),
        ("!1.5", 0),
    ];
    for (text, wanted) in cases {
        assert_eq!(value(text), Operand::Int(*wanted), "{text}");
    }
}

#[test]
fn floating_point() {
    let cases = [
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        (".5e1", 5.0),
        ("1e5", 1e5),
        ("1E+5", 1e5),
        ("1.5e-5", 1.5e-5),
        ("08.5", 8.5),
        ("010.5", 10.5),
        ("-1.5", -1.5),
        ("-0.0", -0.0),
        ("1.0+2.0*3", 7.0),
        ("1/4.0", 0.25),
        ("1 ? 2 : 3.5", 2.0),
        ("0d4000000000000000 - 1", 1.0),
        ("-0d4000000000000000", -2.0),
    ];
    for (text, wanted) in cases {
        assert_eq!(value(text), Operand::F64(f64::to_bits(wanted)), "{text}");
    }
    assert_eq!(value("0f7F800001"), Operand::F32(0x7f80_0001));
    assert_eq!(
        value("0D7ff0000000000001"),
        Operand::F64(0x7ff0_0000_0000_0001)
    );
}

#[test]
fn what_is_no_constant() {
    let cases = [
        ("08", "`08` is no number"),
        ("0x", "`0x` is no number"),
        ("0b2", "`0b2` is no number"),
        ("5u", "`5u` is no number"),
        ("0f3F8", "`0f3F8` is no number"),
        ("0d3F80000", "`0d3F80000` is no number"),
        ("1x", "`1x` is no number"),
        ("1e", "`1e` is no number"),
        ("18446744073709551616", "does not fit 64 bits"),
        ("1/0", "divided by zero"),
        ("1%0U", "divided by zero"),
        ("-0f3F800000", "`-` cannot be applied"),
        ("~1.5", "`~` cannot be applied"),
        ("1.5 % 2", "`%` cannot be applied"),
        ("1.5 << 2", "`<<` cannot be applied"),
        ("0f3F800000 + 1", "`+` cannot be applied"),
        ("0f3F800000 ? 1 : 2", "do not go together"),
        ("(.u64)0f3F800000", "cannot be cast"),
        ("(1", "where `)` should stand"),
        ("1 ? 2", "where `:` should stand"),
        ("1 +", "found `;` where a constant should stand"),
        ("1 + a", "found `a` where a constant should stand"),
    ];
    for (text, wanted) in cases {
        let text = wrap_body(&format!("mov.b64 d, {text};"));
        let error = parse(&text).unwrap_err();
        assert!(error.message.contains(wanted), "{text}: {}", error.message);
    }
}
