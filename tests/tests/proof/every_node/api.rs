//! The API.

use api::{ApiConfig, Caller};
use bytes::Bytes;
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::index::Term;
use domain::message::Action;
use domain::order::Order;
use domain::task::{Direction, reason};
use http::Request;
use serde_json::Value;
use tests::world::{End, World, drive};

use super::bulk::failed;
use super::dead_letters;
use super::node::{CHANNEL, Node, Scene, claimed, command, order, world};
use super::scheduler::held;

const HANDLER: &str = "api";
const CALLER: &str = "shop";
const KEY: &str = "k1";
const DOCUMENT: &str = r#"{"Item":"book","Total":12.50,"ReplyChannel":"shop-replies"}"#;
const COMMAND: &str = r#"{"By":"ada","Reason":"a test"}"#;
const SETTLE: &str = r#"{"Step":"reserve","Outcome":"Done","By":"ada","Reason":"by hand"}"#;
/// A workflow with an agent of its own, in version 1.
const FOLDER: &str = r#"{"By":"ada","Reason":"a test","Files":[
    {"Name":"stepwarden.toml","Text":"[agents.bank]\nurl = \"http://localhost:1\"\n"},
    {"Name":"workflows/shop.toml","Text":"name = \"shop\"\nversion = 1\n[[step]]\nname = \"pay\"\nagent = \"bank\"\n"}]}"#;
/// The same with version 2.
const NEXT: &str = r#"{"By":"ada","Reason":"a test","Files":[
    {"Name":"stepwarden.toml","Text":"[agents.bank]\nurl = \"http://localhost:1\"\n"},
    {"Name":"workflows/shop.toml","Text":"name = \"shop\"\nversion = 2\n[[step]]\nname = \"pay\"\nagent = \"bank\"\n"}]}"#;
const CHOICE: &str = r#"{"By":"ada","Reason":"a test","Version":2,"Default":true}"#;
const JOB: &str = r#"{"By":"ada","Reason":"mended","Selector":{},"Canary":1}"#;

/// One request of an application or an operator, and its expected answer.
#[derive(Clone)]
struct Asked {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, &'static str)>,
    body: &'static str,
    /// A repeat after a lost answer may find the work done. Then this answer is also valid.
    answers: Vec<u16>,
}

impl Asked {
    fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), headers: Vec::new(), body: "", answers: vec![200] }
    }

    fn post(path: impl Into<String>, body: &'static str) -> Self {
        Self { method: "POST", path: path.into(), headers: Vec::new(), body, answers: vec![202] }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    fn or(mut self, status: u16) -> Self {
        self.answers.push(status);
        self
    }

    /// `None`: the API died. Otherwise the status and the body.
    fn send(&self, world: &World) -> Option<(u16, Value)> {
        let mut request = Request::builder().method(self.method).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::from_static(self.body.as_bytes())).expect("a request");
        let catalogue = Catalogue::new(world.workflows.clone());
        let api_config = ApiConfig::new([CHANNEL]).with_services(["inventory"]).with_catalogue(&catalogue);
        let response = drive(
            &world.memory,
            &world.ports,
            api::handle(&world.ports, &api_config, &Caller::unrestricted(CALLER), request),
        )?;
        Some((response.status().as_u16(), serde_json::from_slice(response.body()).expect("JSON")))
    }

    /// Whether the answer was good. A report of an unavailable dependency is not good.
    fn is_answered(&self, world: &World) -> bool {
        match self.send(world) {
            None | Some((503, _)) => false,
            Some((status, body)) => {
                assert!(self.answers.contains(&status), "{} {}: {status} {body}", self.method, self.path);
                true
            }
        }
    }

    fn scene(self, world: World) -> Scene {
        Scene::asked(world, move |world| self.is_answered(world))
    }
}

fn node(what: &'static str, scene: fn() -> Scene) -> Node {
    Node { handler: HANDLER, what, scene }
}

/// `POST /orders` with a key, and the resulting order id.
fn posted() -> (Asked, OrderId) {
    (Asked::post("/orders", DOCUMENT).with("Idempotency-Key", KEY), OrderId::from_idempotency_key(CALLER, KEY))
}

fn commanded(world: World, order_id: OrderId, word: &str) -> Scene {
    // Once the command is carried out, the state may forbid it.
    Asked::post(format!("/orders/{order_id}/{word}"), COMMAND).or(409).scene(world)
}

/// A planned job, with its path.
fn planned() -> (World, Vec<OrderId>, String) {
    let (world, orders) = failed();
    let (status, body) = Asked::post("/bulk", JOB).send(&world).expect("an answer");
    assert_eq!(status, 201);
    let path = format!("/bulk/{}", body["JobID"].as_str().expect("an id"));
    (world, orders, path)
}

fn all_in_error(scene: Scene, orders: Vec<OrderId>) -> Scene {
    orders.into_iter().fold(scene, |scene, order_id| scene.ends(order_id, End::Error(reason::REJECTED)))
}

pub(crate) fn nodes() -> Vec<Node> {
    [orders(), reads(), commands(), jobs(), configuration()].into_iter().flatten().collect()
}

fn orders() -> Vec<Node> {
    vec![
        node("POST /orders with a key", || {
            let (asked, order_id) = posted();
            asked.scene(world()).ends(order_id, End::Processed).checked(|world| assert_eq!(world.tasks().len(), 1))
        }),
        node("POST /orders with a key that is stored", || {
            let (asked, order_id) = posted();
            let world = world();
            assert!(asked.is_answered(&world));
            world.submit();
            asked.scene(world).ends(order_id, End::Processed).checked(|world| assert_eq!(world.tasks().len(), 1))
        }),
        node("POST /orders with a key that is stored, waiting", || {
            let (asked, order_id) = posted();
            let world = world();
            assert!(asked.is_answered(&world));
            world.run();
            let asked = Asked { answers: vec![200], ..asked.with("Prefer", "wait=5") };
            asked.scene(world).ends(order_id, End::Processed)
        }),
        node("POST /orders with a key that the queue knows", || {
            let (asked, order_id) = posted();
            let world = world();
            world.memory.queue_knows_orders();
            assert!(asked.is_answered(&world));
            world.submit();
            let other = Asked { body: r#"{"Item":"another"}"#, answers: vec![422], ..asked.clone() };
            assert!(other.is_answered(&world));
            let asked = Asked { answers: vec![200, 202], ..asked.with("Prefer", "wait=5") };
            asked.scene(world).ends(order_id, End::Processed).checked(|world| assert_eq!(world.tasks().len(), 1))
        }),
        node("POST /orders with a key of another document", || {
            let (asked, order_id) = posted();
            let world = world();
            assert!(asked.is_answered(&world));
            world.submit();
            let other = Asked { body: r#"{"Item":"another"}"#, answers: vec![422], ..asked };
            other.scene(world).ends(order_id, End::Processed).checked(|world| assert_eq!(world.tasks().len(), 1))
        }),
        node("POST /orders with a key, waiting in vain", || {
            let (asked, order_id) = posted();
            let asked = asked.with("Prefer", "wait=1");
            asked.scene(world()).ends(order_id, End::Processed).checked(|world| assert_eq!(world.tasks().len(), 1))
        }),
        // A repeat without a key may create a second order. No order is lost, and none is incomplete.
        node("POST /orders without a key", || Asked::post("/orders", DOCUMENT).scene(world())),
    ]
}

fn reads() -> Vec<Node> {
    vec![
        node("GET /orders/{id}", || {
            let world = world();
            let order_id = claimed(&world);
            Asked::get(format!("/orders/{order_id}")).scene(world).ends(order_id, End::Processed)
        }),
        node("GET /orders/{id}, waiting", || {
            let world = world();
            let order_id = claimed(&world);
            let asked = Asked::get(format!("/orders/{order_id}")).with("Prefer", "wait=2");
            asked.scene(world).ends(order_id, End::Processed)
        }),
        node("GET /orders", || {
            let (world, order_id) = held();
            Asked::get("/orders?state=Error").scene(world).ends(order_id, End::Error(reason::REJECTED))
        }),
        node("GET /orders of a correlation id", || {
            let world = world();
            let order_id = world.post_order(Order { terms: vec![Term::correlation("sample-1")], ..order() });
            world.submit();
            let asked = Asked::get("/orders?correlation=sample-1");
            let (_, body) = asked.send(&world).expect("an answer");
            assert_eq!((body["Orders"].as_array().map(Vec::len), &body["FromIndex"]), (Some(1), &Value::Bool(true)));
            asked.scene(world).ends(order_id, End::Processed)
        }),
        node("GET /orders/{id}/document", || {
            let world = world();
            let order_id = claimed(&world);
            Asked::get(format!("/orders/{order_id}/document")).scene(world).ends(order_id, End::Processed)
        }),
        node("GET /overview", || {
            let (world, order_id) = held();
            Asked::get("/overview").scene(world).ends(order_id, End::Error(reason::REJECTED))
        }),
        node("GET /services", || Asked::get("/services").scene(world())),
        node("GET /alerts", || Asked::get("/alerts").scene(world())),
        node("GET /leases", || Asked::get("/leases").scene(world())),
        node("GET /schedules", || Asked::get("/schedules").scene(world())),
        node("GET /dead-letters", || {
            let world = world();
            dead_letters::left_unreadable(&world);
            world.settle_dead_letters();
            Asked::get("/dead-letters").scene(world)
        }),
        node("GET /health", || Asked::get("/health").scene(world())),
    ]
}

fn commands() -> Vec<Node> {
    vec![
        node("POST /orders/{id}/resubmit", || {
            let (world, order_id) = held();
            commanded(world, order_id, "resubmit").ends(order_id, End::Processed)
        }),
        node("POST /orders/{id}/note", || {
            let (world, order_id) = held();
            let asked = Asked::post(format!("/orders/{order_id}/note"), COMMAND).or(409);
            asked.scene(world).ends(order_id, End::Error(reason::REJECTED))
        }),
        node("POST /orders/{id}/settle", || {
            let (world, order_id) = held();
            world.remote.acts_by_hand(order_id, "reserve", Direction::Forward);
            let asked = Asked::post(format!("/orders/{order_id}/settle"), SETTLE).or(409);
            asked.scene(world).ends(order_id, End::Processed)
        }),
        node("POST /orders/{id}/cancel", || {
            let world = world();
            let order_id = claimed(&world);
            commanded(world, order_id, "cancel").ends(order_id, End::Compensated)
        }),
        node("POST /orders/{id}/pause", || {
            let world = world();
            let order_id = claimed(&world);
            world.lose_requests("inventory");
            let scene = commanded(world, order_id, "pause").ends(order_id, End::Processed);
            scene.then(move |world| {
                world.schedule();
                assert!(world.task(order_id).paused.is_some(), "it is paused");
                world.tell_scheduler(command(world, order_id, Action::Resume));
            })
        }),
        node("POST /orders/{id}/resume", || {
            let world = world();
            let order_id = claimed(&world);
            world.tell_scheduler(command(&world, order_id, Action::Pause));
            world.schedule();
            commanded(world, order_id, "resume").ends(order_id, End::Processed)
        }),
    ]
}

fn jobs() -> Vec<Node> {
    vec![
        node("POST /bulk", || {
            let (world, orders) = failed();
            // A plan with a lost answer is planned again: a job does nothing until it is started.
            all_in_error(Asked { answers: vec![201], ..Asked::post("/bulk", JOB) }.scene(world), orders)
        }),
        node("GET /bulk", || {
            let (world, orders, _) = planned();
            all_in_error(Asked::get("/bulk").scene(world), orders)
        }),
        node("GET /bulk/{id}", || {
            let (world, orders, path) = planned();
            all_in_error(Asked::get(path).scene(world), orders)
        }),
        node("POST /bulk/{id}/start", || {
            let (world, orders, path) = planned();
            all_in_error(Asked::post(format!("{path}/start"), COMMAND).or(409).scene(world), orders)
        }),
        node("POST /bulk/{id}/cancel", || {
            let (world, orders, path) = planned();
            all_in_error(Asked::post(format!("{path}/cancel"), COMMAND).or(409).scene(world), orders)
        }),
    ]
}

/// A configuration is applied whole: the same again finds nothing to change.
fn configuration() -> Vec<Node> {
    vec![
        node("POST /configuration", || {
            apply(FOLDER).scene(world()).checked(|world| {
                let (status, body) = apply(FOLDER).send(world).expect("an answer");
                assert_eq!((status, &body["Changes"]), (200, &serde_json::json!([])));
            })
        }),
        node("POST /workflows/{name}/choose", || {
            let world = world();
            assert!(apply(FOLDER).is_answered(&world) && apply(NEXT).is_answered(&world));
            let choose = Asked { answers: vec![200], ..Asked::post("/workflows/shop/choose", CHOICE) };
            choose.scene(world).checked(|world| {
                let (_, body) = Asked::get("/configuration").send(world).expect("an answer");
                assert_eq!(body["Default"], "shop");
            })
        }),
        node("POST /workflows/{name}/{version}/retire", || {
            let world = world();
            assert!(apply(FOLDER).is_answered(&world) && apply(NEXT).is_answered(&world));
            let retire = Asked { answers: vec![200], ..Asked::post("/workflows/shop/1/retire", COMMAND) };
            retire.scene(world).checked(|world| {
                let (_, body) = Asked::get("/workflows/shop/1").send(world).expect("an answer");
                assert!(body["RetiredAt"].is_string(), "{body}");
            })
        }),
        node("GET /workflows", || {
            let world = world();
            assert!(apply(FOLDER).is_answered(&world));
            Asked::get("/workflows").scene(world)
        }),
    ]
}

fn apply(folder: &'static str) -> Asked {
    Asked { answers: vec![200], ..Asked::post("/configuration", folder) }
}
