//! Rule 30: notes of operators.

use crate::limits::{HISTORY_MAX, NOTES_MAX};
use crate::machine::testing::Case;
use crate::machine::{Event, Refused, Verdict};
use crate::message::{Action, Command};
use crate::task::{ProcessState, Taken, What};

fn under_way() -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "on_rejected = \"hold\"")], true);
    case.wake();
    case
}

fn note(case: &Case, words: &str, take: Option<bool>) -> Command {
    Command { reason: words.into(), take, ..case.command(Action::Note, Some(case.task.version)) }
}

fn apply(case: &mut Case, command: &Command) -> Verdict {
    case.apply(Event::Command { command, redelivered: false })
}

fn write(case: &mut Case, words: &str, take: Option<bool>) -> Verdict {
    let note = note(case, words, take);
    apply(case, &note)
}

fn words(case: &Case) -> Vec<&str> {
    let notes = case.task.history.iter().filter(|line| line.what.is_note());
    notes.map(|line| line.why.as_deref().unwrap()).collect()
}

#[test]
fn a_note_changes_nothing_but_the_history_in_every_state_before_the_end() {
    let write = |case: &mut Case, state| {
        let before = case.task.clone();
        assert_eq!((case.state(), write(case, "asked the bank", None)), (state, Verdict::Taken));
        assert_eq!(case.effects, []);
        let mut after = case.task.clone();
        let line = after.history.pop().unwrap();
        assert_eq!((&*line.who, line.what), ("ann", What::Noted(None)));
        (after.version, after.nonce) = (before.version, before.nonce);
        assert_eq!(after, before);
    };
    let mut case = Case::new(&[("a", &[], "")], true);
    write(&mut case, ProcessState::Pending);
    let mut case = under_way();
    write(&mut case, ProcessState::Processing);
    let mut case = under_way();
    case.pause();
    write(&mut case, ProcessState::Processing);
    let mut case = under_way();
    case.done("a");
    case.rejected("b");
    write(&mut case, ProcessState::Error);
    let mut case = under_way();
    case.cancel();
    write(&mut case, ProcessState::Compensating);
}

#[test]
fn a_note_that_comes_after_the_end_is_not_written() {
    let mut case = under_way();
    case.done("a");
    case.done("b");
    assert_eq!(
        (case.state(), write(&mut case, "late", None)),
        (ProcessState::Processed, Verdict::Refused(Refused::Finished))
    );
}

#[test]
fn a_note_that_is_delivered_twice_is_written_once_whatever_came_between() {
    let mut case = under_way();
    let (first, second) = (note(&case, "one", None), note(&case, "two", None));
    assert_eq!((apply(&mut case, &first), apply(&mut case, &second)), (Verdict::Taken, Verdict::Taken));
    case.done("a");
    for again in [&first, &second] {
        assert_eq!(apply(&mut case, again), Verdict::Refused(Refused::DoneBefore));
    }
    assert_eq!(write(&mut case, "one", None), Verdict::Taken, "it is another note");
    assert_eq!(words(&case), ["one", "two", "one"]);
    let pause = Command { action: Action::Pause, ..first };
    assert_eq!(apply(&mut case, &pause), Verdict::Taken, "it is another action");
}

#[test]
fn the_history_keeps_every_note_and_there_is_a_limit() {
    let mut case = under_way();
    for number in 0..NOTES_MAX {
        assert_eq!(write(&mut case, &number.to_string(), None), Verdict::Taken);
        for _ in 0..4 {
            case.pause();
            case.resume();
        }
    }
    assert_eq!((case.task.notes(), case.task.history.len()), (NOTES_MAX, HISTORY_MAX));
    assert_eq!(words(&case)[0], "0");
    assert_eq!(write(&mut case, "one more", None), Verdict::Refused(Refused::TooManyNotes));
}

#[test]
fn an_operator_takes_an_order_on_another_takes_it_over_and_it_is_let_go() {
    let mut case = under_way();
    assert_eq!(write(&mut case, "nobody has it", Some(false)), Verdict::Refused(Refused::NotTaken));
    assert_eq!(write(&mut case, "mine", Some(true)), Verdict::Taken);
    assert_eq!(case.task.taken, Some(Taken { by: "ann".into(), since: case.now }));
    let over = Command { by: "bob".into(), ..note(&case, "my shift", Some(true)) };
    assert_eq!(apply(&mut case, &over), Verdict::Taken);
    assert_eq!(case.task.taken.as_ref().map(|taken| &*taken.by), Some("bob"));
    case.done("a");
    assert_eq!(write(&mut case, "end of shift", Some(false)), Verdict::Taken);
    assert_eq!((&case.task.taken, words(&case).len()), (&None, 3));
}

#[test]
fn who_takes_an_order_on_must_have_seen_who_has_it() {
    let mut case = under_way();
    let (ann, bob) = (note(&case, "mine", Some(true)), Command { by: "bob".into(), ..note(&case, "mine", Some(true)) });
    assert_eq!((apply(&mut case, &ann), apply(&mut case, &bob)), (Verdict::Taken, Verdict::Refused(Refused::Stale)));
    write(&mut case, "done", Some(false));
    assert_eq!(apply(&mut case, &ann), Verdict::Refused(Refused::Stale), "delivered once more");
    assert_eq!(case.task.taken, None);
}
