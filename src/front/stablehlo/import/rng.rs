//! Random numbers.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::hlo::Op;
use crate::hlo::RngAlgorithm;
use crate::hlo::RngDistribution;
use crate::mlir::OpRef;
use crate::shape::Shape;

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn random(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        match name {
            "rng" => {
                let word = op.attr_enum("rng_distribution", "rng_distribution")?;
                let distribution = match word {
                    "UNIFORM" => RngDistribution::Uniform,
                    "NORMAL" => RngDistribution::Normal,
                    _ => return Err(op.wrong(format!("`{word}` is no distribution"))),
                };
                let [a, b, sizes] = self.exactly(op)?;
                let shape = match self.declared_shape(op, 0)? {
                    Some(shape) => shape,
                    None => {
                        let ty = self.element_type(op, 0)?;
                        Shape::array(ty, self.known_dims(op, sizes, "shape")?)
                    }
                };
                let id = self.b().shaped(Op::Rng { distribution }, &[a, b], shape)?;
                self.set_one(op, id)?;
            }
            "rng_bit_generator" => {
                let shape = self.needed_shape(op, 1)?;
                self.bit_generator(op, shape)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// State and bits of this shape.
    pub(super) fn bit_generator(&mut self, op: OpRef<'m>, bits: Shape) -> Result<()> {
        let word = match op.attr("rng_algorithm") {
            Some(attr) => attr.as_enum("rng_algorithm"),
            None => None,
        };
        let algorithm = match word {
            Some("DEFAULT") => RngAlgorithm::Default,
            Some("THREE_FRY") => RngAlgorithm::ThreeFry,
            Some("PHILOX") => RngAlgorithm::Philox,
            other => return Err(op.wrong(format!("the generator {other:?}"))),
        };
        let state = self.operand(op, 0)?;
        let shape = Shape::Tuple(vec![self.out.shape(state).without_layout(), bits]);
        let hlo = Op::RngBitGenerator { algorithm };
        let id = self.b().shaped(hlo, &[state], shape)?;
        self.set_elements(op, id)
    }
}
