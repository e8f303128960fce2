//! Modules and their functions.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::Mutex;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::context;
use crate::simulator::driver::context::Context;
use crate::simulator::driver::image;
use crate::simulator::driver::image::Refusal;
use crate::simulator::driver::jit::Jit;
use crate::simulator::driver::library;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::launch::Entry;
use crate::simulator::launch::LoadedModule;

/// A module in a context.
pub(super) struct Module {
    pub(super) handle: Handle,
    pub(super) context: Arc<Context>,
    pub(super) loaded: LoadedModule,
    /// The target that the PTX names, times ten.
    target: u32,
    functions: Mutex<BTreeMap<String, Arc<Function>>>,
}

/// What a program can set of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settable {
    /// Dynamic shared memory that launches may ask for; the default without.
    pub(super) dynamic: Option<u32>,
    pub(super) carveout: i32,
    pub(super) non_portable: bool,
    pub(super) cluster: [u32; 3],
    policy: i32,
}

/// A function of a module.
pub(super) struct Function {
    pub(super) handle: Handle,
    pub(super) module: Arc<Module>,
    pub(super) name: String,
    c_name: CString,
    pub(super) set: Mutex<Settable>,
}

impl Module {
    /// Loads PTX into a context.
    pub(super) fn load(
        driver: &Driver,
        context: &Arc<Context>,
        text: &str,
    ) -> Result<Arc<Self>, Refusal> {
        let loaded = LoadedModule::load(text, &driver.spec, context.device, &driver.space);
        let loaded = loaded
            .map_err(|diagnostic| Refusal::new(Status::INVALID_PTX, diagnostic.to_string()))?;
        let target = image::target_of(text).map_or(0, |target| target.major * 10 + target.minor);
        Ok(driver.modules.insert(|handle| Self {
            handle,
            context: Arc::clone(context),
            loaded,
            target,
            functions: Mutex::default(),
        }))
    }
    /// Forgets its handle and those of its functions.
    pub(super) fn unload(&self, driver: &Driver) {
        driver.modules.remove(self.handle);
        for function in std::mem::take(&mut *lock(&self.functions)).into_values() {
            driver.functions.remove(function.handle);
        }
    }
    /// The function of a name.
    pub(super) fn function(self: &Arc<Self>, driver: &Driver, name: &str) -> Answer<Arc<Function>> {
        if let Some(function) = lock(&self.functions).get(name) {
            return Ok(Arc::clone(function));
        }
        self.loaded.entry(name).ok_or(Status::NOT_FOUND)?;
        let c_name = CString::new(name).map_err(|_| Status::NOT_FOUND)?;
        let mut functions = lock(&self.functions);
        let function = functions.entry(name.to_owned()).or_insert_with(|| {
            driver.functions.insert(|handle| Function {
                handle,
                module: Arc::clone(self),
                name: name.to_owned(),
                c_name,
                set: Mutex::new(Settable {
                    dynamic: None,
                    carveout: -1,
                    non_portable: false,
                    cluster: [0; 3],
                    policy: 0,
                }),
            })
        });
        Ok(Arc::clone(function))
    }
    /// The names of its kernels, in the order of the text.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = self.loaded.entries();
        entries.iter().map(|entry| entry.name.clone()).collect()
    }
}

impl Function {
    /// The kernel itself.
    pub(super) fn entry(&self) -> Answer<&Entry> {
        self.module
            .loaded
            .entry(&self.name)
            .ok_or(Status::NOT_FOUND)
    }
    /// Dynamic shared memory that a launch may ask for.
    pub(super) fn most_dynamic(&self, driver: &Driver) -> Answer<u32> {
        let fixed = self.entry()?.static_shared;
        let default = (driver.spec.shared_per_block.0 as u32).saturating_sub(fixed);
        Ok(lock(&self.set).dynamic.unwrap_or(default))
    }
    /// The value of an attribute.
    pub(super) fn attribute(&self, driver: &Driver, attribute: u32) -> Answer<c_int> {
        let entry = self.entry()?;
        let set = *lock(&self.set);
        let capability = driver.spec.capability;
        let required = entry.cluster.unwrap_or(set.cluster);
        let value = match attribute {
            0 => entry.max_threads.min(driver.spec.threads_per_block) as c_int,
            1 => entry.static_shared as c_int,
            2 => c_int::try_from(entry.const_bytes).unwrap_or(c_int::MAX),
            3 => entry.local_bytes as c_int,
            4 => entry.registers as c_int,
            5 => self.module.target as c_int,
            6 => (capability.major * 10 + capability.minor) as c_int,
            7 => 0,
            8 => self.most_dynamic(driver)? as c_int,
            9 => set.carveout,
            10 => c_int::from(entry.cluster.is_some()),
            11..=13 => required[attribute as usize - 11] as c_int,
            14 => c_int::from(set.non_portable),
            15 => set.policy,
            _ => return Err(Status::INVALID_VALUE),
        };
        Ok(value)
    }
    /// Sets an attribute.
    pub(super) fn set_attribute(&self, driver: &Driver, attribute: u32, value: c_int) -> Answer {
        let fixed = u64::from(self.entry()?.static_shared);
        let positive = u32::try_from(value).ok();
        let mut set = lock(&self.set);
        match attribute {
            8 => {
                let bytes = positive.ok_or(Status::INVALID_VALUE)?;
                if fixed + u64::from(bytes) > driver.spec.shared_per_block_optin.0 {
                    return Err(Status::INVALID_VALUE);
                }
                set.dynamic = Some(bytes);
            }
            9 if (-1..=100).contains(&value) => set.carveout = value,
            11..=13 => {
                let size = positive.ok_or(Status::INVALID_VALUE)?;
                if self.entry()?.cluster.is_some() {
                    return Err(Status::NOT_PERMITTED);
                }
                set.cluster[attribute as usize - 11] = size;
            }
            14 if (0..=1).contains(&value) => set.non_portable = value == 1,
            15 if (0..=2).contains(&value) => set.policy = value,
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }
}

/// The function of a handle; a kernel's handle is that of its function in the current context.
pub(super) fn resolve(handle: Handle) -> Answer<Arc<Function>> {
    let driver = driver()?;
    if let Some(function) = driver.functions.find(handle) {
        return Ok(function);
    }
    match driver.kernels.find(handle) {
        Some(kernel) => kernel.function(driver, &context::current()?),
        None => Err(Status::INVALID_HANDLE),
    }
}

/// Loads an image into the current context.
fn load(out: Out<Handle>, image: In<u8>, jit: &Jit) -> Answer {
    let context = context::current()?;
    out.check()?;
    if image.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let driver = driver()?;
    let started = std::time::Instant::now();
    let found = image::from_pointer(image, driver.spec.capability);
    let module = found.and_then(|found| Module::load(driver, &context, &found.text));
    let module = module.map_err(|refusal| jit.refuse(started.elapsed(), refusal))?;
    jit.finish(started.elapsed(), "", "");
    out.put(module.handle)
}

/// Reads a file as an image, with an end for a text.
pub(super) fn read_file(name: In<c_char>) -> Answer<Vec<u8>> {
    let mut bytes = std::fs::read(name.text()?).map_err(|_| Status::FILE_NOT_FOUND)?;
    bytes.push(0);
    Ok(bytes)
}

api! {
    fn cuModuleLoadData(module: Out<Handle>, image: In<u8>) {
        load(module, image, &Jit::none())
    }
    fn cuModuleLoadDataEx(
        module: Out<Handle>, image: In<u8>, count: c_uint, options: In<c_uint>, values: Out<usize>,
    ) {
        context::current()?;
        load(module, image, &Jit::read(count, options, values)?)
    }
    fn cuModuleLoadFatBinary(module: Out<Handle>, image: In<u8>) {
        load(module, image, &Jit::none())
    }
    fn cuModuleLoad(module: Out<Handle>, name: In<c_char>) {
        context::current()?;
        let bytes = read_file(name)?;
        load(module, In::new(bytes.as_ptr()), &Jit::none())
    }
    fn cuModuleUnload(module: Handle) {
        let context = context::current()?;
        let driver = driver()?;
        let module = driver.modules.get(module)?;
        context.wait(driver)?;
        if module.context.handle != context.handle {
            // What its kernels left is for its own callers to see.
            let _ = module.context.wait(driver);
        }
        module.unload(driver);
        Ok(())
    }
    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: In<c_char>) {
        context::current()?;
        function.check()?;
        let driver = driver()?;
        let module = driver.modules.get(module)?;
        function.put(module.function(driver, name.text()?)?.handle)
    }
    fn cuModuleGetGlobal_v2(address: Out<Address>, bytes: Out<usize>, module: Handle, name: In<c_char>) {
        context::current()?;
        let module = driver()?.modules.get(module)?;
        let (base, size) = module.loaded.global(name.text()?).ok_or(Status::NOT_FOUND)?;
        address.put_if(base);
        bytes.put_if(size as usize);
        Ok(())
    }
    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: Handle) {
        context::current()?;
        let module = driver()?.modules.get(module)?;
        count.put(module.names().len() as c_uint)
    }
    fn cuModuleEnumerateFunctions(functions: Out<Handle>, count: c_uint, module: Handle) {
        context::current()?;
        functions.check()?;
        let driver = driver()?;
        let module = driver.modules.get(module)?;
        for (index, name) in module.names().iter().take(count as usize).enumerate() {
            functions.put_at(index, module.function(driver, name)?.handle);
        }
        Ok(())
    }
    fn cuModuleGetLoadingMode(mode: Out<c_uint>) {
        driver()?;
        mode.put(1)
    }
    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_uint, function: Handle) {
        let driver = driver()?;
        value.check()?;
        value.put(resolve(function)?.attribute(driver, attribute)?)
    }
    fn cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int) {
        let driver = driver()?;
        resolve(function)?.set_attribute(driver, attribute, value)
    }
    fn cuFuncSetCacheConfig(function: Handle, config: c_uint) {
        resolve(function)?;
        if config > 3 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuFuncSetSharedMemConfig(function: Handle, config: c_uint) {
        resolve(function)?;
        if config > 2 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuFuncGetModule(module: Out<Handle>, function: Handle) {
        module.put(resolve(function)?.module.handle)
    }
    fn cuFuncGetName(name: Out<usize>, function: Handle) {
        let function = resolve(function)?;
        name.put(function.c_name.as_ptr() as usize)
    }
    fn cuFuncGetParamInfo(function: Handle, index: usize, offset: Out<usize>, size: Out<usize>) {
        offset.check()?;
        let function = resolve(function)?;
        let param = function.entry()?.params.get(index).ok_or(Status::INVALID_VALUE)?;
        offset.put(param.offset as usize)?;
        size.put_if(param.size as usize);
        Ok(())
    }
    fn cuFuncGetParamCount(function: Handle, count: Out<usize>) {
        count.put(resolve(function)?.entry()?.params.len())
    }
    fn cuFuncIsLoaded(state: Out<c_uint>, function: Handle) {
        resolve(function)?;
        state.put(1)
    }
    fn cuFuncLoad(function: Handle) {
        resolve(function).map(|_| ())
    }
    fn cuModuleGetTexRef(_texture: Out<Handle>, module: Handle, _name: In<c_char>) {
        driver()?.modules.get(module)?;
        Err(Status::NOT_FOUND)
    }
    fn cuModuleGetSurfRef(_surface: Out<Handle>, module: Handle, _name: In<c_char>) {
        driver()?.modules.get(module)?;
        Err(Status::NOT_FOUND)
    }
    fn cuLibraryGetUnifiedFunction(_pointer: Out<usize>, library: Handle, _name: In<c_char>) {
        library::resolve(library)?;
        Err(Status::NOT_FOUND)
    }
}
