//! The state of the checked world.

use std::fmt;

use super::audit::Breach;
use super::bounds::{ACTORS_MAX, STEPS};
use super::message::{Bag, Message};
use super::task::Task;
use super::versions::Stage;

/// Room for the messages of one order in flight.
pub const IN_FLIGHT: usize = 6;
/// Room for the messages that one decision sends.
pub const OUTGOING: usize = 3;

/// The whole state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// The orders; those beyond the bounds are never touched.
    pub orders: [OrderState; ACTORS_MAX],
    /// What the schedulers are at, sorted: which of them it is makes no difference.
    pub schedulers: [Worker; ACTORS_MAX],
    /// What the supervisors are at, sorted.
    pub supervisors: [Worker; ACTORS_MAX],
    /// What an operator has applied.
    pub applied: Stage,
    /// The violation, if any. It ends the exploration of this branch.
    pub breach: Option<Breach>,
}

/// The state of one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderState {
    /// The version that the API pinned it to, by its place; `None` if it is not posted yet.
    pub pinned: Option<u8>,
    /// As stored.
    pub task: Option<Task>,
    /// In flight.
    pub messages: Bag<IN_FLIGHT>,
    /// The effects of the remote services.
    pub services: [Service; STEPS],
    /// The highest alert that the event bus got, by its number.
    pub told: u8,
    /// Commands that the operator still has.
    pub commands: [u8; 7],
    /// The remaining deferrals.
    pub deferrals: u8,
}

/// The effects of a remote service for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Service {
    /// Forward effects.
    pub forward: u8,
    /// Undo effects.
    pub undo: u8,
    /// Whether it refused to carry it out, and says so again under the same key. Kept only with the one clock; where clocks
    /// show anything the service may think better of it.
    pub refused: bool,
    /// Ticks until no forward call without an answer has its effect any more.
    pub runs: u8,
    /// Whether it took the forward call on, and tells the result later.
    pub accepted: bool,
}

/// The state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Worker {
    /// Idle.
    #[default]
    Idle,
    /// It has read the task.
    Read(Job, Seen),
    /// It has decided, and written if there was something to write. These follow from it: messages, and an alert.
    Decided(Job, Bag<OUTGOING>, Option<u8>),
    /// It has sent an alert, and has read the task again to strike it out.
    Sent(Job, u8, Seen),
}

impl Worker {
    /// What it works on.
    #[must_use]
    pub const fn job(&self) -> Option<Job> {
        match self {
            Self::Idle => None,
            Self::Read(job, _) | Self::Decided(job, ..) | Self::Sent(job, ..) => Some(*job),
        }
    }

    /// What it knows of the task, while that matters.
    pub const fn seen(&mut self) -> Option<&mut Seen> {
        match self {
            Self::Read(_, seen) | Self::Sent(_, _, seen) => Some(seen),
            Self::Idle | Self::Decided(..) => None,
        }
    }
}

/// What an instance handles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Job {
    /// Of which order.
    pub order: u8,
    /// What made it look.
    pub cause: Cause,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} (order {})", self.cause, self.order)
    }
}

/// What makes an instance look at an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The supervisor's tick.
    Tick,
    /// A message of the scheduler queue.
    Message(Message),
    /// A message that was delivered too often.
    DeadLetter(Message),
}

/// Whether what an instance read is still what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Seen {
    /// It is.
    Fresh,
    /// Somebody wrote since: a conditional write will be lost. What exactly was read makes no difference, since what an
    /// instance sends without a write it may as well have decided before that.
    Stale,
    /// Somebody wrote since, and the store does not mind: what was read is written over. Only where the store is broken on
    /// purpose.
    Kept(Task),
}

impl State {
    /// Puts the instances in order, so that worlds that differ only in who is who are one state.
    pub fn sort(&mut self) {
        self.schedulers.sort_unstable();
        self.supervisors.sort_unstable();
    }

    /// Somebody wrote: nobody else's reading of this order is worth anything any more. `kept`: what they go by all the same.
    pub fn outdate(&mut self, order: u8, kept: Option<Task>) {
        for worker in self.schedulers.iter_mut().chain(&mut self.supervisors) {
            if worker.job().is_some_and(|job| job.order == order)
                && let Some(seen) = worker.seen()
            {
                *seen = match (*seen, kept) {
                    (Seen::Fresh, Some(task)) => Seen::Kept(task),
                    (Seen::Kept(task), _) => Seen::Kept(task),
                    (Seen::Fresh | Seen::Stale, _) => Seen::Stale,
                };
            }
        }
    }
}
