//! Versioned records in memory, as [`Records`](super::Records) has them: for a store that keeps nothing else, and for leases
//! on one machine.

use std::collections::BTreeMap;

use super::{Commit, Listed, Memo, PortError, Record, RecordKind, Seen, sorted, surplus};
use crate::id::OrderId;
use crate::time::Timestamp;

/// Records of any kind, by kind and key.
#[derive(Debug, Default)]
pub struct MemoryRecords(BTreeMap<(RecordKind, String), Stored>);

/// A record as JSON, and the data for conditions.
#[derive(Debug)]
struct Stored {
    version: u64,
    expires_at: Option<Timestamp>,
    body: String,
}

impl MemoryRecords {
    /// As [`Records::get`](super::Records::get).
    ///
    /// # Errors
    /// [`PortError`] if the record is not of this form.
    pub fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        self.0.get(&(R::KIND, key.to_owned())).map(|stored| read(R::KIND.get(), stored)).transpose()
    }

    /// As [`Records::put`](super::Records::put). Records that have expired go.
    ///
    /// # Errors
    /// [`PortError`] if the record cannot be JSON, or others are not of this form.
    pub fn put<R: Record>(&mut self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        let operation = R::KIND.put();
        let body = serde_json::to_string(record).map_err(|error| PortError::refused(operation, error))?;
        self.0.retain(|_, stored| stored.expires_at.is_none_or(|at| at > seen.at));
        let key = (R::KIND, record.key().to_owned());
        if self.0.get(&key).map_or(0, |stored| stored.version) != seen.version {
            return Ok(Commit::Conflict);
        }
        self.0.insert(key, Stored { version: record.version(), expires_at: record.expires_at(), body });
        // Most records of a kind may be over, and reading all of them takes time.
        if record.is_over() && self.0.keys().filter(|(kind, _)| *kind == R::KIND).count() > R::OVER_KEPT {
            for over in surplus(self.all::<R>(operation)?) {
                self.0.remove(&(R::KIND, over.key().to_owned()));
            }
        }
        Ok(Commit::Committed)
    }

    /// As [`Records::list`](super::Records::list).
    ///
    /// # Errors
    /// [`PortError`] if a record is not of this form.
    pub fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        Ok(sorted(self.all(R::KIND.list())?, limit))
    }

    /// Erases an order (rule 46): its dead letters go, and what the services answered. That they were called stays.
    pub fn erase(&mut self, order_id: OrderId) {
        let id = order_id.to_string();
        self.0.retain(|(kind, _), stored| *kind != RecordKind::DeadLetter || !stored.body.contains(&id));
        let keys = Memo::keys_of(order_id);
        let is_of = |kind: RecordKind, key: &str| kind == RecordKind::Memo && key.starts_with(&keys);
        for (_, stored) in self.0.iter_mut().filter(|((kind, key), _)| is_of(*kind, key)) {
            let memo = serde_json::from_str::<Memo>(&stored.body).map(Memo::erased);
            if let Ok(body) = memo.and_then(|memo| serde_json::to_string(&memo)) {
                stored.body = body;
            }
        }
    }

    fn all<R: Record>(&self, operation: &'static str) -> Result<Vec<R>, PortError> {
        let of_kind = self.0.iter().filter(|((kind, _), _)| *kind == R::KIND);
        of_kind.map(|(_, stored)| read(operation, stored)).collect()
    }
}

fn read<R: Record>(operation: &'static str, stored: &Stored) -> Result<R, PortError> {
    serde_json::from_str(&stored.body).map_err(|error| PortError::refused(operation, error))
}
