//! The ports: all that the handlers need from the world. An adapter implements them on one kind of infrastructure; a
//! handler names those that it uses, so its signature says what its role may do.
//!
//! Adapters must keep what is written at each method; `tests/conformance` runs the same suite on all of them.

mod dead_letters;
mod environment;
mod error;
mod events;
mod jobs;
mod leases;
mod memos;
mod parts;
mod queues;
mod services;
mod store;

pub use dead_letters::{
    DEAD_LETTER_BYTES_MAX, DEAD_LETTERS_KEPT, DeadLetter, DeadLetterOutcome, DeadLetterRecord, DeadLetterRecords,
    SourceQueue,
};
pub use environment::Environment;
pub use error::{PortError, PortErrorKind};
pub use events::Events;
pub use jobs::Jobs;
pub use leases::{Lease, LeaseRecord, Leases};
pub use memos::{Memo, MemoState, Memos};
pub use parts::{
    HasDeadLetterRecords, HasEnvironment, HasEvents, HasJobs, HasLeases, HasMemos, HasQueues, HasServices, HasStore,
};
pub use queues::{Queues, Source};
pub use services::{Breaker, Release, ServiceHealth, Services};
pub use store::{Commit, Due, Inserted, ListError, Page, Store};
