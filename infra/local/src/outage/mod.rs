//! `stepwarden outage`: takes payment down under load and measures the cost.
//!
//! Like the demo, it is a client of the running API. It also controls the stand-ins. It knows nothing of the functions
//! between them.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

mod check;
mod live;
mod naive;
mod plan;
mod post;
mod report;
mod verdict;

use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::id::OrderId;
use domain::time::Timestamp;
use standins::Service;
use tokio::time::Instant;
use wire::ServiceList;

pub use plan::{Plan, TooMany};

use crate::client::Client;
use crate::ending::Ending;
use crate::paint::Paint;
use crate::stand_ins::StandIns;
use check::Became;
use live::each_second;
use post::{Poster, Posts};
use report::Second;
use verdict::Measured;

/// The poll period for the end of all orders, in milliseconds.
const LOOK_EVERY_MS: u64 = 50;

/// The phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Normal,
    Outage,
    Recovery,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Outage => "outage",
            Self::Recovery => "recovery",
        }
    }
}

/// Runs an outage with the API at `api_url`, whose agents call `services`, and then with a naive client. Prints to
/// `out`. Returns whether every limit was met.
///
/// # Errors
/// If the output cannot be written, or the naive client's stand-in finds no port.
pub async fn run(
    api_url: &str,
    stand_ins: &StandIns,
    plan: &Plan,
    paint: Paint,
    out: &mut impl Write,
) -> io::Result<Ending> {
    writeln!(out, "{}", report::opening(plan, api_url))?;
    let run = format!("outage-{}", wall_clock().epoch_ms());
    let counts = Arc::new(Posts::default());
    let client = Client::new();
    let poster = Poster { client: client.clone(), url: api_url.into(), run: run.into(), counts: counts.clone() };
    let outage = Outage { plan, stand_ins, poster, phase: Mutex::new(Phase::Normal) };
    let (began, mut seen) = (Instant::now(), 0);
    let line = async || {
        let calls = stand_ins.services().totals(Service::Payment).calls;
        let second = Second {
            at: began.elapsed(),
            phase: outage.phase(),
            posted: counts.accepted.load(Relaxed),
            processed: outage.shipped(),
            payment_calls: calls - std::mem::replace(&mut seen, calls),
            payment_is: health_of_payment(&client, api_url).await,
        };
        report::second(paint, &second)
    };
    let ours = each_second(out, outage.go_through(), line).await?;
    writeln!(out)?;
    let calls_naive = naive::calls(plan, paint, out).await?;
    let measured = ours.compared_with(calls_naive);
    writeln!(out, "\n{}", report::table(paint, &measured).trim_end())?;
    out.flush()?;
    Ok(Ending::of(measured.is_good()))
}

struct Outage<'a> {
    plan: &'a Plan,
    stand_ins: &'a StandIns,
    poster: Poster,
    phase: Mutex<Phase>,
}

/// The measurements of Stepwarden itself.
#[derive(Debug)]
struct Ours {
    normal_per_s: f64,
    calls: u64,
    accepted: u64,
    refused: u64,
    became: Became,
    recovered_at: Timestamp,
    busiest_second: u64,
}

impl Outage<'_> {
    async fn go_through(&self) -> Ours {
        let (mut orders, normal_per_s) = self.normal().await;
        orders.extend(self.outage().await);
        let calls = self.stand_ins.services().totals(Service::Payment).calls_while_down;
        let (became, recovered_at) = self.recovery(&orders).await;
        Ours {
            normal_per_s,
            calls,
            accepted: orders.len() as u64,
            refused: self.poster.counts.refused.load(Relaxed),
            became,
            recovered_at,
            busiest_second: self.stand_ins.services().take_peak(Service::Payment),
        }
    }

    /// Posts the orders before the outage. Returns them, and their calls to payment per second.
    async fn normal(&self) -> (Vec<OrderId>, f64) {
        let (began, before) = (Instant::now(), self.stand_ins.services().totals(Service::Payment).calls);
        let orders = self.poster.post(self.plan.orders_before(), self.plan.every, "normal").await;
        tokio::time::sleep_until(began + self.plan.normal).await;
        let calls = self.stand_ins.services().totals(Service::Payment).calls - before;
        (orders, calls as f64 / began.elapsed().as_secs_f64())
    }

    /// Posts the orders of the outage. Payment is up again at the end.
    async fn outage(&self) -> Vec<OrderId> {
        self.enter(Phase::Outage);
        self.stand_ins.services().set_down(Service::Payment, true);
        let began = Instant::now();
        let orders = self.poster.post(self.plan.orders, self.plan.every, "outage").await;
        tokio::time::sleep_until(began + self.plan.down).await;
        // Earlier calls do not count for the seconds after the recovery.
        let _ = self.stand_ins.services().take_peak(Service::Payment);
        self.stand_ins.services().set_down(Service::Payment, false);
        orders
    }

    /// The outcomes of all orders, and the time of the recovery.
    async fn recovery(&self, orders: &[OrderId]) -> (Became, Timestamp) {
        self.enter(Phase::Recovery);
        let recovered_at = wall_clock();
        let patience_ends = Instant::now() + self.plan.patience();
        // The effects of the last step show the end without a thousand API calls.
        while self.shipped() < orders.len() as u64 && Instant::now() < patience_ends {
            tokio::time::sleep(Duration::from_millis(LOOK_EVERY_MS)).await;
        }
        let Poster { client, url, .. } = &self.poster;
        let became = check::check(client, url, orders, patience_ends, || self.stand_ins.effects()).await;
        (became, recovered_at)
    }

    fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders whose last step is carried out.
    fn shipped(&self) -> u64 {
        self.stand_ins.services().totals(Service::Shipping).effects
    }
}

impl Ours {
    fn compared_with(self, calls_naive: u64) -> Measured {
        let Self { normal_per_s, calls, accepted, refused, became, recovered_at, busiest_second } = self;
        let Became { processed, failure_counts, attempts_more, last_done_at, effects_wrong } = became;
        let last_done_ms = last_done_at.map(|at| recovered_at.ms_until(at));
        Measured {
            normal_per_s,
            calls,
            calls_naive,
            failure_counts,
            attempts_more,
            accepted,
            refused,
            processed,
            effects_wrong,
            last_done_ms,
            busiest_second,
        }
    }
}

/// The state of payment in `GET /services`.
async fn health_of_payment(client: &Client, api_url: &str) -> String {
    let Ok(answer) = client.get(&format!("{api_url}/services")).await else {
        return "?".to_owned();
    };
    let Ok(ServiceList { services }) = serde_json::from_slice(&answer.body) else {
        return "?".to_owned();
    };
    let payment = services.into_iter().find(|service| service.service == Service::Payment.name());
    payment.map_or_else(|| "?".to_owned(), |service| service.state.to_string())
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_epoch_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
