//! Schedules: what is posted, marked and refused, also by a supervisor that is killed.

use domain::alert::{Alert, GONE_MS};
use domain::definition::{Choice, Deployment};
use domain::order::Order;
use domain::ports::{Environment, Records, Seen};
use domain::redaction::Redaction;
use domain::schedule::ScheduleRecord;
use domain::time::Timestamp;
use memory::Memory;
use memory::faulty::{Fault, Faulty};

use crate::testing::{instance, run, run_for};
use crate::{Settings, alerts, schedules};

const HOUR_MS: u64 = 3_600_000;
/// An hour by the clock of UTC.
const BEGIN: Timestamp = Timestamp::from_epoch_ms(1_000_000_800_000);
const HOURLY: &str = "[[schedule]]\nname = \"hourly\"\ncron = \"0 * * * *\"\norder = { Total = 1 }\n";

fn ports(settings: &str) -> Faulty {
    let ports = Faulty::new(Memory::new(BEGIN.plus_ms(1), 0));
    ports.take_turns();
    applied(&ports, 1, settings);
    ports
}

/// Applies these settings now. The schedule counts from the first application, unless it has other times.
fn applied(ports: &Faulty, version: u64, settings: &str) {
    let since = if settings.contains("0 * * * *") { BEGIN.plus_ms(1) } else { ports.now() };
    let deployment = Deployment {
        version,
        default: "w".into(),
        workflows: [("w".into(), Choice::all(1))].into(),
        highest: [].into(),
        settings: settings.into(),
        schedules: [("hourly".into(), since)].into(),
        callback_keys: Vec::new(),
        applied_at: ports.now(),
        applied_by: "ann".into(),
        of_start: false,
    };
    run(ports.put(Seen::version(version - 1, ports.now()), &deployment)).unwrap();
}

/// A look of a supervisor that has just started.
fn look(ports: &Faulty) -> Option<u64> {
    let (instance, settings, redaction) = (instance("s"), Settings::default(), Redaction::default());
    run(schedules(ports, &instance, &settings, &redaction)).ok()
}

fn record(ports: &Faulty) -> Option<ScheduleRecord> {
    run(ports.get("hourly")).unwrap()
}

/// The due times of the orders that were queued, each as often as it was.
fn due(ports: &Faulty) -> Vec<Timestamp> {
    let due_at = |order: &Order| serde_json::from_str(order.document.member("DueAt").unwrap()).unwrap();
    ports.submitted().iter().map(due_at).collect()
}

#[test]
fn rule_48_a_due_time_is_one_order_with_the_schedule_as_its_submitter() {
    let ports = ports(HOURLY);
    assert_eq!((look(&ports), record(&ports)), (Some(0), None), "what was due before its application is of the past");
    ports.advance(HOUR_MS);
    assert_eq!((look(&ports), look(&ports)), (Some(1), Some(0)));
    let [order] = ports.submitted().try_into().unwrap();
    assert_eq!((&*order.submitter, order.workflow.unwrap().to_string()), ("schedule/hourly", "w/1".to_owned()));
    assert_eq!(due(&ports), [BEGIN.plus_ms(HOUR_MS)]);
    let record = record(&ports).unwrap();
    assert_eq!((record.through, record.posted.unwrap().order_id), (BEGIN.plus_ms(HOUR_MS), order.order_id));
}

#[test]
fn rule_48_a_look_that_is_killed_anywhere_is_repeated_with_the_same_order() {
    for polls in 0.. {
        let ports = ports(HOURLY);
        ports.advance(HOUR_MS);
        let (instance, settings, redaction) = (instance("s"), Settings::default(), Redaction::default());
        let ended = run_for(schedules(&ports, &instance, &settings, &redaction), polls);
        if ended.is_none() {
            assert!(record(&ports).is_none() || !due(&ports).is_empty(), "a mark without an order");
            look(&ports).unwrap();
        }
        let ids: std::collections::BTreeSet<_> = ports.submitted().iter().map(|order| order.order_id).collect();
        assert_eq!((ids.len(), record(&ports).unwrap().version), (1, 1), "killed after {polls} polls");
        if ended.is_some() {
            assert!(polls > 5);
            return;
        }
    }
}

#[test]
fn rule_48_what_cannot_be_queued_is_not_marked_and_the_others_have_their_turn() {
    let ports = ports(&format!("{HOURLY}{}", HOURLY.replace("hourly", "other")));
    ports.advance(HOUR_MS);
    ports.next("queues.submit", Fault::Fails);
    assert_eq!((look(&ports), record(&ports), due(&ports).len()), (None, None, 1));
    assert_eq!((look(&ports), due(&ports).len()), (Some(1), 2));
    ports.advance(HOUR_MS);
    ports.next("schedules.set_schedule", Fault::Fails);
    assert_eq!(look(&ports), None);
    assert_eq!((look(&ports), due(&ports).len()), (Some(1), 5), "posted once more, as the same order");
}

#[test]
fn rule_48_a_clock_an_hour_ahead_posts_early_and_the_right_one_posts_nothing_again() {
    let ports = ports(HOURLY);
    let ahead = ports.with_clock_ahead_ms(HOUR_MS.cast_signed());
    let behind = ports.with_clock_ahead_ms(-HOUR_MS.cast_signed());
    ports.advance(HOUR_MS);
    assert_eq!([look(&behind), look(&ports), look(&ahead), look(&ports), look(&behind)], [0, 1, 1, 0, 0].map(Some));
    ports.advance(HOUR_MS);
    assert_eq!([look(&behind), look(&ports), look(&ahead)], [0, 0, 1].map(Some));
    assert_eq!(due(&ports), [1, 2, 3].map(|hours| BEGIN.plus_ms(hours * HOUR_MS)));
    assert_eq!(record(&ports).unwrap().through, BEGIN.plus_ms(3 * HOUR_MS));
}

#[test]
fn rule_23_a_clock_a_year_ahead_silences_no_schedule_and_nothing_is_posted_twice() {
    let ports = ports(HOURLY);
    let ahead = ports.with_clock_ahead_ms(365 * 24 * HOUR_MS.cast_signed());
    ports.advance(HOUR_MS);
    assert_eq!([look(&ahead), look(&ports), look(&ports)], [1, 1, 0].map(Some));
    ports.advance(HOUR_MS);
    assert_eq!([look(&ports), look(&ahead), look(&ports)], [1, 1, 0].map(Some));
    let hours = [365 * 24 + 1, 1, 2, 365 * 24 + 2];
    assert_eq!(due(&ports), hours.map(|hours| BEGIN.plus_ms(hours * HOUR_MS)));
    ports.advance(365 * 24 * HOUR_MS);
    assert_eq!(look(&ports), Some(0), "it was posted a year ago");
}

#[test]
fn rule_48_a_backlog_that_takes_the_whole_time_of_a_look_lets_the_next_schedule_go_first() {
    let minutely = HOURLY.replace("0 *", "* *").replace("order", "catch_up = \"all\"\norder");
    let ports = ports(&["a", "b", "c"].map(|name| minutely.replace("hourly", name)).concat());
    ports.advance(10 * HOUR_MS);
    let clock = ports.clone();
    ports.at_each("queues.submit", move |_| {
        clock.advance(1_000);
        None
    });
    let mut firsts = Vec::new();
    for _ in 0..4 {
        let before = ports.submitted().len();
        assert_eq!(look(&ports), Some(45), "as many as there is time for");
        firsts.push(ports.submitted()[before].submitter.to_string());
    }
    assert_eq!(firsts, ["schedule/a", "schedule/b", "schedule/c", "schedule/a"]);
}

/// The causes that are on.
fn causes(ports: &Faulty) -> Vec<String> {
    run(alerts(ports, &[])).unwrap();
    let all: Vec<Alert> = run(ports.list(usize::MAX)).unwrap();
    all.iter()
        .filter(|alert| alert.ended_at.is_none())
        .map(|alert| format!("{}: {}", alert.cause, alert.text))
        .collect()
}

#[test]
fn rule_48_a_refused_due_time_is_an_alert_until_it_is_posted_or_passed_over() {
    for (better, posted) in [(HOURLY, 1), (&HOURLY.replace("0 *", "15 *"), 0), ("", 0)] {
        let ports = ports(&HOURLY.replace("Total = 1", "workflow = 1, Priority = \"high\""));
        ports.advance(HOUR_MS);
        assert_eq!((look(&ports), causes(&ports).len()), (Some(0), 1));
        let text = &causes(&ports)[0];
        assert!(
            text.starts_with("schedule/hourly: Schedule hourly posted no order at ") && text.contains("Workflow"),
            "{text}"
        );
        let refused = record(&ports).unwrap();
        assert_eq!((look(&ports), refused.through), (Some(0), BEGIN), "it is open");
        assert!(refused.refused.is_some());
        ports.advance(1);
        assert_eq!((look(&ports), record(&ports)), (Some(0), Some(refused)), "nothing new is written");
        applied(&ports, 2, better);
        assert_eq!((look(&ports), record(&ports).unwrap().refused), (Some(posted), None));
        causes(&ports);
        ports.advance(GONE_MS);
        assert!(causes(&ports).is_empty());
        let due_at = BEGIN.plus_ms(HOUR_MS);
        assert_eq!(due(&ports), if posted == 0 { vec![] } else { vec![due_at] }, "{better}");
    }
}

#[test]
fn rule_48_what_was_refused_is_posted_as_catch_up_says_once_its_cause_is_gone() {
    for (catch_up, posted) in [("all", vec![1, 2, 3]), ("latest", vec![3]), ("none", vec![])] {
        let settings = format!("{HOURLY}catch_up = {catch_up:?}\n");
        let ports = ports(&settings.replace("Total = 1", "Priority = \"low\""));
        for _ in 1..=3 {
            ports.advance(HOUR_MS);
            assert_eq!((look(&ports), causes(&ports).len()), (Some(0), 1), "{catch_up}");
        }
        ports.advance(HOUR_MS / 2);
        assert_eq!(
            (look(&ports), record(&ports).unwrap().refused.is_none()),
            (Some(0), posted.is_empty()),
            "{catch_up}"
        );
        applied(&ports, 2, &settings);
        look(&ports).unwrap();
        let hours: Vec<_> = posted.into_iter().map(|hours| BEGIN.plus_ms(hours * HOUR_MS)).collect();
        assert_eq!((due(&ports), record(&ports).unwrap().refused), (hours, None), "{catch_up}");
    }
}

#[test]
fn rule_48_an_unknown_workflow_is_a_refusal_and_the_next_due_time_is_tried() {
    let ports = ports(&HOURLY.replace("cron", "workflow = \"shop\"\ncron"));
    for _ in 0..2 {
        ports.advance(HOUR_MS);
        assert_eq!(look(&ports), Some(0));
    }
    let refused = record(&ports).unwrap().refused.unwrap();
    assert_eq!(
        (&*refused.problem, refused.due_at),
        ("there is no workflow shop that takes orders", BEGIN.plus_ms(2 * HOUR_MS))
    );
}
