//! A matrix product that another producer left to cuBLAS.

use crate::executable::Access;
use crate::executable::BufferUse;
use crate::executable::Slice;
use crate::shape::PrimitiveType;

/// `d = epilogue(alpha * a * b + beta * c)`, for each of a batch of matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct GemmThunk {
    /// What its producer calls it.
    pub name: &'static str,
    /// Left matrices.
    pub a: (Slice, MatrixLayout),
    /// Right matrices.
    pub b: (Slice, MatrixLayout),
    /// Matrices that are added; absent when `beta` is zero.
    pub c: Option<(Slice, MatrixLayout)>,
    /// Results.
    pub d: (Slice, MatrixLayout),
    /// One number for each row of a result, added to the product.
    pub bias: Option<Slice>,
    /// Where the product goes before the epilogue's function is applied.
    pub aux: Option<Slice>,
    /// Memory for the library.
    pub workspace: Option<Slice>,
    /// Real and imaginary part of the factor of the product.
    pub alpha: [f64; 2],
    /// Factor of `c`.
    pub beta: f64,
    /// The number of XLA's computation type; zero leaves it to the types of the matrices.
    pub compute_type: i32,
    /// The number of XLA's epilogue; zero is none.
    pub epilogue: i32,
    /// Which of the algorithms that the library recommends, best first.
    pub algorithm: usize,
}

/// How the matrices of an operand lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixLayout {
    /// Whether the elements of a column are neighbours.
    pub is_column_major: bool,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Elements from a row or column to the next.
    pub leading: i64,
    /// Matrices.
    pub batch: i64,
    /// Elements from a matrix to the next.
    pub batch_stride: i64,
    /// How it enters the product: 0 as it is, 1 transposed, 2 transposed and conjugated.
    pub transpose: i32,
    /// Type of the elements.
    pub ty: PrimitiveType,
}

impl MatrixLayout {
    /// The same memory read as matrices of the other order: rows are columns then.
    pub fn flipped(self) -> Self {
        Self {
            is_column_major: !self.is_column_major,
            rows: self.columns,
            columns: self.rows,
            ..self
        }
    }

    /// The bytes that the matrices take, when that is a number.
    pub fn bytes(&self) -> Option<u64> {
        let (inner, outer) = match self.is_column_major {
            true => (self.rows, self.columns),
            false => (self.columns, self.rows),
        };
        let size = self.ty.byte_width() as u64;
        if inner == 0 || outer == 0 || self.batch == 0 {
            return Some(0);
        }
        let leading = u64::try_from(self.leading).ok().filter(|&l| l >= inner)?;
        let one = leading.checked_mul(outer - 1)?.checked_add(inner)?;
        let stride = u64::try_from(self.batch_stride).ok()?;
        let batch = u64::try_from(self.batch).ok()?;
        let all = stride.checked_mul(batch - 1)?.checked_add(one)?;
        all.checked_mul(size)
    }
}

impl GemmThunk {
    /// Every slice it touches.
    pub fn uses(&self) -> Vec<BufferUse> {
        let reads = [
            Some(self.a.0),
            Some(self.b.0),
            self.c.map(|c| c.0),
            self.bias,
        ];
        let writes = [Some(self.d.0), self.aux, self.workspace];
        let reads = reads.into_iter().flatten().map(|s| (s, Access::Read));
        let writes = writes.into_iter().flatten().map(|s| (s, Access::Write));
        let uses = reads.chain(writes);
        uses.map(|(slice, access)| BufferUse { slice, access })
            .collect()
    }

    /// What is wrong with it, if anything: matrices that leave their slices.
    pub fn fault(&self) -> Option<String> {
        let operands = [Some(self.a), Some(self.b), self.c, Some(self.d)];
        let mut operands = operands.into_iter().flatten();
        operands.find_map(|(slice, layout)| {
            let fits = layout.bytes().is_some_and(|bytes| bytes <= slice.size);
            (!fits).then(|| format!("{layout:?} in {} bytes", slice.size))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_take_their_bytes() {
        let layout = MatrixLayout {
            is_column_major: false,
            rows: 3,
            columns: 5,
            leading: 8,
            batch: 2,
            batch_stride: 24,
            transpose: 0,
            ty: PrimitiveType::F32,
        };
        // Row 2 of matrix 1 ends at element 24 + 2 * 8 + 5.
        assert_eq!(layout.bytes(), Some(45 * 4));
        assert_eq!(layout.flipped().bytes(), Some(45 * 4));
        let narrow = MatrixLayout {
            leading: 4,
            ..layout
        };
        assert_eq!(narrow.bytes(), None);
    }
}
