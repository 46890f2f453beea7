//! What the tests of this crate share: ports in memory on a clock that only a test moves, and an await before and after
//! each effect, at which a test can kill the caller.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use domain::bulk::Job;
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::limits::SHARDS;
use domain::message::SchedulerMessage;
use domain::order::Order;
use domain::ports::{Inserted, PortError, Records, Source};
use domain::task::Watch;
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::faulty::Faulty;
use memory::{Memory, sample};

pub(crate) fn workflows() -> Workflows {
    workflows_with("")
}

/// With these lines before the steps.
pub(crate) fn workflows_with(lines: &str) -> Workflows {
    let step = |name: &str, after: &str| {
        format!(
            "[[step]]\nname = {name:?}\nagent = \"any\"\nafter = {after}\ncomplete_within = \"10s\"\nmax_failures = 3\non_rejected = \"hold\"\non_exhausted = \"hold\"\n"
        )
    };
    let text = format!("name = \"w\"\nversion = 1\n{lines}{}{}", step("first", "[]"), step("second", "[\"first\"]"));
    Workflows::parse(&[&text], "w", &["any"]).unwrap()
}

pub(crate) fn instance(name: &str) -> Instance {
    Instance { name: name.into(), catalogue: Catalogue::new(workflows()), shards: SHARDS }
}

pub(crate) fn order(n: usize, at: Timestamp) -> Order {
    sample::order("shop", &n.to_string(), "{\"Total\":1}", at)
}

/// Ports whose index is asked shard by shard.
pub(crate) fn ports() -> Faulty {
    let ports = ports_with_a_small_index();
    ports.on_answers("store.watches", |_, all: &mut Option<Vec<(Watch, Timestamp)>>| *all = None);
    ports
}

/// Ports whose index is read as a whole. A message to an order is refused unless a stored job lists the order.
pub(crate) fn ports_with_a_small_index() -> Faulty {
    let memory = Memory::new(Timestamp::from_epoch_ms(1_000_000_000_000), 0);
    ["team", "duty", "bus"].into_iter().for_each(|channel| memory.register_channel(channel));
    // A test needs few orders for several pages.
    memory.has_short_pages(3);
    let ports = Faulty::new(memory.clone());
    ports.take_turns();
    let sent = memory.clone();
    ports.on_answers("queues.to_scheduler", move |_, (): &mut ()| {
        if let Some(SchedulerMessage::Command(command)) = sent.scheduled().last() {
            assert!(is_listed(&sent, command.order_id), "a command is sent that no stored job lists");
        }
    });
    ports.on_answers("queues.submit", move |_, _: &mut Inserted| {
        let again_of = memory.submitted().last().unwrap().again_of.clone().unwrap();
        assert!(is_listed(&memory, again_of.order_id), "an order is posted again that no stored job lists");
    });
    ports
}

/// Whether a stored job has begun this order.
fn is_listed(memory: &Memory, order_id: OrderId) -> bool {
    let jobs: Vec<Job> = now(Records::list(memory, usize::MAX));
    jobs.iter().any(|job| job.under_way.iter().any(|entry| entry.order_id == order_id))
}

/// Takes the next message that is due off its queue.
pub(crate) fn take<M>(source: &impl Source<M>) -> Option<M> {
    let delivery = source.receive(1).now_or_never()?.pop()?;
    now(source.delete(vec![delivery.receipt]));
    Some(delivery.body.unwrap())
}

fn now<T>(answer: impl Future<Output = Result<T, PortError>>) -> T {
    answer.now_or_never().expect("there is nothing to wait for").unwrap()
}

/// Runs to the end.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    run_for(work, usize::MAX).unwrap_or_else(|| panic!("killed"))
}

/// Runs for at most this many polls and is then killed: `None`.
pub(crate) fn run_for<T>(work: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    for poll in 0..polls {
        assert!(poll < 1_000_000, "this work does not end");
        if let Poll::Ready(value) = work.as_mut().poll(&mut context) {
            return Some(value);
        }
    }
    None
}
