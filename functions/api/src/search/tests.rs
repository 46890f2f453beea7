use std::collections::BTreeSet;

use domain::definition::Catalogue;
use domain::index::Term;
use domain::json::Json;
use domain::task::{Approvers, Reason, reason};
use domain::workflow::Workflows;
use serde_json::json;

use super::*;
use crate::ApiConfig;
use crate::testing::{Answer, Fake, task_in};

/// The submission time of the orders of these tests.
const SUBMITTED: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_007);

/// A task in `Error` for this reason at this step.
fn failed(name: &str, code: &str, step: Option<&str>) -> Task {
    let mut task = task_in(name, ProcessState::Error);
    let (code, step) = (code.into(), step.map(Into::into));
    task.reason = Some(Reason { code, message: "in words".into(), step, since_version: 1, earlier: None });
    task
}

fn submitted_at(mut task: Task, at: Timestamp) -> Task {
    task.history[0].at = at;
    task
}

/// This many orders in one state, numbered.
fn with_orders(count: usize, state: ProcessState) -> Fake {
    let fake = Fake::default();
    for n in 0..count {
        fake.stores(task_in(&n.to_string(), state));
    }
    fake
}

fn ids(answer: &Answer) -> BTreeSet<String> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let orders = answer.body["Orders"].as_array().unwrap();
    orders.iter().map(|order| order["OrderID"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn finds(fake: &Fake, query: &str, expected: &[OrderId]) {
    let answer = fake.get(&format!("/orders?{query}"));
    assert_eq!(ids(&answer), expected.iter().map(ToString::to_string).collect(), "{query}");
    assert!(answer.body["Examined"].is_u64() && answer.body.get("NextCursor").is_none(), "{query}: {}", answer.text);
}

#[test]
fn orders_are_found_by_reason_and_by_the_step_that_they_wait_with() {
    let fake = Fake::default();
    let exhausted = fake.stores(failed("a", reason::EXHAUSTED, Some("charge-payment")));
    let rejected = fake.stores(failed("b", reason::REJECTED, Some("ship-order")));
    let mut undoing = failed("c", reason::COMPENSATION_FAILED, None);
    undoing.steps[1].process_state = StepState::Error;
    let undoing = fake.stores(undoing);
    fake.stores(task_in("d", ProcessState::Processed));
    finds(&fake, "reason=exhausted", &[exhausted]);
    finds(&fake, "reason=compensation-failed&state=Error", &[undoing]);
    finds(&fake, "step=charge-payment", &[exhausted, undoing]);
    finds(&fake, "step=charge-payment&reason=exhausted", &[exhausted]);
    finds(&fake, "step=ship-order", &[rejected]);
    finds(&fake, "step=reserve-inventory", &[]);
    finds(&fake, "reason=exhausted&state=Processed", &[]);
}

#[test]
fn orders_are_found_by_when_they_were_submitted_both_ends_included() {
    let fake = Fake::default();
    let [first, second, third] = ["a", "b", "c"].map(|name| {
        let minutes = u64::from(name.as_bytes()[0] - b'a');
        fake.stores(submitted_at(task_in(name, ProcessState::Processed), SUBMITTED.plus_ms(minutes * 60_000)))
    });
    finds(&fake, "since=2026-11-20T17:26:43.007Z", &[first, second, third]);
    finds(&fake, "since=2026-11-20T17:26:43.008Z", &[second, third]);
    finds(&fake, "until=2026-11-20T17:27:43.007Z", &[first, second]);
    finds(&fake, "since=2026-11-20T18:27:43.007%2B01:00&until=2026-11-20T17:27:43.007Z", &[second]);
    finds(&fake, "since=2026-11-20T17:28:00Z&until=2026-11-20T17:27:00Z", &[]);
    let answer = fake.get("/orders?until=2026-11-20T17:26:43.007Z");
    let order = &answer.body["Orders"][0];
    assert_eq!((&order["SubmittedAt"], &order["UpdatedAt"]), (&json!(SUBMITTED), &json!(SUBMITTED)));
    assert!(answer.body["SearchedBackTo"].is_string());
}

#[test]
fn orders_are_found_by_correlation_and_by_what_is_in_their_documents() {
    let fake = Fake::default();
    let [ann, bob] = [("a", "ann"), ("b", "bob")].map(|(name, who)| {
        fake.stores_with(task_in(name, ProcessState::Processed), |order| {
            let document = format!(r#"{{"Customer":{{"Name":"{who}","Cvc":"{who}"}},"Total":12.50,"Items":["mug"]}}"#);
            order.document = Json::document(document.as_bytes()).unwrap();
            let correlation = format!("cart of {who}");
            order.terms = vec![Term::correlation(&correlation)];
            order.correlation_id = Some(correlation.into());
        })
    });
    fake.config(ApiConfig::default().redacting(["Cvc"]));
    finds(&fake, "correlation=cart+of+ann", &[ann]);
    finds(&fake, "correlation=cart", &[]);
    finds(&fake, "field=/Customer/Name&value=bob", &[bob]);
    finds(&fake, "field=/Items/0&value=mug", &[ann, bob]);
    finds(&fake, "field=/Total&value=12.5", &[]);
    finds(&fake, "field=/Customer/Street", &[]);
    finds(&fake, "field=/Customer", &[ann, bob]);
    finds(&fake, "value=ann", &[ann]);
    finds(&fake, "value=12.50&correlation=cart+of+bob", &[bob]);
    finds(&fake, "value=ann&since=2026-11-20T17:26:43.008Z", &[]);
}

#[test]
fn orders_are_found_by_their_workflow_and_by_its_version() {
    let fake = Fake::default();
    let [first, second, other] = [("a", "shop", 1), ("b", "shop", 2), ("c", "return", 2)].map(|(id, name, version)| {
        let mut task = task_in(id, ProcessState::Processing);
        (task.workflow, task.workflow_version) = (name.into(), version);
        fake.stores(task)
    });
    finds(&fake, "workflow=shop", &[first, second]);
    finds(&fake, "workflow=shop/2", &[second]);
    finds(&fake, "workflow=return%2F2&state=Processing", &[other]);
    finds(&fake, "workflow=shop/3", &[]);
    finds(&fake, "workflow=sho", &[]);
}

#[test]
fn orders_are_found_by_the_service_that_they_wait_for() {
    let fake = Fake::default();
    let waiting = |name: &str, state, step: StepState, not_before: Option<i64>| {
        let mut task = task_in(name, state);
        (task.steps[1].process_state, task.steps[1].not_before) = (step, not_before.map(Timestamp::from_epoch_ms));
        fake.stores(task)
    };
    let called = waiting("called", ProcessState::Processing, StepState::Processing, None);
    let undone = waiting("undone", ProcessState::Compensating, StepState::Pending, Some(1));
    waiting("not begun", ProcessState::Processing, StepState::Pending, None);
    waiting("held", ProcessState::Error, StepState::Processing, None);
    finds(&fake, "service=payment", &[called, undone]);
    finds(&fake, "service=payment&state=Processing", &[called]);
    finds(&fake, "service=shipping", &[]);
}

#[test]
fn rule_5_orders_are_found_whose_end_a_result_contradicts() {
    let fake = Fake::default();
    let mut task = task_in("paid after its undo", ProcessState::Compensated);
    let attempt = domain::task::Attempt { step: 0, direction: domain::task::Direction::Forward, number: 2 };
    let (at, who, what) =
        (Timestamp::from_epoch_ms(5), "scheduler-1".into(), domain::task::What::Contradicted(attempt));
    task.history.push(domain::task::Transition { at, who, what, why: None, command_id: None, bulk: None });
    let paid = fake.stores(task);
    let other = fake.stores(task_in("undone", ProcessState::Compensated));
    finds(&fake, "contradicted=true", &[paid]);
    finds(&fake, "contradicted=false&state=Compensated", &[other]);
}

#[test]
fn rule_37_orders_are_found_by_whether_they_are_late() {
    let fake = Fake::default();
    let mut task = task_in("late", ProcessState::Processing);
    (task.complete_by, task.late_since) = (Some(Timestamp::from_epoch_ms(1)), Some(Timestamp::from_epoch_ms(2)));
    let late = fake.stores(task);
    let mut task = task_in("in time", ProcessState::Processing);
    task.complete_by = Some(Timestamp::from_epoch_ms(1));
    let other = fake.stores(task);
    finds(&fake, "late=true", &[late]);
    finds(&fake, "late=false&state=Processing", &[other]);
    finds(&fake, "late=true&state=Error", &[]);
    let shown = &fake.get("/orders?late=true").body["Orders"][0];
    assert_eq!(
        (&shown["CompleteBy"], &shown["LateSince"]),
        (&"1970-01-01T00:00:00.001Z".into(), &"1970-01-01T00:00:00.002Z".into())
    );
    fake.get("/orders?late=yes").names(400, "invalid-parameter", "late");
}

#[test]
fn what_is_redacted_cannot_be_searched_for() {
    let fake = Fake::default();
    fake.stores_with(task_in("a", ProcessState::Processed), |order| {
        order.document = Json::document(br#"{"Card":{"CVC":"123"}}"#).unwrap();
    });
    fake.config(ApiConfig::default().redacting(["Cvc"]));
    for query in ["field=/Card/CVC&value=123", "field=/Card/CVC", "field=/Card/cvc/x"] {
        fake.get(&format!("/orders?{query}")).names(400, "invalid-parameter", "field");
    }
    finds(&fake, "value=123", &[]);
}

#[test]
fn a_bad_parameter_is_400_and_named() {
    let fake = Fake::default();
    let (long, longer) = ("x".repeat(65), "x".repeat(257));
    for (query, name) in [
        ("reason=".to_owned(), "reason"),
        (format!("reason={long}"), "reason"),
        ("step=".to_owned(), "step"),
        (format!("step={long}"), "step"),
        ("since=yesterday".to_owned(), "since"),
        ("since=".to_owned(), "since"),
        ("until=2026-11-20".to_owned(), "until"),
        ("since=2026-11-20T18:26:43+01:00".to_owned(), "since"),
        ("correlation=".to_owned(), "correlation"),
        (format!("correlation={longer}"), "correlation"),
        ("field=Total".to_owned(), "field"),
        ("field=/a~2".to_owned(), "field"),
        (format!("field=/{longer}"), "field"),
        (format!("value={longer}"), "value"),
        ("workflow=".to_owned(), "workflow"),
        ("workflow=shop/".to_owned(), "workflow"),
        ("workflow=shop/two".to_owned(), "workflow"),
        (format!("workflow={}", "x".repeat(76)), "workflow"),
        ("reason=a&reason=a".to_owned(), "reason"),
    ] {
        fake.get(&format!("/orders?{query}")).names(400, "invalid-parameter", name);
    }
}

#[test]
fn pages_of_a_search_give_every_order_once_whatever_the_limit() {
    let fake = with_orders(150, ProcessState::Processed);
    let expected: BTreeSet<String> =
        (0..123).map(|n| fake.stores(failed(&format!("f{n}"), "rejected", None)).to_string()).collect();
    for limit in [1, 7, 50, 100] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = fake.get(&format!("/orders?reason=rejected&limit={limit}{cursor}"));
            let page = ids(&answer);
            assert!(page.len() <= limit);
            seen.extend(page);
            match answer.body["NextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((seen.len(), seen.into_iter().collect()), (123, expected.clone()), "{limit}");
    }
}

#[test]
fn one_call_looks_at_a_thousand_tasks_and_says_how_far_it_came() {
    let fake = with_orders(1_150, ProcessState::Processed);
    let first = fake.get("/orders?reason=rejected");
    assert_eq!((ids(&first).len(), &first.body["Examined"]), (0, &json!(1_000)));
    assert_eq!(first.body["SearchedBackTo"], json!(SUBMITTED));
    let cursor = first.body["NextCursor"].as_str().unwrap();
    let second = fake.get(&format!("/orders?reason=rejected&cursor={cursor}"));
    assert_eq!((ids(&second).len(), &second.body["Examined"], second.body.get("NextCursor")), (0, &json!(150), None));
}

#[test]
fn one_call_ends_where_a_thousand_tasks_of_other_states_were_read() {
    let fake = with_orders(2_500, ProcessState::Processing);
    let wanted = fake.stores(failed("wanted", "rejected", None)).to_string();
    fake.ports.has_no_index_of_states(1_000);
    let (mut cursor, mut seen, mut read) = (String::new(), BTreeSet::new(), Vec::new());
    loop {
        let before = fake.tasks_listed();
        let answer = fake.get(&format!("/orders?state=Error&reason=rejected{cursor}"));
        seen.extend(ids(&answer));
        read.push(fake.tasks_listed() - before);
        match answer.body["NextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((read, seen), (vec![1_000, 1_000, 501], BTreeSet::from([wanted])));
}

#[test]
fn one_call_reads_two_hundred_orders() {
    let fake = with_orders(450, ProcessState::Processed);
    let (mut cursor, mut examined) = (String::new(), Vec::new());
    loop {
        let answer = fake.get(&format!("/orders?value=nowhere{cursor}"));
        examined.push(answer.body["Examined"].as_u64().unwrap());
        match answer.body["NextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(examined, [200, 200, 50]);
    assert_eq!(fake.orders_read(), 450);
}

/// Orders with a document of 100 KiB and the same correlation id, in the index.
fn with_large_documents(count: usize) -> Fake {
    let fake = Fake::default();
    let text = format!(r#"{{"a":"{}","b":"x"}}"#, "y".repeat(100 * 1024));
    for n in 0..count {
        fake.stores_with(task_in(&n.to_string(), ProcessState::Processed), |order| {
            order.document = Json::document(text.as_bytes()).unwrap();
            order.correlation_id = Some("cart-7".into());
            order.terms = vec![Term::correlation("cart-7")];
        });
    }
    fake
}

#[test]
fn one_call_reads_two_mib_of_documents_and_the_calls_find_every_order_once() {
    for query in ["value=x", "field=/b", "correlation=cart-7", "with=index", "with=index&value=x"] {
        let fake = with_large_documents(50);
        let (mut found, mut calls, mut reads, mut cursor) = (Vec::new(), 0, 0, String::new());
        loop {
            let answer = fake.get(&format!("/orders?{query}{cursor}"));
            found.extend(ids(&answer));
            calls += 1;
            let read = fake.orders_read() - reads;
            assert!(read <= 2 * (21 + ORDERS_AT_ONCE), "{query}: {read}");
            reads = fake.orders_read();
            match answer.body["NextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((found.len(), found.iter().collect::<BTreeSet<_>>().len(), calls), (50, 50, 3), "{query}");
    }
}

#[test]
fn a_search_ends_where_only_orders_from_long_before_are_left() {
    let fake = with_orders(1_200, ProcessState::Processed);
    let ends = |query: &str| fake.get(&format!("/orders?{query}")).body.get("NextCursor").is_none();
    assert!(ends("since=2026-11-20T19:00:00Z"), "all are more than an hour older");
    assert!(!ends("since=2026-11-20T18:00:00Z"), "some may be out of their place");
    assert!(!ends("until=2026-11-20T10:00:00Z"), "who looks for old ones goes on");
    let fake = with_orders(1_200, ProcessState::Error);
    let answer = fake.get("/orders?state=Error&since=2026-11-20T19:00:00Z");
    assert!(answer.body.get("NextCursor").is_some(), "a list by the time of the error says nothing about submission");
}

#[test]
fn a_list_that_never_ends_is_given_up_for_this_call() {
    let fake = with_orders(3, ProcessState::Processed);
    fake.list_never_ends();
    let answer = fake.get("/orders?reason=rejected");
    assert_eq!((&answer.body["Examined"], answer.body["NextCursor"].is_string()), (&json!(60), true));
}

#[test]
fn a_cursor_is_good_for_its_own_search_only() {
    let fake = with_orders(1_150, ProcessState::Processed);
    let cursor = fake.get("/orders?reason=rejected").body["NextCursor"].as_str().unwrap().to_owned();
    for query in
        ["", "&reason=exhausted", "&step=rejected", "&reason=rejected&state=Processed", "&reason=rejected&value=x"]
    {
        fake.get(&format!("/orders?cursor={cursor}{query}")).names(400, "invalid-parameter", "cursor");
    }
    assert_eq!(fake.get(&format!("/orders?cursor={cursor}&reason=rejected&limit=3")).status, 200);
}

#[test]
fn a_store_that_is_down_is_503() {
    for (port, query) in [("store.list", "value=x"), ("store.order", "value=x"), ("store.found", "correlation=x")] {
        let fake = with_orders(1, ProcessState::Processed);
        fake.down(port);
        fake.get(&format!("/orders?{query}")).is_problem(503, "unavailable");
    }
}

/// Versions 1 and 2 of `shop`; the orders of the second one are found by their e-mail.
fn with_an_index() -> Fake {
    let version = |version: u32, index: &str| {
        format!("name = \"shop\"\nversion = {version}\n{index}\n[[step]]\nname = \"a\"\nagent = \"x\"\n")
    };
    let texts = [version(1, ""), version(2, "index = [\"/Email\"]")];
    let workflows = Workflows::parse(&texts.each_ref().map(|text| &**text), "shop", &["x"]).unwrap();
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(workflows)));
    fake
}

/// Stores an order of a version of `shop` with this e-mail, in the index if its version has one.
fn mailed(fake: &Fake, name: &str, version: u32, email: &str) -> OrderId {
    let mut task = task_in(name, ProcessState::Processed);
    (task.workflow, task.workflow_version) = ("shop".into(), version);
    fake.stores_with(task, |order| {
        order.document = Json::document(format!(r#"{{"Email":"{email}"}}"#).as_bytes()).unwrap();
        let term = Term::member(&Pointer::parse("/Email").unwrap(), email);
        order.terms.extend((version == 2).then_some(term));
    })
}

/// The pages of a search: the ids, and whether they are from the index.
fn pages(fake: &Fake, query: &str) -> Vec<(BTreeSet<String>, bool)> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = fake.get(&format!("/orders?{query}{cursor}"));
        pages.push((ids(&answer), answer.body["FromIndex"] == json!(true)));
        match answer.body["NextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

fn set<const COUNT: usize>(ids: [OrderId; COUNT]) -> BTreeSet<String> {
    ids.iter().map(ToString::to_string).collect()
}

#[test]
fn the_index_gives_the_orders_of_a_correlation_id_without_a_list() {
    let fake = with_orders(50, ProcessState::Processed);
    let found = fake.stores_with(task_in("found", ProcessState::Error), |order| {
        order.correlation_id = Some("cart-7".into());
        order.terms = vec![Term::correlation("cart-7")];
    });
    // An index may name an order that has another text.
    fake.stores_with(task_in("other", ProcessState::Error), |order| {
        order.correlation_id = Some("cart-8".into());
        order.terms = vec![Term::correlation("cart-7")];
    });
    assert_eq!(pages(&fake, "correlation=cart-7"), [(set([found]), true)]);
    assert_eq!(pages(&fake, "correlation=cart-7&state=Processed"), [(set([]), true)]);
    assert_eq!(pages(&fake, "correlation=cart-7&reason=rejected"), [(set([]), true)]);
    assert_eq!((fake.tasks_listed(), pages(&fake, "correlation=cart-9").len()), (0, 1));
}

#[test]
fn a_list_has_the_texts_by_which_its_orders_are_found_if_it_is_asked_for_them() {
    let fake = with_an_index();
    let new = mailed(&fake, "a", 2, "ann@x.example");
    let old = mailed(&fake, "b", 1, "bob@x.example");
    let other =
        fake.stores_with(task_in("c", ProcessState::Error), |order| order.correlation_id = Some("cart-7".into()));
    let texts = |answer: &Answer, id: OrderId| {
        let orders = answer.body["Orders"].as_array().unwrap();
        orders.iter().find(|order| order["OrderID"] == id.to_string()).unwrap()["Index"].clone()
    };
    for query in ["", "&workflow=shop"] {
        let answer = fake.get(&format!("/orders?with=index{query}"));
        assert_eq!(texts(&answer, new), json!({"/Email": "ann@x.example"}));
        assert_eq!(texts(&answer, old), json!({}), "its version declares no member");
        assert_eq!(texts(&fake.get(&format!("/orders?limit=9{query}")), new), json!(null));
    }
    assert_eq!(texts(&fake.get("/orders?with=index"), other), json!({"/CorrelationID": "cart-7"}));
    fake.get("/orders?with=all").names(400, "invalid-parameter", "with");
    fake.down("store.order");
    fake.get("/orders?with=index").is_problem(503, "unavailable");
}

#[test]
fn after_the_index_come_the_orders_of_versions_that_are_in_none() {
    let fake = with_an_index();
    let [new, newer] = ["b", "c"].map(|name| mailed(&fake, name, 2, "ann@x.example"));
    let old = mailed(&fake, "a", 1, "ann@x.example");
    mailed(&fake, "d", 1, "bob@x.example");
    let query = "field=/Email&value=ann@x.example";
    assert_eq!(pages(&fake, query), [(set([new, newer]), true), (set([old]), false)]);
    // With smaller pages, too, each is found once.
    let small = pages(&fake, &format!("{query}&limit=1"));
    let all: Vec<_> = small.iter().flat_map(|(ids, _)| ids).collect();
    assert_eq!((all.len(), small[1].1), (3, true));
    assert_eq!(pages(&fake, &format!("{query}&workflow=shop/2")), [(set([new, newer]), true)], "that is all of them");
    assert_eq!(pages(&fake, &format!("{query}&workflow=shop/1")), [(set([old]), false)]);
    // Another member is in no index.
    assert_eq!(pages(&fake, "field=/Name&value=ann"), [(set([]), false)]);
}

#[test]
fn a_store_without_an_index_is_searched_through_its_list() {
    let fake = with_an_index();
    let found = mailed(&fake, "a", 2, "ann@x.example");
    fake.has_no_index_of_terms();
    assert_eq!(pages(&fake, "field=/Email&value=ann@x.example"), [(set([found]), false)]);
}

#[test]
fn rule_40_orders_are_found_by_whether_they_wait_for_an_approval() {
    let fake = Fake::default();
    let mut task = task_in("asked", ProcessState::Processing);
    let step = &mut task.steps[0];
    (step.process_state, step.attempt, step.approval) = (StepState::Processing, 1, Some(Approvers::default()));
    step.waits_until = Some(Timestamp::from_epoch_ms(1));
    let asked = fake.stores(task);
    let other = fake.stores(task_in("not asked", ProcessState::Processing));
    finds(&fake, "approval=true", &[asked]);
    finds(&fake, "approval=false&state=Processing", &[other]);
    fake.get("/orders?approval=yes").names(400, "invalid-parameter", "approval");
    assert_eq!(fake.get("/orders?approval=true").body["Orders"][0]["Steps"][0]["Approval"], serde_json::json!({}));
}
