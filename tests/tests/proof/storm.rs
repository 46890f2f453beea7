//! Many orders whose service is down, and people who cannot wait. Time is virtual.

use std::collections::{BTreeMap, BTreeSet};

use agent::{Answer, Call};
use domain::id::{CommandId, OrderId};
use domain::json::Json;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{Action, Command, Outcome, SchedulerMessage};
use domain::ports::Environment;
use domain::task::{ProcessState, StepState, Task, What};
use domain::time::Timestamp;
use tests::conformance::samples;
use tests::simulation::outside::{Deed, Found, Scene, Seen};
use tests::simulation::{aws, engine};
use tests::world::{AGENTS, Act, World};

const ORDERS: u32 = 500;
/// How long the service is down, in milliseconds.
const DOWN_MS: u64 = 10 * 60_000;
/// A call may begin for so long after its attempt is over, in milliseconds.
const LATE_MS: u64 = 1_000;
/// How much longer than a call's effect an undo may take to begin and end, in milliseconds.
const SLACK_MS: u64 = 10_000;

/// The second service is down. What it does needs no undo.
const WORKFLOW: &str = r#"
name = "order"
version = 1
[[step]]
name = "reserve"
agent = "inventory"
complete_within = "1h"
[[step]]
name = "charge"
agent = "payment"
after = ["reserve"]
complete_within = "1h"
undo = "none"
"#;

/// The storm, and what came of it so far.
struct Storm {
    world: World,
    orders: Vec<OrderId>,
    /// Since when no call is wanted, by order, step and attempt.
    over: BTreeMap<(OrderId, String, u32), Timestamp>,
    versions: BTreeMap<OrderId, u64>,
    cancelled: BTreeMap<OrderId, Timestamp>,
    compensated: BTreeMap<OrderId, Timestamp>,
    erased: BTreeMap<OrderId, Timestamp>,
}

impl Storm {
    fn begins() -> Self {
        let world = World::with(WORKFLOW);
        let orders = (0..ORDERS).map(|n| {
            let document = format!("{{\"Name\":\"person-{n}\"}}");
            world.post_order(samples::order_with(n, &document))
        });
        let orders = orders.collect();
        let empty = BTreeMap::new;
        let (over, compensated) = (BTreeMap::new(), empty());
        Self { world, orders, over, versions: BTreeMap::new(), cancelled: empty(), compensated, erased: empty() }
    }

    fn now(&self) -> Timestamp {
        self.world.memory.now()
    }

    /// A second passes.
    fn passes(&mut self) {
        self.world.memory.advance(1_000);
        if self.now().epoch_ms() % 10_000 == 0 {
            self.world.supervise();
        }
        self.world.run();
        for task in self.world.tasks() {
            if self.versions.insert(task.order_id, task.version) != Some(task.version) {
                self.note(&task);
            }
        }
    }

    fn note(&mut self, task: &Task) {
        let now = self.now();
        for step in &task.steps {
            let is_wanted = step.process_state == StepState::Processing && !step.is_awaited() && task.paused.is_none();
            for attempt in 1..=step.attempt {
                if attempt < step.attempt || !is_wanted {
                    self.over.entry((task.order_id, step.name.to_string(), attempt)).or_insert(now);
                }
            }
        }
        if task.process_state == ProcessState::Compensated {
            self.compensated.entry(task.order_id).or_insert(now);
        }
        if task.erased_at.is_some() {
            self.erased.entry(task.order_id).or_insert(now);
        }
    }

    fn commands(&self, order_id: OrderId, action: Action) {
        self.world.tell_scheduler(SchedulerMessage::Command(Command {
            order_id,
            action,
            by: "ann".into(),
            reason: "it takes too long".into(),
            command_id: CommandId::generate(Timestamp::default(), [0; 2]),
            version: None,
            bulk: None,
            settle: None,
            take: None,
            step: None,
        }));
    }

    /// The result of the second step comes by another way, as its service tells it later.
    fn is_told(&self, order_id: OrderId) {
        let record = self.world.ports.record();
        let mut requests = record.to_agents.iter().rev().map(|(_, request)| request);
        let request = requests.find(|request| request.order_id == order_id && &*request.step == "charge");
        let outcome = Outcome::Done(Json::of(&"paid"));
        self.world.tell_scheduler(SchedulerMessage::Reply(request.expect("a request").reply(outcome)));
    }
}

#[test]
fn no_call_is_made_for_what_is_over_in_an_outage_and_what_was_cancelled_is_undone_soon() {
    let mut storm = Storm::begins();
    storm.world.remote.always("charge", Act::Answers(Answer::retry("down")));
    let mut told = BTreeSet::new();
    for second in 0..DOWN_MS / 1_000 {
        let of_second = usize::try_from(second).unwrap() - 60.min(usize::try_from(second).unwrap());
        // From the second minute on: half of them are cancelled one by one, and each tenth gets its result.
        if second >= 60
            && let Some(&order_id) = storm.orders.get(of_second)
        {
            if of_second.is_multiple_of(2) {
                storm.cancelled.insert(order_id, storm.now());
                storm.commands(order_id, Action::Cancel);
            } else if of_second % 10 == 1 {
                told.insert(order_id);
                storm.is_told(order_id);
            }
        }
        if second.is_multiple_of(30) {
            let ended: Vec<OrderId> = storm.compensated.keys().copied().collect();
            for order_id in ended.into_iter().filter(|order_id| !storm.erased.contains_key(order_id)).take(10) {
                storm.commands(order_id, Action::Erase);
            }
        }
        storm.passes();
    }
    storm.world.remote.recovers("charge");
    for _ in 0..600 {
        storm.passes();
    }
    let calls = storm.world.remote.called();
    let late = calls.iter().filter(|called| {
        let over = storm.over.get(&(called.order_id, called.step.clone(), called.attempt));
        over.is_some_and(|over| over.plus_ms(LATE_MS) < called.at)
    });
    assert_eq!(late.count(), 0, "of {} calls", calls.len());
    let shown = calls.iter().filter(|called| {
        storm.erased.get(&called.order_id).is_some_and(|at| *at <= called.at)
            && called.document.text().contains("person")
    });
    assert_eq!(shown.count(), 0, "of erased persons");
    assert!(storm.erased.len() > 50, "{}", storm.erased.len());
    let last_ms = |order_id: &OrderId| {
        let own = calls.iter().filter(|called| called.order_id == *order_id && called.step == "charge");
        own.map(|called| called.at).max()
    };
    let undone_ms = storm.cancelled.iter().map(|(order_id, at)| {
        let since = last_ms(order_id).into_iter().chain([*at]).max().unwrap_or(*at);
        let undone = storm.compensated.get(order_id).unwrap_or_else(|| panic!("{order_id} was never undone"));
        since.ms_until(*undone)
    });
    let slowest_ms = undone_ms.max().unwrap_or(0);
    assert!(slowest_ms <= SETTLES_WITHIN_MS_DEFAULT + SLACK_MS, "{slowest_ms} ms");
    for order_id in &storm.orders {
        let state = storm.world.state(*order_id);
        assert_eq!(state == ProcessState::Compensated, storm.cancelled.contains_key(order_id), "{state:?}");
        assert!(state.is_final(), "{state:?}");
    }
    assert_eq!(told.len(), 50);
}

/// The same storm, of so many orders, for the real adapters.
fn scene(orders: usize) -> Scene {
    let posts = (0..orders).map(|n| (0, format!("{{\"Name\":\"person-{n}\",\"CorrelationID\":\"KEY\"}}"))).collect();
    let acts = (0..orders).filter_map(|n| {
        let at_ms = 60_000 + 1_000 * i64::try_from(n).ok()?;
        let deed = if n.is_multiple_of(2) { Deed::Command("cancel") } else { Deed::IsTold("charge") };
        (n.is_multiple_of(2) || n % 10 == 1).then_some((at_ms, n, deed))
    });
    // By then what was cancelled is undone.
    let erased = (0..orders).step_by(20).filter_map(|n| {
        let at_ms = 60_000 + 60_000 + 1_000 * i64::try_from(n).ok()?;
        Some((at_ms, n, Deed::Command("erase")))
    });
    let is_down = |call: &Call<'_>, now_ms: i64| {
        (call.step == "charge" && now_ms < DOWN_MS.cast_signed()).then(|| Answer::retry("down"))
    };
    let workflow = WORKFLOW.replace(AGENTS[0], "stock").replace(AGENTS[1], "money");
    let acts = acts.chain(erased).collect();
    Scene { workflow: workflow.leak(), posts, answer: is_down, refuses: |_, _| false, acts }
}

/// No call for what is over, and what was cancelled is undone soon.
fn check((seen, violations): (Seen, Vec<Found>), orders: usize) {
    assert_eq!(violations, Vec::new());
    assert_eq!(seen.tasks.len(), orders);
    let mut slowest_ms = 0;
    for (n, task) in seen.tasks.iter().enumerate() {
        let at = |what: &dyn Fn(&What) -> bool| task.history.iter().find(|line| what(&line.what)).map(|line| line.at);
        let cancelled = at(&|what| *what == What::Cancelled);
        let told =
            at(&|what| matches!(what, What::Processed(of) if of.name(&task.steps) == "charge")).filter(|_| n % 10 == 1);
        let state = if n.is_multiple_of(2) { ProcessState::Compensated } else { ProcessState::Processed };
        assert_eq!((task.process_state, cancelled.is_some()), (state, n.is_multiple_of(2)), "{task:#?}");
        let own = || seen.heard.iter().filter(|heard| heard.order_id == task.order_id);
        let charged = || own().filter(|heard| *heard.step == *"charge").map(|heard| heard.at);
        if let Some(over) = cancelled.or(told) {
            let late: Vec<Timestamp> = charged().filter(|at| over.plus_ms(LATE_MS) < *at).collect();
            assert_eq!(late, Vec::new(), "over at {over}");
        }
        if let Some(erased) = task.erased_at {
            let shown = own().filter(|heard| erased <= heard.at && heard.document.text().contains("person"));
            assert_eq!(shown.count(), 0, "of an erased person");
        }
        if let Some(cancelled) = cancelled {
            let undone = at(&|what| *what == What::Entered(ProcessState::Compensated));
            let since = charged().chain([cancelled]).max().unwrap_or(cancelled);
            slowest_ms = slowest_ms.max(undone.map_or(u64::MAX, |undone| since.ms_until(undone)));
        }
    }
    assert!(seen.tasks.iter().any(|task| task.erased_at.is_some()), "nobody was erased");
    assert!(slowest_ms <= SETTLES_WITHIN_MS_DEFAULT + SLACK_MS, "{slowest_ms} ms");
}

#[test]
fn a_storm_is_weathered_on_the_engine() {
    const ORDERS: usize = 200;
    check(engine::follow(scene(ORDERS)), ORDERS);
}

#[test]
fn a_storm_is_weathered_on_the_adapters_of_aws() {
    const ORDERS: usize = 60;
    check(aws::follow(scene(ORDERS), 3), ORDERS);
}
