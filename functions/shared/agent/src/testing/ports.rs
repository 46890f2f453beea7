//! The ports of the tests, with the conditions that real ones keep.

use std::future::{poll_fn, ready};
use std::task::Poll;

use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{Commit, Environment, Inserted, Listed, PortError, Queues, Record, Records, Seen};
use domain::time::Timestamp;

use super::World;

impl Environment for World {
    fn now(&self) -> Timestamp {
        self.lock(|state| state.now)
    }

    fn wall(&self) -> Timestamp {
        self.lock(|state| state.now.plus_ms(state.jump_ms))
    }

    async fn sleep(&self, ms: u64) {
        self.lock(|state| {
            state.now = state.now.plus_ms(ms);
            state.slept.push(ms);
        });
    }

    fn random(&self) -> u64 {
        self.lock(|state| {
            state.draws.pop_front().unwrap_or_else(|| {
                let Some(seed) = &mut state.seed else { return 0 };
                // SplitMix64.
                *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                mixed ^ (mixed >> 31)
            })
        })
    }
}

impl Queues for World {
    async fn submit(&self, _: Order, _: u64) -> Result<Inserted, PortError> {
        unreachable!("an agent submits nothing")
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        assert_eq!((priority, delay_ms), (Priority::High, 0), "the lane of the request, and at once");
        let SchedulerMessage::Reply(reply) = message else { unreachable!("an agent sends replies only") };
        self.lock(|state| {
            if state.sends_fail {
                return Err(PortError::unavailable("queues.to_scheduler", "out of order"));
            }
            state.replies.push(reply);
            Ok(())
        })
    }

    async fn to_agent(&self, _: &str, _: Request) -> Result<(), PortError> {
        unreachable!("an agent asks no agent")
    }

    fn return_to_agent(
        &self,
        agent: &str,
        receipt: &Receipt,
        delay_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        self.lock(|state| state.returned.push((agent.to_owned(), receipt.clone(), delay_ms)));
        ready(Ok(()))
    }
}

impl Records for World {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        others_go_first().await;
        self.reach(R::KIND.get())?;
        self.memory.get(key).await
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        others_go_first().await;
        self.reach(R::KIND.put())?;
        assert_eq!(record.version(), seen.version + 1);
        self.memory.put(seen, record).await
    }

    async fn list<R: Listed>(&self, _: usize) -> Result<Vec<R>, PortError> {
        unreachable!("an agent looks at records by their keys")
    }
}

domain::has_parts!([] World {
    HasStore, Store = memory::Memory, store: |world| world.look();
});

/// Lets the other requests of the batch come this far, as a port does that takes its time.
async fn others_go_first() {
    let mut gone = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gone, true) {
            Poll::Ready(())
        } else {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}
