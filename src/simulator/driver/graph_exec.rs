//! Graphs made ready, launched, and changed while they are.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_char;
use std::ffi::c_uint;
use std::ffi::c_ulonglong;
use std::sync::Arc;
use std::sync::Mutex;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::abi::per_thread;
use crate::simulator::driver::event;
use crate::simulator::driver::graph;
use crate::simulator::driver::graph::Exec;
use crate::simulator::driver::graph_nodes;
use crate::simulator::driver::launch;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::types::Copy3d;
use crate::simulator::driver::types::HostParams;
use crate::simulator::driver::types::InstantiateParams;
use crate::simulator::driver::types::KernelParams1;
use crate::simulator::driver::types::KernelParams2;
use crate::simulator::driver::types::MemOpParams;
use crate::simulator::driver::types::SetParams;
use crate::simulator::driver::types::UpdateInfo;
use crate::simulator::driver::work;
use crate::simulator::driver::work::Run;
use crate::simulator::driver::work::Step;
use crate::simulator::driver::work::Work;

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`
const AUTO_FREE: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
const DEVICE_LAUNCH: u64 = 4;

fn instantiate(out: Out<Handle>, graph: Handle, flags: u64) -> Answer {
    let driver = driver()?;
    out.check()?;
    let graph = graph::resolve(graph)?;
    if flags & !0xf != 0 {
        return Err(Status::INVALID_VALUE);
    }
    if flags & DEVICE_LAUNCH != 0 {
        return Err(Status::NOT_SUPPORTED);
    }
    let steps = Arc::new(graph.steps()?);
    let objects = graph.share_objects(driver);
    let exec = driver.execs.insert(|handle| Exec {
        handle,
        id: driver.new_id(),
        flags,
        steps: Mutex::new(steps),
        cells: graph.all_cells(),
        objects,
    });
    out.put(exec.handle)
}

fn resolve(exec: Handle) -> Answer<Arc<Exec>> {
    driver()?.execs.find(exec).ok_or(Status::INVALID_VALUE)
}

/// Changes the step that a node became.
fn change(exec: Handle, node: Handle, change: impl FnOnce(&mut Step) -> Answer) -> Answer {
    let exec = resolve(exec)?;
    let mut steps = lock(&exec.steps);
    let index = steps.iter().position(|step| step.node == node);
    let index = index.ok_or(Status::INVALID_VALUE)?;
    // A run under way keeps the steps that it began with.
    let mut changed = (**steps).clone();
    change(&mut changed[index])?;
    *steps = Arc::new(changed);
    Ok(())
}

fn replace(exec: Handle, node: Handle, work: Work) -> Answer {
    change(exec, node, |step| {
        if graph::kind(&step.work) != graph::kind(&work) {
            return Err(Status::INVALID_VALUE);
        }
        step.work = match (&step.work, work) {
            (Work::Kernel(old), Work::Kernel(new)) => {
                let attributes = old.attributes.clone();
                Work::Kernel(launch::with_attributes(driver()?, &new, attributes)?)
            }
            (_, new) => new,
        };
        Ok(())
    })
}

/// How an update failed: the code, and the node of the new graph.
type Mismatch = (u32, Handle);

/// Whether new steps can take the places of old ones.
fn compare(old: &[Step], new: &[Step]) -> Result<(), Mismatch> {
    for (index, step) in new.iter().enumerate() {
        let Some(before) = old.get(index) else {
            return Err((2, step.node));
        };
        if graph::kind(&before.work) != graph::kind(&step.work) {
            return Err((3, step.node));
        }
        if before.after != step.after {
            return Err((2, step.node));
        }
        match (&before.work, &step.work) {
            (Work::Kernel(before), Work::Kernel(after)) => {
                let contexts = (
                    &before.function.module.context,
                    &after.function.module.context,
                );
                if contexts.0.handle != contexts.1.handle {
                    return Err((7, step.node));
                }
            }
            (Work::Steps(before), Work::Steps(after)) => compare(before, after)?,
            (Work::Branch(before), Work::Branch(after)) => {
                let same = before.kind == after.kind && before.bodies.len() == after.bodies.len();
                if !same || before.address != after.address {
                    return Err((5, step.node));
                }
                for (before, after) in before.bodies.iter().zip(&after.bodies) {
                    compare(before, after)?;
                }
            }
            (Work::Alloc(before), Work::Alloc(after)) if before.base != after.base => {
                return Err((6, step.node));
            }
            _ => {}
        }
    }
    if new.len() < old.len() {
        return Err((2, 0));
    }
    Ok(())
}

fn update(exec: Handle, graph: Handle) -> Answer<Result<(), Mismatch>> {
    let exec = resolve(exec)?;
    let graph = graph::resolve(graph)?;
    let new = graph.steps()?;
    let mut steps = lock(&exec.steps);
    if let Err(mismatch) = compare(&steps, &new) {
        return Ok(Err(mismatch));
    }
    // The nodes of the first graph stay the names of the steps.
    let changed = steps.iter().zip(new).map(|(old, new)| Step {
        node: old.node,
        work: new.work,
        enabled: old.enabled,
        after: new.after,
    });
    let changed = changed.collect();
    *steps = Arc::new(changed);
    Ok(Ok(()))
}

api! {
    fn cuGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, flags: c_ulonglong) {
        instantiate(out, graph, flags)
    }
    fn cuGraphInstantiate_v2(
        out: Out<Handle>, graph: Handle, error: Out<Handle>, log: Out<c_char>, size: usize,
    ) {
        error.put_if(0);
        if size > 0 && !log.is_null() {
            log.put_text("", size)?;
        }
        instantiate(out, graph, 0)
    }
    fn cuGraphInstantiateWithParams(out: Out<Handle>, graph: Handle, params: Out<InstantiateParams>) {
        let wanted = params.get()?;
        let made = instantiate(out, graph, wanted.flags);
        let result = match made {
            Ok(()) => 0,
            Err(Status::NOT_SUPPORTED) => 3,
            Err(_) => 2,
        };
        params.put(InstantiateParams { error_node: 0, result, ..wanted })?;
        made
    }
    fn cuGraphLaunch(exec: Handle, stream: Handle) {
        let exec = resolve(exec)?;
        let stream = stream::resolve(stream)?;
        let steps = Arc::clone(&lock(&exec.steps));
        let frees = exec.flags & AUTO_FREE != 0;
        if !frees && work::has_live(&steps) {
            return Err(Status::INVALID_VALUE);
        }
        let defaults = exec.defaults();
        // The run holds the conditionals' values as long as it needs them.
        let run = Run { steps, defaults, frees, _cells: exec.cells.clone() };
        stream::issue(&stream, Work::Launch(Arc::new(run)))
    }
    fn cuGraphUpload(exec: Handle, stream: Handle) {
        resolve(exec)?;
        stream::resolve(stream).map(|_| ())
    }
    fn cuGraphExecDestroy(exec: Handle) {
        let driver = driver()?;
        let exec = driver.execs.remove(exec).ok_or(Status::INVALID_VALUE)?;
        for (object, count) in &exec.objects {
            if let Some(object) = driver.objects.find(*object) {
                // The counts were taken when the graph was made ready.
                let _ = object.release(driver, *count);
            }
        }
        Ok(())
    }
    fn cuGraphExecGetFlags(exec: Handle, flags: Out<u64>) {
        flags.put(resolve(exec)?.flags)
    }
    fn cuGraphExecGetId(exec: Handle, id: Out<c_uint>) {
        id.put(resolve(exec)?.id as c_uint)
    }
    fn cuGraphExecUpdate_v2(exec: Handle, graph: Handle, info: Out<UpdateInfo>) {
        info.check()?;
        match update(exec, graph)? {
            Ok(()) => info.put(UpdateInfo::default()),
            Err((result, error_node)) => {
                info.put(UpdateInfo { result, error_node, error_from: 0 })?;
                Err(Status::GRAPH_EXEC_UPDATE_FAILURE)
            }
        }
    }
    fn cuGraphExecUpdate(exec: Handle, graph: Handle, node: Out<Handle>, result: Out<c_uint>) {
        match update(exec, graph)? {
            Ok(()) => {
                node.put_if(0);
                result.put(0)
            }
            Err((code, error_node)) => {
                node.put_if(error_node);
                result.put(code)?;
                Err(Status::GRAPH_EXEC_UPDATE_FAILURE)
            }
        }
    }
    fn cuGraphExecKernelNodeSetParams(exec: Handle, node: Handle, params: In<KernelParams1>) {
        replace(exec, node, graph_nodes::kernel(params.get()?, 0, 0)?)
    }
    fn cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, params: In<KernelParams2>) {
        let params = params.get()?;
        let work = graph_nodes::kernel(params.first, params.kernel, params.context)?;
        replace(exec, node, work)
    }
    fn cuGraphExecMemcpyNodeSetParams(
        exec: Handle, node: Handle, params: In<Copy3d>, _context: Handle,
    ) {
        replace(exec, node, graph_nodes::copy(params.get()?)?)
    }
    fn cuGraphExecMemsetNodeSetParams(
        exec: Handle, node: Handle, params: In<SetParams>, _context: Handle,
    ) {
        replace(exec, node, graph_nodes::fill(params.get()?)?)
    }
    fn cuGraphExecHostNodeSetParams(exec: Handle, node: Handle, params: In<HostParams>) {
        replace(exec, node, graph_nodes::host(params.get()?)?)
    }
    fn cuGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, child: Handle) {
        let new = graph::resolve(child)?.steps()?;
        change(exec, node, |step| {
            let Work::Steps(old) = &step.work else {
                return Err(Status::INVALID_VALUE);
            };
            compare(old, &new).map_err(|_| Status::INVALID_VALUE)?;
            step.work = Work::Steps(Arc::new(new));
            Ok(())
        })
    }
    fn cuGraphExecEventRecordNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        replace(exec, node, Work::Record(event::resolve(event)?))
    }
    fn cuGraphExecEventWaitNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        replace(exec, node, Work::WaitEvent(event::resolve(event)?))
    }
    fn cuGraphExecBatchMemOpNodeSetParams(exec: Handle, node: Handle, params: In<MemOpParams>) {
        replace(exec, node, graph_nodes::mem_ops(params.get()?)?)
    }
    fn cuGraphExecNodeSetParams(exec: Handle, node: Handle, params: In<u8>) {
        replace(exec, node, graph_nodes::any(params)?)
    }
    fn cuGraphNodeSetEnabled(exec: Handle, node: Handle, enabled: c_uint) {
        change(exec, node, |step| {
            if graph::kind(&step.work) > 2 {
                return Err(Status::INVALID_VALUE);
            }
            step.enabled = enabled != 0;
            Ok(())
        })
    }
    fn cuGraphNodeGetEnabled(exec: Handle, node: Handle, enabled: Out<c_uint>) {
        let exec = resolve(exec)?;
        let steps = lock(&exec.steps);
        let step = steps.iter().find(|step| step.node == node);
        enabled.put(c_uint::from(step.ok_or(Status::INVALID_VALUE)?.enabled))
    }
}

alias! {
    cuGraphInstantiate = cuGraphInstantiate_v2(
        out: Out<Handle>, graph: Handle, error: Out<Handle>, log: Out<c_char>, size: usize);
    cuGraphInstantiateWithParams_ptsz = cuGraphInstantiateWithParams(
        out: Out<Handle>, graph: Handle, params: Out<InstantiateParams>);
}

per_thread! {
    cuGraphLaunch_ptsz = cuGraphLaunch(exec: Handle; stream);
    cuGraphUpload_ptsz = cuGraphUpload(exec: Handle; stream);
}
