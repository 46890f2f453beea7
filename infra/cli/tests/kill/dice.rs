//! Randomness that can be had again: a seed names a run.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `below`, which is not reached.
    pub(crate) const fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % below
    }
}

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
