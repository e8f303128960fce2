//! Graphs themselves: made, copied, connected, asked about.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_char;
use std::ffi::c_uint;
use std::ffi::c_ulonglong;
use std::fmt::Write;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::graph;
use crate::simulator::driver::graph::Graph;
use crate::simulator::driver::graph::UserObject;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::EdgeData;
use crate::simulator::driver::work::Work;

/// Writes a list: without room only its length, with room as much as fits and zeros after it.
fn list(out: Out<Handle>, count: Out<usize>, found: &[Handle]) -> Answer {
    if out.is_null() {
        return count.put(found.len());
    }
    let room = count.get()?;
    for index in 0..room {
        out.put_at(index, found.get(index).copied().unwrap_or(0));
    }
    if room >= found.len() {
        count.put(found.len())?;
    }
    Ok(())
}

/// Writes edges in the same way; `data` may be left out, if no edge has any.
fn edge_list(
    from: Out<Handle>,
    to: Out<Handle>,
    data: Out<EdgeData>,
    count: Out<usize>,
    found: &[(Handle, Handle, EdgeData)],
) -> Answer {
    if from.is_null() && to.is_null() {
        return count.put(found.len());
    }
    if data.is_null() && found.iter().any(|edge| edge.2 != EdgeData::default()) {
        return Err(Status::LOSSY_QUERY);
    }
    let room = count.get()?;
    for index in 0..room {
        let edge = found.get(index).copied().unwrap_or_default();
        from.put_at(index, edge.0);
        to.put_at(index, edge.1);
        data.put_at(index, edge.2);
    }
    if room >= found.len() {
        count.put(found.len())?;
    }
    Ok(())
}

fn edges_of(graph: Handle) -> Answer<Vec<(Handle, Handle, EdgeData)>> {
    let graph = graph::resolve(graph)?;
    let edges = lock(&graph.body).edges.clone();
    Ok(edges)
}

/// The edges that end at a node, or begin there.
fn edges_at(node: Handle, ending: bool) -> Answer<Vec<(Handle, Handle, EdgeData)>> {
    let (graph, _) = graph::node(node)?;
    let mut edges = lock(&graph.body).edges.clone();
    edges.retain(|edge| {
        if ending {
            edge.1 == node
        } else {
            edge.0 == node
        }
    });
    Ok(edges)
}

fn neighbours(
    node: Handle,
    ending: bool,
    out: Out<Handle>,
    data: Out<EdgeData>,
    count: Out<usize>,
) -> Answer {
    let edges = edges_at(node, ending)?;
    if ending {
        edge_list(out, Out::null(), data, count, &edges)
    } else {
        edge_list(Out::null(), out, data, count, &edges)
    }
}

fn connect(
    graph: Handle,
    from: In<Handle>,
    to: In<Handle>,
    data: In<EdgeData>,
    count: usize,
) -> Answer {
    let graph = graph::resolve(graph)?;
    let from = from.array(count)?;
    let to = to.array(count)?;
    let data = if data.is_null() {
        vec![EdgeData::default(); count]
    } else {
        data.array(count)?
    };
    for ((from, to), data) in from.into_iter().zip(to).zip(data) {
        graph.connect(from, to, data)?;
    }
    Ok(())
}

fn disconnect(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) -> Answer {
    let graph = graph::resolve(graph)?;
    for (from, to) in from.array(count)?.into_iter().zip(to.array(count)?) {
        graph.disconnect(from, to)?;
    }
    Ok(())
}

const KINDS: [&str; 14] = [
    "kernel",
    "memcpy",
    "memset",
    "host",
    "graph",
    "empty",
    "wait",
    "record",
    "signal semaphores",
    "wait semaphores",
    "alloc",
    "free",
    "memory operations",
    "conditional",
];

fn dot(graph: &Graph) -> String {
    let body = lock(&graph.body);
    let mut text = String::from("digraph {\n");
    for (index, handle) in body.order.iter().enumerate() {
        let Some(node) = body.nodes.get(handle) else {
            continue;
        };
        let kind = KINDS[graph::kind(&node.work) as usize];
        let name = match &node.work {
            Work::Kernel(kernel) => format!("{kind} {}", kernel.function.name),
            _ => kind.to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  n{index} [label=\"{name}\"]");
    }
    let place = |node| body.order.iter().position(|&other| other == node);
    for (from, to, _) in &body.edges {
        if let (Some(from), Some(to)) = (place(*from), place(*to)) {
            let _ = writeln!(text, "  n{from} -> n{to}");
        }
    }
    text.push_str("}\n");
    text
}

api! {
    fn cuGraphCreate(out: Out<Handle>, flags: c_uint) {
        let driver = driver()?;
        out.check()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        out.put(Graph::create(driver).handle)
    }
    fn cuGraphDestroy(graph: Handle) {
        let driver = driver()?;
        let graph = graph::resolve(graph)?;
        if graph.inner {
            return Err(Status::INVALID_VALUE);
        }
        graph.destroy(driver);
        Ok(())
    }
    fn cuGraphClone(out: Out<Handle>, original: Handle) {
        let driver = driver()?;
        out.check()?;
        let copy = graph::resolve(original)?.copy(driver, false)?;
        out.put(copy.handle)
    }
    fn cuGraphNodeFindInClone(out: Out<Handle>, original: Handle, clone: Handle) {
        driver()?;
        out.check()?;
        let graph = graph::resolve(clone)?;
        let body = lock(&graph.body);
        let found = body.nodes.iter().find(|(_, node)| node.original == original);
        out.put(*found.ok_or(Status::INVALID_VALUE)?.0)
    }
    fn cuGraphDestroyNode(node: Handle) {
        let (graph, _) = graph::node(node)?;
        graph.remove(driver()?, node)
    }
    fn cuGraphNodeGetType(node: Handle, kind: Out<c_uint>) {
        kind.put(graph::kind(&graph::node(node)?.1.work))
    }
    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let graph = graph::resolve(graph)?;
        let found = lock(&graph.body).order.clone();
        list(nodes, count, &found)
    }
    fn cuGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let graph = graph::resolve(graph)?;
        let body = lock(&graph.body);
        let mut found = body.order.clone();
        found.retain(|node| !body.edges.iter().any(|edge| edge.1 == *node));
        drop(body);
        list(nodes, count, &found)
    }
    fn cuGraphGetEdges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) {
        edge_list(from, to, Out::null(), count, &edges_of(graph)?)
    }
    fn cuGraphGetEdges_v2(
        graph: Handle, from: Out<Handle>, to: Out<Handle>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        edge_list(from, to, data, count, &edges_of(graph)?)
    }
    fn cuGraphNodeGetDependencies(node: Handle, nodes: Out<Handle>, count: Out<usize>) {
        neighbours(node, true, nodes, Out::null(), count)
    }
    fn cuGraphNodeGetDependencies_v2(
        node: Handle, nodes: Out<Handle>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        neighbours(node, true, nodes, data, count)
    }
    fn cuGraphNodeGetDependentNodes(node: Handle, nodes: Out<Handle>, count: Out<usize>) {
        neighbours(node, false, nodes, Out::null(), count)
    }
    fn cuGraphNodeGetDependentNodes_v2(
        node: Handle, nodes: Out<Handle>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        neighbours(node, false, nodes, data, count)
    }
    fn cuGraphAddDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        connect(graph, from, to, In::new(std::ptr::null()), count)
    }
    fn cuGraphAddDependencies_v2(
        graph: Handle, from: In<Handle>, to: In<Handle>, data: In<EdgeData>, count: usize,
    ) {
        connect(graph, from, to, data, count)
    }
    fn cuGraphRemoveDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        disconnect(graph, from, to, count)
    }
    fn cuGraphRemoveDependencies_v2(
        graph: Handle, from: In<Handle>, to: In<Handle>, _data: In<EdgeData>, count: usize,
    ) {
        disconnect(graph, from, to, count)
    }
    fn cuGraphGetId(graph: Handle, id: Out<c_uint>) {
        id.put(graph::resolve(graph)?.id as c_uint)
    }
    fn cuGraphNodeGetContainingGraph(node: Handle, out: Out<Handle>) {
        out.put(graph::node(node)?.0.handle)
    }
    fn cuGraphNodeGetLocalId(node: Handle, id: Out<c_uint>) {
        let (graph, _) = graph::node(node)?;
        let place = lock(&graph.body).order.iter().position(|&other| other == node);
        id.put(place.ok_or(Status::INVALID_VALUE)? as c_uint)
    }
    fn cuGraphNodeGetToolsId(node: Handle, id: Out<c_ulonglong>) {
        graph::node(node)?;
        id.put(node as c_ulonglong)
    }
    fn cuGraphDebugDotPrint(graph: Handle, path: In<c_char>, _flags: c_uint) {
        let graph = graph::resolve(graph)?;
        std::fs::write(path.text()?, dot(&graph)).map_err(|_| Status::OPERATING_SYSTEM)
    }
    fn cuUserObjectCreate(
        out: Out<Handle>, data: usize, destroy: usize, count: c_uint, flags: c_uint,
    ) {
        let driver = driver()?;
        out.check()?;
        if destroy == 0 || count == 0 || count > i32::MAX as u32 || flags != 1 {
            return Err(Status::INVALID_VALUE);
        }
        let make = |handle| UserObject::new(handle, data, destroy, count as usize);
        out.put(driver.objects.insert(make).handle)
    }
    fn cuUserObjectRetain(object: Handle, count: c_uint) {
        if count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        driver()?.objects.find(object).ok_or(Status::INVALID_VALUE)?.retain(count as usize);
        Ok(())
    }
    fn cuUserObjectRelease(object: Handle, count: c_uint) {
        let driver = driver()?;
        let object = driver.objects.find(object).ok_or(Status::INVALID_VALUE)?;
        if count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        object.release(driver, count as usize)
    }
    fn cuGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint) {
        let graph = graph::resolve(graph)?;
        let object = driver()?.objects.find(object).ok_or(Status::INVALID_VALUE)?;
        if count == 0 || flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        graph.hold(&object, count as usize, flags == 1);
        Ok(())
    }
    fn cuGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) {
        let driver = driver()?;
        let graph = graph::resolve(graph)?;
        let object = driver.objects.find(object).ok_or(Status::INVALID_VALUE)?;
        graph.unhold(driver, &object, count as usize)
    }
}
