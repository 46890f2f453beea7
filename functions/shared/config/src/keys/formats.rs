//! The kinds of texts and names in `stepwarden.toml`. No fault repeats a text that may be a secret.

use std::net::IpAddr;

use domain::header;
use domain::keys::{Format, Kind};
use domain::limits::NAME_CHARS_MAX;
use domain::search::Pointer;
use domain::template::BodyCondition;
use domain::workflow::{ORDERS, PEOPLE, is_name};
use http::{HeaderName, HeaderValue, Uri};

use crate::reference::Reference;
use crate::remote::{Operations, Remote};

/// Longest name of an operation or an event, in characters.
const NAME_OF_SERVICE_CHARS_MAX: usize = 128;
/// Longest value of a header, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 4 * 1024;
const NO_URL: &str = "must be an https URL";

type Checked = Result<(), String>;

const fn text(format: &'static Format) -> Kind {
    Kind::Text(format)
}

fn must(is_good: bool, problem: impl Into<String>) -> Checked {
    if is_good { Ok(()) } else { Err(problem.into()) }
}

pub(super) const REFERENCE: Kind = text(&Format { what: "a reference", check: reference });
pub(super) const URL: Kind = text(&Format { what: "a URL", check: base_url });
pub(super) const ADDRESS: Kind = text(&Format { what: "a URL, a reference", check: address });
pub(super) const CHANNEL_URL: Kind = text(&Format {
    what: "a URL",
    check: |text| {
        must(
            is_web_address(text.trim()),
            "must be a URL such as \"http://localhost:9000/replies\", without a user or a password",
        )
    },
});
pub(super) const OPERATION: Kind = text(&Format { what: "a path", check: operation });
pub(super) const POINTER: Kind = text(&Format {
    what: "a JSON pointer",
    check: |text| Pointer::parse(text.trim()).map(drop).map_err(|problem| problem.to_string()),
});
pub(super) const CONDITION: Kind = text(&Format {
    what: "a comparison",
    check: |text| BodyCondition::parse(text).map(drop).map_err(|problem| problem.to_string()),
});
pub(super) const EVENT: Kind = text(&Format {
    what: "a name",
    check: |text| {
        let problem = format!("must be the name of an event, of 1 to {NAME_OF_SERVICE_CHARS_MAX} characters");
        must((1..=NAME_OF_SERVICE_CHARS_MAX).contains(&text.trim().chars().count()), problem)
    },
});
pub(super) const STEP_NAME: Kind =
    text(&Format { what: "a name", check: |text| must(is_name(text.trim()), "must be the name of a step") });
pub(super) const USER: Kind =
    text(&Format { what: "a text", check: |text| must(!text.contains(':'), "must not contain a colon") });
pub(super) const SCOPE: Kind = text(&Format {
    what: "a name",
    check: |text| {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_good = !text.trim().is_empty() && text.trim().bytes().all(is_good);
        must(is_good, "must be a name such as \"execute-api\" or \"eu-central-1\"")
    },
});
pub(super) const MAILBOX: Kind = text(&Format { what: "an address", check: mailbox });
pub(super) const MAIL_SERVER: Kind = text(&Format {
    what: "a URL",
    check: |text| {
        let problem = "must be a URL such as \"smtps://mail.example.com\" or \"smtp://mail.example.com:587\"";
        must(mail_server(text.trim()).is_some(), problem)
    },
});
pub(super) const HEADER_VALUE: Kind = text(&Format {
    what: "a text",
    check: |text| {
        let problem = format!("cannot be sent: give a text in one line, of at most {HEADER_BYTES_MAX} bytes");
        must(HeaderValue::try_from(text.trim()).is_ok_and(|value| value.len() <= HEADER_BYTES_MAX), problem)
    },
});

pub(super) fn agent_name(name: &str) -> Checked {
    must(name != PEOPLE, "is reserved: it stands for the people who decide on approvals")?;
    must(name != ORDERS, "is reserved: it stands for the orders that steps make")?;
    must(is_name(name), format!("is not a valid name: use 1 to {NAME_CHARS_MAX} letters, digits, '-' and '_'"))
}

pub(super) fn plain_name(name: &str) -> Checked {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_good = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_plain);
    must(is_good, format!("is not a valid name: use 1 to {NAME_CHARS_MAX} letters, digits, '-', '_' and '.'"))
}

pub(super) fn status(name: &str) -> Checked {
    let is_status = name.parse().is_ok_and(|status: u16| (200..=599).contains(&status));
    must(is_status, "must be a status from 200 to 599")
}

pub(super) fn header_name(name: &str) -> Checked {
    let name = HeaderName::try_from(name).map_err(|_| "is not a valid name of a header".to_owned())?;
    must(!header::is_own(name.as_str()), "is set by the agent itself: leave it out")
}

/// The value may be a secret by mistake, so no fault repeats it.
fn reference(text: &str) -> Checked {
    let Some(reference) = Reference::parse(text.trim()) else {
        return Err("must be a reference to a secret, such as \"env:PAYMENT_TOKEN\", \"file:/run/secrets/payment\", \
                    \"ssm:NAME\" or \"secretsmanager:NAME\""
            .to_owned());
    };
    must(
        !reference.is_of_this_program(),
        "would send credentials of this program to a service: name a secret of the service. To sign with these \
         credentials, use sigv4 without access_key",
    )
}

fn base_url(text: &str) -> Checked {
    // The operations are checked by themselves.
    let remote = Remote::new(text, Operations { forward: "forward", undo: "undo" });
    remote.map(drop).map_err(|fault| format!("cannot be used: {fault}"))
}

/// A URL, or a reference. An unencrypted one may only lead to this machine.
fn address(text: &str) -> Checked {
    if Reference::parse(text.trim()).is_some() {
        return reference(text);
    }
    web_address(text.trim()).map(drop).map_err(|fault| {
        let or = if fault == NO_URL { ", or a reference to one such as \"env:ALERT_URL\"" } else { "" };
        format!("{fault}{or}")
    })
}

/// Checks the URL of a webhook.
///
/// # Errors
/// What it must be.
pub fn web_address(text: &str) -> Result<Uri, &'static str> {
    let uri: Option<Uri> = text.parse().ok();
    let uri = uri.filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    if uri.as_ref().and_then(Uri::authority).is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("must not have a user or a password: they are not sent");
    }
    match uri {
        Some(uri) if uri.scheme_str() == Some("https") => Ok(uri),
        Some(uri) if uri.scheme_str() == Some("http") && uri.host().is_some_and(is_loopback) => Ok(uri),
        Some(uri) if uri.scheme_str() == Some("http") => Err("is not encrypted: give an https URL"),
        Some(_) | None => Err(NO_URL),
    }
}

/// Whether a text is the URL of a reply channel.
#[must_use]
pub fn is_web_address(text: &str) -> bool {
    let uri: Option<Uri> = text.parse().ok();
    uri.is_some_and(|uri| {
        let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        is_plain
            && matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    })
}

/// How a connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// From the beginning: `smtps://`.
    Tls,
    /// After `STARTTLS`, which the server must offer: `smtp://`.
    StartTls,
    /// Not at all: `smtp://` of this machine.
    None,
}

/// The host, the port and the encryption of a mail server.
#[must_use]
pub(crate) fn mail_server(text: &str) -> Option<(String, u16, Encryption)> {
    let uri: Uri = text.parse().ok()?;
    let host = uri.host().filter(|host| !host.is_empty())?;
    let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none() && !text.contains('@');
    let (encryption, port) = match uri.scheme_str() {
        Some("smtps") => (Encryption::Tls, 465),
        Some("smtp") if is_loopback(host) => (Encryption::None, 25),
        Some("smtp") => (Encryption::StartTls, 587),
        _ => return None,
    };
    is_bare.then(|| (host.trim_matches(['[', ']']).to_owned(), uri.port_u16().unwrap_or(port), encryption))
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.map_or(host.eq_ignore_ascii_case("localhost"), |ip| ip.to_canonical().is_loopback())
}

/// An address of the form `name@host`.
fn mailbox(text: &str) -> Checked {
    let is_plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && !"<>(),;:\"\\[]@".contains(c));
    let is_good = text.trim().split_once('@').is_some_and(|(name, host)| is_plain(name) && is_plain(host));
    must(is_good, "must be an address such as \"ops@example.com\"")
}

fn operation(text: &str) -> Checked {
    let is_segment = |segment: &str| {
        let mut bytes = segment.bytes();
        !["", ".", ".."].contains(&segment)
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte))
    };
    let text = text.trim();
    let problem = format!(
        "must be a path such as \"charge\" or \"v1/charges\", of letters, digits, - . _ ~ : and at most \
         {NAME_OF_SERVICE_CHARS_MAX} characters"
    );
    must(
        text.len() <= NAME_OF_SERVICE_CHARS_MAX && text.strip_suffix('/').unwrap_or(text).split('/').all(is_segment),
        problem,
    )
}

#[cfg(test)]
mod tests {
    use super::operation;

    #[test]
    fn an_operation_is_a_path_that_may_end_with_a_slash() {
        for text in ["charge", "v1/charges", "charges:create", "charge/", "v1/charges/"] {
            assert_eq!(operation(text), Ok(()), "{text}");
        }
        for text in ["", "/", "/charge", "a//", "a//b", "..", "a/../", "a?x=1", "a b", "{/Order/Ref}", "$charge"] {
            assert!(operation(text).is_err(), "{text}");
        }
    }
}
