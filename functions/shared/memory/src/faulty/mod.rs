//! The ports in memory, with faults where a test wants them, and a record of what went through.

mod ports;
mod record;

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, pending};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::limits::SHARDS;
use domain::ports::{Due, PortError, Store};
use domain::time::Timestamp;
use futures_util::FutureExt;
use tokio::sync::Notify;

use crate::Memory;

pub use record::Record;

/// What goes wrong with one call of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing has happened.
    Fails,
    /// It happens, and the answer is lost.
    AnswerLost,
    /// It happens, the client of the infrastructure hears nothing, tries again by itself, and gives the second answer.
    TriedTwice,
    /// A conditional write is lost, whoever may have won it. A call that has no condition happens as ever.
    Conflicts,
    /// The caller dies at this call, before anything has happened: the call never comes back.
    DiesBefore,
    /// The caller dies at this call, after it has happened: the call never comes back.
    DiesAfter,
    /// It waits for [`Faulty::release`], and happens then.
    Waits,
}

/// The ports in memory, with faults. Cloning copies a pointer.
#[derive(Clone)]
pub struct Faulty {
    memory: Memory,
    /// How far this instance's clock is ahead, in milliseconds.
    ahead_ms: i64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    faults: Mutex<Faults>,
    calls: Mutex<Vec<&'static str>>,
    done: Mutex<Vec<&'static str>>,
    record: Mutex<Record>,
    released: Notify,
    died: AtomicBool,
    sleepers: Mutex<Sleepers>,
    /// What the index showed when it stopped to follow.
    old_index: Mutex<Option<BTreeMap<u8, Vec<Due>>>>,
}

#[derive(Default)]
struct Faults {
    of_operations: VecDeque<(&'static str, Fault)>,
    /// So many calls from now, whichever it is.
    after_calls: Option<(usize, Fault)>,
}

#[derive(Default)]
struct Sleepers {
    last_id: u64,
    until: BTreeMap<u64, Timestamp>,
}

impl Faulty {
    /// The same ports, with no faults as yet.
    #[must_use]
    pub fn new(memory: Memory) -> Self {
        Self { memory, ahead_ms: 0, shared: Arc::default() }
    }

    /// The same ports as an instance sees them whose clock is ahead, or behind where this is negative.
    #[must_use]
    pub fn with_clock_ahead_ms(&self, ahead_ms: i64) -> Self {
        Self { ahead_ms, ..self.clone() }
    }

    /// The next call of this operation, such as `store.commit`, goes wrong. Of several faults for one operation the first
    /// named comes first.
    pub fn next(&self, operation: &'static str, fault: Fault) {
        lock(&self.shared.faults).of_operations.push_back((operation, fault));
    }

    /// The call after so many others goes wrong, whichever operation it is.
    pub fn after_calls(&self, calls: usize, fault: Fault) {
        lock(&self.shared.faults).after_calls = Some((calls, fault));
    }

    /// Whether no fault is left that was asked for; forgets it otherwise.
    pub fn has_struck(&self) -> bool {
        let left = std::mem::take(&mut *lock(&self.shared.faults));
        left.after_calls.is_none() && left.of_operations.is_empty()
    }

    /// Lets the call go on that waits.
    pub fn release(&self) {
        self.shared.released.notify_one();
    }

    /// Every call of a port that can fail, in the order in which they began, whatever became of it.
    #[must_use]
    pub fn calls(&self) -> Vec<&'static str> {
        lock(&self.shared.calls).clone()
    }

    /// What has happened that can be seen from outside, in its order: writes and sends.
    #[must_use]
    pub fn done(&self) -> Vec<&'static str> {
        lock(&self.shared.done).clone()
    }

    /// All that was written and sent so far.
    #[must_use]
    pub fn record(&self) -> Record {
        lock(&self.shared.record).clone()
    }

    /// From now on the index `watch` shows what it shows now.
    ///
    /// # Panics
    /// When the store is out of order.
    pub fn index_stands_still(&self) {
        let end_of_time = Timestamp::from_epoch_ms(i64::MAX);
        let shard = |shard| {
            let all = self.memory.due(shard, end_of_time, None, usize::MAX).now_or_never();
            (shard, all.expect("no wait").expect("an index"))
        };
        *lock(&self.shared.old_index) = Some((0..SHARDS).map(shard).collect());
    }

    /// The index follows again.
    pub fn index_follows(&self) {
        *lock(&self.shared.old_index) = None;
    }

    /// Whether a caller died since this was asked last.
    pub fn has_died(&self) -> bool {
        self.shared.died.swap(false, Ordering::Relaxed)
    }

    /// When the next of those wakes up who sleep.
    #[must_use]
    pub fn next_to_wake(&self, now: Timestamp) -> Option<Timestamp> {
        lock(&self.shared.sleepers).until.values().filter(|&&until| until > now).min().copied()
    }

    /// A call that changes what can be seen from outside.
    async fn through<T, Call>(&self, operation: &'static str, call: impl Fn() -> Call + Sync) -> Result<T, PortError>
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        self.struck(self.fault(operation), operation, self.noted(operation, &call)).await
    }

    /// A call that reads, or that changes what only its callers see.
    async fn silently_through<T, Call>(
        &self,
        operation: &'static str,
        call: impl Fn() -> Call + Sync,
    ) -> Result<T, PortError>
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        self.struck(self.fault(operation), operation, call).await
    }

    /// A call with a condition, which answers `lost` where that does not hold. Where it can be seen from outside, `call`
    /// is [`Faulty::noted`].
    async fn conditionally_through<T, Call>(
        &self,
        operation: &'static str,
        lost: T,
        call: impl Fn() -> Call + Sync,
    ) -> Result<T, PortError>
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        match self.fault(operation) {
            Some(Fault::Conflicts) => Ok(lost),
            fault => self.struck(fault, operation, call).await,
        }
    }

    /// A call that is written down as done each time that it happens.
    fn noted<'a, T, Call>(
        &'a self,
        operation: &'static str,
        call: &'a (impl Fn() -> Call + Sync),
    ) -> impl Fn() -> futures_util::future::BoxFuture<'a, Result<T, PortError>> + Sync
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        move || {
            async move {
                let answer = call().await?;
                lock(&self.shared.done).push(operation);
                Ok(answer)
            }
            .boxed()
        }
    }

    async fn struck<T, Call>(
        &self,
        fault: Option<Fault>,
        operation: &'static str,
        call: impl Fn() -> Call + Sync,
    ) -> Result<T, PortError>
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        match fault {
            None | Some(Fault::Conflicts) => call().await,
            Some(Fault::Fails) => Err(PortError::unavailable(operation, "as the test says")),
            Some(Fault::AnswerLost) => {
                call().await?;
                Err(PortError::unavailable(operation, "the answer is lost, as the test says"))
            }
            Some(Fault::TriedTwice) => {
                call().await?;
                call().await
            }
            Some(Fault::DiesBefore) => self.die().await,
            Some(Fault::DiesAfter) => {
                call().await?;
                self.die().await
            }
            Some(Fault::Waits) => {
                self.shared.released.notified().await;
                call().await
            }
        }
    }

    async fn die<T>(&self) -> T {
        self.shared.died.store(true, Ordering::Relaxed);
        pending().await
    }

    fn fault(&self, operation: &'static str) -> Option<Fault> {
        lock(&self.shared.calls).push(operation);
        let faults = &mut *lock(&self.shared.faults);
        match &mut faults.after_calls {
            Some((0, fault)) => {
                let fault = *fault;
                faults.after_calls = None;
                return Some(fault);
            }
            Some((calls, _)) => *calls -= 1,
            None => {}
        }
        let place = faults.of_operations.iter().position(|(named, _)| *named == operation)?;
        faults.of_operations.remove(place).map(|(_, fault)| fault)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
