//! Making nodes, and reading and changing what they do.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_uint;
use std::sync::Arc;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::context;
use crate::simulator::driver::event;
use crate::simulator::driver::graph;
use crate::simulator::driver::graph::Graph;
use crate::simulator::driver::launch;
use crate::simulator::driver::launch::Ask;
use crate::simulator::driver::launch::KernelWork;
use crate::simulator::driver::module;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream_api;
use crate::simulator::driver::transfer::Fill;
use crate::simulator::driver::transfer::Transfer;
use crate::simulator::driver::types::AllocParams;
use crate::simulator::driver::types::AttributeValue;
use crate::simulator::driver::types::ConditionalParams;
use crate::simulator::driver::types::Copy3d;
use crate::simulator::driver::types::EdgeData;
use crate::simulator::driver::types::HostParams;
use crate::simulator::driver::types::KernelParams1;
use crate::simulator::driver::types::KernelParams2;
use crate::simulator::driver::types::LaunchAttribute;
use crate::simulator::driver::types::Location;
use crate::simulator::driver::types::MemOp;
use crate::simulator::driver::types::MemOpParams;
use crate::simulator::driver::types::PoolProps;
use crate::simulator::driver::types::SetParams;
use crate::simulator::driver::work::Conditional;
use crate::simulator::driver::work::MemOps;
use crate::simulator::driver::work::Work;

/// Where the parameters of a node lie within the structure that has them all.
const UNION: usize = 16;

/// A kernel's work from the parameters of a node.
pub(super) fn kernel(first: KernelParams1, kernel: Handle, context: Handle) -> Answer<Work> {
    let driver = driver()?;
    let function = if first.function != 0 {
        module::resolve(first.function)?
    } else {
        let kernel = driver.kernels.find(kernel).ok_or(Status::INVALID_VALUE)?;
        kernel.function(driver, &context::by_handle(context)?)?
    };
    let prepared = launch::prepare(driver, &function, &Ask::from(first), Vec::new())?;
    Ok(Work::Kernel(prepared))
}

/// A copy's work; an empty one does nothing.
pub(super) fn copy(params: Copy3d) -> Answer<Work> {
    let transfer = Transfer::new(driver()?, params)?;
    Ok(transfer.map_or(Work::Empty, |transfer| Work::Copy(Box::new(transfer))))
}

/// A fill's work; an empty one does nothing.
pub(super) fn fill(params: SetParams) -> Answer<Work> {
    let fill = Fill::new(driver()?, params)?;
    Ok(fill.map_or(Work::Empty, Work::Fill))
}

/// A host function's work.
pub(super) fn host(params: HostParams) -> Answer<Work> {
    if params.function == 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(Work::Host(params))
}

/// The work of writes and waits.
pub(super) fn mem_ops(params: MemOpParams) -> Answer<Work> {
    let list = In::<MemOp>::new(params.operations as *const MemOp);
    let list = list.array(params.count as usize)?;
    stream_api::check_mem_ops(&list, params.flags)?;
    Ok(Work::MemOps(MemOps::new(list, params.flags)))
}

/// A child's work: a copy of the graph.
pub(super) fn child(driver: &Driver, handle: Handle) -> Answer<Work> {
    let child = graph::resolve(handle)?;
    Ok(Work::Graph(child.copy(driver, true)?))
}

fn alloc(params: &AllocParams) -> Answer<(Work, Address)> {
    let driver = driver()?;
    if params.bytes == 0 || params.pool.kind != 1 || params.pool.location.kind != Location::DEVICE {
        return Err(Status::INVALID_VALUE);
    }
    let device = driver.device(params.pool.location.id)?;
    let memory = driver.heap.plan(device.ordinal, params.bytes as u64)?;
    let base = memory.base;
    Ok((Work::Alloc(memory), base))
}

fn conditional(
    driver: &Driver,
    graph: &Graph,
    params: ConditionalParams,
) -> Answer<Arc<Conditional>> {
    let size = params.size as usize;
    let fits = match params.kind {
        0 => (1..=2).contains(&size),
        1 => size == 1,
        2 => size > 0 && size <= 1 << 16,
        _ => false,
    };
    if !fits || !graph.has_cell(params.handle) {
        return Err(Status::INVALID_VALUE);
    }
    let bodies = (0..size).map(|_| Graph::create_inner(driver)).collect();
    Ok(Conditional::new(params.handle, params.kind, bodies))
}

/// Adds a node and tells its handle.
fn add(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    data: In<EdgeData>,
    count: usize,
    work: impl FnOnce(&Driver, &Arc<Graph>) -> Answer<Work>,
) -> Answer {
    let driver = driver()?;
    out.check()?;
    let graph = graph::resolve(graph)?;
    let after = graph::edges(&graph, after, data, count)?;
    let work = work(driver, &graph)?;
    out.put(graph.add(driver, work, &after)?)
}

fn no_data() -> In<EdgeData> {
    In::new(std::ptr::null())
}

/// Adds a node of any type.
fn add_any(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    data: In<EdgeData>,
    count: usize,
    params: Out<u8>,
) -> Answer {
    driver()?;
    params.check()?;
    let kind = params.input().cast::<c_uint>().get()?;
    let place = params.input().byte_add(UNION);
    match kind {
        10 => {
            let wanted = place.cast::<AllocParams>().get()?;
            let (work, base) = alloc(&wanted)?;
            add(out, graph, after, data, count, |_, _| Ok(work))?;
            let filled = AllocParams {
                address: base,
                ..wanted
            };
            Out::from_address(place.address() as usize).put(filled)
        }
        13 => {
            let wanted = place.cast::<ConditionalParams>().get()?;
            let mut handles = 0;
            add(out, graph, after, data, count, |driver, graph| {
                let made = conditional(driver, graph, wanted)?;
                handles = made.handles.as_ptr() as usize;
                Ok(Work::Conditional(made))
            })?;
            let filled = ConditionalParams {
                graphs: handles,
                ..wanted
            };
            Out::from_address(place.address() as usize).put(filled)
        }
        _ => {
            let work = any(params.input())?;
            add(out, graph, after, data, count, |_, _| Ok(work))
        }
    }
}

/// The work of the parameters of a node of any type that is not told anything back.
pub(super) fn any(params: In<u8>) -> Answer<Work> {
    let driver = driver()?;
    let place = params.byte_add(UNION);
    match params.cast::<c_uint>().get()? {
        0 => {
            let params = place.cast::<KernelParams2>().get()?;
            kernel(params.first, params.kernel, params.context)
        }
        // Flags and a context come first.
        1 => copy(place.byte_add(16).cast::<Copy3d>().get()?),
        2 => fill(place.cast::<SetParams>().get()?),
        3 => host(place.cast::<HostParams>().get()?),
        4 => child(driver, place.cast::<Handle>().get()?),
        5 => Ok(Work::Empty),
        6 => Ok(Work::WaitEvent(event::resolve(
            place.cast::<Handle>().get()?,
        )?)),
        7 => Ok(Work::Record(event::resolve(place.cast::<Handle>().get()?)?)),
        11 => Ok(Work::Free(place.cast::<Address>().get()?)),
        12 => mem_ops(place.cast::<MemOpParams>().get()?),
        8 | 9 => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Puts other work of the same type into a node.
fn replace(node: Handle, work: Work) -> Answer {
    let (graph, old) = graph::node(node)?;
    if graph::kind(&old.work) != graph::kind(&work) {
        return Err(Status::INVALID_VALUE);
    }
    graph.change(node, |node| {
        node.work = work;
        Ok(())
    })
}

fn kernel_of(node: Handle) -> Answer<Arc<KernelWork>> {
    match graph::node(node)?.1.work {
        Work::Kernel(kernel) => Ok(kernel),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Other parameters for a kernel node, which keeps its attributes.
fn replace_kernel(node: Handle, work: Work) -> Answer {
    let old = kernel_of(node)?;
    let Work::Kernel(new) = work else {
        return Err(Status::INVALID_VALUE);
    };
    let kept = launch::with_attributes(driver()?, &new, old.attributes.clone())?;
    replace(node, Work::Kernel(kept))
}

fn kernel_params(node: Handle) -> Answer<KernelParams1> {
    let kernel = kernel_of(node)?;
    Ok(KernelParams1 {
        function: kernel.function.handle,
        grid: kernel.launch.grid,
        block: kernel.launch.block,
        shared: kernel.launch.dynamic_shared,
        params: kernel.places.as_ptr() as usize,
        extra: 0,
    })
}

fn set_attribute(node: Handle, id: u32, value: AttributeValue) -> Answer {
    let kernel = kernel_of(node)?;
    let mut attributes = kernel.attributes.clone();
    attributes.retain(|attribute| attribute.id != id);
    attributes.push(LaunchAttribute { id, pad: 0, value });
    let changed = launch::with_attributes(driver()?, &kernel, attributes)?;
    replace(node, Work::Kernel(changed))
}

api! {
    fn cuGraphAddKernelNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams1>,
    ) {
        add(out, graph, after, no_data(), count, |_, _| kernel(params.get()?, 0, 0))
    }
    fn cuGraphAddKernelNode_v2(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelParams2>,
    ) {
        add(out, graph, after, no_data(), count, |_, _| {
            let params = params.get()?;
            kernel(params.first, params.kernel, params.context)
        })
    }
    fn cuGraphAddMemcpyNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<Copy3d>,
        context: Handle,
    ) {
        context::by_handle(context)?;
        add(out, graph, after, no_data(), count, |_, _| copy(params.get()?))
    }
    fn cuGraphAddMemsetNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<SetParams>,
        context: Handle,
    ) {
        context::by_handle(context)?;
        add(out, graph, after, no_data(), count, |_, _| fill(params.get()?))
    }
    fn cuGraphAddHostNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<HostParams>,
    ) {
        add(out, graph, after, no_data(), count, |_, _| host(params.get()?))
    }
    fn cuGraphAddChildGraphNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, inner: Handle,
    ) {
        add(out, graph, after, no_data(), count, |driver, _| child(driver, inner))
    }
    fn cuGraphAddEmptyNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add(out, graph, after, no_data(), count, |_, _| Ok(Work::Empty))
    }
    fn cuGraphAddEventRecordNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle,
    ) {
        add(out, graph, after, no_data(), count, |_, _| Ok(Work::Record(event::resolve(event)?)))
    }
    fn cuGraphAddEventWaitNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle,
    ) {
        add(out, graph, after, no_data(), count, |_, _| Ok(Work::WaitEvent(event::resolve(event)?)))
    }
    fn cuGraphAddMemAllocNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: Out<AllocParams>,
    ) {
        driver()?;
        let wanted = params.get()?;
        let (work, base) = alloc(&wanted)?;
        add(out, graph, after, no_data(), count, |_, _| Ok(work))?;
        params.put(AllocParams { address: base, ..wanted })
    }
    fn cuGraphAddMemFreeNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, address: Address,
    ) {
        add(out, graph, after, no_data(), count, |_, _| Ok(Work::Free(address)))
    }
    fn cuGraphAddBatchMemOpNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<MemOpParams>,
    ) {
        add(out, graph, after, no_data(), count, |_, _| mem_ops(params.get()?))
    }
    fn cuGraphAddNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: Out<u8>,
    ) {
        add_any(out, graph, after, no_data(), count, params)
    }
    fn cuGraphAddNode_v2(
        out: Out<Handle>, graph: Handle, after: In<Handle>, data: In<EdgeData>, count: usize,
        params: Out<u8>,
    ) {
        add_any(out, graph, after, data, count, params)
    }
    fn cuGraphAddNode_v3(
        out: Out<Handle>, graph: Handle, after: In<Handle>, data: In<EdgeData>, count: usize,
        params: Out<u8>,
    ) {
        add_any(out, graph, after, data, count, params)
    }
    fn cuGraphNodeSetParams(node: Handle, params: In<u8>) {
        let work = any(params)?;
        match work {
            Work::Kernel(_) => replace_kernel(node, work),
            other => replace(node, other),
        }
    }
    fn cuGraphConditionalHandleCreate(
        out: Out<Address>, graph: Handle, _context: Handle, default: c_uint, flags: c_uint,
    ) {
        out.check()?;
        let graph = graph::resolve(graph)?;
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        let driver = driver()?;
        out.put(graph.new_cell(driver, default, flags == 1)?)
    }
    fn cuGraphKernelNodeGetParams(node: Handle, params: Out<KernelParams1>) {
        params.put(kernel_params(node)?)
    }
    fn cuGraphKernelNodeGetParams_v2(node: Handle, params: Out<KernelParams2>) {
        let first = kernel_params(node)?;
        let context = kernel_of(node)?.function.module.context.handle;
        params.put(KernelParams2 { first, kernel: 0, context })
    }
    fn cuGraphKernelNodeSetParams(node: Handle, params: In<KernelParams1>) {
        replace_kernel(node, kernel(params.get()?, 0, 0)?)
    }
    fn cuGraphKernelNodeSetParams_v2(node: Handle, params: In<KernelParams2>) {
        let params = params.get()?;
        replace_kernel(node, kernel(params.first, params.kernel, params.context)?)
    }
    fn cuGraphKernelNodeGetAttribute(node: Handle, id: c_uint, value: Out<AttributeValue>) {
        let kernel = kernel_of(node)?;
        let set = kernel.attributes.iter().find(|attribute| attribute.id == id);
        let mut found = set.map(|set| set.value).unwrap_or_default();
        if set.is_none() {
            match id {
                2 => found.words[0] = u32::from(kernel.launch.cooperative),
                4 => found.words[..3].copy_from_slice(&kernel.launch.cluster),
                0..=18 => {}
                _ => return Err(Status::INVALID_VALUE),
            }
        }
        value.put(found)
    }
    fn cuGraphKernelNodeSetAttribute(node: Handle, id: c_uint, value: In<AttributeValue>) {
        set_attribute(node, id, value.get()?)
    }
    fn cuGraphKernelNodeCopyAttributes(target: Handle, source: Handle) {
        let attributes = kernel_of(source)?.attributes.clone();
        let target_kernel = kernel_of(target)?;
        let changed = launch::with_attributes(driver()?, &target_kernel, attributes)?;
        replace(target, Work::Kernel(changed))
    }
    fn cuGraphMemcpyNodeGetParams(node: Handle, params: Out<Copy3d>) {
        match graph::node(node)?.1.work {
            Work::Copy(transfer) => params.put(transfer.params),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuGraphMemcpyNodeSetParams(node: Handle, params: In<Copy3d>) {
        replace(node, copy(params.get()?)?)
    }
    fn cuGraphMemsetNodeGetParams(node: Handle, params: Out<SetParams>) {
        match graph::node(node)?.1.work {
            Work::Fill(fill) => params.put(fill.params),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuGraphMemsetNodeSetParams(node: Handle, params: In<SetParams>) {
        replace(node, fill(params.get()?)?)
    }
    fn cuGraphHostNodeGetParams(node: Handle, params: Out<HostParams>) {
        match graph::node(node)?.1.work {
            Work::Host(host) => params.put(host),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuGraphHostNodeSetParams(node: Handle, params: In<HostParams>) {
        replace(node, host(params.get()?)?)
    }
    fn cuGraphChildGraphNodeGetGraph(node: Handle, out: Out<Handle>) {
        match graph::node(node)?.1.work {
            Work::Graph(graph) => out.put(graph.handle),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuGraphEventRecordNodeGetEvent(node: Handle, out: Out<Handle>) {
        match graph::node(node)?.1.work {
            Work::Record(event) => out.put(event.handle),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuGraphEventRecordNodeSetEvent(node: Handle, event: Handle) {
        replace(node, Work::Record(event::resolve(event)?))
    }
    fn cuGraphEventWaitNodeGetEvent(node: Handle, out: Out<Handle>) {
        match graph::node(node)?.1.work {
            Work::WaitEvent(event) => out.put(event.handle),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuGraphEventWaitNodeSetEvent(node: Handle, event: Handle) {
        replace(node, Work::WaitEvent(event::resolve(event)?))
    }
    fn cuGraphMemAllocNodeGetParams(node: Handle, params: Out<AllocParams>) {
        let Work::Alloc(memory) = graph::node(node)?.1.work else {
            return Err(Status::INVALID_VALUE);
        };
        let location = Location { kind: Location::DEVICE, id: memory.device as i32 };
        let pool = PoolProps {
            kind: 1,
            handle_types: 0,
            location,
            security: 0,
            max_size: 0,
            usage: 0,
            reserved: [0; 54],
        };
        params.put(AllocParams {
            pool,
            access: 0,
            access_count: 0,
            bytes: memory.bytes as usize,
            address: memory.base,
        })
    }
    fn cuGraphMemFreeNodeGetParams(node: Handle, address: Out<Address>) {
        match graph::node(node)?.1.work {
            Work::Free(freed) => address.put(freed),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuGraphBatchMemOpNodeGetParams(node: Handle, params: Out<MemOpParams>) {
        let Work::MemOps(operations) = graph::node(node)?.1.work else {
            return Err(Status::INVALID_VALUE);
        };
        params.put(MemOpParams {
            context: context::current().map_or(0, |context| context.handle),
            count: operations.list.len() as c_uint,
            operations: operations.list.as_ptr() as usize,
            flags: operations.flags,
        })
    }
    fn cuGraphBatchMemOpNodeSetParams(node: Handle, params: In<MemOpParams>) {
        replace(node, mem_ops(params.get()?)?)
    }
}
