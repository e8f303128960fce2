//! What thunks do to memory in their order: nothing is read before it is written, and every byte of
//! the result is written.
//!
//! A loop body may never run, so what it writes counts for its own later thunks only, unless the
//! trip count says it runs. Of branches, what all of them write counts.

use std::collections::BTreeMap;

use crate::base::Id;
use crate::executable::Access;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Executable;
use crate::executable::Slice;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::check::Findings;

pub(super) fn check(executable: &Executable, findings: &mut Findings) {
    let mut written = Written::default();
    for (id, allocation) in executable.allocs.iter() {
        if matches!(
            allocation.kind,
            AllocKind::Parameter { .. } | AllocKind::Constant(_)
        ) {
            written.add(&Slice {
                alloc: id,
                offset: 0,
                size: allocation.size.0,
            });
        }
    }
    let mut walker = Walker {
        executable,
        findings,
    };
    walker.sequence(&executable.thunks, "thunks", &mut written);
    for output in &executable.signature.outputs {
        if !written.covers(&output.slice) {
            let path = format!("outputs[{:?}]", output.index.as_slice());
            findings.add(path, "no thunk writes all of this result");
        }
    }
}

/// Byte ranges of each allocation that hold data: start to end, disjoint and not touching.
#[derive(Clone, Default)]
struct Written {
    ranges: BTreeMap<AllocId, BTreeMap<u64, u64>>,
}

impl Written {
    fn add(&mut self, slice: &Slice) {
        if slice.size == 0 {
            return;
        }
        let ranges = self.ranges.entry(slice.alloc).or_default();
        let (mut start, mut end) = (slice.offset, slice.offset + slice.size);
        while let Some((&s, &e)) = ranges.range(..=end).next_back()
            && e >= start
        {
            start = start.min(s);
            end = end.max(e);
            ranges.remove(&s);
        }
        ranges.insert(start, end);
    }

    fn covers(&self, slice: &Slice) -> bool {
        if slice.size == 0 {
            return true;
        }
        let ranges = self.ranges.get(&slice.alloc);
        let before = ranges.and_then(|ranges| ranges.range(..=slice.offset).next_back());
        before.is_some_and(|(_, &end)| end >= slice.offset + slice.size)
    }

    /// What both hold.
    fn intersection(&self, other: &Self) -> Self {
        let mut out = Self::default();
        for (&alloc, ranges) in &self.ranges {
            let Some(others) = other.ranges.get(&alloc) else {
                continue;
            };
            for (&start, &end) in ranges {
                let from = others
                    .range(..=start)
                    .next_back()
                    .map_or(start, |(&s, _)| s);
                for (&s, &e) in others.range(from..end) {
                    let (s, e) = (s.max(start), e.min(end));
                    if s < e {
                        out.ranges.entry(alloc).or_default().insert(s, e);
                    }
                }
            }
        }
        out
    }
}

struct Walker<'e, 'f> {
    executable: &'e Executable,
    findings: &'f mut Findings,
}

impl Walker<'_, '_> {
    fn sequence(&mut self, sequence: &ThunkSequence, path: &str, written: &mut Written) {
        for (i, thunk) in sequence.0.iter().enumerate() {
            let path = format!("{path}[{i}] `{}`", thunk.origin);
            self.thunk(thunk, &path, written);
        }
    }

    fn thunk(&mut self, thunk: &Thunk, path: &str, written: &mut Written) {
        match &thunk.kind {
            ThunkKind::While(w) => {
                if w.trip_count.is_none() {
                    self.sequence(&w.condition, &format!("{path}.0"), written);
                    self.read(&w.predicate, path, written);
                }
                let mut inside = written.clone();
                self.sequence(&w.body, &format!("{path}.1"), &mut inside);
                if w.trip_count.is_some_and(|count| count > 0) {
                    *written = inside;
                }
            }
            ThunkKind::Conditional(c) => {
                self.read(&c.branch_index, path, written);
                let mut common: Option<Written> = None;
                for (n, branch) in c.branches.iter().enumerate() {
                    let mut after = written.clone();
                    self.sequence(branch, &format!("{path}.{n}"), &mut after);
                    common = Some(match common {
                        Some(common) => common.intersection(&after),
                        None => after,
                    });
                }
                *written = common.unwrap_or_default();
            }
            ThunkKind::Windows(windows) => {
                let uses = windows.uses();
                for used in uses.iter().filter(|u| u.access != Access::Write) {
                    self.read(&used.slice, path, written);
                }
                for window in windows.windows.iter() {
                    if window.access != Access::Write {
                        written.add(&self.whole(window.alloc));
                    }
                }
                self.sequence(&windows.thunks, &format!("{path}.0"), written);
                for used in uses.iter().filter(|u| u.access != Access::Read) {
                    written.add(&used.slice);
                }
            }
            ThunkKind::Call(sequence) => self.sequence(sequence, &format!("{path}.0"), written),
            other => {
                let uses = other.own_uses();
                for used in uses.iter().filter(|u| u.access != Access::Write) {
                    if !self.is_passed_through(other, &used.slice) {
                        self.read(&used.slice, path, written);
                    }
                }
                for used in uses.iter().filter(|u| u.access != Access::Read) {
                    written.add(&used.slice);
                }
            }
        }
    }

    /// All of an allocation.
    fn whole(&self, alloc: AllocId) -> Slice {
        let allocation = self.executable.allocs.get(alloc);
        Slice {
            alloc,
            offset: 0,
            size: allocation.map_or(0, |a| a.size.0),
        }
    }

    /// Whether a kernel of another producer lists a slice among arguments and results alike: XLA
    /// does so with scratch memory of a loop that it makes one kernel of.
    fn is_passed_through(&self, kind: &ThunkKind, slice: &Slice) -> bool {
        let ThunkKind::Kernel(thunk) = kind else {
            return false;
        };
        let kernel = self.executable.kernels.get(thunk.kernel);
        kernel.is_some_and(|kernel| kernel.arity.is_none())
            && thunk.results.iter().any(|result| result.slice == *slice)
    }

    fn read(&mut self, slice: &Slice, path: &str, written: &Written) {
        if !written.covers(slice) {
            let message = format!(
                "{} bytes at offset {} of allocation {} are read before they are written",
                slice.size,
                slice.offset,
                slice.alloc.index()
            );
            self.findings.add(path, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(offset: u64, size: u64) -> Slice {
        Slice {
            alloc: AllocId::from_index(0),
            offset,
            size,
        }
    }

    #[test]
    fn ranges_merge_and_intersect() {
        let mut a = Written::default();
        a.add(&slice(0, 4));
        a.add(&slice(8, 4));
        assert!(!a.covers(&slice(0, 12)));
        let mut b = a.clone();
        a.add(&slice(4, 4));
        assert!(a.covers(&slice(0, 12)));
        b.add(&slice(20, 4));
        let both = a.intersection(&b);
        assert!(both.covers(&slice(0, 4)) && both.covers(&slice(8, 4)));
        assert!(!both.covers(&slice(3, 2)) && !both.covers(&slice(20, 1)));
    }
}
