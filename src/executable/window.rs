//! Thunks that run on parts of buffers which are known only while the program runs.

use crate::executable::Access;
use crate::executable::AllocId;
use crate::executable::BufferUse;
use crate::executable::Slice;
use crate::executable::ThunkSequence;
use crate::shape::PrimitiveType;

/// Runs thunks on windows of buffers. The thunks see each window as an allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowsThunk {
    /// The windows.
    pub windows: Vec<Window>,
    /// What runs on them.
    pub thunks: ThunkSequence,
}

/// A part of a buffer under the number of an allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The allocation that stands for it; its size is the window's.
    pub alloc: AllocId,
    /// The buffer.
    pub buffer: Slice,
    /// What the thunks do with the buffer as a whole.
    pub access: Access,
    /// Where in the buffer it begins.
    pub place: Place,
}

/// Where a window begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// At a fixed byte, and so many bytes further for each step that a loop has made. The loop is
    /// counted outwards from the innermost one; without it the window stands still.
    Step {
        /// Which loop around the thunk.
        depth: Option<usize>,
        /// Byte of the first step.
        offset: i64,
        /// Bytes between steps.
        stride: i64,
    },
    /// At an index of each dimension.
    Indices(Vec<WindowIndex>),
}

/// The beginning of a window along one dimension. It is moved so far that the window fits.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowIndex {
    /// Bytes from one index to the next.
    pub stride: u64,
    /// Largest index at which the window fits.
    pub last: i64,
    /// The index wanted.
    pub index: IndexExpr,
}

/// An index that is worked out while the program runs.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexExpr {
    /// A number.
    Constant(i64),
    /// The integer in a buffer.
    Load(Slice, PrimitiveType),
    /// Works out operands and combines them.
    Apply(IndexOp, Vec<IndexExpr>),
}

/// How operands are combined; a comparison gives one or zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the operation it is named for")]
pub enum IndexOp {
    Add,
    Subtract,
    Multiply,
    Eq,
    Ne,
    Ge,
    Gt,
    Le,
    Lt,
    /// The second operand when the first is not zero, else the third.
    Select,
}

impl IndexOp {
    /// How many operands it takes.
    pub fn arity(self) -> usize {
        if self == Self::Select { 3 } else { 2 }
    }
}

impl IndexExpr {
    /// The value, when `load` gives the integers in buffers. Arithmetic wraps.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn value<E>(
        &self,
        load: &mut dyn FnMut(&Slice, PrimitiveType) -> Result<i64, E>,
    ) -> Result<i64, E> {
        Ok(match self {
            Self::Constant(value) => *value,
            Self::Load(slice, ty) => load(slice, *ty)?,
            Self::Apply(op, operands) => {
                let mut values = [0; 3];
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = operand.value(load)?;
                }
                let [a, b, c] = values;
                match op {
                    IndexOp::Add => a.wrapping_add(b),
                    IndexOp::Subtract => a.wrapping_sub(b),
                    IndexOp::Multiply => a.wrapping_mul(b),
                    IndexOp::Eq => i64::from(a == b),
                    IndexOp::Ne => i64::from(a != b),
                    IndexOp::Ge => i64::from(a >= b),
                    IndexOp::Gt => i64::from(a > b),
                    IndexOp::Le => i64::from(a <= b),
                    IndexOp::Lt => i64::from(a < b),
                    IndexOp::Select if a != 0 => b,
                    IndexOp::Select => c,
                }
            }
        })
    }

    /// The buffers it reads, added to `loads`.
    fn loads(&self, loads: &mut Vec<Slice>) {
        match self {
            Self::Constant(_) => {}
            Self::Load(slice, _) => loads.push(*slice),
            Self::Apply(_, operands) => {
                for operand in operands {
                    operand.loads(loads);
                }
            }
        }
    }
}

impl WindowsThunk {
    /// Every slice it touches outside of its windows, and the buffers of these.
    pub fn uses(&self) -> Vec<BufferUse> {
        let mut loads = Vec::new();
        for window in &self.windows {
            if let Place::Indices(indices) = &window.place {
                for index in indices {
                    index.index.loads(&mut loads);
                }
            }
        }
        let loads = loads.into_iter().map(|slice| BufferUse {
            slice,
            access: Access::Read,
        });
        let buffers = self.windows.iter().map(|window| BufferUse {
            slice: window.buffer,
            access: window.access,
        });
        loads.chain(buffers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;

    #[test]
    fn indices_are_worked_out() {
        let slice = Slice {
            alloc: AllocId::from_index(3),
            offset: 8,
            size: 4,
        };
        let load = || IndexExpr::Load(slice, PrimitiveType::S32);
        let apply = IndexExpr::Apply;
        // x < 0 ? x + 7 : x
        let wrapped = apply(
            IndexOp::Select,
            vec![
                apply(IndexOp::Lt, vec![load(), IndexExpr::Constant(0)]),
                apply(IndexOp::Add, vec![load(), IndexExpr::Constant(7)]),
                load(),
            ],
        );
        let at = |x: i64| wrapped.value::<()>(&mut |_, _| Ok(x));
        assert_eq!((at(-2), at(5), at(0)), (Ok(5), Ok(5), Ok(0)));
        assert_eq!(
            wrapped.value(&mut |_, _| Err("no memory")),
            Err("no memory")
        );
        let mut loads = Vec::new();
        wrapped.loads(&mut loads);
        assert_eq!(loads, [slice; 3]);
    }
}
