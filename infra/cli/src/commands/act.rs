//! `stepwarden resubmit`, `cancel`, `pause`, `resume`, `close` and `erase`: a command about one order or several.
//! `stepwarden approve` and `reject`: a decision on them. `stepwarden settle`: one about a step. `stepwarden note`: one that
//! only writes.

use std::borrow::Cow;

use domain::message::Action;
use domain::task::ProcessState;
use http::header::IF_MATCH;
use wire::{Accepted, Command, Decision, Note, Queued, Settle, Task};

use super::context::{Context, body};
use super::error::CommandError;
use super::{get, ids};
use crate::args::{ActArgs, AgainArgs, DecideArgs, HowArgs, NoteArgs, SettleArgs};
use crate::exit::Exit;
use crate::follow::{PAUSE, Sight, follow, look, order_path};
use crate::remote::{Answer, Call, etag};
use crate::show::order;
use crate::show::table::plain;
use crate::show::time::clock;

/// What is posted about an order.
struct Act<'a> {
    action: Action,
    /// The id by which the command is found in the history.
    id: Option<Cow<'static, str>>,
    body: String,
    how: &'a HowArgs,
}

pub(super) async fn run(context: &Context, action: Action, args: &ActArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.how.command)?;
    on_each(context, args, &Act { action, body: body(&command), id: command.command_id, how: &args.how }).await
}

/// `stepwarden approve` and `reject`
pub(super) async fn decide(context: &Context, action: Action, args: &DecideArgs) -> Result<Exit, CommandError> {
    let DecideArgs { act: args, step } = args;
    let Command { by, reason, command_id } = context.command(&args.how.command)?;
    let step = step.as_deref().map(Into::into);
    let body = body(&Decision { by, reason, step, command_id: command_id.clone() });
    on_each(context, args, &Act { action, id: command_id, body, how: &args.how }).await
}

async fn on_each(context: &Context, args: &ActArgs, act: &Act<'_>) -> Result<Exit, CommandError> {
    let action = act.action;
    if args.ids.len() > 1 && args.how.if_version.is_some() {
        return Err(CommandError::usage("--if-version is about one order; give one ID"));
    }
    let ids = ids::whole(context, &args.ids).await?;
    match ids.as_slice() {
        [id] => one(context, id, act).await,
        ids => several(context, action.name(), ids, async |id| one(context, id, act).await).await,
    }
}

/// `stepwarden settle`
pub(super) async fn settle(context: &Context, args: &SettleArgs) -> Result<Exit, CommandError> {
    let Command { by, reason, command_id } = context.command(&args.how.command)?;
    let body = body(&Settle {
        step: args.step.as_str().into(),
        outcome: args.outcome.into(),
        output: args.step_output.clone(),
        by,
        reason,
        command_id: command_id.clone(),
    });
    let act = Act { action: Action::Settle, id: command_id, body, how: &args.how };
    one(context, &ids::whole_one(context, &args.id).await?, &act).await
}

/// `stepwarden note`
pub(super) async fn note(context: &Context, args: &NoteArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.how.command)?;
    let take = (args.take || args.let_go).then_some(args.take);
    let id = ids::whole_one(context, &args.id).await?;
    if args.take {
        warn_of_who_has_it(context, &id, &command).await?;
    }
    let Command { by, reason, command_id } = command;
    let body = body(&Note { by, reason, take, command_id: command_id.clone() });
    let act = Act { action: Action::Note, id: command_id, body, how: &args.how };
    one(context, &id, &act).await
}

/// Says from whom the order is taken.
async fn warn_of_who_has_it(context: &Context, id: &str, command: &Command<'_>) -> Result<(), CommandError> {
    let Sight { task, .. } = look(&context.remote, id).await?;
    if let Some(taken) = task.taken.filter(|taken| *taken.by != *command.by) {
        let (by, since) = (plain(&taken.by), clock(taken.since));
        context.note(&format!("{by} has this order since {since}, and it is taken from them"));
    }
    Ok(())
}

/// Acts on several orders, after a confirmation.
async fn several(
    context: &Context,
    verb: &str,
    ids: &[String],
    one: impl AsyncFn(&str) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    if !context.may_go_on(&format!("{verb} {} orders?", ids.len()))? {
        return Ok(Exit::Fine);
    }
    let mut exit = Exit::Fine;
    for id in ids {
        // One that cannot be done does not keep the others from being done.
        let ended = one(id).await.or_else(|error| {
            let exit = error.exit();
            if matches!(exit, Exit::OutputGone | Exit::Away | Exit::NotAllowed) {
                return Err(error);
            }
            context.note(&format!("{id}: {error}"));
            Ok(exit)
        });
        exit = exit.and(ended?);
    }
    Ok(exit)
}

async fn one(context: &Context, id: &str, act: &Act<'_>) -> Result<Exit, CommandError> {
    let action = act.action;
    let Some(at_most) = act.how.wait.wait else {
        let answer = post(context, id, act).await?;
        return context.show(&answer, |_: Queued<'_>| format!("{id}  {} is on its way\n", action.name()));
    };
    // What was being undone is to be undone.
    let Sight { task: before, .. } = look(&context.remote, id).await?;
    post(context, id, act).await?;
    let mut progress = context.progress();
    let reached = |task: &Task<'_>| is_done(action, act.id.as_deref(), task);
    let followed = follow(&context.remote, id, PAUSE, at_most, reached, |task| {
        progress.show(&format!("{id} {}", order::brief(task)));
    });
    let followed = followed.await?;
    drop(progress);
    get::end(context, id, at_most, followed, |task| is_as_commanded(action, &before, task)).await
}

/// Posts a command, and again where its answer was lost. The API knows the command by its id, and a repeat of what was
/// carried out is accepted.
async fn post(context: &Context, id: &str, act: &Act<'_>) -> Result<Answer, CommandError> {
    let Act { action, .. } = act;
    let path = format!("{}/{}", order_path(id), action.segment());
    let mut call = Call::post(path, act.body.clone());
    if let Some(version) = act.how.if_version {
        call = call.with(IF_MATCH, etag(version));
    }
    // A page of somebody between, with the status of a success, is none.
    let answered = context.remote.call(&call).await;
    answered.and_then(|answer| answer.read::<Queued<'_>>().map(|_| answer)).map_err(|error| {
        CommandError::of_change(error, format!("{id} was {}", done(*action)), format!("stepwarden get {id}"))
    })
}

/// Whether the command was carried out, and the order has come to where it leads.
fn is_done(action: Action, id: Option<&str>, task: &Task<'_>) -> bool {
    let is_carried_out =
        task.history().iter().any(|line| line.command_id.is_some() && line.command_id.as_deref() == id);
    match action {
        Action::Note => is_carried_out,
        Action::Erase => task.erased_at.is_some(),
        Action::Pause => is_carried_out || task.is_settled(),
        Action::Resubmit
        | Action::Cancel
        | Action::Resume
        | Action::Settle
        | Action::Close
        | Action::Approve
        | Action::Reject => is_carried_out && task.is_settled(),
    }
}

fn is_as_commanded(action: Action, before: &Task<'_>, task: &Task<'_>) -> bool {
    match action {
        Action::Pause => task.paused.is_some(),
        Action::Note => true,
        Action::Erase => task.erased_at.is_some(),
        Action::Close => task.process_state == ProcessState::Closed,
        Action::Cancel => task.process_state == ProcessState::Compensated,
        // What becomes of the order is the workflow's affair.
        Action::Reject => true,
        // What was being undone is to be undone.
        Action::Resubmit | Action::Resume | Action::Settle if order::is_undoing(before) => {
            task.process_state == ProcessState::Compensated
        }
        Action::Resubmit | Action::Resume | Action::Settle | Action::Approve => {
            task.process_state == ProcessState::Processed
        }
    }
}

/// What was done to the order.
const fn done(action: Action) -> &'static str {
    match action {
        Action::Resubmit => "resubmitted",
        Action::Cancel => "cancelled",
        Action::Pause => "paused",
        Action::Resume => "resumed",
        Action::Settle => "settled",
        Action::Approve => "approved",
        Action::Reject => "rejected",
        Action::Note => "noted",
        Action::Close => "closed",
        Action::Erase => "erased",
    }
}

/// `stepwarden again`: posts compensated orders again, each as one new order.
pub(super) async fn again(context: &Context, args: &AgainArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.command)?;
    let ids = ids::whole(context, &args.ids).await?;
    match ids.as_slice() {
        [id] => post_again(context, id, &command, args).await,
        ids => several(context, "Post again", ids, async |id| post_again(context, id, &command, args).await).await,
    }
}

async fn post_again(
    context: &Context,
    id: &str,
    command: &Command<'_>,
    args: &AgainArgs,
) -> Result<Exit, CommandError> {
    let call = Call::post(format!("{}/again", order_path(id)), body(command));
    let answer = context.remote.ask::<Accepted>(&call).await;
    let (what, look) = (format!("{id} was posted again"), format!("stepwarden get {id} --document"));
    let (accepted, answer) = answer.map_err(|error| CommandError::of_change(error, what, look))?;
    if let Some(at_most) = args.wait.wait {
        context.note(&format!("{id} was posted again as {}", accepted.order_id));
        return get::wait(context, &accepted.order_id.to_string(), at_most).await;
    }
    context.show(&answer, |Accepted { order_id, .. }| format!("{order_id}  again of {id}\n"))
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use serde_json::json;

    use super::*;

    fn task(state: &str, direction: &str, commands: &[&str]) -> Task<'static> {
        let line = |id: &&str| json!({"At": "2026-11-20T17:26:01.000Z", "Who": "ann", "What": "", "Kind": "Resubmitted", "CommandID": id});
        let history: Vec<_> = commands.iter().map(line).collect();
        let step = json!({"Name": "a", "Agent": "b", "ProcessState": "Processed", "Direction": direction,
                          "FailureCount": 0, "Attempt": 1});
        let task = json!({
            "OrderID": OrderId::from_idempotency_key("shop", "a"), "Version": 1, "ProcessState": state, "Steps": [step], "History": history,
            "Workflow": "order", "WorkflowVersion": 1, "Priority": "normal", "Actions": [],
            "Situation": {"Head": "", "Waits": false},
        });
        serde_json::from_value(task).unwrap()
    }

    #[test]
    fn a_command_is_carried_out_once_the_history_has_its_id() {
        let before = task("Error", "Forward", &["earlier"]);
        assert!(!is_done(Action::Resubmit, Some("mine"), &before), "another one of the same operator");
        let failed_again = task("Error", "Forward", &["earlier", "mine"]);
        assert!(is_done(Action::Resubmit, Some("mine"), &failed_again));
        assert!(!is_as_commanded(Action::Resubmit, &before, &failed_again));
        let under_way = task("Processing", "Forward", &["mine"]);
        assert!(!is_done(Action::Resubmit, Some("mine"), &under_way));
    }

    #[test]
    fn each_command_has_the_end_that_it_leads_to() {
        let forward = task("Error", "Forward", &[]);
        let undoing = task("Error", "Undo", &[]);
        let processed = task("Processed", "Forward", &[]);
        let compensated = task("Compensated", "Undo", &[]);
        assert!(is_as_commanded(Action::Resubmit, &forward, &processed));
        assert!(!is_as_commanded(Action::Resubmit, &forward, &compensated));
        assert!(is_as_commanded(Action::Resubmit, &undoing, &compensated));
        assert!(is_as_commanded(Action::Cancel, &forward, &compensated));
        assert!(is_as_commanded(Action::Close, &undoing, &task("Closed", "Undo", &[])));
        assert!(!is_as_commanded(Action::Close, &undoing, &compensated));
        assert!(!is_as_commanded(Action::Cancel, &forward, &processed));
        assert!(!is_as_commanded(Action::Pause, &forward, &processed), "it was finished before it could be paused");
        assert!(is_done(Action::Pause, Some("mine"), &processed));
    }
}
