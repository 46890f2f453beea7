//! The writes, as plain data. The parts of the engine queue writes, and each part has its own SQL.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::id::OrderId;
use domain::message::{CloudEvent, Priority, SchedulerMessage};
use domain::order::Order;
use domain::ports::{RecordKind, Seen, SourceQueue};
use domain::task::Task;
use domain::time::Timestamp;
use domain::trace::TraceParent;
use rusqlite::Connection;
use tokio::time::Instant;

use crate::erase::Traces;

/// One write.
#[derive(Debug)]
pub(crate) enum Write {
    /// A version of a task, and the version before it. The first version includes the order. `indexed`: a column of an
    /// index has changed.
    Task { before: Option<Arc<Task>>, task: Arc<Task>, order: Option<Arc<Order>>, indexed: bool },
    /// A new order with the first version of its task. If an order of this id is on disk, nothing is written.
    Insert { order: Arc<Order>, task: Arc<Task>, is_known: Arc<AtomicBool> },
    /// The personal data of an order that was erased, and its task: this is the last version.
    Erase { before: Arc<Task>, task: Arc<Task>, order: Arc<Order>, traces: Traces },
    /// An order that expired: this is the last version of its task.
    Forget { task: Arc<Task> },
    /// A submission message, its earliest delivery, and the span that sent it. Only the message is on disk: after a restart
    /// it is delivered at once.
    Accept { message_id: i64, order: Order, visible_at: Option<Instant>, parent: Option<TraceParent> },
    /// A submission message that was handled.
    Remove { message_id: i64, order_id: Option<OrderId> },
    /// A message on the scheduler queue that does not come again by itself. `not_before` is `visible_at` as wall-clock
    /// time, which survives a restart.
    Send {
        message_id: i64,
        message: SchedulerMessage,
        priority: Priority,
        visible_at: Option<Instant>,
        not_before: Timestamp,
    },
    /// Such a message that was handled.
    RemoveSent { message_id: i64 },
    /// A message that was delivered too often.
    Bury(Burial),
    /// A dead letter that was settled.
    RemoveDeadLetter { dead_letter_id: i64 },
    /// A published event.
    Event(CloudEvent),
    /// A versioned record of any kind, if its condition holds.
    Record(RecordWrite),
    /// No change: it only makes all writes before it durable.
    Barrier,
}

/// A message that becomes a dead letter.
#[derive(Debug)]
pub(crate) struct Burial {
    pub(crate) dead_letter_id: i64,
    pub(crate) queue: SourceQueue,
    pub(crate) message_id: i64,
    pub(crate) receive_count: u32,
    pub(crate) at: Timestamp,
    pub(crate) remains: Remains,
}

/// The location of a dead message's body.
#[derive(Debug)]
pub(crate) enum Remains {
    /// In the table of submissions. The order id is known if the body is readable.
    Submission(Option<OrderId>),
    /// In the table of the scheduler's messages.
    Sent,
    /// Here: the message was only in memory.
    Body(String),
}

impl Burial {
    /// The order of a submission.
    pub(crate) const fn submission_of(&self) -> Option<OrderId> {
        match self.remains {
            Remains::Submission(order_id) => order_id,
            Remains::Sent | Remains::Body(_) => None,
        }
    }
}

/// The table of one kind of record.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The key column.
    pub(crate) key: &'static str,
    /// Whether it has the column `expires_at`. Its list then begins with the records that expire last.
    pub(crate) expires: bool,
    /// The name of the record in errors.
    pub(crate) record: &'static str,
}

/// A conditional write of a record.
#[derive(Debug)]
pub(crate) struct RecordWrite {
    pub(crate) kind: RecordKind,
    pub(crate) table: Table,
    pub(crate) key: String,
    pub(crate) seen: Seen,
    pub(crate) version: u64,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) body: String,
    /// Finds the records that are surplus after this write, if the write can make a record surplus.
    pub(crate) surplus: Option<FindKeys>,
    /// The outcome of the condition. It is valid once the write is durable.
    pub(crate) is_conflict: Arc<AtomicBool>,
}

/// Finds the keys of some records of one kind.
pub(crate) type FindKeys = fn(&Connection, &Table) -> rusqlite::Result<Vec<String>>;
