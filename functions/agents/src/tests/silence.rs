//! A call without an answer, and the one after it: an agent with its ports, and a clock that waits for the call.

use std::sync::Mutex;

use domain::json::Json;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{Delivery, Outcome, Receipt, Reply, SchedulerMessage};
use domain::ports::{Environment, Source};
use domain::task::Direction;
use domain::time::Timestamp;
use memory::Memory;

use super::{NOW, request};
use crate::stand_in::{Respond, StandIn, response};
use crate::{AgentSettings, HttpClients, http_agent};

#[tokio::test]
async fn no_answer_in_time_is_asked_again_on_another_connection_with_the_same_key() {
    let stand_in = StandIn::start([Respond::Never, response(200, &[], "{\"Receipt\":7}")]).await;
    let agent = http_agent("payment", &stand_in.base, AgentSettings::default(), &HttpClients::new()).unwrap();
    let clock = PatientClock { stand_in, now: Mutex::new(NOW) };
    let ports = Ports { memory: Memory::new(NOW, 7), clock };
    let receipt = Receipt { message_id: "m".into(), handle: "h".into() };
    let delivery = Delivery { receipt, receive_count: 1, parent: None, body: Ok(request(Direction::Forward)) };

    assert!(agent::handle(&ports, &agent, vec![delivery]).await.0.is_empty());

    let [sent] = ports.memory.scheduler().receive(10).await.try_into().unwrap();
    let done = Outcome::Done(Json::parse(b"{\"Receipt\":7}", 99).unwrap());
    // The first call may still have its effect.
    let may_run_until = Some(NOW.plus_ms(SETTLES_WITHIN_MS_DEFAULT));
    let reply = Reply { may_run_until, call_ms: Some(0), ..request(Direction::Forward).reply(done) };
    assert_eq!(sent.body, Ok(SchedulerMessage::Reply(reply)));
    let received = ports.clock.stand_in.received();
    let connections: Vec<usize> = received.iter().map(|received| received.connection).collect();
    assert_eq!(connections, [1, 2]);
    assert_eq!(received[0].header("idempotency-key"), received[1].header("idempotency-key"));
}

/// Ports in memory, with a clock of their own.
struct Ports {
    memory: Memory,
    clock: PatientClock,
}

domain::has_parts!([] Ports {
    HasQueues, Queues = Memory, queues: |ports| &ports.memory;
    HasStore, Store = Memory, store: |ports| &ports.memory;
    HasRecords, Records = Memory, records: |ports| &ports.memory;
    HasEnvironment, Environment = PatientClock, environment: |ports| &ports.clock;
});

/// A clock that runs only once an unanswered request has come.
struct PatientClock {
    stand_in: StandIn,
    now: Mutex<Timestamp>,
}

impl Environment for PatientClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }

    async fn sleep(&self, ms: u64) {
        if ms > 0 {
            self.stand_in.has_one_unanswered().await;
        }
        let mut now = self.now.lock().unwrap();
        *now = now.plus_ms(ms);
    }

    fn random(&self) -> u64 {
        0
    }
}
