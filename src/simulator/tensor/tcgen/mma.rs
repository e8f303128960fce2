//! `tcgen05.mma`: products of matrices in shared and tensor memory, of one block or a pair.

use crate::base::Result;
use crate::simulator::tensor::descriptor::MatrixDescriptor;
use crate::simulator::tensor::element::{Element, Packing, ScaleType, half, to_half};
use crate::simulator::tensor::fragment::{add_integer, single_bits};
use crate::simulator::tensor::tcgen::descriptor::{descriptor, read};
use crate::simulator::tensor::tcgen::memory::{TensorMemory, fault};
use crate::simulator::tensor::tcgen::numbers::Coding;
use crate::simulator::tensor::words::Modifiers;

/// The kind of a product, which gives its types their room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F16,
    Tf32,
    F8f6f4,
    I8,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

/// A decoded `tcgen05.mma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcgen05Mma {
    kind: Kind,
    pair: bool,
    /// Chunks along k that have a factor each; none without block scaling.
    chunks: Option<usize>,
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
    /// Addresses of the factors of A and B in tensor memory.
    pub scales: Option<[u32; 2]>,
    /// Whether D is added to, instead of overwritten.
    pub enable_d: bool,
    /// D is first divided by two to this power.
    pub scale_d: u32,
    /// Lanes of D that are not written, of the first block and then of the second.
    pub disabled: [u32; 8],
}

/// What a block has of a product: its rows of A and D, and its columns of B.
pub struct Tcgen05Side<'a> {
    /// Its tensor memory.
    pub memory: &'a mut TensorMemory,
    /// Its shared memory.
    pub shared: &'a [u8],
}

/// The sums of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    Half,
    Single,
    Integer { saturate: bool },
}

/// The factors of a product: their type, and the first byte of each word that holds them.
#[derive(Clone, Copy, Debug)]
struct Factors {
    scale: ScaleType,
    chunks: usize,
    a: u32,
    b: u32,
}

/// An instruction descriptor taken apart.
#[derive(Clone, Copy, Debug)]
struct Product {
    m: usize,
    n: usize,
    k: usize,
    a: Coding,
    b: Coding,
    sums: Sums,
    negate: bool,
    transpose_a: bool,
    transpose_b: bool,
    factors: Option<Factors>,
}

fn small_float(code: u32) -> Option<Element> {
    Some(match code & 7 {
        0 => Element::E4m3,
        1 => Element::E5m2,
        3 => Element::E2m3,
        4 => Element::E3m2,
        5 => Element::E2m1,
        _ => return None,
    })
}

impl Tcgen05Mma {
    /// Decodes the modifiers that follow the opcode `tcgen05`, `mma` first.
    ///
    /// # Errors
    /// When the combination is not one of the instruction set's, or not covered.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("tcgen05", modifiers);
        if !m.take("mma") {
            return Err(m.refuse("multiplies nothing"));
        }
        let pair = m.take("cta_group::2");
        if !pair && !m.take("cta_group::1") {
            return Err(m.refuse("needs `.cta_group`"));
        }
        let kind = m.need("kind", |w| {
            Some(match w.strip_prefix("kind::")? {
                "f16" => Kind::F16,
                "tf32" => Kind::Tf32,
                "f8f6f4" => Kind::F8f6f4,
                "i8" => Kind::I8,
                "mxf8f6f4" => Kind::Mxf8f6f4,
                "mxf4" => Kind::Mxf4,
                "mxf4nvf4" => Kind::Mxf4nvf4,
                _ => return None,
            })
        })?;
        let scaled = m.take("block_scale");
        let vector =
            m.find(|w| (w.starts_with("scale_vec::") || w.starts_with("block")).then_some(w));
        // Hints about the reuse of A change no result.
        let _ = m.find(|w| w.starts_with("collector::a::").then_some(()));
        m.finish()?;
        let chunks = match (kind, vector) {
            (Kind::Mxf8f6f4, None | Some("scale_vec::1X" | "block32")) => Some(1),
            (Kind::Mxf4, None | Some("scale_vec::2X" | "block32")) => Some(2),
            (Kind::Mxf4nvf4, Some("scale_vec::2X" | "block32")) => Some(2),
            (Kind::Mxf4nvf4, Some("scale_vec::4X" | "block16")) => Some(4),
            (Kind::F16 | Kind::Tf32 | Kind::F8f6f4 | Kind::I8, None) => None,
            _ => return Err(m.refuse("has factors that its kind does not have")),
        };
        if scaled != chunks.is_some() {
            return Err(m.refuse("needs `.block_scale` with its kind, and only there"));
        }
        if scaled && pair {
            return Err(m.refuse("scales the blocks of a pair, which is not covered"));
        }
        Ok(Self { kind, pair, chunks })
    }
    /// Whether two blocks make it together.
    pub fn is_pair(&self) -> bool {
        self.pair
    }
    /// Whether the addresses of factors follow the instruction descriptor.
    pub fn is_block_scaled(&self) -> bool {
        self.chunks.is_some()
    }
    /// Whether D may be divided by a power of two first.
    pub fn has_scale_d(&self) -> bool {
        matches!(self.kind, Kind::F16 | Kind::Tf32)
    }
    /// Rows and columns that an instruction descriptor gives, and the kind's depth.
    fn shape(&self, instruction: u32) -> (usize, usize, usize) {
        let k = match self.kind {
            Kind::F16 => 16,
            Kind::Tf32 => 8,
            Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 => 32,
            Kind::Mxf4 | Kind::Mxf4nvf4 => 64,
        };
        let m = match self.chunks {
            None => (instruction >> 24 & 0x1f) * 16,
            Some(_) => (instruction >> 27 & 3) * 128,
        };
        (m as usize, (instruction >> 17 & 0x3f) as usize * 8, k)
    }
    /// Multiplications and additions under an instruction descriptor.
    pub fn flops(&self, instruction: u32) -> u64 {
        let (m, n, k) = self.shape(instruction);
        2 * (m * n * k) as u64
    }
    /// The coding of A or B, from its place in the instruction descriptor.
    fn coding(&self, code: u32) -> Option<Coding> {
        Coding::in_shared(match (self.kind, code & 7) {
            (Kind::F16, 0) => Element::F16,
            (Kind::F16, 1) => Element::Bf16,
            (Kind::Tf32, 2) => Element::Tf32,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, code) => small_float(code)?,
            (Kind::I8, 0) => Element::U8,
            (Kind::I8, 1) => Element::S8,
            (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => return Some(Coding::Plain(Packing::FP4)),
            _ => return None,
        })
    }
    /// Takes an instruction descriptor apart; nothing when it is not allowed.
    fn product(&self, i: u32) -> Option<Product> {
        let (m, n, k) = self.shape(i);
        let bit = |at: u32| i >> at & 1 == 1;
        let sums = match (self.kind, i >> 4 & 3) {
            (Kind::I8, 2) => Sums::Integer { saturate: bit(3) },
            (Kind::F16 | Kind::F8f6f4, 0) => Sums::Half,
            (Kind::F16 | Kind::F8f6f4 | Kind::Tf32, 1) => Sums::Single,
            (Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4, _) => Sums::Single,
            _ => return None,
        };
        let factors = match self.chunks {
            None => None,
            Some(chunks) => Some(Factors {
                scale: match (self.kind, bit(23)) {
                    (_, true) => ScaleType::Ue8m0,
                    (Kind::Mxf4nvf4, false) => ScaleType::Ue4m3,
                    _ => return None,
                },
                chunks,
                a: i >> 29 & 3,
                b: i >> 4 & 3,
            }),
        };
        // Factors do not go beyond their word, and a depth of 96 is another instruction.
        let beyond = |f: &Factors| f.a.max(f.b) as usize + f.chunks > 4 || bit(31);
        let blocks = if self.pair { 2 } else { 1 };
        let rows = m / blocks;
        let step = if rows == 128 { 16 } else { 8 };
        let fits = matches!(rows, 64 | 128) && n > 0 && n <= 256 && n.is_multiple_of(step * blocks);
        if bit(2)
            || !fits
            || (factors.is_some() && m != 128)
            || factors.as_ref().is_some_and(beyond)
        {
            return None;
        }
        let four = matches!(self.kind, Kind::Mxf4 | Kind::Mxf4nvf4);
        if four && (bit(15) || bit(16)) {
            return None;
        }
        Some(Product {
            m,
            n,
            k,
            a: self.coding(i >> 7)?,
            b: self.coding(if four { i >> 10 & 3 } else { i >> 10 })?,
            sums,
            negate: bit(13) != bit(14),
            transpose_a: bit(15),
            transpose_b: bit(16),
            factors,
        })
    }
    /// D = A * B, or D = A * B + D, with one side a block.
    ///
    /// # Errors
    /// When a descriptor is not allowed, leads out of a side's shared memory, or D, A or a factor is
    /// not allocated.
    pub fn execute(&self, sides: &mut [Tcgen05Side<'_>], x: &Tcgen05Args) -> Result<()> {
        let Some(p) = self.product(x.instruction) else {
            let what = format!("instruction descriptor {:#x} is not allowed", x.instruction);
            return Err(fault(what));
        };
        let blocks = sides.len();
        let rows = p.m / blocks;
        let mut b = Vec::with_capacity(p.n * p.k);
        for side in &*sides {
            let from = descriptor(x.b)?;
            b.extend(operand(
                side.shared,
                from,
                p.b,
                p.n / blocks,
                p.k,
                p.transpose_b,
            )?);
        }
        // Half the rows leave lanes free, in which a pair puts the second half of the columns.
        let folded = blocks == 2 && rows == 64;
        for (side, disabled) in sides.iter_mut().zip(x.disabled.as_chunks::<4>().0) {
            let mut a = match x.a {
                Tcgen05A::Shared(bits) => operand(
                    side.shared,
                    descriptor(bits)?,
                    p.a,
                    rows,
                    p.k,
                    p.transpose_a,
                )?,
                Tcgen05A::Tensor(_) if folded => {
                    return Err(fault(
                        "A of 128 rows of a pair comes from shared memory only",
                    ));
                }
                Tcgen05A::Tensor(at) => tensor_operand(side.memory, at, p.a.in_tensor(), rows)?,
            };
            if p.negate {
                a.iter_mut().for_each(|a| *a = -*a);
            }
            let factors = match (p.factors, x.scales) {
                (Some(f), Some([a, b])) => Some((
                    factors(side.memory, a, f.scale, rows, f.a, f.chunks)?,
                    factors(side.memory, b, f.scale, p.n, f.b, f.chunks)?,
                )),
                _ => None,
            };
            let (lane, column) = place(x.d);
            for (row, a) in a.chunks_exact(p.k).enumerate() {
                for (j, b) in b.chunks_exact(p.k).enumerate() {
                    let (l, c) = match folded {
                        true => (row + 64 * (2 * j / p.n), j % (p.n / 2)),
                        false => (tensor_lane(row, rows), j),
                    };
                    let (lane, column) = (lane + l, column + c);
                    if disabled[(lane / 32) & 3] >> (lane % 32) & 1 == 1 {
                        continue;
                    }
                    let old = match x.enable_d {
                        true => side.memory.get(lane, column)?,
                        false => 0,
                    };
                    let word = match (p.sums, &factors) {
                        (Sums::Integer { saturate }, _) => {
                            // Eight-bit products and their sums are exact as singles.
                            let sum: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                            add_integer(old, sum as i32, saturate)
                        }
                        (Sums::Half, _) => {
                            to_half(dot(divided(half(old & 0xffff), x.scale_d), a, b))
                        }
                        (Sums::Single, None) => {
                            single_bits(dot(divided(f32::from_bits(old), x.scale_d), a, b))
                        }
                        (Sums::Single, Some((fa, fb))) => {
                            let chunks = fa.len() / rows;
                            let of = |f: &[f64], at: usize| f[at * chunks..][..chunks].to_vec();
                            let pairs = of(fa, row).into_iter().zip(of(fb, j));
                            let width = p.k / chunks;
                            let parts = a.chunks_exact(width).zip(b.chunks_exact(width));
                            let sum = parts.zip(pairs).fold(f32::from_bits(old), |sum, part| {
                                let ((a, b), (fa, fb)) = part;
                                (f64::from(dot(0.0, a, b)) * fa * fb + f64::from(sum)) as f32
                            });
                            single_bits(sum)
                        }
                    };
                    side.memory.set(lane, column, word)?;
                }
            }
        }
        Ok(())
    }
}

/// `start` plus the products, one after the other.
fn dot(start: f32, a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(start, |sum, (a, b)| sum + a * b)
}

/// `value` over two to `power`.
fn divided(value: f32, power: u32) -> f32 {
    match power {
        0 => value,
        power => value * f32::from_bits((127 - power.min(15)) << 23),
    }
}

/// The lane and column of an address.
fn place(address: u32) -> (usize, usize) {
    ((address >> 16) as usize, address as usize & 0xffff)
}

/// The lane of a row of D or A: of 64 rows, each warp's lanes hold sixteen.
fn tensor_lane(row: usize, rows: usize) -> usize {
    if rows == 64 {
        row / 16 * 32 + row % 16
    } else {
        row
    }
}

/// An operand in shared memory, `k` numbers a row.
fn operand(
    shared: &[u8],
    from: MatrixDescriptor,
    coding: Coding,
    outer: usize,
    k: usize,
    transposed: bool,
) -> Result<Vec<f32>> {
    let mut out = Vec::with_capacity(outer * k);
    if !transposed {
        for row in 0..outer as u32 {
            for c in 0..2 {
                coding.read(&read(shared, from.k_major(row, c))?, &mut out);
            }
        }
        return Ok(out);
    }
    out.resize(outer * k, 0.0);
    let each = coding.count();
    let mut part = Vec::with_capacity(each);
    for block in 0..outer / each {
        for at in 0..k {
            part.clear();
            let chunk = read(shared, from.outer_major(block as u32, at as u32))?;
            coding.read(&chunk, &mut part);
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
    coding: Coding,
    rows: usize,
) -> Result<Vec<f32>> {
    let (lane, column) = place(address);
    let mut out = Vec::with_capacity(rows * 2 * coding.count());
    for row in 0..rows {
        let lane = lane + tensor_lane(row, rows);
        for c in 0..2 {
            let mut words = [0; 4];
            for (i, word) in words.iter_mut().enumerate() {
                *word = memory.get(lane, column + 4 * c + i)?;
            }
            coding.read(&words, &mut out);
        }
    }
    Ok(out)
}

/// The factors of rows of A or columns of B, `chunks` of each. Thirty-two of them lie in a column,
/// a word each, and each group of 32 lanes has all of them.
fn factors(
    memory: &TensorMemory,
    address: u32,
    scale: ScaleType,
    count: usize,
    first: u32,
    chunks: usize,
) -> Result<Vec<f64>> {
    let (lane, column) = place(address);
    let mut out = Vec::with_capacity(count * chunks);
    for at in 0..count {
        let word = memory.get(lane + at % 32, column + at / 32)?;
        for group in 1..4 {
            if memory.get(lane + at % 32 + 32 * group, column + at / 32)? != word {
                let what = "are not the same in all groups of 32 lanes";
                return Err(fault(format!("factors at {address:#x} {what}")));
            }
        }
        out.extend((0..chunks).map(|c| scale.value((word >> (8 * (first as usize + c))) as u8)));
    }
    Ok(out)
}
