//! The checks at the end of every test, whatever the faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::id::OrderId;
use domain::message::{SchedulerMessage, idempotency_key};
use domain::ports::{Environment, Store};
use domain::task::{Direction, ProcessState, Step, StepState, Task, Transition, What};
use domain::workflow::ORDERS;

use super::{World, now};
use memory::faulty::Record;

/// The time after which nothing is in flight, in milliseconds.
const LONG_MS: u64 = 8 * 24 * 60 * 60 * 1_000;

/// The outcome of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Processed.
    Processed,
    /// Compensated.
    Compensated,
    /// Closed by an operator.
    Closed,
    /// In `Error` with this reason code, and an alert.
    Error(&'static str),
}

impl World {
    /// Advances the clock from one due event to the next, until nothing is in flight.
    ///
    /// # Panics
    /// When that does not come.
    pub fn to_the_end(&self) {
        for _ in 0..2_000 {
            self.run();
            self.supervise();
            self.run();
            let dues = self.tasks().into_iter().filter(|task| is_under_way(task)).filter_map(|task| task.watch_at);
            let Some(next) = dues.chain(self.memory.next_message_at()).min() else {
                return;
            };
            // Overdue events have had their turn; they come again a moment later.
            self.memory.advance(self.memory.now().ms_until(next).max(100));
        }
        panic!("it does not come to an end: {:#?}", self.tasks());
    }

    /// Runs to the end, and checks this outcome, and that no order has a duplicate effect.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn ends(&self, order_id: OrderId, end: End) {
        self.end_all(&[(order_id, end)]);
    }

    /// The same for several orders.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn end_all(&self, orders: &[(OrderId, End)]) {
        self.to_the_end();
        self.check_ends(orders);
        let (tasks, effects) = (self.ended_tasks(), self.settled_effects());
        let record = self.ports.record();
        // Every message ever sent is redelivered: at once, and long after.
        for pause_ms in [0, LONG_MS] {
            self.memory.advance(pause_ms);
            self.send_again(&record);
            self.to_the_end();
            assert_eq!(self.ended_tasks(), tasks, "what ended changed again");
            assert_eq!(self.settled_effects(), effects, "something was done again");
        }
        self.check_ends(orders);
    }

    /// All tasks but for what a version only tells: that a result contradicts an end (rule 5), or that an undo that has not
    /// begun waits for its step's calls less long (rule 16).
    fn ended_tasks(&self) -> Vec<Task> {
        let told = |line: &Transition| matches!(line.what, What::Contradicted(_));
        let ended = |task: &Arc<Task>| {
            let mut task = Task::clone(task);
            (task.version, task.nonce, task.watch_at) = (0, 0, None);
            task.history.retain(|line| !told(line));
            for step in
                task.steps.iter_mut().filter(|step| step.direction == Direction::Undo && step.started_at.is_none())
            {
                (step.may_run_until, step.not_before) = (None, None);
            }
            task
        };
        self.tasks().iter().map(ended).collect()
    }

    fn check_ends(&self, orders: &[(OrderId, End)]) {
        for &(order_id, end) in orders {
            let task = self.task(order_id);
            let (state, code) = (task.process_state, task.reason.as_ref().map(|reason| &*reason.code));
            let alerts = self.alerts(order_id);
            match end {
                End::Processed => assert_eq!((state, code), (ProcessState::Processed, None), "{task:#?}"),
                End::Compensated => assert_eq!(state, ProcessState::Compensated, "{task:#?}"),
                End::Closed => assert_eq!((state, code), (ProcessState::Closed, Some("closed")), "{task:#?}"),
                End::Error(reason) => {
                    assert_eq!((state, code), (ProcessState::Error, Some(reason)), "{task:#?}");
                    assert!(!alerts.is_empty(), "nobody was called: {task:#?}");
                }
            }
        }
        let all: Vec<OrderId> = self.tasks().iter().map(|task| task.order_id).collect();
        assert!(orders.iter().all(|(order_id, _)| all.contains(order_id)), "an order was lost");
        for task in self.tasks() {
            assert!(task.process_state.is_settled(), "it did not end: {task:#?}");
            assert!(task.unsent.is_empty(), "something is still to be told: {task:#?}");
            self.check_undone(&task);
        }
        for (key, effects) in self.remote.effects() {
            assert_eq!(effects, 1, "effects of {key}");
        }
        self.check_calls();
        check_versions(&self.ports.record().tasks);
    }

    /// The IDs of the alerts about an order: a repeat has the same ID.
    #[must_use]
    pub fn alerts(&self, order_id: OrderId) -> BTreeSet<Arc<str>> {
        let subject = order_id.to_string();
        let alerts = self.memory.published().into_iter();
        let about_it =
            |event: &domain::message::CloudEvent| &*event.kind == "OrderNeedsOperator" && *event.subject == *subject;
        alerts.filter(about_it).map(|event| event.id).collect()
    }

    /// All tasks, newest first.
    ///
    /// # Panics
    /// When the store is out of order.
    #[must_use]
    pub fn tasks(&self) -> Vec<Arc<Task>> {
        now(self.memory.list(None, None, usize::MAX)).expect("a store").tasks
    }

    /// The effects for orders that are finished. One in `Error` may have requests under way that are still in time; what
    /// they do is undone, or meets its key, when the operator acts.
    fn settled_effects(&self) -> Vec<String> {
        let tasks = self.tasks().into_iter().filter(|task| task.process_state.is_final());
        let finished: Vec<String> = tasks.map(|task| task.order_id.to_string()).collect();
        let mut effects = self.remote.effects_in_order();
        effects.retain(|key| finished.iter().any(|order_id| key.starts_with(order_id)));
        effects
    }

    fn send_again(&self, record: &Record) {
        for message in &record.to_scheduler {
            match message {
                SchedulerMessage::Wake(_) | SchedulerMessage::Reply(_) | SchedulerMessage::Child(_) => {
                    self.tell_scheduler(message.clone());
                }
                // A repeated command is another command.
                SchedulerMessage::Command(_) => {}
            }
        }
        for (agent, request) in &record.to_agents {
            self.ask_agent(agent, request.clone());
        }
    }

    /// Invariants 8 and 9: a compensated order has every attempted step undone, and no effect after an undo.
    fn check_undone(&self, task: &Task) {
        let effects = self.remote.effects_in_order();
        let place = |step: &str, direction| {
            let key = idempotency_key(task.order_id, step, direction);
            effects.iter().position(|effect| **effect == *key)
        };
        for step in &task.steps {
            let (done, undone) = (place(&step.name, Direction::Forward), place(&step.name, Direction::Undo));
            if let (Some(done), Some(undone)) = (done, undone) {
                assert!(done < undone, "{} took effect after its undo: {effects:?}", step.name);
            }
            if *step.agent == *ORDERS && step.was_claimed() {
                self.check_child(task, step, task.order_id.child(&step.name));
                continue;
            }
            if step.approval.is_some() {
                assert!(done.is_none() && undone.is_none(), "{}: {effects:?}", step.name);
                continue;
            }
            match task.process_state {
                ProcessState::Processed if step.dropped => {
                    assert!(!step.was_claimed() || step.is_undone(), "{step:#?}");
                    assert!(done.is_none() || undone.is_some(), "{} was not undone: {effects:?}", step.name);
                }
                ProcessState::Processed => assert!(done.is_some() && undone.is_none(), "{}: {effects:?}", step.name),
                ProcessState::Compensated => {
                    assert!(step.attempt == 0 || step.is_undone(), "{step:#?}");
                    assert!(done.is_none() || undone.is_some(), "{} was not undone: {effects:?}", step.name);
                }
                ProcessState::Pending
                | ProcessState::Processing
                | ProcessState::Error
                | ProcessState::Compensating
                | ProcessState::Closed => {}
            }
        }
    }

    /// Rule 49: an order is processed only with its child, and compensated only with a child that is, or never was made.
    fn check_child(&self, task: &Task, step: &Step, child: OrderId) {
        let child = now(self.memory.task(child)).expect("a store");
        let state = child.as_ref().map(|child| child.process_state);
        let parent = child.as_ref().and_then(|child| child.parent.clone());
        let place = parent.as_ref().map(|parent| (parent.order_id, &*parent.step));
        assert!(place.is_none_or(|place| place == (task.order_id, &*step.name)), "{place:?} is not {}", step.name);
        match task.process_state {
            ProcessState::Processed => assert_eq!(state, Some(ProcessState::Processed), "{task:#?}"),
            ProcessState::Compensated => {
                let is_undone = matches!(state, None | Some(ProcessState::Compensated | ProcessState::Closed));
                assert!(is_undone, "{state:?}: {task:#?}");
            }
            ProcessState::Pending
            | ProcessState::Processing
            | ProcessState::Error
            | ProcessState::Compensating
            | ProcessState::Closed => {}
        }
    }

    /// Invariant 11: no call starts after `CompleteBy` minus margin on the agent's clock.
    fn check_calls(&self) {
        let record = self.ports.record();
        for called in self.remote.called() {
            let is_its = |request: &&domain::message::Request| {
                (request.order_id, &*request.step, request.direction, request.attempt)
                    == (called.order_id, &*called.step, called.direction, called.attempt)
            };
            let asked = record.to_agents.iter().map(|(_, request)| request).find(is_its);
            let asked = asked.expect("nobody asked");
            let latest = asked.complete_by.minus_ms(self.policy.margin_ms.min(asked.budget_ms / 5));
            assert!(called.started_at < latest, "called too late: {called:#?}");
        }
    }
}

fn is_under_way(task: &Task) -> bool {
    task.watch.is_some_and(domain::task::Watch::is_of_supervisor)
}

/// Invariants 2, 4, 6 and 7 over all versions of all tasks.
fn check_versions(versions: &[Arc<Task>]) {
    let mut last: BTreeMap<OrderId, &Task> = BTreeMap::new();
    let mut claimants = BTreeMap::new();
    for task in versions {
        if let Some(before) = last.insert(task.order_id, task) {
            assert_eq!(task.version, before.version + 1, "a version was written twice or left out");
            check_change(before, task);
        }
        for step in &task.steps {
            let key = (task.order_id, step.name.clone(), step.attempt);
            if let Some(locked_by) = &step.locked_by {
                let claim = (locked_by.clone(), step.complete_by);
                assert_eq!(*claimants.entry(key).or_insert(claim.clone()), claim, "an attempt was claimed twice");
            }
        }
    }
}

fn check_change(before: &Task, after: &Task) {
    if before.process_state.is_final() {
        assert_eq!((after.process_state, &after.steps), (before.process_state, &before.steps), "it had ended");
    }
    for (old, new) in before.steps.iter().zip(&after.steps) {
        assert!(new.attempt == old.attempt || new.attempt == old.attempt + 1, "{old:#?} {new:#?}");
        // What an attempt adds it adds once: after a failure the step is free, and only a claim makes it fail again.
        assert!(new.failure_count <= old.failure_count + 1 && new.failure_count <= new.attempt, "{old:#?} {new:#?}");
        if new.failure_count > old.failure_count {
            assert_eq!((old.process_state, old.attempt), (StepState::Processing, new.attempt), "{old:#?} {new:#?}");
        }
    }
}
