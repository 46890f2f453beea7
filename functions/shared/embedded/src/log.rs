//! The log of the writer: queued writes, the last durable write, and the callers that wait for it.
//!
//! The log is part of the engine's state and shares its lock. So the order of the writes is the order of the decisions
//! that made them. A caller registers its wait under the same lock under which it sees the write.

use std::sync::Arc;

use domain::ports::PortError;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::identity::Gone;
use crate::write::Write;

/// Whether a caller waits for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A caller waits: the write starts a transaction at once.
    Awaited,
    /// No caller waits: the write joins the next awaited write, or is written after a short delay.
    Lazy,
}

/// A queued write.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Its sequence number, counted from 1.
    pub(crate) seq: u64,
    pub(crate) urgency: Urgency,
    pub(crate) write: Write,
}

/// Why a write failed, or has an unknown outcome.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum WriteError {
    /// Its transaction or an earlier one failed.
    #[error("the transaction failed: {0}")]
    Failed(Arc<rusqlite::Error>),
    /// It would be lost.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// The engine is closed.
    #[error("the engine is closed")]
    Closed,
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(Arc::new(error))
    }
}

/// The queued writes and the last durable write.
#[derive(Debug)]
pub(crate) struct Log {
    sender: Option<UnboundedSender<Queued>>,
    last: u64,
    durable: u64,
    /// At most the writes of two transactions: the one in progress and the next one.
    waiters: Vec<(u64, oneshot::Sender<Result<(), WriteError>>)>,
}

impl Log {
    pub(crate) const fn new(sender: UnboundedSender<Queued>) -> Self {
        Self { sender: Some(sender), last: 0, durable: 0, waiters: Vec::new() }
    }

    /// Queues a write and returns its sequence number.
    pub(crate) fn append(&mut self, write: Write, urgency: Urgency) -> Result<u64, WriteError> {
        let sender = self.sender.as_ref().ok_or(WriteError::Closed)?;
        let seq = self.last + 1;
        sender.send(Queued { seq, urgency, write }).map_err(|_| WriteError::Closed)?;
        self.last = seq;
        Ok(seq)
    }

    /// Queues an awaited write.
    pub(crate) fn append_awaited(&mut self, write: Write) -> Durable {
        match self.append(write, Urgency::Awaited) {
            Ok(seq) => self.wait(seq),
            Err(error) => Durable::never(error),
        }
    }

    pub(crate) const fn is_durable(&self, seq: u64) -> bool {
        seq <= self.durable
    }

    /// A receiver that ends when the write with this number is durable. This write, or a later one, must be queued as
    /// awaited.
    pub(crate) fn wait(&mut self, seq: u64) -> Durable {
        if self.is_durable(seq) {
            return Durable(Wait::Over);
        }
        let (sender, receiver) = oneshot::channel();
        self.waiters.push((seq, sender));
        Durable(Wait::Until(receiver))
    }

    /// All writes up to this number are durable. Returns the callers that wait for them.
    pub(crate) fn committed(&mut self, seq: u64) -> Waiters {
        self.durable = seq;
        Waiters { senders: self.waiters.extract_if(.., |(wanted, _)| *wanted <= seq).collect(), outcome: Ok(()) }
    }

    /// The writes that are not durable yet have failed. Returns the callers that wait for them.
    pub(crate) fn failed(&mut self, error: WriteError) -> Waiters {
        self.durable = self.last;
        Waiters { senders: std::mem::take(&mut self.waiters), outcome: Err(error) }
    }

    /// Closes the log: the writer finishes the queued writes, and new writes are refused.
    pub(crate) fn close(&mut self) {
        self.sender = None;
    }

    pub(crate) const fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

/// The callers that wait for a transaction. They are notified outside of the lock.
#[must_use]
pub(crate) struct Waiters {
    senders: Vec<(u64, oneshot::Sender<Result<(), WriteError>>)>,
    outcome: Result<(), WriteError>,
}

impl Waiters {
    pub(crate) fn tell(self) {
        for (_, sender) in self.senders {
            // A receiver that no longer waits needs no answer.
            let _ = sender.send(self.outcome.clone());
        }
    }
}

/// A write with an open outcome: it is durable already, becomes durable, or fails.
#[derive(Debug)]
#[must_use]
pub(crate) struct Durable(Wait);

#[derive(Debug)]
enum Wait {
    Over,
    Until(oneshot::Receiver<Result<(), WriteError>>),
    Never(WriteError),
}

impl Durable {
    /// Nothing to wait for.
    pub(crate) const ALREADY: Self = Self(Wait::Over);

    /// The write was not queued.
    pub(crate) const fn never(error: WriteError) -> Self {
        Self(Wait::Never(error))
    }

    /// Waits until it is durable.
    pub(crate) async fn reached(self, operation: &'static str) -> Result<(), PortError> {
        let outcome = match self.0 {
            Wait::Over => Ok(()),
            Wait::Until(receiver) => receiver.await.unwrap_or(Err(WriteError::Closed)),
            Wait::Never(error) => Err(error),
        };
        outcome.map_err(|error| PortError::unavailable(operation, error))
    }
}
