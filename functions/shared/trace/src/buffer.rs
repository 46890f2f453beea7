//! The buffer of spans to export.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::span::Done;

/// The most spans in the buffer, of about a kilobyte each. Further spans are dropped.
pub(crate) const SPANS_MAX: usize = 8_192;
/// The most spans in a request.
pub(crate) const BATCH_MAX: usize = 512;

/// Spans to export.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    waiting: Mutex<Waiting>,
    /// Signals that a batch is full.
    pub(crate) is_much: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Done>,
    dropped: u64,
}

impl Buffer {
    pub(crate) fn put(&self, span: Done) {
        let mut waiting = self.lock();
        if waiting.spans.len() >= SPANS_MAX {
            waiting.dropped += 1;
            return;
        }
        waiting.spans.push_back(span);
        let is_much = waiting.spans.len() == BATCH_MAX;
        drop(waiting);
        if is_much {
            self.is_much.notify_one();
        }
    }

    /// The next spans, in order; empty if none wait.
    pub(crate) fn take(&self) -> Vec<Done> {
        let spans = &mut self.lock().spans;
        let count = spans.len().min(BATCH_MAX);
        spans.drain(..count).collect()
    }

    /// Puts unsent spans back to the front, as far as there is room.
    pub(crate) fn put_back(&self, spans: Vec<Done>) {
        let mut waiting = self.lock();
        let room = SPANS_MAX - waiting.spans.len();
        waiting.dropped += spans.len().saturating_sub(room) as u64;
        for span in spans.into_iter().take(room).rev() {
            waiting.spans.push_front(span);
        }
    }

    /// Counts dropped spans.
    pub(crate) fn give_up(&self, count: usize) {
        self.lock().dropped += count as u64;
    }

    /// The number of dropped spans since the last call.
    pub(crate) fn dropped(&self) -> u64 {
        mem::take(&mut self.lock().dropped)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().spans.len()
    }

    /// A poisoned lock is safe: no change under it is partial.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
