//! Steps with `send`: each service gets what the mapping names, and nothing else of the order.

use std::sync::{Arc, Mutex};

use agents::{AgentSettings, HttpClients, http_agent};
use bytes::Bytes;
use domain::message::{Delivery, Receipt};
use domain::task::ProcessState;
use domain::workflow::Workflows;
use http::{Request, Response};
use local::http_server::Server;
use tests::conformance::samples::order_with;
use tests::world::World;
use tokio::net::TcpListener;

const WORKFLOW: &str = r#"
name = "order"
version = 1
[[step]]
name = "reserve"
agent = "inventory"
send = { sku = "/Order/Item" }
undo = { send = { order = "/OrderID" } }
[[step]]
name = "charge"
agent = "payment"
after = ["reserve"]
send = { card = "/Order/Card/Number", amount = "/Order/Total" }
undo = { send = { card = "/Order/Card/Number", order = "/OrderID" } }
[[step]]
name = "ship"
agent = "shipping"
after = ["charge"]
send = { to = "/Order/ShipTo", receipt = "/Outputs/charge/Receipt" }
undo = { send = { order = "/OrderID" } }
"#;
const CARD: &str = "4242-4242-4242-4242";

/// Declines to ship. Gives its URL, and path and body of each call.
async fn services() -> (Server, Arc<Mutex<Vec<(String, String)>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let calls = Arc::<Mutex<Vec<_>>>::default();
    let noted = calls.clone();
    let server = Server::start(listener, 1_000_000, 0, move |request: Request<Bytes>| {
        let path = request.uri().path().to_owned();
        let status = if path == "/shipping/ship" { 422 } else { 200 };
        noted.lock().unwrap().push((path, String::from_utf8(request.body().to_vec()).unwrap()));
        async move { Ok(Response::builder().status(status).body(r#"{"Receipt":"r-7"}"#.into()).unwrap()) }
    });
    (server.unwrap(), calls)
}

#[tokio::test]
async fn a_card_number_reaches_the_service_that_send_names_and_no_other() {
    let (server, calls) = services().await;
    let world = World::with(WORKFLOW);
    let agents = Workflows::SHIPPED_AGENTS.map(|name| {
        let url = format!("http://{}/{name}", server.address());
        http_agent(name, &url, AgentSettings::default(), &HttpClients::new()).unwrap()
    });
    let document = format!(r#"{{"Item": "mug", "Total": 12.50, "ShipTo": "Oslo", "Card": {{"Number": "{CARD}"}}}}"#);
    let order_id = world.post_order(order_with(1, &document));
    world.submit();
    // Six calls, and an end.
    for _ in 0..10 {
        world.schedule();
        for agent in &agents {
            for request in world.lose_requests(agent.name()) {
                let message = serde_json::to_string(&request).unwrap();
                assert_eq!(message.contains(CARD), &**agent.name() == "payment", "{message}");
                let receipt = Receipt { message_id: "m".into(), handle: "h".into() };
                let delivery = Delivery { receipt, receive_count: 1, parent: None, body: Ok(request) };
                assert!(agents::handle(&world.ports, agent, vec![delivery]).await.0.is_empty());
            }
        }
    }
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    let order = format!(r#"{{"order":"{order_id}"}}"#);
    let expected = [
        ("/inventory/reserve", r#"{"sku":"mug"}"#.to_owned()),
        ("/payment/charge", format!(r#"{{"amount":12.50,"card":"{CARD}"}}"#)),
        ("/shipping/ship", r#"{"receipt":"r-7","to":"Oslo"}"#.to_owned()),
        ("/shipping/cancel", order.clone()),
        ("/payment/refund", format!(r#"{{"card":"{CARD}","order":"{order_id}"}}"#)),
        ("/inventory/release", order),
    ];
    assert_eq!(*calls.lock().unwrap(), expected.map(|(path, body)| (path.to_owned(), body)));
}
