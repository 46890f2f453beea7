//! Tokens that an issuer signed.

use super::*;

/// The modulus of a key whose other half is thrown away.
const RSA_MODULUS: [&str; 4] = [
    "0IxUbnqSCy8gxGy2BPBf1ge6DAWd6_ke4lj1r_hyY0r17zK0NihXqU5vygyHTFzHezQvhbgZJUlFw7DaxlFQVAQxbSFnfTWDjGGi",
    "f1KRoLLmBzbEFWkpRwRamJ2-7exlryo8MkShxwGc76M7Klb_IS83ea3oomP3XDwrOn3o20QRa1CzqXJkOlV2Zxo1zUhRMus0BJ0r",
    "qJq27FN5-ZpsWw7-fMNu48LrTFIcbVFbNZUfP5074gvLwb4WaIp1I_Fa4MBFPk70MSqoQNcSp0z8RXX8Ark60zj76Gt_NqDz9NnU",
    "k3nS3hS5qFv7C5vxXB-s9mUMC_23aT2jJ2k0CL-6Ww",
];
/// A token of that key for `ISSUER` and the audience `orders`, until the year 4096.
const RSA_TOKEN: [&str; 6] = [
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUuY29tIiwiYXVkIjoib3JkZXJ",
    "zIiwic3ViIjoic2hvcCIsImV4cCI6NjcwOTI4NTQ0MDAsInJvbGVzIjpbImFwcGxpY2F0aW9uIl19.kPVehrJKxjJ_W2I2jlJeiG",
    "wE-t1zwgE2aYwAuwwIqG8FiMS5L6ETgI7O0wPt7kiOzj_t-oEcFpJLiF3z6wVQsCgWf-1QfZIXRT86R2WNKjF5LL26XBd7x8UkpI",
    "4f2CXJz5frrcISZJx58K5EeY8Zp89l7eqn_NZvMmkYzobi2RzUoZ5wLRxLNqV_ejhyuUK4fG_RO8rAVx0NeSadp5zT4xGQDmhPpU",
    "X_UO9aXJi2r3dzAzIbe2IpXotasdwsERJqtaTdGXonWcvancTHRbnK6odczNH92HD0u-71W83-3dHVnFp_3gBMjuLUX2PMV3hoa5",
    "uxhRVVa1y1VSF7aktagw",
];

#[test]
fn a_token_of_each_kind_of_key_names_its_caller() {
    let caller = Caller::with("ada", &[Role::Operator], None);
    for signer in [Signer::ed("a"), Signer::ec("a")] {
        let token = signer.token(&claims("aud", json!(["shop", "orders"])));
        assert_eq!(verified(&token, &signer.key(), &expected(ISSUER)).as_ref(), Ok(&caller));
    }
    let rsa = json!({"kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig", "e": "AQAB", "n": RSA_MODULUS.concat()});
    let shop = Caller::with("shop", &[Role::Application], None);
    assert_eq!(verified(&RSA_TOKEN.concat(), &key(rsa).unwrap(), &expected(ISSUER)), Ok(shop));
}

#[test]
fn rule_42_a_token_that_is_forged_or_for_somebody_else_names_nobody() {
    let (signer, other) = (Signer::ed("a"), Signer::ed("a"));
    let refused = |token: &str| verified(token, &signer.key(), &expected(ISSUER)).is_err();
    let good = signer.token(&claims("aud", json!("orders")));
    assert!(!refused(&good));
    let now = get_current_timestamp();
    for (name, value) in [
        ("exp", json!(now - LEEWAY_S - 30)),
        ("exp", Value::Null),
        ("exp", json!((now + 600).to_string())),
        ("nbf", json!(now + LEEWAY_S + 30)),
        ("nbf", json!("tomorrow")),
        ("aud", json!("shop")),
        ("aud", json!(["shop"])),
        ("aud", Value::Null),
        ("iss", json!("https://login.example.org")),
        ("iss", Value::Null),
        ("iss", json!([ISSUER])),
        ("iss", json!([ISSUER, "https://login.example.org"])),
        ("sub", Value::Null),
        ("sub", json!(7)),
        ("sub", json!("")),
        ("sub", json!("local")),
        ("sub", json!("anonymous")),
        ("sub", json!("ada [night-desk]")),
        ("sub", json!("x".repeat(129))),
        ("roles", Value::Null),
        ("roles", json!([])),
        ("roles", json!(["root", 7])),
        ("roles", json!(["root"])),
        ("roles", json!({"operator": true})),
        ("reply_channels", json!(7)),
        ("reply_channels", json!({})),
    ] {
        assert!(refused(&signer.token(&claims(name, value.clone()))), "{name} {value}");
    }
    let typed =
        |kind: &str| signer.signed(&json!({"alg": "EdDSA", "kid": "a", "typ": kind}), &claims("aud", json!("orders")));
    for (kind, is_refused) in [
        ("JWT", false),
        ("at+jwt", false),
        ("application/at+JWT", false),
        ("dpop+jwt", true),
        ("logout+jwt", true),
        ("", true),
    ] {
        assert_eq!(refused(&typed(kind)), is_refused, "{kind}");
    }
    // Clocks differ.
    for (name, value) in [("exp", now - LEEWAY_S / 2), ("nbf", now + LEEWAY_S / 2)] {
        assert!(!refused(&signer.token(&claims(name, json!(value)))), "{name}");
    }
    assert!(refused(&other.token(&claims("aud", json!("orders")))), "the signature of another key");
    let parts: Vec<&str> = good.split('.').collect();
    let administrator = text(claims("roles", json!(["administrator"])).to_string());
    for forged in [
        format!("{}.{administrator}.{}", parts[0], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}.{}", parts[2]),
        String::new(),
    ] {
        assert!(refused(&forged), "{forged}");
    }
}

#[test]
fn rule_42_a_token_does_not_choose_its_algorithm() {
    let signer = Signer::ed("a");
    let claims = claims("aud", json!("orders"));
    let refused = |token: &str| verified(token, &signer.key(), &expected(ISSUER)).is_err();
    for algorithm in ["none", "None", "HS256", "ES256", "RS256", "PS256", ""] {
        assert!(refused(&signer.signed(&json!({"alg": algorithm, "kid": "a"}), &claims)), "{algorithm}");
    }
    // HMAC with what everybody knows.
    let public = URL_SAFE_NO_PAD.decode(signer.jwk()["x"].as_str().unwrap()).unwrap();
    let message = format!("{}.{}", text(r#"{"alg":"HS256","kid":"a"}"#), text(claims.to_string()));
    let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public), message.as_bytes());
    assert!(refused(&format!("{message}.{}", text(tag))));
    assert!(refused(&format!("{}.{}.", text(r#"{"alg":"none"}"#), text(claims.to_string()))));
    assert!(refused(&signer.signed(&json!({"alg": "EdDSA", "kid": "a", "crit": ["exp"]}), &claims)), "critical");
    // The key in its own header is nobody's.
    let own = Signer::ed("b");
    assert!(refused(&own.signed(&json!({"alg": "EdDSA", "kid": "a", "jwk": own.jwk()}), &claims)));
}

#[test]
fn keys_that_do_not_verify_here_are_left_out_and_a_token_without_an_id_has_the_only_key() {
    let modulus = RSA_MODULUS.concat();
    for jwk in [
        json!({"kty": "oct", "k": "c2VjcmV0", "kid": "a"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "use": "enc"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RS512"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RSA-OAEP"}),
        json!({"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}),
        json!({"kty": "OKP", "crv": "X25519", "x": "AA"}),
    ] {
        let parsed = serde_json::from_value::<Jwk>(jwk.clone());
        assert!(parsed.ok().as_ref().and_then(Key::of).is_none(), "{jwk}");
    }
    let (first, second) = (Signer::ed("a"), Signer::ed("b"));
    let keys = [first.key(), second.key()];
    let id_of =
        |token: &str, keys: &[Key]| key_of(&decode_header(token).unwrap(), keys).map(|key| key.id.clone().unwrap());
    let claims = claims("aud", json!("orders"));
    assert_eq!(id_of(&second.token(&claims), &keys).as_deref(), Some("b"));
    let without = second.signed(&json!({"alg": "EdDSA"}), &claims);
    assert_eq!((id_of(&without, &keys), id_of(&without, &keys[1..]).as_deref()), (None, Some("b")));
    assert_eq!(id_of(&second.token(&claims), &keys[..1]), None);
}

#[test]
fn roles_and_reply_channels_are_read_from_the_claims() {
    let signer = Signer::ed("a");
    let of = |roles_claim: &str, name: &str, value: Value| {
        let expected = JwtSettings { roles_claim: roles_claim.into(), ..expected(ISSUER) };
        verified(&signer.token(&claims(name, value)), &signer.key(), &expected)
    };
    let both = [Role::Viewer, Role::Approver];
    let with = |channels: Option<&[&str]>| {
        let channels = channels.map(|names| names.iter().map(|name| Arc::from(*name)).collect());
        Ok(Caller::with("ada", &[Role::Operator], channels))
    };
    let ada = Ok(Caller::with("ada", &both, None));
    assert_eq!(of("scope", "scope", json!("openid viewer approver")), ada);
    assert_eq!(of("/realm_access/roles", "realm_access", json!({"roles": ["viewer", "uma", "approver"]})), ada);
    assert_eq!(of("https://shop.example/roles", "https://shop.example/roles", json!(["viewer", "approver"])), ada);
    assert_eq!(of("groups", "roles", json!(["viewer"])), Err(Refusal::NoRole("groups".into())));
    assert_eq!(of("roles", "reply_channels", json!(["shop", "night"])), with(Some(&["shop", "night"])));
    assert_eq!(of("roles", "reply_channels", json!("shop")), with(Some(&["shop"])));
    assert_eq!(of("roles", "reply_channels", json!([])), with(Some(&[])));
    assert_eq!(of("roles", "reply_channels", Value::Null), with(None));
}
