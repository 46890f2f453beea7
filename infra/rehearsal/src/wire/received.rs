//! A request as its service receives it.

use std::collections::BTreeMap;
use std::sync::Arc;

use agents::CallOf;
use bytes::Bytes;
use config::{CALLBACK_URL, IDEMPOTENCY_KEY, TRACE};
use domain::id::OrderId;
use domain::json::Json;
use domain::message::idempotency_key;
use domain::task::Direction;
use domain::workflow::{Encoding, Method};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use http::{Method as HttpMethod, Request, Uri};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use serde_json::value::RawValue;

use super::API;
use crate::observe;
use crate::observe::hash_of;
use crate::seen::{Body, Try, Way};
use crate::state::State;
use crate::state::services::Received;

/// What the name of an agent's service ends with. Its URL is `https://{agent}.example/v1`.
const DOMAIN: &str = ".example";
/// Who issues tokens.
const TOKENS: &str = "tokens.example";
/// The path of its URL.
const BASE: &str = "/v1/";
/// Between the place of an agent and the domain.
const PLACED: &str = ".agent";
/// The methods of calls.
const METHODS: [Method; 5] = [Method::Post, Method::Get, Method::Put, Method::Patch, Method::Delete];
/// Headers that are no step's.
const USUAL: [HeaderName; 6] = [IDEMPOTENCY_KEY, CALLBACK_URL, TRACE, CONTENT_TYPE, CONTENT_LENGTH, AUTHORIZATION];

/// Whether it is a call, and no question for the state of one.
pub(super) fn is_call(request: &Request<Bytes>) -> bool {
    request.method() != HttpMethod::GET || request.headers().contains_key(IDEMPOTENCY_KEY)
}

/// A call, as the service of its URL receives it; `None` if there is no such service, or no such step.
pub(super) fn received(state: &State, request: &Request<Bytes>, call: &CallOf) -> Option<Received> {
    let of = of(state, call)?;
    let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let encode = match header(CONTENT_TYPE) {
        Some("application/x-www-form-urlencoded") => Encoding::Form,
        Some(_) => Encoding::Json,
        None => Encoding::Empty,
    };
    let agent = service(state, request.uri())?;
    let key = header(IDEMPOTENCY_KEY).unwrap_or_default().into();
    let callback: Option<Arc<str>> = header(CALLBACK_URL).and_then(|url| url.strip_prefix(API)).map(Arc::from);
    let timeout_ms = call.timeout_ms;
    if state.setup.services[agent].described.is_some() {
        // Nobody compares what it is sent.
        let body = Body::whole(0, BTreeMap::new());
        let (started_at, authorization) = (call.started_at, None);
        return Some(Received { of, agent, key, body, started_at, timeout_ms, authorization, callback });
    }
    let text = std::str::from_utf8(request.body()).unwrap_or_default();
    let (document, outputs, members) = match encode {
        Encoding::Empty => (None, BTreeMap::new(), None),
        Encoding::Form => (None, BTreeMap::new(), Some(form(state, call.order_id, text))),
        Encoding::Json => json(state, call.order_id, text),
    };
    let own = request.headers().iter().filter(|(name, _)| !USUAL.contains(name));
    let body = Body {
        document,
        outputs,
        members,
        encode,
        path: below(request.uri(), of.way),
        method: METHODS.into_iter().find(|method| method.name() == request.method().as_str()).unwrap_or_default(),
        headers: own
            .map(|(name, value)| (name.as_str().into(), String::from_utf8_lossy(value.as_bytes()).into()))
            .collect(),
    };
    let authorization = authorization(request).map(Arc::from);
    Some(Received { of, agent, key, body, started_at: call.started_at, timeout_ms, authorization, callback })
}

/// The agent whose service is asked for the state of a call, and the number of the call. A service that is described may
/// be asked at any path.
pub(super) fn asked(state: &State, request: &Request<Bytes>, call: &CallOf) -> Option<(usize, Option<u64>)> {
    let agent = service(state, request.uri())?;
    if state.setup.services[agent].described.is_some() {
        let polled = state.remotes.polled.iter().rev();
        let is_its =
            |(_, (place, _, key)): &(&u64, &(usize, Try, Arc<str>))| *place == agent && *key == call.idempotency_key;
        return Some((agent, polled.into_iter().find(is_its).map(|(number, _)| *number)));
    }
    let number = request.uri().path().strip_prefix(BASE)?.strip_prefix("calls/");
    Some((agent, number.and_then(|number| number.parse().ok())))
}

/// The agent whose service takes the token that is fetched.
pub(super) fn issuer(state: &State, request: &Request<Bytes>) -> Option<usize> {
    let agent = request.uri().path().strip_prefix('/').filter(|_| request.uri().host() == Some(TOKENS))?;
    state.setup.shape.place_of(agent)
}

/// The proof of a caller.
pub(super) fn authorization(request: &Request<Bytes>) -> Option<&str> {
    request.headers().get(AUTHORIZATION)?.to_str().ok()
}

/// The agent whose service has this URL: by its name, or its place.
fn service(state: &State, uri: &Uri) -> Option<usize> {
    let host = uri.host()?.strip_suffix(DOMAIN)?;
    match host.strip_suffix(PLACED) {
        Some(place) => place.parse().ok().filter(|place| *place < state.setup.shape.agents.len()),
        None => state.setup.shape.place_of(host),
    }
}

/// The URL of the service of the agent at this place, whatever its name.
#[must_use]
pub fn url_of(place: usize) -> String {
    format!("https://{place}{PLACED}{DOMAIN}/v1")
}

/// The attempt of a call.
pub(super) fn of(state: &State, call: &CallOf) -> Option<Try> {
    let is_undo = *call.idempotency_key == *idempotency_key(call.order_id, &call.step, Direction::Undo);
    let direction = if is_undo { Direction::Undo } else { Direction::Forward };
    state.attempt_of(call.order_id, &call.step, direction, call.attempt)
}

/// The path below the operation of this direction. Of another operation it is the whole path.
fn below(uri: &Uri, way: Way) -> Option<Arc<str>> {
    let operation = match way {
        Way::Forward => "do",
        Way::Undo => "undo",
    };
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    match path.strip_prefix(BASE).and_then(|path| path.strip_prefix(operation)) {
        Some("") => None,
        Some(rest) if rest.starts_with(['/', '?']) => Some(rest.strip_prefix('/').unwrap_or(rest).into()),
        Some(_) | None => Some(path.into()),
    }
}

type Carried = (Option<u64>, BTreeMap<usize, u64>, Option<BTreeMap<Arc<str>, u64>>);

/// The order and the outputs of the steps, or the members of another body.
fn json(state: &State, order: OrderId, text: &str) -> Carried {
    let mut members: BTreeMap<Arc<str>, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
    let is_of = members.get("OrderID").is_some_and(|id| id.get() == format!("\"{order}\""));
    if is_of
        && members.len() == 3
        && let (Some(document), Some(outputs)) = (members.remove("Order"), members.remove("Outputs"))
    {
        let outputs: BTreeMap<&str, &RawValue> = serde_json::from_str(outputs.get()).unwrap_or_default();
        let place = |step: &str| state.setup.shape.index_of(step).unwrap_or(usize::MAX);
        let outputs = outputs.into_iter().map(|(step, output)| (place(step), observe::hash_of_value(output.get())));
        return (Some(hash_of(document.get())), outputs.collect(), None);
    }
    let members = members.into_iter().map(|(name, value)| (name, observe::hash_of_value(value.get())));
    (None, BTreeMap::new(), Some(members.collect()))
}

/// The members of a form. It has lost the order and the kinds of what is nested, so this counts as the document or the
/// output of the order that has the same form.
fn form(state: &State, order: OrderId, text: &str) -> BTreeMap<Arc<str>, u64> {
    let mut members: BTreeMap<Arc<str>, BTreeMap<String, String>> = BTreeMap::new();
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    for field in text.split('&') {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let name = plain(name);
        let (member, inner) = name.split_at(name.find('[').unwrap_or(name.len()));
        members.entry(member.into()).or_default().insert(inner.to_owned(), plain(value));
    }
    let document = state.tables.order(order).map(|order| order.document.clone());
    let outputs =
        state.tables.task(order).into_iter().flat_map(|task| task.steps.clone()).filter_map(|step| step.output);
    let value = |known: &Json| serde_json::from_str(known.text()).unwrap_or_default();
    let known: Vec<_> = document.into_iter().chain(outputs).map(|known| (fields(&value(&known)), known)).collect();
    let hash = |fields: BTreeMap<String, String>| match fields.get("") {
        Some(text) => hash_of(&Value::from(text.as_str()).to_string()),
        None => known
            .iter()
            .find(|(known, _)| *known == fields)
            .map_or_else(|| hash_of(&format!("{fields:?}")), |(_, known)| observe::hash(known)),
    };
    members.into_iter().map(|(name, fields)| (name, hash(fields))).collect()
}

/// The fields of a value in a form.
fn fields(value: &Value) -> BTreeMap<String, String> {
    let of = |inner: &str, value: &Value| {
        let named = |(rest, text)| (format!("[{inner}]{rest}"), text);
        fields(value).into_iter().map(named).collect::<Vec<_>>()
    };
    match value {
        Value::Null => BTreeMap::new(),
        Value::Object(members) => members.iter().flat_map(|(name, value)| of(name, value)).collect(),
        Value::Array(elements) => {
            elements.iter().enumerate().flat_map(|(index, value)| of(&index.to_string(), value)).collect()
        }
        Value::String(text) => [(String::new(), text.clone())].into(),
        Value::Bool(_) | Value::Number(_) => [(String::new(), value.to_string())].into(),
    }
}

#[cfg(test)]
mod tests {
    use domain::time::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::testing;

    /// A call of the first step, with this method, path and body.
    fn call(method: &str, path: &str, body: &'static str) -> (Request<Bytes>, CallOf) {
        let order_id = OrderId::from_idempotency_key("test", "wire");
        let key = idempotency_key(order_id, "s0", Direction::Forward);
        let request = Request::builder()
            .method(method)
            .uri(format!("https://money.example{path}"))
            .header(IDEMPOTENCY_KEY, &*key)
            .header(CONTENT_TYPE, "application/json")
            .header(CALLBACK_URL, "http://api/callbacks/token")
            .header("X-Key", "7");
        let call = CallOf {
            order_id,
            step: "s0".into(),
            idempotency_key: key,
            attempt: 3,
            started_at: Timestamp::from_epoch_ms(0),
            timeout_ms: 1_000,
        };
        (request.body(Bytes::from_static(body.as_bytes())).unwrap(), call)
    }

    #[test]
    fn a_service_knows_a_call_by_what_is_sent() {
        let state = testing::state(testing::setup());
        let (request, call) = call("PUT", "/v1/do/v1-s0/7?a=b", "{\"From\":\"v1-s0\"}");
        let received = received(&state, &request, &call).unwrap();
        assert_eq!((received.of.attempt, received.agent, &received.key), (3, 1, &call.idempotency_key));
        assert_eq!(received.callback.as_deref(), Some("/callbacks/token"));
        let body = received.body;
        assert_eq!((body.method, body.path.as_deref()), (Method::Put, Some("v1-s0/7?a=b")));
        assert_eq!(body.headers, BTreeMap::from([("x-key".into(), "7".into())]));
        assert_eq!(body.members, Some([("From".into(), hash_of("\"v1-s0\""))].into()));
    }

    #[test]
    fn the_usual_body_is_the_order_and_its_outputs_if_it_is_of_this_order() {
        let state = testing::state(testing::setup());
        let order = OrderId::from_idempotency_key("test", "wire");
        let text = |id: &str| format!("{{\"OrderID\":\"{id}\",\"Order\":{{\"A\":1}},\"Outputs\":{{\"s0\":7}}}}");
        let usual = (Some(hash_of("{\"A\":1}")), BTreeMap::from([(0, hash_of("7"))]), None);
        assert_eq!(json(&state, order, &text(&order.to_string())), usual);
        assert!(json(&state, order, &text("another")).0.is_none());
    }

    #[test]
    fn a_path_of_another_operation_is_shown_whole() {
        let path = |path: &str, way| below(&path.parse().unwrap(), way).as_deref().map(str::to_owned);
        assert_eq!(path("https://a/v1/undo", Way::Undo), None);
        assert_eq!(path("https://a/v1/undo?a=b", Way::Undo).as_deref(), Some("?a=b"));
        assert_eq!(path("https://a/v1/undo", Way::Forward).as_deref(), Some("/v1/undo"));
        assert_eq!(path("https://a/do", Way::Forward).as_deref(), Some("/do"));
    }

    #[test]
    fn a_value_has_the_fields_that_a_form_gives_it() {
        let fields = fields(&json!({"a": {"b": [1, "x"]}, "c": null, "d": true}));
        let wanted = [("[a][b][0]", "1"), ("[a][b][1]", "x"), ("[d]", "true")];
        assert_eq!(fields, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}
