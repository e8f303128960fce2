//! The barrier objects in shared memory.
//!
//! The 64 bits of one: arrivals still to come in bits 0 to 19, arrivals of a phase in bits 20 to
//! 39, bytes still to come in bits 40 to 61 as a signed number, bit 62 says that it is one, and
//! bit 63 is the phase. A token is the value before the arrival.

use crate::simulator::code::Address;
use crate::simulator::code::Mbarrier;
use crate::simulator::code::MbarrierKind;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::raw;
use crate::simulator::memory::window;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::resolve::Usage;
use crate::simulator::warp::transfer;
use crate::simulator::warp::worker::Fault;

/// Most arrivals of a phase.
const MOST: u64 = (1 << 20) - 1;
const VALID: u64 = 1 << 62;
const PHASE: u64 = 1 << 63;

/// A barrier object taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Arrivals still to come.
    pub pending: i64,
    /// Arrivals of a phase.
    pub expected: i64,
    /// Bytes still to come.
    pub bytes: i64,
    /// The phase at hand.
    pub phase: bool,
}

impl State {
    /// The object of those bits; `None` when they are none.
    pub fn of(bits: u64) -> Option<Self> {
        if bits & VALID == 0 {
            return None;
        }
        Some(Self {
            pending: (bits & MOST) as i64,
            expected: (bits >> 20 & MOST) as i64,
            bytes: ((bits << 2) as i64) >> 42,
            phase: bits & PHASE != 0,
        })
    }
    /// Its bits.
    pub fn bits(self) -> u64 {
        (self.pending as u64 & MOST)
            | (self.expected as u64 & MOST) << 20
            | (self.bytes as u64 & 0x3f_ffff) << 40
            | VALID
            | if self.phase { PHASE } else { 0 }
    }
    /// Begins the next phase when nothing is missing.
    pub fn settle(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase = !self.phase;
            self.pending = self.expected;
        }
    }
}

impl Exec<'_, '_> {
    /// A fault or a note about a barrier object.
    fn misuse(&mut self, lane: usize, address: u64, message: String) {
        let mut report = self.report(ReportKind::MbarrierPhase, lane, message);
        let address = window::SHARED + (address & 0xffff_ffff);
        report.address = Some(address);
        report.allocation = self.whereabouts(address);
        self.note(report);
    }

    /// `mbarrier`
    pub fn mbarrier(&mut self, m: &Mbarrier) -> Result<Flow, Fault> {
        if m.kind == MbarrierKind::PendingCount {
            let states = *self.warp.file.read::<u64>(m.a);
            let counts = states.map(|s| (s & MOST) as u32);
            self.warp.file.write::<u32>(m.d, self.mask, &counts);
            return Ok(Flow::Next);
        }
        let usage = match m.kind {
            MbarrierKind::Init => Usage::StrongWrite,
            _ => Usage::Atomic,
        };
        let reach = self.reach(&m.address, 8, 8, usage)?;
        match m.kind {
            MbarrierKind::Wait { parity } => {
                return self.wait_mbarrier(m, &reach.host, parity);
            }
            MbarrierKind::ArriveAfterCopies(_) => self.copies_of_lanes()?,
            _ => {}
        }
        if m.kind != MbarrierKind::Init {
            self.release_at(&m.address);
        }
        self.cluster.progress += 1;
        for lane in self.lanes() {
            let host = reach.host[lane];
            let bits = raw::get::<u64>(host);
            let a = if m.a.is_some() {
                self.register(m.a, Class::W32, lane)
            } else {
                1
            };
            let address = self.address_of_lane(&m.address, lane);
            if m.kind == MbarrierKind::Init {
                if a == 0 || a > MOST {
                    self.misuse(lane, address, format!("initialized for {a} arrivals"));
                }
                let count = a.clamp(1, MOST) as i64;
                let fresh = State {
                    pending: count,
                    expected: count,
                    bytes: 0,
                    phase: false,
                };
                raw::put(host, fresh.bits());
                continue;
            }
            let Some(mut state) = State::of(bits) else {
                self.misuse(lane, address, "used before it is initialized".to_owned());
                continue;
            };
            match m.kind {
                MbarrierKind::Invalidate => {
                    raw::put(host, 0u64);
                    continue;
                }
                MbarrierKind::ExpectTx => state.bytes += a as i64,
                MbarrierKind::CompleteTx => state.bytes -= a as i64,
                MbarrierKind::Arrive { expect, drop } => {
                    let count = if expect { 1 } else { a as i64 };
                    if expect {
                        state.bytes += a as i64;
                    }
                    if drop {
                        state.expected = (state.expected - count).max(0);
                    }
                    if count > state.pending {
                        let message = format!(
                            "{count} arrivals where {} of {} are missing",
                            state.pending, state.expected
                        );
                        self.misuse(lane, address, message);
                    }
                    state.pending = (state.pending - count).max(0);
                }
                MbarrierKind::ArriveAfterCopies(true) => {
                    state.pending = (state.pending - 1).max(0);
                }
                _ => {}
            }
            if m.d.is_some() {
                self.set_register(m.d, Class::W64, lane, bits);
            }
            state.settle();
            raw::put(host, state.bits());
        }
        Ok(Flow::Next)
    }

    fn wait_mbarrier(
        &mut self,
        m: &Mbarrier,
        host: &[u64; 32],
        parity: bool,
    ) -> Result<Flow, Fault> {
        let mut done = self.is_over(m, host, parity);
        if done & self.mask != self.mask {
            // Copies that were only waiting for somebody to look are made now.
            transfer::complete(self.worker, self.cluster)?;
            done = self.is_over(m, host, parity);
        }
        self.warp.file.set_predicate(m.d, self.mask, done);
        if done != 0 {
            self.acquire_at(&m.address);
        }
        if done & self.mask == self.mask {
            Ok(Flow::Next)
        } else {
            Ok(Flow::Yield)
        }
    }

    /// Lanes whose phase is over.
    fn is_over(&mut self, m: &Mbarrier, host: &[u64; 32], parity: bool) -> u32 {
        let mut done = 0;
        for lane in self.lanes() {
            let bits = raw::get::<u64>(host[lane]);
            let Some(state) = State::of(bits) else {
                let address = self.address_of_lane(&m.address, lane);
                self.misuse(
                    lane,
                    address,
                    "waited for before it is initialized".to_owned(),
                );
                done |= 1 << lane;
                continue;
            };
            let waited = if parity {
                self.register(m.a, Class::W32, lane) & 1 != 0
            } else {
                self.register(m.a, Class::W64, lane) & PHASE != 0
            };
            done |= u32::from(state.phase != waited) << lane;
        }
        done
    }

    /// The checked host address and the shared place of the barrier object of one lane.
    pub fn mbarrier_of(&mut self, address: &Address, lane: usize) -> Result<u64, Fault> {
        let all = self.mask;
        self.mask = 1 << lane;
        let reached = self.reach(address, 8, 8, Usage::Atomic);
        self.mask = all;
        Ok(reached?.host[lane])
    }
}

/// Takes bytes off a barrier object at a checked host address; false when there is none.
pub fn complete_bytes(host: u64, bytes: u64) -> bool {
    let Some(mut state) = State::of(raw::get::<u64>(host)) else {
        return false;
    };
    state.bytes -= bytes as i64;
    state.settle();
    raw::put(host, state.bits());
    true
}
