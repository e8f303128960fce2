//! HLO modules on the wire: `HloModuleProto`, and the messages that hold one.
//!
//! Decoding is total: any bytes give a module or a diagnostic, never a panic, in memory bounded by a
//! multiple of the input. Encoding is deterministic and writes complete ids: the computation's index
//! in the upper half, the position in the computation in the lower one.

mod attributes;
mod decode;
mod decode_op;
mod encode;
mod encode_op;
mod mesh;
mod printed;
mod result;

use prost::Message;

use crate::base::Result;
use crate::hlo::Module;
use crate::hlo::Sharding;
use crate::proto::xla as pb;
use crate::wire::number::bad;
use crate::wire::number::message;
use crate::wire::snapshot;
use crate::wire::snapshot::Holder;

/// The module of a serialized `xla.HloModuleProto`.
///
/// # Errors
/// `XA1004` when the bytes are no such module.
pub fn decode_module(bytes: &[u8]) -> Result<Module> {
    decode::decode(&message(bytes, "xla.HloModuleProto")?, None)
}

/// The module of a serialized `xla.HloModuleProtoWithConfig`.
///
/// # Errors
/// `XA1004` when the bytes are no such module.
pub fn decode_module_with_config(bytes: &[u8]) -> Result<Module> {
    let proto: pb::HloModuleProtoWithConfig = message(bytes, "xla.HloModuleProtoWithConfig")?;
    let module = proto.hlo_module.as_ref();
    let module = module.ok_or_else(|| bad("the bytes hold no HLO module"))?;
    decode::decode(module, proto.config.as_ref())
}

/// The module of any serialized message that holds one: `HloModuleProto`, `HloProto`,
/// `HloSnapshot`, `HloUnoptimizedSnapshot` in both its forms, or `HloModuleProtoWithConfig`.
///
/// # Errors
/// `XA1004` when the bytes are none of them.
pub fn decode_any(bytes: &[u8]) -> Result<Module> {
    let none = || bad("the bytes hold no HLO module");
    match snapshot::open(bytes)? {
        Holder::Module(proto) => decode::decode(&proto, None),
        Holder::WithConfig(proto) => {
            let module = proto.hlo_module.as_ref().ok_or_else(none)?;
            decode::decode(module, proto.config.as_ref())
        }
        Holder::Snapshot(proto) => {
            let module = proto.hlo.as_ref().and_then(|hlo| hlo.hlo_module.as_ref());
            decode::decode(module.ok_or_else(none)?, None)
        }
        Holder::Unoptimized(proto) => {
            let mut module = decode::decode(proto.hlo_module.as_ref().ok_or_else(none)?, None)?;
            // The module says nothing of the devices that ran it, the arguments do.
            if let (count @ 2.., 0) = (proto.partitions.len(), module.config.num_partitions) {
                module.config.num_partitions = i64::try_from(count).unwrap_or(i64::MAX);
            }
            Ok(module)
        }
    }
}

/// The sharding of a serialized `xla.OpSharding`.
///
/// # Errors
/// `XA1004` when the bytes are no such sharding.
pub fn decode_sharding(bytes: &[u8]) -> Result<Sharding> {
    attributes::decode_sharding(&message(bytes, "xla.OpSharding")?)
}

/// The serialized `xla.HloModuleProto` of a module.
pub fn encode_module(module: &Module) -> Vec<u8> {
    encode::encode(module).encode_to_vec()
}

/// The serialized `xla.HloProto` of a module.
pub fn encode_hlo_proto(module: &Module) -> Vec<u8> {
    let hlo_module = Some(encode::encode(module));
    pb::HloProto {
        hlo_module,
        buffer_assignment: None,
    }
    .encode_to_vec()
}

/// The serialized `xla.HloModuleProtoWithConfig` of a module, with all that loaders insist on:
/// program shape, entry layout, device counts, and the element size of packed arrays.
pub fn encode_module_with_config(module: &Module) -> Vec<u8> {
    with_config(module, encode::encode(module))
}

/// As [`encode_module_with_config`], with a root of the shape that the entry's caller sees, as
/// XLA's GPU client wants it.
pub fn encode_module_for_caller(module: &Module) -> Vec<u8> {
    let mut hlo_module = encode::encode(module);
    result::give_result(&mut hlo_module, &module.entry_layout().result);
    with_config(module, hlo_module)
}

fn with_config(module: &Module, mut hlo_module: pb::HloModuleProto) -> Vec<u8> {
    encode::mark_module(&mut hlo_module);
    pb::HloModuleProtoWithConfig {
        hlo_module: Some(hlo_module),
        config: Some(encode::encode_config(module)),
    }
    .encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Arena;
    use crate::base::Id;
    use crate::hlo::BinaryOp;
    use crate::hlo::CompId;
    use crate::hlo::Computation;
    use crate::hlo::Instr;
    use crate::hlo::InstrId;
    use crate::hlo::Op;
    use crate::literal::ArrayLiteral;
    use crate::literal::Literal;
    use crate::shape::Dims;
    use crate::shape::PrimitiveType;
    use crate::shape::Shape;
    use smallvec::smallvec;

    fn instr(name: &str, op: Op, operands: &[usize], shape: &Shape, parent: usize) -> Instr {
        Instr {
            name: name.to_owned(),
            op,
            operands: operands.iter().map(|&i| InstrId::from_index(i)).collect(),
            shape: shape.clone(),
            control_predecessors: smallvec![],
            parent: CompId::from_index(parent),
            extra: None,
        }
    }

    /// `f(x) = reduce(x * 2, 0, dimensions={1}, add)` with x of f32[3,4].
    fn sample() -> Module {
        let parameter = |number| Op::Parameter {
            number,
            leaf_replication: vec![],
        };
        let scalar = Shape::scalar(PrimitiveType::F32).with_default_layout();
        let matrix = Shape::array(PrimitiveType::F32, [3, 4]).with_default_layout();
        let row = Shape::array(PrimitiveType::F32, [3]).with_default_layout();
        let constant = |value: f32| {
            let shape = scalar.as_array().unwrap().clone();
            let bytes = value.to_le_bytes().to_vec();
            Op::Constant(Literal::Array(ArrayLiteral::new(shape, bytes)))
        };
        let add = Op::Binary(BinaryOp::Add);
        let multiply = Op::Binary(BinaryOp::Multiply);
        let dims: Dims = smallvec![1];
        let reduce = Op::Reduce {
            dims,
            body: CompId::from_index(0),
        };
        let broadcast = Op::Broadcast { dims: smallvec![] };
        let instrs: Arena<InstrId, Instr> = [
            instr("a", parameter(0), &[], &scalar, 0),
            instr("b", parameter(1), &[], &scalar, 0),
            instr("sum", add, &[0, 1], &scalar, 0),
            instr("x", parameter(0), &[], &matrix, 1),
            instr("two", constant(2.0), &[], &scalar, 1),
            instr("twos", broadcast, &[4], &matrix, 1),
            instr("double", multiply, &[3, 5], &matrix, 1),
            instr("zero", constant(0.0), &[], &scalar, 1),
            instr("result", reduce, &[6, 7], &row, 1),
        ]
        .into_iter()
        .collect();
        let ids: Vec<InstrId> = instrs.ids().collect();
        let comp = |name: &str, range: std::ops::Range<usize>, params: usize| Computation {
            name: name.to_owned(),
            instrs: ids[range.clone()].to_vec(),
            params: ids[range.start..range.start + params].to_vec(),
            root: ids[range.end - 1],
            execution_thread: String::new(),
        };
        let mut module = Module {
            name: "sample".to_owned(),
            stage: crate::hlo::Stage::Imported,
            comps: [comp("add", 0..3, 2), comp("main", 3..9, 1)]
                .into_iter()
                .collect(),
            instrs,
            entry: CompId::from_index(1),
            input_output_alias: Default::default(),
            buffer_donors: vec![],
            frontend_attributes: Default::default(),
            is_scheduled: true,
            config: Default::default(),
            stack_frames: Default::default(),
            other_attributes: vec![],
        };
        module.config.entry_layout = Some(module.entry_layout());
        module
    }

    #[test]
    fn decoding_undoes_encoding() {
        let module = sample();
        let bytes = encode_module(&module);
        assert_eq!(decode_module(&bytes).unwrap(), module);
        assert_eq!(decode_any(&bytes).unwrap(), module);
        assert_eq!(encode_module(&module), bytes);
        let with_config = encode_module_with_config(&module);
        let mut wanted = module;
        wanted.config.replica_count = 1;
        wanted.config.num_partitions = 1;
        assert_eq!(decode_module_with_config(&with_config).unwrap(), wanted);
        assert_eq!(decode_any(&with_config).unwrap(), wanted);
    }

    #[test]
    fn ids_are_complete() {
        let proto = encode::encode(&sample());
        assert_eq!(proto.entry_computation_id, 1);
        assert_eq!(proto.computations[1].instructions[2].id, 1 << 32 | 2);
        assert_eq!(
            proto.computations[1].instructions[2].operand_ids,
            [1 << 32 | 1]
        );
    }

    fn changed(change: impl Fn(&mut pb::HloModuleProto)) -> Result<Module> {
        let mut proto = encode::encode(&sample());
        change(&mut proto);
        decode::decode(&proto, None)
    }

    #[test]
    fn local_ids_are_read_too() {
        let module = changed(|p| {
            for computation in &mut p.computations {
                computation.root_id &= 0xffff;
                for instruction in &mut computation.instructions {
                    instruction.id &= 0xffff;
                    instruction
                        .operand_ids
                        .iter_mut()
                        .for_each(|id| *id &= 0xffff);
                }
            }
        });
        assert_eq!(module.unwrap(), sample());
    }

    #[test]
    fn broken_structure_is_told() {
        let main = |p: &mut pb::HloModuleProto, i: usize, id: i64| {
            p.computations[1].instructions[i].operand_ids[0] = id;
        };
        let wrong: [(&str, Result<Module>); 12] = [
            ("no entry", changed(|p| p.entry_computation_id = 7)),
            ("forward operand", changed(|p| main(p, 2, 5))),
            ("own operand", changed(|p| main(p, 2, 2))),
            ("no root", changed(|p| p.computations[0].root_id = 44)),
            ("callee after caller", changed(|p| p.computations.reverse())),
            ("two of one id", changed(|p| p.computations[0].id = 1)),
            (
                "parameter gap",
                changed(|p| p.computations[0].instructions[1].parameter_number = 2),
            ),
            (
                "no shape",
                changed(|p| p.computations[0].instructions[1].shape = None),
            ),
            (
                "unknown opcode",
                changed(|p| p.computations[0].instructions[2].opcode = "frob".into()),
            ),
            (
                "literal size",
                changed(|p| {
                    let literal = p.computations[1].instructions[1].literal.as_mut();
                    literal.unwrap().f32s.push(1.0);
                }),
            ),
            (
                "short schedule",
                changed(|p| {
                    let sequences = &mut p.schedule.as_mut().unwrap().sequences;
                    sequences.get_mut(&1).unwrap().instruction_ids.pop();
                }),
            ),
            (
                "alias of nothing",
                changed(|p| {
                    let entry = pb::hlo_input_output_alias_proto::AliasEntryProto {
                        parameter_number: 3,
                        kind: 1,
                        ..Default::default()
                    };
                    p.input_output_alias = Some(pb::HloInputOutputAliasProto {
                        entries: vec![entry],
                    });
                }),
            ),
        ];
        for (what, result) in wrong {
            assert!(result.is_err(), "{what}");
        }
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let bytes = encode_module_with_config(&sample());
        for cut in 0..bytes.len() {
            let _ = decode_any(&bytes[..cut]);
        }
        let mut state = 1u64;
        for round in 0..4000 {
            let mut damaged = bytes.clone();
            for _ in 0..=round % 4 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let bit = (state >> 33) as usize % (damaged.len() * 8);
                damaged[bit / 8] ^= 1 << (bit % 8);
            }
            let _ = decode_any(&damaged);
        }
    }
}
