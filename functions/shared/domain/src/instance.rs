//! The identity of a handler: its name and the settings of its deployment.

use std::sync::Arc;

use crate::definition::Catalogue;

/// One running instance of a function. `name` goes into `LockedBy` and the history.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Unique among all instances that run at the same time.
    pub name: Arc<str>,
    /// The workflows.
    pub catalogue: Catalogue,
    /// Shards of the index `watch`, the same for all functions of the deployment, at most
    /// [`SHARDS_MAX`](crate::limits::SHARDS_MAX). An order stays in its first shard. The number may grow at any time.
    /// It may shrink only when no order is left in the removed shards, since no supervisor looks there.
    pub shards: u8,
}
