//! Rule 46: an order that has ended is left without personal data.

use crate::json::Json;
use crate::machine::testing::Case;
use crate::machine::{Refused, Verdict};
use crate::message::{Action, Command, Failure, Outcome};
use crate::order::ERASED;
use crate::task::{Approvers, ProcessState, Task, What};

const PERSON: &str = "zoe quill";

/// An order with the person's name wherever somebody writes one, closed by an operator.
fn closed() -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "on_rejected = \"hold\"")], true);
    case.wake();
    case.take(&case.reply_of("a", Outcome::Done(Json::of(&PERSON))));
    let failure = Failure { code: "no".into(), message: PERSON.into() };
    case.take(&case.reply_of("b", Outcome::Failed(failure)));
    for (action, take) in [(Action::Note, Some(true)), (Action::Close, None)] {
        act(&mut case, action, take, PERSON);
    }
    case.task.steps[1].approval = Some(Approvers { not_by: Some(PERSON.into()), ..Approvers::default() });
    assert_eq!(case.state(), ProcessState::Closed);
    case
}

fn act(case: &mut Case, action: Action, take: Option<bool>, name: &str) -> Verdict {
    let command = Command { by: name.into(), reason: name.into(), take, ..case.command(action, None) };
    case.apply(crate::machine::Event::Command { command: &command, redelivered: false })
}

fn text(task: &Task) -> String {
    serde_json::to_string(task).unwrap()
}

#[test]
fn rule_46_an_erased_order_has_nothing_that_a_person_or_a_service_wrote_and_keeps_what_happened() {
    let mut case = closed();
    case.all_sent();
    let before = case.task.clone();
    assert!(text(&before).contains(PERSON));
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Taken);
    let after = &case.task;
    assert!(!text(after).contains(PERSON), "{}", text(after));
    assert_eq!((after.process_state, after.erased_at), (ProcessState::Closed, Some(case.now)));
    let told = |task: &Task| task.history.iter().map(|line| (line.at, line.what.clone())).collect::<Vec<_>>();
    assert_eq!(told(after)[..before.history.len()], told(&before), "each line is there");
    let last = after.history.last().unwrap();
    assert_eq!((&*last.who, last.why.as_deref(), &last.what), ("dpo", Some("dpo"), &What::Erased));
    let who: Vec<&str> = after.history.iter().map(|line| &*line.who).collect();
    assert!(who.contains(&ERASED) && who.contains(&"scheduler-1") && who[0] == &*before.history[0].who, "{who:?}");
    let states = |task: &Task| task.steps.iter().map(|step| (step.process_state, step.attempt)).collect::<Vec<_>>();
    assert_eq!(
        (states(after), after.reason.as_ref().map(|reason| &reason.code)),
        (states(&before), before.reason.as_ref().map(|reason| &reason.code))
    );
    assert_eq!(serde_json::from_str::<Task>(&text(after)).unwrap(), *after, "it is read back as it is");
}

#[test]
fn rule_46_an_order_is_erased_once_and_only_when_it_is_over_and_owes_nothing() {
    let mut case = Case::new(&[("a", &[], "")], true);
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Refused(Refused::NotOver));
    case.wake();
    case.done("a");
    assert!(!case.task.unsent.is_empty());
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Refused(Refused::NotOver), "it owes a message");
    case.all_sent();
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Taken);
    let version = case.task.version;
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Refused(Refused::AlreadyErased));
    assert_eq!(case.task.version, version, "a repeat changes nothing");
}

#[test]
fn rule_46_a_line_of_a_bulk_job_still_names_its_job() {
    let job = "01932b6d0c5f-0123456789abcdef";
    let mut case = closed();
    case.all_sent();
    let line = &mut case.task.history[1];
    line.what = What::Resubmitted { bulk: Some(job.into()) };
    line.why = Some(format!("bulk {job}: {PERSON}").into());
    act(&mut case, Action::Erase, None, "dpo");
    let read: Task = serde_json::from_str(&text(&case.task)).unwrap();
    assert_eq!(read.history[1].what, What::Resubmitted { bulk: Some(job.into()) });
    assert_eq!(read.history[1].why, Some(format!("bulk {job}: {ERASED}").into()));
}
