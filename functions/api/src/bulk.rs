//! The same action on many orders, as one job. It is planned here, and advanced by the supervisor ([`domain::bulk`]).
//!
//! A plan only counts: the operator sees the number and decides whether to start the job.

use std::sync::Arc;

use bytes::Bytes;
use domain::bulk::{BulkAction, DryRun, Job, NotNow, Spec, SpecError, dry_run};
use domain::json::{Json, JsonError};
use domain::limits::{CONFLICTS_MAX, NAME_CHARS_MAX};
use domain::ports::{Commit, Environment, ListError, PortError, Records, Seen};
use domain::time::Timestamp;
use http::{HeaderMap, Response, StatusCode};
use wire::{JobList, Plan, Selector};

use crate::job_view::shown;
use crate::members::Members;
use crate::operator::Author;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::route::JobAction;
use crate::{body, etag, query, reply};

/// Largest number of canaries, so that a failure affects few orders.
const NOT_PLANNED: &str = "it is not known whether the job was stored; it is safe to plan it again, since a job does nothing until it is started";
const NOT_WRITTEN: &str = "it is not known whether this was done; look at the job, or send it again";

/// `POST /bulk`: counts the orders that would be handled and stores the job, which does nothing yet.
pub(crate) async fn plan(
    ports: &impl ApiPorts,
    caller: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    body::check(headers, body)?;
    let spec = spec(caller, &Json::document(body)?)?;
    let now = ports.environment().now();
    let mut job = Job::plan(job_id(now, ports.environment().random()), spec, DryRun::default(), now).map_err(wrong)?;
    // The plan has limited the selector to orders that have failed by now; only these are counted.
    job.dry_run = dry_run(ports.store(), &job.spec).await.map_err(uncounted)?;
    let stored = ports.records().put(Seen::nothing(now), &job).await;
    match stored.map_err(|error| Problem::Unavailable { advice: NOT_PLANNED, error })? {
        Commit::Committed => {
            tracing::info!(caller, job = &*job.id, by = &*job.spec.by, matching = job.dry_run.matching, "job planned");
            let response = reply::json(StatusCode::CREATED, &shown(&job));
            Ok(reply::located(response, reply::job_path(&job.id)))
        }
        // Another plan drew the same id in the same millisecond.
        Commit::Conflict => Err(Problem::Busy),
    }
}

/// `POST /bulk/{id}/start` and `/cancel`: the supervisor then advances the job, or stops it.
pub(crate) async fn command(
    ports: &impl ApiPorts,
    caller: &str,
    id: &str,
    action: JobAction,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let author = Author::read(caller, headers, body)?;
    // The supervisor writes a running job at each of its runs, so a lost condition is common.
    for _ in 0..CONFLICTS_MAX {
        let before = stored(ports, id).await?;
        etag::check(headers, before.version)??;
        let after = next(&before, action, &author, ports.environment().now());
        let after = after.map_err(|not_now| Problem::JobForbids { job_id: before.id.clone(), not_now })?;
        let seen = Seen::version(before.version, ports.environment().now());
        let written = ports.records().put(seen, &after).await;
        match written.map_err(|error| Problem::Unavailable { advice: NOT_WRITTEN, error })? {
            Commit::Committed => {
                tracing::info!(
                    caller,
                    job = id,
                    ?action,
                    by = &*author.by,
                    why = &*author.reason,
                    "operator acts on a job"
                );
                return Ok(reply::tagged(reply::json(StatusCode::ACCEPTED, &shown(&after)), after.version));
            }
            Commit::Conflict => {}
        }
    }
    Err(Problem::Busy)
}

/// `GET /bulk/{id}`: the state of a job.
pub(crate) async fn job(ports: &impl ApiPorts, id: &str, headers: &HeaderMap) -> Result<Response<Bytes>, Problem> {
    let job = stored(ports, id).await?;
    etag::unless_known(reply::json(StatusCode::OK, &shown(&job)), headers, job.version)
}

/// `GET /bulk?limit=`: the newest jobs, newest first.
pub(crate) async fn jobs(ports: &impl ApiPorts, query: &str) -> Result<Response<Bytes>, Problem> {
    let [limit] = query::parameters(query, ["limit"])?;
    let limit = query::page_limit(limit.as_deref())?;
    let jobs: Vec<Job> = ports.records().list(limit).await.map_err(Problem::unread)?;
    let list = JobList { jobs: jobs.iter().map(shown).collect() };
    Ok(reply::json(StatusCode::OK, &list))
}

fn next(job: &Job, action: JobAction, author: &Author, now: Timestamp) -> Result<Job, NotNow> {
    match action {
        JobAction::Start => job.start(&author.by, &author.reason, now),
        JobAction::Cancel => job.cancel(&author.by, &author.reason, now),
    }
}

async fn stored(ports: &impl ApiPorts, id: &str) -> Result<Job, Problem> {
    if id.len() > NAME_CHARS_MAX {
        return Err(Problem::NoJob);
    }
    ports.records().get(&id.to_ascii_lowercase()).await.map_err(Problem::unread)?.ok_or(Problem::NoJob)
}

/// A new id that sorts by the time it was made.
fn job_id(now: Timestamp, random: u64) -> Arc<str> {
    format!("{:012x}-{random:016x}", now.epoch_ms()).into()
}

/// The operator's job, from the body. The selector is required, if only as `{}`: a forgotten one must not select all
/// orders.
fn spec(caller: &str, document: &Json) -> Result<Spec, Problem> {
    let members = Members::of(document, &Plan::MEMBERS)?;
    let Author { by, .. } = Author::of(caller, &members)?;
    if let Some(action) = members.optional_text("Action")?
        && !BulkAction::ALL.iter().any(|known| known.name() == &*action)
    {
        let names = BulkAction::ALL.map(BulkAction::name).join(", ");
        return Err(Problem::member("Action", format!("must be one of {names}")));
    }
    let (timeout_ms_min, timeout_ms_max) = Spec::CANARY_TIMEOUT_MS;
    members.whole_number("Canary", 1, u64::from(Spec::CANARY_MAX))?;
    members.whole_number("CanaryTimeoutMs", timeout_ms_min, timeout_ms_max)?;
    members.whole_number("RatePerSecond", 1, u64::from(Spec::RATE_MAX))?;
    members.whole_number("StopAtFailedPercent", 0, 100)?;
    let selector = members.object("Selector", "Selector.", &Selector::MEMBERS)?;
    selector.optional_text("State")?;
    selector.optional_text("ReasonCode")?;
    selector.optional_text("Step")?;
    let (since, until) = (selector.time("FailedSince")?, selector.time("FailedUntil")?);
    if since.zip(until).is_some_and(|(since, until)| until < since) {
        return Err(Problem::member("Selector.FailedUntil", "must not be before FailedSince"));
    }
    // The checks above cover each member by its name. The only fault left is a repeated member.
    let spec: Spec = serde_json::from_str(document.text())
        .map_err(|error| Problem::NotJson(JsonError::Malformed(error.to_string())))?;
    Ok(Spec { by, ..spec })
}

fn wrong(error: SpecError) -> Problem {
    Problem::member(error.field, error.problem)
}

fn uncounted(error: ListError) -> Problem {
    match error {
        ListError::Port(error) => Problem::unread(error),
        ListError::Cursor => Problem::unread(PortError::refused("bulk.dry_run", ListError::Cursor)),
    }
}

#[cfg(test)]
mod tests;
