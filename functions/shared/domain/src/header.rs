//! Headers of HTTP: their names and values.

/// Headers of the protocol, and those that every call has. No file names them.
const OWN: [&str; 15] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "idempotency-key",
    "callback-url",
    "traceparent",
];
/// Headers whose value is always a secret.
const SECRET: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// Whether a text is the name of a header: a token of RFC 9110.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(is_token)
}

/// Whether the agent itself sets this header.
#[must_use]
pub fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Whether the value of this header is always a secret, which no file has.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    SECRET.iter().any(|secret| secret.eq_ignore_ascii_case(name))
}

/// Whether a text can be the value of a header: plain letters in one line, without blanks at its ends.
#[must_use]
pub fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim_ascii() == text
}
