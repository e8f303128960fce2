//! Locations in MLIR text.

use std::sync::Arc;

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::location::Loc;
use crate::mlir::location::SourceLoc;
use crate::mlir::text::Reader;
use crate::mlir::types::Name;

impl Reader<'_> {
    /// `loc(...)`.
    pub(super) fn location(&mut self) -> Result<Loc> {
        self.scan.expect_keyword("loc")?;
        self.scan.expect("(")?;
        let loc = self.location_inside()?;
        self.scan.expect(")")?;
        Ok(loc)
    }
    /// `loc(...)` when it comes next.
    pub(super) fn opt_location(&mut self) -> Result<Option<Loc>> {
        if self.scan.peek() != b'l' || self.scan.peek_keyword() != Some("loc") {
            return Ok(None);
        }
        self.location().map(Some)
    }
    /// A location inside another one. An alias is as deep as what it stands for.
    fn location_part(&mut self) -> Result<Loc> {
        match self.scan.sees("#") {
            true => self.location_inside(),
            false => self.nested(Self::location_inside),
        }
    }
    /// What stands between the parentheses of `loc`, or inside another location.
    fn location_inside(&mut self) -> Result<Loc> {
        self.count()?;
        match self.scan.peek() {
            b'"' => return self.named_location(),
            b'#' => return self.location_alias(),
            _ => {}
        }
        match self.scan.peek_keyword() {
            Some("unknown") => {
                self.scan.eat_keyword("unknown");
                Ok(Arc::clone(&self.unknown))
            }
            Some("callsite") => {
                self.scan.eat_keyword("callsite");
                self.scan.expect("(")?;
                let callee = self.location_part()?;
                self.scan.expect_keyword("at")?;
                let caller = self.location_part()?;
                self.scan.expect(")")?;
                Ok(Arc::new(SourceLoc::CallSite { callee, caller }))
            }
            Some("fused") => {
                self.scan.eat_keyword("fused");
                self.fused_location()
            }
            Some("loc") => self.nested(Self::location),
            _ => Err(self.scan.unexpected("a location")),
        }
    }
    fn location_alias(&mut self) -> Result<Loc> {
        let start = self.scan.pos();
        match self.hash_attr()? {
            Attr::Location(loc) => Ok(loc),
            attr => {
                let message = format!("{} where a location should stand", attr.what());
                Err(self.scan.error_at(start, message))
            }
        }
    }
    /// `fused<metadata>[a, b]` after the word.
    fn fused_location(&mut self) -> Result<Loc> {
        let mut metadata = None;
        if self.scan.eat("<") {
            metadata = Some(self.nested(|r| r.attr())?);
            self.scan.expect(">")?;
        }
        let parts = self.items(["[", "]"], Self::location_part)?;
        Ok(Arc::new(SourceLoc::Fused { parts, metadata }))
    }
    /// `"file":1:2`, `"file":1:2 to 3:4`, `"file":1:2 to :4`, `"name"` or `"name"(child)`.
    fn named_location(&mut self) -> Result<Loc> {
        let name = self.scan.utf8_string()?.into();
        if self.scan.eat(":") {
            return self.file_location(name);
        }
        let mut child = Arc::clone(&self.unknown);
        if self.scan.eat("(") {
            child = self.location_part()?;
            self.scan.expect(")")?;
        }
        Ok(Arc::new(SourceLoc::Name { name, child }))
    }
    fn file_location(&mut self, file: Name) -> Result<Loc> {
        let line = self.scan.small()?;
        self.scan.expect(":")?;
        let column = self.scan.small()?;
        let (mut end_line, mut end_column) = (line, column);
        if self.scan.eat_keyword("to") {
            if !self.scan.sees(":") {
                end_line = self.scan.small()?;
            }
            self.scan.expect(":")?;
            end_column = self.scan.small()?;
        }
        Ok(Arc::new(SourceLoc::File {
            file,
            line,
            column,
            end_line,
            end_column,
        }))
    }
}
