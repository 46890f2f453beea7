//! The one-machine engine: every port of `domain` on one data directory, which one process owns.
//!
//! # What is on disk, and when
//!
//! The file `stepwarden.db` (SQLite) is the truth about orders and tasks. One thread, the writer, owns the only
//! connection that writes. It takes everything that has arrived since its last transaction, applies it in one
//! transaction, commits (one sync of the disk for all of them), and then lets those go on who wait for it. So writes
//! become durable in the order in which they were queued, and those that arrive together share a sync.
//!
//! Orders that are under way are also in memory, as of the latest *queued* write, and a conditional write is decided
//! there. One rule keeps this honest: **nothing may be sent because of a state that is not durable.** `commit` answers,
//! and `task` gives a state, only once the write that made it is on disk. `settled` tells only what is on disk.
//!
//! Some writes are lazy: they are queued, and nobody waits for them.
//!
//! - The **insert** of an order whose submission message is on disk. If it is lost, the message is still there and is
//!   delivered again, and makes the same insert. So the first version of a task may be acted upon at once; the claim
//!   that follows goes through the same writer behind the insert, and one sync makes both durable.
//! - The **deletion of a submission message**. It is queued behind the insert that it follows from, so it can never be
//!   durable without it. If it is lost, the message comes again and finds the order there.
//! - The **deletion of a command** that was handled. It is queued behind the change that the command made. If it is lost,
//!   the command comes again, as it may from any queue.
//!
//! Lazy writes do not start a transaction by themselves, they ride with the next write that somebody waits for, or
//! go after a short while. So an order of three steps costs five syncs: its submission, the first claim (with the
//! insert), two results (each with the next claim), and the end.
//!
//! # When the disk fails
//!
//! A transaction that fails is rolled back, and with it fails everything that is queued behind it. What is in memory is
//! then ahead of the disk, so it is forgotten; the next try reads the disk. Messages whose deletion, or whose way to the
//! dead letters, was in that transaction come back. Submission messages that were handed out
//! come back, and the receipts of their deliveries are void: a handler that goes on with a lost insert can no longer
//! delete the message that caused it.
//!
//! # Queues
//!
//! Wakes, replies and requests are in memory: they follow from committed state, and [`Engine::recover`] derives them
//! again. Submissions, operators' commands, and what no handler could deal with, are on disk. A message in memory that
//! was delivered too often stays in its queue until it is on disk as a dead letter.
//!
//! Each queue has two priorities. A submission goes in the priority that its order names: what the workflow says about the others
//! is known only once they are stored.
//!
//! # Beside the orders
//!
//! Versioned records (healths, memos, jobs) are on disk, and the writer decides their conditions. Healths are also in
//! memory, as of the latest durable write, since agents ask for them while a call waits. Leases are only in memory: one
//! process owns the directory.
//!
//! # How the files depend on each other
//!
//! An [`Engine`] is a struct of parts: store, queues, records, events, leases. The parts share one log, which knows none
//! of them: a write is plain data (`write.rs`). The writer carries writes out with the SQL of each part. Receiving ends and
//! recovery use the engine as a whole. No two files depend on each other in a circle.
//!
//! # What must never be here
//!
//! Any knowledge of what a task means beyond its version, its key in the index and whether it is finished.

mod check;
mod clock;
mod connections;
mod core;
mod dead_letter_records;
mod dead_letters;
mod directory;
mod engine;
mod events;
mod index;
mod leases;
mod live;
mod lock;
mod log;
mod messages;
mod options;
mod priorities;
mod queue;
mod queues;
mod records;
mod recovery;
mod rows;
mod schema;
mod sources;
mod store;
mod write;
mod writer;

pub use check::{Checked, check};
pub use clock::System;
pub use directory::OpenError;
pub use engine::{Engine, Stats};
pub use events::EngineEvents;
pub use leases::EngineLeases;
pub use options::{Channel, Observer, Options, QueueOptions, Sending};
pub use queues::EngineQueues;
pub use records::EngineRecords;
pub use recovery::Recovered;
pub use sources::{DeadLetters, Requests, Scheduler, Submissions};
pub use store::EngineStore;
