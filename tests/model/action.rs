//! What can happen in the checked world.

use super::message::{Answer, Attempt, CommandKind, Message};
use super::task::Late;

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is what its name says")]
pub enum Action {
    /// A submission function stores the order with its task. It may be killed before it wakes the scheduler, and before it
    /// acknowledges its message.
    Store { order: u8, wakes: bool, acknowledges: bool },
    /// The operator commands something.
    Command { order: u8, command: CommandKind },
    /// A scheduler receives a message and reads the task.
    Receive { order: u8, message: Message },
    /// A supervisor finds the order in the index and reads the task.
    Look { order: u8 },
    /// A supervisor receives a dead letter and reads the task.
    DeadLetter { order: u8, message: Message },
    /// An instance decides and writes; if somebody wrote since it read, it reads again.
    Decide { by: Who, redelivered: bool, late: Late, then: Then },
    /// It goes on after it has decided.
    Send { by: Who, then: Then },
    /// It strikes out the alert that it sent (or cannot), and lets its message go.
    Strike { by: Who, can: bool },
    /// It dies.
    Die { by: Who },
    /// An agent receives a request and answers, with or without an effect at the service. The request stays.
    Call { order: u8, attempt: Attempt, left: u8, answer: Answer },
    /// A message is lost.
    Lose { order: u8, message: Message },
    /// Time passes.
    Tick,
}

/// What an instance does once it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing yet.
    Wait,
    /// It sends what follows. An alert that was taken it strikes out next; else it lets its message go.
    LetGo,
    /// It sends what follows, but the event bus does not take the alert; it lets its message go.
    LetGoMuted,
    /// It is killed before it sends anything.
    DieBeforeSending,
    /// It is killed before it lets its message go. What was not sent any more is covered by what is lost.
    DieAfterSending,
}

/// An instance, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// One of the schedulers.
    Scheduler(u8),
    /// One of the supervisors.
    Supervisor(u8),
}

/// How an instance writes and sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// As it ships: a write on top of what was read, or none; then it sends.
    ThenSend,
    /// Broken: the store writes whatever it is given.
    Unconditional,
    /// Broken: it sends, and then finds that its write is lost.
    AfterSending,
}
