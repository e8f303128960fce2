//! What goes on beside a warp: who uses shared memory and registers until they are waited for.

use crate::simulator::code::Inst;
use crate::simulator::code::Op;
use crate::simulator::code::Reg;
use crate::simulator::code::Role;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::By;
use crate::simulator::memory::Clock;
use crate::simulator::memory::Engine;
use crate::simulator::memory::window;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::state::Cluster;

/// Registers of an instruction that may be those of a product, and whether it writes them.
pub type Touched = Box<[(u32, bool)]>;

/// Registers of every instruction of a module with products; empty for one that has none.
pub fn touched(code: &[Inst]) -> Vec<Touched> {
    if !code.iter().any(|inst| matches!(inst.op, Op::Wgmma(_))) {
        return Vec::new();
    }
    let of = |inst: &Inst| {
        let mut list = Vec::new();
        // Products follow each other in the same registers.
        if !matches!(inst.op, Op::Wgmma(_)) {
            let mut inst = inst.clone();
            inst.visit(&mut |slot, role| list.push((unit(*slot), role == Role::Def)));
        }
        list.into_boxed_slice()
    };
    code.iter().map(of).collect()
}

/// Whether an instruction works beside its warp.
pub fn has_engine(op: &Op) -> bool {
    matches!(
        op,
        Op::CopyAsync(_) | Op::Bulk(_) | Op::BulkTensor(_) | Op::Wgmma(_)
    )
}

/// A register as a number that no other one of its size has.
fn unit(slot: Slot) -> u32 {
    slot.0 / 64
}

/// A set of registers.
#[derive(Default)]
struct Units(Vec<u64>);

impl Units {
    fn insert(&mut self, unit: u32) {
        let word = unit as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (unit % 64);
    }
    fn contains(&self, unit: u32) -> bool {
        let word = self.0.get(unit as usize / 64);
        word.is_some_and(|word| word >> (unit % 64) & 1 != 0)
    }
}

/// A product under way.
struct Product {
    ticket: u32,
    group: u32,
    line: u32,
    results: Vec<u32>,
    sources: Vec<u32>,
}

/// What a warp's engines do.
#[derive(Default)]
pub struct Engines {
    tickets: [u32; Engine::COUNT],
    products: Vec<Product>,
    /// The group the next product belongs to.
    group: u32,
    /// Registers that the products write, and that they read.
    results: Units,
    sources: Units,
    /// Whether there was a `wgmma.fence`. That registers are written after the last one is not
    /// looked for: the assembler knows, and XLA's kernels do it.
    fenced: bool,
}

impl Engines {
    /// Whether registers are watched.
    pub fn watches(&self) -> bool {
        !self.products.is_empty()
    }
    /// A number for the next work of an engine.
    pub fn ticket(&mut self, engine: Engine) -> u32 {
        let ticket = &mut self.tickets[engine as usize];
        *ticket = ticket.saturating_add(1);
        *ticket
    }
    /// The number of an engine's last work.
    pub fn last(&self, engine: Engine) -> u32 {
        self.tickets[engine as usize]
    }
    fn gather(&mut self) {
        (self.results, self.sources) = Default::default();
        for product in &self.products {
            product.results.iter().for_each(|u| self.results.insert(*u));
            product.sources.iter().for_each(|u| self.sources.insert(*u));
        }
    }
}

/// The clock of who has waited for an engine's work, and knows nothing else.
pub fn clock_of(cluster: &Cluster, warp: usize, engine: Engine, ticket: u32) -> Clock {
    let mut clock = Clock::new(cluster.blocks.len() * cluster.warps_per_block, true);
    let party = clock.party(warp, engine);
    clock.see(party, ticket);
    clock
}

impl Exec<'_, '_> {
    /// Notes that an engine uses shared bytes, which lie within, from now on until its work is
    /// waited for.
    pub fn note_engine(
        &mut self,
        (engine, ticket): (Engine, u32),
        (rank, offset): (usize, u32),
        bytes: u32,
        write: bool,
        lane: usize,
    ) {
        let me = self.warp_number();
        let line = self.inst().line;
        let shared = &mut self.cluster.blocks[rank].shared;
        let missing = !write && !shared.is_written(offset, bytes);
        let conflict = if shared.tracks_races() {
            let by = By {
                party: self.warp.clock.party(me, engine),
                count: ticket,
                clock: &self.warp.clock,
                line,
                proxy: true,
            };
            shared.note(offset, bytes, write, &by)
        } else {
            None
        };
        if let Some(conflict) = conflict {
            let did = if write {
                "copy to"
            } else {
                "read by an engine of"
            };
            let report = self.conflict(&conflict, rank, offset, bytes, did, lane);
            self.note(report);
        } else if missing {
            let message = format!("{bytes} bytes of shared memory, read by an engine");
            let mut report = self.report(ReportKind::Uninitialized, lane, message);
            let address = window::shared(rank, offset, self.block);
            report.address = Some(address);
            report.allocation = self.whereabouts(address);
            self.note(report);
        }
    }

    /// The warp has waited for an engine's work up to a ticket.
    pub fn see_engine(&mut self, engine: Engine, ticket: u32) {
        let me = self.warp_number();
        let party = self.warp.clock.party(me, engine);
        self.warp.clock.see(party, ticket);
    }

    /// `wgmma.fence`
    pub fn product_fence(&mut self) {
        self.warp.engines.fenced = true;
    }

    /// `wgmma.commit_group`
    pub fn product_commit(&mut self) {
        self.warp.engines.group += 1;
    }

    /// `wgmma.wait_group`
    pub fn product_wait(&mut self, count: u32) {
        let engines = &mut self.warp.engines;
        let group = engines.group;
        engines
            .products
            .retain(|p| p.group.saturating_add(count) >= group);
        engines.gather();
        let first = engines.products.iter().map(|p| p.ticket).min();
        let done = first.map_or(engines.last(Engine::Product), |first| first - 1);
        self.see_engine(Engine::Product, done);
    }

    /// Notes a product that is under way from now on; gives its ticket.
    pub fn product_begins(&mut self, results: &[Reg], sources: &[Reg]) -> u32 {
        let line = self.inst().line;
        let engines = &mut self.warp.engines;
        let ticket = engines.ticket(Engine::Product);
        if self.worker.grid.touched.is_empty() {
            return ticket;
        }
        let units = |list: &[Reg]| -> Vec<u32> { list.iter().map(|reg| unit(reg.slot)).collect() };
        let product = Product {
            ticket,
            group: engines.group,
            line,
            results: units(results),
            sources: units(sources),
        };
        product
            .results
            .iter()
            .for_each(|u| engines.results.insert(*u));
        product
            .sources
            .iter()
            .for_each(|u| engines.sources.insert(*u));
        engines.products.push(product);
        if !engines.fenced {
            let message = "no wgmma.fence before the first product".to_owned();
            self.note(self.report(ReportKind::MissingFence, self.first_lane(), message));
        }
        ticket
    }

    /// Looks whether the instruction at hand uses registers of a product under way.
    pub fn watch(&mut self) {
        let Some(touched) = self.worker.grid.touched.get(self.cur.pc as usize) else {
            return;
        };
        let mut found = None;
        for &(unit, writes) in touched {
            let engines = &self.warp.engines;
            if engines.results.contains(unit) || (writes && engines.sources.contains(unit)) {
                let uses = |p: &&Product| p.results.contains(&unit) || p.sources.contains(&unit);
                let product = engines.products.iter().find(uses);
                found = found.or(product.map(|product| (writes, product.line)));
            }
        }
        if let Some((writes, line)) = found {
            let did = if writes { "written" } else { "read" };
            let message = format!("a register of the product of PTX line {line} is {did}");
            self.note(self.report(ReportKind::EarlyUse, self.first_lane(), message));
        }
    }
}
