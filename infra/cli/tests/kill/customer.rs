//! A client that takes no silence for an answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use local::client::{Answer, Client};

use crate::orders::{Planned, expired_attempts, text_of};
use crate::trap::Trap;

/// What all customers of a run know.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) url: Arc<str>,
    pub(crate) trap: Arc<Trap>,
    pub(crate) seed: u64,
    pub(crate) ends_at: Instant,
}

impl Run {
    /// What a failure says: what went wrong, how to see it again, and what the process said last.
    pub(crate) fn failure(&self, what: &str) -> String {
        format!("{what}\nto see it again: STEPWARDEN_SEED={}\n{}", self.seed, self.trap.tail())
    }

    fn hurry(&self, what: &str) {
        assert!(Instant::now() < self.ends_at, "{}", self.failure(&format!("out of time: {what}")));
    }
}

/// One connection at a time; after a kill a new one.
pub(crate) struct Customer {
    run: Run,
    client: Client,
    /// Requests that were never answered: the process was dead, or died over them.
    pub(crate) unanswered: usize,
}

impl Customer {
    pub(crate) fn new(run: Run) -> Self {
        Self { run, client: Client::new(), unanswered: 0 }
    }

    /// Posts an order, with the same key again until it is accepted, and gives its id. One that was answered as finished
    /// has to be finished from then on, whoever is killed.
    pub(crate) async fn post(&mut self, order: &Planned) -> String {
        let url = format!("{}/orders", self.run.url);
        let headers = [("idempotency-key", order.key.as_str()), ("prefer", "wait=1")];
        let headers = if order.is_waited_for { &headers[..] } else { &headers[..1] };
        let answer = loop {
            if let Ok(answer) = self.client.post(&url, headers, order.document.clone()).await {
                self.run.trap.answered();
                break answer;
            }
            self.again(&order.key).await;
        };
        self.expect(&answer, &[200, 202], &order.key);
        let (order_id, told) = (text_of(&answer.body, "OrderID"), text_of(&answer.body, "ProcessState"));
        if answer.status.as_u16() == 200 {
            let (is, said) = self.look(order, &order_id).await;
            let what = format!("{} ({order_id}) was {told} and is {is}: {said}", order.key);
            assert_eq!(is, told, "{}", self.run.failure(&what));
        }
        order_id
    }

    /// Waits until an order that was accepted has ended as it should, and returns what is said of it.
    pub(crate) async fn follow(&mut self, order: &Planned, order_id: &str) -> String {
        let what = format!("{} ({order_id})", order.key);
        loop {
            let (state, said) = self.look(order, order_id).await;
            if state == order.end {
                let expired = expired_attempts(&said);
                assert_eq!(expired, 0, "{}", self.run.failure(&format!("{what}: a kill counts as no failure: {said}")));
                return said;
            }
            let may_go_on = matches!(state.as_str(), "Pending" | "Processing" | "Compensating");
            assert!(may_go_on, "{}", self.run.failure(&format!("{what} ended {state}, not {}: {said}", order.end)));
            self.run.hurry(&format!("{what} is {state}: {said}"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The order's state, and all that is said of it. An order that was accepted is always found.
    async fn look(&mut self, order: &Planned, order_id: &str) -> (String, String) {
        let (url, what) = (format!("{}/orders/{order_id}", self.run.url), format!("{} ({order_id})", order.key));
        loop {
            if let Ok(answer) = self.client.get(&url).await {
                self.expect(&answer, &[200], &what);
                return (text_of(&answer.body, "ProcessState"), String::from_utf8_lossy(&answer.body).into_owned());
            }
            self.again(&what).await;
        }
    }

    fn expect(&self, answer: &Answer, statuses: &[u16], what: &str) {
        let (status, said) = (answer.status.as_u16(), String::from_utf8_lossy(&answer.body));
        assert!(statuses.contains(&status), "{}", self.run.failure(&format!("{what} is answered {status}: {said}")));
    }

    async fn again(&mut self, what: &str) {
        self.unanswered += 1;
        self.run.hurry(&format!("{what}: no answer"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
