//! Who a handler is: its name and what its deployment was given.

use std::sync::Arc;

use crate::workflow::Workflows;

/// One running instance of a function. `name` goes into `LockedBy` and the history.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Unique among all instances that run at the same time.
    pub name: Arc<str>,
    /// The workflows of the deployment.
    pub workflows: Workflows,
    /// Shards of the index `watch`, the same for all functions of the deployment, at most
    /// [`SHARDS_MAX`](crate::limits::SHARDS_MAX). An order stays in the shard that it began in. More of them at any time;
    /// fewer only when no order is left in those that go, since nobody would look there.
    pub shards: u8,
}
