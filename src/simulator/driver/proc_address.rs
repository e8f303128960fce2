//! Entry points by name and version.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::ffi::c_int;
use std::sync::OnceLock;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::context;
use crate::simulator::driver::copy;
use crate::simulator::driver::device;
use crate::simulator::driver::event;
use crate::simulator::driver::fill;
use crate::simulator::driver::graph_exec;
use crate::simulator::driver::graph_nodes;
use crate::simulator::driver::graph_query;
use crate::simulator::driver::launch;
use crate::simulator::driver::library;
use crate::simulator::driver::link;
use crate::simulator::driver::memory;
use crate::simulator::driver::module;
use crate::simulator::driver::occupancy;
use crate::simulator::driver::pointer;
use crate::simulator::driver::pool;
use crate::simulator::driver::state::say;
use crate::simulator::driver::state::tracing;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream_api;
use crate::simulator::driver::tensor_map;
use crate::simulator::driver::types::Uuid;
use crate::simulator::driver::unsupported;
use crate::simulator::driver::virtual_memory;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const PER_THREAD: u64 = 2;

/// Names whose later forms are called in another way, and since which version of the interface the
/// plain name means them. Every other name means its latest form.
const SINCE: &[(&str, &[(i32, &str)])] = &[
    (
        "cuCtxCreate",
        &[(3020, "cuCtxCreate_v2"), (13000, "cuCtxCreate_v4")],
    ),
    ("cuCtxGetDevice", &[(0, "cuCtxGetDevice")]),
    ("cuCtxSynchronize", &[(0, "cuCtxSynchronize")]),
    (
        "cuGetProcAddress",
        &[(11030, "cuGetProcAddress"), (12000, "cuGetProcAddress_v2")],
    ),
    (
        "cuGraphAddDependencies",
        &[
            (10000, "cuGraphAddDependencies"),
            (13000, "cuGraphAddDependencies_v2"),
        ],
    ),
    (
        "cuGraphAddKernelNode",
        &[
            (10000, "cuGraphAddKernelNode"),
            (12000, "cuGraphAddKernelNode_v2"),
        ],
    ),
    (
        "cuGraphAddNode",
        &[(12020, "cuGraphAddNode"), (13000, "cuGraphAddNode_v2")],
    ),
    (
        "cuGraphExecKernelNodeSetParams",
        &[
            (10010, "cuGraphExecKernelNodeSetParams"),
            (12000, "cuGraphExecKernelNodeSetParams_v2"),
        ],
    ),
    (
        "cuGraphExecUpdate",
        &[
            (10020, "cuGraphExecUpdate"),
            (12000, "cuGraphExecUpdate_v2"),
        ],
    ),
    (
        "cuGraphGetEdges",
        &[(10000, "cuGraphGetEdges"), (13000, "cuGraphGetEdges_v2")],
    ),
    (
        "cuGraphInstantiate",
        &[
            (10000, "cuGraphInstantiate_v2"),
            (12000, "cuGraphInstantiateWithFlags"),
        ],
    ),
    (
        "cuGraphKernelNodeGetParams",
        &[
            (10000, "cuGraphKernelNodeGetParams"),
            (12000, "cuGraphKernelNodeGetParams_v2"),
        ],
    ),
    (
        "cuGraphKernelNodeSetParams",
        &[
            (10000, "cuGraphKernelNodeSetParams"),
            (12000, "cuGraphKernelNodeSetParams_v2"),
        ],
    ),
    (
        "cuGraphNodeGetDependencies",
        &[
            (10000, "cuGraphNodeGetDependencies"),
            (13000, "cuGraphNodeGetDependencies_v2"),
        ],
    ),
    (
        "cuGraphNodeGetDependentNodes",
        &[
            (10000, "cuGraphNodeGetDependentNodes"),
            (13000, "cuGraphNodeGetDependentNodes_v2"),
        ],
    ),
    ("cuGraphNodeSetParams", &[(12020, "cuGraphNodeSetParams")]),
    (
        "cuGraphRemoveDependencies",
        &[
            (10000, "cuGraphRemoveDependencies"),
            (13000, "cuGraphRemoveDependencies_v2"),
        ],
    ),
    ("cuLaunchHostFunc", &[(10000, "cuLaunchHostFunc")]),
    (
        "cuMemAdvise",
        &[(8000, "cuMemAdvise"), (13000, "cuMemAdvise_v2")],
    ),
    (
        "cuMemPrefetchAsync",
        &[
            (8000, "cuMemPrefetchAsync"),
            (13000, "cuMemPrefetchAsync_v2"),
        ],
    ),
    (
        "cuMemcpy3DBatchAsync",
        &[
            (12080, "cuMemcpy3DBatchAsync"),
            (13000, "cuMemcpy3DBatchAsync_v2"),
        ],
    ),
    (
        "cuMemcpyBatchAsync",
        &[
            (12080, "cuMemcpyBatchAsync"),
            (13000, "cuMemcpyBatchAsync_v2"),
        ],
    ),
    ("cuMulticastBindAddr", &[(12010, "cuMulticastBindAddr")]),
    ("cuMulticastBindMem", &[(12010, "cuMulticastBindMem")]),
    (
        "cuStreamBeginCapture",
        &[
            (10000, "cuStreamBeginCapture"),
            (10010, "cuStreamBeginCapture_v2"),
        ],
    ),
    (
        "cuStreamGetCaptureInfo",
        &[
            (10010, "cuStreamGetCaptureInfo"),
            (12000, "cuStreamGetCaptureInfo_v2"),
            (13000, "cuStreamGetCaptureInfo_v3"),
        ],
    ),
    ("cuStreamGetCtx", &[(9020, "cuStreamGetCtx")]),
    (
        "cuStreamUpdateCaptureDependencies",
        &[
            (11030, "cuStreamUpdateCaptureDependencies"),
            (13000, "cuStreamUpdateCaptureDependencies_v2"),
        ],
    ),
];

/// Every entry point.
pub(super) fn table() -> &'static BTreeMap<&'static str, usize> {
    static TABLE: OnceLock<BTreeMap<&'static str, usize>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lists = [
            names(),
            device::names(),
            device::aliases(),
            context::names(),
            context::aliases(),
            memory::names(),
            memory::aliases(),
            memory::per_thread_names(),
            pool::names(),
            pool::per_thread_names(),
            virtual_memory::names(),
            copy::names(),
            copy::aliases(),
            copy::per_thread_names(),
            fill::names(),
            fill::aliases(),
            fill::per_thread_names(),
            pointer::names(),
            module::names(),
            library::names(),
            link::names(),
            link::aliases(),
            launch::names(),
            launch::per_thread_names(),
            occupancy::names(),
            stream_api::names(),
            stream_api::aliases(),
            stream_api::per_thread_names(),
            event::names(),
            event::aliases(),
            event::per_thread_names(),
            graph_nodes::names(),
            graph_exec::names(),
            graph_exec::aliases(),
            graph_exec::per_thread_names(),
            graph_query::names(),
            tensor_map::names(),
            unsupported::names(),
        ];
        lists.into_iter().flatten().collect()
    })
}

/// What became of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Address(usize),
    /// No such name.
    Nothing,
    /// The name is newer than the version asked for.
    TooNew,
}

fn find(name: &str, version: i32, flags: u64) -> Found {
    let table = table();
    let symbol = match SINCE.iter().find(|row| row.0 == name) {
        Some((_, forms)) => {
            let form = forms.iter().rev().find(|form| form.0 <= version);
            match form {
                Some((_, symbol)) => (*symbol).to_owned(),
                None => return Found::TooNew,
            }
        }
        None => {
            let versions = (2..=4).rev().map(|number| format!("{name}_v{number}"));
            let latest = versions
                .into_iter()
                .find(|name| table.contains_key(name.as_str()));
            latest.unwrap_or_else(|| name.to_owned())
        }
    };
    if flags & PER_THREAD != 0 {
        for suffix in ["_ptsz", "_ptds"] {
            if let Some(&address) = table.get(format!("{symbol}{suffix}").as_str()) {
                return Found::Address(address);
            }
        }
    }
    table
        .get(symbol.as_str())
        .map_or(Found::Nothing, |&address| Found::Address(address))
}

/// Answers a search for an entry point.
pub(super) fn search(
    name: In<c_char>,
    pointer: Out<usize>,
    version: c_int,
    flags: u64,
    status: Out<c_int>,
) -> Answer {
    let name = name.text()?;
    pointer.check()?;
    if flags & !3 != 0 || flags == 3 || version < 0 {
        return Err(Status::INVALID_VALUE);
    }
    let (address, code) = match find(name, version, flags) {
        Found::Address(address) => (address, 0),
        Found::Nothing => (0, 1),
        Found::TooNew => (0, 2),
    };
    pointer.put(address)?;
    status.put_if(code);
    if address == 0 && status.is_null() {
        return Err(Status::NOT_FOUND);
    }
    Ok(())
}

api! {
    fn cuGetProcAddress_v2(
        name: In<c_char>, pointer: Out<usize>, version: c_int, flags: u64, status: Out<c_int>,
    ) {
        search(name, pointer, version, flags, status)
    }
    fn cuGetProcAddress(name: In<c_char>, pointer: Out<usize>, version: c_int, flags: u64) {
        search(name, pointer, version, flags, Out::null())
    }
    fn cuGetExportTable(table: Out<usize>, id: In<Uuid>) {
        // Tables that no manual describes.
        table.put(0)?;
        if tracing() {
            let id: String = id.get()?.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            say(&format!("refused export table {id}"));
        }
        Err(Status::NOT_FOUND)
    }
    fn cuGetErrorName(error: Status, text: Out<usize>) {
        text.check()?;
        let name = error.c_name();
        text.put(name.map_or(0, |name| name.as_ptr() as usize))?;
        name.map(|_| ()).ok_or(Status::INVALID_VALUE)
    }
    fn cuGetErrorString(error: Status, text: Out<usize>) {
        text.check()?;
        let found = error.c_text();
        text.put(found.map_or(0, |found| found.as_ptr() as usize))?;
        found.map(|_| ()).ok_or(Status::INVALID_VALUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(name: &str) -> Found {
        Found::Address(table()[name])
    }

    #[test]
    fn names_mean_the_form_of_their_version() {
        assert_eq!(find("cuMemAlloc", 12000, 0), address("cuMemAlloc_v2"));
        assert_eq!(find("cuCtxCreate", 12090, 0), address("cuCtxCreate_v2"));
        assert_eq!(find("cuCtxCreate", 13000, 0), address("cuCtxCreate_v4"));
        assert_eq!(
            find("cuGraphInstantiate", 12000, 0),
            address("cuGraphInstantiateWithFlags")
        );
        assert_eq!(
            find("cuLaunchKernel", 12000, 2),
            address("cuLaunchKernel_ptsz")
        );
        assert_eq!(find("cuMemcpyBatchAsync", 12000, 0), Found::TooNew);
        assert_eq!(find("cuNoSuchName", 12000, 0), Found::Nothing);
    }
}
