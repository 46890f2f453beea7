//! The ports of one invocation. Each call waits before its effect and again before its answer, so that an invocation can
//! be killed or overtaken at both points.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::id::OrderId;
use domain::message::{Action, CloudEvent, Outcome, Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    Commit, Due, Environment, Events, Inserted, ListError, Listed, Page, PortError, Queues, Record, RecordKind,
    Records, Store, Watched, sorted,
};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;

use crate::faults::Fault;
use crate::observe;
use crate::seen::{Ending, Seen};
use crate::setup::Setup;
use crate::shape::{FIRST_AGENT, SCHEDULER, SUBMISSION};
use crate::sleep::Sleep;
use crate::state::queues::text_of;
use crate::state::{Shared, State};
use crate::who::{AFTER, BEFORE, BETWEEN, Who};

/// All ports.
#[derive(Clone)]
pub struct Ports {
    /// The world.
    pub shared: Shared,
    /// Its constants.
    pub setup: Arc<Setup>,
    /// The caller.
    pub who: Who,
}

/// The kind of call, for the faults.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Read,
    Write,
    Queue(usize),
    Bus,
    Channel,
    Lease,
    Health,
    Memo,
    Record,
}

/// The failure of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Wrong {
    #[error("never carried out")]
    NotDone,
    #[error("carried out, and the answer got lost")]
    AnswerLost,
}

impl State {
    /// Whether this write is one of several that fail one after the other.
    fn fails_in_a_row(&mut self) -> bool {
        if self.failing_writes == 0 && self.strikes(Fault::WritesFailed) {
            self.failing_writes = self.rng.between(2, 4);
        }
        let fails = self.failing_writes > 0 && !self.is_calm;
        self.failing_writes = self.failing_writes.saturating_sub(1);
        if fails {
            self.trouble(0);
        }
        fails
    }

    fn goes_wrong(&mut self, kind: Kind) -> Option<Wrong> {
        use Wrong::{AnswerLost, NotDone};
        let table = |state: &mut Self, fault| {
            let strikes = state.is_store_away() || state.strikes(fault);
            strikes.then(|| if state.rng.chance(5_000) { NotDone } else { AnswerLost })
        };
        match kind {
            Kind::Read | Kind::Write if self.is_store_away() || self.strikes(Fault::Throttled) => Some(NotDone),
            Kind::Read => None,
            Kind::Write if self.fails_in_a_row() || self.strikes(Fault::WriteFailed) => Some(NotDone),
            Kind::Write => self.strikes(Fault::WriteAnswerLost).then_some(AnswerLost),
            Kind::Queue(queue) if self.is_queue_away(queue) || self.strikes(Fault::SendFailed) => Some(NotDone),
            Kind::Queue(_) => self.strikes(Fault::SendAnswerLost).then_some(AnswerLost),
            Kind::Bus if self.strikes(Fault::BusAway) => Some(NotDone),
            Kind::Channel if self.strikes(Fault::ChannelAway) => Some(NotDone),
            Kind::Bus | Kind::Channel => self.strikes(Fault::EventAnswerLost).then_some(AnswerLost),
            Kind::Lease => table(self, Fault::LeaseLost),
            Kind::Health => table(self, Fault::HealthAway),
            Kind::Memo => table(self, Fault::MemoLost),
            Kind::Record => table(self, Fault::RecordsLost),
        }
    }
}

impl Ports {
    /// The invocation reads or inserts an order's task from now on.
    fn reads(&self, order_id: OrderId) {
        let clock_ms = self.now().epoch_ms();
        // A clock may be set back meanwhile.
        let mut state = self.shared.lock();
        let earliest_ms = state.read_ms.entry((self.who.invocation, order_id)).or_insert(clock_ms);
        *earliest_ms = clock_ms.min(*earliest_ms);
    }

    /// The earliest time at which the invocation read or inserted it, by its clock.
    fn read_ms(&self, order_id: OrderId) -> i64 {
        let read_ms = self.shared.lock().read_ms.get(&(self.who.invocation, order_id)).copied();
        read_ms.unwrap_or_else(|| self.now().epoch_ms())
    }

    fn pause(&self, phase: u8) -> Sleep {
        self.who.phase.store(phase, Ordering::Relaxed);
        let ms = self.shared.lock().latency_ms();
        Sleep::new(self.shared.clone(), ms)
    }

    /// One port call.
    async fn call<R>(
        &self,
        operation: &'static str,
        kind: Kind,
        effect: impl FnOnce(&mut State) -> R,
    ) -> Result<R, PortError> {
        self.pause(BEFORE).await;
        let outcome = {
            let mut state = self.shared.lock();
            let wrong = state.goes_wrong(kind);
            state.note(&self.who.name, None, operation, || match wrong {
                None => operation.to_owned(),
                Some(wrong) => format!("{operation}: {wrong}"),
            });
            match wrong {
                Some(Wrong::NotDone) => Err(Wrong::NotDone),
                Some(Wrong::AnswerLost) => {
                    effect(&mut state);
                    Err(Wrong::AnswerLost)
                }
                None => Ok(effect(&mut state)),
            }
        };
        self.pause(AFTER).await;
        self.who.phase.store(BETWEEN, Ordering::Relaxed);
        outcome.map_err(|wrong| PortError::unavailable(operation, wrong))
    }
}

impl Environment for Ports {
    fn now(&self) -> Timestamp {
        self.shared.lock().clock(self.who.skew_ms)
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send {
        Sleep::new(self.shared.clone(), ms)
    }

    fn random(&self) -> u64 {
        self.shared.lock().rng.bits()
    }
}

impl Store for Ports {
    async fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> Result<Inserted, PortError> {
        let who = &self.who;
        self.reads(order.order_id);
        let first = self.call("store.insert", Kind::Write, |state| {
            (state.insert(who, &order, &task), state.strikes(Fault::WriteRetried))
        });
        let (inserted, is_retried) = first.await?;
        if !is_retried {
            return Ok(inserted);
        }
        // As with a commit, another writer may come in between.
        self.call("store.insert (retried)", Kind::Write, |state| state.insert(who, &order, &task)).await
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.call("store.order", Kind::Read, |state| state.tables.order(order_id)).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.reads(order_id);
        self.call("store.task", Kind::Read, |state| {
            if self.who.name.starts_with("agent") {
                state.see(&self.who.name, &Seen::Looked { order: order_id, by: self.who.name.clone() });
            }
            state.tables.task(order_id)
        })
        .await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        let who = &self.who;
        let first = self.call("store.commit", Kind::Write, |state| {
            if state.strikes(Fault::ConflictInjected) {
                return (Commit::Conflict, false);
            }
            let commit = state.commit(who, before, &after);
            (commit, state.strikes(Fault::WriteRetried))
        });
        let (commit, is_retried) = first.await?;
        if !is_retried {
            return Ok(commit);
        }
        // The client library did not see the answer and retries; another writer may come in between.
        self.call("store.commit (retried)", Kind::Write, |state| state.commit(who, before, &after)).await
    }

    async fn due(&self, watch: Watch, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        self.call("store.due", Kind::Read, |state| state.due(watch, now, after, limit)).await
    }

    async fn watches(&self, max: usize) -> Result<Option<Vec<(Watch, Timestamp)>>, PortError> {
        self.call("store.watches", Kind::Read, |state| state.watches(max)).await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.call("store.list", Kind::Read, |all| all.tables.list(state, after, limit)).await?
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Watched>, PortError> {
        const LOOKS: u64 = 4;
        let mut looks = 0;
        loop {
            let task = self.task(order_id).await?;
            if looks == LOOKS || task.as_ref().is_some_and(|task| task.process_state.is_settled()) {
                return Ok(task.map(|task| Watched { task, order: None }));
            }
            looks += 1;
            self.sleep(wait_ms / LOOKS).await;
        }
    }
}

impl Queues for Ports {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        {
            let mut state = self.shared.lock();
            let channel = state.remotes.channels.get(order.document.text()).cloned().flatten();
            let (fingerprint, document) = (order.fingerprint.clone(), observe::hash(&order.document));
            let pinned = state.pinned(&order, self.who.invocation);
            let elements = observe::elements(&order.document);
            let posted = Seen::Posted { order: order.order_id, fingerprint, document, channel, elements, pinned };
            state.see(&self.who.name, &posted);
            if let Some(of) = &order.again_of {
                state.see(&self.who.name, &Seen::PostsAgain { order: order.order_id, of: of.order_id });
            }
        }
        let (body, priority) = (text_of(&order), order.priority.unwrap_or_default());
        self.call("queues.submit", Kind::Queue(SUBMISSION), |state| {
            state.send(SUBMISSION, &body, priority, delay_ms, Some(order.order_id));
        })
        .await?;
        if order.again_of.is_some() {
            let mut state = self.shared.lock();
            let (posted_ms, fingerprint) = (state.now_ms, order.fingerprint.clone());
            state.see(&self.who.name, &Seen::Accepted { order: order.order_id, fingerprint, posted_ms });
        }
        Ok(Inserted::New)
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        let body: Arc<str> = serde_json::to_string(&message).unwrap_or_default().into();
        let name = &self.who.name;
        let reply_to = match &message {
            SchedulerMessage::Reply(reply) => {
                let state = self.shared.lock();
                state.attempt_of(reply.order_id, &reply.step, reply.direction, reply.attempt)
            }
            SchedulerMessage::Wake(_) | SchedulerMessage::Command(_) | SchedulerMessage::Child(_) => None,
        };
        if let (SchedulerMessage::Reply(reply), Some(of)) = (&message, reply_to) {
            let mut state = self.shared.lock();
            let clock_ms = state.clock(self.who.skew_ms).epoch_ms();
            let ending = observe::ending(reply.direction, &reply.outcome);
            let (output, kept, code) = match &reply.outcome {
                Outcome::Done(output) => (Some(observe::hash(output)), observe::kept(output), None),
                Outcome::Failed(failure) => (None, None, Some(failure.code.clone())),
                Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => (None, None, None),
            };
            // What a look finds comes at any time, like what a service tells.
            let is_of_look = state.remotes.looked.contains(&(name.clone(), of));
            let by = if is_of_look { "api (by a look)".into() } else { name.clone() };
            state.see(name, &Seen::Replied { of, ending, output, kept, code, by, clock_ms });
            if matches!(ending, Ending::Done | Ending::TooLarge) {
                state.forget_what_is_replied(of);
            }
        }
        let sent = self.call("queues.to_scheduler", Kind::Queue(SCHEDULER), |state| {
            state.send(SCHEDULER, &body, priority, delay_ms, None);
            match &message {
                SchedulerMessage::Command(command) if command.action == Action::Note => {
                    let (order, words, take) = (command.order_id, command.reason.clone(), command.take);
                    state.see(name, &Seen::NoteQueued { order, words, take });
                }
                SchedulerMessage::Command(command) if matches!(command.action, Action::Approve | Action::Reject) => {
                    let step = command.step.as_deref().and_then(|step| state.index_of(command.order_id, step));
                    let step = step.unwrap_or(usize::MAX);
                    let approves = command.action == Action::Approve;
                    state.see(name, &Seen::Decided { order: command.order_id, step, approves });
                }
                SchedulerMessage::Command(command) => {
                    let (order, action) = (command.order_id, command.action.name());
                    let settled = command.settle.as_ref();
                    let settled = settled.and_then(|settle| state.settled_of(order, settle));
                    state.see(name, &Seen::Wished { order, action, settled });
                }
                SchedulerMessage::Wake(_) | SchedulerMessage::Reply(_) | SchedulerMessage::Child(_) => {}
            }
        });
        let sent = sent.await;
        let is_trouble =
            matches!(&message, SchedulerMessage::Reply(reply) if matches!(reply.outcome, Outcome::Retrying(_)));
        if let (Err(_), Some(of), false) = (&sent, reply_to, is_trouble) {
            let mut state = self.shared.lock();
            state.see(name, &Seen::Unsent { of, by: self.who.invocation });
            state.unsent_by.insert(self.who.invocation);
        }
        sent
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        // A look is no call.
        let of = {
            let state = self.shared.lock();
            state.attempt_of(request.order_id, &request.step, request.direction, request.attempt)
        };
        let of = of.filter(|_| request.look.is_none());
        let clock_ms = self.read_ms(request.order_id);
        let Some(queue) = self.setup.shape.place_of(agent).map(|place| FIRST_AGENT + place) else {
            if let Some(of) = of {
                let (complete_by_ms, budget_ms) = (request.complete_by.epoch_ms(), request.budget_ms);
                self.shared.lock().see(&self.who.name, &Seen::Requested { of, complete_by_ms, budget_ms, clock_ms });
            }
            return Err(PortError::unavailable("queues.to_agent", "no such agent"));
        };
        let body: Arc<str> = serde_json::to_string(&request).unwrap_or_default().into();
        self.call("queues.to_agent", Kind::Queue(queue), |state| {
            if let Some(of) = of {
                let (complete_by_ms, budget_ms) = (request.complete_by.epoch_ms(), request.budget_ms);
                state.see(&self.who.name, &Seen::Requested { of, complete_by_ms, budget_ms, clock_ms });
            }
            if request.may_decline {
                state.counts.add(Fault::AskedInstead);
            }
            state.send(queue, &body, request.priority, 0, None);
        })
        .await
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        let queue = self.setup.shape.place_of(agent).map_or(FIRST_AGENT, |place| FIRST_AGENT + place);
        self.call("queues.return_to_agent", Kind::Queue(queue), |state| state.hide(queue, receipt, delay_ms)).await
    }
}

/// The version of an event; 0 without one.
fn version_in(event: &CloudEvent) -> u64 {
    event.data.member("Version").and_then(|version| version.parse().ok()).unwrap_or(0)
}

impl Ports {
    /// Sends an event: the auditor sees the send and the arrival.
    async fn out(&self, channel: Option<&str>, event: &CloudEvent) -> Result<(), PortError> {
        let known = observe::kind_of(&event.kind, channel.is_some()).zip(event.subject.parse().ok());
        // An alert about a lost command has no version.
        let told = known.map(|(kind, order)| (order, kind, version_in(event))).filter(|(_, _, version)| *version > 0);
        let name = &self.who.name;
        if let Some((order, kind, version)) = told {
            let channel = channel.map(Arc::from);
            self.shared.lock().see(name, &Seen::Telling { order, kind, version, channel });
        }
        let (operation, kind) = match channel {
            Some(_) => ("events.notify", Kind::Channel),
            None => ("events.publish", Kind::Bus),
        };
        let dead_letter = event.id.strip_prefix("dead-letter/").and_then(|rest| rest.split('/').next());
        self.call(operation, kind, |state| {
            if let Some((order, kind, version)) = told {
                state.see(name, &Seen::Told { order, kind, version });
            }
            if let Some(id) = dead_letter {
                state.see(name, &Seen::LetterTold { id: id.into() });
            }
        })
        .await
    }
}

impl Events for Ports {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        self.out(None, &event).await
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        self.out(Some(channel), &event).await
    }
}

impl Kind {
    /// A record after the faults.
    const fn of_record(kind: RecordKind) -> Self {
        match kind {
            RecordKind::Service => Self::Health,
            RecordKind::Memo => Self::Memo,
            RecordKind::Lease => Self::Lease,
            RecordKind::Job
            | RecordKind::Definition
            | RecordKind::Deployment
            | RecordKind::Alert
            | RecordKind::DeadLetter
            | RecordKind::Schedule => Self::Record,
        }
    }
}

impl Records for Ports {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        self.call(R::KIND.get(), Kind::of_record(R::KIND), |state| state.get(&self.who, key)).await
    }

    async fn put<R: Record>(&self, seen: domain::ports::Seen, record: &R) -> Result<Commit, PortError> {
        let written = self.call(R::KIND.put(), Kind::of_record(R::KIND), |state| state.put(seen, record)).await;
        if written.is_err() && R::KIND == RecordKind::Memo {
            self.shared.lock().remotes.unwritten.insert(record.key().into());
        }
        written
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        self.call(R::KIND.list(), Kind::of_record(R::KIND), |state| sorted(state.records.all(), limit)).await
    }
}
