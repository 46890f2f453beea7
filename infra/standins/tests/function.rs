//! The stand-ins' function on a DynamoDB of the test's own.

use aws::clients::dynamodb_alone;
use aws::config::Access;
use aws_credential_types::Credentials;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use bytes::Bytes;
use dynoxide::Database;
use futures_util::future::join_all;
use http::{Request, Response, StatusCode};
use serde_json::Value;
use standins::lambda::{StandIns, Table};
use tokio::net::TcpListener;

const TOKEN: &str = "0123456789abcdef";

/// Two instances of the function on one table.
struct World {
    instances: [StandIns; 2],
    client: Client,
}

impl World {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(dynoxide::server::serve_on(listener, Database::memory().unwrap()));
        let access = Access {
            region: "eu-central-1".into(),
            credentials: Credentials::new("test", "test", None, None, "tests"),
            dynamodb_url: Some(url.into()),
            sqs_url: None,
            eventbridge_url: None,
        };
        let client = dynamodb_alone(&access).unwrap();
        create(&client).await;
        let instance = || StandIns::new(TOKEN.into(), Table::new(client.clone(), "keys".into())).unwrap();
        Self { instances: [instance(), instance()], client }
    }

    /// Calls one of the instances.
    async fn call(&self, instance: usize, path: &str, key: &str, order: &str) -> (StatusCode, Value) {
        let body = format!(r#"{{"OrderID":"o","Order":{order},"Outputs":{{}}}}"#);
        let request = Request::post(path).header("idempotency-key", key).body(Bytes::from(body)).unwrap();
        told(&self.instances[instance].answer(request).await)
    }

    /// Calls and effects of a key and of its undo, as they stand in the table.
    async fn counts(&self, key: &str) -> [u64; 4] {
        let read = self.client.get_item().table_name("keys").key("Key", AttributeValue::S(key.to_owned()));
        let item = read.send().await.unwrap().item.unwrap_or_default();
        ["ForwardCalls", "ForwardEffects", "UndoCalls", "UndoEffects"]
            .map(|name| item.get(name).map_or(0, |number| number.as_n().unwrap().parse().unwrap()))
    }
}

async fn create(client: &Client) {
    let attribute = AttributeDefinition::builder().attribute_name("Key").attribute_type(ScalarAttributeType::S);
    let key = KeySchemaElement::builder().attribute_name("Key").key_type(KeyType::Hash);
    let create = client.create_table().table_name("keys").billing_mode(BillingMode::PayPerRequest);
    let create = create.attribute_definitions(attribute.build().unwrap()).key_schema(key.build().unwrap());
    create.send().await.unwrap();
}

fn told(response: &Response<Bytes>) -> (StatusCode, Value) {
    (response.status(), serde_json::from_slice(response.body()).unwrap())
}

fn path(rest: &str) -> String {
    format!("/stand-ins/{TOKEN}/{rest}")
}

#[tokio::test]
async fn a_key_has_one_effect_over_all_instances_and_its_undo_takes_it_back() {
    let world = World::start().await;
    let (charge, refund) = (path("payment/charge"), path("payment/refund"));
    let first = world.call(0, &charge, "o/p", "{}").await;
    assert_eq!((first.0, first.1["Status"].as_str()), (StatusCode::OK, Some("captured")));
    assert_eq!(world.call(1, &charge, "o/p", "{}").await, first);
    assert_eq!(world.call(1, &refund, "o/p/undo", "{}").await.1["Refunded"], true);
    assert_eq!(world.call(0, &charge, "o/p", "{}").await.1["code"], "already-undone");
    assert_eq!(world.counts("payment/o/p").await, [3, 1, 1, 1]);
}

#[tokio::test]
async fn calls_at_the_same_time_are_all_counted_and_have_one_effect() {
    let world = World::start().await;
    let calls = (0..6).map(|number| {
        let world = &world;
        async move { world.call(number % 2, &path("inventory/reserve"), "o/i", "{}").await }
    });
    let answers = join_all(calls).await;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == StatusCode::OK), "{answers:?}");
    assert_eq!(world.counts("inventory/o/i").await, [6, 1, 0, 0]);
}

#[tokio::test]
async fn a_service_does_as_the_order_tells_it() {
    let world = World::start().await;
    let charge = path("payment/charge");
    let declined = r#"{"StandIn":{"payment":{"Decline":"card_declined"}}}"#;
    let (status, problem) = world.call(0, &charge, "a", declined).await;
    assert_eq!((status, problem["code"].as_str()), (StatusCode::PAYMENT_REQUIRED, Some("card_declined")));
    let flaky = r#"{"StandIn":{"payment":{"Flaky":1,"LoseAnswers":1}}}"#;
    assert_eq!(world.call(0, &charge, "b", flaky).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(world.call(1, &charge, "b", flaky).await.0, StatusCode::GATEWAY_TIMEOUT, "the answer is lost");
    assert_eq!(world.counts("payment/b").await, [2, 1, 0, 0], "but the card was charged");
    assert_eq!(world.call(0, &charge, "b", flaky).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_call_at_work_is_known_to_all_instances_and_has_its_effect_when_it_is_over() {
    let world = World::start().await;
    let charge = path("payment/charge");
    let busy = r#"{"StandIn":{"payment":{"BusyMs":400}}}"#;
    let first = world.call(0, &charge, "a", busy);
    let repeat = async {
        while world.counts("payment/a").await[0] == 0 {
            tokio::task::yield_now().await;
        }
        world.call(1, &charge, "a", busy).await
    };
    let (first, (status, problem)) = tokio::join!(first, repeat);
    assert_eq!((status, problem["code"].as_str()), (StatusCode::CONFLICT, Some("in-use")));
    assert_eq!(
        (first.0, world.counts("payment/a").await),
        (StatusCode::OK, [2, 0, 0, 0]),
        "it is booked at the next look"
    );
    assert_eq!((world.call(1, &charge, "a", busy).await, world.counts("payment/a").await), (first, [3, 1, 0, 0]));

    let pending = r#"{"StandIn":{"payment":{"PendingMs":1}}}"#;
    let (mut status, body) = world.call(0, &charge, "b", pending).await;
    assert_eq!((status, body["status"].as_str()), (StatusCode::ACCEPTED, Some("pending")));
    while status == StatusCode::ACCEPTED {
        status = world.call(1, &charge, "b", pending).await.0;
    }
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn without_the_token_there_is_nothing() {
    let world = World::start().await;
    for path in [
        "/stand-ins/0123456789abcdeX/payment/charge",
        "/payment/charge",
        "/charge",
        &path("payment/ship"),
        &format!("{}/", path("payment/charge")),
    ] {
        assert_eq!(world.call(0, path, "o/p", "{}").await.0, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(world.call(0, &path("bakery/bake"), "o/b", "{}").await.0, StatusCode::OK, "any agent is played");
    let get = Request::get(path("payment/charge")).header("idempotency-key", "o/p").body(Bytes::new()).unwrap();
    assert_eq!(told(&world.instances[0].answer(get).await).0, StatusCode::NOT_FOUND);
    assert_eq!(world.counts("payment/o/p").await, [0; 4]);
    assert!(StandIns::new("short".into(), Table::new(world.client.clone(), "keys".into())).is_err());
}
