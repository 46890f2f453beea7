//! Who calls a port, and how far it is.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

/// The caller.
#[derive(Debug, Clone)]
pub struct Who {
    /// The instance's name.
    pub name: Arc<str>,
    /// The invocation.
    pub invocation: u32,
    /// The error of the instance's clock, in milliseconds.
    pub skew_ms: i64,
    /// The point of the invocation, for the counts of killed instances.
    pub phase: Arc<AtomicU8>,
}

/// An invocation is between two calls.
pub const BETWEEN: u8 = 0;
/// A port call has not taken effect yet.
pub const BEFORE: u8 = 1;
/// A port call took effect; its answer is not there yet.
pub const AFTER: u8 = 2;
