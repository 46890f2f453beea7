//! A stored line has one meaning; an ambiguous text is kept as it is.

use super::*;

/// A history as it is stored.
const STORED: &str = r#"[
    {"At":"2026-11-20T17:26:43.007Z","Who":"shop","What":"submitted"},
    {"At":"2026-11-20T17:26:44.000Z","Who":"scheduler-1","What":"reserve-inventory claimed #1"},
    {"At":"2026-11-20T17:26:45.000Z","Who":"scheduler-1","What":"reserve-inventory processed #1"},
    {"At":"2026-11-20T17:26:45.000Z","Who":"scheduler-1","What":"charge-payment claimed #1"},
    {"At":"2026-11-20T17:27:46.000Z","Who":"supervisor-1","What":"charge-payment re-pended #1","Why":"attempt 1 expired, failure 1 of 3"},
    {"At":"2026-11-20T17:27:47.000Z","Who":"scheduler-2","What":"charge-payment put off #2"},
    {"At":"2026-11-20T17:27:48.000Z","Who":"scheduler-2","What":"charge-payment claimed #3"},
    {"At":"2026-11-20T17:27:49.000Z","Who":"scheduler-2","What":"charge-payment given up #3"},
    {"At":"2026-11-20T17:27:49.000Z","Who":"scheduler-2","What":"Error","Why":"charge-payment: no (declined)"},
    {"At":"2026-11-20T17:28:00.000Z","Who":"ann","What":"resubmitted","Why":"bulk 0193494e5c8f-00ab54a98ceb1f0a: it is back"},
    {"At":"2026-11-20T17:28:01.000Z","Who":"ann","What":"resubmitted","Why":"bulk goods: it is back"},
    {"At":"2026-11-20T17:28:02.000Z","Who":"bob","What":"paused","Why":"stock-taking"},
    {"At":"2026-11-20T17:28:03.000Z","Who":"bob","What":"resumed","Why":"done"},
    {"At":"2026-11-20T17:28:04.000Z","Who":"scheduler-1","What":"Compensating","Why":"cancelled by bob: enough"},
    {"At":"2026-11-20T17:28:04.000Z","Who":"bob","What":"cancelled","Why":"enough"},
    {"At":"2026-11-20T17:28:05.000Z","Who":"scheduler-1","What":"undo of charge-payment claimed #4"},
    {"At":"2026-11-20T17:29:06.000Z","Who":"supervisor-1","What":"undo of charge-payment re-pended #4","Why":"attempt 4 expired, failure 1 of 3"},
    {"At":"2026-11-20T17:29:07.000Z","Who":"scheduler-1","What":"undo of charge-payment processed #5"},
    {"At":"2026-11-20T17:29:08.000Z","Who":"scheduler-1","What":"Compensated"}
]"#;

fn read(lines: &str) -> Vec<Transition> {
    serde_json::from_str(lines).unwrap()
}

fn attempt(step: &str, direction: Direction, number: u32) -> Attempt {
    Attempt { step: step.into(), direction, number }
}

fn forward(step: &str, number: u32) -> Attempt {
    attempt(step, Direction::Forward, number)
}

#[test]
fn a_history_is_read_as_typed_values() {
    let undo = |number| attempt("charge-payment", Direction::Undo, number);
    let state = |state| What::Entered { state };
    let by_job = What::Resubmitted { bulk: Some("0193494e5c8f-00ab54a98ceb1f0a".into()) };
    let expected = [
        What::Submitted,
        What::Claimed(forward("reserve-inventory", 1)),
        What::Processed(forward("reserve-inventory", 1)),
        What::Claimed(forward("charge-payment", 1)),
        What::Expired(forward("charge-payment", 1)),
        What::Deferred(forward("charge-payment", 2)),
        What::Claimed(forward("charge-payment", 3)),
        What::GivenUp(forward("charge-payment", 3)),
        state(ProcessState::Error),
        by_job,
        What::Resubmitted { bulk: None },
        What::Paused,
        What::Resumed,
        state(ProcessState::Compensating),
        What::Cancelled,
        What::Claimed(undo(4)),
        What::Expired(undo(4)),
        What::Processed(undo(5)),
        state(ProcessState::Compensated),
    ];
    let history = read(STORED);
    let kinds: Vec<What> = history.iter().map(|line| line.what.clone()).collect();
    assert_eq!(kinds, expected);
    assert_eq!(history[4].why.as_deref(), Some("attempt 1 expired, failure 1 of 3"));
}

#[test]
fn a_step_that_was_settled_by_hand_has_a_word_of_its_own() {
    for (direction, words) in [(Direction::Forward, "ship settled #3"), (Direction::Undo, "undo of ship settled #3")] {
        let settled = What::Settled(attempt("ship", direction, 3));
        assert_eq!((settled.to_string().as_str(), settled.kind()), (words, "Settled"));
        assert_eq!(What::read(words, None), settled);
    }
}

#[test]
fn a_rejected_step_has_a_word_of_its_own() {
    let line = r#"[{"At":"2026-11-20T17:27:49.000Z","Who":"scheduler-2","What":"undo of charge-payment rejected #4"}]"#;
    let rejected = What::Rejected(attempt("charge-payment", Direction::Undo, 4));
    assert_eq!(read(line)[0].what, rejected);
    assert_eq!((rejected.to_string().as_str(), rejected.kind()), ("undo of charge-payment rejected #4", "Rejected"));
}

#[test]
fn a_line_is_stored_as_it_was_read_and_its_words_leave_out_the_attempt_of_an_expiry() {
    let history = read(STORED);
    let stored: serde_json::Value = serde_json::from_str(STORED).unwrap();
    assert_eq!(serde_json::to_value(&history).unwrap(), stored);
    for (line, stored) in history.iter().zip(stored.as_array().unwrap()) {
        let is_expired = matches!(line.what, What::Expired(_));
        let words = if is_expired { "charge-payment re-pended" } else { stored["What"].as_str().unwrap() };
        assert_eq!(line.what.to_string(), words);
    }
}

#[test]
fn a_text_that_could_mean_another_thing_is_kept_as_it_is() {
    for text in [
        "",
        "retried",
        "Submitted",
        "claimed #1",
        " claimed #1",
        "a claimed",
        "a claimed #",
        "a claimed #+1",
        "a claimed #01",
        "a claimed #1 ",
        "a claimed #4294967296",
        "a  claimed #1",
        "a finished #1",
        "x claimed claimed #1",
        "undo of undo of a claimed #1",
        "undo of  claimed #1",
        "a re-pended",
        "a exhausted #1",
    ] {
        let what = What::read(text, None);
        assert_eq!(what, What::Other { text: text.into() });
        assert_eq!((what.to_string(), &*what.stored()), (text.to_owned(), text));
    }
}

#[test]
fn a_step_whose_name_reads_like_a_line_breaks_nothing() {
    let odd = forward("x claimed", 7);
    let what = What::Claimed(odd.clone());
    assert_eq!(what.to_string(), "x claimed claimed #7");
    assert_eq!(What::read(&what.stored(), None).to_string(), what.to_string(), "the words stay");
    assert_ne!(what, What::Processed(odd));
}

#[test]
fn only_what_has_the_form_of_a_job_id_is_a_job() {
    let id = "0193494e5c8f-00ab54a98ceb1f0a";
    assert_eq!(bulk_of(&(bulk_mark(id) + "it is back")), Some(id));
    for other in [
        "it is back",
        "bulk",
        "bulk goods: they are back",
        "bulk 0193494e5c8f-00ab54a98ceb1f0a",
        "bulk 0193494e5c8-00ab54a98ceb1f0a: a digit is missing",
        "bulk 0193494e5c8f-00ab54a98ceb1f0: a digit is missing",
        "bulk 00193494e5c8f-00ab54a98ceb1f0a: a digit too many",
        "bulk 0193494e5c8g-00ab54a98ceb1f0a: no digit",
        "bulk 0193494e5c8f-00ab54a98ceb1f0A: no digit",
        "Bulk 0193494e5c8f-00ab54a98ceb1f0a: another word",
    ] {
        assert_eq!(bulk_of(other), None, "{other}");
    }
}

#[test]
fn a_line_is_shown_in_words_with_the_typed_members_beside_them() {
    let shown = |what| {
        let at = Timestamp::from_epoch_ms(1_795_195_603_007);
        serde_json::to_value(Line::from(&Transition { at, who: "s".into(), what, why: Some("so".into()) })).unwrap()
    };
    let line = |more: serde_json::Value| {
        let mut line = serde_json::json!({"At": "2026-11-20T17:26:43.007Z", "Who": "s", "Why": "so"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let undo = attempt("a", Direction::Undo, 2);
    for (what, expected) in [
        (
            What::Claimed(undo.clone()),
            serde_json::json!({"What": "undo of a claimed #2", "Kind": "Claimed", "Step": "a", "Direction": "Undo", "Attempt": 2}),
        ),
        (
            What::Expired(undo),
            serde_json::json!({"What": "a re-pended", "Kind": "Expired", "Step": "a", "Direction": "Undo", "Attempt": 2}),
        ),
        (
            What::Entered { state: ProcessState::Error },
            serde_json::json!({"What": "Error", "Kind": "Entered", "State": "Error"}),
        ),
        (What::Resubmitted { bulk: None }, serde_json::json!({"What": "resubmitted", "Kind": "Resubmitted"})),
        (
            What::Resubmitted { bulk: Some("j".into()) },
            serde_json::json!({"What": "resubmitted", "Kind": "Resubmitted", "Bulk": "j"}),
        ),
        (What::Other { text: "retried".into() }, serde_json::json!({"What": "retried", "Kind": "Other"})),
    ] {
        assert_eq!(shown(what), line(expected));
    }
}
