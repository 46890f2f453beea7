//! Versioned records of all kinds. The writer decides their conditions, since only the writer knows the stored version.
//! A kind needs only its table here.
//!
//! Records are read from disk. Service health is also in memory, so that an agent's call waits for no read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use domain::ports::{Commit, Listed, PortError, Record, RecordKind, Records, Seen, sorted, surplus};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::core::Core;
use crate::lock::lock;
use crate::rows::{self, ReadError};
use crate::write::{FindKeys, RecordWrite, Write};

/// Expired records that are deleted with each written record. More than one, so that deletion is faster than growth.
const CLEANED_MAX: u32 = 4;

/// The table of one kind of record.
struct Table {
    name: &'static str,
    /// The key column.
    key: &'static str,
    /// Whether it has the column `expires_at`.
    expires: bool,
    /// The name of the record in errors.
    record: &'static str,
}

const fn table(kind: RecordKind) -> Table {
    match kind {
        RecordKind::Service => {
            Table { name: "services", key: "service", expires: false, record: "the health of a service" }
        }
        RecordKind::Memo => Table { name: "memos", key: "key", expires: true, record: "a memo" },
        RecordKind::Job => Table { name: "jobs", key: "job_id", expires: false, record: "a job" },
        RecordKind::Definition => {
            Table { name: "definitions", key: "key", expires: false, record: "the definition of a workflow" }
        }
        RecordKind::Deployment => Table { name: "deployments", key: "key", expires: false, record: "the deployment" },
        RecordKind::Alert => Table { name: "alerts", key: "cause", expires: false, record: "an alert" },
    }
}

/// The kind that is also kept in memory, since an agent reads it during a call.
const KEPT: RecordKind = RecordKind::Service;

/// The versioned records and the records of dead letters.
#[derive(Debug)]
pub struct EngineRecords {
    pub(crate) core: Arc<Core>,
    kept: Arc<Kept>,
}

impl EngineRecords {
    pub(crate) const fn new(core: Arc<Core>, kept: Arc<Kept>) -> Self {
        Self { core, kept }
    }
}

/// The records of the kind [`KEPT`], by their keys, as they are on disk. The writer updates them.
#[derive(Debug)]
pub(crate) struct Kept(Mutex<BTreeMap<String, Arc<str>>>);

impl Kept {
    /// The records on disk.
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let Table { name, key, .. } = table(KEPT);
        let mut statement = connection.prepare(&format!("SELECT {key}, body FROM {name}"))?;
        let bodies = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self(Mutex::new(bodies.collect::<rusqlite::Result<_>>()?)))
    }

    /// This write is durable.
    pub(crate) fn written(&self, write: RecordWrite) {
        let RecordWrite { kind, key, body, is_conflict, .. } = write;
        if kind == KEPT && !is_conflict.load(Relaxed) {
            lock(&self.0).insert(key, body.into());
        }
    }

    /// The text of a record.
    pub(crate) fn with<T>(&self, key: &str, read: impl FnOnce(&str) -> T) -> Option<T> {
        lock(&self.0).get(key).map(|body| read(body))
    }

    fn get<R: Record>(&self, key: &str) -> Result<Option<R>, ReadError> {
        let body = lock(&self.0).get(key).cloned();
        body.map(|body| parsed(&body)).transpose()
    }
}

impl Records for EngineRecords {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        if R::KIND == KEPT {
            return self.kept.get(key).map_err(|error| error.of(R::KIND.get()));
        }
        let key = key.to_owned();
        self.core.readers.read(R::KIND.get(), move |connection| read(connection, &key)).await
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
        let durable = lock(&self.core.state).log.append_awaited(Write::Record(write));
        durable.reached(operation).await?;
        Ok(if is_conflict.load(Relaxed) { Commit::Conflict } else { Commit::Committed })
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        let list = move |connection: &Connection| Ok(sorted(all(connection)?, limit));
        self.core.readers.read(R::KIND.list(), list).await
    }
}

fn read<R: Record>(connection: &Connection, key: &str) -> Result<Option<R>, ReadError> {
    let table = table(R::KIND);
    let sql = format!("SELECT body FROM {} WHERE {} = ?1", table.name, table.key);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    parsed(rows::text(row, 0)?).map(Some)
}

fn parsed<R: Record>(body: &str) -> Result<R, ReadError> {
    serde_json::from_str(body).map_err(|error| ReadError::corrupt(table(R::KIND).record, &error))
}

/// All records of a kind. A record with an unknown form is left out, so that the others remain visible.
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
    Ok(surplus(all::<R>(connection)?).iter().map(|record| record.key().to_owned()).collect())
}

impl RecordWrite {
    /// Writes the record if its condition holds, and deletes a few expired or surplus records.
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

    /// The version on disk. 0 if the record is missing or has expired.
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
