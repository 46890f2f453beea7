//! Injected faults. A test decides when they happen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::ports::PortError;

use super::{Memory, State};

/// How a call of a port fails. The caller cannot distinguish the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call was not carried out.
    NotDone,
    /// The call was carried out, and the answer is lost.
    AnswerLost,
}

/// The cause of an injected error.
#[derive(Debug, thiserror::Error)]
#[error("a fault made by a test: {0:?}")]
struct OnPurpose(Fault);

/// The faults to inject.
#[derive(Debug, Default)]
pub(super) struct Faults {
    next: BTreeMap<&'static str, VecDeque<Fault>>,
    down: BTreeSet<String>,
    pub(super) leases_broken: bool,
}

impl Memory {
    /// The next call of an operation, such as `store.commit`, fails. Several faults apply in order.
    pub fn fails_next(&self, operation: &'static str, fault: Fault) {
        self.change(|state| state.faults.next.entry(operation).or_default().push_back(fault));
    }

    /// From now on, every operation whose name starts with this prefix fails: `store.` means the whole store. Under
    /// [`faulty::Faulty`](crate::faulty::Faulty), the call's subject may follow: `events.notify team`.
    pub fn is_down(&self, operations: impl Into<String>) {
        self.change(|state| state.faults.down.insert(operations.into()));
    }

    /// Ends the failure of this prefix.
    pub fn is_up(&self, operations: &str) {
        self.change(|state| state.faults.down.remove(operations));
    }

    /// From now on, every caller gets and keeps every lease.
    pub fn break_leases(&self) {
        self.change(|state| state.faults.leases_broken = true);
    }

    /// Carries out an operation, unless a fault applies.
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
        if self.has_down(operation) {
            return Some(Fault::NotDone);
        }
        self.next.get_mut(operation)?.pop_front()
    }

    fn has_down(&self, operation: &str) -> bool {
        self.down.iter().any(|down| operation.starts_with(&**down))
    }

    /// Whether this operation is down for this subject.
    pub(super) fn has_down_of(&self, operation: &str, of: &str) -> bool {
        let mut subjects = self.down.iter().filter_map(|down| down.strip_prefix(operation)?.strip_prefix(' '));
        subjects.any(|subject| of.starts_with(subject))
    }
}
