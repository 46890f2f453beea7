//! The sinks of alerts in `stepwarden.toml`: where people are told (rule 29). Secrets are references, never values.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::located::{Entry, Reader, Table};

use crate::auth::Placed;
use crate::keys::{Encryption, mail_server, web_address};
use crate::settings::secret;

/// The keys that say what a sink is.
const KINDS: [&str; 3] = ["webhook", "slack", "email"];
/// The keys of one kind of sink alone.
const OF_KINDS: [(&str, &str); 4] =
    [("signature", "webhook"), ("from", "email"), ("smtp", "email"), ("login", "email")];

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

/// Reads the tables `[alerts.NAME]`.
pub(crate) fn read(reader: &mut Reader<'_>, root: &Table<'_>) -> Sinks {
    let mut sink = |(name, _, entry): (&str, usize, Entry<'_>)| Some((name.into(), sink(reader, &entry.table()?)?));
    root.named("alerts").into_iter().filter_map(&mut sink).collect()
}

fn sink(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<Sink> {
    let path = &table.path;
    let given: Vec<&str> = KINDS.into_iter().filter(|key| table.get(key).is_some()).collect();
    let [kind] = given[..] else {
        let fault = match given.is_empty() {
            true => "must have one of webhook, slack, email",
            false => "has more than one of webhook, slack, email: make a table for each",
        };
        reader.blame(table.at, format!("{path} {fault}"));
        return None;
    };
    let of_another = OF_KINDS.into_iter().filter(|(_, of)| *of != kind);
    for (entry, of) in of_another.filter_map(|(key, of)| Some((table.get(key)?, of))) {
        reader.blame_value(&entry, format_args!("belongs to a sink with {of}"));
    }
    Some(match kind {
        "webhook" => Sink::Webhook {
            url: address(table, kind)?,
            signature: secret(&table.table("signature"), "standard_webhooks"),
        },
        "slack" => Sink::Slack { url: address(table, kind)? },
        _ => Sink::Email(email_of(reader, table)?),
    })
}

/// A URL, or a reference.
fn address(table: &Table<'_>, key: &str) -> Option<Address> {
    secret(table, key).map(Address::Secret).or_else(|| Some(Address::Url(table.text(key)?.to_owned())))
}

fn email_of(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<Email> {
    for key in ["from", "smtp"].into_iter().filter(|key| table.get(key).is_none()) {
        reader.blame(table.at, format!("{}.{key} is missing", table.path));
    }
    let to = table.elements("email").into_iter().filter_map(|entry| entry.text().map(str::to_owned));
    let (host, port, encryption) = mail_server(table.text("smtp")?)?;
    let login = table.table("login");
    if encryption == Encryption::None && login.is_given() {
        reader.blame(table.at("smtp"), format!("{}.smtp is not encrypted, so it must not have a login", table.path));
    }
    let login = login.text("user").map(str::to_owned).zip(secret(&login, "password"));
    Some(Email { host, port, encryption, from: table.text("from")?.to_owned(), to: to.collect(), login })
}
