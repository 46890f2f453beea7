//! `stepwarden get`: one order, now or at its end, or the document that it was posted with.

use std::time::Duration;

use domain::task::ProcessState;
use serde::de::IgnoredAny;
use wire::{ServiceList, Task};

use super::context::Context;
use super::error::CommandError;
use super::ids;
use crate::args::GetArgs;
use crate::exit::Exit;
use crate::follow::{Followed, PAUSE, Sight, follow, look, order_path};
use crate::remote::Call;
use crate::show::order;

pub(super) async fn run(context: &Context, args: &GetArgs) -> Result<Exit, CommandError> {
    let id = ids::whole_one(context, &args.id).await?;
    if args.document {
        return document(context, &id).await;
    }
    match args.wait.wait {
        Some(at_most) => wait(context, &id, at_most).await,
        None => show(context, &look(&context.remote, &id).await?).await,
    }
}

/// Waits until an order is settled, and shows it then. What is shown is how far it got where the time is over before.
pub(super) async fn wait(context: &Context, id: &str, at_most: Duration) -> Result<Exit, CommandError> {
    let mut progress = context.progress();
    let is_settled = |task: &Task<'_>| task.is_settled();
    let followed = follow(&context.remote, id, PAUSE, at_most, is_settled, |task| {
        progress.show(&format!("{id} {}", order::brief(task)));
    });
    let followed = followed.await?;
    drop(progress);
    end(context, id, at_most, followed, |task| task.process_state == ProcessState::Processed).await
}

/// Shows how an order ended, and judges it.
pub(super) async fn end(
    context: &Context,
    id: &str,
    at_most: Duration,
    followed: Followed,
    is_good: impl FnOnce(&Task<'_>) -> bool,
) -> Result<Exit, CommandError> {
    match followed {
        Followed::Reached(sight) => {
            show(context, &sight).await?;
            Ok(if is_good(&sight.task) { Exit::Fine } else { Exit::Otherwise })
        }
        Followed::TimedOut(sight) => {
            let waited = humantime::format_duration(at_most);
            let Some(sight) = sight else {
                context.note(&format!("{id} is not stored after {waited}; if it was accepted, it is not lost"));
                return Ok(Exit::NotFound);
            };
            show(context, &sight).await?;
            let state = &sight.task.process_state;
            context.note(&format!(
                "{id} is {state} after {waited}; nothing is lost: `stepwarden get {id} --wait=5m` waits on"
            ));
            Ok(Exit::TimedOut)
        }
    }
}

async fn show(context: &Context, sight: &Sight) -> Result<Exit, CommandError> {
    if context.is_json() {
        return context.line(&sight.answer.line());
    }
    let waits = order::waits_for_a_service(&sight.task);
    // Not every caller may see the services.
    let services = if waits { context.remote.get::<ServiceList<'_>>("/services").await.ok() } else { None };
    let services = services.map(|list| list.services).unwrap_or_default();
    context.print(&order::whole(context.paint, &sight.task, &services, context.now()))
}

async fn document(context: &Context, id: &str) -> Result<Exit, CommandError> {
    let answer = context.remote.call(&Call::get(format!("{}/document", order_path(id)))).await?;
    // The order of members is the sender's, and so are its digits; only the lines are ours.
    context.show(&answer, |_: IgnoredAny| pretty(&answer.line()))
}

/// JSON with a line for each member, its values as they were written.
fn pretty(text: &str) -> String {
    let mut pretty = String::new();
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            pretty.push(c);
            (in_string, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                pretty.push(c);
            }
            '{' | '[' => {
                pretty.push(c);
                while chars.next_if(|c| c.is_whitespace()).is_some() {}
                if let Some(close) = chars.next_if(|c| matches!(c, '}' | ']')) {
                    pretty.push(close);
                } else {
                    depth += 1;
                    line(&mut pretty, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut pretty, depth);
                pretty.push(c);
            }
            ',' => {
                pretty.push(c);
                line(&mut pretty, depth);
            }
            ':' => pretty.push_str(": "),
            c if c.is_whitespace() => {}
            c => pretty.push(c),
        }
    }
    pretty.push('\n');
    pretty
}

fn line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_gets_lines_and_keeps_its_digits_and_its_texts() {
        let text = r#" {"A":1.10,"b" : [ ],"C":{"d":"x, {y}: \"z\\"}, "e":[1,2]}"#;
        let expected = "{\n  \"A\": 1.10,\n  \"b\": [],\n  \"C\": {\n    \"d\": \"x, {y}: \\\"z\\\\\"\n  },\n  \"e\": [\n    1,\n    2\n  ]\n}\n";
        assert_eq!(pretty(text), expected);
    }
}
