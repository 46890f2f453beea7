//! The faults that the system survives, each with tests named after it, on the real handlers over the ports in memory, or
//! over the one-machine engine where the question is what is on disk (`durable`).
//!
//! Every test ends with `World::ends`: the order ended as it should; no step had two effects; no effect came after its
//! undo; no call started too late; no attempt was claimed or counted twice; whoever had to be called was called; and when
//! everything that was ever sent comes once more, at once and a week later, nothing changes any more.
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
//! What only AWS can do wrong is tested where AWS is: the cancellation reasons of F05, the partial batches of F11, and the
//! retries of the SDK of F13 are here what they look like through the ports. F58 is in `tests/tests/adapters/telemetry.rs`. The
//! table is held against the sources by a test in `map`.

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
