//! Flatbuffers: tables, vectors and strings, read where they lie.
//!
//! A table begins with the distance back to its vtable, which has the place of each field. Every
//! access is held against the bounds of the buffer; a field that is absent has its default value.
//! Format: the FlatBuffers internals document.

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;

/// A table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
    vtable: &'a [u8],
}

/// A vector of things that lie elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets<'a> {
    bytes: &'a [u8],
    at: usize,
    count: usize,
}

/// A diagnostic about a byte of the buffer.
fn damaged(at: usize, what: &str) -> Box<Diagnostic> {
    let message = format!("the export is damaged: {what}");
    let offset = u64::try_from(at).unwrap_or(u64::MAX);
    Diagnostic::error(codes::PROTO_DECODE, message).at(Location::Byte(offset))
}

fn slice<'a>(bytes: &'a [u8], at: usize, length: usize, what: &str) -> Result<&'a [u8]> {
    let end = at.checked_add(length);
    let found = end.and_then(|end| bytes.get(at..end));
    found.ok_or_else(|| damaged(at, &format!("{what} lies beyond its end")))
}

fn number<const N: usize>(bytes: &[u8], at: usize, what: &str) -> Result<[u8; N]> {
    let mut out = [0; N];
    out.copy_from_slice(slice(bytes, at, N, what)?);
    Ok(out)
}

/// The place that the offset at `at` tells.
fn target(bytes: &[u8], at: usize, what: &str) -> Result<usize> {
    let offset = u32::from_le_bytes(number(bytes, at, what)?);
    let place = usize::try_from(offset).ok().and_then(|o| at.checked_add(o));
    place.ok_or_else(|| damaged(at, &format!("{what} lies beyond its end")))
}

/// Place and number of the elements of a vector at `at`.
fn vector(bytes: &[u8], at: usize, width: usize, what: &str) -> Result<(usize, usize)> {
    let count = u32::from_le_bytes(number(bytes, at, what)?);
    let count = usize::try_from(count).map_err(|_| damaged(at, what))?;
    let size = count.checked_mul(width).ok_or_else(|| damaged(at, what))?;
    slice(bytes, at + 4, size, what)?;
    Ok((at + 4, count))
}

impl<'a> Table<'a> {
    /// The table that the buffer begins with the offset of.
    ///
    /// # Errors
    /// `XA1004` when there is none.
    pub(super) fn root(bytes: &'a [u8]) -> Result<Self> {
        Self::new(bytes, target(bytes, 0, "the root table")?)
    }

    fn new(bytes: &'a [u8], at: usize) -> Result<Self> {
        let distance = i32::from_le_bytes(number(bytes, at, "a table")?);
        let place = i64::try_from(at).ok().map(|at| at - i64::from(distance));
        let place = place.and_then(|place| usize::try_from(place).ok());
        let place = place.ok_or_else(|| damaged(at, "a table's fields lie before its start"))?;
        let size = u16::from_le_bytes(number(bytes, place, "the fields of a table")?);
        let vtable = slice(bytes, place, usize::from(size), "the fields of a table")?;
        if vtable.len() < 4 || vtable.len() % 2 != 0 {
            return Err(damaged(place, "the fields of a table have an odd size"));
        }
        Ok(Self { bytes, at, vtable })
    }

    /// Where the field of that number lies, when it is there.
    fn field(&self, id: usize) -> Option<usize> {
        let entry = self.vtable.get(4 + 2 * id..6 + 2 * id)?;
        let offset = u16::from_le_bytes([entry[0], entry[1]]);
        (offset != 0).then(|| self.at + usize::from(offset))
    }

    /// A byte field, 0 when it is absent.
    pub(super) fn u8(&self, id: usize) -> Result<u8> {
        match self.field(id) {
            Some(at) => Ok(number::<1>(self.bytes, at, "a byte")?[0]),
            None => Ok(0),
        }
    }

    /// A field of two bytes, 0 when it is absent.
    pub(super) fn u16(&self, id: usize) -> Result<u16> {
        match self.field(id) {
            Some(at) => Ok(u16::from_le_bytes(number(self.bytes, at, "a number")?)),
            None => Ok(0),
        }
    }

    /// A field of four bytes, 0 when it is absent.
    pub(super) fn u32(&self, id: usize) -> Result<u32> {
        match self.field(id) {
            Some(at) => Ok(u32::from_le_bytes(number(self.bytes, at, "a number")?)),
            None => Ok(0),
        }
    }

    /// The bytes of a vector of elements of that width, nothing when it is absent.
    pub(super) fn bytes(&self, id: usize, width: usize, what: &str) -> Result<&'a [u8]> {
        let Some(at) = self.field(id) else {
            return Ok(&[]);
        };
        let at = target(self.bytes, at, what)?;
        let (at, count) = vector(self.bytes, at, width, what)?;
        slice(self.bytes, at, count * width, what)
    }

    /// The numbers of a vector of two-byte numbers.
    pub(super) fn u16s(&self, id: usize, what: &str) -> Result<Vec<usize>> {
        let chunks = self.bytes(id, 2, what)?.as_chunks::<2>().0;
        Ok(chunks
            .iter()
            .map(|c| usize::from(u16::from_le_bytes(*c)))
            .collect())
    }

    /// The numbers of a vector of four-byte numbers.
    pub(super) fn u32s(&self, id: usize, what: &str) -> Result<Vec<u32>> {
        let chunks = self.bytes(id, 4, what)?.as_chunks::<4>().0;
        Ok(chunks.iter().map(|c| u32::from_le_bytes(*c)).collect())
    }

    /// A text, empty when it is absent.
    pub(super) fn text(&self, id: usize, what: &str) -> Result<&'a str> {
        match self.field(id) {
            Some(at) => text(self.bytes, target(self.bytes, at, what)?, what),
            None => Ok(""),
        }
    }

    /// A table, when it is there.
    pub(super) fn table(&self, id: usize, what: &str) -> Result<Option<Self>> {
        match self.field(id) {
            Some(at) => Self::new(self.bytes, target(self.bytes, at, what)?).map(Some),
            None => Ok(None),
        }
    }

    /// A vector of tables or texts, empty when it is absent.
    pub(super) fn offsets(&self, id: usize, what: &str) -> Result<Offsets<'a>> {
        let (at, count) = match self.field(id) {
            Some(at) => vector(self.bytes, target(self.bytes, at, what)?, 4, what)?,
            None => (0, 0),
        };
        let bytes = self.bytes;
        Ok(Offsets { bytes, at, count })
    }
}

impl<'a> Offsets<'a> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The tables.
    pub(super) fn tables(self, what: &'a str) -> impl Iterator<Item = Result<Table<'a>>> {
        (0..self.count).map(move |i| {
            let at = target(self.bytes, self.at + 4 * i, what)?;
            Table::new(self.bytes, at)
        })
    }

    /// The texts.
    pub(super) fn texts(self, what: &'a str) -> impl Iterator<Item = Result<&'a str>> {
        (0..self.count).map(move |i| {
            let at = target(self.bytes, self.at + 4 * i, what)?;
            text(self.bytes, at, what)
        })
    }
}

fn text<'a>(bytes: &'a [u8], at: usize, what: &str) -> Result<&'a str> {
    let (at, count) = vector(bytes, at, 1, what)?;
    let found = std::str::from_utf8(slice(bytes, at, count, what)?);
    found.map_err(|_| damaged(at, &format!("{what} is no text")))
}
