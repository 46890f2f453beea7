//! `stepwarden console`: serves the console on this machine, for any API. Every request of the page goes to the API with
//! the caller's credentials; the page itself comes from the API too.
//!
//! Never here: a way for other people to use these credentials. [`guard`] keeps other users of the machine and other pages
//! of the browser out.

mod browser;
mod forward;
mod guard;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use local::http_server::Server;
use local::serve::bind;
use local::signals::Signals;

use super::context::{Context, random};
use super::error::CommandError;
use crate::args::ConsoleArgs;
use crate::exit::Exit;
use crate::remote::Remote;
use guard::{Guard, Verdict};

/// The grace of requests in flight after a stop, in milliseconds.
const GRACE_MS: u64 = 500;

/// Serves until the process is told to stop.
pub(super) async fn run(context: Context, args: &ConsoleArgs) -> Result<Exit, CommandError> {
    let listener = bind(IpAddr::V4(Ipv4Addr::LOCALHOST), args.port).await.map_err(|error| not_started(&error))?;
    let mut signals = Signals::catch().map_err(|error| not_started(&error))?;
    let port = listener.local_addr().map_err(|error| not_started(&error))?.port();
    let guard = Arc::new(Guard::new(port, random()?));
    let url = guard.url();
    let where_to = context.remote.target().url("");
    context
        .line(&format!("stepwarden: the console for {where_to} is at {url}"))
        .map_err(|error| not_started(&error))?;
    context.note("anyone with this address can act in your name; Ctrl-C ends it");
    let remote = Arc::new(context.remote);
    let handle = move |request| {
        let (guard, remote) = (guard.clone(), remote.clone());
        async move { Ok(answer(&guard, &remote, request).await) }
    };
    let server = Server::start(listener, api::BODY_BYTES_MAX, GRACE_MS, handle).map_err(|error| not_started(&error))?;
    let waiting = async {
        // Kept to the end: a slow browser reads it late.
        let _file = if args.open { browser::open(&url).await } else { None };
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = signals.next() => {}
        () = waiting => {}
    }
    server.stop().await;
    Ok(Exit::Fine)
}

async fn answer(guard: &Guard, remote: &Remote, request: Request<Bytes>) -> Response<Bytes> {
    match guard.admit(&request) {
        Verdict::Admitted(path) => forward::forward(remote, path, request).await,
        Verdict::Answered(response) => response,
    }
}

/// Nothing was served.
fn not_started(error: &impl std::error::Error) -> CommandError {
    CommandError::usage(error.to_string())
}
