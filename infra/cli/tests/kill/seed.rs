//! A seed names a run, so that its random choices can be made again.

use std::time::{SystemTime, UNIX_EPOCH};

/// The seed that `STEPWARDEN_SEED` asks for, or a new one.
pub(crate) fn seed() -> u64 {
    match std::env::var("STEPWARDEN_SEED") {
        Ok(seed) => seed.parse().expect("STEPWARDEN_SEED is a number"),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            now.as_secs() ^ u64::from(now.subsec_nanos()) << 32
        }
    }
}
