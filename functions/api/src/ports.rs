//! The ports that the API may use.

use domain::ports::{Clock, DeadLetterRecords, Jobs, Leases, Queues, Randomness, Services, Store};

/// What the API needs from the world. It reads the stores, writes to queues, and keeps the operators' jobs.
pub trait ApiPorts: Store + Queues + Services + Leases + Jobs + DeadLetterRecords + Clock + Randomness {}

impl<P: Store + Queues + Services + Leases + Jobs + DeadLetterRecords + Clock + Randomness> ApiPorts for P {}
