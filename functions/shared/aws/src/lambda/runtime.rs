//! Takes invocations from the platform, one after the other, until the process must end.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use domain::ports::{PortError, PortErrorKind};
use lambda_runtime::tower::Layer;
use lambda_runtime::{Diagnostic, Error, LambdaEvent, LambdaInvocation, Runtime, Service, service_fn};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::Instrument;

use super::invocation::Invocation;
use crate::environment::now;
use crate::telemetry;

/// Answers invocations with `handle` until SIGTERM. Then it answers the invocation in flight and takes no other.
///
/// The platform sends SIGTERM only to functions with an extension, and only between invocations. There is nothing to
/// save at that point, so we bring no extension for it.
///
/// # Errors
/// Fails if the platform cannot be reached. An error of `handle` fails only its own invocation.
pub async fn serve<Handle, Handling, Answer>(handle: Handle) -> Result<(), Error>
where
    Handle: Fn(Box<RawValue>, Invocation) -> Handling,
    Handling: Future<Output = Result<Answer, Error>>,
    Answer: Serialize,
{
    let handle = &handle;
    let service = service_fn(move |LambdaEvent { payload, context }: LambdaEvent<Box<RawValue>>| {
        let invocation = Invocation::of(&context, now());
        let span = tracing::info_span!("invocation", request_id = &*context.request_id);
        async move {
            let _flush = Flush;
            let invocation = invocation.map_err(|error| {
                tracing::error!(monotonic_counter.clocks_wrong = 1, "{error}");
                told(&error.into())
            })?;
            let answer = handle(payload, invocation.clone()).await;
            telemetry::send_traces(invocation.rest_ms()).await;
            answer.map_err(|error| {
                tracing::error!("the invocation failed: {error}");
                told(&error)
            })
        }
        .instrument(span)
    });
    let (busy, mut busy_now) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut running = pin!(Runtime::new(service).layer(Watch(Arc::new(busy))).run());
    select! {
        ended = &mut running => return ended,
        _ = terminate.recv() => tracing::debug!("told to end"),
    }
    select! {
        ended = &mut running => ended,
        _ = busy_now.wait_for(|busy| !busy) => Ok(()),
    }
}

/// A failure as the platform shows it. Its own name for the type would be that of a Rust type.
fn told(error: &Error) -> Diagnostic {
    let error_type = match error.downcast_ref::<PortError>().map(|error| error.kind) {
        Some(PortErrorKind::Unavailable) => "Unavailable",
        Some(PortErrorKind::Refused) => "Refused",
        None => "Failed",
    };
    Diagnostic { error_type: error_type.to_owned(), error_message: error.to_string() }
}

/// Writes the metrics at every end of an invocation, because the process may be frozen after its answer.
struct Flush;

impl Drop for Flush {
    fn drop(&mut self) {
        telemetry::flush();
    }
}

/// Tracks whether an invocation is in flight, until the platform has its answer.
struct Watch(Arc<watch::Sender<bool>>);

/// A service with a tracked in-flight state.
struct Watched<S> {
    inner: S,
    busy: Arc<watch::Sender<bool>>,
}

impl<S> Layer<S> for Watch {
    type Service = Watched<S>;

    fn layer(&self, inner: S) -> Watched<S> {
        Watched { inner, busy: self.0.clone() }
    }
}

impl<S: Service<LambdaInvocation>> Service<LambdaInvocation> for Watched<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Busy<S::Future>;

    fn poll_ready(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, invocation: LambdaInvocation) -> Self::Future {
        self.busy.send_replace(true);
        Busy { answering: Box::pin(self.inner.call(invocation)), busy: self.busy.clone() }
    }
}

/// An invocation in flight, until the platform has its answer.
struct Busy<F> {
    answering: Pin<Box<F>>,
    busy: Arc<watch::Sender<bool>>,
}

impl<F: Future> Future for Busy<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<F::Output> {
        self.answering.as_mut().poll(context)
    }
}

impl<F> Drop for Busy<F> {
    fn drop(&mut self) {
        self.busy.send_replace(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_a_type_that_says_whether_a_retry_helps() {
        let told = |error: Error| told(&error).error_type;
        assert_eq!(told(PortError::unavailable("store.due", "throttled").into()), "Unavailable");
        assert_eq!(told(PortError::refused("store.due", "no such table").into()), "Refused");
        assert_eq!(told("it took too long".into()), "Failed");
    }
}
