//! The state that the engine's parts and its writer share: orders in flight, the log, and the reading connections.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use domain::id::OrderId;
use domain::ports::PortError;
use domain::time::Timestamp;

use crate::clock::{Clock, since_any_time};
use crate::connections::{NOT_RUN, Readers};
use crate::live::{Entry, Live, Look};
use crate::lock::lock;
use crate::log::Log;
use crate::rows;
use crate::steady::Steady;

/// The shared state. Locks are taken in this order: `state` first, then the lock of one part.
pub(crate) struct Core {
    pub(crate) state: Mutex<State>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) counters: Counters,
    pub(crate) clock: Clock,
    /// Whether the clock may be believed.
    pub(crate) steady: Mutex<Steady>,
}

/// The state that one decision reads and changes under one lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) live: Live,
    pub(crate) log: Log,
}

/// Counters of the writer's work.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) transactions: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) failures: AtomicU64,
    /// Stored orders that are not settled, after the last transaction.
    pub(crate) under_way: AtomicU64,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}

impl Core {
    /// Whether the clock, which says `now`, may be believed.
    pub(crate) fn is_steady(&self, now: Timestamp) -> bool {
        lock(&self.steady).is_at(now, since_any_time())
    }

    /// Calls `act` on the entry of an order, once the entry is loaded. If the disk must be read first, `act` runs right
    /// after the read, so that no other change comes between. `act` also runs if the caller is gone by then.
    pub(crate) async fn with<R, Act>(
        self: &Arc<Self>,
        operation: &'static str,
        order_id: OrderId,
        act: Act,
    ) -> Result<R, PortError>
    where
        R: Send + 'static,
        Act: FnOnce(&mut Entry, &mut Log) -> R + Send + 'static,
    {
        loop {
            let look = {
                let State { live, log, .. } = &mut *lock(&self.state);
                match live.look(order_id) {
                    Look::Known => return Ok(live.act(order_id, log, act)),
                    Look::Loading(loading) => Some(loading),
                    Look::Missing => None,
                }
            };
            if let Some(loading) = look {
                // The sender ends when the entry is loaded, and also when the load fails.
                let _ = loading.await;
                continue;
            }
            let permit = self.readers.permit(operation).await?;
            {
                let State { live, log, .. } = &mut *lock(&self.state);
                if !live.begin_load(order_id, log) {
                    continue;
                }
            }
            let begun = Begun(self.clone(), order_id);
            let loading = self.readers.run(move || {
                let Begun(core, _) = &begun;
                let found = core.readers.read_here(permit, |connection| rows::stored(connection, order_id));
                let State { live, log, .. } = &mut *lock(&core.state);
                let stored = found.map_err(|error| error.of(operation))?;
                live.loaded(order_id, stored);
                Ok(live.act(order_id, log, act))
            });
            return loading.await.unwrap_or_else(|| Err(PortError::unavailable(operation, NOT_RUN)));
        }
    }
}

/// A load that was begun. If it ends without a result, also by a panic, others may load the entry.
pub(crate) struct Begun(pub(crate) Arc<Core>, pub(crate) OrderId);

impl Drop for Begun {
    fn drop(&mut self) {
        let State { live, log } = &mut *lock(&self.0.state);
        live.load_over(self.1, log);
    }
}
