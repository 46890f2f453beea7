//! The output of the demo: a line for each change, a line for each end, and the table.

use std::fmt::Write as _;
use std::time::Duration;

use domain::task::ProcessState;
use standins::{Effects, Service};
use wire::{Step, Task};

use super::Followed;
use super::sample::{SAMPLES, Sample};
use crate::paint::Paint;
use crate::scenario::{OrderError, effects_of};
use crate::step::words;

/// An order of the demo with its final data.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) sample: Sample,
    pub(super) followed: Result<Followed, OrderError>,
    pub(super) faults: Vec<String>,
}

/// The opening lines.
pub(super) fn opening(api_url: &str) -> String {
    format!(
        "{} orders go to {api_url}/orders; the stand-ins for inventory, payment and shipping make trouble\n\
         for some of them, as the orders tell them to. A line for each change, a table at the end.\n",
        SAMPLES.len()
    )
}

/// The line of a change.
pub(super) fn change(paint: Paint, at: Duration, place: u32, task: &Task<'_>) -> String {
    let mut line = head(paint, at, place);
    line.push_str(&paint.state(&task.process_state));
    for step in &task.steps {
        let _ = write!(line, "  {} {:<10}", paint.dim(&step.agent), words(step));
    }
    line.trim_end().to_owned()
}

/// The line of an order's end.
pub(super) fn end(paint: Paint, at: Duration, place: u32, followed: &Result<Followed, OrderError>) -> String {
    let mut line = head(paint, at, place);
    match followed {
        Ok(Followed { last, took }) => {
            let end = format!("{} after {} ms", last.process_state, took.as_millis());
            let _ = write!(line, "{}", paint.bold(end));
            match &last.reason {
                Some(reason) => line.push_str(&paint.dim(format_args!(", because of {}", reason.message))),
                None => line.push_str(&paint.dim(format_args!(": {}", times(&last.steps)))),
            }
        }
        Err(error) => line.push_str(&paint.verdict(false, &error.to_string())),
    }
    line
}

/// The times of the steps. Most steps end between two polls.
fn times(steps: &[Step<'_>]) -> String {
    let times = steps.iter().filter_map(|step| Some(format!("{} {} ms", step.agent, step.took_ms()?)));
    times.collect::<Vec<_>>().join(", ")
}

fn head(paint: Paint, at: Duration, place: u32) -> String {
    let title = SAMPLES.get(place as usize).map_or("", |sample| sample.title);
    format!("{}  #{:<2} {title:<24}  ", paint.dim(format_args!("{:>6.3}s", at.as_secs_f64())), place + 1)
}

/// The table of all orders, and the summary.
pub(super) fn table(paint: Paint, ended: &[Ended], effects: &Effects) -> String {
    let mut text = String::new();
    let title = format!(
        "{:<3} {:<23}  {:<12} {:<12} {:<8} {:<10} {:<12} {:>7}",
        "#", "order", "should end", "ended", "attempts", "calls", "effects", "time"
    );
    let _ = writeln!(text, "{}", paint.bold(title));
    for (place, Ended { sample, followed, faults }) in ended.iter().enumerate() {
        let _ = write!(text, "{:<3} {:<23}  {:<12} ", place + 1, sample.title, sample.ends().name());
        match followed {
            Ok(followed) => {
                let last = &followed.last;
                let steps = || last.steps.iter().map(|step| (step, effects_of(last, step, effects)));
                let attempts = joined(steps().map(|(step, _)| step.attempt.to_string()));
                let calls = joined(steps().map(|(_, (forward, undo))| (forward.calls + undo.calls).to_string()));
                let done = joined(steps().map(|(step, (forward, undo))| done(step, forward.effects, undo.effects)));
                let state = paint.state(&followed.last.process_state);
                let took = format!("{:.2} s", followed.took.as_secs_f64());
                let _ = write!(text, "{state} {attempts:<8} {calls:<10} {done:<12} {took:>7}");
            }
            Err(_) => {
                let _ = write!(text, "{:<12} {:<8} {:<10} {:<12} {:>7}", "?", "", "", "", "");
            }
        }
        let _ =
            writeln!(text, "  {}", paint.verdict(faults.is_empty(), if faults.is_empty() { "ok" } else { "WRONG" }));
    }
    let _ = writeln!(
        text,
        "{}",
        paint.dim("attempts, calls and effects at inventory/payment/shipping; 1-1: done once and undone once")
    );
    text
}

/// The summary, and every fault.
pub(super) fn summary(paint: Paint, ended: &[Ended], effects: &Effects, took: Duration) -> String {
    let mut text = String::new();
    for (place, Ended { sample, faults, .. }) in ended.iter().enumerate() {
        for fault in faults {
            let _ = writeln!(text, "{}", paint.verdict(false, &format!("#{} {}: {fault}", place + 1, sample.title)));
        }
    }
    let in_state = |state| {
        ended
            .iter()
            .filter_map(|order| order.followed.as_ref().ok())
            .filter(|order| order.last.process_state == state)
            .count()
    };
    let (calls, done) =
        effects.values().fold((0, 0), |(calls, done), service| (calls + service.calls, done + service.effects));
    let wrong = ended.iter().filter(|order| !order.faults.is_empty()).count();
    let verdict = match wrong {
        0 => "every one ended as it should, with each effect exactly once or undone".to_owned(),
        wrong => format!("{wrong} did not end as they should"),
    };
    let _ = writeln!(
        text,
        "{} orders in {:.1} s: {} processed, {} compensated; {calls} calls, {done} effects; {}",
        ended.len(),
        took.as_secs_f64(),
        in_state(ProcessState::Processed),
        in_state(ProcessState::Compensated),
        paint.verdict(wrong == 0, &verdict)
    );
    text
}

fn done(step: &Step<'_>, forward: u64, undo: u64) -> String {
    match (Service::named(&step.agent), undo) {
        (None, _) => "?".to_owned(),
        (Some(_), 0) => forward.to_string(),
        (Some(_), undone) => format!("{forward}-{undone}"),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("/")
}
