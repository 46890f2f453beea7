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
}
