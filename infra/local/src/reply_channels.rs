//! Reply channels: registered names, each with a URL for status messages (rule 10).
//!
//! On AWS a channel is a queue; here it is an HTTP endpoint. With a signature, its messages are signed like alerts. A 2xx
//! acknowledges a message; after any other answer it is sent again. A failing channel gets a back-off: the sender's order
//! goes on, and the supervisor resends.

use std::sync::Arc;

use agents::Variable;
use config::auth::Placed;
use config::deployment::Channel as Configured;
use config::keys::{is_web_address, web_address};
use domain::limits::NAME_CHARS_MAX;
use domain::message::CloudEvent;
use embedded::Channel;
use http::StatusCode;
use tokio::time::Instant;

use crate::BadSetting;
use crate::channel_pause::ChannelPause;
use crate::host_time::within;
use crate::webhook::{Channels, NotTaken, Webhook, secrets_of};

/// The time-out of a channel, in milliseconds. The order goes on meanwhile, but the scheduler's batch waits.
const TAKEN_MS_MAX: u64 = 2_000;
/// One registered channel.
#[derive(Debug, Clone)]
pub struct ReplyChannel {
    name: Arc<str>,
    url: Arc<str>,
    signature: Option<Placed>,
}

/// A channel that is called.
#[derive(Debug)]
struct Receiver {
    webhook: Webhook,
    pause: ChannelPause,
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
            return Err(
                "its URL must begin with http:// or https:// and name a host, without a user or a password".to_owned()
            );
        }
        Ok(Self { name: name.into(), url: url.into(), signature: None })
    }

    /// A channel of a checked configuration.
    pub(crate) fn of(name: &Arc<str>, Configured { url, signature }: &Configured) -> Self {
        Self { name: name.clone(), url: url.as_str().into(), signature: signature.clone() }
    }

    /// The registered name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Registers channels among those that are `started`, and reads their secrets. Warns of those that others may read.
///
/// # Errors
/// [`BadSetting`] for the first one that cannot be used.
pub(crate) async fn start(
    started: &mut Channels,
    channels: &[ReplyChannel],
    variable: Option<Variable>,
) -> Result<(), BadSetting> {
    let secrets = secrets_of(variable);
    for ReplyChannel { name, url, signature } in channels {
        let webhook = Webhook::of(url.to_string(), signature.as_ref(), &secrets).await;
        let webhook = webhook.map_err(|fault| BadSetting(format!("reply_channels.{name}: {fault}")))?;
        let receiver = Arc::new(Receiver { webhook, pause: ChannelPause::default() });
        let send: Channel = Arc::new(move |event| {
            let receiver = receiver.clone();
            Box::pin(async move { Ok(receiver.send(&event).await?) })
        });
        if started.insert(name.clone(), send).is_some() {
            return Err(BadSetting(format!("--reply-channel {name} is given twice")));
        }
    }
    for ReplyChannel { name, .. } in channels.iter().filter(|channel| web_address(&channel.url).is_err()) {
        let channel = &**name;
        tracing::warn!(channel, "status messages go to another machine without encryption: use an https URL");
    }
    Ok(())
}

impl Receiver {
    /// Posts an event, once. A failing channel gets one try after each pause, for the orders that it fails for.
    #[expect(clippy::disallowed_methods, reason = "a time-out of the host, not of the protocol")]
    async fn send(&self, event: &CloudEvent) -> Result<(), NotTaken> {
        let attempt = self.pause.attempt(&event.subject, Instant::now());
        let attempt = attempt.map_err(|pause| NotTaken::Failing(pause.as_millis()))?;
        let sent = within(TAKEN_MS_MAX, self.webhook.tell(event)).await;
        let sent = sent.unwrap_or(Err(NotTaken::TooSlow(TAKEN_MS_MAX)));
        match &sent {
            Ok(()) => self.pause.taken(&attempt),
            // The answer came in time and concerns only this event.
            Err(NotTaken::Refused(status)) if is_about_the_event(*status) => self.pause.taken(&attempt),
            Err(fault) => {
                let is_answered = matches!(fault, NotTaken::Refused(_));
                self.pause.failed(&attempt, &event.subject, is_answered, Instant::now());
            }
        }
        sent
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

    async fn try_start(channels: &[ReplyChannel], variable: Option<Variable>) -> Result<Channels, BadSetting> {
        let mut started = Channels::new();
        start(&mut started, channels, variable).await.map(|()| started)
    }

    async fn started(channels: &[ReplyChannel]) -> Channels {
        try_start(channels, None).await.ok().unwrap()
    }

    /// Sends the event to a channel. After a fault, what is told of it.
    async fn send(channels: &Channels, channel: &str) -> Result<(), String> {
        channels[channel](event()).await.map_err(|fault| fault.to_string())
    }

    /// A receiver with prepared answers; status 0 hangs up. It reports the received requests.
    async fn receiver(status: u16) -> (Server, ReplyChannel, mpsc::UnboundedReceiver<Request<Bytes>>) {
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
        (server, channel, gets)
    }

    #[tokio::test]
    async fn an_event_is_posted_as_it_is_and_2xx_says_that_it_was_taken() {
        for status in [200, 202, 204] {
            let (_server, channel, mut gets) = receiver(status).await;
            send(&started(&[channel]).await, "shop").await.unwrap();
            let got = gets.recv().await.unwrap();
            assert_eq!((got.method().as_str(), got.uri().to_string().as_str()), ("POST", "/replies?to=1"));
            let media_types = got.headers().get_all("content-type").iter();
            assert_eq!(media_types.collect::<Vec<_>>(), ["application/cloudevents+json"]);
            assert_eq!(serde_json::from_slice::<CloudEvent>(got.body()).unwrap(), event());
        }
    }

    #[tokio::test]
    async fn anything_else_is_not_taken() {
        for (status, words) in [(302, "answered 302"), (404, "answered 404"), (503, "answered 503"), (0, "no answer")] {
            let (_server, channel, _gets) = receiver(status).await;
            let error = send(&started(&[channel]).await, "shop").await.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let (server, channel, _gets) = receiver(200).await;
        server.stop().await;
        assert!(send(&started(&[channel]).await, "shop").await.unwrap_err().starts_with("no answer: "));
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_that_does_not_answer_is_given_up_in_time() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let channel = ReplyChannel::parse(&format!("shop=http://{}", listener.local_addr().unwrap())).unwrap();
        let error = send(&started(&[channel]).await, "shop").await.unwrap_err();
        assert_eq!(error, "no answer within 2000 ms");
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_that_hangs_holds_up_one_send_per_pause() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let channel = ReplyChannel::parse(&format!("shop=http://{}", listener.local_addr().unwrap())).unwrap();
        let channels = started(&[channel]).await;
        let started = Instant::now();
        for pause_ms in [5_000, 10_000, 20_000] {
            assert_eq!(send(&channels, "shop").await.unwrap_err(), "no answer within 2000 ms");
            let given_up = Instant::now();
            for _ in 0..100 {
                let error = send(&channels, "shop").await.unwrap_err();
                assert_eq!(error, format!("it is failing, and is tried again in {pause_ms} ms"));
            }
            assert_eq!(Instant::now(), given_up, "they did not wait");
            tokio::time::advance(Duration::from_millis(pause_ms)).await;
        }
        assert_eq!(started.elapsed().as_secs(), 3 * 2 + 5 + 10 + 20);
    }

    #[tokio::test]
    async fn a_channel_that_refused_is_left_alone_and_the_others_are_not() {
        let (_bad_server, bad, mut bad_gets) = receiver(503).await;
        let (_good_server, good, _good_gets) = receiver(200).await;
        let named = [("bad", bad), ("good", good)].map(|(name, channel)| ReplyChannel { name: name.into(), ..channel });
        let channels = started(&named).await;
        assert!(send(&channels, "bad").await.unwrap_err().starts_with("it answered 503"));
        assert!(send(&channels, "bad").await.unwrap_err().starts_with("it is failing"));
        for _ in 0..2 {
            send(&channels, "good").await.unwrap();
        }
        assert!(bad_gets.try_recv().is_ok() && bad_gets.try_recv().is_err(), "it was asked once");
    }

    #[test]
    fn a_channel_has_a_plain_name_and_a_url() {
        let good = ReplyChannel::parse("shop-1=http://localhost:9000/replies?a=b").unwrap();
        assert_eq!((good.name(), &*good.url), ("shop-1", "http://localhost:9000/replies?a=b"));
        for bad in [
            "",
            "shop",
            "=http://x",
            "a b=http://x",
            "shop=",
            "shop=x",
            "shop=/x",
            "shop=ftp://x",
            "shop=http://",
            "shop=http://a:b@x",
        ] {
            assert!(ReplyChannel::parse(bad).is_err(), "{bad}");
        }
        assert!(ReplyChannel::parse(&format!("{}=http://x", "a".repeat(NAME_CHARS_MAX + 1))).is_err());
    }

    #[tokio::test]
    async fn a_name_stands_for_one_url() {
        let channels = ["a=http://x/1", "b=https://x/2", "a=http://x/3"].map(|text| ReplyChannel::parse(text).unwrap());
        assert_eq!(try_start(&channels, None).await.err(), Some(BadSetting::new("--reply-channel a is given twice")));
        assert_eq!(started(&channels[..2]).await.into_keys().collect::<Vec<_>>(), ["a".into(), "b".into()]);
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
        let channels = try_start(&file("env:SHOP_SECRET"), Some(secret)).await.ok().unwrap();
        send(&channels, "shop").await.unwrap();
        let got = gets.recv().await.unwrap();
        assert_eq!(got.headers()["webhook-id"], &*event().id);
        assert!(got.headers()["webhook-signature"].to_str().unwrap().starts_with("v1,"));
        let bad = try_start(&file("env:GONE"), Some(secret)).await.err().unwrap();
        assert!(bad.to_string().starts_with("reply_channels.shop: "), "{bad}");
    }
}
