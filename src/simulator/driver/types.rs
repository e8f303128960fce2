//! The structures of the driver's interface, as they lie in memory.

use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Handle;

/// `CUDA_MEMCPY2D`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Copy2d {
    pub(super) src_x: usize,
    pub(super) src_y: usize,
    pub(super) src_type: c_uint,
    pub(super) src_host: u64,
    pub(super) src_device: Address,
    pub(super) src_array: Handle,
    pub(super) src_pitch: usize,
    pub(super) dst_x: usize,
    pub(super) dst_y: usize,
    pub(super) dst_type: c_uint,
    pub(super) dst_host: u64,
    pub(super) dst_device: Address,
    pub(super) dst_array: Handle,
    pub(super) dst_pitch: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`, whose contexts take the places of reserved words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Copy3d {
    pub(super) src_x: usize,
    pub(super) src_y: usize,
    pub(super) src_z: usize,
    pub(super) src_lod: usize,
    pub(super) src_type: c_uint,
    pub(super) src_host: u64,
    pub(super) src_device: Address,
    pub(super) src_array: Handle,
    pub(super) src_context: Handle,
    pub(super) src_pitch: usize,
    pub(super) src_height: usize,
    pub(super) dst_x: usize,
    pub(super) dst_y: usize,
    pub(super) dst_z: usize,
    pub(super) dst_lod: usize,
    pub(super) dst_type: c_uint,
    pub(super) dst_host: u64,
    pub(super) dst_device: Address,
    pub(super) dst_array: Handle,
    pub(super) dst_context: Handle,
    pub(super) dst_pitch: usize,
    pub(super) dst_height: usize,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SetParams {
    pub(super) address: Address,
    pub(super) pitch: usize,
    pub(super) value: c_uint,
    pub(super) element: c_uint,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct HostParams {
    pub(super) function: usize,
    pub(super) data: usize,
}

/// `CUDA_KERNEL_NODE_PARAMS`, first version.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct KernelParams1 {
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) params: usize,
    pub(super) extra: usize,
}

/// `CUDA_KERNEL_NODE_PARAMS`, second and third version.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct KernelParams2 {
    pub(super) first: KernelParams1,
    pub(super) kernel: Handle,
    pub(super) context: Handle,
}

/// `CUlaunchConfig`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct LaunchConfig {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) stream: Handle,
    pub(super) attributes: usize,
    pub(super) count: c_uint,
}

/// `CUlaunchAttributeValue`: 64 bytes whose meaning depends on the attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct AttributeValue {
    pub(super) words: [u32; 16],
}

impl AttributeValue {
    /// The handle in words `index` and the next.
    pub(super) fn handle(&self, index: usize) -> Handle {
        (self.words[index] as usize) | ((self.words[index + 1] as usize) << 32)
    }
}

/// `CUlaunchAttribute`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LaunchAttribute {
    pub(super) id: c_uint,
    pub(super) pad: c_uint,
    pub(super) value: AttributeValue,
}

/// `CUDA_LAUNCH_PARAMS`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MultiLaunch {
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) stream: Handle,
    pub(super) params: usize,
}

/// `CUmemLocation`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct Location {
    pub(super) kind: c_int,
    pub(super) id: c_int,
}

impl Location {
    /// `CU_MEM_LOCATION_TYPE_DEVICE`
    pub(super) const DEVICE: c_int = 1;
    /// `CU_MEM_LOCATION_TYPE_HOST`
    pub(super) const HOST: c_int = 2;
}

/// `CUmemAccessDesc`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AccessDesc {
    pub(super) location: Location,
    pub(super) flags: c_uint,
}

/// `CUmemAllocationProp`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AllocationProp {
    pub(super) kind: c_uint,
    pub(super) handle_types: c_uint,
    pub(super) location: Location,
    pub(super) metadata: usize,
    pub(super) flags: [u8; 8],
}

/// `CUmemPoolProps`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PoolProps {
    pub(super) kind: c_uint,
    pub(super) handle_types: c_uint,
    pub(super) location: Location,
    pub(super) security: usize,
    pub(super) max_size: usize,
    pub(super) usage: u16,
    pub(super) reserved: [u8; 54],
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AllocParams {
    pub(super) pool: PoolProps,
    pub(super) access: usize,
    pub(super) access_count: usize,
    pub(super) bytes: usize,
    pub(super) address: Address,
}

/// `CUDA_CONDITIONAL_NODE_PARAMS`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ConditionalParams {
    pub(super) handle: u64,
    pub(super) kind: c_uint,
    pub(super) size: c_uint,
    pub(super) graphs: usize,
    pub(super) context: Handle,
}

/// `CUstreamBatchMemOpParams`: 48 bytes, with the place of each field the same in every form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MemOp {
    pub(super) operation: c_uint,
    /// The flags of a barrier or a flush; padding in the others.
    pub(super) short_flags: c_uint,
    pub(super) address: Address,
    pub(super) value: u64,
    pub(super) flags: c_uint,
    pub(super) pad: c_uint,
    pub(super) alias: Address,
    pub(super) rest: u64,
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MemOpParams {
    pub(super) context: Handle,
    pub(super) count: c_uint,
    pub(super) operations: usize,
    pub(super) flags: c_uint,
}

/// `CUgraphEdgeData`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EdgeData {
    pub(super) from_port: u8,
    pub(super) to_port: u8,
    pub(super) kind: u8,
    pub(super) reserved: [u8; 5],
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct InstantiateParams {
    pub(super) flags: u64,
    pub(super) upload_stream: Handle,
    pub(super) error_node: Handle,
    pub(super) result: c_uint,
}

/// `CUgraphExecUpdateResultInfo`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct UpdateInfo {
    pub(super) result: c_uint,
    pub(super) error_node: Handle,
    pub(super) error_from: Handle,
}

/// `CUdevprop`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeviceProperties {
    pub(super) threads: c_int,
    pub(super) block: [c_int; 3],
    pub(super) grid: [c_int; 3],
    pub(super) shared: c_int,
    pub(super) constant: c_int,
    pub(super) warp: c_int,
    pub(super) pitch: c_int,
    pub(super) registers: c_int,
    pub(super) clock: c_int,
    pub(super) texture_alignment: c_int,
}

/// `CUuuid`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Uuid {
    pub(super) bytes: [c_char; 16],
}

/// `CUctxCreateParams`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ContextParams {
    pub(super) affinity: usize,
    pub(super) affinity_count: c_int,
    pub(super) graphics: usize,
}

/// `CUexecAffinityParam`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Affinity {
    pub(super) kind: c_uint,
    pub(super) cores: c_uint,
}

/// `CUmemcpyAttributes`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CopyAttributes {
    pub(super) order: c_uint,
    pub(super) source: Location,
    pub(super) destination: Location,
    pub(super) flags: c_uint,
}

/// A side of `CUDA_MEMCPY3D_BATCH_OP`: `CUmemcpy3DOperand`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CopyOperand {
    pub(super) kind: c_uint,
    pub(super) pointer: u64,
    pub(super) row: usize,
    pub(super) height: usize,
    pub(super) location: Location,
}

/// `CUDA_MEMCPY3D_BATCH_OP`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CopyBatch3d {
    pub(super) source: CopyOperand,
    pub(super) destination: CopyOperand,
    pub(super) extent: [usize; 3],
    pub(super) order: c_uint,
    pub(super) flags: c_uint,
}

/// `CUtensorMap`
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct TensorMapBytes {
    pub(super) bytes: [u8; 128],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_interface() {
        assert_eq!(size_of::<Copy2d>(), 128);
        assert_eq!(size_of::<Copy3d>(), 200);
        assert_eq!(size_of::<SetParams>(), 40);
        assert_eq!(size_of::<KernelParams1>(), 56);
        assert_eq!(size_of::<KernelParams2>(), 72);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(size_of::<AllocationProp>(), 32);
        assert_eq!(size_of::<PoolProps>(), 88);
        assert_eq!(size_of::<MemOp>(), 48);
        assert_eq!(size_of::<EdgeData>(), 8);
        assert_eq!(size_of::<CopyOperand>(), 40);
        assert_eq!(size_of::<TensorMapBytes>(), 128);
    }
}
