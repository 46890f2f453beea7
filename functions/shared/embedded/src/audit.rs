//! The audit stream (rule 43): a table to which the writer appends, in the transaction of the change.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use domain::audit::{Entry, Hash};
use domain::definition::{Definition, Deployment};
use domain::message::SchedulerMessage;
use domain::ports::{Acceptance, RecordKind, ServiceHealth};
use domain::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, params};

use crate::check::BUSY;
use crate::directory::{DATABASE, OpenError};
use crate::records::Kept;
use crate::rows::json;
use crate::schema::VERSION;
use crate::write::{RecordWrite, Write};

/// Entries that are read at once. Between two pages the writer may empty its log.
const PAGE: i64 = 1_000;
/// Entries of the past that a transaction removes, at most: for each one that it adds, and beside.
const REMOVED_PER_ADDED: i64 = 2;
const REMOVED_BESIDE: i64 = 64;
/// Looks only at what may go now, so a backlog costs nothing.
pub(crate) const LOOK: &str = "SELECT seq, at FROM audit WHERE seq > ?1 AND seq < ?2 ORDER BY seq LIMIT ?3";
pub(crate) const REMOVE: &str = "DELETE FROM audit WHERE seq <= ?1 AND seq < (SELECT min(seq) FROM audit) + ?2";

/// The end of the stream. The writer owns it, and reads it again after a transaction that failed.
#[derive(Debug)]
pub(crate) struct Chain {
    seq: i64,
    hash: Hash,
    added: i64,
    /// The last entry that was looked at, and the last one that is old enough to go with all before it.
    looked_up_to: i64,
    old_up_to: i64,
}

impl Chain {
    /// The end on disk.
    pub(crate) fn load(connection: &Connection) -> Result<Self> {
        const SQL: &str = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
        let last = connection.prepare_cached(SQL)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (seq, hash) = last.map_or((0, Hash::START), |(seq, hash): (_, [u8; 32])| (seq, hash.into()));
        Ok(Self { seq, hash, added: 0, looked_up_to: 0, old_up_to: 0 })
    }

    /// Records a write that was applied. `kept` has the records of before, and `erased` the entries that became digests.
    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        now: Timestamp,
        write: &Write,
        kept: &Kept,
        erased: &[i64],
    ) -> Result<()> {
        match write {
            Write::Task { before, task, .. } => {
                self.append(connection, now, &Entry::transition(now, before.as_deref(), task))
            }
            Write::Insert { is_known, .. } if is_known.load(Relaxed) => Ok(()),
            Write::Insert { task, .. } => self.append(connection, now, &Entry::transition(now, None, task)),
            Write::Erase { before, task, .. } => {
                self.append(connection, now, &Entry::erased(now, before, task, erased))
            }
            Write::Send { message: SchedulerMessage::Command(command), .. } => {
                self.append(connection, now, &Entry::command(now, command))
            }
            Write::Forget { task } => self.append(connection, now, &Entry::deleted(now, task)),
            Write::Record(RecordWrite { kind, key, version, body, is_conflict, .. }) => {
                match told(*kind, key, body, kept) {
                    Some((name, body)) if !is_conflict.load(Relaxed) => {
                        self.append(connection, now, &Entry::record(now, name, key, *version, &body))
                    }
                    _ => Ok(()),
                }
            }
            Write::Accept { .. }
            | Write::Remove { .. }
            | Write::Send { .. }
            | Write::RemoveSent { .. }
            | Write::Bury(_)
            | Write::RemoveDeadLetter { .. }
            | Write::Event(_)
            | Write::Barrier => Ok(()),
        }
    }

    fn append(&mut self, connection: &Connection, now: Timestamp, entry: &Entry<'_>) -> Result<()> {
        const SQL: &str = "INSERT INTO audit (seq, at, hash, body) VALUES (?1, ?2, ?3, ?4)";
        let body = json(entry)?;
        self.hash = self.hash.then(Hash::of(&body));
        self.seq += 1;
        self.added += 1;
        connection.prepare_cached(SQL)?.execute(params![self.seq, now.epoch_ms(), self.hash.bytes(), body])?;
        Ok(())
    }

    /// Removes entries of before `since`, a few at a time. The stream then begins later.
    pub(crate) fn forget(&mut self, connection: &Connection, since: Option<Timestamp>, now: Timestamp) -> Result<()> {
        let added = std::mem::take(&mut self.added);
        let Some(since) = since else {
            // The clock of before may have been wrong.
            (self.looked_up_to, self.old_up_to) = (0, 0);
            return Ok(());
        };
        if added > 0 {
            let removed_max = added * REMOVED_PER_ADDED + REMOVED_BESIDE;
            self.look(connection, since, now, removed_max)?;
            connection.prepare_cached(REMOVE)?.execute([self.old_up_to, removed_max])?;
        }
        Ok(())
    }

    /// Looks for old entries, up to the first one that stays. So there is no gap where a clock was set back.
    fn look(&mut self, connection: &Connection, since: Timestamp, now: Timestamp, looked_max: i64) -> Result<()> {
        let mut statement = connection.prepare_cached(LOOK)?;
        let mut rows = statement.query([self.looked_up_to, self.seq, looked_max])?;
        while let Some(row) = rows.next()? {
            let (seq, at) = (row.get(0)?, Timestamp::from_epoch_ms(row.get(1)?));
            if at < since {
                self.old_up_to = seq;
            } else if at <= now {
                break;
            }
            // One of a fast clock says nothing. It goes with an old one after it.
            self.looked_up_to = seq;
        }
        Ok(())
    }
}

/// The name and the text of a record that an operator wrote, or that has an operator's name in it.
fn told<'a>(kind: RecordKind, key: &str, body: &'a str, kept: &Kept) -> Option<(&'static str, Cow<'a, str>)> {
    match kind {
        RecordKind::Service => {
            let is_by_operator = accepted(body) != kept.with(key, accepted).flatten();
            is_by_operator.then(|| ("service", body.into()))
        }
        RecordKind::Job => Some(("job", body.into())),
        RecordKind::Definition => (key != Definition::INSTALLATION).then(|| ("definition", body.into())),
        RecordKind::Deployment => Some(("deployment", without_keys(body).into())),
        RecordKind::Memo | RecordKind::Alert | RecordKind::Lease | RecordKind::DeadLetter | RecordKind::Schedule => {
            None
        }
    }
}

/// The operator's word that rejections are right. The rest of the record is the work of agents.
fn accepted(body: &str) -> Option<Acceptance> {
    body.contains(r#""Accepted""#).then(|| serde_json::from_str::<ServiceHealth>(body).ok())??.rejections.accepted
}

/// Without the keys that sign callback addresses: the stream is exported.
fn without_keys(body: &str) -> String {
    let Ok(mut deployment) = serde_json::from_str::<Deployment>(body) else { return String::new() };
    deployment.callback_keys.clear();
    json(&deployment).unwrap_or_default()
}

/// An entry as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its number: each is one more than the one before.
    pub seq: i64,
    /// When it was written.
    pub at: Timestamp,
    /// Of this entry and all before it.
    pub hash: Hash,
    /// Its JSON; or its digest, once it is forgotten.
    pub body: std::result::Result<String, Hash>,
}

impl Recorded {
    /// Its text, or the digest of it.
    ///
    /// # Errors
    /// The digest, once the text is erased.
    pub fn text(&self) -> std::result::Result<&str, Hash> {
        self.body.as_deref().map_err(|digest| *digest)
    }
}

/// The entries of a data directory, oldest first. Another process may use the directory meanwhile.
#[derive(Debug)]
pub struct Entries {
    connection: Connection,
    page: std::vec::IntoIter<Recorded>,
    last: i64,
}

/// Reads the entries at or after a time.
///
/// # Errors
/// [`OpenError::Database`] if the file cannot be opened or read. [`OpenError::Newer`] if a later version of the program
/// wrote it.
pub fn audit(directory: &Path, since: Option<Timestamp>) -> std::result::Result<Entries, OpenError> {
    let file = directory.join(DATABASE);
    let (connection, schema, last) =
        open(&file, since).map_err(|source| OpenError::Database { file: file.clone(), source })?;
    if schema > VERSION {
        return Err(OpenError::Newer { file, found: schema, known: VERSION });
    }
    Ok(Entries { connection, page: Vec::new().into_iter(), last })
}

/// The file, its schema version, and the last entry before the time.
fn open(file: &Path, since: Option<Timestamp>) -> Result<(Connection, i64, i64)> {
    // Clocks are set back, too: from the first entry at the time on, all are shown.
    const LAST_BEFORE: &str = "SELECT seq - 1 FROM audit WHERE at >= ?1 ORDER BY seq LIMIT 1";
    const LAST: &str = "SELECT coalesce(max(seq), 0) FROM audit";
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let last = match since {
        // There are no tables yet.
        _ if schema == 0 => i64::MAX,
        Some(since) => {
            let found = connection.query_row(LAST_BEFORE, [since.epoch_ms()], |row| row.get(0)).optional()?;
            found.map_or_else(|| connection.query_row(LAST, [], |row| row.get(0)), Ok)?
        }
        None => 0,
    };
    Ok((connection, schema, last))
}

impl Entries {
    fn next_page(&mut self) -> Result<Vec<Recorded>> {
        if self.last == i64::MAX {
            return Ok(Vec::new());
        }
        const SQL: &str = "SELECT seq, at, hash, body FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let mut statement = self.connection.prepare_cached(SQL)?;
        let rows = statement.query_map([self.last, PAGE], |row| {
            let is_digest = row.get_ref(3)?.data_type() == Type::Blob;
            let body = if is_digest { Err(Hash::from(row.get::<_, [u8; 32]>(3)?)) } else { Ok(row.get(3)?) };
            let at = Timestamp::from_epoch_ms(row.get(1)?);
            Ok(Recorded { seq: row.get(0)?, at, hash: row.get::<_, [u8; 32]>(2)?.into(), body })
        })?;
        rows.collect()
    }
}

impl Iterator for Entries {
    type Item = Result<Recorded>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0 {
            match self.next_page() {
                Ok(page) => self.page = page.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
        let next = self.page.next()?;
        self.last = next.seq;
        Some(Ok(next))
    }
}
