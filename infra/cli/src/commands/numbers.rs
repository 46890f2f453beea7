//! `stepwarden numbers`: what happened in the last minutes, hours or days, and how long it took.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use domain::task::Direction;
use domain::time::Timestamp;
use serde::de::IgnoredAny;
use wire::{AttemptNumbers, Count, Numbers, OrderNumbers, StepNumbers, Took};

use super::context::Context;
use super::error::CommandError;
use super::query;
use crate::args::NumbersArgs;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::remote::Call;
use crate::show::table::Table;
use crate::show::time::{clock, percentile};

const TIMES: &str = "Slowest steps first. The time of an order runs from its submission to Processed, that of a step from its \
                     first attempt to its success, with all waits. The time of a call is that of a success or a rejection: calls \
                     without an answer, and those that were repeated, have none. A percentile is at most an eighth too high.";

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const HOUR_MS: i64 = 60 * 60 * 1_000;

pub(super) async fn run(context: &Context, args: &NumbersArgs) -> Result<Exit, CommandError> {
    let day = args.day.as_deref().map(|day| date(day, context.now()));
    let args = &NumbersArgs { day, ..args.clone() };
    let asked = [
        ("last", Some(&args.last).filter(|_| args.day.is_none())),
        ("day", args.day.as_ref()),
        ("workflow", args.workflow.as_ref()),
        ("step", args.step.as_ref()),
        ("service", args.service.as_ref()),
    ];
    let asked: Vec<_> = asked.into_iter().filter_map(|(name, value)| Some((name, value?.clone()))).collect();
    let answer = context.remote.call(&Call::get(query::path("/numbers", &asked))).await?;
    let mut numbers: Numbers<'static> = answer.read()?;
    narrow(&mut numbers, args)?;
    context.show(&answer, |_: IgnoredAny| text(context.paint, args, &numbers))
}

/// The date of a day of UTC, or of the zone whose offset stands behind it.
fn date(day: &str, now: Timestamp) -> String {
    let before = |name: &str, ms: u64| day.strip_prefix(name).map(|zone| (now.minus_ms(ms), zone));
    let Some((at, zone)) = before("today", 0).or_else(|| before("yesterday", DAY_MS)) else { return day.to_owned() };
    let hours: i64 = zone.get(..3).and_then(|hours| hours.parse().ok()).unwrap_or(0);
    let there = Timestamp::from_epoch_ms(at.epoch_ms() + hours * HOUR_MS).to_string();
    there.split('T').take(1).chain([zone]).collect()
}

/// The span that is asked for.
fn span(args: &NumbersArgs) -> String {
    args.day.as_ref().map_or_else(
        || format!("the last {}", args.last),
        |day| {
            let zone = if day.contains(':') { "" } else { " (UTC)" };
            format!("{day}{zone}")
        },
    )
}

/// Leaves the workflows and steps that are asked for. The API narrows its points alone.
fn narrow(numbers: &mut Numbers<'_>, args: &NumbersArgs) -> Result<(), CommandError> {
    let Numbers { workflows, steps, .. } = numbers;
    let span = &span(args);
    keep("workflow", &args.workflow, span, workflows, |one| &one.workflow)?;
    steps.retain(|step| args.workflow.as_ref().is_none_or(|asked| step.workflow == *asked));
    keep("step", &args.step, span, steps, |one| &one.step)?;
    keep("service", &args.service, span, steps, |one| &one.service)
}

/// Leaves those with the name that is asked for.
fn keep<T>(
    what: &str,
    asked: &Option<String>,
    span: &str,
    all: &mut Vec<T>,
    name: impl Fn(&T) -> &str,
) -> Result<(), CommandError> {
    let Some(asked) = asked else { return Ok(()) };
    if !all.iter().any(|one| name(one) == *asked) {
        let known: BTreeSet<&str> = all.iter().map(name).collect();
        let but = match known.is_empty() {
            true => "nor of any other".to_owned(),
            false => format!("but of {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let what = format!("there are no numbers of the {what} {asked} in {span}, {but}");
        return Err(CommandError::NotThere { what, advice: None });
    }
    all.retain(|one| name(one) == *asked);
    Ok(())
}

fn text(paint: Paint, args: &NumbersArgs, numbers: &Numbers<'_>) -> String {
    let NumbersArgs { last: _, day: _, workflow, step, service } = args;
    let since = match numbers.since {
        Some(since) if since > numbers.from => format!(", counted since {}", clock(since)),
        Some(_) => String::new(),
        None => ": nothing happened yet".to_owned(),
    };
    let mut of_orders: Vec<_> = numbers.workflows.iter().map(|one| (&*one.workflow, one.orders)).collect();
    if of_orders.len() != 1 {
        of_orders.push(("all", numbers.orders));
    }
    let mut parts = vec![format!("Numbers of {}{since}\n", span(args))];
    // An order is of no single step, and the counts are of all workflows.
    let is_of_steps = step.is_some() || service.is_some();
    if !is_of_steps {
        parts.push(orders(&of_orders).text(paint));
    }
    if !numbers.steps.is_empty() {
        let mut slowest_first: Vec<_> = numbers.steps.iter().collect();
        slowest_first.sort_by_key(|step| Reverse(step.attempts.took.map(|took| took.p99_ms)));
        parts.push(steps(&slowest_first).text(paint));
        parts.push(format!("{TIMES}\n"));
    }
    if workflow.is_none() && !is_of_steps {
        let count = |Count { state, count, .. }: &Count| format!("{count} {state}");
        parts.push(format!("Now: {}\n", numbers.counts.iter().map(count).collect::<Vec<_>>().join(", ")));
    }
    parts.join("\n")
}

fn orders<'a>(of_orders: &'a [(&'a str, OrderNumbers)]) -> Table<'a, (&'a str, OrderNumbers)> {
    let table = Table::of(of_orders)
        .column("WORKFLOW", |(workflow, _)| *workflow)
        .column("ACCEPTED", |(_, orders)| orders.accepted)
        .column("PROCESSED", |(_, orders)| orders.processed)
        .column("COMPENSATED", |(_, orders)| orders.compensated)
        .column("CLOSED", |(_, orders)| orders.closed)
        .column("CAME TO ERROR", |(_, orders)| orders.failed);
    with_percentiles(table, |(_, orders)| orders.took)
}

fn steps<'a>(steps: &'a [&'a StepNumbers<'a>]) -> Table<'a, &'a StepNumbers<'a>> {
    let any = |is: fn(&AttemptNumbers) -> bool| steps.iter().any(|step| is(&step.attempts));
    let table = Table::of(steps)
        .column("STEP", |step| {
            let undo = if step.direction == Direction::Undo { "undo of " } else { "" };
            format!("{undo}{}", step.step)
        })
        .column("WORKFLOW", |step| &*step.workflow)
        .column("SERVICE", |step| &*step.service)
        .column("BEGUN", |step| step.attempts.begun)
        .column("DONE", |step| step.attempts.done)
        .column("EXPIRED", |step| step.attempts.expired)
        .column("REJECTED", |step| step.attempts.rejected)
        .column("FAILED", |step| failed(step.attempts.done, step.attempts.expired + step.attempts.rejected));
    let mut table = with_percentiles(table, |step| step.attempts.took);
    if any(|attempts| attempts.calls.is_some()) {
        table = table
            .column("CALL P50", |step| step.attempts.calls.map(|calls| percentile(calls.p50_ms)))
            .column("CALL P99", |step| step.attempts.calls.map(|calls| percentile(calls.p99_ms)));
    }
    // Without an outage nothing is deferred, and most workflows skip no step.
    if any(|attempts| attempts.deferred > 0) {
        table = table.column("DEFERRED", |step| step.attempts.deferred);
    }
    if any(|attempts| attempts.skipped > 0) {
        table = table.column("SKIPPED", |step| step.attempts.skipped);
    }
    table
}

fn with_percentiles<'a, T>(table: Table<'a, T>, took: impl Fn(&'a T) -> Option<Took>) -> Table<'a, T> {
    table
        .column("P50", |one| took(one).map(|took| percentile(took.p50_ms)))
        .column("P95", |one| took(one).map(|took| percentile(took.p95_ms)))
        .column("P99", |one| took(one).map(|took| percentile(took.p99_ms)))
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

    fn numbers() -> Numbers<'static> {
        let took = |ms: u64| json!({"P50Ms": ms, "P95Ms": 2 * ms, "P99Ms": 3 * ms});
        let step = |workflow: &str, name: &str, service: &str, ms| {
            json!({"Workflow": workflow, "Step": name, "Service": service, "Direction": "Forward",
                   "Attempts": {"Begun": 5, "Done": 2, "Expired": 1, "Rejected": 0, "Took": took(ms), "Calls": took(4)}})
        };
        let skipped = json!({"Workflow": "return", "Step": "gift", "Service": "post", "Direction": "Forward",
                             "Attempts": {"Begun": 0, "Done": 0, "Expired": 0, "Rejected": 0, "Skipped": 7}});
        let orders = json!({"Accepted": 9, "Processed": 8, "Compensated": 0, "Failed": 1, "Took": took(700)});
        let workflow = |name: &str| json!({"Workflow": name, "Orders": orders});
        serde_json::from_value(json!({
            "From": "2026-11-19T17:30:00.000Z", "Since": "2026-11-20T09:00:00.000Z",
            "Counts": [{"State": "Error", "Count": 1, "AtLeast": false}],
            "Orders": orders, "Workflows": [workflow("order"), workflow("return")],
            "Steps": [step("order", "quick", "bank", 10), step("order", "slow", "bank", 400), step("return", "slow", "post", 20), skipped],
        }))
        .unwrap()
    }

    fn asked(workflow: Option<&str>, step: Option<&str>, service: Option<&str>) -> NumbersArgs {
        let [workflow, step, service] = [workflow, step, service].map(|name| name.map(str::to_owned));
        NumbersArgs { last: "24h".to_owned(), day: None, workflow, step, service }
    }

    /// The lines, without the blanks that align them.
    fn lines(args: &NumbersArgs) -> Vec<String> {
        let mut numbers = numbers();
        narrow(&mut numbers, args).unwrap();
        let text = text(Paint { colours: false }, args, &numbers);
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn numbers_tell_the_slowest_step_first_and_how_much_failed() {
        let lines = lines(&asked(None, None, None));
        assert_eq!(lines[0], "Numbers of the last 24h, counted since 2026-11-20 09:00:00Z");
        assert_eq!(lines[3], "order 9 8 0 0 1 700 ms 1.4 s 2.1 s");
        assert!(lines[4].starts_with("return 9") && lines[5].starts_with("all 9"));
        assert_eq!(lines[8], "slow order bank 5 2 1 0 33.3 % 400 ms 800 ms 1.2 s 4 ms 12 ms 0");
        assert!(lines[9].starts_with("slow return") && lines[10].starts_with("quick order"));
        assert_eq!(lines[11], "gift return post 0 0 0 0 7");
        assert_eq!(lines.last().unwrap(), "Now: 1 Error");
    }

    #[test]
    fn only_what_is_asked_for_is_told() {
        let of_return = lines(&asked(Some("return"), None, None));
        assert!(of_return[3].starts_with("return 9") && of_return[4].is_empty(), "{of_return:?}");
        assert!(of_return[6].starts_with("slow return post") && of_return[8].is_empty(), "{of_return:?}");
        assert!(!of_return.iter().any(|line| line.starts_with("Now")), "the counts are of all workflows");
        for (args, expected) in [
            (asked(None, Some("slow"), None), ["slow order", "slow return"].as_slice()),
            (asked(None, None, Some("bank")), &["slow order", "quick order"]),
            (asked(Some("order"), Some("slow"), Some("bank")), &["slow order"]),
        ] {
            let lines = lines(&args);
            assert!(
                lines[2].starts_with("STEP") && !lines[2].contains("SKIPPED"),
                "an order is of no single step: {lines:?}"
            );
            let steps = lines[3..].iter().take_while(|line| !line.is_empty());
            let steps: Vec<_> = steps.map(|line| line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect();
            assert_eq!(steps, expected);
        }
    }

    #[test]
    fn a_day_is_one_of_utc_or_of_a_zone() {
        let now = Timestamp::from_epoch_ms(1_795_195_603_007);
        let dates = ["today", "yesterday", "2026-11-01"].map(|day| date(day, now));
        assert_eq!(dates, ["2026-11-20", "2026-11-19", "2026-11-01"]);
        let args = NumbersArgs { day: Some("2026-11-19".to_owned()), ..asked(None, None, None) };
        assert!(lines(&args)[0].starts_with("Numbers of 2026-11-19 (UTC)"));
        let late = Timestamp::from_epoch_ms(1_795_217_400_000);
        assert_eq!(late.to_string(), "2026-11-20T23:30:00.000Z");
        let dates = ["today+01:00", "yesterday-05:00", "2026-11-01+02:00"].map(|day| date(day, late));
        assert_eq!(dates, ["2026-11-21+01:00", "2026-11-19-05:00", "2026-11-01+02:00"]);
    }

    #[test]
    fn a_name_without_numbers_is_refused_with_those_that_have_some() {
        for (args, expected) in [
            (asked(Some("shop"), None, None), "the workflow shop in the last 24h, but of order, return"),
            (asked(None, Some("pay"), None), "the step pay in the last 24h, but of gift, quick, slow"),
            (asked(Some("return"), Some("quick"), None), "the step quick in the last 24h, but of gift, slow"),
            (asked(None, Some("quick"), Some("post")), "the service post in the last 24h, but of bank"),
        ] {
            let error = narrow(&mut numbers(), &args).unwrap_err();
            assert_eq!(error.to_string(), format!("there are no numbers of {expected}"));
            assert_eq!(error.exit(), Exit::NotFound);
        }
        let nothing = narrow(&mut Numbers::default(), &asked(Some("shop"), None, None)).unwrap_err();
        assert!(nothing.to_string().ends_with("the workflow shop in the last 24h, nor of any other"), "{nothing}");
    }
}
