//! The command to stop, from one who has it to many who must hear it.

use tokio::sync::watch;

/// Tells everybody who holds the [`Stop`] of the same pair to stop. Dropping it says the same.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Hears the command to stop. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// A pair of one who tells and one who hears.
#[must_use]
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Tells them.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Waits until stopping is asked for. Cancel-safe.
    pub async fn requested(&self) {
        let mut receiver = self.0.clone();
        // An error means that the other end is gone, and with it whoever could want us to go on.
        let _ = receiver.wait_for(|&stopped| stopped).await;
    }
}
