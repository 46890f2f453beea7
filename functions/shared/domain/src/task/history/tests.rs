//! A line has one stored form and one meaning, whatever people write and however steps are called.

use serde_json::{Value, json};

use super::*;
use crate::machine::testing::Case;
use crate::task::tests::line;

const AT: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_007);

fn attempt(step: usize, direction: Direction, number: u32) -> Attempt {
    Attempt { step, direction, number }
}

fn text(history: &[Transition]) -> String {
    let mut text = Vec::new();
    stored::serialize(history, &mut serde_json::Serializer::new(&mut text)).unwrap();
    String::from_utf8(text).unwrap()
}

fn read(text: &str) -> serde_json::Result<Vec<Transition>> {
    stored::deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// One of each kind.
fn all() -> Vec<What> {
    let of = attempt(3, Direction::Undo, 2);
    vec![
        What::Submitted,
        What::Claimed(attempt(0, Direction::Forward, 1)),
        What::Processed(attempt(0, Direction::Forward, 2)),
        What::Deferred(of),
        What::Expired(of),
        What::GivenUp(of),
        What::Rejected(of),
        What::Settled(of),
        What::Approved(of),
        What::Waiting(attempt(1, Direction::Forward, 0)),
        What::Accepted(of),
        What::Skipped(of),
        What::Contradicted(of),
        What::Entered(ProcessState::Error),
        What::Resubmitted,
        What::Cancelled,
        What::Paused,
        What::Resumed,
        What::Late,
        What::Noted(None),
        What::Noted(Some(true)),
        What::Noted(Some(false)),
        What::Erased,
    ]
}

#[test]
fn each_kind_is_read_as_it_was_written_and_has_a_letter_of_its_own() {
    let history: Vec<Transition> = all().into_iter().map(|what| line(AT, what)).collect();
    assert_eq!(read(&text(&history)).unwrap(), history);
    let letter = |what: &What| {
        let value = serde_json::to_value(what).unwrap();
        let name = value.as_object().and_then(|members| members.keys().next().cloned());
        name.unwrap_or_else(|| value.as_str().unwrap().to_owned())
    };
    let letters: std::collections::BTreeMap<String, &str> =
        all().iter().map(|what| (letter(what), what.kind())).collect();
    let kinds: std::collections::BTreeSet<&str> = letters.values().copied().collect();
    assert_eq!((letters.len(), kinds.len()), (21, 21), "{letters:?}");
}

#[test]
fn a_history_is_stored_short() {
    let at = |ms| AT.plus_ms(ms);
    let of = |step| attempt(step, Direction::Forward, 1);
    let by = |who: &str, at, what| Transition { who: who.into(), ..line(at, what) };
    let history = [
        by("shop", at(0), What::Submitted),
        by("scheduler-1f3a9c2e", at(12), What::Claimed(of(0))),
        by("scheduler-99b01d7c", at(2_512), What::Processed(of(0))),
        by("scheduler-99b01d7c", at(2_512), What::Claimed(of(1))),
        Transition {
            why: Some("no".into()),
            ..by("scheduler-99b01d7c", at(2_511), What::Entered(ProcessState::Error))
        },
        Transition { bulk: Some("j".into()), ..by("ann", at(2_511), What::Resubmitted) },
        Transition { command_id: CommandId::given("c".into()), ..by("ann", at(2_511), What::Paused) },
    ];
    let expected = concat!(
        r#"[["S",1795195603007,"shop"],[{"C":0},12,"scheduler-1f3a9c2e"],[{"P":0},2500,"~99b01d7c"],[{"C":1}],"#,
        r#"[{"E":"Error"},-1,null,"no"],["R",0,"ann",null,null,"j"],["H",0,null,null,"c"]]"#
    );
    assert_eq!(text(&history), expected);
    assert_eq!(read(expected).unwrap(), history);
}

#[test]
fn any_names_reasons_and_times_are_read_as_they_were_written() {
    let odd =
        ["", " ", "~", "~x", "~~", "a-", "a-~b", "a-b", "-", "--", "\"", "\\", "\n", "\u{0}", "\u{1F4A5}", "null"];
    let times = [0, -1, 1, i64::MIN, i64::MAX, 1_795_176_000_000];
    for (n, one) in odd.into_iter().enumerate() {
        for other in odd {
            let (first, second) = (times[n % times.len()], times[(n / 2) % times.len()]);
            let by = |who: &str, why: &str, at| {
                let at = Timestamp::from_epoch_ms(at);
                Transition { who: who.into(), why: Some(why.into()), ..line(at, What::Late) }
            };
            let history = [by(one, other, first), by(other, one, second), by(other, other, first), by(one, one, first)];
            assert_eq!(read(&text(&history)).unwrap(), history, "{}", text(&history));
        }
    }
    assert_eq!(read(&text(&[])).unwrap(), []);
}

#[test]
fn a_line_of_an_unknown_kind_is_kept_as_it_was_and_shown_as_other() {
    for unknown in
        [r#""Frozen""#, r#"{"Frozen":[1,{"b":null}]}"#, r#"{"C":"soon"}"#, r#"{"E":"Frozen"}"#, r#"["C",0]"#, "7"]
    {
        let stored = format!(r#"[["S",1795195603007,"shop"],[{unknown},5,"x","why"],[{{"C":0}}]]"#);
        let history = read(&stored).unwrap();
        let shown = serde_json::to_value(Line::of(&history[1], &[])).unwrap();
        let value: Value = serde_json::from_str(unknown).unwrap();
        let words = value.to_string();
        assert_eq!((&shown["Kind"], &shown["What"], &shown["Why"]), (&json!("Other"), &json!(words), &json!("why")));
        assert_eq!(serde_json::to_value(&history[1].what).unwrap(), value);
        assert_eq!(read(&text(&history)).unwrap(), history);
    }
}

#[test]
fn what_is_no_history_is_refused() {
    for (broken, fault) in [
        ("{}", "invalid type"),
        (r#"["S"]"#, "expected a line of history"),
        ("[[]]", "expected a line of history"),
        (r#"[["S",1]]"#, "a line of history continues another, and there is none"),
        (r#"[["S",1,"~x"]]"#, "a line of history continues another, and there is none"),
        (r#"[["S",1,"shop"],["L",1,"~x"]]"#, "a line of history continues another, and there is none"),
        (r#"[["S","1","shop"]]"#, "invalid type"),
    ] {
        let told = read(broken).unwrap_err().to_string();
        assert!(told.contains(fault), "{broken}: {told}");
    }
}

#[test]
fn a_step_that_is_called_like_a_verb_or_a_kind_changes_nothing() {
    let names = ["claimed", "undo", "Processed", "failed"];
    let steps = names.map(|name| (name, &[][..], ""));
    let mut case = Case::new(&steps, false);
    case.wake();
    for name in names {
        case.done(name);
    }
    let stored = serde_json::to_string(&case.task).unwrap();
    let read: Task = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, case.task);
    let steps: Vec<Option<&str>> = read.lines().map(|line| line.step).collect();
    let claimed = names.map(Some);
    assert_eq!(steps, [&[None], &claimed[..], &claimed[..], &[None]].concat());
    assert_eq!(read.lines().nth(1).unwrap().what, "claimed claimed #1");
}

#[test]
fn a_reason_that_looks_like_the_mark_of_a_job_names_none() {
    let job = "0193494e5c8f-00ab54a98ceb1f0a";
    let why = Some(format!("again of {job}, by ann: bulk {job}: it is back").into());
    for what in [What::Submitted, What::Resubmitted, What::Noted(None)] {
        let history = [Transition { why: why.clone(), ..line(AT, what) }];
        let read = read(&text(&history)).unwrap();
        assert_eq!((read[0].bulk.as_ref(), &read[0].why), (None, &why));
        assert_eq!(Line::of(&read[0], &[]).bulk, None);
    }
}

#[test]
fn a_line_is_shown_in_words_with_the_typed_members_beside_them() {
    let case = Case::new(&[("a", &[], "")], false);
    let undo = attempt(0, Direction::Undo, 2);
    for (what, expected) in [
        (
            What::Claimed(undo),
            json!({"What": "undo of a claimed #2", "Kind": "Claimed", "Step": "a", "Direction": "Undo", "Attempt": 2}),
        ),
        (
            What::Expired(undo),
            json!({"What": "undo of a failed, to be tried again", "Kind": "Expired", "Step": "a", "Direction": "Undo", "Attempt": 2}),
        ),
        (
            What::Waiting(attempt(0, Direction::Forward, 0)),
            json!({"What": "a waits", "Kind": "Waiting", "Step": "a", "Direction": "Forward", "Attempt": 0}),
        ),
        (What::Entered(ProcessState::Error), json!({"What": "Error", "Kind": "Entered", "State": "Error"})),
        (What::Resubmitted, json!({"What": "resubmitted", "Kind": "Resubmitted"})),
        (What::Noted(Some(false)), json!({"What": "let go", "Kind": "Noted", "Take": false})),
    ] {
        let command_id = CommandId::given("c".into());
        let line = Transition { why: Some("so".into()), command_id, bulk: Some("j".into()), ..line(AT, what) };
        let mut all =
            json!({"At": "2026-11-20T17:26:43.007Z", "Who": "test", "Why": "so", "CommandID": "c", "Bulk": "j"});
        all.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
        assert_eq!(serde_json::to_value(Line::of(&line, &case.task.steps)).unwrap(), all);
        all.as_object_mut().unwrap().remove("What");
        assert_eq!(serde_json::to_value(Line::typed(&line, &case.task.steps)).unwrap(), all);
    }
}
