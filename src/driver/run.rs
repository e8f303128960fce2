//! Running a bundle: read, check, compare with the host, load, bind, run.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::Severity;
use crate::bundle;
use crate::bundle::Bundle;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFile;
use crate::driver::host;
use crate::driver::targets;
use crate::executable::TargetNeeds;
use crate::literal::ArrayLiteral;
pub use crate::runtime::Bound;
pub use crate::runtime::DeviceChoice;
pub use crate::runtime::LoadOptions;
use crate::runtime::Loaded;
pub use crate::runtime::binding::Watch;
use crate::runtime::loaded;
use crate::target::HostInfo;
use crate::wire;

/// A bundle, loaded.
pub struct Session {
    loaded: Loaded,
}

impl Session {
    /// Reads and loads a bundle; nothing of it runs before it has passed every check.
    ///
    /// # Errors
    /// `XA7001` to `XA7003` for what is no sound bundle, `XA7004` when it needs more than this host
    /// has, `XA8003` when its code cannot be loaded.
    pub fn open(bytes: &[u8], options: &LoadOptions) -> Result<Self> {
        Self::of(&bundle::read(bytes)?, options)
    }

    /// Loads a bundle that has been read.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn of(bundle: &Bundle, options: &LoadOptions) -> Result<Self> {
        let options = &named(bundle, options)?;
        let reasons = host::check(bundle, &host_of(bundle, options)?).into_iter();
        let mut reasons = reasons.filter(|r| r.severity != Severity::Warning);
        if let Some(first) = reasons.next() {
            let first: Box<Diagnostic> = Box::new(first);
            return Err(reasons.fold(first, |first, other| first.note(other.message)));
        }
        let loaded = Loaded::new(&bundle.executable, options)?;
        Ok(Self { loaded })
    }

    /// Threads that work on a run.
    pub fn threads(&self) -> usize {
        self.loaded.threads()
    }

    /// Gives the program memory and the arrays of these files.
    ///
    /// # Errors
    /// `XA8001` and `XA8002` when the files do not fit the program.
    pub fn bind(&self, inputs: &[ArrayFile]) -> Result<Bound<'_>> {
        let program = &self.loaded.signature().program;
        let shapes = arrays::array_leaves(&program.parameters);
        self.loaded.bind(&arrays::read(inputs, "in", &shapes)?)
    }

    /// Gives the program memory and the array leaves of all parameters.
    ///
    /// # Errors
    /// `XA8001` when they do not fit.
    pub fn bind_leaves(&self, inputs: &[ArrayLiteral]) -> Result<Bound<'_>> {
        self.loaded.bind(inputs)
    }

    /// Runs once on the array leaves of all parameters; gives the array leaves of the result.
    ///
    /// # Errors
    /// `XA8001` when they do not fit, `XA8004` when the program fails.
    pub fn run_leaves(&self, inputs: &[ArrayLiteral]) -> Result<Vec<ArrayLiteral>> {
        let mut bound = self.bind_leaves(inputs)?;
        bound.execute()?;
        bound.outputs()
    }

    /// Reads this program's inputs.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_inputs(&self, files: &[ArrayFile]) -> Result<Vec<ArrayLiteral>> {
        let program = &self.loaded.signature().program;
        arrays::read(files, "in", &arrays::array_leaves(&program.parameters))
    }

    /// Reads expected results of this program.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_expected(&self, file: &ArrayFile) -> Result<Vec<ArrayLiteral>> {
        let program = &self.loaded.signature().program;
        let shapes = arrays::array_leaves([&program.result]);
        arrays::read(std::slice::from_ref(file), "out", &shapes)
    }
}

/// What there is to run a bundle on.
///
/// # Errors
/// `XA8006` when there is no simulated device of the name that the options have.
pub fn host_of(bundle: &Bundle, options: &LoadOptions) -> Result<HostInfo> {
    let options = named(bundle, options)?;
    host::probe_for(&options.device, options.counts)
}

/// The options with the simulated device named: without a name, the first target that ships and
/// has the capability the bundle is for.
fn named(bundle: &Bundle, options: &LoadOptions) -> Result<LoadOptions> {
    loaded::check_device(&bundle.executable.needs, &options.device)?;
    let mut options = options.clone();
    if let (DeviceChoice::Simulated(name @ None), TargetNeeds::Cuda { major, minor, .. }) =
        (&mut options.device, &bundle.executable.needs)
    {
        *name = targets::of_capability(*major, *minor)?;
    }
    Ok(options)
}

/// Whether there can be such a device.
///
/// # Errors
/// `XA6004` when a simulated one is to be a GPU of a name that is not known.
pub fn check_device(device: &DeviceChoice) -> Result<()> {
    match device {
        DeviceChoice::Simulated(Some(name)) => wire::target::gpu(name, None).map(|_| ()),
        DeviceChoice::Simulated(None)
        | DeviceChoice::Fitting
        | DeviceChoice::Cpu
        | DeviceChoice::Cuda(_) => Ok(()),
    }
}
