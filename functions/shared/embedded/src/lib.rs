//! The one-machine engine: every port of `domain` on one data directory, which one process owns.
//!
//! # What is on disk, and when
//!
//! The file `stepwarden.db` (SQLite) is the source of truth for orders and tasks. One thread, the writer, owns the only
//! connection that writes. It takes all writes that arrived since its last transaction and applies them in one
//! transaction. It commits with one sync of the disk for all of them, and then wakes their waiting callers. So writes
//! become durable in the order in which they were queued. Writes that arrive together share a sync.
//!
//! Orders in flight are also in memory, as of the latest *queued* write. A conditional write is decided there. One rule
//! keeps this safe: **no message may follow from a state that could still be lost.** `insert`, `commit`,
//! `order`, `task` and `settled` wait for the disk.
//!
//! Some writes are lazy: they are queued, and no caller waits for them.
//!
//! - The **deletion of a submission message**. It is queued behind the insert that it follows from, so it never becomes
//!   durable without the insert. If the deletion is lost, the message is delivered again and the handler finds the
//!   order.
//! - The **deletion of a handled command**. It is queued behind the change that the command made. If the deletion is
//!   lost, the command is delivered again, which every queue may do.
//!
//! A lazy write does not start a transaction by itself. It joins the next awaited write, or is written after a short
//! delay. So an order of three steps costs four syncs: its insert (with the first claim), two results (each with the next
//! claim), and the end. Its submission is one more if it waits on the queue.
//!
//! If an order is not in memory, the disk is not read for its insert: the writer inserts it unless one of its id is there.
//!
//! # When the disk fails
//!
//! A failed transaction is rolled back. All writes that are queued behind it fail too. The state in memory is then
//! ahead of the disk, so the engine discards it, and the next access reads the disk. Some messages were to be deleted
//! or to become dead letters in that transaction; they are delivered again. Submission messages in flight are also
//! delivered again, and the receipts of their deliveries become void. So a handler whose insert was lost can no longer
//! delete the message that caused it.
//!
//! # The data directory
//!
//! Each transaction has a number, in the database and in a file beside it: a start can tell that a log lost some
//! (`generation.rs`). A writer with nothing to write empties the log (`checkpoints.rs`). Before a transaction, and again
//! before anybody learns of it, the writer looks whether the database and its log are still the files at their names
//! (`identity.rs`).
//!
//! # Queues
//!
//! Wakes, agents' replies and requests are in memory, since they follow from committed state. [`Engine::recover`] makes a
//! wake for each order in flight. The wake sends the requests again, and replies follow. Submissions, operators'
//! commands, results that services tell by themselves, and dead letters are on disk. A message in memory that was delivered too often stays in its queue until it is on
//! disk as a dead letter.
//!
//! Each queue has two priorities. A submission takes the priority that its order names. The workflow's default priority
//! is known only once the order is stored.
//!
//! # Beside the orders
//!
//! Versioned records (service health, memos, jobs and others) are on disk, and the writer decides their conditions. Service health
//! is also in memory, as of the latest durable write, since agents read it during a call. Leases are only in memory,
//! since one process owns the directory.
//!
//! The audit stream is a table to which the writer appends in the transaction of each change (`audit.rs`).
//!
//! # How the files depend on each other
//!
//! An [`Engine`] is a struct of parts: store, queues, records, events. The parts share one log, which depends
//! on none of them: a write is plain data (`write.rs`). The writer executes writes with the SQL of each part. Receiving
//! ends and recovery use the engine as a whole. The files have no circular dependency.
//!
//! # Backups
//!
//! Another process copies the database within one read transaction (`backup.rs`). It asks the running one for nothing.
//!
//! # What must never be here
//!
//! Any knowledge of a task beyond version, nonce, state, index key and priority.

mod audit;
mod backup;
mod check;
mod checkpoints;
mod clock;
mod connections;
mod core;
mod dead_letters;
mod directory;
mod disk;
mod engine;
mod erase;
mod even;
mod events;
mod flight;
mod generation;
mod identity;
mod index;
mod live;
mod lock;
mod log;
mod messages;
mod number_file;
mod options;
mod own;
mod priorities;
mod queue;
mod queues;
mod records;
mod recovery;
mod rows;
mod schema;
mod sources;
mod steady;
mod store;
mod tallies;
mod tasks;
#[cfg(test)]
mod tests;
mod turns;
mod write;
mod writer;

pub use audit::{Entries, Recorded, audit};
pub use backup::{BackupError, Manifest, Progress, Restored, Stage, Watch, back_up, restore};
pub use check::{Checked, check};
pub use clock::{Clock, Now, system_time};
pub use directory::{DATABASE, OpenError};
pub use engine::{Engine, Stats};
pub use events::EngineEvents;
pub use flight::Share;
pub use generation::Loss;
pub use options::{Channel, LOG_BYTES_MAX, NumberFile, Observer, Options, QueueOptions, Sending, Simulated};
pub use queues::EngineQueues;
pub use records::EngineRecords;
pub use recovery::Recovered;
pub use sources::{DeadLetters, Requests, Scheduler, Submissions};
pub use store::{EngineStore, attended};
