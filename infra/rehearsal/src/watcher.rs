//! Who judges a world.

use std::any::Any;

use crate::seen::Seen;

/// Sees what happens, from outside, and judges.
pub trait Watcher: Any + Send {
    /// This happens now, in milliseconds since the start of the world.
    fn see(&mut self, now_ms: i64, seen: &Seen);

    /// Something goes wrong somewhere until this time, in milliseconds since the start of the world.
    fn troubled(&mut self, until_ms: i64);

    /// A clock has jumped, and is right again at this time, in milliseconds since the start of the world.
    fn jumped(&mut self, until_ms: i64);

    /// Whether it has seen enough.
    fn is_done(&self) -> bool;
}
