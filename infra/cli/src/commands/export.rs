//! `stepwarden export`: matching orders whole, one a line, newest first. It keeps one page of IDs and some orders in memory.

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::Task;

use super::context::Context;
use super::error::CommandError;
use super::list::{PAGE_MAX, page};
use super::query;
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::follow::order_path;
use crate::remote::{Call, RemoteError};

/// Orders that are asked for at the same time. An API with few readers makes some of them wait.
const AT_ONCE: usize = 4;

/// The answer about a document.
#[derive(Deserialize)]
struct Posted {
    #[serde(rename = "Document")]
    document: Box<RawValue>,
}

pub(super) async fn run(context: &Context, args: &ExportArgs) -> Result<Exit, CommandError> {
    let mut count = 0_u64;
    let exported = export(context, args, &mut count).await;
    if exported.is_err() {
        context.note(&format!("the export is not complete: it ends after {count} orders"));
    } else if context.terminal.stderr {
        context.note(&format!("{count} orders"));
    }
    exported.map(|()| Exit::Fine)
}

async fn export(context: &Context, args: &ExportArgs, count: &mut u64) -> Result<(), CommandError> {
    let filter = query::of_filter(&args.filter, context.now());
    let mut cursor = None;
    loop {
        let page = page::<Task<'static>>(&context.remote, &filter, PAGE_MAX, cursor).await?;
        let ids: Vec<String> = page.orders.iter().map(|task| task.order_id.to_string()).collect();
        let orders = ids.iter().map(|id| whole(context, id, args.documents));
        let mut orders = stream::iter(orders).buffered(AT_ONCE);
        while let Some(order) = orders.try_next().await? {
            if let Some(order) = order {
                context.line(&order)?;
                *count += 1;
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// The order as one line of JSON. `None` if it is gone by now.
async fn whole(context: &Context, id: &str, with_document: bool) -> Result<Option<String>, RemoteError> {
    match asked(context, id, with_document).await {
        Ok(order) => Ok(Some(order)),
        Err(error) if error.exit() == Exit::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn asked(context: &Context, id: &str, with_document: bool) -> Result<String, RemoteError> {
    let task = context.remote.call(&Call::get(order_path(id))).await?.line();
    if !with_document {
        return Ok(task);
    }
    let posted: Posted = context.remote.get(&format!("{}/document", order_path(id))).await?;
    Ok(with(&task, &posted))
}

/// The task with its document as one more member. Its digits stay as they are.
fn with(task: &str, Posted { document }: &Posted) -> String {
    let members = task.trim_end().strip_suffix('}').unwrap_or(task);
    format!("{members},\"Document\":{}}}", document.get().replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_member_of_its_order_digit_for_digit() {
        let posted = serde_json::from_str("{\"OrderID\": \"x\", \"Document\": {\"Total\":\n1.10}}").unwrap();
        assert_eq!(with("{\"OrderID\":\"x\"} ", &posted), "{\"OrderID\":\"x\",\"Document\":{\"Total\": 1.10}}");
    }
}
