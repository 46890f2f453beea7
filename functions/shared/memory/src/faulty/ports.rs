//! The ports themselves: each call goes through the faults.

use std::sync::Arc;

use domain::id::OrderId;
use domain::index::Term;
use domain::message::{CloudEvent, Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    Commit, Due, Environment, Events, Inserted, ListError, Listed, Page, PortError, Queues, Record, RecordKind,
    Records, Seen, Store, Watched,
};
use domain::tally::{Grain, Numbers};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;

use super::{Faulty, Shared, lock};

impl Store for Faulty {
    async fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> Result<Inserted, PortError> {
        self.through("store.insert", task.version, || async {
            let inserted = self.memory.insert(order.clone(), task.clone()).await?;
            let mut record = lock(&self.shared.record);
            if inserted == Inserted::New && record.tasks.last() != Some(&task) {
                record.tasks.push(task.clone());
            }
            Ok(inserted)
        })
        .await
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.silently_through("store.order", order_id, || self.memory.order(order_id)).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.silently_through("store.task", order_id, || self.memory.task(order_id)).await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        let call = || async {
            let commit = self.memory.commit(before, after.clone()).await?;
            let record = &mut lock(&self.shared.record).tasks;
            // A repeated write is not a second write.
            if commit == Commit::Committed && !record.contains(&after) {
                record.push(after.clone());
            }
            Ok(commit)
        };
        assert_eq!(after.version, before.version + 1);
        let of = after.version.to_string();
        let noted = self.noted("store.commit", &of, &call);
        self.conditionally_through("store.commit", &of, Some(Commit::Conflict), noted).await
    }

    async fn due(&self, watch: Watch, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        self.silently_through("store.due", format!("{watch:?}"), || async {
            let Some(old) = lock(&self.shared.old_index).as_ref().map(|index| index[&watch].clone()) else {
                return self.memory.due(watch, now, after, limit).await;
            };
            let place = |due: &Due| (due.at, due.order_id);
            let further = |due: &Due| due.at <= now && after.is_none_or(|after| place(due) > place(&after));
            Ok(old.into_iter().filter(further).take(limit).collect())
        })
        .await
    }

    async fn watches(&self, max: usize) -> Result<Option<Vec<(Watch, Timestamp)>>, PortError> {
        self.silently_through("store.watches", "", || async {
            let Some(old) = lock(&self.shared.old_index).clone() else { return self.memory.watches(max).await };
            let all = old.iter().flat_map(|(watch, dues)| dues.iter().map(|due| (*watch, due.at)));
            Ok(Some(all.take(max).collect::<Vec<_>>()).filter(|all| all.len() < max))
        })
        .await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.silently_through("store.list", format!("{state:?} {limit}"), || async {
            callers_fault(Store::list(&self.memory, state, after, limit).await)
        })
        .await?
    }

    async fn found(&self, term: &Term, after: Option<&str>, limit: usize) -> Result<Option<Page>, ListError> {
        self.silently_through("store.found", "", || async {
            callers_fault(Store::found(&self.memory, term, after, limit).await)
        })
        .await?
    }

    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<usize, PortError> {
        self.through("store.forget_expired", "", || self.memory.forget_expired(now, limit)).await
    }

    async fn erase_others(&self, task: &Task) -> Result<(), PortError> {
        self.through("store.erase_others", task.order_id, || self.memory.erase_others(task)).await
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Watched>, PortError> {
        self.silently_through("store.settled", wait_ms, || async {
            let _sleeper = Sleeper::new(&self.shared, self.memory.now().plus_ms(wait_ms));
            self.memory.settled(order_id, wait_ms).await
        })
        .await
    }

    async fn numbers(&self, grain: Grain, since: Timestamp) -> Result<Option<Numbers>, PortError> {
        self.silently_through("store.numbers", "", || self.memory.numbers(grain, since)).await
    }
}

/// Sets a wrong cursor, which is the caller's fault, apart from a failure of the infrastructure.
fn callers_fault<T>(listed: Result<T, ListError>) -> Result<Result<T, ListError>, PortError> {
    match listed {
        Ok(page) => Ok(Ok(page)),
        Err(ListError::Cursor) => Ok(Err(ListError::Cursor)),
        Err(ListError::Port(error)) => Err(error),
    }
}

impl Queues for Faulty {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        self.through("queues.submit", delay_ms, || self.memory.submit(order.clone(), delay_ms)).await
    }

    fn knows_orders(&self) -> bool {
        self.memory.knows_orders()
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        self.through("queues.to_scheduler", format!("{priority:?} {delay_ms}"), || async {
            self.memory.to_scheduler(message.clone(), priority, delay_ms).await?;
            lock(&self.shared.record).to_scheduler.push(message.clone());
            Ok(())
        })
        .await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.through("queues.to_agent", agent, || async {
            self.memory.to_agent(agent, request.clone()).await?;
            lock(&self.shared.record).to_agents.push((agent.to_owned(), request.clone()));
            Ok(())
        })
        .await
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.through("queues.return_to_agent", format!("{agent} {delay_ms}"), || {
            self.memory.return_to_agent(agent, receipt, delay_ms)
        })
        .await
    }
}

impl Events for Faulty {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        self.through("events.publish", &event.kind, || self.memory.publish(event.clone())).await
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        self.through("events.notify", channel, || self.memory.notify(channel, event.clone())).await
    }
}

impl Records for Faulty {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        self.silently_through(R::KIND.get(), key, || self.memory.get(key)).await
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        // The first version of a lease is a time.
        let is_first = R::KIND == RecordKind::Lease && seen.version == 0;
        assert!(is_first || record.version() == seen.version + 1, "{}", record.key());
        self.conditionally_through(R::KIND.put(), record.key(), Some(Commit::Conflict), || {
            self.memory.put(seen, record)
        })
        .await
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        self.silently_through(R::KIND.list(), "", || Records::list(&self.memory, limit)).await
    }
}

impl Environment for Faulty {
    fn now(&self) -> Timestamp {
        self.skewed(self.memory.now())
    }

    fn wall(&self) -> Timestamp {
        self.skewed(self.memory.wall())
    }

    async fn sleep(&self, ms: u64) {
        if let Some(skipped) = &mut *lock(&self.shared.skipped) {
            skipped.push(ms);
            return self.memory.advance(ms);
        }
        let _sleeper = Sleeper::new(&self.shared, self.memory.now().plus_ms(ms));
        self.memory.sleep(ms).await;
    }

    fn random(&self) -> u64 {
        let drawn = lock(&self.shared.draws).as_mut().and_then(Iterator::next);
        drawn.unwrap_or_else(|| self.memory.random())
    }
}

impl Faulty {
    fn skewed(&self, at: Timestamp) -> Timestamp {
        match self.ahead_ms {
            0.. => at.plus_ms(self.ahead_ms.unsigned_abs()),
            ..0 => at.minus_ms(self.ahead_ms.unsigned_abs()),
        }
    }
}

/// A sleeper, until it is dropped.
struct Sleeper<'a> {
    shared: &'a Shared,
    id: u64,
}

impl<'a> Sleeper<'a> {
    fn new(shared: &'a Shared, until: Timestamp) -> Self {
        let sleepers = &mut *lock(&shared.sleepers);
        sleepers.last_id += 1;
        sleepers.until.insert(sleepers.last_id, until);
        Self { shared, id: sleepers.last_id }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        lock(&self.shared.sleepers).until.remove(&self.id);
    }
}
