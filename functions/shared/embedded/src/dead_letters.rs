//! The table of dead letters of all queues.

use std::sync::Arc;

use domain::message::{Priority, Undecodable};
use domain::ports::{DeadLetter, SourceQueue};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::messages;
use crate::queue::Arrival;
use crate::rows::{self, ReadError};
use crate::write::{Burial, Remains};

const RECEIVED_TOO_OFTEN: &str = "received-too-often";

impl Burial {
    /// Writes the dead letter, and deletes the message if it is on disk. Returns the dead letter, or `None` if the
    /// message was already gone.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<Option<Arrival<DeadLetter>>> {
        const SUBMISSION: &str = "SELECT body FROM messages WHERE message_id = ?1";
        const COMMAND: &str = "SELECT body FROM commands WHERE message_id = ?1";
        const INSERT: &str = "INSERT INTO dead_letters (letter_id, queue, message_id, body, reason, receive_count, at) \
                              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let Self { dead_letter_id, queue, message_id, receive_count, at, remains } = self;
        let stored = |sql| connection.prepare_cached(sql)?.query_row([message_id], |row| row.get(0)).optional();
        let body: Option<String> = match remains {
            Remains::Submission(_) => stored(SUBMISSION)?,
            Remains::Sent => stored(COMMAND)?,
            Remains::Body(body) => Some(body.clone()),
        };
        let Some(body) = body else { return Ok(None) };
        let (name, at_ms) = (queue.to_string(), at.epoch_ms());
        let values = params![dead_letter_id, name, message_id, body, RECEIVED_TOO_OFTEN, receive_count, at_ms];
        connection.prepare_cached(INSERT)?.execute(values)?;
        match remains {
            Remains::Submission(_) => messages::remove(connection, *message_id)?,
            Remains::Sent => messages::remove_sent(connection, *message_id)?,
            Remains::Body(_) => {}
        }
        let dead_letter = DeadLetter {
            queue: queue.clone(),
            message_id: public_id(*message_id, *dead_letter_id),
            body: body.into(),
            receive_count: *receive_count,
            at: *at,
        };
        Ok(Some(arrival(*dead_letter_id, Ok(dead_letter), 0)))
    }
}

pub(crate) fn remove(connection: &Connection, dead_letter_id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM dead_letters WHERE letter_id = ?1")?.execute([dead_letter_id])?;
    Ok(())
}

/// The next unused number of a dead letter.
pub(crate) fn next_id(connection: &Connection) -> rusqlite::Result<i64> {
    const SQL: &str = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'dead_letters'), 0) + 1";
    connection.query_row(SQL, [], |row| row.get(0))
}

/// Passes all dead letters on disk to `take`, one by one.
pub(crate) fn load(
    connection: &Connection,
    delivered_before: u32,
    take: impl Fn(Arrival<DeadLetter>),
) -> Result<usize, ReadError> {
    const SQL: &str =
        "SELECT letter_id, queue, message_id, body, receive_count, at FROM dead_letters ORDER BY letter_id";
    let mut statement = connection.prepare(SQL)?;
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        take(arrival(row.get(0)?, read(row).map_err(|error| Undecodable::because(&error)), delivered_before));
        count += 1;
    }
    Ok(count)
}

fn read(row: &Row<'_>) -> Result<DeadLetter, ReadError> {
    let (dead_letter_id, message_id) = (row.get(0)?, row.get(2)?);
    let name = rows::text(row, 1)?;
    Ok(DeadLetter {
        queue: queue_of(name).ok_or_else(|| ReadError::corrupt("the queue of a dead letter", &name))?,
        message_id: public_id(message_id, dead_letter_id),
        body: rows::text(row, 3)?.into(),
        receive_count: row.get(4)?,
        at: Timestamp::from_epoch_ms(row.get(5)?),
    })
}

fn arrival(dead_letter_id: i64, body: Result<DeadLetter, Undecodable>, receive_count: u32) -> Arrival<DeadLetter> {
    let (message_id, priority) = (dead_letter_id, Priority::Normal);
    Arrival { message_id, body, priority, is_stored: true, receive_count, visible_at: None, parent: None }
}

/// Combines the message's id and the dead letter's number. The id may occur again after a restart; the number is
/// unique.
fn public_id(message_id: i64, dead_letter_id: i64) -> Arc<str> {
    format!("{message_id}-{dead_letter_id}").into()
}

fn queue_of(name: &str) -> Option<SourceQueue> {
    match (name, name.strip_prefix("agent ")) {
        ("submission", _) => Some(SourceQueue::Submission),
        ("scheduler", _) => Some(SourceQueue::Scheduler),
        (_, agent) => agent.map(|agent| SourceQueue::Agent(agent.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_found_by_its_name() {
        for queue in [SourceQueue::Submission, SourceQueue::Scheduler, SourceQueue::Agent("scheduler".into())] {
            assert_eq!(queue_of(&queue.to_string()), Some(queue));
        }
        assert_eq!(queue_of("cellar"), None);
    }
}
