//! `stepwarden services accept-rejections`: the operator's word that the rejections of a service are right.

use wire::Service;

use super::context::{Context, body};
use super::error::CommandError;
use super::system::service_text;
use crate::args::AcceptRejectionsArgs;
use crate::exit::Exit;
use crate::remote::{Call, encoded};

pub(super) async fn run(context: &Context, args: &AcceptRejectionsArgs) -> Result<Exit, CommandError> {
    let command = context.command(&args.command)?;
    let path = format!("/services/{}/accept-rejections", encoded(&args.service));
    // Twice is once, so a repeat after a lost answer is safe.
    let answer = context.remote.call(&Call::post(path, body(&command))).await;
    let what = || format!("the rejections of {} were accepted", args.service);
    let answer = answer.map_err(|error| CommandError::of_change(error, what(), "stepwarden services"))?;
    context.show(&answer, |service: Service<'static>| service_text(&[service], context))
}
