//! `stepwarden dead-letters`: the settled dead letters and their outcomes.

use serde_json::value::RawValue;
use wire::{DeadLetter, DeadLetterList};

use super::context::Context;
use super::error::CommandError;
use super::list::{PAGE_MAX, item};
use super::query;
use crate::args::DeadLettersArgs;
use crate::exit::Exit;
use crate::show::table::Table;
use crate::show::time::from_now;

pub(super) async fn run(context: &Context, args: &DeadLettersArgs) -> Result<Exit, CommandError> {
    let most = if args.all { usize::MAX } else { usize::try_from(args.limit).unwrap_or(usize::MAX) };
    let (mut dead_letters, mut cursor) = (Vec::new(), None);
    loop {
        let mut parameters = vec![("limit", (most - dead_letters.len()).min(PAGE_MAX).to_string())];
        parameters.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page: DeadLetterList<Box<RawValue>> =
            context.remote.get(&query::path("/dead-letters", &parameters)).await?;
        for raw in page.dead_letters {
            if context.is_json() {
                context.raw(&raw)?;
            }
            dead_letters.push(item("/dead-letters", &raw)?);
        }
        cursor = page.next_cursor;
        if cursor.is_none() || dead_letters.len() >= most {
            break;
        }
    }
    if !context.is_json() {
        context.print(&shown(context, &dead_letters))?;
    }
    Ok(Exit::Fine)
}

fn shown(context: &Context, dead_letters: &[DeadLetter<'_>]) -> String {
    let now = context.now();
    let table = Table::of(dead_letters)
        .column("SETTLED", |dead_letter| from_now(dead_letter.settled_at, now))
        .column("QUEUE", |dead_letter| match (&dead_letter.queue, &dead_letter.agent) {
            (_, Some(agent)) => agent.to_string(),
            (Some(queue), None) => queue.to_lowercase(),
            (None, None) => "unknown".to_owned(),
        })
        .column("ORDER", |dead_letter| dead_letter.order_id.map(|id| id.to_string()))
        .column("DELIVERED", |dead_letter| format!("{} times", dead_letter.receive_count))
        .column("BECAME", |dead_letter| &*dead_letter.outcome)
        .column("WHY", |dead_letter| &*dead_letter.message)
        .column("MESSAGE", |dead_letter| &*dead_letter.message_id);
    table.or(context.paint, "No dead letters.")
}
