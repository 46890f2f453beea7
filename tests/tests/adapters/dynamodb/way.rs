//! The network to DynamoDB, with faults that a test injects.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::{Builder, Config};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

/// The fault of one request.
#[derive(Debug, Clone)]
pub(crate) enum Happens {
    /// The request gets this answer, and never arrives.
    Answer(u16, Value),
    /// The request is carried out, and its answer is lost.
    AnswerLost,
    /// The request never arrives.
    Lost,
}

/// A sent request.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// The operation, such as `UpdateItem`.
    pub(crate) operation: String,
    /// Its body.
    pub(crate) body: Value,
}

/// A network to DynamoDB. Cloning it copies a pointer.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    to: SharedHttpClient,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    to_happen: VecDeque<(&'static str, Happens)>,
    /// The requests that still arrive.
    passes: Option<usize>,
    sent: Vec<Sent>,
}

impl Way {
    /// The network for this configuration, and the configuration with it.
    pub(crate) fn of(config: Builder) -> (Self, Builder) {
        let config: Config = config.build();
        let way = Self { to: config.http_client().expect("a client of its own"), state: Arc::default() };
        let builder = config.to_builder().http_client(way.clone());
        (way, builder)
    }

    /// Applies this fault to the next request of this operation that has no fault yet. `PutItem orders` is one to this
    /// table.
    pub(crate) fn let_happen(&self, operation: &'static str, happens: Happens) {
        self.state.lock().unwrap().to_happen.push_back((operation, happens));
    }

    /// Only this many further requests arrive; without a number all do. The others are refused at once.
    pub(crate) fn passes(&self, requests: Option<usize>) {
        self.state.lock().unwrap().passes = requests;
    }

    /// The sent requests, oldest first.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.state.lock().unwrap().sent.clone()
    }

    /// Whether every fault was used.
    pub(crate) fn is_used_up(&self) -> bool {
        self.state.lock().unwrap().to_happen.is_empty()
    }
}

/// The answer to a request that failed.
pub(crate) fn failure(status: u16, name: &str) -> Happens {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{name}");
    Happens::Answer(status, json!({ "__type": kind, "message": "as the test says" }))
}

/// The answer to a transaction that was cancelled for these reasons.
pub(crate) fn cancelled(reasons: &Value) -> Happens {
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    Happens::Answer(400, json!({ "__type": kind, "Message": "cancelled", "CancellationReasons": reasons }))
}

impl HttpClient for Way {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let to = self.to.http_connector(settings, components);
        SharedHttpConnector::new(Connector { to, state: self.state.clone() })
    }
}

#[derive(Debug)]
struct Connector {
    to: SharedHttpConnector,
    state: Arc<Mutex<State>>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        let happens = {
            let mut state = self.state.lock().unwrap();
            let table = body["TableName"].as_str().and_then(|name| name.rsplit('-').next()).unwrap_or_default();
            let of_table = format!("{operation} {table}");
            state.sent.push(Sent { operation: operation.clone(), body });
            let passes = state.passes;
            state.passes = passes.map(|passes| passes.saturating_sub(1));
            let place = state.to_happen.iter().position(|(of, _)| *of == operation || *of == of_table);
            let happens = place.and_then(|place| state.to_happen.remove(place)).map(|(_, happens)| happens);
            happens.or_else(|| (passes == Some(0)).then(|| failure(400, "AccessDeniedException")))
        };
        let passed_on = match happens {
            None | Some(Happens::AnswerLost) => Some(self.to.call(request)),
            Some(Happens::Answer(..) | Happens::Lost) => None,
        };
        HttpConnectorFuture::new(async move {
            let answer = match passed_on {
                Some(passed_on) => Some(passed_on.await?),
                None => None,
            };
            let broken = || ConnectorError::io("the connection broke".into());
            match (happens, answer) {
                (None, Some(answer)) => Ok(answer),
                (Some(Happens::Answer(status, body)), _) => {
                    let status = status.try_into().map_err(|_| broken())?;
                    Ok(HttpResponse::new(status, SdkBody::from(body.to_string())))
                }
                (Some(Happens::AnswerLost | Happens::Lost) | None, _) => Err(broken()),
            }
        })
    }
}
