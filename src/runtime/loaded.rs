//! From an executable to a program that can be called, whatever its platform.
//!
//! Nothing is loaded before the executable has passed its check.
#![allow(unsafe_code, reason = "runs on memory of callers")]

use std::str::FromStr;
#[cfg(feature = "cpu")]
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::collective::Communicator;
use crate::collective::Topology;
use crate::executable::AllocId;
use crate::executable::Allocation;
use crate::executable::Executable;
use crate::executable::Signature;
use crate::executable::TargetNeeds;
use crate::executable::check;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::runtime::binding::Unwatched;
use crate::runtime::binding::Watch;
use crate::runtime::calling::Argument;
use crate::runtime::calling::Leaf;
use crate::runtime::collective::Member;
#[cfg(feature = "cpu")]
use crate::runtime::cpu;
#[cfg(feature = "cuda")]
use crate::runtime::cuda;
use crate::runtime::custom_call::CustomCalls;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::Shape;

/// Which device runs a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// What the program was compiled for: this machine's processor, or the first CUDA device.
    #[default]
    Fitting,
    /// This machine's processor.
    Cpu,
    /// A device of the CUDA driver, by its number.
    Cuda(u32),
    /// A simulated CUDA device, by the name of a target.
    Simulated(Option<String>),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (kind, rest) = text
            .split_once(':')
            .map_or((text, None), |(k, r)| (k, Some(r)));
        let number = |rest: Option<&str>| match rest {
            None => Ok(0),
            Some(number) => number
                .parse()
                .map_err(|_| format!("`{number}` is not the number of a device")),
        };
        match (kind, rest) {
            ("fitting", None) => Ok(Self::Fitting),
            ("cpu", None) => Ok(Self::Cpu),
            ("cuda", rest) => number(rest).map(Self::Cuda),
            ("sim", target) => Ok(Self::Simulated(target.map(str::to_owned))),
            _ => Err(format!(
                "no such device `{text}`; there are `cpu`, `cuda:N` and `sim:TARGET`"
            )),
        }
    }
}

/// How a program is loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Where it runs.
    pub device: DeviceChoice,
    /// Threads to work with on a CPU, the caller's among them; by default all the process may use.
    pub threads: Option<usize>,
    /// Whether a simulated device counts what it executes.
    pub counts: bool,
    /// Functions that programs may call by name.
    pub custom_calls: CustomCalls,
}

/// A loaded program.
pub struct Loaded {
    topology: Topology,
    code: Code,
}

/// The program's code, where it runs.
enum Code {
    /// On this machine's processor, once for all devices.
    #[cfg(feature = "cpu")]
    Cpu(Box<cpu::program::Program>),
    /// On CUDA devices, once on each.
    #[cfg(feature = "cuda")]
    Cuda(Vec<cuda::program::Program>),
}

/// A program with all its memory on all its devices: ready to run any number of times.
pub struct Bound<'p> {
    topology: Topology,
    result: &'p Shape,
    parts: Vec<Mutex<Part<'p>>>,
}

/// A program with its memory on one device.
enum Part<'p> {
    /// On this machine's processor.
    #[cfg(feature = "cpu")]
    Cpu(cpu::program::Bound<'p>),
    /// On a CUDA device.
    #[cfg(feature = "cuda")]
    Cuda(cuda::program::Bound<'p>),
}

impl Loaded {
    /// Checks and loads an executable.
    ///
    /// # Errors
    /// The first finding of the check (`XA7002`); `XA8003` when the code cannot be loaded; `XA8006`
    /// when there is no such device, or it is of another kind than the program's.
    pub fn new(executable: &Executable, options: &LoadOptions) -> Result<Self> {
        let mut findings = check::check(executable).into_iter();
        if let Some(first) = findings.next() {
            let mut first = Box::new(first);
            let rest = findings.len();
            if rest > 0 {
                first = first.note(format!("{rest} more findings; `verify` lists them"));
            }
            return Err(first);
        }
        check_device(&executable.needs, &options.device)?;
        let topology = executable.topology()?;
        let code = match (&executable.needs, &options.device) {
            (TargetNeeds::Cpu { .. }, _) => Code::load_cpu(executable, options),
            (TargetNeeds::Cuda { .. }, DeviceChoice::Simulated(target)) => {
                Code::load_simulated(executable, target.clone(), options)
            }
            (TargetNeeds::Cuda { .. }, DeviceChoice::Cuda(ordinal)) => {
                Code::load_cuda(executable, *ordinal, options)
            }
            (TargetNeeds::Cuda { .. }, DeviceChoice::Fitting | DeviceChoice::Cpu) => {
                Code::load_cuda(executable, 0, options)
            }
        };
        Ok(Self {
            topology,
            code: code?,
        })
    }

    /// The devices that run it.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// How it is called.
    pub fn signature(&self) -> &Signature {
        match &self.code {
            #[cfg(feature = "cpu")]
            Code::Cpu(program) => program.signature(),
            #[cfg(feature = "cuda")]
            Code::Cuda(programs) => programs[0].signature(),
        }
    }

    /// Its memory plan.
    pub fn allocs(&self) -> &Arena<AllocId, Allocation> {
        match &self.code {
            #[cfg(feature = "cpu")]
            Code::Cpu(program) => program.allocs(),
            #[cfg(feature = "cuda")]
            Code::Cuda(programs) => programs[0].allocs(),
        }
    }

    /// Threads of this machine that work on a run.
    pub fn threads(&self) -> usize {
        match &self.code {
            #[cfg(feature = "cpu")]
            Code::Cpu(program) => program.threads(),
            #[cfg(feature = "cuda")]
            Code::Cuda(programs) => programs.len(),
        }
    }

    /// Runs once, with the same inputs on all devices: the parameters, or their array leaves in order.
    /// The results are the array leaves of the result in order, of the first device.
    ///
    /// # Errors
    /// `XA8001` when the inputs do not fit, `XA8004` when the program fails.
    pub fn run(&self, inputs: &[Literal]) -> Result<Vec<ArrayLiteral>> {
        let mut bound = self.bind(vec![leaves(inputs); self.topology.devices()])?;
        bound.execute()?;
        Ok(bound.outputs()?.swap_remove(0))
    }

    /// Gives each device memory and inputs, the array leaves of all parameters, to be run many
    /// times. Each input is given up as it is copied.
    ///
    /// # Errors
    /// `XA8001` when the inputs do not fit, `XA8004` without memory.
    pub fn bind(&self, inputs: Vec<Vec<ArrayLiteral>>) -> Result<Bound<'_>> {
        let (got, want) = (inputs.len(), self.topology.devices());
        if got != want {
            let message = format!("inputs for {got} devices, and the program runs on {want}");
            return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
        }
        let parts = inputs.into_iter().enumerate().map(|(device, inputs)| {
            let part = match &self.code {
                #[cfg(feature = "cpu")]
                Code::Cpu(program) => Part::Cpu(program.bind(device, inputs)?),
                #[cfg(feature = "cuda")]
                Code::Cuda(programs) => Part::Cuda(programs[device].bind(device, inputs)?),
            };
            Ok(Mutex::new(part))
        });
        Ok(Bound {
            topology: self.topology,
            result: &self.signature().program.result,
            parts: parts.collect::<Result<_>>()?,
        })
    }
}

impl Loaded {
    /// Gives each device memory and no inputs: [`Bound::run_on`] brings them.
    ///
    /// # Errors
    /// `XA8004` without memory.
    pub fn bind_empty(&self) -> Result<Bound<'_>> {
        let parts = (0..self.topology.devices()).map(|device| {
            let part = match &self.code {
                #[cfg(feature = "cpu")]
                Code::Cpu(program) => Part::Cpu(program.bind_empty(device)?),
                #[cfg(feature = "cuda")]
                Code::Cuda(programs) => Part::Cuda(programs[device].bind_empty(device)?),
            };
            Ok(Mutex::new(part))
        });
        Ok(Bound {
            topology: self.topology,
            result: &self.signature().program.result,
            parts: parts.collect::<Result<_>>()?,
        })
    }
}

impl Code {
    #[cfg(feature = "cpu")]
    fn load_cpu(executable: &Executable, options: &LoadOptions) -> Result<Self> {
        let threads = options.threads.unwrap_or_else(cpu::host::threads);
        let pool = Arc::new(cpu::pool::Pool::new(threads)?);
        let program = cpu::program::Program::load(executable, &options.custom_calls, pool)?;
        Ok(Self::Cpu(Box::new(program)))
    }

    #[cfg(not(feature = "cpu"))]
    fn load_cpu(_: &Executable, _: &LoadOptions) -> Result<Self> {
        Err(Diagnostic::unsupported(
            codes::NO_DEVICE,
            "this program was built without the `cpu` feature and runs no CPU bundles",
        ))
    }

    #[cfg(feature = "cuda")]
    fn load_cuda(executable: &Executable, ordinal: u32, options: &LoadOptions) -> Result<Self> {
        Self::load_on(cuda::Api::driver()?, executable, ordinal, options)
    }

    #[cfg(not(feature = "cuda"))]
    fn load_cuda(_: &Executable, _: u32, _: &LoadOptions) -> Result<Self> {
        Err(Diagnostic::unsupported(
            codes::NO_DEVICE,
            "this program was built without the `cuda` feature and runs no CUDA bundles",
        ))
    }

    #[cfg(feature = "simulator")]
    fn load_simulated(
        executable: &Executable,
        target: Option<String>,
        options: &LoadOptions,
    ) -> Result<Self> {
        let devices = executable.topology()?.devices();
        let api = simulated(target, devices, options.counts)?;
        Self::load_on(api, executable, 0, options)
    }

    #[cfg(not(feature = "simulator"))]
    fn load_simulated(_: &Executable, _: Option<String>, _: &LoadOptions) -> Result<Self> {
        Err(no_simulator())
    }

    /// Loads on the devices from this one on, in turns when there are fewer than the program wants.
    #[cfg(feature = "cuda")]
    fn load_on(
        api: &'static cuda::Api,
        executable: &Executable,
        first: u32,
        options: &LoadOptions,
    ) -> Result<Self> {
        let wanted = executable.topology()?.devices();
        let there = cuda::host::count(api).saturating_sub(first as usize).max(1);
        let mut devices = Vec::new();
        for number in 0..wanted.min(there) {
            devices.push(cuda::Device::open(api, first + number as u32)?);
        }
        let programs = (0..wanted).map(|number| {
            let device = &devices[number % devices.len()];
            cuda::program::Program::load(executable, device, &options.custom_calls)
        });
        Ok(Self::Cuda(programs.collect::<Result<_>>()?))
    }
}

impl Part<'_> {
    /// # Safety
    /// The memory lives and is not written until the next run has ended.
    unsafe fn put(&mut self, leaf: &Leaf, argument: Argument<'_>) -> Result<()> {
        let sizes = argument.sizes.unwrap_or(&leaf.shape.dims);
        match self {
            #[cfg(feature = "cpu")]
            // SAFETY: the caller's promise.
            Self::Cpu(bound) => unsafe { bound.put(leaf, argument.bytes, sizes) },
            #[cfg(feature = "cuda")]
            Self::Cuda(bound) => bound.put(leaf, argument.bytes, sizes),
        }
    }

    /// # Safety
    /// The memory lives, and nothing else uses it, until the next run has ended.
    #[cfg_attr(not(feature = "cpu"), allow(unused_variables, reason = "for CPUs"))]
    unsafe fn place(&mut self, result: usize, memory: &mut [u8]) {
        match self {
            #[cfg(feature = "cpu")]
            // SAFETY: the caller's promise.
            Self::Cpu(bound) => unsafe { bound.place(result, memory) },
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => {}
        }
    }

    fn take(&self, result: usize, shape: &ArrayShape, memory: &mut [u8]) -> Result<Dims> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu(bound) => bound.take(result, shape, memory),
            #[cfg(feature = "cuda")]
            Self::Cuda(bound) => bound.take(result, shape, memory),
        }
    }

    fn execute(&mut self, member: Member<'_>) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu(bound) => bound.execute(member, &mut Unwatched),
            #[cfg(feature = "cuda")]
            Self::Cuda(bound) => bound.execute(member),
        }
    }

    fn execute_watched<W: Watch>(&mut self, member: Member<'_>, watch: &mut W) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu(bound) => bound.execute(member, watch),
            #[cfg(feature = "cuda")]
            Self::Cuda(bound) => bound.execute_watched(member, watch),
        }
    }
}

impl Bound<'_> {
    /// Runs the program once on all devices. Donated parameters hold a result afterwards, which the
    /// next run reads.
    ///
    /// # Errors
    /// `XA8004` when the program fails on a device, or a device waits for one that cannot come.
    pub fn execute(&mut self) -> Result<()> {
        let communicator = Communicator::new(self.topology);
        let parts = &self.parts;
        let run = communicator.run(|device| {
            let member = Member {
                communicator: &communicator,
                device,
            };
            lock(&parts[device]).execute(member)
        });
        run.map(drop)
    }

    /// Runs the program once on memory of a caller's, the arrays of one device after those of another.
    /// Gives the sizes of each result.
    ///
    /// # Errors
    /// As [`Bound::execute`] and [`Bound::outputs`].
    ///
    /// # Safety
    /// No other run is made of what is bound before all memory has been brought again.
    pub(super) unsafe fn run_on(
        &mut self,
        leaves: &[Leaf],
        arguments: &[Argument<'_>],
        results: &mut [&mut [u8]],
    ) -> Result<Vec<Dims>> {
        let outputs = self.result.leaves().into_iter();
        let outputs: Vec<&ArrayShape> = outputs.filter_map(|(_, leaf)| leaf.as_array()).collect();
        for (device, part) in self.parts.iter().enumerate() {
            let mut part = lock(part);
            for (leaf, argument) in leaves.iter().zip(&arguments[device * leaves.len()..]) {
                // SAFETY: the arguments are borrowed until the run below has ended.
                unsafe { part.put(leaf, *argument)? };
            }
            let own = results[device * outputs.len()..].iter_mut();
            for (number, memory) in own.enumerate().take(outputs.len()) {
                // SAFETY: as above, exclusively.
                unsafe { part.place(number, memory) };
            }
        }
        self.execute()?;
        let mut sizes = Vec::with_capacity(results.len());
        for (i, memory) in results.iter_mut().enumerate() {
            let (device, number) = (i / outputs.len(), i % outputs.len());
            let part = lock(&self.parts[device]);
            sizes.push(part.take(number, outputs[number], memory)?);
        }
        Ok(sizes)
    }

    /// As [`Bound::execute`], with someone looking on at the first device.
    ///
    /// # Errors
    /// As [`Bound::execute`].
    pub fn execute_watched<W: Watch + Send>(&mut self, watch: &mut W) -> Result<()> {
        let communicator = Communicator::new(self.topology);
        let parts = &self.parts;
        let watch = Mutex::new(watch);
        let run = communicator.run(|device| {
            let member = Member {
                communicator: &communicator,
                device,
            };
            match device {
                0 => lock(&parts[device]).execute_watched(member, *lock(&watch)),
                _ => lock(&parts[device]).execute(member),
            }
        });
        run.map(drop)
    }

    /// What each launch of the last run counted, a JSON object for each, on simulated devices.
    pub fn counts(&self) -> Vec<serde_json::Value> {
        let counts = self.parts.iter().map(|part| match &*lock(part) {
            #[cfg(feature = "cpu")]
            Part::Cpu(_) => Vec::new(),
            #[cfg(feature = "cuda")]
            Part::Cuda(bound) => bound.counts().to_vec(),
        });
        counts.flatten().collect()
    }

    /// The array leaves of the result, of each device.
    ///
    /// # Errors
    /// `XA8004` when a device does not give them.
    pub fn outputs(&self) -> Result<Vec<Vec<ArrayLiteral>>> {
        let outputs = self.parts.iter().map(|part| match &*lock(part) {
            #[cfg(feature = "cpu")]
            Part::Cpu(bound) => bound.outputs(),
            #[cfg(feature = "cuda")]
            Part::Cuda(bound) => bound.outputs(),
        });
        outputs.collect()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Whether a program is for devices of that kind.
///
/// # Errors
/// `XA8006` when it is not.
pub fn check_device(needs: &TargetNeeds, device: &DeviceChoice) -> Result<()> {
    let message = match (needs, device) {
        (TargetNeeds::Cpu { triple, .. }, DeviceChoice::Cuda(_) | DeviceChoice::Simulated(_)) => {
            format!("the program is for a CPU (`{triple}`), not for a GPU")
        }
        (TargetNeeds::Cuda { major, minor, .. }, DeviceChoice::Cpu) => {
            format!("the program is for CUDA devices of capability {major}.{minor}, not for a CPU")
        }
        _ => return Ok(()),
    };
    Err(Diagnostic::error(codes::NO_DEVICE, message))
}

/// For a device whose number no device has.
pub fn no_such_device(ordinal: u32, count: usize) -> Box<Diagnostic> {
    let message = format!("there is no CUDA device {ordinal}, the driver has {count}");
    Diagnostic::error(codes::NO_DEVICE, message)
        .help("devices are counted from 0; CUDA_VISIBLE_DEVICES may hide some")
}

/// The simulated driver. Its devices are as the first request has them.
///
/// # Errors
/// `XA8006` when there is no such target.
#[cfg(feature = "simulator")]
pub fn simulated(
    target: Option<String>,
    devices: usize,
    counts: bool,
) -> Result<&'static cuda::Api> {
    cuda::Api::simulator(&crate::simulator::driver::Request {
        target,
        devices: (devices > 1).then_some(devices),
        stats: counts,
    })
}

/// For a build without the simulator.
#[cfg(not(feature = "simulator"))]
pub fn no_simulator() -> Box<Diagnostic> {
    let message = "this program was built without the `simulator` feature";
    Diagnostic::unsupported(codes::NO_DEVICE, message)
}

/// The arrays in values, in order.
pub fn leaves(values: &[Literal]) -> Vec<ArrayLiteral> {
    fn collect(value: &Literal, out: &mut Vec<ArrayLiteral>) {
        match value {
            Literal::Array(array) => out.push(array.clone()),
            Literal::Tuple(elements) => elements.iter().for_each(|e| collect(e, out)),
            Literal::Token => {}
        }
    }
    let mut out = Vec::new();
    values.iter().for_each(|value| collect(value, &mut out));
    out
}

/// A value of this shape from its array leaves in order; none when there are too few.
pub fn unflatten(
    shape: &Shape,
    leaves: &mut impl Iterator<Item = ArrayLiteral>,
) -> Option<Literal> {
    match shape {
        Shape::Array(_) => leaves.next().map(Literal::Array),
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| unflatten(element, leaves));
            elements.collect::<Option<Vec<_>>>().map(Literal::Tuple)
        }
        Shape::Token | Shape::Opaque => Some(Literal::Token),
    }
}
