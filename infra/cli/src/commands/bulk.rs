//! `stepwarden bulk`: the same action on many orders, as one durable job. The job is carried on by the supervisor, whatever
//! becomes of this process.

use std::borrow::Cow;
use std::time::Duration;

use domain::bulk::BulkAction;
use domain::time::Timestamp;
use http::header::IF_MATCH;
use serde_json::value::RawValue;
use wire::{Command, Job, JobList, JobState, Plan, Selector};

use super::context::{Context, body};
use super::error::CommandError;
use super::list::item;
use crate::args::{BulkCommand, JobActArgs, PlanArgs};
use crate::exit::Exit;
use crate::follow::bear;
use crate::remote::{Answer, Call, RemoteError, clock, encoded, etag};
use crate::show::job as shown;

/// The pause between two looks at a job.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn run(context: &Context, command: &BulkCommand) -> Result<Exit, CommandError> {
    match command {
        BulkCommand::Resubmit(args) => to_do(context, "resubmit", args).await,
        BulkCommand::Again(args) => to_do(context, "again", args).await,
        BulkCommand::Run(args) => to_do(context, &args.action, &args.plan).await,
        BulkCommand::Plan(args) => {
            let (job, answer) = plan(context, &args.action, &args.plan).await?;
            show(context, &answer)?;
            context.note(&format!("nothing is done yet: `stepwarden bulk start {} --reason …` starts it", job.id));
            Ok(Exit::Fine)
        }
        BulkCommand::Start(args) => start(context, args).await,
        BulkCommand::Cancel(args) => {
            let (_, answer) =
                act(context, &args.job, JobAction::Cancel, &context.command(&args.command)?, None).await?;
            show(context, &answer)
        }
        BulkCommand::Status { job, watch: false } => show(context, &look(context, job).await?.1),
        BulkCommand::Status { job, watch: true } => to_the_end(context, job).await,
        BulkCommand::List { limit } => list(context, *limit).await,
    }
}

/// Plans, asks, starts, and shows the progress.
async fn to_do(context: &Context, action: &str, args: &PlanArgs) -> Result<Exit, CommandError> {
    context.can_ask(&match action {
        "again" => "This posts again every order that matches.".to_owned(),
        action => format!("This does a {action} of every order that matches."),
    })?;
    let (job, answer) = plan(context, action, args).await?;
    let count = shown::matching(&job.dry_run);
    context.note(&format!("job {}: {}: {count} match", job.id, shown::meant(&job)));
    // Of very many orders, the dry run looks at the newest alone.
    if job.dry_run.matching == 0 && job.dry_run.complete {
        drop_plan(context, &job, args).await?;
        return context.show(&answer, |_: Job<'_>| "No order matches; nothing was done.\n".to_owned());
    }
    let question = format!(
        "{} {count} orders, {} first to see how they fare, then {} in a second?",
        shown::verb(&job),
        job.canary,
        job.rate_per_second
    );
    if !context.may_go_on(&question)? {
        drop_plan(context, &job, args).await?;
        return Ok(Exit::Fine);
    }
    act(context, &job.id, JobAction::Start, &context.command(&args.command)?, Some(job.version)).await?;
    to_the_end(context, &job.id).await
}

/// A plan that is not carried out is not left lying about.
async fn drop_plan(context: &Context, job: &Job<'_>, args: &PlanArgs) -> Result<(), CommandError> {
    let command = Command { reason: "planned and not started".into(), ..context.command(&args.command)? };
    act(context, &job.id, JobAction::Cancel, &command, None).await.map(|_| ())
}

async fn plan(context: &Context, action: &str, args: &PlanArgs) -> Result<(Job<'static>, Answer), CommandError> {
    let (by, now) = (context.by(&args.command)?, context.now());
    let body = body(&asked(action, args, &by, now));
    // A plan has no key: a second one would be another job.
    let call = Call::post("/bulk", body).unrepeated();
    let planned = context.remote.ask(&call).await;
    let what = "the job was planned (nothing of it is started)";
    planned.map_err(|error| CommandError::of_change(error, what, "stepwarden bulk list"))
}

async fn start(context: &Context, args: &JobActArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.command)?;
    let (job, _) = look(context, &args.job).await?;
    let question = format!("{} {} orders ({})?", shown::verb(&job), shown::matching(&job.dry_run), shown::meant(&job));
    if !context.may_go_on(&question)? {
        return Ok(Exit::Fine);
    }
    // What was asked about is what is started.
    let (job, answer) = act(context, &args.job, JobAction::Start, &command, Some(job.version)).await?;
    show(context, &answer)?;
    context.note(&format!("`stepwarden bulk status {} --watch` shows how it goes", job.id));
    Ok(Exit::Fine)
}

/// Shows how a job goes on until it has ended.
async fn to_the_end(context: &Context, id: &str) -> Result<Exit, CommandError> {
    context.note(&format!("the job goes on without this program; `stepwarden bulk cancel {id} --reason …` stops it"));
    let mut progress = context.progress();
    let mut heard_of = clock::instant();
    loop {
        match look(context, id).await {
            Ok((job, answer)) => {
                heard_of = clock::instant();
                progress.show(&shown::progress(&job));
                if shown::is_ended(&job) {
                    progress.clear();
                    show(context, &answer)?;
                    return Ok(if shown::went_well(&job) { Exit::Fine } else { Exit::Otherwise });
                }
            }
            Err(error) => bear(error, heard_of, true)?,
        }
        clock::pause(PAUSE).await;
    }
}

async fn look(context: &Context, id: &str) -> Result<(Job<'static>, Answer), RemoteError> {
    context.remote.ask(&Call::get(job_path(id))).await
}

/// What is done to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobAction {
    Start,
    Cancel,
}

/// Does it, and again where the answer was lost. A repeat may be refused because the first was carried out: the job
/// tells then.
async fn act(
    context: &Context,
    id: &str,
    action: JobAction,
    command: &Command<'_>,
    if_version: Option<u64>,
) -> Result<(Job<'static>, Answer), CommandError> {
    let (word, done) = match action {
        JobAction::Start => ("start", "started"),
        JobAction::Cancel => ("cancel", "cancelled"),
    };
    let mut call = Call::post(format!("{}/{word}", job_path(id)), body(command));
    if let Some(version) = if_version {
        call = call.with(IF_MATCH, etag(version));
    }
    let error = match context.remote.ask(&call).await {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    if error.is_refused_repeat()
        && let Ok((job, answer)) = look(context, id).await
        && is_told_by(action, command, &job)
    {
        return Ok((job, answer));
    }
    Err(CommandError::of_change(error, format!("the job {id} was {done}"), format!("stepwarden bulk status {id}")))
}

/// Whether a job tells of this command, in the words of the API.
fn is_told_by(action: JobAction, Command { by, reason, .. }: &Command<'_>, job: &Job<'_>) -> bool {
    match action {
        JobAction::Start => job.started_by.as_deref() == Some(&*format!("{by}: {reason}")),
        JobAction::Cancel => {
            job.state == JobState::Cancelled && job.why.as_deref() == Some(&*format!("by {by}: {reason}"))
        }
    }
}

async fn list(context: &Context, limit: u8) -> Result<Exit, CommandError> {
    let jobs: JobList<Box<RawValue>> = context.remote.get(&format!("/bulk?limit={limit}")).await?;
    if context.is_json() {
        for job in &jobs.jobs {
            context.raw(job)?;
        }
        return Ok(Exit::Fine);
    }
    let jobs: Vec<Job<'static>> = jobs.jobs.iter().map(|raw| item("/bulk", raw)).collect::<Result<_, _>>()?;
    context.print(&shown::table(&jobs, context.now()).or(context.paint, "No jobs."))
}

fn show(context: &Context, answer: &Answer) -> Result<Exit, CommandError> {
    context.show(answer, |job: Job<'_>| shown::whole(context.paint, &job, context.now()))
}

fn job_path(id: &str) -> String {
    format!("/bulk/{}", encoded(id))
}

/// The plan. The API has a default for an option that is not given.
fn asked<'a>(action: &'a str, args: &'a PlanArgs, by: &'a str, now: Timestamp) -> Plan<'a> {
    let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
    Plan {
        by: by.into(),
        reason: (&*args.command.reason).into(),
        action: BulkAction::ALL.into_iter().find(|known| known.segment() == action).map(|known| known.name().into()),
        selector: Selector {
            state: None,
            reason_code: text(&args.reason_code),
            step: text(&args.step),
            failed_since: args.since.map(|when| when.from(now)),
            failed_until: args.until.map(|when| when.from(now)),
        },
        canary: args.canary,
        canary_timeout_ms: args.canary_timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        rate_per_second: args.rate,
        stop_at_failed_percent: args.stop_at_failed_percent,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::args::{CommandArgs, When};

    #[test]
    fn what_is_not_given_is_left_to_the_api() {
        let now = Timestamp::from_epoch_ms(1_795_195_603_007);
        let written = |args: &PlanArgs| serde_json::to_value(asked("resubmit", args, "ann", now)).unwrap();
        let mut args = PlanArgs {
            command: CommandArgs { reason: "it is back".to_owned(), by: None },
            reason_code: None,
            step: None,
            since: None,
            until: None,
            canary: None,
            canary_timeout: None,
            rate: None,
            stop_at_failed_percent: None,
        };
        let unset = json!({"Action": "Resubmit", "By": "ann", "Reason": "it is back", "Selector": {}});
        assert_eq!(written(&args), unset);
        (args.reason_code, args.canary) = (Some("exhausted".to_owned()), Some(3));
        (args.since, args.canary_timeout) = (Some(When::Ago(Duration::from_secs(60))), Some(Duration::from_secs(9)));
        assert_eq!(
            written(&args),
            json!({
                "Action": "Resubmit", "By": "ann", "Reason": "it is back", "Canary": 3, "CanaryTimeoutMs": 9_000,
                "Selector": {"ReasonCode": "exhausted", "FailedSince": "2026-11-20T17:25:43.007Z"},
            })
        );
    }
}
