use http::{HeaderName, HeaderValue};
use ring::hmac::sign;

use super::*;

const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The moment of the published example of Standard Webhooks.
const NOW: Timestamp = Timestamp::from_epoch_ms(1_614_265_330_000);
const BODY: &[u8] = br#"{"test": 2432232314}"#;

fn verifier(scheme: WebhookScheme, secrets: &[&str]) -> Verifier {
    let keys = secrets.iter().map(|secret| Some(key_of(scheme, &Secret::new(secret)).unwrap()));
    Verifier::new(scheme, keys.collect(), None).unwrap()
}

fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in of {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn hex_of(secret: &str, signed: &[u8]) -> String {
    hex::encode(sign(&Key::new(HMAC_SHA256, secret.as_bytes()), signed))
}

/// A genuine event of each scheme, with the secret `secret` for two of them.
fn genuine() -> [(WebhookScheme, &'static str, HeaderMap); 3] {
    let signed = [b"1614265330.", BODY].concat();
    let stripe = format!("t=1614265330,v1={},v0=of-another-scheme", hex_of("secret", &signed));
    let standard = [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ];
    [
        (WebhookScheme::StandardWebhooks, STANDARD_SECRET, headers(&standard)),
        (WebhookScheme::Stripe, "secret", headers(&[("stripe-signature", &stripe)])),
        (
            WebhookScheme::Github,
            "secret",
            headers(&[("x-hub-signature-256", &format!("sha256={}", hex_of("secret", BODY)))]),
        ),
    ]
}

#[test]
fn rule_41_the_published_examples_are_genuine() {
    for (scheme, secret, headers) in genuine() {
        assert_eq!(verifier(scheme, &[secret]).verify(&headers, BODY, NOW), Ok(()), "{scheme:?}");
    }
    let github =
        headers(&[("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")]);
    let verifier = verifier(WebhookScheme::Github, &["It's a Secret to Everybody"]);
    assert_eq!(verifier.verify(&github, b"Hello, World!", NOW), Ok(()));
}

#[test]
fn rule_41_an_event_that_is_altered_in_any_bit_is_refused() {
    for (scheme, secret, headers) in genuine() {
        let verifier = verifier(scheme, &[secret]);
        for at in 0..BODY.len() {
            for bit in 0..8 {
                let mut body = BODY.to_vec();
                body[at] ^= 1 << bit;
                assert_eq!(verifier.verify(&headers, &body, NOW), Err(Refusal::Forged), "{scheme:?}, byte {at}");
            }
        }
        assert_eq!(verifier.verify(&headers, b"", NOW), Err(Refusal::Forged));
        assert_eq!(verifier.verify(&headers, &[BODY, b" "].concat(), NOW), Err(Refusal::Forged));
        let mut refused = 0;
        for (name, value) in &headers {
            for at in 0..value.len() {
                for bit in 0..8 {
                    let mut altered = value.as_bytes().to_vec();
                    altered[at] ^= 1 << bit;
                    let (mut headers, Ok(value)) = (headers.clone(), HeaderValue::from_bytes(&altered)) else {
                        continue;
                    };
                    // What comes after the signature of Stripe's scheme is not looked at.
                    if altered.ends_with(b"v0=of-another-scheme") || scheme != WebhookScheme::Stripe {
                        headers.insert(name, value.clone());
                        assert!(verifier.verify(&headers, BODY, NOW).is_err(), "{scheme:?}: {name}: {value:?}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 400, "{refused}");
    }
}

#[test]
fn rule_41_an_event_without_its_headers_or_with_two_times_is_refused() {
    for (scheme, secret, headers) in genuine() {
        let verifier = verifier(scheme, &[secret]);
        for name in headers.keys() {
            let (mut without, mut twice) = (headers.clone(), headers.clone());
            without.remove(name);
            twice.append(name, headers[name].clone());
            let may_come_twice = name.as_str().contains("signature");
            for headers in [Some(without), (!may_come_twice).then_some(twice)].into_iter().flatten() {
                let refused = verifier.verify(&headers, BODY, NOW);
                assert!(matches!(refused, Err(Refusal::Malformed(_))), "{scheme:?}: {name}: {refused:?}");
            }
        }
    }
}

#[test]
fn rule_41_the_headers_have_one_form() {
    let hex = hex_of("secret", &[b"1614265330.", BODY].concat());
    let stripe = |value: &str| {
        verifier(WebhookScheme::Stripe, &["secret"]).verify(&headers(&[("stripe-signature", value)]), BODY, NOW)
    };
    assert_eq!(stripe(&format!("v1={hex},t=1614265330")), Ok(()), "in any order");
    let malformed = Err(Refusal::Malformed("Stripe-Signature"));
    for (value, expected) in [
        (format!("t=1614265330,t=1614265330,v1={hex}"), malformed),
        (format!("t=+1614265330,v1={hex}"), malformed),
        (format!("t=,v1={hex}"), malformed),
        (format!("t=99999999999999999999,v1={hex}"), malformed),
        (format!("t=9223372036854775807,v1={hex}"), malformed),
        (format!("v1={hex}"), malformed),
        ("t=1614265330,v1".to_owned(), malformed),
        (format!("t=1614265330,v1={}", hex.to_uppercase()), malformed),
        (format!("t=1614265330,v1={}", &hex[1..]), malformed),
        (format!("t=1614265330,v1={}", &hex[2..]), Err(Refusal::Forged)),
        (format!("t=1614265330,v0={hex}"), malformed),
        ("t=1614265330".to_owned(), malformed),
        (format!("t=1614265330{},v1={hex}", ",v1=00".repeat(200)), Ok(())),
    ] {
        assert_eq!(stripe(&value), expected, "{value}");
    }
    let github = |value: &str| {
        verifier(WebhookScheme::Github, &["secret"]).verify(&headers(&[("x-hub-signature-256", value)]), BODY, NOW)
    };
    let hex = hex_of("secret", BODY);
    for value in [hex.clone(), format!("sha1={hex}"), "sha256=".to_owned(), format!("sha256={}", hex.to_uppercase())] {
        assert!(github(&value).is_err(), "{value}");
    }
    let standard = |value: &str| {
        let [(.., mut of_example), ..] = genuine();
        of_example.insert("webhook-signature", HeaderValue::from_str(value).unwrap());
        verifier(WebhookScheme::StandardWebhooks, &[STANDARD_SECRET]).verify(&of_example, BODY, NOW)
    };
    let right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(standard(&format!("v1a,ignored v1,AAAA {right}")), Ok(()), "one of several");
    assert_eq!(standard(&format!("{}v1,AAAA, {right}", "v1,AAAA ".repeat(200))), Ok(()), "the last of many");
    for value in ["", "v1,", &right[3..], &format!("v2,{}", &right[3..]), right.trim_end_matches('=')] {
        assert!(standard(value).is_err(), "{value}");
    }
}

#[test]
fn rule_41_one_signature_that_cannot_be_read_spoils_none_beside_it() {
    for (scheme, secret, genuine) in genuine() {
        let (name, bad, between): (_, &[u8], _) = match scheme {
            WebhookScheme::StandardWebhooks => ("webhook-signature", b"v1,\xe9 v1,%% v1,! v1", " "),
            WebhookScheme::Stripe => ("stripe-signature", b"v1=\xe9,v1=no-hex,broken", ","),
            WebhookScheme::Github => ("x-hub-signature-256", b"sha256=\xe9,sha256=no-hex", ","),
        };
        let good = genuine[name].clone();
        let (verifier, in_one) = (verifier(scheme, &[secret]), [bad, good.as_bytes()].join(between.as_bytes()));
        let [bad, in_one] = [bad, &in_one].map(|value| HeaderValue::from_bytes(value).unwrap());
        for values in [vec![&bad, &good], vec![&good, &bad], vec![&in_one]] {
            let mut headers = genuine.clone();
            headers.remove(name);
            for value in values {
                headers.append(name, value.clone());
            }
            assert_eq!(verifier.verify(&headers, BODY, NOW), Ok(()), "{scheme:?}");
        }
        let mut alone = genuine.clone();
        alone.insert(name, bad);
        assert!(matches!(verifier.verify(&alone, BODY, NOW), Err(Refusal::Malformed(_))), "{scheme:?}");
    }
}

#[test]
fn rule_41_each_header_of_stripe_is_a_set_of_its_own_and_too_many_are_not_looked_at() {
    let [_, (scheme, secret, genuine), _] = genuine();
    let verify = |bad: usize| {
        let mut headers = HeaderMap::new();
        for _ in 0..bad {
            headers.append("stripe-signature", HeaderValue::from_static("t=1614265330,v1=00"));
        }
        headers.append("stripe-signature", genuine["stripe-signature"].clone());
        verifier(scheme, &[secret]).verify(&headers, BODY, NOW)
    };
    assert_eq!((verify(1), verify(SETS_MAX - 1)), (Ok(()), Ok(())));
    assert_eq!(verify(SETS_MAX), Err(Refusal::Malformed("Stripe-Signature")));
}

#[test]
fn rule_41_standard_webhooks_may_have_the_names_of_the_library_that_it_came_from() {
    let [(scheme, secret, standard), ..] = genuine();
    let verify = |headers: &HeaderMap| verifier(scheme, &[secret]).verify(headers, BODY, NOW);
    let mut older = HeaderMap::new();
    for [to, from] in [["svix-id", "webhook-id"], ["svix-timestamp", "webhook-timestamp"]] {
        older.insert(to, standard[from].clone());
    }
    assert_eq!(verify(&older), Err(Refusal::Malformed("webhook-id")));
    older.insert("svix-signature", standard["webhook-signature"].clone());
    assert_eq!(verify(&older), Ok(()));
    // Some send both, and one set that is incomplete spoils no other.
    let both: HeaderMap = standard.iter().chain(&older).map(|(name, value)| (name.clone(), value.clone())).collect();
    assert_eq!(verify(&both), Ok(()));
    // One that is bad in any other way does not, either.
    for (name, bad) in [("signature", "v1,AAAA"), ("timestamp", "1"), ("id", "another")] {
        for set in ["webhook", "svix"] {
            let mut both = both.clone();
            both.insert(HeaderName::try_from(format!("{set}-{name}")).unwrap(), HeaderValue::from_static(bad));
            assert_eq!(verify(&both), Ok(()), "{set}-{name}");
        }
    }
    let mut forged = both;
    forged.insert("webhook-timestamp", HeaderValue::from_static("1"));
    forged.insert("svix-signature", HeaderValue::from_static("v1,AAAA"));
    assert_eq!(verify(&forged), Err(Refusal::Forged), "the set that was looked at furthest");
    older.insert("webhook-id", standard["webhook-id"].clone());
    assert_eq!(verify(&older), Ok(()));
    let mut mixed = standard.clone();
    mixed.remove("webhook-timestamp");
    mixed.insert("svix-timestamp", standard["webhook-timestamp"].clone());
    assert!(verify(&mixed).is_err(), "a set is whole");
}

#[test]
fn rule_41_a_time_more_than_five_minutes_from_now_is_refused_where_the_scheme_has_one() {
    for (scheme, secret, headers) in genuine() {
        let verify = |off_ms: i64| {
            let now = Timestamp::from_epoch_ms(NOW.epoch_ms() + off_ms);
            verifier(scheme, &[secret]).verify(&headers, BODY, now)
        };
        let has_time = scheme != WebhookScheme::Github;
        let too_far = if has_time { Err(Refusal::Stale) } else { Ok(()) };
        for off_ms in [300_000, -300_000] {
            assert_eq!((verify(off_ms), verify(off_ms + off_ms.signum())), (Ok(()), too_far), "{scheme:?}");
        }
    }
}

#[test]
fn rule_41_each_of_several_secrets_is_good_and_no_other_is() {
    for (scheme, secret, headers) in genuine() {
        let other = match scheme {
            WebhookScheme::StandardWebhooks => "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            WebhookScheme::Stripe | WebhookScheme::Github => "other",
        };
        for secrets in [vec![secret, other], vec![other, secret]] {
            assert_eq!(verifier(scheme, &secrets).verify(&headers, BODY, NOW), Ok(()));
        }
        assert_eq!(verifier(scheme, &[other]).verify(&headers, BODY, NOW), Err(Refusal::Forged));
    }
}

#[test]
fn rule_41_a_secret_has_the_form_of_its_scheme_and_is_never_shown() {
    let key = |scheme, text: &str| key_of(scheme, &Secret::new(text)).map(|_| ());
    let fault = "must be whsec_ and the base64 of 24 to 64 bytes".to_owned();
    assert_eq!(key(WebhookScheme::StandardWebhooks, "plain"), Err(fault));
    for scheme in [WebhookScheme::Stripe, WebhookScheme::Github] {
        assert_eq!((key(scheme, "plain"), key(scheme, "")), (Ok(()), Err("is empty".to_owned())));
    }
    let shown = format!("{:?}", verifier(WebhookScheme::Stripe, &["hidden"]));
    assert!(!shown.contains("hidden") && !shown.contains("104"), "{shown}");
}
