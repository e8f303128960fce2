//! The grammar, form by form; the errors; and texts that are broken on purpose.

mod forms;
mod modules;
mod constants;
mod errors;
mod broken;

use super::*;

/// A module around module-level text.
pub(super) fn wrap(text: &str) -> String {
    format!(".version 9.0\n.target sm_100a\n.address_size 64\n{text}\n")
}

/// A module with one entry around statements.
pub(super) fn wrap_body(text: &str) -> String {
    wrap(&format!(".entry k ()\n{{\n{text}\n}}"))
}

/// The statements of one body, which `check` looks at.
pub(super) fn with_body<T>(text: &str, check: impl FnOnce(&[Statement<'_>]) -> T) -> T {
    let text = wrap_body(text);
    let module = match parse(&text) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    };
    check(module.functions[0].body.as_deref().unwrap())
}

/// The canonical text of an instruction: one space after commas, numbers in decimal or as bits.
pub(super) fn print_instr(instr: &Instr<'_>) -> String {
    let mut out = String::new();
    if let Some(guard) = instr.guard {
        let mark = if guard.negated { "!" } else { "" };
        out += &format!("@{mark}{} ", guard.register);
    }
    out += instr.opcode;
    for modifier in &instr.modifiers {
        out += &format!(".{modifier}");
    }
    if !instr.operands.is_empty() {
        out += &format!(" {}", print_all(&instr.operands));
    }
    out + ";"
}

fn print_all(operands: &[Operand<'_>]) -> String {
    operands
        .iter()
        .map(print_operand)
        .collect::<Vec<_>>()
        .join(", ")
}

fn print_symbol(symbol: Symbol<'_>) -> String {
    let digits = |lanes: Lanes| {
        let shown = &lanes.digits[..usize::from(lanes.count)];
        shown.iter().map(u8::to_string).collect::<String>()
    };
    let member = match symbol.member {
        None => String::new(),
        Some(Member::X) => ".x".to_owned(),
        Some(Member::Y) => ".y".to_owned(),
        Some(Member::Z) => ".z".to_owned(),
        Some(Member::W) => ".w".to_owned(),
        Some(Member::Bytes(lanes)) => format!(".b{}", digits(lanes)),
        Some(Member::Halves(lanes)) => format!(".h{}", digits(lanes)),
    };
    format!("{}{member}", symbol.name)
}

/// As [`print_instr`], of one operand.
pub(super) fn print_operand(operand: &Operand<'_>) -> String {
    match operand {
        Operand::Name(symbol) => print_symbol(*symbol),
        Operand::Not(symbol) => format!("!{}", print_symbol(*symbol)),
        Operand::Negated(symbol) => format!("-{}", print_symbol(*symbol)),
        Operand::Int(value) => value.to_string(),
        Operand::F32(bits) => format!("0f{bits:08X}"),
        Operand::F64(bits) => format!("0d{bits:016X}"),
        Operand::Sum(symbol, offset) => format!("{}+{offset}", print_symbol(*symbol)),
        Operand::Vector(list) => format!("{{{}}}", print_all(list)),
        Operand::Address(address) => {
            let mut out = match address.base {
                Base::Name(symbol) => print_symbol(symbol),
                Base::Int(value) => value.to_string(),
            };
            if address.offset != 0 {
                out += &format!("+{}", address.offset);
            }
            for extra in &address.extra {
                out += &format!(", {}", print_operand(extra));
            }
            format!("[{out}]{}", if address.unified { ".unified" } else { "" })
        }
        Operand::Element(element) => match element.register {
            None => format!("{}[{}]", element.array, element.index),
            Some(r) if element.index == 0 => format!("{}[{}]", element.array, print_symbol(r)),
            Some(r) => format!("{}[{}+{}]", element.array, print_symbol(r), element.index),
        },
        Operand::Pair(pair) => format!("{}|{}", print_operand(&pair.0), print_operand(&pair.1)),
        Operand::Sink => "_".to_owned(),
        Operand::List(list) => format!("({})", print_all(list)),
    }
}
