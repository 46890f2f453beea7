//! E-mail over SMTP.

use agents::Secret;
use config::sinks::{Email, Encryption};
use domain::message::CloudEvent;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::NotTold;
use super::words::Words;

/// A mail server, and one receiver. A server that refuses one address so keeps nothing from the others.
pub(super) struct Mailer {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Mailbox,
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailer").field("from", &self.from).field("to", &self.to).finish_non_exhaustive()
    }
}

impl Mailer {
    /// One for each receiver.
    ///
    /// # Errors
    /// Why the settings cannot be used.
    pub(super) fn all(settings: &Email, password: Option<&Secret>) -> Result<Vec<Self>, String> {
        let Email { host, port, encryption, from, to, login } = settings;
        let server = match encryption {
            Encryption::Tls => AsyncSmtpTransport::<Tokio1Executor>::relay(host),
            Encryption::StartTls => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host),
            Encryption::None => Ok(AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host.as_str())),
        };
        let mut server = server.map_err(|error| error.to_string())?.port(*port);
        if let (Some((user, _)), Some(password)) = (login, password) {
            server = server.credentials(Credentials::new(user.clone(), password.expose().to_owned()));
        }
        let mailbox = |text: &String| text.parse::<Mailbox>().map_err(|error| format!("{text}: {error}"));
        let (server, from) = (server.build(), mailbox(from)?);
        let all = to.iter().map(|to| Ok(Self { server: server.clone(), from: from.clone(), to: mailbox(to)? }));
        all.collect()
    }

    /// The receiver.
    pub(super) fn to(&self) -> &str {
        self.to.email.as_ref()
    }

    /// Sends one message. Its ID is that of the event, so that a repeat is recognised.
    pub(super) async fn send(&self, event: &CloudEvent, words: &Words) -> Result<(), NotTold> {
        let message = Message::builder().from(self.from.clone()).to(self.to.clone()).subject(&words.title);
        let id: String =
            event.id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '.' }).collect();
        let message = message.message_id(Some(format!("<{id}@stepwarden>"))).header(ContentType::TEXT_PLAIN);
        let message = message.body(words.lines.join("\n")).map_err(|error| NotTold::Mail(error.to_string()))?;
        self.server.send(message).await.map_err(|error| NotTold::Mail(error.to_string()))?;
        Ok(())
    }
}
