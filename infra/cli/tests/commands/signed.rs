//! Signed calls, verified by a server that makes the signature anew from what it got, by the published rules and not by
//! the library that made it.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::console::Console;
use crate::run::{program, run};
use crate::stub::{Asked, Stub, answer};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// HMAC with SHA-256 (RFC 2104), for keys that are no longer than a block.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}

/// A part of a query as it stands in a signature: every byte in percent but for the unreserved ones (RFC 3986).
fn canonical(part: &str) -> String {
    let (mut bytes, mut text) = (part.bytes(), String::new());
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' {
            let digits = String::from_utf8(vec![bytes.next().unwrap(), bytes.next().unwrap()]).unwrap();
            u8::from_str_radix(&digits, 16).unwrap()
        } else {
            byte
        };
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").unwrap();
        }
    }
    text
}

/// The signature that belongs to a request, by the names of the headers that it says are signed.
fn signature(asked: &Asked, signed: &str, region: &str) -> String {
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    let mut pairs: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            format!("{}={}", canonical(name), canonical(value))
        })
        .collect();
    pairs.sort();
    let headers: String = signed.split(';').map(|name| format!("{name}:{}\n", asked.header(name).unwrap())).collect();
    let body = hex::encode(Sha256::digest(asked.body.as_bytes()));
    let request = format!("{}\n{path}\n{}\n{headers}\n{signed}\n{body}", asked.method, pairs.join("&"));
    let time = asked.header("x-amz-date").unwrap();
    let scope = format!("{}/{region}/execute-api/aws4_request", &time[..8]);
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex::encode(Sha256::digest(request.as_bytes())));
    let key = [&time[..8], region, "execute-api", "aws4_request"]
        .iter()
        .fold(format!("AWS4{SECRET}").into_bytes(), |key, part| hmac(&key, part.as_bytes()));
    hex::encode(hmac(&key, text.as_bytes()))
}

/// 200 to what is signed as it should be, else 403.
fn verified(asked: &Asked, body: &str) -> Option<String> {
    let holds = asked.header("authorization").is_some_and(|authorization| {
        let part = |name: &str| {
            authorization
                .split([' ', ','])
                .find_map(|part| part.trim().strip_prefix(name))
                .unwrap_or_default()
                .to_owned()
        };
        let (credential, signed) = (part("Credential="), part("SignedHeaders="));
        let must = ["host", "x-amz-date", "x-amz-security-token"];
        credential.starts_with("ASIAEXAMPLE/")
            && credential.ends_with("/eu-central-1/execute-api/aws4_request")
            && must.iter().all(|name| signed.split(';').any(|part| part == *name))
            && part("Signature=") == signature(asked, &signed, "eu-central-1")
    });
    if holds { answer("200 OK", "", body) } else { answer("403 Forbidden", "", r#"{"message": "Forbidden"}"#) }
}

fn signed(url: &str, args: &[&str]) -> std::process::Command {
    let mut command = program(&[args, &["--api", url, "--auth", "iam", "--region", "eu-central-1"]].concat());
    command.env("AWS_ACCESS_KEY_ID", "ASIAEXAMPLE").env("AWS_SECRET_ACCESS_KEY", SECRET).env("AWS_SESSION_TOKEN", "t");
    command
}

#[test]
fn a_server_that_makes_the_signature_anew_takes_every_kind_of_call() {
    let stub = Stub::start(|_, asked| {
        let body = match asked.target.split('?').next() {
            Some("/orders") if asked.method == "GET" => r#"{"Orders": []}"#,
            Some("/services") => r#"{"Services": []}"#,
            _ => {
                r#"{"OrderID": "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "ProcessState": "Pending", "Action": "Cancel",
                    "CommandID": "c-1"}"#
            }
        };
        verified(asked, body)
    });
    run(signed(&stub.url, &["services"]), "").with_status(0);
    run(signed(&stub.url, &["list", "--state", "Error", "--value", "a b&c=é/+~"]), "").with_status(0);
    run(signed(&stub.url, &["submit", "--key", "\"k 1\""]), r#"{"Total": 1.10}"#).with_status(0);
    run(
        signed(
            &stub.url,
            &["cancel", "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "--reason", "ünötig", "--if-version", "7"],
        ),
        "",
    )
    .with_status(0);
    assert_eq!(stub.asked().len(), 4);
}

#[test]
fn another_secret_is_refused_with_what_to_do() {
    let stub = Stub::start(|_, asked| verified(asked, "{}"));
    let mut command = signed(&stub.url, &["services"]);
    command.env("AWS_SECRET_ACCESS_KEY", "another");
    run(command, "").with_status(6).says(&["Forbidden (403)", "OperatorPolicyArn", "aws sts get-caller-identity"]);
}

#[test]
fn without_credentials_and_without_the_tool_that_knows_them_nothing_is_sent() {
    let stub = Stub::start(|_, asked| verified(asked, "{}"));
    let mut command = program(&["services", "--api", &stub.url, "--auth", "iam", "--region", "eu-central-1"]);
    command.env("PATH", "/nowhere");
    run(command, "").with_status(6).says(&["no AWS credentials", "aws sso login"]);
    assert!(stub.asked().is_empty());
}

#[test]
fn the_tool_is_asked_for_the_credentials_of_a_profile() {
    let stub = Stub::start(|_, asked| verified(asked, r#"{"Services": []}"#));
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("aws");
    let script = format!(
        "#!/bin/sh\n[ \"$*\" = 'configure export-credentials --format process --output json --profile night' ] || exit 9\n\
         echo '{{\"Version\": 1, \"AccessKeyId\": \"ASIAEXAMPLE\", \"SecretAccessKey\": \"{SECRET}\", \"SessionToken\": \"t\"}}'\n"
    );
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = program(&["services", "--api", &stub.url, "--auth", "iam", "--region", "eu-central-1"]);
    command.args(["--profile", "night"]).env("PATH", format!("{}:/bin:/usr/bin", folder.path().display()));
    run(command, "").with_status(0);
}

#[test]
fn a_query_of_the_page_is_signed_as_it_is_sent_whatever_is_in_it() {
    let stub = Stub::start(|_, asked| verified(asked, r#"{"Orders": []}"#));
    let mut command = program(&["console", "--api", &stub.url, "--auth", "iam", "--region", "eu-central-1"]);
    command.env("AWS_ACCESS_KEY_ID", "ASIAEXAMPLE").env("AWS_SECRET_ACCESS_KEY", SECRET).env("AWS_SESSION_TOKEN", "t");
    let console = Console::of(command);
    let token = &console.token;
    for query in [
        "value=a%20b",
        "value=a%2Bb&field=%2Fx",
        "value=*~-_.",
        "value=%2A",
        "step=b&step=a&step=",
        "limit=1&value=%C3%A9",
    ] {
        let told = console.get(&format!("/{token}/orders?{query}"));
        assert!(told.starts_with("HTTP/1.1 200 "), "{query}: {told}");
        assert_eq!(stub.asked().last().unwrap().target, format!("/orders?{query}"), "sent as it came");
    }
}
