//! A payment service that declines until a test repairs it. It records its calls.

use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Path and body of each call.
    calls: Mutex<Vec<(String, String)>>,
}

impl Repairable {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let state = Arc::new(State::default());
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

    pub(crate) fn mend(&self) {
        self.state.is_mended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn as_payment(&self) -> RemoteSettings {
        RemoteSettings { payment_url: Some(format!("http://{}", self.server.address())), ..RemoteSettings::default() }
    }

    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        self.state.calls.lock().unwrap().clone()
    }
}

impl State {
    fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let body = String::from_utf8(request.body().to_vec()).unwrap();
        self.calls.lock().unwrap().push((request.uri().path().to_owned(), body));
        let (status, body) = match self.is_mended.load(Ordering::SeqCst) {
            true => (200, RECEIPT),
            false => (422, r#"{"code": "out-of-order"}"#),
        };
        Response::builder().status(status).header("content-type", "application/json").body(body.into()).unwrap()
    }
}
