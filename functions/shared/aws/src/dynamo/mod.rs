//! The state store on DynamoDB: orders, tasks, leases, health of the services, memos, jobs, the outcomes of dead
//! letters, and numbers.
//!
//! Every write that may race is one conditional write. Its condition holds the whole decision, so that no code here
//! reads first and writes afterwards. A failed condition is an answer, not an error. If the answer of a write is lost,
//! a nonce, what is stored, or the stored owner shows whether it happened (rule 3).
//!
//! Must never happen here:
//! - a transaction that was cancelled because of others counts as an answer;
//! - a record of an unknown form counts as one of a known form.

mod change;
mod commit;
mod due;
mod erase;
mod forget;
mod index;
mod insert;
mod kinds;
mod list;
mod meter;
mod numbers;
mod pauses;
mod read;
mod record;
mod records;
mod schema;
mod settled;
mod store;

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use domain::ports::Environment;
use domain::time::Timestamp;

use crate::environment::System;
use pauses::Pauses;

pub use meter::{Consumed, Meter};
pub(crate) use record::{Image, Unreadable};
pub use schema::{Attribute, Index, Kind, Projection, TABLES, Table, Tables};

/// The ports of the state store on DynamoDB. A clone copies a pointer.
#[derive(Debug, Clone)]
pub struct Dynamo(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    client: Client,
    tables: Tables,
    /// The number of shards of the index `watch`.
    shards: u8,
    system: System,
}

impl Dynamo {
    /// The store on these tables. `shards` is the deployment's number of shards of the index `watch`. The clock of
    /// `system` only defines the month at which a list of orders begins: no decision about an order depends on it.
    #[must_use]
    pub fn new(client: Client, tables: Tables, shards: u8, system: System) -> Self {
        Self(Arc::new(Inner { client, tables, shards, system }))
    }

    fn client(&self) -> &Client {
        &self.0.client
    }

    fn tables(&self) -> &Tables {
        &self.0.tables
    }

    fn shards(&self) -> u8 {
        self.0.shards.max(1)
    }

    fn now(&self) -> Timestamp {
        self.0.system.now()
    }

    /// A random number. As the identity of a write it is one that no other writer draws.
    fn random(&self) -> u64 {
        self.0.system.random()
    }

    /// The waits between the retries of one write.
    fn pauses(&self) -> Pauses {
        Pauses::new(self.0.system.random.clone())
    }
}
