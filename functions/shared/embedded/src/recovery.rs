//! Recovery after a start. Submissions, commands and dead letters are on disk; every order in flight gets a wake.

use domain::id::OrderId;
use domain::limits::DELAY_MS_MAX;
use domain::message::{Priority, SchedulerMessage, Undecodable, Wake, decode};
use domain::order::Order;
use domain::ports::{Environment, PortError};
use domain::time::Timestamp;
use rusqlite::Connection;

use crate::core::State;
use crate::dead_letters;
use crate::engine::Engine;
use crate::lock::lock;
use crate::queue::{Arrival, delayed};
use crate::rows::{self, ReadError};

/// The recovered work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Orders that were accepted and may not be stored.
    pub submissions: usize,
    /// Orders in flight.
    pub wakes: usize,
    /// Operators' commands that may not have been carried out, and results that may not have been taken.
    pub commands: usize,
    /// Dead letters that are not settled.
    pub dead_letters: usize,
}

/// A message may have been delivered before the restart, so it counts as a redelivery. The handler then sends the
/// messages of an attempt in flight again (rule 2).
const DELIVERED_BEFORE: u32 = 1;

/// The orders in flight: all shards of the supervisor's index. '$' is the character after '#'.
const IN_FLIGHT: &str = "tasks WHERE watch >= 'due#' AND watch < 'due$'";

/// Orders that a start would go on with. One that is being stored may count twice.
pub(crate) fn under_way(connection: &Connection) -> rusqlite::Result<u64> {
    let count =
        |from: &str| connection.query_row(&format!("SELECT count(*) FROM {from}"), [], |row| row.get::<_, u64>(0));
    Ok(count(IN_FLIGHT)? + count("messages")?)
}

impl Engine {
    /// Fills the queues with the messages on disk and the messages that follow from stored state. Call it once, after
    /// [`Engine::open`] and before any other call.
    ///
    /// # Errors
    /// [`PortError`] if the database cannot be read.
    pub async fn recover(&self) -> Result<Recovered, PortError> {
        let engine = self.clone();
        let recover = move |connection: &Connection| {
            let submissions = engine.recover_submissions(connection)?;
            let commands = engine.recover_commands(connection)?;
            let wakes = engine.recover_wakes(connection)?;
            let dead_letters = &engine.all_queues().dead_letters;
            let dead_letters =
                dead_letters::load(connection, DELIVERED_BEFORE, |dead_letter| dead_letters.put(dead_letter))?;
            Ok(Recovered { submissions, wakes, commands, dead_letters })
        };
        self.core().readers.read("engine.recover", recover).await
    }

    fn recover_submissions(&self, connection: &Connection) -> Result<usize, ReadError> {
        let mut statement =
            connection.prepare("SELECT message_id, order_id, body FROM messages ORDER BY message_id")?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let body = decode::<Order>(rows::text(row, 2)?.as_bytes());
            if let Ok(order_id) = rows::order_id(row, 1) {
                self.vouch_for(order_id, &body);
            }
            let priority = body.as_ref().map_or(Priority::Normal, |order| order.priority.unwrap_or_default());
            self.all_queues().submissions.put(again(row.get(0)?, body, priority, true));
            count += 1;
        }
        Ok(count)
    }

    /// A message without a readable body does not insert its order, so a reader must not wait for it.
    fn vouch_for(&self, order_id: OrderId, body: &Result<Order, Undecodable>) {
        if body.is_ok() {
            let State { live, log, .. } = &mut *lock(&self.core().state);
            live.accepted(order_id, log);
        }
    }

    fn recover_commands(&self, connection: &Connection) -> Result<usize, ReadError> {
        let mut statement =
            connection.prepare("SELECT message_id, priority, not_before, body FROM commands ORDER BY message_id")?;
        let mut rows = statement.query([])?;
        let (mut count, now) = (0, self.core().clock.now());
        while let Some(row) = rows.next()? {
            let (message_id, priority) = (row.get(0)?, Priority::named(rows::text(row, 1)?).unwrap_or_default());
            let delay_ms = now.ms_until(Timestamp::from_epoch_ms(row.get(2)?)).min(DELAY_MS_MAX);
            let body = decode::<SchedulerMessage>(rows::text(row, 3)?.as_bytes());
            self.all_queues()
                .scheduler
                .put(Arrival { visible_at: delayed(delay_ms), ..again(message_id, body, priority, true) });
            count += 1;
        }
        Ok(count)
    }

    fn recover_wakes(&self, connection: &Connection) -> Result<usize, ReadError> {
        let sql = format!("SELECT order_id, coalesce(body ->> '$.Priority', 'normal') FROM {IN_FLIGHT}");
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let wake = Wake { order_id: rows::order_id(row, 0)?, hops: 0 };
            let priority = Priority::named(rows::text(row, 1)?).unwrap_or_default();
            let queue = &self.all_queues().scheduler;
            queue.put(again(queue.reserve(), Ok(SchedulerMessage::Wake(wake)), priority, false));
            count += 1;
        }
        Ok(count)
    }
}

/// A message that may have been delivered before.
const fn again<M>(message_id: i64, body: Result<M, Undecodable>, priority: Priority, is_stored: bool) -> Arrival<M> {
    Arrival { message_id, body, priority, is_stored, receive_count: DELIVERED_BEFORE, visible_at: None, parent: None }
}
