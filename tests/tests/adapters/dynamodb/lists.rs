//! Lists over several partitions, and their reads.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::OrderId;
use domain::index::Term;
use domain::order::Order;
use domain::ports::{Inserted, PortErrorKind, Store};
use domain::task::{ProcessState, Transition, What};
use domain::time::Timestamp;
use serde_json::json;
use tests::conformance::samples::{NOON, committed, next, next_in, order, stored, task};

use super::World;
use super::way::{Happens, failure};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// All entries of a list, in pages of `limit`.
async fn all(world: &World, state: Option<ProcessState>, limit: usize) -> Vec<OrderId> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = world.store.list(state, after.as_deref(), limit).await.unwrap();
        assert!(page.tasks.len() <= limit);
        all.extend(page.tasks.iter().map(|task| task.order_id));
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

async fn stored_at(world: &World, n: u32, at: Timestamp) -> OrderId {
    let mut order = order(n);
    order.submitted_at = at;
    let task = task(&order);
    let order_id = order.order_id;
    assert_eq!(world.store.insert(order.into(), task.into()).await.unwrap(), Inserted::New);
    order_id
}

#[tokio::test]
async fn a_list_goes_back_over_months_in_which_nothing_came() {
    let world = World::new().await;
    let mut expected = Vec::new();
    // Some have the same time, some are months apart. One is before all time, and one has a clock that is ahead.
    let ages_days = [-12, 0, 0, 0, 1, 20, 21, 40, 200, 200, 300, 60_000];
    for (n, age_days) in (0..).zip(ages_days) {
        let at = match u64::try_from(age_days) {
            Ok(days) => NOON.minus_ms(days * DAY_MS),
            Err(_) => NOON.plus_ms(12 * DAY_MS),
        };
        expected.push((at, stored_at(&world, n, at).await));
    }
    for limit in [1, 2, 5, 100] {
        let listed = all(&world, None, limit).await;
        assert_eq!(listed.len(), expected.len(), "{limit} a page");
        let time_of = |id: &OrderId| expected.iter().find(|(_, other)| other == id).unwrap().0;
        assert!(listed.iter().rev().is_sorted_by_key(time_of), "{limit} a page: {listed:?}");
        assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), expected.len());
    }
}

#[tokio::test]
async fn a_cursor_forged_for_a_time_far_ahead_costs_no_more_than_none() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    assert_eq!(all(&world, None, 10).await, [first.order_id]);
    let without = world.count("Query");
    // `Any 12000000000000 1 a158c9b9-d209-82c1-a2ee-53c940c8c838`: from the year 2350, a list would need about fifteen
    // thousand queries.
    let far = "QW55IDEyMDAwMDAwMDAwMDAwIDEgYTE1OGM5YjktZDIwOS04MmMxLWEyZWUtNTNjOTQwYzhjODM4";
    let page = world.store.list(None, Some(far), 10).await.unwrap();
    assert_eq!(page.tasks.iter().map(|task| task.order_id).collect::<Vec<_>>(), [first.order_id]);
    assert!(world.count("Query") <= 2 * without, "{} queries, {without} without a cursor", world.count("Query"));
}

#[tokio::test]
async fn a_task_that_cannot_be_read_is_left_out_and_keeps_no_other_from_being_listed() {
    let world = World::new().await;
    let mut expected = Vec::new();
    for n in 0..5 {
        expected.insert(0, stored(&world.store, n).await.order_id);
    }
    let unreadable = expected.remove(2);
    let of_tomorrow = world.local.client().update_item().table_name(&world.local.tables.tasks);
    of_tomorrow
        .key("OrderID", AttributeValue::S(unreadable.to_string()))
        .update_expression("SET Steps[2].ProcessState = :state")
        .expression_attribute_values(":state", AttributeValue::S("Dreaming".into()))
        .send()
        .await
        .unwrap();
    for limit in [1, 2, 3, 10] {
        assert_eq!(all(&world, None, limit).await, expected, "{limit} a page");
        assert_eq!(all(&world, Some(ProcessState::Pending), limit).await, expected, "{limit} a page");
    }
    assert_eq!(world.store.task(unreadable).await.unwrap_err().kind, PortErrorKind::Refused);
}

#[tokio::test]
async fn those_in_error_are_listed_by_the_time_of_the_error_whoever_looks_after_them() {
    let world = World::new().await;
    let mut expected = Vec::new();
    for n in 0..20 {
        let first = stored(&world.store, n).await;
        if n % 2 == 0 {
            continue;
        }
        // A later order failed earlier. Some orders still have an unsent notice, and they appear among the others.
        let at = NOON.plus_ms(u64::from(1_000 - n));
        let failed = next(&first, |task| {
            task.process_state = ProcessState::Error;
            task.history.push(Transition {
                at,
                who: "a".into(),
                what: What::Entered(ProcessState::Error),
                why: None,
                command_id: None,
                bulk: None,
            });
        });
        expected.push(committed(&world.store, &first, failed).await.order_id);
    }
    for limit in [1, 3, 100] {
        assert_eq!(all(&world, Some(ProcessState::Error), limit).await, expected, "{limit} a page");
    }
    // Orders in flight are not read.
    let before = read_tasks(&world);
    world.store.list(Some(ProcessState::Error), None, 100).await.unwrap();
    assert_eq!(read_tasks(&world) - before, expected.len());
}

/// The number of tasks requested in batches so far.
fn read_tasks(world: &World) -> usize {
    let sent = world.way.sent().into_iter().filter(|sent| sent.operation == "BatchGetItem");
    let keys = sent.map(|sent| sent.body["RequestItems"][&world.local.tables.tasks]["Keys"].as_array().unwrap().len());
    keys.sum()
}

#[tokio::test]
async fn what_the_index_names_is_read_with_one_query_and_one_batch() {
    let world = World::new().await;
    let term = Term::correlation("cart-7");
    for n in 0..20 {
        let terms = if n == 7 { vec![term.clone()] } else { Vec::new() };
        let order = Order { terms, ..self::order(n) };
        assert_eq!(world.store.insert(order.clone().into(), task(&order).into()).await.unwrap(), Inserted::New);
    }
    let page = world.store.found(&term, None, 100).await.unwrap().unwrap();
    assert_eq!((page.tasks.len(), page.tasks[0].order_id, page.next), (1, order(7).order_id, None));
    assert_eq!((world.count("Query"), world.count("Scan"), read_tasks(&world)), (1, 0, 1));
}

#[tokio::test]
async fn a_term_is_written_before_its_order_and_may_be_left_over() {
    let world = World::new().await;
    let term = Term::correlation("cart-7");
    let order = Order { terms: vec![term.clone()], ..order(1) };
    world.way.let_happen("PutItem orders", failure(400, "AccessDeniedException"));
    world.store.insert(order.clone().into(), task(&order).into()).await.unwrap_err();
    assert_eq!(world.store.found(&term, None, 100).await.unwrap().unwrap().tasks, []);
    assert_eq!(world.store.insert(order.clone().into(), task(&order).into()).await.unwrap(), Inserted::New);
    assert_eq!(world.store.found(&term, None, 100).await.unwrap().unwrap().tasks.len(), 1);
    world.way.let_happen("PutItem index", failure(400, "AccessDeniedException"));
    let other = Order { terms: vec![term], ..self::order(2) };
    world.store.insert(other.clone().into(), task(&other).into()).await.unwrap_err();
    assert!(world.way.is_used_up());
    assert_eq!(world.store.order(other.order_id).await.unwrap(), None, "no order without its terms");
}

#[tokio::test]
async fn an_order_that_recovers_leaves_the_list_of_those_in_error() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    let second = committed(&world.store, &first, next_in(&first, ProcessState::Error)).await;
    assert_eq!(all(&world, Some(ProcessState::Error), 10).await, [first.order_id]);
    let third = committed(&world.store, &second, next_in(&second, ProcessState::Processing)).await;
    assert_eq!(all(&world, Some(ProcessState::Error), 10).await, []);
    assert_eq!(all(&world, Some(ProcessState::Processing), 10).await, [first.order_id]);
    committed(&world.store, &third, next_in(&third, ProcessState::Processed)).await;
    assert_eq!(all(&world, Some(ProcessState::Processing), 10).await, []);
    assert_eq!(all(&world, Some(ProcessState::Processed), 10).await, [first.order_id]);
}

#[tokio::test]
async fn a_page_that_finds_little_is_short_and_says_where_to_go_on() {
    let world = World::new().await;
    let mut wanted = Vec::new();
    for n in 0..1_100 {
        let first = stored(&world.store, n).await;
        if n == 7 || n == 1_099 {
            wanted
                .insert(0, committed(&world.store, &first, next_in(&first, ProcessState::Compensated)).await.order_id);
        }
    }
    let before = read_tasks(&world);
    let page = world.store.list(Some(ProcessState::Compensated), None, 10).await.unwrap();
    assert_eq!((page.tasks.len(), page.next.is_some()), (1, true));
    assert_eq!((page.read, read_tasks(&world) - before), (1_000, 1_000), "those of other states were read, too");
    // All but two are watched. Waiting orders are in the same index as orders in flight.
    let page = world.store.list(Some(ProcessState::Processing), None, 10).await.unwrap();
    assert_eq!((page.tasks.len(), page.read, page.next.is_some()), (0, 1_000, true));
    assert_eq!(all(&world, Some(ProcessState::Compensated), 10).await, wanted);
}

#[tokio::test]
async fn tasks_that_were_too_much_for_one_answer_are_asked_for_again() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.insert(0, stored(&world.store, n).await.order_id);
    }
    let keys: Vec<_> = ids.iter().map(|id| json!({ "OrderID": { "S": id.to_string() } })).collect();
    let later = json!({ "Responses": {}, "UnprocessedKeys": { &world.local.tables.tasks: { "Keys": keys } } });
    world.way.let_happen("BatchGetItem", Happens::Answer(200, later.clone()));
    assert_eq!(all(&world, None, 10).await, ids);
    assert!(world.way.is_used_up());
    for _ in 0..100 {
        world.way.let_happen("BatchGetItem", Happens::Answer(200, later.clone()));
    }
    let error = world.store.list(None, None, 10).await.unwrap_err();
    let domain::ports::ListError::Port(error) = error else { panic!("{error}") };
    assert_eq!((error.operation, error.kind), ("store.list", PortErrorKind::Unavailable));
}
