//! What operands name: registers, constants, addresses and the machine's state.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::simulator::code::function::Builder;
use crate::simulator::code::inst::*;
use crate::simulator::memory::raw::Zeroed;
use crate::simulator::ptx;
use crate::simulator::ptx::Base;
use crate::simulator::ptx::Operand;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// Where a function's address begins; the function's number follows in steps of 16.
pub const FUNCTION_BASE: u64 = 0x0300_0000_0000_0000;

/// What a name stands for within a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A register, or the first of a vector.
    Register {
        /// Its number.
        first: u32,
        /// How it is stored.
        class: Class,
        /// Elements.
        vector: u32,
    },
    /// Global or constant memory at a host address.
    Fixed(u64, Space),
    /// Shared memory at an offset.
    Shared(u32),
    /// The dynamic part of shared memory, which begins where the kernel's own ends.
    DynamicShared,
    /// Bytes of the function's frame in local memory.
    Frame(u32),
    /// Bytes of the launch's parameters.
    Param(u32),
    /// A function.
    Function(u32),
}

/// The pool of constants, each spread over all lanes.
#[derive(Default)]
pub struct Pool {
    bytes: Vec<u8>,
    known: BTreeMap<(u8, u64), Slot>,
}

impl Pool {
    /// The place of a constant.
    pub fn slot(&mut self, class: Class, value: u64) -> Slot {
        let value = if class == Class::W32 {
            value & 0xffff_ffff
        } else {
            value
        };
        let next = Slot(self.bytes.len() as u32 | Slot::CONSTANT);
        let slot = *self.known.entry((class as u8, value)).or_insert(next);
        if slot == next {
            match class {
                Class::W32 => self.fill(&(value as u32).to_le_bytes(), 32),
                Class::W64 => self.fill(&value.to_le_bytes(), 32),
                Class::W128 => {
                    self.fill(&value.to_le_bytes(), 32);
                    self.fill(&0u64.to_le_bytes(), 32);
                }
                Class::Pred => {
                    let mask = if value & 1 != 0 { u32::MAX } else { 0 };
                    self.fill(&mask.to_le_bytes(), 1);
                    self.bytes.resize(self.bytes.len().next_multiple_of(64), 0);
                }
            }
        }
        slot
    }
    fn fill(&mut self, one: &[u8], times: usize) {
        for _ in 0..times {
            self.bytes.extend_from_slice(one);
        }
    }
    /// The pool as memory.
    pub fn finish(&self) -> Option<Zeroed> {
        let mut memory = Zeroed::new(self.bytes.len().max(512) as u64, 64)?;
        memory.bytes_mut()[..self.bytes.len()].copy_from_slice(&self.bytes);
        Some(memory)
    }
}

/// The bits of a constant operand for a register of `class`; `float` when the instruction's type
/// is a floating-point one.
pub fn constant(operand: &Operand<'_>, class: Class, half: Option<&str>) -> Option<u64> {
    let narrow = |value: f32| match half {
        Some("f16" | "f16x2") => u64::from(half::f16::from_f32(value).to_bits()),
        Some("bf16" | "bf16x2") => u64::from(half::bf16::from_f32(value).to_bits()),
        _ => u64::from(value.to_bits()),
    };
    Some(match (operand, class) {
        (Operand::Int(value), _) => *value as u64,
        (Operand::F32(bits), Class::W64) => f64::from(f32::from_bits(*bits)).to_bits(),
        (Operand::F32(bits), _) if half.is_some() => narrow(f32::from_bits(*bits)),
        (Operand::F32(bits), _) => u64::from(*bits),
        (Operand::F64(bits), Class::W64) => *bits,
        (Operand::F64(bits), _) => narrow(f64::from_bits(*bits) as f32),
        _ => return None,
    })
}

/// The special register of a name.
pub fn special(symbol: &ptx::Symbol<'_>) -> Option<(Special, bool)> {
    use Special::*;
    let axis = || symbol.member.and_then(|m| m.element()).map(|e| e as u8);
    let name = symbol.name.strip_prefix('%')?;
    Some(match name {
        "tid" => (Tid(axis()?), false),
        "ntid" => (Ntid(axis()?), false),
        "ctaid" => (Ctaid(axis()?), false),
        "nctaid" => (Nctaid(axis()?), false),
        "clusterid" => (ClusterId(axis()?), false),
        "nclusterid" => (NClusterId(axis()?), false),
        "cluster_ctaid" => (ClusterCtaid(axis()?), false),
        "cluster_nctaid" => (ClusterNctaid(axis()?), false),
        "cluster_ctarank" => (ClusterCtaRank, false),
        "cluster_nctarank" => (ClusterNctaRank, false),
        "is_explicit_cluster" => (IsExplicitCluster, false),
        "laneid" => (LaneId, false),
        "warpid" => (WarpId, false),
        "nwarpid" => (NWarpId, false),
        "smid" => (SmId, false),
        "nsmid" => (NSmId, false),
        "gridid" => (GridId, true),
        "lanemask_eq" => (LaneMaskEq, false),
        "lanemask_le" => (LaneMaskLe, false),
        "lanemask_lt" => (LaneMaskLt, false),
        "lanemask_ge" => (LaneMaskGe, false),
        "lanemask_gt" => (LaneMaskGt, false),
        "clock" => (Clock, false),
        "clock_hi" => (ClockHi, false),
        "clock64" => (Clock64, true),
        "globaltimer" => (GlobalTimer, true),
        "globaltimer_lo" => (GlobalTimerLo, false),
        "globaltimer_hi" => (GlobalTimerHi, false),
        "total_smem_size" => (TotalSmemSize, false),
        "aggr_smem_size" => (AggrSmemSize, false),
        "dynamic_smem_size" => (DynamicSmemSize, false),
        "reserved_smem_offset_begin" | "reserved_smem_offset_end" | "reserved_smem_offset_cap" => {
            (ReservedSmem, false)
        }
        _ if name.starts_with("reserved_smem_offset_") => (ReservedSmem, false),
        // Environment registers and performance counters read as zero.
        _ if name.starts_with("envreg") || name.starts_with("pm") => (Zero, name.ends_with("_64")),
        _ => return None,
    })
}

impl<'a> Builder<'a, '_> {
    /// What a name stands for.
    pub fn meaning(&self, name: &str) -> Option<Meaning> {
        for scope in self.scopes.iter().rev() {
            if let Some(meaning) = scope.names.get(name) {
                return Some(*meaning);
            }
            let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            for split in name.len() - digits..name.len() {
                let (prefix, number) = name.split_at(split);
                if number.len() > 1 && number.starts_with('0') {
                    continue;
                }
                if let Some(range) = scope.ranges.get(prefix)
                    && let Ok(number) = number.parse::<u32>()
                    && number < range.count
                {
                    return Some(Meaning::Register {
                        first: range.first + number * range.vector,
                        class: range.class,
                        vector: range.vector,
                    });
                }
            }
        }
        self.globals.names.get(name).copied()
    }

    /// The register a symbol names.
    pub fn register(&self, symbol: &ptx::Symbol<'a>) -> Result<Reg> {
        match self.meaning(symbol.name) {
            Some(Meaning::Register {
                first,
                class,
                vector,
            }) => {
                let element = match symbol.member {
                    None if vector == 1 => 0,
                    None => return Err(self.refuse(symbol.name, "is a vector, not one register")),
                    Some(member) => match member.element() {
                        Some(element) if (element as u32) < vector => element as u32,
                        _ => return Err(self.refuse(symbol.name, "has no such part")),
                    },
                };
                Ok(Reg {
                    slot: Slot(first + element),
                    class,
                })
            }
            Some(_) => Err(self.refuse(symbol.name, "is not a register")),
            None => Err(self.unknown(symbol.name)),
        }
    }

    /// A register of the class wanted.
    fn of_class(&self, name: &str, reg: Reg, class: Class) -> Result<Slot> {
        if reg.class == class {
            return Ok(reg.slot);
        }
        let words = |class: Class| match class {
            Class::Pred => "a predicate",
            Class::W32 => "32 bits or less",
            Class::W64 => "64 bits",
            Class::W128 => "128 bits",
        };
        let what = format!("has {}, wanted {}", words(reg.class), words(class));
        Err(self.refuse(name, &what))
    }

    /// A destination register; [`Slot::NONE`] for `_`.
    pub fn dest(&mut self, operand: &Operand<'a>, class: Class) -> Result<Slot> {
        match operand {
            Operand::Name(symbol) => self.of_class(symbol.name, self.register(symbol)?, class),
            // A result nobody wants still has a place, so that nothing must ask.
            Operand::Sink => Ok(self.temporary(class)),
            _ => Err(self.bad("a destination is not a register")),
        }
    }

    /// A destination register of whatever class it has.
    pub fn any_dest(&mut self, operand: &Operand<'a>) -> Result<Reg> {
        match operand {
            Operand::Name(symbol) => self.register(symbol),
            _ => Err(self.bad("a destination is not a register")),
        }
    }

    /// The address of what a symbol names, plus `offset`, as a value.
    fn value_of(&mut self, name: &'a str, offset: i64, class: Class) -> Result<Slot> {
        let fixed =
            |b: &mut Self, value: u64| Ok(b.pool.slot(class, value.wrapping_add(offset as u64)));
        let special = |b: &mut Self, special: Special| {
            let d = b.temporary(class);
            b.emit_free(Op::Special(special, d, class == Class::W64), Work::Move);
            if matches!(special, Special::DynamicShared) && offset != 0 {
                return b.plus(d, class, offset);
            }
            Ok(d)
        };
        let bytes = |base: u32| base.wrapping_add(offset as u32);
        match self.meaning(name) {
            Some(Meaning::Fixed(address, _)) => fixed(self, address),
            Some(Meaning::Shared(at)) => fixed(self, u64::from(at)),
            Some(Meaning::Function(number)) => {
                self.indirect_functions.insert(number);
                fixed(self, FUNCTION_BASE + u64::from(number) * 16)
            }
            Some(Meaning::DynamicShared) => special(self, Special::DynamicShared),
            Some(Meaning::Frame(at)) => special(self, Special::FrameAddress(bytes(at))),
            Some(Meaning::Param(at)) => special(self, Special::ParamAddress(bytes(at))),
            Some(Meaning::Register { .. }) => {
                let reg = self.register(&ptx::Symbol { name, member: None })?;
                let slot = self.of_class(name, reg, class)?;
                self.plus(slot, class, offset)
            }
            None => Err(self.unknown(name)),
        }
    }

    /// A register plus a constant.
    fn plus(&mut self, a: Slot, class: Class, offset: i64) -> Result<Slot> {
        if offset == 0 {
            return Ok(a);
        }
        let d = self.temporary(class);
        let b = self.pool.slot(class, offset as u64);
        let name = if class == Class::W64 {
            "add.u64"
        } else {
            "add.u32"
        };
        self.alu_free(
            name,
            Args {
                d,
                a,
                b,
                ..Args::default()
            },
        )?;
        Ok(d)
    }

    /// A source of the class wanted: a register, a constant, the machine's state or an address.
    pub fn source(&mut self, operand: &Operand<'a>, class: Class) -> Result<Slot> {
        self.source_of(operand, class, None)
    }

    /// The same, with the floating-point type that 16-bit constants are written in.
    pub fn source_of(
        &mut self,
        operand: &Operand<'a>,
        class: Class,
        half: Option<&str>,
    ) -> Result<Slot> {
        match operand {
            Operand::Name(symbol) => {
                if let Some(Meaning::Register { .. }) = self.meaning(symbol.name) {
                    let reg = self.register(symbol)?;
                    return self.of_class(symbol.name, reg, class);
                }
                if let Some((which, _)) = special(symbol)
                    && self.meaning(symbol.name).is_none()
                {
                    let d = self.temporary(class);
                    self.emit_free(Op::Special(which, d, class == Class::W64), Work::Move);
                    return Ok(d);
                }
                if symbol.member.is_some() {
                    return Err(self.refuse(symbol.name, "has no such part"));
                }
                self.value_of(symbol.name, 0, class)
            }
            Operand::Sum(symbol, offset) => self.value_of(symbol.name, *offset, class),
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                match constant(operand, class, half) {
                    Some(value) => Ok(self.pool.slot(class, value)),
                    None => Err(self.bad("a constant does not fit its operand")),
                }
            }
            _ => Err(self.bad("an operand is neither a register nor a constant")),
        }
    }

    /// A predicate source, and whether it is negated.
    pub fn predicate(&mut self, operand: &Operand<'a>) -> Result<(Slot, bool)> {
        match operand {
            Operand::Name(symbol) => {
                let reg = self.register(symbol)?;
                Ok((self.of_class(symbol.name, reg, Class::Pred)?, false))
            }
            Operand::Not(symbol) => {
                let reg = self.register(symbol)?;
                Ok((self.of_class(symbol.name, reg, Class::Pred)?, true))
            }
            Operand::Int(value) => Ok((self.pool.slot(Class::Pred, u64::from(*value != 0)), false)),
            _ => Err(self.bad("an operand is not a predicate")),
        }
    }

    /// A source of whatever class it has; constants are taken for `class`.
    pub fn any_source(&mut self, operand: &Operand<'a>, class: Class) -> Result<Reg> {
        if let Operand::Name(symbol) = operand
            && let Some(Meaning::Register { .. }) = self.meaning(symbol.name)
        {
            return self.register(symbol);
        }
        let slot = self.source(operand, class)?;
        Ok(Reg { slot, class })
    }

    /// The elements of a vector operand; one alone is a vector of one.
    pub fn elements<'o>(&self, operand: &'o Operand<'a>) -> Vec<Operand<'a>>
    where
        'a: 'o,
    {
        match operand {
            Operand::Vector(list) => list.clone(),
            Operand::Name(symbol) if symbol.member.is_none() => match self.meaning(symbol.name) {
                Some(Meaning::Register { vector, .. }) if vector > 1 => {
                    use ptx::Member::*;
                    [X, Y, Z, W]
                        .into_iter()
                        .take(vector as usize)
                        .map(|member| {
                            Operand::Name(ptx::Symbol {
                                name: symbol.name,
                                member: Some(member),
                            })
                        })
                        .collect()
                }
                _ => vec![operand.clone()],
            },
            _ => vec![operand.clone()],
        }
    }

    /// A constant integer.
    pub fn integer(&self, operand: Option<&Operand<'a>>) -> Result<i64> {
        match operand {
            Some(Operand::Int(value)) => Ok(*value),
            _ => Err(self.bad("an operand must be a constant integer")),
        }
    }

    /// The address in brackets, in the space the instruction names; a variable's own space wins
    /// over none.
    pub fn address(&mut self, operand: &Operand<'a>, space: Space) -> Result<Address> {
        let inner = match operand {
            Operand::Address(inner) => inner.clone(),
            // Some instructions take a plain register for an address.
            Operand::Name(symbol) => ptx::Address {
                base: Base::Name(*symbol),
                offset: 0,
                extra: Vec::new(),
                unified: false,
            },
            _ => return Err(self.bad("an operand is not an address")),
        };
        let mut found = Address {
            space,
            base: Slot::NONE,
            wide: false,
            offset: inner.offset,
            frame: false,
        };
        let symbol = match inner.base {
            Base::Int(at) => {
                found.offset = at.wrapping_add(inner.offset);
                return Ok(found);
            }
            Base::Name(symbol) => symbol,
        };
        let place = |found: &mut Address, at: u64, own: Space| {
            found.offset = (at as i64).wrapping_add(found.offset);
            if space == Space::Generic || space == Space::Param {
                found.space = own;
            }
        };
        match self.meaning(symbol.name) {
            Some(Meaning::Register { .. }) => {
                let reg = self.register(&symbol)?;
                found.base = reg.slot;
                found.wide = match reg.class {
                    Class::W32 => false,
                    Class::W64 => true,
                    _ => return Err(self.refuse(symbol.name, "cannot hold an address")),
                };
                // What a register holds of a parameter's address is a host or local address.
                if space == Space::Param {
                    found.space = Space::Generic;
                }
            }
            Some(Meaning::Fixed(at, own)) => place(&mut found, at, own),
            Some(Meaning::Shared(at)) => place(&mut found, u64::from(at), Space::Shared),
            Some(Meaning::Param(at)) => place(&mut found, u64::from(at), Space::Param),
            Some(Meaning::Frame(at)) => {
                place(&mut found, u64::from(at), Space::Local);
                found.space = Space::Local;
                found.frame = true;
            }
            Some(Meaning::DynamicShared) => {
                found.base = self.value_of(symbol.name, 0, Class::W32)?;
                if space == Space::Generic {
                    found.space = Space::Shared;
                }
            }
            Some(Meaning::Function(_)) => {
                return Err(self.refuse(symbol.name, "is a function, not memory"));
            }
            None => return Err(self.unknown(symbol.name)),
        }
        Ok(found)
    }
}

use crate::simulator::warp::lanes::Args;
