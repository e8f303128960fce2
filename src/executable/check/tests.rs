//! One executable that breaks no rule, and for each rule one change that breaks it.

use super::*;
use crate::base::Arena;
use crate::base::ByteSize;
use crate::base::Id;
use crate::executable::Constant;
use crate::executable::ConstantId;
use crate::executable::CopyThunk;
use crate::executable::IoAlias;
use crate::executable::KernelEntry;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::executable::KernelThunk;
use crate::executable::Launch;
use crate::executable::OutputSlice;
use crate::executable::Passing;
use crate::executable::ShapedSlice;
use crate::executable::Signature;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::TopKThunk;
use crate::executable::WhileThunk;
use crate::shape::PrimitiveType;
use crate::shape::ProgramShape;

fn vector() -> ArrayShape {
    let shape = Shape::array(PrimitiveType::F32, [16]).with_default_layout();
    shape.as_array().unwrap().clone()
}

fn whole(alloc: usize) -> ShapedSlice {
    ShapedSlice {
        slice: Slice {
            alloc: AllocId::from_index(alloc),
            offset: 0,
            size: 64,
        },
        shape: vector(),
    }
}

fn kernel(args: &[usize], results: &[usize]) -> Thunk {
    Thunk {
        origin: "fusion".to_owned(),
        kind: ThunkKind::Kernel(KernelThunk {
            kernel: KernelId::from_index(0),
            launch: Launch::SINGLE,
            args: args.iter().map(|&a| whole(a)).collect(),
            results: results.iter().map(|&a| whole(a)).collect(),
            passing: Passing::default(),
        }),
    }
}

fn allocation(kind: AllocKind, live_out: bool) -> Allocation {
    Allocation {
        size: ByteSize(64),
        kind,
        live_out,
        color: 0,
    }
}

/// Parameter 0, constant 1, temp 2, result 3: temp = kernel(parameter, constant), then a copy.
fn sound() -> Executable {
    let parameter = AllocKind::Parameter {
        number: 0,
        index: ShapeIndex::new(),
        aliased_output: false,
    };
    let constant = AllocKind::Constant(ConstantId::from_index(0));
    let copy = CopyThunk {
        source: whole(2),
        destination: whole(3),
    };
    Executable {
        name: "sound".to_owned(),
        needs: TargetNeeds::Cpu {
            triple: "x86_64-unknown-linux-gnu".to_owned(),
            cpu: "x86-64".to_owned(),
            features: Vec::new(),
            data_layout: String::new(),
        },
        signature: Signature {
            program: ProgramShape {
                parameters: vec![Shape::Array(vector())],
                parameter_names: vec!["x".to_owned()],
                result: Shape::Array(vector()),
            },
            aliases: Vec::new(),
            outputs: vec![OutputSlice {
                index: ShapeIndex::new(),
                slice: whole(3).slice,
            }],
        },
        allocs: Arena::from_iter([
            allocation(parameter, false),
            allocation(constant, false),
            allocation(AllocKind::Owned, false),
            allocation(AllocKind::Owned, true),
        ]),
        constants: Arena::from_iter([Constant {
            name: "c".to_owned(),
            instruction: 0,
            bytes: std::sync::Arc::new(vec![0; 64]),
        }]),
        thunks: ThunkSequence(vec![
            kernel(&[0, 1], &[2]),
            Thunk {
                origin: "copy".to_owned(),
                kind: ThunkKind::Copy(copy),
            },
        ]),
        kernels: Arena::from_iter([KernelEntry {
            name: "fusion".to_owned(),
            arity: Some(3),
            is_comparator: false,
        }]),
        images: vec![KernelImage {
            name: "all".to_owned(),
            kernels: vec![KernelId::from_index(0)],
            code: Code::Elf(Vec::new()),
        }],
        logical: Vec::new(),
        hlo: Vec::new(),
        replicas: 1,
        partitions: 1,
    }
}

fn first_kernel(executable: &mut Executable) -> &mut KernelThunk {
    match &mut executable.thunks.0[0].kind {
        ThunkKind::Kernel(thunk) => thunk,
        other => panic!("{other:?}"),
    }
}

/// Asserts that the change is found, in these words, and that nothing else is.
fn refuses(words: &str, change: impl FnOnce(&mut Executable)) {
    let mut executable = sound();
    change(&mut executable);
    let findings = check(&executable);
    let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 1, "{words}: {texts:#?}");
    assert!(texts[0].contains(words), "wanted `{words}`: {}", texts[0]);
}

#[test]
fn the_sound_one_passes() {
    assert_eq!(check(&sound()), []);
}

#[test]
fn slices_and_access() {
    refuses("64 bytes at offset 4", |e| {
        first_kernel(e).args[0].slice.offset = 4
    });
    refuses("offset 18446744073709551615", |e| {
        first_kernel(e).args[0].slice.offset = u64::MAX;
    });
    refuses("alloc9, which does not exist", |e| {
        first_kernel(e).args[0].slice.alloc = AllocId::from_index(9);
    });
    refuses("a slice of 32 bytes holds an array of 64", |e| {
        first_kernel(e).args[0].slice.size = 32;
    });
    refuses("a constant is written", |e| {
        first_kernel(e).args[1] = whole(2);
        first_kernel(e).results[0] = whole(1);
    });
    refuses("a read-only parameter is written", |e| {
        first_kernel(e).results[0] = whole(0);
    });
    refuses("alloc2 holds a result but does not outlive", |e| {
        e.signature.outputs[0].slice = whole(2).slice;
    });
}

#[test]
fn results_of_a_library_lie_apart() {
    let top_k = |indices: usize| TopKThunk {
        batch_size: 1,
        input_size: 16,
        k: 16,
        values: whole(0).slice,
        output: whole(3).slice,
        indices: whole(indices).slice,
    };
    let put = |e: &mut Executable, thunk: TopKThunk| {
        e.thunks.0[1].kind = ThunkKind::TopK(thunk);
    };
    refuses("two results share memory", |e| put(e, top_k(3)));
    refuses("a result shares memory with an operand", |e| {
        put(
            e,
            TopKThunk {
                values: whole(2).slice,
                ..top_k(2)
            },
        );
    });
    let mut sound = sound();
    put(&mut sound, top_k(2));
    assert_eq!(check(&sound), []);
}

#[test]
fn empty_slices_overlap_nothing() {
    let slice = |offset, size| Slice {
        offset,
        size,
        ..whole(2).slice
    };
    assert!(slice(0, 64).overlaps(&slice(32, 1)));
    assert!(!slice(0, 64).overlaps(&slice(32, 0)) && !slice(32, 0).overlaps(&slice(0, 64)));
}

#[test]
fn order_of_writes() {
    refuses("read before they are written", |e| {
        first_kernel(e).args[0] = whole(3);
    });
    refuses("no thunk writes all of this result", |e| {
        e.thunks.0.pop();
    });
    refuses("read before they are written", |e| {
        let body = ThunkSequence(vec![e.thunks.0.remove(0)]);
        let condition = ThunkSequence(vec![Thunk {
            origin: "p".to_owned(),
            kind: ThunkKind::ReplicaId(Slice {
                size: 4,
                ..whole(3).slice
            }),
        }]);
        let kind = ThunkKind::While(Box::new(WhileThunk {
            predicate: Slice {
                size: 1,
                ..whole(3).slice
            },
            condition,
            body,
            trip_count: None,
        }));
        e.thunks.0.insert(
            0,
            Thunk {
                origin: "while".to_owned(),
                kind,
            },
        );
    });
}

#[test]
fn kernels_and_launches() {
    refuses("kernel7 does not exist", |e| {
        first_kernel(e).kernel = KernelId::from_index(7);
    });
    refuses("2 buffers for `fusion`", |e| {
        first_kernel(e).args.pop();
    });
    refuses("a launch of [0, 1, 1]", |e| {
        first_kernel(e).launch.workgroups[0] = 0
    });
    refuses("a launch of", |e| {
        first_kernel(e).launch.workgroups = [1 << 32; 3]
    });
    refuses("a CPU launch with", |e| {
        first_kernel(e).launch.workitems[0] = 32
    });
    // The product of these is 2^64.
    refuses("larger than CUDA allows", |e| {
        e.needs = TargetNeeds::Cuda {
            major: 9,
            minor: 0,
            feature_extension: 2,
            host_triple: String::new(),
            host_cpu: String::new(),
            host_features: String::new(),
            abi_version: Vec::new(),
            target_config: Vec::new(),
            platform_version: String::new(),
        };
        first_kernel(e).launch.workitems = [1 << 22, 1 << 21, 1 << 21];
        e.images.clear();
    });
    refuses("is a comparator", |e| {
        e.kernels[KernelId::from_index(0)].is_comparator = true
    });
    refuses("ptx code does not belong", |e| {
        e.images[0].code = Code::Ptx(String::new())
    });
}

#[test]
fn plan_and_signature() {
    refuses("2 temporary allocations", |e| {
        e.allocs.push(allocation(AllocKind::Owned, false));
    });
    refuses("another allocation holds parameter 0", |e| {
        let again = e.allocs[AllocId::from_index(0)].clone();
        e.allocs.push(again);
    });
    refuses("for a constant of 63 bytes", |e| {
        e.constants[ConstantId::from_index(0)].bytes = std::sync::Arc::new(vec![0; 63]);
    });
    refuses("parameter 3 [], which does not exist", |e| {
        let kind = AllocKind::Parameter {
            number: 3,
            index: ShapeIndex::new(),
            aliased_output: false,
        };
        e.allocs.push(allocation(kind, false));
    });
    refuses("0 output slices for 1 result leaves", |e| {
        e.signature.outputs.clear()
    });
    refuses("an allocation of its own", |e| {
        e.allocs[AllocId::from_index(3)].size = ByteSize(128);
        e.signature.outputs[0].slice.offset = 64;
        if let ThunkKind::Copy(copy) = &mut e.thunks.0[1].kind {
            copy.destination.slice.offset = 64;
        }
    });
    refuses("zero replicas", |e| e.replicas = 0);
    refuses(
        "it names a result or parameter leaf that does not exist",
        |e| {
            e.signature.aliases.push(IoAlias {
                output: ShapeIndex::new(),
                parameter: 5,
                index: ShapeIndex::new(),
                must: false,
            });
        },
    );
}

#[test]
fn deep_nesting_ends_in_a_finding() {
    refuses("nest deeper than 64", |e| {
        for _ in 0..=MAX_NESTING {
            let inner = std::mem::take(&mut e.thunks);
            e.thunks.0.push(Thunk {
                origin: "call".to_owned(),
                kind: ThunkKind::Call(inner),
            });
        }
    });
}

/// A library fusion that doubles the parameter; for each rule of bodies one change that breaks it.
#[test]
fn bodies_of_fusions_follow_from_their_operands() {
    use crate::executable::BinaryFn;
    use crate::executable::FusionBody;
    use crate::executable::FusionOp;
    use crate::executable::FusionValue;
    use crate::executable::LibraryFusionThunk;
    use crate::executable::Reducer;
    use crate::shape::Dims;

    let value = |op, operands: &[usize]| FusionValue {
        shape: vector(),
        operands: operands.to_vec(),
        op,
    };
    let with = |values: Vec<FusionValue>| {
        let mut executable = sound();
        executable.thunks.0[0].kind = ThunkKind::LibraryFusion(Box::new(LibraryFusionThunk {
            instruction: 0,
            is_fusion: true,
            args: vec![whole(0)],
            results: vec![whole(2)],
            body: Ok(FusionBody { values }),
        }));
        check(&executable)
    };
    let x = || value(FusionOp::Parameter(0), &[]);
    let double = |operands: &[usize]| value(FusionOp::Binary(BinaryFn::Add), operands);
    assert_eq!(with(vec![x(), double(&[0, 0])]), []);
    let ops = [
        FusionOp::Parameter(1),
        FusionOp::Iota(1),
        FusionOp::Broadcast(Dims::from_slice(&[1])),
        FusionOp::Transpose(Dims::from_slice(&[1])),
        FusionOp::Slice {
            starts: Dims::from_slice(&[1]),
            strides: Dims::from_slice(&[1]),
        },
        FusionOp::Concatenate(1),
        FusionOp::Pad { low: vec![] },
        FusionOp::Reduce(Reducer::Sum, Dims::from_slice(&[1])),
    ];
    for op in ops {
        let operands: &[usize] = match op {
            FusionOp::Parameter(_) | FusionOp::Iota(_) => &[],
            FusionOp::Pad { .. } | FusionOp::Reduce(..) => &[0, 0],
            _ => &[0],
        };
        let found = with(vec![x(), value(op.clone(), operands)]);
        assert_eq!(found.len(), 1, "{op:?}");
        assert!(found[0].message.contains("value 1"), "{found:?}");
    }
    for values in [
        vec![],
        vec![x(), double(&[0])],
        vec![x(), double(&[0, 1])],
        vec![double(&[0, 0]), x()],
    ] {
        assert_eq!(with(values.clone()).len(), 1, "{values:?}");
    }
}
