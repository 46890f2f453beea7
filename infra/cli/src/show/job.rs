//! Bulk jobs as people read them.

use domain::time::Timestamp;

use super::table::{Cell, Table, plain};
use super::time::from_now;
use crate::paint::{Paint, Tint};
use crate::wire::job::{Job, Tally};

/// A list of jobs.
pub(crate) fn table(jobs: &[Job], now: Timestamp) -> Table {
    let mut table = Table::new(&["JOB", "STATE", "PLANNED", "BY", "MATCHING", "RECOVERED", "FAILED AGAIN", "REASON"]);
    for job in jobs {
        table.row([
            Cell::from(&job.id),
            Cell::tinted(&job.state, tint(job)),
            from_now(job.planned_at, now).into(),
            Cell::from(&job.by),
            job.dry_run.words().into(),
            job.tally.recovered.to_string().into(),
            job.tally.failed_again.to_string().into(),
            Cell::from(&job.reason),
        ]);
    }
    table
}

/// All there is to know of a job.
pub(crate) fn whole(paint: Paint, job: &Job, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        text.push_str(&format!("{} {value}\n", paint.dim(format_args!("{name:<10}"))));
    };
    line("Job", plain(&job.id));
    line("State", paint.tint(tint(job), plain(&job.state)));
    if let Some(why) = &job.why {
        line("Why", plain(why));
    }
    line("Planned", format!("{} by {}: {}", from_now(job.planned_at, now), plain(&job.by), plain(&job.reason)));
    line("Meant", plain(&job.selector.words()));
    line("Matching", job.dry_run.words());
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
pub(crate) fn progress(job: &Job) -> String {
    let Tally { begun, recovered, failed_again, late, passed_over } = job.tally;
    let mut line = format!("{}: {begun} begun of {}, {recovered} recovered", plain(&job.state), job.dry_run.words());
    if failed_again > 0 {
        line.push_str(&format!(", {failed_again} failed again"));
    }
    if late > 0 {
        line.push_str(&format!(" ({late} of them not settled in time)"));
    }
    if passed_over > 0 {
        line.push_str(&format!(", {passed_over} seen to by somebody else"));
    }
    line.push_str(&format!(", {} under way, {} waiting", job.under_way, job.waiting));
    line
}

fn tint(job: &Job) -> Tint {
    match job.state.as_str() {
        "Done" if job.went_well() => Tint::Green,
        "Done" | "Stopped" => Tint::Red,
        "Cancelled" => Tint::Yellow,
        _ => Tint::Cyan,
    }
}
