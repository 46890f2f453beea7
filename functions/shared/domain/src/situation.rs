//! The words for the situation of an order: its wait, and the operator's remedy. Console, command line and alerts show
//! them.
//!
//! A situation follows from the task alone, without a clock. So the same version always has the same description: the
//! entity tag of an order is its version.

mod outage;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::child;
use crate::task::{Attempt, Direction, ProcessState, Reason, Step, StepError, StepState, Task, What, reason};
use crate::template::NOT_KEPT;
use crate::time::Timestamp;
use crate::workflow::{LINE, ORDERS};

pub use outage::{outage, outage_text, outage_to_do};

/// How an order stands, in words. It follows from the order's version alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Situation {
    /// In one sentence.
    pub head: String,
    /// Reasons and details. It may repeat what a service said, in which nothing is redacted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What an operator does about it. Missing once the order is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<Cow<'static, str>>,
    /// Whether the order waits: for an operator, for the end of a pause, or until a step may be tried again.
    pub waits: bool,
}

/// The meaning of a reason code, and the usual remedy for an order that is in `Error` for it.
#[must_use]
pub fn explain(code: &str) -> (&'static str, &'static str) {
    match code {
        reason::EXHAUSTED => (
            "A service failed or gave no answer too often, or until the horizon of the step was over.",
            "Restore the service, then resubmit: the step starts afresh under the same idempotency key. If its horizon is \
             over, the service may have forgotten that key: look there first, and settle the step if it was done.",
        ),
        reason::REJECTED => (
            "The service refused the step for good, and the workflow holds the order then.",
            "Resubmit once the cause is gone, or cancel: then every step that was begun is undone. Or carry the step out \
             by hand at the service, then settle it as done.",
        ),
        reason::COMPENSATION_FAILED => (
            "An undo was refused, failed or got no answer.",
            "Remove the cause at the service, then resubmit: the undo goes on. Or undo the step by hand at the service, \
             then settle it as undone. If neither is possible, close the order: it ends as it is.",
        ),
        reason::DEAD_LETTER => (
            "A message that the order needs could not be handled, time and again.",
            "Find the cause in the log, then resubmit: that makes a new attempt.",
        ),
        reason::HOP_LIMIT => (
            "The order's messages went round in circles. That is a fault of the program.",
            "Report it. A resubmit lets the order go on.",
        ),
        reason::LATE => (
            "The order was not finished at its deadline, and the workflow holds it then.",
            "Resubmit it: it goes on, and its deadline does not stop it again. Or cancel it: then every step that was \
             begun is undone.",
        ),
        reason::CLOSED => ("An operator closed the order.", "Nothing: its steps stay as they are."),
        reason::CANCELLED => ("An operator cancelled the order.", "Nothing: every step that was begun is undone."),
        _ => ("The order stands still.", "Look at its steps, then resubmit or cancel it."),
    }
}

/// The same for a step that a service took on, and told no result of.
const NO_RESULT: (&str, &str) = (
    "A service took the call on, and its result did not come.",
    "Ask the service what became of it. Then settle the step as done, or resubmit: the service is asked again under the \
     same key.",
);

/// Behind the remedy for a line.
const DROP_ITS_LINE: &str = " Or settle it as dropped: its line is undone, and the order goes on without it.";

/// The same for a step whose service answers without what the workflow keeps (rule 19).
const NOT_KEPT_IN_ERROR: (&str, &str) = (
    "The workflow's `keep` and the answer of the service disagree.",
    "Correct `keep` in a new version of the workflow and apply it. Then cancel this order and post it again.",
);

/// The same for an approval: the time for a decision is over, or the order was rejected.
const NO_DECISION: (&str, &str) = (
    "Nobody decided on the order in time.",
    "Resubmit: it is asked for again. Or cancel: then every step that was begun is undone.",
);
const NOT_APPROVED: (&str, &str) = (
    "The order was not approved, and the workflow holds it then.",
    "Cancel: then every step that was begun is undone. Or resubmit: the approval is asked for again.",
);

/// The same for a step whose child order has ended (rule 49). Its id follows from the step, so a resubmit finds it again.
const CHILD_ENDED: (&str, &str) = (
    "The order that the step made has ended without its work, and the workflow holds the order then.",
    "A resubmit finds that order again. So have its work done in another way, then settle the step as done. Or cancel: \
     then every step that was begun is undone.",
);
const CHILD_ENDED_PAST_PIVOT: &str = "A resubmit finds that order again. So have its work done in another way, then settle \
                                      the step as done. If that is impossible, close the order: it ends as it is.";
const CHILD_STAYS: (&str, &str) = (
    "The order that the step made cannot be cancelled any more.",
    "A resubmit finds that order again. So take its work back in another way, then settle the step as undone. If that is \
     impossible, close the order: it ends as it is.",
);

/// The remedy where a result contradicts the end of an order.
const CONTRADICTED: &str = "Look at the service what holds, and put it right there. The order itself stays as it is.";

/// The step for which the order stopped.
fn given_up(task: &Task) -> Option<&Step> {
    let named = task.reason.as_ref().and_then(|reason| task.step(reason.step.as_ref()?));
    let is_failed = |step: &&Step| step.process_state == StepState::Error;
    named.map(|(_, step)| step).filter(is_failed).or_else(|| task.steps.iter().find(is_failed))
}

/// Whether it is an approval.
fn gave_up_approval(task: &Task) -> bool {
    given_up(task).is_some_and(|step| step.approval.is_some())
}

/// Whether the step that was given up was taken on in its last attempt (rule 36).
fn lacks_result(task: &Task) -> bool {
    given_up(task).is_some_and(|step| {
        let is_its_last = |attempt: &Attempt| {
            (attempt.name(&task.steps), attempt.direction, attempt.number)
                == (&*step.name, step.direction, step.attempt)
        };
        task.history.iter().any(|line| matches!(&line.what, What::Accepted(attempt) if is_its_last(attempt)))
    })
}

/// Whether the step that was given up has a child order whose end cannot change.
fn child_ended(task: &Task) -> bool {
    let error = given_up(task).filter(|step| *step.agent == *ORDERS).and_then(|step| step.last_error.as_ref());
    error.is_some_and(|error| child::code::OF_CHILDREN.contains(&&*error.code))
}

/// Whether the last call of a step lacked what the workflow keeps of its answer.
fn lacks_kept(problem: &str) -> bool {
    problem.contains(NOT_KEPT)
}

/// The remedy for an order in `Error` that cannot be cancelled, since it is past a pivot.
fn only_forward(code: &str, usual: &'static str) -> &'static str {
    match code {
        reason::REJECTED => {
            "Resubmit once the cause is gone. Or carry the step out by hand at the service, then settle it as done. If \
             neither is possible, close the order: it ends as it is."
        }
        reason::LATE => "Resubmit it: it goes on, and its deadline does not stop it again.",
        reason::EXHAUSTED | reason::COMPENSATION_FAILED | reason::DEAD_LETTER | reason::HOP_LIMIT => usual,
        _ => "Look at its steps, then resubmit it.",
    }
}

/// The step that an order in `Error` waits with: the one that is given up, otherwise the one that its reason names.
#[must_use]
pub fn step_in_error(task: &Task) -> Option<&str> {
    let given_up = task.steps.iter().find(|step| step.process_state == StepState::Error).map(|step| &*step.name);
    given_up.or_else(|| task.reason.as_ref()?.step.as_deref())
}

impl Situation {
    /// The situation of a task.
    #[must_use]
    pub fn of(task: &Task) -> Self {
        let reason = task.reason.as_ref();
        match (task.process_state, &task.paused) {
            (ProcessState::Processed, _) => Self::over(task, "Processed.", done(task)),
            (ProcessState::Compensated, _) => {
                let text = joined([because(reason), "Every step that was begun is undone.".to_owned()]);
                Self::over(task, "Compensated.", text)
            }
            (ProcessState::Closed, _) => Self::over(task, "Closed.", closed(reason)),
            (ProcessState::Error, _) => in_error(task),
            (ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating, Some(pause)) => {
                let is_busy = task.steps.iter().any(|step| step.process_state == StepState::Processing);
                let busy =
                    if is_busy { "An attempt in flight may end. No new step starts." } else { "No new step starts." };
                Self {
                    head: format!("Paused by {} since {}: {}", pause.by, pause.since, sentence(&pause.reason)),
                    text: busy.to_owned(),
                    to_do: Some("Resume the order once the reason is gone.".into()),
                    waits: true,
                }
            }
            (ProcessState::Pending | ProcessState::Processing, None) => under_way(task, Direction::Forward),
            (ProcessState::Compensating, None) => under_way(task, Direction::Undo),
        }
    }

    /// An order that has ended. A result that came later may contradict that (rule 5).
    fn over(task: &Task, head: &str, text: String) -> Self {
        let told = task.history.iter().rfind(|line| matches!(line.what, What::Contradicted(_)));
        let contradicted = told.and_then(|line| {
            let step = line.what.attempt()?.name(&task.steps);
            Some(format!("But a result came at {} for {step}: {}.", line.at, line.why.as_deref()?))
        });
        Self {
            head: head.to_owned(),
            to_do: contradicted.is_some().then_some(CONTRADICTED.into()),
            text: joined([text, contradicted.unwrap_or_default()]),
            waits: false,
        }
    }
}

/// The end of an order whose steps are all done or skipped.
fn done(task: &Task) -> String {
    let is_skipped = |step: &Step| step.process_state == StepState::Skipped && !step.dropped;
    let done = if task.steps.iter().any(is_skipped) { "Every step is done or skipped." } else { "Every step is done." };
    let [carried, dropped] = task.carried_lines();
    let lines = (!dropped.is_empty()).then(|| {
        let all = carried.len() + dropped.len();
        format!("{} of {all} lines were dropped, and are undone.", dropped.len())
    });
    joined([done.to_owned(), lines.unwrap_or_default()])
}

/// Why a cancel is refused, where an operator may look for it (rule 34).
fn past_pivot(task: &Task) -> String {
    task.past_pivot().map_or_else(String::new, |step| format!("The order is past {step}: only forward."))
}

/// That the order is past its deadline (rule 37).
fn late(task: &Task) -> String {
    let at = task.complete_by.filter(|_| task.late_since.is_some());
    at.map_or_else(String::new, |at| format!("The order is late: its deadline was {at}."))
}

/// Why an order is in `Error`, and the remedy.
#[must_use]
pub fn remedy(task: &Task) -> (&'static str, &'static str) {
    let code = task.reason.as_ref().map_or("", |reason| &reason.code);
    let (meaning, usual) = match code {
        reason::REJECTED if child_ended(task) && task.past_pivot().is_some() => {
            return (CHILD_ENDED.0, CHILD_ENDED_PAST_PIVOT);
        }
        reason::REJECTED if child_ended(task) => CHILD_ENDED,
        reason::COMPENSATION_FAILED if child_ended(task) => CHILD_STAYS,
        reason::EXHAUSTED if gave_up_approval(task) => NO_DECISION,
        reason::REJECTED if gave_up_approval(task) => NOT_APPROVED,
        reason::EXHAUSTED if lacks_result(task) => NO_RESULT,
        reason::EXHAUSTED if task.reason.as_ref().is_some_and(|reason| lacks_kept(&reason.message)) => {
            NOT_KEPT_IN_ERROR
        }
        _ => explain(code),
    };
    (meaning, if task.past_pivot().is_some() { only_forward(code, usual) } else { usual })
}

/// Until when a settle and a close are refused, if a call had no answer (rule 16).
fn may_run(task: &Task) -> String {
    let open =
        task.steps.iter().filter(|step| !matches!(step.process_state, StepState::Processed | StepState::Skipped));
    let last = open.filter_map(|step| Some((step.may_run_until?, &step.name))).max();
    last.map_or_else(String::new, |(until, step)| {
        format!(
            "A call for {step} may have its effect until {until}: a close, or a settle of {step}, comes after that."
        )
    })
}

fn in_error(task: &Task) -> Situation {
    let reason = task.reason.as_ref();
    let (meaning, to_do) = remedy(task);
    let earlier = reason.and_then(|reason| reason.earlier.as_deref());
    let undone =
        earlier.map_or_else(String::new, |earlier| format!("The order was being undone. {}", because(Some(earlier))));
    let message = reason.map_or_else(String::new, |reason| upper(&sentence(&reason.message)));
    Situation {
        head: match reason {
            None => "Waiting for an operator.".to_owned(),
            Some(Reason { code, step: None, .. }) => format!("Waiting for an operator: {code}."),
            Some(Reason { code, step: Some(step), .. }) => format!("Waiting for an operator: {code} at {step}."),
        },
        text: joined([meaning.to_owned(), message, undone, may_run(task), late(task), past_pivot(task)]),
        to_do: Some(if may_be_dropped(task) { [to_do, DROP_ITS_LINE].concat().into() } else { to_do.into() }),
        waits: true,
    }
}

/// Whether the order may go on without the line of the step that it waits with (rule 50).
fn may_be_dropped(task: &Task) -> bool {
    let step = step_in_error(task).filter(|name| name.contains(LINE)).and_then(|name| task.step(name));
    let [carried, _] = task.carried_lines();
    step.is_some_and(|(_, step)| step.direction == Direction::Forward) && carried.len() > 1
}

/// Steps that are named; of more it is said how many they are.
const SHOWN_MAX: usize = 5;

/// An order whose steps run in this direction: its steps in flight and its waiting steps, or else the next step.
fn under_way(task: &Task, direction: Direction) -> Situation {
    let is_open = |step: &&Step| match direction {
        Direction::Forward => matches!(step.process_state, StepState::Pending | StepState::Processing),
        Direction::Undo => step.direction == Direction::Undo && step.process_state != StepState::Processed,
    };
    let has_time = |step: &Step| step.not_before.is_some() || task.wait_of(step).is_some();
    let is_begun = |step: &&Step| step.process_state == StepState::Processing || has_time(step);
    let mut shown: Vec<&Step> = task.steps.iter().filter(is_open).filter(is_begun).collect();
    if shown.is_empty() {
        shown.extend(match direction {
            Direction::Forward => task.steps.iter().find(is_open),
            Direction::Undo => task.steps.iter().rfind(is_open),
        });
    }
    let undone = match direction {
        Direction::Forward => String::new(),
        Direction::Undo => joined(["The order is being undone.".to_owned(), because(task.reason.as_ref())]),
    };
    let more = shown.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0);
    let more = more.map(|more| format!("{more} more steps are under way."));
    let errors =
        shown.iter().take(SHOWN_MAX).filter_map(|step| step.last_error.as_ref()).map(|error| match &*error.code {
            StepError::RETRYING => format!("A call of attempt {} failed: {}", error.attempt, sentence(&error.message)),
            code => format!("Last error, of attempt {}: {} ({code}).", error.attempt, error.message),
        });
    let texts: Vec<String> = std::iter::once(undone).chain(errors).chain([late(task), past_pivot(task)]).collect();
    let waits = |step: &&Step| step.is_awaited() || (step.process_state == StepState::Pending && has_time(step));
    Situation {
        head: match shown.is_empty() {
            true => "The order goes on in a moment.".to_owned(),
            false => joined(shown.iter().take(SHOWN_MAX).map(|step| of_step(step, task.wait_of(step))).chain(more)),
        },
        text: joined(texts),
        to_do: Some(nothing_to_do(task, &shown).into()),
        waits: shown.iter().any(waits),
    }
}

/// Why an operator has nothing to do about these steps.
fn nothing_to_do(task: &Task, shown: &[&Step]) -> &'static str {
    let awaited = shown.iter().filter(|step| step.is_awaited()).count();
    if shown.iter().any(|step| step.is_asked()) {
        return "Approve or reject it, in the console or with stepwarden approve and stepwarden reject.";
    }
    if !shown.is_empty() && shown.iter().all(|step| waits_out_a_call(step)) {
        return "Nothing. The undo starts then by itself.";
    }
    if shown.is_empty() || shown.iter().any(|step| task.wait_of(step).is_none()) {
        "Nothing. The supervisor replaces an attempt without an answer and a wake that was lost."
    } else if awaited == shown.len() {
        "Nothing. If no result comes by then, the attempt counts as failed and the service is asked again."
    } else if awaited > 0 {
        "Nothing. The order goes on when the result comes, or when the wait is over."
    } else if shown.iter().all(|step| step.waits_longer()) {
        "Nothing. It starts then. Once its service is well, a resubmit starts it at once."
    } else if task.past_pivot().is_some() {
        "Nothing. It starts then."
    } else {
        "Nothing. It starts then, and a cancel ends the wait."
    }
}

/// Whether an undo waits until no call of its step can have an effect any more (rule 16).
fn waits_out_a_call(step: &Step) -> bool {
    step.process_state == StepState::Pending
        && step.direction == Direction::Undo
        && step.not_before.is_some()
        && step.may_run_until == step.not_before
}

/// A step that is to come or in flight, and the end of its long wait.
fn of_step(step: &Step, wait: Option<Timestamp>) -> String {
    let work = match step.direction {
        Direction::Forward => step.name.to_string(),
        Direction::Undo => format!("the undo of {}", step.name),
    };
    if let Some(until) = wait {
        let at = step.poll.as_ref().and_then(|poll| poll.at);
        let asked_at = at.map(|at| format!("is asked for the result at {at}"));
        return match step.is_awaited() {
            true if step.is_asked() => asked(step, until),
            true => format!(
                "{} took {work} on, and {}: attempt {}, awaited until {until}.{}",
                upper(&step.agent),
                asked_at.as_deref().unwrap_or("tells the result later"),
                step.attempt,
                step.trouble_of_attempt().map(|trouble| format!(" Before that: {trouble}.")).unwrap_or_default()
            ),
            false if step.waits_longer() => {
                format!("{} waits until {until}{}, as the workflow says.", upper(&work), failures(step))
            }
            false => format!("{} waits until {until}, as the workflow or the order says.", upper(&work)),
        };
    }
    match (step.process_state, step.complete_by, step.not_before) {
        (StepState::Processing, Some(complete_by), _) => {
            // Whether the agent has called its service is not known here.
            let (work, number) = (upper(&work), step.attempt);
            format!("{work} was handed to {} (attempt {number}), answer due by {complete_by}.", step.agent)
        }
        (_, _, Some(not_before)) if waits_out_a_call(step) => {
            let name = &step.name;
            format!(
                "{} waits until {not_before}: until then a call for {name} may still have its effect.",
                upper(&work)
            )
        }
        (_, _, Some(not_before)) => format!("{} waits until {not_before}{}.", upper(&work), failures(step)),
        _ => format!("{} starts in a moment.", upper(&work)),
    }
}

fn asked(step: &Step, until: Timestamp) -> String {
    let role = step.approval.as_ref().and_then(|approvers| approvers.role.as_deref());
    let by = role.map(|role| format!(" by {role}")).unwrap_or_default();
    format!("Step {} waits for an approval{by}, until {until}.", step.name)
}

fn failures(step: &Step) -> String {
    match step.failure_count {
        0 => String::new(),
        1 => " (1 failure so far)".to_owned(),
        count => format!(" ({count} failures so far)"),
    }
}

fn closed(reason: Option<&Reason>) -> String {
    let words = |reason: &Reason| upper(&sentence(&reason.message));
    let earlier = reason.and_then(|reason| reason.earlier.as_deref());
    let before =
        earlier.map_or_else(String::new, |earlier| format!("It waited for: {}. {}", earlier.code, words(earlier)));
    joined([reason.map_or_else(String::new, words), "Its steps stay as they were.".to_owned(), before])
}

/// Why an order was compensated. A message that begins with its code is not told twice.
fn because(reason: Option<&Reason>) -> String {
    let words = |reason: &Reason| upper(&sentence(&reason.message));
    reason.map_or_else(String::new, |reason| match reason.message.starts_with(&*reason.code) {
        true => format!("Reason: {}", words(reason)),
        false => format!("Reason: {}. {}", reason.code, words(reason)),
    })
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> =
        parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// The text with a full stop at its end.
fn sentence(text: &str) -> String {
    let is_whole = text.is_empty() || text.ends_with(['.', '!', '?', '…']);
    if is_whole { text.to_owned() } else { format!("{text}.") }
}

fn upper(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests;
