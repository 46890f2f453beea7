//! The order of the bench as a handler of Restate: three calls in a row, each result durable before the next one, and the
//! first one undone where the payment is declined.
//!
//!     peer ADDRESS INVENTORY PAYMENT SHIPPING

use std::io;
use std::net::SocketAddr;

use reqwest::{Client, StatusCode};
use restate_sdk::prelude::*;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};

struct Order {
    client: Client,
    inventory: String,
    payment: String,
    shipping: String,
}

#[object]
impl Order {
    #[handler]
    async fn carry(&self, context: ObjectContext<'_>, document: Json<Value>) -> Result<Json<Value>, HandlerError> {
        let key = context.key().to_owned();
        let document = document.into_inner();
        self.step(&context, "reserve", &self.inventory, &key, &document).await?;
        let charged = self.step(&context, "charge", &self.payment, &key, &document).await;
        if charged.is_err() {
            self.step(&context, "release", &self.inventory, &key, &document).await?;
            return Ok(json!({"ProcessState": "Compensated"}).into());
        }
        self.step(&context, "ship", &self.shipping, &key, &document).await?;
        Ok(json!({"ProcessState": "Processed"}).into())
    }
}

impl Order {
    /// One call, which is repeated until it is answered. An error is a rejection.
    async fn step(
        &self,
        context: &ObjectContext<'_>,
        name: &'static str,
        service: &str,
        key: &str,
        document: &Value,
    ) -> Result<Json<Value>, TerminalError> {
        let (client, url) = (self.client.clone(), format!("http://{service}/{name}"));
        let (key, body) = (format!("{key}/{name}"), json!({"OrderID": key, "Order": document}).to_string());
        context.run(move || call(client, url, key, body)).name(name).await
    }
}

async fn call(client: Client, url: String, key: String, body: String) -> Result<Json<Value>, HandlerError> {
    let request = client.post(url).header("idempotency-key", key).header("content-type", "application/json");
    let answer = request.body(body).send().await?;
    let status = answer.status();
    let body = answer.bytes().await?;
    match status {
        StatusCode::OK => Ok(Json::from(serde_json::from_slice::<Value>(&body)?)),
        StatusCode::PAYMENT_REQUIRED => Err(TerminalError::new_with_code(status.as_u16(), "declined").into()),
        _ => Err(format!("HTTP {status}").into()),
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Ok([address, inventory, payment, shipping]) = <[String; 4]>::try_from(arguments) else {
        eprintln!("usage: peer ADDRESS INVENTORY PAYMENT SHIPPING");
        std::process::exit(2);
    };
    let address: SocketAddr = match address.parse() {
        Ok(address) => address,
        Err(error) => {
            eprintln!("{address}: {error}");
            std::process::exit(2);
        }
    };
    let order = Order { client: Client::new(), inventory, payment, shipping };
    let listener = match listener(address) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("{address}: {error}");
            std::process::exit(1);
        }
    };
    println!("ready");
    HttpServer::new(Endpoint::builder().bind(order).build()).serve(listener).await;
}

/// Its connections send small packets at once, as this listener says. With the SDK's own, a step alone takes 40 ms more.
fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    socket.listen(1_024)
}
