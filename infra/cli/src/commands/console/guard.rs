//! Access control of the console: only a browser with the printed address gets in.
//!
//! Other users of this machine can reach the port, and so can any page in the operator's browser. Three checks keep them
//! out. The first segment of every path is a random token. `Host` must be a name of this machine, against DNS rebinding.
//! The browser must not report another page as the origin of a request. Only the first load of the page is exempt, since
//! the file of `--open` is another page.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION, ORIGIN, REFERRER_POLICY};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

/// The checks of a request.
#[derive(Debug)]
pub(super) struct Guard {
    /// The two names of this machine, with the port.
    hosts: [String; 2],
    token: String,
}

/// The result of the checks.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Forwarded to the API, to this path and query.
    Admitted(String),
    /// Refused.
    Answered(Response<Bytes>),
}

impl Guard {
    pub(super) fn new(port: u16, token: String) -> Self {
        Self { hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")], token }
    }

    /// The address of the page.
    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    pub(super) fn admit(&self, request: &Request<Bytes>) -> Verdict {
        let headers = request.headers();
        let Some(host) = self.own_host(headers) else {
            return refused(StatusCode::MISDIRECTED_REQUEST, "this address is not one of the console's");
        };
        let rest = request.uri().path().strip_prefix('/').and_then(|path| self.behind_token(path));
        let is_first_look = rest == Some("/") && is_opened(request);
        if !is_first_look && !is_of_own_page(headers, host) {
            return refused(StatusCode::FORBIDDEN, "another page may not use the console");
        }
        match (rest, request.uri().query()) {
            (None, _) => refused(StatusCode::FORBIDDEN, "open the address that `stepwarden console` printed"),
            (Some(""), _) => moved(&format!("/{}/", self.token)),
            (Some(path), None) => Verdict::Admitted(path.to_owned()),
            (Some(path), Some(query)) => Verdict::Admitted(format!("{path}?{query}")),
        }
    }

    /// The requested name, if it is one of this machine.
    fn own_host(&self, headers: &HeaderMap) -> Option<&str> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next()?.to_str().ok()?;
        let own = self.hosts.iter().find(|own| own.eq_ignore_ascii_case(host));
        own.filter(|_| hosts.next().is_none()).map(String::as_str)
    }

    /// The path after the token: empty, or with its slash.
    fn behind_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (first, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        is_same(first.as_bytes(), self.token.as_bytes()).then_some(rest)
    }
}

/// Whether no browser says that it sends this for another page. `none` is what a person does: an address typed in.
fn is_of_own_page(headers: &HeaderMap, host: &str) -> bool {
    let fetched_by_own =
        headers.get_all("sec-fetch-site").iter().all(|value| matches!(value.as_bytes(), b"same-origin" | b"none"));
    let own_origin = format!("http://{host}");
    fetched_by_own && headers.get_all(ORIGIN).iter().all(|value| value.as_bytes() == own_origin.as_bytes())
}

/// Whether a browser shows what is asked for in a window of its own, so that the page that led there gets nothing of it.
fn is_opened(request: &Request<Bytes>) -> bool {
    let headers = request.headers();
    let says = |name: &str, word: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().is_some_and(|value| value.as_bytes() == word.as_bytes()) && values.next().is_none()
    };
    request.method() == Method::GET
        && !headers.contains_key(ORIGIN)
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

/// Compares in a time that tells nothing about where they differ.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |differs, (left, right)| differs | (left ^ right)) == 0
}

fn refused(status: StatusCode, why: &'static str) -> Verdict {
    let mut response = Response::new(Bytes::from(format!("{why}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Verdict::Answered(private(response))
}

fn moved(to: &str) -> Verdict {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(LOCATION, HeaderValue::from_str(to).expect("slashes and hexadecimal digits"));
    Verdict::Answered(private(response))
}

/// Keeps the address, which has the token in it, from other sites and from disks.
pub(super) fn private(mut response: Response<Bytes>) -> Response<Bytes> {
    let headers = response.headers_mut();
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    const HERE: (&str, &str) = ("host", "127.0.0.1:4000");

    /// The path that the API is asked for, or the status of the refusal.
    fn admitted(uri: &str, headers: &[(&str, &str)]) -> Result<String, u16> {
        let mut request = Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::new()).unwrap();
        match Guard::new(4000, TOKEN.to_owned()).admit(&request) {
            Verdict::Admitted(path) => Ok(path),
            Verdict::Answered(response) => Err(response.status().as_u16()),
        }
    }

    #[test]
    fn whoever_has_the_address_is_led_to_the_api() {
        for (path, asked) in
            [("/", "/"), ("/orders?limit=1", "/orders?limit=1"), ("/orders/a/cancel", "/orders/a/cancel")]
        {
            assert_eq!(admitted(&format!("/{TOKEN}{path}"), &[HERE]), Ok(asked.to_owned()));
        }
        let page = [("host", "localhost:4000"), ("origin", "http://localhost:4000"), ("sec-fetch-site", "same-origin")];
        assert_eq!(admitted(&format!("/{TOKEN}/bulk"), &page), Ok("/bulk".to_owned()));
        assert_eq!(admitted(&format!("/{TOKEN}"), &[HERE]), Err(308));
    }

    #[test]
    fn without_the_token_nobody_gets_in() {
        let almost = format!("/{}x/orders", &TOKEN[..31]);
        let doubled = format!("//{TOKEN}/orders");
        for uri in ["/", "/orders", "/0/orders", &almost, &doubled] {
            assert_eq!(admitted(uri, &[HERE]), Err(403), "{uri}");
        }
    }

    #[test]
    fn a_page_whose_name_leads_here_does_not_get_in_even_with_the_token() {
        let uri = format!("/{TOKEN}/orders");
        for hosts in [&[("host", "evil.example:4000")][..], &[("host", "127.0.0.1:4001")], &[], &[HERE, HERE]] {
            assert_eq!(admitted(&uri, hosts), Err(421), "{hosts:?}");
        }
    }

    #[test]
    fn a_request_for_another_page_does_not_get_in_even_with_the_token() {
        let uri = format!("/{TOKEN}/orders/a/cancel");
        for sent in [
            ("origin", "https://evil.example"),
            ("origin", "http://127.0.0.1:4001"),
            ("origin", "http://localhost:4000"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(admitted(&uri, &[HERE, sent]), Err(403), "{sent:?}");
        }
    }

    #[test]
    fn another_page_may_lead_to_the_page_itself_and_to_nothing_else() {
        let opened = |uri: &str, dest: &str, method: &str| {
            let request = Request::builder().method(method).uri(uri).header("host", HERE.1);
            let request = request.header("sec-fetch-site", "cross-site").header("sec-fetch-mode", "navigate");
            let request = request.header("sec-fetch-dest", dest).body(Bytes::new()).unwrap();
            matches!(Guard::new(4000, TOKEN.to_owned()).admit(&request), Verdict::Admitted(_))
        };
        let page = format!("/{TOKEN}/");
        assert!(opened(&page, "document", "GET"));
        assert!(!opened(&page, "iframe", "GET") && !opened(&page, "document", "POST"));
        assert!(!opened(&format!("/{TOKEN}/orders"), "document", "GET") && !opened("/", "document", "GET"));
    }

    #[test]
    fn a_refusal_names_neither_the_token_nor_is_kept() {
        let request = Request::get("/").header("host", "127.0.0.1:4000").body(Bytes::new()).unwrap();
        let Verdict::Answered(response) = Guard::new(4000, TOKEN.to_owned()).admit(&request) else {
            panic!("admitted");
        };
        assert!(!String::from_utf8_lossy(response.body()).contains(TOKEN));
        assert_eq!(response.headers()["cache-control"], "no-store");
    }
}
