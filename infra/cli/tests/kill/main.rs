//! The kill test: `kill -9` at any moment loses no order, and does none of its steps twice. A stop in order repeats no
//! call ([`stop`]).
//!
//! It stands here and not in the package `tests`, because cargo builds a program for the integration tests of its own
//! package only (`CARGO_BIN_EXE_stepwarden`); anywhere else it could meet an old one, or none.

#![allow(clippy::disallowed_methods, reason = "a test")]

mod audit;
mod customer;
mod orders;
mod seed;
mod stop;
mod trap;
mod victim;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use local::stand_ins::{KEYS_UNLIMITED, StandIns};
use tokio::sync::watch;

use customer::{Customer, Run};
use orders::Planned;
use trap::Trap;
use victim::Victim;

/// Orders that have to end `Processed`, unless `STEPWARDEN_ORDERS` says more. A tenth as many have to end `Compensated`.
const PROCESSED: usize = 300;
const CONNECTIONS: usize = 16;
/// Every other one falls in the moment of an answer, the others at any moment.
const KILLS: usize = 20;
/// Answers before a kill: fewer than there are orders for each life of the process.
const ANSWERS_MAX: u64 = 12;
/// The longest life of the process before a kill, in milliseconds, its start included.
const LIFE_MS_MAX: u64 = 400;
/// The longest that a customer waits before the next order, in milliseconds.
const PAUSE_MS_MAX: u64 = 100;
/// After this the run has failed, in seconds.
const PATIENCE_S: u64 = 1_200;

/// Place of an order in the plan, and the id that it was accepted under.
type Accepted = (usize, String);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_at_any_moment_loses_no_order_and_does_no_step_twice() {
    let (seed, started) = (seed::seed(), Instant::now());
    println!("STEPWARDEN_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let stand_ins = StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap();
    let processed = std::env::var("STEPWARDEN_ORDERS").map_or(PROCESSED, |orders| orders.parse().expect("a number"));
    let planned: Arc<[Planned]> = orders::plan(processed, (processed / 10).max(1), &mut rng).into();
    let trap = Arc::new(Trap::around(Victim::start(directory.path(), |service| stand_ins.url_of(service), &mut rng)));
    let ends_at = started + Duration::from_secs(PATIENCE_S);
    let run = Run { url: trap.url().into(), trap: trap.clone(), seed, ends_at };

    let (lives, life) = watch::channel(0);
    let posting = (0..CONNECTIONS).map(|first| {
        let customer = Customer::new(run.clone());
        tokio::spawn(post(customer, planned.clone(), first, life.clone(), Rng::with_seed(rng.u64(..u64::MAX))))
    });
    let posting: Vec<_> = posting.collect();
    let mut under_way = 0;
    for kill in 1..=KILLS {
        let (answers, life_ms) = match kill % 2 {
            0 => (1 + rng.u64(..ANSWERS_MAX), LIFE_MS_MAX),
            _ => (0, rng.u64(..LIFE_MS_MAX)),
        };
        let look = || under_way += orders::under_way(&stand_ins.effects());
        trap.kill_and_start_again(answers, life_ms, look).await;
        lives.send_replace(kill);
    }

    let (mut accepted, mut unanswered) = (Vec::new(), 0);
    for customer in posting {
        let (ids, silences) = customer.await.unwrap();
        accepted.extend(ids);
        unanswered += silences;
    }
    assert_eq!(accepted.len(), planned.len());
    let mut customer = Customer::new(run.clone());
    let mut ended = BTreeMap::new();
    for (place, order_id) in &accepted {
        ended.insert(order_id.clone(), customer.follow(&planned[*place], order_id).await);
    }
    trap.expect_alive();
    let entries = audit::compare(&directory.path().join("data"), &ended)
        .unwrap_or_else(|wrong| panic!("{}", run.failure(&wrong)));
    check_effects(&run, &planned, &accepted, &stand_ins);
    let (orders, took) = (accepted.len(), started.elapsed().as_secs_f32());
    println!(
        "{orders} orders; {KILLS} kills met {under_way} orders under way; {unanswered} posts without answer; \
         {entries} entries of the audit stream; {took:.1} s"
    );
    assert!(under_way > 0, "{}", run.failure("no kill fell into an order, so this run has shown nothing"));
}

/// Posts every sixteenth order on one connection, and gives what was accepted and how many posts were not answered.
async fn post(
    mut customer: Customer,
    planned: Arc<[Planned]>,
    first: usize,
    mut life: watch::Receiver<usize>,
    mut rng: Rng,
) -> (Vec<Accepted>, usize) {
    let mut accepted = Vec::new();
    for (place, order) in planned.iter().enumerate().skip(first).step_by(CONNECTIONS) {
        // Each life of the process gets its share, so that every kill finds orders under way.
        life.wait_for(|&life| life >= place * KILLS / planned.len()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(rng.u64(..PAUSE_MS_MAX))).await;
        accepted.push((place, customer.post(order).await));
    }
    (accepted, customer.unanswered)
}

/// Every step of every order has happened once, and nothing else has.
fn check_effects(run: &Run, planned: &[Planned], accepted: &[Accepted], stand_ins: &StandIns) {
    let effects = stand_ins.effects();
    for (place, order_id) in accepted {
        let order = &planned[*place];
        if let Some(wrong) = order.wrong_effects(order_id, &effects) {
            panic!("{}", run.failure(&format!("{} ({order_id}): {wrong}", order.key)));
        }
    }
    let (in_all, expected) = (orders::effects_in_all(&effects), orders::expected_in_all(planned));
    assert_eq!(in_all, expected, "{}", run.failure("effects in all: some belong to orders that nobody posted"));
}
