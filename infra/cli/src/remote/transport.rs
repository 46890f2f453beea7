//! Connections to the API, with TLS where its URL asks for it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError, ResponseFuture};
use hyper_util::rt::TokioExecutor;

use super::clock;

/// The longest answer that is read: a page of 100 orders with 50 steps each stays far below.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(10);

/// Keeps connections open between calls.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// There was no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoAnswer {
    /// In words, from the innermost cause.
    pub(super) why: String,
    /// Whether no connection came up at all, so that nobody can have seen the request.
    pub(super) is_unsent: bool,
}

impl Transport {
    /// # Errors
    /// What the system says where it has no root certificates to check a server's name with.
    pub(super) fn new(is_secure: bool) -> std::io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        if !is_secure {
            return Ok(Self::Plain(Client::builder(TokioExecutor::new()).build(connector)));
        }
        connector.enforce_http(false);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
        let connector = builder.https_only().enable_http1().wrap_connector(connector);
        Ok(Self::Tls(Client::builder(TokioExecutor::new()).build(connector)))
    }

    /// One exchange; any status is an answer.
    pub(super) async fn send(
        &self,
        request: Request<Bytes>,
        answer_within: Duration,
    ) -> Result<Response<Bytes>, NoAnswer> {
        let request = request.map(Full::new);
        let exchange = async {
            let response = self.request(request).await.map_err(|error| unanswered(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
            let body = body.map_err(|error| NoAnswer { why: innermost(&*error), is_unsent: false })?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        clock::within(answer_within, exchange).await.unwrap_or_else(|| {
            let why = format!("no answer within {}", humantime::format_duration(answer_within));
            Err(NoAnswer { why, is_unsent: false })
        })
    }

    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

fn unanswered(error: &ClientError) -> NoAnswer {
    NoAnswer { why: innermost(error), is_unsent: error.is_connect() }
}

/// The innermost cause says most: the client's own words are "client error".
fn innermost(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&error| error.source()).last().map(ToString::to_string).unwrap_or_default()
}
