//! One HTTP service, for its agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::{Answer, Call, Service};
use bytes::Bytes;
use config::{CALLBACK_URL, IDEMPOTENCY_KEY, Remote, StatusTable, TRACE};
use domain::id::OrderId;
use domain::json::Json;
use domain::trace;
use domain::workflow::{Encoding, Method as CallMethod};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, InvalidHeaderName, InvalidHeaderValue};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use serde::Serialize;

use crate::answer::{Expected, answer_to};
use crate::auth::{Auth, Faulty, Known};
use crate::calls::Calls;
use crate::client::{HttpClient, NoResponse, Responded, Timer, chain, is_of_this_machine};
use crate::form;
use crate::look::{self, state_of};
use crate::poll::Polled;
use crate::settings::AgentSettings;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// A remote service with the HTTP contract of the shipped agents. Cheap to make: all objects share one pool of
/// connections.
#[derive(Debug, Clone)]
pub struct HttpService {
    client: HttpClient,
    remote: Arc<Remote>,
    settings: Arc<AgentSettings>,
    calls: Calls,
}

impl HttpService {
    pub(crate) const fn new(
        client: HttpClient,
        remote: Arc<Remote>,
        settings: Arc<AgentSettings>,
        calls: Calls,
    ) -> Self {
        Self { client, remote, settings, calls }
    }

    async fn send(&self, uri: &Uri, statuses: &StatusTable, call: &Call<'_>) -> Answer {
        let request = match request(uri, &self.settings.headers, call) {
            Ok(request) => request,
            Err(error) => return Answer::fail("unsendable", format!("the call cannot be put into HTTP: {error}")),
        };
        #[cfg(feature = "simulated")]
        let request = crate::client::of_call(request, call);
        let Some(_place) = self.calls.place() else {
            let problem = format!("all {} calls that the limit of open files allows are under way", self.calls.max);
            return Answer::NotCalled { problem };
        };
        // Of the operation: the path of a call has values of the order.
        let operation = if call.look.is_some() { "look" } else { uri.path().rsplit('/').next().unwrap_or_default() };
        trace::posts(operation, uri.host(), uri.port_u16());
        match &self.settings.auth {
            None => {
                if call.is_probe {
                    self.client.renew();
                }
                answer(self.client.request(request).await, self.client.timer(), uri, statuses, call).await
            }
            // Boxed, so that the future of a call without secrets stays small.
            Some(auth) => Box::pin(self.send_as(auth, request, statuses, call)).await.unwrap_or_else(Answer::from),
        }
    }

    /// Sends with secrets. If they are refused it sends once more, if there are others by then.
    async fn send_as(
        &self,
        auth: &Auth,
        request: Request<Full<Bytes>>,
        statuses: &StatusTable,
        call: &Call<'_>,
    ) -> Result<Answer, Faulty> {
        let body = request.body().clone().into_inner().unwrap_or_default();
        let send = async |known: &Known| {
            let mut request = request.clone();
            known.apply(&mut request, &body, call.idempotency_key, call.started_at)?;
            if !(call.may_begin.0)() {
                return Err(Faulty::late());
            }
            Ok::<_, Faulty>(known.client().unwrap_or(&self.client).request(request).await)
        };
        let mut known = auth.ready(call.started_at).await?;
        if call.is_probe {
            known.client().unwrap_or(&self.client).renew();
        }
        let mut response = send(&known).await?;
        if response.as_ref().is_ok_and(|response| auth.is_refusal(response.status()))
            && let Some(renewed) = auth.renewed(&known, call.started_at).await?
        {
            known = renewed;
            response = send(&known).await?;
        }
        if response.is_err() {
            auth.reconnect(&known, call.started_at).await;
        }
        Ok(known.hide(answer(response, self.client.timer(), request.uri(), statuses, call).await))
    }
}

/// The answer to a call: a response, or none.
async fn answer(
    response: Result<Responded, NoResponse>,
    timer: Timer,
    called: &Uri,
    statuses: &StatusTable,
    call: &Call<'_>,
) -> Answer {
    let host = || called.authority().map_or("", |host| host.as_str());
    let problem = |error: &NoResponse| format!("{}: {}", host(), chain(error));
    match response {
        Ok(response) => {
            trace::answered(response.status().as_u16());
            match call.look {
                Some(look) => state_of(response, look, call.keep, call.started_at).await,
                None => {
                    let poll = call.poll.map(|path| Polled::new(path, called, call.timeout_ms, timer));
                    answer_to(response, statuses, Expected { keep: call.keep, poll }, call.started_at).await
                }
            }
        }
        Err(error) if error.is_connect() && is_of_this_machine(&error) => {
            Answer::NotCalled { problem: problem(&error) }
        }
        // Nothing was sent without a connection.
        Err(error) if error.is_connect() => Answer::retry(problem(&error)),
        Err(error) => Answer::unknown(problem(&error)),
    }
}

impl Service for HttpService {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.send(&self.remote.forward, self.settings.forward_statuses(), call).await
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        self.send(&self.remote.undo, self.settings.undo_statuses(), call).await
    }

    async fn look(&mut self, call: &Call<'_>) -> Answer {
        let Some(look) = call.look else { return Answer::under_way() };
        match look::url_of(look, &self.remote) {
            Ok(uri) => self.send(&uri, self.settings.forward_statuses(), call).await,
            Err(problem) => Answer::misconfigured(problem),
        }
    }
}

/// The body of a call whose step has no mapping.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Body<'a> {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    order: &'a Json,
    outputs: &'a BTreeMap<Arc<str>, Json>,
}

/// The call, without what only a call that is made has: the proof of identity.
///
/// # Errors
/// [`Unsendable`].
pub(crate) fn request(uri: &Uri, headers: &HeaderMap, call: &Call<'_>) -> Result<Request<Full<Bytes>>, Unsendable> {
    if call.look.is_some() {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = uri.clone();
        request.headers_mut().extend(headers.clone());
        traced(&mut request);
        return Ok(request);
    }
    let (body, content_type) = match (call.body, call.encode) {
        (Some(body), Encoding::Form) => (form::encoded(body.text())?.into(), Some(FORM)),
        (Some(body), Encoding::Json) => (body.text().to_owned().into(), Some(JSON)),
        (_, Encoding::Empty) => (Bytes::new(), None),
        (None, _) if !call.method.has_usual_body() => (Bytes::new(), None),
        (None, _) => {
            let body = Body { order_id: call.order_id, order: call.order, outputs: call.outputs };
            // Most bodies fit, so the text is not copied while it grows.
            let mut text = Vec::with_capacity(call.order.text().len() + 512);
            serde_json::to_writer(&mut text, &body)?;
            (Bytes::from(text), Some(JSON))
        }
    };
    // The client leaves the length of an empty body out, and some servers answer a POST without one by 411.
    let is_empty = body.is_empty() && call.method.has_usual_body();
    let mut request = Request::new(Full::new(body));
    (*request.method_mut(), *request.uri_mut()) = (method(call.method), below(uri, call.path)?);
    let own = request.headers_mut();
    own.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(call.idempotency_key)?);
    if let Some(content_type) = content_type {
        own.insert(CONTENT_TYPE, content_type);
    }
    if is_empty {
        own.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if let Some(url) = call.callback_url {
        own.insert(CALLBACK_URL, HeaderValue::from_str(url)?);
    }
    own.extend(headers.clone());
    for (name, value) in call.headers {
        own.insert(HeaderName::try_from(&**name)?, HeaderValue::from_str(value)?);
    }
    traced(&mut request);
    Ok(request)
}

fn traced(request: &mut Request<Full<Bytes>>) {
    if let Some(span) = trace::current()
        && let Ok(span) = HeaderValue::try_from(span.to_string())
    {
        request.headers_mut().insert(TRACE, span);
    }
}

const fn method(of: CallMethod) -> Method {
    match of {
        CallMethod::Post => Method::POST,
        CallMethod::Get => Method::GET,
        CallMethod::Put => Method::PUT,
        CallMethod::Patch => Method::PATCH,
        CallMethod::Delete => Method::DELETE,
    }
}

/// The URL of an operation, with the path of the call below it, or its query.
fn below(operation: &Uri, path: Option<&str>) -> Result<Uri, InvalidUri> {
    match path {
        Some(query) if query.starts_with('?') => format!("{operation}{query}").parse(),
        Some(path) => format!("{}/{path}", operation.to_string().trim_end_matches('/')).parse(),
        None => Ok(operation.clone()),
    }
}

/// A key that no header can hold, for instance. This system makes no such key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error(transparent)]
    Body(#[from] serde_json::Error),
    #[error(transparent)]
    Path(#[from] InvalidUri),
    #[error(transparent)]
    Name(#[from] InvalidHeaderName),
    #[error(transparent)]
    Header(#[from] InvalidHeaderValue),
}
