//! The orders under way and the bytes of their documents, by submitter, as of the latest queued write. All of them may be
//! in memory at once, so both are bounded.

use std::collections::HashMap;
use std::sync::Arc;

use domain::order::Order;
use domain::task::{ProcessState, Task};
use rusqlite::{Connection, Result};

use crate::rows::Stored;

/// Some orders under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Their number.
    pub orders: u64,
    /// The bytes of their documents.
    pub bytes: u64,
}

/// All orders under way.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flight {
    all: Share,
    of: HashMap<Arc<str>, Share>,
}

/// What an order adds: its submitter and the bytes of its document.
pub(crate) type Part = (Arc<str>, u64);

impl Flight {
    /// Those on disk.
    pub(crate) fn read(connection: &Connection) -> Result<Self> {
        const SQL: &str = "SELECT submitter, count(*), sum(octet_length(document)) FROM tasks JOIN orders USING (seq) \
                           WHERE process_state = ?1 GROUP BY submitter";
        let mut flight = Self::default();
        let mut statement = connection.prepare(SQL)?;
        for state in ProcessState::ALL.iter().filter(|state| !state.is_settled()) {
            let mut rows = statement.query([state.name()])?;
            while let Some(row) = rows.next()? {
                let share = Share { orders: row.get(1)?, bytes: row.get(2)? };
                flight.all.add(share);
                flight.of.entry(row.get::<_, String>(0)?.into()).or_default().add(share);
            }
        }
        Ok(flight)
    }

    /// The part of an order, if it is under way.
    pub(crate) fn part(order: &Order, task: &Task) -> Option<Part> {
        let bytes = order.document.text().len() as u64;
        (!task.process_state.is_settled()).then(|| (order.submitter.clone(), bytes))
    }

    /// The same of what is known of an order.
    pub(crate) fn part_of(stored: Option<&Stored>) -> Option<Part> {
        stored.and_then(|Stored { order, task }| Self::part(order, task))
    }

    /// An order changed.
    pub(crate) fn change(&mut self, before: Option<Part>, after: Option<Part>) {
        if before == after {
            return;
        }
        if let Some((submitter, bytes)) = after {
            let share = Share { orders: 1, bytes };
            self.all.add(share);
            self.of.entry(submitter).or_default().add(share);
        }
        if let Some((submitter, bytes)) = before {
            let share = Share { orders: 1, bytes };
            self.all.remove(share);
            if let Some(of) = self.of.get_mut(&submitter) {
                of.remove(share);
                if of.orders == 0 {
                    self.of.remove(&submitter);
                }
            }
        }
    }

    /// All of them, and those of this submitter.
    pub(crate) fn shares(&self, submitter: &str) -> [Share; 2] {
        [self.all, self.of.get(submitter).copied().unwrap_or_default()]
    }
}

impl Share {
    const fn add(&mut self, more: Self) {
        self.orders += more.orders;
        self.bytes += more.bytes;
    }

    const fn remove(&mut self, less: Self) {
        self.orders = self.orders.saturating_sub(less.orders);
        self.bytes = self.bytes.saturating_sub(less.bytes);
    }
}
