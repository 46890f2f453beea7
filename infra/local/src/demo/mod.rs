//! `stepwarden demo`: posts sample orders to an API, shows their progress, and checks their states and effects.
//!
//! It is an ordinary client: it knows the API and the stand-ins' effects, and nothing of the functions.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

mod follow;
mod report;
mod sample;
mod verdict;

use std::io::{self, Write};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use standins::Effects;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::client::{Client, ClientError};
use crate::ending::Ending;
use crate::paint::Paint;
use follow::{FollowError, Follower};
use report::Ended;
use sample::SAMPLES;

/// The time for which a call of the demo without an answer may still have its effect, in milliseconds. Its stand-ins
/// are never at work on a call that was given up.
pub const SETTLES_WITHIN_MS: u64 = 500;

/// The demo could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The stand-ins' effects cannot be read.
    #[error("the effects of the stand-ins cannot be read: {0}")]
    Effects(#[from] ClientError),
    /// The stand-ins' effects cannot be parsed.
    #[error("the effects of the stand-ins cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The output cannot be written.
    #[error("cannot print: {0}")]
    Output(#[from] io::Error),
}

/// Runs the demo against the API at `api_url`, whose agents call the stand-ins at `stand_ins_url`. Prints to `out`.
/// Returns whether every order ended as expected.
///
/// # Errors
/// [`DemoError`] if the demo could not be carried out. An order with a wrong end is no error but [`Ending::Wrong`].
pub async fn run(api_url: &str, stand_ins_url: &str, paint: Paint, out: &mut impl Write) -> Result<Ending, DemoError> {
    writeln!(out, "{}", report::opening(api_url))?;
    let began = Instant::now();
    let client = Client::new();
    let run = format!("demo-{}", SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis()));
    let follower = Follower { client: client.clone(), url: api_url.to_owned(), began, run };
    let (sights, mut seen) = mpsc::unbounded_channel();
    let mut following = JoinSet::new();
    for (place, sample) in SAMPLES.into_iter().enumerate() {
        let (follower, sights) = (follower.clone(), sights.clone());
        following.spawn(async move { (place, follower.follow(place, sample, sights).await) });
    }
    drop(sights);
    let mut all = SAMPLES.map(|_| Err(FollowError::NotSettled));
    loop {
        // Changes come first, so that the end of an order follows its last change.
        tokio::select! {
            biased;
            Some(sight) = seen.recv() => writeln!(out, "{}", report::change(paint, &sight))?,
            Some(ended) = following.join_next() => {
                let Ok((place, followed)) = ended else { continue };
                writeln!(out, "{}", report::end(paint, began.elapsed(), place, &followed))?;
                if let Some(slot) = all.get_mut(place) {
                    *slot = followed;
                }
            }
            else => break,
        }
        out.flush()?;
    }
    let took = began.elapsed();
    let told = client.get(&format!("{stand_ins_url}/effects")).await?;
    let effects: Effects = serde_json::from_slice(&told.body)?;
    let ended: Vec<Ended> =
        SAMPLES.into_iter().zip(all).map(|(sample, followed)| judged(sample, followed, &effects)).collect();
    writeln!(out, "\n{}", report::table(paint, &ended, &effects))?;
    write!(out, "{}", report::summary(paint, &ended, &effects, took))?;
    out.flush()?;
    let is_good = ended.iter().all(|order| order.faults.is_empty());
    Ok(Ending::of(is_good))
}

fn judged(sample: sample::Sample, followed: Result<follow::Followed, FollowError>, effects: &Effects) -> Ended {
    let faults = match &followed {
        Ok(followed) => verdict::faults(&sample, followed, effects),
        Err(error) => vec![error.to_string()],
    };
    Ended { sample, followed, faults }
}
