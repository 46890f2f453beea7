//! Polls a task until it is settled.

use std::sync::Arc;
use std::time::Duration;

use domain::id::OrderId;
use domain::ports::PortError;
use domain::task::Task;
use tokio::time::Instant;

use super::Dynamo;
use super::read::Seeing;

const OPERATION: &str = "store.settled";
/// The first pause between two reads, in milliseconds. Each pause is half as long again as the one before.
const FIRST_PAUSE_MS: u64 = 25;
/// The longest pause, in milliseconds. A wait of 20 s needs about 45 reads of half a read unit each.
const LONGEST_PAUSE_MS: u64 = 500;

impl Dynamo {
    /// The task once it is settled, or its state after `wait_ms`.
    ///
    /// This code cannot see the submission queue. A wait for an order that is not stored therefore takes all of
    /// `wait_ms`, whether the order was accepted or not.
    #[expect(clippy::disallowed_methods, reason = "an adapter's own way to wait for a store that does not call back")]
    pub(super) async fn poll_settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Arc<Task>>, PortError> {
        let until = Instant::now() + Duration::from_millis(wait_ms);
        let mut pause = Duration::from_millis(FIRST_PAUSE_MS);
        while Instant::now() < until {
            let seen = self.read_task(OPERATION, order_id, Seeing::MostlyEverything).await?;
            if seen.as_ref().is_some_and(|task| task.process_state.is_settled()) {
                return Ok(seen);
            }
            tokio::time::sleep_until((Instant::now() + pause).min(until)).await;
            pause = (pause * 3 / 2).min(Duration::from_millis(LONGEST_PAUSE_MS));
        }
        self.read_task(OPERATION, order_id, Seeing::Everything).await
    }
}
