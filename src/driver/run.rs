//! Running a bundle: read, check, compare with the host, load, bind, run.

use std::sync::Arc;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::bundle::Bundle;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFile;
use crate::driver::arrays::Partition;
use crate::driver::bundles;
use crate::driver::devices;
use crate::driver::devices::Topology;
use crate::driver::host;
use crate::driver::targets;
use crate::executable::TargetNeeds;
use crate::literal::ArrayLiteral;
pub use crate::runtime::Bound;
pub use crate::runtime::DeviceChoice;
pub use crate::runtime::LoadOptions;
use crate::runtime::Loaded;
pub use crate::runtime::binding::Watch;
use crate::runtime::calling::Callable;
pub use crate::runtime::custom_call::CustomCall;
pub use crate::runtime::custom_call::CustomCalls;
use crate::runtime::loaded;
use crate::target::HostGpu;
use crate::target::HostInfo;

/// A bundle, loaded.
pub struct Session {
    pub(super) callable: Callable,
    loaded: Arc<Loaded>,
}

impl Session {
    /// Reads and loads a bundle; nothing of it runs before it has passed every check.
    ///
    /// # Errors
    /// `XA7001` to `XA7003` for what is no sound bundle, `XA7004` when it needs more than this host
    /// has, `XA8003` when its code cannot be loaded.
    pub fn open(bytes: &[u8], options: &LoadOptions) -> Result<Self> {
        Self::of(&bundles::read(bytes)?, options)
    }

    /// Loads a bundle that has been read.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn of(bundle: &Bundle, options: &LoadOptions) -> Result<Self> {
        let (options, findings) = judge(bundle, options)?;
        let mut findings = findings.into_iter();
        if let Some(first) = findings.next() {
            let first: Box<Diagnostic> = Box::new(first);
            return Err(findings.fold(first, |first, other| first.note(other.message)));
        }
        let loaded = Arc::new(Loaded::new(&bundle.executable, &options)?);
        Ok(Self {
            callable: Callable::new(Arc::clone(&loaded)),
            loaded,
        })
    }

    /// Threads that work on a run.
    pub fn threads(&self) -> usize {
        self.loaded.threads()
    }

    /// The devices that run it.
    pub fn topology(&self) -> Topology {
        self.loaded.topology()
    }

    /// Whether the program runs on as many devices as the caller asks for.
    ///
    /// # Errors
    /// `XA8001` when it does not.
    pub fn check_devices(&self, replicas: Option<u32>, partitions: Option<u32>) -> Result<()> {
        let own = self.topology();
        devices::check(own, devices::chosen(own, replicas, partitions)?)
    }

    /// Gives each device memory and the array leaves of all parameters.
    ///
    /// # Errors
    /// `XA8001` when they do not fit.
    pub fn bind_each(&self, inputs: Vec<Vec<ArrayLiteral>>) -> Result<Bound<'_>> {
        self.loaded.bind(inputs)
    }

    /// Runs once on the array leaves of all parameters, the same for all devices; gives the array
    /// leaves of the result of each.
    ///
    /// # Errors
    /// `XA8001` when they do not fit, `XA8004` when the program fails.
    pub fn run_alike(&self, inputs: Vec<ArrayLiteral>) -> Result<Vec<Vec<ArrayLiteral>>> {
        let mut bound = self.bind_each(vec![inputs; self.topology().devices()])?;
        bound.execute()?;
        bound.outputs()
    }

    /// Reads this program's inputs.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_inputs(
        &self,
        files: &[ArrayFile],
        partition: Partition,
    ) -> Result<Vec<ArrayLiteral>> {
        let program = &self.loaded.signature().program;
        let leaves = arrays::inputs(program);
        arrays::read(files, "in", &leaves, partition)
    }

    /// Reads expected results of this program.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_expected(&self, file: &ArrayFile) -> Result<Vec<ArrayLiteral>> {
        let program = &self.loaded.signature().program;
        let wanted = arrays::outputs(program);
        let files = std::slice::from_ref(file);
        arrays::read(files, "out", &wanted, Partition::ONLY)
    }
}

/// The options with the device found, and every reason why the bundle cannot run there. Whoever says
/// whether a bundle runs asks here.
///
/// A program for GPUs goes to the first one that it fits when nobody chose. Without a name, a
/// simulated one is of the target that has the capability the bundle is for.
///
/// # Errors
/// `XA8006` when there is no such device, or it is of another kind than the program's.
pub fn judge(bundle: &Bundle, options: &LoadOptions) -> Result<(LoadOptions, Vec<Diagnostic>)> {
    let needs = &bundle.executable.needs;
    loaded::check_device(needs, &options.device)?;
    let mut options = options.clone();
    let TargetNeeds::Cuda { major, minor, .. } = needs else {
        return Ok((options, host::check(bundle, &host::probe_cpu())));
    };
    if let DeviceChoice::Simulated(name) = &mut options.device {
        *name = match name.as_deref() {
            Some(name) => Some(targets::gpu_named(name)?),
            None => targets::of_capability(*major, *minor)?,
        };
        let devices = bundle.executable.topology()?.devices();
        let host = host::simulated(name.clone(), devices, options.counts)?;
        return Ok((options, host::check(bundle, &host)));
    }
    let host = host::probe();
    let alone = |gpu: &HostGpu| HostInfo {
        gpus: vec![gpu.clone()],
        ..host.clone()
    };
    let fits = |gpu: &HostGpu| host::check(bundle, &alone(gpu)).is_empty();
    if options.device == DeviceChoice::Fitting {
        let first = host.gpus.iter().position(fits);
        options.device = DeviceChoice::Cuda(first.unwrap_or(0) as u32);
        let findings = match first {
            Some(_) => Vec::new(),
            None => host::check(bundle, &host),
        };
        return Ok((options, findings));
    }
    let DeviceChoice::Cuda(ordinal) = options.device else {
        return Ok((options, host::check(bundle, &host)));
    };
    let findings = match host.gpus.get(ordinal as usize) {
        Some(gpu) => host::check(bundle, &alone(gpu)),
        None if host.gpus.is_empty() => host::check(bundle, &host),
        None => return Err(loaded::no_such_device(ordinal, host.gpus.len())),
    };
    Ok((options, findings))
}

/// Whether there can be such a device.
///
/// # Errors
/// `XA6004` when a simulated one is to be a GPU of a name that is not known.
pub fn check_device(device: &DeviceChoice) -> Result<()> {
    match device {
        DeviceChoice::Simulated(Some(name)) => targets::gpu_named(name).map(|_| ()),
        DeviceChoice::Simulated(None)
        | DeviceChoice::Fitting
        | DeviceChoice::Cpu
        | DeviceChoice::Cuda(_) => Ok(()),
    }
}
