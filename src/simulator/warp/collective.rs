//! Lanes of a member mask together.

use crate::simulator::code::Collective;
use crate::simulator::code::CollectiveKind;
use crate::simulator::code::ReduxOp;
use crate::simulator::code::ShuffleMode;
use crate::simulator::code::VoteMode;
use crate::simulator::launch::ReportKind;
use crate::simulator::number::float32;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::state::Wait;
use crate::simulator::warp::worker::Fault;

impl Exec<'_, '_> {
    /// An instruction of the lanes of a member mask: waits until all of them are there.
    pub fn collective(&mut self, c: &Collective) -> Result<Flow, Fault> {
        if !c.members.is_some() {
            self.together(c, self.mask);
            return Ok(Flow::Next);
        }
        let members = *self.warp.file.read::<u32>(c.members);
        let live = self.warp.live;
        let first = members[self.first_lane()];
        let same = self.lanes().all(|lane| members[lane] == first);
        let complete = if same {
            first & live & !self.mask == 0
        } else {
            self.lanes()
                .all(|lane| members[lane] & live & !self.mask == 0)
        };
        if !complete && !self.cur.go {
            self.part();
            self.cur.wait = Wait::Members;
            return Ok(Flow::Choose);
        }
        let outside = self.lanes().find(|lane| members[*lane] >> lane & 1 == 0);
        if let Some(lane) = outside {
            let message = format!("lane {lane} is not in its own mask {:#x}", members[lane]);
            self.note(self.report(ReportKind::ShuffleMask, lane, message));
        } else if !complete {
            let missing = first & live & !self.mask;
            let message = format!("lanes {missing:#x} of the mask {first:#x} never came here");
            self.note(self.report(ReportKind::ShuffleMask, self.first_lane(), message));
        }
        if same {
            self.together(c, self.mask);
        } else {
            let mut left = self.mask;
            while left != 0 {
                let mask = members[left.trailing_zeros() as usize];
                let group = (0..32).filter(|l| left >> l & 1 != 0 && members[*l] == mask);
                let group = group.fold(0u32, |all, lane| all | 1 << lane);
                self.together(c, group);
                left &= !group;
            }
        }
        Ok(Flow::Next)
    }

    fn together(&mut self, c: &Collective, group: u32) {
        match c.kind {
            CollectiveKind::Shuffle(mode) => self.shuffle(c, mode, group),
            CollectiveKind::Vote(mode, negated) => {
                let p = self.warp.file.predicate(c.a);
                let p = if negated { !p } else { p } & group;
                let result = match mode {
                    VoteMode::All => p == group,
                    VoteMode::Any => p != 0,
                    VoteMode::Uni => p == group || p == 0,
                    VoteMode::Ballot => {
                        self.warp.file.write::<u32>(c.d, group, &[p; 32]);
                        return;
                    }
                };
                let bits = if result { u32::MAX } else { 0 };
                self.warp.file.set_predicate(c.p, group, bits);
            }
            CollectiveKind::MatchAny(wide) | CollectiveKind::MatchAll(wide) => {
                let values = self.values(c, wide);
                let all = matches!(c.kind, CollectiveKind::MatchAll(_));
                self.matching(c, group, &values, all);
            }
            CollectiveKind::Redux(op) => {
                let values = *self.warp.file.read::<u32>(c.a);
                let mut lanes = (0..32).filter(|l| group >> l & 1 != 0).map(|l| values[l]);
                let first = lanes.next().unwrap_or(0);
                let result = lanes.fold(prepare(op, first), |a, b| reduce(op, a, prepare(op, b)));
                self.warp.file.write::<u32>(c.d, group, &[result; 32]);
            }
            CollectiveKind::Elect => {
                let leader = group.trailing_zeros().min(31);
                if c.p.is_some() {
                    self.warp.file.set_predicate(c.p, group, 1 << leader);
                }
                self.warp.file.write::<u32>(c.d, group, &[leader; 32]);
            }
            CollectiveKind::Sync => {}
        }
    }

    fn values(&self, c: &Collective, wide: bool) -> [u64; 32] {
        if wide {
            *self.warp.file.read::<u64>(c.a)
        } else {
            self.warp.file.read::<u32>(c.a).map(u64::from)
        }
    }

    fn matching(&mut self, c: &Collective, group: u32, values: &[u64; 32], all: bool) {
        let mut out = [0u32; 32];
        for lane in (0..32).filter(|l| group >> l & 1 != 0) {
            let same = (0..32).filter(|l| group >> l & 1 != 0 && values[*l] == values[lane]);
            out[lane] = same.fold(0, |mask, l| mask | 1 << l);
        }
        if all {
            let first = out[group.trailing_zeros().min(31) as usize];
            let holds = first == group;
            out = [if holds { group } else { 0 }; 32];
            if c.p.is_some() {
                let bits = if holds { u32::MAX } else { 0 };
                self.warp.file.set_predicate(c.p, group, bits);
            }
        }
        self.warp.file.write::<u32>(c.d, group, &out);
    }

    fn shuffle(&mut self, c: &Collective, mode: ShuffleMode, group: u32) {
        let source = *self.warp.file.read::<u32>(c.a);
        let amount = *self.warp.file.read::<u32>(c.b);
        let clamp = *self.warp.file.read::<u32>(c.c);
        let mut out = source;
        let mut inside = 0u32;
        let mut stray = None;
        for lane in 0..32u32 {
            if group >> lane & 1 == 0 {
                continue;
            }
            let amount = amount[lane as usize] & 31;
            let limits = clamp[lane as usize];
            let (value, segment) = (limits & 31, limits >> 8 & 31);
            let most = (lane & segment) | (value & !segment);
            let (from, fits) = match mode {
                ShuffleMode::Up => {
                    let from = lane as i32 - amount as i32;
                    (from, from >= most as i32)
                }
                ShuffleMode::Down => ((lane + amount) as i32, lane + amount <= most),
                ShuffleMode::Bfly => ((lane ^ amount) as i32, lane ^ amount <= most),
                ShuffleMode::Idx => {
                    let from = (lane & segment) | (amount & !segment);
                    (from as i32, from <= most)
                }
            };
            let from = if fits { (from as u32) & 31 } else { lane };
            inside |= u32::from(fits) << lane;
            out[lane as usize] = source[from as usize];
            if group >> from & 1 == 0 && self.warp.live >> from & 1 != 0 {
                stray = Some((lane, from));
            }
        }
        if let Some((lane, from)) = stray {
            let message = format!("lane {lane} reads from lane {from}, which is not in the mask");
            self.note(self.report(ReportKind::ShuffleMask, lane as usize, message));
        }
        self.warp.file.write::<u32>(c.d, group, &out);
        if c.p.is_some() {
            self.warp.file.set_predicate(c.p, group, inside);
        }
    }

    /// Lets waiting fragments go that have everybody they wait for. Lanes at the same instruction
    /// become one fragment.
    pub fn release(&mut self) {
        let waiting = |w: Wait| matches!(w, Wait::Members | Wait::Aligned);
        let mut i = 0;
        while i < self.warp.fragments.len() {
            let mut j = i + 1;
            while waiting(self.warp.fragments[i].wait) && j < self.warp.fragments.len() {
                let (a, b) = (&self.warp.fragments[i], &self.warp.fragments[j]);
                if a.wait == b.wait && a.meets(b) {
                    let gone = self.warp.fragments.swap_remove(j);
                    self.warp.fragments[i].mask |= gone.mask;
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
        let live = self.warp.live;
        let mut parted = Vec::new();
        for index in 0..self.warp.fragments.len() {
            let fragment = &self.warp.fragments[index];
            match fragment.wait {
                Wait::Aligned if fragment.mask == live => {
                    self.warp.fragments[index].wait = Wait::Ready;
                }
                Wait::Members => {
                    let inst = &self.worker.grid.module.code[fragment.pc as usize];
                    let crate::simulator::code::Op::Collective(c) = &inst.op else {
                        continue;
                    };
                    let members = self.warp.file.read::<u32>(c.members);
                    let all = fragment.mask;
                    let there = (0..32)
                        .filter(|l| all >> l & 1 != 0 && members[*l as usize] & live & !all == 0);
                    let there = there.fold(0u32, |mask, lane: u32| mask | 1 << lane);
                    if there == 0 {
                        continue;
                    }
                    if there != all {
                        let mut rest = fragment.clone();
                        rest.mask = all & !there;
                        parted.push(rest);
                    }
                    let fragment = &mut self.warp.fragments[index];
                    fragment.mask = there;
                    fragment.wait = Wait::Ready;
                }
                _ => {}
            }
        }
        self.warp.fragments.extend(parted);
    }
}

fn prepare(op: ReduxOp, a: u32) -> u32 {
    match op {
        ReduxOp::MinF { abs: true, .. } | ReduxOp::MaxF { abs: true, .. } => float32::abs(a),
        _ => a,
    }
}

fn reduce(op: ReduxOp, a: u32, b: u32) -> u32 {
    match op {
        ReduxOp::Add => a.wrapping_add(b),
        ReduxOp::MinU => a.min(b),
        ReduxOp::MaxU => a.max(b),
        ReduxOp::MinS => (a as i32).min(b as i32) as u32,
        ReduxOp::MaxS => (a as i32).max(b as i32) as u32,
        ReduxOp::And => a & b,
        ReduxOp::Or => a | b,
        ReduxOp::Xor => a ^ b,
        ReduxOp::MinF { nan: false, .. } => float32::min(a, b),
        ReduxOp::MinF { nan: true, .. } => float32::min_nan(a, b),
        ReduxOp::MaxF { nan: false, .. } => float32::max(a, b),
        ReduxOp::MaxF { nan: true, .. } => float32::max_nan(a, b),
    }
}
