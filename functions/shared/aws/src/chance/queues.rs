//! The queues, in worlds of chance.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use cloud::Said;
use domain::id::OrderId;
use domain::message::{Priority, SchedulerMessage, Wake, decode};
use domain::ports::{PortErrorKind, Queues};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{Chance, Serve, World, run};
use crate::config::testing::queue_urls;
use crate::environment::Random;
use crate::queues::Sqs;

/// Rounds of messages in a world.
const ROUNDS: u64 = 10;

/// The orders of all messages that an SQS has taken.
type Taken = Arc<Mutex<BTreeSet<OrderId>>>;

/// An SQS that takes some entries of a request and not others.
struct Queue(Taken);

impl Serve for Queue {
    fn serve(&mut self, operation: &str, body: &Value, chance: &Chance) -> Said {
        assert_eq!(operation, "SendMessageBatch");
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for entry in body["Entries"].as_array().unwrap() {
            let id = &entry["Id"];
            match chance.strikes().then(|| chance.below(4)) {
                Some(0) => failed.push(json!({ "Id": id, "Code": "InternalError", "SenderFault": false })),
                Some(1) => failed.push(json!({ "Id": id, "Code": "RequestThrottled", "SenderFault": true })),
                // The answer mentions it with nothing.
                Some(2) => {}
                Some(_) | None => {
                    let message: SchedulerMessage = decode(entry["MessageBody"].as_str().unwrap().as_bytes()).unwrap();
                    self.0.lock().unwrap().insert(message.order_id());
                    successful.push(json!({ "Id": id, "MessageId": "m", "MD5OfMessageBody": "x" }));
                }
            }
        }
        (200, json!({ "Successful": successful, "Failed": failed }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_said_to_be_sent_is_on_the_queue_by_whatever_chance() {
    run(async |seed| {
        let taken = Taken::default();
        let network = World::new(seed, Queue(taken.clone()));
        let sqs = Sqs::new(network.clients().sqs, queue_urls(), Arc::new(Random::of(seed)));
        for round in 0..ROUNDS {
            let orders = 0..1 + network.below(10);
            let sending = orders
                .map(|number| async move { OrderId::from_idempotency_key("chance", &format!("{round}/{number}")) });
            let orders = join_all(sending).await;
            let wake = |&order_id: &OrderId| SchedulerMessage::Wake(Wake { order_id, hops: 0 });
            let sending = orders.iter().map(|order| sqs.to_scheduler(wake(order), Priority::Normal, 0));
            for (order, sent) in orders.iter().zip(join_all(sending).await) {
                match sent {
                    Ok(()) => assert!(taken.lock().unwrap().contains(order), "seed {seed}: a message is lost"),
                    Err(error) => assert_eq!(error.kind, PortErrorKind::Unavailable, "seed {seed}: {error:?}"),
                }
            }
        }
    })
    .await;
}
