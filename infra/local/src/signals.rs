//! Ctrl-C and SIGTERM.

use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal: 128 plus the number of SIGINT.
const IMPATIENT: i32 = 130;

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

    /// Waits for the first signal. A second one ends the process at once: committed data is safe anyway.
    pub async fn first(mut self) {
        self.next().await;
        tokio::spawn(async move {
            self.next().await;
            eprintln!("stepwarden: second signal, stopping at once");
            std::process::exit(IMPATIENT);
        });
    }

    async fn next(&mut self) {
        select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
