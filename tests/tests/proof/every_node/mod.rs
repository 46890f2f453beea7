//! Every handler, failed at every node, enumerated and not sampled: for each handler there are scenes, one for each thing
//! that it does; each scene is played once as it should go, to see which calls of which ports it makes, and then once for
//! each of these calls and each way in which it can go wrong: it fails; it happens and its answer is lost; the client of
//! the infrastructure tries twice by itself; the condition of a write does not hold; the handler is killed before it; the
//! handler is killed after it. Last, what was asked is asked a second time after it succeeded.
//!
//! Each time the world is then driven to its end and looked at from outside: every order ended as it does without the
//! fault, no step had two effects, whoever had to be called was called, nothing was lost, and when everything that was
//! ever sent comes once more, nothing changes any more (`World::end_all`).
//!
//! What a handler may call is written down in [`table::USES`]. A call that is not there, or one there that no scene makes,
//! fails the test: so a new call of a port is not forgotten here. `-- --nocapture` shows the table.

mod agents;
mod api;
mod bulk;
mod dead_letters;
mod node;
mod scheduler;
mod submission;
mod supervisor;
mod table;
