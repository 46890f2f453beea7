//! Prints a line each second during some work.

#![expect(clippy::disallowed_methods, reason = "a clock for people")]

use std::future::Future;
use std::io::{self, Write};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use tokio::{pin, select};

use crate::paint::Paint;

/// The time since the beginning, of such a line.
pub(super) fn seconds(paint: Paint, began: Instant) -> String {
    paint.dim(format_args!("{:>5.0} s", began.elapsed().as_secs_f64()))
}

/// Runs `work`, and meanwhile prints the text of `line` each second.
///
/// # Errors
/// If the output cannot be written. The work is dropped then.
pub(super) async fn each_second<T>(
    out: &mut impl Write,
    work: impl Future<Output = T>,
    mut line: impl AsyncFnMut() -> String,
) -> io::Result<T> {
    const SECOND: Duration = Duration::from_secs(1);
    // The line is made in parallel, so that the work continues.
    let printing = async {
        let mut seconds = tokio::time::interval_at(Instant::now() + SECOND, SECOND);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            seconds.tick().await;
            let line = line().await;
            if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
                return error;
            }
        }
    };
    pin!(work, printing);
    select! {
        done = work => Ok(done),
        error = printing => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_is_printed_each_second_until_the_work_is_done() {
        let mut out = Vec::new();
        let mut second = 0;
        let line = async || {
            second += 1;
            format!("second {second}")
        };
        let done = each_second(&mut out, tokio::time::sleep(Duration::from_millis(3_500)), line).await;
        assert!(done.is_ok());
        assert_eq!(String::from_utf8(out).unwrap(), "second 1\nsecond 2\nsecond 3\n");
    }

    #[tokio::test(start_paused = true)]
    async fn nowhere_to_print_to_ends_the_work() {
        let mut full: &mut [u8] = &mut [];
        let forever = std::future::pending::<()>();
        assert!(each_second(&mut full, forever, async || "line".to_owned()).await.is_err());
    }
}
