//! One world: its events in sequence, until every order has ended.

pub mod applied;
pub mod calm;
pub mod customers;
pub mod operators;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::message::{Action, Receipt, Request, SchedulerMessage, decode};
use domain::order::Order;

use crate::actors::{Role, Slot};
use crate::event::{Blow, Event, Meddling};
use crate::executor::{Done, Executor, Went};
use crate::faults::Fault;
use crate::rng::Rng;
use crate::seen::{Seen, Try};
use crate::setup::Setup;
use crate::shape::{SCHEDULER, SUBMISSION};
use crate::state::queues::Given;
use crate::state::{EPOCH_MS, Shared, State};
use crate::watcher::Watcher;
use crate::world::applied::compiled_in;
use crate::world::calm::Calm;
use crate::world::customers::Customers;
use crate::world::operators::Ask;

/// More events than any world needs.
const EVENTS_MAX: u64 = 3_000_000;
/// The start time of a new instance, in milliseconds.
const START_MS: (u64, u64) = (20, 1_500);
/// The longest pause of an idle supervisor, in milliseconds.
const IDLE_TICK_MS: i64 = 30 * 60_000;
/// The same where orders may wait for a year.
const LONG_IDLE_TICK_MS: i64 = 24 * 3_600_000;

/// The purpose of an invocation.
pub(crate) enum Job {
    Batch { slot: usize, queue: usize, given: Vec<Given> },
    Run { slot: Option<usize> },
    ApiConfig(Ask),
}

/// One world.
pub struct World {
    pub(crate) shared: Shared,
    pub(crate) executor: Executor,
    pub(crate) slots: Vec<Slot>,
    pub(crate) jobs: BTreeMap<u32, Job>,
    pub(crate) customers: Customers,
    pub(crate) calm: Calm,
    /// The next run of each supervisor.
    ticks_ms: Vec<i64>,
    is_over: bool,
}

impl World {
    /// A world of these constants, with this randomness and this judge.
    #[must_use]
    pub fn new(rng: Rng, setup: Setup, watcher: Box<dyn Watcher>, keeps_lines: bool) -> Self {
        let setup = Arc::new(setup);
        let shared = Shared::new(State::new(rng, setup.clone(), watcher, keeps_lines));
        let agents = 0..setup.shape.agents.len();
        let roles = [Role::Submits, Role::Buries]
            .into_iter()
            .chain((0..setup.instances).map(|_| Role::Schedules))
            .chain(agents.flat_map(|place| (0..setup.instances).map(move |_| Role::Calls(place))))
            .chain((0..setup.supervisors).map(Role::Supervises));
        let slots = roles.enumerate().map(|(number, role)| Slot::new(&shared, role, number, 0)).collect();
        let customers = Customers::draw(&shared, &setup);
        shared.lock().plan_events(&setup);
        let ticks_ms = vec![i64::MAX; setup.supervisors];
        Self {
            shared,
            executor: Executor::default(),
            slots,
            jobs: BTreeMap::new(),
            customers,
            calm: Calm::default(),
            ticks_ms,
            is_over: false,
        }
    }

    /// Runs it to its end, or to the first violation.
    #[must_use]
    pub fn run(mut self) -> State {
        let mut events = 0;
        while !self.is_over {
            self.poll_ready();
            self.plan_ticks();
            if self.shared.lock().watcher.is_done() {
                break;
            }
            events += 1;
            let next = if events > EVENTS_MAX { None } else { self.shared.lock().next_event() };
            match next {
                Some(event) => self.happen(event),
                None => {
                    let mut state = self.shared.lock();
                    let queued = state.queues.len();
                    let world = state.world.clone();
                    state.see(&world, &Seen::DrainIsDue { queued: queued.max(1) });
                }
            }
        }
        self.executor.drop_all();
        let Self { shared, slots, .. } = self;
        drop(slots);
        shared.into_inner().unwrap_or_else(|| unreachable!("all that shared the world is dropped"))
    }

    pub(crate) const fn end(&mut self) {
        self.is_over = true;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Timer(slot, generation) => {
                let waker = self.shared.lock().end_timer((slot, generation));
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Event::Arrive(call) => self.shared.lock().arrive(call),
            Event::Effect(call) => self.shared.lock().effect(call),
            Event::Answer(call) => {
                let waker = self.shared.lock().answer(call);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Event::Pump(queue) => self.pump(queue),
            Event::Resume(invocation) => self.executor.resume(invocation),
            Event::Started(slot) => {
                self.slots[slot].is_starting = false;
                self.pump_for(slot);
            }
            Event::Recycled(slot) => {
                self.slots[slot].is_old = true;
                if self.slots[slot].busy.is_none() {
                    self.replace(slot);
                }
            }
            Event::Tick(number, at_ms) => self.tick(number, at_ms),
            Event::Post(customer) => self.post(customer),
            Event::CallBack(call) => self.call_back(call),
            Event::Meddle(meddling) => self.meddle(meddling),
            Event::Strike(blow) => self.strike(blow),
            Event::Forget(order, step, is_undo) => {
                use domain::task::Direction::{Forward, Undo};
                self.shared.lock().forget(order, step, if is_undo { Undo } else { Forward });
            }
            Event::Cancel(order) => self.command(order, Action::Cancel),
            Event::Apply(number) => self.apply(number),
            Event::Deploy => self.deploy(),
            Event::Calm => self.begin_calm(),
            Event::Look => self.look(),
        }
    }

    // ---- invocations

    fn poll_ready(&mut self) {
        while let Some(invocation) = self.executor.next() {
            match self.executor.poll(invocation, &self.shared) {
                Went::On => {}
                Went::Ended(done) => self.ended(invocation, done),
                Went::Died => self.died(invocation, "dies"),
                Went::Panicked(words) => {
                    let mut state = self.shared.lock();
                    let world = state.world.clone();
                    state.see(&world, &Seen::Panicked { words: words.into() });
                    drop(state);
                    self.died(invocation, "panicked");
                }
            }
        }
    }

    fn ended(&mut self, invocation: u32, done: Done) {
        match (self.jobs.remove(&invocation), done) {
            (Some(Job::Batch { slot, queue, given }), Done::Batch(failures)) => {
                let (failed, done): (Vec<Given>, Vec<Given>) =
                    given.into_iter().partition(|given| failures.has(&given.receipt));
                self.settle(invocation, slot, queue, &failed, &done);
                self.free(slot);
            }
            (Some(Job::Run { slot: Some(slot) }), _) => self.free(slot),
            (Some(Job::ApiConfig(ask)), Done::Answered(response)) => self.answered(ask, Some(&response)),
            (Some(Job::Batch { slot, .. }), Done::Ran | Done::Answered(_)) => self.free(slot),
            (Some(Job::Run { slot: None } | Job::ApiConfig(_)) | None, _) => {}
        }
    }

    fn died(&mut self, invocation: u32, how: &'static str) {
        let Some(job) = self.jobs.remove(&invocation) else { return };
        let slot = match job {
            Job::Batch { slot, .. } | Job::Run { slot: Some(slot) } => slot,
            Job::Run { slot: None } => return,
            Job::ApiConfig(ask) => {
                self.customers.restart_api(&self.shared);
                return self.answered(ask, None);
            }
        };
        {
            let mut state = self.shared.lock();
            state.note(self.slots[slot].name(), None, how, || how.to_owned());
        }
        self.replace(slot);
    }

    /// The host deletes the messages that the handler reports as done.
    fn settle(&self, invocation: u32, slot: usize, queue: usize, failed: &[Given], done: &[Given]) {
        let mut state = self.shared.lock();
        if state.unsent_by.remove(&invocation) {
            let name = self.slots[slot].name();
            for (of, returned) in dismissed(&state, failed, done) {
                state.see(name, &Seen::Dismissed { of, by: invocation, returned });
            }
        }
        if [SUBMISSION, SCHEDULER].contains(&queue) {
            let message_of = |given: &Given| decode::<SchedulerMessage>(given.body.as_bytes()).ok();
            let order_of = |given: &Given| match queue {
                SUBMISSION => decode::<Order>(given.body.as_bytes()).ok().map(|order| order.order_id),
                _ => message_of(given).map(|message| message.order_id()),
            };
            let unfinished: Vec<_> = failed.iter().filter_map(order_of).collect();
            let slot = &self.slots[slot];
            for given in done {
                let Some(order) = order_of(given) else { continue };
                let clock_ms = state.clock(slot.skew_ms()).epoch_ms();
                let command = match message_of(given) {
                    Some(SchedulerMessage::Command(command)) => Some(command),
                    Some(SchedulerMessage::Wake(_) | SchedulerMessage::Reply(_) | SchedulerMessage::Child(_))
                    | None => None,
                };
                if let Some(command) = command.as_ref().filter(|command| command.action == Action::Note) {
                    let (words, looked_at) = (command.reason.clone(), command.version.unwrap_or(0));
                    state.see(slot.name(), &Seen::NoteHandled { order, words, looked_at });
                } else if let Some(command) = &command {
                    let (action, looked_at) = (command.action.name(), command.version.unwrap_or(0));
                    let step = command.settle.as_ref().map(|settle| &settle.step).or(command.step.as_ref());
                    let step = step.and_then(|step| state.index_of(order, step));
                    let clock_ms = clock_ms - (state.now_ms - given.given_ms);
                    state.see(slot.name(), &Seen::Granted { order, action, looked_at, step, clock_ms });
                }
                let is_whole = !unfinished.contains(&order);
                let mut earlier = given.earlier.clone();
                earlier.retain(|earlier| !state.has_another_of(order, *earlier, done));
                let (by, given_ms) = (invocation, given.given_ms);
                state.see(slot.name(), &Seen::Acknowledged { order, by, earlier, given_ms, is_whole, clock_ms });
            }
        }
        let receipts: Vec<Receipt> = done.iter().map(|given| given.receipt.clone()).collect();
        state.settle(queue, receipts);
    }

    // ---- instances

    /// Delivers the messages of a queue to free instances.
    fn pump(&mut self, queue: usize) {
        let setup = self.shared.lock().setup.clone();
        for slot in 0..self.slots.len() {
            if self.slots[slot].role.queue(&setup) == Some(queue) {
                self.pump_slot(slot, queue);
            }
        }
    }

    fn pump_for(&mut self, slot: usize) {
        let queue = self.slots[slot].role.queue(&self.shared.lock().setup);
        if let Some(queue) = queue {
            self.pump_slot(slot, queue);
        }
    }

    fn pump_slot(&mut self, slot: usize, queue: usize) {
        if self.slots[slot].busy.is_some() || self.slots[slot].is_starting {
            return;
        }
        let invocation = self.executor.next_number();
        let given = {
            let mut state = self.shared.lock();
            if !state.has_ready(queue) {
                return;
            }
            state.take(queue, invocation, |earlier| self.executor.is_alive(earlier))
        };
        if given.is_empty() {
            return;
        }
        let ports = self.slots[slot].ports(&self.shared, invocation);
        let phase = ports.who.phase.clone();
        {
            let mut state = self.shared.lock();
            let ids: Vec<&str> = given.iter().map(|given| &*given.receipt.message_id).collect();
            state.note(&ports.who.name, None, &ids, || {
                format!("invocation {invocation} takes {ids:?} off queue {queue}")
            });
        }
        let work = self.slots[slot].handles(ports, &given);
        self.executor.begin(work, phase);
        self.slots[slot].busy = Some(invocation);
        self.jobs.insert(invocation, Job::Batch { slot, queue, given });
    }

    fn free(&mut self, slot: usize) {
        self.slots[slot].busy = None;
        if self.slots[slot].is_old {
            self.replace(slot);
        } else {
            self.pump_for(slot);
        }
    }

    /// Replaces an instance.
    fn replace(&mut self, slot: usize) {
        self.slots[slot] = self.slots[slot].successor(&self.shared, slot);
        self.slots[slot].is_starting = true;
        let mut state = self.shared.lock();
        let ms = state.rng.between(START_MS.0, START_MS.1);
        state.after(ms, Event::Started(slot));
    }

    /// Replaces all instances, one after the other.
    pub(crate) fn recycle(&self, within_ms: u64) {
        let mut state = self.shared.lock();
        for slot in 0..self.slots.len() {
            let ms = state.rng.between(0, within_ms);
            state.after(ms, Event::Recycled(slot));
        }
    }

    fn deploy(&mut self) {
        {
            let mut state = self.shared.lock();
            state.counts.add(Fault::Deployed);
            state.tell("version 2 of the workflow is deployed");
            // Orders that a supervisor posts again begin with it from now on.
            let world = state.world.clone();
            let choices = compiled_in(state.setup.shape.compiled(), 2);
            state.see(&world, &Seen::Applied { choices });
        }
        self.recycle(60_000);
    }

    // ---- ticks

    /// A supervisor runs at its next tick if an order may be due then; otherwise the tick would find nothing.
    fn plan_ticks(&mut self) {
        let mut state = self.shared.lock();
        if !std::mem::take(&mut state.tables.is_watch_changed) {
            return;
        }
        for number in 0..self.ticks_ms.len() {
            let at_ms = state.next_tick_ms(0);
            if at_ms < self.ticks_ms[number] {
                self.ticks_ms[number] = at_ms;
                state.at(at_ms, Event::Tick(number, at_ms));
            }
        }
    }

    fn tick(&mut self, number: usize, at_ms: i64) {
        if self.ticks_ms[number] != at_ms {
            return;
        }
        let runs = {
            let mut state = self.shared.lock();
            let next_ms = state.next_tick_ms(1);
            self.ticks_ms[number] = next_ms;
            state.at(next_ms, Event::Tick(number, next_ms));
            match (state.strikes(Fault::TickMissed), state.strikes(Fault::TickDoubled)) {
                (true, _) => 0,
                (false, true) => 2,
                (false, false) => 1,
            }
        };
        let slot = self.slots.iter().position(|slot| slot.role == Role::Supervises(number));
        for run in 0..runs {
            let Some(slot) = slot else { return };
            let is_free = self.slots[slot].busy.is_none() && !self.slots[slot].is_starting;
            // The next tick does not wait for a long run: the platform starts another.
            match (run, is_free) {
                (0, true) => self.supervise(Some(slot), slot),
                _ => self.supervise(None, slot),
            }
        }
    }

    fn supervise(&mut self, slot: Option<usize>, like: usize) {
        let invocation = self.executor.next_number();
        let (tick_ms, has_jobs) = {
            let state = self.shared.lock();
            (state.setup.tick_ms, state.has_active_jobs())
        };
        let other;
        let instance = match slot {
            Some(slot) => &self.slots[slot],
            None => {
                let generation = 1_000_000 + invocation;
                other = Slot::new(&self.shared, self.slots[like].role, like, generation);
                &other
            }
        };
        let ports = instance.ports(&self.shared, invocation);
        let phase = ports.who.phase.clone();
        let work = instance.supervises(ports, tick_ms, has_jobs);
        self.executor.begin(work, phase);
        self.jobs.insert(invocation, Job::Run { slot });
        if let Some(slot) = slot {
            self.slots[slot].busy = Some(invocation);
        }
    }
}

/// The attempts with a finished request, each with the number of its failed requests.
fn dismissed(state: &State, failed: &[Given], done: &[Given]) -> BTreeMap<Try, usize> {
    let of = |given: &Given| {
        let Request { order_id, step, direction, attempt, .. } = decode(given.body.as_bytes()).ok()?;
        state.attempt_of(order_id, &step, direction, attempt)
    };
    let mut dismissed: BTreeMap<Try, usize> = done.iter().filter_map(of).map(|of| (of, 0)).collect();
    for of in failed.iter().filter_map(of) {
        dismissed.entry(of).and_modify(|returned| *returned += 1);
    }
    dismissed
}

impl State {
    fn has_active_jobs(&self) -> bool {
        self.records.all().iter().any(|job: &domain::bulk::Job| job.state.is_active())
    }

    /// The next tick, after at least this many periods, at which a supervisor may find a due order.
    fn next_tick_ms(&self, periods: i64) -> i64 {
        let tick_ms = i64::try_from(self.setup.tick_ms).unwrap_or(1);
        let soonest_ms = self.now_ms + periods * tick_ms;
        if self.has_active_jobs() {
            return soonest_ms;
        }
        let skew_ms = i64::try_from(self.setup.skew_ms).unwrap_or(0);
        let due_ms = self.tables.next_due().map(|at| at.epoch_ms() - EPOCH_MS - skew_ms);
        // With a wrong clock an order may be due at any time. Each shard has its turn: no world has as many.
        let idle_ms = match (self.setup.clocks_jump(), self.setup.is_described()) {
            (true, _) => 7 * tick_ms,
            (false, false) => IDLE_TICK_MS,
            (false, true) => LONG_IDLE_TICK_MS,
        };
        let wanted_ms = due_ms.unwrap_or(i64::MAX).min(self.now_ms + idle_ms).max(soonest_ms);
        // On the grid of its schedule.
        (wanted_ms + tick_ms - 1).div_euclid(tick_ms) * tick_ms
    }

    /// The scheduled events: outages, intrusions, operators, the deployment, and the end of all faults.
    fn plan_events(&mut self, setup: &Setup) {
        let until_ms = setup.calm_at_ms.unsigned_abs();
        let blows = Blow::ALL.map(|blow| (blow.fault(), Event::Strike(blow)));
        let meddlings = Meddling::ALL.map(|meddling| (meddling.fault(), Event::Meddle(meddling)));
        for (fault, event) in blows.into_iter().chain(meddlings) {
            let most = setup.plan.rate(fault);
            let times = if most == 0 { 0 } else { self.rng.between(1, most) };
            for _ in 0..times {
                // Most orders are in progress early.
                let early_ms = if self.setup.is_described() { 45_000 } else { 120_000 };
                let latest_ms = if self.rng.chance(6_000) { until_ms.min(early_ms) } else { until_ms };
                let at_ms = self.rng.below(latest_ms);
                self.after(at_ms, event);
            }
        }
        if let Some(at_ms) = setup.deployed_at_ms {
            self.at(at_ms, Event::Deploy);
        }
        for (number, application) in setup.applied.iter().enumerate() {
            self.at(application.at_ms, Event::Apply(number));
        }
        self.at(setup.calm_at_ms, Event::Calm);
    }
}
