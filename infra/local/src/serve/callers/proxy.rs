//! The callers that a proxy in front names in a header. It is believed by its address alone.

use std::net::IpAddr;
use std::str::FromStr;

use api::{Caller, Role};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode};

use super::verify::is_name;
use crate::BadSetting;
use crate::http_server::Peer;
use crate::problem::problem;

/// Who is believed, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// The proxies.
    pub peers: Vec<TrustedPeer>,
    /// The header with the name of the caller.
    pub name: HeaderName,
    /// The header with the roles of the caller, with commas between them.
    pub roles: HeaderName,
}

/// Where a proxy calls from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustedPeer {
    /// This address.
    Address(IpAddr),
    /// The socket of `serve --socket`.
    Socket,
}

/// A peer that is no proxy names a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stranger;

impl FromStr for TrustedPeer {
    type Err = BadSetting;

    fn from_str(text: &str) -> Result<Self, BadSetting> {
        match text {
            "unix" => Ok(Self::Socket),
            text => text.parse::<IpAddr>().map(|address| Self::Address(address.to_canonical())).map_err(|_| {
                BadSetting::new(
                    "give the address of the proxy, such as 10.0.0.7, or unix for all that call by --socket",
                )
            }),
        }
    }
}

impl ProxySettings {
    /// The caller that the peer names, if it names one.
    ///
    /// # Errors
    /// [`Stranger`] if the peer is no proxy. A wrong address of the proxy would otherwise look like wrong tokens.
    pub(super) fn caller(&self, headers: &HeaderMap, peer: Option<&Peer>) -> Result<Option<Caller>, Stranger> {
        if !headers.contains_key(&self.name) && !headers.contains_key(&self.roles) {
            return Ok(None);
        }
        if !peer.is_some_and(|peer| self.trusts(peer)) {
            return Err(Stranger);
        }
        let name = once(headers, &self.name).filter(|name| is_name(name));
        let roles = once(headers, &self.roles).unwrap_or_default();
        let roles: Vec<Role> = roles.split(',').filter_map(|role| role.trim().parse().ok()).collect();
        // A caller that the proxy names in two ways, or not at all, is unknown. A token beside it does not count.
        let caller = name.filter(|_| !roles.is_empty()).map(|name| Caller::with(name, &roles, None));
        Ok(Some(caller.unwrap_or_else(Caller::unknown)))
    }

    fn trusts(&self, peer: &Peer) -> bool {
        let from = peer.address.map_or(TrustedPeer::Socket, |address| TrustedPeer::Address(address.to_canonical()));
        self.peers.contains(&from)
    }
}

fn once<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    value.to_str().ok()
}

/// The answer to a [`Stranger`].
pub(crate) fn refusal(_: Stranger) -> Response<Bytes> {
    problem(
        StatusCode::BAD_REQUEST,
        "only a proxy of `stepwarden serve --trusted-proxy` may name the caller in a header; it is not this address",
    )
}
