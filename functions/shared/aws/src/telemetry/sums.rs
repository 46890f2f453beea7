//! Metrics between two writings.

use std::collections::BTreeMap;

use super::fields::{Kind, Metric};

/// The field and the dimension of whose request it is.
pub(super) const AGENT: (&str, &str) = ("agent", "Agent");
/// The field and the dimension of which remote service it is about.
pub(super) const SERVICE: (&str, &str) = ("service", "Service");
/// Fields of an event that become dimensions of its metrics. Whoever writes such a field beside a metric takes care that
/// it has few values: each is a metric of its own, and costs as much.
pub(super) const DIMENSIONS: [(&str, &str); 6] =
    [AGENT, SERVICE, ("step", "Step"), ("workflow", "Workflow"), ("reason", "Reason"), ("fate", "Fate")];

/// Dimensions and their values, but for the function.
pub(super) type Dimensions = Vec<(&'static str, String)>;

/// Most series kept.
const SERIES_MAX: usize = 200;
/// Most values of a histogram in one line; the format allows no more.
pub(super) const VALUES_MAX: usize = 100;

/// The metrics since the last writing, by their dimensions.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) by_dimensions: BTreeMap<Dimensions, BTreeMap<&'static str, Sum>>,
    series: usize,
}

/// What the values of one metric come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sum {
    Count(f64),
    Values(Vec<f64>),
    Last(f64),
}

impl Sums {
    /// Adds values, and gives all of it away when that makes it full.
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

    /// Adds a value; whether that makes it full.
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
