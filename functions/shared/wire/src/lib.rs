//! The shapes of the API's JSON: its answers and its request bodies. Each shape is defined here once.
//!
//! The API writes the answers, and the clients read them with the same type. The API borrows texts, so an answer copies
//! no text of an order. The clients own texts: the API writes `Task<'a>`, and a client reads `Task<'static>`.
//!
//! Client and server may have different versions. A reader therefore ignores unknown members, and keeps an unknown word
//! as it is ([`OpenEnum`]). A member that the version before did not write is an `Option`, or has a default.
//!
//! What must never be here: a rule about orders, or a decision about a caller's access. `wire` depends on `domain`
//! alone.

mod bulk;
mod command;
mod configuration;
#[cfg(feature = "contract")]
pub mod contract;
mod list;
mod numbers;
mod open_enum;
mod order;
mod overview;
mod problem;
mod schedules;
mod tried;

pub use bulk::{DryRun, Job, JobList, JobState, Plan, Selector, Tally};
pub use command::{Callback, CalledBack, Command, Decision, Note, Queued, Settle};
pub use configuration::{Choose, Configuration, ConfigurationFile, Configure, Configured, Definition};
pub use list::{
    Alert, AlertList, DeadLetter, DeadLetterList, Health, Lease, LeaseList, OrdersWaiting, Service, ServiceList,
    Workflow, WorkflowApproval, WorkflowList, WorkflowStep,
};
pub use numbers::{
    AttemptNumbers, Count, Numbers, OrderNumbers, Point, ServiceNumbers, StepNumbers, Took, WorkflowNumbers,
};
pub use open_enum::OpenEnum;
pub use order::{Accepted, Approvers, CarriedLines, Order, OrderList, Reason, Step, Task, Transition};
pub use overview::{DeadLetterCount, Failure, Minute, Overview};
pub use problem::Problem;
pub use schedules::{Posted, Refused, Schedule, ScheduleList};
pub use tried::{Tried, TriedCall, TriedHeader, TriedStep, Try};
