//! Keeps other sites' pages from using this API through a visitor's browser.
//!
//! A page of any site may have a browser load what it likes, such as a search as an image, as often as it likes. It sees
//! nothing of the answer, but this API has the work. So only what a person opens by a link is answered.
//!
//! The API takes JSON under the type of a form, since `curl -d` sends that type; but a page of any site may post a
//! form anywhere. A browser always reports the origin of such a request, in `Sec-Fetch-Site` and `Origin`; programs
//! send neither. A proxy in front of the API must leave `Host` unchanged.

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use http::uri::{Authority, Uri};

use crate::problem::Problem;

/// Refuses a browser's request on behalf of another site's page. `authority` is that of the request's URI, if it has
/// one; otherwise `Host` counts.
///
/// # Errors
/// [`Problem::CrossSite`].
pub(crate) fn check(headers: &HeaderMap, authority: Option<&Authority>) -> Result<(), Problem> {
    // `none` is an act of a person: a typed address, a bookmark.
    let is_own = |value: &[u8]| matches!(value, b"same-origin" | b"none");
    let fetched_from_here = headers.get_all("sec-fetch-site").iter().all(|value| is_own(value.as_bytes()));
    let host = match authority {
        Some(authority) => Some(authority.as_str()),
        None => headers.get(HOST).and_then(|host| host.to_str().ok()),
    };
    let mut origins = headers.get_all(ORIGIN).iter();
    let sent_from_here = origins.all(|origin| origin.to_str().is_ok_and(|origin| is_of_host(origin, host)));
    match fetched_from_here && sent_from_here {
        true => Ok(()),
        false => Err(Problem::CrossSite),
    }
}

/// Whether a browser shows the answer in a window of its own, as after a click on a link.
pub(crate) fn is_opened(headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().is_some_and(|value| value.as_bytes() == word.as_bytes()) && values.next().is_none()
    };
    says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document") && !headers.contains_key(ORIGIN)
}

/// Whether this host serves an origin like `https://shop.example:8443`. `null`, the origin of a page without one, is
/// not served.
fn is_of_host(origin: &str, host: Option<&str>) -> bool {
    let (Ok(origin), Some(Ok(host))) = (origin.parse::<Uri>(), host.map(str::parse::<Authority>)) else {
        return false;
    };
    let default_port = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return false,
    };
    origin.authority().is_some_and(|origin| {
        let port = |of: &Authority| of.port_u16().unwrap_or(default_port);
        origin.host().eq_ignore_ascii_case(host.host()) && port(origin) == port(&host)
    })
}

#[cfg(test)]
mod tests {
    use domain::task::ProcessState;

    use crate::testing::{Fake, ORDER, task_in};

    const HOST: (&str, &str) = ("Host", "localhost:3000");

    #[test]
    fn a_post_from_a_page_of_another_site_is_403_whatever_the_path() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Error));
        let command = format!("/orders/{order_id}/cancel");
        for (name, value) in [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Sec-Fetch-Site", "no word of the standard"),
            ("Origin", "https://evil.example"),
            ("Origin", "http://localhost:3001"),
            ("Origin", "http://localhost"),
            ("Origin", "https://localhost:3000.evil.example"),
            ("Origin", "http://localhost:3000@evil.example"),
            ("Origin", "ftp://localhost:3000"),
            ("Origin", "localhost:3000"),
            ("Origin", "null"),
            ("Origin", ""),
        ] {
            for (path, body) in [
                ("/orders", ORDER),
                (&*command, r#"{"By":"eve","Reason":"x"}"#),
                ("/bulk", "{}"),
                ("/bulk/x/start", "{}"),
            ] {
                let form = ("Content-Type", "application/x-www-form-urlencoded");
                fake.post(path, &[HOST, form, (name, value)], body).is_problem(403, "cross-site");
            }
        }
        fake.queued_nothing();
    }

    #[test]
    fn an_origin_without_a_host_to_compare_is_403() {
        Fake::default().post("/orders", &[("Origin", "http://localhost:3000")], ORDER).is_problem(403, "cross-site");
    }

    #[test]
    fn one_foreign_header_is_enough() {
        let fake = Fake::default();
        let own = ("Origin", "http://localhost:3000");
        fake.post("/orders", &[HOST, own, ("Origin", "https://evil.example")], ORDER).is_problem(403, "cross-site");
        fake.post("/orders", &[HOST, own, ("Sec-Fetch-Site", "cross-site")], ORDER).is_problem(403, "cross-site");
        fake.queued_nothing();
    }

    #[test]
    fn the_apis_own_pages_and_programs_may_post() {
        let fake = Fake::default();
        for headers in [
            &[HOST][..],
            &[HOST, ("Origin", "http://localhost:3000"), ("Sec-Fetch-Site", "same-origin")],
            &[HOST, ("Origin", "http://LOCALHOST:3000")],
            &[HOST, ("Sec-Fetch-Site", "none")],
            &[("Host", "shop.example"), ("Origin", "https://shop.example")],
            &[("Host", "shop.example:443"), ("Origin", "https://shop.example")],
            &[("Host", "[::1]:3000"), ("Origin", "http://[::1]:3000")],
        ] {
            assert_eq!(fake.post("/orders", headers, ORDER).status, 202, "{headers:?}");
        }
    }

    #[test]
    fn the_authority_of_the_uri_goes_before_the_header_host() {
        let fake = Fake::default();
        let (path, evil) = ("http://localhost:3000/orders", ("Host", "evil.example"));
        fake.post(path, &[evil, ("Origin", "http://evil.example")], ORDER).is_problem(403, "cross-site");
        assert_eq!(fake.post(path, &[evil, ("Origin", "http://localhost:3000")], ORDER).status, 202);
    }

    #[test]
    fn a_get_by_a_page_of_another_site_is_403_unless_it_costs_nothing() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Error));
        let (order, document) = (format!("/orders/{order_id}"), format!("/orders/{order_id}/document"));
        for foreign in
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"), ("Origin", "http://localhost:3001")]
        {
            for path in ["/orders?value=x", &order, &document, "/overview", "/metrics", "/", "/console/main.js"] {
                for method in ["GET", "HEAD"] {
                    let answer = fake.call(method, path, &[HOST, foreign, ("Sec-Fetch-Mode", "no-cors")], "");
                    assert_eq!(answer.status, 403, "{method} {path} {foreign:?}");
                }
            }
            for path in ["/health", "/nowhere"] {
                let answer = fake.call("GET", path, &[HOST, foreign], "");
                assert!(matches!(answer.status, 200 | 404), "{path} {foreign:?}");
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
        assert_eq!(fake.orders_read() + fake.tasks_listed(), 0);
    }

    #[test]
    fn a_link_on_another_site_leads_to_a_page_and_to_nothing_else() {
        let fake = Fake::default();
        let opened = [HOST, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
        let call = |path: &str, more: (&'static str, &'static str)| {
            fake.call("GET", path, &[&opened[..], &[more]].concat(), "").status
        };
        let in_a_window = ("Sec-Fetch-Dest", "document");
        for path in ["/", "/problems/order-not-found"] {
            assert_eq!(call(path, in_a_window), 200, "{path}");
            assert_eq!(call(path, ("Sec-Fetch-Dest", "iframe")), 403, "{path}");
            assert_eq!(call(path, ("Sec-Fetch-Mode", "navigate")), 403, "{path}");
        }
        for path in ["/orders?value=x", "/overview", "/console/main.js", "/openapi.json"] {
            assert_eq!(call(path, in_a_window), 403, "{path}");
        }
    }

    #[test]
    fn pages_of_this_api_and_programs_may_read() {
        let fake = Fake::default();
        for headers in [&[HOST][..], &[HOST, ("Sec-Fetch-Site", "same-origin")], &[HOST, ("Sec-Fetch-Site", "none")]] {
            assert_eq!(fake.call("GET", "/orders?value=x", headers, "").status, 200, "{headers:?}");
        }
    }
}
