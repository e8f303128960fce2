//! `mma` and `mma.sp`: one warp multiplies two small matrices held in its registers.

use crate::base::Result;
use crate::simulator::tensor::element::{Element, Packing, ScaleType, quad};
use crate::simulator::tensor::fragment;
use crate::simulator::tensor::sparse::Sparsity;
use crate::simulator::tensor::words::{Modifiers, Shape, Words, layout};
use crate::simulator::tensor::{Lanes, volta};

/// How single bits are combined before they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BitOp {
    /// Count the bits that differ.
    Xor,
    /// Count the bits that both have.
    And,
}

impl BitOp {
    /// The operation of a modifier.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "xor" => Some(Self::Xor),
            "and" => Some(Self::And),
            _ => None,
        }
    }
    /// How many bits of two words it counts.
    #[inline(always)]
    pub(super) fn count(self, a: u32, b: u32) -> i32 {
        let bits = match self {
            Self::Xor => a ^ b,
            Self::And => a & b,
        };
        bits.count_ones() as i32
    }
}

/// The arithmetic of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arithmetic {
    /// Floats, summed as singles.
    Float { a: Packing, b: Packing },
    /// Floats in chunks along k, each with factors.
    Scaled {
        a: Packing,
        b: Packing,
        scale: ScaleType,
        chunks: usize,
    },
    /// Doubles.
    Double,
    /// Integers.
    Integer {
        a: Element,
        b: Element,
        saturate: bool,
    },
    /// Bits.
    Bits(BitOp),
}

/// One of the factors of a block-scaled product.
#[derive(Clone, Copy, Debug)]
pub struct Scale<'a> {
    /// The register with four factors a lane.
    pub data: &'a Lanes,
    /// Which byte of the word is the first factor.
    pub byte: u32,
    /// Which lanes of each quad hold the factors.
    pub thread: u32,
}

/// What only some instructions take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extra<'a> {
    /// Positions of the kept elements of a sparse A.
    pub metadata: Option<&'a Lanes>,
    /// Which lanes of each quad hold the metadata.
    pub selector: u32,
    /// Factors of A's rows.
    pub scale_a: Option<Scale<'a>>,
    /// Factors of B's columns.
    pub scale_b: Option<Scale<'a>>,
}

/// A decoded `mma` instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mma {
    shape: Shape,
    arithmetic: Arithmetic,
    /// Whether C and D are halves.
    half_c: bool,
    half_d: bool,
    sparse: Option<Sparsity>,
    /// Whether A and B are laid out by rows, for the shape of the first tensor cores.
    volta: Option<(bool, bool)>,
    words: Words,
}

/// What every instruction of the family says about its types.
struct Types {
    d: Element,
    a: Element,
    b: Element,
    c: Element,
}

impl Mma {
    /// Decodes the modifiers that follow the opcode `mma`.
    ///
    /// # Errors
    /// When the combination of shape, types and modifiers is not one of the instruction set's.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("mma", modifiers);
        let sparse = m.take("sp") || m.take("sp::ordered_metadata");
        if !m.take("sync") || !m.take("aligned") {
            return Err(m.refuse("needs `.sync.aligned`"));
        }
        let kind = m.find(|w| w.strip_prefix("kind::"));
        let scaled = m.take("block_scale");
        let vector = m.find(|w| w.strip_prefix("scale_vec::"));
        let shape = m.need("shape", Shape::parse)?;
        let row_a = m.need("layout of A", layout)?;
        let row_b = m.need("layout of B", layout)?;
        let saturate = m.take("satfinite");
        let types = Types {
            d: m.need("type of D", Element::parse)?,
            a: m.need("type of A", Element::parse)?,
            b: m.need("type of B", Element::parse)?,
            c: m.need("type of C", Element::parse)?,
        };
        let scale = m.find(ScaleType::parse);
        let bits = m.find(BitOp::parse);
        if bits.is_some() && !m.take("popc") {
            return Err(m.refuse("needs `.popc`"));
        }
        // Doubles may say how they round, and are rounded so in any case.
        let _ = types.a == Element::F64 && m.take("rn");
        m.finish()?;
        let volta = (shape == VOLTA && types.a == Element::F16).then_some((row_a, row_b));
        if volta.is_none() && (!row_a || row_b) {
            return Err(m.refuse("has layouts other than `.row.col`"));
        }
        let found = match (scaled, bits) {
            (true, None) => scaled_arithmetic(kind, vector, scale, &types),
            (false, Some(op)) if types.a == Element::B1 && types.b == Element::B1 => {
                Some(Arithmetic::Bits(op))
            }
            (false, None) if scale.is_none() && vector.is_none() => {
                plain_arithmetic(kind, saturate, &types)
            }
            _ => None,
        };
        let Some(arithmetic) = found else {
            return Err(m.refuse("has types that do not go together"));
        };
        let integer = matches!(arithmetic, Arithmetic::Integer { .. });
        if saturate && !integer {
            return Err(m.refuse("saturates, which only integers do"));
        }
        let dense_k = if sparse { shape.k / 2 } else { shape.k };
        if !shape_exists(shape, sparse, kind, &types, arithmetic) {
            return Err(m.refuse("has a shape that its types do not have"));
        }
        let per_word = operand_per_word(arithmetic);
        let of = |rows: usize, k: usize| match per_word {
            Some(per) => rows * k / 32 / per,
            None => rows * k / 32 * 2,
        };
        let accumulator = |t: Element| match (t, volta) {
            (Element::F16, Some(_)) => 4,
            (_, Some(_)) => 8,
            _ => shape.m * shape.n * t.bits() / 1024,
        };
        let words = match volta {
            Some(_) => Words {
                a: 2,
                b: 2,
                c: accumulator(types.c),
                d: accumulator(types.d),
            },
            None => Words {
                a: of(shape.m, dense_k),
                b: of(shape.n, shape.k),
                c: accumulator(types.c),
                d: accumulator(types.d),
            },
        };
        Ok(Self {
            shape,
            arithmetic,
            half_c: types.c == Element::F16,
            half_d: types.d == Element::F16,
            sparse: sparse.then(|| {
                let fp4 = matches!(arithmetic, Arithmetic::Scaled { a, .. } if a == Packing::FP4);
                Sparsity::of(types.a, fp4)
            }),
            volta,
            words,
        })
    }
    /// Counts of 32-bit registers of the operands.
    pub fn words(&self) -> Words {
        self.words
    }
    /// Whether metadata and a selector follow C.
    pub fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }
    /// Whether factors of A and B follow.
    pub fn is_block_scaled(&self) -> bool {
        matches!(self.arithmetic, Arithmetic::Scaled { .. })
    }
    /// Multiplications and additions; the zeros of a sparse A count.
    pub fn flops(&self) -> u64 {
        match self.volta {
            Some(_) => 4 * self.shape.flops(),
            None => self.shape.flops(),
        }
    }
    /// D = A * B + C.
    ///
    /// The slices hold as many registers as [`Self::words`] says; missing ones count as zero.
    #[inline(always)]
    pub fn execute(&self, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes], x: &Extra<'_>) {
        if let Some(rows) = self.volta {
            return volta::execute(d, a, b, c, rows, self.half_c, self.half_d);
        }
        match (self.arithmetic, self.shape.k) {
            (
                Arithmetic::Float {
                    a: Packing::F16, ..
                },
                k,
            ) => match k {
                8 => self.floats::<8, 8>(d, a, b, c, x, quad::f16, quad::f16),
                16 => self.floats::<16, 8>(d, a, b, c, x, quad::f16, quad::f16),
                _ => self.floats::<32, 8>(d, a, b, c, x, quad::f16, quad::f16),
            },
            (
                Arithmetic::Float {
                    a: Packing::Bf16, ..
                },
                k,
            ) => match k {
                8 => self.floats::<8, 8>(d, a, b, c, x, quad::bf16, quad::bf16),
                16 => self.floats::<16, 8>(d, a, b, c, x, quad::bf16, quad::bf16),
                _ => self.floats::<32, 8>(d, a, b, c, x, quad::bf16, quad::bf16),
            },
            (
                Arithmetic::Float {
                    a: Packing::Tf32, ..
                },
                k,
            ) => match k {
                4 => self.floats::<4, 4>(d, a, b, c, x, quad::tf32, quad::tf32),
                8 => self.floats::<8, 4>(d, a, b, c, x, quad::tf32, quad::tf32),
                _ => self.floats::<16, 4>(d, a, b, c, x, quad::tf32, quad::tf32),
            },
            (Arithmetic::Float { a: pa, b: pb } | Arithmetic::Scaled { a: pa, b: pb, .. }, k) => {
                match (pa, pb, k) {
                    (Packing::Byte(ta), Packing::Byte(tb), k) => {
                        let a_of = |w: &[u32; 4]| quad::bytes(w, ta);
                        let b_of = |w: &[u32; 4]| quad::bytes(w, tb);
                        match k {
                            16 => self.floats::<16, 16>(d, a, b, c, x, a_of, b_of),
                            32 => self.floats::<32, 16>(d, a, b, c, x, a_of, b_of),
                            _ => self.floats::<64, 16>(d, a, b, c, x, a_of, b_of),
                        }
                    }
                    (Packing::Nibble(ta), Packing::Nibble(tb), k) => {
                        let a_of = |w: &[u32; 4]| quad::nibbles(w, ta);
                        let b_of = |w: &[u32; 4]| quad::nibbles(w, tb);
                        match k {
                            64 => self.floats::<64, 32>(d, a, b, c, x, a_of, b_of),
                            _ => self.floats::<128, 32>(d, a, b, c, x, a_of, b_of),
                        }
                    }
                    // `parse` pairs no other packings.
                    _ => {}
                }
            }
            (Arithmetic::Integer { a: ea, b: eb, .. }, k) if ea.bits() == 8 => {
                let (sa, sb) = (ea == Element::S8, eb == Element::S8);
                let a_of = |w: &[u32; 4]| quad::integers8(w, sa);
                let b_of = |w: &[u32; 4]| quad::integers8(w, sb);
                match k {
                    16 => self.integers::<16, 16>(d, a, b, c, x, a_of, b_of),
                    32 => self.integers::<32, 16>(d, a, b, c, x, a_of, b_of),
                    _ => self.integers::<64, 16>(d, a, b, c, x, a_of, b_of),
                }
            }
            (Arithmetic::Integer { a: ea, b: eb, .. }, k) => {
                let (sa, sb) = (ea == Element::S4, eb == Element::S4);
                let a_of = |w: &[u32; 4]| quad::integers4(w, sa);
                let b_of = |w: &[u32; 4]| quad::integers4(w, sb);
                match k {
                    32 => self.integers::<32, 32>(d, a, b, c, x, a_of, b_of),
                    64 => self.integers::<64, 32>(d, a, b, c, x, a_of, b_of),
                    _ => self.integers::<128, 32>(d, a, b, c, x, a_of, b_of),
                }
            }
            (Arithmetic::Double, k) => {
                let rows = self.shape.m;
                match k {
                    4 => fragment::double_product::<4>(d, a, b, c, rows),
                    8 => fragment::double_product::<8>(d, a, b, c, rows),
                    _ => fragment::double_product::<16>(d, a, b, c, rows),
                }
            }
            (Arithmetic::Bits(op), _) => fragment::bit_product(d, a, b, c, self.shape.m, op),
        }
    }

    #[inline(always)]
    fn floats<const K: usize, const N: usize>(
        &self,
        d: &mut [Lanes],
        a: &[Lanes],
        b: &[Lanes],
        c: &[Lanes],
        x: &Extra<'_>,
        a_of: impl Fn(&[u32; 4]) -> [f32; N],
        b_of: impl Fn(&[u32; 4]) -> [f32; N],
    ) {
        let mut wide_a = [[0f32; K]; 16];
        let mut wide_b = [[0f32; 8]; K];
        fragment::place_a(a, 16, &mut wide_a, a_of);
        if let Some(sparsity) = &self.sparse {
            wide_a = sparsity.expand_rows(&wide_a, x.metadata, x.selector);
        }
        fragment::place_b(b, &mut wide_b, b_of);
        let mut sum = fragment::read_accumulator(c, 16, self.half_c);
        match self.arithmetic {
            Arithmetic::Scaled { scale, chunks, .. } => {
                scaled_product(&mut sum, &wide_a, &wide_b, scale, chunks, x);
            }
            _ => fragment::float_product(&mut sum, &wide_a, &wide_b),
        }
        fragment::write_accumulator(d, &sum, 16, self.half_d);
    }

    #[inline(always)]
    fn integers<const K: usize, const N: usize>(
        &self,
        d: &mut [Lanes],
        a: &[Lanes],
        b: &[Lanes],
        c: &[Lanes],
        x: &Extra<'_>,
        a_of: impl Fn(&[u32; 4]) -> [i32; N],
        b_of: impl Fn(&[u32; 4]) -> [i32; N],
    ) {
        let rows = self.shape.m;
        let saturate = matches!(self.arithmetic, Arithmetic::Integer { saturate: true, .. });
        let mut wide_a = [[0i32; K]; 16];
        let mut wide_b = [[0i32; 8]; K];
        fragment::place_a(a, rows, &mut wide_a, a_of);
        if let Some(sparsity) = &self.sparse {
            wide_a = sparsity.expand_rows(&wide_a, x.metadata, x.selector);
        }
        fragment::place_b(b, &mut wide_b, b_of);
        let sum = fragment::integer_product(&wide_a, &wide_b);
        fragment::add_integers(d, c, &sum, rows, saturate);
    }
}

/// The shape of the first tensor cores: four products of eight by eight by four.
const VOLTA: Shape = Shape { m: 8, n: 8, k: 4 };

fn plain_arithmetic(kind: Option<&str>, saturate: bool, t: &Types) -> Option<Arithmetic> {
    use Element as E;
    if t.a.is_small_float() && t.b.is_small_float() {
        let wide = |e: Element| matches!(e, E::E4m3 | E::E5m2);
        let allowed = match kind {
            Some("f8f6f4") => true,
            None => wide(t.a) && wide(t.b),
            Some(_) => false,
        };
        let sums = |e: Element| matches!(e, E::F16 | E::F32);
        let fits = allowed && sums(t.c) && t.c == t.d;
        return fits.then_some(Arithmetic::Float {
            a: Packing::in_bytes(t.a)?,
            b: Packing::in_bytes(t.b)?,
        });
    }
    if kind.is_some() {
        return None;
    }
    match (t.d, t.a, t.b, t.c) {
        (E::F16 | E::F32, E::F16, E::F16, E::F16 | E::F32)
        | (E::F32, E::Bf16, E::Bf16, E::F32)
        | (E::F32, E::Tf32, E::Tf32, E::F32) => Some(Arithmetic::Float {
            a: Packing::in_bytes(t.a)?,
            b: Packing::in_bytes(t.b)?,
        }),
        (E::F64, E::F64, E::F64, E::F64) => Some(Arithmetic::Double),
        (E::S32, E::S8 | E::U8, E::S8 | E::U8, E::S32)
        | (E::S32, E::S4 | E::U4, E::S4 | E::U4, E::S32) => Some(Arithmetic::Integer {
            a: t.a,
            b: t.b,
            saturate,
        }),
        _ => None,
    }
}

fn scaled_arithmetic(
    kind: Option<&str>,
    vector: Option<&str>,
    scale: Option<ScaleType>,
    t: &Types,
) -> Option<Arithmetic> {
    if t.c != Element::F32 || t.d != Element::F32 {
        return None;
    }
    let scale = scale?;
    let both_fp4 = t.a == Element::E2m1 && t.b == Element::E2m1;
    let (packing, chunks): (fn(Element) -> Option<Packing>, usize) = match (kind?, vector, scale) {
        ("mxf8f6f4", None | Some("1X"), ScaleType::Ue8m0) => (Packing::in_bytes, 1),
        ("mxf4", None | Some("2X"), ScaleType::Ue8m0) if both_fp4 => (|_| Some(Packing::FP4), 2),
        ("mxf4nvf4", Some("2X"), ScaleType::Ue8m0) if both_fp4 => (|_| Some(Packing::FP4), 2),
        ("mxf4nvf4", Some("4X"), _) if both_fp4 => (|_| Some(Packing::FP4), 4),
        _ => return None,
    };
    (t.a.is_small_float() && t.b.is_small_float()).then_some(Arithmetic::Scaled {
        a: packing(t.a)?,
        b: packing(t.b)?,
        scale,
        chunks,
    })
}

/// Elements a word of A and B; nothing for doubles.
fn operand_per_word(arithmetic: Arithmetic) -> Option<usize> {
    match arithmetic {
        Arithmetic::Float { a, .. } | Arithmetic::Scaled { a, .. } => Some(a.per_word()),
        Arithmetic::Integer { a, .. } => Some(32 / a.bits()),
        Arithmetic::Bits(_) => Some(32),
        Arithmetic::Double => None,
    }
}

/// Whether the instruction set has this shape for these types.
fn shape_exists(
    shape: Shape,
    sparse: bool,
    kind: Option<&str>,
    t: &Types,
    arithmetic: Arithmetic,
) -> bool {
    use Element as E;
    let Shape { m, n, k } = shape;
    if n != 8 || (m != 16 && m != 8) {
        return false;
    }
    let fp4 = matches!(arithmetic, Arithmetic::Scaled { a, .. } if a == Packing::FP4);
    let tall: &[usize] = match (sparse, t.a) {
        (false, E::F16 | E::Bf16) => &[8, 16],
        (false, E::Tf32) => &[4, 8],
        (false, E::F64) => &[4, 8, 16],
        (false, E::S8 | E::U8) => &[16, 32],
        (false, E::S4 | E::U4) => &[32, 64],
        (false, E::B1) => &[128, 256],
        (false, E::E2m1) if fp4 => &[64],
        (false, _) if kind.is_none() => &[16, 32],
        (false, _) => &[32],
        (true, E::F16 | E::Bf16) => &[16, 32],
        (true, E::Tf32) => &[8, 16],
        (true, E::S8 | E::U8) => &[32, 64],
        (true, E::S4 | E::U4) => &[64, 128],
        (true, E::E2m1) if fp4 => &[128],
        (true, E::F64 | E::B1) => &[],
        (true, _) => &[64],
    };
    let flat: &[usize] = match (sparse, t.a) {
        (false, E::F16 | E::F64) => &[4],
        (false, E::S8 | E::U8) => &[16],
        (false, E::S4 | E::U4) => &[32],
        (false, E::B1) => &[128],
        _ => &[],
    };
    // Only the oldest shape mixes accumulators, and only to widen them.
    let mixed = t.c != t.d && (shape != VOLTA || t.c == E::F32);
    !mixed && if m == 16 { tall } else { flat }.contains(&k)
}

/// Adds chunk after chunk of k, each times its row's and its column's factor.
fn scaled_product<const K: usize>(
    sum: &mut [[f32; 8]; 16],
    a: &[[f32; K]; 16],
    b: &[[f32; 8]; K],
    scale: ScaleType,
    chunks: usize,
    x: &Extra<'_>,
) {
    // Byte and thread selectors are taken modulo what they may be, as the hardware's fields are.
    let factor = |s: Option<Scale<'_>>, lane: usize, chunk: usize| {
        s.map_or(1.0, |s| {
            let byte = (s.byte as usize & 3) + chunk;
            scale.value((s.data[lane] >> (8 * (byte & 3))) as u8)
        })
    };
    let quad_a = x.scale_a.map_or(0, |s| s.thread as usize & 1) * 2;
    let quad_b = x.scale_b.map_or(0, |s| s.thread as usize & 3);
    let width = K / chunks;
    for (row, (sum, a)) in sum.iter_mut().zip(a).enumerate() {
        for chunk in 0..chunks {
            let fa = factor(x.scale_a, 4 * (row & 7) + quad_a + (row >> 3), chunk);
            for (column, sum) in sum.iter_mut().enumerate() {
                let fb = factor(x.scale_b, 4 * column + quad_b, chunk);
                let range = chunk * width..(chunk + 1) * width;
                let dot: f32 = a[range.clone()]
                    .iter()
                    .zip(&b[range])
                    .map(|(a, b)| a * b[column])
                    .sum();
                *sum = (f64::from(dot) * fa * fb + f64::from(*sum)) as f32;
            }
        }
    }
}
