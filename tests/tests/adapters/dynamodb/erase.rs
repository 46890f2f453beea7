//! Orders that are erased (rule 46): nothing of them is in any table, also where an erase is cut off.

use std::sync::Arc;

use aws::dynamo::TABLES;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::index::Term;
use domain::json::Json;
use domain::message::{Failure, Outcome, idempotency_key};
use domain::order::{AgainOf, ERASED, Order};
use domain::ports::{Commit, DeadLetterRecord, Inserted, Memo, MemoState, PortError, Records, Seen, Store};
use domain::task::{Direction, ProcessState, StepError, Task};
use tests::conformance::samples::{NOON, committed, dead_letter, next, order, stored, task};

use super::World;
use super::way::{Happens, cancelled};

const PERSON: &str = "zoe-quill";
/// The outcome of the transaction.
const ERASE: &str = "TransactWriteItems";

/// The first order, with the person in all that is stored about it, and the terms that it is found by.
fn order_of_a_person() -> Order {
    let document = Json::of(&vec![PERSON; 3]);
    Order {
        fingerprint: document.fingerprint().into(),
        document,
        correlation_id: Some(PERSON.into()),
        terms: vec![Term::correlation(PERSON), Term::correlation("another")],
        again_of: Some(AgainOf { order_id: order(2).order_id, by: PERSON.into(), reason: PERSON.into(), bulk: None }),
        ..order(1)
    }
}

/// Brings the order to its end.
async fn ended(world: &World) -> Arc<Task> {
    let (store, order) = (&world.store, order_of_a_person());
    let first = task(&order);
    assert_eq!(store.insert(order.clone().into(), first.clone().into()).await.unwrap(), Inserted::New);
    let failure = || Failure { code: "no".into(), message: PERSON.into() };
    for (way, outcome) in
        [(Direction::Forward, Outcome::Done(Json::of(&PERSON))), (Direction::Undo, Outcome::Failed(failure()))]
    {
        let key = idempotency_key(order.order_id, "charge-payment", way);
        let state = MemoState::Completed(outcome);
        let memo = Memo { key, version: 1, state, declined: 0, attempt: 0, expires_at: NOON.plus_ms(10_000) };
        store.put(Seen::nothing(NOON), &memo).await.unwrap();
    }
    for letter in [
        DeadLetterRecord { message: PERSON.into(), ..dead_letter(1, 1) },
        DeadLetterRecord {
            order_id: None,
            body: Some(format!("{} {PERSON}", order.order_id).into()),
            ..dead_letter(3, 3)
        },
        dead_letter(2, 2),
    ] {
        store.put(Seen::nothing(NOON), &letter).await.unwrap();
    }
    let last = next(&first, |task| {
        let step = &mut task.steps[0];
        step.output = Some(Json::of(&PERSON));
        step.last_error = Some(StepError { code: "no".into(), message: PERSON.into(), attempt: 1, at: NOON });
        (task.process_state, task.watch, task.watch_at) = (ProcessState::Processed, None, None);
    });
    committed(store, &first, last).await
}

/// The version that is erased, as a decision makes it anew.
fn erased(before: &Task, nonce: u64) -> Arc<Task> {
    next(before, |task| {
        task.erase();
        (task.erased_at, task.nonce) = (Some(NOON), nonce);
    })
}

/// Erases it as the scheduler does.
async fn erase(world: &World, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
    world.store.erase_others(before).await?;
    world.store.commit(before, after).await
}

/// All items with the person, by their tables; and the number of terms.
async fn left(world: &World) -> (Vec<&'static str>, usize) {
    let (mut found, mut terms) = (Vec::new(), 0);
    for table in &TABLES {
        let name = world.local.tables.name(table.variable).unwrap();
        let items = world.local.client().scan().table_name(name).send().await.unwrap().items.unwrap();
        if items.iter().any(|item| format!("{item:?}").contains(PERSON)) {
            found.push(table.variable);
        }
        if table.variable == "INDEX_TABLE" {
            terms = items.len();
        }
    }
    (found, terms)
}

#[tokio::test]
async fn rule_46_an_erase_that_is_cut_off_anywhere_is_finished_by_its_repeat() {
    for passes in 0.. {
        let world = World::new().await;
        let before = ended(&world).await;
        let all = ["ORDERS_TABLE", "TASKS_TABLE", "MEMOS_TABLE", "DEAD_LETTERS_TABLE"];
        assert_eq!(left(&world).await, (all.to_vec(), 2));
        world.way.passes(Some(passes));
        let outcome = erase(&world, &before, erased(&before, 1)).await;
        world.way.passes(None);
        let is_whole = outcome.is_ok();
        let after = if is_whole { erased(&before, 1) } else { erased(&before, 2) };
        if !is_whole {
            assert_eq!(world.store.task(before.order_id).await.unwrap().unwrap(), before, "{passes}");
            assert_eq!(erase(&world, &before, after.clone()).await.unwrap(), Commit::Committed);
        }
        assert_eq!(left(&world).await, (Vec::new(), 0), "{passes}");
        assert_eq!(world.store.task(before.order_id).await.unwrap().unwrap(), after);
        assert_eq!(*world.store.order(before.order_id).await.unwrap().unwrap(), order_of_a_person().erased());
        assert_eq!(Records::list::<DeadLetterRecord>(&world.store, 10).await.unwrap(), [dead_letter(2, 2)]);
        if is_whole {
            assert!(passes > 10, "{passes}");
            return;
        }
    }
}

#[tokio::test]
async fn rule_46_a_transaction_whose_answer_is_lost_or_that_meets_another_is_repeated() {
    for happens in
        [Happens::AnswerLost, cancelled(&serde_json::json!([{"Code": "TransactionConflict"}, {"Code": "None"}]))]
    {
        let world = World::new().await;
        let before = ended(&world).await;
        world.way.let_happen(ERASE, happens);
        assert_eq!(erase(&world, &before, erased(&before, 1)).await.unwrap(), Commit::Committed);
        assert!(world.way.is_used_up());
        assert_eq!(left(&world).await, (Vec::new(), 0));
        assert_eq!(world.store.commit(&before, erased(&before, 1)).await.unwrap(), Commit::Committed, "its own nonce");
        assert_eq!(world.store.commit(&before, erased(&before, 2)).await.unwrap(), Commit::Conflict);
    }
}

#[tokio::test]
async fn rule_46_an_erase_on_an_older_version_is_a_conflict_and_leaves_the_document() {
    let world = World::new().await;
    let before = ended(&world).await;
    let later = next(&before, |task| task.resumed += 1);
    committed(&world.store, &before, later.clone()).await;
    assert_eq!(world.store.commit(&before, erased(&before, 1)).await.unwrap(), Commit::Conflict);
    assert_eq!(world.store.task(before.order_id).await.unwrap().unwrap(), later);
    assert_eq!(&*world.store.order(before.order_id).await.unwrap().unwrap().correlation_id.clone().unwrap(), PERSON);
    // An order that has expired meanwhile.
    let gone = stored(&world.store, 5).await;
    let key = AttributeValue::S(gone.order_id.to_string());
    let orders = &world.local.tables.orders;
    world.local.client().delete_item().table_name(orders).key("OrderID", key).send().await.unwrap();
    assert_eq!(world.store.commit(&gone, erased(&gone, 1)).await.unwrap(), Commit::Conflict);
}

#[tokio::test]
async fn rule_46_a_submission_that_comes_again_leaves_no_terms_and_nothing_that_a_newer_version_wrote_stays() {
    let world = World::new().await;
    let before = ended(&world).await;
    let key = AttributeValue::S(before.order_id.to_string());
    let update = world.local.client().update_item().table_name(&world.local.tables.orders).key("OrderID", key);
    let update = update.update_expression("SET Newer = :person");
    update.expression_attribute_values(":person", AttributeValue::S(PERSON.into())).send().await.unwrap();
    let again = order_of_a_person();
    let delivered_again = Task { nonce: 7, ..task(&again) };
    world.store.erase_others(&before).await.unwrap();
    assert_eq!(world.store.insert(again.clone().into(), delivered_again.clone().into()).await.unwrap(), Inserted::Same);
    assert_eq!(left(&world).await.1, 2, "between the two");
    assert_eq!(world.store.commit(&before, erased(&before, 1)).await.unwrap(), Commit::Committed);
    assert_eq!(left(&world).await, (Vec::new(), 0));
    assert_eq!(world.store.insert(again.into(), delivered_again.into()).await.unwrap(), Inserted::Same);
    assert_eq!(left(&world).await, (Vec::new(), 0));
    assert_eq!(&*world.store.order(before.order_id).await.unwrap().unwrap().fingerprint, ERASED);
}

#[tokio::test]
async fn a_compressed_document_is_read_by_every_instance_and_erased_like_any() {
    let world = World::new().await;
    let document = Json::document(format!("{{\"Text\":\"{}\"}}", "ann@x.example ".repeat(200)).as_bytes()).unwrap();
    let one = Order { fingerprint: document.fingerprint().into(), document, ..order(1) };
    world.store.insert(one.clone().into(), task(&one).into()).await.unwrap();
    let forms = async || {
        let get = world.local.client().get_item().table_name(&world.local.tables.orders);
        let found = get.key("OrderID", AttributeValue::S(one.order_id.to_string())).send().await.unwrap();
        let item = found.item.unwrap();
        ["Document", "Compressed"].map(|name| item.contains_key(name))
    };
    assert_eq!(forms().await, [false, true]);
    assert_eq!(*world.store.order(one.order_id).await.unwrap().unwrap(), one);
    let first = world.store.task(one.order_id).await.unwrap().unwrap();
    let last = committed(&world.store, &first, next(&first, |task| task.process_state = ProcessState::Processed)).await;
    committed(&world.store, &last, erased(&last, 7)).await;
    assert_eq!(forms().await, [true, false]);
    assert_eq!(*world.store.order(one.order_id).await.unwrap().unwrap(), one.erased());
}
