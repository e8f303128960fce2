//! Linking: texts in, an image out. The image of one text is that text.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_char;
use std::ffi::c_uint;
use std::sync::Mutex;
use std::time::Duration;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::context;
use crate::simulator::driver::image;
use crate::simulator::driver::image::Refusal;
use crate::simulator::driver::jit::Jit;
use crate::simulator::driver::module::read_file;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;

/// A link under way.
pub(super) struct Link {
    handle: Handle,
    /// The options of its beginning; addresses of logs are only used in calls.
    options: Vec<(u32, usize)>,
    values: usize,
    text: Mutex<Vec<u8>>,
}

impl Link {
    fn jit(&self) -> Answer<Jit> {
        let options: Vec<u32> = self.options.iter().map(|option| option.0).collect();
        let values = Out::from_address(self.values);
        Jit::read(options.len() as u32, In::new(options.as_ptr()), values)
    }
    fn add(&self, kind: u32, bytes: &[u8]) -> Answer {
        let capability = driver()?.spec.capability;
        let refuse = |refusal: Refusal| match self.jit() {
            Ok(jit) => jit.refuse(Duration::ZERO, refusal),
            Err(status) => status,
        };
        let unsupported = |message: &str| Refusal::new(Status::NOT_SUPPORTED, message);
        // PTX and fat binaries; machine code and objects are not run here.
        if !matches!(kind, 0..=2) {
            let message = "only PTX can be linked for a simulated GPU";
            return Err(refuse(unsupported(message)));
        }
        let found = image::from_bytes(bytes, capability).map_err(refuse)?;
        let mut text = lock(&self.text);
        if !text.is_empty() {
            let message = "a simulated GPU links one PTX text at a time";
            return Err(refuse(unsupported(message)));
        }
        *text = found.text.into_bytes();
        text.push(0);
        Ok(())
    }
}

api! {
    fn cuLinkCreate_v2(count: c_uint, options: In<c_uint>, values: Out<usize>, out: Out<Handle>) {
        context::current()?;
        out.check()?;
        let names = options.array(count as usize)?;
        let given = values.input().array(count as usize)?;
        Jit::read(count, options, values)?;
        let link = driver()?.links.insert(|handle| Link {
            handle,
            options: names.into_iter().zip(given).collect(),
            values: values.address() as usize,
            text: Mutex::default(),
        });
        out.put(link.handle)
    }
    fn cuLinkAddData_v2(
        link: Handle, kind: c_uint, data: In<u8>, size: usize, _name: In<c_char>, count: c_uint,
        options: In<c_uint>, values: Out<usize>,
    ) {
        context::current()?;
        let link = driver()?.links.get(link)?;
        Jit::read(count, options, values)?;
        if data.is_null() || size == 0 {
            return Err(Status::INVALID_VALUE);
        }
        link.add(kind, data.bytes(size))
    }
    fn cuLinkAddFile_v2(
        link: Handle, kind: c_uint, path: In<c_char>, count: c_uint, options: In<c_uint>,
        values: Out<usize>,
    ) {
        context::current()?;
        let link = driver()?.links.get(link)?;
        Jit::read(count, options, values)?;
        link.add(kind, &read_file(path)?)
    }
    fn cuLinkComplete(link: Handle, image: Out<usize>, size: Out<usize>) {
        context::current()?;
        let link = driver()?.links.get(link)?;
        image.check()?;
        let text = lock(&link.text);
        if text.is_empty() {
            return Err(Status::INVALID_VALUE);
        }
        // The bytes stay where they are until the link is destroyed.
        image.put(text.as_ptr() as usize)?;
        size.put_if(text.len());
        drop(text);
        link.jit()?.finish(Duration::ZERO, "", "");
        Ok(())
    }
    fn cuLinkDestroy(link: Handle) {
        driver()?.links.remove(link).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }
}

alias! {
    cuLinkCreate = cuLinkCreate_v2(
        count: c_uint, options: In<c_uint>, values: Out<usize>, out: Out<Handle>);
    cuLinkAddData = cuLinkAddData_v2(
        link: Handle, kind: c_uint, data: In<u8>, size: usize, name: In<c_char>, count: c_uint,
        options: In<c_uint>, values: Out<usize>);
    cuLinkAddFile = cuLinkAddFile_v2(
        link: Handle, kind: c_uint, path: In<c_char>, count: c_uint, options: In<c_uint>,
        values: Out<usize>);
}
