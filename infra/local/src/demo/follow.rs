//! One order of the demo, from an application's point of view: it posts the order and polls until the order is settled.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

use std::time::{Duration, Instant};

use domain::id::OrderId;
use domain::task::shortened;
use http::StatusCode;
use tokio::sync::mpsc::UnboundedSender;
use wire::{Accepted, Task};

use super::sample::Sample;
use crate::client::{Answer, Client, ClientError};

/// The pause between two polls of an order. A real application would use `Prefer: wait`, but it would not see the steps
/// in between.
const LOOK_EVERY_MS: u64 = 5;
/// The pause between two posts, so that a person can follow the output.
const POST_EVERY_MS: u64 = 150;
/// The time after which an unsettled order counts as lost. Longer than one attempt and the wait for its calls.
const SETTLED_MS_MAX: u64 = 90_000;

/// An observation of an order, with its time.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    /// The index of the sample, from 0.
    pub(super) place: usize,
    /// The time since the start of the demo.
    pub(super) at: Duration,
    /// The observed order.
    pub(super) shown: Task<'static>,
}

/// The end of an order.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) order_id: OrderId,
    pub(super) last: Task<'static>,
    /// From the post to the end.
    pub(super) took: Duration,
}

/// The demo could not follow an order to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum FollowError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("unexpected answer {status} ({problem}): {}", shortened(.body))]
    Unexpected { status: StatusCode, problem: String, body: String },
    #[error("posted twice with one key, it became two orders")]
    TwoOrders,
    #[error("not settled within {} s", SETTLED_MS_MAX / 1_000)]
    NotSettled,
}

/// The address of the API and the start of the demo.
#[derive(Debug, Clone)]
pub(super) struct Follower {
    pub(super) client: Client,
    pub(super) url: String,
    pub(super) began: Instant,
    /// Makes the keys of this demo distinct from the keys of an earlier run on the same data.
    pub(super) run: String,
}

impl Follower {
    /// Posts the sample at a position, after the samples before it. Reports every observed change until the order is
    /// settled.
    pub(super) async fn follow(
        self,
        place: usize,
        sample: Sample,
        sights: UnboundedSender<Sight>,
    ) -> Result<Followed, FollowError> {
        tokio::time::sleep(Duration::from_millis(POST_EVERY_MS * place as u64)).await;
        let posted = Instant::now();
        let order_id = self.post(place, sample).await?;
        let url = format!("{}/orders/{order_id}", self.url);
        let mut version_seen = 0;
        while posted.elapsed() < Duration::from_millis(SETTLED_MS_MAX) {
            if let Some(shown) = self.look(&url).await?
                && shown.version > version_seen
            {
                version_seen = shown.version;
                // The printing task may be gone. The order is followed all the same.
                let _ = sights.send(Sight { place, at: self.began.elapsed(), shown: shown.clone() });
                if shown.is_settled() {
                    return Ok(Followed { order_id, last: shown, took: posted.elapsed() });
                }
            }
            tokio::time::sleep(Duration::from_millis(LOOK_EVERY_MS)).await;
        }
        Err(FollowError::NotSettled)
    }

    async fn post(&self, place: usize, sample: Sample) -> Result<OrderId, FollowError> {
        let key = format!("{}-{place}", self.run);
        let mut first = None;
        for _ in 0..sample.posts {
            let url = format!("{}/orders", self.url);
            let answer = self.client.post(&url, &[("idempotency-key", &key)], sample.document()).await?;
            if !answer.status.is_success() {
                return Err(unexpected(&answer, "not accepted"));
            }
            let accepted = serde_json::from_slice::<Accepted>(&answer.body);
            let Accepted { order_id, .. } = accepted.map_err(|error| unexpected(&answer, &error.to_string()))?;
            if *first.get_or_insert(order_id) != order_id {
                return Err(FollowError::TwoOrders);
            }
        }
        first.ok_or(FollowError::NotSettled)
    }

    /// The order as it is. `None` while it is accepted and not stored yet.
    async fn look(&self, url: &str) -> Result<Option<Task<'static>>, FollowError> {
        let answer = self.client.get(url).await?;
        match answer.status {
            StatusCode::OK => {
                let shown = serde_json::from_slice(&answer.body);
                shown.map(Some).map_err(|error| unexpected(&answer, &error.to_string()))
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(unexpected(&answer, "neither 200 nor 404")),
        }
    }
}

fn unexpected(answer: &Answer, problem: &str) -> FollowError {
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    FollowError::Unexpected { status: answer.status, problem: problem.to_owned(), body }
}
