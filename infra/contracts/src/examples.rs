//! The examples of the API: what it answers when a few orders are carried out over ports in memory, and the bodies that
//! are posted for that.

use std::fmt::Display;
use std::io;

use api::{ApiConfig, Caller, handle};
use bytes::Bytes;
use domain::advance::{advance, begin, follow_up};
use domain::backoff::{Backoff, BackoffPolicy};
use domain::callback::Awaited;
use domain::definition::{Catalogue, Deployment};
use domain::delivery::Receipt;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::json::Json;
use domain::limits::SHARDS;
use domain::machine::Event;
use domain::message::{Acceptance, Delivery, Outcome, Reply, SchedulerMessage};
use domain::ports::{
    Breaker, DeadLetter, Environment, Evidence, Outage, OutageReason, Records, Rejections, Seen, ServiceHealth,
    SourceQueue,
};
use domain::schedule::{Posted, ScheduleRecord};
use domain::tally::{Grain, Numbers, Span, States, Tally};
use domain::task::{Direction, ProcessState, StepState, Task};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::Memory;
use serde_json::{Map, Value, json};
use supervisor::Settings;

const START: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_007);
/// The points of numbers that are shown: the last ones.
const POINTS_SHOWN: usize = 2;
const SETTINGS: &str = "default = \"shop\"\n\n[agents.bank]\nurl = \"https://bank.example\"\n\n[[schedule]]\nname = \"renewals\"\ncron = \"0 3 1 * *\"\norder = { Item = \"mug\" }\n";
const SHOP: &str = "name = \"shop\"\nversion = 1\n\n[[step]]\nname = \"approve\"\nkind = \"approval\"\nrole = \
                    \"manager\"\n\n[[step]]\nname = \"charge\"\nagent = \"bank\"\nafter = [\"approve\"]\nwait_within = \"2d\"\n";

/// The API, and what it was asked and answered: each under the name of a schema or of an operation.
struct Play {
    memory: Memory,
    config: ApiConfig,
    instance: Instance,
    examples: Map<String, Value>,
    states: States,
    tally: Tally,
}

/// All examples.
pub(crate) fn played() -> io::Result<Value> {
    let catalogue = Catalogue::new(Workflows::shipped().map_err(io::Error::other)?);
    let config = ApiConfig::default().with_services(["inventory", "payment", "shipping"]).redacting(["CardNumber"]);
    let mut play = Play {
        memory: Memory::new(START, 0),
        config: config.with_catalogue(&catalogue),
        instance: Instance { name: "stepwarden-1".into(), catalogue, shards: SHARDS },
        examples: Map::new(),
        states: States::default(),
        tally: Tally::default(),
    };
    play.processed()?;
    play.failed()?;
    play.jobs()?;
    play.seen()?;
    Ok(play.examples.into())
}

impl Play {
    /// An order of a workflow of one's own: it is approved, its service tells the result later, and it is erased.
    fn processed(&mut self) -> io::Result<()> {
        let files = json!([
            {"Name": "stepwarden.toml", "Text": SETTINGS},
            {"Name": "workflows/shop-1.toml", "Text": SHOP},
        ]);
        let folder = json!({"By": "ann", "Reason": "the new shop", "Files": files});
        self.post("Configured", "/configuration", "Configure", &folder)?;
        self.get("Configuration", "/configuration")?;
        self.get("WorkflowList", "/workflows")?;
        self.get("Definition", "/workflows/shop/1")?;
        let order = json!({"Order": {"Item": "mug"}, "Outputs": {"approve": {"By": "ann"}}});
        self.post("Tried", "/workflows/shop/1/try", "Try", &order)?;
        let id = self.order("order-7", &json!({"Item": "mug"}))?;
        let decision = json!({"By": "ann", "Reason": "within the budget"});
        self.post("rejectOrder", &format!("/orders/{id}/reject"), "", &decision)?;
        self.post("approveOrder", &format!("/orders/{id}/approve"), "Decision", &decision)?;
        self.schedule()?;
        self.reply(id, Outcome::Accepted(Acceptance::default()))?;
        let deployment = now(self.memory.get::<Deployment>(Deployment::KEY))?;
        let key = deployment.and_then(|deployment| deployment.callback_keys.last().cloned());
        let awaited = Awaited { order_id: id, step: "charge".into(), direction: Direction::Forward, agent: None };
        let callback = format!("/callbacks/{}", key.map(|key| key.token(&awaited)).unwrap_or_default());
        self.post(
            "CalledBack.202",
            &callback,
            "Callback",
            &json!({"Outcome": "Done", "Output": {"PaymentID": "p-4711"}}),
        )?;
        self.schedule()?;
        let no = json!({"Outcome": "No", "Code": "card-declined", "Message": "The bank said no."});
        self.post("CalledBack.200", &callback, "Callback", &no)?;
        let author = json!({"By": "ann", "Reason": "the customer asked for it"});
        self.post("eraseOrder", &format!("/orders/{id}/erase"), "", &author)?;
        let second = json!({"Name": "workflows/shop-2.toml", "Text": SHOP.replace("version = 1", "version = 2")});
        let folder = json!({"By": "ann", "Reason": "a second version", "Files": [files[0], files[1], second]});
        self.post("", "/configuration", "", &folder)?;
        self.post("retireWorkflow", "/workflows/shop/1/retire", "", &author)
    }

    /// An order whose payment fails for too long, and what an operator may do with it.
    fn failed(&mut self) -> io::Result<()> {
        let document =
            json!({"Item": "mug", "Workflow": "order", "CorrelationID": "cart-7", "Card": {"CardNumber": "4111"}});
        let id = self.order("order-8", &document)?;
        self.reply(id, Outcome::Done(Json::of(&json!({"ReservationID": "r-1"}))))?;
        let request = self.memory.requested().pop();
        while self.memory.stored(id).process_state != ProcessState::Error {
            self.memory.advance(60_000);
            let before = self.memory.stored(id);
            now(supervisor::handle(&self.memory, &self.instance, &Settings::default()))?;
            self.count(&before);
            self.apply(id, Event::Wake { hops: 0, redelivered: false })?;
        }
        let dead_letter = DeadLetter {
            queue: SourceQueue::Agent("payment".into()),
            message_id: "m-1".into(),
            body: serde_json::to_string(&request)?.into(),
            receive_count: 1_000,
            at: self.memory.now(),
        };
        let receipt = Receipt { message_id: "m-1".into(), handle: "m-1".into() };
        let delivery = Delivery { receipt, receive_count: 1, parent: None, body: Ok(dead_letter) };
        now(supervisor::dead_letters(&self.memory, &self.instance, vec![delivery]).map(Ok::<_, io::Error>))?;
        self.get("Task", &format!("/orders/{id}"))?;
        self.get("Order", &format!("/orders/{id}/document"))?;
        self.get("OrderList", "/orders?state=Error&since=2026-11-20T17:00:00Z&limit=1")?;
        let command = json!({"By": "ann", "Reason": "payment is back"});
        self.post("Queued", &format!("/orders/{id}/resubmit"), "OperatorCommand", &command)?;
        let settle = json!({
            "Step": "charge-payment",
            "Outcome": "Done",
            "Output": {"Receipt": "by hand, 4711"},
            "By": "ann",
            "Reason": "charged at the bank",
        });
        self.post("", &format!("/orders/{id}/settle"), "Settle", &settle)?;
        let note = json!({"By": "ann", "Reason": "asked the bank, ticket 4711", "Take": true});
        self.post("", &format!("/orders/{id}/note"), "Note", &note)
    }

    /// A job is planned and started; another one is cancelled.
    fn jobs(&mut self) -> io::Result<()> {
        let plan = json!({
            "By": "ann",
            "Reason": "payment is back",
            "Selector": {"ReasonCode": "exhausted", "Step": "charge-payment"},
            "Canary": 5,
            "RatePerSecond": 20,
        });
        let author = json!({"By": "ann", "Reason": "payment is back"});
        for (command, answer) in [("start", "startJob"), ("cancel", "cancelJob")] {
            self.post("Job", "/bulk", "JobPlan", &plan)?;
            let id = self.examples["Job"]["JobID"].as_str().unwrap_or_default().to_owned();
            self.post(answer, &format!("/bulk/{id}/{command}"), "", &author)?;
        }
        self.get("JobList", "/bulk?limit=1")
    }

    /// What operators look at.
    fn seen(&mut self) -> io::Result<()> {
        self.waits("inventory", OutageReason::Rejections, "")?;
        self.waits("payment", OutageReason::Misconfigured, "HTTP 401")?;
        let right = json!({"By": "ann", "Reason": "the sale is over"});
        self.post("Service", "/services/inventory/accept-rejections", "", &right)?;
        now(supervisor::alerts(&self.memory, &[]))?;
        let (name, at) = ("renewals".into(), self.memory.now());
        let posted = Posted { due_at: at, order_id: OrderId::from_idempotency_key("schedule/renewals", "1"), at };
        let record = ScheduleRecord::next(None, &name, at, None, vec![Ok(posted)]);
        now(self.memory.put(Seen::nothing(at), &record))?;
        let span = Span { at: Grain::Hour.of(self.memory.now()), tally: self.tally.clone() };
        let (states, total) = (Some(self.states), self.tally.clone());
        self.memory.counts(Numbers { since: Some(span.at), states, oldest: None, spans: vec![span], total });
        for (name, path) in [
            ("AlertList", "/alerts"),
            ("DeadLetterList", "/dead-letters"),
            ("Health", "/health"),
            ("LeaseList", "/leases"),
            ("Numbers", "/numbers"),
            ("Overview", "/overview"),
            ("ScheduleList", "/schedules"),
            ("ServiceList", "/services"),
            ("getMetrics", "/metrics"),
        ] {
            self.get(name, path)?;
        }
        Ok(())
    }

    /// Posts an order, and stores it with its first claims.
    fn order(&mut self, key: &str, document: &Value) -> io::Result<OrderId> {
        let request = http::Request::post("/orders").header("Idempotency-Key", key);
        let answer = self.ask(request, &document.to_string())?;
        self.examples.insert("Accepted".to_owned(), answer);
        let order = self.memory.submitted().pop().ok_or_else(|| io::Error::other("no order is queued"))?;
        let id = order.order_id;
        let begun = now(begin(&self.memory, &self.instance, order))?;
        now(follow_up(&self.memory, &self.instance, begun, false))?;
        let task = self.memory.stored(id);
        self.states.moved(None, task.process_state);
        self.tally.count(None, &task);
        Ok(id)
    }

    /// The answer of an agent to the step in flight.
    fn reply(&mut self, order_id: OrderId, outcome: Outcome) -> io::Result<()> {
        let task = self.memory.stored(order_id);
        let step = task.steps.iter().find(|step| step.process_state == StepState::Processing);
        let step = step.ok_or_else(|| io::Error::other("no step is in flight"))?;
        let (step, direction, attempt) = (step.name.clone(), step.direction, step.attempt);
        let call_ms = Some(12);
        let reply = Reply { order_id, step, direction, attempt, outcome, hops: 0, may_run_until: None, call_ms };
        self.apply(order_id, Event::Reply { reply: &reply, redelivered: false })
    }

    /// Applies what the API queued last.
    fn schedule(&mut self) -> io::Result<()> {
        match self.memory.scheduled().last() {
            Some(SchedulerMessage::Command(command)) => {
                self.apply(command.order_id, Event::Command { command, redelivered: false })
            }
            Some(SchedulerMessage::Reply(reply)) => {
                self.apply(reply.order_id, Event::Reply { reply, redelivered: false })
            }
            Some(SchedulerMessage::Wake(_) | SchedulerMessage::Child(_)) | None => {
                Err(io::Error::other("nothing is queued"))
            }
        }
    }

    fn apply(&mut self, id: OrderId, event: Event<'_>) -> io::Result<()> {
        let before = self.memory.stored(id);
        now(advance(&self.memory, &self.instance, id, event))?;
        self.count(&before);
        Ok(())
    }

    /// Counts what happened to a task since it looked like this.
    fn count(&mut self, before: &Task) {
        let after = self.memory.stored(before.order_id);
        self.states.moved(Some(before.process_state), after.process_state);
        self.tally.count(Some(before), &after);
    }

    /// From now on, the requests to a service wait for this reason.
    fn waits(&self, service: &str, reason: OutageReason, problem: &str) -> io::Result<()> {
        let since = self.memory.now();
        let health = ServiceHealth {
            service: service.into(),
            version: 1,
            era: 1,
            state: Breaker::Open,
            failures_in_a_row: 5,
            until: since.plus_ms(1_000),
            backoff: Backoff::new(BackoffPolicy { slot_time_ms: 1_000, ceiling: 6, stay_at_ceiling: true }),
            since,
            release: None,
            outage: Some(Outage { reason, problem: problem.into(), since }),
            unsent: None,
            rejections: Rejections::default(),
            pace: None,
            evidence: Evidence::default(),
        };
        now(self.memory.put(Seen::nothing(since), &health))?;
        Ok(())
    }

    /// Reads, and keeps the answer under this name.
    fn get(&mut self, name: &str, path: &str) -> io::Result<()> {
        let mut answer = self.ask(http::Request::get(path), "")?;
        if let Some(points) = answer.get_mut("Points").and_then(Value::as_array_mut) {
            points.drain(..points.len().saturating_sub(POINTS_SHOWN));
        }
        self.examples.insert(name.to_owned(), answer);
        Ok(())
    }

    /// Posts a body, and keeps both under these names, if they have one.
    fn post(&mut self, name: &str, path: &str, body_name: &str, body: &Value) -> io::Result<()> {
        let answer = self.ask(http::Request::post(path), &body.to_string())?;
        for (name, example) in [(name, answer), (body_name, json!([body]))] {
            match self.examples.get_mut(name) {
                Some(Value::Array(bodies)) if !bodies.contains(body) => bodies.push(body.clone()),
                _ if name.is_empty() => {}
                _ => drop(self.examples.insert(name.to_owned(), example)),
            }
        }
        Ok(())
    }

    /// The answer as JSON, or as text: its first lines.
    fn ask(&self, request: http::request::Builder, body: &str) -> io::Result<Value> {
        let request = request.body(Bytes::from(body.to_owned())).map_err(io::Error::other)?;
        let asked = format!("{} {}", request.method(), request.uri());
        // Who posts an order may not approve it.
        let caller = Caller::unrestricted(if request.headers().is_empty() { "ann" } else { "shop" });
        let answer = handle(&self.memory, &self.config, &caller, request);
        let answer = now(answer.map(Ok::<_, io::Error>))?;
        let text = String::from_utf8_lossy(answer.body());
        if !answer.status().is_success() {
            return Err(io::Error::other(format!("{asked}: {text}")));
        }
        Ok(serde_json::from_slice(answer.body())
            .unwrap_or_else(|_| text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>().into()))
    }
}

/// The result of work on ports in memory, which never waits.
fn now<T, E: Display>(work: impl Future<Output = Result<T, E>>) -> io::Result<T> {
    let result = work.now_or_never().ok_or_else(|| io::Error::other("the ports in memory wait"))?;
    result.map_err(|error| io::Error::other(error.to_string()))
}
