//! The ports that the API may use.

use domain::ports::{HasDeadLetterRecords, HasEnvironment, HasLeases, HasQueues, HasRecords, HasStore};

/// What the API needs from the world. It reads the stores, writes to queues, and keeps the operators' jobs.
pub trait ApiPorts: HasStore + HasQueues + HasRecords + HasLeases + HasDeadLetterRecords + HasEnvironment {}

impl<P> ApiPorts for P where P: HasStore + HasQueues + HasRecords + HasLeases + HasDeadLetterRecords + HasEnvironment {}
