//! Functions, their directives and the statements of their bodies.

use super::ast::Directives;
use super::ast::Function;
use super::ast::Linkage;
use super::ast::Loc;
use super::ast::Statement;
use super::declaration::space;
use super::lexer::Kind;
use super::parser::Parser;
use crate::base::Result;

impl<'a> Parser<'a> {
    /// `.entry name (...) { ... }`, `.func (...) name (...);`
    pub(super) fn function(&mut self, linkage: Linkage) -> Result<Function<'a>> {
        let is_entry = self.eat_dot("entry")?;
        if !is_entry {
            self.advance()?;
        }
        let mut directives = Directives::default();
        // An attribute stands before the results or after the name.
        self.directives(&mut directives)?;
        let returns = if is_entry {
            Vec::new()
        } else {
            self.parameters()?
        };
        let line = self.token.line;
        let name = self.name("the name of a function")?;
        self.directives(&mut directives)?;
        let params = self.parameters()?;
        self.directives(&mut directives)?;
        let body = if self.eat(b';')? {
            None
        } else if self.at(b'{') {
            Some(self.body()?)
        } else {
            return Err(self.unexpected("`{` or `;`"));
        };
        Ok(Function {
            line,
            linkage,
            is_entry,
            name,
            params,
            returns,
            directives,
            body,
        })
    }
    /// What stands between parameters and body.
    fn directives(&mut self, to: &mut Directives<'a>) -> Result<()> {
        while let Some(word) = self.dot() {
            self.advance()?;
            match word {
                "maxntid" => to.max_threads = Some(self.extents()?),
                "reqntid" => to.required_threads = Some(self.extents()?),
                "reqnctapercluster" => to.cluster = Some(self.extents()?),
                "minnctapersm" => to.min_blocks_per_core = Some(self.literal_u32()?),
                "maxnctapersm" => to.max_blocks_per_core = Some(self.literal_u32()?),
                "maxnreg" => to.max_registers = Some(self.literal_u32()?),
                "maxclusterrank" => to.max_cluster_rank = Some(self.literal_u32()?),
                "explicitcluster" => to.explicit_cluster = true,
                "blocksareclusters" => to.blocks_are_clusters = true,
                "noreturn" => to.no_return = true,
                "abi_preserve" => to.abi_preserve = Some(self.literal_u32()?),
                "abi_preserve_control" => to.abi_preserve_control = Some(self.literal_u32()?),
                "pragma" => self.pragma(|text| to.pragmas.push(text))?,
                "attribute" => to.unified = self.attribute()?.1.or(to.unified),
                _ => {
                    let mut values = Vec::new();
                    if matches!(self.token.kind, Kind::Number) {
                        values = vec![self.integer()?];
                        while self.eat(b',')? {
                            values.push(self.integer()?);
                        }
                    }
                    to.others.push((word, values));
                }
            }
        }
        Ok(())
    }
    /// One to three numbers.
    fn extents(&mut self) -> Result<[u32; 3]> {
        let mut extents = [1; 3];
        for (i, extent) in extents.iter_mut().enumerate() {
            if i > 0 && !self.eat(b',')? {
                break;
            }
            *extent = self.literal_u32()?;
        }
        Ok(extents)
    }
    /// `{ statements }`
    fn body(&mut self) -> Result<Vec<Statement<'a>>> {
        let open = self.token;
        self.enter()?;
        self.expect(b'{')?;
        let mut body = Vec::new();
        loop {
            match self.token.kind {
                Kind::Name => self.labelled(&mut body)?,
                Kind::Dot => self.directive(&mut body)?,
                Kind::Mark(b'@') if self.lexer.byte() == b'@' => self.dwarf()?,
                Kind::Mark(b'@') => {
                    let guard = self.guard()?;
                    self.instruction(Some(guard), &mut body)?;
                }
                Kind::Mark(b'{') => {
                    let block = self.body()?;
                    body.push(Statement::Block(block));
                }
                Kind::Mark(b'}') => break,
                Kind::End => return Err(self.error_at(open, "a block that is not closed")),
                _ => return Err(self.unexpected("a statement")),
            }
        }
        self.advance()?;
        self.leave();
        body.shrink_to_fit();
        Ok(body)
    }
    /// `label:` with what belongs to it, or an instruction.
    fn labelled(&mut self, body: &mut Vec<Statement<'a>>) -> Result<()> {
        let line = self.token.line;
        // A colon comes right after nearly every label and no opcode: look at one byte first.
        let next = self.lexer.byte();
        if next != b':' && (next == b'.' || !self.colon_follows()?) {
            return self.instruction(None, body);
        }
        let label = self.name("a label")?;
        self.expect(b':')?;
        match self.dot() {
            Some(word @ ("branchtargets" | "calltargets")) => {
                self.advance()?;
                let mut names = vec![self.name("a label or function")?];
                while self.eat(b',')? {
                    names.push(self.name("a label or function")?);
                }
                self.expect(b';')?;
                body.push(Statement::Targets {
                    line,
                    label,
                    calls: word == "calltargets",
                    names,
                });
            }
            Some("callprototype") => {
                self.advance()?;
                let returns = self.parameters()?;
                let name = self.name("`_`")?;
                let params = self.parameters()?;
                let mut directives = Directives::default();
                self.directives(&mut directives)?;
                self.expect(b';')?;
                let signature = Box::new(Function {
                    line,
                    linkage: Linkage::Internal,
                    is_entry: false,
                    name,
                    params,
                    returns,
                    directives,
                    body: None,
                });
                body.push(Statement::Prototype { label, signature });
            }
            _ => body.push(Statement::Label { line, name: label }),
        }
        Ok(())
    }
    /// Whether a colon comes after the token.
    fn colon_follows(&self) -> Result<bool> {
        let mut ahead = self.lexer;
        Ok(ahead.next()?.kind == Kind::Mark(b':'))
    }
    /// A directive in a body.
    fn directive(&mut self, body: &mut Vec<Statement<'a>>) -> Result<()> {
        let line = self.token.line;
        match self.dot() {
            Some("reg") => self.registers(body),
            Some("loc") => {
                let loc = self.loc()?;
                body.push(Statement::Loc(loc));
                Ok(())
            }
            Some("pragma") => {
                self.advance()?;
                self.pragma(|text| body.push(Statement::Pragma { line, text }))
            }
            Some("section") => self.section(),
            Some(word) if space(word).is_some() => {
                let mut take = |v| body.push(Statement::Variable(Box::new(v)));
                self.variables(Linkage::Internal, &mut take)
            }
            _ => Err(self.unexpected("a directive that may stand in a body")),
        }
    }
    /// `.loc file line column, function_name label, inlined_at file line column`
    pub(super) fn loc(&mut self) -> Result<Loc<'a>> {
        self.advance()?;
        let place = |parser: &mut Self| -> Result<(u32, u32, u32)> {
            let file = parser.literal_u32()?;
            let line = parser.literal_u32()?;
            Ok((file, line, parser.literal_u32()?))
        };
        let (file, line, column) = place(self)?;
        let (mut function, mut inlined_at) = (None, None);
        while self.eat(b',')? {
            match self.name("`function_name` or `inlined_at`")? {
                "function_name" => {
                    function = Some(self.name("a label")?);
                    self.offset()?;
                }
                "inlined_at" => inlined_at = Some(place(self)?),
                _ => return Err(self.unexpected("`function_name` or `inlined_at` before this")),
            }
        }
        Ok(Loc {
            file,
            line,
            column,
            function,
            inlined_at,
        })
    }
}
