//! Documents of orders, and outputs of services.

use domain::json::Json;
use domain::limits::{DOCUMENT_BYTES_MAX, OUTPUT_BYTES_MAX};

use super::spelling;

/// What is taken as a document is kept as it was sent, has one fingerprint over all its spellings, and can be looked into.
pub(super) fn run(input: &[u8]) {
    if let Ok(output) = Json::parse(input, OUTPUT_BYTES_MAX) {
        assert!(output.text().len() <= OUTPUT_BYTES_MAX);
        check(&output);
    }
    let Ok(document) = Json::document(input) else { return };
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    assert_eq!(document.text().as_bytes(), input.trim_ascii(), "a document is kept as it was sent");
    assert_eq!(document.check_unique(), Ok(()));
    assert_eq!(document.kind(), "an object");
    check(&document);
    for name in ["ReplyChannel", "CorrelationID", "Priority", "StandIn", ""] {
        if let Some(member) = document.member(name) {
            assert!(document.text().contains(member));
            check(&Json::parse(member.as_bytes(), input.len()).expect("a part of JSON"));
        }
    }
}

fn check(value: &Json) {
    let stored = serde_json::to_vec(value).expect("JSON");
    let read: Json = serde_json::from_slice(&stored).expect("what was stored");
    assert_eq!((&read, read.fingerprint()), (value, value.fingerprint()));
    let other = spelling::another(value.text());
    // The other spelling is longer, and it is the value and not its size that counts here.
    let other = Json::parse(other.as_bytes(), 16 * DOCUMENT_BYTES_MAX).expect("another spelling of JSON");
    assert_eq!(other.fingerprint(), value.fingerprint(), "{} is {}", other.text(), value.text());
}
