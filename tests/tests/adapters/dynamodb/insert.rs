//! Writes order and task together, with any obstacle.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::index::Term;
use domain::json::Json;
use domain::order::Order;
use domain::ports::{Inserted, PortErrorKind, Store};
use domain::tally::{Batch, Change};
use domain::task::{ProcessState, Task};
use serde_json::json;
use tests::conformance::samples::{committed, next, order, order_with, task};

use super::World;
use super::way::{Happens, cancelled, failure};

const INSERT: &str = "TransactWriteItems";

/// The tokens of all transactions.
fn tokens(world: &World) -> BTreeSet<String> {
    let sent = world.way.sent().into_iter().filter(|sent| sent.operation == INSERT);
    sent.map(|sent| sent.body["ClientRequestToken"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn f05_what_the_sdk_does_not_try_again_is_tried_again_under_the_same_token() {
    let world = World::new().await;
    world.way.let_happen(INSERT, cancelled(&json!([{ "Code": "TransactionConflict" }, { "Code": "None" }])));
    world.way.let_happen(INSERT, cancelled(&json!([{ "Code": "None" }, { "Code": "ThrottlingError" }])));
    let throttled = json!([{ "Code": "ProvisionedThroughputExceeded" }, { "Code": "None" }]);
    world.way.let_happen(INSERT, cancelled(&throttled));
    world.way.let_happen(INSERT, failure(400, "TransactionInProgressException"));
    assert_eq!(world.store.insert(order(1), task(&order(1))).await.unwrap(), Inserted::New);
    assert!(world.way.is_used_up());
    assert_eq!((world.count(INSERT), tokens(&world).len()), (5, 1));
    assert!(tokens(&world).iter().all(|token| token.len() <= 36));
    assert_eq!(*world.store.task(order(1).order_id).await.unwrap().unwrap(), task(&order(1)));
}

#[tokio::test]
async fn f05_who_is_always_in_the_way_makes_the_store_unavailable() {
    let world = World::new().await;
    for _ in 0..100 {
        world.way.let_happen(INSERT, cancelled(&json!([{ "Code": "TransactionConflict" }, { "Code": "None" }])));
    }
    let error = world.store.insert(order(1), task(&order(1))).await.unwrap_err();
    assert_eq!((error.operation, error.kind), ("store.insert", PortErrorKind::Unavailable));
    assert!((2..20).contains(&world.count(INSERT)), "{}", world.count(INSERT));
    assert_eq!(world.store.task(order(1).order_id).await.unwrap(), None);
}

#[tokio::test]
async fn f04_a_lost_answer_is_asked_for_again_and_nothing_is_written_twice() {
    let world = World::new().await;
    world.way.let_happen(INSERT, Happens::AnswerLost);
    assert_eq!(world.store.insert(order(1), task(&order(1))).await.unwrap(), Inserted::New);
    assert_eq!((world.count(INSERT), tokens(&world).len()), (2, 1));
    assert_eq!(*world.store.order(order(1).order_id).await.unwrap().unwrap(), order(1));
}

#[tokio::test]
async fn f04_a_retry_after_the_token_is_forgotten_finds_its_own_order() {
    let world = World::new().await;
    world.store.insert(order(1), task(&order(1))).await.unwrap();
    let first = world.store.task(order(1).order_id).await.unwrap().unwrap();
    let second = committed(&world.store, &first, next(&first, |task| task.notify = true)).await;
    // DynamoDB's answer after ten minutes. It may or may not show the order.
    let shown = json!({ "Fingerprint": { "S": &*order(1).fingerprint } });
    let failed =
        |item| json!([{ "Code": "ConditionalCheckFailed", "Item": item }, { "Code": "ConditionalCheckFailed" }]);
    for item in [shown, json!(null)] {
        world.way.let_happen(INSERT, cancelled(&failed(item)));
        assert_eq!(world.store.insert(order(1), task(&order(1))).await.unwrap(), Inserted::Same);
    }
    let other = order_with(1, r#"{"Total":13}"#);
    world.way.let_happen(INSERT, cancelled(&failed(json!({ "Fingerprint": { "S": &*order(1).fingerprint } }))));
    assert_eq!(world.store.insert(other.clone(), task(&other)).await.unwrap(), Inserted::Different);
    assert_eq!(world.store.task(order(1).order_id).await.unwrap().unwrap(), second);
}

#[tokio::test]
async fn rule_28_an_order_that_is_not_stored_leaves_no_terms_and_takes_none_of_the_stored_one() {
    let found = async |world: &World, name| {
        world.store.found(&Term::correlation(name), None, 10).await.unwrap().unwrap().tasks.len()
    };
    let with = |order: Order, names: [&str; 2]| Order { terms: names.map(Term::correlation).into(), ..order };
    let refused = || with(order_with(1, r#"{"Total":13}"#), ["both", "other"]);
    for (shown, is_of_an_earlier_version) in [(true, false), (false, false), (true, true)] {
        let world = World::new().await;
        let stored = with(order(1), ["own", "both"]);
        assert_eq!(world.store.insert(stored.clone(), task(&stored)).await.unwrap(), Inserted::New);
        if is_of_an_earlier_version {
            let key = AttributeValue::S(stored.order_id.to_string());
            let update = world.local.client().update_item().table_name(&world.local.tables.orders);
            update.key("OrderID", key).update_expression("REMOVE Terms").send().await.unwrap();
        }
        if !shown {
            let failed = json!([{ "Code": "ConditionalCheckFailed" }, { "Code": "ConditionalCheckFailed" }]);
            world.way.let_happen(INSERT, cancelled(&failed));
        }
        assert_eq!(world.store.insert(refused(), task(&refused())).await.unwrap(), Inserted::Different);
        // The same document, by an API whose workflow declares another member.
        let same = with(order(1), ["own", "other"]);
        assert_eq!(world.store.insert(same.clone(), task(&same)).await.unwrap(), Inserted::Same);
        let left = [found(&world, "own").await, found(&world, "both").await, found(&world, "other").await];
        assert_eq!(left, [1, 1, usize::from(is_of_an_earlier_version)], "{shown}");
    }
}

#[tokio::test]
async fn a_submission_that_comes_again_is_another_write_under_another_token() {
    let world = World::new().await;
    let again = Task { nonce: 2_000, ..task(&order(1)) };
    assert_eq!(world.store.insert(order(1), task(&order(1))).await.unwrap(), Inserted::New);
    assert_eq!(world.store.insert(order(1), again).await.unwrap(), Inserted::Same);
    assert_eq!(tokens(&world).len(), 2);
    assert_eq!(*world.store.task(order(1).order_id).await.unwrap().unwrap(), task(&order(1)));
}

#[tokio::test]
async fn the_same_write_in_another_form_under_the_same_token_is_decided_by_what_is_stored() {
    let world = World::new().await;
    world.store.insert(order(1), task(&order(1))).await.unwrap();
    world.way.let_happen(INSERT, failure(400, "IdempotentParameterMismatchException"));
    assert_eq!(world.store.insert(order(1), task(&order(1))).await.unwrap(), Inserted::Same);
}

#[tokio::test]
async fn a_task_without_its_order_is_no_answer() {
    let world = World::new().await;
    world.store.insert(order(1), task(&order(1))).await.unwrap();
    let delete = world.local.client().delete_item().table_name(&world.local.tables.orders);
    let order_id = order(1).order_id.to_string();
    delete.key("OrderID", aws_sdk_dynamodb::types::AttributeValue::S(order_id)).send().await.unwrap();
    let again = Task { nonce: 2_000, ..task(&order(1)) };
    let error = world.store.insert(order(1), again).await.unwrap_err();
    assert_eq!((error.operation, error.kind), ("store.insert", PortErrorKind::Unavailable));
}

#[tokio::test]
async fn what_will_never_be_written_is_refused() {
    let world = World::new().await;
    let mut huge = task(&order(1));
    huge.steps[0].output = Some(Json::of(&"x".repeat(410 * 1_024)));
    let error = world.store.insert(order(1), huge).await.unwrap_err();
    assert_eq!((error.operation, error.kind), ("store.insert", PortErrorKind::Refused));
    assert_eq!(world.store.order(order(1).order_id).await.unwrap(), None);
    world.way.let_happen(INSERT, cancelled(&json!([{ "Code": "ValidationError" }, { "Code": "None" }])));
    let error = world.store.insert(order(1), task(&order(1))).await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Refused);
}

#[tokio::test]
async fn rule_44_an_order_whose_task_expired_gives_way_to_a_new_one_which_the_late_deletion_leaves_alone() {
    let world = World::new().await;
    let term = Term::correlation("cart-7");
    let old = Order { terms: vec![term.clone()], ..order(1) };
    let new = Order { submitted_at: old.submitted_at.plus_ms(1), ..old.clone() };
    world.store.insert(old.clone(), task(&old)).await.unwrap();
    let first = world.store.task(old.order_id).await.unwrap().unwrap();
    let ended = next(&first, |task| {
        (task.process_state, task.expires_at) = (ProcessState::Processed, Some(old.submitted_at));
    });
    let ended = committed(&world.store, &first, ended).await;
    world.local.delete_as_by_ttl(&ended).await;
    // The answer to the first attempt is lost, too.
    world.way.let_happen(INSERT, Happens::AnswerLost);
    assert_eq!(world.store.insert(new.clone(), task(&new)).await.unwrap(), Inserted::New);
    let gone = Change { sequence: "1".into(), at: new.submitted_at, before: Some(Task::clone(&ended)), after: None };
    let batch = Batch { changes: vec![gone], ..Batch::default() };
    world.store.forget(&batch).await.unwrap();
    let stored = world.store.order(new.order_id).await.unwrap().unwrap();
    assert_eq!(stored.submitted_at, new.submitted_at);
    assert_eq!(world.store.found(&term, None, 10).await.unwrap().unwrap().tasks.len(), 1);
    // Nor does a task that somebody deletes by hand take its order with it.
    let by_hand = Change { sequence: "2".into(), at: new.submitted_at, before: Some(task(&new)), after: None };
    world.store.forget(&Batch { changes: vec![by_hand], ..Batch::default() }).await.unwrap();
    assert!(world.store.order(new.order_id).await.unwrap().is_some());
    // The new order was stored between the look at the old one and its deletion.
    let old_item =
        json!({"SubmittedAt": {"N": old.submitted_at.epoch_ms().to_string()}, "Terms": {"L": [{"S": term.text()}]}});
    world.way.let_happen("GetItem", Happens::Answer(200, json!({ "Item": old_item })));
    world.store.forget(&batch).await.unwrap();
    assert_eq!(world.store.found(&term, None, 10).await.unwrap().unwrap().tasks.len(), 1, "it is still found");
    assert_eq!(*world.store.task(new.order_id).await.unwrap().unwrap(), task(&new));
}
