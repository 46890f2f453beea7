//! Callers that a proxy names.

use super::*;

const USER: &str = "x-forwarded-user";
const ROLES: &str = "x-forwarded-roles";

/// The caller of a request with these headers from this address, or from the socket.
async fn by_proxy(peers: &str, from: Option<&str>, pairs: &[(&'static str, &str)]) -> Result<Caller, Stranger> {
    let settings = ProxySettings {
        peers: peers.split(',').map(|peer| peer.parse().unwrap()).collect(),
        name: HeaderName::from_static(USER),
        roles: HeaderName::from_static(ROLES),
    };
    let address = from.map(|address| address.parse().unwrap());
    let peer = Peer { network: "192.0.2.9".parse().unwrap(), address, is_ahead: false };
    Callers::knowing(None, None, Some(settings)).unwrap().of(&headers(pairs), Some(&peer)).await
}

#[tokio::test]
async fn rule_42_a_proxy_names_the_caller_and_nobody_else_does() {
    let named = [(USER, "ada"), (ROLES, "operator, root,approver")];
    let ada = Ok(Caller::with("ada", &[Role::Operator, Role::Approver], None));
    for (peers, from) in [
        ("192.0.2.1", Some("192.0.2.1")),
        ("192.0.2.7,192.0.2.1", Some("::ffff:192.0.2.1")),
        ("2001:db8::1", Some("2001:db8::1")),
        ("unix", None),
    ] {
        assert_eq!(by_proxy(peers, from, &named).await, ada, "{peers}");
    }
    for (peers, from) in [
        ("192.0.2.1", Some("192.0.2.2")),
        ("2001:db8::1", Some("2001:db8::2")),
        ("192.0.2.1", None),
        ("unix", Some("127.0.0.1")),
    ] {
        for pairs in [&named[..], &named[..1], &named[1..]] {
            assert_eq!(by_proxy(peers, from, pairs).await, Err(Stranger), "{peers} {pairs:?}");
        }
        assert_eq!(by_proxy(peers, from, &[]).await, Ok(Caller::unknown()), "it names nobody");
    }
    assert_eq!(refusal(Stranger).status(), 400);
}

#[tokio::test]
async fn whom_a_proxy_names_in_two_ways_or_without_a_role_is_nobody() {
    for pairs in [
        &[(USER, "ada")][..],
        &[(ROLES, "operator")],
        &[(USER, "ada"), (ROLES, "root")],
        &[(USER, ""), (ROLES, "operator")],
        &[(USER, "local"), (ROLES, "operator")],
        &[(USER, "ada [night-desk]"), (ROLES, "operator")],
        &[(USER, "ada"), (USER, "ada"), (ROLES, "operator")],
        &[(USER, "ada"), (ROLES, "viewer"), (ROLES, "operator")],
        &[],
    ] {
        assert_eq!(by_proxy("192.0.2.1", Some("192.0.2.1"), pairs).await, Ok(Caller::unknown()), "{pairs:?}");
    }
}

#[test]
fn a_proxy_is_an_address_or_the_socket() {
    assert_eq!("unix".parse(), Ok(TrustedPeer::Socket));
    assert_eq!("::ffff:10.0.0.7".parse(), Ok(TrustedPeer::Address("10.0.0.7".parse().unwrap())));
    for text in ["", "proxy.internal", "10.0.0.0/8", "10.0.0.7:80"] {
        assert!(text.parse::<TrustedPeer>().is_err(), "{text}");
    }
}
