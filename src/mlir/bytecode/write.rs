//! Portable artifacts: StableHLO modules as bytecode of VHLO's ops.

use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::Result;
use crate::base::codes;
use crate::mlir::access::OpRef;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::bytecode::container;
use crate::mlir::bytecode::container::section;
use crate::mlir::bytecode::downgrade;
use crate::mlir::bytecode::emit::Emitter;
use crate::mlir::bytecode::encode::Encoder;
use crate::mlir::bytecode::ops;
use crate::mlir::bytecode::own;
use crate::mlir::bytecode::read::read;
use crate::mlir::bytecode::upgrade::Wrong;
use crate::mlir::bytecode::vhlo_ops;
use crate::mlir::bytecode::vhlo_ops::VhloOp;
use crate::mlir::location::SourceLoc;
use crate::mlir::module::BlockId;
use crate::mlir::module::Module;
use crate::mlir::module::OpId;
use crate::mlir::module::RegionId;
use crate::mlir::module::ValueId;
use crate::mlir::types::Type;

/// A version of StableHLO, without its patch number.
pub type Version = vhlo_ops::Version;

/// The version that is written when nobody asks for another: what JAX 0.10 reads.
pub const DEFAULT_VERSION: Version = (1, 17);

/// The portable artifact of a module, for readers of that version of StableHLO and later ones.
///
/// The same module and version give the same bytes.
///
/// # Errors
/// `UNKNOWN_WORD` for a version that is not known, and for ops, attributes and types that StableHLO
/// does not have in that version.
pub fn write(module: &Module, version: Version) -> Result<Vec<u8>> {
    let (major, minor) = version;
    if !(vhlo_ops::OLDEST..=vhlo_ops::NEWEST).contains(&version) {
        let ((low_major, low_minor), (high_major, high_minor)) =
            (vhlo_ops::OLDEST, vhlo_ops::NEWEST);
        return Err(Diagnostic::unsupported(
            codes::UNKNOWN_WORD,
            format!(
                "an artifact of StableHLO {major}.{minor}; versions from {low_major}.{low_minor} \
                 to {high_major}.{high_minor} are written"
            ),
        ));
    }
    let mut writer = Writer {
        module,
        version,
        format: format_of(version),
        encoder: Encoder::new(version),
        names: Vec::new(),
        name_index: BTreeMap::new(),
        properties: Vec::new(),
        property_index: BTreeMap::new(),
        values: vec![None; module.values.len()],
        blocks: IdMap::new(),
        casts: BTreeMap::new(),
        scopes: vec![0],
        frames: Vec::new(),
        buffers: vec![Emitter::default()],
    };
    writer.program()?;
    let file = writer.finish();
    // An op may have attributes in text that no op of VHLO has.
    match read(&file) {
        Ok(_) => Ok(file),
        Err(error) => {
            let message = format!("what an artifact of StableHLO {major}.{minor} does not hold");
            Err(Diagnostic::unsupported(codes::UNKNOWN_WORD, message).note(error.message.clone()))
        }
    }
}

/// The version of the bytecode that readers of a version of StableHLO know.
fn format_of(version: Version) -> u64 {
    match version {
        (0, ..=9) => 0,
        (0, 10 | 11) => 1,
        (0, 12 | 13) => 3,
        (0, 14) => 4,
        _ => 6,
    }
}

/// An op whose regions are being written.
struct Frame {
    regions: Vec<RegionId>,
    region: usize,
    /// The blocks of the region that is being written, which of them, and which op in it.
    blocks: Vec<BlockId>,
    block: usize,
    op: usize,
    /// The number of values that the region holds.
    values: usize,
    open: bool,
    isolated: bool,
}

/// What stands before the regions of an op, as indices and numbers of the file.
struct Head<'h> {
    name: usize,
    loc: u32,
    /// The dictionary and the properties.
    attrs: AttrIndices,
    types: &'h [u32],
    operands: &'h [u64],
    successors: &'h [u64],
    has_regions: bool,
}

/// The indices of a dictionary and of properties, when an op has some.
type AttrIndices = (Option<u32>, Option<usize>);

struct Writer<'m> {
    module: &'m Module,
    version: Version,
    /// The version of the bytecode.
    format: u64,
    encoder: Encoder,
    /// Dialect and name of each op.
    names: Vec<(&'static str, String)>,
    name_index: BTreeMap<(&'static str, String), usize>,
    properties: Vec<Vec<u8>>,
    property_index: BTreeMap<Vec<u8>, usize>,
    /// The number of each value within its scope.
    values: Vec<Option<u64>>,
    /// The number of each block within its region.
    blocks: IdMap<BlockId, u64>,
    /// For each op of another dialect, the number of the first value that a cast before it gives.
    casts: BTreeMap<OpId, u64>,
    /// For each scope, how many values the open regions hold.
    scopes: Vec<usize>,
    frames: Vec<Frame>,
    /// The program, and the isolated regions within it that are being written.
    buffers: Vec<Emitter>,
}

impl<'m> Writer<'m> {
    fn out(&mut self) -> &mut Emitter {
        let last = self.buffers.len() - 1;
        &mut self.buffers[last]
    }
    fn program(&mut self) -> Result<()> {
        self.out().flagged(1, false);
        self.op(self.module.root)?;
        while !self.frames.is_empty() {
            self.step()?;
        }
        Ok(())
    }
    /// Writes on in the innermost op with regions, up to the next op with regions.
    fn step(&mut self) -> Result<()> {
        let depth = self.frames.len() - 1;
        loop {
            if !self.frames[depth].open && !self.open_region(depth)? {
                return Ok(());
            }
            let module = self.module;
            let frame = &mut self.frames[depth];
            let block = frame.blocks[frame.block];
            let ops = &module.blocks[block].ops;
            if let Some(op) = ops.get(frame.op) {
                frame.op += 1;
                self.op(*op)?;
                if self.frames.len() > depth + 1 {
                    return Ok(());
                }
                continue;
            }
            frame.block += 1;
            frame.op = 0;
            if frame.block < frame.blocks.len() {
                self.block_head(depth)?;
                continue;
            }
            frame.open = false;
            let values = frame.values;
            let last = self.scopes.len() - 1;
            self.scopes[last] -= values;
        }
    }
    fn open_region(&mut self, depth: usize) -> Result<bool> {
        let module = self.module;
        loop {
            let frame = &mut self.frames[depth];
            let Some(&region) = frame.regions.get(frame.region) else {
                self.close_frame();
                return Ok(false);
            };
            frame.region += 1;
            let blocks = module.regions[region].blocks.clone();
            if blocks.is_empty() {
                self.out().varint(0);
                continue;
            }
            let last = self.scopes.len() - 1;
            let first = self.scopes[last];
            let mut next = first;
            for (number, &block) in (0..).zip(&blocks) {
                self.blocks.set(block, number);
                let block = &module.blocks[block];
                for arg in &block.args {
                    self.values[arg.index()] = Some(next as u64);
                    next += 1;
                }
                for &id in &block.ops {
                    let op = &module.ops[id];
                    if is_foreign(module, id) {
                        self.casts.insert(id, next as u64);
                        next += op.operands.len() + op.results.len();
                    }
                    for result in &op.results {
                        self.values[result.index()] = Some(next as u64);
                        next += 1;
                    }
                }
            }
            self.scopes[last] = next;
            let count = blocks.len();
            let frame = &mut self.frames[depth];
            frame.values = next - first;
            frame.blocks = blocks;
            (frame.block, frame.op, frame.open) = (0, 0, true);
            let out = self.out();
            out.count(count);
            out.count(next - first);
            self.block_head(depth)?;
            return Ok(true);
        }
    }
    fn close_frame(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        if !frame.isolated {
            return;
        }
        self.scopes.pop();
        if self.format >= container::REGION_SECTIONS
            && let Some(content) = self.buffers.pop()
        {
            self.out().section(section::IR, &content.bytes);
        }
    }
    fn block_head(&mut self, depth: usize) -> Result<()> {
        let module = self.module;
        let frame = &self.frames[depth];
        let block = &module.blocks[frame.blocks[frame.block]];
        let holder = module.regions[block.parent].parent;
        let holder = module.op(holder.unwrap_or(module.root));
        let (format, has_args) = (self.format, !block.args.is_empty());
        let foreign = block.ops.iter().filter(|op| is_foreign(module, **op));
        let casts =
            foreign.map(|op| module.ops[*op].operands.len() + module.ops[*op].results.len());
        let ops = block.ops.len() + casts.sum::<usize>();
        self.out().flagged(ops as u64, has_args);
        if !has_args {
            return Ok(());
        }
        self.out().count(block.args.len());
        for (value, loc) in block.args.iter().zip(&block.arg_locs) {
            let ty = self.encoder.ty(module.ty(*value));
            let ty = u64::from(ty.map_err(|what| wrong(holder, what))?);
            let known = **loc != SourceLoc::Unknown;
            let index = match known || format < container::ELIDED_LOCATIONS {
                true => Some(self.encoder.loc(loc).map_err(|what| wrong(holder, what))?),
                false => None,
            };
            let out = self.out();
            match format < container::ELIDED_LOCATIONS {
                true => out.varint(ty),
                false => out.flagged(ty, known),
            }
            if let Some(index) = index {
                out.varint(index.into());
            }
        }
        if format >= container::USE_ORDERS {
            self.out().byte(0);
        }
        Ok(())
    }

    fn op(&mut self, id: OpId) -> Result<()> {
        let op = self.module.op(id);
        let name = self.op_name(op)?;
        if let OpName::Foreign(name) = &name {
            return self.foreign(op, name);
        }
        let index = match &name {
            OpName::Vhlo(row) => self.name(&("vhlo", format!("{}_v{}", row.name, row.revision))),
            OpName::Module | OpName::Foreign(_) => self.name(&("builtin", "module".to_owned())),
        };
        let loc = self
            .encoder
            .loc(&op.get().loc)
            .map_err(|what| wrong(op, what))?;
        let attrs = self.attrs(op, &name).map_err(|what| wrong(op, what))?;
        let types: std::result::Result<Vec<u32>, Wrong> = op
            .get()
            .results
            .iter()
            .map(|value| self.encoder.ty(self.module.ty(*value)))
            .collect();
        let types = types.map_err(|what| wrong(op, what))?;
        let operands: Result<Vec<u64>> = op
            .get()
            .operands
            .iter()
            .map(|value| self.operand(op, *value))
            .collect();
        let operands = operands?;
        let successors: Result<Vec<u64>> = op
            .get()
            .successors
            .iter()
            .map(|block| self.successor(op, *block))
            .collect();
        let successors = successors?;
        let regions = &op.get().regions;
        self.head(&Head {
            name: index,
            loc,
            attrs,
            types: &types,
            operands: &operands,
            successors: &successors,
            has_regions: !regions.is_empty(),
        });
        if regions.is_empty() {
            return Ok(());
        }
        let isolated = matches!(name, OpName::Module) || matches!(op.kind(), "func.func");
        self.out().flagged(regions.len() as u64, isolated);
        self.enter(regions.clone(), isolated);
        Ok(())
    }
    /// What stands before the regions of an op.
    fn head(&mut self, head: &Head<'_>) {
        let (dict, properties) = head.attrs;
        let mask = u8::from(dict.is_some())
            | u8::from(!head.types.is_empty()) << 1
            | u8::from(!head.operands.is_empty()) << 2
            | u8::from(!head.successors.is_empty()) << 3
            | u8::from(head.has_regions) << 4
            | u8::from(properties.is_some()) << 6;
        let out = self.out();
        out.count(head.name);
        out.byte(mask);
        out.varint(head.loc.into());
        if let Some(dict) = dict {
            out.varint(dict.into());
        }
        if let Some(properties) = properties {
            out.count(properties);
        }
        if !head.types.is_empty() {
            out.indices(head.types);
        }
        for list in [head.operands, head.successors] {
            if !list.is_empty() {
                out.count(list.len());
                list.iter().for_each(|index| out.varint(*index));
            }
        }
    }
    /// An op of another dialect, between casts of its operands and results from VHLO's types to its
    /// own and back.
    fn foreign(&mut self, op: OpRef<'_>, name: &(&'static str, String)) -> Result<()> {
        let (major, minor) = MIXED;
        if self.version < MIXED {
            return Err(op.error(
                codes::UNKNOWN_WORD,
                format!("ops of another dialect need StableHLO {major}.{minor}"),
            ));
        }
        if !op.get().regions.is_empty() || !op.get().successors.is_empty() {
            let message = "ops of another dialect with regions are not written in bytecode";
            return Err(op.error(codes::UNKNOWN_WORD, message));
        }
        let fail = |what| wrong(op, what);
        let cast = self.name(&("builtin", "unrealized_conversion_cast".to_owned()));
        let index = self.name(name);
        let loc = self.encoder.loc(&op.get().loc).map_err(fail)?;
        let attrs = self.foreign_attrs(op).map_err(fail)?;
        let first = self.casts.get(&op.id).copied().unwrap_or_default();
        let operands = op.get().operands.len() as u64;
        for value in &op.get().operands {
            let ty = self
                .encoder
                .own_type(self.module.ty(*value))
                .map_err(fail)?;
            let operand = self.operand(op, *value)?;
            self.cast(cast, loc, ty, operand);
        }
        let results = op.get().results.iter();
        let types = results.map(|value| self.encoder.own_type(self.module.ty(*value)));
        let types = types
            .collect::<std::result::Result<Vec<u32>, Wrong>>()
            .map_err(fail)?;
        let cast_operands: Vec<u64> = (first..first + operands).collect();
        self.head(&Head {
            name: index,
            loc,
            attrs,
            types: &types,
            operands: &cast_operands,
            successors: &[],
            has_regions: false,
        });
        for (result, raw) in op.get().results.iter().zip(first + operands..) {
            let ty = self.encoder.ty(self.module.ty(*result)).map_err(fail)?;
            self.cast(cast, loc, ty, raw);
        }
        Ok(())
    }
    /// A cast of a value to another type.
    fn cast(&mut self, name: usize, loc: u32, ty: u32, operand: u64) {
        self.head(&Head {
            name,
            loc,
            attrs: (None, None),
            types: &[ty],
            operands: &[operand],
            successors: &[],
            has_regions: false,
        });
    }
    /// The dictionary and the properties of an op of another dialect.
    fn foreign_attrs(&mut self, op: OpRef<'_>) -> std::result::Result<AttrIndices, Wrong> {
        let attrs = &op.get().attrs;
        let set = match ops::set_for(op.kind(), attrs) {
            Some(set) => set,
            None if attrs.is_empty() => "",
            None => return Err("the attributes of this op are not written in bytecode".to_owned()),
        };
        let encoder = &mut self.encoder;
        let mut properties = Emitter::default();
        let mut inherent = Vec::new();
        for part in set.split_ascii_whitespace() {
            let name = part.strip_suffix('?').unwrap_or(part);
            inherent.push(name);
            match (attrs.get(name), name == part) {
                (Some(attr), true) => properties.varint(encoder.own_attr(attr)?.into()),
                (Some(attr), false) => properties.flagged(encoder.own_attr(attr)?.into(), true),
                (None, false) => properties.varint(0),
                (None, true) => return Err(format!("attribute `{name}` is missing")),
            }
        }
        let mut dict = Vec::new();
        for (name, attr) in attrs
            .iter()
            .filter(|(name, _)| !inherent.contains(&&***name))
        {
            let key = encoder.own_attr(&Attr::string(name))?;
            dict.push((key, encoder.own_attr(attr)?));
        }
        self.attr_indices(&dict, properties)
    }
    /// The index of a dictionary and of properties, when there are some.
    fn attr_indices(
        &mut self,
        dict: &[(u32, u32)],
        properties: Emitter,
    ) -> std::result::Result<AttrIndices, Wrong> {
        let dict = match dict.is_empty() {
            true => None,
            false => Some(self.encoder.dict_of(dict)?),
        };
        let next = self.properties.len();
        let properties = (!properties.bytes.is_empty()).then(|| {
            let index = self.property_index.entry(properties.bytes);
            *index.or_insert_with_key(|bytes| {
                self.properties.push(bytes.clone());
                next
            })
        });
        Ok((dict, properties))
    }
    fn enter(&mut self, regions: Vec<RegionId>, isolated: bool) {
        if isolated {
            self.scopes.push(0);
            if self.format >= container::REGION_SECTIONS {
                self.buffers.push(Emitter::default());
            }
        }
        self.frames.push(Frame {
            regions,
            region: 0,
            blocks: Vec::new(),
            block: 0,
            op: 0,
            values: 0,
            open: false,
            isolated,
        });
    }
    /// The op of VHLO for an op of StableHLO.
    fn op_name(&self, op: OpRef<'_>) -> Result<OpName> {
        if op.id == self.module.root {
            return Ok(OpName::Module);
        }
        let kind = op.kind();
        if is_foreign(self.module, op.id) {
            let (dialect, name) = kind.split_once('.').unwrap_or((kind, ""));
            let known = FOREIGN.iter().find(|known| **known == dialect);
            let known = known.ok_or_else(|| {
                let message = "an op of a dialect that is not written in bytecode";
                op.error(codes::UNKNOWN_WORD, message)
            })?;
            return Ok(OpName::Foreign((known, name.to_owned())));
        }
        let name = match kind {
            "func.func" | "func.call" | "func.return" => kind.strip_prefix("func."),
            _ => kind.strip_prefix("stablehlo."),
        };
        let (major, minor) = self.version;
        let revision = name.and_then(|name| vhlo_ops::find_for(name, self.version));
        let Some(row) = revision else {
            return Err(op.error(
                codes::UNKNOWN_WORD,
                format!("an artifact of StableHLO {major}.{minor} does not have this op"),
            ));
        };
        let single = matches!(
            (row.name, row.revision),
            (
                "all_gather" | "all_reduce" | "all_to_all" | "collective_broadcast",
                1
            )
        );
        if single && op.get().operands.len() != 1 {
            return Err(op.error(
                codes::UNKNOWN_WORD,
                format!("StableHLO {major}.{minor} has this op with one operand only"),
            ));
        }
        Ok(OpName::Vhlo(row))
    }
    /// The index of the name of an op.
    fn name(&mut self, name: &(&'static str, String)) -> usize {
        let next = self.names.len();
        *self
            .name_index
            .entry(name.clone())
            .or_insert_with_key(|name| {
                self.names.push(name.clone());
                next
            })
    }
    /// The dictionary of an op's attributes, and its properties.
    fn attrs(&mut self, op: OpRef<'_>, name: &OpName) -> std::result::Result<AttrIndices, Wrong> {
        let native = self.format >= container::PROPERTIES;
        let encoder = &mut self.encoder;
        let mut dict = Vec::new();
        let mut properties = Emitter::default();
        match name {
            OpName::Module => {
                let attrs = &op.get().attrs;
                let inherent = ["sym_name", "sym_visibility"];
                for (name, attr) in attrs.iter() {
                    if !native || !inherent.contains(&&**name) {
                        let key = encoder.own_attr(&Attr::string(name))?;
                        dict.push((key, encoder.own_attr(attr)?));
                    }
                }
                if native && inherent.iter().any(|name| attrs.get(name).is_some()) {
                    for name in inherent {
                        match attrs.get(name) {
                            None => properties.varint(0),
                            Some(attr) => properties.flagged(encoder.own_attr(attr)?.into(), true),
                        }
                    }
                }
            }
            OpName::Foreign(_) => return self.foreign_attrs(op),
            OpName::Vhlo(row) => {
                let attrs = downgrade::downgrade(op.kind(), row, &op.get().attrs)?;
                self.check(op, row, &attrs)?;
                let encoder = &mut self.encoder;
                for (name, attr) in attrs.iter() {
                    let index = match (row.name, &**name) {
                        ("custom_call", "api_version") => encoder.api_version(attr)?,
                        _ => encoder.attr(attr)?,
                    };
                    let inherent = row
                        .attrs
                        .split_ascii_whitespace()
                        .any(|known| known == &**name);
                    if native && inherent {
                        properties.varint(index.into());
                    } else {
                        let key = encoder.own_attr(&Attr::string(name))?;
                        dict.push((key, index));
                    }
                }
            }
        }
        self.attr_indices(&dict, properties)
    }
    /// What revisions of ops allow since some version only.
    fn check(
        &self,
        op: OpRef<'_>,
        row: &VhloOp,
        attrs: &AttrMap,
    ) -> std::result::Result<(), Wrong> {
        let element = |value: &ValueId| self.module.ty(*value).element();
        match row.name {
            "custom_call" => {
                let config = attrs.get("backend_config");
                let version = attrs.get("api_version").and_then(Attr::as_int);
                if version == Some(4) || config.is_some_and(|config| config.as_dict().is_some()) {
                    self.encoder.since((1, 3), "a typed FFI call")?;
                }
                let mut operands = op.get().operands.iter();
                match operands.any(|value| matches!(element(value), Type::Future(_))) {
                    true => self.encoder.since((1, 17), "a call with a future"),
                    false => Ok(()),
                }
            }
            "all_reduce" | "reduce" | "reduce_scatter" | "reduce_window" | "scatter"
            | "select_and_scatter" => {
                let pairs = op.get().operands.iter().zip(&op.get().results);
                match pairs.into_iter().all(|(a, b)| element(a) == element(b)) {
                    true => Ok(()),
                    false => {
                        let what = "a reduction in another type than its operands have";
                        self.encoder.since((0, 17), what)
                    }
                }
            }
            _ => Ok(()),
        }
    }
    fn operand(&self, op: OpRef<'_>, value: ValueId) -> Result<u64> {
        self.values[value.index()]
            .ok_or_else(|| op.wrong("an operand is not defined in a region around the op"))
    }
    fn successor(&self, op: OpRef<'_>, block: BlockId) -> Result<u64> {
        let here = op
            .get()
            .parent
            .map(|holder| self.module.blocks[holder].parent);
        match here == Some(self.module.blocks[block].parent) {
            true => Ok(self.blocks[block]),
            false => Err(op.wrong("a successor is not in the region of the op")),
        }
    }

    /// The file.
    fn finish(mut self) -> Vec<u8> {
        let (major, minor) = self.version;
        let mut file = Emitter {
            bytes: container::MAGIC.to_vec(),
        };
        file.varint(self.format);
        file.bytes
            .extend(format!("StableHLO_v{major}.{minor}.0").as_bytes());
        file.byte(0);
        let used = self.used();
        let dialects = self.dialects(&used);
        file.section(section::DIALECTS, &dialects.bytes);
        let (mut entries, mut offsets) = (Emitter::default(), Emitter::default());
        offsets.count(self.encoder.attrs.list.len());
        offsets.count(self.encoder.types.list.len());
        for list in [&self.encoder.attrs.list, &self.encoder.types.list] {
            for group in list.chunk_by(|a, b| a.0 == b.0) {
                offsets.varint(dialect_number(&used, group[0].0));
                offsets.count(group.len());
                for (_, binary, bytes) in group {
                    entries.bytes.extend(&**bytes);
                    offsets.flagged(bytes.len() as u64, *binary);
                }
            }
        }
        file.section(section::ENTRY_OFFSETS, &offsets.bytes);
        file.section(section::ENTRIES, &entries.bytes);
        let program = self.buffers.pop().unwrap_or_default();
        file.section(section::IR, &program.bytes);
        let mut strings = Emitter::default();
        let list = &self.encoder.strings.list;
        strings.count(list.len());
        for text in list.iter().rev() {
            strings.count(text.len() + 1);
        }
        for text in list {
            strings.bytes.extend(&**text);
            strings.byte(0);
        }
        file.section(section::STRINGS, &strings.bytes);
        if self.format >= container::PROPERTIES {
            let mut properties = Emitter::default();
            properties.count(self.properties.len());
            for bytes in &self.properties {
                properties.blob(bytes);
            }
            file.section(section::PROPERTIES, &properties.bytes);
        }
        file.bytes
    }
    /// Whether an op, attribute or type is of that dialect.
    fn uses(&self, dialect: &str) -> bool {
        let mut entries = self
            .encoder
            .attrs
            .list
            .iter()
            .chain(&self.encoder.types.list);
        entries.any(|(of, ..)| *of == dialect) || self.names.iter().any(|(of, _)| *of == dialect)
    }
    /// The dialects of the file, which are numbered in this order.
    fn used(&self) -> Vec<&'static str> {
        let mut used = own::DIALECTS.to_vec();
        used.retain(|dialect| self.uses(dialect));
        used
    }
    /// The dialect section: names of dialects and ops.
    fn dialects(&mut self, used: &[&'static str]) -> Emitter {
        let mut out = Emitter::default();
        let names: Vec<(u64, u64)> = self
            .names
            .iter()
            .map(|(dialect, name)| {
                (
                    dialect_number(used, dialect),
                    self.encoder.strings.add(name.as_bytes()),
                )
            })
            .collect();
        out.count(used.len());
        for dialect in used {
            let name = self.encoder.strings.add(dialect.as_bytes());
            match self.format < container::DIALECT_VERSIONS {
                true => out.varint(name),
                false => out.flagged(name, false),
            }
        }
        if self.format >= container::ELIDED_LOCATIONS {
            out.count(names.len());
        }
        for group in names.chunk_by(|a, b| a.0 == b.0) {
            out.varint(group[0].0);
            out.count(group.len());
            for (_, name) in group {
                match self.format < container::PROPERTIES {
                    true => out.varint(*name),
                    false => out.flagged(*name, true),
                }
            }
        }
        out
    }
}

/// The number of a dialect of the file.
fn dialect_number(used: &[&str], dialect: &str) -> u64 {
    let number = used.iter().position(|known| *known == dialect);
    number.unwrap_or(0) as u64
}

/// What an op becomes.
enum OpName {
    Module,
    Vhlo(&'static VhloOp),
    /// An op that stays as it is: its dialect and its name there.
    Foreign((&'static str, String)),
}

/// The version of StableHLO since which artifacts may hold ops of other dialects.
pub const MIXED: Version = (1, 11);

/// The dialects whose ops may stand among those of VHLO.
const FOREIGN: [&str; 5] = ["chlo", "sdy", "shape", "arith", "tensor"];

/// Whether VHLO does not have an op, and the op is not the module.
fn is_foreign(module: &Module, op: OpId) -> bool {
    let name = &module.ops[op].name;
    op != module.root && !name.starts_with("stablehlo.") && !name.starts_with("func.")
}

fn wrong(op: OpRef<'_>, what: Wrong) -> Box<Diagnostic> {
    op.error(codes::UNKNOWN_WORD, what)
}
