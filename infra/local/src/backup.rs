//! Backups of a data directory, and the way back, beside a person who may end them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::select;
use tokio::signal::unix::SignalKind;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use embedded::Watch;
pub use embedded::{BackupError, Manifest, OpenError, Progress, Restored, Stage};

use crate::signals::Signals;

/// A backup or a restore has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// It failed, and nothing is left of it.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A signal ended it, and nothing is left of it.
    #[error("stopped; nothing is left of it")]
    Signal(SignalKind),
    /// A signal handler or a thread failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Backs up a data directory, which another process may use. `show` is told of the progress.
///
/// # Errors
/// [`Failed`]; its message is one line.
pub async fn back_up(data: PathBuf, destination: PathBuf, show: impl FnMut(Progress)) -> Result<Manifest, Failed> {
    beside(show, move |watch| embedded::back_up(&data, &destination, embedded::system_time(), watch)).await
}

/// Restores a backup into a directory without data. `show` is told of the progress.
///
/// # Errors
/// [`Failed`]; its message is one line.
pub async fn restore(source: PathBuf, data: PathBuf, show: impl FnMut(Progress)) -> Result<Restored, Failed> {
    beside(show, move |watch| embedded::restore(&source, &data, watch)).await
}

/// Works on a thread of its own, and ends it in order at a signal.
async fn beside<T: Send + 'static>(
    mut show: impl FnMut(Progress),
    work: impl FnOnce(Watch<'_>) -> Result<T, BackupError> + Send + 'static,
) -> Result<T, Failed> {
    let mut signals = Signals::catch()?;
    let (sender, mut progress) = watch::channel(None);
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stop = is_stopped.clone();
    let mut working = spawn_blocking(move || {
        let show = &mut |progress| _ = sender.send_replace(Some(progress));
        work(Watch { show, stop: &stop })
    });
    let mut signal = None;
    loop {
        select! {
            done = &mut working => return match (done.map_err(io::Error::other)?, signal) {
                (Err(BackupError::Stopped), Some(kind)) => Err(Failed::Signal(kind)),
                (done, _) => Ok(done?),
            },
            kind = signals.next_kind() => {
                if signal.replace(kind).is_some() {
                    return Err(Failed::Signal(kind));
                }
                is_stopped.store(true, Relaxed);
            }
            Ok(()) = progress.changed() => progress.borrow_and_update().iter().for_each(|progress| show(*progress)),
        }
    }
}
