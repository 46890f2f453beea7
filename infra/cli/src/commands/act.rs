//! `stepwarden resubmit`, `cancel`, `pause` and `resume`: an operator's wish about one order or several.

use domain::message::Action;
use domain::task::ProcessState;
use http::header::IF_MATCH;

use super::context::{Context, if_match};
use super::error::CommandError;
use super::follow::{Sight, follow, look, order_path};
use super::get;
use crate::args::ActArgs;
use crate::exit::Exit;
use crate::remote::{Answer, Call};
use crate::show::order;
use crate::wire::task::{Task, Transition};

pub(super) async fn run(context: &Context, action: Action, args: &ActArgs) -> Result<Exit, CommandError> {
    let wish = context.wish(&args.wish)?;
    if let [id] = args.ids.as_slice() {
        return one(context, action, id, &wish, args).await;
    }
    if args.if_version.is_some() {
        return Err(CommandError::Usage("--if-version is about one order; give one ID".to_owned()));
    }
    if !context.may_go_on(&format!("{} {} orders?", action.name(), args.ids.len()))? {
        context.note("nothing was done");
        return Ok(Exit::Fine);
    }
    let mut exit = Exit::Fine;
    for id in &args.ids {
        // One that cannot be done does not keep the others from being done.
        let ended = one(context, action, id, &wish, args).await.or_else(|error| {
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

async fn one(context: &Context, action: Action, id: &str, wish: &str, args: &ActArgs) -> Result<Exit, CommandError> {
    let Some(at_most) = args.wait.wait else {
        let answer = post(context, action, id, wish, args.if_version).await?;
        return queued(context, action, id, &answer).map(|()| Exit::Fine);
    };
    // What was there before tells whether what is there later is due to the wish.
    let Sight { task: before, .. } = look(context, id).await?;
    post(context, action, id, wish, args.if_version).await?;
    let mut progress = context.progress();
    let reached = |task: &Task| is_done(action, &before, task);
    let followed = follow(context, id, at_most, reached, |task| {
        progress.show(&format!("{id} {}", order::brief(task)));
    });
    let followed = followed.await?;
    drop(progress);
    get::end(context, id, at_most, followed, |task| is_as_wished(action, &before, task))
}

async fn post(
    context: &Context,
    action: Action,
    id: &str,
    wish: &str,
    if_version: Option<u64>,
) -> Result<Answer, CommandError> {
    let path = format!("{}/{}", order_path(id), action.name().to_lowercase());
    let mut call = Call::post(path, wish.to_owned());
    if let Some(version) = if_version {
        call = call.with(IF_MATCH, if_match(version));
    }
    Ok(context.remote.call(&call).await?)
}

fn queued(context: &Context, action: Action, id: &str, answer: &Answer) -> Result<(), CommandError> {
    if context.is_json() {
        return context.line(&answer.line());
    }
    context.line(&format!("{id}  {} is on its way", action.name()))
}

/// Whether the wish was carried out, and the order has come to where it leads.
fn is_done(action: Action, before: &Task, task: &Task) -> bool {
    let is_carried_out = last(action, task).is_some_and(|line| Some(line) != last(action, before));
    match action {
        Action::Pause => is_carried_out || task.process_state.is_settled(),
        Action::Resubmit | Action::Cancel | Action::Resume => is_carried_out && task.process_state.is_settled(),
    }
}

fn is_as_wished(action: Action, before: &Task, task: &Task) -> bool {
    match action {
        Action::Pause => task.paused.is_some(),
        Action::Cancel => task.process_state == ProcessState::Compensated,
        // What was being undone is to be undone.
        Action::Resubmit | Action::Resume if before.is_undoing() => task.process_state == ProcessState::Compensated,
        Action::Resubmit | Action::Resume => task.process_state == ProcessState::Processed,
    }
}

/// The last line of the history that tells of such an action.
fn last(action: Action, task: &Task) -> Option<&Transition> {
    let done = match action {
        Action::Resubmit => "resubmitted",
        Action::Cancel => "cancelled",
        Action::Pause => "paused",
        Action::Resume => "resumed",
    };
    task.history.iter().rev().find(|line| line.what == done)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(state: &str, direction: &str, history: &[(&str, u32)]) -> Task {
        let history: Vec<_> = history
            .iter()
            .map(|(what, s)| json!({"At": format!("2026-11-20T17:26:{s:02}.000Z"), "Who": "ann", "What": what}))
            .collect();
        let step = json!({"Name": "a", "Agent": "b", "ProcessState": "Processed", "Direction": direction});
        let task = json!({
            "OrderID": "o", "Version": 1, "ProcessState": state, "Steps": [step], "History": history,
        });
        serde_json::from_value(task).unwrap()
    }

    #[test]
    fn an_error_that_was_there_before_is_not_taken_for_the_outcome() {
        let before = task("Error", "Forward", &[("resubmitted", 1)]);
        assert!(!is_done(Action::Resubmit, &before, &before));
        let failed_again = task("Error", "Forward", &[("resubmitted", 1), ("resubmitted", 2)]);
        assert!(is_done(Action::Resubmit, &before, &failed_again));
        assert!(!is_as_wished(Action::Resubmit, &before, &failed_again));
        let under_way = task("Processing", "Forward", &[("resubmitted", 2)]);
        assert!(!is_done(Action::Resubmit, &before, &under_way));
    }

    #[test]
    fn each_wish_has_the_end_that_it_leads_to() {
        let forward = task("Error", "Forward", &[]);
        let undoing = task("Error", "Undo", &[]);
        let processed = task("Processed", "Forward", &[]);
        let compensated = task("Compensated", "Undo", &[]);
        assert!(is_as_wished(Action::Resubmit, &forward, &processed));
        assert!(!is_as_wished(Action::Resubmit, &forward, &compensated));
        assert!(is_as_wished(Action::Resubmit, &undoing, &compensated));
        assert!(is_as_wished(Action::Cancel, &forward, &compensated));
        assert!(!is_as_wished(Action::Cancel, &forward, &processed));
        assert!(!is_as_wished(Action::Pause, &forward, &processed), "it was finished before it could be paused");
        assert!(is_done(Action::Pause, &forward, &processed));
    }
}
