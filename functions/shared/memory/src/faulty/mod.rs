//! The ports in memory, with injected faults, a hook for each call, and a record of all writes and sends.

mod hooks;
mod ports;
mod record;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Display;
use std::future::{Future, pending, poll_fn};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use domain::limits::SHARDS;
use domain::ports::{Due, PortError, Store};
use domain::task::Watch;
use domain::time::Timestamp;
use futures_util::FutureExt;
use tokio::sync::Notify;

use crate::Memory;
use hooks::Hooks;

pub use record::Record;

/// A fault of one call of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails, and it has no effect.
    Fails,
    /// The call takes effect, and the answer is lost.
    AnswerLost,
    /// The call takes effect, but the infrastructure's client gets no answer. The client retries by itself and returns
    /// the second answer.
    TriedTwice,
    /// A conditional write is lost, whether or not another writer won. A call without a condition takes effect as
    /// usual.
    Conflicts,
    /// The caller dies at this call, before it takes effect: the call never returns.
    DiesBefore,
    /// The caller dies at this call, after it took effect: the call never returns.
    DiesAfter,
    /// The call waits for [`Faulty::release`], and takes effect then.
    Waits,
}

/// The ports in memory, with faults. Cloning copies a pointer.
#[derive(Clone)]
pub struct Faulty {
    memory: Memory,
    /// The lead of this instance's clock, in milliseconds.
    ahead_ms: i64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    faults: Mutex<Faults>,
    hooks: Mutex<Hooks>,
    /// The operation of each call, and its subject.
    calls: Mutex<Vec<(&'static str, String)>>,
    done: Mutex<Vec<(&'static str, String)>>,
    record: Mutex<Record>,
    released: Notify,
    died: AtomicBool,
    takes_turns: AtomicBool,
    sleepers: Mutex<Sleepers>,
    /// The waits that ended at once, in milliseconds.
    skipped: Mutex<Option<Vec<u64>>>,
    draws: Mutex<Option<Draws>>,
    /// The content of the index when it was frozen.
    old_index: Mutex<Option<HashMap<Watch, Vec<Due>>>>,
}

/// The next random numbers.
type Draws = Box<dyn Iterator<Item = u64> + Send>;

#[derive(Default)]
struct Faults {
    of_operations: VecDeque<(&'static str, Fault)>,
    /// The fault after this number of further calls, for any operation.
    after_calls: Option<(usize, Fault)>,
}

#[derive(Default)]
struct Sleepers {
    last_id: u64,
    until: BTreeMap<u64, Timestamp>,
}

/// What is below the faults: a test looks at it and changes it without a call of a port.
impl Deref for Faulty {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl Faulty {
    /// The same ports, without faults so far.
    #[must_use]
    pub fn new(memory: Memory) -> Self {
        Self { memory, ahead_ms: 0, shared: Arc::default() }
    }

    /// The same ports for an instance with a fast clock, or a slow one if `ahead_ms` is negative.
    #[must_use]
    pub fn with_clock_ahead_ms(&self, ahead_ms: i64) -> Self {
        Self { ahead_ms, ..self.clone() }
    }

    /// The next call of this operation, such as `store.commit`, fails. Several faults for one operation apply in the
    /// order in which they were added.
    pub fn next(&self, operation: &'static str, fault: Fault) {
        lock(&self.shared.faults).of_operations.push_back((operation, fault));
    }

    /// The call after this number of other calls fails, for any operation.
    pub fn after_calls(&self, calls: usize, fault: Fault) {
        lock(&self.shared.faults).after_calls = Some((calls, fault));
    }

    /// Whether every injected fault was used. Clears the unused faults.
    pub fn has_struck(&self) -> bool {
        let left = std::mem::take(&mut *lock(&self.shared.faults));
        left.after_calls.is_none() && left.of_operations.is_empty()
    }

    /// Releases the waiting call.
    pub fn release(&self) {
        self.shared.released.notify_one();
    }

    /// Every call of a port that can fail, in the order of their starts, with any outcome.
    #[must_use]
    pub fn calls(&self) -> Vec<&'static str> {
        lock(&self.shared.calls).iter().map(|(operation, _)| *operation).collect()
    }

    /// The subjects of the calls of this operation, in the order of their starts.
    #[must_use]
    pub fn calls_of(&self, operation: &str) -> Vec<String> {
        let calls = lock(&self.shared.calls);
        calls.iter().filter(|(named, _)| *named == operation).map(|(_, of)| of.clone()).collect()
    }

    /// The subject of the last call of this operation.
    #[must_use]
    pub fn last_call_of(&self, operation: &str) -> Option<String> {
        let calls = lock(&self.shared.calls);
        calls.iter().rev().find(|(named, _)| *named == operation).map(|(_, of)| of.clone())
    }

    /// The externally visible effects, in order: writes and sends.
    #[must_use]
    pub fn done(&self) -> Vec<&'static str> {
        lock(&self.shared.done).iter().map(|(operation, _)| *operation).collect()
    }

    /// The same, each with its subject.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        lock(&self.shared.done).iter().map(|(operation, of)| format!("{operation} {of}")).collect()
    }

    /// All writes and sends so far.
    #[must_use]
    pub fn record(&self) -> Record {
        lock(&self.shared.record).clone()
    }

    /// From now on, the index `watch` shows its present content.
    ///
    /// # Panics
    /// If the store fails.
    pub fn index_stands_still(&self) {
        let end_of_time = Timestamp::from_epoch_ms(i64::MAX);
        let content = |watch| {
            let all = self.memory.due(watch, end_of_time, None, usize::MAX).now_or_never();
            (watch, all.expect("no wait").expect("an index"))
        };
        let watches = (0..SHARDS).flat_map(|shard| [Watch::Due(shard), Watch::Wait(shard)]);
        *lock(&self.shared.old_index) = Some(watches.map(content).collect());
    }

    /// The index follows the store again.
    pub fn index_follows(&self) {
        *lock(&self.shared.old_index) = None;
    }

    /// From now on, each call yields to other work once before its effect and once after it.
    pub fn take_turns(&self) {
        self.shared.takes_turns.store(true, Ordering::Relaxed);
    }

    /// From now on, a sleep advances the clock and returns at once.
    pub fn skip_sleeps(&self) {
        *lock(&self.shared.skipped) = Some(Vec::new());
    }

    /// The sleeps that were skipped, in milliseconds.
    #[must_use]
    pub fn skipped_ms(&self) -> Vec<u64> {
        lock(&self.shared.skipped).clone().unwrap_or_default()
    }

    /// From now on, random numbers are drawn from here, until it is empty.
    pub fn draw_from(&self, draws: impl IntoIterator<Item = u64, IntoIter: Send + 'static>) {
        *lock(&self.shared.draws) = Some(Box::new(draws.into_iter()));
    }

    /// Whether a caller died since the last call of this function.
    pub fn has_died(&self) -> bool {
        self.shared.died.swap(false, Ordering::Relaxed)
    }

    /// The earliest time at which a sleeper wakes up.
    #[must_use]
    pub fn next_to_wake(&self, now: Timestamp) -> Option<Timestamp> {
        lock(&self.shared.sleepers).until.values().filter(|&&until| until > now).min().copied()
    }

    /// A call with an externally visible effect. `of` is its subject.
    async fn through<T: Send + 'static, Call>(
        &self,
        operation: &'static str,
        of: impl Display + Send,
        call: impl Fn() -> Call + Sync,
    ) -> Result<T, PortError>
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        let of = of.to_string();
        self.silently_through(operation, &of, self.noted(operation, &of, &call)).await
    }

    /// A call that reads, or that changes only its caller's view.
    async fn silently_through<T: Send + 'static, Call>(
        &self,
        operation: &'static str,
        of: impl Display + Send,
        call: impl Fn() -> Call + Sync,
    ) -> Result<T, PortError>
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        self.conditionally_through(operation, of, None, call).await
    }

    /// A call with a condition. It returns `lost` if the condition does not hold. For an externally visible effect,
    /// `call` is [`Faulty::noted`].
    async fn conditionally_through<T: Send + 'static, Call>(
        &self,
        operation: &'static str,
        of: impl Display + Send,
        lost: Option<T>,
        call: impl Fn() -> Call + Sync,
    ) -> Result<T, PortError>
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        let of = of.to_string();
        self.turn().await;
        let answer = match (self.fault(operation, &of), lost) {
            (Some(Fault::Conflicts), Some(lost)) => Ok(lost),
            (fault, _) => self.struck(fault, operation, call).await,
        };
        let answer = answer.map(|answer| self.hooked_answer(operation, &of, answer));
        self.turn().await;
        answer
    }

    /// Lets others go first, if the calls take turns.
    async fn turn(&self) {
        if self.shared.takes_turns.load(Ordering::Relaxed) {
            yield_now().await;
        }
    }

    /// A call that is recorded each time it takes effect.
    fn noted<'a, T, Call>(
        &'a self,
        operation: &'static str,
        of: &'a str,
        call: &'a (impl Fn() -> Call + Sync),
    ) -> impl Fn() -> futures_util::future::BoxFuture<'a, Result<T, PortError>> + Sync
    where
        Call: Future<Output = Result<T, PortError>> + Send,
    {
        move || {
            async move {
                let answer = call().await?;
                lock(&self.shared.done).push((operation, of.to_owned()));
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

    fn fault(&self, operation: &'static str, of: &str) -> Option<Fault> {
        lock(&self.shared.calls).push((operation, of.to_owned()));
        if let Some(fault) = self.hooked_fault(operation, of) {
            return Some(fault);
        }
        if self.memory.state().faults.has_down_of(operation, of) {
            return Some(Fault::Fails);
        }
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

/// Is pending once.
async fn yield_now() {
    let mut is_second = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
