//! `stepwarden list`: matching orders, newest first, page by page.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wire::{OrderList, Task};

use super::context::Context;
use super::error::CommandError;
use super::{query, system, workflows};
use crate::args::ListArgs;
use crate::exit::Exit;
use crate::remote::{Remote, RemoteError};
use crate::show::order;

/// The most orders on a page of the API.
pub(super) const PAGE_MAX: usize = 100;

pub(super) async fn run(context: &Context, args: &ListArgs) -> Result<Exit, CommandError> {
    let filter = query::of_filter(&args.filter, context.now());
    let most = if args.all { usize::MAX } else { usize::try_from(args.limit).unwrap_or(usize::MAX) };
    let (mut shown, mut cursor, mut tasks) = (0, None, Vec::<Task<'_>>::new());
    let mut has_index = false;
    let is_past_index = loop {
        let limit = (most - shown).min(PAGE_MAX);
        let page = page::<Box<RawValue>>(&context.remote, &filter, limit, cursor).await?;
        for raw in page.orders.iter().take(most - shown) {
            shown += 1;
            if args.quiet {
                context.line(&item::<Task<'_>>("/orders", raw)?.order_id.to_string())?;
            } else if context.is_json() {
                context.raw(raw)?;
            } else {
                tasks.push(item("/orders", raw)?);
            }
        }
        cursor = page.next_cursor;
        // What the index knows is enough, unless all are wanted.
        has_index |= page.from_index;
        let is_past_index = has_index && !page.from_index && shown > 0;
        // A page may be short or empty and still have a next one, since the API bounds its reads.
        if cursor.is_none() || shown >= most || (is_past_index && !args.all) {
            break is_past_index;
        }
    };
    if !context.is_json() && !args.quiet {
        let table = order::table(&tasks, &args.columns, context.ids(), context.now());
        context.print(&table.or(context.paint, "No orders."))?;
    }
    if shown == 0 {
        if let Some(workflow) = &args.filter.workflow {
            workflows::note_if_unknown(context, workflow).await;
        }
        if let Some(service) = &args.filter.service {
            system::note_if_unknown(context, service).await;
        }
    }
    if cursor.is_some() && context.terminal.stderr {
        context.note(if is_past_index && shown < most {
            "these are from the index; --all searches on through the orders that are not in it"
        } else {
            "there are more orders; --all or --limit N shows them"
        });
    }
    Ok(Exit::Fine)
}

/// One page of matching orders.
pub(super) async fn page<T: DeserializeOwned>(
    remote: &Remote,
    filter: &[(&'static str, String)],
    limit: usize,
    cursor: Option<String>,
) -> Result<OrderList<T>, RemoteError> {
    let mut parameters = filter.to_vec();
    parameters.push(("limit", limit.to_string()));
    parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
    remote.get(&query::path("/orders", &parameters)).await
}

/// One item of a page of a list.
pub(super) fn item<T: DeserializeOwned>(path: &str, raw: &RawValue) -> Result<T, RemoteError> {
    serde_json::from_str(raw.get())
        .map_err(|error| RemoteError::Unreadable { url: path.to_owned(), why: error.to_string() })
}
