//! A payment service that refuses until a test repairs it. It records its calls.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use local::http_server::{HangUp, Server};
use local::serve::RemoteSettings;
use tokio::net::TcpListener;

const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The body of a good answer, with digits that no floating-point number has.
pub(crate) const RECEIPT: &str = r#"{ "PaymentID": 12345678901234567890123, "Amount": 10000000000000000000000.10 }"#;

pub(crate) struct Repairable {
    server: Server,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_mended: AtomicBool,
    /// Whether refunds are answered well all the same.
    refunds: AtomicBool,
    /// The status until it is mended.
    status: AtomicU16,
    /// Path and body of each call.
    calls: Mutex<Vec<(String, String)>>,
}

impl Repairable {
    /// Declines.
    pub(crate) async fn start() -> Self {
        Self::answering(422).await
    }

    /// Answers with this status.
    pub(crate) async fn answering(status: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let state = Arc::new(State { status: status.into(), ..State::default() });
        let answering = state.clone();
        let server = Server::start(listener, BODY_BYTES_MAX, 0, move |request| {
            let answer = answering.answer(&request);
            async move { Ok::<_, HangUp>(answer) }
        });
        Self { server: server.unwrap(), state }
    }

    pub(crate) async fn mended() -> Self {
        let this = Self::start().await;
        this.mend();
        this
    }

    pub(crate) fn refunds(&self) {
        self.state.refunds.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.state.is_mended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn as_payment(&self) -> RemoteSettings {
        RemoteSettings::at([None, Some(&format!("http://{}", self.server.address())), None]).expect("a URL")
    }

    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        self.state.calls.lock().unwrap().clone()
    }
}

impl State {
    fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let body = String::from_utf8(request.body().to_vec()).unwrap();
        self.calls.lock().unwrap().push((request.uri().path().to_owned(), body));
        let refunds = self.refunds.load(Ordering::SeqCst) && request.uri().path() == "/refund";
        let (status, body) = match refunds || self.is_mended.load(Ordering::SeqCst) {
            true => (200, RECEIPT),
            false => (self.status.load(Ordering::SeqCst), r#"{"code": "out-of-order"}"#),
        };
        Response::builder().status(status).header("content-type", "application/json").body(body.into()).unwrap()
    }
}
