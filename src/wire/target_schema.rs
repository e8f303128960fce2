//! The fields of the messages that describe machines, for their text form.

use crate::wire::text_proto::Kind;
use crate::wire::text_proto::Schema;

/// `xla.cpu.TargetMachineOptionsProto`
pub(super) static TARGET_MACHINE_OPTIONS: Schema = Schema {
    name: "xla.cpu.TargetMachineOptionsProto",
    fields: &[
        ("triple", 1, Kind::String),
        ("cpu", 2, Kind::String),
        ("features", 3, Kind::String),
    ],
};

/// `xla_aot.CpuTargetProto`
pub(super) static CPU_TARGET: Schema = Schema {
    name: "xla_aot.CpuTargetProto",
    fields: &[
        ("machine", 1, Kind::Message(&TARGET_MACHINE_OPTIONS)),
        ("vector_bytes", 2, Kind::Int32),
        ("vector_registers", 3, Kind::Int32),
        ("l1_data_bytes", 4, Kind::Int64),
        ("l2_bytes", 5, Kind::Int64),
    ],
};

/// `stream_executor.GpuTargetConfigProto`
pub(super) static GPU_TARGET_CONFIG: Schema = Schema {
    name: "stream_executor.GpuTargetConfigProto",
    fields: &[
        ("gpu_device_info", 1, Kind::Message(&GPU_DEVICE_INFO)),
        ("platform_name", 4, Kind::String),
        ("dnn_version_info", 5, Kind::Message(&VERSION)),
        ("autotune_results", 6, Kind::Ignored),
        ("device_description_str", 7, Kind::String),
        ("runtime_version", 8, Kind::Message(&VERSION)),
    ],
};

/// `stream_executor.DnnVersionInfoProto` and `RuntimeVersionProto`
static VERSION: Schema = Schema {
    name: "stream_executor.DnnVersionInfoProto",
    fields: &[
        ("major", 1, Kind::Int32),
        ("minor", 2, Kind::Int32),
        ("patch", 3, Kind::Int32),
    ],
};

static CUDA_COMPUTE_CAPABILITY: Schema = Schema {
    name: "stream_executor.CudaComputeCapabilityProto",
    fields: &[
        ("major", 1, Kind::Int32),
        ("minor", 2, Kind::Int32),
        (
            "feature_extension",
            3,
            Kind::Enum(&[
                ("UNSPECIFIED", 0),
                ("NONE", 1),
                ("ACCELERATED_FEATURES", 2),
                ("FAMILY_COMPATIBLE_FEATURES", 3),
            ]),
        ),
    ],
};

static ROCM_COMPUTE_CAPABILITY: Schema = Schema {
    name: "stream_executor.RocmComputeCapabilityProto",
    fields: &[("gcn_arch_name", 1, Kind::String)],
};

static RATE_INFO: Schema = Schema {
    name: "stream_executor.ExecutionUnitDescriptionProto.RateInfoProto",
    fields: &[
        ("clock_rate_ghz", 1, Kind::Float),
        ("units_per_core", 2, Kind::Int32),
        ("ops_per_clock", 3, Kind::Int32),
    ],
};

static RATE_INFO_ENTRY: Schema = Schema {
    name: "stream_executor.ExecutionUnitDescriptionProto.RateInfosEntry",
    fields: &[
        ("key", 1, Kind::Int32),
        ("value", 2, Kind::Message(&RATE_INFO)),
    ],
};

static EXECUTION_UNIT: Schema = Schema {
    name: "stream_executor.ExecutionUnitDescriptionProto",
    fields: &[("rate_infos", 1, Kind::Repeated(&RATE_INFO_ENTRY))],
};

static INTERCONNECT: Schema = Schema {
    name: "stream_executor.DeviceInterconnectInfoProto",
    fields: &[
        ("active_links", 1, Kind::Int32),
        ("cluster_uuid", 2, Kind::String),
        ("clique_id", 3, Kind::String),
    ],
};

/// `stream_executor.GpuDeviceInfoProto`
static GPU_DEVICE_INFO: Schema = Schema {
    name: "stream_executor.GpuDeviceInfoProto",
    fields: &[
        ("threads_per_block_limit", 1, Kind::Int32),
        ("threads_per_warp", 2, Kind::Int32),
        ("shared_memory_per_block", 3, Kind::Int32),
        ("shared_memory_per_core", 4, Kind::Int32),
        ("threads_per_core_limit", 5, Kind::Int32),
        ("core_count", 6, Kind::Int32),
        ("fpus_per_core", 7, Kind::Int64),
        ("block_dim_limit_x", 8, Kind::Int64),
        ("block_dim_limit_y", 9, Kind::Int64),
        ("block_dim_limit_z", 10, Kind::Int64),
        ("memory_bandwidth", 11, Kind::Int64),
        ("l2_cache_size", 12, Kind::Int64),
        ("clock_rate_ghz", 13, Kind::Float),
        ("device_memory_size", 14, Kind::Int64),
        ("shared_memory_per_block_optin", 15, Kind::Int32),
        (
            "cuda_compute_capability",
            16,
            Kind::Message(&CUDA_COMPUTE_CAPABILITY),
        ),
        (
            "rocm_compute_capability",
            17,
            Kind::Message(&ROCM_COMPUTE_CAPABILITY),
        ),
        ("registers_per_core_limit", 18, Kind::Int64),
        ("registers_per_block_limit", 19, Kind::Int64),
        (
            "scalar_unit_description",
            20,
            Kind::Message(&EXECUTION_UNIT),
        ),
        (
            "matrix_unit_description",
            21,
            Kind::Message(&EXECUTION_UNIT),
        ),
        ("oneapi_compute_capability", 22, Kind::Ignored),
        ("driver_version", 23, Kind::String),
        ("kernel_mode_driver_version", 24, Kind::String),
        ("runtime_version", 25, Kind::String),
        ("compile_time_toolkit_version", 26, Kind::String),
        ("dnn_version", 27, Kind::String),
        ("cub_version", 28, Kind::String),
        ("device_interconnect_info", 29, Kind::Message(&INTERCONNECT)),
        ("device_vendor", 30, Kind::String),
        ("platform_version", 31, Kind::String),
        ("pci_bus_id", 32, Kind::String),
        ("name", 34, Kind::String),
        ("model_str", 35, Kind::String),
        ("numa_node", 36, Kind::Int32),
        ("thread_dim_limit_x", 37, Kind::Int64),
        ("thread_dim_limit_y", 38, Kind::Int64),
        ("thread_dim_limit_z", 39, Kind::Int64),
        ("device_address_bits", 40, Kind::Int64),
        ("pcie_bandwidth", 41, Kind::Int64),
        ("ecc_enabled", 42, Kind::Bool),
        ("mem_clock_ghz", 43, Kind::Float),
        ("reserved_shared_memory_per_block", 44, Kind::Int64),
        ("max_blocks_per_multiprocessor", 45, Kind::Int64),
        ("collective_memory_granularity", 46, Kind::Int64),
    ],
};
