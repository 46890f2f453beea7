//! The console on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use crate::run::{Served, program};
use crate::stub::{Stub, answer};

/// A console, ended with the test.
pub(crate) struct Console {
    process: Child,
    address: String,
    pub(crate) token: String,
}

impl Console {
    fn start(api: &str, args: &[&str]) -> Self {
        let mut command = program(&[&["console", "--api", api], args].concat());
        command.env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "s");
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit("http://").next().unwrap();
        let (address, token) = url.trim_end_matches('/').split_once('/').unwrap();
        assert!(address.starts_with("127.0.0.1:") && token.len() == 32, "{line}");
        Self { process, address: address.to_owned(), token: token.to_owned() }
    }

    /// The answer to a request as it is written here.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address))
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_page_and_its_calls_reach_the_api_through_the_printed_address_alone() {
    let served = Served::start();
    let console = Console::start(&served.url, &[]);
    let token = &console.token;
    let page = console.get(&format!("/{token}/"));
    assert!(page.starts_with("HTTP/1.1 200 ") && page.to_lowercase().contains("content-type: text/html"), "{page}");
    assert!(page.to_lowercase().contains("content-security-policy:"), "{page}");
    let services = console.get(&format!("/{token}/services"));
    assert!(services.contains(r#""Service":"payment""#), "{services}");
    let body = r#"{"Item": "mug"}"#;
    let posted = console.ask(&format!(
        "POST /{token}/orders HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nsec-fetch-site: same-origin\r\n\
         prefer: wait=20\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len(),
        address = console.address
    ));
    assert!(posted.starts_with("HTTP/1.1 200 ") && posted.contains("Processed"), "{posted}");
    for path in ["/", "/services", "/0123456789abcdef0123456789abcdef/services"] {
        assert!(console.get(path).starts_with("HTTP/1.1 403 "), "{path}");
    }
}

#[test]
fn nobody_else_gets_in_even_with_the_token() {
    let stub = Stub::start(|_, _| answer("200 OK", "", "{}"));
    let console = Console::start(&stub.url, &[]);
    let (token, address) = (&console.token, &console.address);
    for (headers, status) in [
        ("host: evil.example".to_owned(), "421"),
        (format!("host: {address}\r\norigin: https://evil.example"), "403"),
        (format!("host: {address}\r\nsec-fetch-site: cross-site"), "403"),
    ] {
        let told = console.ask(&format!("GET /{token}/services HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n"));
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {told}");
    }
    assert!(stub.asked().is_empty(), "the API was asked");
}

#[test]
fn calls_are_signed_with_the_callers_credentials_and_nothing_of_the_browser_is_passed_on() {
    let stub = Stub::start(|_, _| answer("200 OK", "set-cookie: a=b\r\netag: \"7\"\r\n", "{}"));
    let console = Console::start(&stub.url, &["--auth", "iam", "--region", "eu-central-1"]);
    let told = console.ask(&format!(
        "GET /{}/orders?limit=1 HTTP/1.1\r\nhost: {address}\r\ncookie: a=b\r\nauthorization: Basic eA==\r\n\
         referer: http://{address}/\r\nif-none-match: \"6\"\r\nconnection: close\r\n\r\n",
        console.token,
        address = console.address
    ));
    assert!(told.contains("etag: \"7\"") && !told.contains("set-cookie"), "{told}");
    let asked = &stub.asked()[0];
    assert_eq!(asked.target, "/orders?limit=1");
    assert!(asked.header("authorization").unwrap().contains("Credential=AKIAEXAMPLE/"), "{asked:?}");
    assert_eq!(asked.header("if-none-match"), Some("\"6\""));
    for name in ["cookie", "referer", "origin"] {
        assert_eq!(asked.header(name), None, "{name}");
    }
    assert!(!format!("{asked:?}").contains(&console.token), "the token stays here: {asked:?}");
}

#[test]
fn an_api_that_is_away_is_told_on_the_page() {
    let mut served = Served::start();
    served.kill();
    let console = Console::start(&served.url, &[]);
    let told = console.get(&format!("/{}/services", console.token));
    assert!(told.starts_with("HTTP/1.1 502 ") && told.contains("is `stepwarden serve` running?"), "{told}");
}

#[test]
fn the_browser_is_not_told_the_token_on_its_command_line_and_nothing_is_left_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (tool, seen) = (folder.path().join("xdg-open"), folder.path().join("seen"));
    // A browser that keeps its command line, and what it was led to.
    let script = format!("#!/bin/sh\n(echo \"$@\"; cat \"$1\") >{0}.part; mv {0}.part {0}\n", seen.display());
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = program(&["console", "--open"]);
    command.env("PATH", format!("{}:/bin:/usr/bin", folder.path().display())).env("TMPDIR", folder.path());
    let mut console = Console::of(command);
    while !seen.exists() {
        assert!(console.process.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let seen = std::fs::read_to_string(&seen).unwrap();
    let (line, page) = seen.split_once('\n').unwrap();
    assert!(!line.contains(&console.token) && page.contains(&console.token), "{seen}");
    let pid = console.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(console.process.wait().unwrap().code(), Some(0));
    assert!(!std::path::Path::new(line).exists(), "{line} is left");
}
