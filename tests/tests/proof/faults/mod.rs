//! The faults that the system survives. Each fault has tests named after it, with the real handlers on the ports in
//! memory. Tests about the content of the disk use the one-machine engine (`durable`).
//!
//! Every test ends with `World::ends`, which checks these rules. The order ended as expected. No step had two effects.
//! No effect came after its undo. No call started too late. No attempt was claimed or counted twice. Every required
//! alert was sent. A repeat of every message ever sent, at once and a week later, changes nothing.
//!
//! | faults | here | also next to the code |
//! | --- | --- | --- |
//! | F01 to F08 | `submission`, `durable` | F01, F06 in `functions/api`; F08 in `functions/supervisor` |
//! | F09 to F23 | `scheduler`, `durable` | the rules of replies in `functions/shared/domain`, and `tests/tests/proof/protocol` |
//! | F24 to F34 | `agent`, `durable` | F24 to F33 in `functions/shared/agent` |
//! | F35 to F43 | `supervisor` | F35 to F43 in `functions/supervisor`; F41 in `functions/shared/domain` |
//! | F44 to F48 | `compensation` | F44, F45, F47, F48 in `functions/shared/agent` |
//! | F49 to F60 | `infrastructure` | F50, F53, F57 in `functions/supervisor`; F56, F57 in `functions/shared/agent` |
//! | pairs | `pairs` | |
//!
//! Faults that only AWS can cause are tested on AWS. The tests here use their form at the ports: the cancellation
//! reasons of F05, the partial batches of F11, and the SDK's retries of F13. F58 is in
//! `tests/tests/adapters/telemetry.rs`. A test in `map` compares the table with the sources.

mod agent;
mod compensation;
mod durable;
mod infrastructure;
mod map;
mod pairs;
mod scenes;
mod scheduler;
mod submission;
mod supervisor;
