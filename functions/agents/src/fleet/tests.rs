use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use domain::message::{Receipt, SchedulerMessage};
use domain::ports::{Breaker, OutageReason, Records, ServiceHealth, Source};
use domain::task::Direction;
use memory::Memory;

use super::*;
use crate::auth::Secret;
use crate::stand_in::{StandIn, response};
use crate::tests::{NOW, request};

/// Settings that a test applies. A cache holds older ones.
#[derive(Default)]
struct Shelf {
    cached: Mutex<Option<(u64, Arc<str>)>>,
    newest: Mutex<Option<(u64, Arc<str>)>>,
    newest_looks: AtomicU32,
}

impl Shelf {
    fn apply(&self, version: u64, text: &str) {
        *self.newest.lock().unwrap() = Some((version, text.into()));
    }

    fn applied(self, version: u64, text: &str) -> Self {
        self.apply(version, text);
        self.refresh();
        self
    }

    fn refresh(&self) {
        *self.cached.lock().unwrap() = self.newest.lock().unwrap().clone();
    }
}

impl Applied for Arc<Shelf> {
    async fn settings(&self, _: &impl AgentPorts, newest: bool) -> Result<Option<(u64, Arc<str>)>, PortError> {
        if newest {
            self.newest_looks.fetch_add(1, Relaxed);
            self.refresh();
        }
        Ok(self.cached.lock().unwrap().clone())
    }
}

fn host(settings: &str) -> Host {
    let secrets: Resolver = Arc::new(|_| Box::pin(async { Err("is not set in the environment".to_owned()) }));
    Host {
        settings: settings.into(),
        source: "AGENTS".to_owned(),
        urls: BTreeMap::new(),
        stand_ins: None,
        callbacks: None,
        policy: Box::new(|_, agent| agent.policy.margin_ms = 7),
        secrets,
    }
}

fn fleet(shelf: &Arc<Shelf>, host: Host) -> Fleet<Arc<Shelf>> {
    Fleet::new(shelf.clone(), host, HttpClients::new())
}

fn memory() -> Memory {
    Memory::new(NOW, 7)
}

async fn agent(fleet: &Fleet<Arc<Shelf>>, ports: &Memory, name: &str) -> Arc<HttpAgent> {
    fleet.agent(ports, &name.into()).await.unwrap().unwrap()
}

fn delivery(agent: &str) -> Delivery<Request> {
    let receipt = Receipt { message_id: agent.into(), handle: agent.into() };
    let request = Request { agent: agent.into(), step: agent.into(), ..request(Direction::Forward) };
    Delivery { receipt, receive_count: 1, parent: None, body: Ok(request) }
}

/// The replies so far: step and outcome.
async fn replies(ports: &Memory) -> Vec<String> {
    let sent = ports.scheduler().receive(10).await.into_iter().map(|delivery| delivery.body.unwrap());
    let words = sent.map(|message| match message {
        SchedulerMessage::Reply(reply) => format!("{} {:?}", reply.step, reply.outcome),
        SchedulerMessage::Wake(_) | SchedulerMessage::Command(_) | SchedulerMessage::Child(_) => {
            panic!("agents send replies")
        }
    });
    let mut words: Vec<String> = words.collect();
    words.sort();
    words
}

#[tokio::test]
async fn one_batch_has_requests_of_several_agents_and_those_of_none() {
    let service = StandIn::start([response(200, &[], "{\"A\":1}"), response(200, &[], "{\"A\":1}")]).await;
    let shelf = Arc::new(Shelf::default());
    let host = Host { stand_ins: Some(service.base.as_str().into()), ..host("[agents.customs]") };
    let (fleet, ports) = (fleet(&shelf, host), memory());
    let unreadable = Delivery { body: domain::message::decode(b"nonsense"), ..delivery("unreadable") };
    let batch = vec![delivery("payment"), delivery(""), delivery("customs"), unreadable];
    let Failures(failed) = fleet.handle(&ports, batch).await;
    let failed: BTreeSet<&str> = failed.iter().map(|failure| &*failure.receipt.message_id).collect();
    assert_eq!(failed, BTreeSet::from(["", "unreadable"]));
    let mut called: Vec<String> = service.received().into_iter().map(|call| call.line).collect();
    called.sort();
    assert_eq!(called, ["POST /customs/do HTTP/1.1", "POST /payment/charge HTTP/1.1"]);
    assert_eq!(replies(&ports).await.len(), 2);
}

#[tokio::test]
async fn an_agent_is_called_as_the_applied_settings_say_and_else_as_those_of_the_host() {
    let shelf = Arc::new(Shelf::default());
    let text = "[agents.payment]\nurl = \"http://localhost:1\"\ncall_timeout = \"3s\"";
    let (fleet, ports) = (fleet(&shelf, host(text)), memory());
    let policy = agent(&fleet, &ports, "payment").await.policy().clone();
    assert_eq!((policy.call_timeout_ms, policy.margin_ms), (3_000, 7));
    shelf.apply(1, "[agents.payment]\nurl = \"http://localhost:1\"\ncall_timeout = \"4s\"");
    shelf.refresh();
    assert_eq!(agent(&fleet, &ports, "payment").await.policy().call_timeout_ms, 4_000);
}

#[tokio::test]
async fn an_agent_keeps_what_it_knows_of_its_service_until_its_own_settings_change() {
    let payment = "[agents.payment]\nurl = \"http://localhost:1\"\n";
    let shelf = Arc::new(Shelf::default().applied(1, payment));
    let (fleet, ports) = (fleet(&shelf, host("")), memory());
    let first = agent(&fleet, &ports, "payment").await;
    shelf.apply(2, &format!("# Customs come as well.\n{payment}[agents.customs]\nurl = \"http://localhost:2\"\n"));
    shelf.refresh();
    assert!(Arc::ptr_eq(&first, &agent(&fleet, &ports, "payment").await));
    shelf.apply(3, &format!("{payment}concurrency = 2\n"));
    shelf.refresh();
    let second = agent(&fleet, &ports, "payment").await;
    assert_eq!((first.policy().concurrency, second.policy().concurrency), (None, Some(2)));
}

#[tokio::test]
async fn requests_of_an_agent_without_settings_wait_as_those_of_a_misconfigured_service() {
    for (text, reason) in [
        ("", "agents.customs has no url: give it one in AGENTS, and apply it"),
        ("[agents.customs]\nurl = 7", "AGENTS:2:7: agents.customs.url"),
        (
            "[agents.customs]\nurl = \"http://localhost:1\"\nauth = { bearer = \"env:TOKEN\" }",
            "env:TOKEN is not set in the environment",
        ),
        ("[agents.customs]\nurl = \"http://localhost:0\"", "port"),
        ("[agents.customs]\nqueue = \"own\"", "agents.customs of AGENTS has a queue of its own"),
    ] {
        let shelf = Arc::new(Shelf::default());
        let (fleet, ports) = (fleet(&shelf, host(text)), memory());
        let Failures(failed) = fleet.handle(&ports, vec![delivery("customs")]).await;
        assert_eq!(failed.len(), 1, "{text}: the request waits on its queue");
        let health: ServiceHealth = ports.get("customs").await.unwrap().unwrap();
        let outage = health.outage.unwrap();
        assert_eq!((health.state, outage.reason), (Breaker::Open, OutageReason::Misconfigured), "{text}");
        assert!(outage.problem.contains(reason), "{text}: {}", outage.problem);
    }
}

#[tokio::test]
async fn a_stand_in_plays_no_agent_that_may_have_had_a_service() {
    let payment = "[agents.payment]\nurl = \"http://localhost:1\"\n";
    let shelf = Arc::new(Shelf::default());
    let host = Host { stand_ins: Some("http://localhost:2".into()), ..host("") };
    let (fleet, ports) = (fleet(&shelf, host), memory());
    let is_played = async |name: &str| {
        let _ = agent(&fleet, &ports, name).await;
        let slot = fleet.agents.lock().unwrap()[name].clone();
        slot.lock().await.as_ref().unwrap().faulty_at.is_none()
    };
    assert!(is_played("payment").await, "a shipped agent, and nothing was applied");
    assert!(!is_played("customs").await, "nobody named it");
    shelf.apply(1, payment);
    shelf.refresh();
    assert!(is_played("payment").await, "by its service");
    shelf.apply(2, "[agents.customs]\n");
    shelf.refresh();
    assert!(is_played("customs").await, "it has a table");
    assert!(!is_played("payment").await, "its table is gone");
}

#[tokio::test]
async fn an_agent_that_was_applied_a_moment_ago_is_found_behind_the_cache() {
    let shelf = Arc::new(Shelf::default().applied(1, "[agents.payment]\nurl = \"http://localhost:1\"\n"));
    let (fleet, ports) = (fleet(&shelf, host("")), memory());
    agent(&fleet, &ports, "payment").await;
    shelf.apply(2, "[agents.customs]\nurl = \"http://localhost:2\"\nconcurrency = 3");
    assert_eq!(agent(&fleet, &ports, "customs").await.policy().concurrency, Some(3));
    assert_eq!(shelf.newest_looks.load(Relaxed), 1);
}

#[tokio::test]
async fn a_fault_is_looked_at_again_after_a_while_and_not_for_each_request() {
    let shelf = Arc::new(Shelf::default());
    let (fleet, ports) = (fleet(&shelf, host("")), memory());
    for _ in 0..3 {
        agent(&fleet, &ports, "customs").await;
    }
    assert_eq!(shelf.newest_looks.load(Relaxed), 1);
    ports.advance(FAULTY_MS);
    shelf.apply(1, "[agents.customs]\nurl = \"http://localhost:2\"\nconcurrency = 3");
    assert_eq!(agent(&fleet, &ports, "customs").await.policy().concurrency, Some(3));
}

#[tokio::test]
async fn rule_41_a_memo_of_the_host_and_a_webhook_do_not_go_together() {
    let webhook =
        "webhook = { secret = \"env:A\", scheme = \"github\", key = \"/key\", event = \"/type\", done = [\"paid\"] }";
    let settings = format!("[agents.payment]\nurl = \"http://localhost:1\"\n{webhook}");
    let policy = Box::new(|_: &str, agent: &mut AgentSettings| agent.policy.memo = Some(Default::default()));
    let secrets: Resolver = Arc::new(|_| Box::pin(async { Ok(Secret::new("secret")) }));
    let fleet = fleet(&Arc::default(), Host { policy, secrets, ..host(&settings) });
    let faults = fleet.check(&["payment"]).await.unwrap_err();
    assert!(faults[0].contains("has a webhook, and a memo does not know of results"), "{faults:?}");
}

#[tokio::test]
async fn the_faults_of_the_host_are_found_at_the_start() {
    let url = |url: &str| Arc::<str>::from(url);
    let urls = [("inventory", "nonsense"), ("payment", "http://localhost:2"), ("shipping", "ftp://me")];
    let urls = urls.into_iter().map(|(name, base)| (name.into(), url(base))).collect();
    let fleet = fleet(&Arc::default(), Host { urls, ..host("") });
    let faults = fleet.check(&["inventory", "payment", "shipping"]).await.unwrap_err();
    assert_eq!(faults.len(), 2);
    assert!(faults[0].starts_with("INVENTORY_URL: ") && faults[1].starts_with("SHIPPING_URL: "), "{faults:?}");
}
