//! Graphs of captured work.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_ulonglong;

use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::graph_exec::cuGraphExecDestroy;
use crate::simulator::driver::graph_exec::cuGraphInstantiateWithFlags;
use crate::simulator::driver::graph_exec::cuGraphLaunch;
use crate::simulator::driver::graph_exec::cuGraphUpload;
use crate::simulator::driver::graph_query::cuGraphDestroy;
use crate::simulator::driver::graph_query::cuGraphGetNodes;
use crate::simulator::driver::runtime_api::forward;

forward! {
    cudaGraphInstantiate = cuGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, flags: c_ulonglong);
    cudaGraphInstantiateWithFlags = cuGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, flags: c_ulonglong);
    cudaGraphLaunch = cuGraphLaunch(exec: Handle, stream: Handle);
    cudaGraphUpload = cuGraphUpload(exec: Handle, stream: Handle);
    cudaGraphExecDestroy = cuGraphExecDestroy(exec: Handle);
    cudaGraphDestroy = cuGraphDestroy(graph: Handle);
    cudaGraphGetNodes = cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>);
}
