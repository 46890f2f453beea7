//! The metrics between two flushes.

use std::collections::BTreeMap;

use super::fields::{Dimensions, Kind, Metric};

/// The maximum number of series kept.
const SERIES_MAX: usize = 200;
/// The maximum number of values of a histogram in one line. The format allows no more.
pub(super) const VALUES_MAX: usize = 100;

/// The metrics since the last flush, by their dimensions.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) by_dimensions: BTreeMap<Dimensions, BTreeMap<&'static str, Sum>>,
    series: usize,
}

/// The aggregated values of one metric.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sum {
    Count(f64),
    Values(Vec<f64>),
    Last(f64),
}

impl Sums {
    /// Adds values. Returns all metrics when they are full, and starts empty.
    pub(super) fn add(&mut self, dimensions: Dimensions, metrics: &[Metric]) -> Option<Self> {
        let sums = self.by_dimensions.entry(dimensions).or_default();
        let mut is_full = false;
        for &Metric { kind, name, value } in metrics.iter().filter(|metric| metric.value.is_finite()) {
            let sum = sums.entry(name).or_insert_with(|| {
                self.series += 1;
                Sum::new(kind)
            });
            is_full |= sum.add(value) || self.series >= SERIES_MAX;
        }
        is_full.then(|| std::mem::take(self))
    }
}

impl Sum {
    const fn new(kind: Kind) -> Self {
        match kind {
            Kind::Counter => Self::Count(0.0),
            Kind::Histogram => Self::Values(Vec::new()),
            Kind::Gauge => Self::Last(0.0),
        }
    }

    /// Adds a value and returns true when the metric is full.
    fn add(&mut self, value: f64) -> bool {
        match self {
            Self::Count(sum) => *sum += value,
            Self::Last(last) => *last = value,
            Self::Values(values) => {
                values.push(value);
                return values.len() >= VALUES_MAX;
            }
        }
        false
    }
}
