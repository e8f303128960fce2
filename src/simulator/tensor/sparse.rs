//! A sparse A: which of its elements are kept, and where they stand.

use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::element::Element;

/// How the kept elements of a sparse A are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sparsity {
    /// Kept elements that share one index: two for elements of four bits.
    run: usize,
    /// Whether one of two is kept, described by four bits, instead of two of four.
    one_of_two: bool,
    /// Whether a thread's word has two rows of 16 bits, instead of one row of 32.
    two_rows: bool,
}

impl Sparsity {
    /// The description of elements of this type; `packed` says that a small float takes four bits.
    pub(super) fn of(a: Element, packed: bool) -> Self {
        Self {
            run: if a.bits() == 4 || packed { 2 } else { 1 },
            one_of_two: a == Element::Tf32,
            two_rows: a.bits() >= 16,
        }
    }
    /// Elements that four bits of metadata describe.
    fn width(&self) -> usize {
        if self.one_of_two { 2 } else { 4 * self.run }
    }
    /// A with the zeros that its metadata leaves out; without metadata the first ones are kept.
    #[inline(always)]
    pub(super) fn expand_rows<T: Copy + Default, const K: usize>(
        &self,
        packed: &[[T; K]; 16],
        metadata: Option<&Lanes>,
        selector: u32,
    ) -> [[T; K]; 16] {
        let mut out = [[T::default(); K]; 16];
        for (row, (packed, out)) in packed.iter().zip(&mut out).enumerate() {
            for (chunk, out) in out.chunks_exact_mut(self.width()).enumerate() {
                let (lane, shift) = self.place(selector, K, row, chunk);
                let code = metadata.map_or(0x4, |m| m[lane] >> shift & 15);
                self.expand(code, chunk, packed, out);
            }
        }
        out
    }
    /// Writes the kept elements of a row's chunk to the places that four bits name.
    #[inline(always)]
    fn expand<T: Copy>(&self, code: u32, chunk: usize, packed: &[T], out: &mut [T]) {
        if self.one_of_two {
            // 0b1110 keeps the second element, 0b0100 the first.
            out[usize::from(code >> 2 == 3)] = packed[chunk];
            return;
        }
        let run = self.run;
        for kept in 0..2 {
            let at = (code >> (2 * kept)) as usize & 3;
            let from = (chunk * 2 + kept) * run;
            out[at * run..][..run].copy_from_slice(&packed[from..][..run]);
        }
    }
    /// The lane and the bit at which the four bits of a row's chunk begin.
    #[inline(always)]
    fn place(&self, selector: u32, k: usize, row: usize, chunk: usize) -> (usize, usize) {
        let chunks = k / self.width();
        let (g, upper) = (row & 7, row >> 3);
        // A quad describes two rows; its words are used in turn.
        let (threads, thread, shift) = if self.two_rows {
            (chunks.div_ceil(4), chunk / 4, 16 * upper + 4 * (chunk % 4))
        } else {
            (
                chunks.div_ceil(8) * 2,
                chunk / 8 * 2 + upper,
                4 * (chunk % 8),
            )
        };
        let first = selector as usize * threads;
        (4 * g + ((first + thread) & 3), shift)
    }
}
