//! The days of a rehearsal: what goes wrong in a world of a folder.

mod mishaps;

use std::sync::Arc;

use agent::Policy;
use domain::limits::DEFERRAL_MS_MAX;
use rehearsal::described::{Described, Pace};
use rehearsal::faults::{Fault, Plan};
use rehearsal::rng::Rng;
use rehearsal::setup::{Habits, LineEnds, Outage, Setup, Which};

use crate::folder::{Agent, Folder};

/// Of a number of days on which little is called again, one has an order with as many lines as there can be. It costs as much as
/// a hundred others, and with a service away as much as thousands.
const LARGE: u64 = 30;
/// Instances of each agent where orders have lines.
const LINE_INSTANCES: usize = 4;
/// How far clocks differ, where they do, in milliseconds.
const SKEW_MS: u64 = 1_000;
/// The most orders of a day on which a service is called as often as it can bear.
const BURST_MAX: usize = 240;
/// The longest rough day, in milliseconds, and the most outages of one.
const DAY_MS: i64 = 3 * 3_600_000;
const OUTAGES_MAX: i64 = 5;
/// In a longer outage probes go out more rarely, in milliseconds: what they find is the same, and a world is as long as its
/// probes are many.
const OFTEN_PROBED_MS: u64 = 3_600_000;
/// The longest wait between two probes of such an outage is this part of it.
const PROBES: u64 = 100;
/// The lengths of the outages that are tried, in milliseconds.
pub const OUTAGES_MS: [u64; 5] = [60_000, 10 * 60_000, 3_600_000, 4 * 3_600_000, 12 * 3_600_000];

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assume {
    /// Services and the way to them.
    Services,
    /// The clocks too.
    Clocks,
    /// Queues, stores and instances too.
    All,
}

/// A kind of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Day {
    /// Nothing goes wrong.
    Fair,
    /// Nothing goes wrong, and each answer takes long.
    Slow,
    /// Many orders come at once.
    Busy,
    /// One service is away for a while.
    Outage,
    /// Something happens to the first call of one step.
    Mishap,
    /// Services are flaky: busy, silent, slow; answers get lost.
    Rough,
    /// The same, and instances die, messages come twice, writes fail.
    Wild,
}

impl Day {
    /// The kind of the world of a seed.
    #[must_use]
    pub const fn of(seed: u64, assume: Assume) -> Self {
        match seed % 20 {
            0 | 1 => Self::Fair,
            2 | 3 => Self::Slow,
            4 => Self::Busy,
            5..=6 => Self::Outage,
            7..=11 => Self::Mishap,
            12..=14 => Self::Rough,
            _ => match assume {
                Assume::All => Self::Wild,
                Assume::Services | Assume::Clocks => Self::Rough,
            },
        }
    }

    /// Whether nothing fails.
    #[must_use]
    pub const fn is_calm(self) -> bool {
        match self {
            Self::Fair | Self::Slow | Self::Busy => true,
            Self::Outage | Self::Mishap | Self::Rough | Self::Wild => false,
        }
    }
}

/// Draws the constants of the world of a seed.
#[must_use]
pub fn setup(folder: &Folder, seed: u64, assume: Assume) -> (Rng, Day, Setup) {
    let mut rng = Rng::new(seed);
    let day = Day::of(seed, assume);
    let limits: Vec<u32> = folder.agents.iter().filter_map(|agent| agent.service.limit).collect();
    let limit = if limits.is_empty() { None } else { Some(rng.pick(&limits)) };
    let orders = match (day, limit) {
        (Day::Busy, Some(limit)) => usize::try_from(limit).unwrap_or(BURST_MAX).saturating_mul(4).clamp(6, BURST_MAX),
        (Day::Busy, None) => 6,
        (_, _) => rng.pick(&[1, 1, 2, 2, 3]),
    };
    let (outages, ends_ms) = outages(folder, &mut rng, day);
    let failing_lines = if day == Day::Mishap { mishaps::lines(folder, &mut rng) } else { None };
    let is_mishap = day == Day::Mishap && failing_lines.is_none();
    let mishap = if is_mishap { mishaps::draw(folder, &mut rng) } else { None };
    let mut plan = Plan::none();
    if day >= Day::Rough {
        draw_faults(&mut plan, &mut rng, day);
    }
    let has_skew = assume != Assume::Services && !day.is_calm() && rng.chance(5_000);
    let first = rng.place(folder.documents.len());
    let may_be_large = match failing_lines {
        Some(lines) => lines.ends == LineEnds::Rejected && matches!(lines.which, Which::One(_)),
        None => matches!(day, Day::Fair | Day::Slow),
    };
    let is_large = may_be_large && !folder.large.is_empty() && rng.below(LARGE) == 0;
    let (orders, documents) = match is_large {
        true => (1, vec![folder.large[rng.place(folder.large.len())].clone()]),
        false => {
            let document = |number: usize| folder.documents[(first + number) % folder.documents.len()].clone();
            (orders, (0..orders).map(document).collect())
        }
    };
    let calm_at_ms = match day {
        Day::Fair | Day::Slow | Day::Busy | Day::Mishap => 1,
        Day::Outage => ends_ms + 1_000,
        // The keys of a service may be over, and a result be lost, before faults stop.
        Day::Rough | Day::Wild => rng.pick(&[60_000, 180_000, 600_000, 3 * 3_600_000]).max(ends_ms),
    };
    let lengths = outages.iter().map(|outage| outage.lasts_ms).chain(mishap.map(|mishap| mishap.lasts_ms));
    let longest_ms = lengths.max().unwrap_or(0);
    let setup = Setup {
        shape: folder.shape.clone(),
        orders,
        documents,
        calm_at_ms,
        posts_within_ms: if day == Day::Busy { 200 } else { 2_000 },
        shards: 1,
        // The lines of an order are called side by side.
        instances: match (folder.shape.has_lines(), day == Day::Wild) {
            (true, _) => LINE_INSTANCES,
            (false, true) => 2,
            (false, false) => 1,
        },
        supervisors: 1,
        tick_ms: 10_000,
        skew_ms: if has_skew { SKEW_MS } else { 0 },
        latency_ms: 4,
        ports_are_slow: day == Day::Wild,
        service_ms: 20,
        visibility_ms: rng.pick(&[30_000, 60_000, 180_000]),
        receives_max: 100,
        batch_max: 10,
        settings: folder.settings.clone(),
        policies: folder.agents.iter().map(|agent| probed_rarely(&agent.policy, longest_ms)).collect(),
        services: folder.agents.iter().map(|agent| habits(agent, &mut rng, day)).collect(),
        outages,
        mishap,
        failing_lines,
        deployed_at_ms: None,
        named: Vec::new(),
        applied: Vec::new(),
        plan,
    };
    (rng, day, setup)
}

/// How long after its end a long outage may be noticed, in milliseconds.
pub(crate) const fn seen_late_ms(outage_ms: u64) -> u64 {
    if outage_ms > OFTEN_PROBED_MS { outage_ms / (PROBES / 4) + DEFERRAL_MS_MAX } else { 0 }
}

/// A policy whose probes are as many as in an outage of an hour, though this one is longer.
fn probed_rarely(policy: &Policy, outage_ms: u64) -> Policy {
    let mut policy = policy.clone();
    let waits = &mut policy.health.backoff;
    while outage_ms > OFTEN_PROBED_MS && waits.wait_ms_max() < outage_ms / PROBES {
        waits.ceiling += 1;
    }
    policy
}

fn habits(agent: &Agent, rng: &mut Rng, day: Day) -> Habits {
    let words = agent.words[rng.place(agent.words.len())].clone();
    let pace = match day {
        Day::Slow => Pace::Slow,
        Day::Busy => Pace::Even,
        Day::Fair | Day::Outage | Day::Mishap | Day::Rough | Day::Wild => Pace::Usual,
    };
    let described = Described { service: agent.service.clone(), pace, words };
    Habits {
        is_careless: !agent.service.refuses_forward_after_undo,
        described: Some(Arc::new(described)),
        ..Habits::careful(agent.settles_within_ms)
    }
}

/// The outage of a day, and its end. On a rough day there is one too, now and then, that is as long as its user says.
fn outages(folder: &Folder, rng: &mut Rng, day: Day) -> (Vec<Outage>, i64) {
    let has_one = match day {
        Day::Fair | Day::Slow | Day::Busy | Day::Mishap => false,
        Day::Outage => true,
        Day::Rough | Day::Wild => rng.chance(3_000),
    };
    if !has_one {
        return (Vec::new(), 0);
    }
    let agent = rng.place(folder.agents.len().max(1));
    let Some(service) = folder.agents.get(agent).map(|agent| &agent.service) else { return (Vec::new(), 0) };
    let usual_ms = service.outage.lasts_ms;
    let lasts_ms = match day {
        Day::Outage => match rng.below(100) {
            0..=49 => usual_ms,
            50..=94 => rng.pick(&OUTAGES_MS[..3]),
            95..=98 => OUTAGES_MS[3],
            _ => OUTAGES_MS[4],
        },
        Day::Fair | Day::Slow | Day::Busy | Day::Mishap | Day::Rough | Day::Wild => usual_ms,
    };
    // It begins while the first orders are under way, and comes again on a long day.
    let at_ms = i64::try_from(rng.below(3_000)).unwrap_or(0);
    let every_ms = i64::try_from(service.outage.every_ms.max(lasts_ms + 1)).unwrap_or(i64::MAX);
    let starts = (0..OUTAGES_MAX).map(|time| at_ms.saturating_add(every_ms.saturating_mul(time)));
    let starts = starts.take_while(|start| *start == at_ms || (day != Day::Outage && *start < DAY_MS));
    let outages: Vec<Outage> = starts.map(|at_ms| Outage { agent, at_ms, lasts_ms }).collect();
    let ends_ms = outages.last().map_or(0, |last| last.at_ms.saturating_add_unsigned(lasts_ms));
    (outages, ends_ms)
}

/// Some faults often, so that each is seen alone and with others.
fn draw_faults(plan: &mut Plan, rng: &mut Rng, day: Day) {
    let of_services = [
        (Fault::EffectDelayed, 2_500),
        (Fault::ServiceAnswerLost, 1_500),
        (Fault::ServiceSilent, 1_000),
        (Fault::ServiceBusy, 1_500),
    ];
    let of_hosts = [
        (Fault::KilledBefore, 60),
        (Fault::KilledAfter, 60),
        (Fault::KilledBetween, 60),
        (Fault::PausedLong, 20),
        (Fault::Duplicated, 800),
        (Fault::DuplicatedLater, 300),
        (Fault::SendAnswerLost, 400),
        (Fault::WriteFailed, 400),
        (Fault::WriteAnswerLost, 400),
        (Fault::ConflictInjected, 300),
        (Fault::MemoLost, 400),
        (Fault::DeleteLost, 400),
        (Fault::IndexStale, 2_000),
        (Fault::TickMissed, 1_000),
    ];
    for (fault, rate) in of_services {
        if rng.chance(5_000) {
            plan.set(fault, rate * rng.pick(&[1, 1, 3]));
        }
    }
    // Somebody changes their mind.
    if rng.chance(3_000) {
        plan.set(Fault::Cancelled, 3);
    }
    if day == Day::Wild {
        for (fault, rate) in of_hosts {
            if rng.chance(3_000) {
                plan.set(fault, rate);
            }
        }
    }
}
