//! The stop signal, from one sender to many receivers.

use tokio::sync::watch;

/// The sender of the stop signal. Dropping it sends the signal, too.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// The receiver of the stop signal. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// A sender and a receiver.
#[must_use]
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Sends the stop signal.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Waits for the stop signal. Cancel-safe.
    pub async fn requested(&self) {
        let mut receiver = self.0.clone();
        // An error means that the sender is gone, which also means stop.
        let _ = receiver.wait_for(|&stopped| stopped).await;
    }
}
