//! What goes wrong on purpose, so that a test can say when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::ports::PortError;

use super::{Memory, State};

/// How a call of a port goes wrong. The caller cannot tell one from the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It was never carried out.
    NotDone,
    /// It was carried out, and the answer got lost.
    AnswerLost,
}

/// Made by a test.
#[derive(Debug, thiserror::Error)]
#[error("a fault made by a test: {0:?}")]
struct OnPurpose(Fault);

/// What is to go wrong.
#[derive(Debug, Default)]
pub(super) struct Faults {
    next: BTreeMap<&'static str, VecDeque<Fault>>,
    down: BTreeSet<&'static str>,
    pub(super) leases_broken: bool,
}

impl Memory {
    /// The next call of an operation, like `store.commit`, goes wrong. Several faults go one after the other.
    pub fn fails_next(&self, operation: &'static str, fault: Fault) {
        self.change(|state| state.faults.next.entry(operation).or_default().push_back(fault));
    }

    /// From now on every operation whose name begins so is out of order: `store.` is all of the store.
    pub fn is_down(&self, operations: &'static str) {
        self.change(|state| state.faults.down.insert(operations));
    }

    /// What was out of order works again.
    pub fn is_up(&self, operations: &'static str) {
        self.change(|state| state.faults.down.remove(operations));
    }

    /// From now on everybody gets and keeps every lease.
    pub fn break_leases(&self) {
        self.change(|state| state.faults.leases_broken = true);
    }

    /// Carries out an operation, unless it is to go wrong.
    pub(super) fn work<R>(&self, operation: &'static str, work: impl FnOnce(&mut State) -> R) -> Result<R, PortError> {
        self.change(|state| match state.faults.take(operation) {
            Some(fault @ Fault::NotDone) => Err(PortError::unavailable(operation, OnPurpose(fault))),
            Some(fault @ Fault::AnswerLost) => {
                work(state);
                Err(PortError::unavailable(operation, OnPurpose(fault)))
            }
            None => Ok(work(state)),
        })
    }
}

impl Faults {
    pub(super) fn take(&mut self, operation: &str) -> Option<Fault> {
        if self.down.iter().any(|down| operation.starts_with(down)) {
            return Some(Fault::NotDone);
        }
        self.next.get_mut(operation)?.pop_front()
    }
}
