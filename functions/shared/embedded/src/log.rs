//! The way to the writer: what is queued, how far it is durable, and who waits for that.
//!
//! The log is part of the engine's state and shares its lock. So the order of the writes is the order of the decisions
//! that made them, and who waits registers in the same moment in which the write is seen.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use domain::ports::PortError;
use tokio::sync::oneshot;

use crate::write::Write;

/// Whether anybody waits for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Somebody does: it goes at once.
    Awaited,
    /// Nobody does: it goes with the next that somebody waits for.
    Lazy,
}

/// A write on its way.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Its place; counted from 1.
    pub(crate) seq: u64,
    pub(crate) urgency: Urgency,
    pub(crate) write: Write,
}

/// Why a write did not happen, or is not known to have.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum WriteError {
    /// The transaction failed, its own or one before it.
    #[error("the transaction failed: {0}")]
    Failed(Arc<rusqlite::Error>),
    /// The engine is closed.
    #[error("the engine is closed")]
    Closed,
}

/// What is queued and how far it is durable.
#[derive(Debug)]
pub(crate) struct Log {
    sender: Option<Sender<Queued>>,
    last: u64,
    durable: u64,
    /// At most those of two transactions: the one that is being written and the one that gathers.
    waiters: Vec<(u64, oneshot::Sender<Result<(), WriteError>>)>,
}

impl Log {
    pub(crate) const fn new(sender: Sender<Queued>) -> Self {
        Self { sender: Some(sender), last: 0, durable: 0, waiters: Vec::new() }
    }

    /// Queues a write and gives its place.
    pub(crate) fn append(&mut self, write: Write, urgency: Urgency) -> Result<u64, WriteError> {
        let sender = self.sender.as_ref().ok_or(WriteError::Closed)?;
        let seq = self.last + 1;
        sender.send(Queued { seq, urgency, write }).map_err(|_| WriteError::Closed)?;
        self.last = seq;
        Ok(seq)
    }

    /// Queues a write to wait for.
    pub(crate) fn append_awaited(&mut self, write: Write) -> Durable {
        match self.append(write, Urgency::Awaited) {
            Ok(seq) => self.wait(seq),
            Err(error) => Durable::never(error),
        }
    }

    pub(crate) const fn is_durable(&self, seq: u64) -> bool {
        seq <= self.durable
    }

    /// What ends when the write at this place is durable. It must have been queued as awaited, or one behind it.
    pub(crate) fn wait(&mut self, seq: u64) -> Durable {
        if self.is_durable(seq) {
            return Durable(Wait::Over);
        }
        let (sender, receiver) = oneshot::channel();
        self.waiters.push((seq, sender));
        Durable(Wait::Until(receiver))
    }

    /// Everything up to this place is durable; gives those who wait for that.
    pub(crate) fn committed(&mut self, seq: u64) -> Waiters {
        self.durable = seq;
        Waiters { senders: self.waiters.extract_if(.., |(wanted, _)| *wanted <= seq).collect(), outcome: Ok(()) }
    }

    /// Nothing beyond what is durable will become so; gives those who wait for it.
    pub(crate) fn failed(&mut self, error: WriteError) -> Waiters {
        self.durable = self.last;
        Waiters { senders: std::mem::take(&mut self.waiters), outcome: Err(error) }
    }

    /// Lets the writer finish what is queued, and takes no more.
    pub(crate) fn close(&mut self) {
        self.sender = None;
    }

    pub(crate) const fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

/// Those who wait for a transaction, to be told outside of the lock.
#[must_use]
pub(crate) struct Waiters {
    senders: Vec<(u64, oneshot::Sender<Result<(), WriteError>>)>,
    outcome: Result<(), WriteError>,
}

impl Waiters {
    pub(crate) fn tell(self) {
        for (_, sender) in self.senders {
            // Who does not wait any more need not know.
            let _ = sender.send(self.outcome.clone());
        }
    }
}

/// A write that may be durable already, or will be, or will not.
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

    /// It was not even queued.
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
