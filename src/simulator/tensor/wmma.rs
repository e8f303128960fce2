//! `wmma.load`, `wmma.store` and `wmma.mma`.
//!
//! The instruction set leaves open which lane holds which element of these fragments.  Here
//! elements lie in the order of their rows, 32 bits a lane, one register after the other.

use crate::base::Result;
use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::element::{Element, Packing, halves, quad};
use crate::simulator::tensor::fragment::{add_integer, double, set_double, single_bits};
use crate::simulator::tensor::mma::BitOp;
use crate::simulator::tensor::words::{Modifiers, Shape, Words, layout};

/// A decoded `wmma` instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wmma {
    /// From memory to registers.
    Load(WmmaMove),
    /// From registers to memory.
    Store(WmmaMove),
    /// A product.
    Mma(WmmaMma),
}

/// A decoded `wmma.load` or `wmma.store`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WmmaMove {
    rows: usize,
    columns: usize,
    element: Element,
    /// Whether rows are contiguous in memory.
    by_rows: bool,
    words: usize,
}

/// A decoded `wmma.mma`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WmmaMma {
    shape: Shape,
    d: Element,
    a: Element,
    b: Element,
    c: Element,
    saturate: bool,
    op: Option<BitOp>,
}

impl Wmma {
    /// Decodes the modifiers that follow the opcode `wmma`.
    ///
    /// # Errors
    /// When the combination of shape, types and modifiers is not one of the instruction set's.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("wmma", modifiers);
        if m.take("mma") {
            return WmmaMma::parse(m).map(Self::Mma);
        }
        let load = m.take("load");
        if !load && !m.take("store") {
            return Err(m.refuse("neither loads, stores nor multiplies"));
        }
        let matrix = m.need("matrix", |w| match w {
            "a" | "b" | "c" if load => Some(w),
            "d" if !load => Some(w),
            _ => None,
        })?;
        if !m.take("sync") || !m.take("aligned") {
            return Err(m.refuse("needs `.sync.aligned`"));
        }
        let by_rows = m.need("layout", layout)?;
        let shape = m.need("shape", Shape::parse)?;
        let _ = m.find(|w| {
            let space = matches!(w, "global" | "shared" | "shared::cta" | "shared::cluster");
            space.then_some(())
        });
        let element = m.need("element type", Element::parse)?;
        m.finish()?;
        let operand = matches!(matrix, "a" | "b");
        let known = if operand {
            operand_exists(shape, element)
        } else {
            accumulator_exists(shape, element)
        };
        let packed = element.bits() < 8;
        let wrong_way = packed && (matrix == "a") != by_rows && operand;
        if !known || wrong_way {
            return Err(m.refuse("has a shape, layout and type that do not go together"));
        }
        let (rows, columns) = match matrix {
            "a" => (shape.m, shape.k),
            "b" => (shape.k, shape.n),
            _ => (shape.m, shape.n),
        };
        let moved = WmmaMove {
            rows,
            columns,
            element,
            by_rows,
            words: words_of(rows * columns, element, operand),
        };
        Ok(if load {
            Self::Load(moved)
        } else {
            Self::Store(moved)
        })
    }
}

/// Registers of a fragment; those of half operands are twice as many as they need.
fn words_of(elements: usize, element: Element, operand: bool) -> usize {
    if operand && element == Element::F16 {
        return 8;
    }
    elements * element.bits() / 1024
}

fn operand_exists(s: Shape, e: Element) -> bool {
    use Element as E;
    let large = matches!((s.m, s.n, s.k), (16, 16, 16) | (32, 8, 16) | (8, 32, 16));
    match e {
        E::F16 | E::Bf16 | E::S8 | E::U8 => large,
        E::Tf32 => (s.m, s.n, s.k) == (16, 16, 8),
        E::F64 => (s.m, s.n, s.k) == (8, 8, 4),
        E::S4 | E::U4 => (s.m, s.n, s.k) == (8, 8, 32),
        E::B1 => (s.m, s.n, s.k) == (8, 8, 128),
        _ => false,
    }
}

fn accumulator_exists(s: Shape, e: Element) -> bool {
    use Element as E;
    match e {
        E::F16 => operand_exists(s, E::F16),
        E::F32 => operand_exists(s, E::F16) || operand_exists(s, E::Tf32),
        E::F64 => operand_exists(s, E::F64),
        E::S32 => [E::S8, E::S4, E::B1].iter().any(|&e| operand_exists(s, e)),
        _ => false,
    }
}

impl WmmaMove {
    /// How many 32-bit registers the fragment takes.
    pub fn words(&self) -> usize {
        self.words
    }
    /// How many contiguous pieces it moves.
    pub fn lines(&self) -> usize {
        if self.by_rows {
            self.rows
        } else {
            self.columns
        }
    }
    /// Elements of a piece, which is the stride when none is given.
    pub fn default_stride(&self) -> u32 {
        (if self.by_rows {
            self.columns
        } else {
            self.rows
        }) as u32
    }
    /// Bytes of a piece.
    pub fn line_bytes(&self) -> usize {
        self.default_stride() as usize * self.element.bits() / 8
    }
    /// Where a piece begins, from the instruction's address, for a stride in elements.
    pub fn line_offset(&self, line: usize, stride: u32) -> u64 {
        line as u64 * u64::from(stride) * self.element.bits() as u64 / 8
    }
    /// The position of the `i`-th element of memory among the elements in row order.
    fn position(&self, i: usize) -> usize {
        if self.by_rows {
            return i;
        }
        let (column, row) = (i / self.rows, i % self.rows);
        row * self.columns + column
    }
    /// Fills the fragment from the pieces, side by side; each slice has what is asked for.
    pub fn load(&self, lines: &[u8], d: &mut [Lanes]) {
        let bits = self.element.bits();
        for reg in d.iter_mut() {
            *reg = [0; 32];
        }
        for i in 0..self.rows * self.columns {
            let p = self.position(i);
            if bits == 64 {
                let half = |j: usize| {
                    u32::from_le_bytes(std::array::from_fn(|b| lines[8 * i + 4 * j + b]))
                };
                d[p / 32 * 2][p % 32] = half(0);
                d[p / 32 * 2 + 1][p % 32] = half(1);
                continue;
            }
            let value = match bits {
                32 => u32::from_le_bytes(std::array::from_fn(|b| lines[4 * i + b])),
                16 => u32::from(u16::from_le_bytes([lines[2 * i], lines[2 * i + 1]])),
                _ => u32::from(lines[i * bits / 8]) >> (i * bits % 8) & ((1 << bits) - 1),
            };
            let word = p * bits / 32;
            d[word / 32][word % 32] |= value << (p * bits % 32);
        }
        // What half operands have too much repeats the rest.
        let used = self.rows * self.columns * bits / 1024;
        for i in used..self.words {
            d[i] = d[i % used];
        }
    }
    /// Fills the pieces, side by side, from the fragment; each slice has what is asked for.
    pub fn store(&self, a: &[Lanes], lines: &mut [u8]) {
        let bytes = self.element.bits() / 8;
        for i in 0..self.rows * self.columns {
            let p = self.position(i);
            let out = &mut lines[i * bytes..][..bytes];
            if bytes == 8 {
                out[..4].copy_from_slice(&a[p / 32 * 2][p % 32].to_le_bytes());
                out[4..].copy_from_slice(&a[p / 32 * 2 + 1][p % 32].to_le_bytes());
                continue;
            }
            let word = p * bytes / 4;
            let value = a[word / 32][word % 32] >> (8 * (p * bytes % 4));
            out.copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
}

/// Room for the largest fragment: 32 by 16 of A, 16 by 32 of B, 256 sums.
const MOST: usize = 512;

impl WmmaMma {
    fn parse(mut m: Modifiers<'_>) -> Result<Self> {
        use Element as E;
        let op = m.find(BitOp::parse);
        if op.is_some() != m.take("popc") {
            return Err(m.refuse("needs an operation and `.popc`"));
        }
        if !m.take("sync") || !m.take("aligned") {
            return Err(m.refuse("needs `.sync.aligned`"));
        }
        let row_a = m.need("layout of A", layout)?;
        let row_b = m.need("layout of B", layout)?;
        let shape = m.need("shape", Shape::parse)?;
        let rounded = m.take("rn");
        let saturate = m.take("satfinite");
        let d = m.need("type of D", Element::parse)?;
        let second = m.need("second type", Element::parse)?;
        // Products of halves name D and C only.
        let (a, b, c) = match m.find(Element::parse) {
            Some(b) => (second, b, m.need("type of C", Element::parse)?),
            None => (E::F16, E::F16, second),
        };
        m.finish()?;
        let sums = |e: E| matches!(e, E::F16 | E::F32);
        let known = match (d, a, b, c, op) {
            (_, E::F16, E::F16, _, None) => sums(d) && sums(c),
            (E::F32, E::Bf16, E::Bf16, E::F32, None)
            | (E::F32, E::Tf32, E::Tf32, E::F32, None)
            | (E::F64, E::F64, E::F64, E::F64, None) => !saturate,
            (E::S32, E::S8 | E::U8, _, E::S32, None) => a == b,
            (E::S32, E::S4 | E::U4, _, E::S32, None) => a == b && row_a && !row_b,
            (E::S32, E::B1, E::B1, E::S32, Some(_)) => !saturate && row_a && !row_b,
            _ => false,
        };
        if !known || !operand_exists(shape, a) || (rounded && a != E::F64) {
            return Err(m.refuse("has a shape, layout and types that do not go together"));
        }
        Ok(Self {
            shape,
            d,
            a,
            b,
            c,
            saturate,
            op,
        })
    }
    /// Counts of 32-bit registers of the operands.
    pub fn words(&self) -> Words {
        let Shape { m, n, k } = self.shape;
        Words {
            a: words_of(m * k, self.a, true),
            b: words_of(k * n, self.b, true),
            c: words_of(m * n, self.c, false),
            d: words_of(m * n, self.d, false),
        }
    }
    /// Multiplications and additions.
    pub fn flops(&self) -> u64 {
        self.shape.flops()
    }
    /// D = A * B + C; the slices hold as many registers as [`Self::words`] says.
    #[inline(always)]
    pub fn execute(&self, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes]) {
        match self.a {
            Element::F64 => self.doubles(d, a, b, c),
            Element::B1 => self.bits(d, a, b, c),
            Element::S8 | Element::U8 | Element::S4 | Element::U4 => self.integers(d, a, b, c),
            _ => self.floats(d, a, b, c),
        }
    }

    #[inline(always)]
    fn floats(&self, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes]) {
        let Shape { m, n, k } = self.shape;
        let (mut wide_a, mut wide_b, mut sum) = ([0f32; MOST], [0f32; MOST], [0f32; 256]);
        spread(a, self.a, &mut wide_a[..m * k]);
        spread(b, self.b, &mut wide_b[..k * n]);
        spread(c, self.c, &mut sum[..m * n]);
        for (a, sum) in wide_a.chunks_exact(k).zip(sum.chunks_exact_mut(n)) {
            for (a, b) in a.iter().zip(wide_b.chunks_exact(n)) {
                for (sum, b) in sum.iter_mut().zip(b) {
                    *sum += a * b;
                }
            }
        }
        let limit = if self.d == Element::F16 {
            65504.0
        } else {
            f32::MAX
        };
        let finish = |v: f32| match self.saturate {
            true if v.is_nan() => 0.0,
            true => v.clamp(-limit, limit),
            false => v,
        };
        if self.d == Element::F16 {
            for (word, pair) in sum[..m * n].chunks_exact(2).enumerate() {
                d[word / 32][word % 32] = halves(finish(pair[0]), finish(pair[1]));
            }
        } else {
            for (word, v) in sum[..m * n].iter().enumerate() {
                d[word / 32][word % 32] = single_bits(finish(*v));
            }
        }
    }

    fn integers(&self, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes]) {
        let Shape { m, n, k } = self.shape;
        let (mut wide_a, mut wide_b) = ([0i32; MOST], [0i32; MOST]);
        let spread = |regs: &[Lanes], e: Element, out: &mut [i32]| {
            let quads = regs.as_flattened().as_chunks::<4>().0;
            if e.bits() == 8 {
                for (quad, out) in quads.iter().zip(out.as_chunks_mut::<16>().0) {
                    *out = quad::integers8(quad, e == Element::S8);
                }
            } else {
                for (quad, out) in quads.iter().zip(out.as_chunks_mut::<32>().0) {
                    *out = quad::integers4(quad, e == Element::S4);
                }
            }
        };
        spread(a, self.a, &mut wide_a[..m * k]);
        spread(b, self.b, &mut wide_b[..k * n]);
        for (row, a) in wide_a.chunks_exact(k).enumerate().take(m) {
            let mut sum = [0i32; 32];
            for (a, b) in a.iter().zip(wide_b.chunks_exact(n)) {
                for (sum, b) in sum.iter_mut().zip(b) {
                    *sum = sum.wrapping_add(a.wrapping_mul(*b));
                }
            }
            for (column, sum) in sum.iter().enumerate().take(n) {
                let at = row * n + column;
                let c = c[at / 32][at % 32];
                d[at / 32][at % 32] = add_integer(c, *sum, self.saturate);
            }
        }
    }

    /// Rows of A are four words, and so are columns of B, which lie in B's row order here.
    fn bits(&self, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes]) {
        let bit = |regs: &[Lanes], at: usize| regs[at / 1024][at / 32 % 32] >> (at % 32) & 1;
        for at in 0..64 {
            let (row, column) = (at / 8, at % 8);
            let count: u32 = (0..128)
                .map(|k| {
                    let (a, b) = (bit(a, 128 * row + k), bit(b, 8 * k + column));
                    match self.op {
                        Some(BitOp::Xor) => a ^ b,
                        _ => a & b,
                    }
                })
                .sum();
            d[at / 32][at % 32] = c[at / 32][at % 32].wrapping_add(count);
        }
    }

    #[inline(always)]
    fn doubles(&self, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes]) {
        let mut out = [0f64; 64];
        for (at, out) in out.iter_mut().enumerate() {
            let mut sum = double(c, at / 32, at % 32);
            for k in 0..4 {
                let (a, b) = (double(a, 0, at / 8 * 4 + k), double(b, 0, k * 8 + at % 8));
                sum = a.mul_add(b, sum);
            }
            *out = sum;
        }
        for (at, value) in out.into_iter().enumerate() {
            set_double(d, at / 32, at % 32, value);
        }
    }
}

/// Elements of a fragment in row order as singles.
#[inline(always)]
fn spread(regs: &[Lanes], element: Element, out: &mut [f32]) {
    let quads = regs.as_flattened().as_chunks::<4>().0;
    match Packing::in_bytes(element) {
        Some(Packing::F16) => {
            for (words, out) in quads.iter().zip(out.as_chunks_mut::<8>().0) {
                *out = quad::f16(words);
            }
        }
        Some(Packing::Bf16) => {
            for (words, out) in quads.iter().zip(out.as_chunks_mut::<8>().0) {
                *out = quad::bf16(words);
            }
        }
        Some(Packing::Tf32) => {
            for (words, out) in quads.iter().zip(out.as_chunks_mut::<4>().0) {
                *out = quad::tf32(words);
            }
        }
        _ => {
            for (word, out) in regs.as_flattened().iter().zip(out) {
                *out = f32::from_bits(*word);
            }
        }
    }
}
