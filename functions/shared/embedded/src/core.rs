//! What the parts of the engine and its writer share: the orders under way, the log, and the connections that read.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use domain::id::OrderId;
use domain::ports::PortError;
use tokio::sync::oneshot;

use crate::connections::Readers;
use crate::live::{Entry, Live, Look};
use crate::lock::lock;
use crate::log::{Log, WriteError};
use crate::rows;

/// What the parts of the engine and its writer share. Locks are taken in this order: `state`, then that of one part.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) state: Mutex<State>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) counters: Counters,
}

/// What is decided upon in one moment.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) live: Live,
    pub(crate) log: Log,
}

/// What the writer has done so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) transactions: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) failures: AtomicU64,
}

impl Core {
    /// Does something to the entry of an order, once it is known. When the disk has to be read for that, `act` runs
    /// where it was read, so that nothing comes between, and also when the caller is gone by then.
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
                // It ends when the entry is loaded, and also when that failed.
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
            let core = self.clone();
            let (sender, receiver) = oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let found = core.readers.read_here(permit, |connection| rows::stored(connection, order_id));
                let State { live, log, .. } = &mut *lock(&core.state);
                let result = match found {
                    Ok(stored) => {
                        live.loaded(order_id, stored);
                        Ok(live.act(order_id, log, act))
                    }
                    Err(error) => {
                        live.not_loaded(order_id, log);
                        Err(error.of(operation))
                    }
                };
                // Who does not wait any more need not know.
                let _ = sender.send(result);
            });
            return receiver.await.unwrap_or_else(|_| Err(PortError::unavailable(operation, WriteError::Closed)));
        }
    }
}
