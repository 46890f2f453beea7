//! `stepwarden again`: posts compensated orders again, each as one new order.

use wire::{Accepted, Command};

use super::act::several;
use super::context::{Context, body};
use super::error::CommandError;
use super::{get, ids};
use crate::args::AgainArgs;
use crate::exit::Exit;
use crate::follow::order_path;
use crate::remote::Call;

pub(super) async fn run(context: &Context, args: &AgainArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.command)?;
    let ids = ids::whole(context, &args.ids).await?;
    match ids.as_slice() {
        [id] => one(context, id, &command, args).await,
        ids => several(context, "Post again", ids, async |id| one(context, id, &command, args).await).await,
    }
}

async fn one(context: &Context, id: &str, command: &Command<'_>, args: &AgainArgs) -> Result<Exit, CommandError> {
    let call = Call::post(format!("{}/again", order_path(id)), body(command));
    let answer = context.remote.call(&call).await.and_then(|answer| Ok((answer.read::<Accepted>()?, answer)));
    let (what, look) = (format!("{id} was posted again"), format!("stepwarden get {id} --document"));
    let (accepted, answer) = answer.map_err(|error| CommandError::of_change(error, what, look))?;
    if let Some(at_most) = args.wait.wait {
        context.note(&format!("{id} was posted again as {}", accepted.order_id));
        return get::wait(context, &accepted.order_id.to_string(), at_most).await;
    }
    context.show(&answer, |Accepted { order_id, .. }| format!("{order_id}  again of {id}\n"))
}
