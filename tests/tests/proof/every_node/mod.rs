//! Every handler fails at every node. The nodes are enumerated and not sampled.
//!
//! Each handler has scenes, one for each of its tasks. A scene first runs without a fault, to record its calls of
//! ports. Then it runs once for each of these calls and each fault: the call fails, or takes effect and loses its
//! answer. The infrastructure's client retries by itself, or the condition of a write does not hold. The handler is
//! killed before the call, or after it. Last, the request is repeated after its success.
//!
//! Each time, the world then runs to its end, and the test checks it from outside. Every order ended as without the
//! fault. No step had two effects. Every required alert was sent, and no message was lost. A repeat of every message
//! ever sent changes nothing (`World::end_all`).
//!
//! [`table::USES`] lists the calls of each handler. The test fails at an unlisted call, and at a listed call that no
//! scene makes. So a new call of a port is not forgotten here. `-- --nocapture` shows the table.

mod agents;
mod api;
mod bulk;
pub(crate) mod children;
mod dead_letters;
mod lines;
pub(crate) mod node;
mod scheduler;
mod schedules;
mod submission;
mod supervisor;
mod table;
