//! Graphs, node by node.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use super::*;
use crate::simulator::driver::graph_exec::*;
use crate::simulator::driver::graph_nodes::*;
use crate::simulator::driver::graph_query::*;
use crate::simulator::driver::stream_api::*;
use crate::simulator::driver::transfer;
use crate::simulator::driver::types::AllocParams;
use crate::simulator::driver::types::ConditionalParams;
use crate::simulator::driver::types::EdgeData;
use crate::simulator::driver::types::HostParams;
use crate::simulator::driver::types::KernelParams1;
use crate::simulator::driver::types::KernelParams2;
use crate::simulator::driver::types::Location;
use crate::simulator::driver::types::PoolProps;
use crate::simulator::driver::types::SetParams;
use crate::simulator::driver::types::UpdateInfo;

fn graph() -> usize {
    let mut graph = 0;
    ok!(cuGraphCreate(out(&mut graph), 0));
    graph
}

fn instantiate(graph: usize) -> usize {
    let mut exec = 0;
    ok!(cuGraphInstantiateWithFlags(out(&mut exec), graph, 0));
    exec
}

fn run(exec: usize) {
    ok!(cuGraphLaunch(exec, 0));
    ok!(cuStreamSynchronize(0));
}

fn kernel(function: usize, arguments: &[*const u64]) -> KernelParams2 {
    KernelParams2 {
        first: KernelParams1 {
            function,
            grid: [1; 3],
            block: [1; 3],
            shared: 0,
            params: params(arguments),
            extra: 0,
        },
        kernel: 0,
        context: 0,
    }
}

fn add_kernel(graph: usize, after: &[usize], function: usize, arguments: &[*const u64]) -> usize {
    let mut node = 0;
    let wanted = kernel(function, arguments);
    ok!(cuGraphAddKernelNode_v2(
        out(&mut node),
        graph,
        list(after),
        after.len(),
        input(&wanted)
    ));
    node
}

fn fill(address: u64, value: u32) -> SetParams {
    SetParams {
        address,
        pitch: 0,
        value,
        element: 4,
        width: 1,
        height: 1,
    }
}

fn add_fill(graph: usize, after: &[usize], address: u64, value: u32) -> usize {
    let mut node = 0;
    let wanted = fill(address, value);
    ok!(cuGraphAddMemsetNode(
        out(&mut node),
        graph,
        list(after),
        after.len(),
        input(&wanted),
        0
    ));
    node
}

extern "C" fn count(data: usize) {
    unsafe { &*(data as *const AtomicU32) }.fetch_add(1, Ordering::SeqCst);
}

fn kind(node: usize) -> u32 {
    let mut kind = 99;
    ok!(cuGraphNodeGetType(node, out(&mut kind)));
    kind
}

#[test]
fn nodes_run_in_the_order_of_their_edges() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let (address, copy) = (upload(&[7_u32]), upload(&[0_u32]));
    let graph = graph();
    let arguments = [&raw const address];
    // Made in the wrong order, and put right by the edges.
    let kernel = add_kernel(graph, &[], bump_it, &arguments);
    let set = add_fill(graph, &[], address, 40);
    ok!(cuGraphAddDependencies(
        graph,
        input(&set),
        input(&kernel),
        1
    ));
    let mut moved = 0;
    let params = transfer::linear((transfer::DEVICE, address), (transfer::DEVICE, copy), 4);
    let after = [kernel];
    ok!(cuGraphAddMemcpyNode(
        out(&mut moved),
        graph,
        list(&after),
        1,
        input(&params),
        0
    ));
    let counter = AtomicU32::new(0);
    let host = HostParams {
        function: count as *const () as usize,
        data: &raw const counter as usize,
    };
    let (mut told, mut empty) = (0, 0);
    ok!(cuGraphAddHostNode(
        out(&mut told),
        graph,
        list(&[moved]),
        1,
        input(&host)
    ));
    ok!(cuGraphAddEmptyNode(
        out(&mut empty),
        graph,
        list(&[told, set]),
        2
    ));
    assert_eq!(
        [
            kind(kernel),
            kind(moved),
            kind(set),
            kind(told),
            kind(empty)
        ],
        [0, 1, 2, 3, 5]
    );
    let exec = instantiate(graph);
    run(exec);
    run(exec);
    assert_eq!(download::<u32>(copy, 1), [41]);
    assert_eq!(counter.load(Ordering::SeqCst), 2);
    // Parameters can be read back, and changed in what is ready to run.
    let mut read = KernelParams2::default();
    ok!(cuGraphKernelNodeGetParams_v2(kernel, out(&mut read)));
    assert_eq!((read.first.function, read.first.grid), (bump_it, [1; 3]));
    let first = unsafe { *(read.first.params as *const *const u64) };
    assert_eq!(unsafe { first.read_unaligned() }, address);
    let other = fill(address, 50);
    ok!(cuGraphExecMemsetNodeSetParams(exec, set, input(&other), 0));
    run(exec);
    assert_eq!(download::<u32>(copy, 1), [51]);
    fails!(
        INVALID_VALUE,
        cuGraphExecMemsetNodeSetParams(exec, kernel, input(&other), 0)
    );
    ok!(cuGraphNodeSetEnabled(exec, kernel, 0));
    run(exec);
    assert_eq!(download::<u32>(copy, 1), [50]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    fails!(INVALID_VALUE, cuGraphDestroy(graph));
}

#[test]
fn circles_and_strangers_are_refused() {
    let _turn = turn();
    let address = upload(&[0_u32]);
    let (graph, other) = (graph(), graph());
    let first = add_fill(graph, &[], address, 1);
    let second = add_fill(graph, &[first], address, 2);
    let stranger = add_fill(other, &[], address, 3);
    ok!(cuGraphAddDependencies(
        graph,
        input(&second),
        input(&first),
        1
    ));
    let mut exec = 0;
    fails!(
        INVALID_VALUE,
        cuGraphInstantiateWithFlags(out(&mut exec), graph, 0)
    );
    ok!(cuGraphRemoveDependencies(
        graph,
        input(&second),
        input(&first),
        1
    ));
    fails!(
        INVALID_VALUE,
        cuGraphAddDependencies(graph, input(&first), input(&second), 1)
    );
    fails!(
        INVALID_VALUE,
        cuGraphAddDependencies(graph, input(&first), input(&stranger), 1)
    );
    let mut node = 0;
    fails!(
        INVALID_VALUE,
        cuGraphAddEmptyNode(out(&mut node), graph, input(&stranger), 1)
    );
    ok!(cuGraphInstantiateWithFlags(out(&mut exec), graph, 0));
    run(exec);
    assert_eq!(download::<u32>(address, 1), [2]);
}

#[test]
fn graphs_are_asked_and_copied() {
    let _turn = turn();
    let address = upload(&[0_u32]);
    let graph = graph();
    let first = add_fill(graph, &[], address, 1);
    let second = add_fill(graph, &[first], address, 2);
    let third = add_fill(graph, &[first], address, 3);
    let mut count = 0;
    ok!(cuGraphGetRootNodes(graph, Out::null(), out(&mut count)));
    assert_eq!(count, 1);
    let mut nodes = [9_usize; 4];
    count = 4;
    ok!(cuGraphNodeGetDependentNodes(
        first,
        out(&mut nodes[0]),
        out(&mut count)
    ));
    assert_eq!((count, nodes), (2, [second, third, 0, 0]));
    let (mut copy, mut twin) = (0, 0);
    ok!(cuGraphClone(out(&mut copy), graph));
    ok!(cuGraphNodeFindInClone(out(&mut twin), second, copy));
    assert_eq!(kind(twin), 2);
    fails!(
        INVALID_VALUE,
        cuGraphNodeFindInClone(out(&mut twin), second, graph)
    );
    ok!(cuGraphDestroyNode(second));
    fails!(INVALID_VALUE, cuGraphDestroyNode(second));
    ok!(cuGraphGetNodes(graph, Out::null(), out(&mut count)));
    assert_eq!(count, 2);
    ok!(cuGraphGetNodes(copy, Out::null(), out(&mut count)));
    assert_eq!(count, 3);
    // Edges with data are not told to those who cannot hear of it.
    let data = EdgeData {
        kind: 1,
        ..EdgeData::default()
    };
    let mut node = 0;
    let mut any = AnyParams::new(5);
    ok!(cuGraphAddNode_v2(
        out(&mut node),
        graph,
        input(&third),
        input(&data),
        1,
        any.place()
    ));
    count = 4;
    fails!(
        LOSSY_QUERY,
        cuGraphNodeGetDependencies(node, out(&mut nodes[0]), out(&mut count))
    );
    let mut datas = [EdgeData::default(); 4];
    ok!(cuGraphNodeGetDependencies_v2(
        node,
        out(&mut nodes[0]),
        out(&mut datas[0]),
        out(&mut count)
    ));
    assert_eq!((count, datas[0]), (1, data));
}

/// `CUgraphNodeParams`
#[repr(C, align(8))]
struct AnyParams {
    bytes: [u8; 256],
}

impl AnyParams {
    fn new(kind: u32) -> Self {
        let mut bytes = [0; 256];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        Self { bytes }
    }
    fn put<T>(&mut self, params: T) {
        unsafe { self.bytes.as_mut_ptr().add(16).cast::<T>().write(params) };
    }
    fn get<T>(&self) -> T {
        unsafe { self.bytes.as_ptr().add(16).cast::<T>().read() }
    }
    fn place(&mut self) -> Out<u8> {
        Out::from_address(self.bytes.as_mut_ptr() as usize)
    }
}

#[test]
fn a_graph_is_brought_up_to_date() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let (address, other) = (upload(&[0_u32]), upload(&[0_u32]));
    let build = |set: u64, second: bool| {
        let graph = graph();
        let first = add_fill(graph, &[], set, 10);
        let arguments = [&raw const set];
        add_kernel(graph, &[first], bump_it, &arguments);
        if second {
            add_fill(graph, &[], set, 10);
        }
        graph
    };
    let exec = instantiate(build(address, false));
    run(exec);
    let mut info = UpdateInfo::default();
    ok!(cuGraphExecUpdate_v2(
        exec,
        build(other, false),
        out(&mut info)
    ));
    run(exec);
    run(exec);
    assert_eq!(download::<u32>(address, 1), [11]);
    assert_eq!(download::<u32>(other, 1), [11]);
    let bigger = build(other, true);
    fails!(
        GRAPH_EXEC_UPDATE_FAILURE,
        cuGraphExecUpdate_v2(exec, bigger, out(&mut info))
    );
    assert_eq!(info.result, 2);
    assert_ne!(info.error_node, 0);
    let changed = graph();
    let first = add_fill(changed, &[], address, 10);
    add_fill(changed, &[first], address, 10);
    fails!(
        GRAPH_EXEC_UPDATE_FAILURE,
        cuGraphExecUpdate_v2(exec, changed, out(&mut info))
    );
    assert_eq!(info.result, 3);
}

#[test]
fn children_run_inside() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let address = upload(&[0_u32]);
    let arguments = [&raw const address];
    let inner = graph();
    add_kernel(inner, &[], bump_it, &arguments);
    let outer = graph();
    let (mut first, mut second, mut child) = (0, 0, 0);
    ok!(cuGraphAddChildGraphNode(
        out(&mut first),
        outer,
        none(),
        0,
        inner
    ));
    ok!(cuGraphAddChildGraphNode(
        out(&mut second),
        outer,
        input(&first),
        1,
        inner
    ));
    ok!(cuGraphChildGraphNodeGetGraph(first, out(&mut child)));
    assert_ne!(child, inner);
    fails!(INVALID_VALUE, cuGraphDestroy(child));
    // A child is a copy: what becomes of the graph does not matter.
    ok!(cuGraphDestroy(inner));
    run(instantiate(outer));
    assert_eq!(download::<u32>(address, 1), [2]);
}

#[test]
fn a_loop_runs_until_its_value_is_zero() {
    let _turn = turn();
    let module = module();
    let (bump_it, dec) = (function(module, "bump"), function(module, "dec"));
    let (counter, rounds) = (upload(&[5_u32]), upload(&[0_u32]));
    let graph = graph();
    let mut handle = 0;
    ok!(cuGraphConditionalHandleCreate(
        out(&mut handle),
        graph,
        0,
        1,
        1
    ));
    let mut any = AnyParams::new(13);
    any.put(ConditionalParams {
        handle,
        kind: 1,
        size: 1,
        graphs: 0,
        context: 0,
    });
    let mut node = 0;
    ok!(cuGraphAddNode(
        out(&mut node),
        graph,
        none(),
        0,
        any.place()
    ));
    let body = unsafe { *(any.get::<ConditionalParams>().graphs as *const usize) };
    let first = add_kernel(body, &[], bump_it, &[&raw const rounds]);
    add_kernel(
        body,
        &[first],
        dec,
        &[&raw const handle, &raw const counter],
    );
    assert_eq!(kind(node), 13);
    let exec = instantiate(graph);
    run(exec);
    assert_eq!(download::<u32>(rounds, 1), [5]);
    // The value begins anew with each launch.
    ok!(cuMemsetD32_v2(counter, 3, 1));
    run(exec);
    assert_eq!(download::<u32>(rounds, 1), [8]);
    fails!(
        INVALID_VALUE,
        cuGraphAddNode(out(&mut node), graph, none(), 0, AnyParams::new(13).place())
    );
}

#[test]
fn memory_of_nodes_keeps_its_address() {
    let _turn = turn();
    let bump_it = function(module(), "bump");
    let result = upload(&[0_u32]);
    let graph = graph();
    let mut wanted = AllocParams {
        pool: PoolProps {
            kind: 1,
            handle_types: 0,
            location: Location {
                kind: Location::DEVICE,
                id: 0,
            },
            security: 0,
            max_size: 0,
            usage: 0,
            reserved: [0; 54],
        },
        access: 0,
        access_count: 0,
        bytes: 64,
        address: 0,
    };
    let (mut made, mut moved, mut freed) = (0, 0, 0);
    ok!(cuGraphAddMemAllocNode(
        out(&mut made),
        graph,
        none(),
        0,
        out(&mut wanted)
    ));
    let address = wanted.address;
    let set = add_fill(graph, &[made], address, 20);
    let kernel = add_kernel(graph, &[set], bump_it, &[&raw const address]);
    let params = transfer::linear((transfer::DEVICE, address), (transfer::DEVICE, result), 4);
    ok!(cuGraphAddMemcpyNode(
        out(&mut moved),
        graph,
        input(&kernel),
        1,
        input(&params),
        0
    ));
    ok!(cuGraphAddMemFreeNode(
        out(&mut freed),
        graph,
        input(&moved),
        1,
        address
    ));
    let exec = instantiate(graph);
    run(exec);
    run(exec);
    assert_eq!(download::<u32>(result, 1), [21]);
    // Without the free, the memory of one launch is in the way of the next.
    ok!(cuGraphDestroyNode(freed));
    let exec = instantiate(graph);
    run(exec);
    assert_eq!(download::<u32>(address, 1), [21]);
    fails!(INVALID_VALUE, cuGraphLaunch(exec, 0));
    ok!(cuMemFree_v2(address));
    run(exec);
    let mut freeing = 0;
    ok!(cuGraphInstantiateWithFlags(out(&mut freeing), graph, 1));
    run(freeing);
    run(freeing);
}

#[test]
fn objects_live_as_long_as_somebody_holds_them() {
    let _turn = turn();
    let counter = AtomicU32::new(0);
    let (data, place) = (&raw const counter as usize, count as *const () as usize);
    let mut object = 0;
    ok!(cuUserObjectCreate(out(&mut object), data, place, 1, 1));
    let graph = graph();
    ok!(cuGraphRetainUserObject(graph, object, 1, 1));
    let exec = instantiate(graph);
    ok!(cuGraphDestroy(graph));
    assert_eq!(counter.load(Ordering::SeqCst), 0);
    ok!(cuGraphExecDestroy(exec));
    assert_eq!(counter.load(Ordering::SeqCst), 1);
    fails!(INVALID_VALUE, cuUserObjectRelease(object, 1));
}
