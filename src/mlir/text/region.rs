//! Regions and blocks in MLIR text.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::mlir::MAX_REGIONS;
use crate::mlir::location::Loc;
use crate::mlir::module::BlockId;
use crate::mlir::module::RegionId;
use crate::mlir::module::ValueId;
use crate::mlir::text::Definition;
use crate::mlir::text::Label;
use crate::mlir::text::Reader;
use crate::mlir::types::Type;

/// An argument of a block.
pub(super) struct Argument<'a> {
    pub(super) name: &'a str,
    pub(super) place: usize,
    pub(super) ty: Type,
    pub(super) loc: Option<Loc>,
}

impl<'a> Reader<'a> {
    /// `{ ops }` or `{ ^bb0(%a: t): ops }`. With `args` the first block has these, and no label.
    pub(super) fn region(
        &mut self,
        args: Option<&[Argument<'a>]>,
        isolated: bool,
    ) -> Result<RegionId> {
        self.scan.skip_space();
        let start = self.scan.pos();
        self.scan.expect("{")?;
        if self.labels.len() >= MAX_REGIONS {
            let message = format!("regions nested deeper than {MAX_REGIONS} levels");
            return Err(self.scan.diagnostic(codes::INPUT_LIMIT, start, message));
        }
        let region = self.module.new_region();
        let outer = isolated.then(|| std::mem::take(&mut self.scope));
        let known = self.scope.order.len();
        self.labels.push(BTreeMap::new());
        if isolated {
            self.symbols.push(BTreeSet::new());
        }
        self.blocks(region, args)?;
        self.scan.expect("}")?;
        if isolated {
            self.symbols.pop();
        }
        let labels = self.labels.pop().unwrap_or_default();
        if let Some((name, label)) = labels.iter().find(|l| !l.1.defined) {
            let message = format!("block `^{name}` is not defined");
            return Err(self.scan.diagnostic(codes::TEXT_NAME, label.place, message));
        }
        match outer {
            Some(outer) => self.scope = outer,
            None => self.scope.forget_after(known),
        }
        Ok(region)
    }
    fn blocks(&mut self, region: RegionId, args: Option<&[Argument<'a>]>) -> Result<()> {
        let next = self.scan.peek();
        let has_args = args.is_some_and(|args| !args.is_empty());
        if has_args && next == b'^' {
            return Err(self
                .scan
                .unexpected("an op, as the first block has no label"));
        }
        if args.is_some() && next != b'^' || !matches!(next, b'^' | b'}') {
            let block = self.module.new_block(region);
            for arg in args.unwrap_or_default() {
                self.block_arg(block, arg)?;
            }
            self.block_ops(block)?;
        }
        while self.scan.peek() == b'^' {
            let (name, place) = self.label()?;
            let block = self.block_of(name, place)?;
            let label = self.labels.last_mut().and_then(|l| l.get_mut(name));
            if label.is_none_or(|l| std::mem::replace(&mut l.defined, true)) {
                let message = format!("block `^{name}` is defined twice");
                return Err(self.scan.diagnostic(codes::TEXT_NAME, place, message));
            }
            self.module.blocks[block].parent = region;
            self.module.regions[region].blocks.push(block);
            if self.scan.sees("(") {
                for arg in self.arguments()? {
                    self.block_arg(block, &arg)?;
                }
            }
            self.scan.expect(":")?;
            self.block_ops(block)?;
        }
        Ok(())
    }
    fn block_ops(&mut self, block: BlockId) -> Result<()> {
        while !matches!(self.scan.peek(), b'}' | b'^' | 0) {
            self.operation(block)?;
        }
        Ok(())
    }
    /// `^name`, without the sign, and its place.
    pub(super) fn label(&mut self) -> Result<(&'a str, usize)> {
        self.scan.skip_space();
        let place = self.scan.pos();
        self.scan.expect("^")?;
        Ok((self.scan.suffix()?, place))
    }
    /// The block of that label in the innermost region, made when it is new.
    pub(super) fn block_of(&mut self, name: &'a str, place: usize) -> Result<BlockId> {
        let Some(labels) = self.labels.last_mut() else {
            return Err(self.scan.error_at(place, "a block outside of a region"));
        };
        if let Some(label) = labels.get(name) {
            return Ok(label.block);
        }
        let block = self.module.detached_block();
        let defined = false;
        labels.insert(
            name,
            Label {
                block,
                defined,
                place,
            },
        );
        Ok(block)
    }
    fn block_arg(&mut self, block: BlockId, arg: &Argument<'a>) -> Result<()> {
        let loc = arg.loc.as_ref().unwrap_or(&self.unknown).clone();
        let first: ValueId = self.module.add_arg(block, arg.ty.clone(), loc);
        debug_assert!(
            first.index() < self.module.values.len(),
            "the value is there"
        );
        self.define(arg.name, Definition { first, count: 1 }, arg.place)
    }
    /// `(%a: t loc(...), %b: t)`.
    pub(super) fn arguments(&mut self) -> Result<Vec<Argument<'a>>> {
        self.items(["(", ")"], Self::argument)
    }
    /// `%a: t loc(...)`.
    pub(super) fn argument(&mut self) -> Result<Argument<'a>> {
        let (name, place) = self.scan.value_name()?;
        self.scan.expect(":")?;
        let ty = self.ty()?;
        let loc = self.opt_location()?;
        Ok(Argument {
            name,
            place,
            ty,
            loc,
        })
    }
}
