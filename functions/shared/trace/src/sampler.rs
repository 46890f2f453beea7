//! The sampler.

use domain::trace::TraceParent;

/// The number of random bits at the end of an order ID, in both UUID versions. The usual OpenTelemetry sampler reads more
/// bits. Two of them are constant in a UUID, so a ratio of 0.5 would sample nothing and 0.75 everything.
const BITS: u32 = 56;

/// The sampler: decides which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// Whether the parent's decision precedes `root`.
    pub(crate) follows_parent: bool,
    pub(crate) root: Share,
}

/// The share of sampled traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Share {
    /// All.
    All,
    /// None.
    None,
    /// A ratio from 0 to 1, by the order ID, so that all processes decide alike.
    Ratio(f64),
}

impl Default for Sampler {
    fn default() -> Self {
        Self { follows_parent: true, root: Share::All }
    }
}

impl Sampler {
    /// Whether a span with this cause is sampled.
    pub(crate) fn takes(&self, trace_id: &[u8; 16], cause: Option<TraceParent>) -> bool {
        match cause.filter(|_| self.follows_parent) {
            Some(cause) => cause.is_sampled(),
            None => self.root.takes(trace_id),
        }
    }
}

impl Share {
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact to the last of 56 bits")]
    fn takes(self, trace_id: &[u8; 16]) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Ratio(ratio) => {
                let [.., a, b, c, d, e, f, g] = *trace_id;
                let random = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
                random as f64 >= (1.0 - ratio) * (1_u64 << BITS) as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use domain::time::Timestamp;

    use super::*;

    fn parent(is_sampled: bool) -> Option<TraceParent> {
        TraceParent::new([1; 16], [1; 8], is_sampled)
    }

    #[test]
    fn of_all_orders_about_the_share_is_recorded_whichever_way_their_ids_are_made() {
        let keyed = |n: u64| OrderId::from_idempotency_key("shop", &n.to_string());
        let plain = |n: u64| {
            let random = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            OrderId::generate(Timestamp::from_epoch_ms(1_795_195_603_007), [random, random.rotate_left(29)])
        };
        for (ratio, least, most) in
            [(0.0, 0, 0), (0.1, 850, 1_150), (0.5, 4_700, 5_300), (0.9, 8_850, 9_150), (1.0, 10_000, 10_000)]
        {
            let sampler = Sampler { follows_parent: true, root: Share::Ratio(ratio) };
            let counted =
                |id: &dyn Fn(u64) -> OrderId| (0..10_000).filter(|n| sampler.takes(id(*n).as_bytes(), None)).count();
            for count in [counted(&keyed), counted(&plain)] {
                assert!((least..=most).contains(&count), "{ratio}: {count}");
            }
        }
    }

    #[test]
    fn a_cause_decides_only_where_it_is_to_be_followed() {
        let id = &[7; 16];
        for root in [Share::All, Share::None, Share::Ratio(0.5)] {
            let sampler = Sampler { follows_parent: true, root };
            assert_eq!((sampler.takes(id, parent(true)), sampler.takes(id, parent(false))), (true, false));
            let sampler = Sampler { follows_parent: false, root };
            assert_eq!(sampler.takes(id, parent(true)), sampler.takes(id, parent(false)));
        }
    }
}
