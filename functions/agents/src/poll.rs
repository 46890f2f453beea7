//! Where the state is asked of a call that was taken on (rule 36). An answer may lead anywhere, so it is followed on the host
//! of the agent alone.

use std::sync::Arc;
use std::time::Duration;

use domain::message::is_poll;
use domain::template::{Led, PollPath};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Uri};

use crate::client::Timer;

/// The longest wait for a body that says where the state is asked, in milliseconds: the status says enough.
const BODY_MS: u64 = 1_000;

/// A place that an answer names, and the URL that was called.
#[derive(Debug, Clone)]
pub struct Polled<'a> {
    /// The place.
    pub path: &'a PollPath,
    /// The URL.
    pub called: &'a Uri,
    /// How long the body of an answer is awaited that the place may need.
    pub body_within: Duration,
    /// What times this wait.
    pub(crate) timer: Timer,
}

impl<'a> Polled<'a> {
    /// A place of a call with this time-out.
    pub(crate) fn new(path: &'a PollPath, called: &'a Uri, timeout_ms: u64, timer: Timer) -> Self {
        Self { path, called, body_within: Duration::from_millis((timeout_ms / 10).min(BODY_MS)), timer }
    }

    /// Where this answer leads.
    ///
    /// # Errors
    /// Why it leads nowhere. The words repeat nothing of the answer.
    pub(crate) fn after(&self, headers: &HeaderMap, body: &str) -> Result<Arc<str>, String> {
        let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let led = self.path.after(header, body).map_err(|unfilled| format!("`poll.path` {unfilled}"))?;
        let path = match led {
            Led::Path(path) => path,
            Led::Reference(reference) => on_host(&reference, self.called)?.into(),
        };
        if is_poll(&path) { Ok(path) } else { Err("the answer names no path of a URL".to_owned()) }
    }
}

/// The path to which a reference leads, from the URL that was called.
fn on_host(reference: &str, called: &Uri) -> Result<String, String> {
    const OTHER: &str = "the answer leads to another host, scheme or port than the URL of the agent";
    let reference = reference.split('#').next().unwrap_or_default();
    let scheme = called.scheme_str().unwrap_or_default();
    let first = reference.split(['/', '?']).next().unwrap_or_default();
    let whole = match reference {
        _ if reference.starts_with("//") => Some(format!("{scheme}:{reference}")),
        _ if first.contains(':') => Some(reference.to_owned()),
        _ => None,
    };
    if let Some(whole) = whole {
        let uri: Uri = whole.parse().map_err(|_| "the answer names no URL".to_owned())?;
        let is_same = uri.scheme() == called.scheme() && same_place(uri.authority(), called);
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        return if is_same { checked(path.to_owned()) } else { Err(OTHER.to_owned()) };
    }
    let path = called.path();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    checked(match reference {
        _ if reference.starts_with('/') => reference.to_owned(),
        "" => path.to_owned(),
        _ if reference.starts_with('?') => format!("{path}{reference}"),
        _ => format!("{folder}/{reference}"),
    })
}

fn same_place(to: Option<&Authority>, called: &Uri) -> bool {
    let usual = if called.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let place = |of: &Authority| (of.host().to_ascii_lowercase(), of.port_u16().unwrap_or(usual));
    let (Some(to), Some(called)) = (to, called.authority()) else { return false };
    !to.as_str().contains('@') && place(to) == place(called)
}

/// Dots would be resolved by some and not by others.
fn checked(path: String) -> Result<String, String> {
    let has_dots =
        path.split(['?']).next().unwrap_or_default().split('/').any(|segment| [".", ".."].contains(&segment));
    if has_dots { Err("the answer names a path with dots".to_owned()) } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_36_a_reference_is_followed_on_the_host_of_the_agent_alone() {
        let called: Uri = "https://bank.example/v1/transfers".parse().unwrap();
        for (reference, path) in [
            ("https://bank.example/v1/jobs/7?x=1#part", "/v1/jobs/7?x=1"),
            ("HTTPS://Bank.Example:443/jobs", "/jobs"),
            ("//bank.example/jobs", "/jobs"),
            ("https://bank.example", "/"),
            ("/jobs/7", "/jobs/7"),
            ("jobs/7", "/v1/jobs/7"),
            ("?id=7", "/v1/transfers?id=7"),
        ] {
            assert_eq!(on_host(reference, &called).as_deref(), Ok(path), "{reference}");
        }
        for reference in [
            "https://evil.example/jobs",
            "//evil.example/jobs",
            "http://bank.example/jobs",
            "https://bank.example:8443/jobs",
            "https://me@bank.example/jobs",
            "https://bank.example@evil.example/jobs",
            "https://bank.example.evil.example/",
            "ftp:/jobs",
            "javascript:alert(1)",
            "../jobs",
            "/a/../jobs",
        ] {
            assert!(on_host(reference, &called).is_err(), "{reference}");
        }
    }
}
