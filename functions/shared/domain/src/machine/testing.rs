//! A task for tests of the state machine: it applies events, keeps the effects and checks the invariants.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{Decision, Effect, Event, Happened, Moment, Verdict, decide_together};
use crate::id::{CommandId, OrderId};
use crate::json::Json;
use crate::limits::SHARDS;
use crate::message::{Action, Command, Failure, Outcome, Reply, Settled, Settlement};
use crate::order::Order;
use crate::task::{Notice, ProcessState, Step, StepState, Task, Transition};
use crate::time::Timestamp;
use crate::workflow::Workflow;

pub(crate) const AGENTS: [&str; 1] = ["any"];

const DOCUMENT: &[u8] =
    br#"{"Total":1,"Lines":[{"SKU":"mug","N":1},{"SKU":"cup","N":2},{"SKU":"jug","N":3}],"None":[]}"#;

/// Numbers the commands.
static COMMANDS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Case {
    pub(crate) workflow: Workflow,
    pub(crate) task: Task,
    pub(crate) now: Timestamp,
    pub(crate) effects: Vec<Effect>,
    pub(crate) happened: Vec<Happened>,
    pub(crate) draw: u64,
    instance: Arc<str>,
}

impl Case {
    /// A new order on a workflow given as `name: after after [options]` lines.
    pub(crate) fn new(steps: &[(&str, &[&str], &str)], notify: bool) -> Self {
        Self::with(steps, "", notify)
    }

    /// The same, with these lines at the top of the workflow's file.
    pub(crate) fn with(steps: &[(&str, &[&str], &str)], top: &str, notify: bool) -> Self {
        let tables = steps.iter().map(|(name, after, more)| {
            format!(
                "[[step]]\nname = {name:?}\nagent = \"any\"\nafter = {after:?}\ncomplete_within = \"10s\"\n{more}\n"
            )
        });
        let text = format!("name = \"w\"\nversion = 1\n{top}\n{}", tables.collect::<String>());
        Self::of(&text, notify)
    }

    /// A new order on the workflow of this text.
    pub(crate) fn of(text: &str, notify: bool) -> Self {
        let workflow = Workflow::parse(text, &AGENTS).unwrap();
        let now = Timestamp::from_epoch_ms(1_000_000_000_000);
        let order = order(now, notify);
        let workflow = workflow.of_document(&order.document).unwrap().into_owned();
        let task = Task::new(&order, &workflow, SHARDS, 1);
        Self { workflow, task, now, effects: Vec::new(), happened: Vec::new(), draw: 0, instance: "scheduler-1".into() }
    }

    /// a, then b, then c.
    pub(crate) fn chain() -> Self {
        Self::new(&[("a", &[], ""), ("b", &["a"], ""), ("c", &["b"], "")], false)
    }

    /// a, then b and c side by side, then d.
    pub(crate) fn diamond() -> Self {
        Self::new(&[("a", &[], ""), ("b", &["a"], ""), ("c", &["a"], ""), ("d", &["b", "c"], "")], false)
    }

    /// The order of the task.
    pub(crate) fn order(&self) -> Order {
        order(self.now, self.task.notify)
    }

    /// Applies an event like a handler that wins the write, and keeps the effects of this turn.
    pub(crate) fn apply(&mut self, event: Event<'_>) -> Verdict {
        self.apply_together(&[event]).pop().expect("one for the event")
    }

    /// The same for events that arrive together.
    pub(crate) fn apply_together(&mut self, events: &[Event<'_>]) -> Vec<Verdict> {
        let Decision { change, effects, happened, verdicts } = self.decide_together(events);
        if let Some(after) = change {
            check_step(&self.task, &after);
            self.task = after;
        }
        self.effects = effects;
        self.happened = happened;
        verdicts
    }

    pub(crate) fn decide(&self, event: Event<'_>) -> Decision {
        self.decide_together(&[event])
    }

    fn decide_together(&self, events: &[Event<'_>]) -> Decision {
        let nonce = self.task.nonce + 1;
        let moment = Moment { now: self.now, instance: &self.instance, nonce, draw: self.draw };
        decide_together(&self.task, &self.workflow, events, moment).unwrap()
    }

    pub(crate) fn wake(&mut self) -> Verdict {
        self.apply(Event::Wake { hops: 0, redelivered: false })
    }

    pub(crate) fn wake_again(&mut self) -> Verdict {
        self.apply(Event::Wake { hops: 0, redelivered: true })
    }

    pub(crate) fn sweep(&mut self) -> Verdict {
        self.apply(Event::Sweep)
    }

    /// Applies the command of an operator who saw this version.
    pub(crate) fn apply_command(&mut self, action: Action, seen: Option<u64>) -> Verdict {
        let command = self.command(action, seen);
        self.apply(Event::Command { command: &command, redelivered: false })
    }

    pub(crate) fn command(&self, action: Action, version: Option<u64>) -> Command {
        Command {
            order_id: self.task.order_id,
            action,
            by: "ann".into(),
            reason: "mended".into(),
            command_id: CommandId::generate(self.now, [COMMANDS.fetch_add(1, Relaxed), 0]),
            version,
            bulk: None,
            settle: None,
            take: None,
            step: None,
        }
    }

    pub(crate) fn resubmit(&mut self) -> Verdict {
        self.apply_command(Action::Resubmit, Some(self.task.version))
    }

    pub(crate) fn cancel(&mut self) -> Verdict {
        self.apply_command(Action::Cancel, Some(self.task.version))
    }

    pub(crate) fn pause(&mut self) -> Verdict {
        self.apply_command(Action::Pause, Some(self.task.version))
    }

    pub(crate) fn resume(&mut self) -> Verdict {
        self.apply_command(Action::Resume, Some(self.task.version))
    }

    pub(crate) fn settle(&mut self, step: &str, outcome: Settled, output: Option<&str>) -> Verdict {
        self.apply(Event::Command { command: &self.settlement(step, outcome, output), redelivered: false })
    }

    pub(crate) fn settlement(&self, step: &str, outcome: Settled, output: Option<&str>) -> Command {
        let output = output.map(|text| Json::parse(text.as_bytes(), usize::MAX).unwrap());
        let settle = Some(Settlement { step: step.into(), outcome, output });
        Command { settle, ..self.command(Action::Settle, Some(self.task.version)) }
    }

    pub(crate) fn all_sent(&mut self) -> Verdict {
        let notices: Vec<Notice> = self.task.unsent.clone();
        self.apply(Event::Sent { notices: &notices })
    }

    /// The answer of the step's current attempt.
    pub(crate) fn reply_of(&self, name: &str, outcome: Outcome) -> Reply {
        let step = self.step(name);
        Reply {
            order_id: self.task.order_id,
            step: name.into(),
            direction: step.direction,
            attempt: step.attempt,
            outcome,
            hops: 0,
            may_run_until: None,
            call_ms: None,
        }
    }

    pub(crate) fn take(&mut self, reply: &Reply) -> Verdict {
        self.apply(Event::Reply { reply, redelivered: false })
    }

    pub(crate) fn done(&mut self, name: &str) -> Verdict {
        let reply = self.reply_of(name, done());
        self.take(&reply)
    }

    pub(crate) fn rejected(&mut self, name: &str) -> Verdict {
        let reply = self.reply_of(name, failed());
        self.take(&reply)
    }

    pub(crate) fn step(&self, name: &str) -> &Step {
        self.task.step(name).unwrap().1
    }

    pub(crate) fn states(&self) -> String {
        let word = |step: &Step| match step.process_state {
            StepState::Pending => '.',
            StepState::Processing => '>',
            StepState::Processed => '+',
            StepState::Error => '!',
            StepState::Skipped => '-',
        };
        self.task.steps.iter().map(word).collect()
    }

    /// The same, in the order of the steps' names.
    pub(crate) fn states_by_name(&self) -> String {
        let mut states: Vec<_> =
            self.task.steps.iter().map(|step| step.name.clone()).zip(self.states().chars()).collect();
        states.sort();
        states.into_iter().map(|(_, state)| state).collect()
    }

    /// What happened in the last turn, in words.
    pub(crate) fn words(&self) -> Vec<String> {
        let steps = &self.task.steps;
        let words = |happened: &Happened| match happened {
            Happened::What(what) => what.words(steps).into_owned(),
            Happened::ExpiredLast(attempt) => attempt.words(steps, "expired"),
            Happened::Exhausted(attempt) => attempt.words(steps, "exhausted"),
            Happened::Doubted(attempt) => attempt.words(steps, "doubted"),
        };
        self.happened.iter().map(words).collect()
    }

    /// The words of a line of the history.
    pub(crate) fn words_of(&self, line: &Transition) -> String {
        line.what.words(&self.task.steps).into_owned()
    }

    pub(crate) fn state(&self) -> ProcessState {
        self.task.process_state
    }

    /// Names of the steps whose requests the last turn sends.
    pub(crate) fn requested(&self) -> Vec<&str> {
        let step = |effect: &Effect| match effect {
            Effect::Request { step, .. } => Some(&*self.task.steps[*step].name),
            Effect::Look { .. }
            | Effect::Wake { .. }
            | Effect::Notify(_)
            | Effect::Alert(_)
            | Effect::TellParent(_) => None,
        };
        self.effects.iter().filter_map(step).collect()
    }

    /// Names of the steps whose state the last turn asks for.
    pub(crate) fn looked_at(&self) -> Vec<&str> {
        let step = |effect: &Effect| {
            if let Effect::Look { step, .. } = effect { Some(&*self.task.steps[*step].name) } else { None }
        };
        self.effects.iter().filter_map(step).collect()
    }

    /// Delays of the wakes that the last turn sends.
    pub(crate) fn wakes(&self) -> Vec<u64> {
        let delay = |effect: &Effect| match effect {
            Effect::Wake { delay_ms, .. } => Some(*delay_ms),
            Effect::Request { .. }
            | Effect::Look { .. }
            | Effect::Notify(_)
            | Effect::Alert(_)
            | Effect::TellParent(_) => None,
        };
        self.effects.iter().filter_map(delay).collect()
    }

    /// The hop count of the longest chain that the last turn continues.
    pub(crate) fn hops(&self) -> Option<u32> {
        let hops = |effect: &Effect| match effect {
            Effect::Request { hops, .. } | Effect::Look { hops, .. } | Effect::Wake { hops, .. } => Some(*hops),
            Effect::Notify(_) | Effect::Alert(_) | Effect::TellParent(_) => None,
        };
        self.effects.iter().filter_map(hops).max()
    }

    /// Names of the notices that the last turn sends.
    pub(crate) fn notified(&self) -> Vec<&'static str> {
        let name = |effect: &Effect| match effect {
            Effect::Notify(notice) | Effect::Alert(notice) | Effect::TellParent(notice) => Some(notice.kind.name()),
            Effect::Request { .. } | Effect::Look { .. } | Effect::Wake { .. } => None,
        };
        self.effects.iter().filter_map(name).collect()
    }

    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    /// Lets time pass until the supervisor finds the task, and sweeps it.
    pub(crate) fn next_sweep(&mut self) -> Verdict {
        self.now = self.now.max(self.task.watch_at.unwrap());
        self.sweep()
    }

    /// Lets every attempt in flight expire, and the supervisor notice it.
    pub(crate) fn expire_all(&mut self) {
        let deadline = self.task.steps.iter().filter_map(|step| step.complete_by).max().unwrap();
        self.now = deadline.plus_ms(self.workflow.supervision.grace_ms);
        assert_eq!(self.sweep(), Verdict::Taken);
    }

    /// Lets time pass until every step may be claimed again, and wakes the scheduler.
    pub(crate) fn retry_all(&mut self) {
        let ready = self.task.steps.iter().filter_map(|step| step.not_before).max().unwrap_or(self.now);
        self.now = self.now.max(ready);
        self.wake();
    }
}

/// An order that was accepted now.
pub(crate) fn order_of(now: Timestamp) -> Order {
    order(now, false)
}

fn order(now: Timestamp, notify: bool) -> Order {
    Order {
        order_id: OrderId::from_idempotency_key("test", "case"),
        document: Json::document(DOCUMENT).unwrap(),
        fingerprint: "f".into(),
        submitted_at: now,
        submitter: "test".into(),
        reply_channel: notify.then(|| "shop".into()),
        correlation_id: None,
        priority: None,
        workflow: None,
        terms: Vec::new(),
        again_of: None,
    }
}

pub(crate) fn done() -> Outcome {
    Outcome::Done(Json::parse(b"{\"Id\":7}", 100).unwrap())
}

pub(crate) fn failed() -> Outcome {
    Outcome::Failed(Failure { code: "declined".into(), message: "no".into() })
}

/// The invariants between a task and its next version.
fn check_step(before: &Task, after: &Task) {
    assert_eq!(after.version, before.version + 1);
    assert_ne!(after.nonce, before.nonce);
    if before.process_state.is_final() {
        assert_eq!(after.process_state, before.process_state, "what ended never changes");
    }
    for (before, after) in before.steps.iter().zip(&after.steps) {
        assert!(after.attempt == before.attempt || after.attempt == before.attempt + 1);
        assert_eq!(after.process_state == StepState::Processing, after.locked_by.is_some(), "a claim has one holder");
        assert_eq!(after.process_state == StepState::Processing, after.complete_by.is_some(), "a claim has a deadline");
        assert!(after.failure_count <= after.attempt, "at most one failure for each attempt");
    }
    assert_eq!(after.watch.is_some(), after.watch_at.is_some());
    let looked_after = !after.process_state.is_final() || !after.unsent.is_empty();
    assert_eq!(after.watch.is_some(), looked_after, "a task has a watch exactly while it needs one");
}
