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

use agents::{CallOf, Callbacks, Fleet, Host, HttpClients, Network, NetworkBody, NetworkError, NothingApplied, Secret};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use http::{Request, Response};

use crate::seen::Seen;
use crate::sleep::Sleep;
use crate::state::Shared;
use crate::state::books::Said;
use crate::state::services::AnswerOf;
use crate::who::{BETWEEN, Who};

/// The base URL of the API.
pub const API: &str = "http://api";

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
        secrets: Arc::new(|reference| ready(Ok(Secret::new(&reference.name))).boxed()),
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
                Some(_) => this.look(&request).await,
                None => Err(NetworkError::Unconnected(ErrorKind::HostUnreachable.into())),
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
        let (of, id, agent) = {
            let mut state = self.shared.lock();
            let Some(received) = received::received(&state, request, call) else {
                return Err(NetworkError::Unconnected(ErrorKind::HostUnreachable.into()));
            };
            let (of, agent) = (received.of, received.agent);
            (of, state.begin_call(&self.who, received), agent)
        };
        let said = AnswerOf { shared: self.shared.clone(), id }.await;
        let mut state = self.shared.lock();
        state.see(&self.who.name, &Seen::Answered { of, call: id, heard: said.heard() });
        match said {
            Said::Answers(answer) => {
                let (status, body) = state.setup.services[agent].manner.puts(&answer, of.way, id);
                Ok(reply::respond(status, &answer, Bytes::from(body).into(), state.clock(0)))
            }
            Said::Unconnected => Err(NetworkError::Unconnected(ErrorKind::ConnectionRefused.into())),
            Said::Breaks => Err(NetworkError::Broken(ErrorKind::ConnectionReset.into())),
            Said::Panics => {
                drop(state);
                // Not `panic!`, which would print: this panic is caught.
                resume_unwind(Box::new("a client panics on purpose"))
            }
        }
    }

    /// The state of a call is asked. The question has no effect.
    async fn look(&self, request: &Request<Bytes>) -> Responded {
        let told = {
            let mut state = self.shared.lock();
            let asked = received::asked(&state, request);
            let now = state.clock(0);
            state.state_of(asked).map(|answer| reply::to_look(&answer, now))
        };
        match told {
            Some(response) => Ok(response),
            // It is silent.
            None => pending().await,
        }
    }
}
