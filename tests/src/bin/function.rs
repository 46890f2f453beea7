//! A function in a process of its own, for tests of what only a whole process does: Lambda's runtime, and stdout. Its
//! argument says which.

use std::future::pending;
use std::panic::catch_unwind;

use aws::lambda::{self, Payload};
use aws::telemetry;
use domain::batch::{self, Failure, Failures, Handled, Record};
use domain::message::{Delivery, SchedulerMessage};
use domain::ports::PortError;
use domain::trace;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("numbers") => serve(of_numbers).await,
        Some("traces") => {
            telemetry::start("scheduler");
            serve(of_wakes).await;
        }
        Some("panics") => panics(),
        other => panic!("give numbers, traces or panics, not {other:?}"),
    }
}

/// Runs a function whose failed records stay hidden for as long as its queue says.
async fn serve<M: DeserializeOwned, Handling: Future<Output = Failures>>(
    handle: impl Fn(Vec<Delivery<M>>) -> Handling,
) {
    let handle = &handle;
    let invoke = async |payload: Payload, invocation| lambda::batch(&payload, &invocation, None, handle).await;
    lambda::serve(invoke).await.expect("the platform is reached");
}

/// Handles one record as its number says.
async fn of_numbers(batch: Vec<Delivery<u32>>) -> Failures {
    let [delivery] = batch.as_slice() else { panic!("each record comes by itself") };
    match delivery.body {
        Err(_) => Failures(vec![Failure::lasting(delivery.receipt.clone())]),
        Ok(2) => panic!("this panic is part of the test"),
        Ok(4) => pending().await,
        Ok(5) => {
            let mut terminated = signal(SignalKind::terminate()).expect("signals");
            println!("\nbegun");
            terminated.recv().await;
            Failures::default()
        }
        Ok(_) => Failures::default(),
    }
}

/// Does nothing with each record but what makes its span.
async fn of_wakes(batch: Vec<Delivery<SchedulerMessage>>) -> Failures {
    let span = |record: &Record<SchedulerMessage>| trace::handled("scheduler", record.message.order_id(), record);
    batch::each(batch, span, async |_| Ok::<_, PortError>(Handled::Done)).await
}

/// Logs, counts and panics, as the `main` of a function.
fn panics() {
    telemetry::start("scheduler");
    telemetry::start("another");
    let _record = tracing::info_span!("record", message_id = "m-1").entered();
    tracing::debug!(monotonic_counter.begun = 1, "begun");
    assert!(catch_unwind(|| panic!("this text is in the source")).is_err());
    let card = std::env::args().nth(2).unwrap_or_default();
    assert!(catch_unwind(|| panic!("no such card: {card}")).is_err());
    telemetry::flush();
    telemetry::flush();
}
