//! The one driver of the process: its devices, its memory, and the tables behind the handles.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::RwLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::attributes::Facts;
use crate::simulator::driver::context::Context;
use crate::simulator::driver::device::Device;
use crate::simulator::driver::event::Event;
use crate::simulator::driver::graph::Exec;
use crate::simulator::driver::graph::Graph;
use crate::simulator::driver::graph::NodeRef;
use crate::simulator::driver::graph::UserObject;
use crate::simulator::driver::heap::Heap;
use crate::simulator::driver::library::Kernel;
use crate::simulator::driver::library::Library;
use crate::simulator::driver::link::Link;
use crate::simulator::driver::module::Function;
use crate::simulator::driver::module::Module;
use crate::simulator::driver::pool::Pool;
use crate::simulator::driver::report::Journal;
use crate::simulator::driver::settings::Request;
use crate::simulator::driver::settings::Settings;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream::Stream;
use crate::simulator::driver::virtual_memory::Physical;
use crate::simulator::memory::AddressSpace;
use crate::target::GpuSpec;
use crate::wire::target;

/// Locks; what a panic left behind is still good data.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Objects by handle. A handle is used once, so a stale one is never taken for another object.
pub(super) struct Table<T> {
    first: usize,
    next: AtomicU64,
    items: RwLock<BTreeMap<Handle, Arc<T>>>,
}

impl<T> Table<T> {
    fn new(kind: usize) -> Self {
        Self {
            first: (0x5100 + kind) << 32,
            next: AtomicU64::new(1),
            items: RwLock::new(BTreeMap::new()),
        }
    }
    /// A handle that no object has yet.
    pub(super) fn reserve(&self) -> Handle {
        let number = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        self.first + number * 16
    }
    /// Adds the object under a handle from [`Table::reserve`].
    pub(super) fn set(&self, handle: Handle, object: Arc<T>) {
        let mut items = self.items.write().unwrap_or_else(|e| e.into_inner());
        items.insert(handle, object);
    }
    /// Adds an object that knows its handle.
    pub(super) fn insert(&self, make: impl FnOnce(Handle) -> T) -> Arc<T> {
        let handle = self.reserve();
        let object = Arc::new(make(handle));
        self.set(handle, Arc::clone(&object));
        object
    }
    /// The object of a handle.
    pub(super) fn find(&self, handle: Handle) -> Option<Arc<T>> {
        let items = self.items.read().unwrap_or_else(|e| e.into_inner());
        items.get(&handle).cloned()
    }
    /// The object of a handle, or `CUDA_ERROR_INVALID_HANDLE`.
    pub(super) fn get(&self, handle: Handle) -> Answer<Arc<T>> {
        self.find(handle).ok_or(Status::INVALID_HANDLE)
    }
    /// Forgets a handle.
    pub(super) fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        let mut items = self.items.write().unwrap_or_else(|e| e.into_inner());
        items.remove(&handle)
    }
    /// Every object, in the order of their making.
    pub(super) fn all(&self) -> Vec<Arc<T>> {
        let items = self.items.read().unwrap_or_else(|e| e.into_inner());
        items.values().cloned().collect()
    }
}

/// The driver.
pub(super) struct Driver {
    pub(super) settings: Settings,
    pub(super) spec: GpuSpec,
    pub(super) facts: Facts,
    pub(super) devices: Vec<Device>,
    pub(super) space: Arc<AddressSpace>,
    pub(super) heap: Heap,
    pub(super) journal: Journal,
    pub(super) contexts: Table<Context>,
    pub(super) streams: Table<Stream>,
    pub(super) events: Table<Event>,
    pub(super) modules: Table<Module>,
    pub(super) functions: Table<Function>,
    pub(super) libraries: Table<Library>,
    pub(super) kernels: Table<Kernel>,
    pub(super) links: Table<Link>,
    pub(super) graphs: Table<Graph>,
    pub(super) nodes: Table<NodeRef>,
    pub(super) execs: Table<Exec>,
    pub(super) objects: Table<UserObject>,
    pub(super) pools: Table<Pool>,
    pub(super) physical: Table<Physical>,
    ids: AtomicU64,
}

impl Driver {
    /// A number that was not given before.
    pub(super) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
    /// The device of an ordinal.
    pub(super) fn device(&self, ordinal: i32) -> Answer<&Device> {
        usize::try_from(ordinal)
            .ok()
            .and_then(|index| self.devices.get(index))
            .ok_or(Status::INVALID_DEVICE)
    }
}

static DRIVER: OnceLock<Answer<Driver>> = OnceLock::new();
static READY: AtomicBool = AtomicBool::new(false);

/// Says something to whoever watches the program; a program that carries the simulator says it itself.
pub(super) fn say(text: &str) {
    if REQUEST.get().is_some() {
        MESSAGES.with_borrow_mut(|messages| messages.push(text.to_owned()));
        return;
    }
    // Nothing can be done about a closed stderr.
    let _ = writeln!(std::io::stderr(), "simulated GPU: {text}");
}

thread_local! {
    static MESSAGES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What was said on this thread and not yet told.
pub(super) fn take_messages() -> Vec<String> {
    MESSAGES.take()
}

fn build(settings: Settings) -> Answer<Driver> {
    let (journal, failures) = Journal::new(&settings);
    let complaints = settings.complaints.iter().chain(&failures);
    let complaints: Vec<&String> = complaints.collect();
    for complaint in &complaints {
        say(complaint);
    }
    // A run with other settings than those asked for would prove nothing.
    if !complaints.is_empty() {
        return Err(Status::INVALID_VALUE);
    }
    if settings.devices == 0 {
        say("XLA_AOT_SIM_DEVICES is 0, so there is no device");
        return Err(Status::NO_DEVICE);
    }
    let target = target::gpu(&settings.target, None).map_err(|diagnostic| {
        say(&format!("XLA_AOT_SIM_TARGET: {diagnostic}"));
        Status::INVALID_VALUE
    })?;
    let Some(spec) = target.gpu().cloned() else {
        say(&format!(
            "XLA_AOT_SIM_TARGET: `{}` is no GPU",
            settings.target
        ));
        return Err(Status::INVALID_VALUE);
    };
    let facts = Facts::of(&spec);
    let memory = settings.memory.unwrap_or(spec.memory_bytes.0);
    let devices = 0..settings.devices as u32;
    let devices: Vec<Device> = devices
        .map(|ordinal| Device::new(ordinal, memory, &spec.name))
        .collect();
    let driver = Driver {
        journal,
        settings,
        facts,
        devices,
        space: Arc::new(AddressSpace::new()),
        heap: Heap::default(),
        contexts: Table::new(1),
        streams: Table::new(2),
        events: Table::new(3),
        modules: Table::new(4),
        functions: Table::new(5),
        libraries: Table::new(6),
        kernels: Table::new(7),
        links: Table::new(8),
        graphs: Table::new(9),
        nodes: Table::new(10),
        execs: Table::new(11),
        objects: Table::new(12),
        pools: Table::new(13),
        physical: Table::new(14),
        ids: AtomicU64::new(1),
        spec,
    };
    for device in &driver.devices {
        let pool = driver
            .pools
            .insert(|handle| Pool::new(handle, device.ordinal, 0));
        device.set_default_pool(pool.handle);
    }
    Ok(driver)
}

/// What the program that carries the simulator asked for.
static REQUEST: OnceLock<Request> = OnceLock::new();

/// Whether a program asked for counts.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// Sets what the program asks for, when it is the first to do so; later ones must fit it.
pub(super) fn ask(request: &Request) -> Result<(), String> {
    if request.stats {
        COUNTS.store(true, Ordering::Release);
    }
    let first = REQUEST.get_or_init(|| request.clone());
    let other = |asked: Option<&dyn std::fmt::Display>, had: &dyn std::fmt::Display| {
        let asked = asked.map_or_else(String::new, |asked| format!(", `{asked}` was asked for"));
        format!("the simulated devices of this process are `{had}`{asked}")
    };
    match (&request.target, &first.target) {
        (Some(asked), Some(had)) if asked != had => return Err(other(Some(asked), had)),
        (Some(asked), None) => return Err(other(Some(asked), &"what the environment says")),
        _ => {}
    }
    match (request.devices, first.devices) {
        (Some(asked), Some(had)) if asked > had => Err(other(Some(&asked), &had)),
        _ => Ok(()),
    }
}

/// Whether launches are to be counted, whatever the environment says.
pub(super) fn counts() -> bool {
    COUNTS.load(Ordering::Acquire)
}

/// Makes the driver ready, once.
pub(super) fn initialize() -> Answer {
    initialize_with(|name| std::env::var(name).ok())
}

/// Makes the driver ready with settings from `variable`, unless it is.
pub(super) fn initialize_with(variable: impl Fn(&str) -> Option<String>) -> Answer {
    let built = DRIVER.get_or_init(|| {
        let settings = Settings::read(variable);
        build(match REQUEST.get() {
            Some(request) => settings.asked(request),
            None => settings,
        })
    });
    match built {
        Ok(_) => {
            READY.store(true, Ordering::Release);
            Ok(())
        }
        Err(status) => Err(*status),
    }
}

/// The driver, once `cuInit` was called.
pub(super) fn driver() -> Answer<&'static Driver> {
    if !READY.load(Ordering::Acquire) {
        return Err(Status::NOT_INITIALIZED);
    }
    match DRIVER.get() {
        Some(Ok(driver)) => Ok(driver),
        Some(Err(status)) => Err(*status),
        None => Err(Status::NOT_INITIALIZED),
    }
}

/// Whether every call is to be told.
pub(super) fn tracing() -> bool {
    static TRACE: OnceLock<bool> = OnceLock::new();
    *TRACE.get_or_init(|| std::env::var("XLA_AOT_SIM_TRACE").is_ok_and(|text| text != "0"))
}

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function of the program on behalf of a stream: it may not call the driver.
pub(super) fn as_callback<T>(call: impl FnOnce() -> T) -> T {
    let before = IN_CALLBACK.replace(true);
    let value = call();
    IN_CALLBACK.set(before);
    value
}

/// Whether this thread is in such a function.
pub(super) fn in_callback() -> bool {
    IN_CALLBACK.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_settings_are_refused() {
        let status = |name: &'static str, text: &'static str| {
            let settings = Settings::read(|asked| (asked == name).then(|| text.to_owned()));
            build(settings).err()
        };
        let refused = Some(Status::INVALID_VALUE);
        assert_eq!(status("XLA_AOT_SIM_TARGET", "h101"), refused);
        assert_eq!(status("XLA_AOT_SIM_CHECKS", "race"), refused);
        assert_eq!(status("XLA_AOT_SIM_THREADS", "two"), refused);
        assert_eq!(status("XLA_AOT_SIM_DEVICES", "0"), Some(Status::NO_DEVICE));
        assert_eq!(status("XLA_AOT_SIM_TARGET", "a100_sxm_80"), None);
    }
}
