//! The state machine that ships, asked on what the model keeps of a task. The only place where the model decides anything.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use domain::callback::Awaited;
use domain::id::CommandId;
use domain::json::Json;
use domain::machine::{DeadLetterSubject, Decision, Effect, Event, Impossible, Moment, request};
use domain::message::{
    Acceptance, Action, Command, Deferral, Failure, Outcome, Reply, Settled, Settlement, idempotency_key,
};
use domain::order::Order;
use domain::workflow::Workflow;
use memory::sample;

use super::audit::{Breach, Write};
use super::bounds::{Clocks, STEPS};
use super::message::{Answer, Attempt, Bag, CommandKind, Message};
use super::state::{Cause, OUTGOING};
use super::task::{Late, TICK_MS, Task, alert, now, number, ticks_until};
use super::versions::{Versions, View};

/// `domain::machine::decide`, or something broken in its place.
pub type Decide = fn(&domain::task::Task, &Workflow, Event<'_>, Moment<'_>) -> Result<Decision, Impossible>;

/// What a decision is made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) task: Task,
    pub(super) event: Asked,
    pub(super) view: View,
    pub(super) redelivered: bool,
    pub(super) late: Late,
}

/// What happens to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// Somebody looks at it.
    Cause(Cause),
    /// The alert of this number was sent.
    Sent(u8),
}

/// What a decision comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decided {
    /// What is to be written.
    pub(super) after: Option<Task>,
    /// The messages that follow.
    pub(super) messages: Bag<OUTGOING>,
    /// The alert that follows.
    pub(super) alert: Option<u8>,
    /// What is wrong with it.
    pub(super) breach: Option<Breach>,
}

/// Asks the state machine, and remembers its answers: it is pure, and the same question comes up in millions of states.
pub(super) struct Decider {
    decide: Decide,
    pub(super) versions: Versions,
    order: Order,
    clocks: Clocks,
    answers: RwLock<HashMap<Question, Decided>>,
}

impl Decider {
    pub(super) fn new(decide: Decide, versions: Versions, clocks: Clocks) -> Self {
        Self { decide, versions, order: sample_order(), clocks, answers: RwLock::default() }
    }

    /// Different questions asked so far.
    pub(super) fn questions(&self) -> usize {
        self.answers.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The task of a new order of this version.
    pub(super) fn new_task(&self, version: u8) -> Task {
        Task::of(&self.order, self.versions.at(version), self.clocks)
    }

    pub(super) fn ask(&self, question: Question) -> Decided {
        if let Some(known) = self.answers.read().unwrap_or_else(PoisonError::into_inner).get(&question) {
            return *known;
        }
        let decided = self.decide(question);
        self.answers.write().unwrap_or_else(PoisonError::into_inner).insert(question, decided);
        decided
    }

    /// Decides by the workflow that the instance finds. It must come to the same as by the pinned version.
    fn decide(&self, question: Question) -> Decided {
        let pinned = self.versions.at(question.task.version);
        let Some(found) = self.versions.of_task(question.view, question.task.version) else {
            return Decided { after: None, messages: Bag::new(), alert: None, breach: Some(Breach::Version) };
        };
        let decided = self.decide_by(&found, question);
        match found == *pinned || decided == self.decide_by(pinned, question) {
            true => decided,
            false => Decided { breach: Some(Breach::Version), ..decided },
        }
    }

    fn decide_by(&self, workflow: &Workflow, question: Question) -> Decided {
        let Question { task: before, event, view: _, redelivered, late } = question;
        let task = before.concrete(&self.order, self.versions.at(before.version), self.clocks, late);
        let instance: Arc<str> = "scheduler".into();
        let moment = Moment { now: now(), instance: &instance, nonce: 1, draw: 0 };
        let decide = |event| (self.decide)(&task, workflow, event, moment);
        let decision = match event {
            Asked::Sent(number) => decide(Event::Sent { notices: &[alert(number)] }),
            Asked::Cause(Cause::Tick) => decide(Event::Sweep),
            Asked::Cause(Cause::DeadLetter(message)) => {
                decide(Event::DeadLetter { dead_letter: &self.dead_letter(&before, message) })
            }
            Asked::Cause(Cause::Message(Message::Reply(attempt, answer))) => {
                decide(Event::Reply { reply: &self.reply(&before, attempt, answer), redelivered })
            }
            Asked::Cause(Cause::Message(Message::Command(command))) => {
                decide(Event::Command { command: &self.command(&before, command), redelivered })
            }
            // Only wakes are left of what goes to a scheduler.
            Asked::Cause(Cause::Message(Message::Wake | Message::Submission | Message::Request(..))) => {
                decide(Event::Wake { hops: 0, redelivered })
            }
        };
        match decision {
            Ok(decision) => self.take(workflow, question, &task, &decision),
            Err(_) => Decided { after: None, messages: Bag::new(), alert: None, breach: Some(Breach::Impossible) },
        }
    }

    /// Abstracts a decision, and audits it.
    fn take(&self, workflow: &Workflow, question: Question, task: &domain::task::Task, decision: &Decision) -> Decided {
        let Question { task: ref before, event, late, .. } = question;
        let written = decision.change.as_ref();
        let after = written.map(|after| Task::abstracted(after, Some(before), self.clocks));
        let mut breach = match (&after, written) {
            (Some(after), Some(written)) if written.version == task.version + 1 => {
                self.audit(before, after, event, late)
            }
            (Some(_), _) => Some(Breach::Attempt),
            (None, _) => None,
        };
        let (mut messages, mut told) = (Bag::new(), None);
        for effect in &decision.effects {
            match *effect {
                Effect::Request { step, hops } => {
                    let state = written.unwrap_or(task);
                    if let Some(Ok((_, request))) = request(state, workflow, step, &self.order, now(), hops) {
                        let key = idempotency_key(self.order.order_id, &state.steps[step].name, request.direction);
                        if request.idempotency_key != key {
                            breach = Some(Breach::Key);
                        }
                        let left = if self.clocks == Clocks::One { ticks_until(request.complete_by) } else { 0 };
                        let undo = request.direction == domain::task::Direction::Undo;
                        let number = u8::try_from(request.attempt).unwrap_or(u8::MAX);
                        let step = u8::try_from(step).unwrap_or(u8::MAX);
                        // Without calls that linger, nobody needs to know.
                        let lingers =
                            self.clocks == Clocks::One && workflow.steps[usize::from(step)].settles_within_ms > 0;
                        let knows = lingers && request.may_run_until.is_some_and(|until| now() < until);
                        messages.add(Message::Request(Attempt { step, undo, number }, left, knows));
                    }
                }
                // When it is delivered is up to the bag, which covers every delay.
                // No step of the model has a poll.
                Effect::Look { .. } => {}
                Effect::Wake { .. } => {
                    messages.add(Message::Wake);
                }
                Effect::Alert(notice) => told = Some(number(&notice, before.alerts)),
                // The orders of this model name no reply channel, and none has a parent.
                Effect::Notify(_) | Effect::TellParent(_) => {}
            }
        }
        Decided { after, messages, alert: told, breach }
    }

    fn audit(&self, before: &Task, after: &Task, event: Asked, late: Late) -> Option<Breach> {
        let cause = match event {
            Asked::Cause(cause) => cause,
            // To strike an alert out is to change nothing else.
            Asked::Sent(_) => Cause::Message(Message::Wake),
        };
        let is_expired = |index: usize| match self.clocks {
            Clocks::Any => late.0[index],
            Clocks::One => before.steps[index].left < 0,
        };
        Write { before, after, cause, is_expired: &is_expired }.breach(self.versions.at(before.version))
    }

    fn reply(&self, task: &Task, attempt: Attempt, answer: Answer) -> Reply {
        let outcome = match answer {
            Answer::Done => Outcome::Done(Json::of(&())),
            Answer::Failed | Answer::FailedUnderWay => {
                Outcome::Failed(Failure { code: "no".into(), message: "no".into() })
            }
            Answer::Deferred => Outcome::Deferred(Deferral::after(TICK_MS)),
            Answer::Accepted => Outcome::Accepted(Acceptance::default()),
        };
        Reply {
            order_id: self.order.order_id,
            step: self.step_name(task, attempt),
            direction: attempt.direction(),
            attempt: u32::from(attempt.number),
            outcome,
            hops: 0,
            // The scheduler takes no later time than the latest of the attempt.
            may_run_until: (answer == Answer::FailedUnderWay).then(|| now().plus_ms(u64::from(u8::MAX) * TICK_MS)),
            call_ms: None,
        }
    }

    /// The reply that the API queues when a service tells the result of a forward call at its address (rule 38). `None`:
    /// it would change nothing.
    pub(super) fn told(&self, task: &Task, step: u8, answer: Answer) -> Option<Message> {
        let workflow = self.versions.at(task.version);
        let stored = task.concrete(&self.order, workflow, self.clocks, Late([false; STEPS]));
        let attempt = Attempt { step, undo: false, number: task.steps[usize::from(step)].attempt };
        let reply = self.reply(task, attempt, answer);
        let (order_id, direction) = (self.order.order_id, attempt.direction());
        let awaited = Awaited { order_id, step: reply.step, direction, agent: None };
        awaited.reply(&stored, reply.outcome).ok().map(|_| Message::Reply(attempt, answer))
    }

    fn dead_letter(&self, task: &Task, message: Message) -> DeadLetterSubject {
        match message {
            Message::Request(attempt, ..) | Message::Reply(attempt, _) => DeadLetterSubject::Attempt {
                step: self.step_name(task, attempt),
                direction: attempt.direction(),
                attempt: u32::from(attempt.number),
            },
            Message::Submission | Message::Wake | Message::Command(_) => DeadLetterSubject::Wake,
        }
    }

    fn command(&self, task: &Task, command: CommandKind) -> Command {
        let mut settle = None;
        let action = match command {
            CommandKind::Resubmit => Action::Resubmit,
            CommandKind::Cancel => Action::Cancel,
            CommandKind::Pause => Action::Pause,
            CommandKind::Resume => Action::Resume,
            CommandKind::Note => Action::Note,
            CommandKind::Close => Action::Close,
            CommandKind::Settle { step, undo } => {
                let step = self.step_name(task, Attempt { step, undo, number: 0 });
                let (outcome, output) =
                    if undo { (Settled::Undone, None) } else { (Settled::Done, Some(Json::of(&()))) };
                settle = Some(Settlement { step, outcome, output });
                Action::Settle
            }
        };
        Command {
            order_id: self.order.order_id,
            action,
            by: "operator".into(),
            reason: "model".into(),
            command_id: CommandId::generate(now(), [0; 2]),
            version: None,
            bulk: None,
            settle,
            take: None,
            step: None,
        }
    }

    fn step_name(&self, task: &Task, attempt: Attempt) -> Arc<str> {
        self.versions.at(task.version).steps[usize::from(attempt.step)].name.clone()
    }
}

/// Every choice of deadlines that a clock could be wrong about.
pub(super) fn every_late(task: &Task, clocks: Clocks) -> Vec<Late> {
    let mut all = vec![Late([false; STEPS])];
    if clocks == Clocks::Any {
        for index in (0..STEPS).filter(|&index| task.steps[index].is_timed()) {
            let with_this = all.clone().into_iter().map(|mut late| {
                late.0[index] = true;
                late
            });
            all.extend(with_this.collect::<Vec<_>>());
        }
    }
    all
}

/// The order that all orders of the model look like to the state machine.
#[must_use]
pub(super) fn sample_order() -> Order {
    sample::order("model", "order", r#"{"Lines": [1, 2]}"#, now())
}
