//! Runs a work while holding a named lease, so that one of many instances does it (rule 13).
//!
//! A lease is a promise with an end. Its holder renews it at every third of its term. It trusts the lease until the
//! start of its last successful renewal, plus the term, minus a margin. The time of the answer on the network does not
//! count. Any failed renewal (a refusal, an error, silence) cancels the work at once, at its present await. The lease
//! is released however the work ended, unless another instance took it. Its term ends it if the holder is dead or the
//! release fails.
//!
//! What must never happen here: the work goes on without the lease. What must not be assumed: that two instances never
//! hold it at once. Clocks differ, and a holder may be frozen between two looks at its clock. A lease only saves work.

mod record;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{Either, select};

use crate::ports::{Commit, Environment, HasEnvironment, HasRecords, PortError, Records, Seen, change, replace};
use crate::time::Timestamp;

pub use record::{Lease, acquired, released, renewed, reported};

/// The ports that hold a lease.
pub trait LeasePorts: HasRecords + HasEnvironment {}

impl<P: HasRecords + HasEnvironment> LeasePorts for P {}

/// The duration of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// How long it lasts without a renewal. The work of a dead holder stands still for this long.
    pub term_ms: u64,
    /// How much earlier its holder stops to trust it: the largest difference between the clocks of two holders.
    pub margin_ms: u64,
}

/// How holding a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held<T> {
    /// Another instance holds it, or no answer came in time; the work was not begun.
    NotAcquired,
    /// The work is done, with this result.
    Done(T),
    /// The work was cancelled, because the lease was no longer safely held.
    Lost(Loss),
}

/// Why a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// Another instance took it.
    #[error("another instance took the lease")]
    Taken,
    /// The result of the renewal is not known.
    #[error("the lease could not be renewed")]
    NotRenewed,
    /// The answer to a renewal, or the next look at the clock, came too late.
    #[error("the lease was not renewed in time")]
    TooLate,
}

/// Does `work` while holding the lease `name` as `owner`, and renews it in the background. `health` describes the
/// holder. It is stored at each renewal, and with the release unless it is empty.
///
/// `work` is not polled before the lease is held, and is dropped as soon as the lease is lost. If it panics, the lease
/// is released and the panic goes on.
///
/// # Errors
/// [`PortError`] if the store fails; the work was not begun.
pub async fn hold<T>(
    ports: &impl LeasePorts,
    name: &str,
    owner: &str,
    term: Term,
    health: impl Fn() -> String,
    work: impl Future<Output = T>,
) -> Result<Held<T>, PortError> {
    let asked_at = ports.environment().now();
    let trust_ms = term.term_ms.saturating_sub(term.margin_ms);
    let next = |stored: Option<&Lease>| acquired(stored, name, owner, asked_at, term.term_ms);
    let acquiring = pin!(change(ports.records(), name, asked_at, next));
    let lease = match select(acquiring, pin!(ports.environment().sleep(trust_ms))).await {
        Either::Left((acquired, _)) => acquired?,
        // If it was acquired all the same, its term ends it.
        Either::Right(((), _)) => None,
    };
    let Some(lease) = lease else {
        return Ok(Held::NotAcquired);
    };
    let trust = Trust::new(asked_at, term);
    let ended = work_while_trusted(ports, &lease, term, &trust, &health, work).await;
    // The work is dropped by now, so it cannot disturb the next holder.
    if !matches!(ended, Ended::Lost(Loss::Taken)) {
        give_back(ports, &lease, term, &health()).await;
    }
    match ended {
        Ended::Done(value) => Ok(Held::Done(value)),
        Ended::Lost(loss) => {
            tracing::warn!(lease = name, epoch = lease.epoch, "work cancelled: {loss}");
            Ok(Held::Lost(loss))
        }
        Ended::Panicked(panic) => resume_unwind(panic),
    }
}

/// How the work under a lease ended.
enum Ended<T> {
    Done(T),
    Lost(Loss),
    Panicked(Box<dyn Any + Send>),
}

/// The end of the time for which the holder trusts its lease.
struct Trust(AtomicI64);

impl Trust {
    fn new(asked_at: Timestamp, term: Term) -> Self {
        let trust = Self(AtomicI64::new(0));
        trust.extend(asked_at, term);
        trust
    }

    fn extend(&self, asked_at: Timestamp, term: Term) {
        let until = asked_at.plus_ms(term.term_ms).minus_ms(term.margin_ms);
        self.0.store(until.epoch_ms(), Ordering::Relaxed);
    }

    fn until(&self) -> Timestamp {
        Timestamp::from_epoch_ms(self.0.load(Ordering::Relaxed))
    }
}

/// Polls the work as long as the lease is safely held.
async fn work_while_trusted<T>(
    ports: &impl LeasePorts,
    lease: &Lease,
    term: Term,
    trust: &Trust,
    health: &impl Fn() -> String,
    work: impl Future<Output = T>,
) -> Ended<T> {
    let mut keeping = pin!(keep(ports, lease, term, trust, health));
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    poll_fn(|context| {
        if let Poll::Ready(loss) = keeping.as_mut().poll(context) {
            return Poll::Ready(Ended::Lost(loss));
        }
        // A frozen instance may wake with the work ready before its timers. So each poll asks the clock.
        if ports.environment().now() >= trust.until() {
            return Poll::Ready(Ended::Lost(Loss::TooLate));
        }
        work.as_mut().poll(context).map(|ended| ended.map_or_else(Ended::Panicked, Ended::Done))
    })
    .await
}

/// Renews the lease at every third of its term, until a renewal does not succeed in time.
async fn keep(ports: &impl LeasePorts, lease: &Lease, term: Term, trust: &Trust, health: &impl Fn() -> String) -> Loss {
    let mut lease = lease.clone();
    loop {
        ports.environment().sleep(term.term_ms / 3).await;
        let asked_at = ports.environment().now();
        let note = health();
        let answer = {
            let renewing = pin!(renew(ports, &lease, asked_at, term, &note));
            let running_out = pin!(ports.environment().sleep(asked_at.ms_until(trust.until())));
            match select(renewing, running_out).await {
                Either::Left((answer, _)) if ports.environment().now() < trust.until() => answer,
                Either::Left(_) | Either::Right(_) => return Loss::TooLate,
            }
        };
        match answer {
            Ok(Some(renewed)) => {
                trust.extend(asked_at, term);
                lease = renewed;
            }
            Ok(None) => return Loss::Taken,
            Err(error) => {
                tracing::warn!(lease = &*lease.name, "lease not renewed: {error}");
                return Loss::NotRenewed;
            }
        }
    }
}

/// Renews the lease. `None`: it is lost. Another instance has it if its version is not the last one of this holder.
async fn renew(
    ports: &impl LeasePorts,
    lease: &Lease,
    now: Timestamp,
    term: Term,
    health: &str,
) -> Result<Option<Lease>, PortError> {
    let Some(renewed) = renewed(lease, now, term.term_ms, health) else { return Ok(None) };
    let commit = ports.records().put(Seen::version(lease.version, now), &renewed).await?;
    Ok((commit == Commit::Committed).then_some(renewed))
}

/// Releases the lease, with the last health. That may not take longer than the lease would last.
async fn give_back(ports: &impl LeasePorts, lease: &Lease, term: Term, health: &str) {
    let giving = pin!(release(ports, lease, health));
    match select(giving, pin!(ports.environment().sleep(term.term_ms))).await {
        Either::Left((Ok(()), _)) => {}
        Either::Left((Err(error), _)) => tracing::warn!(lease = &*lease.name, "lease not released: {error}"),
        Either::Right(((), _)) => tracing::warn!(lease = &*lease.name, "lease not released in time"),
    }
}

/// Releases the lease, if this holder still has it. A renewal without an answer may be written or not, or still be under
/// way: so the last version is read, and read again after a conflict.
async fn release(ports: &impl LeasePorts, lease: &Lease, health: &str) -> Result<(), PortError> {
    let (records, now) = (ports.records(), ports.environment().now());
    let Some(stored) = records.get::<Lease>(&lease.name).await? else { return Ok(()) };
    replace(records, stored, now, |stored| released(stored, lease, now, health)).await
}

/// Writes down that `owner` has done the work `name` now, and its health: the record of a lease that is free. It keeps no
/// one out. Of two reports at the same time one is written.
///
/// # Errors
/// [`PortError`] if that is not known to have happened.
pub async fn report(ports: &impl LeasePorts, name: &str, owner: &str, health: &str) -> Result<(), PortError> {
    let now = ports.environment().now();
    change(ports.records(), name, now, |stored| Some(reported(stored, name, owner, now, health))).await.map(drop)
}
