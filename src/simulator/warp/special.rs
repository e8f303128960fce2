//! The machine's state, and addresses of other blocks.

use crate::simulator::code::Space;
use crate::simulator::code::Special;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::window;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::worker::Fault;

/// Cycles that one instruction of a warp counts for.
const CYCLES: u64 = 4;

impl Exec<'_, '_> {
    /// Reads a special register.
    pub fn special(&mut self, which: Special, d: Slot, wide: bool) {
        use Special::*;
        let grid = self.worker.grid;
        let launch = grid.launch;
        let block = &self.cluster.blocks[self.block];
        let axis = |a: u8| usize::from(a.min(2));
        // The fourth part of a vector is zero, of a size one.
        let of = |v: [u32; 3], a: u8, fourth: u32| if a > 2 { fourth } else { v[axis(a)] };
        let cycles = self.warp.executed * CYCLES;
        let time = cycles / 2 + block.number;
        let lane_bits = |f: fn(u32) -> u32| std::array::from_fn(|lane| u64::from(f(lane as u32)));
        let each = |v: [u32; 32]| v.map(u64::from);
        let shared = u64::from(block.shared.size());
        if let (Tid(a @ 0..3), false) = (which, wide) {
            let lanes = self.warp.tid[axis(a)];
            self.warp.file.write::<u32>(d, self.mask, &lanes);
            return;
        }
        let values: [u64; 32] = match which {
            Tid(a) if a < 3 => each(self.warp.tid[axis(a)]),
            Tid(_) => [0; 32],
            LaneId => std::array::from_fn(|lane| lane as u64),
            LaneMaskEq => lane_bits(|l| 1 << l),
            LaneMaskLt => lane_bits(|l| (1 << l) - 1),
            LaneMaskLe => lane_bits(|l| ((2u64 << l) - 1) as u32),
            LaneMaskGt => lane_bits(|l| !((2u64 << l) - 1) as u32),
            LaneMaskGe => lane_bits(|l| !((1 << l) - 1)),
            _ => {
                [match which {
                    Ntid(a) => u64::from(of(launch.block, a, 1)),
                    Ctaid(a) => u64::from(of(block.ctaid, a, 0)),
                    Nctaid(a) => u64::from(of(launch.grid, a, 1)),
                    ClusterId(a) => u64::from(of(self.cluster.id, a, 0)),
                    NClusterId(a) => u64::from(of(grid.clusters(), a, 1)),
                    ClusterCtaid(a) => {
                        let of_cluster =
                            [0, 1, 2].map(|i| block.ctaid[i] % launch.cluster[i].max(1));
                        u64::from(of(of_cluster, a, 0))
                    }
                    ClusterNctaid(a) => u64::from(of(launch.cluster, a, 1)),
                    ClusterCtaRank => u64::from(block.rank),
                    ClusterNctaRank => self.cluster.blocks.len() as u64,
                    IsExplicitCluster => u64::from(self.cluster.blocks.len() > 1),
                    WarpId => u64::from(self.warp.id),
                    NWarpId => self.cluster.warps_per_block as u64,
                    SmId => block.number % u64::from(grid.cores.max(1)),
                    NSmId => u64::from(grid.cores),
                    GridId => grid.id,
                    Clock => cycles & 0xffff_ffff,
                    ClockHi => cycles >> 32,
                    Clock64 => cycles,
                    GlobalTimer => time,
                    GlobalTimerLo => time & 0xffff_ffff,
                    GlobalTimerHi => time >> 32,
                    TotalSmemSize | AggrSmemSize => shared,
                    DynamicSmemSize => u64::from(launch.dynamic_shared),
                    ActiveMask => u64::from(self.mask),
                    DynamicShared => u64::from(grid.function.dynamic_shared_at),
                    ParamAddress(at) => grid.params + u64::from(at),
                    FrameAddress(at) => u64::from(self.cur.local) + u64::from(at),
                    _ => 0,
                }; 32]
            }
        };
        if wide {
            self.warp.file.write::<u64>(d, self.mask, &values);
        } else {
            self.warp
                .file
                .write::<u32>(d, self.mask, &values.map(|v| v as u32));
        }
    }

    /// `isspacep`
    pub fn is_space(&mut self, p: Slot, a: Slot, space: Space) {
        let addresses = *self.warp.file.read::<u64>(a);
        let mut bits = 0;
        for lane in self.lanes() {
            let place = window::place(addresses[lane]);
            let within = match space {
                Space::Shared => matches!(place, window::Place::Shared(_)),
                Space::Local => matches!(place, window::Place::Local(_)),
                Space::Param => {
                    let params = self.worker.grid.params;
                    let size = self.worker.grid.launch.params.len() as u64;
                    (params..params + size).contains(&addresses[lane])
                }
                Space::Constant => {
                    let near = self.worker.grid.snapshot.near(addresses[lane]);
                    near.is_some_and(|n| n.holds(addresses[lane], 1) && !n.kind().is_writable())
                }
                Space::Global | Space::Generic => place == window::Place::Global,
            };
            bits |= u32::from(within) << lane;
        }
        self.warp.file.set_predicate(p, self.mask, bits);
    }

    /// `mapa`: the same address in another block of the cluster.
    pub fn map_address(
        &mut self,
        d: Slot,
        a: Slot,
        rank: Slot,
        generic: bool,
        wide: bool,
    ) -> Result<Flow, Fault> {
        let ranks = *self.warp.file.read::<u32>(rank);
        for lane in self.lanes() {
            if ranks[lane] as usize >= self.cluster.blocks.len() {
                let message = format!(
                    "rank {} of a cluster of {} blocks",
                    ranks[lane],
                    self.cluster.blocks.len()
                );
                return Err(Box::new(self.report(
                    ReportKind::IllegalInstruction,
                    lane,
                    message,
                )));
            }
            // Within a cluster of one block an address stays what it is.
            let field = if self.cluster.blocks.len() == 1 {
                0
            } else {
                ranks[lane] + 1
            };
            let high = u64::from(field) << window::RANK_SHIFT;
            let low = (1u64 << window::RANK_SHIFT) - 1;
            if wide {
                let address = self.warp.file.read::<u64>(a)[lane];
                let window = if generic { window::SHARED } else { 0 };
                self.warp.file.edit::<u64>(d)[lane] = window | high | (address & low);
            } else {
                let address = self.warp.file.read::<u32>(a)[lane];
                self.warp.file.edit::<u32>(d)[lane] = high as u32 | (address & low as u32);
            }
        }
        Ok(Flow::Next)
    }

    /// `getctarank`
    pub fn get_rank(&mut self, d: Slot, a: Slot, _generic: bool, wide: bool) {
        let own = self.block as u32;
        for lane in self.lanes() {
            let address = if wide {
                self.warp.file.read::<u64>(a)[lane] as u32
            } else {
                self.warp.file.read::<u32>(a)[lane]
            };
            let field = address >> window::RANK_SHIFT;
            self.warp.file.edit::<u32>(d)[lane] = field.checked_sub(1).unwrap_or(own);
        }
    }
}
