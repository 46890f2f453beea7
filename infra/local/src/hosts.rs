//! The defence of a local API against DNS rebinding.
//!
//! A web site can let its own name resolve to this machine. For the browser, the site's page and this API then have one
//! origin: the page may read and post orders. Only the name in `Host` reveals the attack. HTTP/1.0 programs may send no
//! `Host`; a browser always sends it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderValue, Request, Response, Uri};

use crate::BadSetting;

/// The names of this machine.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The accepted names of the API.
#[derive(Debug)]
pub(crate) enum Hosts {
    /// Any name: the API listens to other machines, and nobody said by what names.
    Any,
    /// Only these names, in lower case, with any port.
    Only(Vec<String>),
}

/// Parses the name of a host, for `--allow-host`.
///
/// # Errors
/// [`BadSetting`] for anything else.
pub fn host_name(text: &str) -> Result<String, BadSetting> {
    let authority = text.parse::<Authority>().ok().filter(|authority| authority.host() == text && !text.is_empty());
    let advice = "give a host's name alone, such as orders.internal, without http:// and without a port";
    authority.map(|_| text.to_ascii_lowercase()).ok_or_else(|| BadSetting::new(advice))
}

/// The base URL of this API as services reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    text: String,
    host: String,
}

impl PublicUrl {
    /// Parses it, for `--public-url`.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub fn parse(text: &str) -> Result<Self, BadSetting> {
        let uri = text.parse::<Uri>().unwrap_or_default();
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        let authority =
            uri.authority().filter(|authority| is_web && uri.query().is_none() && !authority.as_str().contains('@'));
        let advice = "give the URL of this API, such as https://orders.example.com, without a query";
        let host = authority.ok_or_else(|| BadSetting::new(advice))?.host().to_ascii_lowercase();
        Ok(Self { text: text.to_owned(), host })
    }

    /// The URL of an API at this address.
    pub(crate) fn of(address: SocketAddr, has_tls: bool) -> Self {
        // Nobody can call the address that stands for all of them.
        let ip = match address.ip() {
            IpAddr::V4(ip) => IpAddr::V4(if ip.is_unspecified() { Ipv4Addr::LOCALHOST } else { ip }),
            IpAddr::V6(ip) => IpAddr::V6(if ip.is_unspecified() { Ipv6Addr::LOCALHOST } else { ip }),
        };
        let authority = SocketAddr::new(ip, address.port());
        let scheme = if has_tls { "https" } else { "http" };
        Self { text: format!("{scheme}://{authority}"), host: String::new() }
    }

    /// The URL.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of its host.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl Hosts {
    /// The names of an API that is bound to `address`, and the `allowed` ones.
    pub(crate) fn of(address: SocketAddr, allowed: &[String]) -> Self {
        let ip = address.ip();
        if !ip.to_canonical().is_loopback() && allowed.is_empty() {
            return Self::Any;
        }
        let bound = match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let own = OWN.map(str::to_owned).into_iter().chain([bound]);
        Self::Only(own.chain(allowed.iter().map(|name| name.to_ascii_lowercase())).collect())
    }

    /// The answer to a request with another name.
    pub(crate) fn refuse(&self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        (!self.accept(request)).then(api::misdirected)
    }

    /// Whether a request has an accepted name.
    pub(crate) fn accept(&self, request: &Request<Bytes>) -> bool {
        let Self::Only(names) = self else { return true };
        let is_known = |authority: &Authority| {
            let has_user = authority.as_str().contains('@');
            !has_user && names.iter().any(|name| name.eq_ignore_ascii_case(authority.host()))
        };
        let parsed = |value: &HeaderValue| value.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
        let mut given = request.headers().get_all(HOST).iter();
        given.all(|value| parsed(value).as_ref().is_some_and(is_known))
            && request.uri().authority().is_none_or(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an API bound to `address` accepts a request with these hosts.
    fn admitted(address: &str, allowed: &[&str], uri: &str, hosts: &[&str]) -> bool {
        let allowed: Vec<String> = allowed.iter().map(|name| host_name(name).unwrap()).collect();
        let mut request = Request::get(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        Hosts::of(address.parse().unwrap(), &allowed).refuse(&request.body(Bytes::new()).unwrap()).is_none()
    }

    #[test]
    fn on_loopback_this_machines_own_names_get_in_with_any_port() {
        for host in ["localhost", "LocalHost:3000", "127.0.0.1:9", "[::1]:3000", "127.0.0.2:3000"] {
            assert!(admitted("127.0.0.2:3000", &[], "/orders", &[host]), "{host}");
        }
        assert!(admitted("[::1]:3000", &[], "/orders", &["[::1]:3000"]));
        assert!(admitted("127.0.0.1:3000", &[], "/orders", &[]), "HTTP/1.0 has no Host");
    }

    #[test]
    fn a_page_whose_name_leads_here_does_not_get_in() {
        for hosts in [
            &["evil.example:3000"][..],
            &["localhost.evil.example"],
            &["localhost@evil.example"],
            &["evil@localhost"],
            &["127.0.0.2"],
            &[""],
            &["not a host"],
            &["localhost", "evil.example"],
        ] {
            assert!(!admitted("127.0.0.1:3000", &[], "/orders", hosts), "{hosts:?}");
            assert!(!admitted("[::ffff:127.0.0.1]:3000", &[], "/orders", hosts), "{hosts:?}");
        }
        assert!(!admitted("127.0.0.1:3000", &[], "http://evil.example/orders", &["localhost"]));
    }

    #[test]
    fn a_name_that_was_allowed_gets_in_and_no_other() {
        let allowed = ["Orders.internal"];
        assert!(admitted("127.0.0.1:3000", &allowed, "/", &["orders.INTERNAL:8080"]));
        assert!(!admitted("127.0.0.1:3000", &allowed, "/", &["other.internal"]));
    }

    #[test]
    fn an_api_that_others_reach_is_called_what_they_like() {
        assert!(admitted("0.0.0.0:3000", &[], "/", &["orders.example"]));
        assert!(admitted("192.0.2.1:3000", &[], "/", &["orders.example"]));
    }

    #[test]
    fn one_that_others_reach_under_a_name_that_was_allowed_has_no_other() {
        let allowed = ["orders.example"];
        for host in ["orders.example", "localhost:3000", "192.0.2.1"] {
            assert!(admitted("192.0.2.1:3000", &allowed, "/", &[host]), "{host}");
        }
        assert!(!admitted("0.0.0.0:3000", &allowed, "/", &["evil.example"]));
    }

    #[test]
    fn services_call_an_api_by_its_address_and_with_tls_if_it_has_a_certificate() {
        for (address, has_tls, url) in [
            ("127.0.0.1:3000", false, "http://127.0.0.1:3000"),
            ("0.0.0.0:3000", true, "https://127.0.0.1:3000"),
            ("[::]:3000", true, "https://[::1]:3000"),
        ] {
            assert_eq!(PublicUrl::of(address.parse().unwrap(), has_tls).as_str(), url);
        }
    }

    #[test]
    fn a_name_is_a_name_alone() {
        for text in ["http://a.example", "a.example:80", "u@a.example", "", "a b", "a/b"] {
            assert!(host_name(text).is_err(), "{text}");
        }
    }
}
