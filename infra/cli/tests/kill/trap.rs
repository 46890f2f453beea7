//! The killer, in two moods: at any moment, or the moment in which an order was answered.
//!
//! The second is the one that matters most. What was promised by the answer is then as young as it can be, and on the
//! disk or lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::victim::Victim;

pub(crate) struct Trap {
    victim: Mutex<Victim>,
    /// Answers until it is sprung; 0 when it is not set.
    answers: AtomicU64,
    sprung: Notify,
}

impl Trap {
    pub(crate) fn around(victim: Victim) -> Self {
        Self { victim: Mutex::new(victim), answers: AtomicU64::new(0), sprung: Notify::new() }
    }

    /// Kills the process when so many further orders have been answered (0: at none of them), at the latest after
    /// `life_ms`, and starts it again. `seen` is called while it is dead.
    pub(crate) async fn kill_and_start_again(&self, answers: u64, life_ms: u64, seen: impl FnOnce()) {
        self.answers.store(answers, Ordering::SeqCst);
        let life = Duration::from_millis(life_ms);
        let is_sprung = tokio::time::timeout(life, self.sprung.notified()).await.is_ok();
        if !is_sprung {
            match (answers, self.answers.swap(0, Ordering::SeqCst)) {
                (1.., 0) => self.sprung.notified().await,
                (0, _) | (_, 1..) => self.victim().kill(),
            }
        }
        seen();
        self.victim().start_again();
    }

    /// To be called as soon as an answer has come.
    pub(crate) fn answered(&self) {
        let counted = self.answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |answers| answers.checked_sub(1));
        if counted == Ok(1) {
            self.victim().kill();
            self.sprung.notify_one();
        }
    }

    pub(crate) fn expect_alive(&self) {
        self.victim().expect_alive();
    }

    pub(crate) fn url(&self) -> String {
        self.victim().url()
    }

    /// The end of what the process said.
    pub(crate) fn tail(&self) -> String {
        crate::victim::tail(self.victim().log())
    }

    fn victim(&self) -> MutexGuard<'_, Victim> {
        self.victim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
