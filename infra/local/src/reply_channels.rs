//! Reply channels: registered names, each with a URL for status messages (rule 10).
//!
//! On AWS a channel is a queue; here it is an HTTP endpoint, and a channel with a signature is signed like an alert. A 2xx acknowledges the message; after any other answer it is
//! sent again. A failing channel gets a back-off: the sender's order goes on, and the supervisor resends.

use std::collections::BTreeMap;
use std::sync::Arc;

use agents::{HttpClients, Signer, Variable, machine_secrets};
use config::auth::Placed;
use config::deployment::Channel;
use config::keys::{is_web_address, web_address};
use domain::limits::NAME_CHARS_MAX;
use domain::message::CloudEvent;
use embedded::system_time;
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use crate::channel_pause::ChannelPause;
use crate::client::{Client, ClientError};
use crate::host_time::within;
use crate::sinks::signer;

/// The time-out of a channel, in milliseconds. The order goes on meanwhile, but the scheduler's batch waits.
const TAKEN_MS_MAX: u64 = 2_000;
/// The media type of one event in its JSON form (CloudEvents 1.0, HTTP binding, structured mode).
const CONTENT_TYPE: &str = "application/cloudevents+json";

/// One registered channel.
#[derive(Debug, Clone)]
pub struct ReplyChannel {
    name: Arc<str>,
    url: Arc<str>,
    signature: Option<Placed>,
}

/// All registered channels and their connections. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct ReplyChannels {
    receivers: Arc<BTreeMap<Arc<str>, Receiver>>,
}

#[derive(Debug)]
struct Receiver {
    url: Arc<str>,
    client: Client,
    signer: Option<Signer>,
    pause: ChannelPause,
}

/// A channel that cannot be used. No text has a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadChannel {
    /// Two channels have the same name.
    #[error("--reply-channel {0} is given twice")]
    Twice(Arc<str>),
    /// Its secret cannot be read, or the system has no root certificates for its URL.
    #[error("reply_channels.{0}: {1}")]
    Unusable(Arc<str>, String),
}

/// A message was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// The order names a channel that is not registered.
    #[error("no reply channel is registered under the name {0:?}")]
    Unknown(String),
    /// The channel is in back-off; nothing was sent.
    #[error("reply channel {channel} is failing and is tried again in {retry_ms} ms")]
    Failing {
        /// Its name.
        channel: String,
        /// Milliseconds until the next try.
        retry_ms: u128,
    },
    /// The event cannot be serialized.
    #[error("the event cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
    /// The channel is unreachable.
    #[error("reply channel {channel}: {source}")]
    NoAnswer {
        /// Its name.
        channel: String,
        /// The call.
        source: ClientError,
    },
    /// The channel did not answer in time.
    #[error("reply channel {0} did not answer within {TAKEN_MS_MAX} ms")]
    TooSlow(String),
    /// The answer was not 2xx.
    #[error("reply channel {channel} answered {status}")]
    Refused {
        /// Its name.
        channel: String,
        /// The status of the answer.
        status: StatusCode,
    },
}

impl ReplyChannel {
    /// Reads `NAME=URL`.
    ///
    /// # Errors
    /// A message that names the error.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, url) = text.split_once('=').ok_or("must be NAME=URL, such as shop=http://localhost:9000/replies")?;
        let is_short = name.chars().count() <= NAME_CHARS_MAX;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !is_short || !name.chars().all(is_plain) {
            return Err(format!("its name must have 1 to {NAME_CHARS_MAX} letters, digits, '-', '_' or '.'"));
        }
        if !is_web_address(url) {
            return Err("its URL must begin with http:// or https:// and name a host".to_owned());
        }
        Ok(Self { name: name.into(), url: url.into(), signature: None })
    }

    /// A channel of a checked configuration.
    pub(crate) fn of(name: &Arc<str>, Channel { url, signature }: &Channel) -> Self {
        Self { name: name.clone(), url: url.as_str().into(), signature: signature.clone() }
    }

    /// The registered name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl ReplyChannels {
    /// Registers the channels, and reads their secrets.
    ///
    /// # Errors
    /// [`BadChannel`] for the first one that cannot be used.
    pub async fn start(channels: &[ReplyChannel], variable: Option<Variable>) -> Result<Self, BadChannel> {
        let secrets = machine_secrets(variable.unwrap_or(|_| None), system_time, &HttpClients::new());
        let mut receivers = BTreeMap::new();
        for ReplyChannel { name, url, signature } in channels {
            let unusable = |fault: String| BadChannel::Unusable(name.clone(), fault);
            let signer = match signature {
                Some(placed) => Some(signer(&secrets, placed).await.map_err(unusable)?),
                None => None,
            };
            let is_tls = url.starts_with("https:");
            let client = if is_tls { Client::tls().map_err(|e| unusable(e.to_string()))? } else { Client::new() };
            let receiver = Receiver { url: url.clone(), client, signer, pause: ChannelPause::default() };
            if receivers.insert(name.clone(), receiver).is_some() {
                return Err(BadChannel::Twice(name.clone()));
            }
        }
        Ok(Self { receivers: Arc::new(receivers) })
    }

    /// Warns of those that others may read.
    pub(crate) fn warn(&self) {
        for (channel, _) in self.receivers.iter().filter(|(_, receiver)| web_address(&receiver.url).is_err()) {
            tracing::warn!(
                channel = &**channel,
                "status messages go to another machine without encryption: use an https URL"
            );
        }
    }

    /// The names of all channels.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.receivers.keys().cloned().collect()
    }

    /// Posts an event to a channel, once. A failing channel gets one try after each pause, for the orders that it fails for.
    ///
    /// # Errors
    /// [`NotTaken`]; the event is then sent again, and may arrive twice.
    #[expect(clippy::disallowed_methods, reason = "a time-out of the host, not of the protocol")]
    pub async fn send(&self, channel: &str, event: &CloudEvent) -> Result<(), NotTaken> {
        let receiver = self.receivers.get(channel).ok_or_else(|| NotTaken::Unknown(channel.to_owned()))?;
        let body = serde_json::to_string(event)?;
        let attempt = receiver
            .pause
            .attempt(&event.subject, Instant::now())
            .map_err(|pause| NotTaken::Failing { channel: channel.to_owned(), retry_ms: pause.as_millis() })?;
        let sent = receiver.post(channel, &event.id, body).await;
        match &sent {
            Ok(()) => receiver.pause.taken(&attempt),
            // The answer came in time and concerns only this event.
            Err(NotTaken::Refused { status, .. }) if is_about_the_event(*status) => receiver.pause.taken(&attempt),
            Err(fault) => {
                let is_answered = matches!(fault, NotTaken::Refused { .. });
                receiver.pause.failed(&attempt, &event.subject, is_answered, Instant::now());
            }
        }
        sent
    }
}

impl Receiver {
    async fn post(&self, channel: &str, id: &str, body: String) -> Result<(), NotTaken> {
        let name = || channel.to_owned();
        let mut signed = HeaderMap::new();
        if let Some(signer) = &self.signer {
            signer.sign(&mut signed, id, body.as_bytes(), system_time());
        }
        let signed = signed.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers: Vec<(&str, &str)> = [("content-type", CONTENT_TYPE)].into_iter().chain(signed).collect();
        let posting = self.client.post(&self.url, &headers, body);
        match within(TAKEN_MS_MAX, posting).await {
            Some(Ok(answer)) if answer.status.is_success() => Ok(()),
            Some(Ok(answer)) => Err(NotTaken::Refused { channel: name(), status: answer.status }),
            Some(Err(source)) => Err(NotTaken::NoAnswer { channel: name(), source }),
            None => Err(NotTaken::TooSlow(name())),
        }
    }
}

fn is_about_the_event(status: StatusCode) -> bool {
    status.is_client_error() && ![StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a paused clock that advances by waits only")]

    use std::time::Duration;

    use bytes::Bytes;
    use domain::json::Json;
    use domain::time::Timestamp;
    use http::{Request, Response};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;
    use crate::http_server::{HangUp, Server};

    fn event() -> CloudEvent {
        CloudEvent {
            specversion: "1.0".into(),
            id: "o/5/OrderProcessed".into(),
            source: "stepwarden".into(),
            kind: "OrderProcessed".into(),
            subject: "o".into(),
            time: Timestamp::from_epoch_ms(1_795_195_603_007),
            datacontenttype: "application/json".into(),
            data: Json::parse(br#"{"OrderID":"o","CorrelationID":"c-7","Version":5}"#, 99).unwrap(),
        }
    }

    async fn started(channels: &[ReplyChannel]) -> Result<ReplyChannels, BadChannel> {
        ReplyChannels::start(channels, None).await
    }

    /// A receiver with prepared answers; status 0 hangs up. It reports the received requests.
    async fn receiver(status: u16) -> (Server, ReplyChannels, mpsc::UnboundedReceiver<Request<Bytes>>) {
        let (got, gets) = mpsc::unbounded_channel();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let answer = move |request| {
            let got = got.clone();
            async move {
                got.send(request).unwrap();
                let status = StatusCode::from_u16(status).map_err(|_| HangUp)?;
                Ok(Response::builder().status(status).body(Bytes::new()).unwrap())
            }
        };
        let server = Server::start(listener, 10_000, 0, answer).unwrap();
        let channel = ReplyChannel::parse(&format!("shop=http://{}/replies?to=1", server.address())).unwrap();
        (server, started(&[channel]).await.unwrap(), gets)
    }

    #[tokio::test]
    async fn an_event_is_posted_as_it_is_and_2xx_says_that_it_was_taken() {
        for status in [200, 202, 204] {
            let (_server, channels, mut gets) = receiver(status).await;
            channels.send("shop", &event()).await.unwrap();
            let got = gets.recv().await.unwrap();
            assert_eq!((got.method().as_str(), got.uri().to_string().as_str()), ("POST", "/replies?to=1"));
            assert_eq!(got.headers().get_all("content-type").iter().collect::<Vec<_>>(), [CONTENT_TYPE]);
            assert_eq!(serde_json::from_slice::<CloudEvent>(got.body()).unwrap(), event());
        }
    }

    #[tokio::test]
    async fn anything_else_is_not_taken() {
        for (status, words) in [(302, "answered 302"), (404, "answered 404"), (503, "answered 503"), (0, "shop")] {
            let (_server, channels, _gets) = receiver(status).await;
            let error = channels.send("shop", &event()).await.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let (server, channels, _gets) = receiver(200).await;
        server.stop().await;
        assert!(matches!(channels.send("shop", &event()).await, Err(NotTaken::NoAnswer { .. })));
        assert!(matches!(channels.send("shops", &event()).await, Err(NotTaken::Unknown(name)) if name == "shops"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_that_does_not_answer_is_given_up_in_time() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let channel = ReplyChannel::parse(&format!("shop=http://{}", listener.local_addr().unwrap())).unwrap();
        let error = started(&[channel]).await.unwrap().send("shop", &event()).await.unwrap_err();
        assert_eq!(error.to_string(), "reply channel shop did not answer within 2000 ms");
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_that_hangs_holds_up_one_send_per_pause() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let channel = ReplyChannel::parse(&format!("shop=http://{}", listener.local_addr().unwrap())).unwrap();
        let channels = started(&[channel]).await.unwrap();
        let started = Instant::now();
        for pause_ms in [5_000, 10_000, 20_000] {
            assert!(matches!(channels.send("shop", &event()).await, Err(NotTaken::TooSlow(_))));
            let given_up = Instant::now();
            for _ in 0..100 {
                let error = channels.send("shop", &event()).await.unwrap_err();
                assert!(matches!(error, NotTaken::Failing { retry_ms, .. } if retry_ms == pause_ms), "{error}");
            }
            assert_eq!(Instant::now(), given_up, "they did not wait");
            tokio::time::advance(Duration::from_millis(u64::try_from(pause_ms).unwrap())).await;
        }
        assert_eq!(started.elapsed().as_secs(), 3 * 2 + 5 + 10 + 20);
    }

    #[tokio::test]
    async fn a_channel_that_refused_is_left_alone_and_the_others_are_not() {
        let (_bad_server, bad, mut bad_gets) = receiver(503).await;
        let (_good_server, good, _good_gets) = receiver(200).await;
        let urls = [("bad", &bad), ("good", &good)].map(|(name, channels)| ReplyChannel {
            name: name.into(),
            url: channels.receivers["shop"].url.clone(),
            signature: None,
        });
        let channels = started(&urls).await.unwrap();
        assert!(matches!(channels.send("bad", &event()).await, Err(NotTaken::Refused { .. })));
        assert!(matches!(channels.clone().send("bad", &event()).await, Err(NotTaken::Failing { .. })));
        for _ in 0..2 {
            channels.send("good", &event()).await.unwrap();
        }
        assert!(bad_gets.try_recv().is_ok() && bad_gets.try_recv().is_err(), "it was asked once");
    }

    #[test]
    fn a_channel_has_a_plain_name_and_a_url() {
        let good = ReplyChannel::parse("shop-1=http://localhost:9000/replies?a=b").unwrap();
        assert_eq!((good.name(), &*good.url), ("shop-1", "http://localhost:9000/replies?a=b"));
        for bad in
            ["", "shop", "=http://x", "a b=http://x", "shop=", "shop=x", "shop=/x", "shop=ftp://x", "shop=http://"]
        {
            assert!(ReplyChannel::parse(bad).is_err(), "{bad}");
        }
        assert!(ReplyChannel::parse(&format!("{}=http://x", "a".repeat(NAME_CHARS_MAX + 1))).is_err());
    }

    #[tokio::test]
    async fn a_name_stands_for_one_url() {
        let channels = ["a=http://x/1", "b=https://x/2", "a=http://x/3"].map(|text| ReplyChannel::parse(text).unwrap());
        assert_eq!(started(&channels).await.unwrap_err(), BadChannel::Twice("a".into()));
        assert_eq!(started(&channels[..2]).await.unwrap().names(), ["a".into(), "b".into()]);
    }

    #[tokio::test]
    async fn a_channel_with_a_signature_is_signed_and_one_without_its_secret_prevents_the_start() {
        let (server, _, mut gets) = receiver(200).await;
        let file = |secret: &str| {
            let text =
                format!("url = \"http://{}\", signature = {{ standard_webhooks = \"{secret}\" }}", server.address());
            let file = config::DeploymentFile::parse(&format!("[reply_channels]\nshop = {{ {text} }}\n")).unwrap();
            [ReplyChannel::of(&"shop".into(), &file.reply_channels["shop"])]
        };
        let secret = |name: &str| (name == "SHOP_SECRET").then(|| "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let channels = ReplyChannels::start(&file("env:SHOP_SECRET"), Some(secret)).await.unwrap();
        channels.send("shop", &event()).await.unwrap();
        let got = gets.recv().await.unwrap();
        assert_eq!(got.headers()["webhook-id"], &*event().id);
        assert!(got.headers()["webhook-signature"].to_str().unwrap().starts_with("v1,"));
        let bad = ReplyChannels::start(&file("env:GONE"), Some(secret)).await.unwrap_err();
        assert!(matches!(&bad, BadChannel::Unusable(name, _) if &**name == "shop"), "{bad}");
    }
}
