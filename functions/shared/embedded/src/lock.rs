//! The lock that every part uses.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also after a panic. A panic leaves no inconsistent state: every critical section is a few
/// assignments.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
