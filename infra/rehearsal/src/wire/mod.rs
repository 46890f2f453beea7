//! The network of a world: what the HTTP agents that ship send comes to the services, and what these say goes back.
//!
//! A service knows a call by its request alone, as it is received. Only the attempt and the time-out, which no service
//! can know, come from beside it ([`CallOf`]).

mod received;
mod reply;

use std::collections::BTreeMap;
use std::future::pending;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;

use agent::Answer;
use agents::{CallOf, Callbacks, Fleet, Host, HttpClients, Network, NetworkBody, NetworkError, NothingApplied, Secret};
use bytes::Bytes;
use domain::json::Json;
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt, stream};
use http::{Request, Response};
use serde_json::{Value, json};

use crate::described::Described;
use crate::faults::Fault;
use crate::seen::{Seen, Try};
use crate::sleep::Sleep;
use crate::state::books::Said;
use crate::state::services::AnswerOf;
use crate::state::tokens::Fetch;
use crate::state::{Shared, State};
use crate::who::{BETWEEN, Who};

pub use received::url_of;

/// The base URL of the API.
pub const API: &str = "http://api";
/// Every secret: a text that is also one of Standard Webhooks.
const SECRET: &str = "whsec_c2ltdWxhdGVkLXNlY3JldC1vZi0yNC1ieXRlcw==";

type Responded = Result<Response<NetworkBody>, NetworkError>;

/// The network of one instance of an agent.
#[derive(Clone)]
struct Wire {
    shared: Shared,
    who: Who,
}

/// The agents of an instance with this name and clock error. It has no other part of the host than its settings, and the
/// policies of the world.
#[must_use]
pub fn fleet(shared: &Shared, name: Arc<str>, skew_ms: i64) -> Fleet<NothingApplied> {
    let setup = shared.lock().setup.clone();
    let host = Host {
        settings: setup.settings.clone(),
        source: "the settings of the world".to_owned(),
        urls: BTreeMap::new(),
        stand_ins: None,
        callbacks: Some(Callbacks::below(API, setup.catalogue(&setup.shape.first))),
        policy: Box::new(move |agent, settings| {
            if let Some(place) = setup.shape.place_of(agent) {
                settings.policy = setup.policies[place].clone();
            }
        }),
        secrets: Arc::new(|_| ready(Ok(Secret::new(SECRET))).boxed()),
    };
    let who = Who { name, invocation: 0, skew_ms, phase: Arc::new(AtomicU8::new(BETWEEN)) };
    Fleet::new(NothingApplied, host, HttpClients::over(Arc::new(Wire { shared: shared.clone(), who })))
}

impl Network for Wire {
    fn request(&self, request: Request<Bytes>) -> BoxFuture<'static, Responded> {
        let this = self.clone();
        async move {
            let call = request.extensions().get::<CallOf>().cloned();
            match call {
                Some(call) if received::is_call(&request) => this.call(&request, &call).await,
                Some(call) => this.look(&request, &call).await,
                None if this.shared.lock().setup.is_described() => Ok(reply::token()),
                None => this.token(&request).await,
            }
        }
        .boxed()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Sleep::new(self.shared.clone(), u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).boxed()
    }
}

impl Wire {
    /// A call goes to its service, and the answer comes back.
    async fn call(&self, request: &Request<Bytes>, call: &CallOf) -> Responded {
        let made = {
            let mut state = self.shared.lock();
            let received = received::received(&state, request, call).ok_or_else(nowhere)?;
            let (of, agent) = (received.of, received.agent);
            Answered { of, agent, id: state.begin_call(&self.who, received) }
        };
        let said = AnswerOf { shared: self.shared.clone(), id: made.id }.await;
        let heard = Seen::Answered { of: made.of, call: made.id, heard: said.heard() };
        let mut state = self.shared.lock();
        let is_slow = matches!(said, Said::Answers(Answer::Done(_))) && state.strikes(Fault::BodySlow);
        if !is_slow {
            state.see(&self.who.name, &heard);
        }
        match said {
            Said::Answers(answer) => Ok(self.respond(&mut state, &made, &answer, is_slow.then_some(heard))),
            Said::Unconnected => Err(NetworkError::Unconnected(ErrorKind::ConnectionRefused.into())),
            // The answer is lost, or a part of it.
            Said::Breaks if made.id.is_multiple_of(2) => Err(NetworkError::Broken(ErrorKind::ConnectionReset.into())),
            Said::Breaks => {
                let answer = Answer::Done(Json::empty());
                let pieces = [Ok(Bytes::from_static(b"{\"Number")), Err(ErrorKind::UnexpectedEof.into())];
                Ok(reply::respond(200, &answer, NetworkBody::of(stream::iter(pieces)), state.clock(0)))
            }
            Said::Panics => {
                drop(state);
                // Not `panic!`, which would print: this panic is caught.
                resume_unwind(Box::new("a client panics on purpose"))
            }
        }
    }

    /// An answer on its way. Of one whose body comes in pieces, this is heard with the last.
    fn respond(
        &self,
        state: &mut State,
        made: &Answered,
        answer: &Answer,
        heard: Option<Seen>,
    ) -> Response<NetworkBody> {
        if let Some(after_ms) = reply::wait_ms(answer) {
            let until_ms = state.now_ms.saturating_add_unsigned(after_ms);
            state.see(&self.who.name, &Seen::AskedToWait { of: made.of, by: self.who.name.clone(), until_ms });
        }
        if let Some(described) = &state.setup.services[made.agent].described {
            let said = described.puts(answer, state.said_of(described, made.of));
            return reply::as_described(said, Some(made.id));
        }
        let (status, body) = state.setup.services[made.agent].manner.puts(answer, made.of.way, made.id);
        let body = Bytes::from(body);
        let body = match heard {
            None => body.into(),
            Some(heard) => {
                let ms = state.of_http.between(1, 2_000);
                let (this, rest) = (self.clone(), body.slice(body.len() / 2..));
                let last = async move {
                    Sleep::new(this.shared.clone(), ms).await;
                    this.shared.lock().see(&this.who.name, &heard);
                    Ok(rest)
                };
                let first = Ok(body.slice(..body.len() / 2));
                NetworkBody::of(stream::iter([first]).chain(stream::once(last)))
            }
        };
        reply::respond(status, answer, body, state.clock(0))
    }

    /// The state of a call is asked. The question has no effect.
    async fn look(&self, request: &Request<Bytes>, call: &CallOf) -> Responded {
        let told = {
            let mut state = self.shared.lock();
            let now = state.clock(0);
            let (agent, number) = received::asked(&state, request, call).ok_or_else(nowhere)?;
            let answer = match state.lets_in(agent, received::authorization(request)) {
                true => state.state_of(agent, number),
                false => Some(Answer::misconfigured("401")),
            };
            let described = state.setup.services[agent].described.clone();
            let of = received::of(&state, call);
            answer.map(|answer| match (described, of) {
                (Some(described), Some(of)) => {
                    reply::as_described(Described::tells(&answer, state.said_of(&described, of)), None)
                }
                (_, _) => reply::to_look(&answer, now),
            })
        };
        match told {
            Some(response) => Ok(response),
            // It is silent.
            None => pending().await,
        }
    }

    /// A token is fetched.
    async fn token(&self, request: &Request<Bytes>) -> Responded {
        let fetch = Fetch::begin(&self.shared, &self.who);
        let (agent, ms) = {
            let mut state = self.shared.lock();
            let agent = received::issuer(&state, request).ok_or_else(nowhere)?;
            let longest_ms = state.setup.service_ms;
            (agent, state.of_http.between(0, longest_ms))
        };
        Sleep::new(self.shared.clone(), ms).await;
        drop(fetch);
        let mut state = self.shared.lock();
        let (issued, now) = (state.issue(agent), state.clock(0));
        let (status, body) = match issued {
            Some((token, life_ms)) => {
                (200, json!({"access_token": token, "token_type": "Bearer", "expires_in": life_ms / 1_000}))
            }
            None => (503, Value::Null),
        };
        Ok(reply::respond(status, &Answer::under_way(), Bytes::from(body.to_string()).into(), now))
    }
}

/// The call that is answered.
struct Answered {
    of: Try,
    agent: usize,
    id: u64,
}

fn nowhere() -> NetworkError {
    NetworkError::Unconnected(ErrorKind::HostUnreachable.into())
}
