//! `stepwarden overview`: how many orders are where, what fails and why, and what came through in the last minutes.

use domain::time::Timestamp;
use wire::{Count, Failure, Minute, Overview, Took};

use super::context::Context;
use super::error::CommandError;
use super::system::service_table;
use crate::exit::Exit;
use crate::paint::{Paint, tint};
use crate::show::order::error_words;
use crate::show::table::{Cell, Table, number, plain};
use crate::show::time::{from_now, percentile};

pub(super) async fn run(context: &Context) -> Result<Exit, CommandError> {
    let words = |overview: Overview<'static>| text(context.paint, &overview, context.now());
    context.show_path("/overview", words).await
}

fn text(paint: Paint, overview: &Overview<'_>, now: Timestamp) -> String {
    let mut parts = Vec::new();
    if overview.paused {
        parts.push("The server is paused: no order goes on until it is started without --paused.\n".to_owned());
    }
    if let Some(reason) = &overview.unready {
        let words = format!("The server cannot do its work: {reason}. No order goes on until it can.");
        parts.push(format!("{}\n", plain(&words)));
    }
    parts.push(counts(overview, now).text(paint));
    if !overview.failures.is_empty() {
        parts.push(failures(overview, now).text(paint));
    }
    if let Some(approvals) = overview.approvals.filter(|approvals| *approvals > 0) {
        parts.push(format!("Approvals that people are asked for: {approvals} (stepwarden list --approval)\n"));
    }
    parts.push(throughput(overview));
    parts.push(service_table(&overview.services, now).text(paint));
    if let Some(dead_letters) = &overview.dead_letters {
        let newest = dead_letters.newest_at.map(|at| format!(", the newest {}", from_now(at, now))).unwrap_or_default();
        parts.push(format!("Dead letters: {}{newest}\n", number(dead_letters.count, dead_letters.at_least)));
    }
    parts.join("\n")
}

fn counts<'a>(overview: &'a Overview<'_>, now: Timestamp) -> Table<'a, Count> {
    Table::of(&overview.counts)
        .column("STATE", |count| Cell::state(&count.state))
        .column("ORDERS", |count| number(count.count, count.at_least))
        .column("ACCEPTED", |count| {
            let since = count.since.map(|at| format!("since {}", from_now(at, now)));
            since.or_else(|| count.oldest_at.map(|at| format!("oldest {}", from_now(at, now))))
        })
}

/// Failures by cause, with what to do about each.
fn failures<'a>(overview: &'a Overview<'_>, now: Timestamp) -> Table<'a, Failure<'a>> {
    Table::of(&overview.failures)
        .column("IN ERROR", |failure| Cell::tinted(number(failure.count, failure.at_least), tint::RED))
        .column("CAUSE", |failure| &*failure.code)
        .column("STEP", |failure| failure.step.as_deref())
        .column("SINCE", |failure| failure.oldest_at.map(|at| from_now(at, now)))
        .column("LAST ERROR", |failure| failure.last_error.as_ref().map(error_words))
        .column("WHEN IT IS MENDED", |failure| {
            let step = failure.step.as_deref().filter(|step| !step.is_empty());
            let at_step = step.map(|step| format!(" --step {step}")).unwrap_or_default();
            format!("stepwarden bulk resubmit --reason-code {}{at_step} --reason …", failure.code)
        })
}

fn throughput(overview: &Overview<'_>) -> String {
    let minutes = &overview.minutes;
    let sum = |of: fn(&Minute) -> u32| minutes.iter().map(|minute| u64::from(of(minute))).sum::<u64>();
    let accepted = sum(|minute| minute.accepted);
    let [processed, compensated, closed, error] = [
        sum(|minute| minute.processed),
        sum(|minute| minute.compensated),
        sum(|minute| minute.closed),
        sum(|minute| minute.error),
    ];
    let last = minutes.len();
    match overview.counted_since {
        Some(_) => {
            let took = overview.took.map(|Took { p50_ms, p95_ms, p99_ms }| {
                let [p50, p95, p99] = [p50_ms, p95_ms, p99_ms].map(percentile);
                format!("From acceptance to Processed: p50 {p50}, p95 {p95}, p99 {p99}\n")
            });
            format!(
                "In the last {last} minutes: {accepted} accepted, {processed} processed, {compensated} compensated, \
                 {closed} closed, {error} came to Error\n{}",
                took.unwrap_or_default()
            )
        }
        None => format!(
            "Submitted in the last {last} minutes: {accepted}; of these {processed} are processed, {compensated} \
             compensated, {closed} closed, {error} in error\n",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_overview_that_is_counted_tells_how_long_orders_took() {
        let overview: Overview<'static> = serde_json::from_value(json!({
            "At": "2026-11-20T17:26:43.007Z", "Counts": [], "Failures": [], "Services": [],
            "CountedSince": "2026-11-20T17:00:00.000Z", "Minutes": [{"Accepted": 3, "Processed": 2}],
            "Took": {"P50Ms": 43, "P95Ms": 59, "P99Ms": 1_270},
        }))
        .unwrap();
        let words = "3 accepted, 2 processed, 0 compensated, 0 closed, 0 came to Error\n\
                     From acceptance to Processed: p50 43 ms, p95 59 ms, p99 1.3 s\n";
        assert!(throughput(&overview).contains(words), "{}", throughput(&overview));
    }

    #[test]
    fn an_overview_tells_what_fails_and_how_to_go_on() {
        let overview: Overview<'static> = serde_json::from_value(json!({
            "At": "2026-11-20T17:26:43.007Z",
            "Counts": [{"State": "Error", "Count": 7, "AtLeast": true},
                       {"State": "Processing", "Count": 1, "AtLeast": false,
                        "OldestAt": "2026-11-20T17:25:43.007Z"}],
            "Minutes": [{"Accepted": 3, "Processed": 2}, {"Accepted": 1}],
            "Failures": [{"Code": "exhausted", "Step": "charge-payment", "Count": 7, "AtLeast": true,
                          "OldestAt": "2026-11-20T17:25:43.007Z", "OrderIDs": [],
                          "LastError": {"Code": "expired", "Message": "no answer", "Attempt": 3,
                                        "At": "2026-11-20T17:26:43.007Z"}}],
            "Services": [{"Service": "payment", "State": "Open", "Until": "2026-11-20T17:26:53.007Z"}],
            "Approvals": 2,
            "DeadLetters": {"Count": 0, "AtLeast": false},
        }))
        .unwrap();
        let text = text(Paint { colours: false }, &overview, Timestamp::from_epoch_ms(1_795_195_603_007));
        for words in [
            "Error       at least 7",
            "Processing  1           oldest 1 min ago",
            "at least 7  exhausted  charge-payment  1 min ago  no answer (expired)",
            "stepwarden bulk resubmit --reason-code exhausted --step charge-payment",
            "asked for: 2 (stepwarden list --approval)",
            "last 2 minutes: 4; of these 2 are processed",
            "failing (Open)",
            "in 10 s",
            "Dead letters: 0",
        ] {
            assert!(text.contains(words), "{words} in:\n{text}");
        }
    }
}
