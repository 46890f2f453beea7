//! The stop signal, from one sender to many receivers.

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinSet;

/// The sender of the stop signal. Dropping it sends the signal, too.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// The receiver of the stop signal. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Tasks that end at a common stop signal. Dropping it cancels them.
#[derive(Debug)]
pub struct Loops {
    stopper: Stopper,
    stop: Stop,
    running: JoinSet<()>,
}

impl Loops {
    /// No task runs yet.
    #[must_use]
    pub fn new() -> Self {
        let (stopper, stop) = pair();
        Self { stopper, stop, running: JoinSet::new() }
    }

    /// Runs a task, which gets the receiver of the signal.
    pub fn spawn<Loop>(&mut self, run: impl FnOnce(Stop) -> Loop)
    where
        Loop: Future<Output = ()> + Send + 'static,
    {
        self.running.spawn(run(self.stop.clone()));
    }

    /// Sends the signal, and waits until all tasks have ended.
    pub async fn stop(&mut self) {
        self.stopper.stop();
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                tracing::error!("a loop ended with an error: {error}");
            }
        }
    }
}

impl Default for Loops {
    fn default() -> Self {
        Self::new()
    }
}

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
