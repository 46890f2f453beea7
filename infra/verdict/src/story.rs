//! The story of an order in words.

use std::sync::Arc;

use domain::keys::time_text;
use domain::workflow::{DropMax, Remedy, StepRule, step_of};
use rehearsal::seen::{OrderState, Try, Way};

use crate::folder::Folder;
use crate::judge::Kind;
use crate::judge::line;
use crate::search::Finding;
use crate::watch::{Moment, What};

/// A moment in words: when, since the order was accepted, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The time since the first moment, in milliseconds.
    pub at_ms: u64,
    /// The step, if it is of one.
    pub step: Option<String>,
    /// Whether it happens at a service.
    pub is_effect: bool,
    /// What.
    pub words: String,
}

/// The story, moment by moment.
#[must_use]
pub fn lines(folder: &Folder, finding: &Finding) -> Vec<Line> {
    let Some(story) = &finding.story else { return Vec::new() };
    let first_ms = story.moments.first().map_or(0, |moment| moment.at_ms);
    let names = names(folder, finding);
    let line = |moment: &Moment| {
        let step = moment.what.of().and_then(|of| names.get(of.step)).cloned();
        let is_effect = matches!(moment.what, What::Effect(_) | What::Refused(_));
        let at_ms = u64::try_from(moment.at_ms - first_ms).unwrap_or(0);
        Line { at_ms, words: words(folder, &moment.what, step.as_deref().unwrap_or_default()), step, is_effect }
    };
    story.moments.iter().map(line).collect()
}

/// The steps of the order in words, by their index in its record: those of a line name it.
#[must_use]
pub fn names(folder: &Folder, finding: &Finding) -> Vec<String> {
    let Some(story) = &finding.story else { return Vec::new() };
    let pin = finding.violation.workflow.as_ref();
    let workflow = pin.and_then(|pin| folder.shape.versions().find(|workflow| workflow.pin() == *pin));
    let workflow = workflow.map(|workflow| workflow.of_steps(story.steps.iter().map(|name| &**name)));
    let line = |index: usize| line::Line::of(workflow.as_ref()?, index);
    let name = |(index, name): (usize, &Arc<str>)| match line(index) {
        Some(line) => line.of_step(step_of(name)),
        None => name.to_string(),
    };
    story.steps.iter().enumerate().map(name).collect()
}

fn words(folder: &Folder, what: &What, step: &str) -> String {
    let of_way = |of: &Try| if of.way == Way::Forward { step.to_owned() } else { format!("the undo of {step}") };
    match what {
        What::Accepted => "the order is accepted".to_owned(),
        What::Called(of, call) => format!("call {call}, for {}, attempt {}", of_way(of), of.attempt),
        What::Answered(_, call, true) => format!("call {call} is answered"),
        What::Answered(_, call, false) => format!("call {call} has no answer that says how it ended"),
        What::Away(agent, ms) => {
            let agent = folder.shape.agents.get(*agent).map_or("a service", |agent| &**agent);
            format!("{agent} is away for {}", time(*ms))
        }
        What::Effect(of) if of.way == Way::Forward => format!("the service carries {step} out"),
        What::Effect(_) => format!("the service takes {step} back"),
        What::Refused(of) => format!("the service says no to {}", of_way(of)),
        What::State(state, code) => {
            let code = code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            format!("the order is {}{code}", state_name(*state))
        }
        What::Late => "the order is late".to_owned(),
    }
}

const fn state_name(state: OrderState) -> &'static str {
    match state {
        OrderState::Pending => "Pending",
        OrderState::Processing => "Processing",
        OrderState::Processed => "Processed",
        OrderState::Error => "Error",
        OrderState::Compensating => "Compensating",
        OrderState::Compensated => "Compensated",
        OrderState::Closed => "Closed",
    }
}

/// What happened, in a sentence.
#[must_use]
pub fn sentence(folder: &Folder, finding: &Finding) -> String {
    let violation = &finding.violation;
    let step = violation.step_in_words();
    let step = step.as_deref().unwrap_or("a step");
    let agent = violation.agent.as_deref().unwrap_or("its service");
    let settings = folder.settings_of(agent);
    let service = folder.service_of(agent);
    let moments = finding.story.as_ref().map(|story| &*story.moments).unwrap_or_default();
    let rule = rule_of(folder, finding);
    let at = |wanted: &dyn Fn(&What) -> bool| -> Vec<i64> {
        moments.iter().filter(|moment| wanted(&moment.what)).map(|moment| moment.at_ms).collect()
    };
    let is_of = |of: &Try, way: Way| Some(of.step) == violation.index && of.way == way;
    let effects = at(&|what| matches!(what, What::Effect(of) if is_of(of, Way::Forward)));
    let calls = at(&|what| matches!(what, What::Called(of, _) if is_of(of, Way::Forward)));
    let undos = at(&|what| matches!(what, What::Called(of, _) if is_of(of, Way::Undo)));
    let ago = |from: i64, to: i64| time(u64::try_from(to - from).unwrap_or(0));
    let line = violation.line.as_ref().map_or_else(|| "a line".to_owned(), ToString::to_string);
    let lines = match finding.story.as_ref().map_or(0, |story| story.lines().len()) {
        0 => String::new(),
        1 => " of 1 line".to_owned(),
        lines => format!(" of {lines} lines"),
    };
    // The line is named once.
    let (ended, done) = match (violation.kind == Kind::DroppedStillCharged, &violation.step) {
        (true, Some(base)) => (format!("{line} was dropped"), &**base),
        (_, _) => ("the order was compensated".to_owned(), step),
    };
    match violation.kind {
        Kind::ChargedTwice => {
            let forgets = service.and_then(|service| service.forgets_keys_after_ms);
            let forgets =
                forgets.map(|ms| format!(": its service forgets keys after {}", time(ms))).unwrap_or_default();
            match (&*effects, rule) {
                ([first, .., last], Some(rule)) => format!(
                    "{agent} carried {step} out, and once more {} later{forgets}, and the step is tried for {}",
                    ago(*first, *last),
                    time(rule.horizon_ms)
                ),
                (_, _) => format!("{agent} carried {step} out more than once{forgets}"),
            }
        }
        Kind::StillCharged | Kind::DroppedStillCharged => match (&*calls, &*effects, &*undos) {
            ([first, ..], [.., effect], [undo, ..]) if undo < effect => format!(
                "{agent} carried {step} out {} after the call began; its undo was sent at {}, since settles_within is {}",
                ago(*first, *effect),
                ago(*first, *undo),
                time(settings.settles_within_ms)
            ),
            (_, [_, ..], []) => format!("{done} was carried out, {ended}, and no undo of {done} was sent"),
            (_, _, _) => format!("{ended}, and what {agent} did for {done} stands"),
        },
        Kind::LineUndecided => format!("the order ended, and {line} was neither carried nor dropped as a whole"),
        Kind::StoppedByLine => {
            let each = rule.and_then(|rule| Some((rule.on_rejected, rule.for_each.as_ref()?.drop_max)));
            let why = match each {
                Some((Remedy::Drop, Some(DropMax::Lines(most)))) => format!("drop_max is {most}"),
                Some((Remedy::Drop, Some(DropMax::Percent(most)))) => {
                    let of = violation.line.as_ref().map_or(0, |line| line.of);
                    format!("{most}% of {of} lines is less than one (drop_max)")
                }
                Some((Remedy::Drop | Remedy::Hold | Remedy::Compensate, _)) | None => {
                    "a no past a pivot waits for a person, unless on_rejected is drop".to_owned()
                }
            };
            format!("{agent} said no to {step}, and the other lines were stopped with it: {why}")
        }
        Kind::NotShipped => format!("the order ended as Processed, and {agent} never carried {step} out"),
        Kind::Stuck => format!("an operator resubmitted and cancelled the order, and {step} did not get on"),
        Kind::TurnedForNothing => {
            format!("{step} was taken for rejected, and {agent} never said no")
        }
        Kind::GivenUp => match rule.and_then(|rule| rule.waits.within_ms).zip(service) {
            Some((within_ms, service)) if within_ms < service.later.within_ms => format!(
                "{step} was given up though {agent} was at work on it: its result may take {}, and wait_within is {}",
                time(service.later.within_ms),
                time(within_ms)
            ),
            Some(_) | None => format!("{step} was given up though {agent} was there"),
        },
        Kind::GivenUpInOutage => format!(
            "{agent} was away for a shorter time than {step} may be tried for, which is {}, and the order was given up",
            rule.map_or_else(String::new, |rule| time(rule.horizon_ms))
        ),
        Kind::WaitedTooShort => format!(
            "{agent} was called again while it was at work on {step}: its result may take {}, and wait_within is {}",
            service.map_or_else(String::new, |service| time(service.later.within_ms)),
            rule.and_then(|rule| rule.waits.within_ms).map_or_else(String::new, time)
        ),
        Kind::Unsendable => {
            let (is_undo, why) = violation.unsent.as_ref().map_or((false, ""), |(is_undo, why)| (*is_undo, &**why));
            let of = if is_undo { "the undo of " } else { "" };
            format!("{of}{step} could not be sent in any world, so {agent} was never called for it: {why}")
        }
        Kind::Late => match moments.iter().find(|moment| moment.what == What::Late) {
            Some(late) => format!(
                "the order{lines} was not finished {} after it was accepted, on a day on which nothing failed",
                ago(moments.first().map_or(0, |moment| moment.at_ms), late.at_ms)
            ),
            None => format!("the order{lines} was not finished at its deadline, on a day on which nothing failed"),
        },
        Kind::TooFast => {
            let limit = service.and_then(|service| service.limit).unwrap_or_default();
            format!("{agent} takes {limit} calls a second and was called more often, so it refused some with 429")
        }
        Kind::NotBraked => format!(
            "{agent} was away, and was called on and on: its breaker opens after {} failures in a row, so each call counts \
             against its order",
            settings.policy.health.failures_to_open
        ),
        Kind::Panicked => "a handler panicked: that is a fault of Stepwarden, please report it".to_owned(),
    }
}

fn rule_of<'f>(folder: &'f Folder, finding: &Finding) -> Option<&'f StepRule> {
    let pin = finding.violation.workflow.as_ref()?;
    let workflow = folder.shape.versions().find(|workflow| workflow.pin() == *pin)?;
    let step = finding.violation.step.as_ref()?;
    workflow.steps.iter().find(|rule| rule.name == *step)
}

/// A time for people, to the second if it is long.
#[must_use]
pub fn time(ms: u64) -> String {
    const HOUR: u64 = 3_600_000;
    match ms {
        ..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..HOUR => time_text(ms - ms % 1_000),
        // Whole minutes, and days with whole hours.
        HOUR..86_400_000 => format!("{}h{}", ms / HOUR, rest(ms % HOUR / 60_000, "m")),
        _ => format!("{}d{}", ms / (24 * HOUR), rest(ms / HOUR % 24, "h")),
    }
}

fn rest(count: u64, unit: &str) -> String {
    if count == 0 { String::new() } else { format!(" {count}{unit}") }
}
