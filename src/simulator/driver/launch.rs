//! Launching kernels: the checks of the call, and the run.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_uint;
use std::sync::Arc;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::abi::own_default;
use crate::simulator::driver::abi::per_thread;
use crate::simulator::driver::event;
use crate::simulator::driver::module;
use crate::simulator::driver::module::Function;
use crate::simulator::driver::occupancy;
use crate::simulator::driver::state;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::stream::Stream;
use crate::simulator::driver::types::KernelParams1;
use crate::simulator::driver::types::LaunchAttribute;
use crate::simulator::driver::types::LaunchConfig;
use crate::simulator::driver::types::MultiLaunch;
use crate::simulator::driver::work::Work;
use crate::simulator::launch;
use crate::simulator::launch::Entry;
use crate::simulator::launch::Launch;

/// Most blocks of a cluster that every device of a kind can run.
const PORTABLE_CLUSTER: u64 = 8;
/// Most blocks of a cluster.
const LARGEST_CLUSTER: u64 = 16;

/// A launch whose arguments are taken over.
pub(super) struct KernelWork {
    pub(super) function: Arc<Function>,
    pub(super) launch: Launch,
    pub(super) attributes: Vec<LaunchAttribute>,
    /// Where each argument lies within `launch.params`, for programs that ask.
    pub(super) places: Vec<usize>,
}

/// What a call says of a launch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ask {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared: u32,
    /// Address of the array of addresses of arguments.
    pub(super) params: usize,
    /// Address of the list of extras.
    pub(super) extra: usize,
    pub(super) cooperative: bool,
}

impl From<KernelParams1> for Ask {
    fn from(params: KernelParams1) -> Self {
        Self {
            grid: params.grid,
            block: params.block,
            shared: params.shared,
            params: params.params,
            extra: params.extra,
            cooperative: false,
        }
    }
}

/// Copies the arguments, laid out as the kernel wants them.
fn gather(entry: &Entry, ask: &Ask) -> Answer<Vec<u8>> {
    let mut bytes = vec![0_u8; entry.param_bytes as usize];
    match (ask.params != 0, ask.extra != 0) {
        (true, true) => Err(Status::INVALID_VALUE),
        (true, false) => {
            let places = In::<In<u8>>::new(ask.params as *const In<u8>);
            let places = places.array(entry.params.len())?;
            for (param, place) in entry.params.iter().zip(places) {
                if place.is_null() {
                    return Err(Status::INVALID_VALUE);
                }
                let (offset, size) = (param.offset as usize, param.size as usize);
                let target = bytes.get_mut(offset..offset + size);
                let target = target.ok_or(Status::INVALID_VALUE)?;
                target.copy_from_slice(place.bytes(size));
            }
            Ok(bytes)
        }
        (false, true) => {
            let (buffer, size) = extra(ask.extra)?;
            if size < bytes.len() {
                return Err(Status::INVALID_VALUE);
            }
            let wanted = bytes.len();
            bytes.copy_from_slice(buffer.bytes(wanted));
            Ok(bytes)
        }
        (false, false) if entry.params.is_empty() => Ok(bytes),
        (false, false) => Err(Status::INVALID_VALUE),
    }
}

/// Buffer and size from a list of extras: pairs of a number and a pointer, up to a zero.
fn extra(list: usize) -> Answer<(In<u8>, usize)> {
    let mut list = In::<usize>::new(list as *const usize);
    let (mut buffer, mut size) = (0, 0);
    loop {
        let value = list.byte_add(size_of::<usize>());
        match list.get()? {
            0 => break,
            1 => buffer = value.get()?,
            2 => size = In::<usize>::new(value.get()? as *const usize).get()?,
            _ => return Err(Status::INVALID_VALUE),
        }
        list = value.byte_add(size_of::<usize>());
    }
    let buffer = In::new(buffer as *const u8);
    if buffer.is_null() && size > 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok((buffer, size))
}

/// Everything of three directions.
pub(super) fn product(dims: [u32; 3]) -> u64 {
    dims.iter()
        .fold(1_u64, |all, &dim| all.saturating_mul(u64::from(dim)))
}

/// The cluster of a launch.
fn cluster(
    driver: &Driver,
    function: &Function,
    ask: &Ask,
    asked: Option<[u32; 3]>,
) -> Answer<[u32; 3]> {
    let entry = function.entry()?;
    let set = *lock(&function.set);
    let preset = (product(set.cluster) > 0).then_some(set.cluster);
    let cluster = match (entry.cluster.or(preset), asked) {
        (Some(fixed), Some(asked)) if fixed != asked => {
            return Err(Status::INVALID_CLUSTER_SIZE);
        }
        (fixed, asked) => fixed.or(asked).unwrap_or([1; 3]),
    };
    let size = product(cluster);
    if size == 0 {
        return Err(Status::INVALID_VALUE);
    }
    if size > 1 && driver.spec.capability.major < 9 {
        return Err(Status::INVALID_CLUSTER_SIZE);
    }
    let most = if set.non_portable {
        LARGEST_CLUSTER
    } else {
        PORTABLE_CLUSTER
    };
    let whole = (0..3).all(|axis| ask.grid[axis].is_multiple_of(cluster[axis]));
    let ranked = entry
        .max_cluster_rank
        .is_none_or(|rank| size <= u64::from(rank));
    if size > most || !whole || !ranked {
        return Err(Status::INVALID_CLUSTER_SIZE);
    }
    Ok(cluster)
}

fn check(driver: &Driver, function: &Function, ask: &Ask) -> Answer {
    let entry = function.entry()?;
    let facts = &driver.facts;
    let within = |dims: [u32; 3], most: [u32; 3]| {
        (0..3).all(|axis| dims[axis] > 0 && dims[axis] <= most[axis])
    };
    if !within(ask.grid, facts.grid) || !within(ask.block, facts.block) {
        return Err(Status::INVALID_VALUE);
    }
    let threads = product(ask.block);
    if threads > u64::from(driver.spec.threads_per_block) {
        return Err(Status::INVALID_VALUE);
    }
    if entry
        .required_block
        .is_some_and(|required| required != ask.block)
    {
        return Err(Status::INVALID_VALUE);
    }
    if threads > u64::from(entry.max_threads) {
        return Err(Status::INVALID_VALUE);
    }
    if ask.shared > function.most_dynamic(driver)? {
        return Err(Status::INVALID_VALUE);
    }
    let registers = u64::from(entry.registers) * threads.next_multiple_of(32);
    if registers > u64::from(facts.registers_per_block) && entry.registers > 255 {
        return Err(Status::LAUNCH_OUT_OF_RESOURCES);
    }
    Ok(())
}

/// Checks a launch and takes its arguments over.
pub(super) fn prepare(
    driver: &Driver,
    function: &Arc<Function>,
    ask: &Ask,
    attributes: Vec<LaunchAttribute>,
) -> Answer<Arc<KernelWork>> {
    prepare_with(driver, function, ask, attributes, |entry| {
        gather(entry, ask)
    })
}

/// The same launch with other attributes.
pub(super) fn with_attributes(
    driver: &Driver,
    kernel: &KernelWork,
    attributes: Vec<LaunchAttribute>,
) -> Answer<Arc<KernelWork>> {
    let ask = Ask {
        grid: kernel.launch.grid,
        block: kernel.launch.block,
        shared: kernel.launch.dynamic_shared,
        ..Ask::default()
    };
    let params = kernel.launch.params.clone();
    prepare_with(driver, &kernel.function, &ask, attributes, |_| Ok(params))
}

fn prepare_with(
    driver: &Driver,
    function: &Arc<Function>,
    ask: &Ask,
    attributes: Vec<LaunchAttribute>,
    params: impl FnOnce(&Entry) -> Answer<Vec<u8>>,
) -> Answer<Arc<KernelWork>> {
    let entry = function.entry()?;
    let mut cooperative = ask.cooperative;
    let mut asked = None;
    for attribute in &attributes {
        let words = &attribute.value.words;
        match attribute.id {
            2 => cooperative |= words[0] != 0,
            4 => {
                let dims = [words[0], words[1], words[2]];
                if product(dims) == 0 {
                    return Err(Status::INVALID_VALUE);
                }
                asked = Some(dims);
            }
            13 if words[0] != 0 => return Err(Status::NOT_SUPPORTED),
            0..=18 => {}
            _ => return Err(Status::INVALID_VALUE),
        }
    }
    check(driver, function, ask)?;
    let cluster = cluster(driver, function, ask, asked)?;
    if cooperative {
        let threads = product(ask.block) as u32;
        let blocks = occupancy::blocks(driver, function, threads, u64::from(ask.shared))?;
        let most = u64::from(blocks) * u64::from(driver.spec.cores);
        if product(ask.grid) > most {
            return Err(Status::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    let params = params(entry)?;
    let places = entry.params.iter();
    let places = places.map(|param| params.as_ptr() as usize + param.offset as usize);
    let places = places.collect();
    Ok(Arc::new(KernelWork {
        function: Arc::clone(function),
        places,
        attributes,
        launch: Launch {
            grid: ask.grid,
            block: ask.block,
            cluster,
            dynamic_shared: ask.shared,
            params,
            cooperative,
        },
    }))
}

/// Runs a kernel; an error is what it leaves in the context.
pub(super) fn run(driver: &'static Driver, stream: &Stream, kernel: &KernelWork) -> Answer {
    let entry = kernel.function.entry()?;
    let outcome = {
        let _flight = driver.heap.enter();
        let module = &kernel.function.module.loaded;
        let mut options = driver.settings.options.clone();
        options.stats |= state::counts();
        launch::launch(module, entry, &kernel.launch, &options)
    };
    // A graph can hold kernels of other devices than its stream's.
    let device = kernel.function.module.context.device;
    driver
        .journal
        .tell(stream.handle, device, &entry.name, &kernel.launch, &outcome)
}

fn issue(function: Handle, ask: &Ask, attributes: Vec<LaunchAttribute>, stream: Handle) -> Answer {
    let driver = driver()?;
    let stream = stream::resolve(stream)?;
    let function = match driver.kernels.find(function) {
        Some(kernel) => kernel.function(driver, &stream.context)?,
        None => module::resolve(function)?,
    };
    if function.module.context.handle != stream.context.handle {
        return Err(Status::INVALID_HANDLE);
    }
    // Events that the launch is to record: after it, which is late but not wrong.
    let mut events = Vec::new();
    for attribute in &attributes {
        if matches!(attribute.id, 7 | 12) {
            events.push(event::resolve(attribute.value.handle(0))?);
        }
    }
    let kernel = prepare(driver, &function, ask, attributes)?;
    stream::issue(&stream, Work::Kernel(kernel))?;
    for event in events {
        stream::issue(&stream, Work::Signal(event.record()))?;
    }
    Ok(())
}

fn with_config(
    config: &LaunchConfig,
    function: Handle,
    params: usize,
    extra: usize,
    stream: Handle,
) -> Answer {
    let attributes = In::<LaunchAttribute>::new(config.attributes as *const LaunchAttribute);
    let attributes = attributes.array(config.count as usize)?;
    let ask = Ask {
        grid: config.grid,
        block: config.block,
        shared: config.shared,
        params,
        extra,
        cooperative: false,
    };
    issue(function, &ask, attributes, stream)
}

api! {
    fn cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, params: usize, extra: usize,
    ) {
        let grid = [grid_x, grid_y, grid_z];
        let block = [block_x, block_y, block_z];
        let ask = Ask { grid, block, shared, params, extra, cooperative: false };
        issue(function, &ask, Vec::new(), stream)
    }
    fn cuLaunchCooperativeKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, params: usize,
    ) {
        let grid = [grid_x, grid_y, grid_z];
        let block = [block_x, block_y, block_z];
        let ask = Ask { grid, block, shared, params, extra: 0, cooperative: true };
        issue(function, &ask, Vec::new(), stream)
    }
    fn cuLaunchKernelEx(config: In<LaunchConfig>, function: Handle, params: usize, extra: usize) {
        let config = config.get()?;
        with_config(&config, function, params, extra, config.stream)
    }
    fn cuLaunchKernelEx_ptsz(config: In<LaunchConfig>, function: Handle, params: usize, extra: usize) {
        let config = config.get()?;
        with_config(&config, function, params, extra, own_default(config.stream))
    }
    fn cuLaunchCooperativeKernelMultiDevice(list: In<MultiLaunch>, count: c_uint, flags: c_uint) {
        driver()?;
        if flags & !3 != 0 || count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        // Launches that must run together on several devices at once.
        list.array(count as usize)?;
        Err(Status::NOT_SUPPORTED)
    }
}

per_thread! {
    cuLaunchKernel_ptsz = cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint; stream; params: usize; extra: usize);
    cuLaunchCooperativeKernel_ptsz = cuLaunchCooperativeKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint; stream; params: usize);
}
