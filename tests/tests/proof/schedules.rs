//! A month of schedules (rule 48): two supervisors, one with a clock an hour off, that restart, are killed between any two
//! calls, fail in every way, and are both down for hours. Each due time has one order at most, and the one that `catch_up`
//! says.

use std::collections::{BTreeMap, BTreeSet};

use domain::definition::{Choice, Deployment};
use domain::instance::Instance;
use domain::limits::MISSED_AFTER_MS;
use domain::ports::{Commit, Environment, Records, Seen};
use domain::redaction::Redaction;
use domain::schedule::{Schedule, ScheduleRecord};
use domain::time::Timestamp;
use memory::faulty::{Fault, Faulty};
use supervisor::Settings;
use tests::world::{Ran, World, drive, now};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const MONTH_MS: u64 = 31 * 24 * HOUR_MS;
const FAULTS: [Fault; 5] = [Fault::Fails, Fault::AnswerLost, Fault::TriedTwice, Fault::DiesBefore, Fault::DiesAfter];
const SETTINGS: &str = r#"
[[schedule]]
name = "all"
cron = "0,30 * * * *"
catch_up = "all"
order = { Item = "mug" }
[[schedule]]
name = "latest"
every = "30m"
start = 2026-01-01T00:00:00Z
order = { Item = "mug" }
[[schedule]]
name = "none"
cron = "*/30 * * * *"
catch_up = "none"
order = { Item = "mug" }
"#;

/// Draws that are the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// One of two supervisors.
struct Site {
    ports: Faulty,
    /// `None`: it is down.
    instance: Option<Instance>,
    /// Whether its last look had a fault. The next one has none, so no due time is missed by that.
    was_struck: bool,
}

/// A month, as it was lived through.
struct Month {
    world: World,
    draws: Draws,
    begin: Timestamp,
    sites: [Site; 2],
    /// When both were down, by the true clock.
    outages: Vec<(Timestamp, Timestamp)>,
    marks: BTreeMap<String, Timestamp>,
}

impl Month {
    fn new(seed: u64, ahead_ms: i64) -> Self {
        let world = World::new();
        let begin = world.memory.now();
        let deployment = Deployment {
            version: 1,
            default: "order".into(),
            workflows: [("order".into(), Choice::all(1))].into(),
            highest: [].into(),
            settings: SETTINGS.into(),
            schedules: ["all", "latest", "none"].map(|name| (name.into(), begin)).into(),
            callback_keys: Vec::new(),
            applied_at: begin,
            applied_by: "ann".into(),
            of_start: false,
        };
        assert_eq!(now(world.memory.put(Seen::nothing(begin), &deployment)).unwrap(), Commit::Committed);
        let sites = [world.ports.clone(), world.ports.with_clock_ahead_ms(ahead_ms)].map(|ports| Site {
            ports,
            instance: None,
            was_struck: false,
        });
        Self { world, draws: Draws(seed), begin, sites, outages: Vec::new(), marks: BTreeMap::new() }
    }

    /// Looks of both supervisors, in any order, each perhaps with a fault, or by one that has just started.
    fn looks(&mut self, may_fail: bool) {
        let first = usize::from(self.draws.below(2) == 0);
        for site in [first, 1 - first] {
            let site = &mut self.sites[site];
            if self.draws.below(50) == 0 {
                site.instance = None;
            }
            site.was_struck = may_fail && !site.was_struck && self.draws.below(3) == 0;
            if site.was_struck {
                let [call, fault] = [9, FAULTS.len() as u64].map(|end| usize::try_from(self.draws.below(end)).unwrap());
                self.world.ports.after_calls(call, FAULTS[fault]);
            }
            let instance = site.instance.get_or_insert_with(|| self.world.instance("supervisor"));
            let (settings, redaction) = (Settings::default(), Redaction::default());
            let look = supervisor::schedules(&site.ports, instance, &settings, &redaction);
            if drive(&self.world.memory, &self.world.ports, look).is_none() {
                site.instance = None;
            }
            self.world.ports.has_struck();
            let records: Vec<ScheduleRecord> = now(self.world.memory.list(usize::MAX)).unwrap();
            for record in records {
                let mark = self.marks.entry(record.name.to_string()).or_insert(record.through);
                assert!(*mark <= record.through, "the mark of {} goes back", record.name);
                *mark = record.through;
            }
        }
        while self.world.submit() != Ran::Idle {}
    }

    fn live(mut self, with_outages: bool) -> Self {
        let end = self.begin.plus_ms(MONTH_MS);
        while self.world.memory.now() < end {
            let began = self.world.memory.now();
            // Most looks are soon after a due time.
            let past_ms = began.epoch_ms().unsigned_abs() % (30 * MINUTE_MS);
            let down_ms = match with_outages && self.draws.below(150) == 0 {
                true => HOUR_MS + self.draws.below(20 * HOUR_MS),
                false if past_ms > 8 * MINUTE_MS => {
                    (30 * MINUTE_MS - past_ms).saturating_sub(self.draws.below(MINUTE_MS)).max(MINUTE_MS / 2)
                }
                false => 2 * MINUTE_MS + self.draws.below(MINUTE_MS / 2),
            };
            self.world.memory.advance(down_ms);
            if down_ms >= HOUR_MS {
                self.outages.push((began, self.world.memory.now()));
            }
            self.looks(true);
        }
        (0..3).for_each(|_| self.looks(false));
        self
    }

    /// The due times of the orders of a schedule and when each was posted, by the clock of who did so.
    fn posted(&self, name: &str) -> BTreeMap<Timestamp, Timestamp> {
        let (mut posted, mut ids) = (BTreeMap::new(), BTreeSet::new());
        for (order, _) in
            self.world.memory.orders().iter().filter(|(order, _)| *order.submitter == format!("schedule/{name}"))
        {
            let due_at = serde_json::from_str(order.document.member("DueAt").unwrap()).unwrap();
            assert!(ids.insert(order.order_id), "{name}: {} is there twice", order.order_id);
            assert_eq!(posted.insert(due_at, order.submitted_at), None, "{name}: two orders of {due_at}");
        }
        posted
    }

    /// The due times from the beginning to the mark.
    fn due(&self, name: &str) -> Vec<Timestamp> {
        let schedule = Schedule::all(SETTINGS).into_iter().find(|schedule| *schedule.name == *name).unwrap();
        let first = schedule.timing.next(self.begin.minus_ms(1));
        std::iter::successors(first, |at| schedule.timing.next(*at)).take_while(|at| *at <= self.marks[name]).collect()
    }
}

/// Clocks an hour ahead and behind.
const CLOCKS: [i64; 2] = [3_600_000, -3_600_000];

#[test]
fn a_month_without_outages_posts_each_due_time_once_whatever_catch_up_says() {
    for (seed, ahead_ms) in (1..).zip(CLOCKS) {
        let month = Month::new(seed, ahead_ms).live(false);
        // A clock that is ahead takes what was due before its first look for missed.
        let first = month.begin.plus_ms(HOUR_MS);
        for name in ["all", "latest", "none"] {
            let posted = month.posted(name);
            let missing =
                month.due(name).into_iter().find(|at| !posted.contains_key(at) && (*at > first || name == "all"));
            assert_eq!(missing, None, "{name}, {ahead_ms}");
            assert!((31 * 48 - 1..=31 * 48 + 3).contains(&posted.len()), "{name}, {ahead_ms}: {}", posted.len());
        }
    }
}

#[test]
fn a_month_with_outages_posts_of_what_was_missed_what_catch_up_says() {
    for (seed, ahead_ms) in (11..).zip(CLOCKS) {
        let month = Month::new(seed, ahead_ms).live(true);
        assert!(month.outages.len() > 10, "{}", month.outages.len());
        let missing = |name: &str| {
            let posted = month.posted(name);
            month.due(name).into_iter().filter(|at| !posted.contains_key(at)).collect::<Vec<_>>()
        };
        assert_eq!(missing("all"), [], "{ahead_ms}");
        for name in ["latest", "none"] {
            let is_late = |(due_at, at): &(Timestamp, Timestamp)| due_at.ms_until(*at) > MISSED_AFTER_MS;
            let late = month.posted(name).into_iter().filter(is_late).count();
            // The first of both to look posts the last one by its clock, the other one perhaps the last one by its own.
            let late_max = if name == "none" { 0 } else { 2 * month.outages.len() };
            assert!(late <= late_max && (late > 5 || late_max == 0), "{name}: {late} of {late_max}");
            // In the first hour, and while both were down, or just before; by the clock that is ahead, also what was due soon after.
            let ahead = |at: Timestamp| at.plus_ms(ahead_ms.max(0).cast_unsigned());
            let outages = || month.outages.iter().copied().chain([(month.begin, month.begin)]);
            let may_be = |at: &Timestamp| {
                outages().any(|(began, ended)| began.minus_ms(MISSED_AFTER_MS) <= *at && *at <= ahead(ended))
            };
            let missing = missing(name);
            assert_eq!(missing.iter().find(|at| !may_be(at)), None, "{name}, {ahead_ms}");
            assert!(missing.len() > 100, "{name}, {ahead_ms}: {}", missing.len());
        }
    }
}
