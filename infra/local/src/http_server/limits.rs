//! The bounds of a server: of its connections, of their times, and of answers that are not taken.

use std::net::{IpAddr, Ipv6Addr};

use crate::open_files;

/// The bounds of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at the same time.
    pub(super) connections_max: usize,
    /// Connections of one network at the same time, so that it leaves some for others.
    pub(super) of_network_max: usize,
    /// Bytes of answers that no client has taken yet.
    pub(super) untaken_bytes_max: usize,
    /// The time-out of a request's head, from its first byte.
    pub(super) head_ms_max: u64,
    /// The time-out of a connection between two requests.
    pub(super) idle_ms_max: u64,
    /// The time in which a client takes [`TAKEN_BYTES_MIN`] of its answer, or all of it.
    pub(super) taking_ms_max: u64,
}

/// What a client takes of its answer within [`Limits::taking_ms_max`], in bytes.
pub(super) const TAKEN_BYTES_MIN: usize = 16 * 1024;
/// Connections that this process may have at the same time, if the system allows enough open files.
const CONNECTIONS_MAX: usize = 4_096;
/// Answers that no client has taken yet, in bytes.
const UNTAKEN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The time-out of a request's head.
const HEAD_MS_MAX: u64 = 10_000;
/// The time-out of an idle connection.
const IDLE_MS_MAX: u64 = 60_000;
/// The time in which a client takes some of its answer.
const TAKING_MS_MAX: u64 = 10_000;

impl Default for Limits {
    fn default() -> Self {
        let connections_max = connections_max();
        Self {
            connections_max,
            of_network_max: connections_max / 4 * 3,
            untaken_bytes_max: UNTAKEN_BYTES_MAX,
            head_ms_max: HEAD_MS_MAX,
            idle_ms_max: IDLE_MS_MAX,
            taking_ms_max: TAKING_MS_MAX,
        }
    }
}

/// Connections that a server has at the same time, by the limit of open files.
#[must_use]
pub fn connections_max() -> usize {
    open_files::for_clients().min(CONNECTIONS_MAX)
}

/// The network of a client: one address, or what is usually one customer's with IPv6.
#[must_use]
pub(super) fn network(address: IpAddr) -> IpAddr {
    const OF_64_BITS: u128 = u128::MAX << 64;
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & OF_64_BITS)),
        ip @ IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_or_the_first_half_of_one() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::1"), "::");
    }
}
