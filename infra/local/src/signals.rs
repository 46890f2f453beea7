//! Ctrl-C and SIGTERM.

use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The status of a process that was told twice: 128 and the number of SIGINT.
const IMPATIENT: i32 = 130;

/// The two signals, caught from now on.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// Where the system does not let us.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the first. From then on a second one ends the process at once: what is committed is safe anyway.
    pub async fn first(mut self) {
        self.next().await;
        tokio::spawn(async move {
            self.next().await;
            eprintln!("stepwarden: told twice, gone at once");
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
