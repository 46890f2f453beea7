//! The checked world: which actions there are in a state, and what each does to it.

use domain::task::StepState;
use stateright::{Model, Property};

use super::action::{Action, Commit, Then, Who};
use super::audit::Breach;
use super::bounds::{ACTORS_MAX, Bounds, Clocks, Detail, STEPS};
use super::decision::{Asked, Decide, Decided, Decider, Question, every_late};
use super::drain::Drain;
use super::message::{Answer, Attempt, Bag, CommandKind, Message};
use super::properties;
use super::state::{Cause, IN_FLIGHT, Job, OrderState, Seen, State, Worker};
use super::task::{Care, Late, Task};
use super::versions::{COMPILED, Pinning, Stage, Versions, View};

/// What an instance can do once it has written, where that is one action with the write.
const AT_ONCE: [Then; 4] = [Then::LetGo, Then::LetGoMuted, Then::DieBeforeSending, Then::DieAfterSending];

/// What an agent may answer.
const ANSWERS: [Answer; 5] = [Answer::Done, Answer::Failed, Answer::FailedUnderWay, Answer::Deferred, Answer::Accepted];
/// The step whose service may tell the result later.
pub(super) const LATER: u8 = 1;

/// The model that is checked: the protocol within bounds.
pub struct Protocol {
    /// How large the world is.
    pub bounds: Bounds,
    pub(super) decider: Decider,
    pub(super) commit: Commit,
    pub(super) drain: Drain,
}

impl Protocol {
    /// The protocol as it ships.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self::with(bounds, domain::machine::decide)
    }

    /// With something in the place of the state machine.
    #[must_use]
    pub fn with(bounds: Bounds, decide: Decide) -> Self {
        let decider = Decider::new(decide, Versions::new(&bounds, Pinning::Kept), bounds.clocks);
        Self { bounds, decider, commit: Commit::ThenSend, drain: Drain::default() }
    }

    /// With another way to write and send.
    #[must_use]
    pub fn with_commit(self, commit: Commit) -> Self {
        Self { commit, ..self }
    }

    /// With another way to come to the workflow of an order.
    #[must_use]
    pub fn with_pinning(mut self, pinning: Pinning) -> Self {
        self.decider.versions = self.decider.versions.with(pinning);
        self
    }

    /// Different questions that the state machine was asked so far.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.decider.questions()
    }

    /// The orders within the bounds.
    pub(super) fn orders(&self) -> impl Iterator<Item = u8> + use<> {
        (0..ACTORS_MAX.min(self.bounds.orders)).filter_map(|order| u8::try_from(order).ok())
    }

    fn instance_actions(&self, state: &State, by: Who, actions: &mut Vec<Action>) {
        match *worker(state, by) {
            Worker::Idle => return,
            Worker::Read(_, Seen::Stale) => {
                let (view, late, then) = (state.applied.newest(), Late([false; STEPS]), Then::Wait);
                actions.push(Action::Decide { by, view, redelivered: false, late, then });
            }
            Worker::Read(job, Seen::Fresh | Seen::Kept(_)) => {
                let Some(task) = &order_of(state, job).task else { return };
                // Whether it is told that an earlier delivery may have been cut short is up to the queue.
                let both = matches!(job.cause, Cause::Message(_));
                let redelivered = if both { &[false, true][..] } else { &[false] };
                let lates = every_late(task, self.bounds.clocks);
                let with_views = lates.iter().flat_map(|&late| state.applied.views().map(move |view| (late, view)));
                for ((late, view), &redelivered) in
                    with_views.flat_map(|seen| redelivered.iter().map(move |redelivered| (seen, redelivered)))
                {
                    let decide = |then| Action::Decide { by, view, redelivered, late, then };
                    match self.bounds.detail {
                        Detail::Fine => actions.push(decide(Then::Wait)),
                        Detail::Coarse => actions.extend(AT_ONCE.map(decide)),
                    }
                }
            }
            Worker::Decided(..) => actions.extend(AT_ONCE.map(|then| Action::Send { by, then })),
            Worker::Sent(..) => {
                actions.push(Action::Strike { by, can: true });
                actions.push(Action::Strike { by, can: false });
            }
        }
        actions.push(Action::Die { by });
    }

    fn message_actions(&self, state: &State, order: u8, message: Message, actions: &mut Vec<Action>) {
        let stored = state.orders[usize::from(order)].task.is_some();
        let scheduler = has_idle(&state.schedulers, self.bounds.schedulers);
        let supervisor = has_idle(&state.supervisors, self.bounds.supervisors);
        match message {
            Message::Submission => {
                for view in state.applied.views() {
                    for (sends, acknowledges) in [(true, true), (true, false), (false, false)] {
                        actions.push(Action::Store { order, view, sends, acknowledges });
                    }
                }
                // It is on disk, or on a queue with a dead-letter queue behind it.
                return;
            }
            Message::Request(attempt, left, knows) => {
                let may_call = self.bounds.clocks == Clocks::Any || left > 0;
                for answer in ANSWERS {
                    if may_call && self.may_answer(&state.orders[usize::from(order)], attempt, answer) {
                        actions.push(Action::Call { order, attempt, left, answer });
                    }
                }
                if may_call && self.may_linger(&state.orders[usize::from(order)], attempt) {
                    actions.push(Action::Begin { order, attempt, left, knows });
                }
                if may_call && is_taken_for_a_no(&state.orders[usize::from(order)], attempt, knows) {
                    actions.push(Action::Conflict { order });
                }
            }
            Message::Wake | Message::Reply(..) | Message::Command(_) if stored && scheduler => {
                actions.push(Action::Receive { order, message });
            }
            Message::Wake | Message::Reply(..) | Message::Command(_) => {}
        }
        if self.bounds.dead_letters && stored && supervisor && !matches!(message, Message::Command(_)) {
            actions.push(Action::DeadLetter { order, message });
        }
        actions.push(Action::Lose { order, message });
    }

    pub(super) fn apply(&self, state: &State, action: Action, in_flight_max: usize) -> Option<State> {
        let mut next = *state;
        let done = match action {
            Action::Post { order, view } => self.post(&mut next, order, view),
            Action::Apply => next.applied.next().map(|stage| next.applied = stage),
            Action::Store { order, view, sends, acknowledges } => {
                self.store(&mut next, order, view, sends, acknowledges)
            }
            Action::Command { order, command } => {
                if let CommandKind::Settle { step, undo } = command {
                    self.mend(&mut next, order, Attempt { step, undo, number: 0 });
                }
                let order = &mut next.orders[usize::from(order)];
                order.commands[command.index()] -= 1;
                order.messages.add(Message::Command(command)).then_some(())
            }
            Action::Receive { order, message } => {
                begin(&mut next.schedulers, Job { order, cause: Cause::Message(message) })
            }
            Action::Look { order } => begin(&mut next.supervisors, Job { order, cause: Cause::Tick }),
            Action::DeadLetter { order, message } => {
                begin(&mut next.supervisors, Job { order, cause: Cause::DeadLetter(message) })
            }
            Action::Decide { by, view, redelivered, late, then } => {
                self.decide(&mut next, by, view, redelivered, late).and_then(|()| send(&mut next, by, then))
            }
            Action::Send { by, then } => send(&mut next, by, then),
            Action::Strike { by, can } => self.strike(&mut next, by, can),
            Action::Die { by } => {
                *worker_mut(&mut next, by) = Worker::Idle;
                Some(())
            }
            Action::Call { order, attempt, answer, .. } => self.call(&mut next, order, attempt, answer),
            Action::Begin { order, attempt, left, knows } => {
                let order = &mut next.orders[usize::from(order)];
                order.services[usize::from(attempt.step)].runs = self.bounds.settles;
                // From its second delivery on, an agent knows.
                order.messages.remove(Message::Request(attempt, left, knows));
                order.messages.add(Message::Request(attempt, left, true)).then_some(())
            }
            Action::Conflict { .. } => {
                next.breach = Some(Breach::Misread);
                Some(())
            }
            Action::Effect { order, step } => {
                self.have_effect(&mut next, order, Attempt { step, undo: false, number: 0 });
                Some(())
            }
            Action::Tell { order, step, answer } => self.tell(&mut next, order, step, answer),
            Action::Lose { order, message } => {
                next.orders[usize::from(order)].messages.remove(message);
                Some(())
            }
            Action::Tick => {
                tick(&mut next);
                Some(())
            }
        };
        done?;
        next.sort();
        let has_room = next.orders.iter().all(|order| order.messages.len() <= in_flight_max);
        (has_room && next != *state).then_some(next)
    }

    /// Reads again, or decides on what was read and writes it.
    fn decide(&self, state: &mut State, by: Who, view: View, redelivered: bool, late: Late) -> Option<()> {
        let Worker::Read(job, seen) = *worker(state, by) else { return None };
        let stored = order_of(state, job).task?;
        let read = match seen {
            Seen::Fresh => stored,
            Seen::Kept(task) => task,
            Seen::Stale => {
                *worker_mut(state, by) = Worker::Read(job, Seen::Fresh);
                return Some(());
            }
        };
        let event = Asked::Cause(job.cause);
        let decided = self.decider.ask(Question { task: read, event, view, redelivered, late });
        state.breach = state.breach.or(decided.breach);
        let Decided { after, messages, alert, .. } = decided;
        if self.commit == Commit::AfterSending && after.is_some() && matches!(seen, Seen::Kept(_)) {
            let order = order_of_mut(state, job);
            messages.iter().all(|message| order.messages.add(message)).then_some(())?;
            *worker_mut(state, by) = Worker::Read(job, Seen::Fresh);
            return Some(());
        }
        if let Some(after) = after {
            self.write(state, job, by, &read, after);
        }
        *worker_mut(state, by) = Worker::Decided(job, messages, alert);
        Some(())
    }

    /// The conditional write, won.
    fn write(&self, state: &mut State, job: Job, by: Who, read: &Task, after: Task) {
        let stored = order_of_mut(state, job).task.replace(after);
        let is_claimed_twice = stored.is_some_and(|stored| {
            let steps = read.steps.iter().zip(&after.steps).zip(&stored.steps);
            let twice = |((read, after), stored): ((&_, &_), &_)| claims_again(read, after, stored);
            steps.into_iter().any(twice)
        });
        if is_claimed_twice {
            state.breach = Some(Breach::Attempt);
        }
        // The writer is done with what it read.
        *worker_mut(state, by) = Worker::Idle;
        let kept = (self.commit != Commit::ThenSend).then_some(stored).flatten();
        state.outdate(job.order, kept);
    }

    fn strike(&self, state: &mut State, by: Who, can: bool) -> Option<()> {
        let Worker::Sent(job, number, seen) = *worker(state, by) else { return None };
        let stored = order_of(state, job).task?;
        if can && seen == Seen::Stale {
            *worker_mut(state, by) = Worker::Sent(job, number, Seen::Fresh);
            return Some(());
        }
        if can {
            let read = if let Seen::Kept(task) = seen { task } else { stored };
            let late = Late([false; STEPS]);
            let question = Question {
                task: read,
                event: Asked::Sent(number),
                view: state.applied.newest(),
                redelivered: false,
                late,
            };
            let Decided { after, breach, .. } = self.decider.ask(question);
            state.breach = state.breach.or(breach);
            if let Some(after) = after {
                self.write(state, job, by, &read, after);
            }
        }
        acknowledge(state, by, job);
        Some(())
    }
}

/// Whether an agent takes the 409 of a service that is at work for a no: neither its request nor the task says that another
/// call may be under way.
fn is_taken_for_a_no(order: &OrderState, attempt: Attempt, knows: bool) -> bool {
    let runs = order.task.is_some_and(|task| task.steps[usize::from(attempt.step)].runs > 0);
    !attempt.undo && !knows && !runs && order.services[usize::from(attempt.step)].runs > 0
}

fn claims_again(read: &super::task::Step, after: &super::task::Step, stored: &super::task::Step) -> bool {
    after.attempt > read.attempt && after.attempt <= stored.attempt
}

/// What an instance does once it has decided. One that has read again has not.
fn send(state: &mut State, by: Who, then: Then) -> Option<()> {
    let Worker::Decided(job, messages, alert) = *worker(state, by) else { return Some(()) };
    let order = order_of_mut(state, job);
    match then {
        Then::Wait => return Some(()),
        Then::DieBeforeSending => {
            *worker_mut(state, by) = Worker::Idle;
            return Some(());
        }
        Then::LetGo | Then::LetGoMuted | Then::DieAfterSending => {
            messages.iter().all(|message| order.messages.add(message)).then_some(())?;
        }
    }
    if let (Some(number), Then::LetGo | Then::DieAfterSending) = (alert, then) {
        order.told = order.told.max(number);
    }
    match (then, alert) {
        (Then::LetGo, Some(number)) => *worker_mut(state, by) = Worker::Sent(job, number, Seen::Fresh),
        (Then::DieAfterSending, _) => *worker_mut(state, by) = Worker::Idle,
        _ => acknowledge(state, by, job),
    }
    Some(())
}

fn acknowledge(state: &mut State, by: Who, job: Job) {
    match job.cause {
        Cause::Message(message) | Cause::DeadLetter(message) => order_of_mut(state, job).messages.remove(message),
        Cause::Tick => {}
    }
    *worker_mut(state, by) = Worker::Idle;
}

fn tick(state: &mut State) {
    for order in &mut state.orders {
        order.messages.tick();
        order.services.iter_mut().for_each(|service| service.runs = service.runs.saturating_sub(1));
        order.task.iter_mut().for_each(Task::tick);
    }
    for worker in state.schedulers.iter_mut().chain(&mut state.supervisors) {
        if let Worker::Decided(_, messages, _) = worker {
            messages.tick();
        }
    }
}

fn has_idle(workers: &[Worker], bound: usize) -> bool {
    workers.iter().filter(|worker| **worker != Worker::Idle).count() < bound
}

fn begin(workers: &mut [Worker], job: Job) -> Option<()> {
    let idle = workers.iter_mut().find(|worker| **worker == Worker::Idle)?;
    *idle = Worker::Read(job, Seen::Fresh);
    Some(())
}

pub(super) fn worker(state: &State, by: Who) -> &Worker {
    match by {
        Who::Scheduler(index) => &state.schedulers[usize::from(index)],
        Who::Supervisor(index) => &state.supervisors[usize::from(index)],
    }
}

fn worker_mut(state: &mut State, by: Who) -> &mut Worker {
    match by {
        Who::Scheduler(index) => &mut state.schedulers[usize::from(index)],
        Who::Supervisor(index) => &mut state.supervisors[usize::from(index)],
    }
}

fn order_of(state: &State, job: Job) -> &OrderState {
    &state.orders[usize::from(job.order)]
}

fn order_of_mut(state: &mut State, job: Job) -> &mut OrderState {
    &mut state.orders[usize::from(job.order)]
}

/// Every instance that is at something; of two that are at the same thing one.
pub(super) fn busy(state: &State) -> impl Iterator<Item = Who> {
    let of = |workers: [Worker; ACTORS_MAX], who: fn(u8) -> Who| {
        let is_first = move |index: &u8| {
            let worker = workers[usize::from(*index)];
            worker != Worker::Idle && !workers[..usize::from(*index)].contains(&worker)
        };
        (0..2_u8).filter(is_first).map(who)
    };
    of(state.schedulers, Who::Scheduler).chain(of(state.supervisors, Who::Supervisor))
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let order = |order: usize| {
            let mut messages = Bag::<IN_FLIGHT>::new();
            let is_posted = order < self.bounds.orders && !self.bounds.applies;
            if is_posted {
                messages.add(Message::Submission);
            }
            OrderState {
                pinned: is_posted.then_some(COMPILED),
                task: None,
                messages,
                services: Default::default(),
                told: 0,
                commands: self.bounds.commands,
                deferrals: self.bounds.deferrals,
            }
        };
        let idle = [Worker::Idle; ACTORS_MAX];
        vec![State {
            orders: [order(0), order(1)],
            schedulers: idle,
            supervisors: idle,
            applied: Stage::Nothing,
            breach: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.breach.is_some() {
            return;
        }
        for by in busy(state) {
            self.instance_actions(state, by, actions);
        }
        if self.bounds.applies && state.applied.next().is_some() {
            actions.push(Action::Apply);
        }
        for order in self.orders() {
            let its = &state.orders[usize::from(order)];
            if its.pinned.is_none() {
                actions.extend(state.applied.views().map(|view| Action::Post { order, view }));
            }
            for message in its.messages.iter() {
                self.message_actions(state, order, message, actions);
            }
            let at_work = (0..).zip(&its.services).filter(|(_, service)| service.runs > 0);
            actions.extend(at_work.map(|(step, _)| Action::Effect { order, step }));
            for (step, service) in (0..).zip(its.services) {
                let told = [Answer::Done, Answer::Failed].into_iter().filter(|answer| self.may_tell(service, *answer));
                actions.extend(told.map(|answer| Action::Tell { order, step, answer }));
            }
            let Some(task) = &its.task else { continue };
            if task.care == Care::Supervisor && has_idle(&state.supervisors, self.bounds.supervisors) {
                actions.push(Action::Look { order });
            }
            for command in CommandKind::ALL.into_iter().filter(|command| its.commands[command.index()] > 0) {
                actions.push(Action::Command { order, command });
            }
            let failed = (0..).zip(&task.steps).filter(|(_, step)| step.state == StepState::Error && step.runs == 0);
            for command in failed.map(|(step, failed)| CommandKind::Settle { step, undo: failed.undo }) {
                if its.commands[command.index()] > 0 {
                    actions.push(Action::Command { order, command });
                }
            }
        }
        if self.bounds.clocks == Clocks::One {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.apply(state, action, self.bounds.in_flight_max)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(&self.bounds)
    }
}
