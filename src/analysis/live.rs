//! When each value is needed, for a given order of the instructions.
//!
//! Time is one line of points: the instructions in order, a loop's or conditional's computations
//! between its start and its end. A value is live in closed segments of points. It has several when
//! it rests between them: a loop's state between its last use in the body and the end of the body,
//! where the next state is moved in; a value used in several branches of a conditional between them.
//!
//! Points of a `while`: start (the initial values are moved in), the condition's instructions,
//! test (the predicate is read), the body's, close (the body's results are moved in), end.
//! Points of a `conditional`: start (the index is read), for each branch its instructions and its
//! close (its results are moved into the conditional's), end. Points of a `call`: start, end.

use std::collections::BTreeMap;

use crate::analysis::Dataflow;
use crate::analysis::ValueId;
use crate::analysis::ValueKind;
use crate::analysis::dataflow::CallKind;
use crate::analysis::dataflow::is_structural;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// A point of time.
pub type Point = u32;

/// A closed range of points in which a value is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    /// First point.
    pub start: Point,
    /// Last point.
    pub end: Point,
}

impl Segment {
    /// Whether the two have a point in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// The points of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where it starts; for all but control flow also where it ends.
    pub start: Point,
    /// Where it ends.
    pub end: Point,
    /// While: test, close. Conditional: the close of each branch.
    pub inner: Vec<Point>,
}

/// Live segments of all values.
#[derive(Clone, Debug)]
pub struct Live {
    /// Segments by value, ascending and apart.
    pub segments: IdMap<ValueId, Vec<Segment>>,
    /// The values that something other than structure uses.
    pub used: IdSet<ValueId>,
    /// Points by instruction.
    pub spans: IdMap<InstrId, Span>,
    /// The point at which the result is handed over, after everything else.
    pub end: Point,
}

impl Live {
    /// Computes the segments for the order that lists every instruction of every computation of
    /// control flow.
    pub fn new(module: &Module, flow: &Dataflow, order: &IdMap<CompId, Vec<InstrId>>) -> Self {
        let mut walk = Walk {
            module,
            flow,
            order,
            next: 1,
            spans: IdMap::new(),
            uses: IdMap::new(),
            regions: Vec::new(),
            region_of: IdMap::new(),
        };
        walk.regions.push(Region {
            parent: None,
            start: 0,
        });
        walk.computation(module.entry, 0);
        let end = walk.next;
        let root = module.entry_comp().root;
        walk.use_all(root, end, 0);
        let segments = walk.segments(end);
        let mut used = IdSet::new();
        for (value, uses) in walk.uses.iter() {
            if !uses.is_empty() {
                used.insert(value);
            }
        }
        Self {
            segments,
            used,
            spans: walk.spans,
            end,
        }
    }
    /// The first and last point of a value.
    pub fn hull(&self, value: ValueId) -> Segment {
        let segments = &self.segments[value];
        Segment {
            start: segments.first().map_or(0, |s| s.start),
            end: segments.last().map_or(0, |s| s.end),
        }
    }
}

/// A stretch of code with its own time: the entry, a condition, a body, a branch. Calls belong to
/// the region of their caller.
struct Region {
    /// The instruction that runs it, its kind and the region that holds it.
    parent: Option<(InstrId, CallKind, usize)>,
    start: Point,
}

#[derive(Clone, Copy)]
struct Use {
    point: Point,
    region: usize,
}

struct Walk<'a> {
    module: &'a Module,
    flow: &'a Dataflow,
    order: &'a IdMap<CompId, Vec<InstrId>>,
    next: Point,
    spans: IdMap<InstrId, Span>,
    uses: IdMap<ValueId, Vec<Use>>,
    regions: Vec<Region>,
    /// The regions of an instruction's computations, in the order they are called.
    region_of: IdMap<InstrId, Vec<usize>>,
}

impl Walk<'_> {
    fn tick(&mut self) -> Point {
        self.next += 1;
        self.next - 1
    }

    fn use_value(&mut self, value: ValueId, point: Point, region: usize) {
        self.uses[value].push(Use { point, region });
    }

    fn use_all(&mut self, instr: InstrId, point: Point, region: usize) {
        let flow = self.flow;
        for &value in flow.at(instr) {
            self.use_value(value, point, region);
        }
    }

    fn nested(&mut self, comp: CompId, caller: InstrId, kind: CallKind, outer: usize) -> usize {
        let region = self.regions.len();
        self.regions.push(Region {
            parent: Some((caller, kind, outer)),
            start: self.next,
        });
        self.region_of[caller].push(region);
        self.computation(comp, region);
        region
    }

    fn computation(&mut self, comp: CompId, region: usize) {
        let order = self.order;
        for &id in &order[comp] {
            self.instruction(id, region);
        }
    }

    fn instruction(&mut self, id: InstrId, region: usize) {
        let instr = &self.module.instrs[id];
        if is_structural(&instr.op) {
            self.spans[id].start = self.next;
            self.spans[id].end = self.next;
            return;
        }
        let start = self.tick();
        let mut inner = Vec::new();
        match &instr.op {
            Op::While { condition, body } => {
                self.use_all(instr.operands[0], start, region);
                inner = self.while_loop(id, *condition, *body, region);
            }
            Op::Conditional { branches } => {
                self.use_all(instr.operands[0], start, region);
                for (i, &branch) in branches.iter().enumerate() {
                    let nested = self.nested(branch, id, CallKind::Branch(i), region);
                    let close = self.tick();
                    for leaf in 0..self.flow.at(id).len() {
                        if self.flow.is_merge(id, leaf) {
                            let value = self.flow.at(self.module.comps[branch].root)[leaf];
                            self.use_value(value, close, nested);
                        }
                    }
                    inner.push(close);
                }
            }
            Op::Call { body, .. } => self.computation(*body, region),
            _ => {
                for &operand in &instr.operands {
                    self.use_all(operand, start, region);
                }
                self.spans.set(
                    id,
                    Span {
                        start,
                        end: start,
                        inner,
                    },
                );
                return;
            }
        }
        let end = self.tick();
        self.spans.set(id, Span { start, end, inner });
    }

    fn while_loop(
        &mut self,
        id: InstrId,
        condition: CompId,
        body: CompId,
        region: usize,
    ) -> Vec<Point> {
        let nested = self.nested(condition, id, CallKind::Condition, region);
        let test = self.tick();
        self.use_all(self.module.comps[condition].root, test, nested);
        let nested = self.nested(body, id, CallKind::Body, region);
        let close = self.tick();
        for leaf in 0..self.flow.at(id).len() {
            if self.flow.is_state(id, leaf) {
                let value = self.flow.at(self.module.comps[body].root)[leaf];
                self.use_value(value, close, nested);
            }
        }
        vec![test, close]
    }

    /// The region in which a value is defined and the point.
    fn definition(&self, value: ValueId) -> (Point, usize) {
        let value = &self.flow.values()[value];
        let span = &self.spans[value.instr];
        let region = self.region_of_instr(value.instr);
        match value.kind {
            ValueKind::Parameter | ValueKind::Constant => (0, region),
            ValueKind::State | ValueKind::Computed => (span.start, region),
            ValueKind::Merge => (span.end, region),
        }
    }

    fn region_of_instr(&self, instr: InstrId) -> usize {
        let mut comp = self.module.instrs[instr].parent;
        loop {
            match self.flow.caller(comp) {
                None => return 0,
                Some((caller, CallKind::Call)) => comp = self.module.instrs[caller].parent,
                Some((caller, CallKind::Condition)) => return self.region_of[caller][0],
                Some((caller, CallKind::Body)) => return self.region_of[caller][1],
                Some((caller, CallKind::Branch(i))) => return self.region_of[caller][i],
                Some((_, CallKind::Entry)) => return 0,
            }
        }
    }

    fn segments(&self, end: Point) -> IdMap<ValueId, Vec<Segment>> {
        let mut out: IdMap<ValueId, Vec<Segment>> = IdMap::new();
        let mut current = vec![false; self.flow.values().len()];
        for &comp in self.flow.comps() {
            for &instr in &self.order[comp] {
                for &value in self.flow.at(instr) {
                    current[value.index()] = true;
                }
            }
        }
        for (id, value) in self.flow.values().iter() {
            // Values that turned out to be another one have no life of their own.
            if !current[id.index()] {
                continue;
            }
            let uses = &self.uses[id];
            let mut segments = match value.kind {
                ValueKind::Constant => vec![Segment { start: 0, end }],
                ValueKind::State => self.state_segments(value.instr, uses),
                ValueKind::Merge => {
                    let (point, region) = self.definition(id);
                    let closes = self.spans[value.instr].inner.iter();
                    let mut segments: Vec<_> =
                        closes.map(|&c| Segment { start: c, end: c }).collect();
                    self.cover(region, point, uses, &mut segments);
                    segments
                }
                ValueKind::Parameter | ValueKind::Computed => {
                    let (point, region) = self.definition(id);
                    let mut segments = Vec::new();
                    self.cover(region, point, uses, &mut segments);
                    segments
                }
            };
            join(&mut segments);
            out.set(id, segments);
        }
        out
    }

    /// A loop's state: from the start through the test and the uses in the body, and from the close
    /// of the body through the uses after the loop.
    fn state_segments(&self, instr: InstrId, uses: &[Use]) -> Vec<Segment> {
        let span = &self.spans[instr];
        let (condition, body) = (self.region_of[instr][0], self.region_of[instr][1]);
        let (mut inside, mut after) = (Vec::new(), Vec::new());
        for &one in uses {
            if self.lift(one, body).is_some() {
                inside.push(one);
            } else if self.lift(one, condition).is_none() {
                after.push(one);
            }
        }
        let (test, close) = (span.inner[0], span.inner[1]);
        let mut segments = vec![
            Segment {
                start: span.start,
                end: test,
            },
            Segment {
                start: close,
                end: span.end,
            },
        ];
        if !inside.is_empty() {
            self.cover(body, test, &inside, &mut segments);
        }
        self.cover(self.region_of_instr(instr), span.end, &after, &mut segments);
        segments
    }

    /// Where in `region` a use takes place: its own point, or the instruction of `region` that runs
    /// the region of the use.
    fn lift(&self, one: Use, region: usize) -> Option<(Point, Option<(InstrId, CallKind)>)> {
        if one.region == region {
            return Some((one.point, None));
        }
        let mut at = one.region;
        while let Some((caller, kind, parent)) = self.regions[at].parent {
            if parent == region {
                return Some((self.spans[caller].end, Some((caller, kind))));
            }
            at = parent;
        }
        None
    }

    /// Adds the segments of a value that exists from `start` on in `region` and has these uses.
    fn cover(&self, region: usize, start: Point, uses: &[Use], out: &mut Vec<Segment>) {
        let mut last = start;
        let mut runner = None;
        for &one in uses {
            let Some((point, caller)) = self.lift(one, region) else {
                continue;
            };
            if point > last {
                last = point;
                runner = caller;
            }
        }
        let Some((caller, CallKind::Branch(_))) = runner else {
            out.push(Segment { start, end: last });
            return;
        };
        out.push(Segment {
            start,
            end: self.spans[caller].start,
        });
        let mut by_branch: BTreeMap<usize, Vec<Use>> = BTreeMap::new();
        for &one in uses {
            let branches = self.region_of[caller].iter().copied();
            for branch in branches.filter(|&b| self.lift(one, b).is_some()) {
                by_branch.entry(branch).or_default().push(one);
            }
        }
        for (branch, uses) in by_branch {
            self.cover(branch, self.regions[branch].start, &uses, out);
        }
    }
}

/// Sorts segments and joins those that overlap.
fn join(segments: &mut Vec<Segment>) {
    segments.sort_unstable();
    let mut joined: Vec<Segment> = Vec::with_capacity(segments.len());
    for &segment in segments.iter() {
        match joined.last_mut() {
            Some(last) if segment.start <= last.end => last.end = last.end.max(segment.end),
            _ => joined.push(segment),
        }
    }
    *segments = joined;
}
