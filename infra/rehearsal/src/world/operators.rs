//! Operators, and other outside events: outages, poison messages, forged replies.

use std::sync::Arc;

use bytes::Bytes;
use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Action, Failure, Outcome, Priority, Reply, SchedulerMessage, Settlement};
use domain::task::{Direction, ProcessState, Step, Task};
use http::{Request, Response, StatusCode};
use serde_json::json;

use crate::event::{Blow, Event, Meddling};
use crate::faults::Fault;
use crate::seen::Seen;
use crate::shape::SCHEDULER;
use crate::state::State;
use crate::world::World;

/// A request to the API.
#[derive(Debug, Clone, Copy)]
pub enum Ask {
    /// A customer posts an order.
    Order(usize),
    /// An operator sends a command for an order.
    Command(OrderId, Action),
    /// A service tells the result of a call.
    CallBack(u64),
    /// An operator plans a job.
    Plan,
    /// An operator starts a job.
    Start,
    /// An operator posts an order again.
    Again,
    /// An operator applies workflows or settings, by the number of the application.
    Apply(usize),
}

impl World {
    /// Handles the answer of the API.
    pub(crate) fn answered(&mut self, ask: Ask, response: Option<&Response<Bytes>>) {
        match ask {
            Ask::Order(customer) => self.order_answered(customer, response),
            Ask::Plan => {
                let location = response.and_then(|response| response.headers().get("Location")?.to_str().ok());
                if let Some(path) = location {
                    let path = format!("{path}/start");
                    self.ask(Ask::Start, command(&path));
                }
            }
            Ask::Command(order, action)
                if response.is_some_and(|response| response.status() == StatusCode::ACCEPTED) =>
            {
                let mut state = self.shared.lock();
                let world = state.world.clone();
                state.see(&world, &Seen::Promised { order, action: action.name() });
            }
            Ask::CallBack(call) if !response.is_some_and(|response| response.status().is_success()) => {
                let mut state = self.shared.lock();
                let ms = state.rng.between(200, 15_000);
                state.after(ms, Event::CallBack(call));
            }
            Ask::Apply(number) => self.application_answered(number, response),
            Ask::Command(..) | Ask::Start | Ask::Again | Ask::CallBack(_) => {}
        }
    }

    /// An operator acts during the run.
    pub(crate) fn meddle(&mut self, meddling: Meddling) {
        if self.shared.lock().is_calm {
            return;
        }
        let Some(action) = meddling.action() else {
            return if meddling == Meddling::BulkAgain { self.plan_again() } else { self.plan_job() };
        };
        let found = {
            let mut state = self.shared.lock();
            let is_meant = |task: &Arc<Task>| match meddling {
                Meddling::Resubmit | Meddling::Settle | Meddling::Close => task.process_state == ProcessState::Error,
                Meddling::Decide => task.steps.iter().any(Step::is_asked),
                Meddling::Cancel
                | Meddling::Pause
                | Meddling::Resume
                | Meddling::Note
                | Meddling::Bulk
                | Meddling::BulkAgain => !task.process_state.is_final(),
            };
            let orders: Vec<OrderId> =
                state.tables.tasks().into_iter().filter(is_meant).map(|task| task.order_id).collect();
            match orders.len() {
                0 => None,
                length => Some(orders[state.rng.place(length)]),
            }
        };
        match found {
            Some(order) if meddling == Meddling::Settle => {
                self.settle_step(order);
            }
            Some(order) if meddling == Meddling::Note => self.note(order),
            Some(order) if meddling == Meddling::Decide => self.decide(order),
            Some(order) => {
                self.shared.lock().counts.add(meddling.fault());
                self.command(order, action);
            }
            None => {
                // Nothing to do yet.
                let mut state = self.shared.lock();
                let ms = state.rng.between(5_000, 60_000);
                state.after(ms, Event::Meddle(meddling));
            }
        }
    }

    /// Somebody approves or rejects a step that is asked for.
    pub(crate) fn decide(&mut self, order: OrderId) {
        let (action, step) = {
            let mut state = self.shared.lock();
            let Some(task) = state.tables.task(order) else { return };
            let asked: Vec<_> =
                task.steps.iter().filter(|step| step.is_asked()).map(|step| step.name.clone()).collect();
            if asked.is_empty() {
                return;
            }
            let step = asked[state.rng.place(asked.len())].clone();
            state.counts.add(Fault::Decided);
            (if state.rng.chance(6_500) { Action::Approve } else { Action::Reject }, step)
        };
        let body = format!("{{\"By\":\"ann\",\"Reason\":\"as it seems\",\"Step\":\"{step}\"}}");
        let request = Request::post(format!("/orders/{order}/{}", action.segment())).body(Bytes::from(body));
        self.ask(Ask::Command(order, action), request.unwrap_or_default());
    }

    /// An operator writes a note. Each has words of its own.
    fn note(&mut self, order: OrderId) {
        let number = {
            let mut state = self.shared.lock();
            state.counts.add(Fault::Noted);
            state.counts.of(Fault::Noted)
        };
        let take = if number.is_multiple_of(2) { ",\"Take\":true" } else { "" };
        let body = format!("{{\"By\":\"ann\",\"Reason\":\"note {number}\"{take}}}");
        let request = Request::post(format!("/orders/{order}/note")).body(Bytes::from(body));
        self.ask(Ask::Command(order, Action::Note), request.unwrap_or_default());
    }

    /// An operator plans a job, to start it later.
    fn plan_job(&mut self) {
        let body = "{\"By\":\"ann\",\"Reason\":\"it is back\",\"Selector\":{},\"Canary\":1,\"RatePerSecond\":5,\
                    \"CanaryTimeoutMs\":20000,\"StopAtFailedPercent\":100}";
        // No operator can vouch for the services of all these orders, or knows who mends one by hand.
        let is_unknown = {
            let state = self.shared.lock();
            state.keys_expire() || state.setup.plan.has(Fault::Settled)
        };
        if !is_unknown {
            self.shared.lock().counts.add(Fault::BulkResubmitted);
            self.ask(Ask::Plan, Request::post("/bulk").body(Bytes::from_static(body.as_bytes())).unwrap_or_default());
        }
    }

    /// An operator plans a job that posts the compensated orders again, to start it later. Another may post one by itself.
    fn plan_again(&mut self) {
        let body = "{\"By\":\"ann\",\"Reason\":\"it is back\",\"Action\":\"Again\",\"Selector\":{},\"Canary\":1,\
                    \"RatePerSecond\":5,\"CanaryTimeoutMs\":20000,\"StopAtFailedPercent\":100}";
        let by_itself = {
            let mut state = self.shared.lock();
            let is_compensated = |task: &Arc<Task>| task.process_state == ProcessState::Compensated;
            let orders: Vec<OrderId> =
                state.tables.tasks().into_iter().filter(is_compensated).map(|task| task.order_id).collect();
            if orders.is_empty() {
                // Nothing to do yet.
                let ms = state.rng.between(5_000, 60_000);
                return state.after(ms, Event::Meddle(Meddling::BulkAgain));
            }
            state.counts.add(Fault::BulkPostedAgain);
            state.rng.chance(3_000).then(|| orders[state.rng.place(orders.len())])
        };
        self.ask(Ask::Plan, Request::post("/bulk").body(Bytes::from_static(body.as_bytes())).unwrap_or_default());
        if let Some(order) = by_itself {
            self.ask(Ask::Again, command(&format!("/orders/{order}/again")));
        }
    }

    /// An operator sends a command for an order.
    pub(crate) fn command(&mut self, order: OrderId, action: Action) {
        // An operator who resubmits vouches for the service. If the service has dropped its keys, the operator cancels.
        let is_vouched = action != Action::Resubmit || self.shared.lock().vouch(order);
        let action = if is_vouched { action } else { Action::Cancel };
        if !self.shared.lock().may_command(order, action) {
            self.settle_step(order);
            return;
        }
        let path = format!("/orders/{order}/{}", action.name().to_lowercase());
        self.ask(Ask::Command(order, action), command(&path));
    }

    /// An outage or an intrusion starts.
    pub(crate) fn strike(&self, blow: Blow) {
        let mut state = self.shared.lock();
        if state.is_calm {
            return;
        }
        match blow {
            Blow::QueueAway => state.take_queue_away(),
            Blow::StoreAway => state.take_store_away(),
            Blow::ServiceAway => state.take_service_away(),
            Blow::ServiceMisconfigured => state.misconfigure_service(),
            Blow::Poison => state.poison(),
            Blow::Forge if state.tables.tasks().is_empty() => {
                let ms = state.rng.between(1_000, 20_000);
                return state.after(ms, Event::Strike(blow));
            }
            Blow::Forge => state.forge(),
            Blow::ClockJump => state.jump(),
        }
        state.counts.add(blow.fault());
    }
}

impl World {
    /// An operator settles a step of an order in `Error`. Returns whether there is one to settle.
    pub(crate) fn settle_step(&mut self, order: OrderId) -> bool {
        let Some(settlement) = self.shared.lock().mend(order) else { return false };
        let Settlement { step, outcome, output } = settlement;
        let mut body = json!({"By": "ann", "Reason": "done by hand", "Step": step, "Outcome": outcome});
        if let Some(output) = output {
            body["Output"] = json!(output);
        }
        let request = Request::post(format!("/orders/{order}/settle")).body(Bytes::from(body.to_string()));
        self.ask(Ask::Command(order, Action::Settle), request.unwrap_or_default());
        true
    }
}

fn command(path: &str) -> Request<Bytes> {
    let body = Bytes::from_static(b"{\"By\":\"ann\",\"Reason\":\"it has to be\"}");
    Request::post(path).body(body).unwrap_or_default()
}

impl State {
    /// Puts a forged reply on the scheduler queue: with an unknown attempt, order or step, or in the wrong direction. A
    /// forged reply with the current attempt is indistinguishable from a real one, so it is left out.
    fn forge(&mut self) {
        let mut tasks = self.tables.tasks();
        // An empty array may leave an order without a step.
        tasks.retain(|task| !task.steps.is_empty());
        if tasks.is_empty() {
            return;
        }
        let task = tasks[self.rng.place(tasks.len())].clone();
        let step = &task.steps[self.rng.place(task.steps.len())];
        let outcome = match self.rng.below(2) {
            0 => Outcome::Done(Json::of(&"forged")),
            _ => Outcome::Failed(Failure { code: "forged".into(), message: "forged".into() }),
        };
        let direction = step.direction;
        let reply = Reply {
            order_id: task.order_id,
            step: step.name.clone(),
            direction,
            attempt: step.attempt,
            outcome,
            hops: 0,
            may_run_until: None,
            call_ms: None,
        };
        let other = match direction {
            Direction::Forward => Direction::Undo,
            Direction::Undo => Direction::Forward,
        };
        let reply = match self.rng.below(5) {
            // Far ahead, since a near attempt may be claimed before the reply arrives.
            0 => Reply { attempt: step.attempt + 1_000, ..reply },
            1 => Reply { attempt: 0, ..reply },
            2 => Reply { step: "s99".into(), ..reply },
            // Before the undo is claimed, the forward attempt is the last one, and its reply counts.
            3 if other == Direction::Forward && step.started_at.is_some() => Reply { direction: other, ..reply },
            _ => Reply { order_id: OrderId::from_idempotency_key("nobody", "nothing"), ..reply },
        };
        let body = serde_json::to_string(&SchedulerMessage::Reply(reply)).unwrap_or_default();
        self.tell(&format!("a forged reply: {body}"));
        let priority = self.rng.pick(&Priority::ALL);
        self.send(SCHEDULER, &body.into(), priority, 0, None);
    }
}
