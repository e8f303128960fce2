//! The program: ops, regions and blocks.
//!
//! Regions are read with a stack of our own. What a file announces (values, blocks, regions) counts
//! against the file's size, since each of them takes a byte or more, so memory is bounded by it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::mlir::MAX_REGIONS;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::bytecode::container;
use crate::mlir::bytecode::container::Container;
use crate::mlir::bytecode::cursor::Cursor;
use crate::mlir::bytecode::cursor::error_at;
use crate::mlir::bytecode::ops;
use crate::mlir::bytecode::scope::Scope;
use crate::mlir::bytecode::table::Table;
use crate::mlir::bytecode::upgrade;
use crate::mlir::bytecode::vhlo_ops;
use crate::mlir::bytecode::vhlo_ops::VhloOp;
use crate::mlir::dialect;
use crate::mlir::location::Loc;
use crate::mlir::module::BlockId;
use crate::mlir::module::Module;
use crate::mlir::module::Op;
use crate::mlir::module::OpId;
use crate::mlir::module::RegionId;
use crate::mlir::module::Value;
use crate::mlir::module::ValueDef;
use crate::mlir::module::ValueId;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

/// How many attributes ops may have for each byte of a file, since they may share them.
const ATTRS: usize = 4;
/// How many parts the attributes of ops may have, when they are written out, for each byte; and the
/// types of the values that ops define, and of those that they use.
const PARTS: u64 = 64;
/// How many parts the attributes of ops, or the types of values, may have beyond those.
const SHARED_PARTS: u64 = 1 << 24;

/// Bits of the byte that says what an op has.
mod mask {
    pub(super) const ATTRS: u8 = 1;
    pub(super) const RESULTS: u8 = 1 << 1;
    pub(super) const OPERANDS: u8 = 1 << 2;
    pub(super) const SUCCESSORS: u8 = 1 << 3;
    pub(super) const REGIONS: u8 = 1 << 4;
    pub(super) const USE_ORDERS: u8 = 1 << 5;
    pub(super) const PROPERTIES: u8 = 1 << 6;
}

/// Reads MLIR bytecode: a StableHLO portable artifact, or a module of the StableHLO dialect itself.
///
/// # Errors
/// `PROTO_DECODE` where the bytes are broken, `INPUT_LIMIT` where they nest too deep, `UNKNOWN_WORD`
/// for ops, attributes and types that are not known, with the name of who wrote the file.
pub fn read(file: &[u8]) -> Result<Module> {
    let container = Container::new(file)?;
    let table = Table::new(&container);
    let cursor = container.ir;
    let mut reader = Reader {
        container: &container,
        table,
        module: Module::new(),
        names: vec![None; container.ops.len()],
        maps: BTreeMap::new(),
        budget: container.size(),
        attrs_left: (
            ATTRS * (container.size() + 1024),
            SHARED_PARTS + PARTS * container.size() as u64,
        ),
        cursors: vec![cursor],
        frames: Vec::new(),
        scopes: vec![Scope::default()],
        weights: Vec::new(),
        symbols: Vec::new(),
    };
    reader.top()?;
    while !reader.frames.is_empty() {
        reader.step()?;
    }
    reader.check_types()?;
    for (id, op) in reader.module.ops.iter() {
        if op.name == dialect::MODULE
            && let Some(fault) = reader.module.shape_fault(id)
        {
            return Err(error_at(op.place as usize, fault));
        }
    }
    Ok(reader.module)
}

/// What is known of the name of an op.
#[derive(Clone, Debug)]
struct KnownOp {
    /// The name in StableHLO.
    name: Name,
    /// The op of VHLO that it stands for, and the names of its attributes.
    vhlo: Option<(&'static VhloOp, Vec<Name>)>,
    /// Whether it ends a region of VHLO, which has two names in StableHLO.
    ends: bool,
}

/// An op whose regions are being read.
struct Frame {
    op: OpId,
    regions: Vec<RegionId>,
    /// Which region is next, when no block of one is being read.
    region: usize,
    blocks: Vec<BlockId>,
    /// Which of the blocks is being read.
    block: usize,
    /// How many ops are left in it.
    ops: u64,
    /// The number of values that the region's blocks and ops define.
    values: usize,
    /// Whether a region is open.
    open: bool,
    isolated: bool,
    /// Whether the regions are a section of their own.
    section: bool,
    /// Whether values from around the op may not be used inside it, and symbols in it are its own.
    is_apart: bool,
    function: bool,
}

struct Reader<'a, 'c> {
    container: &'c Container<'a>,
    table: Table<'c>,
    module: Module,
    names: Vec<Option<Rc<KnownOp>>>,
    /// The attributes of an op by its name, its dictionary and its properties.
    maps: BTreeMap<(usize, u64, u64), (AttrMap, u64)>,
    budget: usize,
    /// How many attributes ops may still have, and how many parts those may have.
    attrs_left: (usize, u64),
    cursors: Vec<Cursor<'a>>,
    frames: Vec<Frame>,
    scopes: Vec<Scope>,
    /// For each value, how many parts its type has when it is written out.
    weights: Vec<u64>,
    /// Symbols of each op around the current place that has its own.
    symbols: Vec<BTreeSet<Arc<[u8]>>>,
}

impl<'a, 'c> Reader<'a, 'c>
where
    'a: 'c,
{
    fn cursor(&mut self) -> &mut Cursor<'a> {
        let last = self.cursors.len() - 1;
        &mut self.cursors[last]
    }
    /// Counts things that were announced against the size of the file.
    fn spend(&mut self, count: u64, what: &str) -> Result<usize> {
        let left = self.budget;
        match usize::try_from(count) {
            Ok(count) if count <= left => {
                self.budget -= count;
                Ok(count)
            }
            _ => Err(self.cursor().error(format!(
                "{count} {what} are announced, more than the file can hold"
            ))),
        }
    }
    /// The outermost block, which has one op, the module.
    fn top(&mut self) -> Result<()> {
        let at = self.cursor().offset();
        let (count, has_args) = self.cursor().flagged("the outermost block")?;
        if count != 1 || has_args {
            return Err(error_at(
                at,
                format!("the outermost block has {count} ops where one module should be"),
            ));
        }
        self.op(None)
    }

    /// Reads on in the innermost op with regions, up to the next op with regions.
    fn step(&mut self) -> Result<()> {
        let depth = self.frames.len() - 1;
        loop {
            if !self.frames[depth].open && !self.open_region(depth)? {
                return Ok(());
            }
            while self.frames[depth].ops > 0 {
                self.frames[depth].ops -= 1;
                let frame = &self.frames[depth];
                let block = frame.blocks[frame.block];
                self.op(Some(block))?;
                if self.frames.len() > depth + 1 {
                    return Ok(());
                }
            }
            let frame = &mut self.frames[depth];
            frame.block += 1;
            if frame.block < frame.blocks.len() {
                self.block_head(depth)?;
            } else {
                self.close_region(depth);
            }
        }
    }
    /// Begins the next region that is not empty; says whether there is one.
    fn open_region(&mut self, depth: usize) -> Result<bool> {
        loop {
            let index = self.frames[depth].region;
            let Some(&region) = self.frames[depth].regions.get(index) else {
                self.close_frame()?;
                return Ok(false);
            };
            self.frames[depth].region += 1;
            let blocks = self.cursor().varint("the number of blocks of a region")?;
            if blocks == 0 {
                continue;
            }
            let blocks = self.spend(blocks, "blocks")?;
            let values = self.cursor().varint("the number of values of a region")?;
            let values = self.spend(values, "values")?;
            // The module's own region has a block from the start.
            let mut made = self.module.regions[region].blocks.clone();
            made.resize_with(blocks, || self.module.new_block(region));
            self.scope().open(values);
            let frame = &mut self.frames[depth];
            frame.blocks = made;
            frame.block = 0;
            frame.values = values;
            frame.open = true;
            self.block_head(depth)?;
            return Ok(true);
        }
    }
    fn scope(&mut self) -> &mut Scope {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }
    fn close_region(&mut self, depth: usize) {
        let frame = &mut self.frames[depth];
        frame.open = false;
        let values = frame.values;
        self.scope().close(values);
    }
    fn close_frame(&mut self) -> Result<()> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        if frame.isolated {
            self.scopes.pop();
        }
        if frame.is_apart {
            self.symbols.pop();
        }
        let last = self.scopes.len() - 1;
        self.scopes[last].show_last(&self.module.ops[frame.op].results);
        if frame.section {
            let cursor = *self.cursor();
            self.cursors.pop();
            return cursor.finish("the regions of an op");
        }
        Ok(())
    }
    /// The number of ops of a block, and its arguments.
    fn block_head(&mut self, depth: usize) -> Result<()> {
        let (ops, has_args) = self.cursor().flagged("the number of ops of a block")?;
        let frame = &mut self.frames[depth];
        frame.ops = ops;
        let block = frame.blocks[frame.block];
        if !has_args {
            return Ok(());
        }
        let count = self.cursor().count("arguments of a block")?;
        let first = self.define(count)?;
        for index in 0..count {
            let (ty, loc) = self.block_arg()?;
            let def = ValueDef::Arg { block, index };
            let value = self.value(first + index, ty, def);
            let block = &mut self.module.blocks[block];
            block.args.push(value);
            block.arg_locs.push(loc);
        }
        if self.container.version >= container::USE_ORDERS
            && self.cursor().byte("whether uses have an order")? != 0
        {
            self.use_orders(count)?;
        }
        Ok(())
    }
    fn block_arg(&mut self) -> Result<((Type, u64), Loc)> {
        let last = self.cursors.len() - 1;
        let cursor = &mut self.cursors[last];
        if self.container.version < container::ELIDED_LOCATIONS {
            let ty = self.table.ty(cursor, "the type of an argument")?;
            return Ok((ty, self.table.loc(cursor)?));
        }
        let at = *cursor;
        let (index, has_loc) = cursor.flagged("the type of an argument")?;
        let ty = self.table.type_at(&at, index)?;
        let loc = match has_loc {
            true => self.table.loc(cursor)?,
            false => self.table.unknown(),
        };
        Ok((ty, loc))
    }
    /// Takes the next `count` places for values of the innermost region; gives the first.
    fn define(&mut self, count: usize) -> Result<usize> {
        self.scope().take(count).ok_or_else(|| {
            self.cursor()
                .error("a region defines more values than it announced")
        })
    }
    /// The value at a place, now that it is defined; its type comes with the number of its parts.
    fn value(&mut self, place: usize, (ty, weight): (Type, u64), def: ValueDef) -> ValueId {
        self.weights.push(weight);
        let value = self.module.values.push(Value { ty, def });
        self.scope().define(place, &[value]);
        value
    }
    /// Types are shared: what they are when each value and each use of one spells its type out is
    /// bounded by the file.
    fn check_types(&self) -> Result<()> {
        // Values and their uses take a byte or more each.
        if self.weights.iter().all(|weight| *weight <= PARTS) {
            return Ok(());
        }
        let of = |value: &ValueId| self.weights[value.index()];
        let operands = self.module.ops.values().flat_map(|op| &op.operands);
        let weights = self.weights.iter().copied().chain(operands.map(of));
        let parts = weights.fold(0_u64, u64::saturating_add);
        if parts <= SHARED_PARTS + 2 * PARTS * self.container.size() as u64 {
            return Ok(());
        }
        let message = "values of large types are used so often that the module would be too large";
        Err(Diagnostic::error(codes::INPUT_LIMIT, message))
    }
    /// Orders of uses are of no use here; they are passed over.
    fn use_orders(&mut self, values: usize) -> Result<()> {
        let cursor = self.cursor();
        let lists = match values {
            0 | 1 => 1,
            _ => cursor.count("orders of uses")?,
        };
        for _ in 0..lists {
            if values > 1 {
                cursor.varint("which value's uses have an order")?;
            }
            let at = *cursor;
            let (count, _) = cursor.flagged("the length of an order of uses")?;
            for _ in 0..at.fits(count, "an order of uses")? {
                cursor.varint("an order of uses")?;
            }
        }
        Ok(())
    }
    fn operand(&mut self) -> Result<ValueId> {
        let at = *self.cursor();
        let index = self.cursor().varint("an operand")?;
        let count = self.scope().len();
        match self.scope().get(index) {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(at.error(format!("operand {index} is used before it is defined"))),
            None => Err(at.error(format!(
                "operand {index} is used where {count} values are known"
            ))),
        }
    }

    /// An op: at the end of a block, or, without one, the module itself.
    fn op(&mut self, block: Option<BlockId>) -> Result<()> {
        let place = self.cursor().offset();
        let (index, known) = self.op_name()?;
        let mask = self.cursor().byte("what an op has")?;
        let last = self.cursors.len() - 1;
        let loc = self.table.loc(&mut self.cursors[last])?;
        let attrs = self.attrs(index, &known, mask, place)?;
        let name = self.name_within(&known, block);
        let types = match mask & mask::RESULTS {
            0 => Vec::new(),
            _ => self.result_types()?,
        };
        let operands = match mask & mask::OPERANDS {
            0 => Vec::new(),
            _ => {
                let count = self.cursor().count("operands")?;
                let operands = (0..count).map(|_| self.operand());
                operands.collect::<Result<Vec<ValueId>>>()?
            }
        };
        let successors = match mask & mask::SUCCESSORS {
            0 => Vec::new(),
            _ => self.successors()?,
        };
        if self.container.version >= container::USE_ORDERS && mask & mask::USE_ORDERS != 0 {
            self.use_orders(types.len())?;
        }
        let (regions, isolated) = match mask & mask::REGIONS {
            0 => (0, false),
            _ => {
                let (count, isolated) = self.cursor().flagged("the number of regions")?;
                (self.spend(count, "regions")?, isolated)
            }
        };
        if name == "builtin.unrealized_conversion_cast"
            && block.is_some()
            && self.is_identity(&operands, &types)
        {
            return self.alias(&operands);
        }
        let op = match block {
            Some(block) => {
                let regions = (0..regions).map(|_| self.module.new_region()).collect();
                let op = Op {
                    name,
                    operands,
                    results: Vec::new(),
                    attrs,
                    regions,
                    successors,
                    loc,
                    place: u32::try_from(place).unwrap_or(u32::MAX),
                    parent: Some(block),
                };
                self.push(block, op, types)?
            }
            None => {
                if name != dialect::MODULE || regions != 1 || !types.is_empty() {
                    return Err(error_at(
                        place,
                        format!("the outermost op is `{name}`, not a `{}`", dialect::MODULE),
                    ));
                }
                let root = self.module.root;
                let op = &mut self.module.ops[root];
                (op.attrs, op.loc) = (attrs, loc);
                root
            }
        };
        self.note_symbol(op, place)?;
        if regions > 0 {
            let results = self.module.ops[op].results.len();
            self.scope().hide_last(results);
            self.enter(op, isolated, place)?;
        }
        Ok(())
    }
    /// Refuses a second symbol of one name.
    fn note_symbol(&mut self, op: OpId, place: usize) -> Result<()> {
        let Some(Attr::String(name)) = self.module.ops[op].attrs.get("sym_name") else {
            return Ok(());
        };
        let name = Arc::clone(name);
        let table = self.symbols.last_mut();
        if table.is_none_or(|table| table.insert(Arc::clone(&name))) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&name);
        Err(error_at(
            place,
            format!("symbol `@{name}` is defined twice"),
        ))
    }
    /// Puts an op at the end of a block, and defines its results.
    fn push(&mut self, block: BlockId, op: Op, types: Vec<(Type, u64)>) -> Result<OpId> {
        if let Some(fault) = self.module.end_fault(block) {
            return Err(error_at(op.place as usize, fault));
        }
        let regions = op.regions.clone();
        let id = self.module.ops.push(op);
        for region in regions {
            self.module.regions[region].parent = Some(id);
        }
        self.module.blocks[block].ops.push(id);
        let first = match types.len() {
            0 => 0,
            count => self.define(count)?,
        };
        let mut results = Vec::with_capacity(types.len());
        for (index, ty) in types.into_iter().enumerate() {
            results.push(self.value(first + index, ty, ValueDef::Result { op: id, index }));
        }
        self.module.ops[id].results = results;
        Ok(id)
    }
    /// Begins to read the regions of an op.
    fn enter(&mut self, op: OpId, isolated: bool, place: usize) -> Result<()> {
        if self.frames.len() >= MAX_REGIONS {
            let at = self.cursor().offset() as u64;
            let message = format!("regions nested deeper than {MAX_REGIONS} levels");
            return Err(Diagnostic::error(codes::INPUT_LIMIT, message).at(Location::Byte(at)));
        }
        let name = &self.module.ops[op].name;
        let is_apart = dialect::is_isolated(name);
        // VHLO says of no function that it is isolated. Where there is no value around, it is.
        if is_apart && !isolated && self.scopes.last().is_some_and(|s| s.len() > 0) {
            let message = format!("`{name}` may use values from around it");
            return Err(error_at(place, message));
        }
        if is_apart {
            self.symbols.push(BTreeSet::new());
        }
        let section = isolated && self.container.version >= container::REGION_SECTIONS;
        if section {
            let at = self.cursor().offset();
            let (number, content) = self.cursor().section()?;
            if number != container::section::IR {
                return Err(error_at(at, "the regions of an op should be an IR section"));
            }
            self.cursors.push(content);
        }
        if isolated {
            self.scopes.push(Scope::default());
        }
        let regions = self.module.ops[op].regions.clone();
        let function = self.module.ops[op].name == "func.func";
        self.frames.push(Frame {
            op,
            regions,
            region: 0,
            blocks: Vec::new(),
            block: 0,
            ops: 0,
            values: 0,
            open: false,
            isolated,
            section,
            is_apart,
            function,
        });
        Ok(())
    }
    /// Whether a cast is one between types of VHLO and StableHLO that mean the same, so that its
    /// results may be its operands.
    fn is_identity(&self, operands: &[ValueId], types: &[(Type, u64)]) -> bool {
        let mut pairs = operands.iter().zip(types);
        operands.len() == types.len()
            && pairs.all(|(operand, (ty, _))| self.module.values[*operand].ty == *ty)
    }
    /// Lets the next values be others.
    fn alias(&mut self, values: &[ValueId]) -> Result<()> {
        let first = self.define(values.len())?;
        self.scope().define(first, values);
        Ok(())
    }
    fn result_types(&mut self) -> Result<Vec<(Type, u64)>> {
        let count = self.cursor().count("results")?;
        let last = self.cursors.len() - 1;
        let cursor = &mut self.cursors[last];
        let table = &mut self.table;
        (0..count)
            .map(|_| table.ty(cursor, "the type of a result"))
            .collect()
    }
    fn successors(&mut self) -> Result<Vec<BlockId>> {
        let count = self.cursor().count("successors")?;
        let last = self.cursors.len() - 1;
        let cursor = &mut self.cursors[last];
        let blocks = self.frames.last().map_or(&[][..], |frame| &frame.blocks);
        let one = |_| {
            let at = *cursor;
            let index = cursor.varint("a successor")?;
            let block = usize::try_from(index).ok().and_then(|i| blocks.get(i));
            // Nothing goes on to the block that a region begins with.
            block.filter(|_| index > 0).copied().ok_or_else(|| {
                at.error(format!("block {index} of {} is a successor", blocks.len()))
            })
        };
        (0..count).map(one).collect()
    }

    /// The name of an op: its index, and what is known of it.
    fn op_name(&mut self) -> Result<(usize, Rc<KnownOp>)> {
        let at = *self.cursor();
        let index = self.cursor().varint("the name of an op")?;
        let count = self.names.len();
        let index = match usize::try_from(index) {
            Ok(index) if index < count => index,
            _ => return Err(at.error(format!("op name {index} of {count} is used"))),
        };
        if let Some(known) = &self.names[index] {
            return Ok((index, Rc::clone(known)));
        }
        let op = self.container.ops[index];
        let dialect = self.container.dialects[op.dialect];
        let known = match (dialect, op.name) {
            ("vhlo", name) => known_vhlo(name).ok_or_else(|| self.unknown_op(name, &at))?,
            (dialect, "") => KnownOp::plain(dialect.into()),
            (dialect, name) => {
                let name = format!("{dialect}.{name}");
                let current = dialect::current_name(&name);
                KnownOp::plain(current.map_or_else(|| name.into(), Name::from))
            }
        };
        let known = Rc::new(known);
        self.names[index] = Some(Rc::clone(&known));
        Ok((index, known))
    }
    fn unknown_op(&self, name: &str, at: &Cursor<'_>) -> Box<Diagnostic> {
        let (major, minor) = vhlo_ops::NEWEST;
        Diagnostic::unsupported(
            codes::UNKNOWN_WORD,
            format!(
                "the op `vhlo.{name}`, in an artifact of `{}`",
                self.container.producer
            ),
        )
        .at(Location::Byte(at.offset() as u64))
        .note(format!(
            "artifacts up to StableHLO {major}.{minor} are read"
        ))
    }
    /// The name of an op in the block that holds it.
    fn name_within(&self, known: &KnownOp, block: Option<BlockId>) -> Name {
        match self.frames.last() {
            Some(frame) if known.ends && block.is_some() && frame.function => "func.return".into(),
            _ => known.name.clone(),
        }
    }
    /// The attributes of an op, by StableHLO's names.
    fn attrs(&mut self, index: usize, known: &KnownOp, mask: u8, place: usize) -> Result<AttrMap> {
        let at = *self.cursor();
        let mut next = |flag: u8, what| match mask & flag {
            0 => Ok(0),
            _ => self
                .cursor()
                .varint(what)
                .map(|index| index.saturating_add(1)),
        };
        let dict = next(mask::ATTRS, "the attributes of an op")?;
        let properties = next(mask::PROPERTIES, "the properties of an op")?;
        if dict == 0 && properties == 0 && known.vhlo.as_ref().is_none_or(|v| v.1.is_empty()) {
            return Ok(AttrMap::new());
        }
        let key = (index, dict, properties);
        if let Some((attrs, weight)) = self.maps.get(&key) {
            let (attrs, weight) = (attrs.clone(), *weight);
            self.spend_attrs(attrs.len(), weight)?;
            return Ok(attrs);
        }
        let mut weight = 0;
        let mut attrs = AttrMap::new();
        if dict > 0 {
            attrs = match self.table.attr_at(&at, dict - 1)? {
                Attr::Dict(dict) => (*dict).clone(),
                other => {
                    let what = other.what();
                    return Err(at.error(format!("{what} where an op's attributes should be")));
                }
            };
            weight = self.table.weight(dict - 1);
        }
        if properties > 0 {
            let cursor = self.container.properties(properties - 1);
            let cursor =
                cursor.ok_or_else(|| at.error("an op has properties that are not there"))?;
            weight += self.properties(index, known, cursor, &mut attrs)?;
        }
        let wrong = |what: String| error_at(place, format!("`{}`: {what}", known.name));
        let attrs = match &known.vhlo {
            Some((_, names)) => {
                if let Some(name) = names.iter().find(|name| attrs.get(name).is_none()) {
                    return Err(wrong(format!("attribute `{name}` is missing")));
                }
                upgrade::upgrade(&known.name, attrs).map_err(wrong)?
            }
            None => {
                dialect::canonicalize(&known.name, &mut attrs);
                attrs
            }
        };
        self.spend_attrs(attrs.len(), weight)?;
        self.maps.insert(key, (attrs.clone(), weight));
        Ok(attrs)
    }
    /// Counts attributes of an op, and their parts, against what the file may have.
    fn spend_attrs(&mut self, count: usize, weight: u64) -> Result<()> {
        let (attrs, parts) = self.attrs_left;
        match (attrs.checked_sub(count), parts.checked_sub(weight)) {
            (Some(attrs), Some(parts)) => {
                self.attrs_left = (attrs, parts);
                Ok(())
            }
            _ => {
                let at = self.cursor().offset() as u64;
                let message = "ops share attributes so often that the module would be too large";
                Err(Diagnostic::error(codes::INPUT_LIMIT, message).at(Location::Byte(at)))
            }
        }
    }
    /// Puts properties among the attributes; says how many parts they have.
    fn properties(
        &mut self,
        index: usize,
        known: &KnownOp,
        mut cursor: Cursor<'a>,
        attrs: &mut AttrMap,
    ) -> Result<u64> {
        let mut weight = 0;
        if let Some((_, names)) = &known.vhlo {
            for name in names {
                let at = cursor;
                let index = cursor.varint("a property")?;
                attrs.insert(name.clone(), self.table.attr_at(&at, index)?);
                weight += self.table.weight(index);
            }
            cursor.finish("the properties")?;
            return Ok(weight);
        }
        if !self.container.ops[index].registered {
            let at = cursor;
            let index = cursor.varint("properties")?;
            return match self.table.attr_at(&at, index)? {
                Attr::Dict(dict) => {
                    let own = std::mem::take(attrs);
                    let both = [&own, &*dict].into_iter().flat_map(AttrMap::iter);
                    *attrs = both
                        .map(|(name, attr)| (name.clone(), attr.clone()))
                        .collect();
                    Ok(self.table.weight(index))
                }
                other => Err(at.error(format!("properties are {}", other.what()))),
            };
        }
        let at = cursor;
        let set =
            ops::properties(&known.name, self.container.version, cursor)?.ok_or_else(|| {
                Diagnostic::unsupported(
                    codes::UNKNOWN_WORD,
                    format!("the properties of the op `{}`", known.name),
                )
                .at(Location::Byte(at.offset() as u64))
                .note(format!(
                    "the bytecode was written by `{}`",
                    self.container.producer
                ))
            })?;
        for (name, index) in set.attrs {
            if let Some(index) = index {
                let attr = self.table.attr_at(&at, index)?;
                attrs.insert(name.into(), attr);
                weight += self.table.weight(index);
            }
        }
        for (name, sizes) in set.segments {
            attrs.insert(name.into(), sizes);
        }
        Ok(weight)
    }
}

impl KnownOp {
    fn plain(name: Name) -> Self {
        Self {
            name,
            vhlo: None,
            ends: false,
        }
    }
}

fn known_vhlo(name: &str) -> Option<KnownOp> {
    let op = vhlo_ops::find(name)?;
    let attrs = op.attrs.split_ascii_whitespace().map(Name::from).collect();
    let name = match op.name {
        "func" | "call" => format!("func.{}", op.name),
        name => format!("stablehlo.{name}"),
    };
    Some(KnownOp {
        name: name.into(),
        vhlo: Some((op, attrs)),
        ends: op.name == "return",
    })
}
