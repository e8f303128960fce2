//! Typed ids, and the arenas and dense maps they index.
//!
//! An id is four bytes and only means something together with the arena that made it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Index;
use std::ops::IndexMut;

/// A dense index of one kind of thing.
pub trait Id: Copy + Eq + Ord + fmt::Debug {
    /// The id of the `index`-th thing.
    ///
    /// # Panics
    /// When an arena would hold more than `u32::MAX - 1` things.
    fn from_index(index: usize) -> Self;
    /// The position of the thing in its arena.
    fn index(self) -> usize;
}

/// Defines an id type; the string is the prefix its debug form carries.
#[macro_export]
macro_rules! define_id {
    ($(#[$meta:meta])* $vis:vis struct $name:ident, $prefix:literal;) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(std::num::NonZeroU32);

        impl $crate::base::Id for $name {
            fn from_index(index: usize) -> Self {
                let raw = u32::try_from(index).ok().and_then(|i| i.checked_add(1));
                let raw = raw.and_then(std::num::NonZeroU32::new);
                Self(raw.expect("an arena holds fewer than u32::MAX things"))
            }
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0.get() - 1)
            }
        }
    };
}

/// A growing list of `T`, indexed by `I`.
#[derive(Clone, PartialEq, Eq)]
pub struct Arena<I, T> {
    items: Vec<T>,
    ids: PhantomData<I>,
}

impl<I: Id, T> Arena<I, T> {
    /// An arena that holds nothing.
    pub fn new() -> Self {
        Self {
            items: Vec::new(),
            ids: PhantomData,
        }
    }
    /// Stores `item` and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }
    /// The number of things held.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The item of `id`, when this arena has one.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
    /// Every id, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }
    /// Every id with its item, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.items
            .iter()
            .enumerate()
            .map(|(i, item)| (I::from_index(i), item))
    }
    /// Every item, in order.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }
    /// Every item, in order, to be changed.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
}

impl<I: Id, T> Default for Arena<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> FromIterator<T> for Arena<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(iter: It) -> Self {
        Self {
            items: iter.into_iter().collect(),
            ids: PhantomData,
        }
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I: Id + fmt::Debug, T: fmt::Debug> fmt::Debug for Arena<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A dense map from ids to `T`; an id never set reads as the default.
#[derive(Clone, PartialEq, Eq)]
pub struct IdMap<I, T> {
    items: Vec<T>,
    default: T,
    ids: PhantomData<I>,
}

impl<I: Id, T: Clone + Default> IdMap<I, T> {
    /// A map in which every id reads as `T::default()`.
    pub fn new() -> Self {
        Self {
            items: Vec::new(),
            default: T::default(),
            ids: PhantomData,
        }
    }
    /// The ids up to the largest one set, with their values, in id order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.items
            .iter()
            .enumerate()
            .map(|(i, item)| (I::from_index(i), item))
    }
    /// Sets the value of `id`.
    pub fn set(&mut self, id: I, value: T) {
        self[id] = value;
    }
}

impl<I: Id, T: Clone + Default> Default for IdMap<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for IdMap<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.items.get(id.index()).unwrap_or(&self.default)
    }
}

impl<I: Id, T: Clone> IndexMut<I> for IdMap<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        let index = id.index();
        if index >= self.items.len() {
            self.items.resize(index + 1, self.default.clone());
        }
        &mut self.items[index]
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IdMap<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self
            .items
            .iter()
            .enumerate()
            .map(|(i, item)| (I::from_index(i), item));
        f.debug_map().entries(entries).finish()
    }
}

/// A set of ids as a dense list of flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdSet<I> {
    flags: Vec<bool>,
    ids: PhantomData<I>,
}

impl<I: Id> IdSet<I> {
    /// The empty set.
    pub fn new() -> Self {
        Self {
            flags: Vec::new(),
            ids: PhantomData,
        }
    }
    /// Adds `id`; true when it was not in the set before.
    pub fn insert(&mut self, id: I) -> bool {
        let index = id.index();
        if index >= self.flags.len() {
            self.flags.resize(index + 1, false);
        }
        !std::mem::replace(&mut self.flags[index], true)
    }
    /// Takes `id` out; true when it was in the set.
    pub fn remove(&mut self, id: I) -> bool {
        self.flags.get_mut(id.index()).is_some_and(std::mem::take)
    }
    /// Whether `id` is in the set.
    pub fn contains(&self, id: I) -> bool {
        self.flags.get(id.index()).copied().unwrap_or(false)
    }
    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = I> {
        self.flags
            .iter()
            .enumerate()
            .filter(|(_, set)| **set)
            .map(|(i, _)| I::from_index(i))
    }
}
