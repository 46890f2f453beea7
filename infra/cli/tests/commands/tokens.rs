//! Callers by tokens: what a server without them refuses, and what a person and an application do with them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use tempfile::TempDir;

use crate::run::{Ended, Served, program, run};

/// A server that knows callers by a file, which a test changes.
struct Known {
    served: Served,
    folder: TempDir,
}

impl Known {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        std::fs::write(&file, "").unwrap();
        let data = tempfile::tempdir().unwrap();
        let served = Served::start_in(data, &["--tokens", &file.display().to_string()]);
        Self { served, folder }
    }

    fn token(&self, args: &[&str]) -> Ended {
        let file = self.folder.path().join("tokens.toml").display().to_string();
        run(program(&[&["token"], args, &["--tokens", &file]].concat()), "")
    }

    /// A command with this token, as soon as it ends with this status: the server looks at its file every second.
    fn ends(&self, token: &str, args: &[&str], status: i32) -> Ended {
        let mut ended = None;
        for _ in 0..100 {
            let mut command: Command = self.served.command(args);
            command.env("STEPWARDEN_TOKEN", token);
            let last = run(command, r#"{"Item": "mug"}"#);
            if last.status == status {
                return last;
            }
            ended = Some(last);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{args:?} did not end with {status}: {ended:?}");
    }
}

#[test]
fn a_server_that_other_machines_reach_has_tokens_or_says_that_it_has_none() {
    let refused = run(program(&["serve", "--host", "0.0.0.0", "--port", "0", "--data", "/nowhere/data"]), "");
    refused.with_status(2).says(&["--tokens FILE", "stepwarden token add", "--no-auth"]);
    let both = run(program(&["serve", "--no-auth", "--tokens", "x", "--data", "/nowhere/data"]), "");
    both.with_status(2).says(&["--no-auth", "cannot be used with"]);
    let missing = run(program(&["serve", "--tokens", "/nowhere/tokens.toml", "--data", "/nowhere/data"]), "");
    missing.with_status(2).says(&["/nowhere/tokens.toml"]);
}

#[test]
fn who_is_known_by_an_issuer_or_by_a_proxy_is_said_whole_or_not_at_all() {
    for (args, words) in [
        (&["--jwt-issuer", "https://login.example.com"][..], "--jwt-audience"),
        (&["--jwt-audience", "orders"], "--jwt-issuer"),
        (&["--jwt-roles-claim", "groups"], "--jwt-issuer"),
        (&["--jwt-issuer", "http://login.example.com", "--jwt-audience", "orders"], "https"),
        (&["--trusted-proxy", "127.0.0.1"], "--trusted-header"),
        (&["--trusted-header", "x-user"], "--trusted-proxy"),
        (&["--trusted-proxy", "10.0.0.0/8", "--trusted-header", "x-user"], "the address of the proxy"),
        (&["--trusted-proxy", "127.0.0.1", "--trusted-header", "x-user", "--no-auth"], "cannot be used with"),
    ] {
        let refused = run(program(&[&["serve", "--data", "/nowhere/data"], args].concat()), "");
        refused.with_status(2).says(&[words]);
    }
}

/// The status of a list of orders with these headers.
fn listed(url: &str, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let head = format!("GET /orders HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}

#[test]
fn a_proxy_is_believed_by_its_address_and_another_one_is_refused() {
    let options = ["--trusted-header", "x-user", "--trusted-proxy"];
    let trusting = |proxy| Served::start_in(tempfile::tempdir().unwrap(), &[&options[..], &[proxy]].concat());
    let served = trusting("10.0.0.7,127.0.0.1");
    for (headers, status) in [
        ("x-user: ada\r\nx-forwarded-roles: viewer\r\n", 200),
        ("X-User: ada\r\n", 401),
        ("", 401),
        ("authorization: Bearer sw_x\r\n", 401),
    ] {
        assert_eq!(listed(&served.url, headers), status, "{headers}");
    }
    let other = trusting("10.0.0.7");
    assert_eq!(listed(&other.url, "x-user: ada\r\nx-forwarded-roles: viewer\r\n"), 400);
    assert_eq!(listed(&other.url, ""), 401);
}

#[test]
fn an_application_sees_its_own_orders_an_operator_acts_and_a_removed_token_ends() {
    let known = Known::start();
    known.served.run(&["list"]).with_status(6).says(&["needs a token", "STEPWARDEN_TOKEN"]);
    let add = |args: &[&str]| known.token(args).with_status(0).stdout.trim().to_owned();
    let shop = add(&["add", "shop", "--role", "application"]);
    let market = add(&["add", "market", "--role", "application"]);
    let ada = add(&["add", "ada", "--role", "operator"]);

    let posted = known.ends(&shop, &["submit", "-", "--wait", "-o", "json"], 0);
    let id = posted.json()["OrderID"].as_str().unwrap().to_owned();
    known.ends(&shop, &["get", &id], 0).shows(&["Processed"]);
    known.ends(&market, &["get", &id], 3).says(&["no order"]);
    assert_eq!(known.ends(&market, &["list", "-o", "json"], 0).stdout, "");
    assert_eq!(known.ends(&shop, &["list", "-o", "json"], 0).lines().len(), 1);
    known.ends(&shop, &["overview"], 6).says(&["needs the role viewer or operator"]);
    known.ends(&ada, &["get", &id], 0);
    known.ends(&ada, &["submit", "-"], 6).says(&["needs the role application"]);
    known.ends(&ada, &["note", &id, "--reason", "seen"], 4);

    known.token(&["list"]).shows(&["shop", "application", "operator"]);
    let listed = known.token(&["list", "-o", "json"]).lines();
    assert_eq!((listed.len(), &listed[2]["Name"], &listed[2]["Roles"][0]), (3, &"ada".into(), &"operator".into()));
    known.token(&["remove", "market"]).with_status(0);
    known.ends(&market, &["list"], 6).says(&["not accepted"]);
    known.ends(&shop, &["list"], 0);
    known.token(&["remove", "market"]).with_status(2).says(&["no token of the name or ID"]);
    known.token(&["add", "eve", "--role", "root"]).with_status(2).says(&["is no role"]);
}
