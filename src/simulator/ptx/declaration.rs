//! Variables, parameters and registers, and their first values.

use super::ast::Init;
use super::ast::Linkage;
use super::ast::Pointer;
use super::ast::Space;
use super::ast::Statement;
use super::ast::SymbolInit;
use super::ast::Type;
use super::ast::Variable;
use super::expression::Value;
use super::lexer::Kind;
use super::parser::Parser;
use crate::base::Result;

/// The space that a directive names.
pub(super) fn space(word: &str) -> Option<Space> {
    Some(match word {
        "reg" => Space::Reg,
        "sreg" => Space::Sreg,
        "const" => Space::Const,
        "global" => Space::Global,
        "local" => Space::Local,
        "param" | "param::entry" | "param::func" => Space::Param,
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "tex" => Space::Tex,
        _ => return None,
    })
}

/// What the names of one declaration have in common: everything before them.
#[derive(Clone)]
struct Head {
    linkage: Linkage,
    space: Space,
    bank: Option<u32>,
    align: Option<u32>,
    ty: Type,
    vector: u32,
    pointer: Option<Pointer>,
    managed: bool,
    unified: Option<(u64, u64)>,
}

impl<'a> Parser<'a> {
    /// `.visible` and so on, if any.
    pub(super) fn linkage(&mut self) -> Result<Linkage> {
        let linkage = match self.dot() {
            Some("visible") => Linkage::Visible,
            Some("extern") => Linkage::Extern,
            Some("weak") => Linkage::Weak,
            Some("common") => Linkage::Common,
            _ => return Ok(Linkage::Internal),
        };
        self.advance()?;
        Ok(linkage)
    }
    /// `.space .type name = value, name;` as variables.
    pub(super) fn variables(
        &mut self,
        linkage: Linkage,
        take: &mut dyn FnMut(Variable<'a>),
    ) -> Result<()> {
        let head = self.head(linkage)?;
        loop {
            let mut variable = self.declarator(&head)?;
            if self.eat(b'=')? {
                variable.init = Some(self.init()?);
            }
            take(variable);
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b';')
    }
    /// `.reg .type name, name<count>;` as statements.
    pub(super) fn registers(&mut self, body: &mut Vec<Statement<'a>>) -> Result<()> {
        let head = self.head(Linkage::Internal)?;
        loop {
            let token = self.token;
            let variable = self.declarator(&head)?;
            if !variable.dims.is_empty() {
                return Err(self.error_at(token, "an array of registers"));
            }
            body.push(Statement::Registers {
                line: variable.line,
                ty: variable.ty,
                vector: variable.vector,
                name: variable.name,
                count: variable.count,
            });
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b';')
    }
    /// `(.param .type name, ...)`, or nothing.
    pub(super) fn parameters(&mut self) -> Result<Vec<Variable<'a>>> {
        let mut parameters = Vec::new();
        if !self.eat(b'(')? || self.eat(b')')? {
            return Ok(parameters);
        }
        loop {
            let head = self.head(Linkage::Internal)?;
            parameters.push(self.declarator(&head)?);
            if self.eat(b')')? {
                return Ok(parameters);
            }
            if !self.eat(b',')? {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }
    /// Space, alignment, attributes and type.
    fn head(&mut self, linkage: Linkage) -> Result<Head> {
        let Some(first) = self.dot().and_then(space) else {
            return Err(self.unexpected("a state space"));
        };
        self.advance()?;
        let mut head = Head {
            linkage,
            space: first,
            bank: None,
            align: None,
            ty: Type::B8,
            vector: 1,
            pointer: None,
            managed: false,
            unified: None,
        };
        if first == Space::Const && self.eat(b'[')? {
            head.bank = Some(self.literal_u32()?);
            self.expect(b']')?;
        }
        let mut typed = false;
        while let Some(word) = self.dot() {
            let token = self.token;
            self.advance()?;
            match (word, &mut head.pointer) {
                ("align", pointer) if !typed || pointer.is_some() => {
                    let token = self.token;
                    let align = self.literal_u32()?;
                    if !align.is_power_of_two() {
                        return Err(
                            self.error_at(token, format!("alignment {align} is no power of two"))
                        );
                    }
                    match pointer {
                        Some(pointer) => pointer.align = align,
                        None => head.align = Some(align),
                    }
                }
                ("attribute", _) => {
                    let (managed, unified) = self.attribute()?;
                    head.managed |= managed;
                    head.unified = unified.or(head.unified);
                }
                ("ptr", pointer @ None) => {
                    *pointer = Some(Pointer {
                        space: None,
                        align: 4,
                    });
                }
                ("v2", _) if !typed => head.vector = 2,
                ("v4", _) if !typed => head.vector = 4,
                ("v8", _) if !typed => head.vector = 8,
                (_, pointer) => match (Type::parse(word), space(word), pointer) {
                    (Some(ty), ..) if !typed => (head.ty, typed) = (ty, true),
                    (None, Some(space), Some(pointer)) => pointer.space = Some(space),
                    _ => {
                        let wanted = if typed { "a name" } else { "a type" };
                        let message = format!("found `.{word}` where {wanted} should stand");
                        return Err(self.error_at(token, message));
                    }
                },
            }
        }
        if !typed {
            return Err(self.unexpected("a type"));
        }
        Ok(head)
    }
    /// `(.managed, .unified(high, low))`
    pub(super) fn attribute(&mut self) -> Result<(bool, Option<(u64, u64)>)> {
        let (mut managed, mut unified) = (false, None);
        self.expect(b'(')?;
        loop {
            if self.eat_dot("managed")? {
                managed = true;
            } else if self.eat_dot("unified")? {
                self.expect(b'(')?;
                let high = self.integer()? as u64;
                self.expect(b',')?;
                let low = self.integer()? as u64;
                self.expect(b')')?;
                unified = Some((high, low));
            } else {
                return Err(self.unexpected("`.managed` or `.unified`"));
            }
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b')')?;
        Ok((managed, unified))
    }
    /// The name, with its range or its dimensions. A parameter of a prototype may have none.
    fn declarator(&mut self, head: &Head) -> Result<Variable<'a>> {
        let line = self.token.line;
        let nameless =
            head.space == Space::Param && matches!(self.token.kind, Kind::Mark(b',' | b')'));
        let name = if nameless { "_" } else { self.name("a name")? };
        let mut count = None;
        if head.space == Space::Reg && self.eat(b'<')? {
            count = Some(self.literal_u32()?);
            self.expect(b'>')?;
        }
        let mut dims = Vec::new();
        while self.eat(b'[')? {
            if self.eat(b']')? {
                dims.push(None);
                continue;
            }
            let token = self.token;
            let size = self.integer()?;
            let size = u64::try_from(size)
                .map_err(|_| self.error_at(token, format!("an array of {size} elements")))?;
            dims.push(Some(size));
            self.expect(b']')?;
        }
        Ok(Variable {
            line,
            linkage: head.linkage,
            space: head.space,
            bank: head.bank,
            align: head.align,
            ty: head.ty,
            vector: head.vector,
            name,
            dims,
            init: None,
            pointer: head.pointer,
            managed: head.managed,
            unified: head.unified,
            count,
        })
    }
    /// The value after `=`.
    fn init(&mut self) -> Result<Init<'a>> {
        match self.token.kind {
            Kind::Mark(b'{') => {
                self.enter()?;
                self.advance()?;
                let list = self.init_list()?;
                self.leave();
                Ok(list)
            }
            Kind::Name if self.word() != "WARP_SZ" => {
                Ok(Init::Symbol(Box::new(self.symbol_init()?)))
            }
            _ => {
                let token = self.token;
                let value = self.expression()?;
                if !self.at(b'(') {
                    return Ok(match value {
                        Value::Signed(v) => Init::Int(v),
                        Value::Unsigned(v) => Init::Int(v as i64),
                        Value::F32(v) => Init::F32(v),
                        Value::F64(v) => Init::F64(v),
                    });
                }
                let mask = match value {
                    Value::Signed(v) => v as u64,
                    Value::Unsigned(v) => v,
                    Value::F32(_) | Value::F64(_) => {
                        return Err(self.error_at(token, "a mask that is no integer"));
                    }
                };
                self.advance()?;
                let mut symbol = self.symbol_init()?;
                self.expect(b')')?;
                symbol.mask = Some(mask);
                Ok(Init::Symbol(Box::new(symbol)))
            }
        }
    }
    /// What stands between braces, and the closing one.
    fn init_list(&mut self) -> Result<Init<'a>> {
        let mut integers = Vec::new();
        let mut list = Vec::new();
        let mut fields = Vec::new();
        if self.eat(b'}')? {
            return Ok(Init::List(list));
        }
        loop {
            let token = self.token;
            let value = self.init()?;
            if self.eat(b'=')? {
                match value {
                    Init::Symbol(symbol) => fields.push((symbol.name, self.init()?)),
                    _ => return Err(self.error_at(token, "a field whose name is no name")),
                }
            } else {
                match value {
                    Init::Int(v) if list.is_empty() => integers.push(v),
                    other => {
                        list.extend(integers.drain(..).map(Init::Int));
                        list.push(other);
                    }
                }
            }
            let values = integers.len() + list.len();
            if !fields.is_empty() && values > 0 {
                return Err(self.error_at(token, "named fields and values in one list"));
            }
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b'}')?;
        Ok(match (fields.is_empty(), integers.is_empty()) {
            (false, _) => Init::Fields(fields),
            (_, false) => Init::Integers(integers),
            _ => Init::List(list),
        })
    }
    /// `name+4`, `generic(name)+4`
    fn symbol_init(&mut self) -> Result<SymbolInit<'a>> {
        let mut name = self.name("the name of a variable or function")?;
        let mut offset = 0i64;
        let generic = name == "generic" && self.eat(b'(')?;
        if generic {
            name = self.name("the name of a variable")?;
            offset = self.offset()?;
            self.expect(b')')?;
        }
        offset = offset.wrapping_add(self.offset()?);
        Ok(SymbolInit {
            name,
            offset,
            generic,
            mask: None,
        })
    }
}
