//! Finds kernels that are equal but for their names, so that one is compiled for all.
//!
//! Repeated layers of a model give many of them. On a CPU the copies become further symbols of the
//! same code. A GPU's kernels travel one by one, so there each stays by itself.

use std::collections::BTreeMap;

use crate::executable::KernelId;
use crate::kernel::Buffer;
use crate::kernel::Kernel;
use crate::target::Target;

/// A kernel and those that are equal to it.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The first, which is compiled.
    pub(super) kernel: Kernel,
    /// Ids and names of the others.
    pub(super) others: Vec<(KernelId, String)>,
}

impl Group {
    /// The ids of all.
    pub(super) fn ids(&self) -> impl Iterator<Item = KernelId> {
        std::iter::once(self.kernel.id).chain(self.others.iter().map(|(id, _)| *id))
    }
    /// The names of all.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().map(|(_, name)| name.as_str());
        std::iter::once(self.kernel.name.as_str()).chain(others)
    }
}

/// Groups of equal kernels, in the order of their first members.
pub(super) fn group(kernels: &[Kernel], target: &Target) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    // Groups by a size that equal kernels share.
    let mut known: BTreeMap<(usize, usize, [u64; 3]), Vec<usize>> = BTreeMap::new();
    for kernel in kernels {
        let size = (
            kernel.exprs.len(),
            kernel.buffers.len(),
            kernel.launch.workgroups,
        );
        let candidates = known.entry(size).or_default();
        let equal = candidates
            .iter()
            .find(|&&g| target.gpu().is_none() && same(&groups[g].kernel, kernel));
        match equal {
            Some(&g) => groups[g].others.push((kernel.id, kernel.name.clone())),
            None => {
                candidates.push(groups.len());
                groups.push(Group {
                    kernel: kernel.clone(),
                    others: Vec::new(),
                });
            }
        }
    }
    groups
}

/// Whether two kernels do the same.
fn same(a: &Kernel, b: &Kernel) -> bool {
    a.launch == b.launch
        && a.buffers.len() == b.buffers.len()
        && a.buffers
            .values()
            .zip(b.buffers.values())
            .all(|(x, y)| same_buffer(x, y))
        && a.exprs == b.exprs
        && a.body == b.body
}

/// Whether two buffers differ in their names only.
fn same_buffer(a: &Buffer, b: &Buffer) -> bool {
    let Buffer {
        name: _,
        elem,
        count,
        space,
        align,
        written,
        noalias,
    } = a;
    (*elem, *count, *space) == (b.elem, b.count, b.space)
        && (*align, *written, *noalias) == (b.align, b.written, b.noalias)
}
