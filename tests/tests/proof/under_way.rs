//! A payment that is still at work when its caller has given up (rule 16, F61, F62), at every moment of the real handlers.
//!
//! The service has its effect at the end of its work, whatever happened meanwhile, and an undo before that finds nothing
//! to take back. An undo that is sent too early leaves a charge behind.

use std::collections::BTreeMap;

use agent::MemoPolicy;
use domain::id::{CommandId, OrderId};
use domain::message::{Action, Command, SchedulerMessage};
use domain::task::{Direction, ProcessState};
use domain::time::Timestamp;
use memory::faulty::Fault;
use tests::world::{Act, End, World};

/// The work of the payment, in milliseconds: shorter than its time-out of 10 s, about as long, and up to the 30 s within
/// which a call has its effect.
const WORKS_MS: [u64; 6] = [9_999, 10_000, 11_000, 19_000, 25_000, 29_999];
/// The time of an attempt: less than the work, and more.
const WITHIN: [&str; 3] = ["11s", "30s", "10m"];
/// The number of the host's actions before the event.
const MOMENTS: [usize; 6] = [0, 1, 2, 5, 6, 10];

/// What happens while the payment may be at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Shipping, side by side with the payment, declines.
    ShippingDeclines,
    /// An operator cancels the order.
    Cancelled,
    /// The payment's agent dies before its next message.
    AgentDies,
    /// The payment's agent dies after its next message.
    AgentDiesAfter,
    /// The payment's requests are sent twice.
    SentTwice,
}

const EVENTS: [Event; 5] =
    [Event::ShippingDeclines, Event::Cancelled, Event::AgentDies, Event::AgentDiesAfter, Event::SentTwice];

/// One interleaving.
#[derive(Debug, Clone, Copy)]
struct Case {
    work_ms: u64,
    within: &'static str,
    has_memo: bool,
    event: Event,
    moment: usize,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        WORKS_MS.into_iter().flat_map(|work_ms| {
            WITHIN.into_iter().flat_map(move |within| {
                [false, true].into_iter().flat_map(move |has_memo| {
                    EVENTS.into_iter().flat_map(move |event| {
                        MOMENTS.into_iter().map(move |moment| Self { work_ms, within, has_memo, event, moment })
                    })
                })
            })
        })
    }

    fn play(self) -> ProcessState {
        let step = |name, agent| {
            let within = self.within;
            format!("[[step]]\nname = {name:?}\nagent = {agent:?}\ncomplete_within = {within:?}\nmax_failures = 9\n")
        };
        let steps = [step("charge", "payment"), step("ship", "shipping")].concat();
        let mut world = World::with(&format!("name = \"order\"\nversion = 1\n{steps}"));
        world.policy.memo = self.has_memo.then(MemoPolicy::default);
        world.remote.always("charge", Act::Works(self.work_ms));
        if self.event == Event::ShippingDeclines {
            world.remote.declines("ship", Direction::Forward);
        }
        let order_id = world.stored();
        let mut actions = 0;
        for _ in 0..12 {
            for actor in ["scheduler", "payment", "shipping", "supervisor"] {
                if actions == self.moment {
                    self.happen(&world, order_id);
                }
                self.act(&world, actor, actions);
                actions += 1;
            }
            world.memory.advance(1_000);
        }
        world.to_the_end();
        let state = world.state(order_id);
        let end = match self.event {
            // Nobody says no: the charge goes through, and the order with it.
            Event::AgentDies | Event::AgentDiesAfter => End::Processed,
            Event::ShippingDeclines => End::Compensated,
            Event::Cancelled | Event::SentTwice if state == ProcessState::Processed => End::Processed,
            Event::Cancelled | Event::SentTwice => End::Compensated,
        };
        world.ends(order_id, end);
        state
    }

    fn act(self, world: &World, actor: &str, actions: usize) {
        match actor {
            "scheduler" => _ = world.schedule(),
            // Its answer decides, so it comes at each moment once.
            "shipping" if self.event == Event::ShippingDeclines && actions < self.moment => {}
            "supervisor" => _ = world.supervise(),
            agent => _ = world.serve(agent),
        }
    }

    fn happen(self, world: &World, order_id: OrderId) {
        match self.event {
            Event::ShippingDeclines => {}
            Event::Cancelled => {
                let (action, by, reason) = (Action::Cancel, "ada".into(), "a test".into());
                let command = Command {
                    order_id,
                    action,
                    by,
                    reason,
                    command_id: CommandId::generate(Timestamp::default(), [0; 2]),
                    version: None,
                    bulk: None,
                    settle: None,
                    take: None,
                    step: None,
                };
                world.tell_scheduler(SchedulerMessage::Command(command));
            }
            Event::AgentDies | Event::AgentDiesAfter => {
                let fault = if self.event == Event::AgentDies { Fault::DiesBefore } else { Fault::DiesAfter };
                world.ports.next("queues.to_scheduler", fault);
                world.serve("payment");
                // Where it had nothing to send, it did not die.
                world.ports.has_struck();
            }
            Event::SentTwice => {
                for request in world.lose_requests("payment") {
                    world.ask_agent("payment", request.clone());
                    world.ask_agent("payment", request);
                }
            }
        }
    }
}

#[test]
fn f61_a_payment_that_outlives_its_caller_ends_with_one_charge_or_with_none() {
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for case in Case::all() {
        let state = std::panic::catch_unwind(|| case.play()).unwrap_or_else(|_| panic!("{case:?}"));
        *ends.entry(state.name()).or_default() += 1;
    }
    assert!(ends.values().sum::<usize>() >= 500, "{ends:?}");
    // The cases must not all come to the same.
    assert!(ends["Processed"] >= 100 && ends["Compensated"] >= 100, "{ends:?}");
}
