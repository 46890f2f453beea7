//! `stepwarden demo`: posts sample orders to an API, shows their progress, and checks their states and effects.

mod report;
mod sample;
mod verdict;

use std::cell::RefCell;
use std::io::{self, Write};
use std::time::Duration;

use futures_util::future::join_all;
use local::stand_ins::StandIns;
use wire::Task;

use crate::paint::Paint;
use crate::remote::clock;
use crate::scenario::Orders;
use crate::show::order;
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

/// Runs the demo against the API at `api_url`, whose agents call the stand-ins. Prints to `out`. Returns whether every order
/// ended as expected.
///
/// # Errors
/// If the output cannot be written. An order with a wrong end is no error.
pub async fn run(api_url: &str, stand_ins: &StandIns, paint: Paint, out: &mut impl Write) -> io::Result<bool> {
    writeln!(out, "{}", report::opening(api_url))?;
    let (began, orders) = (clock::instant(), Orders::of(api_url, "demo")?);
    let shared = RefCell::new(&mut *out);
    // An output that takes nothing refuses the table too.
    let print = |line: String| {
        let mut out = shared.borrow_mut();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    let following = SAMPLES.into_iter().zip(1..).map(async |(sample, number)| {
        clock::pause(POST_EVERY * (number - 1)).await;
        let subject = format!("#{number:<2} {:<24}", sample.title);
        let changed =
            |task: &Task<'_>| print(order::change(paint, began.elapsed(), &subject, task, |step| &step.agent));
        let posted = clock::instant();
        let order = follow(&orders, number, sample, changed).await;
        let ended = Ended { number, sample, order, took: posted.elapsed(), faults: Vec::new() };
        print(report::end(paint, began.elapsed(), &subject, &ended));
        ended
    });
    let mut ended = join_all(following).await;
    let (took, effects) = (began.elapsed(), stand_ins.effects());
    for one in &mut ended {
        one.faults = match &one.order {
            Ok(order) => verdict::faults(&one.sample, order, &effects),
            Err(error) => vec![error.clone()],
        };
    }
    writeln!(out, "\n{}", report::table(paint, &ended, &effects))?;
    write!(out, "{}", report::summary(paint, &ended, &effects, took))?;
    out.flush()?;
    Ok(ended.iter().all(|one| one.faults.is_empty()))
}

/// Posts an order, and follows it to its end.
async fn follow(
    orders: &Orders,
    number: u32,
    sample: Sample,
    changed: impl FnMut(&Task<'_>),
) -> Result<Task<'static>, String> {
    let post = async || orders.post(&number.to_string(), sample.document()).await.map_err(|error| error.to_string());
    let order_id = post().await?;
    for _ in 1..sample.posts {
        if post().await? != order_id {
            return Err("posted twice with one key, it became two orders".to_owned());
        }
    }
    orders.follow(order_id, LOOK_EVERY, SETTLED_MAX, changed).await
}
