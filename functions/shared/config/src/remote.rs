//! The base URL of a remote service, the names of its operations, and the headers of each call.

use domain::trace::TRACEPARENT;
use http::uri::{Authority, InvalidUri, Scheme};
use http::{HeaderName, Uri};

/// The header with the key by which a service recognises a repeated call.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header with the address for a result that comes later (rule 38).
pub const CALLBACK_URL: HeaderName = HeaderName::from_static("callback-url");
/// The headers of a signed call: its identifier, its time and the signature.
pub const SIGNATURE_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("webhook-id"),
    HeaderName::from_static("webhook-timestamp"),
    HeaderName::from_static("webhook-signature"),
];
/// The header with the trace of a call.
pub const TRACE: HeaderName = HeaderName::from_static(TRACEPARENT);

/// The operations of a service: the last segment of the path of a POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations<'a> {
    /// Carries a step out.
    pub forward: &'a str,
    /// Undoes it.
    pub undo: &'a str,
}

/// The operations of the services that ship, by agent.
const SHIPPED: [(&str, Operations<'static>); 3] = [
    ("inventory", Operations { forward: "reserve", undo: "release" }),
    ("payment", Operations { forward: "charge", undo: "refund" }),
    ("shipping", Operations { forward: "ship", undo: "cancel" }),
];
/// The operations of any other service.
const USUAL: Operations<'static> = Operations { forward: "do", undo: "undo" };

impl Operations<'static> {
    /// The operations of an agent's service, if its settings name none.
    #[must_use]
    pub fn usual(agent: &str) -> Self {
        SHIPPED.into_iter().find(|(name, _)| *name == agent).map_or(USUAL, |(_, operations)| operations)
    }
}

/// A remote service: a base URL and two operations under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The URL of the operation that carries a step out.
    pub forward: Uri,
    /// The URL of the operation that undoes it.
    pub undo: Uri,
    /// The base URL, without a slash at its end.
    base: String,
    scheme: Scheme,
}

/// Why a text is not the base URL of a service.
#[derive(Debug, thiserror::Error)]
pub enum BadUrl {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// It cannot be parsed.
    #[error("it is not a URL such as http://localhost:8080/payment ({0})")]
    Malformed(#[source] InvalidUri),
    /// It has no scheme, or no host.
    #[error("it is not a whole URL such as http://localhost:8080/payment")]
    Incomplete,
    /// Another protocol.
    #[error("its scheme is {0}, expected http or https")]
    Scheme(Scheme),
    /// The port is not a port number.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// A name or password before the host. It would not be sent.
    #[error("it must not hold a user name or password")]
    Credentials,
    /// A question mark or a hash: the operation is appended at the end.
    #[error("it must not hold a query or a fragment")]
    Query,
    /// A place to fill, as a path of a step has it.
    #[error("it must not hold {{ or }}: what changes with the order stands in the path of a step")]
    Braces,
}

impl Remote {
    /// A service under this base URL, with or without a slash at its end.
    ///
    /// # Errors
    /// [`BadUrl`], which names the fault and does not repeat the URL, since the URL may contain a password.
    pub fn new(base: &str, operations: Operations<'_>) -> Result<Self, BadUrl> {
        let base = base.trim();
        if base.is_empty() {
            return Err(BadUrl::Empty);
        }
        if base.contains(['?', '#']) {
            return Err(BadUrl::Query);
        }
        if base.contains(['{', '}']) {
            return Err(BadUrl::Braces);
        }
        let uri: Uri = base.parse().map_err(BadUrl::Malformed)?;
        let scheme = uri.scheme().ok_or(BadUrl::Incomplete)?.clone();
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(BadUrl::Scheme(scheme));
        }
        check(uri.authority().ok_or(BadUrl::Incomplete)?)?;
        let base = base.trim_end_matches('/');
        let operation = |name| format!("{base}/{name}").parse().map_err(BadUrl::Malformed);
        let (forward, undo) = (operation(operations.forward)?, operation(operations.undo)?);
        Ok(Self { forward, undo, base: base.to_owned(), scheme })
    }

    /// The URL of a path: of its host if that begins with a slash, else below the base URL.
    ///
    /// # Errors
    /// That it makes no URL.
    pub fn at(&self, path: &str) -> Result<Uri, InvalidUri> {
        let authority = self.forward.authority().map_or("", Authority::as_str);
        match path.as_bytes().first() {
            Some(b'/') => format!("{}://{authority}{path}", self.scheme).parse(),
            Some(b'?') => format!("{}{path}", self.base).parse(),
            Some(_) | None => format!("{}/{path}", self.base).parse(),
        }
    }

    /// Whether its calls use TLS.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Its host.
    #[must_use]
    pub fn host(&self) -> &str {
        self.forward.host().unwrap_or_default()
    }
}

fn check(authority: &Authority) -> Result<(), BadUrl> {
    if authority.as_str().contains('@') {
        return Err(BadUrl::Credentials);
    }
    if authority.host().is_empty() {
        return Err(BadUrl::Incomplete);
    }
    // After the host there is a port or nothing; the parser accepts any number there.
    let has_port = authority.as_str().len() > authority.host().len();
    if has_port && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(BadUrl::Port);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: Operations<'_> = Operations { forward: "charge", undo: "refund" };

    #[test]
    fn the_services_of_the_shipped_workflow_have_operations_with_names_and_others_the_usual_ones() {
        assert_eq!(SHIPPED.map(|(agent, _)| agent), domain::workflow::Workflows::SHIPPED_AGENTS);
        assert_eq!(Operations::usual("payment"), OPERATIONS);
        assert_eq!(Operations::usual("customs"), Operations { forward: "do", undo: "undo" });
    }

    #[test]
    fn operations_are_added_to_the_base() {
        for (base, forward) in [
            ("http://localhost:8080", "http://localhost:8080/charge"),
            ("http://localhost:8080/", "http://localhost:8080/charge"),
            ("https://pay.example/v1//", "https://pay.example/v1/charge"),
            ("http://[::1]:9/a", "http://[::1]:9/a/charge"),
            (" http://[::1] \n", "http://[::1]/charge"),
        ] {
            let remote = Remote::new(base, OPERATIONS).unwrap();
            assert_eq!(remote.forward.to_string(), forward);
            assert_eq!(remote.undo.to_string(), forward.replace("charge", "refund"));
        }
    }

    #[test]
    fn a_path_is_of_the_host_or_below_the_base() {
        let remote = Remote::new("https://pay.example/v1/", OPERATIONS).unwrap();
        for (path, url) in [
            ("/jobs/7?x=1", "https://pay.example/jobs/7?x=1"),
            ("jobs/7", "https://pay.example/v1/jobs/7"),
            ("?job=7", "https://pay.example/v1?job=7"),
            ("//evil.example/a", "https://pay.example//evil.example/a"),
            ("@evil.example/a", "https://pay.example/v1/@evil.example/a"),
        ] {
            assert_eq!(remote.at(path).unwrap().to_string(), url);
        }
    }

    #[test]
    fn a_bad_base_says_what_is_wrong() {
        for (base, problem) in [
            ("", "empty"),
            ("   ", "empty"),
            ("http://a b", "not a URL"),
            ("http://", "not a URL"),
            ("localhost:8080", "not a whole URL"),
            ("/payment", "not a whole URL"),
            ("ftp://localhost", "scheme is ftp"),
            ("http://localhost:0", "port"),
            ("http://localhost:65536", "port"),
            ("http://localhost:", "port"),
            ("http://me:secret@localhost", "user name or password"),
            ("http://localhost/?a=b", "query"),
            ("http://localhost/#a", "fragment"),
        ] {
            let text = Remote::new(base, OPERATIONS).unwrap_err().to_string();
            assert!(text.contains(problem), "{base:?}: {text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}
