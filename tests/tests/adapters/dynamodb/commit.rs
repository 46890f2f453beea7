//! Replacing a task: the conditions that decide, and the requests that are sent.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::ports::{Commit, Inserted, PortErrorKind, Store};
use domain::task::{ProcessState, Step, StepState, Task};
use tests::conformance::samples::{NOON, committed, next, next_in, order, stored, task};

use super::World;
use super::way::{Happens, failure};

const COMMIT: &str = "UpdateItem";

/// The next version, with a claim of the step at this index.
fn claimed(before: &Task, place: usize) -> Arc<Task> {
    next(before, |task| claim(&mut task.steps[place]))
}

fn claim(step: &mut Step) {
    step.process_state = StepState::Processing;
    step.locked_by = Some("scheduler-1f3a9c2e".into());
    step.complete_by = Some(NOON.plus_ms(30_000));
    step.started_at = Some(NOON);
    step.attempt += 1;
}

#[tokio::test]
async fn f13_a_retry_that_meets_its_own_nonce_has_succeeded() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    world.way.let_happen(COMMIT, Happens::AnswerLost);
    let second = committed(&world.store, &first, claimed(&first, 0)).await;
    assert_eq!(world.count(COMMIT), 2);
    assert_eq!(world.store.task(first.order_id).await.unwrap().unwrap(), second);
}

#[tokio::test]
async fn a_write_that_somebody_has_gone_on_from_is_a_conflict() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    let second = committed(&world.store, &first, claimed(&first, 0)).await;
    let third = committed(&world.store, &second, next_in(&second, ProcessState::Processing)).await;
    assert_eq!(world.store.commit(&first, second).await.unwrap(), Commit::Conflict);
    assert_eq!(world.store.task(first.order_id).await.unwrap().unwrap(), third);
}

#[tokio::test]
async fn a_transaction_on_the_same_task_is_waited_for() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    for _ in 0..3 {
        world.way.let_happen(COMMIT, failure(400, "TransactionConflictException"));
    }
    committed(&world.store, &first, claimed(&first, 0)).await;
    assert!(world.way.is_used_up());
    for _ in 0..100 {
        world.way.let_happen(COMMIT, failure(400, "TransactionConflictException"));
    }
    let error = world.store.commit(&first, claimed(&first, 0)).await.unwrap_err();
    assert_eq!((error.operation, error.kind), ("store.commit", PortErrorKind::Unavailable));
}

#[tokio::test]
async fn errors_say_whether_it_helps_to_come_again() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    let passing = [
        failure(400, "ProvisionedThroughputExceededException"),
        failure(400, "ThrottlingException"),
        failure(400, "RequestLimitExceeded"),
        failure(500, "InternalServerError"),
        failure(503, "ServiceUnavailable"),
        Happens::Lost,
    ];
    for happens in passing {
        // The SDK's maximum number of attempts.
        for _ in 0..10 {
            world.way.let_happen(COMMIT, happens.clone());
        }
        let error = world.store.commit(&first, claimed(&first, 0)).await.unwrap_err();
        assert_eq!((error.operation, error.kind), ("store.commit", PortErrorKind::Unavailable), "{happens:?}");
        while !world.way.is_used_up() {
            let _ = world.store.commit(&first, claimed(&first, 0)).await;
        }
    }
    let lasting = ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"];
    for name in lasting {
        world.way.let_happen(COMMIT, failure(400, name));
        let error = world.store.commit(&first, claimed(&first, 0)).await.unwrap_err();
        assert_eq!((error.operation, error.kind), ("store.commit", PortErrorKind::Refused), "{name}");
        assert!(error.source.unwrap().to_string().contains(name));
        assert!(world.way.is_used_up());
    }
}

#[tokio::test]
async fn a_claim_holds_only_on_a_step_that_is_pending_and_nobodys() {
    // The other writer broke the protocol: the version is still the one that was read.
    let meddled =
        [("LockedBy", AttributeValue::S("somebody".into())), ("ProcessState", AttributeValue::S("Processed".into()))];
    for (n, (name, value)) in (1..).zip(meddled) {
        let world = World::new().await;
        let first = stored(&world.store, n).await;
        let meddle = world.local.client().update_item().table_name(&world.local.tables.tasks);
        meddle
            .key("OrderID", AttributeValue::S(first.order_id.to_string()))
            .update_expression("SET Steps[1].#name = :value")
            .expression_attribute_names("#name", name)
            .expression_attribute_values(":value", value)
            .send()
            .await
            .unwrap();
        assert_eq!(world.store.commit(&first, claimed(&first, 1)).await.unwrap(), Commit::Conflict, "{name}");
        // A claim of another step does not matter.
        assert_eq!(world.store.commit(&first, claimed(&first, 0)).await.unwrap(), Commit::Committed, "{name}");
    }
}

#[tokio::test]
async fn a_step_that_is_freed_and_claimed_in_one_change_is_claimed() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    let second = committed(&world.store, &first, claimed(&first, 0)).await;
    let again = next(&second, |task| {
        claim(&mut task.steps[0]);
        task.steps[0].locked_by = Some("scheduler-00000002".into());
    });
    let third = committed(&world.store, &second, again).await;
    assert_eq!(world.store.task(first.order_id).await.unwrap().unwrap(), third);
}

#[tokio::test]
async fn only_what_changed_is_sent() {
    let world = World::new().await;
    let first = stored(&world.store, 1).await;
    committed(&world.store, &first, claimed(&first, 1)).await;
    let sent = world.way.sent().pop().unwrap().body;
    let names = sent["ExpressionAttributeNames"].as_object().unwrap().values();
    let mut names: Vec<_> = names.map(|name| name.as_str().unwrap()).collect();
    names.sort_unstable();
    let expected = ["Attempt", "CompleteBy", "LockedBy", "Nonce", "ProcessState", "StartedAt", "Steps", "Version"];
    assert_eq!(names, expected);
    let update = sent["UpdateExpression"].as_str().unwrap();
    assert_eq!((update.matches("[1]").count(), update.matches('[').count()), (5, 5), "{update}");
    assert_eq!(sent["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
}

#[tokio::test]
async fn fifty_steps_are_claimed_and_done_at_once() {
    let world = World::new().await;
    let order = order(1);
    let mut crowd = task(&order);
    let one = crowd.steps[0].clone();
    crowd.steps = (0..50).map(|n| Step { name: format!("step-{n}").into(), ..one.clone() }).collect();
    assert_eq!(world.store.insert(order.into(), crowd.clone().into()).await.unwrap(), Inserted::New);
    let all_claimed = next(&crowd, |task| task.steps.iter_mut().for_each(claim));
    let second = committed(&world.store, &crowd, all_claimed).await;
    let all_done = next(&second, |task| {
        for step in &mut task.steps {
            step.process_state = StepState::Processed;
            (step.locked_by, step.complete_by, step.finished_at) = (None, None, Some(NOON.plus_ms(9)));
        }
    });
    let third = committed(&world.store, &second, all_done).await;
    assert_eq!(world.store.task(crowd.order_id).await.unwrap().unwrap(), third);
    // Each write has a condition.
    assert_eq!(world.store.commit(&crowd, claimed(&crowd, 49)).await.unwrap(), Commit::Conflict);
}
