//! Instructions and their operands.

use super::ast::Address;
use super::ast::Base;
use super::ast::Element;
use super::ast::Guard;
use super::ast::Instr;
use super::ast::Lanes;
use super::ast::Member;
use super::ast::Modifiers;
use super::ast::Operand;
use super::ast::Statement;
use super::ast::Symbol;
use super::expression::Value;
use super::lexer::Kind;
use super::parser::Parser;
use crate::base::Result;

impl<'a> Parser<'a> {
    /// `@p` or `@!p`
    pub(super) fn guard(&mut self) -> Result<Guard<'a>> {
        self.expect(b'@')?;
        let negated = self.eat(b'!')?;
        let register = self.name("a predicate")?;
        Ok(Guard { negated, register })
    }
    /// `opcode.modifier operand, operand;`
    pub(super) fn instruction(
        &mut self,
        guard: Option<Guard<'a>>,
        body: &mut Vec<Statement<'a>>,
    ) -> Result<()> {
        let line = self.token.line;
        let opcode = self.name("an instruction")?;
        let mut modifiers = Modifiers::new();
        while let Some(word) = self.dot() {
            modifiers.push(word);
            self.advance()?;
        }
        let start = self.operands.len();
        let call = opcode == "call";
        if !self.at(b';') {
            loop {
                let operand = self.operand(call)?;
                self.operands.push(operand);
                if !self.eat(b',')? {
                    break;
                }
            }
        }
        let operands = self.operands.split_off(start);
        if !self.at(b';') {
            return Err(self.unexpected("`,` or `;`"));
        }
        self.advance()?;
        body.push(Statement::Instr(Instr {
            line,
            guard,
            opcode,
            modifiers,
            operands,
        }));
        Ok(())
    }
    /// One operand. In a call, parentheses hold arguments; elsewhere they hold a constant.
    fn operand(&mut self, call: bool) -> Result<Operand<'a>> {
        let operand = match self.token.kind {
            Kind::Name => self.named()?,
            Kind::Mark(b'{') => {
                self.advance()?;
                Operand::Vector(self.operands_until(b'}')?)
            }
            Kind::Mark(b'[') => return self.address(),
            Kind::Mark(b'(') if call => {
                self.advance()?;
                return Ok(Operand::List(self.operands_until(b')')?));
            }
            Kind::Mark(mark @ (b'!' | b'-')) => {
                let mut ahead = self.lexer;
                let next = ahead.next()?;
                if next.kind != Kind::Name || ahead.slice(next) == "WARP_SZ" {
                    return self.constant();
                }
                self.advance()?;
                let symbol = self.symbol()?;
                return Ok(if mark == b'!' {
                    Operand::Not(symbol)
                } else {
                    Operand::Negated(symbol)
                });
            }
            _ => return self.constant(),
        };
        if self.at(b'|')
            && matches!(
                operand,
                Operand::Name(_) | Operand::Sink | Operand::Vector(_)
            )
        {
            self.advance()?;
            let second = if self.token.kind == Kind::Name && self.word() == "_" {
                self.advance()?;
                Operand::Sink
            } else {
                Operand::Name(self.symbol()?)
            };
            return Ok(Operand::Pair(Box::new((operand, second))));
        }
        Ok(operand)
    }
    /// Operands with commas between them, and the mark that closes the list.
    fn operands_until(&mut self, close: u8) -> Result<Vec<Operand<'a>>> {
        self.enter()?;
        let start = self.operands.len();
        if !self.at(close) {
            loop {
                let operand = self.operand(false)?;
                self.operands.push(operand);
                if !self.eat(b',')? {
                    break;
                }
            }
        }
        self.expect(close)?;
        self.leave();
        Ok(self.operands.split_off(start))
    }
    /// What starts with a name.
    fn named(&mut self) -> Result<Operand<'a>> {
        match self.word() {
            "_" => {
                self.advance()?;
                return Ok(Operand::Sink);
            }
            "WARP_SZ" => return self.constant(),
            _ => {}
        }
        let symbol = self.symbol()?;
        Ok(match self.token.kind {
            Kind::Mark(b'+') if symbol.member.is_none() => Operand::Sum(symbol, self.offset()?),
            Kind::Mark(b'[') if symbol.member.is_none() => {
                self.advance()?;
                let (mut register, mut index) = (None, 0);
                if self.token.kind == Kind::Name && self.word() != "WARP_SZ" {
                    register = Some(self.symbol()?);
                    index = self.offset()?;
                } else {
                    index = self.integer()?.wrapping_add(index);
                }
                self.expect(b']')?;
                Operand::Element(Box::new(Element {
                    array: symbol.name,
                    register,
                    index,
                }))
            }
            _ => Operand::Name(symbol),
        })
    }
    /// A name with an optional part.
    fn symbol(&mut self) -> Result<Symbol<'a>> {
        let name = self.name("a name")?;
        let member = match self.dot() {
            None => None,
            Some(word) => {
                let Some(member) = member(word) else {
                    return Err(self.unexpected("a part of a register such as `.x`"));
                };
                self.advance()?;
                Some(member)
            }
        };
        Ok(Symbol { name, member })
    }
    /// `[base+offset, extra, ...]`
    fn address(&mut self) -> Result<Operand<'a>> {
        self.advance()?;
        let (base, offset) = if self.token.kind == Kind::Name && self.word() != "WARP_SZ" {
            let symbol = self.symbol()?;
            (Base::Name(symbol), self.offset()?)
        } else {
            (Base::Int(self.integer()?), 0)
        };
        let extra = if self.eat(b',')? {
            self.operands_until(b']')?
        } else {
            self.expect(b']')?;
            Vec::new()
        };
        let unified = self.eat_dot("unified")?;
        Ok(Operand::Address(Address {
            base,
            offset,
            extra,
            unified,
        }))
    }
    fn constant(&mut self) -> Result<Operand<'a>> {
        if !matches!(
            self.token.kind,
            Kind::Number | Kind::Name | Kind::Mark(_) | Kind::Dot
        ) {
            return Err(self.unexpected("an operand"));
        }
        if matches!(
            self.token.kind,
            Kind::Mark(b',' | b';' | b'}' | b']' | b')' | b':' | b'@')
        ) {
            return Err(self.unexpected("an operand"));
        }
        Ok(match self.expression()? {
            Value::Signed(v) => Operand::Int(v),
            Value::Unsigned(v) => Operand::Int(v as i64),
            Value::F32(v) => Operand::F32(v),
            Value::F64(v) => Operand::F64(v),
        })
    }
}

/// The part of a register that a word names.
fn member(word: &str) -> Option<Member> {
    Some(match word {
        "x" | "r" => Member::X,
        "y" | "g" => Member::Y,
        "z" | "b" => Member::Z,
        "w" | "a" => Member::W,
        _ => {
            let bytes = word.as_bytes();
            let (kind, text) = bytes.split_first()?;
            let (most, limit) = match kind {
                b'b' => (4, b'7'),
                b'h' => (2, b'3'),
                _ => return None,
            };
            let fits =
                (1..=most).contains(&text.len()) && text.iter().all(|d| (b'0'..=limit).contains(d));
            if !fits {
                return None;
            }
            let mut digits = [0; 4];
            for (digit, byte) in digits.iter_mut().zip(text) {
                *digit = byte - b'0';
            }
            let lanes = Lanes {
                count: text.len() as u8,
                digits,
            };
            if *kind == b'b' {
                Member::Bytes(lanes)
            } else {
                Member::Halves(lanes)
            }
        }
    })
}
