//! Libraries: code that is loaded for every context, and its kernels.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Instant;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::context;
use crate::simulator::driver::context::Context;
use crate::simulator::driver::image;
use crate::simulator::driver::jit::Jit;
use crate::simulator::driver::module::Function;
use crate::simulator::driver::module::Module;
use crate::simulator::driver::module::read_file;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::state::say;
use crate::simulator::driver::status::Status;

/// A library.
pub(super) struct Library {
    pub(super) handle: Handle,
    text: String,
    /// Its module in each context that used it.
    modules: Mutex<BTreeMap<Handle, Arc<Module>>>,
    kernels: Mutex<BTreeMap<String, Arc<Kernel>>>,
}

/// A kernel of a library.
pub(super) struct Kernel {
    pub(super) handle: Handle,
    library: Arc<Library>,
    name: String,
    c_name: CString,
    /// Attributes that the program set, by device.
    set: Mutex<BTreeMap<(u32, u32), c_int>>,
}

impl Library {
    /// The library's module in a context.
    fn module(&self, driver: &Driver, context: &Arc<Context>) -> Answer<Arc<Module>> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&context.handle)
            && driver.modules.find(module.handle).is_some()
        {
            return Ok(Arc::clone(module));
        }
        let module = Module::load(driver, context, &self.text).map_err(|refusal| {
            say(&refusal.message);
            refusal.status
        })?;
        modules.insert(context.handle, Arc::clone(&module));
        Ok(module)
    }
    /// Any module of it, for what is the same in all.
    fn any_module(&self, driver: &Driver) -> Answer<Arc<Module>> {
        let loaded = lock(&self.modules).values().next().cloned();
        match loaded {
            Some(module) => Ok(module),
            None => self.module(driver, &context::current()?),
        }
    }
    fn kernel(self: &Arc<Self>, driver: &Driver, name: &str) -> Answer<Arc<Kernel>> {
        let mut kernels = lock(&self.kernels);
        if let Some(kernel) = kernels.get(name) {
            return Ok(Arc::clone(kernel));
        }
        let module = self.any_module(driver)?;
        module.loaded.entry(name).ok_or(Status::NOT_FOUND)?;
        let c_name = CString::new(name).map_err(|_| Status::NOT_FOUND)?;
        let kernel = driver.kernels.insert(|handle| Kernel {
            handle,
            library: Arc::clone(self),
            name: name.to_owned(),
            c_name,
            set: Mutex::default(),
        });
        kernels.insert(name.to_owned(), Arc::clone(&kernel));
        Ok(kernel)
    }
}

impl Kernel {
    /// The kernel's function in a context.
    pub(super) fn function(
        &self,
        driver: &Driver,
        context: &Arc<Context>,
    ) -> Answer<Arc<Function>> {
        let module = self.library.module(driver, context)?;
        let function = module.function(driver, &self.name)?;
        for (&(device, attribute), &value) in lock(&self.set).iter() {
            if device == context.device {
                function.set_attribute(driver, attribute, value)?;
            }
        }
        Ok(function)
    }
    /// The kernel's function in some context of a device.
    fn on_device(&self, driver: &Driver, device: c_int) -> Answer<Arc<Function>> {
        let device = driver.device(device)?.ordinal;
        let current = context::current().ok();
        let current = current.filter(|context| context.device == device);
        let context = current.or_else(|| context::primary_of(driver, device));
        let context = context.filter(|context| context.is_alive());
        self.function(driver, &context.ok_or(Status::INVALID_CONTEXT)?)
    }
}

/// The library of a handle.
pub(super) fn resolve(handle: Handle) -> Answer<Arc<Library>> {
    driver()?.libraries.get(handle)
}

fn kernel(handle: Handle) -> Answer<Arc<Kernel>> {
    driver()?.kernels.get(handle)
}

fn load(out: Out<Handle>, image: In<u8>, jit: &Jit) -> Answer {
    let driver = driver()?;
    out.check()?;
    if image.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let started = Instant::now();
    let refuse = |refusal| jit.refuse(started.elapsed(), refusal);
    let found = image::from_pointer(image, driver.spec.capability).map_err(refuse)?;
    let text = found.text;
    let mut modules = BTreeMap::new();
    // With a context at hand, what is wrong is found now rather than at the first use.
    if let Ok(context) = context::current() {
        let module = Module::load(driver, &context, &text).map_err(refuse)?;
        modules.insert(context.handle, module);
    }
    jit.finish(started.elapsed(), "", "");
    let library = driver.libraries.insert(|handle| Library {
        handle,
        text,
        modules: Mutex::new(modules),
        kernels: Mutex::default(),
    });
    out.put(library.handle)
}

fn check_options(count: u32, options: In<c_uint>) -> Answer {
    let options = options.array(count as usize)?;
    if options.iter().any(|&option| option > 1) {
        return Err(Status::INVALID_VALUE);
    }
    Ok(())
}

api! {
    fn cuLibraryLoadData(
        library: Out<Handle>, image: In<u8>, options: In<c_uint>, values: Out<usize>, count: c_uint,
        library_options: In<c_uint>, _library_values: In<usize>, library_count: c_uint,
    ) {
        driver()?;
        check_options(library_count, library_options)?;
        load(library, image, &Jit::read(count, options, values)?)
    }
    fn cuLibraryLoadFromFile(
        library: Out<Handle>, name: In<c_char>, options: In<c_uint>, values: Out<usize>, count: c_uint,
        library_options: In<c_uint>, _library_values: In<usize>, library_count: c_uint,
    ) {
        driver()?;
        check_options(library_count, library_options)?;
        let bytes = read_file(name)?;
        load(library, In::new(bytes.as_ptr()), &Jit::read(count, options, values)?)
    }
    fn cuLibraryUnload(library: Handle) {
        let driver = driver()?;
        let library = driver.libraries.remove(library).ok_or(Status::INVALID_HANDLE)?;
        for kernel in std::mem::take(&mut *lock(&library.kernels)).into_values() {
            driver.kernels.remove(kernel.handle);
        }
        for module in std::mem::take(&mut *lock(&library.modules)).into_values() {
            module.unload(driver);
        }
        Ok(())
    }
    fn cuLibraryGetKernel(out: Out<Handle>, library: Handle, name: In<c_char>) {
        let driver = driver()?;
        out.check()?;
        let library = resolve(library)?;
        out.put(library.kernel(driver, name.text()?)?.handle)
    }
    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        let driver = driver()?;
        let library = resolve(library)?;
        count.put(library.any_module(driver)?.names().len() as c_uint)
    }
    fn cuLibraryEnumerateKernels(out: Out<Handle>, count: c_uint, library: Handle) {
        let driver = driver()?;
        out.check()?;
        let library = resolve(library)?;
        let names = library.any_module(driver)?.names();
        for (index, name) in names.iter().take(count as usize).enumerate() {
            out.put_at(index, library.kernel(driver, name)?.handle);
        }
        Ok(())
    }
    fn cuLibraryGetModule(out: Out<Handle>, library: Handle) {
        let driver = driver()?;
        out.check()?;
        let library = resolve(library)?;
        out.put(library.module(driver, &context::current()?)?.handle)
    }
    fn cuLibraryGetGlobal(address: Out<Address>, bytes: Out<usize>, library: Handle, name: In<c_char>) {
        let driver = driver()?;
        let library = resolve(library)?;
        let module = library.module(driver, &context::current()?)?;
        let (base, size) = module.loaded.global(name.text()?).ok_or(Status::NOT_FOUND)?;
        address.put_if(base);
        bytes.put_if(size as usize);
        Ok(())
    }
    fn cuLibraryGetManaged(
        _address: Out<Address>, _bytes: Out<usize>, library: Handle, _name: In<c_char>,
    ) {
        resolve(library)?;
        Err(Status::NOT_FOUND)
    }
    fn cuKernelGetFunction(out: Out<Handle>, handle: Handle) {
        let driver = driver()?;
        out.check()?;
        let kernel = kernel(handle)?;
        out.put(kernel.function(driver, &context::current()?)?.handle)
    }
    fn cuKernelGetLibrary(out: Out<Handle>, handle: Handle) {
        out.put(kernel(handle)?.library.handle)
    }
    fn cuKernelGetName(name: Out<usize>, handle: Handle) {
        name.put(kernel(handle)?.c_name.as_ptr() as usize)
    }
    fn cuKernelGetAttribute(value: Out<c_int>, attribute: c_uint, handle: Handle, device: c_int) {
        let driver = driver()?;
        value.check()?;
        let function = kernel(handle)?.on_device(driver, device)?;
        value.put(function.attribute(driver, attribute)?)
    }
    fn cuKernelSetAttribute(attribute: c_uint, value: c_int, handle: Handle, device: c_int) {
        let driver = driver()?;
        let kernel = kernel(handle)?;
        let ordinal = driver.device(device)?.ordinal;
        kernel.on_device(driver, device)?.set_attribute(driver, attribute, value)?;
        lock(&kernel.set).insert((ordinal, attribute), value);
        Ok(())
    }
    fn cuKernelSetCacheConfig(handle: Handle, config: c_uint, device: c_int) {
        driver()?.device(device)?;
        kernel(handle)?;
        if config > 3 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuKernelGetParamInfo(handle: Handle, index: usize, offset: Out<usize>, size: Out<usize>) {
        let driver = driver()?;
        offset.check()?;
        let kernel = kernel(handle)?;
        let module = kernel.library.any_module(driver)?;
        let entry = module.loaded.entry(&kernel.name).ok_or(Status::NOT_FOUND)?;
        let param = entry.params.get(index).ok_or(Status::INVALID_VALUE)?;
        offset.put(param.offset as usize)?;
        size.put_if(param.size as usize);
        Ok(())
    }
    fn cuKernelGetParamCount(handle: Handle, count: Out<usize>) {
        let driver = driver()?;
        let kernel = kernel(handle)?;
        let module = kernel.library.any_module(driver)?;
        let entry = module.loaded.entry(&kernel.name).ok_or(Status::NOT_FOUND)?;
        count.put(entry.params.len())
    }
}
