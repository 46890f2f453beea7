//! Versioned records of all kinds. The writer decides their conditions, since only the writer knows the stored version.
//! A kind needs only its table here. One without a table is only in memory.
//!
//! Records are read from disk. Service health is also in memory, so that an agent's call waits for no read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use domain::ports::{Commit, Listed, MemoryRecords, PortError, Record, RecordKind, Records, Seen, sorted, surplus};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::core::Core;
use crate::lock::lock;
use crate::rows::{self, ReadError};
use crate::write::{FindKeys, RecordWrite, Table, Write};

/// Expired records that are deleted with each written record. More than one, so that deletion is faster than growth.
const CLEANED_MAX: u32 = 4;

/// The table of a kind. `None`: its records are only in memory.
const fn table(kind: RecordKind) -> Option<Table> {
    Some(match kind {
        KEPT => SERVICES,
        RecordKind::Memo => Table { name: "memos", key: "key", expires: true, record: "a memo" },
        RecordKind::Job => Table { name: "jobs", key: "job_id", expires: false, record: "a job" },
        RecordKind::Definition => {
            Table { name: "definitions", key: "key", expires: false, record: "the definition of a workflow" }
        }
        RecordKind::Deployment => Table { name: "deployments", key: "key", expires: false, record: "the deployment" },
        RecordKind::Alert => Table { name: "alerts", key: "cause", expires: false, record: "an alert" },
        RecordKind::DeadLetter => {
            Table { name: "letters", key: "message_id", expires: true, record: "the outcome of a dead letter" }
        }
        // One process owns the directory, so a lease must not outlive the process.
        RecordKind::Schedule => {
            Table { name: "schedules", key: "name", expires: false, record: "the mark of a schedule" }
        }
        RecordKind::Lease => return None,
    })
}

/// The kind that is also kept in memory, since an agent reads it during a call.
const KEPT: RecordKind = RecordKind::Service;
const SERVICES: Table = Table { name: "services", key: "service", expires: false, record: "the health of a service" };

/// The versioned records.
#[derive(Debug)]
pub struct EngineRecords {
    core: Arc<Core>,
    kept: Arc<Kept>,
    /// Those without a table.
    volatile: Mutex<MemoryRecords>,
}

impl EngineRecords {
    pub(crate) fn new(core: Arc<Core>, kept: Arc<Kept>) -> Self {
        Self { core, kept, volatile: Mutex::default() }
    }
}

/// The records of the kind [`KEPT`], by their keys, as they are on disk. The writer updates them.
#[derive(Debug)]
pub(crate) struct Kept(Mutex<BTreeMap<String, Arc<str>>>);

impl Kept {
    /// The records on disk.
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let Table { name, key, .. } = SERVICES;
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
        body.map(|body| parsed(&SERVICES, &body)).transpose()
    }
}

impl Records for EngineRecords {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        if R::KIND == KEPT {
            return self.kept.get(key).map_err(|error| error.of(R::KIND.get()));
        }
        let Some(table) = table(R::KIND) else { return lock(&self.volatile).get(key) };
        let key = key.to_owned();
        self.core.readers.read(R::KIND.get(), move |connection| read(connection, &table, &key)).await
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        let Some(table) = table(R::KIND) else { return lock(&self.volatile).put(seen, record) };
        let operation = R::KIND.put();
        let body = serde_json::to_string(record).map_err(|error| PortError::refused(operation, error))?;
        let is_conflict = Arc::<AtomicBool>::default();
        let write = RecordWrite {
            kind: R::KIND,
            table,
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
        let Some(table) = table(R::KIND) else { return lock(&self.volatile).list(limit) };
        let list = move |connection: &Connection| Ok(sorted(all(connection, &table, limit)?, limit));
        self.core.readers.read(R::KIND.list(), list).await
    }
}

fn read<R: Record>(connection: &Connection, table: &Table, key: &str) -> Result<Option<R>, ReadError> {
    let sql = format!("SELECT body FROM {} WHERE {} = ?1", table.name, table.key);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    parsed(table, rows::text(row, 0)?).map(Some)
}

fn parsed<R: Record>(table: &Table, body: &str) -> Result<R, ReadError> {
    serde_json::from_str(body).map_err(|error| ReadError::corrupt(table.record, &error))
}

/// All records of a kind; of one that expires the first `limit`. A record with an unknown form is left out, so that the
/// others remain visible.
fn all<R: Record>(connection: &Connection, table: &Table, limit: usize) -> rusqlite::Result<Vec<R>> {
    let limit = if table.expires { i64::try_from(limit).unwrap_or(i64::MAX) } else { i64::MAX };
    let sql = format!("SELECT body FROM {} {} LIMIT ?1", table.name, table.order());
    let mut statement = connection.prepare_cached(&sql)?;
    let bodies = statement.query_map([limit], |row| row.get::<_, String>(0))?;
    let mut found = Vec::new();
    for body in bodies {
        match serde_json::from_str(&body?) {
            Ok(record) => found.push(record),
            Err(error) => tracing::error!("{} cannot be read: {error}", table.record),
        }
    }
    Ok(found)
}

fn surplus_of<R: Record>(connection: &Connection, table: &Table) -> rusqlite::Result<Vec<String>> {
    if !table.expires {
        return Ok(surplus(all::<R>(connection, table, usize::MAX)?).iter().map(|it| it.key().to_owned()).collect());
    }
    // A list of this kind is in the order of the table: nothing is parsed.
    let sql = format!("SELECT {} FROM {} {} LIMIT -1 OFFSET ?1", table.key, table.name, table.order());
    let kept = i64::try_from(R::OVER_KEPT).unwrap_or(i64::MAX);
    connection.prepare_cached(&sql)?.query_map([kept], |row| row.get(0))?.collect()
}

impl Table {
    /// The order of a list, as far as SQLite decides it.
    fn order(&self) -> String {
        if self.expires { format!("ORDER BY expires_at DESC, {} DESC", self.key) } else { String::new() }
    }
}

impl RecordWrite {
    /// Writes the record if its condition holds, and deletes a few expired or surplus records.
    pub(crate) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Self { kind: _, table, key, seen, version, expires_at, body, surplus, is_conflict } = self;
        let Table { name, key: column, expires, .. } = table;
        if self.stored_version(connection)? != seen.version {
            is_conflict.store(true, Relaxed);
            return Ok(());
        }
        if *expires {
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
            for key in surplus(connection, table)? {
                connection.prepare_cached(&sql)?.execute([key])?;
            }
        }
        Ok(())
    }

    /// The version on disk. 0 if the record is missing or has expired.
    fn stored_version(&self, connection: &Connection) -> rusqlite::Result<u64> {
        let Table { name, key, expires, .. } = &self.table;
        let expires_at = if *expires { "expires_at" } else { "NULL" };
        let sql = format!("SELECT version, {expires_at} FROM {name} WHERE {key} = ?1");
        let stored: Option<(u64, Option<i64>)> =
            connection.prepare_cached(&sql)?.query_row([&self.key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let is_live = |expires_at: Option<i64>| expires_at.is_none_or(|at| at > self.seen.at.epoch_ms());
        Ok(stored.filter(|(_, expires_at)| is_live(*expires_at)).map_or(0, |(version, _)| version))
    }
}
