//! Kernels as text, run and compared with arithmetic.

mod basics;
mod checks;
mod control;
mod engines;
mod races;
mod foreign;
mod fuzz;
mod matrices;
mod products;
mod spaces;
mod stack;
mod tensor5;
mod tensors;
mod transfers;

use std::sync::Arc;

use super::*;
use crate::base::ByteSize;
use crate::simulator::memory::AddressSpace;
use crate::simulator::memory::Allocation;
use crate::simulator::memory::Kind;
use crate::simulator::memory::raw;
use crate::target::CapabilitySuffix;
use crate::target::ComputeCapability;
use crate::target::GpuSpec;

fn spec() -> GpuSpec {
    GpuSpec {
        name: "test".to_owned(),
        platform_version: String::new(),
        capability: ComputeCapability {
            major: 9,
            minor: 0,
            suffix: CapabilitySuffix::Accelerated,
        },
        ptx_version: 86,
        cores: 132,
        fpus_per_core: 128,
        threads_per_core: 2048,
        threads_per_block: 1024,
        shared_per_block: ByteSize(49_152),
        shared_per_block_optin: ByteSize(232_448),
        l2_bytes: ByteSize(50 << 20),
        memory_bytes: ByteSize(1 << 30),
        bandwidth: 3.35e12,
        clock_ghz: 1.98,
        config_proto: Vec::new(),
        host: Default::default(),
    }
}

/// A device with one module.
struct Bench {
    space: Arc<AddressSpace>,
    module: LoadedModule,
    options: Options,
}

impl Bench {
    /// Loads PTX given without its header.
    fn new(body: &str) -> Self {
        Self::text(&format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n{body}"
        ))
    }
    /// Loads PTX.
    fn text(text: &str) -> Self {
        let space = Arc::new(AddressSpace::new());
        let module = match LoadedModule::load(text, &spec(), 0, &space) {
            Ok(module) => module,
            Err(error) => panic!("{error}"),
        };
        let options = Options {
            stats: true,
            threads: 1,
            ..Options::default()
        };
        Self {
            space,
            module,
            options,
        }
    }
    /// A kernel `k` with one pointer parameter in `%out`, whose thread number is in `%i` and whose
    /// result pointer for it, words of 32 bits, in `%at`.
    fn kernel(declarations: &str, body: &str) -> Self {
        Self::new(&format!(
            ".visible .entry k(.param .u64 out) {{
            .reg .pred %p<32>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .f32 %f<32>; .reg .f64 %fd<32>;
            .reg .b32 %i, %nt, %ct; .reg .b64 %out, %at, %off;
            {declarations}
            ld.param.u64 %out, [out];
            mov.u32 %i, %tid.x; mov.u32 %nt, %ntid.x; mov.u32 %ct, %ctaid.x;
            mad.lo.s32 %i, %ct, %nt, %i;
            mul.wide.u32 %off, %i, 4;
            add.s64 %at, %out, %off;
            {body}
            ret; }}"
        ))
    }
    fn buffer(&self, bytes: u64) -> Arc<Allocation> {
        self.space
            .allocate(bytes, 256, Kind::Device(0), format!("buffer of {bytes}"))
            .unwrap()
    }
    fn words(&self, data: &[u32]) -> Arc<Allocation> {
        let buffer = self.buffer(data.len() as u64 * 4);
        let bytes: Vec<u8> = data.iter().flat_map(|w| w.to_le_bytes()).collect();
        raw::write(buffer.base(), &bytes);
        self.space.mark_written(buffer.base(), buffer.length());
        buffer
    }
    fn launch(&self, grid: u32, block: u32, params: &[u64]) -> Outcome {
        self.launch_with(&Launch {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: [1, 1, 1],
            dynamic_shared: 0,
            params: params.iter().flat_map(|p| p.to_le_bytes()).collect(),
            cooperative: false,
        })
    }
    fn launch_with(&self, shape: &Launch) -> Outcome {
        let entry = &self.module.entries()[0];
        launch(&self.module, entry, shape, &self.options)
    }
    /// Runs `grid` by `block` threads that each write one word, and gives the words.
    fn run(&self, grid: u32, block: u32) -> Vec<u32> {
        let out = self.buffer(u64::from(grid * block) * 4);
        let outcome = self.launch(grid, block, &[out.base()]);
        clean(&outcome);
        read(&out)
    }
}

fn read(buffer: &Allocation) -> Vec<u32> {
    let mut bytes = vec![0; buffer.length() as usize];
    raw::read(buffer.base(), &mut bytes);
    bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

fn clean(outcome: &Outcome) {
    if let Some(fault) = &outcome.fault {
        panic!("{fault}");
    }
    if let Some(report) = outcome.reports.first() {
        panic!("{report}");
    }
}

fn kinds(outcome: &Outcome) -> Vec<ReportKind> {
    let mut kinds: Vec<ReportKind> = outcome.reports.iter().map(|r| r.kind).collect();
    kinds.dedup();
    kinds
}
