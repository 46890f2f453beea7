//! The ports that the API may use.

use domain::ports::{HasEnvironment, HasQueues, HasRecords, HasStore};

/// The ports of the API. It reads the stores, writes to queues, and stores the operators' jobs.
pub trait ApiPorts: HasStore + HasQueues + HasRecords + HasEnvironment {}

impl<P> ApiPorts for P where P: HasStore + HasQueues + HasRecords + HasEnvironment {}
