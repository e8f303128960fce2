//! The attributes of a call: an MLIR dictionary of integers and truth values.

use std::collections::BTreeMap;

/// Attributes by name; truth values are 0 and 1.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Attributes(BTreeMap<String, i64>);

impl Attributes {
    /// Reads a dictionary such as `{left = true, mode = 65 : ui8}`.
    ///
    /// # Errors
    /// What cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        let inner = inner.ok_or_else(|| format!("`{text}` is not a dictionary"))?;
        let mut out = BTreeMap::new();
        for entry in inner.split(',').filter(|entry| !entry.trim().is_empty()) {
            let read = || {
                let (name, value) = entry.split_once('=')?;
                let value = value.split(':').next()?.trim();
                let value = match value {
                    "true" => 1,
                    "false" => 0,
                    number => number.parse().ok()?,
                };
                Some((name.trim().trim_matches('"').to_owned(), value))
            };
            let entry = read().ok_or_else(|| format!("`{}` is not an attribute", entry.trim()))?;
            out.insert(entry.0, entry.1);
        }
        Ok(Self(out))
    }

    /// A number.
    ///
    /// # Errors
    /// That there is none.
    pub(super) fn number(&self, name: &str) -> Result<i64, String> {
        let value = self.0.get(name).copied();
        value.ok_or_else(|| format!("the attribute `{name}` is missing"))
    }

    /// A letter, which must be one of these.
    ///
    /// # Errors
    /// That it is missing, or another one.
    pub(super) fn letter(&self, name: &str, known: &str) -> Result<char, String> {
        let number = self.number(name)?;
        let letter = u8::try_from(number).map(char::from).ok();
        letter.filter(|&c| known.contains(c)).ok_or_else(|| {
            let known: Vec<String> = known
                .chars()
                .map(|c| format!("{} ({c})", c as u32))
                .collect();
            format!(
                "the attribute `{name}` is {number}, wanted one of {}",
                known.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_are_read() {
        let read = Attributes::parse(" {high = 5 : i32, left = true, \"mode\" = 65 : ui8} ");
        let read = read.expect("a dictionary");
        assert_eq!(read.number("high"), Ok(5));
        assert_eq!(read.number("left"), Ok(1));
        assert_eq!(read.letter("mode", "ANS"), Ok('A'));
        assert!(
            read.letter("mode", "NS")
                .unwrap_err()
                .contains("wanted one of 78 (N), 83 (S)")
        );
        assert!(read.number("low").unwrap_err().contains("`low` is missing"));
        assert_eq!(Attributes::parse("{}"), Ok(Attributes::default()));
        assert_eq!(Attributes::parse(""), Ok(Attributes::default()));
        for wrong in ["x", "{a}", "{a = b}", "{a = 1", "{a = 1 b = 2}"] {
            assert!(Attributes::parse(wrong).is_err(), "{wrong}");
        }
    }
}
