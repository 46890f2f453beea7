//! Orders that are erased (rule 46): nothing of them is in any file.

use std::fs;
use std::sync::Arc;

use domain::audit::{Altered, Hash, Verifier};
use domain::backoff::{Backoff, BackoffPolicy};
use domain::bulk::{DryRun, Job};
use domain::id::CommandId;
use domain::index::Term;
use domain::json::Json;
use domain::message::{Action, CloudEvent, Command, Outcome, Priority, SchedulerMessage};
use domain::order::AgainOf;
use domain::ports::{
    Commit, DeadLetterOutcome, DeadLetterRecord, Events, HasEvents, HasRecords, HasStore, Inserted, Memo, MemoState,
    Records, Seen, ServiceHealth, Store,
};
use domain::task::{ProcessState, StepError, What};
use rusqlite::params;

use super::*;
use crate::audit::audit;

const ORDERS: u64 = 40;

/// What is in each text about an order.
fn person(n: u64) -> String {
    format!("zoe-{n}-quill")
}

fn now() -> Timestamp {
    order(0).submitted_at
}

/// An order about a person. Every third document is larger than a page.
fn order_of(n: u64) -> Order {
    let person = person(n);
    let times = if n.is_multiple_of(3) { 600 } else { 1 + usize::try_from(n).unwrap() };
    let document = Json::of(&vec![&*person; times]);
    Order {
        fingerprint: document.fingerprint().into(),
        document,
        correlation_id: Some((&*person).into()),
        terms: vec![Term::correlation(&person)],
        again_of: Some(AgainOf {
            order_id: order(n).order_id,
            by: (&*person).into(),
            reason: (&*person).into(),
            bulk: None,
        }),
        ..order(n)
    }
}

async fn next(engine: &Engine, n: u64, change: impl FnOnce(&mut Task)) -> Arc<Task> {
    let before = engine.store().task(order(n).order_id).await.unwrap().unwrap();
    let mut after = Task::clone(&before);
    (after.version, after.nonce) = (before.version + 1, before.nonce + 1);
    change(&mut after);
    let after = Arc::new(after);
    assert_eq!(engine.store().commit(&before, after.clone()).await.unwrap(), Commit::Committed);
    after
}

fn command(n: u64, action: Action, name: &str) -> SchedulerMessage {
    SchedulerMessage::Command(Command {
        order_id: order(n).order_id,
        action,
        by: name.into(),
        reason: name.into(),
        command_id: CommandId::generate(Timestamp::default(), [0; 2]),
        version: None,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    })
}

fn line(task: &mut Task, person: &str) {
    let mut line = task.history[0].clone();
    (line.who, line.what, line.why) = (person.into(), What::Noted(None), Some(person.into()));
    task.history.push(line);
}

/// Brings an order to its end, with the person in all that is stored about it.
async fn ended(engine: &Engine, n: u64) {
    let (order, person) = (order_of(n), person(n));
    engine.queues().submit(order.clone(), 0).await.unwrap();
    assert_eq!(engine.store().insert(order.clone().into(), task(&order, 1).into()).await.unwrap(), Inserted::New);
    engine.queues().to_scheduler(command(n, Action::Note, &person), Priority::Normal, 0).await.unwrap();
    for attempt in 1..=3 {
        next(engine, n, |task| {
            task.steps[0].last_error =
                Some(StepError { code: "no".into(), message: (&*person).into(), attempt, at: now() });
            line(task, &person);
        })
        .await;
    }
    let events = engine.events();
    let id: Arc<str> = order.order_id.to_string().into();
    let event = CloudEvent {
        specversion: "1.0".into(),
        id: format!("{id}-1").into(),
        source: "stepwarden".into(),
        kind: "OrderNeedsOperator".into(),
        subject: id.clone(),
        time: now(),
        datacontenttype: "application/json".into(),
        data: Json::of(&person),
    };
    events.publish(event).await.unwrap();
    let state = MemoState::Completed(Outcome::Done(Json::of(&person)));
    let key = format!("{id}/reserve-inventory").into();
    let memo = Memo { key, version: 1, state, declined: 0, attempt: 0, expires_at: now().plus_ms(1 << 40) };
    engine.records().put(Seen { version: 0, at: now() }, &memo).await.unwrap();
    let settled = DeadLetterRecord {
        message_id: format!("m-{n}").into(),
        queue: None,
        order_id: Some(order.order_id),
        receive_count: 10,
        at: now(),
        settled_at: now(),
        outcome: DeadLetterOutcome::LostCommand,
        message: (&*person).into(),
        body: None,
    };
    engine.records().put(Seen::nothing(now()), &settled).await.unwrap();
    next(engine, n, |task| {
        task.steps[0].output = Some(Json::of(&person));
        (task.process_state, task.watch, task.watch_at) = (ProcessState::Processed, None, None);
    })
    .await;
}

async fn erase(engine: &Engine, n: u64) {
    engine.queues().to_scheduler(command(n, Action::Erase, "dpo"), Priority::Normal, 0).await.unwrap();
    next(engine, n, |task| {
        task.erase();
        task.erased_at = Some(now());
    })
    .await;
}

/// The persons whose data are in a file of the directory.
fn told_of(directory: &Path) -> Vec<u64> {
    let mut texts = Vec::new();
    for file in fs::read_dir(directory).unwrap() {
        texts.push(fs::read(file.unwrap().path()).unwrap());
    }
    let has = |text: &Vec<u8>, person: &str| text.windows(person.len()).any(|part| part == person.as_bytes());
    (0..ORDERS).filter(|n| texts.iter().any(|text| has(text, &person(*n)))).collect()
}

#[tokio::test]
async fn rule_46_nothing_of_an_erased_order_is_in_any_file_and_the_others_stay_whole() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    for n in 0..ORDERS {
        ended(&engine, n).await;
        // A dead letter that nobody settled yet.
        let file = other_program(directory.path());
        file.pragma_update(None, "secure_delete", true).unwrap();
        let sql = "INSERT INTO dead_letters (queue, message_id, body, reason, receive_count, at) \
                   VALUES ('submission', 1, ?1, 'received-too-often', 10, 5)";
        file.execute(sql, params![serde_json::to_string(&order_of(n)).unwrap()]).unwrap();
    }
    assert_eq!(told_of(directory.path()).len() as u64, ORDERS);
    let is_erased = |n: &u64| n.is_multiple_of(2);
    for n in (0..ORDERS).filter(is_erased) {
        erase(&engine, n).await;
    }
    let kept: Vec<u64> = (0..ORDERS).filter(|n| !is_erased(n)).collect();
    assert_eq!(told_of(directory.path()), kept);
    assert_eq!(told_of(directory.path()), kept, "the log is empty");
    let file = other_program(directory.path());
    for (table, left) in [
        ("orders", ORDERS),
        ("tasks", ORDERS),
        ("memos", ORDERS),
        ("terms", 20),
        ("events", 20),
        ("letters", 20),
        ("dead_letters", 20),
        ("messages", 20),
        ("commands", 20),
    ] {
        assert_eq!(count(&file, &format!("SELECT count(*) FROM {table}")), i64::try_from(left).unwrap(), "{table}");
    }
    let whole = engine.store().order(order(1).order_id).await.unwrap().unwrap();
    assert_eq!((&whole.document, &whole.again_of), (&order_of(1).document, &order_of(1).again_of));
    engine.close().await.unwrap();
    assert_eq!(told_of(directory.path()), kept);
    let engine = open(directory.path());
    let erased = engine.store().order(order(0).order_id).await.unwrap().unwrap();
    assert_eq!((erased.document.text(), erased.correlation_id.as_deref()), ("{}", None));
}

#[tokio::test]
async fn rule_46_the_audit_stream_keeps_the_hashes_and_who_erased() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    ended(&engine, 1).await;
    ended(&engine, 2).await;
    erase(&engine, 1).await;
    let mut verifier = Verifier::default();
    let (mut texts, mut digests) = (Vec::new(), 0);
    for entry in audit(directory.path(), None).unwrap() {
        let entry = entry.unwrap();
        verifier.next(entry.seq, entry.hash, entry.text()).unwrap();
        match entry.body {
            Ok(body) => texts.push(body),
            Err(_) => digests += 1,
        }
    }
    assert_eq!((verifier.end().map(|_| ()), verifier.erased()), (Ok(()), 6), "the erase names them");
    let of = |n: u64| texts.iter().filter(|text| text.contains(&order(n).order_id.to_string())).count();
    // The note, the insert and four versions; of the first order the command and the version that erased it are left.
    assert_eq!((digests, of(1), of(2)), (6, 2, 6));
    assert!(texts.iter().any(|text| text.contains("\"Command\":\"Erase\"") && text.contains("dpo")));
    let file = other_program(directory.path());
    let body: String = file.query_row("SELECT body FROM audit WHERE seq = 8", [], |row| row.get(0)).unwrap();
    file.execute("UPDATE audit SET body = ?1 WHERE seq = 8", [Hash::of(&body).bytes()]).unwrap();
    let mut verifier = Verifier::default();
    for entry in audit(directory.path(), None).unwrap() {
        let entry = entry.unwrap();
        verifier.next(entry.seq, entry.hash, entry.text()).unwrap();
    }
    assert_eq!(verifier.end(), Err(Altered::Blank(8)), "no erase names it");
}

#[tokio::test]
async fn rule_46_a_reader_of_the_log_delays_only_that_it_is_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    ended(&engine, 1).await;
    let reader = other_program(directory.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM orders").unwrap();
    erase(&engine, 1).await;
    assert_eq!(told_of(directory.path()), [1], "it reads the pages of before");
    reader.execute_batch("COMMIT").unwrap();
    submit(&engine, 100..101).await;
    assert_eq!(told_of(directory.path()), Vec::<u64>::new());
}

#[tokio::test]
async fn rule_46_what_may_quote_an_erased_order_goes_from_the_audit_stream_and_the_events() {
    const JOB: &str = "01932b6d0c5f-0123456789abcdef";
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    ended(&engine, 1).await;
    let (person, other) = (person(1), person(2));
    // The writer's clock is the machine's.
    next(&engine, 1, |task| {
        task.history[0].at = Timestamp::from_epoch_ms(0);
        line(task, &person);
        let last = task.history.last_mut().unwrap();
        (last.at, last.bulk) = (Timestamp::from_epoch_ms(1 << 42), Some(JOB.into()));
    })
    .await;
    let job = |id: &str, reason: &str| {
        let spec = serde_json::from_str(&format!(r#"{{"By":"ada","Reason":"{reason}"}}"#)).unwrap();
        Job::plan(id.into(), spec, DryRun::default(), now()).unwrap()
    };
    let outage = format!(r#"{{"Reason":"failing","Problem":"{person}","Since":"{}"}}"#, now());
    let health = format!(
        r#"{{"Service":"payment","Version":1,"Era":0,"State":"Open","FailuresInARow":5,"Until":"{0}","Since":"{0}",
            "Backoff":{1},"Outage":{outage}}}"#,
        now(),
        json_of_a_backoff(),
    );
    let health: ServiceHealth = serde_json::from_str(&health).unwrap();
    let records = engine.records();
    let first = Seen::nothing(now());
    for job in [job(JOB, &person), job("another", &other)] {
        records.put(first, &job).await.unwrap();
    }
    records.put(first, &health).await.unwrap();
    let event = |kind: &str, subject: &str, text: &str| CloudEvent {
        specversion: "1.0".into(),
        id: format!("{kind} {subject}").into(),
        source: "stepwarden".into(),
        kind: kind.into(),
        subject: subject.into(),
        time: now(),
        datacontenttype: "application/json".into(),
        data: Json::of(&text),
    };
    engine.events().publish(event("ServiceMisconfigured", "payment", &person)).await.unwrap();
    engine.events().publish(event("AlertBegan", "service/payment/failing", &person)).await.unwrap();
    engine.events().publish(event("AlertBegan", "order/rejected/a", &other)).await.unwrap();
    // As the scheduler does it, before the order is erased.
    let seen = Seen::version(1, now());
    let quoted = engine.store().task(order(1).order_id).await.unwrap().unwrap().quoted();
    records.put(seen, &health.erased(&quoted).unwrap()).await.unwrap();
    records.put(seen, &job(JOB, &person).erased().unwrap()).await.unwrap();
    erase(&engine, 1).await;
    assert_eq!(told_of(directory.path()), [2]);
    let mut verifier = Verifier::default();
    for entry in audit(directory.path(), None).unwrap() {
        let entry = entry.unwrap();
        verifier.next(entry.seq, entry.hash, entry.text()).unwrap();
    }
    let file = other_program(directory.path());
    assert_eq!(count(&file, "SELECT count(*) FROM events"), 1);
    assert_eq!(count(&file, "SELECT count(*) FROM audit WHERE instr(body, 'another')"), 1);
}

#[tokio::test]
async fn rule_46_an_order_of_the_id_of_one_that_was_erased_and_expired_is_erased_too() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    for round in 0..3 {
        ended(&engine, 1).await;
        next(&engine, 1, |task| task.expires_at = Some(now())).await;
        erase(&engine, 1).await;
        let mut verifier = Verifier::default();
        for entry in audit(directory.path(), None).unwrap() {
            let entry = entry.unwrap();
            assert!(entry.text().is_err() || !entry.text().unwrap().contains(&person(1)), "{round}: {entry:?}");
            verifier.next(entry.seq, entry.hash, entry.text()).unwrap();
        }
        verifier.end().unwrap();
        assert_eq!(engine.store().forget_expired(now().plus_ms(1), 16).await.unwrap(), 1);
    }
}

fn json_of_a_backoff() -> String {
    let policy = BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true };
    serde_json::to_string(&Backoff::new(policy)).unwrap()
}
