//! Rule 21: a step that its agent declines goes to another agent, and stays with the first one that may have called.

use std::sync::Arc;

use crate::limits::{FALLBACKS_MAX, NAME_CHARS_MAX};
use crate::machine::testing::Case;
use crate::machine::{Dropped, Verdict, request};
use crate::message::{Deferral, Outcome, Reply, Request};
use crate::task::{ProcessState, Task, reason};

const WAIT_MS: u64 = 5_000;

/// The reply of the step's present attempt that declines it.
fn declining(case: &Case, name: &str, fallback: &[&str]) -> Reply {
    let fallback = Some(fallback.iter().map(|name| Arc::from(*name)).collect());
    case.reply_of(name, Outcome::Deferred(Deferral { wait_ms: WAIT_MS, fallback }))
}

fn decline(case: &mut Case, name: &str, fallback: &[&str]) {
    let reply = declining(case, name, fallback);
    assert_eq!(case.take(&reply), Verdict::Taken);
}

/// The present request of a step, and its agent.
fn sent(case: &Case, name: &str) -> (Arc<str>, Request) {
    let (index, _) = case.task.step(name).unwrap();
    let (agent, request) = request(&case.task, &case.workflow, index, &case.order(), case.now, 0).unwrap().unwrap();
    assert_eq!(request.agent, agent, "a request names its agent");
    (agent, request)
}

/// Agent and attempt of a step, and whether it may be declined.
fn asked(case: &Case, name: &str) -> (String, u32, bool) {
    let (agent, request) = sent(case, name);
    (agent.to_string(), request.attempt, request.may_decline)
}

fn started() -> Case {
    let mut case = Case::chain();
    case.wake();
    case
}

#[test]
fn a_declined_step_is_asked_of_the_next_agent_at_once_and_of_the_usual_one_after_a_wait() {
    let mut case = started();
    assert_eq!(asked(&case, "a"), ("any".to_owned(), 1, false), "the first attempt need not say so");
    for (attempt, agent) in [(2, "b"), (3, "c")] {
        decline(&mut case, "a", &["b", "c"]);
        assert_eq!(asked(&case, "a"), (agent.to_owned(), attempt, true));
        assert_eq!((case.requested(), case.wakes(), case.hops()), (vec!["a"], vec![], Some(1)));
    }
    decline(&mut case, "a", &[]);
    assert_eq!((case.states().as_str(), case.wakes(), &*case.step("a").agent), ("...", vec![WAIT_MS], "any"));
    case.retry_all();
    assert_eq!(asked(&case, "a"), ("any".to_owned(), 4, true), "and may decline again");
    let step = case.step("a");
    assert_eq!((step.failure_count, step.may_run_until, step.fallback.len()), (0, None, 0), "no call was made");
    decline(&mut case, "a", &["b"]);
    assert_eq!(asked(&case, "a").0, "b");
}

#[test]
fn the_history_says_who_is_asked_instead_and_stays_short() {
    let mut case = started();
    decline(&mut case, "a", &["b"]);
    let line = |case: &Case, back: usize| {
        let line = &case.task.history[case.task.history.len() - back];
        (case.words_of(line), line.why.as_deref().unwrap_or_default().to_owned())
    };
    assert_eq!(line(&case, 2), ("a put off #1".to_owned(), "any is failing, b is asked instead".to_owned()));
    decline(&mut case, "a", &[]);
    assert_eq!(line(&case, 1), ("a put off #2".to_owned(), "b is failing, any is asked again after a wait".to_owned()));
    let lines = case.task.history.len();
    for _ in 0..60 {
        case.retry_all();
        decline(&mut case, "a", &["b"]);
        decline(&mut case, "a", &[]);
    }
    assert_eq!(case.task.history.len(), lines, "an outage of all agents does not push out earlier lines");
}

#[test]
fn only_the_attempt_in_flight_can_be_declined() {
    let mut case = started();
    let reply = declining(&case, "a", &["b"]);
    case.take(&reply);
    assert_eq!(case.take(&reply), Verdict::Dropped(Dropped::StaleFailure));
    assert_eq!(asked(&case, "a"), ("b".to_owned(), 2, true));
}

#[test]
fn a_step_stays_with_the_first_agent_that_did_not_decline() {
    for expires in [true, false] {
        let mut case = started();
        decline(&mut case, "a", &["b", "c"]);
        if expires {
            case.expire_all();
        } else {
            let reply = case.reply_of("a", Outcome::Deferred(Deferral::after(WAIT_MS)));
            case.take(&reply);
        }
        case.retry_all();
        assert_eq!(asked(&case, "a"), ("b".to_owned(), 3, false));
        // It must not decline now. If it does, the step waits for it.
        decline(&mut case, "a", &["d"]);
        assert_eq!((case.states().as_str(), &*case.step("a").agent), ("...", "b"));
        assert!(case.step("a").may_run_until.is_some(), "a call may be under way");
    }
}

#[test]
fn a_step_is_undone_by_the_agent_that_was_asked_last() {
    let mut case = started();
    decline(&mut case, "a", &["b"]);
    case.done("a");
    case.rejected("b");
    assert_eq!(case.state(), ProcessState::Compensating);
    case.retry_all();
    case.done("b");
    case.retry_all();
    assert_eq!(asked(&case, "a"), ("b".to_owned(), 3, false));
    // An undo is never declined.
    decline(&mut case, "a", &["c"]);
    assert_eq!(&*case.step("a").agent, "b");
}

#[test]
fn a_paused_order_asks_the_next_agent_once_it_goes_on() {
    let mut case = started();
    case.pause();
    decline(&mut case, "a", &["b"]);
    assert_eq!(case.states(), "...");
    case.resume();
    assert_eq!(asked(&case, "a"), ("b".to_owned(), 2, true));
}

#[test]
fn a_step_that_is_declined_until_its_horizon_is_given_up_where_it_is() {
    let mut case = Case::new(&[("a", &[], "horizon = \"2h\"")], false);
    case.wake();
    case.pass_ms(2 * 60 * 60 * 1_000);
    decline(&mut case, "a", &["b"]);
    let code = case.task.reason.as_ref().map(|reason| &*reason.code);
    assert_eq!((case.state(), code), (ProcessState::Error, Some(reason::EXHAUSTED)));
    assert_eq!(&*case.step("a").agent, "any");
    case.resubmit();
    assert_eq!(asked(&case, "a"), ("any".to_owned(), 2, true));
}

#[test]
fn a_fallback_never_leads_back_to_its_own_agent_and_is_bounded() {
    let mut case = started();
    let endless = "b".repeat(NAME_CHARS_MAX + 1);
    decline(&mut case, "a", &["any", "", &endless, "any"]);
    assert_eq!((case.states().as_str(), case.wakes()), ("...", vec![WAIT_MS]));
    case.retry_all();
    decline(&mut case, "a", &["b"; 100]);
    assert_eq!(case.step("a").fallback.len(), FALLBACKS_MAX - 1);
}

#[test]
fn a_step_that_nothing_declined_is_stored_without_a_word_of_it_and_read_again() {
    let mut case = started();
    let text = serde_json::to_string(&case.task).unwrap();
    assert!(!text.contains("Declined") && !text.contains("Fallback"), "{text}");
    case.expire_all();
    case.retry_all();
    case.task = serde_json::from_str::<Task>(&serde_json::to_string(&case.task).unwrap()).unwrap();
    assert_eq!(asked(&case, "a"), ("any".to_owned(), 2, false));
    let mut case = started();
    decline(&mut case, "a", &["b", "c"]);
    let text = serde_json::to_string(&case.task).unwrap();
    assert!(text.contains("\"Declined\":1,\"Fallback\":[\"c\"]"), "{text}");
    assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), case.task);
}
