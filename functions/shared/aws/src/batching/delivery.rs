//! One request and its repeats, until the fate of each entry is known.

use domain::ports::PortError;

use super::{Carrier, SendOutcome, Waiting};
use crate::environment::{Random, sleep};

/// Requests for one batch: the first, and those for entries that were not taken at first.
const ROUNDS_MAX: u32 = 4;
/// The longest first wait before a repeat, in milliseconds; it doubles, and a random part of it is waited.
const WAIT_MS: u64 = 50;

/// Sends a batch, sends again those of its entries that were not taken, and tells everybody their entry's fate.
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
        // Whoever has gone away in the meantime, because its time is up, is delivered its message again.
        let _ = self.teller.send(outcome);
    }
}

/// The same error once more, for another entry of the same request.
fn same(error: &PortError) -> PortError {
    let source = error.source.as_ref().map(|source| source.to_string().into());
    PortError { operation: error.operation, kind: error.kind, source }
}
