//! The export of spans to a scripted collector.

#![allow(clippy::disallowed_methods, reason = "a test has a clock of its own, which stands still until it is moved")]

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::id::OrderId;
use domain::trace::{self, TRACES, TraceParent};
use http::Request;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tracing::{Instrument, Level, Span, info_span, trace_span};
use tracing_subscriber::layer::SubscriberExt;

use crate::buffer::{BATCH_MAX, SPANS_MAX};
use crate::{Posting, Settings, Traces, Transport, listen};

const LONG: Duration = Duration::from_secs(60);

/// The collector's answer to a request.
#[derive(Debug, Clone, Copy)]
enum Does {
    Answers(u16),
    /// This status, and `Retry-After` with these seconds, as some write it.
    AsksToWait(u16, u64),
    Breaks,
    Hangs,
}

/// A collector and its received requests.
#[derive(Clone)]
struct Collector {
    does: Arc<Mutex<Does>>,
    seen: Arc<Mutex<Vec<Request<Bytes>>>>,
}

impl Collector {
    fn that(does: Does) -> Self {
        Self { does: Arc::new(Mutex::new(does)), seen: Arc::default() }
    }

    fn now(&self, does: Does) {
        *self.does.lock().unwrap() = does;
    }

    fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn bodies(&self) -> Vec<Value> {
        self.seen.lock().unwrap().iter().map(|request| serde_json::from_slice(request.body()).unwrap()).collect()
    }

    /// All spans of all requests.
    fn spans(&self) -> Vec<Value> {
        let spans = |body: Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        self.bodies().into_iter().flat_map(spans).collect()
    }
}

impl Transport for Collector {
    fn post(&self, request: Request<Bytes>) -> Posting<'_> {
        Box::pin(async move {
            self.seen.lock().unwrap().push(request);
            let does = *self.does.lock().unwrap();
            match does {
                Does::Answers(status) => Ok(http::Response::builder().status(status).body(())?.into_parts().0),
                Does::AsksToWait(status, seconds) => {
                    let answer = http::Response::builder().status(status).header("retry-after", format!("{seconds}.0"));
                    Ok(answer.body(())?.into_parts().0)
                }
                Does::Breaks => Err("the connection broke".into()),
                Does::Hangs => pending().await,
            }
        })
    }
}

fn traces(collector: &Collector, variables: &[(&str, &str)]) -> Traces {
    let lookup = |name: &str| {
        let said = variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        said.or_else(|| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://collector:4318".to_owned()))
    };
    Traces::new(Settings::read(lookup, "tests", "aws_sqs").settings.unwrap().within_ms(1_000), collector.clone())
}

/// Creates spans that `traces` records.
fn happen(traces: &Traces, work: impl FnOnce()) {
    let _listening = listen(tracing_subscriber::registry().with(traces.layer()));
    work();
}

fn order_id() -> OrderId {
    OrderId::from_idempotency_key("test", "traced")
}

fn span_of(order_id: OrderId, parent: Option<TraceParent>) -> Span {
    trace_span!(target: TRACES, "one", otel.parent = parent.map(tracing::field::display), %order_id)
}

/// This many spans.
fn many(traces: &Traces, count: usize) {
    happen(traces, || (0..count).for_each(|_| drop(trace::found(order_id()))));
}

#[tokio::test]
async fn a_span_goes_out_as_otlp_has_it() {
    let collector = Collector::that(Does::Answers(200));
    let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k"), ("OTEL_SERVICE_NAME", "shop")];
    let traces = traces(&collector, &variables);
    let link = TraceParent::new([0xab; 16], [0xcd; 8], true).unwrap();
    happen(&traces, || {
        let _posted = trace::posted("/orders", order_id(), Some(link)).entered();
        let _log = info_span!("record", message_id = "m").entered();
        tracing::event!(target: TRACES, Level::TRACE, { late = true, ratio = 0.5, count = u64::MAX }, "said");
        domain::observe::accepted(order_id(), "shop");
        trace::answered(503);
        trace::failed(&"no queue");
        trace::failed(&"and so on");
    });
    traces.flush(LONG).await;
    let seen = collector.seen.lock().unwrap().remove(0);
    assert_eq!((seen.method().as_str(), seen.uri().to_string().as_str()), ("POST", "http://collector:4318/v1/traces"));
    assert_eq!(
        (&seen.headers()["content-type"], &seen.headers()["api-key"]),
        (&"application/json".parse().unwrap(), &"k".parse().unwrap())
    );
    let mut body: Value = serde_json::from_slice(seen.body()).unwrap();
    let span = &mut body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    let (start, end) = (span["startTimeUnixNano"].take(), span["endTimeUnixNano"].take());
    let event_at = span["events"][0]["timeUnixNano"].take();
    let ns = |value: Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let (start, event_at, end) = (ns(start), ns(event_at), ns(end));
    assert!(1_600_000_000_000_000_000 < start && start <= event_at && event_at <= end, "{start} {event_at} {end}");
    assert_eq!(span["spanId"].take().as_str().unwrap().len(), 16);
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let expected = json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "shop")]},
        "scopeSpans": [{"scope": {"name": "stepwarden", "version": env!("CARGO_PKG_VERSION")}, "spans": [{
            "traceId": hex::encode(order_id().as_bytes()), "spanId": null, "flags": 0x101, "name": "POST /orders", "kind": 2,
            "startTimeUnixNano": null, "endTimeUnixNano": null,
            "attributes": [
                text("stepwarden.order_id", &order_id().to_string()), text("http.request.method", "POST"),
                text("http.route", "/orders"), text("url.path", "/orders"),
                {"key": "late", "value": {"boolValue": true}}, {"key": "ratio", "value": {"doubleValue": 0.5}},
                {"key": "count", "value": {"intValue": "9223372036854775807"}},
                {"key": "http.response.status_code", "value": {"intValue": "503"}},
            ],
            "events": [{"timeUnixNano": null, "name": "order accepted", "attributes": [text("caller", "shop")]}],
            "links": [{"traceId": "ab".repeat(16), "spanId": "cd".repeat(8), "flags": 0x301}],
            "status": {"code": 2, "message": "no queue"},
        }]}],
    }]});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn within_a_span_others_are_its_children_and_what_is_sent_carries_it_on() {
    let collector = Collector::that(Does::Answers(200));
    let traces = traces(&collector, &[]);
    let sent = TraceParent::new(*order_id().as_bytes(), [7; 8], true);
    happen(&traces, || {
        assert_eq!(trace::current(), None);
        let outer = span_of(order_id(), sent).entered();
        let outer_is = trace::current().unwrap();
        {
            let _inner = span_of(order_id(), None).entered();
            let inner_is = trace::current().unwrap();
            assert_ne!(inner_is.span_id(), outer_is.span_id());
            // Another order is another trace, whatever the parent or the message context.
            let _other = span_of(OrderId::from_idempotency_key("test", "other"), sent).entered();
            assert_ne!(trace::current().unwrap().trace_id(), outer_is.trace_id());
        }
        assert_eq!(trace::current(), Some(outer_is));
        drop(outer);
        assert_eq!(trace::current(), None);
    });
    traces.flush(LONG).await;
    let spans = collector.spans();
    let ids: Vec<_> = spans.iter().map(|span| (&span["parentSpanId"], &span["flags"])).collect();
    assert_eq!(ids[0], (&Value::Null, &json!(0x101)), "the other order's");
    assert_eq!(ids[1], (&spans[2]["spanId"], &json!(0x101)));
    assert_eq!(ids[2], (&json!("07".repeat(8)), &json!(0x301)), "it came with a message");
}

#[tokio::test]
async fn a_span_follows_its_future_from_poll_to_poll_and_leaves_the_thread_between() {
    let collector = Collector::that(Does::Answers(200));
    let traces = traces(&collector, &[]);
    let _listening = listen(tracing_subscriber::registry().with(traces.layer()));
    let (go, goes) = oneshot::channel::<()>();
    let waiting = async {
        let before = trace::current();
        goes.await.unwrap();
        (before, trace::current())
    };
    let ((before, after), between) = tokio::join!(waiting.instrument(span_of(order_id(), None)), async {
        go.send(()).unwrap();
        trace::current()
    });
    assert!(before.is_some() && before == after && between.is_none(), "{before:?} {between:?} {after:?}");
}

#[tokio::test]
async fn what_is_not_sampled_is_not_sent_and_still_tells_others_not_to() {
    let collector = Collector::that(Does::Answers(200));
    let unsampled = TraceParent::new([1; 16], [1; 8], false);
    for variables in [&[][..], &[("OTEL_TRACES_SAMPLER", "always_off")]] {
        let traces = traces(&collector, variables);
        happen(&traces, || {
            let _posted = trace::posted("/orders", order_id(), unsampled).entered();
            let current = trace::current().unwrap();
            assert_eq!((current.is_sampled(), current.trace_id()), (false, order_id().as_bytes()));
            let _child = span_of(order_id(), Some(current)).entered();
            assert!(!trace::current().unwrap().is_sampled());
        });
        traces.flush(LONG).await;
    }
    assert_eq!(collector.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_away_costs_one_try_and_then_a_pause_and_gets_everything_later() {
    for does in [Does::Breaks, Does::Hangs, Does::Answers(503)] {
        let collector = Collector::that(does);
        let traces = traces(&collector, &[]);
        many(&traces, 3);
        let began = tokio::time::Instant::now();
        traces.flush(LONG).await;
        assert!(began.elapsed() <= Duration::from_secs(1), "{does:?}: {:?}", began.elapsed());
        for _ in 0..100 {
            traces.flush(LONG).await;
        }
        assert_eq!(collector.requests(), 1, "{does:?}: it is left alone");
        // The second pause is longer.
        tokio::time::advance(Duration::from_millis(1_001)).await;
        traces.flush(LONG).await;
        tokio::time::advance(Duration::from_millis(1_001)).await;
        traces.flush(LONG).await;
        assert_eq!(collector.requests(), 2, "{does:?}");
        collector.now(Does::Answers(200));
        tokio::time::advance(Duration::from_secs(60)).await;
        traces.flush(LONG).await;
        assert_eq!((collector.requests(), collector.spans().len()), (3, 9), "{does:?}: the same three, three times");
    }
}

#[tokio::test(start_paused = true)]
async fn a_collector_is_asked_again_after_the_statuses_of_the_protocol_and_not_before_it_said() {
    for (status, again) in
        [(429, true), (502, true), (503, true), (504, true), (408, false), (500, false), (501, false)]
    {
        for (asked_s, waits_s) in [(30, 30), (0, 1), (u64::MAX, 15 * 60)] {
            let collector = Collector::that(Does::AsksToWait(status, asked_s));
            let traces = traces(&collector, &[]);
            many(&traces, 1);
            traces.flush(LONG).await;
            collector.now(Does::Answers(200));
            tokio::time::advance(Duration::from_millis(waits_s * 1_000 - 1)).await;
            traces.flush(LONG).await;
            let early = collector.requests();
            tokio::time::advance(Duration::from_millis(1)).await;
            traces.flush(LONG).await;
            assert_eq!((early, collector.requests()), (1, 1 + usize::from(again)), "{status}, {asked_s} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_flush_takes_longer_than_it_may() {
    let collector = Collector::that(Does::Hangs);
    let traces = traces(&collector, &[]);
    many(&traces, 1);
    for (within_ms, at_most_ms) in [(0, 1), (30, 40), (60_000, 1_010)] {
        let began = tokio::time::Instant::now();
        traces.flush(Duration::from_millis(within_ms)).await;
        assert!(began.elapsed() <= Duration::from_millis(at_most_ms), "{within_ms}: {:?}", began.elapsed());
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    assert_eq!(collector.requests(), 2, "where there is no time it is not even tried");
}

#[tokio::test]
async fn what_the_collector_refuses_is_not_sent_again() {
    let collector = Collector::that(Does::Answers(400));
    let traces = traces(&collector, &[]);
    many(&traces, 2);
    traces.flush(LONG).await;
    assert_eq!((collector.spans().len(), format!("{traces:?}").ends_with("buffer: 0 }")), (2, true), "{traces:?}");
}

#[tokio::test(start_paused = true)]
async fn there_is_a_bound_to_what_waits_and_what_is_beyond_is_dropped_and_counted() {
    let collector = Collector::that(Does::Breaks);
    let traces = traces(&collector, &[]);
    many(&traces, SPANS_MAX + 100);
    traces.flush(LONG).await;
    assert!(format!("{traces:?}").ends_with(&format!("buffer: {SPANS_MAX} }}")));
    collector.now(Does::Answers(200));
    tokio::time::advance(LONG).await;
    traces.flush(LONG).await;
    assert_eq!(collector.requests(), 1 + SPANS_MAX / BATCH_MAX, "in requests of a size that a collector takes");
    assert_eq!(collector.spans().len(), BATCH_MAX + SPANS_MAX);
}

#[tokio::test(start_paused = true)]
async fn in_the_background_spans_go_after_a_moment_or_when_there_are_many_and_the_last_ones_at_the_end() {
    let collector = Collector::that(Does::Answers(200));
    let traces = traces(&collector, &[]);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let traces = traces.clone();
        async move { traces.run(async { drop(stopped.await) }).await }
    });
    many(&traces, 1);
    tokio::time::sleep(Duration::from_millis(1_001)).await;
    assert_eq!(collector.spans().len(), 1);
    let began = tokio::time::Instant::now();
    many(&traces, BATCH_MAX);
    while collector.spans().len() < 1 + BATCH_MAX {
        tokio::task::yield_now().await;
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    many(&traces, 1);
    stop.send(()).unwrap();
    running.await.unwrap();
    assert_eq!(collector.spans().len(), 2 + BATCH_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_hangs_holds_up_the_end_for_a_bounded_time() {
    let collector = Collector::that(Does::Hangs);
    let traces = traces(&collector, &[]);
    many(&traces, 1);
    let began = tokio::time::Instant::now();
    traces.run(async {}).await;
    assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
}
