//! Infeed, outfeed, send and receive.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::collective::channel_id;
use crate::front::stablehlo::types;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir::Attr;
use crate::mlir::OpRef;
use crate::shape::Layout;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::shape::index;

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn host_op(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        match name {
            "infeed" => self.infeed(op)?,
            "outfeed" => {
                let mut operands = self.operands(op)?;
                let Some(token) = operands.pop() else {
                    return Err(op.wrong("no token"));
                };
                let data = self.b().tuple(&operands)?;
                let hlo = Op::Outfeed {
                    config: text_of(op, "outfeed_config"),
                    shape: self.out.shape(data).without_layout(),
                };
                let id = self.b().op(hlo, &[data, token])?;
                self.set_one(op, id)?;
            }
            "send" => self.send(op)?,
            "recv" => self.receive(op)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Shapes of all results but the last, which is a token.
    fn data_shapes(&self, op: OpRef<'m>) -> Result<Vec<Shape>> {
        let data = op.results.len().checked_sub(1);
        let data = data.ok_or_else(|| op.wrong("no results"))?;
        (0..data).map(|i| self.needed_shape(op, i)).collect()
    }

    fn infeed(&mut self, op: OpRef<'m>) -> Result<()> {
        let [token] = self.exactly(op)?;
        let mut shapes = self.data_shapes(op)?;
        if let Some(layouts) = op.attr("layout").and_then(Attr::as_array) {
            for (shape, order) in shapes.iter_mut().zip(layouts) {
                let (Shape::Array(array), Some(order)) = (shape, order.ints()) else {
                    continue;
                };
                // A scalar has no layout, whatever is said of it.
                if array.rank() == 0 {
                    continue;
                }
                let dims = self.sizes(op, "layout", &order)?;
                if dims.len() != array.rank() || !index::is_permutation(&dims) {
                    return Err(op.wrong(format!("the layout {order:?} does not fit {array}")));
                }
                array.layout = Some(Layout::from_minor_to_major(dims));
            }
        }
        let count = shapes.len();
        let shape = Shape::Tuple(vec![Shape::Tuple(shapes), Shape::Token]);
        let hlo = Op::Infeed {
            config: text_of(op, "infeed_config"),
        };
        let id = self.b().shaped(hlo, &[token], shape)?;
        if count > 0 {
            let data = self.element(id, 0)?;
            for index in 0..count {
                let element = self.element(data, index)?;
                self.set(op, index, element)?;
            }
        }
        let token = self.element(id, 1)?;
        self.set(op, count, token)
    }

    /// An element of a tuple.
    fn element(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        self.b().op(Op::GetTupleElement { index }, &[tuple])
    }

    /// Pairs of devices travel as a frontend attribute.
    fn say_pairs(&mut self, op: OpRef<'m>, ids: &[InstrId]) -> Result<()> {
        let Some(pairs) = op.opt_ints("source_target_pairs")? else {
            return Ok(());
        };
        let text: Vec<String> = pairs
            .chunks_exact(2)
            .map(|p| format!("{{{},{}}}", p[0], p[1]))
            .collect();
        if text.is_empty() {
            return Ok(());
        }
        let text = format!("{{{}}}", text.join(","));
        for &id in ids {
            let pairs = &mut self.extra(id).frontend_attributes;
            pairs.insert(
                "_xla_send_recv_source_target_pairs".to_owned(),
                text.clone(),
            );
        }
        Ok(())
    }

    fn send(&mut self, op: OpRef<'m>) -> Result<()> {
        let mut operands = self.operands(op)?;
        let Some(token) = operands.pop() else {
            return Err(op.wrong("no token"));
        };
        let data = match *operands {
            [one] => one,
            _ => self.b().tuple(&operands)?,
        };
        let channel_id = channel_id(op)?;
        let is_host_transfer = op.bool_or("is_host_transfer", false)?;
        let hlo = Op::Send {
            channel_id,
            is_host_transfer,
        };
        let start = self.b().op(hlo, &[data, token])?;
        let hlo = Op::SendDone {
            channel_id,
            is_host_transfer,
        };
        let done = self.b().op(hlo, &[start])?;
        self.say_pairs(op, &[start, done])?;
        self.set_one(op, done)
    }

    fn receive(&mut self, op: OpRef<'m>) -> Result<()> {
        let [token] = self.exactly(op)?;
        let shapes = self.data_shapes(op)?;
        let count = shapes.len();
        let data = types::one_or_tuple(shapes);
        let channel_id = channel_id(op)?;
        let is_host_transfer = op.bool_or("is_host_transfer", false)?;
        let hlo = Op::Recv {
            channel_id,
            is_host_transfer,
        };
        let u32 = Shape::scalar(PrimitiveType::U32);
        let shape = Shape::Tuple(vec![data.clone(), u32, Shape::Token]);
        let start = self.b().shaped(hlo, &[token], shape)?;
        let hlo = Op::RecvDone {
            channel_id,
            is_host_transfer,
        };
        let shape = Shape::Tuple(vec![data, Shape::Token]);
        let done = self.b().shaped(hlo, &[start], shape)?;
        self.say_pairs(op, &[start, done])?;
        let data = self.element(done, 0)?;
        if count == 1 {
            self.set(op, 0, data)?;
        } else {
            for index in 0..count {
                let element = self.element(data, index)?;
                self.set(op, index, element)?;
            }
        }
        let token = self.element(done, 1)?;
        self.set(op, count, token)
    }
}

/// The bytes of a string attribute.
fn text_of(op: OpRef<'_>, name: &str) -> Vec<u8> {
    match op.attr(name) {
        Some(Attr::String(text)) => text.to_vec(),
        _ => Vec::new(),
    }
}
