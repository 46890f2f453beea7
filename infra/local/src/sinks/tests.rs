#![allow(clippy::disallowed_methods, reason = "a server of the test")]

use agents::Signer;
use bytes::Bytes;
use config::DeploymentFile;
use domain::alert::{Alert, Turn};
use domain::time::Timestamp;
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::http_server::Server;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn alert() -> Alert {
    Alert {
        cause: "order/exhausted/charge-payment".into(),
        version: 2,
        since: Timestamp::from_epoch_ms(1_795_195_603_007),
        text: "Orders <wait>\n\u{1b}[2J at charge-payment.".into(),
        to_do: "Restore the service.".into(),
        count: 12,
        at_least: false,
        order_id: None,
        gone_since: None,
        ended_at: None,
        told: Vec::new(),
        telling_until: None,
    }
}

fn event(turn: Turn) -> CloudEvent {
    let ended_at = (turn == Turn::Ended).then(|| alert().since.plus_ms(60_000));
    Alert { ended_at, ..alert() }.event(turn, alert().since)
}

async fn sinks(text: &str) -> Channels {
    let settings = DeploymentFile::parse(text).unwrap().sinks;
    start(&settings, Some(|name| (name == "SECRET").then(|| SECRET.to_owned()))).await.ok().unwrap()
}

async fn send(sinks: &Channels, sink: &str, event: &CloudEvent) -> Result<(), String> {
    sinks[sink](event.clone()).await.map_err(|fault| fault.to_string())
}

async fn receiver(status: StatusCode) -> (Server, mpsc::UnboundedReceiver<Request<Bytes>>) {
    let (got, gets) = mpsc::unbounded_channel();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let answer = move |request| {
        let got = got.clone();
        async move {
            got.send(request).unwrap();
            Ok(Response::builder().status(status).body(Bytes::new()).unwrap())
        }
    };
    (Server::start(listener, 10_000, 0, answer).unwrap(), gets)
}

#[tokio::test]
async fn a_webhook_gets_the_event_signed_and_slack_gets_words_of_one_text() {
    let (server, mut gets) = receiver(StatusCode::OK).await;
    let sinks = sinks(&format!(
        "[alerts.pager]\nwebhook = \"http://{0}/in\"\nsignature = {{ standard_webhooks = \"env:SECRET\" }}\n\
         [alerts.team]\nslack = \"http://{0}/team\"\n",
        server.address()
    ))
    .await;
    assert_eq!(sinks.keys().cloned().collect::<Vec<_>>(), ["alerts:pager".into(), "alerts:team".into()]);
    send(&sinks, "alerts:pager", &event(Turn::Began)).await.unwrap();
    let got = gets.recv().await.unwrap();
    assert_eq!(serde_json::from_slice::<CloudEvent>(got.body()).unwrap(), event(Turn::Began));
    let header = |name: &str| got.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/cloudevents+json");
    assert_eq!(header("webhook-id"), &*event(Turn::Began).id);
    let at = Timestamp::from_epoch_ms(header("webhook-timestamp").parse::<i64>().unwrap() * 1_000);
    let mut expected = HeaderMap::new();
    let signer = Signer::new(&agents::Secret::new(SECRET)).unwrap();
    signer.sign(&mut expected, &event(Turn::Began).id, got.body(), at);
    assert_eq!(header("webhook-signature"), expected["webhook-signature"]);

    send(&sinks, "alerts:team", &event(Turn::Began)).await.unwrap();
    let got: serde_json::Value = serde_json::from_slice(gets.recv().await.unwrap().body()).unwrap();
    let text = "Alert: order/exhausted/charge-payment (Stepwarden)\nOrders &lt;wait&gt; [2J at charge-payment.\nOrders so far: \
                12\nTo do: Restore the service.\nSince 2026-11-20T17:26:43.007Z";
    assert_eq!(got, json!({"text": text}));
    send(&sinks, "alerts:team", &event(Turn::Ended)).await.unwrap();
    let got: serde_json::Value = serde_json::from_slice(gets.recv().await.unwrap().body()).unwrap();
    let text = "Resolved: order/exhausted/charge-payment (Stepwarden)\nIt was: Orders &lt;wait&gt; [2J at charge-payment.\nFrom \
                2026-11-20T17:26:43.007Z to 2026-11-20T17:27:43.007Z";
    assert_eq!(got, json!({"text": text}));
}

#[tokio::test]
async fn a_sink_that_refuses_is_told_by_its_status_and_not_by_its_url() {
    let (server, _gets) = receiver(StatusCode::FORBIDDEN).await;
    let text = format!("[alerts.team]\nslack = \"http://{}/secret-path\"\n", server.address());
    let sinks = sinks(&text).await;
    let refused = send(&sinks, "alerts:team", &event(Turn::Began)).await.unwrap_err();
    assert_eq!(refused, "it answered 403 Forbidden");
    server.stop().await;
    let gone = send(&sinks, "alerts:team", &event(Turn::Began)).await.unwrap_err();
    assert!(gone.starts_with("no answer: ") && !gone.contains("secret-path"), "{gone}");
    let webhook = Webhook::of("https://hooks.example/secret-path".to_owned(), None, &secrets_of(None)).await;
    assert!(!format!("{webhook:?}").contains("secret-path"));
}

/// A mail server that takes mails for all but one receiver. Returns the lines of the next connection.
async fn one_mail(listener: &TcpListener) -> Vec<String> {
    let (stream, _) = listener.accept().await.unwrap();
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut got = Vec::new();
    write.write_all(b"220 mail\r\n").await.unwrap();
    let mut is_data = false;
    while let Some(line) = lines.next_line().await.unwrap() {
        let answer: &[u8] = match (is_data, line.split(' ').next().unwrap_or_default()) {
            (true, ".") => {
                is_data = false;
                b"250 taken\r\n"
            }
            (true, _) => b"",
            (false, "RCPT") if line.contains("gone@") => b"550 no such mailbox\r\n",
            (false, "DATA") => {
                is_data = true;
                b"354 go on\r\n"
            }
            (false, "QUIT") => b"221 bye\r\n",
            (false, _) => b"250 mail\r\n",
        };
        let is_end = answer.starts_with(b"250 taken") || answer.starts_with(b"550") || line == "QUIT";
        got.push(line);
        write.write_all(answer).await.unwrap();
        if is_end {
            break;
        }
    }
    got
}

#[tokio::test]
async fn each_receiver_gets_an_e_mail_with_the_event_s_id_even_if_another_one_is_gone() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let text = format!(
        "[alerts.duty]\nemail = [\"gone@example.com\", \"ops@example.com\"]\nfrom = \"stepwarden@example.com\"\n\
         smtp = \"smtp://{}\"\n",
        listener.local_addr().unwrap()
    );
    let sinks = sinks(&text).await;
    assert_eq!(
        sinks.keys().cloned().collect::<Vec<_>>(),
        ["alerts:duty/gone@example.com".into(), "alerts:duty/ops@example.com".into()]
    );
    let message = event(Turn::Began);
    let (told, _) = tokio::join!(send(&sinks, "alerts:duty/gone@example.com", &message), one_mail(&listener));
    assert!(told.unwrap_err().contains("no such mailbox"));
    let (told, got) = tokio::join!(send(&sinks, "alerts:duty/ops@example.com", &message), one_mail(&listener));
    told.unwrap();
    for line in [
        "MAIL FROM:<stepwarden@example.com>",
        "RCPT TO:<ops@example.com>",
        "Subject: Alert: order/exhausted/charge-payment (Stepwarden)",
        "Message-ID: <alert.order.exhausted.charge-payment.1795195603007.AlertBegan@stepwarden>",
        "Orders <wait> [2J at charge-payment.",
        "To do: Restore the service.",
    ] {
        assert!(got.iter().any(|got| got == line), "{line} in {got:#?}");
    }
}

#[tokio::test]
async fn a_missing_secret_is_a_fault_at_the_start() {
    let text = "[alerts.a]\nslack = \"env:NONE\"\n[alerts.b]\nwebhook = \"https://x.example\"\n\
                signature = { standard_webhooks = \"env:BAD\" }\n[alerts.c]\nslack = \"env:PLAIN\"\n";
    let settings = DeploymentFile::parse(text).unwrap().sinks;
    let variable: Variable = |name| match name {
        "BAD" => Some("secret-value".to_owned()),
        "PLAIN" => Some("http://hooks.example/secret-value".to_owned()),
        _ => None,
    };
    let fault = start(&settings, Some(variable)).await.err().unwrap().to_string();
    assert_eq!(
        fault,
        "alerts.a: env:NONE is not set in the environment; \
         alerts.b: env:BAD must be whsec_ and the base64 of 24 to 64 bytes; \
         alerts.c: env:PLAIN is not encrypted: give an https URL"
    );
}
