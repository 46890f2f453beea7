//! The naive client for comparison with Stepwarden: it retries a failing service at once, without back-off.
//!
//! The client really runs. Its calls are counted at the stand-in, as the agents' calls are. Its orders come at the same
//! times, and payment is down for the same time. Three differences favour it. It has the machine for itself. Its orders
//! share at most [`NAIVE_CONNECTIONS_MAX`] connections. It stops at the recovery, and so saves one more call for each order.

#![expect(clippy::disallowed_methods, reason = "a client with a clock of its own")]

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use local::client::Client;
use local::stand_ins::{KEYS_UNLIMITED, StandIns};
use standins::Service;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::live::{each_second, seconds};
use super::plan::{NAIVE_CONNECTIONS_MAX, Plan};
use super::verdict::thousands;
use crate::paint::Paint;
use crate::scenario::ORDER;

/// Runs the client for the plan's outage and prints a line each second. Returns its number of calls.
///
/// # Errors
/// If the stand-in finds no port, or the output cannot be written.
pub(super) async fn calls(plan: &Plan, paint: Paint, out: &mut impl Write) -> io::Result<u64> {
    let stand_ins = StandIns::start_anywhere(KEYS_UNLIMITED).await?;
    stand_ins.services().set_down(Service::Payment, true);
    let began = Instant::now();
    let posted = AtomicU32::new(0);
    let mut seen = 0;
    let line = async || {
        let calls = stand_ins.services().totals(Service::Payment).calls;
        let this_second = calls - std::mem::replace(&mut seen, calls);
        format!(
            "{}  {}  posted {:>6}  payment {this_second:>6} calls  {} in all",
            seconds(paint, began),
            paint.bold("naive   "),
            posted.load(Relaxed),
            thousands(calls)
        )
    };
    each_second(out, insist(plan, stand_ins.url_of(Service::Payment), began, &posted), line).await?;
    let calls = stand_ins.services().totals(Service::Payment).calls;
    stand_ins.stop().await;
    Ok(calls)
}

/// Starts the orders, and each order calls until the outage is over.
async fn insist(plan: &Plan, payment_url: String, began: Instant, posted: &AtomicU32) {
    let (client, turns) = (Client::new(), Arc::new(Semaphore::new(NAIVE_CONNECTIONS_MAX)));
    let url: Arc<str> = format!("{payment_url}/charge").into();
    // Dropped at the end, together with all calls.
    let mut orders = JoinSet::new();
    for number in 0..plan.orders {
        tokio::time::sleep_until(began + plan.every * number).await;
        orders.spawn(charge(client.clone(), turns.clone(), url.clone(), format!("naive-{number}/charge-payment")));
        posted.fetch_add(1, Relaxed);
    }
    tokio::time::sleep_until(began + plan.down).await;
}

async fn charge(client: Client, turns: Arc<Semaphore>, url: Arc<str>, key: String) {
    let body = format!(r#"{{"OrderID":"naive","Order":{ORDER},"Outputs":{{}}}}"#);
    loop {
        let Ok(_turn) = turns.acquire().await else { return };
        match client.post(&url, &[("idempotency-key", &key)], body.clone()).await {
            Ok(answer) if answer.status.is_success() => return,
            // The immediate retry makes the client naive.
            Ok(_) | Err(_) => {}
        }
    }
}
