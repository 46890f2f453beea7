//! One request and its retries, until the outcome of each entry is known.

use domain::ports::PortError;

use super::{Carrier, SendOutcome, Waiting};
use crate::environment::{Random, sleep};

/// The maximum number of requests for one batch: the first one, and the retries for entries that were not taken.
const ROUNDS_MAX: u32 = 4;
/// The longest first back-off before a retry, in milliseconds. It doubles each time, with jitter.
const WAIT_MS: u64 = 50;

/// Sends a batch, retries the entries that were not taken, and reports to each sender the outcome of its entry.
pub(super) async fn deliver<C: Carrier>(carrier: &C, random: &Random, target: &str, mut batch: Vec<Waiting<C::Entry>>) {
    for round in 1.. {
        let entries: Vec<&C::Entry> = batch.iter().map(|waiting| &waiting.entry).collect();
        let mut outcomes = match carrier.carry(target, &entries).await {
            Ok(outcomes) => outcomes.into_iter(),
            Err(error) => {
                batch.into_iter().for_each(|waiting| waiting.tell(Err(same(&error))));
                return;
            }
        };
        let mut left = Vec::new();
        for waiting in batch {
            match outcomes.next().unwrap_or_else(|| SendOutcome::NotNow("the answer does not mention it".to_owned())) {
                SendOutcome::Taken => waiting.tell(Ok(())),
                SendOutcome::Refused(problem) => waiting.tell(Err(PortError::refused(C::OPERATION, problem))),
                SendOutcome::NotNow(_) if round < ROUNDS_MAX => left.push(waiting),
                SendOutcome::NotNow(problem) => waiting.tell(Err(PortError::unavailable(C::OPERATION, problem))),
            }
        }
        if left.is_empty() {
            return;
        }
        tracing::debug!(entries = left.len(), round, "{}: sent again", C::OPERATION);
        batch = left;
        sleep(random.next() % (WAIT_MS << (round - 1)) + 1).await;
    }
}

impl<E> Waiting<E> {
    fn tell(self, outcome: Result<(), PortError>) {
        // A sender may have timed out in the meantime. Its message is then delivered again.
        let _ = self.teller.send(outcome);
    }
}

/// A copy of the error for another entry of the same request.
fn same(error: &PortError) -> PortError {
    let source = error.source.as_ref().map(|source| source.to_string().into());
    PortError { operation: error.operation, kind: error.kind, source }
}
