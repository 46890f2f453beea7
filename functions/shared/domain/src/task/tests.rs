use super::*;
use crate::json::Json;
use crate::limits::{ERROR_CHARS_MAX, SHARDS};
use crate::machine::testing::Case;
use crate::message::Outcome;

/// A line by a test.
pub(crate) fn line(at: Timestamp, what: What) -> Transition {
    Transition { at, who: "test".into(), what, why: None, command_id: None, bulk: None }
}

#[test]
fn a_new_task_has_every_step_pending_and_unclaimed() {
    let case = Case::chain();
    assert_eq!((case.task.version, case.task.process_state), (1, ProcessState::Pending));
    for step in &case.task.steps {
        assert_eq!((step.process_state, step.direction), (StepState::Pending, Direction::Forward));
        assert_eq!((&step.locked_by, step.complete_by, step.failure_count, step.attempt), (&None, None, 0, 0));
    }
}

#[test]
fn a_task_is_stored_under_the_names_of_the_design_and_read_back() {
    let mut case = Case::chain();
    case.wake();
    let text = serde_json::to_string(&case.task).unwrap();
    assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), case.task);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["OrderID"], case.task.order_id.to_string());
    assert_eq!(value["Watch"], format!("due#{:02}", case.task.order_id.shard(SHARDS)));
    assert!(value["WatchAt"].is_i64());
    let step = &value["Steps"][0];
    for name in ["Name", "Agent", "ProcessState", "LockedBy", "CompleteBy", "FailureCount", "Attempt", "Direction"] {
        assert!(step.get(name).is_some(), "{name}");
    }
    assert_eq!(value["Steps"][1]["LockedBy"], serde_json::Value::Null);
}

#[test]
fn an_output_that_is_null_is_kept() {
    let mut case = Case::chain();
    case.wake();
    case.take(&case.reply_of("a", Outcome::Done(Json::parse(b"null", 4).unwrap())));
    let text = serde_json::to_string(&case.task).unwrap();
    assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), case.task);
}

#[test]
fn a_task_grows_by_its_open_steps() {
    let mut case = Case::chain();
    case.wake();
    let open = case.task.growth_bytes();
    for left in [2, 1, 0] {
        case.done(["c", "b", "a"][left]);
        assert_eq!(case.task.growth_bytes(), open / 3 * left);
    }
}

#[test]
fn history_keeps_the_last_fifty_and_how_it_began() {
    let mut task = Case::chain().task;
    for n in 0..200 {
        task.record(line(Timestamp::from_epoch_ms(n), What::Other(Box::new(n.into()))));
    }
    assert_eq!(task.history.len(), HISTORY_MAX);
    let words: Vec<_> = task.lines().map(|line| line.what).collect();
    assert_eq!((&*words[0], &*words[1], &*words[HISTORY_MAX - 1]), ("submitted", "151", "199"));
}

#[test]
fn rule_46_the_last_hundred_jobs_are_known_though_the_history_dropped_their_lines() {
    let mut task = Case::chain().task;
    let job = |n: i64| format!("{n:012x}-0123456789abcdef");
    let jobs = |from, to| (from..to).map(|n| Arc::from(job(n))).collect::<BTreeSet<Arc<str>>>();
    for n in 0..60 {
        let bulk = Some(job(n).into());
        task.record(Transition { bulk, ..line(Timestamp::from_epoch_ms(n), What::Resubmitted) });
    }
    assert_eq!((task.jobs.len(), task.quoted().jobs()), (11, &jobs(0, 60)));
    let read: Task = serde_json::from_str(&serde_json::to_string(&task).unwrap()).unwrap();
    assert_eq!(read, task);
    for n in 60..300 {
        let bulk = Some(job(n).into());
        task.record(Transition { bulk, ..line(Timestamp::from_epoch_ms(n), What::Cancelled) });
    }
    assert_eq!((&task.jobs, task.quoted().jobs()), (&jobs(151, 251), &jobs(151, 300)));
}

#[test]
fn a_task_tells_when_its_order_was_submitted_also_after_many_transitions() {
    let mut task = Case::chain().task;
    let submitted_at = task.history[0].at;
    assert_eq!((task.submitted_at(), task.updated_at()), (Some(submitted_at), Some(submitted_at)));
    for n in 0..60 {
        task.record(line(Timestamp::from_epoch_ms(n), What::Paused));
    }
    assert_eq!((task.submitted_at(), task.updated_at()), (Some(submitted_at), Some(Timestamp::from_epoch_ms(59))));
}

#[test]
fn a_state_has_one_word_everywhere() {
    for state in ProcessState::ALL {
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.name()));
        assert_eq!((state.to_string().as_str(), state.name().parse()), (state.name(), Ok(state)));
    }
    assert_eq!("processed".parse::<ProcessState>(), Err(NotAState));
}

#[test]
fn status_goes_to_the_application_and_alerts_to_operators() {
    use NoticeKind::{
        OrderCompensated, OrderFailed, OrderLate, OrderNeedsOperator, OrderProcessed, OrderReceived,
        ReplyChannelFailing,
    };
    for (kinds, is_status) in [
        (&[OrderReceived, OrderProcessed, OrderFailed, OrderCompensated][..], true),
        (&[OrderNeedsOperator, ReplyChannelFailing, OrderLate], false),
    ] {
        assert!(kinds.iter().all(|kind| kind.is_status() == is_status), "{kinds:?}");
    }
}

#[test]
fn only_a_text_that_was_cut_says_so() {
    let whole = "é".repeat(ERROR_CHARS_MAX);
    assert_eq!(*shortened(&whole), *whole);
    assert_eq!(*shortened(&format!("{whole}x")), format!("{whole}…"));
}

#[test]
fn a_pause_that_ended_is_remembered_in_the_record_and_one_that_never_was_takes_no_room() {
    let mut task = Case::chain().task;
    let text = serde_json::to_string(&task).unwrap();
    assert!(!text.contains("Resumed"), "{text}");
    task.resumed = 7;
    let text = serde_json::to_string(&task).unwrap();
    assert!(text.contains("\"Resumed\":7"), "{text}");
    assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task);
}
