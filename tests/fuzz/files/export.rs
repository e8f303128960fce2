//! Changes of files of `jax.export`: flatbuffers, in which places of other things are numbers of four
//! bytes, and of the MLIR bytecode in them.

use super::bytecode;
use super::bytes;
use crate::fuzz::random::Random;

const MAGIC: &[u8] = b"ML\xefR";

/// Changes an export in one way; `other` is another one.
pub fn change(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match random.below(4) {
        0 => bytes::change(file, other, random),
        1 => change_module(file, other, random),
        // A number that is a place, a length, or the size of a table.
        _ => {
            let width = random.pick(&[1, 2, 4]);
            let at = random.below(file.len().max(1)) / width * width;
            if let Some(place) = file.get_mut(at..at + width) {
                let mut old = [0; 8];
                old[..width].copy_from_slice(place);
                let new = bytes::number(u64::from_le_bytes(old), random);
                let small = random.one_in(2);
                let new = if small { new % 64 } else { new };
                place.copy_from_slice(&new.to_le_bytes()[..width]);
            }
        }
    }
}

/// Where the module's bytes are, with their length in front of them.
fn module(file: &[u8]) -> Option<(usize, &[u8])> {
    let start = file.windows(MAGIC.len()).position(|w| w == MAGIC)?;
    let length = file[..start].last_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    Some((start - 4, file[start..].get(..length)?))
}

/// Puts a changed module at the end of the file, and its place where the old one's was.
fn change_module(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let Some((old_place, bytes)) = module(file) else {
        return;
    };
    let mut bytes = bytes.to_vec();
    let other = module(other).map(|(_, bytes)| bytes).unwrap_or_default();
    bytecode::change(&mut bytes, other, random);
    while !file.len().is_multiple_of(8) {
        file.push(0);
    }
    let place = file.len();
    // A place is told as the distance from where it is told.
    for at in (0..old_place.saturating_sub(3)).step_by(4) {
        let distance = (old_place - at) as u32;
        if file[at..at + 4] == distance.to_le_bytes() {
            let distance = (place - at) as u32;
            file[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }
    file.extend((bytes.len() as u32).to_le_bytes());
    file.extend(bytes);
}
