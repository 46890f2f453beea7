//! Secrets.

use std::fmt;
use std::sync::Arc;

use config::Reference;
use domain::time::Timestamp;
use futures_util::future::BoxFuture;
use http::HeaderValue;

/// A secret's value. No `Debug` output shows it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// Reads a secret. The error says why there is none, without any value.
pub type Resolver = Arc<dyn Fn(Reference) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync>;

/// Reads the clock.
pub type Now = fn() -> Timestamp;

impl Secret {
    /// A line break at the end, which many files have, is no part of it.
    #[must_use]
    pub fn new(value: &str) -> Self {
        Self(value.trim_end_matches(['\r', '\n']).into())
    }

    /// The value. It must go nowhere but into a call.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A header that no `Debug` output shows.
pub(super) fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
