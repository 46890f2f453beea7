//! Bulk jobs as people read them.

use anstyle::Style;
use domain::bulk::BulkAction;
use domain::time::Timestamp;
use wire::{DryRun, Job, JobState, Tally};

use super::table::{Cell, Table, number, plain};
use super::time::from_now;
use crate::paint::{Paint, tint};

/// A list of jobs.
pub(crate) fn table<'a>(jobs: &'a [Job<'_>], now: Timestamp) -> Table<'a, Job<'a>> {
    Table::of(jobs)
        .column("JOB", |job| &*job.id)
        .column("ACTION", |job| &*job.action)
        .column("STATE", |job| Cell::tinted(job.state.to_string(), tint(job)))
        .column("PLANNED", |job| from_now(job.planned_at, now))
        .column("BY", |job| &*job.by)
        .column("MATCHING", |job| matching(&job.dry_run))
        .column("RECOVERED", |job| job.tally.recovered)
        .column("FAILED AGAIN", |job| job.tally.failed_again)
        .column("REASON", |job| &*job.reason)
}

/// All there is to know of a job.
pub(crate) fn whole(paint: Paint, job: &Job<'_>, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        text.push_str(&format!("{} {value}\n", paint.dim(format_args!("{name:<10}"))));
    };
    line("Job", plain(&job.id));
    line("State", paint.tint(tint(job), plain(&job.state.to_string())));
    if let Some(why) = &job.why {
        line("Why", plain(why));
    }
    line("Planned", format!("{} by {}: {}", from_now(job.planned_at, now), plain(&job.by), plain(&job.reason)));
    line("Action", plain(&job.action));
    line("Meant", plain(&meant(job)));
    line("Matching", matching(&job.dry_run));
    line(
        "How",
        format!(
            "{} first, then {} in a second; stops when more than {} % fail again",
            job.canary, job.rate_per_second, job.stop_at_failed_percent
        ),
    );
    line("So far", progress(job));
    text
}

/// How far it is, in a line.
pub(crate) fn progress(job: &Job<'_>) -> String {
    let Tally { begun, recovered, failed_again, late, passed_over } = job.tally;
    let mut line = format!(
        "{}: {begun} begun of {}, {recovered} recovered",
        plain(&job.state.to_string()),
        matching(&job.dry_run)
    );
    if failed_again > 0 {
        line.push_str(&format!(", {failed_again} failed again"));
    }
    if late > 0 {
        line.push_str(&format!(" ({late} of them not settled in time)"));
    }
    if passed_over > 0 {
        line.push_str(&format!(", {passed_over} seen to by somebody else"));
    }
    // Nobody follows the orders of a job that was ended early.
    let is_cut_off = [JobState::Stopped, JobState::Cancelled].iter().any(|state| job.state == *state);
    let (then, waiting) = if is_cut_off { (" then", "left as they were") } else { ("", "waiting") };
    line.push_str(&format!(", {} under way{then}, {} {waiting}", job.under_way, job.waiting));
    line
}

/// What a job does, as a question about its orders begins.
pub(crate) fn verb<'a>(job: &'a Job<'_>) -> &'a str {
    if *job.action == *BulkAction::Again.name() { "Post again" } else { &job.action }
}

/// The orders that a job is about, in words.
pub(crate) fn meant(Job { action, selector, .. }: &Job<'_>) -> String {
    let is_again = **action == *BulkAction::Again.name();
    let (orders, entered) =
        if is_again { ("compensated orders", "compensated") } else { ("orders in Error", "failed") };
    let mut words = orders.to_owned();
    if let Some(code) = &selector.reason_code {
        words.push_str(&format!(", because of {code}"));
    }
    if let Some(step) = &selector.step {
        words.push_str(&format!(", at {step}"));
    }
    if let Some(since) = selector.failed_since {
        words.push_str(&format!(", {entered} since {since}"));
    }
    if let Some(until) = selector.failed_until {
        words.push_str(&format!(", {entered} until {until}"));
    }
    words
}

/// The number of orders that match, as far as it is known.
pub(crate) fn matching(dry_run: &DryRun<'_>) -> String {
    number(dry_run.matching, !dry_run.complete)
}

/// Whether the job is ended. An unknown state is not an end.
pub(crate) const fn is_ended(job: &Job<'_>) -> bool {
    matches!(job.state.known(), Some(JobState::Done | JobState::Stopped | JobState::Cancelled))
}

/// Whether the job is ended, and all of its orders recovered.
pub(crate) fn went_well(job: &Job<'_>) -> bool {
    job.state == JobState::Done && job.tally.failed_again == 0
}

fn tint(job: &Job<'_>) -> Style {
    match job.state.known() {
        Some(JobState::Done) if went_well(job) => tint::GREEN,
        Some(JobState::Done | JobState::Stopped) => tint::RED,
        Some(JobState::Cancelled) => tint::YELLOW,
        Some(JobState::Planned | JobState::Canary | JobState::Running) | None => tint::CYAN,
    }
}
