//! Graphs as data: nodes, edges, copies of them, and what they become to be run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::AttributeValue;
use crate::simulator::driver::types::EdgeData;
use crate::simulator::driver::types::HostParams;
use crate::simulator::driver::work;
use crate::simulator::driver::work::Branch;
use crate::simulator::driver::work::Conditional;
use crate::simulator::driver::work::MemOps;
use crate::simulator::driver::work::Step;
use crate::simulator::driver::work::Work;
use crate::simulator::memory::AddressSpace;
use crate::simulator::memory::Kind;
use crate::simulator::memory::raw;

/// How deep graphs may nest.
const DEEPEST: usize = 16;

/// Something of the program that graphs keep alive.
pub(super) struct UserObject {
    pub(super) handle: Handle,
    data: usize,
    destroy: usize,
    count: Mutex<usize>,
}

impl UserObject {
    /// An object with that many references.
    pub(super) fn new(handle: Handle, data: usize, destroy: usize, count: usize) -> Self {
        let count = Mutex::new(count);
        Self {
            handle,
            data,
            destroy,
            count,
        }
    }
    /// Adds references.
    pub(super) fn retain(&self, count: usize) {
        *lock(&self.count) += count;
    }
    /// Drops references; with the last one the program's function runs.
    pub(super) fn release(&self, driver: &Driver, count: usize) -> Answer {
        let mut now = lock(&self.count);
        *now = now.checked_sub(count).ok_or(Status::INVALID_VALUE)?;
        let gone = *now == 0;
        drop(now);
        if gone && driver.objects.remove(self.handle).is_some() {
            let (function, data) = (self.destroy, self.data);
            work::call_host(HostParams { function, data });
        }
        Ok(())
    }
}

/// A conditional's value: where it lies, and what it begins with.
pub(super) struct Cell {
    pub(super) address: Address,
    default: u32,
    assign: bool,
    space: Arc<AddressSpace>,
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.space.remove(self.address);
    }
}

/// A node.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) work: Work,
    pub(super) attributes: BTreeMap<u32, AttributeValue>,
    /// The node that it is a copy of.
    pub(super) original: Handle,
}

/// Where a node's handle leads.
pub(super) struct NodeRef {
    pub(super) graph: Arc<Graph>,
}

/// Nodes and edges.
#[derive(Default)]
pub(super) struct Body {
    /// The nodes in the order of their making.
    pub(super) order: Vec<Handle>,
    pub(super) nodes: BTreeMap<Handle, Node>,
    pub(super) edges: Vec<(Handle, Handle, EdgeData)>,
    cells: Vec<Arc<Cell>>,
    objects: BTreeMap<Handle, usize>,
    /// What a capture's dependencies were when the program asked last, in memory that stays.
    kept: Vec<(Box<[Handle]>, Box<[EdgeData]>)>,
}

/// A graph.
pub(super) struct Graph {
    pub(super) handle: Handle,
    pub(super) id: u64,
    pub(super) body: Mutex<Body>,
    /// Whether it belongs to a node, and cannot be destroyed by itself.
    pub(super) inner: bool,
}

/// A graph made ready to be launched.
pub(super) struct Exec {
    pub(super) handle: Handle,
    pub(super) id: u64,
    pub(super) flags: u64,
    pub(super) steps: Mutex<Arc<Vec<Step>>>,
    pub(super) cells: Vec<Arc<Cell>>,
    /// Keeps what the graph keeps.
    pub(super) objects: Vec<(Handle, usize)>,
}

impl Exec {
    /// What the conditionals begin with.
    pub(super) fn defaults(&self) -> Vec<(Address, u32)> {
        let assigned = self.cells.iter().filter(|cell| cell.assign);
        assigned.map(|cell| (cell.address, cell.default)).collect()
    }
}

impl Graph {
    /// An empty graph.
    pub(super) fn create(driver: &Driver) -> Arc<Self> {
        Self::make(driver, false)
    }
    /// An empty graph that belongs to a node.
    pub(super) fn create_inner(driver: &Driver) -> Arc<Self> {
        Self::make(driver, true)
    }
    fn make(driver: &Driver, inner: bool) -> Arc<Self> {
        driver.graphs.insert(|handle| Self {
            handle,
            id: driver.new_id(),
            body: Mutex::default(),
            inner,
        })
    }
    /// Adds a node after others.
    pub(super) fn add(
        self: &Arc<Self>,
        driver: &Driver,
        work: Work,
        after: &[(Handle, EdgeData)],
    ) -> Answer<Handle> {
        let mut body = lock(&self.body);
        if after.iter().any(|(node, _)| !body.nodes.contains_key(node)) {
            return Err(Status::INVALID_VALUE);
        }
        for (index, edge) in after.iter().enumerate() {
            if after[..index].iter().any(|other| other.0 == edge.0) {
                return Err(Status::INVALID_VALUE);
            }
        }
        let graph = Arc::clone(self);
        let handle = driver.nodes.reserve();
        driver.nodes.set(handle, Arc::new(NodeRef { graph }));
        body.order.push(handle);
        body.nodes.insert(
            handle,
            Node {
                work,
                attributes: BTreeMap::new(),
                original: 0,
            },
        );
        for &(node, data) in after {
            body.edges.push((node, handle, data));
        }
        Ok(handle)
    }
    /// Whether a node is of this graph.
    pub(super) fn has(&self, node: Handle) -> bool {
        lock(&self.body).nodes.contains_key(&node)
    }
    /// What a node comes after.
    pub(super) fn dependencies(&self, node: Handle) -> Vec<Handle> {
        let body = lock(&self.body);
        let edges = body.edges.iter().filter(|edge| edge.1 == node);
        edges.map(|edge| edge.0).collect()
    }
    /// Keeps a list of dependencies where the program can read it; gives the addresses.
    pub(super) fn keep(&self, frontier: &[(Handle, EdgeData)]) -> (usize, usize) {
        let nodes: Box<[Handle]> = frontier.iter().map(|edge| edge.0).collect();
        let edges: Box<[EdgeData]> = frontier.iter().map(|edge| edge.1).collect();
        let places = (nodes.as_ptr() as usize, edges.as_ptr() as usize);
        let mut body = lock(&self.body);
        // The program may look at a few answers side by side, not at all of them.
        if body.kept.len() >= 64 {
            body.kept.remove(0);
        }
        body.kept.push((nodes, edges));
        places
    }
    /// Changes a node.
    pub(super) fn change(&self, node: Handle, change: impl FnOnce(&mut Node) -> Answer) -> Answer {
        let mut body = lock(&self.body);
        change(body.nodes.get_mut(&node).ok_or(Status::INVALID_VALUE)?)
    }
    /// Takes a node out.
    pub(super) fn remove(&self, driver: &Driver, node: Handle) -> Answer {
        let mut body = lock(&self.body);
        let removed = body.nodes.remove(&node).ok_or(Status::INVALID_VALUE)?;
        body.order.retain(|&other| other != node);
        body.edges.retain(|edge| edge.0 != node && edge.1 != node);
        drop(body);
        driver.nodes.remove(node);
        destroy_inner(driver, &removed.work);
        Ok(())
    }
    /// Lets go of everything.
    pub(super) fn destroy(&self, driver: &Driver) {
        driver.graphs.remove(self.handle);
        let body = std::mem::take(&mut *lock(&self.body));
        for (&handle, node) in &body.nodes {
            driver.nodes.remove(handle);
            destroy_inner(driver, &node.work);
        }
        for (object, count) in body.objects {
            if let Some(object) = driver.objects.find(object) {
                // The counts were taken when the graph was given the object.
                let _ = object.release(driver, count);
            }
        }
    }
    /// Adds an edge.
    pub(super) fn connect(&self, from: Handle, to: Handle, data: EdgeData) -> Answer {
        let mut body = lock(&self.body);
        let both = body.nodes.contains_key(&from) && body.nodes.contains_key(&to);
        let twice = body.edges.iter().any(|edge| (edge.0, edge.1) == (from, to));
        if !both || from == to || twice {
            return Err(Status::INVALID_VALUE);
        }
        body.edges.push((from, to, data));
        Ok(())
    }
    /// Takes an edge out.
    pub(super) fn disconnect(&self, from: Handle, to: Handle) -> Answer {
        let mut body = lock(&self.body);
        let before = body.edges.len();
        body.edges.retain(|edge| (edge.0, edge.1) != (from, to));
        if body.edges.len() == before {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    /// Makes a value for a conditional; gives its handle.
    pub(super) fn new_cell(&self, driver: &Driver, default: u32, assign: bool) -> Answer<Address> {
        let id = driver.new_id();
        // Managed, so that kernels of every device reach it.
        let label = format!("conditional #{id}");
        let memory = driver.space.allocate(8, 8, Kind::Managed, label);
        let address = memory.map_err(|_| Status::OUT_OF_MEMORY)?.base();
        let cell = Cell {
            address,
            default,
            assign,
            space: Arc::clone(&driver.space),
        };
        raw::put(address, default);
        lock(&self.body).cells.push(Arc::new(cell));
        Ok(address)
    }
    /// Whether the graph made that conditional handle.
    pub(super) fn has_cell(&self, address: Address) -> bool {
        let body = lock(&self.body);
        body.cells.iter().any(|cell| cell.address == address)
    }
    /// Holds an object of the program.
    pub(super) fn hold(&self, object: &UserObject, count: usize, moved: bool) {
        if !moved {
            object.retain(count);
        }
        *lock(&self.body).objects.entry(object.handle).or_insert(0) += count;
    }
    /// Lets go of an object of the program.
    pub(super) fn unhold(&self, driver: &Driver, object: &UserObject, count: usize) -> Answer {
        let mut body = lock(&self.body);
        let held = body.objects.get_mut(&object.handle);
        let held = held.ok_or(Status::INVALID_VALUE)?;
        *held = held.checked_sub(count).ok_or(Status::INVALID_VALUE)?;
        drop(body);
        object.release(driver, count)
    }
    /// What it holds, held once more.
    pub(super) fn share_objects(&self, driver: &Driver) -> Vec<(Handle, usize)> {
        let held: Vec<_> = lock(&self.body)
            .objects
            .iter()
            .map(|(&object, &count)| (object, count))
            .collect();
        for (object, count) in &held {
            if let Some(object) = driver.objects.find(*object) {
                object.retain(*count);
            }
        }
        held
    }
    /// A copy, with the graphs inside its nodes.
    pub(super) fn copy(&self, driver: &Driver, inner: bool) -> Answer<Arc<Self>> {
        self.copy_at(driver, inner, 0)
    }
    fn copy_at(&self, driver: &Driver, inner: bool, depth: usize) -> Answer<Arc<Self>> {
        if depth > DEEPEST {
            return Err(Status::INVALID_VALUE);
        }
        let copy = Self::make(driver, inner);
        let body = lock(&self.body);
        let mut names = BTreeMap::new();
        for &handle in &body.order {
            let Some(node) = body.nodes.get(&handle) else {
                continue;
            };
            let work = copy_work(driver, &node.work, depth)?;
            let made = copy.add(driver, work, &[])?;
            copy.change(made, |new| {
                new.attributes = node.attributes.clone();
                new.original = handle;
                Ok(())
            })?;
            names.insert(handle, made);
        }
        let mut target = lock(&copy.body);
        target.cells = body.cells.clone();
        for &(from, to, data) in &body.edges {
            if let (Some(&from), Some(&to)) = (names.get(&from), names.get(&to)) {
                target.edges.push((from, to, data));
            }
        }
        drop(target);
        drop(body);
        for (object, count) in self.share_objects(driver) {
            lock(&copy.body).objects.insert(object, count);
        }
        Ok(copy)
    }
    /// The nodes in an order that respects the edges, ready to run.
    ///
    /// # Errors
    /// When the edges make a circle.
    pub(super) fn steps(&self) -> Answer<Vec<Step>> {
        self.steps_at(0)
    }
    fn steps_at(&self, depth: usize) -> Answer<Vec<Step>> {
        if depth > DEEPEST {
            return Err(Status::INVALID_VALUE);
        }
        let body = lock(&self.body);
        let mut waiting: BTreeMap<Handle, usize> = BTreeMap::new();
        for edge in &body.edges {
            *waiting.entry(edge.1).or_insert(0) += 1;
        }
        let mut ready: std::collections::BTreeSet<Handle> = body
            .order
            .iter()
            .copied()
            .filter(|node| !waiting.contains_key(node))
            .collect();
        let mut places = BTreeMap::new();
        let mut steps: Vec<Step> = Vec::new();
        // Handles grow, so the order is that of the making where the edges allow it.
        while let Some(handle) = ready.pop_first() {
            let Some(node) = body.nodes.get(&handle) else {
                continue;
            };
            places.insert(handle, steps.len());
            let mut after = Vec::new();
            for edge in &body.edges {
                if edge.1 == handle {
                    after.extend(places.get(&edge.0).copied());
                }
                if edge.0 == handle
                    && let Some(count) = waiting.get_mut(&edge.1)
                {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert(edge.1);
                    }
                }
            }
            after.sort_unstable();
            steps.push(Step {
                node: handle,
                work: ready_work(&node.work, depth)?,
                enabled: true,
                after,
            });
        }
        if steps.len() != body.order.len() {
            return Err(Status::INVALID_VALUE);
        }
        Ok(steps)
    }
    /// The values of its conditionals, those of inner graphs too.
    pub(super) fn all_cells(&self) -> Vec<Arc<Cell>> {
        let body = lock(&self.body);
        let mut cells = body.cells.clone();
        for node in body.nodes.values() {
            match &node.work {
                Work::Graph(graph) => cells.extend(graph.all_cells()),
                Work::Conditional(conditional) => {
                    cells.extend(conditional.bodies.iter().flat_map(|body| body.all_cells()));
                }
                _ => {}
            }
        }
        cells
    }
}

fn destroy_inner(driver: &Driver, work: &Work) {
    match work {
        Work::Graph(graph) => graph.destroy(driver),
        Work::Conditional(conditional) => {
            for body in &conditional.bodies {
                body.destroy(driver);
            }
        }
        _ => {}
    }
}

fn copy_work(driver: &Driver, work: &Work, depth: usize) -> Answer<Work> {
    Ok(match work {
        Work::Graph(graph) => Work::Graph(graph.copy_at(driver, true, depth + 1)?),
        Work::Conditional(conditional) => {
            let bodies = conditional.bodies.iter();
            let bodies: Answer<Vec<_>> = bodies
                .map(|body| body.copy_at(driver, true, depth + 1))
                .collect();
            let (address, kind) = (conditional.address, conditional.kind);
            Work::Conditional(Conditional::new(address, kind, bodies?))
        }
        Work::MemOps(operations) => {
            Work::MemOps(MemOps::new(operations.list.clone(), operations.flags))
        }
        other => other.clone(),
    })
}

fn ready_work(work: &Work, depth: usize) -> Answer<Work> {
    Ok(match work {
        Work::Graph(graph) => Work::Steps(Arc::new(graph.steps_at(depth + 1)?)),
        Work::Conditional(conditional) => {
            let bodies = conditional.bodies.iter();
            let bodies: Answer<Vec<_>> = bodies
                .map(|body| body.steps_at(depth + 1).map(Arc::new))
                .collect();
            Work::Branch(Arc::new(Branch {
                address: conditional.address,
                kind: conditional.kind,
                bodies: bodies?,
            }))
        }
        // A run of its own begins at the first operation.
        Work::MemOps(operations) => {
            Work::MemOps(MemOps::new(operations.list.clone(), operations.flags))
        }
        other => other.clone(),
    })
}

/// The graph of a handle; graphs are values to this interface, so a wrong one is a wrong value.
pub(super) fn resolve(handle: Handle) -> Answer<Arc<Graph>> {
    driver()?.graphs.find(handle).ok_or(Status::INVALID_VALUE)
}

/// The graph that a node belongs to, and a copy of the node.
pub(super) fn node(handle: Handle) -> Answer<(Arc<Graph>, Node)> {
    let found = driver()?.nodes.find(handle).ok_or(Status::INVALID_VALUE)?;
    let graph = Arc::clone(&found.graph);
    let node = lock(&graph.body).nodes.get(&handle).cloned();
    Ok((graph, node.ok_or(Status::INVALID_VALUE)?))
}

/// Nodes that something is to come after, with the data of the edges.
pub(super) fn edges(
    graph: &Graph,
    nodes: In<Handle>,
    data: In<EdgeData>,
    count: usize,
) -> Answer<Vec<(Handle, EdgeData)>> {
    let nodes = nodes.array(count)?;
    let data = if data.is_null() {
        vec![EdgeData::default(); count]
    } else {
        data.array(count)?
    };
    if nodes.iter().any(|&node| !graph.has(node)) {
        return Err(Status::INVALID_VALUE);
    }
    Ok(nodes.into_iter().zip(data).collect())
}

/// The number of a node's type.
pub(super) fn kind(work: &Work) -> u32 {
    match work {
        Work::Kernel(_) => 0,
        Work::Copy(_) => 1,
        Work::Fill(_) => 2,
        Work::Host(_) | Work::Callback { .. } => 3,
        Work::Graph(_) | Work::Steps(_) | Work::Launch(_) => 4,
        Work::Empty | Work::Signal(_) | Work::Await(_) => 5,
        Work::WaitEvent(_) => 6,
        Work::Record(_) => 7,
        Work::Alloc(_) => 10,
        Work::Free(_) => 11,
        Work::MemOps(_) => 12,
        Work::Conditional(_) | Work::Branch(_) => 13,
    }
}
