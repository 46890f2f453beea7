//! The ports: everything that the handlers need from outside, in parts. An adapter implements the parts on one kind of
//! infrastructure. A role's `…Ports` trait names the parts that the role may use (see [`HasStore`] and its
//! neighbours).
//!
//! Each method documents its contract. `tests/conformance` runs the same suite on all adapters.

mod dead_letters;
mod environment;
mod error;
mod events;
mod memory;
mod memos;
mod parts;
mod queues;
mod records;
mod services;
mod store;

pub use dead_letters::{
    DEAD_LETTER_BYTES_MAX, DEAD_LETTERS_KEPT, DeadLetter, DeadLetterOutcome, DeadLetterRecord, SourceQueue,
};
pub use environment::Environment;
pub use error::{PortError, PortErrorKind};
pub use events::Events;
pub use memory::MemoryRecords;
pub use memos::{Memo, MemoState};
pub use parts::{HasEnvironment, HasEvents, HasQueues, HasRecords, HasStore};
pub use queues::{Queues, Source};
pub use records::{Listed, Record, RecordKind, Records, Seen, Shown, change, replace, sorted, surplus};
pub use services::{
    Acceptance, Answers, Breaker, Evidence, OrderAt, Outage, OutageReason, Pace, Rejections, Release, ServiceHealth,
};
pub use store::{Commit, Due, Inserted, ListError, Page, Store, Watched};
