//! The only source of randomness: one stream for each world, from its seed (SplitMix64).

/// A stream of random bits.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed. The streams of adjacent seeds are unrelated.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Self(seed ^ 0x5DEE_CE66_D1CE_4E5B);
        Self(rng.bits() ^ seed.rotate_left(32))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// An index below this length, which is not 0.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True with a probability of `times` in 10,000.
    pub fn chance(&mut self, times: u64) -> bool {
        times > 0 && self.below(10_000) < times
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.place(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_stream_and_its_neighbour_another() {
        let stream = |seed| {
            let mut rng = Rng::new(seed);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(stream(7), stream(7));
        assert!(stream(7).iter().all(|bits| !stream(8).contains(bits)));
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..1_000).map(|_| rng.between(3, 6)).collect();
        assert!((3..=6).all(|number| drawn.contains(&number)) && drawn.iter().all(|number| (3..=6).contains(number)));
        assert!((0..1_000).all(|_| rng.chance(10_000)) && !(0..1_000).any(|_| rng.chance(0)));
    }
}
