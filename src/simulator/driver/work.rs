//! Units of work: what streams run and graphs are made of.

#![allow(unsafe_code, reason = "functions of the program are called back")]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::event::Event;
use crate::simulator::driver::graph::Cell;
use crate::simulator::driver::graph::Graph;
use crate::simulator::driver::heap::GraphMemory;
use crate::simulator::driver::launch;
use crate::simulator::driver::launch::KernelWork;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::as_callback;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream::Stream;
use crate::simulator::driver::stream::Ticket;
use crate::simulator::driver::transfer::Fill;
use crate::simulator::driver::transfer::Transfer;
use crate::simulator::driver::types::HostParams;
use crate::simulator::driver::types::MemOp;
use crate::simulator::memory::raw;

/// How long a graph looks away from work that cannot go on.
const LOOK_AWAY: Duration = Duration::from_micros(50);

/// A list of writes to memory and waits for it, and how far it is.
#[derive(Debug)]
pub(super) struct MemOps {
    pub(super) list: Vec<MemOp>,
    pub(super) flags: u32,
    done: AtomicUsize,
}

impl MemOps {
    /// A list at its beginning.
    pub(super) fn new(list: Vec<MemOp>, flags: u32) -> Arc<Self> {
        Arc::new(Self {
            list,
            flags,
            done: AtomicUsize::new(0),
        })
    }
}

/// A node that runs a body or not, by a value that kernels set.
pub(super) struct Conditional {
    /// Where the value lies; it is the handle that programs have.
    pub(super) address: Address,
    pub(super) kind: u32,
    pub(super) bodies: Vec<Arc<Graph>>,
    /// Their handles, in memory that the program reads.
    pub(super) handles: Box<[Handle]>,
}

impl Conditional {
    /// A node for bodies.
    pub(super) fn new(address: Address, kind: u32, bodies: Vec<Arc<Graph>>) -> Arc<Self> {
        let handles = bodies.iter().map(|body| body.handle).collect();
        Arc::new(Self {
            address,
            kind,
            bodies,
            handles,
        })
    }
}

/// A conditional made ready to run.
pub(super) struct Branch {
    pub(super) address: Address,
    pub(super) kind: u32,
    pub(super) bodies: Vec<Arc<Vec<Step>>>,
}

/// A node made ready to run.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) node: Handle,
    pub(super) work: Work,
    pub(super) enabled: bool,
    /// The steps it comes after.
    pub(super) after: Vec<usize>,
}

/// A graph made ready to run.
pub(super) struct Run {
    pub(super) steps: Arc<Vec<Step>>,
    /// Values of conditionals to set first.
    pub(super) defaults: Vec<(Address, u32)>,
    /// Whether memory of the last run is to be freed first.
    pub(super) frees: bool,
    /// Keeps the conditionals' values.
    pub(super) _cells: Vec<Arc<Cell>>,
}

/// A unit of work.
#[derive(Clone)]
pub(super) enum Work {
    /// A kernel.
    Kernel(Arc<KernelWork>),
    /// A copy.
    Copy(Box<Transfer>),
    /// A fill.
    Fill(Fill),
    /// A function of the program.
    Host(HostParams),
    /// A stream callback of the program.
    Callback {
        /// The function.
        function: usize,
        /// Its argument.
        data: usize,
        /// The stream that it is told.
        stream: Handle,
    },
    /// Nothing.
    Empty,
    /// Reaches a moment.
    Signal(Arc<Ticket>),
    /// Waits for a moment.
    Await(Arc<Ticket>),
    /// Records an event, each time it runs.
    Record(Arc<Event>),
    /// Waits for what an event recorded last when it runs.
    WaitEvent(Arc<Event>),
    /// Allocates at an address that is known.
    Alloc(Arc<GraphMemory>),
    /// Frees.
    Free(Address),
    /// Writes to memory and waits for it.
    MemOps(Arc<MemOps>),
    /// A graph within a graph.
    Graph(Arc<Graph>),
    /// Bodies that run or not.
    Conditional(Arc<Conditional>),
    /// A graph within a graph, ready.
    Steps(Arc<Vec<Step>>),
    /// Bodies that run or not, ready.
    Branch(Arc<Branch>),
    /// A whole graph.
    Launch(Arc<Run>),
}

/// Whether work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is.
    Done,
    /// It must be tried again.
    Blocked,
}

impl Work {
    /// Whether the thread that submits the work may run it: it calls nobody and waits for nobody.
    pub(super) fn may_run_here(&self) -> bool {
        match self {
            Self::Host(_) | Self::Callback { .. } => false,
            Self::Await(ticket) => ticket.time().is_some(),
            Self::WaitEvent(_) => false,
            Self::MemOps(operations) => operations.list.iter().all(|op| !is_wait(op)),
            Self::Steps(steps) => steps.iter().all(|step| step.work.may_run_here()),
            Self::Branch(branch) => branch
                .bodies
                .iter()
                .flat_map(|body| body.iter())
                .all(|step| step.work.may_run_here()),
            Self::Launch(run) => run.steps.iter().all(|step| step.work.may_run_here()),
            _ => true,
        }
    }
}

fn is_wait(operation: &MemOp) -> bool {
    matches!(operation.operation, 1 | 4)
}

/// Takes work one step further. Errors are left in the context.
pub(super) fn step(driver: &'static Driver, stream: &Stream, work: &Work) -> Progress {
    if let Work::Signal(ticket) = work {
        // Nobody may wait for ever, whatever went wrong before.
        ticket.reach();
        return Progress::Done;
    }
    match attempt(driver, stream, work) {
        Ok(progress) => progress,
        Err(status) => {
            stream.context.spoil(status);
            Progress::Done
        }
    }
}

fn attempt(driver: &'static Driver, stream: &Stream, work: &Work) -> Answer<Progress> {
    match work {
        Work::Await(ticket) => {
            let healthy = stream.context.health().is_ok();
            if ticket.time().is_none() && healthy {
                return Ok(Progress::Blocked);
            }
            return Ok(Progress::Done);
        }
        Work::Callback {
            function,
            data,
            stream: handle,
        } => {
            let status = stream.context.health().err().unwrap_or(Status::SUCCESS);
            call_back(*function, *handle, status, *data);
            return Ok(Progress::Done);
        }
        _ => {}
    }
    // After an error nothing runs any more.
    if stream.context.health().is_err() {
        return Ok(Progress::Done);
    }
    match work {
        Work::Kernel(kernel) => launch::run(driver, stream, kernel)?,
        Work::Copy(transfer) => transfer
            .run(driver, stream.handle)
            .map_err(|_| Status::ILLEGAL_ADDRESS)?,
        Work::Fill(fill) => fill.run(driver).map_err(|_| Status::ILLEGAL_ADDRESS)?,
        Work::Host(params) => call_host(*params),
        Work::Record(event) => event.record().reach(),
        Work::WaitEvent(event) => {
            if event.ticket().is_some_and(|ticket| ticket.time().is_none()) {
                return Ok(Progress::Blocked);
            }
        }
        Work::Alloc(memory) => driver.heap.raise(driver, &stream.context, memory)?,
        Work::Free(address) => free(driver, *address)?,
        Work::MemOps(operations) => return mem_ops(driver, operations),
        Work::Steps(steps) => run_steps(driver, stream, steps)?,
        Work::Branch(branch) => run_branch(driver, stream, branch)?,
        Work::Launch(run) => {
            for &(address, value) in &run.defaults {
                raw::put(address, value);
            }
            if run.frees {
                free_live(driver, &run.steps)?;
            }
            run_steps(driver, stream, &run.steps)?;
        }
        Work::Empty
        | Work::Signal(_)
        | Work::Await(_)
        | Work::Callback { .. }
        | Work::Graph(_)
        | Work::Conditional(_) => {}
    }
    Ok(Progress::Done)
}

fn run_steps(driver: &'static Driver, stream: &Stream, steps: &[Step]) -> Answer {
    for step in steps {
        if !step.enabled {
            continue;
        }
        while attempt(driver, stream, &step.work)? == Progress::Blocked {
            std::thread::sleep(LOOK_AWAY);
        }
        stream.context.health()?;
    }
    Ok(())
}

fn run_branch(driver: &'static Driver, stream: &Stream, branch: &Branch) -> Answer {
    let value = || raw::get::<u32>(branch.address);
    let run = |index: usize| match branch.bodies.get(index) {
        Some(body) => run_steps(driver, stream, body),
        None => Ok(()),
    };
    match branch.kind {
        // If: the second body is the other case.
        0 => run(usize::from(value() == 0)),
        // While.
        1 => {
            while value() != 0 {
                run(0)?;
            }
            Ok(())
        }
        // Switch.
        _ => run(value() as usize),
    }
}

fn free_live(driver: &Driver, steps: &[Step]) -> Answer {
    for step in steps {
        match &step.work {
            Work::Alloc(memory) if memory.is_live() => free(driver, memory.base)?,
            Work::Steps(steps) => free_live(driver, steps)?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether memory that a graph allocates is still there from its last run.
pub(super) fn has_live(steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.work {
        Work::Alloc(memory) => memory.is_live(),
        Work::Steps(steps) => has_live(steps),
        _ => false,
    })
}

fn free(driver: &Driver, address: Address) -> Answer {
    let block = driver.heap.at(address).ok_or(Status::INVALID_VALUE)?;
    driver.heap.free(driver, &block)
}

fn mem_ops(driver: &Driver, operations: &MemOps) -> Answer<Progress> {
    let mut index = operations.done.load(Ordering::Acquire);
    while let Some(operation) = operations.list.get(index) {
        if !mem_op(driver, operation)? {
            operations.done.store(index, Ordering::Release);
            return Ok(Progress::Blocked);
        }
        index += 1;
    }
    operations.done.store(0, Ordering::Release);
    Ok(Progress::Done)
}

/// Whether an operation is done.
fn mem_op(driver: &Driver, operation: &MemOp) -> Answer<bool> {
    let wide = matches!(operation.operation, 4 | 5);
    let bytes = if wide { 8 } else { 4 };
    let known = || driver.heap.covers(driver, operation.address, bytes);
    match operation.operation {
        1 | 4 => {
            if !known() {
                return Err(Status::ILLEGAL_ADDRESS);
            }
            // An update that changes nothing is an atomic read.
            let (now, wanted) = if wide {
                (raw::update64(operation.address, |old| old), operation.value)
            } else {
                let now = raw::update32(operation.address, |old| old);
                (u64::from(now), operation.value & 0xffff_ffff)
            };
            let difference = now.wrapping_sub(wanted);
            let mask = if wide { u64::MAX } else { 0xffff_ffff };
            let sign = if wide { 1 << 63 } else { 1 << 31 };
            Ok(match operation.flags & 3 {
                0 => difference & sign == 0,
                1 => now == wanted,
                2 => now & wanted != 0,
                _ => !(now | wanted) & mask != 0,
            })
        }
        2 | 5 => {
            if !known() {
                return Err(Status::ILLEGAL_ADDRESS);
            }
            if wide {
                raw::update64(operation.address, |_| operation.value);
            } else {
                raw::update32(operation.address, |_| operation.value as u32);
            }
            driver.space.mark_written(operation.address, bytes);
            Ok(true)
        }
        _ => Ok(true),
    }
}

/// Calls a host function.
pub(super) fn call_host(params: HostParams) {
    if params.function == 0 {
        return;
    }
    // SAFETY: the program gave the address as that of a function of this type.
    let function: unsafe extern "C" fn(usize) = unsafe { std::mem::transmute(params.function) };
    // SAFETY: the program asked for the call with this argument.
    as_callback(|| unsafe { function(params.data) });
}

fn call_back(function: usize, stream: Handle, status: Status, data: usize) {
    if function == 0 {
        return;
    }
    // SAFETY: the program gave the address as that of a function of this type.
    let function: unsafe extern "C" fn(Handle, Status, usize) =
        unsafe { std::mem::transmute(function) };
    // SAFETY: the program asked for the call with this argument.
    as_callback(|| unsafe { function(stream, status, data) });
}
