//! Records that another version of this program may have written.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::OrderId;
use domain::lease::{Lease, acquired};
use domain::ports::{Commit, PortErrorKind, Records, Seen, Store};
use domain::task::StepState;
use tests::conformance::samples::{NOON, committed, health, memo, next, stored};

use super::World;
use super::way::Happens;

async fn set(world: &World, order_id: OrderId, path: &str, value: AttributeValue) {
    let request = world.local.client().update_item().table_name(&world.local.tables.tasks);
    request
        .key("OrderID", AttributeValue::S(order_id.to_string()))
        .update_expression(format!("SET {path} = :value"))
        .expression_attribute_values(":value", value)
        .send()
        .await
        .unwrap();
}

#[tokio::test]
async fn what_nobody_here_knows_is_kept() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    let blue = AttributeValue::S("blue".into());
    set(&world, first.order_id, "Colour", blue.clone()).await;
    set(&world, first.order_id, "Steps[0].Colour", blue.clone()).await;
    assert_eq!(world.store.task(first.order_id).await.unwrap().unwrap(), first);
    let second = next(&first, |task| {
        task.steps[0].process_state = StepState::Processing;
        task.steps[1].failure_count = 7;
        task.watch_at = None;
    });
    let second = committed(&world.store, &first, second).await;
    assert_eq!(world.store.task(first.order_id).await.unwrap().unwrap(), second);
    let read = world.local.client().get_item().table_name(&world.local.tables.tasks);
    let read = read.key("OrderID", AttributeValue::S(first.order_id.to_string())).send().await.unwrap();
    let item = read.item.unwrap();
    assert_eq!(item["Colour"], blue);
    assert_eq!(item["Steps"].as_l().unwrap()[0].as_m().unwrap()["Colour"], blue);
    assert_eq!(item.get("WatchAt"), None);
}

#[tokio::test]
async fn a_task_of_an_unknown_form_is_refused_and_told() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    set(&world, first.order_id, "Steps[2].ProcessState", AttributeValue::S("Dreaming".into())).await;
    let error = world.store.task(first.order_id).await.unwrap_err();
    assert_eq!((error.operation, error.kind), ("store.task", PortErrorKind::Refused));
    let told = error.source.unwrap().to_string();
    assert_eq!(told, "Steps[2].ProcessState is stored in a form that cannot be read: \"Dreaming\" is unknown");
}

/// A lease in another version's form would keep every supervisor out until DynamoDB deletes it.
#[tokio::test]
async fn an_item_without_a_record_counts_as_none_and_is_written_over() {
    let world = World::new().await;
    let lease = acquired(None, "supervisor/00", "supervisor-1", NOON, 10_000).unwrap();
    let put = world.local.client().put_item().table_name(&world.local.tables.leases);
    let put = put.item("Name", AttributeValue::S(lease.name.to_string())).item("Epoch", AttributeValue::N("7".into()));
    put.item("ExpiresAt", AttributeValue::N(NOON.plus_ms(3_600_000).epoch_ms().to_string())).send().await.unwrap();
    assert_eq!(world.store.get::<Lease>(&lease.name).await.unwrap(), None);
    assert_eq!(world.store.put(Seen::nothing(NOON), &lease).await.unwrap(), Commit::Committed);
    assert_eq!(world.store.get(&lease.name).await.unwrap(), Some(lease));
}

#[tokio::test]
async fn a_lost_answer_of_any_conditional_write_is_no_conflict() {
    let world = World::new().await;
    use domain::ports::Commit::{Committed, Conflict};
    world.way.let_happen("PutItem", Happens::AnswerLost);
    assert_eq!(world.store.put(Seen::version(0, NOON), &health("payment", 1)).await.unwrap(), Committed);
    assert_eq!(world.store.put(Seen::version(0, NOON), &health("payment", 1)).await.unwrap(), Conflict);
    world.way.let_happen("PutItem", Happens::AnswerLost);
    assert_eq!(world.store.put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap(), Committed);
    assert_eq!(world.store.put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap(), Conflict);
    assert!(world.way.is_used_up());
}
