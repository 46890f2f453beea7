//! The lock that every part uses.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. A thread that panicked while it held the lock left nothing half done: every critical section is a few
/// assignments.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
