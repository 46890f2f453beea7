//! A server with a certificate, and one on a socket in the file system: how they are called, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::console::Console;
use crate::run::{Served, program, run};

/// The files of a server, with the certificate of its issuer.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let [ca_key, key] = [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()];
        fs::write(folder.path().join("ca.crt"), params.self_signed(&ca_key).unwrap().pem()).unwrap();
        let own = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = own.signed_by(&key, &Issuer::new(params, ca_key)).unwrap();
        fs::write(folder.path().join("tls.crt"), certificate.pem()).unwrap();
        fs::write(folder.path().join("tls.key"), key.serialize_pem()).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

fn socket_in(folder: &Path) -> (PathBuf, String) {
    let path = folder.join("api.sock");
    let url = format!("unix:{}", path.display());
    (path, url)
}

#[test]
fn a_server_with_a_certificate_is_called_by_who_trusts_its_issuer() {
    let files = Files::new();
    let (certificate, key, ca) = (files.path("tls.crt"), files.path("tls.key"), files.path("ca.crt"));
    let served = Served::start_in(tempfile::tempdir().unwrap(), &["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
    let posted = run(served.command(&["submit", "-", "--wait", "--ca", &ca]), r#"{"Item": "mug"}"#);
    posted.with_status(0).shows(&["Processed"]);
    served.run(&["list"]).with_status(5).says(&["invalid peer certificate", "--ca FILE"]);
    served.run(&["list", "--ca", "/nowhere/ca.crt"]).with_status(2).says(&["--ca /nowhere/ca.crt"]);
    served.run(&["list", "--ca", &key]).with_status(2).says(&["no certificate in PEM"]);
    served.run(&["doctor", "--ca", &ca]).shows(&[&served.url]);

    let console = Console::of(served.command(&["console", "--ca", &ca]));
    let services = console.get(&format!("/{}/services", console.token));
    assert!(services.contains(r#""Service":"payment""#), "{services}");

    // A context keeps it.
    let settings = files.folder.path().display().to_string();
    for args in [&["context", "add", "shop", "--ca", &ca][..], &["list", "--context", "shop"]] {
        let mut command = program(args);
        command.env("XDG_CONFIG_HOME", &settings);
        if args[0] == "context" {
            command.args(["--api", &served.url]);
        }
        run(command, "").with_status(0);
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_told_before_anything_starts() {
    let files = Files::new();
    let (certificate, key) = (files.path("tls.crt"), files.path("tls.key"));
    let refused = |certificate: &str, key: &str| {
        run(program(&["serve", "--data", "/nowhere/data", "--tls-cert", certificate, "--tls-key", key]), "")
    };
    refused("/nowhere/tls.crt", &key).with_status(2).says(&["/nowhere/tls.crt"]);
    refused(&certificate, &certificate).with_status(2).says(&["no private key in PEM"]);
    refused(&files.path("ca.crt"), &key).with_status(2).says(&["give a certificate and its own key"]);
    let alone = run(program(&["serve", "--data", "/nowhere/data", "--tls-cert", &certificate]), "");
    alone.with_status(2).says(&["--tls-key"]);
}

#[test]
fn a_socket_is_called_beside_the_port_or_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (path, url) = socket_in(folder.path());
    let both = Served::start_in(tempfile::tempdir().unwrap(), &["--socket", &path.display().to_string()]);
    both.run(&["list"]).with_status(0);
    let posted = run(program(&["submit", "-", "--wait", "--api", &url]), r#"{"Item": "mug"}"#);
    posted.with_status(0).shows(&["Processed"]);
    let taken = run(program(&["serve", "--data", "/nowhere/data", "--no-port", "--socket", &url[5..]]), "");
    taken.with_status(2).says(&["another process listens on", "--socket"]);
    drop(both);
    // It was killed, and its socket is still there.
    assert!(path.exists());
    run(program(&["list", "--api", &url]), "").with_status(5).says(&[&url, "stepwarden serve"]);
    let args = ["serve", "--no-port", "--socket", &url[5..]];
    let alone = Served::of(&args, tempfile::tempdir().unwrap());
    assert_eq!(alone.url, url);
    alone.run(&["list"]).with_status(0);
    alone.run(&["doctor"]).shows(&[&url]);
    let console = Console::of(alone.command(&["console"]));
    assert!(console.get(&format!("/{}/services", console.token)).contains(r#""Service":"payment""#));
    fs::write(folder.path().join("file"), "").unwrap();
    let file = folder.path().join("file").display().to_string();
    let other = run(program(&["serve", "--data", "/nowhere/data", "--no-port", "--socket", &file]), "");
    other.with_status(2).says(&["is no socket"]);
    run(program(&["serve", "--no-port"]), "").with_status(2).says(&["--socket"]);
}

#[test]
fn who_opens_the_socket_needs_a_token_where_there_are_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let (path, url) = socket_in(folder.path());
    let tokens = folder.path().join("tokens.toml").display().to_string();
    let added = run(program(&["token", "add", "ada", "--role", "viewer", "--tokens", &tokens]), "");
    let token = added.with_status(0).stdout.trim().to_owned();
    let socket = path.display().to_string();
    let args = ["serve", "--no-port", "--socket", &socket, "--tokens", &tokens];
    let served = Served::of(&args, tempfile::tempdir().unwrap());
    served.run(&["list"]).with_status(6).says(&["needs a token"]);
    let mut known = program(&["list", "--api", &url]);
    known.env("STEPWARDEN_TOKEN", token);
    run(known, "").with_status(0);
}
