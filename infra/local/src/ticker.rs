//! The schedule of the supervisor, in place of EventBridge.

#![expect(clippy::disallowed_methods, reason = "a schedule uses the host's clock, not the protocol's")]

use std::future::Future;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio::{pin, select};

use crate::stop::Stop;

/// The longest tick. What hangs is ended, and its leases are renewed no longer.
const TICK_MAX: Duration = Duration::from_secs(120);

/// Runs `tick` at once and then every `period` until `stop`. Ticks never overlap: a long tick delays the next one, and is
/// ended after two minutes. A panic ends its own tick only. At a stop, the running tick gets `grace_ms`.
pub async fn run<Tick, Ticking>(name: &'static str, period: Duration, grace_ms: u64, tick: Tick, stop: Stop)
where
    Tick: Fn() -> Ticking,
    Ticking: Future<Output = ()> + Send + 'static,
{
    let mut times = tokio::time::interval(period);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stopped = stop.requested();
    pin!(stopped);
    loop {
        select! {
            () = &mut stopped => return,
            _ = times.tick() => {}
        }
        let mut ticking = tokio::spawn(tokio::time::timeout(TICK_MAX, tick()));
        let ended = select! {
            ended = &mut ticking => ended,
            () = &mut stopped => {
                if tokio::time::timeout(Duration::from_millis(grace_ms), &mut ticking).await.is_err() {
                    ticking.abort();
                }
                return;
            }
        };
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(_)) => tracing::error!("{name} took too long and was ended; the next tick begins anew"),
            Err(_) => tracing::error!("{name} panicked; the next tick is not affected"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::mpsc;

    use super::*;
    use crate::stop;

    #[tokio::test(start_paused = true)]
    async fn a_slow_tick_delays_the_next_one_and_a_panic_ends_only_its_own() {
        let (stopper, stop) = stop::pair();
        let (began, mut begins) = mpsc::unbounded_channel();
        let (count, at_once) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let started = tokio::time::Instant::now();
        let tick = move || {
            let (began, number, at_once) = (began.clone(), count.fetch_add(1, Ordering::SeqCst), at_once.clone());
            async move {
                assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0, "two ticks at once");
                began.send(started.elapsed().as_millis()).unwrap();
                if number == 1 {
                    tokio::time::sleep(Duration::from_millis(2_500)).await;
                }
                at_once.fetch_sub(1, Ordering::SeqCst);
                assert_ne!(number, 2, "this panic is part of the test");
            }
        };
        let ticking = tokio::spawn(run("test", Duration::from_secs(1), 0, tick, stop));
        let mut times_ms = Vec::new();
        for _ in 0..4 {
            times_ms.push(begins.recv().await.unwrap());
        }
        assert_eq!(times_ms, [0, 1_000, 3_500, 4_500]);
        stopper.stop();
        ticking.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn rule_13_a_tick_that_hangs_is_ended_and_the_next_one_begins() {
        let (stopper, stop) = stop::pair();
        let (began, mut begins) = mpsc::unbounded_channel();
        let started = tokio::time::Instant::now();
        let tick = move || {
            began.send(started.elapsed()).unwrap();
            std::future::pending()
        };
        let ticking = tokio::spawn(run("test", Duration::from_secs(1), 0, tick, stop));
        assert_eq!((begins.recv().await.unwrap(), begins.recv().await.unwrap()), (Duration::ZERO, TICK_MAX));
        stopper.stop();
        ticking.await.unwrap();
    }
}
