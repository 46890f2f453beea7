//! What the outage prints: a line each second, and the table at the end.

use std::fmt::Write as _;
use std::time::Duration;

use super::Phase;
use super::plan::{NAIVE_CONNECTIONS_MAX, Plan};
use super::verdict::{Measured, thousands};
use crate::paint::Paint;

/// The opening lines.
pub(super) fn opening(plan: &Plan, api_url: &str) -> String {
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

/// The state of one second.
#[derive(Debug, Clone)]
pub(super) struct Second {
    pub(super) at: Duration,
    pub(super) phase: Phase,
    pub(super) posted: u64,
    pub(super) processed: u64,
    pub(super) payment_calls: u64,
    /// The state from `GET /services`.
    pub(super) payment_is: String,
}

/// The line for a second.
pub(super) fn second(paint: Paint, second: &Second) -> String {
    let Second { at, phase, posted, processed, payment_calls, payment_is } = second;
    let waiting = posted.saturating_sub(*processed);
    let name = match phase {
        Phase::Outage => paint.verdict(false, &format!("{:<8}", phase.name())),
        Phase::Normal | Phase::Recovery => paint.verdict(true, &format!("{:<8}", phase.name())),
    };
    format!(
        "{}  {name}  posted {posted:>6}  processed {processed:>6}  waiting {waiting:>6}  payment {payment_calls:>6} calls  {payment_is}",
        seconds(paint, *at)
    )
}

/// The line for a second of the naive client.
pub(super) fn naive_second(paint: Paint, at: Duration, posted: u32, calls: u64, calls_in_all: u64) -> String {
    let name = paint.bold("naive   ");
    format!(
        "{}  {name}  posted {posted:>6}  payment {calls:>6} calls  {} in all",
        seconds(paint, at),
        thousands(calls_in_all)
    )
}

fn seconds(paint: Paint, at: Duration) -> String {
    paint.dim(format_args!("{:>5.0} s", at.as_secs_f64()))
}

/// The table at the end.
pub(super) fn table(paint: Paint, measured: &Measured) -> String {
    let mut text = String::new();
    for row in measured.rows() {
        let _ = write!(text, "{:<38} {:>22}", row.what, row.value);
        if let Some((bar, is_met)) = row.bar {
            let _ = write!(text, "   {}  {bar}", paint.verdict(is_met, if is_met { "ok    " } else { "MISSED" }));
        }
        text.push('\n');
    }
    let verdict = if measured.is_good() { "every limit was met" } else { "a limit was missed" };
    let _ = writeln!(text, "{}", paint.verdict(measured.is_good(), verdict));
    text
}
