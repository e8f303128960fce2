//! `wgmma.mma_async`: a group of four warps multiplies matrices in shared memory.
//!
//! Each warp owns 16 rows of D, and is executed for itself.  Eight columns are done at a time, and
//! each of those is the `mma` of the same fragments.

use crate::base::Result;
use crate::simulator::tensor::descriptor::{MatrixDescriptor, OutOfShared, chunk};
use crate::simulator::tensor::element::{Element, Packing, quad};
use crate::simulator::tensor::fragment;
use crate::simulator::tensor::mma::BitOp;
use crate::simulator::tensor::sparse::Sparsity;
use crate::simulator::tensor::words::{Modifiers, Shape, Words};
use crate::simulator::tensor::{Lanes, element};

/// The arithmetic of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arithmetic {
    Float { a: Packing, b: Packing },
    Integer { a: bool, b: bool, saturate: bool },
    Bits(BitOp),
}

/// A decoded `wgmma.mma_async`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wgmma {
    shape: Shape,
    arithmetic: Arithmetic,
    half_d: bool,
    sparse: Option<Sparsity>,
    /// Whether operands may be transposed: those of 16 bits.
    wide: bool,
}

/// Where A comes from.
#[derive(Clone, Copy, Debug)]
pub enum WgmmaA<'a> {
    /// The warp's own fragment, of four registers.
    Registers(&'a [Lanes]),
    /// A descriptor of the whole group's A.
    Shared(u64),
}

/// The operands that are neither matrices nor descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub struct WgmmaArgs<'a> {
    /// Which warp of its group this is, 0 to 3.
    pub warp: u32,
    /// Whether D is added to, instead of overwritten.
    pub scale_d: bool,
    /// Whether A is negated.
    pub negate_a: bool,
    /// Whether B is negated.
    pub negate_b: bool,
    /// Whether A's rows are contiguous, instead of its columns.
    pub transpose_a: bool,
    /// Whether B's columns are contiguous, instead of its rows.
    pub transpose_b: bool,
    /// Positions of the kept elements of a sparse A, in this warp's register.
    pub metadata: Option<&'a Lanes>,
    /// Which lanes of each quad hold the metadata.
    pub selector: u32,
}

impl Wgmma {
    /// Decodes the modifiers that follow the opcode `wgmma`, `mma_async` first.
    ///
    /// # Errors
    /// When the combination of shape, types and modifiers is not one of the instruction set's.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        use Element as E;
        let mut m = Modifiers::new("wgmma", modifiers);
        if !m.take("mma_async") {
            return Err(m.refuse("multiplies no matrices"));
        }
        let sparse = m.take("sp");
        if !m.take("sync") || !m.take("aligned") {
            return Err(m.refuse("needs `.sync.aligned`"));
        }
        let shape = m.need("shape", Shape::parse)?;
        let saturate = m.take("satfinite");
        let d = m.need("type of D", Element::parse)?;
        let a = m.need("type of A", Element::parse)?;
        let b = m.need("type of B", Element::parse)?;
        let bits = m.find(BitOp::parse).filter(|op| *op == BitOp::And);
        if bits.is_some() != m.take("popc") {
            return Err(m.refuse("needs `.and.popc`"));
        }
        m.finish()?;
        let byte = |e: E| matches!(e, E::E4m3 | E::E5m2);
        let arithmetic = match (d, a, b, bits) {
            (E::F16 | E::F32, E::F16, E::F16, None)
            | (E::F32, E::Bf16, E::Bf16, None)
            | (E::F32, E::Tf32, E::Tf32, None) => floats(a, b),
            (E::F16 | E::F32, _, _, None) if byte(a) && byte(b) => floats(a, b),
            (E::S32, E::S8 | E::U8, E::S8 | E::U8, None) => Some(Arithmetic::Integer {
                a: a == E::S8,
                b: b == E::S8,
                saturate,
            }),
            (E::S32, E::B1, E::B1, Some(op)) if !sparse => Some(Arithmetic::Bits(op)),
            _ => None,
        };
        let Some(arithmetic) = arithmetic else {
            return Err(m.refuse("has types that do not go together"));
        };
        if saturate && !matches!(arithmetic, Arithmetic::Integer { .. }) {
            return Err(m.refuse("saturates, which only integers do"));
        }
        let k = 256 / a.bits() * if sparse { 2 } else { 1 };
        if shape.m != 64 || shape.k != k || !shape.n.is_multiple_of(8) || shape.n > 256 {
            return Err(m.refuse("has a shape that its types do not have"));
        }
        Ok(Self {
            shape,
            arithmetic,
            half_d: d == E::F16,
            sparse: sparse.then(|| Sparsity::of(a, false)),
            wide: a.bits() == 16,
        })
    }
    /// Counts of registers; A's are those of an A that does not come from memory.
    pub fn words(&self) -> Words {
        let d = self.shape.n / if self.half_d { 4 } else { 2 };
        Words {
            a: 4,
            b: 0,
            c: d,
            d,
        }
    }
    /// Whether operands say if they are transposed.
    pub fn has_transpose(&self) -> bool {
        self.wide
    }
    /// Whether operands say if they are negated.
    pub fn has_negate(&self) -> bool {
        matches!(self.arithmetic, Arithmetic::Float { .. })
    }
    /// Whether metadata and a selector follow B.
    pub fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }
    /// Multiplications and additions of the whole group; the zeros of a sparse A count.
    pub fn flops(&self) -> u64 {
        self.shape.flops()
    }
    /// D = A * B + D for the 16 rows of one warp.
    ///
    /// # Errors
    /// When a descriptor leads out of `shared`.
    #[inline(always)]
    pub fn execute(
        &self,
        d: &mut [Lanes],
        a: WgmmaA<'_>,
        b: u64,
        shared: &[u8],
        x: &WgmmaArgs<'_>,
    ) -> Result<(), OutOfShared> {
        let sparse = self.sparse.is_some();
        match self.arithmetic {
            Arithmetic::Float {
                a: Packing::F16, ..
            } => match sparse {
                false => self.floats::<16, 8>(d, a, b, shared, x, quad::f16, quad::f16),
                true => self.floats::<32, 8>(d, a, b, shared, x, quad::f16, quad::f16),
            },
            Arithmetic::Float {
                a: Packing::Bf16, ..
            } => match sparse {
                false => self.floats::<16, 8>(d, a, b, shared, x, quad::bf16, quad::bf16),
                true => self.floats::<32, 8>(d, a, b, shared, x, quad::bf16, quad::bf16),
            },
            Arithmetic::Float {
                a: Packing::Tf32, ..
            } => match sparse {
                false => self.floats::<8, 4>(d, a, b, shared, x, quad::tf32, quad::tf32),
                true => self.floats::<16, 4>(d, a, b, shared, x, quad::tf32, quad::tf32),
            },
            Arithmetic::Float {
                a: Packing::Byte(ta),
                b: Packing::Byte(tb),
            } => {
                let a_of = |w: &[u32; 4]| quad::bytes(w, ta);
                let b_of = |w: &[u32; 4]| quad::bytes(w, tb);
                match sparse {
                    false => self.floats::<32, 16>(d, a, b, shared, x, a_of, b_of),
                    true => self.floats::<64, 16>(d, a, b, shared, x, a_of, b_of),
                }
            }
            // `parse` makes no other packings.
            Arithmetic::Float { .. } => Ok(()),
            Arithmetic::Integer {
                a: sa,
                b: sb,
                saturate,
            } => match sparse {
                false => self.integers::<32>(d, a, b, shared, x, (sa, sb, saturate)),
                true => self.integers::<64>(d, a, b, shared, x, (sa, sb, saturate)),
            },
            Arithmetic::Bits(op) => self.bits(d, a, b, shared, x, op),
        }
    }
    /// Names every 16 bytes of shared memory that this warp's part of the instruction reads.
    pub fn touched(
        &self,
        a: WgmmaA<'_>,
        b: u64,
        x: &WgmmaArgs<'_>,
        visit: &mut dyn FnMut(u32, u32),
    ) {
        let k = self.shape.k as u32;
        let (ta, tb) = (self.wide && x.transpose_a, self.wide && x.transpose_b);
        // Bytes along k of a dense operand are 32, and 64 of a sparse product's B.
        let chunks = if self.sparse.is_some() { 4 } else { 2 };
        if let WgmmaA::Shared(bits) = a {
            let a = MatrixDescriptor::wgmma(bits);
            let kept = if self.sparse.is_some() { k / 2 } else { k };
            if ta {
                for at in 0..kept {
                    for c in 0..2 {
                        visit(a.outer_major(2 * x.warp + c, at), 16);
                    }
                }
            } else {
                for row in 0..16 {
                    for c in 0..2 {
                        visit(a.k_major(16 * x.warp + row, c), 16);
                    }
                }
            }
        }
        let b = MatrixDescriptor::wgmma(b);
        for block in 0..self.shape.n as u32 / 8 {
            if tb {
                for at in 0..k {
                    visit(b.outer_major(block, at), 16);
                }
            } else {
                for column in 0..8 {
                    for c in 0..chunks {
                        visit(b.k_major(8 * block + column, c), 16);
                    }
                }
            }
        }
    }

    /// A as the warp's 16 rows.
    #[inline(always)]
    fn rows_of_a<T: Copy + Default, const K: usize, const N: usize>(
        &self,
        a: WgmmaA<'_>,
        shared: &[u8],
        x: &WgmmaArgs<'_>,
        of: impl Fn(&[u32; 4]) -> [T; N],
    ) -> Result<[[T; K]; 16], OutOfShared> {
        let mut out = [[T::default(); K]; 16];
        let kept = if self.sparse.is_some() { K / 2 } else { K };
        match a {
            WgmmaA::Registers(regs) => fragment::place_a(regs, 16, &mut out, of),
            WgmmaA::Shared(bits) => {
                let a = MatrixDescriptor::wgmma(bits);
                if self.wide && x.transpose_a {
                    for (k, c) in (0..kept).flat_map(|k| [(k, 0), (k, 1)]) {
                        let address = a.outer_major(2 * x.warp + c, k as u32);
                        let part = of(&chunk(shared, address)?);
                        for (i, part) in part.into_iter().enumerate() {
                            out[8 * c as usize + i][k] = part;
                        }
                    }
                } else {
                    for (row, out) in out.iter_mut().enumerate() {
                        for (c, out) in out[..kept].as_chunks_mut::<N>().0.iter_mut().enumerate() {
                            let address = a.k_major(16 * x.warp + row as u32, c as u32);
                            *out = of(&chunk(shared, address)?);
                        }
                    }
                }
            }
        }
        if let Some(sparsity) = &self.sparse {
            out = sparsity.expand_rows(&out, x.metadata, x.selector);
        }
        Ok(out)
    }

    /// Eight columns of B.
    #[inline(always)]
    fn columns_of_b<T: Copy + Default, const K: usize, const N: usize>(
        &self,
        b: &MatrixDescriptor,
        block: u32,
        shared: &[u8],
        x: &WgmmaArgs<'_>,
        of: impl Fn(&[u32; 4]) -> [T; N],
    ) -> Result<[[T; 8]; K], OutOfShared> {
        let mut out = [[T::default(); 8]; K];
        if self.wide && x.transpose_b {
            for (k, out) in out.iter_mut().enumerate() {
                let part = of(&chunk(shared, b.outer_major(block, k as u32))?);
                out.copy_from_slice(&part[..8]);
            }
            return Ok(out);
        }
        for (c, out) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
            let mut columns = [[T::default(); N]; 8];
            for (n, column) in columns.iter_mut().enumerate() {
                let address = b.k_major(8 * block + n as u32, c as u32);
                *column = of(&chunk(shared, address)?);
            }
            for (i, row) in out.iter_mut().enumerate() {
                *row = std::array::from_fn(|n| columns[n][i]);
            }
        }
        Ok(out)
    }

    #[inline(always)]
    fn floats<const K: usize, const N: usize>(
        &self,
        d: &mut [Lanes],
        a: WgmmaA<'_>,
        b: u64,
        shared: &[u8],
        x: &WgmmaArgs<'_>,
        a_of: impl Fn(&[u32; 4]) -> [f32; N],
        b_of: impl Fn(&[u32; 4]) -> [f32; N],
    ) -> Result<(), OutOfShared> {
        let mut wide_a: [[f32; K]; 16] = self.rows_of_a(a, shared, x, a_of)?;
        if x.negate_a != x.negate_b {
            for a in wide_a.as_flattened_mut() {
                *a = -*a;
            }
        }
        let b = MatrixDescriptor::wgmma(b);
        let regs = if self.half_d { 2 } else { 4 };
        for (block, d) in d.chunks_exact_mut(regs).enumerate().take(self.shape.n / 8) {
            let wide_b: [[f32; 8]; K] = self.columns_of_b(&b, block as u32, shared, x, &b_of)?;
            let mut sum = match x.scale_d {
                true => fragment::read_accumulator(d, 16, self.half_d),
                false => [[0f32; 8]; 16],
            };
            fragment::float_product(&mut sum, &wide_a, &wide_b);
            fragment::write_accumulator(d, &sum, 16, self.half_d);
        }
        Ok(())
    }

    #[inline(always)]
    fn integers<const K: usize>(
        &self,
        d: &mut [Lanes],
        a: WgmmaA<'_>,
        b: u64,
        shared: &[u8],
        x: &WgmmaArgs<'_>,
        (sa, sb, saturate): (bool, bool, bool),
    ) -> Result<(), OutOfShared> {
        let a_of = |w: &[u32; 4]| quad::integers8(w, sa);
        let b_of = |w: &[u32; 4]| quad::integers8(w, sb);
        let wide_a: [[i32; K]; 16] = self.rows_of_a(a, shared, x, a_of)?;
        let b = MatrixDescriptor::wgmma(b);
        for (block, d) in d.chunks_exact_mut(4).enumerate().take(self.shape.n / 8) {
            let wide_b: [[i32; 8]; K] = self.columns_of_b(&b, block as u32, shared, x, b_of)?;
            let sum = fragment::integer_product(&wide_a, &wide_b);
            accumulate(d, &sum, x.scale_d, saturate);
        }
        Ok(())
    }

    fn bits(
        &self,
        d: &mut [Lanes],
        a: WgmmaA<'_>,
        b: u64,
        shared: &[u8],
        x: &WgmmaArgs<'_>,
        op: BitOp,
    ) -> Result<(), OutOfShared> {
        // Eight words of bits a row.
        let words = |w: &[u32; 4]| *w;
        let wide_a: [[u32; 8]; 16] = self.rows_of_a(a, shared, x, words)?;
        let b = MatrixDescriptor::wgmma(b);
        for (block, d) in d.chunks_exact_mut(4).enumerate().take(self.shape.n / 8) {
            let wide_b: [[u32; 8]; 8] = self.columns_of_b(&b, block as u32, shared, x, words)?;
            let mut sum = [[0i32; 8]; 16];
            for (sum, a) in sum.iter_mut().zip(&wide_a) {
                for (a, b) in a.iter().zip(&wide_b) {
                    for (sum, b) in sum.iter_mut().zip(b) {
                        *sum += op.count(*a, *b);
                    }
                }
            }
            accumulate(d, &sum, x.scale_d, false);
        }
        Ok(())
    }
}

/// D = sums, or D += sums.
#[inline(always)]
fn accumulate(d: &mut [Lanes], sum: &[[i32; 8]; 16], add: bool, saturate: bool) {
    let mut c = [[0; 32]; 4];
    if add {
        for (c, d) in c.iter_mut().zip(&*d) {
            *c = *d;
        }
    }
    fragment::add_integers(d, &c, sum, 16, saturate);
}

fn floats(a: Element, b: Element) -> Option<Arithmetic> {
    Some(Arithmetic::Float {
        a: element::Packing::in_bytes(a)?,
        b: element::Packing::in_bytes(b)?,
    })
}
