//! Posts the orders of schedules when they are due (rule 48).
//!
//! First the order is queued, then the mark is written. A look that is killed between is repeated by the next one, and the
//! repeat is the same order. So any number of supervisors may look at once, each by its own clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::definition::installation;
use domain::instance::Instance;
use domain::order::Order;
use domain::ports::{
    Commit, Environment, HasEnvironment, HasQueues, HasRecords, Inserted, PortError, Queues, Records, Seen,
};
use domain::redaction::Redaction;
use domain::schedule::{Posted, Refused, Schedule, ScheduleRecord};
use domain::time::Timestamp;

use crate::{Budget, Settings};

/// The ports that post the orders of schedules.
pub trait SchedulePorts: HasRecords + HasQueues + HasEnvironment {}

impl<P: HasRecords + HasQueues + HasEnvironment> SchedulePorts for P {}

/// Looks at each schedule of the deployment once, until the time is up, and posts what is due: the one that posted longest ago
/// comes first. Returns the number of orders that were posted. An order is found by no member that is redacted (rule 28).
///
/// # Errors
/// The first [`PortError`], after all other schedules had their turn. What was not posted is not marked: the next look
/// posts it.
pub async fn schedules(
    ports: &impl SchedulePorts,
    instance: &Instance,
    settings: &Settings,
    redaction: &Redaction,
) -> Result<u64, PortError> {
    let Some(deployment) = instance.catalogue.deployment(ports).await? else { return Ok(0) };
    let mut all = Schedule::all(&deployment.settings);
    let stored: Vec<ScheduleRecord> = ports.records().list(usize::MAX).await?;
    let mut stored: BTreeMap<Arc<str>, ScheduleRecord> =
        stored.into_iter().map(|record| (record.name.clone(), record)).collect();
    let (budget, mut failed, mut count) = (Budget::new(ports.environment(), settings), None, 0);
    // What one look leaves for want of time, the next one begins with.
    let now = ports.environment().now();
    all.sort_by_key(|schedule| stored.get(&schedule.name)?.handled_at(now));
    for schedule in &all {
        let stored = stored.remove(&schedule.name);
        if budget.is_spent(ports.environment()) {
            continue;
        }
        let since = deployment.schedules.get(&schedule.name).copied().unwrap_or(deployment.applied_at);
        let posting = Posting { ports, instance, redaction, schedule, budget };
        match posting.look(stored.as_ref(), since).await {
            Ok(posted) => count += posted,
            Err(error) => {
                tracing::warn!(schedule = &*schedule.name, "not all that is due was posted: {error}");
                failed.get_or_insert(error);
            }
        }
    }
    // A schedule that is gone refuses nothing any more.
    for record in stored.values().filter(|record| record.refused.is_some()) {
        put(ports, Some(record), &record.refusing_nothing()).await?;
    }
    failed.map_or(Ok(count), Err)
}

/// One look at one schedule.
struct Posting<'a, P> {
    ports: &'a P,
    instance: &'a Instance,
    redaction: &'a Redaction,
    schedule: &'a Schedule,
    budget: Budget,
}

impl<P: SchedulePorts> Posting<'_, P> {
    /// Posts what is due, and writes how far it came. Returns the number of orders.
    async fn look(&self, stored: Option<&ScheduleRecord>, since: Timestamp) -> Result<u64, PortError> {
        let (name, now) = (&self.schedule.name, self.ports.environment().now());
        let mark = ScheduleRecord::mark(stored, since, now);
        let Some(look) = self.schedule.look(mark, now) else {
            return self.not_due_again(stored, now).await.map(|()| 0);
        };
        let (mut outcomes, mut failed) = (Vec::new(), None);
        for &due_at in &look.posts {
            if self.budget.is_spent(self.ports.environment()) {
                break;
            }
            match self.post(due_at).await {
                Ok(outcome) => {
                    let is_refused = outcome.is_err();
                    outcomes.push(outcome);
                    // What one order is refused for mostly holds for all: the last one tells.
                    if is_refused && self.is_refused(look.posts.last()).await? {
                        break;
                    }
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let count = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        let tried = outcomes.iter().rposition(Result::is_ok).unwrap_or_default();
        let refused = outcomes[..tried].iter().filter(|outcome| outcome.is_err()).count();
        let passed = look.passed.map_or(0, |gap| self.schedule.passed(gap)) + refused;
        if count > 0 && passed > 0 {
            tracing::warn!(schedule = &**name, passed, "missed or refused due times were passed over");
        }
        let next = ScheduleRecord::next(stored, name, mark, look.passed, outcomes);
        let is_refused_anew = stored.and_then(|stored| stored.refused.as_ref()) != next.refused.as_ref();
        if count > 0 || is_refused_anew {
            if let Some(Refused { due_at, problem, .. }) = &next.refused {
                tracing::warn!(schedule = &**name, %due_at, "no order is posted: {problem}");
            }
            put(self.ports, stored, &next).await?;
        }
        failed.map_or(Ok(count), Err)
    }

    /// Queues the order of a due time, unless no such order is accepted.
    async fn post(&self, due_at: Timestamp) -> Result<Result<Posted, Refused>, PortError> {
        let (name, at) = (&*self.schedule.name, self.ports.environment().now());
        let order = match self.order(due_at).await? {
            Ok(order) => order,
            Err(problem) => return Ok(Err(Refused { due_at, at, problem: problem.into() })),
        };
        let order_id = order.order_id;
        match self.ports.queues().submit(order, 0).await? {
            Inserted::New => tracing::info!(schedule = name, %due_at, %order_id, "order posted"),
            Inserted::Same => tracing::debug!(schedule = name, %due_at, %order_id, "order posted before"),
            Inserted::Different => {
                tracing::warn!(schedule = name, %due_at, %order_id, "order posted before with another document, which stays");
            }
        }
        Ok(Ok(Posted { due_at, order_id, at }))
    }

    /// The order of a due time, pinned to its workflow; or why there is none.
    async fn order(&self, due_at: Timestamp) -> Result<Result<Order, String>, PortError> {
        let (ports, environment) = (self.ports, self.ports.environment());
        let installation = installation(ports).await?;
        let mut given = match self.schedule.order(&installation, due_at, environment.now()) {
            Ok(given) => given,
            Err(bad) => return Ok(Err(bad.to_string())),
        };
        let name = given.workflow.as_deref();
        let workflow = match self.instance.catalogue.choose(ports, name, given.order.order_id).await? {
            Ok(workflow) => workflow,
            Err(unknown) => return Ok(Err(format!("there is no workflow {} that takes orders", unknown.name))),
        };
        let accepted = workflow.accept(&mut given.order, environment.wall(), self.redaction);
        Ok(accepted.map(|()| given.order).map_err(|refused| refused.to_string()))
    }

    /// Whether the order of this due time is refused.
    async fn is_refused(&self, due_at: Option<&Timestamp>) -> Result<bool, PortError> {
        let Some(due_at) = due_at else { return Ok(false) };
        Ok(self.order(*due_at).await?.is_err())
    }

    /// Ends the refusal of a due time that is none any more, since the schedule has other times.
    async fn not_due_again(&self, stored: Option<&ScheduleRecord>, now: Timestamp) -> Result<(), PortError> {
        let is_over = |record: &&ScheduleRecord| record.refused.as_ref().is_some_and(|refused| refused.due_at <= now);
        let Some(record) = stored.filter(is_over) else { return Ok(()) };
        put(self.ports, stored, &record.refusing_nothing()).await
    }
}

/// Writes a record on the version that was read. If another supervisor was first, it has posted the same.
async fn put(
    ports: &impl SchedulePorts,
    stored: Option<&ScheduleRecord>,
    next: &ScheduleRecord,
) -> Result<(), PortError> {
    let seen = Seen::version(stored.map_or(0, |stored| stored.version), ports.environment().now());
    if ports.records().put(seen, next).await? == Commit::Conflict {
        tracing::debug!(schedule = &*next.name, "another supervisor was first");
    }
    Ok(())
}
