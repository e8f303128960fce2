//! Makes a file at which something is wrong small.

use std::time::Duration;
use std::time::Instant;

use super::Form;
use super::message;

/// The smallest file found that is still wrong, in that time.
pub fn shrink(
    form: Form,
    file: &[u8],
    time: Duration,
    is_wrong: &mut dyn FnMut(&[u8]) -> bool,
) -> Vec<u8> {
    let end = Instant::now() + time;
    let mut best = file.to_vec();
    loop {
        let before = best.len();
        if matches!(form, Form::HloProto | Form::Snapshot | Form::Bundle) {
            best = without_fields(best, end, is_wrong);
        }
        best = without_parts(best, end, is_wrong);
        if best.len() == before || Instant::now() >= end {
            return best;
        }
    }
}

/// Leaves out halves, quarters and so on, down to single bytes.
fn without_parts(
    mut best: Vec<u8>,
    end: Instant,
    is_wrong: &mut dyn FnMut(&[u8]) -> bool,
) -> Vec<u8> {
    let mut size = best.len().next_power_of_two() / 2;
    while size > 0 {
        // From the back: what is there is seldom needed by what is in front of it.
        let mut at = best.len();
        while at > 0 {
            if Instant::now() >= end {
                return best;
            }
            let start = at.saturating_sub(size);
            let mut shorter = best[..start].to_vec();
            shorter.extend_from_slice(&best[at..]);
            if is_wrong(&shorter) {
                best = shorter;
            }
            at = start;
        }
        size /= 2;
    }
    best
}

/// Leaves out fields of a message, at any depth.
fn without_fields(
    mut best: Vec<u8>,
    end: Instant,
    is_wrong: &mut dyn FnMut(&[u8]) -> bool,
) -> Vec<u8> {
    let Some(mut fields) = message::read(&best) else {
        return best;
    };
    let mut place = 0;
    while place < message::count(&fields) && Instant::now() < end {
        let mut fewer = fields.clone();
        if let Some((message, at)) = message::holder(&mut fewer, place) {
            message.remove(at);
        }
        let shorter = message::write(&fewer);
        if is_wrong(&shorter) {
            (best, fields) = (shorter, fewer);
        } else {
            place += 1;
        }
    }
    best
}
