//! The bound on requests that wait for an order to settle.
//!
//! A wait holds a connection for up to 20 s. Beyond the bound, a wait ends at once, as one whose time is over: its caller
//! gets the order as it is, and may ask again.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};

use super::shares::{Share, Shares};
use crate::http_server::{Peer, connections_max};

/// The header that asks for a wait.
const PREFER: HeaderName = HeaderName::from_static("prefer");
/// A wait whose time is over.
const OVER: HeaderValue = HeaderValue::from_static("wait=0");

/// The waits of one server, by network.
pub(super) type Waits = Arc<Shares<IpAddr>>;

/// Half of the connections may wait, and three quarters of these may be of one network.
pub(super) fn of_this_machine() -> Waits {
    of(connections_max() / 2)
}

fn of(all_max: usize) -> Waits {
    Shares::new(all_max, all_max / 4 * 3)
}

/// Counts the wait that a request asks for. Ends it at once if there are too many, or if the request came before the answer
/// to the one before it: a client would hold its connection for as many waits as it sends.
pub(super) fn bound(waits: &Waits, request: &mut Request<Bytes>) -> Option<Share<IpAddr>> {
    if !request.headers().contains_key(PREFER) {
        return None;
    }
    let peer = request.extensions().get::<Peer>().copied();
    let waiting = peer.filter(|peer| !peer.is_ahead).and_then(|peer| waits.take(Some(peer.network)));
    if waiting.is_none() {
        request.headers_mut().insert(PREFER, OVER);
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(waits: &Waits, address: &str, is_ahead: bool) -> (Option<Share<IpAddr>>, String) {
        let mut request = Request::get("/orders/x").header("prefer", "wait=20").body(Bytes::new()).unwrap();
        request.extensions_mut().insert(Peer { network: address.parse().unwrap(), address: None, is_ahead });
        let waiting = bound(waits, &mut request);
        (waiting, request.headers()[PREFER].to_str().unwrap().to_owned())
    }

    #[test]
    fn beyond_the_bound_a_wait_is_over_at_once() {
        let waits = of(4);
        let mut waiting: Vec<_> = (0..3).map(|_| asked(&waits, "192.0.2.1", false)).collect();
        assert!(waiting.iter().all(|(waiting, prefer)| waiting.is_some() && prefer == "wait=20"));
        assert_eq!(asked(&waits, "192.0.2.1", false).1, "wait=0", "the network has its share");
        let other = asked(&waits, "192.0.2.2", false);
        assert_eq!((other.1.as_str(), asked(&waits, "192.0.2.3", false).1.as_str()), ("wait=20", "wait=0"));
        waiting.pop();
        assert_eq!(asked(&waits, "192.0.2.1", false).1, "wait=20");
        drop((waiting, other));
        assert!(waits.is_free(), "also of those that were refused");
    }

    #[test]
    fn a_request_that_came_before_its_turn_does_not_wait() {
        let waits = of(4);
        assert_eq!(asked(&waits, "192.0.2.1", true).1, "wait=0");
    }

    #[test]
    fn a_request_without_a_wait_stays_as_it_is() {
        let mut request = Request::get("/orders/x").body(Bytes::new()).unwrap();
        assert!(bound(&of(0), &mut request).is_none() && request.headers().is_empty());
    }
}
