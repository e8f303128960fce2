//! Running CUDA programs on simulated devices with every check on.
//!
//! Each trial has a device of its own, so that a fault stays in its trial.

use std::sync::Mutex;
use std::sync::PoisonError;

use libtest_mimic::Failed;
use xla_aot::base::Diagnostic;
use xla_aot::collective::Communicator;
use xla_aot::collective::Topology;
use xla_aot::executable::Executable;
use xla_aot::literal::ArrayLiteral;
use xla_aot::runtime::collective::Member;
use xla_aot::runtime::cuda::Api;
use xla_aot::runtime::cuda::Device;
use xla_aot::runtime::cuda::program::Bound;
use xla_aot::runtime::cuda::program::Program;
use xla_aot::runtime::custom_call::CustomCalls;
use xla_aot::simulator::driver::Request;

/// Devices, at least as many as trials that run at the same time.
const DEVICES: u32 = 64;

/// Devices that no trial has.
static FREE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// Those before it are for programs of several devices.
static NEXT: Mutex<u32> = Mutex::new(8);

/// The GPU: `XLA_AOT_SIM_TARGET`, or one with all kinds of instructions that the compiler emits.
pub fn target() -> String {
    std::env::var("XLA_AOT_SIM_TARGET").unwrap_or_else(|_| "h100_sxm".to_owned())
}

/// A device for one trial.
pub struct Lease(pub u32);

impl Lease {
    /// A device that no other trial uses.
    pub fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(free.unwrap_or_else(|| {
            let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            *next - 1
        }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        FREE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.0);
    }
}

/// The simulated driver.
pub fn api() -> Result<&'static Api, Failed> {
    let request = Request {
        target: Some(target()),
        devices: Some(DEVICES as usize),
        stats: false,
    };
    Api::simulator(&request).map_err(|diagnostic| Failed::from(diagnostic.to_string()))
}

/// Runs a program of one device once.
pub fn execute(bound: &mut Bound<'_>) -> Result<(), Box<Diagnostic>> {
    let alone = Communicator::new(Topology::ONE);
    bound.execute(Member {
        communicator: &alone,
        device: 0,
    })
}

/// The array leaves of the result.
pub fn run(executable: &Executable, inputs: &[ArrayLiteral]) -> Result<Vec<ArrayLiteral>, Failed> {
    let failed = |diagnostic: Box<Diagnostic>| Failed::from(diagnostic.to_string());
    let lease = Lease::take();
    let device = Device::open(api()?, lease.0).map_err(failed)?;
    let program = Program::load(executable, &device, &CustomCalls::default()).map_err(failed)?;
    let mut bound = program.bind(0, inputs.to_vec()).map_err(failed)?;
    execute(&mut bound).map_err(failed)?;
    bound.outputs().map_err(failed)
}
