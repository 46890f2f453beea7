//! A batch of messages: its records are handled concurrently, and each fails alone, or with its group.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tracing::{Instrument, Span};

use crate::delivery::{Delivery, Receipt};
use crate::trace;

pub use crate::delivery::Record;

/// How the handling of a record ended, unless it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// Its work is done.
    Done,
    /// It went back to its queue on purpose and will be delivered again.
    Later,
}

/// The records of a batch that must be delivered again. All others may be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures(pub Vec<Failure>);

impl Failures {
    /// Whether this record must be delivered again.
    #[must_use]
    pub fn has(&self, receipt: &Receipt) -> bool {
        self.0.iter().any(|failure| failure.receipt == *receipt)
    }

    /// Why the message with this id must be delivered again.
    #[must_use]
    pub fn of(&self, message_id: &str) -> Option<Cause> {
        self.0.iter().find(|failure| *failure.receipt.message_id == *message_id).map(|failure| failure.cause)
    }
}

/// A record that must be delivered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// For its queue.
    pub receipt: Receipt,
    /// Why it must come again.
    pub cause: Cause,
}

impl Failure {
    /// A failure that lasts.
    #[must_use]
    pub const fn lasting(receipt: Receipt) -> Self {
        Self { receipt, cause: Cause::Lasting }
    }
}

/// Why a record must be delivered again (rule 47).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its handler gave it back, and told the queue when it comes again.
    Returned,
    /// Store or queue did not answer in time, or others were in the way. It may pass by itself.
    Passing,
    /// The program or the deployment is wrong. It stays until somebody mends it.
    Lasting,
    /// The message itself is wrong: its body cannot be read.
    Unreadable,
}

/// An error of which the cause is known.
pub trait HasCause {
    /// Whether it may pass by itself.
    fn may_pass(&self) -> bool;
}

/// Handles the records of a batch concurrently. A record is reported as failed if its body is no message, or if its
/// handling fails or panics. Its neighbours are unaffected. The work on a record runs in the span that `span` makes
/// for it.
pub async fn each<M, Handle, Handling, Error>(
    batch: Vec<Delivery<M>>,
    span: impl Fn(&Record<M>) -> Span,
    handle: Handle,
) -> Failures
where
    Handle: Fn(Record<M>) -> Handling,
    Handling: Future<Output = Result<Handled, Error>>,
    Error: fmt::Display + HasCause,
{
    let one = |mut records: Vec<Record<M>>| {
        let record = records.pop().expect("a group has a record");
        handle(record)
    };
    each_group(batch, |_| None::<()>, span, one).await
}

/// The same where the records of a group are handled together, and fail together. The work runs in the span of the first.
pub async fn each_group<M, Group: Eq, Handle, Handling, Error>(
    batch: Vec<Delivery<M>>,
    group: impl Fn(&Record<M>) -> Option<Group>,
    span: impl Fn(&Record<M>) -> Span,
    handle: Handle,
) -> Failures
where
    Handle: Fn(Vec<Record<M>>) -> Handling,
    Handling: Future<Output = Result<Handled, Error>>,
    Error: fmt::Display + HasCause,
{
    let (mut failures, mut groups) = (Vec::new(), Vec::<(Option<Group>, Vec<Record<M>>)>::with_capacity(batch.len()));
    for delivery in batch {
        match delivery.record() {
            Ok(record) => {
                let group = group(&record);
                match groups.iter_mut().find(|(other, _)| group.is_some() && *other == group) {
                    Some((_, records)) => records.push(record),
                    None => groups.push((group, vec![record])),
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    let (span, handle) = (&span, &handle);
    let handling = groups.into_iter().map(|(_, records)| async move {
        let span = span(&records[0]);
        let receipts: Vec<_> = records.iter().map(|record| (record.receipt.clone(), record.receive_count)).collect();
        // Boxed, since the compiler gives up on the layout of a future that is nested too deep.
        let handling = AssertUnwindSafe(Box::pin(async { handle(records).await })).catch_unwind();
        let cause = async { cause(handling.await, &receipts) }.instrument(span).await;
        let receipts = receipts.into_iter().map(|(receipt, _)| receipt);
        cause.map(|cause| receipts.map(|receipt| Failure { receipt, cause }).collect::<Vec<_>>()).unwrap_or_default()
    });
    failures.extend(join_all(handling).await.into_iter().flatten());
    Failures(failures)
}

impl<M> Delivery<M> {
    /// The record in it, if its body is a message.
    fn record(self) -> Result<Record<M>, Failure> {
        let redelivered = self.is_redelivery();
        let Self { receipt, receive_count, parent, body } = self;
        match body {
            Ok(message) => Ok(Record { message, receipt, redelivered, receive_count, parent }),
            Err(undecodable) => {
                let message_id = &*receipt.message_id;
                tracing::error!(monotonic_counter.records_undecodable = 1, message_id, receive_count, "{undecodable}");
                Err(Failure { receipt, cause: Cause::Unreadable })
            }
        }
    }
}

/// Why records must be delivered again; `None` if they need not be. Logs an error and a panic.
fn cause<Error: fmt::Display + HasCause>(
    ended: std::thread::Result<Result<Handled, Error>>,
    receipts: &[(Receipt, u32)],
) -> Option<Cause> {
    let (message_id, receive_count, records) = match receipts.first() {
        Some((receipt, receive_count)) => (&*receipt.message_id, *receive_count, receipts.len() as u64),
        None => ("", 0, 0),
    };
    match ended {
        Ok(Ok(Handled::Done)) => None,
        Ok(Ok(Handled::Later)) => Some(Cause::Returned),
        Ok(Err(error)) => {
            trace::failed(&error);
            tracing::warn!(
                monotonic_counter.records_failed = records,
                message_id,
                receive_count,
                "record not done: {error}"
            );
            Some(if error.may_pass() { Cause::Passing } else { Cause::Lasting })
        }
        Err(_) => {
            trace::failed(&"the handler panicked");
            tracing::error!(
                monotonic_counter.records_panicked = records,
                message_id,
                receive_count,
                "the handler panicked on this record"
            );
            Some(Cause::Lasting)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Undecodable;

    impl HasCause for &str {
        fn may_pass(&self) -> bool {
            self.starts_with("not now")
        }
    }

    fn delivery(name: &str, body: Result<u32, Undecodable>) -> Delivery<u32> {
        Delivery {
            receipt: Receipt { message_id: name.into(), handle: name.into() },
            receive_count: 1,
            parent: None,
            body,
        }
    }

    #[test]
    fn rule_47_only_the_failed_and_the_returned_records_of_a_batch_are_delivered_again_each_with_its_cause() {
        let poison = Undecodable { problem: "poison".into() };
        let batch = vec![
            delivery("a", Ok(1)),
            delivery("b", Err(poison)),
            delivery("c", Ok(2)),
            delivery("d", Ok(3)),
            delivery("e", Ok(4)),
            delivery("f", Ok(5)),
        ];
        let handling = each(
            batch,
            |_| Span::none(),
            |record| async move {
                assert_ne!(record.message, 3, "this record panics");
                match record.message {
                    1 => Ok(Handled::Later),
                    2 => Err("this record fails"),
                    5 => Err("not now"),
                    _ => Ok(Handled::Done),
                }
            },
        );
        let Failures(failed) = handling.now_or_never().unwrap();
        let causes: Vec<_> = failed.iter().map(|failure| (&*failure.receipt.message_id, failure.cause)).collect();
        let (returned, passing, lasting) = (Cause::Returned, Cause::Passing, Cause::Lasting);
        assert_eq!(causes, [("b", Cause::Unreadable), ("a", returned), ("c", lasting), ("d", lasting), ("f", passing)]);
    }

    #[test]
    fn rule_2_records_of_a_group_are_handled_together_and_fail_together() {
        let batch = vec![
            delivery("a", Ok(1)),
            delivery("b", Ok(11)),
            delivery("c", Ok(20)),
            delivery("d", Ok(12)),
            delivery("e", Ok(30)),
            delivery("f", Ok(30)),
        ];
        // 30 is of no group.
        let group = |record: &Record<u32>| (record.message < 30).then_some(record.message / 10);
        let seen = std::cell::RefCell::new(Vec::new());
        let handling = each_group(
            batch,
            group,
            |_| Span::none(),
            |records| {
                let messages: Vec<u32> = records.iter().map(|record| record.message).collect();
                let fails = messages.contains(&12);
                seen.borrow_mut().push(messages);
                async move { if fails { Err("not now") } else { Ok(Handled::Done) } }
            },
        );
        let failures = handling.now_or_never().unwrap();
        let causes: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| failures.of(name)).into();
        let passing = Some(Cause::Passing);
        assert_eq!(causes, [None, passing, None, passing, None]);
        assert_eq!(seen.into_inner(), [vec![1], vec![11, 12], vec![20], vec![30], vec![30]]);
    }

    #[test]
    fn a_record_knows_whether_it_came_before() {
        for (receive_count, expected) in [(1, false), (2, true), (7, true)] {
            let batch = vec![Delivery { receive_count, ..delivery("a", Ok(1)) }];
            assert_eq!(batch[0].is_redelivery(), expected);
            let handling = each(
                batch,
                |_| Span::none(),
                |record| async move {
                    assert_eq!((record.redelivered, record.receive_count), (expected, receive_count));
                    Ok::<_, &str>(Handled::Done)
                },
            );
            assert_eq!(handling.now_or_never().unwrap(), Failures::default());
        }
    }
}
