//! Tests of the output for each reported event.

use std::io;
use std::sync::{Arc, Mutex};

use domain::observe::METRICS;
use serde_json::{Value, json};
use tracing::{Level, debug, error, info, info_span, trace};

use super::*;

/// The written output.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn settings(levels: &str) -> Settings {
    Settings { levels: levels.to_owned(), ..Settings::default() }
}

/// The lines that `tell` writes while it runs, and the lines that the flush writes.
fn written(levels: &str, tell: impl FnOnce()) -> (Vec<Value>, Vec<Value>) {
    let paper = Paper::default();
    let at = || Timestamp::from_epoch_ms(1_795_195_603_007);
    let telemetry = Telemetry::new("scheduler", settings(levels), at, paper.clone());
    let listening = trace::listen(telemetry.subscriber());
    tell();
    drop(listening);
    let lines = take(&paper);
    telemetry.flush();
    let metrics = take(&paper);
    telemetry.flush();
    assert_eq!(take(&paper), [] as [Value; 0], "nothing is written twice");
    (lines, metrics)
}

fn take(paper: &Paper) -> Vec<Value> {
    let bytes = std::mem::take(&mut *paper.0.lock().unwrap());
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn log(levels: &str, tell: impl FnOnce()) -> Vec<Value> {
    written(levels, tell).0
}

fn metrics(tell: impl FnOnce()) -> Vec<Value> {
    let (lines, metrics) = written("off", tell);
    assert!(lines.is_empty());
    metrics
}

/// The dimension sets of the line's metrics.
fn sets(line: &Value) -> &Value {
    &line["_aws"]["CloudWatchMetrics"][0]["Dimensions"]
}

#[test]
fn a_line_has_time_level_target_message_function_and_the_fields_of_event_and_spans_side_by_side() {
    let lines = log("info", || {
        let _invocation = info_span!("invocation", request_id = "r-1", attempt = 9).entered();
        let record = info_span!("record", message_id = %"m-1", order_id = tracing::field::Empty).entered();
        record.record("order_id", "o-1");
        info!(target: "scheduler::claims", step = "ship", attempt = 2_u32, late = true, ratio = 0.5, why = ?Some("x"), "claimed {}", 7);
    });
    let expected = json!({
        "timestamp": "2026-11-20T17:26:43.007Z", "level": "INFO", "target": "scheduler::claims", "message": "claimed 7",
        "function": "scheduler", "request_id": "r-1", "attempt": 2, "message_id": "m-1", "order_id": "o-1", "step": "ship",
        "late": true, "ratio": 0.5, "why": "Some(\"x\")",
    });
    assert_eq!(lines, [expected]);
}

#[test]
fn what_every_line_has_cannot_be_overwritten() {
    let lines = log("info", || info!(function = "other", level = 7, timestamp = 1, "here"));
    let of_event = (&lines[0]["function"], &lines[0]["level"], &lines[0]["message"]);
    assert_eq!(of_event, (&json!("scheduler"), &json!("INFO"), &json!("here")));
}

#[test]
fn line_ends_and_quotes_in_a_text_make_no_second_line_and_long_texts_are_cut() {
    let long = "ü".repeat(5_000);
    let lines = log("info", || info!(long = long.as_str(), exact = %&long[..2_000], "one\n\"two\"\u{1}"));
    assert_eq!(lines[0]["message"], "one\n\"two\"\u{1}");
    assert_eq!(lines[0]["long"], format!("{}…", "ü".repeat(1_000)));
    assert_eq!(lines[0]["exact"], "ü".repeat(1_000));
}

#[test]
fn levels_hold_for_lines_while_spans_are_there_at_every_level() {
    let lines = log("warn,scheduler::claims=debug", || {
        let _span = tracing::trace_span!("record", message_id = "m-1").entered();
        info!("not wanted");
        debug!(target: "scheduler::claims", "wanted");
        trace!(target: "scheduler::claims", "not wanted");
        error!("wanted");
    });
    let told: Vec<_> = lines.iter().map(|line| (&line["level"], &line["message_id"])).collect();
    assert_eq!(told, [(&json!("DEBUG"), &json!("m-1")), (&json!("ERROR"), &json!("m-1"))]);
}

#[test]
fn libraries_that_tell_whole_requests_are_not_listened_to_however_much_is_asked_for() {
    let lines = log("trace,aws_smithy_runtime=trace,hyper=trace", || {
        trace!(target: "aws_smithy_runtime::client::orchestrator", request = "all of it", "transmitting");
        debug!(target: "lambda_runtime::layers", body = "all of it", "event");
        info!(target: "hyper_util::client", "connected");
        tracing::warn!(target: "aws_config", "no region");
        let _span = info_span!(target: "aws_sdk_sqs", "send", body = "all of it").entered();
        trace!(target: "scheduler", "here");
    });
    let told: Vec<_> = lines.iter().map(|line| (&line["target"], &line["body"])).collect();
    assert_eq!(told, [(&json!("aws_config"), &Value::Null), (&json!("scheduler"), &Value::Null)]);
}

#[test]
fn metrics_are_summed_whatever_the_level_and_written_in_the_embedded_format() {
    let lines = metrics(|| {
        for (latency_ms, step) in [(120_u64, "ship"), (7, "ship/0001"), (120, "ship/mug")] {
            trace!(monotonic_counter.claims = 1, histogram.latency_ms = latency_ms, step, order_id = "o-1", "x");
        }
    });
    let expected = json!({
        "_aws": {
            "Timestamp": 1_795_195_603_007_u64,
            "CloudWatchMetrics": [{
                "Namespace": "Stepwarden",
                "Dimensions": [["Function"], ["Function", "Step"]],
                "Metrics": [{"Name": "claims", "Unit": "Count"}, {"Name": "latency_ms", "Unit": "Milliseconds"}],
            }],
        },
        "Function": "scheduler", "Step": "ship", "claims": 3.0, "latency_ms": [120.0, 7.0, 120.0],
    });
    assert_eq!(lines, [expected], "neither the order's id nor an element is a dimension");
}

#[test]
fn each_dimension_of_an_event_makes_a_set_with_the_function() {
    let lines = metrics(|| {
        debug!(monotonic_counter.plain = 1, "a");
        debug!(monotonic_counter.held = 2_u32, workflow = "order", reason = ?Level::INFO, "b");
        debug!(gauge.open = 1.5, service = "payment", "c");
        debug!(gauge.open = 2, service = "payment", "c");
        debug!(monotonic_counter.nameless = 1, step = "", "an empty name is none");
    });
    let told: Vec<_> = lines.iter().map(|line| (sets(line).to_string(), &line["open"], &line["held"])).collect();
    assert_eq!(
        told,
        [
            (r#"[["Function"]]"#.to_owned(), &Value::Null, &Value::Null),
            (r#"[["Function"],["Function","Service"]]"#.to_owned(), &json!(2.0), &Value::Null),
            (r#"[["Function"],["Function","Workflow"],["Function","Reason"]]"#.to_owned(), &Value::Null, &json!(2.0)),
        ]
    );
    assert_eq!((&lines[0]["plain"], &lines[0]["nameless"]), (&json!(1.0), &json!(1.0)), "one line for both");
}

#[test]
fn within_a_request_metrics_are_its_agents() {
    let lines = metrics(|| {
        let _span = info_span!("request", agent = "payment", step = "charge").entered();
        debug!(monotonic_counter.calls = 1, "a");
        debug!(monotonic_counter.opened = 1, service = "payment", "b");
    });
    let told: Vec<_> = lines.iter().map(|line| (sets(line).to_string(), &line["Agent"])).collect();
    assert_eq!(
        told,
        [
            (r#"[["Function"],["Function","Agent"]]"#.to_owned(), &json!("payment")),
            (r#"[["Function"],["Function","Service"]]"#.to_owned(), &Value::Null),
        ]
    );
}

#[test]
fn a_metric_is_in_the_log_by_its_message_where_its_level_is_wanted() {
    let (lines, metrics) = written("info", || {
        info!(monotonic_counter.parked = 1, wait_ms = 70, "parked");
        debug!(monotonic_counter.parked = 1, "parked");
    });
    assert_eq!((lines.len(), &lines[0]["message"], &lines[0]["wait_ms"]), (1, &json!("parked"), &json!(70)));
    assert!(lines[0].get("monotonic_counter.parked").is_none());
    assert_eq!(metrics[0]["parked"], 2.0);
}

#[test]
fn no_line_holds_more_than_a_hundred_values_or_what_is_no_number() {
    let (lines, rest) = written("off", || {
        for n in 0..250_u32 {
            debug!(histogram.wait_ms = n, histogram.part = f64::NAN, "x");
        }
    });
    let counts: Vec<_> = lines.iter().chain(&rest).map(|line| line["wait_ms"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [100, 100, 50]);
    assert!(lines[0].get("part").is_none());
}

#[test]
fn what_grows_without_bounds_is_written_before_it_is_much() {
    let (lines, rest) = written("off", || {
        for n in 0..450 {
            debug!(monotonic_counter.many = 1, reason = n.to_string(), "x");
        }
    });
    assert_eq!((lines.len(), rest.len()), (400, 50));
}

#[test]
fn nobody_listens_to_what_is_not_wanted_but_to_every_metric() {
    let paper = Paper::default();
    let telemetry = Telemetry::new("api", settings("warn"), Timestamp::default, paper);
    let _listening = trace::listen(telemetry.subscriber());
    assert!(!tracing::enabled!(Level::INFO));
    assert!(tracing::enabled!(Level::WARN));
    assert!(tracing::enabled!(target: METRICS, Level::DEBUG));
}

#[test]
fn an_output_that_fails_is_no_matter() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let telemetry = Telemetry::new("api", settings("trace"), Timestamp::default, Broken);
    let _listening = trace::listen(telemetry.subscriber());
    for _ in 0..3 {
        error!(monotonic_counter.told = 1, "nobody hears it");
    }
    telemetry.flush();
}

#[test]
fn rule_43_an_entry_of_the_audit_stream_is_a_line_at_every_level() {
    let paper = Paper::default();
    let telemetry = Telemetry::new("supervisor", settings("off"), || Timestamp::from_epoch_ms(0), paper.clone());
    let entry = Entry::record(Timestamp::from_epoch_ms(7), "job", "j", 1, "{}");
    assert!(telemetry.audit(&entry));
    assert_eq!(take(&paper), [json!({ "audit": entry })]);
}
