//! A failed call: the message, the remedy and the exit status.

use local::BadSetting;

use crate::exit::Exit;

use super::mode::AuthMode;
use super::problem::Problem;

/// How rustls begins what it says of a certificate.
const BAD_CERTIFICATE: &str = "invalid peer certificate";
/// What hyper says of an answer that is not HTTP, such as TLS's to a request in the clear.
const NOT_HTTP: &str = "invalid HTTP version";

/// The cause of a failed call. The message is one line.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// No answer.
    #[error("no answer from {url}: {why}")]
    NoAnswer {
        /// The base URL of the API.
        url: String,
        /// The innermost cause.
        why: String,
        /// Whether no connection was established, so that the server cannot have seen the request.
        is_unsent: bool,
        /// Whether the API is on this machine.
        is_local: bool,
    },
    /// The server refused the call.
    #[error("{problem}")]
    Problem {
        /// Its problem.
        problem: Box<Problem>,
        /// The authentication of the call.
        auth: AuthMode,
        /// Whether an earlier try may have been carried out and may have caused the refusal.
        is_repeat: bool,
    },
    /// The answer cannot be parsed.
    #[error("unexpected answer of {url}: {why}")]
    Unreadable {
        /// The called URL.
        url: String,
        /// The error.
        why: String,
    },
    /// The command line is wrong.
    #[error(transparent)]
    Usage(#[from] BadSetting),
    /// The caller has no token, or the request cannot be signed.
    #[error("{0}")]
    Unauthenticated(String),
    /// The caller has no AWS credentials.
    #[error("{0}")]
    NoKeys(String),
    /// There are no root certificates.
    #[error("the system has no root certificates for TLS: {0}")]
    Tls(#[source] std::io::Error),
}

impl RemoteError {
    /// The exit status.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoAnswer { .. } | Self::Unreadable { .. } | Self::Tls(_) => Exit::Away,
            Self::Problem { problem, .. } => problem.exit(),
            Self::Usage(_) => Exit::Usage,
            Self::Unauthenticated(_) | Self::NoKeys(_) => Exit::NotAllowed,
        }
    }

    /// The remedy, if any.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoAnswer { why, .. } if why.contains(BAD_CERTIFICATE) => Some(
                "call it by a name that its certificate has, and give --ca FILE with the certificate of its issuer unless \
                 the system trusts it"
                    .to_owned(),
            ),
            Self::NoAnswer { why, .. } if why.contains(NOT_HTTP) => {
                Some("it may speak TLS there: give an https:// URL, with --ca FILE if the system does not trust its certificate".to_owned())
            }
            Self::NoAnswer { is_local: true, .. } => {
                Some("is `stepwarden serve` running? Give --api URL (or STEPWARDEN_API), or --context, if it is elsewhere".to_owned())
            }
            Self::NoAnswer { is_local: false, .. } => {
                Some("is --api or the context right, and is it reachable from here?".to_owned())
            }
            Self::Problem { problem, auth, .. } => problem.advice(*auth),
            Self::Unreadable { .. } => Some("is --api the URL of a Stepwarden API?".to_owned()),
            Self::NoKeys(_) => Some(
                "log in (`aws sso login`, `aws configure`), or give --profile, or --auth none for an API that asks for no \
                 signature"
                    .to_owned(),
            ),
            Self::Tls(_) => Some("install the package ca-certificates".to_owned()),
            Self::Usage(_) | Self::Unauthenticated(_) => None,
        }
    }

    /// Whether the request may have been carried out nevertheless.
    #[must_use]
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::NoAnswer { is_unsent, .. } => !is_unsent,
            // An unauthorised repeat says nothing about the earlier try.
            Self::Problem { problem, is_repeat, .. } => {
                problem.status >= 500 || (*is_repeat && matches!(problem.status, 401 | 403 | 408 | 429))
            }
            // The status reports a success.
            Self::Unreadable { .. } => true,
            Self::Usage(_) | Self::Unauthenticated(_) | Self::NoKeys(_) | Self::Tls(_) => false,
        }
    }

    /// Whether it was refused (409, 412) after an earlier try with a lost answer, which may be the cause.
    #[must_use]
    pub fn is_refused_repeat(&self) -> bool {
        matches!(self, Self::Problem { problem, is_repeat: true, .. } if matches!(problem.status, 409 | 412))
    }

    /// The server's problem, if any.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        if let Self::Problem { problem, .. } = self { Some(problem) } else { None }
    }

    /// Whether the server does not know this call.
    #[must_use]
    pub fn is_unknown_call(&self) -> bool {
        self.problem().is_some_and(Problem::is_unknown_call)
    }
}
