//! Stepwarden's tests beyond one crate: end to end, conformance, kill, faults, and the proof that no order is lost and no
//! effect doubled.
//!
//! # What is guaranteed
//!
//! Whatever fails on the way, and in whatever order:
//!
//! * an order that was answered 202 is on the submission queue, stored, or a dead letter that somebody sees to, and it ends
//!   `Processed`, `Compensated`, or in `Error` with an alert;
//! * each step of it has at most one effect in each direction, and none after its undo was confirmed;
//! * `Processed` means that every step had its effect, `Compensated` that every step ever begun has a confirmed undo, and
//!   neither changes again;
//! * once the faults stop, every order ends within the sum of its attempts' limits, back-offs and supervisor's periods, and
//!   every notification and alert arrives.
//!
//! # What that rests on
//!
//! * **The store keeps what it acknowledged**, and its conditional writes are conditional. It may be away, slow, throttled,
//!   answer with conflicts that there are not, or do a write and lose the answer.
//! * **A queue gives a message until it is told that it is done**, or makes it a dead letter. It may give it twice, hours
//!   late, in any order, and to two instances at the same time; a send may fail, or be done and not answered.
//! * **A remote service answers a repeat of an idempotency key without a second effect** for longer than the step's
//!   `horizon`, takes the undo of what was never done as done, and refuses to do what was undone. Where it does not, its
//!   agent's memo does it for the service, but for one thing that no memo can tell: whether a call whose end nobody saw had
//!   its effect.
//! * **Clocks decide only how long things take.** Those of two instances may differ by minutes: that costs attempts and time,
//!   never an effect. That every order ends in time (the last point above) needs clocks that are right in the end.
//!
//! An agent starts no call when its attempt's time is over, by its own clock, which it reads after the last thing that it
//! waits for. That it stands still between that look and the call, or between the delivery of a request and its first look,
//! no code can exclude; the call is then late, and what makes that harmless is its idempotency key.
//!
//! # How it is tested
//!
//! Everything here runs the code that ships: the handlers of the five functions, over ports of the test's own.
//!
//! | what | where | as part of `cargo test` | at length |
//! | --- | --- | --- | --- |
//! | a world with one seed for all chance, in which everything goes wrong, and an auditor who sees only what can be seen from outside | [`simulation`] | 2,000 worlds, of which 1,000 twice | `cargo run --release -p tests --bin simulate -- --seeds 100000` |
//! | the auditor finds what is wrong: bugs put into the code, one at a time | `simulation/bugs` | each fits the code | `tests/run bugs` |
//! | every order of events of a small world, exhaustively | [`model`] | one order, one of each instance | `cargo run --release -p tests --bin model -- --config full` |
//! | the model finds what is wrong: conditions dropped, one at a time | [`model::broken`] | all | `cargo run --release -p tests --bin model -- --broken` |
//! | every call of every port of every handler, failed in each way | `tests/every_node` | all | |
//! | the state machine, records and messages with random values | `properties` in the crate `domain` | all | |
//! | decoders of outside input | [`fuzzing`] | the inputs that are kept | `tests/run fuzz` |
//! | each change of the code of `domain` and `agent` by one operator, constant or arm makes a test fail | `.cargo/mutants.toml` | | `cargo mutants -p domain -p agent` |
//! | the real stores and queues keep the ports' promises | [`conformance`] | all | `tests/run deployed` |
//!
//! `tests/prove` runs the column on the right, and ends with a table.
//!
//! ## The simulation
//!
//! A world is one thread and one virtual clock, so a seed is always the same world, and `simulate --seed N` shows it
//! action by action. There is nothing in it that waits for real time. An instance may be killed or stand still wherever it
//! waits. What goes wrong is a closed list ([`simulation::faults::Fault`]); a run of 2,000 worlds in which one of them never
//! struck fails. The auditor ([`simulation::auditor`]) is told of calls at services, messages on queues and channels, and
//! stored records, and checks the numbered invariants from these alone. After a while the faults stop, an operator sees to
//! what waits for one, and everything has to come to an end.
//!
//! ### What it does not see
//!
//! * **What lies below the ports.** The ports are the simulation's own and keep everything in memory. Neither `DynamoDB` nor
//!   SQLite nor SQS runs in it, nor what their clients do with a transaction that is cancelled, a batch of which a part
//!   failed, or an answer that nobody can read. That the real ones keep the promises that the simulation's make is held by
//!   [`conformance`], case by case and not by chance.
//! * **A chain of messages beyond the workflow's worst case.** Nothing makes one, and an order that ends for that reason is
//!   complained of. What becomes of such an order is tried in the tests of `domain`.
//! * **A request that is run again after its attempt was given back.** A `Deferred` reply frees the step, yet a duplicate of
//!   the request may still run until the attempt's deadline, beside the next attempt and even beside the undo. The auditor
//!   lets that pass: what makes it harmless is the service, which answers a repeat of the key without a second effect and
//!   refuses what was undone, and of that the auditor sees to the effects alone.
//! * **What comes of a job for many orders.** What a job does to each order is judged like any operator's command; whether the
//!   job comes to its end, keeps its pace and counts right is not. Tests in `domain` and of the supervisor look at that.
//! * **Why an order was stopped by a dead letter about a wake.** Dead letters about attempts are known to the auditor, those
//!   about wakes are not: an order may stop for one that there never was.
//! * **Bugs that no seed comes upon.** The faults are the ones that somebody thought of, the workflows have at most six steps,
//!   and a world has few orders. Each seeded bug of `simulation/bugs` that is found says that its kind is seen, and nothing
//!   of other kinds; a clean run says that these seeds provoke nothing that the auditor knows to be wrong.
//!
//! ## The model
//!
//! What chance does not come upon, going everywhere does: the model checker walks through every state that two steps,
//! two attempts, two schedulers and two supervisors can get into when messages are lost, doubled and reordered and
//! instances die. It asks the very `machine::decide` that ships. [`model`] says what it leaves out and what bounds it.

#[path = "../benches/kit/mod.rs"]
pub mod bench;
pub mod collector;
pub mod conformance;
pub mod fuzzing;
pub mod machine;
#[path = "../model/mod.rs"]
pub mod model;
pub mod runtime_api;
#[path = "../simulation/mod.rs"]
pub mod simulation;
pub mod socket;
pub mod world;
