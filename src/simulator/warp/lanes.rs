//! The register file of a warp, and how an instruction is made of an expression over one lane.
//!
//! A register is 32 lanes side by side: 32 words of 32 bits (also for 8- and 16-bit values), 32
//! words of 64 bits, or one mask for a predicate. A [`Slot`] is a byte offset into the file, or
//! into the pool of constants.
#![allow(
    unsafe_code,
    reason = "registers of several widths share one buffer; vector code"
)]

use crate::simulator::memory::raw::Zeroed;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// Where a register lies. Before registers are placed it is the register's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// No register.
    pub const NONE: Slot = Slot(u32::MAX);
    /// The bit that marks a place in the pool of constants.
    pub const CONSTANT: u32 = 1 << 31;
    /// Whether there is a register or constant.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
    /// Whether it lies in the pool of constants.
    #[inline(always)]
    pub fn is_constant(self) -> bool {
        self.0 & Self::CONSTANT != 0
    }
}

/// How a register is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// One bit a lane.
    Pred,
    /// Up to 32 bits a lane.
    W32,
    /// 64 bits a lane.
    W64,
    /// 128 bits a lane: the low halves of all lanes, then the high halves.
    W128,
}

impl Class {
    /// Bytes of one register.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Pred => 4,
            Self::W32 => 128,
            Self::W64 => 256,
            Self::W128 => 512,
        }
    }
}

/// The operands of a register instruction.
#[derive(Clone, Copy, Debug)]
pub struct Args {
    /// Destination.
    pub d: Slot,
    /// Second destination, of instructions that have one.
    pub d2: Slot,
    /// First source.
    pub a: Slot,
    /// Second source.
    pub b: Slot,
    /// Third source.
    pub c: Slot,
    /// Fourth source.
    pub e: Slot,
    /// What the instruction's modifiers say.
    pub x: u64,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            d: Slot::NONE,
            d2: Slot::NONE,
            a: Slot::NONE,
            b: Slot::NONE,
            c: Slot::NONE,
            e: Slot::NONE,
            x: 0,
        }
    }
}

/// A register instruction, executed for the lanes of a mask.
pub type Alu = unsafe fn(&mut File, &Args, u32);

/// A register instruction in both forms, and the classes of its operands: destination first.
#[derive(Clone, Copy)]
pub struct Row {
    /// For any processor.
    pub base: Alu,
    /// For processors that [`has_wide`] finds able.
    pub wide: Alu,
    /// Classes: destination, then sources.
    pub signature: &'static [Class],
}

/// Whether this processor has the vector instructions of the wide forms.
pub fn has_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// A value of one lane, and how a register stores it.
pub trait Lane: Copy {
    /// What the register holds.
    type Store: Copy + Default;
    /// The register's class.
    const CLASS: Class;
    /// The value of what the register holds.
    fn get(store: Self::Store) -> Self;
    /// What the register shall hold.
    fn put(self) -> Self::Store;
}

macro_rules! lane {
    ($($t:ty, $store:ty, $class:ident, $middle:ty;)*) => {$(
        impl Lane for $t {
            type Store = $store;
            const CLASS: Class = Class::$class;
            #[inline(always)]
            fn get(store: $store) -> Self {
                store as $t
            }
            #[inline(always)]
            fn put(self) -> $store {
                self as $middle as $store
            }
        }
    )*};
}
lane! {
    u8, u32, W32, u8;
    i8, u32, W32, i32;
    u16, u32, W32, u16;
    i16, u32, W32, u16;
    u32, u32, W32, u32;
    i32, u32, W32, i32;
    u64, u64, W64, u64;
    i64, u64, W64, i64;
}

/// The registers of one warp, and the constants of its module.
pub struct File {
    registers: Zeroed,
    at: *mut u8,
    constants: *const u8,
}

impl File {
    /// `bytes` of registers over a pool of constants, which must outlive the file.
    pub fn new(bytes: u32, constants: &Zeroed) -> Option<Self> {
        let registers = Zeroed::new(u64::from(bytes.max(128)), 64)?;
        Some(Self {
            at: registers.address() as *mut u8,
            registers,
            constants: constants.address() as *const u8,
        })
    }
    /// All registers as bytes.
    pub fn bytes(&self) -> &[u8] {
        self.registers.bytes()
    }
    /// All registers as bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.registers.bytes_mut()
    }
    #[inline(always)]
    fn source(&self, slot: Slot) -> *const u8 {
        let base = if slot.is_constant() {
            self.constants
        } else {
            self.at.cast_const()
        };
        // The loader has placed every slot within the file or the pool.
        base.wrapping_add((slot.0 & !Slot::CONSTANT) as usize)
    }
    /// The lanes of a register or constant whose class is `T`'s.
    #[inline(always)]
    pub fn read<T: Lane>(&self, slot: Slot) -> &[T::Store; LANES] {
        // SAFETY: decoding has matched the slot's class with `T`'s and the loader has placed it
        // within the file or the pool, aligned to 64 bytes; registers always hold some value.
        unsafe { &*self.source(slot).cast::<[T::Store; LANES]>() }
    }
    /// The lanes of a register, to be changed.
    #[inline(always)]
    pub fn edit<T: Lane>(&mut self, slot: Slot) -> &mut [T::Store; LANES] {
        debug_assert!(!slot.is_constant());
        // SAFETY: as for `read`; decoding gives no constant as a destination.
        unsafe { &mut *self.at.add(slot.0 as usize).cast::<[T::Store; LANES]>() }
    }
    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn write<T: Lane>(&mut self, slot: Slot, mask: u32, values: &[T::Store; LANES]) {
        let to = self.edit::<T>(slot);
        if mask == u32::MAX {
            *to = *values;
        } else {
            blend(to, values, mask);
        }
    }
    /// The lanes where a predicate holds.
    #[inline(always)]
    pub fn predicate(&self, slot: Slot) -> u32 {
        // SAFETY: decoding has found a predicate here; see `read`.
        unsafe { *self.source(slot).cast::<u32>() }
    }
    /// Sets the lanes of `mask` of a predicate.
    #[inline(always)]
    pub fn set_predicate(&mut self, slot: Slot, mask: u32, value: u32) {
        debug_assert!(!slot.is_constant());
        // SAFETY: as for `edit`.
        let to = unsafe { &mut *self.at.add(slot.0 as usize).cast::<u32>() };
        *to = (*to & !mask) | (value & mask);
    }
    /// Executes a register instruction.
    #[inline(always)]
    pub fn execute(&mut self, run: Alu, args: &Args, mask: u32) {
        // SAFETY: the loader takes wide forms only where the processor has them.
        unsafe { run(self, args, mask) }
    }
}

/// Bit `n` at place `n`.
const BITS: [u32; LANES] = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// Takes over the lanes of `mask`. Not inlined: every row would carry a copy.
#[inline(never)]
fn blend<T: Copy>(to: &mut [T; LANES], values: &[T; LANES], mask: u32) {
    for lane in 0..LANES {
        to[lane] = if mask & BITS[lane] != 0 {
            values[lane]
        } else {
            to[lane]
        };
    }
}

/// Makes both forms of one function.
macro_rules! forms {
    ($body:expr, $signature:expr) => {{
        #[allow(
            clippy::redundant_closure_call,
            reason = "the body is a closure in both forms"
        )]
        unsafe fn base(
            f: &mut $crate::simulator::warp::lanes::File,
            g: &$crate::simulator::warp::lanes::Args,
            m: u32,
        ) {
            $body(f, g, m)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi2,lzcnt,popcnt")]
        #[allow(
            clippy::redundant_closure_call,
            reason = "the body is a closure in both forms"
        )]
        unsafe fn wide(
            f: &mut $crate::simulator::warp::lanes::File,
            g: &$crate::simulator::warp::lanes::Args,
            m: u32,
        ) {
            $body(f, g, m)
        }
        #[cfg(not(target_arch = "x86_64"))]
        use base as wide;
        $crate::simulator::warp::lanes::Row {
            base,
            wide,
            signature: $signature,
        }
    }};
}
pub(crate) use forms;

/// A row from an expression over one lane: `row!([a: u32, b: u32] -> u32, x, a.wrapping_add(b))`.
/// `x` names what the modifiers say.
macro_rules! row {
    ([$($v:ident : $t:ty),+] -> $d:ty, $x:ident, $e:expr) => {
        $crate::simulator::warp::lanes::forms!(
            |f: &mut $crate::simulator::warp::lanes::File, g: &$crate::simulator::warp::lanes::Args, m: u32| {
                use $crate::simulator::warp::lanes::Lane;
                #[allow(unused_variables, reason = "not every row looks at its modifiers")]
                let $x = g.x;
                let mut out = [<$d as Lane>::Store::default(); 32];
                {
                    let mut sources = [g.a, g.b, g.c, g.e].into_iter();
                    $(let $v = f.read::<$t>(sources.next().unwrap_or(g.a));)+
                    for lane in 0..32 {
                        $(let $v = <$t as Lane>::get($v[lane]);)+
                        out[lane] = <$d as Lane>::put($e);
                    }
                }
                f.write::<$d>(g.d, m, &out);
            },
            &[<$d as $crate::simulator::warp::lanes::Lane>::CLASS,
              $(<$t as $crate::simulator::warp::lanes::Lane>::CLASS),+]
        )
    };
}
pub(crate) use row;

/// A comparison from an expression of type `bool` over one lane; how the result meets the other
/// predicates is in [`combine`].
macro_rules! test_row {
    ([$($v:ident : $t:ty),+], $x:ident, $e:expr) => {
        $crate::simulator::warp::lanes::forms!(
            |f: &mut $crate::simulator::warp::lanes::File, g: &$crate::simulator::warp::lanes::Args, m: u32| {
                use $crate::simulator::warp::lanes::Lane;
                #[allow(unused_variables, reason = "not every row looks at its modifiers")]
                let $x = g.x;
                let mut bits = [0u32; 32];
                {
                    let mut sources = [g.a, g.b].into_iter();
                    $(let $v = f.read::<$t>(sources.next().unwrap_or(g.a));)+
                    for lane in 0..32 {
                        $(let $v = <$t as Lane>::get($v[lane]);)+
                        bits[lane] = u32::from($e) << lane;
                    }
                }
                let found = bits.iter().fold(0, |all, bit| all | bit);
                $crate::simulator::warp::lanes::combine(f, g, m, found);
            },
            &[$crate::simulator::warp::lanes::Class::Pred,
              $(<$t as $crate::simulator::warp::lanes::Lane>::CLASS),+]
        )
    };
}
pub(crate) use test_row;

/// Bits of [`Args::x`] that say how a comparison meets the third predicate.
pub mod meet {
    /// With `and`.
    pub const AND: u64 = 1 << 32;
    /// With `or`.
    pub const OR: u64 = 2 << 32;
    /// With `xor`.
    pub const XOR: u64 = 3 << 32;
    /// All three.
    pub const MASK: u64 = 3 << 32;
    /// The third predicate is negated.
    pub const NOT: u64 = 1 << 34;
}

/// Writes the result of a comparison: `p` gets it, `q` its opposite, both after they met `c`.
#[inline(never)]
pub fn combine(f: &mut File, g: &Args, mask: u32, found: u32) {
    let (mut p, mut q) = (found, !found);
    if g.x & meet::MASK != 0 {
        let c = f.predicate(g.c);
        let c = if g.x & meet::NOT != 0 { !c } else { c };
        (p, q) = match g.x & meet::MASK {
            meet::AND => (p & c, q & c),
            meet::OR => (p | c, q | c),
            _ => (p ^ c, q ^ c),
        };
    }
    if g.d.is_some() {
        f.set_predicate(g.d, mask, p);
    }
    if g.d2.is_some() {
        f.set_predicate(g.d2, mask, q);
    }
}
