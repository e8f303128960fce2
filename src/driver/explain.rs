//! What a diagnostic's code means.

use crate::base::codes;

/// One code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// As printed: `XA1001`.
    pub code: String,
    /// The paragraph.
    pub text: &'static str,
}

/// Every code, in order.
pub fn all() -> Vec<Explanation> {
    let codes = codes::ALL.iter();
    codes
        .map(|(code, _, text)| Explanation {
            code: code.to_string(),
            text: text.trim(),
        })
        .collect()
}

/// The code of that number, with or without its letters, in any case.
pub fn find(code: &str) -> Option<Explanation> {
    let code = code.to_ascii_uppercase();
    let number = code.strip_prefix("XA").unwrap_or(&code);
    all().into_iter().find(|e| e.code[2..] == *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_number() {
        assert!(find("xa1001").unwrap().text.contains("kind of the input"));
        assert_eq!(find("1001"), find("XA1001"));
        assert_eq!(find("XA0000"), None);
    }
}
