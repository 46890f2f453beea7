//! Who holds which lock: those of a database file, and those of its wal-index.

use std::collections::{BTreeMap, BTreeSet};

/// The locks of a wal-index.
pub(crate) const SLOTS: usize = 8;
/// 32 KiB of wal-index, in words, so that they are aligned.
const REGION_WORDS: usize = 4_096;

/// The levels of SQLite's lock of a database file.
const SHARED: i32 = 1;
const RESERVED: i32 = 2;

#[derive(Debug, Default)]
struct Slot {
    shared: BTreeSet<u64>,
    exclusive: Option<u64>,
}

/// The wal-index of a database.
#[derive(Debug, Default)]
struct Index {
    regions: Vec<Box<[u64]>>,
    slots: [Slot; SLOTS],
    users: BTreeSet<u64>,
}

/// All locks of a disk. A holder is an open file, by its number.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    levels: BTreeMap<String, BTreeMap<u64, i32>>,
    indexes: BTreeMap<String, Index>,
    pub(crate) last_handle: u64,
}

impl Locks {
    /// Raises the lock of a database file to this level. Returns false if another holder prevents it.
    pub(crate) fn raise(&mut self, name: &str, handle: u64, level: i32) -> bool {
        let levels = self.levels.entry(name.to_owned()).or_default();
        let highest_other = levels.iter().filter(|(other, _)| **other != handle).map(|(_, level)| *level).max();
        let allowed = match highest_other {
            None | Some(0) => true,
            Some(SHARED) => level <= RESERVED,
            Some(RESERVED) => level <= SHARED,
            Some(_) => false,
        };
        if allowed {
            let held = levels.entry(handle).or_default();
            *held = level.max(*held);
        }
        allowed
    }

    /// Lowers the lock of a database file to this level.
    pub(crate) fn lower(&mut self, name: &str, handle: u64, level: i32) {
        if let Some(levels) = self.levels.get_mut(name) {
            levels.insert(handle, level);
        }
    }

    /// Whether anyone is about to write the database file.
    pub(crate) fn is_reserved(&self, name: &str) -> bool {
        self.levels.get(name).is_some_and(|levels| levels.values().any(|level| *level >= RESERVED))
    }

    /// A file is closed.
    pub(crate) fn close(&mut self, name: &str, handle: u64) {
        if let Some(levels) = self.levels.get_mut(name) {
            levels.remove(&handle);
        }
        self.leave_index(name, handle, false);
    }

    /// A region of the wal-index. `None` if it is not there and must not be made.
    pub(crate) fn region(&mut self, name: &str, handle: u64, number: usize, extend: bool) -> Option<*mut u64> {
        let index = self.indexes.entry(name.to_owned()).or_default();
        index.users.insert(handle);
        if extend {
            while index.regions.len() <= number {
                index.regions.push(vec![0; REGION_WORDS].into());
            }
        }
        index.regions.get_mut(number).map(|region| region.as_mut_ptr())
    }

    /// Takes or leaves locks of the wal-index. Returns false if another holder prevents it.
    pub(crate) fn index_lock(
        &mut self,
        name: &str,
        handle: u64,
        slots: std::ops::Range<usize>,
        takes: bool,
        exclusive: bool,
    ) -> bool {
        let index = self.indexes.entry(name.to_owned()).or_default();
        let slots = &mut index.slots[slots];
        if !takes {
            for slot in slots {
                slot.shared.remove(&handle);
                slot.exclusive.take_if(|holder| *holder == handle);
            }
            return true;
        }
        let is_free = |slot: &Slot| {
            slot.exclusive.is_none_or(|holder| holder == handle)
                && (!exclusive || slot.shared.iter().all(|holder| *holder == handle))
        };
        let is_free = slots.iter().all(is_free);
        if is_free {
            for slot in slots {
                if exclusive {
                    slot.exclusive = Some(handle);
                } else {
                    slot.shared.insert(handle);
                }
            }
        }
        is_free
    }

    /// A file no longer uses the wal-index.
    pub(crate) fn leave_index(&mut self, name: &str, handle: u64, deletes: bool) {
        self.index_lock(name, handle, 0..SLOTS, false, false);
        if let Some(index) = self.indexes.get_mut(name) {
            index.users.remove(&handle);
            if index.users.is_empty() && deletes {
                self.indexes.remove(name);
            }
        }
    }
}
