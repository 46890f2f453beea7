//! The outcomes of dead letters: a table of the newest records.

use domain::ports::{DEAD_LETTERS_KEPT, DeadLetterRecord, DeadLetterRecords, PortError};
use rusqlite::{Connection, params};

use crate::lock::lock;
use crate::records::EngineRecords;
use crate::rows::{self, ReadError, json};
use crate::write::Write;

impl DeadLetterRecords for EngineRecords {
    async fn record(&self, settled: DeadLetterRecord) -> Result<(), PortError> {
        let durable = lock(&self.core.state).log.append_awaited(Write::DeadLetterRecord(settled));
        durable.reached("letters.record").await
    }

    async fn newest(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, PortError> {
        self.core.readers.read("letters.letters", move |connection| read(connection, limit)).await
    }
}

fn read(connection: &Connection, limit: usize) -> Result<Vec<DeadLetterRecord>, ReadError> {
    const SQL: &str = "SELECT body FROM letters ORDER BY settled_at DESC, seq DESC LIMIT ?1";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let record = serde_json::from_str(rows::text(row, 0)?);
        found.push(record.map_err(|error| ReadError::corrupt("the record of a letter", &error))?);
    }
    Ok(found)
}

/// Writes a record, replaces the record of the same message, and deletes the oldest records above the limit.
pub(crate) fn write(connection: &Connection, settled: &DeadLetterRecord) -> rusqlite::Result<()> {
    const WRITE: &str = "INSERT OR REPLACE INTO letters (message_id, settled_at, body) VALUES (?1, ?2, ?3)";
    const TRIM: &str = "DELETE FROM letters WHERE (settled_at, seq) <= \
                        (SELECT settled_at, seq FROM letters ORDER BY settled_at DESC, seq DESC LIMIT 1 OFFSET ?1)";
    let values = params![settled.message_id, settled.settled_at.epoch_ms(), json(settled)?];
    connection.prepare_cached(WRITE)?.execute(values)?;
    connection.prepare_cached(TRIM)?.execute([i64::try_from(DEAD_LETTERS_KEPT).unwrap_or(i64::MAX)])?;
    Ok(())
}
