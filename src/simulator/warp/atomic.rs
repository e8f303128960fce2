//! `atom` and `red`.

use crate::simulator::code::Atomic;
use crate::simulator::code::AtomicOp;
use crate::simulator::code::AtomicType;
use crate::simulator::code::Order;
use crate::simulator::code::Space;
use crate::simulator::memory::raw;
use crate::simulator::number::float16;
use crate::simulator::number::float16::BF16;
use crate::simulator::number::float16::F16;
use crate::simulator::number::float32;
use crate::simulator::number::float64;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::resolve::Usage;
use crate::simulator::warp::worker::Fault;

/// The new value of one step on up to 64 bits. `c` is the new value of `cas`.
pub fn combine(op: AtomicOp, ty: AtomicType, ftz: bool, old: u64, b: u64, c: u64) -> u64 {
    let (old32, b32) = (old as u32, b as u32);
    let halves = |f: fn(u16, u16) -> u16| u64::from(float16::x2(f, old32, b32));
    match (op, ty) {
        (AtomicOp::And, _) => old & b,
        (AtomicOp::Or, _) => old | b,
        (AtomicOp::Xor, _) => old ^ b,
        (AtomicOp::Exch, _) => b,
        (AtomicOp::Cas, _) => {
            if old == b {
                c
            } else {
                old
            }
        }
        (AtomicOp::Inc, _) => u64::from(if old32 >= b32 { 0 } else { old32 + 1 }),
        (AtomicOp::Dec, _) => {
            let wraps = old32 == 0 || old32 > b32;
            u64::from(if wraps { b32 } else { old32 - 1 })
        }
        (AtomicOp::Add, AtomicType::F32) if ftz => {
            let sum = float32::add(float32::ftz(old32), float32::ftz(b32));
            u64::from(float32::ftz(sum))
        }
        (AtomicOp::Add, AtomicType::F32) => u64::from(float32::add(old32, b32)),
        (AtomicOp::Add, AtomicType::F64) => float64::add(old, b),
        (AtomicOp::Add, AtomicType::F16) => u64::from(float16::add::<F16>(old as u16, b as u16)),
        (AtomicOp::Add, AtomicType::Bf16) => u64::from(float16::add::<BF16>(old as u16, b as u16)),
        (AtomicOp::Add, AtomicType::F16x2) => halves(float16::add::<F16>),
        (AtomicOp::Add, AtomicType::Bf16x2) => halves(float16::add::<BF16>),
        (AtomicOp::Add, _) => old.wrapping_add(b),
        (AtomicOp::Min, AtomicType::U32) => u64::from(old32.min(b32)),
        (AtomicOp::Max, AtomicType::U32) => u64::from(old32.max(b32)),
        (AtomicOp::Min, AtomicType::S32) => u64::from((old32 as i32).min(b32 as i32) as u32),
        (AtomicOp::Max, AtomicType::S32) => u64::from((old32 as i32).max(b32 as i32) as u32),
        (AtomicOp::Min, AtomicType::S64) => (old as i64).min(b as i64) as u64,
        (AtomicOp::Max, AtomicType::S64) => (old as i64).max(b as i64) as u64,
        (AtomicOp::Min, AtomicType::F16) => u64::from(float16::min::<F16>(old as u16, b as u16)),
        (AtomicOp::Max, AtomicType::F16) => u64::from(float16::max::<F16>(old as u16, b as u16)),
        (AtomicOp::Min, AtomicType::Bf16) => u64::from(float16::min::<BF16>(old as u16, b as u16)),
        (AtomicOp::Max, AtomicType::Bf16) => u64::from(float16::max::<BF16>(old as u16, b as u16)),
        (AtomicOp::Min, AtomicType::F16x2) => halves(float16::min::<F16>),
        (AtomicOp::Max, AtomicType::F16x2) => halves(float16::max::<F16>),
        (AtomicOp::Min, AtomicType::Bf16x2) => halves(float16::min::<BF16>),
        (AtomicOp::Max, AtomicType::Bf16x2) => halves(float16::max::<BF16>),
        (AtomicOp::Min, _) => old.min(b),
        (AtomicOp::Max, _) => old.max(b),
    }
}

/// One step at a checked address; gives the old value.
pub fn update(address: u64, op: AtomicOp, ty: AtomicType, ftz: bool, b: u64, c: u64) -> u64 {
    let b = match ty.bytes() {
        2 => b & 0xffff,
        4 => b & 0xffff_ffff,
        _ => b,
    };
    match ty.bytes() {
        2 => u64::from(raw::update16(address, |old| {
            combine(op, ty, ftz, u64::from(old), b, c) as u16
        })),
        4 => u64::from(raw::update32(address, |old| {
            combine(op, ty, ftz, u64::from(old), b, c) as u32
        })),
        _ => raw::update64(address, |old| combine(op, ty, ftz, old, b, c)),
    }
}

impl Exec<'_, '_> {
    /// `atom` and `red`
    pub fn atomic(&mut self, atomic: &Atomic) -> Result<Flow, Fault> {
        let bytes = atomic.ty.bytes();
        let total = bytes * atomic.b.len() as u32;
        self.release_at(&atomic.address);
        let reach = self.reach(&atomic.address, total, total, Usage::Atomic)?;
        if atomic.ty == AtomicType::B128 {
            self.atomic_wide(atomic, &reach.host);
        } else {
            let ftz = atomic.ftz && atomic.address.space != Space::Shared;
            for lane in self.lanes() {
                for (index, reg) in atomic.b.iter().enumerate() {
                    let address = reach.host[lane] + index as u64 * u64::from(bytes);
                    let b = self.register(reg.slot, reg.class, lane);
                    let c = if atomic.c.slot.is_some() {
                        self.register(atomic.c.slot, atomic.c.class, lane)
                    } else {
                        0
                    };
                    let old = update(address, atomic.op, atomic.ty, ftz, b, c);
                    if let Some(d) = atomic.d.get(index)
                        && d.slot.is_some()
                    {
                        self.set_register(d.slot, d.class, lane, old);
                    }
                }
            }
        }
        if !atomic.d.is_empty() || atomic.order != Order::Relaxed {
            self.acquire_at(&atomic.address);
        }
        Ok(Flow::Next)
    }

    fn atomic_wide(&mut self, atomic: &Atomic, host: &[u64; 32]) {
        let Some(b) = atomic.b.first() else { return };
        for lane in self.lanes() {
            let wide = |slot: Slot| {
                let low = self.warp.file.read::<u64>(slot)[lane];
                let high = self.warp.file.read::<u64>(Slot(slot.0 + 256))[lane];
                u128::from(low) | u128::from(high) << 64
            };
            let b = wide(b.slot);
            let c = if atomic.op == AtomicOp::Cas {
                wide(atomic.c.slot)
            } else {
                0
            };
            let old = raw::update128(host[lane], |old| match atomic.op {
                AtomicOp::Cas if old == b => c,
                AtomicOp::Cas => old,
                _ => b,
            });
            if let Some(d) = atomic.d.first()
                && d.slot.is_some()
            {
                self.warp.file.edit::<u64>(d.slot)[lane] = old as u64;
                self.warp.file.edit::<u64>(Slot(d.slot.0 + 256))[lane] = (old >> 64) as u64;
            }
        }
    }

    /// One lane of a register, zero-extended.
    pub fn register(&self, slot: Slot, class: Class, lane: usize) -> u64 {
        match class {
            Class::W64 | Class::W128 => self.warp.file.read::<u64>(slot)[lane],
            Class::W32 => u64::from(self.warp.file.read::<u32>(slot)[lane]),
            Class::Pred => u64::from(self.warp.file.predicate(slot) >> lane & 1),
        }
    }

    /// Sets one lane of a register.
    pub fn set_register(&mut self, slot: Slot, class: Class, lane: usize, value: u64) {
        match class {
            Class::W64 | Class::W128 => self.warp.file.edit::<u64>(slot)[lane] = value,
            Class::W32 => self.warp.file.edit::<u32>(slot)[lane] = value as u32,
            Class::Pred => {
                let mask = 1 << lane;
                let bits = if value & 1 != 0 { mask } else { 0 };
                self.warp.file.set_predicate(slot, mask, bits);
            }
        }
    }
}
