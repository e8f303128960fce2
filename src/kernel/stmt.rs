//! Statements: effects and structured control.

use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::ExprId;
use crate::kernel::TileOp;

/// Statements in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block(pub Vec<Stmt>);

/// A value carried from one iteration to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Value before the first iteration.
    pub init: ExprId,
    /// Value at the start of an iteration; defined by the loop.
    pub phi: ExprId,
    /// Value at the end of an iteration; computed in the body.
    pub next: ExprId,
    /// Value after the last iteration; defined by the loop.
    pub result: ExprId,
}

/// A value that both arms of an `If` give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Value when the condition held.
    pub then: ExprId,
    /// Value when it did not.
    pub otherwise: ExprId,
    /// Value afterwards; defined by the `If`.
    pub result: ExprId,
}

/// What the code generator should do with a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unroll {
    /// As it likes.
    #[default]
    Auto,
    /// Not at all.
    Never,
    /// Completely; the trip count is a small constant.
    Full,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    /// Computes an expression here.
    Let(ExprId),
    /// Writes the lanes of `value` to neighbouring elements, those of the mask when there is one.
    Store {
        /// Where to.
        buf: BufId,
        /// First element, `i64` scalar.
        index: ExprId,
        /// What.
        value: ExprId,
        /// Lanes that are written, `i1` vector (or scalar for a scalar); all when absent.
        mask: Option<ExprId>,
    },
    /// Writes one element a lane, each to its own index (`i64` vector).
    Scatter {
        /// Where to.
        buf: BufId,
        /// Element of each lane.
        indices: ExprId,
        /// What.
        value: ExprId,
        /// Lanes that are written; all when absent.
        mask: Option<ExprId>,
    },
    /// Combines `value` with an element, indivisibly. Scalars.
    AtomicRmw {
        /// `Add`, `And`, `Or`, `Xor`, `SMin`, `SMax`, `UMin`, `UMax`, `FMin`, `FMax`.
        op: BinaryOp,
        /// Where.
        buf: BufId,
        /// Which element.
        index: ExprId,
        /// With what.
        value: ExprId,
    },
    /// Replaces an element (integer type) by `desired` if it equals `expected`, indivisibly.
    AtomicCas {
        /// Where.
        buf: BufId,
        /// Which element.
        index: ExprId,
        /// What it should be.
        expected: ExprId,
        /// What it becomes.
        desired: ExprId,
        /// What it was; defined here.
        old: ExprId,
    },
    /// Counts `var` (`i64`) from `start` up to, not including, `end` by `step`, which is positive.
    For {
        /// The counter; defined here.
        var: ExprId,
        /// First value.
        start: ExprId,
        /// Bound.
        end: ExprId,
        /// Step.
        step: ExprId,
        /// Carried values.
        carried: Vec<Carried>,
        /// One iteration.
        body: Block,
        /// Hint.
        unroll: Unroll,
    },
    /// Runs `body` while `cond`, computed by `before`, holds. `before` sees the carried phis, and so
    /// does `body`, which also sees the values of `before`.
    While {
        /// Carried values.
        carried: Vec<Carried>,
        /// Computes the condition.
        before: Block,
        /// The condition, `i1`.
        cond: ExprId,
        /// One iteration.
        body: Block,
    },
    /// Runs one of two blocks.
    If {
        /// The condition, scalar `i1`.
        cond: ExprId,
        /// When it holds.
        then: Block,
        /// When it does not.
        otherwise: Block,
        /// Values of the arms.
        merges: Vec<Merge>,
    },
    /// Every workitem of the group waits for the others; shared and global stores become visible
    /// to the group.
    Barrier,
    /// Hints that an element will be read soon.
    Prefetch {
        /// Where.
        buf: BufId,
        /// Which element.
        index: ExprId,
    },
    /// Something with tiles.
    Tile(TileOp),
}
