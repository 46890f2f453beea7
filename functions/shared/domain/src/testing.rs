//! The ports for tests of this crate: one task, a list of pages, and a log of what was asked of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::id::OrderId;
use crate::message::{CloudEvent, Priority, Receipt, Request, SchedulerMessage};
use crate::order::Order;
use crate::ports::{
    Commit, Due, Environment, Events, Inserted, ListError, Listed, Page, PortError, Queues, Record, RecordKind,
    Records, Seen, Store, Watched,
};
use crate::task::{ProcessState, Task, Watch};
use crate::time::Timestamp;

/// Ports that do at once what a test asks for, and log it.
pub(crate) struct FakePorts {
    pub(crate) order: Option<Order>,
    pub(crate) task: Mutex<Option<Arc<Task>>>,
    /// The number of conditional writes to lose before one is won.
    pub(crate) conflicts: Mutex<u32>,
    /// The next write succeeds and another writer follows before the client repeats it, so that it looks lost.
    pub(crate) is_overtaken: Mutex<bool>,
    /// Events and status messages cannot be sent.
    pub(crate) is_mute: bool,
    /// The pages of the list, in order.
    pub(crate) pages: Mutex<VecDeque<Page>>,
    pub(crate) random: u64,
    pub(crate) now: Mutex<Timestamp>,
    /// The records, as JSON.
    pub(crate) records: Mutex<BTreeMap<(RecordKind, String), String>>,
    /// The reads of records, each with its operation.
    pub(crate) reads: Mutex<Vec<&'static str>>,
    /// Records cannot be read.
    pub(crate) records_are_down: Mutex<bool>,
    pub(crate) log: Mutex<Vec<String>>,
}

impl FakePorts {
    pub(crate) fn new(order: Option<Order>, task: Option<Task>) -> Self {
        Self {
            order,
            task: Mutex::new(task.map(Arc::new)),
            conflicts: Mutex::new(0),
            is_overtaken: Mutex::new(false),
            is_mute: false,
            pages: Mutex::default(),
            random: 7,
            now: Timestamp::from_epoch_ms(1_000_000_000_000).into(),
            records: Mutex::default(),
            reads: Mutex::default(),
            records_are_down: Mutex::default(),
            log: Mutex::default(),
        }
    }

    /// The stored task.
    pub(crate) fn stored(&self) -> Arc<Task> {
        self.task.lock().unwrap().clone().unwrap()
    }

    /// The calls of the ports, without plain reads.
    pub(crate) fn logged(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn log(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }

    fn tell(&self, way: &str, event: &CloudEvent) -> Result<(), PortError> {
        if self.is_mute {
            return Err(PortError::unavailable("events", "mute"));
        }
        self.log(format!("{way} {}", event.kind));
        Ok(())
    }
}

impl Store for FakePorts {
    async fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> Result<Inserted, PortError> {
        if let Some(stored) = &self.order {
            return Ok(Inserted::on_conflict((stored, &self.stored()), (&order, &task)));
        }
        self.log(format!("insert {}", task.version));
        *self.task.lock().unwrap() = Some(task);
        Ok(Inserted::New)
    }

    async fn order(&self, _: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        Ok(self.order.clone().map(Arc::new))
    }

    async fn task(&self, _: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        Ok(self.task.lock().unwrap().clone())
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        assert_eq!(before.version + 1, after.version);
        let mut conflicts = self.conflicts.lock().unwrap();
        if *conflicts > 0 {
            *conflicts -= 1;
            self.log("conflict".to_owned());
            return Ok(Commit::Conflict);
        }
        if std::mem::take(&mut *self.is_overtaken.lock().unwrap()) {
            self.log(format!("commit {}, overtaken", after.version));
            let overtaker = Task { version: after.version + 1, nonce: after.nonce + 1, ..(*after).clone() };
            *self.task.lock().unwrap() = Some(overtaker.into());
            return Ok(Commit::Conflict);
        }
        self.log(format!("commit {}", after.version));
        *self.task.lock().unwrap() = Some(after);
        Ok(Commit::Committed)
    }

    async fn due(&self, _: Watch, _: Timestamp, _: Option<Due>, _: usize) -> Result<Vec<Due>, PortError> {
        unreachable!("only the supervisor reads due tasks")
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.log(format!("list {state:?} after {after:?}, {limit} at most"));
        Ok(self.pages.lock().unwrap().pop_front().unwrap_or_default())
    }

    async fn settled(&self, _: OrderId, _: u64) -> Result<Option<Watched>, PortError> {
        unreachable!("only the API waits for an order")
    }
}

impl Records for FakePorts {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        self.reads.lock().unwrap().push(R::KIND.get());
        if *self.records_are_down.lock().unwrap() {
            return Err(PortError::unavailable(R::KIND.get(), "down"));
        }
        let records = self.records.lock().unwrap();
        Ok(records.get(&(R::KIND, key.to_owned())).map(|body| serde_json::from_str(body).unwrap()))
    }

    async fn put<R: Record>(&self, _: Seen, record: &R) -> Result<Commit, PortError> {
        let key = (R::KIND, record.key().to_owned());
        self.records.lock().unwrap().insert(key, serde_json::to_string(record).unwrap());
        Ok(Commit::Committed)
    }

    async fn list<R: Listed>(&self, _: usize) -> Result<Vec<R>, PortError> {
        unreachable!("no list of records is read")
    }
}

impl Queues for FakePorts {
    async fn submit(&self, _: Order, _: u64) -> Result<Inserted, PortError> {
        unreachable!("only the API submits")
    }

    async fn to_scheduler(&self, message: SchedulerMessage, _: Priority, delay_ms: u64) -> Result<(), PortError> {
        self.log(match message {
            SchedulerMessage::Wake(_) => format!("wake in {delay_ms} ms"),
            SchedulerMessage::Reply(reply) => format!("reply of {} #{}", reply.step, reply.attempt),
            SchedulerMessage::Command(_) => unreachable!("{message:?}"),
        });
        Ok(())
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.log(format!("request {} #{} to {agent}", request.step, request.attempt));
        Ok(())
    }

    async fn return_to_agent(&self, _: &str, _: &Receipt, _: u64) -> Result<(), PortError> {
        unreachable!("only agents return a request")
    }
}

impl Events for FakePorts {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        self.tell("publish", &event)
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        self.tell(&format!("notify {channel} of"), &event)
    }
}

impl Environment for FakePorts {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }

    async fn sleep(&self, ms: u64) {
        self.log(format!("sleep {ms} ms"));
    }

    fn random(&self) -> u64 {
        self.random
    }
}
