//! Which traces are recorded.

use domain::trace::TraceParent;

/// So many bits at the end of an order's id are random, in both versions of it. The usual way of OpenTelemetry looks at
/// more, two of which are always the same in a UUID, so that of half a share nothing would be left, and of three quarters
/// everything.
const BITS: u32 = 56;

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// Whether what a span was caused by decides before `root` does.
    pub(crate) follows_parent: bool,
    pub(crate) root: Share,
}

/// Which share of the traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Share {
    /// All.
    All,
    /// None.
    None,
    /// From 0 to 1, by the order's id: whoever decides, decides the same.
    Ratio(f64),
}

impl Default for Sampler {
    fn default() -> Self {
        Self { follows_parent: true, root: Share::All }
    }
}

impl Sampler {
    /// Whether a span is recorded that was caused by `cause`.
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
