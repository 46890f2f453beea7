//! Connections: kept open, shared by several requests, abused, and abandoned.

use serde_json::json;
use tests::machine::Machine;
use tests::socket::request;

const ORDER: &str = r#"{"Item": "mug"}"#;
const WAIT: [(&str, &str); 1] = [("prefer", "wait=20")];

#[tokio::test]
async fn one_connection_takes_one_request_after_the_other() {
    let machine = Machine::start().await;
    let mut connection = machine.connect().await;
    for _ in 0..50 {
        connection.send(&request("POST", "/orders", &WAIT, ORDER)).await.unwrap();
        let answer = connection.answer(true).await.unwrap();
        assert_eq!((answer.status, answer.text_of("ProcessState").as_str()), (200, "Processed"));
    }
    // A request with refused content does not close the connection.
    connection.send(&request("POST", "/orders", &[], "{")).await.unwrap();
    assert_eq!(connection.answer(true).await.unwrap().status, 400);
    connection.send(&request("GET", "/health", &[], "")).await.unwrap();
    assert_eq!(connection.answer(true).await.unwrap().status, 200);
}

#[tokio::test]
async fn requests_that_do_not_wait_for_each_other_are_answered_in_their_order() {
    let machine = Machine::start().await;
    let mut connection = machine.connect().await;
    let all = [
        request("POST", "/orders", &[("prefer", "wait=20"), ("idempotency-key", "a")], ORDER),
        request("GET", "/nowhere", &[], ""),
        request("POST", "/orders", &[("idempotency-key", "a")], ORDER),
        request("GET", "/health", &[], ""),
    ];
    connection.send(&all.concat()).await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..all.len() {
        statuses.push(connection.answer(true).await.unwrap().status);
    }
    assert_eq!(statuses, [200, 404, 202, 200]);
}

#[tokio::test]
async fn a_body_of_several_mb_is_refused_while_its_sender_still_sends() {
    let machine = Machine::start().await;
    let before = machine.trace().await;
    let body = format!("{{\"a\": \"{}\"}}", "x".repeat(8_000_000));
    let mut plain = machine.connect().await;
    plain.send(&request("POST", "/orders", &[], &body)).await.unwrap();
    let answer = plain.answer(true).await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    let mut chunked = machine.connect().await;
    let head = "POST /orders HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    chunked.send(format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes()).await.unwrap();
    let answer = chunked.answer(true).await.unwrap();
    assert_eq!(answer.text_of("type"), "/problems/body-too-large");
    assert_eq!(machine.trace().await, before);
    machine.settled(ORDER).await;
}

#[tokio::test]
async fn garbage_on_the_socket_ends_its_connection_and_nothing_else() {
    let machine = Machine::start().await;
    let before = machine.trace().await;
    let mut good = machine.connect().await;
    let long_head = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(1_000_000));
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"nonsense\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"POST /orders HTTP/1.1\r\nhost: localhost\r\ncontent-length: minus\r\n\r\n{}",
        b"POST /orders HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}",
        b"POST /orders HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"GET /orders HTTP/9.9\r\n\r\n",
        long_head.as_bytes(),
    ] {
        let mut connection = machine.connect().await;
        // The end of the request may meet a closed connection.
        let _ = connection.send(garbage).await;
        if let Ok(said) = connection.rest().await {
            assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&said));
        }
        good.send(&request("GET", "/health", &[], "")).await.unwrap();
        assert_eq!(
            good.answer(true).await.unwrap().json(),
            json!({"Status": "ok", "Version": env!("CARGO_PKG_VERSION"), "StandIns": true})
        );
    }
    assert_eq!(machine.trace().await, before);
    machine.settled(ORDER).await;
}

#[tokio::test]
async fn who_leaves_in_the_middle_of_a_request_leaves_no_order() {
    let machine = Machine::start().await;
    let before = machine.trace().await;
    let whole = request("POST", "/orders", &[], ORDER);
    for length in [5, 30, whole.len() - 1] {
        let mut connection = machine.connect().await;
        connection.send(&whole[..length]).await.unwrap();
        drop(connection);
    }
    // A later connection is served, so the server did not wait for the earlier ones.
    assert_eq!(machine.get("/health").await.status, 200);
    assert_eq!(machine.trace().await, before);
}

#[tokio::test]
async fn who_leaves_while_waiting_for_an_order_has_posted_it_all_the_same() {
    let machine = Machine::start().await;
    let slow = r#"{"StandIn": {"inventory": {"SlowMs": 300}}}"#;
    let mut connection = machine.connect().await;
    let headers = [("prefer", "wait=20"), ("idempotency-key", "left")];
    connection.send(&request("POST", "/orders", &headers, slow)).await.unwrap();
    while machine.effects().values().all(|service| service.calls == 0) {
        tokio::task::yield_now().await;
    }
    drop(connection);
    let again = machine.post(&headers, slow).await;
    assert_eq!((again.status, again.text_of("ProcessState").as_str()), (200, "Processed"));
}
