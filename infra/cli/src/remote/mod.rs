//! The API client of the commands: URL, authentication, time-outs and retries.
//!
//! It knows HTTP and nothing of orders. Never here: a retry of a call that could have a second effect.

mod auth;
mod aws_tool;
pub(crate) mod clock;
pub(crate) mod contexts;
mod credentials;
mod environment;
mod error;
mod mode;
mod problem;
mod sign;
mod target;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use local::BadSetting;
use local::client::{Client, NoAnswer};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use auth::Auth;
pub(crate) use aws_tool::{Aws, AwsError};
pub use contexts::Server;
pub use environment::Environment;
pub use error::RemoteError;
pub use mode::AuthMode;
pub use problem::Problem;
pub use target::Target;

/// The most tries of a call.
const TRIES_MAX: u32 = 4;
/// The back-off before the first retry, if the server sends no `Retry-After`; it doubles.
const PAUSE: Duration = Duration::from_millis(300);
/// The longest `Retry-After` that is followed.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// All characters except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An API and its caller.
#[derive(Debug)]
pub struct Remote {
    target: Target,
    client: Client,
    auth: Auth,
    /// The time-out of one answer.
    answer_within: Duration,
}

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    method: Method,
    /// The path, with the query if any.
    path: String,
    headers: HeaderMap,
    body: Bytes,
    /// The additional time of `Prefer: wait`.
    wait: Duration,
    /// Whether a retry is safe if the outcome is unknown.
    is_repeatable: bool,
}

/// A success.
#[derive(Debug, Clone)]
pub struct Answer {
    /// 2xx, or 304.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The called URL, for messages.
    url: String,
}

impl Call {
    /// `GET`; a retry is always safe.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), Bytes::new(), true)
    }

    /// `POST` of a JSON body that is idempotent, so a retry is safe.
    #[must_use]
    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, path.into(), body.into(), true)
            .with(HeaderName::from_static("content-type"), HeaderValue::from_static("application/json"))
    }

    /// The same without retries, since it is not idempotent.
    #[must_use]
    pub const fn unrepeated(mut self) -> Self {
        self.is_repeatable = false;
        self
    }

    /// Any other call, without retries; the server may take this many seconds longer.
    pub(crate) fn once(method: Method, path: String, headers: HeaderMap, body: Bytes, wait_s: u64) -> Self {
        Self { headers, wait: Duration::from_secs(wait_s), ..Self::new(method, path, body, false) }
    }

    fn new(method: Method, path: String, body: Bytes, is_repeatable: bool) -> Self {
        Self { method, path, headers: HeaderMap::new(), body, wait: Duration::ZERO, is_repeatable }
    }

    /// The same with a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same; the server may wait this many seconds for the order to settle.
    #[must_use]
    pub fn waiting(mut self, wait_s: u64) -> Self {
        self.wait = Duration::from_secs(wait_s);
        let value = HeaderValue::try_from(format!("wait={wait_s}")).expect("a word and digits make a header");
        self.with(HeaderName::from_static("prefer"), value)
    }
}

impl Remote {
    /// An API, each answer of which may take this long.
    ///
    /// # Errors
    /// [`RemoteError`] if the caller cannot authenticate, or TLS is unavailable.
    pub fn new(server: Server, answer_within: Duration, environment: Environment) -> Result<Self, RemoteError> {
        let Server { api: target, auth, region, profile, ca } = server;
        let auth = Auth::choose(auth, &target, region.as_deref(), profile.as_deref(), environment)?;
        let client = match (target.socket(), ca) {
            (Some(socket), _) => Client::of_socket(socket),
            (None, _) if !target.is_secure() => Client::new(),
            (None, None) => Client::tls().map_err(RemoteError::Tls)?,
            (None, Some(file)) => {
                let client = std::fs::read(&file).and_then(|issuers| Client::trusting(&issuers));
                client.map_err(|error| {
                    let file = file.display();
                    BadSetting(format!("--ca {file}: {error}; give the certificates of the issuer in PEM"))
                })?
            }
        };
        Ok(Self { target, client, auth, answer_within })
    }

    /// Where it is.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Makes a call. Retries it if that is safe and the server is busy or the answer was lost.
    ///
    /// # Errors
    /// [`RemoteError`] for everything but a success (2xx, or 304).
    pub async fn call(&self, call: &Call) -> Result<Answer, RemoteError> {
        let began = clock::instant();
        let mut tries = 0;
        // Whether the server may have seen an earlier try.
        let mut is_repeat = false;
        loop {
            tries += 1;
            let mut outcome = self.exchange(call).await;
            if let Err(RemoteError::NoAnswer { is_unsent, .. }) = &mut outcome {
                *is_unsent &= !is_repeat;
            }
            // After a time-out the error is reported; a second wait of that length would be too long.
            let is_late = began.elapsed() >= self.answer_within;
            let may_repeat = call.is_repeatable && tries < TRIES_MAX && !is_late;
            let pause = match &outcome {
                Err(RemoteError::NoAnswer { is_unsent: false, .. }) if may_repeat => Some(doubled(tries)),
                Ok(answer) if may_repeat && is_busy(call, answer.status().as_u16()) => {
                    Some(retry_after(answer).unwrap_or(doubled(tries)).min(PAUSE_MAX))
                }
                Ok(_) | Err(_) => None,
            };
            // A throttled request was not carried out.
            let may_be_seen = outcome.as_ref().map_or(true, |answer| answer.status().as_u16() != 429);
            match pause {
                Some(pause) => {
                    is_repeat |= may_be_seen;
                    clock::pause(pause).await;
                }
                None => return self.judged(call, outcome?, is_repeat),
            }
        }
    }

    /// The same, with the answer read as `T`.
    ///
    /// # Errors
    /// [`RemoteError`], also if the answer is not a `T`.
    pub async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<(T, Answer), RemoteError> {
        let answer = self.call(call).await?;
        Ok((answer.read()?, answer))
    }

    /// `GET`, read as `T`.
    ///
    /// # Errors
    /// [`RemoteError`], also if the answer is not a `T`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RemoteError> {
        Ok(self.ask(&Call::get(path)).await?.0)
    }

    /// Makes a call once and returns any answer.
    ///
    /// # Errors
    /// [`RemoteError`] if there is no answer.
    pub async fn exchange(&self, call: &Call) -> Result<Response<Bytes>, RemoteError> {
        let url = self.target.uri(&call.path);
        let request = Request::builder().method(call.method.clone()).uri(&url).body(call.body.clone());
        let mut request = request.map_err(|error| BadSetting(format!("{url} cannot be called: {error}")))?;
        request.headers_mut().extend(call.headers.clone());
        let agent = concat!("stepwarden/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().insert(http::header::USER_AGENT, HeaderValue::from_static(agent));
        self.auth.prove(&mut request).await?;
        let answer_within = self.answer_within + call.wait;
        let sent = clock::within(answer_within, self.client.exchange(request)).await.unwrap_or_else(|| {
            let why = format!("no answer within {}", humantime::format_duration(answer_within));
            Err(NoAnswer { why, is_unsent: false })
        });
        sent.map_err(|NoAnswer { why, is_unsent }| RemoteError::NoAnswer {
            url: self.target.url(""),
            why,
            is_unsent,
            is_local: self.target.is_local(),
        })
    }

    fn judged(&self, call: &Call, answer: Response<Bytes>, is_repeat: bool) -> Result<Answer, RemoteError> {
        let status = answer.status();
        if status.is_success() || status == http::StatusCode::NOT_MODIFIED {
            let (head, body) = answer.into_parts();
            let url = self.target.url(&call.path);
            return Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, url });
        }
        let path = call.path.split('?').next().unwrap_or_default();
        let problem = Problem::of(call.method.clone(), path, &answer);
        Err(RemoteError::Problem { problem: Box::new(problem), auth: self.auth.mode(), is_repeat })
    }
}

impl Answer {
    /// The body as `T`.
    ///
    /// # Errors
    /// [`RemoteError::Unreadable`] if it is not a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, RemoteError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| RemoteError::Unreadable { url: self.url.clone(), why: error.to_string() })
    }

    /// The body as one line, otherwise unchanged. JSON has control characters as white space only; what is no JSON could
    /// have others, which a terminal takes for commands.
    #[must_use]
    pub fn line(&self) -> String {
        String::from_utf8_lossy(&self.body).replace(|c: char| c.is_ascii_control(), " ")
    }
}

/// The header that binds a call to one version of an order or a job.
pub(crate) fn etag(version: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).expect("digits in quotes make a header")
}

/// The text with all but letters, digits and `-._~` percent-encoded, for one segment of a path or one value.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Whether the server asks for a retry.
fn is_busy(call: &Call, status: u16) -> bool {
    matches!(status, 429 | 503) || (matches!(status, 502 | 504) && call.method == Method::GET)
}

fn doubled(tries: u32) -> Duration {
    PAUSE * 2_u32.saturating_pow(tries.saturating_sub(1))
}

fn retry_after(answer: &Response<Bytes>) -> Option<Duration> {
    answer.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
