//! The room for new orders: each order under way may be in memory with its document.

use embedded::Share;

/// Bytes of documents for each order that there may be.
const BYTES_OF_AN_ORDER: u64 = 256;
/// The least bytes of documents that there may be.
const BYTES_MIN: u64 = 64 * 1024 * 1024;

/// The bounds of the orders under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) orders_max: u64,
    /// Whether callers have names, so that none may take the room of the others.
    pub(super) has_submitters: bool,
}

impl Room {
    /// Whether one more order of a submitter has room, with a document of so many bytes. `under_way` also counts those that
    /// are not stored yet.
    pub(super) fn has(self, under_way: u64, [all, own]: [Share; 2], bytes: usize) -> bool {
        let bytes_max = self.orders_max.saturating_mul(BYTES_OF_AN_ORDER).max(BYTES_MIN);
        let fits = |orders: u64, share: Share, of: &dyn Fn(u64) -> u64| {
            orders < of(self.orders_max) && share.bytes + bytes as u64 <= of(bytes_max)
        };
        let three_quarters = |max: u64| max - max / 4;
        fits(under_way, all, &|max| max) && (!self.has_submitters || fits(own.orders, own, &three_quarters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn share(orders: u64, bytes: u64) -> Share {
        Share { orders, bytes }
    }

    #[test]
    fn rule_15_a_submitter_leaves_a_quarter_of_the_room_to_others() {
        let room = Room { orders_max: 100, has_submitters: true };
        assert!(room.has(74, [share(74, 0), share(74, 0)], 1));
        assert!(!room.has(75, [share(75, 0), share(75, 0)], 1), "the rest is for others");
        assert!(room.has(99, [share(99, 0), share(24, 0)], 1), "another submitter");
        assert!(!room.has(100, [share(99, 0), share(0, 0)], 1), "one is being stored");
        let all = [share(1, 48 * MIB - 1), share(1, 48 * MIB - 1)];
        assert!(room.has(1, all, 1) && !room.has(1, all, 2), "bytes count as well");
        let alone = Room { has_submitters: false, ..room };
        assert!(alone.has(99, [share(99, 0), share(99, 0)], 1), "all callers have one name");
    }

    #[test]
    fn rule_15_documents_under_way_have_a_bound_of_their_bytes() {
        for (orders_max, bytes_max) in [(10, 64 * MIB), (1_000_000, 256_000_000)] {
            let room = Room { orders_max, has_submitters: false };
            let all = [share(1, bytes_max - 7), share(1, 0)];
            assert!(room.has(1, all, 7) && !room.has(1, all, 8), "{orders_max}");
        }
    }
}
