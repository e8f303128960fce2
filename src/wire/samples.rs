//! Small executables for tests: `f(x, y) = x + y` on 16 floats, for a CPU and for a GPU.

use std::sync::Arc;

use prost::Message;

use crate::base::Arena;
use crate::base::ByteSize;
use crate::base::Id;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::Code;
use crate::executable::Constant;
use crate::executable::ConstantId;
use crate::executable::CopyThunk;
use crate::executable::Executable;
use crate::executable::KernelEntry;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::executable::KernelThunk;
use crate::executable::Launch;
use crate::executable::LogicalBuffer;
use crate::executable::OutputSlice;
use crate::executable::Passing;
use crate::executable::ShapedSlice;
use crate::executable::Signature;
use crate::executable::Slice;
use crate::executable::TargetNeeds;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::WhileThunk;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::proto::xla as pb;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::ProgramShape;
use crate::shape::Shape;
use crate::shape::ShapeIndex;
use crate::wire::literal::encode_literal;
use crate::wire::shape::encode_program_shape;
use crate::wire::shape::encode_shape;

fn vector() -> ArrayShape {
    let mut shape = ArrayShape::new(PrimitiveType::F32, [16]);
    shape.layout = Some(shape.layout_or_default());
    shape
}

fn program() -> ProgramShape {
    let shape = Shape::Array(vector());
    ProgramShape {
        parameters: vec![shape.clone(), shape.clone()],
        parameter_names: vec!["x".into(), "y".into()],
        result: shape,
    }
}

/// Two parameters, a constant and an opaque call of all three.
fn hlo() -> Vec<u8> {
    let shape = Shape::Array(vector());
    let instruction = |name: &str, opcode: &str, position: i64| pb::HloInstructionProto {
        name: name.to_owned(),
        opcode: opcode.to_owned(),
        shape: Some(encode_shape(&shape)),
        id: (3 << 32) | position,
        ..Default::default()
    };
    let mut y = instruction("y", "parameter", 1);
    y.parameter_number = 1;
    let mut constant = instruction("c.2", "constant", 2);
    let ones = 1f32.to_le_bytes().repeat(16);
    constant.literal = Some(encode_literal(&Literal::Array(ArrayLiteral::new(
        vector(),
        ones,
    ))));
    let mut root = instruction("sum", "custom-call", 3);
    root.custom_call_target = "opaque".to_owned();
    root.operand_ids = vec![3 << 32, (3 << 32) | 1, (3 << 32) | 2];
    let program = Some(encode_program_shape(&program()));
    let computation = pb::HloComputationProto {
        name: "main".to_owned(),
        instructions: vec![instruction("x", "parameter", 0), y, constant, root],
        program_shape: program.clone(),
        id: 3,
        root_id: (3 << 32) | 3,
        ..Default::default()
    };
    pb::HloModuleProtoWithConfig {
        hlo_module: Some(pb::HloModuleProto {
            name: "sample".to_owned(),
            entry_computation_name: "main".to_owned(),
            entry_computation_id: 3,
            computations: vec![computation],
            host_program_shape: program.clone(),
            ..Default::default()
        }),
        config: Some(pb::HloModuleConfigProto {
            entry_computation_layout: program,
            replica_count: 1,
            num_partitions: 1,
            ..Default::default()
        }),
    }
    .encode_to_vec()
}

fn slice(alloc: usize, size: u64) -> Slice {
    Slice {
        alloc: AllocId::from_index(alloc),
        offset: 0,
        size,
    }
}

fn shaped(alloc: usize) -> ShapedSlice {
    ShapedSlice {
        slice: slice(alloc, 64),
        shape: vector(),
    }
}

fn thunks() -> ThunkSequence {
    let thunk = |origin: &str, kind| Thunk {
        origin: origin.to_owned(),
        kind,
    };
    let kernel = ThunkKind::Kernel(KernelThunk {
        kernel: KernelId::from_index(0),
        launch: Launch {
            workgroups: [4, 1, 1],
            ..Launch::SINGLE
        },
        args: vec![shaped(0), shaped(1), shaped(2)],
        results: vec![shaped(4)],
        passing: Passing::default(),
    });
    let copy = ThunkKind::Copy(CopyThunk {
        source: shaped(4),
        destination: shaped(3),
    });
    let predicate = Slice {
        offset: 64,
        ..slice(4, 1)
    };
    let again = ThunkKind::While(Box::new(WhileThunk {
        predicate,
        condition: ThunkSequence::default(),
        body: ThunkSequence(vec![thunk("copy", copy)]),
        trip_count: Some(1),
    }));
    ThunkSequence(vec![thunk("sum", kernel), thunk("loop", again)])
}

fn executable(needs: TargetNeeds, images: Vec<KernelImage>) -> Executable {
    let parameter = |number| AllocKind::Parameter {
        number,
        index: ShapeIndex::new(),
        aliased_output: false,
    };
    let constant = AllocKind::Constant(ConstantId::from_index(0));
    let rows = [
        (parameter(0), 64, false),
        (parameter(1), 64, false),
        (constant, 64, false),
        (AllocKind::Owned, 64, true),
        (AllocKind::Owned, 128, false),
    ];
    let allocation = |(kind, size, live_out)| Allocation {
        size: ByteSize(size),
        kind,
        live_out,
        color: 0,
    };
    let held = [("x", 0, 0), ("y", 1, 1), ("c.2", 2, 2), ("sum", 3, 3)];
    let logical = |(name, position, alloc): (&str, u64, usize)| LogicalBuffer {
        instruction: (3 << 32) | position,
        name: name.to_owned(),
        index: ShapeIndex::new(),
        slice: slice(alloc, 64),
    };
    let kernel = KernelEntry {
        name: "sum_kernel".to_owned(),
        arity: Some(4),
        is_comparator: false,
    };
    Executable {
        name: "sample".to_owned(),
        needs,
        signature: Signature {
            program: program(),
            aliases: Vec::new(),
            outputs: vec![OutputSlice {
                index: ShapeIndex::new(),
                slice: slice(3, 64),
            }],
        },
        allocs: rows.into_iter().map(allocation).collect::<Arena<_, _>>(),
        constants: [Constant {
            name: "c.2".to_owned(),
            instruction: (3 << 32) | 2,
            bytes: Arc::new(1f32.to_le_bytes().repeat(16)),
        }]
        .into_iter()
        .collect(),
        thunks: thunks(),
        kernels: [kernel].into_iter().collect(),
        images,
        logical: held.into_iter().map(logical).collect(),
        hlo: hlo(),
        replicas: 1,
        partitions: 1,
    }
}

/// For a CPU. The object is a stand-in: bundles do not look into it.
pub(crate) fn cpu() -> Executable {
    let needs = TargetNeeds::Cpu {
        triple: "x86_64-unknown-linux-gnu".to_owned(),
        cpu: "x86-64".to_owned(),
        features: vec!["+sse2".to_owned(), "-avx".to_owned()],
        data_layout: "e-m:e-i64:64-n8:16:32:64-S128".to_owned(),
    };
    let image = KernelImage {
        name: "kernels_0".to_owned(),
        kernels: vec![KernelId::from_index(0)],
        code: Code::Elf(b"\x7fELF stand-in".to_vec()),
    };
    executable(needs, vec![image])
}

/// For a GPU.
pub(crate) fn cuda() -> Executable {
    let target = crate::wire::target::gpu("oberon_b200", None).unwrap();
    let needs = crate::wire::target::needs(&target, "").unwrap();
    let ptx = |body: &str| Code::Ptx(format!(".version 8.6\n.target sm_100a\n{body}\n"));
    let kernel = KernelImage {
        name: "sum_kernel".to_owned(),
        kernels: vec![KernelId::from_index(0)],
        code: ptx(".visible .entry sum_kernel() {}"),
    };
    let constants = KernelImage {
        name: "constants".to_owned(),
        kernels: Vec::new(),
        code: ptx(".visible .global .align 256 .b8 buffer_for_c_2[64];"),
    };
    executable(needs, vec![kernel, constants])
}
