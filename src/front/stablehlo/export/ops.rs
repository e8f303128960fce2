//! Elementwise ops, constants, and the choice of the file for all others.

use crate::base::Result;
use crate::front::stablehlo::export::Exporter;
use crate::front::stablehlo::export::attributes;
use crate::front::stablehlo::export::attributes::dims;
use crate::front::stablehlo::export::attributes::int;
use crate::front::stablehlo::export::attributes::map;
use crate::front::stablehlo::types;
use crate::hlo::BinaryOp;
use crate::hlo::Extra;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::RngAlgorithm;
use crate::hlo::RngDistribution;
use crate::hlo::UnaryOp;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::Dense;
use crate::mlir::DenseData;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The op of StableHLO or CHLO for a unary op.
fn unary_name(op: UnaryOp) -> String {
    let word = match op {
        UnaryOp::CountLeadingZeros => "count_leading_zeros",
        UnaryOp::Expm1 => "exponential_minus_one",
        UnaryOp::IsFinite => "is_finite",
        UnaryOp::Log1p => "log_plus_one",
        UnaryOp::RoundNearestAfz => "round_nearest_afz",
        UnaryOp::RoundNearestEven => "round_nearest_even",
        UnaryOp::Acos
        | UnaryOp::Acosh
        | UnaryOp::Asin
        | UnaryOp::Asinh
        | UnaryOp::Atanh
        | UnaryOp::Cosh
        | UnaryOp::Sinh
        | UnaryOp::Erf => return format!("chlo.{}", op.name()),
        _ => op.name(),
    };
    format!("stablehlo.{word}")
}

fn binary_name(op: BinaryOp) -> String {
    match op {
        BinaryOp::MulHi => "chlo.mulhi".to_owned(),
        _ => format!("stablehlo.{}", op.name().replace('-', "_")),
    }
}

impl Exporter<'_> {
    /// The arrays and tokens that an instruction gives.
    pub(super) fn instr(&mut self, id: InstrId) -> Result<Vec<ValueId>> {
        let module = self.module;
        let instr = &module.instrs[id];
        if let Some(done) = self.movement(id)? {
            return Ok(done);
        }
        if let Some(done) = self.control(id)? {
            return Ok(done);
        }
        if let Some(done) = self.collective(id)? {
            return Ok(done);
        }
        let mut attrs = AttrMap::new();
        if let Some(extra) = &instr.extra {
            attributes::discardable(extra, &mut attrs);
            accuracy(extra, &mut attrs);
        }
        let name = match &instr.op {
            Op::Constant(literal) => return self.constant(literal, attrs),
            Op::Unary(op) => unary_name(*op),
            Op::Binary(op) => binary_name(*op),
            Op::Compare { direction, ty } => {
                let direction = Attr::stablehlo_enum("comparison_direction", direction.name());
                attrs.insert("comparison_direction".into(), direction);
                let ty = Attr::stablehlo_enum("comparison_type", ty.name());
                attrs.insert("compare_type".into(), ty);
                "stablehlo.compare".to_owned()
            }
            Op::Select => "stablehlo.select".to_owned(),
            Op::Clamp => "stablehlo.clamp".to_owned(),
            Op::Convert => "stablehlo.convert".to_owned(),
            Op::BitcastConvert => "stablehlo.bitcast_convert".to_owned(),
            Op::ReducePrecision {
                exponent_bits,
                mantissa_bits,
            } => {
                let bits = |n: u32| Attr::i32(i32::try_from(n).unwrap_or(i32::MAX));
                attrs.insert("exponent_bits".into(), bits(*exponent_bits));
                attrs.insert("mantissa_bits".into(), bits(*mantissa_bits));
                "stablehlo.reduce_precision".to_owned()
            }
            Op::PartitionId => "stablehlo.partition_id".to_owned(),
            Op::ReplicaId => "stablehlo.replica_id".to_owned(),
            Op::Rng { distribution } => return self.rng(id, *distribution, attrs),
            Op::RngBitGenerator { algorithm } => {
                let word = match algorithm {
                    RngAlgorithm::Default => "DEFAULT",
                    RngAlgorithm::ThreeFry => "THREE_FRY",
                    RngAlgorithm::Philox => "PHILOX",
                };
                let word = Attr::stablehlo_enum("rng_algorithm", word);
                attrs.insert("rng_algorithm".into(), word);
                return self.generated(id, attrs);
            }
            _ => match self.kernel(id, &mut attrs)? {
                Some(name) => name.to_owned(),
                None => return Err(self.unsupported(id, "it")),
            },
        };
        let operands = self.operands(id)?;
        let results = self.types(&instr.shape);
        if let (true, Some(chlo)) = (self.portable, name.strip_prefix("chlo.")) {
            return self.as_composite(id, chlo, operands, results, attrs);
        }
        self.push_op(&name, operands, results, attrs)
    }

    /// The name and attributes of an op with a kernel of its own and no region.
    fn kernel(&self, id: InstrId, attrs: &mut AttrMap) -> Result<Option<&'static str>> {
        let norm = |epsilon: f32, feature: usize, attrs: &mut AttrMap| {
            let bits = u64::from(epsilon.to_bits());
            let ty = Type::F32;
            attrs.insert("epsilon".into(), Attr::Float { bits, ty });
            attrs.insert("feature_index".into(), Attr::i64(int(feature)));
        };
        Ok(Some(match &self.module.instrs[id].op {
            Op::Dot {
                dims: of,
                precision,
                sparsity,
            } => {
                if !sparsity.is_empty() {
                    return Err(self.unsupported(id, "a sparse dot"));
                }
                let entries = vec![
                    ("lhs_batching_dimensions", dims(&of.lhs_batch)),
                    ("rhs_batching_dimensions", dims(&of.rhs_batch)),
                    ("lhs_contracting_dimensions", dims(&of.lhs_contracting)),
                    ("rhs_contracting_dimensions", dims(&of.rhs_contracting)),
                ];
                let of = Attr::structure("stablehlo", "dot", attributes::fields(entries));
                attrs.insert("dot_dimension_numbers".into(), of);
                attributes::precision(precision, "stablehlo", attrs);
                "stablehlo.dot_general"
            }
            Op::RaggedDot {
                dims: of,
                lhs_ragged,
                rhs_group,
                precision,
            } => {
                let entries = vec![
                    ("lhs_batching_dimensions", dims(&of.lhs_batch)),
                    ("rhs_batching_dimensions", dims(&of.rhs_batch)),
                    ("lhs_contracting_dimensions", dims(&of.lhs_contracting)),
                    ("rhs_contracting_dimensions", dims(&of.rhs_contracting)),
                    ("lhs_ragged_dimensions", dims(lhs_ragged)),
                    ("rhs_group_dimensions", dims(rhs_group)),
                ];
                let of = Attr::structure("chlo", "ragged_dot", attributes::fields(entries));
                attrs.insert("ragged_dot_dimension_numbers".into(), of);
                attributes::precision(precision, "chlo", attrs);
                "chlo.ragged_dot"
            }
            Op::Convolution {
                window,
                dims,
                feature_group_count,
                batch_group_count,
                precision,
            } => {
                attrs.insert("dimension_numbers".into(), attributes::conv(dims));
                attributes::window(window, true, attrs);
                let count = |n: usize| Attr::i64(int(n));
                attrs.insert("feature_group_count".into(), count(*feature_group_count));
                attrs.insert("batch_group_count".into(), count(*batch_group_count));
                attributes::precision(precision, "stablehlo", attrs);
                "stablehlo.convolution"
            }
            Op::Fft { kind, lengths } => {
                let word = Attr::stablehlo_enum("fft_type", kind.name());
                attrs.insert("fft_type".into(), word);
                attrs.insert("fft_length".into(), dims(lengths));
                "stablehlo.fft"
            }
            Op::Cholesky { lower } => {
                if *lower {
                    attrs.insert("lower".into(), Attr::Bool(true));
                }
                "stablehlo.cholesky"
            }
            Op::TriangularSolve {
                left_side,
                lower,
                unit_diagonal,
                transpose,
            } => {
                attrs.insert("left_side".into(), Attr::Bool(*left_side));
                attrs.insert("lower".into(), Attr::Bool(*lower));
                attrs.insert("unit_diagonal".into(), Attr::Bool(*unit_diagonal));
                let word = Attr::stablehlo_enum("transpose", transpose.name());
                attrs.insert("transpose_a".into(), word);
                "stablehlo.triangular_solve"
            }
            Op::BatchNormTraining {
                epsilon,
                feature_index,
            } => {
                norm(*epsilon, *feature_index, attrs);
                "stablehlo.batch_norm_training"
            }
            Op::BatchNormInference {
                epsilon,
                feature_index,
            } => {
                norm(*epsilon, *feature_index, attrs);
                "stablehlo.batch_norm_inference"
            }
            Op::BatchNormGrad {
                epsilon,
                feature_index,
            } => {
                norm(*epsilon, *feature_index, attrs);
                "stablehlo.batch_norm_grad"
            }
            Op::TopK {
                k, largest: true, ..
            } => {
                attrs.insert("k".into(), Attr::i64(int(*k)));
                "chlo.top_k"
            }
            _ => return Ok(None),
        }))
    }

    /// A constant of any shape.
    fn constant(&mut self, literal: &Literal, attrs: AttrMap) -> Result<Vec<ValueId>> {
        match literal {
            Literal::Array(array) => Ok(vec![self.array_constant(array, attrs)?]),
            Literal::Token => {
                let ty = Type::Token;
                Ok(vec![self.push_one(
                    "stablehlo.create_token",
                    Vec::new(),
                    ty,
                    attrs,
                )?])
            }
            Literal::Tuple(elements) => {
                let mut leaves = Vec::new();
                for element in elements {
                    leaves.extend(self.constant(element, attrs.clone())?);
                }
                Ok(leaves)
            }
        }
    }

    fn array_constant(&mut self, literal: &ArrayLiteral, mut attrs: AttrMap) -> Result<ValueId> {
        let dense = types::literal_dense(literal);
        let ty = dense.ty.clone();
        attrs.insert("value".into(), Attr::Dense(dense));
        self.push_one("stablehlo.constant", Vec::new(), ty, attrs)
    }

    /// A vector of 64-bit integers.
    pub(super) fn int_constant(&mut self, values: &[i64]) -> Result<ValueId> {
        let sizes = [values.len() as u64];
        let dense = attributes::dense_ints(values, &sizes, Type::I64);
        let ty = Type::static_tensor(&sizes, Type::I64);
        let attrs = map([("value", dense)]);
        self.push_one("stablehlo.constant", Vec::new(), ty, attrs)
    }

    fn rng(
        &mut self,
        id: InstrId,
        distribution: RngDistribution,
        mut attrs: AttrMap,
    ) -> Result<Vec<ValueId>> {
        let mut operands = self.operands(id)?;
        let Some(array) = self.module.shape(id).as_array() else {
            return Err(self.unsupported(id, "a result that is no array"));
        };
        let sizes: Vec<i64> = array.dims.iter().map(|&d| int(d)).collect();
        operands.push(self.int_constant(&sizes)?);
        let word = match distribution {
            RngDistribution::Uniform => "UNIFORM",
            RngDistribution::Normal => "NORMAL",
        };
        let word = Attr::stablehlo_enum("rng_distribution", word);
        attrs.insert("rng_distribution".into(), word);
        let results = self.types(self.module.shape(id));
        self.push_op("stablehlo.rng", operands, results, attrs)
    }

    /// State and bits; HLO also has a form that gives the bits only.
    fn generated(&mut self, id: InstrId, attrs: AttrMap) -> Result<Vec<ValueId>> {
        let operands = self.operands(id)?;
        let name = "stablehlo.rng_bit_generator";
        match self.module.shape(id) {
            shape @ Shape::Tuple(_) => {
                let results = self.types(shape);
                self.push_op(name, operands, results, attrs)
            }
            bits => {
                let state = self.out.ty(operands[0]).clone();
                let results = vec![state, types::type_of(bits)];
                let both = self.push_op(name, operands, results, attrs)?;
                Ok(both[1..].to_vec())
            }
        }
    }

    /// A scalar of unsigned 32 bits, for contexts that nobody reads.
    pub(super) fn context(&mut self) -> Result<ValueId> {
        let bytes: Vec<u8> = vec![0; 4];
        let ty = Type::from_primitive(PrimitiveType::U32);
        let dense = Attr::Dense(Dense {
            ty: Type::static_tensor(&[], ty.clone()),
            splat: true,
            data: DenseData::Bytes(bytes.into()),
        });
        let attrs = map([("value", dense)]);
        let ty = Type::static_tensor(&[], ty);
        self.push_one("stablehlo.constant", Vec::new(), ty, attrs)
    }
}

/// The accuracy that an instruction asks for, where it is one that StableHLO can say.
fn accuracy(extra: &Extra, attrs: &mut AttrMap) {
    let Some(text) = extra.result_accuracy.as_deref() else {
        return;
    };
    let mode = |word: &str| ("mode", Attr::stablehlo_enum("result_accuracy_mode", word));
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let entries = if squeezed.eq_ignore_ascii_case("mode=highest") {
        vec![mode("HIGHEST")]
    } else {
        let inner = squeezed.strip_prefix("tolerance={");
        let Some(inner) = inner.and_then(|t| t.strip_suffix('}')) else {
            return;
        };
        let value = |name: &str| {
            inner
                .split(',')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        };
        let float = |name: &str| {
            let value: f64 = value(name).and_then(|v| v.parse().ok()).unwrap_or(0.0);
            Attr::Float {
                bits: value.to_bits(),
                ty: Type::F64,
            }
        };
        let ulps: i64 = value("ulps").and_then(|v| v.parse().ok()).unwrap_or(0);
        vec![
            ("atol", float("atol")),
            ("rtol", float("rtol")),
            ("ulps", Attr::i64(ulps)),
            mode("TOLERANCE"),
        ]
    };
    let of = Attr::structure("stablehlo", "result_accuracy", attributes::fields(entries));
    attrs.insert("result_accuracy".into(), of);
}
