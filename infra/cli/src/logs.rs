//! Where the log goes: to stderr, as much as `RUST_LOG` says.

use std::io::IsTerminal;

use trace::Layer;
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer as _, fmt};

/// For `serve`: what happens to the program, not what happens to each order, which is told under the target `orders`.
pub const SERVE: &str = "warn,stepwarden=info,local=info";
/// For the demo and the outage: their own lines tell the story, and trouble is part of it.
pub const SHOW: &str = "off";

/// Starts logging, and making traces where there is a collector to send them to. `wanted` is the value of `RUST_LOG`. Without
/// it, or if it cannot be read, `usual` holds.
pub fn start(wanted: Option<&str>, usual: &str, traces: Option<Layer>) {
    let wanted = wanted.and_then(|wanted| wanted.parse().ok());
    let filter: Targets = wanted.unwrap_or_else(|| usual.parse().expect("a level for each target"));
    let lines = fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr);
    // Tests may have started it before.
    let _ = match traces {
        // Without traces the filter is one for everything: what it does not want costs nothing.
        None => tracing_subscriber::registry().with(lines).with(filter).try_init(),
        Some(traces) => {
            let traces = traces.with_filter(filter_fn(Layer::wants));
            tracing_subscriber::registry().with(lines.with_filter(filter)).with(traces).try_init()
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_usually_holds_can_be_read() {
        for usual in [SERVE, SHOW] {
            assert!(usual.parse::<Targets>().is_ok(), "{usual}");
        }
    }
}
