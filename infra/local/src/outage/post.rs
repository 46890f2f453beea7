//! Posts orders at a steady rate, independent of their outcomes.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use domain::id::OrderId;
use http::StatusCode;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::Accepted;

use crate::client::Client;

/// The order of the README.
pub(super) const ORDER: &str = include_str!("../../../examples/order.json");

/// Posts orders, and counts the answers.
#[derive(Debug, Clone)]
pub(super) struct Poster {
    pub(super) client: Client,
    /// The address of the API.
    pub(super) url: Arc<str>,
    /// The prefix of every idempotency key. It makes the keys distinct from the keys of an earlier run on the same
    /// data.
    pub(super) run: Arc<str>,
    pub(super) counts: Arc<Posts>,
}

/// The outcomes of the posts so far.
#[derive(Debug, Default)]
pub(super) struct Posts {
    /// Answered 202.
    pub(super) accepted: AtomicU64,
    /// Another answer, or none.
    pub(super) refused: AtomicU64,
}

impl Poster {
    /// Posts `orders` orders, one each `every` from now on, and returns the accepted orders. An order does not wait for
    /// the answers to earlier orders.
    pub(super) async fn post(&self, orders: u32, every: Duration, phase: &str) -> Vec<OrderId> {
        let began = Instant::now();
        let mut posting = JoinSet::new();
        for number in 0..orders {
            tokio::time::sleep_until(began + every * number).await;
            posting.spawn(self.clone().post_one(format!("{}-{phase}-{number}", self.run)));
        }
        posting.join_all().await.into_iter().flatten().collect()
    }

    async fn post_one(self, key: String) -> Option<OrderId> {
        let url = format!("{}/orders", self.url);
        let accepted = match self.client.post(&url, &[("idempotency-key", &key)], ORDER.to_owned()).await {
            Ok(answer) if answer.status == StatusCode::ACCEPTED => {
                serde_json::from_slice::<Accepted>(&answer.body).map(|accepted| accepted.order_id).ok()
            }
            Ok(_) | Err(_) => None,
        };
        let count = if accepted.is_some() { &self.counts.accepted } else { &self.counts.refused };
        count.fetch_add(1, Relaxed);
        accepted
    }
}
