//! The stand-ins on a socket.

#![expect(clippy::disallowed_methods, reason = "a stand-in is an external service with its own clock")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::ORIGIN;
use http::{HeaderValue, Request, Response, StatusCode};
use standins::{Answer, CALL_BYTES_MAX, Effects, Service, Services};
use tokio::net::TcpListener;

use crate::hosts::Hosts;
use crate::http_server::{HangUp, Server};
use crate::problem::problem;

/// Keys that each service of `stepwarden serve` keeps: more than can be in flight at once, and about 5 MB in all.
pub const KEYS_SERVE: usize = 8_192;
/// For tests that check every key.
pub const KEYS_UNLIMITED: usize = usize::MAX;

/// The grace of slow calls at a stop. The caller retries a cancelled call.
const GRACE_MS: u64 = 200;

/// Three services on one socket.
#[derive(Debug)]
pub struct StandIns {
    server: Server,
    services: Arc<Services>,
    started: Instant,
}

impl StandIns {
    /// Serves on `listener`; each service keeps its newest `keys_max` idempotency keys.
    ///
    /// # Errors
    /// The errors of [`Server::start`].
    pub fn start(listener: TcpListener, keys_max: usize) -> std::io::Result<Self> {
        let services = Arc::new(Services::new(keys_max));
        let (answering, started) = (services.clone(), Instant::now());
        let hosts = Hosts::of(listener.local_addr()?, &[]);
        let handle = move |request: Request<Bytes>| {
            let refused = refusal(&hosts, &request).map(|response| Answer { response: Some(response), delay_ms: 0 });
            let answer = refused.unwrap_or_else(|| answering.handle(&request, ms_since(started)));
            let Answer { response, delay_ms } = answer;
            async move {
                if delay_ms > 0 {
                    tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                }
                response.ok_or(HangUp)
            }
        };
        Ok(Self { server: Server::start(listener, CALL_BYTES_MAX, GRACE_MS, handle)?, services, started })
    }

    /// Serves on a free port of the loopback interface.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start_anywhere(keys_max: usize) -> std::io::Result<Self> {
        Self::start(TcpListener::bind(("127.0.0.1", 0)).await?, keys_max)
    }

    /// The base URL of all three, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The base URL of one service, as an agent gets it.
    #[must_use]
    pub fn url_of(&self, service: Service) -> String {
        format!("{}/{service}", self.url())
    }

    /// Their effects so far.
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.services.effects(ms_since(self.started))
    }

    /// Their counts and switches.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Answers the requests in flight and stops.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

/// The answer to a request of a browser's page: the stand-ins serve none, so it is a page of another site.
fn refusal(hosts: &Hosts, request: &Request<Bytes>) -> Option<Response<Bytes>> {
    // `none` is an act of a person: a typed address, a bookmark.
    let is_page = |site: &HeaderValue| site != "none";
    let (status, detail) = if !hosts.accept(request) {
        (StatusCode::MISDIRECTED_REQUEST, "the stand-ins go by localhost and 127.0.0.1 only")
    } else if request.headers().contains_key(ORIGIN) || request.headers().get_all("sec-fetch-site").iter().any(is_page)
    {
        (StatusCode::FORBIDDEN, "a page of a browser may not call the stand-ins")
    } else {
        return None;
    };
    Some(problem(status, detail))
}

fn ms_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Answer, Client};

    async fn charge(client: &Client, stand_ins: &StandIns, order: &str) -> Option<Answer> {
        let url = format!("{}/charge", stand_ins.url_of(Service::Payment));
        let body = format!(r#"{{"OrderID":"o","Order":{order},"Outputs":{{}}}}"#);
        client.post(&url, &[("idempotency-key", "o/p")], body).await.ok()
    }

    #[tokio::test]
    async fn a_call_over_the_wire_is_answered_and_counted() {
        let (stand_ins, client) = (StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap(), Client::new());
        let answer = charge(&client, &stand_ins, "{}").await.unwrap();
        assert!(answer.status == StatusCode::OK && answer.body.starts_with(b"{\"PaymentID\""), "{answer:?}");
        let effects = client.get(&format!("{}/effects", stand_ins.url())).await.unwrap();
        let effects: Effects = serde_json::from_slice(&effects.body).unwrap();
        assert_eq!((effects[&Service::Payment].of("o/p").effects, effects), (1, stand_ins.effects()));
        stand_ins.stop().await;
    }

    #[tokio::test]
    async fn no_page_of_a_browser_gets_in() {
        let stand_ins = StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap();
        let url = format!("{}/charge", stand_ins.url_of(Service::Payment));
        for (header, status) in [
            (("host", "evil.example"), 421),
            (("origin", "http://localhost:3000"), 403),
            (("sec-fetch-site", "cross-site"), 403),
        ] {
            let answer =
                Client::new().post(&url, &[("idempotency-key", "o/p"), header], "{}".to_owned()).await.unwrap();
            assert_eq!(answer.status.as_u16(), status, "{header:?}");
        }
        assert_eq!(stand_ins.effects()[&Service::Payment].of("o/p").effects, 0);
    }

    #[tokio::test]
    async fn an_answer_can_be_late_or_lost() {
        let (stand_ins, client) = (StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap(), Client::new());
        let loses = r#"{"StandIn":{"payment":{"LoseAnswers":1,"SlowMs":50}}}"#;
        let began = Instant::now();
        assert!(charge(&client, &stand_ins, loses).await.is_none(), "the answer is lost");
        assert_eq!(stand_ins.effects()[&Service::Payment].of("o/p").effects, 1, "but the card was charged");
        assert_eq!(charge(&client, &stand_ins, loses).await.unwrap().status, StatusCode::OK);
        assert!(began.elapsed() >= Duration::from_millis(100));
    }

    #[tokio::test]
    async fn the_effect_of_a_call_comes_also_if_its_caller_left() {
        let (stand_ins, client) = (StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap(), Client::new());
        let busy = r#"{"StandIn":{"payment":{"BusyMs":200}}}"#;
        let patience = Duration::from_millis(50);
        assert!(tokio::time::timeout(patience, charge(&client, &stand_ins, busy)).await.is_err(), "it is at work");
        assert_eq!(stand_ins.effects()[&Service::Payment].of("o/p").effects, 0);
        assert_eq!(charge(&client, &stand_ins, busy).await.unwrap().status, StatusCode::CONFLICT);
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert_eq!(stand_ins.effects()[&Service::Payment].of("o/p").effects, 1);
        assert_eq!(charge(&client, &stand_ins, busy).await.unwrap().status, StatusCode::OK);
    }
}
