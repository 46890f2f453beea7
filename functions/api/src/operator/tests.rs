//! What operators ask for, and what they get.

use domain::limits::TEXT_CHARS_MAX;
use domain::message::Priority;
use domain::task::{Approvers, Direction, ProcessState, StepState, What};
use serde_json::json;

use super::*;
use crate::testing::{CALLER, Fake, pause, task_in};

const COMMAND: &str = r#"{"By":"ada","Reason":"payment is back"}"#;
const ACTIONS: [(Action, &str); 5] = [
    (Action::Resubmit, "resubmit"),
    (Action::Cancel, "cancel"),
    (Action::Pause, "pause"),
    (Action::Resume, "resume"),
    (Action::Close, "close"),
];

const SETTLE: &str =
    r#"{"Step":"charge-payment","Outcome":"Done","Output":{"Total": 1.10},"By":"ada","Reason":"at the bank"}"#;

/// A store with an order whose charge ended in this direction, and the path that settles it.
fn charge_ended(state: StepState, direction: Direction) -> (Fake, String) {
    let mut task = task_in("a", ProcessState::Error);
    let charge = task.steps.iter_mut().find(|step| *step.name == *"charge-payment").unwrap();
    (charge.process_state, charge.direction, charge.attempt) = (state, direction, 1);
    let fake = Fake::default();
    let order_id = fake.stores(task);
    (fake, format!("/orders/{order_id}/settle"))
}

#[test]
fn a_settle_is_queued_with_step_outcome_and_output() {
    for (direction, body, output) in [
        (Direction::Forward, SETTLE.to_owned(), Some("{\"Total\": 1.10}")),
        (Direction::Forward, SETTLE.replace("{\"Total\": 1.10}", "null"), Some("null")),
        (Direction::Forward, SETTLE.replace("\"Output\":{\"Total\": 1.10},", ""), None),
        (Direction::Undo, SETTLE.replace("Done\",\"Output\":{\"Total\": 1.10}", "Undone\""), None),
    ] {
        let (fake, path) = charge_ended(StepState::Error, direction);
        let answer = fake.post(&path, &[], &body);
        assert_eq!((answer.status, &answer.body["Action"]), (202, &json!("Settle")), "{body}");
        let [SchedulerMessage::Command(command)] = &fake.scheduled()[..] else { panic!("one command") };
        let settle = command.settle.as_ref().unwrap();
        assert_eq!((command.action, &*command.by, &*settle.step), (Action::Settle, "ada [shop]", "charge-payment"));
        assert_eq!((settle.outcome.direction(), settle.output.as_ref().map(Json::text)), (direction, output));
    }
}

#[test]
fn only_a_step_in_error_in_this_direction_is_settled() {
    for (state, direction, step, others) in [
        (StepState::Processed, Direction::Forward, "charge-payment", ""),
        (
            StepState::Error,
            Direction::Undo,
            "charge-payment",
            "; of those in Error: settle ID charge-payment --outcome undone",
        ),
        (
            StepState::Error,
            Direction::Forward,
            "ship-order",
            "; of those in Error: settle ID charge-payment --outcome done",
        ),
        (
            StepState::Error,
            Direction::Forward,
            "nothing",
            "; of those in Error: settle ID charge-payment --outcome done",
        ),
    ] {
        let (fake, path) = charge_ended(state, direction);
        let answer = fake.post(&path, &[], &SETTLE.replace("charge-payment", step));
        answer.is_problem(409, "state-conflict");
        assert_eq!(answer.body["detail"], format!("no such step is in Error in that direction{others} (it is Error)"));
        fake.queued_nothing();
    }
    let (fake, path) = order_in(ProcessState::Processing, "settle");
    fake.post(&path, &[], SETTLE).is_problem(409, "state-conflict");
}

#[test]
fn a_note_is_queued_with_its_words_and_whether_the_operator_takes_the_order_on() {
    for (more, take) in [("", None), (",\"Take\":true", Some(true))] {
        let (fake, path) = order_in(ProcessState::Processing, "note");
        let answer = fake.post(&path, &[], &format!("{{\"By\":\"ada\",\"Reason\":\"asked the bank\"{more}}}"));
        assert_eq!((answer.status, &answer.body["Action"]), (202, &json!("Note")));
        let [SchedulerMessage::Command(command)] = &fake.scheduled()[..] else { panic!("one command") };
        assert_eq!((command.action, &*command.reason, command.take), (Action::Note, "asked the bank", take));
    }
}

#[test]
fn a_note_that_nobody_would_write_is_refused_and_named() {
    let (fake, path) = order_in(ProcessState::Processing, "note");
    fake.post(&path, &[], r#"{"By":"ada","Reason":"x","Take":"yes"}"#).is_problem(400, "invalid-field");
    let answer = fake.post(&path, &[], r#"{"By":"ada","Reason":"x","Take":false}"#);
    answer.is_problem(409, "state-conflict");
    assert_eq!(answer.body["detail"], "no operator has taken the order on (it is Processing)");
    let (fake, path) = order_in(ProcessState::Processed, "note");
    fake.post(&path, &[], COMMAND).is_problem(409, "state-conflict");
    fake.queued_nothing();
}

#[test]
fn a_refusal_says_what_is_left_and_an_empty_body_what_to_send() {
    for (state, left) in [
        (ProcessState::Processing, "(it is Processing: cancel it, or wait)"),
        (ProcessState::Compensating, "(it is Compensating: wait until it is undone)"),
        (ProcessState::Processed, "(it is Processed)"),
    ] {
        let (fake, path) = order_in(state, "close");
        let detail = fake.post(&path, &[], COMMAND).body["detail"].to_string();
        assert!(detail.contains(left), "{detail}");
    }
    for action in ["resubmit", "settle", "note", "approve"] {
        let (fake, path) = order_in(ProcessState::Error, action);
        let answer = fake.post(&path, &[], "");
        answer.is_problem(400, "malformed-json");
        assert!(answer.body["detail"].to_string().contains("it is empty; send {"), "{}", answer.body);
    }
}

/// A store with an order that waits for people, and the path of a decision on it.
fn order_asking(submitter: &str, action: Action) -> (Fake, String) {
    let mut task = task_in("a", ProcessState::Processing);
    let step = &mut task.steps[0];
    (step.process_state, step.attempt, step.approval) = (StepState::Processing, 1, Some(Approvers::default()));
    step.waits_until = step.started_at.or(task.history.first().map(|line| line.at));
    task.history[0].who = submitter.into();
    let fake = Fake::default();
    let order_id = fake.stores(task);
    (fake, format!("/orders/{order_id}/{}", action.segment()))
}

#[test]
fn rule_40_a_decision_is_queued_with_who_why_and_the_step() {
    for action in [Action::Approve, Action::Reject] {
        for more in ["", ",\"Step\":\"reserve-inventory\""] {
            let (fake, path) = order_asking("web", action);
            let answer = fake.post(&path, &[], &format!("{{\"By\":\"ada\",\"Reason\":\"within budget\"{more}}}"));
            assert_eq!((answer.status, &answer.body["Action"]), (202, &json!(action.name())));
            let [SchedulerMessage::Command(command)] = &fake.scheduled()[..] else { panic!("one command") };
            assert_eq!(
                (command.action, &*command.by, command.step.as_deref()),
                (action, "ada [shop]", Some("reserve-inventory"))
            );
        }
    }
}

#[test]
fn rule_40_nobody_decides_on_an_order_of_their_own_or_on_another_step() {
    for (submitter, body, detail) in [
        (CALLER, COMMAND, format!("{CALLER} posted this order, so somebody else decides")),
        ("Ada", COMMAND, "Ada posted this order, so somebody else decides".to_owned()),
        (
            "web",
            r#"{"By":"ada","Reason":"x","Step":"ship-order"}"#,
            "no such step of the order waits for an approval: it may be decided already".to_owned(),
        ),
    ] {
        let (fake, path) = order_asking(submitter, Action::Approve);
        let answer = fake.post(&path, &[], body);
        answer.is_problem(409, "state-conflict");
        assert_eq!(answer.body["detail"], format!("{detail} (it is Processing)"));
        fake.queued_nothing();
    }
    let (fake, path) = order_asking("web", Action::Approve);
    fake.post(&path, &[], r#"{"By":"ada","Reason":"x","Outcome":"Done"}"#).names(400, "invalid-field", "Outcome");
}

#[test]
fn rule_46_an_erase_is_queued_once_and_only_for_an_order_that_is_over() {
    let (fake, path) = order_in(ProcessState::Error, "erase");
    fake.post(&path, &[], COMMAND).is_problem(409, "state-conflict");
    fake.queued_nothing();
    let mut task = task_in("a", ProcessState::Processed);
    (task.watch, task.watch_at) = (None, None);
    let fake = Fake::default();
    let path = format!("/orders/{}/erase", fake.stores(task.clone()));
    let body = COMMAND.replace('}', r#","CommandID":"letter-7"}"#);
    let answer = fake.post(&path, &[], &body);
    assert_eq!((answer.status, &answer.body["Action"]), (202, &json!("Erase")));
    let [SchedulerMessage::Command(command)] = &fake.scheduled()[..] else { panic!("one command") };
    assert_eq!((command.action, &*command.by), (Action::Erase, "ada [shop]"));
    let fake = Fake::default();
    task.erased_at = task.updated_at();
    fake.stores(task.clone());
    assert_eq!(fake.post(&path, &[], &body).body, answer.body, "a repeat is answered alike");
    fake.queued_nothing();
    assert!(fake.get(&path.replace("/erase", "")).body["ErasedAt"].is_string());
    task.process_state = ProcessState::Compensated;
    fake.stores(task);
    fake.post(&path.replace("erase", "again"), &[], COMMAND).is_problem(409, "state-conflict");
}

#[test]
fn a_settle_that_is_not_complete_is_400_and_named() {
    let (fake, path) = charge_ended(StepState::Error, Direction::Forward);
    let long = format!("\"{}\"", "x".repeat(OUTPUT_BYTES_MAX));
    for (from, to, name) in [
        ("\"Step\":\"charge-payment\",", "", "Step"),
        ("\"Done\"", "\"done\"", "Outcome"),
        ("\"Done\"", "\"Undone\"", "Output"),
        ("{\"Total\": 1.10}", &long, "Output"),
        ("\"By\":\"ada\",", "", "By"),
        ("\"By\"", "\"Force\":1,\"By\"", "Force"),
    ] {
        fake.post(&path, &[], &SETTLE.replace(from, to)).names(400, "invalid-field", name);
    }
    fake.queued_nothing();
}

#[test]
fn only_an_optional_step_is_settled_as_skipped() {
    let body = SETTLE.replace("Done\",\"Output\":{\"Total\": 1.10}", "Skipped\"");
    let (fake, path) = charge_ended(StepState::Error, Direction::Forward);
    let answer = fake.post(&path, &[], &body);
    answer.is_problem(409, "state-conflict");
    let detail = "only an optional step can be settled as skipped (it is Error)";
    assert_eq!(answer.body["detail"], detail);
    fake.queued_nothing();
    let mut task = task_in("b", ProcessState::Error);
    let charge = task.steps.iter_mut().find(|step| *step.name == *"charge-payment").unwrap();
    (charge.process_state, charge.attempt, charge.optional) = (StepState::Error, 1, true);
    let path = format!("/orders/{}/settle", fake.stores(task));
    fake.post(&path, &[], &SETTLE.replace("Done", "Skipped")).names(400, "invalid-field", "Output");
    assert_eq!(fake.post(&path, &[], &body).status, 202);
}

#[test]
fn a_cancel_past_a_pivot_is_refused_with_the_name_of_the_step() {
    let fake = Fake::default();
    let mut task = task_in("a", ProcessState::Processing);
    (task.steps[0].process_state, task.steps[0].attempt, task.steps[0].pivot) = (StepState::Processed, 1, true);
    let name = task.steps[0].name.clone();
    let answer = fake.post(&format!("/orders/{}/cancel", fake.stores(task)), &[], COMMAND);
    answer.is_problem(409, "state-conflict");
    let detail = format!("the order is past {name}: it only goes forward (it is Processing)");
    assert_eq!(answer.body["detail"], detail);
    fake.queued_nothing();
}

/// A store with one order in this state, and the path of an action on it.
fn order_in(state: ProcessState, action: &str) -> (Fake, String) {
    let fake = Fake::default();
    let order_id = fake.stores(task_in("a", state));
    (fake, format!("/orders/{order_id}/{action}"))
}

#[test]
fn a_resubmit_is_queued_with_operator_reason_and_the_version_that_was_seen() {
    let fake = Fake::default();
    let mut task = task_in("a", ProcessState::Error);
    task.version = 9;
    let order_id = fake.stores(task);
    let body = COMMAND.replace('}', r#","CommandID":"mend-7"}"#);
    let answer = fake.post(&format!("/orders/{order_id}/resubmit"), &[], &body);
    let expected =
        json!({"OrderID": order_id.to_string(), "Action": "Resubmit", "CommandID": "mend-7", "ProcessState": "Error"});
    assert_eq!((answer.status, &answer.body), (202, &expected));
    let command = Command {
        order_id,
        action: Action::Resubmit,
        by: "ada [shop]".into(),
        reason: "payment is back".into(),
        command_id: CommandId::given("mend-7".into()).unwrap(),
        version: Some(9),
        bulk: None,
        settle: None,
        take: None,
        step: None,
    };
    assert_eq!(fake.scheduled(), [SchedulerMessage::Command(command)]);
}

#[test]
fn a_command_without_an_id_gets_one_that_is_answered_and_queued() {
    let fake = Fake::default();
    let path = format!("/orders/{}/resubmit", fake.stores(task_in("a", ProcessState::Error)));
    let answer = fake.post(&path, &[], COMMAND);
    let [SchedulerMessage::Command(command)] = &fake.scheduled()[..] else { panic!("one command") };
    assert_eq!(answer.body["CommandID"], command.command_id.text());
    for id in ["", "a b", &"x".repeat(COMMAND_ID_CHARS_MAX + 1)] {
        let body = COMMAND.replace('}', &format!(r#","CommandID":"{id}"}}"#));
        fake.post(&path, &[], &body).names(400, "invalid-field", "CommandID");
    }
}

#[test]
fn a_command_that_the_history_shows_is_answered_again_and_not_queued_whatever_came_since() {
    let fake = Fake::default();
    let mut task = task_in("a", ProcessState::Processed);
    (task.history[0].what, task.history[0].command_id) = (What::Resubmitted, CommandId::given("mend-7".into()));
    let path = format!("/orders/{}/resubmit", fake.stores(task));
    let body = COMMAND.replace('}', r#","CommandID":"mend-7"}"#);
    let answer = fake.post(&path, &[("If-Match", "\"77\"")], &body);
    assert_eq!((answer.status, &answer.body["CommandID"]), (202, &json!("mend-7")));
    fake.queued_nothing();
    fake.post(&path, &[("If-Match", "77")], &body).names(400, "invalid-header", "If-Match");
    fake.post(&path, &[], COMMAND).is_problem(409, "state-conflict");
}

#[test]
fn a_command_goes_in_the_priority_of_its_order() {
    for priority in Priority::ALL {
        let fake = Fake::default();
        let mut task = task_in("a", ProcessState::Error);
        task.priority = priority;
        let order_id = fake.stores(task);
        fake.post(&format!("/orders/{order_id}/resubmit"), &[], COMMAND);
        assert_eq!(fake.priorities(), [format!("{priority:?} 0")]);
    }
}

#[test]
fn each_action_is_taken_in_the_states_that_allow_it_and_is_409_in_all_others() {
    for (action, word) in ACTIONS {
        for state in ProcessState::ALL {
            for is_paused in [false, true] {
                let mut task = task_in("a", state);
                task.paused = is_paused.then(pause);
                let expected = action.refusal(&task);
                let fake = Fake::default();
                let order_id = fake.stores(task);
                let answer = fake.post(&format!("/orders/{order_id}/{word}"), &[], COMMAND);
                let Some(why) = expected else {
                    assert_eq!((answer.status, &answer.body["Action"]), (202, &json!(action.name())), "{state}");
                    assert_eq!(fake.scheduled().len(), 1);
                    continue;
                };
                answer.is_problem(409, "state-conflict");
                assert_eq!(answer.body["ProcessState"], state.name());
                let detail = answer.body["detail"].as_str().unwrap();
                assert!(detail.contains(state.name()) && detail.contains(&why.to_string()), "{detail}");
                fake.queued_nothing();
            }
        }
    }
}

#[test]
fn an_order_is_paused_while_it_is_under_way_and_resumed_while_it_is_paused() {
    for (state, is_paused, action, status) in [
        (ProcessState::Pending, false, "pause", 202),
        (ProcessState::Processing, false, "pause", 202),
        (ProcessState::Compensating, false, "pause", 202),
        (ProcessState::Processing, true, "pause", 409),
        (ProcessState::Error, false, "pause", 409),
        (ProcessState::Processed, false, "pause", 409),
        (ProcessState::Pending, true, "resume", 202),
        (ProcessState::Processing, true, "resume", 202),
        (ProcessState::Compensating, true, "resume", 202),
        (ProcessState::Processing, false, "resume", 409),
        (ProcessState::Compensated, false, "resume", 409),
    ] {
        let fake = Fake::default();
        let mut task = task_in("a", state);
        task.paused = is_paused.then(pause);
        let order_id = fake.stores(task);
        let answer = fake.post(&format!("/orders/{order_id}/{action}"), &[], COMMAND);
        assert_eq!(answer.status, status, "{action} in {state}, paused: {is_paused}");
    }
}

#[test]
fn a_refusal_says_in_words_what_is_in_the_way() {
    let (fake, path) = order_in(ProcessState::Processing, "resume");
    assert_eq!(fake.post(&path, &[], COMMAND).body["detail"], "the order is not paused (it is Processing)");
}

#[test]
fn a_command_that_is_not_complete_is_400_and_named() {
    let (fake, path) = order_in(ProcessState::Error, "resubmit");
    let long = format!(r#"{{"By":"{}","Reason":"x"}}"#, "x".repeat(TEXT_CHARS_MAX + 1));
    for (body, name) in [
        ("{}", "By"),
        (r#"{"By":"ada"}"#, "Reason"),
        (r#"{"Reason":"x"}"#, "By"),
        (r#"{"By":7,"Reason":"x"}"#, "By"),
        (r#"{"By":"ada","Reason":null}"#, "Reason"),
        (r#"{"By":"","Reason":"x"}"#, "By"),
        (r#"{"By":"ada","Reason":" \n"}"#, "Reason"),
        (r#"{"By":"\ud800","Reason":"x"}"#, "By"),
        (r#"{"By":"a\nda","Reason":"x"}"#, "By"),
        (r#"{"By":"ada\u0000","Reason":"x"}"#, "By"),
        (r#"{"By":"ada","Reason":"x","Force":true}"#, "Force"),
        (r#"{"by":"ada","Reason":"x"}"#, "by"),
        (&long, "By"),
    ] {
        fake.post(&path, &[], body).names(400, "invalid-field", name);
    }
    for body in ["", "{", r#"{"\ud800":1}"#] {
        fake.post(&path, &[], body).is_problem(400, "malformed-json");
    }
    fake.post(&path, &[], "[]").is_problem(400, "not-an-object");
    fake.post(&path, &[("Content-Type", "text/plain")], COMMAND).is_problem(415, "unsupported-media-type");
    fake.queued_nothing();
}

#[test]
fn an_order_that_is_not_there_is_404() {
    let fake = Fake::default();
    let unknown = OrderId::from_idempotency_key("shop", "never");
    for path in [format!("/orders/{unknown}/cancel"), "/orders/x/resubmit".to_owned()] {
        fake.post(&path, &[], COMMAND).is_problem(404, "order-not-found");
    }
    fake.queued_nothing();
}

#[test]
fn a_queue_or_store_that_is_down_is_503() {
    for port in ["store.task", "queues.to_scheduler"] {
        let (fake, path) = order_in(ProcessState::Error, "cancel");
        fake.down(port);
        fake.post(&path, &[], COMMAND).is_problem(503, "unavailable");
        fake.queued_nothing();
    }
}
