//! Writes an order and then its task, with any obstacle.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::index::Term;
use domain::json::Json;
use domain::order::Order;
use domain::ports::{Inserted, PortErrorKind, Store};
use domain::tally::{Batch, Change};
use domain::task::{ProcessState, Task};
use serde_json::{Value, json};
use tests::conformance::samples::{committed, next, order, order_with, task};

use super::World;
use super::way::{Happens, failure};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const PUTS: [&str; 2] = ["PutItem orders", "PutItem tasks"];

/// Whether order and task are stored.
async fn stored(world: &World) -> (bool, bool) {
    let order_id = order(1).order_id;
    (world.store.order(order_id).await.unwrap().is_some(), world.store.task(order_id).await.unwrap().is_some())
}

/// The same document and key, posted once more.
fn posted_again(after_ms: u64) -> Order {
    Order { submitted_at: order(1).submitted_at.plus_ms(after_ms), ..order(1) }
}

/// Stores the order, and not its task.
async fn cut_short(world: &World) {
    world.way.let_happen("PutItem tasks", failure(400, "AccessDeniedException"));
    world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap_err();
    assert_eq!(stored(world).await, (true, false));
}

#[tokio::test]
async fn f05_an_insert_that_is_cut_off_anywhere_is_finished_by_its_repeat() {
    let mut seen = Vec::new();
    for requests in 0.. {
        let world = World::new().await;
        let one = Order { terms: vec![Term::correlation("cart-7")], ..order(1) };
        world.way.passes(Some(requests));
        let is_done = world.store.insert(one.clone().into(), task(&one).into()).await.is_ok();
        world.way.passes(None);
        let (has_order, has_task) = stored(&world).await;
        seen.push((has_order, has_task));
        // It is found only with its task.
        let found = world.store.found(&one.terms[0], None, 10).await.unwrap().unwrap().tasks.len();
        assert_eq!(found, usize::from(has_task));
        let again = Task { nonce: 2_000, ..task(&one) };
        let inserted = if has_task { Inserted::Same } else { Inserted::New };
        assert_eq!(
            world.store.insert(one.clone().into(), again.clone().into()).await.unwrap(),
            inserted,
            "after {requests}"
        );
        assert_eq!(world.store.order(one.order_id).await.unwrap().unwrap().document, one.document);
        let expected = if has_task { task(&one) } else { again };
        assert_eq!(*world.store.task(one.order_id).await.unwrap().unwrap(), expected);
        if is_done {
            break;
        }
    }
    assert_eq!(seen, [(false, false), (false, false), (true, false), (true, true)]);
}

#[tokio::test]
async fn f05_another_post_under_the_key_leaves_an_order_without_its_task_to_its_own_message() {
    let world = World::new().await;
    cut_short(&world).await;
    for after_ms in [1, 14 * DAY_MS] {
        let repeat = posted_again(after_ms);
        assert_eq!(world.store.insert(repeat.clone().into(), task(&repeat).into()).await.unwrap(), Inserted::Same);
        let other = Order { submitted_at: repeat.submitted_at, ..order_with(1, r#"{"Total":13}"#) };
        assert_eq!(world.store.insert(other.clone().into(), task(&other).into()).await.unwrap(), Inserted::Different);
    }
    assert_eq!(stored(&world).await, (true, false));
    // Its own message comes last, and perhaps as a dead letter.
    let held = Task { process_state: ProcessState::Error, version: 2, ..task(&order(1)) };
    assert_eq!(world.store.insert(order(1).into(), held.clone().into()).await.unwrap(), Inserted::New);
    assert_eq!(*world.store.order(order(1).order_id).await.unwrap().unwrap(), order(1));
    assert_eq!(*world.store.task(order(1).order_id).await.unwrap().unwrap(), held);
}

#[tokio::test]
async fn f05_a_put_that_meets_a_transaction_is_tried_again_and_at_last_left_to_the_queue() {
    for put in PUTS {
        let world = World::new().await;
        world.way.let_happen(put, failure(400, "TransactionConflictException"));
        assert_eq!(world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap(), Inserted::New);
        assert!(world.way.is_used_up());
        let world = World::new().await;
        for _ in 0..100 {
            world.way.let_happen(put, failure(400, "TransactionConflictException"));
        }
        let error = world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap_err();
        assert_eq!((error.operation, error.kind), ("store.insert", PortErrorKind::Unavailable));
        assert!((2..20).contains(&world.count("PutItem")), "{}", world.count("PutItem"));
        assert_eq!(stored(&world).await, (put == "PutItem tasks", false));
    }
}

#[tokio::test]
async fn f04_a_lost_answer_is_asked_for_again_and_nothing_is_written_twice() {
    for put in PUTS {
        let world = World::new().await;
        world.way.let_happen(put, Happens::AnswerLost);
        assert_eq!(world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap(), Inserted::New);
        assert_eq!(world.count("PutItem"), 3);
        assert_eq!(*world.store.order(order(1).order_id).await.unwrap().unwrap(), order(1));
        assert_eq!(*world.store.task(order(1).order_id).await.unwrap().unwrap(), task(&order(1)));
    }
}

#[tokio::test]
async fn f04_a_submission_that_comes_again_later_finds_its_order_and_task() {
    let world = World::new().await;
    world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap();
    let first = world.store.task(order(1).order_id).await.unwrap().unwrap();
    let second = committed(&world.store, &first, next(&first, |task| task.notify = true)).await;
    // DynamoDB may or may not show the order.
    for is_shown in [true, false] {
        if !is_shown {
            world.way.let_happen("PutItem orders", failure(400, "ConditionalCheckFailedException"));
        }
        assert_eq!(world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap(), Inserted::Same);
        let other = order_with(1, r#"{"Total":13}"#);
        assert_eq!(world.store.insert(other.clone().into(), task(&other).into()).await.unwrap(), Inserted::Different);
    }
    assert_eq!(world.store.task(order(1).order_id).await.unwrap().unwrap(), second);
}

#[tokio::test]
async fn rule_28_an_order_that_is_not_stored_leaves_no_terms_and_takes_none_of_the_stored_one() {
    let found = async |world: &World, name| {
        world.store.found(&Term::correlation(name), None, 10).await.unwrap().unwrap().tasks.len()
    };
    let with = |order: Order, names: [&str; 2]| Order { terms: names.map(Term::correlation).into(), ..order };
    let refused = || with(order_with(1, r#"{"Total":13}"#), ["both", "other"]);
    for shown in [true, false] {
        let world = World::new().await;
        let stored = with(order(1), ["own", "both"]);
        assert_eq!(world.store.insert(stored.clone().into(), task(&stored).into()).await.unwrap(), Inserted::New);
        if !shown {
            world.way.let_happen("PutItem orders", failure(400, "ConditionalCheckFailedException"));
        }
        assert_eq!(world.store.insert(refused().into(), task(&refused()).into()).await.unwrap(), Inserted::Different);
        // The same document, by an API whose workflow declares another member.
        let same = with(posted_again(1), ["own", "other"]);
        assert_eq!(world.store.insert(same.clone().into(), task(&same).into()).await.unwrap(), Inserted::Same);
        let left = [found(&world, "own").await, found(&world, "both").await, found(&world, "other").await];
        assert_eq!(left, [1, 1, 0], "{shown}");
    }
}

#[tokio::test]
async fn a_task_whose_order_somebody_deleted_has_it_again_after_a_repeat() {
    let world = World::new().await;
    world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap();
    let delete = world.local.client().delete_item().table_name(&world.local.tables.orders);
    delete.key("OrderID", AttributeValue::S(order(1).order_id.to_string())).send().await.unwrap();
    let again = Task { nonce: 2_000, ..task(&order(1)) };
    assert_eq!(world.store.insert(order(1).into(), again.into()).await.unwrap(), Inserted::Same);
    assert_eq!(stored(&world).await, (true, true));
}

#[tokio::test]
async fn what_will_never_be_written_is_refused() {
    let world = World::new().await;
    let mut huge = task(&order(1));
    huge.steps[0].output = Some(Json::of(&"x".repeat(410 * 1_024)));
    let error = world.store.insert(order(1).into(), huge.into()).await.unwrap_err();
    assert_eq!((error.operation, error.kind), ("store.insert", PortErrorKind::Refused));
    assert_eq!(stored(&world).await, (true, false));
    world.way.let_happen("PutItem orders", failure(400, "ValidationException"));
    let error = world.store.insert(order(1).into(), task(&order(1)).into()).await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Refused);
}

/// DynamoDB's answer to a put of an order that is there.
async fn shown(world: &World, stored: &Order) -> Value {
    let get = world.local.client().get_item().table_name(&world.local.tables.orders);
    let found = get.key("OrderID", AttributeValue::S(stored.order_id.to_string())).send().await.unwrap();
    let item = found.item.unwrap();
    let text = |name: &str| json!({ "S": item[name].as_s().unwrap() });
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "as the test says",
        "Item": { "Fingerprint": text("Fingerprint"), "SubmittedAt": { "N": item["SubmittedAt"].as_n().unwrap() } },
    })
}

#[tokio::test]
async fn rule_44_an_order_whose_task_expired_gives_way_to_a_new_one_which_the_late_deletion_leaves_alone() {
    let world = World::new().await;
    let term = Term::correlation("cart-7");
    let old = Order { terms: vec![term.clone()], ..order(1) };
    let new = Order { submitted_at: old.submitted_at.plus_ms(15 * DAY_MS), ..old.clone() };
    world.store.insert(old.clone().into(), task(&old).into()).await.unwrap();
    let first = world.store.task(old.order_id).await.unwrap().unwrap();
    let ended = next(&first, |task| {
        (task.process_state, task.expires_at) = (ProcessState::Processed, Some(old.submitted_at));
    });
    let ended = committed(&world.store, &first, ended).await;
    world.local.delete_as_by_ttl(&ended).await;
    // The answer to the first attempt is lost, too.
    let is_there = shown(&world, &old).await;
    world.way.let_happen("PutItem orders", Happens::Answer(400, is_there));
    world.way.let_happen("PutItem orders", Happens::AnswerLost);
    assert_eq!(world.store.insert(new.clone().into(), task(&new).into()).await.unwrap(), Inserted::New);
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
    // The new order is stored, and its task not yet; or the new order is stored after the looks, which find the old one.
    let old_item =
        json!({"SubmittedAt": {"N": old.submitted_at.epoch_ms().to_string()}, "Terms": {"L": [{"S": term.text()}]}});
    for looks in [
        vec![("GetItem tasks", json!({}))],
        vec![("GetItem tasks", json!({})), ("GetItem orders", json!({ "Item": old_item }))],
    ] {
        let sees_the_new = looks.len() == 1;
        looks.into_iter().for_each(|(look, finds)| world.way.let_happen(look, Happens::Answer(200, finds)));
        let deleted = world.count("DeleteItem");
        world.store.forget(&batch).await.unwrap();
        assert!(world.way.is_used_up());
        assert!(world.store.order(new.order_id).await.unwrap().is_some());
        assert_eq!(world.count("DeleteItem") == deleted, sees_the_new, "what is seen is left alone");
    }
    assert_eq!(world.store.found(&term, None, 10).await.unwrap().unwrap().tasks.len(), 1, "it is still found");
    assert_eq!(*world.store.task(new.order_id).await.unwrap().unwrap(), task(&new));
}
