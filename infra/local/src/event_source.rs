//! The event-source loop: the local counterpart of Lambda's event source mapping.
//!
//! It receives batches, gives each to the handler, and deletes the messages that the handler did not report as failed. A
//! failed message stays hidden for the visibility time-out and is redelivered; the queue decides about that. A handler
//! must never end the loop. The loop never has more batches in flight than its limit.
//!
//! At a stop, most queues keep their messages. The scheduler's queue is worked off first: it has the replies of calls that
//! were made (rule 25).

use std::future::Future;
use std::sync::Arc;

use domain::batch::Failures;
use domain::limits::BATCH_MAX;
use domain::message::{Delivery, Receipt};
use domain::ports::Source;
use futures_util::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::{pin, select};

use crate::host_time::within;
use crate::stop::Stop;

/// The settings of one queue.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    /// The queue's name, for the log.
    pub queue: &'static str,
    /// The most batches in flight.
    pub batches_max: usize,
    /// The grace of handlers in flight after a stop, in milliseconds. Messages of a cancelled handler are redelivered.
    pub grace_ms: u64,
    /// Whether it goes on after a stop until no message is visible or in flight. The grace bounds that.
    pub until_empty: bool,
}

/// Feeds the handler from the source until `stop`, then waits for the batches in flight.
pub async fn run<M, S, Handle, Handling>(drain: Drain, source: S, handle: Handle, stop: Stop)
where
    M: Send + 'static,
    S: Source<M> + 'static,
    Handle: Fn(Vec<Delivery<M>>) -> Handling,
    Handling: Future<Output = Failures> + Send + 'static,
{
    let source = Arc::new(source);
    let permits = Arc::new(Semaphore::new(drain.batches_max));
    let mut under_way = JoinSet::new();
    let begin = |under_way: &mut JoinSet<()>, batch: Vec<Delivery<M>>, permit: OwnedSemaphorePermit| {
        let receipts: Vec<Receipt> = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
        let (handling, source) = (handle(batch), source.clone());
        under_way.spawn(async move {
            let failures = handling.await;
            delete_done(drain.queue, &*source, receipts, &failures).await;
            drop(permit);
        });
    };
    let stopped = stop.requested();
    pin!(stopped);
    loop {
        // The permit comes first: a message without a free handler stays visible.
        let permit = select! {
            biased;
            () = &mut stopped => break,
            permit = free(&permits) => permit,
        };
        let batch = select! {
            biased;
            () = &mut stopped => break,
            batch = source.receive(BATCH_MAX) => batch,
        };
        while let Some(ended) = under_way.try_join_next() {
            report(drain.queue, ended);
        }
        if batch.is_empty() {
            // A source may return an empty batch; yield before the next receive.
            tokio::task::yield_now().await;
            continue;
        }
        begin(&mut under_way, batch, permit);
    }
    let rest = async {
        if drain.until_empty {
            loop {
                let permit = free(&permits).await;
                match source.receive(BATCH_MAX).now_or_never() {
                    Some(batch) if !batch.is_empty() => begin(&mut under_way, batch, permit),
                    // A batch in flight may send further messages.
                    Some(_) | None => match under_way.join_next().await {
                        Some(ended) => report(drain.queue, ended),
                        None => break,
                    },
                }
            }
        }
        while let Some(ended) = under_way.join_next().await {
            report(drain.queue, ended);
        }
    };
    if within(drain.grace_ms, rest).await.is_none() {
        let (queue, batches) = (drain.queue, under_way.len());
        tracing::info!(queue, batches, "cancelled at shutdown; their messages will be redelivered");
        under_way.shutdown().await;
    }
}

async fn free(permits: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    permits.clone().acquire_owned().await.expect("the semaphore is never closed")
}

/// Deletes the receipts of a batch that are not among its failures.
async fn delete_done<M>(queue: &str, source: &impl Source<M>, receipts: Vec<Receipt>, failures: &Failures) {
    let done: Vec<Receipt> = match failures.0.as_slice() {
        [] => receipts,
        _ => receipts.into_iter().filter(|receipt| !failures.has(receipt)).collect(),
    };
    if done.is_empty() {
        return;
    }
    if let Err(error) = source.delete(done).await {
        // Handling a message twice is harmless (rule 2).
        tracing::warn!(queue, "handled messages were not deleted and will be redelivered: {error}");
    }
}

fn report(queue: &str, ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(queue, "the handler panicked on a batch; its messages will be redelivered");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use domain::batch::Failure;
    use domain::ports::PortError;
    use tokio::sync::{Notify, mpsc};

    use super::*;
    use crate::stop;

    const DRAIN: Drain = Drain { queue: "test", batches_max: 2, grace_ms: 60_000, until_empty: false };

    /// A queue of prepared batches; a channel reports the deleted receipts.
    struct Fake {
        batches: Mutex<VecDeque<Vec<u32>>>,
        deleted: mpsc::UnboundedSender<Vec<u32>>,
    }

    impl Fake {
        fn new(batches: &[&[u32]]) -> (Self, mpsc::UnboundedReceiver<Vec<u32>>) {
            let (deleted, out) = mpsc::unbounded_channel();
            (Self { batches: Mutex::new(batches.iter().map(|batch| batch.to_vec()).collect()), deleted }, out)
        }
    }

    impl Source<u32> for Fake {
        async fn receive(&self, limit: usize) -> Vec<Delivery<u32>> {
            assert_eq!(limit, BATCH_MAX);
            let next = self.batches.lock().unwrap().pop_front();
            match next {
                Some(batch) => batch.into_iter().map(delivery).collect(),
                None => std::future::pending().await,
            }
        }

        async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
            let numbers = receipts.iter().map(|receipt| receipt.handle.parse().unwrap()).collect();
            self.deleted.send(numbers).map_err(|error| PortError::unavailable("test.delete", error.to_string()))
        }
    }

    fn receipt(number: u32) -> Receipt {
        Receipt { message_id: number.to_string().into(), handle: number.to_string().into() }
    }

    fn delivery(number: u32) -> Delivery<u32> {
        Delivery { receipt: receipt(number), receive_count: 1, parent: None, body: Ok(number) }
    }

    #[tokio::test]
    async fn what_failed_is_left_to_come_again_and_its_neighbours_are_deleted() {
        let (source, mut deleted) = Fake::new(&[&[1, 2, 3], &[4], &[5, 6]]);
        let (stopper, stop) = stop::pair();
        let handle = |batch: Vec<Delivery<u32>>| async move {
            let even = batch.into_iter().map(|delivery| delivery.receipt);
            let even = even.filter(|receipt| receipt.handle.parse::<u32>().unwrap() % 2 == 0);
            Failures(even.map(Failure::lasting).collect())
        };
        let looping = tokio::spawn(run(DRAIN, source, handle, stop));
        assert_eq!(deleted.recv().await.unwrap(), [1, 3]);
        assert_eq!(deleted.recv().await.unwrap(), [5], "no message of a wholly failed batch is deleted");
        stopper.stop();
        looping.await.unwrap();
        assert!(deleted.recv().await.is_none());
    }

    #[tokio::test]
    async fn no_more_batches_are_in_flight_than_allowed() {
        let (source, mut deleted) = Fake::new(&[&[1], &[2], &[3], &[4], &[5], &[6]]);
        let (stopper, stop) = stop::pair();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (gate, (started, mut starts)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
        let handle = {
            let (now, most, gate) = (now.clone(), most.clone(), gate.clone());
            move |_| {
                let (now, most, gate, started) = (now.clone(), most.clone(), gate.clone(), started.clone());
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    started.send(()).unwrap();
                    gate.notified().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    Failures::default()
                }
            }
        };
        let looping = tokio::spawn(run(DRAIN, source, handle, stop));
        starts.recv().await.unwrap();
        starts.recv().await.unwrap();
        for _ in 0..6 {
            gate.notify_one();
            deleted.recv().await.unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), DRAIN.batches_max, "two at once, and never three");
        stopper.stop();
        looping.await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_loses_its_batch_only_and_the_loop_goes_on() {
        let (source, mut deleted) = Fake::new(&[&[13], &[1], &[13], &[13], &[2]]);
        let (stopper, stop) = stop::pair();
        let handle = |batch: Vec<Delivery<u32>>| async move {
            assert_ne!(batch[0].body, Ok(13), "this panic is part of the test");
            Failures::default()
        };
        let looping = tokio::spawn(run(DRAIN, source, handle, stop));
        assert_eq!(deleted.recv().await.unwrap(), [1]);
        assert_eq!(deleted.recv().await.unwrap(), [2]);
        stopper.stop();
        looping.await.unwrap();
        assert!(deleted.recv().await.is_none(), "a message whose handler panicked is not deleted");
    }

    #[tokio::test]
    async fn a_stop_lets_the_batch_under_way_finish() {
        let (source, mut deleted) = Fake::new(&[&[1]]);
        let (stopper, stop) = stop::pair();
        let (gate, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handle = {
            let (gate, begun) = (gate.clone(), begun.clone());
            move |_| {
                let (gate, begun) = (gate.clone(), begun.clone());
                async move {
                    begun.notify_one();
                    gate.notified().await;
                    Failures::default()
                }
            }
        };
        let looping = tokio::spawn(run(DRAIN, source, handle, stop));
        begun.notified().await;
        stopper.stop();
        gate.notify_one();
        looping.await.unwrap();
        assert_eq!(deleted.recv().await.unwrap(), [1]);
    }

    #[tokio::test]
    async fn a_queue_that_is_worked_off_is_empty_after_a_stop() {
        let (source, mut deleted) = Fake::new(&[&[1], &[2], &[3]]);
        let (stopper, stop) = stop::pair();
        stopper.stop();
        let handle = |_| async { Failures::default() };
        run(Drain { batches_max: 1, until_empty: true, ..DRAIN }, source, handle, stop).await;
        for number in 1..=3 {
            assert_eq!(deleted.recv().await.unwrap(), [number]);
        }
    }

    #[tokio::test]
    async fn a_batch_that_takes_longer_than_the_grace_is_cut_off_undeleted() {
        let (source, mut deleted) = Fake::new(&[&[1]]);
        let (stopper, stop) = stop::pair();
        let begun = Arc::new(Notify::new());
        let handle = {
            let begun = begun.clone();
            move |_| {
                let begun = begun.clone();
                async move {
                    begun.notify_one();
                    std::future::pending::<Failures>().await
                }
            }
        };
        let looping = tokio::spawn(run(Drain { grace_ms: 1, ..DRAIN }, source, handle, stop));
        begun.notified().await;
        stopper.stop();
        looping.await.unwrap();
        assert!(deleted.recv().await.is_none());
    }
}
