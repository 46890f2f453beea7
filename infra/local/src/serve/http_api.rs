//! The API on its socket, and the webhooks of providers beside it.

use std::sync::Arc;

use agents::{CallbackApi, Fleet, Unanswered, WEBHOOKS};
use api::{ApiConfig, Caller};
use bytes::Bytes;
use domain::definition::Catalogue;
use embedded::{Engine, attended};
use http::header::CONTENT_TYPE;
use http::{Request, Response};

use super::callers::{Callers, refusal};
use super::posts::Posts;
use super::reads::Reads;
use super::waits::{self, Waits};
use crate::direct::Direct;
use crate::hosts::Hosts;
use crate::http_server::{Listening, NoMore, Server};

/// The caller of what comes from this process itself.
const OWN: &str = "local";
/// The grace of requests in flight after a stop, in milliseconds. Requests that wait for an order end at once.
const REQUEST_GRACE_MS: u64 = 2_000;

/// What a request needs.
struct Shared {
    api: InProcess,
    hosts: Hosts,
    callers: Callers,
    posts: Posts,
    reads: Arc<Reads>,
    waits: Waits,
    agents: Arc<Fleet<Catalogue>>,
}

/// The API of this process.
struct InProcess {
    ports: Direct<Engine>,
    config: ApiConfig,
}

impl CallbackApi for InProcess {
    async fn post(&self, path: String, body: Bytes) -> Result<Response<Bytes>, Unanswered> {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json").body(body);
        let request = request.map_err(|_| Unanswered::because("its path is malformed"))?;
        Ok(api::handle(&self.ports, &self.config, &Caller::unrestricted(OWN), request).await)
    }
}

/// Serves the API, and the webhooks of these agents.
///
/// # Errors
/// As [`Server::start`].
pub(super) fn serve_api(
    listening: Listening,
    ports: Direct<Engine>,
    config: ApiConfig,
    hosts: Hosts,
    (callers, posts): (Callers, Posts),
    reads: Arc<Reads>,
    agents: Arc<Fleet<Catalogue>>,
) -> std::io::Result<Server> {
    let (api, waits) = (InProcess { ports, config }, waits::of_this_machine());
    let shared = Arc::new(Shared { api, hosts, callers, posts, reads, waits, agents });
    Server::start(listening, api::BODY_BYTES_MAX, REQUEST_GRACE_MS, move |request| {
        let shared = shared.clone();
        // Boxed: the server moves it several times, and it has many kilobytes.
        Box::pin(async move { Ok(answer(shared, request).await) })
    })
}

async fn answer(shared: Arc<Shared>, mut request: Request<Bytes>) -> Response<Bytes> {
    let Shared { api, hosts, callers, posts, reads, waits, agents } = &*shared;
    if let Some(refusal) = hosts.refuse(&request) {
        return refusal;
    }
    if request.uri().path().starts_with(WEBHOOKS) {
        // Boxed, so that the future of another request stays small.
        return Box::pin(agents.webhook(api.ports.ports(), api, request)).await;
    }
    let caller = match callers.of(request.headers(), request.extensions().get()).await {
        Ok(caller) => caller,
        Err(stranger) => return refusal(stranger),
    };
    if let Some(refusal) = api::refused(&caller, &request) {
        return refusal;
    }
    let NoMore(gone) = request.extensions_mut().remove().unwrap_or_default();
    let name = (!callers.are_all_trusted()).then(|| caller.name().clone());
    if let Some(name) = &name
        && api::is_new_order(&request)
        && !posts.take(name)
    {
        return api::too_many_orders();
    }
    let _waiting = waits::bound(waits, &mut request);
    let of_read = shared.clone();
    let answering = move |request| async move {
        let InProcess { ports, config } = &of_read.api;
        api::handle(ports, config, &caller, request).await
    };
    attended(gone, reads.answer(name, request, answering)).await
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use agents::{Secret, Signer};
    use config::Folder;
    use config::apply::{self, Application};
    use domain::id::OrderId;
    use domain::workflow::Workflows;
    use embedded::{Options, system_time};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::serve::{RemoteSettings, Remotes, Setup, bind, start};
    use crate::stand_ins::KEYS_UNLIMITED;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SETTINGS: &str = r#"
        [agents.bank.webhook]
        secret = "env:BANK_SECRET"
        scheme = "standard-webhooks"
        key = "/key"
        event = "/type"
        done = ["paid"]
        [agents.bank.forward]
        status = { 200 = "under-way" }
    "#;
    const WORKFLOW: &str = r#"
        name = "shop"
        version = 1
        [[step]]
        name = "pay"
        agent = "bank"
        wait_within = "1h"
    "#;

    /// The answer to a request: status line, headers and body.
    async fn call(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}");
        stream.write_all(format!("{head}\r\n{headers}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// The headers of an event that is sent now.
    fn signed(body: &str) -> String {
        let mut headers = http::HeaderMap::new();
        let signer = Signer::new(&Secret::new(SECRET)).unwrap();
        signer.sign(&mut headers, "msg-1", body.as_bytes(), system_time());
        headers.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect()
    }

    #[tokio::test]
    async fn rule_41_an_event_of_a_provider_comes_to_the_callback_of_its_call() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let files = [("stepwarden.toml", SETTINGS), ("workflows/shop.toml", WORKFLOW)];
        let checked = Folder::check(&files.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap();
        let application = Application { by: "test".into(), share_percent: None, seen: None, earlier_key_ms: None };
        let catalogue = Catalogue::new(Workflows::shipped().unwrap());
        apply::apply(&engine, &catalogue, &checked, &application).await.unwrap();
        let variable = |name: &str| (name == "BANK_SECRET").then(|| SECRET.to_owned());
        let settings = RemoteSettings { variable: Some(variable), ..RemoteSettings::default() };
        let remotes = Remotes::start(&settings, KEYS_UNLIMITED).await.unwrap();
        let listener = bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
        let running = start(listener, &engine, remotes, Setup::default()).unwrap();
        let address = running.address();

        let key = format!("{}/pay", OrderId::from_idempotency_key("shop", "k1"));
        let body = format!(r#"{{"type":"paid","key":"{key}"}}"#);
        let headers = signed(&body);
        let answer = call(address, "POST", "/webhooks/bank", &headers, &body).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.ends_with(r#"{"Taken":false,"Because":"there is no such order, or no more"}"#), "{answer}");
        for (method, path, headers, body, status) in [
            ("POST", "/webhooks/bank", "", &*body, 401),
            ("POST", "/webhooks/bank", &headers, "{}", 401),
            ("POST", "/webhooks/payment", &headers, &body, 404),
            ("GET", "/webhooks/bank", "", "", 405),
            ("POST", "/webhooks", &headers, &body, 404),
        ] {
            let answer = call(address, method, path, headers, body).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
        }
        let elsewhere = format!("{headers}host: shop.example\r\n");
        let answer = call(address, "POST", "/webhooks/bank", &elsewhere, &body).await;
        assert!(answer.starts_with("HTTP/1.1 4") && !answer.contains("Taken"), "{answer}");
        running.stop().await;
        engine.close().await.unwrap();
    }
}
