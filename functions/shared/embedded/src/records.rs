//! Versioned records of all kinds, on disk only. The writer decides their conditions, since it alone knows the stored
//! version. A kind needs no more here than its table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use domain::ports::{Commit, Listed, PortError, Record, RecordKind, Records, Seen, sorted, surplus};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::core::lock;
use crate::engine::Engine;
use crate::log::Write;
use crate::rows::{self, ReadError};

/// Expired records that go with each one that is written. More than one, so that they go faster than they come.
const CLEANED_MAX: u32 = 4;

/// The table of a kind of records.
struct Table {
    name: &'static str,
    /// The column of the key.
    key: &'static str,
    /// Whether it has the column `expires_at`.
    expires: bool,
    /// What a record is called in errors.
    record: &'static str,
}

const fn table(kind: RecordKind) -> Table {
    match kind {
        RecordKind::Service => {
            Table { name: "services", key: "service", expires: false, record: "the health of a service" }
        }
        RecordKind::Memo => Table { name: "memos", key: "key", expires: true, record: "a memo" },
        RecordKind::Job => Table { name: "jobs", key: "job_id", expires: false, record: "a job" },
    }
}

/// Finds the keys of some records of a kind.
type FindKeys = fn(&Connection) -> rusqlite::Result<Vec<String>>;

/// A conditional write of a record.
#[derive(Debug)]
pub(crate) struct RecordWrite {
    kind: RecordKind,
    key: String,
    seen: Seen,
    version: u64,
    expires_at: Option<Timestamp>,
    body: String,
    /// Finds the records that are surplus after this write, where it may make one so.
    surplus: Option<FindKeys>,
    /// The outcome of the condition, valid once the write is durable.
    is_conflict: Arc<AtomicBool>,
}

impl Records for Engine {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        let key = key.to_owned();
        self.core().readers.read(R::KIND.get(), move |connection| read(connection, &key)).await
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        let operation = R::KIND.put();
        let body = serde_json::to_string(record).map_err(|error| PortError::refused(operation, error))?;
        let is_conflict = Arc::<AtomicBool>::default();
        let write = RecordWrite {
            kind: R::KIND,
            key: record.key().to_owned(),
            seen,
            version: record.version(),
            expires_at: record.expires_at(),
            body,
            surplus: record.is_over().then_some(surplus_of::<R> as FindKeys),
            is_conflict: is_conflict.clone(),
        };
        let durable = lock(&self.core().state).log.append_awaited(Write::Record(write));
        durable.reached(operation).await?;
        Ok(if is_conflict.load(Relaxed) { Commit::Conflict } else { Commit::Committed })
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        let list = move |connection: &Connection| Ok(sorted(all(connection)?, limit));
        self.core().readers.read(R::KIND.list(), list).await
    }
}

fn read<R: Record>(connection: &Connection, key: &str) -> Result<Option<R>, ReadError> {
    let table = table(R::KIND);
    let sql = format!("SELECT body FROM {} WHERE {} = ?1", table.name, table.key);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let record = serde_json::from_str(rows::text(row, 0)?);
    record.map(Some).map_err(|error| ReadError::corrupt(table.record, &error))
}

/// All records of a kind. One of an unknown form is left out, so that the others are seen.
fn all<R: Record>(connection: &Connection) -> rusqlite::Result<Vec<R>> {
    let table = table(R::KIND);
    let mut statement = connection.prepare_cached(&format!("SELECT body FROM {}", table.name))?;
    let bodies = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut found = Vec::new();
    for body in bodies {
        match serde_json::from_str(&body?) {
            Ok(record) => found.push(record),
            Err(error) => tracing::error!("{} cannot be read: {error}", table.record),
        }
    }
    Ok(found)
}

fn surplus_of<R: Record>(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    Ok(surplus(all::<R>(connection)?))
}

impl RecordWrite {
    /// Writes the record if its condition holds, and deletes a few that are not needed any more.
    pub(crate) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Self { kind, key, seen, version, expires_at, body, surplus, is_conflict } = self;
        let Table { name, key: column, expires, .. } = table(*kind);
        if self.stored_version(connection)? != seen.version {
            is_conflict.store(true, Relaxed);
            return Ok(());
        }
        if expires {
            let sql = format!(
                "DELETE FROM {name} WHERE {column} IN \
                 (SELECT {column} FROM {name} WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)"
            );
            connection.prepare_cached(&sql)?.execute(params![seen.at.epoch_ms(), CLEANED_MAX])?;
            let sql =
                format!("INSERT OR REPLACE INTO {name} ({column}, version, body, expires_at) VALUES (?1, ?2, ?3, ?4)");
            let expires_at_ms = expires_at.map_or(i64::MAX, Timestamp::epoch_ms);
            connection.prepare_cached(&sql)?.execute(params![key, version, body, expires_at_ms])?;
        } else {
            let sql = format!("INSERT OR REPLACE INTO {name} ({column}, version, body) VALUES (?1, ?2, ?3)");
            connection.prepare_cached(&sql)?.execute(params![key, version, body])?;
        }
        if let Some(surplus) = surplus {
            let sql = format!("DELETE FROM {name} WHERE {column} = ?1");
            for key in surplus(connection)? {
                connection.prepare_cached(&sql)?.execute([key])?;
            }
        }
        Ok(())
    }

    /// The version on disk; 0 if there is no record, or only one that has expired.
    fn stored_version(&self, connection: &Connection) -> rusqlite::Result<u64> {
        let Table { name, key, expires, .. } = table(self.kind);
        let expires_at = if expires { "expires_at" } else { "NULL" };
        let sql = format!("SELECT version, {expires_at} FROM {name} WHERE {key} = ?1");
        let stored: Option<(u64, Option<i64>)> =
            connection.prepare_cached(&sql)?.query_row([&self.key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let is_live = |expires_at: Option<i64>| expires_at.is_none_or(|at| at > self.seen.at.epoch_ms());
        Ok(stored.filter(|(_, expires_at)| is_live(*expires_at)).map_or(0, |(version, _)| version))
    }
}
