//! Where the log goes: to stderr, as much as `RUST_LOG` says.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// For `serve`: what happens to the program, not what happens to each order.
pub const SERVE: &str = "warn,stepwarden=info";
/// For the demo and the outage: their own lines tell the story, and trouble is part of it.
pub const SHOW: &str = "off";

/// Starts logging. Where `RUST_LOG` says nothing, or nothing that can be read, `usual` holds.
pub fn start(usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let stderr = std::io::stderr();
    let logging = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(stderr.is_terminal());
    // Somebody else may have started it first, as tests do.
    let _ = logging.with_writer(std::io::stderr).try_init();
}
