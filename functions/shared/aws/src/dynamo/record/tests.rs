//! Tests of the records: each value is read as it was written, and takes little space.

use std::sync::Arc;

use domain::definition::Catalogue;
use domain::instance::Instance;
use domain::json::Json;
use domain::limits::SHARDS;
use domain::machine::{Decision, Event, Moment, decide};
use domain::message::{Outcome, Priority, Reply};
use domain::order::{AgainOf, Order, Parent};
use domain::task::{
    Direction, Notice, NoticeKind, Pause, ProcessState, Reason, Step, StepError, StepState, Taken, Task, Transition,
    Watch, What,
};
use domain::workflow::Workflows;

use super::size::item_bytes;
use super::*;

const NOON: Timestamp = Timestamp::from_epoch_ms(1_795_176_000_000);
/// DynamoDB bills a write by each started kilobyte.
const UNIT_BYTES: usize = 1_024;

pub(super) fn sample_order(submitter: &str) -> Order {
    let sample = memory::sample::order("samples", "1", r#"{ "Item": "book-1", "Total": 12.50 }"#, NOON);
    Order { submitter: submitter.into(), ..sample }
}

fn sample_task() -> Task {
    Task::new(&sample_order("shop"), Workflows::shipped().unwrap().current(), SHARDS, u64::MAX)
}

fn read_back(before: &Task) -> Task {
    task(task_item(before)).unwrap()
}

/// Every version of an order of three steps with one attempt each. A different instance writes each version.
fn healthy_way(submitter: &str) -> Vec<Task> {
    let workflows = Workflows::shipped().unwrap();
    let outputs = [
        r#"{"ReservationID":"rsv-5b1d0fa35c0b1e77","Warehouse":"W3"}"#,
        r#"{"PaymentID":"pay-0f0c5dd49c2e11f0","Status":"captured"}"#,
        r#"{"TrackingNumber":"SW004112998231","Carrier":"Parcel Post"}"#,
    ];
    let order = sample_order(submitter);
    let mut way = vec![Task::new(&order, workflows.current(), SHARDS, 0x0123_4567_89ab_cdef)];
    let steps = workflows.current().steps.clone();
    let replies = steps.iter().zip(outputs).map(|(step, output)| Reply {
        order_id: order.order_id,
        step: step.name.clone(),
        direction: Direction::Forward,
        attempt: 1,
        outcome: Outcome::Done(Json::parse(output.as_bytes(), 100).unwrap()),
        hops: 2,
        may_run_until: None,
        call_ms: Some(43),
    });
    let replies: Vec<_> = replies.collect();
    let mut events = vec![Event::Wake { hops: 0, redelivered: false }];
    events.extend(replies.iter().map(|reply| Event::Reply { reply, redelivered: false }));
    for (n, event) in (1..).zip(events) {
        let name: Arc<str> = format!("scheduler-{:08x}", 0x1f3a_9c2e_u32.wrapping_mul(n)).into();
        let instance = Instance { name, catalogue: Catalogue::new(workflows.clone()), shards: SHARDS };
        let now = NOON.plus_ms(1_234 * u64::from(n));
        let moment = Moment { now, instance: &instance.name, nonce: u64::MAX - u64::from(n), draw: 1 };
        let Decision { change, .. } = decide(way.last().unwrap(), workflows.current(), event, moment).unwrap();
        way.push(change.unwrap());
    }
    assert_eq!(way.last().unwrap().process_state, ProcessState::Processed);
    way
}

#[test]
fn a_healthy_order_of_three_steps_stays_within_a_kilobyte_to_its_end() {
    let arn = "arn:aws:sts::123456789012:assumed-role/web-shop/i-0123456789abcdef0";
    for submitter in ["shop", arn] {
        let sizes: Vec<_> = healthy_way(submitter).iter().map(|task| item_bytes(&task_item(task))).collect();
        println!("bytes of each version, submitted by {submitter}: {sizes:?}");
        assert!(sizes.iter().all(|bytes| *bytes <= UNIT_BYTES), "{sizes:?}");
    }
    let order = item_bytes(&order_item(&sample_order(arn)));
    println!("bytes of the order: {order}");
    assert!(order <= UNIT_BYTES);
}

#[test]
fn each_version_on_a_healthy_way_is_read_as_it_was_written() {
    for task in healthy_way("shop") {
        assert_eq!(read_back(&task), task);
    }
}

#[test]
fn the_history_is_short() {
    let way = healthy_way("shop");
    let item = task_item(way.last().unwrap());
    let expected = [
        r#"["S",1795176000000,"shop"]"#,
        r#"[{"C":0},1234,"scheduler-1f3a9c2e"]"#,
        r#"[{"P":0},1234,"~3e75385c"],[{"C":1}]"#,
        r#"[{"P":1},1234,"~5dafd48a"],[{"C":2}]"#,
        r#"[{"P":2},1234,"~7cea70b8"],[{"E":"Processed"}]"#,
    ];
    assert_eq!(item["History"], text(format!("[{}]", expected.join(","))));
}

#[test]
fn names_are_those_of_the_design_and_times_are_numbers() {
    let way = healthy_way("shop");
    let item = task_item(&way[1]);
    let mut names: Vec<_> = item.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "History",
        "Nonce",
        "OrderID",
        "ProcessState",
        "Steps",
        "Version",
        "Watch",
        "WatchAt",
        "Workflow",
        "WorkflowVersion",
    ];
    assert_eq!(names, expected);
    let AttributeValue::M(claimed) = &item["Steps"].as_l().unwrap()[0] else { panic!("a map") };
    assert_eq!(claimed["LockedBy"], text("scheduler-1f3a9c2e"));
    assert_eq!(claimed["CompleteBy"], number(1_795_176_031_234_i64));
    assert_eq!((&claimed["ProcessState"], &claimed["Attempt"]), (&text("Processing"), &number(1)));
    let AttributeValue::M(waiting) = &item["Steps"].as_l().unwrap()[1] else { panic!("a map") };
    assert_eq!(
        (&waiting["LockedBy"], &waiting["CompleteBy"]),
        (&AttributeValue::Null(true), &AttributeValue::Null(true))
    );
    assert_eq!((&waiting["FailureCount"], &waiting["Attempt"]), (&number(0), &number(0)));
    let finished = task_item(way.last().unwrap());
    assert!(!finished.contains_key("Watch") && !finished.contains_key("WatchAt"));
}

#[test]
fn only_a_task_in_error_is_in_the_index_of_those() {
    let mut task = sample_task();
    assert!(!task_item(&task).contains_key("Failed"));
    task.process_state = ProcessState::Error;
    let at = |task: &Task| task_item(task)["FailedAt"].clone();
    assert_eq!(at(&task), time(NOON));
    task.history.push(line(5, What::Entered(ProcessState::Error)));
    task.history.push(line(7, What::Late));
    assert_eq!(at(&task), time(NOON.plus_ms(5)));
    task.history.clear();
    assert_eq!(at(&task), time(task.watch_at.unwrap()));
}

fn line(after_ms: u64, what: What) -> Transition {
    Transition { at: NOON.plus_ms(after_ms), who: "scheduler-1".into(), what, why: None, command_id: None, bulk: None }
}

/// A task of fifty steps with every possible attribute.
fn crowded() -> Task {
    let states =
        [StepState::Pending, StepState::Processing, StepState::Processed, StepState::Error, StepState::Skipped];
    let directions = [Direction::Forward, Direction::Undo];
    let steps = (0..50_usize).map(|n| {
        let odd = n % 2 == 1;
        let at = NOON.plus_ms(n as u64);
        Step {
            name: format!("step-{n}").into(),
            agent: "agent".into(),
            process_state: states[n % states.len()],
            locked_by: odd.then(|| "scheduler-1".into()),
            complete_by: odd.then_some(at),
            failure_count: u32::MAX,
            attempt: u32::MAX - 1,
            direction: directions[n % 2],
            optional: odd,
            pivot: odd,
            dropped: odd,
            approval: odd.then(|| domain::task::Approvers {
                role: Some("manager".into()),
                not_by: None,
                since_version: 7,
            }),
            doubted_at: odd.then_some(at),
            not_before: odd.then_some(at),
            waits_until: odd.then_some(at),
            wait_to_come: odd,
            poll: odd.then(|| domain::task::Poll { path: "/t/7".into(), at: (n % 3 == 0).then_some(at) }),
            may_run_until: odd.then_some(at),
            call_ms: odd.then_some(u64::MAX),
            declined: n as u32,
            fallback: vec!["agent-b".into(); n % 3],
            output: odd.then(|| Json::parse(b"null", 4).unwrap()),
            last_error: odd.then(|| StepError {
                code: "".into(),
                message: "\u{0}\n\"\u{1F4A5}".into(),
                attempt: 7,
                at,
            }),
            started_at: odd.then_some(at),
            finished_at: odd.then_some(at),
        }
    });
    let reason = |earlier| Reason {
        code: "compensation-failed".into(),
        message: "why; \"not\" because ".into(),
        step: Some("step-3".into()),
        since_version: u64::MAX,
        earlier,
    };
    let unsent = NoticeKind::ALL;
    Task {
        version: u64::MAX,
        nonce: 0,
        workflow: "".into(),
        workflow_version: u32::MAX,
        process_state: ProcessState::Error,
        reason: Some(reason(Some(Box::new(reason(Some(Box::new(Reason { step: None, ..reason(None) }))))))),
        steps: steps.collect(),
        watch: Some(Watch::Error(99)),
        watch_at: Some(Timestamp::from_epoch_ms(-1)),
        parent: Some(Parent { order_id: sample_task().order_id.again(), step: "replace".into(), depth: 5 }),
        complete_by: Some(NOON),
        late_since: Some(Timestamp::from_epoch_ms(-1)),
        expires_at: Some(Timestamp::from_epoch_ms(1_795_195_603_007)),
        erased_at: Some(NOON),
        priority: Priority::High,
        paused: Some(Pause { by: "ann".into(), reason: "".into(), since: NOON, version: 3 }),
        resumed: 8,
        taken: Some(Taken { by: "ann".into(), since: NOON }),
        taken_version: 9,
        notify: true,
        unsent: (0..).zip(unsent).map(|(resends, kind)| Notice { kind, version: 9, resends }).collect(),
        jobs: ["01932b6d0c5f-0123456789abcdef".into(), "01932b6d0c60-0123456789abcdef".into()].into(),
        ..sample_task()
    }
}

#[test]
fn a_task_with_everything_is_read_as_it_was_written() {
    let crowded = crowded();
    assert_eq!(read_back(&crowded), crowded);
    for process_state in ProcessState::ALL {
        let task = Task { process_state, watch: None, watch_at: None, ..sample_task() };
        assert_eq!(read_back(&task), task);
    }
}

#[test]
fn outputs_keep_their_digits_and_spelling() {
    let outputs = [
        "null",
        "0.10",
        "1e400",
        "-0",
        "123456789012345678901234567890.000",
        r#"{ "a" : 1.0, "a": [ ] }"#,
        r#""\ud800""#,
        r#""\u0000""#,
        "\"\u{1F4A5}\"",
    ];
    for output in outputs {
        let mut task = sample_task();
        task.steps[1].output = Some(Json::parse(output.as_bytes(), 100).unwrap());
        assert_eq!(read_back(&task).steps[1].output.as_ref().unwrap().text(), output);
    }
}

#[test]
fn what_nobody_knows_is_ignored() {
    let before = sample_task();
    let mut item = task_item(&before);
    item.insert("Colour".into(), text("blue"));
    if let Some(AttributeValue::L(steps)) = item.get_mut("Steps")
        && let Some(AttributeValue::M(step)) = steps.first_mut()
    {
        step.insert("Colour".into(), AttributeValue::Ns(vec!["1".into()]));
    }
    assert_eq!(task(item).unwrap(), before);
}

#[test]
fn a_record_of_an_unknown_form_says_what_is_wrong_with_it() {
    let with = |name: &str, value: Option<AttributeValue>| {
        let mut item = task_item(&sample_task());
        match value {
            Some(value) => item.insert(name.into(), value),
            None => item.remove(name),
        };
        task(item).unwrap_err().to_string()
    };
    let unread = "is stored in a form that cannot be read";
    assert_eq!(with("Version", None), format!("Version {unread}: it is missing"));
    assert_eq!(with("Version", Some(text("7"))), format!("Version {unread}: expected a number, found text"));
    assert_eq!(with("Version", Some(number(-1))), format!("Version {unread}: the number -1 is out of range"));
    assert_eq!(with("ProcessState", Some(text("Asleep"))), format!("ProcessState {unread}: \"Asleep\" is unknown"));
    assert_eq!(with("Watch", Some(text("due"))), format!("Watch {unread}: \"due\" is unknown"));
    assert_eq!(with("Nonce", Some(bytes(&[1]))), format!("Nonce {unread}: expected 8 bytes"));
    assert_eq!(with("OrderID", Some(text("x"))), format!("OrderID {unread}: \"x\" is unknown"));
    let steps = AttributeValue::L(vec![AttributeValue::M(Item::new())]);
    assert_eq!(with("Steps", Some(steps)), format!("Steps[0].Name {unread}: it is missing"));
    assert_eq!(
        with("Steps", Some(AttributeValue::L(vec![number(1)]))),
        format!("Steps[0] {unread}: expected a map, found a number")
    );
    let told = with("History", Some(text("[[7]]")));
    assert_eq!(told, format!("History {unread}: a line of history continues another, and there is none"));
}

#[test]
fn an_order_is_read_as_it_was_written() {
    let plain = sample_order("shop");
    let full = Order {
        reply_channel: Some("shop".into()),
        correlation_id: Some("".into()),
        priority: Some(Priority::Normal),
        submitter: "\u{1F4A5}".into(),
        workflow: Some("order/2".parse().unwrap()),
        again_of: Some(AgainOf {
            order_id: plain.order_id.again(),
            by: "ada".into(),
            reason: "back".into(),
            bulk: Some("j".into()),
        }),
        ..plain.clone()
    };
    let urgent = Order { priority: Some(Priority::High), ..plain.clone() };
    for before in [plain, full, urgent] {
        let item = order_item(&before);
        assert_eq!(item["Document"], text(before.document.text()));
        assert_eq!(item["Recent"], text(format!("2026-11#{}", before.order_id.shard(RECENT_SHARDS))));
        assert_eq!(order(item).unwrap(), before);
    }
}

#[test]
fn every_time_belongs_to_a_month_and_none_is_before_the_first() {
    let month = |text: &str| recent_month(serde_json::from_str(&format!("\"{text}\"")).unwrap());
    assert_eq!(recent_key(month("2026-11-30T23:59:59.999Z"), 2), "2026-11#2");
    assert_eq!(recent_key(month("2026-12-01T00:00:00Z"), 0), "2026-12#0");
    assert_eq!(recent_key(month("2026-12-01T00:00:00Z") + 1, 0), "2027-01#0");
    for early in [0, i64::MIN] {
        assert_eq!(recent_month(Timestamp::from_epoch_ms(early)), FIRST_MONTH);
    }
    assert_eq!(recent_key(FIRST_MONTH, 3), "2026-01#3");
}
