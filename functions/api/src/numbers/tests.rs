use domain::ports::Environment;
use domain::tally::{Flow, Span, States};
use serde_json::{Value, json};

use super::*;
use crate::testing::{Fake, task_in};

/// A minute with two orders of 40 ms: one processed, one in `Error` after a rejection.
fn tally() -> Tally {
    let mut took = Histogram::default();
    took.add(40);
    let orders = Orders { accepted: 2, processed: 1, failed: 1, took: took.clone(), ..Orders::default() };
    let mut calls = Histogram::default();
    calls.add(9);
    let forward = Attempts { begun: 3, done: 1, expired: 1, rejected: 1, deferred: 4, skipped: 2, took, calls };
    let service = Service { forward, undo: Attempts::default() };
    let steps = [("pay".into(), [("bank".into(), service)].into())].into();
    Tally { workflows: [("order".into(), Flow { orders, steps })].into() }
}

/// The fake's store counted this tally at each of these times before now, in minutes.
fn counted(fake: &Fake, ago: &[u64]) {
    fake.ports.counts(numbers(fake.ports.now(), ago));
}

fn numbers(now: Timestamp, ago: &[u64]) -> Numbers {
    let (mut states, mut total) = (States::default(), Tally::default());
    let spans = ago.iter().map(|minutes| {
        total.add(&tally());
        Span { at: Grain::Minute.of(now).minus_ms(minutes * 60_000), tally: tally() }
    });
    let spans: Vec<Span> = spans.collect();
    states.add(ProcessState::Processed, ago.len() as u64);
    states.add(ProcessState::Error, ago.len() as u64);
    states.add(ProcessState::Processing, 5);
    let since = spans.first().map(|span| span.at);
    let oldest = Some(vec![(ProcessState::Processing, now.minus_ms(90_500))]);
    Numbers { since, states: Some(states), oldest, spans, total }
}

fn column<'a>(rows: &'a Value, name: &str) -> Vec<&'a Value> {
    rows.as_array().unwrap().iter().map(|row| &row[name]).collect()
}

#[test]
fn the_last_minutes_add_up_to_their_orders_and_percentiles() {
    let fake = Fake::default();
    counted(&fake, &[29, 1, 0]);
    let answer = fake.get("/numbers?last=30m");
    assert_eq!((answer.status, &answer.body["PointSeconds"]), (200, &json!(60)), "{}", answer.text);
    let expected = json!({
        "Accepted": 6, "Processed": 3, "Compensated": 0, "Closed": 0, "Failed": 3,
        "Took": {"P50Ms": 43, "P95Ms": 43, "P99Ms": 43},
    });
    assert_eq!(answer.body["Orders"], expected);
    let points = &answer.body["Points"];
    let accepted: Vec<_> = column(points, "Orders").into_iter().map(|orders| &orders["Accepted"]).collect();
    assert_eq!(
        (accepted.len(), accepted[0], accepted[27], accepted[28], accepted[29]),
        (30, &json!(2), &json!(0), &json!(2), &json!(2))
    );
    assert_eq!((&points[0]["At"], &points[29]["UnderWay"]), (&answer.body["From"], &json!(5)));
    assert_eq!(answer.body["Since"], points[0]["At"]);
    let step = json!({
        "Workflow": "order", "Step": "pay", "Service": "bank", "Direction": "Forward",
        "Attempts": {"Begun": 9, "Done": 3, "Expired": 3, "Rejected": 3, "Deferred": 12, "Skipped": 6,
                     "Took": {"P50Ms": 43, "P95Ms": 43, "P99Ms": 43}, "Calls": {"P50Ms": 9, "P95Ms": 9, "P99Ms": 9}},
    });
    assert_eq!(answer.body["Steps"], json!([step]));
    assert_eq!(
        (&answer.body["Services"][0]["Attempts"]["Begun"], &answer.body["Workflows"][0]["Orders"]["Failed"]),
        (&json!(9), &json!(3))
    );
    let oldest = fake.ports.now().minus_ms(90_500);
    let processing = json!({"State": "Processing", "Count": 5, "AtLeast": false, "OldestAt": oldest});
    assert_eq!(answer.body["Counts"][1], processing);
}

#[test]
fn the_points_have_the_attempts_of_the_workflow_step_and_service_that_are_asked_for() {
    let fake = Fake::default();
    counted(&fake, &[29, 0]);
    let none = fake.get("/numbers?last=30m");
    assert_eq!(column(&none.body["Points"], "Forward"), [&Value::Null; 30]);
    let took = json!({"P50Ms": 43, "P95Ms": 43, "P99Ms": 43});
    let expected = json!({
        "Begun": 3, "Done": 1, "Expired": 1, "Rejected": 1, "Deferred": 4, "Skipped": 2, "Took": took,
        "Calls": {"P50Ms": 9, "P95Ms": 9, "P99Ms": 9},
    });
    for query in ["service=bank", "step=pay", "workflow=order", "workflow=order&step=pay&service=bank"] {
        let points = fake.get(&format!("/numbers?last=30m&{query}")).body["Points"].take();
        assert_eq!((&points[0]["Forward"], &points[29]["Forward"]), (&expected, &expected), "{query}");
        assert_eq!((points[0].get("Undo"), points[1].get("Forward")), (None, None), "{query}: nothing happened");
    }
    for query in ["service=mint", "step=pay&service=mint", "workflow=shop"] {
        let answer = fake.get(&format!("/numbers?last=30m&{query}"));
        assert_eq!(column(&answer.body["Points"], "Forward"), [&Value::Null; 30], "{query}");
        assert_eq!(answer.body["Services"], none.body["Services"], "{query}: the sums are of all");
    }
    fake.get("/numbers?step=").names(400, "invalid-parameter", "step");
    fake.get(&format!("/numbers?service={}", "x".repeat(65))).names(400, "invalid-parameter", "service");
}

#[test]
fn orders_under_way_at_the_end_of_a_point_follow_from_those_of_now() {
    let at = |minute: u64| Timestamp::from_epoch_ms(0).plus_ms(minute * 60_000);
    let span = |minute, orders| {
        let tally = Tally { workflows: [("order".into(), Flow { orders, ..Flow::default() })].into() };
        Span { at: at(minute), tally }
    };
    let spans = vec![
        span(0, Orders { accepted: 9, ..Orders::default() }),
        span(1, Orders { processed: 4, failed: 3, ..Orders::default() }),
        span(2, Orders { mended: 1, compensated: 2, ..Orders::default() }),
    ];
    let numbers = Numbers { spans, ..Numbers::default() };
    let under_way: Vec<u64> = points(&numbers, 1, at(0), 60_000, 3).iter().map(|point| point.under_way).collect();
    assert_eq!(under_way, [9, 2, 1]);
}

#[test]
fn a_span_is_one_of_four() {
    let fake = Fake::default();
    counted(&fake, &[0]);
    for (last, points, seconds) in [("24h", 144, 600), ("7d", 168, 3_600), ("30d", 120, 21_600)] {
        let answer = fake.get(&format!("/numbers?last={last}"));
        assert_eq!(
            (column(&answer.body["Points"], "At").len(), &answer.body["PointSeconds"]),
            (points, &json!(seconds))
        );
    }
    assert_eq!(fake.get("/numbers").body["PointSeconds"], 600);
    fake.get("/numbers?last=1y").names(400, "invalid-parameter", "last");
}

#[test]
fn a_day_has_its_hours_and_nothing_of_the_days_beside_it() {
    let fake = Fake::default();
    let hour = Grain::Hour.of(fake.ports.now());
    let midnight = hour.minus_ms(hour.epoch_ms().rem_euclid(86_400_000).cast_unsigned());
    let day = |days: u64| midnight.minus_ms(days * 86_400_000).to_string()[..10].to_owned();
    // The last hour of the day before, the first and the last of yesterday, and the first of today.
    let spans = [25, 24, 1, 0].map(|hours| Span { at: midnight.minus_ms(hours * Grain::Hour.ms()), tally: tally() });
    let numbers = Numbers { spans: spans.into(), states: Some(States::default()), ..Numbers::default() };
    fake.ports.counts(numbers);
    let answer = fake.get(&format!("/numbers?day={}&step=pay", day(1)));
    let accepted: Vec<_> = column(&answer.body["Points"], "Orders")
        .into_iter()
        .map(|orders| orders["Accepted"].as_u64().unwrap())
        .collect();
    assert_eq!((accepted.len(), accepted[0], accepted[1], accepted[23]), (24, 2, 0, 2));
    assert_eq!((&answer.body["Orders"]["Accepted"], &answer.body["PointSeconds"]), (&json!(4), &json!(3_600)));
    assert_eq!(answer.body["From"], json!(midnight.minus_ms(86_400_000).to_string()));
    assert_eq!(answer.body["Steps"][0]["Attempts"]["Begun"], json!(6));
    // What was under way at its end: nothing is now, and today two came and two went.
    assert_eq!(answer.body["Points"][23]["UnderWay"], json!(0));
    let today = fake.get(&format!("/numbers?day={}", day(0))).body;
    assert_eq!(today["Orders"]["Accepted"], json!(2));
    assert_eq!(today["Points"].as_array().unwrap().len() as u64, midnight.ms_until(hour) / Grain::Hour.ms() + 1);
    assert_eq!(fake.get(&format!("/numbers?day={}", day(30))).status, 200);
    for wrong in
        [day(31), midnight.plus_ms(86_400_000).to_string()[..10].to_owned(), "yesterday".to_owned(), String::new()]
    {
        fake.get(&format!("/numbers?day={wrong}")).names(400, "invalid-parameter", "day");
    }
    let with_last = fake.get(&format!("/numbers?day={}&last=7d&step=pay", day(1)));
    assert_eq!(with_last.body, answer.body, "a day counts in the place of last");
    // An hour earlier than the day of UTC begins: it has the last hour of the day before, and not that of its own.
    let in_zone = fake.get(&format!("/numbers?day={}%2B01:00", day(1))).body;
    assert_eq!(in_zone["From"], json!(midnight.minus_ms(25 * Grain::Hour.ms()).to_string()));
    assert_eq!((&in_zone["Orders"]["Accepted"], &in_zone["Points"][0]["Orders"]["Accepted"]), (&json!(4), &json!(2)));
    for zone in ["%2B05:30", "%2B1", "CET", "%2B01:00x"] {
        fake.get(&format!("/numbers?day={}{zone}", day(1))).names(400, "invalid-parameter", "day");
    }
}

#[test]
fn a_store_that_counts_nothing_has_no_numbers_and_one_that_is_down_says_so() {
    let fake = Fake::default();
    for path in ["/numbers", "/metrics"] {
        fake.get(path).is_problem(404, "unknown-route");
    }
    counted(&fake, &[0]);
    ["store.numbers", "store.list"].into_iter().for_each(|operation| fake.down(operation));
    for path in ["/numbers", "/metrics"] {
        fake.get(path).is_problem(503, "unavailable");
    }
}

#[test]
fn the_overview_is_exact_where_orders_are_counted() {
    let fake = Fake::default();
    counted(&fake, &[3, 0]);
    let answer = fake.get("/overview");
    let counts: Vec<_> =
        column(&answer.body["Counts"], "Count").into_iter().map(|count| count.as_u64().unwrap()).collect();
    assert_eq!((counts, &answer.body["MinutesComplete"]), (vec![0, 5, 2, 2, 0, 0, 0], &json!(true)));
    assert_eq!(answer.body["Took"], json!({"P50Ms": 43, "P95Ms": 43, "P99Ms": 43}));
    assert_eq!(column(&answer.body["Counts"], "Since"), [&Value::Null; 7]);
    let oldest = json!(fake.ports.now().minus_ms(90_500));
    assert_eq!(column(&answer.body["Counts"], "OldestAt"), [&[&Value::Null, &oldest][..], &[&Value::Null; 5]].concat());
    let last = &answer.body["Minutes"][29];
    assert_eq!(
        (&last["Accepted"], &last["Processed"], &last["Error"], &last["UnderWay"]),
        (&json!(2), &json!(1), &json!(1), &json!(5))
    );
    assert_eq!(answer.body["CountedSince"], answer.body["Minutes"][26]["At"]);
}

#[test]
fn where_orders_from_before_are_not_counted_those_in_flight_are_found_as_without_numbers() {
    let fake = Fake::default();
    fake.ports.counts(Numbers { states: None, oldest: None, ..numbers(fake.ports.now(), &[3, 0]) });
    fake.stores(task_in("mug", ProcessState::Processing));
    let overview = fake.get("/overview").body;
    assert_eq!((&overview["Counts"][1]["Count"], overview.get("CountedSince")), (&json!(1), None));
    let answer = fake.get("/numbers?last=30m").body;
    let in_flight = json!(["Pending", "Processing", "Compensating"]);
    assert_eq!((json!(column(&answer["Counts"], "State")), &answer["Counts"][1]["Count"]), (in_flight, &json!(1)));
    assert_eq!((&answer["Points"][29]["UnderWay"], &answer["Orders"]["Accepted"]), (&json!(1), &json!(4)));
    let scrape = fake.get("/metrics").text;
    assert!(
        !scrape.contains("stepwarden_orders_by_state{")
            && !scrape.contains("stepwarden_oldest")
            && scrape.contains("event=\"accepted\"} 4"),
        "{scrape}"
    );
}

#[test]
fn a_scrape_has_states_counters_and_whole_histograms() {
    let fake = Fake::default();
    counted(&fake, &[1, 0]);
    let answer = fake.get("/metrics");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    for line in [
        "# TYPE stepwarden_orders_by_state gauge",
        "stepwarden_orders_by_state{state=\"Processing\"} 5",
        "stepwarden_oldest_order_seconds{state=\"Processing\"} 90",
        "stepwarden_oldest_order_seconds{state=\"Compensating\"} 0",
        "stepwarden_orders_total{workflow=\"order\",event=\"accepted\"} 4",
        "stepwarden_order_duration_seconds_bucket{workflow=\"order\",le=\"0.032\"} 0",
        "stepwarden_order_duration_seconds_bucket{workflow=\"order\",le=\"0.128\"} 2",
        "stepwarden_order_duration_seconds_bucket{workflow=\"order\",le=\"+Inf\"} 2",
        "stepwarden_order_duration_seconds_sum{workflow=\"order\"} 0.086",
        "stepwarden_order_duration_seconds_count{workflow=\"order\"} 2",
        "stepwarden_attempts_total{workflow=\"order\",step=\"pay\",service=\"bank\",direction=\"Forward\",event=\"rejected\"} 2",
        "stepwarden_attempts_total{workflow=\"order\",step=\"pay\",service=\"bank\",direction=\"Forward\",event=\"deferred\"} 8",
        "stepwarden_attempts_total{workflow=\"order\",step=\"pay\",service=\"bank\",direction=\"Forward\",event=\"skipped\"} 4",
        "stepwarden_call_duration_seconds_bucket{workflow=\"order\",step=\"pay\",service=\"bank\",direction=\"Forward\",le=\"0.032\"} 2",
        "stepwarden_paused 0",
    ] {
        assert!(answer.text.lines().any(|found| found == line), "{line}\n{}", answer.text);
    }
    // OpenMetrics names the family of a counter without its `_total`.
    let types = answer.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let families: Vec<&str> = types.map(|(name, _)| name.strip_suffix("_total").unwrap_or(name)).collect();
    let different: std::collections::BTreeSet<_> = families.iter().collect();
    assert_eq!(different.len(), families.len(), "{families:?}");
    assert!(
        !answer.text.contains("oldest_order_seconds{state=\"Error\"}"),
        "there are some, and nobody knows since when"
    );
}
