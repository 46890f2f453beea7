//! Orders that are kept for a day (rule 44), beside orders that are kept for ever: the file, and the time of a new order.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use domain::ports::{Environment, HasEnvironment, HasStore, PortError, Store};
use domain::task::Task;
use domain::time::Timestamp;
use embedded::{Engine, Options};
use futures_util::{StreamExt, TryStreamExt, stream};
use tests::bench::process::bytes_in;
use tokio::runtime::Runtime;
use tokio::select;

use crate::bar::middle;
use crate::fill;

const DAYS: u64 = 10;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Orders a second. The store takes them without a queue, since a p99 with a queue would measure the queue and not the
/// deletion.
const ORDERS_PER_S: f64 = 2_500.0;
const IN_FLIGHT: usize = 64;
/// As the supervisor does it.
const FORGOTTEN_AT_ONCE: usize = 16;
/// The file may have this many times the bytes of one day.
const BYTES_MAX: f64 = 1.5;
/// A new order may take this many times as long.
const P99_MAX: f64 = 1.1;

/// A store with a clock of its own.
struct Shop {
    engine: Engine,
    ms: Arc<AtomicI64>,
    keeps_a_day: bool,
}

/// Ten days of so many orders; gives whether both bars are met.
pub(crate) fn run(folder: &Path, orders_a_day: u64) -> Result<bool, Box<dyn Error>> {
    let template = fill::finished_task();
    let (kept, all) = (folder.join("a-day"), folder.join("for-ever"));
    let runtime = Runtime::new()?;
    let inside = runtime.enter();
    let shops = [Shop::open(&all, false)?, Shop::open(&kept, true)?];
    drop(inside);
    let (mut ratios, mut first, mut most) = (Vec::new(), 0, 0);
    println!(
        "{:>4} {:>14} {:>14} {:>6} {:>12} {:>12}",
        "day", "p99 for ever", "p99 a day", "ratio", "MiB for ever", "MiB a day"
    );
    for day in 0..DAYS {
        let mut p99_ms = [0.0; 2];
        // Neither always comes first.
        for at in if day % 2 == 0 { [0, 1] } else { [1, 0] } {
            p99_ms[at] = runtime.block_on(shops[at].day(day, orders_a_day, &template))?;
        }
        let (bytes, ratio) = ([bytes_in(&all)?, bytes_in(&kept)?], p99_ms[1] / p99_ms[0]);
        if day == 0 {
            first = bytes[1];
        } else {
            ratios.push(ratio);
        }
        most = most.max(bytes[1]);
        let [mib_all, mib_kept] = bytes.map(|bytes| bytes / 1_048_576);
        println!(
            "{:>4} {:>11.2} ms {:>11.2} ms {ratio:>6.2} {mib_all:>12} {mib_kept:>12}",
            day + 1,
            p99_ms[0],
            p99_ms[1]
        );
    }
    for Shop { engine, .. } in &shops {
        runtime.block_on(engine.close())?;
    }
    let (times, ratio) = (most as f64 / first as f64, middle(ratios).unwrap_or_default());
    println!(
        "at most {times:.2} times one day (bar {BYTES_MAX}); p99 {ratio:.2} times, the middle of the days (bar {P99_MAX})"
    );
    Ok(times <= BYTES_MAX && ratio <= P99_MAX)
}

impl Shop {
    fn open(data: &Path, keeps_a_day: bool) -> Result<Self, Box<dyn Error>> {
        let ms = Arc::new(AtomicI64::new(0));
        let clock = ms.clone();
        let now = Arc::new(move || Timestamp::from_epoch_ms(clock.load(Ordering::Relaxed)));
        let audit_kept_ms = keeps_a_day.then_some(DAY_MS);
        Ok(Self {
            engine: Engine::open(
                data,
                Options { now: Some(now), audit_kept_ms, clock_rest_ms: 0, ..Options::default() },
            )?,
            ms,
            keeps_a_day,
        })
    }

    /// A day's orders; gives the 99th percentile of the time of one, in milliseconds.
    async fn day(&self, day: u64, orders: u64, template: &Task) -> Result<f64, PortError> {
        let inserting = async {
            let first = Instant::now();
            let inserts = stream::iter(day * orders..(day + 1) * orders).map(async |number| {
                let due = first + Duration::from_secs_f64((number - day * orders) as f64 / ORDERS_PER_S);
                tokio::time::sleep_until(due.into()).await;
                let passed_ms = number * DAY_MS / orders;
                self.ms.fetch_max(passed_ms.cast_signed(), Ordering::Relaxed);
                let expires_at = self.keeps_a_day.then(|| self.engine.environment().now().plus_ms(DAY_MS));
                let change = |_, task: &mut Task| task.expires_at = expires_at;
                let (order, task) = fill::order_and_task(&self.engine, number, &change, template);
                self.engine.store().insert(order.into(), task.into()).await?;
                Ok::<_, PortError>(due.elapsed().as_secs_f64() * 1_000.0)
            });
            inserts.buffer_unordered(IN_FLIGHT).try_collect::<Vec<f64>>().await
        };
        let mut took_ms = select! {
            took_ms = inserting => took_ms?,
            error = self.forgetting() => return Err(error),
        };
        took_ms.sort_by(f64::total_cmp);
        Ok(took_ms[took_ms.len() * 99 / 100])
    }

    /// Deletes what expired, like the supervisor, but without its pauses. Returns only with an error.
    async fn forgetting(&self) -> PortError {
        loop {
            match self.engine.store().forget_expired(self.engine.environment().now(), FORGOTTEN_AT_ONCE).await {
                Ok(0) => tokio::time::sleep(Duration::from_millis(1)).await,
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }
}
