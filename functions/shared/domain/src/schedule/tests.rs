use proptest::prelude::*;

use super::*;
use crate::ports::Record;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn time(text: &str) -> Timestamp {
    serde_json::from_value(text.into()).unwrap()
}

fn schedule(more: &str) -> Schedule {
    let all = Schedule::all(&format!("[agents.x]\n[[schedule]]\nname = \"s\"\norder = {{ A = 1 }}\n{more}"));
    all.into_iter().next().unwrap_or_else(|| panic!("{more}"))
}

/// The first fault of a schedule with these lines.
fn fault(more: &str) -> String {
    let text = format!("[[schedule]]\nname = \"s\"\n{more}");
    let document = Document::new(&text);
    let (mut reader, root) = document.read(SCHEDULES);
    Schedule::read(&mut reader, &root);
    reader.finish(()).unwrap_err().to_string()
}

#[test]
fn a_schedule_is_read_from_the_text_of_the_deployment() {
    let read = schedule(
        "every = \"1h\"\nstart = 2026-01-01T00:00:00+01:00\nend = \"2026-01-01T02:00:00Z\"\nworkflow = \"w\"\ncatch_up = \"all\"",
    );
    let timing = Timing {
        times: Times::Every { start: time("2025-12-31T23:00:00Z"), every_ms: HOUR_MS },
        start: Some(time("2025-12-31T23:00:00Z")),
        end: Some(time("2026-01-01T02:00:00Z")),
    };
    assert_eq!((&read.timing, read.workflow.as_deref(), read.catch_up), (&timing, Some("w"), CatchUp::All));
    assert_eq!((read.order.text(), &*read.submitter()), ("{\"A\":1}", "schedule/s"));
    let due: Vec<_> = std::iter::successors(Some(Timestamp::default()), |at| timing.next(*at)).skip(1).collect();
    assert_eq!(
        due,
        [-1_i64, 0, 1].map(|hour| Timestamp::from_epoch_ms(time("2026-01-01T00:00:00Z").epoch_ms() + hour * 3_600_000))
    );
    let cron = schedule("cron = \"0 3 1 * *\"\nstart = 2026-01-01T03:00:00Z");
    assert_eq!((cron.workflow, cron.catch_up), (None, CatchUp::Latest));
    assert_eq!(cron.timing.next(Timestamp::default()), Some(time("2026-01-01T03:00:00Z")), "the start is a due time");
    assert_eq!(Schedule::all("[[schedule"), []);
    assert_eq!(Schedule::all("[agents.a]\nurl = \"https://a\"").len(), 0);
}

#[test]
fn what_a_schedule_must_not_say_is_a_fault_with_advice() {
    let order = "order = { A = 1 }\n";
    for (more, words) in [
        ("cron = \"0 3 1 * *\"", "schedule \"s\": order is missing"),
        (
            &format!("{order}cron = \"0 3 30 2 *\""),
            "4:8: schedule \"s\": cron is never due: no such month has such a day",
        ),
        (&format!("{order}cron = \"0 3 1 * *\"\nevery = \"1h\""), "has cron and every: leave one of them out"),
        (order, "must say when it is due: cron = \"0 3 1 * *\", or every = \"1h\" and start"),
        (&format!("{order}every = \"1h\""), "every needs `start`, the first due time"),
        (&format!("{order}every = \"59s\"\nstart = 2026-01-01T00:00:00Z"), "must be a time from \"1m\" to \"400d\""),
        (&format!("{order}every = \"401d\"\nstart = 2026-01-01T00:00:00Z"), "must be a time from \"1m\" to \"400d\""),
        (&format!("{order}every = \"1h\"\nstart = 2026-01-01"), "start must be a time with its zone"),
        (&format!("{order}every = \"1h\"\nstart = 2026-01-01T00:00:00"), "start must be a time with its zone"),
        (
            &format!("{order}every = \"1h\"\nstart = 2026-01-01T00:00:00Z\nend = 2026-01-01T00:00:00Z"),
            "is never due: end must be after",
        ),
        (&format!("{order}cron = \"0 3 1 * *\"\ncatch_up = \"some\""), "catch_up must be"),
        ("cron = \"0 3 1 * *\"\norder = \"/Order\"", "order must be a table of members"),
        (
            "cron = \"0 3 1 * *\"\norder = { At = 2026-01-01 }",
            "must have texts, numbers, booleans, arrays and tables only",
        ),
        ("cron = \"0 3 1 * *\"\norder = { DueAt = 1 }", "order must not have DueAt: it is added"),
        ("cron = \"0 3 1 * *\"\norder = { NotBefore = \"x\" }", "must not have NotBefore"),
        ("cron = \"0 3 1 * *\"\norder = { CompleteBy = \"x\" }", "must not have CompleteBy"),
        ("cron = \"0 3 1 * *\"\norder = { Workflow = \"x\" }", "must not have Workflow"),
        ("cron = \"0 3 1 * *\"\norder = { ReplyChannel = \"x\" }", "must not have ReplyChannel"),
        (
            &format!("{order}cron = \"0 3 1 * *\"\n[[schedule]]\nname = \"s\"\n{order}cron = \"0 3 1 * *\""),
            "is there twice",
        ),
    ] {
        assert!(fault(more).contains(words), "{more}: {}", fault(more));
    }
}

#[test]
fn rule_48_a_timing_in_other_words_or_with_another_end_goes_on() {
    let timing = |more: &str| schedule(more).timing;
    let minutely = timing("cron = \"* * * * *\"\nend = 2026-06-01T00:00:00Z");
    let now = time("2026-05-01T00:00:00Z");
    for (more, at, expected) in [
        ("cron = \"*/1 * * * *\"\nend = 2026-06-01T00:00:00Z", now, true),
        ("cron = \"* * * * *\"\nend = 2026-12-01T00:00:00Z", now, true),
        ("cron = \"* * * * *\"\nend = 2026-12-01T00:00:00Z", time("2026-07-01T00:00:00Z"), false),
        ("cron = \"*/2 * * * *\"\nend = 2026-06-01T00:00:00Z", now, false),
        ("cron = \"* * * * *\"\nstart = 2026-01-01T00:00:00Z\nend = 2026-06-01T00:00:00Z", now, false),
        ("every = \"1m\"\nstart = 2026-01-01T00:00:00Z\nend = 2026-06-01T00:00:00Z", now, false),
    ] {
        assert_eq!(timing(more).goes_on(&minutely, at), expected, "{more}");
    }
}

#[test]
fn rule_48_the_order_of_a_due_time_is_always_the_same_and_says_when_it_was_due() {
    let schedule = schedule("cron = \"0 3 1 * *\"\nworkflow = \"w\"");
    let due = time("2026-12-01T03:00:00Z");
    let order = |installation: &str, due: Timestamp, now: Timestamp| schedule.order(installation, due, now).unwrap();
    let (one, other) = (order("i", due, due), order("i", due, due.plus_ms(HOUR_MS)));
    assert_eq!(one.order.order_id, other.order.order_id);
    assert_eq!(one.order.order_id, OrderId::of_installation("i", "schedule/s", "2026-12-01T03:00:00.000Z"));
    assert_eq!(one.order.fingerprint, other.order.fingerprint);
    assert_eq!(one.order.document.text(), "{\"DueAt\":\"2026-12-01T03:00:00.000Z\",\"A\":1}");
    assert_eq!((&*one.order.submitter, other.order.submitted_at), ("schedule/s", due.plus_ms(HOUR_MS)));
    assert_eq!(one.workflow.as_deref(), Some("w"));
    assert_ne!(one.order.order_id, order("other", due, due).order.order_id);
    assert_ne!(one.order.order_id, order("i", due.plus_ms(1), due).order.order_id);
    let empty = Schedule::all("[[schedule]]\nname = \"s\"\ncron = \"* * * * *\"\norder = {}").remove(0);
    assert_eq!(empty.order("", due, due).unwrap().order.document.text(), "{\"DueAt\":\"2026-12-01T03:00:00.000Z\"}");
    let priority =
        Schedule::all("[[schedule]]\nname = \"s\"\ncron = \"* * * * *\"\norder = { Priority = \"low\" }").remove(0);
    assert_eq!(priority.order("", due, due).unwrap_err().to_string(), "Priority must be \"high\" or \"normal\"");
}

/// An hourly schedule, and the hours of a look: the mark, and now.
fn look(catch_up: &str, mark: i64, now: i64) -> Option<Vec<i64>> {
    let schedule = schedule(&format!("every = \"1h\"\nstart = 1970-01-01T00:00:00Z\ncatch_up = {catch_up:?}"));
    let at = |minute: i64| Timestamp::from_epoch_ms(minute * 60_000);
    let minute = |at: Timestamp| at.epoch_ms() / 60_000;
    schedule.look(at(mark), at(now)).map(|look| look.posts.into_iter().map(minute).collect())
}

#[test]
fn rule_48_what_was_missed_is_posted_as_catch_up_says() {
    for (catch_up, missed) in [("latest", vec![360]), ("all", vec![120, 180, 240, 300, 360]), ("none", vec![])] {
        assert_eq!(look(catch_up, 60, 119), None, "{catch_up}");
        assert_eq!(look(catch_up, 60, 125), Some(vec![120]), "{catch_up}: five minutes late is in time");
        assert_eq!(look(catch_up, 60, 390), Some(missed.clone()).filter(|missed| !missed.is_empty()), "{catch_up}");
        let with_one_in_time = if catch_up == "all" { [missed, vec![420]].concat() } else { vec![420] };
        assert_eq!(look(catch_up, 60, 421), Some(with_one_in_time), "{catch_up}");
        assert_eq!(look(catch_up, 480, 421), None, "{catch_up}: a clock ahead was here, and nothing goes back");
    }
}

#[test]
fn rule_48_what_a_look_passes_over_is_counted() {
    let at = |minute: i64| Timestamp::from_epoch_ms(minute * 60_000);
    for (catch_up, mark, now, passed) in [
        ("latest", 60, 390, 4),
        ("latest", 60, 421, 5),
        ("none", 60, 421, 5),
        ("all", 60, 421, 0),
        ("all", 0, 61_000, 16),
    ] {
        let schedule = schedule(&format!("every = \"1h\"\nstart = 1970-01-01T00:00:00Z\ncatch_up = {catch_up:?}"));
        let gap = schedule.look(at(mark), at(now)).unwrap().passed;
        assert_eq!(gap.map_or(0, |gap| schedule.passed(gap)), passed, "{catch_up} {mark} {now}");
    }
}

#[test]
fn rule_48_a_look_has_a_bound_and_the_oldest_missed_are_passed_over() {
    let schedule = schedule("every = \"1m\"\nstart = 2026-01-01T00:00:00Z\ncatch_up = \"all\"");
    let start = time("2026-01-01T00:00:00Z");
    let now = start.plus_ms(400 * DAY_MS);
    let (mut mark, mut posted) = (start.minus_ms(1), Vec::new());
    while let Some(look) = schedule.look(mark, now) {
        assert!(look.posts.len() <= POSTS_OF_A_LOOK_MAX && look.posts[0] > mark);
        posted.extend(look.posts);
        mark = *posted.last().unwrap();
    }
    assert_eq!((posted.len(), mark), (MISSED_MAX, now));
    assert!(posted.is_sorted());
}

fn posted(due_at: Timestamp) -> Posted {
    Posted { due_at, order_id: OrderId::from_idempotency_key("s", "k"), at: due_at }
}

/// A look by a clock, and the record after it.
fn looked(
    schedule: &Schedule,
    stored: &mut Option<ScheduleRecord>,
    since: Timestamp,
    now: Timestamp,
) -> Vec<Timestamp> {
    let mark = ScheduleRecord::mark(stored.as_ref(), since, now);
    let Some(Look { posts, passed }) = schedule.look(mark, now) else { return Vec::new() };
    let outcomes = posts.iter().map(|at| Ok(posted(*at))).collect();
    *stored = Some(ScheduleRecord::next(stored.as_ref(), &schedule.name, mark, passed, outcomes));
    posts
}

#[test]
fn rule_23_a_mark_of_a_clock_far_ahead_silences_no_schedule() {
    let schedule = schedule("cron = \"0 * * * *\"");
    let (since, mut stored) = (time("2026-01-01T00:30:00Z"), None);
    let at = |hour: u64| since.plus_ms(HOUR_MS / 2 + hour * HOUR_MS);
    assert_eq!(looked(&schedule, &mut stored, since, at(0)), [at(0)]);
    assert_eq!(looked(&schedule, &mut stored, since, at(9_000)), [at(9_000)]);
    let ahead = stored.clone().unwrap();
    assert_eq!((ahead.through, &*ahead.gaps), (at(9_000), &[Gap { after: at(0), before: at(9_000) }][..]));
    assert_eq!(ahead.next_due(&schedule.timing, at(0)), Some(at(1)));
    assert_eq!(looked(&schedule, &mut stored, since, at(0)), []);
    assert_eq!(looked(&schedule, &mut stored, since, at(1)), [at(1)]);
    assert_eq!(looked(&schedule, &mut stored, since, at(1)), []);
    assert_eq!(looked(&schedule, &mut stored, since, at(9_001)), [at(9_001)], "the clock ahead believes its mark");
    assert_eq!(looked(&schedule, &mut stored, since, at(2)), [at(2)]);
    let right = stored.clone().unwrap();
    assert_eq!((right.through, right.gaps[0].after), (at(9_001), at(2)), "the mark goes back for no clock");
    assert_eq!(looked(&schedule, &mut stored, since, at(8_999)), [at(8_999)]);
    assert_eq!(looked(&schedule, &mut stored, since, at(9_000)), [], "it was posted, and is not again");
    assert_eq!(right.next_due(&schedule.timing, at(8_999)), Some(at(9_002)));
}

#[test]
fn rule_23_the_gaps_that_end_last_are_kept() {
    let at = Timestamp::from_epoch_ms;
    let mut record = None;
    for (number, width) in (0..).zip([90, 50, 5, 20, 30, 40, 60, 70, 10]) {
        let gap = Gap { after: at(number * 100), before: at(number * 100 + width) };
        let outcomes = vec![Ok(posted(gap.before))];
        record = Some(ScheduleRecord::next(record.as_ref(), &"s".into(), gap.after, Some(gap), outcomes));
    }
    let gaps = record.unwrap().gaps;
    assert_eq!((gaps.len(), gaps.first().map(|gap| gap.after)), (8, Some(at(100))));
}

#[test]
fn rule_23_a_schedule_that_a_clock_ahead_applied_is_due_all_the_same() {
    let schedule = schedule("cron = \"0 * * * *\"");
    let (since, mut stored) = (time("2027-01-01T00:30:00Z"), None);
    let (before, due) = (time("2026-01-01T11:50:00Z"), time("2026-01-01T12:00:00Z"));
    assert_eq!(looked(&schedule, &mut stored, since, before), [], "what was due before it was applied is of the past");
    assert_eq!(looked(&schedule, &mut stored, since, due.plus_ms(5_000)), [due]);
    assert_eq!(looked(&schedule, &mut stored, since, due.plus_ms(10_000)), []);
    assert_eq!(looked(&schedule, &mut stored, since, due.plus_ms(HOUR_MS)), [due.plus_ms(HOUR_MS)]);
}

#[test]
fn the_mark_never_goes_back_and_a_refusal_lasts_until_an_order_is_posted() {
    let (name, at) = (Arc::from("s"), Timestamp::from_epoch_ms);
    let ok = |ms| Ok(posted(at(ms)));
    let refused = |ms| Refused { due_at: at(ms), at: at(ms), problem: "no".into() };
    let next =
        |stored: Option<&ScheduleRecord>, mark, outcomes| ScheduleRecord::next(stored, &name, at(mark), None, outcomes);
    let first = next(None, 5, vec![ok(10)]);
    assert_eq!((first.key(), first.version(), first.through), ("s", 1, at(10)));
    let second = next(Some(&first), 10, vec![Err(refused(20))]);
    let found = (second.version, second.through, &second.posted, &second.refused);
    assert_eq!(found, (2, at(10), &Some(posted(at(10))), &Some(refused(20))), "what is refused is open");
    let again = next(Some(&second), 10, vec![Err(Refused { at: at(99), ..refused(20) })]);
    assert_eq!(again.refused, Some(refused(20)), "it is refused since the first time");
    let behind = next(Some(&second), 0, vec![ok(5)]);
    assert_eq!((behind.through, behind.posted, behind.refused), (at(10), Some(posted(at(5))), None));
    let both = next(Some(&first), 10, vec![ok(20), Err(refused(25))]);
    assert_eq!((both.through, both.posted, both.refused), (at(20), Some(posted(at(20))), Some(refused(25))));
    let third = next(Some(&second), 10, vec![Err(refused(20)), ok(30)]);
    assert_eq!((third.through, third.posted, third.refused), (at(30), Some(posted(at(30))), None));
    assert_eq!(next(None, 5, vec![Err(refused(10))]).through, at(5));
}

proptest! {
    /// Whatever looks come between by clocks ahead, a right clock that looks each minute leaves no due time without its post,
    /// and none has two (rule 23).
    #[test]
    fn rule_23_with_clocks_ahead_each_due_time_is_posted_once(
        leaps in prop::collection::btree_map(0_u64..2_000, 1_u64..2_000_000, 0..6),
        every in 1_u64..90,
        way in 0..3_usize,
    ) {
        let way = CatchUp::ALL[way].name();
        let schedule = schedule(&format!("every = \"{every}m\"\nstart = 1970-01-01T00:00:00Z\ncatch_up = {way:?}"));
        let (mut stored, mut posted) = (None, Vec::new());
        for minute in 0..2_200 {
            let now = Timestamp::default().plus_ms(minute * 60_000);
            if let Some(ahead) = leaps.get(&minute) {
                posted.extend(looked(&schedule, &mut stored, Timestamp::default(), now.plus_ms(ahead * 60_000)));
            }
            posted.extend(looked(&schedule, &mut stored, Timestamp::default(), now));
            prop_assert_eq!(posted.contains(&now), minute % every == 0, "minute {}", minute);
        }
        posted.sort();
        prop_assert!(posted.is_sorted_by(|one, next| one < next), "a due time has two posts");
    }

    /// However often and late it is looked at, `all` posts each due time once, and no other way posts one twice or out of order.
    #[test]
    fn rule_48_each_due_time_is_posted_once(every in 1_u64..90, looks in prop::collection::vec(0_u64..600, 1..60), way in 0..3_usize) {
        let way = CatchUp::ALL[way].name();
        let schedule = schedule(&format!("every = \"{every}m\"\nstart = 1970-01-01T00:00:00Z\ncatch_up = {way:?}"));
        let (mut now, mut mark, mut posted) = (Timestamp::default(), Timestamp::default(), Vec::new());
        for minutes in looks {
            now = now.plus_ms(minutes * 60_000);
            while let Some(look) = schedule.look(mark, now) {
                prop_assert!(look.posts[0] > mark && look.posts.iter().all(|at| *at <= now));
                posted.extend(look.posts);
                mark = *posted.last().unwrap();
            }
        }
        prop_assert!(posted.is_sorted_by(|one, next| one < next));
        let due = schedule.timing.last(Timestamp::default(), now, usize::MAX);
        prop_assert!(posted.iter().all(|at| due.contains(at)));
        if way == "all" {
            prop_assert_eq!(posted, due);
        }
    }
}
