//! `stepwarden services accept-rejections`: the operator's word that the rejections of a service are right.

use wire::Service;

use super::context::{Context, body};
use super::error::CommandError;
use super::query::encoded;
use super::system::service_text;
use crate::args::AcceptRejectionsArgs;
use crate::exit::Exit;
use crate::remote::Call;

pub(super) async fn run(context: &Context, args: &AcceptRejectionsArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.command)?;
    let path = format!("/services/{}/accept-rejections", encoded(&args.service));
    // Twice is once, so a repeat after a lost answer is safe.
    let answer = context.remote.call(&Call::post(path, body(&command))).await;
    let answer = answer.map_err(|error| match error.may_be_done() {
        true => CommandError::Unsure {
            what: format!("the rejections of {} were accepted", args.service),
            look: "stepwarden services".to_owned(),
            source: error,
        },
        false => CommandError::Remote(error),
    })?;
    if context.is_json() {
        return context.line(&answer.line()).map(|()| Exit::Fine);
    }
    let service: Service<'static> = answer.read()?;
    context.print(&service_text(&[service], context))?;
    Ok(Exit::Fine)
}
