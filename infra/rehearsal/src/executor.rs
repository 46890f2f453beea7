//! Runs invocations: futures that are polled only when they can progress. Instances are killed and paused here.

use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use domain::batch::Failures;
use http::Response;

use crate::event::Event;
use crate::faults::Fault;
use crate::state::{Shared, State};
use crate::who::{AFTER, BEFORE};

/// The outcome of an invocation.
#[derive(Debug)]
pub enum Done {
    /// A batch, with these failures.
    Batch(Failures),
    /// A run of the supervisor.
    Ran,
    /// An answer at the API.
    Answered(Box<Response<Bytes>>),
}

/// The work of an invocation.
pub type Work = Pin<Box<dyn Future<Output = Done> + Send>>;

/// The result of a poll.
#[derive(Debug)]
pub enum Went {
    /// It waits, or is paused.
    On,
    /// It is over.
    Ended(Done),
    /// Its instance died.
    Died,
    /// It panicked, and no handler caught the panic.
    Panicked(String),
}

struct Task {
    work: Work,
    call: Arc<Call>,
    phase: Arc<AtomicU8>,
    /// It was woken while it was paused.
    is_called: bool,
    is_paused: bool,
}

/// The invocations in flight.
#[derive(Default)]
pub struct Executor {
    tasks: Vec<Option<Task>>,
    ready: Arc<Mutex<VecDeque<u32>>>,
}

struct Call {
    invocation: u32,
    ready: Arc<Mutex<VecDeque<u32>>>,
    is_queued: AtomicBool,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.invocation);
        }
    }
}

impl Executor {
    /// The number of the next invocation.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    /// Whether an invocation is in flight.
    #[must_use]
    pub fn is_alive(&self, invocation: u32) -> bool {
        self.tasks.get(invocation as usize).is_some_and(Option::is_some)
    }

    /// Starts the next invocation.
    pub fn begin(&mut self, work: Work, phase: Arc<AtomicU8>) {
        let invocation = self.next_number();
        let call = Arc::new(Call { invocation, ready: self.ready.clone(), is_queued: AtomicBool::new(false) });
        call.wake_by_ref();
        self.tasks.push(Some(Task { work, call, phase, is_called: false, is_paused: false }));
    }

    /// An invocation that can progress, if any.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Resumes a paused invocation.
    pub fn resume(&mut self, invocation: u32) {
        if let Some(Some(task)) = self.tasks.get_mut(invocation as usize)
            && std::mem::take(&mut task.is_paused)
            && std::mem::take(&mut task.is_called)
        {
            task.call.wake_by_ref();
        }
    }

    /// Polls an invocation, unless it is paused or killed here.
    pub fn poll(&mut self, invocation: u32, shared: &Shared) -> Went {
        let Some(Some(task)) = self.tasks.get_mut(invocation as usize) else { return Went::On };
        task.call.is_queued.store(false, Ordering::Relaxed);
        if task.is_paused {
            task.is_called = true;
            return Went::On;
        }
        let outcome = {
            let mut state = shared.lock();
            match outcome(&mut state, task.phase.load(Ordering::Relaxed)) {
                Outcome::Pauses(ms) => {
                    state.trouble(ms);
                    state.after(ms, Event::Resume(invocation));
                    Outcome::Pauses(ms)
                }
                outcome @ (Outcome::Lives | Outcome::Dies) => outcome,
            }
        };
        match outcome {
            Outcome::Lives => {}
            Outcome::Pauses(_) => {
                (task.is_paused, task.is_called) = (true, true);
                return Went::On;
            }
            Outcome::Dies => {
                self.tasks[invocation as usize] = None;
                return Went::Died;
            }
        }
        let waker = Waker::from(task.call.clone());
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| task.work.as_mut().poll(&mut context)));
        match polled {
            Ok(Poll::Pending) => Went::On,
            Ok(Poll::Ready(done)) => {
                self.tasks[invocation as usize] = None;
                Went::Ended(done)
            }
            Err(panic) => {
                self.tasks[invocation as usize] = None;
                Went::Panicked(words(&*panic))
            }
        }
    }

    /// Drops all invocations.
    pub fn drop_all(&mut self) {
        self.tasks.clear();
    }
}

enum Outcome {
    Lives,
    Pauses(u64),
    Dies,
}

fn outcome(state: &mut State, phase: u8) -> Outcome {
    let death = match phase {
        BEFORE => Fault::KilledBefore,
        AFTER => Fault::KilledAfter,
        _ => Fault::KilledBetween,
    };
    if state.strikes(death) {
        return Outcome::Dies;
    }
    if state.strikes(Fault::Paused) {
        return Outcome::Pauses(state.rng.between(100, 20_000));
    }
    if state.strikes(Fault::PausedLong) {
        return Outcome::Pauses(state.rng.between(30_000, 20 * 60_000));
    }
    Outcome::Lives
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
