//! Versioned records, and the records of dead letters.

use domain::id::OrderId;
use domain::ports::{
    Commit, DEAD_LETTERS_KEPT, DeadLetterRecord, DeadLetterRecords, Listed, Memo, PortError, Record, RecordKind,
    Records, Seen, sorted, surplus,
};
use domain::time::Timestamp;

use super::{Memory, State};

/// A stored record: its JSON, and the data for conditions.
pub(super) struct Stored {
    version: u64,
    expires_at: Option<Timestamp>,
    body: String,
}

impl Records for Memory {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        self.work(R::KIND.get(), |state| {
            let stored = state.records.get(&(R::KIND, key.to_owned()));
            stored.map(|stored| read(R::KIND.get(), &stored.body)).transpose()
        })?
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        let operation = R::KIND.put();
        let body = serde_json::to_string(record).map_err(|error| PortError::refused(operation, error))?;
        self.work(operation, |state| {
            state.records.retain(|_, stored| stored.expires_at.is_none_or(|at| at > seen.at));
            let key = (R::KIND, record.key().to_owned());
            if state.records.get(&key).map_or(0, |stored| stored.version) != seen.version {
                return Ok(Commit::Conflict);
            }
            let stored = Stored { version: record.version(), expires_at: record.expires_at(), body };
            state.records.insert(key, stored);
            if record.is_over() {
                for over in surplus(state.all::<R>(operation)?) {
                    state.records.remove(&(R::KIND, over.key().to_owned()));
                }
            }
            Ok(Commit::Committed)
        })?
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        let operation = R::KIND.list();
        self.work(operation, |state| Ok(sorted(state.all(operation)?, limit)))?
    }
}

impl State {
    /// What the services answered goes, and that they were called stays.
    pub(super) fn erase_memos(&mut self, order_id: OrderId) {
        let keys = Memo::keys_of(order_id);
        let is_of = |kind: RecordKind, key: &str| kind == RecordKind::Memo && key.starts_with(&keys);
        for (_, stored) in self.records.iter_mut().filter(|((kind, key), _)| is_of(*kind, key)) {
            let memo = serde_json::from_str::<Memo>(&stored.body).map(Memo::erased);
            if let Ok(body) = memo.and_then(|memo| serde_json::to_string(&memo)) {
                stored.body = body;
            }
        }
    }

    fn all<R: Record>(&self, operation: &'static str) -> Result<Vec<R>, PortError> {
        let of_kind = self.records.iter().filter(|((kind, _), _)| *kind == R::KIND);
        of_kind.map(|(_, stored)| read(operation, &stored.body)).collect()
    }
}

fn read<R: Record>(operation: &'static str, body: &str) -> Result<R, PortError> {
    serde_json::from_str(body).map_err(|error| PortError::refused(operation, error))
}

/// The key of a record among all kinds.
pub(super) type Key = (RecordKind, String);

impl DeadLetterRecords for Memory {
    async fn record(&self, settled: DeadLetterRecord) -> Result<(), PortError> {
        self.work("letters.record", |state| {
            state.dead_letter_records.retain(|record| record.message_id != settled.message_id);
            state.dead_letter_records.insert(0, settled);
            // The sort is stable: of records settled at the same time, the last written stays first.
            state.dead_letter_records.sort_by_key(|record| std::cmp::Reverse(record.settled_at));
            state.dead_letter_records.truncate(DEAD_LETTERS_KEPT);
        })
    }

    async fn newest(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, PortError> {
        self.work("letters.letters", |state| state.dead_letter_records.iter().take(limit).cloned().collect())
    }
}
