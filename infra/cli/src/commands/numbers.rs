//! `stepwarden numbers`: what happened in the last minutes, hours or days, and how long it took.

use std::cmp::Reverse;

use wire::{AttemptNumbers, Count, Numbers, OrderNumbers, Took};

use super::context::Context;
use super::error::CommandError;
use crate::args::NumbersArgs;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::remote::{Call, NO_NUMBERS, RemoteError};
use crate::show::table::{Cell, Table};
use crate::show::time::{clock, percentile};

const TIMES: &str = "Slowest steps first. A time runs from the first attempt to the success, with all waits. A percentile \
                     is at most an eighth too high.";

pub(super) async fn run(context: &Context, args: &NumbersArgs) -> Result<Exit, CommandError> {
    let answered = context.remote.call(&Call::get(format!("/numbers?last={}", args.last))).await;
    let answer = answered.map_err(|mut error| {
        if let RemoteError::Problem { problem, .. } = &mut error
            && problem.status == 404
        {
            NO_NUMBERS.clone_into(&mut problem.kind);
        }
        error
    })?;
    if context.is_json() {
        return context.line(&answer.line()).map(|()| Exit::Fine);
    }
    let numbers: Numbers<'static> = answer.read()?;
    context.print(&text(context.paint, &args.last, &numbers))?;
    Ok(Exit::Fine)
}

fn text(paint: Paint, last: &str, numbers: &Numbers<'_>) -> String {
    let since = match numbers.since {
        Some(since) if since > numbers.from => format!(", counted since {}", clock(since)),
        Some(_) => String::new(),
        None => ": nothing happened yet".to_owned(),
    };
    let mut orders = Table::new(&[
        "WORKFLOW",
        "ACCEPTED",
        "PROCESSED",
        "COMPENSATED",
        "CLOSED",
        "CAME TO ERROR",
        "P50",
        "P95",
        "P99",
    ]);
    for one in &numbers.workflows {
        orders.row(of_orders(&one.workflow, &one.orders));
    }
    if numbers.workflows.len() != 1 {
        orders.row(of_orders("all", &numbers.orders));
    }
    let mut parts = vec![format!("Last {last}{since}\n"), orders.text(paint)];
    if !numbers.steps.is_empty() {
        parts.push(steps(numbers).text(paint));
        parts.push(format!("{TIMES}\n"));
    }
    let count = |Count { state, count, .. }: &Count| format!("{count} {state}");
    parts.push(format!("Now: {}\n", numbers.counts.iter().map(count).collect::<Vec<_>>().join(", ")));
    parts.join("\n")
}

/// The steps, the slowest first.
fn steps(numbers: &Numbers<'_>) -> Table {
    let mut titles =
        vec!["STEP", "WORKFLOW", "SERVICE", "BEGUN", "DONE", "NO ANSWER", "REJECTED", "FAILED", "P50", "P95", "P99"];
    // Most workflows skip no step.
    let has_skipped = numbers.steps.iter().any(|step| step.attempts.skipped > 0);
    if has_skipped {
        titles.push("SKIPPED");
    }
    let mut table = Table::new(&titles);
    let mut steps: Vec<_> = numbers.steps.iter().collect();
    steps.sort_by_key(|step| Reverse(step.attempts.took.map(|took| took.p99_ms)));
    for step in steps {
        let AttemptNumbers { begun, done, expired, rejected, skipped, took } = step.attempts;
        let undo = if step.direction == domain::task::Direction::Undo { "undo of " } else { "" };
        let [p50, p95, p99] = percentiles(took);
        let mut row = vec![
            Cell::from(format!("{undo}{}", step.step)),
            Cell::from(&*step.workflow),
            Cell::from(&*step.service),
            begun.to_string().into(),
            done.to_string().into(),
            expired.to_string().into(),
            rejected.to_string().into(),
            failed(done, expired + rejected).into(),
            p50,
            p95,
            p99,
        ];
        if has_skipped {
            row.push(skipped.to_string().into());
        }
        table.row(row);
    }
    table
}

fn of_orders(name: &str, orders: &OrderNumbers) -> [Cell; 9] {
    let OrderNumbers { accepted, processed, compensated, closed, failed, took } = *orders;
    let [p50, p95, p99] = percentiles(took);
    let [accepted, processed, compensated, closed, failed] =
        [accepted, processed, compensated, closed, failed].map(|count| Cell::from(count.to_string()));
    [Cell::from(name), accepted, processed, compensated, closed, failed, p50, p95, p99]
}

fn percentiles(took: Option<Took>) -> [Cell; 3] {
    let times = took.map(|Took { p50_ms, p95_ms, p99_ms }| [p50_ms, p95_ms, p99_ms]);
    times.map_or_else(|| ["", "", ""].map(Cell::from), |times| times.map(|ms| Cell::from(percentile(ms))))
}

/// The share of attempts that ended without success.
fn failed(done: u64, failed: u64) -> String {
    match (failed * 1_000).checked_div(done + failed) {
        None => String::new(),
        Some(share) => format!("{}.{} %", share / 10, share % 10),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_tell_the_slowest_step_first_and_how_much_failed() {
        let took = |ms: u64| json!({"P50Ms": ms, "P95Ms": 2 * ms, "P99Ms": 3 * ms});
        let step = |name: &str, ms| {
            json!({"Workflow": "order", "Step": name, "Service": "bank", "Direction": "Forward",
                   "Attempts": {"Begun": 5, "Done": 2, "Expired": 1, "Rejected": 0, "Took": took(ms)}})
        };
        let orders = json!({"Accepted": 9, "Processed": 8, "Compensated": 0, "Failed": 1, "Took": took(700)});
        let numbers = serde_json::from_value(json!({
            "From": "2026-11-19T17:30:00.000Z", "Since": "2026-11-20T09:00:00.000Z",
            "Counts": [{"State": "Error", "Count": 1, "AtLeast": false}],
            "Orders": orders, "Workflows": [{"Workflow": "order", "Orders": orders}],
            "Steps": [step("quick", 10), step("slow", 400)],
        }))
        .unwrap();
        let text = text(Paint { colours: false }, "24h", &numbers);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0].join(" "), "Last 24h, counted since 2026-11-20 09:00:00Z");
        assert_eq!(lines[3].join(" "), "order 9 8 0 0 1 700 ms 1.4 s 2.1 s");
        assert_eq!(lines[6].join(" "), "slow order bank 5 2 1 0 33.3 % 400 ms 800 ms 1.2 s");
        assert_eq!(lines[7][0], "quick");
        assert!(text.ends_with("Now: 1 Error\n"), "{text}");
    }
}
