//! Functions the device brings along: `vprintf`, assertions, `malloc`.

use crate::simulator::code::Builtin;
use crate::simulator::code::Call;
use crate::simulator::launch::ReportKind;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::worker::Fault;

/// Longest text that is read from a program.
const MOST_TEXT: usize = 4096;

/// Most bytes that one host thread of a launch keeps of what is printed.
const MOST_PRINTED: usize = 64 << 20;

impl Exec<'_, '_> {
    /// A text that ends with zero, at a generic address.
    fn text_at(&mut self, address: u64, lane: usize) -> Result<Vec<u8>, Fault> {
        let mut text = Vec::new();
        while text.len() < MOST_TEXT {
            let byte = self.generic_load(address.wrapping_add(text.len() as u64), 1, lane)? as u8;
            if byte == 0 {
                break;
            }
            text.push(byte);
        }
        Ok(text)
    }

    /// Calls a function the device brings along.
    pub fn builtin(&mut self, builtin: Builtin, call: &Call) -> Result<Flow, Fault> {
        for lane in self.lanes() {
            match builtin {
                Builtin::Vprintf => {
                    let format = self.argument(call, 0, lane);
                    let values = self.argument(call, 1, lane);
                    let format = self.text_at(format, lane)?;
                    let text = self.formatted(&format, values, lane)?;
                    let block = self.cluster.blocks[self.block].number;
                    // A full buffer takes no more, and the call says so.
                    let mut result = u64::MAX;
                    if self.worker.printed_bytes + text.len() <= MOST_PRINTED {
                        self.worker.printed_bytes += text.len();
                        result = 0;
                        match self.worker.printed.last_mut() {
                            Some((number, printed)) if *number == block => printed.extend(text),
                            _ => self.worker.printed.push((block, text)),
                        }
                    }
                    self.give(call, lane, result);
                }
                Builtin::AssertFail => {
                    let message = self.argument(call, 0, lane);
                    let file = self.argument(call, 1, lane);
                    let line = self.argument(call, 2, lane) as u32;
                    let message = self.text_at(message, lane)?;
                    let file = self.text_at(file, lane)?;
                    let message = format!(
                        "assertion `{}` failed at {}:{line}",
                        String::from_utf8_lossy(&message),
                        String::from_utf8_lossy(&file)
                    );
                    return Err(Box::new(self.report(ReportKind::Trap, lane, message)));
                }
                // The device's heap is empty: a null pointer is what a full one gives.
                Builtin::Malloc => self.give(call, lane, 0),
                Builtin::Free => {}
            }
        }
        Ok(Flow::Next)
    }

    /// Formats as C does. Values stand at multiples of their size from `values` on.
    fn formatted(&mut self, format: &[u8], values: u64, lane: usize) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        let mut at = values;
        let mut bytes = format.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                out.push(byte);
                continue;
            }
            let mut spec = Spec::default();
            let kind = loop {
                let Some(byte) = bytes.next() else { break 0 };
                match byte {
                    b'-' => spec.left = true,
                    b'+' => spec.plus = true,
                    b' ' => spec.space = true,
                    b'#' => spec.alternate = true,
                    b'0' if spec.width == 0 && spec.precision.is_none() => spec.zero = true,
                    b'0'..=b'9' => {
                        let digit = usize::from(byte - b'0');
                        let place = spec.precision.as_mut().unwrap_or(&mut spec.width);
                        *place = (*place * 10 + digit).min(MOST_TEXT);
                    }
                    b'.' => spec.precision = Some(0),
                    b'l' | b'j' | b'z' | b't' => spec.long = true,
                    b'h' | b'L' | b'q' => spec.long |= byte == b'q',
                    b'*' => {
                        let value = self.next_value(&mut at, 4, lane)? as i32;
                        match spec.precision.as_mut() {
                            Some(place) => *place = value.max(0) as usize,
                            None => {
                                spec.left |= value < 0;
                                spec.width = value.unsigned_abs() as usize;
                            }
                        }
                    }
                    kind => break kind,
                }
            };
            spec.width = spec.width.min(MOST_TEXT);
            spec.precision = spec.precision.map(|p| p.min(MOST_TEXT));
            let size = if spec.long { 8 } else { 4 };
            match kind {
                b'%' => out.push(b'%'),
                b'd' | b'i' => {
                    let value = self.next_value(&mut at, size, lane)?;
                    let value = if spec.long {
                        value as i64
                    } else {
                        i64::from(value as i32)
                    };
                    let sign = if value < 0 { "-" } else { spec.sign() };
                    spec.number(&mut out, sign, value.unsigned_abs().to_string());
                }
                b'u' | b'x' | b'X' | b'o' => {
                    let value = self.next_value(&mut at, size, lane)?;
                    let (prefix, digits) = match kind {
                        b'u' => ("", value.to_string()),
                        b'x' => ("0x", format!("{value:x}")),
                        b'X' => ("0X", format!("{value:X}")),
                        _ => ("0", format!("{value:o}")),
                    };
                    let prefix = if spec.alternate && value != 0 {
                        prefix
                    } else {
                        ""
                    };
                    spec.number(&mut out, prefix, digits);
                }
                b'c' => {
                    let value = self.next_value(&mut at, 4, lane)?;
                    spec.pad(&mut out, vec![value as u8]);
                }
                b's' => {
                    let address = self.next_value(&mut at, 8, lane)?;
                    let mut text = self.text_at(address, lane)?;
                    text.truncate(spec.precision.unwrap_or(MOST_TEXT));
                    spec.pad(&mut out, text);
                }
                b'p' => {
                    let value = self.next_value(&mut at, 8, lane)?;
                    spec.pad(&mut out, format!("{value:#x}").into_bytes());
                }
                b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                    let value = f64::from_bits(self.next_value(&mut at, 8, lane)?);
                    let sign = if value.is_sign_negative() {
                        "-"
                    } else {
                        spec.sign()
                    };
                    let digits = float(kind, value.abs(), spec.precision, spec.alternate);
                    spec.precision = None;
                    spec.zero &= value.is_finite();
                    spec.number(&mut out, sign, digits);
                }
                0 => {}
                other => out.extend([b'%', other]),
            }
        }
        Ok(out)
    }

    fn next_value(&mut self, at: &mut u64, size: u32, lane: usize) -> Result<u64, Fault> {
        let address = at.wrapping_neg() % u64::from(size);
        let address = at.wrapping_add(address);
        *at = address.wrapping_add(u64::from(size));
        self.generic_load(address, size, lane)
    }
}

/// What stands between the per cent sign and the letter.
#[derive(Clone, Copy, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    long: bool,
    width: usize,
    precision: Option<usize>,
}

impl Spec {
    fn sign(&self) -> &'static str {
        match (self.plus, self.space) {
            (true, _) => "+",
            (false, true) => " ",
            _ => "",
        }
    }
    fn number(&self, out: &mut Vec<u8>, sign: &str, digits: String) {
        let wanted = match self.precision {
            Some(precision) => precision,
            None if self.zero && !self.left => self.width.saturating_sub(sign.len()),
            None => 0,
        };
        let zeros = wanted.saturating_sub(digits.len());
        let text = format!("{sign}{}{digits}", "0".repeat(zeros));
        self.pad(out, text.into_bytes());
    }
    fn pad(&self, out: &mut Vec<u8>, text: Vec<u8>) {
        let spaces = vec![b' '; self.width.saturating_sub(text.len())];
        if self.left {
            out.extend(text);
            out.extend(spaces);
        } else {
            out.extend(spaces);
            out.extend(text);
        }
    }
}

/// A number that is not negative, as the letter says.
fn float(kind: u8, value: f64, precision: Option<usize>, alternate: bool) -> String {
    let upper = kind.is_ascii_uppercase();
    let digits = precision.unwrap_or(6);
    let text = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        match kind.to_ascii_lowercase() {
            b'f' => format!("{value:.digits$}"),
            b'e' => exponent(value, digits),
            b'a' => format!("{:#x}", value.to_bits()),
            _ => general(value, digits.max(1), alternate),
        }
    };
    if upper { text.to_uppercase() } else { text }
}

fn exponent(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, number) = match exponent.strip_prefix('-') {
                Some(number) => ('-', number),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{number:0>2}")
        }
        None => text,
    }
}

fn general(value: f64, digits: usize, alternate: bool) -> String {
    let scientific = exponent(value, digits - 1);
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let trim = |text: String| {
        if alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if power < -4 || power >= digits as i32 {
        match scientific.split_once('e') {
            Some((mantissa, power)) => format!("{}e{power}", trim(mantissa.to_owned())),
            None => scientific,
        }
    } else {
        let places = (digits as i32 - 1 - power).max(0) as usize;
        trim(format!("{value:.places$}"))
    }
}
