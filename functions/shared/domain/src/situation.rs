//! The words for the situation of an order: its wait, and the operator's remedy. Console, command line and alerts show
//! them.
//!
//! A situation follows from the task alone, without a clock. So the same version always has the same description: the
//! entity tag of an order is its version.

use serde::Serialize;

use crate::ports::{Breaker, Outage, OutageReason, ServiceHealth};
use crate::task::{Direction, ProcessState, Reason, Step, StepError, StepState, Task, reason};

/// The situation of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Situation {
    /// One sentence.
    pub head: String,
    /// Reasons and details.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The operator's remedy. `None` once the order is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<&'static str>,
    /// Whether the order waits: for an operator, for the end of a pause, or for the time of a step's next attempt.
    pub waits: bool,
}

/// The meaning of a reason code, and the remedy for an order that is in `Error` for it.
#[must_use]
pub fn explain(code: &str) -> (&'static str, &'static str) {
    match code {
        reason::EXHAUSTED => (
            "A service gave no answer too often, or failed until the horizon of the step was over.",
            "Restore the service, then resubmit: the step starts afresh under the same idempotency key.",
        ),
        reason::REJECTED => (
            "The service refused the step for good, and the workflow holds the order then.",
            "Resubmit once the cause is gone, or cancel: then every step that was begun is undone. Or carry the step out \
             by hand at the service, then settle it as done.",
        ),
        reason::COMPENSATION_FAILED => (
            "An undo was refused or got no answer.",
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
        reason::CLOSED => ("An operator closed the order.", "Nothing: its steps stay as they are."),
        reason::CANCELLED => ("An operator cancelled the order.", "Nothing: every step that was begun is undone."),
        _ => ("The order stands still.", "Look at its steps, then resubmit or cancel it."),
    }
}

/// The remedy for an order in `Error` that cannot be cancelled, since it is past a pivot.
fn only_forward(code: &str, usual: &'static str) -> &'static str {
    match code {
        reason::REJECTED => {
            "Resubmit once the cause is gone. Or carry the step out by hand at the service, then settle it as done. If \
             neither is possible, close the order: it ends as it is."
        }
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

/// The effect of a failing service on the orders that wait for it, and the operator's remedy. `None` while requests go
/// through.
#[must_use]
pub fn outage(health: &ServiceHealth) -> Option<(String, String)> {
    let ServiceHealth { service, state, until, outage, .. } = health;
    let probe = match state {
        Breaker::Closed => return None,
        Breaker::Open => format!("the next probe is at {until}"),
        Breaker::HalfOpen => "a probe is in flight".to_owned(),
    };
    let text = match outage {
        Some(outage) => outage_text(service, outage),
        None => format!("{service} is failing"),
    };
    let reason = outage.as_ref().map_or(OutageReason::Failing, |outage| outage.reason);
    Some((format!("{text}; {probe}."), outage_to_do(service, reason)))
}

/// An outage in words, without a full stop.
#[must_use]
pub fn outage_text(service: &str, outage: &Outage) -> String {
    let Outage { reason, problem, since } = outage;
    let happens = match reason {
        OutageReason::Failing => "is failing",
        OutageReason::Misconfigured => "is misconfigured and refuses every call",
        OutageReason::Rejections => "rejects most steps",
    };
    format!("{service} {happens} since {since}: {problem}")
}

/// The operator's remedy for an outage.
#[must_use]
pub fn outage_to_do(service: &str, reason: OutageReason) -> String {
    let then = "Its orders wait, and then go on by themselves.";
    match reason {
        OutageReason::Failing => {
            format!("Restore {service}. Its orders then go on by themselves.")
        }
        OutageReason::Misconfigured => {
            format!("Mend the address, the credentials or the rights with which {service} is called. {then}")
        }
        OutageReason::Rejections => format!(
            "Look at the orders that were rejected last. Are the rejections wrong? Mend {service}. {then} \
             Are they right? Say so: stepwarden services accept-rejections {service} --reason TEXT"
        ),
    }
}

impl Situation {
    /// The situation of a task.
    #[must_use]
    pub fn of(task: &Task) -> Self {
        let reason = task.reason.as_ref();
        match (task.process_state, &task.paused) {
            (ProcessState::Processed, _) => Self::over("Processed.", done(task)),
            (ProcessState::Compensated, _) => {
                Self::over("Compensated.", joined([because(reason), "Every step that was begun is undone.".to_owned()]))
            }
            (ProcessState::Closed, _) => Self::over("Closed.", closed(reason)),
            (ProcessState::Error, _) => in_error(task),
            (ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating, Some(pause)) => {
                let is_busy = task.steps.iter().any(|step| step.process_state == StepState::Processing);
                let busy =
                    if is_busy { "An attempt in flight may end. No new step starts." } else { "No new step starts." };
                Self {
                    head: format!("Paused by {} since {}: {}", pause.by, pause.since, sentence(&pause.reason)),
                    text: busy.to_owned(),
                    to_do: Some("Resume the order once the reason is gone."),
                    waits: true,
                }
            }
            (ProcessState::Pending | ProcessState::Processing, None) => under_way(task, Direction::Forward),
            (ProcessState::Compensating, None) => under_way(task, Direction::Undo),
        }
    }

    fn over(head: &str, text: String) -> Self {
        Self { head: head.to_owned(), text, to_do: None, waits: false }
    }
}

/// The end of an order whose steps are all done or skipped.
fn done(task: &Task) -> String {
    let is_skipped = |step: &Step| step.process_state == StepState::Skipped;
    if task.steps.iter().any(is_skipped) { "Every step is done or skipped." } else { "Every step is done." }.to_owned()
}

/// Why a cancel is refused, where an operator may look for it (rule 34).
fn past_pivot(task: &Task) -> String {
    task.past_pivot().map_or_else(String::new, |step| format!("The order is past {step}: only forward."))
}

fn in_error(task: &Task) -> Situation {
    let reason = task.reason.as_ref();
    let code = reason.map_or("", |reason| &reason.code);
    let (meaning, usual) = explain(code);
    let to_do = if task.past_pivot().is_some() { only_forward(code, usual) } else { usual };
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
        text: joined([meaning.to_owned(), message, undone, past_pivot(task)]),
        to_do: Some(to_do),
        waits: true,
    }
}

/// An order whose steps run in this direction: its steps in flight and its waiting steps, or else the next step.
fn under_way(task: &Task, direction: Direction) -> Situation {
    let is_open = |step: &&Step| match direction {
        Direction::Forward => matches!(step.process_state, StepState::Pending | StepState::Processing),
        Direction::Undo => step.direction == Direction::Undo && step.process_state != StepState::Processed,
    };
    let is_begun = |step: &&Step| step.process_state == StepState::Processing || step.not_before.is_some();
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
    let errors = shown.iter().filter_map(|step| step.last_error.as_ref()).map(|error| match &*error.code {
        StepError::RETRYING => format!("A call of attempt {} failed: {}", error.attempt, sentence(&error.message)),
        code => format!("Last error, of attempt {}: {} ({code}).", error.attempt, error.message),
    });
    let texts: Vec<String> = std::iter::once(undone).chain(errors).chain([past_pivot(task)]).collect();
    let waits = |step: &&Step| step.process_state == StepState::Pending && step.not_before.is_some();
    Situation {
        head: match shown.is_empty() {
            true => "The order goes on in a moment.".to_owned(),
            false => joined(shown.iter().map(|step| of_step(step))),
        },
        text: joined(texts),
        to_do: Some("Nothing. The supervisor replaces an attempt without an answer and a wake that was lost."),
        waits: shown.iter().any(waits),
    }
}

fn of_step(step: &Step) -> String {
    let work = match step.direction {
        Direction::Forward => step.name.to_string(),
        Direction::Undo => format!("the undo of {}", step.name),
    };
    match (step.process_state, step.complete_by, step.not_before) {
        (StepState::Processing, Some(complete_by), _) => {
            format!("{} works on {work}: attempt {}, answer due by {complete_by}.", step.agent, step.attempt)
        }
        (_, _, Some(not_before)) if step.direction == Direction::Undo && step.may_run_until == Some(not_before) => {
            let name = &step.name;
            format!(
                "{} waits until {not_before}: until then a call for {name} may still have its effect.",
                upper(&work)
            )
        }
        (_, _, Some(not_before)) => {
            let failures = match step.failure_count {
                0 => String::new(),
                1 => " (1 failure so far)".to_owned(),
                count => format!(" ({count} failures so far)"),
            };
            format!("{} waits until {not_before}{failures}.", upper(&work))
        }
        _ => format!("{} starts in a moment.", upper(&work)),
    }
}

fn closed(reason: Option<&Reason>) -> String {
    let words = |reason: &Reason| upper(&sentence(&reason.message));
    let earlier = reason.and_then(|reason| reason.earlier.as_deref());
    let before =
        earlier.map_or_else(String::new, |earlier| format!("It waited for: {}. {}", earlier.code, words(earlier)));
    joined([reason.map_or_else(String::new, words), "Its steps stay as they were.".to_owned(), before])
}

/// Why an order was compensated.
fn because(reason: Option<&Reason>) -> String {
    reason.map_or_else(String::new, |reason| format!("Reason: {}. {}", reason.code, upper(&sentence(&reason.message))))
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> =
        parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// The text with a full stop at its end.
fn sentence(text: &str) -> String {
    match text {
        "" => String::new(),
        _ if text.ends_with(['.', '!', '?', '…']) => text.to_owned(),
        _ => format!("{text}."),
    }
}

fn upper(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::backoff::{Backoff, BackoffPolicy};
    use crate::machine::testing::Case;
    use crate::ports::Rejections;
    use crate::time::Timestamp;

    fn of(case: &Case) -> Situation {
        Situation::of(&case.task)
    }

    fn shown(case: &Case) -> (String, String) {
        let Situation { head, text, .. } = of(case);
        (head, text)
    }

    fn held() -> Case {
        Case::new(&[("a", &[], "on_rejected = \"hold\"")], false)
    }

    #[test]
    fn a_new_order_starts_in_a_moment() {
        let case = Case::chain();
        assert_eq!(shown(&case), ("A starts in a moment.".to_owned(), String::new()));
        assert!(!of(&case).waits && of(&case).to_do.is_some());
    }

    #[test]
    fn an_attempt_in_flight_is_named_with_its_deadline() {
        let mut case = Case::chain();
        case.wake();
        let complete_by = case.step("a").complete_by.unwrap();
        let head = format!("any works on a: attempt 1, answer due by {complete_by}.");
        assert_eq!(shown(&case), (head, String::new()));
        assert!(!of(&case).waits);
    }

    #[test]
    fn steps_side_by_side_are_all_named() {
        let mut case = Case::diamond();
        case.wake();
        case.done("a");
        case.wake();
        let (head, _) = shown(&case);
        assert!(head.contains("any works on b: attempt 1") && head.contains("any works on c: attempt 1"), "{head}");
        assert!(!head.contains("works on d"), "{head}");
    }

    #[test]
    fn a_retry_is_shown_with_its_time_and_the_number_of_failures() {
        let mut case = Case::chain();
        case.wake();
        case.expire_all();
        let not_before = case.step("a").not_before.unwrap();
        assert_eq!(of(&case).head, format!("A waits until {not_before} (1 failure so far)."));
        assert!(of(&case).waits);
        case.retry_all();
        case.expire_all();
        let not_before = case.step("a").not_before.unwrap();
        assert_eq!(of(&case).head, format!("A waits until {not_before} (2 failures so far)."));
        assert!(of(&case).text.starts_with("Last error, of attempt 2: "), "{}", of(&case).text);
    }

    #[test]
    fn a_finished_order_leaves_nothing_to_do() {
        let mut case = Case::new(&[("a", &[], "")], false);
        case.wake();
        case.done("a");
        assert_eq!(case.state(), ProcessState::Processed);
        assert_eq!(shown(&case), ("Processed.".to_owned(), "Every step is done.".to_owned()));
        assert_eq!((of(&case).to_do, of(&case).waits), (None, false));
    }

    #[test]
    fn a_cancelled_order_says_so_while_it_is_undone_and_afterwards() {
        let mut case = Case::chain();
        case.wake();
        case.cancel();
        let reason = "Reason: cancelled. Cancelled by ann: mended.";
        let not_before = case.step("a").not_before.unwrap();
        let text = format!("The order is being undone. {reason}");
        let until = "until then a call for a may still have its effect";
        assert_eq!(shown(&case), (format!("The undo of a waits until {not_before}: {until}."), text));
        assert!(of(&case).waits);
        case.retry_all();
        assert!(of(&case).head.starts_with("any works on the undo of a: attempt "), "{}", of(&case).head);
        assert!(!of(&case).waits);
        case.done("a");
        assert_eq!(case.state(), ProcessState::Compensated);
        let text = format!("{reason} Every step that was begun is undone.");
        assert_eq!(shown(&case), ("Compensated.".to_owned(), text));
        assert_eq!((of(&case).to_do, of(&case).waits), (None, false));
    }

    #[test]
    fn a_refused_step_waits_for_an_operator_with_its_reason() {
        let mut case = held();
        case.wake();
        case.rejected("a");
        assert_eq!(of(&case).head, "Waiting for an operator: rejected at a.");
        let (meaning, to_do) = explain("rejected");
        assert!(of(&case).text.starts_with(meaning), "{}", of(&case).text);
        assert_eq!((of(&case).to_do, of(&case).waits), (Some(to_do), true));
    }

    #[test]
    fn a_refused_undo_is_shown_with_the_reason_of_the_undo() {
        let mut case = Case::chain();
        case.wake();
        case.done("a");
        case.wake();
        case.rejected("b");
        for _ in 0..9 {
            case.wake();
            let open = case.task.steps.iter().find(|step| step.process_state == StepState::Processing);
            let Some(name) = open.map(|step| step.name.to_string()) else { break };
            case.rejected(&name);
        }
        assert_eq!(case.state(), ProcessState::Error);
        assert!(of(&case).head.starts_with("Waiting for an operator: compensation-failed at "), "{}", of(&case).head);
        assert!(of(&case).text.contains("The order was being undone. Reason: rejected."), "{}", of(&case).text);
    }

    #[test]
    fn a_paused_order_says_by_whom_and_whether_an_attempt_may_end() {
        let mut case = Case::chain();
        case.pause();
        let since = case.now;
        let head = format!("Paused by ann since {since}: mended.");
        assert_eq!(shown(&case), (head.clone(), "No new step starts.".to_owned()));
        assert!(of(&case).waits && of(&case).to_do.is_some());
        let mut case = Case::chain();
        case.wake();
        case.pause();
        assert_eq!(shown(&case), (head, "An attempt in flight may end. No new step starts.".to_owned()));
    }

    #[test]
    fn an_order_without_an_open_step_goes_on_in_a_moment() {
        let mut case = Case::new(&[("a", &[], "")], false);
        case.wake();
        case.done("a");
        case.task.process_state = ProcessState::Processing;
        assert_eq!(of(&case).head, "The order goes on in a moment.");
    }

    #[test]
    fn an_error_without_a_reason_and_one_of_a_later_version_have_words() {
        let mut case = held();
        case.wake();
        case.rejected("a");
        case.task.reason.as_mut().unwrap().code = "a-new-one".into();
        assert_eq!(of(&case).head, "Waiting for an operator: a-new-one at a.");
        assert!(of(&case).text.starts_with("The order stands still."), "{}", of(&case).text);
        case.task.reason.as_mut().unwrap().step = None;
        assert_eq!(of(&case).head, "Waiting for an operator: a-new-one.");
        case.task.reason = None;
        assert_eq!(shown(&case), ("Waiting for an operator.".to_owned(), "The order stands still.".to_owned()));
    }

    #[test]
    fn every_reason_code_has_its_own_words() {
        let codes = [
            reason::EXHAUSTED,
            reason::REJECTED,
            reason::COMPENSATION_FAILED,
            reason::DEAD_LETTER,
            reason::HOP_LIMIT,
            reason::CANCELLED,
            "another",
        ];
        let words: HashSet<_> = codes.into_iter().map(explain).collect();
        assert_eq!(words.len(), codes.len());
    }

    #[test]
    fn an_outage_is_described_only_while_requests_do_not_go_through() {
        let until = Timestamp::from_epoch_ms(1_000);
        let health = |state, outage| ServiceHealth {
            service: "payment".into(),
            version: 1,
            era: 0,
            state,
            failures_in_a_row: 5,
            until,
            backoff: Backoff::new(BackoffPolicy { slot_time_ms: 1_000, ceiling: 3, stay_at_ceiling: true }),
            since: until,
            release: None,
            outage,
            unsent: None,
            rejections: Rejections::default(),
            pace: None,
        };
        let of = |state, outage| super::outage(&health(state, outage)).map(|(text, _)| text);
        assert_eq!(of(Breaker::Closed, None), None);
        assert_eq!(of(Breaker::Open, None).unwrap(), format!("payment is failing; the next probe is at {until}."));
        let outage = |reason| Some(Outage { reason, problem: "HTTP 401".into(), since: until });
        let texts = [OutageReason::Failing, OutageReason::Misconfigured, OutageReason::Rejections]
            .map(|reason| of(Breaker::HalfOpen, outage(reason)).unwrap());
        let (because, probe) = (format!("since {until}: HTTP 401"), "a probe is in flight.");
        assert_eq!(
            texts,
            [
                format!("payment is failing {because}; {probe}"),
                format!("payment is misconfigured and refuses every call {because}; {probe}"),
                format!("payment rejects most steps {because}; {probe}"),
            ]
        );
        let (_, to_do) = super::outage(&health(Breaker::Open, outage(OutageReason::Rejections))).unwrap();
        assert!(to_do.contains("stepwarden services accept-rejections payment"), "{to_do}");
    }

    #[test]
    fn a_sentence_ends_with_one_full_stop() {
        assert_eq!([sentence("a"), sentence("a."), sentence("a?"), sentence("")], ["a.", "a.", "a?", ""]);
    }
}
