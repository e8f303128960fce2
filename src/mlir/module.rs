//! The module: ops, blocks, regions and values in arenas.

use crate::base::Arena;
use crate::base::Id;
use crate::define_id;
use crate::mlir::attrs::AttrMap;
use crate::mlir::dialect;
use crate::mlir::location::Loc;
use crate::mlir::location::SourceLoc;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

define_id! {
    /// An op of a module.
    pub struct OpId, "op";
}
define_id! {
    /// A region of a module.
    pub struct RegionId, "region";
}
define_id! {
    /// A block of a module.
    pub struct BlockId, "bb";
}
define_id! {
    /// A value of a module.
    pub struct ValueId, "%";
}

/// A module and all that is in it.
#[derive(Clone, Debug)]
pub struct Module {
    /// Every op.
    pub ops: Arena<OpId, Op>,
    /// Every region.
    pub regions: Arena<RegionId, Region>,
    /// Every block.
    pub blocks: Arena<BlockId, Block>,
    /// Every value.
    pub values: Arena<ValueId, Value>,
    /// The outermost op, a `builtin.module`.
    pub root: OpId,
}

/// An op.
#[derive(Clone, Debug)]
pub struct Op {
    /// Full name, such as `stablehlo.add`.
    pub name: Name,
    /// Values that it uses.
    pub operands: Vec<ValueId>,
    /// Values that it defines.
    pub results: Vec<ValueId>,
    /// Properties and discardable attributes.
    pub attrs: AttrMap,
    /// Regions that it holds.
    pub regions: Vec<RegionId>,
    /// Blocks that it may go on to.
    pub successors: Vec<BlockId>,
    /// Where it comes from.
    pub loc: Loc,
    /// Line of the text, or byte of the bytecode, where it was read; zero when it was not read.
    pub place: u32,
    /// The block that holds it; nothing for the root.
    pub parent: Option<BlockId>,
}

/// A region.
#[derive(Clone, Debug)]
pub struct Region {
    /// Its blocks, the entry first.
    pub blocks: Vec<BlockId>,
    /// The op that holds it; nothing while that op is not made yet.
    pub parent: Option<OpId>,
}

/// A block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its arguments.
    pub args: Vec<ValueId>,
    /// Where its arguments come from; as many as there are arguments.
    pub arg_locs: Vec<Loc>,
    /// Its ops, in order.
    pub ops: Vec<OpId>,
    /// The region that holds it.
    pub parent: RegionId,
}

/// A value.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// What defines it.
    pub def: ValueDef,
}

/// What defines a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// A result of an op.
    Result {
        /// The op.
        op: OpId,
        /// Which of its results.
        index: usize,
    },
    /// An argument of a block.
    Arg {
        /// The block.
        block: BlockId,
        /// Which of its arguments.
        index: usize,
    },
}

/// What an op is made of.
#[derive(Clone, Debug)]
pub struct NewOp {
    /// Full name.
    pub name: Name,
    /// Values that it uses.
    pub operands: Vec<ValueId>,
    /// Types of the values that it defines.
    pub result_types: Vec<Type>,
    /// Properties and discardable attributes.
    pub attrs: AttrMap,
    /// Regions, made by [`Module::new_region`].
    pub regions: Vec<RegionId>,
    /// Blocks that it may go on to.
    pub successors: Vec<BlockId>,
    /// Where it comes from.
    pub loc: Loc,
    /// Line of the text, or byte of the bytecode; zero when it was not read.
    pub place: u32,
}

impl NewOp {
    /// An op without attributes, regions and location.
    pub fn new(name: impl Into<Name>, operands: Vec<ValueId>, result_types: Vec<Type>) -> Self {
        Self {
            name: name.into(),
            operands,
            result_types,
            attrs: AttrMap::new(),
            regions: Vec::new(),
            successors: Vec::new(),
            loc: SourceLoc::unknown(),
            place: 0,
        }
    }
}

impl Module {
    /// Nothing at all; a reader makes the root, and sets it.
    pub fn without_ops() -> Self {
        Self {
            ops: Arena::new(),
            regions: Arena::new(),
            blocks: Arena::new(),
            values: Arena::new(),
            root: OpId::from_index(0),
        }
    }
    /// A `builtin.module` with one region of one empty block.
    pub fn new() -> Self {
        let mut module = Self::without_ops();
        let region = module.new_region();
        module.new_block(region);
        let mut root = NewOp::new("builtin.module", Vec::new(), Vec::new());
        root.regions.push(region);
        module.root = module.detached(root);
        module
    }
    /// Says what is wrong with an op that is a module, if anything: it has one region of one block, and
    /// neither takes nor gives values.
    pub fn shape_fault(&self, op: OpId) -> Option<&'static str> {
        let op = &self.ops[op];
        let one = |region: &RegionId| match self.regions[*region].blocks[..] {
            [block] => self.blocks[block].args.is_empty(),
            _ => false,
        };
        let fits = matches!(&op.regions[..], [region] if one(region))
            && op.operands.is_empty()
            && op.results.is_empty();
        (!fits).then_some("a module that has not one region of one block without arguments")
    }
    /// Says that a block takes no more ops, if so.
    pub fn end_fault(&self, block: BlockId) -> Option<String> {
        let last = &self.ops[*self.blocks[block].ops.last()?].name;
        dialect::ends_block(last).then(|| format!("an op after `{last}`, which ends its block"))
    }
    /// The block that holds the functions.
    pub fn body(&self) -> BlockId {
        let region = self.ops[self.root].regions[0];
        self.regions[region].blocks[0]
    }
    /// A region without blocks, for an op that is made next.
    pub fn new_region(&mut self) -> RegionId {
        self.regions.push(Region {
            blocks: Vec::new(),
            parent: None,
        })
    }
    /// A block without arguments and ops at the end of a region.
    pub fn new_block(&mut self, region: RegionId) -> BlockId {
        let block = self.blocks.push(Block {
            args: Vec::new(),
            arg_locs: Vec::new(),
            ops: Vec::new(),
            parent: region,
        });
        self.regions[region].blocks.push(block);
        block
    }
    /// A block that no region holds yet; its parent is to be set when one does.
    pub fn detached_block(&mut self) -> BlockId {
        self.blocks.push(Block {
            args: Vec::new(),
            arg_locs: Vec::new(),
            ops: Vec::new(),
            parent: RegionId::from_index(0),
        })
    }
    /// One more argument of a block.
    pub fn add_arg(&mut self, block: BlockId, ty: Type, loc: Loc) -> ValueId {
        let index = self.blocks[block].args.len();
        let def = ValueDef::Arg { block, index };
        let value = self.values.push(Value { ty, def });
        self.blocks[block].args.push(value);
        self.blocks[block].arg_locs.push(loc);
        value
    }
    /// An op at the end of a block.
    pub fn push(&mut self, block: BlockId, new: NewOp) -> OpId {
        let op = self.detached(new);
        self.attach(block, op);
        op
    }
    /// Puts an op that no block holds at the end of one.
    pub fn attach(&mut self, block: BlockId, op: OpId) {
        self.ops[op].parent = Some(block);
        self.blocks[block].ops.push(op);
    }
    /// An op that no block holds.
    pub fn detached(&mut self, new: NewOp) -> OpId {
        let op = OpId::from_index(self.ops.len());
        let mut results = Vec::with_capacity(new.result_types.len());
        for (index, ty) in new.result_types.into_iter().enumerate() {
            let def = ValueDef::Result { op, index };
            results.push(self.values.push(Value { ty, def }));
        }
        for &region in &new.regions {
            self.regions[region].parent = Some(op);
        }
        self.ops.push(Op {
            name: new.name,
            operands: new.operands,
            results,
            attrs: new.attrs,
            regions: new.regions,
            successors: new.successors,
            loc: new.loc,
            place: new.place,
            parent: None,
        })
    }
    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.values[value].ty
    }
    /// The op that holds an op.
    pub fn parent_op(&self, op: OpId) -> Option<OpId> {
        let block = self.ops[op].parent?;
        self.regions[self.blocks[block].parent].parent
    }
    /// The op in the module's body that has this symbol name.
    pub fn symbol(&self, name: &str) -> Option<OpId> {
        let has = |op: &OpId| self.symbol_name(*op) == Some(name);
        self.blocks[self.body()].ops.iter().copied().find(has)
    }
    /// Whether some op is of that dialect.
    pub fn has_dialect(&self, dialect: &str) -> bool {
        let is_of = |op: &Op| op.name.split_once('.').is_some_and(|(of, _)| of == dialect);
        self.ops.values().any(is_of)
    }
    /// The symbol name of an op that has one.
    pub fn symbol_name(&self, op: OpId) -> Option<&str> {
        self.ops[op].attrs.get("sym_name")?.as_str()
    }
}

impl Default for Module {
    fn default() -> Self {
        Self::new()
    }
}
