//! What follows from committed state after a start: queued submissions, and a wake for every order that is under way.

use domain::id::OrderId;
use domain::message::{SchedulerMessage, Undecodable, Wake, decode};
use domain::order::Order;
use domain::ports::PortError;
use rusqlite::Connection;

use crate::core::{State, lock};
use crate::engine::Engine;
use crate::rows::{self, ReadError};

/// How much there was to go on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Orders that were accepted and not known to be stored.
    pub submissions: usize,
    /// Orders that are under way.
    pub wakes: usize,
}

/// Nobody knows whether a message was delivered before the restart, so it is taken for a redelivery: the handler then
/// sends again what an attempt under way needs (rule 2).
const DELIVERED_BEFORE: u32 = 1;

impl Engine {
    /// Puts into the queues what was there, or follows from what is stored. To be called once, after [`Engine::open`]
    /// and before anything else.
    ///
    /// # Errors
    /// [`PortError`] when the database cannot be read.
    pub async fn recover(&self) -> Result<Recovered, PortError> {
        let engine = self.clone();
        let recover = move |connection: &Connection| {
            let submissions = engine.recover_submissions(connection)?;
            Ok(Recovered { submissions, wakes: engine.recover_wakes(connection)? })
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
            self.core().submissions.push_again(row.get(0)?, body, DELIVERED_BEFORE);
            count += 1;
        }
        Ok(count)
    }

    /// A message without a body will not insert its order, so nobody should wait for that.
    fn vouch_for(&self, order_id: OrderId, body: &Result<Order, Undecodable>) {
        if body.is_ok() {
            let State { live, log, .. } = &mut *lock(&self.core().state);
            live.accepted(order_id, log);
        }
    }

    fn recover_wakes(&self, connection: &Connection) -> Result<usize, ReadError> {
        // All shards of the supervisor's lane: '$' is the character after '#'.
        const SQL: &str = "SELECT order_id FROM tasks WHERE watch >= 'due#' AND watch < 'due$'";
        let mut statement = connection.prepare(SQL)?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let wake = Wake { order_id: rows::order_id(row, 0)?, hops: 0 };
            let queue = self.scheduler_queue();
            queue.push_again(queue.reserve(), Ok(SchedulerMessage::Wake(wake)), DELIVERED_BEFORE);
            count += 1;
        }
        Ok(count)
    }
}
