//! Rule 50: steps that go through an array, and lines that are dropped.

use serde_json::json;

use crate::json::Json;
use crate::machine::testing::{AGENTS, Case, done, failed, order_of};
use crate::machine::{Dropped, Event, Refused, Verdict, request};
use crate::message::{Outcome, Reply, Settled};
use crate::redaction::Redaction;
use crate::task::{Direction, ProcessState, Step, StepState};
use crate::time::Timestamp;
use crate::workflow::Workflow;

const EACH: &str = "for_each = \"/Order/Lines\"\nsend = { n = \"/Item/N\" }\nundo = { send = { n = \"/Item/N\" } }\n";
const DROPS: &str = "on_rejected = \"drop\"\non_exhausted = \"drop\"\nmax_failures = 1\n";

/// An order of three lines: `reserve` and `pack` go through them, with these keys, between `check` and `pay`.
fn three(reserve: &str, pack: &str) -> Case {
    let [reserve, pack] = [reserve, pack].map(|more| format!("{EACH}{more}"));
    let steps: [(&str, &[&str], &str); 4] =
        [("check", &[], ""), ("reserve", &["check"], &reserve), ("pack", &["reserve"], &pack), ("pay", &["pack"], "")];
    let mut case = Case::new(&steps, false);
    case.wake();
    case.done("check");
    case
}

/// The body of the call that is in flight for this step.
fn sent(case: &Case, step: &str) -> String {
    let index = case.task.step(step).unwrap().0;
    let sent = request(&case.task, &case.workflow, index, &case.order(), case.now, 0).unwrap().unwrap().1;
    sent.body.map_or_else(|| serde_json::to_string(&sent.outputs).unwrap(), |body| body.text().to_owned())
}

fn give(case: &mut Case, step: &str, output: &serde_json::Value) {
    let reply = case.reply_of(step, Outcome::Done(Json::of(output)));
    case.take(&reply);
}

/// Lets all calls of a turn settle, and does every undo that is asked for.
fn undo_all(case: &mut Case) {
    for _ in 0..8 {
        case.pass_ms(60_000);
        case.wake();
        let is_asked = |step: &&Step| step.process_state == StepState::Processing && step.direction == Direction::Undo;
        let asked: Vec<String> = case.task.steps.iter().filter(is_asked).map(|step| step.name.to_string()).collect();
        asked.iter().for_each(|step| _ = case.done(step));
    }
}

#[test]
fn rule_2_replies_that_arrive_together_make_one_version_and_no_step_begins_between_them() {
    let take = |case: &mut Case, replies: &[Reply]| {
        let events: Vec<_> = replies.iter().map(|reply| Event::Reply { reply, redelivered: false }).collect();
        case.apply_together(&events)
    };
    let mut case = three("", "");
    let before = case.task.version;
    let [first, second] = ["reserve/0001", "reserve/0002"].map(|step| case.reply_of(step, done()));
    let verdicts = take(&mut case, &[first.clone(), first, second]);
    let closed = Verdict::Dropped(Dropped::Closed);
    assert_eq!((verdicts, case.task.version), (vec![Verdict::Taken, closed, Verdict::Taken], before + 1));
    assert_eq!(case.requested(), ["pack/0001", "pack/0002"]);

    let mut case = three("", "");
    let [first, second] = ["reserve/0001", "reserve/0002"].map(|step| case.reply_of(step, done()));
    let events = [(&first, false), (&second, true)].map(|(reply, redelivered)| Event::Reply { reply, redelivered });
    case.apply_together(&events);
    assert_eq!(case.requested(), ["pack/0001", "pack/0002", "reserve/0003"], "what may be lost is sent again");

    let mut case = three("", "");
    let (done, rejected) = (case.reply_of("reserve/0001", done()), case.reply_of("reserve/0002", failed()));
    assert_eq!(take(&mut case, &[done, rejected]), [Verdict::Taken, Verdict::Taken]);
    assert_eq!(case.state(), ProcessState::Compensating);
    assert_eq!(case.step("pack/0001").attempt, 0, "the order turned round before it could begin");
}

#[test]
fn each_line_goes_its_own_way_and_what_comes_after_waits_for_all() {
    let mut case = three("", "");
    let names: Vec<&str> = case.task.steps.iter().map(|step| &*step.name).collect();
    let of = |step: &str| ["0001", "0002", "0003"].map(|id| format!("{step}/{id}"));
    assert_eq!(names[1..4], of("reserve"));
    assert_eq!(case.requested(), of("reserve"));
    assert_eq!(sent(&case, "reserve/0002"), r#"{"n":2}"#);
    case.done("reserve/0002");
    assert_eq!(case.requested(), ["pack/0002"], "it does not wait for the others");
    for step in ["pack/0002", "reserve/0001", "reserve/0003", "pack/0001"] {
        case.done(step);
        assert!(!case.requested().contains(&"pay"), "{step}");
    }
    case.done("pack/0003");
    assert_eq!(case.requested(), ["pay"]);
    case.done("pay");
    assert_eq!(case.state(), ProcessState::Processed);
    assert_eq!(case.task.carried_lines().map(|lines| lines.len()), [3, 0]);
}

#[test]
fn with_after_all_a_line_waits_for_all_of_the_step_before() {
    let mut case = three("", "after_all = true");
    case.done("reserve/0001");
    case.done("reserve/0002");
    assert!(case.requested().is_empty());
    case.done("reserve/0003");
    assert_eq!(case.requested(), ["pack/0001", "pack/0002", "pack/0003"]);
}

#[test]
fn the_key_of_a_call_has_the_name_of_its_element() {
    let mut case = three("item_id = \"/SKU\"\n", "item_id = \"/SKU\"\n");
    assert_eq!(case.requested(), ["reserve/mug", "reserve/cup", "reserve/jug"]);
    let index = case.task.step("reserve/cup").unwrap().0;
    let of = |case: &Case| request(&case.task, &case.workflow, index, &case.order(), case.now, 0).unwrap().unwrap().1;
    assert_eq!(*of(&case).idempotency_key, format!("{}/reserve/cup", case.task.order_id));
    case.cancel();
    undo_all(&mut case);
    assert_eq!(case.state(), ProcessState::Compensated);
}

#[test]
fn a_line_sees_its_own_output_and_what_comes_after_all_sees_an_array() {
    let own = "send = { id = \"/Outputs/reserve/ID\" }\nundo = { send = {} }";
    let all = "send = { all = \"/Outputs/reserve\", second = \"/Outputs/reserve/0002/ID?\", n = \"= count(/Outputs/none)\" }\n\
               undo = { send = { all = \"/Outputs/reserve\" } }";
    let own = format!("for_each = \"/Order/Lines\"\n{own}\n{DROPS}");
    let none = EACH.replace("/Order/Lines", "/Order/None");
    let text = |array: &str| {
        let step = |name: &str, after: &str, more: &str| {
            format!("[[step]]\nname = {name:?}\nagent = \"any\"\nafter = [{after}]\n{more}\n")
        };
        let steps = [
            step("reserve", "", EACH),
            step("pack", "\"reserve\"", &own),
            step("pay", "\"pack\"", all.replace(", n = \"= count(/Outputs/none)\"", array).as_str()),
        ];
        format!("name = \"w\"\nversion = 1\n{}", steps.concat())
    };
    let mut case = Case::of(&text(""), false);
    case.wake();
    for (step, id) in [("reserve/0001", "a"), ("reserve/0002", "b"), ("reserve/0003", "c")] {
        give(&mut case, step, &json!({"ID": id}));
        assert_eq!(sent(&case, &step.replace("reserve", "pack")), json!({"id": id}).to_string());
    }
    case.done("pack/0002");
    case.done("pack/0003");
    case.rejected("pack/0001");
    assert_eq!(sent(&case, "pay"), r#"{"all":[null,{"ID":"b"},{"ID":"c"}],"second":"b"}"#, "a dropped line has none");
    let mut case = Case::new(&[("none", &[], &none), ("pay", &["none"], "")], false);
    case.wake();
    assert_eq!(case.requested(), ["pay"], "an empty array is no step");
    assert_eq!(sent(&case, "pay"), r#"{"none":[]}"#);
}

#[test]
fn a_line_that_is_rejected_is_undone_alone_and_the_order_goes_on() {
    let mut case = three("", DROPS);
    for step in ["reserve/0001", "reserve/0002", "reserve/0003", "pack/0001"] {
        case.done(step);
    }
    case.rejected("pack/0002");
    assert_eq!(case.state(), ProcessState::Processing);
    let turned = |case: &Case, step: &str| (case.step(step).direction, case.step(step).dropped);
    assert_eq!(turned(&case, "pack/0002"), (Direction::Undo, true));
    assert_eq!(turned(&case, "reserve/0002"), (Direction::Undo, true));
    assert_eq!(turned(&case, "reserve/0001"), (Direction::Forward, false));
    assert_eq!(case.requested(), ["pack/0002"], "what was rejected is undone first, as in a compensation");
    case.done("pack/0003");
    assert_eq!(case.requested(), ["pay"], "it does not wait for the undo of the line");
    case.done("pay");
    assert_eq!(case.state(), ProcessState::Processing, "the undo is not done");
    case.done("pack/0002");
    assert_eq!(case.requested(), ["reserve/0002"]);
    case.done("reserve/0002");
    assert_eq!(case.state(), ProcessState::Processed);
    let [carried, dropped] = case.task.carried_lines();
    assert_eq!((carried.len(), dropped), (2, vec!["0002".into()]));
}

#[test]
fn a_line_that_has_not_begun_a_step_does_not_begin_it() {
    let mut case = three(DROPS, "");
    case.rejected("reserve/0001");
    assert_eq!(case.step("pack/0001").process_state, StepState::Skipped);
    for step in ["reserve/0002", "reserve/0003", "pack/0002", "pack/0003", "reserve/0001"] {
        assert!(case.step(step).process_state == StepState::Processing, "{step}");
        case.done(step);
    }
    case.done("pay");
    assert_eq!(case.state(), ProcessState::Processed);
}

#[test]
fn the_undo_of_a_dropped_line_waits_for_its_calls_and_has_its_own_body() {
    let own = format!("{DROPS}drop = {{ send = {{ part = \"/Item/N\" }} }}\n");
    let mut case = three(&own, "");
    case.done("reserve/0001");
    case.expire_all();
    let step = case.step("reserve/0002");
    assert!(step.dropped && step.not_before.is_some_and(|at| at > case.now), "a call of it may have its effect");
    let steps: Vec<_> = case.task.steps.iter().filter(|step| step.dropped).map(|step| step.name.to_string()).collect();
    assert_eq!(steps, ["reserve/0002", "reserve/0003", "pack/0002", "pack/0003"]);
    case.retry_all();
    assert_eq!(sent(&case, "reserve/0002"), r#"{"part":2}"#);
    let mut turned = three(&own, "");
    turned.cancel();
    turned.pass_ms(60_000);
    turned.wake();
    assert_eq!(sent(&turned, "reserve/0002"), r#"{"n":2}"#, "that of a compensation is the undo");
}

#[test]
fn a_line_too_many_or_the_last_one_compensates_the_order() {
    for (max, dropped) in
        [("drop_max = 0", 0), ("drop_max = 1", 1), ("drop_max = \"34%\"", 1), ("drop_max = \"33%\"", 0), ("", 2)]
    {
        let mut case = three(&format!("{DROPS}{max}"), "");
        let lines = ["reserve/0001", "reserve/0002", "reserve/0003"];
        for (index, step) in lines.into_iter().enumerate() {
            assert_eq!(case.state(), ProcessState::Processing, "{max}: {index}");
            case.rejected(step);
            if index == dropped {
                break;
            }
        }
        assert_eq!(case.state(), ProcessState::Compensating, "{max}");
        let [_, gone] = case.task.carried_lines();
        assert_eq!(gone.len(), dropped, "{max}: the last one is of the compensation");
        undo_all(&mut case);
        assert_eq!(case.state(), ProcessState::Compensated, "{max}");
    }
}

#[test]
fn an_undo_of_a_dropped_line_that_fails_asks_for_an_operator_and_the_order_goes_on_forward() {
    let mut case = three(DROPS, "");
    case.rejected("reserve/0001");
    case.rejected("reserve/0001");
    assert_eq!(case.state(), ProcessState::Error);
    assert_eq!(&*case.task.reason.as_ref().unwrap().code, "compensation-failed");
    case.done("reserve/0002");
    assert!(case.requested().is_empty(), "nothing starts");
    case.resubmit();
    assert_eq!(case.state(), ProcessState::Processing);
    assert_eq!(case.requested(), ["reserve/0001", "pack/0002", "reserve/0003"], "the last one is in flight");
    let mut settled = three(DROPS, "");
    settled.rejected("reserve/0001");
    settled.rejected("reserve/0001");
    assert_eq!(settled.settle("reserve/0001", Settled::Undone, None), Verdict::Taken);
    assert_eq!((settled.state(), settled.step("reserve/0001").is_undone()), (ProcessState::Processing, true));
}

#[test]
fn a_compensation_takes_up_the_undos_of_dropped_lines() {
    let mut case = three(DROPS, "");
    case.done("reserve/0002");
    case.rejected("reserve/0001");
    case.rejected("reserve/0001");
    case.cancel();
    assert_eq!((case.state(), case.step("reserve/0001").dropped), (ProcessState::Compensating, true));
    undo_all(&mut case);
    assert_eq!(case.state(), ProcessState::Compensated);
    assert!(case.task.steps.iter().all(|step| !step.was_claimed() || step.is_undone()));
}

#[test]
fn an_operator_drops_a_line_in_error_but_not_one_that_a_later_step_has_begun_with() {
    let hold = "on_rejected = \"hold\"\n";
    let mut case = three(hold, "");
    case.rejected("reserve/0001");
    assert_eq!(case.settle("check", Settled::Dropped, None), case.settle("pay", Settled::Done, None));
    assert_eq!(case.settle("reserve/0001", Settled::Dropped, None), Verdict::Taken);
    assert_eq!((case.state(), case.step("pack/0001").process_state), (ProcessState::Processing, StepState::Skipped));
    case.rejected("reserve/0002");
    assert_eq!(case.settle("reserve/0002", Settled::Dropped, None), Verdict::Taken);
    case.rejected("reserve/0003");
    assert_eq!(case.settle("reserve/0003", Settled::Dropped, None), Verdict::Refused(Refused::LastLine));
    let mut plain = Case::new(&[("a", &[], hold), ("b", &[], "")], false);
    plain.wake();
    plain.rejected("a");
    assert_eq!(plain.settle("a", Settled::Dropped, None), Verdict::Refused(Refused::NoLine));
    let [reserve, pack] = ["", hold].map(|more| format!("{EACH}{more}"));
    let steps: [(&str, &[&str], &str); 3] =
        [("reserve", &[], &reserve), ("pay", &["reserve"], ""), ("pack", &["reserve"], &pack)];
    let mut used = Case::new(&steps, false);
    used.wake();
    ["reserve/0001", "reserve/0002", "reserve/0003"].into_iter().for_each(|step| _ = used.done(step));
    used.rejected("pack/0002");
    let refused = Verdict::Refused(Refused::LineIsUsed { step: "pay".into() });
    assert_eq!(used.settle("pack/0002", Settled::Dropped, None), refused);
}

#[test]
fn past_a_pivot_a_line_is_dropped_and_one_too_many_holds_the_order() {
    let pack = format!("{EACH}{DROPS}drop_max = 1\n");
    let steps: [(&str, &[&str], &str); 2] = [("pay", &[], "pivot = true"), ("pack", &["pay"], &pack)];
    let mut case = Case::new(&steps, false);
    case.wake();
    case.done("pay");
    case.rejected("pack/0001");
    assert_eq!(case.state(), ProcessState::Processing);
    case.rejected("pack/0002");
    assert_eq!(case.state(), ProcessState::Error);
    assert!(!case.step("pack/0002").dropped);
}

#[test]
fn past_its_pivot_a_line_is_dropped_by_nobody() {
    let [pivot, holds] = ["pivot = true\n", "on_rejected = \"hold\"\n"].map(|more| format!("{EACH}{more}"));
    let steps: [(&str, &[&str], &str); 3] =
        [("reserve", &[], EACH), ("ship", &["reserve"], &pivot), ("print", &["reserve"], &holds)];
    let mut case = Case::new(&steps, false);
    case.wake();
    for step in ["reserve/0001", "reserve/0002", "reserve/0003"] {
        case.done(step);
    }
    case.rejected("print/0001");
    assert_eq!((case.state(), case.step("ship/0001").dropped), (ProcessState::Error, false));
    let refused = Verdict::Refused(Refused::PastPivot { step: "ship/0001".into() });
    assert_eq!(case.settle("print/0001", Settled::Dropped, None), refused);
}

#[test]
fn a_late_done_of_a_line_that_was_dropped_makes_its_undo_come_sooner() {
    let mut case = three(DROPS, "");
    case.expire_all();
    let mut late = case.reply_of("reserve/0001", done());
    late.direction = Direction::Forward;
    case.take(&late);
    assert_eq!(case.step("reserve/0001").output.as_ref().map(Json::text), Some(r#"{"Id":7}"#));
    assert!(case.requested().contains(&"reserve/0001"), "it waits for no call");
}

#[test]
fn a_step_for_no_element_of_a_document_is_refused_with_its_place() {
    let file = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"any\"\n";
    let file = format!("{file}{EACH}item_id = \"/SKU\"\n");
    let workflow = Workflow::parse(&file, &AGENTS).unwrap();
    let fault = |document: &str| {
        let mut order = order_of(Timestamp::from_epoch_ms(1));
        order.document = Json::parse(document.as_bytes(), 1_000_000).unwrap();
        let now = order.submitted_at;
        let accepted = workflow.accept(&mut order, now, &Redaction::default());
        accepted.err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let line = |sku: &str| format!("{{\"SKU\":{sku},\"N\":1}}");
    let lines =
        |skus: &[&str]| format!("{{\"Lines\":[{}]}}", skus.iter().map(|sku| line(sku)).collect::<Vec<_>>().join(","));
    assert_eq!(fault(&lines(&["\"a.1\"", "7"])), "");
    assert_eq!(fault(&lines(&[])), "");
    for (document, words) in [
        ("{}".to_owned(), "/Lines must be an array, and nothing is there: step \"a\" is for each element"),
        ("{\"Lines\":{}}".to_owned(), "/Lines must be an array, and it is none"),
        (lines(&["1", "\"1\""]), "/Lines/1/SKU is \"1\", as in an element before"),
        (lines(&["\"a b\""]), "/Lines/0/SKU names its element for step \"a\", and must be 1 to 40 of letters"),
        (lines(&["\"undo\""]), "and not undo"),
        (lines(&["null"]), "/Lines/0/SKU names its element"),
        ("{\"Lines\":[{\"SKU\":1}]}".to_owned(), "sends /Item/N, and there is nothing that can be sent"),
        (
            lines(&(0..201).map(|n| n.to_string()).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>()),
            "/Lines makes an order of 201 steps, the limit is 200",
        ),
    ] {
        assert!(fault(&document).contains(words), "{words}: {}", fault(&document));
    }
}
