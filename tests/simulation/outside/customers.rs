//! Customers and operators at the API.

use api::{ApiConfig, ApiPorts, Caller};
use domain::id::OrderId;
use http::{Request, Response};

use super::{Shared, sleep};

/// After a while a customer posts its order, unless it knows that it was accepted. Returns an order that was accepted
/// before.
pub(in crate::simulation) async fn post(
    outside: &Shared,
    ports: &impl ApiPorts,
    config: &ApiConfig,
    number: usize,
) -> Option<OrderId> {
    let (customer, wait_ms) = {
        let mut outside = outside.lock();
        let customer = outside.customers[number].clone();
        // A script takes hours, in which nothing is to be seen most of the time.
        let longest_ms = if outside.scene.is_some() && customer.order.is_some() { 60_000 } else { 3_000 };
        let until_ms = (customer.from_ms - outside.clock.now_ms()).max(0).unsigned_abs();
        let wait_ms = until_ms + outside.rng.between(0, longest_ms);
        (customer, wait_ms)
    };
    sleep(wait_ms).await;
    if customer.order.is_some() {
        return customer.order;
    }
    let post = Request::post("/orders").header("Idempotency-Key", &customer.key).body(customer.document);
    let answer = api::handle(ports, config, &Caller::unrestricted("customer"), post.unwrap_or_default()).await;
    if let (200 | 202, Some(order)) = (answer.status().as_u16(), order_in(&answer)) {
        let mut outside = outside.lock();
        outside.note(&format!("customer-{number}").into(), Some(order), "accepted");
        outside.customers[number].order = Some(order);
    }
    None
}

/// Now and then an operator acts on an order.
pub(in crate::simulation) async fn may_act(
    outside: &Shared,
    ports: &impl ApiPorts,
    config: &ApiConfig,
    order: OrderId,
) {
    let action = {
        let mut outside = outside.lock();
        let acts = outside.strikes("operator", 300);
        acts.then(|| outside.rng.pick(&["cancel", "resubmit", "pause", "resume", "close", "approve", "reject"]))
    };
    if let Some(action) = action {
        act(ports, config, order, action).await;
    }
}

/// An operator asks for something. It may be refused.
pub(in crate::simulation) async fn act(ports: &impl ApiPorts, config: &ApiConfig, order: OrderId, action: &str) {
    let wish = Request::post(format!("/orders/{order}/{action}")).body(r#"{"By":"op","Reason":"why not"}"#.into());
    let _ = api::handle(ports, config, &Caller::unrestricted("op"), wish.unwrap_or_default()).await;
}

fn order_in(response: &Response<bytes::Bytes>) -> Option<OrderId> {
    response.headers().get("Location")?.to_str().ok()?.rsplit('/').next()?.parse().ok()
}
