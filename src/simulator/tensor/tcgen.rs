//! The fifth generation's tensor memory, and the instructions that move and multiply in it.
//!
//! Covered: allocation, `tcgen05.ld` and `tcgen05.st` of every shape, `tcgen05.cp` without a change
//! of format, and dense `tcgen05.mma` of one block.  Pairs of blocks, sparse and block-scaled
//! products and `.ws` are refused by name.

use crate::base::{Diagnostic, Result, codes};
use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::descriptor::{MatrixDescriptor, OutOfShared, chunk};
use crate::simulator::tensor::element::{Element, Packing, half, quad, to_half};
use crate::simulator::tensor::words::Modifiers;

/// Lanes of tensor memory.
pub const TENSOR_LANES: usize = 128;
/// Columns of tensor memory, each of 32 bits a lane.
pub const TENSOR_COLUMNS: usize = 512;

fn fault(what: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(
        codes::DEVICE_FAULT,
        format!("tensor memory: {}", what.into()),
    )
}

/// The tensor memory of one block, with its allocator.
///
/// An address has the lane in its upper 16 bits and the column in its lower.
#[derive(Clone, Debug)]
pub struct TensorMemory {
    words: Vec<u32>,
    /// The first column and the count of each allocation, in order.
    taken: Vec<(usize, usize)>,
}

impl Default for TensorMemory {
    fn default() -> Self {
        Self {
            words: vec![0; TENSOR_LANES * TENSOR_COLUMNS],
            taken: Vec::new(),
        }
    }
}

impl TensorMemory {
    /// Takes columns; nothing when there are not enough together, and the warp has to wait.
    ///
    /// # Errors
    /// When the count is not a power of two from 32 to 512.
    pub fn allocate(&mut self, columns: u32) -> Result<Option<u32>> {
        if !columns.is_power_of_two() || !(32..=512).contains(&columns) {
            return Err(fault(format!(
                "{columns} columns wanted, which is no power of two from 32 to 512"
            )));
        }
        let columns = columns as usize;
        let mut start = 0;
        let mut at = self.taken.len();
        for (i, (first, count)) in self.taken.iter().enumerate() {
            if start + columns <= *first {
                at = i;
                break;
            }
            start = first + count;
        }
        if start + columns > TENSOR_COLUMNS {
            return Ok(None);
        }
        self.taken.insert(at, (start, columns));
        Ok(Some(start as u32))
    }
    /// Gives columns back.
    ///
    /// # Errors
    /// When no allocation of this size begins at `address`.
    pub fn deallocate(&mut self, address: u32, columns: u32) -> Result<()> {
        let own = (address as usize & 0xffff, columns as usize);
        match self.taken.iter().position(|t| *t == own) {
            Some(at) => {
                self.taken.remove(at);
                Ok(())
            }
            None => Err(fault(format!(
                "{columns} columns at {address:#x} are given back but were not taken"
            ))),
        }
    }
    /// Whether columns are still taken, which they must not be when the block ends.
    pub fn is_taken(&self) -> bool {
        !self.taken.is_empty()
    }
    fn index(&self, lane: usize, column: usize) -> Result<usize> {
        let known = self
            .taken
            .iter()
            .any(|(first, count)| (*first..first + count).contains(&column));
        if lane >= TENSOR_LANES || !known {
            return Err(fault(format!(
                "lane {lane}, column {column} is not allocated"
            )));
        }
        Ok(lane * TENSOR_COLUMNS + column)
    }
    /// The word of a lane and column.
    ///
    /// # Errors
    /// When it is not allocated.
    pub fn get(&self, lane: usize, column: usize) -> Result<u32> {
        self.index(lane, column).map(|at| self.words[at])
    }
    /// Sets the word of a lane and column.
    ///
    /// # Errors
    /// When it is not allocated.
    pub fn set(&mut self, lane: usize, column: usize, word: u32) -> Result<()> {
        let at = self.index(lane, column)?;
        self.words[at] = word;
        Ok(())
    }
}

/// The pattern in which lanes and columns meet a warp's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    B32x32,
    B16x64,
    B16x128,
    B16x256,
    B16x32x2,
}

/// A decoded `tcgen05.ld` or `tcgen05.st`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcgen05Move {
    form: Form,
    load: bool,
    words: usize,
    /// Whether a register holds the lower halves of two columns.
    packed: bool,
}

impl Tcgen05Move {
    /// Decodes the modifiers that follow the opcode `tcgen05`, `ld` or `st` first.
    ///
    /// # Errors
    /// When the combination is not one of the instruction set's.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("tcgen05", modifiers);
        let load = m.take("ld");
        if !load && !m.take("st") {
            return Err(m.refuse("neither loads nor stores"));
        }
        if !m.take("sync") || !m.take("aligned") {
            return Err(m.refuse("needs `.sync.aligned`"));
        }
        let (form, each, most) = m.need("shape", |w| {
            Some(match w {
                "32x32b" => (Form::B32x32, 1, 128),
                "16x64b" => (Form::B16x64, 1, 128),
                "16x128b" => (Form::B16x128, 2, 64),
                "16x256b" => (Form::B16x256, 4, 32),
                "16x32bx2" => (Form::B16x32x2, 1, 128),
                _ => return None,
            })
        })?;
        let count = m.need("count", |w| {
            let count = w.strip_prefix('x')?.parse::<usize>().ok()?;
            (count.is_power_of_two() && count <= most).then_some(count)
        })?;
        let packed = m.take(if load { "pack::16b" } else { "unpack::16b" });
        if !m.take("b32") {
            return Err(m.refuse("needs `.b32`"));
        }
        m.finish()?;
        Ok(Self {
            form,
            load,
            words: each * count,
            packed,
        })
    }
    /// Whether it loads.
    pub fn is_load(&self) -> bool {
        self.load
    }
    /// How many registers it writes or reads.
    pub fn words(&self) -> usize {
        self.words
    }
    /// Whether an immediate says where the second half of the lanes begins.
    pub fn has_split(&self) -> bool {
        self.form == Form::B16x32x2
    }
    /// The lane and column of a thread's register, from the instruction's address.
    fn place(&self, thread: usize, register: usize, split: usize) -> (usize, usize) {
        let (g, t) = (thread >> 2, thread & 3);
        match self.form {
            Form::B32x32 => (thread, register),
            Form::B16x64 => (g + 8 * (t >> 1), 2 * register + (t & 1)),
            Form::B16x128 => (g + 8 * (register & 1), 4 * (register >> 1) + t),
            Form::B16x256 => (
                g + 8 * (register >> 1 & 1),
                8 * (register >> 2) + 2 * t + (register & 1),
            ),
            Form::B16x32x2 => (thread & 15, register + (thread >> 4) * split),
        }
    }
    fn check(&self, address: u32, warp: u32) -> Result<(usize, usize)> {
        let (lane, column) = ((address >> 16) as usize, address as usize & 0xffff);
        if lane / 32 != warp as usize % 4 {
            return Err(fault(format!(
                "warp {warp} reaches lane {lane}, which belongs to warp {} of its group",
                lane / 32
            )));
        }
        Ok((lane, column))
    }
    /// From tensor memory to the registers of the `warp`-th warp of the block.
    ///
    /// # Errors
    /// When the lanes are another warp's or not allocated.
    pub fn load(
        &self,
        memory: &TensorMemory,
        address: u32,
        split: u32,
        warp: u32,
        d: &mut [Lanes],
    ) -> Result<()> {
        let (lane, column) = self.check(address, warp)?;
        for (register, d) in d.iter_mut().enumerate().take(self.words) {
            for (thread, d) in d.iter_mut().enumerate() {
                let (l, c) = self.place(thread, register, split as usize);
                *d = if self.packed {
                    let low = memory.get(lane + l, column + 2 * c)? & 0xffff;
                    low | memory.get(lane + l, column + 2 * c + 1)? << 16
                } else {
                    memory.get(lane + l, column + c)?
                };
            }
        }
        Ok(())
    }
    /// From the registers of the `warp`-th warp of the block to tensor memory.
    ///
    /// # Errors
    /// When the lanes are another warp's or not allocated.
    pub fn store(
        &self,
        memory: &mut TensorMemory,
        address: u32,
        split: u32,
        warp: u32,
        a: &[Lanes],
    ) -> Result<()> {
        let (lane, column) = self.check(address, warp)?;
        for (register, a) in a.iter().enumerate().take(self.words) {
            for (thread, a) in a.iter().enumerate() {
                let (l, c) = self.place(thread, register, split as usize);
                if self.packed {
                    memory.set(lane + l, column + 2 * c, a & 0xffff)?;
                    memory.set(lane + l, column + 2 * c + 1, a >> 16)?;
                } else {
                    memory.set(lane + l, column + c, *a)?;
                }
            }
        }
        Ok(())
    }
}

/// A decoded `tcgen05.cp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcgen05Copy {
    rows: usize,
    chunks: usize,
    /// The groups of 32 lanes that get rows 0 to 31, and those that get the following.
    warps: &'static [&'static [usize]],
}

impl Tcgen05Copy {
    /// Decodes the modifiers that follow the opcode `tcgen05`, `cp` first.
    ///
    /// # Errors
    /// When the combination is not one of the instruction set's, or not covered.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("tcgen05", modifiers);
        if !m.take("cp") || !m.take("cta_group::1") {
            return Err(m.refuse("is not a copy of one block"));
        }
        let shape = m.need("shape", |w| w.ends_with('b').then_some(w))?;
        let spread = m.find(|w| w.starts_with("warpx").then_some(w));
        m.finish()?;
        let (rows, chunks, warps): (_, _, &[&[usize]]) = match (shape, spread) {
            ("128x256b", None) => (128, 2, &[&[0], &[1], &[2], &[3]]),
            ("128x128b", None) => (128, 1, &[&[0], &[1], &[2], &[3]]),
            ("4x256b", None) => (4, 2, &[&[0]]),
            ("64x128b", Some("warpx2::02_13")) => (64, 1, &[&[0, 2], &[1, 3]]),
            ("64x128b", Some("warpx2::01_23")) => (64, 1, &[&[0, 1], &[2, 3]]),
            ("32x128b", Some("warpx4")) => (32, 1, &[&[0, 1, 2, 3]]),
            _ => return Err(m.refuse("has a shape that does not exist")),
        };
        Ok(Self {
            rows,
            chunks,
            warps,
        })
    }
    /// From shared memory, by a descriptor, to tensor memory.
    ///
    /// # Errors
    /// When the descriptor is not one, leads out of `shared`, or the place is not allocated.
    pub fn execute(
        &self,
        memory: &mut TensorMemory,
        address: u32,
        from: u64,
        shared: &[u8],
    ) -> Result<()> {
        let from = descriptor(from)?;
        let (lane, column) = ((address >> 16) as usize, address as usize & 0xffff);
        for row in 0..self.rows {
            for c in 0..self.chunks {
                let words = read(shared, from.k_major(row as u32, c as u32))?;
                for warp in self.warps[row / 32] {
                    for (i, word) in words.into_iter().enumerate() {
                        memory.set(lane + 32 * warp + row % 32, column + 4 * c + i, word)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn descriptor(bits: u64) -> Result<MatrixDescriptor> {
    MatrixDescriptor::tcgen05(bits)
        .ok_or_else(|| fault(format!("descriptor {bits:#x} has no known swizzle")))
}

fn read(shared: &[u8], address: u32) -> Result<[u32; 4]> {
    chunk(shared, address).map_err(|OutOfShared { address }| {
        fault(format!(
            "a descriptor leads to {address:#x}, out of shared memory"
        ))
    })
}

/// The kind of a product, which gives its types their room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F16,
    Tf32,
    F8f6f4,
    I8,
}

/// A decoded `tcgen05.mma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcgen05Mma {
    kind: Kind,
}

/// Where A comes from.
#[derive(Clone, Copy, Debug)]
pub enum Tcgen05A {
    /// An address of tensor memory.
    Tensor(u32),
    /// A descriptor of shared memory.
    Shared(u64),
}

/// The operands of a `tcgen05.mma`.
#[derive(Clone, Copy, Debug)]
pub struct Tcgen05Args {
    /// The address of D in tensor memory.
    pub d: u32,
    /// A.
    pub a: Tcgen05A,
    /// The descriptor of B in shared memory.
    pub b: u64,
    /// The instruction descriptor.
    pub instruction: u32,
    /// Whether D is added to, instead of overwritten.
    pub enable_d: bool,
    /// D is first divided by two to this power.
    pub scale_d: u32,
    /// Lanes of D that are not written.
    pub disabled: [u32; 4],
}

impl Tcgen05Mma {
    /// Decodes the modifiers that follow the opcode `tcgen05`, `mma` first.
    ///
    /// # Errors
    /// When the combination is not one of the instruction set's, or not covered.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("tcgen05", modifiers);
        if !m.take("mma") || !m.take("cta_group::1") {
            return Err(m.refuse("is not a dense product of one block"));
        }
        let kind = m.need("kind", |w| match w.strip_prefix("kind::")? {
            "f16" => Some(Kind::F16),
            "tf32" => Some(Kind::Tf32),
            "f8f6f4" => Some(Kind::F8f6f4),
            "i8" => Some(Kind::I8),
            _ => None,
        })?;
        // Hints about the reuse of A change no result.
        let _ = m.find(|w| w.starts_with("collector::a::").then_some(()));
        m.finish()?;
        Ok(Self { kind })
    }
    /// Rows and columns that an instruction descriptor gives, and the kind's depth.
    fn shape(&self, instruction: u32) -> (usize, usize, usize) {
        let k = match self.kind {
            Kind::F16 => 16,
            Kind::Tf32 => 8,
            Kind::F8f6f4 | Kind::I8 => 32,
        };
        let n = (instruction >> 17 & 0x3f) as usize * 8;
        ((instruction >> 24 & 0x1f) as usize * 16, n, k)
    }
    /// Multiplications and additions under an instruction descriptor.
    pub fn flops(&self, instruction: u32) -> u64 {
        let (m, n, k) = self.shape(instruction);
        2 * (m * n * k) as u64
    }
    fn element(&self, code: u32) -> Option<Element> {
        match (self.kind, code & 7) {
            (Kind::F16, 0) => Some(Element::F16),
            (Kind::F16, 1) => Some(Element::Bf16),
            (Kind::Tf32, 2) => Some(Element::Tf32),
            (Kind::F8f6f4, 0) => Some(Element::E4m3),
            (Kind::F8f6f4, 1) => Some(Element::E5m2),
            (Kind::F8f6f4, 3) => Some(Element::E2m3),
            (Kind::F8f6f4, 4) => Some(Element::E3m2),
            (Kind::F8f6f4, 5) => Some(Element::E2m1),
            (Kind::I8, 0) => Some(Element::U8),
            (Kind::I8, 1) => Some(Element::S8),
            _ => None,
        }
    }
    /// D = A * B, or D = A * B + D.
    ///
    /// # Errors
    /// When a descriptor is not allowed, leads out of `shared`, or D or A is not allocated.
    pub fn execute(&self, memory: &mut TensorMemory, shared: &[u8], x: &Tcgen05Args) -> Result<()> {
        let i = x.instruction;
        let bad = || fault(format!("instruction descriptor {i:#x} is not allowed"));
        let (m, n, k) = self.shape(i);
        let (half_d, sums) = match (self.kind, i >> 4 & 3) {
            (Kind::I8, 2) => (false, true),
            (Kind::F16 | Kind::F8f6f4, 0) => (true, false),
            (Kind::F16 | Kind::F8f6f4 | Kind::Tf32, 1) => (false, false),
            _ => return Err(bad()),
        };
        if i & 4 != 0 || !matches!(m, 64 | 128) || n == 0 || n > 256 {
            return Err(bad());
        }
        let ea = self.element(i >> 7).ok_or_else(bad)?;
        let eb = self.element(i >> 10).ok_or_else(bad)?;
        let bit = |at: u32| i >> at & 1 == 1;
        let mut a = match x.a {
            Tcgen05A::Shared(bits) => operand(shared, descriptor(bits)?, ea, m, k, bit(15))?,
            Tcgen05A::Tensor(address) => tensor_operand(memory, address, ea, m, k)?,
        };
        let b = operand(shared, descriptor(x.b)?, eb, n, k, bit(16))?;
        if bit(13) != bit(14) {
            a.iter_mut().for_each(|a| *a = -*a);
        }
        let (lane, column) = ((x.d >> 16) as usize, x.d as usize & 0xffff);
        let scale = f32::from_bits((127 - x.scale_d.min(15)) << 23);
        for (row, a) in a.chunks_exact(k).enumerate() {
            let lane = lane + tensor_lane(row, m);
            if (x.disabled[(lane / 32) & 3] >> (lane % 32)) & 1 == 1 {
                continue;
            }
            for (j, b) in b.chunks_exact(k).enumerate() {
                let at = column + j;
                let old = if x.enable_d { memory.get(lane, at)? } else { 0 };
                let word = if sums {
                    // Eight-bit products and their sums are exact as singles.
                    let sum: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                    match bit(3) {
                        true => (old as i32).saturating_add(sum as i32) as u32,
                        false => (old as i32).wrapping_add(sum as i32) as u32,
                    }
                } else {
                    let old = if half_d {
                        half(old & 0xffff)
                    } else {
                        f32::from_bits(old)
                    };
                    let start = if x.scale_d == 0 { old } else { old * scale };
                    let sum = a.iter().zip(b).fold(start, |sum, (a, b)| sum + a * b);
                    match half_d {
                        true => to_half(sum),
                        false if sum.is_nan() => 0x7fff_ffff,
                        false => sum.to_bits(),
                    }
                };
                memory.set(lane, at, word)?;
            }
        }
        Ok(())
    }
}

/// The lane of a row of D or A: of 64 rows, each warp's lanes hold sixteen.
fn tensor_lane(row: usize, m: usize) -> usize {
    if m == 64 {
        row / 16 * 32 + row % 16
    } else {
        row
    }
}

/// The numbers in sixteen bytes; small floats below eight bits are packed at their start.
fn numbers(words: &[u32; 4], element: Element, out: &mut Vec<f32>) {
    let bits = match element {
        Element::E2m1 => 4,
        Element::E3m2 | Element::E2m3 => 6,
        Element::S8 | Element::U8 => {
            out.extend(quad::integers8(words, element == Element::S8).map(|v| v as f32));
            return;
        }
        _ => 0,
    };
    let [a, b, c, d] = words.map(u128::from);
    let all = a | b << 32 | c << 64 | d << 96;
    match Packing::in_bytes(element) {
        Some(Packing::F16) => out.extend(quad::f16(words)),
        Some(Packing::Bf16) => out.extend(quad::bf16(words)),
        Some(Packing::Tf32) => out.extend(quad::tf32(words)),
        Some(Packing::Byte(table)) if bits == 0 => out.extend(quad::bytes(words, table)),
        // In the table of bytes an `e2m1` stands two bits higher.
        Some(Packing::Byte(table)) => out.extend((0..16).map(|i| {
            let code = (all >> (bits * i)) as usize & ((1 << bits) - 1);
            table[if bits == 4 { code << 2 } else { code }]
        })),
        _ => {}
    }
}

/// An operand in shared memory, `k` numbers a row.
fn operand(
    shared: &[u8],
    from: MatrixDescriptor,
    element: Element,
    outer: usize,
    k: usize,
    transposed: bool,
) -> Result<Vec<f32>> {
    let mut out = Vec::with_capacity(outer * k);
    if !transposed {
        for row in 0..outer {
            for c in 0..2 {
                numbers(
                    &read(shared, from.k_major(row as u32, c))?,
                    element,
                    &mut out,
                );
            }
        }
        return Ok(out);
    }
    out.resize(outer * k, 0.0);
    let each = 128 / element.bits();
    let mut part = Vec::with_capacity(16);
    for block in 0..outer / each {
        for at in 0..k {
            part.clear();
            numbers(
                &read(shared, from.outer_major(block as u32, at as u32))?,
                element,
                &mut part,
            );
            for (i, value) in part.iter().enumerate() {
                out[(block * each + i) * k + at] = *value;
            }
        }
    }
    Ok(out)
}

/// An operand in tensor memory, eight columns of words.
fn tensor_operand(
    memory: &TensorMemory,
    address: u32,
    element: Element,
    m: usize,
    k: usize,
) -> Result<Vec<f32>> {
    let (lane, column) = ((address >> 16) as usize, address as usize & 0xffff);
    let mut out = Vec::with_capacity(m * k);
    for row in 0..m {
        let lane = lane + tensor_lane(row, m);
        for c in 0..2 {
            let mut words = [0; 4];
            for (i, word) in words.iter_mut().enumerate() {
                *word = memory.get(lane, column + 4 * c + i)?;
            }
            numbers(&words, element, &mut out);
        }
    }
    Ok(out)
}
