//! Tasks that do not fit into a page: only what changed is written of them.

use std::sync::Arc;

use domain::json::Json;
use domain::ports::{Commit, HasStore, Store};
use domain::task::{ProcessState, Step, StepState, Watch};

use super::*;

const STEPS: usize = 60;

/// A task of many steps in flight.
fn large() -> Task {
    let mut task = task(&order(0), 16);
    let step = task.steps[0].clone();
    let in_flight = |n| Step {
        name: format!("reserve/{n:04}").into(),
        process_state: StepState::Processing,
        locked_by: Some("scheduler-1".into()),
        attempt: 1,
        ..step.clone()
    };
    task.steps = (0..STEPS).map(in_flight).collect();
    task
}

/// Commits the next version of the task, and what a reader of the file finds then.
async fn next(engine: &Engine, change: impl FnOnce(&mut Task)) -> Arc<Task> {
    let before = engine.store().task(order(0).order_id).await.unwrap().unwrap();
    let mut after = Task::clone(&before);
    (after.version, after.nonce) = (before.version + 1, before.nonce + 1);
    change(&mut after);
    let after = Arc::new(after);
    assert_eq!(engine.store().commit(&before, after.clone()).await.unwrap(), Commit::Committed);
    let listed = engine.store().list(None, None, 10).await.unwrap().tasks;
    assert_eq!(listed, std::slice::from_ref(&after));
    after
}

fn done(task: &mut Task, step: usize) {
    let step = &mut task.steps[step];
    (step.process_state, step.locked_by) = (StepState::Processed, None);
    step.output = Some(Json::of(&"secret"));
}

#[tokio::test]
async fn what_is_written_of_a_large_task_grows_with_what_happens_and_is_read_at_any_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = open(directory.path());
    let other = other_program(directory.path());
    engine.store().insert(order(0).into(), large().into()).await.unwrap();
    let (mut written, mut whole) = (count(&other, "SELECT length(body) FROM tasks"), 1);
    let (mut before, mut last) = (0, large());
    for step in 0..STEPS {
        last = Task::clone(&*next(&engine, |task| done(task, step)).await);
        let changes = count(&other, "SELECT coalesce(sum(length(body)), 0) FROM changes");
        let body = count(&other, "SELECT length(body) FROM tasks");
        assert!(changes <= body, "it is not read from more than twice its bytes");
        match changes {
            0 => (written, whole) = (written + body, whole + 1),
            _ => written += changes - before,
        }
        before = changes;
        if step == STEPS / 2 {
            // Killed: how much was written is forgotten.
            drop(engine);
            engine = open(directory.path());
            assert_eq!(*engine.store().task(order(0).order_id).await.unwrap().unwrap(), last);
        }
    }
    let ended = next(&engine, |task| (task.process_state, task.watch) = (ProcessState::Processed, None)).await;
    let body = count(&other, "SELECT length(body) FROM tasks");
    assert_eq!(count(&other, "SELECT count(*) FROM changes"), 0, "an ended order is whole");
    // Three times, and once more after the kill.
    assert!(whole <= 2 && written + body <= 4 * body, "{written} and {body}, {whole} times whole");
    assert_eq!(ended.steps, last.steps);
}

#[tokio::test]
async fn the_columns_of_a_large_task_are_those_of_its_last_change() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    engine.store().insert(order(0).into(), large().into()).await.unwrap();
    let at = order(0).submitted_at.plus_ms(7);
    let held = next(&engine, |task| {
        (task.process_state, task.watch, task.watch_at) = (ProcessState::Error, Some(Watch::Error(3)), Some(at));
    })
    .await;
    assert_eq!(count(&other_program(directory.path()), "SELECT count(*) FROM changes"), 1);
    let failed = engine.store().list(Some(ProcessState::Error), None, 10).await.unwrap().tasks;
    assert_eq!(failed, [held]);
    assert_eq!(engine.store().due(Watch::Error(3), at, None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn no_change_of_a_large_task_outlives_what_it_is_of() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let other = other_program(directory.path());
    engine.store().insert(order(0).into(), large().into()).await.unwrap();
    next(&engine, |task| done(task, 0)).await;
    assert_eq!(count(&other, "SELECT count(*) FROM changes"), 1);
    let erased = next(&engine, |task| {
        task.steps.truncate(1);
        (task.steps[0].output, task.erased_at) = (None, Some(order(0).submitted_at));
    })
    .await;
    assert_eq!(count(&other, "SELECT count(*) FROM changes"), 0, "erased");
    drop(engine);
    let engine = open(directory.path());
    assert_eq!(engine.store().task(order(0).order_id).await.unwrap(), Some(erased));
}
