//! One thing that a handler does, and how it is played.

use domain::id::OrderId;
use domain::message::{Action, Command, SchedulerMessage};
use domain::order::Order;
use memory::Fault as QueueFault;
use memory::faulty::Fault;
use tests::conformance::samples;
use tests::world::{End, World};

/// The reply channel of the orders that name one.
pub(crate) const CHANNEL: &str = "shop-replies";
/// How often whoever asked asks again before it counts as refused.
const ASKED_MAX: usize = 5;

/// One thing that a handler does.
pub(crate) struct Node {
    pub(crate) handler: &'static str,
    /// What it is that it does.
    pub(crate) what: &'static str,
    /// The world at the moment before.
    pub(crate) scene: fn() -> Scene,
}

/// A world at the moment before a handler runs, and how it goes on.
pub(crate) struct Scene {
    pub(crate) world: World,
    act: Act,
    finish: Box<dyn Fn(&World)>,
    ends: Vec<(OrderId, End)>,
    check: Box<dyn Fn(&World)>,
}

/// How the handler is run.
enum Act {
    /// By a queue, which gives it the message again until it is done.
    Fed(Box<dyn Fn(&World)>),
    /// By somebody who asks, and asks again where there is no good answer (`false`).
    Asked(Box<dyn Fn(&World) -> bool>),
}

/// What happens to a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Play {
    /// All goes well.
    Well,
    /// This goes wrong at the call after so many others.
    Struck(usize, Fault),
    /// All goes well, and then what was asked is asked again.
    Twice,
}

impl Scene {
    /// The handler takes a batch off its queue.
    pub(crate) fn fed<T>(world: World, run: impl Fn(&World) -> T + 'static) -> Self {
        Self::new(world, Act::Fed(Box::new(move |world| drop(run(world)))))
    }

    /// Somebody calls the handler; the answer is whether it was a good one.
    pub(crate) fn asked(world: World, ask: impl Fn(&World) -> bool + 'static) -> Self {
        Self::new(world, Act::Asked(Box::new(ask)))
    }

    fn new(world: World, act: Act) -> Self {
        Self { world, act, finish: Box::new(|_| {}), ends: Vec::new(), check: Box::new(|_| {}) }
    }

    /// In the end this order is so.
    pub(crate) fn ends(mut self, order_id: OrderId, end: End) -> Self {
        self.ends.push((order_id, end));
        self
    }

    /// What happens after the handler ran, before all else goes on.
    pub(crate) fn then(mut self, finish: impl Fn(&World) + 'static) -> Self {
        self.finish = Box::new(finish);
        self
    }

    /// What else is so in the end.
    pub(crate) fn checked(mut self, check: impl Fn(&World) + 'static) -> Self {
        self.check = Box::new(check);
        self
    }
}

impl Node {
    /// Plays the scene to its end, and gives the calls that the handler made when it ran for the first time.
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

/// A world whose reply channel is registered, and whose index has one shard.
pub(crate) fn world() -> World {
    with(tests::world::PATIENT)
}

/// The same, with a supervisor that is slow to take a wake for lost, so that a message that failed comes again first.
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

/// An order that is stored, with its wake on the queue.
pub(crate) fn stored(world: &World) -> OrderId {
    let order_id = world.post_order(order());
    world.submit();
    order_id
}

/// An order whose first step is claimed, with its request on the queue.
pub(crate) fn claimed(world: &World) -> OrderId {
    let order_id = stored(world);
    world.schedule();
    order_id
}

/// A command of an operator who has just looked.
pub(crate) fn command(world: &World, order_id: OrderId, action: Action) -> SchedulerMessage {
    let version = Some(world.task(order_id).version);
    SchedulerMessage::Command(Command {
        order_id,
        action,
        by: "ada".into(),
        reason: "a test".into(),
        version,
        bulk: None,
    })
}

/// Has an agent answer and the scheduler hear of it, so many steps long.
pub(crate) fn steps_done(world: &World, agents: &[&str]) {
    for agent in agents {
        world.serve(agent);
        world.schedule();
    }
}
