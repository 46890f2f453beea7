//! E-mail over SMTP.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use agents::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config::keys::Encryption;
use config::sinks::Email;
use domain::message::CloudEvent;
use lettre::Message;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::words::Words;
use crate::host_time::within;
use crate::terminal::plain;
use crate::webhook::NotTaken;

/// How long a server may take for its farewell, in milliseconds.
const QUIT_MS_MAX: u64 = 1_000;

/// A mail server, and one receiver. A server that refuses one address so keeps nothing from the others.
pub(super) struct Mailer {
    host: String,
    port: u16,
    /// `None` for a server of this machine.
    tls: Option<(Encryption, TlsParameters)>,
    login: Option<Login>,
    from: Mailbox,
    to: Mailbox,
}

/// The name and the password.
#[derive(Clone)]
struct Login {
    credentials: Credentials,
    /// The password, and the two forms in which a server gets it.
    secrets: [String; 3],
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
        let tls = match encryption {
            Encryption::None => None,
            Encryption::Tls | Encryption::StartTls => {
                let parameters = TlsParameters::new(host.clone()).map_err(|error| error.to_string())?;
                Some((*encryption, parameters))
            }
        };
        let login = login.as_ref().zip(password).map(|((user, _), password)| Login::new(user, password.expose()));
        let mailbox = |text: &String| text.parse::<Mailbox>().map_err(|error| format!("{text}: {error}"));
        let from = mailbox(from)?;
        let one = |to| {
            let (host, tls, login, from) = (host.clone(), tls.clone(), login.clone(), from.clone());
            Ok(Self { host, port: *port, tls, login, from, to: mailbox(to)? })
        };
        to.iter().map(one).collect()
    }

    /// The receiver.
    pub(super) fn to(&self) -> &str {
        self.to.email.as_ref()
    }

    /// Sends one message. Its ID is that of the event, so that a repeat is recognised.
    pub(super) async fn send(&self, event: &CloudEvent, words: &Words) -> Result<(), NotTaken> {
        let message = Message::builder().from(self.from.clone()).to(self.to.clone()).subject(&words.title);
        let id: String =
            event.id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '.' }).collect();
        let message = message.message_id(Some(format!("<{id}@stepwarden>"))).header(ContentType::TEXT_PLAIN);
        let message = message.body(words.lines.join("\n")).map_err(|error| NotTaken::Mail(error.to_string()))?;
        let mut connection = self.connect().await?;
        let sent = connection.send(message.envelope(), &message.formatted()).await;
        sent.map_err(|error| self.not_told(&error))?;
        // The server has the message, whatever it says to that.
        let _ = within(QUIT_MS_MAX, connection.quit()).await;
        Ok(())
    }

    /// A connection that is encrypted and knows who sends, as far as the settings ask for it.
    async fn connect(&self) -> Result<AsyncSmtpConnection, NotTaken> {
        let (address, name) = ((&*self.host, self.port), ClientId::default());
        let failed = |error: Error| self.not_told(&error);
        let mut connection = match &self.tls {
            Some((Encryption::StartTls, parameters)) => {
                let stream = TcpStream::connect(address).await.map_err(|error| NotTaken::Mail(error.to_string()))?;
                let stream = Box::new(ByteByByte(stream));
                let mut connection =
                    AsyncSmtpConnection::connect_with_transport(stream, &name).await.map_err(failed)?;
                connection.starttls(parameters.clone(), &name).await.map_err(failed)?;
                connection
            }
            tls => {
                let parameters = tls.as_ref().map(|(_, parameters)| parameters.clone());
                AsyncSmtpConnection::connect_tokio1(address, None, &name, parameters, None).await.map_err(failed)?
            }
        };
        if let Some(login) = &self.login {
            connection.auth(DEFAULT_MECHANISMS, &login.credentials).await.map_err(failed)?;
        }
        Ok(connection)
    }

    /// The server's words in one line of a log, without the login: a server may repeat it.
    fn not_told(&self, error: &Error) -> NotTaken {
        let secrets = self.login.iter().flat_map(|login| &login.secrets);
        let words = secrets.fold(error.to_string(), |words, secret| words.replace(&**secret, "***"));
        NotTaken::Mail(plain(&words))
    }
}

impl Login {
    fn new(user: &str, password: &str) -> Self {
        let secrets =
            [password.to_owned(), STANDARD.encode(password), STANDARD.encode(format!("\0{user}\0{password}"))];
        Self { credentials: Credentials::new(user.to_owned(), password.to_owned()), secrets }
    }
}

/// A stream that gives one byte at a time, so that nothing is read ahead. What somebody on the way adds to the answer to
/// `STARTTLS` then comes to TLS, which refuses it, and does not count as an answer of the encrypted server.
#[derive(Debug)]
struct ByteByByte(TcpStream);

impl AsyncTokioStream for ByteByByte {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}

impl AsyncRead for ByteByByte {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut byte = [0; 1];
        let mut one = ReadBuf::new(&mut byte[..buffer.remaining().min(1)]);
        let read = Pin::new(&mut self.0).poll_read(context, &mut one);
        buffer.put_slice(one.filled());
        read
    }
}

impl AsyncWrite for ByteByByte {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
