//! Calls and returns.

use std::rc::Rc;

use crate::simulator::code::Call;
use crate::simulator::code::Callee;
use crate::simulator::code::Op;
use crate::simulator::code::Pass;
use crate::simulator::code::Place;
use crate::simulator::code::Stack;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::raw;
use crate::simulator::warp::access::deposit;
use crate::simulator::warp::access::fetch;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::state::Frame;
use crate::simulator::warp::worker::Fault;

/// Most calls within calls.
const MOST_DEPTH: u32 = 4096;

impl Exec<'_, '_> {
    /// Host address of a byte of a lane's local memory. The caller has checked the frame.
    fn local_address(&self, offset: u32, lane: usize) -> u64 {
        let block = &self.cluster.blocks[self.block];
        let thread = u64::from(self.warp.id) * 32 + lane as u64;
        let offset = offset.min(block.local_bytes.saturating_sub(1));
        block.local.address() + thread * u64::from(block.local_bytes) + u64::from(offset)
    }

    /// Whether a frame of `bytes` at `local` fits the thread's local memory.
    fn frame_fits(&self, local: u32, bytes: u32) -> bool {
        let all = self.cluster.blocks[self.block].local_bytes;
        u64::from(local) + u64::from(bytes) <= u64::from(all)
    }

    /// Whether a frame of `bytes` at `local` keeps away from the stacks of the lanes that execute.
    fn is_free(&self, local: u32, bytes: u32) -> bool {
        let end = self.lanes().map(|lane| self.warp.stack[lane]).min();
        u64::from(local) + u64::from(bytes) <= u64::from(end.unwrap_or(0))
    }

    /// `alloca`, `stacksave` and `stackrestore`
    pub fn stack(&mut self, stack: &Stack) -> Result<Flow, Fault> {
        for lane in self.lanes() {
            match *stack {
                Stack::Save(d) => {
                    let end = u64::from(self.warp.stack[lane]);
                    self.set_register(d.slot, d.class, lane, end);
                }
                Stack::Restore(a) => {
                    let end = self.register(a.slot, a.class, lane);
                    let most = self.cluster.blocks[self.block].local_bytes;
                    if end > u64::from(most) {
                        let message = format!("{end:#x} is no end of a stack of {most} bytes");
                        let kind = ReportKind::IllegalInstruction;
                        return Err(Box::new(self.report(kind, lane, message)));
                    }
                    self.warp.stack[lane] = end as u32;
                }
                Stack::Allocate {
                    d,
                    size,
                    align,
                    frame,
                } => {
                    let size = self.register(size.slot, size.class, lane);
                    let least = u64::from(self.cur.local) + u64::from(frame);
                    let start = u64::from(self.warp.stack[lane]).checked_sub(size);
                    let start = start.map(|at| at & !u64::from(align - 1));
                    let Some(start) = start.filter(|at| *at >= least) else {
                        let message = format!("alloca of {size} bytes");
                        let kind = ReportKind::StackOverflow;
                        return Err(Box::new(self.report(kind, lane, message)));
                    };
                    self.warp.stack[lane] = start as u32;
                    self.set_register(d.slot, d.class, lane, start);
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Copies the bytes of a place of one lane.
    fn read_place(&self, place: &Place, bytes: u32, local: u32, lane: usize) -> Vec<u8> {
        match place {
            Place::Frame(at) => {
                let mut out = vec![0; bytes as usize];
                if self.frame_fits(local, at.saturating_add(bytes)) {
                    raw::read(self.local_address(local + at, lane), &mut out);
                }
                out
            }
            Place::Register(reg) => {
                let mut out = self
                    .register(reg.slot, reg.class, lane)
                    .to_le_bytes()
                    .to_vec();
                if reg.class == Class::W128 {
                    let high = crate::simulator::warp::lanes::Slot(reg.slot.0 + 256);
                    out.extend(self.register(high, Class::W64, lane).to_le_bytes());
                }
                out.resize(bytes.max(1) as usize, 0);
                out
            }
        }
    }

    /// Writes the bytes of a place of one lane.
    fn write_place(&mut self, place: &Place, bytes: &[u8], local: u32, lane: usize) {
        match place {
            Place::Frame(at) => {
                if self.frame_fits(local, at.saturating_add(bytes.len() as u32)) {
                    raw::write(self.local_address(local + at, lane), bytes);
                }
            }
            Place::Register(reg) => {
                let part = |from: usize| {
                    let mut word = [0u8; 8];
                    for (to, byte) in word.iter_mut().zip(bytes.iter().skip(from)) {
                        *to = *byte;
                    }
                    u64::from_le_bytes(word)
                };
                self.set_register(reg.slot, reg.class, lane, part(0));
                if reg.class == Class::W128 {
                    let high = crate::simulator::warp::lanes::Slot(reg.slot.0 + 256);
                    self.set_register(high, Class::W64, lane, part(8));
                }
            }
        }
    }

    /// The value a call passes, of one lane, for functions the device brings along.
    pub fn argument(&self, call: &Call, index: usize, lane: usize) -> u64 {
        let Some(pass) = call.arguments.get(index) else {
            return 0;
        };
        let mut bytes = self.read_place(&pass.caller, pass.bytes.min(8), self.cur.local, lane);
        bytes.resize(8, 0);
        let mut word = [0; 8];
        word.copy_from_slice(&bytes);
        u64::from_le_bytes(word)
    }

    /// Gives a call its first result, of one lane.
    pub fn give(&mut self, call: &Call, lane: usize, value: u64) {
        if let Some(pass) = call.results.first() {
            let bytes = value.to_le_bytes();
            let count = (pass.bytes.min(8)) as usize;
            self.write_place(&pass.caller, &bytes[..count], self.cur.local, lane);
        }
    }

    /// `call`
    pub fn enter(&mut self, call: &Call) -> Result<Flow, Fault> {
        let number = match call.callee {
            Callee::Builtin(builtin) => return self.builtin(builtin, call),
            Callee::Function(number) => number,
            Callee::Register(slot) => {
                let targets = *self.warp.file.read::<u64>(slot);
                let lane = self.first_lane();
                let Some(number) = self.worker.grid.module.function_at(targets[lane]) else {
                    let message = format!("call of {:#x}, which is no function", targets[lane]);
                    return Err(Box::new(self.report(
                        ReportKind::IllegalInstruction,
                        lane,
                        message,
                    )));
                };
                // Lanes that call something else come later.
                let others = self.lanes().filter(|l| targets[*l] != targets[lane]);
                let others = others.fold(0u32, |mask, l| mask | 1 << l);
                if others != 0 {
                    let mut rest = self.cur.clone();
                    rest.mask = others;
                    self.warp.fragments.push(rest);
                    self.mask &= !others;
                    self.cur.mask &= !others;
                }
                number
            }
        };
        self.part();
        let module = self.worker.grid.module;
        let function = &module.functions[number as usize];
        let local = self.cur.local.saturating_add(call.frame);
        if self.cur.depth >= MOST_DEPTH || !self.is_free(local, function.frame) {
            let message = format!(
                "call {} deep needs {} bytes of local memory",
                self.cur.depth + 1,
                u64::from(local) + u64::from(function.frame)
            );
            let report = self.report(ReportKind::StackOverflow, self.first_lane(), message);
            return Err(Box::new(report));
        }
        let saved = call.save.map(|caller| self.save(caller));
        for lane in self.lanes() {
            let values: Vec<Vec<u8>> = call
                .arguments
                .iter()
                .map(|pass| self.read_place(&pass.caller, pass.bytes, self.cur.local, lane))
                .collect();
            for (pass, value) in call.arguments.iter().zip(values) {
                self.write_place(&pass.callee, &value, local, lane);
            }
        }
        let outer = self.cur.frame.take();
        let frame = match &saved {
            Some(_) => None,
            None => self.known_frame(&outer),
        };
        let frame = frame.unwrap_or_else(|| {
            Rc::new(Frame {
                call: self.cur.pc,
                local: self.cur.local,
                saved,
                outer,
            })
        });
        self.cur.frame = Some(frame);
        self.cur.depth += 1;
        self.cur.local = local;
        self.cur.pc = function.start;
        self.cur.go = false;
        Ok(Flow::Choose)
    }

    /// The frame of other lanes that are in the same call, so that all can meet again.
    fn known_frame(&self, outer: &Option<Rc<Frame>>) -> Option<Rc<Frame>> {
        let same = |a: &Option<Rc<Frame>>| match (a, outer) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        };
        let frames = self.warp.fragments.iter().filter_map(|f| f.frame.as_ref());
        let mut found = frames.filter(|f| {
            f.call == self.cur.pc
                && f.local == self.cur.local
                && f.saved.is_none()
                && same(&f.outer)
        });
        found.next().cloned()
    }

    /// The caller's registers, all lanes.
    fn save(&self, caller: u32) -> (u32, Vec<u8>) {
        let function = &self.worker.grid.module.functions[caller as usize];
        let mut bytes = Vec::new();
        for (slot, class) in &function.places {
            let from = *slot as usize;
            let to = from + class.bytes() as usize;
            bytes.extend_from_slice(self.warp.file.bytes().get(from..to).unwrap_or(&[]));
        }
        (caller, bytes)
    }

    /// Gives the lanes that execute their registers back.
    fn restore(&mut self, caller: u32, saved: &[u8]) {
        let module = self.worker.grid.module;
        let mask = self.mask;
        let mut at = 0;
        for (slot, class) in &module.functions[caller as usize].places {
            let size = class.bytes() as usize;
            let Some(old) = saved.get(at..at + size) else {
                return;
            };
            at += size;
            let from = *slot as usize;
            let Some(now) = self.warp.file.bytes_mut().get_mut(from..from + size) else {
                return;
            };
            if *class == Class::Pred {
                for (index, (to, from)) in now.iter_mut().zip(old).enumerate() {
                    let lanes = (mask >> (8 * index)) as u8;
                    *to = (*to & !lanes) | (from & lanes);
                }
                continue;
            }
            let width = if *class == Class::W32 { 4 } else { 8 };
            let cells = now.chunks_mut(width).zip(old.chunks(width));
            for (index, (to, from)) in cells.enumerate() {
                if mask >> (index % 32) & 1 != 0 {
                    to.copy_from_slice(from);
                }
            }
        }
    }

    /// `ret`
    pub fn leave(&mut self) -> Result<Flow, Fault> {
        let Some(frame) = self.cur.frame.clone() else {
            return Ok(self.exit());
        };
        self.part();
        let module = self.worker.grid.module;
        let Op::Call(call) = &module.code[frame.call as usize].op else {
            return Ok(self.exit());
        };
        let local = self.cur.local;
        let read =
            |this: &Self, pass: &Pass, lane| this.read_place(&pass.callee, pass.bytes, local, lane);
        let mut values = Vec::new();
        for lane in self.lanes() {
            let results: Vec<Vec<u8>> = call
                .results
                .iter()
                .map(|pass| read(self, pass, lane))
                .collect();
            values.push((lane, results));
        }
        if let Some((caller, saved)) = &frame.saved {
            self.restore(*caller, saved);
        }
        for (lane, results) in values {
            for (pass, value) in call.results.iter().zip(results) {
                self.write_place(&pass.caller, &value, frame.local, lane);
            }
        }
        self.cur.pc = frame.call + 1;
        self.cur.local = frame.local;
        self.cur.depth -= 1;
        self.cur.frame = frame.outer.clone();
        self.cur.go = false;
        Ok(Flow::Choose)
    }

    /// Up to eight bytes at a generic address of one lane.
    pub fn generic_load(&mut self, address: u64, bytes: u32, lane: usize) -> Result<u64, Fault> {
        let all = self.mask;
        self.mask = 1 << lane;
        let slot = crate::simulator::code::Address {
            space: crate::simulator::code::Space::Generic,
            base: crate::simulator::warp::lanes::Slot::NONE,
            wide: true,
            offset: address as i64,
            frame: false,
        };
        let usage = crate::simulator::warp::resolve::Usage::Read;
        let reached = self.reach(&slot, bytes, 1, usage);
        self.mask = all;
        Ok(fetch(reached?.host[lane], bytes, false))
    }

    /// Up to eight bytes to a generic address of one lane.
    pub fn generic_store(
        &mut self,
        address: u64,
        bytes: u32,
        value: u64,
        lane: usize,
    ) -> Result<(), Fault> {
        let all = self.mask;
        self.mask = 1 << lane;
        let slot = crate::simulator::code::Address {
            space: crate::simulator::code::Space::Generic,
            base: crate::simulator::warp::lanes::Slot::NONE,
            wide: true,
            offset: address as i64,
            frame: false,
        };
        let usage = crate::simulator::warp::resolve::Usage::Write;
        let reached = self.reach(&slot, bytes, 1, usage);
        self.mask = all;
        deposit(reached?.host[lane], bytes, value);
        Ok(())
    }
}
