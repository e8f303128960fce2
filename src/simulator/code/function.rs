//! One function of a module to decoded instructions.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::simulator::code::decode;
use crate::simulator::code::inst::*;
use crate::simulator::code::operand::Meaning;
use crate::simulator::code::operand::Pool;
use crate::simulator::ptx;
use crate::simulator::ptx::Statement;
use crate::simulator::warp::alu;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Row;
use crate::simulator::warp::lanes::Slot;

/// Most registers of one function.
const MOST_REGISTERS: usize = 1 << 20;
/// Most bytes of one function's local memory.
const MOST_FRAME: u64 = 16 << 20;

/// What the whole module knows.
pub struct Globals<'t, 'a> {
    /// Variables and functions by name, as the function at hand sees them.
    pub names: BTreeMap<&'a str, Meaning>,
    /// Functions by number.
    pub signatures: Vec<&'t ptx::Function<'a>>,
    /// The tree, for locations.
    pub tree: &'t ptx::Module<'a>,
    /// Whether wide forms are taken.
    pub wide: bool,
}

/// A range of registers `name<count>`.
pub struct Range {
    /// How many.
    pub count: u32,
    /// Number of the first.
    pub first: u32,
    /// How each is stored.
    pub class: Class,
    /// Elements of each.
    pub vector: u32,
}

/// What a pair of braces declares.
#[derive(Default)]
pub struct Scope<'a, 't> {
    /// Single names.
    pub names: BTreeMap<&'a str, Meaning>,
    /// Ranges by prefix.
    pub ranges: BTreeMap<&'a str, Range>,
    labels: BTreeMap<&'a str, u32>,
    lists: BTreeMap<&'a str, Vec<&'a str>>,
    prototypes: BTreeMap<&'a str, &'t ptx::Function<'a>>,
    /// Branches whose labels are not known yet: instruction, place in its list, label, line.
    open: Vec<(usize, usize, &'a str, u32)>,
}

/// Where the parts of a function's frame are.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Offsets of the results.
    pub returns: Vec<u32>,
    /// Offsets of the parameters.
    pub params: Vec<u32>,
    /// First free byte.
    pub end: u32,
}

/// Bytes of a variable; `None` when it is too large or has an open dimension.
pub fn bytes_of(variable: &ptx::Variable<'_>) -> Option<u64> {
    let mut bytes = u64::from(variable.ty.bytes()) * u64::from(variable.vector.max(1));
    for dim in &variable.dims {
        bytes = bytes.checked_mul((*dim)?)?;
    }
    Some(bytes)
}

/// Alignment of a variable.
pub fn align_of(variable: &ptx::Variable<'_>) -> u32 {
    let natural = variable.ty.bytes().max(1) * variable.vector.max(1);
    variable
        .align
        .unwrap_or(natural)
        .clamp(1, 1024)
        .next_power_of_two()
}

/// Where each parameter of a kernel begins and how many bytes it has. No device takes as much as
/// these are cut to.
pub fn entry_params(function: &ptx::Function<'_>) -> Vec<(u32, u32)> {
    let mut end = 0u32;
    let params = function.params.iter().map(|param| {
        let at = end.next_multiple_of(align_of(param));
        let bytes = bytes_of(param).unwrap_or(0).min(1 << 20) as u32;
        end = (at + bytes).min(1 << 24);
        (at, bytes)
    });
    params.collect()
}

/// Where results and parameters stand in the frame of a function of that signature.
pub fn frame_of(function: &ptx::Function<'_>) -> Frame {
    let mut frame = Frame::default();
    let mut put = |variable: &ptx::Variable<'_>| {
        let align = align_of(variable).max(8);
        let at = frame.end.next_multiple_of(align);
        let bytes = bytes_of(variable).unwrap_or(0).clamp(8, 1 << 20) as u32;
        frame.end = at.saturating_add(bytes).min(MOST_FRAME as u32);
        at
    };
    let returns = function.returns.iter().map(&mut put).collect();
    let params = function.params.iter().map(&mut put).collect();
    frame.returns = returns;
    frame.params = params;
    frame
}

/// How a register of that type is stored.
pub fn class_of(ty: ptx::Type) -> Option<Class> {
    Some(match ty {
        ptx::Type::Pred => Class::Pred,
        ptx::Type::B128 => Class::W128,
        ptx::Type::Texref | ptx::Type::Samplerref | ptx::Type::Surfref => return None,
        _ if ty.bytes() == 8 => Class::W64,
        _ => Class::W32,
    })
}

/// Whether a body takes memory from the stack.
fn allocates(statements: &[Statement<'_>]) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Instr(instr) => instr.opcode == "alloca",
        Statement::Block(inner) => allocates(inner),
        _ => false,
    })
}

/// A function being decoded.
pub struct Builder<'a, 'm> {
    /// The module.
    pub globals: &'m Globals<'m, 'a>,
    /// The constants.
    pub pool: &'m mut Pool,
    /// What names mean, innermost last.
    pub scopes: Vec<Scope<'a, 'm>>,
    /// How each register is stored.
    pub classes: Vec<Class>,
    /// The instructions so far.
    pub code: Vec<Inst>,
    /// First free byte of the frame.
    pub frame: u32,
    /// Functions whose addresses are taken.
    pub indirect_functions: BTreeSet<u32>,
    /// Whether it calls through a register.
    pub calls_indirectly: bool,
    /// Whether it takes memory from the stack.
    pub allocates: bool,
    /// Where the stack ended when the function was called.
    stack: Option<Reg>,
    function: &'m ptx::Function<'a>,
    guard: Slot,
    negated: bool,
    current: Option<&'m ptx::Instr<'a>>,
    carry: Option<Slot>,
}

impl<'a, 'm> Builder<'a, 'm> {
    /// Decodes the body of `function`.
    ///
    /// # Errors
    /// At the first instruction that is not known or whose operands do not fit.
    pub fn build(
        globals: &'m Globals<'m, 'a>,
        pool: &'m mut Pool,
        function: &'m ptx::Function<'a>,
    ) -> Result<Self> {
        let body = function.body.as_deref().unwrap_or(&[]);
        let mut builder = Self {
            globals,
            pool,
            scopes: vec![Scope::default()],
            classes: Vec::new(),
            code: Vec::new(),
            frame: 0,
            indirect_functions: BTreeSet::new(),
            calls_indirectly: false,
            allocates: allocates(body),
            stack: None,
            function,
            guard: Slot::NONE,
            negated: false,
            current: None,
            carry: None,
        };
        builder.parameters()?;
        if builder.allocates && !function.is_entry {
            let reg = Reg {
                slot: builder.temporary(Class::W32),
                class: Class::W32,
            };
            builder.stack = Some(reg);
            builder.emit(Op::Stack(Stack::Save(reg)), Work::Move);
        }
        builder.block(body)?;
        builder.guard = Slot::NONE;
        if function.is_entry {
            builder.emit(Op::Exit, Work::Control);
        } else {
            builder.leave();
        }
        builder.close_scope()?;
        Ok(builder)
    }

    fn parameters(&mut self) -> Result<()> {
        if self.function.is_entry {
            let function = self.function;
            for (param, (at, _)) in function.params.iter().zip(entry_params(function)) {
                self.name(param.name, Meaning::Param(at));
            }
            return Ok(());
        }
        let frame = frame_of(self.function);
        self.frame = frame.end;
        let function = self.function;
        let returns = function.returns.iter().zip(&frame.returns);
        for (param, at) in returns.chain(function.params.iter().zip(&frame.params)) {
            if param.space == ptx::Space::Reg {
                let Some(class) = class_of(param.ty) else {
                    return Err(self.refuse(param.name, "has a type no register can have"));
                };
                let first = self.registers(class, 1, 1)?;
                self.name(
                    param.name,
                    Meaning::Register {
                        first,
                        class,
                        vector: 1,
                    },
                );
            } else {
                self.name(param.name, Meaning::Frame(*at));
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &'a str, meaning: Meaning) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, meaning);
        }
    }

    /// Numbers for new registers.
    fn registers(&mut self, class: Class, vector: u32, count: u32) -> Result<u32> {
        let first = self.classes.len();
        let wanted = (count as usize).saturating_mul(vector as usize);
        if wanted > MOST_REGISTERS - first.min(MOST_REGISTERS) {
            return Err(Diagnostic::error(
                codes::PTX_LIMIT,
                format!("more than {MOST_REGISTERS} registers in a function"),
            )
            .at(self.globals.tree.line(self.function.line)));
        }
        self.classes.resize(first + wanted, class);
        Ok(first as u32)
    }

    /// A register of our own.
    pub fn temporary(&mut self, class: Class) -> Slot {
        self.classes.push(class);
        Slot(self.classes.len() as u32 - 1)
    }

    /// The register that holds the carry.
    pub fn carry(&mut self) -> Slot {
        match self.carry {
            Some(slot) => slot,
            None => {
                let slot = self.temporary(Class::Pred);
                self.carry = Some(slot);
                slot
            }
        }
    }

    fn block(&mut self, statements: &'m [Statement<'a>]) -> Result<()> {
        for statement in statements {
            match statement {
                Statement::Label { name, .. } => {
                    let at = self.code.len() as u32;
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.labels.insert(name, at);
                    }
                }
                Statement::Instr(instr) => self.instruction(instr)?,
                Statement::Block(inner) => {
                    self.scopes.push(Scope::default());
                    self.block(inner)?;
                    self.close_scope()?;
                }
                Statement::Variable(variable) => self.variable(variable)?,
                Statement::Registers {
                    ty,
                    vector,
                    name,
                    count,
                    line,
                } => {
                    let Some(class) = class_of(*ty) else {
                        return Err(self
                            .refuse(name, "has a type no register can have")
                            .or_at(|| self.globals.tree.line(*line)));
                    };
                    let vector = (*vector).max(1);
                    let first = self.registers(class, vector, count.unwrap_or(1))?;
                    match count {
                        None => self.name(
                            name,
                            Meaning::Register {
                                first,
                                class,
                                vector,
                            },
                        ),
                        Some(count) => {
                            let range = Range {
                                count: *count,
                                first,
                                class,
                                vector,
                            };
                            if let Some(scope) = self.scopes.last_mut() {
                                scope.ranges.insert(name, range);
                            }
                        }
                    }
                }
                Statement::Targets { label, names, .. } => {
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.lists.insert(label, names.clone());
                    }
                }
                Statement::Prototype { label, signature } => {
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.prototypes.insert(label, signature);
                    }
                }
                Statement::Loc(_) | Statement::Pragma { .. } => {}
            }
        }
        Ok(())
    }

    fn variable(&mut self, variable: &'m ptx::Variable<'a>) -> Result<()> {
        match variable.space {
            ptx::Space::Local | ptx::Space::Param => {
                let align = u64::from(align_of(variable)).max(8);
                let at = u64::from(self.frame).next_multiple_of(align);
                let end = bytes_of(variable).and_then(|bytes| at.checked_add(bytes.max(8)));
                match end.filter(|end| *end <= MOST_FRAME) {
                    Some(end) => self.frame = end as u32,
                    None => {
                        return Err(self
                            .refuse(variable.name, "takes more local memory than a thread has")
                            .or_at(|| self.globals.tree.line(variable.line)));
                    }
                }
                self.name(variable.name, Meaning::Frame(at as u32));
                Ok(())
            }
            // Module-wide layout has placed these.
            _ if self.globals.names.contains_key(variable.name) => Ok(()),
            _ => Err(self
                .refuse(
                    variable.name,
                    "stands in a space that a function cannot declare",
                )
                .or_at(|| self.globals.tree.line(variable.line))),
        }
    }

    /// Ends a pair of braces: its labels are known, what is still open goes outwards.
    fn close_scope(&mut self) -> Result<()> {
        let Some(mut scope) = self.scopes.pop() else {
            return Ok(());
        };
        for (at, place, label, line) in std::mem::take(&mut scope.open) {
            match scope.labels.get(label) {
                Some(target) => match &mut self.code[at].op {
                    Op::Branch(to) => *to = *target,
                    Op::BranchIndex(_, list) => list[place] = *target,
                    _ => {}
                },
                None => match self.scopes.last_mut() {
                    Some(outer) => outer.open.push((at, place, label, line)),
                    None => {
                        return Err(Diagnostic::error(
                            codes::PTX_NAME,
                            format!("label `{label}` is not defined"),
                        )
                        .at(self.globals.tree.line(line)));
                    }
                },
            }
        }
        Ok(())
    }

    /// Emits the end of a function, which gives back what it took of the stack.
    pub fn leave(&mut self) {
        if let Some(reg) = self.stack {
            self.emit(Op::Stack(Stack::Restore(reg)), Work::Move);
        }
        self.emit(Op::Return, Work::Control);
    }

    /// Emits a branch to a label.
    pub fn branch(&mut self, label: &'a str) {
        let at = self.emit(Op::Branch(0), Work::Control);
        self.open_label(at, 0, label);
    }

    /// Emits a branch by a list of labels.
    pub fn branch_index(&mut self, index: Slot, list: &str) -> Result<()> {
        let found = self.scopes.iter().rev().find_map(|s| s.lists.get(list));
        let Some(names) = found.cloned() else {
            return Err(self.unknown(list));
        };
        let targets = vec![0; names.len()].into_boxed_slice();
        let at = self.emit(Op::BranchIndex(index, targets), Work::Control);
        for (place, name) in names.into_iter().enumerate() {
            self.open_label(at, place, name);
        }
        Ok(())
    }

    fn open_label(&mut self, at: usize, place: usize, label: &'a str) {
        let line = self.line();
        if let Some(scope) = self.scopes.last_mut() {
            scope.open.push((at, place, label, line));
        }
    }

    /// The signature of a `.callprototype`, or of the functions of a `.calltargets`.
    pub fn prototype(&self, label: &str) -> Option<&'m ptx::Function<'a>> {
        for scope in self.scopes.iter().rev() {
            if let Some(signature) = scope.prototypes.get(label) {
                return Some(signature);
            }
            if let Some(names) = scope.lists.get(label) {
                let first = names.first()?;
                return match self.globals.names.get(first)? {
                    Meaning::Function(number) => {
                        self.globals.signatures.get(*number as usize).copied()
                    }
                    _ => None,
                };
            }
        }
        None
    }

    fn instruction(&mut self, instr: &'m ptx::Instr<'a>) -> Result<()> {
        self.current = Some(instr);
        self.guard = Slot::NONE;
        if let Some(guard) = &instr.guard {
            let symbol = ptx::Symbol {
                name: guard.register,
                member: None,
            };
            let reg = self.register(&symbol)?;
            if reg.class != Class::Pred {
                return Err(self.refuse(guard.register, "is not a predicate"));
            }
            self.guard = reg.slot;
            self.negated = guard.negated;
        }
        decode::instruction(self, instr)
            .map_err(|error| error.or_at(|| self.globals.tree.location(instr.opcode)))
    }

    /// The line of the instruction at hand.
    fn line(&self) -> u32 {
        self.current.map_or(self.function.line, |i| i.line)
    }

    /// Appends an instruction under the guard of the text; gives its number.
    pub fn emit(&mut self, op: Op, work: Work) -> usize {
        self.code.push(Inst {
            op,
            guard: self.guard,
            negated: self.negated,
            work,
            flops: 0,
            line: self.line(),
        });
        self.code.len() - 1
    }

    /// Appends an instruction that runs whatever the guard says.
    pub fn emit_free(&mut self, op: Op, work: Work) {
        let at = self.emit(op, work);
        self.code[at].guard = Slot::NONE;
    }

    /// The function of a row that this processor takes.
    pub fn pick(&self, row: Row) -> crate::simulator::warp::lanes::Alu {
        if self.globals.wide {
            row.wide
        } else {
            row.base
        }
    }

    /// Appends a register instruction.
    pub fn alu(&mut self, row: Row, args: Args, work: Work) -> usize {
        let run = self.pick(row);
        self.emit(Op::Alu(run, args), work)
    }

    /// Appends a register instruction by its name, whatever the guard says.
    pub fn alu_free(&mut self, name: &str, args: Args) -> Result<()> {
        let mut words = name.split('.');
        let opcode = words.next().unwrap_or("");
        let words: Vec<&str> = words.collect();
        let Some((row, x)) = alu::find(opcode, &words) else {
            return Err(Diagnostic::internal(
                codes::INTERNAL,
                format!("no row for `{name}`"),
            ));
        };
        let run = self.pick(row);
        let x = if args.x == 0 { x } else { args.x };
        self.emit_free(Op::Alu(run, Args { x, ..args }), Work::Move);
        Ok(())
    }

    /// The whole name of the instruction at hand.
    pub fn spelled(&self) -> String {
        let Some(instr) = self.current else {
            return String::new();
        };
        let mut name = instr.opcode.to_owned();
        for word in &instr.modifiers {
            name.push('.');
            name.push_str(word);
        }
        name
    }

    /// The instruction is not known.
    pub fn unsupported(&self) -> Box<Diagnostic> {
        let name = self.spelled();
        let operands = self.current.map_or(0, |i| i.operands.len());
        Diagnostic::unsupported(
            codes::PTX_UNKNOWN,
            format!("instruction `{name}` with {operands} operands is not known"),
        )
    }

    /// Something about the instruction's operands.
    pub fn bad(&self, what: &str) -> Box<Diagnostic> {
        Diagnostic::error(codes::PTX_NAME, format!("`{}`: {what}", self.spelled()))
    }

    /// Something about a name.
    pub fn refuse(&self, name: &str, what: &str) -> Box<Diagnostic> {
        let error = Diagnostic::error(codes::PTX_NAME, format!("`{name}` {what}"));
        match self.current {
            Some(instr) => error.at(self.globals.tree.location(instr.opcode)),
            None => error,
        }
    }

    /// A name nobody declared.
    pub fn unknown(&self, name: &str) -> Box<Diagnostic> {
        self.refuse(name, "is not declared")
    }
}
