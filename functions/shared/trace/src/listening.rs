//! A subscriber for one thread.

use std::sync::LazyLock;

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::registry;

/// Makes this the subscriber of the current thread, until the guard is dropped. Tests use it, which run side by side.
///
/// As long as there is one subscriber in the process, `tracing` asks only the current thread's about a new callsite,
/// and the answer of a thread that has none is kept for all. Two that stay make it ask every subscriber.
pub fn listen(subscriber: impl Into<Dispatch>) -> DefaultGuard {
    static STAYING: LazyLock<[Dispatch; 2]> = LazyLock::new(|| [registry().into(), registry().into()]);
    LazyLock::force(&STAYING);
    tracing::dispatcher::set_default(&subscriber.into())
}
