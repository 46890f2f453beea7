//! A call that did not succeed: what to say, what to do, and the status to end with.

use crate::args::AuthMode;
use crate::exit::Exit;

use super::auth::AuthError;
use super::problem::Problem;

/// Why there is no success. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Nobody answered.
    #[error("no answer from {url}: {why}")]
    NoAnswer {
        /// The base URL of the API.
        url: String,
        /// In words, from the innermost cause.
        why: String,
        /// Whether no connection came up, so that nobody can have seen the request.
        is_unsent: bool,
        /// Whether the API is to be on this machine.
        is_local: bool,
    },
    /// The server says no.
    #[error("{problem}")]
    Problem {
        /// What it says.
        problem: Box<Problem>,
        /// How the call proved who made it.
        auth: AuthMode,
        /// Whether an earlier try may have been carried out, so that a refusal may be due to that.
        is_repeat: bool,
    },
    /// The answer is not what this program knows.
    #[error("{url} answers something else than this program knows: {why}")]
    Unreadable {
        /// What was called.
        url: String,
        /// In words.
        why: String,
    },
    /// No request can be made of what was given.
    #[error("{url} cannot be called: {why}")]
    Request {
        /// What was to be called.
        url: String,
        /// In words.
        why: String,
    },
    /// The caller cannot prove who it is.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// There are no root certificates.
    #[error("no root certificates to check the API's name with: {0}")]
    Tls(#[source] std::io::Error),
}

impl RemoteError {
    /// The status to end with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoAnswer { .. } | Self::Unreadable { .. } | Self::Tls(_) => Exit::Away,
            Self::Problem { problem, .. } => problem.exit(),
            Self::Request { .. } => Exit::Usage,
            Self::Auth(error) => match error {
                AuthError::NoToken | AuthError::BadToken | AuthError::Credentials(_) | AuthError::Sign(_) => {
                    Exit::NotAllowed
                }
                AuthError::NoRegion | AuthError::InTheClear { .. } => Exit::Usage,
            },
        }
    }

    /// What to do next, where there is something to do.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoAnswer { is_local: true, .. } => {
                Some("is `stepwarden serve` running? Give --api URL (or STEPWARDEN_API) if it is elsewhere".to_owned())
            }
            Self::NoAnswer { is_local: false, .. } => {
                Some("is --api right, and is there a way to it from here?".to_owned())
            }
            Self::Problem { problem, auth, .. } => problem.advice(*auth),
            Self::Unreadable { .. } => Some("is --api the URL of a Stepwarden?".to_owned()),
            Self::Auth(AuthError::Credentials(_)) => Some(
                "log in (`aws sso login`, `aws configure`), or give --profile, or --auth none for an API that asks for no \
                 signature"
                    .to_owned(),
            ),
            Self::Tls(_) => Some("install the package ca-certificates".to_owned()),
            Self::Request { .. } | Self::Auth(_) => None,
        }
    }

    /// Whether what was asked for may have been done all the same.
    #[must_use]
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::NoAnswer { is_unsent, .. } => !is_unsent,
            // A repeat that was not let in says nothing about the try before it.
            Self::Problem { problem, is_repeat, .. } => {
                problem.status >= 500 || (*is_repeat && matches!(problem.status, 401 | 403 | 408 | 429))
            }
            // Whatever answers there says that it was a success.
            Self::Unreadable { .. } => true,
            Self::Request { .. } | Self::Auth(_) | Self::Tls(_) => false,
        }
    }

    /// Whether it was refused (409, 412) after an earlier try whose answer was lost: that one may be the cause.
    #[must_use]
    pub fn is_refused_repeat(&self) -> bool {
        matches!(self, Self::Problem { problem, is_repeat: true, .. } if matches!(problem.status, 409 | 412))
    }

    /// The problem, where the server said one.
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
