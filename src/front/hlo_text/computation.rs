//! Computations and the instructions in them.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::base::text::MAX_NESTING;
use crate::front::hlo_text::MAX_INFERRED_PARTS;
use crate::front::hlo_text::Reader;
use crate::front::hlo_text::attributes::Attributes;
use crate::hlo::CompId;
use crate::hlo::Computation;
use crate::hlo::Extra;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::infer::infer;
use crate::shape::Shape;
use crate::shape::text as shape_text;

/// A computation while it is read. Ids count from its first instruction until it is closed.
#[derive(Default)]
pub(super) struct Scope<'a> {
    instrs: Vec<Instr>,
    names: BTreeMap<&'a str, InstrId>,
    root: Option<InstrId>,
    /// Control predecessors by instruction: names and their places.
    control: Vec<(InstrId, Vec<(&'a str, usize)>)>,
    anonymous: usize,
}

impl<'a> Scope<'a> {
    fn next_id(&self) -> InstrId {
        InstrId::from_index(self.instrs.len())
    }
    fn shape(&self, id: InstrId) -> &Shape {
        &self.instrs[id.index()].shape
    }
}

/// One instruction as it stands, before its name is settled.
struct Parsed<'a> {
    op: Op,
    shape: Shape,
    operands: SmallVec<[InstrId; 2]>,
    extra: Option<Box<Extra>>,
    control: Vec<(&'a str, usize)>,
}

impl<'a> Reader<'a> {
    /// `ENTRY? name signature? { instructions } (, execution_thread="x")?`
    pub(super) fn computation(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let is_entry = self.eat_word("ENTRY");
        if is_entry && self.entry.is_some() {
            return Err(self.cursor.error_at(start, "a second `ENTRY` computation"));
        }
        let (name, place) = self.name("a computation")?;
        let signature = if self.cursor.peek() == b'(' {
            Some(self.signature()?)
        } else {
            None
        };
        let comp = self.body()?;
        if let Some((shape, place)) = signature {
            let actual = &self.module.root(comp).shape;
            if !shape.same_ignoring_layout(actual) {
                let message = format!("result `{shape}`, but the root gives `{actual}`");
                return Err(self.cursor.error_at(place, message));
            }
        }
        self.module.comps[comp].name = name.to_owned();
        if self.names.insert(name, comp).is_some() {
            let message = format!("a second computation `{name}`");
            return Err(self.cursor.diagnostic(codes::TEXT_NAME, place, message));
        }
        while self.cursor.eat(",") {
            if !self.eat_word("execution_thread") {
                return Err(self.cursor.unexpected("`execution_thread`"));
            }
            self.cursor.expect("=")?;
            let thread = self.cursor.utf8_string()?;
            if thread != "main" {
                self.module.comps[comp].execution_thread = thread;
            }
        }
        if is_entry {
            self.entry = Some(comp);
        }
        Ok(())
    }

    /// `(x: f32[], y: s32[]) -> f32[]`; gives the result and its place.
    fn signature(&mut self) -> Result<(Shape, usize)> {
        self.cursor.expect("(")?;
        let mut first = true;
        while !self.cursor.eat(")") {
            if !first {
                self.cursor.expect(",")?;
            }
            first = false;
            self.name("a parameter")?;
            self.cursor.expect(":")?;
            shape_text::parse(&mut self.cursor)?;
        }
        self.cursor.expect("->")?;
        self.cursor.skip_space();
        let place = self.cursor.pos();
        Ok((shape_text::parse(&mut self.cursor)?, place))
    }

    /// `{ instructions }`, as a computation without a name yet.
    pub(super) fn body(&mut self) -> Result<CompId> {
        self.enter()?;
        self.cursor.skip_space();
        let start = self.cursor.pos();
        self.cursor.expect("{")?;
        let mut scope = Scope::default();
        while !self.cursor.eat("}") {
            self.instruction(&mut scope)?;
        }
        self.depth -= 1;
        self.close(scope, start)
    }

    /// Moves a finished computation into the module.
    pub(super) fn close(&mut self, scope: Scope<'a>, start: usize) -> Result<CompId> {
        let base = self.module.instrs.len();
        let moved = |id: InstrId| InstrId::from_index(base + id.index());
        let Some(last) = scope.instrs.len().checked_sub(1) else {
            return Err(self
                .cursor
                .error_at(start, "a computation without instructions"));
        };
        let comp = CompId::from_index(self.module.comps.len());
        let mut control: BTreeMap<InstrId, SmallVec<[InstrId; 0]>> = BTreeMap::new();
        for (id, names) in scope.control {
            for (name, place) in names {
                let Some(&before) = scope.names.get(name) else {
                    return Err(self.undefined(name, place));
                };
                control.entry(id).or_default().push(moved(before));
            }
        }
        let mut params: BTreeMap<usize, InstrId> = BTreeMap::new();
        for (i, mut instr) in scope.instrs.into_iter().enumerate() {
            let id = InstrId::from_index(i);
            if let Op::Parameter { number, .. } = instr.op
                && params.insert(number, moved(id)).is_some()
            {
                let message = format!("a computation with two parameters {number}");
                return Err(self.cursor.error_at(start, message));
            }
            instr.parent = comp;
            instr.operands.iter_mut().for_each(|o| *o = moved(*o));
            instr.control_predecessors = control.remove(&id).unwrap_or_default();
            self.module.instrs.push(instr);
        }
        if let Some(missing) = params.keys().enumerate().position(|(i, n)| i != *n) {
            let message = format!("a computation without parameter {missing}");
            return Err(self.cursor.error_at(start, message));
        }
        let ids = 0..=last;
        Ok(self.module.comps.push(Computation {
            name: String::new(),
            instrs: ids.map(|i| InstrId::from_index(base + i)).collect(),
            params: params.into_values().collect(),
            root: moved(scope.root.unwrap_or(InstrId::from_index(last))),
            execution_thread: String::new(),
        }))
    }

    fn undefined(&self, name: &str, place: usize) -> Box<Diagnostic> {
        let message = format!("no instruction `{name}` is defined here");
        self.cursor.diagnostic(codes::TEXT_NAME, place, message)
    }

    /// `ROOT? name = shape opcode(operands), attributes`
    fn instruction(&mut self, scope: &mut Scope<'a>) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let is_root = self.eat_word("ROOT");
        if is_root && scope.root.is_some() {
            return Err(self
                .cursor
                .error_at(start, "a second `ROOT` in a computation"));
        }
        let (name, place) = self.name("an instruction or `}`")?;
        self.cursor.expect("=")?;
        let parsed = self.right_side(scope, true)?;
        let id = add(scope, name.to_owned(), parsed);
        if scope.names.insert(name, id).is_some() {
            let message = format!("a second instruction `{name}`");
            return Err(self.cursor.diagnostic(codes::TEXT_NAME, place, message));
        }
        if is_root {
            scope.root = Some(id);
        }
        Ok(())
    }

    /// `shape? opcode(operands)`, and attributes where they can stand.
    fn right_side(&mut self, scope: &mut Scope<'a>, attributes: bool) -> Result<Parsed<'a>> {
        self.enter()?;
        let declared = if shape_text::starts_shape(&mut self.cursor) {
            Some(shape_text::parse(&mut self.cursor)?)
        } else {
            None
        };
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let Some(opcode) = self.cursor.word() else {
            return Err(self.cursor.unexpected("an opcode"));
        };
        let mut parsed = Parsed {
            op: Op::Tuple,
            shape: Shape::Token,
            operands: SmallVec::new(),
            extra: None,
            control: Vec::new(),
        };
        let mut leaf = None;
        match opcode {
            "parameter" | "constant" => leaf = Some(self.leaf(opcode, start, declared.as_ref())?),
            _ => parsed.operands = self.operands(scope)?,
        }
        let mut list = Attributes::new(opcode, start);
        while attributes && self.cursor.eat(",") {
            self.attribute(&mut list)?;
        }
        parsed.control = list.take_names("control-predecessors").unwrap_or_default();
        parsed.extra = list.take_extra();
        let shapes: SmallVec<[&Shape; 4]> =
            parsed.operands.iter().map(|o| scope.shape(*o)).collect();
        parsed.op = match leaf {
            Some(mut op) => {
                if let Op::Parameter {
                    leaf_replication, ..
                } = &mut op
                {
                    *leaf_replication =
                        list.take_bools("parameter_replication").unwrap_or_default();
                }
                op
            }
            None => self.operation(
                &mut list,
                &shapes,
                declared.as_ref(),
                parsed.extra.as_deref(),
            )?,
        };
        list.finish(&self.cursor)?;
        parsed.shape = match declared {
            Some(shape) => shape,
            None => self.inferred(&parsed.op, &shapes, start)?,
        };
        self.depth -= 1;
        Ok(parsed)
    }

    /// What `parameter(0)` and `constant({1, 2})` hold instead of operands.
    fn leaf(&mut self, opcode: &str, start: usize, declared: Option<&Shape>) -> Result<Op> {
        self.cursor.expect("(")?;
        let op = match declared {
            _ if opcode == "parameter" => Op::Parameter {
                number: self.cursor.size()?,
                leaf_replication: Vec::new(),
            },
            Some(shape) => Op::Constant(crate::literal::text::parse(&mut self.cursor, shape)?),
            None => {
                let message = format!("`{opcode}` without a shape before it");
                return Err(self.cursor.error_at(start, message));
            }
        };
        self.cursor.expect(")")?;
        Ok(op)
    }

    /// The shape of an instruction whose text has none. A line may double the tuple of the line
    /// before, so what such shapes take together is bounded, and how deep they nest.
    fn inferred(&mut self, op: &Op, operands: &[&Shape], start: usize) -> Result<Shape> {
        let at = |error: Box<Diagnostic>| {
            error.or_at(|| self.cursor.location(start, start + op.opcode().len()))
        };
        let mut left = self.inferred_parts;
        for shape in operands {
            take_parts(shape, 0, &mut left).map_err(at)?;
        }
        let shape = infer(&self.module, op, operands, None).map_err(at)?;
        let mut left = self.inferred_parts;
        take_parts(&shape, 0, &mut left).map_err(at)?;
        self.inferred_parts = left;
        Ok(shape.with_default_layout())
    }

    /// `(shape? name, ...)`; an operand may also be an instruction without attributes.
    fn operands(&mut self, scope: &mut Scope<'a>) -> Result<SmallVec<[InstrId; 2]>> {
        let mut operands = SmallVec::new();
        self.cursor.expect("(")?;
        if self.cursor.eat(")") {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand(scope)?);
            if self.cursor.eat(")") {
                return Ok(operands);
            }
            if !self.cursor.eat(",") {
                return Err(self.cursor.unexpected("`,` or `)`"));
            }
        }
    }

    fn operand(&mut self, scope: &mut Scope<'a>) -> Result<InstrId> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let declared = if shape_text::starts_shape(&mut self.cursor) {
            Some(shape_text::parse(&mut self.cursor)?)
        } else {
            None
        };
        let (name, place) = self.name("an operand")?;
        if self.cursor.peek() == b'(' {
            self.cursor.set_pos(start);
            let parsed = self.right_side(scope, false)?;
            scope.anonymous += 1;
            let name = format!("{}.anon.{}", parsed.op.opcode(), scope.anonymous);
            return Ok(add(scope, name, parsed));
        }
        let Some(&id) = scope.names.get(name) else {
            return Err(self.undefined(name, place));
        };
        let actual = scope.shape(id);
        match declared {
            Some(shape) if !shape.same_ignoring_layout(actual) => {
                let message = format!("operand `{name}` as `{shape}`, but it is `{actual}`");
                Err(self.cursor.error_at(start, message))
            }
            _ => Ok(id),
        }
    }

    /// The computation that an instruction `opcode-start` wraps: one op on its own parameters.
    pub(super) fn wrapped(
        &mut self,
        op: Op,
        operands: &[&Shape],
        shape: &Shape,
        extra: Option<&Extra>,
    ) -> Result<CompId> {
        let mut scope = Scope::default();
        let mut parsed = Parsed {
            op,
            shape: shape.clone(),
            operands: SmallVec::new(),
            extra: extra.cloned().map(Box::new),
            control: Vec::new(),
        };
        for (number, operand) in operands.iter().enumerate() {
            let parameter = Parsed {
                op: Op::Parameter {
                    number,
                    leaf_replication: Vec::new(),
                },
                shape: Shape::clone(operand),
                operands: SmallVec::new(),
                extra: None,
                control: Vec::new(),
            };
            parsed
                .operands
                .push(add(&mut scope, format!("param_{number}"), parameter));
        }
        add(&mut scope, "async_op".to_owned(), parsed);
        let comp = self.close(scope, self.cursor.pos())?;
        self.unnamed.push((comp, "async_wrapped"));
        Ok(comp)
    }
}

/// Takes one from `left` for each part of a shape.
fn take_parts(shape: &Shape, depth: usize, left: &mut usize) -> Result<()> {
    if *left == 0 || depth > MAX_NESTING {
        let message = format!(
            "tuples without shapes in the text that nest deeper than {MAX_NESTING} levels or have \
             more than {MAX_INFERRED_PARTS} parts together"
        );
        return Err(Diagnostic::error(codes::INPUT_LIMIT, message));
    }
    *left -= 1;
    let mut elements = shape.as_tuple().unwrap_or_default().iter();
    elements.try_for_each(|element| take_parts(element, depth + 1, left))
}

fn add<'a>(scope: &mut Scope<'a>, name: String, parsed: Parsed<'a>) -> InstrId {
    let id = scope.next_id();
    if !parsed.control.is_empty() {
        scope.control.push((id, parsed.control));
    }
    scope.instrs.push(Instr {
        name,
        op: parsed.op,
        operands: parsed.operands,
        shape: parsed.shape,
        control_predecessors: SmallVec::new(),
        parent: CompId::from_index(0),
        extra: parsed.extra,
    });
    id
}
