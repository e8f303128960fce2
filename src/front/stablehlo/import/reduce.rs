//! Reductions, windows, sorting, scans.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::attributes::WindowLists;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::Window;
use crate::mlir::Attr;
use crate::mlir::OpRef;

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn reduction(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        let hlo = match name {
            "reduce" => Op::Reduce {
                dims: self.dims(op, "dimensions")?,
                body: self.region_of(op, 0)?,
            },
            "map" => {
                let operand = self.operand(op, 0)?;
                let rank = self.b().dims(operand)?.len();
                Op::Map {
                    dims: match op.has_attr("dimensions") {
                        true => self.dims(op, "dimensions")?,
                        false => (0..rank).collect(),
                    },
                    body: self.region_of(op, 0)?,
                }
            }
            "reduce_window" => {
                let window = self.reduction_window(op)?;
                let body = self.region_of(op, 0)?;
                Op::ReduceWindow { window, body }
            }
            "select_and_scatter" => {
                let window = self.reduction_window(op)?;
                Op::SelectAndScatter {
                    window,
                    select: self.region_of(op, 0)?,
                    scatter: self.region_of(op, 1)?,
                }
            }
            "sort" => {
                let operand = self.operand(op, 0)?;
                let rank = self.b().dims(operand)?.len() as i64;
                let dim = op.opt_int("dimension")?.unwrap_or(-1);
                let dim = if dim < 0 { dim + rank } else { dim };
                Op::Sort {
                    dim: usize::try_from(dim)
                        .map_err(|_| op.wrong("the dimension is out of range"))?,
                    body: self.region_of(op, 0)?,
                    is_stable: op.bool_or("is_stable", false)?,
                }
            }
            _ => return Ok(false),
        };
        let operands = self.operands(op)?;
        let id = self.b().op(hlo, &operands)?;
        self.set_results(op, id)?;
        Ok(true)
    }

    fn reduction_window(&self, op: OpRef<'m>) -> Result<Window> {
        let operand = self.operand(op, 0)?;
        let rank = self.out.shape(operand).as_array().map_or(0, |a| a.rank());
        let lists = WindowLists {
            sizes: op.opt_ints("window_dimensions")?,
            strides: op.opt_ints("window_strides")?,
            padding: op.opt_ints("padding")?,
            base_dilation: op.opt_ints("base_dilations")?,
            window_dilation: op.opt_ints("window_dilations")?,
            reversal: None,
        };
        self.window(op, rank, &lists)
    }

    /// `chlo.top_k` and `mhlo.topk`.
    pub(super) fn top_k(&mut self, op: OpRef<'m>) -> Result<()> {
        let k = self.index(op, "k")?;
        let largest = op.bool_or("largest", true)?;
        self.top_k_of(op, k, largest)
    }

    /// `chlo.scan` and `mhlo.scan`: inputs and outputs come before carries.
    pub(super) fn scan(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        let block = op.block(0)?;
        let inits = match op.opt_ints("operandSegmentSizes")?.as_deref() {
            Some(&[_, inits]) => usize::try_from(inits).ok(),
            _ => None,
        };
        let num_carries = inits.filter(|n| *n <= operands.len());
        let num_carries = num_carries.ok_or_else(|| op.wrong("`operandSegmentSizes` is wrong"))?;
        if self.source.blocks[block].args.len() != operands.len() {
            return Err(op.wrong("its region has another number of arguments"));
        }
        let hlo = Op::Scan {
            dim: self.index(op, "dimension")?,
            body: self.region_of(op, 0)?,
            num_carries,
            is_reverse: op.bool_or("is_reverse", false)?,
            is_associative: match op.attr("is_associative") {
                Some(Attr::Bool(value)) => Some(*value),
                _ => None,
            },
        };
        let operands: Vec<InstrId> = operands;
        let id = self.b().op(hlo, &operands)?;
        self.set_elements(op, id)
    }
}
