//! Modules that are loaded, and their kernels.

use std::sync::Arc;
use std::sync::OnceLock;

use crate::base::Result;
use crate::simulator::code;
use crate::simulator::launch::Occupancy;
use crate::simulator::launch::occupancy::occupancy;
use crate::simulator::memory::AddressSpace;
use crate::simulator::warp::engine::Touched;
use crate::simulator::warp::engine::touched;
use crate::target::GpuSpec;

/// A parameter of a kernel.
pub type ParamInfo = code::Parameter;

/// A kernel.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<ParamInfo>,
    /// Bytes of all parameters.
    pub param_bytes: u32,
    /// Shared memory of its own.
    pub static_shared: u32,
    /// Local memory of a thread.
    pub local_bytes: u32,
    /// Registers of a thread: the most PTX registers alive at once, a 64-bit one counted twice,
    /// and a few for addresses; at most what `.maxnreg` allows.
    pub registers: u32,
    /// Constant memory of the module.
    pub const_bytes: u64,
    /// Most threads of a block.
    pub max_threads: u32,
    /// The block it must be launched with.
    pub required_block: Option<[u32; 3]>,
    /// The cluster it must be launched with.
    pub cluster: Option<[u32; 3]>,
    /// Most blocks of a cluster.
    pub max_cluster_rank: Option<u32>,
    /// Its number in the module.
    pub(crate) number: usize,
}

/// PTX made ready for one device.
pub struct LoadedModule {
    pub(crate) code: code::Module,
    pub(crate) spec: GpuSpec,
    pub(crate) space: Arc<AddressSpace>,
    entries: Vec<Entry>,
    touched: OnceLock<Vec<Touched>>,
}

impl LoadedModule {
    /// Reads and decodes PTX; its variables are in the space from then on, until the module is
    /// dropped.
    ///
    /// # Errors
    /// When the text is not PTX, or uses an instruction that is not known.
    pub fn load(ptx: &str, spec: &GpuSpec, device: u32, space: &Arc<AddressSpace>) -> Result<Self> {
        let code = code::Module::load(ptx, device, space)?;
        let constants = code.variables.values();
        let constants = constants.filter(|v| !v.kind().is_writable());
        let const_bytes = constants.map(|v| v.length()).sum();
        let mut entries = Vec::new();
        for (number, function) in code.functions.iter().enumerate() {
            if !function.is_entry || function.end == function.start {
                continue;
            }
            let product = |v: [u32; 3]| v.iter().fold(1u32, |a, b| a.saturating_mul(*b));
            let most = spec.threads_per_block;
            let max_threads = match (function.required_threads, function.max_threads) {
                (Some(v), _) | (None, Some(v)) => product(v).min(most),
                (None, None) => most,
            };
            let registers =
                (function.pressure + 6).clamp(16, function.max_registers.unwrap_or(255).max(16));
            entries.push(Entry {
                name: function.name.clone(),
                params: function.params.clone(),
                param_bytes: function.param_bytes,
                static_shared: function.static_shared,
                local_bytes: function.local,
                registers,
                const_bytes,
                max_threads,
                required_block: function.required_threads,
                cluster: function.cluster,
                max_cluster_rank: function.max_cluster_rank,
                number,
            });
        }
        Ok(Self {
            code,
            spec: spec.clone(),
            space: Arc::clone(space),
            entries,
            touched: OnceLock::new(),
        })
    }
    /// Registers of every instruction, as far as products must be watched.
    pub(crate) fn touched(&self) -> &[Touched] {
        self.touched.get_or_init(|| touched(&self.code.code))
    }
    /// The kernel of a name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }
    /// All kernels, in the order of the text.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
    /// Address and bytes of a `.global` or `.const` variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let allocation = self.code.variables.get(name)?;
        Some((allocation.base(), allocation.length()))
    }
    /// Names of all `.global` and `.const` variables, in order of the names.
    pub fn globals(&self) -> impl Iterator<Item = &str> {
        self.code.variables.keys().map(String::as_str)
    }
    /// `.version` of the text.
    pub fn version(&self) -> (u32, u32) {
        self.code.version
    }
    /// The number of the text's `.target`: 90 for `sm_90a`.
    pub fn sm(&self) -> u32 {
        self.code.sm
    }
    /// The device it was loaded for.
    pub fn spec(&self) -> &GpuSpec {
        &self.spec
    }
    /// How many blocks of `threads` threads with so much dynamic shared memory fit a
    /// multiprocessor.
    pub fn occupancy(&self, entry: &Entry, threads: u32, dynamic_shared: u32) -> Occupancy {
        let shared = u64::from(entry.static_shared) + u64::from(dynamic_shared);
        occupancy(&self.spec, threads, entry.registers, shared)
    }
}
