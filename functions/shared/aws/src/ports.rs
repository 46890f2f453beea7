//! All ports of a function on AWS, in one struct of parts.

use domain::instance::Instance;
use domain::ports::{Environment, PortError};
use domain::tally::Batch;
use domain::workflow::WorkflowError;

use crate::bus::Bus;
use crate::clients::{Clients, TlsError};
use crate::config::{Config, Function};
use crate::dynamo::Dynamo;
pub use crate::environment::{NoRandomness, System, now};
use crate::queues::Sqs;

/// All ports. A handler's signature names the ports that it uses. The function's role limits the ports that it may use.
#[derive(Debug)]
pub struct Ports {
    dynamo: Dynamo,
    sqs: Sqs,
    bus: Bus,
    system: System,
}

/// The ports cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PortsError {
    /// The system has no root certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system provides no random bits.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl Ports {
    /// Creates the ports of this configuration. It opens no connection yet.
    ///
    /// # Errors
    /// [`PortsError`] if the system has no root certificates or no random bits.
    pub fn new(config: &Config) -> Result<Self, PortsError> {
        Ok(Self::with(config, Clients::new(&config.access)?, System::of_machine()?))
    }

    /// Creates the ports as [`Ports::new`] does, and opens the connections that every function needs.
    ///
    /// # Errors
    /// [`PortsError`] as for [`Ports::new`].
    pub async fn connected(config: &Config) -> Result<Self, PortsError> {
        Ok(Self::with(config, Clients::connected(&config.access).await?, System::of_machine()?))
    }

    /// The ports of this configuration over these clients, with this time and randomness.
    #[must_use]
    pub fn with(config: &Config, clients: Clients, system: System) -> Self {
        let Clients { dynamodb, sqs, eventbridge } = clients;
        let dynamo = Dynamo::new(dynamodb, config.tables.clone(), config.shards, system.clone());
        let sqs = Sqs::new(sqs, config.queues.clone(), system.random.clone());
        let (event_bus, channels) = (config.event_bus.clone(), config.reply_channels.clone());
        let bus = Bus::new(eventbridge, event_bus, sqs.sender().clone(), channels, system.random.clone());
        Self { dynamo, sqs, bus, system }
    }

    /// Counts the changes of a batch of the stream (rule 26).
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether all are counted; the caller repeats the batch.
    pub async fn count(&self, batch: &Batch) -> Result<(), PortError> {
        self.dynamo.count(batch).await
    }

    /// Deletes what is left of the orders whose tasks are gone by a batch of the stream (rule 44).
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether all is deleted; the caller repeats the batch.
    pub async fn forget(&self, batch: &Batch) -> Result<(), PortError> {
        self.dynamo.forget(batch).await
    }

    pub(crate) const fn sqs(&self) -> &Sqs {
        &self.sqs
    }

    /// The identity of this process among all running ones.
    ///
    /// # Errors
    /// [`WorkflowError`] when a shipped workflow is wrong. A test of `domain` checks that every shipped workflow is
    /// right.
    pub fn instance(&self, config: &Config, function: Function) -> Result<Instance, WorkflowError> {
        config.instance(&function.to_string(), self.system.random())
    }
}

domain::has_parts!([] Ports {
    HasStore, Store = Dynamo, store: |ports| &ports.dynamo;
    HasQueues, Queues = Sqs, queues: |ports| &ports.sqs;
    HasEvents, Events = Bus, events: |ports| &ports.bus;
    HasRecords, Records = Dynamo, records: |ports| &ports.dynamo;
    HasEnvironment, Environment = System, environment: |ports| &ports.system;
});
