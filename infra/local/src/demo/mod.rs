//! `stepwarden demo`: posts sample orders to an API, shows their progress, and checks their states and effects.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

mod report;
mod sample;
mod verdict;

use std::cell::RefCell;
use std::io::{self, Write};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use wire::Task;

use crate::paint::Paint;
use crate::scenario::{OrderError, Orders};
use crate::stand_ins::StandIns;
use report::Ended;
use sample::{SAMPLES, Sample};

/// The time for which a call of the demo without an answer may still have its effect, in milliseconds. Its stand-ins
/// are never at work on a call that was given up.
pub const SETTLES_WITHIN_MS: u64 = 500;
/// The pause between two polls of an order.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The pause between two posts, so that a person can follow the output.
const POST_EVERY: Duration = Duration::from_millis(150);
/// The time after which an unsettled order counts as lost. Longer than one attempt and the wait for its calls.
const SETTLED_MAX: Duration = Duration::from_secs(90);

/// The end of an order.
#[derive(Debug)]
struct Followed {
    last: Task<'static>,
    /// From the post to the end.
    took: Duration,
}

/// Runs the demo against the API at `api_url`, whose agents call the stand-ins. Prints to `out`. Returns whether every order
/// ended as expected.
///
/// # Errors
/// If the output cannot be written. An order with a wrong end is no error.
pub async fn run(api_url: &str, stand_ins: &StandIns, paint: Paint, out: &mut impl Write) -> io::Result<bool> {
    writeln!(out, "{}", report::opening(api_url))?;
    let (began, orders) = (Instant::now(), Orders::of(api_url, "demo"));
    let shared = RefCell::new(&mut *out);
    // An output that takes nothing refuses the table too.
    let print = |line: String| {
        let mut out = shared.borrow_mut();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    let following = SAMPLES.into_iter().zip(0..).map(async |(sample, place)| {
        tokio::time::sleep(POST_EVERY * place).await;
        let changed = |task: &Task<'_>| print(report::change(paint, began.elapsed(), place, task));
        let followed = follow(&orders, place, sample, changed).await;
        print(report::end(paint, began.elapsed(), place, &followed));
        (sample, followed)
    });
    let all = join_all(following).await;
    let (took, effects) = (began.elapsed(), stand_ins.effects());
    let ended: Vec<Ended> = all
        .into_iter()
        .map(|(sample, followed)| {
            let faults = match &followed {
                Ok(followed) => verdict::faults(&sample, &followed.last, &effects),
                Err(error) => vec![error.to_string()],
            };
            Ended { sample, followed, faults }
        })
        .collect();
    writeln!(out, "\n{}", report::table(paint, &ended, &effects))?;
    write!(out, "{}", report::summary(paint, &ended, &effects, took))?;
    out.flush()?;
    Ok(ended.iter().all(|order| order.faults.is_empty()))
}

async fn follow(
    orders: &Orders,
    place: u32,
    sample: Sample,
    changed: impl FnMut(&Task<'_>),
) -> Result<Followed, OrderError> {
    let (posted, key) = (Instant::now(), place.to_string());
    let order_id = orders.post(&key, sample.document()).await?;
    for _ in 1..sample.posts {
        if orders.post(&key, sample.document()).await? != order_id {
            return Err(OrderError::TwoOrders);
        }
    }
    let last = orders.follow(order_id, LOOK_EVERY, posted + SETTLED_MAX, changed).await?;
    Ok(Followed { last, took: posted.elapsed() })
}
