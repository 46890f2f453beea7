//! The shapes of the API's JSON: the answers that it gives and the bodies that it takes. Each shape stands here once.
//!
//! The API writes the answers and the clients read them with the same type. Texts are borrowed where they are written, so
//! that an answer copies nothing of an order, and owned where they are read: `Task<'a>` is written, `Task<'static>` is
//! read.
//!
//! Client and server may be of different versions. Reading therefore ignores unknown members, gives a default to members
//! that a command can do without, and keeps an unknown word as it is ([`OpenEnum`]).
//!
//! What must never be here: a rule about orders, or a decision about what a caller may see. `wire` depends on `domain`
//! alone.

mod bulk;
mod list;
mod open_enum;
mod order;
mod overview;
mod problem;

pub use bulk::{DryRun, Job, JobList, JobState, Plan, Selector, Tally};
pub use list::{
    DeadLetter, DeadLetterList, Health, Lease, LeaseList, Service, ServiceList, Workflow, WorkflowList, WorkflowStep,
};
pub use open_enum::OpenEnum;
pub use order::{
    Accepted, Command, Order, OrderList, Pause, Queued, Reason, Situation, Step, StepError, Task, Transition,
};
pub use overview::{Count, DeadLetterCount, Failure, Minute, Overview};
pub use problem::Problem;
