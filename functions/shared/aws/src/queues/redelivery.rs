//! A record that failed: when it comes again, and when it is given up (rule 47).

use domain::backoff::{Backoff, BackoffPolicy};
use domain::batch::Cause;
use domain::message::Receipt;
use domain::ports::PortError;
use domain::trace;

use super::{Message, Sqs};
use crate::scope::Scope;

/// The deliveries after which a record is given up that cannot be read. Together they take some 20 minutes.
const UNREADABLE_RECEIVES_MAX: u32 = 50;
/// The same for a record that fails for another reason that lasts: some 5 hours. A request may be parked 500 times before.
const LASTING_RECEIVES_MAX: u32 = 550;
/// Up to 127 s, so that the deliveries that the template allows last for 7 hours at least.
const BACKOFF: BackoffPolicy = BackoffPolicy { slot_time_ms: 1_000, ceiling: 7, stay_at_ceiling: true };

const HIDE: &str = "queues.hide";
const GIVE_UP: &str = "queues.give_up";

/// A record that failed.
pub(crate) struct FailedRecord<'a> {
    pub(crate) receipt: Receipt,
    pub(crate) receive_count: u32,
    pub(crate) body: &'a str,
    pub(crate) cause: Cause,
}

/// What decides about a record that failed.
pub(crate) trait Redelivers {
    /// Gives a failed record up, or says when it comes again. Returns whether it must come again.
    fn redeliver(&self, record: FailedRecord<'_>) -> impl Future<Output = bool>;
}

/// A failed record stays hidden for as long as its queue says.
pub(crate) struct AsTheQueueSays;

impl Redelivers for AsTheQueueSays {
    async fn redeliver(&self, _: FailedRecord<'_>) -> bool {
        true
    }
}

impl Redelivers for Sqs {
    /// If SQS is not reached, the record comes again after its queue's visibility timeout.
    async fn redeliver(&self, record: FailedRecord<'_>) -> bool {
        let FailedRecord { receipt, receive_count, body, cause } = record;
        let message_id = &*receipt.message_id;
        let receives_max = match cause {
            Cause::Returned => return true,
            Cause::Passing => u32::MAX,
            Cause::Lasting => LASTING_RECEIVES_MAX,
            Cause::Unreadable => UNREADABLE_RECEIVES_MAX,
        };
        if receive_count >= receives_max {
            match self.give_up(body).await {
                Ok(true) => {
                    tracing::error!(
                        monotonic_counter.records_given_up = 1,
                        message_id,
                        receive_count,
                        "given up: a copy is on the dead-letter queue"
                    );
                    return false;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(message_id, "not given up, to be tried again: {error}"),
            }
        }
        let wait = Backoff::at_retry(BACKOFF, receive_count, self.random.next());
        if let Err(error) = self.hide(HIDE, &receipt, wait.wait_time_ms).await {
            tracing::warn!(message_id, "it comes again after its queue's visibility timeout: {error}");
        }
        true
    }
}

impl Sqs {
    /// Puts a copy on the dead-letter queue. Returns whether the function has one.
    async fn give_up(&self, body: &str) -> Result<bool, PortError> {
        let Some(url) = &self.urls.dead_letters else { return Ok(false) };
        let copy = Message::copy_of(body).traced(Scope::current().trace_header).from(trace::current());
        self.sender.send(url, copy).await.map_err(|error| PortError { operation: GIVE_UP, ..error })?;
        Ok(true)
    }
}
