//! A module whose instructions have an order.

use crate::analysis::Dataflow;
use crate::base::IdMap;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::schedule::memory;
use crate::target::Target;

/// A module and the order in which the instructions of each computation of control flow run.
///
/// The instruction lists of those computations are in the same order, and the module says that it is
/// scheduled.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The module.
    pub module: Module,
    /// The order, by computation; empty for fusion bodies and the like.
    pub order: IdMap<CompId, Vec<InstrId>>,
}

/// Chooses an order for every computation of control flow.
///
/// # Errors
/// `XA9001` when a computation of control flow has two callers.
pub fn run(module: Module, target: &Target) -> Result<Scheduled> {
    let flow = Dataflow::new(&module)?;
    let mut order = IdMap::new();
    let mut peaks = memory::Peaks::default();
    for &comp in flow.comps().iter().rev() {
        let list = memory::schedule(&module, &flow, comp, target, &mut peaks);
        order.set(comp, list);
    }
    Ok(Scheduled::with_order(module, order))
}

impl Scheduled {
    /// A module in the order its instructions are listed in.
    ///
    /// # Errors
    /// `XA9001` when a computation of control flow has two callers.
    pub fn as_listed(module: Module) -> Result<Self> {
        let flow = Dataflow::new(&module)?;
        let mut order = IdMap::new();
        for &comp in flow.comps() {
            order.set(comp, module.comps[comp].instrs.clone());
        }
        Ok(Self::with_order(module, order))
    }

    fn with_order(mut module: Module, order: IdMap<CompId, Vec<InstrId>>) -> Self {
        for (comp, list) in order.iter() {
            if !list.is_empty() {
                module.comps[comp].instrs.clone_from(list);
            }
        }
        module.is_scheduled = true;
        Self { module, order }
    }
}
