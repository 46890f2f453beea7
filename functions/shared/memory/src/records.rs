//! Versioned records.

use domain::ports::{Commit, Listed, PortError, Record, RecordKind, Records, Seen};

use super::Memory;

impl Records for Memory {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        // Broken leases seem to be free.
        self.work(R::KIND.get(), |state| {
            if R::KIND == RecordKind::Lease && state.faults.leases_broken { Ok(None) } else { state.records.get(key) }
        })?
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        self.work(R::KIND.put(), |state| {
            if R::KIND == RecordKind::Lease && state.faults.leases_broken {
                return Ok(Commit::Committed);
            }
            state.records.put(seen, record)
        })?
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        self.work(R::KIND.list(), |state| state.records.list(limit))?
    }
}
