//! One task of a handler, and its scene.

use domain::id::{CommandId, OrderId};
use domain::message::{Action, Command, SchedulerMessage};
use domain::order::Order;
use domain::time::Timestamp;
use memory::Fault as QueueFault;
use memory::faulty::Fault;
use tests::conformance::samples;
use tests::world::{End, World};

/// The reply channel of the orders that name one.
pub(crate) const CHANNEL: &str = "shop-replies";
/// The number of repeats after which a request counts as refused.
const ASKED_MAX: usize = 5;

/// One task of a handler.
pub(crate) struct Node {
    pub(crate) handler: &'static str,
    /// The name of the task.
    pub(crate) what: &'static str,
    /// The world just before the handler runs.
    pub(crate) scene: fn() -> Scene,
}

/// A world just before a handler runs, and the rest of the scene.
pub(crate) struct Scene {
    pub(crate) world: World,
    act: Act,
    finish: Box<dyn Fn(&World)>,
    ends: Vec<(OrderId, End)>,
    check: Box<dyn Fn(&World)>,
}

/// The trigger of the handler.
enum Act {
    /// A queue, which delivers the message again until it is handled.
    Fed(Box<dyn Fn(&World)>),
    /// A caller, which repeats the call after a bad answer (`false`).
    Asked(Box<dyn Fn(&World) -> bool>),
}

/// The fault of a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Play {
    /// No fault.
    Well,
    /// This fault at the call after this number of other calls.
    Struck(usize, Fault),
    /// No fault, and the request is repeated at the end.
    Twice,
}

impl Scene {
    /// The handler takes a batch from its queue.
    pub(crate) fn fed<T>(world: World, run: impl Fn(&World) -> T + 'static) -> Self {
        Self::new(world, Act::Fed(Box::new(move |world| drop(run(world)))))
    }

    /// A caller calls the handler. The result is whether the answer was good.
    pub(crate) fn asked(world: World, ask: impl Fn(&World) -> bool + 'static) -> Self {
        Self::new(world, Act::Asked(Box::new(ask)))
    }

    fn new(world: World, act: Act) -> Self {
        Self { world, act, finish: Box::new(|_| {}), ends: Vec::new(), check: Box::new(|_| {}) }
    }

    /// At the end this order has this state.
    pub(crate) fn ends(mut self, order_id: OrderId, end: End) -> Self {
        self.ends.push((order_id, end));
        self
    }

    /// Steps between the handler's run and the rest of the scene.
    pub(crate) fn then(mut self, finish: impl Fn(&World) + 'static) -> Self {
        self.finish = Box::new(finish);
        self
    }

    /// A further check at the end.
    pub(crate) fn checked(mut self, check: impl Fn(&World) + 'static) -> Self {
        self.check = Box::new(check);
        self
    }
}

impl Node {
    /// Runs the scene to its end, and returns the handler's calls in its first run.
    pub(crate) fn play(&self, play: Play) -> Vec<&'static str> {
        let Scene { world, act, finish, ends, check } = (self.scene)();
        let before = world.ports.calls().len();
        if let Play::Struck(call, fault) = play {
            world.ports.after_calls(call, fault);
        }
        match &act {
            Act::Fed(run) => {
                if let Play::Twice = play {
                    world.memory.fails_next("source.delete", QueueFault::NotDone);
                }
                run(&world);
            }
            Act::Asked(ask) => {
                let asked = (1..=ASKED_MAX).find(|_| ask(&world));
                let may_be_asked_again = matches!(play, Play::Struck(..));
                assert!(asked.is_some_and(|times| times == 1 || may_be_asked_again), "no good answer: {asked:?}");
            }
        }
        let calls = world.ports.calls()[before..].to_vec();
        assert!(world.ports.has_struck(), "the fault was never met");
        if let Play::Twice = play {
            match &act {
                Act::Fed(run) => {
                    world.until_redelivery();
                    run(&world);
                }
                Act::Asked(ask) => assert!(ask(&world), "no good answer to the second time"),
            }
        }
        finish(&world);
        world.end_all(&ends);
        check(&world);
        calls
    }
}

/// A world with a registered reply channel and one index shard.
pub(crate) fn world() -> World {
    with(tests::world::PATIENT)
}

/// The same, with a supervisor that counts a wake as lost only late. So a failed message is delivered again first.
pub(crate) fn unhurried() -> World {
    with(&format!("{}\n[supervision]\nwake_lost_after = \"1h\"\n", tests::world::PATIENT))
}

/// The same, with another workflow.
pub(crate) fn with(workflow: &str) -> World {
    let mut world = World::with(workflow);
    world.memory.register_channel(CHANNEL);
    world.shards = 1;
    world
}

/// An order that names the reply channel.
pub(crate) fn order() -> Order {
    Order { reply_channel: Some(CHANNEL.into()), ..samples::order(1) }
}

/// A stored order without a claim, with its wake on the queue.
pub(crate) fn stored(world: &World) -> OrderId {
    world.stored_order(order())
}

/// An order whose first step is claimed, with its request on the queue.
pub(crate) fn claimed(world: &World) -> OrderId {
    let order_id = world.post_order(order());
    world.submit();
    order_id
}

/// A command of an operator who has just read the order.
pub(crate) fn command(world: &World, order_id: OrderId, action: Action) -> SchedulerMessage {
    let version = world.task(order_id).version;
    SchedulerMessage::Command(Command {
        order_id,
        action,
        by: "ada".into(),
        reason: "a test".into(),
        command_id: CommandId::generate(Timestamp::default(), [version, action as u64]),
        version: Some(version),
        bulk: None,
        settle: None,
        take: None,
        step: None,
    })
}

/// Runs agent and scheduler for this number of steps.
pub(crate) fn steps_done(world: &World, agents: &[&str]) {
    for agent in agents {
        world.serve(agent);
        world.schedule();
    }
}
