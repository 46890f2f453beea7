//! Instances of the agent, and a queue that feeds them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use domain::batch::Failures;
use domain::message::{Delivery, Request};
use domain::ports::Environment;
use domain::time::Timestamp;

use super::script::Scripted;
use super::{START, World, delivery};
use crate::{Agent, handle};

pub(crate) type MakeScripted<'w> = Box<dyn Fn() -> Scripted<'w> + Send + Sync + 'w>;

/// More than any batch of a test needs.
const POLLS_MAX: u32 = 10_000;

/// One instance of the agent. All instances of a test share its ports.
pub(crate) struct Instance<'w> {
    pub(super) world: &'w World,
    pub(crate) agent: Agent<MakeScripted<'w>>,
}

impl Instance<'_> {
    /// Handles a batch and returns the ids of the messages that are to be delivered again.
    pub(crate) fn handle(&self, batch: Vec<Delivery<Request>>) -> Vec<String> {
        let Failures(failed) = drive(handle(&self.world.ports, &self.agent, batch));
        failed.iter().map(|failure| failure.receipt.message_id.to_string()).collect()
    }

    /// Handles one request in its first delivery; whether it is to be delivered again.
    pub(crate) fn handle_one(&self, request: Request) -> bool {
        !self.handle(vec![delivery("m", request)]).is_empty()
    }
}

/// The agent's queue, and instances that take their turns at it.
pub(crate) struct Fleet<'w> {
    world: &'w World,
    instances: Vec<Instance<'w>>,
    turn: usize,
    /// By the time at which it is visible and its number.
    queue: BTreeMap<(Timestamp, usize), (u32, Request)>,
    sent: usize,
}

impl<'w> Fleet<'w> {
    pub(crate) fn new(world: &'w World, instances: usize) -> Self {
        let instances = (0..instances).map(|_| world.instance()).collect();
        Self { world, instances, turn: 0, queue: BTreeMap::new(), sent: 0 }
    }

    pub(crate) fn send(&mut self, request: Request) {
        self.sent += 1;
        self.queue.insert((self.world.ports.now(), self.sent), (0, request));
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Lets the instances work on what becomes visible until this many milliseconds after the start.
    pub(crate) fn run_until_ms(&mut self, end_ms: u64) {
        let end = START.plus_ms(end_ms);
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((visible_at, number), (receive_count, request)) = entry.remove_entry();
            self.world.pass_ms(self.world.ports.now().ms_until(visible_at));
            let receive_count = receive_count + 1;
            self.turn = (self.turn + 1) % self.instances.len();
            let delivery = Delivery { receive_count, ..delivery("m", request.clone()) };
            if !self.instances[self.turn].handle(vec![delivery]).is_empty() {
                let wait_ms = self.world.last_wait_ms().unwrap_or(0);
                self.queue.insert((self.world.ports.now().plus_ms(wait_ms), number), (receive_count, request));
            }
        }
        self.world.pass_ms(self.world.ports.now().ms_until(end));
    }
}

/// Runs a handler to its end. It must be `Send`, as on Lambda and in the program.
pub(crate) fn drive<T>(handling: impl Future<Output = T> + Send) -> T {
    let mut handling = pin!(handling);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..POLLS_MAX {
        if let Poll::Ready(done) = handling.as_mut().poll(&mut context) {
            return done;
        }
    }
    panic!("it waits for something that will not come")
}
