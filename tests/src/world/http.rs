//! The API, as an application meets it.

use api::{ApiConfig, Caller};
use bytes::Bytes;
use domain::id::OrderId;
use serde_json::Value;

use super::{World, drive};

/// The application that posts.
const CALLER: &str = "shop";

/// What the API answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

impl World {
    /// `POST /orders` with this key, at an API that knows the reply channel `shop-replies`. `None`: it died.
    ///
    /// # Panics
    /// When the answer is no JSON.
    pub fn post_to_api(&self, key: &str, document: &str) -> Option<Posted> {
        let request = http::Request::post("/orders")
            .header("Idempotency-Key", key)
            .header("Content-Type", "application/json")
            .body(Bytes::from(document.to_owned()))
            .expect("a request");
        let api_config = ApiConfig::new(["shop-replies"]);
        let response = drive(
            &self.memory,
            &self.ports,
            api::handle(&self.ports, &api_config, &Caller::unrestricted(CALLER), request),
        )?;
        let body = serde_json::from_slice(response.body()).expect("JSON");
        Some(Posted { status: response.status().as_u16(), body })
    }

    /// The id that the API gives to an order with this key.
    #[must_use]
    pub fn order_of_key(&self, key: &str) -> OrderId {
        OrderId::from_idempotency_key(CALLER, key)
    }
}
