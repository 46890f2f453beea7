use super::*;

fn time(text: &str) -> Timestamp {
    serde_json::from_value(text.into()).unwrap()
}

/// The next due times after a time.
fn next(cron: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(cron).unwrap();
    let due = std::iter::successors(Some(time(after)), |at| cron.next(*at)).skip(1).take(count);
    due.map(|at| at.to_string()[..16].to_owned()).collect()
}

/// What croniter says, which is in Python: `cases.py` writes it.
#[test]
fn a_cron_is_due_when_another_program_says_so() {
    for line in include_str!("cases.txt").lines() {
        let (given, due) = line.split_once(" = ").unwrap();
        let (after, cron) = given.split_once(' ').unwrap();
        assert_eq!(next(cron, after, 5).join("Z ") + "Z", due, "{line}");
    }
}

#[test]
fn a_month_ends_as_the_calendar_says_and_29_february_is_rare() {
    assert_eq!(
        next("0 3 31 * *", "2026-01-31T03:00:00Z", 3),
        ["2026-03-31T03:00", "2026-05-31T03:00", "2026-07-31T03:00"]
    );
    assert_eq!(
        next("30 23 29 2 *", "2095-01-01T00:00:00Z", 3),
        ["2096-02-29T23:30", "2104-02-29T23:30", "2108-02-29T23:30"]
    );
    assert_eq!(next("0 0 1 1 *", "2026-12-31T23:59:59.999Z", 1), ["2027-01-01T00:00"]);
}

#[test]
fn steps_ranges_lists_and_names_are_sets() {
    assert_eq!(
        next("*/7 * * * *", "2026-11-30T00:50:00Z", 3),
        ["2026-11-30T00:56", "2026-11-30T01:00", "2026-11-30T01:07"]
    );
    assert_eq!(
        next("5-9/2,30 4,16 * * *", "2026-11-30T00:00:00Z", 5)[..4],
        ["2026-11-30T04:05", "2026-11-30T04:07", "2026-11-30T04:09", "2026-11-30T04:30"]
    );
    for sunday in ["0", "7", "SUN", "sun"] {
        assert_eq!(
            next(&format!("0 6 * * {sunday}"), "2026-11-30T00:00:00Z", 2),
            ["2026-12-06T06:00", "2026-12-13T06:00"]
        );
    }
    assert_eq!(Cron::parse("0 0 * * MON-FRI"), Cron::parse("0 0 * * 1-5"));
    assert_eq!(Cron::parse("0 0 1 jan-Mar,12 *"), Cron::parse("0 0 1 1,2,3,DEC *"));
    assert_eq!(Cron::parse("* * * * 1-7"), Cron::parse("* * * * *"));
}

#[test]
fn the_last_due_times_are_those_that_come_one_after_the_other() {
    for text in ["*/7 3-5 * * *", "0 0 29 2 *", "15 10 * * MON", "0 3 1 * *", "* * 31 12 *"] {
        let cron = Cron::parse(text).unwrap();
        let (from, until) = (time("2023-01-31T23:59:59Z"), time("2024-12-31T10:15:00Z"));
        let all: Vec<_> =
            std::iter::successors(cron.next(from), |at| cron.next(*at)).take_while(|at| *at <= until).collect();
        assert_eq!(cron.last(from, until, usize::MAX), all, "{text}");
        let some = all.len().min(3);
        assert_eq!(cron.last(from, until, some), all[all.len() - some..], "{text}");
        assert_eq!(cron.last(until, from, 9), []);
        assert_eq!(cron.last(all[0], until, usize::MAX), all[1..], "the mark itself is over");
    }
}

#[test]
fn what_cannot_be_due_or_means_two_things_is_refused_with_advice() {
    for (text, words) in [
        ("0 3 1 *", "must have five fields"),
        ("0 0 3 1 * *", "must have five fields"),
        ("@daily", "must have five fields"),
        ("60 * * * *", "has \"60\" as minute: write 0 to 59"),
        ("* 24 * * *", "as hour"),
        ("* * 0 * *", "as day of the month: write 1 to 31"),
        ("* * * 13 *", "as month: write 1 to 12"),
        ("* * * * 8", "as day of the week: write 0 to 7"),
        ("* * * * MONDAY", "or names such as MON"),
        ("* * * FEBR *", "or names such as JAN"),
        ("5/15 * * * *", "as minute"),
        ("*/0 * * * *", "as minute"),
        ("9-5 * * * *", "as minute"),
        ("+5 * * * *", "as minute"),
        (", * * * *", "as minute"),
        ("* * L * *", "as day of the month"),
        ("0 0 1 * MON", "leave one of them *"),
        ("0 0 30 2 *", "is never due"),
        ("0 0 31 2,4,6,9,11 *", "is never due"),
    ] {
        let problem = Cron::parse(text).unwrap_err().to_string();
        assert!(problem.contains(words), "{text}: {problem}");
    }
}

#[test]
fn the_end_of_the_years_is_an_end() {
    let cron = Cron::parse("0 0 1 1 *").unwrap();
    assert_eq!(cron.next(time("9999-06-01T00:00:00Z")), None);
    assert_eq!(cron.next(Timestamp::from_epoch_ms(i64::MAX)), None);
    assert_eq!(cron.last(Timestamp::from_epoch_ms(0), Timestamp::from_epoch_ms(i64::MAX), 1), []);
}
