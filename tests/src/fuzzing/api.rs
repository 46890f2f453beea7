//! The API as a whole: any request.

use api::{ApiConfig, Caller};
use bytes::Bytes;
use domain::ports::{Inserted, Records, Seen, Source, Store};
use domain::task::{ProcessState, Watch};
use futures_util::FutureExt;
use http::{Request, Response};
use serde_json::Value;

use super::text::Text;
use crate::conformance::samples;
use crate::world::{drive, now};
use memory::Memory;
use memory::faulty::Faulty;

/// The reply channel that the API knows.
const CHANNEL: &str = "shop-replies";

/// Every request is answered: never by a fault of ours, always in JSON, and where it is refused by a problem document, and
/// then nothing was queued.
///
/// The input is a method and a path, headers, and a body.
pub(super) fn run(input: &[u8]) {
    let Some(Text { first, headers, body }) = Text::of(input) else { return };
    let Some((method, target)) = first.split_once(' ') else { return };
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let Ok(request) = request.body(Bytes::copy_from_slice(body)) else { return };
    let memory = memory();
    let repeat = request.clone();
    let response = answer(&memory, request);
    check(method, &response);
    let has_key = repeat.headers().contains_key("idempotency-key");
    let is_order = method == "POST" && repeat.uri().path() == "/orders";
    let queued = queued(&memory);
    let (status, is_accepted) = (response.status().as_u16(), response.status().is_success());
    assert!(is_accepted || queued == 0, "it was refused, and queued all the same");
    if is_order && is_accepted {
        assert!(response.headers().contains_key("location"));
        assert_eq!(queued, 1, "an order that is accepted is queued");
    }
    if is_order && has_key {
        assert_eq!(answer(&memory, repeat).status().as_u16(), status, "the same answer to the same request");
    }
}

fn answer(memory: &Memory, request: Request<Bytes>) -> Response<Bytes> {
    let ports = Faulty::new(memory.clone());
    let api_config = ApiConfig::new([CHANNEL]).with_services(["inventory", "payment"]);
    drive(memory, &ports, api::handle(&ports, &api_config, &Caller::unrestricted("shop"), request)).expect("an answer")
}

fn check(method: &str, response: &Response<Bytes>) {
    let status = response.status();
    assert!(status.is_success() || status.is_client_error() || status == 304, "{response:?}");
    if method == "HEAD" || status == 304 {
        assert!(response.body().is_empty());
        return;
    }
    let kind = response.headers()["content-type"].to_str().expect("a type");
    if status.is_success() && kind.starts_with("text/") {
        // A page for people.
        return;
    }
    assert_eq!(kind, if status.is_success() { "application/json" } else { "application/problem+json" });
    let body: Value = serde_json::from_slice(response.body()).expect("JSON");
    if status.is_client_error() {
        assert_eq!(body["status"], status.as_u16());
        assert!(body["type"].as_str().is_some_and(|kind| kind.starts_with("/problems/")), "{body}");
        assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
    }
}

/// Ports with an order in each of three states, a job and a dead letter.
pub(super) fn memory() -> Memory {
    let memory = Memory::new(samples::NOON, 7);
    for (n, state) in [(1, ProcessState::Pending), (2, ProcessState::Error), (3, ProcessState::Processed)] {
        let order = samples::order(n);
        let mut task = samples::task(&order);
        task.process_state = state;
        if let ProcessState::Error = state {
            task.watch = task.watch.map(|watch| Watch::Error(watch.shard()));
        }
        assert_eq!(now(memory.insert(order.into(), task.into())).expect("a store"), Inserted::New);
    }
    now(memory.put(Seen::nothing(samples::NOON), &samples::job("j1", 0))).expect("a store");
    now(memory.put(Seen::nothing(samples::NOON), &samples::dead_letter(1, 0))).expect("a store");
    memory
}

/// Messages that somebody queued.
fn queued(memory: &Memory) -> usize {
    let orders = memory.submissions().receive(10).now_or_never().unwrap_or_default().len();
    orders + memory.scheduler().receive(10).now_or_never().unwrap_or_default().len()
}
