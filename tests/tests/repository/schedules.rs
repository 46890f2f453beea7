//! The cron of schedules: what ours says of five fields, another program says too.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use domain::schedule::Cron;
use domain::time::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A field with values from `first` to `last`, perhaps by a name.
fn field(first: u32, last: u32, names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let value = move || {
        (first..=last, any::<bool>()).prop_map(move |(value, is_named)| {
            let name = names.get((value - first) as usize).filter(|_| is_named);
            name.map_or_else(|| value.to_string(), |name| (*name).to_owned())
        })
    };
    let range = move || (first..=last, first..=last).prop_map(|(one, other)| (one.min(other), one.max(other)));
    let part = prop_oneof![
        value(),
        range().prop_map(|(from, to)| format!("{from}-{to}")),
        (range(), 1..=5_u32).prop_map(|((from, to), step)| format!("{from}-{to}/{step}")),
        (1..=9_u32).prop_map(|step| format!("*/{}", step.min(5))),
    ];
    prop_oneof![Just("*".to_owned()), vec(part, 1..4).prop_map(|parts| parts.join(","))]
}

#[test]
fn a_cron_is_due_when_another_program_says_so() {
    let (days, weekdays) = (field(1, 31, &[]), field(0, 6, &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]));
    let day =
        prop_oneof![days.prop_map(|days| (days, "*".to_owned())), weekdays.prop_map(|days| ("*".to_owned(), days))];
    let months = field(1, 12, &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]);
    let after = (1_600_000_000_i64..2_000_000_000).prop_map(|seconds| seconds * 1_000 + 7);
    let drawn = (field(0, 59, &[]), field(0, 23, &[]), day, months, after);
    let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let check = |(minutes, hours, (days, weekdays), months, after): (String, String, (String, String), String, i64)| {
        let text = format!("{minutes} {hours} {days} {months} {weekdays}");
        // Both days may be restricted by a list of all of them, and some days never come.
        let Ok(ours) = Cron::parse(&text) else { return Ok(()) };
        let other = croner::Cron::from_str(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let from: DateTime<Utc> = DateTime::from_timestamp_millis(after).expect("a time");
        let theirs: Vec<i64> = other.iter_after(from).take(5).map(|at| at.timestamp_millis()).collect();
        let from = Timestamp::from_epoch_ms(after);
        let due = std::iter::successors(ours.next(from), |at| ours.next(*at)).take(5);
        prop_assert_eq!(due.map(Timestamp::epoch_ms).collect::<Vec<_>>(), theirs, "{} after {}", text, from);
        Ok(())
    };
    runner.run(&drawn, check).unwrap_or_else(|failure| panic!("{failure}"));
}
