//! Runs on memory of callers: what lies as kernels want it is used as it is, other is copied once.
//!
//! A program that is called keeps the memory of its runs, one for each call that ran at the same time.
#![allow(
    unsafe_code,
    reason = "lends memory of callers to runs, and keeps runs beside their program"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use crate::base::Result;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::runtime::binding;
use crate::runtime::loaded::Bound;
use crate::runtime::loaded::Loaded;
use crate::runtime::loaded::lock;
use crate::shape::ArrayShape;
use crate::shape::Dims;

/// An array of a caller's: elements in the order of the layout, packed, without gaps.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// The bytes of the elements.
    pub bytes: &'a [u8],
    /// The sizes, when they are not those of the parameter.
    pub sizes: Option<&'a [usize]>,
}

/// An array leaf of the parameters, and the allocation for it, if the program has one.
pub struct Leaf {
    /// Its shape.
    pub shape: ArrayShape,
    /// Its memory.
    pub alloc: Option<AllocId>,
    /// Whether a result may share that memory.
    pub is_aliased: bool,
}

/// A loaded program that callers run.
pub struct Callable {
    /// Runs that nobody makes now. They go before the program that they borrow.
    idle: Mutex<Vec<Bound<'static>>>,
    leaves: Vec<Leaf>,
    loaded: Arc<Loaded>,
}

impl Callable {
    /// A program that has not run yet.
    pub fn new(loaded: Arc<Loaded>) -> Self {
        Self {
            idle: Mutex::default(),
            leaves: leaves(&loaded),
            loaded,
        }
    }

    /// Runs once: arguments and results are those of the first device, then those of the second, and
    /// so on, in the order of array leaves; each argument has the bytes of its sizes, which are within
    /// the bounds, and each result has room for its bounds. Gives the sizes of each result.
    ///
    /// # Errors
    /// `XA8004` when the program fails; it is as good as before then.
    pub fn call(&self, arguments: &[Argument<'_>], results: &mut [&mut [u8]]) -> Result<Vec<Dims>> {
        let idle = lock(&self.idle).pop();
        let mut bound = match idle {
            Some(bound) => bound,
            None => self.bind()?,
        };
        // SAFETY: the memory is borrowed until the run has ended, and every run is given all of it
        // anew, so that none uses what an earlier one was lent.
        let sizes = unsafe { bound.run_on(&self.leaves, arguments, results)? };
        lock(&self.idle).push(bound);
        Ok(sizes)
    }

    fn bind(&self) -> Result<Bound<'static>> {
        let bound = self.loaded.bind_empty()?;
        // SAFETY: what is bound borrows the program, which stays where it is and lives as long as
        // `self.loaded`, and `idle` is dropped before that.
        Ok(unsafe { std::mem::transmute::<Bound<'_>, Bound<'static>>(bound) })
    }
}

fn leaves(loaded: &Loaded) -> Vec<Leaf> {
    let mut allocs = BTreeMap::new();
    for (id, allocation) in loaded.allocs().iter() {
        if let AllocKind::Parameter { number, index, .. } = &allocation.kind {
            allocs.insert((*number, index.clone()), id);
        }
    }
    let signature = loaded.signature();
    let leaves = binding::parameter_leaves(signature).into_iter();
    let leaves = leaves.map(|(number, index, shape)| {
        let mut aliases = signature.aliases.iter();
        Leaf {
            shape: shape.clone(),
            is_aliased: aliases.any(|a| a.parameter == number && a.index == index),
            alloc: allocs.get(&(number, index)).copied(),
        }
    });
    leaves.collect()
}
