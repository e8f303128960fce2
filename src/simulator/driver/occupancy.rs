//! How many blocks fit, and which block size fits best.

#![allow(unsafe_code, reason = "a function of the program is called back")]

use std::ffi::c_int;
use std::ffi::c_uint;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::launch;
use crate::simulator::driver::module;
use crate::simulator::driver::module::Function;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::LaunchAttribute;
use crate::simulator::driver::types::LaunchConfig;
use crate::simulator::launch::occupancy::occupancy;

/// Blocks of a function that a multiprocessor holds.
pub(super) fn blocks(
    driver: &Driver,
    function: &Function,
    threads: u32,
    dynamic: u64,
) -> Answer<u32> {
    let entry = function.entry()?;
    if threads > entry.max_threads.min(driver.spec.threads_per_block) {
        return Ok(0);
    }
    let shared = u64::from(entry.static_shared) + dynamic;
    if shared > driver.spec.shared_per_block_optin.0 {
        return Ok(0);
    }
    Ok(occupancy(&driver.spec, threads, entry.registers, shared).blocks)
}

fn active(out: Out<c_int>, function: Handle, threads: c_int, dynamic: usize, flags: u32) -> Answer {
    let driver = driver()?;
    out.check()?;
    let threads = u32::try_from(threads).ok().filter(|&threads| threads > 0);
    let threads = threads.ok_or(Status::INVALID_VALUE)?;
    if flags > 1 {
        return Err(Status::INVALID_VALUE);
    }
    let function = module::resolve(function)?;
    out.put(blocks(driver, &function, threads, dynamic as u64)? as c_int)
}

/// Asks the program how much dynamic shared memory a block of some size wants.
fn ask_shared(callback: usize, threads: c_int) -> usize {
    // SAFETY: the program gave the address as that of a function of this type.
    let callback: unsafe extern "C" fn(c_int) -> usize = unsafe { std::mem::transmute(callback) };
    // SAFETY: the interface says that it may be called with any block size.
    unsafe { callback(threads) }
}

fn potential(
    grid: Out<c_int>,
    block: Out<c_int>,
    function: Handle,
    callback: usize,
    dynamic: usize,
    limit: c_int,
) -> Answer {
    let driver = driver()?;
    grid.check()?;
    block.check()?;
    let function = module::resolve(function)?;
    let most = function
        .entry()?
        .max_threads
        .min(driver.spec.threads_per_block);
    let most = match u32::try_from(limit) {
        Ok(limit) if limit > 0 => most.min(limit),
        _ => most,
    };
    let mut best = (0, 0, 0);
    let mut threads = most;
    while threads > 0 {
        let shared = if callback == 0 {
            dynamic
        } else {
            ask_shared(callback, threads as c_int)
        };
        let count = blocks(driver, &function, threads, shared as u64)?;
        if count * threads > best.0 {
            best = (count * threads, threads, count);
        }
        // Down in whole warps.
        threads = (threads - 1) / 32 * 32;
    }
    if best.0 == 0 {
        return Err(Status::LAUNCH_OUT_OF_RESOURCES);
    }
    block.put(best.1 as c_int)?;
    grid.put((best.2 * driver.spec.cores) as c_int)
}

/// Threads of a block or blocks of a cluster; too many are as many as can be counted.
fn product(dims: [u32; 3]) -> u32 {
    u32::try_from(launch::product(dims)).unwrap_or(u32::MAX)
}

fn cluster_of(config: &LaunchConfig) -> Answer<Option<u32>> {
    let attributes = In::<LaunchAttribute>::new(config.attributes as *const LaunchAttribute);
    let attributes = attributes.array(config.count as usize)?;
    let found = attributes.iter().find(|attribute| attribute.id == 4);
    let words = found.map(|found| &found.value.words);
    Ok(words.map(|words| product([words[0], words[1], words[2]])))
}

/// Blocks of a launch that the whole device holds.
fn blocks_of_device(driver: &Driver, function: &Function, config: &LaunchConfig) -> Answer<u32> {
    let threads = product(config.block);
    let count = blocks(driver, function, threads, u64::from(config.shared))?;
    Ok(count * driver.spec.cores)
}

api! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<c_int>, function: Handle, threads: c_int, dynamic: usize,
    ) {
        active(count, function, threads, dynamic, 0)
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<c_int>, function: Handle, threads: c_int, dynamic: usize, flags: c_uint,
    ) {
        active(count, function, threads, dynamic, flags)
    }
    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>, block: Out<c_int>, function: Handle, callback: usize, dynamic: usize,
        limit: c_int,
    ) {
        potential(grid, block, function, callback, dynamic, limit)
    }
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>, block: Out<c_int>, function: Handle, callback: usize, dynamic: usize,
        limit: c_int, flags: c_uint,
    ) {
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        potential(grid, block, function, callback, dynamic, limit)
    }
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, function: Handle, count: c_int, threads: c_int,
    ) {
        let driver = driver()?;
        bytes.check()?;
        let function = module::resolve(function)?;
        let count = u32::try_from(count).ok().filter(|&count| count > 0);
        let count = count.ok_or(Status::INVALID_VALUE)?;
        let threads = u32::try_from(threads).map_err(|_| Status::INVALID_VALUE)?;
        if blocks(driver, &function, threads, 0)? < count {
            return Err(Status::INVALID_VALUE);
        }
        let each = driver.facts.shared_per_core / count;
        let taken = driver.facts.reserved_shared + function.entry()?.static_shared;
        let most = function.most_dynamic(driver)?.max(driver.spec.shared_per_block.0 as u32);
        bytes.put(each.saturating_sub(taken).min(most) as usize)
    }
    fn cuOccupancyMaxPotentialClusterSize(
        size: Out<c_int>, function: Handle, config: In<LaunchConfig>,
    ) {
        let driver = driver()?;
        size.check()?;
        let function = module::resolve(function)?;
        let config = config.get()?;
        if driver.spec.capability.major < 9 {
            return Err(Status::INVALID_CLUSTER_SIZE);
        }
        let most = if lock(&function.set).non_portable { 16 } else { 8 };
        if blocks_of_device(driver, &function, &config)? == 0 {
            return Err(Status::LAUNCH_OUT_OF_RESOURCES);
        }
        size.put(most)
    }
    fn cuOccupancyMaxActiveClusters(
        count: Out<c_int>, function: Handle, config: In<LaunchConfig>,
    ) {
        let driver = driver()?;
        count.check()?;
        let function = module::resolve(function)?;
        let config = config.get()?;
        let fixed = function.entry()?.cluster.map(product);
        let size = cluster_of(&config)?.or(fixed).unwrap_or(1);
        let most = if lock(&function.set).non_portable { 16 } else { 8 };
        if size == 0 || size > most || (size > 1 && driver.spec.capability.major < 9) {
            return Err(Status::INVALID_CLUSTER_SIZE);
        }
        count.put((blocks_of_device(driver, &function, &config)? / size) as c_int)
    }
}
