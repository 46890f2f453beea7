//! `GET /`: the operator's console, a page and its files, all of them part of this program.
//!
//! The page calls this API and no other host. Its addresses are relative, so that it works behind a stage or a proxy
//! that adds a prefix to the path. What must never be here: data of an order. The page gets it like any other caller.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response};

use crate::etag;
use crate::problem::Problem;

/// The browser's permissions for the page: load the files served here, and call this API.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers of every answer, besides its type and its tag. `no-cache`: the browser asks each time whether there is
/// a newer version, so that page and scripts of two versions do not stay together.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (CACHE_CONTROL, "no-cache"),
];

/// A file of the console.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

impl File {
    /// Whether it is a page, and not a part of one.
    pub(crate) fn is_page(&self) -> bool {
        self.content_type.starts_with("text/html")
    }
}

/// A script under `/console/`, by its name.
macro_rules! script {
    ($name:literal) => {
        File {
            path: concat!("/console/", $name),
            content_type: "text/javascript; charset=utf-8",
            text: include_str!($name),
        }
    };
}

const FILES: &[File] = &[
    File { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("index.html") },
    File { path: "/console.css", content_type: "text/css; charset=utf-8", text: include_str!("console.css") },
    script!("actions.js"),
    script!("alerts.js"),
    script!("api.js"),
    script!("charts.js"),
    script!("columns.js"),
    script!("dialog.js"),
    script!("dom.js"),
    script!("drawing.js"),
    script!("exporting.js"),
    script!("find.js"),
    script!("ids.js"),
    script!("jobs.js"),
    script!("letters.js"),
    script!("lines.js"),
    script!("main.js"),
    script!("numbers.js"),
    script!("order.js"),
    script!("orders.js"),
    script!("overview.js"),
    script!("parts.js"),
    script!("pictures.js"),
    script!("plan.js"),
    script!("service.js"),
    script!("services.js"),
    script!("signin.js"),
    script!("time.js"),
    script!("timeline.js"),
    script!("trying.js"),
    script!("words.js"),
    script!("workflows.js"),
];

/// The file at a path.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// `GET` of a file; 304 if the browser has it already.
pub(crate) fn answer(file: &File, headers: &HeaderMap) -> Result<Response<Bytes>, Problem> {
    let mut response = Response::new(Bytes::from_static(file.text.as_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    let mut response = etag::unless_known(response, headers, digest(file.text))?;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// A number that differs between texts (FNV-1a, 64 bits). It guards against mix-ups, not against forgery.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fake;

    #[test]
    fn the_page_and_its_files_are_served_while_every_port_is_down_with_a_policy_that_lets_nothing_else_in() {
        let fake = Fake::default();
        fake.all_down();
        for file in FILES {
            let answer = fake.get(file.path);
            assert_eq!((answer.status, answer.header("content-type")), (200, Some(file.content_type)), "{}", file.path);
            assert_eq!(answer.text, file.text);
            for (name, value) in &HEADERS {
                assert_eq!(answer.header(name.as_str()), Some(*value), "{} {name}", file.path);
            }
        }
    }

    #[test]
    fn a_browser_that_has_a_file_gets_304_until_the_file_changes() {
        let fake = Fake::default();
        let tags: Vec<String> =
            FILES.iter().map(|file| fake.get(file.path).header("etag").unwrap().to_owned()).collect();
        for (at, (file, tag)) in FILES.iter().zip(&tags).enumerate() {
            let known = fake.call("GET", file.path, &[("If-None-Match", tag)], "");
            assert_eq!((known.status, known.text.as_str(), known.header("cache-control")), (304, "", Some("no-cache")));
            let other = &tags[(at + 1) % tags.len()];
            assert_eq!(fake.call("GET", file.path, &[("If-None-Match", other)], "").status, 200, "{}", file.path);
        }
    }

    #[test]
    fn every_script_is_served_that_another_one_loads() {
        let scripts = FILES.iter().filter(|file| file.path.starts_with("/console/"));
        for (file, text) in scripts.map(|file| (file.path, file.text)) {
            for line in text.lines().filter(|line| line.contains(" from \"")) {
                let name = line.rsplit_once(" from \"./").and_then(|(_, rest)| rest.strip_suffix("\";")).unwrap();
                assert!(super::file(&format!("/console/{name}")).is_some(), "{file} loads {name}");
            }
        }
    }

    #[test]
    fn nothing_in_the_page_names_another_host_or_needs_more_than_the_policy_allows() {
        for File { path, text, .. } in FILES {
            let foreign =
                text.match_indices("://").filter(|(at, _)| !text[at + 3..].starts_with("www.w3.org/2000/svg"));
            assert_eq!(foreign.count(), 0, "{path}");
            for word in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=\"", "new Function"]
            {
                assert!(!text.contains(word), "{path}: {word}");
            }
        }
        let page = file("/").unwrap().text;
        assert!(
            !page.contains("<style")
                && page.matches("<script").count() == page.matches("<script type=\"module\" src=").count()
        );
    }

    #[test]
    fn addresses_are_relative_so_that_the_page_works_below_a_base_path() {
        for File { path, text, .. } in FILES {
            for absolute in ["href=\"/", "src=\"/", "fetch(\"/", "url(/"] {
                assert!(!text.contains(absolute), "{path}: {absolute}");
            }
        }
    }

    #[test]
    fn only_the_files_are_served_and_none_takes_a_post() {
        let fake = Fake::default();
        for path in
            ["/console", "/console/", "/console/mod.rs", "/console/../lib.rs", "/index.html", "/console/main.js/"]
        {
            fake.get(path).is_problem(404, "unknown-route");
        }
        let answer = fake.call("POST", "/console.css", &[], "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
        let head = fake.call("HEAD", "/", &[], "");
        assert_eq!((head.status, head.text.as_str()), (200, ""));
        fake.queued_nothing();
    }
}
