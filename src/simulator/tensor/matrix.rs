//! `ldmatrix`, `stmatrix` and `movmatrix`: rows of 16 bytes to and from fragments.

use crate::base::Result;
use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::words::Modifiers;

/// How the elements of a row become those of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Eight elements of 16 bits.
    B16,
    /// Sixteen bytes, sixteen rows, always transposed.
    B8,
    /// Sixteen elements of six bits, in the row's first twelve bytes, each to a byte.
    B6,
    /// Sixteen elements of four bits, in the row's first eight bytes, each to a byte.
    B4,
}

/// A decoded `ldmatrix` or `stmatrix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixMove {
    load: bool,
    form: Form,
    transposed: bool,
    matrices: usize,
    /// Sixteen rows a matrix instead of eight.
    tall: bool,
}

/// Bytes of a row in memory.
pub const ROW_BYTES: usize = 16;

impl MatrixMove {
    /// Decodes `ldmatrix` or `stmatrix` with its modifiers.
    ///
    /// # Errors
    /// When the combination is not one of the instruction set's.
    pub fn parse<S: AsRef<str>>(opcode: &str, modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new(opcode, modifiers);
        let load = match opcode {
            "ldmatrix" => true,
            "stmatrix" => false,
            _ => return Err(m.refuse("moves no matrix")),
        };
        if !m.take("sync") || !m.take("aligned") {
            return Err(m.refuse("needs `.sync.aligned`"));
        }
        let shape = m.need("shape", |w| w.starts_with('m').then_some(w))?;
        let matrices = m.need("count of matrices", |w| match w {
            "x1" => Some(1),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        })?;
        let transposed = m.take("trans");
        let _ = m.take("shared") || m.take("shared::cta");
        let form = m.need("element type", |w| match w {
            "b16" => Some(Form::B16),
            "b8" => Some(Form::B8),
            "b6x16_p32" => Some(Form::B6),
            "b4x16_p64" => Some(Form::B4),
            _ => None,
        })?;
        let widened = m.take("b8x16");
        m.finish()?;
        let packed = matches!(form, Form::B6 | Form::B4);
        let known = match (shape, form, load) {
            ("m8n8", Form::B16, _) => true,
            ("m16n16", Form::B8 | Form::B6 | Form::B4, true) => transposed && matrices < 4,
            ("m8n16", Form::B6 | Form::B4, true) => !transposed,
            ("m16n8", Form::B8, false) => transposed,
            _ => false,
        };
        if !known || packed != widened {
            return Err(m.refuse("has a shape and type that do not go together"));
        }
        Ok(Self {
            load,
            form,
            transposed,
            matrices,
            tall: shape == "m16n16",
        })
    }
    /// Whether it loads.
    pub fn is_load(&self) -> bool {
        self.load
    }
    /// How many rows it moves; lane `i` gives the address of row `i`.
    pub fn rows(&self) -> usize {
        self.matrices * if self.tall { 16 } else { 8 }
    }
    /// How many registers it writes or reads.
    pub fn words(&self) -> usize {
        self.matrices * if self.tall { 2 } else { 1 }
    }
    /// Spreads rows over registers; both slices have at least the counts that are asked for.
    pub fn load(&self, rows: &[[u8; ROW_BYTES]], d: &mut [Lanes]) {
        let regs = if self.tall { 2 } else { 1 };
        for (i, d) in d.iter_mut().enumerate().take(self.words()) {
            let height = 8 * regs;
            let rows = &rows[i / regs * height..][..height];
            for (lane, d) in d.iter_mut().enumerate() {
                let (g, t) = (lane >> 2, lane & 3);
                *d = if self.tall {
                    let column = g + 8 * (i & 1);
                    u32::from_le_bytes(std::array::from_fn(|j| self.byte(&rows[4 * t + j], column)))
                } else if self.transposed {
                    let half =
                        |row: usize| u16::from_le_bytes([rows[row][2 * g], rows[row][2 * g + 1]]);
                    u32::from(half(2 * t)) | u32::from(half(2 * t + 1)) << 16
                } else {
                    u32::from_le_bytes(std::array::from_fn(|j| self.byte(&rows[g], 4 * t + j)))
                };
            }
        }
    }
    /// Gathers rows from registers; both slices have at least the counts that are asked for.
    pub fn store(&self, a: &[Lanes], rows: &mut [[u8; ROW_BYTES]]) {
        for (a, rows) in a.iter().zip(rows.chunks_exact_mut(8)).take(self.matrices) {
            for (lane, a) in a.iter().enumerate() {
                let (g, t) = (lane >> 2, lane & 3);
                let bytes = a.to_le_bytes();
                match (self.form, self.transposed) {
                    (Form::B16, false) => rows[g][4 * t..4 * t + 4].copy_from_slice(&bytes),
                    (Form::B16, true) => {
                        rows[2 * t][2 * g..2 * g + 2].copy_from_slice(&bytes[..2]);
                        rows[2 * t + 1][2 * g..2 * g + 2].copy_from_slice(&bytes[2..]);
                    }
                    _ => {
                        for (j, byte) in bytes.into_iter().enumerate() {
                            rows[2 * t + (j & 1)][g + 8 * (j >> 1)] = byte;
                        }
                    }
                }
            }
        }
    }
    /// The `i`-th byte of a row after widening.
    fn byte(&self, row: &[u8; ROW_BYTES], i: usize) -> u8 {
        match self.form {
            Form::B16 | Form::B8 => row[i],
            Form::B4 => row[i / 2] >> (4 * (i & 1)) & 15,
            Form::B6 => {
                let at = 6 * i;
                let pair = u16::from_le_bytes([row[at / 8], row[at / 8 + 1]]);
                (pair >> (at % 8)) as u8 & 63
            }
        }
    }
}

/// The transpose of an eight by eight matrix of 16-bit elements, from fragment to fragment.
pub fn movmatrix(a: &Lanes) -> Lanes {
    std::array::from_fn(|lane| {
        let (g, t) = (lane >> 2, lane & 3);
        // Element (row, column) is in lane 4 row + column / 2.
        let half = |row: usize| a[4 * row + g / 2] >> (16 * (g & 1)) & 0xffff;
        half(2 * t) | half(2 * t + 1) << 16
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(opcode: &str, text: &str) -> MatrixMove {
        MatrixMove::parse(opcode, &text.split('.').collect::<Vec<_>>())
            .unwrap_or_else(|e| panic!("{e}"))
    }

    /// Rows whose bytes say where they are: the row in the upper five bits of a 16-bit element.
    fn numbered(count: usize) -> Vec<[u8; 16]> {
        (0..count)
            .map(|r| std::array::from_fn(|c| (r * 16 + c) as u8))
            .collect()
    }

    #[test]
    fn halves_by_rows_and_by_columns() {
        let rows = numbered(32);
        for (name, count) in [("x1", 1), ("x2", 2), ("x4", 4)] {
            let load = parse("ldmatrix", &format!("sync.aligned.m8n8.{name}.shared.b16"));
            assert_eq!((load.rows(), load.words()), (8 * count, count));
            let mut d = vec![[0; 32]; count];
            load.load(&rows, &mut d);
            let trans = parse(
                "ldmatrix",
                &format!("sync.aligned.m8n8.{name}.trans.shared::cta.b16"),
            );
            let mut e = vec![[0; 32]; count];
            trans.load(&rows, &mut e);
            for matrix in 0..count {
                for lane in 0..32 {
                    for j in 0..2 {
                        // Thread `lane` holds row lane / 4, columns 2 (lane % 4) and the next.
                        let (row, column) = (lane / 4, 2 * (lane % 4) + j);
                        let at = |r: usize, c: usize| {
                            let r = &rows[8 * matrix + r];
                            u32::from(r[2 * c]) | u32::from(r[2 * c + 1]) << 8
                        };
                        assert_eq!(d[matrix][lane] >> (16 * j) & 0xffff, at(row, column));
                        assert_eq!(e[matrix][lane] >> (16 * j) & 0xffff, at(column, row));
                    }
                }
                assert_eq!(movmatrix(&d[matrix]), e[matrix]);
            }
            for (regs, text) in [(&d, ""), (&e, ".trans")] {
                let store = format!("sync.aligned.m8n8.{name}{text}.shared.b16");
                let mut back = vec![[0; 16]; 8 * count];
                parse("stmatrix", &store).store(regs, &mut back);
                assert_eq!(back, rows[..8 * count]);
            }
        }
    }

    #[test]
    fn bytes_are_transposed() {
        let rows: Vec<[u8; 16]> = (0..32)
            .map(|r| std::array::from_fn(|c| (r * 37 + c * 5) as u8))
            .collect();
        let load = parse("ldmatrix", "sync.aligned.m16n16.x2.trans.shared.b8");
        assert_eq!((load.rows(), load.words()), (32, 4));
        let mut d = [[0; 32]; 4];
        load.load(&rows, &mut d);
        for (r, d) in d.iter().enumerate() {
            for (lane, d) in d.iter().enumerate() {
                for (j, byte) in d.to_le_bytes().into_iter().enumerate() {
                    let row = r / 2 * 16 + lane % 4 * 4 + j;
                    assert_eq!(byte, rows[row][lane / 4 + r % 2 * 8]);
                }
            }
        }
        let store = parse("stmatrix", "sync.aligned.m16n8.x4.trans.shared.b8");
        assert_eq!((store.rows(), store.words()), (32, 4));
        let mut back = [[0; 16]; 32];
        store.store(&d, &mut back);
        for (r, d) in d.iter().enumerate() {
            for (lane, d) in d.iter().enumerate() {
                // The accumulator fragment of a 16 by 8 matrix, written by columns.
                for (j, byte) in d.to_le_bytes().into_iter().enumerate() {
                    let (m, n) = (lane / 4 + j / 2 * 8, lane % 4 * 2 + j % 2);
                    assert_eq!(back[8 * r + n][m], byte);
                }
            }
        }
    }

    #[test]
    fn small_elements_get_a_byte_each() {
        let elements: Vec<[u8; 16]> = (0..8)
            .map(|r| std::array::from_fn(|c| (r * 7 + c * 3) as u8 % 64))
            .collect();
        for (text, bits) in [("b6x16_p32", 6), ("b4x16_p64", 4)] {
            let mask = (1u8 << bits) - 1;
            let rows: Vec<[u8; 16]> = elements
                .iter()
                .map(|e| {
                    let mut row = [0xff; 16];
                    let packed = e
                        .iter()
                        .enumerate()
                        .fold(0u128, |w, (i, v)| w | u128::from(v & mask) << (bits * i));
                    row[..2 * bits].copy_from_slice(&packed.to_le_bytes()[..2 * bits]);
                    row
                })
                .collect();
            let load = parse(
                "ldmatrix",
                &format!("sync.aligned.m8n16.x1.shared.b8x16.{text}"),
            );
            let mut d = [[0; 32]; 1];
            load.load(&rows, &mut d);
            for (lane, d) in d[0].iter().enumerate() {
                for (j, byte) in d.to_le_bytes().into_iter().enumerate() {
                    assert_eq!(byte, elements[lane / 4][lane % 4 * 4 + j] & mask);
                }
            }
        }
    }

    #[test]
    fn what_is_no_instruction_is_refused() {
        for (opcode, text) in [
            ("ldmatrix", "sync.aligned.m8n8.x3.shared.b16"),
            ("ldmatrix", "sync.aligned.m16n16.x1.shared.b8"),
            ("ldmatrix", "sync.aligned.m16n16.x4.trans.shared.b8"),
            ("stmatrix", "sync.aligned.m16n16.x1.trans.shared.b8"),
            ("ldmatrix", "sync.aligned.m8n16.x1.shared.b4x16_p64"),
        ] {
            assert!(MatrixMove::parse(opcode, &text.split('.').collect::<Vec<_>>()).is_err());
        }
    }
}
