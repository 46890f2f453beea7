//! The adapters in worlds of chance: random operations, one after the other, over a network that throttles, breaks,
//! falls silent, and answers 500 to what was done and to what was not. After each operation the truth is read without
//! faults, and the answer of the adapter must fit it.
//!
//! A seed is always the same world. Time is virtual, and no socket is used.

mod database;
mod network;
mod queues;
mod store;

use network::Network;

use crate::clients::Clients;
use crate::testing::access;

/// The seeds of the test command.
const SEEDS: u64 = 12;

/// The clients of the function, on this network.
fn clients(network: &Network) -> Clients {
    use aws_sdk_dynamodb::config::retry::RetryPartition;
    let Clients { dynamodb, sqs, eventbridge } = Clients::new(&access("http://localhost:1")).unwrap();
    // The SDK's budget of retries is one for the whole process, unless a client has its own.
    let own = || RetryPartition::custom("a world").build();
    let dynamodb = dynamodb.config().to_builder().http_client(network.clone()).retry_partition(own()).build();
    let sqs = sqs.config().to_builder().http_client(network.clone()).retry_partition(own()).build();
    Clients {
        dynamodb: aws_sdk_dynamodb::Client::from_conf(dynamodb),
        sqs: aws_sdk_sqs::Client::from_conf(sqs),
        eventbridge,
    }
}

/// Runs the worlds of these seeds: `STEPWARDEN_SEEDS` of them, or the number of the test command.
async fn run(world: impl AsyncFn(u64)) {
    let seeds = crate::config::environment("STEPWARDEN_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        world(seed).await;
    }
}
