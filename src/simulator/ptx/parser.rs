//! The reader's state and helpers, and the outermost level of a text.

use super::ast::Alias;
use super::ast::File;
use super::ast::Module;
use super::ast::Operand;
use super::ast::Suffix;
use super::ast::TargetName;
use super::lexer::Kind;
use super::lexer::Lexer;
use super::lexer::Token;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;

/// How deep blocks, braces and parentheses may nest, all together.
pub(super) const MAX_DEPTH: usize = 64;

/// How long a text may be: what 32 bits can count with room to spare.
const MAX_BYTES: usize = 1 << 31;

/// Reads a module.
///
/// # Errors
///
/// The text does not follow the grammar, nests too deep or is too long.
pub fn parse(text: &str) -> Result<Module<'_>> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes, more than {MAX_BYTES}", text.len());
        return Err(Diagnostic::error(codes::PTX_LIMIT, message));
    }
    let mut parser = Parser::new(text.trim_end_matches('\0'))?;
    let mut module = parser.module()?;
    module.text = text;
    Ok(module)
}

/// The bytes as text.
///
/// # Errors
///
/// They are not UTF-8: the place of the first byte that is not is told.
pub fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let line = 1 + bytes[..at].iter().filter(|b| **b == b'\n').count();
        let byte = bytes.get(at).copied().unwrap_or(0);
        let message = format!("byte {byte:#04x} on line {line} is not UTF-8");
        Diagnostic::error(codes::PTX_SYNTAX, message).at(crate::base::Location::Byte(at as u64))
    })
}

/// One token ahead of the text.
pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    /// The token that comes next.
    pub(super) token: Token,
    depth: usize,
    /// Operands that are being collected; each list ends before the one around it goes on.
    pub(super) operands: Vec<Operand<'a>>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        Ok(Self {
            lexer,
            token,
            depth: 0,
            operands: Vec::new(),
        })
    }

    /// Moves past the token.
    pub(super) fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next()?;
        Ok(())
    }
    /// The token's bytes.
    pub(super) fn word(&self) -> &'a str {
        self.lexer.slice(self.token)
    }
    /// Whether this mark comes next.
    pub(super) fn at(&self, mark: u8) -> bool {
        self.token.kind == Kind::Mark(mark)
    }
    /// Takes the mark when it comes next.
    pub(super) fn eat(&mut self, mark: u8) -> Result<bool> {
        let found = self.at(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }
    /// Takes the mark or fails.
    pub(super) fn expect(&mut self, mark: u8) -> Result<()> {
        if self.at(mark) {
            return self.advance();
        }
        Err(self.unexpected(&format!("`{}`", char::from(mark))))
    }
    /// Takes a name or fails.
    pub(super) fn name(&mut self, what: &str) -> Result<&'a str> {
        if self.token.kind != Kind::Name {
            return Err(self.unexpected(what));
        }
        let name = self.word();
        self.advance()?;
        Ok(name)
    }
    /// Takes a string; what is between its quotes.
    pub(super) fn string(&mut self) -> Result<&'a str> {
        if self.token.kind != Kind::Text {
            return Err(self.unexpected("a string"));
        }
        let text = self.word();
        self.advance()?;
        Ok(&text[1..text.len() - 1])
    }
    /// Takes the word after a dot when it comes next and is this one.
    pub(super) fn eat_dot(&mut self, word: &str) -> Result<bool> {
        let found = self.token.kind == Kind::Dot && &self.word()[1..] == word;
        if found {
            self.advance()?;
        }
        Ok(found)
    }
    /// The word after a dot, when one comes next.
    pub(super) fn dot(&self) -> Option<&'a str> {
        (self.token.kind == Kind::Dot).then(|| &self.word()[1..])
    }
    /// One level deeper.
    pub(super) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("nesting deeper than {MAX_DEPTH} levels");
            let Token { start, end, .. } = self.token;
            return Err(self.lexer.error(codes::PTX_LIMIT, start, end, message));
        }
        Ok(())
    }
    /// Out again.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
    /// The token does not fit here.
    #[cold]
    pub(super) fn unexpected(&self, wanted: &str) -> Box<Diagnostic> {
        let found = match self.token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::Text => "a string".to_owned(),
            _ => {
                let word = self.word();
                let shown: String = word.chars().take(40).collect();
                let more = if shown.len() < word.len() { "..." } else { "" };
                format!("`{shown}{more}`")
            }
        };
        let message = format!("found {found} where {wanted} should stand");
        self.error_at(self.token, message)
    }
    /// An error at a token.
    #[cold]
    pub(super) fn error_at(&self, token: Token, message: impl Into<String>) -> Box<Diagnostic> {
        self.lexer
            .error(codes::PTX_SYNTAX, token.start, token.end, message)
    }

    fn module(&mut self) -> Result<Module<'a>> {
        let mut module = Module {
            text: "",
            version: (0, 0),
            target: TargetName::default(),
            address_size: 32,
            variables: Vec::new(),
            functions: Vec::new(),
            aliases: Vec::new(),
            files: Vec::new(),
            pragmas: Vec::new(),
        };
        let mut targets = 0;
        while self.token.kind != Kind::End {
            let token = self.token;
            let word = match self.dot() {
                Some(word) => word,
                None if self.at(b'@') => {
                    self.dwarf()?;
                    continue;
                }
                None => return Err(self.unexpected("a directive")),
            };
            if module.version == (0, 0) && word != "version" {
                return Err(self.unexpected("`.version`"));
            }
            match word {
                "version" => {
                    self.advance()?;
                    module.version = self.version()?;
                }
                "target" => {
                    self.advance()?;
                    targets += 1;
                    self.target(&mut module.target)?;
                }
                "address_size" => {
                    self.advance()?;
                    let token = self.token;
                    module.address_size = self.literal_u32()?;
                    if !matches!(module.address_size, 32 | 64) {
                        let message = "found an address size that is neither 32 nor 64";
                        return Err(self.error_at(token, message));
                    }
                }
                "file" => {
                    self.advance()?;
                    module.files.push(self.file()?);
                }
                "loc" => {
                    self.loc()?;
                }
                "pragma" => {
                    self.advance()?;
                    self.pragma(|text| module.pragmas.push(text))?;
                }
                "section" => self.section()?,
                "alias" => {
                    self.advance()?;
                    let name = self.name("the name of a function")?;
                    self.expect(b',')?;
                    let of = self.name("the name of a function")?;
                    self.expect(b';')?;
                    module.aliases.push(Alias {
                        line: token.line,
                        name,
                        of,
                    });
                }
                _ if targets == 0 => return Err(self.unexpected("`.target`")),
                _ => {
                    let linkage = self.linkage()?;
                    match self.dot() {
                        Some("entry" | "func") => module.functions.push(self.function(linkage)?),
                        _ => self.variables(linkage, &mut |v| module.variables.push(v))?,
                    }
                }
            }
        }
        if targets == 0 {
            let wanted = if module.version == (0, 0) {
                "`.version`"
            } else {
                "`.target`"
            };
            return Err(self.unexpected(wanted));
        }
        Ok(module)
    }
    fn version(&mut self) -> Result<(u32, u32)> {
        let token = self.token;
        let version = (token.kind == Kind::Number)
            .then(|| self.word().split_once('.'))
            .flatten()
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .filter(|version| *version != (0, 0));
        let Some(version) = version else {
            return Err(self.unexpected("a version such as `8.7`"));
        };
        self.advance()?;
        Ok(version)
    }
    /// `sm_90a, word, word`
    fn target(&mut self, target: &mut TargetName<'a>) -> Result<()> {
        loop {
            let token = self.token;
            let word = self.name("a target such as `sm_90`")?;
            if let Some(rest) = word
                .strip_prefix("sm_")
                .or_else(|| word.strip_prefix("compute_"))
            {
                let digits = rest.trim_end_matches(['a', 'f']);
                let suffix = match &rest[digits.len()..] {
                    "" => Some(Suffix::None),
                    "a" => Some(Suffix::Accelerated),
                    "f" => Some(Suffix::Family),
                    _ => None,
                };
                let plain = digits.bytes().all(|b| b.is_ascii_digit());
                let sm = plain.then(|| digits.parse().ok()).flatten();
                match (sm, suffix) {
                    (Some(sm), Some(suffix)) => (target.sm, target.suffix) = (sm, suffix),
                    _ => {
                        let message =
                            format!("found `{word}` where a target such as `sm_90` should stand");
                        return Err(self.error_at(token, message));
                    }
                }
            } else {
                target.options.push(word);
            }
            if !self.eat(b',')? {
                break;
            }
        }
        if target.sm == 0 {
            return Err(self.unexpected("a target such as `sm_90`"));
        }
        Ok(())
    }
    /// `1 "name", time, size`
    fn file(&mut self) -> Result<File<'a>> {
        let index = self.literal_u32()?;
        let name = self.string()?;
        while self.eat(b',')? {
            self.integer()?;
        }
        Ok(File { index, name })
    }
    /// `"text", "text";`
    pub(super) fn pragma(&mut self, mut take: impl FnMut(&'a str)) -> Result<()> {
        loop {
            take(self.string()?);
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b';')
    }
    /// `@@DWARF ...`: debug information of old, one line.
    pub(super) fn dwarf(&mut self) -> Result<()> {
        if self.lexer.byte() != b'@' {
            return Err(self.unexpected("a directive"));
        }
        self.lexer.skip_line();
        self.advance()
    }
    /// `.section name { ... }`: debug information, not kept.
    pub(super) fn section(&mut self) -> Result<()> {
        self.advance()?;
        if !matches!(self.token.kind, Kind::Dot | Kind::Name) {
            return Err(self.unexpected("the name of a section"));
        }
        self.advance()?;
        let open = self.token;
        self.expect(b'{')?;
        while !self.at(b'}') {
            if self.token.kind == Kind::End {
                return Err(self.error_at(open, "a section that is not closed"));
            }
            self.advance()?;
        }
        self.advance()
    }
}
