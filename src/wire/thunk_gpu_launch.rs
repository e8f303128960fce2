//! How kernels of GPU bundles are launched and handed their buffers: reading.

use crate::base::Result;
use crate::executable::Launch;
use crate::executable::Parameter;
use crate::executable::Passing;
use crate::executable::ShapedSlice;
use crate::executable::TensorMap;
use crate::proto::stream_executor as se;
use crate::wire::number::bad;
use crate::wire::number::index;

/// A thunk's buffers, arguments and results apart, and how the kernel is given them.
pub(super) struct Buffers {
    pub(super) args: Vec<ShapedSlice>,
    pub(super) results: Vec<ShapedSlice>,
    pub(super) passing: Passing,
}

/// What a thunk says of its launch beside the buffers.
pub(super) struct Wanted<'p> {
    /// For each buffer whether it is written.
    pub(super) written: &'p [bool],
    /// How arguments are packed, when it is not one address each.
    pub(super) packing: Option<&'p se::KernelArgsPackingSpecProto>,
    /// Buffers that the kernel adds to.
    pub(super) zeroed: &'p [i64],
    /// Buffers passed as maps.
    pub(super) maps: Option<&'p se::gpu::TmaMetadataProto>,
    /// Whether the launch may begin early.
    pub(super) early: bool,
    /// Whether the kernel is XLA's.
    pub(super) overreads: bool,
}

/// Sorts a thunk's buffers into arguments and results, and notes how they are passed.
pub(super) fn buffers(slices: Vec<ShapedSlice>, wanted: &Wanted<'_>) -> Result<Buffers> {
    // The place of each buffer once arguments stand before results.
    let count = slices.len();
    let reads = wanted.written.iter().filter(|&&written| !written).count();
    let (mut read, mut written) = (0, reads);
    let places = wanted.written.iter().map(|&is_written| {
        let next = if is_written { &mut written } else { &mut read };
        *next += 1;
        *next - 1
    });
    let places: Vec<usize> = places.collect();
    let place = |buffer: i64| {
        let place = usize::try_from(buffer).ok().and_then(|i| places.get(i));
        let place = place.copied();
        place.ok_or_else(|| bad(format!("a launch names buffer {buffer} of {count}")))
    };
    let map = |buffer: i64| {
        wanted
            .maps
            .and_then(|m| m.arg_index_to_tma_info.get(&buffer))
    };
    let parameter = |buffer: i64| -> Result<Parameter> {
        Ok(match map(buffer) {
            Some(proto) => Parameter::Map(place(buffer)?, tensor_map(proto)?),
            None => Parameter::Address(place(buffer)?),
        })
    };
    let parameters: Vec<Parameter> = match wanted.packing {
        None => (0..count)
            .map(|buffer| parameter(buffer as i64))
            .collect::<Result<_>>()?,
        Some(packing) => {
            let packed = packing.kernel_arguments.iter().map(|argument| {
                match argument.relocations.as_slice() {
                    [] => Ok(Parameter::Bytes(argument.data.clone())),
                    [one] if one.kind == 1 && argument.data.iter().all(|&byte| byte == 0) => {
                        parameter(i64::from(one.argument_index))
                    }
                    _ => Err(bad(
                        "an argument is packed in a way this reader does not know",
                    )),
                }
            });
            packed.collect::<Result<_>>()?
        }
    };
    let in_order = parameters.iter().enumerate();
    let is_plain = parameters.len() == count
        && in_order
            .into_iter()
            .all(|(i, p)| *p == Parameter::Address(i));
    let zeroed = wanted.zeroed.iter().map(|&buffer| place(buffer));
    let passing = Passing {
        parameters: if is_plain { Vec::new() } else { parameters },
        zeroed: zeroed.collect::<Result<_>>()?,
        early: wanted.early,
        overreads: wanted.overreads,
    };
    let (mut args, mut results) = (Vec::new(), Vec::new());
    for (slice, &written) in slices.into_iter().zip(wanted.written) {
        if written { &mut results } else { &mut args }.push(slice);
    }
    Ok(Buffers {
        args,
        results,
        passing,
    })
}

fn tensor_map(proto: &se::gpu::TmaDescriptorProto) -> Result<TensorMap> {
    fn numbers<T: Copy + Into<i64>, U: TryFrom<i64>>(list: &[T]) -> Result<Vec<U>> {
        let list = list.iter().map(|&n| U::try_from(n.into()));
        let list: std::result::Result<Vec<U>, _> = list.collect();
        list.map_err(|_| bad("a tensor map with a size that does not fit"))
    }
    let setting = |n: i32| u32::try_from(n).map_err(|_| bad("a tensor map with a setting below 0"));
    Ok(TensorMap {
        element_size: index(proto.element_size, "an element's size")? as u32,
        dims: numbers(&proto.global_dims)?,
        strides: numbers(&proto.global_strides)?,
        boxes: numbers(&proto.box_dims)?,
        steps: numbers(&proto.element_strides)?,
        interleave: setting(proto.interleave)?,
        swizzle: setting(proto.swizzle)?,
        promotion: setting(proto.l2_promotion)?,
        fill: setting(proto.float_oob_fill)?,
    })
}

/// The size of a launch.
pub(super) fn launch(
    grid: Option<se::Dim3DProto>,
    block: Option<se::Dim3DProto>,
    cluster: Option<se::Dim3DProto>,
    shared_bytes: i64,
) -> Result<Launch> {
    let small = |n: i64| {
        let n = u32::try_from(n).ok().filter(|&n| n > 0);
        n.ok_or_else(|| bad("a launch with a size that is not positive, or enormous"))
    };
    let dims = |dim: Option<se::Dim3DProto>| -> Result<[u32; 3]> {
        let dim = dim.unwrap_or_default();
        Ok([small(dim.x)?, small(dim.y)?, small(dim.z)?])
    };
    Ok(Launch {
        workgroups: dims(grid)?.map(u64::from),
        workitems: dims(block)?,
        cluster: cluster.map(|c| dims(Some(c))).transpose()?,
        shared_bytes: u32::try_from(shared_bytes)
            .map_err(|_| bad(format!("{shared_bytes} bytes of shared memory")))?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::Id;
    use crate::executable::AllocId;
    use crate::executable::Slice;
    use crate::shape::ArrayShape;
    use crate::shape::PrimitiveType;

    fn buffer(alloc: usize) -> ShapedSlice {
        ShapedSlice {
            slice: Slice {
                alloc: AllocId::from_index(alloc),
                offset: 0,
                size: 256,
            },
            shape: ArrayShape::new(PrimitiveType::U8, [256]),
        }
    }

    fn relocation(argument: i32) -> se::KernelArgPackingSpecProto {
        se::KernelArgPackingSpecProto {
            relocations: vec![se::KernelArgPackingRelocationProto {
                kind: 1,
                argument_index: argument,
            }],
            data: Vec::new(),
        }
    }

    #[test]
    fn results_between_arguments_keep_their_parameters() {
        // Buffers 0 and 2 are written, 1 and 3 are read: 1, 3, 0, 2 once arguments come first.
        let packing = se::KernelArgsPackingSpecProto {
            kernel_arguments: vec![
                relocation(0),
                relocation(1),
                se::KernelArgPackingSpecProto {
                    relocations: Vec::new(),
                    data: vec![7, 0, 0, 0],
                },
                relocation(2),
                relocation(3),
            ],
        };
        let map = se::gpu::TmaDescriptorProto {
            element_size: 2,
            global_dims: vec![64, 32],
            global_strides: vec![128],
            box_dims: vec![64, 8],
            element_strides: vec![1, 1],
            swizzle: 3,
            ..Default::default()
        };
        let maps = se::gpu::TmaMetadataProto {
            arg_index_to_tma_info: BTreeMap::from([(3, map)]),
        };
        let wanted = Wanted {
            written: &[true, false, true, false],
            packing: Some(&packing),
            zeroed: &[2],
            maps: Some(&maps),
            early: true,
            overreads: true,
        };
        let found = buffers((0..4).map(buffer).collect(), &wanted).unwrap();
        let allocs = |list: &[ShapedSlice]| -> Vec<usize> {
            list.iter().map(|s| s.slice.alloc.index()).collect()
        };
        assert_eq!(allocs(&found.args), [1, 3]);
        assert_eq!(allocs(&found.results), [0, 2]);
        let map = TensorMap {
            element_size: 2,
            dims: vec![64, 32],
            strides: vec![128],
            boxes: vec![64, 8],
            steps: vec![1, 1],
            interleave: 0,
            swizzle: 3,
            promotion: 0,
            fill: 0,
        };
        let parameters = vec![
            Parameter::Address(2),
            Parameter::Address(0),
            Parameter::Bytes(vec![7, 0, 0, 0]),
            Parameter::Address(3),
            Parameter::Map(1, map),
        ];
        let passing = Passing {
            parameters,
            zeroed: vec![3],
            early: true,
            overreads: true,
        };
        assert_eq!(found.passing, passing);
    }

    #[test]
    fn plain_launches_say_nothing() {
        let wanted = Wanted {
            written: &[false, true],
            packing: None,
            zeroed: &[],
            maps: None,
            early: false,
            overreads: false,
        };
        let found = buffers(vec![buffer(0), buffer(1)], &wanted).unwrap();
        assert!(found.passing.is_plain());
        let packing = se::KernelArgsPackingSpecProto {
            kernel_arguments: vec![relocation(9)],
        };
        let broken = Wanted {
            packing: Some(&packing),
            ..wanted
        };
        assert!(buffers(vec![buffer(0), buffer(1)], &broken).is_err());
    }
}
