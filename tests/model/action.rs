//! The actions of the checked world.

use super::message::{Answer, Attempt, CommandKind, Message};
use super::task::Late;
use super::versions::View;

/// An action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is what its name says")]
pub enum Action {
    /// The API pins an order and puts it on the submission queue.
    Post { order: u8, view: View },
    /// An operator's program writes the next record of its application.
    Apply,
    /// A submission function stores the order with its task. It may be killed before it sends what follows, and before
    /// it acknowledges its message.
    Store { order: u8, view: View, sends: bool, acknowledges: bool },
    /// The operator sends a command.
    Command { order: u8, command: CommandKind },
    /// A scheduler receives a message and reads the task.
    Receive { order: u8, message: Message },
    /// A supervisor finds the order in the index and reads the task.
    Look { order: u8 },
    /// A supervisor receives a dead letter and reads the task.
    DeadLetter { order: u8, message: Message },
    /// An instance decides and writes; if somebody wrote since it read, it reads again.
    Decide { by: Who, view: View, redelivered: bool, late: Late, then: Then },
    /// An instance continues after its decision.
    Send { by: Who, then: Then },
    /// It deletes the sent alert from the task (or fails to), and acknowledges its message.
    Strike { by: Who, can: bool },
    /// It dies.
    Die { by: Who },
    /// An agent receives a request and answers, with or without an effect at the service. The request stays.
    Call { order: u8, attempt: Attempt, left: u8, answer: Answer },
    /// An agent receives a request and calls, and gets no answer. The request stays.
    Begin { order: u8, attempt: Attempt, left: u8, knows: bool },
    /// An agent receives a request whose key is in use, and knows of no earlier call.
    Conflict { order: u8 },
    /// A call without an answer has its effect.
    Effect { order: u8, step: u8 },
    /// A service tells the result of a call that it took on. It may tell it again.
    Tell { order: u8, step: u8, answer: Answer },
    /// A message is lost.
    Lose { order: u8, message: Message },
    /// Time passes.
    Tick,
}

/// The continuation of an instance after its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing yet.
    Wait,
    /// It sends what follows. An alert that was taken it strikes out next; else it lets its message go.
    LetGo,
    /// It sends what follows, but the event bus does not take the alert; it lets its message go.
    LetGoMuted,
    /// It is killed before its first send.
    DieBeforeSending,
    /// It is killed before it acknowledges its message. Unsent messages are covered by lost ones.
    DieAfterSending,
}

/// An instance, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// One of the schedulers.
    Scheduler(u8),
    /// One of the supervisors.
    Supervisor(u8),
}

/// The write behaviour of instances: as shipped, or with a seeded bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// As it ships: a write on top of what was read, or none; then it sends.
    ThenSend,
    /// Broken: the store writes whatever it is given.
    Unconditional,
    /// Broken: it sends, and then finds that its write is lost.
    AfterSending,
}
