//! The parsed URL of the API.

use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::{Authority, Scheme};
use local::BadSetting;
use serde::{Deserialize, Serialize};

/// The beginning of the URL of a socket.
const SOCKET: &str = "unix:";

/// An `http` or `https` URL, with a base path for every call; or a socket in the file system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    scheme: Scheme,
    authority: Authority,
    /// Without a trailing slash; often empty.
    base: String,
    /// The socket by which the API is called.
    socket: Option<PathBuf>,
}

impl Default for Target {
    /// The default URL of `stepwarden serve`.
    fn default() -> Self {
        Self {
            scheme: Scheme::HTTP,
            authority: Authority::from_static("127.0.0.1:3000"),
            base: String::new(),
            socket: None,
        }
    }
}

impl TryFrom<String> for Target {
    type Error = BadSetting;

    fn try_from(text: String) -> Result<Self, BadSetting> {
        Self::parse(&text)
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.url("")
    }
}

impl Target {
    /// Parses a URL such as `http://127.0.0.1:3000` or `https://abc.execute-api.eu-central-1.amazonaws.com`.
    ///
    /// # Errors
    /// [`BadSetting`]; its message shows the expected form.
    pub fn parse(text: &str) -> Result<Self, BadSetting> {
        let wrong = || {
            BadSetting(format!(
                "{text} is not the URL of an API: it begins with http:// or https://, names a host and has no query; or it \
                 is unix: and the path of a socket"
            ))
        };
        if let Some(path) = text.trim().strip_prefix(SOCKET) {
            // A context is used from any directory.
            let path = std::path::absolute(path).map_err(|_| wrong())?;
            return Ok(Self { authority: Authority::from_static("localhost"), socket: Some(path), ..Self::default() });
        }
        let uri: Uri = text.trim().parse().map_err(|_| wrong())?;
        let parts = uri.into_parts();
        let scheme = parts.scheme.filter(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
        let (scheme, authority) = scheme.zip(parts.authority).ok_or_else(wrong)?;
        let path = parts.path_and_query.ok_or_else(wrong)?;
        if path.query().is_some() || authority.as_str().contains('@') {
            return Err(wrong());
        }
        Ok(Self { scheme, authority, base: path.path().trim_end_matches('/').to_owned(), socket: None })
    }

    /// The URL of a path and query, for people and for [`Self::parse`].
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        match &self.socket {
            Some(socket) => format!("{SOCKET}{}{path}", socket.display()),
            None => self.uri(path),
        }
    }

    /// The URL of a path and query, for a request.
    #[must_use]
    pub fn uri(&self, path: &str) -> String {
        format!("{}://{}{}{path}", self.scheme, self.authority, self.base)
    }

    /// The socket by which the API is called.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Whether calls use TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The host, and the port if any.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Whether it is this machine, so that no data leaves it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let host = self.authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// The region in an API Gateway URL: `{id}.execute-api.{region}.amazonaws.com`.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        let labels: Vec<&str> = self.authority.host().split('.').collect();
        match labels.as_slice() {
            [_, "execute-api", region, "amazonaws", "com"] | [_, "execute-api", region, "amazonaws", "com", "cn"] => {
                Some(region)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_under_the_url_with_or_without_a_slash_at_its_end() {
        for (given, url) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000/orders?limit=1"),
            ("http://localhost/", "http://localhost/orders?limit=1"),
            ("https://x.example/prod/", "https://x.example/prod/orders?limit=1"),
            (
                "http://127.0.0.1:9/_aws/execute-api/a1/$default",
                "http://127.0.0.1:9/_aws/execute-api/a1/$default/orders?limit=1",
            ),
        ] {
            assert_eq!(Target::parse(given).unwrap().url("/orders?limit=1"), url);
        }
    }

    #[test]
    fn what_is_no_url_of_an_api_is_told_with_what_is_expected() {
        for text in ["", "localhost:3000", "ftp://x", "http://", "http://x/?a=1", "http://me:secret@x", "not a url"] {
            let error = Target::parse(text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("http://"), "{error}");
        }
    }

    #[test]
    fn a_socket_is_called_as_this_machine_and_is_known_by_its_path() {
        let target = Target::parse("unix:/run/stepwarden/api.sock").unwrap();
        assert_eq!(target.uri("/orders?limit=1"), "http://localhost/orders?limit=1");
        assert_eq!(target.url(""), "unix:/run/stepwarden/api.sock");
        assert!(target.is_local() && !target.is_secure() && target.region().is_none());
        assert_eq!(Target::parse(&target.url("")).as_ref(), Ok(&target));
        let here = std::env::current_dir().unwrap();
        assert_eq!(Target::parse("unix:api.sock").unwrap().socket(), Some(&*here.join("api.sock")));
        assert!(Target::parse("unix:").is_err());
    }

    #[test]
    fn the_region_is_read_off_the_name_that_api_gateway_gives() {
        let region = |url| Target::parse(url).unwrap().region().map(str::to_owned);
        assert_eq!(region("https://a1b2.execute-api.eu-central-1.amazonaws.com"), Some("eu-central-1".to_owned()));
        assert_eq!(region("https://a1.execute-api.cn-north-1.amazonaws.com.cn"), Some("cn-north-1".to_owned()));
        assert_eq!(region("https://orders.example.com"), None);
        assert_eq!(region("https://a1.execute-api.eu-central-1.amazonaws.com.example.org"), None, "somebody else's");
        assert_eq!(region("http://127.0.0.1:3000"), None);
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for (url, is_local) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:3000", true),
            ("http://10.0.0.7", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(Target::parse(url).unwrap().is_local(), is_local, "{url}");
        }
    }
}
