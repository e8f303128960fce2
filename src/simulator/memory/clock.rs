//! Vector clocks: who has seen what of whom.
//!
//! Each warp counts its own releases, and knows of every other warp up to which count it has seen.
//! Two accesses are ordered when the later one's warp has seen the count at which the earlier one
//! was made. What goes on by itself (copies, products of matrices) is a party of its own: an
//! [`Engine`] of the warp that issued it, whose count others see once they have waited for it.

/// What works beside a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `cp.async`
    Copy,
    /// `wgmma`
    Product,
    /// Bulk copies that a barrier object waits for.
    Load,
    /// Bulk copies that the thread's groups wait for.
    Group,
}

impl Engine {
    /// How many there are.
    pub const COUNT: usize = 4;

    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "a copy under way",
            Self::Product => "a product under way",
            Self::Load | Self::Group => "a bulk copy under way",
        }
    }
    /// Which part of a clock it has.
    fn part(self) -> usize {
        match self {
            Self::Copy => 1,
            Self::Product => 4,
            Self::Load => 5,
            Self::Group => 6,
        }
    }
    fn of(part: usize) -> Option<Self> {
        let all = [Self::Copy, Self::Product, Self::Load, Self::Group];
        all.into_iter().find(|engine| engine.part() == part)
    }
}

/// Parts of a clock, each as long as the cluster has warps: warps, their `cp.async`, what the async
/// proxy has seen of those two, and the other engines.
const PARTS: usize = 7;

/// What one warp has seen of every party of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    counts: Vec<u32>,
    warps: usize,
}

impl Clock {
    /// A clock of `warps` warps, and their engines if `engines`, that have all seen nothing.
    pub fn new(warps: usize, engines: bool) -> Self {
        let parts = if engines { PARTS } else { 1 };
        Self {
            counts: vec![0; warps * parts],
            warps,
        }
    }
    /// The party of a warp's engine.
    pub fn party(&self, warp: usize, engine: Engine) -> u16 {
        (engine.part() * self.warps + warp) as u16
    }
    /// The warp of a party, and its engine if it is one.
    pub fn who(&self, party: u16) -> (usize, Option<Engine>) {
        let warps = self.warps.max(1);
        let party = usize::from(party);
        (party % warps, Engine::of(party / warps))
    }
    /// Takes over what `other` has seen.
    pub fn join(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
            self.warps = other.warps;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = (*mine).max(*theirs);
        }
    }
    /// Has seen a party up to a count.
    pub fn see(&mut self, party: u16, count: u32) {
        if let Some(mine) = self.counts.get_mut(usize::from(party)) {
            *mine = (*mine).max(count);
        }
    }
    /// Up to which count a party was seen.
    #[inline]
    pub fn seen(&self, party: u16) -> u32 {
        self.counts.get(usize::from(party)).copied().unwrap_or(0)
    }
    /// The async proxy has seen everything that this clock has.
    pub fn pass_proxy(&mut self) {
        let generic = 2 * self.warps;
        if let Some((now, rest)) = self.counts.split_at_mut_checked(generic) {
            for (seen, now) in rest.iter_mut().zip(now) {
                *seen = (*seen).max(*now);
            }
        }
    }
    /// Whether the async proxy sees what a party had written by a count: what an engine of that
    /// proxy wrote it always does.
    pub fn proxy_sees(&self, party: u16, count: u32) -> bool {
        let generic = 2 * self.warps;
        let party = usize::from(party);
        party >= generic
            || self
                .counts
                .get(generic + party)
                .is_none_or(|seen| *seen >= count)
    }
}
