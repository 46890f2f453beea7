//! The sinks of alerts in `stepwarden.toml`: where people are told (rule 29). Secrets are references, never values.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::limits::NAME_CHARS_MAX;
use domain::located::{Entry, Reader, Table};
use http::Uri;

use crate::auth::Placed;
use crate::reference::Reference;
use crate::settings::{is_loopback, reference, required_text};

/// Sinks of one configuration.
pub const SINKS_MAX: usize = 10;
const NO_URL: &str = "must be an https URL";
/// Receivers of one e-mail.
const RECEIVERS_MAX: usize = 20;

/// All sinks, by name.
pub type Sinks = BTreeMap<Arc<str>, Sink>;

/// Where an alert is told.
#[derive(Debug, Clone)]
pub enum Sink {
    /// The CloudEvent is posted to this URL.
    Webhook {
        /// The URL.
        url: Address,
        /// The secret of Standard Webhooks.
        signature: Option<Placed>,
    },
    /// The words are posted as `{"text": …}`, which Slack and others like it show.
    Slack {
        /// The URL.
        url: Address,
    },
    /// An e-mail.
    Email(Email),
}

impl Sink {
    /// Where it leads, for people, without a secret.
    #[must_use]
    pub fn shown(&self) -> String {
        let (kind, url) = match self {
            Self::Webhook { url, .. } => ("webhook", url),
            Self::Slack { url } => ("Slack", url),
            Self::Email(email) => return format!("e-mail to {}", email.to.join(", ")),
        };
        match url {
            Address::Url(url) => format!(
                "{kind} {}",
                web_address(url).ok().and_then(|url| Some(url.host()?.to_owned())).unwrap_or_default()
            ),
            Address::Secret(placed) => format!("{kind} {}", placed.reference),
        }
    }
}

/// A URL, or the reference to one that is a secret itself.
#[derive(Debug, Clone)]
pub enum Address {
    /// The URL.
    Url(String),
    /// Its reference.
    Secret(Placed),
}

/// A mail server, and whom it sends to.
#[derive(Debug, Clone)]
pub struct Email {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted.
    pub encryption: Encryption,
    /// The sender.
    pub from: String,
    /// The receivers.
    pub to: Vec<String>,
    /// The name and the password for the server.
    pub login: Option<(String, Placed)>,
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

/// Reads the tables `[alerts.NAME]`.
pub(crate) fn read(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Sinks {
    let mut sinks = Sinks::new();
    let Some(mut table) = reader.table(entry) else { return sinks };
    let (at, path) = (table.at, table.path.clone());
    for (name, at, entry) in table.take_all() {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !(1..=NAME_CHARS_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
            let words = format!("use 1 to {NAME_CHARS_MAX} letters, digits, '-', '_' and '.'");
            reader.blame(at, format!("{} is not a valid name of a sink: {words}", entry.path));
        }
        let Some(table) = reader.table(Some(entry)) else { continue };
        if let Some(sink) = sink(reader, table) {
            sinks.insert(name.into(), sink);
        }
    }
    if sinks.len() > SINKS_MAX {
        reader.blame(at, format!("{path} has more than {SINKS_MAX} sinks"));
    }
    sinks
}

fn sink(reader: &mut Reader<'_>, mut table: Table<'_>) -> Option<Sink> {
    let (at, path) = (table.at, table.path.clone());
    let [webhook, slack, email] = ["webhook", "slack", "email"].map(|key| table.take(key));
    let read = match (webhook, slack, email) {
        (Some(url), None, None) => {
            let signature = table.take("signature");
            let signature = self::signature(reader, signature);
            address(reader, url).map(|url| Sink::Webhook { url, signature })
        }
        (None, Some(url), None) => address(reader, url).map(|url| Sink::Slack { url }),
        (None, None, Some(to)) => email_of(reader, &mut table, to).map(Sink::Email),
        (None, None, None) => {
            reader.blame(at, format!("{path} must have one of webhook, slack, email"));
            None
        }
        _ => {
            reader.blame(at, format!("{path} has more than one of webhook, slack, email: make a table for each"));
            None
        }
    };
    reader.end(table);
    read
}

/// `{ standard_webhooks = REFERENCE }`.
pub(crate) fn signature(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<Placed> {
    let mut table = reader.table(entry)?;
    let secret = reader.required(&mut table, "standard_webhooks");
    let secret = reference(reader, secret);
    reader.end(table);
    secret
}

/// A URL, or a reference. An unencrypted one may only lead to this machine.
fn address(reader: &mut Reader<'_>, entry: Entry<'_>) -> Option<Address> {
    let (text, entry) = reader.text(Some(entry))?;
    if Reference::parse(&text).is_some() {
        return reference(reader, Some(entry)).map(Address::Secret);
    }
    if let Err(fault) = web_address(&text) {
        let or = if fault == NO_URL { ", or a reference to one such as \"env:ALERT_URL\"" } else { "" };
        reader.blame_value(&entry, format_args!("{fault}{or}"));
        return None;
    }
    Some(Address::Url(text))
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

fn email_of(reader: &mut Reader<'_>, table: &mut Table<'_>, to: Entry<'_>) -> Option<Email> {
    let to = reader.array(Some(to), RECEIVERS_MAX).map(|all| {
        let read = all.into_iter().filter_map(|entry| mailbox(reader, Some(entry)));
        read.collect::<Vec<_>>()
    });
    let from = reader.required(table, "from");
    let from = mailbox(reader, from);
    let server = required_text(reader, table, "smtp");
    let login = table.take("login");
    let login = reader.table(login).map(|mut table| {
        let user = required_text(reader, &mut table, "user");
        let password = reader.required(&mut table, "password");
        let password = reference(reader, password);
        reader.end(table);
        Some((user?.0, password?))
    });
    let (server, entry) = server?;
    let Some((host, port, encryption)) = mail_server(&server) else {
        reader.blame_value(
            &entry,
            "must be a URL such as \"smtps://mail.example.com\" or \"smtp://mail.example.com:587\"",
        );
        return None;
    };
    if encryption == Encryption::None && login.is_some() {
        reader.blame_value(&entry, "is not encrypted, so it must not have a login");
    }
    let login = match login {
        None => None,
        Some(login) => Some(login?),
    };
    Some(Email { host, port, encryption, from: from?, to: to.filter(|to| !to.is_empty())?, login })
}

fn mail_server(text: &str) -> Option<(String, u16, Encryption)> {
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

/// An address of the form `name@host`.
fn mailbox(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<String> {
    let (text, entry) = reader.text(entry)?;
    let is_plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && !"<>(),;:\"\\[]@".contains(c));
    if text.split_once('@').is_some_and(|(name, host)| is_plain(name) && is_plain(host)) {
        return Some(text);
    }
    reader.blame_value(&entry, "must be an address such as \"ops@example.com\"");
    None
}
