//! Runs a handler to its end. Time passes only while all its tasks wait.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use domain::ports::Environment;

use memory::Memory;
use memory::faulty::Faulty;

/// Runs a future to its end, and advances the clock while it can only wait. `None`: it died at a port and was dropped.
///
/// # Panics
/// When it waits for what will never come.
pub fn drive<T>(memory: &Memory, ports: &Faulty, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
        if ports.has_died() {
            return None;
        }
        if !woken.0.swap(false, Ordering::Relaxed) {
            let now = memory.now();
            let at = ports.next_to_wake(now).expect("it waits for what will never come");
            memory.advance(now.ms_until(at));
        }
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
