//! Memos, on disk only: there is one for each call under way or remembered, so they may be many. The writer decides
//! their conditions, since it alone knows what is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use domain::ports::{Commit, Memo, Memos, PortError};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::core::lock;
use crate::engine::Engine;
use crate::log::Write;
use crate::rows::{self, ReadError};
use crate::writer::json;

/// Expired memos that go with each one that is written. More than one, so that they go faster than they come.
const CLEANED_MAX: u32 = 4;

/// A conditional write of a memo.
#[derive(Debug)]
pub(crate) struct MemoWrite {
    memo: Memo,
    version_before: u64,
    now: Timestamp,
    /// What became of the condition; means something once the write is durable.
    is_conflict: Arc<AtomicBool>,
}

impl Memos for Engine {
    async fn memo(&self, key: &str, now: Timestamp) -> Result<Option<Memo>, PortError> {
        let key = key.to_owned();
        self.core().readers.read("memos.memo", move |connection| read(connection, &key, now)).await
    }

    async fn set_memo(&self, version_before: u64, memo: Memo, now: Timestamp) -> Result<Commit, PortError> {
        let is_conflict = Arc::<AtomicBool>::default();
        let write = MemoWrite { memo, version_before, now, is_conflict: is_conflict.clone() };
        let durable = lock(&self.core().state).log.append_awaited(Write::Memo(write));
        durable.reached("memos.set_memo").await?;
        Ok(if is_conflict.load(Relaxed) { Commit::Conflict } else { Commit::Committed })
    }
}

fn read(connection: &Connection, key: &str, now: Timestamp) -> Result<Option<Memo>, ReadError> {
    const SQL: &str = "SELECT body FROM memos WHERE key = ?1 AND expires_at > ?2";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query(params![key, now.epoch_ms()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let memo = serde_json::from_str(rows::text(row, 0)?);
    memo.map(Some).map_err(|error| ReadError::corrupt("a memo", &error))
}

impl MemoWrite {
    /// Writes the memo if its condition holds, and forgets a few that are expired.
    pub(crate) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        const VERSION: &str = "SELECT version FROM memos WHERE key = ?1 AND expires_at > ?2";
        const WRITE: &str = "INSERT OR REPLACE INTO memos (key, version, expires_at, body) VALUES (?1, ?2, ?3, ?4)";
        const CLEAN: &str = "DELETE FROM memos WHERE key IN \
                             (SELECT key FROM memos WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";
        let Self { memo, version_before, now, is_conflict } = self;
        let now = now.epoch_ms();
        let stored: Option<u64> =
            connection.prepare_cached(VERSION)?.query_row(params![memo.key, now], |row| row.get(0)).optional()?;
        if stored.unwrap_or(0) != *version_before {
            is_conflict.store(true, Relaxed);
            return Ok(());
        }
        connection.prepare_cached(CLEAN)?.execute(params![now, CLEANED_MAX])?;
        let values = params![memo.key, memo.version, memo.expires_at.epoch_ms(), json(memo)?];
        connection.prepare_cached(WRITE)?.execute(values)?;
        Ok(())
    }
}
