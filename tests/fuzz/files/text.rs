//! Changes of texts: of tokens, numbers, names, lines and groups in brackets.

use std::ops::Range;

use super::bytes;
use super::bytes::LARGEST;
use super::bytes::times;
use crate::fuzz::random::Random;

/// Numbers in texts at which readers go wrong.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "007",
    "127",
    "128",
    "-129",
    "255",
    "256",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999",
    "1e999",
    "-1e-999",
    "1.5",
    "0x1p3",
    "0xFF",
    "0x7FC00000",
    "nan",
    "-inf",
    "?",
];

/// Pieces that stand anywhere.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ":",
    "::",
    "=",
    "->",
    "<=",
    "-",
    "x",
    "*",
    "?",
    "\"",
    "\\",
    "'",
    "\"\"",
    "%",
    "#",
    "@",
    "!",
    "^",
    "//",
    "/*",
    "*/",
    "...",
    "{...}",
    "\n",
    "\t",
    " ",
    ".",
    "\u{feff}",
    "é",
    "\0",
    "e",
    "_",
    "T",
    "0x",
    "<<",
    ">>",
    "()",
    "{}",
    "[]",
    "<>",
    "%0",
    "#0",
    "@main",
    "ROOT ",
    "ENTRY ",
    "HloModule ",
    "module",
    "loc(",
    "dense<",
    "tensor<",
    "f32",
    "i1",
    "f32[",
    "f32[2]{0}",
    "T(",
    "token[]",
    "pred[]",
    "c64[",
    "s4[4294967296,4294967296]",
    "nan",
    "-nan(0x1)",
    "1e999",
    "constant(",
    "parameter(0)",
    "tuple(",
    "-start(",
    "to_apply={ROOT x = f32[] parameter(0)}",
    ", dimensions={0}",
    ", metadata={op_name=\"a\"}",
    ", sharding={",
    "size=1x1 ",
    "!x.y",
    "#x.y",
];

const OPEN: &[u8] = b"([{<";
const CLOSE: &[u8] = b")]}>";

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'-') || byte >= 0x80
}

/// Where tokens begin, and the end: words, strings, runs of white space, and other characters.
fn tokens(text: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        starts.push(at);
        let rest = &text[at..];
        let while_true = |test: &dyn Fn(u8) -> bool| rest.iter().take_while(|b| test(**b)).count();
        at += match rest[0] {
            b'"' => {
                let mut end = 1;
                while end < rest.len() && !matches!(rest[end], b'"' | b'\n') {
                    end += if rest[end] == b'\\' { 2 } else { 1 };
                }
                (end + 1).min(rest.len())
            }
            b if is_word(b) => while_true(&is_word),
            b if b.is_ascii_whitespace() => while_true(&|b| b.is_ascii_whitespace()),
            _ => 1,
        };
    }
    starts.push(text.len());
    starts
}

/// Up to `most` tokens.
fn some_tokens(text: &[u8], most: usize, random: &mut Random) -> Range<usize> {
    let starts = tokens(text);
    let count = starts.len() - 1;
    if count == 0 {
        return 0..0;
    }
    let first = random.below(count);
    let last = (first + 1 + random.below(most)).min(count);
    starts[first]..starts[last]
}

/// One of the ranges.
fn pick(ranges: Vec<Range<usize>>, random: &mut Random) -> Option<Range<usize>> {
    if ranges.is_empty() {
        return None;
    }
    let at = random.below(ranges.len());
    ranges.into_iter().nth(at)
}

/// A token that is like `wanted`.
fn token_like(
    text: &[u8],
    wanted: impl Fn(&[u8]) -> bool,
    random: &mut Random,
) -> Option<Range<usize>> {
    let starts = tokens(text);
    let all = starts.windows(2).map(|pair| pair[0]..pair[1]);
    pick(
        all.filter(|range| wanted(&text[range.clone()])).collect(),
        random,
    )
}

/// A run of digits, wherever it stands.
fn a_number(text: &[u8], random: &mut Random) -> Option<Range<usize>> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let digits = text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 {
            all.push(at..at + digits);
        }
        at += digits.max(1);
    }
    pick(all, random)
}

/// A line with its end.
fn a_line(text: &[u8], random: &mut Random) -> Option<Range<usize>> {
    let mut all = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        all.push(start..start + line.len());
        start += line.len();
    }
    pick(all, random)
}

/// A pair of brackets that belong together, and what is between.
fn a_group(text: &[u8], random: &mut Random) -> Option<Range<usize>> {
    let opens = text.iter().enumerate().filter(|(_, b)| OPEN.contains(b));
    let opens: Vec<usize> = opens.map(|(at, _)| at).collect();
    for _ in 0..4 {
        let start = *opens.get(random.below(opens.len().max(1)))?;
        let kind = OPEN.iter().position(|b| *b == text[start])?;
        let mut depth = 0usize;
        for (at, byte) in text.iter().enumerate().skip(start) {
            if *byte == OPEN[kind] {
                depth += 1;
            } else if *byte == CLOSE[kind] && !(kind == 3 && text[at - 1] == b'-') {
                depth -= 1;
                if depth == 0 {
                    return Some(start..at + 1);
                }
            }
        }
    }
    None
}

/// Changes the text in one way; `other` is another text.
pub fn change(text: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match random.below(20) {
        0 => drop(text.drain(some_tokens(text, 8, random))),
        1 => {
            let run = some_tokens(text, 12, random);
            let piece = text[run.clone()].to_vec();
            let count = times(random).min(LARGEST / piece.len().max(1));
            text.splice(run.end..run.end, piece.repeat(count));
        }
        2 => {
            let (a, b) = (some_tokens(text, 4, random), some_tokens(text, 4, random));
            let (a, b) = if a.start < b.start { (a, b) } else { (b, a) };
            if a.end <= b.start {
                let first = text[a.clone()].to_vec();
                let second: Vec<u8> = text.splice(b, first).collect();
                text.splice(a, second);
            }
        }
        3 | 4 => {
            let piece = other[some_tokens(other, 2, random)].to_vec();
            text.splice(some_tokens(text, 1, random), piece);
        }
        5 => {
            let piece = other[some_tokens(other, 30, random)].to_vec();
            text.splice(some_tokens(text, 4, random), piece);
        }
        6..=8 => {
            if let Some(at) = a_number(text, random) {
                let number = random.pick(NUMBERS);
                text.splice(at, number.bytes());
            }
        }
        9 => {
            if let Some((from, to)) = a_line(other, random).zip(a_line(text, random)) {
                let end = if random.one_in(2) { to.end } else { to.start };
                text.splice(to.start..end, other[from].iter().copied());
            }
        }
        10 => {
            if let Some((from, to)) = a_line(text, random).zip(a_line(text, random)) {
                let line = text[from.clone()].to_vec();
                match random.below(3) {
                    0 => drop(text.drain(from)),
                    1 => drop(text.splice(to.start..to.start, line)),
                    _ => drop(text.splice(to, line)),
                }
            }
        }
        11 | 12 => {
            let own = random.one_in(2);
            let from = if own { &text[..] } else { other };
            let group = a_group(from, random).map(|range| from[range].to_vec());
            if let Some((group, to)) = group.zip(a_group(text, random)) {
                text.splice(to, group);
            }
        }
        13 => nest(text, random),
        14 | 15 => {
            // One name where another stood.
            let names = |token: &[u8]| is_word(token[0]) && !token[0].is_ascii_digit();
            let from = token_like(text, names, random);
            if let Some((from, to)) = from.zip(token_like(text, names, random)) {
                let name = text[from].to_vec();
                text.splice(to, name);
            }
        }
        16 => {
            let piece = random.pick(PIECES);
            text.splice(some_tokens(text, 1, random), piece.bytes());
        }
        17 => {
            let at = some_tokens(text, 1, random).start;
            let piece = random.pick(PIECES);
            text.splice(at..at, piece.bytes());
        }
        18 => text.truncate(some_tokens(text, 1, random).start),
        _ => bytes::change(text, other, random),
    }
}

/// What is in brackets stands in as many more of them.
fn nest(text: &mut Vec<u8>, random: &mut Random) {
    let Some(group) = a_group(text, random) else {
        return;
    };
    let start = tokens(&text[..group.start]);
    // With the word in front of the bracket, or a few more.
    let words = random.below(4).min(start.len() - 1);
    let open = start[start.len() - 1 - words];
    let before = text[open..=group.start].to_vec();
    let after = text[group.end - 1..group.end].to_vec();
    let count = times(random).min(LARGEST / (before.len() + after.len()));
    text.splice(group.end..group.end, after.repeat(count));
    text.splice(open..open, before.repeat(count));
}
