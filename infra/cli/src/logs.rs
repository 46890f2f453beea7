//! Where the log goes: to stderr, as much as `RUST_LOG` says.

use std::io::IsTerminal;

use trace::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

/// For `serve`: what happens to the program, not what happens to each order, which is told under the target `orders`.
pub const SERVE: &str = "warn,stepwarden=info,local=info";
/// For the demo and the outage: their own lines tell the story, and trouble is part of it.
pub const SHOW: &str = "off";

/// Starts logging, and making traces where there is somebody to send them to. Where `RUST_LOG` says nothing, or nothing that can be read, `usual` holds.
pub fn start(usual: &str, traces: Option<Layer>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let is_terminal = std::io::stderr().is_terminal();
    // Somebody else may have started it first, as tests do.
    let _ = match traces {
        // Without traces the filter is one for everything: what it does not want costs nothing.
        None => tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(is_terminal)
            .with_writer(std::io::stderr)
            .try_init(),
        Some(traces) => {
            let lines = fmt::layer().with_ansi(is_terminal).with_writer(std::io::stderr).with_filter(filter);
            let traces = traces.with_filter(filter_fn(Layer::wants));
            tracing_subscriber::registry().with(lines).with(traces).try_init().map_err(Into::into)
        }
    };
}
