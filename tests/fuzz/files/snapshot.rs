//! Changes of snapshots: messages, and the large form, which is the length of a message, the
//! message, and arguments behind it.

use super::bytes;
use super::message;
use crate::fuzz::random::Random;

/// A tag has this value at most, and a message of a program is longer.
const LEAST_HEADER: u64 = 11;

/// Changes a snapshot in one way; `other` is another one.
pub fn change(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let Some((head, values)) = large(file) else {
        return message::change(file, other, random);
    };
    let (mut head, mut values) = (head.to_vec(), values.to_vec());
    let (other_head, other_values) = large(other).unwrap_or((other, &[]));
    match random.below(3) {
        0 => bytes::change(&mut values, other_values, random),
        _ => message::change(&mut head, other_head, random),
    }
    file.clear();
    message::put_varint(head.len() as u64, file);
    file.extend(head);
    file.extend(values);
}

/// The message and what is behind it, in the large form.
fn large(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = file;
    let length = message::varint(&mut rest).filter(|length| *length >= LEAST_HEADER)?;
    let (head, values) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    message::read(head).is_some().then_some((head, values))
}
