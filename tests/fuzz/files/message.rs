//! Changes of protobuf messages, whatever their schema: fields at any depth are changed, removed,
//! repeated and moved, and lengths fit again.

use xla_aot::wire::split;
use xla_aot::wire::split::Part;

use super::bytes;
use super::bytes::LARGEST;
use super::bytes::times;
use super::object;
use super::text;
use crate::fuzz::random::Random;

/// A field of a message.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its number.
    pub number: u64,
    /// What it holds.
    pub value: Value,
}

/// What a field holds.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number of seven bits a byte.
    Varint(u64),
    /// Eight bytes.
    Eight([u8; 8]),
    /// Four bytes.
    Four([u8; 4]),
    /// Bytes that are no message.
    Bytes(Vec<u8>),
    /// A message, or bytes that happen to be one.
    Message(Vec<Field>),
    /// A message cut into records, with its name.
    Records(String, Vec<Field>),
}

impl Value {
    /// The fields of a message.
    pub fn fields(&self) -> Option<&Vec<Field>> {
        match self {
            Self::Message(fields) | Self::Records(_, fields) => Some(fields),
            Self::Varint(_) | Self::Eight(_) | Self::Four(_) | Self::Bytes(_) => None,
        }
    }

    /// The fields of a message, to be changed.
    pub fn fields_mut(&mut self) -> Option<&mut Vec<Field>> {
        match self {
            Self::Message(fields) | Self::Records(_, fields) => Some(fields),
            Self::Varint(_) | Self::Eight(_) | Self::Four(_) | Self::Bytes(_) => None,
        }
    }

    /// The value of these bytes.
    pub fn of(bytes: &[u8], depth: usize) -> Self {
        if split::is_records(bytes)
            && let Ok(joined) = split::read(bytes)
            && let Some(fields) = read_at(&joined.bytes, depth + 1)
        {
            return Self::Records(joined.type_name, fields);
        }
        let inside = match bytes.is_empty() || depth == DEEPEST {
            true => None,
            false => read_at(bytes, depth + 1),
        };
        inside.map_or_else(|| Self::Bytes(bytes.to_vec()), Self::Message)
    }

    /// The bytes of a value that has a length.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Message(fields) => write(fields),
            Self::Records(name, fields) => {
                let whole = write(fields);
                split::write(name, &[Part::Merge(&whole)]).unwrap_or_default()
            }
            Self::Varint(_) | Self::Eight(_) | Self::Four(_) => Vec::new(),
        }
    }

    /// Whether records are somewhere in it. They are not written as they were.
    fn has_records(&self) -> bool {
        let inside = || {
            self.fields()
                .is_some_and(|f| f.iter().any(|f| f.value.has_records()))
        };
        matches!(self, Self::Records(..)) || inside()
    }
}

/// Messages in messages that are looked into.
const DEEPEST: usize = 60;

/// Takes a number of seven bits a byte.
pub fn varint(rest: &mut &[u8]) -> Option<u64> {
    let length = 1 + rest.iter().take(10).position(|b| b & 0x80 == 0)?;
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    let add = |value: u64, byte: &u8| value << 7 | u64::from(byte & 0x7f);
    Some(bytes.iter().rev().fold(0, add))
}

/// Writes a number of seven bits a byte.
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The fields, when the bytes are those of a message, as it would be written again.
pub fn read(bytes: &[u8]) -> Option<Vec<Field>> {
    read_at(bytes, 0)
}

fn read_at(bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut rest = bytes;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut rest)?),
            1 => {
                let (value, after) = rest.split_first_chunk::<8>()?;
                rest = after;
                Value::Eight(*value)
            }
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                let (value, after) = rest.split_at_checked(length)?;
                rest = after;
                Value::of(value, depth)
            }
            5 => {
                let (value, after) = rest.split_first_chunk::<4>()?;
                rest = after;
                Value::Four(*value)
            }
            _ => return None,
        };
        let number = tag >> 3;
        if number == 0 || number > 1 << 29 {
            return None;
        }
        fields.push(Field { number, value });
    }
    let is_same = || fields.iter().any(|f| f.value.has_records()) || write(&fields) == bytes;
    (depth == 0 || is_same()).then_some(fields)
}

/// The bytes of a message with these fields.
pub fn write(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        let tag = field.number << 3;
        match &field.value {
            Value::Varint(value) => {
                put_varint(tag, &mut out);
                put_varint(*value, &mut out);
            }
            Value::Eight(value) => {
                put_varint(tag | 1, &mut out);
                out.extend(value);
            }
            Value::Four(value) => {
                put_varint(tag | 5, &mut out);
                out.extend(value);
            }
            value => put_bytes(tag | 2, &value.bytes(), &mut out),
        }
    }
    out
}

fn put_bytes(tag: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(tag, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Fields at any depth.
pub fn count(fields: &[Field]) -> usize {
    let inside = |field: &Field| field.value.fields().map_or(0, |inside| count(inside));
    fields.iter().map(|field| 1 + inside(field)).sum()
}

/// The message that holds the field of that place, counted at any depth, and the field's place in it.
pub fn holder(fields: &mut Vec<Field>, mut place: usize) -> Option<(&mut Vec<Field>, usize)> {
    let mut path = Vec::new();
    if !seek(fields, &mut place, &mut path) {
        return None;
    }
    let at = path.pop()?;
    let mut message = fields;
    for step in path {
        message = message[step].value.fields_mut()?;
    }
    Some((message, at))
}

/// Counts a place down over fields at any depth; where it ends is `path`, and that it does the answer.
fn seek(fields: &[Field], place: &mut usize, path: &mut Vec<usize>) -> bool {
    for (i, field) in fields.iter().enumerate() {
        path.push(i);
        if *place == 0 {
            return true;
        }
        *place -= 1;
        let inside = field.value.fields();
        if inside.is_some_and(|inside| seek(inside, place, path)) {
            return true;
        }
        path.pop();
    }
    false
}

/// A field of any depth, and the message that holds it: each field of a message is as likely to be
/// it, or to have it inside, as any other.
fn descend<'a>(
    fields: &'a mut Vec<Field>,
    random: &mut Random,
) -> Option<(&'a mut Vec<Field>, usize)> {
    if fields.is_empty() {
        return None;
    }
    let at = random.below(fields.len());
    let has_inside = fields[at]
        .value
        .fields()
        .is_some_and(|inside| !inside.is_empty());
    if !has_inside || random.one_in(6) {
        return Some((fields, at));
    }
    descend(fields[at].value.fields_mut()?, random)
}

/// One field of any depth.
fn any(fields: &[Field], random: &mut Random) -> Option<Field> {
    let mut fields = fields.to_vec();
    let place = random.below(count(&fields).max(1));
    let (message, at) = holder(&mut fields, place)?;
    Some(message[at].clone())
}

/// Every field of that number, at any depth.
fn alike<'a>(fields: &'a [Field], number: u64, out: &mut Vec<&'a Field>) {
    for field in fields {
        if field.number == number {
            out.push(field);
        }
        if let Some(inside) = field.value.fields() {
            alike(inside, number, out);
        }
    }
}

/// Changes a message in one way; `other` is another file. What is no message is changed as bytes.
pub fn change(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match read(file) {
        Some(mut fields) if !fields.is_empty() && !random.one_in(16) => {
            change_fields(&mut fields, &read(other).unwrap_or_default(), random);
            *file = write(&fields);
        }
        _ => bytes::change(file, other, random),
    }
}

/// Changes one field in one way.
pub fn change_fields(fields: &mut Vec<Field>, other: &[Field], random: &mut Random) {
    let whole = fields.clone();
    let found = match random.one_in(2) {
        true => holder(fields, random.below(count(&whole).max(1))),
        false => descend(fields, random),
    };
    let Some((message, at)) = found else {
        return;
    };
    match random.below(16) {
        0 => drop(message.remove(at)),
        1 => {
            let field = message[at].clone();
            let size = write(std::slice::from_ref(&field)).len();
            let times = times(random).min(LARGEST / size);
            message.splice(at..at, std::iter::repeat_n(field, times));
        }
        2 => {
            let with = random.below(message.len());
            message.swap(at, with);
        }
        3 => {
            if let Some(field) = any(&whole, random) {
                message.insert(at, field);
            }
        }
        4 | 5 => {
            // What such a field holds elsewhere.
            let mut all = Vec::new();
            let from = if random.one_in(2) { &whole } else { other };
            alike(from, message[at].number, &mut all);
            if !all.is_empty() {
                message[at].value = all[random.below(all.len())].value.clone();
            }
        }
        6 => {
            message[at].number = match random.below(3) {
                0 => message[at].number + 1,
                1 => message[at].number.saturating_sub(1).max(1),
                _ => 1 + random.below(70) as u64,
            }
        }
        7 => {
            message[at].value = match random.below(4) {
                0 => Value::Varint(bytes::number(0, random)),
                1 => Value::Bytes(Vec::new()),
                2 => Value::Eight(random.next().to_le_bytes()),
                _ => Value::Message(message.clone()),
            }
        }
        8 => {
            // In itself, again and again; more often than messages may nest.
            let times = random.pick(&[1, 2, 50, 90, 120, 2000]);
            for _ in 0..times {
                let number = message[at].number;
                let value = std::mem::replace(&mut message[at].value, Value::Varint(0));
                message[at].value = Value::Message(vec![Field { number, value }]);
            }
        }
        _ => change_value(&mut message[at].value, random),
    }
}

fn change_value(value: &mut Value, random: &mut Random) {
    match value {
        Value::Varint(number) => *number = bytes::number(*number, random),
        Value::Eight(bytes) => {
            *bytes = match random.below(3) {
                0 => random.next().to_le_bytes(),
                1 => bytes::number(u64::from_le_bytes(*bytes), random).to_le_bytes(),
                _ => random
                    .pick(&[0.0, -0.0, f64::NAN, f64::INFINITY, 1e308])
                    .to_le_bytes(),
            }
        }
        Value::Four(bytes) => {
            let number = bytes::number(u64::from(u32::from_le_bytes(*bytes)), random);
            *bytes = (number as u32).to_le_bytes();
        }
        Value::Bytes(content) => change_bytes(content, random),
        Value::Message(_) | Value::Records(..) => {
            let mut content = value.bytes();
            change_bytes(&mut content, random);
            *value = Value::Bytes(content);
        }
    }
}

/// Changes an object, a program of a GPU, a list of numbers, or any bytes.
fn change_bytes(content: &mut Vec<u8>, random: &mut Random) {
    if content.starts_with(object::MAGIC) && !random.one_in(4) {
        return object::change(content, random);
    }
    if content.windows(7).take(200).any(|w| w == b".target") && !random.one_in(4) {
        let other = content.clone();
        return text::change(content, &other, random);
    }
    if random.one_in(2) {
        let other = content.clone();
        bytes::change(content, &other, random);
        return;
    }
    let mut numbers = Vec::new();
    let mut rest = &content[..];
    while let Some(number) = varint(&mut rest) {
        numbers.push(number);
    }
    let at = random.below(numbers.len().max(1));
    match (numbers.get(at).copied(), random.below(6)) {
        (None, _) => numbers.push(bytes::number(0, random)),
        (_, 0) => drop(numbers.remove(at)),
        (Some(old), 1) => {
            let times = times(random);
            numbers.splice(at..at, std::iter::repeat_n(old, times));
        }
        (Some(old), _) => numbers[at] = bytes::number(old, random),
    }
    content.clear();
    for number in numbers {
        put_varint(number, content);
    }
}
