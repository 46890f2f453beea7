//! Durations in buckets, for percentiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Parts of an octave: a bucket is at most an eighth of its values wide.
const PARTS: u64 = 8;

/// Counts of durations, by bucket.
///
/// A percentile is the upper end of its bucket: never less than the true value, and at most 12.5 % more. Durations below
/// 16 ms are exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(BTreeMap<u16, u64>);

impl Histogram {
    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a duration in milliseconds.
    pub fn add(&mut self, ms: u64) {
        *self.0.entry(bucket(ms)).or_default() += 1;
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The sum of the upper ends of all buckets: never less than the sum of the durations, and at most 12.5 % more.
    #[must_use]
    pub fn sum_ms(&self) -> u64 {
        self.0.iter().map(|(bucket, count)| end(*bucket).saturating_mul(*count)).fold(0, u64::saturating_add)
    }

    /// The duration that this percentage of all do not exceed, in milliseconds. `None` if nothing was counted.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        self.0.iter().find_map(|(bucket, count)| {
            seen += count;
            (seen >= rank).then(|| end(*bucket))
        })
    }

    /// The upper end of each bucket in milliseconds, with the number of durations up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().scan(0, |seen, (bucket, count)| {
            *seen += count;
            Some((end(*bucket), *seen))
        })
    }
}

/// Values below [`PARTS`] have a bucket each. From there on each octave has [`PARTS`] of them.
fn bucket(ms: u64) -> u16 {
    let Some(shift) = ms.checked_ilog2().and_then(|octave| octave.checked_sub(PARTS.ilog2())) else {
        return u16::try_from(ms).unwrap_or(0);
    };
    u16::try_from(u64::from(shift) * PARTS + (ms >> shift)).unwrap_or(u16::MAX)
}

/// The largest value of a bucket.
fn end(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket / PARTS).saturating_sub(1);
    let part = bucket - shift * PARTS;
    u32::try_from(shift).ok().and_then(|shift| (part + 1).checked_shl(shift)).map_or(u64::MAX, |next| next - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_where_the_next_begins_and_is_at_most_an_eighth_wide() {
        let mut before = None;
        for ms in (0..5_000).chain([86_400_000, 7_776_000_000, 1 << 52]) {
            let bucket = bucket(ms);
            let end = end(bucket);
            assert!(ms <= end && (end - ms) * 8 <= ms.max(1), "{ms} is in the bucket up to {end}");
            assert!(before.is_none_or(|before| before <= bucket), "{ms}");
            before = Some(bucket);
        }
        assert_eq!((0..16).map(|ms| end(bucket(ms))).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn a_percentile_is_the_value_of_its_rank_rounded_up() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        (1..=10).for_each(|ms| histogram.add(ms));
        let percentiles = [0, 10, 11, 50, 90, 99, 100].map(|percent| histogram.percentile(percent).unwrap());
        assert_eq!(percentiles, [1, 1, 2, 5, 9, 10, 10]);
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        assert_eq!((twice.count(), twice.percentile(50)), (20, Some(5)));
        assert_eq!(twice.cumulative().last(), Some((10, 20)));
    }

    #[test]
    fn it_is_stored_by_bucket_and_read_back() {
        let mut histogram = Histogram::default();
        [3, 3, 70].into_iter().for_each(|ms| histogram.add(ms));
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(text, r#"{"3":2,"32":1}"#);
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
    }
}
