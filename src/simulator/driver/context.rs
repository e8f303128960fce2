//! Contexts: each device's primary one, further ones, and the stack of them that a thread has.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::ffi::c_ulonglong;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::capture;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::in_callback;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::stream::Stream;
use crate::simulator::driver::types::Affinity;
use crate::simulator::driver::types::ContextParams;

/// Flags that a context can have.
const KNOWN_FLAGS: u32 = 0xff;

/// A context.
pub(super) struct Context {
    pub(super) handle: Handle,
    pub(super) id: u64,
    /// The ordinal of its device.
    pub(super) device: u32,
    pub(super) primary: bool,
    pub(super) flags: AtomicU32,
    version: u32,
    limits: Mutex<BTreeMap<u32, usize>>,
    cache: AtomicU32,
    banks: AtomicU32,
    /// The error that a kernel left; 0 for none.
    sticky: AtomicU32,
    alive: AtomicBool,
    /// Contexts whose memory this one may use.
    pub(super) peers: Mutex<BTreeSet<Handle>>,
    legacy: OnceLock<Arc<Stream>>,
    own: Mutex<BTreeMap<u64, Arc<Stream>>>,
}

thread_local! {
    static STACK: RefCell<Vec<Arc<Context>>> = const { RefCell::new(Vec::new()) };
}

/// Looks at the stack of this thread, or does nothing when the thread is about to end.
fn with_stack<T>(look: impl FnOnce(&mut Vec<Arc<Context>>) -> T) -> Option<T> {
    STACK.try_with(|stack| look(&mut stack.borrow_mut())).ok()
}

/// A number of this thread that no other has.
pub(super) fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

impl Context {
    fn create(driver: &Driver, device: u32, flags: u32, primary: bool, version: u32) -> Arc<Self> {
        let context = driver.contexts.insert(|handle| Self {
            handle,
            id: driver.new_id(),
            device,
            primary,
            flags: AtomicU32::new(flags),
            version,
            limits: Mutex::default(),
            cache: AtomicU32::new(0),
            banks: AtomicU32::new(1),
            sticky: AtomicU32::new(0),
            alive: AtomicBool::new(true),
            peers: Mutex::default(),
            legacy: OnceLock::new(),
            own: Mutex::default(),
        });
        let legacy = Stream::create(driver, &context, stream::Role::Legacy, 0, 0);
        // Nobody else knows the context yet.
        let _ = context.legacy.set(legacy);
        context
    }
    /// The default stream that all threads share.
    pub(super) fn legacy(&self) -> Answer<Arc<Stream>> {
        self.legacy.get().cloned().ok_or(Status::INVALID_CONTEXT)
    }
    /// The default stream of this thread.
    pub(super) fn own(self: &Arc<Self>, driver: &Driver) -> Arc<Stream> {
        let mut own = lock(&self.own);
        let stream = own
            .entry(thread_number())
            .or_insert_with(|| Stream::create(driver, self, stream::Role::PerThread, 0, 0));
        Arc::clone(stream)
    }
    /// Whether it was not destroyed.
    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }
    /// The error that a kernel left.
    pub(super) fn health(&self) -> Answer {
        match self.sticky.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Status(code)),
        }
    }
    /// Leaves an error: the first one stays.
    pub(super) fn spoil(&self, status: Status) {
        let _ = self
            .sticky
            .compare_exchange(0, status.0, Ordering::AcqRel, Ordering::Acquire);
    }
    /// Its streams, the default ones too.
    pub(super) fn streams(&self, driver: &Driver) -> Vec<Arc<Stream>> {
        let mut streams = driver.streams.all();
        streams.retain(|stream| stream.context.handle == self.handle);
        streams
    }
    /// Waits for all its work.
    pub(super) fn wait(&self, driver: &Driver) -> Answer {
        for stream in self.streams(driver) {
            stream.wait();
        }
        self.health()
    }
    /// Lets go of everything that it owns.
    fn tear_down(&self, driver: &Driver) {
        for stream in self.streams(driver) {
            capture::abandon(driver, &stream);
            stream.wait();
        }
        self.alive.store(false, Ordering::Release);
        for stream in self.streams(driver) {
            if !stream.is_legacy() || !self.primary {
                driver.streams.remove(stream.handle);
            }
        }
        lock(&self.own).clear();
        for event in driver.events.all() {
            if event.context.handle == self.handle {
                driver.events.remove(event.handle);
            }
        }
        for module in driver.modules.all() {
            if module.context.handle == self.handle {
                module.unload(driver);
            }
        }
        driver.heap.free_context(driver, self.handle);
        lock(&self.peers).clear();
        if !self.primary {
            driver.contexts.remove(self.handle);
        }
    }
    /// Makes a primary context new again.
    fn revive(&self, flags: u32) {
        self.sticky.store(0, Ordering::Release);
        self.flags.store(flags, Ordering::Release);
        lock(&self.limits).clear();
        self.alive.store(true, Ordering::Release);
    }
    fn limit(&self, limit: u32) -> Answer<usize> {
        if let Some(&value) = lock(&self.limits).get(&limit) {
            return Ok(value);
        }
        match limit {
            0 => Ok(1024),
            1 => Ok(1 << 20),
            2 => Ok(8 << 20),
            3 => Ok(2),
            4 => Ok(2048),
            5 => Ok(64),
            6..=9 => Ok(0),
            _ => Err(Status::UNSUPPORTED_LIMIT),
        }
    }
}

/// The current context, whatever became of it.
fn top() -> Option<Arc<Context>> {
    with_stack(|stack| stack.last().cloned()).flatten()
}

/// The current context, which a call needs: initialised, there, not destroyed, and in order.
pub(super) fn current() -> Answer<Arc<Context>> {
    let context = current_any()?;
    context.health()?;
    Ok(context)
}

/// The current context, in order or not.
pub(super) fn current_any() -> Answer<Arc<Context>> {
    driver()?;
    refuse_callback()?;
    let context = top().ok_or(Status::INVALID_CONTEXT)?;
    if !context.is_alive() {
        return Err(Status::CONTEXT_IS_DESTROYED);
    }
    Ok(context)
}

/// Functions of the program that streams run may not wait for streams.
pub(super) fn refuse_callback() -> Answer {
    if in_callback() {
        return Err(Status::NOT_PERMITTED);
    }
    Ok(())
}

/// A context by handle; 0 is the current one.
pub(super) fn by_handle(handle: Handle) -> Answer<Arc<Context>> {
    if handle == 0 {
        return current();
    }
    let context = driver()?.contexts.find(handle);
    let context = context.ok_or(Status::INVALID_CONTEXT)?;
    if !context.is_alive() {
        return Err(Status::CONTEXT_IS_DESTROYED);
    }
    Ok(context)
}

/// The context of a device that work without a context takes: its primary one.
pub(super) fn primary_of(driver: &Driver, device: u32) -> Option<Arc<Context>> {
    let device = driver.devices.get(device as usize)?;
    let handle = lock(&device.primary).context;
    driver.contexts.find(handle)
}

fn create(out: Out<Handle>, flags: u32, device: c_int, version: u32) -> Answer {
    let driver = driver()?;
    out.check()?;
    if flags & !KNOWN_FLAGS != 0 || (flags & 7).count_ones() > 1 {
        return Err(Status::INVALID_VALUE);
    }
    let device = driver.device(device)?;
    let context = Context::create(driver, device.ordinal, flags, false, version);
    with_stack(|stack| stack.push(Arc::clone(&context)));
    out.put(context.handle)
}

/// The primary context of a device, which is made if nobody has it, and kept until it is released.
pub(super) fn retain(driver: &Driver, device: c_int) -> Answer<Handle> {
    let device = driver.device(device)?;
    refuse_callback()?;
    let mut primary = lock(&device.primary);
    primary.count += 1;
    if primary.context == 0 {
        let context = Context::create(driver, device.ordinal, primary.flags, true, 3020);
        primary.context = context.handle;
    } else if primary.count == 1 {
        let context = driver.contexts.get(primary.context)?;
        context.revive(primary.flags);
    }
    Ok(primary.context)
}

api! {
    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) {
        let driver = driver()?;
        context.check()?;
        context.put(retain(driver, device)?)
    }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        let driver = driver()?;
        let device = driver.device(device)?;
        refuse_callback()?;
        // Whoever retains it meanwhile waits for the end of the teardown.
        let mut primary = lock(&device.primary);
        if primary.count == 0 {
            return Err(Status::INVALID_CONTEXT);
        }
        primary.count -= 1;
        if primary.count == 0 {
            driver.contexts.get(primary.context)?.tear_down(driver);
        }
        Ok(())
    }
    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        let driver = driver()?;
        let device = driver.device(device)?;
        refuse_callback()?;
        let primary = lock(&device.primary);
        let Some(context) = driver.contexts.find(primary.context) else {
            return Ok(());
        };
        if context.is_alive() {
            context.tear_down(driver);
        }
        if primary.count > 0 {
            context.revive(primary.flags);
        }
        Ok(())
    }
    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) {
        let driver = driver()?;
        let device = driver.device(device)?;
        if flags & !KNOWN_FLAGS != 0 || (flags & 7).count_ones() > 1 {
            return Err(Status::INVALID_VALUE);
        }
        refuse_callback()?;
        let mut primary = lock(&device.primary);
        primary.flags = flags;
        if let Some(context) = driver.contexts.find(primary.context) {
            context.flags.store(flags, Ordering::Release);
        }
        Ok(())
    }
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let driver = driver()?;
        let device = driver.device(device)?;
        refuse_callback()?;
        let primary = lock(&device.primary);
        flags.put(primary.flags)?;
        active.put(c_int::from(primary.count > 0))
    }
    fn cuCtxCreate_v2(context: Out<Handle>, flags: c_uint, device: c_int) {
        create(context, flags, device, 3020)
    }
    fn cuCtxCreate_v3(
        context: Out<Handle>, _affinity: In<Affinity>, count: c_int, flags: c_uint, device: c_int,
    ) {
        driver()?;
        if count != 0 {
            return Err(Status::UNSUPPORTED_EXEC_AFFINITY);
        }
        create(context, flags, device, 3030)
    }
    fn cuCtxCreate_v4(context: Out<Handle>, params: In<ContextParams>, flags: c_uint, device: c_int) {
        driver()?;
        if !params.is_null() {
            let params = params.get()?;
            if params.affinity_count != 0 {
                return Err(Status::UNSUPPORTED_EXEC_AFFINITY);
            }
            if params.graphics != 0 {
                return Err(Status::NOT_SUPPORTED);
            }
        }
        create(context, flags, device, 3040)
    }
    fn cuCtxDestroy_v2(context: Handle) {
        let driver = driver()?;
        refuse_callback()?;
        let context = driver.contexts.find(context).ok_or(Status::INVALID_CONTEXT)?;
        if context.primary || !context.is_alive() {
            return Err(Status::INVALID_CONTEXT);
        }
        context.tear_down(driver);
        with_stack(|stack| {
            if stack.last().is_some_and(|top| top.handle == context.handle) {
                stack.pop();
            }
        });
        Ok(())
    }
    fn cuCtxPushCurrent_v2(context: Handle) {
        let context = driver()?.contexts.find(context).ok_or(Status::INVALID_CONTEXT)?;
        with_stack(|stack| stack.push(context));
        Ok(())
    }
    fn cuCtxPopCurrent_v2(context: Out<Handle>) {
        driver()?;
        let popped = with_stack(|stack| stack.pop()).flatten();
        let popped = popped.ok_or(Status::INVALID_CONTEXT)?;
        context.put_if(popped.handle);
        Ok(())
    }
    fn cuCtxSetCurrent(context: Handle) {
        let driver = driver()?;
        let next = if context == 0 {
            None
        } else {
            Some(driver.contexts.find(context).ok_or(Status::INVALID_CONTEXT)?)
        };
        with_stack(|stack| {
            stack.pop();
            stack.extend(next);
        });
        Ok(())
    }
    fn cuCtxGetCurrent(context: Out<Handle>) {
        driver()?;
        context.put(top().map_or(0, |context| context.handle))
    }
    fn cuCtxGetDevice(device: Out<c_int>) {
        let context = current_any()?;
        device.put(context.device as c_int)
    }
    fn cuCtxGetDevice_v2(device: Out<c_int>, context: Handle) {
        let context = by_handle(context)?;
        device.put(context.device as c_int)
    }
    fn cuCtxGetFlags(flags: Out<c_uint>) {
        let context = current_any()?;
        flags.put(context.flags.load(Ordering::Acquire))
    }
    fn cuCtxSetFlags(flags: c_uint) {
        let context = current_any()?;
        if flags & !KNOWN_FLAGS != 0 || (flags & 7).count_ones() > 1 {
            return Err(Status::INVALID_VALUE);
        }
        context.flags.store(flags, Ordering::Release);
        Ok(())
    }
    fn cuCtxGetId(context: Handle, id: Out<c_ulonglong>) {
        let context = by_handle(context)?;
        id.put(context.id)
    }
    fn cuCtxGetApiVersion(context: Handle, version: Out<c_uint>) {
        let context = by_handle(context)?;
        version.put(context.version)
    }
    fn cuCtxSynchronize() {
        let context = current()?;
        stream::refuse_while_capturing(&context)?;
        context.wait(driver()?)
    }
    fn cuCtxSynchronize_v2(context: Handle) {
        let context = by_handle(context)?;
        context.health()?;
        stream::refuse_while_capturing(&context)?;
        context.wait(driver()?)
    }
    fn cuCtxSetLimit(limit: c_uint, value: usize) {
        let context = current()?;
        context.limit(limit)?;
        if limit == 5 && value > 128 {
            return Err(Status::INVALID_VALUE);
        }
        lock(&context.limits).insert(limit, value);
        Ok(())
    }
    fn cuCtxGetLimit(value: Out<usize>, limit: c_uint) {
        let context = current()?;
        value.put(context.limit(limit)?)
    }
    fn cuCtxGetCacheConfig(config: Out<c_uint>) {
        config.put(current()?.cache.load(Ordering::Relaxed))
    }
    fn cuCtxSetCacheConfig(config: c_uint) {
        let context = current()?;
        if config > 3 {
            return Err(Status::INVALID_VALUE);
        }
        context.cache.store(config, Ordering::Relaxed);
        Ok(())
    }
    fn cuCtxGetSharedMemConfig(config: Out<c_uint>) {
        config.put(current()?.banks.load(Ordering::Relaxed))
    }
    fn cuCtxSetSharedMemConfig(config: c_uint) {
        let context = current()?;
        if config > 2 {
            return Err(Status::INVALID_VALUE);
        }
        // Every device here has banks of four bytes, whatever is asked for.
        context.banks.store(1, Ordering::Relaxed);
        Ok(())
    }
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        current()?;
        least.put_if(0);
        greatest.put_if(stream::GREATEST_PRIORITY);
        Ok(())
    }
    fn cuCtxResetPersistingL2Cache() {
        current().map(|_| ())
    }
    fn cuCtxGetExecAffinity(_affinity: Out<Affinity>, _kind: c_uint) {
        current()?;
        Err(Status::UNSUPPORTED_EXEC_AFFINITY)
    }
    fn cuCtxAttach(context: Out<Handle>, flags: c_uint) {
        let current = current()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        context.put(current.handle)
    }
    fn cuCtxDetach(context: Handle) {
        by_handle(context).map(|_| ())
    }
    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        let context = current()?;
        let driver = driver()?;
        let peer = driver.contexts.find(peer).ok_or(Status::INVALID_CONTEXT)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if peer.device == context.device {
            return Err(if peer.handle == context.handle {
                Status::INVALID_DEVICE
            } else {
                Status::PEER_ACCESS_UNSUPPORTED
            });
        }
        if !lock(&context.peers).insert(peer.handle) {
            return Err(Status::PEER_ACCESS_ALREADY_ENABLED);
        }
        Ok(())
    }
    fn cuCtxDisablePeerAccess(peer: Handle) {
        let context = current()?;
        let peer = driver()?.contexts.find(peer).ok_or(Status::INVALID_CONTEXT)?;
        if !lock(&context.peers).remove(&peer.handle) {
            return Err(Status::PEER_ACCESS_NOT_ENABLED);
        }
        Ok(())
    }
    fn cuFlushGPUDirectRDMAWrites(_target: c_uint, _scope: c_uint) {
        current().map(|_| ())
    }
    fn cuProfilerStart() {
        current().map(|_| ())
    }
    fn cuProfilerStop() {
        current().map(|_| ())
    }
}

alias! {
    cuCtxCreate = cuCtxCreate_v2(context: Out<Handle>, flags: c_uint, device: c_int);
    cuCtxDestroy = cuCtxDestroy_v2(context: Handle);
    cuCtxPushCurrent = cuCtxPushCurrent_v2(context: Handle);
    cuCtxPopCurrent = cuCtxPopCurrent_v2(context: Out<Handle>);
    cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuDevicePrimaryCtxReset = cuDevicePrimaryCtxReset_v2(device: c_int);
    cuDevicePrimaryCtxSetFlags = cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint);
}
