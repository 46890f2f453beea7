//! The dead letters of all queues, and their receiving end. All of them are on disk.
//!
//! A message that was delivered too often leaves its queue only when it is on disk as a dead letter; if the write fails
//! it comes back, and is found dead again. There is no end behind this queue: a dead letter is delivered until it is deleted.

use std::sync::Arc;

use domain::id::OrderId;
use domain::message::{Delivery, Priority, Receipt, Undecodable};
use domain::order::Order;
use domain::ports::{DeadLetter, Environment, PortError, Source, SourceQueue};
use domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use crate::core::{State, lock};
use crate::engine::Engine;
use crate::log::{Urgency, Write};
use crate::messages;
use crate::queue::{Arrival, Dead, Received};
use crate::rows::{self, ReadError};

const RECEIVED_TOO_OFTEN: &str = "received-too-often";

/// The receiving end of the dead letters of all queues.
#[derive(Debug, Clone)]
pub struct DeadLetters(pub(crate) Engine);

/// A message on its way to the dead letters.
#[derive(Debug)]
pub(crate) struct Burial {
    dead_letter_id: i64,
    pub(crate) queue: SourceQueue,
    pub(crate) message_id: i64,
    receive_count: u32,
    at: Timestamp,
    remains: Remains,
}

/// Where a dead message's body is.
#[derive(Debug)]
enum Remains {
    /// In the table of submissions; whose order it is, where that can be read.
    Submission(Option<OrderId>),
    /// In the table of commands.
    Command,
    /// Here: it was in memory only.
    Body(String),
}

impl Source<DeadLetter> for DeadLetters {
    async fn receive(&self, limit: usize) -> Vec<Delivery<DeadLetter>> {
        loop {
            match self.0.queues().dead_letters.receive(limit).await {
                Received::Deliveries(deliveries) => return deliveries,
                // After four thousand million deliveries. It is still on the disk.
                Received::Dead(dead) => self.0.queues().dead_letters.finish(dead.message_id),
            }
        }
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        let mut last = None;
        {
            let State { log, .. } = &mut *lock(&self.0.core().state);
            for receipt in &receipts {
                if let Some(dead_letter_id) = self.0.queues().dead_letters.delete(receipt) {
                    last = Some(log.append_awaited(Write::RemoveDeadLetter { dead_letter_id }));
                }
            }
        }
        match last {
            Some(durable) => durable.reached("source.delete").await,
            None => Ok(()),
        }
    }
}

impl Engine {
    /// Sends a message of the submission queue to the dead letters.
    pub(crate) fn bury_submission(&self, dead: &Dead<Order>) {
        let order_id = dead.body.as_ref().ok().map(|order| order.order_id);
        self.bury(SourceQueue::Submission, dead, Remains::Submission(order_id));
    }

    /// Sends a message of the scheduler queue or of an agent's to the dead letters.
    pub(crate) fn bury_message<M: Serialize>(&self, queue: SourceQueue, dead: &Dead<M>) {
        let remains = match &dead.body {
            _ if dead.is_stored => Remains::Command,
            Ok(message) => Remains::Body(serde_json::to_string(message).unwrap_or_else(|error| error.to_string())),
            Err(undecodable) => Remains::Body(undecodable.to_string()),
        };
        self.bury(queue, dead, remains);
    }

    fn bury<M>(&self, queue: SourceQueue, dead: &Dead<M>, remains: Remains) {
        let &Dead { message_id, receive_count, .. } = dead;
        let dead_letter_id = self.queues().dead_letters.reserve();
        tracing::error!(?queue, message_id, receive_count, dead_letter_id, "a message is a dead letter");
        let burial = Burial { dead_letter_id, queue, message_id, receive_count, at: self.now(), remains };
        // Nobody waits, yet it goes at once: until it is on disk only this process knows of it. When the engine is closed
        // a message that was on disk is still there, and another goes the way of all that is in memory.
        let _ = lock(&self.core().state).log.append(Write::Bury(burial), Urgency::Awaited);
    }
}

impl Burial {
    /// The order that a submission was about.
    pub(crate) const fn submission_of(&self) -> Option<OrderId> {
        match self.remains {
            Remains::Submission(order_id) => order_id,
            Remains::Command | Remains::Body(_) => None,
        }
    }

    /// Writes the dead letter, and removes the message where it is on disk. Gives the dead letter; nothing where the message was
    /// gone already.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<Option<Arrival<DeadLetter>>> {
        const SUBMISSION: &str = "SELECT body FROM messages WHERE message_id = ?1";
        const COMMAND: &str = "SELECT body FROM commands WHERE message_id = ?1";
        const INSERT: &str = "INSERT INTO dead_letters (letter_id, queue, message_id, body, reason, receive_count, at) \
                              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let Self { dead_letter_id, queue, message_id, receive_count, at, remains } = self;
        let stored = |sql| connection.prepare_cached(sql)?.query_row([message_id], |row| row.get(0)).optional();
        let body: Option<String> = match remains {
            Remains::Submission(_) => stored(SUBMISSION)?,
            Remains::Command => stored(COMMAND)?,
            Remains::Body(body) => Some(body.clone()),
        };
        let Some(body) = body else { return Ok(None) };
        let (name, at_ms) = (queue_name(queue), at.epoch_ms());
        let values = params![dead_letter_id, name, message_id, body, RECEIVED_TOO_OFTEN, receive_count, at_ms];
        connection.prepare_cached(INSERT)?.execute(values)?;
        match remains {
            Remains::Submission(_) => messages::remove(connection, *message_id)?,
            Remains::Command => messages::remove_command(connection, *message_id)?,
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

/// Deletes a dead letter.
pub(crate) fn remove(connection: &Connection, dead_letter_id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM dead_letters WHERE letter_id = ?1")?.execute([dead_letter_id])?;
    Ok(())
}

/// The number that no dead letter has had yet.
pub(crate) fn next_id(connection: &Connection) -> rusqlite::Result<i64> {
    const SQL: &str = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'dead_letters'), 0) + 1";
    connection.query_row(SQL, [], |row| row.get(0))
}

/// All dead letters that are on disk, given to `take` one by one.
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

/// A message's id on its queue, which begins anew with each start, and the dead letter's number, which no other has.
fn public_id(message_id: i64, dead_letter_id: i64) -> Arc<str> {
    format!("{message_id}-{dead_letter_id}").into()
}

fn queue_name(queue: &SourceQueue) -> String {
    match queue {
        SourceQueue::Submission => "submission".to_owned(),
        SourceQueue::Scheduler => "scheduler".to_owned(),
        SourceQueue::Agent(agent) => format!("agent {agent}"),
    }
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
            assert_eq!(queue_of(&queue_name(&queue)), Some(queue));
        }
        assert_eq!(queue_of("cellar"), None);
    }
}
