//! Logging to stderr, at the level of `RUST_LOG`.

mod limit;

use std::io::IsTerminal;

use trace::Layer;
use tracing_subscriber::filter::{FilterExt, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer as _, fmt};

use crate::args::LogFormat;
use limit::Limit;

/// For `serve`: the program's events, and each change of the configuration. The orders' history has its own target,
/// `orders`.
pub const SERVE: &str = "warn,stepwarden=info,local=info,embedded=info,api::configuration=info";
/// For the demo and the outage: they print their own lines, and expect failures.
pub const SHOW: &str = "off";

/// Starts logging, and tracing if there is a collector. `wanted` is the value of `RUST_LOG`; the default is `usual`.
pub fn start(wanted: Option<&str>, usual: &str, format: LogFormat, traces: Option<Layer>) {
    let wanted = wanted.and_then(|wanted| wanted.parse().ok());
    let filter: Targets = wanted.unwrap_or_else(|| usual.parse().expect("a level for each target"));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let limit = Limit::of(format);
    // Tests may have started it before.
    let _ = match traces {
        // Without traces, one global filter makes suppressed events free.
        None => tracing_subscriber::registry().with(lines.with_filter(limit)).with(filter).try_init(),
        Some(traces) => {
            let traces = traces.with_filter(filter_fn(Layer::wants));
            tracing_subscriber::registry().with(lines.with_filter(limit.and(filter))).with(traces).try_init()
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
