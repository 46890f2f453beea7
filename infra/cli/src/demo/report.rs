//! The output of the demo: a line for each end, and the table.

use std::fmt::Write as _;
use std::time::Duration;

use domain::task::ProcessState;
use standins::{Effects, KeyEffects, Service};
use wire::{Step, Task};

use super::sample::{SAMPLES, Sample};
use crate::paint::Paint;
use crate::scenario::effects_of;
use crate::show::table::{Cell, Table};

/// An order of the demo at its end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) number: u32,
    pub(super) sample: Sample,
    pub(super) order: Result<Task<'static>, String>,
    /// From the post to the end.
    pub(super) took: Duration,
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

/// The line of an order's end, with the times of the steps: most steps end between two polls.
pub(super) fn end(paint: Paint, at: Duration, subject: &str, Ended { order, took, .. }: &Ended) -> String {
    let end = match order {
        Ok(order) => {
            let times = order.steps.iter().filter_map(|step| Some(format!("{} {} ms", step.agent, step.took_ms()?)));
            let times = times.collect::<Vec<_>>().join(", ");
            let end = format!("{} after {} ms", order.process_state, took.as_millis());
            format!("{}{}", paint.bold(end), paint.dim(format_args!(": {times}")))
        }
        Err(error) => paint.verdict(false, error),
    };
    format!("{}  {subject}  {end}", paint.elapsed(at))
}

/// The table of all orders.
pub(super) fn table(paint: Paint, ended: &[Ended], effects: &Effects) -> String {
    let steps = |one: &Ended, words: fn(&Step<'_>, KeyEffects, KeyEffects) -> String| {
        let order = one.order.as_ref().ok()?;
        let words = order.steps.iter().map(|step| {
            let (forward, undo) = effects_of(order, step, effects);
            words(step, forward, undo)
        });
        Some(words.collect::<Vec<_>>().join("/"))
    };
    let table = Table::of(ended)
        .column("#", |one| one.number)
        .column("ORDER", |one| one.sample.title)
        .column("SHOULD END", |one| one.sample.ends().name())
        .column("ENDED", |one| match &one.order {
            Ok(order) => Cell::state(&order.process_state),
            Err(_) => "?".into(),
        })
        .column("ATTEMPTS", |one| steps(one, |step, _, _| step.attempt.to_string()))
        .column("CALLS", |one| steps(one, |_, forward, undo| (forward.calls + undo.calls).to_string()))
        .column("EFFECTS", |one| steps(one, |step, forward, undo| done(step, forward.effects, undo.effects)))
        .column("TIME", |one| format!("{:.2} s", one.took.as_secs_f64()))
        .column("", |one| Cell::verdict(one.faults.is_empty(), "WRONG"));
    let legend = "attempts, calls and effects at inventory/payment/shipping; 1-1: done once and undone once";
    format!("{}{}\n", table.text(paint), paint.dim(legend))
}

/// The summary, and every fault.
pub(super) fn summary(paint: Paint, ended: &[Ended], effects: &Effects, took: Duration) -> String {
    let mut text = String::new();
    for Ended { number, sample, faults, .. } in ended {
        for fault in faults {
            let _ = writeln!(text, "{}", paint.verdict(false, &format!("#{number} {}: {fault}", sample.title)));
        }
    }
    let orders = || ended.iter().filter_map(|one| one.order.as_ref().ok());
    let in_state = |state| orders().filter(|order| order.process_state == state).count();
    let sum = |of: fn(&standins::ServiceEffects) -> u64| effects.values().map(of).sum::<u64>();
    let verdict = match ended.iter().filter(|one| !one.faults.is_empty()).count() {
        0 => paint.verdict(true, "every one ended as it should, with each effect exactly once or undone"),
        wrong => paint.verdict(false, &format!("{wrong} did not end as they should")),
    };
    let _ = writeln!(
        text,
        "{} orders in {:.1} s: {} processed, {} compensated; {} calls, {} effects; {verdict}",
        ended.len(),
        took.as_secs_f64(),
        in_state(ProcessState::Processed),
        in_state(ProcessState::Compensated),
        sum(|service| service.calls),
        sum(|service| service.effects),
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
