//! One HTTP service, for its agent.

mod once;

use std::sync::Arc;

use agent::{Answer, Call, Service};
use bytes::Bytes;
use config::{Remote, StatusTable};
use domain::trace;
use http::{Request, Uri};
use http_body_util::Full;
use http_call::request;

use crate::answer::{Expected, answer_to};
use crate::auth::{Auth, Faulty, Known};
use crate::calls::Calls;
use crate::client::{HttpClient, NoResponse, Responded, Timer, chain, is_of_this_machine};
use crate::look::{self, state_of};
use crate::poll::Polled;
use crate::settings::AgentSettings;

pub use once::{Answered, Proof};

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
            Ok(request) => request.map(Full::new),
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
        Err(error) => unanswered(&error, called),
    }
}

/// What it means that no response came.
fn unanswered(error: &NoResponse, called: &Uri) -> Answer {
    let problem = format!("{}: {}", called.authority().map_or("", |host| host.as_str()), chain(error));
    match error.is_connect() {
        true if is_of_this_machine(error) => Answer::NotCalled { problem },
        // Nothing was sent without a connection.
        true => Answer::retry(problem),
        false => Answer::unknown(problem),
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
