//! What an agent needs of its host.

use domain::ports::{HasEnvironment, HasQueues, HasRecords, HasStore};

/// The ports of an agent. Of the store it only reads tasks.
pub trait AgentPorts: HasQueues + HasRecords + HasStore + HasEnvironment {}

impl<P: HasQueues + HasRecords + HasStore + HasEnvironment> AgentPorts for P {}
