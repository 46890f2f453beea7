//! `stepwarden outage`: takes payment down under load and measures the cost. Beside the API it controls the stand-ins.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

mod live;
mod naive;
mod plan;
mod verdict;

use std::cell;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use domain::id::OrderId;
use futures_util::{StreamExt, stream};
use local::stand_ins::StandIns;
use standins::Service;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::ServiceList;

pub use plan::Plan;

use crate::paint::Paint;
use crate::remote::clock;
use crate::scenario::{ORDER, Orders};
use crate::show::table::{Cell, Table};
use live::{each_second, seconds};
use plan::NAIVE_CONNECTIONS_MAX;
use verdict::{Measured, thousands};

/// The poll period for the end of all orders, and of one of them that is unsettled.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Orders checked concurrently.
const LOOKS_AT_ONCE: usize = 16;

/// Runs an outage with the API at `api_url`, whose agents call the stand-ins, and then with a naive client. Prints to `out`.
/// Returns whether every limit was met.
///
/// # Errors
/// If the output cannot be written, or the naive client's stand-in finds no port.
pub async fn run(
    api_url: &str,
    stand_ins: &StandIns,
    plan: &Plan,
    paint: Paint,
    out: &mut impl Write,
) -> io::Result<bool> {
    writeln!(out, "{}", opening(plan, api_url))?;
    let orders = Orders::of(api_url, "outage")?;
    let outage = Outage { plan, stand_ins, orders, accepted: Arc::default(), phase: cell::Cell::new("normal") };
    let (began, mut seen) = (Instant::now(), 0);
    let line = async || {
        let calls = stand_ins.services().totals(Service::Payment).calls;
        let this_second = calls - std::mem::replace(&mut seen, calls);
        let (posted, processed) = (outage.accepted.load(Relaxed), outage.shipped());
        let waiting = posted.saturating_sub(processed);
        let payment_is = outage.health_of_payment().await.unwrap_or_else(|| "?".to_owned());
        let phase = outage.phase.get();
        format!(
            "{}  {}  posted {posted:>6}  processed {processed:>6}  waiting {waiting:>6}  payment {this_second:>6} calls  \
             {payment_is}",
            seconds(paint, began),
            paint.verdict(phase != "outage", &format!("{phase:<8}"))
        )
    };
    let mut measured = each_second(out, outage.go_through(), line).await?;
    writeln!(out)?;
    measured.calls_naive = naive::calls(plan, paint, out).await?;
    let verdict = if measured.is_good() { "every limit was met" } else { "a limit was missed" };
    writeln!(out, "\n{}{}", table(paint, &measured), paint.verdict(measured.is_good(), verdict))?;
    out.flush()?;
    Ok(measured.is_good())
}

fn opening(plan: &Plan, api_url: &str) -> String {
    let &Plan { orders, down, normal, .. } = plan;
    format!(
        "{:.0} s of normal orders at {:.1} a second go to {api_url}/orders; then payment is down for {:.0} s while {} more\n\
         come; then it is back. After the last order a naive client of {NAIVE_CONNECTIONS_MAX} connections goes through the same outage.\n",
        normal.as_secs_f64(),
        plan.rate_per_s(),
        down.as_secs_f64(),
        thousands(orders.into()),
    )
}

/// The table at the end.
fn table(paint: Paint, measured: &Measured) -> String {
    let rows = measured.rows();
    let table = Table::of(&rows)
        .column("MEASURED", |row| row.what)
        .column("VALUE", |row| &*row.value)
        .column("", |row| row.bar.map(|(_, is_met)| Cell::verdict(is_met, "MISSED")))
        .column("LIMIT", |row| row.bar.map(|(bar, _)| bar));
    table.text(paint)
}

struct Outage<'a> {
    plan: &'a Plan,
    stand_ins: &'a StandIns,
    orders: Orders,
    /// Orders that were accepted so far.
    accepted: Arc<AtomicU64>,
    phase: cell::Cell<&'static str>,
}

impl Outage<'_> {
    async fn go_through(&self) -> Measured {
        let services = self.stand_ins.services();
        let (began, before) = (Instant::now(), services.totals(Service::Payment).calls);
        let mut orders = self.post(self.plan.orders_before(), "normal").await;
        tokio::time::sleep_until(began + self.plan.normal).await;
        let calls = services.totals(Service::Payment).calls - before;
        let normal_per_s = calls as f64 / began.elapsed().as_secs_f64();

        self.phase.set("outage");
        services.set_down(Service::Payment, true);
        let began = Instant::now();
        orders.extend(self.post(self.plan.orders, "outage").await);
        tokio::time::sleep_until(began + self.plan.down).await;
        // Earlier calls do not count for the seconds after the recovery.
        let _ = services.take_peak(Service::Payment);
        services.set_down(Service::Payment, false);

        self.phase.set("recovery");
        let (recovered_at, calls) = (clock::now(), services.totals(Service::Payment).calls_while_down);
        let patience_ends = Instant::now() + self.plan.patience();
        // The effects of the last step show the end without a thousand API calls.
        while self.shipped() < orders.len() as u64 && Instant::now() < patience_ends {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let ends = orders.iter().map(|id| {
            let left = patience_ends.saturating_duration_since(Instant::now());
            self.orders.follow(*id, LOOK_EVERY, left, |_| ())
        });
        let ends: Vec<_> = stream::iter(ends).buffer_unordered(LOOKS_AT_ONCE).collect().await;
        let ended: Vec<_> = ends.into_iter().flatten().collect();
        let accepted = orders.len() as u64;
        let measured = Measured {
            normal_per_s,
            calls,
            accepted,
            refused: u64::from(self.plan.orders_before()) + u64::from(self.plan.orders) - accepted,
            busiest_second: services.take_peak(Service::Payment),
            ..Measured::default()
        };
        measured.counted(&ended, &self.stand_ins.effects(), recovered_at)
    }

    /// Posts orders, one each `every` from now on, and returns those that were accepted. An order does not wait for the
    /// answers to earlier orders.
    async fn post(&self, orders: u32, phase: &str) -> Vec<OrderId> {
        let began = Instant::now();
        let mut posting = JoinSet::new();
        for number in 0..orders {
            tokio::time::sleep_until(began + self.plan.every * number).await;
            let (orders, accepted, key) = (self.orders.clone(), self.accepted.clone(), format!("{phase}-{number}"));
            posting.spawn(async move {
                let posted = orders.post(&key, ORDER.to_owned()).await.ok();
                accepted.fetch_add(u64::from(posted.is_some()), Relaxed);
                posted
            });
        }
        posting.join_all().await.into_iter().flatten().collect()
    }

    /// Orders whose last step is carried out.
    fn shipped(&self) -> u64 {
        self.stand_ins.services().totals(Service::Shipping).effects
    }

    /// The state of payment in `GET /services`.
    async fn health_of_payment(&self) -> Option<String> {
        let ServiceList { services } = self.orders.remote.get::<ServiceList<'static>>("/services").await.ok()?;
        let payment = services.into_iter().find(|service| service.service == Service::Payment.name())?;
        Some(payment.state.to_string())
    }
}
