//! Sequences of thunks on any device. What holds other thunks is resolved and run the same way
//! everywhere; everything else is the device's own.

use crate::base::Result;
use crate::executable::Slice;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::runtime::binding::Watch;

/// One thunk, ready to run: `B` is memory of the device, `S` a step of its own.
pub enum Step<B, S> {
    /// A step of the device.
    Own(S),
    /// Runs these.
    Call(Vec<Self>),
    /// Runs a body again and again.
    While(Box<Loop<B, S>>),
    /// Index and branches.
    Conditional(B, Vec<Vec<Self>>),
}

/// A loop, ready to run.
pub struct Loop<B, S> {
    predicate: B,
    condition: Vec<Step<B, S>>,
    body: Vec<Step<B, S>>,
    trip_count: Option<u64>,
}

/// Steps as a resolver makes them.
pub type StepsOf<R> = Vec<Step<<R as Resolve>::Block, <R as Resolve>::Own>>;

/// Looks up what thunks name.
pub trait Resolve {
    /// Memory.
    type Block;
    /// A step of the device.
    type Own;

    /// The memory of a slice.
    fn block(&self, slice: &Slice) -> Self::Block;

    /// Adds the steps of a thunk that is the device's own.
    ///
    /// # Errors
    /// `XA8003` and `XA8004` when something it names cannot be made, `XA9001` for thunks that loading
    /// should have refused.
    fn own(&self, thunk: &Thunk, steps: &mut Vec<Self::Own>) -> Result<()>;

    /// The steps of a sequence.
    ///
    /// # Errors
    /// As [`Resolve::own`].
    fn sequence(&self, sequence: &ThunkSequence) -> Result<StepsOf<Self>> {
        let mut steps = Vec::with_capacity(sequence.0.len());
        let mut own = Vec::new();
        for thunk in &sequence.0 {
            match &thunk.kind {
                ThunkKind::Call(sequence) => steps.push(Step::Call(self.sequence(sequence)?)),
                ThunkKind::While(w) => steps.push(Step::While(Box::new(Loop {
                    predicate: self.block(&w.predicate),
                    condition: self.sequence(&w.condition)?,
                    body: self.sequence(&w.body)?,
                    trip_count: w.trip_count,
                }))),
                ThunkKind::Conditional(c) => {
                    let branches = c.branches.iter().map(|branch| self.sequence(branch));
                    let branches = branches.collect::<Result<_>>()?;
                    steps.push(Step::Conditional(self.block(&c.branch_index), branches));
                }
                _ => {
                    self.own(thunk, &mut own)?;
                    steps.extend(own.drain(..).map(Step::Own));
                }
            }
        }
        Ok(steps)
    }
}

/// Runs steps.
pub trait Run {
    /// Memory.
    type Block: Copy;
    /// A step of the device.
    type Own;

    /// Runs a step of the device. `loops` has how many steps each loop around it has made, the
    /// innermost last.
    ///
    /// # Errors
    /// `XA8004` when it fails.
    fn own<W: Watch>(
        &mut self,
        step: &Self::Own,
        loops: &mut Vec<u64>,
        watch: &mut W,
    ) -> Result<()>;

    /// What the steps so far left in the first bytes of a block; gives how many there are.
    ///
    /// # Errors
    /// `XA8004` when one of them failed.
    fn read(&mut self, block: Self::Block, bytes: &mut [u8; 4]) -> Result<usize>;

    /// Runs steps one after the other.
    ///
    /// # Errors
    /// As [`Run::own`].
    fn run<W: Watch>(
        &mut self,
        steps: &[Step<Self::Block, Self::Own>],
        loops: &mut Vec<u64>,
        watch: &mut W,
    ) -> Result<()> {
        for step in steps {
            match step {
                Step::Own(step) => self.own(step, loops, watch)?,
                Step::Call(steps) => self.run(steps, loops, watch)?,
                Step::Conditional(index, branches) => {
                    let mut bytes = [0; 4];
                    let size = self.read(*index, &mut bytes)?;
                    let branch = select_branch(&bytes[..size], branches.len());
                    self.run(&branches[branch], loops, watch)?;
                }
                Step::While(w) => {
                    loops.push(0);
                    let run = self.run_loop(w, loops, watch);
                    loops.pop();
                    run?;
                }
            }
        }
        Ok(())
    }

    /// Runs a loop whose count is the last one.
    ///
    /// # Errors
    /// As [`Run::own`].
    fn run_loop<W: Watch>(
        &mut self,
        w: &Loop<Self::Block, Self::Own>,
        loops: &mut Vec<u64>,
        watch: &mut W,
    ) -> Result<()> {
        let mut made = 0;
        loop {
            let goes_on = match w.trip_count {
                Some(count) => made < count,
                None => {
                    self.run(&w.condition, loops, watch)?;
                    let mut bytes = [0; 4];
                    self.read(w.predicate, &mut bytes)?;
                    bytes[0] != 0
                }
            };
            if !goes_on {
                return Ok(());
            }
            self.run(&w.body, loops, watch)?;
            made += 1;
            if let Some(count) = loops.last_mut() {
                *count = made;
            }
        }
    }
}

/// The branch an index names: a pred (true is the first), or an s32 (out of range is the last).
fn select_branch(index: &[u8], branches: usize) -> usize {
    match index.first_chunk::<4>() {
        Some(word) => {
            let branch = usize::try_from(i32::from_le_bytes(*word)).ok();
            branch.filter(|b| *b < branches).unwrap_or(branches - 1)
        }
        None => usize::from(index.first() == Some(&0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::executable::AllocId;
    use crate::executable::ConditionalThunk;
    use crate::executable::WhileThunk;

    /// A device whose memory is 8 bytes: a fill adds its value to the byte of its slice.
    struct Adder {
        memory: [u8; 8],
        /// The counts of the loops at each fill.
        seen: Vec<Vec<u64>>,
    }

    fn slice(offset: u64, size: u64) -> Slice {
        Slice {
            alloc: AllocId::from_index(0),
            offset,
            size,
        }
    }

    fn add(offset: u64, value: u32) -> ThunkKind {
        ThunkKind::Memset {
            destination: slice(offset, 1),
            value,
        }
    }

    fn sequence(kinds: Vec<ThunkKind>) -> ThunkSequence {
        let thunks = kinds.into_iter().map(|kind| Thunk {
            origin: String::new(),
            kind,
        });
        ThunkSequence(thunks.collect())
    }

    impl Resolve for Adder {
        type Block = Slice;
        type Own = (usize, u8);
        fn block(&self, slice: &Slice) -> Slice {
            *slice
        }
        fn own(&self, thunk: &Thunk, steps: &mut Vec<(usize, u8)>) -> Result<()> {
            if let ThunkKind::Memset { destination, value } = &thunk.kind {
                steps.push((destination.offset as usize, *value as u8));
            }
            Ok(())
        }
    }

    impl Run for Adder {
        type Block = Slice;
        type Own = (usize, u8);
        fn own<W: Watch>(
            &mut self,
            step: &(usize, u8),
            loops: &mut Vec<u64>,
            _: &mut W,
        ) -> Result<()> {
            self.memory[step.0] = self.memory[step.0].wrapping_add(step.1);
            self.seen.push(loops.clone());
            Ok(())
        }
        fn read(&mut self, block: Slice, bytes: &mut [u8; 4]) -> Result<usize> {
            let (start, size) = (block.offset as usize, block.size as usize);
            bytes[..size].copy_from_slice(&self.memory[start..start + size]);
            Ok(size)
        }
    }

    fn run(memory: [u8; 8], kinds: Vec<ThunkKind>) -> Adder {
        let mut device = Adder {
            memory,
            seen: Vec::new(),
        };
        let steps = device.sequence(&sequence(kinds)).unwrap();
        let mut loops = Vec::new();
        let watch = &mut crate::runtime::binding::Unwatched;
        device.run(&steps, &mut loops, watch).unwrap();
        assert!(loops.is_empty());
        device
    }

    #[test]
    fn loops_run_until_their_predicate_is_false_and_are_counted() {
        // The condition takes one off byte 0, which holds 3; the body adds 5 to byte 1.
        let w = WhileThunk {
            predicate: slice(0, 1),
            condition: sequence(vec![add(0, 255)]),
            body: sequence(vec![add(1, 5)]),
            trip_count: None,
        };
        let device = run(
            [3, 0, 0, 0, 0, 0, 0, 0],
            vec![ThunkKind::While(Box::new(w))],
        );
        assert_eq!(device.memory[..2], [0, 10]);
        assert_eq!(device.seen, [[0], [0], [1], [1], [2]]);
    }

    #[test]
    fn known_counts_need_no_condition_and_loops_nest() {
        let counted = |count, body| {
            ThunkKind::While(Box::new(WhileThunk {
                predicate: slice(0, 1),
                condition: sequence(vec![add(0, 1)]),
                body: sequence(body),
                trip_count: Some(count),
            }))
        };
        let device = run([0; 8], vec![counted(2, vec![counted(3, vec![add(1, 1)])])]);
        assert_eq!(device.memory[..2], [0, 6]);
        assert_eq!(device.seen[4], [1, 1]);
    }

    #[test]
    fn branches_are_selected_as_upstream_does() {
        let branch = |index: [u8; 4], size: u64, count: u32| {
            let branches = (0..count).map(|n| sequence(vec![add(7, n + 1)]));
            let kind = ThunkKind::Conditional(Box::new(ConditionalThunk {
                branch_index: slice(0, size),
                is_pred: size == 1,
                branches: branches.collect(),
            }));
            let [a, b, c, d] = index;
            run(
                [a, b, c, d, 0, 0, 0, 0],
                vec![ThunkKind::Call(sequence(vec![kind]))],
            )
            .memory[7]
        };
        assert_eq!(branch([1, 0, 0, 0], 1, 2), 1);
        assert_eq!(branch([0, 0, 0, 0], 1, 2), 2);
        assert_eq!(branch(2i32.to_le_bytes(), 4, 4), 3);
        assert_eq!(branch(4i32.to_le_bytes(), 4, 4), 4);
        assert_eq!(branch((-1i32).to_le_bytes(), 4, 4), 4);
    }
}
