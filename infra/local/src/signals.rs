//! Ctrl-C and SIGTERM.

use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers of the two signals.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal. Cancel-safe.
    pub async fn next(&mut self) {
        self.next_kind().await;
    }

    /// The same, and says which one it was.
    pub async fn next_kind(&mut self) -> SignalKind {
        select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        }
    }
}
