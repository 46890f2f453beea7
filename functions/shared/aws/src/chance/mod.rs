//! The adapters in worlds of chance: random operations, one after the other, over a network that throttles, breaks,
//! falls silent, and answers 500 to what was done and to what was not. After each operation the truth is read without
//! faults, and the answer of the adapter must fit it.
//!
//! A seed is always the same world. Time is virtual, and no socket is used.

mod queues;
mod store;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use cloud::{Cloud, Course, Fault, Network, Said};
use serde_json::Value;

use crate::clients::Clients;
use crate::environment::Random;
use crate::testing::access;

/// The seeds of the test command.
const SEEDS: u64 = 12;
/// The kinds of faults.
const FAULTS: u64 = 7;

/// The chance of one world.
#[derive(Debug)]
struct Chance {
    random: Random,
    /// Faults, of ten requests.
    faults: u64,
    /// The kind of every other fault, so that some calls meet it until they give up.
    usual: u64,
    is_calm: bool,
}

impl Chance {
    fn new(seed: u64) -> Self {
        let random = Random::of(seed.wrapping_mul(0x5DEE_CE66_D1CE_4E5B));
        let faults = [0, 1, 3, 6][usize::try_from(random.next() % 4).unwrap()];
        let usual = random.next() % FAULTS;
        Self { random, faults, usual, is_calm: false }
    }

    /// A number below `end`.
    fn below(&self, end: u64) -> u64 {
        self.random.next() % end
    }

    /// Whether a fault strikes now.
    fn strikes(&self) -> bool {
        !self.is_calm && self.below(10) < self.faults
    }
}

/// A service that is met by chance.
struct Fickle<S> {
    chance: Chance,
    service: S,
}

/// Carries out a request.
trait Serve: Send + 'static {
    fn serve(&mut self, operation: &str, body: &Value, chance: &Chance) -> Said;
}

impl<S: Serve> Cloud for Fickle<S> {
    fn course(&mut self, _: &str) -> Course {
        let Self { chance, .. } = self;
        if !chance.strikes() {
            return Course::default();
        }
        let fault = if chance.below(2) == 0 { chance.usual } else { chance.below(FAULTS) };
        // The request may have been carried out or not.
        let done = fault.is_multiple_of(2);
        let fault = match fault {
            0 => Fault::Throttled(chance.below(24)),
            1 | 2 => Fault::Error { done },
            3 | 4 => Fault::Broken { done },
            _ => Fault::Silence { done },
        };
        Course { fault: Some(fault), ..Course::default() }
    }

    fn serve(&mut self, operation: &str, body: &Value) -> Said {
        self.service.serve(operation, body, &self.chance)
    }
}

/// A network to a service.
struct World<S>(Network<Fickle<S>>);

impl<S: Serve> World<S> {
    fn new(seed: u64, service: S) -> Self {
        Self(Network::new(Fickle { chance: Chance::new(seed), service }))
    }

    /// The clients of the function, on this network.
    fn clients(&self) -> Clients {
        Clients::over(&access("http://localhost:1"), SharedHttpClient::new(self.0.clone()))
    }

    /// A number below `end`.
    fn below(&self, end: u64) -> u64 {
        self.0.cloud().chance.below(end)
    }

    /// What `look` finds while no fault strikes.
    async fn calm<T>(&self, look: impl Future<Output = T>) -> T {
        self.0.cloud().chance.is_calm = true;
        let found = look.await;
        self.0.cloud().chance.is_calm = false;
        found
    }
}

/// Runs the worlds of these seeds: `STEPWARDEN_SEEDS` of them, or the number of the test command.
async fn run(world: impl AsyncFn(u64)) {
    let seeds = crate::config::environment("STEPWARDEN_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        world(seed).await;
    }
}
