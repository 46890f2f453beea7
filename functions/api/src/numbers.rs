//! `GET /numbers`: what happened in the last minutes, hours or days. Only a store that keeps a tally has them (rule 26).
//! Where it lacks the orders of before, those in flight are found by the bounded walks of the overview.

use std::sync::Arc;

use bytes::Bytes;
use domain::limits::NAME_CHARS_MAX;
use domain::ports::{Environment, Store};
use domain::tally::{Attempts, Grain, Histogram, Numbers, Orders, Service, Tally};
use domain::task::{Direction, ProcessState};
use domain::time::Timestamp;
use http::{Response, StatusCode};
use wire::{AttemptNumbers, Count, OrderNumbers, Point, ServiceNumbers, StepNumbers, Took, WorkflowNumbers};

use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::view::text;
use crate::walk::under_way;
use crate::{query, reply};

/// The spans that end now: the name, the length of a point in minutes, the number of points, and the spans of the store
/// that they are made of.
const LAST: [(&str, u64, usize, Grain); 4] = [
    ("30m", 1, 30, Grain::Minute),
    ("24h", 10, 144, Grain::Minute),
    ("7d", 60, 168, Grain::Hour),
    ("30d", 6 * 60, 120, Grain::Hour),
];

const HOURS_OF_A_DAY: usize = 24;
/// Of a date such as 2026-11-20.
const DATE_CHARS: usize = 10;
/// The store keeps an hour for 31 days.
const DAYS_MAX: u64 = 30;

/// A span of time, point by point, from its beginning until now.
struct Span {
    grain: Grain,
    point_ms: u64,
    from: Timestamp,
    count: usize,
    /// How many of its points are shown, from the first one on.
    shown: usize,
}

/// What the store counted, and the points of a span of time.
pub(crate) struct Counted {
    pub(crate) numbers: Numbers,
    pub(crate) counts: Vec<Count>,
    pub(crate) points: Vec<Point>,
}

impl Counted {
    /// How long the orders took.
    pub(crate) fn took(&self) -> Option<Took> {
        let mut times = Histogram::default();
        let flows = self.numbers.spans.iter().flat_map(|span| span.tally.workflows.values());
        flows.for_each(|flow| times.merge(&flow.orders.took));
        took(&times)
    }
}

/// The attempts that are asked for, point by point.
struct Asked {
    workflow: Option<String>,
    step: Option<String>,
    service: Option<String>,
}

/// The numbers of the span that is asked for.
pub(crate) async fn numbers(ports: &impl ApiPorts, query: &str) -> Result<Response<Bytes>, Problem> {
    let [last, day, workflow, step, service] =
        query::parameters(query, ["last", "day", "workflow", "step", "service"])?;
    let asked = Asked {
        workflow: query::text("workflow", workflow, NAME_CHARS_MAX)?,
        step: query::text("step", step, NAME_CHARS_MAX)?,
        service: query::text("service", service, NAME_CHARS_MAX)?,
    };
    let now = ports.environment().now();
    let named = Span::named(last.as_deref().unwrap_or("24h"), now)?;
    let span = day.map_or(Ok(named), |day| Span::of_day(&day, now))?;
    let numbers = span.read(ports, now).await?.ok_or(Problem::UnknownRoute)?;
    let counts = match counts(&numbers) {
        Some(counts) => counts,
        None => under_way(ports).await?.into(),
    };
    let mut counted = span.counted(numbers, counts);
    asked.add_to(&mut counted, span.point_ms);
    let mut all = Tally::default();
    counted.numbers.spans.iter().for_each(|span| all.add(&span.tally));
    let answer = wire::Numbers {
        at: now,
        since: counted.numbers.since,
        from: counted.points.first().map_or(now, |point| point.at),
        point_seconds: span.point_ms / 1_000,
        counts: counted.counts,
        orders: orders(&all.orders()),
        points: counted.points,
        workflows: all.workflows.iter().map(|(name, flow)| of_workflow(name, &flow.orders)).collect(),
        steps: steps(&all),
        services: all
            .services()
            .iter()
            .flat_map(|(name, service)| {
                directions(service).map(|(direction, attempts)| ServiceNumbers {
                    service: text(name).into_owned().into(),
                    direction: direction.into(),
                    attempts: of_attempts(attempts),
                })
            })
            .collect(),
    };
    Ok(reply::json(StatusCode::OK, &answer))
}

/// The numbers of the last minutes. `None`: the store keeps no tally, or not one of each change.
pub(crate) async fn of_minutes(
    ports: &impl ApiPorts,
    now: Timestamp,
    count: usize,
) -> Result<Option<Counted>, Problem> {
    let span = Span::last(Grain::Minute, Grain::Minute.ms(), count, now);
    Ok(span.read(ports, now).await?.and_then(|numbers| {
        let counts = counts(&numbers)?;
        Some(span.counted(numbers, counts))
    }))
}

impl Span {
    /// A span that ends now, by its name.
    fn named(name: &str, now: Timestamp) -> Result<Self, Problem> {
        let known = LAST.iter().find(|(known, ..)| *known == name);
        let (_, minutes, count, grain) =
            *known.ok_or_else(|| Problem::parameter("last", "must be one of 30m, 24h, 7d and 30d"))?;
        Ok(Self::last(grain, minutes * Grain::Minute.ms(), count, now))
    }

    /// The last points up to now.
    fn last(grain: Grain, point_ms: u64, count: usize, now: Timestamp) -> Self {
        let into = now.epoch_ms().rem_euclid(i64::try_from(point_ms).unwrap_or(i64::MAX));
        let last = now.minus_ms(u64::try_from(into).unwrap_or(0));
        let from = last.minus_ms(point_ms * (count as u64).saturating_sub(1));
        Self { grain, point_ms, from, count, shown: count }
    }

    /// The hours of a day of UTC, or of the zone whose offset stands behind it; those of today up to now.
    fn of_day(day: &str, now: Timestamp) -> Result<Self, Problem> {
        let refused = || {
            Problem::parameter(
                "day",
                format!(
                    "must be a date such as 2026-11-20, in UTC, of today or the {DAYS_MAX} days before; of another zone with \
                     its offset in whole hours behind it, such as 2026-11-20+01:00 (a plus has to be written %2B)"
                ),
            )
        };
        let (date, zone) = day.split_at_checked(DATE_CHARS).ok_or_else(refused)?;
        let zone = if zone.is_empty() { "Z" } else { zone };
        let from = query::time("day", Some(format!("{date}T00:00:00{zone}"))).ok().flatten().ok_or_else(refused)?;
        let point_ms = Grain::Hour.ms();
        if Grain::Hour.of(from) != from {
            return Err(refused());
        }
        if from > now || from.ms_until(now) / (point_ms * HOURS_OF_A_DAY as u64) > DAYS_MAX {
            return Err(refused());
        }
        let count = usize::try_from(from.ms_until(now) / point_ms + 1).map_err(|_| refused())?;
        Ok(Self { grain: Grain::Hour, point_ms, from, count, shown: HOURS_OF_A_DAY })
    }

    /// The numbers since its beginning. `None`: the store keeps no tally.
    async fn read(&self, ports: &impl ApiPorts, now: Timestamp) -> Result<Option<Numbers>, Problem> {
        let mut numbers = ports.store().numbers(self.grain, self.from).await.map_err(Problem::unread)?;
        if let Some(numbers) = &mut numbers {
            // A wrong clock wrote what lies ahead (rule 23).
            numbers.spans.retain(|span| !span.at.is_beyond(now, self.grain.ms()));
        }
        Ok(numbers)
    }

    /// Its points, and the numbers of these.
    fn counted(&self, mut numbers: Numbers, counts: Vec<Count>) -> Counted {
        let mut points = points(&numbers, in_flight(&counts), self.from, self.point_ms, self.count);
        if self.shown < self.count {
            points.truncate(self.shown);
            let end = self.from.plus_ms(self.point_ms * self.shown as u64);
            numbers.spans.retain(|span| span.at < end);
        }
        Counted { points, numbers, counts }
    }
}

impl Asked {
    /// Adds the attempts to each point, if any are asked for.
    fn add_to(&self, Counted { numbers, points, .. }: &mut Counted, point_ms: u64) {
        let is_asked = [&self.workflow, &self.step, &self.service].into_iter().any(Option::is_some);
        let Some(from) = points.first().map(|point| point.at).filter(|_| is_asked) else { return };
        let mut sums = vec![Service::default(); points.len()];
        for span in &numbers.spans {
            self.sum(&span.tally, &mut sums[place(span.at, from, point_ms, points.len())]);
        }
        for (point, Service { forward, undo }) in points.iter_mut().zip(&sums) {
            point.forward = (!forward.is_empty()).then(|| of_attempts(forward));
            point.undo = (!undo.is_empty()).then(|| of_attempts(undo));
        }
    }

    fn sum(&self, tally: &Tally, sum: &mut Service) {
        let is_asked = |asked: &Option<String>, name: &str| asked.as_deref().is_none_or(|asked| asked == name);
        for (_, flow) in tally.workflows.iter().filter(|(name, _)| is_asked(&self.workflow, name)) {
            for (_, services) in flow.steps.iter().filter(|(name, _)| is_asked(&self.step, name)) {
                let services = services.iter().filter(|(name, _)| is_asked(&self.service, name));
                services.for_each(|(_, service)| sum.add(service));
            }
        }
    }
}

/// The place of the point that a span is in. A span that begins while this is read is in the last point.
fn place(at: Timestamp, from: Timestamp, point_ms: u64, count: usize) -> usize {
    usize::try_from(from.ms_until(at) / point_ms).unwrap_or(usize::MAX).min(count - 1)
}

/// The orders that are neither final nor in `Error`.
fn in_flight(counts: &[Count]) -> u64 {
    let states = [ProcessState::Pending, ProcessState::Processing, ProcessState::Compensating];
    let is_one = |count: &&Count| states.into_iter().any(|state| count.state == state);
    counts.iter().filter(is_one).map(|count| count.count as u64).sum()
}

/// The orders of each point, oldest first. `under_way`: those in flight now.
fn points(numbers: &Numbers, mut under_way: u64, from: Timestamp, point_ms: u64, count: usize) -> Vec<Point> {
    let mut sums = vec![Orders::default(); count];
    for span in &numbers.spans {
        sums[place(span.at, from, point_ms, count)].add(&span.tally.orders());
    }
    let mut points: Vec<Point> = Vec::with_capacity(count);
    for (place, sum) in sums.iter().enumerate().rev() {
        let at = from.plus_ms(place as u64 * point_ms);
        points.push(Point { at, orders: orders(sum), under_way, forward: None, undo: None });
        let came = sum.accepted + sum.mended;
        under_way = (under_way + sum.processed + sum.compensated + sum.closed + sum.failed).saturating_sub(came);
    }
    points.reverse();
    points
}

/// The orders in each state. `None`: the store does not know all of them.
fn counts(numbers: &Numbers) -> Option<Vec<Count>> {
    let states = numbers.states.as_ref()?;
    let count = |state: ProcessState| Count {
        state: state.into(),
        count: usize::try_from(states.of(state)).unwrap_or(usize::MAX),
        at_least: false,
        since: None,
        oldest_at: numbers.oldest_in(state),
    };
    Some(ProcessState::ALL.into_iter().map(count).collect())
}

fn orders(orders: &Orders) -> OrderNumbers {
    let Orders {
        accepted,
        processed,
        compensated,
        closed,
        failed,
        mended: _,
        late: _,
        contradicted: _,
        asked: _,
        answered: _,
        took: times,
    } = orders;
    OrderNumbers {
        accepted: *accepted,
        processed: *processed,
        compensated: *compensated,
        closed: *closed,
        failed: *failed,
        took: took(times),
    }
}

fn of_workflow<'a>(name: &'a Arc<str>, sum: &Orders) -> WorkflowNumbers<'a> {
    WorkflowNumbers { workflow: text(name), orders: orders(sum) }
}

fn steps(all: &Tally) -> Vec<StepNumbers<'_>> {
    let mut numbers = Vec::new();
    for (workflow, flow) in &all.workflows {
        for (step, services) in &flow.steps {
            for (service, of_service) in services {
                numbers.extend(directions(of_service).map(|(direction, attempts)| StepNumbers {
                    workflow: text(workflow),
                    step: text(step),
                    service: text(service),
                    direction: direction.into(),
                    attempts: of_attempts(attempts),
                }));
            }
        }
    }
    numbers
}

/// The directions in which something happened.
pub(crate) fn directions(service: &Service) -> impl Iterator<Item = (Direction, &Attempts)> {
    let Service { forward, undo } = service;
    [(Direction::Forward, forward), (Direction::Undo, undo)].into_iter().filter(|(_, attempts)| !attempts.is_empty())
}

fn of_attempts(attempts: &Attempts) -> AttemptNumbers {
    let Attempts { begun, done, expired, rejected, deferred, skipped, took: times, calls } = attempts;
    AttemptNumbers {
        begun: *begun,
        done: *done,
        expired: *expired,
        rejected: *rejected,
        deferred: *deferred,
        skipped: *skipped,
        took: took(times),
        calls: took(calls),
    }
}

fn took(times: &Histogram) -> Option<Took> {
    let percentile = |percent| times.percentile(percent);
    Some(Took { p50_ms: percentile(50)?, p95_ms: percentile(95)?, p99_ms: percentile(99)? })
}

#[cfg(test)]
mod tests;
